"""What the column of the labels holds, and that of the groups: checked, and in a plain type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .._labels import is_missing, known_labels
from ..evaluation import REGRESSION
from .readers import Columns
from .refusals import TableError, check_length, quoted, shown

MIN_ROWS = 4
NUMBERS = "give --task regression to predict numbers"


def check_target(columns: Columns, target: str, task: str, unlabelled: str | None) -> np.ndarray:
    """Return the target, classes or numbers, None or NaN where a row has none."""
    y = columns.labels[target]
    if unlabelled is not None:
        y = _without_mark(columns.path, target, y, unlabelled)
    rows = np.flatnonzero(~is_missing(y))
    if len(rows) < MIN_ROWS:
        counted = "" if len(rows) == len(y) else f" with a label in {shown(target)}"
        raise TableError(f"{columns.path} has {len(rows)} rows{counted}: too few rows, give at least {MIN_ROWS}.")
    known = known_labels(y, rows)
    if task == REGRESSION.name:
        known = _check_numbers(columns, target, known, rows)
    else:
        known = check_classes(columns.path, target, known)
        classes, sizes = np.unique(known, return_counts=True)
        if sizes.min() == 1:
            found = f"a single row of {shown(target)} has the class {quoted(classes[sizes == 1].tolist(), 5)}"
            raise TableError(f"{columns.path}: {found}: merge it with another class, drop it, or {NUMBERS}.")
    if len(rows) == len(y):
        return known
    gaps = np.full(len(y), np.nan) if task == REGRESSION.name else np.full(len(y), None, dtype=object)
    gaps[rows] = known
    return gaps


def _without_mark(path: Path, target: str, y: np.ndarray, mark: str) -> np.ndarray:
    """Return y as objects, with None where a cell is the mark: the same text, or number."""
    number = pd.to_numeric(mark, errors="coerce")  # NaN, which equals nothing, where it is none
    marked = np.array([str(value) == mark or value == number for value in y.tolist()])
    if not marked.any():
        raise TableError(f"{path}: {shown(target)} holds no {shown(mark)}: give --unlabelled a value that it holds.")
    y = y.astype(object)
    y[marked] = None
    return y


def _check_numbers(columns: Columns, target: str, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the numbers as float64; refuse what is none, and what no prediction can be held out on."""
    name = shown(target)
    if y.dtype.kind not in "iuf":
        numbers = pd.to_numeric(pd.Series(y), errors="coerce").to_numpy(dtype=float)
        first = int((~np.isfinite(numbers)).argmax())
        found = f"{shown(y.tolist()[first])} {columns.place(int(rows[first]))}"
        raise TableError(f"{columns.path}: {name} holds {found}, which is no number: mend it, or leave --task out.")
    try:
        return REGRESSION.check_target(y)
    except ValueError as error:
        raise TableError(f"{columns.path}: {name} {str(error).removeprefix('y ')}") from error


def check_classes(path: Path, target: str, y: np.ndarray) -> np.ndarray:
    """Return the labels, whole numbers as integers; refuse real numbers, long text, and a single class."""
    if y.dtype.kind in "OU":
        check_length(f"{path}: {shown(target)}", y)
        y = y.astype(str, copy=False)
    if y.dtype.kind == "f":
        if ((y % 1 != 0) | (np.abs(y) >= 2**53)).any():
            raise TableError(
                f"{path}: {shown(target)} holds real numbers, no classes: {NUMBERS}, or cut them into classes."
            )
        y = y.astype(np.int64)
    if (y == y[0]).all():
        raise TableError(f"{path}: {shown(target)} holds one class, {shown(y[0].item())}: give rows of others.")
    return y
