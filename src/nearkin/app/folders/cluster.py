"""A cluster whose workers process the files of a folder."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dask import config, delayed
from distributed import Client, KilledWorker, LocalCluster, as_completed

from ..._threads import deaf_processes
from ..endings import TableError
from ..files.readers import Progress
from .parquet_folder import Folder
from .rows import Mapping, write_file

KILLED = (
    "workers died repeatedly, most likely for lack of memory: give each one more, or start fewer "
    "of them."
)

LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of the cluster at an address, or of local processes, one per core."""
    # asyncio would report tasks cut off by an interruption
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        # graphs are large: a model travels with its tasks, so that no worker can lose it
        stack.enter_context(config.set({LARGE_GRAPH: "1 PiB"}))
        if not address:
            with deaf_processes():
                local = _local_cluster()
                stack.enter_context(local)
            address = local.scheduler_address
        client = stack.enter_context(Client(address))
        try:
            yield client
        except KilledWorker as error:
            raise TableError(KILLED) from error


def _local_cluster() -> LocalCluster:
    try:
        return LocalCluster(
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs="CRITICAL",
        )
    except RuntimeError as error:
        raise TableError(
            "the processes of --dask could not be started, most likely for lack of memory: free "
            "some, or give the address of a cluster."
        ) from error


def for_each_file(
    client: Any,
    function: Callable[..., Any],
    folder: Folder,
    progress: Progress,
    *more: Any,
    **options: Any,
) -> Iterator[Any]:
    """Call a function on the workers for every file of a folder; yield results in any order."""
    files, done = folder.files, 0
    futures = client.map(function, files, *more, pure=False, **options)
    sizes = {future.key: file.stop for future, file in zip(futures, files, strict=True)}
    progress(0, folder.n_rows)
    for future in as_completed(futures):
        yield future.result()
        done += sizes[future.key]
        progress(done, folder.n_rows)


def write_folder(
    folder: Folder, target: Path, client: Any, progress: Progress, mapping: Mapping, **options: Any
) -> Counter[str]:
    """Let the workers write a file of the same name into `target` for every file of a folder.

    Return the number of missing cells of each column. `mapping` and `options` are those of
    `write_file`.
    """
    target = target.absolute()  # workers may have another working directory
    targets = [target / file.path.name for file in folder.files]
    # a task of its own, sent to a worker once instead of with every file
    shared = client.compute(delayed(mapping, traverse=False))
    missing = sum(
        for_each_file(client, write_file, folder, progress, targets, mapping=shared, **options),
        Counter[str](),
    )
    # drafts of workers that died; others have written these files
    for path in set(target.iterdir()) - set(targets):
        path.unlink()
    return missing
