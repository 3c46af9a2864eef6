"""The page: what it says, that nothing from a table becomes code, and how it looks in a real browser."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.decomposition import PCA

from nearkin.app import report
from nearkin.app.encoder import ColumnEncoder
from nearkin.app.report import write_report
from nearkin.app.tables import Table
from nearkin.evaluation import Method, compare, default_methods, score_by_dimension
from tests.browser import Browser, find_chromium

EVIL = '"><script>pwned=1</script><img src=x onerror=pwned=1><b>&lt;%{x}</b>'
METHODS = [method for method in default_methods() if method.name in ("PCA", "DNE", "NMMP ratio trace")]
MAX_BYTES = 6_500_000


def hostile_table(n=90):
    rng = np.random.default_rng(0)
    y = np.array([f"{EVIL} {i % 3}" for i in range(n)])
    X = rng.standard_normal((n, 5)) + np.arange(n)[:, None] % 3
    names = [f"{EVIL} {i}" for i in range(5)]
    return Table(
        X, y, None, EVIL, [f"ignored: {EVIL}"], EVIL, ColumnEncoder(names), [f"{EVIL} row {i}" for i in range(n)]
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page about a table that would like to run a script."""
    path, table = tmp_path_factory.mktemp("report") / "page.html", hostile_table()
    methods = [*METHODS, Method(EVIL, METHODS[0].estimator)]
    comparison = compare(table.X, table.y, methods=methods, n_splits=3, n_repeats=2)
    curves = score_by_dimension(comparison, table.X, table.y)
    write_report(path, comparison, curves, table, ["nearkin", "compare", f"{EVIL}.csv"])
    return path


@pytest.fixture(scope="module")
def page_of_numbers(tmp_path_factory):
    """The page of a regression on such a table; one of its maps has a single dimension."""
    path, table = tmp_path_factory.mktemp("numbers") / "page.html", hostile_table()
    table = replace(table, y=table.X.sum(axis=1), task="regression")
    single = Method(EVIL, PCA(), lambda p: [{"n_components": 1}], nested=False, max_components=lambda p, n_classes: 1)
    methods = [*default_methods("regression"), single]
    comparison = compare(table.X, table.y, task="regression", methods=methods, n_splits=3, n_repeats=2)
    curves = score_by_dimension(comparison, table.X, table.y)
    write_report(path, comparison, curves, table, ["nearkin", "compare", f"{EVIL}.csv"])
    return path


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found[1])


def test_one_file_of_moderate_size(page):
    text = page.read_text()
    assert len(text.encode()) <= MAX_BYTES
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    assert "default-src 'none'" in text
    for said in ("raw k-NN", "standardized on the training rows", "scikit-learn", "nearkin compare", "of 3 a repeat"):
        assert said in text


@pytest.mark.parametrize("which", ["page", "page_of_numbers"])
def test_what_a_table_contains_stays_text(which, request):
    page = request.getfixturevalue(which)

    class Elements(HTMLParser):
        def __init__(self):
            super().__init__()
            self.scripts, self.handlers, self.tags = 0, [], set()

        def handle_starttag(self, tag, attributes):
            self.tags.add(tag)
            self.scripts += tag == "script"
            self.handlers += [name for name, _ in attributes if name.startswith("on") or name == "src"]

    elements = Elements()
    elements.feed(page.read_text())
    assert elements.scripts == 3  # plotly, the data, the page's own
    assert elements.handlers == []
    assert "img" not in elements.tags


def test_the_pictures_show_the_comparison(page):
    data, table = data_of(page), hostile_table()
    assert len(data["labels"]) == 3
    assert {line["name"] for line in data["ranking"]} == {"raw k-NN", "PCA", "DNE", "NMMP ratio trace", EVIL}
    assert all(len(line["folds"]) == 6 for line in data["ranking"])
    assert [curve["dimension"] for curve in data["curves"] if curve["name"] == "DNE"] == [[1, 2, 3, 5]]
    assert [curve["dimension"] for curve in data["curves"] if curve["name"] == "raw k-NN"] == [[5]]
    for shown in data["maps"]:
        assert len(shown["x"]) == 30
        assert shown["said"].endswith("of 30 held-out rows")
        assert np.shape(shown["near"]) == np.shape(shown["near_row"]) == (30, 3)
        truth = np.unique(table.y, return_inverse=True)[1][:30]
        assert sorted(shown["answer"]) == sorted(truth.tolist())
        votes = [max(sorted(set(near)), key=near.count) for near in shown["near"]]
        assert 100 * np.mean(np.array(votes) == shown["answer"]) == pytest.approx(shown["score"], abs=0.01)
    for when in ("before", "after"):
        np.testing.assert_allclose(np.sum(data["confusion"][when], axis=1), 100, atol=0.05)


def test_many_rows_are_sampled_and_many_classes_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MAX_POINTS", 10)
    monkeypatch.setattr(report, "MAX_CONFUSION", 2)
    table = hostile_table()
    comparison = compare(table.X, table.y, methods=METHODS[:1], n_splits=3, n_repeats=1)
    for name in ("a.html", "b.html"):
        write_report(tmp_path / name, comparison, score_by_dimension(comparison, table.X, table.y), table, ["x"])
    assert "Shown are 10 of 30 held-out rows, drawn with seed 0." in (tmp_path / "a.html").read_text()
    data = data_of(tmp_path / "a.html")
    assert len(data["maps"][0]["x"]) == 10
    assert len(data["confusion"]["labels"]) == 2
    assert data["confusion"]["classes"] == 3
    assert data == data_of(tmp_path / "b.html")


def test_nothing_but_the_raw_features(tmp_path):
    table = hostile_table()
    comparison = compare(table.X, table.y, methods=[], n_splits=3, n_repeats=1)
    write_report(tmp_path / "a.html", comparison, score_by_dimension(comparison, table.X, table.y), table, ["x"])
    assert data_of(tmp_path / "a.html")["maps"] == []


def needs_chromium(test):
    """Mark a test in a browser: slow, and skipped where there is none."""
    return pytest.mark.slow(pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")(test))


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_in_a_browser(browser, page, width, dark):
    browser.open(page, width=width, dark=dark)
    browser.wait_for("document.documentElement.dataset.drawn === 'yes'")
    plots = "['ranking', 'map', 'curves', 'before', 'after']"
    assert browser.evaluate(f"{plots}.every(id => document.querySelector(`#${{id}} .main-svg`))")
    assert browser.evaluate("typeof pwned") == "undefined"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width  # nothing to scroll sideways
    colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")
    assert browser.console == []
    assert browser.requests == []


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_numbers_in_a_browser(browser, page_of_numbers, width, dark):
    browser.open(page_of_numbers, width=width, dark=dark)
    browser.wait_for("document.documentElement.dataset.drawn === 'yes'")
    assert browser.evaluate("['ranking', 'map', 'curves'].every(id => document.querySelector(`#${id} .main-svg`))")
    drawn = "document.querySelectorAll('#before .main-svg, #after .main-svg').length"
    assert browser.evaluate(drawn) == 0
    visible = "[...document.querySelectorAll('h2')].filter(h => h.offsetParent).map(h => h.textContent)"
    assert browser.evaluate(visible) == ["Ranking", "Maps of held-out rows", "R² against dimension", "The methods",
                                         "To get these figures again"]  # fmt: skip
    assert browser.evaluate("document.querySelector('#map .colorbar') !== null")
    assert browser.evaluate("document.querySelector('#map .legend')") is None
    assert browser.evaluate("document.querySelector('#map').data[0].marker.colorscale") == "Cividis"
    assert browser.evaluate("typeof pwned") == "undefined"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.console == []
    assert browser.requests == []


@needs_chromium
def test_numbers_are_shown_beside_their_neighbours(browser, page_of_numbers):
    browser.open(page_of_numbers, width=1440)
    maps = data_of(page_of_numbers)["maps"]
    for number, shown in enumerate(maps):
        browser.evaluate(f"choice.selectedIndex = {number}; choice.dispatchEvent(new Event('change'))")
        caption = browser.evaluate("document.getElementById('map-caption').textContent")
        dimensions = "one dimension" if shown["name"] == EVIL else "two dimensions"
        assert caption == f"{shown['name']} in {dimensions}: 3-NN {shown['said']}."
        heights = shown["answer"] if shown["y"] is None else shown["y"]
        np.testing.assert_allclose(browser.evaluate("[...document.querySelector('#map').data[0].y]"), heights)
        for value in [shown["answer"][0], *shown["near"][0]]:  # the text of the map before may still be there
            hover = "Plotly.Fx.hover('map', [{curveNumber: 0, pointNumber: 0}])"
            shown_text = "document.querySelector('#map .hovertext')?.textContent"
            browser.wait_for(f"({hover}, {shown_text}?.includes({json.dumps(f': {value:.6g}')}))")
    assert EVIL[:20] in browser.evaluate("document.querySelector('#map .infolayer').textContent")
    assert browser.console == []


@needs_chromium
def test_names_are_shown_as_they_are(browser, page):
    browser.open(page, width=1440)
    legend = browser.evaluate("document.querySelector('#map .legendtext').textContent")
    assert legend == EVIL[: report.MAX_LABEL - 1] + "…"
    browser.evaluate("Plotly.Fx.hover('map', [{curveNumber: 0, pointNumber: 0}])")
    browser.wait_for("document.querySelector('#map .hovertext')")
    assert EVIL[:20] in browser.evaluate("document.querySelector('#map .hovertext').textContent")
    assert browser.console == []


@needs_chromium
def test_methods_are_chosen_and_labels_filtered(browser, page):
    browser.open(page, width=1440)
    caption = "document.getElementById('map-caption').textContent"
    assert browser.evaluate(caption).startswith(data_of(page)["maps"][0]["name"])
    browser.evaluate("choice.selectedIndex = 1; choice.dispatchEvent(new Event('change'))")
    assert browser.evaluate(caption).startswith(data_of(page)["maps"][1]["name"])
    assert browser.evaluate("document.querySelectorAll('#map .scatterlayer .trace').length") == 3
    toggle = "document.querySelector('#map .legendtoggle')"
    for event in ("mousedown", "mouseup"):
        browser.evaluate(f"{toggle}.dispatchEvent(new MouseEvent('{event}', {{bubbles: true}}))")
    browser.wait_for("document.querySelectorAll('#map .scatterlayer .trace').length === 2")
