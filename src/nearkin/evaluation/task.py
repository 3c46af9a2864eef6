"""What is predicted: a class, by the vote of the k nearest rows, or a number, by their mean.

Everything that a comparison does differently for the two is here, as one object each without state: which targets are
valid, how rows are held out, and how predictions are scored.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error, r2_score
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.validation import column_or_1d

from .._labels import encode_labels, is_missing, known_labels

PILOT_ROWS = 1000


class Classification:
    """The class that most of the k nearest rows have."""

    name = "classification"
    score_name, second_name = "accuracy", "balanced_accuracy"

    def check_target(self, y: Any) -> np.ndarray:
        """Return the labels, None or NaN where they are missing; refuse real numbers and classes of a single row."""
        y = column_or_1d(y)
        known = ~is_missing(y)
        if y.dtype.kind == "f" and np.isfinite(y[known]).all() and (y[known] % 1 != 0).any():
            row = int((known & (y % 1 != 0)).argmax())
            raise ValueError(
                f"y holds continuous values (row {row}: {y[row]}), which are no classes: predict them by "
                "task='regression', or cut them into classes."
            )
        classes, codes = encode_labels(y[known])
        sizes = np.bincount(codes)
        if sizes.min() < 2:
            remedy = ", or predict numbers by task='regression'" if classes.dtype.kind in "iuf" else ""
            raise ValueError(
                f"class {classes[sizes.argmin()]!s} has a single {_labelled(known)}row, which cannot be both "
                f"learned from and held out: merge it with another class or drop it{remedy}."
            )
        return y

    def with_unknown(self, y: np.ndarray, n: int) -> np.ndarray:
        """Return the numbers of the classes, which may have any name, and n times -1, for rows without a label."""
        return np.append(np.unique(y, return_inverse=True)[1], np.full(n, -1))

    def sizes(self, y: np.ndarray) -> np.ndarray:
        """Return the sizes of the classes."""
        return np.unique(y, return_counts=True)[1]

    def most_folds(self, y: np.ndarray, groups: np.ndarray | None) -> tuple[int, str]:
        """Return the largest possible number of folds, and what limits it: a class, or the groups."""
        labels, counts = np.unique(y, return_counts=True)
        if groups is None:
            return int(counts.min()), f"class {labels[counts.argmin()]!s} has {counts.min()} rows"
        n_groups = len(np.unique(groups))
        reason = f"there are {n_groups} groups, and at most {counts.max()} rows in a class"
        return min(n_groups, int(counts.max())), reason

    def most_inner_folds(self, y: np.ndarray, groups: np.ndarray | None) -> int:
        """Return the size of the smallest class, but at least 2; 1 where every class has a single training row."""
        counts = self.sizes(y)
        possible = max(int(counts.min()), 2) if groups is None else len(np.unique(groups))
        return min(possible, int(counts.max()))

    def splitter(self, n_splits: int, grouped: bool, seed: int) -> BaseCrossValidator:
        """Return a splitter into folds with equal shares of the classes."""
        return (StratifiedGroupKFold if grouped else StratifiedKFold)(n_splits, shuffle=True, random_state=seed)

    def can_score(self, y: np.ndarray) -> bool:
        """Return True: any label is right or wrong."""
        return True

    def pilot_rows(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return `PILOT_ROWS` of the rows and three of every class."""
        rows = np.random.default_rng(0).permutation(rows)
        labels = known_labels(y, rows)
        order = np.argsort(labels, kind="stable")
        starts = np.unique(labels[order], return_index=True)[1]
        number_in_class = np.arange(len(rows)) - np.repeat(starts, np.diff([*starts, len(rows)]))
        return np.union1d(rows[:PILOT_ROWS], rows[order[number_in_class < 3]])

    def vote(self, n_neighbors: int) -> KNeighborsClassifier:
        """Return unfitted k-NN, whose `score` ranks the methods."""
        return KNeighborsClassifier(n_neighbors, algorithm="brute")

    def scores(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
        """Return accuracy and balanced accuracy."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
            return accuracy_score(truth, predicted), balanced_accuracy_score(truth, predicted)

    def resolution(self, raw: np.ndarray, n_test: float) -> float:
        """Return what one of n_test held-out rows changes in the score: 1 / n_test, as a row is right or wrong."""
        return 1 / n_test


class Regression:
    """The mean of the k nearest rows."""

    name = "regression"
    score_name, second_name = "r2", "mae"

    def check_target(self, y: Any) -> np.ndarray:
        """Return the numbers as float64, NaN where they are missing; refuse what is no number or does not vary."""
        y = _numbers(column_or_1d(y))
        values = y[~np.isnan(y)]
        if len(values) < 4:
            raise ValueError(
                f"y has {len(values)} {_labelled(~np.isnan(y))}rows: regression needs at least 4, "
                "two to learn from and two to hold out."
            )
        size = float(np.abs(values).max())
        spread = float(values.max() - values.min())
        if size >= 1e100:
            raise ValueError(f"y holds values of up to {size:.1e}, whose square is lost: scale it first.")
        if spread <= 1e-10 * size:
            raise ValueError(f"y does not vary: all its values are {values[0]:.6g}, so there is nothing to predict.")
        if spread <= 1e-100:
            raise ValueError(f"y varies by {spread:.1e} in all, whose square is lost: scale it first.")
        return y

    def with_unknown(self, y: np.ndarray, n: int) -> np.ndarray:
        """Return the numbers, and n times NaN, for rows without one."""
        return np.append(y, np.full(n, np.nan))

    def sizes(self, y: np.ndarray) -> np.ndarray:
        """Return the number of rows, as the size of a single class."""
        return np.array([len(y)])

    def most_folds(self, y: np.ndarray, groups: np.ndarray | None) -> tuple[int, str]:
        """Return the largest possible number of folds, and what limits it: the rows, or the groups."""
        if groups is None:
            return len(y) // 2, f"R² needs two rows in every fold, and there are {len(y)}"
        n_groups = len(np.unique(groups))
        return n_groups, f"there are {n_groups} groups"

    def most_inner_folds(self, y: np.ndarray, groups: np.ndarray | None) -> int:
        """Return the same for training rows."""
        return self.most_folds(y, groups)[0]

    def splitter(self, n_splits: int, grouped: bool, seed: int) -> BaseCrossValidator:
        """Return a splitter into folds of equally many rows, or groups."""
        return (GroupKFold if grouped else KFold)(n_splits, shuffle=True, random_state=seed)

    def can_score(self, y: np.ndarray) -> bool:
        """Say whether the held-out values differ: R² compares the errors with their spread."""
        return bool((y != y[0]).any())

    def pilot_rows(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return `PILOT_ROWS` of the rows."""
        return np.sort(np.random.default_rng(0).permutation(rows)[:PILOT_ROWS])

    def vote(self, n_neighbors: int) -> KNeighborsRegressor:
        """Return unfitted k-NN, whose `score` ranks the methods."""
        return KNeighborsRegressor(n_neighbors, algorithm="brute")

    def scores(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
        """Return R² and the mean absolute error."""
        return r2_score(truth, predicted), mean_absolute_error(truth, predicted)

    def resolution(self, raw: np.ndarray, n_test: float) -> float:
        """Return a row's mean part in what the raw features leave unexplained; at least rounding."""
        return max((1 - float(raw.mean())) / n_test, 1e-9)


Task = Classification | Regression
CLASSIFICATION, REGRESSION = Classification(), Regression()
TASKS: dict[str, Task] = {CLASSIFICATION.name: CLASSIFICATION, REGRESSION.name: REGRESSION}


def named_task(name: str) -> Task:
    """Return a task by its name."""
    if name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {name!r}.")
    return TASKS[name]


def _numbers(y: np.ndarray) -> np.ndarray:
    """Return y as float64, NaN where it is missing; refuse infinite values and what is no real number."""
    known = ~is_missing(y)
    if y.dtype == object:
        invalid = known & [not isinstance(value, Real) or isinstance(value, bool) for value in y.tolist()]
    else:
        invalid = known & (y.dtype.kind not in "iuf")
    if invalid.any():
        row = int(invalid.argmax())
        raise ValueError(
            f"y holds {y[row : row + 1].tolist()[0]!r} in row {row}, which is no number: regression predicts numbers; "
            "convert it, or take task='classification' for classes."
        )
    numbers = np.full(len(y), np.nan)
    with np.errstate(over="ignore"):
        numbers[known] = y[known].astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ValueError(f"y is infinite in {infinite.sum()} rows (first: row {infinite.argmax()}): drop them.")
    return numbers


def _labelled(known: np.ndarray) -> str:
    """Return which rows count where some have no label."""
    return "" if known.all() else "labelled "
