"""The comparison as one page that needs no network: a template, filled with the document that its script draws.

Everything that comes from a table is data: it is escaped where it becomes HTML, and the script makes text of it, never
markup.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from .plain import to_json


def write_report(path: Path, document: dict[str, Any]) -> None:
    """Write the page of a document, as `comparison_document` returns it."""
    page = files(__package__) / "page"
    pieces = {
        "title": escape(f"nearkin compare {document['table']['name']}"),
        "verdict": escape(document["verdict"]),
        "data": to_json(document),
        "style": (page / "page.css").read_text(encoding="utf-8"),
        "script": (page / "page.js").read_text(encoding="utf-8"),
    }
    text = Template((page / "page.html").read_text(encoding="utf-8")).substitute(pieces)
    path.write_text(text, encoding="utf-8", errors="replace")
