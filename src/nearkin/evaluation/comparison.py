"""`compare`: the whole run, from a table to a ranking and a fitted winner."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._labels import is_missing
from .._memory import available_memory
from .._validation import as_rows, check_integer, check_n_neighbors, check_spread
from .methods import RAW, Method, raw_features
from .protocol import Budget, Protocol, Skipped, evaluate
from .results import Comparison, Fold, MethodResult, best_result, ranked
from .task import CLASSIFICATION, Task, named_task


def compare(
    X: Any,
    y: Any,
    *,
    task: str = "classification",
    groups: Any = None,
    methods: Sequence[Method] | None = None,
    n_neighbors: int = 3,
    n_splits: int = 5,
    n_repeats: int = 3,
    scale: bool = True,
    time_budget: float | None = 120.0,
    memory_budget: float | None = None,
    random_state: int = 0,
    unlabelled: Any = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare learned metrics by k-NN on held-out rows, by repeated cross-validation.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Numeric features, finite.
    y : array of shape (n,)
        Class labels, each at least twice; or numbers, with `task="regression"`. Rows may have none: None or NaN. -1 is
        a class like any other, see `unlabelled`.
    task : {"classification", "regression"}, default="classification"
        What the neighbours are asked for. Classes: the vote of the k nearest rows, judged by accuracy on stratified
        folds. Numbers: their mean, judged by R² on folds of equally many rows (or groups).
    groups : array of shape (n,), default=None
        Rows of one group are never on both sides of a split.
    methods : sequence of Method, default=None
        Contestants; None takes `default_methods()`, or `regression_methods()`; where some rows have no label also
        `semi_supervised_methods()`. The raw features always take part.
    n_neighbors : int, default=3
        k of the vote.
    n_splits, n_repeats : int, default=5, 3
        Folds, and how often they are drawn anew. Folds are reduced to the size of the smallest class (of numbers, to
        half the rows), with a note.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X: divide by the deviation only).
    time_budget : float, default=120
        Seconds a method may take in all, None for any; one that is expected to need more, by a pilot on about 1,000
        rows and its growth with the rows, or by the folds done so far, is skipped with a note. The raw features are
        always judged.
    memory_budget : float, default=None
        Bytes a fit may need; None takes half of what is free.
    random_state : int, default=0
        Seed of the folds.
    unlabelled : label, default=None
        A value of y that means "no label", as None and NaN do: -1, for labels as the semi-supervised estimators take
        them.
    progress : callable, default=None
        Called as `progress(method name, folds done, folds)`.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it holds what was finished; with nothing finished the interrupt is raised again.

    Raises
    ------
    ValueError
        If X or y is malformed, a class has one row, there are fewer than three groups, or the numbers of a fold's
        held-out rows are all the same. Only rows with a label count.

    Notes
    -----
    Where some rows have no label, the folds are cut over the others: only these are held out, and only these vote.
    Methods that can (`Method.unlabelled`: PCA, LPP, DP, TDL) learn from the training rows and from all rows without a
    label, their scaler too; with groups, not from those of a group that is held out. The others are ranked as
    if the rows without a label were not there.

    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    asked = named_task(task)
    X, y, groups, nameless = _check_table(X, y, groups, asked, unlabelled)
    k = check_n_neighbors(n_neighbors)
    check_integer(n_splits, "n_splits", 2)
    check_integer(n_repeats, "n_repeats", 1)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    contestants = list(methods) if methods is not None else asked.methods(partly=len(nameless) > 0)
    contestants = [raw_features(), *(method for method in contestants if method.name != RAW)]
    notes: list[str] = []
    protocol = Protocol(X, y, groups, k, scale, random_state, asked, nameless)
    folds = protocol.folds(n_splits, n_repeats, notes)
    protocol = replace(protocol, n_neighbors=_vote_size(protocol, folds, notes))
    if memory_budget is None:
        memory_budget = (available_memory() or np.inf) / 2
    budget = Budget(np.inf if time_budget is None else time_budget, memory_budget)
    finished: list[MethodResult] = []
    winner = None
    try:
        for method in contestants:
            _contest(method, protocol, folds, budget, finished, notes, progress or (lambda *_: None))
        winner = _fit_winner(best_result(ranked(finished, folds)).name, contestants, protocol)
    except KeyboardInterrupt:
        if not finished:
            raise
        notes.append(f"Interrupted: {len(finished)} of {len(contestants)} methods were finished, no winner was fitted.")
    results, notes = ranked(finished, folds), [*_about_labels(finished, protocol), *notes]
    return Comparison(
        results, winner, tuple(notes), protocol.n_neighbors, tuple(folds), scale, random_state, len(nameless)
    )


def _contest(
    method: Method,
    protocol: Protocol,
    folds: list[Fold],
    budget: Budget,
    finished: list[MethodResult],
    notes: list[str],
    progress: Callable[[str, int, int], None],
) -> None:
    """Add what a method does to `finished`, or the reason why it was given up to `notes`."""
    try:
        finished.append(evaluate(method, protocol, folds, budget, notes, progress))
    except Skipped as reason:
        notes.append(f"{method.name} skipped: {reason}")


def _vote_size(protocol: Protocol, folds: list[Fold], notes: list[str]) -> int:
    """Return k, or as many as the smallest training part of any fold can offer."""
    k = protocol.n_neighbors
    trains = [train for train, _ in folds]
    possible = min(
        len(part) for train in trains for part in [train, *(inner for inner, _ in protocol.inner_folds(train))]
    )
    if k > possible:
        notes.append(f"{k}-NN reduced to {possible}-NN: a fold leaves {possible} rows to learn from.")
    return min(k, possible)


def _fit_winner(name: str, contestants: Sequence[Method], protocol: Protocol) -> Pipeline:
    """Return the winner with its settings chosen by validation on all rows, fitted on all rows."""
    method = next(method for method in contestants if method.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever it warns of, it warned of in the folds
        pipeline = protocol.pipeline(method, protocol.choose(method, protocol.labelled))
        if len(protocol.unlabelled) == 0:
            return pipeline.fit(protocol.X, protocol.y)
        return protocol.fit(pipeline, method, protocol.labelled)


def _about_labels(finished: Sequence[MethodResult], protocol: Protocol) -> Iterator[str]:
    """Yield who learned from rows without a label, if there are any, and a doubt about a class called -1."""
    n, n_without = len(protocol.y), len(protocol.unlabelled)
    y = protocol.target(protocol.labelled)
    if n_without:
        used = ", ".join(result.name for result in finished if any(map(len, result.unlabelled))) or "no method"
        yield (
            f"{n - n_without} of {n} rows have a label: only these are held out and vote. From the {n_without} without "
            f"one learned: {used}."
        )
    if protocol.task is CLASSIFICATION and y.dtype.kind == "i" and y.min() == -1 and len(np.unique(y)) > 2:
        yield "-1 was taken for a class: if it marks rows without a label, say unlabelled=-1 (--unlabelled -1)."


def _check_table(
    X: Any, y: Any, groups: Any, task: Task, unlabelled: Any
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
    """Return rows, target and groups as they are needed, and the numbers of the rows without a label."""
    X = as_rows(X)
    check_spread(X)
    check_consistent_length(X, y, groups)
    y = task.check_target(_without_mark(column_or_1d(y), unlabelled))
    is_unlabelled = is_missing(y)
    if groups is not None:
        groups = column_or_1d(groups)
        if is_missing(groups).any():
            raise ValueError("groups has missing values: give every row a group, if need be one of its own.")
        groups = np.unique(groups, return_inverse=True)[1]
        n_groups = len(np.unique(groups[~is_unlabelled]))
        if n_groups < 3:
            counted = " of labelled rows" if is_unlabelled.any() else ""
            raise ValueError(f"groups holds {n_groups} groups{counted}: at least 3 are needed to hold some out.")
    return X, y, groups, np.flatnonzero(is_unlabelled)


def _without_mark(y: np.ndarray, mark: Any) -> np.ndarray:
    """Return y with None where it equals the mark; as it is if there is no mark."""
    if mark is None:
        return y
    marked = np.array([same is True for same in (label == mark for label in y.tolist())])  # pandas' NA equals nothing
    if not marked.any():
        raise ValueError(
            f"unlabelled is {mark!r}, which y does not hold: leave it out, or give the value that it holds."
        )
    y = y.astype(object)
    y[marked] = None
    return y
