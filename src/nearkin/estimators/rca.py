"""Relevant Component Analysis (Bar-Hillel, Hertz, Shental and Weinshall, JMLR 2005)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from .._labels import encode_labels, encode_partial_labels
from .._messages import counted, warn_user
from .._validation import check_choice
from ..graphs import connected_components
from ..linalg import RANK_TOLERANCE
from ..neighbors import EXACT
from ..spectral import LEAST_WITHIN, SpectralResult, largest_scatter_first, ratio_trace
from .base import COMPARED_AMOUNTS, ShrunkEmbedding
from .pairs import validate_given_pairs
from .rows import Rows


class RCA(ShrunkEmbedding):
    """Relevant Component Analysis: whitens the covariance within chunklets.

    A chunklet is a set of rows known to belong together, because they share a class label or for
    any other reason. With m_c the means of the chunklets, n the number of rows in them, and S_t the
    scatter of all rows,

        S_w = sum_c sum_{i in c} (x_i - m_c)(x_i - m_c)',    S_t = sum_i (x_i - m)(x_i - m)',

    RCA learns the metric n S_w^-1, where S_w is shrunk by default. With fewer components, it first
    applies the constrained Fisher discriminant; both steps together are

        max tr((V'S_w V)^-1 V'S_t V)   subject to   V'S_w V = n I,

    solved by the largest eigenvalues of S_t v = lambda S_w v. For c classes the first c - 1
    directions are those of LDA. All others have lambda = 1. Among equal eigenvalues, the direction
    of largest variance comes first, so a single chunklet of all rows gives whitened PCA.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_t, i.e. the whole metric.
    target : {"classes", "chunklets"}, default="classes"
        What y holds. "classes": every row has a label. "chunklets": rows with the same label belong
        together, and rows with -1 (or None or NaN) are in no chunklet. Rows of different chunklets
        may still belong together.
    shrinkage : float in [0, 1] or None, default=0.5
        See `LDE`. 1 leaves the metric Euclidean.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i. In these coordinates the (shrunk) covariance within chunklets is the identity.
    eigenvalues_ : ndarray of shape (m,)
        Descending: the scatter of all rows relative to the (shrunk) scatter within chunklets, at
        least 1 without shrinkage; at most 10^4 times the smallest.
    n_components_ : int
        m.
    objective_ : float
        Sum of the eigenvalues.
    rank_ : int
        Rank of S_t.
    shrinkage_ : float
        s.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    UserWarning
        If the rows vary in fewer directions than requested, or (without shrinkage) if rows of the
        same chunklet do not vary in some direction in which others differ.

    See Also
    --------
    GMML : Learns from similar and dissimilar pairs.
    LFDA : For classes that consist of several clusters.

    Notes
    -----
    No metric is finite in a direction in which rows of the same chunklet do not vary, though it may
    separate the chunklets perfectly. Without shrinkage such directions come first, as in `LDE`, and
    raise a warning: they are those whose share v'S_w v / v'S_t v is less than 1e-4 of the largest.
    Shrinkage makes S_w nonsingular on the span of all rows.

    A chunklet of one row contributes nothing and does not count towards n. Without shrinkage the
    metric is invariant to the units of the features, and to any other invertible linear
    transformation (except for the order of equal eigenvalues). With shrinkage, standardize first
    unless the units are comparable.

    With `sample_weight` s, a row counts as s_i copies in S_w, m_c, S_t and n; a chunklet of one row
    contributes nothing, whatever its weight.

    Cost: O(n p^2 + p^3), O(n p + p^2) memory. For p > n the problem is solved in the span of the
    rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall: Learning a Mahalanobis Metric from
    Equivalence Constraints. Journal of Machine Learning Research 6 (2005) 937-965.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from nearkin import RCA
    >>> X, y = load_wine(return_X_y=True)
    >>> RCA(n_components=2).fit_transform(X, y).shape
    (178, 2)
    """

    compared_as: ClassVar[dict] = {"RCA": {"settings": lambda p: COMPARED_AMOUNTS}}

    def __init__(
        self, n_components: int | None = None, *, target: str = "classes", shrinkage: Any = 0.5
    ) -> None:
        self.n_components = n_components
        self.target = target
        self.shrinkage = shrinkage

    def fit_pairs(self, pairs: Any, y: Any = None, *, X: Any = None, weights: Any = None) -> Self:
        """Learn the map from pairs of rows, whatever `target` is.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p), or int array of shape (n_pairs, 2)
            The two rows of each pair, or with X their indices.
        y : array of shape (n_pairs,), default=None
            1 for pairs that belong together, at least one; the chunklets are the connected
            components of their graph. -1 for others, whose rows only count in S_t. None if all
            pairs belong together.
        X : array or sparse matrix of shape (n, p), default=None
            The rows to which the indices in `pairs` refer; all count in S_t. None takes the
            distinct rows that occur in the pairs.
        weights : array of shape (n_pairs,), default=None
            At least 0. A pair of weight 0 is left out; any other weight connects two rows, whatever
            its size.

        Returns
        -------
        self
        """
        given = validate_given_pairs(self, pairs, y, X, weights).merged()
        n, edges = given.X.shape[0], given.numbers[given.similar]
        graph = csr_array((np.ones(len(edges)), edges.T), shape=(n, n))
        return self.fit_rows(Rows(given.X, connected_components(graph), EXACT))

    def _solve(self, rows: Rows) -> SpectralResult:
        S_t, S_w = rows.total_scatter(), rows.within_scatter()
        # Deviations within chunklets below 1e-10 of those of all rows are rounding errors of the
        # differences between chunklets.
        if not (np.diag(S_w) > RANK_TOLERANCE**2 * np.diag(S_t)).any():
            raise ValueError(
                "No two rows of one label differ, so there is no scatter to whiten: give rows that "
                "belong together the same label in y."
            )
        result = ratio_trace(self._shrunk(S_w, rows), S_t)
        n_limited = int(np.sum(result.values <= RANK_TOLERANCE))
        if n_limited:
            warn_user(
                f"Rows of one label do not vary at all in {counted(n_limited, 'direction')} in "
                f"which others differ: there they count as if they varied by {LEAST_WITHIN:g} of "
                "the maximum; set shrinkage=0.5, or reduce the features."
            )
        n = rows.class_weights[rows.class_sizes > 1].sum()
        share = np.maximum(result.values, LEAST_WITHIN * min(result.values.max(), 1.0))
        V = largest_scatter_first(result.vectors, result.values) * np.sqrt(n / share)
        result = replace(result, vectors=V, values=1 / share)
        return result.leading(self.n_components or result.rank)

    def _encode_labels(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        check_choice(self.target, "target", ("classes", "chunklets"))
        return encode_labels(y) if self.target == "classes" else encode_partial_labels(y)
