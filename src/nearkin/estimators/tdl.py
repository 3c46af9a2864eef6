"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from .._callbacks import FitTask, with_callbacks
from .._labels import encode_partial_labels
from .._validation import (
    check_integer,
    check_n_neighbors,
    check_number,
    validate_affinity,
    validate_labelled_rows,
    validate_rows,
)
from .._warn import warn_user
from ..graphs import laplacian
from ..neighbors import Searcher, searcher
from ._graph_prior import GraphPrior, RowGraph, check_laplacian, given_graph, warn_of_parts
from ._kernel_prior import KernelPrior, kernel_function
from ._label_cost import choose_reg, label_cost
from ._transductive import TransductiveEmbedding


class TDL(TransductiveEmbedding):
    """Transductive Distance Learning: coordinates of all rows, near along a graph, and apart where labels say so.

    Few rows have labels, many have none. With d_ij = ||v_i - v_j||^2 the embedding V (n, m) minimizes

        tr(CD) + reg tr V'PV = tr V'(C' + reg P)V   subject to   V'V = I, V'e = 0:

    the smallest eigenvalues of C' + reg P, which may be negative. The labels enter by the cost C: every labelled row
    has the mean d_ij to its k nearest labelled rows of its class (weights 1/k), minus the mean d_ij to its k nearest
    labelled rows of other classes (weights -1/k), among those there are; a row that lacks one of the two has no cost.
    C is made symmetric, and C' = 2 (diag(Ce) - C). The prior enters by the penalty P, the Laplacian of a graph of all
    rows. Without labels this is `LaplacianEigenmaps` (normalized: in its coordinates before the division by the roots
    of the degrees).

    Parameters
    ----------
    n_components : int, default=2
        m, at most n - 1.
    reg : float or "auto", default=1024.0
        Weight of the penalty, larger than 0. "auto" hides a third of the labels at a time and takes, of the powers of 8
        from 1 to 32,768, that with which the others find them best by `SoftNeighborsClassifier(bandwidth="auto")` (of
        equals, the largest).
    n_cost_neighbors : int, default=20
        k of the cost.
    n_neighbors : int, default=20
        k of the graph.
    affinity : {"knn", "full"}, default="knn"
        Who is tied by the graph: the k nearest rows (if either lists the other), or all pairs.
    bandwidth : float or None, default=None
        t of the graph's weights exp(-d^2 / t), in units of squared distances; None takes the mean of d^2 over the k
        nearest of every row, and np.inf gives all ties the weight 1.
    laplacian : {"unnormalized", "normalized"} or None, default="unnormalized"
        L = diag(We) - W, or I - diag(We)^-1/2 W diag(We)^-1/2; None, no graph, needs a kernel.
    kernel : None, "rbf" or callable, default=None
        With a kernel, the embedding consists of m functions of the row in its space, and the penalty also has the
        squares of their norms (eq. 7): P = K^+ + HLH, H = I - ee'/n, K the kernel centred. "rbf" is exp(-d^2 / t),
        t the mean d^2 over all pairs of rows; a callable takes two tables and returns the kernel between their rows.
    n_landmarks : int or None, default=None
        With a kernel: how many rows, drawn at random, the functions are made of. None takes all, O(n^3).
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks, and the labels that `reg="auto"` hides.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        V: coordinates of the training rows, columns of unit length.
    eigenvalues_ : ndarray of shape (m,)
        Ascending.
    classes_ : ndarray of shape (n_classes,)
        The labels that occur; empty without labels.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues: tr(CD) + reg tr V'PV.
    reg_ : float
        The weight in use.
    reg_scores_ : dict of float to float
        `reg="auto"`: accuracy for the hidden labels, for every weight. Otherwise empty.
    residual_ : float
        Largest `||M v - lambda v||`, M the matrix of the eigenproblem, relative to its norm.
    search_ : str
        How neighbours were found: "exact", "approximate" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If a residual is above 1e-6.
    UserWarning
        If there are labels of one class only, fewer directions than were asked for, or more connected components of the
        graph than n_components.

    See Also
    --------
    nearkin.TDLClassifier : Classify with it.
    nearkin.LaplacianEigenmaps : The same without labels.

    Notes
    -----
    `embedding_` is transductive. How new rows get coordinates is a choice:

    * No kernel: they are tied to the training rows as these are to one another, and placed where the eigen-equation
      puts an unlabelled row with such ties (Nystroem's extension of a graph embedding); any n.
    * A kernel: the embedding is a function of the row, and `transform(X)` equals `embedding_` on the training rows
      (representer theorem); moderate n, as K is n x n.
    * A kernel and `n_landmarks`: the same with functions made of the landmarks, linear in n.

    `fit_transform` returns `transform(X)`, so that training and new rows are treated alike. Labelled rows are pushed
    away from the unlabelled ones, the more so the smaller reg: leave-one-out on the labels that shaped the embedding
    says nothing about it. A vote should take the labelled rows' coordinates from `embedding_`, as `TDLClassifier` does.

    The scale of the features decides who is near: standardize first unless the units are comparable. Where the graph
    falls apart, as outliers make it, coordinates are spent on telling its components apart: use more neighbours.

    Cost: n^2 pairs of distances for the graph; then a Lanczos iteration without any factorization, O(n (k + m)) a
    step and O(n (k + m)) memory. Up to 2,000 rows the problem is solved densely, O(n^3). With a kernel O(n q^2) for q
    landmarks (or rows), and O(n q) memory. The full graph needs O(n^2) memory.

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
    >>> y[np.arange(len(y)) % 10 > 0] = -1  # nine labels in ten are not known
    >>> tdl = TDL(n_components=10).fit(X[:1000], y[:1000])
    >>> tdl.embedding_.shape, tdl.transform(X[1000:]).shape
    ((1000, 10), (797, 10))
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        reg: float | str = 1024.0,
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
            Class labels; -1 for rows without one, or None or NaN (the string "-1" is a class). None: no labels.
        affinity : array or sparse matrix of shape (n, n), optional
            A graph W of yours, symmetric, instead of that of the distances between the rows: any prior knowledge of who
            is near whom. It cannot be cut into folds: no cross-validation with it. With the unnormalized Laplacian
            weights may be negative.
        cost : array or sparse matrix of shape (n, n), optional
            C, symmetric, instead of that of the labels: the cost of every squared distance d_ij, or its gain.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If an approximate search is asked for and faiss is not installed.
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X, y, affinity or cost is not as above or not finite, or a parameter is out of bounds.
        MemoryError
            If a full graph or a kernel does not fit.
        """
        task = FitTask(self, X, y, n_steps=3)
        X, codes = self._validate(X, y)
        m = check_integer(self.n_components, "n_components", 1)
        k_cost = check_integer(self.n_cost_neighbors, "n_cost_neighbors", 1)

        if cost is not None and self.reg == "auto":
            raise ValueError(
                "reg='auto' hides labels from their cost, and knows nothing of another one: give a number."
            )
        search = searcher(self.search, X.shape[0])
        with task.step("prior"):
            graph, W = self._ties(X, affinity, search)
            prior = self._prior(X, W)
        with task.step("cost"):
            if cost is None:
                C = label_cost(X, codes, k_cost, search)
            else:
                C = validate_affinity(cost, X.shape[0], name="cost", signed=True)
            cost_laplacian = csr_array(2 * laplacian(C))  # Proposition 3
        with task.step("eigenproblem"):
            self._choose_reg(prior, X, codes, m, k_cost)
            result = prior.solve(cost_laplacian, self.reg_, m)
        result.warn()
        if isinstance(prior, GraphPrior):
            warn_of_parts(prior.penalty, result.vectors.shape[1])

        rule = prior.rule(result, cost_laplacian, self.reg_)
        self._keep(result, result.vectors, rule, graph, X.dtype)
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self

    def _validate(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return the rows and the class of each, -1 for none; set `classes_`."""
        if y is None:
            X = validate_rows(self, X, reset=True)
            self.classes_ = np.empty(0, dtype=np.int64)
            return X, np.full(X.shape[0], -1)
        X, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        self.classes_ = encode_partial_labels(y)[0]
        if len(self.classes_) == 1:
            warn_user(
                f"y holds one class ({self.classes_[0]!r}): labels say nothing, as none of another class is known."
            )
        return X, codes

    def _prior(self, X: Any, W: csr_array | None) -> GraphPrior | KernelPrior:
        graph = None if W is None else GraphPrior(W, check_laplacian(self.laplacian))
        if self.kernel is None:
            if graph is None:
                raise ValueError("laplacian=None leaves no prior at all: give a kernel, or take a laplacian.")
            return graph
        n, anchors = X.shape[0], X.copy()  # the user's rows may change
        if self.n_landmarks is not None:
            q = check_integer(self.n_landmarks, "n_landmarks", 1)
            anchors = X[np.sort(check_random_state(self.random_state).permutation(n)[:q])]
        return KernelPrior(X, anchors, kernel_function(self.kernel, X), graph)

    def _ties(self, X: Any, affinity: Any, search: Searcher) -> tuple[RowGraph | None, csr_array | None]:
        """Return how new rows are tied, if that is known, and the graph of the training rows, if there is to be one."""
        if self.laplacian is None:
            if affinity is not None:
                raise ValueError("affinity is a graph, but laplacian=None leaves the graph out: name a laplacian.")
            return None, None
        normalized, k = check_laplacian(self.laplacian), check_n_neighbors(self.n_neighbors)
        if affinity is None:
            return RowGraph.of(X, self.affinity, k, self.bandwidth, search)
        return None, given_graph(affinity, X.shape[0], normalized=normalized)

    def _choose_reg(self, prior: GraphPrior | KernelPrior, X: Any, codes: np.ndarray, m: int, k_cost: int) -> None:
        """Set `reg_` and `reg_scores_`."""
        self.reg_scores_: dict[float, float] = {}
        if self.reg != "auto":
            self.reg_ = check_number(self.reg, "reg", 0)
            if self.reg_ == 0:
                raise ValueError("reg must be larger than 0, got 0: without the prior unlabelled rows have no place.")
            return
        self.reg_scores_ = choose_reg(prior, X, codes, m, k_cost, check_random_state(self.random_state))
        self.reg_ = max(self.reg_scores_, key=lambda reg: (self.reg_scores_[reg], reg))

    def fit_transform(self, X: Any, y: Any = None, *, affinity: Any = None, cost: Any = None) -> np.ndarray:
        """Fit, and return `transform(X)`, which sees the training rows as new ones; for theirs see `embedding_`."""
        return self.fit(X, y, affinity=affinity, cost=cost).transform(X, affinity=affinity)
