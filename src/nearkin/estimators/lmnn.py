"""Large Margin Nearest Neighbour (Weinberger, Blitzer and Saul, NIPS 2005)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances
from sklearn.utils.extmath import row_norms

from .._callbacks import FitTask, with_callbacks
from .._messages import warn_user
from .._pairs import validate_comparisons
from .._validation import (
    check_integer,
    check_number,
    check_shared_labels,
    relative_weights,
    validate_labelled_rows,
    weighted_rows,
)
from ..descent import DescentResult, Status, Value, lbfgs_rounds
from ..objectives.lmnn import (
    Comparisons,
    comparison_margin,
    impostors_within,
    large_margin,
    pair_squares,
    target_squares,
)
from .descent_embedding import (
    COMPARED,
    UNIT_ROWS,
    DescentEmbedding,
    UnitRows,
    directions,
    evenly_by,
    n_directions,
    target_neighbors,
    unit_distance,
)

SEARCH_ALWAYS_ROWS = 4000  # up to here a search for impostors at every step costs little
# a second margin: rows within it are listed, and may become impostors before the next search
SLACK = 1.0
# share of all pairs from which on it is quicker to search always than to keep lists
WORTH = 1 / 256
MOST = 2**25  # impostors that count in all, but for
ALWAYS = 100  # of every row
GAPS = 2**23  # entries of the distances from which the scale of the init is found
# the loss of comparisons by a map that is nearly 0: that of the map 0 is 1/2
NOTHING_LEARNED = 0.499
SPHERE = 0.1  # of the scatter of given near pairs, which is made rounder by as much


class LMNN(DescentEmbedding):
    """Large Margin Nearest Neighbour: separate the k nearest of a class from other classes by a
    margin.

    The targets of row i are its k nearest rows of the same class, in the space of the features.
    With the learned squared distances d_ij = ||A x_i - A x_j||^2 the map A minimizes

        1/n ( 1/2 sum_ij d_ij  +  1/2 sum_ijl max(0, 1 + d_ij - d_il) )

    over rows i, their targets j, and all rows l of other classes: targets are to be near, and
    impostors, which are nearer than a target and a margin of 1, are repelled. (The loss of the
    papers, mu = 1/2, as a mean over rows.) The margin is in units of what is learned, so the units
    of the features do not matter: the map makes up for them. For a square map the minimum is
    global: the loss is a convex function of the metric A'A.

    With weights s of the rows (`sample_weight` of `fit`), of mean 1, the loss is

        1/n ( 1/2 sum_ij s_i s_j d_ij  +  1/2 sum_ijl s_i s_j s_l max(0, 1 + d_ij - d_il) )

    A pair counts as often as there are pairs of copies, a triple as often as triples of copies, if
    row i has s_i copies that are neither targets nor impostors of each other. A row of weight 0 is
    absent. Only the ratios of weights matter: two copies of every row would make triples count
    twice as much against pairs, a weight of 2 for every row does not. Targets, k distinct rows, and
    the init do not depend on the weights.

    `fit_triplets` and `fit_quadruplets` learn from comparisons of distances in place of labels: the
    same loss, of pairs that are to be near and of given comparisons.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    n_neighbors : int, default=3
        k: targets of a row, or the whole class where this is smaller. A row alone in its class has
        none, but may be an impostor.
    n_passes : int, default=1
        Descents. Each but the first begins where the one before has ended, and takes the nearest
        rows of the same class in the space learned so far as targets.
    max_iter : int, default=200
        Iterations allowed to a descent.
    tol : float, default=1e-4
        A descent has converged when an iteration lowers the loss by less, relative to the loss or,
        where that is less, to what the targets cost at the init.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. It has a scale: the margin is 1 between squared distances of `transform(X)`.
    n_components_ : int
        m.
    objective_ : float
        The loss at A.
    n_iter_ : int
        Iterations, over all passes.
    loss_curve_ : ndarray of shape (at least `n_iter_` + 1,)
        The loss before and after every iteration, of each pass. Above 4,000 rows it counts listed
        impostors only (below), and may jump where they are searched again.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the (last) descent.

    See Also
    --------
    NCA : Probabilities in place of a margin.
    MLKR : For numbers in place of classes.

    Notes
    -----
    The scale of the features decides which rows are targets: standardize first unless the units are
    comparable. There is no penalty: with about as many features as rows the map overfits; reduce
    them first, e.g. with PCA. The descent begins with the identity, or with PCA for fewer
    components, in the scale that has the lowest loss.

    Up to 4,000 rows impostors are searched at every step. Beyond, rows of other classes within two
    margins are listed every 15 iterations, and only they count until then, unless they make up more
    than 1/256 of all pairs. The loss among all impostors is compared after that; if it has risen,
    these iterations are undone, and impostors are searched at every step. Where more than 2^25
    count in all (for a row, more than 2^25 / n, and more than 100), the farthest of each row do
    not.

    Cost: an iteration takes O(q (m + k) + n p m) time for q impostors, often some 10 to 30 a row,
    and a search, a product of matrices, O(n^2 m); memory is O(n (p + m + k) + q), never n x n.
    Precision, sparse X and interrupts are as for `NCA`.

    References
    ----------
    K. Q. Weinberger, J. Blitzer, L. K. Saul: Distance Metric Learning for Large Margin Nearest
    Neighbor Classification. Advances in Neural Information Processing Systems 18 (2005). K. Q.
    Weinberger, L. K. Saul: Distance Metric Learning for Large Margin Nearest Neighbor
    Classification. Journal of Machine Learning Research 10 (2009) 207-244. M. Schultz, T. Joachims:
    Learning a Distance Metric from Relative Comparisons. Advances in Neural Information Processing
    Systems 16 (2003): from comparisons, with a diagonal map.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> lmnn = LMNN().fit(scale(X), y)
    >>> lmnn.transform(scale(X)).shape
    (178, 13)

    Rows 0 and 1 are to be nearer to each other than to rows of another class:

    >>> lmnn = LMNN(2).fit_triplets([[0, 1, 60], [1, 0, 150]], X=scale(X))
    >>> lmnn.transform(scale(X)).shape
    (178, 2)
    """

    compared_as: ClassVar[dict] = {"LMNN": COMPARED | {"params": {"tol": 1e-3}}}  # see `EARLY`
    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 3,
        n_passes: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_passes = n_passes
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LMNN:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, one of at least two rows; -1 is a class like any
            other.
        sample_weight : array of shape (n,), default=None
            How much each row counts, at least 0; None for 1 each.

        Returns
        -------
        self
        """
        check_integer(self.n_neighbors, "n_neighbors", 1)
        check_number(self.tol, "tol", 0)
        n_passes = check_integer(self.n_passes, "n_passes", 1)
        max_iter = check_integer(self.max_iter, "max_iter", 1)
        task = FitTask(self, X, y, n_passes * max_iter)
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        weights = relative_weights(weights)
        X, _, codes = validate_labelled_rows(self, X, y)
        check_shared_labels(codes)
        m = n_directions(self, X.shape[1])
        rows = UnitRows.of(X, m)
        targets = target_neighbors(rows.X, codes, self.n_neighbors)
        n = X.shape[0]
        V = directions("auto", rows.X, m)
        Z = rows.embedding(V)
        init = V / (balanced_scale(*gaps_of_targets(Z, codes, targets)) or unit_distance(Z))
        # The unit of the loss is what the targets cost at the init.
        no_impostors = csr_array((n, n), dtype=bool)
        unit = large_margin(init, rows.X, targets, no_impostors, weights=weights)[0] / n or 1.0

        def impostors(A: np.ndarray, slack: float) -> csr_array:
            Z = rows.embedding(A)
            reach = 1 + target_squares(Z, targets).max(axis=1)
            return impostors_within(Z, codes, reach + slack, max(ALWAYS, MOST // n))

        def loss(A: np.ndarray, neighbors: csr_array | None) -> Value:
            """Return the loss among the listed impostors, or among all, and its gradient."""
            listed = impostors(A, 0.0) if neighbors is None else neighbors
            value, gradient = large_margin(A, rows.X, targets, listed, weights=weights)
            return value / n / unit, gradient / n / unit

        def look_up(A: np.ndarray) -> csr_array | None:
            """Return the rows of other classes within two margins, None where it is quicker to
            search always.
            """
            if n <= SEARCH_ALWAYS_ROWS:
                return None
            listed = impostors(A, SLACK)
            return listed if listed.nnz < min(WORTH * n * n, MOST / 2) else None

        best = DescentResult(init, np.inf, 0, [], Status.MAX_ITER)
        for number in range(n_passes):
            try:
                if number:
                    targets = target_neighbors(rows.embedding(best.x), codes, self.n_neighbors)
                best = best.then(self._descend(loss, best.x, look_up, rows, X.dtype, task))
            except KeyboardInterrupt:
                if not number:
                    raise
                best = replace(best, status=Status.INTERRUPTED)
            if best.ended_early:
                break
        return self._set_result(best, unit, rows, X.dtype, task)

    @with_callbacks
    def fit_triplets(self, triplets: Any, *, X: Any = None, weights: Any = None) -> LMNN:
        """Learn the map from triplets (a, b, c): a is to be nearer to b than to c.

        They are the quadruplets (a, b, a, c): see `fit_quadruplets` for what is minimized.

        Parameters
        ----------
        triplets : array of shape (n_triplets, 3, p), or int array of shape (n_triplets, 3)
            The three rows of each triplet; with X their numbers, counted from 0, all different.
        X : array or sparse matrix of shape (n, p), default=None
            The rows of which `triplets` holds the numbers. Rows that are in none do not matter.
        weights : array of shape (n_triplets,), default=None
            How much each triplet counts, at least 0; None for 1 each.

        Returns
        -------
        self
        """
        return self._fit_comparisons(triplets, "triplets", X, weights)

    @with_callbacks
    def fit_quadruplets(self, quadruplets: Any, *, X: Any = None, weights: Any = None) -> LMNN:
        """Learn the map from quadruplets (a, b, c, d): a is to be nearer to b than c to d.

        With weights w of the comparisons, the map minimizes

            1/2 ( sum_ab v_ab d_ab  +  sum_abcd w_abcd max(0, 1 + d_ab - d_cd) ) / sum w
                +  0.05 s^2 ||A||^2

        The first sum is over the distinct pairs (a, b) that are to be near, with the mean weight v
        of the comparisons of each; the second is over the distinct comparisons, equal ones with the
        sum of their weights. It is the loss of `fit`, in which targets and impostors are given, and
        a penalty that keeps few comparisons from being overfitted: s^2 is the mean of ||x_a -
        x_b||^2 / p over the comparisons (for p > n, p is the rank of the centred rows), so that it
        adds to the scatter of near pairs a tenth of a sphere. (A tenth was chosen on inner folds of
        ten sets.) For a square map the minimum is global.

        A comparison of weight 2 counts as two equal ones, and one of weight 0 is absent; only the
        ratios of weights matter. n_neighbors and n_passes have no effect.

        Parameters
        ----------
        quadruplets : array of shape (n_quadruplets, 4, p), or int array of shape (n_quadruplets, 4)
            The four rows of each quadruplet; with X their numbers, counted from 0. a is not b, and
            c is not d, but the two pairs may share a row.
        X : array or sparse matrix of shape (n, p), default=None
            The rows of which `quadruplets` holds the numbers. Rows that are in none do not matter.
        weights : array of shape (n_quadruplets,), default=None
            How much each quadruplet counts, at least 0; None for 1 each.

        Returns
        -------
        self
            `objective_` and `loss_curve_` are of this loss, which is 1/2 for the map 0.

        Warns
        -----
        UserWarning
            If the map is nearly 0: the comparisons contradict each other, or the features do not
            explain them.

        Notes
        -----
        Cost: an iteration takes O(q + r m + n p m) time for q comparisons of r different pairs of n
        rows; memory is O(n (p + m) + q), beside the given comparisons.
        """
        return self._fit_comparisons(quadruplets, "quadruplets", X, weights)

    def _fit_comparisons(self, tuples: Any, name: str, X: Any, weights: Any) -> LMNN:
        check_number(self.tol, "tol", 0)
        max_iter = check_integer(self.max_iter, "max_iter", 1)
        task = FitTask(self, tuples if X is None else X, None, max_iter)
        X, quadruplets, weights = validate_comparisons(self, tuples, name, X, weights)
        m = n_directions(self, X.shape[1])
        rows = UnitRows.of(X, m, n_rows=UNIT_ROWS)
        comparisons = Comparisons.of(quadruplets, weights / weights.sum())
        near, far, w = comparisons.near, comparisons.far, comparisons.weights
        mean_square = float(w @ pair_squares(rows.X, comparisons.pairs)[near])
        shrinkage = SPHERE * mean_square / rows.X.shape[1]

        V = directions("auto", rows.X, m)
        d = pair_squares(rows.embedding(V), comparisons.pairs)
        gaps = d[far] - d[near]
        order = np.argsort(gaps)
        # twice the loss but for the comparisons, which is quadratic in the scale
        total = float(comparisons.attraction @ d + shrinkage * np.sum(V * V))
        scale = balanced_scale(gaps[order], total, w[order]) or float(w @ d[near]) ** 0.5 or 1.0
        unit = total / 2 / scale**2 or 1.0

        def loss(A: np.ndarray, neighbors: None) -> Value:
            value, gradient = comparison_margin(A, rows.X, comparisons)
            value += shrinkage / 2 * float(np.sum(A * A))
            return value / unit, (gradient + shrinkage * A) / unit

        best = self._descend(loss, V / scale, lambda _: None, rows, X.dtype, task)
        self._set_result(best, unit, rows, X.dtype, task)
        if self.objective_ > NOTHING_LEARNED:
            warn_user(
                f"No map was found that orders the {name} better than the map 0, whose loss is "
                "1/2: the map is nearly 0. They contradict each other, or these features do not "
                f"explain them. The rows a and b that are to be near come first in {name}."
            )
        return self

    def _descend(
        self, loss: Any, start: np.ndarray, look_up: Any, rows: UnitRows, dtype: Any, task: FitTask
    ) -> DescentResult:
        """Return the result of one descent; see `lbfgs_rounds`."""
        return lbfgs_rounds(
            loss,
            start,
            look_up=look_up,
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=partial(
                task.iteration, lambda A: {"components_": rows.components(A, dtype)}
            ),
            finish_exactly=True,
        )

    def _set_result(
        self, best: DescentResult, unit: float, rows: UnitRows, dtype: Any, task: FitTask
    ) -> LMNN:
        """Set the map and the loss, which was minimized in some unit."""
        self.objective_ = float(unit * best.value)
        best = replace(best, curve=[unit * value for value in best.curve])
        return self._set_map(best, rows, dtype, task)


def gaps_of_targets(
    Z: np.ndarray, codes: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the gaps d_il - d_ij of triples, ascending, and the sum of d_ij.

    Some rows i, evenly drawn, stand for all.
    """
    some = evenly_by(row_norms(Z, squared=True), max(8, GAPS // targets.size))
    d_targets = target_squares(Z, targets)[some, None, :]
    gaps = euclidean_distances(Z[some], Z, squared=True)[:, :, None] - d_targets
    gaps = np.sort(gaps[(codes[some, None] != codes)[:, :, None] & np.isfinite(d_targets)])
    return gaps, d_targets.sum(where=np.isfinite(d_targets), dtype=np.float64)


def balanced_scale(gaps: np.ndarray, total: float, weights: Any = 1) -> float | None:
    """Return the s for which the loss of the map A / s is the lowest; None where that is the map 0.

    With the margin c = s^2, a triple with the gap g = d_il - d_ij counts while g < c. The
    derivative of the loss along s is 0 where the gaps of those that count, in ascending order, add
    up to `total`, which is sum_ij d_ij: there one of them ceases to count, so c is a little more.
    """
    enough = (gaps > 0) & (np.cumsum(weights * gaps, dtype=np.float64) >= total)
    return (1.01 * float(gaps[enough.argmax()])) ** 0.5 if enough.any() else None
