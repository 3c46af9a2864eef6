"""Columns of a file to rows of numbers, by `TableEncoder`, the same way for every table that a model meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..evaluation.features import filled_note
from ..preprocessing import Cells, TableEncoder, Text
from ..preprocessing.identifiers import DIFFERS
from .readers import Columns, Reading
from .refusals import TableError


def as_cells(columns: Columns) -> Cells:
    """Return the columns but for the labels, in the same memory."""
    text = {
        name: Text(column.dictionary.to_pylist(), column.indices.fill_null(-1).to_numpy())
        for name, column in columns.text.items()
    }
    return Cells(columns.all_names, columns.numbers, columns.number_names, text, columns.place)


def learn_encoder(columns: Columns, reading: Reading) -> tuple[TableEncoder, Cells, Sequence[Any] | None]:
    """Return an encoder for columns to learn from, their cells, and names of the rows where a column has them."""
    cells = as_cells(columns)
    with _one_line(columns):
        encoder = TableEncoder("keep", missing_values=reading.missing, decimal=columns.decimal).fit(cells)
    named = [name for name, reason in encoder.dropped_.items() if reason == DIFFERS]
    return encoder, cells, columns.text[named[0]].to_numpy(zero_copy_only=False) if named else None


def encode(encoder: TableEncoder, columns: Columns, gaps: str) -> tuple[Any, list[str]]:
    """Return X of shape (n, p), in the memory of the columns' numbers, which are used up, and remarks on it.

    `gaps` says what is done with missing cells.
    """
    with _one_line(columns):
        X, remarks = encoder.encode(as_cells(columns))
    return X, [*remarks, *filled_note(X, encoder.get_feature_names_out(), gaps)]


@contextmanager
def _one_line(columns: Columns) -> Iterator[None]:
    """Make a TableError of what the encoder refuses."""
    try:
        yield
    except ValueError as error:
        raise TableError(f"{columns.path}: {error}") from error


def needed_columns(encoder: TableEncoder) -> list[str]:
    """Return the columns that a table must have."""
    return [column.name for column in encoder.columns_]


def text_columns(encoder: TableEncoder) -> list[str]:
    """Return the columns of categories: to be read as text even where all of them are numbers."""
    return [column.name for column in encoder.columns_ if column.kind in ("category", "frequency")]


def number_encoder(names: list[str]) -> TableEncoder:
    """Return an encoder of columns of numbers, which it takes as they are."""
    state = {"parameters": {"missing": "keep"}, "n_features": len(names), "names": names, "numbers": names}
    return TableEncoder.from_dict(state | {"columns": [], "indicated": [], "medians": []})
