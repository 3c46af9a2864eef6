"""A cluster, and what its workers do with the files of a folder: map their rows by a model or an
adapter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from distributed import Client, KilledWorker, LocalCluster, as_completed
from pyarrow import parquet

from .._blocks import deaf_processes
from .adapter_file import SavedAdapter
from .model import Model
from .output import ROWS_PER_GROUP
from .parquet_folder import Folder, Part, number_batches
from .readers import Progress, TableError

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
    files, done = folder.files, 0
    futures = client.map(function, files, *more, pure=False, **options)
    sizes = {future.key: file.stop for future, file in zip(futures, files, strict=True)}
    progress(0, folder.n_rows)
    for future in as_completed(futures):
        yield future.result()
        done += sizes[future.key]
        progress(done, folder.n_rows)


def write_folder(
    folder: Folder, target: Path, client: Any, progress: Progress, **options: Any
) -> None:
    """Have the workers write a file of mapped rows for every file of the folder, of the same name,
    into the folder `target`; `options` are those of `map_file`.
    """
    target = target.absolute()  # workers may have another working folder
    targets = [target / file.path.name for file in folder.files]
    for _ in for_each_file(client, map_file, folder, progress, targets, **options):
        pass
    # drafts of workers that died: others have written the file
    for path in set(target.iterdir()) - set(targets):
        path.unlink()


def map_file(
    file: Part,
    target: Path,
    *,
    mapping: Model | SavedAdapter,
    numbers: list[str],
    dtype: Any = np.float64,
    ids: str | None = None,
) -> None:
    """Write what a model or an adapter maps the rows of a file to, from these columns of numbers,
    and the column `ids` as it is.
    """
    if not target.parent.is_dir():
        raise TableError(
            f"{target.parent} is not there: every worker must see the folder, under the same path."
        )
    kept = parquet.read_table(file.path, columns=[] if ids is None else [ids])

    def table(Z: np.ndarray, start: int) -> Any:
        Z = Z.astype(np.float32) if Z.dtype == np.float64 else Z
        cells = kept[start : start + len(Z)]
        return pa.table(
            dict(zip(cells.column_names, cells.columns, strict=True))
            | mapping.as_columns(Z, ".parquet")
        )

    # a file without rows has columns, too
    no_rows = mapping.transform(np.zeros((1, len(numbers))))[:0]
    # a task may run twice, even at the same time: `target` appears when it is complete
    draft = target.with_name(f"{target.name}.{uuid4().hex}")
    with parquet.ParquetWriter(draft, table(no_rows, 0).schema) as writer:
        start = 0
        for Z in in_groups(map(mapping.transform, number_batches(file, numbers, dtype))):
            writer.write_table(table(Z, start))
            start += len(Z)
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
