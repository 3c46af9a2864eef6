"""Nearest neighbours for tables: encoded columns, NCA's map, and a vote of all rows."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
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
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import check_shared_labels, encode_labels
from .._memory import require_memory
from .._messages import shown
from .._validation import (
    check_choice,
    check_consistent_length,
    check_integer,
    check_random_state,
    equals,
    refuse_foreign,
    refuse_sparse_gaps,
    weighted_rows,
)
from ..descent import DescentStatus
from ..estimators.validation import check_targets_vary, real_targets, validated
from ..folds import MAX_ROWS, inner_folds, sample_rows
from ..neighbors import exact_index
from ..objectives.kernel_regression import RowLoss, log_loss, squared_error
from ..objectives.loss import FLOAT64_ROWS
from .bins import BinnedEncoder, Curves, Encodings, SparseEncoder, features_of, is_table
from .cells import read_cells
from .columns import Feature
from .encoder import TableEncoder
from .held_out import Drift, HeldOutRows, check_coverage, check_levels
from .members import (
    ALPHAS,
    FoundMixture,
    LabelledRows,
    LearnedMap,
    embedded,
    member_path,
    mixed,
    refined,
    voting_space,
)
from .target import refuse_odd_labels
from .votes import DISTANCES, MIXED_TEMPERATURES, Mixture, NormalScores, absolute_error

# Shared by the predictors for tables: encoded columns, a map from members, a vote of all rows.

TrainTest = tuple[np.ndarray, np.ndarray]  # row indices

# bins of the encodings that are mixed; the penalty found with the first guides the others
BINS = (8, 1, 32)
MIXED_ROWS = 200_000  # with more rows, only the first encoding is learned
BEFORE = 3.2  # the largest penalty of the other encodings, relative to that of the first
ROUNDS = 5  # of stochastic descent, at most
EFFECT_ROWS = 20_000  # maximum number of rows to measure the effect of a column
FEWEST = 4  # rows: two to learn from, in each of two folds
OUTERMOST = 10  # numbers at each end, from which the bounds of quantiles are derived


def check_split(split: TrainTest | None, folds: Sequence[TrainTest]) -> None:
    """Raise an error unless a split holds out rows that no member learns from."""
    if split is None:
        raise ValueError(
            f"split must be given with folds of more than {MAX_ROWS:,} rows: (training rows, test "
            "rows), whose test rows are in no training part of the folds."
        )
    seen = np.concatenate([split[0], *(train for train, _ in folds)])
    if shared := int(np.isin(split[1], seen).sum()):
        raise ValueError(
            f"{shared:,} of the {len(split[1]):,} test rows of split are also training rows, of "
            "the split or of a fold: leave them out of these."
        )


class TablePredictor(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Base of the two predictors.

    A subclass defines `_loss`, `_learn_targets` and `_encode_targets`.
    """

    n_components: int
    n_bins: int | str
    alpha: float | str
    n_members: int
    distance: str
    random_state: Any
    _loss: RowLoss
    _class_weights: np.ndarray | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.sparse = tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []  # depends on the number of rows
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
        split: TrainTest | None = None,
    ) -> Self:
        """Learn from a table, or from an array with the given features, folds and split.

        An interrupt keeps the best result so far, if there is one, and is raised again.
        """
        task = FitTask(self, X, y, None)
        X, y, weights = self._validated(X, y, sample_weight)
        X = self._learn_encoding(X, features, weights)
        targets, codes = self._learn_targets(y)
        Y = self._encode_targets(targets)
        if self._class_weights is not None:
            of_class = self._class_weights[codes]
            weights = of_class if weights is None else weights * of_class
        weights = None if weights is None else weights / weights.mean()
        self._Y, self._weights = Y, weights
        if folds is not None and len(codes) > MAX_ROWS:
            check_split(split, folds)
        learned, final, status = self._learn_maps(X, codes, folds, split, task)
        self._set_maps(final, X)
        if folds is None:
            unseen = self.held_out_rows_, self.held_out_votes_
        else:
            unseen = self._unseen(learned, mixed(learned))
        self.member_rows_, self.member_votes_ = unseen
        # `predict_set`, `predict_quantiles`, `familiarity` and `drift` need them
        tests = [test for _, test in final[0].folds]
        places = np.concatenate(tests)
        weights = np.ones(len(places)) if weights is None else weights[places]
        self._held_out = HeldOutRows(
            places,
            X[places],
            self._Z[places],
            targets[places],
            self.held_out_votes_,
            self._features,
            weights / weights.mean(),
            np.repeat(np.arange(len(tests)), list(map(len, tests))),
        )
        if status is DescentStatus.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self

    def _learn_maps(
        self,
        X: Any,
        codes: np.ndarray,
        folds: Sequence[TrainTest] | None,
        split: TrainTest | None,
        task: FitTask,
    ) -> tuple[list[LearnedMap], list[LearnedMap], DescentStatus]:
        """Return the members' maps of the encodings, the final maps, and the status.

        With more than 2,000 rows, the final maps are refined by stochastic gradient. Unfinished
        encodings after the first are left out.
        """
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        alphas: Sequence[float] = ALPHAS
        if not isinstance(self.alpha, str):
            alphas = (float(self.alpha),)
        learned: list[LearnedMap] = []
        final: list[LearnedMap] = []

        def report(found: Callable[[], LearnedMap]) -> bool:
            def attributes() -> dict[str, Any]:
                maps = final or [self._with_numbers(found())]
                return dict(vars(copy(self)._set_maps(maps, X)))

            return task.iteration(attributes)

        try:
            for encoder in self.encoder_.encoders:
                Y = self._targets_of_map(len(final))
                rows = LabelledRows.of(encoder, X, Y, self._loss, self._weights)
                # the same held-out rows for all encodings, whose votes are mixed by them
                if folds is None:
                    folds, split = self._folds(rows.X, codes)
                found = member_path(rows, folds, self.n_components, alphas, self.distance, report)
                last = found
                if len(rows) > MAX_ROWS and found.status is DescentStatus.CONVERGED:
                    last = self._refined(found, rows, split, final, rng)
                if not final or last.status is DescentStatus.CONVERGED:
                    learned.append(self._with_numbers(found))
                    final.append(self._with_numbers(last))
                if last.status is not DescentStatus.CONVERGED:
                    return learned, final, last.status
                if last is not found and report(lambda: final[0]):
                    return learned, final, DescentStatus.STOPPED
                # The other encodings need about the same penalty, and one before it to start with.
                # If there is none before it, as for bins of many columns, straight lines need less.
                first = (learned or [found])[0].alpha
                if first < max(alphas):
                    alphas = [alpha for alpha in alphas if first <= alpha <= BEFORE * first]
        except KeyboardInterrupt:
            if not final:
                raise
            return learned, final, DescentStatus.INTERRUPTED
        return learned, final, DescentStatus.CONVERGED

    def _refined(
        self,
        found: LearnedMap,
        rows: LabelledRows,
        split: Any,
        before: Sequence[LearnedMap],
        rng: np.random.Generator,
    ) -> LearnedMap:
        """Return the map of an encoding, refined by stochastic gradient on many rows.

        `before` are the final maps of earlier encodings: the penalty of the first is kept.
        """
        penalties = [found.alpha / 3**step for step in range(ROUNDS)]
        if before or not isinstance(self.alpha, str):
            penalties = [min(one.alpha for one in (*before[:1], found))]
        try:
            return refined(found, rows, split, self.n_components, penalties, rng)
        except KeyboardInterrupt:
            return replace(found, status=DescentStatus.INTERRUPTED)

    def _folds(self, encoded: Any, codes: np.ndarray) -> tuple[list[TrainTest], TrainTest | None]:
        """Return the folds of the members and, of more than 2,000 rows, the split.

        Of so many rows there is one member. It learns from about 2,000 of the training rows of the
        split, and its test rows are those of the split.
        """
        n = len(codes)
        if n <= MAX_ROWS:
            return inner_folds(encoded, codes, self.n_members), None
        held = sample_rows(encoded, codes, min(MAX_ROWS, n // 5))
        if len(held) > n // 2:  # many small classes, all of whose rows would be held out
            split = inner_folds(encoded, codes)[0]
            return [split], split
        rest = np.setdiff1d(np.arange(n), held)
        some = rest[sample_rows(encoded[rest], codes[rest], MAX_ROWS)]
        return [(some, held)], (rest, held)

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray | None]:
        """Check the input of `fit`; return rows, targets and weights where the weight is not 0."""
        for name, least in (("n_components", 1), ("n_members", 2)):
            check_integer(getattr(self, name), name, least)
        if not equals(self.n_bins, "auto"):
            check_integer(self.n_bins, "n_bins", 1)
        if not equals(self.alpha, "auto") and not (
            isinstance(self.alpha, Real) and 0 < self.alpha <= sys.float_info.max
        ):
            raise ValueError(
                f'alpha must be "auto" or a number larger than 0, got {shown(self.alpha)}.'
            )
        check_choice(self.distance, "distance", DISTANCES)
        check_random_state(self.random_state)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        refuse_foreign(X)
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
        """Return an array of numbers; sparse ones must not have missing values."""
        refuse_sparse_gaps(X)
        return validated(
            self,
            X,
            accept_sparse="csr" if sparse else False,
            ensure_all_finite=True if sparse else "allow-nan",
            **options,
        )

    def _learn_encoding(
        self, X: Any, features: Sequence[Feature] | None, weights: np.ndarray | None
    ) -> Any:
        """Learn how a table becomes an array, and how this is encoded; return the array."""
        self._table, given = None, features
        if is_table(X):
            cells = read_cells(X, strict=False)
            self._table = TableEncoder(missing="keep", drop_identifiers=False)
            self._table.fit(cells, sample_weight=weights)
            self.n_features_in_ = self._table.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self._table, "feature_names_in_"):
                self.feature_names_in_ = self._table.feature_names_in_
            X, features = self._table.encode(cells)[0], features_of(self._table)
        self.__dict__.pop("_held_out", None)  # from an earlier fit
        self._features = features or [Feature(f"x{j}", j) for j in range(X.shape[1])]
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
            # if all numbers have few values, encodings with more bins coincide
            widths = [len(encoder.groups_) for encoder in encoders]
            self.encoder_ = Encodings(
                [encoders[widths.index(width)] for width in dict.fromkeys(widths)]
            )
        return X

    @abstractmethod
    def _learn_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check the targets of the training rows, and learn their classes or their unit.

        Return class codes or numbers, and the class code of each row, 0 in a regression.
        """

    @abstractmethod
    def _encode_targets(self, targets: np.ndarray) -> np.ndarray:
        """Return what the training rows vote for, shape (n, q).

        These are indicators of the class codes in `targets`, or standardized numbers.
        """

    def _targets_of_map(self, number: int) -> np.ndarray:
        """Return what the map of an encoding is learned from; the first has number 0."""
        return self._Y

    def _with_numbers(self, found: LearnedMap) -> LearnedMap:
        """Return a map whose experts are mixed as predictions of the targets themselves."""
        return found

    def _set_maps(self, learned: Sequence[LearnedMap], X: Any) -> Self:
        """Set the learned encodings, the mixture in their spaces, and held-out rows."""
        dtype = np.float64 if len(self._Y) <= FLOAT64_ROWS else np.float32
        found = mixed(learned)
        parts = list(zip(self.encoder_.encoders, learned, found.shares, strict=False))
        parts = sorted((part for part in parts if part[2].any()), key=lambda part: -part[2].sum())
        spaces, n_axes = [], 0
        for part in parts:
            spaces.append(voting_space(*part, X, n_axes))
            n_axes += len(spaces[-1].components)
        self.encoder_ = Encodings([encoder for encoder, *_ in parts])
        self.components_ = block_diag(*[space.components for space in spaces]).astype(dtype)
        self._Z = np.hstack([space.Z for space in spaces]).astype(dtype)
        self.vote_ = Mixture(tuple(one for space in spaces for one in space.experts), found.prior)
        self.distance_ = self.vote_.largest.distance
        self.temperature_ = self.vote_.largest.temperature
        self.alpha_, self.alpha_scores_ = learned[0].alpha, learned[0].scores
        self.feature_effects_ = self._effects(X)
        self.held_out_rows_, self.held_out_votes_ = self._unseen(learned, found)
        return self

    def _effects(self, X: Any) -> np.ndarray:
        """Return the root mean square displacement of rows by each column, shape (n_columns,)."""
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
    def _effects_of_features(self) -> np.ndarray:
        """Return `feature_effects_` without columns that are left out."""
        columns = dict.fromkeys(feature.column for feature in self._features)
        return self.feature_effects_[list(columns)]

    @property
    def encoding_shares_(self) -> dict[str, float]:
        """Return the share of each encoding in a prediction, the largest first.

        The names say how numbers are encoded: "8 bins", "straight lines", "32 bins"; "as they are"
        for sparse rows.
        """
        check_is_fitted(self, ["vote_", "encoder_"])
        shares = defaultdict[tuple[int, int], float](float)
        for expert in self.vote_.experts:
            shares[expert.axes] += expert.share
        return dict(zip(self.encoder_.names, shares.values(), strict=True))

    def _unseen(
        self, maps: Sequence[LearnedMap], mixture: FoundMixture
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that the maps of the encodings have not seen, and the votes for them."""
        rows = np.concatenate([test for _, test in maps[0].folds])
        return self._rows[rows], self._decode_votes(mixture.values)

    @property
    def held_out(self) -> HeldOutRows:
        """Return the held-out rows, for use with new rows that are already encoded and mapped."""
        return self._held_out

    def familiarity(self, X: Any) -> np.ndarray:
        """Return how familiar each row is: what share of training rows is at least as isolated.

        A small value means that the row is unlike the training rows, and that its prediction should
        not be trusted, however certain it seems.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
            In (0, 1]: conformal p-values, (1 + number of held-out rows that are at least as far) /
            (1 + n_held_out), weighted if `fit` had weights. How far a row is, is measured by the
            mean distance to its 5 nearest held-out rows, excluding itself, with columns in standard
            deviations and categories as indicators. The learned space is not used, since it ignores
            what does not separate the known classes.

        Notes
        -----
        Among rows exchangeable with the training rows, a share of about a (or less, if distances
        are equal) has a value of at most a. As for a new row, the scales of the columns, and the
        frequency of the value of a text, do not count the held-out row itself: what it alone has
        does not make it isolated. A missing number counts as the mean. Columns that did not vary in
        training are ignored, and of text it counts only how many held-out rows have the same value,
        and whether it has known words.

        Cost: O(n n_held_out p), with n_held_out at most about 2,000.
        """
        check_is_fitted(self, "_held_out")
        return self._held_out.familiarity(self._cells(X))

    def drift(self, X: Any) -> Drift:
        """Test whether new rows as a whole look like the training rows, and which columns moved.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
            The new rows.

        Returns
        -------
        Drift
            `has_drifted`, with a false alarm rate of at most 5 %; the names of the columns that
            have `moved`; p-values of all `columns` and of the rows' `familiarity`, adjusted by
            Holm's method.

        Notes
        -----
        Every column is compared with the held-out rows, at most about 2,000. For a number, a
        two-sample Kolmogorov-Smirnov test compares the values, and Fisher's exact test the share of
        missing cells. For a category, a chi-squared test (Fisher's for two values) compares the
        shares of the values, with rare and new values pooled. For a category of more than 100
        values, one-sided Kolmogorov-Smirnov tests check whether the values of new rows were more
        frequent in training, or less, than chance explains; for text, Fisher's exact test compares
        the share of rows with known words. Familiarities are compared by a one-sided test,
        too: rows more familiar than new ones should be, such as the training rows themselves, are
        not drift. Row weights are ignored. The tests do not use the targets and do not show whether
        predictions suffer. With many rows, small changes are significant.

        Cost: that of `familiarity`, plus O(p (n + n_held_out) log(n + n_held_out)).
        """
        check_is_fitted(self, "_held_out")
        return self._held_out.drift(self._cells(X))

    def _decode_votes(self, votes: np.ndarray) -> np.ndarray:
        """Return votes (n, q) as predictions: class probabilities, or numbers (n,) in y's unit."""
        return votes

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : data frame (pandas, polars or pyarrow), array or sparse matrix of shape (n, p)
            At least 4 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; for `NCARegressor` real numbers, not all equal.
        sample_weight : array of shape (n,), default=None
            Nonnegative weights of the rows, relative to each other, in the likelihood and in the
            vote; multiplied by the `class_weight` of a classifier. Rows of weight 0 are left out.
            The encoding ignores weights, except in the words of a text.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    @with_callbacks
    def fit_encoded(
        self,
        X: Any,
        y: Any,
        features: Sequence[Feature] | None = None,
        folds: Sequence[TrainTest] | None = None,
        sample_weight: Any = None,
        split: TrainTest | None = None,
    ) -> Self:
        """Learn from rows encoded by a `TableEncoder`; all other methods then take such rows, too.

        Parameters
        ----------
        X : array of shape (n, p)
            As encoded by `TableEncoder(missing="keep")`; NaN for missing cells.
        y : array of shape (n,)
            See `fit`.
        features : sequence of p Feature, default=None
            The result of `nearkin.tables.features_of` for the encoder; `feature_effects_` then
            refers to the encoder's columns. Without it, each feature is a number.
        folds : sequence of (training rows, test rows), default=None
            The folds of the members, used instead of `n_members` folds, e.g. to keep the rows of a
            group together. They hold all rows, or about 2,000 if there are more.
        sample_weight : array of shape (n,), default=None
            See `fit`.
        split : (training rows, test rows), default=None
            To be given with the folds of more than 2,000 rows: the rows of stochastic gradient
            until its last half round, and the rows that choose its penalty and the vote. No test
            row may be a training row of the split or of a fold.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, features, folds, split)

    def transform(self, X: Any) -> np.ndarray:
        """Map rows into the learned space.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)

        Returns
        -------
        Z : ndarray of shape (n, m)
            The spaces of the encodings side by side, each along the principal axes of the training
            rows, the longest first; float64 for up to 2,000 training rows, else float32.
        """
        X = self._cells(X)
        return embedded(self.encoder_, X, self.components_)

    def _cells(self, X: Any) -> Any:
        """Return rows as numbers, NaN for missing cells."""
        check_is_fitted(self, "components_")
        refuse_foreign(X)
        if self._table is None:
            return self._numbers(X, sparse=self.encoder_.is_sparse, reset=False)
        return self._table.encode_and_warn(X, self._effects_of_features)

    def vote(self, Z: np.ndarray) -> np.ndarray:
        """Return the vote of all training rows for rows in the learned space, (n, m).

        If there are more than 50,000, the nearest 200 in each encoding's space vote.

        Returns
        -------
        ndarray of shape (n, n_classes) or (n,)
            Class probabilities, or numbers.
        """
        return self._decode_votes(self.vote_.predict(Z, self._Z, self._Y, self._weights))

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Return the state of the map and the vote for a saved model, without the voting rows.

        Returns
        -------
        arrays : dict of str to ndarray
            "components", (m, r) for the features of the `Encodings`, or for sparse rows (m, p) for
            the unscaled rows, with an "offset" (m,) of zeros; "effects", `feature_effects_` of
            the columns with features; "class_weights" (n_classes,), if classes were weighted; and
            the arrays of the held-out rows, whose names begin with "held_out". All rows have the
            same weight, their frequency in the table.
        states : dict of str to dict
            Numbers and texts, which JSON can hold, of the `Encodings` and of the `Mixture`.
        """
        check_is_fitted(self, "components_")
        arrays = self._held_out.to_arrays()
        arrays["held_out_weights"] = np.ones(len(arrays["held_out_places"]))
        arrays |= {"components": self.components_, "effects": self._effects_of_features}
        if self.encoder_.is_sparse:  # it only scales
            arrays["components"] = self.components_ / self.encoder_.encoders[0].scale_
            arrays["offset"] = np.zeros(len(self.components_))
        if self._class_weights is not None:
            arrays["class_weights"] = self._class_weights
        states = {Encodings.saved_as: self.encoder_.to_dict(), Mixture.saved_as: asdict(self.vote_)}
        return arrays, states

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        states: dict[str, dict[str, Any]],
        features: Sequence[Feature],
        classes: Any = None,
    ) -> Self:
        """Return a predictor of encoded rows from the result of `to_arrays`.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Also "voters" (n, m), the training rows in the learned space, and "answers" (n,), their
            class codes or numbers.
        states : dict of str to dict
            As from `to_arrays`; other names are ignored.
        features : sequence of Feature
            The result of `nearkin.tables.features_of` for the encoder of the rows.
        classes : list, default=None
            Sorted labels of a classifier.

        Notes
        -----
        The encodings of sparse rows leave them as they are: map them by "components" and "offset".
        Row weights are not stored, so all rows have the same vote; for a classifier with class
        weights, the label is that of the largest probability times "class_weights".
        """
        predictor = cls()
        predictor._table = predictor._weights = None
        predictor.encoder_ = Encodings.from_dict(states[Encodings.saved_as], features)
        predictor.components_, predictor._Z = arrays["components"], arrays["voters"]
        predictor.vote_ = Mixture.from_dict(states[Mixture.saved_as])
        n_spaces = len({expert.axes for expert in predictor.vote_.experts})
        if n_spaces != len(predictor.encoder_.encoders):
            raise ValueError(
                f"{Mixture.saved_as}.experts are of {n_spaces} encodings, not "
                f"{len(predictor.encoder_.encoders)}"
            )
        predictor.n_features_in_ = len(features)
        if classes is not None:
            predictor.classes_ = np.array(classes)
        predictor._Y = predictor._encode_targets(arrays["answers"])
        predictor._held_out = HeldOutRows.from_arrays(
            arrays, features, predictor._Z, arrays["answers"]
        )
        return predictor

    def curves(self) -> Curves:
        """Return how each column moves a row in the learned space, as a curve or levels.

        Returns
        -------
        dict of str to Curve or Levels
            By the names of the columns ("x0", "x1", ... for an array). A date becomes several
            numbers, such as "day (days since 1970)" and "day (week, sin)", and a list becomes one
            for each item, "extras has garage". Words beside numbers are a category of their own,
            "age (words)", whose last value is "(no word)". Each entry has the index of its
            `column`. A number has `edges` (T + 1,), which span the numbers of `fit`; `values`
            (m, T + 1), 0 at the first edge; and `missing` (m,), the position of a missing value, if
            there were any. A category has the `names` of its L values, including "(missing)" if
            there were missing cells, and `values` (m, L), centred at their mean over the training
            rows. Of a text these are its most frequent values; its words have no entry. The dict is
            empty for sparse X.
        """
        check_is_fitted(self, "components_")
        return self.encoder_.curves(self.components_)

    def kneighbors(self, X: Any, n_neighbors: int = 5, *, return_distance: bool = True) -> Any:
        """Return the nearest training rows in the learned space.

        For equal weights, these tend to have the largest votes. Squared distances are sums over the
        spaces of the encodings, scaled by their shares of a prediction.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        n_neighbors : int, default=5
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            Ascending; omitted without `return_distance`.
        rows : ndarray of int of shape (n, n_neighbors)
            Indices of rows of `fit`.
        """
        queries = self.transform(X)
        k = check_integer(n_neighbors, "n_neighbors", 1, len(self._Z))
        distances, found = exact_index(self._Z, k)(queries, k)
        return (distances, self._rows[found]) if return_distance else self._rows[found]


LOSSES: dict[str, RowLoss] = {"squared_error": squared_error, "absolute_error": absolute_error}
COMPARED = {"own_vote": True, "nested": False, "most_rows": 100_000}


class NCAClassifier(ClassifierMixin, TablePredictor):
    """Neighbourhood Components Analysis for tables: nearest neighbours for rows of data frames.

    Columns of numbers, categories, dates and text, which may have missing values, become groups of
    features in which a linear map can bend [2]_: bins of a number, indicators of a category, the
    words of a text (`TableEncoder`, `nearkin.tables.BinnedEncoder`). The map A maximizes NCA's
    log-likelihood [1]_, in which every row is classified by all others,

        1/n sum_i log q_i,    q_i = sum_(j in C_i) p_ij,    p_ij ~ exp(-||A x_i - A x_j||^2) (eq. 6)

    minus `alpha / sqrt(n) ||A||^2 u^2`, where u is the typical distance of neighbours, and the norm
    favours few of the G columns of the table,

        ||A||^2 = G^(-1/3) (sum_g ||A_g||^1.5)^(4/3),    A_g the features of column g.

    The metric of the map is the mean of those learned on `n_members` folds; the held-out rows of
    these folds choose alpha.

    Such a map is learned for each of several encodings E: few bins, straight lines, many bins. In
    the space of each, with distances d_j, all rows (or, of more than 50,000, the nearest 200) vote
    at several temperatures T,

        p_(E,T)(c) ~ sum_(j in C_c) exp(-d_j^2 / T)    or    sum_(j in C_c) exp(-2 d_j / sqrt(T)),

    and a prediction is the mixture of these experts, `sum_(E,T) s_(E,T) p_(E,T)`. The shares s
    maximize the likelihood of the held-out rows.

    Parameters
    ----------
    n_components : int, default=32
        Maximum number of dimensions of a member's map.
    n_bins : int or "auto", default="auto"
        Maximum number of bins of a number; see `nearkin.tables.BinnedEncoder`. "auto" mixes the
        encodings with 8 bins, 1 and 32, without those that coincide because numbers have few
        values; with more than 200,000 rows it uses only the first. An integer uses one encoding.
    alpha : float or "auto", default="auto"
        Weight of the penalty. "auto" starts with 4.5 and continues with 1.5, 0.5, 0.17, ..., 0.006,
        each descent starting from the previous map, until the held-out loss exceeds 1.02 times the
        lowest one, whose weight is taken. The other encodings try the step before that weight, too,
        or after 4.5 all steps in this way.
    n_members : int, default=3
        Number of folds, at least 2, for up to 2,000 rows; with more rows there is one member. The
        cost grows with this number.
    distance : {"auto", "squared", "plain"}, default="auto"
        The distance in the vote, squared or plain; "auto" mixes votes by both. The plain distance
        gives votes a longer tail.
    class_weight : dict of class to positive float, "balanced" or None, default=None
        Weight of the rows of each class, in the likelihood and in the vote; "balanced" is n /
        (n_classes n_c). Probabilities then refer to the weighted class frequencies.
    random_state : int, RandomState or None, default=None
        Seed for more than 2,000 rows; for fewer rows nothing is random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (m, n_features_encoded)
        The maps of the encodings as a block-diagonal matrix: each maps the features of its encoding
        to the principal axes of the training rows in its space, the longest first. They are scaled
        such that squared distances are the exponents of the votes at their mean temperature, times
        the share of these votes in a prediction.
    encoder_ : Encodings
        Computes the features of the maps from the numbers and indicators of a table. The encoding
        with the largest share comes first.
    encoding_shares_ : dict of str to float
        The share of each encoding in a prediction, by its name: "8 bins", "straight lines",
        "32 bins".
    vote_ : Mixture
        The experts, each with its temperature, distance, axes, and share of a prediction; see
        `nearkin.tables.votes`.
    temperature_, distance_ : float, str
        The temperature and the distance ("squared" or "plain") of the vote with the largest share.
    alpha_ : float
        The weight of the penalty for the first encoding.
    alpha_scores_ : dict of float to float
        Minus the held-out loss of every penalty tried for the first encoding.
    feature_effects_ : ndarray of shape (`n_features_in_`,)
        How far each column of the table moves the rows about their mean, as a root mean square; 0
        for columns that are left out.
    held_out_rows_ : ndarray of int of shape (n_held_out,)
        Indices of the rows of `fit` that were held out, each by one member. Of more than 2,000
        rows, a fifth, at most 2,000, is held out until the last half round of steps.
    held_out_votes_ : ndarray of shape (n_held_out, n_classes)
        The votes for these rows, by the training rows of the member that held them out or by all
        rows that were not held out, with the penalty and the mixture that these votes chose.
    member_rows_, member_votes_ : ndarray
        The same, but where `fit_encoded` was given folds of more than 2,000 rows: their test rows,
        and the votes of the members.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCARegressor : For real-valued targets.
    NCA : The map for a numeric array.
    TableEncoder : Encodes the columns of a table as numbers.

    Notes
    -----
    The inner folds are deterministic and do not know which rows belong together: for grouped rows,
    such as several of one patient, the chosen penalty is too small. A weight of 2 is not the same
    as repeating the row: copies would be each other's nearest neighbours in the likelihood, and be
    in different folds.

    Sparse X is never made dense as a whole: each of its columns, such as an indicator of a category
    or a count, is one feature divided by its standard deviation, without bins, and a column of its
    own in the penalty.

    The shares of the experts are found by expectation maximization, 100 steps from equal shares,
    which overfits less than the maximum; shares below 0.04 are set to 0. An encoding without a
    share is dropped.

    An interrupt (Ctrl-C) keeps the best result so far, once there is one: the encodings learned
    until then. Callbacks of scikit-learn are called after each penalty of each encoding, and after
    its stochastic gradient.

    With more than 2,000 rows, a fifth of them, at most 2,000, are held out until the last half
    round, and are used for the choices instead of the folds. A first map is learned from 2,000 of
    the other rows. Stochastic gradient (Adam with one scale for all entries) continues with all n
    of these other rows, in up to 5 rounds: with the penalty of the first map, then a third of it,
    and so on, until the held-out loss rises. With a given `alpha`, and for encodings after the
    first, there is one round. A round has 150 max(1, n / 2000)^(1/3) steps, each of which draws
    max(2048, sqrt(250 n)) rows and predicts 256 of them from the rest. Finally the held-out rows
    determine the shares, half a round of steps uses all rows, and all rows vote.

    Cost: O(s^2 m + s r m) for an iteration of each member, with s rows, at most 2,000, and r
    encoded features; up to 12 iterations for each of up to 7 penalties of each encoding. With more
    than 2,000 rows, additionally O(b r m) for each step with the b rows that it draws, and O(n r m)
    for the encoded rows. A prediction costs O(k n m) for each new row, with k experts, at most 25.
    Memory grows with the product of the numbers of classes and of held-out rows; `fit` refuses at
    once what would not fit into it.
    Computations are in float32, distances in the vote in float64 for up to 2,000 rows.

    References
    ----------
    .. [1] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood Components
       Analysis", NIPS 2004.
    .. [2] Yury Gorishniy, Ivan Rubachev and Artem Babenko, "On Embeddings for Numerical Features in
       Tabular Deep Learning", NeurIPS 2022 (bins).
    .. [3] Han-Jia Ye, Huai-Hong Yin, De-Chuan Zhan and Wei-Lun Chao, "Revisiting Nearest Neighbor
       for Tabular Data: A Deep Tabular Baseline Two Decades Later", ICLR 2025 (NCA on encoded
       columns against trees).

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
        self.n_components = n_components
        self.n_bins = n_bins
        self.alpha = alpha
        self.n_members = n_members
        self.distance = distance
        self.class_weight = class_weight
        self.random_state = random_state

    def _learn_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Learn the classes and their weights."""
        self.classes_, codes = encode_labels(y)
        refuse_odd_labels(self.classes_, "y", "NCARegressor")
        check_shared_labels(codes)
        n, n_classes = len(codes), len(self.classes_)
        # at least ten rows of every class are held out, but at most a fifth of many rows
        held = n if n <= MAX_ROWS else min(n // 5, max(MAX_ROWS, 10 * n_classes))
        n_votes = len(self.encoder_.encoders) * len(MIXED_TEMPERATURES) * len(DISTANCES[1:])
        require_memory(
            8 * n_classes * (2 * n_votes * held + 5 * n),
            f"The votes for {n_classes:,} classes in y",
            "merge or leave out rare classes, or let the nearest rows vote, as in "
            "make_pipeline(TableEncoder(), StandardScaler(), KNeighborsClassifier(1))",
        )
        self._class_weights, given = None, self.class_weight
        if given is not None:
            if not (equals(given, "balanced") or isinstance(given, dict)):
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
        return codes, codes

    def _encode_targets(self, targets: np.ndarray) -> np.ndarray:
        """Return indicators of the classes."""
        indicators = np.zeros((len(targets), len(self.classes_)))
        indicators[np.arange(len(targets)), targets] = 1
        return indicators

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (n, n_classes), in the order of `classes_`."""
        return self.vote(self.transform(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, by_class: bool = False, allow_empty: bool = False
    ) -> np.ndarray:
        """Predict, for every row, a set of labels that contains its own with a given probability.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        coverage : float, default=0.9
            The share of rows whose set should contain their label, between 0 and 1.
        by_class : bool, default=False
            Whether the coverage should hold for the rows of every class. A class with fewer than
            `coverage / (1 - coverage)` held-out rows is in all sets.
        allow_empty : bool, default=False
            Whether a set may be empty, if no label is likely enough. Otherwise every set contains
            the most probable label, so the coverage is higher than requested if the accuracy is.

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            Whether each of `classes_` is in the set: `model.classes_[found[0]]` are the labels of
            the first row.

        Notes
        -----
        These are split-conformal sets with the score 1 - p_c [1]_, but 0 for the most probable
        label: the smallest sets of their coverage that are never empty. The threshold is the score
        of rank ceil((n + 1) coverage) among the scores of the n held-out rows for their true
        labels, counted by weights (`sample_weight`, `class_weight`) if `fit` had any. With too few
        rows, all labels are in all sets.

        The coverage is guaranteed on average over all rows exchangeable with the training rows, not
        for each row, nor after a shift (see `drift`). It is approximate. The held-out rows also
        chose penalty and temperature, which makes sets slightly too small. They were predicted by
        the votes of one member (with more than 2,000 rows: by a map that had not learned from
        them), with fewer voting rows than new rows have; this makes sets too large.

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


class NCARegressor(RegressorMixin, TablePredictor):
    """Neighbourhood Components Analysis for tables: nearest neighbours that predict real numbers.

    This is `NCAClassifier` with the leave-one-out error of the weighted mean, the loss of kernel
    regression [1]_, instead of the log-likelihood:

        1/n sum_i (y_i - y^_i)^2 / var(y),    y^_i = sum_j p_ij y_j,

        p_ij ~ exp(-||A x_i - A x_j||^2).

    A few huge numbers may dominate this loss. The map of the second encoding, straight lines, is
    therefore learned from the normal scores of y instead, Phi^-1 of the ranks, and the mixture has
    experts for both scales.

    Parameters
    ----------
    n_components, n_bins, alpha, n_members, distance, random_state
        See `NCAClassifier`.
    loss : {"squared_error", "absolute_error"}, default="squared_error"
        The held-out error that the mixture of the experts minimizes: predictions are about means,
        or about medians.

    Attributes
    ----------
    components_, encoder_, encoding_shares_, vote_, temperature_, distance_, alpha_
        See `NCAClassifier`.
    feature_effects_
        See `NCAClassifier`.
    alpha_scores_ : dict of float to float
        Minus the held-out squared error of every penalty tried, divided by the variance of y.
    held_out_rows_, held_out_votes_, member_rows_, member_votes_
        See `NCAClassifier`; the votes are numbers, of shape (n_held_out,).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCAClassifier : For classes.
    MLKR : The map for a numeric array.

    Notes
    -----
    In the space of each encoding, the mixture has an additional expert, a local line: a ridge
    regression on the nearest 150 rows along the 10 principal directions of the space, with weights
    exp(-d^2 / (c T)) at the best temperature T. The held-out rows choose c among 1, 2 and 5, and
    the ridge penalty among 0.1 and 1. Every vote and line predicts once the numbers, and once their
    normal scores, which are then turned into the numbers that have them: about a mean, and about a
    median. The shares of all experts minimize the held-out loss, and small shares are set to 0, as
    for classes. Predictions never leave the range of the known numbers.

    If k training rows are equal to a new row in the space of the largest share, with the mean m of
    their numbers, the prediction is (c f + k m) / (c + k), where f is that of the mixture. The
    held-out rows choose c among 0.1, 0.3, 1, 3 and infinity. Rows that describe the same thing and
    should not be each other's neighbours belong into the same fold, see `fit_encoded`.

    Neither scores nor equal rows are used under the squared error where a fiftieth of the held-out
    numbers makes up 95 % of the squares about their median, as a few typing errors do.

    Cost: that of `NCAClassifier`.

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

    def __init__(
        self,
        n_components: int = 32,
        *,
        n_bins: int | str = "auto",
        alpha: float | str = "auto",
        n_members: int = 3,
        distance: str = "auto",
        loss: str = "squared_error",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_bins = n_bins
        self.alpha = alpha
        self.n_members = n_members
        self.distance = distance
        self.loss = loss
        self.random_state = random_state

    def _learn_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check that the numbers vary."""
        check_choice(self.loss, "loss", tuple(LOSSES))
        y = real_targets(self, y)
        check_targets_vary(y)
        return y, np.zeros(len(y), dtype=int)

    def _encode_targets(self, targets: np.ndarray) -> np.ndarray:
        """Return the standardized numbers; store their mean, their unit, and their bounds."""
        self._centre, self._unit = targets.mean(), targets.std()
        # as far beyond the outermost number as this lies from the tenth
        low, high = np.sort(targets)[:OUTERMOST], np.sort(targets)[-OUTERMOST:]
        self._bounds = 2 * low[0] - low[-1], 2 * high[-1] - high[0]
        return ((targets - self._centre) / self._unit)[:, None]

    def _targets_of_map(self, number: int) -> np.ndarray:
        """Return the standardized numbers, or for the second map their normal scores."""
        if number != 1:
            return self._Y
        # With all maps learned from scores, yacht_hydrodynamics, puma32h and other smooth targets
        # are lost; with none, skewed ones (lublin, prices and claims that were simulated). Chosen
        # on the development half of the tables of benchmarks/data.py, on training rows of `wild/`,
        # and on simulated tables.
        scores = NormalScores.of(self._Y, self._weights).transform(self._Y)
        return (scores - scores.mean()) / scores.std()

    def _with_numbers(self, found: LearnedMap) -> LearnedMap:
        """Return a map whose experts predict the numbers, and are mixed for the requested loss."""
        Y, of_map = self._Y.astype(np.float32), found.held_out
        parts = [
            (queries, Z, Y[train], weights)
            for (queries, Z, _, weights), (train, _) in zip(of_map.parts, found.folds, strict=True)
        ]
        tested = np.concatenate([test for _, test in found.folds])
        held_out = replace(of_map, parts=parts, Y=Y[tested], loss=LOSSES[self.loss])
        return replace(found, held_out=held_out)

    def predict(self, X: Any) -> np.ndarray:
        """Return the mixture of weighted means of training rows and of local lines, shape (n,)."""
        return self.vote(self.transform(X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict intervals that contain the number of a row with a given probability.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        coverage : float, default=0.9
            The share of rows whose interval should contain their number, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2)
            The lower and the upper end: the quantiles (1 - coverage) / 2 and (1 + coverage) / 2 of
            `predict_quantiles`, whose notes say what is guaranteed.
        """
        tail = (1 - check_coverage(coverage)) / 2
        return self.predict_quantiles(X, [tail, 1 - tail])

    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Predict quantiles of the number of each row.

        Parameters
        ----------
        X : data frame, or array of shape (n, p)
        q : float, or array of shape (k,)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n, k)
            Ascending with q.

        Notes
        -----
        Quantiles are those of predictions plus errors of held-out rows. Each error is added to the
        prediction by the training rows outside its fold [2]_, not to `predict`: that is a mean,
        which a few huge numbers may move farther than the errors, even out of an interval. The
        errors have the weights exp(-d^2 / b^2), where d is the distance in the learned space, and b
        the distance of the held-out row of a rank from 15 to 240, or equal weights; the held-out
        pinball loss chooses. The quantiles are calibrated [1]_: of n held-out rows, each with the
        errors of the others, at most floor((n + 1) q) lie below a quantile q < 1/2, and at least
        ceil((n + 1) q) do not lie above a quantile q >= 1/2. With fewer than 1 / q - 1 rows, a
        lower quantile is minus infinity; with fewer than 1 / (1 - q) - 1, an upper one is infinity.
        Other quantiles stay within bounds as far beyond the smallest and the largest known number
        as these are from the tenth smallest and largest: 0 where ten numbers or more are 0 and none
        is negative. A new number is beyond such a bound less often than 1 in n + 1 times, for most
        distributions far less often.

        The coverage is guaranteed on average over all rows exchangeable with the training rows, not
        for each row, nor after a shift (see `drift`). It is approximate: the held-out rows also
        chose penalty, temperature and b, and their errors are those of one member (with more than
        2,000 rows: of a map that had not learned from them), while new rows are predicted in the
        final space. The `sample_weight` of `fit` is taken into account throughout.

        Cost: O((n + n_held_out) n_held_out (m + k + log(n_held_out))), with n_held_out at most
        about 2,000, and a prediction for each fold.

        References
        ----------
        .. [1] Y. Romano, E. Patterson and E. Candes, "Conformalized Quantile Regression", NeurIPS
           2019.
        .. [2] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive Inference
           with the Jackknife+", Annals of Statistics 49, 2021 (CV+).
        """
        levels, order = np.unique(check_levels(q), return_inverse=True)
        check_is_fitted(self, "_held_out")
        Z = np.asarray(self.transform(X))  # may be a data frame after set_output
        return self.quantiles(Z, levels)[:, order]

    def quantiles(self, Z: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return quantiles for rows in the learned space, (n, m), for ascending levels q."""
        votes = []
        for fold in self._held_out.rows_of_folds():
            rest = np.setdiff1d(np.arange(len(self._Z)), fold)
            weights = None if self._weights is None else self._weights[rest]
            votes.append(self.vote_.predict(Z, self._Z[rest], self._Y[rest], weights))
        predicted = np.column_stack([self._decode_votes(of_fold) for of_fold in votes])
        found = self._held_out.quantiles(Z, predicted, q)
        return np.where(np.isfinite(found), np.clip(found, *self._bounds), found)

    def _decode_votes(self, votes: np.ndarray) -> np.ndarray:
        """Return votes for standardized numbers in the unit of the targets."""
        return votes[:, 0] * self._unit + self._centre
