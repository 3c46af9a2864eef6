"""How every method is evaluated: which rows are held out, what is chosen where, what a method may cost."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from .._labels import is_missing, known_labels
from .._memory import human_bytes
from .methods import DIMENSIONS, RAW, Method, Params
from .results import Fold, MethodResult
from .task import CLASSIFICATION, REGRESSION, Task

# What a method may raise on a table that does not suit it: it is skipped then, with the reason.
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
INNER_SPLITS = 3
PILOT_ROWS = 1000
# Up to so many features the matrices are so small that BLAS threads cost more than they give: on two cores, twice the
# time for a comparison on breast_cancer. The neighbour search keeps its threads unless the rows are few, too: on a busy
# machine threads that wait for one another make it many times slower.
FEW_FEATURES = 500
FEW_ROWS = 2000
NO_ROWS = np.arange(0)

Progress = Callable[[str, int, int], None]


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
    """The rules for every method: only rows with a label are held out, and only they vote.

    `unlabelled` are the other rows: those that have no label, or fewer. All other row numbers are of labelled rows.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    n_neighbors: int
    scale: bool
    random_state: int
    task: Task = CLASSIFICATION
    unlabelled: np.ndarray = field(default_factory=NO_ROWS.copy)

    @cached_property
    def labelled(self) -> np.ndarray:
        """Return the rows with a label."""
        return np.flatnonzero(~is_missing(self.y)) if len(self.unlabelled) else np.arange(len(self.y))

    def target(self, rows: np.ndarray) -> np.ndarray:
        """Return the labels, or numbers, of rows that have one."""
        return known_labels(self.y, rows)

    def beside(self, method: Method, rows: np.ndarray) -> np.ndarray:
        """Return the rows without a label that the method learns from beside these: none of a group held out."""
        if not method.unlabelled or len(self.unlabelled) == 0 or self.groups is None:
            return self.unlabelled if method.unlabelled else NO_ROWS
        held_out = np.setdiff1d(self.labelled, rows)
        return self.unlabelled[~np.isin(self.groups[self.unlabelled], self.groups[held_out])]

    def most_folds(self, rows: np.ndarray) -> tuple[int, str]:
        """Return into how many folds rows can be cut, and what limits it; 1 where every class has a single row."""
        y = self.target(rows)
        sizes = self.task.sizes(y)
        if self.groups is not None:
            n_groups = len(np.unique(self.groups[rows]))
            if n_groups <= sizes.max():
                return n_groups, f"there are {n_groups} groups"
            return int(sizes.max()), f"no class has more than {sizes.max()} rows"
        if self.task == REGRESSION:
            return len(y) // 2, f"R² needs two rows in every fold, and there are {len(y)}"
        reason = f"class {np.unique(y)[sizes.argmin()]!s} has {sizes.min()} rows"
        return min(max(int(sizes.min()), 2), int(sizes.max())), reason

    def folds(self, n_splits: int, n_repeats: int) -> list[Fold]:
        """Return the outer folds."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_repeats)
        folds = [fold for seed in seeds for fold in self._splits(self.labelled, n_splits, seed)]
        for number, (_, test) in enumerate(folds, start=1):
            if not self._has_score(test):
                raise ValueError(
                    f"y is {self.y[test[0]]:.6g} in all {len(test)} held-out rows of fold {number}, where R² has no "
                    "meaning: give fewer folds, or larger groups."
                )
        return folds

    def inner_folds(self, rows: np.ndarray) -> list[Fold]:
        """Return folds of some training rows, without those that have no score; none where the rows are too few."""
        n_splits = min(self.most_folds(rows)[0], INNER_SPLITS)
        folds = self._splits(rows, n_splits, self.random_state) if n_splits > 1 else []
        return [(train, test) for train, test in folds if self._has_score(test)]

    def _has_score(self, test: np.ndarray) -> bool:
        """Say whether held-out rows can be scored: R² compares errors with the spread of the numbers."""
        return self.task == CLASSIFICATION or bool(np.ptp(self.y[test]) > 0)

    def _splits(self, rows: np.ndarray, n_splits: int, seed: int) -> list[Fold]:
        groups = None if self.groups is None else self.groups[rows]
        splitter = self.task.splitter if groups is None else self.task.group_splitter
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # `Comparison.reduced` holds it
            splits = splitter(n_splits, shuffle=True, random_state=seed).split(rows, self.target(rows), groups)
            return [(rows[train], rows[test]) for train, test in splits]

    def pipeline(self, method: Method, params: Params) -> Pipeline:
        """Return scaler, map and vote, unfitted."""
        steps: list[tuple[str, Any]] = []
        if self.scale:
            steps.append(("scale", StandardScaler(with_mean=not issparse(self.X))))
        if method.estimator is not None:
            steps.append(("map", clone(method.estimator).set_params(**params)))
        return Pipeline([*steps, ("vote", self.task.vote(self.n_neighbors))])

    def fit(self, method: Method, params: Params, rows: np.ndarray) -> Pipeline:
        """Return the pipeline with scaler and map fitted on the rows and those beside them, the vote on the rows."""
        pipeline, others, y = self.pipeline(method, params), self.beside(method, rows), self.target(rows)
        if len(others) == 0:
            return pipeline.fit(self.X[rows], y)
        maps = fit_partly(pipeline[:-1], self.X, y, rows, others, self.task)
        pipeline[-1].fit(maps.transform(self.X[rows]), y)
        return pipeline

    def few_threads(self) -> threadpool_limits:
        """Return a context in which small problems are solved by a single thread."""
        few_rows, few_features = self.X.shape[0] <= FEW_ROWS, self.X.shape[1] <= FEW_FEATURES
        return threadpool_limits(1 if few_features else None, user_api=None if few_rows else "blas")

    def choose(self, method: Method, rows: np.ndarray) -> Params:
        """Return the parameters with the highest mean score on inner folds of the rows; of equals the smallest."""
        settings, folds = method.settings(self.X.shape[1]), self.inner_folds(rows)
        if not method.leaves_choice(self.X.shape[1]) or not folds:
            return settings[0]
        scores: dict[tuple[int, int | None], list[float]] = {}
        for train, test in folds:
            for number, setting in enumerate(settings):
                curve = self.curve(method, setting, train, test)
                for m, score in curve.items():  # None: all dimensions, which may be fewer in another fold
                    scores.setdefault((number, None if m == max(curve) else m), []).append(score)
        complete = {key: round(np.mean(values), 12) for key, values in scores.items() if len(values) == len(folds)}
        number, best = max(complete, key=lambda key: (complete[key], -(key[1] or np.inf), -key[0]))
        return settings[number] | ({} if best is None else {"n_components": best})

    def curve(self, method: Method, setting: Params, train: np.ndarray, test: np.ndarray) -> dict[int, float]:
        """Return the score on `test` for the dimensions of the fit, and the smaller ones of a nested method."""
        *steps, (_, vote) = self.pipeline(method, setting).steps
        maps, others = Pipeline(steps or [("raw", "passthrough")]), self.beside(method, train)
        y_train, y_test = self.target(train), self.target(test)
        mapping = fit_partly(maps, self.X, y_train, train, others, self.task)
        Z_train, Z_test = mapping.transform(self.X[train]), mapping.transform(self.X[test])
        full = Z_train.shape[1]
        cuts = [m for m in DIMENSIONS if m < full] if method.nested and method.estimator is not None else []
        return {m: vote.fit(Z_train[:, :m], y_train).score(Z_test[:, :m], y_test) for m in [*cuts, full]}


def fit_partly(maps: Any, X: Any, y: np.ndarray, rows: np.ndarray, others: np.ndarray, task: Task) -> Any:
    """Fit on rows, whose labels y are, and on others that have none."""
    if len(others) == 0:
        return maps.fit(take_rows(X, rows), y)
    targets, none = (np.unique(y, return_inverse=True)[1], -1) if task == CLASSIFICATION else (y, np.nan)
    return maps.fit(take_rows(X, np.append(rows, others)), np.append(targets, np.full(len(others), none)))


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return rows of an array or a DataFrame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def evaluate(method: Method, protocol: Protocol, folds: list[Fold], budget: Budget, progress: Progress) -> MethodResult:
    """Return the result of the method on every fold, or raise `Skipped`."""
    start = time.perf_counter()
    rows = []
    progress(method.name, 0, len(folds))
    with warnings.catch_warnings(record=True, action="always") as caught, protocol.few_threads():
        if method.name != RAW:
            _check_budget(method, protocol, folds, budget)
        for done, (train, test) in enumerate(folds, start=1):
            try:
                params = protocol.choose(method, train)
                begun = time.perf_counter()
                model = protocol.fit(method, params, train)
                seconds = time.perf_counter() - begun
                predicted = model.predict(protocol.X[test])
            except FAILURES as error:
                if method.name == RAW:
                    raise
                raise Skipped(str(error).partition("\n")[0]) from error
            scores = [metric(protocol.target(test), predicted) for metric in protocol.task.scores.values()]
            rows.append((*scores, model[-1].n_features_in_, params, seconds, predicted))
            progress(method.name, done, len(folds))
            if method.name != RAW and done < len(folds):
                budget.check_seconds((time.perf_counter() - start) * len(folds) / done)
    score, second_score, dimension, chosen, fit_seconds, predictions = zip(*rows, strict=True)
    n_classes = len(protocol.task.sizes(protocol.target(protocol.labelled)))
    messages = Counter(str(warning.message) for warning in caught)
    return MethodResult(
        task=protocol.task,
        method=method,
        score=np.array(score),
        second_score=np.array(second_score),
        dimension=np.array(dimension),
        params=chosen,
        fit_seconds=np.array(fit_seconds),
        predictions=predictions,
        pipeline=protocol.pipeline(method, chosen[0]),
        max_components=method.max_components(protocol.X.shape[1], n_classes),
        unlabelled=tuple(protocol.beside(method, train) for train, _ in folds),
        # harmless: the dimensions tried may exceed the rank of a fold, and its rows may lack a class
        warnings={text: n for text, n in messages.items() if not text.startswith(("n_components=", "y_pred contains"))},
    )


def _check_budget(method: Method, protocol: Protocol, folds: list[Fold], budget: Budget) -> None:
    """Raise `Skipped` when a method is expected to need too much, before it does: by a pilot on about 1,000 rows."""
    train, p = folds[0][0], protocol.X.shape[1]
    n_bytes = method.memory(protocol.task.sizes(protocol.target(train)))
    if n_bytes > budget.n_bytes:
        raise Skipped(f"a fit needs about {human_bytes(n_bytes)}, the memory budget is {human_bytes(budget.n_bytes)}")
    drawn, others = np.random.default_rng(0).permutation(train), protocol.beside(method, train)
    pilot = drawn[:PILOT_ROWS]
    if protocol.task == CLASSIFICATION:  # and three rows of every class
        labels = protocol.target(drawn)
        pilot = np.union1d(pilot, np.concatenate([drawn[labels == label][:3] for label in np.unique(labels)]))
    few = np.random.default_rng(0).permutation(others)[: max(PILOT_ROWS - len(pilot), 0)]
    settings, small = method.settings(p), replace(protocol, groups=None, unlabelled=few)
    try:
        with warnings.catch_warnings(action="ignore"):
            small.fit(method, settings[-1], pilot)  # warms up
            start = time.perf_counter()
            small.fit(method, settings[-1], pilot)
    except FAILURES:  # the folds show why
        return
    seconds = time.perf_counter() - start
    growth = ((len(train) + len(others)) / (len(pilot) + len(few))) ** method.growth
    fits = len(folds) * (1 + INNER_SPLITS * len(settings) * method.leaves_choice(p))
    budget.check_seconds(fits * seconds * growth)
