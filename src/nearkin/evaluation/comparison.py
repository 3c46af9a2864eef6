"""`compare`: the whole run, from a table to a ranking and a fitted winner."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_consistent_length

from .._array import check_n_neighbors, encode_labels, refuse_foreign
from .._memory import available_memory
from .methods import RAW, Method, default_methods
from .protocol import Budget, Protocol, Skipped, judge
from .results import Comparison, MethodResult, best_result, ranked


def compare(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    methods: Sequence[Method] | None = None,
    n_neighbors: int = 3,
    n_splits: int = 5,
    n_repeats: int = 3,
    scale: bool = True,
    time_budget: float = 120.0,
    memory_budget: float | None = None,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare learned metrics by k-NN on held-out rows, by repeated stratified cross-validation.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Numeric features, finite.
    y : array of shape (n,)
        Class labels, each at least twice.
    groups : array of shape (n,), default=None
        Rows of one group are never on both sides of a split.
    methods : sequence of Method, default=None
        Contestants; None takes `default_methods()`. The raw features always take part.
    n_neighbors : int, default=3
        k of the vote.
    n_splits, n_repeats : int, default=5, 3
        Folds, and how often they are drawn anew. Folds are reduced to the size of the smallest class, with a note.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X: divide by the deviation only).
    time_budget : float, default=120
        Seconds a method may take in all; one that is expected to need more, by a pilot on at most 1,000 rows and
        quadratic growth, or that does, is skipped with a note.
    memory_budget : float, default=None
        Bytes a fit may need; None takes half of what is free.
    random_state : int, default=0
        Seed of the folds and of the methods that draw.
    progress : callable, default=None
        Called as `progress(method name, folds done, folds)`.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it holds what was finished; with nothing finished the interrupt is raised again.

    Raises
    ------
    ValueError
        If X or y is malformed, a class has one row, or there are fewer than three groups.

    Notes
    -----
    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    X, y, groups = _check_table(X, y, groups)
    contestants = list(methods) if methods is not None else default_methods(random_state)
    if all(method.name != RAW for method in contestants):
        contestants.insert(0, Method(RAW, None))
    notes: list[str] = []
    k = _vote_size(check_n_neighbors(n_neighbors), len(y), notes)
    protocol = Protocol(X, y, groups, k, scale, random_state)
    folds = protocol.folds(n_splits, n_repeats, notes)
    test_share = float(np.mean([len(test) / len(train) for train, test in folds]))
    budget = Budget(time_budget, memory_budget or (available_memory() or np.inf) / 2)
    finished: list[MethodResult] = []
    winner = None
    interrupted = False
    try:
        for method in contestants:
            try:
                finished.append(judge(method, protocol, folds, budget, notes, progress or (lambda *_: None)))
            except Skipped as reason:
                notes.append(f"{method.name} skipped: {reason}")
        winner = _fit_winner(best_result(ranked(finished, test_share)).name, contestants, protocol)
    except KeyboardInterrupt:
        if not finished:
            raise
        interrupted = True
        notes.append(f"Interrupted: {len(finished)} of {len(contestants)} methods were finished, no winner was fitted.")
    results = ranked(finished, test_share)
    return Comparison(results, winner, tuple(notes), interrupted, k, len(folds), scale, random_state)


def _vote_size(k: int, n_rows: int, notes: list[str]) -> int:
    """Return k, or as many as half of half of the rows can offer: two folds inside of two folds."""
    possible = max(1, n_rows // 4)
    if k > possible:
        notes.append(f"{k}-NN reduced to {possible}-NN: {n_rows} rows leave no more to learn from.")
    return min(k, possible)


def _fit_winner(name: str, contestants: Sequence[Method], protocol: Protocol) -> Pipeline:
    """Return the winner with its settings chosen by validation on all rows, fitted on all rows."""
    method = next(method for method in contestants if method.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever it warns of, it warned of in the folds
        params = protocol.choose(method, np.arange(len(protocol.y)))
        return protocol.pipeline(method, params).fit(protocol.X, protocol.y)


def _check_table(X: Any, y: Any, groups: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    refuse_foreign(X)
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    y = np.asarray(y)
    check_consistent_length(X, y, groups)
    classes, codes = encode_labels(y)
    sizes = np.bincount(codes)
    if sizes.min() < 2:
        raise ValueError(
            f"class {classes[sizes.argmin()]!s} has a single row, which cannot be both learned from and held out: "
            "merge it with another class or drop it."
        )
    if groups is not None:
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
        if groups.max() < 2:
            raise ValueError(f"groups holds {groups.max() + 1} groups: at least 3 are needed to hold some out.")
    return X, y, groups
