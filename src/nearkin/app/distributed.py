"""A folder larger than memory on a cluster: its rows as lazy Dask arrays, the methods that learn from them, the winner.

The training rows are never in one place: they are read, block by block, by whoever works on them, again in every pass.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..evaluation import CLASSIFICATION, RAW
from ..neighbors import choose_search
from .columns import Progress
from .encoder import numbers_only
from .model import Model, new_model, with_voters
from .one_split import Ranking, Result, held_out_rows, judged, majority
from .parquet_folder import Block, Folder, chosen, classes_of, count_classes, features_of, labels_of
from .table import TableError

MIN_ROWS = 500
MOST_DIMENSIONS = 64
MOST_VOTERS = 100_000
KILLED = "workers died again and again, most likely for want of memory: give them more, or take fewer of them."
NMMP_KIN = 10  # the default, half of a class, makes lists that grow with the rows

NamedProgress = Callable[[str, int, int], None]


def require_dask() -> None:
    """Raise an ImportError that names the extra where Dask is missing."""
    from .. import dask  # noqa: F401


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of the cluster whose scheduler has an address, or of processes here, one for each core."""
    require_dask()
    from distributed import Client, KilledWorker, LocalCluster

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # else it tells what an interruption has cut off
    with ExitStack() as stack:
        if not address:
            how = {"processes": True, "dashboard_address": "127.0.0.1:0", "silence_logs": "CRITICAL"}
            with deaf_children():
                here = LocalCluster(threads_per_worker=1, **how)
            address = stack.enter_context(here).scheduler_address
        client = stack.enter_context(Client(address))
        try:
            yield client
        except KilledWorker as error:
            raise TableError(KILLED) from error


@contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that are started meanwhile ignore Ctrl-C, which a terminal sends to all: this one ends them."""
    if threading.current_thread() is not threading.main_thread():  # signals are not to be set there
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def class_sizes(folder: Folder, target: str, client: Any, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, and how many rows each has, by one pass over the column of the target."""
    from distributed import as_completed

    files = [file for file in folder.whole_files if file.stop]
    futures = client.map(count_classes, files, target=target, as_text=target in folder.text, pure=False)
    sizes = {future.key: file.stop for future, file in zip(futures, files, strict=True)}
    counts, done = Counter[Any](), 0
    progress(0, folder.n_rows)
    for future in as_completed(futures):
        counts += future.result()
        done += sizes[future.key]
        progress(done, folder.n_rows)
    return classes_of(folder, target, counts)


@dataclass(frozen=True)
class Split:
    """The rows of a folder, some of them held out.

    Attributes
    ----------
    folder : Folder
    features : list of str
    target : str
    classes : ndarray
    blocks : list of Block
    held_out : ndarray
        Numbers of rows, ascending.
    """

    folder: Folder
    features: list[str]
    target: str
    classes: np.ndarray
    blocks: list[Block]
    held_out: np.ndarray

    @classmethod
    def of(cls, folder: Folder, features: list[str], target: str, classes: np.ndarray, seed: int) -> Split:
        """Return the split of a seed."""
        from ..dask._table import MOST_BLOCKS

        blocks = folder.blocks(len(features), MOST_BLOCKS)
        return cls(folder, features, target, classes, blocks, held_out_rows(folder.n_rows, seed))

    @property
    def n_train(self) -> int:
        """Return how many rows are not held out."""
        return self.folder.n_rows - len(self.held_out)

    def rows(self, *, held_out: bool) -> Any:
        """Return the features of the held-out rows, or of all others, a lazy Dask array."""
        read = partial(features_of, names=self.features)
        return self._array(read, (len(self.features),), np.float32, held_out)

    def labels(self, *, held_out: bool) -> Any:
        """Return the numbers of their classes, a lazy Dask array in the same blocks."""
        return self._array(partial(labels_of, target=self.target, classes=self.classes), (), np.int32, held_out)

    def _array(self, read: Callable[..., Any], shape: tuple[int, ...], dtype: Any, held_out: bool) -> Any:
        import dask.array as da
        from dask import delayed

        parts = []
        for block in self.blocks:
            low, high = np.searchsorted(self.held_out, [block.start, block.start + len(block)])
            size = high - low if held_out else len(block) - (high - low)
            value = delayed(read, pure=False)(block, rows=self.held_out[low:high], but=not held_out)
            parts += [da.from_delayed(value, (int(size), *shape), dtype)] if size else []
        return da.concatenate(parts)

    def voters(self, most: int) -> tuple[list[np.ndarray], np.ndarray]:
        """Return some training rows, evenly drawn: their places in every block that has any, and their numbers."""
        kept = np.linspace(0, self.n_train - 1, min(most, self.n_train)).round().astype(np.int64)
        first, places, numbers = 0, [], []
        for block in self.blocks:
            trains = block.start + np.flatnonzero(chosen(block, self.held_out, but=True))
            if len(trains):
                low, high = np.searchsorted(kept, [first, first + len(trains)])
                places.append(kept[low:high] - first)
                numbers.append(trains[places[-1]])
                first += len(trains)
        return places, np.concatenate(numbers)


@dataclass(frozen=True)
class Contest:
    """Rows on a cluster, ready to be learned from and to vote.

    Attributes
    ----------
    X, y : Dask arrays of shape (n_train, p), (n_train,)
        Training rows, scaled where that is wanted; lazy.
    queries : Dask array of shape (n_held_out, p)
        In one block, kept by the cluster.
    truth : ndarray of shape (n_held_out,)
    scaler : fitted DaskStandardScaler or None
    n_neighbors, seed : int
    client : distributed.Client
    """

    X: Any
    y: Any
    queries: Any
    truth: np.ndarray
    scaler: Any
    n_neighbors: int
    seed: int
    client: Any

    @classmethod
    def of(
        cls, split: Split, n_neighbors: int, scale: bool, seed: int, client: Any, progress: NamedProgress
    ) -> Contest:
        """Return the rows of a split, the held-out ones read, the scale learned from the others."""
        from ..dask import DaskStandardScaler

        n, n_held_out = split.n_train, len(split.held_out)
        progress("held-out rows", 0, n_held_out)
        queries = client.persist(split.rows(held_out=True).rechunk(-1))
        truth = client.compute(split.labels(held_out=True)).result()
        X, scaler = split.rows(held_out=False), None
        progress("held-out rows", n_held_out, n_held_out)
        if scale:
            progress("scaling", 0, n)
            scaler = DaskStandardScaler().fit(X, client=client)
            X, queries = scaler.transform(X), client.persist(scaler.transform(queries))
            progress("scaling", n, n)
        return cls(X, split.labels(held_out=False), queries, truth, scaler, n_neighbors, seed, client)

    def ranking(self, progress: NamedProgress) -> Ranking:
        """Return what the methods do, one after the other; on an interruption, of those that are finished.

        A method that fails is skipped, but without the raw features there is nothing to compare with.
        """
        from distributed import KilledWorker

        finished, notes, interrupted = [], [], False
        for name, method in self._methods().items():
            with warnings.catch_warnings(record=True) as remarks:
                warnings.simplefilter("always")
                try:
                    finished.append(self._result(name, method, progress))
                except KeyboardInterrupt:
                    interrupted = True
                except (ValueError, MemoryError, ImportError, RuntimeError) as error:
                    notes.append(f"{name} skipped: {_first_line(error)}")
                except KilledWorker:
                    notes.append(f"{name} skipped: {KILLED}")
            notes += dict.fromkeys(f"{name}: {_first_line(remark.message)}" for remark in remarks)
            if interrupted or not finished:
                break
        if not finished:
            raise KeyboardInterrupt if interrupted else TableError(notes[0])
        shape = {"n_train": self.X.shape[0], "n_held_out": len(self.truth)}
        scaled = self.scaler is not None
        return Ranking(judged(finished), tuple(notes), self.n_neighbors, **shape, scaled=scaled, seed=self.seed,
                       interrupted=interrupted)  # fmt: skip

    def _methods(self) -> dict[str, Any]:
        """Return the contestants by name, unfitted; None for the raw features."""
        from ..dask import DaskDNE, DaskLPP, DaskNCA, DaskNMMP
        from ..dask.pca import DaskPCA

        n, p = self.X.shape
        m = min(MOST_DIMENSIONS, -(-p // 2))
        search = choose_search(n)
        solver = "lbfgs" if search == "exact" else "sgd"
        return {
            RAW: None,
            "PCA": DaskPCA(m),
            "LPP": DaskLPP(m, search=search),
            "DNE": DaskDNE(m, search=search),
            "NMMP": DaskNMMP(m, n_neighbors_within=NMMP_KIN, search=search),
            "NCA": DaskNCA(m, solver=solver, search=search, random_state=self.seed),
        }

    def _result(self, name: str, method: Any, progress: NamedProgress) -> Result:
        """Return what a method does: it learns from the training rows, which then vote on the held-out ones."""
        from ..dask._votes import nearest_labels

        n, m = self.X.shape
        progress(name, 0, n)
        start = time.perf_counter()
        if method is not None:
            method.fit(self.X, self.y, client=self.client)
            m = len(method.components_)
        seconds = time.perf_counter() - start
        Z, Q = self._mapped(method, self.X), self._mapped(method, self.queries)
        near = nearest_labels(
            Z, self.y, Q, self.n_neighbors, client=self.client, progress=lambda done, total: progress(name, done, total)
        )
        return Result(name, method, m, seconds, majority(near.labels) == self.truth)

    def _mapped(self, method: Any, X: Any) -> Any:
        return X if method is None else method.transform(X)

    def model(self, ranking: Ranking, split: Split) -> Model:
        """Return the winner as a model; of the training rows at most 100,000, evenly drawn, keep their vote."""
        best, raw, score = ranking.best, ranking.raw, CLASSIFICATION.score_name
        steps = [step.to_local() for step in (self.scaler, best.map) if step is not None]
        places, numbers = split.voters(MOST_VOTERS)
        coordinates, codes = (self._taken(array, places) for array in (self._mapped(best.map, self.X), self.y))
        figures = {score: best.accuracy, "std": best.error, f"raw_{score}": raw.accuracy, "folds": 1.0}
        model = new_model(
            steps,
            numbers_only(split.features),
            task=CLASSIFICATION.name,
            method=best.name,
            classes=split.classes.tolist(),
            n_neighbors=self.n_neighbors,
            n_rows=split.folder.n_rows,
            target=split.target,
            table=split.folder.name,
            held_out=figures | ({} if best is raw else {"p_value": best.p_value}),
        )
        return with_voters(model, coordinates.astype(np.float64), numbers, codes)

    def _taken(self, array: Any, places: list[np.ndarray]) -> np.ndarray:
        """Return some rows of every block, brought together."""
        from dask import delayed

        blocks = array.to_delayed().ravel()
        parts = [delayed(np.take)(block, some, axis=0) for block, some in zip(blocks, places, strict=True)]
        return np.concatenate(self.client.gather(self.client.compute(parts)))


def _first_line(error: Any) -> str:
    return str(error).partition("\n")[0]
