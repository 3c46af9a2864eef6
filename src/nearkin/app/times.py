"""Rows of different times, which folds shuffle: whether later rows are harder to predict."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._messages import shown
from ..evaluation import CLASSIFICATION, Doubt
from ..tables import DateColumn
from .tables import Table

# Names of numeric columns of times.
TIME_NAMES = {"date", "datetime", "time", "timestamp", "year"}
EARLIER = 0.7  # share of the rows
MAX_ROWS, FEWEST_LATER = 5000, 50
CLEARLY = 3  # standard errors


def time_doubts(table: Table) -> list[Doubt]:
    """Return a doubt if k-NN predicts later rows from earlier ones clearly worse than random rows.

    For comparison, as many random rows are predicted from the others, as by the folds. A column of
    dates, or numbers named like a time, is required. With groups nothing is reported, since they
    are kept on one side of a fold and random rows would show something else.
    """
    found = _times(table)
    if found is None or table.groups is not None:
        return []
    name, times = found
    rng = np.random.default_rng(0)
    rows = rng.permutation(table.labelled)
    rows = rows[np.isfinite(times[rows])][:MAX_ROWS]
    if not len(rows):
        return []
    is_later = times[rows] > np.quantile(times[rows], EARLIER)
    n_later = np.count_nonzero(is_later)
    if n_later < FEWEST_LATER:
        return []
    # the rows are in random order
    drawn = _errors(table, rows[n_later:], rows[:n_later])
    later = _errors(table, rows[~is_later], rows[is_later])
    gap = later.mean() - drawn.mean()
    if not gap > CLEARLY * np.sqrt((later.var() + drawn.var()) / n_later):
        return []
    if table.task == CLASSIFICATION.name:
        figures = (
            f"right in {1 - later.mean():.0%} of the later ones, but in {1 - drawn.mean():.0%} of"
        )
    else:
        figures = (
            f"off by {later.mean():.3g} on average for the later ones, but by {drawn.mean():.3g} "
            "for"
        )
    text = (
        f"rows are of different times (column {shown(name)}), and the folds shuffle them. k-NN "
        f"trained on the earliest {1 - n_later / len(rows):.0%} is {figures} as many drawn at "
        "random. For later rows, expect worse scores than these: to see how much worse, train on "
        "the earlier rows only, and predict the later ones."
    )
    return [Doubt("time", text)]


def _times(table: Table) -> tuple[str, np.ndarray] | None:
    """Return the name and the values of the first column of times, or None."""
    if issparse(table.X):
        return None
    first = 0  # index of the first feature of the column
    for column in table.encoder.columns_:
        is_date = isinstance(column, DateColumn) and column.may_miss
        if is_date or (column.kind == "number" and column.name.lower() in TIME_NAMES):
            return column.name, table.X[:, first]
        first += len(column.features)
    return None


def _errors(table: Table, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return the errors of raw k-NN on some rows: 0 or 1, or the absolute error."""
    is_classes = table.task == CLASSIFICATION.name
    vote = (KNeighborsClassifier if is_classes else KNeighborsRegressor)(min(10, len(train)))
    y = table.y.astype(str) if is_classes else table.y.astype(float)
    filled = SimpleImputer(strategy="median", keep_empty_features=True)
    model = make_pipeline(filled, StandardScaler(), vote).fit(table.X[train], y[train])
    predicted = model.predict(table.X[test])
    return (predicted != y[test]).astype(float) if is_classes else np.abs(predicted - y[test])
