"""What the column of the labels holds, and that of the groups: checked, and in a plain type."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .._labels import is_missing, known_labels, merged_labels
from ..evaluation import REGRESSION
from ..preprocessing.columns import MARKS_OF_MISSING
from ..preprocessing.dates import learn_dates
from ..preprocessing.numerals import EITHER, learn_numbers, read_number
from ..preprocessing.quantities import DURATION, RANGE, learn_quantities
from .readers import Columns, Reading
from .refusals import BadCells, TableError, check_length, counted, listed, note, quoted, shown

MIN_ROWS = 4
NUMBERS = "give --task regression to predict numbers"


def read_target(
    columns: Columns, target: str, task: str, unlabelled: str | None, reading: Reading
) -> tuple[np.ndarray, list[str]]:
    """Return the target, classes or numbers, None or NaN where a row has none, and remarks on it."""
    y = columns.labels[target]
    if unlabelled is not None:
        y = _without_mark(columns.path, target, y, unlabelled)
    y, remarks = _cleaned(columns, target, y, reading)
    _refuse_bad(columns, target, y, missing=False)
    rows = np.flatnonzero(~is_missing(y))
    if len(rows) < MIN_ROWS:
        with_label = "" if len(rows) == len(y) else f" with a label in {shown(target)}"
        raise TableError(
            f"{columns.path} has {counted(len(rows), 'row')}{with_label}: too few rows, give at least {MIN_ROWS}."
        )
    known = known_labels(y, rows)
    if task == REGRESSION.name:
        known, remarks = _check_numbers(columns, target, known, rows)
    else:
        known = _check_classes(columns, target, known)
    if len(rows) == len(y):
        return known, remarks
    gaps = np.full(len(y), np.nan) if task == REGRESSION.name else np.full(len(y), None, dtype=object)
    gaps[rows] = known
    return gaps, remarks


def read_groups(columns: Columns, groups: str, reading: Reading) -> tuple[np.ndarray, list[str]]:
    """Return the groups, and remarks on them; refuse rows without one."""
    values, remarks = _cleaned(columns, groups, columns.labels[groups], reading, "group")
    _refuse_bad(columns, groups, values, missing=True)
    return values, remarks


def _without_mark(path: Path, target: str, y: np.ndarray, mark: str) -> np.ndarray:
    """Return y with None where a cell is the mark, which among numbers may be missing already."""
    blanked, marked = _blanked(y, [mark])
    if not marked and mark.strip().lower() not in MARKS_OF_MISSING:
        raise TableError(f"{path}: {shown(target)} holds no {shown(mark)}: give --unlabelled a value that it holds.")
    return blanked


def _blanked(y: np.ndarray, marks: Sequence[str]) -> tuple[np.ndarray, bool]:
    """Return y as objects, with None where a cell is one of some marks, as text or number; and if any is."""
    texts, numbers = {mark.strip() for mark in marks}, pd.to_numeric(pd.Series(marks), errors="coerce").to_numpy()
    distinct = {*y.tolist()} - {None}
    known = {value for value in distinct if str(value).strip() in texts}
    known |= {value for value in distinct if pd.to_numeric(value, errors="coerce") in numbers}
    return np.array([None if value in known else value for value in y.tolist()], dtype=object), bool(known)


def _cleaned(
    columns: Columns, name: str, y: np.ndarray, reading: Reading, what: str = "class"
) -> tuple[np.ndarray, list[str]]:
    """Return labels of which one spelling each is left, and a remark on what became one."""
    if reading.missing:
        y, _ = _blanked(y, reading.missing)
    if y.dtype.kind not in "OU":
        return y, []
    counts = Counter(y.tolist())
    check_length(f"{columns.path}: {shown(name)}", map(str, counts))
    y, several = merged_labels(y)
    same = []
    for spellings in several.values():
        *others, usual = sorted(spellings, key=lambda text: counts[text])
        n_rows = sum(counts[text] for text in others)
        same.append(f"{' and '.join(map(shown, [*others, usual]))} are one {what} ({counted(n_rows, 'row')})")
    cases: dict[str, set[str]] = defaultdict(set)
    for label in map(str, {*y.tolist()} - {None}):
        cases[label.casefold()].add(label)
    differ = [" and ".join(map(shown, sorted(labels))) for labels in cases.values() if len(labels) > 1]
    alike = [f"{listed(sorted(differ), 3)} differ in case alone: write them alike if they mean the same"]
    return y, [*note(name, same), *note(name, alike * bool(differ))]


def _check_numbers(columns: Columns, target: str, y: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the numbers as float64; refuse what is none, and what no prediction can be held out on."""
    remarks: list[str] = []
    if y.dtype.kind not in "iuf":
        y, remarks = _styled_numbers(columns, target, y, rows)
    try:
        return REGRESSION.check_target(y), remarks
    except ValueError as error:
        raise TableError(f"{columns.path}: {shown(target)} {str(error).removeprefix('y ')}") from error


def _styled_numbers(columns: Columns, target: str, y: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return text as numbers, such as "12.3%", "€12.30", "1,234.5" and "72.1 kg"; refuse what is none."""
    values, codes, counts = np.unique(y.astype(str), return_inverse=True, return_counts=True)
    learned = learn_numbers(values.tolist(), columns.decimal) if y.dtype.kind != "b" else None
    if learned is not None:
        styled = next((value for value in values.tolist() if learned[1] != EITHER or "," in value), "")
        return learned[0][codes], [f"{target}: read as numbers ({shown(styled)})"]
    _refuse_dates(columns.path, target, values.tolist())
    found = learn_quantities(values.tolist(), counts, columns.decimal)
    if found is not None:
        how = ", in days" * (found.form == DURATION) + ", each range by its middle" * (found.form == RANGE)
        return found.numbers[codes], [f"{target}: read as numbers ({found.how}{how})"]
    odd = np.array([read_number(value, columns.decimal) is None for value in values])
    row = int(odd[codes].argmax())
    cell = f"{shown(y.tolist()[row])} {columns.place(int(rows[row]))}"
    raise TableError(f"{columns.path}: {shown(target)} holds {cell}, which is no number: mend it, or leave --task out.")


def _refuse_bad(columns: Columns, name: str, values: np.ndarray, missing: bool) -> None:
    """Refuse infinite values, and missing ones if they are not meant to be there."""
    bad = BadCells(missing)
    bad.add([name], np.where(is_missing(values), np.nan, values if values.dtype.kind == "f" else 0)[:, None])
    bad.refuse(columns.path, columns.place)


def _refuse_dates(path: Path, target: str, values: list[str]) -> None:
    if learn_dates(values):
        found = f"{path}: {shown(target)} holds dates ({shown(values[0])})"
        raise TableError(f"{found}: give classes, such as the month, or numbers, such as days, and --task regression.")


def _check_classes(columns: Columns, target: str, y: np.ndarray) -> np.ndarray:
    """Return the classes; refuse dates, and single rows."""
    y = check_classes(columns.path, target, y)
    classes, sizes = np.unique(y, return_counts=True)
    if classes.dtype.kind == "U":
        _refuse_dates(columns.path, target, classes.tolist())
    if sizes.min() == 1:
        alone = quoted(classes[sizes == 1].tolist(), 5)
        found, it = f"a single row of {shown(target)} has the class {alone}", "it"
        if (sizes == 1).sum() > 1:
            found, it = f"single rows of {shown(target)} have the classes {alone}", "them"
        remedy = f"merge {it} with others, drop {it}, name what means no label by --missing, or {NUMBERS}"
        raise TableError(f"{columns.path}: {found}: {remedy}.")
    return y


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
