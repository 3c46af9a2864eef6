"""The figures of the documentation: what makes each, and whether its numbers would change today.

`figures.toml` says how they are made and by which canaries (`canaries.py`) their code is known,
`figures.json` when each was made, where, how long it took, and the numbers of its canaries then.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reproductions.registry import PAPERS

from .tools.browser import find_chromium
from .tools.document import anchor, sections

ROOT = Path(__file__).parents[1]
TABLE, RECORD = ROOT / "benchmarks" / "figures.toml", ROOT / "benchmarks" / "figures.json"
DATA, PAGE_OF_PAPERS = "NEARKIN_DATA", "docs/measured/papers.md"
Record = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """What commands make; the fields are described in `figures.toml`."""

    name: str
    commands: tuple[str, ...]
    canaries: tuple[str, ...] = ()
    no_canary: str = ""
    writes: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    keeps: str | None = None
    ours: tuple[str, ...] = ()

    @property
    def pictures(self) -> list[str]:
        """The pictures that it writes: those that its sections show, and others."""
        found = []
        for place in self.writes:
            path, _, name = place.partition("#")
            if path.endswith(".md"):
                text = (ROOT / path).read_text(encoding="utf-8")
                shown = re.findall(r"!\[.*?\]\((.*?)\)", sections(text)[name] if name else text)
                found += [os.path.normpath(os.path.join(os.path.dirname(path), at)) for at in shown]
            else:
                found.append(path)
        return found

    def unmet(self) -> list[str]:
        """Return what is missing here."""
        return [need for need in self.needs if not is_met(need)]

    def sections_printed(self) -> dict[str, list[str]]:
        """Return the anchors of the sections whose tables it prints, by their pages."""
        found = defaultdict[str, list[str]](list)
        for place in self.prints:
            page, _, name = place.partition("#")
            found[page].append(name)
        return found


def is_met(need: str) -> bool:
    if need == DATA:
        return Path(os.environ.get(DATA) or "none").is_dir()
    if need == "Chromium":
        return find_chromium() is not None
    if "/" in need:
        return (ROOT / need).exists()
    return find_spec(need) is not None


def read_figures() -> dict[str, Figure]:
    """Return all figures by their names, in the order of the table; those of papers are the last."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    found = [of_table(name, entry) for name, entry in table["figures"].items()]
    page = (ROOT / PAGE_OF_PAPERS).read_text(encoding="utf-8")
    for paper in PAPERS:
        for one in paper.EXPERIMENTS:
            command = f"python -m reproductions {one.name}"
            shown = re.search(rf"^    ({command}( .*)?)$", page, re.MULTILINE)  # with its options
            command = shown[1] if shown else command
            entry = {
                "command": f"{command} --document {PAGE_OF_PAPERS} --figures docs/images/papers",
                "writes": [f"{PAGE_OF_PAPERS}#{anchor(one.title)}"],
                "needs": [DATA, *["torch"] * paper.__name__.endswith("nca.network")],
                "canaries": [one.name],
            }
            found.append(of_table(one.name, entry))
    return {one.name: one for one in found}


def of_table(name: str, entry: dict[str, Any]) -> Figure:
    commands = entry.pop("command").strip().replace("\\\n", "").splitlines()
    needs = [*[DATA] * any(DATA in one for one in commands), *entry.pop("needs", ())]
    fields = {key: tuple(one) if isinstance(one, list) else one for key, one in entry.items()}
    return Figure(name, tuple(commands), needs=tuple(needs), **fields)


def read_record() -> Record:
    """Return what is recorded of each figure."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def write_record(record: Record) -> None:
    """Write a line for each figure."""
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in record.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
