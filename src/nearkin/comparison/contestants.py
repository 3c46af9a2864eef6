"""Evaluation of a contestant on a fold: fitted to the training rows, with choices made inside them.

Most contestants learn a map to a space in which the nearest rows vote. Their dimension, parameters
and vote are chosen by fits to inner folds of the training rows. A predictor for tables has its own
vote, and is scored for the automatic choice by its members, learned on the same inner folds. A
reference is any other classifier or regressor.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..estimators import SpectralEmbedding
from ..statistics import holm, paired_test_by_rows, status_of
from .methods import RAW, Method, Params, Reference
from .protocol import Fold, Protocol, fitted
from .scores import CLASSIFICATION, SCORES, OwnVote, Vote
from .table import Categories

# Errors that a method may raise on an unsuitable table; it is then skipped, with the reason.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
MOST_DENSE = 2**27  # entries of sparse rows that may be made dense, 1 GB
CHOICE = "automatic choice"


@dataclass(frozen=True)
class Choice:
    """What was chosen for a method on the inner folds.

    Attributes
    ----------
    params : dict
    vote : Vote
    contributions : tuple of ndarray
        The contributions of the held-out rows of each inner fold to the score. Empty without inner
        folds, or if some of these could not be fitted: such a method is only chosen automatically
        if no other can be.
    """

    params: Params
    vote: Vote
    contributions: tuple[np.ndarray, ...] = field(default=(), compare=False)

    @property
    def mean(self) -> float:
        """Return the mean score of the inner folds, NaN if there are none."""
        means = [of_fold.mean() for of_fold in self.contributions]
        return float(np.mean(means)) if means else np.nan


@dataclass(frozen=True)
class Outcome:
    """The result of a contestant on the held-out rows of a fold.

    Attributes
    ----------
    contributions : ndarray of shape (n_held_out,)
        The contributions of the rows, whose mean is the score.
    scores : dict of str to float
        All scores of the task.
    predicted : ndarray of shape (n_held_out,)
        Class codes, or numbers.
    choice : Choice
    dimension, n_learned : int
        The dimension of the map, and the number of rows from which it was learned.
    seconds : float
        Time of one fit with the chosen parameters.
    space : pair of ndarray, or None
        On the first fold, for a predictor for tables, which is slow to fit: training rows and
        held-out rows in its learned space, for a picture.
    warnings : Counter
    """

    contributions: np.ndarray
    scores: dict[str, float]
    predicted: np.ndarray
    choice: Choice
    dimension: int
    n_learned: int
    seconds: float
    space: tuple[np.ndarray, np.ndarray] | None = None
    warnings: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Skipped:
    """The record of a contestant that failed.

    Attributes
    ----------
    reason : str
    """

    reason: str


def outcome(fold: Fold, prediction: np.ndarray, choice: Choice, **fit: Any) -> Outcome:
    """Return the outcome of a prediction for the held-out rows, with details of the fit."""
    y, task = fold.protocol.y[fold.queries], fold.protocol.task
    weights = fold.protocol.weights_of(fold.queries)
    by_score = {
        name: score.contributions(y, prediction, weights)
        for name, score in SCORES[task.name].items()
    }
    return Outcome(
        contributions=by_score[fold.protocol.score.name],
        scores={name: float(of_rows.mean()) for name, of_rows in by_score.items()},
        predicted=prediction.argmax(axis=1) if task == CLASSIFICATION else prediction,
        choice=choice,
        **fit,
    )


def answers(fold: Fold, model: Any, X: Any, learned: np.ndarray) -> np.ndarray:
    """Return a predictor's predictions for X: class probabilities (n, n_classes) or numbers (n,).

    `learned` are the positions of the training rows that it learned from.
    """
    is_classes = fold.protocol.task == CLASSIFICATION
    predict = model.predict_proba if is_classes else model.predict
    return of_all_classes(fold, predict(X), learned)


def of_all_classes(fold: Fold, found: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Return probabilities of all classes (n, n_classes), 0 for those that were not learned.

    Numbers are returned unchanged.
    """
    if fold.protocol.task != CLASSIFICATION:
        return found
    shares = np.zeros((len(found), len(fold.protocol.classes)))
    shares[:, np.unique(fold.y[learned])] = found
    return shares


# The three kinds of contestants. `evaluate(fold)` returns an Outcome. Contestants that are methods
# also have `choose(fold)`, which returns a Choice, and `pipeline(fold, choice)`, which returns the
# user's pipeline for predicting labels, and the rows that vote.


@dataclass(frozen=True)
class FittedMap:
    """A map, fitted to the training rows of a fold.

    Attributes
    ----------
    steps : list of (str, transformer)
    Z, queries : ndarray or csr_array of shape (n, m) and (n_queries, m)
        Mapped training rows and queries.
    n_learned : int
        Number of training rows from which the map was learned; all training rows vote.
    seconds : float
    """

    steps: list[tuple[str, Any]]
    Z: Any
    queries: Any
    n_learned: int
    seconds: float


@dataclass(frozen=True)
class MapWithVote:
    """A map followed by a vote of the nearest training rows."""

    method: Method

    def fit(self, fold: Fold, params: Params) -> FittedMap:
        """Return the map, learned from the training rows and, if it can, the unlabelled rows.

        If there are many training rows, it is learned from a sample.
        """
        method = self.method
        fold = fold if method.unlabelled or not len(fold.others) else fold.alone
        X, queries = fold.prepared
        if method.estimator is None:
            return FittedMap(fold.preprocessing, X, queries, len(fold.rows), 0.0)
        start = time.perf_counter()
        learned, is_classes = fold.sample(method.most_rows), fold.protocol.task == CLASSIFICATION
        estimator, y = clone(method.estimator).set_params(**params), fold.y[learned]
        shares_rows = isinstance(estimator, SpectralEmbedding) and estimator.takes_shared_rows()
        rows = fold.rows[learned]
        weights = fold.protocol.weights_of(np.append(rows, fold.others))
        if len(fold.others):
            none = np.full(len(fold.others), -1 if is_classes else np.nan)
            targets = np.append(y, none)
            fitted(estimator, fold.prepare(np.append(rows, fold.others)), targets, weights)
        elif is_classes and shares_rows:
            estimator.fit_rows(fold.shared(learned))
        else:
            fitted(estimator, X[learned], y, weights)
        seconds = time.perf_counter() - start
        steps, Z = [*fold.preprocessing, ("map", estimator)], estimator.transform(X)
        queries = estimator.transform(queries) if len(fold.queries) else queries
        return FittedMap(steps, Z, queries, len(learned), seconds)

    def choose(self, fold: Fold) -> Choice:
        """Return the setting, dimension and vote with the best mean score on the inner folds.

        Ties go to the smallest dimension, then to the first setting and vote. A setting that cannot
        be fitted on some inner fold is left out; if no setting can be, that fold is left out.
        """
        protocol, settings = fold.protocol, self.method.settings(fold.protocol.X.shape[1])
        found = defaultdict[tuple[int, int | None, int], list[np.ndarray]](list)
        n_fitted, failure = 0, None
        for inner in fold.inner:
            any_fitted = False
            for number, setting in enumerate(settings):
                try:
                    fitted = self.fit(inner, setting)
                    full = fitted.Z.shape[1]
                    for m in self.method.cuts(full):
                        # None stands for all dimensions, whose number may differ between folds
                        cut = None if m == full else m
                        Z, queries = fitted.Z[:, :m], fitted.queries[:, :m]
                        for vote, prediction in enumerate(
                            inner.predictions(Z, queries, fold.votes)
                        ):
                            found[number, cut, vote].append(inner.contributions(prediction))
                    any_fitted = True
                except FAILURES as error:
                    failure = error
            n_fitted += any_fitted
        if fold.inner and not n_fitted and failure:
            raise failure
        means = {
            key: round(protocol.score.sign * float(np.mean([of.mean() for of in by_fold])), 12)
            for key, by_fold in found.items()
            if len(by_fold) == n_fitted
        }
        if not means:
            return Choice(settings[0], fold.votes[0])
        # None, for all dimensions, counts as the largest
        best = max(means, key=lambda key: (means[key], -(key[1] or np.inf), -key[0], -key[2]))
        number, cut, vote = best
        params = settings[number] | ({} if cut is None else {"n_components": cut})
        # without results on all inner folds, the method cannot be paired with others
        contributions = tuple(found[best]) if n_fitted == len(fold.inner) else ()
        return Choice(params, fold.votes[vote], contributions)

    def evaluate(self, fold: Fold) -> Outcome:
        """Return the outcome, with the choices made on the inner folds."""
        with warnings.catch_warnings(action="ignore"):  # only the fit below records warnings
            choice = self.choose(fold)
        found = self.fit(fold, choice.params)
        (prediction,) = fold.predictions(found.Z, found.queries, [choice.vote])
        return outcome(
            fold,
            prediction,
            choice,
            dimension=found.Z.shape[1],
            n_learned=found.n_learned,
            seconds=found.seconds,
        )

    def pipeline(self, fold: Fold, choice: Choice) -> tuple[Pipeline, np.ndarray]:
        """Return the fitted scaler, map and vote as a pipeline, and the rows that vote."""
        found = self.fit(fold, choice.params)
        vote = choice.vote.estimator(fold.protocol.task).fit(found.Z, fold.labels)
        return Pipeline([*found.steps, ("vote", vote)]), fold.rows


@dataclass(frozen=True)
class PredictorWithVote:
    """A predictor that takes unscaled rows and has its own vote; see `Method.own_vote`."""

    method: Method

    def fit(self, fold: Fold) -> tuple[Any, np.ndarray]:
        """Return the predictor, and the positions of the training rows from which it learned.

        It minimizes the absolute error if that is the score. Its members are learned on the inner
        folds. These, and the rows that it holds out of many, keep groups and twins together.
        """
        protocol, predictor = fold.protocol, clone(self.method.estimator)
        predictor.set_params(random_state=protocol.random_state)
        if protocol.score.name == "mae" and "loss" in predictor.get_params():
            predictor.set_params(loss="absolute_error")
        folds = protocol.member_folds(fold.rows, predictor.n_members)
        held = protocol.held_out(fold.rows)
        some = np.concatenate([held, *(part for one in folds for part in one)])
        rows = np.union1d(fold.rows[fold.sample(self.method.most_rows)], some)
        members = split = None
        if folds:
            members = [(np.searchsorted(rows, a), np.searchsorted(rows, b)) for a, b in folds]
        if folds and len(held):
            rest = protocol.apart(rows, held)
            split = np.searchsorted(rows, rest), np.searchsorted(rows, held)
        learned, weights = np.searchsorted(fold.rows, rows), protocol.weights_of(rows)
        y = fold.labels[learned]
        predictor.fit_encoded(protocol.X[rows], y, protocol.features, members, weights, split)
        return predictor, learned

    def choose(self, fold: Fold) -> Choice:
        """Return a choice without settings, scored by the members' votes on the inner folds."""
        return self._choice(fold, *self.fit(fold))

    def _choice(self, fold: Fold, predictor: Any, learned: np.ndarray) -> Choice:
        vote, rows = OwnVote(len(learned)), fold.rows[learned[predictor.member_rows_]]
        place = np.full(len(fold.protocol.y), -1)
        place[rows] = np.arange(len(rows))
        if any((place[inner.queries] < 0).any() for inner in fold.inner):
            return Choice({}, vote)  # too few rows for the inner folds: it made its own
        votes = of_all_classes(fold, predictor.member_votes_, learned)
        by_fold = [inner.contributions(votes[place[inner.queries]]) for inner in fold.inner]
        return Choice({}, vote, tuple(by_fold))

    def evaluate(self, fold: Fold) -> Outcome:
        """Return the outcome; one fit serves the choice, the prediction and the picture."""
        X = fold.protocol.X
        start = time.perf_counter()
        predictor, learned = self.fit(fold)
        seconds = time.perf_counter() - start
        Z, Z_queries = predictor.transform(X[fold.rows]), predictor.transform(X[fold.queries])
        return outcome(
            fold,
            answers(fold, predictor, X[fold.queries], learned),
            self._choice(fold, predictor, learned),
            dimension=Z.shape[1],
            n_learned=len(learned),
            seconds=seconds,
            space=(Z.astype(np.float32), Z_queries.astype(np.float32)),
        )

    def pipeline(self, fold: Fold, _: Choice | None = None) -> tuple[Pipeline, np.ndarray]:
        """Return the predictor, which has no settings, as a pipeline, and the rows that vote."""
        predictor, learned = self.fit(fold)
        return Pipeline([("vote", predictor)]), fold.rows[learned]


@dataclass(frozen=True)
class AnyPredictor:
    """A classifier or regressor without choices."""

    reference: Reference

    def evaluate(self, fold: Fold) -> Outcome:
        """Return the outcome of a fit to at most `Reference.most_rows` rows."""
        start = time.perf_counter()
        p = fold.protocol.X.shape[1]
        learned = fold.sample(self.reference.most_rows)
        X, queries = fold.prepared[0][learned], fold.prepared[1]
        if fold.protocol.categories is not None and self.reference.categories is not None:
            X, queries = self._with_categories(fold.protocol.categories, fold, learned)
        if issparse(X) and "boosting" in self.reference.name:
            if (entries := (len(learned) + len(fold.queries)) * p) > MOST_DENSE:
                raise MemoryError(f"it takes dense rows, here {entries:,} numbers")
            X, queries = X.toarray(), queries.toarray()
        weights = fold.protocol.weights_of(fold.rows[learned])
        model = fitted(clone(self.reference.estimator), X, fold.y[learned], weights)
        seconds = time.perf_counter() - start
        return outcome(
            fold,
            answers(fold, model, queries, learned),
            Choice({}, fold.votes[0]),
            dimension=p,
            n_learned=len(learned),
            seconds=seconds,
        )

    def _with_categories(
        self, categories: Categories, fold: Fold, learned: np.ndarray
    ) -> tuple[Any, Any]:
        """Return training rows and queries with its own encoding instead of the indicators."""
        encoder, rows = clone(self.reference.categories), fold.rows[learned]
        with warnings.catch_warnings():
            # a class of fewer rows than the folds of target statistics
            warnings.filterwarnings("ignore", "The least populated class")
            encoded = encoder.fit_transform(categories.codes[rows], fold.y[learned])
        found = []
        for X, values in (
            (fold.prepared[0][learned], encoded),
            (fold.prepared[1], encoder.transform(categories.codes[fold.queries])),
        ):
            others = np.delete(X, categories.indicators, axis=1)
            both = others, values
            found.append(csr_array(hstack(both)) if issparse(values) else np.hstack(both))
        return found[0], found[1]


def contestant(one: Method | Reference) -> Any:
    """Return the object that fits, chooses and predicts for a method or reference."""
    if isinstance(one, Reference):
        return AnyPredictor(one)
    return PredictorWithVote(one) if one.own_vote else MapWithVote(one)


def automatic(
    choices: dict[str, Choice], methods: Sequence[Method], protocol: Protocol, rows: np.ndarray
) -> str:
    """Return the name of the method chosen by the inner folds.

    This is the predictor for tables, unless the paired test on the held-out rows of these folds
    shows another method to be significantly better (at .05, Holm-corrected over the other methods);
    among several better methods, it is the one with the best score. If no predictor for tables is
    compared, it is the method with the best score; ties go to the first one, and without inner
    folds it is raw k-NN.
    """
    methods, sign = [method for method in methods if method.name in choices], protocol.score.sign
    predictors = [method.name for method in methods if method.own_vote]
    by_fold = {method.name: choices[method.name].contributions for method in methods}
    known = [name for name in by_fold if by_fold[name]]
    known.sort(key=lambda name: -round(sign * choices[name].mean, 12))
    usual = predictors[0] if predictors else next(iter(known), RAW)
    if not predictors or usual not in known:
        return usual
    folds, others = protocol.inner_folds(rows), [name for name in known if name != usual]
    held_out = [test for _, test in folds]
    n_train = float(np.mean([len(train) for train, _ in folds]))
    tests = [
        paired_test_by_rows(by_fold[name], by_fold[usual], held_out, n_train, protocol.units)
        for name in others
    ]
    p_values = holm([test.p_value for test in tests])
    for name, test, p_value in zip(others, tests, p_values, strict=True):
        if status_of(sign * test.difference, p_value) == "better":
            return name
    return usual
