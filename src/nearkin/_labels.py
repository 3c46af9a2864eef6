"""Class labels: which rows have one, the classes, and the class code of every row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ._messages import counted, shown
from ._validation import column_or_1d, explained, is_missing

LABELS = "give one label per row, a whole number or text"


def encode_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of `y`, and the class code of every row.

    Raises
    ------
    ValueError
        If labels are missing (None, NaN), mix strings and numbers, are real numbers, or form a
        single class.
    """
    y = column_or_1d(y, warn=True)
    missing = is_missing(y)
    if missing.any():
        raise ValueError(
            f"y has no label in {counted(missing.sum(), 'row')} (first: row {missing.argmax()}): "
            "drop them."
        )
    classes, codes = _distinct(y)
    require_two_classes(classes)
    return classes, codes


def encode_partial_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `encode_labels`, with code -1 for unlabelled rows (-1, None or NaN).

    The string "-1" is a class. A single class, or none, is accepted.
    """
    y = column_or_1d(y, warn=True)
    known = ~is_missing(y)
    with explained("y", LABELS):
        known[known] = y[known] != -1
    classes, positions = _distinct(y[known])
    codes = np.full(len(y), -1)
    codes[known] = positions
    return classes, codes


def encode_partial_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `encode_partial_labels`; raise an error for fewer than two classes."""
    classes, codes = encode_partial_labels(y)
    require_two_classes(classes)
    return classes, codes


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of labels without missing values, and the code of each label.

    Values that are not class labels raise an error.
    """
    if y.dtype == object:
        if len({isinstance(label, str) for label in y}) > 1:
            raise ValueError(
                "y mixes strings with other labels: give all labels one type, e.g. y.astype(str)."
            )
        with explained("y", LABELS):
            y = np.array(y.tolist())
    is_beyond = y.dtype == object and all(isinstance(label, int) for label in y)
    if y.dtype.kind == "f" and np.isfinite(y).all():
        is_beyond = bool((np.abs(y) >= 2**63).any())
        if (fractions := y[y != np.rint(y)]).size:
            raise ValueError(
                "Unknown label type: continuous. y holds real numbers, such as "
                f"{shown(float(fractions[0]))}, and no classes: take a regressor, or cut them into "
                "classes."
            )
    if is_beyond:
        raise ValueError(
            "y holds numbers that 64 bits cannot tell apart, of 2^63 or more: give labels as text, "
            "e.g. [str(label) for label in y]."
        )
    # without warnings: infinite labels raise an error, and many small classes may be intended
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")
        with explained("y", LABELS):
            check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def require_two_classes(classes: np.ndarray) -> None:
    """Raise a ValueError if there are fewer than two classes."""
    if len(classes) < 2:
        held = f"one class ({shown(classes[0].item())})" if len(classes) else "no label"
        raise ValueError(f"y holds {held}: at least two classes are needed.")


def check_shared_labels(codes: np.ndarray) -> None:
    """Raise a ValueError if every class 0, 1, ... has a single row."""
    if codes.max() + 1 == len(codes):
        raise ValueError(
            "y gives no two rows the same label, every class has a single row: merge some classes."
        )


def encode_groups(groups: Any) -> np.ndarray:
    """Return the code 0, 1, ... of the group of every row, (n,)."""
    groups = column_or_1d(groups)
    if is_missing(groups).any():
        raise ValueError(
            "groups has missing values: give every row a group, if need be one of its own."
        )
    with explained("groups", "give all groups one type, e.g. groups.astype(str)"):
        return np.unique(groups, return_inverse=True)[1]


def known_labels(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the labels of labelled rows.

    Numbers and booleans stored as objects because of missing labels are converted to a plain dtype.
    """
    y = y[rows]
    return y if y.dtype != object or len(y) == 0 or isinstance(y[0], str) else np.array(y.tolist())
