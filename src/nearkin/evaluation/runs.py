"""The folds of a comparison, worked on one after the other or in parallel processes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from .._parallel import deaf_processes
from .fold import FAILURES, Choice, FoldRun, Outcome, Part
from .methods import RAW, Method, Reference
from .progress import Progress
from .protocol import Fold, Protocol
from .statistics import holm, paired_test_by_rows, status_of
from .vote import OwnVote

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
        Of `time.time`. After it the job ends, but with at least two methods where the raw features are among them.
    """

    number: int | None
    rows: Any
    contestants: Sequence[Method | Reference]
    deadline: float

    def work(self, protocol: Protocol) -> Iterator[tuple[str, Any]]:
        """Yield outcomes, choices, or the reasons why there are none, by name."""
        run = FoldRun(protocol, *self.rows) if self.number is not None else FoldRun(protocol, self.rows)
        at_least = 2 if self.contestants[0].name == RAW else 0
        for n_done, one in enumerate(self.contestants):
            if n_done >= at_least and time.time() > self.deadline:
                return
            work = run.refer if isinstance(one, Reference) else run.evaluate if self.number is not None else run.choose
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
    return [job for fold in enumerate(folds) for job in _in_parts(*fold, contestants, deadline, n_parts)]


def choice_jobs(rows: np.ndarray, methods: Sequence[Method], deadline: float, n_parts: int) -> list[Job]:
    """Return the choices of all methods on some rows, in so many parts."""
    return _in_parts(None, rows, methods, deadline, n_parts)


def _in_parts(
    number: int | None, rows: Any, contestants: Sequence[Method | Reference], deadline: float, n_parts: int
) -> list[Job]:
    """Return a job for each part of the contestants, of whom there may be fewer than parts."""
    return [Job(number, rows, contestants[part::n_parts], deadline) for part in range(min(n_parts, len(contestants)))]


def automatic(choices: dict[str, Choice], methods: Sequence[Method], protocol: Protocol, rows: np.ndarray) -> str:
    """Return the name of the method that is chosen by the inner folds of some rows.

    It is the predictor for tables, unless the paired test on the rows that these folds hold out shows another method to
    be better (at .05, by Holm over the other methods); of several such, the one with the best score. Where no predictor
    for tables is compared, the method with the best score: of equals the first, without inner folds raw k-NN.
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
    tested, n_train = [test for _, test in folds], float(np.mean([len(train) for train, _ in folds]))
    others = [name for name in by_score if name != usual]
    tests = [
        paired_test_by_rows(known[name].contributions, known[usual].contributions, tested, n_train, protocol.units)
        for name in others
    ]
    p_values = holm([test.p_value for test in tests])
    for name, test, p_value in zip(others, tests, p_values, strict=True):
        if status_of(sign * test.difference, p_value) == "better":
            return name
    return usual


def with_choice(found: Found, order: Sequence[Method | Reference], protocol: Protocol, rows: np.ndarray) -> Found:
    """Return what was found on a fold with these training rows, in this order, with the automatic choice."""
    ordered = {one.name: found[one.name] for one in order if one.name in found}
    methods = [one for one in order if isinstance(one, Method)]
    outcomes = {one.name: ordered.get(one.name) for one in methods}
    choices = {name: outcome.choice for name, outcome in outcomes.items() if isinstance(outcome, Outcome)}
    name = automatic(choices, methods, protocol, rows)
    return ordered | {CHOICE: replace(cast(Outcome, outcomes[name]), source=(name, choices[name]))}


@dataclass(frozen=True)
class FitJob:
    """A predictor for tables fitted to all rows, while the folds are worked on: very likely it will be chosen.

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
            yield self.method.name, Part(protocol, self.rows).pipeline(self.method, Choice({}, OwnVote(len(self.rows))))


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
        """Return the folds that got farthest, of those with the raw features: all that are finished, as a rule."""

        def progress(number: int) -> tuple[bool, int]:
            return not self.n_left[number], sum(method.name in self.folds[number] for method in methods)

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
    """Return what the jobs find; `make_jobs(n)` cuts the work on a fold into n parts, for n_jobs processes.

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
    results = _in_processes(protocol, everything, n_jobs) if in_processes else _in_turn(protocol, jobs)
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


def _in_turn(protocol: Protocol, jobs: Sequence[Job]) -> Generator[tuple[Job | FitJob, str | None, Any]]:
    """Yield what each job finds; its end has no name. Small problems: threads cost more than they give."""
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
        with warnings.catch_warnings(action="ignore"):  # joblib's, of tasks that are cancelled: that is meant
            results.close()


def _work(protocol: Protocol, number: int, job: Job | FitJob) -> tuple[int, list[tuple[str, Any]]]:
    """Work in a process of its own."""
    if number and time.time() > job.deadline:
        return number, []
    with threadpool_limits(1):
        return number, list(job.work(protocol))
