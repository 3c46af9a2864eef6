"""Where a descent begins: maps of a scale at which neighbourhoods are neither empty nor hold all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from ..linalg import LinAlgError, eigh
from ..scatter import total_scatter
from ..spectral import generalized_eigh, range_basis, shrunk, unit_within_scatter

PERPLEXITY = 10.0
PERPLEXITY_ROWS = 1000  # it is the mean over so many rows
PERPLEXITY_NEIGHBORS = 100  # of a row: what lies beyond adds nothing

SHRINKAGE = 0.01  # of S_w; more would hide from LDA what noise of large variance covers

INITS = ("auto", "identity", "pca", "lda", "random")


def unit_distance(X: Any, n_rows: int = PERPLEXITY_ROWS, *, mean_perplexity: float = PERPLEXITY) -> float:
    """Return the u at which `p_ij ~ exp(-||x_i - x_j||^2 / u^2)` has a mean perplexity of 10, from some rows."""
    return perplexity_bandwidth(nearest_squares(X, n_rows), mean_perplexity)


def perplexity_bandwidth(squares: np.ndarray, mean_perplexity: float = PERPLEXITY) -> float:
    """Return u from the squared distances of some rows to their nearest, ascending.

    The mean perplexity is 10 rows; half of all rows where these are fewer than 20, and never less than 2, or than twice
    the duplicates that a row has.
    """
    if not squares.any():
        return 1.0
    typical = squares[squares > 0].mean()
    low, high = -8.0, 8.0  # u^2 from 1/3000 of the typical square to 3000 times it

    def at(log_u2: float) -> float:
        return perplexity(squares / (typical * np.exp(log_u2)))

    fewest, most = at(low), at(high)  # 1 and all neighbours, but for duplicates and few rows
    target = min(max(mean_perplexity, 2 * fewest), (fewest + most) / 2)
    log_u2 = brentq(lambda log_u2: at(log_u2) - target, low, high, xtol=1e-6) if fewest < most else 0.0
    return float(np.sqrt(typical * np.exp(log_u2)))


def perplexity(squares: np.ndarray) -> float:
    """Return the mean of `perplexities`."""
    return float(np.mean(perplexities(squares)))


def perplexities(squares: np.ndarray) -> np.ndarray:
    """Return exp(entropy) of the softmax of every row of minus these squared distances, in any order."""
    excess = squares - squares.min(axis=1, keepdims=True)
    E = np.exp(-excess)
    total = E.sum(axis=1)
    return total * np.exp((E * excess).sum(axis=1) / total)


def nearest_squares(X: Any, n_rows: int = PERPLEXITY_ROWS) -> np.ndarray:
    """Return the squared distances of some rows to their 100 nearest others, ascending."""
    sample = evenly_by(row_norms(X, squared=True), n_rows)
    return np.sort(squares_to(X[sample], X, sample), axis=1)[:, :-1]


def squares_to(queries: Any, X: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the squared distances of queries to their 101 nearest rows of X, infinite to the row of their number."""
    with config_context(assume_finite=True):
        index = NearestNeighbors(algorithm="brute").fit(X)
        distances, found = index.kneighbors(queries, n_neighbors=min(X.shape[0], PERPLEXITY_NEIGHBORS + 1))
    return np.where(found == numbers[:, None], np.inf, distances.astype(np.float64) ** 2)


def evenly_by(norms: np.ndarray, n_rows: int) -> np.ndarray:
    """Return at most `n_rows` rows, drawn evenly by their norms: the same rows in whatever order they come."""
    return np.argsort(norms, kind="stable")[:: -(-len(norms) // n_rows)]


def directions(name: str, X: Any, m: int, rng: Any = None) -> np.ndarray:
    """Return m orthonormal directions (m, p) by the name of an init."""
    if name == "identity":
        return np.eye(m, X.shape[1])
    if name == "random":
        return np.linalg.qr(rng.standard_normal((X.shape[1], m)))[0].T
    if issparse(X) and m < min(X.shape):
        return principal_directions(X, m, svd_solver="arpack", random_state=0)
    wide = not issparse(X) and X.shape[1] > X.shape[0]
    return principal_directions(X, m, svd_solver="full" if wide else "covariance_eigh")


def principal_directions(X: Any, m: int, **how: Any) -> np.ndarray:
    """Return the m first principal directions (m, p), by scikit-learn's `PCA(m, **how)` unless LAPACK gives up."""
    try:
        with np.errstate(invalid="ignore"):  # equal rows have no share of variance
            return PCA(m, **how).fit(X).components_
    except LinAlgError:
        p = X.shape[1]
        return eigh(total_scatter(X), subset_by_index=(p - m, p - 1))[1][:, ::-1].T


def discriminant_directions(S_b: np.ndarray, S_w: np.ndarray, m: int) -> np.ndarray:
    """Return the m first directions (m, p) of Fisher's discriminant, in units of S_w shrunk by a hundredth.

    So none is longer than ten times one of mean scatter. Unshrunk, a feature that hardly varies, such as a pixel of the
    margin, has so long a direction that nothing is left of the others in a map whose penalty is limited.
    """
    S_w = shrunk(S_w, range_basis(S_w + S_b), SHRINKAGE)
    return unit_within_scatter(generalized_eigh(S_b, S_w)).vectors[:, :m].T
