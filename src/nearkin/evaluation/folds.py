"""How a contestant does on a fold: it is fitted to the training rows, makes its choices inside
them, and predicts the held-out rows. Folds are worked on in turn or in parallel processes.

Every contestant predicts. Most learn a map and let the nearest rows vote in it: their dimension,
parameters and vote are chosen by fits to inner folds of the training rows. A predictor for tables
votes its own way, and its members, learned on the same inner folds, show how it would do. A
reference is any other classifier or regressor.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from .._blocks import deaf_processes
from ..estimators import SharedRows, SpectralEmbedding
from .methods import RAW, Method, Params, Reference
from .protocol import NO_ROWS, Protocol, sample
from .scores import CLASSIFICATION, SCORES, OwnVote, Vote, nearest_voters, possible_votes
from .statistics import holm, paired_test_by_rows, status_of

# What a method may raise on a table that does not suit it: it is skipped then, with the reason.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
# harmless: the dimensions tried may exceed the rank of a fold, and its rows may lack a class
HARMLESS = ("n_components=", "y_pred contains", "lbfgs failed to converge")
MOST_DENSE = 2**27  # entries of sparse rows that are made dense, 1 GB
CHOICE = "automatic choice"


class Split:
    """Training rows and rows to predict, scaled and without gaps: shared by all contestants.

    Parameters
    ----------
    protocol : Protocol
    rows, queries : ndarray of row numbers
    others : ndarray of row numbers, optional
        Rows without a label to learn from, too; all that the protocol allows by default.
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
        self._shared: dict[int, SharedRows] = {}

    @cached_property
    def y(self) -> np.ndarray:
        """Return classes or numbers of the training rows."""
        return self.protocol.y[self.rows]

    @property
    def labels(self) -> np.ndarray:
        """Return the classes of the training rows themselves, or the numbers."""
        return self.protocol.classes[self.y] if self.protocol.task == CLASSIFICATION else self.y

    @cached_property
    def alone(self) -> Split:
        """Return the split as if there were no rows without a label: their scale is not that of all
        rows.
        """
        return Split(self.protocol, self.rows, self.queries, NO_ROWS)

    @cached_property
    def preprocessing(self) -> list[tuple[str, Any]]:
        """Return scaler and imputer, fitted to the training rows and those without a label."""
        steps = self.protocol.preprocessing()
        if not steps:
            return []
        # the mean of a column without a value in these rows is invalid: it is filled with 0
        with np.errstate(invalid="ignore"):
            return Pipeline(steps).fit(self.protocol.X[np.append(self.rows, self.others)]).steps

    @cached_property
    def prepared(self) -> tuple[Any, Any]:
        """Return training rows and queries as the maps see them."""
        return self.prepare(self.rows), self.prepare(self.queries)

    def prepare(self, rows: np.ndarray) -> Any:
        """Return rows as the maps see them."""
        X = self.protocol.X[rows]
        return Pipeline(self.preprocessing).transform(X) if self.preprocessing and len(rows) else X

    def shared(self, learned: np.ndarray) -> SharedRows:
        """Return the rows that all spectral methods which learn from so many have in common."""
        if len(learned) not in self._shared:
            self._shared[len(learned)] = SharedRows(self.prepared[0][learned], self.y[learned])
        return self._shared[len(learned)]

    def sample(self, most: int) -> np.ndarray:
        """Return the positions of at most so many training rows to learn from."""
        return sample(np.arange(len(self.rows)), self.y, most, self.protocol.random_state)

    def answers(self, model: Any, X: Any, learned: np.ndarray) -> np.ndarray:
        """Return what a predictor that learned from some training rows says of others: shares of
        classes, or numbers.
        """
        if self.protocol.task != CLASSIFICATION:
            return model.predict(X)
        return self.of_all_classes(model.predict_proba(X), learned)

    def of_all_classes(self, answers: np.ndarray, learned: np.ndarray) -> np.ndarray:
        """Return shares of all classes, from those of the classes of some training rows; numbers as
        they are.
        """
        if self.protocol.task != CLASSIFICATION:
            return answers
        shares = np.zeros((len(answers), len(self.protocol.classes)))
        shares[:, np.unique(self.y[learned])] = answers
        return shares

    def contributions(self, prediction: np.ndarray) -> np.ndarray:
        """Return the contributions of the queries to the score of a prediction."""
        return self.protocol.score.contributions(self.protocol.y[self.queries], prediction)


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
    plane : pair of ndarray, or None
        Of a predictor for tables, which takes long to fit: training rows and held-out ones in its
        first two coordinates.
    warnings : Counter
    """

    contributions: np.ndarray
    scores: dict[str, float]
    predicted: np.ndarray
    choice: Choice
    dimension: int
    n_learned: int
    seconds: float
    plane: tuple[np.ndarray, np.ndarray] | None = None
    warnings: Counter[str] = field(default_factory=Counter)


class NestedSplit:
    """A fold with the inner folds of its training rows, which serve every contestant.

    Parameters
    ----------
    protocol : Protocol
    train, test : ndarray of row numbers
    """

    def __init__(self, protocol: Protocol, train: np.ndarray, test: np.ndarray = NO_ROWS) -> None:
        self.protocol, self.outer = protocol, Split(protocol, train, test)

    @cached_property
    def inner(self) -> list[Split]:
        """Return the splits on which choices are made."""
        folds = self.protocol.inner_folds(self.outer.rows)
        return [Split(self.protocol, train, test) for train, test in folds]

    @cached_property
    def votes(self) -> list[Vote]:
        """Return the votes that all of the splits have rows for."""
        fewest = min(len(split.rows) for split in [self.outer, *self.inner])
        return possible_votes(self.protocol.votes, fewest)

    def choose(self, one: Method) -> Choice:
        """Return what a method chooses inside the training rows."""
        return contestant(one).choose(self)

    def evaluate(self, one: Method | Reference) -> Outcome:
        """Return the outcome of a contestant, with its choices made inside the training rows."""
        with warnings.catch_warnings(record=True, action="always") as caught:
            outcome = contestant(one).evaluate(self)
        texts = Counter(str(warning.message) for warning in caught)
        kept = {text: n for text, n in texts.items() if not text.startswith(HARMLESS)}
        return replace(outcome, warnings=Counter(kept))

    def fit(self, one: Method, choice: Choice | None = None) -> tuple[Pipeline, np.ndarray]:
        """Return what a user gets: a pipeline fitted with this choice, and the rows that vote."""
        return contestant(one).pipeline(self.outer, choice)

    def outcome(
        self,
        choice: Choice,
        prediction: np.ndarray,
        dimension: int,
        n_learned: int,
        seconds: float,
        plane: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Outcome:
        """Return the outcome of a prediction of the held-out rows."""
        y, task = self.protocol.y[self.outer.queries], self.protocol.task
        by_score = {
            name: score.contributions(y, prediction) for name, score in SCORES[task.name].items()
        }
        return Outcome(
            contributions=by_score[self.protocol.score.name],
            scores={name: float(of_rows.mean()) for name, of_rows in by_score.items()},
            predicted=prediction.argmax(axis=1) if task == CLASSIFICATION else prediction,
            choice=choice,
            dimension=dimension,
            n_learned=n_learned,
            seconds=seconds,
            plane=plane,
        )


# The three kinds of contestants. Each has `evaluate(fold)`, which returns an Outcome. A method also
# has `choose(fold)`, and `pipeline(split, choice)`: what a user gets, which predicts the labels
# themselves.


def contestant(one: Method | Reference) -> Any:
    """Return how a method or reference is fitted, chooses and predicts."""
    if isinstance(one, Reference):
        return AnyPredictor(one)
    return TablePredictor(one) if one.own_vote else MapWithVote(one)


@dataclass(frozen=True)
class Embedded:
    """A map, fitted to the training rows of a split.

    Attributes
    ----------
    split : Split
    steps : list of (str, transformer)
    Z, queries : ndarray
        Training rows and queries as the map has them.
    learned : ndarray
        Positions of the training rows that the map was learned from; all of them vote.
    seconds : float
    """

    split: Split
    steps: list[tuple[str, Any]]
    Z: Any
    queries: Any
    learned: np.ndarray
    seconds: float

    def predictions(self, votes: Sequence[Vote], m: int | None = None) -> list[np.ndarray]:
        """Return what each vote of the training rows, in the first m dimensions, predicts for the
        queries.
        """
        votes = possible_votes(votes, len(self.split.rows))
        k = max(vote.n_neighbors for vote in votes)
        distances, near = nearest_voters(self.Z[:, :m], self.queries[:, :m], k)
        answers, n_classes = self.split.y[near], len(self.split.protocol.classes)
        return [vote.predict(distances, answers, n_classes) for vote in votes]


@dataclass(frozen=True)
class MapWithVote:
    """A map, and the vote of the nearest training rows in it."""

    method: Method

    def fit(self, split: Split, params: Params) -> Embedded:
        """Return the map learned from the training rows, of many from a sample, and those without a
        label.
        """
        method = self.method
        split = split if method.unlabelled or not len(split.others) else split.alone
        X, queries = split.prepared
        if method.estimator is None:
            return Embedded(split, split.preprocessing, X, queries, np.arange(len(split.rows)), 0.0)
        start = time.perf_counter()
        learned, is_classes = split.sample(method.most_rows), split.protocol.task == CLASSIFICATION
        estimator, y = clone(method.estimator).set_params(**params), split.y[learned]
        if len(split.others):
            rows = np.append(split.rows[learned], split.others)
            none = np.full(len(split.others), -1 if is_classes else np.nan)
            estimator.fit(split.prepare(rows), np.append(y, none))
        elif isinstance(estimator, SpectralEmbedding) and is_classes:
            estimator.fit_rows(split.shared(learned))
        else:
            estimator.fit(X[learned], y)
        seconds = time.perf_counter() - start
        steps, Z = [*split.preprocessing, ("map", estimator)], estimator.transform(X)
        queries = estimator.transform(queries) if len(split.queries) else queries
        return Embedded(split, steps, Z, queries, learned, seconds)

    def choose(self, fold: NestedSplit) -> Choice:
        """Return the setting, dimension and vote with the highest mean score on the inner folds.

        Of equals the smallest dimension, the first setting and vote. A setting that some inner fold
        cannot fit is left out, unless no setting can be fitted there: then that fold is.
        """
        protocol, settings = fold.protocol, self.method.settings(fold.protocol.X.shape[1])
        found = defaultdict[tuple[int, int | None, int], list[np.ndarray]](list)
        n_fitted, failure = 0, None
        for split in fold.inner:
            any_fitted = False
            for number, setting in enumerate(settings):
                try:
                    embedded = self.fit(split, setting)
                    full = embedded.Z.shape[1]
                    for m in self.method.cuts(full):
                        # None: all dimensions, which may be fewer in another fold
                        cut = None if m == full else m
                        for vote, prediction in enumerate(embedded.predictions(fold.votes, m)):
                            found[number, cut, vote].append(split.contributions(prediction))
                    any_fitted = True
                except FAILURES as error:
                    failure = error
            n_fitted += any_fitted
        if fold.inner and not n_fitted and failure:
            raise failure
        means = {
            key: round(protocol.score.sign * float(np.mean([of.mean() for of in folds])), 12)
            for key, folds in found.items()
            if len(folds) == n_fitted
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

    def evaluate(self, fold: NestedSplit) -> Outcome:
        """Return the outcome with the choices made on the inner folds."""
        with warnings.catch_warnings(action="ignore"):  # those with the chosen setting count
            choice = self.choose(fold)
        found = self.fit(fold.outer, choice.params)
        (prediction,) = found.predictions([choice.vote])
        return fold.outcome(choice, prediction, found.Z.shape[1], len(found.learned), found.seconds)

    def pipeline(self, split: Split, choice: Choice) -> tuple[Pipeline, np.ndarray]:
        """Return scaler, map and vote, fitted, and the rows that vote."""
        found = self.fit(split, choice.params)
        vote = choice.vote.estimator(split.protocol.task).fit(found.Z, split.labels)
        return Pipeline([*found.steps, ("vote", vote)]), split.rows


@dataclass(frozen=True)
class TablePredictor:
    """A predictor that takes the rows as they are, and votes its own way: see `Method.own_vote`."""

    method: Method

    def fit(
        self, split: Split, *, own_folds: bool = False, **params: Any
    ) -> tuple[Any, np.ndarray]:
        """Return the predictor and the positions of the training rows that it learned from.

        Its members are learned on folds of the protocol, which keep groups and twins together, or
        on its own.
        """
        protocol, predictor = split.protocol, clone(self.method.estimator)
        predictor.set_params(random_state=protocol.random_state, **params)
        folds = [] if own_folds else protocol.member_folds(split.rows, predictor.n_members)
        learned = split.sample(self.method.most_rows)
        for train, test in folds:
            learned = np.union1d(learned, np.searchsorted(split.rows, np.append(train, test)))
        rows, members = split.rows[learned], None
        if len(folds) > 1:
            members = [
                (np.searchsorted(rows, train), np.searchsorted(rows, test)) for train, test in folds
            ]
        predictor.fit_encoded(protocol.X[rows], split.labels[learned], protocol.features, members)
        return predictor, learned

    def choose(self, fold: NestedSplit) -> Choice:
        """Return what its members, learned on the inner folds, say of the rows that these hold
        out.
        """
        return self._choice(fold, *self.fit(fold.outer, **self.method.quick))

    def _choice(self, fold: NestedSplit, predictor: Any, learned: np.ndarray) -> Choice:
        vote, rows = OwnVote(len(learned)), fold.outer.rows[learned[predictor.held_out_rows_]]
        place = np.full(len(fold.protocol.y), -1)
        place[rows] = np.arange(len(rows))
        if any((place[split.queries] < 0).any() for split in fold.inner):
            return Choice({}, vote)  # its folds were cut otherwise, as there were too few rows
        answers = fold.outer.of_all_classes(predictor.held_out_votes_, learned)
        by_fold = [split.contributions(answers[place[split.queries]]) for split in fold.inner]
        return Choice({}, vote, tuple(by_fold))

    def evaluate(self, fold: NestedSplit) -> Outcome:
        """Return the outcome: one fit serves the choice, the prediction and the picture."""
        split, X = fold.outer, fold.protocol.X
        start = time.perf_counter()
        predictor, learned = self.fit(split, **self.method.quick)
        seconds = time.perf_counter() - start
        choice = self._choice(fold, predictor, learned)
        queries = X[split.queries]
        Z, Z_queries = predictor.transform(X[split.rows]), predictor.transform(queries)
        plane = Z[:, :2].astype(np.float32), Z_queries[:, :2].astype(np.float32)
        prediction = split.answers(predictor, queries, learned)
        return fold.outcome(choice, prediction, Z.shape[1], len(learned), seconds, plane)

    def pipeline(self, split: Split, _: Choice | None = None) -> tuple[Pipeline, np.ndarray]:
        """Return the predictor with all its members, and the rows that vote: it has no settings.

        It is what its `fit` makes of the rows, unless some belong together.
        """
        apart = len(np.unique(split.protocol.units[split.rows])) == len(split.rows)
        predictor, learned = self.fit(split, own_folds=apart)
        return Pipeline([("vote", predictor)]), split.rows[learned]


@dataclass(frozen=True)
class AnyPredictor:
    """A classifier or regressor that has nothing to choose."""

    reference: Reference

    def evaluate(self, fold: NestedSplit) -> Outcome:
        """Return the outcome of a fit to at most `Reference.most_rows` rows."""
        start = time.perf_counter()
        split, p = fold.outer, fold.protocol.X.shape[1]
        learned = split.sample(self.reference.most_rows)
        X, queries = split.prepared[0][learned], split.prepared[1]
        if issparse(X) and "boosting" in self.reference.name:
            if (entries := (len(learned) + len(split.queries)) * p) > MOST_DENSE:
                raise MemoryError(f"it takes dense rows, here {entries:,} numbers")
            X, queries = X.toarray(), queries.toarray()
        model = clone(self.reference.estimator).fit(X, split.y[learned])
        seconds = time.perf_counter() - start
        prediction = split.answers(model, queries, learned)
        return fold.outcome(Choice({}, fold.votes[0]), prediction, p, len(learned), seconds)


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


# Work on folds: in parallel where the rows of all folds are not few. Each process then keeps to one
# thread, as small problems do anyway: threads cost more than they give.

WORTH_PROCESSES = 2000  # rows of all folds together from which on processes are worth their start
FEW_FOLDS = 4  # for each process: of fewer, the contestants are shared out, too

Progress = Callable[[str, int, int], None]


@contextmanager
def progress_bar(progress: Any) -> Iterator[Callable[..., None]]:
    """Yield what to call with [what is done,] units done and units in all: the callable; for True a
    bar.
    """
    if progress is not True:
        yield progress or (lambda *_: None)
        return
    try:
        from rich.progress import Progress as Bar
        from rich.progress import TextColumn
    except ImportError as error:
        raise ImportError("progress=True needs rich: pip install rich (or nearkin[app])") from error
    with Bar(
        TextColumn("{task.description:20}", markup=False), *Bar.get_default_columns()[1:]
    ) as bar:
        task = bar.add_task("comparing", total=None)

        def show(*about: Any) -> None:
            *what, done, total = about
            bar.update(
                task, description=what[0] if what else "comparing", completed=done, total=total
            )

        yield show


@dataclass(frozen=True)
class Job:
    """Some contestants, one after the other, on the same rows.

    Attributes
    ----------
    key : int or str
        The number of the fold, or what is done on all rows.
    do : function of (NestedSplit, Method or Reference)
        `NestedSplit.evaluate`, `choose` or `fit`.
    rows : tuple of ndarray
        Training rows, and held-out ones where there are any.
    contestants : sequence of Method and Reference
    """

    key: int | str
    do: Callable[[NestedSplit, Any], Any]
    rows: tuple[np.ndarray, ...]
    contestants: Sequence[Method | Reference]

    def cut(self, n: int) -> list[Job]:
        """Return n jobs that share out the contestants, or as many as there are contestants."""
        n = min(n, len(self.contestants))
        return [replace(self, contestants=self.contestants[first::n]) for first in range(n)]

    def work(
        self, protocol: Protocol, deadline: float, is_first: bool
    ) -> Iterator[tuple[int | str, str | None, Any]]:
        """Yield the key, a name and what is found, or the reason why there is nothing; last a name
        of None.

        After the deadline only the first job begins, and others end, but with at least two methods
        where the raw features are among them.
        """
        if not is_first and time.time() > deadline:
            return
        fold = NestedSplit(protocol, *self.rows)
        at_least = 2 if self.contestants[0].name == RAW else 0
        with threadpool_limits(1):
            for n_done, one in enumerate(self.contestants):
                if n_done >= at_least and time.time() > deadline:
                    break
                try:
                    with warnings.catch_warnings(action="ignore"):  # an `Outcome` holds its own
                        result = self.do(fold, one)
                except FAILURES as error:
                    if one.name == RAW:
                        raise
                    result = str(error).partition("\n")[0]
                yield self.key, one.name, result
        yield self.key, None, None


@dataclass
class Findings:
    """What the jobs have found so far.

    Attributes
    ----------
    found : dict of key to dict of str to Any
        By the key of the job and the name of the contestant: a reason, where there is nothing.
    n_left : Counter of key
        Jobs that are not finished.
    interrupted : bool
    """

    found: dict[Any, dict[str, Any]] = field(default_factory=dict)
    n_left: Counter[Any] = field(default_factory=Counter)
    interrupted: bool = False

    def complete(self, methods: Sequence[Method]) -> dict[int, dict[str, Any]]:
        """Return what was found on the folds that got farthest, of those with the raw features: on
        all folds, as a rule.
        """
        names = {method.name for method in methods}
        reached = {
            number: (not self.n_left[number], len(names & of_fold.keys()))
            for number, of_fold in self.found.items()
            if RAW in of_fold
        }
        most = max(reached.values(), default=None)
        return {n: self.found[n] for n in sorted(reached) if reached[n] == most}

    def of(self, key: int | str) -> dict[str, Any]:
        """Return the results of all jobs with this key, but of contestants that were skipped."""
        return {name: one for name, one in self.found.get(key, {}).items() if type(one) is not str}


@dataclass(frozen=True)
class Run:
    """How the work is done.

    Attributes
    ----------
    n_jobs : int or None
        Processes; None takes one a core.
    deadline : float
        Of `time.time`.
    progress : callable
    """

    n_jobs: int | None
    deadline: float
    progress: Progress

    def do(self, protocol: Protocol, jobs: Sequence[Job], beside: Sequence[Job] = ()) -> Findings:
        """Return what the jobs find, after an interrupt what they had found until then.

        Those `beside` them take long: they begin first, but only in processes.
        """
        # without jobs that have no contestants
        jobs, findings = [part for job in jobs for part in job.cut(1)], Findings()
        n_jobs = cpu_count() if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        in_processes = n_jobs > 1 and len(jobs) * len(protocol.labelled) >= WORTH_PROCESSES
        if in_processes:
            n_parts = min(n_jobs, FEW_FOLDS) if len(jobs) < FEW_FOLDS * n_jobs else 1
            jobs = [*beside, *(part for job in jobs for part in job.cut(n_parts))]
            results = self._in_processes(protocol, jobs, n_jobs)
        else:
            results = (
                one for job in jobs for one in job.work(protocol, self.deadline, job is jobs[0])
            )
        findings.n_left.update(job.key for job in jobs)
        n_all, n_done = sum(len(job.contestants) for job in jobs), 0
        try:
            self.progress("comparing", 0, n_all)
            for key, name, result in results:
                if name is None:
                    findings.n_left[key] -= 1
                    continue
                findings.found.setdefault(key, {})[name] = result
                n_done += 1
                self.progress(name, n_done, n_all)
            if n_done < n_all:  # by the deadline
                self.progress("comparing", n_all, n_all)
        except KeyboardInterrupt:
            findings.interrupted = True
        finally:
            results.close()
        return findings

    def _in_processes(
        self, protocol: Protocol, jobs: Sequence[Job], n_jobs: int
    ) -> Generator[tuple[int | str, str | None, Any]]:
        tasks = (delayed(_all_of)(job, protocol, self.deadline, job is jobs[0]) for job in jobs)
        with deaf_processes():
            results = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)(tasks)
        try:
            for found in results:
                yield from found
        finally:
            # joblib warns of tasks that are cancelled: that is meant
            with warnings.catch_warnings(action="ignore"):
                results.close()


def _all_of(job: Job, *how: Any) -> list[tuple[int | str, str | None, Any]]:
    return list(job.work(*how))
