"""Methods ranked by one split: some rows are held out, all others learn and vote.

At most 20,000 rows are held out: so many tell an accuracy to some tenths of a point, and repeating what takes hours on
other splits would tell little more. They are drawn by their numbers alone, before a row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import mode, norm

from ..evaluation import CLASSIFICATION, RAW
from .sentences import WORDING

MOST_HELD_OUT = 20_000
LEVEL = 0.95


@dataclass(frozen=True)
class Result:
    """What one method did on the held-out rows, and how it stands against the raw features.

    Attributes
    ----------
    name : str
    map : fitted Dask transformer, or None for the raw features
    n_components : int
    fit_seconds : float
    right : boolean array of shape (n_held_out,)
        Whether the vote found the class of the row.
    difference, margin : float
        Share of right rows minus that of the raw features, and half the width of its interval; see `judged`.
    p_value : float
        That the difference is 0; NaN for the raw features.
    """

    name: str
    map: Any
    n_components: int
    fit_seconds: float
    right: np.ndarray
    difference: float = 0.0
    margin: float = 0.0
    p_value: float = float("nan")

    @property
    def accuracy(self) -> float:
        """Return the share of held-out rows that are right."""
        return float(self.right.mean())

    @property
    def error(self) -> float:
        """Return the standard error of the accuracy, for held-out rows drawn at random."""
        return float(np.sqrt(self.accuracy * (1 - self.accuracy) / len(self.right)))

    @property
    def status(self) -> str:
        """Return "baseline", "better", "worse", or "unclear" where the interval holds 0."""
        if self.name == RAW:
            return "baseline"
        if abs(self.difference) <= self.margin:
            return "unclear"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True)
class Ranking:
    """The outcome of a comparison by one split.

    Attributes
    ----------
    results : tuple of Result
        Of the finished methods, the most accurate first.
    notes : tuple of str
        What was skipped or remarked, one line each.
    n_neighbors, n_train, n_held_out, seed : int
    scaled, interrupted : bool
    """

    results: tuple[Result, ...]
    notes: tuple[str, ...]
    n_neighbors: int
    n_train: int
    n_held_out: int
    seed: int
    scaled: bool
    interrupted: bool

    @property
    def raw(self) -> Result:
        """Return the result of the raw features."""
        return next(result for result in self.results if result.name == RAW)

    @property
    def best(self) -> Result:
        """Return the most accurate result that is shown to be better than the raw features, else that of these."""
        return next((result for result in self.results if result.status == "better"), self.raw)

    @property
    def verdict(self) -> str:
        """Return the outcome in one sentence."""
        words, raw = WORDING[CLASSIFICATION.name], self.raw
        others = [result for result in self.results if result.name != RAW]
        if not others:
            return f"{self.n_neighbors}-NN on the raw features is {words.vote(raw.accuracy)}; nothing to compare."
        first = others[0] if self.best is raw else self.best
        evidence = (
            f"{words.figure(first.accuracy)} against {words.figure(raw.accuracy)} of {self.n_held_out} held-out rows, "
            f"{interval(first)} points"
        )
        if self.best is raw:
            return f"No method is shown to beat raw k-NN here. The best, {first.name}: {evidence}."
        return f"{first.name} {words.better} than the raw features do: {evidence}."


def interval(result: Result) -> str:
    """Return a difference with its interval in points, e.g. "+1.2 ± 0.3"."""
    return f"{WORDING[CLASSIFICATION.name].signed(result.difference)} ± {100 * result.margin:.1f}"


def judged(finished: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results, the most accurate first, with their differences from the raw features.

    A difference is a mean over the held-out rows of d, which is 1, 0 or -1: right here and wrong there, alike, or the
    reverse. Its interval is `mean(d) ± z sd(d) / sqrt(n)`, with the z of 1 - 0.05 / (2 M): all M intervals hold
    together in 95 % of the draws of held-out rows (Bonferroni). Of other training rows they say nothing: there is one
    split.
    """
    raw = next(result for result in finished if result.name == RAW)
    others = [result for result in finished if result is not raw]
    z = norm.isf((1 - LEVEL) / 2 / max(len(others), 1))
    results = [raw]
    for result in others:
        d = result.right.astype(float) - raw.right
        mean, error = float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d)))
        p = 2 * float(norm.sf(abs(mean) / error)) if error else 1.0
        results.append(replace(result, difference=mean, margin=float(z) * error, p_value=min(1.0, len(others) * p)))
    return tuple(sorted(results, key=lambda result: -result.accuracy))


def n_held_out(n: int) -> int:
    """Return how many of n rows are held out: a fifth, at most 20,000."""
    return min(MOST_HELD_OUT, n // 5)


def held_out_rows(n: int, seed: int) -> np.ndarray:
    """Return the numbers of the rows to hold out, ascending; all sets of so many are equally likely."""
    return np.sort(np.random.default_rng(seed).choice(n, n_held_out(n), replace=False))


def majority(labels: np.ndarray) -> np.ndarray:
    """Return the most frequent label of every row, of equally many the smallest."""
    return mode(labels, axis=1).mode
