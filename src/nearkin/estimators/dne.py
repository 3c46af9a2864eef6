"""Discriminant Neighborhood Embedding (Zhang, Xue, Lu and Guo, Pattern Recognition 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._callbacks import FitTask, with_callbacks
from .._validation import check_integer, check_n_neighbors, validate_labelled_rows
from .._warn import warn_user
from ..graphs import binary, laplacian, signed, union
from ..neighbors import EXACT, Searcher, nearest_other_class, nearest_same_class, searcher
from ..scatter import RowSpace, row_space, scatter, scatter_operator
from ..spectral import ZERO, SpectralResult, choose_solver, trace_difference
from .base import LinearEmbedding


class DNE(LinearEmbedding):
    """Discriminant Neighborhood Embedding: pull near kin, push near strangers; the spectrum chooses the dimension.

    Every row is tied to its k nearest rows of the same class (+1) and to its k nearest rows of the other classes
    (-1); i and j are tied if either lists the other: the signed graph F (eq. 1). With orthonormal P, DNE minimizes

        Phi(P) = sum_ij F_ij ||P'x_i - P'x_j||^2 = 2 tr P'X'(S - F)XP,   S = diag(F 1)     (eq. 5-7)

    solved by the eigenvectors of the smallest eigenvalues of X'(S - F)X. A direction with a negative eigenvalue
    separates neighbours of different classes more than it spreads kin, so the negative ones are kept (eq. 10).

    Parameters
    ----------
    n_components : int, float or None, default=None
        None keeps all directions of negative eigenvalue. A float theta in (0, 1] keeps the fewest whose eigenvalues
        make up the share theta of the negative sum (eq. 14; the paper uses 0.96). An integer keeps that many, at most
        p, and may exceed the negative ones: with p the distances are those of the raw features again.
    n_neighbors : int, default=1
        k of the graph (not of a later vote).
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Orthonormal rows, smallest eigenvalue first.
    eigenvalues_ : ndarray
        Ascending eigenvalues of X'(S - F)X; the first m belong to `components_`. For p > n the zeros outside the span
        of the rows are left out (unless components were asked for there). Only m of them when Lanczos was used.
    n_components_ : int
        m.
    objective_ : float
        Phi(P), twice the sum of the kept eigenvalues (eq. 13).
    search_ : str
        How neighbours were found: "exact", "approximate", "distances" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If no eigenvalue is negative (the paper's figure 1d: classes not separable along any direction) and none was
        asked for by number. The one direction of the smallest eigenvalue is kept then.

    Notes
    -----
    The scale of the features matters: a feature in small units has a small eigenvalue and is dropped. Standardize
    first unless the units are comparable.

    Cost: n^2 pairs of distances, O(n k p + n p^2 + p^3) after them, O(n k + p^2) memory. For p > n the problem is
    solved in the span of the rows, O(n^2 p), without a p x p matrix. With an integer n_components far below a large
    min(n, p), the eigenvectors come from Lanczos iterations without any matrix.

    References
    ----------
    W. Zhang, X. Xue, H. Lu, Y.-F. Guo: Discriminant Neighborhood Embedding for Classification. Pattern Recognition 39
    (2006) 2240-2243.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import DNE
    >>> X, y = load_wine(return_X_y=True)
    >>> DNE(n_components=0.96, n_neighbors=5).fit_transform(scale(X), y).shape
    (178, 9)
    """

    def __init__(self, n_components: Any = None, *, n_neighbors: int = 1, search: Any = "exact") -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any, *, distances: Any = None) -> DNE:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1 is a class like any other. A class of one row has no kin to pull.
        distances : sparse matrix of shape (n, n), default=None
            Distances from every row to some others, in place of a search; rows that lack neighbours of a kind use what
            they have, with a warning. Cross-validation cannot cut it.

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
            If X or y is not as above or not finite, or a parameter is out of bounds.
        """
        task = FitTask(self, X, y, n_steps=3)
        X, codes = validate_labelled_rows(self, X, y)
        k = check_n_neighbors(self.n_neighbors)
        wanted = check_dimension(self.n_components, X.shape[1])

        search = searcher(self.search, X.shape[0], distances)
        few = wanted if isinstance(wanted, int) and choose_solver(min(X.shape), wanted) == "lanczos" else None
        rows = row_space(X) if few is None else RowSpace(X, None)
        with task.step("graph"):
            L = laplacian(discriminant_adjacency(rows.coordinates, codes, k, search))
        with task.step("scatter"):
            S = scatter(rows.coordinates, L) if few is None else scatter_operator(rows.coordinates, L)
        with task.step("eigenproblem"):
            result = trace_difference(S, few)
        self._keep(result, rows, wanted, X.dtype)
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self

    def _keep(self, result: SpectralResult, rows: RowSpace, wanted: int | float | None, dtype: Any) -> None:
        """Set what the spectrum of X'(S - F)X says, in the features."""
        result.warn()
        m = wanted if isinstance(wanted, int) else _n_leading(result.values, wanted)
        components, self.eigenvalues_ = _with_unseen_directions(rows, result, m)
        self.components_ = components[:m].astype(dtype, copy=False)
        self.n_components_ = m
        self.objective_ = 2 * float(self.eigenvalues_[:m].sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def discriminant_adjacency(X: Any, y: Any, n_neighbors: int, search: Searcher = EXACT) -> csr_array:
    """Return F (n, n) of eq. 1: +1 between near kin, -1 between near strangers, tied if either lists the other."""
    kin = union(binary(nearest_same_class(X, y, n_neighbors, search)))
    strangers = union(binary(nearest_other_class(X, y, n_neighbors, search)))
    return signed(kin, strangers)


def _n_negative(eigenvalues: np.ndarray) -> int:
    return int(np.sum(eigenvalues < -ZERO * np.abs(eigenvalues).max()))


def _n_leading(eigenvalues: np.ndarray, theta: float | None) -> int:
    """Return d (eq. 10), or the smallest t whose eigenvalues make up the share theta of the negative sum (eq. 14)."""
    d = _n_negative(eigenvalues)
    if d == 0:
        warn_user(
            "No direction separates neighbours of different classes more than it spreads kin (no negative "
            "eigenvalue): the one of the smallest eigenvalue is kept. Try other features, a larger n_neighbors, or "
            "KernelPCA or Nystroem before DNE."
        )
        return 1
    if theta is None:
        return d
    share = np.cumsum(-eigenvalues[:d])
    return int(np.searchsorted(share, theta * share[-1])) + 1


def _with_unseen_directions(rows: RowSpace, result: SpectralResult, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return components (at least m) and eigenvalues in ascending order.

    For p > n the directions outside the span of the rows have eigenvalue 0: they stand between the negative and the
    positive ones, and are made up only as far as m reaches them.
    """
    components, eigenvalues = rows.back_project(result.vectors), result.values
    d = _n_negative(eigenvalues)
    if rows.to_features is None or m <= d:
        return components, eigenvalues
    unseen = rows.outside(min(m - d, rows.basis.shape[1] - rows.basis.shape[0]))
    return np.insert(components, [d] * len(unseen), unseen, axis=0), np.insert(eigenvalues, [d] * len(unseen), 0.0)


def check_dimension(value: Any, p: int) -> int | float | None:
    """Return DNE's n_components if it is None, a share in (0, 1] or an integer from 1 to p, else raise."""
    if isinstance(value, (float, np.floating)):
        if not 0 < value <= 1:
            raise ValueError(f"n_components as a share (theta of eq. 14) must be in (0, 1], got {value}.")
        return float(value)
    return None if value is None else check_integer(value, "n_components", 1, p)
