"""Relevant Component Analysis (Bar-Hillel, Hertz, Shental and Weinshall, JMLR 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._labels import encode_labels, encode_partial_labels
from .._validation import check_integer, validate_labelled_rows
from .._warn import warn_user
from ..scatter import RANK_TOLERANCE, row_space, total_scatter, within_scatter
from ..spectral import largest_scatter_first, ratio_trace
from .base import LinearEmbedding

LABELS = {"classes": encode_labels, "chunklets": encode_partial_labels}


class RCA(LinearEmbedding):
    """Relevant Component Analysis: shrink the directions in which rows that belong together vary, to one unit each.

    Chunklets are small sets of rows that are known to belong together, be it because they share a class label or only
    because somebody says so. With m_c their means, n the number of rows in them and all rows in S_t,

        S_w = sum_c sum_{i in c} (x_i - m_c)(x_i - m_c)',    S_t = sum_i (x_i - m)(x_i - m)',

    RCA is the whitening by the covariance within chunklets, the metric n S_w^-1. With fewer components it is taken
    after the constrained Fisher discriminant, and both at once are

        max tr((V'S_w V)^-1 V'S_t V)   subject to   V'S_w V = n I:

    the largest eigenvalues of S_t v = lambda S_w v. For c classes the first c - 1 are LDA's directions. All others tell
    the classes equally little apart (lambda = 1); of such ties, the direction in which rows vary most comes first, so
    that a single chunklet of all rows gives whitened PCA.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w: the whole metric.
    target : {"classes", "chunklets"}, default="classes"
        What y says. "classes": every row has a label. "chunklets": rows of one label belong together, and those of -1
        (None or NaN, too) are in no chunklet. Rows of two chunklets may belong together as well, nothing follows from
        that they are two.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i: in these coordinates the covariance within chunklets is the identity.
    eigenvalues_ : ndarray of shape (m,)
        Descending: the scatter of all rows in units of the scatter within chunklets, 1 and more.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Rank of S_w.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If rows of one chunklet vary in fewer directions than were asked for.

    Notes
    -----
    No metric is finite in a direction in which rows of one chunklet do not vary at all, so the null space of S_w is
    left out; the metric is n times the pseudo-inverse of S_w. Whatever tells the rows apart in that null space is
    lost. `rank_`, at most n - c for n rows in c chunklets, says what is left: where it is less than the rank of X,
    reduce the features first, e.g. with PCA.

    A chunklet of one row carries nothing: it does not count for n either. The metric is indifferent to the units of
    the features, and to any other invertible linear change of them (but not which of tied directions comes first).

    Cost: O(n p^2 + p^3), O(n p + p^2) memory. For p > n the problem is solved in the span of the rows, O(n^2 p),
    without a p x p matrix.

    References
    ----------
    A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall: Learning a Mahalanobis Metric from Equivalence Constraints.
    Journal of Machine Learning Research 6 (2005) 937-965.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from nearkin import RCA
    >>> X, y = load_wine(return_X_y=True)
    >>> RCA(n_components=2).fit_transform(X, y).shape
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
            Class labels, at least two classes and -1 a class like any other; or chunklets, see `target`.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X or y is not as above or not finite, no two rows of one chunklet differ, or a parameter is out of
            bounds.
        """
        task = FitTask(self, X, y, n_steps=3)
        if self.target not in LABELS:
            raise ValueError(f"target must be 'classes' or 'chunklets', got {self.target!r}.")
        X, codes = validate_labelled_rows(self, X, y, LABELS[self.target])
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])

        rows = row_space(X)
        Z = rows.coordinates
        with task.step("total scatter"):
            S_t = total_scatter(Z)
        with task.step("within scatter"):
            S_w, n = _within_chunklets(Z, codes, S_t)
        with task.step("eigenproblem"):
            result = ratio_trace(-S_t, S_w)
        result.warn()

        self.rank_ = result.rank
        self.n_components_ = self._n_kept(m)
        self.eigenvalues_ = -result.values[: self.n_components_]
        self.objective_ = float(self.eigenvalues_.sum())
        V = largest_scatter_first(result.vectors, -result.values)[:, : self.n_components_]
        self.components_ = (np.sqrt(n) * rows.back_project(V)).astype(X.dtype, copy=False)
        task.end()
        return self

    def _n_kept(self, m: int | None) -> int:
        if m is not None and m > self.rank_:
            warn_user(
                f"n_components={m} were asked for, but rows that belong together vary in {self.rank_} directions only, "
                "which were kept: lower n_components, or give more rows that belong together."
            )
        return min(m or self.rank_, self.rank_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _within_chunklets(Z: Any, codes: np.ndarray, S_t: np.ndarray) -> tuple[np.ndarray, int]:
    """Return S_w and the number of rows that share a chunklet; code -1 is in none.

    A coordinate whose deviation within chunklets is 1e-10 of that of all rows, or less, is set to exactly 0 in S_w: it
    is the rounding of what differs only between chunklets, and the whitening would divide by it.
    """
    _, number, size = np.unique(codes, return_inverse=True, return_counts=True)
    shared = np.flatnonzero((codes >= 0) & (size[number] > 1))
    S_w = np.zeros_like(S_t)
    if len(shared):
        S_w = within_scatter(Z[shared], np.unique(codes[shared], return_inverse=True)[1])
    varies = np.diag(S_w) > RANK_TOLERANCE**2 * np.diag(S_t)
    if not varies.any():
        raise ValueError(
            "No two rows of one label differ, so there is no scatter to whiten: give rows that belong together the "
            "same label in y."
        )
    return S_w * np.outer(varies, varies), len(shared)
