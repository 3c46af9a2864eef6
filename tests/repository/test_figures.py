"""Figures in README, docs and docstrings are those of the pages that measured them.

A passage (a paragraph, a list item, a row of a table, a parameter) with a figure names the sections
in which the figure stands, by a comment that readers do not see. In Markdown the comment stands
behind the last word (in a row: in the last cell), or below a paragraph; below a list item it would
set the items apart:

    NCA is 4.9 points more accurate. <!-- measured/comparison.md#the-ranking -->

In a docstring it is a paragraph of its own, indented as the passage before it:

    .. measured/comparison.md#the-ranking

Several sections are separated by spaces. A number that looks like a figure but is a setting, a
limit or plain arithmetic has the comment `not measured`; better, it is written in another way.

A section of docs/measured counts as a whole, up to the next heading of any level. Of other pages
the blocks of code and the tables count, which hold what a command has printed. A figure is found
wherever its number stands there, signs aside, or one that is rounded to it. Beside a comment all
numbers with a decimal point are compared, with a unit or without.
"""

import ast
import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.tools.document import anchor

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "troubleshooting.md",
    *sorted(DOCS.glob("start/*.md")),
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(DOCS.glob("theory/*.md")),
]
MODULES = sorted(ROOT.glob("src/nearkin/**/*.py"))

NUMBER = r"(?<![\w.,^])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)"
DECIMAL = r"(?<![\w.,^])(?!0?\.05\b)(?:\d+(?:,\d{3})*)?\.\d+"  # but for the level of tests
FIGURE = re.compile(
    rf"""
    (?: {NUMBER} \s+ (?:to|and|or|against) \s+ )? {NUMBER}          # 4.9, or a range: 1 to 5
    (?:
        \s?%
        | [\s-]+ (?:(?:processor|worker)\s+)? (?:points?|seconds?|minutes?|hours?)\b
        | [ ]? (?:ms|s|[KMGT]i?B)\b (?!\^)
        | \s+ times (?:\s+ (?:as|faster|slower|the\s+time)\b | [ ]\|)  # 12 times as fast
    )
    | \bp\s?[<=>≤]\s?0?\.\d+                                        # p < .001
    """,
    re.VERBOSE,
)
# Percentages that people choose: levels, coverages, shares of rows.
CHOSEN = {"0", "1", "2.5", "5", "10", "20", "50", "75", "80", "90", "95", "99", "100"}

SECTION = r"[\w/]+\.md#[\w-]+"
MARKER = re.compile(rf" *(?:<!--|^ *\.\.) (not measured|{SECTION}(?: {SECTION})*)(?: -->|$)", re.M)
BEGINS_PASSAGE = re.compile(r" *(?:[-*+#|:] ?|\d+\. |\w+(?:, \*?\w+)* : )")


class Passage(NamedTuple):
    place: str
    text: str
    marker: str  # empty if there is none

    @property
    def figures(self):
        """The numbers to compare: of figures, and beside a marker all with a decimal point."""
        found = [match[0] for match in FIGURE.finditer(self.text)]
        if self.marker:
            found += re.findall(DECIMAL, self.text)
        figures = {}  # in order, each once
        for figure in found:
            for number in re.findall(NUMBER, figure):
                if not ("%" in figure and number in CHOSEN):
                    figures[number] = None
        return list(figures)


def without_code(text):
    """Return the text with its blocks of code, doctests, inline code and quoted words left empty."""
    lines, fence = [], None
    for line in text.splitlines():
        mark = re.match(r" *(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None and line.strip() == fence:
            fence, line = None, ""
        lines.append("" if fence or line.lstrip().startswith(">>>") else line)
    code = r"`[^`]+`|\"[^\"\n]+\""
    return re.sub(code, lambda match: re.sub(r"[^\n]", " ", match[0]), "\n".join(lines))


def passages(name, text, first_line=1):
    """Yield the paragraphs, list items, rows of tables and parameters."""
    found, inside = [], False
    for number, line in enumerate(without_code(text).splitlines(), first_line):
        if found and MARKER.fullmatch(line):
            found[-1][1].append(line)
            inside = False
        elif not line.strip():
            inside = False
        elif not inside or BEGINS_PASSAGE.match(line):
            found.append((number, [line]))
            inside = True
        else:
            found[-1][1].append(line)
    for number, lines in found:
        passage = "\n".join(lines)
        markers = MARKER.findall(passage)
        yield Passage(f"{name}:{number}", MARKER.sub("", passage), " ".join(markers))


def page_passages(path):
    return passages(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def docstring_passages(path):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, documented) and (text := ast.get_docstring(node, clean=False)):
            yield from passages(path.relative_to(ROOT).as_posix(), text, node.body[0].lineno)


@cache
def sections(page):
    """Return the numbers of each section of a page by the anchor of its heading."""
    texts, text, inside = {}, [], False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        inside ^= line.lstrip().startswith("```")
        if line.startswith("#") and not inside:
            text = texts.setdefault(anchor(line.lstrip("# ")), [line])
        elif page.startswith("measured/") or inside or is_printed_row(line):
            text.append(line)
    return {
        name: {value(number) for number in re.findall(NUMBER, "\n".join(lines))}
        for name, lines in texts.items()
    }


def is_printed_row(line):
    """Whether a line is the row of a table that is no repetition itself."""
    return line.startswith("|") and not MARKER.search(line)


def value(number):
    return Decimal(number.replace(",", ""))


def stands_in(figure, measured):
    """Whether one of the measured numbers is the figure, or is rounded to it."""
    last_digit = value(figure).as_tuple().exponent
    half = Decimal(5).scaleb(last_digit - 1)
    return any(abs(number - value(figure)) <= half for number in measured)


def faults(passage):
    """Yield what is wrong with the figures of a passage, and the remedy."""
    if not passage.marker:
        for figure in passage.figures:
            yield (
                f"{passage.place}: no marker names the section of docs/measured that {figure} "
                "comes from; see the head of tests/repository/test_figures.py"
            )
        return
    if not passage.figures:
        yield f"{passage.place}: a marker, but no figure; take it away: {passage.marker}"
    if "not measured" in passage.marker:
        return
    measured = set()
    for source in passage.marker.split():
        page, heading = source.split("#")
        if not (DOCS / page).exists() or heading not in sections(page):
            yield f"{passage.place}: there is no docs/{source}; name a page and a heading's anchor"
            return
        measured |= sections(page)[heading]
    for figure in passage.figures:
        if not stands_in(figure, measured):
            yield (
                f"{passage.place}: {figure} does not stand in {passage.marker}; correct it by the "
                "page, name the section where it stands, or say it in words"
            )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_figures_of_a_page(path):
    found = [fault for passage in page_passages(path) for fault in faults(passage)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_figures_of_docstrings():
    found = [
        fault
        for path in MODULES
        for passage in docstring_passages(path)
        for fault in faults(passage)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("it gains 1 to 5 points", ["1", "5"]),
        ("89.4 % against 85.8 % raw, p < .001", ["89.4", "85.8", ".001"]),
        ("fitted in 1,387 s, in 0.4 GiB", ["1,387", "0.4"]),
        ("91 processor seconds, 12 times as fast", ["91", "12"]),
        ("a 95 % interval, a level of 5%, 20 of 34 tables, three points", []),
        ('`--precision 0.95`, a share of .9, p = 100, as "12.3%"', []),
    ],
)
def test_what_a_figure_is(text, figures):
    (passage,) = passages("page", text)
    assert passage.figures == figures


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("right in 85.1 % <!-- measured/comparison.md#the-ranking -->", None),
        ("right in 85.1 %\n<!-- measured/comparison.md#the-ranking -->", None),
        ("right in 85.1 %\n\n.. measured/comparison.md#the-ranking", None),
        ("in a minute or 59.5 s <!-- not measured -->", None),
        ("right in 85.1 %", "no marker"),
        ("right in 12.3 % <!-- measured/comparison.md#the-ranking -->", "12.3 does not stand in"),
        ("right in 85.1 % <!-- measured/comparison.md#no-heading -->", "there is no docs/"),
        ("right in 85.1 % <!-- measured/no_page.md#the-ranking -->", "there is no docs/"),
        ("often right <!-- measured/comparison.md#the-ranking -->", "a marker, but no figure"),
    ],
)
def test_faults(text, fault, monkeypatch):
    # the figures of the page itself change when it is measured again
    monkeypatch.setitem(globals(), "sections", lambda page: {"the-ranking": {value("85.1")}})
    (passage,) = passages("page", text)
    found = list(faults(passage))
    assert [fault in line for line in found] == [True] if fault else not found


@pytest.mark.parametrize(
    ("figure", "right"),
    [("85.1", True), ("85", True), ("85.12", False), ("84", False), ("0.2", False)],
)
def test_rounding(figure, right):
    assert stands_in(figure, {Decimal("85.10"), Decimal("0.31")}) == right
