"""Semi-supervised Discriminant Analysis (Cai, He and Han, ICCV 2007)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._labels import encode_partial_classes
from .._validation import check_integer, check_number
from ..linalg import RANK_TOLERANCE
from ..spectral import SpectralResult, largest_scatter_first, ratio_trace
from .base import SpectralEmbedding
from .rows import Rows


class SDA(SpectralEmbedding):
    """Semi-supervised Discriminant Analysis: LDA on few labels, smooth along a graph of all rows.

    With S_b and S_t the between-class and the total scatter of the labelled rows, and L = D - W the
    Laplacian of the unweighted union k-NN graph of all rows, SDA maximizes

        v'S_b v / v'(S_t + alpha X'LX + beta I)v

    by the largest eigenvalues of S_b v = lambda (S_t + alpha X'LX + beta I) v, of which at most c -
    1 are nonzero for c classes. With alpha = beta = 0 this is LDA on the labelled rows, with alpha
    = 0 regularized LDA.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most c - 1; None takes c - 1.
    alpha : float, default=0.1
        Weight of the graph, at least 0.
    beta : float, default=0.0
        Weight of Tikhonov regularization, at least 0, in units of squared features times rows:
        standardize first.
    n_neighbors : int, default=5
        k of the graph.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i, the largest eigenvalue first, scaled such that V'(S_t + alpha X'LX + beta I)V = I.
    eigenvalues_ : ndarray of shape (m,)
        Descending, in (0, 1].
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Rank of S_t + alpha X'LX + beta I, in the span of the rows.
    n_components_, search_
        See `LDE`.

    Warns
    -----
    UserWarning
        If fewer than n_components directions separate the class means.

    See Also
    --------
    nearkin.DiscriminativeProjections : Also for real-valued targets, or more than c - 1 dimensions.

    Notes
    -----
    S_b also vanishes in the null space of S_t + alpha X'LX + beta I, which is left out. Where the
    denominator without S_b vanishes, as with alpha = beta = 0 for more features than labelled rows,
    the eigenvalue is 1 and LDA has no unique solution: among these directions, those of largest
    scatter come first.

    S_t is a sum over the labelled rows, X'LX a sum over the edges between all rows: with more
    unlabelled rows, a given alpha weighs more.

    With `sample_weight` s, scaled to mean 1 to preserve the meaning of alpha and beta, a row counts
    s_i times in S_b and S_t, and an edge s_i s_j times in X'LX.

    Cost: n^2 pairwise distances, then O(n k p + n p^2 + p^3); O(n k + p^2) memory. For p > n the
    problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    D. Cai, X. He, J. Han: Semi-supervised Discriminant Analysis. ICCV 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import SDA
    >>> X, y = load_wine(return_X_y=True)
    >>> y[::2] = -1  # unlabelled
    >>> SDA().fit_transform(scale(X), y).shape
    (178, 2)
    """

    compared_as: ClassVar[dict] = {
        "SDA": {
            "max_components": lambda p, n_classes: min(p, n_classes - 1),
            "unlabelled": True,
            "semi_supervised": True,
        }
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 0.1,
        beta: float = 0.0,
        n_neighbors: int = 5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.n_neighbors = n_neighbors
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        S_b = rows.between_scatter()
        S_t = S_b + rows.within_scatter()
        if np.trace(S_b) <= RANK_TOLERANCE**2 * np.trace(S_t):
            raise ValueError(
                "The classes of y have equal means, which no direction separates: take TDL or NCA."
            )
        smooth = rows.scatter(rows.union_knn("all", self.n_neighbors))
        result = ratio_trace(-S_b, S_t + self.alpha * smooth + self.beta * np.eye(len(S_b)))
        values = -result.values
        n_positive = max(1, int(np.sum(values > RANK_TOLERANCE * values[0])))
        V = largest_scatter_first(result.vectors, values / values[0])
        result = replace(result, vectors=V[:, :n_positive], values=values[:n_positive])
        return result.leading(self.n_components or n_positive)

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_integer(self.n_neighbors, "n_neighbors", 1)
        check_number(self.alpha, "alpha", 0)
        check_number(self.beta, "beta", 0)

    _encode_labels = staticmethod(encode_partial_classes)
