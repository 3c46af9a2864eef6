"""The English of the command: how scores are written, what a comparison found, and what is worth a remark."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..evaluation import CLASSIFICATION, RAW, REGRESSION, Comparison, Method, MethodResult, first_repeat
from .one_split import SplitComparison, SplitResult
from .tables import Table

DIGITS = 3  # of an error in the target's own unit


@dataclass(frozen=True)
class Wording:
    """How the scores of a task are written.

    Attributes
    ----------
    headings : tuple of str
        Of the columns of the score that ranks and of the one beside it.
    factor, decimals, unit : int, int, str
        A score is written times `factor`, with so many decimals, then the unit.
    prefix, points : str
        What stands before a score that nothing else names, and after a difference.
    of_vote, of_rows : str
        "right in {score}", and what follows it before "held-out rows".
    title, axis : str
        Of a picture of scores.
    """

    headings: tuple[str, str]
    factor: int
    decimals: int
    unit: str
    prefix: str
    points: str
    of_vote: str
    of_rows: str
    title: str
    axis: str

    def figure(self, score: float) -> str:
        """Return a score, e.g. "95.4%" or "0.954"."""
        return f"{self.factor * score:.{self.decimals}f}{self.unit}"

    def signed(self, difference: float) -> str:
        """Return a difference of scores, e.g. "+1.2"; never "-0.0"."""
        return f"{round(self.factor * difference, self.decimals) + 0.0:+.{self.decimals}f}"

    def vote(self, score: float) -> str:
        """Return what a vote with this score is, e.g. "right in 95.4%"."""
        return self.of_vote.format(self.figure(score))

    def mean_std(self, values: np.ndarray) -> str:
        """Return mean and standard deviation without the unit."""
        mean, std = (f"{self.factor * value:.{self.decimals}f}" for value in (values.mean(), values.std(ddof=1)))
        return f"{mean} ± {std}"

    def second_mean_std(self, values: np.ndarray) -> str:
        """Return the same for the score beside: percent, or three digits in the unit of the target."""
        if self is WORDING[CLASSIFICATION.name]:
            return self.mean_std(values)
        mean, std = float(values.mean()), float(values.std(ddof=1))
        order = int(np.floor(np.log10(mean))) if mean > 0 else 0
        if not -4 <= order <= 6:
            return f"{mean:.{DIGITS - 1}e} ± {std:.0e}"
        decimals = max(0, DIGITS - 1 - order)
        return f"{mean:.{decimals}f} ± {std:.{decimals}f}"


WORDING = {
    CLASSIFICATION.name: Wording(
        headings=("accuracy %", "balanced %"),
        factor=100,
        decimals=1,
        unit="%",
        prefix="",
        points=" points",
        of_vote="right in {}",
        of_rows="of",
        title="Accuracy",
        axis="held-out rows right (%)",
    ),
    REGRESSION.name: Wording(
        headings=("R²", "MAE"),
        factor=1,
        decimals=3,
        unit="",
        prefix="R² ",
        points="",
        of_vote="at R² {}",
        of_rows="on",
        title="R²",
        axis="R² on held-out rows",
    ),
}


@dataclass(frozen=True)
class Summary:
    """A comparison in words; of `cells` each is a line of the ranking, and "verdict" there the status of the method."""

    cells: list[dict[str, str]]
    caption: str
    verdict: str
    notes: list[str]


def summarize(comparison: Comparison | SplitComparison) -> Summary:
    """Return the ranking, the verdict and the remarks."""
    if isinstance(comparison, SplitComparison):
        return _summarize_split(comparison)
    scaled = "standardized" if comparison.scale else "unscaled"
    return Summary(
        cells=[_cells(result) for result in comparison.results],
        caption=f"{comparison.n_neighbors}-NN on {scaled} features, {len(comparison.folds)} held-out folds, seed "
        f"{comparison.random_state}: mean ± standard deviation, median dimension (range), p after Holm",
        verdict=verdict(comparison),
        notes=list(notes(comparison)),
    )


def _summarize_split(comparison: SplitComparison) -> Summary:
    scaled = "standardized" if comparison.scale else "unscaled"
    words, raw = WORDING[CLASSIFICATION.name], comparison.raw

    def interval(result: SplitResult) -> str:
        return f"{words.signed(result.difference)} ± {100 * result.margin:.1f}"

    def evidence(first: SplitResult) -> str:
        figures = f"{words.figure(first.accuracy)} against {words.figure(raw.accuracy)}"
        return f"{figures} of {comparison.n_held_out} held-out rows, {interval(first)} points"

    cells = [
        {
            "method": result.name,
            "accuracy %": f"{100 * result.accuracy:.1f}",
            "dim": str(result.n_components),
            "fit": _duration(result.fit_seconds),
            "vs raw": "" if result is raw else interval(result),
            "verdict": result.status,
        }
        for result in comparison.results
    ]
    return Summary(
        cells=cells,
        caption=f"{comparison.n_neighbors}-NN on {scaled} features, {comparison.n_train} training rows, "
        f"{comparison.n_held_out} held-out rows, seed {comparison.random_state}: ± holds in 95% of the draws of "
        "held-out rows, for all methods at once",
        verdict=_outcome(comparison, words, raw.accuracy, evidence),
        notes=list(comparison.notes),
    )


def _cells(result: MethodResult) -> dict[str, str]:
    """Return the line of the ranking for a method."""
    low, middle, high = np.percentile(result.dimension, [0, 50, 100]).astype(int)
    baseline, words = result.status == "baseline", WORDING[result.task.name]
    return {
        "method": result.name,
        words.headings[0]: words.mean_std(result.score),
        words.headings[1]: words.second_mean_std(result.second_score),
        "dim": str(middle) if low == high else f"{middle} ({low}-{high})",
        "fit": _duration(result.fit_seconds.mean()),
        "vs raw": "" if baseline else words.signed(result.difference),
        "p": "" if baseline else format_p(result.p_value),
        "verdict": result.status,
    }


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def verdict(comparison: Comparison) -> str:
    """Return the outcome of a cross-validation in one sentence."""
    words, raw, n_methods = WORDING[comparison.task.name], comparison[RAW], len(comparison.results) - 1

    def evidence(first: MethodResult) -> str:
        figures = f"{words.figure(first.score.mean())} against {words.figure(raw.score.mean())}"
        p = format_p(first.p_value)
        return (
            f"{words.prefix}{figures} {words.of_rows} held-out rows, {words.signed(first.difference)}{words.points}, "
            f"p {p if p.startswith('<') else '= ' + p} after Holm over {n_methods} method{'s' * (n_methods > 1)}"
        )

    return _outcome(comparison, words, raw.score.mean(), evidence)


def _outcome(comparison: Any, words: Wording, raw_score: float, evidence: Any) -> str:
    """Return the outcome in one sentence."""
    best, methods = comparison.best, [result for result in comparison.results if result.name != RAW]
    if not methods:
        return f"{comparison.n_neighbors}-NN on the raw features is {words.vote(raw_score)}; nothing to compare."
    if best.name == RAW:
        return f"No method is shown to beat raw k-NN here. The best, {methods[0].name}: {evidence(methods[0])}."
    return f"{comparison.n_neighbors}-NN is more accurate after {best.name} than on the raw features: {evidence(best)}."


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what was reduced, skipped or warned of, a line each."""
    n_labelled, n_without = sum(map(len, comparison.folds[0])), comparison.n_unlabelled
    by_name = {result.name: result for result in comparison.results}
    if n_without:
        used = [name for name in comparison.methods if name in by_name and any(map(len, by_name[name].unlabelled))]
        yield (
            f"{n_labelled} of {n_labelled + n_without} rows have a label: only these are held out and vote. From the "
            f"{n_without} without one learned: {', '.join(used) or 'no method'}."
        )
    if comparison.classes.dtype.kind == "i" and comparison.classes.min() == -1 and len(comparison.classes) > 2:
        yield "-1 was taken for a class: if it marks rows without a label, say unlabelled=-1 (--unlabelled -1)."
    if "n_splits" in comparison.reduced:
        requested, reason = comparison.reduced["n_splits"]
        yield f"{requested} folds reduced to {len(first_repeat(comparison.folds))}: {reason}."
    if "n_neighbors" in comparison.reduced:
        requested, reason = comparison.reduced["n_neighbors"]
        yield f"{requested}-NN reduced to {comparison.n_neighbors}-NN: {reason}."
    for name in comparison.methods:
        if name in comparison.skipped:
            yield f"{name} skipped: {comparison.skipped[name]}"
        for text, count in by_name[name].warnings.items() if name in by_name else ():
            yield f"{name} warned {'once' if count == 1 else f'{count} times'}: {text}"
    if comparison.interrupted:
        finished, total = len(comparison.results), len(comparison.methods)
        yield f"Interrupted: {finished} of {total} methods were finished, no winner was fitted."


def summary(method: Method) -> str:
    """Return what a method is: the first line of its documentation, and the parameters that are not the defaults."""
    if method.estimator is None:
        return "The features as they are, each counting by its spread: the baseline."
    first_line = (inspect.getdoc(type(method.estimator)) or method.name).partition("\n")[0]
    defaults = type(method.estimator)().get_params()
    changed = {name: value for name, value in method.estimator.get_params().items() if value != defaults[name]}
    return first_line + (f" ({', '.join(f'{name}={value!r}' for name, value in changed.items())})" if changed else "")


def format_p(p_value: float) -> str:
    """Return a p-value with two digits, or "<0.001"."""
    return f"{p_value:.2g}" if p_value >= 0.001 else "<0.001"


def table_facts(table: Table) -> str:
    """Return what was read, in one line."""
    kind = "sparse features" if issparse(table.X) else "features"
    grouped = "" if table.groups is None else f", {len(np.unique(table.groups))} groups"
    return f"{table.name}: {rows_of(table)}, {table.X.shape[1]} {kind}, {target_facts(table)}{grouped}"


def rows_of(table: Table, form: str = "d") -> str:
    """Return how many rows there are, and how many of them have a label if not all do."""
    n_rows, n_labelled = table.X.shape[0], len(table.labelled)
    return f"{n_rows:{form}} rows" + ("" if n_labelled == n_rows else f" ({n_labelled:{form}} labelled)")


def target_facts(table: Table) -> str:
    """Return what the target holds."""
    values, counts = np.unique(table.labels, return_counts=True)
    if table.task == CLASSIFICATION.name:
        return f"{len(values)} classes of {counts.min()} to {counts.max()} rows"
    return f"{len(values)} values from {values[0]:.4g} to {values[-1]:.4g}"


def first_line(error: Any) -> str:
    """Return the first line of what an error or a warning says."""
    return str(error).partition("\n")[0]
