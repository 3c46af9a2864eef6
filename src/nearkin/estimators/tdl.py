"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, issparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks, unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._messages import warn_user
from .._validation import (
    check_choice,
    check_estimator,
    check_integer,
    check_positive,
    check_random_state,
    encode_partial_labels,
    equals,
    require_two_classes,
    validate_affinity,
    validate_labelled_rows,
    validate_rows,
)
from ..bandwidth import PERPLEXITY, nearest_squares, perplexity_bandwidth
from ..graphs import laplacian, mean_weights
from ..neighbors import EXACT, Searcher, neighbor_lists, searcher
from ..scatter import RANK_TOLERANCE
from ..spectral import SpectralResult, lanczos_largest
from .base import SparseRowsMixin
from .soft_neighbors import SoftNeighborsClassifier, indicators
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

UNIT_PAIRS = 20  # number of smallest eigenvalues of P whose mean is its unit, whatever m is
# In order of preference; inf is Laplacian Eigenmaps.
REGS = (1.0, np.inf, 0.3, 0.1, 0.03, 0.01)
HIDDEN_PER_CLASS = 5  # minimum mean number of labels per class for some to be hidden
FOLDS = 3
MAX_STEPS = 100  # of the clipped cost; a few suffice unless costs are 0 up to rounding
PERPLEXITIES = (1.5, 3.0, 5.0, 10.0, 20.0, 50.0)  # for the vote, besides the default
# share of the size of P, added to every roughness, which is 0 for coordinates that only separate
# components
FLAT = 0.01
EIGENVECTORS = 100  # for the classifier; or twice the number of classes, if that is larger
LABELS_PER_CLASS = 3  # minimum mean number of labels per class for them to choose the vote's space


class TDL(TransductiveEmbedding):
    """Transductive Distance Learning: coordinates, smooth along a graph of all rows and few labels.

    With d_ij = ||v_i - v_j||^2, the embedding V (n, m) minimizes

        tr(CD) + lambda tr V'PV = tr V'(C' + lambda P)V   subject to   V'V = I, V'e = 0

    by the eigenvectors of the smallest eigenvalues of C' + lambda P, which may be negative. The
    cost C sums over the labelled rows: for each, the mean d_ij to its k nearest labelled rows of
    the same class (weights 1/k) minus the mean d_ij to its k nearest labelled rows of other classes
    (weights -1/k). If there are fewer than k, all are used; a row that has none of either kind has
    no cost. C is symmetrized, and C' = 2 (diag(Ce) - C). The penalty P is the Laplacian of a graph
    of all rows. Without labels this is `LaplacianEigenmaps` (for the normalized Laplacian, its
    eigenvectors before they are divided by the square roots of the degrees).

    Parameters
    ----------
    n_components : int, default=2
        m, at most n - 1.
    reg : float or "auto", default="auto"
        Weight of the penalty, relative to the cost: lambda = reg s_C / s_P, where s_C is the
        largest absolute eigenvalue of C' and s_P the mean of the 20 smallest nonzero eigenvalues of
        P, for any m. So reg is dimensionless: it depends neither on the scale of the graph weights
        (such as a factor of 10) nor on m. As reg goes to 0 the labels alone decide; np.inf is
        Laplacian Eigenmaps. "auto" hides a third of the labels at a time and predicts them by the
        vote of `TDLClassifier` with 0.01, 0.03, 0.1, 0.3, 1 and np.inf. The best value is taken if
        it predicts more labels correctly than reg = 1 does, by over two standard errors of the
        difference. Otherwise reg is 1, as it is with fewer than 5 labels per class on average, with
        only one class of at least 2 labels, or if `cost` is given.
    reg_unit : float or None, default=None
        lambda at reg = 1; None takes s_C / s_P. With 1.0, reg is the lambda of eq. 3, such as 16,
        128 and 1024 in the paper.
    loss : {"squared", "clipped"}, default="squared"
        The paper's cost, or a robust one that counts the cost of a labelled row only if it is
        negative, min(c_i, 0). A row that lies closer to labelled rows of other classes than to
        those of its own, as one with a wrong label may, then has no effect. Starting from Laplacian
        Eigenmaps, every step is an eigenproblem that lowers the objective (majorization), until the
        same rows stay clipped: a local minimum. On four data sets with a fifth of the labels wrong,
        it was no better than the paper's cost (`python -m reproductions tdl-losses`).
    n_cost_neighbors : int, default=20
        k of the cost.
    n_neighbors : int, default=20
        k of the graph.
    affinity, bandwidth
        See `LaplacianEigenmaps`.
    laplacian : {"unnormalized", "normalized"} or None, default="unnormalized"
        L = D - W, or I - D^-1/2 W D^-1/2 with D = diag(We). None uses no graph and needs a kernel.
    kernel : None, "rbf" or callable, default=None
        With a kernel, the coordinates are m functions in its reproducing kernel Hilbert space,
        whose squared norms are penalized too (eq. 7): P = K^+ + HLH, H = I - ee'/n, where K is the
        centred kernel. "rbf" is exp(-d^2 / t), where t is the mean d^2 over all pairs of rows. A
        callable takes two tables and returns the kernel between their rows.
    n_landmarks : int or None, default=None
        With a kernel, the number of randomly drawn rows that span the functions. None takes all,
        O(n^3).
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks.
    search
        See `LDE`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        V: coordinates of the training rows, with columns of unit length.
    eigenvalues_ : ndarray of shape (m,)
        Ascending.
    classes_ : ndarray of shape (n_classes,)
        Empty if there are no labels.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues: tr(CD) + lambda tr V'PV, with `lambda = reg_ reg_unit_`; tr V'PV if
        `reg_` is infinite.
    reg_, reg_unit_ : float
        The weight used, and lambda at weight 1.
    reg_scores_ : dict of float to float
        Accuracy on the hidden labels for every weight, if `reg="auto"` has hidden labels. Otherwise
        empty.
    clipped_ : ndarray of int
        Indices of the labelled rows whose cost is clipped.
    label_shift_ : float
        How far the labels have moved the embedding from Laplacian Eigenmaps: 1 minus the mean
        squared canonical correlation of the coordinates, from 0 (the same subspace) to 1
        (orthogonal subspaces).
    roughness_ : ndarray of shape (m,)
        v'Pv of every coordinate v.
    penalty_size_ : float
        The mean eigenvalue of P; with a kernel the smallest of K^+.
    voting_embedding_ : ndarray of shape (n, m)
        `embedding_`, with labelled rows placed where unlabelled rows with the same edges would be;
        see Notes.
    residual_ : float
        Largest `||M v - lambda v||`, where M is the matrix of the eigenproblem, relative to its
        norm.
    extension_ : callable
        Maps new rows to coordinates; a dataclass of arrays and numbers (and the kernel).
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
    nearkin.TDLClassifier : A classifier based on it.
    nearkin.LaplacianEigenmaps : The same without labels.

    Notes
    -----
    `embedding_` is transductive. Its extension to new rows depends on the parameters:

    * No kernel: a new row gets edges to the training rows by the same rule, and the coordinates
      that the eigen-equation assigns to an unlabelled row with such edges (the Nyström extension);
      for any n.
    * A kernel: the coordinates are functions of the row, and `transform(X)` equals `embedding_` on
      the training rows (representer theorem); for moderate n, as K is n x n.
    * A kernel and `n_landmarks`: functions spanned by the landmarks, linear in n.

    `fit_transform` returns `transform(X)`, so that training and new rows are treated alike. The
    cost moves labelled rows away from unlabelled ones, the more so the smaller reg is.
    Leave-one-out on the labels that shaped the embedding is therefore meaningless. The cost even
    moves labelled rows to the wrong side of all coordinates but the first, since these are
    orthogonal to the first, on which labelled rows are large. A vote should therefore take the
    labelled rows' coordinates from `voting_embedding_`, as `TDLClassifier` does: those that the
    eigen-equation without cost assigns to them, given the coordinates of their neighbours (with a
    kernel, `embedding_`).

    The scale of the features decides which rows are near: standardize first unless the units are
    comparable. If the graph is not connected, for example because of outliers, coordinates are
    spent on separating its components: use more neighbours.

    Cost: n^2 pairwise distances for the graph, then two eigenproblems (17 if labels are hidden),
    each solved by Lanczos iterations without any factorization, O(n (k + m)) per step and O(n (k +
    m)) memory. Up to 2,000 rows a dense solver is used, O(n^3). With a kernel O(n q^2) for q
    landmarks (or rows), and O(n q) memory. The full graph needs O(n^2) memory.

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
            "settings": lambda p: [{"n_components": 20}],  # may exceed the number of features
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
            Class labels; -1, None or NaN for unlabelled rows (the string "-1" is a class). None if
            there are no labels.
        affinity : array or sparse matrix of shape (n, n), optional
            Symmetric graph W, used instead of one from the distances between the rows.
            Cross-validation cannot subset it. With the unnormalized Laplacian its weights may be
            negative. For any P that is positive semi-definite and whose rows sum to 0, -P makes P
            the penalty, such as LLE's (I - B)'(I - B), where B reconstructs rows from their
            neighbours (section 2.2), or classical MDS's c H - K, where K = -H D H / 2 for squared
            distances D, H = I - ee'/n, and c is the largest eigenvalue of K.
        cost : array or sparse matrix of shape (n, n), optional
            Symmetric C, the cost of every squared distance d_ij, used instead of that of the
            labels.

        Returns
        -------
        self
        """
        check_choice(self.loss, "loss", ("squared", "clipped"))
        n_iterations = None if self.loss == "clipped" else FOLDS * equals(self.reg, "auto")
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
        search = searcher(self.search, n)

        penalty = self._penalty(X, affinity, search)
        if cost is None:
            A = label_costs(X, codes, k, search)
        else:
            A = validate_affinity(cost, n, name="cost", signed=True)
        without_cost = penalty.solve(csr_array((n, n)), 1.0, max(m, UNIT_PAIRS))
        smoothest = without_cost.leading(m)  # Laplacian Eigenmaps
        # The unit of P. If all these are zeros, as for a graph of many components, it is the mean
        # of all others.
        smallest = without_cost.values[:UNIT_PAIRS]
        smallest = smallest[smallest > RANK_TOLERANCE * penalty.size]
        s_P = float(smallest.mean()) if len(smallest) else penalty.size
        reg = 1.0
        scores = dict[float, float]()
        if not equals(self.reg, "auto"):
            reg = check_positive(self.reg, "reg", or_infinite=True)
        elif cost is None:
            reg, scores = self._choose_reg(penalty, X, codes, smoothest, s_P, search, task)
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
        """Return the state that maps new rows, to be stored with a model (without a kernel).

        Returns
        -------
        arrays : dict of str to ndarray or csr_array
            "rule.sources", "rule.values" and "rule.constant" of the extension; "graph.rows" and,
            for dense rows, "graph.origin"; and "spectrum", `eigenvalues_`.
        states : dict of str to dict
            Numbers that JSON can hold, those of the "graph".
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
        """Return a TDL that maps new rows, from the result of `to_arrays`; ignore other names."""
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
            signed = equals(self.laplacian, "unnormalized")
            graph = self._graph_penalty(X, affinity, search, signed=signed)
            if self.kernel is None:
                return graph
        anchors = X.copy()  # the caller may modify X
        if self.n_landmarks is not None:
            q = check_integer(self.n_landmarks, "n_landmarks", 1)
            drawn = check_random_state(self.random_state).permutation(X.shape[0])[:q]
            anchors = X[np.sort(drawn)]
        return KernelPenalty(X, anchors, kernel_function(self.kernel, X), graph)

    def _unit(self, A: csr_array, s_P: float) -> float:
        """Return lambda at reg = 1: `reg_unit` if given, else s_C / s_P.

        There, penalty and cost are equally large, whatever their units. s_C is the largest absolute
        eigenvalue of C'. Without a cost any weight will do: 1.
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
        cost = aslinearoperator(total_cost(A))
        return float(lanczos_largest(cost @ cost, 1)[0][0]) ** 0.5 / s_P

    def _choose_reg(
        self,
        penalty: Penalty,
        X: Any,
        codes: np.ndarray,
        smoothest: SpectralResult,
        s_P: float,
        search: Searcher,
        task: FitTask,
    ) -> tuple[float, dict[float, float]]:
        """Return a weight, and for every weight the share of hidden labels predicted correctly.

        Each fold hides a third of the labels from the cost, since leave-one-out on labels that
        shaped an embedding is meaningless. The best weight is taken if it predicts more labels
        correctly than weight 1 does, by over two standard errors of the difference; otherwise, or
        with too few labels to hide any, it is 1.
        """
        labelled = np.flatnonzero(codes >= 0)
        counts = np.bincount(codes[labelled])
        if len(labelled) < HIDDEN_PER_CLASS * len(counts) or np.sum(counts > 1) < 2:
            return 1.0, {}
        # a third of every class, independent of the order of the rows
        lengths = np.linalg.norm(smoothest.vectors[labelled], axis=1)
        labelled = labelled[np.lexsort((lengths, codes[labelled]))]
        correct = {reg: np.zeros(len(labelled), dtype=bool) for reg in REGS}
        for fold in range(FOLDS):
            hidden = labelled[fold::FOLDS]
            few = codes.copy()
            few[hidden] = -1
            A = label_costs(X, few, self.n_cost_neighbors, search)
            unit = self._unit(A, s_P)
            for reg in REGS:
                solution = solve(penalty, A, reg * unit, smoothest, self.loss)
                if solution.interrupted:
                    raise KeyboardInterrupt
                V = penalty.as_unlabelled(solution)
                Z = profile_coordinates(V, solution.roughness, penalty.size)
                vote = voters(Z, few >= 0, codes, search=self.search)
                predicted = vote.predict(Z[hidden])
                correct[reg][fold::FOLDS] = predicted == codes[hidden]
            task.iteration(embedding, penalty, solution)
        best = max(REGS, key=lambda reg: correct[reg].sum())
        gains = correct[best].astype(int) - correct[1.0]
        reg = best if gains.sum() > 2 * np.linalg.norm(gains) else 1.0
        return reg, {reg: float(np.mean(right)) for reg, right in correct.items()}


# The cost of labels, and the embedding that minimizes it.


def label_costs(X: Any, codes: np.ndarray, k: int, search: Searcher = EXACT) -> csr_array:
    """Return the coefficients A of eq. 6, shape (n, n): sum_j a_ij d_ij is the cost of row i.

    It is the mean of d_ij over the k nearest labelled rows of the same class, minus that over the k
    nearest labelled rows of other classes (all, if fewer), for a labelled row i; 0 if either kind
    is missing. Code -1 is no label.
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
    """Return C' of Proposition 3, for which tr V'C'V is the sum of the rows' costs.

    C is A, symmetrized.
    """
    return laplacian(A + A.T)


def row_costs(A: csr_array, V: np.ndarray) -> np.ndarray:
    """Return the cost of every row, sum_j a_ij ||v_i - v_j||^2."""
    A = A.tocoo()
    return np.bincount(A.row, A.data * np.sum((V[A.row] - V[A.col]) ** 2, axis=1), minlength=len(V))


def embedding(penalty: Penalty, solution: Solution) -> dict[str, Any]:
    """Return the attributes of a TDL that `transform` needs, from an intermediate solution."""
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
    """Minimize the sum of the rows' costs c_i, or of min(c_i, 0) if clipped, plus weight tr V'PV.

    Clipping is solved by majorization. min(c, 0) is concave: the tangent at the last c, the line
    through 0 and c if c < 0 and else 0, lies above it. So the eigenvectors without the costs that
    were positive at the last V do not raise the objective. Steps start from `smoothest`, the V
    without any cost, and end when the same costs are positive again, when `on_step`, called with
    the solution of each step, returns True, or with a KeyboardInterrupt. For infinite weight the
    result is `smoothest`.
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
    """Semi-supervised classification: labelled rows vote along a graph of all rows, or by features.

    Few rows have labels. A graph of all rows gives each row coordinates, those of `TDL`: v_j with j
    = 1, ..., m. Each coordinate is divided by its roughness v_j'Pv_j plus a hundredth of the mean
    eigenvalue of the penalty P, and every row is then scaled to unit length, as only the direction
    in which labels have moved a row is informative, not how far. In these coordinates the labelled
    rows vote for every unlabelled training row, near ones with the largest weights
    (`SoftNeighborsClassifier`), and for new rows in the coordinates of `TDL.transform`.

    **By default the labels do not shape the coordinates**: on the data sets of
    `benchmarks/choices/tdl.py` that gains nothing once enough coordinates are used. What remains of
    TDL is its embedding for an infinite weight of the penalty, Laplacian Eigenmaps, and its vote.
    The inner product of two rows is then that of their rows in the regularized Laplacian kernel (P
    + .01 I)^-1, up to the eigenvectors that are left out. Two rows are similar if random walks from
    both, which stop with a small probability at every step, visit the same rows.

    With at least three labels per class on average, the labels choose the space: each labelled row
    is predicted by the others, in these coordinates and in the features, at the bandwidth of lowest
    log loss. The space with more correct predictions is taken or, if the difference is within its
    standard error, the one with the lower log loss. Where the graph joins different classes, the
    choice is thus a soft vote in the features.

    Parameters
    ----------
    tdl : TDL or None, default=None
        The TDL that computes the coordinates, which labels may shape. It is cloned, and nothing
        else is tried. None takes the normalized Laplacian of the unweighted 5-NN graph without a
        cost of labels, `TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf,
        laplacian="normalized")`, where m is 100 or, if larger, twice the number of classes, at most
        n - 1.

    Attributes
    ----------
    tdl_ : TDL
        The fitted TDL.
    space_ : {"tdl", "features"}
        Where the labelled rows vote: in the coordinates or in the features.
    losses_, accuracies_ : dict of str to float
        For each space tried, at its best bandwidth, the mean log loss and the accuracy of labels
        predicted by the others. Empty with fewer than three labels per class, or if `tdl` is given;
        the bandwidth is then "auto".
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n,)
        The label of every training row: the given one, or the predicted one.
    label_distributions_ : ndarray of shape (n, n_classes)
        The class probabilities of every training row; for a labelled one, 1 for its label.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn.semi_supervised.LabelSpreading : Propagates the labels along the graph.

    Notes
    -----
    -1, None and NaN mark unlabelled rows (the string "-1" is a class). Tools that treat -1 as a
    class, such as stratified splits, should be applied to the labelled rows only.

    If `tdl` is given, labelled rows take their coordinates from `TDL.voting_embedding_`. If a graph
    is given (`fit(..., affinity=W)`), the features are not tried. The default was chosen on some of
    the data sets of `benchmarks/studies/few_labels.py`, which compares it with scikit-learn's
    LabelSpreading and 3-NN on others.

    Cost: mostly that of the coordinates of `TDL`: up to about 2,000 rows by LAPACK, O(n^3), for
    more by Lanczos, O(n (k + m)) per step. The votes of l labelled rows in m dimensions cost O(n l
    m), and the choice of the space O(l^2 (m + p)).

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral
    Dimensionality Reduction. ICML 2007, section 5. A. Smola, R. Kondor: Kernels and Regularization
    on Graphs. COLT 2003 (the regularized Laplacian). A. Ng, M. Jordan, Y. Weiss: On Spectral
    Clustering. Advances in Neural Information Processing Systems 14 (2001) (rows of unit length).

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
        """Compute coordinates for all rows, and labels for the unlabelled ones.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1, None or NaN for unlabelled rows.
        affinity : array or sparse matrix of shape (n, n), optional
            See `TDL.fit`.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        X, self.classes_, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        require_two_classes(self.classes_)
        labelled = codes >= 0
        n_classes = len(self.classes_)
        self.label_distributions_ = indicators(codes, n_classes)
        if self.tdl is None:
            m = min(max(EIGENVECTORS, 2 * n_classes), X.shape[0] - 1)
            tdl = TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf, laplacian="normalized")
            self.tdl_ = tdl.fit(X, affinity=affinity)
        else:
            check_estimator(self.tdl, "tdl", TDL)
            self.tdl_ = clone(self.tdl).fit(X, codes, affinity=affinity)
        spaces = {"tdl": self._profiles(self.tdl_.voting_embedding_)}
        found: dict[str, LeftOut] = {}
        if self.tdl is None and labelled.sum() >= LABELS_PER_CLASS * n_classes:
            # the space and the bandwidth at which labelled rows predict each other best
            if affinity is None:  # with a given graph, the features may be meaningless
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
        if not labelled.all():
            self.label_distributions_[~labelled] = self._voters.predict_proba(Z[~labelled])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        task.end()
        return self

    def _profiles(self, V: np.ndarray) -> np.ndarray:
        return profile_coordinates(V, self.tdl_.roughness_, self.tdl_.penalty_size_)

    def predict_proba(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return class probabilities, shape (n_new, n_classes), in the order of `classes_`.

        `affinity` is required after a fit with an affinity; see `TDL.transform`.
        """
        check_is_fitted(self, "tdl_")
        X = validate_rows(self, X, reset=False)
        if self.space_ == "tdl":
            X = self._profiles(self.tdl_.transform(X, affinity=affinity))
        return self._voters.predict_proba(X)

    def predict(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the most probable class of every row; ties go to the first in `classes_`."""
        shares = self.predict_proba(X, affinity=affinity)
        return self.classes_[shares.argmax(axis=1)]


# The vote of labelled rows in the embedding, for the classifier and for TDL's hidden labels.


def profile_coordinates(V: np.ndarray, rough: np.ndarray, size: float) -> np.ndarray:
    """Return V with column j divided by epsilon plus its roughness v'Pv, then rows of unit length.

    epsilon is a hundredth of the size of P. If V holds all eigenvectors of P, without labels, inner
    products of rows before the scaling are those of rows of the regularized Laplacian kernel (P +
    epsilon I)^-1: two rows are similar if the kernel relates them similarly to all others.
    """
    return unit_rows(V / (rough + FLAT * size))


def voters(
    Z: Any,
    rows: np.ndarray,
    codes: np.ndarray,
    bandwidth: float | str = "auto",
    search: Any = "exact",
) -> Any:
    """Return a classifier in which the given rows vote with their labels.

    If these rows coincide, it predicts class frequencies.
    """
    spread, spread_of_all = (float((R.max(axis=0) - R.min(axis=0)).max()) for R in (Z[rows], Z))
    vote = SoftNeighborsClassifier(bandwidth=bandwidth, search=search)
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
        Whether the label gets the most votes, for every label that is not the only one of its
        class.
    """

    bandwidth: float
    loss: float
    right: np.ndarray


def best_bandwidth(Z: Any, codes: np.ndarray) -> LeftOut:
    """Return the bandwidth of lowest mean leave-one-out log loss of the votes.

    The bandwidths tried are those of several perplexities; ties go to the default of
    `SoftNeighborsClassifier`. The vote shares of l rows count as l observations, to which the class
    frequencies add one, so that a label without votes has a finite loss. The only label of a class
    has no votes, and is left out.
    """
    n = Z.shape[0]
    counts = np.bincount(codes)
    half_a_class = n / len(counts) / 2
    squares_of_some = nearest_squares(Z)
    perplexities = (min(PERPLEXITY, half_a_class), *PERPLEXITIES)
    bandwidths = [perplexity_bandwidth(squares_of_some, perplexity) for perplexity in perplexities]
    Y = indicators(codes, len(counts))
    if not issparse(Z):  # far from 0, distances lose precision
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
