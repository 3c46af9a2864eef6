"""The stochastic rule of NCA (eq. 1) for new rows: every training row votes, the nearest with the
largest weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._validation import (
    as_rows,
    check_integer,
    check_positive,
    refuse_unfit_targets,
    relative_weights,
    validate_labelled_rows,
    validate_rows,
    validated,
    weighted_rows,
)
from ..neighbors import Index, searcher
from .base import SparseRowsMixin
from .descent_embedding import PERPLEXITY, perplexities, unit_distance

VOTES = 100  # counted by default where the search is not exact


class _SoftNeighbors(SparseRowsMixin, BaseEstimator):
    """Votes of all training rows, `p_j ~ s_j exp(-||x - x_j||^2 / h^2)`.

    Abstract: `fit` keeps, with the rows, what each votes for, and its weight s_j.
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
        """Set what a prediction needs: the rows, what each votes for, by which weight, and the
        bandwidth, if "auto" by perplexity.
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
        """Return rows relative to the mean of those that vote (far from it distances lose their
        digits), over h.
        """
        with np.errstate(over="ignore"):
            if self._origin is not None:
                X = (X.toarray() if issparse(X) else X) - self._origin
            return X / self.bandwidth_

    def _mean_vote(self, X: Any) -> np.ndarray:
        """Return `sum_j p_j v_j` for every row of X."""
        check_is_fitted(self, "bandwidth_")
        X = validate_rows(self, X, reset=False)
        votes = np.empty((X.shape[0], self._values.shape[1]))
        for rows in row_blocks(X.shape[0], self._n_votes):
            costs, voters = self._costs(self._in_bandwidths(X[rows]), self._n_votes)
            P = softmax(-costs, axis=1)  # for a row far from all, the nearest decides
            if voters is None:
                votes[rows] = P @ self._values
            else:
                votes[rows] = np.einsum("bk,bkc->bc", P, self._values[voters])
        return votes

    def _costs(self, Q: Any, n_votes: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return -log of the votes of the nearest rows, up to a number for each row of Q: squared
        distances less the log of the weights; and which rows vote, None where all do.
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
                "that their distance is lost: scale its features as those of the training rows."
            )
        costs = squares.astype(np.float64)
        if self._log_weights is not None:
            costs -= self._log_weights if voters is None else self._log_weights[voters]
        return costs, voters

    def local_k(self, X: Any = None) -> np.ndarray:
        """Return the local K of rows: how many neighbours vote for each, by the entropy of their
        weights (section 6).

            K_i = exp(H_i),    H_i = -sum_j p_ij log p_ij

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), default=None
            None for the rows that vote themselves: a row's own vote is left out, as in eq. 1.

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
                # of many duplicates the row itself may not be found
                mine[~mine.any(axis=1), -1] = True
                costs = costs[~mine].reshape(len(costs), -1)
            found[rows] = perplexities(costs)
        return found

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"_index": None} if "_index" in state else state  # made again on demand


class SoftNeighborsClassifier(ClassifierMixin, _SoftNeighbors):
    """Classify by all training rows, each with the weight `p_j ~ exp(-||x - x_j||^2 / h^2)` of
    equation 1 of NCA.

    A class has the probability `sum_(j in class) p_j`: what NCA maximizes for its training rows.
    Use it after a map: `make_pipeline(StandardScaler(), NCA(), SoftNeighborsClassifier())`.

    With weights s of the rows (`sample_weight` of `fit`), `p_j ~ s_j exp(-||x - x_j||^2 / h^2)`: a
    row of weight 2 votes as two equal rows do, and is one neighbour; one of weight 0 is absent;
    only the ratios of weights matter. A bandwidth that is "auto" does not depend on them.

    Parameters
    ----------
    bandwidth : float or "auto", default=1.0
        h, in units of the distances. 1 after NCA, whose map has the scale that it was learned with.
        After any other map take "auto": the distance at which the votes for a training row have a
        mean perplexity of 10, or for classes of fewer than 20 rows on average of half that number,
        so that most votes can be those of one class.
    n_neighbors : int or None, default=None
        How many votes are counted, those of the nearest. None counts all; where the search is not
        exact, 100.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How the nearest are found. "auto" is approximate from 100,000 rows on; a transformer is one
        like scikit-learn's KNeighborsTransformer, which is cloned.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    bandwidth_ : float
        The h in use.
    temperature_ : float
        T = h^2, of the votes as a softmax of -||x - x_j||^2 / T: of a low one the nearest rows
        decide, of a high one all. NCA learns it with the map, where it is 1.
    search_ : str
        How neighbours are found: "exact", "approximate" or the name of the transformer.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCA : Learns the map for this vote.
    SoftNeighborsRegressor : For numbers.

    Notes
    -----
    Cost: O(n p) for each new row, in blocks: all distances are never held. An approximate search
    looks at a part of the rows only; its index is made by the first prediction.

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
        """Keep the rows that vote.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
        y : array of shape (n,)
            Class labels, at least two classes.
        sample_weight : array of shape (n,), default=None
            How much the vote of each row counts, at least 0; None for 1 each.

        Returns
        -------
        self
        """
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        X, self.classes_, codes = validate_labelled_rows(self, X, y)
        rows_of_a_class = X.shape[0] / len(self.classes_)
        indicators = np.eye(len(self.classes_))[codes]
        self._keep(X, indicators, weights, min(PERPLEXITY, rows_of_a_class / 2))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, (n, n_classes), in the order of `classes_`."""
        return self._mean_vote(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        votes = self.predict_proba(X)
        return self.classes_[votes.argmax(axis=1)]


class SoftNeighborsRegressor(RegressorMixin, _SoftNeighbors):
    """Predict the mean target of all training rows, weighted by `p_j ~ exp(-||x - x_j||^2 / h^2)`,
    as in NCA.

    Use it after a map: `make_pipeline(StandardScaler(), NCA(target="continuous"),
    SoftNeighborsRegressor())`. Weights of rows are those of `SoftNeighborsClassifier`.

    Parameters
    ----------
    bandwidth, n_neighbors, search
        See `SoftNeighborsClassifier`; without classes "auto" is a mean perplexity of 10.

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
    Cost: as `SoftNeighborsClassifier`.

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
        """Keep the rows that vote.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
        y : array of shape (n,) or (n, n_targets)
            Real numbers.
        sample_weight : array of shape (n,), default=None
            How much the target of each row counts, at least 0; None for 1 each.

        Returns
        -------
        self
        """
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        refuse_unfit_targets(y, self)
        X, y = validated(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            multi_output=True,
            y_numeric=True,
        )
        self._one_target = y.ndim == 1
        self._keep(as_rows(X), y.reshape(len(y), -1).astype(np.float64), weights)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the weighted mean target of every row, shape (n,) or (n, n_targets)."""
        votes = self._mean_vote(X)
        return votes.ravel() if self._one_target else votes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
