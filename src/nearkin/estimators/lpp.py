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

SMOOTH = 0.75  # adjacent rows differ by less than this, relative to any two rows


class LPP(SpectralEmbedding):
    """Locality Preserving Projections: an unsupervised linear map that preserves a k-NN graph.

    W is the union k-NN graph with heat-kernel weights `exp(-d^2 / t)`, where t is the mean squared
    distance to the neighbours; D = diag(W 1) and L = D - W. LPP minimizes

        sum_ij w_ij (v'x_i - v'x_j)^2   subject to   v'X'DXv = 1

    by the smallest eigenvalues of X'LX v = lambda X'DX v. The D-weighted mean is subtracted from X,
    which makes the solution independent of the origin and excludes the constant embedding, as in
    Laplacian Eigenmaps: with X the identity, LPP *is* Laplacian Eigenmaps. As in Laplacianfaces, V
    lies in the span of the leading principal components, here of X'DX; otherwise directions of
    little variance, mostly noise, would count as much as the others.

    An eigenvalue is the mean squared difference between adjacent rows, relative to that between any
    two rows. All directions together merely whiten the rows, whatever the graph.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the directions with an eigenvalue below 3/4, at least one.
    n_neighbors : int or "auto", default=10
        k of the graph. "auto": see `DNE`; only "auto" uses labels, which `fit` then requires.
    variance : float, default=0.9
        Share of the variance tr(X'DX) that the principal components keep, in (0, 1]. At least
        n_components of them are kept. 1 keeps all, which is LPP as first published.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i, smoothest first, scaled such that v'X'DXv = 1.
    eigenvalues_ : ndarray of shape (m,)
        Ascending, in [0, 2].
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Number of principal components kept; with `variance=1`, the rank of X'DX.
    n_neighbors_, n_neighbors_scores_
        See `DNE`.
    n_components_, search_
        See `LDE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested.

    See Also
    --------
    LaplacianEigenmaps : The nonlinear method.
    LDE : A method that uses labels.

    Notes
    -----
    The scale of the features decides which rows are near: standardize first unless the units are
    comparable. For a given graph and `variance=1`, the criterion does not depend on the units (p <=
    n).

    The defaults of `variance` and `n_components` were chosen by the accuracy of 3-NN on folds of
    the training rows of the data sets in `benchmarks/choices/lpp.py`.

    With `sample_weight` s, w_ij becomes s_i s_j w_ij, D is computed from these, and t is the mean
    of d^2 weighted by s_i s_j.

    Cost: n^2 pairwise distances, then O(n k p + n p^2 + p^3); O(n k + p^2) memory. For p > n the
    problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    X. He, P. Niyogi: Locality Preserving Projections. Advances in Neural Information Processing
    Systems 16 (2003). X. He, S. Yan, Y. Hu, P. Niyogi, H.-J. Zhang: Face Recognition Using
    Laplacianfaces. IEEE Transactions on Pattern Analysis and Machine Intelligence 27 (2005) 328-340
    (keeps .98 of the variance in the principal components).

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
        k = self.n_neighbors_ = self._number_of_neighbors("n_neighbors")
        W = rows.union_knn("all", k, weights="heat")
        S, B = rows.scatter(W), rows.total_scatter(rows.degrees(W))  # X'LX, X'DX
        T = np.eye(len(B))
        if self.variance < 1:  # the leading principal components
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
