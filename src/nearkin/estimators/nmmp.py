"""Neighborhood MinMax Projections (Nie, Xiang and Zhang, IJCAI 2007)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._validation import check_choice, check_integer
from ..neighbors import BYTES_PER_NEIGHBOR
from ..spectral import SpectralResult, Status, generalized_eigh, range_basis, trace_ratio
from ._rows import Rows
from .base import SpectralEmbedding


def _default_edges_bytes(class_sizes: np.ndarray) -> float:
    return BYTES_PER_NEIGHBOR * float(np.sum(class_sizes * (class_sizes / 2 + 2)))


class NMMP(SpectralEmbedding):
    """Neighborhood MinMax Projections: attract mutual same-class neighbours, repel mutual other-class neighbours.

    S_w is the scatter of the pairs of one class that are mutually among each other's k_w nearest of that class
    (eq. 3), S_b that of the pairs of two classes that are mutually among each other's k_b nearest of all other
    classes (eq. 5). NMMP maximizes

        tr(W'S_b W) / tr(W'S_w W)   subject to W'W = I     (eq. 8)

    to its global optimum, in the range of the total scatter (the paper's step 0, which is part of the problem). Where
    m directions without within-class scatter exist, the ratio is infinite and S_b alone is maximized among them (the
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
        units of the features. Strong where rows outnumber features by far; with as many features as rows it overfits.
    search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows w_i, best first; orthonormal for the trace ratio.
    eigenvalues_ : ndarray of shape (m,)
        Descending. Trace ratio: eigenvalues of S_b - rho S_w, which sum to 0 over m at the optimum. Ratio trace: the
        share w'S_b w / w'(S_w + S_b)w of each direction, in [0, 1].
    objective_ : float
        The trace ratio rho (infinite where S_w vanishes, the paper's case 2), or the sum of the shares.
    rank_ : int
        Dimension in which the problem was solved.
    n_iter_ : int
        Eigen-decompositions.
    n_components_, search_, search_recall_
        See `LDE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested, or if no rows of different classes are mutual neighbours.
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

    compared_as: ClassVar[dict] = {
        "NMMP ratio trace": {"params": {"criterion": "ratio_trace"}, "memory": _default_edges_bytes},
        "NMMP": {
            "settings": lambda p: [
                {"n_components": m} for m in sorted({min(m, p) for m in (1, 2, 3, 5, 10, 20, 40, 60, 100)})
            ],
            "nested": False,
            "memory": _default_edges_bytes,
        },
    }

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

    def _solve(self, rows: Rows) -> SpectralResult:
        n_c = rows.class_sizes
        k_w = n_c // 2 + 2 if self.n_neighbors_within is None else np.full(len(n_c), self.n_neighbors_within)
        S_w = rows.scatter(rows.mutual_knn("same", np.minimum(k_w, n_c - 1)))
        S_b = rows.scatter(rows.mutual_knn("other", self.n_neighbors_between))
        if self.criterion == "ratio_trace":
            result = generalized_eigh(S_b, S_w, self.n_components)
            m = self.n_components or 3 * len(n_c)
            objective = float(result.values[:m].sum())
            result = replace(result, vectors=result.vectors[:, :m], values=result.values[:m], objective=objective)
        else:
            T = range_basis(rows.total_scatter())  # step 0
            m = self.n_components or -(-T.shape[1] // 2)
            result = _trace_ratio_in(T, S_b, S_w, m)
            if result.status in (Status.UNBOUNDED, Status.FLAT):  # case 2
                T = range_basis(S_w + S_b)
                result = _trace_ratio_in(T, S_b, S_w, m) if T.shape[1] >= m else result
        self.n_iter_ = result.n_iter
        return result

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        if self.n_neighbors_within is not None:
            check_integer(self.n_neighbors_within, "n_neighbors_within", 1)
        check_integer(self.n_neighbors_between, "n_neighbors_between", 1)
        check_choice(self.criterion, "criterion", ("trace_ratio", "ratio_trace"))


def _trace_ratio_in(T: np.ndarray, S_b: np.ndarray, S_w: np.ndarray, m: int) -> SpectralResult:
    """Return the optimum among the directions in the range of T, which has orthonormal columns."""
    result = trace_ratio(T.T @ S_b @ T, T.T @ S_w @ T, m)
    return replace(result, vectors=T @ result.vectors, rank=T.shape[1])
