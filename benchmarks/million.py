"""A million rows on one machine: time, memory and what the map is worth, and what approximate
search finds.

    python benchmarks/million.py fit DNE NMMP LPP NCA --rows 10000 100000 1000000
    python benchmarks/million.py fit PairNCA --rows 10000 100000
    python benchmarks/million.py search --rows 100000 1000000
    NEARKIN_DATA=folder python benchmarks/million.py search --rows 0
    NEARKIN_DATA=folder python benchmarks/million.py mnist DNE NMMP NCA --search exact approximate

No rows at all stand for MNIST: 60,000 to learn from, 10,000 held out; a search goes over all
70,000.

Rows are drawn: 384 features in float32, 100 classes of five modes each in 8 directions, 12 more
that vary as much and carry no information, and a little noise in all. Every fit runs in a process
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
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from nearkin import DNE, LPP, NCA, NMMP, ApproximateSearch, PairNCA
from nearkin.neighbors import nearest, nearest_other_class, nearest_same_class, searcher

FEATURES, CLASSES, MODES, INFORMATIVE, IDLE, NOISE = 384, 100, 5, 8, 12, 0.1
HELD_OUT = 20_000
AT_A_TIME = 10_000
EXACT_ROWS = 100_000  # an exact search of more takes too long here
MODELS: dict[str, Any] = {
    "PCA": lambda m, search: PCA(m, svd_solver="covariance_eigh"),
    "DNE": lambda m, search: DNE(m, search=search),
    "NMMP": lambda m, search: NMMP(m, n_neighbors_within=10, search=search),
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


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels; the classes are those of all seeds."""
    world, rng = np.random.default_rng(0), np.random.default_rng(1 + seed)
    turn = np.linalg.qr(world.standard_normal((FEATURES, FEATURES)))[0].astype(np.float32)
    centres = world.normal(0, 1.5, (CLASSES, MODES, INFORMATIVE)).astype(np.float32)
    spread = np.repeat(
        [0.6, 1.0, NOISE], [INFORMATIVE, IDLE, FEATURES - INFORMATIVE - IDLE]
    ).astype(np.float32)
    X, y = np.empty((n, FEATURES), np.float32), rng.integers(CLASSES, size=n)
    for start in range(0, n, AT_A_TIME):
        rows = slice(start, min(start + AT_A_TIME, n))
        E = rng.standard_normal((len(y[rows]), FEATURES), dtype=np.float32) * spread
        E[:, :INFORMATIVE] += centres[y[rows], rng.integers(MODES, size=len(E))]
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


def fit_one(name: str, n: int, search: str, m: int) -> dict[str, Any]:
    """Fit, and return the seconds, the memory and the accuracy; "raw" is no map. n = 0: MNIST."""
    X, y, test, y_test = (*drawn(n, 1), *drawn(HELD_OUT, 2)) if n else mnist()
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


def search_one(relation: str, n: int, how: str) -> dict[str, Any]:
    """Search for ten neighbours of every row, and return the seconds; of an approximate search also
    its recall.
    """
    if n:
        X, y = drawn(n, 1)
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


def apart(*arguments: object) -> dict[str, Any]:
    """Return what a process of its own found."""
    command = [sys.executable, "-W", "ignore", __file__, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def row_of_fit(name: str, n: int, search: str, m: int) -> str:
    found = apart("one", name, n, search or "exact", m)
    cost = f"{found['seconds']:.3g} | {found['memory']:.1f}" if name != "raw" else " | "
    return f"| {name} | {n or 60_000:,} | {search} | {cost} | {found['accuracy']:.2f} |"


def table_of_searches(sizes: list[int]) -> None:
    print(
        "| rows | ten neighbours | exact, s | approximate, s | ratio | recall "
        "|\n|---|---|---|---|---|---|"
    )
    for n in sizes:
        for relation in QUESTIONS:
            found = apart("search_one", relation, n, "approximate")
            exact = (
                apart("search_one", relation, n, "exact")["seconds"] if n <= EXACT_ROWS else None
            )
            ratio = "- | " if exact is None else f"{exact:.0f} | "
            ratio += f"{found['seconds']:.1f} | " + (
                "" if exact is None else f"{exact / found['seconds']:.1f}"
            )
            print(f"| {n or 70_000:,} | {relation} | {ratio} | {found['recall']:.3f} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        name, n, search, m = sys.argv[2:]
        print(json.dumps(fit_one(name, int(n), search, int(m))))
        return
    if sys.argv[1:2] == ["search_one"]:
        relation, n, how = sys.argv[2:]
        print(json.dumps(search_one(relation, int(n), how)))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["fit", "search", "mnist"])
    parser.add_argument("methods", nargs="*", metavar="method", help=f"raw, {', '.join(MODELS)}")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument("--search", nargs="+", default=["approximate"])
    options = parser.parse_args()
    if options.part == "search":
        table_of_searches(options.rows)
        return
    print(
        f"| method, {options.components} dimensions | rows | search | seconds | memory, GB | "
        "held-out 3-NN, % |"
    )
    print("|---|---|---|---|---|---|")
    for n in options.rows if options.part == "fit" else [0]:
        for name in ("raw", "PCA"):
            print(row_of_fit(name, n, "", options.components), flush=True)
        for name in options.methods:
            for search in options.search:
                print(row_of_fit(name, n, search, options.components), flush=True)


if __name__ == "__main__":
    main()
