"""Nearest neighbours for tables: encoded columns, NCA's map, the vote of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence, Sized
from copy import copy
from dataclasses import asdict, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.linalg import norm
from scipy.linalg import block_diag
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._validation import (
    canonical_csr,
    check_choice,
    check_integer,
    check_shared_labels,
    check_targets_vary,
    encode_labels,
    refuse_foreign,
    refuse_no_rows,
    refuse_sparse_gaps,
    refuse_unfit_targets,
    validated,
    weighted_rows,
)
from ..descent import Status
from ..estimators.base import MAX_ROWS, inner_folds, sample_rows
from ..estimators.descent_embedding import FLOAT64_ROWS
from ..objectives.kernel_regression import Loss, log_loss, squared_error
from .bins import BinnedEncoder, Curves, Encodings, SparseEncoder, features_of, is_table
from .columns import Feature
from .encoder import TableEncoder
from .held_out import Drift, HeldOutRows, check_coverage, check_levels
from .members import ALPHAS, LabelledRows, LearnedMap, VotingSpace, member_path, refined
from .votes import DISTANCES, Mixture, mixed, mixture_from

# What the predictors for tables share: encoded columns, a map by members, the vote of all rows.

TrainTest = tuple[np.ndarray, np.ndarray]

# of the encodings that are mixed, the first one first: it finds the penalty for all
BINS = (8, 1, 32)
MIXED_ROWS = 200_000  # of more, the first encoding alone is learned
BEFORE = 3.2  # times that penalty: where the others begin
ROUNDS = 5  # of stochastic descent, at most
EFFECT_ROWS = 20_000  # rows, at most, by which the effect of a column is measured
FEWEST = 4  # rows: two to learn from, in each of two folds


def n_held(rows: Sized) -> int:
    """Return how many of many rows are held out, until half a round of steps ends the fit."""
    return min(MAX_ROWS, len(rows) // 5)


class TablePredictor(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """What the two predictors share; each defines `_loss`, `fit`, `_learn_targets` and
    `_encode_targets`.
    """

    _loss: Loss
    _class_weights: np.ndarray | None = None

    def __init__(
        self,
        n_components: int = 32,
        *,
        n_bins: int | str = "auto",
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
        folds: Sequence[TrainTest] | None = None,
    ) -> Self:
        """Learn from a table, or from an array of these features, with members on these folds; an
        interrupt keeps the best so far, if there is one.
        """
        task = FitTask(self, X, y, None)
        X, y, weights = self._validated(X, y, sample_weight)
        X = self._learn_encoding(X, features, weights)
        Y, codes = self._learn_targets(y)
        if self._class_weights is not None:
            of_class = self._class_weights[codes]
            weights = of_class if weights is None else weights * of_class
        weights = None if weights is None else weights / weights.mean()
        self._Y, self._weights = Y, weights
        learned, final, folds, status = self._learn_maps(X, codes, folds, task)
        self._set_held_out(final if len(folds) == 1 else learned, folds)
        self._set_maps(final, X)
        self._keep_held_out(X, features)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self

    def _learn_maps(
        self, X: Any, codes: np.ndarray, folds: Sequence[TrainTest] | None, task: FitTask
    ) -> tuple[list[LearnedMap], list[LearnedMap], Sequence[TrainTest], Status]:
        """Return a map of each encoding by the members, what stochastic gradient on many rows has
        made of these, the folds, and how it ended; an encoding after the first that is not finished
        is left out.
        """
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        alphas: Sequence[float] = ALPHAS
        if not isinstance(self.alpha, str):
            alphas = (float(self.alpha),)
        learned: list[LearnedMap] = []
        final: list[LearnedMap] = []
        members: Sequence[TrainTest] = ()
        held = np.empty(0, dtype=int)

        def report(found: Callable[[], LearnedMap]) -> bool:
            def attributes() -> dict[str, Any]:
                maps = final or [found()]
                said = learned if learned and len(members) > 1 else maps
                return dict(vars(copy(self)._set_maps(maps, X)._set_held_out(said, members)))

            return task.iteration(attributes)

        try:
            for encoder in self.encoder_.encoders:
                rows = LabelledRows.of(encoder, X, self._Y, self._loss, self._weights)
                if not final:  # the same rows for all encodings, whose votes are mixed by them
                    members = self._folds(rows.X, codes) if folds is None else folds
                    one_fold = len(members) == 1
                    held = members[0][1] if one_fold else rng.permutation(len(rows))[: n_held(rows)]
                found = member_path(rows, members, self.n_components, alphas, self.distance, report)
                last = found
                if len(rows) > MAX_ROWS and found.status is Status.CONVERGED:
                    last = self._refined(found, rows, held, final, rng)
                if not final or last.status is Status.CONVERGED:
                    learned.append(found)
                    final.append(last)
                if last.status is not Status.CONVERGED:
                    return learned, final, members, last.status
                if last is not found and report(lambda: final[0]):
                    return learned, final, members, Status.STOPPED
                # the other encodings need about the same penalty
                alphas = [alpha for alpha in alphas if alpha <= BEFORE * found.alpha]
        except KeyboardInterrupt:
            if not final:
                raise
            return learned, final, members, Status.INTERRUPTED
        return learned, final, members, Status.CONVERGED

    def _refined(
        self,
        found: LearnedMap,
        rows: LabelledRows,
        held: np.ndarray,
        before: Sequence[LearnedMap],
        rng: np.random.Generator,
    ) -> LearnedMap:
        """Return what stochastic gradient on many rows makes of an encoding's map; after that of
        another encoding it takes the same penalty.
        """
        penalties = [found.alpha / 3**step for step in range(ROUNDS)]
        if before or not isinstance(self.alpha, str):
            penalties = [(before or [found])[0].alpha]
        try:
            return refined(found, rows, held, self.n_components, penalties, rng)
        except KeyboardInterrupt:
            return replace(found, status=Status.INTERRUPTED)

    def _folds(self, encoded: Any, codes: np.ndarray) -> list[TrainTest]:
        """Return the folds of the members; of more than 2,000 rows one, of about as many to learn
        from, and of others that are held out.
        """
        n = len(codes)
        if n <= MAX_ROWS:
            return inner_folds(encoded, codes, self.n_members)
        held = sample_rows(encoded, codes, n_held(codes))
        if len(held) > n // 2:  # many small classes, of which it holds all rows
            return inner_folds(encoded, codes)[:1]
        rest = np.setdiff1d(np.arange(n), held)
        return [(rest[sample_rows(encoded[rest], codes[rest], MAX_ROWS)], held)]

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray | None]:
        """Check all that `fit` was given; return rows, targets and weights of those whose weight is
        not 0.
        """
        for name, least in (("n_components", 1), ("n_members", 2)):
            check_integer(getattr(self, name), name, least)
        if self.n_bins != "auto":
            check_integer(self.n_bins, "n_bins", 1)
        if self.alpha != "auto" and (
            not isinstance(self.alpha, Real) or not 0 < self.alpha < np.inf
        ):
            raise ValueError(f'alpha must be "auto" or a number larger than 0, got {self.alpha!r}.')
        check_choice(self.distance, "distance", DISTANCES)
        check_random_state(self.random_state)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        refuse_foreign(X)
        refuse_no_rows(X)
        if not is_table(X):
            X = self._numbers(X, sparse=issparse(X))
        check_consistent_length(X, y)
        X, y, weights, self._rows = weighted_rows(X, y, sample_weight)
        weights = None if weights is None else weights / weights.max()
        if len(self._rows) < FEWEST:
            raise ValueError(
                f"Found a table with {len(self._rows)} sample(s) while a minimum of {FEWEST} is "
                "required."
            )
        return X, y, weights

    def _numbers(self, X: Any, sparse: bool, **options: Any) -> Any:
        """Return an array of numbers, where sparse ones may come without missing ones."""
        refuse_sparse_gaps(X)
        return canonical_csr(
            validated(
                self,
                X,
                dtype=(np.float64, np.float32),
                accept_sparse="csr" if sparse else False,
                ensure_all_finite=True if sparse else "allow-nan",
                **options,
            )
        )

    def _learn_encoding(
        self, X: Any, features: Sequence[Feature] | None, weights: np.ndarray | None
    ) -> Any:
        """Learn how a table becomes an array, and how that is encoded; return the array."""
        self._table, given = None, features
        if is_table(X):
            self._table = TableEncoder(missing="keep", drop_identifiers=False)
            self._table.fit(X, sample_weight=weights)
            self.n_features_in_ = self._table.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self._table, "feature_names_in_"):
                self.feature_names_in_ = self._table.feature_names_in_
            X, features = self._table.transform(X), features_of(self._table)
        self.__dict__.pop("_held_out", None)  # of a fit before
        self._n_columns = self.n_features_in_
        if given is not None:
            self._n_columns = 1 + max(feature.column for feature in given)
        if issparse(X):
            self.encoder_: Any = Encodings([SparseEncoder().fit(X)])
        else:
            bins: tuple[int, ...] = BINS if len(X) <= MIXED_ROWS else BINS[:1]
            if not isinstance(self.n_bins, str):
                bins = (self.n_bins,)
            encoders = [BinnedEncoder(n_bins).fit(X, features=features) for n_bins in bins]
            # where numbers have few values, more bins are the same bins
            widths = [len(encoder.groups_) for encoder in encoders]
            self.encoder_ = Encodings(
                [encoders[widths.index(width)] for width in dict.fromkeys(widths)]
            )
        return X

    @abstractmethod
    def _learn_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check the targets of the training rows, and learn their classes or their unit; return
        them as `_encode_targets` does, and the class of each row as a number, 0 for all in a
        regression.
        """

    @abstractmethod
    def _encode_targets(self, targets: np.ndarray) -> np.ndarray:
        """Return what the training rows vote for, shape (n, q): indicators of the classes of which
        `targets` are the numbers, or standardized numbers.
        """

    def _set_maps(self, learned: Sequence[LearnedMap], X: Any) -> Self:
        """Set what was learned of each encoding, and how the votes in their spaces are mixed."""
        dtype = np.float64 if len(self._Y) <= FLOAT64_ROWS else np.float32
        _, shares = mixed([one.experts for one in learned], learned[0].held_out)
        spaces = [
            VotingSpace.of(encoder, one, own, X)
            for encoder, one, own in zip(self.encoder_.encoders, learned, shares, strict=False)
            if own.any()
        ]
        spaces.sort(key=lambda space: -sum(expert.share for expert in space.experts))
        self.encoder_ = Encodings([space.encoder for space in spaces])
        self.components_ = block_diag(*[space.components for space in spaces]).astype(dtype)
        self._Z = np.hstack([space.Z for space in spaces]).astype(dtype)
        self.vote_ = Mixture.of([space.experts for space in spaces])
        self.distance_ = self.vote_.largest.distance
        self.temperature_ = self.vote_.largest.temperature
        self.alpha_, self.alpha_scores_ = learned[0].alpha, learned[0].scores
        self.feature_effects_ = self._effects(X)
        return self

    def _effects(self, X: Any) -> np.ndarray:
        """Return how far each column moves the rows about their mean, shape (n_columns,)."""
        if issparse(X):
            encoded = self.encoder_.transform(X)
            return norm(self.components_, axis=0) * mean_variance_axis(encoded, axis=0)[1] ** 0.5
        encoded = self.encoder_.transform(X[:: -(-len(X) // EFFECT_ROWS)])
        effects = np.zeros(self._n_columns)
        for column in np.unique(self.encoder_.groups_):
            own = self.encoder_.groups_ == column
            moved = encoded[:, own] @ self.components_[:, own].T
            effects[column] = np.sqrt(moved.var(axis=0, dtype=np.float64).sum())
        return effects

    @property
    def encoding_shares_(self) -> dict[str, float]:
        """Return the share of each encoding in a prediction, the largest first, by how it takes
        numbers: "8 bins", "straight lines", "32 bins"; of sparse rows "as they are".
        """
        check_is_fitted(self, ["vote_", "encoder_"])
        shares = defaultdict[tuple[int, int], float](float)
        for expert in self.vote_.experts:
            shares[expert.axes] += expert.share
        return dict(zip(self.encoder_.names, shares.values(), strict=True))

    def _set_held_out(self, learned: Sequence[LearnedMap], folds: Sequence[TrainTest]) -> Self:
        """Set what the votes of the members say of the rows that they have not seen."""
        votes, _ = mixed([one.experts for one in learned], learned[0].held_out)
        self.held_out_rows_ = self._rows[np.concatenate([test for _, test in folds])]
        self._held_out_folds = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])
        self.held_out_votes_ = self._decode_votes(votes)
        return self

    def _keep_held_out(self, cells: Any, features: Sequence[Feature] | None) -> None:
        """Keep what `predict_set`, `predict_quantiles`, `familiarity` and `drift` need of the
        held-out rows, given all rows as numbers.
        """
        if features is None:
            if self._table is not None:
                features = features_of(self._table)
            else:
                features = [Feature(f"x{j}", j) for j in range(cells.shape[1])]
        places = np.searchsorted(self._rows, self.held_out_rows_)
        weights = np.ones(len(places)) if self._weights is None else self._weights[places]
        self._held_out = HeldOutRows(
            places,
            cells[places],
            self._Z[places],
            self._decode_targets(self._Y[places]),
            self.held_out_votes_,
            features,
            weights / weights.mean(),
            self._held_out_folds,
            len(self._rows),
        )

    @abstractmethod
    def _decode_targets(self, Y: np.ndarray) -> np.ndarray:
        """Return what `_encode_targets` was given: the numbers of classes, or numbers."""

    @property
    def held_out(self) -> HeldOutRows | None:
        """Return what is known of the held-out rows, for new rows that are encoded and mapped
        already; None before `fit`, and of a model that was saved by version 0.2.
        """
        return getattr(self, "_held_out", None)

    def familiarity(self, X: Any) -> np.ndarray:
        """Return how familiar each row is: the share of training rows that are at least as far from
        the others.

        A small value says that the row is unlike those that were learned from, and that its
        prediction should not be relied upon, however sure it is.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
            In (0, 1]: conformal p-values, (1 + number of held-out rows that are at least as far) /
            (1 + n_held_out), by weights where `fit` was given some. The distance of a row is the
            mean of those to the 5 nearest held-out rows, without the row itself, with every column
            in standard deviations, categories as indicators: not in the learned space, which
            forgets what does not tell the known classes apart.

        Notes
        -----
        Of rows that are exchangeable with the training rows, a share of about a, or less where
        distances are equal, has a value of at most a. The frequency of a held-out row's value in a
        category of many values is counted without the row, as that of a new row is. A missing
        number counts as the mean. Columns that did not vary in training are not looked at.

        Cost: O(n n_held_out p), with n_held_out at most about 2,000.
        """
        check_is_fitted(self, "_held_out")
        return self._held_out.familiarity(self._cells(X))

    def drift(self, X: Any) -> Drift:
        """Say whether new rows, as a whole, still look like the training rows, and which columns
        have moved.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
            The new rows.

        Returns
        -------
        Drift
            `has_drifted`, with a chance of at most 5 % where nothing has; the names of the columns
            that have `moved`; p-values of all `columns` and of the rows' `familiarity`, adjusted by
            Holm's method.

        Notes
        -----
        Each number is compared with the held-out rows, at most about 2,000, by the two-sample
        Kolmogorov-Smirnov test, and its share of missing cells by Fisher's exact test; shares of
        categories by the chi-squared test, where rare values and new ones count together. Of a
        category of more than 100 values it is tested by the one-sided Kolmogorov-Smirnov test
        whether new rows have values that were more frequent in training, or less, than chance
        explains: a name or an identifier that nearly every row has for itself tells nothing.
        Familiarities are compared with those of the held-out rows by the one-sided test, too: rows
        that are more familiar than new ones, such as the training rows themselves, are no drift.
        Weights of rows do not count. The tests know nothing of the targets, nor whether a
        prediction suffers. Many rows make small moves significant.

        Cost: that of `familiarity`, and O(p (n + n_held_out) log(n + n_held_out)).
        """
        check_is_fitted(self, "_held_out")
        return self._held_out.drift(self._cells(X))

    def _decode_votes(self, votes: np.ndarray) -> np.ndarray:
        """Return votes (n, q) as predictions: probabilities of classes, or numbers in the unit of
        the targets, shape (n,).
        """
        return votes

    @with_callbacks
    def fit_encoded(
        self,
        X: Any,
        y: Any,
        features: Sequence[Feature] | None = None,
        folds: Sequence[TrainTest] | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from rows that a `TableEncoder` has encoded; all other methods take such rows then,
        too.

        Parameters
        ----------
        X : array of shape (n, p)
            NaN where a cell is missing: of `TableEncoder(missing="keep")`.
        y : array of shape (n,)
            As in `fit`.
        features : sequence of p Feature, default=None
            `nearkin.tables.features_of` the encoder: `feature_effects_` are those of its columns.
            Without them each is a number.
        folds : sequence of (training rows, test rows), default=None
            Of the members, in place of `n_members` folds that are cut here: such as keep the rows
            of a group together. They hold all rows, or of more than 2,000 about so many.
        sample_weight : array of shape (n,), default=None
            As in `fit`.
        """
        return self._fit(X, y, sample_weight, features, folds)

    def transform(self, X: Any) -> np.ndarray:
        """Return rows in the learned space.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)

        Returns
        -------
        Z : ndarray of shape (n, m)
            The spaces of the encodings side by side, each along the principal axes of the training
            rows, the longest first; up to 2,000 of these in float64, else in float32.
        """
        X = self._cells(X)
        return self.encoder_.transform(X) @ self.components_.T

    def _cells(self, X: Any) -> Any:
        """Return rows as numbers, NaN where a cell is missing."""
        check_is_fitted(self, "components_")
        refuse_foreign(X)
        if self._table is None:
            return self._numbers(X, sparse=self.encoder_.is_sparse, reset=False)
        return self._table.transform(X)

    def vote(self, Z: np.ndarray) -> np.ndarray:
        """Return what all training rows vote for rows in the learned space, (n, m).

        Returns
        -------
        ndarray of shape (n, n_classes) or (n,)
            The probability of every class, or numbers.
        """
        return self._decode_votes(self.vote_.predict(Z, self._Z, self._Y, self._weights))

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Return what a saved model keeps of the map and the vote, but for the rows that vote.

        Returns
        -------
        arrays : dict of str to ndarray
            "components", (m, r) of the features of the `Encodings`; for sparse rows (m, p) of these
            as they are, with an "offset" (m,) of zeros; "effects", `feature_effects_`;
            "class_weights" (n_classes,), where classes were weighted; and those of the held-out
            rows, whose names begin with "held_out".
        states : dict of str to dict
            Of numbers and texts, which JSON can hold: "bins", of the `Encodings`, empty for sparse
            rows, and "soft_vote", of the mixture.
        """
        check_is_fitted(self, "components_")
        arrays = {"components": self.components_, "effects": self.feature_effects_}
        bins: dict[str, Any] = {}
        if self.encoder_.is_sparse:  # it scales, no more
            arrays["components"] = self.components_ / self.encoder_.encoders[0].scale_
            arrays["offset"] = np.zeros(len(self.components_))
        else:
            bins = self.encoder_.to_dict()
        if self._class_weights is not None:
            arrays["class_weights"] = self._class_weights
        arrays |= self._held_out.to_arrays()
        return arrays, {"bins": bins, "soft_vote": asdict(self.vote_)}

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        states: dict[str, dict[str, Any]],
        features: Sequence[Feature],
        classes: Any = None,
    ) -> Self:
        """Return a predictor of encoded rows, by what `to_arrays` returned; raise an error where it
        is none.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Also "voters" (n, m), the training rows in the learned space, and "answers" (n,): the
            positions of their classes, or their numbers.
        states : dict of str to dict
            As `to_arrays` returns them; those of other names are passed over.
        features : sequence of Feature
            `nearkin.tables.features_of` what encodes the rows.
        classes : list, default=None
            Labels, sorted, of a classifier.

        Notes
        -----
        Of sparse rows it has no encoder: whoever keeps their affine map maps them, and it votes.
        Rows vote alike, whatever their weights were: labels of a weighted classifier are those of
        the largest probability times "class_weights".
        """
        predictor = cls()
        predictor._table = predictor._weights = None
        if states["bins"]:
            predictor.encoder_ = Encodings.from_dict(states["bins"], features)
        predictor.components_, predictor._Z = arrays["components"], arrays["voters"]
        predictor.vote_ = mixture_from(states["soft_vote"], predictor._Z.shape[1])
        predictor.n_features_in_ = len(features)
        if classes is not None:
            predictor.classes_ = np.array(classes)
        predictor._Y = predictor._encode_targets(arrays["answers"])
        if "held_out_votes" in arrays:  # not in models of version 0.2
            predictor._held_out = HeldOutRows.from_arrays(
                arrays,
                features,
                predictor._Z,
                arrays["answers"],
                len(classes) if classes else None,
            )
        return predictor

    def curves(self) -> Curves:
        """Return how each column moves a row in the learned space: functions that are linear
        between edges, or levels.

        Returns
        -------
        dict of str to Curve or Levels
            By the names of the columns ("x0", "x1", ... of an array); a date becomes several
            numbers, such as "day (days since 1970)" and "day (week, sin)", and a category of many
            values one, "town (frequency)". All know their `column`. Of a number: `edges` (T + 1,),
            `values` (m, T + 1), 0 at the first edge, and `missing` (m,), the place of a missing
            value, where the column held some; the edges span the numbers of `fit`. Of a category:
            `names` of its L values, among them "(missing)" where some were, and `values` (m, L),
            about their mean over the training rows. None of sparse X.
        """
        check_is_fitted(self, "components_")
        return self.encoder_.curves(self.components_)

    def kneighbors(self, X: Any, n_neighbors: int = 5, *, return_distance: bool = True) -> Any:
        """Return the nearest training rows in the learned space; of equal weights, they tend to
        have the largest votes.

        Squared distances are the sums of those in the spaces of the encodings, which are scaled by
        their shares of a prediction.

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
        distances, found = (
            NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self._Z).kneighbors(queries)
        )
        return (distances, self._rows[found]) if return_distance else self._rows[found]


COMPARED = {"own_vote": True, "nested": False, "most_rows": 100_000}


class NCAClassifier(ClassifierMixin, TablePredictor):
    """Neighbourhood Components Analysis for tables: nearest neighbours that classify a data frame
    as it is.

    Columns of numbers, categories and dates, with missing values, become groups of features in
    which a linear map can bend: bins of a number, indicators of a category
    (`nearkin.tables.BinnedEncoder`). The map A maximizes NCA's log-likelihood [1]_, in which every
    row is classified by all others,

        1/n sum_i log q_i,    q_i = sum_(j in C_i) p_ij,    p_ij ~ exp(-||A x_i - A x_j||^2) (eq. 6)

    minus `alpha / sqrt(n) ||A||^2 u^2`, with a norm that prefers few of the G columns of the table,

        ||A||^2 = G^(-1/3) (sum_g ||A_g||^1.5)^(4/3),    A_g the features of column g,

    and u the typical distance of neighbours. The map is the mean, as a metric, of those of
    `n_members` folds; the rows of the other folds choose alpha.

    So a map is learned for each of several encodings E: few bins, straight lines, many bins. In the
    space of each, with the distances d_j, all rows vote at several temperatures T,

        p_(E,T)(c) ~ sum_(j in C_c) exp(-d_j^2 / T)    or    sum_(j in C_c) exp(-2 d_j / sqrt(T)),

    and a prediction is the mixture of these experts, `sum_(E,T) s_(E,T) p_(E,T)`, whose shares s
    make the held-out rows most likely.

    Parameters
    ----------
    n_components : int, default=32
        Dimensions of the map of a member, at most.
    n_bins : int or "auto", default="auto"
        Bins of a number, at most: see `nearkin.tables.PiecewiseLinearEncoder`. "auto" mixes the
        encodings with 8 bins, 1 and 32; where numbers have so few values that some are the same,
        fewer, and of more than 200,000 rows only the first. An integer takes one encoding.
    alpha : float or "auto", default="auto"
        Weight of the penalty. "auto" begins with 4.5 and goes on to 1.5, 0.5, 0.17, ..., 0.006,
        every descent from the map before, until the held-out loss is 1.02 times the lowest; the
        weight of that is taken. The other encodings begin one step before it.
    n_members : int, default=3
        Folds, at least 2, of up to 2,000 rows; of more there is one member. The cost grows with
        their number.
    distance : {"auto", "squared", "plain"}, default="auto"
        In the vote: of two distances by the held-out loss, or one of them. A plain distance has the
        longer tail.
    class_weight : dict of class to positive float, "balanced" or None, default=None
        How much a row of each class counts, in the likelihood and in the vote; "balanced" is n /
        (n_classes n_c). The probabilities are those of classes that are as frequent as the weights
        make them.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn for more than 2,000 rows; of fewer nothing is drawn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (m, n_features_encoded)
        The maps of the encodings, below and beside one another: the map of an encoding takes its
        features alone, and its rows are the principal axes of the training rows in its space, the
        longest first. The scale of each is such that squared distances are the exponents of its
        votes, at their mean temperature, times the share of these in a prediction.
    encoder_ : Encodings
        What makes the features that the maps take of the numbers and indicators of a table, in the
        order of the encodings' shares.
    encoding_shares_ : dict of str to float
        The share of each encoding in a prediction, by its name: "8 bins", "straight lines",
        "32 bins".
    vote_ : Mixture
        The experts: temperature and distance of each, its axes, and its share of a prediction;
        `nearkin.tables.votes`.
    temperature_, distance_ : float, str
        Those of the vote with the largest share; the distance is "squared" or "plain".
    alpha_ : float
        The weight of the penalty in use for the first encoding.
    alpha_scores_ : dict of float to float
        Minus the held-out loss of every penalty that was tried for it.
    feature_effects_ : ndarray of shape (`n_features_in_`,)
        How far each column of the table moves the rows about their mean, as the root of the mean
        square; 0 for columns that are left out.
    held_out_rows_ : ndarray of int of shape (n_held_out,)
        The rows of `fit`, each of which was held out by one member; of more than 2,000 rows a
        fifth, at most 2,000, which were held out until the last half round of steps.
    held_out_votes_ : ndarray of shape (n_held_out, n_classes)
        The votes of that member's training rows for them, or of all rows that were not held out, by
        the penalty and the mixture that these votes chose.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCARegressor : For numbers.
    NCA : The map for a numeric array.
    TableEncoder : Numbers from the columns of a table.

    Notes
    -----
    The inner folds are not drawn, and do not know which rows belong together: of grouped rows, such
    as several of one patient, the penalty comes out too small. Nor is a weight of 2 the same as the
    row twice, whose copies would be each other's nearest neighbours in the likelihood, and in
    different folds.

    Sparse X is never made dense as a whole: each of its columns, such as an indicator of a category
    or a count, is one feature over its deviation, without bins, and a column of its own in the
    penalty.

    The shares of the experts are found by expectation maximization, 100 steps from equal shares,
    which overfits less than the maximum; those below 0.04 become 0. An encoding that is left
    without a share is dropped.

    An interrupt (Ctrl-C) leaves the best so far, the encodings that are learned, once there is one.
    Callbacks of scikit-learn are called after each penalty of each encoding, and after its
    stochastic gradient.

    More than 2,000 rows: a fifth, at most 2,000, are held out until the last half round, and choose
    in place of the folds. A first map is learned from 2,000 of the others. Then stochastic gradient
    (Adam with one scale for all entries) goes on with all n of these, in up to 5 rounds: the
    penalty of the first map, then a third of it, and so on, until the held-out loss rises; a given
    `alpha`, and the encodings after the first, take one round. A round has 300 max(1, n /
    10000)^(1/4) steps, each of which draws max(4096, sqrt(250 n)) rows and predicts 256 of them by
    the rest. The held-out rows then find the shares; half a round more is learned from all rows,
    and all vote.

    Cost: O(s^2 m + s r m) for an iteration of each member, with s rows, at most 2,000, and r
    encoded features; up to 12 iterations for each of up to 7 penalties of each encoding. With more
    than 2,000 rows, O(b r m) beside for each step, with the b rows that it draws, and O(n r m) for
    the encoded rows. A prediction costs O(k n m) for each new row, with k experts, at most 25.
    Computed in float32, the vote in float64 for up to 2,000 rows.

    References
    ----------
    .. [1] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood Components
       Analysis", NIPS 2004.
    .. [2] Yury Gorishniy, Ivan Rubachev and Artem Babenko, "On Embeddings for Numerical Features in
       Tabular Deep Learning", NeurIPS 2022: the bins.
    .. [3] Han-Jia Ye, Huai-Hong Yin, De-Chuan Zhan and Wei-Lun Chao, "Revisiting Nearest Neighbor
       for Tabular Data: A Deep Tabular Baseline Two Decades Later", ICLR 2025: NCA on encoded
       columns against trees.

    Examples
    --------
    >>> import pandas as pd
    >>> from nearkin import NCAClassifier
    >>> flowers = pd.DataFrame({
    ...     "petals": [4, 5, 4, 5, 6, 5, 4, 5, 6, 5, 6, 6],
    ...     "colour": ["red", "red", "red", "red", None, "red"] + ["blue"] * 6,
    ... })
    >>> names = ["poppy"] * 6 + ["flax"] * 6
    >>> model = NCAClassifier().fit(flowers, names)
    >>> model.predict(pd.DataFrame({"petals": [5], "colour": ["red"]}))
    array(['poppy'], dtype='<U5')
    """

    _loss = staticmethod(log_loss)
    compared_as: ClassVar[dict] = {
        "NCA tables": COMPARED,
        "NCA tables balanced": COMPARED
        | {"params": {"class_weight": "balanced"}, "balanced": True},
    }

    def __init__(
        self,
        n_components: int = 32,
        *,
        n_bins: int | str = "auto",
        alpha: float | str = "auto",
        n_members: int = 3,
        distance: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            n_bins=n_bins,
            alpha=alpha,
            n_members=n_members,
            distance=distance,
            random_state=random_state,
        )
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : data frame (pandas, polars or pyarrow), array or sparse matrix of shape (n, p)
            At least 4 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes.
        sample_weight : array of shape (n,), default=None
            Not negative: how much each row counts, in the likelihood and in the vote, relative to
            the others. Rows of weight 0 are left out. Multiplied with `class_weight`. The encoding
            does not know of weights.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _learn_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Learn the classes and their weights; return indicators of the classes, (n, n_classes),
        and the class of each row as a number.
        """
        self.classes_, codes = encode_labels(y)
        check_shared_labels(codes)
        self._class_weights, given = None, self.class_weight
        if given is not None:
            if given != "balanced" and not isinstance(given, dict):
                raise ValueError(
                    'class_weight must be None, "balanced" or a dict of class to weight, '
                    f"got {given!r}."
                )
            self._class_weights = compute_class_weight(
                given, classes=self.classes_, y=self.classes_[codes]
            )
            if self._class_weights.min() <= 0:
                raise ValueError(
                    f"class_weight must be larger than 0 for every class, got {given!r}."
                )
        return self._encode_targets(codes), codes

    def _encode_targets(self, targets: np.ndarray) -> np.ndarray:
        """Return indicators of the classes."""
        return np.eye(len(self.classes_))[targets]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, in the order of `classes_`, shape (n,
        n_classes).
        """
        return self.vote(self.transform(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        votes = self.vote(self.transform(X))
        return self.classes_[votes.argmax(axis=1)]

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, by_class: bool = False, allow_empty: bool = False
    ) -> np.ndarray:
        """Return the labels that a row may have: a set that holds the true one with a given chance.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        coverage : float, default=0.9
            The share of rows whose set is to hold their label, between 0 and 1.
        by_class : bool, default=False
            Whether it is to be the share of the rows of every class. A class with too few held-out
            rows, fewer than `coverage / (1 - coverage)`, is in all sets.
        allow_empty : bool, default=False
            Whether a set may be empty, which says that no label is likely enough. Otherwise the
            most probable label is in every set, and more rows than `coverage` are covered where
            more than that are classified correctly.

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            Whether each of `classes_` is in the set: `model.classes_[found[0]]` are the labels of
            the first row.

        Notes
        -----
        Split-conformal sets by the score 1 - p_c [1]_, 0 for the most probable label: the smallest
        sets of their coverage that are never empty. The threshold is the score of rank
        ceil((n + 1) coverage) among those of the n held-out rows for their labels, counted by
        weights (`sample_weight`, `class_weight`) where `fit` was given some; of too few rows all
        labels are in all sets.

        Promised is the share over all rows that are exchangeable with the training rows, not for
        each row, nor where rows have moved (see `drift`). It is approximate: the held-out rows have
        also chosen penalty and temperature, and were judged by the votes of one member (of more
        than 2,000 rows: of a map that had not learned from them), with fewer rows, where new rows
        are judged by all; the one makes sets a little too small, the other too large.

        References
        ----------
        .. [1] M. Sadinle, J. Lei and L. Wasserman, "Least Ambiguous Set-Valued Classifiers With
           Bounded Error Levels", Journal of the American Statistical Association 114, 2019.
        """
        level = check_coverage(coverage)
        check_is_fitted(self, "_held_out")
        return self._held_out.label_sets(
            self.predict_proba(X), level, by_class=by_class, allow_empty=allow_empty
        )

    def _decode_targets(self, Y: np.ndarray) -> np.ndarray:
        """Return the numbers of classes."""
        return Y.argmax(axis=1)


class NCARegressor(RegressorMixin, TablePredictor):
    """Neighbourhood Components Analysis for tables: nearest neighbours that predict numbers from a
    data frame as it is.

    As `NCAClassifier`, with the leave-one-out error of the weighted mean, the loss of kernel
    regression [1]_, in place of the log-likelihood:

        1/n sum_i (y_i - y^_i)^2 / var(y),    y^_i = sum_j p_ij y_j,

        p_ij ~ exp(-||A x_i - A x_j||^2).

    Parameters
    ----------
    n_components, n_bins, alpha, n_members, distance, random_state
        See `NCAClassifier`.

    Attributes
    ----------
    components_, encoder_, encoding_shares_, vote_, temperature_, distance_, alpha_
        See `NCAClassifier`.
    feature_effects_
        See `NCAClassifier`.
    alpha_scores_ : dict of float to float
        Minus the held-out squared error of every penalty that was tried, over the variance of y.
    held_out_rows_, held_out_votes_
        See `NCAClassifier`; the votes are numbers, of shape (n_held_out,).
    line_share_ : float
        The share of local lines in a prediction, 0 to 1.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCAClassifier : For classes.
    MLKR : The map for a numeric array and numbers.

    Notes
    -----
    In the space of each encoding the mixture has one more expert than for classes, a line through
    the nearest 150 rows: a ridge regression along the 10 principal directions of the space, with
    weights exp(-d^2 / (c T)) at the best temperature T. The held-out rows choose c among 1, 2 and 5
    and the ridge among 0.1 and 1. The shares of all experts minimize the held-out squared error,
    and small ones are dropped, as for classes. Predictions never leave the range of the known
    numbers.

    Cost: as `NCAClassifier`.

    References
    ----------
    .. [1] K. Q. Weinberger and G. Tesauro, "Metric Learning for Kernel Regression", AISTATS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin import NCARegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = NCARegressor().fit(X, np.abs(X[:, 1]))
    >>> bool(model.feature_effects_.argmax() == 1)
    True
    """

    _loss = staticmethod(squared_error)
    compared_as: ClassVar[dict] = {"NCA tables": COMPARED | {"params": None, "regression": {}}}

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : data frame (pandas, polars or pyarrow), array or sparse matrix of shape (n, p)
            At least 4 rows that are not all equal.
        y : array of shape (n,)
            Numbers, not all equal.
        sample_weight : array of shape (n,), default=None
            See `NCAClassifier.fit`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _learn_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the standardized numbers, (n, 1), and one class for all rows."""
        refuse_unfit_targets(y, self)
        y = column_or_1d(
            check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True
        )
        check_targets_vary(y)
        return self._encode_targets(y), np.zeros(len(y), dtype=int)

    def _encode_targets(self, targets: np.ndarray) -> np.ndarray:
        """Return the standardized numbers, and keep their mean and unit for `_decode_votes`."""
        self._centre, self._unit = targets.mean(), targets.std()
        return ((targets - self._centre) / self._unit)[:, None]

    @property
    def line_share_(self) -> float:
        """Return the share of local lines in a prediction."""
        return self.vote_.line_share

    def predict(self, X: Any) -> np.ndarray:
        """Return the mixture of weighted means of the numbers of all training rows, and of local
        lines, shape (n,).
        """
        return self.vote(self.transform(X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return intervals that hold the number of a row with a given chance.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        coverage : float, default=0.9
            The share of rows whose number is to lie in their interval, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2)
            The lower and the upper end: the quantiles (1 - coverage) / 2 and (1 + coverage) / 2 of
            `predict_quantiles`, whose notes say what is promised.
        """
        tail = (1 - check_coverage(coverage)) / 2
        return self.predict_quantiles(X, [tail, 1 - tail])

    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Return quantiles of the number of each row.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        q : float, or array of shape (k,)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n, k)
            They ascend with q.

        Notes
        -----
        Quantiles of predictions plus the errors of held-out rows. Each error is added to what the
        training rows predict without those of its fold [2]_, not to `predict`: that is a mean, and
        a few huge numbers may move it farther than the errors, even out of an interval. The errors
        have the weights exp(-d^2 / b^2): d is the distance in the learned space, b that of the
        held-out row of a rank from 15 to 240, or all rows weigh the same; the held-out pinball loss
        chooses. The quantiles are calibrated [1]_: of n held-out rows, each with the errors of the
        others, at most floor((n + 1) q) lie below a quantile q < 1/2, and at least
        ceil((n + 1) q) do not lie above one of q >= 1/2. Of fewer rows than 1 / q - 1 a lower
        quantile is minus infinity; likewise an upper one.

        Promised is the share over all rows that are exchangeable with the training rows, not for
        each row, nor where rows have moved (see `drift`). It is approximate: the held-out rows have
        also chosen penalty, temperature and b, and their errors are those of one member (of more
        than 2,000 rows: of a map that had not learned from them), where new rows are predicted in
        the final space. `sample_weight` of `fit` counts in all of it.

        Cost: O((n + n_held_out) n_held_out (m + k + log(n_held_out))), with n_held_out at most
        about 2,000, and a prediction for each fold.

        References
        ----------
        .. [1] Y. Romano, E. Patterson and E. Candes, "Conformalized Quantile Regression", NeurIPS
           2019.
        .. [2] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive Inference
           with the Jackknife+", Annals of Statistics 49, 2021: CV+.
        """
        levels, order = np.unique(check_levels(q), return_inverse=True)
        check_is_fitted(self, "_held_out")
        Z = np.asarray(self.transform(X))  # a data frame after set_output
        return self.quantiles(Z, levels)[:, order]

    def quantiles(self, Z: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return quantiles of the numbers of rows in the learned space, (n, m), for levels q that
        ascend.
        """
        votes = []
        for fold in self._held_out.rows_of_folds():
            rest = np.setdiff1d(np.arange(len(self._Z)), fold)
            weights = None if self._weights is None else self._weights[rest]
            votes.append(self.vote_.predict(Z, self._Z[rest], self._Y[rest], weights))
        predicted = np.column_stack([self._decode_votes(of_fold) for of_fold in votes])
        return self._held_out.quantiles(Z, predicted, q)

    def _decode_targets(self, Y: np.ndarray) -> np.ndarray:
        """Return the numbers in the unit of the targets."""
        return self._decode_votes(Y)

    def _decode_votes(self, votes: np.ndarray) -> np.ndarray:
        """Return votes for standardized numbers in the unit of the targets."""
        return votes[:, 0] * self._unit + self._centre
