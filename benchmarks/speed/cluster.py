"""What a cluster costs against one machine, how much memory its workers take, and whether its map is
the same.

    python -m benchmarks.speed.cluster steps --steps DNE --rows 100000 1000000
    python -m benchmarks.speed.cluster steps --steps scaler PCA GMML transform --rows 10000000
    python -m benchmarks.speed.cluster lpp --n 5000000
    python -m benchmarks.speed.cluster nca

The cluster has two worker processes of one thread; a worker that exceeds its memory is restarted,
which is counted. Memory is the largest resident size of each worker process.

"steps": DNE is fitted on one machine, too, with two threads and the rows in memory. Rows are those of
`million.py` in 64 features, float32, which the benchmark writes into Parquet files of a temporary
folder (2.6 GB for ten million); the workers read them from there. DNE searches approximately.

"lpp": rows that no worker could hold, drawn as they are needed, 20 dimensions of structure among 64
features, with approximate search. `--compare` fits the local class on the same rows as well, for
numbers of rows that fit.

"nca": the two worlds of `million.py`, 384 features to 64 dimensions, stochastic gradient on one
machine with one thread, and from two workers: the seconds of a fit, and the accuracy of 3-NN on 20,000
rows that neither has seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
from dask import delayed
from distributed import Client, LocalCluster
from pyarrow import parquet
from scipy.linalg import subspace_angles
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from benchmarks import measure
from benchmarks.measure import command, timed
from benchmarks.report import head, row
from benchmarks.speed.million import drawn
from nearkin import DNE, LPP, NCA
from nearkin.dask import DaskDNE, DaskGMML, DaskLPP, DaskNCA, DaskPCA, DaskStandardScaler
from nearkin.neighbors import ApproximateSearch

P, COMPONENTS = 64, 16
BLOCK, MIN_BLOCKS = 100_000, 10  # rows of a file, which is a block; files
NAMES = [f"x{j}" for j in range(P)]
INTRINSIC, CLUSTERS = 20, 100
HELD_OUT = 20_000
WAYS = ("one machine", "two workers")
WORLDS = {"nuisance": "one cluster each", "modes": "five clusters each"}


@contextmanager
def cluster(limit: str) -> Iterator[Client]:
    """Two workers of one thread."""
    how = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": limit}
    with LocalCluster(**how, dashboard_address=":0") as local, Client(local) as client:
        yield client


def peak() -> float:
    """Return the largest resident size of this process so far, in GB."""
    return measure.memory() / 1e9


def watched(client: Client, work: Callable[[], Any]) -> tuple[float, list[float], int]:
    """Return the seconds of some work, the peak of every worker, and how many were restarted."""
    before = set(client.run(os.getpid).values())
    seconds = timed(work).seconds
    restarted = before - set(client.run(os.getpid).values())
    return seconds, sorted(client.run(peak).values()), len(restarted)


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


def steps(
    steps: tuple[str, ...] = ("DNE",), rows: tuple[int, ...] = (100_000,), memory: str = "1GB"
) -> None:
    """Print what steps cost."""
    head("step", "rows", "one machine, s", "two workers, s", "memory, GB", "restarts")
    for n in rows:
        with TemporaryDirectory() as folder:
            X, y = written(n, folder)
            for name in steps:
                one = f"{on_one_machine(X, y):.1f}" if name == "DNE" else ""
                with cluster(memory) as client:
                    two, peaks, restarts = watched(client, lambda: STEPS[name](X, y))  # noqa: B023
                row(
                    name,
                    f"{n:,}",
                    one,
                    f"{two:.1f}",
                    ", ".join(f"{one:.2f}" for one in peaks),
                    restarts,
                )


def on_one_machine(X: da.Array, y: da.Array) -> float:
    """Return the seconds of DNE with two threads."""
    rows, labels = X.compute(), y.compute()
    with threadpool_limits(2):
        return timed(DNE(COMPONENTS, search="approximate").fit, rows, labels).seconds


def block_of(block_id: int, rows: int) -> np.ndarray:
    """Return a block of rows about random centres, the same in every call."""
    shared, own = np.random.default_rng(0), np.random.default_rng(1 + block_id)
    structure = shared.standard_normal((INTRINSIC, P))
    centres = 2 * shared.standard_normal((CLUSTERS, INTRINSIC))
    inner = centres[own.integers(0, CLUSTERS, rows)] + own.standard_normal((rows, INTRINSIC))
    return (
        inner * np.linspace(0.5, 2, INTRINSIC) @ structure + 0.3 * own.standard_normal((rows, P))
    ).astype(np.float32)


def lazy_rows(n: int, block: int) -> da.Array:
    """Return the rows as a lazy Dask array."""
    sizes = [block] * (n // block) + [n % block] * (n % block > 0)
    return da.map_blocks(
        lambda ids, size: block_of(int(ids[0, 0]), int(size[0, 0])),
        da.arange(len(sizes), chunks=1)[:, None], da.from_array(np.array(sizes)[:, None], chunks=1),
        dtype=np.float32, chunks=(tuple(sizes), (P,)), meta=np.empty((0, P), np.float32),
    )  # fmt: skip


def lpp(
    n: int = 100_000,
    block: int = 100_000,
    memory: str = "1GB",
    probes: int = 64,
    compare: bool = False,
) -> None:
    """Print the time, the largest memory of a worker, and how often one was restarted."""
    X = lazy_rows(n, block)
    model = DaskLPP(10, search=ApproximateSearch(n_probes=probes))
    with cluster(memory) as client:
        seconds, peaks, restarts = watched(client, lambda: model.fit(X))
        blocks = f"{n} x {P} in {X.numblocks[0]} blocks"
        print(f"{blocks}: {seconds:.0f} s, at most {max(peaks):.2f} GB in a worker")
        print(f"{restarts} of 2 workers restarted")
        rows = X.compute() if compare else None
    for search in ("exact", "approximate") if compare else ():
        run = timed(LPP(10, search=search).fit, rows)
        angle = subspace_angles(run.result.components_.T, model.components_.T).max()
        print(f"local, {search}: {run.seconds:.0f} s, angle {angle:.1e}")


def nca(rows: tuple[int, ...] = (20_000, 100_000), components: int = 64, seed: int = 0) -> None:
    """Print how long fits take, and how good their maps are, beside those of one machine."""
    head("classes", "rows", *(f"{way}: {what}" for way in WAYS for what in ("s", "3-NN, %")))
    for world in ("nuisance", "modes"):
        new, labels = drawn(HELD_OUT, seed + 2, world)
        for n in rows:
            X, y = drawn(n, seed + 1, world)
            blocks = [da.from_array(part, chunks=(BLOCK // 4, *part.shape[1:])) for part in (X, y)]
            with threadpool_limits(1), cluster("auto"):
                runs = [
                    timed(
                        NCA(components, solver="sgd", search="auto", random_state=seed).fit, X, y
                    ),
                    timed(DaskNCA(components, random_state=seed).fit, *blocks),
                ]
            found = []
            for run in runs:
                A = run.result.components_.T
                vote = KNeighborsClassifier(3, algorithm="brute").fit(X @ A, y)
                found += [f"{run.seconds:.0f}", f"{100 * vote.score(new @ A, labels):.1f}"]
            row(WORLDS[world], f"{n:,}", *found)


if __name__ == "__main__":
    command(steps, lpp, nca)
