"""A folder of Parquet files mapped into the learned space of a model, file by file: what `transform --dask` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from .columns import Progress
from .model import Model, with_voters
from .parquet_folder import Folder, Part, number_batches
from .table import TableError

ROWS_PER_GROUP = 2**16  # of the files written


def map_folder(model: Model, folder: Folder, target: Path, client: Any, progress: Progress) -> None:
    """Write a file of coordinates for every file of the folder, of the same name, into the folder `target`."""
    from distributed import as_completed

    target = target.absolute()  # workers may have another working folder
    light = without_voters(model)
    files, targets = folder.whole_files, [target / path.name for path in folder.files]
    futures = client.map(map_file, files, targets, model=light, pure=False)
    sizes, done = {future.key: file.stop for future, file in zip(futures, files, strict=True)}, 0
    progress(0, folder.n_rows)
    for future in as_completed(futures):
        future.result()
        done += sizes[future.key]
        progress(done, folder.n_rows)
    for path in target.iterdir():  # a worker that died has left a part of a file, which another has written anew
        if path not in targets:
            path.unlink()


def without_voters(model: Model) -> Model:
    """Return what maps rows: the coordinates of those that vote need not travel."""
    none = np.empty(0, dtype=int)
    return with_voters(model, np.empty((0, model.n_components)), none, none)


def map_file(file: Part, target: Path, model: Model) -> None:
    """Write the coordinates of the rows of a file, by batches, as float32; the target appears when it is complete."""
    import pyarrow as pa
    from pyarrow import parquet

    if not target.parent.is_dir():
        raise TableError(f"{target.parent} is not there: every worker must see the folder, under the same path.")
    schema = pa.schema([(name, pa.float32()) for name in model.names])
    draft = target.with_name(f"{target.name}.{uuid4().hex}")  # a task may run twice, even at the same time
    with parquet.ParquetWriter(draft, schema) as writer:
        for Z in _groups(model, file):
            if not draft.exists():
                raise TableError(f"{target.parent} is gone: the command that made it has ended.")
            writer.write_batch(pa.record_batch(list(np.ascontiguousarray(Z.T)), schema=schema))
    draft.replace(target)


def _groups(model: Model, file: Part) -> Iterator[np.ndarray]:
    """Yield the coordinates of so many rows at a time as a row group is to hold."""
    waiting: list[np.ndarray] = []
    for _, X in number_batches(file, model.encoder.columns, np.float64):
        waiting.append(model.transform(X).astype(np.float32))
        if sum(map(len, waiting)) >= ROWS_PER_GROUP:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
