"""The built documentation: complete, readable without a network, on a phone, in the dark.

`sphinx-build -W docs docs/_build/html` builds it; without the pages these tests are skipped.
"""

import inspect
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest

import nearkin
from benchmarks.tools.browser import Browser, find_chromium

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(SITE.rglob("*.html"))
MODULES = [
    "comparison",
    "plotting",
    "tables",
    "vectors",
    "dask",
    "neighbors",
    "graphs",
    "scatter",
    "linalg",
]
MODULES += ["spectral", "descent", "testing", "datasets"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the documentation is not built"),
]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The ids of a page, its links, what it loads, and its images without a text."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.silent = set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]) and found.get("rel") != "canonical":
            self.loaded.append(found[LOADED[tag]])
        # above their titles
        if tag == "img" and not found.get("alt") and not found["src"].endswith("_thumb.png"):
            self.silent.append(found["src"])


@pytest.fixture(scope="module")
def read():
    return {path: Page(path) for path in PAGES}


def test_nothing_is_loaded_from_the_network(read):
    for path, page in read.items():
        assert not [address for address in page.loaded if "//" in address], path
    for path in [*SITE.rglob("*.css"), *SITE.rglob("*.js")]:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not re.findall(
            r"""(?:url\(|@import|import\(|\.src ?= ?)\s*["']?(?:https?:)?//[^"')]*""", text
        ), path


def test_every_image_says_what_it_shows(read):
    assert not {path.name: page.silent for path, page in read.items() if page.silent}


def test_links_lead_somewhere(read):
    lost = []
    for path, page in read.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            place = (path.parent / target.partition("?")[0]).resolve() if target else path
            known = (
                place in read and (not anchor or anchor in read[place].ids)
                if place.suffix == ".html"
                else place.exists()
            )
            if not known:
                lost.append((path.relative_to(SITE).as_posix(), link))
    assert not lost


def public_names() -> Iterator[str]:
    """Yield the names of the package, and the classes and functions that its modules define or
    export.
    """
    yield from (f"nearkin.{name}" for name in nearkin.__all__)
    for name in MODULES:
        module = import_module(f"nearkin.{name}")
        exported = getattr(module, "__all__", vars(module))
        for public, value in vars(module).items():
            home = getattr(value, "__module__", None) or ""
            is_public = public in exported and not public.startswith("_")
            if not (is_public and home.startswith(module.__name__)):
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                yield public


def test_every_public_name_has_its_place():
    pages = "".join(path.read_text(encoding="utf-8") for path in (SITE / "api").rglob("*.html"))
    documented = {name.rpartition(".")[2] for name in re.findall(r'id="(nearkin\.[\w.]+)"', pages)}
    assert not sorted({name.rpartition(".")[2] for name in public_names()} - documented)


chromium = pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")
SHOWN = [path for path in PAGES if "_static" not in path.parts]
SHARES = 8  # of the pages, which workers look at side by side
WRITTEN = [path for path in SHOWN if not {"generated", "genindex.html"} & set(path.parts)]

# What is too wide: the window, or a box around the heading of the page, which scrolls with all that
# the page holds. Boxes of a table, of code or of a formula may scroll.
TOO_WIDE = """
(() => {
  const boxes = [];
  for (let box = document.querySelector('h1'); box; box = box.parentElement) boxes.push(box);
  return boxes.filter(box => box.clientWidth && box.scrollWidth > box.clientWidth + 1).map(box => {
    const end = box.getBoundingClientRect().right + 1;
    const wide = [...box.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > end);
    const causes = wide.slice(-3).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 40));
    return [box.tagName + '.' + box.className, box.scrollWidth, box.clientWidth, ...causes].join('; ');
  });
})()
"""

# What is wrong with a page as it is shown: text that is hard to read (WCAG AA), no way past the
# navigation by keyboard, or an order of its own for the Tab key.
FAULTS = """
(() => {
  const faults = [];
  if (!document.querySelector('#pst-skip-link a[href="#main-content"]') || document.querySelector('[tabindex="1"]'))
    faults.push('keyboard');
  const channels = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => a * top[i] + (1 - a) * below[i]); };
  const background = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(channels(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => layer.length ? over(layer, below) : below, [255, 255, 255]);
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    const shown = element.checkVisibility({opacityProperty: true, visibilityProperty: true});
    if (!shown || !walker.currentNode.data.trim()) continue;
    if (element.closest('script, style, [disabled], .visually-hidden, .skip-link')) continue;
    const below = background(element), color = over(channels(style.color), below);
    const [light, dark] = [luminance(color), luminance(below)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const fault = element.tagName + '.' + element.className + ' ' + style.color + ' on ' + below.map(Math.round);
    if (ratio < (large ? 3 : 4.5) && !seen.has(fault)) {
      seen.add(fault);
      faults.push('contrast ' + ratio.toFixed(2) + ': ' + fault + ': ' + walker.currentNode.data.trim().slice(0, 30));
    }
  }
  return faults.slice(0, 8);
})()
"""

# Words of three letters or more in the cells of a table that stand on two lines.
BROKEN_WORDS = """
(() => {
  const broken = [], range = document.createRange();
  for (const cell of document.querySelectorAll('.bd-article table:not(.indextable) :is(td, th)')) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode())
      for (const word of walker.currentNode.data.matchAll(/[\\p{L}\\d.,]{3,}/gu)) {
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) broken.push(word[0]);
      }
  }
  return broken.slice(0, 8);
})()
"""


def test_many_pages_are_shown():
    assert len(SHOWN) > 100


@chromium
@pytest.mark.long_after(1)
@pytest.mark.parametrize("share", range(SHARES))
def test_pages_fit_a_screen_and_can_be_read(share):
    too_wide, broken, faults = {}, {}, {}
    with Browser() as browser:
        for path in SHOWN[share::SHARES]:
            name = path.relative_to(SITE).as_posix()
            browser.open(path, width=1280)
            browser.evaluate(
                "document.body.insertAdjacentHTML('beforeend', '<style>* "
                "{ transition: none !important }</style>')"
            )
            for width in (1280, 390):
                browser.resize(width)
                if found := browser.evaluate(TOO_WIDE):
                    too_wide[name, width] = found
                if found := browser.evaluate(BROKEN_WORDS):
                    broken[name, width] = found
                for theme in ("light", "dark") if path in WRITTEN else ():
                    browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
                    if found := browser.evaluate(FAULTS):
                        faults[name, width, theme] = found
            assert not [
                address for address in browser.requests if not address.startswith("file:")
            ], path
    assert not too_wide
    assert not broken
    assert not faults


def luminance(color):
    """Return the relative luminance of a colour, given by its three channels from 0 to 255 (WCAG
    2).
    """
    linear = [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in (c / 255 for c in color)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """Return the contrast of two colours, from 1 to 21 (WCAG 2)."""
    dark, light = sorted([luminance(first), luminance(second)])
    return (light + 0.05) / (dark + 0.05)


def channels(css):
    """Return the channels of a colour as the browser says it, e.g. rgb(0, 114, 178)."""
    return [float(v) for v in re.findall(r"[\d.]+", css)[:3]]


CARDS = """
[...document.querySelectorAll('.sd-card')].map(card => {
  const behind = element => {
    const color = getComputedStyle(element).backgroundColor;
    return color === 'rgba(0, 0, 0, 0)' ? behind(element.parentElement) : color;
  };
  const page = behind(card.parentElement), face = behind(card.querySelector('p'));
  const link = card.querySelector('a.sd-stretched-link');
  const before = getComputedStyle(card).outlineStyle;
  link.focus({focusVisible: true});
  const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(card);
  const images = [...card.querySelectorAll('img')].filter(image => image.checkVisibility());
  const shown = images.map(image => ({file: image.src, width: image.width, natural: image.naturalWidth,
    filter: getComputedStyle(image).filter, background: getComputedStyle(image).backgroundColor}));
  return {page, face, before, outlineStyle, outlineWidth: parseFloat(outlineWidth), outlineColor, shown};
})
"""


@chromium
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_cards_show_their_focus_and_pictures_that_can_be_read(theme, width):
    with Browser() as browser:
        browser.open(SITE / "index.html", width=width)
        browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        cards = browser.evaluate(CARDS)
    assert len(cards) == 9
    for card in cards:
        assert card["before"] == "none"
        assert card["outlineStyle"] == "solid"
        assert card["outlineWidth"] >= 2
        assert contrast(channels(card["outlineColor"]), channels(card["page"])) >= 3
        (image,) = card["shown"]
        assert image["width"] >= 0.95 * image["natural"]  # its text is as large as it was drawn
        assert image["filter"] == "none"
        assert image["background"] == "rgba(0, 0, 0, 0)"
        drawing = Path(unquote(image["file"].removeprefix("file://"))).read_text(encoding="utf-8")
        inks = re.findall(r"(?:fill|stroke): #([0-9a-f]{6})", drawing)
        faint = [ink for ink in inks if contrast(bytes.fromhex(ink), channels(card["face"])) < 3]
        assert len(inks) >= 2
        assert not faint, image["file"]


@chromium
def test_formulas_have_a_font_of_their_own_which_is_not_of_the_network():
    with Browser() as browser:
        browser.open(SITE / "theory" / "nca.html", width=1280)
        browser.wait_for("document.fonts.status === 'loaded'")
        fonts = browser.evaluate("[...document.fonts].map(font => font.family + ' ' + font.status)")
        family = browser.evaluate("getComputedStyle(document.querySelector('math')).fontFamily")
        assert not [address for address in browser.requests if not address.startswith("file:")]
    assert '"STIX Two Math" loaded' in fonts or "STIX Two Math loaded" in fonts
    assert family.strip('"').startswith("STIX Two Math")
    assert "SIL OPEN FONT LICENSE" in (SITE / "_static" / "fonts" / "OFL.txt").read_text(
        encoding="utf-8"
    )


QUESTIONS = {  # of newcomers, and the page that answers
    "how do I save a model": "guide/serving.html",
    "missing values": "guide/scaling_and_encoding.html#missing-values",
    "which method should I use": "guide/which_method.html",
    "wrong labels": "gallery/tables/plot_wrong_labels.html",
    "how sure is a prediction": "gallery/tables/plot_sets_and_intervals.html",
    "shorten embeddings": "start/embeddings.html",
    "negative eigenvalues": "gallery/methods/plot_dne_spectrum.html",
    "NCA": "api/generated/nearkin.NCA.html",
    "GPU": "start/questions.html",
    "hyperparameters": "start/questions.html",
    "how many neighbours": "start/questions.html#how-many-neighbours",
    "duplicates": "start/questions.html",
    "regression": "start/questions.html#regression",
    "cosine": "start/questions.html",
    "t-SNE": "theory/t_nca.html",
    "licence": "start/questions.html",
    "plot": "start/questions.html",
    "install": "start/two_commands.html#install",
}


@chromium
def test_the_search_answers_without_a_server():
    with Browser() as browser:
        for question, page in QUESTIONS.items():
            query = f"?q={question.replace(' ', '+')}"
            browser.open(SITE / "search.html", query=query, width=1280)
            browser.wait_for("document.querySelector('#search-results li .context')")
            first = browser.evaluate(
                "document.querySelector('#search-results li a').getAttribute('href')"
            )
            assert first == page, question
