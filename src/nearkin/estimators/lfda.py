"""Local Fisher Discriminant Analysis (Sugiyama, JMLR 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_n_neighbors, validate_labelled_rows
from ..graphs import kth_distance
from ..neighbors import nearest_same_class, searcher
from ..scatter import between_scatter, locally_scaled_scatters, row_space, within_scatter
from ..spectral import generalized_eigh, unit_within_scatter
from .base import LinearEmbedding


class LFDA(LinearEmbedding):
    """Local Fisher Discriminant Analysis: LDA that pulls only near kin together, so a class may have parts.

    With s_i the distance from row i to the k-th nearest of the n_c rows of its class c, `a_ij = exp(-d_ij^2/(s_i s_j))`
    for i and j of one class, and the weights

    =========  ====================  =======================
    i and j    within: w_ij          between: w'_ij
    =========  ====================  =======================
    kin        a_ij / n_c            a_ij (1/n - 1/n_c)
    strangers  0                     1/n
    =========  ====================  =======================

    in S_w = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)', and S_b with w', LFDA maximizes

        tr((V'S_w V)^-1 V'S_b V):

    the largest eigenvalues of S_b v = lambda S_w v. With all a_ij = 1 it is Fisher's discriminant analysis; smaller
    ones let kin that are far from each other be: there may be more than classes - 1 directions of lambda > 0.
    Directions without any within scatter come first, of them the one with the most between scatter for its length.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b, which is that of the centred rows.
    n_neighbors : int, default=7
        k of the local scale s_i; of a class of fewer rows, the farthest.
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
        If fewer directions exist than were asked for, or if nothing but rounding tells the classes apart.

    Notes
    -----
    The scale of the features decides who is near: standardize first unless the units are comparable. Given the
    weights, the criterion is indifferent to the units (p <= n). Where rows are few for their features it fits the rows
    it has seen: reduce the features first, e.g. with PCA.

    Both scatters come from those of the single classes, S_c local (of weights a_ij / n_c) and F_c Fisher's (of weights
    1 / n_c), and Fisher's B of the class means: S_w = sum_c S_c and S_b = B + sum_c (1 - n_c/n)(F_c - S_c), where no
    weight is negative.

    Cost: sum_c n_c^2 pairs of distances, twice, O(p sum_c n_c^2 + n p^2 + p^3) after them, O(n (k + p) + p^2) memory.
    For p > n the problem is solved in the span of the rows, O(n^2 p), without a p x p matrix.

    References
    ----------
    M. Sugiyama: Dimensionality Reduction of Multimodal Labeled Data by Local Fisher Discriminant Analysis. Journal of
    Machine Learning Research 8 (2007) 1027-1061.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LFDA
    >>> X, y = load_wine(return_X_y=True)
    >>> LFDA(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    def __init__(self, n_components: int | None = None, *, n_neighbors: int = 7, search: Any = "exact") -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any, *, distances: Any = None) -> LFDA:
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
            If X or y is not as above or not finite, or a parameter is out of bounds.
        """
        task = FitTask(self, X, y, n_steps=3)
        X, codes = validate_labelled_rows(self, X, y)
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        k = check_n_neighbors(self.n_neighbors)

        search = searcher(self.search, X.shape[0], distances)
        rows = row_space(X)
        Z = rows.coordinates
        with task.step("local scales"):
            s = kth_distance(nearest_same_class(Z, codes, k, search), k)
        with task.step("scatter"):
            S_w, S_b = _local_scatters(Z, codes, s)
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


def _local_scatters(X: Any, codes: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return S_w = sum_c S_c and S_b = B + sum_c (1 - n_c/n)(F_c - S_c); see the notes of the class."""
    others = 1 - np.bincount(codes) / len(codes)
    S_b = between_scatter(X, codes) + within_scatter(X, codes, others)
    S_w = np.zeros_like(S_b)
    for share, S_c in zip(others, locally_scaled_scatters(X, codes, scales), strict=True):
        S_w += S_c
        S_b -= share * S_c
    return S_w, S_b
