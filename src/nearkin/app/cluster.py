"""A cluster, and what its workers do with the files of a folder: map them into the learned space of
a model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from distributed import Client, KilledWorker, LocalCluster, as_completed
from pyarrow import parquet

from .._blocks import deaf_processes
from .model import Model, with_voters
from .parquet_folder import Folder, Part, number_batches
from .readers import Progress, TableError
from .tables import needed_columns

ROWS_PER_GROUP = 2**16  # of the files written
KILLED = (
    "workers died again and again, most likely for want of memory: give them more, or take fewer "
    "of them."
)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of the cluster whose scheduler has an address, or of processes here, one for
    each core.
    """
    # else it reports what an interruption has cut off
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if not address:
            with deaf_processes():
                local = LocalCluster(
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",
                    silence_logs="CRITICAL",
                )
            address = stack.enter_context(local).scheduler_address
        client = stack.enter_context(Client(address))
        try:
            yield client
        except KilledWorker as error:
            raise TableError(KILLED) from error


def for_each_file(
    client: Any,
    function: Callable[..., Any],
    folder: Folder,
    progress: Progress,
    *more: Any,
    **options: Any,
) -> Iterator[Any]:
    """Call a function with every file of a folder on the workers, and yield what it returns, in any
    order.
    """
    files, done = folder.whole_files, 0
    futures = client.map(function, files, *more, pure=False, **options)
    sizes = {future.key: file.stop for future, file in zip(futures, files, strict=True)}
    progress(0, folder.n_rows)
    for future in as_completed(futures):
        yield future.result()
        done += sizes[future.key]
        progress(done, folder.n_rows)


def map_folder(model: Model, folder: Folder, target: Path, client: Any, progress: Progress) -> None:
    """Write a file of coordinates for every file of the folder, of the same name, into the folder
    `target`.
    """
    none = np.empty(0, dtype=int)  # the voters need not travel
    light = with_voters(model, np.empty((0, model.n_components)), none, none)
    write_folder(partial(map_file, model=light), folder, target, client, progress)


def write_folder(
    write: Callable[[Part, Path], None],
    folder: Folder,
    target: Path,
    client: Any,
    progress: Progress,
) -> None:
    """Have the workers `write` a file for every file of the folder, of the same name, into the
    folder `target`.
    """
    target = target.absolute()  # workers may have another working folder
    targets = [target / path.name for path in folder.files]
    for _ in for_each_file(client, write, folder, progress, targets):
        pass
    # drafts of workers that died: others have written the file
    for path in set(target.iterdir()) - set(targets):
        path.unlink()


def map_file(file: Part, target: Path, model: Model) -> None:
    """Write the coordinates of the rows of a file, as float32."""
    schema = pa.schema([(name, pa.float32()) for name in model.names])
    batches = number_batches(file, needed_columns(model.encoder), np.float64)
    with drafted(target) as draft, parquet.ParquetWriter(draft, schema) as writer:
        for Z in in_groups(model.transform(X).astype(np.float32) for X in batches):
            writer.write_batch(pa.record_batch(list(np.ascontiguousarray(Z.T)), schema=schema))


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Yield a path to write to; `target` appears when it is complete."""
    if not target.parent.is_dir():
        raise TableError(
            f"{target.parent} is not there: every worker must see the folder, under the same path."
        )
    # a task may run twice, even at the same time
    draft = target.with_name(f"{target.name}.{uuid4().hex}")
    yield draft
    draft.replace(target)


def in_groups(batches: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield batches of rows joined, enough for a row group each; the last may be fewer."""
    waiting = list[np.ndarray]()
    for Z in batches:
        waiting.append(Z)
        if sum(map(len, waiting)) >= ROWS_PER_GROUP:
            yield np.concatenate(waiting)
            waiting.clear()
    if waiting:
        yield np.concatenate(waiting)
