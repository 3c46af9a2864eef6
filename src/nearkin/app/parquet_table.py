"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._memory import require_memory
from .columns import CELLS_PER_BLOCK, Columns, Gaps, Progress, ignore, values
from .parquet_vectors import is_vector, spread, spread_names, width_of
from .table import TableError, check_distinct, check_names, listed, reason, shown

MIN_ROWS_PER_BATCH = 1024  # a batch of fewer is all overhead


def open_table(path: Path, progress: Progress = ignore) -> ParquetFile:
    """Return a file that has rows."""
    file = ParquetFile(path, progress)
    if file.n_rows == 0:
        raise TableError(f"{path} has 0 rows: give rows.")
    return file


class ParquetFile:
    """A Parquet file of plain columns, and of vectors as columns of their numbers; see `columns.File`."""

    def __init__(self, path: Path, progress: Progress = ignore, *, buffer_size: int = 2**20) -> None:
        from pyarrow import parquet

        self.path = path
        self._progress = progress
        with self._telling():
            self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=buffer_size)
        schema = self._file.schema_arrow
        if not schema.names:
            raise TableError(f"{path} has no columns: give a table.")
        check_names(path, schema.names)
        strange = [
            f"{shown(field.name)} ({field.type})"
            for field in schema
            if not (_is_plain(field.type) or is_vector(field.type))
        ]
        if strange:
            raise TableError(
                f"{path}: no numbers, text, dates, truth values or lists of numbers in {listed(strange, 5)}: give "
                "every number a column of its own, or all of them as one list, or drop these columns."
            )
        vectors = [field.name for field in schema if is_vector(field.type)]
        with self._telling():
            self._widths = {name: width_of(path, self._file, name) for name in vectors}
        columns = [(name, field) for field in schema for name in spread_names(field.name, self._widths.get(field.name))]
        self.names = [name for name, _ in columns]
        check_distinct(path, self.names)
        self._stored_in = {name: field.name for name, field in columns}
        self._kinds = {name: field.type.value_type if is_vector(field.type) else field.type for name, field in columns}

    def read(
        self,
        names: Sequence[str],
        *,
        as_text: Collection[str] = (),
        as_they_are: Collection[str] = (),
        with_gaps: Collection[str] = (),
    ) -> Columns:
        """Return some columns, read a few at a time: a file may be one block of rows; see `columns.File`."""
        n_rows = self.n_rows
        plain = {name for name in names if not _is_text(self._kinds[name]) and name not in as_text}
        number_names = [name for name in names if name in plain and name not in as_they_are]
        require_memory(8 * n_rows * len(number_names), str(self.path), "take fewer rows or columns")
        numbers, others = np.empty((0, 0)), {}
        numbers.resize((n_rows, len(number_names)))  # Linux copies what np.empty returned when it is to grow
        gaps, position = Gaps(with_gaps), {name: number for number, name in enumerate(number_names)}
        of_vectors = {name: at for name, at in position.items() if self._is_of_vector(name)}
        with self._telling():
            for frame in self._frames([name for name in names if name not in of_vectors], plain):
                gaps.add(frame)
                for name in frame.columns if not gaps.missing.counts else ():
                    if name in position:
                        numbers[:, position[name]] = frame[name]
                    else:
                        others[name] = values(self.path, frame[name], name not in plain)
            for start, frame in self._vectors(list(of_vectors)):
                gaps.add(frame, start)
                if not gaps.missing.counts:
                    numbers[start : start + len(frame), list(of_vectors.values())] = frame
        gaps.refuse(self.path, self.place)
        labels = {name: others.pop(name) for name in as_they_are}
        return Columns(self, numbers, number_names, others, labels)

    def _frames(self, names: Sequence[str], plain: Collection[str]) -> Iterator[Any]:
        """Yield a few columns at a time as a DataFrame; those not plain as strings, but for numbers of vectors."""
        import pandas as pd
        import pyarrow as pa

        alone = [name for name in names if not self._is_of_vector(name)]
        few = max(1, CELLS_PER_BLOCK // self.n_rows)
        for start in range(0, len(alone), few):
            part = alone[start : start + few]
            self._progress(start + len(part), len(names))
            schema = pa.schema([(name, _read_as(self._kinds[name], name not in plain)) for name in part])
            # asked for "a", pyarrow also returns "a.b"
            yield self._file.read(columns=part).select(part).cast(schema).to_pandas(ignore_metadata=True)
        for name in filter(self._is_of_vector, names):
            parts = [
                batch.column(0).to_numpy(zero_copy_only=False) for _, batch in self.batches([name], 0, self.n_rows)
            ]
            yield pd.DataFrame({name: np.concatenate(parts)})

    def _vectors(self, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield numbers of vectors, which are stored together, some rows at a time, and the first row's number."""
        import pandas as pd

        for start, batch in self.batches(names, 0, self.n_rows) if names else ():
            self._progress(len(names) * (start + len(batch)) // self.n_rows, len(names))
            columns = np.array([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            yield start, pd.DataFrame(columns.T, columns=list(names))

    def _is_of_vector(self, name: str) -> bool:
        return self._stored_in[name] in self._widths

    @property
    def n_rows(self) -> int:
        """Return n."""
        return self._file.metadata.num_rows

    @property
    def group_sizes(self) -> list[int]:
        """Return how many rows every row group has: so the metadata tell."""
        about = self._file.metadata
        return [about.row_group(group).num_rows for group in range(about.num_row_groups)]

    def is_text(self, name: str) -> bool:
        """Tell whether the cells of a column are read as text."""
        return _is_text(self._kinds[name])

    def batches(self, names: Sequence[str], start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Yield the rows from `start` to `stop` as Arrow batches, each with its first row's number.

        Batches are of 2^18 cells, or of 1,024 rows where these have more.

        What is held in memory is a batch and a buffer for every column, whatever the sizes of the row groups. One of
        which some rows are wanted is read from its beginning. A file that has fewer rows than `stop` is refused.
        """
        if sum(self.group_sizes) < stop:
            raise TableError(f"{self.path} has fewer rows than when the command began: begin again.")
        if start == stop:
            return
        stored = list(dict.fromkeys(self._stored_in[name] for name in names))
        n_cells = sum(self._widths.get(name, 1) for name in stored)
        n_rows, first = max(MIN_ROWS_PER_BATCH, CELLS_PER_BLOCK // n_cells), 0
        for group, size in enumerate(self.group_sizes):
            if max(start, first) < min(stop, first + size):
                with self._telling():
                    at = first
                    for batch in self._file.iter_batches(n_rows, [group], stored, use_threads=False):
                        low, high = (min(max(row - at, 0), len(batch)) for row in (start, stop))
                        if low < high:
                            part = spread(self.path, batch.slice(low, high - low), self._widths, at + low)
                            yield at + low, part.select(list(names))
                        at += len(batch)
                        if at >= stop:
                            break
            first += size

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn what pyarrow raises on damaged files into one line with the remedy."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            if "Expected all lists to be of size" in str(error):  # pyarrow up to 2026, of a missing one
                raise TableError(
                    f"{self.path}: lists of a fixed size are missing in some rows, which this pyarrow cannot read: "
                    "fill them, drop these rows, or upgrade pyarrow."
                ) from error
            raise TableError(
                f"{self.path} is no Parquet file, or damaged ({reason(error)}): write it again."
            ) from error

    def place(self, row: int) -> str:
        """Return the number of a row."""
        return f"in row {row} (counted from 0)"


def _is_plain(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        is_kind(kind)
        for is_kind in (
            types.is_boolean,
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_temporal,
            types.is_null,
        )
    )


def _is_text(kind: Any) -> bool:
    """Tell whether cells of a type are read as text: all but numbers and truth values are."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return not any(is_kind(kind) for is_kind in plain)


def _read_as(kind: Any, as_text: bool) -> Any:
    """Return the type that pandas is to see."""
    import pyarrow as pa
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_null(kind):
        return kind
    if as_text:
        return pa.string()
    return pa.float64() if types.is_decimal(kind) else kind
