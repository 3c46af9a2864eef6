"""Tangent distance on digits: errors of 1-NN, and time and recall of the graph found among
Euclidean candidates.

    NEARKIN_DATA=folder OPENBLAS_NUM_THREADS=1 python -m benchmarks.tangent

NEARKIN_DATA names a folder with usps.npz and mnist.npz. Prints Markdown. USPS: its 7,291 training
and 2,007 test rows; MNIST: rows 0 to 7,999 and 8,000 to 9,999; the graph: the first 10,000 rows of
MNIST, 20 neighbours, recall against all pairs for 200 of them. All in float32.
"""

import os
import time

import numpy as np
from scipy.spatial.distance import cdist

from reproductions.tdl.tangent import tangent_distances, tangent_graph


def stored(name):
    return np.load(os.path.join(os.environ["NEARKIN_DATA"], f"{name}.npz"))


def usps():
    data = stored("usps")
    return data["X"], data["y"], data["split"] == 0


def mnist():
    data = stored("mnist")
    return data["X"][:10_000].astype(np.float32), data["y"][:10_000], np.arange(10_000) < 8000


def errors(name, shape, X, y, training):
    train, test = np.flatnonzero(training), np.flatnonzero(~training)
    start = time.perf_counter()
    D = tangent_distances(X[test], X[train], shape)
    seconds = time.perf_counter() - start
    tangent, euclidean = (
        100 * np.mean(y[train][M.argmin(axis=1)] != y[test]) for M in (D, cdist(X[test], X[train]))
    )
    print(
        f"| {name} | {tangent:.2f} | {euclidean:.2f} | {1e6 * seconds / D.size:.1f} |", flush=True
    )


def graph(X, y, n_candidates, rows, true):
    start = time.perf_counter()
    found = tangent_graph(X, (28, 28), 20, n_candidates=n_candidates).indices.reshape(-1, 20)
    seconds = time.perf_counter() - start
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(true, found[rows], strict=True)])
    print(
        f"| {n_candidates} | {seconds:.0f} | {recall:.3f} | "
        f"{np.mean(y[found] == y[:, None]):.3f} |",
        flush=True,
    )


if __name__ == "__main__":
    print("| data | 1-NN error %, tangent | Euclidean | µs a pair |\n| --- | --- | --- | --- |")
    errors("usps", (16, 16), *usps())
    errors("mnist", (28, 28), *mnist())
    X, y, _ = mnist()
    rows = np.random.default_rng(0).permutation(len(X))[:200]
    D = tangent_distances(X[rows], X, (28, 28))
    D[np.arange(200), rows] = np.inf
    true = np.argsort(D, axis=1)[:, :20]
    print("\n| candidates | seconds | recall | edges within a class |\n| --- | --- | --- | --- |")
    for n_candidates in (100, 200, 400, 800):
        graph(X, y, n_candidates, rows, true)
