"""Columns that would fool a comparison: numbers of the rows, the target under another name, groups
of rows.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import issparse

from .._validation import is_missing, known_labels
from ..evaluation import CLASSIFICATION, Doubt
from ..tables import Cells, TableEncoder
from ..tables.cells import MIN_ROWS, NEARLY_ALL, says_group
from .readers import listed

MAX_ROWS, MAX_COLUMNS = (
    10_000,
    5_000,
)  # that are looked at; in wider tables some column predicts well by chance
SURE = {
    True: 0.99,
    False: 0.999,
}  # from this accuracy, or R² of a regression, a column is suspicious
FEW = 20  # values, each of which may stand for a class, or a number


@dataclass(frozen=True)
class Suspects:
    """What was found.

    Attributes
    ----------
    left_out : list of (column, reason)
        Columns that say nothing: constants, numbers of the rows, identifiers.
    suspicious : list of (column, score)
        Columns that predict the target alone, and with which accuracy, or R² for a regression.
    group_hints : list of (column, n_values)
        Columns whose values may stand for groups of rows that belong together.
    """

    left_out: list[tuple[str, str]] = field(default_factory=list)
    suspicious: list[tuple[str, float]] = field(default_factory=list)
    group_hints: list[tuple[str, int]] = field(default_factory=list)

    def doubts(self, target: str, task: str) -> list[Doubt]:
        """Return why figures of held-out rows may not hold for new rows."""
        form = "{} ({:.1%} of the rows)" if task == CLASSIFICATION.name else "{} (R² {:.4f})"
        found = list[Doubt]()
        if self.suspicious:
            names = listed([form.format(name, score) for name, score in self.suspicious])
            verb = "predicts" if len(self.suspicious) == 1 else "each predict"
            text = (
                f"{names} {verb} {target} alone. What is not known beforehand must be left "
                "out: else these figures "
            )
            found.append(Doubt("leak", f"{text}say nothing of new rows."))
        if self.group_hints:
            names = listed([name for name, _ in self.group_hints])
            looks = (
                "looks like groups of rows"
                if len(self.group_hints) == 1
                else "look like groups of rows"
            )
            text = (
                f"{names} {looks}. For rows of new groups expect less than these figures; --groups "
            )
            found.append(
                Doubt("groups", f"{text}{shlex.quote(self.group_hints[0][0])} measures how much.")
            )
        return found

    def notes(self, target: str, task: str) -> list[str]:
        """Return a line on the suspicious columns, and one for each hint."""
        form = "{} ({:.1%} of the rows)" if task == CLASSIFICATION.name else "{} (R² {:.4f})"
        found = listed([form.format(name, score) for name, score in self.suspicious])
        verb = "predicts" if len(self.suspicious) == 1 else "each predict"
        suspicious = (
            f"suspicious: {found} {verb} {target} alone: leave out what is not known beforehand"
        )
        return [suspicious] * bool(found) + [
            f"{name} looks like groups of rows ({n_values:,} values): if the rows of one "
            "value belong together, give "
            f"--groups {shlex.quote(name)}"
            for name, n_values in self.group_hints
        ]


@dataclass(frozen=True)
class _Evidence:
    """A column: scores from rows of the same value, of close values and of others; whether it
    equals the target.
    """

    name: str
    n_values: int
    most_rows: int  # of one value
    discrete: bool  # text or whole numbers
    same: float
    close: float
    other: float
    equal: bool

    @property
    def score(self) -> float:
        return max(self.same, self.close) if self.discrete or self.n_values <= FEW else self.close

    @property
    def named_group(self) -> bool:
        return self.discrete and says_group(self.name)


def find_suspects(
    encoder: TableEncoder, cells: Cells, y: np.ndarray, task: str, hints: bool
) -> Suspects:
    """Return the suspicious ones among the columns that are learned from; with `hints` also those
    of groups.

    A row is predicted from others, by rows of the same value and by the four closest ones (for a
    regression, on the line through the values below and above). Suspicious is what is nearly always
    right, far beyond the other columns and the largest class, and what maps one-to-one on the
    target. If more than a fifth of the columns predict that well, the task is easy. At most 10,000
    rows are drawn; more than 5,000 columns, or sparse ones, are not looked at. Cost: O(n log n) per
    column.
    """
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~is_missing(y)))[:MAX_ROWS]
    labels, classify, kept = known_labels(y, rows), task == CLASSIFICATION.name, encoder.columns_
    left_out = list(encoder.dropped_.items())
    if (
        len(rows) < MIN_ROWS
        or (labels == labels[0]).all()
        or len(kept) > MAX_COLUMNS
        or issparse(cells.numbers)
    ):
        return Suspects(left_out)
    target = np.unique(labels, return_inverse=True)[1] if classify else labels
    base = np.bincount(target).max() / len(rows) if classify else 0.0
    n_classes = int(target.max()) + 1 if classify else 0
    found, groups = [], {}
    for kept_column in kept:
        values = _complete(kept_column.scalars(encoder.given(cells, kept_column)))
        with np.errstate(
            all="ignore"
        ):  # squares of huge numbers are infinite, the score NaN: not suspicious
            column = _evidence(
                kept_column.name, values[rows], not kept_column.ordered, target, classify
            )
        found.append(column)
        if (
            hints
            and column.discrete
            and (column.named_group or _agree(column, len(rows), n_classes, base))
        ):
            n_values = len(np.unique(values))
            if max(10, n_classes + 1) <= n_values <= NEARLY_ALL * cells.n_rows:
                groups[column.name] = n_values
    others = [column for column in found if not (column.named_group and column.name in groups)]
    return Suspects(
        left_out, _suspicious(others, base, len(rows), SURE[classify]), list(groups.items())
    )


def _complete(values: np.ndarray) -> np.ndarray:
    """Return numbers with one that is larger than all others where some are missing."""
    missing = np.isnan(values)
    return (
        np.where(missing, np.ceil(np.nanmax(values, initial=0)) + 1, values)
        if missing.any()
        else values
    )


def _suspicious(
    found: list[_Evidence], base: float, n_rows: int, sure: float
) -> list[tuple[str, float]]:
    sure_ones = [column for column in found if column.score >= sure]
    rest = max([base, *(column.score for column in found if column.score < sure)])
    easy = len(sure_ones) > max(1, len(found) // 5) or len(found) == 1
    margin = max(5 / n_rows, 0.05 * (1 - base))
    return [
        (column.name, column.score)
        for column in sure_ones
        if column.equal or (not easy and 1 - rest >= 4 * (1 - column.score) + margin)
    ]


def _agree(column: _Evidence, n_rows: int, n_classes: int, base: float) -> bool:
    """Tell whether rows of one value have one label, or number, and those of the next value another
    one.
    """
    many = (
        max(FEW, 2 * n_classes) < column.n_values <= n_rows / 2 and column.most_rows <= n_rows / 10
    )
    error, chance = 1 - column.same, 1 - base
    return many and error <= min(0.1, chance / 4) and 1 - column.other >= 2 * error + 0.25 * chance


def _evidence(
    name: str, values: np.ndarray, is_text: bool, target: np.ndarray, classify: bool
) -> _Evidence:
    order = np.argsort(values, kind="stable")
    values, target = values[order], target[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    distinct, counts = values[starts], np.diff(starts, append=len(values))
    codes = np.repeat(np.arange(len(distinct)), counts)
    discrete = is_text or bool((distinct == np.rint(distinct)).all())
    if classify:
        countable = discrete or len(distinct) <= FEW
        same, other, equal = (
            _same_classes(codes, len(distinct), target) if countable else (0.0, 0.0, False)
        )
        close = _close_classes(values, target)
    else:
        same, other = _same_numbers(counts, codes, target), _other_numbers(distinct, codes, target)
        close, equal = other, max(same, other) >= 1 - 1e-9
    if is_text:
        close = other = 0.0  # the order of words means nothing
    return _Evidence(name, len(distinct), int(counts.max()), discrete, same, close, other, equal)


def _same_classes(
    codes: np.ndarray, n_values: int, target: np.ndarray
) -> tuple[float, float, bool]:
    """Return how often the other rows of a value are right, or those of the value before, and if
    values are classes.
    """
    n_classes = int(target.max()) + 1
    pairs, counts = np.unique(codes * n_classes + target, return_counts=True)
    order = np.lexsort((counts, value := pairs // n_classes))
    ends = np.flatnonzero(
        np.diff(value[order], append=n_values)
    )  # the largest class of every value, and the next one
    first, starts = counts[order][ends], np.append(0, ends[:-1] + 1)
    second = np.where(ends > starts, counts[order][ends - 1], 0)
    majority, one_to_one = pairs[order][ends] % n_classes, len(pairs) == n_values == n_classes
    return (
        float(first[first > second + 1].sum() / len(codes)),
        (majority[1:] == majority[:-1]).sum() / n_values,
        one_to_one,
    )


def _close_classes(values: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy of a vote among the four rows around each; two against two, the closest
    one decides.
    """
    row, gaps = np.arange(len(values)), np.diff(values, prepend=-np.inf, append=np.inf)
    start = np.clip(row - 2, 0, len(row) - 5)
    votes = sum((labels[start + place] == labels).astype(int) for place in range(5)) - 1
    closest = labels[np.where(gaps[1:] < gaps[:-1], row + 1, row - 1)]
    return float(np.mean((votes > 2) | ((votes == 2) & (closest == labels))))


def _same_numbers(counts: np.ndarray, codes: np.ndarray, target: np.ndarray) -> float:
    """Return R² of the mean of the other rows of the same value."""
    errors = target - (np.bincount(codes, target) / counts)[codes]
    others = np.where(counts > 1, counts / np.maximum(counts - 1, 1), 0)[
        codes
    ]  # leaves the row itself out
    return _r2(np.where(others > 0, others * errors, target - target.mean()), target)


def _other_numbers(x: np.ndarray, codes: np.ndarray, target: np.ndarray) -> float:
    """Return R² of the line through the means at the values below and above; at an end, at the next
    two.
    """
    means = np.bincount(codes, target) / np.bincount(codes)
    if len(x) < 3:
        return _r2(target - means[::-1][codes], target)
    left, right = np.arange(len(x)) - 1, np.arange(len(x)) + 1
    left[[0, -1]], right[[0, -1]] = [1, len(x) - 3], [2, len(x) - 2]
    lines = means[left] + (means[right] - means[left]) * (x - x[left]) / (x[right] - x[left])
    return _r2(target - lines[codes], target)


def _r2(errors: np.ndarray, target: np.ndarray) -> float:
    """Return R², 0 where it is negative or, of huge numbers, none."""
    score = 1 - float((errors**2).sum() / ((target - target.mean()) ** 2).sum())
    return max(0.0, score) if np.isfinite(score) else 0.0
