"""Closer looks at a comparison, all of them on held-out rows: dimensions, confusions, a map."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import confusion_matrix

from .._labels import known_labels
from .._validation import as_rows
from .methods import DIMENSIONS
from .protocol import FAILURES, NO_ROWS, Progress, Protocol, fit_partly, take_rows
from .results import Comparison, Fold, MethodResult
from .task import CLASSIFICATION, named_task


def score_by_dimension(
    comparison: Comparison, X: Any, y: Any, *, progress: Progress = lambda *_: None
) -> dict[str, dict[int, np.ndarray]]:
    """Return the held-out score of every method for each number of dimensions, on the folds of the first repeat.

    Parameters
    ----------
    comparison : Comparison
    X, y
        What was compared on.
    progress : callable
        Called as `progress(method name, folds done, folds)`.

    Returns
    -------
    dict of method name to dict of dimension to ndarray of scores (accuracy, R²), one a fold
        Other parameters are those that each fold chose inside its training rows. Dimensions that some fold cannot have
        are left out. The raw features have a single dimension.

    Notes
    -----
    To look at, not to choose by: the best point of a curve is chosen on the held-out rows.
    """
    X, y = as_rows(X), np.asarray(y)
    protocol = Protocol(X, y, None, comparison.n_neighbors, comparison.scale, comparison.random_state, comparison.task)
    folds = first_repeat(comparison.folds)
    curves = {}
    for result in comparison.results:
        by_fold = []
        for number, (train, test) in enumerate(folds):
            settings = result.method.settings(X.shape[1])
            if result.method.nested:  # the first columns of one fit are those of all dimensions
                largest = min(result.max_components, max(DIMENSIONS), len(train) - 1)
                settings = [result.params[number] | {"n_components": largest}]
            rules, scores = replace(protocol, unlabelled=result.unlabelled[number]), dict[int, float]()
            for setting in settings:  # a fit may warn (`MethodResult.warnings` holds that) or lack the dimension
                with warnings.catch_warnings(action="ignore"), suppress(*FAILURES), protocol.few_threads():
                    scores |= rules.curve(result.method, setting, train, test)
            by_fold.append(scores)
            progress(f"{result.name}, dimensions", number + 1, len(folds))
        shared = sorted(set.intersection(*map(set, by_fold)))
        curves[result.name] = {m: np.array([scores[m] for scores in by_fold]) for m in shared}
    return curves


def first_repeat(folds: tuple[Fold, ...]) -> tuple[Fold, ...]:
    """Return the folds that hold every row out once."""
    n_rows = len(folds[0][0]) + len(folds[0][1])
    held_out = np.cumsum([len(test) for _, test in folds])
    return folds[: int(np.searchsorted(held_out, n_rows)) + 1]


def confusion(result: MethodResult, comparison: Comparison, y: Any) -> np.ndarray:
    """Return how many held-out rows of each class (rows, sorted) got each label (columns), summed over all folds."""
    if comparison.task != CLASSIFICATION:
        raise ValueError(f"confusion counts classes, and this is a {comparison.task.name}: look at result.predictions.")
    truth = np.concatenate([known_labels(np.asarray(y), test) for _, test in comparison.folds])
    return confusion_matrix(truth, np.concatenate(result.predictions))


@dataclass(frozen=True)
class HeldOutMap:
    """Held-out rows in the first dimensions of a map that was learned from other rows.

    Attributes
    ----------
    embedding : ndarray of shape (n, 1) or (n, 2)
    rows : ndarray of shape (n,)
        Their row numbers.
    neighbors : ndarray of shape (n, k)
        Row numbers of the nearest training rows, in these coordinates; nearest first.
    score : float
        Of the vote of these neighbours on these rows: accuracy, or R².
    """

    embedding: np.ndarray
    rows: np.ndarray
    neighbors: np.ndarray
    score: float


def held_out_map(
    mapping: Any,
    X: Any,
    y: Any,
    fold: Fold,
    n_neighbors: int,
    *,
    task: str = "classification",
    unlabelled: np.ndarray = NO_ROWS,
) -> HeldOutMap:
    """Learn a clone of `mapping` on the training rows of a fold, and return its held-out rows in two dimensions.

    `unlabelled` are row numbers to learn from, too, as `MethodResult.unlabelled` has them.
    """
    (train, test), target = fold, named_task(task)
    y = np.asarray(y)
    y_train = known_labels(y, train)
    fitted = fit_partly(clone(mapping), X, y_train, train, unlabelled, target)
    Z_train, Z_test = (np.asarray(fitted.transform(take_rows(X, rows)))[:, :2] for rows in (train, test))
    vote = target.vote(n_neighbors).fit(Z_train, y_train)
    neighbors = train[vote.kneighbors(Z_test, return_distance=False)]
    return HeldOutMap(Z_test, test, neighbors, float(vote.score(Z_test, known_labels(y, test))))
