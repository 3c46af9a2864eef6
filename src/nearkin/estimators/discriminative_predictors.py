"""What Discriminative Projections says about a row: the nearest label in the common space, or the value read off it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lstsq
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import dense_float64
from .._labels import encode_partial_labels, has_target
from .._memory import require_memory
from .._validation import validate_partial_target_rows, validate_rows
from ..spectral import ZERO
from .discriminative_projections import DiscriminativeProjections


class DiscriminativeProjectionsClassifier(ClassifierMixin, BaseEstimator):
    """Classify by the nearest label in the space that `DiscriminativeProjections` makes for rows and labels.

    It learns from rows with and without labels, and answers for both and for new ones. There is no `predict_proba`: the
    criterion defines distances to labels, but no scale on which they would be probabilities.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes c - 1 for c classes (at most p): the directions that tell classes apart.
    mu : float or None, default=None
        As for `DiscriminativeProjections`.
    n_neighbors : int, default=10
        k of the graph.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    transduction_ : ndarray of shape (n,)
        The label of every row of `fit`: the one it was given, else the predicted one.
    projections_ : DiscriminativeProjections
        The fitted maps.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Labels of -1 are missing ones, so that a class cannot be called -1 (the string "-1" can). Scale the features first.

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

    def __init__(self, n_components: int | None = None, *, mu: float | None = None, n_neighbors: int = 10) -> None:
        self.n_components = n_components
        self.mu = mu
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsClassifier:
        """Learn the maps of rows and labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows, with and without label.
        y : array of shape (n,)
            Class labels, at least two classes; the number -1, None or NaN for a row without.
        affinity : array or sparse matrix of shape (n, n), default=None
            The graph of the rows, as for `DiscriminativeProjections`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, MemoryError
            As `DiscriminativeProjections.fit`.
        """
        rows = validate_rows(self, X, reset=True)
        classes, codes = encode_partial_labels(y)
        m = max(1, min(len(classes) - 1, rows.shape[1])) if self.n_components is None else self.n_components
        projections = DiscriminativeProjections(m, mu=self.mu, n_neighbors=self.n_neighbors)
        self.projections_ = projections.fit(rows, y, affinity=affinity)
        self.classes_ = classes
        nearest = _distances(self.projections_, rows).argmin(axis=1)
        self.transduction_ = classes[np.where(codes < 0, nearest, codes)]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return minus the squared distance to every label, shape (n, c); of two labels the difference, shape (n,)."""
        check_is_fitted(self, "projections_")
        decision = -_distances(self.projections_, validate_rows(self, X, reset=False))
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    def predict(self, X: Any) -> np.ndarray:
        """Return the class whose label is nearest, for every row."""
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class DiscriminativeProjectionsRegressor(RegressorMixin, BaseEstimator):
    """Predict the value whose place in the common space of `DiscriminativeProjections` is nearest to that of the row.

    That is least squares on the label map: the y that minimizes sum_j (f_j'x - g_j'y)^2 / lambda_j, since the cost of
    direction j is lambda_j and costs of two directions are uncorrelated, V'(A + C)V = diag(lambda). Where f'x does not
    tell the value well, the nearest place overshoots (it takes all of f'x for signal); so it is multiplied by the
    number, for q targets the q x q matrix, that is best on the labelled rows.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes one for each target.
    mu : float or None, default=None
        As for `DiscriminativeProjections` with `target="continuous"`.
    n_neighbors : int, default=10
        k of the graph.
    fit_intercept : bool, default=True
        Whether to learn relative to the means of the labelled rows and of their targets. False is the paper's method,
        whose maps are linear without an intercept. Centring makes sparse X dense.

    Attributes
    ----------
    projections_ : DiscriminativeProjections
        The fitted maps, of the centred rows.
    shrinkage_ : ndarray of shape (q, q)
        What the value read off the label map is multiplied by.
    row_mean_ : ndarray of shape (p,)
        What was taken from X; 0 without intercept.
    target_mean_ : ndarray of shape (q,)
        What was taken from y; 0 without intercept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        mu: float | None = None,
        n_neighbors: int = 10,
        fit_intercept: bool = True,
    ) -> None:
        self.n_components = n_components
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsRegressor:
        """Learn the maps of rows and values.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows, with and without value.
        y : array of shape (n,) or (n, q)
            Real numbers; NaN for a row without. A row that lacks one of several targets counts as one without.
        affinity : array or sparse matrix of shape (n, n), default=None
            The graph of the rows, as for `DiscriminativeProjections`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            As `DiscriminativeProjections.fit`.
        MemoryError
            As there, or if sparse X, made dense by its centring, would not fit into the memory that is free.
        """
        X, y = validate_partial_target_rows(self, X, y)
        labelled = has_target(y)
        Y = y.reshape(len(y), -1)
        row_mean, target_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
        if self.fit_intercept:
            row_mean = np.asarray(X[labelled].mean(axis=0, dtype=np.float64))
            target_mean = Y[labelled].mean(axis=0)
        m = min(Y.shape[1], X.shape[1]) if self.n_components is None else self.n_components
        projections = DiscriminativeProjections(m, target="continuous", mu=self.mu, n_neighbors=self.n_neighbors)
        X, Y = _moved(X, row_mean), Y - target_mean
        projections.fit(X, Y, affinity=affinity)
        self.shrinkage_ = lstsq(_read_off(projections, X[labelled]), Y[labelled])[0]
        self.projections_, self.row_mean_, self.target_mean_ = projections, row_mean, target_mean
        self._one_target = y.ndim == 1
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of every row, shape (n,) or (n, q)."""
        check_is_fitted(self, "projections_")
        X = validate_rows(self, X, reset=False)
        values = _read_off(self.projections_, _moved(X, self.row_mean_)) @ self.shrinkage_ + self.target_mean_
        return values.ravel() if self._one_target else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _distances(projections: DiscriminativeProjections, X: Any) -> np.ndarray:
    """Return the squared distance of every row to every label, shape (n, c)."""
    return euclidean_distances(projections.transform(X), projections.label_prototypes_, squared=True)


def _read_off(projections: DiscriminativeProjections, X: Any) -> np.ndarray:
    """Return for every row the y (q,) whose place is nearest, each direction in units of its cost.

    A cost of 0 is taken for 1e-10 of the largest; of several y the shortest is returned.
    """
    cost = projections.eigenvalues_
    unit = np.sqrt(np.maximum(cost, max(ZERO * cost.max(), np.finfo(float).tiny)))
    return (projections.transform(X) / unit) @ np.linalg.pinv(projections.label_components_ / unit[:, None]).T


def _moved(X: Any, origin: np.ndarray) -> Any:
    """Return X relative to another origin, dense unless that is 0."""
    if not origin.any():
        return X
    if issparse(X):
        n, p = X.shape
        require_memory(8 * n * p, f"{n} centred rows of {p} features", "set fit_intercept=False")
    return (dense_float64(X) - origin).astype(X.dtype, copy=False)
