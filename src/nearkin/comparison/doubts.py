"""Doubts: reasons why new rows may be predicted worse than the held-out ones.

Each is one function of the protocol and the table that returns a doubt or None.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import f, spearmanr
from sklearn.impute import SimpleImputer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._messages import listed, shown
from ..statistics import SIGNIFICANCE
from ..tables import Column, DateColumn, words_of
from .protocol import HALF, Protocol, few_decide
from .scores import CLASSIFICATION
from .table import EncodedTable

MOST_NAMED = 3  # maximum number of rows with a huge number that are listed
FEWEST_IN_TAIL = 20  # distances, whose gaps show what is usual in the tail


@dataclass(frozen=True)
class Doubt:
    """A reason why predictions for new rows may be worse than for the held-out ones.

    Attributes
    ----------
    code : {"twins", "chains", "huge", "leak", "groups", "time"}
        Twins were split; rows form tight groups of more than ten; a few target values that stand
        far apart may be wrong; a column may contain the target; rows that may belong together were
        split; later rows are harder to predict than random ones.
    sentence : str
        What was found.
    remedy : str
        What to do, or to expect.
    """

    code: str
    sentence: str
    remedy: str

    @property
    def text(self) -> str:
        """Return the sentence and the remedy."""
        return f"{self.sentence} {self.remedy}"


def twins(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: twins were split like other rows."""
    if not (protocol.keep_twins and protocol.n_twins):
        return None
    return Doubt(
        "twins",
        "twins were split like other rows, so that some were predicted from their own twin.",
        "Expect worse scores on new rows.",
    )


def chains(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: rows form tight groups of more than ten, which the folds split."""
    if not protocol.n_chained:
        return None
    about = "" if protocol.n_chained == len(protocol.labelled) else "about "
    return Doubt(
        "chains",
        f"{about}{protocol.n_chained:,} rows form tight groups of more than ten: near copies that "
        "share their target, unlike the rows around them.",
        "Give groups (--groups): without these no method is called better.",
    )


def huge(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: a few numbers of the target lie beyond a gap that no long tail explains."""
    rows, y = protocol.labelled, protocol.y[protocol.labelled]
    if protocol.task == CLASSIFICATION or not stand_apart(y):
        return None
    places, median = huge_numbers(y), np.median(y)
    rows, far = table.in_file(rows[places]).tolist(), y[places]
    named = [f"row {row} ({value:.6g})" for row, value in zip(rows, far.tolist(), strict=True)]
    times, ends = "", np.sort(far)[[0, -1]] / (median or np.nan)
    # if there are numbers of both signs, the median is not a typical magnitude
    if y.min() >= 0 and ends[0] >= 2:
        low, high = (f"{end:,.0f}" for end in ends)
        times = f", {low}{f' to {high}' * (low != high)} times the median"
    stand, are, them = ("stand", "they are", "them") if len(far) > 1 else ("stands", "it is", "it")
    return Doubt(
        "huge",
        f"{len(far):,} of {len(y):,} numbers {stand} far apart from the others{times}: "
        f"{listed(named, MOST_NAMED)}.",
        f"If {are} wrong, correct or drop {them}.",
    )


def huge_numbers(y: np.ndarray) -> np.ndarray:
    """Return the positions of the numbers that decide R², the farthest from the median first.

    Among the farthest twentieth (at least five), these are the numbers before a gap: the largest
    ratio of consecutive distances before which there is more than half of the sum of squares.
    """
    distances = np.abs(y - np.median(y))
    distances = distances / distances.max()
    order = np.argsort(-distances, kind="stable")
    few = distances[order[: max(5, len(y) // 20) + 1]]
    shares = np.cumsum(few[:-1] ** 2) / np.sum(distances**2)
    ratios = few[:-1] / np.maximum(few[1:], 1e-12)  # many numbers may equal the median
    return order[: np.where(shares > HALF, ratios, 0.0).argmax() + 1]


def stand_apart(y: np.ndarray) -> bool:
    """Return whether a few numbers decide R² and lie beyond a gap that no long tail explains.

    A skewed target, such as prices, has huge numbers that are right. In a tail that falls as a
    power, and even more slowly than one of logarithms that are normal, the ratios of consecutive
    distances from the median, d_(1) >= d_(2) >= ..., are independent: k log(d_(k) / d_(k + 1)) are
    exponential with one mean (Rényi's representation). The gap after the huge numbers is tested
    against the others of the farthest tenth, at .05, corrected for the choice of the gap.
    """
    if not few_decide(y):
        return False
    distances = np.sort(np.abs(y - np.median(y)))[::-1]
    distances, n_huge = distances[distances > 0], len(huge_numbers(y))
    n_tail = min(max(FEWEST_IN_TAIL, len(distances) // 10), len(distances) - 1)
    if n_tail < 2 or n_huge > n_tail:
        return False
    spacings = -np.arange(1, n_tail + 1) * np.diff(np.log(distances[: n_tail + 1]))
    others = np.delete(spacings, n_huge - 1).mean()
    p_value = f.sf(spacings[n_huge - 1] / max(others, 1e-12), 2, 2 * (n_tail - 1))
    return bool(max(5, len(y) // 20) * p_value < SIGNIFICANCE)


def leak(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: a column alone predicts the target."""
    if not table.suspects.suspicious:
        return None
    return Doubt(
        "leak",
        f"{table.suspects.leak(table.target, protocol.task.name)}.",
        "Leave out what is not known beforehand, or these scores say nothing about new rows.",
    )


def groups(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: a column looks like groups of rows, which the folds split."""
    names = [name for name, _ in table.suspects.group_hints]
    if not names:
        return None
    return Doubt(
        "groups",
        f"{listed(names)} {'looks' if len(names) == 1 else 'look'} like groups of rows.",
        "If so, rows of new groups may be predicted worse than these scores say: give groups "
        f"(--groups {shlex.quote(names[0])}) to see.",
    )


# Rows of different times, which folds shuffle. A column is taken as the time of the rows if the
# file is sorted by it, or if it holds dates and its name says that rows were recorded then. Other
# dates and years, such as those of birth or construction, are properties like others.

# Names of numeric columns of times, by which the rows must be sorted.
TIME_NAMES = {"date", "datetime", "time", "timestamp", "year"}
# Words in the name of a column of dates that say when a row was recorded, and words that deny it.
RECORDED = re.compile(
    "date|datetime|day|time|timestamp|month|datum|fecha|data|"
    "created|recorded|measured|observed|collected|sampled|reported|submitted|logged|received|"
    "visited|visit|ordered|sold|sale|posted|published"
)
OF_SOMETHING_ELSE = re.compile(
    "birth|born|dob|built|construction|constructed|manufactured|registered|registration|founded|"
    "expiry|expires|expired|expiration|due|next|last|first|end|until"
)
# A file is sorted by a column if its rank correlation with the position is as large as this (a list
# of cars sorted by price has .82 with the year), or if as many steps between different values go
# one way: three of four if each of many stations follows another with four years.
TREND, ONE_WAY, FEWEST_STEPS = 0.95, 0.75, 30
EARLIER = 0.7  # share of the rows
FEWEST_ROWS, FEWEST_LATER = 60, 15
MAX_TIMES = 1000  # all distances among these are sorted
K = 10
N_SPLITS, LEVEL = 99, 0.01


def time(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: k-NN predicts later rows from earlier ones clearly worse than random rows.

    This is a permutation test. If the rows were exchangeable in time, the later ones would be a
    random part of them; p is the share of the splits, that in time and 99 at random, with a mean
    error as large as that of the split in time. With groups this is not examined: they stay on one
    side of a fold, and random rows would show something else.
    """
    found = None
    if not protocol.grouped and table.encoder is not None:
        found = _times(table.X, table.encoder.columns_)
    if found is None:
        return None
    (name, times), classify = found, protocol.task == CLASSIFICATION
    rng = np.random.default_rng(0)
    rows = rng.permutation(protocol.labelled)
    rows = rows[np.isfinite(times[rows])][:MAX_TIMES]
    if len(rows) < FEWEST_ROWS:
        return None
    is_later = times[rows] > np.quantile(times[rows], EARLIER)
    n_later = np.count_nonzero(is_later)
    if n_later < FEWEST_LATER:
        return None
    filled = SimpleImputer(strategy="median", keep_empty_features=True)
    Z = make_pipeline(filled, StandardScaler()).fit_transform(table.X[rows])
    nearest = NearestNeighbors(n_neighbors=len(rows) - 1).fit(Z).kneighbors(return_distance=False)
    y = protocol.y[rows]
    later = _error(nearest, y, is_later, classify)
    splits = (rng.permutation(is_later) for _ in range(N_SPLITS))
    random = [_error(nearest, y, held_out, classify) for held_out in splits]
    if (1 + np.sum(np.array(random) >= later)) / (1 + N_SPLITS) > LEVEL:
        return None
    drawn = np.mean(random)
    if classify:
        figures = f"right in {1 - later:.0%} of the later ones, against {1 - drawn:.0%} of"
    else:
        figures = f"off by {later:.3g} on average for the later ones, against {drawn:.3g} for"
    return Doubt(
        "time",
        f"rows differ in time (column {shown(name)}), and the folds shuffle them. k-NN trained on "
        f"the earliest {1 - n_later / len(rows):.0%} is {figures} as many random ones.",
        "Later rows may be predicted worse than these scores say: to see, train on the earlier "
        "rows only, and predict the later ones.",
    )


def _times(X: Any, columns: Sequence[Column]) -> tuple[str, np.ndarray] | None:
    """Return the name and the values of the first column that holds the time of the rows."""
    if issparse(X):
        return None
    first = 0  # index of the first feature of the column
    for column in columns:
        values = X[:, first]
        first += len(column.features)
        is_date = isinstance(column, DateColumn) and column.may_miss
        if is_date and _says_recorded(column.name):
            return column.name, values
        is_time = column.kind == "number" and column.name.strip().lower() in TIME_NAMES
        if (is_date or is_time) and _in_order(values):
            return column.name, values
    return None


def _says_recorded(name: str) -> bool:
    """Return whether the name of a column of dates says that rows were recorded then."""
    words = words_of(name)
    return any(map(RECORDED.fullmatch, words)) and not any(map(OF_SOMETHING_ELSE.fullmatch, words))


def _in_order(values: np.ndarray) -> bool:
    """Return whether the known values rise or fall, on the whole or in most steps."""
    known = values[np.isfinite(values)]
    steps = np.diff(known)
    steps = steps[steps != 0]
    n_one_way = max(np.count_nonzero(steps > 0), np.count_nonzero(steps < 0))
    if len(steps) >= FEWEST_STEPS and n_one_way >= ONE_WAY * len(steps):
        return True
    return bool(len(steps) and abs(spearmanr(np.arange(len(known)), known).statistic) >= TREND)


def _error(nearest: np.ndarray, y: np.ndarray, held_out: np.ndarray, is_classes: bool) -> float:
    """Return the mean error of k-NN for the held-out rows, by the vote of the others.

    Parameters
    ----------
    nearest : ndarray of shape (n, n - 1)
        For every row, all others, the nearest first.
    y : ndarray of shape (n,)
        Class codes, or numbers, whose error is the absolute one.
    held_out : ndarray of shape (n,)
        Whether a row is held out.
    is_classes : bool
    """
    others = nearest[held_out]
    votes = ~held_out[others]
    order = np.argsort(~votes, axis=1, kind="stable")[:, :K]
    answers = y[np.take_along_axis(others, order, axis=1)]
    if not is_classes:
        return float(np.abs(answers.mean(axis=1) - y[held_out]).mean())
    counts = (answers[:, :, None] == np.arange(y.max() + 1)).sum(axis=1)
    return float((counts.argmax(axis=1) != y[held_out]).mean())


# in the order in which they are said
DOUBTS: tuple[Callable[[Protocol, EncodedTable], Doubt | None], ...] = (
    twins,
    chains,
    huge,
    leak,
    groups,
    time,
)
