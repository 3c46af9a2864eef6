"""Discriminative Projections (Wang and Mahadevan): samples and their labels, partly known, mapped into one space."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._captions import EIGENVALUES
from .._labels import has_target, require_two_classes
from .._memory import require_memory
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    validate_affinity,
    validate_partial_target_rows,
    validate_partly_labelled_rows,
)
from ..graphs import heat_kernel, laplacian, union
from ..neighbors import nearest, searcher
from ..scatter import scatter
from ..span import row_space
from ..spectral import ratio_trace
from ._label_space import class_pencil, number_pencil
from ._mu_path import Solution, mu_path
from .base import LinearEmbedding

SHARE = {"classes": 1.0, "continuous": 0.1}  # the paper's mu, in units of l / s
FIRST = {"classes": 3.0, "continuous": 0.1}  # where the path of mu="auto" begins


class DiscriminativeProjections(LinearEmbedding):
    """Discriminative Projections: map rows near their label, far from others, and preserve a k-NN graph.

    A map f takes rows, a map g takes labels into one space of any dimension m. With l labelled rows x_i among all n,
    their labels y_i as unit vectors s_k of R^c, and W the union k-NN graph weighted by the heat kernel
    `exp(-d^2 / t)`, t the mean squared length of the listed edges, f and g minimize

        ( sum_(i<=l) ||f'x_i - g'y_i||^2  +  mu sum_ij w_ij ||f'x_i - f'x_j||^2 )
        / sum_(i<=l) sum_(k: s_k != y_i) ||f'x_i - g's_k||^2                          (sec. 2.2)

    as the paper solves it: the smallest eigenvalues of (A + C) v = lambda (B + C) v over v = (f; g), V'(B + C)V = I,
    with A, B the squared distances of rows to their own and to all labels and C = mu X'LX. Only about c - 1 eigenvalues
    are small, and only these directions separate classes; the others lie about 1/c, ordered by smoothness alone.

    With `target="continuous"` the labels are numbers (sec. 3), y_i in R^q: the numerator alone is minimized, subject to
    f'X'DXf + g'Y'Yg = I with D = diag(W 1), so that rows of similar values are near each other.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None takes c - 1 for classes and q for numbers.
    target : {"classes", "continuous"}, default="classes"
        The type of y.
    mu : float, "auto" or None, default=None
        Weight of the graph, 0 or more. None is the paper's rule, l / s for classes and 0.1 l / s for numbers, s the sum
        of W. "auto" hides a fifth of the labels at a time, tries 3 l / s (numbers: 0.1 l / s) and 1/30 to 30 times
        that, and takes, of those with which the hidden labels are predicted best by the nearest label, within one
        standard error, the nearest to 3 l / s; and 3 l / s where no class has two labelled rows. Larger preserves
        neighbours, smaller separates classes. For mu -> infinity numbers give the directions of LPP (after those in
        which X f vanishes), classes do not: on a connected graph, the first c directions then map all rows to one
        point.
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
        Eigenvalues of the directions that were left out because X f is constant in them: for c classes with equally
        many labelled rows, at least 1/c (f = 0, g = 1).
    mu_ : float
        The weight in use.
    mu_scores_ : dict of float to ndarray, or None
        `mu="auto"`: for every mu, the accuracy (numbers: R^2) on the hidden labels of every fold; None where there were
        too few labels to hide some.
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
    Where B + C vanishes, A + C does as well; that null space is left out, which a ridge would put first.

    Classes: the result does not depend on the origin of X, which g absorbs. Numbers: it does, there is no intercept.
    Centre both X and y or neither (the paper); with one of them centred the map is useless. With one target, rows whose
    values are nearer have nearer labels `g'y` (sec. 3.2); with several this order is kept only along a line.

    The scale of the features decides which rows are near: standardize first unless the units are comparable.

    `affinity` belongs to the rows it was made for: cross-validation cannot subset it.

    Cost: n^2 pairs of distances, O(n k p + n p^2 + (p + c)^3) after them, O(n k + (p + c)^2) memory. For p > n the
    problem is solved in the span of the rows, O(n^2 p), without a p x p matrix.

    References
    ----------
    C. Wang, S. Mahadevan: Learning Locality-Preserving Discriminative Features. University of Massachusetts Amherst.

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
    _objective_phrase = EIGENVALUES
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
            Numbers: NaN for unlabelled rows; a row that lacks one of several targets counts as unlabelled.
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
        W = union(heat_kernel(nearest(Z, k, search))) if affinity is None else validate_affinity(affinity, n)
        S_graph, D = scatter(Z, laplacian(W)), W.sum(axis=1)

        def solve(y: np.ndarray, mu: float) -> Solution:
            pencil = class_pencil(Z, mu * S_graph, y) if discrete else number_pencil(Z, mu * S_graph, y, D)
            A_plus_C, B_plus_C, H, constant = pencil
            result = ratio_trace(A_plus_C, B_plus_C, m)
            f, h = np.split(result.vectors, [r])
            return result, f, H @ h, constant

        scores = None
        if mu in (None, "auto"):
            if W.nnz == 0:
                raise ValueError("affinity has no edge, so mu cannot be chosen: set mu=0 to learn from labels alone.")
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

    def _phrases(self) -> list[str]:
        return [*super()._phrases(), *([f"mu = {self.mu_:.3g} (the paper's rule)"] if self.mu is None else [])]

    def _dimension_rule(self) -> str:
        by_default = "the classes less one" if self.target == "classes" else "one for each target"
        return "" if self.n_components or self.n_components_ == self.n_features_in_ else by_default

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.target == "continuous"
        return tags
