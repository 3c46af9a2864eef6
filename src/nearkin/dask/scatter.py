"""Scatters of rows that are spread over a cluster: sums of p x p matrices, one for every block,
added in a tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances

from .._blocks import row_blocks
from ..graphs import scaled_weights
from .table import Block, Table


def total_scatter(table: Table, weights: list[Any] | None = None) -> np.ndarray:
    """Return `sum_i w_i (x_i - m)(x_i - m)'` with the weighted mean m, shape (p, p); by default
    every w_i is 1.
    """
    weights = weights or [None] * len(table.blocks)
    weight, *moment = table.total(first_moments, weights)
    S = table.total(second_moment, weights, mean=np.array(moment) / weight)
    return (S + S.T) / 2


def within_scatter(table: Table, weights: np.ndarray | None = None) -> np.ndarray:
    """Return `sum_c w_c sum_(i in c) (x_i - m_c)(x_i - m_c)'`, shape (p, p); by default every w_c
    is 1.
    """
    of_rows: list[Any] = [None] * len(table.blocks)
    if weights is not None:
        of_rows = table.map(lambda block: weights[block.codes])
    S = table.total(second_moment, of_rows, mean=class_means(table))
    return (S + S.T) / 2


def class_means(table: Table) -> np.ndarray:
    """Return the mean of every class, relative to the row that blocks are, shape (n_classes, p)."""
    sums = table.total(class_sums, n_classes=len(table.class_sizes))
    return sums / table.class_sizes[:, None]


def between_scatter(means: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
    """Return `sum_c n_c (m_c - m)(m_c - m)'` of the class means, shape (p, p)."""
    M = means - class_sizes @ means / class_sizes.sum()
    return (M.T * class_sizes) @ M


# Tasks.


def add_differences(S: Any, block: Block, W: csr_array, others: Block) -> np.ndarray:
    """Add to S the edges between two blocks, or within one."""
    edges = W[:, others.start : others.start + len(others.X)].tocoo()
    once = block.start + edges.row < others.start + edges.col
    i, j, w = edges.row[once], edges.col[once], edges.data[once]
    p = block.X.shape[1]
    S = S + np.zeros((p, p))
    for some in row_blocks(len(i), p):
        D = block.X[i[some]].astype(np.float64) - others.X[j[some]]
        S += (D.T * w[some]) @ D
    return S


def add_local_pairs(
    S: Any,
    block: Block,
    s: np.ndarray,
    others: Block,
    t: np.ndarray,
    *,
    means: np.ndarray,
    class_sizes: np.ndarray,
) -> np.ndarray:
    """Add to LFDA's S_w and S_b (2, p, p) the pairs of one class between two blocks, or within one;
    s, t are scales.
    """
    S = S + np.zeros((2, *2 * means.shape[1:]))
    once = 0.5 if block.start == others.start else 1.0
    for c in np.intersect1d(block.codes, others.codes):
        members, j = np.flatnonzero(block.codes == c), np.flatnonzero(others.codes == c)
        n_c = class_sizes[c]
        for some in row_blocks(len(members), len(j)):
            i = members[some]
            squared = euclidean_distances(block.X[i], others.X[j], squared=True)
            W = once * (scaled_weights(squared, np.outer(s[i], t[j])) / n_c)
            X, Y = block.X[i] - means[c], others.X[j] - means[c]
            S[0] += _pair_scatter(X, Y, W)
            S[1] += (1 - n_c / class_sizes.sum()) * _pair_scatter(X, Y, once / n_c - W)
    return S


def _pair_scatter(X: np.ndarray, Y: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return `sum_ij w_ij (x_i - y_j)(x_i - y_j)'`."""
    products = X.T @ W @ Y
    return (X.T * W.sum(axis=1)) @ X + (Y.T * W.sum(axis=0)) @ Y - products - products.T


def first_moments(block: Block, weights: np.ndarray | None) -> np.ndarray:
    """Return the sum of the weights, followed by the weighted sum of the rows."""
    w = np.ones(len(block.X)) if weights is None else weights
    return np.append(w.sum(), w @ block.X.astype(np.float64))


def second_moment(block: Block, weights: np.ndarray | None, *, mean: np.ndarray) -> np.ndarray:
    """Return the weighted sum of squares and products about the mean (p,), or about the class means
    (n_classes, p).
    """
    X = block.X.astype(np.float64) - (mean if mean.ndim == 1 else mean[block.codes])
    return X.T @ X if weights is None else (X.T * weights) @ X


def class_sums(block: Block, *, n_classes: int) -> np.ndarray:
    """Return the sum of the rows of every class."""
    n = len(block.X)
    membership = csr_array((np.ones(n), block.codes, np.arange(n + 1)), (n, n_classes))
    return membership.T @ block.X.astype(np.float64)
