"""Discriminant Neighborhood Embedding (Zhang, Xue, Lu and Guo, Pattern Recognition 2006)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh

from .._messages import warn_user
from ..linalg import RANK_TOLERANCE
from ..spectral import SpectralResult, choose_solver, trace_difference
from .base import SpectralEmbedding
from .rows import Rows


class DNE(SpectralEmbedding):
    """Discriminant Neighborhood Embedding: the trace difference, which also sets the dimension.

    The graph F (eq. 1) connects every row with its k nearest rows of the same class (+1) and its k
    nearest rows of the other classes (-1); i and j are adjacent if either is a neighbour of the
    other. With orthonormal P, DNE minimizes

        Phi(P) = sum_ij F_ij ||P'x_i - P'x_j||^2 = 2 tr P'X'(S - F)XP,   S = diag(F 1)     (eq. 5-7)

    by the eigenvectors of the smallest eigenvalues of X'(S - F)X, the scatter of the same-class
    graph minus that of the other-class graph. A direction with a negative eigenvalue separates
    neighbours of different classes more than it spreads those of the same class, so the number d of
    negative eigenvalues sets the dimension (eq. 10).

    For a given graph, d does not depend on the units of the features. It is counted on DX'(S -
    F)XD, where D^-2 is the diagonal of the sum of the two scatters; by Sylvester's law of inertia,
    this matrix has the same number of negative eigenvalues. Eigenvalues below 1e-10 of the largest
    count as zero.

    Parameters
    ----------
    n_components : int, float or None, default=None
        None keeps all directions with a negative eigenvalue. A float theta in (0, 1] keeps the
        fewest whose eigenvalues make up the share theta of the sum of the negative ones (eq. 14;
        the paper uses 0.96). An integer keeps that many, at most p, possibly more than there are
        negative eigenvalues; with p, distances are those of the raw features.
    n_neighbors : int or "auto", default=1
        k of the graph (not of a later k-NN classifier). The paper gives no rule for it. "auto"
        takes the smallest among 1, 3, 5, 7, 10 and 15 whose 1-NN accuracy in the learned space is
        within one standard error of the best, on five folds of the training rows. The folds are
        deterministic: rows are dealt by class and distance from the mean. Of more than 2,000 rows
        they use about 2,000, at least ten of each class. This takes 30 fits of at most 1,600 rows.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Orthonormal rows, smallest eigenvalue first.
    eigenvalues_ : ndarray
        Ascending eigenvalues of X'(S - F)X; the first m belong to `components_`. For p > n, the
        zeros outside the span of the rows are left out unless components there are requested. If
        Lanczos iterations were used, there are only m.
    objective_ : float
        Phi(P), twice the sum of the eigenvalues of `components_` (eq. 13).
    rank_ : int
        Dimension of the space in which the problem was solved.
    n_neighbors_ : int
        The number of neighbours used.
    n_neighbors_scores_ : dict of int to ndarray, or None
        The accuracy in every fold, for each number that "auto" tried.
    n_components_, search_
        See `LDE`.

    Warns
    -----
    UserWarning
        If no eigenvalue is negative (the paper's figure 1d: no direction separates the classes) and
        n_components is not given. The direction of the smallest eigenvalue is kept.

    See Also
    --------
    NMMP : The trace ratio of similar scatters, for a given dimension.
    LDE : The ratio trace, with heat-kernel weights.

    Notes
    -----
    The scale of the features matters: a feature with small values has a small eigenvalue and is
    dropped. Standardize first unless the units are comparable. For text embeddings, whiten first,
    which equalizes the variation within classes: `make_pipeline(RCA(), DNE(64, n_neighbors=10))`
    raises precision at 10 on those of banking77 from 85.6 to 87.8 %. But of 34 tables, whitening
    makes 17 worse, one of them by 7.9 points.

    .. measured/benchmarks.md#whitening-before-nca-and-dne

    No setting suits every table: with the defaults, nearest neighbours in the learned space may be
    several points less accurate than on the standardized features. Compare both on held-out rows,
    as `nearkin.comparison.compare` does.

    With `sample_weight` s, scaled to mean 1, F_ij becomes s_i s_j F_ij.

    Cost: n^2 pairwise distances, then O(n k p + n p^2 + p^3); O(n k + p^2) memory. For p > n the
    problem is solved in the span of the rows in O(n^2 p), without a p x p matrix. For an integer
    n_components far below a large min(n, p), the eigenvectors are computed by Lanczos iterations
    without forming a matrix.

    References
    ----------
    W. Zhang, X. Xue, H. Lu, Y.-F. Guo: Discriminant Neighborhood Embedding for Classification.
    Pattern Recognition 39 (2006) 2240-2243.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import DNE
    >>> X, y = load_wine(return_X_y=True)
    >>> DNE(n_components=0.96, n_neighbors=5).fit_transform(scale(X), y).shape
    (178, 9)
    """

    compared_as: ClassVar[dict] = {
        "DNE": {"settings": lambda p: [{"n_neighbors": k} for k in (1, 3, 10)]}
    }

    _neighbor_counts = ("n_neighbors",)

    def __init__(
        self, n_components: Any = None, *, n_neighbors: int | str = 1, search: Any = "exact"
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        k = self.n_neighbors_ = self._number_of_neighbors("n_neighbors")
        same = rows.union_knn("same", k)
        other = rows.union_knn("other", k)
        m = self.n_components
        if self._solves_in_span(*rows.shape):
            S_w, S_b = rows.scatter(same), rows.scatter(other)
            result = trace_difference(S_w - S_b)
            d = _n_negative(S_w - S_b, np.diag(S_w + S_b))
            if not isinstance(m, (int, np.integer)):
                m = _n_leading(result.values[:d], m)
            result = _with_complement(result, d, min(m - d, rows.n_complement))
        else:  # only products; L(F) = L(same) - L(other)
            operator = rows.scatter_operator(same) - rows.scatter_operator(other)
            result = trace_difference(operator, m)
        return replace(
            result, vectors=result.vectors[:, :m], objective=2 * float(result.values[:m].sum())
        )

    def _check_parameters(self, n_features: int) -> None:
        if isinstance(self.n_components, (float, np.floating)):
            if not 0 < self.n_components <= 1:
                raise ValueError(
                    "n_components as a share (theta of eq. 14) must be in (0, 1], got "
                    f"{self.n_components}."
                )
        else:
            super()._check_parameters(n_features)

    def _solves_in_span(self, n: int, p: int) -> bool:
        m = self.n_components
        return not isinstance(m, (int, np.integer)) or choose_solver(min(n, p), int(m)) == "dense"


def _n_negative(A: np.ndarray, scatter: np.ndarray) -> int:
    """Return the number of negative eigenvalues of A, a difference of two scatters.

    A is scaled to a unit diagonal of `scatter`.
    """
    unit = np.sqrt(np.where(scatter > 0, scatter, 1.0))
    eigenvalues = eigvalsh(A / unit / unit[:, None])
    return int(np.sum(eigenvalues < -RANK_TOLERANCE * np.abs(eigenvalues).max()))


def _n_leading(negative: np.ndarray, theta: float | None) -> int:
    """Return d (eq. 10), or the smallest t whose eigenvalues make up the share theta (eq. 14)."""
    d = len(negative)
    if d == 0:
        warn_user(
            "No direction separates neighbours of different classes more than it spreads those of "
            "one (no negative eigenvalue): the one of the smallest eigenvalue is kept. Try other "
            "features, a larger n_neighbors, or KernelPCA or Nystroem before DNE."
        )
        return 1
    if theta is None:
        return d
    share = np.cumsum(-negative)
    return int(np.searchsorted(share, theta * share[-1])) + 1


def _with_complement(result: SpectralResult, d: int, n_more: int) -> SpectralResult:
    """Insert n_more directions outside the span of the rows after the d of negative eigenvalue.

    Their eigenvalue is 0. They are unit vectors in the coordinates of the complement; see
    `Rows.back_project`.
    """
    if n_more <= 0:
        return result
    at = [d] * n_more
    V = np.vstack([result.vectors, np.zeros((n_more, result.vectors.shape[1]))])
    V = np.insert(V, at, np.eye(len(V))[:, -n_more:], axis=1)
    return replace(result, vectors=V, values=np.insert(result.values, at, 0.0))
