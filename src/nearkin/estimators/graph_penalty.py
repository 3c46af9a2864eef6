"""The penalty of a graph: how much an embedding of all rows changes along its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._messages import warn_user
from .._validation import check_integer
from ..graphs import (
    coupled_rows,
    heat_kernel,
    indicators,
    laplacian,
    normalized_laplacian,
    union,
    validate_affinity,
)
from ..neighbors import Searcher, neighbor_lists, searcher
from ..spectral import SpectralResult, smallest_eigenpairs
from .extension import GraphExtension, HeatGraph


def affinity_graph(estimator: Any, X: Any, affinity: Any) -> tuple[csr_array, Searcher]:
    """Return the graph and the search, by the parameters of an estimator.

    The graph is the union k-NN graph of X with heat-kernel weights, or the given affinity.
    """
    n = X.shape[0]
    k = check_integer(estimator.n_neighbors, "n_neighbors", 1)
    search = searcher(estimator.search, n)
    if affinity is not None:
        return validate_affinity(affinity, n), search
    return union(heat_kernel(neighbor_lists(X, None, k, "all", search))), search


class GraphPenalty:
    """The penalty tr V'PV, where P is the (normalized) Laplacian of a graph W.

    Attributes
    ----------
    W : csr_array of shape (n, n)
    normalized : bool
    P : csr_array of shape (n, n)
        L = D - W, or I - D^-1/2 W D^-1/2 if normalized.
    size : float
        The mean eigenvalue of P.
    scale : array of shape (n,)
        The null vector of P for connected W: the square roots of the degrees if normalized, else
        ones.
    graph : HeatGraph or None
        How new rows get edges; None if the user gives them.
    """

    def __init__(self, W: csr_array, normalized: bool, graph: HeatGraph | None) -> None:
        self.W, self.normalized, self.graph = W, normalized, graph
        self.P = normalized_laplacian(W) if normalized else laplacian(W)
        self.size = float(self.P.diagonal().mean())
        d = W.sum(axis=1)
        self.scale = np.sqrt(np.where(d > 0, d, 1.0)) if normalized else np.ones(len(d))

    def solve(
        self, cost: csr_array, reg: float, m: int, *, excluded: np.ndarray | None = None
    ) -> SpectralResult:
        """Minimize tr V'(C' + reg P)V subject to V'V = I and V'q = 0; q is `excluded` or e."""
        M = cost + reg * self.P
        null = indicators(coupled_rows(M), self.scale)
        return smallest_eigenpairs(M, m, null, excluded=excluded)

    def extension(self, V: np.ndarray, eigenvalues: np.ndarray) -> GraphExtension:
        """Return the extension to new rows of a V with P v = lambda v + c at unlabelled rows.

        The eigen-equation is C'v + reg P v = reg (lambda v + c). Its mean over all rows is c: v and
        C'v have mean 0.
        """
        c = (self.P @ V).mean(axis=0)
        sources = V / self.scale[:, None]
        return GraphExtension(self.graph, sources, eigenvalues, c, self.normalized)

    def warn_if_disconnected(self, m: int) -> None:
        """Warn if all m coordinates only separate connected components of the graph."""
        n_parts = int(coupled_rows(self.P).max()) + 1
        if n_parts > m:
            warn_user(
                f"The graph has {n_parts} connected components, and all n_components={m} "
                "coordinates serve to separate these: within a component rows coincide, or only "
                "labels separate them. Use more neighbours, a larger bandwidth, or more components."
            )
