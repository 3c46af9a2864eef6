"""Locality Preserving Projections (He and Niyogi, NIPS 2003)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._validation import check_positive
from ..linalg import eigh
from ..spectral import SpectralResult, range_basis, ratio_trace
from .base import SpectralEmbedding
from .rows import Rows

SMOOTH = 0.75  # adjacent rows differ less than this, relative to any two


class LPP(SpectralEmbedding):
    """Locality Preserving Projections: the linear map that preserves a k-NN graph best. It uses no
    labels.

    With W the graph of the k nearest neighbours (adjacent if either is among the other's), weighted
    by the heat kernel `exp(-d^2 / t)`, t the mean squared distance to these neighbours, D = diag(W
    1) and L = D - W, LPP minimizes

        sum_ij w_ij (v'x_i - v'x_j)^2   subject to   v'X'DXv = 1,

    the smallest eigenvalues of X'LX v = lambda X'DX v. X is taken relative to its D-weighted mean,
    which makes the solution independent of the origin and excludes the constant embedding, as
    Laplacian Eigenmaps do: with X the identity LPP *is* Laplacian Eigenmaps. As with
    Laplacianfaces, V lies in the span of the leading principal components, here of X'DX: directions
    of little variance, which are mostly noise, would count as much as the others.

    An eigenvalue is the mean squared difference between adjacent rows, relative to that between any
    two rows. All directions together are a mere whitening, whatever the graph.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the directions of eigenvalue below 3/4, at least one.
    n_neighbors : int or "auto", default=10
        k of the graph. "auto": see `DNE`; it alone makes use of labels, which `fit` then requires.
    variance : float, default=0.9
        Share of the variance tr(X'DX) that the principal components keep, in (0, 1]; n_components
        of them are kept in any case. 1 keeps all, which is LPP as first published.
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
        Number of principal components kept, which is the rank of X'DX with `variance=1`.
    n_neighbors_, n_neighbors_scores_
        See `DNE`.
    n_components_, search_, search_recall_
        See `LDE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested.

    See Also
    --------
    LaplacianEigenmaps : The nonlinear form.
    LDE : With labels.

    Notes
    -----
    The scale of the features decides which rows are near: standardize first unless the units are
    comparable. Given the graph, the criterion does not depend on the units with `variance=1` (p <=
    n).

    The defaults of `variance` and `n_components` were chosen by the accuracy of 3-NN on folds of
    the training rows of the sets that `benchmarks/defaults.py` names.

    With `sample_weight` s, w_ij becomes s_i s_j w_ij, D has the sums of these, and t is the mean of
    d^2 weighted by s_i s_j.

    Cost: n^2 pairs of distances, O(n k p + n p^2 + p^3) after them, O(n k + p^2) memory. For p > n
    the problem is solved in the span of the rows, O(n^2 p), without a p x p matrix.

    References
    ----------
    X. He, P. Niyogi: Locality Preserving Projections. Advances in Neural Information Processing
    Systems 16 (2003). X. He, S. Yan, Y. Hu, P. Niyogi, H.-J. Zhang: Face Recognition Using
    Laplacianfaces. IEEE Transactions on Pattern Analysis and Machine Intelligence 27 (2005)
    328-340: the principal components, which keep .98 of the variance there.

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

    _neighbor_counts = ("n_neighbors",)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | str = 10,
        variance: float = 0.9,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.variance = variance
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        W = rows.union_knn("all", self.n_neighbors_, weights="heat")
        S, B = rows.scatter(W), rows.total_scatter(rows.degrees(W))  # X'LX, X'DX
        T = np.eye(len(B))
        if self.variance < 1:  # the leading principal directions
            R = range_basis(B)
            values, E = eigh(R.T @ B @ R)
            n_kept = int(np.sum(np.cumsum(values[::-1]) < self.variance * values.sum())) + 1
            T = R @ E[:, : -max(n_kept, self.n_components or 1) - 1 : -1]
        result = ratio_trace(T.T @ S @ T, T.T @ B @ T, self.n_components)
        result = result.leading(self.n_components or max(1, int(np.sum(result.values < SMOOTH))))
        return replace(result, vectors=T @ result.vectors)

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        if check_positive(self.variance, "variance") > 1:
            raise ValueError(f"variance must be a share in (0, 1], got {self.variance}.")
