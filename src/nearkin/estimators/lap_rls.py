"""Laplacian Regularized Least Squares (Belkin, Niyogi and Sindhwani, JMLR 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import encode_partial_classes
from .._memory import require_memory
from .._validation import check_number, check_positive
from ..graphs import laplacian
from ..scatter import row_space, scatter, total_scatter
from .base import SparseRowsMixin
from .extension import KernelExtension, evaluate
from .graph_penalty import affinity_graph
from .kernel_penalty import kernel_function
from .validation import (
    has_target,
    validate_labelled_rows,
    validate_partial_target_rows,
    validate_rows,
)


class LapRLS(CallbackSupportMixin, SparseRowsMixin, BaseEstimator):
    """Base of the classifier and the regressor: functions f of the rows for targets Y (n, q).

    Unknown targets are NaN.
    """

    def __init__(
        self,
        *,
        gamma_A: float = 1e-2,
        gamma_I: float | None = None,
        kernel: Any = "rbf",
        n_neighbors: int = 10,
        search: Any = "exact",
    ) -> None:
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.search = search

    def _learn(self, X: Any, Y: np.ndarray, affinity: Any) -> None:
        n = X.shape[0]
        labelled = has_target(Y)
        n_labelled = int(labelled.sum())
        ridge = check_positive(self.gamma_A, "gamma_A") * n_labelled
        W, search = affinity_graph(self, X, affinity)
        if self.gamma_I is not None:
            self.gamma_I_ = check_number(self.gamma_I, "gamma_I", 0)
        elif W.nnz > 0:
            self.gamma_I_ = float(2 * n**2 / W.sum())
        else:
            raise ValueError(
                "affinity has no edge, so gamma_I cannot be chosen: set gamma_I=0 to leave it out."
            )
        penalty = self.gamma_I_ * n_labelled / n**2 * laplacian(W)
        Y = Y[labelled]
        target_mean = Y.mean(axis=0)
        if self.kernel is None:
            # (X'JX + gamma_A l I + gamma_I l / n^2 X'LX) w = X'JY, in the span of the rows
            rows = row_space(X)
            Z = rows.coordinates
            H = total_scatter(Z, labelled.astype(np.float64)) + scatter(Z, penalty)
            H[np.diag_indices_from(H)] += ridge
            Z = Z[labelled]
            JY = Y - target_mean
            moment = Z.T @ JY - np.outer(Z.mean(axis=0, dtype=np.float64), JY.sum(axis=0))
            w = solve(H, moment, assume_a="pos")
            self.coef_ = rows.to_features(w).T
            row_mean = X[labelled].mean(axis=0, dtype=np.float64)
            self.intercept_ = target_mean - row_mean @ self.coef_.T
        else:
            # (J K + gamma_A l I + gamma_I l / n^2 L K) alpha = J Y
            remedy = "take kernel=None after sklearn.kernel_approximation.Nystroem"
            require_memory(4 * 8 * n * n, f"The kernel of {n} rows", remedy)
            self.kernel_ = kernel_function(self.kernel, X)
            self.X_fit_ = X.copy()  # the caller may modify X
            K = evaluate(self.kernel_, X, X)
            mean = K[labelled].mean(axis=0)
            M = penalty @ K
            JY = np.zeros((n, Y.shape[1]))
            M[labelled] += K[labelled] - mean
            M[np.diag_indices_from(M)] += ridge
            JY[labelled] = Y - target_mean
            self.dual_coef_ = solve(M, JY, overwrite_a=True)
            self.intercept_ = target_mean - mean @ self.dual_coef_
        self.search_ = search.name

    def _values(self, X: Any) -> np.ndarray:
        """Return f(x) for validated rows, shape (n, q)."""
        if self.kernel is None:
            return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        h = KernelExtension(self.X_fit_, self.kernel_, np.zeros(1), self.dual_coef_)
        return h(X) + self.intercept_


class LapRLSClassifier(ClassifierMixin, LapRLS):
    """Laplacian Regularized Least Squares: ridge regression on few labels, smooth along a graph.

    l of the n rows have labels; targets y_i are 1 for a class and -1 for all others. L = D - W is
    the Laplacian of the union k-NN graph of all rows with heat-kernel weights `exp(-d^2 / t)`,
    where t is the mean squared length of the edges. For each class, the function f(x) = h(x) + b
    minimizes

        1/l sum_(i<=l) (y_i - f(x_i))^2  +  gamma_A ||h||^2  +  gamma_I / n^2  f'Lf

    with f = (f(x_1), ..., f(x_n))' in the last term. The class of the largest f is predicted.

    In the linear form, h(x) = w'x. With J = diag(1_l) - 1_l 1_l' / l and 1_l the indicator of the
    labelled rows,

        (X'JX + gamma_A l I + gamma_I l / n^2 X'LX) w = X'JY.

    With a kernel, h(x) = sum_i alpha_i k(x_i, x), ||h|| is its norm in the reproducing kernel
    Hilbert space, and

        (J K + gamma_A l I + gamma_I l / n^2 L K) alpha = J Y.

    This is eq. 8 of the paper, whose J lacks the intercept b. With gamma_I = 0 it is (kernel) ridge
    regression on the labelled rows.

    Parameters
    ----------
    gamma_A : float, default=0.01
        Weight of the norm, greater than 0. In the linear form its unit is that of the squared
        features: standardize first.
    gamma_I : float or None, default=None
        Weight of the graph, at least 0. None takes 2 n^2 / s, where s is the sum of W: the mean
        squared difference along the edges then counts as much as the mean squared error of the
        labelled rows.
    kernel : "rbf", callable or None, default="rbf"
        "rbf" is exp(-d^2 / t), where t is the mean d^2 over all pairs of rows. A callable takes two
        tables and returns the kernel between their rows. None gives the linear form.
    n_neighbors : int, default=10
        k of the graph.
    search
        See `LDE`.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    coef_ : ndarray of shape (c, p), linear form
        w' for every class.
    dual_coef_ : ndarray of shape (n, c), with a kernel
        alpha for every class.
    intercept_ : ndarray of shape (c,)
        b for every class.
    X_fit_ : array or sparse matrix of shape (n, p), with a kernel
        The rows of `fit`.
    kernel_ : callable, with a kernel
    gamma_I_ : float
        The weight used.
    transduction_ : ndarray of shape (n,)
        The label of every row of `fit`: the given or else the predicted one.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    search_
        See `LDE`.

    See Also
    --------
    nearkin.DiscriminativeProjectionsClassifier : Maps labels as well, so that f need not match
        their numeric codes.
    nearkin.LapRLSRegressor : For real-valued targets.

    Notes
    -----
    -1, None and NaN mark unlabelled rows (the string "-1" is a class). Standardize first unless the
    units are comparable. The intercept is not penalized, and L maps constants to 0, so results do
    not depend on the origin.

    There is no `predict_proba`: least squares gives scores (`decision_function`), for which the
    paper defines no probabilities. `TDLClassifier` has some.

    The defaults were chosen on nine data sets (six tables of KEEL, satimage, MNIST, UMIST; 2, 5 and
    10 % of the labels). On these, "rbf" was more accurate than the linear form on average, and less
    accurate only for images with many labels. On fourteen others, among them text, the linear form
    has the better mean rank.

    Cost: n^2 pairwise distances for the graph. Linear form: O(n k p + n p^2 + p^3), for p > n in
    the span of the rows, O(n^2 p). Kernel: O(n^3) time and O(n^2) memory, refused if that does not
    fit. For more rows use `sklearn.kernel_approximation.Nystroem` followed by the linear form.

    References
    ----------
    M. Belkin, P. Niyogi, V. Sindhwani: Manifold Regularization: A Geometric Framework for Learning
    from Labeled and Unlabeled Examples. Journal of Machine Learning Research 7 (2006) 2399-2434,
    sec. 4.2.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LapRLSClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> few = y.copy()
    >>> few[10:50] = few[70:120] = few[140:] = -1
    >>> model = LapRLSClassifier().fit(scale(X), few)
    >>> float((model.transduction_ == y).mean()) > 0.9
    True
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> LapRLSClassifier:
        """Learn the functions.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1, None or NaN for unlabelled rows.
        affinity : array or sparse matrix of shape (n, n), default=None
            Replaces W: symmetric and nonnegative; the diagonal is ignored. See
            `LaplacianEigenmaps.fit`.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        X, self.classes_, codes = validate_labelled_rows(self, X, y, encode_partial_classes)
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        Y[codes < 0] = np.nan
        self._learn(X, Y, affinity)
        largest = self._values(X).argmax(axis=1)
        self.transduction_ = self.classes_[np.where(codes < 0, largest, codes)]
        task.end()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f for every class, shape (n, c); for two classes, f of the second, shape (n,)."""
        check_is_fitted(self, "intercept_")
        values = self._values(validate_rows(self, X, reset=False))
        return values[:, 1] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the largest f, for every row."""
        check_is_fitted(self, "intercept_")
        return self.classes_[self._values(validate_rows(self, X, reset=False)).argmax(axis=1)]


class LapRLSRegressor(MultiOutputMixin, RegressorMixin, LapRLS):
    """Laplacian Regularized Least Squares for real-valued targets y_i; see `LapRLSClassifier`.

    Parameters
    ----------
    gamma_A, gamma_I, kernel, n_neighbors, search
        See `LapRLSClassifier`.

    Attributes
    ----------
    coef_, dual_coef_, intercept_
        As in `LapRLSClassifier`, for every target: w', alpha and b, of shape (q, p), (n, q) and
        (q,).
    X_fit_, kernel_, gamma_I_, n_features_in_, feature_names_in_, search_
        See `LapRLSClassifier`.

    See Also
    --------
    LapRLSClassifier, DiscriminativeProjectionsRegressor

    Notes
    -----
    NaN marks rows without a target; a row that lacks one of several targets counts as having none.
    Standardize the features first unless their units are comparable.

    Cost: that of `LapRLSClassifier`.

    References
    ----------
    See `LapRLSClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LapRLSRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> few = y.copy()
    >>> few[100:] = float("nan")
    >>> LapRLSRegressor().fit(scale(X), few).score(scale(X)[100:], y[100:]) > 0.3
    True
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> LapRLSRegressor:
        """Learn the functions; see `LapRLSClassifier.fit`.

        y of shape (n,) or (n, q) is NaN where unknown.
        """
        task = FitTask(self, X, y, n_iterations=0)
        X, y = validate_partial_target_rows(self, X, y)
        self._learn(X, y.reshape(len(y), -1), affinity)
        self._one_target = y.ndim == 1
        task.end()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for every row, shape (n,) or (n, q)."""
        check_is_fitted(self, "intercept_")
        values = self._values(validate_rows(self, X, reset=False))
        return values.ravel() if self._one_target else values
