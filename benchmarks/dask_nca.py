"""How far NCA on a cluster is from NCA on one machine: `python benchmarks/dask_nca.py`.

Rows of six classes of three clusters each, which overlap, in 40 features. Beside the map that two
worker processes learn is the one that one machine learns from the same rows in another order: what
rounding alone does to a descent. Prints Markdown: the range over the seeds of the distance of the
metric A'A from that of one machine, relative to its Frobenius norm, and of the difference of the
objectives.
"""

import argparse

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from nearkin import NCA
from nearkin.dask import DaskNCA

P, CLASSES, CLUSTERS, BLOCKS = 40, 6, 3, 3


def drawn(n, seed):
    """Return n rows and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    centres = 0.5 * rng.standard_normal((CLASSES, CLUSTERS, P))
    noise = rng.standard_normal((n, P)) * np.linspace(0.5, 1.5, P)
    return centres[y, rng.integers(0, CLUSTERS, n)] + noise, y


def distance(nca, other):
    """Return how far the metric of a map is from that of another."""
    M, N = (fitted.components_.T @ fitted.components_ for fitted in (nca, other))
    return np.linalg.norm(M - N) / np.linalg.norm(N)


def span(values, form):
    """Return the least and the largest of some numbers."""
    return f"{min(values):{form}} to {max(values):{form}}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 3000, 9000, 20_000])
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    m = options.components
    ways = ("other order", "two workers")
    heads = [f"{way}: {what}" for what in ("distance", "objective") for way in ways]
    print(f"| rows | {' | '.join(heads)} |\n|---|---|---|---|---|", flush=True)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        for n in options.rows:
            found = []
            for seed in range(options.seeds):
                X, y = drawn(n, seed)
                order = np.random.default_rng(seed).permutation(n)
                size = -(-n // BLOCKS)
                blocks = da.from_array(X, chunks=(size, P)), da.from_array(y, chunks=size)
                local = NCA(m).fit(X, y)
                others = NCA(m).fit(X[order], y[order]), DaskNCA(m).fit(*blocks)
                found.append(
                    [distance(nca, local) for nca in others]
                    + [nca.objective_ - local.objective_ for nca in others]
                )
            forms = (".1g", ".1g", "+.4f", "+.4f")
            cells = [
                span(values, form)
                for values, form in zip(zip(*found, strict=True), forms, strict=True)
            ]
            print(f"| {n:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
