"""Feather and JSON files, which are read as a whole and then like Parquet files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import feather

from ...tables import text_of
from .csv_file import opened_bytes
from .parquet_file import ParquetFile, TableInMemory, kind_of
from .readers import TEXT


class FeatherFile(ParquetFile):
    """A Feather (Arrow IPC) file."""

    kind = "Feather file"

    def _stored(self) -> tuple[Any, list[int]]:
        table = feather.read_table(self.path, memory_map=True)
        return TableInMemory(table), [len(table)]


class JsonFile(ParquetFile):
    """A JSON file with an array of records, or a record on every line.

    Records in a record become columns such as "address.city"; columns as `pandas.DataFrame.to_json`
    writes them are read, too.
    """

    kind = "JSON table"
    remedy = "write an array of records, or one record a line"

    def _stored(self) -> tuple[Any, list[int]]:
        with opened_bytes(self.path) as (file, _):
            text = file.read().decode("utf-8-sig")
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            found = [json.loads(line) for line in text.split("\n") if line.strip()]
        if isinstance(found, dict) and all(
            isinstance(cell, dict | list) for cell in found.values()
        ):
            frame = pd.DataFrame(found)
        elif all(isinstance(record, dict) for record in found):
            frame = pd.json_normalize(found)
        else:
            raise ValueError("it holds no records")
        names = list(map(str, frame.columns))
        table = pa.table([_array(frame[name].tolist()) for name in frame.columns], names=names)
        return TableInMemory(table), [len(table)]


def _array(cells: Sequence[Any]) -> Any:
    """Return a column in a type of Arrow, or as text if its cells have different types."""
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
        array = pa.array(cells, from_pandas=True)
        lengths = {len(cell) for cell in cells if isinstance(cell, list)}
        if kind_of(array.type) and len(lengths) <= 1:
            return array
    return pa.array([_text(cell) for cell in cells], TEXT)


def _text(cell: Any) -> str | None:
    """Return a cell as text; None if it is missing."""
    if cell is None or cell != cell:
        return None
    return json.dumps(cell) if isinstance(cell, dict) else text_of(cell)
