"""Local Discriminant Embedding (Chen, Chang and Liu, CVPR 2005)."""

from __future__ import annotations

from typing import Any

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_n_neighbors, validate_labelled_rows
from ..graphs import heat_kernel, laplacian, union
from ..neighbors import nearest_other_class, nearest_same_class, searcher
from ..scatter import row_space, scatter
from ..spectral import generalized_eigh, unit_within_scatter
from .base import LinearEmbedding


class LDE(LinearEmbedding):
    """Local Discriminant Embedding: near kin together, near strangers apart, and the nearer they are, the more so.

    W ties i and j of one class if either is among the other's k_w nearest of that class; W' ties i and j of two
    classes if either is among the other's k_b nearest of all other classes. Weights are `exp(-d^2 / t)`, with t the
    mean squared length of the listed edges, of each graph by itself. With their scatters

        S_w = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)',    S_b = 1/2 sum_ij w'_ij (x_i - x_j)(x_i - x_j)',

    LDE maximizes tr V'S_b V subject to V'S_w V = I: the largest eigenvalues of S_b v = lambda S_w v. Directions without
    any within scatter come first, of them the one with the most between scatter for its length; those in which both
    scatters vanish are left out.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b.
    n_neighbors_within : int, default=5
        k_w.
    n_neighbors_between : int, default=5
        k_b.
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
        If fewer directions exist than were asked for, or if near strangers do not differ.

    Notes
    -----
    The scale of the features decides who is near: standardize first unless the units are comparable. Given the
    graphs, the criterion is indifferent to the units (p <= n). Where rows are few for their features it fits the rows
    it has seen: reduce the features first, e.g. with PCA, as the paper does.

    Cost: n^2 pairs of distances, O(n k p + n p^2 + p^3) after them, O(n k + n p + p^2) memory. For p > n the problem
    is solved in the span of the rows, O(n^2 p), without a p x p matrix.

    References
    ----------
    H.-T. Chen, H.-W. Chang, T.-L. Liu: Local Discriminant Embedding and Its Variants. CVPR 2005, volume 2, 846-853.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LDE
    >>> X, y = load_wine(return_X_y=True)
    >>> LDE(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors_within: int = 5,
        n_neighbors_between: int = 5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any, *, distances: Any = None) -> LDE:
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
        """
        task = FitTask(self, X, y, n_steps=3)
        X, codes = validate_labelled_rows(self, X, y)
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        k_w = check_n_neighbors(self.n_neighbors_within, "n_neighbors_within")
        k_b = check_n_neighbors(self.n_neighbors_between, "n_neighbors_between")

        search = searcher(self.search, X.shape[0], distances)
        rows = row_space(X)
        Z = rows.coordinates
        with task.step("within scatter"):
            S_w = scatter(Z, laplacian(union(heat_kernel(nearest_same_class(Z, codes, k_w, search)))))
        with task.step("between scatter"):
            S_b = scatter(Z, laplacian(union(heat_kernel(nearest_other_class(Z, codes, k_b, search)))))
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
