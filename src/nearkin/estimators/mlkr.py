"""Metric Learning for Kernel Regression (Weinberger and Tesauro, AISTATS 2007)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._validation import (
    check_integer,
    check_number,
    relative_weights,
    validate_target_rows,
    weighted_rows,
)
from ..descent import Value, lbfgs
from ..objectives.kernel_regression import prediction_loss, squared_error
from .descent_embedding import (
    COMPARED,
    EARLY,
    DescentEmbedding,
    UnitRows,
    directions,
    n_directions,
    penalty,
)


class MLKR(DescentEmbedding):
    """Metric Learning for Kernel Regression: the map under which near rows predict each other's
    numbers.

    Each row is predicted by the others, with Gaussian weights that fall with the learned distance,

        y^_i = sum_{j != i} k_ij y_j / sum_{j != i} k_ij,    k_ij = exp(-||A x_i - A x_j||^2),

    and the map A minimizes the leave-one-out error

        sum_i ||y_i - y^_i||^2 / sum_i ||y_i - y_mean||^2  +  alpha / sqrt(n) ||A||^2 u^2.

    The first term is the paper's loss, relative to that of the mean: 1 - R^2. The second keeps A
    from overfitting; u is the typical distance of neighbours, so that alpha means the same for any
    scale of the features.

    With weights s of the rows (`sample_weight` of `fit`), k_ij is `s_j exp(-||A x_i - A x_j||^2)`,
    and both sums of the first term, like y_mean, count row i s_i times. A row of weight 2 counts as
    two equal rows that do not predict each other, and one of weight 0 is absent; only the ratios of
    weights matter. u and the init do not depend on them.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    alpha : float, default=0.5
        Weight of the penalty; 0 for none, as in the paper.
    max_iter : int, default=200
        Iterations allowed.
    tol : float, default=1e-5
        The descent has converged when an iteration lowers the loss by less, relative to max(loss,
        1).

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. It has a scale: `SoftNeighborsRegressor` after it is the kernel regression that was
        learned.
    n_components_ : int
        m.
    objective_ : float
        The mean squared leave-one-out error at A, by the weights of the rows, in squared units of
        y; of several targets, their sum.
    n_iter_ : int
        Iterations.
    loss_curve_ : ndarray of shape (`n_iter_` + 1,)
        The loss with the penalty, before and after every iteration.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SoftNeighborsRegressor : The kernel regression that was learned.
    NCARegressor : Numbers from data frames.

    Notes
    -----
    The descent begins with the identity, or with PCA for fewer components, scaled as for `NCA`; the
    scale of the features, warnings, precision, sparse X and interrupts are as for `NCA`, too. The
    unit of y does not matter; of several targets that with the largest variance counts most:
    standardize them unless they share a unit.

    Cost: an iteration takes O(n^2 (m + q) + n p m) time for q targets and O(n (p + m)) memory,
    never n x n.

    References
    ----------
    K. Q. Weinberger, G. Tesauro: Metric Learning for Kernel Regression. Proceedings of the Eleventh
    International Conference on Artificial Intelligence and Statistics (2007) 612-619.

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin import MLKR
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> weights = np.abs(MLKR(1).fit(X, np.sin(X[:, 2])).components_[0])
    >>> bool(weights[2] > 10 * np.delete(weights, 2).max())
    True
    """

    compared_as: ClassVar[dict] = {"MLKR": COMPARED | {"params": None, "regression": EARLY}}
    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 0.5,
        max_iter: int = 200,
        tol: float = 1e-5,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLKR:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,) or (n, q)
            Numbers, not all equal.
        sample_weight : array of shape (n,), default=None
            How much each row counts, at least 0; None for 1 each.

        Returns
        -------
        self
        """
        check_number(self.alpha, "alpha", 0)
        check_number(self.tol, "tol", 0)
        task = FitTask(self, X, y, check_integer(self.max_iter, "max_iter", 1))
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        weights = relative_weights(weights)
        X, targets = validate_target_rows(self, X, y, multi_output=True)
        n, m = X.shape[0], n_directions(self, X.shape[1])
        rows = UnitRows.of(X, m)
        Y = targets.reshape(n, -1)
        Y = Y - np.average(Y, axis=0, weights=weights)
        unit = float(np.average(np.sum(Y * Y, axis=1), weights=weights)) ** 0.5
        Y = Y / unit

        def loss(B: np.ndarray) -> Value:
            value, gradient = prediction_loss(B, rows.X, Y, squared_error, weights=weights)
            cost, slope = penalty(B, self.alpha, n)
            return value / n + cost, gradient / n + slope

        found = lbfgs(
            loss,
            rows.scaled(directions("auto", rows.X, m), self.alpha),
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=partial(
                task.iteration, lambda B: {"components_": rows.components(B, X.dtype)}
            ),
        )
        self.objective_ = unit**2 * (found.value - penalty(found.x, self.alpha, n)[0])
        return self._set_map(found, rows, X.dtype, task)
