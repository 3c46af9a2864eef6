"""The folds of a comparison, worked on one after the other or in parallel processes."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits

from .fold import FAILURES, Choice, FoldRun, Outcome
from .methods import RAW, Method, Reference
from .protocol import Fold, Protocol, first_repeat

CHOICE = "automatic choice"
WORTH_PROCESSES = 5000  # rows of all folds together from which on processes are worth their start
# Up to so many rows and features BLAS threads cost more than they give.
FEW_ROWS, FEW_FEATURES = 2000, 500

Progress = Callable[[str, int, int], None]
Found = dict[str, Outcome | str]  # by name of the method; a reason where it was skipped


@dataclass(frozen=True)
class Contestants:
    """What every fold compares, until a deadline (of `time.time`).

    Attributes
    ----------
    methods : sequence of Method
        The raw features first.
    references : sequence of Reference
    deadline : float
    """

    methods: Sequence[Method]
    references: Sequence[Reference]
    deadline: float = np.inf

    def evaluate(
        self, protocol: Protocol, fold: Fold, refer: bool, found: Found, report: Callable[[str], None]
    ) -> Found:
        """Fill in the outcomes on a fold, if `refer` those of the references, too.

        After the deadline it ends with the methods that are done, at least two.
        """
        run = FoldRun(protocol, *fold)
        for method in self.methods:
            if len(found) > 1 and time.time() > self.deadline:
                break
            found[method.name] = _attempt(run.evaluate, method)
            report(method.name)
        name = automatic({name: outcome.choice for name, outcome in outcomes_of(found).items()})
        chosen = outcomes_of(found)[name]
        found[CHOICE] = replace(chosen, choice=replace(chosen.choice, params={"method": name, **chosen.choice.params}))
        for reference in self.references if refer else ():
            found[reference.name] = _attempt(run.refer, reference)
            report(reference.name)
        return found

    def choose(self, protocol: Protocol, rows: np.ndarray) -> tuple[str, Choice]:
        """Return the method that inner folds of the rows choose, and its parameters and vote."""
        run, choices = FoldRun(protocol, rows), dict[str, Choice]()
        with warnings.catch_warnings(action="ignore"):
            for method in self.methods:
                with suppress(*FAILURES):
                    choices[method.name] = run.choose(method)
        name = automatic(choices)
        return name, choices[name]


def automatic(choices: dict[str, Choice]) -> str:
    """Return the method with the best score on the inner folds: of equals the first, without inner folds raw k-NN."""
    scores = {name: choice.score for name, choice in choices.items() if not np.isnan(choice.score)}
    return max(scores, key=scores.__getitem__) if scores else RAW


def outcomes_of(found: Found) -> dict[str, Outcome]:
    """Return the outcomes without those of skipped methods."""
    return {name: outcome for name, outcome in found.items() if isinstance(outcome, Outcome)}


def _attempt(evaluate: Callable[[Any], Outcome], contestant: Any) -> Outcome | str:
    """Return the outcome, or why there is none; what the raw features raise is raised."""
    try:
        return evaluate(contestant)
    except FAILURES as error:
        if contestant.name == RAW:
            raise
        return str(error).partition("\n")[0]


def run_folds(
    contestants: Contestants,
    protocol: Protocol,
    folds: Sequence[Fold],
    rows: np.ndarray | None,
    n_jobs: int | None,
    progress: Progress,
) -> tuple[dict[int, Found], tuple[str, Choice] | None, bool]:
    """Return what was found on each fold, the choice on `rows`, if any, and whether an interrupt ended it early.

    Folds are worked on in parallel where they are several and not small: each process then keeps to one thread.
    """
    n_jobs = min(n_jobs or cpu_count(), len(folds))
    refer = [number < len(first_repeat(folds)) for number in range(len(folds))]
    if n_jobs > 1 and len(folds) * len(protocol.labelled) >= WORTH_PROCESSES:
        return _in_processes(contestants, protocol, folds, refer, rows, n_jobs, progress)
    found, chosen = dict[int, Found](), None
    n_done, n_all = 0, len(folds) * len(contestants.methods) + sum(refer) * len(contestants.references)

    def report(name: str) -> None:
        nonlocal n_done
        n_done += 1
        progress(name, n_done, n_all)

    few = max(map(len, folds[0])) <= FEW_ROWS, protocol.X.shape[1] <= FEW_FEATURES
    limits = threadpool_limits(1 if few[1] else None, user_api=None if few[0] else "blas")
    with limits, parallel_config("threading", n_jobs=n_jobs if few[0] else cpu_count()):
        try:
            for number, fold in enumerate(folds):
                if not number or time.time() < contestants.deadline:
                    contestants.evaluate(protocol, fold, refer[number], found.setdefault(number, {}), report)
            if rows is not None and time.time() < contestants.deadline:
                chosen = contestants.choose(protocol, rows)
        except KeyboardInterrupt:
            return found, None, True
    return found, chosen, False


def _in_processes(
    contestants: Contestants,
    protocol: Protocol,
    folds: Sequence[Fold],
    refer: Sequence[bool],
    rows: np.ndarray | None,
    n_jobs: int,
    progress: Progress,
) -> tuple[dict[int, Found], tuple[str, Choice] | None, bool]:
    found, chosen = dict[int, Found](), None
    jobs = [delayed(_work)(contestants, protocol, n, fold, refer[n]) for n, fold in enumerate(folds)]
    jobs += [] if rows is None else [delayed(_work)(contestants, protocol, None, rows, False)]
    with _no_interrupts():
        results = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)(jobs)
    progress("folds", 0, len(jobs))
    try:
        for n_done, (number, result) in enumerate(results, start=1):
            if number is None:
                chosen = result
            else:
                found[number] = result
            progress("folds", n_done, len(jobs))
            if found and time.time() > contestants.deadline:
                break
    except KeyboardInterrupt:
        return found, None, True
    finally:
        results.close()
    return found, chosen, False


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C, as then do the processes that start here, which import for seconds before they can say so."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(
    contestants: Contestants, protocol: Protocol, number: int | None, rows: Any, refer: bool
) -> tuple[int | None, Any]:
    """Work on a fold, or choose on rows, in a process of its own, which leaves an interrupt to the parent."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with threadpool_limits(1):
        if number is None:
            return None, contestants.choose(protocol, rows)
        return number, contestants.evaluate(protocol, rows, refer, {}, lambda name: None)
