"""Time and memory of DNE and NMMP against their floor: scikit-learn's exact search over the same
pairs plus one X'X.

    python benchmarks/speed.py

prints Markdown. Each ratio is taken within one run of both, in turn, and the median of the runs is
printed; peak memory is that of a fresh process above its imports (Linux only).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from nearkin import DNE, LPP, NMMP

METHODS = {
    "DNE()": (lambda: DNE(), 1, 1),
    "NMMP(n_neighbors_within=10)": (lambda: NMMP(n_neighbors_within=10), 10, 10),
}


def make_table(n, p=50, n_classes=10):
    """Return overlapping Gaussian classes of unequal size."""
    rng = np.random.default_rng(0)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    return rng.normal(size=(n_classes, p))[y] + 2 * rng.normal(size=(n, p)), y


def floor(X, y, k_same, k_other):
    """Search each class in itself and in its complement, and form X'X: what no such method can do
    without.
    """
    for c in np.unique(y):
        same, others = X[y == c], X[y != c]
        NearestNeighbors(n_neighbors=k_same, algorithm="brute").fit(same).kneighbors()
        NearestNeighbors(n_neighbors=k_other, algorithm="brute").fit(others).kneighbors(same)
    return X.T @ X


def seconds(work, *arguments):
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def time_methods(n, runs):
    X, y = make_table(n)
    held_out, answers = X[: n // 10], y[: n // 10]
    rest, labels = X[n // 10 :], y[n // 10 :]
    print(f"| method, n = {n:,}, p = 50 | seconds | floor, seconds | ratio | held-out 3-NN (raw) |")
    print("|---|---|---|---|---|")
    raw = KNeighborsClassifier(3).fit(rest, labels).score(held_out, answers)
    for name, (make, k_same, k_other) in METHODS.items():
        floor(X, y, k_same, k_other)  # warm-up
        pairs = [
            (seconds(make().fit, X, y), seconds(floor, X, y, k_same, k_other)) for _ in range(runs)
        ]
        mine, bound = np.median(pairs, axis=0)
        ratio = np.median([a / b for a, b in pairs])
        model = make().fit(rest, labels)
        score = (
            KNeighborsClassifier(3)
            .fit(model.transform(rest), labels)
            .score(model.transform(held_out), answers)
        )
        print(
            f"| `{name}` | {mine:.2f} | {bound:.2f} | {ratio:.2f} | {score:.3f} ({raw:.3f}) |",
            flush=True,
        )


def time_extremes():
    """Many features and few rows; very many tiny classes."""
    rng = np.random.default_rng(0)
    wide, people = (
        rng.normal(size=(40, 10_304))[np.arange(200) // 5] + rng.normal(size=(200, 10_304)),
        np.arange(200) // 5,
    )
    y = np.arange(100_000) // 10
    tiny = 3 * rng.normal(size=(10_000, 20))[y] + rng.normal(size=(100_000, 20))
    print("\n| method | rows x features, classes | seconds |\n|---|---|---|")
    for method in (DNE(), NMMP(60), LPP(60)):
        print(
            f"| `{method}` | 200 x 10,304, 40 | {seconds(method.fit, wide, people):.2f} |",
            flush=True,
        )
    for method in (DNE(), NMMP()):
        print(
            f"| `{method}` | 100,000 x 20, 10,000 | {seconds(method.fit, tiny, y):.1f} |",
            flush=True,
        )
    print(
        "| scikit-learn, one search of all rows | 100,000 x 20 | "
        f"{seconds(search_all, tiny):.1f} |",
        flush=True,
    )


def search_all(X):
    NearestNeighbors(n_neighbors=10, algorithm="brute").fit(X).kneighbors()


def peak_memory(name, n):
    """Return the bytes that a fresh process takes at its peak beyond what it holds after its
    imports.
    """
    command = [sys.executable, __file__, "--measure-memory", name, "--rows", str(n)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_memory(name, n):
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    X, y = make_table(n)
    METHODS[name][0]().fit(X, y)
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rows-memory", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--measure-memory", metavar="METHOD", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_memory:
        return measure_memory(options.measure_memory, options.rows)
    time_methods(options.rows, options.runs)
    time_extremes()
    print(
        f"\n| method, n = {options.rows_memory:,}, p = 50 | peak memory above the imports, data "
        "included |"
    )
    print("|---|---|")
    for name in METHODS:
        print(f"| `{name}` | {peak_memory(name, options.rows_memory) / 1e6:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
