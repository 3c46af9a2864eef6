"""The target: labels or numbers, read alike for an estimator, from a data frame and from a file.

A column has spellings to merge, and numbers that are written as text; what an array holds is taken
as it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from .._labels import encode_labels, known_labels
from .._messages import counted, in_row, listed, note, quoted, shown
from .._validation import column_or_1d, is_missing
from ..estimators.validation import check_targets_vary
from .cells import MAX_TEXT, Text
from .columns import (
    DEFAULT_RULES,
    MARKS_OF_MISSING,
    READ_AS,
    DateColumn,
    NumberColumn,
    RejectColumn,
    Rules,
    learn_numeric,
    without_decimals,
)
from .numbers import TRUTH_UNIT, UNITS

MIN_ROWS = 4  # with a label
MOST_UNREAD = 0.05  # share of the cells of a target that need not be numbers
FEW_CLASSES = 20  # so many distinct labels can always be classes
MOST_ALONE = 0.25  # share of more than 20 distinct numbers that may occur in a single row


def column_of(frame: Any, what: str, name: str) -> np.ndarray:
    """Return the column of a data frame that has a name: that of `what`, y or groups."""
    if not hasattr(frame, "columns"):
        raise TypeError(
            f"{what} names a column, {shown(name)}, but X is no data frame: give {what} as an "
            "array."
        )
    names = frame.columns.tolist()
    if names.count(name) != 1:
        found = f"X has {names.count(name) or 'no'} columns {shown(name)}"
        raise ValueError(f"{found}: {what} must be the name of one, such as {quoted(names)}.")
    column = frame[name]
    is_numeric = getattr(column.dtype, "kind", "O") in "biuf"
    return column.to_numpy(dtype=None if is_numeric else object)


def learn_target(
    y: Any,
    name: str | None,
    task: str,
    *,
    regression: str | None = "task='regression'",
    unlabelled: Any = None,
    rules: Rules = DEFAULT_RULES,
    place: Callable[[int], str] = in_row,
) -> tuple[np.ndarray, list[str]]:
    """Return classes or numbers (float64), with None or NaN for unlabelled rows, and remarks.

    Parameters
    ----------
    y : array of shape (n,)
    name : str or None
        Name of the column; None if y is an array.
    task : {"classification", "regression"}
    regression : str or None
        How the user asks for numbers, in remedies; None where there are only classes, and a class
        may have a single row.
    unlabelled : label, optional
        A value that means "no label", besides missing ones.
    rules : Rules
        How the cells of a column are read.
    place : callable
        Returns where a row is, for messages.
    """
    y, called = column_or_1d(y), "y" if name is None else shown(name)
    if unlabelled is not None:
        y, is_marked = blanked(y, [unlabelled])
        # among numbers, a mark may already be missing
        if not is_marked and str(unlabelled).strip().lower() not in MARKS_OF_MISSING:
            raise ValueError(
                f"{called} holds no {shown(unlabelled)}: give unlabelled a value that it holds."
            )
    remarks = list[str]()
    if name is not None:
        y, remarks = merge_spellings(y, name, "class", rules)
    rows = np.flatnonzero(~is_missing(y))
    if name is not None and len(rows) < MIN_ROWS:
        with_label = "" if len(rows) == len(y) else f" with a label in {called}"
        raise ValueError(
            f"the table has {counted(len(rows), 'row')}{with_label}: too few rows, give at least "
            f"{MIN_ROWS}."
        )
    known = known_labels(y, rows)
    if task == "regression":
        numbers = np.full(len(y), np.nan)
        if name is not None:
            known, remarks = _as_numbers(known, name, rules, lambda row: place(int(rows[row])))
        numbers[rows] = _checked_numbers(known, called)
        return numbers, remarks
    if regression is None and (why := no_classes(known)):
        _refuse_dates(known.astype(str).tolist(), called)
        raise ValueError(f"{called} {why}")
    if name is None:
        refuse_odd_labels(encode_labels(known)[0], called, regression)
        return y, []
    known, more = _as_classes(known, name, regression, rules)
    if len(rows) == len(y):
        return known, [*remarks, *more]
    y = np.full(len(y), None)
    y[rows] = known
    return y, [*remarks, *more]


# What is missing, and which texts are one label.


def blanked(y: np.ndarray, marks: Iterable[Any]) -> tuple[np.ndarray, bool]:
    """Return y as objects with None for some marks, and whether there are any.

    A mark may be text or a number.
    """
    texts = {str(mark).strip() for mark in marks}
    numbers = {number for text in texts for number in _numbers_of(text)}
    cells = [str(label).strip() for label in y.tolist()]
    found = {text for text in {*cells} if text in texts or numbers.intersection(_numbers_of(text))}
    y = y.astype(object)
    y[[text in found for text in cells]] = None
    return y, bool(found)


def _numbers_of(text: str) -> list[float]:
    """Return the number that a text is, if it is one."""
    with suppress(ValueError):
        return [float(text)]
    return []


def merge_spellings(
    y: np.ndarray, name: str, what: str, rules: Rules = DEFAULT_RULES
) -> tuple[np.ndarray, list[str]]:
    """Return the labels of a column with merged spellings, and remarks on what was merged."""
    if rules.missing_values:
        y, _ = blanked(y, rules.missing_values)
    if y.dtype.kind not in "OU":
        return y, []
    counts = Counter(y.tolist())
    # in an array of strings, the longest one determines the memory of all
    _refuse_long(map(str, counts), shown(name))
    y, several = merged_labels(y)
    same = []
    for spellings in several.values():
        *others, usual = sorted(spellings, key=counts.__getitem__)
        n_rows = counted(sum(map(counts.__getitem__, others)), "row")
        same.append(f"{' and '.join(map(shown, [*others, usual]))} are one {what} ({n_rows})")
    cases = defaultdict[str, list[str]](list)
    for label in sorted(map(str, {*y.tolist()} - {None})):
        cases[label.casefold()].append(label)
    differ = [" and ".join(map(shown, labels)) for labels in cases.values() if len(labels) > 1]
    if differ:
        differ = [
            f"{listed(sorted(differ), 3)} differ only in case: spell them alike if they mean the "
            "same"
        ]
    return y, [*note(name, same), *note(name, differ)]


def merged_labels(y: np.ndarray) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Return labels with merged spellings, and the spellings that were merged.

    Text is stripped, "1.0" becomes "1", and blank text becomes None. The second result has the
    spellings of each label that has several, e.g. {"yes": ["yes", "yes "]}. If some labels are
    text, all become text; otherwise labels stay unchanged.
    """
    known = np.flatnonzero(~is_missing(y))
    if not any(isinstance(label, str) for label in y[known].tolist()):
        return y, {}
    texts, codes = np.unique(y[known].astype(str), return_inverse=True)
    labels = [without_decimals(text.strip()) or None for text in texts.tolist()]
    merged = np.full(len(y), None, dtype=object)
    merged[known] = np.array(labels, dtype=object)[codes]
    spellings: dict[str, list[str]] = {}
    for label, text in zip(labels, texts.tolist(), strict=True):
        spellings.setdefault(label or "", []).append(text)
    several = {label: found for label, found in spellings.items() if label and len(found) > 1}
    return merged if None in labels or len(known) < len(y) else merged.astype(str), several


# Numbers.


def _as_numbers(
    y: np.ndarray, name: str, rules: Rules, place: Callable[[int], str]
) -> tuple[np.ndarray, list[str]]:
    """Return the numbers of a column, which may be text such as "€12.30", and remarks.

    A few cells of other text are missing (see `target_numbers`); more raise an error.
    """
    if y.dtype.kind in "iuf":
        return y, []
    try:
        most_unread = 0.0 if rules.strict else MOST_UNREAD
        return target_numbers(name, y, replace(rules, strict=False), most_unread)
    except RejectColumn as error:
        texts = y.astype(str).tolist()
        _refuse_dates(texts, shown(name), "numbers, such as days")
        odd = {*error.args} or {*map(str.strip, texts)}
        row = next(row for row, text in enumerate(texts) if text.strip() in odd)
        raise ValueError(
            f"{shown(name)} holds {shown(y.tolist()[row])} {place(row)}, which is not a number: "
            "correct it, or predict classes."
        ) from None


def target_numbers(
    name: str, y: np.ndarray, rules: Rules = DEFAULT_RULES, most_unread: float = MOST_UNREAD
) -> tuple[np.ndarray, list[str]]:
    """Return a text target as numbers, read like feature columns, and remarks on how it was read.

    Marks of missing cells, and up to a share `most_unread` of other cells that are not numbers, or
    that have another unit than most, become NaN. More of these, dates and truth values raise a
    `RejectColumn` with such cells.
    """
    texts, codes = np.unique(y.astype(str), return_inverse=True)
    text = rules.cleaned(Text(texts.tolist(), codes), numeric=True)
    learned = learn_numeric(name, text, rules)
    column = learned.column
    if not isinstance(column, NumberColumn) or column.unit == TRUTH_UNIT or column.form == UNITS:
        raise RejectColumn
    rows = Counter(text.values[at] for at in text.codes[np.isnan(learned.numbers)] if at >= 0)
    if rows.total() > most_unread * text.counts.sum():
        raise RejectColumn(*rows)
    ranked = sorted(rows.items(), key=lambda item: (-item[1], item[0]))
    odd = [f"{shown(value)} ({counted(count, 'row')})" for value, count in ranked]
    remarks = [f"{name}: {READ_AS[column.form]} ({learned.how})"] * bool(learned.how)
    return learned.numbers, [*remarks, *note(f"{name}: no numbers, taken as missing", odd)]


def _checked_numbers(y: np.ndarray, called: str) -> np.ndarray:
    """Return numbers that can be predicted on held-out rows; raise an error for others."""
    n_known = int(np.count_nonzero(~is_missing(y)))
    if n_known < MIN_ROWS:
        raise ValueError(
            f"{called} has {counted(n_known, 'number')}: regression needs at least {MIN_ROWS}, two "
            "on each side of a split."
        )
    if y.dtype.kind not in "iuf":
        raise ValueError(
            f"{called} holds {y.dtype}, not numbers: convert them, or take task='classification'."
        )
    if np.isinf(y).any():
        n_rows = counted(np.isinf(y).sum(), "row")
        raise ValueError(f"{called} is infinite in {n_rows}: drop them.")
    try:
        check_targets_vary(y[~np.isnan(y)].astype(np.float64))
    except ValueError as error:
        raise ValueError(f"{called} {str(error).removeprefix('y ')}") from error
    return y


# Classes.


def _as_classes(
    y: np.ndarray, name: str, regression: str | None, rules: Rules
) -> tuple[np.ndarray, list[str]]:
    """Return the classes of a column, and a remark if they may be quantities.

    Dates, real numbers and too many classes of a single row raise an error.
    """
    called = shown(name)
    y = as_classes(y, name, regression)
    classes, sizes = np.unique(y, return_counts=True)
    numbers, remarks = np.empty(0), list[str]()
    if len(classes) > FEW_CLASSES and classes.dtype.kind in "iu":
        numbers = classes
    elif len(classes) > FEW_CLASSES:
        with suppress(RejectColumn):  # NaN for a few that are words
            numbers = target_numbers("", y, Rules(decimal=rules.decimal))[0]
    if (numbers % 1 > 0).any():
        raise ValueError(_real_numbers(called, regression, y[np.argmax(numbers % 1 > 0)].item()))
    if len(numbers):
        remarks.append(
            f"{name}: {len(classes):,} different numbers, taken as classes (if they are "
            f"quantities, give {regression} to predict numbers)"
        )
    refuse_odd_labels(classes, called, regression)
    alone = classes[sizes == 1].tolist()
    if alone and regression and (rules.strict or not are_left_out(sizes)):
        if len(numbers) and not rules.strict:
            raise ValueError(_real_numbers(called, regression, alone[0]))
        found, it = f"{called} has a single row of the class", "it"
        if len(alone) > 1:
            found, it = f"{called} has single rows of the classes", "them"
        raise ValueError(
            f"{found} {quoted(alone, 5)}: merge {it} with others, drop {it}, leave the label empty "
            f"where there is none, or give {regression} to predict numbers."
        )
    return y, remarks


def as_classes(y: np.ndarray, name: str, regression: str | None) -> np.ndarray:
    """Return the labels of a column, with whole numbers as integers.

    Real numbers, long text, and a single class raise an error.
    """
    called = shown(name)
    if y.dtype.kind in "OU":
        _refuse_long(map(str, y), called)
        y = y.astype(str, copy=False)
    if y.dtype.kind == "f":
        if ((y != np.rint(y)) | (np.abs(y) >= 2**53)).any():
            raise ValueError(_real_numbers(called, regression))
        y = y.astype(np.int64)
    if (y == y[0]).all():
        raise ValueError(f"{called} holds one class, {shown(y[0].item())}: give rows of others.")
    return y


def _real_numbers(called: str, regression: str | None, example: Any = None) -> str:
    """Return why real numbers are not classes."""
    such = "," if example is None else f", such as {shown(example)},"
    numbers = "" if regression is None else f"give {regression} to predict numbers, or "
    return f"{called} holds real numbers{such} not classes: {numbers}cut them into classes."


def refuse_odd_labels(classes: np.ndarray, called: str, regression: str | None) -> None:
    """Raise a ValueError for labels that are dates or long text."""
    if classes.dtype.kind in "OUM":
        texts = list(map(str, classes))
        _refuse_long(texts, called)
        _refuse_dates(texts, called, f"numbers, such as days, and {regression}" * bool(regression))


def _refuse_long(texts: Iterable[str], called: str) -> None:
    longest = max(map(len, texts), default=0)
    if longest > MAX_TEXT:
        raise ValueError(
            f"{called} holds text of {longest} characters: shorten it to {MAX_TEXT}, or drop the "
            "column."
        )


def _refuse_dates(texts: list[str], called: str, or_else: str = "") -> None:
    with suppress(RejectColumn):
        DateColumn.learn("", Text(texts, np.arange(len(texts))), Rules(strict=True))
        raise ValueError(
            f"{called} holds dates ({shown(texts[0])}): give classes, such as the month"
            f"{f', or {or_else}' * bool(or_else)}."
        )


def no_classes(labels: np.ndarray) -> str | None:
    """Return why labels cannot be treated as classes, with the remedy; None if they can."""
    if labels.dtype == object and any(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    values, sizes = np.unique(labels, return_counts=True)
    if len(values) <= FEW_CLASSES:
        return None
    if values.dtype.kind in "iuf" and np.mean(sizes == 1) > MOST_ALONE:
        return (
            f"holds numbers ({len(values):,} different ones in {len(labels):,} rows), no classes: "
            "nearkin compare with --task regression predicts numbers, and names those that stand "
            "apart, such as typing errors; or cut them into classes."
        )
    if len(values) > len(labels) / 2:
        return (
            f"has {len(values):,} classes in {len(labels):,} rows, too few rows of each to label "
            "one by others: merge some classes."
        )
    return None


def are_left_out(sizes: np.ndarray) -> bool:
    """Return whether classes of a single row are left out: if others have at least half the rows.

    At least two classes must remain.
    """
    several = sizes[sizes > 1]
    return len(several) > 1 and bool(2 * several.sum() >= sizes.sum())
