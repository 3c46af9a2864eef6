"""The folds of a comparison, worked on one after the other or in parallel processes."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from .._blocks import deaf_processes
from ..estimators import SharedRows, SpectralEmbedding
from .methods import RAW, Method, Params, Reference
from .protocol import NO_ROWS, Fold, Protocol, sample
from .scores import CLASSIFICATION, SCORES, OwnVote, Vote, nearest_voters, possible_votes
from .statistics import holm, paired_test_by_rows, status_of

# Progress of a comparison: a callable of the user's, or a bar of rich, in terminals and in
# notebooks.

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


# One fold: maps learned from its training rows, choices on inner folds of them, votes on its
# held-out rows.

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
        return (
            float(np.mean([of_fold.mean() for of_fold in self.contributions]))
            if self.contributions
            else np.nan
        )


@dataclass(frozen=True)
class Embedded:
    """A map: fitted steps, training rows and queries as embedded, positions of those learned from,
    and the time.
    """

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
        Of a predictor, which takes long to fit: training rows and held-out ones in its first two
        coordinates.
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
    """Training rows and rows to predict, scaled and without gaps: shared by all methods and
    settings.

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
        with np.errstate(
            invalid="ignore"
        ):  # the mean of a column without a value in these rows: it is filled with 0
            return (
                Pipeline(steps).fit(self.protocol.X[np.append(self.rows, self.others)])
                if steps
                else None
            )

    @cached_property
    def prepared(self) -> tuple[Any, Any]:
        """Return training rows and queries as the maps see them."""
        return self._prepared(self.rows), self._prepared(self.queries)

    def _prepared(self, rows: np.ndarray) -> Any:
        X = self.protocol.X[rows]
        return (
            self._preprocessing.transform(X) if self._preprocessing is not None and len(rows) else X
        )

    def embed(self, method: Method, params: Params) -> Embedded:
        """Return the map learned from the training rows, of many from a sample, and those without a
        label.
        """
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
            y = np.append(
                y, np.full(len(self.others), -1 if self.protocol.task == CLASSIFICATION else np.nan)
            )
            estimator.fit(self._prepared(np.append(self.rows[learned], self.others)), y)
        elif isinstance(estimator, SpectralEmbedding) and self.protocol.task == CLASSIFICATION:
            estimator.fit_rows(self._shared(X, learned))
        else:
            estimator.fit(X[learned], y)
        seconds = time.perf_counter() - start
        embedded = (
            estimator.transform(X),
            estimator.transform(queries) if len(self.queries) else queries,
        )
        return Embedded([*steps, ("map", estimator)], *embedded, learned, seconds)

    def _predictor(self, method: Method, params: Params, *, own_folds: bool = False) -> Embedded:
        """Return a predictor learned from the training rows as they are, and its coordinates.

        Its members are learned on folds of the protocol, which keep groups and twins together, or
        on its own.
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
            members = [
                (np.searchsorted(rows, train), np.searchsorted(rows, test)) for train, test in folds
            ]
        estimator.fit_encoded(X[learned], self.labels[learned], protocol.features, members)
        seconds = time.perf_counter() - start
        embedded = (
            estimator.transform(X),
            estimator.transform(queries) if len(self.queries) else queries,
        )
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
        """Return scaler, map and vote, fitted, that predict the labels themselves, and the rows
        that vote.

        A predictor has all its members, and is what its `fit` makes of the rows, unless some belong
        together.
        """
        if method.own_vote:
            apart = len(np.unique(self.protocol.units[self.rows])) == len(self.rows)
            embedded = self._predictor(method, choice.params, own_folds=apart)
            return Pipeline(embedded.steps), self.rows[embedded.learned]
        embedded = self.embed(method, choice.params)
        vote = choice.vote.estimator(self.protocol.task).fit(embedded.Z, self.labels)
        return Pipeline([*embedded.steps, ("vote", vote)]), self.rows

    def predictions(
        self, found: Embedded, votes: list[Vote], m: int | None = None
    ) -> list[np.ndarray]:
        """Return what each vote of the training rows, in the first m dimensions, predicts for the
        queries.
        """
        if isinstance(votes[0], OwnVote):
            return [self.answers(found.steps[-1][1], self.protocol.X[self.queries], found.learned)]
        votes = possible_votes(votes, len(self.rows))
        k = max(vote.n_neighbors for vote in votes)
        distances, near = nearest_voters(found.Z[:, :m], found.queries[:, :m], k)
        answers, n_classes = self.y[near], len(self.protocol.classes)
        return [vote.predict(distances, answers, n_classes) for vote in votes]

    def answers(self, model: Any, X: Any, learned: np.ndarray) -> np.ndarray:
        """Return what a predictor that learned from some of the rows says of others: shares of
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

        Of equals the smallest dimension, the first setting and vote. A setting that some inner fold
        cannot fit is left out, unless no setting can be fitted there: then that fold is.
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

    def _score_setting(
        self, part: Part, method: Method, number: int, setting: Params, found: Any
    ) -> None:
        """Add what every dimension and vote of a setting contributes to the score on an inner fold."""
        embedded = part.embed(method, setting)
        full = embedded.Z.shape[1]
        for m in method.cuts(full):
            cut = (
                None if m == full else m
            )  # None: all dimensions, which may be fewer in another fold
            for vote, prediction in enumerate(part.predictions(embedded, self.votes, m)):
                found.setdefault((number, cut, vote), []).append(part.contributions(prediction))

    def _own_choice(self, method: Method, found: Embedded) -> Choice:
        """Return the choice of a fitted predictor: its members have voted for rows that they had
        not seen.
        """
        vote, predictor = OwnVote(len(found.learned)), found.steps[-1][1]
        place = np.full(len(self.protocol.y), -1)
        place[self.outer.rows[found.learned[predictor.held_out_rows_]]] = np.arange(
            len(predictor.held_out_rows_)
        )
        tests = [part.queries for part in self.inner]
        if any(
            (place[test] < 0).any() for test in tests
        ):  # its folds were cut otherwise, as there were too few rows
            return Choice({}, vote)
        answers = self.outer.of_all_classes(predictor.held_out_votes_, found.learned)
        contributions = [part.contributions(answers[place[part.queries]]) for part in self.inner]
        return Choice({}, vote, tuple(contributions))

    def evaluate(self, method: Method) -> Outcome:
        """Return the outcome of a method with its choices made on the inner folds."""
        if method.own_vote:
            return self._evaluate_predictor(method)
        with warnings.catch_warnings(
            action="ignore"
        ):  # of settings that are tried: the chosen one's count
            choice = self.choose(method)
        with warnings.catch_warnings(record=True, action="always") as caught:
            found = self.outer.embed(method, choice.params)
            (prediction,) = self.outer.predictions(found, [choice.vote])
        return self._outcome(
            prediction, choice, found.Z.shape[1], len(found.learned), found.seconds, caught
        )

    def _evaluate_predictor(self, method: Method) -> Outcome:
        """Return the outcome of a predictor: one fit serves the choice, the prediction and the
        picture.
        """
        with warnings.catch_warnings(record=True, action="always") as caught:
            found = self.outer.embed(method, method.quick)
            choice = self._own_choice(method, found)
            (prediction,) = self.outer.predictions(found, [choice.vote])
        outcome = self._outcome(
            prediction, choice, found.Z.shape[1], len(found.learned), found.seconds, caught
        )
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
        return self._outcome(
            prediction, Choice({}, self.votes[0]), p, len(learned), seconds, caught
        )

    def _outcome(self, prediction: np.ndarray, choice: Choice, *figures: Any) -> Outcome:
        dimension, n_learned, seconds, caught = figures
        y, task = self.protocol.y[self.outer.queries], self.protocol.task
        contributions = {
            name: score.contributions(y, prediction) for name, score in SCORES[task.name].items()
        }
        scores = {name: float(of_rows.mean()) for name, of_rows in contributions.items()}
        predicted = prediction.argmax(axis=1) if task == CLASSIFICATION else prediction
        texts = Counter(str(warning.message) for warning in caught)
        kept = Counter({text: n for text, n in texts.items() if not text.startswith(HARMLESS)})
        ranking = contributions[self.protocol.score.name]
        return Outcome(ranking, scores, predicted, choice, dimension, n_learned, seconds, kept)


CHOICE = "automatic choice"
WORTH_PROCESSES = 2000  # rows of all folds together from which on processes are worth their start
FEW_FOLDS = 4  # for each process: of fewer, the methods are shared out, too

Found = dict[str, Outcome | str]  # by name of the method; a reason where it was skipped


@dataclass(frozen=True)
class Job:
    """Some methods on a fold, or their choices on rows.

    Attributes
    ----------
    number : int or None
        Of the fold; None for choices.
    rows : pair of ndarray, or ndarray
        The fold, or the rows to choose on.
    contestants : sequence of Method and Reference
    deadline : float
        Of `time.time`. After it the job ends, but with at least two methods where the raw features
        are among them.
    """

    number: int | None
    rows: Any
    contestants: Sequence[Method | Reference]
    deadline: float

    def work(self, protocol: Protocol) -> Iterator[tuple[str, Any]]:
        """Yield outcomes, choices, or the reasons why there are none, by name."""
        run = (
            FoldRun(protocol, *self.rows)
            if self.number is not None
            else FoldRun(protocol, self.rows)
        )
        at_least = 2 if self.contestants[0].name == RAW else 0
        for n_done, one in enumerate(self.contestants):
            if n_done >= at_least and time.time() > self.deadline:
                return
            work = (
                run.refer
                if isinstance(one, Reference)
                else run.evaluate
                if self.number is not None
                else run.choose
            )
            try:
                with warnings.catch_warnings(action="ignore"):  # an `Outcome` holds its own
                    result: Any = work(one)  # type: ignore[arg-type]
            except FAILURES as error:
                if one.name == RAW:
                    raise
                result = str(error).partition("\n")[0]
            yield one.name, result


def jobs_of(
    folds: Sequence[Fold], contestants: Sequence[Method | Reference], deadline: float, n_parts: int
) -> list[Job]:
    """Return the work on all folds, in so many parts each."""
    return [
        job for fold in enumerate(folds) for job in _in_parts(*fold, contestants, deadline, n_parts)
    ]


def choice_jobs(
    rows: np.ndarray, methods: Sequence[Method], deadline: float, n_parts: int
) -> list[Job]:
    """Return the choices of all methods on some rows, in so many parts."""
    return _in_parts(None, rows, methods, deadline, n_parts)


def _in_parts(
    number: int | None,
    rows: Any,
    contestants: Sequence[Method | Reference],
    deadline: float,
    n_parts: int,
) -> list[Job]:
    """Return a job for each part of the contestants, of whom there may be fewer than parts."""
    return [
        Job(number, rows, contestants[part::n_parts], deadline)
        for part in range(min(n_parts, len(contestants)))
    ]


def automatic(
    choices: dict[str, Choice], methods: Sequence[Method], protocol: Protocol, rows: np.ndarray
) -> str:
    """Return the name of the method that is chosen by the inner folds of some rows.

    It is the predictor for tables, unless the paired test on the rows that these folds hold out
    shows another method to be better (at .05, by Holm over the other methods); of several such, the
    one with the best score. Where no predictor for tables is compared, the method with the best
    score: of equals the first, without inner folds raw k-NN.
    """
    known = {method.name: choices[method.name] for method in methods if method.name in choices}
    known = {name: choice for name, choice in known.items() if choice.contributions}
    sign = protocol.score.sign
    by_score = sorted(known, key=lambda name: -round(sign * known[name].mean, 12))
    predictors = [method.name for method in methods if method.own_vote and method.name in choices]
    if not predictors:
        return by_score[0] if by_score else RAW
    usual = predictors[0]
    if usual not in known:
        return usual
    folds = protocol.inner_folds(rows)
    tested, n_train = (
        [test for _, test in folds],
        float(np.mean([len(train) for train, _ in folds])),
    )
    others = [name for name in by_score if name != usual]
    tests = [
        paired_test_by_rows(
            known[name].contributions, known[usual].contributions, tested, n_train, protocol.units
        )
        for name in others
    ]
    p_values = holm([test.p_value for test in tests])
    for name, test, p_value in zip(others, tests, p_values, strict=True):
        if status_of(sign * test.difference, p_value) == "better":
            return name
    return usual


def with_choice(
    found: Found, order: Sequence[Method | Reference], protocol: Protocol, rows: np.ndarray
) -> Found:
    """Return what was found on a fold with these training rows, in this order, with the automatic
    choice.
    """
    ordered = {one.name: found[one.name] for one in order if one.name in found}
    methods = [one for one in order if isinstance(one, Method)]
    outcomes = {one.name: ordered.get(one.name) for one in methods}
    choices = {
        name: outcome.choice for name, outcome in outcomes.items() if isinstance(outcome, Outcome)
    }
    name = automatic(choices, methods, protocol, rows)
    return ordered | {CHOICE: replace(cast(Outcome, outcomes[name]), source=(name, choices[name]))}


@dataclass(frozen=True)
class FitJob:
    """A predictor for tables fitted to all rows, while the folds are worked on: very likely it will
    be chosen.

    Attributes
    ----------
    method : Method
    rows : ndarray
    deadline : float
        See `Job`.
    """

    method: Method
    rows: np.ndarray
    deadline: float
    number: None = None

    @property
    def contestants(self) -> list[Method]:
        """Return whose fit it is."""
        return [self.method]

    def work(self, protocol: Protocol) -> Iterator[tuple[str, Any]]:
        """Yield the pipeline and the rows that vote in it; nothing where it cannot be fitted."""
        with warnings.catch_warnings(action="ignore"), suppress(*FAILURES):
            yield (
                self.method.name,
                Part(protocol, self.rows).pipeline(
                    self.method, Choice({}, OwnVote(len(self.rows)))
                ),
            )


@dataclass
class Findings:
    """What the jobs have found so far.

    Attributes
    ----------
    folds : dict of int to Found
    n_left : dict of int to int
        Jobs that are not finished, by fold.
    choices : dict of str to Choice
        On all rows.
    fitted : dict of str to (Pipeline, ndarray)
        By name of the method, what was fitted to all rows, and the rows that vote in it.
    interrupted : bool
    """

    folds: dict[int, Found] = field(default_factory=dict)
    n_left: dict[int, int] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    fitted: dict[str, tuple[Pipeline, np.ndarray]] = field(default_factory=dict)
    interrupted: bool = False

    def add(self, number: int | None, name: str, result: Any) -> None:
        """Keep what a job yields."""
        if number is not None:
            self.folds.setdefault(number, {})[name] = result
        elif isinstance(result, Choice):
            self.choices[name] = result
        elif isinstance(result, tuple):
            self.fitted[name] = result

    def complete(self, methods: Sequence[Method]) -> dict[int, Found]:
        """Return the folds that got farthest, of those with the raw features: all that are
        finished, as a rule.
        """

        def progress(number: int) -> tuple[bool, int]:
            return not self.n_left[number], sum(
                method.name in self.folds[number] for method in methods
            )

        usable = [number for number in sorted(self.folds) if RAW in self.folds[number]]
        most = max(map(progress, usable), default=None)
        return {number: self.folds[number] for number in usable if progress(number) == most}


def run_jobs(
    protocol: Protocol,
    make_jobs: Callable[[int], list[Job]],
    n_jobs: int | None,
    progress: Progress,
    beside: Sequence[FitJob] = (),
) -> Findings:
    """Return what the jobs find; `make_jobs(n)` cuts the work on a fold into n parts, for n_jobs
    processes.

    The fits `beside` them, which take long, are begun first, but only in processes.

    In parallel where the rows of all folds are not few: each process then keeps to one thread.
    """
    jobs, findings = make_jobs(1), Findings()
    n_jobs = cpu_count() if n_jobs is None else effective_n_jobs(n_jobs)
    n_folds = len({job.number for job in jobs})
    in_processes = n_jobs > 1 and n_folds * len(protocol.labelled) >= WORTH_PROCESSES
    if in_processes and n_folds < FEW_FOLDS * n_jobs:
        jobs = make_jobs(min(n_jobs, FEW_FOLDS))
    everything: list[Job | FitJob] = [*(beside if in_processes else []), *jobs]
    n_all, n_done = sum(len(job.contestants) for job in everything), 0
    for job in jobs:
        if job.number is not None:
            findings.n_left[job.number] = findings.n_left.get(job.number, 0) + 1
    results = (
        _in_processes(protocol, everything, n_jobs) if in_processes else _in_turn(protocol, jobs)
    )
    try:
        progress("comparing", 0, n_all)
        for done, name, result in results:
            if name is not None:
                findings.add(done.number, name, result)
                n_done += 1
                progress(name, n_done, n_all)
            elif done.number is not None:
                findings.n_left[done.number] -= 1
        if n_done < n_all:  # by the deadline, or where a fit beside them failed
            progress("comparing", n_all, n_all)
    except KeyboardInterrupt:
        findings.interrupted = True
    finally:
        results.close()
    return findings


def _in_turn(
    protocol: Protocol, jobs: Sequence[Job]
) -> Generator[tuple[Job | FitJob, str | None, Any]]:
    """Yield what each job finds; its end has no name. Small problems: threads cost more than they
    give.
    """
    with threadpool_limits(1):
        for number, job in enumerate(jobs):
            if not number or time.time() < job.deadline:
                yield from ((job, name, result) for name, result in job.work(protocol))
                yield job, None, None


def _in_processes(
    protocol: Protocol, jobs: Sequence[Job | FitJob], n_jobs: int
) -> Generator[tuple[Job | FitJob, str | None, Any]]:
    tasks = (delayed(_work)(protocol, number, job) for number, job in enumerate(jobs))
    with deaf_processes():
        results = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)(tasks)
    try:
        for number, found in results:
            yield from ((jobs[number], name, result) for name, result in found)
            if found or time.time() < jobs[number].deadline:
                yield jobs[number], None, None
    finally:
        with warnings.catch_warnings(
            action="ignore"
        ):  # joblib's, of tasks that are cancelled: that is meant
            results.close()


def _work(protocol: Protocol, number: int, job: Job | FitJob) -> tuple[int, list[tuple[str, Any]]]:
    """Work in a process of its own."""
    if number and time.time() > job.deadline:
        return number, []
    with threadpool_limits(1):
        return number, list(job.work(protocol))
