"""What a spectral method needs of its rows: graphs and scatters.

`Rows` is a table in memory; `SharedRows` serves many methods and computes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator

from .._validation import relative_weights, weighted_rows, weights_of
from ..graphs import binary, heat_kernel, kth_distance, laplacian, mutual, union
from ..neighbors import Searcher, closest_listed, first, neighbor_lists, searcher
from ..scatter import (
    RowSpace,
    between_scatter,
    local_fisher_scatters,
    pair_covariances,
    row_space,
    rows_with_ones,
    scatter,
    scatter_operator,
    span_basis,
    total_scatter,
    triangular_factor,
    within_scatter,
)
from .validation import validate_labelled_rows

WEIGHTS: dict[str, Callable[..., csr_array]] = {"binary": binary, "heat": heat_kernel}


class Rows:
    """Rows with classes, their graphs, and the scatters of these graphs.

    The rows are a dense or sparse table in memory, for p > n in coordinates of the span of the
    rows. `nearkin.dask` implements the same methods for rows on a cluster, so the type of a graph
    is whatever `scatter` accepts. `relation` says which rows may be neighbours: "all", those of the
    "same" class, or those of any "other" class. k is one number for all rows, or an array with one
    number per class.

    A row of weight s_i counts as s_i copies, which are not adjacent to each other: the k nearest
    rows are k distinct ones, an edge w_ij becomes s_i s_j w_ij, and every mean and every scatter is
    that of all copies.

    Parameters
    ----------
    X : array or csr_array of shape (n, p)
    codes : ndarray of shape (n,)
        Class codes 0, 1, ..., and -1 for rows without a label.
    search : Searcher
        Its name becomes `search_` of the estimator.
    classes : ndarray of shape (n_classes,), default=None
        Their labels; None for 0, 1, ....
    weights : ndarray of shape (n,), default=None
        Positive weights s_i of the rows; None for 1. Only their ratios matter: they are divided by
        their mean.
    in_span : bool, default=True
        Whether the problem is solved in the span of the rows if p > n. If False, it is solved in
        the features, without forming p x p matrices.

    Attributes
    ----------
    shape : tuple of int
        (n, p).
    dtype : dtype
        The dtype of the components.
    class_sizes : ndarray of shape (n_classes,)
        Number of distinct rows of each class. Without labels, all rows form one class.
    class_weights : ndarray of shape (n_classes,)
        Sum of the weights of the rows of each class.
    X : array or csr_array of shape (n, d)
        The rows in the coordinates in which the problem is solved.
    space : RowSpace
        Converts between these coordinates and the features.
    n_complement : int
        Number of feature dimensions outside the span of the rows, if the problem is solved in the
        span.
    """

    def __init__(
        self,
        X: Any,
        codes: np.ndarray,
        search: Searcher,
        *,
        classes: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        in_span: bool = True,
    ) -> None:
        self.shape, self.dtype = X.shape, X.dtype
        self.codes = codes
        self.weights = relative_weights(weights)
        labelled = codes >= 0
        self.class_sizes = np.bincount(codes[labelled])
        self.class_weights = np.bincount(codes[labelled], weights_of(self.weights, labelled))
        self.classes = np.arange(len(self.class_sizes)) if classes is None else classes
        self.search = search
        self.space = row_space(X) if in_span else RowSpace(X)
        self.X = self.space.coordinates
        self.n_complement = X.shape[1] - self.X.shape[1]

    def _knn(self, relation: str, k: Any) -> csr_array:
        k = k if np.ndim(k) == 0 else k[self.codes]
        return neighbor_lists(self.X, self.codes, k, relation, self.search)

    def _copies(self, G: csr_array) -> np.ndarray | None:
        """Return s_i s_j for every listed neighbour j of i, the number of pairs of their copies."""
        if self.weights is None:
            return None
        return np.repeat(self.weights, np.diff(G.indptr)) * self.weights[G.indices]

    def union_knn(self, relation: str, k: Any, weights: str = "binary") -> csr_array:
        """Return the union k-NN graph.

        i and j are adjacent if either is among the other's k nearest. Weights are 1 ("binary"), or
        `exp(-d^2 / t)` ("heat"), where t is the mean of d^2 over the k nearest of every row.
        """
        G = self._knn(relation, k)
        return union(WEIGHTS[weights](G, copies=self._copies(G)))

    def mutual_knn(self, relation: str, k: Any) -> csr_array:
        """Return the mutual k-NN graph.

        i and j are adjacent if each is among the other's k nearest. All weights are 1.
        """
        G = self._knn(relation, k)
        return mutual(binary(G, self._copies(G)))

    def mean_knn(self, relation: str, k: Any) -> csr_array:
        """Return the graph whose scatter is the mean over the k nearest rows of every row.

        This is the mean of (x_i - x_j)(x_i - x_j)' over the k nearest j of all i. A pair of mutual
        neighbours counts twice.
        """
        G = self._knn(relation, k)
        W = binary(G, self._copies(G))
        return csr_array(W + W.T) / (W.sum() or 1.0)

    def closest_pairs(self, k: int) -> csr_array:
        """Return the graph of the k closest pairs of a row in class c and one outside, for every c.

        All weights are 1.
        """
        G = closest_listed(self._knn("other", k), self.codes, k)
        return union(binary(G, self._copies(G)))

    def scatter(self, graph: csr_array) -> np.ndarray:
        """Return S(W) = X'LX = 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)'."""
        return scatter(self.X, laplacian(graph))

    def scatter_operator(self, graph: csr_array) -> LinearOperator:
        """Return S(W) as an operator, without forming the matrix."""
        return scatter_operator(self.X, laplacian(graph))

    def degrees(self, graph: csr_array) -> np.ndarray:
        """Return W 1, the sum of the edge weights of every row."""
        return graph.sum(axis=1)

    def span_basis(self) -> np.ndarray:
        """Return an orthonormal basis (d, r) of the span of the centred rows.

        It is in the coordinates of the scatters. The rank is decided after every feature is scaled
        to unit length (1e-10, on singular values).
        """
        if self.n_complement:
            return np.eye(self.X.shape[1])
        mean = np.asarray(self.X.mean(axis=0, dtype=np.float64))
        return span_basis(triangular_factor(rows_with_ones(self.X)), mean)

    def total_scatter(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return sum_i w_i (x_i - m)(x_i - m)' with the weighted mean m; by default w_i = s_i."""
        return total_scatter(self.X, self.weights if weights is None else weights)

    def within_scatter(self) -> np.ndarray:
        """Return sum_c sum_{i in c} (x_i - m_c)(x_i - m_c)', over the labelled rows."""
        labelled = self.codes >= 0
        if not labelled.any():
            return np.zeros(2 * self.X.shape[1:])
        s = weights_of(self.weights, labelled)
        return within_scatter(self.X[labelled], self.codes[labelled], sample_weight=s)

    def between_scatter(self) -> np.ndarray:
        """Return sum_c n_c (m_c - m)(m_c - m)', with the mean m of the labelled rows."""
        labelled = self.codes >= 0
        s = weights_of(self.weights, labelled)
        return between_scatter(self.X[labelled], self.codes[labelled], s)

    def local_fisher_scatters(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return LFDA's S_w and S_b.

        The local scale is the distance to the k-th nearest row of the same class.
        """
        scales = kth_distance(self._knn("same", k), k)
        return local_fisher_scatters(self.X, self.codes, scales, self.weights)

    def pair_covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean scatters of all same-class pairs and of all other-class pairs.

        These are means of (x_i - x_j)(x_i - x_j)'. A mean over no pairs is 0.
        """
        return pair_covariances(self.X, self.codes, self.weights)

    def back_project(self, V: np.ndarray) -> np.ndarray:
        """Return directions, given as columns in the coordinates of the scatters, as rows (m, p).

        The largest entry of each row is positive. V may have up to `n_complement` additional rows:
        coordinates in an orthonormal basis of the complement of the span.
        """
        return self.space.back_project(V)


# Neighbours per row in the first search: finding 64 takes as long as 2, and later calls ask for
# more.
FIRST_SEARCH = 32


class SharedRows(Rows):
    """Rows with labels, shared by any number of spectral methods.

    Each graph, scatter and search is computed once. `method.fit_rows(SharedRows(X, y))` learns the
    map of `method.fit(X, y)` for every `SpectralEmbedding`, except that ties between equally near
    rows may be broken differently. Every label is a class, including -1, and no number of
    neighbours may be "auto": `method.takes_shared_rows()` tells whether a method can. All results
    are kept as long as the object exists.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels, at least two classes.
    search
        See `LDE`. The methods' own parameter `search` is ignored.
    sample_weight : array of shape (n,), default=None
        See `fit` of the methods.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LDE, NMMP
    >>> from nearkin.estimators import SharedRows
    >>> X, y = load_wine(return_X_y=True)
    >>> rows = SharedRows(scale(X), y)
    >>> [method.fit_rows(rows).n_components_ for method in (LDE(2), NMMP(3), NMMP(5))]
    [2, 3, 5]
    """

    def __init__(self, X: Any, y: Any, search: Any = "exact", *, sample_weight: Any = None) -> None:
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        X, classes, codes = validate_labelled_rows(BaseEstimator(), X, y)
        search = searcher(search, X.shape[0])
        super().__init__(X, codes, search, classes=classes, weights=weights)
        self._answers: dict[tuple, tuple[Any, tuple]] = {}
        self._lists: dict[str, tuple[Any, csr_array]] = {}

    def _knn(self, relation: str, k: Any) -> csr_array:
        searched, G = self._lists.get(relation, (FIRST_SEARCH, None))
        if G is None or np.any(k > searched):
            searched = np.maximum(k, searched)
            G = super()._knn(relation, searched)
            self._lists[relation] = searched, G
        return first(G, k if np.ndim(k) == 0 else k[self.codes])


def _kept(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with its results cached, one per set of equal arguments."""

    @wraps(method)
    def answer(self: SharedRows, *args: Any, **kwargs: Any) -> Any:
        arguments = *args, *kwargs.values()
        question = (method.__name__, *map(_identity, arguments))
        if question not in self._answers:
            # the arguments are stored, too, so that no other graph can get the id of one of them
            self._answers[question] = method(self, *args, **kwargs), arguments
        return self._answers[question][0]

    return answer


def _identity(argument: Any) -> Any:
    """Return a key of an argument: the identity of a graph, the contents of an array."""
    if issparse(argument):
        return id(argument)
    if isinstance(argument, np.ndarray):
        return argument.dtype.str, argument.tobytes()
    return argument


# The methods whose results are cached.
for _question in (
    *("union_knn", "mutual_knn", "mean_knn", "closest_pairs"),
    *("scatter", "degrees", "span_basis", "total_scatter", "within_scatter", "between_scatter"),
    *("local_fisher_scatters", "pair_covariances"),
):
    setattr(SharedRows, _question, _kept(getattr(Rows, _question)))
