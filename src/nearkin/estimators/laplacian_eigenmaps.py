"""Laplacian Eigenmaps (Belkin and Niyogi, Neural Computation 2003)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer
from ..neighbors import searcher
from .base import REMEDIES
from .extension import GraphExtension
from .transductive import TransductiveEmbedding
from .validation import validate_rows


class LaplacianEigenmaps(TransductiveEmbedding):
    """Laplacian Eigenmaps: coordinates in which adjacent rows of a graph are close, without labels.

    With W a graph of the rows, D = diag(W 1) its degrees and L = D - W, the embedding Z (n, m)
    minimizes

        1/2 sum_ij w_ij ||z_i - z_j||^2 = tr Z'LZ   subject to   Z'DZ = I, Z'De = 0

    by the smallest eigenvalues of L z = lambda D z, except that of the constant vector e. With
    `laplacian="unnormalized"` all rows have equal weight in the constraint: Z'Z = I, Z'e = 0 and L
    z = lambda z.

    Parameters
    ----------
    n_components : int, default=2
        m, at most n - 1.
    n_neighbors : int, default=10
        k of the graph.
    affinity : {"knn", "full"}, default="knn"
        Edges connect each row to its k nearest rows (union of both directions), or all pairs.
    bandwidth : float or None, default=None
        t of the weights exp(-d^2 / t), in units of squared distances. None takes the mean of d^2
        over the k nearest rows of every row; np.inf gives all edges the weight 1.
    laplacian : {"normalized", "unnormalized"}, default="normalized"
        The constraint; see above.
    search
        See `LDE`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        Z: coordinates of the training rows, smoothest column first.
    eigenvalues_ : ndarray of shape (m,)
        Ascending, at least 0; at most 2 if normalized. A graph of q connected components has q - 1
        zeros.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues.
    residual_ : float
        Largest `||P v - lambda v||` of the eigenvectors, relative to the norm of the (normalized)
        Laplacian P.
    extension_ : callable
        Maps new rows to coordinates; a dataclass of arrays and numbers.
    search_
        See `LDE`.

    Warns
    -----
    ConvergenceWarning
        If a residual is above 1e-6.
    UserWarning
        If fewer than n_components directions exist, or the graph has more connected components than
        n_components.

    See Also
    --------
    nearkin.TDL : The same with labels.
    nearkin.LPP : The same as a linear map.
    sklearn.manifold.SpectralEmbedding : The same without new rows.

    Notes
    -----
    A new row gets edges to the training rows by the same rule, and the coordinates that the
    eigen-equation assigns to a row with such edges (the Nyström extension). `embedding_` is exact
    for the training rows. `transform(X)` treats them as new ones; `fit_transform` returns the same,
    so that training and new rows are treated alike.

    The scale of the features decides which rows are near: standardize first unless the units are
    comparable. If the graph is not connected, the first columns only separate its components: use
    more neighbours. An isolated row counts with degree 1.

    Cost: n^2 pairwise distances for the graph, then Lanczos iterations without any factorization,
    O(n k) per step, and O(n (k + m)) memory. Up to 2,000 rows a dense solver is used, O(n^3). The
    full graph needs O(n^2) memory and is refused if that does not fit. A new row costs O(n p).

    References
    ----------
    M. Belkin, P. Niyogi: Laplacian Eigenmaps for Dimensionality Reduction and Data Representation.
    Neural Computation 15 (2003) 1373-1396. Y. Bengio et al.: Out-of-Sample Extensions for LLE,
    Isomap, MDS, Eigenmaps, and Spectral Clustering. Advances in Neural Information Processing
    Systems 16 (2003).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import LaplacianEigenmaps
    >>> X, _ = load_digits(return_X_y=True)
    >>> LaplacianEigenmaps(n_components=2).fit(X[:1000]).transform(X[1000:]).shape
    (797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 10,
        affinity: str = "knn",
        bandwidth: float | None = None,
        laplacian: str = "normalized",
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.bandwidth = bandwidth
        self.laplacian = laplacian
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, affinity: Any = None) -> LaplacianEigenmaps:
        """Compute the coordinates of the training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : ignored
        affinity : array or sparse matrix of shape (n, n), optional
            Symmetric nonnegative graph W, used instead of one from the distances between the rows.
            Its entries are weights; `union(heat_kernel(G))` of `nearkin.graphs` makes them of
            precomputed distances G. Cross-validation cannot subset it.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        X = validate_rows(self, X, reset=True)
        m = check_integer(self.n_components, "n_components", 1)
        search = searcher(self.search, X.shape[0])
        penalty = self._graph_penalty(X, affinity, search, signed=False)
        result = penalty.solve(csr_array(penalty.W.shape), 1.0, m, excluded=penalty.scale)
        result.warn(REMEDIES)
        penalty.warn_if_disconnected(result.vectors.shape[1])

        Z = result.vectors / penalty.scale[:, None]
        no_constant = np.zeros_like(result.values)
        self.extension_ = GraphExtension(
            penalty.graph, Z, result.values, no_constant, penalty.normalized, generalized=True
        )
        self.embedding_ = Z.astype(X.dtype, copy=False)
        self.eigenvalues_ = result.values
        self.n_components_ = Z.shape[1]
        self.objective_ = result.objective
        self.residual_ = result.residual
        self.search_ = search.name
        task.end()
        return self
