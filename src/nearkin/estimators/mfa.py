"""Marginal Fisher Analysis (Yan, Xu, Zhang, Zhang, Yang and Lin, TPAMI 2007)."""

from __future__ import annotations

from typing import Any, ClassVar

from .._validation import check_integer
from ..spectral import SpectralResult, generalized_eigh, unit_within_scatter
from .base import COMPARED_AMOUNTS, ShrunkEmbedding
from .rows import Rows


class MFA(ShrunkEmbedding):
    """Marginal Fisher Analysis: attract same-class neighbours, repel close between-class pairs.

    In the intrinsic graph, i and j of one class are adjacent if either is among the other's k_1
    nearest of that class. In the penalty graph, a row i of class c and a row j of another class are
    adjacent if they are one of the k_2 closest pairs of a row in c and a row outside, for any class
    c. All weights are 1. With the scatters

        S_w = sum_{i, j adjacent in the intrinsic graph} (x_i - x_j)(x_i - x_j)',
        S_b the same of the penalty graph,

    where every pair counts once, MFA maximizes tr((V'S_w V)^-1 V'S_b V) by the largest eigenvalues
    of S_b v = lambda S_w v. S_w is shrunk first (see `LDE`); without shrinkage, directions without
    within-class scatter come first.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b.
    n_neighbors : int or "auto", default=5
        k_1 of the intrinsic graph. "auto": see `DNE`.
    n_pairs : int, default=100
        k_2, the pairs of the penalty graph per class. At most as many directions separate the
        classes as there are pairs. Ties between equally close pairs are broken arbitrarily but
        deterministically.
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
        If there are fewer directions than requested, or if the rows of all closest pairs are equal.

    See Also
    --------
    LDE : The between-class k-NN graph instead of the closest pairs.
    LFDA : Local scaling of all same-class pairs.

    Notes
    -----
    On the scale and number of the features, see `LDE`.

    With `sample_weight` s, an edge has weight s_i s_j instead of 1; the k_2 pairs are pairs of
    distinct rows.

    Cost: n^2 pairwise distances, then O(n (k_1 + k_2) p + n p^2 + p^3); O(n (k_1 + k_2 + p) + p^2)
    memory, since at most k_2 pairs of any row are compared. For p > n the problem is solved in the
    span of the rows in O(n^2 p).

    References
    ----------
    S. Yan, D. Xu, B. Zhang, H.-J. Zhang, Q. Yang, S. Lin: Graph Embedding and Extensions: A General
    Framework for Dimensionality Reduction. IEEE Transactions on Pattern Analysis and Machine
    Intelligence 29 (2007) 40-51.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import MFA
    >>> X, y = load_wine(return_X_y=True)
    >>> MFA(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {
        "MFA": {
            "settings": lambda p: [
                {"n_pairs": k} | amount for k in (20, 200) for amount in COMPARED_AMOUNTS
            ],
        }
    }

    _neighbor_counts = ("n_neighbors",)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | str = 5,
        n_pairs: int = 100,
        shrinkage: Any = 0.5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_pairs = n_pairs
        self.shrinkage = shrinkage
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        k = self.n_neighbors_ = self._number_of_neighbors("n_neighbors")
        S_w = self._shrunk(rows.scatter(rows.union_knn("same", k)), rows)
        S_b = rows.scatter(rows.closest_pairs(self.n_pairs))
        return unit_within_scatter(generalized_eigh(S_b, S_w, self.n_components))

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_integer(self.n_pairs, "n_pairs", 1)
