"""Neighborhood MinMax Projections (Nie, Xiang and Zhang, IJCAI 2007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._memory import require_memory
from .._validation import check_integer, check_n_neighbors, validate_labelled_rows
from ..graphs import binary, laplacian, mutual
from ..neighbors import nearest_other_class, nearest_same_class, searcher
from ..scatter import row_space, scatter, total_scatter
from ..spectral import Status, generalized_eigh, range_basis, trace_ratio
from .base import LinearEmbedding

# Measured peak of search, symmetrization and Laplacian, for one listed neighbour.
BYTES_PER_LISTED_NEIGHBOR = 45


class NMMP(LinearEmbedding):
    """Neighborhood MinMax Projections: mutual neighbours of a class together, mutual neighbours across classes apart.

    S_w is the scatter of the pairs of one class that are mutually among each other's k_w nearest of that class
    (eq. 3), S_b that of the pairs of two classes that are mutually among each other's k_b nearest of all other
    classes (eq. 5). NMMP maximizes

        tr(W'S_b W) / tr(W'S_w W)   subject to W'W = I     (eq. 8)

    to its global optimum, in the range of the total scatter (the paper's step 0, which is part of the problem). Where
    m directions without any within scatter exist, the ratio is infinite and S_b alone is maximized among them (the
    paper's case 2); then directions in which S_b vanishes as well, in which the paper's choice is arbitrary, are left
    out first, unless fewer than m remain.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes half of the rank of X, with `criterion="ratio_trace"` 3 times the number of classes: of
        the rules tried on many sets these lost least. With few components the trace ratio is weak: on digits 9 of them
        classify worse than 9 of the ratio trace, 30 equally well. The paper takes 60 for images and text. m = rank
        changes no distance. Choose it by cross-validation where you can.
    n_neighbors_within : int or None, default=None
        k_w; None is the paper's n_c // 2 + 2 for a class of n_c rows (at most n_c - 1). **That graph has O(sum n_c^2)
        edges**: a class of 10,000 rows takes 2 GB. Choose a number, e.g. 10, for large classes.
    n_neighbors_between : int, default=10
        k_b.
    criterion : {"trace_ratio", "ratio_trace"}, default="trace_ratio"
        "ratio_trace" maximizes tr((W'(S_w + S_b)W)^-1 W'S_b W) instead, by one generalized eigenproblem: directions
        are no longer orthonormal but scaled so that W'(S_w + S_b)W = I, and the criterion no longer depends on the
        units of the features. Strong where rows outnumber features by far; with as many features as rows it fits the
        rows it has seen.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How neighbours are found. "auto" is approximate from 100,000 rows on; a transformer is one like scikit-learn's
        KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows w_i, best first; orthonormal for the trace ratio.
    eigenvalues_ : ndarray of shape (m,)
        Descending. Trace ratio: eigenvalues of S_b - rho S_w, which sum to 0 over m at the optimum. Ratio trace: the
        share w'S_b w / w'(S_w + S_b)w of each direction, in [0, 1].
    n_components_ : int
        m.
    objective_ : float
        The trace ratio rho (infinite where S_w vanishes, the paper's case 2), or the sum of the shares.
    rank_ : int
        Dimension in which the problem was solved.
    n_iter_ : int
        Eigen-decompositions.
    search_ : str
        How neighbours were found: "exact", "approximate", "distances" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If fewer directions exist than were asked for, or if no mutual pair of strangers exists.
    ConvergenceWarning
        If the trace ratio was not reached to 1e-10 (relative).

    Notes
    -----
    The scale of the features matters to the neighbours (and to the trace ratio): standardize first unless the units
    are comparable.

    Cost: n^2 pairs of distances, O(e p + n p^2 + p^3) after them for e edges, O(e + n p + p^2) memory. For p > n the
    problem is solved in the span of the rows, O(n^2 p), without a p x p matrix.

    References
    ----------
    F. Nie, S. Xiang, C. Zhang: Neighborhood MinMax Projections. IJCAI 2007, 993-998. The optimum is found by Newton's
    method instead of the bisection of Table 1, see `nearkin.spectral.trace_ratio`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import NMMP
    >>> X, y = load_wine(return_X_y=True)
    >>> NMMP(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int = 10,
        criterion: str = "trace_ratio",
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.criterion = criterion
        self.search = search

    @with_callbacks
    def fit(self, X: Any, y: Any, *, distances: Any = None) -> NMMP:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1 is a class like any other.
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
        MemoryError
            If the graph of kin would not fit into the memory that is free.
        """
        task = FitTask(self, X, y, n_steps=3)
        X, codes = validate_labelled_rows(self, X, y)
        self._check_parameters(X.shape[1])
        sizes = np.bincount(codes)
        k_w, k_b = self._kin_counts(sizes), self.n_neighbors_between
        listed = float(sizes @ k_w)
        require_memory(
            BYTES_PER_LISTED_NEIGHBOR * listed,
            f"NMMP's graph of kin, {listed:.3g} listed neighbours at k_w up to {k_w.max()},",
            "set n_neighbors_within, e.g. to 10",
        )

        search = searcher(self.search, X.shape[0], distances)
        rows = row_space(X)
        Z = rows.coordinates
        with task.step("within scatter"):
            S_w = scatter(Z, laplacian(mutual(binary(nearest_same_class(Z, codes, k_w[codes], search)))))
        with task.step("between scatter"):
            S_b = scatter(Z, laplacian(mutual(binary(nearest_other_class(Z, codes, k_b, search)))))
        with task.step("eigenproblem"):
            W = self._maximize(S_b, S_w, lambda: total_scatter(Z), len(sizes))
        self._keep(rows.back_project(W), X.dtype)
        self.search_, self.search_recall_ = search.name, search.recall
        task.end()
        return self

    def _maximize(
        self, S_b: np.ndarray, S_w: np.ndarray, total: Callable[[], np.ndarray], n_classes: int
    ) -> np.ndarray:
        """Return the best directions as columns; `total` makes the total scatter, where the criterion needs it."""
        if self.criterion == "trace_ratio":
            return self._maximize_trace_ratio(S_b, S_w, total())
        return self._maximize_ratio_trace(S_b, S_w, n_classes)

    def _keep(self, components: np.ndarray, dtype: Any) -> None:
        self.components_ = components.astype(dtype, copy=False)
        self.n_components_ = len(components)

    def _maximize_trace_ratio(self, S_b: np.ndarray, S_w: np.ndarray, S_t: np.ndarray) -> np.ndarray:
        T = range_basis(S_t)  # step 0
        m = self.n_components or -(-T.shape[1] // 2)
        result = trace_ratio(T.T @ S_b @ T, T.T @ S_w @ T, m)
        if result.status in (Status.UNBOUNDED, Status.FLAT):  # case 2
            seen = range_basis(S_w + S_b)
            if seen.shape[1] >= m:
                T, result = seen, trace_ratio(seen.T @ S_b @ seen, seen.T @ S_w @ seen, m)
        result.warn()
        self.rank_, self.n_iter_ = T.shape[1], result.n_iter
        self.eigenvalues_, self.objective_ = result.values, result.objective
        return T @ result.vectors

    def _maximize_ratio_trace(self, S_b: np.ndarray, S_w: np.ndarray, n_classes: int) -> np.ndarray:
        result = generalized_eigh(S_b, S_w, self.n_components)
        result.warn()
        kept = slice(self.n_components or 3 * n_classes)
        self.rank_, self.n_iter_ = result.rank, result.n_iter
        self.eigenvalues_ = result.values[kept]
        self.objective_ = float(self.eigenvalues_.sum())
        return result.vectors[:, kept]

    def _check_parameters(self, p: int) -> None:
        """Raise an error that names what is wrong, for p features."""
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", 1, p)
        if self.n_neighbors_within is not None:
            check_n_neighbors(self.n_neighbors_within, "n_neighbors_within")
        check_n_neighbors(self.n_neighbors_between, "n_neighbors_between")
        if self.criterion not in ("trace_ratio", "ratio_trace"):
            raise ValueError(f"criterion must be 'trace_ratio' or 'ratio_trace', got {self.criterion!r}.")

    def _kin_counts(self, sizes: np.ndarray) -> np.ndarray:
        """Return k_w for every class, from the number of its rows."""
        k_w = sizes // 2 + 2 if self.n_neighbors_within is None else np.full(len(sizes), self.n_neighbors_within)
        return np.minimum(k_w, sizes - 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
