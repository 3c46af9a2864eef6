"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from .._captions import EIGENVALUES
from .._validation import check_choice, check_integer, check_positive, validate_affinity, validate_partly_labelled_rows
from .._warn import warn_user
from ..neighbors import Searcher, searcher
from ._kernel_penalty import KernelPenalty, kernel_function
from ._label_cost import UNIT_PAIRS, choose_reg, label_costs, relative_unit, solve
from .transductive import GraphPenalty, TransductiveEmbedding


class TDL(TransductiveEmbedding):
    """Transductive Distance Learning: coordinates of all rows, smooth along a graph, separated by few labels.

    With d_ij = ||v_i - v_j||^2, the embedding V (n, m) minimizes

        tr(CD) + lambda tr V'PV = tr V'(C' + lambda P)V   subject to   V'V = I, V'e = 0:

    the eigenvectors of the smallest eigenvalues of C' + lambda P, which may be negative. The cost C adds up, for every
    labelled row, the mean d_ij to its k nearest labelled rows of the same class (weights 1/k), minus the mean d_ij to
    its k nearest labelled rows of other classes (weights -1/k), of those that exist; a row that lacks either has no
    cost. C is made symmetric, and C' = 2 (diag(Ce) - C). The penalty P is the Laplacian of a graph of all rows. Without
    labels this is `LaplacianEigenmaps` (with the normalized Laplacian: its eigenvectors before the division by the
    roots of the degrees).

    Parameters
    ----------
    n_components : int, default=2
        m, at most n - 1.
    reg : float or "auto", default="auto"
        Weight of the penalty, relative to the cost: lambda = reg s_C / s_P, s_C the largest modulus of an eigenvalue of
        C', s_P the mean of the 20 smallest of P, zeros apart, whatever m. So it has no unit: neither weights of the
        graph times 10 nor another m change lambda. As reg goes to 0 the labels alone decide; np.inf is Laplacian Eigenmaps. "auto" hides a third of the
        labels at a time and lets `TDLClassifier`'s vote predict them with 0.01, 0.03, 0.1, 0.3, 1 and np.inf; the best
        is taken if it is right on more of them than 1 by two standard errors of the difference. Otherwise reg is 1, as
        with fewer than 5 labels per class on average, only one class of 2 labels or more, or a `cost` of yours.
    reg_unit : float or None, default=None
        lambda at reg = 1; None takes s_C / s_P. With 1.0, reg is the lambda of eq. 3, as the paper's 16, 128 and 1024.
    loss : {"squared", "clipped"}, default="squared"
        The paper's cost, or a robust one: that of a labelled row counts only where it is negative, min(c_i, 0). A row
        that lies nearer to the labelled rows of other classes than to those of its own, as one with a wrong label may,
        then moves nothing. From Laplacian Eigenmaps, every step is an eigenproblem that lowers the objective
        (majorization), until the same rows are clipped: a local minimum.
    n_cost_neighbors : int, default=20
        k of the cost.
    n_neighbors : int, default=20
        k of the graph.
    affinity, bandwidth
        See `LaplacianEigenmaps`.
    laplacian : {"unnormalized", "normalized"} or None, default="unnormalized"
        L = D - W, or I - D^-1/2 W D^-1/2 with D = diag(We). None, no graph, needs a kernel.
    kernel : None, "rbf" or callable, default=None
        With a kernel, the coordinates are m functions in its space, whose squared norms are penalized too (eq. 7):
        P = K^+ + HLH, H = I - ee'/n, K the centred kernel. "rbf" is exp(-d^2 / t), t the mean d^2 over all pairs of
        rows; a callable takes two tables and returns the kernel between their rows.
    n_landmarks : int or None, default=None
        With a kernel: the number of rows, drawn at random, that span the functions. None takes all, O(n^3).
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks.
    search
        See `LDE`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        V: coordinates of the training rows, columns of unit length.
    eigenvalues_ : ndarray of shape (m,)
        Ascending.
    classes_ : ndarray of shape (n_classes,)
        Empty without labels.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues: tr(CD) + lambda tr V'PV, with `lambda = reg_ reg_unit_`; tr V'PV if `reg_` is infinite.
    reg_, reg_unit_ : float
        The weight in use, and lambda at weight 1.
    reg_scores_ : dict of float to float
        Where `reg="auto"` has hidden labels: accuracy for these, for every weight. Otherwise empty.
    clipped_ : ndarray of int
        Numbers of the labelled rows whose cost is clipped.
    label_shift_ : float
        How far the labels have moved the embedding from Laplacian Eigenmaps: 1 minus the mean squared canonical
        correlation of their coordinates, from 0 (the same subspace) to 1 (orthogonal ones).
    roughness_ : ndarray of shape (m,)
        v'Pv of every coordinate v.
    penalty_size_ : float
        The mean eigenvalue of P; with a kernel the smallest of K^+.
    voting_embedding_ : ndarray of shape (n, m)
        `embedding_`, with labelled rows where unlabelled rows of the same edges would be, see Notes.
    residual_ : float
        Largest `||M v - lambda v||` with M the matrix of the eigenproblem, relative to its norm.
    extension_ : callable
        Maps new rows to coordinates; a dataclass of arrays and numbers (and of the kernel).
    search_, search_recall_
        See `LDE`.

    Warns
    -----
    ConvergenceWarning
        If a residual is above 1e-6.
    UserWarning
        If all labels are of one class, fewer than n_components directions exist, or the graph has more connected
        components than n_components.

    See Also
    --------
    nearkin.TDLClassifier : A classifier made of it.
    nearkin.LaplacianEigenmaps : The same without labels.

    Notes
    -----
    `embedding_` is transductive. How it extends to new rows depends on the parameters:

    * No kernel: a new row gets edges to the training rows by the same rule as theirs, and the coordinates that the
      eigen-equation assigns to an unlabelled row with such edges (Nystroem's extension); any n.
    * A kernel: the coordinates are functions of the row, and `transform(X)` equals `embedding_` on the training rows
      (representer theorem); moderate n, as K is n x n.
    * A kernel and `n_landmarks`: functions spanned by the landmarks, linear in n.

    `fit_transform` returns `transform(X)`, so that training and new rows are treated alike. The cost moves labelled
    rows away from unlabelled ones, the more so the smaller reg: leave-one-out on the labels that shaped the embedding
    says nothing about it. It even moves them to the wrong side of all coordinates but the first: these are orthogonal
    to the first, where labelled rows are large. So a vote should take the labelled rows' coordinates from
    `voting_embedding_`, as `TDLClassifier` does: those that the eigen-equation without cost assigns to them, given
    their neighbours' (with a kernel, `embedding_`).

    The scale of the features decides which rows are near: standardize first unless the units are comparable. Where the
    graph is not connected, for example because of outliers, coordinates are spent on separating its components: use
    more neighbours.

    Cost: n^2 pairs of distances for the graph; then two eigenproblems (17 where labels are hidden), each a Lanczos
    iteration without any factorization, O(n (k + m)) a step and O(n (k + m)) memory. Up to 2,000 rows they are solved
    densely, O(n^3). With a kernel O(n q^2) for q landmarks (or rows), and O(n q) memory. The full graph needs O(n^2)
    memory.

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral Dimensionality Reduction.
    ICML 2007: eqs. 3 and 6, Algorithm 1, Proposition 3, Theorem 4, eq. 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import TDL
    >>> X, y = load_digits(return_X_y=True)
    >>> y[np.arange(len(y)) % 5 > 0] = -1  # four labels in five are unknown
    >>> tdl = TDL(n_components=10).fit(X[:300], y[:300])
    >>> tdl.embedding_.shape, tdl.transform(X[300:]).shape
    ((300, 10), (1497, 10))
    """

    compared_as: ClassVar[dict] = {
        "TDL": {
            "params": {"reg": 1.0},
            "settings": lambda p: [{"n_components": 20}],  # there may be more than features
            "max_components": lambda p, n_classes: 20,
            "unlabelled": True,
            "semi_supervised": True,
        }
    }

    _objective_phrase = f"{EIGENVALUES}; label shift {{label_shift_:.2f}}"

    def __init__(
        self,
        n_components: int = 2,
        *,
        reg: float | str = "auto",
        reg_unit: float | None = None,
        loss: str = "squared",
        n_cost_neighbors: int = 20,
        n_neighbors: int = 20,
        affinity: str = "knn",
        bandwidth: float | None = None,
        laplacian: str | None = "unnormalized",
        kernel: Any = None,
        n_landmarks: int | None = None,
        random_state: Any = None,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.reg_unit = reg_unit
        self.loss = loss
        self.n_cost_neighbors = n_cost_neighbors
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.bandwidth = bandwidth
        self.laplacian = laplacian
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.search = search

    def fit(self, X: Any, y: Any = None, *, affinity: Any = None, cost: Any = None) -> TDL:
        """Compute the coordinates of the training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,), optional
            Class labels; -1, None or NaN for unlabelled rows (the string "-1" is a class). None: no labels.
        affinity : array or sparse matrix of shape (n, n), optional
            A graph W of yours, symmetric, instead of that of the distances between the rows. It cannot be cut into
            folds: no cross-validation with it. With the unnormalized Laplacian weights may be negative.
        cost : array or sparse matrix of shape (n, n), optional
            C, symmetric, instead of that of the labels: the cost of every squared distance d_ij.

        Returns
        -------
        self
        """
        X, classes, codes = validate_partly_labelled_rows(self, X, y)
        if len(classes) == 1:
            warn_user(f"y holds one class ({classes[0]!s}), so that the labels have no cost: add labels of another.")
        m = check_integer(self.n_components, "n_components", 1)
        k = check_integer(self.n_cost_neighbors, "n_cost_neighbors", 1)
        check_choice(self.loss, "loss", ("squared", "clipped"))

        n = X.shape[0]
        search = searcher(self.search, n)
        penalty = self._penalty(X, affinity, search)
        A = label_costs(X, codes, k, search) if cost is None else validate_affinity(cost, n, name="cost", signed=True)
        without_cost = penalty.solve(csr_array((n, n)), 1.0, max(m, UNIT_PAIRS))
        smallest = without_cost.values[:UNIT_PAIRS]
        smoothest = without_cost.leading(m)  # Laplacian Eigenmaps
        unit = None if self.reg_unit is None else check_positive(self.reg_unit, "reg_unit")
        reg, scores = 1.0, dict[float, float]()
        if self.reg != "auto":
            reg = np.inf if self.reg == np.inf else check_positive(self.reg, "reg")
        elif cost is None:
            reg, scores = choose_reg(penalty, smoothest, smallest, X, codes, k, unit, self.loss)
        unit = relative_unit(A, smallest, penalty.size) if unit is None else unit
        solution = solve(penalty, A, reg * unit, smoothest, self.loss)  # step 3 of Algorithm 1

        result, C_prime, weight = solution.result, solution.cost, solution.weight
        result.warn()
        if isinstance(penalty, GraphPenalty):
            penalty.warn_if_disconnected(result.vectors.shape[1])
        self._keep(result, result.vectors, penalty.extension(result, C_prime, weight), search, X.dtype)
        self.classes_, self.reg_, self.reg_scores_, self.reg_unit_ = classes, reg, scores, unit
        self.voting_embedding_ = penalty.as_unlabelled(result, C_prime, weight).astype(X.dtype, copy=False)
        self.roughness_, self.penalty_size_ = solution.roughness, penalty.size
        self.clipped_ = np.flatnonzero(solution.clipped)
        cosines_squared = np.sum((smoothest.vectors.T @ result.vectors) ** 2)
        self.label_shift_ = max(0.0, 1 - float(cosines_squared) / len(result.values))
        return self

    def _penalty(self, X: Any, affinity: Any, search: Searcher) -> GraphPenalty | KernelPenalty:
        if self.laplacian is None and affinity is not None:
            raise ValueError("affinity is a graph, but laplacian=None leaves the graph out: name a laplacian.")
        graph = None
        if self.laplacian is not None:
            graph = self._graph_penalty(X, affinity, search, signed=self.laplacian == "unnormalized")
        if self.kernel is None:
            if graph is None:
                raise ValueError("laplacian=None leaves no penalty at all: give a kernel, or take a laplacian.")
            return graph
        n, anchors = X.shape[0], X.copy()  # the user's rows may change
        if self.n_landmarks is not None:
            q = check_integer(self.n_landmarks, "n_landmarks", 1)
            anchors = X[np.sort(check_random_state(self.random_state).permutation(n)[:q])]
        return KernelPenalty(X, anchors, kernel_function(self.kernel, X), graph)
