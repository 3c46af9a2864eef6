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

from .._validation import check_integer
from ..preprocessing import TableEncoder, features_of
from .fold import Choice, Outcome, Part
from .frames import from_frame
from .methods import RAW, Method, Reference, default_methods, default_references
from .progress import Progress, shown
from .protocol import Fold, Protocol
from .results import Comparison, collect, ranked
from .runs import Findings, Found, automatic, jobs_of, run_jobs, with_choice
from .tables import make_protocol
from .task import named_task
from .vote import VOTES, Vote


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
    encoder: TableEncoder | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool = False,
) -> Comparison:
    """Compare learned metrics by the vote of the nearest rows on held-out rows.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, p)
        Numbers, NaN where a cell of a dense array is missing. A data frame (pandas, polars or pyarrow) may hold text
        and dates: it is encoded by a `TableEncoder`, as it is whenever y is a name.
    y : array of shape (n,), or str
        The target, or the name of its column in X: class labels, each at least twice; or numbers, with
        `task="regression"`. Rows may have none: None or NaN. -1 is a class like any other, see `unlabelled`. Labels of
        a named column are stripped, "1.0" is "1".
    task : {"classification", "regression"}, default="classification"
        What is predicted: classes by the vote of the nearest rows, on stratified folds; numbers by their mean.
    groups : array of shape (n,) or str, default=None
        Groups, or the name of their column in X. Rows of one group are never on both sides of a split.
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
    encoder : TableEncoder, default=None
        What X was encoded by, with `missing="keep"`, where it is an array: it tells which features are of one column,
        and the winner begins with it. A data frame is encoded here.
    n_jobs : int, default=None
        Processes, each of which works on a fold with one thread; None takes one a core, as -1 does. Small tables take
        one process.
    progress : bool or callable, default=False
        True shows a bar (needs rich). A callable is called as `progress(what, done, total)`, in fits of a method on a
        fold.

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

    Missing cells are filled with the median of the training rows after scaling, and indicators are appended, 1 where
    the cell was missing and else 0: for columns that at least 5 of these rows lack and 5 have, of columns with the same
    gaps for one, and at most one for every 10 rows (`nearkin.preprocessing.indicated_features`).

    "NCA tables" (`NCAClassifier`, `NCARegressor`) is no map for the vote of the k nearest, but a predictor with a vote
    of its own, here of three members. It takes the table unscaled and with its gaps, and chooses penalty, temperature
    and distance in `fit`; the inner folds score it for the automatic choice.

    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    start = time.perf_counter()
    counts = {"n_splits": (n_splits, 2), "n_repeats": (n_repeats, 1), "n_neighbors": (n_neighbors, 1)}
    for name, (value, fewest) in (counts | {"choice_rows": (choice_rows, 10)}).items():
        if value is not None:
            check_integer(value, name, fewest)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    rules: dict[str, Any] = {
        "scale": scale,
        "keep_twins": keep_twins,
        "choice_rows": choice_rows,
        "random_state": random_state,
    }
    X, y, groups, own_encoder, remarks = from_frame(X, y, groups, named_task(task))
    encoder = own_encoder or encoder
    rules["features"] = None if encoder is None else features_of(encoder)
    votes = VOTES if n_neighbors is None else (Vote(n_neighbors),)
    in_folds = n_splits is not None or n_repeats is not None
    protocol, n_twins = make_protocol(X, y, groups, named_task(task), unlabelled, score, in_folds, votes=votes, **rules)
    methods, references = _contestants(protocol, methods, references)

    folds, reduced = protocol.folds(n_splits, n_repeats)
    if n_neighbors is not None and (fewest := protocol.fewest_rows(folds)) < n_neighbors:
        reduced["n_neighbors"] = (n_neighbors, f"a fold leaves {fewest} rows to learn from")
        n_neighbors, protocol = fewest, replace(protocol, votes=(Vote(fewest),))
    deadline = np.inf if time_budget is None else time.time() + time_budget
    again = protocol.labelled if refit and len(folds) > 1 else None  # the choice of a single split is as good
    make_jobs = partial(jobs_of, folds, methods, references, again, deadline)
    n_processes = cpu_count() if n_jobs is None else effective_n_jobs(n_jobs)
    with shown(progress) as show:
        findings = run_jobs(protocol, make_jobs, n_processes, show)
    facts: dict[str, Any] = {"encoder": encoder, "remarks": remarks}
    facts |= {"reduced": reduced, "n_neighbors": n_neighbors, "n_twins": n_twins, "kept_twins": keep_twins}
    comparison = _conclude(findings, protocol, folds, methods, references, facts)
    if refit and not findings.interrupted:
        comparison = _with_winner(comparison, methods, findings.choices if time.time() < deadline else {})
    return replace(comparison, seconds=time.perf_counter() - start)


def _contestants(
    protocol: Protocol, methods: Sequence[Method] | None, references: Sequence[Reference] | None
) -> tuple[list[Method], list[Reference]]:
    """Return the methods, the raw features first, and the references; by default those that suit the table."""
    task = protocol.task.name
    if methods is None:
        methods = default_methods(task, semi_supervised=len(protocol.unlabelled) > 0)
    if references is None:
        references = default_references(task, protocol.X.shape[1], max(1, len(protocol.classes)))
    return [Method(RAW, None), *(method for method in methods if method.name != RAW)], list(references)


def _conclude(
    findings: Findings,
    protocol: Protocol,
    folds: Sequence[Fold],
    methods: Sequence[Method],
    references: Sequence[Reference],
    facts: dict[str, Any],
) -> Comparison:
    """Return the ranking of what was found, without a winner."""
    everyone: list[Any] = [*methods, *references]
    by_name = {one.name: one for one in everyone}
    complete = {number: with_choice(found, everyone) for number, found in findings.complete(methods).items()}
    if not complete:
        raise KeyboardInterrupt
    finished, skipped = _finished(list(complete.values()), {reference.name for reference in references})
    if not findings.interrupted:
        late = "the time budget ended before its turn"
        skipped |= {method.name: late for method in methods if method.name not in finished | skipped}
    kept = tuple(folds[number] for number in complete)
    collected = [collect(name, by_name.get(name), of, protocol) for name, of in finished.items()]
    results, least = ranked(collected, kept, protocol.units)
    return Comparison(
        results=tuple(result for result in results if result.kind != "reference"),
        references=tuple(result for result in results if result.kind == "reference"),
        methods=tuple(method.name for method in methods),
        skipped=skipped,
        folds=kept,
        n_planned=len(folds),
        protocol=protocol,
        interrupted=findings.interrupted,
        least_difference=least,
        **facts,
    )


def _with_winner(comparison: Comparison, methods: Sequence[Method], choices: dict[str, Choice]) -> Comparison:
    """Return the comparison with the automatic choice fitted to all rows.

    `choices` are those made on all rows; without any, of a single split or out of time, that of the first fold counts.
    """
    usable = {one.name: choices[one.name] for one in methods if one.name in choices.keys() - comparison.skipped.keys()}
    params = dict(comparison.choice.params[0])
    source = params.pop("method"), Choice(params, comparison.choice.votes[0], np.nan)
    name, choice = automatic(usable) if usable else source
    method = next(one for one in methods if one.name == name)
    part = Part(comparison.protocol, comparison.protocol.labelled)
    with warnings.catch_warnings(action="ignore"):  # `MethodResult.warnings` holds those of the folds
        winner = part.pipeline(method, choice)
    if comparison.encoder is not None:
        winner.steps.insert(0, ("encode", comparison.encoder))
    return replace(comparison, winner=winner, winner_method=name)


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
