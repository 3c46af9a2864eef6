"""Discriminative Projections (Wang and Mahadevan): samples and their labels, partly known, mapped into one space."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag, svd
from scipy.sparse import issparse

from .._blocks import centre, dense_float64
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
from ..scatter import group_means, scatter, second_moment, total_scatter
from ..span import RANK_TOLERANCE, row_space
from ..spectral import ratio_trace
from .base import LinearEmbedding

SEEN = 1e-8  # singular values below are what rounding leaves of a mean that cancels, also far from the origin
SHARE = {"classes": 1.0, "continuous": 0.1}  # the paper's mu, in units of l / s


class DiscriminativeProjections(LinearEmbedding):
    """Discriminative Projections: map rows near their label, far from others, and preserve a k-NN graph.

    A map f takes rows, a map g takes labels into one space of any dimension m. With l labelled rows x_i among all n,
    their labels y_i as unit vectors s_k of R^c, and W the union k-NN graph weighted by the heat kernel
    `exp(-d^2 / t)`, t the mean squared length of the listed edges, f and g minimize

        sum_(i<=l) ||f'x_i - g'y_i||^2  +  mu sum_ij w_ij ||f'x_i - f'x_j||^2
        ---------------------------------------------------------------------     (sec. 2.2)
                     sum_(i<=l) sum_(k: s_k != y_i) ||f'x_i - g's_k||^2

    as the paper solves it: the smallest eigenvalues of (A + C) v = lambda (B + C) v over v = (f; g), V'(B + C)V = I,
    with A, B the squared distances of rows to their own and to all labels and C = mu X'LX. Only about c - 1 eigenvalues
    are small, and only these directions separate classes; the others lie about 1/c, ordered by smoothness alone.

    With `target="continuous"` the labels are numbers (sec. 3), y_i in R^q: the numerator alone is minimized, subject to
    f'X'DXf + g'Y'Yg = I with D = diag(W 1), so that rows of similar values are near each other.

    Parameters
    ----------
    n_components : int or None, default=2
        m, at most p. None takes c - 1 for classes and q for numbers.
    target : {"classes", "continuous"}, default="classes"
        The type of y.
    mu : float or None, default=None
        Weight of the graph, 0 or more. None is the paper's rule, l / s for classes and 0.1 l / s for numbers, s the sum
        of W. Larger preserves neighbours, smaller separates classes. For mu -> infinity numbers give the directions of
        LPP (after those in which X f vanishes), classes do not: on a connected graph, the first c directions then map
        all rows to one point.
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
    compared_as: ClassVar[dict] = {
        "DP": {
            "settings": lambda p: [{"n_components": min(p, 50)}],
            "unlabelled": True,
            "semi_supervised": True,
        }
    }

    def __init__(
        self,
        n_components: int | None = 2,
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
        mu = None if self.mu is None else check_number(self.mu, "mu", 0)

        search = searcher(self.search, n)
        rows = row_space(X, centred=discrete)
        Z = rows.coordinates
        r, what = Z.shape[1], f"The eigenproblem of {Z.shape[1]} directions and {n_labels} labels"
        require_memory(8 * 8 * (r + n_labels) ** 2, what, "reduce the features or the classes")
        W = union(heat_kernel(nearest(Z, k, search))) if affinity is None else validate_affinity(affinity, n)
        if mu is None:
            if W.nnz == 0:
                raise ValueError("affinity has no edge, so mu cannot be chosen: set mu=0 to learn from labels alone.")
            mu = SHARE[self.target] * labelled.sum() / float(W.sum())
        C = mu * scatter(Z, laplacian(W))
        D = W.sum(axis=1)
        A_plus_C, B_plus_C, H, constant = _class_pencil(Z, y, C) if discrete else _number_pencil(Z, y, labelled, D, C)
        result = ratio_trace(A_plus_C, B_plus_C, m)
        result.warn()

        f, h = np.split(result.vectors, [r])
        components, g = rows.back_project_pairs(f, H @ h)
        if discrete:  # so far relative to the mean of the labelled rows
            g += components @ np.asarray(X[labelled].mean(axis=0, dtype=np.float64))[:, None]
            self.classes_, self.label_prototypes_ = classes, g.T.astype(X.dtype, copy=False)
        self.components_ = components.astype(X.dtype, copy=False)
        self.label_components_ = g.astype(X.dtype, copy=False)
        self.eigenvalues_, self.constant_eigenvalues_ = result.values, constant
        self.mu_ = float(mu)
        self.n_components_ = self.components_.shape[0]
        self.objective_ = result.objective
        self.rank_ = result.rank
        self.search_, self.search_recall_ = search.name, search.recall
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.target == "continuous"
        return tags


# A pencil over v = (f; h): A + C, B + C, the basis H of the label maps g = H h, and the eigenvalues of those left out.


def _class_pencil(X: Any, codes: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 2.4, X relative to the mean of its labelled rows.

    g absorbs the origin, and at this one B separates: sum_ik (f'x_i - g_k)^2 = c sum_i (f'x_i)^2 + l sum_k g_k^2.
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
    return A_plus_C, block_diag(c * T + C, n_labelled * np.eye(H.shape[1])), H, constant / n_labelled


def _informative_labels(means: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a basis (c, r) of the label maps g that depend on the rows, and l lambda for each of the c - r others.

    The others solve the problem with f = 0. That takes classes with equally many labelled rows, l lambda of them,
    whose means (c, p; in units of the features, about the mean of all) weighted by g cancel: g = 1 when the classes are
    balanced. Solutions are orthogonal in B + C, so that all others have g in the complement.
    """
    kept, constant = [], []
    for count in np.unique(counts):
        peers = np.flatnonzero(counts == count)
        seen, unseen = _split(means[peers])
        kept.append(np.eye(len(counts))[:, peers] @ seen)
        constant += [count] * unseen.shape[1]
    return np.hstack(kept), np.array(constant)


def _number_pencil(X: Any, Y: np.ndarray, labelled: np.ndarray, D: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 3.3, Z L^ Z' and Z D^ Z': nothing is centred.

    Labels are written in an orthonormal basis of the columns of Y. Of these, directions orthogonal to every feature
    solve the problem with f = 0 and lambda = 1; they are left out, and what remains is orthogonal to them.
    """
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
    """Return orthonormal bases of the g with K'g other than 0 and of those with K'g = 0; K has entries of about 1."""
    U, s, _ = svd(K, full_matrices=K.shape[0] > K.shape[1])
    rank = int(np.sum(s > SEEN))
    return U[:, :rank], U[:, rank:]


def _nonzero(unit: np.ndarray) -> np.ndarray:
    """Return units to divide by: 1 for what does not vary."""
    return np.where(unit > 0, unit, 1.0)
