"""`compare`: from a table to a ranking and a fitted winner."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._labels import is_missing
from .._memory import available_memory
from .._validation import as_rows, check_integer, check_spread
from .methods import RAW, Method, default_methods
from .protocol import Budget, Progress, Protocol, Skipped, evaluate
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
    progress: Progress = lambda *_: None,
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
        What is predicted. Classes: by the vote of the k nearest rows, scored by accuracy on stratified folds. Numbers:
        by their mean, scored by R² on folds of equally many rows (or groups).
    groups : array of shape (n,), default=None
        Rows of one group are never on both sides of a split.
    methods : sequence of Method, default=None
        None takes `default_methods(task)`, semi-supervised ones among them where some rows have no label. The raw
        features are always compared.
    n_neighbors : int, default=3
        k of the vote.
    n_splits, n_repeats : int, default=5, 3
        Folds, and how often they are drawn anew. Folds are reduced to the size of the smallest class (of numbers, to
        half the rows): see `Comparison.reduced`.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X: divide by the deviation only).
    time_budget : float, default=120
        Seconds a method may take in all, None for any; one that is expected to need more, by a pilot on about 1,000
        rows and its growth with the rows, or by the folds done so far, is skipped: see `Comparison.skipped`. The raw
        features never are.
    memory_budget : float, default=None
        Bytes a fit may need; None takes half of what is free.
    random_state : int, default=0
        Seed of the folds.
    unlabelled : label, default=None
        A value of y that means "no label", as None and NaN do: -1, for labels as the semi-supervised estimators take
        them.
    progress : callable
        Called as `progress(method name, folds done, folds)`.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it holds what was finished; with nothing finished the interrupt is raised again.

    Notes
    -----
    Where some rows have no label, the folds are cut over the others: only these are held out, and only these vote.
    Methods that can (`Method.unlabelled`: PCA, LPP, DP, SDA, TDL) learn from the training rows and all rows without a
    label, their scaler too; with groups, not from those of a group that is held out. The others are ranked as if the
    rows without a label were not there.

    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    target = named_task(task)
    X, y, groups, unlabelled_rows = _check_table(X, y, groups, target, unlabelled)
    k = check_integer(n_neighbors, "n_neighbors", 1)
    check_integer(n_splits, "n_splits", 2)
    check_integer(n_repeats, "n_repeats", 1)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    if methods is None:
        methods = default_methods(task, semi_supervised=len(unlabelled_rows) > 0)
    methods = [Method(RAW, None), *(method for method in methods if method.name != RAW)]

    protocol = Protocol(X, y, groups, k, scale, random_state, target, unlabelled_rows)
    protocol, folds, reduced = _plan(protocol, n_splits, n_repeats)
    if memory_budget is None:
        memory_budget = (available_memory() or np.inf) / 2
    budget = Budget(np.inf if time_budget is None else time_budget, memory_budget)

    finished: list[MethodResult] = []
    skipped: dict[str, str] = {}
    winner = None
    try:
        for method in methods:
            try:
                finished.append(evaluate(method, protocol, folds, budget, progress))
            except Skipped as given_up:
                skipped[method.name] = str(given_up)
        best = best_result(ranked(finished, folds)).method
        with warnings.catch_warnings(action="ignore"):  # `MethodResult.warnings` holds those of the folds
            winner = protocol.fit(best, protocol.choose(best, protocol.labelled), protocol.labelled)
    except KeyboardInterrupt:
        if not finished:
            raise
    return Comparison(
        results=ranked(finished, folds),
        winner=winner,
        methods=tuple(method.name for method in methods),
        skipped=skipped,
        reduced=reduced,
        n_neighbors=protocol.n_neighbors,
        folds=tuple(folds),
        scale=scale,
        random_state=random_state,
        n_unlabelled=len(unlabelled_rows),
        classes=np.unique(protocol.target(protocol.labelled)) if target == CLASSIFICATION else np.array([]),
    )


def _plan(protocol: Protocol, n_splits: int, n_repeats: int) -> tuple[Protocol, list[Fold], dict[str, tuple[int, str]]]:
    """Return the protocol, its folds, and what was requested where the rows allow fewer folds or neighbours."""
    reduced: dict[str, tuple[int, str]] = {}
    most_folds, reason = protocol.most_folds(protocol.labelled)
    if most_folds < n_splits:
        reduced["n_splits"] = (n_splits, reason + ", counting those with a label" * (len(protocol.unlabelled) > 0))
    folds = protocol.folds(min(n_splits, most_folds), n_repeats)
    parts = [part for train, _ in folds for part in (train, *(inner for inner, _ in protocol.inner_folds(train)))]
    fewest = min(map(len, parts))
    if fewest < protocol.n_neighbors:
        reduced["n_neighbors"] = (protocol.n_neighbors, f"a fold leaves {fewest} rows to learn from")
        protocol = replace(protocol, n_neighbors=fewest)
    return protocol, folds, reduced


def _check_table(
    X: Any, y: Any, groups: Any, task: Task, unlabelled: Any
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
    """Return rows, target and groups as they are needed, and the numbers of the rows without a label."""
    X = as_rows(X)
    check_spread(X)
    check_consistent_length(X, y, groups)
    y = column_or_1d(y)
    if unlabelled is not None:
        marked = np.array([same is True for same in (label == unlabelled for label in y.tolist())])  # not pandas' NA
        if not marked.any():
            raise ValueError(
                f"unlabelled is {unlabelled!r}, which y does not hold: leave it out, or give the value that it holds."
            )
        y = np.where(marked, None, y.astype(object))
    y = task.check_target(y)
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
