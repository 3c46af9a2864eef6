"""Laplacian Eigenmaps (Belkin and Niyogi, Neural Computation 2003)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_n_neighbors, validate_rows
from ..graphs import coupled_rows, indicators
from ..neighbors import searcher
from ..spectral import smallest_eigenpairs
from ._graph_prior import GraphPrior, GraphRule, RowGraph, check_laplacian, given_graph, warn_of_parts
from ._transductive import TransductiveEmbedding


class LaplacianEigenmaps(TransductiveEmbedding):
    """Laplacian Eigenmaps: coordinates in which rows that are tied by a graph lie near. It uses no labels.

    With W a graph of the rows, D = diag(W 1) its degrees and L = D - W, the embedding Z (n, m) minimizes

        1/2 sum_ij w_ij ||z_i - z_j||^2 = tr Z'LZ   subject to   Z'DZ = I, Z'De = 0,

    the smallest eigenvalues of L z = lambda D z but for the constant vector e. With `laplacian="unnormalized"` every
    row counts the same, whatever its degree: Z'Z = I, Z'e = 0 and L z = lambda z.

    Parameters
    ----------
    n_components : int, default=2
        m, at most n - 1.
    n_neighbors : int, default=10
        k of the graph.
    affinity : {"knn", "full"}, default="knn"
        Who is tied: the k nearest rows (if either lists the other), or all pairs.
    bandwidth : float or None, default=None
        t of the weights exp(-d^2 / t), in units of squared distances; None takes the mean of d^2 over the k nearest of
        every row, and np.inf gives all ties the weight 1.
    laplacian : {"normalized", "unnormalized"}, default="normalized"
        The constraint, see above.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        Z: coordinates of the training rows, smoothest column first.
    eigenvalues_ : ndarray of shape (m,)
        Ascending, at least 0, and at most 2 if normalized. A graph of q connected components has q - 1 zeros.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues.
    residual_ : float
        Largest `||P v - lambda v||` of the eigenvectors, relative to the norm of the (normalized) Laplacian P.
    search_ : str
        How neighbours were found: "exact", "approximate" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If a residual is above 1e-6.
    UserWarning
        If n rows have fewer than n_components directions, or the graph has more connected components than that.

    See Also
    --------
    nearkin.TDL : The same with labels.
    nearkin.LPP : The same for linear maps.
    sklearn.manifold.SpectralEmbedding : The same without new rows.

    Notes
    -----
    New rows are tied to the training rows as these are to one another, and placed where the eigen-equation puts a row
    with such ties (Nystroem's extension). `embedding_` is exact for the training rows; `transform(X)` sees them as new
    ones, and is what `fit_transform` returns, so that training and new rows are treated alike.

    The scale of the features decides who is near: standardize first unless the units are comparable. Where the graph
    falls apart, the first columns tell its components apart and nothing else: use more neighbours. A row without any
    tie counts with degree 1.

    Cost: n^2 pairs of distances for the graph; then a Lanczos iteration without any factorization, O(n k) a step,
    and O(n (k + m)) memory. Up to 2,000 rows the problem is solved densely, O(n^3). The full graph needs O(n^2) memory
    and is refused where that does not fit. A new row costs O(n p).

    References
    ----------
    M. Belkin, P. Niyogi: Laplacian Eigenmaps for Dimensionality Reduction and Data Representation. Neural Computation
    15 (2003) 1373-1396. Y. Bengio et al.: Out-of-Sample Extensions for LLE, Isomap, MDS, Eigenmaps, and Spectral
    Clustering. Advances in Neural Information Processing Systems 16 (2003).

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
            A graph W of yours, symmetric and not negative, instead of that of the distances between the rows. It cannot
            be cut into folds: no cross-validation with it.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If an approximate search is asked for and faiss is not installed.
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X or affinity is not as above or not finite, or a parameter is out of bounds.
        MemoryError
            If the full graph of the rows does not fit.
        """
        task = FitTask(self, X, y, n_steps=2)
        X = validate_rows(self, X, reset=True)
        m = check_integer(self.n_components, "n_components", 1)
        k = check_n_neighbors(self.n_neighbors)
        normalized = check_laplacian(self.laplacian)

        search = searcher(self.search, X.shape[0])
        with task.step("graph"):
            graph = None
            if affinity is None:
                graph, W = RowGraph.of(X, self.affinity, k, self.bandwidth, search)
            else:
                W = given_graph(affinity, X.shape[0], normalized=True)
            prior = GraphPrior(W, normalized)
        with task.step("eigenproblem"):
            P = prior.penalty
            result = smallest_eigenpairs(P, m, indicators(coupled_rows(P), prior.scale), excluded=prior.scale)
        result.warn()
        warn_of_parts(P, result.vectors.shape[1])

        Z = result.vectors / prior.scale[:, None]
        rule = GraphRule(Z, result.values, np.zeros(Z.shape[1]), normalized)
        self._keep(result, Z, rule, graph, X.dtype)
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self

    def fit_transform(self, X: Any, y: Any = None, *, affinity: Any = None) -> np.ndarray:
        """Fit, and return `transform(X)`, which sees the training rows as new ones; for theirs see `embedding_`."""
        return self.fit(X, y, affinity=affinity).transform(X, affinity=affinity)
