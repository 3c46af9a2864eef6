"""Where a descent begins: maps of a sane scale, so that neighbourhoods are neither empty nor everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestNeighbors

PERPLEXITY = 10.0
SAMPLE = 1000
NEAR = 100


def unit_distance(X: Any, perplexity: float = PERPLEXITY) -> float:
    """Return the distance u at which the neighbourhoods `p_ij ~ exp(-||x_i - x_j||^2 / u^2)` have a mean perplexity.

    That of `perplexity` rows, or of half of the other rows where that is less. Of more than 1,000 rows, 1,000 are asked,
    evenly drawn by their distance from the centre, and each looks at its 100 nearest.
    """
    squares = near_squares(X)
    typical = squares[squares > 0].mean() if squares.any() else 1.0
    wanted = min(perplexity, X.shape[0] / 2)

    def excess(log_u2: float) -> float:
        return mean_perplexity(squares / (typical * np.exp(log_u2))) - wanted

    low, high = -20.0, 20.0
    log_u2 = brentq(excess, low, high, xtol=1e-3) if excess(low) < 0 < excess(high) else 0.0
    return float(np.sqrt(typical * np.exp(log_u2)))


def near_squares(X: Any) -> np.ndarray:
    """Return the squared distances of some rows to their nearest others, ascending."""
    n = X.shape[0]
    sample = np.argsort(_row_norms(X), kind="stable")[:: -(-n // SAMPLE)]
    index = NearestNeighbors(algorithm="brute").fit(X)
    distances, found = index.kneighbors(X[sample], n_neighbors=min(n, NEAR + 1))
    return np.sort(np.where(found == sample[:, None], np.inf, distances.astype(np.float64) ** 2), axis=1)[:, :-1]


def mean_perplexity(squares: np.ndarray) -> float:
    """Return the mean over rows of exp(entropy) of the softmax of minus the squared distances."""
    logits = squares[:, :1] - squares
    E = np.exp(logits)
    total = E.sum(axis=1)
    entropy = np.log(total) - (E * logits).sum(axis=1) / total
    return float(np.exp(entropy).mean())


def _row_norms(X: Any) -> np.ndarray:
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if issparse(X) else np.einsum("ij,ij->i", X, X)


def scaled(A: np.ndarray, X: Any) -> np.ndarray:
    """Return the map A in the scale in which the neighbourhoods of X A' have the perplexity of a start."""
    return A / unit_distance(X @ A.T)


def pca(X: Any, m: int) -> np.ndarray:
    """Return the m directions of largest variance, shape (m, p)."""
    if issparse(X):
        return PCA(m, svd_solver="arpack", random_state=0).fit(X).components_
    return PCA(m, svd_solver="covariance_eigh").fit(X).components_


def lda(X: np.ndarray, codes: np.ndarray, m: int) -> np.ndarray:
    """Return the m leading discriminant directions, shape (m, p)."""
    return LinearDiscriminantAnalysis().fit(X, codes).scalings_[:, :m].T


def random(p: int, m: int, rng: Any) -> np.ndarray:
    """Return m orthonormal directions, shape (m, p)."""
    return np.linalg.qr(rng.standard_normal((p, m)))[0].T
