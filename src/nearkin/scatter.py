"""Scatters of rows and a graph: `S(W) = X' L X = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)'`.

A spectral method is two such matrices and one criterion (`spectral`). Sums are accumulated in
float64. Dense X is centred first, which does not change any difference x_i - x_j, but avoids
cancellation if there is a large common offset. Sparse X stays sparse. For p > n all matrices are in
the span of the rows: see `row_space`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dormqr
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.metrics import euclidean_distances

from ._blocks import centre, dense_float64, densified, row_blocks
from ._memory import require_memory
from ._messages import counted, warn_user
from ._threads import parallel_sum
from .graphs import connected_components, scaled_weights
from .linalg import RANK_TOLERANCE, row_signs, svd


def scatter(X: Any, L: csr_array) -> np.ndarray:
    """Return `X' L X`, shape (p, p), float64, for a Laplacian L (rows and columns sum to 0).

    Costs O(nnz(L) p + n p^2) for dense X; works in blocks of rows.
    """
    if issparse(X):
        return _sparse_scatter(X, L)
    n, p = X.shape
    relative = _about_anchors(X, connected_components(L))

    def term(rows: slice) -> np.ndarray:
        edges = L[rows]
        own = rows.start + np.flatnonzero(np.diff(edges.indptr))
        adjacent = np.union1d(edges.indices, own)
        return relative(own).T @ (L[own][:, adjacent] @ relative(adjacent))

    n_adjacent = min(1 + L.nnz // n, 16)  # in a dense graph, a block is adjacent to nearly all rows
    S = parallel_sum(term, row_blocks(n, p * n_adjacent), L.nnz * p)
    return (S + S.T) / 2


def _sparse_scatter(X: csr_array, L: csr_array) -> np.ndarray:
    X = X.astype(np.float64)
    S = np.zeros((X.shape[1], X.shape[1]))
    total = np.zeros(X.shape[1])
    for rows in row_blocks(X.shape[0], X.shape[1]):
        LX = L[rows] @ X
        S += X[rows].T @ LX  # a sparse product, added to the dense sum
        total += LX.sum(axis=0)
    # total is 0 up to rounding, which an offset of X has magnified in S
    S -= np.outer(X.mean(axis=0), total)
    return (S + S.T) / 2


def scatter_operator(X: Any, L: csr_array) -> LinearOperator:
    """Return the operator `v -> X' (L (X v))`, without forming the matrix.

    It is for many features and few eigenvectors.
    """
    X = X.astype(np.float64) if issparse(X) else centre(X)
    p = X.shape[1]

    def multiply(V: np.ndarray) -> np.ndarray:
        return X.T @ (L @ (X @ V))

    return LinearOperator(
        (p, p), matvec=multiply, matmat=multiply, rmatvec=multiply, dtype=np.float64
    )


def total_scatter(X: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """Return `sum_i w_i (x_i - m)(x_i - m)'` with the weighted mean m, shape (p, p).

    By default every w_i is 1. This is the scatter of the complete graph `ww' / sum(w)`.
    """
    w = _weights(X, weights)
    if (w == 0).any():
        X, w = X[w > 0], w[w > 0]
    return _about_means(X, np.zeros(len(w), dtype=int), w)


def second_moment(X: Any, weights: np.ndarray) -> np.ndarray:
    """Return `sum_i w_i x_i x_i'`, (p, p), float64: about the origin, not the mean."""
    if issparse(X):
        X = X.astype(np.float64)
        return (X.T @ X.multiply(weights[:, None])).toarray()
    return _sum_of_squares(X, weights, lambda rows: X[rows].astype(np.float64))


# Below, a row counts as `sample_weight` copies, 1 by default: the sizes n and n_c, means, and sums
# over rows or pairs are those of the copies.


def group_means(X: Any, codes: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return the mean of every group 0, 1, ..., relative to a typical row of X.

    The result is dense, of shape (c, p). A constant feature is exactly 0.
    """
    relative = _about_anchors(X, np.zeros_like(codes))
    return dense_float64(_means(X, relative, codes, _weights(X, sample_weight)))


def between_scatter(
    X: Any, codes: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return `sum_c n_c (m_c - m)(m_c - m)'` with class means m_c, for class codes 0, 1, ...."""
    n_c = np.bincount(codes, _weights(X, sample_weight))
    return total_scatter(group_means(X, codes, sample_weight), n_c)


def within_scatter(
    X: Any,
    codes: np.ndarray,
    weights: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Return `sum_c w_c sum_{i in c} (x_i - m_c)(x_i - m_c)'`.

    With all w_c = 1 it is the total minus the between-class scatter. A feature that is constant in
    every class is exactly 0, which a difference of two sums would not guarantee.
    """
    w = _weights(X, sample_weight)
    return _about_means(X, codes, w if weights is None else weights[codes] * w)


def pair_covariances(
    X: Any, codes: np.ndarray, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of (x_i - x_j)(x_i - x_j)' over all same-class and all other-class pairs.

    A mean over no pairs is 0. No pair is formed: the pairs of a class sum to n_c times its scatter,
    all pairs to n times the total scatter, and the other-class pairs, the difference, to `n
    S_between + sum_c (n - n_c) S_c`. Copies of a row do not form pairs.
    """
    w = _weights(X, sample_weight)
    n, sizes = w.sum(), np.bincount(codes, w)
    n_same, n_other = (sizes @ sizes - w @ w) / 2, sizes @ (n - sizes) / 2
    same = within_scatter(X, codes, sizes, w)
    other = n * between_scatter(X, codes, w) + within_scatter(X, codes, n - sizes, w)
    return same / (n_same or 1.0), other / (n_other or 1.0)


def local_fisher_scatters(
    X: Any, codes: np.ndarray, scales: np.ndarray, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return LFDA's S_w and S_b, from scatters of single classes with nonnegative weights.

    With B the scatter of the class means, F_c Fisher's scatter of class c (weights 1 / n_c) and S_c
    the local one (weights a_ij / n_c): S_w = sum_c S_c and S_b = B + sum_c (1 - n_c/n)(F_c - S_c).
    """
    w = _weights(X, sample_weight)
    share_of_others = 1 - np.bincount(codes, w) / w.sum()
    S_b = between_scatter(X, codes, w) + within_scatter(X, codes, share_of_others, w)
    S_w = np.zeros_like(S_b)
    local = locally_scaled_scatters(X, codes, scales, sample_weight)
    for share, S_c in zip(share_of_others, local, strict=True):
        S_w += S_c
        S_b -= share * S_c
    return S_w, S_b


def locally_scaled_scatters(
    X: Any, codes: np.ndarray, scales: np.ndarray, sample_weight: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """Yield, for every class c, `1 / (2 n_c) sum_{i,j in c} a_ij (x_i - x_j)(x_i - x_j)'`.

    a_ij = `exp(-||x_i - x_j||^2 / (s_i s_j))` connects all pairs of a class; the graph is formed in
    blocks of rows. With infinite scales, the sum over classes is `within_scatter`.
    """
    relative = _about_anchors(X, codes)
    classes = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    for members, n_c in zip(classes, np.bincount(codes, sample_weight), strict=True):
        X_c = relative(members)
        s = scales[members]
        S = np.zeros((X.shape[1], X.shape[1]))
        for rows in row_blocks(len(members), len(members)):
            squared = euclidean_distances(X_c[rows], X_c, squared=True)
            W = scaled_weights(squared, np.outer(s[rows], s))
            if sample_weight is not None:
                W *= np.outer(sample_weight[members[rows]], sample_weight[members])
            L = -W
            L[np.arange(len(W)), np.arange(len(members))[rows]] += W.sum(axis=1)
            S += X_c[rows].T @ (L @ X_c)
        yield (S + S.T) / (2 * n_c)


def _weights(X: Any, weights: np.ndarray | None) -> np.ndarray:
    """Return the weights of the rows of X, 1 by default."""
    return np.ones(X.shape[0]) if weights is None else weights


# For rows given by indices or a slice: these rows relative to some origins, float64.
Relative = Callable[[Any], Any]


def _about_anchors(X: Any, group: np.ndarray) -> Relative:
    """Return a function that returns given rows of X relative to a typical row of their group.

    Groups are connected components of the graph, or classes; the result is float64. This preserves
    differences within groups, and makes exactly 0 whatever does not differ within any group, such
    as a feature that only isolated rows have, or the distance between classes in a same-class
    graph. Otherwise its rounding errors would count as scatter. The typical row is the one nearest
    to the overall mean. Of sparse rows, it is the shortest, so that they stay sparse.
    """
    if issparse(X):
        X = X.astype(np.float64)
        sizes = X.power(2).sum(axis=1)
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        blocks = row_blocks(*X.shape)
        sizes = np.concatenate([np.linalg.norm(X[rows] - mean, axis=1) for rows in blocks])
    starts = np.cumsum(np.bincount(group)) - np.bincount(group)
    anchor = np.lexsort((sizes, group))[starts][group]
    if issparse(X):
        return (X - X[anchor]).__getitem__
    return lambda rows: X[rows].astype(np.float64) - X[anchor[rows]]


def _about_means(X: Any, codes: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return `sum_i w_i (x_i - m_c)(x_i - m_c)'` with the weighted means m_c of the groups."""
    relative = _about_anchors(X, codes)
    means = _means(X, relative, codes, w)
    if issparse(X):
        about_means = (means.T @ means.multiply(np.bincount(codes, w)[:, None])).toarray()
        return second_moment(relative(slice(None)), w) - about_means
    return _sum_of_squares(X, w, lambda rows: relative(rows) - means[codes[rows]])


def _means(X: Any, relative: Relative, codes: np.ndarray, w: np.ndarray) -> Any:
    """Return the weighted mean of every group of the relative rows, sparse for sparse X.

    The mean of a group without weight is 0.
    """
    total = np.bincount(codes, w)[codes]
    share = csr_array((w / np.where(total > 0, total, 1.0), codes, np.arange(len(w) + 1)))
    blocks = [slice(None)] if issparse(X) else row_blocks(*X.shape)
    return sum(share[rows].T @ relative(rows) for rows in blocks)


def _sum_of_squares(X: np.ndarray, w: np.ndarray, relative: Relative) -> np.ndarray:
    """Return `sum_i w_i a_i a_i'` for the rows of dense X relative to some origins."""

    def term(rows: slice) -> np.ndarray:
        A = relative(rows)
        return (A.T * w[rows]) @ A

    return parallel_sum(term, row_blocks(*X.shape), X.size)


# The span of the rows, with lossless conversion in both directions, so that for p > n no p x p
# matrix is formed.


@dataclass(frozen=True)
class RowSpace:
    """Rows in lossless coordinates, and the way back.

    Attributes
    ----------
    coordinates : array or sparse matrix of shape (n, r)
        For p <= n the rows themselves; for p > n the rows, centred or not, in an orthonormal basis
        of their span.
    expand : function from (r, m) to (p, m), default=None
        Multiplies columns by the basis; None if the coordinates are the features.
    """

    coordinates: Any
    expand: Callable[[np.ndarray], np.ndarray] | None = None

    def to_features(self, V: np.ndarray) -> np.ndarray:
        """Return columns (r, m) in these coordinates as columns of features, (p, m)."""
        return V if self.expand is None else self.expand(V)

    @cached_property
    def basis(self) -> np.ndarray:
        """The orthonormal basis of the span, shape (r, p)."""
        return self.to_features(np.eye(self.coordinates.shape[1])).T

    def back_project(self, V: np.ndarray) -> np.ndarray:
        """Return directions V (r, m) as rows of features (m, p).

        The largest entry of each is positive. Additional rows of V are coordinates in the
        `complement` of the span.
        """
        r = len(V) if self.expand is None else self.coordinates.shape[1]
        components = self.to_features(V[:r]).T
        if len(V) > r:
            components = components + V[r:].T @ self.complement(len(V) - r)
        return np.multiply(components, row_signs(components), order="C")

    def complement(self, m: int) -> np.ndarray:
        """Return m orthonormal rows (m, p) outside the span, in which the rows of X do not vary."""
        r, p = self.basis.shape
        start = np.random.default_rng(0).standard_normal((p, m))
        return qr(np.hstack([self.basis.T, start]), mode="economic")[0][:, r:].T


def row_space(X: Any, *, centred: bool = True) -> RowSpace:
    """Return the rows of X in as few coordinates as possible, exactly, by a thin SVD if p > n.

    It is free for p <= n and costs O(n^2 p) for p > n. Directions with singular values below 1e-10
    of the largest are dropped. `centred=False`, for criteria that depend on the origin, takes the
    span of the rows without centring.
    """
    n, p = X.shape
    if p <= n:
        require_memory(
            8 * 8 * p * p,
            f"The scatters of {p} features",
            "reduce the features first, e.g. with PCA",
        )
        return RowSpace(densified(X))
    require_memory(
        # X dense and once more; square factors and the work space of the decomposition
        2 * 8 * n * p + 8 * 8 * n**2,
        f"The span of {n} rows with {p} features",
        "reduce the features first, e.g. with sklearn.decomposition.TruncatedSVD",
    )
    rows = centre(dense_float64(X)) if centred else dense_float64(X)
    (reflectors, tau), R = qr(rows.T, mode="raw", overwrite_a=rows is not X, check_finite=False)
    U, s, Vt = svd(R.T, full_matrices=False, check_finite=False)
    r = min(int(np.sum(s > RANK_TOLERANCE * s[0])), n - centred)

    def expand(E: np.ndarray) -> np.ndarray:
        """Return Q V E, where Q (p, n), with orthonormal columns, is kept as reflections."""
        QE = np.zeros((p, E.shape[1]), order="F")
        QE[:n] = Vt[:r].T @ E
        size = int(dormqr("L", "N", reflectors, tau, QE[:, :1], -1)[1][0]) * max(1, E.shape[1])
        return dormqr("L", "N", reflectors, tau, QE, size, overwrite_c=1)[0]

    return RowSpace(U[:, :r] * s[:r], expand)  # X = R'Q' = U s (QV)'


def rows_with_ones(X: Any) -> Iterator[np.ndarray]:
    """Yield [1 X] in blocks of rows, dense and float64, with X relative to a typical row.

    A constant feature is exactly 0.
    """
    relative = _about_anchors(X, np.zeros(X.shape[0], dtype=int))
    for rows in row_blocks(*X.shape):
        A = dense_float64(relative(rows))
        yield np.hstack([np.ones((len(A), 1)), A])


def triangular_factor(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Return R of [1 X] = QR from blocks of rows [1 X], or from such factors of the blocks.

    Without its first row and column it is the factor of centred X. This needs neither the mean nor
    X'X, which would lose what lies below 1e-8.
    """
    R = np.empty((0, 0))
    for block in blocks:
        R = qr(np.vstack([R, block]) if R.size else block, mode="r", check_finite=False)[0][
            : block.shape[1]
        ]
    return R


def span_basis(R: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (p, r) of the span of the centred rows.

    R, of p + 1 columns, is their `triangular_factor`. Directions are dropped if their singular
    value is below 1e-10 of the largest, after every feature is scaled to unit length, so that the
    result does not depend on the units of the features. A warning is issued unless these directions
    are rounding errors of entries about this mean. The basis is the identity if all p are kept, and
    exactly 0 for a constant feature.
    """
    size, R = abs(R[0, 0]), R[1:, 1:]  # size: square root of the number of rows
    unit = np.linalg.norm(R, axis=0)
    varies = np.flatnonzero(unit)
    unit = unit[varies]
    s, Vt = svd(R[:, varies] / unit)[1:]
    rounding = 10 * np.finfo(float).eps * (1 + np.max(size * np.abs(mean[varies]) / unit))
    r = int(np.sum(s > max(RANK_TOLERANCE, rounding) * s[0]))
    n_small = int(np.sum(s[r:] > rounding * s[0]))
    if n_small:
        dropped = "which was dropped" if n_small == 1 else "which were dropped"
        warn_user(
            f"X varies by less than {RANK_TOLERANCE:g} of its features' spread in "
            f"{counted(n_small, 'direction')}, {dropped}: some features nearly repeat others, or "
            "sums of others. To keep what they add, replace them by the differences."
        )
    basis = np.zeros((len(mean), r))
    basis[varies] = (
        np.eye(r) if r == len(varies) else qr(Vt[r:].T / unit[:, None])[0][:, len(varies) - r :]
    )
    return basis
