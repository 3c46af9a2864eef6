"""Columns that would fool a comparison: row numbers, copies of the target, groups of rows."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import RandomForestClassifier

from .._labels import known_labels
from .._messages import listed
from .._validation import is_missing
from ..comparison import CLASSIFICATION, Doubt
from ..neighbors import identical_rows
from ..tables import MIN_ROWS, NEARLY_ALL, Cells, Column, TableEncoder, says_group

# Limits: in wider tables, some column predicts well by chance.
MAX_ROWS = 10_000
MAX_COLUMNS = 5_000
# From this accuracy (True), or R² of a regression (False), a column is suspicious.
SURE = {True: 0.99, False: 0.999}
# From this accuracy on, if all others together are far behind.
NEARLY_SURE = 0.95
FOREST_ROWS = 2000  # on which columns are compared with a forest
SURE_OF_GROUPS = 5  # standard deviations of chance, since there are many columns
FEW = 20  # values that may each represent a class, or a number


@dataclass(frozen=True)
class Suspects:
    """The findings.

    Attributes
    ----------
    suspicious : list of (column, score)
        Columns that predict the target alone, with their accuracy, or R² for a regression.
    group_hints : list of (column, n_values)
        Columns whose values may represent groups of rows that belong together.
    """

    suspicious: list[tuple[str, float]] = field(default_factory=list)
    group_hints: list[tuple[str, int]] = field(default_factory=list)

    def doubts(self, target: str, task: str) -> list[Doubt]:
        """Return reasons why held-out scores may not hold for new rows."""
        found = list[Doubt]()
        if self.suspicious:
            text = (
                f"{self._leak(target, task)}. Leave out what is not known beforehand, or these "
                "scores say nothing about new rows."
            )
            found.append(Doubt("leak", text))
        if self.group_hints:
            names = [name for name, _ in self.group_hints]
            looks = "looks" if len(names) == 1 else "look"
            text = (
                f"{listed(names)} {looks} like groups of rows. For rows of new groups, "
                f"expect worse scores than these; --groups {shlex.quote(names[0])} measures how "
                "much worse."
            )
            found.append(Doubt("groups", text))
        return found

    def notes(self, target: str, task: str) -> list[str]:
        """Return a line on the suspicious columns, and one for each hint."""
        found = [
            f"{name} looks like groups of rows ({n_values:,} values): if rows with the same value "
            f"belong together, give --groups {shlex.quote(name)}"
            for name, n_values in self.group_hints
        ]
        if self.suspicious:
            leak = self._leak(target, task)
            found.insert(0, f"suspicious: {leak}: leave out what is not known beforehand")
        return found

    def _leak(self, target: str, task: str) -> str:
        form = "{} ({:.1%} of the rows)" if task == CLASSIFICATION.name else "{} (R² {:.4f})"
        names = listed([form.format(*found) for found in self.suspicious])
        verb = "predicts" if len(self.suspicious) == 1 else "each predict"
        return f"{names} {verb} {target} alone"


def find_suspects(
    encoder: TableEncoder, cells: Cells, y: np.ndarray, task: str, hints: bool
) -> Suspects:
    """Return the suspicious columns; with `hints` also those that look like groups.

    Each row is predicted by rows with the same value and by the four closest ones (for a
    regression, on the line through the values below and above). A column is suspicious if it is
    nearly always right, far more often than other columns and the largest class, or if it maps
    one-to-one to the target. If more than a fifth of the columns predict that well, the task is
    easy, and only one-to-one columns are suspicious. Otherwise, a single column is also suspicious
    if it is right in 95 % of the rows, far more often than a random forest of all others. At most
    10,000 rows are drawn; more than 5,000 columns, or sparse ones, are not examined. Cost: O(n log
    n) per column.
    """
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~is_missing(y)))[:MAX_ROWS]
    labels, classify = known_labels(y, rows), task == CLASSIFICATION.name
    if (
        len(rows) < MIN_ROWS
        or (labels == labels[0]).all()
        or len(encoder.columns_) > MAX_COLUMNS
        or issparse(cells.numbers)
    ):
        return Suspects()
    target, n_classes, base = labels, 0, 0.0
    if classify:
        target = np.unique(labels, return_inverse=True)[1]
        sizes = np.bincount(target)
        n_classes, base = len(sizes), sizes.max() / len(rows)
    found, group_hints = list[tuple[str, float, bool]](), []

    def scalars(column: Column) -> np.ndarray:
        values = column.scalars(encoder.given(cells, column))
        # a missing cell is a value of its own, larger than all others
        return np.where(np.isnan(values), np.ceil(np.nanmax(values, initial=0)) + 1, values)

    @cache
    def distinct() -> np.ndarray:
        """Return one row of each group of equal rows, since copies share a label."""
        codes = [np.unique(scalars(one)[rows], return_inverse=True)[1] for one in encoder.columns_]
        return np.unique(identical_rows(np.transpose(codes) + 0.0), return_index=True)[1]

    for column in encoder.columns_:
        values = scalars(column)
        # squares of huge numbers overflow, and the score is NaN: not suspicious
        with np.errstate(all="ignore"):
            score, is_target, is_discrete, is_grouped = _evidence(
                values[rows], target, n_classes, base, column.ordered
            )
            if hints and is_grouped and len(some := distinct()) < len(rows):
                *_, is_grouped = _evidence(
                    values[rows[some]], target[some], n_classes, base, column.ordered
                )
        is_group = is_discrete and says_group(column.name)
        if hints and (is_group or is_grouped):
            n_values = len(np.unique(values))
            if max(10, n_classes + 1) <= n_values <= NEARLY_ALL * cells.n_rows:
                group_hints.append((column.name, n_values))
                if is_group:
                    continue
        found.append((column.name, score, is_target))
    surest = SURE[classify]
    n_sure = sum(score >= surest for _, score, _ in found)
    rest = max([base, *(score for _, score, _ in found if score < surest)])
    easy = n_sure > max(1, len(found) // 5) or len(found) == 1
    margin = max(5 / len(rows), 0.05 * (1 - base))
    suspicious = [
        (name, score)
        for name, score, is_target in found
        if score >= surest and (is_target or (not easy and 1 - rest >= 4 * (1 - score) + margin))
    ]
    hinted = [name for name, _ in group_hints]
    nearly = [
        (name, score)
        for name, score, _ in found
        if NEARLY_SURE <= score < surest and name not in hinted
    ]
    if classify and not easy and not suspicious and len(nearly) == 1:
        (name, score), n = nearly[0], min(len(rows), FOREST_ROWS)
        best = max([base, *(other for one, other, _ in found if one != name)])
        # most columns as good as this one occur together with another good one: then no forest is
        # needed
        if 1 - best >= 4 * (1 - score) + margin:
            columns = [column for column in encoder.columns_ if column.name != name]
            # codes, since numbers may exceed the range of a forest
            codes = [np.unique(scalars(one)[rows[:n]], return_inverse=True)[1] for one in columns]
            if 1 - _forest_accuracy(np.transpose(codes), target[:n]) >= 4 * (1 - score) + margin:
                suspicious = nearly
    return Suspects(suspicious, group_hints)


def _forest_accuracy(X: np.ndarray, y: np.ndarray) -> float:
    """Return the out-of-bag accuracy of a random forest."""
    forest = RandomForestClassifier(oob_score=True, random_state=0)
    return float(forest.fit(X, y).oob_score_)


def _evidence(
    values: np.ndarray, target: np.ndarray, n_classes: int, base: float, ordered: bool
) -> tuple[float, bool, bool, bool]:
    """Return how well a column predicts the target, and three properties of its values.

    They are: whether it is the target, whether values are text or whole numbers, and whether these
    look like groups of rows.
    """
    order = np.argsort(values, kind="stable")
    values, target = values[order], target[order]
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    discrete = not ordered or bool((distinct == np.rint(distinct)).all())
    # scores from rows with the same value, with adjacent values, and with close values
    if n_classes:
        same, other, equal = _same_classes(codes, len(distinct), target)
        close = _close_classes(values, target)
    else:
        same, other = _same_numbers(distinct, codes, counts, target)
        close, equal = other, max(same, other) >= 1 - 1e-9
    if not ordered:
        close = other = 0.0  # the order of words has no meaning
    score = max(same, close) if discrete or len(distinct) <= FEW else close
    # rows with the same value have the same label or number, and those of the next value another
    # one
    most, error, chance = len(values) / 2, 1 - same, 1 - base
    # if many values occur in a single row, only the others count
    if n_classes and not (len(distinct) <= most and error <= min(0.1, chance / 4)):
        most, error = len(values), _disagreement(codes, target)
    many = max(FEW, 2 * n_classes) < len(distinct) <= most
    agree = error <= min(0.1, chance / 4) and 1 - other >= 2 * error + 0.25 * chance
    grouped = discrete and many and agree and int(counts.max()) <= len(values) / 10
    return score, equal, discrete, grouped


def _disagreement(codes: np.ndarray, target: np.ndarray) -> float:
    """Return the disagreement of rows with the same value, relative to that of random rows.

    It is the rate at which another row of the same value has another class, divided by that of
    random rows, times the share of all classes but the largest. It is 1 if too few values occur in
    several rows, or if chance explains the agreement.
    """
    sizes, shares = np.bincount(codes), np.bincount(target) / len(target)
    shared = sizes > 1
    if np.count_nonzero(shared) < FEW:
        return 1.0
    pairs, counts = np.unique(codes * len(shares) + target, return_counts=True)
    value = pairs // len(shares)
    # values with rows of a single class, compared with their expected number by chance
    n_pure = np.count_nonzero(np.bincount(value)[shared] == 1)
    sizes_once, n_values = np.unique(sizes[shared], return_counts=True)
    by_chance = np.array([np.sum(shares**size) for size in sizes_once])
    spread = np.sqrt(n_values @ (by_chance * (1 - by_chance)))
    if n_pure - n_values @ by_chance < SURE_OF_GROUPS * spread:
        return 1.0
    n_equal = np.bincount(value, counts * (counts - 1))[shared]  # others, over all rows of a value
    differ = 1 - np.sum(n_equal / (sizes[shared] - 1)) / sizes[shared].sum()
    return float(differ * (1 - shares.max()) / (1 - np.sum(shares**2)))


def _same_classes(
    codes: np.ndarray, n_values: int, target: np.ndarray
) -> tuple[float, float, bool]:
    """Return the accuracy of other rows with the same value, and with the previous value.

    The third result is whether values correspond to classes.
    """
    n_classes = int(target.max()) + 1
    pairs, counts = np.unique(codes * n_classes + target, return_counts=True)
    order = np.lexsort((counts, value := pairs // n_classes))
    # the largest class of every value, and the second largest
    ends = np.flatnonzero(np.diff(value[order], append=n_values))
    first, starts = counts[order][ends], np.append(0, ends[:-1] + 1)
    second = np.where(ends > starts, counts[order][ends - 1], 0)
    majority, one_to_one = pairs[order][ends] % n_classes, len(pairs) == n_values == n_classes
    return (
        float(first[first > second + 1].sum() / len(codes)),
        (majority[1:] == majority[:-1]).sum() / n_values,
        one_to_one,
    )


def _close_classes(values: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy of a vote of the four rows around each row.

    Ties go to the closest one.
    """
    row, gaps = np.arange(len(values)), np.diff(values, prepend=-np.inf, append=np.inf)
    start = np.clip(row - 2, 0, len(row) - 5)
    votes = sum((labels[start + place] == labels).astype(int) for place in range(5)) - 1
    closest = labels[np.where(gaps[1:] < gaps[:-1], row + 1, row - 1)]
    return float(np.mean((votes > 2) | ((votes == 2) & (closest == labels))))


def _same_numbers(
    x: np.ndarray, codes: np.ndarray, counts: np.ndarray, target: np.ndarray
) -> tuple[float, float]:
    """Return R² of the mean of other rows with the same value, and of a line.

    The line goes through the means at the values below and above; at an end, at the next two.
    """
    means = np.bincount(codes, target) / counts
    errors = (counts / (counts - 1))[codes] * (target - means[codes])  # excludes the row itself
    same = _r2(np.where(counts[codes] > 1, errors, target - target.mean()), target)
    if len(x) < 3:
        return same, _r2(target - means[::-1][codes], target)
    left, right = np.arange(len(x)) - 1, np.arange(len(x)) + 1
    left[[0, -1]], right[[0, -1]] = [1, len(x) - 3], [2, len(x) - 2]
    lines = means[left] + (means[right] - means[left]) * (x - x[left]) / (x[right] - x[left])
    return same, _r2(target - lines[codes], target)


def _r2(errors: np.ndarray, target: np.ndarray) -> float:
    """Return R², or 0 if it is negative or not finite."""
    score = 1 - float((errors**2).sum() / ((target - target.mean()) ** 2).sum())
    return max(0.0, score) if np.isfinite(score) else 0.0
