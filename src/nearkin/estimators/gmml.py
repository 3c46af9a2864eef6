"""Geometric Mean Metric Learning (Zadeh, Hosseini and Sra, ICML 2016)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigvalsh

from .._validation import check_number
from ..linalg import RANK_TOLERANCE, svd
from ..neighbors import EXACT
from ..scatter import second_moment
from ..spectral import SpectralResult, SpectralStatus, geometric_mean
from .base import SpectralEmbedding
from .pairs import NO_PAIR_DIFFERS, GivenPairs, validate_given_pairs
from .rows import Rows
from .validation import check_prior


class GMML(SpectralEmbedding):
    """Geometric Mean Metric Learning: a closed-form metric from similar and dissimilar pairs.

    Let S be the mean of (u - v)(u - v)' over similar pairs of rows, and D the mean over dissimilar
    pairs. The metric M minimizes

        tr(M S) + tr(M^-1 D),

    which makes similar pairs close under M, and dissimilar pairs close under its inverse. It solves
    M S M = D and is the midpoint of the geodesic of positive definite matrices from S^-1 to D. Any
    other point of the geodesic is a metric, too:

        M = S^-1 #_t D = S^-1/2 (S^1/2 D S^1/2)^t S^-1/2,

    which minimizes (1 - t) d^2(M, S^-1) + t d^2(M, D) for the Riemannian distance d(A, B) =
    ||log(A^-1/2 B A^-1/2)||. A prior metric M_0 of weight l regularizes it: S + l M_0^-1 and D + l
    M_0 replace S and D.

    `fit` uses all pairs of rows; pairs of one class are similar, pairs of two classes dissimilar.
    Its S and D are the expectations over the pairs that the paper draws at random. `fit_pairs` uses
    given pairs of both kinds, or similar pairs alone.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p: the eigenvectors of M with the largest eigenvalues. None takes the rank of S +
        D, i.e. all of M.
    t : float, default=0.5
        The point on the geodesic: 0 gives S^-1, 1 gives D.
    reg : float, default=0.1
        The weight of the prior, relative to the mean variance of the differences: `l = reg tr(S +
        D) / (2 rank)`. With 0, rows of the same class have to vary in all directions in which rows
        vary. As reg grows, M becomes proportional to M_0.
    prior : array of shape (p, p), default=None
        M_0, positive definite, only for p <= n. None takes the identity.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Eigenvectors of M, each times the square root of its eigenvalue: `M = components_.T
        components_`.
    eigenvalues_ : ndarray of shape (m,)
        Eigenvalues of M, descending.
    n_components_ : int
        m.
    objective_ : float
        `(1 - t) d^2(M, S^-1) + t d^2(M, D)` for the whole M, with the prior in S and D. It equals t
        (1 - t) times the squared distance between S^-1 and D.
    rank_ : int
        Rank of S + D; directions in which no pair differs are left out.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested.

    See Also
    --------
    RCA : Learns from similar pairs alone.
    PairNCA : Learns from similar pairs, by descent.

    Notes
    -----
    The scale of the features matters, through D as well: standardize first unless the units are
    comparable.

    With `sample_weight` s, S and D are means over all pairs of distinct rows, weighted by s_i s_j;
    copies of a row do not form a pair.

    Cost: O(n p^2 + p^3), O(n p + p^2) memory, since sums over all pairs reduce to scatters. For p >
    n the problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    P. H. Zadeh, R. Hosseini, S. Sra: Geometric Mean Metric Learning. Proceedings of the 33rd
    International Conference on Machine Learning (2016) 2464-2471.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import GMML
    >>> X, y = load_wine(return_X_y=True)
    >>> GMML(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {
        "GMML": {"settings": lambda p: [{"t": t} for t in (0.25, 0.5, 0.75)]}
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        t: float = 0.5,
        reg: float = 0.1,
        prior: Any = None,
    ) -> None:
        self.n_components = n_components
        self.t = t
        self.reg = reg
        self.prior = prior

    def fit_pairs(self, pairs: Any, y: Any = None, *, X: Any = None, weights: Any = None) -> Self:
        """Learn the map from pairs of rows.

        If no pair is dissimilar, D is the mean over all pairs of rows, most of which are
        dissimilar: `D = 2 / (n - 1) sum_i (x_i - m)(x_i - m)'`, where m is the mean row.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p), or int array of shape (n_pairs, 2)
            The two rows of each pair, or with X their indices.
        y : array of shape (n_pairs,), default=None
            1 for similar pairs, at least one; -1 for dissimilar ones. None if all pairs are
            similar.
        X : array or sparse matrix of shape (n, p), default=None
            The rows to which the indices in `pairs` refer. None takes the distinct rows that occur
            in the pairs.
        weights : array of shape (n_pairs,), default=None
            Weights of the pairs in the means S and D, at least 0; a pair of weight 0 is left out.
            Only ratios within the similar and within the dissimilar pairs matter. None for equal
            weights.

        Returns
        -------
        self
        """
        given = validate_given_pairs(self, pairs, y, X, weights)
        return self.fit_rows(SimilarRows(given) if given.similar.all() else PairRows(given))

    def _solve(self, rows: Rows) -> SpectralResult:
        R = rows.span_basis()
        S, D = (R.T @ C @ R for C in rows.pair_covariances())
        rank = len(S)
        prior = np.eye(rank)
        if self.prior is not None:
            prior = R.T @ check_prior(self.prior, len(R), rows.shape[1]) @ R
        weight = self.reg * np.trace(S + D) / (2 * rank)
        S, D = S + weight * np.linalg.inv(prior), D + weight * prior
        unit = np.sqrt(np.diag(S + D))
        if eigvalsh(S / np.outer(unit, unit))[0] <= RANK_TOLERANCE:
            raise ValueError(
                "Similar pairs do not differ in some direction in which others do (or hardly), "
                "so no finite metric fits: take a larger reg, such as 0.1, or reduce the features "
                "first, e.g. with PCA."
            )
        F, length = geometric_mean(S, D, self.t)
        U, roots, _ = svd(F, full_matrices=False)
        requested = self.n_components or rank
        m = min(requested, rank)
        status = SpectralStatus.RANK_DEFICIENT if requested > rank else SpectralStatus.OPTIMAL
        objective = self.t * (1 - self.t) * length**2 if 0 < self.t < 1 else 0.0
        V = R @ (U[:, :m] * roots[:m])
        return SpectralResult(V, roots[:m] ** 2, objective, rank, requested, status)

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_number(self.reg, "reg", 0)
        if check_number(self.t, "t", 0) > 1:
            raise ValueError(f"t must be between 0 and 1, got {self.t}.")


class PairRows(Rows):
    """Given similar and dissimilar pairs for `GMML`, as a table of differences.

    Each pair gives two differences, one in each direction.
    """

    def __init__(self, given: GivenPairs) -> None:
        # both directions, so that the mean difference is 0
        differences = differences_of(given.X, np.vstack([given.numbers, given.numbers[:, ::-1]]))
        super().__init__(differences, np.tile(given.similar, 2).astype(np.intp), EXACT)
        self.dtype = given.X.dtype
        self._weights = np.tile(given.weights, 2)

    def pair_covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`."""
        S, D = (
            second_moment(self.X, share / share.sum())
            for share in (self._weights * self.codes, self._weights * (1 - self.codes))
        )
        return S, D


class SimilarRows(Rows):
    """Rows with given similar pairs, for `GMML`; all pairs of rows serve as dissimilar pairs."""

    def __init__(self, given: GivenPairs) -> None:
        given = given.merged()
        super().__init__(given.X, np.zeros(given.X.shape[0], dtype=np.intp), EXACT)
        self._pairs, self._weights = given.numbers, given.weights / given.weights.sum()

    def pair_covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`."""
        S = second_moment(differences_of(self.X, self._pairs), self._weights)
        return S, 2 / (self.shape[0] - 1) * self.total_scatter()


def differences_of(X: Any, pairs: np.ndarray) -> Any:
    """Return x_a - x_b for pairs (a, b) of row indices, in float64."""
    difference = X[pairs[:, 0]].astype(np.float64) - X[pairs[:, 1]]
    if not abs(difference).max():
        raise ValueError(NO_PAIR_DIFFERS)
    return difference
