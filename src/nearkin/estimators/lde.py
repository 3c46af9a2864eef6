"""Local Discriminant Embedding (Chen, Chang and Liu, CVPR 2005)."""

from __future__ import annotations

from typing import Any, ClassVar

from ..spectral import SpectralResult, generalized_eigh, unit_within_scatter
from .base import COMPARED_AMOUNTS, ShrunkEmbedding
from .rows import Rows


class LDE(ShrunkEmbedding):
    """Local Discriminant Embedding: attract same-class neighbours, repel other-class neighbours.

    In the within-class graph W, i and j are adjacent if either is among the other's k_w nearest
    rows of the same class. In the between-class graph W', i and j are adjacent if either is among
    the other's k_b nearest rows of all other classes. Edges have heat-kernel weights `exp(-d^2 /
    t)`, where t is the mean squared distance to these neighbours, separately for each graph. With
    the scatters

        S_w = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)',
        S_b = 1/2 sum_ij w'_ij (x_i - x_j)(x_i - x_j)',

    LDE maximizes tr V'S_b V subject to V'S_w V = I, by the largest eigenvalues of S_b v = lambda
    S_w v. By default S_w is shrunk first (see `shrinkage`). Without shrinkage, directions without
    within-class scatter come first, in descending order of between-class scatter for unit length.
    Directions in which both scatters vanish are left out.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b.
    n_neighbors_within : int or "auto", default=5
        k_w. "auto": see `DNE`; both have the same value if both are "auto".
    n_neighbors_between : int or "auto", default=5
        k_b.
    shrinkage : float in [0, 1] or None, default=0.5
        s: S_w is replaced by `(1 - s) S_w + s (tr S_w / r) P`, where P is the projection onto the
        span of the rows and r its dimension. With 0.5 no direction counts more than twice as much
        as one of mean scatter, however little the rows of a class vary along it. None is the
        paper's method, s = 0. With 1 the directions are those of largest between-class scatter. To
        choose between None and 0.5, cross-validate, e.g. with `GridSearchCV`.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on. A transformer is an
        object like scikit-learn's KNeighborsTransformer, and is cloned.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i, best first, scaled such that v'S_w v = 1; where S_w is less than 1e-4 of S_w +
        S_b, such that v'(S_w + S_b)v = 10^4, which is finite even where S_w vanishes.
    eigenvalues_ : ndarray of shape (m,)
        Descending: the share v'S_b v / v'(S_w + S_b)v = lambda / (1 + lambda) of each direction, in
        [0, 1].
    n_components_ : int
        m.
    n_neighbors_within_, n_neighbors_between_ : int
        The numbers of neighbours used.
    n_neighbors_scores_
        See `DNE`.
    objective_ : float
        Sum of the shares.
    rank_ : int
        Rank of S_w + S_b.
    shrinkage_ : float
        s.
    search_ : str
        How neighbours were found: "exact", "approximate", "distances" or the name of the
        transformer.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested, or if neighbours of different classes
        coincide.

    See Also
    --------
    MFA : Closest between-class pairs instead of the between-class k-NN graph.
    DMLMJ : Equal weights for all neighbours.
    NMMP : The trace ratio.

    Notes
    -----
    The scale of the features decides which rows are near: standardize first unless the units are
    comparable. For given graphs and without shrinkage, the criterion does not depend on the units
    (p <= n). But without shrinkage, LDE overfits if there are few rows for the number of features:
    reduce the features first, e.g. with PCA, as the paper does.

    With `sample_weight` s, w_ij becomes s_i s_j w_ij, w'_ij likewise, and t is the mean of d^2
    weighted by s_i s_j.

    Cost: n^2 pairwise distances, then O(n k p + n p^2 + p^3); O(n k + n p + p^2) memory. For p > n
    the problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    H.-T. Chen, H.-W. Chang, T.-L. Liu: Local Discriminant Embedding and Its Variants. CVPR 2005,
    volume 2, 846-853.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LDE
    >>> X, y = load_wine(return_X_y=True)
    >>> LDE(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {"LDE": {"settings": lambda p: COMPARED_AMOUNTS}}

    _neighbor_counts = ("n_neighbors_within", "n_neighbors_between")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors_within: int | str = 5,
        n_neighbors_between: int | str = 5,
        shrinkage: Any = 0.5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.shrinkage = shrinkage
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        k_w = self.n_neighbors_within_ = self._number_of_neighbors("n_neighbors_within")
        k_b = self.n_neighbors_between_ = self._number_of_neighbors("n_neighbors_between")
        S_w = rows.scatter(rows.union_knn("same", k_w, weights="heat"))
        S_b = rows.scatter(rows.union_knn("other", k_b, weights="heat"))
        S_w = self._shrunk(S_w, rows)
        return unit_within_scatter(generalized_eigh(S_b, S_w, self.n_components))
