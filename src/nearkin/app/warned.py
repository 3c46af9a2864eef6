"""What methods warned of, for who reads a ranking: each cause once, and what it means there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .refusals import counted, listed

NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
# What a warning of the library means for a line of the ranking, by how it begins: its remedies are for who fits the
# method. None: nothing that is worth a line, such as features that repeat others, which the map leaves out.
MEANINGS: dict[str, str | None] = {
    "X varies by less than": None,
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


def warning_lines(warnings: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a line for each cause, with the methods and how many of their fits had it.

    Parameters
    ----------
    warnings : dict of str to dict
        Of every method by its name: how often each text came.
    """
    found: dict[str, tuple[str, dict[str, int]]] = {}
    for name, texts in warnings.items():
        for text, count in texts.items():
            start = next((start for start in MEANINGS if text.startswith(start)), None)
            said = f"warned: {text}" if start is None else MEANINGS[start]
            if said is None:
                continue
            cause = start or NUMBER.sub("#", text)  # figures differ from fold to fold
            counts = found.setdefault(cause, (said, {}))[1]
            counts[name] = counts.get(name, 0) + count
    for said, counts in found.values():
        yield f"{listed([*counts])} ({counted(sum(counts.values()), 'fit')}) {said.rstrip('.')}."
