"""What a comparison found: figures for every fold, a ranking and a verdict that may be "none"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .methods import RAW, Method, Params
from .statistics import corrected_resampled_t_test, format_p, holm, signed_points

SIGNIFICANCE = 0.05

Fold = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class MethodResult:
    """What one method did on every held-out fold, and how it stands against the raw features.

    Attributes
    ----------
    method : Method
    accuracy, balanced_accuracy : ndarray of shape (n_folds,)
        Share of held-out rows (or mean share over classes) that the vote gets right.
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
    difference : float
        Mean accuracy minus that of the raw features, paired by fold.
    p_value : float
        Of the corrected resampled t-test, Holm-corrected over the methods; NaN for the raw features.
    """

    method: Method
    accuracy: np.ndarray
    balanced_accuracy: np.ndarray
    dimension: np.ndarray
    params: tuple[Params, ...]
    fit_seconds: np.ndarray
    predictions: tuple[np.ndarray, ...]
    pipeline: Pipeline
    max_components: int
    difference: float = 0.0
    p_value: float = float("nan")

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self.method.name

    def mapping(self, n_components: int) -> Pipeline:
        """Return scaler and map of `pipeline` with n_components, or as many as there are. Not for the raw features."""
        m = min(n_components, self.max_components)
        return clone(self.pipeline[:-1]).set_params(map__n_components=m)

    @property
    def verdict(self) -> str:
        """Return "baseline", "better", "worse", or "unclear" where the difference may be luck."""
        if self.name == RAW:
            return "baseline"
        if not self.p_value < SIGNIFICANCE:
            return "unclear"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`.

    Attributes
    ----------
    results : tuple of MethodResult
        Finished methods, highest mean accuracy first.
    winner : Pipeline or None
        The best method that is shown to beat the raw features, else k-NN on the raw features; settings chosen by
        validation on all rows, then fitted on all rows. None after an interruption.
    notes : tuple of str
        What was skipped, reduced or remarked, one line each.
    n_neighbors : int
        k of the vote.
    folds : tuple of (training rows, held-out rows)
    scale : bool
    random_state : int
    """

    results: tuple[MethodResult, ...]
    winner: Pipeline | None
    notes: tuple[str, ...]
    n_neighbors: int
    folds: tuple[Fold, ...]
    scale: bool
    random_state: int

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
        """Return the outcome in one sentence."""
        raw, methods = self[RAW], [result for result in self.results if result.name != RAW]
        if not methods:
            return (
                f"{self.n_neighbors}-NN on the raw features is right in {raw.accuracy.mean():.1%}; nothing to compare."
            )
        first = methods[0] if self.best is raw else self.best
        p = format_p(first.p_value)
        evidence = (
            f"{first.accuracy.mean():.1%} against {raw.accuracy.mean():.1%} of held-out rows, "
            f"{signed_points(first.difference)} points, p {p if p.startswith('<') else '= ' + p} after Holm over "
            f"{len(methods)} methods"
        )
        if self.best is raw:
            return f"No method is shown to beat raw k-NN here. The best, {first.name}: {evidence}."
        return f"{first.name} makes nearest neighbours right more often than the raw features do: {evidence}."

    def to_frame(self) -> Any:
        """Return the ranking as a pandas DataFrame, one row a method (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "method": [r.name for r in self.results],
                "accuracy": [r.accuracy.mean() for r in self.results],
                "accuracy_std": [_std(r.accuracy) for r in self.results],
                "balanced_accuracy": [r.balanced_accuracy.mean() for r in self.results],
                "balanced_accuracy_std": [_std(r.balanced_accuracy) for r in self.results],
                "dimension": [float(np.median(r.dimension)) for r in self.results],
                "fit_seconds": [r.fit_seconds.mean() for r in self.results],
                "difference": [r.difference for r in self.results],
                "p_value": [r.p_value for r in self.results],
                "verdict": [r.verdict for r in self.results],
            }
        )


def ranked(finished: Sequence[MethodResult], folds: Sequence[Fold]) -> tuple[MethodResult, ...]:
    """Return the results by mean accuracy, with differences to the raw features and corrected p-values."""
    raw = next(result for result in finished if result.name == RAW)
    n_train, n_test = (float(np.mean([len(fold[side]) for fold in folds])) for side in (0, 1))
    others = [result for result in finished if result.name != RAW]
    p_values = holm([corrected_resampled_t_test(r.accuracy - raw.accuracy, n_train, n_test) for r in others])
    judged = [
        replace(result, difference=float(np.mean(result.accuracy - raw.accuracy)), p_value=p_value)
        for result, p_value in zip(others, p_values, strict=True)
    ]
    return tuple(sorted([raw, *judged], key=lambda result: -result.accuracy.mean()))


def best_result(results: Sequence[MethodResult]) -> MethodResult:
    """Return the first result that is shown to be better than the raw features, else that of the raw features."""
    better = [result for result in results if result.verdict == "better"]
    return better[0] if better else next(result for result in results if result.name == RAW)


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
