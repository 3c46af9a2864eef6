"""Predictions of Discriminative Projections: the class, or the value, whose label is nearest in the common space."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import relative_to
from .._captions import Estimator
from .._labels import has_target
from .._memory import require_memory
from .._validation import validate_partial_target_rows, validate_partly_labelled_rows, validate_rows
from ..linalg import lstsq
from ._label_space import nearest_values
from .base import SparseRowsMixin
from .discriminative_projections import DiscriminativeProjections


class DiscriminativeProjectionsClassifier(ClassifierMixin, SparseRowsMixin, Estimator):
    """Classify by the nearest label in the space that `DiscriminativeProjections` makes for rows and labels.

    It learns from labelled and unlabelled rows. There is no `predict_proba`: the criterion defines distances to labels,
    but no scale on which they would be probabilities.

    Parameters
    ----------
    projections : DiscriminativeProjections or None, default=None
        The maps; they are cloned. None takes `DiscriminativeProjections()`.

    Attributes
    ----------
    projections_ : DiscriminativeProjections
        Fitted.
    classes_ : ndarray of shape (c,)
    transduction_ : ndarray of shape (n,)
        The label of every row of `fit`: the given one, else the predicted one.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    DiscriminativeProjections : The map.
    TDLClassifier : A nonlinear embedding.
    LapRLSClassifier : Regression that is smooth along the graph.

    Notes
    -----
    -1, None and NaN mark unlabelled rows (the string "-1" is a class). Scale the features first.

    Cost: that of `DiscriminativeProjections`; O((p + c) m) for each new row.

    References
    ----------
    C. Wang, S. Mahadevan: Learning Locality-Preserving Discriminative Features. University of Massachusetts Amherst.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import DiscriminativeProjectionsClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> few = y.copy()
    >>> few[10:50] = few[70:120] = few[140:] = -1
    >>> model = DiscriminativeProjectionsClassifier().fit(scale(X), few)
    >>> float((model.transduction_ == y).mean()) > 0.9
    True
    """

    def __init__(self, projections: DiscriminativeProjections | None = None) -> None:
        self.projections = projections

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsClassifier:
        """Learn the maps of rows and labels; see `DiscriminativeProjections.fit` with `target="classes"`."""
        X, self.classes_, codes = validate_partly_labelled_rows(self, X, y)
        self.projections_ = _cloned(self.projections, "classes").fit(X, y, affinity=affinity)
        self.transduction_ = self.classes_[np.where(codes < 0, self._distances(X).argmin(axis=1), codes)]
        return self

    def _phrases(self) -> list[str]:
        return self.projections_._phrases()

    def _distances(self, X: Any) -> np.ndarray:
        """Return the squared distance of every row to every label, shape (n, c)."""
        return euclidean_distances(self.projections_.transform(X), self.projections_.label_prototypes_, squared=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return minus the squared distance to every label, shape (n, c); of two labels the difference, shape (n,)."""
        check_is_fitted(self, "projections_")
        decision = -self._distances(validate_rows(self, X, reset=False))
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    def predict(self, X: Any) -> np.ndarray:
        """Return the class whose label is nearest, for every row."""
        check_is_fitted(self, "projections_")
        return self.classes_[self._distances(validate_rows(self, X, reset=False)).argmin(axis=1)]


class DiscriminativeProjectionsRegressor(RegressorMixin, SparseRowsMixin, Estimator):
    """Predict the value whose label is nearest to the row in the common space of `DiscriminativeProjections`.

    That is least squares on the label map: the y that minimizes sum_j (f_j'x - g_j'y)^2 / lambda_j, since the cost of
    direction j is lambda_j and costs of two directions are uncorrelated, V'(A + C)V = diag(lambda). Where f'x predicts
    the value poorly, the nearest label overshoots (it takes all of f'x for signal); so it is multiplied by the number,
    for q targets the q x q matrix, that is best on the labelled rows.

    Parameters
    ----------
    projections : DiscriminativeProjections or None, default=None
        The maps, with `target="continuous"`; they are cloned. None takes the default ones.
    fit_intercept : bool, default=True
        Whether to learn relative to the means of the labelled rows and of their targets. False is the paper's method,
        whose maps are linear without an intercept. Centring makes sparse X dense.

    Attributes
    ----------
    projections_ : DiscriminativeProjections
        Fitted to the centred rows.
    shrinkage_ : ndarray of shape (q, q)
        What the value of the nearest label is multiplied by.
    row_mean_ : ndarray of shape (p,)
        What was subtracted from X; 0 without intercept.
    target_mean_ : ndarray of shape (q,)
        What was subtracted from y; 0 without intercept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    DiscriminativeProjections : The map.
    LapRLSRegressor : Regression that is smooth along the graph.

    Notes
    -----
    Scale the features first.

    Cost: that of `DiscriminativeProjections`; O((p + q) m) for each new row.

    References
    ----------
    C. Wang, S. Mahadevan: Learning Locality-Preserving Discriminative Features. University of Massachusetts Amherst.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nearkin import DiscriminativeProjectionsRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> few = y.copy()
    >>> few[100:] = float("nan")
    >>> model = DiscriminativeProjectionsRegressor().fit(X, few)
    >>> model.score(X[100:], y[100:]) > 0.4
    True
    """

    def __init__(self, projections: DiscriminativeProjections | None = None, *, fit_intercept: bool = True) -> None:
        self.projections = projections
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsRegressor:
        """Learn the maps of rows and values; see `DiscriminativeProjections.fit` with `target="continuous"`."""
        X, y = validate_partial_target_rows(self, X, y)
        labelled, Y = has_target(y), y.reshape(len(y), -1)
        row_mean = self.fit_intercept * np.asarray(X[labelled].mean(axis=0, dtype=np.float64))
        target_mean = self.fit_intercept * Y[labelled].mean(axis=0)
        X, Y = _centred(X, row_mean), Y - target_mean
        projections = _cloned(self.projections, "continuous").fit(X, Y, affinity=affinity)
        self.shrinkage_ = lstsq(_nearest_values(projections, X[labelled]), Y[labelled])
        self.projections_, self.row_mean_, self.target_mean_ = projections, row_mean, target_mean
        self._one_target = y.ndim == 1
        return self

    def _phrases(self) -> list[str]:
        return self.projections_._phrases()

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of every row, shape (n,) or (n, q)."""
        check_is_fitted(self, "projections_")
        X = _centred(validate_rows(self, X, reset=False), self.row_mean_)
        values = _nearest_values(self.projections_, X) @ self.shrinkage_ + self.target_mean_
        return values.ravel() if self._one_target else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _cloned(projections: DiscriminativeProjections | None, target: str) -> DiscriminativeProjections:
    if projections is None:
        return DiscriminativeProjections(target=target)
    if projections.target != target:
        raise ValueError(f"projections must have target={target!r} here, got {projections.target!r}.")
    return clone(projections)


def _nearest_values(projections: DiscriminativeProjections, X: Any) -> np.ndarray:
    return nearest_values(projections.transform(X), projections.label_components_.T, projections.eigenvalues_)


def _centred(X: Any, mean: np.ndarray) -> Any:
    """Return X relative to the mean, dense unless that is 0."""
    if not mean.any():
        return X
    if issparse(X):
        n, p = X.shape
        require_memory(8 * n * p, f"{n} centred rows of {p} features", "set fit_intercept=False")
    return relative_to(mean, X)
