"""A table ready to learn from, and the checks that every source shares."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

MIN_ROWS = 4


class TableError(Exception):
    """A table that cannot be used; the text is one line that names the place and the remedy."""


@dataclass(frozen=True)
class Table:
    """Rows, their classes, and what was done to get them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, float64 and finite.
    y : ndarray of shape (n,)
        Classes (strings, integers or booleans), each at least twice.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    feature_names : list of str
        Names of the p features.
    name : str
        Name of the table.
    notes : list of str
        What was ignored or encoded.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    feature_names: list[str]
    name: str
    notes: list[str]


def find_name(path: Path, names: Sequence[str], wanted: str, option: str) -> str:
    """Return the name that was meant; spaces around it do not matter."""
    meant = [name for name in names if name == wanted] or [name for name in names if name.strip() == wanted.strip()]
    if meant:
        return meant[0]
    close = difflib.get_close_matches(wanted, names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise TableError(f"{path} has no {wanted!r}{hint}: give {option} one of {quoted(names)}.")


def refuse_cells(path: Path, what: str, bad: np.ndarray, names: Iterable[str], where: Callable[[int], str]) -> None:
    """Raise a TableError that names the columns of the bad cells, their counts, and the place of the first."""
    if bad.any():
        counts = zip(names, bad.sum(axis=0), strict=True)
        columns = listed([f"{name!r} ({count})" for name, count in counts if count], 5)
        first = where(int(bad.any(axis=1).argmax()))
        raise TableError(f"{path}: {what} in {columns}, first {first}: fill them or drop these rows first.")


def check_classes(path: Path, target: str, y: np.ndarray) -> np.ndarray:
    """Return the labels, whole numbers as integers; refuse what no classifier can be held out on."""
    if len(y) < MIN_ROWS:
        raise TableError(f"{path} has {len(y)} rows: too few rows to hold any out; give at least {MIN_ROWS}.")
    if y.dtype.kind == "f":
        if ((y % 1 != 0) | (np.abs(y) >= 2**53)).any():
            raise TableError(
                f"{path}: {target!r} holds real numbers, but compare ranks classifiers and the target must be classes: "
                "cut it into classes, or choose another target."
            )
        y = y.astype(np.int64)
    classes, sizes = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise TableError(f"{path}: {target!r} holds one class, {classes.item()!r}: give rows of at least two classes.")
    alone = classes[sizes == 1].tolist()
    if alone:
        raise TableError(
            f"{path}: a single row of {target!r} has the class {quoted(alone, 5)}, too few to learn from and hold "
            "out: merge it with another class, or drop it."
        )
    return y


def check_groups(path: Path, name: str, groups: np.ndarray) -> np.ndarray:
    """Return the groups; refuse fewer than three."""
    count = len(np.unique(groups))
    if count < 3:
        raise TableError(f"{path}: {name!r} holds {count} groups, too few to hold some out: give at least 3.")
    return groups


def without_constants(place: Path | str, X: Any, names: list[str]) -> tuple[Any, list[str], list[str]]:
    """Return X and its names without the columns that never change, and a note on these; sparse X is kept whole."""
    if issparse(X):
        varies = np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    else:
        varies = (X[0] != X).any(axis=0)
    if not varies.any():
        raise nothing_left(place)
    kept = [name for name, varied in zip(names, varies, strict=True) if varied]
    constant = [name for name, varied in zip(names, varies, strict=True) if not varied]
    return X if varies.all() else X[:, varies], kept, note("ignored, constant", constant)


def nothing_left(place: Path | str) -> TableError:
    """Return the error for a table without a feature that varies."""
    return TableError(f"{place}: no feature columns are left to learn from: add columns whose values vary.")


def note(what: str, items: list[str]) -> list[str]:
    """Return a remark on the items, in a list; none without items."""
    return [f"{what}: {listed(items)}"] if items else []


def quoted(names: Iterable[Any], most: int = 10) -> str:
    """Return "'a', 'b', 'c'", cut after `most` names."""
    return listed([repr(name) for name in names], most)


def listed(items: Sequence[str], most: int = 10) -> str:
    """Return "a, b, c", cut after `most` items."""
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
