"""Files of vectors, mapped by a saved adapter."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from .._blocks import row_blocks
from .._messages import counted
from . import console
from .adapter_file import SavedAdapter, load_adapter
from .output import (
    STANDARD_OUTPUT,
    Outputs,
    atomic_folder,
    for_csv,
    print_columns,
    table_output,
    write_columns,
)
from .parquet_folder import Part, number_batches, open_folder
from .readers import TableError
from .tables import reading
from .vectors import read_vectors

ROWS_PER_GROUP = 2**16  # of the files written
VECTORS = "embedding"  # the column that is written where the numbers had columns of their own


def transform_vectors(options: argparse.Namespace) -> int:
    """Write the adapted vectors of a file, or of every file of a folder."""
    adapter = load_adapter(options.model)
    if options.dask is not None:
        return _transform_folder(adapter, options)
    output, suffix = table_output(options)
    if Path(options.table).is_dir():
        raise TableError(f"{options.table} is a folder: give --dask, too, for its Parquet files.")
    read = partial(
        read_vectors,
        options.table,
        ids=options.id,
        columns=adapter.columns,
        reading=reading(options),
    )
    table = console.while_reading(options, lambda progress: read(progress=progress))
    outputs = Outputs(quiet=options.quiet)
    outputs.note(*table.notes)
    Z = np.concatenate([adapter.transform(table.X[rows]) for rows in row_blocks(*table.X.shape)])
    ids: dict[str, Any] = {} if options.id is None else {options.id: table.ids}
    if suffix == ".csv":
        ids = for_csv(ids, rounded=False, escape=options.escape_formulas)
    if output is None:
        print_columns(ids | _columns(adapter, Z))
        return 0
    done = (
        f"{counted(len(Z), 'vector')} adapted ({adapter.name}, {adapter.bytes} bytes each): "
        f"{output}"
    )
    outputs.write(output, "-o", partial(_write, adapter, Z, ids, suffix), done)
    return outputs.code


def describe_adapter(options: argparse.Namespace) -> int:
    """Print what an adapter is, and how good it was for held-out queries."""
    adapter = load_adapter(options.model)
    found = adapter.held_out
    side = (
        "queries alone: documents stay as they are"
        if adapter.map.side == "query"
        else "queries and documents"
    )
    console.say(
        f"{options.model}: {adapter.name}, learned from {adapter.table}, saved by nearkin "
        f"{adapter.version}"
    )
    console.say(
        f"Vectors: {adapter.map.n_features_in_} numbers to {adapter.map.n_components_}, "
        f"{adapter.bytes} bytes each, of {side}"
    )
    console.say(
        f"Held out: {adapter.score} {100 * found['adapter']:.1f}, raw {100 * found['raw']:.1f} "
        f"(95% interval of the difference {100 * found['low']:+.1f} to {100 * found['high']:+.1f} "
        f"points), {found['n_queries']:,.0f} "
        f"queries{'' if adapter.part == 'queries' else f' of {adapter.part}'}"
    )
    return 0


def _write(
    adapter: SavedAdapter, Z: np.ndarray, ids: dict[str, Any], suffix: str, path: Path
) -> None:
    if suffix == ".npz":
        write_columns(ids | {"X": Z}, suffix, path)
    elif suffix == ".csv":
        write_columns(ids | _columns(adapter, Z), suffix, path)
    else:
        names = {name: pa.array(cells) for name, cells in ids.items()}
        parquet.write_table(
            pa.table(names | {_name(adapter): vector_column(Z)}),
            path,
            row_group_size=ROWS_PER_GROUP,
        )


def _columns(adapter: SavedAdapter, Z: np.ndarray) -> dict[str, np.ndarray]:
    """Return every number, or byte of a code, as a column."""
    return {f"{_name(adapter)}[{place}]": column for place, column in enumerate(Z.T)}


def _name(adapter: SavedAdapter) -> str:
    return adapter.column or VECTORS


def vector_column(Z: np.ndarray) -> Any:
    """Return rows as an Arrow column of lists of one length, as vector databases read them."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(Z).ravel()), Z.shape[1])


def _transform_folder(adapter: SavedAdapter, options: argparse.Namespace) -> int:
    """Write a file of adapted vectors for every file of a folder, into a folder that appears when
    all are written.
    """
    if options.output == STANDARD_OUTPUT:
        raise TableError(
            "with --dask vectors are written as files: name a folder for them with -o."
        )
    folder, out = open_folder(Path(options.table)), Path(options.output)
    folder.require_numbers(adapter.columns)
    if options.id is not None and options.id not in folder.names:
        raise TableError(
            f"{folder.path} has no column {options.id!r}: name one that it has by --id."
        )
    from .. import dask  # noqa: F401 - where it is missing, the error names the extra
    from .cluster import cluster, write_folder

    with (
        atomic_folder(out) as part,
        cluster(options.dask) as client,
        console.Progress("rows", quiet=options.quiet) as progress,
    ):
        write = partial(map_vectors, adapter=adapter, ids=options.id)
        write_folder(write, folder, part, client, partial(progress, "rows mapped"))
    done = f"{counted(folder.n_rows, 'vector')} adapted ({adapter.name}): {out}"
    Outputs(quiet=options.quiet).note(f"{done} ({counted(len(folder.files), 'file')})")
    return 0


def map_vectors(file: Part, target: Path, adapter: SavedAdapter, ids: str | None) -> None:
    """Write the adapted vectors of a file, and the column of their names."""
    from .cluster import drafted, in_groups

    names = (
        None
        if ids is None
        else parquet.read_table(file.path, columns=[ids]).column(0).combine_chunks()
    )
    batches = number_batches(file, adapter.columns, np.float32)
    start, writer = 0, None
    with drafted(target) as draft:
        for Z in in_groups(map(adapter.transform, batches)):
            columns = {} if names is None else {str(ids): names[start : start + len(Z)]}
            table, start = pa.table(columns | {_name(adapter): vector_column(Z)}), start + len(Z)
            writer = writer or parquet.ParquetWriter(draft, table.schema)
            writer.write_table(table)
        if writer is None:
            raise TableError(f"{file.path} has no rows: remove it.")
        writer.close()
