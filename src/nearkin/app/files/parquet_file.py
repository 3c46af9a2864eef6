"""Parquet and Feather files as streams of Arrow record batches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, feather, parquet, types

from ..._messages import listed, shown
from ...tables import text_of
from ..endings import TableError
from .list_cells import is_text, width_of
from .readers import TEXT, Names, Source, unique_names

CELLS_PER_BATCH = 2**18  # of a Parquet file
MIN_ROWS_PER_BATCH = 1024  # smaller batches have too much overhead
COLUMNS_PER_PASS = 8
MICROSECONDS_A_DAY = 86_400e6  # durations are converted to days, as in data frames
BUFFER = 2**16  # bytes per column that is read


class ParquetFile(Source):
    """A Parquet file of plain columns and vectors."""

    kind = "Parquet file"
    remedy = "write it again"

    def _open(self) -> None:
        with self.readable():
            self._file, self.group_sizes = self._stored()
            given = self._file.schema_arrow.names
            names, self.notes = unique_names(self.path, given, self.reading.strict)
            if self.notes:  # columns of one name cannot be read alone
                table = self._file.read().rename_columns(names)
                self._file, self.group_sizes = TableInMemory(table), [len(table)]
        schema = self._file.schema_arrow
        kinds = {column.name: kind_of(column.type) for column in schema}
        strange = [
            f"{shown(name)} ({schema.field(name).type})" for name, kind in kinds.items() if not kind
        ]
        if strange or not kinds:
            found = listed(strange, 5) or "a table without columns"
            raise TableError(
                f"{self.path}: no numbers, text, dates or lists of numbers in {found}: convert or "
                "drop these."
            )
        self.n_rows = sum(self.group_sizes)
        nested = {"vector"} if self.reading.vectors is None else {"vector", "text"}
        widths = {name: self._width(name) for name, kind in kinds.items() if kind in nested}
        empty = [name for name, width in widths.items() if not width and kinds[name] == "vector"]
        if empty and self.n_rows:
            raise TableError(
                f"{self.path}: {shown(empty[0])} holds lists without numbers: give numbers, or "
                "drop it."
            )
        widths = {name: width for name, width in widths.items() if width}
        self.text = [name for name, kind in kinds.items() if kind == "text" and name not in widths]
        self.learn_columns(list(kinds), widths)

    def _stored(self) -> tuple[Any, list[int]]:
        """Return the file, and the numbers of rows of its groups."""
        file = parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        return file, [group.num_rows for group in groups]

    def _width(self, name: str) -> int:
        """Return the length of the vectors in a column, or 0 if it holds none."""
        with self.readable():
            batches = self._file.iter_batches(64, columns=[name])
            return width_of(_plain(batch.column(0)) for batch in batches)

    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield a few columns at a time, since each column needs a few MB.

        All numbers of a vector come together.
        """
        at = {field: place // COLUMNS_PER_PASS for place, field in enumerate(self.columns)}
        for _, part in groupby(names, lambda name: at[self._column_of[name]]):
            yield from self.rows(list(part), 0, self.n_rows)

    def identifiers(self, name: str) -> Any:
        """Return a column in the type of the file."""
        if name not in self.columns:  # but a number of a vector
            return pa.chunked_array([batch[name] for _, batch in self.batches([name])])
        with self.readable():
            column = self._file.read([name])[name]
            column.validate(full=True)  # text may be invalid UTF-8
        return column

    def rows(self, names: Names, start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Yield the rows from `start` to `stop` in batches of 2^18 cells, or of 1,024 rows if
        larger.

        Memory holds one batch and a buffer for every column, whatever the size of the row groups. A
        group of which some rows are needed is read from its beginning. A file with fewer rows than
        `stop` raises an error.
        """
        if self.n_rows < stop:
            raise TableError(
                f"{self.path} has fewer rows than when the command began: run it again."
            )
        fields = self.fields_of(names)
        n_columns = sum(len(self.columns[field]) for field in fields)
        ends = np.cumsum([0, *self.group_sizes]).tolist()
        first = bisect_right(ends, start) - 1
        groups, at = list(range(first, bisect_left(ends, stop))), ends[first]
        with self.readable():
            size = max(MIN_ROWS_PER_BATCH, CELLS_PER_BATCH // n_columns)
            for batch in self._file.iter_batches(size, groups, fields, use_threads=False):
                rows = batch[max(start - at, 0) : max(stop - at, 0)]
                if len(rows):
                    row = max(start, at)
                    columns = list(map(_plain, rows.columns))
                    plain = pa.record_batch(columns, rows.schema.names)
                    yield row, self.expanded(plain, names, row)
                at += len(batch)
                self.progress(at, self.n_rows)


class FeatherFile(ParquetFile):
    """A Feather (Arrow IPC) file."""

    kind = "Feather file"

    def _stored(self) -> tuple[Any, list[int]]:
        table = feather.read_table(self.path, memory_map=True)
        return TableInMemory(table), [len(table)]


class TableInMemory:
    """An Arrow table with the methods of a Parquet file that are needed here."""

    def __init__(self, table: Any) -> None:
        self.table, self.schema_arrow = table, table.schema

    def read(self, names: Names | None = None) -> Any:
        """Return some columns, by default all."""
        return self.table if names is None else self.table.select(names)

    def iter_batches(
        self, size: int, groups: Any = None, columns: Names = (), use_threads: bool = False
    ) -> Iterator[Any]:
        """Yield some columns in batches of `size` rows, at most."""
        yield from self.read(columns).to_batches(max_chunksize=size)


def kind_of(kind: Any) -> str:
    """Return the kind of a type: "number" (including booleans), "text", "vector", or ""."""
    if isinstance(kind, pa.FixedShapeTensorType):
        kind = kind.storage_type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        numbers = types.is_integer(kind.value_type) or types.is_floating(kind.value_type)
        return "vector" if numbers else "text" * is_text(kind.value_type)
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_decimal(kind) or types.is_null(kind) or types.is_duration(kind):
        return "number"
    if types.is_temporal(kind):
        return "text"
    if types.is_primitive(kind):
        return "number"
    return "text" if is_text(kind) else ""


def _plain(column: Any) -> Any:
    """Return a column as numbers, booleans, text or lists of numbers."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_decimal(kind) or types.is_float16(kind) or types.is_null(kind):
        return column.cast(pa.float64())
    if types.is_duration(kind):
        microseconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return compute.divide(microseconds.cast(pa.float64(), safe=False), MICROSECONDS_A_DAY)
    if types.is_nested(kind) and kind_of(kind) == "text":
        cells = column.to_pylist()
        return pa.array([None if cell is None else text_of(cell) for cell in cells], TEXT)
    column = column.cast(TEXT) if kind_of(kind) == "text" else column
    if not types.is_nested(kind):
        column.validate(full=True)  # text may be invalid UTF-8
    return column
