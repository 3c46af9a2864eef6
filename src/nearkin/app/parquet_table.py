"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from .columns import CELLS_PER_BLOCK
from .table import TableError, listed, quoted


class ParquetFile:
    """A Parquet file of plain columns; see `columns.File`."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = path
        try:
            self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
        except pa.ArrowInvalid as error:
            raise TableError(
                f"{path} is no Parquet file, or damaged ({_first_line(error)}): write it again."
            ) from error
        self._schema = self._file.schema_arrow
        self.names = list(self._schema.names)
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise TableError(f"{path} has {quoted(repeated)} more than once: give every column a name of its own.")
        strange = [f"{field.name!r} ({field.type})" for field in self._schema if not _is_plain(field.type)]
        if strange:
            raise TableError(
                f"{path}: no numbers, text, dates or truth values in {listed(strange, 5)}: give every number a column "
                "of its own, or drop these columns."
            )

    def frames(self, as_text: Collection[str] = ()) -> Iterator[Any]:
        """Yield all rows as DataFrames, always cut at the same rows; columns named in `as_text` hold strings."""
        import pyarrow as pa

        rows = max(1, CELLS_PER_BLOCK // max(1, len(self.names)))
        schema = pa.schema([(field.name, _read_as(field.type, field.name in as_text)) for field in self._schema])
        try:
            for batch in self._file.iter_batches(batch_size=rows):
                table = pa.Table.from_batches([batch.rename_columns(self.names)])
                yield table.cast(schema).to_pandas(ignore_metadata=True)
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(f"{self.path} is damaged ({_first_line(error)}): write it again.") from error

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


def _read_as(kind: Any, as_text: bool) -> Any:
    """Return the type that pandas is to see: numbers and truth values as they are, everything else as text."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return kind
    if as_text:
        return pa.string()
    if types.is_decimal(kind):
        return pa.float64()
    return kind if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) else pa.string()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
