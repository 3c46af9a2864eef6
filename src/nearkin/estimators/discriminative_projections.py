"""Discriminative Projections (Wang and Mahadevan): maps of rows and labels into one space."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import relative_to
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import encode_partial_classes
from .._memory import require_memory
from .._validation import check_bool, check_choice, check_estimator, check_integer, check_number
from ..graphs import laplacian
from ..linalg import RANK_TOLERANCE, lstsq, row_signs, svd
from ..scatter import group_means, row_space, scatter, second_moment, total_scatter
from ..spectral import ratio_trace
from .base import LinearEmbedding, SparseRowsMixin
from .graph_penalty import affinity_graph
from .validation import (
    has_target,
    validate_labelled_rows,
    validate_partial_target_rows,
    validate_rows,
)

SHARE = {"classes": 1.0, "continuous": 0.1}  # the paper's mu, in units of l / s
# Smaller singular values are rounding errors of means that cancel, even far from the origin.
SEEN = 1e-8


class DiscriminativeProjections(CallbackSupportMixin, LinearEmbedding):
    """Discriminative Projections: map rows close to their labels and preserve a k-NN graph.

    A map f takes rows and a map g takes labels into one space of any dimension m. Let x_i be the l
    labelled rows among all n, y_i their labels as unit vectors s_k of R^c, and W the union k-NN
    graph with heat-kernel weights `exp(-d^2 / t)`, where t is the mean squared length of the edges.
    f and g minimize

        ( sum_(i<=l) ||f'x_i - g'y_i||^2  +  mu sum_ij w_ij ||f'x_i - f'x_j||^2 )
        / sum_(i<=l) sum_(k: s_k != y_i) ||f'x_i - g's_k||^2                          (sec. 2.2)

    as the paper solves it, by the smallest eigenvalues of (A + C) v = lambda (B + C) v over v = (f;
    g), V'(B + C)V = I. A and B are the squared distances of rows to their own and to all labels,
    and C = mu X'LX. Only about c - 1 eigenvalues are small, and only these directions separate
    classes. The others lie around 1/c and are ordered by smoothness alone.

    With `target="continuous"` the labels are real numbers (sec. 3), y_i in R^q. The numerator alone
    is minimized, subject to f'X'DXf + g'Y'Yg = I with D = diag(W 1), so that rows of similar values
    are close.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None takes c - 1 for classes and q for real-valued targets.
    target : {"classes", "continuous"}, default="classes"
        The type of y.
    mu : float or None, default=None
        Weight of the graph, at least 0. None is the paper's rule, l / s for classes and 0.1 l / s
        for real-valued targets, where s is the sum of W. A larger mu preserves neighbours better, a
        smaller one separates classes better. For mu -> infinity, real-valued targets give the
        directions of LPP (after those in which X f vanishes). Classes do not: on a connected graph,
        the first c directions then map all rows to one point.
    n_neighbors : int, default=10
        k of the graph.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        f' as rows, the smallest eigenvalue first. Their lengths follow from V'(B + C)V = I.
    label_components_ : ndarray of shape (m, c) or (m, q)
        g'.
    label_prototypes_ : ndarray of shape (c, m), for classes
        The labels in the coordinates of `transform`.
    classes_ : ndarray of shape (c,), for classes
        Sorted.
    eigenvalues_ : ndarray of shape (m,)
        Ascending. Classes: in [0, 1]; a direction with eigenvalue 1/c is no better than one found
        without labels. Real-valued targets: at least 0.
    constant_eigenvalues_ : ndarray
        Eigenvalues of the directions that were left out because X f is constant in them. For c
        classes with equally many labelled rows, they include 1/c (f = 0, g = 1).
    mu_ : float
        The weight used.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues: tr V'(A + C)V.
    rank_ : int
        Dimension of the space in which the problem was solved: the rank of B + C, minus the
        directions left out.
    search_
        See `LDE`.

    Warns
    -----
    UserWarning
        If fewer than n_components directions exist.

    See Also
    --------
    DiscriminativeProjectionsClassifier : Predicts classes with this map.
    DiscriminativeProjectionsRegressor : Predicts real-valued targets with this map.
    LapRLSClassifier : Labels rows more accurately.

    Notes
    -----
    A + C vanishes in the null space of B + C, too. This space is left out; a ridge would put it
    first.

    Classes: the result does not depend on the origin of X, which g absorbs. Real-valued targets: it
    does, since there is no intercept. Centre both X and y, or neither (the paper); with one of them
    centred the map is useless. With one target, rows whose values are closer have closer labels
    `g'y` (sec. 3.2); with several, this order is only preserved along a line.

    The scale of the features decides which rows are near: standardize first unless the units are
    comparable.

    Cross-validation cannot subset `affinity`.

    Cost: n^2 pairwise distances, then O(n k p + n p^2 + (p + c)^3); O(n k + (p + c)^2) memory. For
    p > n the problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    C. Wang, S. Mahadevan: Learning Locality-Preserving Discriminative Features. University of
    Massachusetts Amherst.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import DiscriminativeProjections
    >>> X, y = load_wine(return_X_y=True)
    >>> y[::2] = -1  # unlabelled
    >>> DiscriminativeProjections(n_components=2).fit_transform(scale(X), y).shape
    (178, 2)
    """

    _needs_labels = True
    compared_as: ClassVar[dict] = {
        "DP": {
            "settings": lambda p: [{"n_components": min(p, 50)}],
            "unlabelled": True,
            "semi_supervised": True,
        }
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        target: str = "classes",
        mu: float | None = None,
        n_neighbors: int = 10,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.target = target
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjections:
        """Learn both maps.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal, with and without labels, in any order.
        y : array of shape (n,), or (n, q) for real-valued targets
            Classes: at least two; -1, None or NaN for unlabelled rows (the string "-1" is a class).
            Real-valued targets: NaN for unlabelled rows; a row that lacks one of several targets
            counts as unlabelled.
        affinity : array or sparse matrix of shape (n, n), default=None
            Replaces W: symmetric and nonnegative; the diagonal is ignored. See
            `LaplacianEigenmaps.fit`.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        check_choice(self.target, "target", SHARE)
        discrete = self.target == "classes"
        if discrete:
            X, classes, y = validate_labelled_rows(self, X, y, encode_partial_classes)
            labelled = y >= 0
            n_labels = len(classes)
        else:
            X, y = validate_partial_target_rows(self, X, y)
            y = y.reshape(len(y), -1)
            labelled = has_target(y)
            n_labels = y.shape[1]
        p = X.shape[1]
        m = min(n_labels - discrete, p) if self.n_components is None else self.n_components
        m = check_integer(m, "n_components", 1, p)
        mu = None if self.mu is None else check_number(self.mu, "mu", 0)

        rows = row_space(X, centred=discrete)
        Z = rows.coordinates
        r = Z.shape[1]
        what = f"The eigenproblem of {r} directions and {n_labels} labels"
        require_memory(8 * 8 * (r + n_labels) ** 2, what, "reduce the features or the classes")
        W, search = affinity_graph(self, Z, affinity)
        S = scatter(Z, laplacian(W))
        D = W.sum(axis=1)
        if mu is None:
            if W.nnz == 0:
                raise ValueError(
                    "affinity has no edge, so mu cannot be chosen: set mu=0 to learn from labels "
                    "alone."
                )
            mu = SHARE[self.target] * (float(labelled.sum()) / float(W.sum()))
        pencil = class_pencil(Z, mu * S, y) if discrete else number_pencil(Z, mu * S, y, D)
        A_plus_C, B_plus_C, H, constant = pencil
        result = ratio_trace(A_plus_C, B_plus_C, m)
        result.warn()
        f, h = np.split(result.vectors, [r])
        A = rows.to_features(f).T
        signs = row_signs(A)  # the largest entry of each row of f' becomes positive
        components, g = np.multiply(A, signs, order="C"), (H @ h * signs.T).T
        if discrete:  # relative to the mean of the labelled rows until here
            g += components @ X[labelled].mean(axis=0, dtype=np.float64)[:, None]
            self.classes_ = classes
            self.label_prototypes_ = g.T.astype(X.dtype, copy=False)
        self.components_ = components.astype(X.dtype, copy=False)
        self.label_components_ = g.astype(X.dtype, copy=False)
        self.eigenvalues_ = result.values
        self.constant_eigenvalues_ = constant
        self.mu_ = mu
        self.n_components_ = len(components)
        self.objective_ = result.objective
        self.rank_ = result.rank
        self.search_ = search.name
        task.end()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.target == "continuous"
        return tags


# Each of the next two functions returns the matrices A + C and B + C over v = (f; h), the basis H
# of the label maps g = H h, and the eigenvalues of the label maps that are left out.


def class_pencil(X: Any, C: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 2.4, with X relative to the mean of its labelled rows.

    g absorbs the origin, and about this mean B is separable: sum_ik (f'x_i - g_k)^2 = c sum_i
    (f'x_i)^2 + l sum_k g_k^2.

    Label maps g that do not depend on the rows solve the problem with f = 0 and are left out. They
    exist if there are classes with equally many labelled rows, l lambda of them, whose means
    weighted by g cancel: g = 1 if the classes are balanced. Solutions are orthogonal in B + C, so
    all others have g in the complement.
    """
    labelled = codes >= 0
    counts = np.bincount(codes[labelled]).astype(np.float64)
    c = len(counts)
    n_labelled = counts.sum()
    T = total_scatter(X, labelled.astype(np.float64))
    means = group_means(X[labelled], codes[labelled])
    means -= counts @ means / n_labelled
    in_units = means / _nonzero(np.sqrt(np.diag(T) / n_labelled))
    kept = []
    constant = []
    for count in np.unique(counts):
        peers = np.flatnonzero(counts == count)
        seen, unseen = _split(in_units[peers])
        kept.append(np.eye(c)[:, peers] @ seen)
        constant += [count] * unseen.shape[1]
    H = np.hstack(kept)
    Q = -(means.T * counts) @ H
    A_plus_C = np.block([[T + C, Q], [Q.T, (H.T * counts) @ H]])
    B_plus_C = block_diag(c * T + C, n_labelled * np.eye(H.shape[1]))
    return A_plus_C, B_plus_C, H, np.array(constant) / n_labelled


def number_pencil(X: Any, C: np.ndarray, Y: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 3.3, Z L^ Z' and Z D^ Z'. Nothing is centred.

    Labels are written in an orthonormal basis of the columns of Y. The directions of this basis
    that are orthogonal to every feature solve the problem with f = 0 and lambda = 1. They are left
    out, and all other solutions are orthogonal to them.
    """
    labelled = has_target(Y)
    Y = Y[labelled]
    unit = _nonzero(np.linalg.norm(Y, axis=0))
    U, s, Vt = svd(Y / unit, full_matrices=False)
    r = int(np.sum(s > RANK_TOLERANCE * s[0]))
    G = second_moment(X[labelled], np.ones(len(Y)))
    K = X[labelled].T @ U[:, :r]
    seen, unseen = _split((K / _nonzero(np.sqrt(np.diag(G)))[:, None]).T)
    one = np.eye(seen.shape[1])
    Q = -K @ seen
    A_plus_C = np.block([[G + C, Q], [Q.T, one]])
    B_plus_C = block_diag(second_moment(X, D), one)
    H = (Vt[:r].T / s[:r] / unit[:, None]) @ seen
    return A_plus_C, B_plus_C, H, np.ones(unseen.shape[1])


def _split(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal bases of the range of K and of the null space of K'.

    The entries of K are of the order of 1.
    """
    U, s, _ = svd(K, full_matrices=K.shape[0] > K.shape[1])
    rank = int(np.sum(s > SEEN))
    return U[:, :rank], U[:, rank:]


def _nonzero(unit: np.ndarray) -> np.ndarray:
    """Return divisors, with 1 in place of 0."""
    return np.where(unit > 0, unit, 1.0)


# Prediction of the class, or the value, whose label is nearest in the common space.


class DiscriminativeProjectionsClassifier(
    CallbackSupportMixin, ClassifierMixin, SparseRowsMixin, BaseEstimator
):
    """Predict the nearest label in the common space of `DiscriminativeProjections`.

    It learns from labelled and unlabelled rows. There is no `predict_proba`: the criterion defines
    distances to labels, but no scale on which they would be probabilities.

    Parameters
    ----------
    projections : DiscriminativeProjections or None, default=None
        The maps; cloned. None takes `DiscriminativeProjections()`.

    Attributes
    ----------
    projections_ : DiscriminativeProjections
        The fitted maps.
    classes_ : ndarray of shape (c,)
    transduction_ : ndarray of shape (n,)
        The label of every row of `fit`: the given one, or the predicted one.
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

    Cost: that of `DiscriminativeProjections`, plus O((p + c) m) for each new row.

    References
    ----------
    C. Wang, S. Mahadevan: Learning Locality-Preserving Discriminative Features. University of
    Massachusetts Amherst.

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

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsClassifier:
        """Learn the maps; see `DiscriminativeProjections.fit` with `target="classes"`."""
        task = FitTask(self, X, y, n_iterations=0)
        X, self.classes_, codes = validate_labelled_rows(self, X, y, encode_partial_classes)
        self.projections_ = _cloned(self.projections, "classes").fit(X, y, affinity=affinity)
        nearest_labels = self._distances(X).argmin(axis=1)
        self.transduction_ = self.classes_[np.where(codes < 0, nearest_labels, codes)]
        task.end()
        return self

    def _distances(self, X: Any) -> np.ndarray:
        """Return the squared distance of every row to every label, shape (n, c)."""
        return euclidean_distances(
            self.projections_.transform(X), self.projections_.label_prototypes_, squared=True
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Return minus the squared distance to every label, shape (n, c).

        For two classes, return the difference, shape (n,), positive for the second.
        """
        check_is_fitted(self, "projections_")
        decision = -self._distances(validate_rows(self, X, reset=False))
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    def predict(self, X: Any) -> np.ndarray:
        """Return the class whose label is nearest, for every row."""
        check_is_fitted(self, "projections_")
        return self.classes_[self._distances(validate_rows(self, X, reset=False)).argmin(axis=1)]


class DiscriminativeProjectionsRegressor(
    CallbackSupportMixin, MultiOutputMixin, RegressorMixin, SparseRowsMixin, BaseEstimator
):
    """Predict the value with the nearest label in the space of `DiscriminativeProjections`.

    This is least squares on the label map: the prediction y minimizes sum_j (f_j'x - g_j'y)^2 /
    lambda_j, since the cost of direction j is lambda_j and the costs of different directions are
    uncorrelated, V'(A + C)V = diag(lambda). Where f'x predicts the value poorly, the nearest label
    overshoots, since all of f'x is taken as signal. The prediction is therefore multiplied by the
    number (for q targets, the q x q matrix) that is best on the labelled rows.

    Parameters
    ----------
    projections : DiscriminativeProjections or None, default=None
        The maps, with `target="continuous"`; cloned. None takes the default ones.
    fit_intercept : bool, default=True
        Whether to centre X and the targets at the means of the labelled rows, which makes sparse X
        dense. False is the paper's method, whose maps are linear without an intercept.

    Attributes
    ----------
    projections_ : DiscriminativeProjections
        The maps, fitted to the centred rows.
    shrinkage_ : ndarray of shape (q, q)
        The factor of the nearest value.
    row_mean_ : ndarray of shape (p,)
        What was subtracted from X; 0 without an intercept.
    target_mean_ : ndarray of shape (q,)
        What was subtracted from y; 0 without an intercept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    DiscriminativeProjections : The map.
    LapRLSRegressor : Regression that is smooth along the graph.

    Notes
    -----
    Scale the features first.

    Cost: that of `DiscriminativeProjections`, plus O((p + q) m) for each new row.

    References
    ----------
    C. Wang, S. Mahadevan: Learning Locality-Preserving Discriminative Features. University of
    Massachusetts Amherst.

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
        self, projections: DiscriminativeProjections | None = None, *, fit_intercept: bool = True
    ) -> None:
        self.projections = projections
        self.fit_intercept = fit_intercept

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsRegressor:
        """Learn the maps; see `DiscriminativeProjections.fit` with `target="continuous"`."""
        check_bool(self.fit_intercept, "fit_intercept")
        task = FitTask(self, X, y, n_iterations=0)
        X, y = validate_partial_target_rows(self, X, y)
        labelled = has_target(y)
        Y = y.reshape(len(y), -1)
        row_mean = X[labelled].mean(axis=0, dtype=np.float64)
        self.row_mean_ = self.fit_intercept * row_mean
        self.target_mean_ = self.fit_intercept * Y[labelled].mean(axis=0)
        X = _centred(X, self.row_mean_)
        Y = Y - self.target_mean_
        self.projections_ = _cloned(self.projections, "continuous").fit(X, Y, affinity=affinity)
        self.shrinkage_ = lstsq(self._nearest_values(X[labelled]), Y[labelled])
        self._one_target = y.ndim == 1
        task.end()
        return self

    def _nearest_values(self, X: Any) -> np.ndarray:
        """Return the y whose label g'y is nearest to each row.

        Directions are weighted by their inverse cost; a cost of 0 is replaced by 1e-10 of the
        largest. Among several y, the shortest is returned.
        """
        maps = self.projections_
        cost = maps.eigenvalues_
        unit = np.sqrt(np.maximum(cost, max(RANK_TOLERANCE * cost.max(), np.finfo(float).tiny)))
        return lstsq(maps.label_components_ / unit[:, None], (maps.transform(X) / unit).T).T

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for every row, shape (n,) or (n, q)."""
        check_is_fitted(self, "projections_")
        X = _centred(validate_rows(self, X, reset=False), self.row_mean_)
        values = self._nearest_values(X) @ self.shrinkage_ + self.target_mean_
        return values.ravel() if self._one_target else values


def _cloned(
    projections: DiscriminativeProjections | None, target: str
) -> DiscriminativeProjections:
    if projections is None:
        return DiscriminativeProjections(target=target)
    check_estimator(projections, "projections", DiscriminativeProjections)
    if projections.target != target:
        raise ValueError(
            f"projections must have target={target!r} here, got {projections.target!r}."
        )
    return clone(projections)


def _centred(X: Any, mean: np.ndarray) -> Any:
    """Return X minus the mean, dense unless the mean is 0."""
    if not mean.any():
        return X
    if issparse(X):
        n, p = X.shape
        require_memory(8 * n * p, f"{n} centred rows of {p} features", "set fit_intercept=False")
    return relative_to(mean, X)
