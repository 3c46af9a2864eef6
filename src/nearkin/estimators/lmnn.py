"""Large Margin Nearest Neighbour (Weinberger, Blitzer and Saul, NIPS 2005)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances
from sklearn.utils.extmath import row_norms

from .._callbacks import FitTask, with_callbacks
from .._labels import check_shared_labels
from .._messages import warn_user
from .._validation import check_integer, check_number, relative_weights, weighted_rows
from ..bandwidth import evenly_by, unit_distance
from ..descent import DescentResult, DescentStatus, lbfgs, lbfgs_rounds
from ..objectives.candidates import target_neighbors
from ..objectives.lmnn import (
    ComparisonMargin,
    Comparisons,
    LargeMargin,
    pair_squares,
    target_squares,
)
from ..objectives.loss import Ridge, Scaled
from .descent_embedding import (
    COMPARED,
    UNIT_ROWS,
    DescentEmbedding,
    UnitRows,
    check_n_components,
    directions,
    reporter,
)
from .pairs import validate_comparisons
from .validation import validate_labelled_rows

GAPS = 2**23  # entries of the distances that determine the scale of the init
# loss of the comparisons for a map of nearly 0; the map 0 has loss 1/2
NOTHING_LEARNED = 0.499
SPHERE = 0.1  # of the scatter of the given near pairs, added to it as a multiple of the identity


class LMNN(DescentEmbedding):
    """Large Margin Nearest Neighbour: a margin between same-class neighbours and other classes.

    The targets of row i are its k nearest rows of the same class, in the space of the features.
    With the learned squared distances d_ij = ||A x_i - A x_j||^2, the map A minimizes

        1/n ( 1/2 sum_ij d_ij  +  1/2 sum_ijl max(0, 1 + d_ij - d_il) )

    over rows i, their targets j, and all rows l of other classes. The first sum pulls targets
    closer. The second repels impostors, rows of other classes that are closer than a target plus a
    margin of 1. (This is the loss of the papers with mu = 1/2, averaged over the rows.) The margin
    is in units of the learned distance, so the units of the features do not matter. The loss is a
    convex function of the metric A'A, so the minimum is global for a square map.

    With weights s of the rows (`sample_weight` of `fit`), scaled to mean 1, the loss is

        1/n ( 1/2 sum_ij s_i s_j d_ij  +  1/2 sum_ijl s_i s_j s_l max(0, 1 + d_ij - d_il) )

    A pair or triple counts as often as it occurs among the copies of its rows, if row i has s_i
    copies that are neither targets nor impostors of each other. A row of weight 0 is left out. Only
    the ratios of weights matter: duplicating every row would double the weight of triples relative
    to pairs, while a weight of 2 for every row changes nothing. Targets (k distinct rows) and the
    init do not depend on the weights.

    `fit_triplets` and `fit_quadruplets` learn from comparisons of distances instead of labels, with
    the same loss for given pairs and comparisons.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or for p > n the rank of the centred rows.
    n_neighbors : int, default=3
        k, the number of targets per row, or the whole class if it is smaller. A row alone in its
        class has no targets but may be an impostor.
    n_passes : int, default=1
        Number of descents. Each one after the first starts from the result of the previous one, and
        takes the nearest rows of the same class in the learned space as targets.
    max_iter : int, default=200
        Maximum number of iterations per descent.
    tol : float, default=1e-4
        A descent has converged when an iteration lowers the loss by less than this, relative to the
        larger of the loss and the loss of the targets alone at the init.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. Its scale is meaningful: the margin is 1 for squared distances of `transform(X)`.
    n_components_ : int
        m.
    objective_ : float
        The loss at A.
    n_iter_ : int
        Number of iterations over all passes.
    loss_curve_ : ndarray of shape (at least `n_iter_` + 1,)
        The loss before and after every iteration, for all passes. Above 4,000 rows it only counts
        listed impostors (see Notes), and may jump where they are searched again.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the (last) descent before it converged.
    UserWarning
        If there are fewer directions than requested.

    See Also
    --------
    NCA : Probabilities instead of a margin.
    MLKR : For real-valued targets.

    Notes
    -----
    The scale of the features decides which rows are targets: standardize first unless the units are
    comparable. There is no penalty, so the map overfits if there are about as many features as
    rows: reduce the features first, e.g. with PCA. The descent starts from the identity, or from
    PCA for fewer components, scaled for the lowest loss.

    Up to 4,000 rows, impostors are searched at every step. For more rows, those of other classes
    within two margins are listed every 15 iterations, and only these count until the next search,
    unless they are more than 1/256 of all pairs. At each search, the loss over all impostors is
    compared: if it has risen, the last iterations are undone, and impostors are searched at every
    step from then on. If there are more than 2^25 impostors in total, the farthest ones of each row
    with more than 2^25 / n (and more than 100) are ignored.

    Cost: an iteration takes O(q (m + k) + n p m) for q impostors, often about 10 to 30 per row. A
    search is a matrix product, O(n^2 m). Memory is O(n (p + m + k) + q), never n x n. Precision,
    sparse X and interrupts are as for `NCA`.

    References
    ----------
    K. Q. Weinberger, J. Blitzer, L. K. Saul: Distance Metric Learning for Large Margin Nearest
    Neighbor Classification. Advances in Neural Information Processing Systems 18 (2005). K. Q.
    Weinberger, L. K. Saul: Distance Metric Learning for Large Margin Nearest Neighbor
    Classification. Journal of Machine Learning Research 10 (2009) 207-244. M. Schultz, T. Joachims:
    Learning a Distance Metric from Relative Comparisons. Advances in Neural Information Processing
    Systems 16 (2003) (comparisons, with a diagonal map).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> lmnn = LMNN().fit(scale(X), y)
    >>> lmnn.transform(scale(X)).shape
    (178, 13)

    Rows 0 and 1 should be closer to each other than to given rows of another class:

    >>> lmnn = LMNN(2).fit_triplets([[0, 1, 60], [1, 0, 150]], X=scale(X))
    >>> lmnn.transform(scale(X)).shape
    (178, 2)
    """

    compared_as: ClassVar[dict] = {"LMNN": COMPARED | {"params": {"tol": 1e-3}}}  # see `EARLY`

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
            Class labels, at least two classes, one of them with at least two rows; -1 is a class
            like any other.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, at least 0; None for equal weights.

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
        m = check_n_components(self, X.shape[1])
        rows = UnitRows.of(X, m)
        targets = target_neighbors(rows.X, codes, self.n_neighbors)
        V = directions("auto", rows.X, m) * rows.varies()
        Z = rows.embedding(V)
        init = V / (balanced_scale(*gaps_of_targets(Z, codes, targets)) or unit_distance(Z))
        loss = LargeMargin(rows.X, codes, targets, weights)
        # The unit of the loss is the loss of the targets at the init.
        unit = loss.value(init, csr_array((len(codes), len(codes)), dtype=bool))[0] or 1.0
        found = DescentResult(init, np.inf, 0, [], DescentStatus.MAX_ITER)
        for number in range(n_passes):
            try:
                if number:
                    targets = target_neighbors(rows.embedding(found.x), codes, self.n_neighbors)
                    loss = replace(loss, targets=targets)
                one_pass = lbfgs_rounds(
                    Scaled(loss, unit),
                    found.x,
                    max_iter=max_iter,
                    tol=self.tol,
                    on_iteration=reporter(task, rows, X.dtype),
                    finish_exactly=True,
                )
                found = found.then(one_pass)
            except KeyboardInterrupt:
                if not number:
                    raise
                found = replace(found, status=DescentStatus.INTERRUPTED)
            if found.ended_early:
                break
        found = found.in_units(unit)
        self.objective_ = found.value
        return self._set_map(found, rows, X.dtype, task)

    @with_callbacks
    def fit_triplets(self, triplets: Any, *, X: Any = None, weights: Any = None) -> LMNN:
        """Learn the map from triplets (a, b, c): a should be closer to b than to c.

        A triplet is the quadruplet (a, b, a, c); see `fit_quadruplets` for the loss.

        Parameters
        ----------
        triplets : array of shape (n_triplets, 3, p), or int array of shape (n_triplets, 3)
            The three rows of each triplet, or with X their indices, which must all differ.
        X : array or sparse matrix of shape (n, p), default=None
            The rows to which the indices in `triplets` refer. Other rows have no effect.
        weights : array of shape (n_triplets,), default=None
            Weights of the triplets, at least 0; None for equal weights.

        Returns
        -------
        self
        """
        return self._fit_comparisons(triplets, "triplets", X, weights)

    @with_callbacks
    def fit_quadruplets(self, quadruplets: Any, *, X: Any = None, weights: Any = None) -> LMNN:
        """Learn the map from quadruplets (a, b, c, d): a should be closer to b than c to d.

        With weights w of the comparisons, the map minimizes

            1/2 ( sum_ab v_ab d_ab  +  sum_abcd w_abcd max(0, 1 + d_ab - d_cd) ) / sum w
                +  0.05 s^2 ||A||^2

        The first sum is over the distinct pairs (a, b) that should be close, where v is the mean
        weight of the comparisons of a pair. The second is over the distinct comparisons; equal ones
        are merged and their weights added. This is the loss of `fit` for given targets and
        impostors, plus a penalty against overfitting when there are few comparisons. s^2 is the
        mean of ||x_a - x_b||^2 / p over the comparisons, with p the number of features that are not
        constant (for p > n, the rank of the centred rows): the penalty adds a tenth of a spherical
        scatter to that of the near pairs. (A tenth was chosen on inner folds of ten data sets.) For
        a square map the minimum is global.

        A comparison of weight 2 counts as two equal ones; one of weight 0 is left out. Only the
        ratios of weights matter. n_neighbors and n_passes have no effect.

        Parameters
        ----------
        quadruplets : array of shape (n_quadruplets, 4, p), or int array of shape (n_quadruplets, 4)
            The four rows of each quadruplet, or with X their indices. a must differ from b, and c
            from d, but the two pairs may share a row.
        X : array or sparse matrix of shape (n, p), default=None
            The rows to which the indices in `quadruplets` refer. Other rows have no effect.
        weights : array of shape (n_quadruplets,), default=None
            Weights of the quadruplets, at least 0; None for equal weights.

        Returns
        -------
        self
            `objective_` and `loss_curve_` refer to this loss, which is 1/2 for the map 0.

        Warns
        -----
        UserWarning
            If the map is nearly 0: the comparisons contradict each other, or the features do not
            explain them.

        Notes
        -----
        Cost: an iteration takes O(q + r m + n p m) for q comparisons of r distinct pairs of n rows.
        Memory is O(n (p + m) + q), besides the given comparisons.
        """
        return self._fit_comparisons(quadruplets, "quadruplets", X, weights)

    def _fit_comparisons(self, tuples: Any, name: str, X: Any, weights: Any) -> LMNN:
        check_number(self.tol, "tol", 0)
        max_iter = check_integer(self.max_iter, "max_iter", 1)
        task = FitTask(self, tuples if X is None else X, None, max_iter)
        X, quadruplets, weights = validate_comparisons(self, tuples, name, X, weights)
        m = check_n_components(self, X.shape[1])
        rows = UnitRows.of(X, m, n_rows=UNIT_ROWS)
        comparisons = Comparisons.of(quadruplets, weights / weights.sum())
        near, far, w = comparisons.near, comparisons.far, comparisons.weights
        mean_square = float(w @ pair_squares(rows.X, comparisons.pairs)[near])
        shrinkage = SPHERE * mean_square / np.count_nonzero(rows.varies())

        V = directions("auto", rows.X, m) * rows.varies()
        d = pair_squares(rows.embedding(V), comparisons.pairs)
        gaps = d[far] - d[near]
        order = np.argsort(gaps)
        # twice the part of the loss that is quadratic in the scale, i.e. without the comparisons
        total = float(comparisons.attraction @ d + shrinkage * np.sum(V * V))
        scale = balanced_scale(gaps[order], total, w[order]) or float(w @ d[near]) ** 0.5 or 1.0
        unit = total / 2 / scale**2 or 1.0

        loss = ComparisonMargin(rows.X, comparisons) + Ridge(shrinkage / 2)
        found = lbfgs(
            Scaled(loss, unit).value,
            V / scale,
            max_iter=max_iter,
            tol=self.tol,
            on_iteration=reporter(task, rows, X.dtype),
        ).in_units(unit)
        self.objective_ = found.value
        self._set_map(found, rows, X.dtype, task)
        if self.objective_ > NOTHING_LEARNED:
            warn_user(
                f"No map was found that orders the {name} better than the zero map, whose loss is "
                f"1/2: the map is nearly zero. The {name} contradict each other, or these features "
                f"do not explain them. The rows a and b that are to be near come first in {name}."
            )
        return self


def gaps_of_targets(
    Z: np.ndarray, codes: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the gaps d_il - d_ij of triples, ascending, and the sum of d_ij.

    They are computed for some rows i, evenly spaced by their norms.
    """
    some = evenly_by(row_norms(Z, squared=True), max(8, GAPS // targets.size))
    d_targets = target_squares(Z, targets)[some, None, :]
    gaps = euclidean_distances(Z[some], Z, squared=True)[:, :, None] - d_targets
    gaps = np.sort(gaps[(codes[some, None] != codes)[:, :, None] & np.isfinite(d_targets)])
    return gaps, d_targets.sum(where=np.isfinite(d_targets), dtype=np.float64)


def balanced_scale(gaps: np.ndarray, total: float, weights: Any = 1) -> float | None:
    """Return the s for which the map A / s has the lowest loss, or None if the map 0 has.

    With the margin c = s^2, a triple with the gap g = d_il - d_ij counts while g < c. The
    derivative of the loss along s is 0 where the gaps of the triples that count, added in ascending
    order, reach `total`, the sum of d_ij. At that point one triple stops counting, so c is set
    slightly larger.
    """
    enough = (gaps > 0) & (np.cumsum(weights * gaps, dtype=np.float64) >= total)
    return (1.01 * float(gaps[enough.argmax()])) ** 0.5 if enough.any() else None
