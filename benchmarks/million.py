"""A million rows on one machine: time, memory and what the map is worth, and what approximate
search finds.

    python benchmarks/million.py fit DNE NMMP LPP NCA --rows 10000 100000 1000000
    python benchmarks/million.py fit DNE NMMP NCA --rows 1000000 --world nuisance
    python benchmarks/million.py profile DNE --rows 1000000
    python benchmarks/million.py fit PairNCA --rows 100000
    python benchmarks/million.py search --rows 20000 100000 --world modes nuisance
    python benchmarks/million.py peers --rows 1000000 --world modes nuisance
    NEARKIN_DATA=folder python benchmarks/million.py search --rows 0
    NEARKIN_DATA=folder python benchmarks/million.py mnist DNE NMMP NCA --search exact approximate

No rows at all stand for MNIST: 60,000 to learn from, 10,000 held out; a search goes over all
70,000.

Rows are drawn: 384 features in float32, 100 classes of five modes each in 8 directions, 12 more
that vary as much and carry no information, and a little noise in all. In the world "nuisance" one
mode each lies in 24 directions, and 30 more without information have three times the spread of the
classes and exponential tails: distances are mostly theirs. A profile says how many seconds, added
over the threads, go into the steps of a fit. Peers are scikit-learn's exact search and faiss' own
IVF index, with as many probes as it needs for the recall of nearkin: ten neighbours of every row
among all, by the time for 2,000 of them. Every fit runs in a process
of its own, which imports faiss or does not; memory is what the process holds above the rows.
Accuracy: 3-NN of 20,000 rows that were held out, exact.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from nearkin import DNE, LPP, NCA, NMMP, ApproximateSearch, PairNCA
from nearkin.estimators import rows as estimator_rows
from nearkin.neighbors import (
    approximate,
    inverted_lists,
    nearest,
    nearest_other_class,
    nearest_same_class,
    searcher,
)

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
    "PairNCA": lambda m, search: PairNCA(m, solver="sgd", search=search, random_state=0),
    "NCA by L-BFGS": lambda m, search: NCA(m, search=search),
}
QUESTIONS = {
    "same class": nearest_same_class,
    "other classes": nearest_other_class,
    "all": lambda X, y, k, search: nearest(X, k, search),
}


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


def mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with np.load(Path(os.environ.get("NEARKIN_DATA", "")) / "mnist.npz") as data:
        X, y, test = data["X"].astype(np.float32), data["y"], data["split"] == 1
    return X[~test], y[~test], X[test], y[test]


def same_class_pairs(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the pairs of every row with its three nearest of the same class: all that PairNCA
    learns of labels.
    """
    graph = nearest_same_class(X, y, 3)
    return np.column_stack([np.repeat(np.arange(len(y)), np.diff(graph.indptr)), graph.indices])


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
        return (
            int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9
        )

    @property
    def above(self) -> float:
        return self.largest - self.first


# The steps of a fit, and the functions that take them.
STEPS: dict[str, tuple[Any, str]] = {
    "principal components for the search": (approximate, "projection"),
    "lists by k-means": (inverted_lists, "_k_means"),
    "how many lists to search": (inverted_lists.InvertedLists, "n_probes"),
    "search in the lists": (approximate, "_nearest_in_lists"),
    "search of whole classes": (approximate, "_nearest_members"),
    "candidates ranked again": (approximate, "_rank"),
    "scatters of graphs": (estimator_rows, "scatter"),
}


def profile_one(name: str, n: int, search: str, m: int, world: str) -> dict[str, float]:
    """Fit, and return the processor seconds of every step, of all threads, and of the whole fit."""
    X, y = drawn(n, 1, world)
    seconds = defaultdict[str, float](float)

    def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            # a step that the main thread takes may have threads of its own
            is_main = threading.current_thread() is threading.main_thread()
            clock = time.process_time if is_main else time.thread_time
            start = clock()
            result = function(*args, **kwargs)
            seconds[step] += clock() - start
            return result

        return run

    for step, (module, function) in STEPS.items():
        setattr(module, function, timed(step, getattr(module, function)))
    start, on_the_clock = time.process_time(), time.perf_counter()
    MODELS[name](m, search).fit(X, y)
    total = time.process_time() - start
    seconds["all else"] = total - sum(seconds.values())
    seconds["together"] = total
    return seconds | {"on the clock": time.perf_counter() - on_the_clock}


def fit_one(name: str, n: int, search: str, m: int, world: str) -> dict[str, Any]:
    """Fit, and return the seconds, the memory and the accuracy; "raw" is no map. n = 0: MNIST."""
    X, y, test, y_test = (*drawn(n, 1, world), *drawn(HELD_OUT, 2, world)) if n else mnist()
    result: dict[str, Any] = {}
    if name != "raw":
        model = MODELS[name](m, search)
        given = {"pairs": same_class_pairs(X, y)} if name == "PairNCA" else {}
        with Peak() as peak:
            start = time.perf_counter()
            model.fit(X, y, **given)
            result = {"seconds": time.perf_counter() - start, "memory": peak.above}
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
        train, y_train, test, y_test = mnist()
        X, y = np.vstack([train, test]), np.concatenate([y_train, y_test])
    question = QUESTIONS[relation]
    first = searcher(how, len(y))
    start = time.perf_counter()
    question(X, y, 10, first)
    result = {"seconds": time.perf_counter() - start}
    if how == "approximate":
        checked = searcher(ApproximateSearch(check_recall=True), len(y))
        question(X, y, 10, checked)
        assert checked.recall is not None
        result["recall"] = checked.recall[relation]
    return result


def peers_one(n: int, world: str) -> dict[str, Any]:
    """Return the seconds of scikit-learn and of faiss, and with how many probes the latter has at
    least the recall of nearkin.
    """
    X, _ = drawn(n, 1, world)
    start = time.perf_counter()
    lists = nearest(X, 10, searcher("approximate", n))
    result = {"nearkin": time.perf_counter() - start}
    recall = approximate.measured_recall(X, np.zeros(n), lists, "all")
    queries = X[:: n // QUERIES][:QUERIES]
    start = time.perf_counter()
    true = NearestNeighbors(n_neighbors=11, algorithm="brute").fit(X).kneighbors(queries)[1]
    result["scikit-learn"] = (time.perf_counter() - start) * n / QUERIES
    import faiss

    start = time.perf_counter()
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(FEATURES), FEATURES, int(8 * n**0.5))
    index.train(X[:: max(1, n // (40 * index.nlist))])
    index.add(X)
    built, index.nprobe, found = time.perf_counter() - start, 8, 0.0
    while found < recall:
        index.nprobe *= 2
        start = time.perf_counter()
        near = index.search(queries, 11)[1]
        seconds = time.perf_counter() - start
        found = np.mean([np.isin(a[1:], b).mean() for a, b in zip(true, near, strict=True)])
    result["faiss"] = built + seconds * n / QUERIES
    return result | {"recall": recall, "recall of faiss": found, "probes": index.nprobe}


def apart(*arguments: object) -> dict[str, Any]:
    """Return what a process of its own found."""
    command = [sys.executable, "-W", "ignore", __file__, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def row_of_mnist(name: str, search: str, m: int) -> str:
    found = apart("fit_one", name, 0, search or "exact", m, "modes")
    cost = f"{found['seconds']:.3g} | {found['memory']:.1f}" if name != "raw" else " | "
    return f"| {name} | 60,000 | {search} | {cost} | {found['accuracy']:.2f} |"


def table_of_fits(names: list[str], sizes: list[int], search: str, m: int, world: str) -> None:
    found = {}
    for n in sizes:
        for name in ("raw", "PCA", *names):
            found[name, n] = apart("fit_one", name, n, search, m, world)
            print(name, n, found[name, n], file=sys.stderr, flush=True)
    first, *others = (f"{n:,}" for n in sizes)
    starts = f"{first} rows", f"memory, GB: {first}", f"3-NN, %: {first}"
    heads = ["method", *(head for start in starts for head in (start, *others))]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in ("raw", "PCA", *names):
        fits = [found[name, n] for n in sizes]
        seconds, memory = [""] * len(sizes), [""] * len(sizes)
        if name != "raw":
            took = [fit["seconds"] for fit in fits]
            seconds = [f"{one:.1f} s" if one < 10 else f"{one:.0f} s" for one in took]
            memory = [f"{fit['memory']:.1f}" for fit in fits]
        accuracy = [f"{fit['accuracy']:.1f}" for fit in fits]
        print(f"| {' | '.join([name, *seconds, *memory, *accuracy])} |")


def table_of_searches(sizes: list[int], worlds: list[str]) -> None:
    print(
        "| rows | world | ten neighbours | exact, s | approximate, s | ratio | recall |\n"
        "|---|---|---|---|---|---|---|"
    )
    for n, world, relation in product(sizes, worlds, QUESTIONS):
        found = apart("search_one", relation, n, "approximate", world)
        exact = ratio = ""
        if n <= EXACT_ROWS:
            seconds = apart("search_one", relation, n, "exact", world)["seconds"]
            exact, ratio = f"{seconds:.0f}", f"{seconds / found['seconds']:.1f}"
        print(
            f"| {n or 70_000:,} | {world if n else 'MNIST'} | {relation} | {exact} "
            f"| {found['seconds']:.1f} | {ratio} | {found['recall']:.3f} |",
            flush=True,
        )


def table_of_peers(sizes: list[int], worlds: list[str]) -> None:
    print(
        "| rows | world | nearkin, s | recall | scikit-learn, exact, s | faiss, s | recall | probes |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for n, world in product(sizes, worlds):
        found = apart("peers_one", n, world)
        print(
            f"| {n:,} | {world} | {found['nearkin']:.0f} | {found['recall']:.3f} "
            f"| {found['scikit-learn']:.0f} | {found['faiss']:.0f} "
            f"| {found['recall of faiss']:.3f} | {found['probes']} |",
            flush=True,
        )


def main() -> None:
    if sys.argv[1:2] in (["fit_one"], ["profile_one"]):  # in a process of its own
        part, name, n, search, m, world = sys.argv[1:]
        run = fit_one if part == "fit_one" else profile_one
        print(json.dumps(run(name, int(n), search, int(m), world)))
        return
    if sys.argv[1:2] == ["search_one"]:
        relation, n, how, world = sys.argv[2:]
        print(json.dumps(search_one(relation, int(n), how, world)))
        return
    if sys.argv[1:2] == ["peers_one"]:
        print(json.dumps(peers_one(int(sys.argv[2]), sys.argv[3])))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["fit", "profile", "search", "peers", "mnist"])
    parser.add_argument("methods", nargs="*", metavar="method", help=f"raw, {', '.join(MODELS)}")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument("--search", nargs="+", default=["approximate"])
    parser.add_argument("--world", choices=["modes", "nuisance"], nargs="+", default=["modes"])
    options = parser.parse_args()
    m, world = options.components, options.world[0]
    if options.part == "search":
        table_of_searches(options.rows, options.world)
        return
    if options.part == "peers":
        table_of_peers(options.rows, options.world)
        return
    if options.part == "profile":
        print("| method | rows | step | processor seconds |\n|---|---|---|---|")
        for n in options.rows:
            for name in options.methods:
                found = apart("profile_one", name, n, options.search[0], m, world)
                for step, seconds in found.items():
                    print(f"| {name} | {n:,} | {step} | {seconds:.1f} |", flush=True)
        return
    if options.part == "fit":
        table_of_fits(options.methods, options.rows, options.search[0], m, world)
        return
    print(
        f"| method, {m} dimensions | rows | search | seconds | memory, GB | held-out 3-NN, % |\n"
        "|---|---|---|---|---|---|"
    )
    for name in ("raw", "PCA"):
        print(row_of_mnist(name, "", m), flush=True)
    for name in options.methods:
        for search in options.search:
            print(row_of_mnist(name, search, m), flush=True)


if __name__ == "__main__":
    main()
