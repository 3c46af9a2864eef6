"""Pages of all commands: they show what the documents hold, nothing else, and are the same for the
same document.
"""

import re

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.app.document import plain, write_page
from nearkin.vectors import comparison
from tests.app.conftest import needs_chromium
from tests.app.sample_document import NASTY, SAMPLES, document_in

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# such as "the first 25 rows", "95% interval", and the probabilities of a label, never 0 or 100%
OF_PROSE = {"0", "1", "2", "25", "95", "99", "100", "37", "1.8"}
COMMANDS = {
    "check": 1,
    "adapt": 4,
    "adapt queries": 2,
}  # their pages, and how many charts these have
EVIL = "\u202eقمح <b>.npz"
LONG = f"{NASTY} 小麦 שיפון قمح {'x' * 60}"
SHOWN = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const inside = walker.currentNode.parentElement;
    if (!inside.closest('script, style, .axis, noscript')) found.push(walker.currentNode.data);
  }
  return found;
})()"""


def numbers_in(document):
    """Yield the numbers of a document, lengths of lists, and the texts of numbers in its texts."""
    if isinstance(document, dict | list):
        if isinstance(document, list):
            yield len(document)
        for part in document.items() if isinstance(document, dict) else document:
            yield from numbers_in(list(part) if isinstance(part, tuple) else part)
    elif isinstance(document, str):
        yield from NUMBER.findall(document)
    elif document is not None:
        yield float(document)


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Return documents of every command with a page; names would like to run a script."""
    folder, rng = tmp_path_factory.mktemp("documents"), np.random.default_rng(0)
    y = np.arange(91) % 3
    X = rng.standard_normal((91, 3)).round(3) + 7 * np.eye(3)[y]
    X[20, 2], y[[4, 17, 33]] = 300, (y[[4, 17, 33]] + 1) % 3
    frame = pd.DataFrame(X, columns=["a", LONG, "c"])
    frame[f"plot {LONG}"] = [f"<i>{i} {LONG}" for i in range(91)]
    frame["kind"] = np.array([f"</script>{LONG}", "שיפון", "wheat"])[y]
    twin = frame.iloc[[8]].assign(kind="wheat").assign(**{f"plot {LONG}": "91"})
    labels = np.arange(160) % 8
    vectors = rng.normal(size=(8, 8))[labels] + rng.normal(size=(160, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(comparison, "SETTINGS", [comparison.SETTINGS[0] | {"max_iter": 4}])
        patch.setattr(comparison, "CHOICE_QUERIES", 1)
        table = pd.concat([frame, twin])
        table.to_csv("rows.csv", index=False)
        np.savez(EVIL, X=vectors.astype(np.float32), y=labels)
        words = [EVIL, "--label", "y", "--sizes", "4"]
        assert main(["check", "rows.csv", "--target", "kind", "--report", "c.html", "-q"]) == 0
        assert main(["adapt", *words, "--report", "a.html", "-q"]) == 0
        np.savez("queries.npz", X=vectors[:40].astype(np.float32))
        judged = np.argwhere(labels[:40, None] == labels)
        np.savez("judged.npz", X=judged[judged[:, 1] >= 40].astype(float))
        words = [EVIL, "--queries", "queries.npz", "--relevance", "judged.npz", "--side", "query"]
        assert main(["adapt", *words, "--report", "q.html", "-q"]) == 0
        names = {"check": "c.html", "adapt": "a.html", "adapt queries": "q.html"}
        found = {name: document_in(page) for name, page in names.items()}
    return found | {name: make() for name, make in SAMPLES.items()}


def test_a_page_follows_from_its_document(tmp_path):
    document = SAMPLES["evil"]()
    pages = []
    for order in (1, -1):
        write_page(tmp_path / "page.html", dict(list(document.items())[::order]))
        pages.append((tmp_path / "page.html").read_bytes())
    write_page(tmp_path / "page.html", document)
    assert (tmp_path / "page.html").read_bytes() == pages[0]
    text = pages[0].decode()
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in text
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069\x00\x1b]", text)
    assert document_in(tmp_path / "page.html") == plain(document)


@needs_chromium
@pytest.mark.parametrize("name", [*COMMANDS, *SAMPLES])
def test_figures_of_the_page_are_those_of_the_document(look, browser, documents, name, tmp_path):
    document = documents[name]
    write_page(tmp_path / "page.html", document)
    look(tmp_path / "page.html", 1280)
    known = list(numbers_in(document))
    texts = {text for text in known if isinstance(text, str)} | OF_PROSE
    values = np.array([value for value in known if not isinstance(value, str)], dtype=float)
    values = np.abs(np.concatenate([values, 100 * values, 1000 * values]))  # shares, milliseconds
    for text in browser.evaluate(SHOWN):
        escaped = re.sub(r"\\u[0-9a-f]{4}", "", text)
        for number in set(NUMBER.findall(escaped)) - texts:
            value, decimals = float(number.replace(",", "")), len(number.partition(".")[2])
            near = 0.5001 * 10.0**-decimals if decimals else max(0.5001, 5e-3 * value)
            assert np.abs(values - value).min() <= near, (number, text)


@needs_chromium
def test_line_breaks_and_words_of_names(look, browser, documents, tmp_path):
    """A line break in a name is a blank, and no word is broken where there is room."""
    document = documents["check"] | {"expected": 0.2, "notes": ["ignored: a\nb, worse by -2.4"]}
    near = [{"row": 1234, "label": "Resignation"}] * 5
    names = {"label": "Resignation", "predicted": "by\r\nLetter", "neighbors": near}
    document["rows"] = [row | names | {"name": str(row["row"])} for row in document["rows"]]
    write_page(tmp_path / "page.html", document)
    look(tmp_path / "page.html", 1280)
    assert "\ufffd" not in browser.evaluate("document.querySelector('.rows').textContent")
    assert "ignored: a b, worse by \u22122.4" in browser.evaluate("document.body.textContent")
    heading, *_ = browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    assert heading == "The least certain labels"
    cells = "[...document.querySelector('.rows tbody tr').cells].slice(1, 3)"
    texts = browser.evaluate(f"{cells}.map(cell => cell.textContent)")
    assert texts == ["Resignation", "by Letter"]
    lines = "range.selectNodeContents(cell), range.getClientRects().length"
    of_cells = browser.evaluate(f"(range => {cells}.map(cell => ({lines})))(new Range())")
    assert of_cells[0] == 1


@needs_chromium
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_rows_and_vectors_in_a_browser(look, browser, documents, name, width, dark, tmp_path):
    write_page(tmp_path / "page.html", documents[name])
    look(tmp_path / "page.html", width, dark=dark)
    drawn = "document.querySelectorAll('.chart > svg').length"
    assert browser.evaluate(drawn) == COMMANDS[name]
    wide = "[...document.querySelectorAll('.wide')].every(host => host.scrollWidth <= host.clientWidth)"
    assert browser.evaluate(wide)
    assert "\u202e" not in browser.evaluate("document.body.innerText")
    if name == "check":
        assert browser.evaluate("document.querySelectorAll('table.rows')[0].rows.length") == 26
    else:  # a ring in every chart of quality
        rings = browser.evaluate("document.querySelectorAll('circle.ring').length")
        assert rings == len(documents[name]["queries"])
