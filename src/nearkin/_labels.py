"""How labels are read: their classes as numbers 0, 1, ..., and -1 where there is none. A leaf."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ._messages import counted, shown

WHOLE = re.compile(r"^([+-]?\d+)\.0*$")  # a whole number, written with decimals


def has_target(y: np.ndarray) -> np.ndarray:
    """Say for every row whether it has a target; of several targets, all."""
    return ~np.isnan(y.reshape(len(y), -1)).any(axis=1)


def encode_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of `y` and, for every row, the position of its class.

    Raises
    ------
    ValueError
        If labels are missing (None, NaN), mix strings and numbers, are real numbers, or form a single class.
    """
    y = column_or_1d(y, warn=True)
    missing = is_missing(y)
    if missing.any():
        raise ValueError(
            f"y has no label in {counted(missing.sum(), 'row')} (first: row {missing.argmax()}): drop them."
        )
    classes, codes = _distinct(y)
    require_two_classes(classes)
    return classes, codes


def encode_partial_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what `encode_labels` does, with position -1 for rows without a label: the number -1, None or NaN.

    The string "-1" is a class. A single class will do, or none at all.
    """
    y = column_or_1d(y, warn=True)
    known = ~is_missing(y)
    known[known] = y[known] != -1
    classes, positions = _distinct(y[known])
    codes = np.full(len(y), -1)
    codes[known] = positions
    return classes, codes


def require_two_classes(classes: np.ndarray) -> None:
    """Raise a ValueError when there is one class, or none."""
    if len(classes) < 2:
        held = f"one class ({shown(classes[0].item())})" if len(classes) else "no label"
        raise ValueError(f"y holds {held}: at least two classes are needed.")


def check_shared_labels(codes: np.ndarray) -> None:
    """Raise a ValueError when every class 0, 1, ... has a single row."""
    if codes.max() + 1 == len(codes):
        raise ValueError("y gives no two rows the same label, every class has a single row: merge some classes.")


def known_labels(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the labels of rows that have one; of numbers or truth values kept as objects, for the gaps, plain ones."""
    y = y[rows]
    return y if y.dtype != object or len(y) == 0 or isinstance(y[0], str) else np.array(y.tolist())


def merged_labels(y: np.ndarray) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Return labels of text without spaces around them, "1.0" as "1", blank ones as None, and what that merges.

    That is the spellings of each label that has several, e.g. {"yes": ["yes", "yes "]}. Where some labels are text, all
    become text. Others, and truth values, stay as they are.
    """
    known = np.flatnonzero(~is_missing(y))
    if not any(isinstance(label, str) for label in y[known].tolist()):
        return y, {}
    texts, codes = np.unique(y[known].astype(str), return_inverse=True)
    labels = [WHOLE.sub(r"\1", text.strip()) or None for text in texts.tolist()]
    merged = np.full(len(y), None, dtype=object)
    merged[known] = np.array(labels, dtype=object)[codes]
    spellings: dict[str, list[str]] = {}
    for label, text in zip(labels, texts.tolist(), strict=True):
        spellings.setdefault(label or "", []).append(text)
    several = {label: found for label, found in spellings.items() if label and len(found) > 1}
    return merged if None in labels or len(known) < len(y) else merged.astype(str), several


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of labels, none of them missing, and the position of each; refuse what is no class."""
    if y.dtype == object:
        if len({isinstance(label, str) for label in y}) > 1:
            raise ValueError("y mixes strings with other labels: give all labels one type, e.g. y.astype(str).")
        y = np.array(y.tolist())
    with np.errstate(invalid="ignore"), warnings.catch_warnings():  # of infinite labels, which are refused
        warnings.filterwarnings("ignore", "The number of unique classes")  # of many small classes, such as products
        try:
            check_classification_targets(y)
        except ValueError as error:
            if y.dtype.kind != "f" or not np.isfinite(y).all():
                raise
            example = shown(float(y[y != np.rint(y)][0]))
            found = f"Unknown label type: continuous. y holds real numbers, such as {example}, and no classes"
            raise ValueError(f"{found}: take a regressor, such as NCARegressor, or cut them into classes.") from error
    return np.unique(y, return_inverse=True)


def is_missing(labels: np.ndarray) -> np.ndarray:
    """Say for every label whether it is none: None, NaN, NaT or pandas' NA."""
    if labels.dtype != object:
        return labels != labels
    missing = [label is None or type(label).__name__ == "NAType" or label != label for label in labels]
    return np.array(missing, dtype=bool)
