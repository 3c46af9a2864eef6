"""Relevant Component Analysis (Bar-Hillel, Hertz, Shental and Weinshall, JMLR 2005)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from .._array import check_integer, validate_labelled_rows, validate_rows
from .._callbacks import FitTask, with_callbacks
from ..scatter import row_space, total_scatter, within_scatter
from ..spectral import ZERO, SpectralResult, Status, ratio_trace
from .base import LinearEmbedding


class RCA(LinearEmbedding):
    """Relevant Component Analysis: whiten what varies among rows that belong together.

    Chunklets are small sets of rows known to be of one class, whichever it is. With the covariance within them,

        S_w = 1/n sum_c sum_(i in c) (x_i - m_c)(x_i - m_c)'    (n rows in chunklets)

    the learned metric is S_w^-1: directions in which equals differ count little. Fewer dimensions are chosen as
    Fisher's discriminant does, by the largest eigenvalues of `S_t v = lambda S_w v`, S_t the scatter of all rows, and
    whitened: V'S_w V = I. With whole classes for chunklets it is LDA whose coordinates are not limited to classes - 1.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes `rank_`.
    target : {"classes", "chunklets"}, default="classes"
        What y holds: labels, each class a chunklet; or numbers of chunklets, -1 for rows that are in none.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        V', largest eigenvalue first, of equal ones the direction in which the rows vary most. With m = p their product
        V V' is S_w^-1.
    eigenvalues_ : ndarray of shape (m,)
        lambda, descending, at least 1 without lone rows: how many times more all rows vary than chunklets do.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Number of directions in which the rows vary and chunklets do, too. Those in which chunklets do not vary would
        be stretched without end; they are left out.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If fewer than n_components directions exist.

    Notes
    -----
    Indifferent to the units of the features, and to any invertible mixing of them.

    Cost: O(n p^2 + p^3) time and O(n p + p^2) memory. For p > n the problem is solved in the span of the rows,
    O(n^2 p), without a p x p matrix.

    References
    ----------
    A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall: Learning a Mahalanobis Metric from Equivalence Constraints.
    Journal of Machine Learning Research 6 (2005) 937-965.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from nearkin import RCA
    >>> X, y = load_wine(return_X_y=True)
    >>> RCA(2).fit_transform(X, y).shape
    (178, 2)
    """

    def __init__(self, n_components: int | None = None, *, target: str = "classes") -> None:
        self.n_components = n_components
        self.target = target

    @with_callbacks
    def fit(self, X: Any, y: Any) -> RCA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; or integers, -1 for rows in no chunklet.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X or y is not as above or not finite, a parameter is out of bounds, or no two rows that differ are in a
            chunklet.
        """
        task = FitTask(self, X, y, n_steps=2)
        if self.target == "classes":
            X, chunklets = validate_labelled_rows(self, X, y)
        elif self.target == "chunklets":
            X, chunklets = validate_rows(self, X, reset=True), _chunklets(y)
        else:
            raise ValueError(f"target must be 'classes' or 'chunklets', got {self.target!r}.")
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        if len(chunklets) != X.shape[0]:
            raise ValueError(f"y has {len(chunklets)} chunklets for the {X.shape[0]} rows of X.")

        rows = row_space(X)
        inside = chunklets >= 0
        n = inside.sum()
        with task.step("scatter"):
            S_t = total_scatter(rows.coordinates)
            S_w = within_scatter(rows.coordinates[inside], np.unique(chunklets[inside], return_inverse=True)[1])
        with task.step("eigenproblem"):
            result = _finite(ratio_trace(S_w, S_t), m)  # the reciprocal quotient: finite where S_w vanishes
        result.warn()

        self.components_ = rows.lift(result.vectors * np.sqrt(n / result.values)).astype(X.dtype, copy=False)
        self.eigenvalues_ = 1 / result.values
        self.n_components_ = self.components_.shape[0]
        self.objective_ = float(self.eigenvalues_.sum())
        self.rank_ = result.rank
        task.end()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _finite(result: SpectralResult, m: int | None) -> SpectralResult:
    """Return the m smallest eigenvalues that are not 0, and their vectors."""
    kept = np.flatnonzero(result.values > ZERO)
    if not len(kept):
        raise ValueError("y puts no two rows that differ together: no chunklet, or class, varies.")
    values, vectors = result.values[kept], result.vectors[:, kept]
    equal = values > 1 - 1e-8  # the means of chunklets do not differ: all but classes - 1 directions
    vectors[:, equal] @= eigh(vectors[:, equal].T @ vectors[:, equal])[1]  # the shortest, of largest variance, first
    status = Status.RANK_DEFICIENT if m is not None and m > len(kept) else result.status
    return replace(
        result, values=values[:m], vectors=vectors[:, :m], rank=len(kept), asked=m or len(kept), status=status
    )


def _chunklets(y: Any) -> np.ndarray:
    """Return the number of every row's chunklet, -1 for none."""
    y = np.asarray(y)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold integers, the number of each row's chunklet or -1 for none; got {y.dtype} of shape {y.shape}."
        )
    if len(np.unique(y[y >= 0])) == np.sum(y >= 0):
        raise ValueError("y puts no two rows into one chunklet: there is nothing that belongs together.")
    return y
