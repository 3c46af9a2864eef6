"""Maps of held-out rows for the page: how many rows are drawn follows from the bytes that they take."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..evaluation import Comparison, HeldOutMap, MethodResult, first_map
from .plain import digits, short_text, to_json
from .tables import Table
from .verdicts import wording

MAX_POINTS = (1000, 500, 250, 100)  # of a map: the first for which all maps take so many bytes at most
MAX_BYTES = 1_000_000
MAX_NEAR = 3  # neighbours of a drawn row
MAX_VALUES, MAX_FEATURES = 4, 100  # features shown of a row, of so few
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)  # of a map in two dimensions


def drawn_maps(comparison: Comparison, table: Table, answers: np.ndarray) -> dict[str, Any]:
    """Return the maps of the methods, that which the automatic choice took first, and the rows that they refer to."""
    first = comparison.choice.params[0].get("method") if comparison.choice.params else None
    methods = sorted((r for r in comparison.results if r.kind == "method"), key=lambda r: r.name != first)
    maps = list[tuple[MethodResult, HeldOutMap]]()
    for result in methods:
        with suppress(*FAILURES):
            maps.append((result, first_map(comparison, result)))
    found: dict[str, Any] = {"rows": None, "maps": []}
    for most in MAX_POINTS if maps else ():
        found = _drawn(maps, comparison, table, answers, most)
        if len(to_json(found).encode()) <= MAX_BYTES:
            break
    return found


def _drawn(
    maps: Sequence[tuple[MethodResult, HeldOutMap]],
    comparison: Comparison,
    table: Table,
    answers: np.ndarray,
    most: int,
) -> dict[str, Any]:
    """Return the same held-out rows of all maps, at most so many, and with them those that are their neighbours."""
    held_out = maps[0][1].rows
    shown = np.random.default_rng(comparison.protocol.random_state).permutation(len(held_out))[:most]
    shown = np.sort(shown)
    near = [seen.neighbors[shown, :MAX_NEAR] for _, seen in maps]
    others = np.unique(np.concatenate([rows.ravel() for rows in near]))
    rows = np.concatenate([held_out[shown], others])
    words = wording(comparison)
    return {
        "rows": {
            "held_out": len(held_out),
            "name": [short_text(table.row_names[row]) for row in rows.tolist()],
            "answer": digits(answers[rows], 6),
            "values": _values(table, comparison.protocol.X, held_out[shown]),
        },
        "maps": [
            {
                "name": short_text(result.name),
                "vote": str(seen.vote),
                "score": digits(seen.score, 6),
                "said": words.says(seen.score),
                "x": digits(seen.embedding[shown, 0]),
                "y": digits(seen.embedding[shown, 1]) if seen.embedding.shape[1] > 1 else None,
                "near": (len(shown) + np.searchsorted(others, neighbors)).tolist(),
            }
            for (result, seen), neighbors in zip(maps, near, strict=True)
        ],
    }


def _values(table: Table, X: Any, rows: np.ndarray) -> dict[str, list[float]]:
    """Return the first features of some rows, of a table that has no more than a reader knows by name."""
    if issparse(X) or X.shape[1] > MAX_FEATURES:
        return {}
    names = table.feature_names[:MAX_VALUES]
    return {short_text(name): digits(X[rows, column]) for column, name in enumerate(names)}
