"""Relevant Component Analysis (Bar-Hillel, Hertz, Shental and Weinshall, JMLR 2005)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._labels import encode_labels, encode_partial_labels
from .._validation import check_choice
from ..span import RANK_TOLERANCE
from ..spectral import SpectralResult, Status, largest_scatter_first, ratio_trace
from ._rows import Rows
from .base import SpectralEmbedding

LABELS = {"classes": encode_labels, "chunklets": encode_partial_labels}


class RCA(SpectralEmbedding):
    """Relevant Component Analysis: whitening by the covariance within chunklets, sets of rows that belong together.

    Rows are known to belong together because they share a class label, or by any other knowledge. With m_c the means
    of the chunklets, n the number of rows in them and all rows in S_t,

        S_w = sum_c sum_{i in c} (x_i - m_c)(x_i - m_c)',    S_t = sum_i (x_i - m)(x_i - m)',

    RCA learns the metric n S_w^-1. With fewer components it is taken after the constrained Fisher discriminant, and
    both at once are

        max tr((V'S_w V)^-1 V'S_t V)   subject to   V'S_w V = n I:

    the largest eigenvalues of S_t v = lambda S_w v. For c classes the first c - 1 are LDA's directions. All others
    have lambda = 1; of equal eigenvalues, the direction in which rows vary most comes first, so that a single chunklet
    of all rows gives whitened PCA.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_w: the whole metric.
    target : {"classes", "chunklets"}, default="classes"
        What y holds. "classes": every row has a label. "chunklets": rows of one label belong together, and those of -1
        (None or NaN, too) are in no chunklet. Rows of two chunklets may belong together as well.

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
        If rows of one chunklet vary in fewer directions than requested.

    Notes
    -----
    No metric is finite in a direction in which rows of one chunklet do not vary at all, so the null space of S_w is
    left out; the metric is n times the pseudo-inverse of S_w. What separates the rows in that null space is lost.
    `rank_` is at most n - c for n rows in c chunklets: where it is less than the rank of X, reduce the features first,
    e.g. with PCA.

    A chunklet of one row contributes nothing and does not count for n. The metric does not depend on the units of the
    features, nor on any other invertible linear change of them (but the order of equal eigenvalues does).

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

    compared_as: ClassVar[dict] = {"RCA": {"growth": 1}}

    def __init__(self, n_components: int | None = None, *, target: str = "classes") -> None:
        self.n_components = n_components
        self.target = target

    def _solve(self, rows: Rows) -> SpectralResult:
        S_t, S_w = rows.total_scatter(), rows.within_scatter()
        # A coordinate whose deviation within chunklets is 1e-10 of that of all rows is the rounding of what differs
        # only between chunklets; the whitening would divide by it.
        varies = np.diag(S_w) > RANK_TOLERANCE**2 * np.diag(S_t)
        if not varies.any():
            raise ValueError(
                "No two rows of one label differ, so there is no scatter to whiten: give rows that belong together the "
                "same label in y."
            )
        result = ratio_trace(-S_t, S_w * np.outer(varies, varies))
        m = min(self.n_components or result.rank, result.rank)
        n = rows.class_sizes[rows.class_sizes > 1].sum()
        V, values = largest_scatter_first(result.vectors, -result.values)[:, :m], -result.values[:m]
        return replace(
            result,
            vectors=np.sqrt(n) * V,
            values=values,
            objective=float(values.sum()),
            requested=self.n_components or m,
            status=Status.RANK_DEFICIENT if m < (self.n_components or m) else result.status,
        )

    def _encode_labels(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        check_choice(self.target, "target", LABELS)
        return LABELS[self.target](y)
