"""LPP of rows that no worker could hold: `python benchmarks/dask_lpp.py --rows 5000000`.

Rows are drawn as they are needed, 20 dimensions of structure among 64 features. Two workers of one
thread and 1 GB each fit `DaskLPP` with approximate search. Printed are the time, the largest memory
of a worker process, and how often one was restarted. `--compare` fits the local class on the same
rows as well, for numbers of rows that fit.
"""

import argparse
import os
import resource
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy.linalg import subspace_angles

from nearkin import LPP
from nearkin.dask import DaskLPP
from nearkin.neighbors import ApproximateSearch

P, INTRINSIC, CLUSTERS = 64, 20, 100


def drawn(block_id, rows):
    """Return a block of rows about random centres, the same in every call."""
    shared, own = np.random.default_rng(0), np.random.default_rng(1 + block_id)
    structure, centres = (
        shared.standard_normal((INTRINSIC, P)),
        2 * shared.standard_normal((CLUSTERS, INTRINSIC)),
    )
    inner = centres[own.integers(0, CLUSTERS, rows)] + own.standard_normal((rows, INTRINSIC))
    return (
        inner * np.linspace(0.5, 2, INTRINSIC) @ structure + 0.3 * own.standard_normal((rows, P))
    ).astype(np.float32)


def table(n, block):
    """Return the rows as a lazy Dask array."""
    sizes = [block] * (n // block) + [n % block] * (n % block > 0)
    lazy = da.map_blocks(
        lambda ids, size: drawn(int(ids[0, 0]), int(size[0, 0])),
        da.arange(len(sizes), chunks=1)[:, None], da.from_array(np.array(sizes)[:, None], chunks=1),
        dtype=np.float32, chunks=(tuple(sizes), (P,)), meta=np.empty((0, P), np.float32),
    )  # fmt: skip
    return lazy


def peak():
    """Return the largest resident size of a worker, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--block", type=int, default=100_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--probes", type=int, default=64)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    X = table(options.rows, options.block)
    lpp = DaskLPP(10, search=ApproximateSearch(n_probes=options.probes))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=options.memory, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        start = time.perf_counter()
        lpp.fit(X)
        seconds = time.perf_counter() - start
        after = set(client.run(os.getpid).values())
        peaks = client.run(peak).values()
        print(
            f"{options.rows} x {P} in {X.numblocks[0]} blocks: {seconds:.0f} s, at most "
            f"{max(peaks):.2f} GB in a worker"
        )
        print(f"{len(after - before)} of 2 workers restarted")
        if options.compare:
            rows = X.compute()
    if options.compare:
        for search in ("exact", "approximate"):
            start = time.perf_counter()
            local = LPP(10, search=search).fit(rows)
            angle = subspace_angles(local.components_.T, lpp.components_.T).max()
            print(f"local, {search}: {time.perf_counter() - start:.0f} s, angle {angle:.1e}")


if __name__ == "__main__":
    main()
