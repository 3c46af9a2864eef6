"""Information-Theoretic Metric Learning (Davis, Kulis, Jain, Sra and Dhillon, ICML 2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import cholesky
from scipy.sparse import csr_array, triu
from scipy.spatial.distance import pdist
from sklearn.utils.extmath import row_norms

from .._blocks import centre, dense_float64, row_blocks
from .._callbacks import FitTask, with_callbacks
from .._labels import check_shared_labels
from .._validation import check_integer, check_number, check_positive, shape_of, weighted_rows
from ..bandwidth import evenly_by
from ..descent import lbfgs
from ..linalg import RANK_TOLERANCE, svd
from ..neighbors import EXACT
from ..objectives.loss import Value, chain_rule, embed
from .descent_embedding import DescentEmbedding, ScaledRows, check_n_components
from .pairs import NO_PAIR_DIFFERS, validate_given_pairs
from .rows import Rows
from .validation import check_prior, validate_labelled_rows

BOUND_ROWS = 1000  # used for the percentiles of distances
# limit on gamma and on ratios of bounds and squared distances, whose products are squared
FARTHEST = 1e70

# Defaults chosen on the tables of `benchmarks/choices/closed_forms.py`. `n_neighbors`: 3
# among 1, 3 and 10, by the accuracy of 3-NN. `percentiles`: values of 5 to 50 were equally good, so
# they are those of the authors' code. `gamma`: the best from 0.001 to 10, by the AUROC of held-out
# pairs after learning from 200 to 1,000 random pairs.


class ITML(DescentEmbedding):
    """Information-Theoretic Metric Learning: the metric nearest a prior under pair constraints.

    The squared distances d_c = (x_a - x_b)' M (x_a - x_b) of pairs c = (a, b) should be at most u
    for similar pairs, and at least l for dissimilar ones. The metric M and the slack bounds xi_c
    minimize

        D_ld(M, M_0) + gamma sum_c w_c D_ld(xi_c, xi_c0)
        subject to  d_c <= xi_c  for similar pairs,  d_c >= xi_c  for dissimilar ones,

    where M_0 is the prior, D_ld(A, B) = tr(A B^-1) - log det(A B^-1) - p the LogDet divergence, and
    xi_c0 the requested bound, u or l. The optimal xi_c is xi_c0 if d_c satisfies it, else d_c. M
    therefore minimizes

        D_ld(M, M_0) + gamma sum_{c violated} w_c (d_c / xi_c0 - log(d_c / xi_c0) - 1),

    which is smooth and strictly convex. At the minimum, M^-1 = M_0^-1 + sum_c lambda_c (x_a -
    x_b)(x_a - x_b)'. For violated bounds lambda_c = gamma w_c (1 / xi_c0 - 1 / d_c), which is
    positive for similar pairs and negative for dissimilar ones; for all others it is 0.

    `fit` pairs every row with the nearest rows of its class (similar) and of other classes
    (dissimilar). `fit_pairs` uses given pairs of both kinds, or similar pairs alone.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p: the eigenvectors of M with the largest eigenvalues. None keeps all of M: p, or
        for p > n the rank of the centred rows.
    gamma : float, default=1.0
        Weight of violated bounds, greater than 0. For small gamma the metric approaches M_0; for
        large gamma it satisfies all bounds, if such a metric exists.
    bounds : (u, l), default=None
        Bounds on squared distances under M, greater than 0. If M_0 is the identity, their unit is
        that of the squared features. None takes percentiles.
    percentiles : (float, float), default=(5.0, 95.0)
        u and l as percentiles of the squared distances between distinct rows under M_0, for at most
        1,000 rows. Ignored if `bounds` is given.
    n_neighbors : int, default=3
        Number of same-class rows, and of other-class rows, with which `fit` pairs each row. Ignored
        by `fit_pairs`.
    prior : array of shape (p, p), default=None
        M_0, positive definite, only for p <= n. None takes the identity.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-9
        The descent has converged when an iteration lowers the loss by less than this, relative to
        max(loss, 1).

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Eigenvectors of M, each times the square root of its eigenvalue, the largest first: `M =
        components_.T components_`.
    n_components_ : int
        m.
    bounds_ : tuple of float
        u and l.
    objective_ : float
        The loss of the whole M.
    n_iter_ : int
        Number of iterations.
    loss_curve_ : ndarray of shape (`n_iter_` + 1,)
        The loss before and after every iteration.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the descent before it converged.
    UserWarning
        If there are fewer directions than requested.

    See Also
    --------
    GMML : A closed-form metric from the same pairs.
    PairNCA : Learns from similar pairs, compared with all others.

    Notes
    -----
    The scale of the features matters, through M_0 as well: standardize first unless the units are
    comparable. Dissimilar pairs of equal rows are left out, since their distance is 0 under every
    metric. Similar pairs alone are pulled together as far as M_0 allows. Directions in which no
    pair differs keep their length under M_0.

    No setting suits every table: with the defaults, nearest neighbours in the learned space may be
    several points less accurate than on the standardized features. Compare both on held-out rows,
    as `nearkin.comparison.compare` does.

    The paper projects the metric onto one constraint after the other, in cycles (Bregman
    projections, algorithm 1). This implementation finds the same minimum with L-BFGS over the map A
    of M = A'A, starting from M_0. It handles all constraints at once, and the decrease of a single
    loss shows convergence. For large gamma, the projections need very many cycles.

    With `sample_weight` s, scaled to mean 1, a pair of rows counts s_i s_j. Weights of given pairs
    are scaled to mean 1 over the distinct pairs: a pair that is given twice counts as one of twice
    the weight.

    Sparse X is made dense if p <= n; else the problem is solved in the span of the rows.

    Cost: an iteration takes O(n r^2 + q r + r^3) time for q pairs and r = min(n, p), and O(n r + q)
    memory. `fit` first searches neighbours in O(n^2 p), and q is at most 2 k n. For p > n the
    problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra, I. S. Dhillon: Information-Theoretic Metric Learning.
    Proceedings of the 24th International Conference on Machine Learning (2007) 209-216.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import ITML
    >>> X, y = load_wine(return_X_y=True)
    >>> ITML(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {
        "ITML": {
            "settings": lambda p: [{"gamma": gamma} for gamma in (0.01, 0.1, 1.0)],
            "params": {"tol": 1e-3},  # held-out predictions are equally accurate: see `EARLY`
        }
    }
    _init_may_be_minimum = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        gamma: float = 1.0,
        bounds: Any = None,
        percentiles: Any = (5.0, 95.0),
        n_neighbors: int = 3,
        prior: Any = None,
        max_iter: int = 500,
        tol: float = 1e-9,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.bounds = bounds
        self.percentiles = percentiles
        self.n_neighbors = n_neighbors
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map from labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, one of them with at least two rows; -1 is a class
            like any other.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, at least 0; None for equal weights. A row of weight 2 counts as two
            equal rows that do not form a pair; a row of weight 0 is left out. Only the ratios
            matter.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, check_integer(self.max_iter, "max_iter", 1))
        k = check_integer(self.n_neighbors, "n_neighbors", 1)
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        X, _, codes = validate_labelled_rows(self, X, y)
        check_shared_labels(codes)
        rows = Rows(X, codes, EXACT, weights=weights)
        # every pair once, with the product of the weights of its rows
        same, other = (triu(rows.union_knn(kind, k), format="coo") for kind in ("same", "other"))
        pairs = np.hstack([same.coords, other.coords]).T
        similar = np.repeat([True, False], [same.nnz, other.nnz])
        return self._learn(rows, pairs, similar, np.concatenate([same.data, other.data]), task)

    @with_callbacks
    def fit_pairs(self, pairs: Any, y: Any = None, *, X: Any = None, weights: Any = None) -> Self:
        """Learn the map from pairs of rows.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p), or int array of shape (n_pairs, 2)
            The two rows of each pair, or with X their indices.
        y : array of shape (n_pairs,), default=None
            1 for similar pairs, at least one; -1 for dissimilar ones. None if all pairs are
            similar.
        X : array or sparse matrix of shape (n, p), default=None
            The rows to which the indices in `pairs` refer, and whose distances determine the
            percentiles. None takes the distinct rows that occur in the pairs.
        weights : array of shape (n_pairs,), default=None
            Weights of the pairs, at least 0; a pair of weight 0 is left out. Only ratios matter.
            None for equal weights.

        Returns
        -------
        self
        """
        task = FitTask(self, pairs, y, check_integer(self.max_iter, "max_iter", 1))
        given = validate_given_pairs(self, pairs, y, X, weights).merged()
        rows = Rows(given.X, np.zeros(given.X.shape[0], dtype=np.intp), EXACT)
        # a pair that is given twice counts as one of twice the weight
        distinct = np.column_stack([np.sort(given.numbers, axis=1), given.similar])
        distinct, places = np.unique(distinct, axis=0, return_inverse=True)
        weights = np.bincount(places.ravel(), given.weights)
        similar = distinct[:, 2] == 1
        return self._learn(rows, distinct[:, :2], similar, weights / weights.mean(), task)

    def _learn(
        self, rows: Rows, pairs: np.ndarray, similar: np.ndarray, weights: np.ndarray, task: FitTask
    ) -> Self:
        """Learn the map from pairs (q, 2) of row indices."""
        gamma = check_positive(self.gamma, "gamma")
        if gamma > FARTHEST:
            raise ValueError(f"gamma must be at most {FARTHEST:g}, got {gamma:g}.")
        tol = check_number(self.tol, "tol", 0)
        m = check_n_components(self, rows.shape[1])
        X = centre(dense_float64(rows.X))
        # M_0 = R'R is the identity for the rows X R'
        R = np.eye(X.shape[1])
        if self.prior is not None:
            R = cholesky(check_prior(self.prior, X.shape[1], rows.shape[1]))
        X = X @ R.T
        self.bounds_ = self._bounds_of(X)
        given = Bounds(X, pairs, similar, np.where(similar, *self.bounds_), gamma * weights)
        given = given.without_equal_rows()
        space = ScaledRows(1.0, rows.space, rows.shape)

        def loss(twice: np.ndarray) -> Value:
            value, gradient = given.loss(twice / 2)
            return value, gradient / 2

        def leading(twice: np.ndarray) -> np.ndarray:
            _, roots, Vt = svd(twice / 2 @ R, full_matrices=False)
            return roots[:m, None] * Vt[:m]

        # Over twice the map: otherwise the first step, of length 1, would reach a singular map.
        found = lbfgs(
            loss,
            2 * np.eye(len(R)),
            max_iter=self.max_iter,
            tol=tol,
            on_iteration=partial(
                task.iteration, lambda x: {"components_": space.components(leading(x), rows.dtype)}
            ),
        )
        self.objective_ = found.value
        return self._set_map(replace(found, x=leading(found.x)), space, rows.dtype, task)

    def _bounds_of(self, X: np.ndarray) -> tuple[float, float]:
        """Return u and l, in coordinates in which M_0 is the identity."""
        if self.bounds is not None:
            upper, lower = check_two(self.bounds, "bounds")
            if min(upper, lower) <= 0:
                raise ValueError(f"bounds must be larger than 0, got {self.bounds}.")
            size = row_norms(X, squared=True).max()
            if min(upper, lower) / size < 1 / FARTHEST or max(upper, lower) / size > FARTHEST:
                raise ValueError(
                    f"bounds must be comparable with squared distances by the prior, which are up "
                    f"to about {4 * size:.1e}, got {self.bounds}."
                )
            return upper, lower
        percentiles = check_two(self.percentiles, "percentiles")
        if not 0 <= min(percentiles) <= max(percentiles) <= 100:
            raise ValueError(f"percentiles must be between 0 and 100, got {self.percentiles}.")
        some = evenly_by(row_norms(X, squared=True), BOUND_ROWS)
        squares = pdist(X[some], "sqeuclidean")
        squares = squares[squares > RANK_TOLERANCE**2 * squares.max()]
        upper, lower = np.percentile(squares, percentiles)
        return float(upper), float(lower)


def check_two(values: Any, name: str) -> tuple[float, float]:
    """Return two finite numbers, or raise an error."""
    if shape_of(values, name) != (2,):
        raise ValueError(f"{name} must be two numbers, got {values!r}.")
    first, second = (check_number(value, name, -np.inf) for value in values)
    return first, second


@dataclass(frozen=True)
class Bounds:
    """Bounds on the squared distances of pairs, and the cost of violating them.

    Attributes
    ----------
    X : ndarray of shape (n, r)
        Rows in coordinates in which M_0 is the identity.
    pairs : ndarray of shape (q, 2)
        Row indices.
    similar : ndarray of shape (q,)
        Whether the bound is an upper one.
    bounds : ndarray of shape (q,)
        xi_c0.
    weights : ndarray of shape (q,)
        gamma w_c.
    """

    X: np.ndarray
    pairs: np.ndarray
    similar: np.ndarray
    bounds: np.ndarray
    weights: np.ndarray

    def without_equal_rows(self) -> Bounds:
        """Leave out pairs of equal rows, whose distance is 0 under every metric."""
        U = self.differences @ self.X
        squares = row_norms(U, squared=True)
        kept = squares > RANK_TOLERANCE**2 * row_norms(self.X, squared=True).max()
        if not kept.any():
            raise ValueError(NO_PAIR_DIFFERS)
        return replace(
            self,
            pairs=self.pairs[kept],
            similar=self.similar[kept],
            bounds=self.bounds[kept],
            weights=self.weights[kept],
        )

    @cached_property
    def differences(self) -> csr_array:
        """The matrix D (q, n) for which D X has a row x_a - x_b for every pair (a, b)."""
        q = len(self.pairs)
        signs, ends = np.tile([1.0, -1.0], q), np.arange(0, 2 * q + 1, 2)
        return csr_array((signs, self.pairs.ravel(), ends), shape=(q, len(self.X)))

    def loss(self, B: np.ndarray) -> Value:
        """Return D_ld(B'B, I) and the penalties of violated bounds, and the gradient."""
        value = float(np.sum(B * B)) - 2 * float(np.linalg.slogdet(B)[1]) - len(B)
        gradient = 2 * (B - np.linalg.inv(B).T)
        Z = embed(B, self.X)
        slopes = np.zeros_like(Z)
        for some in row_blocks(len(self.pairs), Z.shape[1]):
            D, bounds = self.differences[some], self.bounds[some]
            U = D @ Z
            ratios = row_norms(U, squared=True) / bounds
            violated = (ratios > 1) == self.similar[some]
            weights = np.where(violated, self.weights[some], 0.0)
            ratios = np.where(violated, ratios, 1.0)
            value += float(np.sum(weights * (ratios - np.log(ratios) - 1)))
            lambdas = weights * (1 - 1 / ratios) / bounds  # negative for dissimilar pairs
            slopes += D.T @ (2 * lambdas[:, None] * U)
        return value, gradient + chain_rule(slopes, B, self.X)
