"""What the predictors for tables share: encoded columns, a map by members, the vote of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.linalg import norm
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
)

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._captions import Estimator
from .._messages import counted, listed
from .._validation import (
    canonical,
    check_choice,
    check_integer,
    refuse_foreign,
    refuse_no_rows,
    refuse_sparse_gaps,
    validated,
)
from ..descent import Status
from ..objectives.kernel_regression import Loss
from ..preprocessing import BinnedEncoder, Curve, Feature, Levels, SparseEncoder, TableEncoder, features_of, is_table
from ._folds import MAX_ROWS, inner_folds, sample_rows
from ._member_path import ALPHAS, MemberPath, Rows, along_principal_axes, member_path, refined
from .descent_embedding import FLOAT64_ROWS
from .soft_votes import DISTANCES

Fold = tuple[np.ndarray, np.ndarray]

FEWEST = 4  # rows: two to learn from, in each of two folds


class TablePredictor(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator, ABC):
    """What the two predictors share. Abstract: a predictor defines `fit` and `_targets`."""

    _loss: Loss
    _loss_name: ClassVar[str]

    def __init__(
        self,
        n_components: int = 32,
        *,
        n_bins: int = 8,
        alpha: float | str = "auto",
        n_members: int = 3,
        distance: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_bins = n_bins
        self.alpha = alpha
        self.n_members = n_members
        self.distance = distance
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.sparse = tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []  # the number of rows decides
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        features: Sequence[Feature] | None = None,
        folds: Sequence[Fold] | None = None,
    ) -> Self:
        """Learn from a table, or from an array of these features, with members on these folds."""
        task = FitTask(self, X, y, None)
        X, y, weights = self._encode_table(X, y, sample_weight, features)
        self._learn(task, X, *self._targets(y, weights), folds)
        task.end()
        return self

    @abstractmethod
    def _targets(self, y: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return what votes are about (n, q), the classes as numbers, the same for all numbers, and weights of rows."""

    def _learn(
        self,
        task: FitTask,
        X: Any,
        Y: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray | None,
        folds: Sequence[Fold] | None,
    ) -> None:
        """Learn the map from the rows and their targets Y; an interrupt keeps the best so far, if there is one."""
        weights = None if weights is None else weights / weights.mean()
        encoded = self.encoder_.transform(X)
        groups = np.unique(self.encoder_.groups_, return_inverse=True)[1]
        rows = Rows(encoded, Y.astype(np.float32), groups, self._loss, weights)
        if folds is not None:
            some = np.unique(np.concatenate([part for fold in folds for part in fold]))
            folds = [(np.searchsorted(some, train), np.searchsorted(some, test)) for train, test in folds]
        else:
            some = np.arange(len(rows)) if len(rows) <= MAX_ROWS else sample_rows(encoded, codes, MAX_ROWS)
            folds = inner_folds(encoded[some], codes[some], self.n_members)
        alphas = ALPHAS if isinstance(self.alpha, str) else (float(self.alpha),)

        def report(found: Callable[[], MemberPath]) -> bool:
            return task.iteration(lambda: self._learned(found(), rows))

        path = member_path(rows.subset(some), folds, self.n_components, alphas, self.distance, report)
        self.held_out_rows_ = self._rows[some[np.concatenate([test for _, test in folds])]]
        self.held_out_votes_ = self._answers(path.held_out(self._final_vote(path)))
        if len(some) < len(rows) and path.status is Status.CONVERGED:
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            try:
                path = refined(path, rows, self.n_components, self.distance, rng)
                report(lambda: path)
            except KeyboardInterrupt:
                path = replace(path, status=Status.INTERRUPTED)
        for name, value in self._learned(path, rows).items():
            setattr(self, name, value)
        if path.status is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def _learned(self, path: MemberPath, rows: Rows) -> dict[str, Any]:
        """Return the attributes that are set where a descent ends."""
        T, dtype = path.vote.temperature, np.float64 if len(rows) <= FLOAT64_ROWS else np.float32
        A = along_principal_axes(path.components / T**0.5, rows.X).astype(dtype)
        return {
            "components_": A,
            "temperature_": T,
            "distance_": path.vote.distance,
            "vote_": self._final_vote(path).after(T),
            "alpha_": path.alpha,
            "alpha_scores_": path.scores,
            "feature_effects_": self._effects(A, rows.X),
            "_Z": rows.X @ A.T,
            "_Y": rows.Y.astype(dtype),
            "_weights": rows.weights,
        }

    def _phrases(self) -> list[str]:
        effects = self.feature_effects_
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(effects))])
        first = [str(names[j]) for j in np.argsort(-effects, kind="stable")[:3] if effects[j] > 0]
        chosen = [f"alpha {self.alpha_:.3g}"] * (self.alpha == "auto") + [f"temperature {self.temperature_:.3g}"]
        chosen += [f"the {self.distance_} distance"] * (self.distance == "auto")
        size = f"{np.count_nonzero(effects)} of {counted(len(effects), 'column')}"
        return [
            f"{size} → {counted(len(self.components_), 'dimension')}; rows moved farthest by {listed(first)}",
            f"chosen on held-out rows ({self._loss_name} {-self.alpha_scores_[self.alpha_]:.3g}): {listed(chosen)}",
        ]

    def _final_vote(self, path: MemberPath) -> Any:
        """Return how all rows predict."""
        return path.vote

    def _answers(self, votes: np.ndarray) -> np.ndarray:
        """Return what votes (n, q) say, in the unit of the targets."""
        return votes

    def _encode_table(
        self, X: Any, y: Any, sample_weight: Any, features: Sequence[Feature] | None
    ) -> tuple[np.ndarray, Any, np.ndarray | None]:
        """Check all that `fit` was given and learn the encoding; return rows, targets and weights, if not 0."""
        self._check_parameters()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        refuse_foreign(X)
        refuse_no_rows(X)
        if not is_table(X):
            X = self._checked(X, sparse=issparse(X))
        check_consistent_length(X, y)
        X, y, weights = self._weighted(X, y, sample_weight)
        if len(self._rows) < FEWEST:
            raise ValueError(f"Found a table with {len(self._rows)} sample(s) while a minimum of {FEWEST} is required.")
        return self._learn_encoding(X, features), y, weights

    def _check_parameters(self) -> None:
        for name, least in (("n_components", 1), ("n_bins", 1), ("n_members", 2)):
            check_integer(getattr(self, name), name, least)
        if self.alpha != "auto" and (not isinstance(self.alpha, Real) or not 0 < self.alpha < np.inf):
            raise ValueError(f'alpha must be "auto" or a number larger than 0, got {self.alpha!r}.')
        check_choice(self.distance, "distance", DISTANCES)
        check_random_state(self.random_state)

    def _learn_encoding(self, X: Any, features: Sequence[Feature] | None) -> Any:
        """Learn how a table becomes an array, and how that is encoded; return the array."""
        self._table = TableEncoder(missing="keep", drop_identifiers=False).fit(X) if is_table(X) else None
        if self._table is not None:
            self.n_features_in_ = self._table.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self._table, "feature_names_in_"):
                self.feature_names_in_ = self._table.feature_names_in_
            self._n_columns = self.n_features_in_
            X, features = self._table.transform(X), features_of(self._table)
        else:
            self._n_columns = X.shape[1] if features is None else 1 + max(feature.column for feature in features)
        if issparse(X):
            self.encoder_: Any = SparseEncoder().fit(X)
        else:
            self.encoder_ = BinnedEncoder(self.n_bins).fit(X, features=features)
        return X

    def _weighted(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray | None]:
        """Return the rows, targets and weights of those whose weight is not 0."""
        self._rows = np.arange(_num_samples(X))
        if sample_weight is None:
            return X, y, None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = weights / weights.max()
        self._rows = np.flatnonzero(weights)
        if len(self._rows) < len(weights):
            X, y = _safe_indexing(X, self._rows), _safe_indexing(y, self._rows)
        return X, y, weights[self._rows]

    def _checked(self, X: Any, sparse: bool, **options: Any) -> Any:
        """Return an array of numbers, where sparse ones may come without missing ones."""
        refuse_sparse_gaps(X)
        options |= {"accept_sparse": "csr" if sparse else False, "ensure_all_finite": True if sparse else "allow-nan"}
        return canonical(validated(self, X, dtype=(np.float64, np.float32), **options))

    def _effects(self, components: np.ndarray, X: Any) -> np.ndarray:
        """Return how far each column moves the rows about their mean: the root of the mean square, (p,)."""
        if issparse(X):
            return norm(components, axis=0) * mean_variance_axis(X, axis=0)[1] ** 0.5
        effects, groups = np.zeros(self._n_columns), self.encoder_.groups_
        for group in np.unique(groups):
            A = components[:, groups == group].astype(np.float64)
            covariance = np.atleast_2d(np.cov(X[:, groups == group], rowvar=False, bias=True))
            effects[group] = max(np.einsum("ij,jk,ik->", A, covariance, A), 0) ** 0.5
        return effects

    @with_callbacks
    def fit_encoded(
        self, X: Any, y: Any, features: Sequence[Feature] | None = None, folds: Sequence[Fold] | None = None
    ) -> Self:
        """Learn from rows that a `TableEncoder` has encoded; all other methods take such rows then, too.

        Parameters
        ----------
        X : array of shape (n, p)
            NaN where a cell is missing: of `TableEncoder(missing="keep")`.
        y : array of shape (n,)
            As in `fit`.
        features : sequence of p Feature, default=None
            `nearkin.preprocessing.features_of` the encoder: `feature_effects_` are those of its columns. Without them
            each is a number.
        folds : sequence of (training rows, test rows), default=None
            Of the members, in place of `n_members` folds that are cut here: such as keep the rows of a group together.
            They hold all rows, or of more than 2,000 about so many.
        """
        return self._fit(X, y, features=features, folds=folds)

    def transform(self, X: Any) -> np.ndarray:
        """Return rows in the learned space.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)

        Returns
        -------
        Z : ndarray of shape (n, m)
            Along the principal axes of the training rows, the longest first; up to 2,000 of these in float64, else in
            float32.
        """
        check_is_fitted(self, "components_")
        refuse_foreign(X)
        if self._table is None:
            X = self._checked(X, sparse=isinstance(self.encoder_, SparseEncoder), reset=False)
        else:
            X = self._table.transform(X)
        return self.encoder_.transform(X) @ self.components_.T

    def _votes(self, X: Any) -> np.ndarray:
        Z = self.transform(X)
        return self.vote_.predict(Z, self._Z, self._Y, self._weights)

    def curves(self) -> dict[str, Curve | Levels]:
        """Return how each column moves a row in the learned space: functions that are linear between edges, or levels.

        Returns
        -------
        dict of str to Curve or Levels
            By the names of the columns ("x0", "x1", ... of an array); a date becomes several numbers, such as
            "day (days since 1970)" and "day (week, sin)", and a category of many values one, "town (frequency)". All
            know their `column`. Of a number: `edges` (T + 1,), `values` (m, T + 1), 0 at the first edge, and `missing`
            (m,), the place of a missing value, where the column held some; the edges span the numbers of `fit`. Of a
            category: `names` of its L values, among them "(missing)" where some were, and `values` (m, L), about their
            mean over the training rows. None of sparse X.
        """
        check_is_fitted(self, "components_")
        return self.encoder_.curves(self.components_)

    def kneighbors(self, X: Any, n_neighbors: int = 5, *, return_distance: bool = True) -> Any:
        """Return the nearest training rows in the learned space: of equal weights, those with the largest votes.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        n_neighbors : int, default=5
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            Ascending; not without `return_distance`.
        rows : ndarray of int of shape (n, n_neighbors)
            The numbers of rows of `fit`.
        """
        queries = self.transform(X)
        k = check_integer(n_neighbors, "n_neighbors", 1, len(self._Z))
        distances, found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self._Z).kneighbors(queries)
        return (distances, self._rows[found]) if return_distance else self._rows[found]
