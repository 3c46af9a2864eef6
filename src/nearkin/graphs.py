"""Weighted graphs from neighbour lists.

A neighbour list (see `neighbors`) is directed and contains distances. A graph is a symmetric sparse
`W (n, n)` of weights. Distances become weights (`binary`, `heat_kernel`), then both directions are
combined (`union`, `mutual`). The Laplacian is `L = D - W` with `D = diag(W 1)`. It measures how
much a function f of the rows changes along the edges, `f'Lf = 1/2 sum_ij w_ij (f_i - f_j)^2`;
`scatter.py` computes `X'LX`. Graphs that a user gives are checked (`validate_affinity`,
`validate_edges`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array, diags_array
from sklearn.preprocessing import normalize

from ._validation import canonical_csr, check_array


def binary(G: csr_array, copies: np.ndarray | None = None) -> csr_array:
    """Return weight 1 for every listed neighbour, including duplicates at distance 0.

    With `copies`, the number of pairs that each listed pair represents, return these numbers.
    """
    weights = np.ones(G.nnz) if copies is None else copies
    return csr_array((weights, G.indices, G.indptr), shape=G.shape)


LEAST_WEIGHT = 1e-10  # of a heat kernel, relative to the weight 1 at distance 0


def heat_kernel(
    G: csr_array,
    bandwidth: float | None = None,
    copies: np.ndarray | None = None,
    *,
    cut: float = LEAST_WEIGHT,
) -> csr_array:
    """Return `exp(-d^2 / t)` for every listed distance d; `bandwidth` t, by default the mean d^2.

    With `copies`, the number of pairs that each listed pair represents, the mean is over all these
    pairs, and the weights of those that a listed pair represents are added.

    An infinite t gives weight 1. Weights below `cut` are set to 0: in scatters they are lost in the
    rounding of larger ones, and a row with only such edges would count as a direction of its own.
    """
    squared = np.square(G.data, dtype=np.float64)
    t = np.average(squared, weights=copies) if bandwidth is None and G.nnz else bandwidth
    weights = np.exp(-squared / t) if t else np.ones(G.nnz)
    weights = np.where(weights < cut, 0.0, weights)
    if copies is not None:
        weights *= copies
    return csr_array((weights, G.indices, G.indptr), shape=G.shape)


def mean_weights(G: csr_array) -> csr_array:
    """Return weight 1 / (number of listed neighbours) for every listed neighbour.

    Rows sum to 1, or to 0 if empty.
    """
    return normalize(binary(G), norm="l1")


def scaled_weights(squared: np.ndarray, product: np.ndarray | float) -> np.ndarray:
    """Return `exp(-d^2 / (s_i s_j))` from squared distances and products of scales.

    Where a product is 0, the weight is the limit for products towards 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(squared > 0, np.exp(-squared / product), 1.0)


def kth_distance(G: csr_array, k: int) -> np.ndarray:
    """Return the distance of every row to its k-th (or last) listed neighbour; 0 without any."""
    lengths = np.diff(G.indptr)
    last = G.indptr[:-1] + np.minimum(k, lengths) - 1
    distances = np.zeros(len(lengths))
    distances[lengths > 0] = G.data[last[lengths > 0]]
    return distances


def union(W: csr_array) -> csr_array:
    """Return the union graph, in which either row lists the other: `max(w_ij, w_ji)`."""
    return csr_array(W.maximum(W.T))


def mutual(W: csr_array) -> csr_array:
    """Return the mutual graph, in which each row lists the other: `min(w_ij, w_ji)`."""
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
    """Return a column of unit length for every component 0, 1, ....

    It is proportional to `scale` on the rows of the component, and 0 elsewhere. With the components
    of W, the columns span the null space of its Laplacian (scale 1), or of the normalized one
    (scale `sqrt(d)`, where d is the degree, or 1 for an isolated row).
    """
    n, lengths = len(component), np.sqrt(np.bincount(component, scale**2))
    return csr_array(
        (scale / lengths[component], component, np.arange(n + 1)), shape=(n, len(lengths))
    )


def connected_components(W: csr_array) -> np.ndarray:
    """Return the component (0, 1, ...) of every row; an isolated row is its own component."""
    return csgraph.connected_components(W, directed=False)[1]


def coupled_rows(M: csr_array) -> np.ndarray:
    """Return the numerically connected component of every row of a symmetric matrix.

    Entries of rounding size, relative to the largest of M, are ignored, so that outliers with
    weights of 1e-46 count as isolated.
    """
    size = abs(M)
    size.data[size.data <= np.finfo(float).eps * size.data.max(initial=0.0)] = 0.0
    size.eliminate_zeros()
    return connected_components(size)


def joined_groups(units: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return codes of the groups formed by rows that share a unit or a group."""
    groups = groups + units.max() + 1  # distinct from the units
    n = groups.max() + 1
    pairs = coo_array((np.ones(len(units), bool), (units, groups)), shape=(n, n))
    return connected_components(pairs)[units]


def validate_affinity(
    affinity: Any, n: int, *, name: str = "affinity", signed: bool = False
) -> csr_array:
    """Return a given graph as a canonical float64 csr_array without its diagonal.

    Raises
    ------
    TypeError
        If it is a Dask collection, a torch tensor or another foreign array.
    ValueError
        If it is not a finite symmetric n x n matrix, has negative weights without `signed`, or
        weights whose squares overflow or vanish.
    """
    W = _checked_weights(affinity, name, (n, n), "a weight for every pair of rows of X")
    W = canonical_csr(csr_array(W - diags_array(W.diagonal())))
    W.eliminate_zeros()
    largest = abs(W).max() if W.nnz else 1.0
    if not 1e-150 < largest < 1e150:
        raise ValueError(
            f"{name} holds weights of up to {largest:.1e}, whose square overflows or underflows: "
            "scale it first."
        )
    if W.nnz and abs(W - W.T).max() > 1e-10 * largest:
        raise ValueError(
            f"{name} must be symmetric: take nearkin.graphs.union({name}), for example."
        )
    if not signed and W.min() < 0:
        raise ValueError(f"{name} must not be negative (smallest weight: {W.min():.3g}).")
    return W


def validate_edges(affinity: Any, n_new: int, n: int) -> csr_array:
    """Return the given weights of edges from new rows to training rows as a float64 csr_array."""
    what = f"the weights of {n_new} new rows to {n} training rows"
    W = _checked_weights(affinity, "affinity", (n_new, n), what)
    if W.nnz and W.min() < 0:
        raise ValueError(
            f"affinity must not be negative (smallest weight: {W.min():.3g}) on edges of new rows."
        )
    return canonical_csr(W)


def _checked_weights(W: Any, name: str, shape: tuple[int, int], what: str) -> csr_array:
    W = check_array(W, accept_sparse="csr", dtype=np.float64, input_name=name)
    if W.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}, {what}; got {W.shape}.")
    return csr_array(W)
