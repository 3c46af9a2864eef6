"""A graph as prior knowledge of who is near whom: a penalty on embeddings of all rows, and a rule for new rows.

Laplacian Eigenmaps minimize the penalty alone; TDL adds a cost of labels to it. The embedding is known for the rows of
the graph only. New rows are tied to them as they are to one another (`RowGraph`), and are placed where the
eigen-equation puts a row with such ties (`GraphRule`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from .._memory import require_memory
from .._validation import validate_affinity, validate_edges
from .._warn import warn_user
from ..graphs import coupled_rows, heat_kernel, indicators, laplacian, normalized_laplacian, union
from ..neighbors import EXACT, Searcher, nearest
from ..spectral import SpectralResult, smallest_eigenpairs

AFFINITIES = ("knn", "full")
FAINT = 20.0  # the nearest training row of a new one has at least the weight exp(-20)


@dataclass(frozen=True)
class RowGraph:
    """How rows are tied by their distances d: weights exp(-d^2 / t) among the k nearest ("knn"), or all ("full").

    Attributes
    ----------
    rows : array or sparse matrix of shape (n, p)
        Training rows; dense ones relative to `origin`, far from which distances lose their digits.
    origin : array of shape (p,), or None for sparse rows
    n_neighbors : int
        k; n where all rows are tied.
    bandwidth : float
        t, in units of squared distances; infinite: all weights are 1.
    """

    rows: Any
    origin: np.ndarray | None
    n_neighbors: int
    bandwidth: float

    @classmethod
    def of(
        cls, X: Any, affinity: str, n_neighbors: int, bandwidth: float | None, search: Searcher = EXACT
    ) -> tuple[RowGraph, csr_array]:
        """Return the rule and the symmetric graph of the rows X; t is by default the mean d^2 to the k nearest."""
        n = X.shape[0]
        if affinity not in AFFINITIES:
            raise ValueError(f"affinity must be one of {AFFINITIES}, got {affinity!r}; a graph of yours goes to fit.")
        if bandwidth is not None:
            _check_bandwidth(bandwidth)
        full = affinity == "full"
        if full:
            require_memory(40 * n * n, f"The full graph of {n} rows", "take affinity='knn'")
        G = nearest(X, n - 1) if full else nearest(X, n_neighbors, search)
        if bandwidth is None:
            bandwidth = _mean_square_to_nearest(G, n_neighbors) or np.inf
        origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
        rows = X.copy() if origin is None else about(X, origin)  # the user's rows may change
        graph = cls(rows, origin, n if full else n_neighbors, float(bandwidth))
        W = union(heat_kernel(G, graph.bandwidth, cut=0.0))
        if W.count_nonzero() == 0:
            raise ValueError(f"bandwidth={bandwidth:.3g} leaves no two rows tied, as all weights are 0: raise it.")
        return graph, W

    def ties(self, X: Any) -> csr_array:
        """Return the weights of training rows in rows X, shape (n_new, n).

        Where even the nearest has less than exp(-20), all are raised until it has that.
        """
        k = min(self.n_neighbors, self.rows.shape[0])
        with config_context(assume_finite=True):
            index = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self.rows)
            distances, found = index.kneighbors(about(X, self.origin))
        with np.errstate(over="ignore"):
            exponents = np.minimum(np.square(distances, dtype=np.float64) / self.bandwidth, 1e300)
        exponents -= np.maximum(exponents[:, :1] - FAINT, 0.0)
        indptr = np.arange(0, found.size + 1, k)
        return csr_array((np.exp(-exponents).ravel(), found.ravel(), indptr), shape=(len(found), self.rows.shape[0]))


def _check_bandwidth(bandwidth: Any) -> None:
    number = isinstance(bandwidth, (int, float, np.number)) and not isinstance(bandwidth, bool)
    if not (number and bandwidth > 0):
        raise ValueError(f"bandwidth must be a number larger than 0 (np.inf: all weights are 1), got {bandwidth!r}.")


def given_graph(affinity: Any, n: int, *, normalized: bool) -> csr_array:
    """Return the user's graph of n rows; some of its weights must differ from 0, and only unnormalized may be below."""
    W = validate_affinity(affinity, n, signed=not normalized)
    if W.nnz == 0:
        raise ValueError("affinity ties no two rows: all weights beside its diagonal are 0.")
    return W


def warn_of_parts(penalty: csr_array, m: int) -> None:
    """Warn when the graph falls into so many parts that m coordinates are used up to tell these apart."""
    parts = int(coupled_rows(penalty).max()) + 1
    if parts > m:
        warn_user(
            f"The graph falls into {parts} parts, and to tell these apart takes all n_components={m} coordinates: rows "
            "of one part lie together, or are told apart by labels alone. Use more neighbours, a larger bandwidth, or "
            "more components."
        )


def check_laplacian(laplacian: Any) -> bool:
    """Return whether the normalized Laplacian is asked for."""
    if laplacian not in ("normalized", "unnormalized"):
        raise ValueError(f"laplacian must be 'normalized' or 'unnormalized', got {laplacian!r}.")
    return laplacian == "normalized"


def about(X: Any, origin: np.ndarray | None) -> Any:
    """Return rows relative to the origin, their type kept."""
    if origin is None:
        return X
    X = X.toarray() if issparse(X) else X
    return (X - origin).astype(X.dtype, copy=False)


def _mean_square_to_nearest(G: csr_array, k: int) -> float:
    listed = np.arange(G.nnz) - np.repeat(G.indptr[:-1], np.diff(G.indptr)) < k
    return float(np.square(G.data[listed], dtype=np.float64).mean())


@dataclass(frozen=True)
class GraphPrior:
    """The penalty tr V'PV, P the Laplacian of a graph W or the normalized one.

    Attributes
    ----------
    weights : csr_array of shape (n, n)
        W.
    normalized : bool
    """

    weights: csr_array
    normalized: bool

    @cached_property
    def penalty(self) -> csr_array:
        """P."""
        return normalized_laplacian(self.weights) if self.normalized else laplacian(self.weights)

    @cached_property
    def scale(self) -> np.ndarray:
        """The null vector of P for connected W, shape (n,): the roots of the degrees d if normalized, else ones."""
        d = self.weights.sum(axis=1)
        return np.sqrt(np.where(d > 0, d, 1.0)) if self.normalized else np.ones(len(d))

    def solve(self, cost: csr_array, reg: float, m: int, start: np.ndarray | None = None) -> SpectralResult:
        """Minimize tr V'(C + reg P)V subject to V'V = I, V'e = 0, for a cost C with rows that sum to 0."""
        M = csr_array(cost + reg * self.penalty)
        component = coupled_rows(M)
        if self.normalized:  # the null vector of a component survives no cost
            component[np.isin(component, component[cost.indices])] = -1
            component[component >= 0] = np.unique(component[component >= 0], return_inverse=True)[1]
        return smallest_eigenpairs(M, m, indicators(component, self.scale), start=start)

    def rule(self, result: SpectralResult, cost: csr_array, reg: float) -> GraphRule:
        """Return how the embedding V of `solve` goes on: an unlabelled row obeys reg P v = theta v + c, c constant."""
        V = result.vectors
        constant = (cost @ V + reg * (self.penalty @ V)).mean(axis=0)
        return GraphRule(V / self.scale[:, None], result.values / reg, constant / reg, self.normalized, weighted=True)


@dataclass(frozen=True)
class GraphRule:
    """The eigen-equation read at a new row with weights w_j to the training rows, d = sum w_j (Nystroem's extension).

    L v = lambda v + c says v = (sum w_j v_j + c) / (d - lambda). For the normalized Laplacian and its eigenvectors v,
    u = v / sqrt(d) is u = (sum w_j u_j / d + c / sqrt(d)) / (1 - lambda); both v and u are embeddings in use. As this
    holds for smooth vectors only, lambda counts for at most half of what it is subtracted from.

    Attributes
    ----------
    sources : array of shape (n, m)
        v_j; for the normalized Laplacian u_j.
    values : array of shape (m,)
        lambda.
    constant : array of shape (m,)
        c.
    normalized : bool
    weighted : bool
        Whether v = sqrt(d) u is wanted, of the normalized Laplacian.
    """

    sources: np.ndarray
    values: np.ndarray
    constant: np.ndarray
    normalized: bool
    weighted: bool = False

    def __call__(self, ties: csr_array) -> np.ndarray:
        d = ties.sum(axis=1)[:, None]
        d = np.where(d > 0, d, 1.0)  # a row without ties has sum w_j v_j = 0
        if not self.normalized:
            return (ties @ self.sources + self.constant) / np.maximum(d - self.values, d / 2)
        root = np.sqrt(d)
        U = (ties @ self.sources / d + self.constant / root) / np.maximum(1.0 - self.values, 0.5)
        return root * U if self.weighted else U

    def place(self, X: Any, graph: RowGraph | None, affinity: Any) -> np.ndarray:
        """Return the coordinates of rows X by blocks, tied as the graph says, or by `affinity` of shape (n_new, n)."""
        if affinity is not None:
            return self(validate_edges(affinity, X.shape[0], self.sources.shape[0]))
        if graph is None:
            raise ValueError(
                "A map that was fitted with an affinity does not know how new rows are tied: pass transform(X, "
                "affinity=W) with their weights to the training rows, shape (n_new, n)."
            )
        blocks = row_blocks(X.shape[0], 2 * graph.n_neighbors)
        return np.vstack([self(graph.ties(X[rows])) for rows in blocks])
