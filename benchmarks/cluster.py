"""What a cluster costs against one machine, and how much memory its workers take.

    python benchmarks/cluster.py DNE --rows 100000 1000000
    python benchmarks/cluster.py scaler PCA GMML transform --rows 10000000

The cluster has two worker processes of one thread. DNE is fitted on one machine, too, with two
threads and the rows in memory. Rows are those of `million.py` in 64 features, float32, which the
benchmark writes into Parquet files of a temporary folder (2.6 GB for ten million); the workers read
them from there. DNE searches approximately. Memory is the largest resident size of each worker
process; a worker that exceeds its limit is restarted, which is counted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
from dask import delayed
from distributed import Client, LocalCluster
from million import drawn
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from nearkin import DNE
from nearkin.dask import DaskDNE, DaskGMML, DaskPCA, DaskStandardScaler

P, COMPONENTS = 64, 16
BLOCK, MIN_BLOCKS = 100_000, 10  # rows of a file, which is a block; files
NAMES = [f"x{j}" for j in range(P)]


def written(n: int, folder: str) -> tuple[da.Array, da.Array]:
    """Return n rows and their labels as lazy Dask arrays, read from files written here."""
    size = min(BLOCK, n // MIN_BLOCKS)
    X, y = [], []
    for start in range(0, n, size):
        rows, labels = drawn(min(size, n - start), start, features=P)
        path = Path(folder, f"{start}.parquet")
        columns = dict(zip(NAMES, rows.T, strict=True))
        parquet.write_table(pa.table({**columns, "y": labels}), path)
        X.append(da.from_delayed(delayed(read)(path, NAMES), rows.shape, rows.dtype))
        y.append(da.from_delayed(delayed(read)(path, ["y"]), (len(rows), 1), labels.dtype))
    return da.concatenate(X), da.concatenate(y)[:, 0]


def read(path: Path, names: list[str]) -> np.ndarray:
    """Return some columns of a file side by side."""
    return np.column_stack(parquet.read_table(path, columns=names).columns)


# What is done with X and y; the map that transforms all rows is learned from one block.
STEPS: dict[str, Callable[[da.Array, da.Array], Any]] = {
    "scaler": lambda X, y: DaskStandardScaler().fit(X),
    "PCA": lambda X, y: DaskPCA(COMPONENTS).fit(X),
    "GMML": lambda X, y: DaskGMML(COMPONENTS).fit(X, y),
    "DNE": lambda X, y: DaskDNE(COMPONENTS, search="approximate").fit(X, y),
    "transform": lambda X, y: (
        DaskPCA(COMPONENTS).fit(X.blocks[0]).transform(X).sum(axis=0).compute()
    ),
}


def peak() -> float:
    """Return the largest resident size of this process so far, in GB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9


def on_cluster(name: str, X: da.Array, y: da.Array, memory: str) -> tuple[float, list[float], int]:
    """Return the seconds of a step, the peak of every worker, and how many were restarted."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        start = time.perf_counter()
        STEPS[name](X, y)
        seconds = time.perf_counter() - start
        restarted = before - set(client.run(os.getpid).values())
        return seconds, sorted(client.run(peak).values()), len(restarted)


def on_one_machine(X: da.Array, y: da.Array) -> float:
    """Return the seconds of DNE with two threads."""
    rows, labels = X.compute(), y.compute()
    with threadpool_limits(2):
        start = time.perf_counter()
        DNE(COMPONENTS, search="approximate").fit(rows, labels)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("steps", nargs="+", metavar="step", help=", ".join(STEPS))
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--memory", default="1GB", help="of each worker")
    options = parser.parse_args()
    print("| step | rows | one machine, s | two workers, s | memory, GB | restarts |")
    print("|---|---|---|---|---|---|")
    for n in options.rows:
        with TemporaryDirectory() as folder:
            X, y = written(n, folder)
            for name in options.steps:
                one = f"{on_one_machine(X, y):.1f}" if name == "DNE" else ""
                two, peaks, restarts = on_cluster(name, X, y, options.memory)
                memory = ", ".join(f"{worker:.2f}" for worker in peaks)
                print(f"| {name} | {n:,} | {one} | {two:.1f} | {memory} | {restarts} |", flush=True)


if __name__ == "__main__":
    main()
