"""Where a descent begins: maps of a sane scale, so that neighbourhoods are neither empty nor everybody."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestNeighbors

from ..objectives.nca import embed

PERPLEXITY = 10.0
SAMPLE = 1000
NEAR = 100

INITS = ("auto", "identity", "pca", "lda", "random")


def scaled(A: np.ndarray, X: Any) -> np.ndarray:
    """Return the map A in the scale in which the neighbourhoods of X A' have the perplexity of a start."""
    return A / unit_distance(embed(A, X))


def unit_distance(X: Any, count: int = SAMPLE) -> float:
    """Return the distance u at which the neighbourhoods `p_ij ~ exp(-||x_i - x_j||^2 / u^2)` are sane.

    Of more than `count` rows, so many are asked, drawn evenly by their distance from the centre, and each looks at its
    100 nearest.
    """
    return perplexity_bandwidth(near_squares(X, count))


def perplexity_bandwidth(squares: np.ndarray) -> float:
    """Return u from the squared distances of some rows to their nearest, ascending.

    The mean perplexity is then 10 rows; half of all rows where these are fewer than 20, and twice the duplicates that a
    row has where these are more than 5.
    """
    if not squares.any():
        return 1.0
    typical = squares[squares > 0].mean()
    low, high = -8.0, 8.0  # u^2 from 1/3000 of the typical square to 3000 times it

    def at(log_u2: float) -> float:
        return perplexity(squares / (typical * np.exp(log_u2)))

    fewest, most = at(low), at(high)  # 1 and all neighbours, but for duplicates and few rows
    wanted = min(max(PERPLEXITY, 2 * fewest), (fewest + most) / 2)
    log_u2 = brentq(lambda log_u2: at(log_u2) - wanted, low, high, xtol=1e-6) if fewest < most else 0.0
    return float(np.sqrt(typical * np.exp(log_u2)))


def perplexity(squares: np.ndarray) -> float:
    """Return the mean of exp(entropy) of the softmax of every row of minus these squared distances, ascending."""
    excess = squares - squares[:, :1]
    E = np.exp(-excess)
    total = E.sum(axis=1)
    return float(np.mean(total * np.exp((E * excess).sum(axis=1) / total)))


def near_squares(X: Any, count: int = SAMPLE) -> np.ndarray:
    """Return the squared distances of some rows to their 100 nearest others, ascending."""
    n = X.shape[0]
    sample = drawn_evenly(X, count)
    index = NearestNeighbors(algorithm="brute").fit(X)
    distances, found = index.kneighbors(X[sample], n_neighbors=min(n, NEAR + 1))
    squares = np.where(found == sample[:, None], np.inf, distances.astype(np.float64) ** 2)
    return np.sort(squares, axis=1)[:, :-1]


def drawn_evenly(X: Any, count: int) -> np.ndarray:
    """Return at most `count` rows, drawn evenly by their distance from the origin: the same whatever their order."""
    return evenly_by(np.asarray(X.multiply(X).sum(axis=1)).ravel() if issparse(X) else squared_norms(X), count)


def squared_norms(X: np.ndarray) -> np.ndarray:
    """Return the squared distance of every row from the origin."""
    return np.einsum("ij,ij->i", X, X)


def evenly_by(norms: np.ndarray, count: int) -> np.ndarray:
    """Return at most `count` rows, evenly by their norms."""
    return np.argsort(norms, kind="stable")[:: -(-len(norms) // count)]


def directions(init: str, X: Any, m: int, codes: np.ndarray | None, rng: Any) -> np.ndarray:
    """Return m directions (m, p) by the name of a start."""
    if init == "identity":
        return np.eye(m, X.shape[1])
    if init == "pca":
        solver = {"svd_solver": "arpack", "random_state": 0} if issparse(X) else {"svd_solver": "covariance_eigh"}
        return PCA(m, **solver).fit(X).components_
    if init == "lda":
        return _lda(X, m, codes)
    return np.linalg.qr(rng.standard_normal((X.shape[1], m)))[0].T


def _lda(X: Any, m: int, codes: np.ndarray | None) -> np.ndarray:
    if codes is None or issparse(X):
        raise ValueError("init='lda' needs classes and dense X: take init='pca' or 'auto'.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Variables are collinear")
        V = LinearDiscriminantAnalysis().fit(X, codes).scalings_[:, :m].T
    if len(V) < m:
        raise ValueError(f"init='lda' has {len(V)} directions here, n_components is {m}: take init='pca' or 'auto'.")
    return V


def default_inits(X: Any, m: int, codes: np.ndarray | None) -> list[str]:
    """Return the names of the starts that "auto" chooses from."""
    if m == X.shape[1]:
        return ["identity"]
    lda = codes is not None and not issparse(X) and m <= codes.max() and m <= np.linalg.matrix_rank(X)
    return ["pca", "lda"] if lda else ["pca"]
