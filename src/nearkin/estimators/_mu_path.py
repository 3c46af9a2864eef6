"""The weight of the graph in Discriminative Projections, chosen by labels that are hidden in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from .._labels import has_target
from ..linalg import lstsq
from ..spectral import SpectralResult
from ._folds import best_setting, inner_folds
from ._label_space import nearest_values

PATH = (1.0, 3.0, 1 / 3, 10.0, 0.1, 30.0, 1 / 30)  # in the order of preference
Solution = tuple[SpectralResult, np.ndarray, np.ndarray, np.ndarray]  # result, f, g, eigenvalues left out


def mu_path(
    solve: Callable[[np.ndarray, float], Solution], X: Any, y: np.ndarray, unit: float
) -> tuple[float, dict[float, np.ndarray] | None]:
    """Return the best mu, and the scores of every mu on five folds of the labelled rows; None where there are no folds.

    The path is `unit` times `PATH`, the unit first: of those within one standard error of the best, the first is taken.
    In a fold with fewer labels mu is smaller, as A is.
    """
    labelled = has_target(y) if y.ndim == 2 else y >= 0
    scores = []
    for _, test in inner_folds(X, y if y.ndim == 1 else np.where(labelled, 0, -1)):
        few = y.copy()
        few[test] = np.nan if y.ndim == 2 else -1
        share = 1 - len(test) / labelled.sum()
        score = _r2 if y.ndim == 2 else _accuracy
        scores.append([score(X, y, few, test, *solve(few, share * unit * factor)[:3]) for factor in PATH])
    if len(scores) < 2:
        return unit, None
    by_mu = np.transpose(scores)
    return unit * PATH[best_setting(by_mu)], {unit * factor: row for factor, row in zip(PATH, by_mu, strict=True)}


def _accuracy(
    X: Any, y: np.ndarray, few: np.ndarray, test: np.ndarray, result: SpectralResult, f: np.ndarray, g: np.ndarray
) -> float:
    """Return the share of hidden labels that are the nearest to their rows; g is relative to the mean of the others."""
    mean = np.asarray(X[few >= 0].mean(axis=0, dtype=np.float64)).ravel()
    distances = euclidean_distances(X[test] @ f - mean @ f, g)
    return float(np.mean(distances.argmin(axis=1) == y[test]))


def _r2(
    X: Any, y: np.ndarray, few: np.ndarray, test: np.ndarray, result: SpectralResult, f: np.ndarray, g: np.ndarray
) -> float:
    """Return 1 - the squared error of the hidden values, relative to all; shrunk as by the regressor."""
    labelled = has_target(few)
    shrinkage = lstsq(nearest_values(X[labelled] @ f, g, result.values), y[labelled])
    error = y[test] - nearest_values(X[test] @ f, g, result.values) @ shrinkage
    return float(1 - np.mean(error**2) / np.mean((y[has_target(y)]) ** 2))
