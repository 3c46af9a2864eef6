"""What the command says of a comparison: scores as they are written, the verdict, the notes, the methods."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..evaluation import CLASSIFICATION, RAW, REGRESSION, Comparison, Method, first_repeat

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
    better : str
        What a method does that is shown to be better.
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
    better: str
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
        better="makes nearest neighbours right more often",
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
        better="lets nearest neighbours predict better",
        title="R²",
        axis="R² on held-out rows",
    ),
}


def verdict(comparison: Comparison) -> str:
    """Return the outcome in one sentence."""
    words, raw = WORDING[comparison.task.name], comparison[RAW]
    methods = [result for result in comparison.results if result.name != RAW]
    if not methods:
        return f"{comparison.n_neighbors}-NN on the raw features is {words.vote(raw.score.mean())}; nothing to compare."
    first = methods[0] if comparison.best is raw else comparison.best
    p = format_p(first.p_value)
    evidence = (
        f"{words.prefix}{words.figure(first.score.mean())} against {words.figure(raw.score.mean())} {words.of_rows} "
        f"held-out rows, {words.signed(first.difference)}{words.points}, "
        f"p {p if p.startswith('<') else '= ' + p} after Holm over {len(methods)} method{'s' * (len(methods) > 1)}"
    )
    if comparison.best is raw:
        return f"No method is shown to beat raw k-NN here. The best, {first.name}: {evidence}."
    return f"{first.name} {words.better} than the raw features do: {evidence}."


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
