"""Vectors in cells: lists of numbers, tensors of Arrow, and text such as "[0.1, 0.2]"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import mode
from typing import Any

import pyarrow as pa
from pyarrow import compute, types

NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
BRACKETS = "[](){} \t\r\n"  # around a vector; PostgreSQL writes arrays in braces
VECTOR_TEXT = re.compile(rf"\s*[\[({{]\s*{NUMBER}[\s,]")  # and how one begins


def is_vector(cell: str) -> bool:
    """Return whether a cell is the text of a vector."""
    return VECTOR_TEXT.match(cell) is not None


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is one of text."""
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def lists_of(column: Any) -> Any:
    """Return a column of vectors as lists of numbers; what is no number becomes a null.

    Text has commas, as databases write it, or blanks, as NumPy does.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        return column.storage
    if not is_text(column.type):
        return column
    plain = compute.ascii_trim(compute.replace_substring(column, ",", " "), BRACKETS)
    texts = compute.ascii_split_whitespace(plain)
    cells = texts.values
    try:
        numbers = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        is_number = compute.match_substring_regex(cells, f"^{NUMBER}$")
        numbers = compute.if_else(is_number, cells, pa.scalar(None, cells.type)).cast(pa.float64())
    return type(texts).from_arrays(texts.offsets, numbers, mask=texts.is_null())


def width_of(columns: Iterable[Any]) -> int:
    """Return the usual length of vectors in the first part of a column that has cells, or 0.

    It is 0 for text unless at least half of its cells are vectors of that length.
    """
    for column in columns:
        cells = column.drop_null()
        if len(cells):
            known = is_text(cells.type)
            if known and 2 * sum(map(is_vector, cells.to_pylist())) < len(cells):
                return 0
            lengths = compute.list_value_length(lists_of(cells)).to_pylist()
            usual = int(mode(lengths))
            return usual if not known or 2 * lengths.count(usual) >= len(lengths) else 0
    return 0


def with_nulls(lists: Any, width: int) -> Any:
    """Return lists of which those of another length are null."""
    return compute.if_else(
        compute.equal(compute.list_value_length(lists), width), lists, pa.scalar(None, lists.type)
    )
