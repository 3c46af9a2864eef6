"""How a contestant does on a fold: it is fitted to the training rows, makes its choices inside
them, and predicts the held-out rows.

Most contestants learn a map and let the nearest rows vote in it: their dimension, parameters and
vote are chosen by fits to inner folds of the training rows. A predictor for tables votes its own
way, and its members, learned on the same inner folds, show how it would do. A reference is any
other classifier or regressor.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._statistics import holm
from ..estimators import SpectralEmbedding
from .methods import RAW, Method, Params, Reference
from .protocol import Fold, Protocol
from .scores import CLASSIFICATION, SCORES, OwnVote, Vote
from .statistics import paired_test_by_rows, status_of
from .weights import fitted

# What a method may raise on a table that does not suit it: it is skipped then, with the reason.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
MOST_DENSE = 2**27  # entries of sparse rows that are made dense, 1 GB
CHOICE = "automatic choice"


@dataclass(frozen=True)
class Choice:
    """What inner folds choose for a method.

    Attributes
    ----------
    params : dict
    vote : Vote
    contributions : tuple of ndarray
        Of the rows that each inner fold holds out, to the score; none without inner folds, or where
        some of them could not be fitted: such a method is not the automatic choice where others can
        be.
    """

    params: Params
    vote: Vote
    contributions: tuple[np.ndarray, ...] = field(default=(), compare=False)

    @property
    def mean(self) -> float:
        """Return the mean score of the inner folds, NaN without any."""
        means = [of_fold.mean() for of_fold in self.contributions]
        return float(np.mean(means)) if means else np.nan


@dataclass(frozen=True)
class Outcome:
    """What a contestant did on the held-out rows of a fold.

    Attributes
    ----------
    contributions : ndarray of shape (n_held_out,)
        Of the rows to the score; their mean is the score.
    scores : dict of str to float
        All scores of the task.
    predicted : ndarray of shape (n_held_out,)
        Positions of classes, or numbers.
    choice : Choice
    dimension, n_learned : int
        Of the map, and the rows that it was learned from.
    seconds : float
        One fit with the chosen parameters.
    space : pair of ndarray, or None
        Of a predictor for tables, which takes long to fit, on the first fold: training rows and
        held-out ones in its learned space, for a picture.
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
    """What is left of a contestant that failed.

    Attributes
    ----------
    reason : str
    """

    reason: str


def outcome(fold: Fold, prediction: np.ndarray, choice: Choice, **fit: Any) -> Outcome:
    """Return the outcome of a prediction of the held-out rows, with what is known of the fit."""
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
    """Return what a predictor that learned from some training rows says of others: shares of all
    classes (n, n_classes), or numbers (n,).
    """
    is_classes = fold.protocol.task == CLASSIFICATION
    predict = model.predict_proba if is_classes else model.predict
    return of_all_classes(fold, predict(X), learned)


def of_all_classes(fold: Fold, found: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Return shares of all classes (n, n_classes), where some training rows, given by position,
    have only some of these; numbers as they are.
    """
    if fold.protocol.task != CLASSIFICATION:
        return found
    shares = np.zeros((len(found), len(fold.protocol.classes)))
    shares[:, np.unique(fold.y[learned])] = found
    return shares


# The three kinds of contestants. Each has `evaluate(fold)`, which returns an Outcome. A method also
# has `choose(fold)`, and `pipeline(fold, choice)`: what a user gets, which predicts the labels
# themselves, and the rows that vote.


@dataclass(frozen=True)
class FittedMap:
    """A map, fitted to the training rows of a fold.

    Attributes
    ----------
    steps : list of (str, transformer)
    Z, queries : ndarray or csr_array of shape (n, m) and (n_queries, m)
        Training rows and queries, mapped.
    n_learned : int
        Training rows that the map was learned from; all of them vote.
    seconds : float
    """

    steps: list[tuple[str, Any]]
    Z: Any
    queries: Any
    n_learned: int
    seconds: float


@dataclass(frozen=True)
class MapWithVote:
    """A map, and the vote of the nearest training rows in it."""

    method: Method

    def fit(self, fold: Fold, params: Params) -> FittedMap:
        """Return the map, learned from the training rows and from those without a label.

        Of many training rows a sample is learned from.
        """
        method = self.method
        fold = fold if method.unlabelled or not len(fold.others) else fold.alone
        X, queries = fold.prepared
        if method.estimator is None:
            return FittedMap(fold.preprocessing, X, queries, len(fold.rows), 0.0)
        start = time.perf_counter()
        learned, is_classes = fold.sample(method.most_rows), fold.protocol.task == CLASSIFICATION
        estimator, y = clone(method.estimator).set_params(**params), fold.y[learned]
        rows = fold.rows[learned]
        weights = fold.protocol.weights_of(np.append(rows, fold.others))
        if len(fold.others):
            none = np.full(len(fold.others), -1 if is_classes else np.nan)
            targets = np.append(y, none)
            fitted(estimator, fold.prepare(np.append(rows, fold.others)), targets, weights)
        elif isinstance(estimator, SpectralEmbedding) and is_classes:
            estimator.fit_rows(fold.shared(learned))
        else:
            fitted(estimator, X[learned], y, weights)
        seconds = time.perf_counter() - start
        steps, Z = [*fold.preprocessing, ("map", estimator)], estimator.transform(X)
        queries = estimator.transform(queries) if len(fold.queries) else queries
        return FittedMap(steps, Z, queries, len(learned), seconds)

    def choose(self, fold: Fold) -> Choice:
        """Return the setting, dimension and vote with the highest mean score on the inner folds.

        Of equals the smallest dimension, the first setting and vote. A setting that some inner fold
        cannot fit is left out, unless no setting can be fitted there: then that fold is.
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
                        # None: all dimensions, which may be fewer in another fold
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
        # None, all dimensions, is the largest
        best = max(means, key=lambda key: (means[key], -(key[1] or np.inf), -key[0], -key[2]))
        number, cut, vote = best
        params = settings[number] | ({} if cut is None else {"n_components": cut})
        # a method that some inner fold cannot fit has nothing to be paired with others by
        contributions = tuple(found[best]) if n_fitted == len(fold.inner) else ()
        return Choice(params, fold.votes[vote], contributions)

    def evaluate(self, fold: Fold) -> Outcome:
        """Return the outcome with the choices made on the inner folds."""
        with warnings.catch_warnings(action="ignore"):  # those with the chosen setting count
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
        """Return scaler, map and vote, fitted, and the rows that vote."""
        found = self.fit(fold, choice.params)
        vote = choice.vote.estimator(fold.protocol.task).fit(found.Z, fold.labels)
        return Pipeline([*found.steps, ("vote", vote)]), fold.rows


@dataclass(frozen=True)
class PredictorWithVote:
    """A predictor that takes the rows as they are, and votes its own way: see `Method.own_vote`."""

    method: Method

    def fit(self, fold: Fold, *, own_folds: bool = False) -> tuple[Any, np.ndarray]:
        """Return the predictor and the positions of the training rows that it learned from.

        Its members are learned on folds of the protocol, which keep groups and twins together, or
        on its own.
        """
        protocol, predictor = fold.protocol, clone(self.method.estimator)
        predictor.set_params(random_state=protocol.random_state)
        folds = [] if own_folds else protocol.member_folds(fold.rows, predictor.n_members)
        learned = fold.sample(self.method.most_rows)
        for train, test in folds:
            learned = np.union1d(learned, np.searchsorted(fold.rows, np.append(train, test)))
        rows, members = fold.rows[learned], None
        if len(folds) > 1:
            members = [
                (np.searchsorted(rows, train), np.searchsorted(rows, test)) for train, test in folds
            ]
        weights, y = protocol.weights_of(rows), fold.labels[learned]
        predictor.fit_encoded(protocol.X[rows], y, protocol.features, members, weights)
        return predictor, learned

    def choose(self, fold: Fold) -> Choice:
        """Return what its members, learned on the inner folds, say of the rows that these hold
        out.
        """
        return self._choice(fold, *self.fit(fold))

    def _choice(self, fold: Fold, predictor: Any, learned: np.ndarray) -> Choice:
        vote, rows = OwnVote(len(learned)), fold.rows[learned[predictor.held_out_rows_]]
        place = np.full(len(fold.protocol.y), -1)
        place[rows] = np.arange(len(rows))
        if any((place[inner.queries] < 0).any() for inner in fold.inner):
            return Choice({}, vote)  # its folds were cut otherwise, as there were too few rows
        votes = of_all_classes(fold, predictor.held_out_votes_, learned)
        by_fold = [inner.contributions(votes[place[inner.queries]]) for inner in fold.inner]
        return Choice({}, vote, tuple(by_fold))

    def evaluate(self, fold: Fold) -> Outcome:
        """Return the outcome: one fit serves the choice, the prediction and the picture."""
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
        """Return the predictor and the rows that vote: it has no settings.

        Its members are learned on folds of its own, unless some rows belong together.
        """
        apart = len(np.unique(fold.protocol.units[fold.rows])) == len(fold.rows)
        predictor, learned = self.fit(fold, own_folds=apart)
        return Pipeline([("vote", predictor)]), fold.rows[learned]


@dataclass(frozen=True)
class AnyPredictor:
    """A classifier or regressor that has nothing to choose."""

    reference: Reference

    def evaluate(self, fold: Fold) -> Outcome:
        """Return the outcome of a fit to at most `Reference.most_rows` rows."""
        start = time.perf_counter()
        p = fold.protocol.X.shape[1]
        learned = fold.sample(self.reference.most_rows)
        X, queries = fold.prepared[0][learned], fold.prepared[1]
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


def contestant(one: Method | Reference) -> Any:
    """Return how a method or reference is fitted, chooses and predicts."""
    if isinstance(one, Reference):
        return AnyPredictor(one)
    return PredictorWithVote(one) if one.own_vote else MapWithVote(one)


def automatic(
    choices: dict[str, Choice], methods: Sequence[Method], protocol: Protocol, rows: np.ndarray
) -> str:
    """Return the name of the method that is chosen by the inner folds of some rows.

    It is the predictor for tables, unless the paired test on the rows that these folds hold out
    shows another method to be better (at .05, by Holm over the other methods); of several such, the
    one with the best score. Where no predictor for tables is compared, the method with the best
    score: of equals the first, without inner folds raw k-NN.
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
