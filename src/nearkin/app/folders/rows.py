"""Results for the rows of a folder: for every Parquet file another one, written in batches.

The new files contain coordinates or predictions. A worker of a cluster processes one file at a
time, and needs only this file and the new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ..._messages import quoted
from ...tables import NumberColumn
from ..endings import TableError
from ..files.readers import require_length
from ..output import ROWS_PER_GROUP, beside
from ..tables.model import Model, as_table, predicting
from ..tables.reading import given_names
from ..vectors.adapter_file import SavedAdapter
from .parquet_folder import Folder, Part, number_batches

Mapping = Model | SavedAdapter
# computes columns from numeric rows
Answer = Callable[[np.ndarray], dict[str, Any]]


def coordinates(mapping: Mapping) -> Answer:
    """Return a function that maps rows by a model or adapter, to float32 coordinates or codes."""

    def answer(X: np.ndarray) -> dict[str, Any]:
        Z = mapping.transform(X)
        return mapping.as_columns(Z.astype(np.float32) if Z.dtype == np.float64 else Z, ".parquet")

    return answer


def predictions(model: Model, search: str = "exact", coverage: float | None = None) -> Answer:
    """Return a function that predicts rows like `nearkin predict`; search lists are built now."""
    predicted = predicting(model, search, coverage)
    return lambda X: as_table(model, predicted(X))


def names_read(mapping: Mapping, folder: Folder) -> list[str]:
    """Return the columns to read for a model or an adapter; raise an error if not numeric."""
    if isinstance(mapping, SavedAdapter):
        names = mapping.columns
        require_length(folder.path, folder.names, names)
    else:
        columns = mapping.encoder.columns_
        require_length(folder.path, folder.names, given_names(mapping.encoder))
        names = [column.name for column in columns]
        text = [
            column.name
            for column in columns
            if not isinstance(column, NumberColumn) or not column.plain
        ]
        if text:
            raise TableError(
                f"{folder.path}: the model learned from text in {quoted(text, 5)}, but --dask only "
                "reads numbers: give the files one by one, without --dask."
            )
    folder.require_numbers(names)
    return names


def write_file(
    file: Part,
    target: Path,
    *,
    mapping: Mapping,
    begin: Callable[[Any], Answer],
    names: list[str],
    ids: str | None = None,
    numbered: bool = False,
) -> Counter[str]:
    """Write the results for the rows of a file; return the number of missing cells by column.

    Parameters
    ----------
    file : Part
    target : Path
    mapping : Model or SavedAdapter
    begin : callable
        `coordinates` or `predictions`: given the model or adapter, returns a function of rows.
    names : list of str
        Numeric columns to which the function is applied.
    ids : str, optional
        A column that is copied, before the others.
    numbered : bool, default=False
        Whether row numbers are the first column.
    """
    if not target.parent.is_dir():
        raise TableError(
            f"{target.parent} does not exist: every worker must see the folder under this path."
        )
    kept = parquet.read_table(file.path, columns=[] if ids is None else [ids])
    answer, missing = begin(mapping), Counter[str]()

    def table(columns: dict[str, Any], start: int, stop: int) -> Any:
        if numbered:
            columns = beside("row", np.arange(start, stop), columns)
        for name in kept.column_names:
            columns = beside(name, kept[name][start:stop], columns)
        return pa.table(columns)

    def tables() -> Iterator[Any]:
        start = 0
        for X in number_batches(file, names, **reading_for(mapping)):
            missing.update(dict(zip(names, np.isnan(X).sum(axis=0).tolist(), strict=True)))
            yield table(answer(X), start, start + len(X))
            start += len(X)

    with np.errstate(all="ignore"):
        # also defines the columns of a file without rows
        of_one = pa.table(answer(np.zeros((1, len(names)))))
        no_rows = table({name: of_one[name][:0] for name in of_one.column_names}, 0, 0)
        # a task may run twice, even concurrently: `target` appears when it is complete
        draft = target.with_name(f"{target.name}.{uuid4().hex}")
        with parquet.ParquetWriter(draft, no_rows.schema) as writer:
            for group in in_groups(tables()):
                writer.write_table(group)
    draft.replace(target)
    return missing


def reading_for(mapping: Mapping) -> dict[str, Any]:
    """Return how the numbers are read, as options of `number_batches`."""
    if isinstance(mapping, SavedAdapter):
        return {"dtype": np.float32}
    marks = mapping.encoder.rules.missing_numbers
    return {"dtype": np.float64, "marks": marks, "gaps": mapping.takes_gaps}


def in_groups(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables joined into row groups of sufficient size; the last may be smaller."""
    waiting = list[Any]()
    for table in batches:
        waiting.append(table)
        if sum(map(len, waiting)) >= ROWS_PER_GROUP:
            yield pa.concat_tables(waiting)
            waiting.clear()
    if waiting:
        yield pa.concat_tables(waiting)
