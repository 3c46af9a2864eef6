"""What a comparison found: figures for every fold, and a ranking in which no method need be better than none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .methods import RAW, Method, Params
from .statistics import corrected_resampled_t_test, holm
from .task import CLASSIFICATION, Task

SIGNIFICANCE = 0.05

Fold = tuple[np.ndarray, np.ndarray]


def _named_score(name: str, meaning: str) -> property:
    """Return a score under its own name, for tasks that have it."""

    def scores(result: MethodResult) -> np.ndarray:
        found = dict(zip(result.task.scores, (result.score, result.second_score), strict=True))
        if name not in found:
            raise AttributeError(f"a {result.task.name} has no {name}: take {' or '.join(found)}.")
        return found[name]

    return property(scores, doc=meaning)


@dataclass(frozen=True)
class MethodResult:
    """The scores of a method on every held-out fold, and its difference from the raw features.

    Attributes
    ----------
    task : Task
    method : Method
    score : ndarray of shape (n_folds,)
        Of the vote on the held-out rows: `accuracy`, the share that is right; for a target of numbers `r2`, R².
    second_score : ndarray of shape (n_folds,)
        The one beside it: `balanced_accuracy`, the mean share over the classes; or `mae`, the mean absolute error.
    dimension : ndarray of shape (n_folds,)
        Dimensions in use, as chosen inside the training rows.
    params : tuple of dict
        The chosen parameters of each fold.
    fit_seconds : ndarray of shape (n_folds,)
        Time of one fit with the chosen parameters, the choice not included.
    predictions : tuple of ndarray
        The vote on the held-out rows of each fold.
    pipeline : Pipeline
        Scaler, map and vote, unfitted, with the parameters of the first fold: they were chosen on its training rows.
    max_components : int
        Largest number of components that the method has for this table.
    unlabelled : tuple of ndarray
        Row numbers without a label that each fold learned from; none of a method that cannot, or where all have one.
    warnings : dict of str to int
        The distinct warnings, and how often each came.
    difference : float
        Mean score minus that of the raw features, paired by fold.
    p_value : float
        Of the corrected resampled t-test, Holm-corrected over the methods; NaN for the raw features.
    """

    task: Task
    method: Method
    score: np.ndarray
    second_score: np.ndarray
    dimension: np.ndarray
    params: tuple[Params, ...]
    fit_seconds: np.ndarray
    predictions: tuple[np.ndarray, ...]
    pipeline: Pipeline
    max_components: int
    unlabelled: tuple[np.ndarray, ...]
    warnings: dict[str, int] = field(default_factory=dict)
    difference: float = 0.0
    p_value: float = float("nan")

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self.method.name

    accuracy = _named_score("accuracy", "`score` of a classification.")
    balanced_accuracy = _named_score("balanced_accuracy", "`second_score` of a classification.")
    r2 = _named_score("r2", "`score` of a regression.")
    mae = _named_score("mae", "`second_score` of a regression, in the unit of the target.")

    def mapping(self, n_components: int) -> Pipeline:
        """Return scaler and map of `pipeline` with n_components, or as many as there are. Not for the raw features."""
        m = min(n_components, self.max_components)
        return clone(self.pipeline[:-1]).set_params(map__n_components=m)

    @property
    def status(self) -> str:
        """Return "baseline", "better", "worse", or "unclear" where the difference may be chance."""
        return status_of(self.name, self.difference, self.p_value)


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`.

    Attributes
    ----------
    results : tuple of MethodResult
        Finished methods, highest mean score first.
    winner : Pipeline or None
        The best method that is shown to beat the raw features, else k-NN on the raw features; settings chosen by
        validation on all rows, then fitted on all rows. None after an interruption.
    methods : tuple of str
        All methods in the order in which they ran.
    skipped : dict of method name to reason
    reduced : dict of "n_splits" or "n_neighbors" to (requested, reason)
        What the rows do not allow: fewer folds, or neighbours.
    n_neighbors : int
        k of the vote.
    folds : tuple of (training rows, held-out rows)
        Row numbers; all of these rows have a label.
    scale : bool
    random_state : int
    n_unlabelled : int
        Rows without a label: these are never held out; `results` holds who learned from them.
    classes : ndarray
        The sorted classes; empty for a regression.
    """

    results: tuple[MethodResult, ...]
    winner: Pipeline | None
    methods: tuple[str, ...]
    skipped: dict[str, str]
    reduced: dict[str, tuple[int, str]]
    n_neighbors: int
    folds: tuple[Fold, ...]
    scale: bool
    random_state: int
    n_unlabelled: int
    classes: np.ndarray

    @property
    def task(self) -> Task:
        """Return what was predicted."""
        return self.results[0].task

    @property
    def interrupted(self) -> bool:
        """Return whether the run was stopped early; `results` then holds the methods finished until then."""
        return self.winner is None

    def __getitem__(self, name: str) -> MethodResult:
        """Return the result of a method by its name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"{name!r}; finished were {', '.join(result.name for result in self.results)}")

    @property
    def best(self) -> MethodResult:
        """Return the result of the winner: the best method shown to be better, else the raw features."""
        return best_result(self.results)

    @property
    def verdict(self) -> str:
        """Return the winner with its score, and what it stands against."""
        best, against = self.best, "no method is shown to be better"
        if best.name != RAW:
            against = f"{best.difference:+.3f} to {RAW}, p = {best.p_value:.2g}"
        return f"{best.name}: {self.task.score_name} {best.score.mean():.3f}, {against}"

    def to_frame(self) -> Any:
        """Return the ranking as a pandas DataFrame, one row a method (needs pandas)."""
        import pandas as pd

        score, second = self.task.scores
        return pd.DataFrame(
            {"method": r.name}
            | {score: r.score.mean(), f"{score}_std": r.score.std(ddof=1)}
            | {second: r.second_score.mean(), f"{second}_std": r.second_score.std(ddof=1)}
            | {"dimension": float(np.median(r.dimension)), "fit_seconds": r.fit_seconds.mean()}
            | {"difference": r.difference, "p_value": r.p_value, "status": r.status}
            for r in self.results
        )


def ranked(finished: Sequence[MethodResult], folds: Sequence[Fold]) -> tuple[MethodResult, ...]:
    """Return the results by mean score, with differences to the raw features and corrected p-values."""
    raw = next(result for result in finished if result.name == RAW)
    n_train, n_test = (float(np.mean([len(fold[side]) for fold in folds])) for side in (0, 1))
    # a row of what the raw features leave unexplained, of an accuracy one that is right or wrong; at least rounding
    step = 1 / n_test if raw.task == CLASSIFICATION else max((1 - raw.score.mean()) / n_test, 1e-9)
    others = [result for result in finished if result.name != RAW]
    p_values = holm([corrected_resampled_t_test(r.score - raw.score, n_train, n_test, step) for r in others])
    tested = [
        replace(result, difference=float(np.mean(result.score - raw.score)), p_value=p_value)
        for result, p_value in zip(others, p_values, strict=True)
    ]
    return tuple(sorted([raw, *tested], key=lambda result: -result.score.mean()))


def status_of(name: str, difference: float, p_value: float) -> str:
    """Return what a corrected p-value says of a method's difference from the raw features."""
    if name == RAW:
        return "baseline"
    if not p_value < SIGNIFICANCE:
        return "unclear"
    return "better" if difference > 0 else "worse"


def best_result(results: Sequence[Any]) -> Any:
    """Return the first result that is shown to be better than the raw features, else that of the raw features."""
    return next(result for status in ("better", "baseline") for result in results if result.status == status)
