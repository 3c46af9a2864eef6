"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, issparse
from scipy.sparse.linalg import eigsh
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks, unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._messages import warn_user
from .._validation import (
    check_choice,
    check_integer,
    check_positive,
    encode_partial_labels,
    require_two_classes,
    validate_affinity,
    validate_labelled_rows,
    validate_rows,
)
from ..graphs import laplacian, mean_weights
from ..neighbors import EXACT, Searcher, neighbor_lists, searcher
from ..scatter import RANK_TOLERANCE
from ..spectral import SpectralResult
from .base import SparseRowsMixin
from .descent_embedding import PERPLEXITY, nearest_squares, perplexity_bandwidth
from .soft_neighbors import SoftNeighborsClassifier
from .transductive import (
    GraphExtension,
    GraphPenalty,
    HeatGraph,
    KernelPenalty,
    Solution,
    TransductiveEmbedding,
    kernel_function,
)

Penalty = GraphPenalty | KernelPenalty

UNIT_PAIRS = 20  # smallest eigenvalues of P whose mean is its unit, for embeddings of any dimension
# From labels alone to Laplacian Eigenmaps, by preference.
REGS = (1.0, np.inf, 0.3, 0.1, 0.03, 0.01)
HIDDEN_PER_CLASS = 5  # mean number from which on some are hidden
FOLDS = 3
MAX_STEPS = 100  # of the clipped cost, which ends after a few unless costs are 0 but for rounding
PERPLEXITIES = (1.5, 3.0, 5.0, 10.0, 20.0, 50.0)  # of the vote, beside that by default
# of the size of P is added to every roughness: coordinates that only separate components have none
FLAT = 0.01
EIGENVECTORS = 100  # of the classifier; or twice as many as there are classes
LABELS_PER_CLASS = 3  # mean number from which on labels choose its space


class TDL(TransductiveEmbedding):
    """Transductive Distance Learning: coordinates of all rows, smooth along a graph, separated by
    few labels.

    With d_ij = ||v_i - v_j||^2, the embedding V (n, m) minimizes

        tr(CD) + lambda tr V'PV = tr V'(C' + lambda P)V   subject to   V'V = I, V'e = 0:

    the eigenvectors of the smallest eigenvalues of C' + lambda P, which may be negative. The cost C
    adds up, for every labelled row, the mean d_ij to its k nearest labelled rows of the same class
    (weights 1/k), minus the mean d_ij to its k nearest labelled rows of other classes (weights
    -1/k), of those that exist; a row that lacks either has no cost. C is made symmetric, and C' = 2
    (diag(Ce) - C). The penalty P is the Laplacian of a graph of all rows. Without labels this is
    `LaplacianEigenmaps` (with the normalized Laplacian: its eigenvectors before the division by the
    roots of the degrees).

    Parameters
    ----------
    n_components : int, default=2
        m, at most n - 1.
    reg : float or "auto", default="auto"
        Weight of the penalty, relative to the cost: lambda = reg s_C / s_P, s_C the largest modulus
        of an eigenvalue of C', s_P the mean of the 20 smallest of P, zeros apart, whatever m. So it
        has no unit: neither weights of the graph times 10 nor another m change what it means. As
        reg goes to 0 the labels alone decide; np.inf is Laplacian Eigenmaps. "auto" hides a third
        of the labels at a time and lets the vote of `TDLClassifier` predict them with 0.01, 0.03,
        0.1, 0.3, 1 and np.inf; the best is taken if it is right on more of them than 1 by two
        standard errors of the difference. Otherwise reg is 1, as with fewer than 5 labels per class
        on average, only one class of 2 labels or more, or a `cost` of yours.
    reg_unit : float or None, default=None
        lambda at reg = 1; None takes s_C / s_P. With 1.0, reg is the lambda of eq. 3, as the
        paper's 16, 128 and 1024.
    loss : {"squared", "clipped"}, default="squared"
        The paper's cost, or a robust one: that of a labelled row counts only where it is negative,
        min(c_i, 0). A row that lies nearer to the labelled rows of other classes than to those of
        its own, as one with a wrong label may, then moves nothing. From Laplacian Eigenmaps, every
        step is an eigenproblem that lowers the objective (majorization), until the same rows are
        clipped: a local minimum. On four sets, a fifth of whose labels were wrong, it was no better
        than the paper's (`python -m reproductions tdl-losses`).
    n_cost_neighbors : int, default=20
        k of the cost.
    n_neighbors : int, default=20
        k of the graph.
    affinity, bandwidth
        See `LaplacianEigenmaps`.
    laplacian : {"unnormalized", "normalized"} or None, default="unnormalized"
        L = D - W, or I - D^-1/2 W D^-1/2 with D = diag(We). None, no graph, needs a kernel.
    kernel : None, "rbf" or callable, default=None
        With a kernel, the coordinates are m functions in its space, whose squared norms are
        penalized too (eq. 7): P = K^+ + HLH, H = I - ee'/n, K the centred kernel. "rbf" is exp(-d^2
        / t), t the mean d^2 over all pairs of rows; a callable takes two tables and returns the
        kernel between their rows.
    n_landmarks : int or None, default=None
        With a kernel: the number of rows, drawn at random, that span the functions. None takes all,
        O(n^3).
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
        Sum of the eigenvalues: tr(CD) + lambda tr V'PV, with `lambda = reg_ reg_unit_`; tr V'PV if
        `reg_` is infinite.
    reg_, reg_unit_ : float
        The weight in use, and lambda at weight 1.
    reg_scores_ : dict of float to float
        Where `reg="auto"` has hidden labels: accuracy for these, for every weight. Otherwise empty.
    clipped_ : ndarray of int
        Numbers of the labelled rows whose cost is clipped.
    label_shift_ : float
        How far the labels have moved the embedding from Laplacian Eigenmaps: 1 minus the mean
        squared canonical correlation of their coordinates, from 0 (the same subspace) to 1
        (orthogonal ones).
    roughness_ : ndarray of shape (m,)
        v'Pv of every coordinate v.
    penalty_size_ : float
        The mean eigenvalue of P; with a kernel the smallest of K^+.
    voting_embedding_ : ndarray of shape (n, m)
        `embedding_`, with labelled rows where unlabelled rows of the same edges would be, see
        Notes.
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
        If all labels are of one class, fewer than n_components directions exist, or the graph has
        more connected components than n_components.

    See Also
    --------
    nearkin.TDLClassifier : A classifier made of it.
    nearkin.LaplacianEigenmaps : The same without labels.

    Notes
    -----
    `embedding_` is transductive. How it extends to new rows depends on the parameters:

    * No kernel: a new row gets edges to the training rows by the same rule as theirs, and the
      coordinates that the eigen-equation assigns to an unlabelled row with such edges (Nystroem's
      extension); any n.
    * A kernel: the coordinates are functions of the row, and `transform(X)` equals `embedding_` on
      the training rows (representer theorem); moderate n, as K is n x n.
    * A kernel and `n_landmarks`: functions spanned by the landmarks, linear in n.

    `fit_transform` returns `transform(X)`, so that training and new rows are treated alike. The
    cost moves labelled rows away from unlabelled ones, the more so the smaller reg: leave-one-out
    on the labels that shaped the embedding says nothing about it. It even moves them to the wrong
    side of all coordinates but the first: these are orthogonal to the first, where labelled rows
    are large. So a vote should take the labelled rows' coordinates from `voting_embedding_`, as
    `TDLClassifier` does: those that the eigen-equation without cost assigns to them, given their
    neighbours' (with a kernel, `embedding_`).

    The scale of the features decides which rows are near: standardize first unless the units are
    comparable. Where the graph is not connected, for example because of outliers, coordinates are
    spent on separating its components: use more neighbours.

    Cost: n^2 pairs of distances for the graph; then two eigenproblems (17 where labels are hidden),
    each a Lanczos iteration without any factorization, O(n (k + m)) a step and O(n (k + m)) memory.
    Up to 2,000 rows they are solved densely, O(n^3). With a kernel O(n q^2) for q landmarks (or
    rows), and O(n q) memory. The full graph needs O(n^2) memory.

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral
    Dimensionality Reduction. ICML 2007: eqs. 3 and 6, Algorithm 1, Proposition 3, Theorem 4, eq. 7.

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

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, affinity: Any = None, cost: Any = None) -> TDL:
        """Compute the coordinates of the training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,), optional
            Class labels; -1, None or NaN for unlabelled rows (the string "-1" is a class). None: no
            labels.
        affinity : array or sparse matrix of shape (n, n), optional
            A graph W of yours, symmetric, instead of that of the distances between the rows. It
            cannot be cut into folds: no cross-validation with it. With the unnormalized Laplacian
            weights may be negative: -P makes any P whose rows sum to 0 the penalty, if none of its
            eigenvalues is negative, as LLE's (I - B)'(I - B), B the weights that make rows of their
            neighbours (section 2.2).
        cost : array or sparse matrix of shape (n, n), optional
            C, symmetric, instead of that of the labels: the cost of every squared distance d_ij.

        Returns
        -------
        self
        """
        n_iterations = None if self.loss == "clipped" else FOLDS * (self.reg == "auto")
        task = FitTask(self, X, y, n_iterations)
        X, classes, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        if len(classes) == 1:
            warn_user(
                f"y holds one class ({classes[0]!s}), so that the labels have no cost: add labels "
                "of another."
            )
        n = X.shape[0]
        m = check_integer(self.n_components, "n_components", 1)
        k = check_integer(self.n_cost_neighbors, "n_cost_neighbors", 1)
        check_choice(self.loss, "loss", ("squared", "clipped"))
        search = searcher(self.search, n)

        penalty = self._penalty(X, affinity, search)
        if cost is None:
            A = label_costs(X, codes, k, search)
        else:
            A = validate_affinity(cost, n, name="cost", signed=True)
        without_cost = penalty.solve(csr_array((n, n)), 1.0, max(m, UNIT_PAIRS))
        smoothest = without_cost.leading(m)  # Laplacian Eigenmaps
        # The unit of P; zeros alone, as of a graph of many components, have the mean of all others.
        smallest = without_cost.values[:UNIT_PAIRS]
        smallest = smallest[smallest > RANK_TOLERANCE * penalty.size]
        s_P = float(smallest.mean()) if len(smallest) else penalty.size
        reg = 1.0
        scores = dict[float, float]()
        if self.reg != "auto":
            reg = np.inf if self.reg == np.inf else check_positive(self.reg, "reg")
        elif cost is None:
            reg, scores = self._choose_reg(penalty, X, codes, smoothest, s_P, task)
        unit = self._unit(A, s_P)
        on_step = partial(task.iteration, partial(embedding, penalty))
        # step 3 of Algorithm 1
        solution = solve(penalty, A, reg * unit, smoothest, self.loss, on_step)

        result = solution.result
        V = result.vectors
        result.warn()
        if isinstance(penalty, GraphPenalty):
            penalty.warn_if_disconnected(V.shape[1])
        voting = penalty.as_unlabelled(solution)
        self.classes_ = classes
        self.embedding_ = V.astype(X.dtype, copy=False)
        self.voting_embedding_ = voting.astype(X.dtype, copy=False)
        self.extension_ = penalty.extension(solution)
        self.eigenvalues_ = result.values
        self.n_components_ = V.shape[1]
        self.objective_ = result.objective
        self.residual_ = result.residual
        self.reg_, self.reg_scores_, self.reg_unit_ = reg, scores, unit
        self.clipped_ = np.flatnonzero(solution.clipped)
        self.roughness_ = solution.roughness
        self.penalty_size_ = penalty.size
        cosines_squared = np.sum((smoothest.vectors.T @ V) ** 2)
        self.label_shift_ = max(0.0, 1 - float(cosines_squared) / len(result.values))
        self.search_, self.search_recall_ = search.name, search.recall
        if solution.interrupted:
            raise KeyboardInterrupt
        task.end()
        return self

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Return what a saved model keeps of the map of new rows, without a kernel.

        Returns
        -------
        arrays : dict of str to ndarray or csr_array
            Of the extension, "rule.sources", "rule.values" and "rule.constant"; of the graph,
            "graph.rows" and, of dense rows, "graph.origin"; and "spectrum", `eigenvalues_`.
        states : dict of str to dict
            Of numbers, which JSON can hold: those of the "graph".
        """
        check_is_fitted(self)
        rule: Any = self.extension_
        graph = rule.graph
        arrays = {
            "rule.sources": rule.sources,
            "rule.values": rule.eigenvalues,
            "rule.constant": rule.constant,
            "graph.rows": graph.rows,
            "spectrum": self.eigenvalues_,
        }
        if graph.origin is not None:
            arrays["graph.origin"] = graph.origin
        numbers = {
            "n_neighbors": int(graph.n_neighbors),
            "bandwidth": float(graph.bandwidth),
            "normalized": bool(rule.normalized),
        }
        return arrays, {"graph": numbers}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, Any], states: dict[str, dict[str, Any]], n_features: int
    ) -> TDL:
        """Return a TDL that maps new rows, by what `to_arrays` returned; those of other names are
        passed over.
        """
        tdl, numbers = cls(), states["graph"]
        tdl.n_features_in_ = n_features
        tdl.extension_ = GraphExtension(
            HeatGraph(
                arrays["graph.rows"],
                arrays.get("graph.origin"),
                numbers["n_neighbors"],
                numbers["bandwidth"],
            ),
            arrays["rule.sources"],
            arrays["rule.values"],
            arrays["rule.constant"],
            numbers["normalized"],
        )
        return tdl

    def _penalty(self, X: Any, affinity: Any, search: Searcher) -> Penalty:
        if self.laplacian is None:
            if affinity is not None:
                raise ValueError(
                    "affinity is a graph, but laplacian=None leaves the graph out: name a "
                    "laplacian."
                )
            if self.kernel is None:
                raise ValueError(
                    "laplacian=None leaves no penalty at all: give a kernel, or take a laplacian."
                )
            graph = None
        else:
            signed = self.laplacian == "unnormalized"
            graph = self._graph_penalty(X, affinity, search, signed=signed)
            if self.kernel is None:
                return graph
        anchors = X.copy()  # the user's rows may change
        if self.n_landmarks is not None:
            q = check_integer(self.n_landmarks, "n_landmarks", 1)
            drawn = check_random_state(self.random_state).permutation(X.shape[0])[:q]
            anchors = X[np.sort(drawn)]
        return KernelPenalty(X, anchors, kernel_function(self.kernel, X), graph)

    def _unit(self, A: csr_array, s_P: float) -> float:
        """Return the weight of P at reg = 1: s_C / s_P, at which penalty and cost are equally
        large, whatever their units, unless the user gives one.

        s_C is the largest modulus of an eigenvalue of C'. Without a cost any weight will do: 1.
        """
        if self.reg_unit is not None:
            return check_positive(self.reg_unit, "reg_unit")
        if s_P <= 0:
            raise ValueError(
                "affinity gives a penalty with negative eigenvalues, of which reg has no unit: add "
                "a constant to affinity until there are none, or give reg_unit=1.0."
            )
        if A.nnz == 0:
            return 1.0
        start = np.random.default_rng(0).standard_normal(A.shape[0])
        return abs(float(eigsh(total_cost(A), 1, v0=start, return_eigenvectors=False)[0])) / s_P

    def _choose_reg(
        self,
        penalty: Penalty,
        X: Any,
        codes: np.ndarray,
        smoothest: SpectralResult,
        s_P: float,
        task: FitTask,
    ) -> tuple[float, dict[float, float]]:
        """Return a weight, and for every one the share of hidden labels that the votes of the
        others predict.

        Each fold hides a third of the labels from the cost: labels that shaped an embedding say
        nothing about it. The best weight is taken if it is right on more labels than 1 by two
        standard errors of the difference; else 1, as where labels are too few to hide any.
        """
        labelled = np.flatnonzero(codes >= 0)
        counts = np.bincount(codes[labelled])
        if len(labelled) < HIDDEN_PER_CLASS * len(counts) or np.sum(counts > 1) < 2:
            return 1.0, {}
        # A third of every class, in whatever order rows come.
        lengths = np.linalg.norm(smoothest.vectors[labelled], axis=1)
        labelled = labelled[np.lexsort((lengths, codes[labelled]))]
        correct = {reg: np.zeros(len(labelled), dtype=bool) for reg in REGS}
        for fold in range(FOLDS):
            hidden = labelled[fold::FOLDS]
            few = codes.copy()
            few[hidden] = -1
            A = label_costs(X, few, self.n_cost_neighbors)
            unit = self._unit(A, s_P)
            for reg in REGS:
                solution = solve(penalty, A, reg * unit, smoothest, self.loss)
                if solution.interrupted:
                    raise KeyboardInterrupt
                V = penalty.as_unlabelled(solution)
                Z = profile_coordinates(V, solution.roughness, penalty.size)
                predicted = voters(Z, few >= 0, codes).predict(Z[hidden])
                correct[reg][fold::FOLDS] = predicted == codes[hidden]
            task.iteration(embedding, penalty, solution)
        best = max(REGS, key=lambda reg: correct[reg].sum())
        gains = correct[best].astype(int) - correct[1.0]
        reg = best if gains.sum() > 2 * np.linalg.norm(gains) else 1.0
        return reg, {reg: float(np.mean(right)) for reg, right in correct.items()}


# The cost of labels, and the embedding with it.


def label_costs(X: Any, codes: np.ndarray, k: int, search: Searcher = EXACT) -> csr_array:
    """Return the coefficients A of eq. 6, shape (n, n): sum_j a_ij d_ij is the cost of row i.

    The cost of a labelled row i is the mean of d_ij over its k nearest labelled rows of the same
    class, minus that over its k nearest labelled rows of other classes, of those that exist; 0 if
    it lacks either. Code -1 is no label.
    """
    n = len(codes)
    labelled = np.flatnonzero(codes >= 0)
    if len(np.unique(codes[labelled])) < 2:
        return csr_array((n, n))
    X = X[labelled]
    codes = codes[labelled]
    N_in = neighbor_lists(X, codes, k, "same", search)
    N_out = neighbor_lists(X, codes, k, "other", search)
    has_both = (np.diff(N_in.indptr) > 0) & (np.diff(N_out.indptr) > 0)
    A = (mean_weights(N_in) - mean_weights(N_out))[has_both]
    columns = eye_array(n, format="csr")[labelled]
    return csr_array(columns[has_both].T @ A @ columns)


def total_cost(A: csr_array) -> csr_array:
    """Return C' with tr V'C'V the sum of the rows' costs: C is A made symmetric, C' that of
    Proposition 3.
    """
    return laplacian(A + A.T)


def row_costs(A: csr_array, V: np.ndarray) -> np.ndarray:
    """Return the cost of every row, sum_j a_ij ||v_i - v_j||^2."""
    A = A.tocoo()
    return np.bincount(A.row, A.data * np.sum((V[A.row] - V[A.col]) ** 2, axis=1), minlength=len(V))


def embedding(penalty: Penalty, solution: Solution) -> dict[str, Any]:
    """Return the attributes of a TDL that `transform` needs, by a solution so far."""
    V = solution.result.vectors
    return {
        "embedding_": V,
        "extension_": penalty.extension(solution),
        "n_components_": V.shape[1],
    }


def solve(
    penalty: Penalty,
    A: csr_array,
    weight: float,
    smoothest: SpectralResult,
    loss: str,
    on_step: Callable[[Solution], bool] | None = None,
) -> Solution:
    """Minimize the sum of the rows' costs c_i, or of min(c_i, 0) if they are clipped, plus weight
    tr V'PV.

    min(c, 0) is concave: it lies below the line through 0 and c where c < 0, elsewhere below 0, and
    touches it at c. So the eigenvectors without the costs that are positive at the last V have no
    larger objective (majorization), from `smoothest`, the V without any cost, until the same costs
    are positive again. Infinite weight: `smoothest`. The steps end where `on_step`, called after
    each with its solution, returns True, and with a KeyboardInterrupt.
    """
    result, m, clipped = smoothest, smoothest.requested, np.zeros(A.shape[0], dtype=bool)
    if not np.isfinite(weight) or A.nnz == 0:
        return Solution(smoothest, csr_array(A.shape), 1.0, clipped)
    if loss == "squared":
        cost = total_cost(A)
        return Solution(penalty.solve(cost, weight, m), cost, weight, clipped)
    costs = row_costs(A, smoothest.vectors)
    found = None
    try:
        for _ in range(MAX_STEPS):
            clipped = costs > 0
            cost = total_cost(diags_array((~clipped).astype(np.float64)) @ A)
            result = penalty.solve(cost, weight, m, start=result.vectors.sum(axis=1))
            found = Solution(result, cost, weight, clipped)
            stopped = on_step is not None and on_step(found)
            costs = row_costs(A, result.vectors)
            if stopped or np.array_equal(costs > 0, clipped):
                break
    except KeyboardInterrupt:
        if found is None:
            raise
        found = replace(found, interrupted=True)
    assert found is not None
    return found


class TDLClassifier(CallbackSupportMixin, ClassifierMixin, SparseRowsMixin, BaseEstimator):
    """Classify by votes of the labelled rows along a graph of all rows, or among their features.

    Few rows have labels. A graph of all rows, with or without labels, gives them coordinates: those
    of `TDL`, v_j with j = 1, ..., m. Each is divided by its roughness v_j'Pv_j plus a hundredth of
    the mean eigenvalue of the penalty P. Then every row is scaled to unit length: how far labels
    have pushed a row out says nothing, in which direction says all. There the labelled rows vote,
    near ones with the largest weights (`SoftNeighborsClassifier`), for every unlabelled training
    row, and for new rows in the coordinates of `TDL.transform`.

    **By default the labels do not shape the coordinates**: on the sets of
    `benchmarks/tdl_labels.py` that gains nothing once enough coordinates are taken. What is left of
    TDL is its embedding for an infinite weight of the penalty, Laplacian Eigenmaps, and its vote.
    The inner product of two rows in it is that of their rows in the regularized Laplacian kernel (P
    + .01 I)^-1, but for the eigenvectors that are left out: two rows are alike where random walks
    from both, which end with a small probability at every step, visit the same rows. From three
    labels a class on, on average, the labels choose: each labelled row is predicted by the others,
    in these coordinates and among the features themselves, at the bandwidth of the least log loss.
    The space is taken in which more of them are right, or, where the difference is within its
    standard error, that of the lower log loss. Where the graph joins the classes, that is a soft
    vote on the features.

    Parameters
    ----------
    tdl : TDL or None, default=None
        The coordinates, which labels may shape; it is cloned, and nothing else is tried. None takes
        the normalized Laplacian of the 5-NN graph without weights and no cost of labels, `TDL(m,
        reg=np.inf, n_neighbors=5, bandwidth=np.inf, laplacian="normalized")`, with m = 100, or
        twice as many as there are classes if that is more, at most n - 1.

    Attributes
    ----------
    tdl_ : TDL
        Fitted.
    space_ : {"tdl", "features"}
        Where the labelled rows vote: in the coordinates, or among the features.
    losses_, accuracies_ : dict of str to float
        For each space that was tried, the mean log loss of the labels that the others predict, at
        the best bandwidth, and the share that is right. Empty with fewer than three labels a class,
        or a `tdl` of yours: then the bandwidth is "auto".
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n,)
        The label of every training row: the given one, or that of the vote.
    label_distributions_ : ndarray of shape (n, n_classes)
        The shares of the votes for every training row; for a labelled one, 1 for its label.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn.semi_supervised.LabelSpreading : Propagates the labels along the graph.

    Notes
    -----
    -1, None and NaN mark unlabelled rows (the string "-1" is a class). Tools that take -1 for a
    class, such as stratified splits, should split the labelled rows only.

    With a `tdl` of yours the labelled rows have their coordinates from `TDL.voting_embedding_`.
    With a graph of yours (`fit(..., affinity=W)`) the features are not tried. The default was
    chosen on some of the sets of `benchmarks/tdl_labels.py`, which compares it with scikit-learn's
    LabelSpreading and 3-NN on others.

    Cost: that of `TDL`, whose coordinates take most of it: up to 4,000 rows or so by LAPACK,
    O(n^3), beyond by Lanczos, O(n (k + m)) a step. O(n l m) for the votes of l labelled rows in m
    dimensions, and O(l^2 (m + p)) for the choice.

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral
    Dimensionality Reduction. ICML 2007, section 5. A. Smola, R. Kondor: Kernels and Regularization
    on Graphs. COLT 2003 (the regularized Laplacian). A. Ng, M. Jordan, Y. Weiss: On Spectral
    Clustering. Advances in Neural Information Processing Systems 14 (2001): rows of unit length.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import TDLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(400) % 10, -1, y[:400])  # one label in ten
    >>> model = TDLClassifier().fit(X[:400], few)
    >>> bool(np.mean(model.transduction_ == y[:400]) > 0.9)
    True
    >>> bool(model.score(X[400:], y[400:]) > 0.8)
    True
    """

    def __init__(self, tdl: TDL | None = None) -> None:
        self.tdl = tdl

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> TDLClassifier:
        """Give coordinates to all rows, and labels to those that have none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, of at least two classes; -1, None or NaN for unlabelled rows.
        affinity : array or sparse matrix of shape (n, n), optional
            A graph of yours, see `TDL.fit`.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        X, self.classes_, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        require_two_classes(self.classes_)
        labelled = codes >= 0
        n_classes = len(self.classes_)
        if self.tdl is None:
            m = min(max(EIGENVECTORS, 2 * n_classes), X.shape[0] - 1)
            tdl = TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf, laplacian="normalized")
            self.tdl_ = tdl.fit(X, affinity=affinity)
        else:
            self.tdl_ = clone(self.tdl).fit(X, codes, affinity=affinity)
        spaces = {"tdl": self._profiles(self.tdl_.voting_embedding_)}
        found: dict[str, LeftOut] = {}
        if self.tdl is None and labelled.sum() >= LABELS_PER_CLASS * n_classes:
            # In which space, and at which bandwidth, do labelled rows predict each other best?
            if affinity is None:  # beside a graph of the user, the features may say nothing
                spaces["features"] = X
            for name, Z in spaces.items():
                found[name] = best_bandwidth(Z[labelled], codes[labelled])
        self.losses_ = {name: left_out.loss for name, left_out in found.items()}
        self.accuracies_ = {name: float(left_out.right.mean()) for name, left_out in found.items()}
        self.space_ = "tdl"
        if "features" in found:
            gains = found["features"].right.astype(int) - found["tdl"].right
            difference = gains.sum()
            if abs(difference) <= np.linalg.norm(gains):  # its standard error
                difference = self.losses_["tdl"] - self.losses_["features"]
            if difference > 0:
                self.space_ = "features"
        bandwidth = found[self.space_].bandwidth if found else "auto"
        Z = spaces[self.space_]
        self._voters = voters(Z, labelled, codes, bandwidth)
        self.label_distributions_ = np.eye(n_classes)[codes]
        if not labelled.all():
            self.label_distributions_[~labelled] = self._voters.predict_proba(Z[~labelled])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        task.end()
        return self

    def _profiles(self, V: np.ndarray) -> np.ndarray:
        return profile_coordinates(V, self.tdl_.roughness_, self.tdl_.penalty_size_)

    def predict_proba(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the shares of the votes for every class, in the order of `classes_`, shape (n_new,
        n_classes).

        `affinity` is required after a fit with an affinity, see `TDL.transform`.
        """
        check_is_fitted(self, "tdl_")
        X = validate_rows(self, X, reset=False)
        if self.space_ == "tdl":
            X = self._profiles(self.tdl_.transform(X, affinity=affinity))
        return self._voters.predict_proba(X)

    def predict(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the class with the most votes for every row; of equals the first in `classes_`."""
        shares = self.predict_proba(X, affinity=affinity)
        return self.classes_[shares.argmax(axis=1)]


# The vote of labelled rows in the embedding: in the classifier, and for TDL's hidden labels.


def profile_coordinates(V: np.ndarray, rough: np.ndarray, size: float) -> np.ndarray:
    """Return rows of unit length, along V with column j divided by epsilon plus its roughness v'Pv.

    epsilon is a hundredth of the size of P. For all eigenvectors of P, without labels, inner
    products of rows before the scaling are those of the rows of the regularized Laplacian kernel (P
    + epsilon I)^-1: two rows are alike if the kernel relates them alike to all others.
    """
    return unit_rows(V / (rough + FLAT * size))


def voters(Z: Any, rows: np.ndarray, codes: np.ndarray, bandwidth: float | str = "auto") -> Any:
    """Return the classifier in which the rows vote with their labels; where they coincide, by class
    frequency.
    """
    spread, spread_of_all = (float((R.max(axis=0) - R.min(axis=0)).max()) for R in (Z[rows], Z))
    vote = SoftNeighborsClassifier(bandwidth=bandwidth)
    if spread <= 1e-10 * spread_of_all:
        vote = DummyClassifier(strategy="prior")
    return vote.fit(Z[rows], codes[rows])


class LeftOut(NamedTuple):
    """How well labels are predicted by the votes of all others.

    Attributes
    ----------
    bandwidth : float
        Of the votes.
    loss : float
        Mean log loss.
    right : array of bool
        Whether the most votes are for the label; for every label that is not the only one of its
        class.
    """

    bandwidth: float
    loss: float
    right: np.ndarray


def best_bandwidth(Z: Any, codes: np.ndarray) -> LeftOut:
    """Return the bandwidth of the votes at which others predict a label with the least mean log
    loss.

    The bandwidths are those of several perplexities; of equals the default of
    `SoftNeighborsClassifier` is taken. The shares of the votes of l rows count for l observations,
    to which the class frequencies add one: a label for which nobody votes costs a finite amount.
    The only label of a class has nobody to vote for it, and is left out.
    """
    n = Z.shape[0]
    counts = np.bincount(codes)
    half_a_class = n / len(counts) / 2
    squares_of_some = nearest_squares(Z)
    perplexities = (min(PERPLEXITY, half_a_class), *PERPLEXITIES)
    bandwidths = [perplexity_bandwidth(squares_of_some, perplexity) for perplexity in perplexities]
    Y = np.eye(len(counts))[codes]
    if not issparse(Z):  # far from 0 distances lose their digits
        Z = Z - Z.mean(axis=0, dtype=np.float64)
    predicted = np.flatnonzero(counts[codes] > 1)
    losses = np.zeros(len(bandwidths))
    right = np.zeros((len(bandwidths), len(predicted)), dtype=bool)
    for block in row_blocks(len(predicted), n):
        rows = predicted[block]
        own = np.arange(len(rows))
        own_class = codes[rows]
        squares = euclidean_distances(Z[rows], Z, squared=True).astype(np.float64)
        squares[own, rows] = np.inf
        squares -= squares.min(axis=1, keepdims=True)
        for j, bandwidth in enumerate(bandwidths):
            shares = np.exp(-squares / bandwidth**2) @ Y
            shares /= shares.sum(axis=1, keepdims=True)
            share = shares[own, own_class]
            losses[j] -= np.log((n * share + counts[own_class] / n) / (n + 1)).sum()
            right[j, block] = shares.argmax(axis=1) == own_class
    best = int(losses.argmin())
    return LeftOut(bandwidths[best], float(losses[best] / len(predicted)), right[best])
