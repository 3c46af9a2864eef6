"""Rules, which only depend on the table, for the rows to hold out, to learn from and to choose on.

`Fold` has the rows of a fold as contestants see them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from .._blocks import filled, missing_cells
from .._labels import encode_groups, encode_labels, known_labels
from .._messages import counted, note, shown
from .._validation import (
    as_rows,
    check_consistent_length,
    check_random_state,
    check_spread,
    is_missing,
)
from ..estimators import SharedRows
from ..graphs import joined_groups
from ..neighbors import chained_rows, n_with_twin, twin_groups
from ..tables import Feature, are_left_out, text_as_one_number
from ..tables.gaps import Imputer
from .scores import (
    CLASSIFICATION,
    REGRESSION,
    SCORES,
    VOTES,
    Score,
    Task,
    Vote,
    nearest_voters,
    possible_votes,
)
from .table import Categories

N_SPLITS = 5
HELD_OUT_ROWS = 1500  # splits are repeated until about this many rows have been held out
MOST_REPEATS = 3
SPLIT_ROWS = 20_000  # labelled rows above which there is a single split, with more held-out rows
SPLIT_HELD_OUT = 5000
CHOICE_ROWS, CHOICE_ENTRIES, FEWEST_CHOICE_ROWS = 2000, 2**18, 700
INNER_SPLITS = 3
MOST_RARE = 0.05  # share of the rows in classes that are too rare for the folds
FEWEST, FEWEST_TO_LEARN = 3, 10  # rows of a class in a sample, and in a sample to learn from
NO_ROWS = np.arange(0)

TrainTest = tuple[np.ndarray, np.ndarray]  # row indices


@dataclass(frozen=True)
class Protocol:
    """The rules for every method. Only labelled rows are held out, and only these vote.

    Attributes
    ----------
    X : array or csr_array of shape (n, p)
        NaN for missing cells.
    y : ndarray of shape (n,)
        Class codes, -1 for none; or numbers, NaN for none.
    classes : ndarray
        The sorted labels; empty for a regression.
    units : ndarray of shape (n,)
        Codes of the groups of rows that stay on the same side of every split: twins, and given
        groups.
    task : Task
    score : Score
        The score that decides all choices.
    votes : tuple of Vote
        The votes among which inner folds choose.
    grouped : bool
        Whether groups were given, which may be large.
    keep_twins : bool
        Whether twins are split like other rows.
    scale : bool
        Whether features are standardized.
    random_state : int
        Seed of all random choices.
    choice_rows : int or None
        Maximum number of rows on which choices are made. None takes 2,000; for more than 131
        features, as many rows as have 2^18 entries in total, but at least 700.
    features : sequence of p Feature or None
        Tells which features belong to the same column of the table; None if each is a number.
    categories : Categories or None
        The columns of many categories.
    unlabelled : ndarray
        The rows without a label.
    weights : ndarray of shape (n,) or None
        Weights of the rows in fits and in scores, greater than 0; the k nearest rows of a vote have
        equal weight.
    n_twins : int
        Number of rows that have a twin.
    n_chained : int
        Number of rows in tight groups of more than ten, which folds split if no groups were given;
        see `chained_rows`.
    remarks : tuple of str
        On the classes that are left out; their rows have the code -1, but are not unlabelled.
    """

    X: Any
    y: np.ndarray
    classes: np.ndarray
    units: np.ndarray
    task: Task
    score: Score
    votes: Sequence[Vote] = VOTES
    grouped: bool = False
    keep_twins: bool = False
    scale: bool = True
    random_state: int = 0
    choice_rows: int | None = None
    features: Sequence[Feature] | None = None
    categories: Categories | None = None
    unlabelled: np.ndarray = field(default_factory=NO_ROWS.copy)
    weights: np.ndarray | None = None
    n_twins: int = 0
    n_chained: int = 0
    remarks: tuple[str, ...] = ()

    @cached_property
    def labelled(self) -> np.ndarray:
        """Return the rows with a label."""
        return np.flatnonzero(self.y >= 0 if self.task == CLASSIFICATION else ~np.isnan(self.y))

    @cached_property
    def missing_cells(self) -> np.ndarray:
        """Return the number of missing cells of each feature."""
        return missing_cells(self.X)

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows, or None."""
        return None if self.weights is None else self.weights[rows]

    def preprocessing(self) -> list[tuple[str, Any]]:
        """Return the unfitted steps before a map: a scaler and an imputer, if needed.

        The scaler comes first and ignores missing cells, so the indicators remain 0 and 1. If an
        indicator of 5 missing cells among 1,000 were scaled to unit variance, it would weigh as
        much as 14 standard deviations of a feature, and only rows with the same gap would be
        neighbours (`benchmarks/choices/missing_cells.py`).
        """
        steps: list[tuple[str, Any]] = []
        if self.scale:
            steps.append(("scale", StandardScaler(with_mean=not issparse(self.X))))
        if self.missing_cells.any():
            steps.append(("impute", Imputer()))
        return steps

    def max_components(self, method: Any) -> int:
        """Return the largest dimension that a `Method` can have on this table."""
        return method.max_components(self.X.shape[1], max(1, len(self.classes)))

    def beside(self, rows: np.ndarray) -> np.ndarray:
        """Return the unlabelled rows from which may be learned together with some rows.

        These are all unlabelled rows or, with groups, those that are in no held-out group.
        """
        if not self.grouped:
            return self.unlabelled
        held_out = np.setdiff1d(self.labelled, rows)
        return self.unlabelled[~np.isin(self.units[self.unlabelled], self.units[held_out])]

    def most_folds(self, rows: np.ndarray) -> tuple[int, str]:
        """Return the maximum number of folds for some rows, and what limits it.

        It is 1 if every class has a single row.
        """
        heads = self._heads(rows)
        if self.grouped:
            is_classes = self.task == CLASSIFICATION
            largest = int(np.bincount(self.y[rows]).max()) if is_classes else len(rows)
            if len(heads) <= largest:
                return len(heads), f"there are {counted(len(heads), 'group')}"
            return largest, f"no class has more than {counted(largest, 'row')}"
        if self.task == REGRESSION:
            return len(heads) // 2, f"R² needs two rows in every fold, and there are {len(heads):,}"
        classes, sizes = np.unique(self.y[heads], return_counts=True)
        smallest = self.classes[classes[sizes.argmin()]]
        reason = f"class {smallest!s} has {counted(sizes.min(), 'row')}"
        reason += " without a twin" * (len(heads) < len(rows))
        return min(max(int(sizes.min()), 2), int(sizes.max())), reason

    def folds(
        self, n_splits: int | None, n_repeats: int | None
    ) -> tuple[list[TrainTest], dict[str, tuple[int, str]]]:
        """Return the outer folds, and what was requested if the rows allow fewer.

        By default there are five folds, repeated up to three times until 1,500 rows have been held
        out, so that a difference of a few points is detectable. All five are run, however many rows
        they hold out: how far chance in fitting affects a method only shows between folds, not
        within one (`paired_test`). With more than 20,000 rows there is a single split that holds
        out 5,000, unless there are groups, or the rows are copies of so few that a single split
        would hold out too few.
        """
        rows, rng = self.labelled, check_random_state(self.random_state)
        by_default = n_splits is None and n_repeats is None
        n_units = len(np.unique(self.units[rows]))
        once = by_default and len(rows) > SPLIT_ROWS and not self.grouped
        if once and n_units > min(SPLIT_HELD_OUT, len(rows) // 5):
            return [self.one_split(rng.randint(2**31 - 1))], {}
        requested = n_splits or N_SPLITS
        most, reason = self.most_folds(rows)
        if most < 2:
            raise ValueError(
                f"X holds {n_units} rows that are no twins of one another, too few to hold some "
                "out: keep_twins=True splits twins like other rows."
            )
        if len(self.unlabelled):
            reason += ", counting those with a label"
        reduced = {"n_splits": (requested, reason)} if most < requested else {}
        repeats = n_repeats or int(np.clip(round(HELD_OUT_ROWS / len(rows)), 1, MOST_REPEATS))
        seeds = rng.randint(2**31 - 1, size=repeats)
        folds = [fold for seed in seeds for fold in self._splits(rows, min(requested, most), seed)]
        for number, (_, test) in enumerate(folds, start=1):
            if not self._has_score(test):
                raise ValueError(
                    f"y is {self.y[test[0]]:.6g} in all {len(test)} held-out rows of fold "
                    f"{number}, where R² has no meaning: give fewer folds, or larger groups."
                )
        return folds, reduced

    def one_split(self, seed: int) -> TrainTest:
        """Return a split that holds out one row of each of up to 5,000 units.

        Other rows of these units, and their near-twins, are not used for training.
        """
        heads = self._heads(self.labelled)
        test = np.sort(sample(heads, self.y, min(SPLIT_HELD_OUT, len(heads) // 5), seed))
        return self.apart(self.labelled, test), test

    def apart(self, rows: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Return those of some rows that share no unit with test rows, nor are their near-twins."""
        own = np.isin(self.units[rows], self.units[test])
        # of so many rows `make_protocol` has not searched the near-twins
        if len(self.labelled) > SPLIT_ROWS and not (self.grouped or self.keep_twins):
            X, scale = text_as_one_number(filled(self.X), self.features, self.scale)
            near = twin_groups(X, scale=scale, queries=test)
            own |= np.isin(near[rows], near[test])
        return rows[~own]

    def held_out(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows that a predictor for tables holds out until its last half round of steps.

        Of more than 2,000 training rows these are about a fifth, at most 2,000, in whole units; of
        given groups, about a fifth of the rows of a sample of at least 2,000. There are none of
        fewer rows, or of one unit.
        """
        if len(rows) <= CHOICE_ROWS:
            return NO_ROWS
        seed, n_held = self.random_state, min(CHOICE_ROWS, len(rows) // N_SPLITS)
        some = sample(rows, self.y, N_SPLITS * n_held, seed)
        if (
            self.grouped
        ):  # to divide many groups takes long: a sample, also of small groups, will do
            heads = sample(self._heads(rows), self.y, CHOICE_ROWS, seed)
            some = np.union1d(sample(rows, self.y, CHOICE_ROWS, seed), heads)
        n_splits = min(self.most_folds(some)[0], N_SPLITS)
        if n_splits < 2:
            return NO_ROWS
        # a fold may be one huge group
        tests = [test for _, test in self._splits(some, n_splits, seed) if len(test)]
        test = min(tests, key=lambda test: abs(len(test) - len(some) / n_splits))
        test = rows[np.isin(self.units[rows], self.units[test])]
        return sample(test, self.y, n_held, seed)

    def member_folds(self, rows: np.ndarray, n_splits: int = INNER_SPLITS) -> list[TrainTest]:
        """Return folds of some training rows that can be scored.

        Of more than 2,000 rows, a sample of about that many is used, with one row of each group of
        twins, and no row of the units of `held_out`. If all of it is one unit, the held-out rows
        are the test rows of a single fold.
        """
        held = self.held_out(rows)
        if len(rows) > CHOICE_ROWS:
            share = CHOICE_ROWS // max(1, len(self.classes))
            fewest = min(max(share, FEWEST), FEWEST_TO_LEARN)
            rows = self._one_of_twins(rows[~np.isin(self.units[rows], self.units[held])])
            rows = sample(rows, self.y, CHOICE_ROWS, self.random_state, fewest)
        n_splits = min(self.most_folds(rows)[0], n_splits)
        folds = [(rows, held)]
        if n_splits > 1:
            folds = self._splits(rows, n_splits, self.random_state)
        return [(train, test) for train, test in folds if len(test) and self._has_score(test)]

    def inner_folds(self, rows: np.ndarray) -> list[TrainTest]:
        """Return the folds on which choices are made, or none if there are too few rows.

        They are those of `member_folds`, with a sample of at most `choice_rows` of their rows.
        """
        folds = self.member_folds(rows)
        most = self.choice_rows or max(
            FEWEST_CHOICE_ROWS, min(CHOICE_ROWS, CHOICE_ENTRIES // self.X.shape[1])
        )
        if not folds:
            return []
        everyone = np.unique(np.concatenate([part for fold in folds for part in fold]))
        if len(everyone) <= most:
            return folds
        everyone = self._one_of_twins(everyone)
        kept = sample(everyone, self.y, most, self.random_state)
        folds = [(train[np.isin(train, kept)], test[np.isin(test, kept)]) for train, test in folds]
        return [(train, test) for train, test in folds if len(test) and self._has_score(test)]

    def fewest_rows(self, folds: Sequence[TrainTest]) -> int:
        """Return the size of the smallest training part, including those of inner folds."""
        inner = [fold for train, _ in folds for fold in self.inner_folds(train)]
        return min(len(train) for train, _ in [*folds, *inner])

    def _heads(self, rows: np.ndarray) -> np.ndarray:
        """Return the first row of each unit."""
        return rows[np.unique(self.units[rows], return_index=True)[1]]

    def _one_of_twins(self, rows: np.ndarray) -> np.ndarray:
        """Return one row of each unit of twins, and all rows of given groups."""
        return rows if self.grouped else np.sort(self._heads(rows))

    def _has_score(self, test: np.ndarray) -> bool:
        """Return whether held-out rows can be scored; R² needs numbers that differ."""
        return self.task == CLASSIFICATION or bool(np.ptp(self.y[test]) > 0)

    def _splits(self, rows: np.ndarray, n_splits: int, seed: int) -> list[TrainTest]:
        """Return folds that keep units together.

        With given groups, which may be large, folds have about equal numbers of rows; with twins,
        which are small units, equal numbers of units.
        """
        with warnings.catch_warnings():
            # `Comparison.reduced` tells the user
            warnings.filterwarnings("ignore", "The least populated class")
            if self.grouped:
                units = self.units[rows]
                splitter: Any = GroupKFold(n_splits, shuffle=True, random_state=seed)
                if self.task == CLASSIFICATION:
                    # scikit-learn 1.6 would only shuffle the classes of the groups
                    numbers, units = np.unique(units, return_inverse=True)
                    units = np.argsort(check_random_state(seed).permutation(len(numbers)))[units]
                    splitter = StratifiedGroupKFold(n_splits)
                return [(rows[a], rows[b]) for a, b in splitter.split(rows, self.y[rows], units)]
            heads = np.sort(self._heads(rows))
            splitter = self.task.splitter(n_splits, shuffle=True, random_state=seed)
            tests = [
                np.isin(self.units[rows], self.units[heads[b]])
                for _, b in splitter.split(heads, self.y[heads])
            ]
        return [(rows[~test], rows[test]) for test in tests]


def sample(
    rows: np.ndarray, y: np.ndarray, size: int, seed: int, fewest: int = FEWEST
) -> np.ndarray:
    """Return a stratified sample of some rows, ascending, with at least `fewest` of every class.

    Classes with fewer rows are taken whole. For a regression, rows are evenly spaced in the order
    of their numbers.
    """
    if len(rows) <= size:
        return rows
    rows = np.random.default_rng(seed).permutation(rows)
    rows = rows[np.argsort(y[rows], kind="stable")]
    chosen = rows[np.linspace(0, len(rows) - 1, size).round().astype(int)]
    if y.dtype.kind != "f":
        classes, starts = np.unique(y[rows], return_index=True)
        sizes = np.bincount(np.searchsorted(classes, y[chosen]), minlength=len(classes))
        starts = starts[sizes < fewest]
        few = (starts[:, None] + np.arange(fewest)).clip(max=len(rows) - 1)
        few = few[y[rows[few]] == y[rows[starts]][:, None]]
        chosen = np.union1d(chosen, rows[few])
    return np.sort(chosen)


def first_repeat(folds: Sequence[TrainTest]) -> tuple[TrainTest, ...]:
    """Return the folds that hold out every row once; for a single split, this one."""
    held_out = set[int]()
    for number, (_, test) in enumerate(folds):
        if not held_out.isdisjoint(test.tolist()):
            return tuple(folds[:number])
        held_out.update(test.tolist())
    return tuple(folds)


# Fits with row weights, for any estimator.


def weight_parameters(estimator: Any) -> list[str]:
    """Return the names of the `fit` parameters by which an estimator takes row weights, if any.

    For a pipeline, there is one for each step that takes weights.
    """
    if isinstance(estimator, Pipeline):
        steps = [(name, step) for name, step in estimator.steps if hasattr(step, "fit")]
        return [f"{name}__{key}" for name, step in steps for key in weight_parameters(step)]
    return ["sample_weight"] if has_fit_parameter(estimator, "sample_weight") else []


def fitted(estimator: Any, X: Any, y: Any, weights: np.ndarray | None) -> Any:
    """Fit an estimator, with weights if it takes them, and return it."""
    if weights is None:
        return estimator.fit(X, y)
    # with metadata routing, a pipeline rejects the names of its steps
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **dict.fromkeys(weight_parameters(estimator), weights))


class Fold:
    """Training rows and queries, scaled and without gaps, with inner folds, for all contestants.

    Parameters
    ----------
    protocol : Protocol
    rows, queries : ndarray of int
        Indices of the training rows, and of the held-out rows.
    others : ndarray of int, optional
        Indices of unlabelled rows to learn from as well; by default all that the protocol allows.
    """

    def __init__(
        self,
        protocol: Protocol,
        rows: np.ndarray,
        queries: np.ndarray = NO_ROWS,
        others: np.ndarray | None = None,
    ) -> None:
        self.protocol, self.rows, self.queries = protocol, rows, queries
        self.others = protocol.beside(rows) if others is None else others
        self.y = protocol.y[rows]
        self._shared: dict[int, SharedRows] = {}

    @property
    def labels(self) -> np.ndarray:
        """Return the labels of the training rows, or their numbers."""
        return self.protocol.classes[self.y] if self.protocol.task == CLASSIFICATION else self.y

    @cached_property
    def inner(self) -> list[Fold]:
        """Return the folds of the training rows on which choices are made."""
        return [Fold(self.protocol, *fold) for fold in self.protocol.inner_folds(self.rows)]

    @cached_property
    def votes(self) -> list[Vote]:
        """Return the votes for which this fold and all inner folds have enough rows."""
        return possible_votes(
            self.protocol.votes, min(len(fold.rows) for fold in [self, *self.inner])
        )

    @cached_property
    def alone(self) -> Fold:
        """Return the fold without unlabelled rows, which would affect the scale."""
        return Fold(self.protocol, self.rows, self.queries, NO_ROWS)

    @cached_property
    def preprocessing(self) -> list[tuple[str, Any]]:
        """Return the scaler and the imputer, fitted to the training rows and unlabelled rows."""
        steps = self.protocol.preprocessing()
        if not steps:
            return []
        # the mean of a column without a value in these rows is NaN; it is filled with 0
        rows = np.append(self.rows, self.others)
        X, weights = self.protocol.X[rows], self.protocol.weights_of(rows)
        with np.errstate(invalid="ignore"):
            return fitted(Pipeline(steps), X, None, weights).steps

    @cached_property
    def prepared(self) -> tuple[Any, Any]:
        """Return training rows and queries as input for the maps."""
        return self.prepare(self.rows), self.prepare(self.queries)

    def prepare(self, rows: np.ndarray) -> Any:
        """Return rows as input for the maps."""
        X = self.protocol.X[rows]
        return Pipeline(self.preprocessing).transform(X) if self.preprocessing and len(rows) else X

    def shared(self, learned: np.ndarray) -> SharedRows:
        """Return the rows shared by all spectral methods that learn from the same rows."""
        if len(learned) not in self._shared:
            weights = self.protocol.weights_of(self.rows[learned])
            X, y = self.prepared[0][learned], self.y[learned]
            self._shared[len(learned)] = SharedRows(X, y, sample_weight=weights)
        return self._shared[len(learned)]

    def sample(self, most: int) -> np.ndarray:
        """Return the positions of at most `most` training rows to learn from."""
        return sample(np.arange(len(self.rows)), self.y, most, self.protocol.random_state)

    def predictions(self, Z: Any, queries: Any, votes: Sequence[Vote]) -> list[np.ndarray]:
        """Return the predictions for the queries by each vote of the training rows.

        Z (n, m) and `queries` (n_queries, m) are mapped rows. Predictions are class probabilities
        (n_queries, n_classes), or numbers (n_queries,).
        """
        distances, near = nearest_voters(Z, queries, max(vote.n_neighbors for vote in votes))
        answers, n_classes = self.y[near], len(self.protocol.classes)
        return [vote.predict(distances, answers, n_classes) for vote in votes]

    def contributions(self, prediction: np.ndarray) -> np.ndarray:
        """Return the contributions of the queries to the score of a prediction."""
        protocol = self.protocol
        weights = protocol.weights_of(self.queries)
        return protocol.score.contributions(protocol.y[self.queries], prediction, weights)


# From a table to the protocol: input validation, and the default score.

# up to this many rows, near-twins of all rows are searched; beyond, only those of labelled rows
TWIN_QUERIES = 20_000
RARE = 0.75  # share of the largest class above which AUC is the default score
FEWEST_NUMBERS = 30  # with fewer, a single number often has half of the sum of squares
HALF = 0.5  # share of the sum of squares about the median; 1 % of the numbers with more decide R²


def make_protocol(
    X: Any,
    y: np.ndarray,
    groups: Any,
    task: Task,
    *,
    weights: np.ndarray | None,
    score: str | None,
    in_folds: bool,
    n_splits: int | None,
    scale: bool,
    keep_twins: bool,
    features: Sequence[Feature] | None,
    **rules: Any,
) -> Protocol:
    """Return the protocol of a table with a target from `learn_target`.

    Raise an error if nothing can be learned from it.
    """
    X = as_rows(X, missing=True)
    check_consistent_length(X, y, groups)
    classes, remarks = np.array([]), list[str]()
    missing = is_missing(y)
    labelled = np.flatnonzero(~missing)
    if task == CLASSIFICATION:
        labels, y = known_labels(y, labelled), np.full(len(y), -1)
        classes, codes = encode_labels(labels)
        fewest = 2 if groups is not None else n_splits or N_SPLITS
        classes, y[labelled], remarks = _without_rare(classes, codes, fewest)
        labelled = np.flatnonzero(y >= 0)
    if groups is not None:
        groups = encode_groups(groups)
        n_groups = len(np.unique(groups[labelled]))
        if n_groups < 3:
            among = " of labelled rows" if missing.any() else ""
            raise ValueError(
                f"groups holds {counted(n_groups, 'group')}{among}: at least 3 are needed to hold "
                "some out."
            )
    complete = filled(X)
    check_spread(complete, [feature.name for feature in features or ()])
    queries = None if len(y) <= TWIN_QUERIES else labelled
    if len(labelled) > SPLIT_ROWS and groups is None and not in_folds:
        queries = NO_ROWS  # `Protocol.one_split` searches the near-twins of the held-out rows
    alike, scaled = text_as_one_number(complete, features, scale)
    twins = twin_groups(alike, scale=scaled, queries=queries)
    units = np.arange(len(y)) if keep_twins else twins
    if groups is not None:
        units = joined_groups(units, groups)
    return Protocol(
        X=X,
        y=y,
        classes=classes,
        units=units,
        task=task,
        score=_ranking_score(
            score, task, y[labelled], None if weights is None else weights[labelled]
        ),
        weights=weights,
        grouped=groups is not None,
        keep_twins=keep_twins,
        scale=scale,
        unlabelled=np.flatnonzero(missing),
        n_twins=n_with_twin(twins),
        n_chained=chained_rows(alike, y, scale=scaled) if groups is None else 0,
        features=features,
        remarks=tuple(remarks),
        **rules,
    )


def _without_rare(
    classes: np.ndarray, codes: np.ndarray, fewest: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the classes without rare ones, the codes, -1 for these, and a remark.

    A class of a single row cannot be both learned from and held out. Classes of fewer than `fewest`
    rows would take folds from all; they are left out if they have at most 5 % of the rows.
    """
    sizes = np.bincount(codes, minlength=len(classes))
    rare = sizes < fewest
    if sizes[rare].sum() > MOST_RARE * len(codes) or (~rare).sum() < 2:
        rare, fewest = sizes == 1, 2
    if not rare.any():
        return classes, codes, []
    if fewest == 2 and not are_left_out(sizes):
        raise ValueError(
            f"class {classes[sizes.argmin()]!s} has a single row with a label, which cannot be "
            "both learned from and held out: merge it with another class, drop it, or predict "
            "numbers by task='regression'."
        )
    named = [
        f"{shown(one)} ({counted(size, 'row')})"
        for one, size in zip(classes[rare].tolist(), sizes[rare].tolist(), strict=True)
    ]
    left = f"left out, classes of fewer than {fewest} rows"
    return classes[~rare], np.where(rare, -1, np.cumsum(~rare) - 1)[codes], note(left, named)


def _ranking_score(
    name: str | None, task: Task, y: np.ndarray, weights: np.ndarray | None
) -> Score:
    """Return the score with a name, or the default score.

    AUC, which needs no threshold, is the default if one class has more than 75 % of the rows. The
    mean absolute error is the default if a few huge numbers would decide R².
    """
    known = SCORES[task.name]
    if name is None and task == CLASSIFICATION:
        sizes = np.bincount(y, weights)
        name = "auc" if sizes.max() > RARE * sizes.sum() else "accuracy"
    elif name is None:
        name = "mae" if few_decide(y) else "r2"
    if name not in known:
        raise ValueError(f"score must be one of {', '.join(map(repr, known))}, got {name!r}.")
    return known[name]


def few_decide(y: np.ndarray) -> bool:
    """Return whether a few numbers decide R².

    They do if the hundredth of the numbers that is farthest from the median contributes more than
    half of the sum of squares about it.
    """
    if len(y) < FEWEST_NUMBERS:
        return False
    squares = np.sort((y - np.median(y)) ** 2)
    n_few = max(1, len(y) // 100)
    return bool(squares[-n_few:].sum() > HALF * squares.sum())
