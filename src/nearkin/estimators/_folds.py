"""Choosing a parameter on the training rows: folds of them, scores on these, and the rule of one standard error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.extmath import row_norms

N_SPLITS = 5
MAX_ROWS = 2000
FEWEST_OF_A_CLASS = 10


def inner_folds(X: Any, y: np.ndarray, n_splits: int = N_SPLITS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows of the training and of the test part of every fold. Nothing is drawn: there is no seed.

    Rows sorted by class, and within a class by their distance from the mean of all rows, are dealt to the folds in
    turn. So a fold has its share of every class, of its central rows and of its outliers, and the same rows in another
    order, rotated, or with classes renamed have the same folds (but for equal distances).

    Parameters
    ----------
    X : array or csr_array of shape (n, p)
    y : ndarray of shape (n,)
        Classes as numbers; -1 for no label; the same number for all rows of a continuous target.
    n_splits : int
        Number of folds, fewer where there are fewer rows to test.

    Returns
    -------
    list of (train, test)
        Rows without a label, or alone in their class, are in every training part, which therefore holds every class.
        Empty where there are no others.
    """
    codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    order = _by_class(X, codes)
    order = order[(sizes[codes[order]] > 1) & (y[order] != -1)]
    n_splits = min(n_splits, len(order))
    tests = [np.sort(order[fold::n_splits]) for fold in range(n_splits)]
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]


def sample_rows(X: Any, y: np.ndarray, n_rows: int = MAX_ROWS) -> np.ndarray:
    """Return about n_rows of the rows of X: every class's share of them, but ten of each, or all, in any case.

    As in `inner_folds`, they are evenly spaced in the order of distances from the mean, and not drawn.
    """
    codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    order = _by_class(X, codes)
    steps = np.minimum(-(-len(y) // n_rows), np.maximum(sizes // FEWEST_OF_A_CLASS, 1))[codes[order]]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    within_class = np.arange(len(y)) - np.repeat(starts, np.diff(starts, append=len(y)))
    return np.sort(order[within_class % steps == 0])


def _by_class(X: Any, codes: np.ndarray) -> np.ndarray:
    """Return the rows sorted by class, and in each by distance from the mean; the class of the nearest row first."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    distances = row_norms(X, squared=True) - 2 * (X @ mean.astype(X.dtype))  # squared, but for a constant
    nearest = np.full(codes.max() + 1, np.inf)
    np.minimum.at(nearest, codes, distances)
    return np.lexsort((distances, codes, nearest[codes]))


def held_out_accuracies(
    embedding: Any, settings: Sequence[dict[str, Any]], X: Any, y: np.ndarray, on_fold: Callable[[list], object]
) -> np.ndarray:
    """Return the accuracy of 1-NN on the test rows of `inner_folds` after the embedding: (settings, folds).

    After every fold `on_fold` is called with the fitted maps.
    """
    scores = []
    with warnings.catch_warnings(action="ignore"):  # of fits that are not kept
        for train, test in inner_folds(X, y):
            vote = KNeighborsClassifier(1)
            maps = [clone(embedding).set_params(**setting).fit(X[train], y[train]) for setting in settings]
            scores.append(
                [vote.fit(m.transform(X[train]), y[train]).score(m.transform(X[test]), y[test]) for m in maps]
            )
            on_fold(maps)
    return np.transpose(scores)


def best_setting(scores: Any) -> int:
    """Return the first setting whose mean score is within one standard error of the best mean.

    Parameters
    ----------
    scores : array of shape (settings, folds)
        Larger is better. The settings are in the order in which they are preferred: the simplest first.
    """
    scores = np.asarray(scores)
    means = scores.mean(axis=1)
    best = means.argmax()
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.argmax(means >= means[best] - error))
