"""JSON files, which are read as a whole and then like Parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ...tables import text_of
from .csv_file import opened_bytes
from .parquet_file import ParquetFile, TableInMemory, kind_of
from .readers import TEXT

WRAPPERS = ("result", "points", "vectors", "matches", "data")  # of records, in dumps of stores


class JsonFile(ParquetFile):
    """A JSON file with an array of records, a record on every line, or the dump of a vector store.

    Records in a record become columns such as "address.city"; columns as `pandas.DataFrame.to_json`
    writes them are read, too.
    """

    kind = "JSON table"
    remedy = "write an array of records, or one record a line"

    def _open(self) -> None:
        self._remarks = list[str]()
        super()._open()
        self.notes = [*self.notes, *self._remarks]

    def _stored(self) -> tuple[Any, list[int]]:
        found = load_json(self.path)
        records = records_of(found)
        if (
            self.reading.vectors is not None
            and _holds_vectors_by_name(found)
            and not set(found) & set(self.reading.named)
        ):
            self._remarks.append("read as vectors by name, with the names in the column id")
            records = [{"id": name, "vector": vector} for name, vector in found.items()]
        if records is not None:
            frame = pd.json_normalize(records)
        elif isinstance(found, dict) and all(isinstance(cells, dict) for cells in found.values()):
            frame = pd.DataFrame(found)
        else:
            raise ValueError("it holds no records")
        names = list(map(str, frame.columns))
        table = pa.table([self._array(frame[name].tolist()) for name in frame.columns], names)
        return TableInMemory(table), [len(table)]

    def _array(self, cells: Sequence[Any]) -> Any:
        """Return a column in a type of Arrow, or as text if its cells have different types."""
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            array = pa.array(cells, from_pandas=True)
            lengths = {len(cell) for cell in cells if isinstance(cell, list)}
            if kind_of(array.type) and (len(lengths) <= 1 or self.reading.vectors is not None):
                return array
        return pa.array([_text(cell) for cell in cells], TEXT)


def load_json(path: Path) -> Any:
    """Return what a JSON file holds; of JSON lines, a list of their values.

    Raise a ValueError if it is damaged.
    """
    with opened_bytes(path) as (file, _), io.TextIOWrapper(file, "utf-8-sig", newline="\n") as text:
        first = next((line for line in text if line.strip()), "")
        try:
            values = [json.loads(first)]
        except ValueError:
            return json.loads(first + text.read())
        for number, line in enumerate(text, 2):
            try:
                values += [json.loads(line)] if line.strip() else []
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
    return values[0] if len(values) == 1 else values


def records_of(found: Any) -> list[dict[str, Any]] | None:
    """Return records, the rows of a matrix, or those in the dump of a vector store; else None.

    Qdrant and Pinecone wrap records, Pinecone also by their ids, and Chroma writes columns. What
    `scroll` of Qdrant returns is a pair of records and the offset of further ones, or None.
    """
    if isinstance(found, list) and found:
        if len(found) == 2 and _holds_records(found[0]) and not isinstance(found[1], list | dict):
            return records_of(found[0])
        if all(isinstance(record, dict) for record in found):
            return found
        if all(isinstance(row, list) for row in found):
            return [{"vector": row} for row in found]
    if not isinstance(found, dict):
        return None
    for key in WRAPPERS:
        if _holds_records(found.get(key)):
            return records_of(found[key])
    if all(isinstance(one, dict) and one.get("id") == key for key, one in found.items()):
        return list(found.values())
    columns = {
        name: cells
        for name, cells in found.items()
        if cells is not None and not (name == "included" and "ids" in found)
    }
    lengths = {len(cells) if isinstance(cells, list) else -1 for cells in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        return None
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _holds_records(found: Any) -> bool:
    """Return whether a value is a list of records, or a record that is no column of pandas."""
    if isinstance(found, list):
        return bool(found) and isinstance(found[0], dict)
    if not isinstance(found, dict):
        return False
    return any(_holds_records(found.get(key)) for key in WRAPPERS) or any(
        isinstance(one, dict) and one.get("id") == key for key, one in found.items()
    )


def _holds_vectors_by_name(found: Any) -> bool:
    """Return whether a dict holds a vector for every name of a row.

    It holds columns if some of them are of whole numbers, such as labels, and others are not, even
    if some of their numbers are written as whole ones.
    """
    if not isinstance(found, dict) or not found:
        return False
    if not all(isinstance(row, list) for row in found.values()):
        return False
    lengths = {len(row) for row in found.values()}
    kinds = {frozenset(type(number) for number in row if number) for row in found.values()}
    is_label = frozenset({int}) in kinds and any(float in kind for kind in kinds)
    return (
        len(lengths) == 1
        and min(lengths) > 1
        and set().union(*kinds) <= {int, float}
        and not is_label
    )


def _text(cell: Any) -> str | None:
    """Return a cell as text; None if it is missing."""
    if cell is None or cell != cell:
        return None
    return json.dumps(cell) if isinstance(cell, dict) else text_of(cell)
