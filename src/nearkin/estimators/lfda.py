"""Local Fisher Discriminant Analysis (Sugiyama, JMLR 2007)."""

from __future__ import annotations

from typing import Any, ClassVar

from ..spectral import SpectralResult, generalized_eigh, unit_within_scatter
from .base import COMPARED_AMOUNTS, ShrunkEmbedding
from .rows import Rows


class LFDA(ShrunkEmbedding):
    """Local Fisher Discriminant Analysis: LDA for classes that may consist of several clusters.

    Let s_i be the distance from row i to the k-th nearest row of its class c, which has n_c rows,
    and `a_ij = exp(-d_ij^2/(s_i s_j))` for i and j of one class. With the weights

    =============  ====================  =======================
    i and j        within: w_ij          between: w'_ij
    =============  ====================  =======================
    same class     a_ij / n_c            a_ij (1/n - 1/n_c)
    other classes  0                     1/n
    =============  ====================  =======================

    in S_w = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)', and w' in S_b, LFDA maximizes

        tr((V'S_w V)^-1 V'S_b V)

    by the largest eigenvalues of S_b v = lambda S_w v. With all a_ij = 1 it is Fisher's
    discriminant analysis. Smaller a_ij give less weight to distant pairs of a class, and there may
    be more directions of lambda > 0 than classes - 1. S_w is shrunk first (see `LDE`); without
    shrinkage, directions without within-class scatter come first.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b, which is that of the centred rows.
    n_neighbors : int or "auto", default=7
        k of the local scale s_i; in smaller classes, the farthest row is taken. "auto": see `DNE`.
    shrinkage, search
        See `LDE`.

    Attributes
    ----------
    components_, eigenvalues_, n_components_, objective_, rank_, shrinkage_, search_
        See `LDE`.
    n_neighbors_, n_neighbors_scores_
        See `DNE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested, or if the classes differ only by rounding.

    See Also
    --------
    MFA : Local discriminant analysis on k-NN graphs.
    SDA : LDA on few labels.

    Notes
    -----
    On the scale and number of the features, see `LDE`.

    `sample_weight` multiplies w_ij and w'_ij by the weights of i and j. n and n_c are sums of
    weights; the k-th nearest row is counted among distinct rows.

    Cost: sum_c n_c^2 pairwise distances, computed twice, then O(p sum_c n_c^2 + n p^2 + p^3); O(n
    (k + p) + p^2) memory. For p > n the problem is solved in the span of the rows in O(n^2 p),
    without a p x p matrix.

    References
    ----------
    M. Sugiyama: Dimensionality Reduction of Multimodal Labeled Data by Local Fisher Discriminant
    Analysis. Journal of Machine Learning Research 8 (2007) 1027-1061.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LFDA
    >>> X, y = load_wine(return_X_y=True)
    >>> LFDA(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {"LFDA": {"settings": lambda p: COMPARED_AMOUNTS}}

    _neighbor_counts = ("n_neighbors",)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | str = 7,
        shrinkage: Any = 0.5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        k = self.n_neighbors_ = self._number_of_neighbors("n_neighbors")
        S_w, S_b = rows.local_fisher_scatters(k)
        S_w = self._shrunk(S_w, rows)
        return unit_within_scatter(generalized_eigh(S_b, S_w, self.n_components))
