"""`compare`: from a table to a ranking and a fitted winner."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._labels import encode_labels, is_missing, known_labels
from .._validation import as_rows, check_integer, check_spread
from .features import filled
from .fold import Outcome, Part
from .methods import RAW, Method, Reference, default_methods, default_references
from .protocol import NO_ROWS, SPLIT_ROWS, Protocol
from .results import Comparison, collect, ranked
from .runs import CHOICE, Found, Progress, automatic, jobs_of, run_jobs, with_choice
from .scores import SCORES
from .task import CLASSIFICATION, Task, named_task
from .twins import n_with_twin, twin_groups
from .vote import VOTES, Vote

TWIN_QUERIES = 20_000  # rows up to which the near-twins of all are looked for; of more, of those with a label
RARE = 0.75  # share of the largest class above which balanced accuracy ranks by default


def compare(
    X: Any,
    y: Any,
    *,
    task: str = "classification",
    groups: Any = None,
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
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Compare learned metrics by the vote of the nearest rows on held-out rows.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Numeric features; NaN where a cell of a dense array is missing.
    y : array of shape (n,)
        Class labels, each at least twice; or numbers, with `task="regression"`. Rows may have none: None or NaN. -1 is
        a class like any other, see `unlabelled`.
    task : {"classification", "regression"}, default="classification"
        What is predicted: classes by the vote of the nearest rows, on stratified folds; numbers by their mean.
    groups : array of shape (n,), default=None
        Rows of one group are never on both sides of a split.
    methods : sequence of Method, default=None
        None takes `default_methods(task)`, semi-supervised ones among them where some rows have no label. The raw
        features are always compared.
    references : sequence of Reference, default=None
        Predictors of another kind, ranked apart; None takes `default_references(task)`.
    score : str, default=None
        What ranks and chooses: "accuracy", "balanced_accuracy", "f1", "auc" or "log_loss"; of numbers "r2", "mae" or
        "rank_correlation". None takes accuracy, balanced accuracy where the largest class has more than 75 % of the
        rows; of numbers r2.
    n_neighbors : int, default=None
        k of a hard vote. None leaves it, and whether the vote is soft, to the inner folds: see `VOTES`.
    n_splits, n_repeats : int, default=None
        Folds, and how often they are drawn anew. None takes 5 folds, repeated until about 1,500 rows have been held out
        (at most 3 times); of more than 1,500 rows as many of the 5 as hold out 1,500, at least 2; of more than 20,000 a
        single split, which holds out 5,000. Folds are reduced to the size of the smallest class (of numbers, to half
        the rows): see `Comparison.reduced`.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X: divide by the deviation only).
    keep_twins : bool, default=False
        Whether identical rows and near-twins (`twin_groups`) are split like others; else they stay on one side.
    choice_rows : int, default=None
        Training rows on which dimension, parameters and vote are chosen, at most. None takes 2,000; of more than 131
        features those with 2^18 entries, but 700.
    refit : bool, default=True
        Whether the automatic choice is made again on all rows and fitted to them: `Comparison.winner`.
    time_budget : float, default=None
        Seconds in all, after which what is finished is ranked: at least one fold, of a single split the raw features
        and one method. None for any; then the answer depends on the rows and the seed alone.
    random_state : int, default=0
        Seed of all that is drawn.
    unlabelled : label, default=None
        A value of y that means "no label", as None and NaN do: -1, for labels as the semi-supervised estimators take
        them.
    n_jobs : int, default=None
        Processes, each of which works on a fold with one thread; None takes one a core, as -1 does. Small tables take
        one process.
    progress : callable
        Called as `progress(what, done, total)`, in fits of a method on a fold.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it holds what was finished; with nothing finished the interrupt is raised again.

    Notes
    -----
    In every fold, dimension, parameters and vote of a method are chosen on three inner folds of the training rows, of
    many on a sample of 2,000. The automatic choice also chooses the method so; it is a contestant like the others. A
    map is learned from all training rows, or, where these are many, from a sample (`Method.most_rows`); all vote.

    Differences from the raw features are tested by `paired_test`, with Holm's correction for the number of methods.

    Where some rows have no label, the folds are cut over the others: only these are held out, and only these vote.
    Methods that can (`Method.unlabelled`: PCA, LPP, DP, SDA, TDL) learn from the training rows and all rows without a
    label, their scaler too; with groups, not from those of a group that is held out. The others are ranked as if the
    rows without a label were not there.

    Missing cells are filled with the median of the training rows after scaling; an indicator, 1 where the cell was
    missing and else 0, is appended for every column with gaps in these rows.

    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    start = time.perf_counter()
    counts = {"n_splits": (n_splits, 2), "n_repeats": (n_repeats, 1), "n_neighbors": (n_neighbors, 1)}
    for name, (value, fewest) in (counts | {"choice_rows": (choice_rows, 10)}).items():
        if value is not None:
            check_integer(value, name, fewest)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    rules = {"scale": scale, "keep_twins": keep_twins, "choice_rows": choice_rows, "random_state": random_state}
    votes = VOTES if n_neighbors is None else (Vote(n_neighbors),)
    in_folds = n_splits is not None or n_repeats is not None
    protocol, n_twins = _protocol(X, y, groups, named_task(task), unlabelled, score, in_folds, votes=votes, **rules)
    p, n_classes, semi_supervised = protocol.X.shape[1], len(protocol.classes), len(protocol.unlabelled) > 0
    methods = default_methods(task, semi_supervised=semi_supervised) if methods is None else methods
    methods = [Method(RAW, None), *(method for method in methods if method.name != RAW)]
    references = default_references(task, p, max(1, n_classes)) if references is None else references
    everyone: list[Any] = [*methods, *references]

    folds, reduced = protocol.folds(n_splits, n_repeats)
    if n_neighbors is not None and (fewest := protocol.fewest_rows(folds)) < n_neighbors:
        reduced["n_neighbors"] = (n_neighbors, f"a fold leaves {fewest} rows to learn from")
        n_neighbors, protocol = fewest, replace(protocol, votes=(Vote(fewest),))
    deadline = np.inf if time_budget is None else time.time() + time_budget
    again = protocol.labelled if refit and len(folds) > 1 else None  # the choice of a single split is as good
    make_jobs = partial(jobs_of, folds, methods, references, again, deadline)
    findings = run_jobs(protocol, make_jobs, cpu_count() if n_jobs is None else effective_n_jobs(n_jobs), progress)
    complete = {number: with_choice(found, everyone) for number, found in findings.complete(methods).items()}
    if not complete:
        raise KeyboardInterrupt
    finished, skipped = _finished(list(complete.values()), {reference.name for reference in references})
    if not findings.interrupted:
        late = "the time budget ended before its turn"
        skipped |= {method.name: late for method in methods if method.name not in finished | skipped}

    kept, by_name = tuple(folds[number] for number in complete), {one.name: one for one in everyone}
    collected = [collect(name, by_name.get(name), of, protocol) for name, of in finished.items()]
    results, least = ranked(collected, kept, protocol.units)
    winner_method, winner, source = RAW, None, finished[CHOICE][0].source
    if refit and not findings.interrupted and source:
        usable = [method.name for method in methods if method.name not in skipped and method.name in findings.choices]
        choices = {name: findings.choices[name] for name in usable}
        in_time = time.time() < deadline  # else some methods had no turn to choose on all rows
        winner_method, choice = automatic(choices) if choices and in_time else source
        with warnings.catch_warnings(action="ignore"):  # `MethodResult.warnings` holds those of the folds
            winner = Part(protocol, protocol.labelled).pipeline(by_name[winner_method], choice)
    return Comparison(
        results=tuple(result for result in results if result.kind != "reference"),
        references=tuple(result for result in results if result.kind == "reference"),
        winner=winner,
        winner_method=winner_method,
        methods=tuple(method.name for method in methods),
        skipped=skipped,
        reduced=reduced,
        folds=kept,
        n_planned=len(folds),
        protocol=protocol,
        n_neighbors=n_neighbors,
        n_twins=n_twins,
        kept_twins=keep_twins,
        seconds=time.perf_counter() - start,
        interrupted=findings.interrupted,
        least_difference=least,
    )


def _protocol(
    X: Any, y: Any, groups: Any, task: Task, unlabelled: Any, score: str | None, in_folds: bool, **rules: Any
) -> tuple[Protocol, int]:
    """Return the protocol of a table, and how many rows have a twin."""
    X, y, classes, groups = _check_table(X, y, groups, task, unlabelled)
    complete = filled(X)
    check_spread(complete)
    missing = y < 0 if task == CLASSIFICATION else np.isnan(y)
    labelled = np.flatnonzero(~missing)
    queries = None if len(y) <= TWIN_QUERIES else labelled
    if len(labelled) > SPLIT_ROWS and groups is None and not in_folds:
        queries = NO_ROWS  # `Protocol.one_split` looks for those of the held-out rows
    twins = twin_groups(complete, scale=rules["scale"], queries=queries)
    units = np.arange(len(y)) if rules["keep_twins"] else twins
    protocol = Protocol(
        X=X,
        y=y,
        classes=classes,
        units=units if groups is None else _joined(units, groups),
        task=task,
        score=SCORES[task.name][_score_name(score, task, y[~missing])],
        grouped=groups is not None,
        unlabelled=np.flatnonzero(missing),
        **rules,
    )
    return protocol, n_with_twin(twins)


def _finished(found: Sequence[Found], optional: set[str]) -> tuple[dict[str, list[Outcome]], dict[str, str]]:
    """Return the outcomes of those that finished every fold, or are optional there, and why others were skipped."""
    finished, skipped = dict[str, list[Outcome]](), dict[str, str]()
    for name in found[0]:
        n = next((number for number, one in enumerate(found) if name not in one), len(found))
        outcomes = [one[name] for one in found[:n]]  # those after a gap would be paired with another fold
        reasons = [reason for reason in outcomes if isinstance(reason, str)]
        if reasons:
            skipped[name] = reasons[0]
        elif len(outcomes) == len(found) or name in optional:
            finished[name] = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    return finished, skipped


def _score_name(score: str | None, task: Task, y: np.ndarray) -> str:
    """Return the name of the score, by default balanced accuracy where one class is most of the rows."""
    known = SCORES[task.name]
    if score is None:
        rare = task == CLASSIFICATION and task.sizes(y).max() > RARE * len(y)
        return "balanced_accuracy" if rare else next(iter(known))
    if score not in known:
        raise ValueError(f"score must be one of {', '.join(map(repr, known))}, got {score!r}.")
    return score


def _joined(units: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return numbers of the groups that rows form which share a unit or a group."""
    groups = groups + units.max() + 1  # numbers of their own
    n = groups.max() + 1
    pairs = coo_array((np.ones(len(units), bool), (units, groups)), shape=(n, n))
    return connected_components(pairs, directed=False)[1][units]


def _check_table(
    X: Any, y: Any, groups: Any, task: Task, unlabelled: Any
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return rows, positions of their classes (or numbers), the classes and groups."""
    X = as_rows(X, missing=True)
    check_consistent_length(X, y, groups)
    y = column_or_1d(y)
    if unlabelled is not None:
        marked = np.array([same is True for same in (label == unlabelled for label in y.tolist())])  # not pandas' NA
        if not marked.any():
            raise ValueError(
                f"unlabelled is {unlabelled!r}, which y does not hold: leave it out, or give the value that it holds."
            )
        y = np.where(marked, None, y.astype(object))
    y, classes = task.check_target(y), np.array([])
    known = np.flatnonzero(~is_missing(y))
    if task == CLASSIFICATION:
        labels, y = known_labels(y, known), np.full(len(y), -1)
        classes, y[known] = encode_labels(labels)
    if groups is not None:
        groups = column_or_1d(groups)
        if is_missing(groups).any():
            raise ValueError("groups has missing values: give every row a group, if need be one of its own.")
        groups = np.unique(groups, return_inverse=True)[1]
        n_groups = len(np.unique(groups[known]))
        if n_groups < 3:
            counted = " of labelled rows" if len(known) < len(y) else ""
            raise ValueError(f"groups holds {n_groups} groups{counted}: at least 3 are needed to hold some out.")
    return X, y, classes, groups
