"""Pages of Markdown: their sections and tables, and what a command renews of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

TABLE = re.compile(r"^\|(.*)\| *\n\|[\s:|-]+\|\n(?:\|.*\n)*", re.MULTILINE)


def renew(document: Path, name: str, text: str) -> None:
    """Put a part into the document, between its marks."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    renewed, n = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}",
        lambda _: f"{begin}\n{text}\n{end}",
        document.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    if n != 1:
        raise ValueError(f"{document} has the mark {begin} {n} times, not once")
    document.write_text(renewed, encoding="utf-8")


def anchor(heading: str) -> str:
    """Return the anchor that GitHub and the built page give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(text: str) -> dict[str, str]:
    """Return the sections of a page by their anchors, what stands above the first one by "".

    A section ends at the next heading, however deep. Together they are the page.
    """
    found, seen, in_code, name = {"": ""}, Counter[str](), False, ""
    for line in text.splitlines(keepends=True):
        in_code ^= line.startswith("```")
        if not in_code and (heading := re.match(r"#+ (.*)", line)):
            first = anchor(heading[1])
            name = f"{first}-{seen[first]}" if first in seen else first
            seen[first] += 1
            found[name] = ""
        found[name] += line
    return found


def header(table: re.Match[str]) -> str:
    """Return the header of a table, however wide its cells are written."""
    return " | ".join(cell.strip() for cell in table[1].split("|"))


def merged(there: str, printed: str) -> str:
    """Return the printed table; if its first cells are some of those there, the other with its rows."""
    old, new = rows_by_first_cell(there), rows_by_first_cell(printed)
    if not set(new) < set(old):
        return printed
    return "".join([*there.splitlines(keepends=True)[:2], *(old | new).values()])


def rows_by_first_cell(table: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in table.splitlines(keepends=True)[2:]:
        name = line.split("|")[1].strip()
        found[name] = found.get(name, "") + line
    return found


def with_tables(page: str, anchors: Iterable[str], printed: str) -> tuple[str, list[str]]:
    """Return the page with the printed tables in these sections, and the headers of those that
    have no place there.

    A table replaces the one with the same header, or the rows that it has of it; where several have
    this header, the first replaces the first. All else stays as it is.
    """
    new, texts = defaultdict[str, list[str]](list), sections(page)
    for table in TABLE.finditer(f"{printed}\n"):
        new[header(table)].append(table[0])
    places = Counter(header(table) for name in anchors for table in TABLE.finditer(texts[name]))
    if not set(new) & set(places):
        raise ValueError(f"no table there begins as one of those printed: {', '.join(new)}")
    for head, found in new.items():
        if places[head] not in (0, len(found)):
            counts = f"{len(found)} tables are printed, but {places[head]} there"
            raise ValueError(f"{counts} begin with {head}")
    for name in anchors:
        texts[name] = TABLE.sub(
            lambda table: (
                merged(table[0], new[header(table)].pop(0)) if header(table) in new else table[0]
            ),
            texts[name],
        )
    return "".join(texts.values()), [head for head in new if head not in places]
