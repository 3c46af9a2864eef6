"""Deterministic folds and samples of rows, and the one-standard-error rule for settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._blocks import squared_distances

N_SPLITS = 5
MAX_ROWS = 2000  # folds are made of at most about this many rows,
FEWEST_OF_A_CLASS = 10  # with at least this many of each class, or all of them


def inner_folds(
    X: Any, y: np.ndarray, n_splits: int = N_SPLITS
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return deterministic folds: the training rows and the test rows of each.

    Rows are sorted by class, and within a class by distance from the mean of all rows, then dealt
    to the folds in turn. Each fold thus gets its share of every class, both of central rows and of
    outliers. Apart from equal distances, the folds do not change if rows are reordered or rotated,
    or classes renamed.

    Parameters
    ----------
    X : array or csr_array of shape (n, p)
    y : ndarray of shape (n,)
        Classes as integers; -1 for no label; a constant for a continuous target.
    n_splits : int
        Number of folds; fewer if there are fewer rows to test.

    Returns
    -------
    list of (train, test)
        Rows without a label, and rows alone in their class, are in every training part, which
        therefore holds every class. The list is empty if there are no other rows.
    """
    order, codes, sizes = _by_class(X, y)
    order = order[(sizes[codes[order]] > 1) & (y[order] != -1)]
    n_splits = min(n_splits, len(order))
    tests = [np.sort(order[fold::n_splits]) for fold in range(n_splits)]
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]


def sample_rows(X: Any, y: np.ndarray, n_rows: int = MAX_ROWS) -> np.ndarray:
    """Return the indices of about n_rows rows of X, stratified by class.

    At least ten rows of each class are taken, or all that it has. As in `inner_folds`, they are
    evenly spaced in the order of distance from the mean, not drawn at random.
    """
    order, codes, sizes = _by_class(X, y)
    steps = np.minimum(-(-len(y) // n_rows), np.maximum(sizes // FEWEST_OF_A_CLASS, 1))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    within_class = np.arange(len(y)) - np.repeat(starts, np.diff(starts, append=len(y)))
    return np.sort(order[within_class % steps[codes[order]] == 0])


def _by_class(X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows sorted by class and distance from the mean, the class codes and class sizes.

    Within a class the nearest row comes first.
    """
    codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    distances = squared_distances(X, mean)
    nearest = np.full(len(sizes), np.inf)
    np.minimum.at(nearest, codes, distances)
    return np.lexsort((distances, codes, nearest[codes])), codes, sizes


def best_setting(scores: Any) -> int:
    """Return the index of the first setting with a mean within one standard error of the best.

    Parameters
    ----------
    scores : array of shape (settings, folds)
        Larger is better. Settings are in order of preference, the simplest first.
    """
    scores = np.asarray(scores)
    means = scores.mean(axis=1)
    best = means.argmax()
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.argmax(means >= means[best] - error))
