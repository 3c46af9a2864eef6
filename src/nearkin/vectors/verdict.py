"""Evaluation of a map between two models' embeddings against embedding everything again.

A verdict from held-out queries and documents says how much of the search the map preserves, if
labels or judgements show which results are right. Without them, the map can only be compared with
the new model's own neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._blocks import unit_rows
from .._labels import encode_partial_labels
from .._validation import check_choice, check_consistent_length
from ..statistics import PairedTest, paired_test_by_rows, ratio_interval
from .judgements import FOLDS, Relevance, judged_matrix, relevance_matrix
from .migration import FEWEST, SIDES, Migration, Sample, Search, shared
from .retrieval import retrieval_scores

N_NEIGHBORS = 10
KEPT, LOST = 0.95, 0.5  # kept shares of a search, for "migrate" (at least) and "embed again" (less)
# The same share of the new model's own neighbours: whatever is relevant, the precision at ten of
# two searches differs by at most the share of results that they do not have in common. So at least
# .95 of a precision of .6 above chance is kept.
SAME = 0.97
RELATED = 0.001  # level at which two models are shown to agree at all
FEWEST_QUERIES = 2 * FOLDS  # judged ones
MIGRATE, WITH_LOSS, EMBED_AGAIN = "migrate", "migrate with a loss", "embed again"
UNKNOWN = "unknown"
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
    verdict : {"migrate", "migrate with a loss", "embed again", "unknown"}
        "unknown" only without labels and judgements.
    scores : dict of str to dict of str to float
        By kind of search ("embedded again", "old model", "rotation", "least squares", "migration")
        and score name: "recall@10" of the new model's own ten neighbours, "precision@10" with
        labels, and "nDCG@10" with judgements.
    score : str
        The deciding score: "precision@10", "nDCG@10" or, with neither labels nor judgements,
        "recall@10".
    reference : str
        What the migration is compared with: embedding everything again or, if its search is better
        by labels or judgements, the old model.
    test : PairedTest
        Difference of the migration from the reference, in the deciding score.
    kept : float
        Share of the reference's score that is kept, in excess of chance.
    interval : tuple of float
        The 95 % interval of `kept`; see `statistics.ratio_interval`.
    unseen : Unseen or None
        Result of another map, learned without the labels of a quarter of the classes but with the
        same setting, for queries of these classes; None unless the map uses labels and there are
        eight classes or more.
    curve : dict of int to float
        The deciding score by number of rows used for learning: a quarter, half, and all of the rows
        that were not held out; the setting is the same.
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
    def enough(self) -> float:
        """Return the share of the reference's score that must be kept for "migrate"."""
        return SAME if self.score == NEIGHBORS else KEPT

    @property
    def gain_of_more(self) -> float:
        """Return the gain in score that a sample of unlimited size would bring, extrapolated.

        The error of a linear map falls as 1 / rows, so all further doublings together gain as much
        as the last one did. The result is 0 if that gain was not significant.
        """
        return self.growth.difference if self.growth.interval()[0] > 0 else 0.0

    @property
    def rows_needed(self) -> float:
        """Return the number of rows to keep `enough`, extrapolated; inf if no number suffices."""
        if self.kept >= self.enough:
            return max(self.curve)
        lost = self.scores[self.reference][self.score] - self.scores[MAP][self.score]
        missing = lost * (1 - (1 - self.enough) / (1 - self.kept))
        gain = self.gain_of_more
        return max(self.curve) / (1 - missing / gain) if gain > missing else np.inf


def evaluate_migration(
    old: Any,
    new: Any,
    *,
    side: str = "query",
    labels: Any = None,
    queries: tuple[Any, Any] | None = None,
    relevance: Any = None,
    random_state: int = 0,
) -> MigrationVerdict:
    """Evaluate how much is lost if a new model searches an old one's index through a map.

    Half of the rows, but at most 4,000, are held out: a quarter of these are queries, the others
    the documents of an index. With judged queries, half of the rows are the documents. The map,
    including its setting, is learned from the remaining rows, so it is slightly worse than one
    learned from all. The setting is chosen once, without the held-out items but with the labels of
    all classes of the others: the maps of `curve` and `unseen` have it, too, and a map of all rows
    should (`Migration.same_setting`).

    With r the reference's score, s the migration's and c that of chance, the share (s - c) / (r -
    c) is kept. With labels or judgements, the verdict is "migrate" if the lower end of its 95 %
    interval is at least .95, and "embed again" if the upper end is less than half. Otherwise, or if
    queries of classes whose labels the map has not used keep significantly less than .95, it is
    "migrate with a loss". That k of the score is kept is thus decided by the test of s - k r -
    (1 - k) c over the queries.

    Without, the score is the share of the new model's own ten neighbours. Two good models agree on
    about half of these, and which of them is right when they do not is unknown. The verdict is
    "migrate" if at least .97 is kept, as the precision by any judgements then differs by at most
    .03 from that of the new model; "embed again" if less than half is kept, and the results of a
    query are not shown to agree with its neighbours better than those of other queries do; else
    "unknown".

    Parameters
    ----------
    old, new : arrays of shape (n, p) and (n, m)
        The same items, embedded by each of the models; at least 80 distinct ones.
    side : {"query", "document"}, default="query"
        What is mapped: new queries into the old index, or the documents of the old index into the
        new space.
    labels : array of shape (n,), default=None
        Classes; -1, None or NaN for none. They are used for the map, and precision@10 decides; the
        reference is then the search of the better of the two models.
    queries : pair of arrays of shape (n_queries, p) and (n_queries, m), default=None
        Queries, embedded by the old and by the new model, in place of labels.
    relevance : array of shape (n_judgements, 2 or 3), or sparse matrix, default=None
        The relevance of the rows to these queries, as in `EmbeddingAdapter.fit_relevance`. nDCG@10
        decides; the map does not use it.
    random_state : int, default=0

    Returns
    -------
    MigrationVerdict

    Raises
    ------
    ValueError
        If there are fewer than 80 distinct rows, or no class of two rows, or fewer than eight
        queries with a relevant document, or neither model is shown to find what is relevant better
        than chance does.

    Notes
    -----
    Rows that are exact duplicates under the new model are left out. Intervals are over queries,
    widened since the map depends on the rows it was learned from
    (`statistics.paired_test_by_rows`).
    """
    check_choice(side, "side", SIDES)
    if (queries is None) != (relevance is None) or (labels is not None and queries is not None):
        raise ValueError("give labels, or queries and their relevance, or neither.")
    old, new = (unit_rows(np.asarray(Z)) for Z in (old, new))
    check_consistent_length(old, new)
    codes = None if labels is None else encode_partial_labels(labels)[1]
    _, first, copy_of = np.unique(new, axis=0, return_index=True, return_inverse=True)
    if len(first) < FEWEST:
        raise ValueError(
            f"{len(first)} distinct rows are too few to hold some out: give at least {FEWEST}."
        )

    def sample_of(old: np.ndarray, new: np.ndarray) -> Sample:
        return Sample(*((new, old) if side == "query" else (old, new)), side, codes)

    sample, rng = sample_of(old, new).some(np.sort(first)), np.random.default_rng(random_state)
    if queries is None or relevance is None:
        fit, documents, asked = sample.held_out(rng)
        known = None if codes is None else same_class(asked, documents)
        score = NEIGHBORS if known is None else PRECISION
    else:
        of_old, of_new = (unit_rows(np.asarray(Z)) for Z in queries)
        check_consistent_length(of_old, of_new)
        if (of_old.shape[1], of_new.shape[1]) != (old.shape[1], new.shape[1]):
            raise ValueError(
                f"queries have {of_old.shape[1]} and {of_new.shape[1]} features, old and new "
                f"{old.shape[1]} and {new.shape[1]}: embed them by the same two models."
            )
        asked, score = sample_of(of_old, of_new), NDCG
        R = relevance_matrix(relevance, (len(asked), len(new))).tocoo()
        place = np.argsort(np.argsort(first))[copy_of.ravel()]
        R = judged_matrix(R.row, place[R.col], R.data, (len(asked), len(sample)))
        rows, fit_rows = np.split(rng.permutation(len(sample)), [len(sample) // 2])
        fit, documents = sample.some(fit_rows), sample.some(rows)
        known = Relevance(asked.X, documents.X, R[:, rows], np.arange(len(asked)))
        if len(known) < FEWEST_QUERIES:
            raise ValueError(
                f"{len(known)} queries have a relevant row in the half that is held out: give at "
                f"least {FEWEST_QUERIES}."
            )
    judge = Judge(Search(documents, asked, N_NEIGHBORS), len(fit), score, known)

    model = Migration(side=side, random_state=random_state).fit(fit.X, fit.Y, labels=fit.codes)

    def found_from(some: Sample) -> np.ndarray:
        again = model.same_setting(len(some) / len(fit)).fit(some.X, some.Y, labels=some.codes)
        return judge.scores(judge.by_map(again))[score]

    maps = {
        ROTATION: Migration(side=side, reverse=0, alpha=np.inf).fit(fit.X, fit.Y),
        LEAST_SQUARES: Migration(side=side, reverse=0, alpha=0).fit(fit.X, fit.Y),
        MAP: model,
    }
    scores = {AGAIN: judge.scores(judge.own), OLD: judge.scores(judge.search.by_model("old"))}
    scores |= {name: judge.scores(judge.by_map(one)) for name, one in maps.items()}
    means = {way: {name: float(s.mean()) for name, s in scores[way].items()} for way in scores}
    of_models = (AGAIN,) if score == NEIGHBORS else (AGAIN, OLD)
    reference = max(of_models, key=lambda way: means[way][score])
    of_map, of_reference = scores[MAP][score], scores[reference][score]
    low, high = judge.kept(of_map, of_reference)
    if judge.above_chance(of_reference).mean() <= 0 or np.isinf(low):
        raise ValueError(
            f"neither model finds what is relevant: {score} is {means[reference][score]:.3f}, not "
            "shown to be better than chance. Leave labels or judgements out, or give others, or "
            "more rows."
        )
    against = judge.test(of_map, of_reference)
    smaller = [len(fit) // 4, len(fit) // 2]
    of_smaller = [found_from(fit.some(np.arange(n))) for n in smaller]
    curve = {n: float(values.mean()) for n, values in zip(smaller, of_smaller, strict=True)}
    unseen, verdict = None, MIGRATE if low >= KEPT else EMBED_AGAIN if high < LOST else WITH_LOSS
    if score == NEIGHBORS and low < SAME and (verdict != EMBED_AGAIN or judge.is_related(model)):
        verdict = UNKNOWN
    if model.label_weight_ > 0:
        without, hidden = fit.without_classes(np.random.default_rng(random_state))
        unseen = judge.of_classes(hidden, found_from(without), of_reference)
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


def same_class(queries: Sample, documents: Sample) -> Relevance:
    """Return which documents have the label of a query; raise a ValueError if none has one."""
    q, d = queries.codes, documents.codes
    assert q is not None
    R = csr_array((q[:, None] == d) & (q[:, None] >= 0), dtype=np.float64)
    if not R.nnz:
        raise ValueError("labels name no class of two rows: leave them out, or give more.")
    return Relevance(queries.X, documents.X, R, np.arange(len(queries)))


class Judge:
    """The scores of the results of held-out queries.

    Attributes
    ----------
    search : Search
    n_fit : int
        Number of rows from which maps were learned.
    score : str
        The deciding score.
    known : Relevance or None
        What is relevant, if that is known.
    own : int array of shape (q, 10)
        Results of the new model's own search.
    asked : boolean array of shape (q,)
        The queries that are scored: those with a relevant document or, if none are known, all.
    """

    def __init__(self, search: Search, n_fit: int, score: str, known: Relevance | None) -> None:
        self.search, self.n_fit, self.score, self.known = search, n_fit, score, known
        self.own = search.by_model("new")
        self.asked = np.ones(len(self.own), bool) if known is None else known.n_relevant > 0

    def by_map(self, model: Any) -> np.ndarray:
        """Return the results through a fitted map."""
        return self.search.by_map(model.components_, model.bias_)

    def scores(self, ranked: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of queries by name; the deciding one only for those that are scored."""
        scores = {NEIGHBORS: shared(ranked, self.own).mean(axis=1)}
        if self.known is not None:
            gains = self.known.gains(np.flatnonzero(self.asked), ranked[self.asked])
            scores[self.score] = self._score(gains)
        return scores

    def _score(self, gains: np.ndarray) -> np.ndarray:
        """Return the deciding scores of results with these gains."""
        assert self.known is not None
        ideal = self.known.best_gains(np.flatnonzero(self.asked), np.arange(0))
        return retrieval_scores(gains, *ideal)[self.score]

    def above_chance(self, a: np.ndarray) -> np.ndarray:
        """Return the deciding scores of queries minus those of random documents."""
        n = len(self.search.documents)
        if self.known is None:
            return a - N_NEIGHBORS / n
        if self.score == PRECISION:
            return a - self.known.n_relevant[self.asked] / n
        expected = self.known.R[self.asked].sum(axis=1) / n
        return a - self._score(np.tile(expected[:, None], N_NEIGHBORS))

    def is_related(self, model: Any) -> bool:
        """Return whether mapped queries find their own neighbours better than those of others.

        Documents that are near to all queries are thus no evidence.
        """
        ranked, n = self.by_map(model), len(self.own)
        hits = shared(ranked, self.own).sum(axis=1)
        found_by_others = np.bincount(ranked.ravel(), minlength=len(self.search.documents))
        of_others = (found_by_others[self.own].sum(axis=1) - hits) / (n - 1)
        test = self.test(hits / N_NEIGHBORS, of_others / N_NEIGHBORS)
        return test.difference > 0 and test.p_value < RELATED

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
        some = np.isin(codes[rows], chosen)
        if not some.any():
            return None
        above_a, above_b = self.above_chance(a)[some], self.above_chance(b)[some]
        interval = ratio_interval([above_a], [above_b], [rows[some]], self.n_fit, units=codes)
        a, b = a[some], b[some]
        test = paired_test_by_rows([a], [b], [rows[some]], self.n_fit, units=codes)
        return Unseen(float(a.mean()), float(b.mean()), test, interval)
