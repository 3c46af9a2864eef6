"""Rows and a graph make a scatter: `S(W) = X' L X = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)'`.

A spectral method is two such matrices and one criterion (`spectral`). Everything is accumulated in float64, and dense X
is centred first: that changes no difference x_i - x_j, but without it a large common offset cancels every digit. Sparse
X stays sparse. For p > n all matrices live in the span of the rows, see `span.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.metrics import euclidean_distances

from ._blocks import centre, dense_float64, row_blocks
from ._parallel import parallel_map, shares
from .graphs import connected_components, scaled_weights


def scatter(X: Any, L: csr_array) -> np.ndarray:
    """Return `X' L X`, shape (p, p), float64, for a Laplacian L (rows and columns sum to 0).

    Costs O(nnz(L) p + n p^2) for dense X; works in blocks of rows.
    """
    return _sparse_scatter(X, L) if issparse(X) else _dense_scatter(X, L)


def _dense_scatter(X: np.ndarray, L: csr_array) -> np.ndarray:
    anchor = _anchors(X, connected_components(L))

    def sum_over(blocks: Sequence[slice]) -> np.ndarray:
        S = np.zeros((X.shape[1], X.shape[1]))
        for rows in blocks:
            edges = L[rows]
            own = np.flatnonzero(np.diff(edges.indptr))
            adjacent = np.union1d(edges.indices, own + rows.start)
            A = _relative(X, adjacent, anchor[adjacent])
            columns = np.searchsorted(adjacent, edges.indices)
            local = csr_array((edges.data, columns, edges.indptr), (len(edges.indptr) - 1, len(adjacent)))
            S += A[np.searchsorted(adjacent, own + rows.start)].T @ (local[own] @ A)
        return S

    n, p = X.shape
    adjacent_to_a_row = min(1 + L.nnz // n, 16)  # in a dense graph a block is adjacent to nearly all rows
    S = reduce(np.add, parallel_map(sum_over, shares(row_blocks(n, p * adjacent_to_a_row)), L.nnz * p))
    return (S + S.T) / 2


def _sparse_scatter(X: csr_array, L: csr_array) -> np.ndarray:
    X = X.astype(np.float64)
    S = np.zeros((X.shape[1], X.shape[1]))
    total = np.zeros(X.shape[1])
    for rows in row_blocks(X.shape[0], X.shape[1]):
        LX = L[rows] @ X
        S += X[rows].T @ LX  # a sparse product, added to the dense sum
        total += LX.sum(axis=0)
    S -= np.outer(X.mean(axis=0), total)  # total is 0 but for rounding, which an offset of X has magnified in S
    return (S + S.T) / 2


def _relative(X: np.ndarray, rows: Any, origin: Any) -> np.ndarray:
    """Return some rows of dense X minus others (or one), float64."""
    return X[rows].astype(np.float64) - X[origin]


def _anchors(X: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return for every row of dense X a typical row of its group (connected component of the graph, class).

    Subtracting it keeps differences within groups, and makes exactly 0 what does not differ within any: a feature that
    only isolated rows have, the distance between classes in a same-class graph. Its rounding would pass for scatter.
    """
    mean = X.mean(axis=0, dtype=np.float64)
    to_mean = np.concatenate([np.linalg.norm(X[rows] - mean, axis=1) for rows in row_blocks(*X.shape)])
    return _least_of_group(to_mean, group)[group]


def _sparsely_anchored(X: csr_array, group: np.ndarray) -> csr_array:
    """Return sparse X relative to the row of fewest and smallest entries of each group: stays sparse."""
    X = X.astype(np.float64)
    return X - X[_least_of_group(X.power(2).sum(axis=1), group)[group]]


def group_means(X: Any, group: np.ndarray) -> Any:
    """Return the mean of every group 0, 1, ..., shape (c, p), sparse for sparse X."""
    counts = np.bincount(group)
    return _membership(group, len(counts)).T @ X / counts[:, None]


def _membership(group: np.ndarray, n_groups: int) -> csr_array:
    """Return 1 where the row is of the group, shape (n, c)."""
    n = len(group)
    return csr_array((np.ones(n), group, np.arange(n + 1)), shape=(n, n_groups))


def _means_from(X: np.ndarray, anchor: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the mean of every group 0, 1, ... of dense X, relative to the anchors."""
    counts = np.bincount(group)
    sums = np.zeros((len(counts), X.shape[1]))
    for rows in row_blocks(*X.shape):
        sums += _membership(group[rows], len(counts)).T @ _relative(X, rows, anchor[rows])
    return sums / counts[:, None]


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

    It is the scatter of the complete graph `ww' / sum(w)`.
    """
    w = np.ones(X.shape[0]) if weights is None else weights
    if issparse(X):
        X, w = X[w > 0], w[w > 0]
        X = _sparsely_anchored(X, np.zeros(len(w), dtype=int))
        mean = w @ X / w.sum()
        return second_moment(X, w) - w.sum() * np.outer(mean, mean)
    share = w / w.sum()
    mean = sum(share[rows] @ X[rows].astype(np.float64) for rows in row_blocks(*X.shape))
    away = [np.linalg.norm(X[rows] - mean, axis=1) for rows in row_blocks(*X.shape)]
    typical = int(np.where(w > 0, np.concatenate(away), np.inf).argmin())  # see `_anchors`
    mean = sum(share[rows] @ _relative(X, rows, typical) for rows in row_blocks(*X.shape))
    return _sum_of_squares(X, w, lambda rows: _relative(X, rows, typical) - mean)


def rows_with_ones(X: Any) -> Iterator[np.ndarray]:
    """Yield [1 X] in blocks of rows, dense and float64, X relative to a typical row: what is constant is exactly 0."""
    one = np.zeros(X.shape[0], dtype=int)
    anchor = None if issparse(X) else _anchors(X, one)
    X = _sparsely_anchored(X, one) if issparse(X) else X
    for rows in row_blocks(*X.shape):
        A = dense_float64(X[rows]) if anchor is None else _relative(X, rows, anchor[rows])
        yield np.hstack([np.ones((len(A), 1)), A])


def second_moment(X: Any, weights: np.ndarray) -> np.ndarray:
    """Return `sum_i w_i x_i x_i'`, shape (p, p), float64: about the origin, wherever the mean is."""
    if issparse(X):
        X = X.astype(np.float64)
        return (X.T @ X.multiply(weights[:, None])).toarray()
    return _sum_of_squares(X, weights, lambda rows: X[rows].astype(np.float64))


def _sum_of_squares(X: np.ndarray, w: np.ndarray, relative: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Return `sum_i w_i a_i a_i'` of the rows of dense X relative to some origins; rows of w_i = 0 are skipped."""

    def sum_over(blocks: Sequence[slice]) -> np.ndarray:
        S = np.zeros((X.shape[1], X.shape[1]))
        for rows in blocks:
            A = relative(rows)[w[rows] > 0]
            S += (A.T * w[rows][w[rows] > 0]) @ A
        return S

    return reduce(np.add, parallel_map(sum_over, shares(row_blocks(*X.shape)), X.size))


def between_scatter(X: Any, codes: np.ndarray) -> np.ndarray:
    """Return `sum_c n_c (m_c - m)(m_c - m)'` with the class means m_c; `codes` number the classes 0, 1, ..."""
    one = np.zeros_like(codes)  # one anchor: the means of a constant feature would differ by rounding
    if issparse(X):
        means = dense_float64(group_means(_sparsely_anchored(X, one), codes))
    else:
        means = _means_from(X, _anchors(X, one), codes)
    return total_scatter(means, np.bincount(codes).astype(np.float64))


def within_scatter(X: Any, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return `sum_c w_c sum_{i in c} (x_i - m_c)(x_i - m_c)'`; with all w_c = 1 it is total minus between scatter.

    A feature that is constant in every class is exactly 0 in it, which no difference of two sums would be.
    """
    w = np.ones(len(codes)) if weights is None else weights[codes]
    if issparse(X):
        X = _sparsely_anchored(X, codes) * np.sqrt(w)[:, None]
        means = group_means(X, codes)
        return (X.T @ X - means.T @ means.multiply(np.bincount(codes)[:, None])).toarray()
    anchor = _anchors(X, codes)
    means = _means_from(X, anchor, codes)
    return _sum_of_squares(X, w, lambda rows: _relative(X, rows, anchor[rows]) - means[codes[rows]])


def pair_covariances(X: Any, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of (x_i - x_j)(x_i - x_j)' over all pairs of one class, and over all of two classes; 0 of none.

    No pair is formed: the pairs of a class sum up to n_c times its scatter, all pairs to n times the total scatter, and
    those of two classes, the difference, to `n S_between + sum_c (n - n_c) S_c`.
    """
    n, sizes = len(codes), np.bincount(codes).astype(np.float64)
    n_same, n_other = sizes @ (sizes - 1) / 2, sizes @ (n - sizes) / 2
    same = within_scatter(X, codes, sizes)
    other = n * between_scatter(X, codes) + within_scatter(X, codes, n - sizes)
    return same / max(n_same, 1), other / max(n_other, 1)


def local_fisher_scatters(X: Any, codes: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return LFDA's S_w and S_b, from the scatters of the single classes, in which no weight is negative.

    The third value is tr L and tr L^2 of the graph of S_w.

    With B the scatter of the class means, F_c Fisher's scatter of class c (weights 1 / n_c) and S_c the local one
    (weights a_ij / n_c): S_w = sum_c S_c and S_b = B + sum_c (1 - n_c/n)(F_c - S_c).
    """
    share_of_others = 1 - np.bincount(codes) / len(codes)
    S_b = between_scatter(X, codes) + within_scatter(X, codes, share_of_others)
    S_w, traces = np.zeros_like(S_b), np.zeros(2)
    for share, (S_c, of_class) in zip(share_of_others, locally_scaled_scatters(X, codes, scales), strict=True):
        S_w += S_c
        S_b -= share * S_c
        traces += of_class
    return S_w, S_b, traces


def locally_scaled_scatters(X: Any, codes: np.ndarray, scales: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for every class c, `1 / (2 n_c) sum_{i,j in c} a_ij (x_i - x_j)(x_i - x_j)'`, and its tr L and tr L^2.

    a_ij = `exp(-||x_i - x_j||^2 / (s_i s_j))` joins all pairs of a class; this graph is formed by blocks of rows. With
    infinite scales the sum over classes is `within_scatter`.
    """
    anchor = None if issparse(X) else _anchors(X, codes)
    X = _sparsely_anchored(X, codes) if issparse(X) else X
    for members in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]):
        X_c = X[members] if anchor is None else _relative(X, members, anchor[members])
        s, n_c = scales[members], len(members)
        S, traces = np.zeros((X.shape[1], X.shape[1])), np.zeros(2)
        for rows in row_blocks(n_c, n_c):
            W = scaled_weights(euclidean_distances(X_c[rows], X_c, squared=True), np.outer(s[rows], s))
            L = -W
            L[np.arange(len(W)), np.arange(n_c)[rows]] += W.sum(axis=1)
            S += X_c[rows].T @ (L @ X_c)
            traces += np.trace(L, offset=rows.start) / n_c, np.square(L / n_c).sum()
        yield (S + S.T) / (2 * n_c), traces
