"""The English of the command: how scores are written, what a comparison found, and what is worth a remark."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation import CLASSIFICATION, RAW, REGRESSION, Comparison, Method, MethodResult, first_repeat
from ..plotting import SCORES
from .one_split import SplitComparison, SplitResult
from .refusals import TableError
from .tables import Table

DIGITS = 3  # of an error in the target's own unit


class Wording:
    """How the scores of a classification are written.

    Attributes
    ----------
    headings : tuple of str
        Of the columns of the score that ranks and of the one beside it.
    factor : int
        A score is written times `factor`.
    title, axis : str
        Of a picture of scores.
    decimals, unit : int, str
        Of a written score.
    prefix, points : str
        What stands before a score that nothing else names, and after a difference.
    of_vote, of_rows : str
        "right in {score}", and what follows it before "held-out rows".
    """

    headings = ("accuracy %", "balanced %")
    factor, title, axis = SCORES[CLASSIFICATION.name]
    decimals, unit = 1, "%"
    prefix, points = "", " points"
    of_vote, of_rows = "right in {}", "of"

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

    second_mean_std = mean_std  # of the score beside


class RegressionWording(Wording):
    """How R² is written, and beside it the mean absolute error."""

    headings = ("R²", "MAE")
    factor, title, axis = SCORES[REGRESSION.name]
    decimals, unit = 3, ""
    prefix, points = "R² ", ""
    of_vote, of_rows = "at R² {}", "on"

    def second_mean_std(self, values: np.ndarray) -> str:
        """Return mean and standard deviation with three digits of the mean, in the unit of the target."""
        mean, std = float(values.mean()), float(values.std(ddof=1))
        order = int(np.floor(np.log10(mean))) if mean > 0 else 0
        if not -4 <= order <= 6:
            return f"{mean:.{DIGITS - 1}e} ± {std:.0e}"
        decimals = max(0, DIGITS - 1 - order)
        return f"{mean:.{decimals}f} ± {std:.{decimals}f}"


WORDING = {CLASSIFICATION.name: Wording(), REGRESSION.name: RegressionWording()}


@dataclass(frozen=True)
class Summary:
    """A comparison in words; of `cells` each is a line of the ranking, and "verdict" there the status of the method."""

    cells: list[dict[str, str]]
    caption: str
    verdict: str
    notes: list[str]


def summarize(comparison: Comparison | SplitComparison) -> Summary:
    """Return the ranking, the verdict and the remarks."""
    n_neighbors, seed = comparison.n_neighbors, comparison.random_state
    vote = f"{n_neighbors}-NN on {'standardized' if comparison.scale else 'unscaled'} features"
    if isinstance(comparison, SplitComparison):
        caption = (
            f"{vote}, {comparison.n_train} training rows, {len(comparison.raw.score)} held-out rows, seed {seed}: "
        )
        caption += "± holds in 95% of the draws of held-out rows, for all methods at once"
        remarks = list(comparison.notes)
    else:
        caption = f"{vote}, {len(comparison.folds)} held-out folds, seed {seed}: mean ± standard deviation, median "
        caption += "dimension (range), p after Holm"
        remarks = list(notes(comparison))
    return Summary([_cells(result) for result in comparison.results], caption, verdict(comparison), remarks)


def _cells(result: Any) -> dict[str, str]:
    """Return the line of the ranking for a method; a single split has no deviation, second score or p."""
    words, seconds, is_raw = WORDING[result.task.name], float(np.mean(result.fit_seconds)), result.name == RAW
    low, middle, high = np.percentile(result.dimension, [0, 50, 100]).astype(int)
    one_split = isinstance(result, SplitResult)
    cells = {
        "method": result.name,
        words.headings[0]: f"{100 * result.score.mean():.1f}" if one_split else words.mean_std(result.score),
        words.headings[1]: None if one_split else words.second_mean_std(result.second_score),
        "dim": str(middle) if low == high else f"{middle} ({low}-{high})",
        "fit": f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s",
        "vs raw": "" if is_raw else _difference(result),
        "p": None if one_split else "" if is_raw else format_p(result.p_value),
        "verdict": result.status,
    }
    return {name: text for name, text in cells.items() if text is not None}


def _difference(result: MethodResult | SplitResult) -> str:
    """Return by how much a method differs from the raw features, with the interval where one split tells one."""
    text = WORDING[result.task.name].signed(result.difference)
    return f"{text} ± {100 * result.margin:.1f}" if isinstance(result, SplitResult) else text


def verdict(comparison: Any) -> str:
    """Return the outcome in one sentence."""
    raw, *others = sorted(comparison.results, key=lambda result: result.name != RAW)
    n_neighbors, words, best = comparison.n_neighbors, WORDING[raw.task.name], comparison.best
    if not others:
        return f"{n_neighbors}-NN on the raw features is {words.vote(raw.score.mean())}; nothing to compare."
    first = leader(comparison)
    scores = f"{words.prefix}{words.figure(first.score.mean())} against {words.figure(raw.score.mean())}"
    rows = f"{len(first.score)} held-out rows" if isinstance(first, SplitResult) else "held-out rows"
    evidence = f"{scores} {words.of_rows} {rows}, {_difference(first)}{words.points}"
    if not isinstance(first, SplitResult):
        p, tests = format_p(first.p_value), f"{len(others)} method{'s' * (len(others) > 1)}"
        evidence += f", p {p if p.startswith('<') else '= ' + p} after Holm over {tests}"
    if best.name == RAW:
        return f"No method is shown to beat raw k-NN here. The best, {first.name}: {evidence}."
    return f"{n_neighbors}-NN is more accurate after {best.name} than on the raw features: {evidence}."


def leader(comparison: Any) -> Any:
    """Return the best result, or, where none is shown to beat the raw features, that which follows them."""
    return next((result for result in [comparison.best, *comparison.results] if result.name != RAW), comparison.best)


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
    now = {"n_splits": (len(first_repeat(comparison.folds)), " folds"), "n_neighbors": (comparison.n_neighbors, "-NN")}
    for name, (requested, reason) in comparison.reduced.items():
        reduced, unit = now[name]
        yield f"{requested}{unit} reduced to {reduced}{unit}: {reason}."
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


@contextmanager
def one_line(place: Any) -> Iterator[None]:
    """Make a TableError, with the name of a table, of an error that its rows caused."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise TableError(f"{place}: {first_line(error)}") from error
