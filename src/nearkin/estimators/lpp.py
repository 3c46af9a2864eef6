"""Locality Preserving Projections (He and Niyogi, NIPS 2003)."""

from __future__ import annotations

from typing import Any, ClassVar

from ..spectral import SpectralResult, ratio_trace
from ._rows import Rows
from .base import SpectralEmbedding


class LPP(SpectralEmbedding):
    """Locality Preserving Projections: the linear map that preserves a k-NN graph best. It uses no labels.

    With W the graph of the k nearest neighbours (adjacent if either is among the other's), weighted by the heat kernel
    `exp(-d^2 / t)`, t the mean squared distance to these neighbours, D = diag(W 1) and L = D - W, LPP minimizes

        sum_ij w_ij (v'x_i - v'x_j)^2   subject to   v'X'DXv = 1,

    the smallest eigenvalues of X'LX v = lambda X'DX v. X is taken relative to its D-weighted mean, which makes the
    solution independent of the origin and excludes the constant embedding, as Laplacian Eigenmaps do: with X the
    identity LPP *is* Laplacian Eigenmaps.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of X.
    n_neighbors : int, default=10
        k of the graph.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i, smoothest first, scaled so that v'X'DXv = 1.
    eigenvalues_ : ndarray of shape (m,)
        Ascending, in [0, 2].
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Rank of X'DX.
    n_components_, search_, search_recall_
        See `LDE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested.

    Notes
    -----
    The scale of the features decides which rows are near: standardize first unless the units are comparable. Given the
    graph, the criterion does not depend on the units (p <= n).

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

    compared_as: ClassVar[dict] = {"LPP": {"unlabelled": True}}

    _needs_labels = False

    _positive_integers = ("n_neighbors",)

    def __init__(self, n_components: int | None = None, *, n_neighbors: int = 10, search: Any = "exact") -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        W = rows.union_knn("all", self.n_neighbors, weights="heat")
        return ratio_trace(rows.scatter(W), rows.total_scatter(rows.degrees(W)), self.n_components)
