"""A table ready to learn from, and the checks that every source shares."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._labels import is_missing, known_labels
from ..evaluation import CLASSIFICATION, REGRESSION

if TYPE_CHECKING:
    from .encoder import ColumnEncoder

MIN_ROWS = 4
MAX_TEXT = 500
MAX_SEARCHED = 1000
MAX_NAME = 60
MAX_LIST = 240


class TableError(Exception):
    """A table that cannot be used; the text is one line that names the place and the remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.splitlines()))  # a file may have any name


@dataclass(frozen=True)
class Table:
    """Rows, their target, and what was done to get them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, finite; float64, or float32 where an NPZ file holds that.
    y : ndarray of shape (n,)
        Classes (strings, integers or booleans), each at least twice; for a regression float64. Where rows have no
        label, objects with None in its place; for a regression NaN.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    name : str
        Name of the table.
    notes : list of str
        What was ignored or encoded.
    target : str
        Name of the column of y.
    encoder : ColumnEncoder
        Makes rows like those of X of another table with these columns.
    row_names : sequence of n names
        Text that differs in every row, where a column has it; else the numbers of the rows, the first is 0.
    task : str
        "classification" or "regression".
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    name: str
    notes: list[str]
    target: str
    encoder: ColumnEncoder
    row_names: Sequence[Any]
    task: str = CLASSIFICATION.name

    @property
    def labelled(self) -> np.ndarray:
        """Return the numbers of the rows that have a label."""
        return np.flatnonzero(~is_missing(self.y))

    @property
    def labels(self) -> np.ndarray:
        """Return the labels of these rows, in a plain type."""
        rows = self.labelled
        return self.y if len(rows) == len(self.y) else np.array(self.y[rows].tolist())

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the p features."""
        return self.encoder.feature_names


def find_name(path: Path, names: Sequence[str], wanted: str, option: str) -> str:
    """Return the name that was meant; spaces around it do not matter."""
    meant = [name for name in names if name == wanted] or [name for name in names if name.strip() == wanted.strip()]
    if meant:
        return meant[0]
    close = _closest(wanted, names)
    hint = "" if close is None else f" (did you mean {shown(close)}?)"
    raise TableError(f"{path} has no {shown(wanted)}{hint}: give {option} one of {quoted(names)}.")


class BadCells:
    """Cells that cannot be used, counted by column while a table is read."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.counts: Counter[str] = Counter()
        self.first: int | None = None

    def add(self, names: Iterable[str], bad: np.ndarray, start: int = 0) -> BadCells:
        """Count the bad cells of some rows, the first of which has the number `start`."""
        if bad.any():
            counts = bad.sum(axis=0).tolist()
            self.counts.update({name: count for name, count in zip(names, counts, strict=True) if count})
            first = start + int(bad.any(axis=1).argmax())
            self.first = first if self.first is None else min(first, self.first)
        return self

    def refuse(self, path: Path, where: Callable[[int], str]) -> None:
        """Raise a TableError that names the columns, their counts and the place of the first bad cell, if there are."""
        if self.first is not None:
            columns = listed([f"{shown(name)} ({count})" for name, count in self.counts.items()], 5)
            raise TableError(
                f"{path}: {self.what} in {columns}, first {where(self.first)}: fill them or drop these rows first."
            )


def require_names(path: Path | str, names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise a TableError that names the columns a model needs and the table lacks."""
    present = set(names)
    missing = [name for name in needed if name not in present]
    if missing:
        known = set(needed)
        close = _closest(missing[0], [name for name in names if name not in known])
        hint = "" if close is None else f" ({shown(missing[0])} may be {shown(close)} here)"
        raise TableError(
            f"{path} lacks {quoted(missing, 5)}{hint}, which the model learned from: add or rename the columns."
        )


def check_names(place: Path | str, names: Sequence[str]) -> None:
    """Refuse names that do not tell columns apart, or are none."""
    check_distinct(place, names)
    damaged = [name for name in names if "\0" in name]
    if damaged:
        raise TableError(
            f"{place} has NUL characters in {quoted(damaged, 2)}: it may be damaged, or UTF-16; save it again."
        )
    check_length(str(place), names)


def check_distinct(place: Path | str, names: Iterable[str]) -> None:
    """Refuse names that do not tell columns apart."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise TableError(f"{place} has {quoted(repeated)} more than once: give every column a name of its own.")


def check_length(place: str, texts: Iterable[str]) -> None:
    """Refuse texts so long that they are no names: in an array of strings the longest sets the memory of all."""
    longest = max(map(len, texts), default=0)
    if longest > MAX_TEXT:
        raise TableError(
            f"{place} holds text of {longest} characters, names and classes have at most {MAX_TEXT}: shorten it, or "
            "drop the column."
        )


def _closest(wanted: str, names: Iterable[str]) -> str | None:
    """Return the most similar name, if one is similar; the search takes long for long and for many names."""
    beginnings = {name[:MAX_NAME]: name for name in islice(names, MAX_SEARCHED)}
    close = difflib.get_close_matches(wanted[:MAX_NAME], beginnings, n=1)
    return beginnings[close[0]] if close else None


def check_target(
    path: Path, target: str, y: np.ndarray, task: str, place: Callable[[int], str], unlabelled: str | None = None
) -> np.ndarray:
    """Return the target, classes or numbers, None or NaN where a row has none; `place` says where a row is found."""
    if unlabelled is not None:
        y = _without_mark(path, target, y, unlabelled)
    rows = np.flatnonzero(~is_missing(y))
    if len(rows) < MIN_ROWS:
        counted = "" if len(rows) == len(y) else f" with a label in {shown(target)}"
        raise TableError(
            f"{path} has {len(rows)} rows{counted}: too few rows to hold any out; give at least {MIN_ROWS}."
        )
    known = y if len(rows) == len(y) else known_labels(y, rows)
    if task == REGRESSION.name:
        known = _check_numbers(path, target, known, lambda row: place(int(rows[row])))
    else:
        known = _check_classes(path, target, known)
    if len(rows) == len(y):
        return known
    gaps = np.full(len(y), np.nan) if task == REGRESSION.name else np.full(len(y), None, dtype=object)
    gaps[rows] = known
    return gaps


def _without_mark(path: Path, target: str, y: np.ndarray, mark: str) -> np.ndarray:
    """Return y as objects, with None where a cell is the mark: the same text, or number."""
    marked = np.array([_is_mark(value, mark) for value in y.tolist()])
    if not marked.any():
        raise TableError(f"{path}: {shown(target)} holds no {shown(mark)}: give --unlabelled a value that it holds.")
    y = y.astype(object)
    y[marked] = None
    return y


def _is_mark(value: Any, mark: str) -> bool:
    if isinstance(value, (str, bool)):
        return str(value) == mark
    return _is_number(mark) and value == float(mark)


def _check_numbers(path: Path, target: str, y: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
    """Return the numbers as float64; refuse what is none, and what no prediction can be held out on."""
    if y.dtype.kind not in "iuf":
        row = next((row for row, value in enumerate(y.tolist()) if not _is_number(value)), 0)
        raise TableError(
            f"{path}: {shown(target)} holds {shown(y[row : row + 1].tolist()[0])} {place(row)}, which is no number, "
            f"and a regression predicts numbers: mend it, or leave --task out if {shown(target)} holds classes."
        )
    try:
        return REGRESSION.check_target(y)
    except ValueError as error:
        raise TableError(f"{path}: {shown(target)} {str(error).removeprefix('y ')}") from error


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except ValueError:
        return False


def _check_classes(path: Path, target: str, y: np.ndarray) -> np.ndarray:
    """Return the labels, whole numbers as integers; refuse what no classifier can be held out on."""
    if y.dtype.kind in "OU":
        check_length(f"{path}: {shown(target)}", y)
        y = y.astype(str, copy=False)
    if y.dtype.kind == "f":
        if ((y % 1 != 0) | (np.abs(y) >= 2**53)).any():
            raise TableError(
                f"{path}: {shown(target)} holds real numbers, but compare ranks classifiers and the target must be "
                "classes: give --task regression to predict the numbers, or cut them into classes."
            )
        y = y.astype(np.int64)
    classes, sizes = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise TableError(
            f"{path}: {shown(target)} holds one class, {shown(classes.item())}: give rows of at least two classes."
        )
    alone = classes[sizes == 1].tolist()
    if alone:
        raise TableError(
            f"{path}: a single row of {shown(target)} has the class {quoted(alone, 5)}, too few to learn from and hold "
            f"out: merge it with another class, or drop it{_or_predict(y)}."
        )
    return y


def _or_predict(y: np.ndarray) -> str:
    """Return what else may have been meant where there are numbers."""
    return "; if these are numbers to predict, give --task regression" if y.dtype.kind in "iu" else ""


def check_groups(path: Path, name: str, groups: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the groups; refuse fewer than three of rows with a label."""
    known = ~is_missing(y)
    count = len(np.unique(groups[known]))
    if count < 3:
        counted = "" if known.all() else " of labelled rows"
        raise TableError(
            f"{path}: {shown(name)} holds {count} groups{counted}, too few to hold some out: give at least 3."
        )
    return groups


def without_constants(place: Path | str, X: Any, names: list[str]) -> tuple[Any, list[str], list[str]]:
    """Return X and its names without the columns that never change, and a note on these; sparse X is kept whole.

    Dense X is used up: the columns left move together in its memory.
    """
    if issparse(X):
        varies = np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    else:
        varies = varying(X)
    if not varies.any():
        raise nothing_left(place)
    kept = [name for name, varied in zip(names, varies, strict=True) if varied]
    constant = [name for name, varied in zip(names, varies, strict=True) if not varied]
    if not varies.all():
        X = _moved_together(X, np.flatnonzero(varies))
    return X, kept, note("ignored, constant", constant)


def varying(X: np.ndarray) -> np.ndarray:
    """Return for every column of finite numbers whether it changes."""
    return X.max(axis=0) != X.min(axis=0)


def rearranged(X: np.ndarray, kept: np.ndarray, n_more: int = 0) -> np.ndarray:
    """Return some columns of X and as many columns of zeros as wanted, in the memory of X, which grows for them."""
    (n_rows, before), after = X.shape, len(kept) + n_more
    if n_more == 0 and np.array_equal(kept, np.arange(before)):
        return X
    if after > before:
        X.resize((n_rows, after), refcheck=False)
    memory = X.reshape(-1)
    old, new = (memory[: n_rows * width].reshape(n_rows, width) for width in (before, after))
    blocks = row_blocks(n_rows, max(before, after), 2**18)
    for block in blocks if after <= before else reversed(blocks):  # no row is overwritten before it was read
        rows = old[block][:, kept]
        new[block, : len(kept)] = rows
        new[block, len(kept) :] = 0
    return new


def _moved_together(X: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return some columns of X, in their order and in the memory of X."""
    if X.flags.c_contiguous:
        return rearranged(X, kept)
    for new, old in enumerate(kept.tolist()):
        X[:, new] = X[:, old]
    return X[:, : len(kept)]


def nothing_left(place: Path | str) -> TableError:
    """Return the error for a table without a feature that varies."""
    return TableError(f"{place}: no feature columns are left to learn from: add columns whose values vary.")


def note(what: str, items: list[str]) -> list[str]:
    """Return a remark on the items, in a list; none without items."""
    return [f"{what}: {listed(items)}"] if items else []


def quoted(names: Iterable[Any], most: int = 10) -> str:
    """Return "'a', 'b', 'c'", cut after `most` names."""
    return listed([shown(name) for name in names], most)


def shown(name: Any) -> str:
    """Return a name in quotes, short enough for a message."""
    return shortened(repr(name), MAX_NAME)


def listed(items: Sequence[str], most: int = 10) -> str:
    """Return "a, b, c", cut after `most` items, or fewer where they are long."""
    short = [shortened(item, 2 * MAX_NAME) for item in items[:most]]
    while len(short) > 1 and sum(map(len, short)) > MAX_LIST:
        short.pop()
    return ", ".join(short) + (f" and {len(items) - len(short)} more" if len(items) > len(short) else "")


def shortened(text: str, most: int) -> str:
    """Return the text, cut after `most` characters."""
    return text if len(text) <= most else f"{text[:most]}..."


def reason(error: Exception) -> str:
    """Return what a library says, short enough for a message."""
    return shortened(" ".join(str(error).split()), 2 * MAX_NAME)
