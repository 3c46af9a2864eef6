"""A table to compare methods on: rows as numbers, their target, and what its columns give away.

It comes from a data frame with text, dates and gaps, from an array, or from the cells of a file.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import RandomForestClassifier

from .._labels import known_labels
from .._messages import in_line, listed
from .._validation import (
    as_rows,
    check_consistent_length,
    is_missing,
    refuse_foreign,
    rows_of,
    weighted_rows,
)
from ..neighbors import identical_rows
from ..tables import (
    MIN_ROWS,
    NEARLY_ALL,
    Cells,
    Column,
    TableEncoder,
    filled_note,
    learn_target,
    says_group,
)
from ..tables.cells import read_cells
from ..tables.target import column_of
from .scores import CLASSIFICATION

# Columns that would fool a comparison: copies of the target, and groups of rows.

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
        Columns that alone predict the target, with their accuracy, or R² for a regression.
    group_hints : list of (column, n_values)
        Columns whose values may represent groups of rows that belong together.
    """

    suspicious: list[tuple[str, float]] = field(default_factory=list)
    group_hints: list[tuple[str, int]] = field(default_factory=list)

    def notes(self, target: str, task: str) -> list[str]:
        """Return a line on the suspicious columns, and one for each hint."""
        found = [
            f"{name} looks like groups of rows ({n_values:,} values): if rows with the same value "
            f"belong together, give --groups {shlex.quote(name)}"
            for name, n_values in self.group_hints
        ]
        if self.suspicious:
            leak = self.leak(target, task)
            found.insert(0, f"suspicious: {leak}: leave out what is not known beforehand")
        return found

    def leak(self, target: str, task: str) -> str:
        """Return which columns alone predict the target."""
        form = "{} ({:.1%} of the rows)" if task == CLASSIFICATION.name else "{} (R² {:.4f})"
        names = listed([form.format(*found) for found in self.suspicious])
        verb = "alone predicts" if len(self.suspicious) == 1 else "each alone predict"
        return f"{names} {verb} {in_line(target)}"

    @classmethod
    def of_numbers(
        cls, names: Iterable[Any], X: np.ndarray, y: np.ndarray, task: str, *, hints: bool
    ) -> Suspects:
        """Return the suspicious columns of X, NaN where a cell is missing, and with `hints` those
        that look like groups.
        """
        columns = zip(names, X.T, strict=True)
        raw = [RawColumn(str(name), True, partial(np.asarray, values)) for name, values in columns]
        return find_suspects(raw, y, task, hints=hints)


class RawColumn(NamedTuple):
    """A column of a table before it is encoded, as numbers, NaN in missing cells.

    `ordered` says whether the order of the values has a meaning. Numbers are read whenever they
    are needed, so that a table is not held twice.
    """

    name: str
    ordered: bool
    read: Callable[[], np.ndarray]

    @property
    def values(self) -> np.ndarray:
        """Return the values; a missing cell is one of its own, larger than all others."""
        read = self.read()
        return np.where(np.isnan(read), np.ceil(np.nanmax(read, initial=0)) + 1, read)


def raw_columns(encoder: TableEncoder, cells: Cells) -> list[RawColumn]:
    """Return the columns that an encoder kept, none of sparse ones."""

    def read(column: Column) -> np.ndarray:
        return column.scalars(encoder.given(cells, column))

    kept = [] if issparse(cells.numbers) else encoder.columns_
    return [RawColumn(one.name, one.ordered, partial(read, one)) for one in kept]


class Evidence(NamedTuple):
    """What the values of a column say of the target.

    `score` is the accuracy of a prediction from this column, or R². `is_target` says whether it is
    the target in other words, `is_discrete` whether values are text or whole numbers, and
    `is_grouped` whether these look like groups of rows.
    """

    name: str
    score: float
    is_target: bool
    is_discrete: bool
    is_grouped: bool


class Target(NamedTuple):
    """The labels of some rows as codes, or their numbers; the largest class has the share `base`.

    A regression has no classes.
    """

    values: np.ndarray
    n_classes: int = 0
    base: float = 0.0

    @classmethod
    def of(cls, labels: np.ndarray, task: str) -> Target:
        """Return labels or numbers as a target."""
        if task != CLASSIFICATION.name:
            return cls(labels)
        codes = np.unique(labels, return_inverse=True)[1]
        sizes = np.bincount(codes)
        return cls(codes, len(sizes), sizes.max() / len(codes))


def find_suspects(
    columns: Sequence[RawColumn], y: np.ndarray, task: str, *, hints: bool
) -> Suspects:
    """Return the suspicious columns; with `hints` also those that look like groups.

    Each row is predicted by rows with the same value and by the four closest ones (for a
    regression, on the line through the values below and above). A column is suspicious if it is
    nearly always right, far more often than other columns and the largest class, or if it maps
    one-to-one to the target. If more than a fifth of the columns predict that well, the task is
    easy, and only one-to-one columns are suspicious. Otherwise, a single column is also suspicious
    if it is right in 95 % of the rows, far more often than a random forest of all others. At most
    10,000 rows are drawn; more than 5,000 columns are not examined. Cost: O(n log n) per column.
    """
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~is_missing(y)))[:MAX_ROWS]
    labels = known_labels(y, rows)
    is_small = len(rows) < MIN_ROWS or (labels == labels[0]).all()
    if is_small or not 0 < len(columns) <= MAX_COLUMNS:
        return Suspects()
    target = Target.of(labels, task)
    found, group_hints = list[Evidence](), []

    @cache
    def distinct() -> np.ndarray:
        """Return one row of each group of equal rows, since copies share a label."""
        codes = [np.unique(one.values[rows], return_inverse=True)[1] for one in columns]
        return np.unique(identical_rows(np.transpose(codes) + 0.0), return_index=True)[1]

    for column in columns:
        values = column.values
        evidence = _evidence(column, values[rows], target)
        is_grouped = evidence.is_grouped
        if hints and is_grouped and len(some := distinct()) < len(rows):
            of_some = target._replace(values=target.values[some])
            is_grouped = _evidence(column, values[rows[some]], of_some).is_grouped
        is_group = evidence.is_discrete and says_group(column.name)
        if hints and (is_group or is_grouped):
            n_values = len(np.unique(values))
            if max(10, target.n_classes + 1) <= n_values <= NEARLY_ALL * len(y):
                group_hints.append((column.name, n_values))
                if is_group:
                    continue
        found.append(evidence)
    hinted = [name for name, _ in group_hints]
    return Suspects(_suspicious(found, columns, rows, target, hinted), group_hints)


def _suspicious(
    found: Sequence[Evidence],
    columns: Sequence[RawColumn],
    rows: np.ndarray,
    target: Target,
    hinted: Sequence[str],
) -> list[tuple[str, float]]:
    """Return the columns that alone predict the target, with their scores."""
    surest = SURE[target.n_classes > 0]
    easy = sum(one.score >= surest for one in found) > max(1, len(found) // 5) or len(found) == 1
    rest = max([target.base, *(one.score for one in found if one.score < surest)])
    margin = max(5 / len(rows), 0.05 * (1 - target.base))

    def leads(score: float, others: float) -> bool:
        return 1 - others >= 4 * (1 - score) + margin

    suspicious = [
        (one.name, one.score)
        for one in found
        if one.score >= surest and (one.is_target or (not easy and leads(one.score, rest)))
    ]
    nearly = [one for one in found if NEARLY_SURE <= one.score < surest and one.name not in hinted]
    if target.n_classes and not easy and not suspicious and len(nearly) == 1:
        name, score = nearly[0].name, nearly[0].score
        best = max([target.base, *(other.score for other in found if other.name != name)])
        # most columns as good as this one occur together with another good one: then no forest is
        # needed
        others = [column for column in columns if column.name != name]
        if leads(score, best) and leads(score, _forest_accuracy(others, rows, target)):
            suspicious = [(name, score)]
    return suspicious


def _forest_accuracy(columns: Sequence[RawColumn], rows: np.ndarray, target: Target) -> float:
    """Return the out-of-bag accuracy of a random forest on some of the rows."""
    rows = rows[:FOREST_ROWS]
    # codes, since numbers may exceed the range of a forest
    codes = [np.unique(column.values[rows], return_inverse=True)[1] for column in columns]
    forest = RandomForestClassifier(oob_score=True, random_state=0)
    return float(forest.fit(np.transpose(codes), target.values[: len(rows)]).oob_score_)


# squares of huge numbers overflow, and the score is NaN: not suspicious
@np.errstate(all="ignore")
def _evidence(column: RawColumn, values: np.ndarray, given: Target) -> Evidence:
    """Return what the values of some rows of a column say of the target."""
    n_classes, ordered = given.n_classes, column.ordered
    order = np.argsort(values, kind="stable")
    values, target = values[order], given.values[order]
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
    most, error, chance = len(values) / 2, 1 - same, 1 - given.base
    # if many values occur in a single row, only the others count
    if n_classes and not (len(distinct) <= most and error <= min(0.1, chance / 4)):
        most, error = len(values), _disagreement(codes, target)
    many = max(FEW, 2 * n_classes) < len(distinct) <= most
    agree = error <= min(0.1, chance / 4) and 1 - other >= 2 * error + 0.25 * chance
    grouped = discrete and many and agree and int(counts.max()) <= len(values) / 10
    return Evidence(column.name, score, equal, discrete, grouped)


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


# The table.

# Categories, above which boosting is better with target statistics than with indicators, of 1,500
# rows; see `default_references`
MANY = 50


@dataclass(frozen=True)
class Categories:
    """Columns of many categories, which references encode in their own way.

    Attributes
    ----------
    codes : ndarray of int of shape (n, n_columns)
        The values; missing cells are a value, too.
    indicators : ndarray of int
        The features of X that indicate some of these values.
    """

    codes: np.ndarray
    indicators: np.ndarray


@dataclass(frozen=True, kw_only=True)
class EncodedTable:
    """Rows, their target, and how they were obtained.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, NaN for missing numbers.
    y : ndarray of shape (n,)
        Classes, with None or NaN for unlabelled rows; for a regression float64, NaN for none.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    weights : ndarray of shape (n,) or None
        Weights of the rows, larger than 0.
    task : str
        "classification" or "regression".
    target : str
        Name of the column of y.
    encoder : TableEncoder or None
        Encodes rows of other tables with these columns like X.
    categories : Categories or None
        The columns of many categories, for references.
    suspects : Suspects
        The columns that are suspicious, and those that look like groups.
    notes : list of str
        What was ignored or encoded.
    row_numbers : ndarray of shape (n,) or None
        Row numbers in the file (the first is 0), if empty rows were left out.
    """

    X: Any
    y: np.ndarray
    groups: Any = None
    weights: np.ndarray | None = None
    task: str = CLASSIFICATION.name
    target: str = "the target"
    encoder: TableEncoder | None = None
    categories: Categories | None = None
    suspects: Suspects = field(default_factory=Suspects)
    notes: list[str] = field(default_factory=list)
    row_numbers: np.ndarray | None = None

    @classmethod
    def of_cells(
        cls,
        cells: Cells,
        encoder: TableEncoder,
        *,
        hints: bool,
        notes: Sequence[str] = (),
        **given: Any,
    ) -> Self:
        """Return cells as rows of an encoder that was fitted to them, which overwrites them.

        With `hints`, columns are named that look like groups. The other attributes are given.
        """
        columns = raw_columns(encoder, cells)
        suspects = find_suspects(columns, given["y"], given["task"], hints=hints)
        categories = many_categories(encoder, columns)
        X, *_ = encoder.encode(cells)  # what it found is among its remarks
        names, done = encoder.get_feature_names_out(), "filled by the median (kept by NCA tables)"
        notes = [*notes, *encoder.remarks_, *filled_note(X, names, done)]
        return cls(
            X=X, encoder=encoder, suspects=suspects, categories=categories, notes=notes, **given
        )

    def in_file(self, rows: np.ndarray) -> np.ndarray:
        """Return the row numbers of some rows in their file."""
        return rows if self.row_numbers is None else self.row_numbers[rows]


def from_frame(
    X: Any, y: Any, groups: Any, task: str, unlabelled: Any = None, sample_weight: Any = None
) -> EncodedTable:
    """Return a data frame or an array as a table, without rows of weight 0.

    Rows are encoded if the target is a named column, or if a column of a data frame is not numeric.
    """
    refuse_foreign(X)
    named = {what: name for what, name in (("y", y), ("groups", groups)) if isinstance(name, str)}
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    is_frame = hasattr(frame, "iloc") and hasattr(frame, "columns")
    columns = {what: column_of(frame, what, name) for what, name in named.items()}
    features = frame.drop(columns=list(named.values())) if named else frame
    y, groups = (columns.get(what, values) for what, values in (("y", y), ("groups", groups)))
    check_consistent_length(features, y, groups)
    features, y, weights, kept = weighted_rows(features, y, sample_weight)
    if groups is not None:
        groups = rows_of(groups, kept)
    y, notes = learn_target(y, named.get("y"), task, unlabelled=unlabelled)
    given = {"y": y, "groups": groups, "weights": weights, "task": task}
    if "y" in named:
        given["target"] = named["y"]
    elif not is_frame or all(getattr(of, "kind", "O") in "biuf" for of in features.dtypes):
        rows = as_rows(features, missing=True)
        names = [*features.columns] if is_frame else [f"column {j}" for j in range(rows.shape[1])]
        if issparse(rows):
            return EncodedTable(X=rows, **given)
        hints = is_frame and groups is None
        suspects = Suspects.of_numbers(names, rows, y, task, hints=hints)
        return EncodedTable(X=rows, suspects=suspects, **given)
    # The encoder sees the rows of all folds, but no target. What it learns of them is harmless: a
    # value that only held-out rows have is constant in the training rows.
    cells = read_cells(features, strict=False)
    encoder = TableEncoder(missing="keep").fit(cells, sample_weight=weights)
    return EncodedTable.of_cells(cells, encoder, hints=groups is None, notes=notes, **given)


def many_categories(encoder: TableEncoder, columns: Sequence[RawColumn]) -> Categories | None:
    """Return the columns of many categories, or None.

    These have more than 50 values, but not half as many as rows: those of text mostly differ.
    """
    codes, indicators, first = list[np.ndarray](), list[int](), 0
    for column, raw in zip(encoder.columns_, columns, strict=False):  # none of sparse rows
        features = column.features
        if not column.ordered:
            values, of_column = np.unique(raw.values, return_inverse=True)
            if MANY < len(values) <= len(of_column) / 2:
                codes.append(of_column)
                levels = (at for at, feature in enumerate(features, first) if feature.is_level)
                indicators += levels
        first += len(features)
    return Categories(np.column_stack(codes), np.array(indicators, int)) if codes else None
