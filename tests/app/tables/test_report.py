"""The document and the page: what they say, that nothing from a table becomes code, and how a
browser shows it.
"""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from nearkin import NCAClassifier, TableEncoder
from nearkin.app.document import plain, short_text, to_json, write_json, write_page
from nearkin.app.tables import report
from nearkin.app.tables.reading import Table, number_encoder
from nearkin.app.tables.report import comparison_document, learned_columns
from nearkin.comparison import (
    Method,
    Suspects,
    all_methods,
    compare,
    default_references,
    score_by_dimension,
)
from tests.app.conftest import needs_chromium
from tests.app.sample_document import SAMPLES, documented_keys, sample
from tests.app.winners import fitted

EVIL = (
    '"></script><script>pwned=1</script><img src=x '
    "onerror=pwned=1><b>&lt;$title\x00\x1b\u202e\udc80</b>"
)
METHODS = [method for method in all_methods() if method.name in ("PCA", "LDA")]
REFERENCES = default_references()[:1]
MAX_BYTES = 2_000_000


def hostile_table(n=90, n_classes=3, p=5):
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.arange(n) % n_classes)
    names = [f"{EVIL} {i}" for i in range(p)]
    encoder = number_encoder(names)
    encoder.dropped_ = {EVIL: "a constant"}
    X = rng.standard_normal((n, p)) + 2 * rng.standard_normal((n_classes, p))[classes]
    X[::9, 1] = np.nan
    return Table(
        X=X,
        y=np.array([f"{i:03d} {EVIL}" for i in range(n_classes)])[classes],
        groups=None,
        name=EVIL,
        notes=[f"ignored: {EVIL}"],
        target=EVIL,
        encoder=encoder,
        row_names=[f"{i} {EVIL}" for i in range(n)],
        suspects=Suspects([(EVIL, 1.0)], [(EVIL, 12)]),
    )


def document_of(table, methods=METHODS, **options):
    options = {"n_splits": 3, "n_repeats": 2, "references": REFERENCES, "refit": False} | options
    comparison = compare(table.X, table.y, task=table.task, methods=methods, **options)
    return whole(comparison, table, score_by_dimension(comparison))


def whole(comparison, table, curves):
    """Return the document as it is written."""
    made_by = {"format": 1, "nearkin": "1.0", "command": ["nearkin", "compare", f"{EVIL}.csv"]}
    return plain(made_by | comparison_document(comparison, curves, table))


@pytest.fixture(scope="module")
def classes():
    """The document of a table that would like to run a script."""
    return document_of(hostile_table(), [*METHODS, Method(EVIL, PCA())])


@pytest.fixture(scope="module")
def numbers():
    """The document of a regression on such a table; one of its maps has a single dimension."""
    table = hostile_table()
    single = Method(
        EVIL,
        PCA(),
        lambda p: [{"n_components": 1}],
        nested=False,
        max_components=lambda p, n_classes: 1,
    )
    table = replace(table, y=np.nansum(table.X, axis=1), task="regression")
    methods = [method for method in all_methods("regression") if method.name == "PCA"]
    return document_of(table, [*methods, single], references=default_references("regression")[:1])


def written(document, path):
    write_page(path, document)
    return path


def keys_by_section(document):
    """Return the keys that the document has, by the headings of docs/guide/json.md."""
    sections = {"": set(document)}
    for name, part in document.items():
        parts = part if isinstance(part, list) else [part]
        if name != "versions" and parts and isinstance(parts[0], dict):
            sections[name] = set().union(*parts)
    sections["score, beside"] = sections.pop("score") | sections.pop("beside")
    return sections


@pytest.mark.long
def test_every_key_is_documented(classes, numbers):
    documented = {name: keys for name, keys in documented_keys().items() if "nearkin" not in name}
    # of NCA tables alone
    expected = {name: keys for name, keys in documented.items() if name != "columns"}
    assert keys_by_section(classes) == expected
    assert keys_by_section(numbers) == {
        name: keys for name, keys in expected.items() if name != "confusion"
    }
    for make in SAMPLES.values():
        sections = keys_by_section(make())
        assert sections == {name: keys for name, keys in documented.items() if name in sections}


def test_what_is_written_can_be_read_again(classes, tmp_path):
    write_json(tmp_path / "a.json", classes)

    def refuse(constant):
        raise AssertionError(constant)

    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=refuse) == json.loads(
        json.dumps(classes).replace("\\udc80", "?")
    )
    assert not {"<", ">", "&"}.intersection(text)


def test_the_document_says_what_was_compared(classes):
    table = hostile_table()
    assert classes["table"]["name"] == EVIL
    assert [c["rows"] for c in classes["table"]["classes"]] == [30, 30, 30]
    assert classes["notes"][0] == f"ignored: {EVIL}"
    assert len(classes["notes"]) == len(set(classes["notes"]))
    assert sorted(line["kind"] for line in classes["ranking"]) == [
        "baseline",
        "choice",
        *["method"] * 3,
        "reference",
    ]
    for line in classes["ranking"]:
        assert len(line["folds"]) == 6
        assert line["scores"]["accuracy"] == line["score"]
        assert np.mean(line["folds"]) == pytest.approx(line["score"], abs=1e-5)
    choice = next(line for line in classes["ranking"] if line["kind"] == "choice")
    assert sum(chosen["folds"] for chosen in choice["choices"]) == 6
    curves = {curve["name"]: curve["dimension"] for curve in classes["curves"]}
    assert curves["raw k-NN"] == [6]  # five features, and where one is missing
    missing = classes["table"]["missing"]
    assert (missing["cells"], missing["n_features"]) == (10, 1)
    assert missing["features"] == [{"feature": short_text(f"{EVIL} 1"), "rows": 10}]
    assert curves["LDA"] == [1, 2]

    rows = classes["rows"]
    truth = dict(zip(rows["name"], rows["answer"], strict=True))
    codes = np.unique(table.y, return_inverse=True)[1]
    assert all(codes[int(name.split()[0])] == answer for name, answer in truth.items())
    assert len(classes["maps"]) == 3
    for shown in classes["maps"]:
        assert len(shown["x"]) == len(shown["y"]) == rows["held_out"] == 30
        assert np.shape(shown["near"]) == (30, 3)
        assert np.min(shown["near"]) >= 30  # training rows
    for when in ("before", "after"):
        np.testing.assert_allclose(np.sum(classes["confusion"][when], axis=1), 100, atol=0.05)


def table_of_columns(n=60):
    """The class depends on the size, and not in order, and on the colour."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=["size", "a", "b", "c"]).assign(
        colour=list("rgb") * (n // 3)
    )
    frame.loc[::7, "size"] = np.nan
    encoder = TableEncoder(missing="keep").fit(frame)
    y = np.where((frame["size"].abs() < 0.7) ^ (frame["colour"] == "r"), "in", "out")
    table = Table(
        X=encoder.transform(frame),
        y=y,
        name="columns",
        target="y",
        encoder=encoder,
        row_names=range(n),
    )
    return table, frame


def test_what_nca_tables_learned_of_the_columns():
    table, frame = table_of_columns()
    method = next(method for method in all_methods() if method.own_vote)
    method = replace(method, estimator=NCAClassifier(alpha=0.5, n_members=2))
    comparison, pipeline = fitted(method, table)
    found = learned_columns(comparison, table)
    effects = [one["effect"] for one in found["effects"]]
    assert effects == sorted(effects, reverse=True)
    assert {one["column"] for one in found["effects"]} == set(frame.columns)
    curves = {curve["name"]: curve for curve in found["curves"]}

    def along_axes(name, values):
        rows = pd.concat([frame.iloc[[1]]] * len(values)).assign(**{name: values})
        Z = pipeline[-1].transform(table.encoder.transform(rows))[:, : len(found["axes"])].T
        return Z - Z[:, :1]

    for name, values in (("size", curves["size"]["edges"]), ("colour", curves["colour"]["levels"])):
        places = np.array(curves[name]["places"])
        np.testing.assert_allclose(places - places[:, :1], along_axes(name, values), atol=2e-3)
    missing = np.array(curves["size"]["missing"]) - np.array(curves["size"]["places"])[:, 0]
    np.testing.assert_allclose(
        missing, along_axes("size", [curves["size"]["edges"][0], np.nan])[:, 1], atol=2e-3
    )


def test_a_single_split_without_references_or_methods():
    document = document_of(hostile_table(60), [], n_splits=2, n_repeats=1, references=[])
    assert document["maps"] == []
    assert document["rows"] is None
    assert document["confusion"] is None
    assert [line["name"] for line in document["ranking"]] == [
        "automatic choice",
        "raw k-NN",
        "majority",
    ]


def test_one_fold(monkeypatch):
    monkeypatch.setattr("nearkin.comparison.protocol.SPLIT_ROWS", 80)
    document = document_of(hostile_table(), n_splits=None, n_repeats=None)
    assert document["protocol"]["folds"] == document["protocol"]["repeats"] == 1
    assert all(
        line["deviation"] is None and len(line["folds"]) == 1 for line in document["ranking"]
    )
    json.loads(to_json(document))


def test_many_rows_and_classes_are_cut(monkeypatch):
    monkeypatch.setattr(report, "MAX_POINTS", 10)
    monkeypatch.setattr(report, "MAX_CONFUSION", 2)
    monkeypatch.setattr(report, "MAX_CLASSES", 2)
    table = hostile_table()
    comparison = compare(
        table.X, table.y, methods=METHODS[:1], references=[], n_splits=3, n_repeats=1, refit=False
    )
    document = whole(comparison, table, {})
    assert len(document["maps"][0]["x"]) == 10
    assert document["rows"]["held_out"] == 30
    assert [c["label"] for c in document["table"]["classes"]][2:] == ["the 1 other classes"]
    assert max(document["rows"]["answer"]) == 2
    assert len(document["confusion"]["labels"]) == 2
    assert document == whole(comparison, table, {})
    monkeypatch.setattr(report, "MAX_DRAWN", 5)
    assert len(whole(comparison, table, {})["maps"][0]["x"]) == 5


@pytest.mark.long
def test_a_page_is_small_whatever_the_table(tmp_path):
    table = hostile_table(2500, 50, 20)
    methods = [Method(f"PCA {i}", PCA(whiten=bool(i % 2)), nested=False) for i in range(16)]
    options = {"n_splits": 2, "n_repeats": 1, "choice_rows": 60, "references": [], "refit": False}
    comparison = compare(table.X, table.y, methods=methods, n_neighbors=50, **options)
    document = whole(comparison, table, {})
    assert len(document["maps"]) == 16
    assert written(document, tmp_path / "page.html").stat().st_size < MAX_BYTES


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("which", ["classes", "numbers"])
def test_what_a_table_contains_stays_text(which, request, tmp_path):
    page = written(request.getfixturevalue(which), tmp_path / "page.html")

    class Elements(HTMLParser):
        def __init__(self):
            super().__init__()
            self.scripts, self.handlers, self.tags = 0, [], set()

        def handle_starttag(self, tag, attributes):
            self.tags.add(tag)
            self.scripts += tag == "script"
            self.handlers += [
                name for name, _ in attributes if name.startswith("on") or name in ("src", "href")
            ]

    elements, text = Elements(), page.read_text(encoding="utf-8")
    elements.feed(text)
    assert elements.scripts == 2  # the data, and the page's own
    assert elements.handlers == []
    assert "img" not in elements.tags
    assert "default-src 'none'" in text
    assert len(text.encode()) < 200_000
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory, classes, numbers):
    """Pages of both comparisons, and of what is made up."""
    folder = tmp_path_factory.mktemp("pages")
    documents = {"real classes": classes, "real numbers": numbers} | {
        name: make() for name, make in SAMPLES.items()
    }
    return {
        name: written(document, folder / f"{name}.html") for name, document in documents.items()
    }


@needs_chromium
@pytest.mark.parametrize("name", ["real classes", "real numbers", *SAMPLES])
@pytest.mark.parametrize(
    ("width", "dark"), [(360, True), (1024, False), (1280, False), (1440, False)]
)
def test_the_ranking_is_not_cut_and_its_legend_comes_first(look, browser, pages, name, width, dark):
    look(pages[name], width, dark=dark)
    table = "document.querySelector('#table').parentElement"
    assert browser.evaluate(f"{table}.scrollWidth <= {table}.clientWidth")
    assert browser.evaluate(
        "document.querySelector('#ranking-key').getBoundingClientRect().bottom <= "
        "document.querySelector('#ranking').getBoundingClientRect().top"
    )


@needs_chromium
def test_no_interval_reaches_beyond_the_best_score(look, browser, tmp_path):
    document = sample()
    for row in document["ranking"]:
        if row["high"] is not None:
            row["high"] += 0.2
    document["columns"]["n_columns"] = 13
    look(written(document, tmp_path / "page.html"), 1440)
    ends = browser.evaluate(
        "[...document.querySelectorAll('#ranking rect.interval')]"
        ".map(box => box.getBoundingClientRect().right)"
    )
    tick = browser.evaluate(
        "[...document.querySelectorAll('#ranking text')].filter(text => text.textContent === '100')"
        ".map(text => text.getBoundingClientRect()).map(box => (box.left + box.right) / 2)[0]"
    )
    assert max(ends) == pytest.approx(tick, abs=1)
    more = browser.evaluate("document.querySelector('#effects-more').textContent")
    assert more == "1 more column moves the rows less."


@needs_chromium
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(
    "levels",
    [
        ["Doppelhaushälfte", "Einfamilienhaus", "Reihenhaus", "Wohnung"],
        ["Yes", "No"],
        [f"0{1000 + 37 * i}" for i in range(20)],
    ],
)
def test_the_values_below_a_panel_do_not_touch(look, browser, tmp_path, levels, width):
    document = sample(levels)
    look(written(document, tmp_path / "page.html"), width)
    boxes = browser.evaluate(
        "[...[...document.querySelectorAll('#panel-2 g.axis')].at(-1).children].map(text => "
        "[text.getAttribute('transform') !== null, text.getBoundingClientRect().left, "
        "text.getBoundingClientRect().right])"
    )
    assert len(boxes) > 1
    assert all(slanted == (len(levels) > 2) for slanted, _, _ in boxes)
    for (slanted, start, end), (_, following, _) in pairwise(boxes):
        assert following - start >= 15 if slanted else following > end


@needs_chromium
@pytest.mark.parametrize("width", [360, 1280])
def test_the_last_number_below_a_panel_does_not_touch_missing(look, browser, tmp_path, width):
    document = sample()
    curve = document["columns"]["curves"][0]
    ends = np.linspace(-24, -23.5, 11)
    edges = [np.linspace(-27, end, len(curve["edges"])).tolist() for end in ends]
    document["columns"]["curves"] = [curve | {"edges": own} for own in edges]
    look(written(document, tmp_path / "page.html"), width)
    gaps = browser.evaluate(
        "[...document.querySelectorAll('#panels svg')].map(panel => ["
        "panel.querySelectorAll('.axis')[1].lastChild, panel.querySelector('.faint')])"
        ".map(texts => texts.map(text => text.getBoundingClientRect()))"
        ".map(([number, missing]) => missing.left - number.right)"
    )
    assert len(gaps) == len(edges)
    assert min(gaps) > 3


@needs_chromium
def test_curves_are_drawn_if_one_is_a_line(look, browser, tmp_path):
    document = sample()
    for curve in document["curves"]:
        for key in ("dimension", "mean", "low", "high"):
            curve[key] = curve[key][:1]
    look(written(document, tmp_path / "page.html"), 1280)
    assert browser.evaluate("document.getElementById('curves')") is None


@needs_chromium
def test_a_regression_has_no_classes(browser, pages):
    browser.open(pages["real numbers"], width=1440)
    visible = (
        "[...document.querySelectorAll('h2')].filter(h => h.offsetParent).map(h => h.textContent)"
    )
    assert browser.evaluate(visible) == ["The table", "Ranking", "Maps of held-out rows", "R² by dimension",
                                         "The methods", "To quote", "To reproduce these figures"]  # fmt: skip
    assert browser.evaluate("document.querySelectorAll('#legend .scale').length") == 1


@needs_chromium
def test_the_keyboard_walks_through_a_map(browser, pages, classes):
    browser.open(pages["real classes"], width=1440)
    browser.evaluate(
        "document.querySelector('#map svg').dispatchEvent(new KeyboardEvent('keydown', "
        "{key: 'ArrowRight'}))"
    )
    lines = browser.evaluate(
        "[...document.querySelectorAll('#tip div')].map(line => line.textContent)"
    )
    name = re.sub("[\x00\x1b\u202e\udc80]", ".", classes["rows"]["name"][0])
    assert re.match("row " + re.escape(name).replace(r"\.", "."), lines[0])
    assert [line.split(":")[0] for line in lines[1:4]] == ["nearest"] * 3


@pytest.mark.long
@needs_chromium
def test_methods_are_chosen_labels_hidden_and_lines_sorted(browser, pages, classes):
    browser.open(pages["classes"], width=1440)
    marks = "document.querySelectorAll('#map .mark').length"
    assert browser.evaluate(marks) == 125
    browser.evaluate("document.querySelector('#legend .chips button').click()")
    assert 0 < browser.evaluate(marks) < 125
    browser.evaluate("method.selectedIndex = 1; method.dispatchEvent(new Event('change'))")
    caption = browser.evaluate("document.getElementById('map-caption').textContent")
    assert caption.startswith(SAMPLES["classes"]()["maps"][1]["name"])
    names = (
        "[...document.querySelectorAll('#table tbody')[1].querySelectorAll('th')].map(cell => "
        "cell.textContent)"
    )
    browser.evaluate("document.querySelector('#table thead button').click()")
    found = browser.evaluate(names)
    assert found == sorted(found, key=str.lower)
