"""The extension of an embedding to new rows: along edges of a graph, or as functions of a kernel.

Laplacian Eigenmaps and TDL only give coordinates to the rows of a graph. A new row gets edges to
these by the same rule, and the coordinates that the eigen-equation assigns to a row with such
edges. With a kernel, TDL's coordinates are functions in its Hilbert space, which have values for
new rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn import config_context

from .._blocks import relative_to, row_blocks
from ..graphs import validate_edges
from ..neighbors import EXACT

FAR = 20.0  # a new row's edge to its nearest training row weighs at least exp(-20)

Kernel = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class HeatGraph:
    """Weights exp(-d^2 / t) on the edges to the k nearest training rows.

    Attributes
    ----------
    rows : array or sparse matrix of shape (n, p)
        Training rows. Dense ones are relative to `origin`, since distances lose precision far from
        it.
    origin : array of shape (p,), or None for sparse rows
    n_neighbors : int
        k; n for the full graph.
    bandwidth : float
        t, in units of squared distances; infinite for weights of 1.
    """

    rows: Any
    origin: np.ndarray | None
    n_neighbors: int
    bandwidth: float

    def weights(self, X: Any) -> csr_array:
        """Return the edge weights between rows X and the training rows, shape (n_new, n).

        For a row far from all training rows, whose largest weight is less than exp(-20), the
        weights are scaled such that the largest is exp(-20).
        """
        n = self.rows.shape[0]
        k = min(self.n_neighbors, n)
        with config_context(assume_finite=True):
            distances, neighbors = EXACT.index(self.rows, k)(relative_to(self.origin, X), k)
        with np.errstate(over="ignore"):
            exponents = np.minimum(np.square(distances, dtype=np.float64) / self.bandwidth, 1e300)
        exponents -= np.maximum(exponents[:, :1] - FAR, 0.0)
        indptr = np.arange(0, neighbors.size + 1, k)
        return csr_array(
            (np.exp(-exponents).ravel(), neighbors.ravel(), indptr), shape=(len(neighbors), n)
        )


@dataclass(frozen=True)
class GraphExtension:
    """The Nyström extension: the eigen-equation P v = lambda v + c, solved for a new row.

    The row has edge weights w_j and degree d. For P = L, v = (sum_j w_j v_j + c) / (d - lambda).
    For the normalized Laplacian, with u_j = v_j / sqrt(d_j), v = (sum_j w_j u_j / sqrt(d) + c) / (1
    - lambda). Since this only holds for smooth eigenvectors, lambda is limited to half of what it
    is subtracted from.

    Attributes
    ----------
    graph : HeatGraph or None
    sources : array of shape (n, m)
        v_j; for the normalized Laplacian u_j.
    eigenvalues, constant : arrays of shape (m,)
        lambda and c.
    normalized : bool
    generalized : bool
        Whether the embedding is u, the solution of L u = lambda D u, instead of v.
    """

    graph: HeatGraph | None
    sources: np.ndarray
    eigenvalues: np.ndarray
    constant: np.ndarray
    normalized: bool
    generalized: bool = False

    def __call__(self, X: Any, affinity: Any = None) -> np.ndarray:
        """Return the coordinates of rows X, with edges from the graph or `affinity` (n_new, n)."""
        if affinity is not None:
            return self.at(validate_edges(affinity, X.shape[0], self.sources.shape[0]))
        if self.graph is None:
            raise ValueError(
                "After a fit with an affinity the edges of new rows are unknown: pass transform(X, "
                "affinity=W) with their weights to the training rows, shape (n_new, n)."
            )
        blocks = row_blocks(X.shape[0], 2 * self.graph.n_neighbors)
        return np.vstack([self.at(self.graph.weights(X[rows])) for rows in blocks])

    def at(self, W: csr_array) -> np.ndarray:
        """Return the coordinates of rows with edge weights W (n_new, n) to the training rows."""
        d = W.sum(axis=1)[:, None]
        d = np.where(d > 0, d, 1.0)  # isolated rows, for which sum w_j v_j = 0
        scale, diagonal = (np.sqrt(d), np.ones(1)) if self.normalized else (np.ones(1), d)
        V = (W @ self.sources / scale + self.constant) / np.maximum(
            diagonal - self.eigenvalues, diagonal / 2
        )
        return V / scale if self.generalized else V


@dataclass(frozen=True)
class KernelExtension:
    """Functions f(x) = (k(x, anchors) - mean) coefficients."""

    anchors: Any
    kernel: Kernel
    mean: np.ndarray
    coefficients: np.ndarray

    def __call__(self, X: Any, affinity: Any = None) -> np.ndarray:
        """Return the coordinates of rows X."""
        blocks = row_blocks(X.shape[0], self.anchors.shape[0])
        kernels = (evaluate(self.kernel, X[rows], self.anchors) for rows in blocks)
        return np.vstack([(K - self.mean) @ self.coefficients for K in kernels])


def evaluate(kernel: Kernel, X: Any, anchors: Any) -> np.ndarray:
    """Return k(x, anchors) as a new float64 array of shape (n, number of anchors).

    It is computed in float64: the eigenvalues of a kernel in float32 are noise from 1e-7 on.
    """
    X, anchors = (rows.astype(np.float64, copy=False) for rows in (X, anchors))
    K = np.array(kernel(X, anchors), dtype=np.float64)
    shape = (X.shape[0], anchors.shape[0])
    if K.shape != shape:
        raise ValueError(
            f"kernel must return the shape {shape} for tables of so many rows, got {K.shape}."
        )
    if not np.isfinite(K).all():
        raise ValueError("kernel must return finite numbers, got NaN or inf.")
    return K
