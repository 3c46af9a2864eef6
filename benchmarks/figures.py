"""The figures of the documentation: what makes each, and whether the code has changed since.

`figures.toml` says how they are made, `figures.json` when each was.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reproductions.registry import PAPERS

from .tools.browser import find_chromium
from .tools.document import anchor, sections
from .tools.size import documented, files

ROOT = Path(__file__).parents[1]
TABLE, RECORD = ROOT / "benchmarks" / "figures.toml", ROOT / "benchmarks" / "figures.json"
DATA, PAGE_OF_PAPERS = "NEARKIN_DATA", "docs/measured/papers.md"


@dataclass(frozen=True)
class Figure:
    """What commands make; the fields are described in `figures.toml`."""

    name: str
    commands: tuple[str, ...]
    code: tuple[str, ...]
    writes: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    keeps: str | None = None

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
    found = [of_table(name, entry, table["parts"]) for name, entry in table["figures"].items()]
    page = (ROOT / PAGE_OF_PAPERS).read_text(encoding="utf-8")
    for paper in PAPERS:
        module = paper.__name__.partition(".")[2].replace(".", "/")
        for one in paper.EXPERIMENTS:
            command = f"python -m reproductions {one.name}"
            shown = re.search(rf"^    ({command}( .*)?)$", page, re.MULTILINE)  # with its options
            command = shown[1] if shown else command
            entry = {
                "command": f"{command} --document {PAGE_OF_PAPERS} --figures docs/images/papers",
                "writes": [f"{PAGE_OF_PAPERS}#{anchor(one.title)}"],
                "needs": [DATA, *["torch"] * (module == "nca/network")],
                "code": [f"reproductions/{module}.py", *table["papers"][module]],
            }
            found.append(of_table(one.name, entry, table["parts"]))
    return {one.name: one for one in found}


def of_table(name: str, entry: dict[str, Any], parts: Mapping[str, list[str]]) -> Figure:
    commands = entry.pop("command").strip().replace("\\\n", "").splitlines()
    text = "\n".join(commands)
    scripts = re.findall(r"python ((?:benchmarks|docs)/\S+\.py)", text)
    scripts += [
        f"{module.replace('.', '/')}.py" for module in re.findall(r"-m (benchmarks\.\S+)", text)
    ]
    needs = [*[DATA] * (DATA in text), *entry.pop("needs", ())]
    code = [*scripts, *paths_of(entry.pop("code"), parts)]
    return Figure(
        name,
        tuple(commands),
        tuple(dict.fromkeys(code)),  # each once
        needs=tuple(needs),
        **{key: value if key == "keeps" else tuple(value) for key, value in entry.items()},
    )


def paths_of(code: list[str], parts: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the paths of code, relative to the root."""
    for one in code:
        if one in parts:
            yield from paths_of(parts[one], parts)
        else:
            yield one if one.startswith(("benchmarks/", "reproductions/")) else f"src/nearkin/{one}"


@cache
def digest(path: Path) -> str:
    """Return a digest of the code of a file, or of those in a folder, as Python reads it: neither
    comments, docstrings nor layout change it.
    """
    whole = hashlib.sha256()
    for file in files(path) if path.is_dir() else [path]:
        whole.update(file.relative_to(path.parent).as_posix().encode())
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in documented(tree):
            del node.body[0]
        whole.update(repr(plain(tree)).encode())
    return whole.hexdigest()[:16]


def plain(node: Any) -> Any:
    """Return a syntax tree as lists and strings, the same in all versions of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, plain(value)) for name, value in ast.iter_fields(node))
        return [type(node).__name__, *(field for field in fields if field[1] not in (None, []))]
    if isinstance(node, list):
        return [plain(one) for one in node]
    return None if node is None else repr(node)


def read_record() -> dict[str, dict[str, Any]]:
    """Return what is recorded of each figure."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def write_record(record: Mapping[str, Mapping[str, Any]]) -> None:
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
