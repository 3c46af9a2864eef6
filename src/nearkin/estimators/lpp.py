"""Locality Preserving Projections (He and Niyogi, NIPS 2003)."""

from __future__ import annotations

from typing import Any

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_n_neighbors, validate_rows
from ..graphs import heat_kernel, laplacian, union
from ..neighbors import nearest, searcher
from ..scatter import row_space, scatter, total_scatter
from ..spectral import ratio_trace
from .base import LinearEmbedding


class LPP(LinearEmbedding):
    """Locality Preserving Projections: the linear map that keeps near rows near. It uses no labels.

    With W the graph of the k nearest neighbours (tied if either lists the other), weighted by the heat kernel
    `exp(-d^2 / t)`, t the mean squared length of the listed edges, D = diag(W 1) and L = D - W, LPP minimizes

        sum_ij w_ij (a'x_i - a'x_j)^2   subject to   a'X'DXa = 1,

    the smallest eigenvalues of X'LX a = lambda X'DX a. X is taken relative to its D-weighted mean, which makes the
    answer independent of the origin and excludes the constant embedding, as Laplacian Eigenmaps do: with X the
    identity LPP *is* Laplacian Eigenmaps.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of X.
    n_neighbors : int, default=10
        k of the graph.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows a_i, smoothest first, scaled so that a'X'DXa = 1.
    eigenvalues_ : ndarray of shape (m,)
        Ascending, in [0, 2].
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Rank of X'DX.
    search_ : str
        How neighbours were found: "exact", "approximate", "distances" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If fewer directions exist than were asked for.

    Notes
    -----
    The scale of the features decides who is near: standardize first unless the units are comparable. Given the
    neighbours, the criterion is indifferent to the units (p <= n).

    Cost: n^2 pairs of distances, O(n k p + n p^2 + p^3) after them, O(n k + p^2) memory. For p > n the problem is
    solved in the span of the rows, O(n^2 p), without a p x p matrix.

    References
    ----------
    X. He, P. Niyogi: Locality Preserving Projections. Advances in Neural Information Processing Systems 16 (2003).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LPP
    >>> X, _ = load_wine(return_X_y=True)
    >>> LPP(n_components=2).fit_transform(scale(X)).shape
    (178, 2)
    """

    def __init__(self, n_components: int | None = None, *, n_neighbors: int = 10, search: Any = "exact") -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, distances: Any = None) -> LPP:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : ignored
        distances : sparse matrix of shape (n, n), default=None
            Distances from every row to some others, in place of a search; rows that lack neighbours of a kind use what
            they have, with a warning. Cross-validation cannot cut it.

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
            If X is not as above or not finite, or a parameter is out of bounds.
        """
        task = FitTask(self, X, y, n_steps=3)
        X = validate_rows(self, X, reset=True)
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        k = check_n_neighbors(self.n_neighbors)

        search = searcher(self.search, X.shape[0], distances)
        rows = row_space(X)
        Z = rows.coordinates
        with task.step("graph"):
            W = union(heat_kernel(nearest(Z, k, search)))
        with task.step("scatter"):
            S, S_d = scatter(Z, laplacian(W)), total_scatter(Z, weights=W.sum(axis=1))
        with task.step("eigenproblem"):
            result = ratio_trace(S, S_d, m)
        result.warn()

        self._keep_directions(result, rows, X.dtype)
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self
