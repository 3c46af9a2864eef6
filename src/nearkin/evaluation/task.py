"""What the neighbours are asked for: a class, by their vote, or a number, by their mean.

All that a comparison does differently for the two is here, as one object each: which targets there are, how rows are
held out, what is voted and how it is scored, and how a score is written.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error, r2_score
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.validation import column_or_1d

from .._labels import encode_labels, is_missing, known_labels
from .methods import Method, default_methods, regression_methods, semi_supervised_methods

PILOT_ROWS = 1000
DIGITS = 3  # of an error in the target's own unit


class Task(ABC):
    """A question to the neighbours. There are two, `CLASSIFICATION` and `REGRESSION`; neither has a state.

    Attributes
    ----------
    name : str
    score_name, second_name : str
        Of the score that ranks and of the one beside it, as attributes of a `MethodResult`.
    headings : tuple of str
        The two, above a column of figures.
    factor, decimals, unit : int, int, str
        How a score is written: times `factor`, with so many decimals, then the unit.
    prefix, points : str
        What stands before a score that nothing else names, and after a difference.
    claim : str
        With a score in its place, what is said of a vote.
    rows : str
        What turns "held-out rows" into what a score is of.
    praise : str
        What a method does that is shown to be better.
    title, axis : str
        Of a picture of scores.
    """

    name: str
    score_name: str
    second_name: str
    headings: tuple[str, str]
    factor: int
    decimals: int
    unit: str
    prefix: str
    points: str
    check_writable: str
    rows: str
    praise: str
    title: str
    axis: str

    @abstractmethod
    def check_target(self, y: Any) -> np.ndarray:
        """Return the target of a comparison, or raise a ValueError that names the row, the value and the remedy.

        Rows may lack one (None, NaN): what is counted are the others.
        """

    @abstractmethod
    def with_unknown(self, y: np.ndarray, n: int) -> np.ndarray:
        """Return the target for methods that learn from rows without a label, n of which follow those of y."""

    @abstractmethod
    def sizes(self, y: np.ndarray) -> np.ndarray:
        """Return the sizes of the classes; of numbers all are of one."""

    @abstractmethod
    def most_folds(self, y: np.ndarray, groups: np.ndarray | None) -> tuple[int, str]:
        """Return into how many folds all rows can be cut, and why not into more."""

    @abstractmethod
    def most_inner_folds(self, y: np.ndarray, groups: np.ndarray | None) -> int:
        """Return into how many folds some training rows can be cut; less than 2 is none."""

    @abstractmethod
    def splitter(self, n_splits: int, grouped: bool, seed: int) -> BaseCrossValidator:
        """Return what draws the folds."""

    @abstractmethod
    def can_score(self, y: np.ndarray) -> bool:
        """Tell whether a prediction of these held-out targets has a score."""

    @abstractmethod
    def pilot_rows(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return about `PILOT_ROWS` of the rows, on which a fit takes as long as its growth with the rows says."""

    @abstractmethod
    def vote(self, n_neighbors: int) -> BaseEstimator:
        """Return k-NN, unfitted; its own `score` is the one that ranks."""

    @abstractmethod
    def scores(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
        """Return the score that ranks and the one beside it."""

    @abstractmethod
    def resolution(self, raw: np.ndarray, n_test: float) -> float:
        """Return what one of `n_test` held-out rows changes in a score, where the raw features have these scores."""

    @abstractmethod
    def methods(self, *, partly: bool = False) -> list[Method]:
        """Return the contestants; more of them where the table is `partly` labelled."""

    @abstractmethod
    def second_mean_std(self, values: np.ndarray) -> str:
        """Return mean and deviation of the score beside the one that ranks."""

    def figure(self, score: float) -> str:
        """Return a score, e.g. "95.4%" or "0.954"."""
        return f"{self.factor * score:.{self.decimals}f}{self.unit}"

    def mean_std(self, values: np.ndarray) -> str:
        """Return mean and deviation without the unit."""
        mean, std = (f"{self.factor * value:.{self.decimals}f}" for value in (values.mean(), values.std(ddof=1)))
        return f"{mean} ± {std}"

    def signed(self, difference: float) -> str:
        """Return a difference of scores, e.g. "+1.2"; never "-0.0"."""
        return f"{round(self.factor * difference, self.decimals) + 0.0:+.{self.decimals}f}"

    def said(self, score: float) -> str:
        """Return what is said of a vote with this score, e.g. "right in 95.4%"."""
        return self.check_writable.format(self.figure(score))


class Classification(Task):
    """The class that most of the k nearest rows have."""

    name = "classification"
    score_name, second_name = "accuracy", "balanced_accuracy"
    headings = ("accuracy %", "balanced %")
    factor, decimals, unit = 100, 1, "%"
    prefix, points = "", " points"
    check_writable, rows = "right in {}", "of"
    praise = "makes nearest neighbours right more often"
    title, axis = "Accuracy", "held-out rows right (%)"

    def check_target(self, y: Any) -> np.ndarray:
        """Return the labels; refuse real numbers and classes of a single row."""
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
                f"class {classes[sizes.argmin()]!s} has a single {_counted(known)}row, which cannot be both "
                f"learned from and held out: merge it with another class or drop it{remedy}."
            )
        return y

    def with_unknown(self, y: np.ndarray, n: int) -> np.ndarray:
        """Return the numbers of the classes, which may have any name, and -1."""
        return np.append(np.unique(y, return_inverse=True)[1], np.full(n, -1))

    def sizes(self, y: np.ndarray) -> np.ndarray:
        """Return the sizes of the classes."""
        return np.unique(y, return_counts=True)[1]

    def most_folds(self, y: np.ndarray, groups: np.ndarray | None) -> tuple[int, str]:
        """Return the rows of the smallest class; with groups, no more than groups and rows of any class."""
        labels, counts = np.unique(y, return_counts=True)
        if groups is None:
            return int(counts.min()), f"class {labels[counts.argmin()]!s} has {counts.min()} rows"
        n_groups = len(np.unique(groups))
        reason = f"there are {n_groups} groups, and at most {counts.max()} rows in a class"
        return min(n_groups, int(counts.max())), reason

    def most_inner_folds(self, y: np.ndarray, groups: np.ndarray | None) -> int:
        """Return as many as the smallest class has rows, but 2; none where every class has a single row."""
        counts = self.sizes(y)
        possible = max(int(counts.min()), 2) if groups is None else len(np.unique(groups))
        return min(possible, int(counts.max()))

    def splitter(self, n_splits: int, grouped: bool, seed: int) -> BaseCrossValidator:
        """Return what draws folds with equal shares of the classes."""
        return (StratifiedGroupKFold if grouped else StratifiedKFold)(n_splits, shuffle=True, random_state=seed)

    def can_score(self, y: np.ndarray) -> bool:
        """Return True: any label is right or wrong."""
        return True

    def pilot_rows(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return `PILOT_ROWS` of the rows and, in any case, three of every class."""
        rows = np.random.default_rng(0).permutation(rows)
        labels = known_labels(y, rows)
        order = np.argsort(labels, kind="stable")
        starts = np.unique(labels[order], return_index=True)[1]
        number_in_class = np.arange(len(rows)) - np.repeat(starts, np.diff([*starts, len(rows)]))
        return np.union1d(rows[:PILOT_ROWS], rows[order[number_in_class < 3]])

    def vote(self, n_neighbors: int) -> BaseEstimator:
        """Return the vote of the k nearest."""
        return KNeighborsClassifier(n_neighbors, algorithm="brute")

    def scores(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
        """Return the share of the rows, and the mean share of the classes, that is right."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
            return accuracy_score(truth, predicted), balanced_accuracy_score(truth, predicted)

    def resolution(self, raw: np.ndarray, n_test: float) -> float:
        """Return 1 / n_test: a row is right or wrong."""
        return 1 / n_test

    def methods(self, *, partly: bool = False) -> list[Method]:
        """Return `default_methods`, and the semi-supervised ones."""
        return [*default_methods(), *(semi_supervised_methods() if partly else [])]

    def second_mean_std(self, values: np.ndarray) -> str:
        """Return both in percent."""
        return self.mean_std(values)


class Regression(Task):
    """The mean of the k nearest rows."""

    name = "regression"
    score_name, second_name = "r2", "mae"
    headings = ("R²", "MAE")
    factor, decimals, unit = 1, 3, ""
    prefix, points = "R² ", ""
    check_writable, rows = "at R² {}", "on"
    praise = "lets nearest neighbours predict better"
    title, axis = "R²", "R² on held-out rows"

    def check_target(self, y: Any) -> np.ndarray:
        """Return the numbers as float64; refuse what is none, and numbers that do not vary or whose square is lost."""
        y = _numbers(column_or_1d(y))
        values = y[~np.isnan(y)]
        if len(values) < 4:
            raise ValueError(
                f"y has {len(values)} {_counted(~np.isnan(y))}rows: regression needs at least 4, "
                "two to learn from and two to hold out."
            )
        size = float(np.abs(values).max())
        if size >= 1e100:
            raise ValueError(f"y holds values of up to {size:.1e}, whose square is lost: scale it first.")
        spread = float(values.max() - values.min())
        if spread <= 1e-10 * size:
            raise ValueError(f"y does not vary: all its values are {values[0]:.6g}, so there is nothing to predict.")
        if spread <= 1e-100:
            raise ValueError(f"y varies by {spread:.1e} in all, whose square is lost: scale it first.")
        return y

    def with_unknown(self, y: np.ndarray, n: int) -> np.ndarray:
        """Return the numbers, and NaN."""
        return np.append(y, np.full(n, np.nan))

    def sizes(self, y: np.ndarray) -> np.ndarray:
        """Return the number of rows, as the size of a single class."""
        return np.array([len(y)])

    def most_folds(self, y: np.ndarray, groups: np.ndarray | None) -> tuple[int, str]:
        """Return as many as have two rows each, or as there are groups."""
        if groups is None:
            return len(y) // 2, f"R² needs two rows in every fold, and there are {len(y)}"
        n_groups = len(np.unique(groups))
        return n_groups, f"there are {n_groups} groups"

    def most_inner_folds(self, y: np.ndarray, groups: np.ndarray | None) -> int:
        """Return the same for training rows."""
        return self.most_folds(y, groups)[0]

    def splitter(self, n_splits: int, grouped: bool, seed: int) -> BaseCrossValidator:
        """Return what draws folds of equally many rows, or groups."""
        return (GroupKFold if grouped else KFold)(n_splits, shuffle=True, random_state=seed)

    def can_score(self, y: np.ndarray) -> bool:
        """Tell whether the values differ: R² compares the errors with their spread."""
        return bool((y != y[0]).any())

    def pilot_rows(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return `PILOT_ROWS` of the rows."""
        return np.sort(np.random.default_rng(0).permutation(rows)[:PILOT_ROWS])

    def vote(self, n_neighbors: int) -> BaseEstimator:
        """Return the mean of the k nearest."""
        return KNeighborsRegressor(n_neighbors, algorithm="brute")

    def scores(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
        """Return R² and the mean absolute error."""
        return r2_score(truth, predicted), mean_absolute_error(truth, predicted)

    def resolution(self, raw: np.ndarray, n_test: float) -> float:
        """Return a row's mean part in what the raw features leave unexplained; at least what rounding does."""
        return max((1 - float(raw.mean())) / n_test, 1e-9)

    def methods(self, *, partly: bool = False) -> list[Method]:
        """Return `regression_methods`."""
        return regression_methods()

    def second_mean_std(self, values: np.ndarray) -> str:
        """Return both in the unit of the target, with as many decimals as give the mean three digits."""
        mean, std = float(values.mean()), float(values.std(ddof=1))
        order = int(np.floor(np.log10(mean))) if mean > 0 else 0
        if not -4 <= order <= 6:
            return f"{mean:.{DIGITS - 1}e} ± {std:.0e}"
        decimals = max(0, DIGITS - 1 - order)
        return f"{mean:.{decimals}f} ± {std:.{decimals}f}"


CLASSIFICATION, REGRESSION = Classification(), Regression()
TASKS: dict[str, Task] = {task.name: task for task in (CLASSIFICATION, REGRESSION)}


def named_task(name: str) -> Task:
    """Return a task by its name."""
    if name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {name!r}.")
    return TASKS[name]


def _numbers(y: np.ndarray) -> np.ndarray:
    """Return y as float64, NaN where it is missing; refuse infinite values, and what is no real number."""
    known = ~is_missing(y)
    if y.dtype == object:
        strange = np.array([not isinstance(value, Real) or isinstance(value, bool) for value in y.tolist()])
    else:
        strange = np.full(len(y), y.dtype.kind not in "iuf")
    strange &= known
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(
            f"y holds {y[row : row + 1].tolist()[0]!r} in row {row}, which is no number: regression predicts numbers; "
            "convert it, or take task='classification' for classes."
        )
    with np.errstate(over="ignore"):
        numbers = np.full(len(y), np.nan)
        numbers[known] = y[known].astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ValueError(f"y is infinite in {infinite.sum()} rows (first: row {infinite.argmax()}): drop them.")
    return numbers


def _counted(known: np.ndarray) -> str:
    """Return which rows count where some have no label."""
    return "" if known.all() else "labelled "
