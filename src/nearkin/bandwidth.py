"""The typical distance of neighbouring rows: the bandwidth at which weights have a mean perplexity.

The perplexity of the weights of a row, exp(entropy), is its effective number of neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn import config_context

from ._blocks import squared_distances
from .neighbors import exact_index

PERPLEXITY = 10.0
PERPLEXITY_ROWS = 1000  # the perplexity is averaged over this many rows
PERPLEXITY_NEIGHBORS = 100  # of a row; farther ones contribute nothing


def unit_distance(
    X: Any, n_rows: int = PERPLEXITY_ROWS, *, mean_perplexity: float = PERPLEXITY
) -> float:
    """Return the typical distance u of neighbours, estimated from at most `n_rows` rows.

    It is the bandwidth at which `p_ij ~ exp(-||x_i - x_j||^2 / u^2)` has the given mean perplexity.
    """
    return perplexity_bandwidth(nearest_squares(X, n_rows), mean_perplexity)


def perplexity_bandwidth(squares: np.ndarray, mean_perplexity: float = PERPLEXITY) -> float:
    """Return the bandwidth u with a given mean perplexity.

    `squares`, shape (rows, k), holds the squared distances of some rows to their nearest rows,
    ascending. With duplicates the target is at least twice the smallest possible perplexity. It is
    at most half way between the smallest and the largest, which matters for fewer than 20 rows.
    """
    if not squares.any():
        return 1.0
    typical = squares[squares > 0].mean()
    low, high = -8.0, 8.0  # u^2 from 1/3000 of the typical square to 3000 times it
    # 1 and the number of neighbours, unless there are duplicates or few rows
    fewest, most = (perplexity(squares / (typical * np.exp(end))) for end in (low, high))
    log_u2 = 0.0
    if fewest < most:
        target = min(max(mean_perplexity, 2 * fewest), (fewest + most) / 2)
        log_u2 = brentq(
            lambda log_u2: perplexity(squares / (typical * np.exp(log_u2))) - target,
            low,
            high,
            xtol=1e-6,
        )
    return float(np.sqrt(typical * np.exp(log_u2)))


def perplexity(squares: np.ndarray) -> float:
    """Return the mean of `perplexities(squares)`."""
    return float(np.mean(perplexities(squares)))


def perplexities(squares: np.ndarray) -> np.ndarray:
    """Return exp(entropy) of the softmax of minus the squared distances of each row.

    The distances may be in any order.
    """
    excess = squares - squares.min(axis=1, keepdims=True)
    E = np.exp(-excess)
    total = E.sum(axis=1)
    return total * np.exp((E * excess).sum(axis=1) / total)


def nearest_squares(X: Any, n_rows: int = PERPLEXITY_ROWS) -> np.ndarray:
    """Return the squared distances of some rows to their 100 nearest others, ascending.

    The shape is (at most `n_rows`, at most 100).
    """
    sample = evenly_by(squared_distances(X), n_rows)
    return np.sort(squares_to(X[sample], X, sample), axis=1)[:, :-1]


def squares_to(queries: Any, X: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the squared distances of queries to their 101 nearest rows of X.

    The shape is (n_queries, at most 101). The distance of a query to the row of its own index is
    infinite.
    """
    with config_context(assume_finite=True):
        k = min(X.shape[0], PERPLEXITY_NEIGHBORS + 1)
        distances, found = exact_index(X, k)(queries, k)
    return np.where(found == numbers[:, None], np.inf, distances.astype(np.float64) ** 2)


def evenly_by(norms: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the indices of at most `n_rows` rows, evenly spaced in the order of their norms.

    The choice does not depend on the order of the rows.
    """
    return np.argsort(norms, kind="stable")[:: -(-len(norms) // n_rows)]
