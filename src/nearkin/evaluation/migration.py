"""What a map between two models' embeddings keeps of the search, against embedding everything
again: a verdict, by held-out queries and documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._blocks import unit_rows
from .._validation import check_choice, encode_partial_labels
from ..vectors import Migration, Procrustes, retrieval_scores
from ..vectors.migration import FEWEST, SIDES, Sample, Search, shared
from .statistics import PairedTest, paired_test_by_rows

N_NEIGHBORS = 10
KEPT, LOST = 0.95, 0.5  # shares of the search that are kept: "migrate", and "embed again"
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
class MigrationVerdict:
    """What `evaluate_migration` found.

    Attributes
    ----------
    verdict : {"migrate", "migrate with a loss", "embed again"}
    scores : dict of str to dict of str to float
        By way of search ("embedded again", "old model", "rotation", "least squares", "migration")
        and name: "recall@10" and "nDCG@10" of the new model's own ten neighbours, and with labels
        "precision@10".
    score : str
        What decides: "precision@10" with labels, else "recall@10".
    reference : str
        What the migration is compared with: embedding everything again, or the old model where
        labels show its search to be better.
    test : PairedTest
        Difference of the migration to that, in the score.
    kept : float
    interval : tuple of float
        Share of the reference's score that is kept, above what chance would find, with its 95 %
        interval.
    curve : dict of int to float
        The score by rows that the map was learned from: a quarter, a half, and all that were not
        held out.
    growth : PairedTest
        Difference of the last two.
    map : Migration
        The one that was evaluated.
    n_queries, n_documents, n_rows : int
        Held out; and rows of the sample, without duplicates.
    """

    verdict: str
    scores: dict[str, dict[str, float]]
    score: str
    reference: str
    test: PairedTest
    kept: float
    interval: tuple[float, float]
    curve: dict[int, float]
    growth: PairedTest
    map: Migration
    n_queries: int
    n_documents: int
    n_rows: int

    @property
    def gain_of_more(self) -> float:
        """Return the score that a sample of any size would add, extrapolated; 0 where doubling it
        to what it is added nothing that is shown.

        The error of a linear map falls as 1 / rows: what the last doubling has added, all that
        follow will add together.
        """
        return self.growth.difference if self.growth.interval()[0] > 0 else 0.0

    @property
    def rows_needed(self) -> float:
        """Return the rows to learn from with which .95 would be kept, extrapolated; inf if none."""
        lost = self.scores[self.reference][self.score] - self.scores[MAP][self.score]
        missing = lost * (1 - (1 - KEPT) / max(1 - self.kept, 1e-12))
        if missing <= 0:
            return max(self.curve)
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
    """Say whether a new model can search the index of an old one through a map, at what loss.

    Half of the rows are held out, at most 4,000: a quarter of these are queries, the others the
    documents of an index. The map is learned from the rows that are left, with its setting chosen
    inside them, so it is a little worse than one that is learned from all.

    With r the reference's score, s the migration's and c what chance would find, the share (s - c)
    / (r - c) is kept. "migrate": at least .95, at the lower end of the 95 % interval. "embed
    again": less than half, at its upper end. Else "migrate with a loss".

    Parameters
    ----------
    old, new : arrays of shape (n, p) and (n, m)
        The same items, embedded by either model; n >= 80.
    side : {"query", "document"}, default="query"
        What is mapped: new queries into the old index, or the documents of the old index into the
        new space.
    labels : array of shape (n,), default=None
        Classes, -1, None or NaN for none. They take part in the map, and decide by precision@10;
        the reference is then the better of both models' own search. Without, the new model's own
        ten neighbours decide.
    random_state : int, default=0

    Returns
    -------
    MigrationVerdict

    Notes
    -----
    Rows that repeat a row exactly, by the new model, are left out. Intervals are those of queries,
    widened for the rows that the map was learned from (`statistics.paired_test_by_rows`).
    """
    check_choice(side, "side", SIDES)
    old, new = (unit_rows(np.asarray(Z)) for Z in (old, new))
    check_consistent_length(old, new)
    codes = None if labels is None else encode_partial_labels(labels)[1]
    X, Y = (new, old) if side == "query" else (old, new)
    first = np.sort(np.unique(new, axis=0, return_index=True)[1])
    if len(first) < FEWEST:
        raise ValueError(
            f"{len(first)} distinct rows are too few to hold some out: give at least {FEWEST}."
        )
    sample = Sample(X, Y, side, codes).some(first)
    fit, documents, queries = sample.held_out(np.random.default_rng(random_state))
    search = Search(documents, queries)
    asked = search.has_label() if codes is not None else np.ones(len(queries), bool)
    if not asked.any():
        raise ValueError("labels name no class of two rows: leave them out, or give more.")
    own = search.by_model("new", N_NEIGHBORS)

    def learned(n: int | None = None) -> Migration:
        some = fit.some(np.arange(len(fit) if n is None else n))
        model = Migration(side=side, random_state=random_state)
        return model.fit(some.X, some.Y, labels=some.codes)

    def found(model: Any) -> np.ndarray:
        return search.by_map(model.components_, model.bias_, N_NEIGHBORS)

    def scores(ranked: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of every query."""
        n_own = np.full(len(own), own.shape[1])
        of_own = retrieval_scores(
            shared(ranked, own).astype(float), np.ones((len(own), N_NEIGHBORS)), n_own
        )
        result = {NEIGHBORS: of_own["precision@10"], NDCG: of_own["nDCG@10"]}
        if codes is not None:
            result[PRECISION] = search.same_label(ranked)[asked].mean(axis=1)
        return result

    sizes = [len(fit) // 4, len(fit) // 2, len(fit)]
    quarter, half, full = learned(sizes[0]), learned(sizes[1]), learned()
    least_squares = Migration(side=side, reverse=0, alpha=0, label_weight=0).fit(fit.X, fit.Y)
    ways = {
        AGAIN: scores(own),
        OLD: scores(search.by_model("old", N_NEIGHBORS)),
        ROTATION: scores(found(Procrustes().fit(fit.X, fit.Y))),
        LEAST_SQUARES: scores(found(least_squares)),
        MAP: scores(found(full)),
    }
    score = NEIGHBORS if codes is None else PRECISION
    means = {
        way: {name: float(value.mean()) for name, value in ways[way].items()} for way in ways
    }
    of_models = (AGAIN,) if codes is None else (AGAIN, OLD)
    reference = max(of_models, key=lambda way: means[way][score])
    by_chance = N_NEIGHBORS / len(documents)
    if codes is not None:
        assert queries.codes is not None
        assert documents.codes is not None
        sizes_of_classes = np.bincount(documents.codes + 1, minlength=codes.max() + 2)
        by_chance = float(sizes_of_classes[queries.codes[asked] + 1].mean() / len(documents))
    above_chance = means[reference][score] - by_chance
    if above_chance <= 0:
        raise ValueError(
            f"neither model finds the labels (precision@10 {means[reference][score]:.3f}, by "
            f"chance {by_chance:.3f}): leave them out, or give others."
        )

    def test(a: np.ndarray, b: np.ndarray) -> PairedTest:
        return paired_test_by_rows([a], [b], [np.flatnonzero(asked)], len(fit))

    against = test(ways[MAP][score], ways[reference][score])
    low, high = (1 + end / above_chance for end in against.interval())
    kept = 1 + against.difference / above_chance
    verdict = MIGRATE if low >= KEPT else EMBED_AGAIN if high < LOST else WITH_LOSS
    at_half = scores(found(half))[score]
    at_quarter = float(scores(found(quarter))[score].mean())
    curve = [at_quarter, float(at_half.mean()), means[MAP][score]]
    return MigrationVerdict(
        verdict,
        means,
        score,
        reference,
        against,
        kept,
        (low, high),
        dict(zip(sizes, curve, strict=True)),
        test(ways[MAP][score], at_half),
        full,
        int(asked.sum()),
        len(documents),
        len(sample),
    )
