"""Work on folds, sequentially or, with enough rows, in parallel.

Each process uses one thread, which is faster for small problems.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from .._processes import deaf_processes
from .._threads import in_one_thread
from .contestants import FAILURES, Outcome, Skipped, contestant
from .methods import RAW, Method, Reference
from .protocol import Fold, Protocol

WORTH_PROCESSES = 2000  # labelled rows, times the folds, from which on processes pay off
FEW_FOLDS = 4  # per process; with fewer folds, the contestants of a fold are distributed, too
# harmless: the dimensions tried may exceed the rank of a fold, and its rows may lack a class
HARMLESS = ("n_components=", "y_pred contains", "lbfgs failed to converge")

Progress = Callable[[str, int, int], None]
Result = tuple[int | str, str | None, Any]  # the key of a job, a name, and the result


@dataclass(frozen=True)
class Job:
    """Some contestants, evaluated one after the other on the same rows.

    Attributes
    ----------
    key : int or str
        The number of the fold, or a name for work on all rows.
    do : {"evaluate", "choose", "pipeline"}
        The method of a contestant to call.
    rows : tuple of ndarray
        Training rows, and held-out ones, if any.
    contestants : sequence of Method and Reference
    """

    key: int | str
    do: str
    rows: tuple[np.ndarray, ...]
    contestants: Sequence[Method | Reference]

    def cut(self, n: int) -> list[Job]:
        """Return n jobs that divide the contestants, or one per contestant if there are fewer."""
        n = min(n, len(self.contestants))
        return [replace(self, contestants=self.contestants[first::n]) for first in range(n)]

    def work(self, protocol: Protocol, deadline: float, is_first: bool) -> Iterator[Result]:
        """Yield, for each contestant, the key, its name and its result or `Skipped`.

        The last name is None. After the deadline, only the first job starts, and running jobs end
        with their current contestant. A job that begins with the raw features finishes at least
        three contestants: these, the constant and one method.
        """
        if not is_first and time.time() > deadline:
            return
        fold = Fold(protocol, *self.rows)
        at_least = 3 if self.contestants[0].name == RAW else 0
        # OpenMP also in libraries that were loaded since the first limit
        with in_one_thread(), threadpool_limits(1, user_api="openmp"):
            for n_done, one in enumerate(self.contestants):
                if n_done >= at_least and time.time() > deadline:
                    break
                try:
                    with warnings.catch_warnings(record=True, action="always") as caught:
                        result = getattr(contestant(one), self.do)(fold)
                except FAILURES as error:
                    if one.name == RAW:
                        raise
                    result = Skipped(str(error).partition("\n")[0])
                if isinstance(result, Outcome):
                    texts = [str(warning.message) for warning in caught]
                    kept = Counter(text for text in texts if not text.startswith(HARMLESS))
                    # only the picture of the first fold is drawn
                    space = result.space if self.key == 0 else None
                    result = replace(result, warnings=kept, space=space)
                yield self.key, one.name, result
        yield self.key, None, None


@dataclass
class Findings:
    """The results of the jobs so far.

    Attributes
    ----------
    found : dict of key to dict of str to Any
        By the key of the job and the name of the contestant; `Skipped` if it failed.
    n_left : Counter of key
        Number of unfinished jobs.
    interrupted : bool
    """

    found: dict[Any, dict[str, Any]] = field(default_factory=dict)
    n_left: Counter[Any] = field(default_factory=Counter)
    interrupted: bool = False

    def complete(self, methods: Sequence[Method]) -> dict[int, dict[str, Any]]:
        """Return the results on the folds that got farthest, usually all folds.

        Folds on which the raw features were not finished are left out.
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
        """Return the results of all jobs with this key, without skipped contestants."""
        return {
            name: one
            for name, one in self.found.get(key, {}).items()
            if not isinstance(one, Skipped)
        }


@dataclass(frozen=True)
class Run:
    """How jobs are run.

    Attributes
    ----------
    n_jobs : int or None
        Number of processes; None takes one per core.
    deadline : float
        As `time.time` counts.
    progress : callable
    """

    n_jobs: int | None
    deadline: float
    progress: Progress

    def do(self, protocol: Protocol, jobs: Sequence[Job], beside: Sequence[Job] = ()) -> Findings:
        """Return the results of the jobs; after an interrupt, those that were finished before.

        The jobs in `beside` take long: they start first, but only in separate processes.
        """
        jobs, findings = [job for job in jobs if job.contestants], Findings()
        if not jobs:
            return findings
        n_jobs = cpu_count() if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        if n_jobs > 1 and len(jobs) * len(protocol.labelled) >= WORTH_PROCESSES:
            n_parts = min(n_jobs, FEW_FOLDS) if len(jobs) < FEW_FOLDS * n_jobs else 1
            beside = [job for job in beside if job.contestants]
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
            if n_done < n_all:  # at the deadline
                self.progress("comparing", n_all, n_all)
        except KeyboardInterrupt:
            findings.interrupted = True
        finally:
            results.close()
        return findings

    def _in_processes(
        self, protocol: Protocol, jobs: Sequence[Job], n_jobs: int
    ) -> Generator[Result]:
        tasks = (delayed(_all_of)(job, protocol, self.deadline, job is jobs[0]) for job in jobs)
        with deaf_processes():
            results = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)(tasks)
        try:
            for found in results:
                yield from found
        finally:
            # joblib warns of cancelled tasks, which is intended
            with warnings.catch_warnings(action="ignore"):
                results.close()


def _all_of(job: Job, *how: Any) -> list[Result]:
    return list(job.work(*how))
