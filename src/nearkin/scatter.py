"""The room where rows and graphs meet: `S(W) = X' L X = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)'`.

A spectral method is two such matrices and one criterion (`spectral.py`). Everything is accumulated in float64, and
dense X is moved to its centre first: that changes no difference x_i - x_j, but without it a large common offset
cancels every digit. Sparse X stays sparse, unless more than a tenth of it is stored: then `row_space` makes it dense.

With more features than rows (p > n) all matrices live in the span of the centred rows; `row_space` goes there and back
exactly, so that no p x p matrix is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr, svd
from scipy.linalg.lapack import dormqr
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from ._array import centre, dense_float64, densified, row_blocks
from ._memory import require_memory
from .graphs import connected_components, scaled_weights

RANK_TOLERANCE = 1e-10


def scatter(X: Any, L: csr_array) -> np.ndarray:
    """Return `X' L X`, shape (p, p), float64, for a Laplacian L (rows and columns sum to 0).

    Costs O(nnz(L) p + n p^2) for dense X; works in blocks of rows.
    """
    X = X.astype(np.float64) if issparse(X) else _anchored(X, connected_components(L))
    S = np.zeros((X.shape[1], X.shape[1]))
    total = np.zeros(X.shape[1])
    for rows in row_blocks(X.shape[0], X.shape[1]):
        LX = L[rows] @ X
        S += X[rows].T @ LX  # sparse X: a sparse product, added to the dense sum
        total += LX.sum(axis=0)
    if issparse(X):  # total is 0 but for rounding, which an offset of X has magnified in S
        S -= np.outer(X.mean(axis=0), total)
    return (S + S.T) / 2


def _anchored(X: Any, group: np.ndarray) -> Any:
    """Return X relative to a typical row of each group (connected component of the graph, class), in float64.

    Differences within groups stay, and what does not differ in any becomes exactly 0: a feature that only loose rows
    have, the distance between classes in a graph of kin. Otherwise its rounding would pass for scatter.
    """
    if issparse(X):
        return _sparsely_anchored(X, group)
    X = centre(X)
    to_mean = np.linalg.norm(X - group_means(X, group)[group], axis=1)
    return X - X[_least_of_group(to_mean, group)[group]]


def _sparsely_anchored(X: csr_array, group: np.ndarray) -> csr_array:
    """Return sparse X relative to the row of fewest and smallest entries of each group: stays sparse."""
    X = X.astype(np.float64)
    return X - X[_least_of_group(X.power(2).sum(axis=1), group)[group]]


def group_means(X: Any, group: np.ndarray) -> Any:
    """Return the mean of every group 0, 1, ..., shape (c, p), sparse for sparse X."""
    membership = csr_array((np.ones(len(group)), group, np.arange(len(group) + 1)))
    return membership.T @ X / np.bincount(group)[:, None]


def _least_of_group(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the row of the smallest value of every group 0, 1, ..."""
    sizes = np.bincount(group)
    return np.lexsort((values, group))[np.cumsum(sizes) - sizes]


def scatter_operator(X: Any, L: csr_array) -> LinearOperator:
    """Return `v -> X' (L (X v))` without ever forming the matrix: for many features and few wanted vectors."""
    X = X.astype(np.float64) if issparse(X) else centre(X)
    p = X.shape[1]

    def multiply(V: np.ndarray) -> np.ndarray:
        return X.T @ (L @ (X @ V))

    return LinearOperator((p, p), matvec=multiply, matmat=multiply, rmatvec=multiply, dtype=np.float64)


def total_scatter(X: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """Return `sum_i w_i (x_i - m)(x_i - m)'` with the weighted mean m, shape (p, p); by default every w_i is 1.

    It is the scatter of the graph that ties everybody: `S(ww' / sum(w))`.
    """
    w = np.ones(X.shape[0]) if weights is None else weights
    if issparse(X):
        X, w = X[w > 0], w[w > 0]
        X = _sparsely_anchored(X, np.zeros(len(w), dtype=int))
        mean = w @ X / w.sum()
        return second_moment(X, w) - w.sum() * np.outer(mean, mean)
    X = centre(X)[w > 0]
    w = w[w > 0]
    X = X - X[np.linalg.norm(X - w @ X / w.sum(), axis=1).argmin()]  # see `_anchored`
    X -= w @ X / w.sum()
    return second_moment(X, w)


def second_moment(X: Any, weights: np.ndarray) -> np.ndarray:
    """Return `sum_i w_i x_i x_i'`, shape (p, p), float64: about the origin, wherever the mean is."""
    if issparse(X):
        X = X.astype(np.float64)
        return (X.T @ X.multiply(weights[:, None])).toarray()
    X = np.asarray(X, dtype=np.float64)
    return (X.T * weights) @ X


def between_scatter(X: Any, codes: np.ndarray) -> np.ndarray:
    """Return `sum_c n_c (m_c - m)(m_c - m)'` with the class means m_c; `codes` number the classes 0, 1, ..."""
    X = _anchored(X, np.zeros_like(codes))  # of a constant feature, rounding would tell the means apart
    return total_scatter(dense_float64(group_means(X, codes)), np.bincount(codes).astype(np.float64))


def within_scatter(X: Any, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return `sum_c w_c sum_{i in c} (x_i - m_c)(x_i - m_c)'`; with all w_c = 1 it is total minus between scatter.

    A feature that is constant in every class is exactly 0 in it, which no difference of two sums would be.
    """
    X = _anchored(X, codes)
    if weights is not None:
        X = X * np.sqrt(weights)[codes][:, None]
    if issparse(X):
        means = group_means(X, codes)
        return (X.T @ X - means.T @ means.multiply(np.bincount(codes)[:, None])).toarray()
    X -= group_means(X, codes)[codes]
    return X.T @ X


def locally_scaled_scatters(X: Any, codes: np.ndarray, scales: np.ndarray) -> Iterator[np.ndarray]:
    """Yield, for every class c, `1 / (2 n_c) sum_{i,j in c} a_ij (x_i - x_j)(x_i - x_j)'`, float64.

    a_ij = `exp(-||x_i - x_j||^2 / (s_i s_j))` ties all rows of a class, so its graph is never held: it is made by
    blocks of rows. With infinite scales the sum over classes is `within_scatter`.
    """
    X = _anchored(X, codes)
    for members in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]):
        kin, s, n_c = X[members], scales[members], len(members)
        lengths = row_norms(kin, squared=True)
        S = np.zeros((X.shape[1], X.shape[1]))
        for rows in row_blocks(n_c, n_c):
            products = safe_sparse_dot(kin[rows], kin.T, dense_output=True)
            squared = np.maximum(lengths[rows, None] - 2 * products + lengths, 0)
            W = scaled_weights(squared, np.outer(s[rows], s))
            L = -W
            L[np.arange(len(W)), np.arange(n_c)[rows]] += W.sum(axis=1)
            S += kin[rows].T @ (L @ kin)
        yield (S + S.T) / (2 * n_c)


@dataclass(frozen=True)
class RowSpace:
    """Rows in coordinates that lose nothing, and the way back.

    Attributes
    ----------
    coordinates : array or sparse matrix of shape (n, r)
        For p <= n the rows themselves; for p > n the rows, centred or not, in an orthonormal basis of their span.
    to_features : function from (r, m) to (p, m), or None
        Writes columns in these coordinates as columns of features; None where the coordinates are the features.
    """

    coordinates: Any
    to_features: Callable[[np.ndarray], np.ndarray] | None

    @cached_property
    def basis(self) -> np.ndarray:
        """The orthonormal basis of the span, shape (r, p), for p > n."""
        assert self.to_features is not None
        return self.to_features(np.eye(self.coordinates.shape[1])).T

    def lift(self, V: np.ndarray) -> np.ndarray:
        """Return the directions V (r, m) as rows in feature space, shape (m, p), the largest entry of each positive."""
        return self.lift_pairs(V, V[:0])[0]

    def lift_pairs(self, V: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `lift(V)` and, as rows of the same signs, the columns of G (c, m) that belong to those of V."""
        components = V.T if self.to_features is None else self.to_features(V).T
        largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
        sign = np.where(largest < 0, -1.0, 1.0)
        return components * sign, G.T * sign

    def outside(self, m: int) -> np.ndarray:
        """Return m orthonormal rows (m, p) outside the span: directions in which the rows do not vary at all."""
        r, p = self.basis.shape
        start = np.random.default_rng(0).standard_normal((p, m))
        return qr(np.hstack([self.basis.T, start]), mode="economic")[0][:, r:].T


def row_space(X: Any, *, centred: bool = True) -> RowSpace:
    """Return the rows of X in coordinates as few as necessary: exact, by a thin SVD where p > n.

    Costs nothing for p <= n, O(n^2 p) for p > n. Directions below 1e-10 of the largest singular value count as none.
    `centred=False`, for criteria that depend on the origin, takes the span of the rows as they are.

    Raises
    ------
    MemoryError
        If sparse X has more features than rows and both are so many that the dense span does not fit.
    """
    n, p = X.shape
    if p <= n:
        require_memory(8 * 8 * p * p, f"The scatters of {p} features", "reduce the features first, e.g. with PCA")
        return RowSpace(densified(X), None)
    require_memory(
        2 * 8 * n * p + 8 * 8 * n * n,  # X dense and once more; square factors and the work space of the decomposition
        f"The span of {n} rows with {p} features",
        "reduce the features first, e.g. with sklearn.decomposition.TruncatedSVD",
    )
    rows = centre(dense_float64(X)) if centred else dense_float64(X)
    (reflectors, tau), R = qr(rows.T, mode="raw", overwrite_a=rows is not X, check_finite=False)
    U, s, Vt = svd(R.T, full_matrices=False, overwrite_a=True, check_finite=False)
    r = min(int(np.sum(s > RANK_TOLERANCE * s[0])), n - centred)
    # X = R'Q' = U s (QV)': with Q as its reflectors, only the directions that are asked for are ever written out.
    return RowSpace(U[:, :r] * s[:r], lambda E: _reflected(reflectors, tau, Vt[:r].T @ E))


def _reflected(reflectors: np.ndarray, tau: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Return Q E (p, m), where Q (p, n) has orthonormal columns and is a product of Householder reflections."""
    QE = np.zeros((len(reflectors), E.shape[1]), order="F")
    QE[: len(E)] = E
    size = int(dormqr("L", "N", reflectors, tau, QE[:, :1], -1)[1][0]) * max(1, E.shape[1])
    return dormqr("L", "N", reflectors, tau, QE, size, overwrite_c=1)[0]
