"""Discriminative Projections (Wang and Mahadevan): rows and their labels, partly known, mapped into one space."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, svd

from .._blocks import centre, dense_float64
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import encode_partial_labels, has_target, require_two_classes
from .._memory import require_memory
from .._validation import (
    check_integer,
    check_n_neighbors,
    check_number,
    validate_affinity,
    validate_labelled_rows,
    validate_partial_target_rows,
)
from ..graphs import heat_kernel, laplacian, union
from ..neighbors import nearest, searcher
from ..scatter import RANK_TOLERANCE, group_means, row_space, scatter, second_moment, total_scatter
from ..spectral import ratio_trace
from .base import LinearEmbedding

LARGEST_ORDER = 10_000  # of a dense pencil
SEEN = 1e-8  # a label is seen above this; what rounding leaves of a mean that cancels is less, also far from the origin
SHARE = {"classes": 1.0, "continuous": 0.1}  # mu by the paper's rule, in units of l / s


class DiscriminativeProjections(CallbackSupportMixin, LinearEmbedding):
    """Discriminative Projections: rows near their own label, far from the others, and near rows near. Few labels do.

    A map f takes rows, a map g takes labels into one space of any dimension m. With l labelled rows x_i among all n,
    their labels y_i as unit vectors s_k of R^c, and W the graph of the k nearest neighbours (tied if either lists the
    other) weighted by the heat kernel `exp(-d^2 / t)`, t the mean squared length of the listed edges, f and g minimize

        sum_(i<=l) ||f'x_i - g'y_i||^2  +  mu sum_ij w_ij ||f'x_i - f'x_j||^2
        ---------------------------------------------------------------------     (sec. 2.2)
                     sum_(i<=l) sum_(k: s_k != y_i) ||f'x_i - g's_k||^2

    as the paper solves it: the smallest eigenvalues of (A + C) v = lambda (B + C) v over v = (f; g), V'(B + C)V = I,
    with A, B the data to its own and to all labels and C = mu X'LX. Only about c - 1 eigenvalues are small, and only
    these tell classes apart; the others lie about 1/c, ordered by smoothness alone.

    With `target="continuous"` the labels are numbers (sec. 3), y_i in R^q: the numerator alone is minimized, subject to
    f'X'DXf + g'Y'Yg = I with D = diag(W 1), so that rows of similar values come to lie near each other.

    Parameters
    ----------
    n_components : int, default=2
        m, at most p.
    target : {"classes", "continuous"}, default="classes"
        What y says.
    mu : float or None, default=None
        Weight of the graph, 0 or more. None is the paper's rule, l / s for classes and 0.1 l / s for numbers, s the sum
        of W. Larger keeps neighbours, smaller separates classes. For mu -> infinity numbers give the directions of LPP
        (after those in which X f vanishes), classes do not: where all rows hang together, the first c directions then
        send all of them to one point.
    n_neighbors : int, default=10
        k of the graph.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        f': rows, the smallest eigenvalue first. Their lengths differ, as V'(B + C)V = I makes them.
    label_components_ : ndarray of shape (m, c) or (m, q)
        g'.
    label_prototypes_ : ndarray of shape (c, m), for classes
        The place of every label, in the coordinates of `transform`.
    classes_ : ndarray of shape (c,), for classes
        Sorted.
    eigenvalues_ : ndarray of shape (m,)
        Ascending. Classes: in [0, 1], 1/c is as good as no label. Numbers: 0 and more.
    constant_eigenvalues_ : ndarray
        Eigenvalues of the directions that were left out because X f is constant in them, so that they say nothing: for
        c classes with equally many labelled rows, at least 1/c (f = 0, g = 1).
    mu_ : float
        The weight in use.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues: tr V'(A + C)V.
    rank_ : int
        Dimension in which the problem was solved: the rank of B + C, less the directions left out.
    search_ : str
        How neighbours were found: "exact", "approximate" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If fewer directions exist than were asked for.

    Notes
    -----
    Where B + C vanishes, A + C does as well; that null space is left out, which a ridge would put first.

    Classes: the answer does not depend on the origin of X, which g absorbs. Numbers: it does, there is no intercept.
    Centre both X and y or neither (the paper); with one of them centred the map is useless. With one target, rows whose
    values are nearer have nearer labels `g'y` (sec. 3.2); with several this order is kept only along a line.

    The scale of the features decides who is near: standardize first unless the units are comparable.

    `affinity` belongs to the rows it was made for: cross-validation cannot cut it.

    Cost: n^2 pairs of distances, O(n k p + n p^2 + (p + c)^3) after them, O(n k + (p + c)^2) memory. For p > n the
    problem is solved in the span of the rows, O(n^2 p), without a p x p matrix; where n and p both exceed 10,000 it is
    refused.

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

    def __init__(
        self,
        n_components: int = 2,
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
            n >= 2 rows that are not all equal, with and without label, in any order.
        y : array of shape (n,), or (n, q) for numbers
            Classes: at least two; the number -1, None or NaN for a row without label (the string "-1" is a class).
            Numbers: NaN for a row without; a row that lacks one of several targets counts as one without.
        affinity : array or sparse matrix of shape (n, n), default=None
            Takes the place of W: symmetric, not negative; the diagonal is ignored.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If an argument is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X, y or affinity is not as above or not finite, n and p both exceed 10,000, or a parameter is out of
            bounds.
        MemoryError
            If the span of the rows or the pencil would not fit into the memory that is free.
        """
        task = FitTask(self, X, y, n_steps=3)
        X, y, classes = self._validate(X, y)
        n, p = X.shape
        m = check_integer(self.n_components, "n_components", 1, p)
        k = check_n_neighbors(self.n_neighbors)
        mu = None if self.mu is None else check_number(self.mu, "mu", 0)
        W = None if affinity is None else validate_affinity(affinity, n)
        if min(n, p) > LARGEST_ORDER:
            raise ValueError(
                f"X has {n} rows and {p} features, and an eigenproblem of order {min(n, p)} takes hours: reduce the "
                f"features to {LARGEST_ORDER} or fewer first, e.g. with sklearn.decomposition.TruncatedSVD."
            )

        search = searcher(self.search, n)
        discrete = classes is not None
        rows = row_space(X, centred=discrete)
        Z = rows.coordinates
        with task.step("graph"):
            W = union(heat_kernel(nearest(Z, k, search))) if W is None else W
            labelled = y >= 0 if discrete else has_target(y)
            mu = _weight_of_graph(W, SHARE[self.target] * labelled.sum()) if mu is None else mu
        with task.step("scatter"):
            C = mu * scatter(Z, laplacian(W))
            pencil = _class_pencil(Z, y, C) if discrete else _number_pencil(Z, y, labelled, W.sum(axis=1), C)
        with task.step("eigenproblem"):
            result = ratio_trace(pencil.A_plus_C, pencil.B_plus_C, m)
        result.warn()

        f, h = np.split(result.vectors, [Z.shape[1]])
        components, g = rows.back_project_pairs(f, pencil.labels @ h)
        if discrete:  # so far relative to the mean of the labelled rows
            g += components @ np.asarray(X[labelled].mean(axis=0, dtype=np.float64))[:, None]
            self.classes_, self.label_prototypes_ = classes, g.T.astype(X.dtype, copy=False)
        self.components_ = components.astype(X.dtype, copy=False)
        self.label_components_ = g.astype(X.dtype, copy=False)
        self.eigenvalues_, self.constant_eigenvalues_ = result.values, pencil.constant
        self.mu_ = float(mu)
        self.n_components_ = self.components_.shape[0]
        self.objective_ = result.objective
        self.rank_ = result.rank
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self

    def _validate(self, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, the position of every row's class (-1: none) and the classes, or X, the numbers and None."""
        if self.target not in SHARE:
            raise ValueError(f"target must be 'classes' or 'continuous', got {self.target!r}.")
        if self.target == "continuous":
            return *validate_partial_target_rows(self, X, y), None
        X, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        classes = encode_partial_labels(y)[0]
        require_two_classes(classes)
        return X, codes, classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.target == "continuous"
        return tags


class _Pencil(NamedTuple):
    """A + C and B + C over v = (f; h), where g = labels h, and the eigenvalues of the directions that h leaves out."""

    A_plus_C: np.ndarray
    B_plus_C: np.ndarray
    labels: np.ndarray
    constant: np.ndarray


def _weight_of_graph(W: Any, share: float) -> float:
    """Return the paper's mu, which balances labels and graph."""
    if not W.nnz:
        raise ValueError("affinity has no edge, so mu cannot be chosen from it: set mu=0 to learn from labels alone.")
    return share / float(W.sum())


def _class_pencil(X: Any, codes: np.ndarray, C: np.ndarray) -> _Pencil:
    """Return the matrices of sec. 2.4, X relative to the mean of its labelled rows.

    g absorbs the origin, and at this one B falls apart: sum_ik (f'x_i - g_k)^2 = c sum_i (f'x_i)^2 + l sum_k g_k^2.
    """
    labelled = codes >= 0
    counts = np.bincount(codes[labelled]).astype(np.float64)
    c, n_labelled = len(counts), counts.sum()
    _require_room(len(C), c)
    T = total_scatter(X, labelled.astype(np.float64))
    means = dense_float64(group_means(_about_mean(X)[labelled], codes[labelled]))
    means -= counts @ means / n_labelled
    H, constant = _informative_labels(means / _nonzero(np.sqrt(np.diag(T) / n_labelled)), counts)
    return _Pencil(
        _bordered(T + C, -(means.T * counts) @ H, (H.T * counts) @ H),
        block_diag(c * T + C, n_labelled * np.eye(H.shape[1])),
        H,
        constant / n_labelled,
    )


def _informative_labels(means: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a basis (c, r) of the label maps g worth looking at, and l lambda for each of the c - r others.

    The others solve the problem with f = 0. That takes classes with equally many labelled rows, l lambda of them,
    whose means (c, p; in units of the features, about the mean of all) weighted by g cancel: g = 1 when the classes are
    balanced. Solutions are orthogonal in B + C, so that all others have g in the complement.
    """
    kept, constant = [np.empty((len(counts), 0))], [np.empty(0)]
    for count in np.unique(counts):
        peers = np.flatnonzero(counts == count)
        seen, unseen = _split(means[peers])
        kept.append(np.eye(len(counts))[:, peers] @ seen)
        constant.append(np.full(unseen.shape[1], count))
    return np.hstack(kept), np.concatenate(constant)


def _number_pencil(X: Any, y: np.ndarray, labelled: np.ndarray, degrees: np.ndarray, C: np.ndarray) -> _Pencil:
    """Return the matrices of sec. 3.3, Z L^ Z' and Z D^ Z': nothing is centred.

    Labels are written in an orthonormal basis of the columns of Y. Of these, directions orthogonal to every feature
    solve the problem with f = 0 and lambda = 1; they are left out, and what remains is orthogonal to them.
    """
    Y = y[labelled].reshape(labelled.sum(), -1)
    _require_room(len(C), Y.shape[1])
    unit = _nonzero(np.linalg.norm(Y, axis=0))
    U, s, Vt = svd(Y / unit, full_matrices=False)
    r = int(np.sum(s > RANK_TOLERANCE * s[0]))
    G = second_moment(X, labelled.astype(np.float64))
    K = X[labelled].T @ U[:, :r]
    seen, unseen = _split((K / _nonzero(np.sqrt(np.diag(G)))[:, None]).T)
    one = np.eye(seen.shape[1])
    return _Pencil(
        _bordered(G + C, -K @ seen, one),
        block_diag(second_moment(X, degrees), one),
        (Vt[:r].T / s[:r] / unit[:, None]) @ seen,
        np.ones(unseen.shape[1]),
    )


def _split(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal bases of the g with K'g other than 0 and of those with K'g = 0; K has entries of about 1."""
    U, s, _ = svd(K, full_matrices=K.shape[0] > K.shape[1])
    rank = int(np.sum(s > SEEN))
    return U[:, :rank], U[:, rank:]


def _bordered(P: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    return np.block([[P, Q], [Q.T, R]])


def _about_mean(X: Any) -> Any:
    return centre(X) if isinstance(X, np.ndarray) else X.astype(np.float64)


def _nonzero(unit: np.ndarray) -> np.ndarray:
    """Return units to divide by: 1 for what does not vary."""
    return np.where(unit > 0, unit, 1.0)


def _require_room(r: int, c: int) -> None:
    require_memory(
        8 * 8 * (r + c) ** 2, f"The eigenproblem of {r} directions and {c} labels", "reduce the features or the classes"
    )
