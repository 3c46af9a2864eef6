"""Discriminative Projections (Wang and Mahadevan): samples and their labels, partly known, mapped
into one space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import centre, dense_float64, relative_to, require_memory
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    has_target,
    require_two_classes,
    validate_affinity,
    validate_partial_target_rows,
    validate_partly_labelled_rows,
    validate_rows,
)
from ..graphs import heat_kernel, laplacian, union
from ..linalg import lstsq, pinv, svd
from ..neighbors import nearest, searcher
from ..scatter import RANK_TOLERANCE, group_means, row_space, scatter, second_moment, total_scatter
from ..spectral import ZERO, SpectralResult, ratio_trace
from .base import LinearEmbedding, SparseRowsMixin, best_setting, inner_folds

# Rows and labels in one space: the matrices of Discriminative Projections, and the label that is
# nearest to a row.

# singular values below are what rounding leaves of a mean that cancels, also far from the origin
SEEN = 1e-8

# A pencil over v = (f; h): A + C, B + C, the basis H of the label maps g = H h, and the eigenvalues
# of those left out.


def class_pencil(X: Any, C: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 2.4, X relative to the mean of its labelled rows.

    g absorbs the origin, and at this one B separates: sum_ik (f'x_i - g_k)^2 = c sum_i (f'x_i)^2 +
    l sum_k g_k^2.
    """
    labelled = codes >= 0
    counts = np.bincount(codes[labelled]).astype(np.float64)
    c, n_labelled = len(counts), counts.sum()
    T = total_scatter(X, labelled.astype(np.float64))
    near_zero = X.astype(np.float64) if issparse(X) else centre(X)
    means = dense_float64(group_means(near_zero[labelled], codes[labelled]))
    means -= counts @ means / n_labelled
    H, constant = _informative_labels(means / _nonzero(np.sqrt(np.diag(T) / n_labelled)), counts)
    Q = -(means.T * counts) @ H
    A_plus_C = np.block([[T + C, Q], [Q.T, (H.T * counts) @ H]])
    return (
        A_plus_C,
        block_diag(c * T + C, n_labelled * np.eye(H.shape[1])),
        H,
        constant / n_labelled,
    )


def _informative_labels(means: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a basis (c, r) of the label maps g that depend on the rows, and l lambda for each of
    the c - r others.

    The others solve the problem with f = 0. That takes classes with equally many labelled rows, l
    lambda of them, whose means (c, p; in units of the features, about the mean of all) weighted by
    g cancel: g = 1 when the classes are balanced. Solutions are orthogonal in B + C, so that all
    others have g in the complement.
    """
    kept, constant = [], []
    for count in np.unique(counts):
        peers = np.flatnonzero(counts == count)
        seen, unseen = _split(means[peers])
        kept.append(np.eye(len(counts))[:, peers] @ seen)
        constant += [count] * unseen.shape[1]
    return np.hstack(kept), np.array(constant)


def number_pencil(X: Any, C: np.ndarray, Y: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 3.3, Z L^ Z' and Z D^ Z': nothing is centred.

    Labels are written in an orthonormal basis of the columns of Y. Of these, directions orthogonal
    to every feature solve the problem with f = 0 and lambda = 1; they are left out, and what
    remains is orthogonal to them.
    """
    labelled = has_target(Y)
    Y = Y[labelled]
    unit = _nonzero(np.linalg.norm(Y, axis=0))
    U, s, Vt = svd(Y / unit, full_matrices=False)
    r = int(np.sum(s > RANK_TOLERANCE * s[0]))
    G = second_moment(X, labelled.astype(np.float64))
    K = X[labelled].T @ U[:, :r]
    seen, unseen = _split((K / _nonzero(np.sqrt(np.diag(G)))[:, None]).T)
    one, Q = np.eye(seen.shape[1]), -K @ seen
    A_plus_C = np.block([[G + C, Q], [Q.T, one]])
    B_plus_C = block_diag(second_moment(X, D), one)
    return A_plus_C, B_plus_C, (Vt[:r].T / s[:r] / unit[:, None]) @ seen, np.ones(unseen.shape[1])


def _split(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal bases of the g with K'g other than 0 and of those with K'g = 0; K has
    entries of about 1.
    """
    U, s, _ = svd(K, full_matrices=K.shape[0] > K.shape[1])
    rank = int(np.sum(s > SEEN))
    return U[:, :rank], U[:, rank:]


def _nonzero(unit: np.ndarray) -> np.ndarray:
    """Return units to divide by: 1 for what does not vary."""
    return np.where(unit > 0, unit, 1.0)


def nearest_values(F: np.ndarray, g: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return for every row of F (n, m) the y (q,) whose label g'y is nearest, each direction in
    units of its cost.

    A cost of 0 is taken for 1e-10 of the largest; of several y the shortest is returned.
    """
    unit = np.sqrt(np.maximum(cost, max(ZERO * cost.max(), np.finfo(float).tiny)))
    return (F / unit) @ pinv(g.T / unit[:, None]).T


# The weight of the graph in Discriminative Projections, chosen by labels that are hidden in turn.

PATH = (1.0, 3.0, 1 / 3, 10.0, 0.1, 30.0, 1 / 30)  # in the order of preference
Solution = tuple[
    SpectralResult, np.ndarray, np.ndarray, np.ndarray
]  # result, f, g, eigenvalues left out


def mu_path(
    solve: Callable[[np.ndarray, float], Solution], X: Any, y: np.ndarray, unit: float
) -> tuple[float, dict[float, np.ndarray] | None]:
    """Return the best mu, and the scores of every mu on five folds of the labelled rows; None where
    there are no folds.

    The path is `unit` times `PATH`, the unit first: of those within one standard error of the best,
    the first is taken. In a fold with fewer labels mu is smaller, as A is.
    """
    labelled = has_target(y) if y.ndim == 2 else y >= 0
    scores = []
    for _, test in inner_folds(X, y if y.ndim == 1 else np.where(labelled, 0, -1)):
        few = y.copy()
        few[test] = np.nan if y.ndim == 2 else -1
        share = 1 - len(test) / labelled.sum()
        score = _r2 if y.ndim == 2 else _accuracy
        scores.append(
            [score(X, y, few, test, *solve(few, share * unit * factor)[:3]) for factor in PATH]
        )
    if len(scores) < 2:
        return unit, None
    by_mu = np.transpose(scores)
    return unit * PATH[best_setting(by_mu)], {
        unit * factor: row for factor, row in zip(PATH, by_mu, strict=True)
    }


def _accuracy(
    X: Any,
    y: np.ndarray,
    few: np.ndarray,
    test: np.ndarray,
    result: SpectralResult,
    f: np.ndarray,
    g: np.ndarray,
) -> float:
    """Return the share of hidden labels that are the nearest to their rows; g is relative to the
    mean of the others.
    """
    mean = np.asarray(X[few >= 0].mean(axis=0, dtype=np.float64)).ravel()
    distances = euclidean_distances(X[test] @ f - mean @ f, g)
    return float(np.mean(distances.argmin(axis=1) == y[test]))


def _r2(
    X: Any,
    y: np.ndarray,
    few: np.ndarray,
    test: np.ndarray,
    result: SpectralResult,
    f: np.ndarray,
    g: np.ndarray,
) -> float:
    """Return 1 - the squared error of the hidden values, relative to all; shrunk as by the
    regressor.
    """
    labelled = has_target(few)
    shrinkage = lstsq(nearest_values(X[labelled] @ f, g, result.values), y[labelled])
    error = y[test] - nearest_values(X[test] @ f, g, result.values) @ shrinkage
    return float(1 - np.mean(error**2) / np.mean((y[has_target(y)]) ** 2))


SHARE = {"classes": 1.0, "continuous": 0.1}  # the paper's mu, in units of l / s
FIRST = {"classes": 3.0, "continuous": 0.1}  # where the path of mu="auto" begins


class DiscriminativeProjections(LinearEmbedding):
    """Discriminative Projections: map rows near their label, far from others, and preserve a k-NN
    graph.

    A map f takes rows, a map g takes labels into one space of any dimension m. With l labelled rows
    x_i among all n, their labels y_i as unit vectors s_k of R^c, and W the union k-NN graph
    weighted by the heat kernel `exp(-d^2 / t)`, t the mean squared length of the listed edges, f
    and g minimize

        ( sum_(i<=l) ||f'x_i - g'y_i||^2  +  mu sum_ij w_ij ||f'x_i - f'x_j||^2 )
        / sum_(i<=l) sum_(k: s_k != y_i) ||f'x_i - g's_k||^2                          (sec. 2.2)

    as the paper solves it: the smallest eigenvalues of (A + C) v = lambda (B + C) v over v = (f;
    g), V'(B + C)V = I, with A, B the squared distances of rows to their own and to all labels and C
    = mu X'LX. Only about c - 1 eigenvalues are small, and only these directions separate classes;
    the others lie about 1/c, ordered by smoothness alone.

    With `target="continuous"` the labels are numbers (sec. 3), y_i in R^q: the numerator alone is
    minimized, subject to f'X'DXf + g'Y'Yg = I with D = diag(W 1), so that rows of similar values
    are near each other.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None takes c - 1 for classes and q for numbers.
    target : {"classes", "continuous"}, default="classes"
        The type of y.
    mu : float, "auto" or None, default=None
        Weight of the graph, 0 or more. None is the paper's rule, l / s for classes and 0.1 l / s
        for numbers, s the sum of W. "auto" hides a fifth of the labels at a time, tries 3 l / s
        (numbers: 0.1 l / s) and 1/30 to 30 times that, and takes, of those with which the hidden
        labels are predicted best by the nearest label, within one standard error, the nearest to 3
        l / s; and 3 l / s where no class has two labelled rows. Larger preserves neighbours,
        smaller separates classes. For mu -> infinity numbers give the directions of LPP (after
        those in which X f vanishes), classes do not: on a connected graph, the first c directions
        then map all rows to one point.
    n_neighbors : int, default=10
        k of the graph.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        f': rows, the smallest eigenvalue first. Their lengths differ, as V'(B + C)V = I makes them.
    label_components_ : ndarray of shape (m, c) or (m, q)
        g'.
    label_prototypes_ : ndarray of shape (c, m), for classes
        Every label in the coordinates of `transform`.
    classes_ : ndarray of shape (c,), for classes
        Sorted.
    eigenvalues_ : ndarray of shape (m,)
        Ascending. Classes: in [0, 1], 1/c is as good as no label. Numbers: 0 and more.
    constant_eigenvalues_ : ndarray
        Eigenvalues of the directions that were left out because X f is constant in them: for c
        classes with equally many labelled rows, at least 1/c (f = 0, g = 1).
    mu_ : float
        The weight in use.
    mu_scores_ : dict of float to ndarray, or None
        `mu="auto"`: for every mu, the accuracy (numbers: R^2) on the hidden labels of every fold;
        None where there were too few labels to hide some.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues: tr V'(A + C)V.
    rank_ : int
        Dimension in which the problem was solved: the rank of B + C, less the directions left out.
    search_, search_recall_
        See `LDE`.

    Warns
    -----
    UserWarning
        If fewer than n_components directions exist.

    See Also
    --------
    DiscriminativeProjectionsClassifier : Predicts classes by this map.
    DiscriminativeProjectionsRegressor : Predicts numbers by this map.
    LapRLSClassifier : Labels rows more accurately.

    Notes
    -----
    Where B + C vanishes, A + C does as well; that null space is left out, which a ridge would put
    first.

    Classes: the result does not depend on the origin of X, which g absorbs. Numbers: it does, there
    is no intercept. Centre both X and y or neither (the paper); with one of them centred the map is
    useless. With one target, rows whose values are nearer have nearer labels `g'y` (sec. 3.2); with
    several this order is kept only along a line.

    The scale of the features decides which rows are near: standardize first unless the units are
    comparable.

    `affinity` belongs to the rows it was made for: cross-validation cannot subset it.

    Cost: n^2 pairs of distances, O(n k p + n p^2 + (p + c)^3) after them, O(n k + (p + c)^2)
    memory. For p > n the problem is solved in the span of the rows, O(n^2 p), without a p x p
    matrix.

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
        mu: float | str | None = None,
        n_neighbors: int = 10,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.target = target
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.search = search

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjections:
        """Learn both maps.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal, with and without label, in any order.
        y : array of shape (n,), or (n, q) for numbers
            Classes: at least two; -1, None or NaN for unlabelled rows (the string "-1" is a class).
            Numbers: NaN for unlabelled rows; a row that lacks one of several targets counts as
            unlabelled.
        affinity : array or sparse matrix of shape (n, n), default=None
            Replaces W: symmetric, not negative; the diagonal is ignored.

        Returns
        -------
        self
        """
        check_choice(self.target, "target", SHARE)
        discrete = self.target == "classes"
        if discrete:
            X, classes, y = validate_partly_labelled_rows(self, X, y)
            require_two_classes(classes)
            labelled, n_labels = y >= 0, len(classes)
        else:
            X, y = validate_partial_target_rows(self, X, y)
            y = y.reshape(len(y), -1)
            labelled, n_labels = has_target(y), y.shape[1]
        n, p = X.shape
        m = min(n_labels - discrete, p) if self.n_components is None else self.n_components
        m = check_integer(m, "n_components", 1, p)
        k = check_integer(self.n_neighbors, "n_neighbors", 1)
        mu: Any = self.mu if self.mu in (None, "auto") else check_number(self.mu, "mu", 0)

        search = searcher(self.search, n)
        rows = row_space(X, centred=discrete)
        Z = rows.coordinates
        r, what = Z.shape[1], f"The eigenproblem of {Z.shape[1]} directions and {n_labels} labels"
        require_memory(8 * 8 * (r + n_labels) ** 2, what, "reduce the features or the classes")
        W = (
            union(heat_kernel(nearest(Z, k, search)))
            if affinity is None
            else validate_affinity(affinity, n)
        )
        S_graph, D = scatter(Z, laplacian(W)), W.sum(axis=1)

        def solve(y: np.ndarray, mu: float) -> Solution:
            pencil = (
                class_pencil(Z, mu * S_graph, y)
                if discrete
                else number_pencil(Z, mu * S_graph, y, D)
            )
            A_plus_C, B_plus_C, H, constant = pencil
            result = ratio_trace(A_plus_C, B_plus_C, m)
            f, h = np.split(result.vectors, [r])
            return result, f, H @ h, constant

        scores = None
        if mu in (None, "auto"):
            if W.nnz == 0:
                raise ValueError(
                    "affinity has no edge, so mu cannot be chosen: set mu=0 to learn from "
                    "labels alone."
                )
            unit = labelled.sum() / float(W.sum())
            mu = SHARE[self.target] * unit
            if self.mu == "auto":
                mu, scores = mu_path(solve, Z, y, FIRST[self.target] * unit)
        result, f, g, constant = solve(y, mu)
        result.warn()

        components, g = rows.back_project_pairs(f, g)
        if discrete:  # so far relative to the mean of the labelled rows
            g += components @ np.asarray(X[labelled].mean(axis=0, dtype=np.float64))[:, None]
            self.classes_, self.label_prototypes_ = classes, g.T.astype(X.dtype, copy=False)
        self.components_ = components.astype(X.dtype, copy=False)
        self.label_components_ = g.astype(X.dtype, copy=False)
        self.eigenvalues_, self.constant_eigenvalues_ = result.values, constant
        self.mu_, self.mu_scores_ = float(mu), scores
        self.n_components_ = self.components_.shape[0]
        self.objective_ = result.objective
        self.rank_ = result.rank
        self.search_, self.search_recall_ = search.name, search.recall
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.target == "continuous"
        return tags


# Predictions of Discriminative Projections: the class, or the value, whose label is nearest in the
# common space.


class DiscriminativeProjectionsClassifier(ClassifierMixin, SparseRowsMixin, BaseEstimator):
    """Classify by the nearest label in the space that `DiscriminativeProjections` makes for rows
    and labels.

    It learns from labelled and unlabelled rows. There is no `predict_proba`: the criterion defines
    distances to labels, but no scale on which they would be probabilities.

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

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsClassifier:
        """Learn the maps of rows and labels; see `DiscriminativeProjections.fit` with
        `target="classes"`.
        """
        X, self.classes_, codes = validate_partly_labelled_rows(self, X, y)
        self.projections_ = _cloned(self.projections, "classes").fit(X, y, affinity=affinity)
        self.transduction_ = self.classes_[
            np.where(codes < 0, self._distances(X).argmin(axis=1), codes)
        ]
        return self

    def _distances(self, X: Any) -> np.ndarray:
        """Return the squared distance of every row to every label, shape (n, c)."""
        return euclidean_distances(
            self.projections_.transform(X), self.projections_.label_prototypes_, squared=True
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Return minus the squared distance to every label, shape (n, c); of two labels the
        difference, shape (n,).
        """
        check_is_fitted(self, "projections_")
        decision = -self._distances(validate_rows(self, X, reset=False))
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    def predict(self, X: Any) -> np.ndarray:
        """Return the class whose label is nearest, for every row."""
        check_is_fitted(self, "projections_")
        return self.classes_[self._distances(validate_rows(self, X, reset=False)).argmin(axis=1)]


class DiscriminativeProjectionsRegressor(RegressorMixin, SparseRowsMixin, BaseEstimator):
    """Predict the value whose label is nearest to the row in the common space of
    `DiscriminativeProjections`.

    That is least squares on the label map: the y that minimizes sum_j (f_j'x - g_j'y)^2 / lambda_j,
    since the cost of direction j is lambda_j and costs of two directions are uncorrelated, V'(A +
    C)V = diag(lambda). Where f'x predicts the value poorly, the nearest label overshoots (it takes
    all of f'x for signal); so it is multiplied by the number, for q targets the q x q matrix, that
    is best on the labelled rows.

    Parameters
    ----------
    projections : DiscriminativeProjections or None, default=None
        The maps, with `target="continuous"`; they are cloned. None takes the default ones.
    fit_intercept : bool, default=True
        Whether to learn relative to the means of the labelled rows and of their targets. False is
        the paper's method, whose maps are linear without an intercept. Centring makes sparse X
        dense.

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

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> DiscriminativeProjectionsRegressor:
        """Learn the maps of rows and values; see `DiscriminativeProjections.fit` with
        `target="continuous"`.
        """
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


def _cloned(
    projections: DiscriminativeProjections | None, target: str
) -> DiscriminativeProjections:
    if projections is None:
        return DiscriminativeProjections(target=target)
    if projections.target != target:
        raise ValueError(
            f"projections must have target={target!r} here, got {projections.target!r}."
        )
    return clone(projections)


def _nearest_values(projections: DiscriminativeProjections, X: Any) -> np.ndarray:
    return nearest_values(
        projections.transform(X), projections.label_components_.T, projections.eigenvalues_
    )


def _centred(X: Any, mean: np.ndarray) -> Any:
    """Return X relative to the mean, dense unless that is 0."""
    if not mean.any():
        return X
    if issparse(X):
        n, p = X.shape
        require_memory(8 * n * p, f"{n} centred rows of {p} features", "set fit_intercept=False")
    return relative_to(mean, X)
