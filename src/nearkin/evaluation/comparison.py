"""`compare`: the whole run, from a table to a ranking and a fitted winner."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._array import as_rows, check_integer, check_n_neighbors, check_spread, is_missing
from .._memory import available_memory
from .methods import RAW, Method, raw_features
from .protocol import Budget, Protocol, Skipped, judge
from .results import Comparison, Fold, MethodResult, best_result, ranked
from .task import Task, named_task


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
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare learned metrics by k-NN on held-out rows, by repeated cross-validation.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Numeric features, finite.
    y : array of shape (n,)
        Class labels, each at least twice; or numbers, with `task="regression"`.
    task : {"classification", "regression"}, default="classification"
        What the neighbours are asked for. Classes: the vote of the k nearest rows, judged by accuracy on stratified
        folds. Numbers: their mean, judged by R² on folds of equally many rows (or groups).
    groups : array of shape (n,), default=None
        Rows of one group are never on both sides of a split.
    methods : sequence of Method, default=None
        Contestants; None takes `default_methods()`, or `regression_methods()`. The raw features
        always take part.
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
        held-out rows are all the same.

    Notes
    -----
    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    asked = named_task(task)
    X, y, groups = _check_table(X, y, groups, asked)
    k = check_n_neighbors(n_neighbors)
    check_integer(n_splits, "n_splits", 2)
    check_integer(n_repeats, "n_repeats", 1)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    contestants = list(methods) if methods is not None else asked.methods()
    contestants = [raw_features(), *(method for method in contestants if method.name != RAW)]
    notes: list[str] = []
    protocol = Protocol(X, y, groups, k, scale, random_state, asked)
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
    results = ranked(finished, folds)
    return Comparison(results, winner, tuple(notes), protocol.n_neighbors, tuple(folds), scale, random_state)


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
        finished.append(judge(method, protocol, folds, budget, notes, progress))
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
        params = protocol.choose(method, np.arange(len(protocol.y)))
        return protocol.pipeline(method, params).fit(protocol.X, protocol.y)


def _check_table(X: Any, y: Any, groups: Any, task: Task) -> tuple[Any, np.ndarray, np.ndarray | None]:
    X = as_rows(X)
    check_spread(X)
    check_consistent_length(X, y, groups)
    y = task.check_target(y)
    if groups is not None:
        groups = column_or_1d(groups)
        if is_missing(groups).any():
            raise ValueError("groups has missing values: give every row a group, if need be one of its own.")
        groups = np.unique(groups, return_inverse=True)[1]
        if groups.max() < 2:
            raise ValueError(f"groups holds {groups.max() + 1} groups: at least 3 are needed to hold some out.")
    return X, y, groups
