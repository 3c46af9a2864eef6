"""Starts and sides of adapters of judged queries: what held-out queries choose, beside each choice
by itself.

    NEARKIN_DATA=folder python -m benchmarks.studies.starts starts
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from benchmarks.data import archive
from benchmarks.measure import command
from benchmarks.report import percent, table
from benchmarks.studies.adapt import added, banking77
from nearkin.vectors import Relevance, compare_vectors
from nearkin.vectors import comparison as adaptation
from nearkin.vectors.start import mean_scores

SIZES = (64, 128)
SINGLE = ("plda", "pca", "leading", "random")
KINDS = (adaptation.CENTRED, *adaptation.LEARNED)


def judged_sets() -> dict[str, Relevance]:
    """Return Cranfield, and banking77 by two models: 300 questions, to each of which ten of 3,000
    others, of its intent, were judged relevant.
    """
    z = archive("cranfield_minilm")
    at = z["relevance"][z["relevance"][:, 2] > 0, :2].astype(int).T
    Q, D = (z[name].astype(np.float32) for name in ("queries", "documents"))
    R = csr_array((np.ones(at.shape[1]), tuple(at)), shape=(len(Q), len(D)))
    R.data[:] = 1
    found = {"Cranfield, MiniLM": Relevance(Q, D, R, np.arange(len(Q)))}
    for name, model in (("MiniLM", "minilm"), ("wordllama", "wordllama")):
        X, y, _ = banking77(model)
        rng = np.random.default_rng(0)
        queries, documents = np.split(rng.permutation(len(y))[:3300], [300])
        same = y[queries][:, None] == y[documents]
        order = np.argsort(np.where(same, rng.random(same.shape), 2), axis=1)[:, :10]
        judged = np.take_along_axis(same, order, axis=1)
        at = np.repeat(np.arange(300), judged.sum(axis=1)), order[judged]
        R = csr_array((np.ones(len(at[0])), at), shape=same.shape)
        found[f"banking77, {name}"] = Relevance(X[queries], X[documents], R, np.arange(300))
    return found


def starts() -> str:
    """nDCG@10 of held-out queries, the means over four splits; the same with each start by itself,
    the other settings at their defaults.
    """
    lines = []
    for name, judged in judged_sets().items():
        chosen = compare_vectors(judged, sizes=SIZES)
        scores = {one.way: one.scores["queries"]["nDCG@10"] for one in chosen.results}
        by_start = {start: single(judged, start) for start in SINGLE}
        for way in (one for one in scores if one.kind in KINDS and one.quantize is None):
            of_starts = [by_start[start].get(way) for start in SINGLE]
            cells = [f"{100 * one:.1f}" if one is not None else "" for one in of_starts]
            status = next(one.status for one in chosen.results if one.way == way)
            added(lines, [name, way.name, *cells, *percent([scores[way]]), status])
        raw, best = scores[chosen.raw.way], max(scores.values())
        added(lines, [name, "raw", "", "", "", "", *percent([raw]), ""])
        advised = chosen.chosen.way
        print(name, "advised:", advised.name, scores[advised], "best:", best, chosen.settings)
    return table(["judged queries", "vectors", *SINGLE, "chosen", "verdict"], lines)


def single(judged: Relevance, start: str) -> dict[adaptation.Way, float]:
    """Return the mean scores of adapters with one start, over the splits of `compare_vectors`."""
    ways = [adaptation.Way(adaptation.ADAPTER, m) for m in (*SIZES, judged.queries.shape[1])]
    settings = {adaptation.ADAPTER: adaptation.SETTINGS[0] | {"start": start}}
    splits = list(judged.splits(np.random.default_rng(0)))
    found = {}
    for way in ways:
        vectors = (
            adaptation.vectors_of(
                way, split, judged, adaptation.adapter_of(way, split.train, settings)
            )
            for split in splits
        )
        found[way] = float(mean_scores(vectors, splits, judged, "nDCG@10", ["queries"])[0])
    return found


if __name__ == "__main__":
    command(starts)
