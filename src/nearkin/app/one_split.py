"""Methods ranked by one split: some rows are held out, all others are trained on and vote.

At most 20,000 rows are held out: so many show an accuracy to some tenths of a point, and a run of
hours need not be repeated on other splits. They are drawn by their row numbers alone, before a row
is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation import (
    CLASSIFICATION,
    RAW,
    SCORES,
    MethodResult,
    RankingRow,
    Score,
    Vote,
    ranked,
)
from .words import Summary

MOST_HELD_OUT = 20_000


@dataclass(frozen=True)
class SplitComparison:
    """The outcome of a comparison by one split.

    Attributes
    ----------
    results : tuple of MethodResult
        Finished methods, the most accurate first; their maps are kept apart.
    notes : tuple of str
    n_neighbors, n_train, random_state : int
    scale, interrupted : bool
    least_difference, of_fitted_models, references, doubts, n_twins, n_chained
        See `Comparison`.
    """

    results: tuple[MethodResult, ...]
    notes: tuple[str, ...]
    n_neighbors: int
    n_train: int
    scale: bool
    random_state: int
    interrupted: bool
    least_difference: float
    of_fitted_models = True
    references = doubts = ()
    n_twins = n_chained = 0

    @property
    def score(self) -> Score:
        """Return the score that ranks."""
        return SCORES[CLASSIFICATION.name]["accuracy"]

    @property
    def raw(self) -> MethodResult:
        """Return the result of the raw features."""
        return next(result for result in self.results if result.name == RAW)

    @property
    def best(self) -> MethodResult:
        """Return the most accurate result that is shown to be better than the raw features, else
        that of these.
        """
        return next((result for result in self.results if result.status == "better"), self.raw)

    def ranking(self) -> list[RankingRow]:
        """Return the rows of the ranking, best first."""
        return [result.row() for result in self.results]


class SplitSummary(Summary):
    """A comparison by one split in words."""

    @property
    def _setting(self) -> str:
        comparison = self.comparison
        n_held_out = len(comparison.raw.contributions[0])
        scaled = "standardized" if comparison.scale else "unscaled"
        return (
            f"of {comparison.n_neighbors}-NN on {scaled} features, {comparison.n_train:,} training "
            f"rows, {n_held_out:,} held-out rows, seed {comparison.random_state}"
        )

    @property
    def notes(self) -> Iterator[str]:
        """Yield what was skipped or warned of, a line each."""
        yield from self.comparison.notes


def split_result(
    name: str, hits: np.ndarray, dimension: int, seconds: float, k: int, n_train: int
) -> MethodResult:
    """Return the result of a method that is right in the held-out rows `hits`, not yet compared
    with others.
    """
    score = np.array([hits.mean()])
    return MethodResult(
        name=name,
        sign=1,
        kind="baseline" if name == RAW else "method",
        method=None,
        score=score,
        scores={"accuracy": score},
        dimension=np.array([dimension]),
        params=({},),
        votes=(Vote(k),),
        fit_seconds=np.array([seconds]),
        n_learned=n_train,
        predictions=(),
        contributions=(hits.astype(float),),
    )


def rank_split(
    finished: Sequence[MethodResult], n_train: int
) -> tuple[tuple[MethodResult, ...], float]:
    """Return the results, the most accurate first, tested by row, and the least difference that
    shows.

    They say nothing of other training rows: there is one split.
    """
    fold = np.arange(n_train), np.arange(len(finished[0].contributions[0]))
    results, least = ranked(finished, [fold])
    return tuple(results), least


def held_out_rows(n: int, seed: int) -> np.ndarray:
    """Return the row numbers of a fifth, at most 20,000, ascending; all sets of so many are equally
    likely.
    """
    return np.sort(np.random.default_rng(seed).choice(n, min(MOST_HELD_OUT, n // 5), replace=False))
