"""`compare`: from a table to a ranking of methods and a fitted winner."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from .._callbacks import progress_bar
from .._messages import shortened
from .._threads import deaf_processes, in_one_thread
from .._validation import check_integer
from ..tables import features_of
from .contestants import FAILURES, Choice, Outcome, Skipped, automatic, contestant
from .doubts import DOUBTS
from .methods import (
    RAW,
    Method,
    Reference,
    all_methods,
    constant_reference,
    default_methods,
    default_references,
)
from .protocol import Fold, Protocol, TrainTest, make_protocol
from .results import Comparison
from .scores import BY_CLASS, VOTES, Vote, named_task
from .table import EncodedTable, from_frame

# Work on folds, sequentially or, with enough rows, in processes of one thread each, which is faster
# for small problems.

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


# The comparison.

# the key of the work on all rows, and what progress calls it
FINAL_CHOICE = "chosen on all rows"


def compare(
    X: Any,
    y: Any,
    *,
    task: str = "classification",
    groups: Any = None,
    sample_weight: Any = None,
    methods: Sequence[Method] | None = None,
    references: Sequence[Reference] | None = None,
    score: str | None = None,
    n_neighbors: int | None = None,
    n_splits: int | None = None,
    n_repeats: int | None = None,
    scale: bool = True,
    keep_twins: bool = False,
    choice_rows: int | None = None,
    refit: bool = True,
    time_budget: float | None = None,
    random_state: int = 0,
    unlabelled: Any = None,
    n_jobs: int | None = None,
    progress: Progress | bool = False,
) -> Comparison:
    """Compare learned metrics by the vote of the nearest rows on held-out rows.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, p)
        Numbers, with NaN for missing cells of a dense array. A data frame (pandas, polars or
        pyarrow) may contain text and dates. If it does, or if y is a name, it is encoded by a
        `TableEncoder`. An `EncodedTable` brings its own target, groups and weights.
    y : array of shape (n,), or str
        The target, or the name of its column in X: class labels, or real numbers with
        `task="regression"`. Unlabelled rows have None or NaN; -1 is a class like any other, but see
        `unlabelled`. Classes of a single row are left out with a remark (an error, if they have
        more than half of the rows, or fewer than two classes remain), and so are classes with fewer
        rows than folds if they have at most 5 % of the rows. The labels of a named column are
        stripped of spaces, and "1.0" is "1"; the numbers of a named column may be text that
        `TableEncoder` reads as numbers, such as "12 kg". Up to 5 % of its cells may be other text:
        they are missing, with a remark. Dates and text of more than 500 characters are no labels.
    task : {"classification", "regression"}, default="classification"
        What is predicted: classes by the vote of the nearest rows, on stratified folds, or real
        numbers by their mean.
    groups : array of shape (n,) or str, default=None
        Groups, or the name of their column in X. Rows of the same group are never on both sides of
        a split.
    sample_weight : array of shape (n,), default=None
        At least 0. A row of weight 2 counts as two equal rows in fits, scores and thus tests. A row
        of weight 0 is left out; row indices in the result then refer to
        `np.flatnonzero(sample_weight)`. Only the ratios matter.
    methods : sequence of Method, default=None
        None takes `default_methods(task)`, which are fast, including semi-supervised methods if
        some rows are unlabelled; `extend` adds others, such as `all_methods(task)`. The raw
        features are always compared.
    references : sequence of Reference, default=None
        Predictors of other kinds, ranked separately; None takes `default_references(task)`. A
        constant prediction is always among them, since a method is only called better if it
        significantly beats the constant.
    score : str, default=None
        The score for ranking and choices: "accuracy", "balanced_accuracy", "f1", "auc" or
        "log_loss"; for regression "r2", "mae" or "rank_correlation". None takes accuracy, or auc if
        the largest class has more than 75 % of the rows; for regression r2, or mae if a few numbers
        decide r2, see `few_decide`.
    n_neighbors : int, default=None
        k of a hard vote. None lets the inner folds choose k and a hard or soft vote; see `VOTES`.
    n_splits, n_repeats : int, default=None
        Number of folds, and of repeated random splits into folds. None takes 5 folds, repeated
        until about 1,500 rows have been held out (at most 3 times); for more than 20,000 rows
        without groups a single split, which holds out 5,000. The number of folds is at most the
        size of the smallest class, but at least 2 (for regression, at most half the number of rows;
        with groups, their number); see `Comparison.reduced`. With fewer than 5 folds in total, only
        a large difference is called "better" or "worse" (see `paired_test`), since so few folds
        hardly distinguish chance from merit.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X is only divided by the
        standard deviation).
    keep_twins : bool, default=False
        Whether identical rows and near-twins (`twin_groups`) are split like other rows; if not,
        they stay on the same side.
    choice_rows : int, default=None
        Maximum number of training rows on which dimension, parameters and vote are chosen. None
        takes 2,000; for more than 131 features, as many rows as have 2^18 entries in total, but at
        least 700.
    refit : bool, default=True
        Whether the automatic choice is repeated on all rows and fitted to them as
        `Comparison.winner`. A predictor for tables that every fold has chosen is not chosen again,
        since it has no settings.
    time_budget : float, default=None
        Seconds in total, after which the finished results are ranked: at least one fold, or for a
        single split the raw features and one method. With None there is no limit, and the result
        only depends on the rows and the seed.
    random_state : int, default=0
        Seed of all random choices.
    unlabelled : label, default=None
        A value of y that means "no label", like None and NaN, such as -1 in labels for the
        semi-supervised estimators; it may be the text of a number.
    n_jobs : int, default=None
        Number of processes, each of which works on a fold with one thread; None and -1 take one per
        core. Small tables are compared in a single process.
    progress : bool or callable, default=False
        True shows a progress bar (needs rich). A callable is called as `progress(what, done,
        total)`, where the evaluation of a method on a fold counts as one.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it contains what was finished; if nothing was, the interrupt is
        raised again.

    Notes
    -----
    In every fold, dimension, parameters and vote of a method are chosen on three inner folds of the
    training rows, or of a sample of 2,000 of them. The automatic choice also chooses the method on
    these, and is itself compared like the other methods. It takes the predictor for tables, unless
    the paired test on the held-out rows of the inner folds shows another method to be significantly
    better. A map is learned from all training rows or, if there are many, from a sample
    (`Method.most_rows`); all training rows vote.

    Differences from the raw features are tested by `paired_test`, with Holm's correction for the
    number of methods. "better" means significantly better than the raw features and than a constant
    prediction, since on noise many methods do better than raw k-NN. A single split tests the fitted
    models: it shows which of them is better on new rows, not which method would be better if all
    were fitted again to other rows (`PairedTest.of_fitted_models`).

    If some rows are unlabelled, the folds split the labelled ones: only these are held out, and
    only these vote. Some methods (`Method.unlabelled`: PCA, LPP, DP, SDA, TDL) and their scaler
    learn from the training rows and all unlabelled rows; with groups, unlabelled rows of a held-out
    group are excluded. The other methods ignore unlabelled rows.

    After scaling, missing cells are filled with the median of the training rows, and indicators are
    appended, 1 for a missing cell and 0 for a known one. A column gets an indicator if it is
    missing in at least 5 training rows and known in at least 5; columns with the same gaps share
    one, and there is at most one for every 10 rows (`nearkin.tables.indicated_features`).

    With `sample_weight`, every estimator (or step of a pipeline) whose `fit` takes weights is
    fitted with them; `Comparison.unweighted` lists the others. The k nearest rows of a vote are k
    distinct rows of equal weight. Folds, samples and the degrees of freedom of tests count rows.

    "NCA tables" (`NCAClassifier`, `NCARegressor`) is not a map for a k-NN vote but a predictor with
    its own vote. It takes the table unscaled and with missing cells, and chooses penalty,
    temperature and distance in `fit`. Its members are learned on the three inner folds, and their
    votes for the held-out rows of these folds give its score for the automatic choice. Of more than
    2,000 training rows, a further part with whole groups and twins, at most 2,000 rows, is held out
    until the last half round of its stochastic gradient. The winner is fitted in the same way.

    Cost: for every method and fold, 3 fits for each of its settings, and one more; for a predictor,
    one fit.
    """
    start = time.perf_counter()
    deadline = np.inf if time_budget is None else time.time() + time_budget
    for name, value, fewest in (
        ("n_splits", n_splits, 2),
        ("n_repeats", n_repeats, 1),
        ("n_neighbors", n_neighbors, 1),
        ("choice_rows", choice_rows, 10),
    ):
        if value is not None:
            check_integer(value, name, fewest)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    kind = named_task(task)
    table = X
    if not isinstance(X, EncodedTable):
        table = from_frame(X, y, groups, task, unlabelled, sample_weight)
    encoder = table.encoder
    protocol = make_protocol(
        table.X,
        table.y,
        table.groups,
        kind,
        weights=table.weights,
        score=score,
        in_folds=n_splits is not None or n_repeats is not None,
        n_splits=n_splits,
        votes=VOTES if n_neighbors is None else (Vote(n_neighbors),),
        scale=scale,
        keep_twins=keep_twins,
        choice_rows=choice_rows,
        random_state=random_state,
        features=None if encoder is None else features_of(encoder),
        categories=table.categories,
    )
    if methods is None:
        methods = default_methods(task, **_kinds(protocol))
    if references is None:
        sizes = protocol.X.shape[1], max(1, len(protocol.classes))
        has_categories = protocol.categories is not None
        references = default_references(
            task, *sizes, protocol.score.name, categories=has_categories
        )
    _check_contestants(methods, "methods", Method)
    _check_contestants(references, "references", Reference)
    methods = [Method(RAW, None), *(method for method in methods if method.name != RAW)]
    constant = constant_reference(task, protocol.score.name)
    references = [one for one in references if one.name != constant.name]
    folds, reduced = protocol.folds(n_splits, n_repeats)
    if n_neighbors is not None and (n_rows := protocol.fewest_rows(folds)) < n_neighbors:
        reduced["n_neighbors"] = (n_neighbors, f"a fold leaves {n_rows} rows to learn from")
        protocol = replace(protocol, votes=(Vote(n_rows),))
    # fitted to all rows meanwhile: a predictor for tables, as it will very likely be chosen
    likely = [method for method in methods if method.own_vote]
    if not refit or time_budget is not None or len(likely) != 1:
        likely = []
    # the constant is cheap and comes early, since the statuses of the methods depend on it
    contestants: list[Method | Reference] = [methods[0], constant, *methods[1:], *references]
    with progress_bar(progress) as show:
        run = Run(n_jobs, deadline, show)
        findings = run.do(
            protocol,
            _jobs(folds, contestants),
            [Job(FINAL_CHOICE, "pipeline", (protocol.labelled,), likely)],
        )
        complete = findings.complete(methods)
        if not complete:
            raise KeyboardInterrupt
        comparison = Comparison(
            folds=tuple(folds[number] for number in complete),
            n_planned=len(folds),
            reduced=reduced,
            protocol=protocol,
            encoder=encoder,
            remarks=(*table.notes, *protocol.remarks),
            doubts=tuple(filter(None, (doubt(protocol, table) for doubt in DOUBTS))),
        )
        comparison = comparison.with_found([*complete.values()], contestants)
        comparison = _ended(comparison, findings, run, refit)
    return replace(comparison, seconds=time.perf_counter() - start)


def extend(
    comparison: Comparison,
    methods: Sequence[Method] | None = None,
    *,
    refit: bool = True,
    time_budget: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool = False,
) -> Comparison:
    """Compare further methods on the folds of a comparison.

    Parameters
    ----------
    comparison : Comparison
    methods : sequence of Method, default=None
        None takes `all_methods`; methods that were already compared are not run again. With `[]`,
        only the automatic choice is fitted, as `Comparison.winner`.
    refit, time_budget, n_jobs, progress
        See `compare`.

    Returns
    -------
    Comparison
        The tests are corrected for the number of all methods, and the automatic choice is made
        among all. After a KeyboardInterrupt it contains the methods that were finished on every
        fold; if there are none, it is `comparison` with `interrupted` set.
    """
    start, protocol = time.perf_counter(), comparison.protocol
    if methods is None:
        methods = all_methods(protocol.task.name, **_kinds(protocol))
    _check_contestants(methods, "methods", Method)
    known = {one.name for one in comparison.contestants}
    added = [method for method in methods if method.name not in known]
    deadline = np.inf if time_budget is None else time.time() + time_budget
    with progress_bar(progress) as show:
        run = Run(n_jobs, deadline, show)
        findings = run.do(protocol, _jobs(comparison.folds, added))
        later = [findings.found.get(number, {}) for number in range(len(comparison.folds))]
        finished = set.intersection(*map(set, later))
        found = [
            before | {name: one for name, one in of_fold.items() if name in finished}
            for before, of_fold in zip(comparison.found, later, strict=True)
        ]
        contestants = [*comparison.contestants, *added]
        contestants.sort(key=lambda one: isinstance(one, Reference))  # references come last
        extended = _ended(comparison.with_found(found, contestants), findings, run, refit)
    return replace(extended, seconds=comparison.seconds + time.perf_counter() - start)


def _check_contestants(contestants: Iterable[Any], argument: str, kind: type) -> None:
    """Refuse what is none, such as an estimator without a name."""
    for one in contestants:
        if not isinstance(one, kind):
            raise TypeError(
                f"{argument} holds {shortened(repr(one))}, which is no {kind.__name__}: write "
                f"{kind.__name__}(name, estimator, ...) for it, from nearkin.comparison."
            )


def _jobs(folds: Sequence[TrainTest], contestants: Sequence[Method | Reference]) -> list[Job]:
    """Return jobs that evaluate contestants, one for every fold."""
    return [Job(number, "evaluate", fold, contestants) for number, fold in enumerate(folds)]


def _kinds(protocol: Protocol) -> dict[str, bool]:
    """Return which special kinds of methods suit this table."""
    return {
        "semi_supervised": len(protocol.unlabelled) > 0,
        "balanced": protocol.score.name in BY_CLASS,
    }


def _ended(comparison: Comparison, findings: Findings, run: Run, refit: bool) -> Comparison:
    """Return a comparison that records an interrupt, or the methods that ran out of time.

    If requested, the automatic choice is fitted to all rows.
    """
    if findings.interrupted:
        return replace(comparison, interrupted=True)
    known = {result.name for result in comparison.results} | comparison.skipped.keys()
    late = [name for name in comparison.methods if name not in known]
    skipped = comparison.skipped | dict.fromkeys(late, "the time budget ended before its turn")
    comparison = replace(comparison, skipped=skipped)
    if not refit:
        return comparison
    try:
        method, choice = _final_choice(comparison, run)
        already = findings.of(FINAL_CHOICE)
        if method.name in already:
            winner, rows = already[method.name]
        else:
            run.progress(f"fitting {method.name}", 0, 1)
            fold = Fold(comparison.protocol, comparison.protocol.labelled)
            # ignored, since `MethodResult.warnings` contains those of the folds
            with warnings.catch_warnings(action="ignore"):
                winner, rows = contestant(method).pipeline(fold, choice)
    except KeyboardInterrupt:
        return replace(comparison, interrupted=True)
    if comparison.encoder is not None:
        winner.steps.insert(0, ("encode", comparison.encoder))
    return replace(comparison, winner=winner, winner_method=method.name, winner_rows=rows)


def _final_choice(comparison: Comparison, run: Run) -> tuple[Method, Choice]:
    """Return the method to fit to all rows, with its settings.

    It is chosen on all rows as in the folds. A choice already made is kept if there was a single
    split, or if all folds took the same predictor for tables, which has no settings. If time ran
    out, the method that most folds chose is taken.
    """
    protocol = comparison.protocol
    methods = [one for one in comparison.contestants if isinstance(one, Method)]
    by_name = {method.name: method for method in methods}
    names = [params["method"] for params in comparison.choice.params]
    usual = Counter(names).most_common(1)[0][0]
    taken = by_name[usual], comparison.found[names.index(usual)][usual].choice
    is_settled = set(names) == {usual} and by_name[usual].own_vote
    if len(comparison.folds) == 1 or is_settled or time.time() >= run.deadline:
        return taken
    show = run.progress
    quiet = replace(run, progress=lambda what, done, total: show(FINAL_CHOICE, done, total))
    methods = [method for method in methods if method.name not in comparison.skipped]
    job = Job(FINAL_CHOICE, "choose", (protocol.labelled,), methods)
    findings = quiet.do(protocol, [job])
    if findings.interrupted:
        raise KeyboardInterrupt
    choices = findings.of(FINAL_CHOICE)
    if not choices or time.time() >= run.deadline:
        return taken
    name = automatic(choices, methods, protocol, protocol.labelled)
    return by_name[name], choices[name]
