"""The columns of a file, read by blocks of rows: what CSV and Parquet have in common once they are open.

A million rows of fifty numbers are held once: the blocks are handed over one by one to whoever assembles them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .table import BadCells, TableError

CELLS_PER_BLOCK = 2**21
KINDS = {"b": "truth", "U": "text"}


class File(Protocol):
    """A file with named columns."""

    path: Path
    names: list[str]

    def frames(self, as_text: Collection[str] = ()) -> Iterator[Any]:
        """Yield all rows as DataFrames, always cut at the same rows; columns named in `as_text` hold strings."""

    def place(self, row: int) -> str:
        """Return where a row (counted from 0) is found, e.g. "on line 7"."""


class Columns:
    """Columns of one kind each: numbers, truth values or text; none of their cells is missing or infinite.

    Attributes
    ----------
    file : File
    names : list of str
    n_rows : int
    """

    def __init__(self, file: File, names: Sequence[str], blocks: list[dict[str, np.ndarray]]) -> None:
        self.file = file
        self.names = list(names)
        self.n_rows = sum(len(block[self.names[0]]) for block in blocks)
        self._blocks = blocks

    def kind(self, name: str) -> str:
        """Return "number", "truth" or "text"."""
        kinds = {KINDS.get(block[name].dtype.kind, "number") for block in self._blocks}
        return kinds.pop() if len(kinds) == 1 else "mixed"

    def values(self, name: str) -> np.ndarray:
        """Return a column."""
        return np.concatenate([block[name] for block in self._blocks])

    def pop(self, name: str) -> np.ndarray:
        """Return a column and leave it out from now on."""
        self.names.remove(name)
        return np.concatenate([block.pop(name) for block in self._blocks])

    def is_constant(self, name: str) -> bool:
        """Tell whether a column never changes."""
        kind = str if self.kind(name) == "text" else np.float64
        first = self._blocks[0][name].astype(kind)[0]
        return all(bool((block[name].astype(kind) == first).all()) for block in self._blocks)

    def pop_blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the columns by blocks of rows, and forget each block: only once."""
        while self._blocks:
            yield self._blocks.pop(0)


def read_columns(file: File, names: Sequence[str], as_text: Collection[str] = ()) -> Columns:
    """Return some columns of a file; those of `as_text` as text, and those that mix text with other values, too."""
    blocks = list(_blocks(file, names, as_text))
    if not blocks:
        raise TableError(f"{file.path} has 0 rows below its header: give rows.")
    columns = Columns(file, names, blocks)
    mixed = [name for name in names if columns.kind(name) == "mixed"]
    if mixed:  # numbers for thousands of rows, and then a word: only a second reading gives the text of the numbers
        for block, text in zip(columns._blocks, _blocks(file, mixed, mixed), strict=True):
            block.update(text)
    return columns


def _blocks(file: File, names: Sequence[str], as_text: Collection[str]) -> Iterator[dict[str, np.ndarray]]:
    missing = BadCells("missing values (empty fields, NA, None and the like)")
    infinite = BadCells("infinite values")
    start = 0
    for frame in file.frames(as_text):
        frame = frame[list(names)]
        missing.add(frame.columns, frame.isna().to_numpy(), start)
        numbers = frame.select_dtypes("number")
        infinite.add(numbers.columns, np.isinf(numbers.to_numpy(np.float64)), start)
        start += len(frame)
        if not missing.counts:
            yield {name: _values(frame[name], name in as_text) for name in names}
    missing.refuse(file.path, file.place)
    infinite.refuse(file.path, file.place)


def _values(column: Any, as_text: bool) -> np.ndarray:
    """Return a column as numbers, booleans, or else strings."""
    from pandas.api.types import is_numeric_dtype  # booleans are numeric to pandas

    if is_numeric_dtype(column) and not as_text:
        return column.to_numpy()
    values = column.tolist()
    if not as_text and all(str(value).lstrip("-").isdigit() for value in values):  # integers too long for 64 bits
        return np.array([float(value) for value in values])
    return np.array(values, dtype=str)
