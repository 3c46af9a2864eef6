"""The rules that every method is judged by: who is held out, what is chosen where, what a method may cost."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from .._memory import human_bytes
from .methods import DIMENSIONS, RAW, Method, Params
from .results import Fold, MethodResult
from .task import CLASSIFICATION, Task

# What a method may raise on a table that does not suit it; it is skipped then, and the reason is told.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
INNER_SPLITS = 3
# Up to so many features the matrices are so small that BLAS threads cost more than they give: on two cores, twice the
# time for a comparison on breast_cancer. The neighbour search keeps its threads unless the rows are few, too: on a busy
# machine threads that wait for one another make it many times slower.
FEW_FEATURES = 500
FEW_ROWS = 2000


class Skipped(Exception):  # noqa: N818 - not an error
    """A method was given up; the text says why."""


@dataclass(frozen=True)
class Budget:
    """What a method may cost: seconds in all, bytes for one fit."""

    seconds: float
    n_bytes: float

    def check_seconds(self, expected: float) -> None:
        """Raise `Skipped` when a method is expected to take too long."""
        if expected > self.seconds:
            raise Skipped(f"expected to take {expected:.0f} s, the time budget is {self.seconds:g} s")


@dataclass(frozen=True)
class Protocol:
    """The rules that every method is judged by."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    n_neighbors: int
    scale: bool
    random_state: int
    task: Task = CLASSIFICATION

    def folds(self, n_splits: int, n_repeats: int, notes: list[str]) -> list[Fold]:
        """Return the outer folds; as many as the rows allow, and say so where these are fewer than asked for."""
        possible, reason = self.task.most_folds(self.y, self.groups)
        if possible < n_splits:
            notes.append(f"{n_splits} folds reduced to {possible}: {reason}.")
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_repeats)
        everybody = np.arange(len(self.y))
        folds = [fold for seed in seeds for fold in self._splits(everybody, min(n_splits, possible), seed)]
        for number, (_, test) in enumerate(folds, start=1):
            if not self.task.can_score(self.y[test]):
                raise ValueError(
                    f"y is {self.y[test[0]]:.6g} in all {len(test)} held-out rows of fold {number}, where "
                    f"{self.task.headings[0]} has no meaning: give fewer folds, or larger groups."
                )
        return folds

    def inner_folds(self, rows: np.ndarray) -> list[Fold]:
        """Return folds of some training rows, without those that have no score; none where the rows are too few."""
        groups = None if self.groups is None else self.groups[rows]
        n_splits = min(self.task.most_inner_folds(self.y[rows], groups), INNER_SPLITS)
        folds = self._splits(rows, n_splits, self.random_state) if n_splits > 1 else []
        return [(train, test) for train, test in folds if self.task.can_score(self.y[test])]

    def _splits(self, rows: np.ndarray, n_splits: int, seed: int) -> list[Fold]:
        splitter = self.task.splitter(n_splits, self.groups is not None, seed)
        groups = None if self.groups is None else self.groups[rows]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # said in the notes
            splits = list(splitter.split(rows, self.y[rows], groups))
        return [(rows[train], rows[test]) for train, test in splits]

    def pipeline(self, method: Method, params: Params) -> Pipeline:
        """Return scaler, map and vote, unfitted."""
        steps: list[tuple[str, Any]] = []
        if self.scale:
            steps.append(("scale", StandardScaler(with_mean=not issparse(self.X))))
        if method.estimator is not None:
            steps.append(("map", clone(method.estimator).set_params(**params)))
        return Pipeline([*steps, ("vote", self.task.vote(self.n_neighbors))])

    def few_threads(self) -> threadpool_limits:
        """Return a context in which small problems are solved by a single thread."""
        few_rows, few_features = self.X.shape[0] <= FEW_ROWS, self.X.shape[1] <= FEW_FEATURES
        return threadpool_limits(1 if few_features else None, user_api=None if few_rows else "blas")

    def choose(self, method: Method, rows: np.ndarray) -> Params:
        """Return the parameters with the highest mean score on inner folds of the rows; of equals the smallest."""
        settings = method.settings(self.X.shape[1])
        folds = self.inner_folds(rows)
        if not method.leaves_choice(self.X.shape[1]) or not folds:
            return settings[0]
        scores: dict[tuple[int, int | None], list[float]] = {}
        for train, test in folds:
            for number, setting in enumerate(settings):
                for m, score in self._scores_by_dimension(method, setting, train, test).items():
                    scores.setdefault((number, m), []).append(score)
        complete = {key: round(np.mean(values), 12) for key, values in scores.items() if len(values) == len(folds)}
        number, m = max(complete, key=lambda key: (complete[key], -(key[1] or np.inf), -key[0]))
        return settings[number] | ({} if m is None else {"n_components": m})

    def _scores_by_dimension(
        self, method: Method, setting: Params, train: np.ndarray, test: np.ndarray
    ) -> dict[int | None, float]:
        """Return the score for every number of leading dimensions; None stands for all of them."""
        scores = self.curve(method, setting, train, test)
        return {(None if m == max(scores) else m): score for m, score in scores.items()}

    def curve(self, method: Method, setting: Params, train: np.ndarray, test: np.ndarray) -> dict[int, float]:
        """Return the score on `test` for the dimensions of the fit, and the smaller ones of a nested method."""
        *maps, (_, vote) = self.pipeline(method, setting).steps
        mapping = Pipeline(maps).fit(self.X[train], self.y[train])
        Z_train, Z_test = mapping.transform(self.X[train]), mapping.transform(self.X[test])
        every = Z_train.shape[1]
        cuts = [m for m in DIMENSIONS if m < every] if method.nested and method.estimator is not None else []
        return {
            m: vote.fit(Z_train[:, :m], self.y[train]).score(Z_test[:, :m], self.y[test]) for m in [*cuts, every]
        }  # fmt: skip


def judge(
    method: Method,
    protocol: Protocol,
    folds: list[Fold],
    budget: Budget,
    notes: list[str],
    progress: Callable[[str, int, int], None],
) -> MethodResult:
    """Return what the method does on every fold, or raise `Skipped`."""
    start = time.perf_counter()
    rows = []
    progress(method.name, 0, len(folds))
    with warnings.catch_warnings(record=True) as caught, protocol.few_threads():
        warnings.simplefilter("always")
        if method.name != RAW:
            _check_budget(method, protocol, folds, budget)
        for done, fold in enumerate(folds, start=1):
            rows.append(_judge_fold(method, protocol, fold))
            progress(method.name, done, len(folds))
            if method.name != RAW and done < len(folds):
                budget.check_seconds((time.perf_counter() - start) * len(folds) / done)
    notes.extend(_summarized(method.name, caught))
    score, second, dimension, params, seconds, predictions = zip(*rows, strict=True)
    return MethodResult(
        protocol.task,
        method,
        np.array(score),
        np.array(second),
        np.array(dimension),
        params,
        np.array(seconds),
        predictions,
        protocol.pipeline(method, params[0]),
        method.most(protocol.X.shape[1], len(protocol.task.sizes(protocol.y))),
    )


def _judge_fold(method: Method, protocol: Protocol, fold: Fold) -> tuple[float, float, int, Params, float, np.ndarray]:
    train, test = fold
    X, y = protocol.X, protocol.y
    try:
        params = protocol.choose(method, train)
        model = protocol.pipeline(method, params)
        start = time.perf_counter()
        model.fit(X[train], y[train])
        seconds = time.perf_counter() - start
        predicted = model.predict(X[test])
    except FAILURES as error:
        if method.name == RAW:
            raise
        raise Skipped(str(error).partition("\n")[0]) from error
    score, second = protocol.task.scores(y[test], predicted)
    return score, second, model[-1].n_features_in_, params, seconds, predicted


def _check_budget(method: Method, protocol: Protocol, folds: list[Fold], budget: Budget) -> None:
    """Raise `Skipped` when a method is expected to need too much, before it does."""
    train = folds[0][0]
    n_bytes = method.memory(protocol.task.sizes(protocol.y[train]))
    if n_bytes > budget.n_bytes:
        raise Skipped(f"a fit needs about {human_bytes(n_bytes)}, the memory budget is {human_bytes(budget.n_bytes)}")
    p = protocol.X.shape[1]
    settings = method.settings(p)
    fits = len(folds) * (1 + INNER_SPLITS * len(settings) * method.leaves_choice(p))
    pilot = protocol.task.pilot_rows(protocol.y, train)
    growth = (len(train) / len(pilot)) ** method.growth
    budget.check_seconds(fits * _pilot_seconds(protocol.pipeline(method, settings[-1]), protocol, pilot) * growth)


def _pilot_seconds(pipeline: Pipeline, protocol: Protocol, rows: np.ndarray) -> float:
    """Return the time of a fit, the quicker of two (the first also warms up); 0 if it fails, for the folds to judge."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pipeline.fit(protocol.X[rows], protocol.y[rows])
        except FAILURES:
            return 0.0
        seconds.append(time.perf_counter() - start)
        if seconds[0] > 1:
            break
    return min(seconds)


def _summarized(name: str, caught: list[warnings.WarningMessage]) -> Iterator[str]:
    """Yield each distinct warning once, with how often it came."""
    for text, count in Counter(str(warning.message) for warning in caught).items():
        if "were asked for, but the data vary in" not in text:  # dimensions tried may exceed a fold's rank: harmless
            yield f"{name} warned {'once' if count == 1 else f'{count} times'}: {text}"
