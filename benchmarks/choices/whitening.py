"""Whether to whiten by RCA before DNE and NCA. Frozen: chosen on 2026-11-23 for 0.1.0, last run on
2026-11-26 with 0.3.0.

It led to: "So no method whitens by default", and the advice to whiten embeddings. For searches by
cosine in embeddings RCA() adds 1.2 points of precision@1 to DNE and 1.1 to NCA; to 3-NN on tables it adds -0.3 and -0.4 in
the mean, and -7.9 and -4.7 on the worst.

`searches`: banking77 (sentence embeddings, of unit length) and USPS (pixels), the training rows, of
which 2,500 search the others. `tables`: the tables of studies/defaults.py and its splits, in all
dimensions.
"""

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize

from benchmarks.data import published_split
from benchmarks.measure import command, timed
from benchmarks.report import head, percent, row
from benchmarks.studies.defaults import GROUPS, spectral_sets, split, voted
from nearkin import DNE, NCA, RCA, EmbeddingAdapter

IMAGES = ("usps", "mnist", "coil20_16", "umist_28x23", "orl_56x46")


def searches():
    X, y = published_split("banking77_minilm")[:2]
    sets = {"banking77": (normalize(X), y), "USPS": published_split("usps")[:2]}
    dne, nca = DNE(64, n_neighbors=10), NCA(64)
    methods = {
        "raw": FunctionTransformer(),
        "`PCA(64)`": PCA(64),
        "`RCA(64)`": RCA(64),
        "`DNE(64, n_neighbors=10)`": dne,
        "`NCA(64)`": nca,
        "`RCA()`, then `DNE(64, n_neighbors=10)`": make_pipeline(RCA(), dne),
        "`RCA()`, then `NCA(64)`": make_pipeline(RCA(), nca),
        "`EmbeddingAdapter(64)`": EmbeddingAdapter(64),
    }
    head("", *(cell for one in sets for cell in (f"{one}: precision@1", "precision@10", "seconds")))
    for name, method in methods.items():
        cells = []
        for X, y in sets.values():
            rows = np.random.default_rng(0).permutation(len(y))
            asked, others = rows[:2500], rows[2500:]
            fit = timed(clone(method).fit, X[others], y[others])
            Z, queries = fit.result.transform(X[others]), fit.result.transform(X[asked])
            index = NearestNeighbors(n_neighbors=10, metric="cosine").fit(Z)
            found = index.kneighbors(queries, return_distance=False)
            right = y[others][found] == y[asked][:, None]
            cells += [*percent([right[:, 0].mean(), right.mean()]), f"{fit.processor:.1f}"]
        row(name, *cells)


def tables():
    methods = {"DNE(n_neighbors=10)": DNE(n_neighbors=10), "NCA()": NCA()}
    gains = []
    names = [name for group in GROUPS.values() for name in group if name not in IMAGES]
    for _, X, y, n in spectral_sets(names):
        splitter = split(y, n, 5)
        gains.append([])
        for method in methods.values():
            alone, whitened = (
                np.mean(
                    [
                        voted(*maps).fit(X[a], y[a]).score(X[b], y[b])
                        for a, b in splitter.split(X, y)
                    ]
                )
                for maps in ((method,), (RCA(), method))
            )
            gains[-1].append(round(100 * (whitened - alone), 6))
    head("", "mean", "best", "worst", "tables that lose")
    for name, gain in zip(methods, np.transpose(gains), strict=True):
        cells = (f"{summary(gain):+.1f}" for summary in (np.mean, np.max, np.min))
        row(f"`RCA()`, then `{name}`", *cells, f"{np.sum(gain < 0)} of {len(gain)}")


if __name__ == "__main__":
    command(searches, tables, threads=1)
