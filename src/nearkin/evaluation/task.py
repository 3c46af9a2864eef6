"""What is predicted: a class, by the vote of the k nearest rows, or a number, by their mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.validation import column_or_1d

from .._labels import encode_labels, is_missing, known_labels
from .._messages import counted


@dataclass(frozen=True)
class Task:
    """What scikit-learn has for the prediction of classes, or of numbers.

    Attributes
    ----------
    name : str
    check_target : function that returns y as an array, with its gaps, and refuses what cannot be predicted
    voter, splitter, group_splitter : class
    """

    name: str
    check_target: Callable[[Any], np.ndarray]
    voter: Any
    splitter: Any
    group_splitter: Any

    def sizes(self, y: np.ndarray) -> np.ndarray:
        """Return the sizes of the classes; numbers count as one class."""
        return np.unique(y, return_counts=True)[1] if self == CLASSIFICATION else np.array([len(y)])


def _check_classes(y: Any) -> np.ndarray:
    """Return the labels, None or NaN where they are missing; refuse real numbers and classes of a single row."""
    y = column_or_1d(y)
    classes, codes = encode_labels(y[~is_missing(y)])
    sizes = np.bincount(codes)
    if sizes.min() < 2:
        raise ValueError(
            f"class {classes[sizes.argmin()]!s} has a single row with a label, which cannot be both learned from and "
            "held out: merge it with another class, drop it, or predict numbers by task='regression'."
        )
    return y


def _check_numbers(y: Any) -> np.ndarray:
    """Return the numbers as float64, NaN where they are missing; refuse what is no number or does not vary."""
    y = column_or_1d(y)
    known = ~is_missing(y)
    values = known_labels(y, known)
    if len(values) < 4:
        raise ValueError(
            f"y has {counted(len(values), 'number')}: regression needs at least 4, two on each side of a split."
        )
    if values.dtype.kind not in "iuf":
        raise ValueError(f"y holds no numbers but {values.dtype}: convert them, or take task='classification'.")
    if np.isinf(values).any():
        raise ValueError(f"y is infinite in {counted(np.isinf(values).sum(), 'row')}: drop them.")
    numbers = np.full(len(y), np.nan)
    numbers[known] = values
    size, spread = np.nanmax(np.abs(numbers)), float(np.nanmax(numbers)) - float(np.nanmin(numbers))
    if spread <= 1e-10 * size:
        raise ValueError(f"y does not vary: all its values are {values[0]:.6g}, so there is nothing to predict.")
    if size >= 1e100 or spread <= 1e-100:
        raise ValueError(f"y holds values of up to {size:.1e}, whose square is lost: scale it first.")
    return numbers


CLASSIFICATION = Task(
    "classification",
    _check_classes,
    KNeighborsClassifier,
    StratifiedKFold,
    StratifiedGroupKFold,
)
REGRESSION = Task(
    "regression",
    _check_numbers,
    KNeighborsRegressor,
    KFold,
    GroupKFold,
)
TASKS = {task.name: task for task in (CLASSIFICATION, REGRESSION)}


def named_task(name: str) -> Task:
    """Return a task by its name."""
    if name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {name!r}.")
    return TASKS[name]
