"""Methods ranked by one split: some rows are held out, all others are trained on and vote.

At most 20,000 rows are held out: so many show an accuracy to some tenths of a point, and a run of hours need not be
repeated on other splits. They are drawn by their row numbers alone, before a row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from ..evaluation import CLASSIFICATION, RAW, best_result, status_of

MOST_HELD_OUT = 20_000
LEVEL = 0.95


@dataclass(frozen=True)
class SplitResult:
    """The held-out rows that a method gets right, and how it compares with the raw features.

    Attributes
    ----------
    name : str
    map : fitted Dask transformer, or None for the raw features
    dimension : int
    fit_seconds : float
    score : boolean array of shape (n_held_out,)
        Whether the vote found the class of the row; its mean is the accuracy.
    difference, margin : float
        Share of right rows minus that of the raw features, and half the width of its interval; see `ranked`.
    p_value : float
        That the difference is 0; NaN for the raw features.
    """

    name: str
    map: Any
    dimension: int
    fit_seconds: float
    score: np.ndarray
    difference: float = 0.0
    margin: float = 0.0
    p_value: float = float("nan")
    task = CLASSIFICATION

    @property
    def status(self) -> str:
        """Return "baseline", "better", "worse", or "unclear" where the interval holds 0, that is from p = 0.05 on."""
        return status_of(self.name, self.difference, self.p_value)


@dataclass(frozen=True)
class SplitComparison:
    """The outcome of a comparison by one split: finished methods, the most accurate first, and remarks."""

    results: tuple[SplitResult, ...]
    notes: tuple[str, ...]
    n_neighbors: int
    n_train: int
    scale: bool
    random_state: int
    interrupted: bool

    @property
    def raw(self) -> SplitResult:
        """Return the result of the raw features."""
        return next(result for result in self.results if result.name == RAW)

    @property
    def best(self) -> SplitResult:
        """Return the most accurate result that is shown to be better than the raw features, else that of these."""
        return best_result(self.results)


def ranked(finished: Sequence[SplitResult]) -> tuple[SplitResult, ...]:
    """Return the results, the most accurate first, with their differences from the raw features.

    A difference is a mean over the held-out rows of d, which is 1, 0 or -1: right here and wrong there, alike, or the
    reverse. Its interval is `mean(d) ± z sd(d) / sqrt(n)`, with the z of 1 - 0.05 / (2 M): all M intervals hold
    together in 95 % of the draws of held-out rows (Bonferroni). They say nothing of other training rows: there is one
    split.
    """
    raw = next(result for result in finished if result.name == RAW)
    others = [result for result in finished if result is not raw]
    z = norm.isf((1 - LEVEL) / 2 / max(len(others), 1))
    results = [raw]
    for result in others:
        d = result.score.astype(float) - raw.score
        mean, error = float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d)))
        p = 2 * float(norm.sf(abs(mean) / error)) if error else 1.0
        results.append(replace(result, difference=mean, margin=float(z) * error, p_value=min(1.0, len(others) * p)))
    return tuple(sorted(results, key=lambda result: -result.score.mean()))


def held_out_rows(n: int, seed: int) -> np.ndarray:
    """Return the row numbers of a fifth, at most 20,000, ascending; all sets of so many are equally likely."""
    return np.sort(np.random.default_rng(seed).choice(n, min(MOST_HELD_OUT, n // 5), replace=False))
