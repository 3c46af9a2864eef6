"""Columns of vectors in Parquet, a list of numbers in every cell: for the rest of the command many columns of numbers.

Those of a column "embedding" are called "embedding[0]", "embedding[1]", ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .table import TableError, shown


def is_vector(kind: Any) -> bool:
    """Tell whether cells of a type are lists of numbers."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type))


def width_of(path: Path, file: Any, name: str) -> int:
    """Return how many numbers the vectors of a column hold, by its first; 0 in a file without rows.

    `file` is a `pyarrow.parquet.ParquetFile`.
    """
    kind = file.schema_arrow.field(name).type
    if hasattr(kind, "list_size"):
        width = kind.list_size
    else:
        cells = (cell.as_py() for batch in file.iter_batches(64, columns=[name]) for cell in batch.column(name))
        width = len(next((cell for cell in cells if cell is not None), ()))
    if width == 0 < file.metadata.num_rows:
        raise TableError(f"{path}: {shown(name)} holds lists without numbers: give numbers, or drop this column.")
    return width


def spread_names(name: str, width: int | None) -> list[str]:
    """Return the names of the columns that a column becomes; its own if it holds no vectors."""
    return [name] if width is None else [f"{name}[{number}]" for number in range(width)]


def spread(path: Path, batch: Any, widths: dict[str, int], start: int) -> Any:
    """Return an Arrow batch with a column for every number of its vectors; `start` is the number of its first row."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in widths:
            numbers = np.ascontiguousarray(_matrix(path, name, column, widths[name], start).T)
            columns.update(zip(spread_names(name, widths[name]), map(pa.array, numbers), strict=True))
        else:
            columns[name] = column
    return pa.record_batch(columns)


def _matrix(path: Path, name: str, column: Any, width: int, start: int) -> np.ndarray:
    """Return vectors as rows of a matrix; those that are missing, and numbers that are, as NaN."""
    lengths = column.value_lengths().fill_null(width).to_numpy()
    if (lengths != width).any():
        row = int((lengths != width).argmax())
        raise TableError(
            f"{path}: {shown(name)} begins with {width} numbers, but holds {lengths[row]} in row {start + row} "
            "(counted from 0): give all rows as many."
        )
    numbers = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    if column.null_count == 0:
        return numbers
    X = np.full((len(column), width), np.nan)
    X[column.is_valid().to_numpy(zero_copy_only=False)] = numbers
    return X
