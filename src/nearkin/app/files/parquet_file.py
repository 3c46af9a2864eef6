"""Parquet files as streams of Arrow record batches.

A column of vectors, with a list of numbers in every cell, is treated as that many columns of
numbers. Those of a column "embedding" are named "embedding[0]", "embedding[1]", ...
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet, types

from ..._messages import in_row, listed, shown
from ..endings import TableError
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
        self.text = [name for name, kind in kinds.items() if kind == "text"]
        # the stored columns, and the names of the columns that each becomes
        self._columns = {
            name: self._elements(name) if kind == "vector" else [name]
            for name, kind in kinds.items()
        }
        self.names = [name for columns in self._columns.values() for name in columns]
        self._stored_at = {
            name: at for at, columns in enumerate(self._columns.values()) for name in columns
        }

    def _stored(self) -> tuple[Any, list[int]]:
        """Return the file, and the numbers of rows of its groups."""
        file = parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        return file, [group.num_rows for group in groups]

    def _elements(self, name: str) -> list[str]:
        """Return names for the numbers of a column of vectors, as many as the first vector has."""
        with self.readable():
            batches = self._file.iter_batches(64, columns=[name])
            width = next(
                (len(cell) for batch in batches for cell in batch.column(0) if cell.is_valid), 0
            )
        if width == 0 < self.n_rows:
            raise TableError(
                f"{self.path}: {shown(name)} holds lists without numbers: give numbers, or drop it."
            )
        others = self._file.schema_arrow.names
        elements = [f"{name}[{place}]" for place in range(width)]
        names, _ = unique_names(self.path, [*others, *elements], self.reading.strict)
        return names[len(others) :]

    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield a few columns at a time, since each column needs a few MB.

        All numbers of a vector come together.
        """
        for _, part in groupby(names, lambda name: self._stored_at[name] // COLUMNS_PER_PASS):
            yield from self.rows(list(part), 0, self.n_rows)

    def identifiers(self, name: str) -> Any:
        """Return a column in the type of the file."""
        if name not in self._columns:  # but a number of a vector
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
        every, needed = list(self._columns), {self._stored_at[name] for name in names}
        stored = [every[at] for at in needed]
        n_columns = sum(len(self._columns[name]) for name in stored)
        ends = np.cumsum([0, *self.group_sizes]).tolist()
        first = bisect_right(ends, start) - 1
        groups, at = list(range(first, bisect_left(ends, stop))), ends[first]
        with self.readable():
            size = max(MIN_ROWS_PER_BATCH, CELLS_PER_BATCH // n_columns)
            for batch in self._file.iter_batches(size, groups, stored, use_threads=False):
                rows = batch[max(start - at, 0) : max(stop - at, 0)]
                if len(rows):
                    row = max(start, at)
                    columns: dict[str, Any] = {}
                    for name, column in zip(rows.schema.names, rows.columns, strict=True):
                        columns |= self._plain(name, column, row)
                    yield row, pa.record_batch(columns).select(names)
                at += len(batch)
                self.progress(at, self.n_rows)

    def _plain(self, name: str, column: Any, start: int) -> dict[str, Any]:
        """Return a stored column as columns of numbers, booleans or text.

        For vectors, which must have the length of the first one, there is one column per position.
        """
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if types.is_nested(kind):
            elements = self._columns[name]
            width = len(elements)
            lengths = compute.list_value_length(column).fill_null(width).to_numpy()
            row = int((lengths != width).argmax())
            if lengths[row] != width:
                raise TableError(
                    f"{self.path}: {shown(name)} begins with {width} numbers, but holds "
                    f"{lengths[row]} {in_row(start + row)}: give all rows the same number."
                )
            return {
                element: compute.list_element(column, place)
                for place, element in enumerate(elements)
            }
        if types.is_decimal(kind) or types.is_float16(kind) or types.is_null(kind):
            column = column.cast(pa.float64())
        elif types.is_duration(kind):
            microseconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
            column = microseconds.cast(pa.float64(), safe=False)
            column = compute.divide(column, MICROSECONDS_A_DAY)
        else:
            column = column.cast(TEXT) if name in self.text else column
            column.validate(full=True)  # text may be invalid UTF-8
        return {name: column}


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
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        numbers = types.is_integer(kind.value_type) or types.is_floating(kind.value_type)
        return "vector" if numbers else ""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_decimal(kind) or types.is_null(kind) or types.is_duration(kind):
        return "number"
    if types.is_temporal(kind):
        return "text"
    if types.is_primitive(kind):
        return "number"
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return "text" if is_text else ""
