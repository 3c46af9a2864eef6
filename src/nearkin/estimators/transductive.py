"""Embeddings of the training rows along a graph, and their extension to new rows.

Laplacian Eigenmaps minimizes a graph penalty; TDL adds a cost of the labels. Both only give
coordinates to the rows of the graph. A new row gets edges to these by the same rule, and the
coordinates that the eigen-equation assigns to a row with such edges. With a kernel, TDL's
coordinates are functions in its reproducing kernel Hilbert space, which have values for new rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .._blocks import relative_to, row_blocks
from .._callbacks import CallbackSupportMixin
from .._memory import require_memory
from .._messages import shown, warn_user
from .._parameters import check_choice, check_integer, check_positive, equals
from ..graphs import (
    coupled_rows,
    heat_kernel,
    indicators,
    laplacian,
    normalized_laplacian,
    union,
    validate_affinity,
    validate_edges,
)
from ..linalg import RANK_TOLERANCE, eigh, svd
from ..neighbors import EXACT, Searcher, first, nearest, searcher
from ..spectral import SpectralResult, smallest_eigenpairs, smallest_of_dense
from .base import Embedding
from .validation import validate_rows

FAR = 20.0  # a new row's edge to its nearest training row weighs at least exp(-20)


class TransductiveEmbedding(CallbackSupportMixin, Embedding):
    """Coordinates of the training rows, and an extension to new ones.

    Abstract: a subclass defines `__init__` and `fit`.
    """

    def _graph_penalty(
        self, X: Any, affinity: Any, search: Searcher, *, signed: bool
    ) -> GraphPenalty:
        """Return the penalty for the graph of X or the given affinity, which may be `signed`."""
        check_choice(self.laplacian, "laplacian", ("normalized", "unnormalized"))
        normalized = self.laplacian == "normalized"
        n = X.shape[0]
        k = check_integer(self.n_neighbors, "n_neighbors", 1)
        if affinity is not None:
            W = validate_affinity(affinity, n, signed=signed)
            if W.nnz == 0:
                raise ValueError("affinity has no edge: all weights off its diagonal are 0.")
            return GraphPenalty(W, normalized, None)
        check_choice(self.affinity, "affinity", ("knn", "full"))
        full = self.affinity == "full"
        if full:
            require_memory(40 * n * n, f"The full graph of {n} rows", "take affinity='knn'")
        G = nearest(X, n - 1) if full else nearest(X, k, search)
        if self.bandwidth is None:
            t = float(np.square(first(G, k).data, dtype=np.float64).mean()) or np.inf
        else:
            t = check_positive(self.bandwidth, "bandwidth", or_infinite=True)
        W = union(heat_kernel(G, t, cut=0.0))
        if W.count_nonzero() == 0:
            raise ValueError(f"bandwidth={t:.3g} leaves no edge, as all weights are 0: raise it.")
        origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
        rows = X.copy() if origin is None else relative_to(origin, X)  # the caller may modify X
        return GraphPenalty(W, normalized, HeatGraph(rows, origin, n if full else k, t))

    def fit_transform(
        self, X: Any, y: Any = None, *, affinity: Any = None, **graphs: Any
    ) -> np.ndarray:
        """Fit and return `transform(X)`, which treats the training rows as new ones.

        `embedding_` holds their own coordinates.
        """
        return self.fit(X, y, affinity=affinity, **graphs).transform(X, affinity=affinity)

    def transform(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Map new rows to coordinates; see Notes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, p)
        affinity : array or sparse matrix of shape (n_new, n), optional
            Weights of the edges to the training rows. Required after a fit with an affinity,
            ignored with a kernel.

        Returns
        -------
        Z : array of shape (n_new, m)
            float32 if X is float32.
        """
        check_is_fitted(self, "extension_")
        X = validate_rows(self, X, reset=False)
        return self.extension_(X, affinity).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def affinity_graph(estimator: Any, X: Any, affinity: Any) -> tuple[csr_array, Searcher]:
    """Return the graph and the search, by the parameters of an estimator.

    The graph is the union k-NN graph of X with heat-kernel weights, or the given affinity.
    """
    n = X.shape[0]
    k = check_integer(estimator.n_neighbors, "n_neighbors", 1)
    search = searcher(estimator.search, n)
    if affinity is not None:
        return validate_affinity(affinity, n), search
    return union(heat_kernel(nearest(X, k, search))), search


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
class Solution:
    """The V that minimizes tr V'(C' + weight P)V, for a cost C' of labels and a penalty P.

    Attributes
    ----------
    result : SpectralResult
    cost : csr_array of shape (n, n)
        C', without clipped costs.
    weight : float
    clipped : array of shape (n,) of bool
        Rows whose cost is clipped.
    interrupted : bool
        Whether a KeyboardInterrupt ended the steps of a clipped cost after this one.
    """

    result: SpectralResult
    cost: csr_array
    weight: float
    clipped: np.ndarray
    interrupted: bool = False

    @property
    def roughness(self) -> np.ndarray:
        """The roughness v'Pv of every eigenvector v, shape (m,)."""
        V = self.result.vectors
        penalties = self.result.values - np.sum(V * (self.cost @ V), axis=0)
        return np.maximum(penalties, 0.0) / self.weight


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

    def solve(self, cost: csr_array, reg: float, m: int, **options: Any) -> SpectralResult:
        """Minimize tr V'(C' + reg P)V subject to V'V = I and V'q = 0.

        q is the option `excluded`, by default e; the options are those of `smallest_eigenpairs`.
        """
        M = cost + reg * self.P
        return smallest_eigenpairs(M, m, indicators(coupled_rows(M), self.scale), **options)

    def extension(self, solution: Solution) -> GraphExtension:
        """Return the extension of a solution V to new rows.

        For an unlabelled row, reg P v = lambda v + c, where c is the same for all rows.
        """
        result = solution.result
        reg = solution.weight
        V = result.vectors
        c = (solution.cost @ V + reg * (self.P @ V)).mean(axis=0)
        return GraphExtension(
            self.graph, V / self.scale[:, None], result.values / reg, c / reg, self.normalized
        )

    def as_unlabelled(self, solution: Solution) -> np.ndarray:
        """Return V, with labelled rows where unlabelled rows with the same edges would be."""
        V = solution.result.vectors.copy()
        rows = np.flatnonzero(np.diff(solution.cost.indptr))
        V[rows] = self.extension(solution).at(self.W[rows])
        return V

    def warn_if_disconnected(self, m: int) -> None:
        """Warn if all m coordinates only separate connected components of the graph."""
        n_parts = int(coupled_rows(self.P).max()) + 1
        if n_parts > m:
            warn_user(
                f"The graph has {n_parts} connected components, and all n_components={m} "
                "coordinates serve to separate these: within a component rows coincide, or only "
                "labels separate them. Use more neighbours, a larger bandwidth, or more components."
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


# The norm in a kernel's Hilbert space as a penalty, for embeddings that are functions of the row.

Kernel = Callable[[Any, Any], Any]


def kernel_function(kernel: Any, X: Any) -> Kernel:
    """Return the kernel as a function of two tables.

    "rbf" is exp(-d^2 / t), where t is the mean d^2 over all pairs of rows.
    """
    if callable(kernel) and not isinstance(kernel, type):
        return kernel
    if not equals(kernel, "rbf"):
        raise ValueError(
            f"kernel must be None, 'rbf' or a function of two tables, got {shown(kernel)}."
        )
    origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
    variances = StandardScaler(with_mean=False).fit(X).var_
    return partial(_rbf, origin=origin, gamma=0.5 / float(variances.sum()))


def _rbf(X: Any, Y: Any, origin: np.ndarray | None, gamma: float) -> np.ndarray:
    return rbf_kernel(relative_to(origin, X), relative_to(origin, Y), gamma=gamma)


class KernelPenalty:
    """The penalty sum_i ||f_i||^2 in the space of a kernel, plus tr V'PV for a graph.

    This is eq. 7 of TDL and its Theorem 4. The functions are combinations of k(., a) for anchors a:
    all rows (exact) or landmarks (Nyström). Those of mean 0 on the rows have coordinates b with V =
    Qb, Q'Q = I, Q'e = 0 and ||f||^2 = sum b_i^2 / s_i, so no kernel matrix is inverted. Directions
    with s_i below 1e-10 of the largest are left out.

    Attributes
    ----------
    Q : array of shape (n, r)
    s : array of shape (r,)
        Eigenvalues of the centred kernel, if all rows are anchors.
    """

    def __init__(self, X: Any, anchors: Any, kernel: Kernel, graph: GraphPenalty | None) -> None:
        self.anchors, self.kernel, self.graph = anchors, kernel, graph
        n = X.shape[0]
        q = anchors.shape[0]
        require_memory(
            4 * 8 * n * q, f"The kernel of {n} rows and {q} anchors", "take a smaller n_landmarks"
        )
        K = evaluate(kernel, anchors, anchors)
        size = np.abs(K).max()
        if size == 0 or np.abs(K - K.T).max() > 1e-6 * size:
            raise ValueError("kernel must be symmetric, k(x, y) = k(y, x), and not 0 everywhere.")
        s, U = eigh(K)
        if -s[0] > 1e-6 * s[-1]:
            raise ValueError(
                f"kernel must be positive semi-definite, its eigenvalues here go from {s[0]:.3g} "
                f"to {s[-1]:.3g}: take one of sklearn.metrics.pairwise that is, as rbf_kernel or "
                "laplacian_kernel."
            )
        kept = s > RANK_TOLERANCE * s[-1]
        whitening = U[:, kept] / np.sqrt(s[kept])
        K = evaluate(kernel, X, anchors)
        self.mean = K.mean(axis=0)
        K -= self.mean
        K = K @ whitening
        Q, roots, Rt = svd(K, full_matrices=False)
        kept = roots**2 > max(RANK_TOLERANCE * roots[0] ** 2, RANK_TOLERANCE**2 * n * s[-1])
        if not kept.any():
            raise ValueError(
                "kernel is the same for all rows: its functions are constant, and no embedding."
            )
        self.Q = Q[:, kept]
        self.s = roots[kept] ** 2
        self.size = float(1 / self.s.max())  # the smallest eigenvalue of K^+
        self.coefficients = whitening @ (Rt[kept].T / roots[kept])  # of k(x, anchors) - mean, for b

    def solve(self, cost: csr_array, reg: float, m: int, **options: Any) -> SpectralResult:
        """Minimize tr V'(C' + reg P)V + reg sum_i ||f_i||^2 subject to V'V = I, V'e = 0.

        LAPACK solves it; the options are ignored.
        """
        M = cost if self.graph is None else cost + reg * self.graph.P
        H = self.Q.T @ (M @ self.Q)
        H[np.diag_indices_from(H)] += reg / self.s
        return smallest_of_dense((H + H.T) / 2, m, self.Q)

    def as_unlabelled(self, solution: Solution) -> np.ndarray:
        """Return V: labels do not move functions of the row away from their neighbours."""
        return solution.result.vectors

    def extension(self, solution: Solution) -> KernelExtension:
        """Return the functions whose values on the training rows are the V of a solution."""
        coefficients = self.coefficients @ (self.Q.T @ solution.result.vectors)
        return KernelExtension(self.anchors, self.kernel, self.mean, coefficients)


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
