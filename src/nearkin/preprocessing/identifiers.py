"""Columns that say nothing about a row but which one it is, or nothing at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .cells import Cells

MIN_ROWS = 20  # in fewer, anything may look like anything
NEARLY_ALL = 0.9  # of the rows have a value of their own: an identifier
# Last words of names, as in "patient_id", "orderNo", "KEY"; a column of them numbers the rows if its values differ.
ID_WORDS = {"id", "uuid", "guid", "index", "idx", "nr", "no", "number", "key", "code", "serial"}
GROUP_WORDS = {
    *("patient", "subject", "person", "participant", "user", "customer", "client", "speaker", "author", "donor"),
    *("session", "site", "hospital", "centre", "center", "batch", "household", "family", "group", "cluster"),
    *("machine", "device", "sensor", "plate", "animal", "mouse", "specimen", "farm", "school", "store"),
}
CONSTANT = "constant"
EMPTY = "empty"
COUNTER = "numbers of the rows"
NAMED = "named as identifiers, and nearly all values differ"
DIFFERS = "text that differs in every row"
NEARLY_DIFFERS = "text that differs in nearly every row"
UNREAD = "text that differs, and looks like numbers"
REASONS = (COUNTER, CONSTANT, EMPTY, NAMED, DIFFERS, NEARLY_DIFFERS, UNREAD)  # in the order in which they are said


def says_id(name: str) -> bool:
    """Tell whether a name is that of an identifier, such as "userId"."""
    return words_of(name)[-1] in ID_WORDS


def says_group(name: str) -> bool:
    """Tell whether a name is that of groups of rows, such as "patient", "Patient ID" or "store_id"."""
    words = words_of(name)
    return words[-1] == "id" or (
        not GROUP_WORDS.isdisjoint(words) and (GROUP_WORDS | ID_WORDS | {"name"}).issuperset(words)
    )


def words_of(name: str) -> list[str]:
    """Return the words of a name such as "patientId", in lower case; an empty one where there are none."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.findall(r"[^\W\d_]+", re.sub(rf"\b({'|'.join(sorted(GROUP_WORDS))})id\b", r"\1_id", name)) or [""]


@dataclass(frozen=True)
class Ends:
    """The smallest and the largest number of every column, NaN of one without any, and whether cells are missing."""

    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray


def ends_of(X: np.ndarray) -> Ends:
    """Return the ends of dense columns."""
    low, high = X.min(axis=0), X.max(axis=0)
    missing = np.isnan(low)
    for at in np.flatnonzero(missing):
        column = np.ascontiguousarray(X[:, at])
        low[at], high[at] = np.fmin.reduce(column), np.fmax.reduce(column)
    return Ends(low, high, missing)


def useless_numbers(cells: Cells, ends: Ends | None, identifiers: bool) -> dict[str, str]:
    """Return the columns of numbers that are constant or empty, or, if asked for, identify the rows, and why.

    Sparse columns have no `ends`.
    """
    X, names = cells.numbers, cells.number_names
    if ends is None:  # sparse, and kept whole if any column changes
        varies = np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    else:  # if only by a missing value
        varies = (ends.low != ends.high) & ~np.isnan(ends.low) | ends.missing & ~np.isnan(ends.low)
    same = [at for at, changes in enumerate(varies) if not changes]
    found = {names[at]: EMPTY if np.isnan(X[0, at]) else CONSTANT for at in same}
    if identifiers and ends is not None and cells.n_rows > 1:
        found |= {name: NAMED for at, name in enumerate(names) if says_id(name) and varies[at] and _differs(X[:, at])}
        found |= dict.fromkeys(_counters(X, names, ends), COUNTER)
    return found


def _counters(X: np.ndarray, names: list[str], ends: Ends) -> list[str]:
    """Return the columns that number the rows: whole steps of one size, in any order, from 20 rows on.

    Among fewer, only the index without a name that pandas writes: 0, 1, ... or 1, 2, ...
    """
    n_rows = len(X)
    if n_rows < MIN_ROWS:
        nameless = [at for at, name in enumerate(names) if name.startswith(("Unnamed: ", "__index_level_"))]
        return [names[at] for at in nameless if X[0, at] in (0, 1) and (np.diff(X[:, at]) == 1).all()]
    low, high = (end.astype(float) / (n_rows - 1) for end in (ends.low, ends.high))
    steps = high - low  # divided before, so that no difference overflows
    likely = np.flatnonzero(
        ~ends.missing & (steps >= 0.999) & (np.abs(steps - np.rint(steps)) < 1e-9 * np.maximum(steps, 1))
    )
    return [names[at] for at in likely if (np.diff(np.sort(X[:, at])) == np.rint(steps[at])).all()]


def _differs(values: np.ndarray) -> bool:
    """Tell whether nearly all numbers, at least 20 and whole ones, differ."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    many = len(known) >= MIN_ROWS and len(distinct) > NEARLY_ALL * len(known)
    return many and bool((distinct == np.rint(distinct)).all())


def differs(n_values: int, n_known: int, n_rows: int) -> str | None:
    """Return why text identifies the rows, by the number of its values and of its cells; None where it does not."""
    if n_values == n_rows:
        return DIFFERS
    return NEARLY_DIFFERS if n_known >= MIN_ROWS and n_values > NEARLY_ALL * n_known else None
