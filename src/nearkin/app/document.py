"""What a command found, as one document: a console prints, `--json` writes and a page draws it.

Everything from a table is data: it is escaped when it becomes HTML, and the script only creates
text from it, never markup.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..statistics import PairedTest
from . import console
from .endings import printable
from .output import Outputs

if TYPE_CHECKING:
    from .tables.reading import Table

FORMAT = 1
MAX_LABEL, MAX_NAME = 40, 200  # letters of a name among others, and of the table's and target's
MAX_LISTED = 50  # columns and rows of a list
PAGE = files(__package__) / "page"
# JSON that cannot end a script element of HTML
NO_MARKUP = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&"}


def short_text(value: Any, most: int = MAX_LABEL) -> str:
    """Return a name, shortened for a legend."""
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def table_facts(table: Table) -> dict[str, Any]:
    """Return what was read of a table, with the columns that are not learned from or are odd."""
    suspects = table.suspects
    return {
        "name": short_text(table.name, MAX_NAME),
        "target": short_text(table.target, MAX_NAME),
        "rows": table.X.shape[0],
        "labelled": len(table.labelled),
        "columns": len(table.encoder.columns_),
        "groups": None if table.groups is None else len(np.unique(table.groups)),
        "left_out": [
            {"column": short_text(name), "reason": reason}
            for name, reason in list(table.encoder.dropped_.items())[:MAX_LISTED]
        ],
        "suspicious": [
            {"column": short_text(name), "score": score}
            for name, score in suspects.suspicious[:MAX_LISTED]
        ],
        "group_hints": [short_text(name) for name, _ in suspects.group_hints[:MAX_LISTED]],
    }


def interval_of(test: PairedTest) -> dict[str, float]:
    """Return a difference with its 95 % interval."""
    low, high = test.interval()
    return {"difference": test.difference, "low": low, "high": high}


def points(found: dict[str, float]) -> str:
    """Return a difference from `interval_of` as text, in points."""
    difference, low, high = (100 * found[key] for key in ("difference", "low", "high"))
    return f"{difference:+.1f} [{low:.1f}, {high:.1f}]"


def show(grid: Sequence[dict[str, str]], sentences: Sequence[str], spared: Sequence[str]) -> None:
    """Print a table, if it has rows, and sentences, of which the first is the answer."""
    if grid:
        console.print_grid(grid, spared)
    for place, text in enumerate(sentences):
        console.say(text, "" if place else "bold")


def write_document(options: argparse.Namespace, outputs: Outputs, found: dict[str, Any]) -> None:
    """Write what was found as a page and as JSON, on request."""
    command = ["nearkin", *options.arguments]
    document = {"format": FORMAT, "nearkin": __version__, "command": command} | found
    for option, name, write in (("report", "Report", write_page), ("json", "JSON", write_json)):
        if path := getattr(options, option, None):
            done = f"{name}: {path}"
            outputs.write(path, f"--{option}", partial(write, document=document), done)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the document as one line of UTF-8."""
    path.write_text(to_json(document) + "\n", encoding="utf-8")


def write_page(path: Path, document: dict[str, Any]) -> None:
    """Write the document as one file without external resources: a skeleton, a style, a script.

    Only printable text gets into it, as on a terminal.
    """
    style, script, skeleton = (
        (PAGE / f"page.{suffix}").read_text(encoding="utf-8") for suffix in ("css", "js", "html")
    )
    title = " ".join([*document["command"][:2], document["table"]["name"]])
    page = Template(skeleton).substitute(
        title=escape(title),
        verdict=escape(document.get("verdict") or "\n".join(document["sentences"])),
        data=to_json(document),
        style=style,
        script=script,
    )
    path.write_text(printable(page), encoding="utf-8")


def to_json(document: Any) -> str:
    """Return a document as JSON, without markup characters and text that UTF-8 cannot encode.

    Characters that are not seen are escaped.
    """
    text = json.dumps(
        plain(document), separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).translate(NO_MARKUP)
    return printable(text.encode("utf-8", "replace").decode("utf-8"), json.dumps)


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: numbers have six digits, None if not finite."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value
