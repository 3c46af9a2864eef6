"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, eye_array
from sklearn.utils.validation import check_is_fitted

from .._callbacks import FitTask, with_callbacks
from .._labels import encode_partial_labels
from .._messages import warn_user
from .._validation import check_integer, check_positive, check_random_state, equals
from ..graphs import laplacian, mean_weights, validate_affinity
from ..linalg import RANK_TOLERANCE
from ..neighbors import EXACT, Searcher, neighbor_lists, searcher
from ..spectral import spectral_norm
from .base import REMEDIES
from .extension import GraphExtension, HeatGraph
from .graph_penalty import GraphPenalty
from .kernel_penalty import KernelPenalty, kernel_function
from .transductive import TransductiveEmbedding
from .validation import validate_labelled_rows

Penalty = GraphPenalty | KernelPenalty

UNIT_PAIRS = 20  # number of smallest eigenvalues of P whose mean is its unit, whatever m is


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
    reg : float, default=1.0
        Weight of the penalty, relative to the cost: lambda = reg s_C / s_P, where s_C is the
        largest absolute eigenvalue of C' and s_P the mean of the 20 smallest nonzero eigenvalues of
        P, for any m. So reg is dimensionless: it depends neither on the scale of the graph weights
        (such as a factor of 10) nor on m. As reg goes to 0 the labels alone decide; np.inf is
        Laplacian Eigenmaps.
    reg_unit : float or None, default=None
        lambda at reg = 1; None takes s_C / s_P. With 1.0, reg is the lambda of eq. 3, such as 16,
        128 and 1024 in the paper.
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
        Sum of the eigenvalues: tr(CD) + lambda tr V'PV, with `lambda = reg reg_unit_`; tr V'PV if
        `reg` is infinite.
    reg_unit_ : float
        lambda at reg = 1.
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
    search_
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

    Cost: n^2 pairwise distances for the graph, then two eigenproblems, each solved by Lanczos
    iterations without any factorization, O(n (k + m)) per step and O(n (k + m)) memory. Up to 2,000
    rows a dense solver is used, O(n^3). With a kernel O(n q^2) for q landmarks (or rows), and O(n
    q) memory. The full graph needs O(n^2) memory.

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
        reg: float = 1.0,
        reg_unit: float | None = None,
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
            Symmetric graph W, used instead of one from the distances between the rows; see
            `LaplacianEigenmaps.fit`. With the unnormalized Laplacian its weights may be
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
        task = FitTask(self, X, y, n_iterations=0)
        X, classes, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        if len(classes) == 1:
            warn_user(
                f"y holds one class ({classes[0]!s}), so that the labels have no cost: add labels "
                "of another."
            )
        n = X.shape[0]
        m = check_integer(self.n_components, "n_components", 1)
        k = check_integer(self.n_cost_neighbors, "n_cost_neighbors", 1)
        reg = check_positive(self.reg, "reg", or_infinite=True)
        search = searcher(self.search, n)

        penalty = self._penalty(X, affinity, search)  # P
        if cost is None:
            C = total_cost(label_costs(X, codes, k, search))
        else:
            C = total_cost(validate_affinity(cost, n, name="cost", signed=True))
        without_cost = penalty.solve(csr_array((n, n)), 1.0, max(m, UNIT_PAIRS))
        unit = self._unit(C, without_cost.values[:UNIT_PAIRS], penalty.size)
        eigenmaps = without_cost.leading(m)  # Laplacian Eigenmaps
        weight = reg * unit  # lambda
        if C.nnz == 0 or not np.isfinite(weight):
            C, weight, result = csr_array((n, n)), 1.0, eigenmaps
        else:
            result = penalty.solve(C, weight, m)  # step 3 of Algorithm 1
        V = result.vectors
        # P v = eigenvalue v + constant for the rows without a cost, and so for new rows
        extension: Any = penalty.extension(V, result.values / weight)
        penalties = result.values - np.sum(V * (C @ V), axis=0)  # lambda v'Pv
        result.warn(REMEDIES)
        voting = V.copy()
        if isinstance(penalty, GraphPenalty):
            penalty.warn_if_disconnected(V.shape[1])
            # where unlabelled rows with the same edges would be; functions of a kernel are not
            # moved away from their neighbours by labels
            with_cost = np.flatnonzero(np.diff(C.indptr))
            voting[with_cost] = extension.at(penalty.W[with_cost])

        self.classes_ = classes
        self.embedding_ = V.astype(X.dtype, copy=False)
        self.voting_embedding_ = voting.astype(X.dtype, copy=False)
        self.extension_ = extension
        self.eigenvalues_ = result.values
        self.n_components_ = V.shape[1]
        self.objective_ = result.objective
        self.residual_ = result.residual
        self.reg_unit_ = unit
        self.roughness_ = np.maximum(penalties, 0.0) / weight
        self.penalty_size_ = penalty.size
        cosines_squared = np.sum((eigenmaps.vectors.T @ V) ** 2)
        self.label_shift_ = max(0.0, 1 - float(cosines_squared) / len(result.values))
        self.search_ = search.name
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
    def from_arrays(cls, arrays: dict[str, Any], states: dict[str, dict[str, Any]]) -> TDL:
        """Return a TDL that maps new rows, from the result of `to_arrays`; ignore other names."""
        tdl, numbers = cls(), states["graph"]
        tdl.n_features_in_ = arrays["graph.rows"].shape[1]
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

    def _unit(self, C: csr_array, smallest: np.ndarray, size: float) -> float:
        """Return lambda at reg = 1: `reg_unit` if given, else s_C / s_P.

        There, penalty and cost are equally large, whatever their units. s_C is the largest absolute
        eigenvalue of C', and s_P the mean of those of the smallest eigenvalues of P that are not 0.
        If all are, as for a graph of many components, it is the mean of all others. Without a cost
        any weight will do: 1.
        """
        if self.reg_unit is not None:
            return check_positive(self.reg_unit, "reg_unit")
        nonzero = smallest[smallest > RANK_TOLERANCE * size]
        s_P = float(nonzero.mean()) if len(nonzero) else size
        if s_P <= 0:
            raise ValueError(
                "affinity gives a penalty with negative eigenvalues, of which reg has no unit: add "
                "a constant to affinity until there are none, or give reg_unit=1.0."
            )
        return spectral_norm(C) / s_P if C.nnz else 1.0


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
