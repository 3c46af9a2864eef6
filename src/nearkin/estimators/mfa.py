"""Marginal Fisher Analysis (Yan, Xu, Zhang, Zhang, Yang and Lin, TPAMI 2007)."""

from __future__ import annotations

from typing import Any

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_n_neighbors, validate_labelled_rows
from ..graphs import binary, laplacian, union
from ..neighbors import closest_pairs, nearest_same_class, searcher
from ..scatter import row_space, scatter
from ..spectral import generalized_eigh, unit_within_scatter
from .base import LinearEmbedding


class MFA(LinearEmbedding):
    """Marginal Fisher Analysis: near kin together, and the rows at the margins of the classes apart.

    The intrinsic graph ties i and j of one class if either is among the other's k_1 nearest of that class. The penalty
    graph ties i in c and j outside if theirs is among the k_2 shortest distances between a row of c and a row that is
    not, for any class c. All weights are 1. With their scatters

        S_w = sum_{i, j tied in the intrinsic graph} (x_i - x_j)(x_i - x_j)',   S_b the same of the penalty graph,

    every pair once, MFA maximizes tr((V'S_w V)^-1 V'S_b V): the largest eigenvalues of S_b v = lambda S_w v. Directions
    without any within scatter come first, of them the one with the most between scatter for its length; those in which
    both scatters vanish are left out.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b.
    n_neighbors : int, default=5
        k_1 of the intrinsic graph.
    n_pairs : int, default=100
        k_2, pairs of the penalty graph for every class. No more directions than there are pairs tell strangers apart.
        Which of equally close pairs is taken is unspecified, but the same for the same input.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i, best first, scaled so that v'S_w v = 1; where S_w is less than 1e-4 of S_w + S_b, so that
        v'(S_w + S_b)v = 10^4, which is finite where S_w vanishes.
    eigenvalues_ : ndarray of shape (m,)
        Descending: the share v'S_b v / v'(S_w + S_b)v = lambda / (1 + lambda) of each direction, in [0, 1].
    n_components_ : int
        m.
    objective_ : float
        Sum of the shares.
    rank_ : int
        Rank of S_w + S_b.
    search_ : str
        How neighbours were found: "exact", "approximate", "distances" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If fewer directions exist than were asked for, or if the closest strangers do not differ.

    Notes
    -----
    The scale of the features decides who is near: standardize first unless the units are comparable. Given the
    graphs, the criterion is indifferent to the units (p <= n). Where rows are few for their features it fits the rows
    it has seen: reduce the features first, e.g. with PCA, as the paper does.

    Cost: n^2 pairs of distances, O(n (k_1 + k_2) p + n p^2 + p^3) after them, O(n (k_1 + k_2 + p) + p^2) memory: no
    more than k_2 pairs of any row are looked at. For p > n the problem is solved in the span of the rows, O(n^2 p),
    without a p x p matrix.

    References
    ----------
    S. Yan, D. Xu, B. Zhang, H.-J. Zhang, Q. Yang, S. Lin: Graph Embedding and Extensions: A General Framework for
    Dimensionality Reduction. IEEE Transactions on Pattern Analysis and Machine Intelligence 29 (2007) 40-51.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import MFA
    >>> X, y = load_wine(return_X_y=True)
    >>> MFA(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    def __init__(
        self, n_components: int | None = None, *, n_neighbors: int = 5, n_pairs: int = 100, search: Any = "exact"
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_pairs = n_pairs
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any, *, distances: Any = None) -> MFA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1 is a class like any other. A class of one row has no kin to pull.
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
            If X or y is not as above or not finite, a parameter is out of bounds, or no rows that differ are tied.
        MemoryError
            If n_pairs strangers of every row would not fit into the memory that is free.
        """
        task = FitTask(self, X, y, n_steps=3)
        X, codes = validate_labelled_rows(self, X, y)
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        k_1 = check_n_neighbors(self.n_neighbors)
        k_2 = check_n_neighbors(self.n_pairs, "n_pairs")

        search = searcher(self.search, X.shape[0], distances)
        rows = row_space(X)
        Z = rows.coordinates
        with task.step("within scatter"):
            S_w = scatter(Z, laplacian(union(binary(nearest_same_class(Z, codes, k_1, search)))))
        with task.step("between scatter"):
            S_b = scatter(Z, laplacian(union(binary(closest_pairs(Z, codes, k_2, search)))))
        with task.step("eigenproblem"):
            result = unit_within_scatter(generalized_eigh(S_b, S_w, m))
        result.warn()

        self._keep_directions(result, rows, X.dtype)
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
