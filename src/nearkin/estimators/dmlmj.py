"""Metric learning by the Jeffrey divergence (Nguyen, Morell and De Baets, 2017)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..linalg import RANK_TOLERANCE
from ..spectral import SpectralResult, generalized_eigh, unit_within_scatter
from .base import COMPARED_AMOUNTS, ShrunkEmbedding
from .rows import Rows


class DMLMJ(ShrunkEmbedding):
    """Distance Metric Learning through Maximization of the Jeffrey divergence.

    The differences between a row and its k nearest rows of the same class, and of other classes,
    are modelled as Gaussian with mean 0 and the covariances

        S_w = mean of (x_i - x_j)(x_i - x_j)' over rows i and their k nearest j of the same class,
        S_b = the same over their k nearest j of all other classes.

    DMLMJ maximizes the Jeffrey divergence KL(w, b) + KL(b, w) between the two distributions after
    the map:

        max 1/2 tr( (V'S_w V)^-1 V'S_b V + (V'S_b V)^-1 V'S_w V ) - m.

    It equals 1/2 sum (lambda + 1/lambda) - m, where the lambda are the eigenvalues of S_b v =
    lambda S_w v. The directions with the largest lambda + 1/lambda are therefore kept, whether
    lambda is large or small. Directions in which one of the two covariances vanishes have infinite
    divergence and come first, S_w before S_b; those in which both vanish are left out.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w + S_b, and the metric is S_w^-1 if that exists.
    n_neighbors : int or "auto", default=5
        k, for both kinds of neighbours; in smaller classes, all other rows. "auto": see `DNE`.
    shrinkage : float in [0, 1] or None, default=0.5
        s. Both covariances are shrunk towards the same multiple of the identity, that of S_w: in
        directions in which rows hardly vary, lambda is then 1 and the divergence vanishes. None is
        the paper's method.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i, best first, scaled such that v'S_w v = 1; where S_w is less than 1e-4 of S_w +
        S_b, as for `LDE`.
    eigenvalues_ : ndarray of shape (m,)
        The share lambda / (1 + lambda) of S_b in each direction, in [0, 1], the farthest from 1/2
        first.
    n_components_ : int
        m.
    objective_ : float
        The divergence, infinite where a share is 0 or 1.
    rank_ : int
        Rank of S_w + S_b.
    shrinkage_ : float
        s.
    search_
        See `LDE`.
    n_neighbors_, n_neighbors_scores_
        See `DNE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested, or if neighbours of different classes
        coincide.

    See Also
    --------
    LDE : Heat-kernel weights and two numbers of neighbours.
    GMML : A closed-form metric from similar and dissimilar pairs.

    Notes
    -----
    On the scale and number of the features, see `LDE`. Unlike `LDE`, `DMLMJ` gives all neighbours
    the same weight, divides by the number of pairs, which makes lambda comparable with 1, and also
    keeps directions of small lambda.

    With `sample_weight` s, both means are weighted by s_i s_j.

    Cost: n^2 pairwise distances, then O(n k p + n p^2 + p^3); O(n k + n p + p^2) memory. For p > n
    the problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    B. Nguyen, C. Morell, B. De Baets: Supervised distance metric learning through maximization of
    the Jeffrey divergence. Pattern Recognition 64 (2017) 215-225.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import DMLMJ
    >>> X, y = load_wine(return_X_y=True)
    >>> DMLMJ(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {"DMLMJ": {"settings": lambda p: COMPARED_AMOUNTS}}

    _neighbor_counts = ("n_neighbors",)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | str = 5,
        shrinkage: Any = 0.5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        k = self.n_neighbors_ = self._number_of_neighbors("n_neighbors")
        S = rows.scatter(rows.mean_knn("same", k))
        S_w = self._shrunk(S, rows)
        kept = 1 - self.shrinkage_ if S.any() else 1.0  # no trace to shrink toward
        S_b = rows.scatter(rows.mean_knn("other", k))
        S_b = kept * S_b + (S_w - kept * S)
        result = generalized_eigh(S_b, S_w)
        shares = np.where(result.values > 1 - RANK_TOLERANCE, 1.0, result.values)
        shares = np.where(shares < RANK_TOLERANCE, 0.0, shares)
        order = np.argsort(-np.abs(shares - 0.5), kind="stable")  # largest lambda + 1/lambda first
        result = replace(result, vectors=result.vectors[:, order], values=shares[order])
        result = result.leading(self.n_components or result.rank)
        with np.errstate(divide="ignore"):
            quotients = result.values / (1 - result.values)
            divergence = float(np.sum(quotients + 1 / quotients - 2) / 2)
        return unit_within_scatter(replace(result, objective=divergence))
