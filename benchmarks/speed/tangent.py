"""Tangent distance on digits: errors of 1-NN, and time and recall of the graph found among
Euclidean candidates.

    NEARKIN_DATA=folder OPENBLAS_NUM_THREADS=1 python -m benchmarks.speed.tangent

prints Markdown. USPS: its 7,291 training
and 2,007 test rows; MNIST: rows 0 to 7,999 and 8,000 to 9,999; the graph: the first 10,000 rows of
MNIST, 20 neighbours, recall against all pairs for 200 of them. All in float32.
"""

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.data import archive
from benchmarks.measure import command, timed
from benchmarks.report import head, row
from reproductions.tdl.tangent import tangent_distances, tangent_graph


def tangent() -> None:
    mnist = archive("mnist")
    X, y = mnist["X"][:10_000].astype(np.float32), mnist["y"][:10_000]
    usps = archive("usps")
    sets = {
        "usps": ((16, 16), usps["X"], usps["y"], usps["split"] == 0),
        "mnist": ((28, 28), X, y, np.arange(10_000) < 8000),
    }
    head("data", "1-NN error %, tangent", "Euclidean", "µs a pair")
    for name, (shape, rows, labels, train) in sets.items():
        run = timed(tangent_distances, rows[~train], rows[train], shape)
        distances = run.result, cdist(rows[~train], rows[train])
        wrong = (labels[train][D.argmin(axis=1)] != labels[~train] for D in distances)
        errors = (f"{100 * one.mean():.2f}" for one in wrong)
        row(name, *errors, f"{1e6 * run.seconds / run.result.size:.1f}")
    some = np.random.default_rng(0).permutation(len(X))[:200]
    D = tangent_distances(X[some], X, (28, 28))
    D[np.arange(200), some] = np.inf
    true = np.argsort(D, axis=1)[:, :20]
    head("candidates", "seconds", "recall", "edges within a class")
    for n_candidates in (100, 200, 400, 800):
        run = timed(lambda: tangent_graph(X, (28, 28), 20, n_candidates=n_candidates))  # noqa: B023
        found = run.result.indices.reshape(-1, 20)
        recall = np.mean([np.isin(a, b).mean() for a, b in zip(true, found[some], strict=True)])
        within = np.mean(y[found] == y[:, None])
        row(n_candidates, f"{run.seconds:.0f}", f"{recall:.3f}", f"{within:.3f}")


if __name__ == "__main__":
    command(tangent)
