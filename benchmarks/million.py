"""A million rows on one machine: time, memory and what the map is worth, and what approximate search finds.

    python benchmarks/million.py fit DNE NMMP LPP NCA --rows 10000 100000 1000000
    python benchmarks/million.py recall --rows 100000
    NEARKIN_DATA=folder python benchmarks/million.py mnist DNE NMMP NCA

Rows are drawn: 384 features in float32, 100 classes of five modes each in 8 directions, 12 more that vary as much and
tell nothing, and a little noise in all. Every fit runs in a process of its own, which imports faiss or does not;
memory is what the process holds above the rows. Accuracy: 3-NN of 20,000 rows that were held out, exact.
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

from nearkin import DNE, LPP, NCA, NMMP, ApproximateSearch
from nearkin.neighbors import nearest, nearest_other_class, nearest_same_class, searcher

FEATURES, CLASSES, MODES, TELLING, IDLE, NOISE = 384, 100, 5, 8, 12, 0.1
HELD_OUT = 20_000
AT_A_TIME = 10_000
MODELS: dict[str, Any] = {
    "PCA": lambda m, search: PCA(m, svd_solver="covariance_eigh"),
    "DNE": lambda m, search: DNE(m, search=search),
    "NMMP": lambda m, search: NMMP(m, n_neighbors_within=10, search=search),
    "LPP": lambda m, search: LPP(m, search=search),
    "NCA": lambda m, search: NCA(m, solver="sgd", search=search, random_state=0),
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
    centres = world.normal(0, 1.5, (CLASSES, MODES, TELLING)).astype(np.float32)
    spread = np.repeat([0.6, 1.0, NOISE], [TELLING, IDLE, FEATURES - TELLING - IDLE]).astype(np.float32)
    X, y = np.empty((n, FEATURES), np.float32), rng.integers(CLASSES, size=n)
    for start in range(0, n, AT_A_TIME):
        rows = slice(start, min(start + AT_A_TIME, n))
        E = rng.standard_normal((len(y[rows]), FEATURES), dtype=np.float32) * spread
        E[:, :TELLING] += centres[y[rows], rng.integers(MODES, size=len(E))]
        X[rows] = E @ turn.T
    return X, y


def mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with np.load(Path(os.environ.get("NEARKIN_DATA", "")) / "mnist.npz") as data:
        X, y, test = data["X"].astype(np.float32), data["y"], data["split"] == 1
    return X[~test], y[~test], X[test], y[test]


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
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9

    @property
    def above(self) -> float:
        return self.largest - self.first


def fit_one(name: str, n: int, search: str, m: int) -> dict[str, Any]:
    """Fit, and return the seconds, the memory and the accuracy; "raw" is no map. n = 0: MNIST."""
    X, y, test, y_test = (*drawn(n, 1), *drawn(HELD_OUT, 2)) if n else mnist()
    told: dict[str, Any] = {}
    if name != "raw":
        model = MODELS[name](m, search)
        with Peak() as peak:
            start = time.perf_counter()
            model.fit(X, y)
            told = {"seconds": time.perf_counter() - start, "memory": peak.above}
        X, test = (model.transform(Z) for Z in (X, test))
    vote = KNeighborsClassifier(3, algorithm="brute").fit(X, y)
    return told | {"accuracy": 100 * vote.score(test, y_test)}


def apart(*arguments: object) -> dict[str, Any]:
    """Return what a process of its own found."""
    command = [sys.executable, "-W", "ignore", __file__, "one", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def table_of_fits(names: list[str], sizes: list[int], search: str, m: int) -> None:
    print(f"| method, {m} dimensions | rows | search | seconds | memory above the rows, GB | held-out 3-NN, % |")
    print("|---|---|---|---|---|---|")
    for n in sizes:
        for name in names:
            found = apart(name, n, search, m)
            cost = f"{found['seconds']:.0f} | {found['memory']:.1f}" if name != "raw" else " | "
            how = "" if name in ("raw", "PCA") else search
            print(f"| {name} | {n or 60_000:,} | {how} | {cost} | {found['accuracy']:.2f} |", flush=True)


def recall(sizes: list[int], k: int = 10) -> None:
    print("| rows | neighbours | seconds | recall |\n|---|---|---|---|")
    for n in sizes:
        X, y = drawn(n, 1) if n else mnist()[:2]
        for relation, question in QUESTIONS.items():
            start = time.perf_counter()
            question(X, y, k, searcher("approximate", len(y)))
            seconds = time.perf_counter() - start
            checked = searcher(ApproximateSearch(check_recall=True), len(y))
            question(X, y, k, checked)
            assert checked.recall is not None
            print(f"| {len(y):,} | {relation} | {seconds:.0f} | {checked.recall[relation]:.3f} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        name, n, search, m = sys.argv[2:]
        print(json.dumps(fit_one(name, int(n), search, int(m))))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["fit", "recall", "mnist"])
    parser.add_argument("methods", nargs="*", metavar="method", help=f"raw, {', '.join(MODELS)}")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument("--search", nargs="+", default=["approximate"])
    options = parser.parse_args()
    if options.part == "recall":
        recall(options.rows)
    for search in options.search if options.part != "recall" else []:
        sizes = options.rows if options.part == "fit" else [0]
        table_of_fits(["raw", "PCA", *options.methods], sizes, search, options.components)


if __name__ == "__main__":
    main()
