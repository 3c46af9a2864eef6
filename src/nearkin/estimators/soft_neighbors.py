"""The stochastic neighbours of NCA (eq. 1) for new rows: a soft vote of all training rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._memory import require_memory
from .._validation import check_integer, check_positive, relative_weights, weighted_rows
from ..bandwidth import PERPLEXITY, perplexities, unit_distance
from ..neighbors import Index, searcher
from .base import SparseRowsMixin
from .validation import real_targets, validate_labelled_rows, validate_rows, validated

VOTES = 100  # number of votes by default if the search is not exact


def indicators(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the vote of every row, shape (n, n_classes): 1 for its class, else 0."""
    require_memory(
        8 * len(codes) * n_classes,
        f"The vote of {len(codes):,} rows for {n_classes:,} classes",
        "merge classes, or take sklearn.neighbors.KNeighborsClassifier",
    )
    votes = np.zeros((len(codes), n_classes))
    votes[np.arange(len(codes)), codes] = 1
    return votes


class _SoftNeighbors(SparseRowsMixin, BaseEstimator):
    """Votes of all training rows, `p_j ~ s_j exp(-||x - x_j||^2 / h^2)`.

    Abstract: `fit` stores the rows, the vote of each, and its weight s_j.
    """

    _log_weights: np.ndarray | None = None

    def __init__(
        self, *, bandwidth: float | str = 1.0, n_neighbors: int | None = None, search: Any = "exact"
    ) -> None:
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.search = search

    def _keep(
        self,
        X: Any,
        values: np.ndarray,
        weights: np.ndarray | None,
        mean_perplexity: float = PERPLEXITY,
    ) -> None:
        """Set what prediction needs: the rows, their votes and weights, and the bandwidth.

        If the bandwidth is "auto", it is found from the perplexity.
        """
        weights = relative_weights(weights)
        self._log_weights = None if weights is None else np.log(weights)
        if not isinstance(self.bandwidth, str):
            self.bandwidth_ = check_positive(self.bandwidth, "bandwidth")
        elif self.bandwidth == "auto":
            self.bandwidth_ = unit_distance(X, mean_perplexity=mean_perplexity)
        else:
            raise ValueError(f"bandwidth must be a number or 'auto', got {self.bandwidth!r}.")
        self.temperature_ = self.bandwidth_ * self.bandwidth_
        self._origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
        self._rows, self._values = self._in_bandwidths(X), values
        self._index: Index | None = None
        n, k = X.shape[0], self.n_neighbors
        self.search_ = searcher(self.search, n).name
        if k is None:
            k = n if self.search_ == "exact" else VOTES
        self._n_votes = min(check_integer(k, "n_neighbors", 1), n)

    def _in_bandwidths(self, X: Any) -> Any:
        """Return rows divided by h, relative to the mean of the voting rows.

        Far from this mean, distances would lose precision.
        """
        with np.errstate(over="ignore"):
            if self._origin is not None:
                X = (X.toarray() if issparse(X) else X) - self._origin
            return X / self.bandwidth_

    def _mean_vote(self, X: Any) -> np.ndarray:
        """Return `sum_j p_j v_j` for every row of X."""
        check_is_fitted(self, "bandwidth_")
        X = validate_rows(self, X, reset=False)
        shape = X.shape[0], self._values.shape[1]
        require_memory(
            8 * math.prod(shape),
            f"The prediction of {shape[0]:,} rows, {shape[1]:,} numbers each,",
            "predict fewer rows at a time",
        )
        votes = np.empty(shape)
        for rows in row_blocks(X.shape[0], self._n_votes):
            costs, voters = self._costs(self._in_bandwidths(X[rows]), self._n_votes)
            P = softmax(-costs, axis=1)  # for a row far from all, the nearest decides
            if voters is None:
                votes[rows] = P @ self._values
            else:
                votes[rows] = np.einsum("bk,bkc->bc", P, self._values[voters])
        return votes

    def _costs(self, Q: Any, n_votes: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the costs of the nearest rows for each query, and the indices of these rows.

        A cost is -log of a vote up to a constant per query: the squared distance minus the log of
        the weight. The indices are None if all rows vote.
        """
        n, voters = self._rows.shape[0], None
        with np.errstate(over="ignore", invalid="ignore"):
            if n_votes == n:
                squares = euclidean_distances(Q, self._rows, squared=True)
            else:
                if self._index is None:
                    n_found = min(self._n_votes + 1, n)
                    self._index = searcher(self.search, n).index(self._rows, n_found)
                distances, voters = self._index(Q, n_votes)
                squares = distances**2
        if not np.isfinite(squares).all():
            raise ValueError(
                f"X lies so many bandwidths (of {self.bandwidth_:.3g}) from the rows that vote "
                "that their distance is lost: scale its features like those of the training rows."
            )
        costs = squares.astype(np.float64)
        if self._log_weights is not None:
            costs -= self._log_weights if voters is None else self._log_weights[voters]
        return costs, voters

    def local_k(self, X: Any = None) -> np.ndarray:
        """Return the effective number of voting neighbours of each row, its local K (section 6).

        It is computed from the entropy of the weights:

            K_i = exp(H_i),    H_i = -sum_j p_ij log p_ij

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), default=None
            None for the training rows; a row does not vote for itself, as in eq. 1.

        Returns
        -------
        ndarray of shape (n,)
            Between 1 and the number of votes that are counted. The cost is that of a prediction.
        """
        check_is_fitted(self, "bandwidth_")
        n, own = self._rows.shape[0], X is None
        if own and n == 1:
            raise ValueError("local_k() needs at least two rows that vote, there is one: pass X.")
        Q = self._rows if own else self._in_bandwidths(validate_rows(self, X, reset=False))
        found, n_votes = np.empty(Q.shape[0]), min(self._n_votes + own, n)
        for rows in row_blocks(Q.shape[0], n_votes):
            costs, voters = self._costs(Q[rows], n_votes)
            if own:
                mine = np.arange(n)[rows, None] == (np.arange(n) if voters is None else voters)
                # with many duplicates, the row itself may be missing
                mine[~mine.any(axis=1), -1] = True
                costs = costs[~mine].reshape(len(costs), -1)
            found[rows] = perplexities(costs)
        return found

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"_index": None} if "_index" in state else state  # built again on demand


class SoftNeighborsClassifier(ClassifierMixin, _SoftNeighbors):
    """Classify by a vote of all training rows, with the weights of equation 1 of NCA.

    The weights are `p_j ~ exp(-||x - x_j||^2 / h^2)`, and the probability of a class is `sum_(j in
    class) p_j`, which NCA maximizes on its training rows. Use it after a map:
    `make_pipeline(StandardScaler(), NCA(), SoftNeighborsClassifier())`.

    With weights s of the rows (`sample_weight` of `fit`), `p_j ~ s_j exp(-||x - x_j||^2 / h^2)`. A
    row of weight 2 votes like two equal rows, but is one neighbour; a row of weight 0 is left out.
    Only the ratios of weights matter. With "auto", the bandwidth does not depend on them.

    Parameters
    ----------
    bandwidth : float or "auto", default=1.0
        h, in units of the distances. Use 1 after NCA, whose map has a learned scale, and "auto"
        after any other map. "auto" is the distance at which the votes for a training row have a
        mean perplexity of 10 or, if classes have fewer than 20 rows on average, half that average,
        so that one class can have most votes.
    n_neighbors : int or None, default=None
        How many of the nearest rows vote. None takes all, or 100 if the search is not exact.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How the nearest rows are found. "auto" is approximate from 100,000 rows on. A transformer is
        an object like scikit-learn's KNeighborsTransformer, and is cloned.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    bandwidth_ : float
        The h used.
    temperature_ : float
        T = h^2, if the votes are written as a softmax of -||x - x_j||^2 / T. At a low temperature
        the nearest rows decide, at a high one all rows. It is 1 for NCA, whose map has a learned
        scale.
    search_ : str
        How neighbours are found: "exact", "approximate" or the name of the transformer.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCA : Learns the map for this vote.
    SoftNeighborsRegressor : For real-valued targets.

    Notes
    -----
    Cost: O(n p) for each new row, in blocks that never hold all distances. An approximate search
    compares only some of the rows; its index is built by the first prediction.

    References
    ----------
    See `NCA`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nearkin import NCA, SoftNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> Z = NCA().fit_transform(X, y)
    >>> SoftNeighborsClassifier().fit(Z, y).predict_proba(Z[:1]).round(2)
    array([[1., 0., 0.]])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SoftNeighborsClassifier:
        """Store the rows that vote.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
        y : array of shape (n,)
            Class labels, at least two classes.
        sample_weight : array of shape (n,), default=None
            Weights of the votes, at least 0; None for equal weights.

        Returns
        -------
        self
        """
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        X, self.classes_, codes = validate_labelled_rows(self, X, y)
        rows_of_a_class = X.shape[0] / len(self.classes_)
        votes = indicators(codes, len(self.classes_))
        self._keep(X, votes, weights, min(PERPLEXITY, rows_of_a_class / 2))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (n, n_classes), in the order of `classes_`."""
        return self._mean_vote(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        votes = self.predict_proba(X)
        return self.classes_[votes.argmax(axis=1)]


class SoftNeighborsRegressor(RegressorMixin, _SoftNeighbors):
    """Predict the weighted mean target of all training rows, with the weights of equation 1 of NCA.

    The weights are `p_j ~ exp(-||x - x_j||^2 / h^2)`. Use it after a map:
    `make_pipeline(StandardScaler(), NCA(target="continuous"), SoftNeighborsRegressor())`.
    `sample_weight` is that of `SoftNeighborsClassifier`.

    Parameters
    ----------
    bandwidth, n_neighbors, search
        See `SoftNeighborsClassifier`. Without classes, "auto" takes a mean perplexity of 10.

    Attributes
    ----------
    bandwidth_, temperature_, search_
        See `SoftNeighborsClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MLKR : Learns the map for this mean.
    SoftNeighborsClassifier : For classes.

    Notes
    -----
    Cost: that of `SoftNeighborsClassifier`.

    References
    ----------
    See `NCA`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nearkin import NCA, SoftNeighborsRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Z = NCA(target="continuous").fit_transform(X, y)
    >>> SoftNeighborsRegressor().fit(Z, y).predict(Z[:2]).shape
    (2,)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SoftNeighborsRegressor:
        """Store the rows that vote.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
        y : array of shape (n,) or (n, n_targets)
            Real numbers.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, at least 0; None for equal weights.

        Returns
        -------
        self
        """
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        y = real_targets(self, y, multi_output=True)
        X, y = validated(self, X, y, multi_output=True)
        self._one_target = y.ndim == 1
        self._keep(X, y.reshape(len(y), -1), weights)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the weighted mean target of every row, shape (n,) or (n, n_targets)."""
        votes = self._mean_vote(X)
        return votes.ravel() if self._one_target else votes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
