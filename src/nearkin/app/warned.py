"""What methods warned of, for who reads a ranking: each cause once, and what it means there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..evaluation import MethodResult
from .refusals import counted, listed

NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
# What a warning of the library means for a line of the ranking, by how it begins: its remedies are for who fits the
# method.
MEANINGS = {
    "the objective is 0 in the directions found": (
        "found no direction in which neighbours of different classes differ, and took any. Nothing needs doing: the "
        "score is that of such a map"
    ),
    "No direction separates neighbours of different classes": (
        "found no direction that separates the classes locally, and kept the least bad one. Nothing needs doing: the "
        "score is that of this map"
    ),
    "max_iter=": (
        "ended before the fit had converged. Nothing needs doing: the map is good, not final, and the score is its own"
    ),
    "the iteration stopped after": (
        "ended before the solution was exact to the last digits. Nothing needs doing: the score is that of this map"
    ),
    "the eigenvectors have a residual of": (
        "found a solution that is not exact, as outliers make it. Nothing needs doing: the score is that of this map"
    ),
}


def warning_lines(results: Iterable[MethodResult]) -> Iterator[str]:
    """Yield a line for each cause of warnings, with the methods and how many of their fits had it."""
    by_cause: dict[str, tuple[str, list[str], int]] = {}
    for result in results:
        for text, count in result.warnings.items():
            meaning = next((said for start, said in MEANINGS.items() if text.startswith(start)), None)
            cause = meaning or NUMBER.sub("#", text)  # figures differ from fold to fold
            said, names, before = by_cause.get(cause, (meaning or f"warned: {text}", [], 0))
            by_cause[cause] = said, list(dict.fromkeys([*names, result.name])), before + count
    for said, names, count in by_cause.values():
        yield f"{listed(names)} ({counted(count, 'fit')}) {said.rstrip('.')}."
