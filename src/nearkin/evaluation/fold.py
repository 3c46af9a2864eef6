"""One fold: maps learned from its training rows, choices on inner folds of them, votes on its held-out rows."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..estimators import SharedRows, SpectralEmbedding
from .methods import Method, Params, Reference
from .protocol import NO_ROWS, Protocol, sample
from .scores import SCORES
from .task import CLASSIFICATION
from .vote import OwnVote, Vote, nearest_voters, possible_votes

# What a method may raise on a table that does not suit it: it is skipped then, with the reason.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
# harmless: the dimensions tried may exceed the rank of a fold, and its rows may lack a class
HARMLESS = ("n_components=", "y_pred contains", "lbfgs failed to converge")
MOST_DENSE = 2**27  # entries of sparse rows that are made dense, 1 GB


@dataclass(frozen=True)
class Choice:
    """What inner folds choose for a method.

    Attributes
    ----------
    params : dict
    vote : Vote
    contributions : tuple of ndarray
        Of the rows that each inner fold holds out, to the score; none without inner folds, or where some of them could
        not be fitted: such a method is not the automatic choice where others can be.
    """

    params: Params
    vote: Vote
    contributions: tuple[np.ndarray, ...] = field(default=(), compare=False)

    @property
    def mean(self) -> float:
        """Return the mean score of the inner folds, NaN without any."""
        return float(np.mean([of_fold.mean() for of_fold in self.contributions])) if self.contributions else np.nan


@dataclass(frozen=True)
class Embedded:
    """A map: fitted steps, training rows and queries as embedded, positions of those learned from, and the time."""

    steps: list[tuple[str, Any]]
    Z: Any
    queries: Any
    learned: np.ndarray
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What a method did on the held-out rows of a fold.

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
    warnings : Counter
    plane : pair of ndarray, or None
        Of a predictor, which takes long to fit: training rows and held-out ones in its first two coordinates.
    source : pair of str and Choice, or None
        Of the automatic choice: the method that it is.
    """

    contributions: np.ndarray
    scores: dict[str, float]
    predicted: np.ndarray
    choice: Choice
    dimension: int
    n_learned: int
    seconds: float
    warnings: Counter[str] = field(default_factory=Counter)
    plane: tuple[np.ndarray, np.ndarray] | None = None
    source: tuple[str, Choice] | None = None


class Part:
    """Training rows and rows to predict, scaled and without gaps: shared by all methods and settings.

    Parameters
    ----------
    protocol : Protocol
    rows, queries : ndarray of row numbers
    others : ndarray of row numbers, optional
        Rows without a label to learn from, too; all that the protocol allows by default.
    """

    def __init__(
        self, protocol: Protocol, rows: np.ndarray, queries: np.ndarray = NO_ROWS, others: np.ndarray | None = None
    ) -> None:
        self.protocol, self.rows, self.queries = protocol, rows, queries
        self.others = protocol.beside(rows) if others is None else others
        self._alone: Part | None = None
        self._rows: dict[int, SharedRows] = {}

    @cached_property
    def y(self) -> np.ndarray:
        """Return classes or numbers of the training rows."""
        return self.protocol.y[self.rows]

    @property
    def labels(self) -> np.ndarray:
        """Return the classes of the training rows themselves, or the numbers."""
        return self.protocol.classes[self.y] if self.protocol.task == CLASSIFICATION else self.y

    @cached_property
    def _preprocessing(self) -> Pipeline | None:
        """Return scaler and imputer, fitted to the training rows and those without a label."""
        steps = self.protocol.preprocessing()
        with np.errstate(invalid="ignore"):  # the mean of a column without a value in these rows: it is filled with 0
            return Pipeline(steps).fit(self.protocol.X[np.append(self.rows, self.others)]) if steps else None

    @cached_property
    def prepared(self) -> tuple[Any, Any]:
        """Return training rows and queries as the maps see them."""
        return self._prepared(self.rows), self._prepared(self.queries)

    def _prepared(self, rows: np.ndarray) -> Any:
        X = self.protocol.X[rows]
        return self._preprocessing.transform(X) if self._preprocessing is not None and len(rows) else X

    def embed(self, method: Method, params: Params) -> Embedded:
        """Return the map learned from the training rows, of many from a sample, and those without a label."""
        if method.own_vote:
            return self._predictor(method, params)
        if len(self.others) and not method.unlabelled:  # their scale is not that of all rows
            self._alone = self._alone or Part(self.protocol, self.rows, self.queries, NO_ROWS)
            return self._alone.embed(method, params)
        X, queries = self.prepared
        steps = list(self._preprocessing.steps) if self._preprocessing is not None else []
        if method.estimator is None:
            return Embedded(steps, X, queries, np.arange(len(self.rows)), 0.0)
        start = time.perf_counter()
        learned = self.sample(method.most_rows)
        y, estimator = self.y[learned], clone(method.estimator).set_params(**params)
        if len(self.others):
            y = np.append(y, np.full(len(self.others), -1 if self.protocol.task == CLASSIFICATION else np.nan))
            estimator.fit(self._prepared(np.append(self.rows[learned], self.others)), y)
        elif isinstance(estimator, SpectralEmbedding) and self.protocol.task == CLASSIFICATION:
            estimator.fit_rows(self._shared(X, learned))
        else:
            estimator.fit(X[learned], y)
        seconds = time.perf_counter() - start
        embedded = estimator.transform(X), estimator.transform(queries) if len(self.queries) else queries
        return Embedded([*steps, ("map", estimator)], *embedded, learned, seconds)

    def _predictor(self, method: Method, params: Params, *, own_folds: bool = False) -> Embedded:
        """Return a predictor learned from the training rows as they are, and its coordinates.

        Its members are learned on folds of the protocol, which keep groups and twins together, or on its own.
        """
        X, protocol = self.protocol.X[self.rows], self.protocol
        queries = protocol.X[self.queries]
        start = time.perf_counter()
        estimator = clone(method.estimator).set_params(random_state=protocol.random_state, **params)
        folds = [] if own_folds else protocol.member_folds(self.rows, estimator.n_members)
        learned = self.sample(method.most_rows)
        for train, test in folds:
            learned = np.union1d(learned, np.searchsorted(self.rows, np.append(train, test)))
        members = None
        if len(folds) > 1:
            rows = self.rows[learned]
            members = [(np.searchsorted(rows, train), np.searchsorted(rows, test)) for train, test in folds]
        estimator.fit_encoded(X[learned], self.labels[learned], protocol.features, members)
        seconds = time.perf_counter() - start
        embedded = estimator.transform(X), estimator.transform(queries) if len(self.queries) else queries
        return Embedded([("vote", estimator)], *embedded, learned, seconds)

    def _shared(self, X: Any, learned: np.ndarray) -> SharedRows:
        """Return the rows that all spectral methods which learn from so many have in common."""
        if len(learned) not in self._rows:
            self._rows[len(learned)] = SharedRows(X[learned], self.y[learned])
        return self._rows[len(learned)]

    def sample(self, most: int) -> np.ndarray:
        """Return the positions of the training rows that a map is learned from."""
        return sample(np.arange(len(self.rows)), self.y, most, self.protocol.random_state)

    def pipeline(self, method: Method, choice: Choice) -> tuple[Pipeline, np.ndarray]:
        """Return scaler, map and vote, fitted, that predict the labels themselves, and the rows that vote.

        A predictor has all its members, and is what its `fit` makes of the rows, unless some belong together.
        """
        if method.own_vote:
            apart = len(np.unique(self.protocol.units[self.rows])) == len(self.rows)
            embedded = self._predictor(method, choice.params, own_folds=apart)
            return Pipeline(embedded.steps), self.rows[embedded.learned]
        embedded = self.embed(method, choice.params)
        vote = choice.vote.estimator(self.protocol.task).fit(embedded.Z, self.labels)
        return Pipeline([*embedded.steps, ("vote", vote)]), self.rows

    def predictions(self, found: Embedded, votes: list[Vote], m: int | None = None) -> list[np.ndarray]:
        """Return what each vote of the training rows, in the first m dimensions, predicts for the queries."""
        if isinstance(votes[0], OwnVote):
            return [self.answers(found.steps[-1][1], self.protocol.X[self.queries], found.learned)]
        votes = possible_votes(votes, len(self.rows))
        k = max(vote.n_neighbors for vote in votes)
        distances, near = nearest_voters(found.Z[:, :m], found.queries[:, :m], k)
        answers, n_classes = self.y[near], len(self.protocol.classes)
        return [vote.predict(distances, answers, n_classes) for vote in votes]

    def answers(self, model: Any, X: Any, learned: np.ndarray) -> np.ndarray:
        """Return what a predictor that learned from some of the rows says of others: shares of classes, or numbers."""
        if self.protocol.task != CLASSIFICATION:
            return model.predict(X)
        return self.of_all_classes(model.predict_proba(X), learned)

    def of_all_classes(self, answers: np.ndarray, learned: np.ndarray) -> np.ndarray:
        """Return shares of all classes, from those of the classes of some training rows; numbers as they are."""
        if self.protocol.task != CLASSIFICATION:
            return answers
        shares = np.zeros((len(answers), len(self.protocol.classes)))
        shares[:, np.unique(self.y[learned])] = answers
        return shares

    def contributions(self, prediction: np.ndarray) -> np.ndarray:
        """Return the contributions of the queries to the score of a prediction."""
        return self.protocol.score.contributions(self.protocol.y[self.queries], prediction)


class FoldRun:
    """A fold in work; its inner folds and scaled rows serve every method.

    Parameters
    ----------
    protocol : Protocol
    train, test : ndarray of row numbers
    """

    def __init__(self, protocol: Protocol, train: np.ndarray, test: np.ndarray = NO_ROWS) -> None:
        self.protocol, self.outer = protocol, Part(protocol, train, test)
        self.inner = [Part(protocol, *fold) for fold in protocol.inner_folds(train)]
        fewest = min(len(part.rows) for part in [self.outer, *self.inner])
        self.votes = possible_votes(protocol.votes, fewest)

    def choose(self, method: Method) -> Choice:
        """Return the setting, dimension and vote with the highest mean score on the inner folds.

        Of equals the smallest dimension, the first setting and vote. A setting that some inner fold cannot fit is left
        out, unless no setting can be fitted there: then that fold is.
        """
        if method.own_vote:
            return self._own_choice(method, self.outer.embed(method, method.quick))
        settings = method.settings(self.protocol.X.shape[1])
        found: dict[tuple[int, int | None, int], list[np.ndarray]] = {}
        n_folds, failure = 0, None
        for part in self.inner:
            fitted = False
            for number, setting in enumerate(settings):
                try:
                    self._score_setting(part, method, number, setting, found)
                    fitted = True
                except FAILURES as error:
                    failure = error
            n_folds += fitted
        if self.inner and not n_folds and failure:
            raise failure
        sign = self.protocol.score.sign
        complete = {
            key: round(sign * float(np.mean([of_fold.mean() for of_fold in folds])), 12)
            for key, folds in found.items()
            if len(folds) == n_folds
        }
        if not complete:
            return Choice(settings[0], self.votes[0])
        best = max(complete, key=lambda key: (complete[key], -(key[1] or np.inf), -key[0], -key[2]))
        number, m, vote = best
        params = settings[number] | ({} if m is None else {"n_components": m})
        # a method that some inner fold cannot fit has nothing to be paired with others by
        contributions = tuple(found[best]) if n_folds == len(self.inner) else ()
        return Choice(params, self.votes[vote], contributions)

    def _score_setting(self, part: Part, method: Method, number: int, setting: Params, found: Any) -> None:
        """Add what every dimension and vote of a setting contributes to the score on an inner fold."""
        embedded = part.embed(method, setting)
        full = embedded.Z.shape[1]
        for m in method.cuts(full):
            cut = None if m == full else m  # None: all dimensions, which may be fewer in another fold
            for vote, prediction in enumerate(part.predictions(embedded, self.votes, m)):
                found.setdefault((number, cut, vote), []).append(part.contributions(prediction))

    def _own_choice(self, method: Method, found: Embedded) -> Choice:
        """Return the choice of a fitted predictor: its members have voted for rows that they had not seen."""
        vote, predictor = OwnVote(len(found.learned)), found.steps[-1][1]
        place = np.full(len(self.protocol.y), -1)
        place[self.outer.rows[found.learned[predictor.held_out_rows_]]] = np.arange(len(predictor.held_out_rows_))
        tests = [part.queries for part in self.inner]
        if any((place[test] < 0).any() for test in tests):  # its folds were cut otherwise, as there were too few rows
            return Choice({}, vote)
        answers = self.outer.of_all_classes(predictor.held_out_votes_, found.learned)
        contributions = [part.contributions(answers[place[part.queries]]) for part in self.inner]
        return Choice({}, vote, tuple(contributions))

    def evaluate(self, method: Method) -> Outcome:
        """Return the outcome of a method with its choices made on the inner folds."""
        if method.own_vote:
            return self._evaluate_predictor(method)
        with warnings.catch_warnings(action="ignore"):  # of settings that are tried: the chosen one's count
            choice = self.choose(method)
        with warnings.catch_warnings(record=True, action="always") as caught:
            found = self.outer.embed(method, choice.params)
            (prediction,) = self.outer.predictions(found, [choice.vote])
        return self._outcome(prediction, choice, found.Z.shape[1], len(found.learned), found.seconds, caught)

    def _evaluate_predictor(self, method: Method) -> Outcome:
        """Return the outcome of a predictor: one fit serves the choice, the prediction and the picture."""
        with warnings.catch_warnings(record=True, action="always") as caught:
            found = self.outer.embed(method, method.quick)
            choice = self._own_choice(method, found)
            (prediction,) = self.outer.predictions(found, [choice.vote])
        outcome = self._outcome(prediction, choice, found.Z.shape[1], len(found.learned), found.seconds, caught)
        plane = found.Z[:, :2].astype(np.float32), found.queries[:, :2].astype(np.float32)
        return replace(outcome, plane=plane)

    def refer(self, reference: Reference) -> Outcome:
        """Return the outcome of a predictor of another kind."""
        part, p = self.outer, self.protocol.X.shape[1]
        start = time.perf_counter()
        learned = part.sample(reference.most_rows)
        X, queries = part.prepared[0][learned], part.prepared[1]
        if issparse(X) and "boosting" in reference.name:
            if (entries := (len(learned) + len(part.queries)) * p) > MOST_DENSE:
                raise MemoryError(f"it takes dense rows, here {entries:,} numbers")
            X, queries = X.toarray(), queries.toarray()
        with warnings.catch_warnings(record=True, action="always") as caught:
            model = clone(reference.estimator).fit(X, part.y[learned])
            seconds = time.perf_counter() - start
            prediction = part.answers(model, queries, learned)
        return self._outcome(prediction, Choice({}, self.votes[0]), p, len(learned), seconds, caught)

    def _outcome(self, prediction: np.ndarray, choice: Choice, *figures: Any) -> Outcome:
        dimension, n_learned, seconds, caught = figures
        y, task = self.protocol.y[self.outer.queries], self.protocol.task
        contributions = {name: score.contributions(y, prediction) for name, score in SCORES[task.name].items()}
        scores = {name: float(of_rows.mean()) for name, of_rows in contributions.items()}
        predicted = prediction.argmax(axis=1) if task == CLASSIFICATION else prediction
        texts = Counter(str(warning.message) for warning in caught)
        kept = Counter({text: n for text, n in texts.items() if not text.startswith(HARMLESS)})
        ranking = contributions[self.protocol.score.name]
        return Outcome(ranking, scores, predicted, choice, dimension, n_learned, seconds, kept)
