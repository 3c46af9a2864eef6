"""Metric Learning for Kernel Regression (Weinberger and Tesauro, AISTATS 2007)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_number, relative_weights, weighted_rows
from ..descent import lbfgs
from ..objectives.kernel_regression import KernelRegression, squared_error
from ..objectives.loss import Ridge
from .descent_embedding import (
    COMPARED,
    EARLY,
    DescentEmbedding,
    UnitRows,
    check_n_components,
    directions,
    reporter,
)
from .validation import validate_target_rows


class MLKR(DescentEmbedding):
    """Metric Learning for Kernel Regression: near rows predict each other's targets.

    Each row is predicted from the others, with Gaussian weights that decrease with the learned
    distance,

        y^_i = sum_{j != i} k_ij y_j / sum_{j != i} k_ij,    k_ij = exp(-||A x_i - A x_j||^2),

    and the map A minimizes the leave-one-out error

        sum_i ||y_i - y^_i||^2 / sum_i ||y_i - y_mean||^2  +  alpha / sqrt(n) ||A||^2 u^2.

    The first term is the paper's loss, relative to that of predicting the mean: 1 - R^2. The second
    is a penalty against overfitting. The typical distance of neighbours, u, makes alpha independent
    of the scale of the features.

    With weights s of the rows (`sample_weight` of `fit`), k_ij is `s_j exp(-||A x_i - A x_j||^2)`,
    and row i has weight s_i in y_mean and in both sums of the first term. A row of weight 2 counts
    as two equal rows that do not predict each other; a row of weight 0 is left out. Only the ratios
    of weights matter. u and the init do not depend on them.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or for p > n the rank of the centred rows.
    alpha : float, default=0.5
        Weight of the penalty; 0 is the paper's method.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-5
        The descent has converged when an iteration lowers the loss by less than this, relative to
        max(loss, 1).

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. Its scale is meaningful: `SoftNeighborsRegressor` on `transform(X)` is the learned kernel
        regression.
    n_components_ : int
        m.
    objective_ : float
        The weighted mean squared leave-one-out error at A, in squared units of y, summed over
        several targets.
    n_iter_ : int
        Number of iterations.
    loss_curve_ : ndarray of shape (`n_iter_` + 1,)
        The loss with the penalty, before and after every iteration.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SoftNeighborsRegressor : The kernel regression that is learned.
    NCARegressor : Regression on data frames.

    Notes
    -----
    The descent starts from the identity, or from PCA for fewer components, scaled as for `NCA`. The
    scale of the features, warnings, precision, sparse X and interrupts are as for `NCA`, too. The
    unit of y does not matter. Among several targets, the one with the largest variance counts most:
    standardize them unless they share a unit.

    Cost: an iteration takes O(n^2 (m + q) + n p m) time for q targets, and O(n (p + m)) memory;
    up to 4,096 rows, half of the n x n kernel is kept, which halves the time.

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
            Real numbers, not all equal.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, at least 0; None for equal weights.

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
        n, m = X.shape[0], check_n_components(self, X.shape[1])
        rows = UnitRows.of(X, m)
        Y = targets.reshape(n, -1)
        Y = Y - np.average(Y, axis=0, weights=weights)
        unit = float(np.average(np.sum(Y * Y, axis=1), weights=weights)) ** 0.5
        Y = Y / unit

        ridge = Ridge(self.alpha, n)
        loss = KernelRegression(rows.X, Y, squared_error, weights) + ridge
        found = lbfgs(
            loss.value,
            rows.scaled_init(directions("auto", rows.X, m) * rows.varies(), self.alpha),
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=reporter(task, rows, X.dtype),
        )
        self.objective_ = unit**2 * (found.value - ridge(found.x)[0])
        return self._set_map(found, rows, X.dtype, task)
