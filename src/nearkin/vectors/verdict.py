"""Evaluation of a map between two models' embeddings against embedding everything again.

A verdict from held-out queries and documents says how much of the search the map preserves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blocks import unit_rows
from .._labels import encode_partial_labels
from .._parameters import check_choice
from .._validation import check_consistent_length
from ..statistics import PairedTest, paired_test_by_rows, ratio_interval
from .migration import FEWEST, SIDES, Migration, Sample, Search, shared
from .retrieval import retrieval_scores

N_NEIGHBORS = 10
KEPT, LOST = 0.95, 0.5  # kept shares of a search, for "migrate" (at least) and "embed again" (less)
MIGRATE, WITH_LOSS, EMBED_AGAIN = "migrate", "migrate with a loss", "embed again"
AGAIN, OLD, ROTATION, LEAST_SQUARES, MAP = (
    "embedded again",
    "old model",
    "rotation",
    "least squares",
    "migration",
)
NEIGHBORS, NDCG, PRECISION = "recall@10", "nDCG@10", "precision@10"


@dataclass(frozen=True)
class Unseen:
    """The deciding score for queries of classes whose labels the map has not used.

    Attributes
    ----------
    migration, reference : float
    test : PairedTest
        The test of their difference, with classes as units.
    interval : tuple of float
        The 95 % interval of the share of the reference's score that is kept, in excess of chance.
    """

    migration: float
    reference: float
    test: PairedTest
    interval: tuple[float, float]


@dataclass(frozen=True)
class MigrationVerdict:
    """The result of `evaluate_migration`.

    Attributes
    ----------
    verdict : {"migrate", "migrate with a loss", "embed again"}
    scores : dict of str to dict of str to float
        By kind of search ("embedded again", "old model", "rotation", "least squares", "migration")
        and score name: "recall@10" and "nDCG@10" of the new model's own ten neighbours, and with
        labels "precision@10".
    score : str
        The deciding score: "precision@10" with labels, else "recall@10".
    reference : str
        What the migration is compared with: embedding everything again or, if its search is better
        by labels, the old model.
    test : PairedTest
        Difference of the migration from the reference, in the deciding score.
    kept : float
        Share of the reference's score that is kept, in excess of chance.
    interval : tuple of float
        The 95 % interval of `kept`; see `statistics.ratio_interval`.
    unseen : Unseen or None
        Result of another map, learned without the labels of a quarter of the classes, for queries
        of these classes; None unless the map uses labels and there are eight classes or more.
    curve : dict of int to float
        The deciding score by number of rows used for learning: a quarter, half, and all of the rows
        that were not held out.
    growth : PairedTest
        Difference between the last two scores of the curve.
    map : Migration
        The map that was evaluated.
    n_queries, n_documents, n_rows : int
        Numbers of scored held-out queries, of held-out documents, and of distinct rows.
    """

    verdict: str
    scores: dict[str, dict[str, float]]
    score: str
    reference: str
    test: PairedTest
    kept: float
    interval: tuple[float, float]
    unseen: Unseen | None
    curve: dict[int, float]
    growth: PairedTest
    map: Migration
    n_queries: int
    n_documents: int
    n_rows: int

    @property
    def gain_of_more(self) -> float:
        """Return the gain in score that a sample of unlimited size would bring, extrapolated.

        The error of a linear map falls as 1 / rows, so all further doublings together gain as much
        as the last one did. The result is 0 if that gain was not significant.
        """
        return self.growth.difference if self.growth.interval()[0] > 0 else 0.0

    @property
    def rows_needed(self) -> float:
        """Return the number of rows needed to keep .95, extrapolated; inf if no number suffices."""
        if self.kept >= KEPT:
            return max(self.curve)
        lost = self.scores[self.reference][self.score] - self.scores[MAP][self.score]
        missing = lost * (1 - (1 - KEPT) / (1 - self.kept))
        gain = self.gain_of_more
        return max(self.curve) / (1 - missing / gain) if gain > missing else np.inf


def evaluate_migration(
    old: Any,
    new: Any,
    *,
    side: str = "query",
    labels: Any = None,
    random_state: int = 0,
) -> MigrationVerdict:
    """Evaluate with what loss a new model can search the index of an old one through a map.

    Half of the rows, but at most 4,000, are held out: a quarter of these are queries, the others
    the documents of an index. The map, including its setting, is learned from the remaining rows,
    so it is slightly worse than one learned from all.

    With r the reference's score, s the migration's and c that of chance, the share (s - c) / (r -
    c) is kept. The verdict is "migrate" if the lower end of its 95 % interval is at least .95, and
    "embed again" if the upper end is less than half. Otherwise, or if queries of classes whose
    labels the map has not used keep significantly less than .95, it is "migrate with a loss". That
    k of the score is kept is thus decided by the test of s - k r - (1 - k) c over the queries.

    Parameters
    ----------
    old, new : arrays of shape (n, p) and (n, m)
        The same items, embedded by each of the models; at least 80 distinct ones.
    side : {"query", "document"}, default="query"
        What is mapped: new queries into the old index, or the documents of the old index into the
        new space.
    labels : array of shape (n,), default=None
        Classes; -1, None or NaN for none. They are used for the map, and precision@10 decides; the
        reference is then the search of the better of the two models. Without labels, the new
        model's own ten neighbours decide.
    random_state : int, default=0

    Returns
    -------
    MigrationVerdict

    Raises
    ------
    ValueError
        If there are fewer than 80 distinct rows, or if no class has two rows, or neither model is
        shown to find the labels better than chance does.

    Notes
    -----
    Rows that are exact duplicates under the new model are left out. Intervals are over queries,
    widened since the map depends on the rows it was learned from
    (`statistics.paired_test_by_rows`).
    """
    check_choice(side, "side", SIDES)
    old, new = (unit_rows(np.asarray(Z)) for Z in (old, new))
    check_consistent_length(old, new)
    codes = None if labels is None else encode_partial_labels(labels)[1]
    first = np.sort(np.unique(new, axis=0, return_index=True)[1])
    if len(first) < FEWEST:
        raise ValueError(
            f"{len(first)} distinct rows are too few to hold some out: give at least {FEWEST}."
        )
    X, Y = (new, old) if side == "query" else (old, new)
    sample = Sample(X, Y, side, codes).some(first)
    fit, documents, queries = sample.held_out(np.random.default_rng(random_state))
    judge = Judge(Search(documents, queries, N_NEIGHBORS), len(fit))

    def learned(some: Sample) -> Migration:
        model = Migration(side=side, random_state=random_state)
        return model.fit(some.X, some.Y, labels=some.codes)

    model = learned(fit)
    maps = {
        ROTATION: Migration(side=side, reverse=0, alpha=np.inf).fit(fit.X, fit.Y),
        LEAST_SQUARES: Migration(side=side, reverse=0, alpha=0).fit(fit.X, fit.Y),
        MAP: model,
    }
    scores = {AGAIN: judge.scores(judge.own), OLD: judge.scores(judge.search.by_model("old"))}
    scores |= {name: judge.scores(judge.by_map(one)) for name, one in maps.items()}
    means = {way: {name: float(s.mean()) for name, s in scores[way].items()} for way in scores}
    score = judge.score
    of_models = (AGAIN, OLD) if score == PRECISION else (AGAIN,)
    reference = max(of_models, key=lambda way: means[way][score])
    of_map, of_reference = scores[MAP][score], scores[reference][score]
    low, high = judge.kept(of_map, of_reference)
    if judge.above_chance(of_reference).mean() <= 0 or np.isinf(low):
        raise ValueError(
            f"neither model finds the labels: precision@10 is {means[reference][score]:.3f}, "
            "not shown to be better than chance. Leave them out, or give others, or more rows."
        )
    against = judge.test(of_map, of_reference)
    smaller = [len(fit) // 4, len(fit) // 2]
    of_smaller = [
        judge.scores(judge.by_map(learned(fit.some(np.arange(n)))))[score] for n in smaller
    ]
    curve = {n: float(values.mean()) for n, values in zip(smaller, of_smaller, strict=True)}
    unseen, verdict = None, MIGRATE if low >= KEPT else EMBED_AGAIN if high < LOST else WITH_LOSS
    if model.label_weight_ > 0:
        without, hidden = fit.without_classes(np.random.default_rng(random_state))
        found = judge.scores(judge.by_map(learned(without)))[score]
        unseen = judge.of_classes(hidden, found, of_reference)
    if unseen and verdict == MIGRATE and unseen.interval[1] < KEPT:
        verdict = WITH_LOSS
    return MigrationVerdict(
        verdict=verdict,
        scores=means,
        score=score,
        reference=reference,
        test=against,
        kept=1 + against.difference / judge.above_chance(of_reference).mean(),
        interval=(low, high),
        unseen=unseen,
        curve=curve | {len(fit): means[MAP][score]},
        growth=judge.test(of_map, of_smaller[-1]),
        map=model,
        n_queries=int(judge.asked.sum()),
        n_documents=len(documents),
        n_rows=len(sample),
    )


class Judge:
    """The scores of the results of held-out queries.

    Attributes
    ----------
    search : Search
    n_fit : int
        Number of rows from which maps were learned.
    own : int array of shape (q, 10)
        Results of the new model's own search.
    asked : boolean array of shape (q,)
        The queries that are scored by labels; without labels, all.
    """

    def __init__(self, search: Search, n_fit: int) -> None:
        self.search, self.n_fit = search, n_fit
        self.own = search.by_model("new")
        self.asked, self.score = np.ones(len(self.own), bool), NEIGHBORS
        if search.queries.codes is not None:
            self.asked, self.score = search.has_label(), PRECISION
            if not self.asked.any():
                raise ValueError("labels name no class of two rows: leave them out, or give more.")

    def by_map(self, model: Any) -> np.ndarray:
        """Return the results through a fitted map."""
        return self.search.by_map(model.components_, model.bias_)

    def scores(self, ranked: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of queries by name; scores by labels only for labelled queries."""
        n, k = self.own.shape
        hits = shared(ranked, self.own).astype(float)
        of_own = retrieval_scores(hits, np.ones((n, N_NEIGHBORS)), np.full(n, k))
        scores = {NEIGHBORS: of_own["precision@10"], NDCG: of_own["nDCG@10"]}
        if self.score == PRECISION:
            scores[PRECISION] = self.search.same_label(ranked)[self.asked].mean(axis=1)
        return scores

    def above_chance(self, a: np.ndarray) -> np.ndarray:
        """Return the deciding scores of queries minus those of random documents."""
        q, d = self.search.queries.codes, self.search.documents.codes
        if q is None or d is None:
            return a - N_NEIGHBORS / len(self.search.documents)
        return a - np.mean(q[self.asked][:, None] == d, axis=1)

    def test(self, a: np.ndarray, b: np.ndarray) -> PairedTest:
        """Test a difference in the deciding score."""
        return paired_test_by_rows([a], [b], [np.flatnonzero(self.asked)], self.n_fit)

    def kept(self, a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
        """Return the interval of the share of the deciding scores b that a keeps."""
        a, b = self.above_chance(a), self.above_chance(b)
        return ratio_interval([a], [b], [np.flatnonzero(self.asked)], self.n_fit)

    def of_classes(self, chosen: np.ndarray, a: np.ndarray, b: np.ndarray) -> Unseen | None:
        """Return the means and the test of their difference for queries of some classes."""
        codes = self.search.queries.codes
        assert codes is not None
        rows = np.flatnonzero(self.asked)
        some = chosen[codes[rows]]
        if not some.any():
            return None
        above_a, above_b = self.above_chance(a)[some], self.above_chance(b)[some]
        interval = ratio_interval([above_a], [above_b], [rows[some]], self.n_fit, units=codes)
        a, b = a[some], b[some]
        test = paired_test_by_rows([a], [b], [rows[some]], self.n_fit, units=codes)
        return Unseen(float(a.mean()), float(b.mean()), test, interval)
