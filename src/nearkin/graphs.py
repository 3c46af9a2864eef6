"""Weighted graphs from neighbour lists.

A neighbour list (see `neighbors`) is directed and holds distances. A graph is a symmetric sparse `W
(n, n)` of weights: distances become weights (`binary`, `heat_kernel`), then the two directions are
joined (`union`, `mutual`). Its Laplacian is `L = D - W` with `D = diag(W 1)`; it measures how much
a function f on the rows changes along the edges, `f'Lf = 1/2 sum_ij w_ij (f_i - f_j)^2`, and
`scatter.py` makes `X'LX` of it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array, diags_array
from sklearn.preprocessing import normalize


def binary(G: csr_array, copies: np.ndarray | None = None) -> csr_array:
    """Return weight 1 for every listed neighbour, duplicates at distance 0 included; or `copies`,
    the number of pairs that each listed one stands for.
    """
    weights = np.ones(G.nnz) if copies is None else copies
    return csr_array((weights, G.indices, G.indptr), shape=G.shape)


LEAST_WEIGHT = 1e-10  # of a heat kernel whose largest weight is 1


def heat_kernel(
    G: csr_array,
    bandwidth: float | None = None,
    copies: np.ndarray | None = None,
    *,
    cut: float = LEAST_WEIGHT,
) -> csr_array:
    """Return `exp(-d^2 / t)` for every listed distance d; t is `bandwidth`, by default the mean of
    d^2.

    With `copies`, the number of pairs that each listed one stands for, the mean is over all these
    pairs, and the weight is that of all of them together.

    An infinite t gives weight 1. Weights below `cut` are 0: in scatters they are lost in the
    rounding of larger ones, and a row with such edges only would count as a direction of its own.
    """
    squared = np.square(G.data, dtype=np.float64)
    t = np.average(squared, weights=copies) if bandwidth is None and G.nnz else bandwidth
    weights = np.exp(-squared / t) if t else np.ones(G.nnz)
    weights = np.where(weights < cut, 0.0, weights)
    if copies is not None:
        weights *= copies
    return csr_array((weights, G.indices, G.indptr), shape=G.shape)


def mean_weights(G: csr_array) -> csr_array:
    """Return weight 1 / (number of listed neighbours) for every listed neighbour: rows sum to 1, or
    to 0 if empty.
    """
    return normalize(binary(G), norm="l1")


def scaled_weights(squared: np.ndarray, product: np.ndarray | float) -> np.ndarray:
    """Return `exp(-d^2 / (s_i s_j))` from squared distances and products of scales, and its limit
    where one is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(squared > 0, np.exp(-squared / product), 1.0)


def kth_distance(G: csr_array, k: int) -> np.ndarray:
    """Return for every row the distance to its k-th listed neighbour, or to its last; 0 for an
    empty list.
    """
    lengths = np.diff(G.indptr)
    last = G.indptr[:-1] + np.minimum(k, lengths) - 1
    distances = np.zeros(len(lengths))
    distances[lengths > 0] = G.data[last[lengths > 0]]
    return distances


def union(W: csr_array) -> csr_array:
    """Return the graph of i and j where either lists the other: `max(w_ij, w_ji)`."""
    return csr_array(W.maximum(W.T))


def mutual(W: csr_array) -> csr_array:
    """Return the graph of i and j where each lists the other: `min(w_ij, w_ji)`."""
    return csr_array(W.minimum(W.T))


def laplacian(W: csr_array) -> csr_array:
    """Return `L = diag(W 1) - W`. For signed weights it is symmetric but indefinite."""
    return csr_array(diags_array(W.sum(axis=1)) - W)


def normalized_laplacian(W: csr_array) -> csr_array:
    """Return `I - D^-1/2 W D^-1/2`; the row and column of an isolated row are 0."""
    d = W.sum(axis=1)
    scale = np.where(d > 0, 1.0 / np.sqrt(np.where(d > 0, d, 1.0)), 0.0)
    S = diags_array(scale)
    return csr_array(diags_array((d > 0).astype(np.float64)) - S @ W @ S)


def indicators(component: np.ndarray, scale: np.ndarray) -> csr_array:
    """Return a column of unit length for every component (0, 1, ...): `scale` on its rows, 0
    elsewhere.

    With the components of W they span the null space of its Laplacian (scale 1), or of the
    normalized one (scale `sqrt(d)`, d the degrees, and 1 for an isolated row).
    """
    n, lengths = len(component), np.sqrt(np.bincount(component, scale**2))
    return csr_array(
        (scale / lengths[component], component, np.arange(n + 1)), shape=(n, len(lengths))
    )


def connected_components(W: csr_array) -> np.ndarray:
    """Return the number of its component (0, 1, ...) for every row; an isolated row is one of its
    own.
    """
    return csgraph.connected_components(W, directed=False)[1]


def coupled_rows(M: csr_array) -> np.ndarray:
    """Return the connected component of every row of a symmetric matrix, as its eigenvectors see
    it.

    Entries of rounding size, relative to the largest of M, do not count: outliers whose weights are
    1e-46 are isolated.
    """
    size = abs(M)
    size.data[size.data <= np.finfo(float).eps * size.data.max(initial=0.0)] = 0.0
    size.eliminate_zeros()
    return connected_components(size)


def joined_groups(units: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return numbers of the groups that rows form which share a unit or a group."""
    groups = groups + units.max() + 1  # numbers of their own
    n = groups.max() + 1
    pairs = coo_array((np.ones(len(units), bool), (units, groups)), shape=(n, n))
    return connected_components(pairs)[units]
