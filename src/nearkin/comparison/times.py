"""Rows of different times, which folds shuffle: whether later rows are harder to predict.

A column is taken as the time of the rows if the file is sorted by it, or if it holds dates and its
name says that rows were recorded then. Other dates and years, such as those of birth or
construction, are properties like others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import spearmanr
from sklearn.impute import SimpleImputer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._validation import is_missing
from ..tables import Column, DateColumn, words_of

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
MAX_ROWS = 1000  # all distances among these are sorted
K = 10
N_SPLITS, LEVEL = 99, 0.01


@dataclass(frozen=True)
class Later:
    """Later rows that k-NN predicts clearly worse than random ones.

    Attributes
    ----------
    column : str
        The column that holds the time of the rows.
    share : float
        Share of the rows that are earlier.
    error, of_random : float
        Mean error for the later rows, and for as many drawn at random.
    """

    column: str
    share: float
    error: float
    of_random: float


def find_later(X: Any, y: np.ndarray, columns: Sequence[Column], *, classify: bool) -> Later | None:
    """Return whether k-NN predicts later rows from earlier ones clearly worse than random rows.

    This is a permutation test. If the rows were exchangeable in time, the later ones would be a
    random part of them; p is the share of the splits, that in time and 99 at random, with a mean
    error as large as that of the split in time.
    """
    found = _times(X, columns)
    if found is None:
        return None
    name, times = found
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.flatnonzero(~is_missing(y)))
    rows = rows[np.isfinite(times[rows])][:MAX_ROWS]
    if len(rows) < FEWEST_ROWS:
        return None
    is_later = times[rows] > np.quantile(times[rows], EARLIER)
    n_later = np.count_nonzero(is_later)
    if n_later < FEWEST_LATER:
        return None
    filled = SimpleImputer(strategy="median", keep_empty_features=True)
    Z = make_pipeline(filled, StandardScaler()).fit_transform(X[rows])
    nearest = NearestNeighbors(n_neighbors=len(rows) - 1).fit(Z).kneighbors(return_distance=False)
    answers = y[rows]
    if classify:
        answers = np.unique(answers.astype(str), return_inverse=True)[1]
    later = _error(nearest, answers, is_later, classify)
    drawn = (rng.permutation(is_later) for _ in range(N_SPLITS))
    random = [_error(nearest, answers, held_out, classify) for held_out in drawn]
    if (1 + np.sum(np.array(random) >= later)) / (1 + N_SPLITS) > LEVEL:
        return None
    return Later(name, 1 - n_later / len(rows), later, float(np.mean(random)))


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
