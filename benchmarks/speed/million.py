"""A million rows on one machine: time, memory and what the map is worth, and what approximate
search finds.

    python -m benchmarks.speed.million fit --methods DNE NMMP LPP --rows 10000 100000 1000000
    python -m benchmarks.speed.million fit --methods NCA --rows 10000 100000 1000000
    python -m benchmarks.speed.million fit --methods DNE NMMP --rows 1000000 --world nuisance
    python -m benchmarks.speed.million peers --rows 1000000 --world modes nuisance
    NEARKIN_DATA=folder python -m benchmarks.speed.million search --rows 100000 0 --world modes nuisance
    NEARKIN_DATA=folder python -m benchmarks.speed.million mnist --methods DNE NMMP --search exact approximate

No rows at all stand for MNIST: 60,000 to learn from, 10,000 held out; a search goes over all
70,000.

Rows are drawn: 384 features in float32, 100 classes of five modes each in 8 directions, 12 more
that vary as much and carry no information, and a little noise in all. In the world "nuisance" one
mode each lies in 24 directions, and 30 more without information have three times the spread of the
classes and exponential tails: distances are mostly theirs. Peers are scikit-learn's exact search and
faiss' own IVF index, with as many probes as it needs for the recall of nearkin: ten neighbours of
every row among all, by the time for 2,000 of them. Every fit runs in a process of its own, which
imports faiss or does not; memory is what the process holds above the rows. Accuracy: 3-NN of 20,000
rows that were held out, exact.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import product
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from benchmarks.data import published_split
from benchmarks.measure import apart, command, memory, timed
from benchmarks.report import head, row
from nearkin import DNE, LPP, NCA, NMMP
from nearkin.neighbors import nearest, nearest_other_class, nearest_same_class, searcher
from nearkin.neighbors.search import measured_recall

FEATURES, CLASSES, NOISE = 384, 100, 0.1
HELD_OUT = 20_000
AT_A_TIME = 10_000
EXACT_ROWS = 100_000  # an exact search of more takes too long here
QUERIES = 2000  # for which peers are timed
MODELS: dict[str, Any] = {
    "PCA": lambda m, search: PCA(m, svd_solver="covariance_eigh"),
    "DNE": lambda m, search: DNE(m, search=search),
    "NMMP": lambda m, search: NMMP(m, n_neighbors_within=10, search=search),
    "NMMP without shrinkage": lambda m, search: NMMP(
        m, n_neighbors_within=10, shrinkage=None, search=search
    ),
    "LPP": lambda m, search: LPP(m, search=search),
    "NCA": lambda m, search: NCA(m, solver="sgd", search=search, random_state=0),
}
QUESTIONS = {
    "same class": nearest_same_class,
    "other classes": nearest_other_class,
    "all": lambda X, y, k, search: nearest(X, k, search),
}
RELATION = {"same class": "same", "other classes": "other", "all": "all"}


def drawn(
    n: int, seed: int, world: str = "modes", features: int = FEATURES
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels; the classes are those of all seeds."""
    modes, informative, idle = (5, 8, 12) if world == "modes" else (1, 24, 30)
    of_world, rng = np.random.default_rng(0), np.random.default_rng(1 + seed)
    turn = np.linalg.qr(of_world.standard_normal((features, features)))[0].astype(np.float32)
    centres = of_world.normal(0, 1.5, (CLASSES, modes, informative)).astype(np.float32)
    spread = np.repeat(
        [0.6, 1.0 if world == "modes" else 4.5, NOISE],
        [informative, idle, features - informative - idle],
    ).astype(np.float32)
    nuisance = slice(informative, informative + idle)
    X, y = np.empty((n, features), np.float32), rng.integers(CLASSES, size=n)
    for start in range(0, n, AT_A_TIME):
        rows = slice(start, min(start + AT_A_TIME, n))
        E = rng.standard_normal((len(y[rows]), features), dtype=np.float32)
        if world == "nuisance":
            E[:, nuisance] = rng.laplace(scale=0.5**0.5, size=(len(E), idle))  # of unit variance
        E *= spread
        E[:, :informative] += centres[y[rows], rng.integers(modes, size=len(E))]
        X[rows] = E @ turn.T
    return X, y


class Peak:
    """The largest resident size of this process, above that at the start, in GB."""

    def __enter__(self) -> Peak:
        self.first = self.largest = self.now()
        self.over = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()

    def watch(self) -> None:
        while not self.over.wait(0.05):
            self.largest = max(self.largest, self.now())

    @staticmethod
    def now() -> float:
        return memory("VmRSS") / 1e9

    @property
    def above(self) -> float:
        return self.largest - self.first


def fit_one(name: str, n: int, search: str, m: int, world: str) -> dict[str, Any]:
    """Fit, and return the seconds, the memory and the accuracy; "raw" is no map. n = 0: MNIST."""
    drawn_rows = (*drawn(n, 1, world), *drawn(HELD_OUT, 2, world)) if n else None
    X, y, test, y_test = drawn_rows or published_split("mnist")
    result: dict[str, Any] = {}
    if name != "raw":
        model = MODELS[name](m, search)
        with Peak() as peak:
            run = timed(model.fit, X, y)
            result = {"seconds": run.seconds, "memory": peak.above}
        X, test = (model.transform(Z) for Z in (X, test))
    vote = KNeighborsClassifier(3, algorithm="brute").fit(X, y)
    return result | {"accuracy": 100 * vote.score(test, y_test)}


def search_one(relation: str, n: int, how: str, world: str) -> dict[str, Any]:
    """Search for ten neighbours of every row, and return the seconds; of an approximate search also
    its recall.
    """
    if n:
        X, y = drawn(n, 1, world)
    else:
        train, y_train, test, y_test = published_split("mnist")
        X, y = np.vstack([train, test]), np.concatenate([y_train, y_test])
    question = QUESTIONS[relation]
    run = timed(question, X, y, 10, searcher(how, len(y)))
    result = {"seconds": run.seconds}
    if how == "approximate":
        result["recall"] = measured_recall(X, y, run.result, RELATION[relation])
    return result


def peers_one(n: int, world: str) -> dict[str, Any]:
    """Return the seconds of scikit-learn and of faiss, and with how many probes the latter has at
    least the recall of nearkin.
    """
    X, _ = drawn(n, 1, world)
    seconds, _, lists = timed(nearest, X, 10, searcher("approximate", n))
    result = {"nearkin": seconds}
    recall = measured_recall(X, None, lists, "all")
    queries = X[:: n // QUERIES][:QUERIES]
    exact = NearestNeighbors(n_neighbors=11, algorithm="brute")
    seconds, _, (_, true) = timed(lambda: exact.fit(X).kneighbors(queries))
    result["scikit-learn"] = seconds * n / QUERIES
    import faiss

    start = time.perf_counter()
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(FEATURES), FEATURES, int(8 * n**0.5))
    index.train(X[:: max(1, n // (40 * index.nlist))])
    index.add(X)
    built, index.nprobe, found = time.perf_counter() - start, 8, 0.0
    while found < recall:
        index.nprobe *= 2
        seconds, _, (_, near) = timed(index.search, queries, 11)
        found = np.mean([np.isin(a[1:], b).mean() for a, b in zip(true, near, strict=True)])
    result["faiss"] = built + seconds * n / QUERIES
    return result | {"recall": recall, "recall of faiss": found, "probes": index.nprobe}


def fit(
    methods: tuple[str, ...] = ("DNE", "NMMP", "LPP", "NCA"),
    rows: tuple[int, ...] = (10_000, 100_000, 1_000_000),
    components: int = 64,
    search: tuple[str, ...] = ("approximate",),
    world: tuple[str, ...] = ("modes",),
) -> None:
    """Print the seconds, the memory and the accuracy of fits."""
    names, found = ("raw", "PCA", *methods), {}
    for n, name in product(rows, names):
        found[name, n] = apart(fit_one, name, n, search[0], components, world[0])
        print(name, n, found[name, n], file=sys.stderr, flush=True)
    first, *others = (f"{n:,}" for n in rows)
    starts = f"{first} rows", f"memory, GB: {first}", f"3-NN, %: {first}"
    head("method", *(one for start in starts for one in (start, *others)))
    for name in names:
        fits = [found[name, n] for n in rows]
        cells = [""] * (2 * len(rows))
        if name != "raw":
            took = [one["seconds"] for one in fits]
            cells = [f"{one:.1f} s" if one < 10 else f"{one:.0f} s" for one in took]
            cells += [f"{one['memory']:.1f}" for one in fits]
        row(name, *cells, *(f"{one['accuracy']:.1f}" for one in fits))


def mnist(
    methods: tuple[str, ...] = ("DNE", "NMMP", "NCA"),
    components: int = 64,
    search: tuple[str, ...] = ("approximate",),
) -> None:
    """Print the seconds, the memory and the accuracy of fits to MNIST."""
    m = f"method, {components} dimensions"
    head(m, "rows", "search", "seconds", "memory, GB", "held-out 3-NN, %")
    for name, how in (("raw", ""), ("PCA", ""), *product(methods, search)):
        found = apart(fit_one, name, 0, how or "exact", components, "modes")
        cost = [f"{found['seconds']:.3g}", f"{found['memory']:.1f}"] if name != "raw" else ["", ""]
        row(name, "60,000", how, *cost, f"{found['accuracy']:.2f}")


def search(
    rows: tuple[int, ...] = (10_000, 100_000, 1_000_000), world: tuple[str, ...] = ("modes",)
) -> None:
    """Print the seconds of exact and approximate search, and the recall."""
    head("rows", "world", "ten neighbours", "exact, s", "approximate, s", "ratio", "recall")
    worlds = [(n, of) for n in rows for of in (world if n else ("MNIST",))]
    for (n, of), relation in product(worlds, QUESTIONS):
        found = apart(search_one, relation, n, "approximate", of)
        exact = ratio = ""
        if n <= EXACT_ROWS:
            seconds = apart(search_one, relation, n, "exact", of)["seconds"]
            exact, ratio = f"{seconds:.0f}", f"{seconds / found['seconds']:.1f}"
        about = f"{n or 70_000:,}", of, relation
        row(*about, exact, f"{found['seconds']:.1f}", ratio, f"{found['recall']:.3f}")


def peers(
    rows: tuple[int, ...] = (10_000, 100_000, 1_000_000), world: tuple[str, ...] = ("modes",)
) -> None:
    """Print the seconds of nearkin, scikit-learn and faiss."""
    theirs = "scikit-learn, exact, s", "faiss, s", "recall", "probes"
    head("rows", "world", "nearkin, s", "recall", *theirs)
    for n, of in product(rows, world):
        found = apart(peers_one, n, of)
        ours = f"{found['nearkin']:.0f}", f"{found['recall']:.3f}"
        exact, faiss = f"{found['scikit-learn']:.0f}", f"{found['faiss']:.0f}"
        row(f"{n:,}", of, *ours, exact, faiss, f"{found['recall of faiss']:.3f}", found["probes"])


if __name__ == "__main__":
    command(fit, search, peers, mnist)
