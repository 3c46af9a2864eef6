"""Relevant Component Analysis (Bar-Hillel, Hertz, Shental and Weinshall, JMLR 2005)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from .._messages import counted, warn_user
from .._pairs import validate_given_pairs
from .._validation import check_choice, encode_labels, encode_partial_labels
from ..graphs import connected_components
from ..neighbors import EXACT
from ..scatter import RANK_TOLERANCE
from ..spectral import (
    LEAST_WITHIN,
    ZERO,
    SpectralResult,
    largest_scatter_first,
    ratio_trace,
)
from .base import COMPARED_AMOUNTS, SpectralEmbedding
from .rows import Rows


class RCA(SpectralEmbedding):
    """Relevant Component Analysis: whitening by the covariance within chunklets, sets of rows that
    belong together.

    Rows are known to belong together because they share a class label, or by any other knowledge.
    With m_c the means of the chunklets, n the number of rows in them and all rows in S_t,

        S_w = sum_c sum_{i in c} (x_i - m_c)(x_i - m_c)',    S_t = sum_i (x_i - m)(x_i - m)',

    RCA learns the metric n S_w^-1, with S_w shrunk by default. With fewer components it is taken
    after the constrained Fisher discriminant, and both at once are

        max tr((V'S_w V)^-1 V'S_t V)   subject to   V'S_w V = n I:

    the largest eigenvalues of S_t v = lambda S_w v. For c classes the first c - 1 are LDA's
    directions. All others have lambda = 1; of equal eigenvalues, the direction in which rows vary
    most comes first, so that a single chunklet of all rows gives whitened PCA.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p; None takes the rank of S_t: the whole metric.
    target : {"classes", "chunklets"}, default="classes"
        What y holds. "classes": every row has a label. "chunklets": rows of one label belong
        together, and those of -1 (None or NaN, too) are in no chunklet. Rows of two chunklets may
        belong together as well.
    shrinkage : float in [0, 1] or None, default=0.5
        See `LDE`. 1 leaves the metric Euclidean.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows v_i: in these coordinates the (shrunk) covariance within chunklets is the identity.
    eigenvalues_ : ndarray of shape (m,)
        Descending: the scatter of all rows in units of the (shrunk) scatter within chunklets, 1 and
        more without shrinkage; at most 10^4 times the smallest.
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
        If rows vary in fewer directions than requested, or rows of one chunklet not at all in some
        in which others differ (without shrinkage).

    See Also
    --------
    GMML : From similar and dissimilar pairs.
    LFDA : For classes of several clusters.

    Notes
    -----
    No metric is finite in a direction in which rows of one chunklet do not vary at all, though it
    may separate the chunklets perfectly. Without shrinkage such directions come first, as in `LDE`,
    and with a warning: a share v'S_w v / v'S_t v of less than 1e-4 of the largest counts as that.
    Shrinkage makes S_w regular on the span of all rows.

    A chunklet of one row contributes nothing and does not count for n. Without shrinkage the metric
    does not depend on the units of the features, nor on any other invertible linear change of them
    (but the order of equal eigenvalues does); with it, standardize first unless the units are
    comparable.

    With `sample_weight` s, a row counts s_i times in S_w, m_c, S_t and n, as so many copies would;
    a chunklet of one row contributes nothing, whatever its weight.

    Cost: O(n p^2 + p^3), O(n p + p^2) memory. For p > n the problem is solved in the span of the
    rows, O(n^2 p), without a p x p matrix.

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
            The two rows of each pair; with X their numbers, counted from 0.
        y : array of shape (n_pairs,), default=None
            1 for pairs that belong together, one at least: chunklets are the connected components
            of their graph. -1 for others, of which only the rows count, in S_t. None: all belong
            together.
        X : array or sparse matrix of shape (n, p), default=None
            The rows of which `pairs` holds the numbers; all count in S_t. None takes the rows that
            occur in the pairs, equal ones once.
        weights : array of shape (n_pairs,), default=None
            At least 0. A pair of weight 0 is absent; any other weight connects two rows, and how
            large it is does not matter.

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
        # Deviations within chunklets of 1e-10 of those of all rows are the rounding of what differs
        # between chunklets.
        if not (np.diag(S_w) > RANK_TOLERANCE**2 * np.diag(S_t)).any():
            raise ValueError(
                "No two rows of one label differ, so there is no scatter to whiten: give rows that "
                "belong together the same label in y."
            )
        result = ratio_trace(self._shrunk(S_w, rows), S_t)
        n_limited = int(np.sum(result.values <= ZERO))
        if n_limited:
            warn_user(
                f"Rows of one label do not vary at all in {counted(n_limited, 'direction')} in "
                f"which others differ: there they count as if they varied by {LEAST_WITHIN:g} of "
                "the most; set shrinkage=0.5, or reduce the features."
            )
        n = rows.class_weights[rows.class_sizes > 1].sum()
        share = np.maximum(result.values, LEAST_WITHIN * min(result.values.max(), 1.0))
        V = largest_scatter_first(result.vectors, result.values) * np.sqrt(n / share)
        result = replace(result, vectors=V, values=1 / share)
        return result.leading(self.n_components or result.rank)

    def _encode_labels(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        check_choice(self.target, "target", ("classes", "chunklets"))
        return encode_labels(y) if self.target == "classes" else encode_partial_labels(y)
