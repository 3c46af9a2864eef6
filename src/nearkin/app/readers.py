"""Columns of a table, and how they are filled from batches of rows, the same way for every file that yields these.

Numbers go straight into one matrix, so that a million rows of fifty numbers are held once, plus a batch; text becomes
Arrow dictionaries, so that equal cells are held once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from .._memory import require_memory
from .refusals import BadCells, TableError, in_row, require_names, shown

TEXT = pa.large_string()
TRUTH = pa.array(["True", "TRUE", "true", "False", "FALSE", "false"], TEXT)
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"

Names = Sequence[str]


@dataclass(frozen=True)
class Reading:
    """How tables are read, where this is not left to what they hold.

    Attributes
    ----------
    separator, decimal : str, optional
        Of text tables: what separates the fields, and the decimal mark of numbers.
    """

    separator: str | None = None
    decimal: str | None = None


@dataclass
class Columns:
    """Columns of a table; no cell is infinite, and none missing but in the target.

    Attributes
    ----------
    path : Path
    place : callable
        Returns where a row (counted from 0) is found.
    all_names : list of str
        Of the whole table.
    numbers : ndarray of shape (n, q), or csr_array
        The columns of numbers; truth values are 0 and 1.
    number_names : list of q str
    text : dict of str to pyarrow.DictionaryArray
    labels : dict of str to ndarray
        Target and groups, in their own type; what is missing is NaN among floats, else None.
    notes : list of str
        Remarks on how the file was read.
    """

    path: Path
    place: Callable[[int], str]
    all_names: list[str]
    numbers: Any
    number_names: list[str]
    text: dict[str, Any]
    labels: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)


class Source(ABC):
    """A file with named columns, read by batches of rows.

    Attributes
    ----------
    path : Path
    names : list of str
        Of its columns.
    text : list of str
        Columns known to hold text.
    n_rows : int
        0 where only reading tells.
    untyped : bool
        Whether numbers come as text.
    decimal : str
        The decimal mark of these.
    notes : list of str
        Remarks on how the file is read.
    """

    path: Path
    names: list[str]
    text: list[str]
    n_rows: int
    untyped: bool
    decimal = "."
    notes: Sequence[str] = ()
    default_target: str | None = None

    @abstractmethod
    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield the number of a row, and from this on an Arrow record batch of numbers, truth values and large strings.

        Each has all columns, or some; the others follow, from the first row on, when these are complete.
        """

    def place(self, row: int) -> str:
        """Return where a row (counted from 0) is found."""
        return in_row(row)

    def read(self, needed: Names | None = None, labels: Names = (), as_text: Names = ()) -> Columns:
        """Return some columns, by default all.

        Parameters
        ----------
        needed : sequence of str, optional
        labels : sequence of str
            The target, which may have missing cells, and the groups, which may not.
        as_text : collection of str
            Columns to be read as text whatever they hold.
        """
        names = self.names if needed is None else needed
        require_names(self.path, self.names, names)
        kept: dict[str, list[Any]] = {name: [] for name in names if name in {*labels, *as_text, *self.text}}
        numbers, kinds, mixed, bad, n_rows = np.empty((0, 0)), dict[str, Any](), set[str](), BadCells(), 0
        for start, batch in self.batches(names):
            columns = {
                name: batch[name] if name in kept else _parsed(batch[name], self.decimal) for name in batch.schema.names
            }
            if start == 0:
                kept |= {name: [] for name, column in columns.items() if name not in kept and column.type == TEXT}
                kinds |= {name: column.type for name, column in columns.items() if name not in kept}
                places = {name: place for place, name in enumerate(name for name in names if name not in kept)}
                require_memory(8 * self.n_rows * len(places), str(self.path), "take fewer rows or columns")
            n_rows = start + len(batch)
            numbers.resize((max(n_rows, self.n_rows), len(places)), refcheck=False)  # in place, no second copy
            for name, column in columns.items():
                if name in kept:
                    kept[name].append((column if name in labels else column.cast(TEXT)).dictionary_encode())
                elif column.type == kinds[name]:
                    numbers[start:n_rows, places[name]] = cells = as_floats(column)
                    bad.add([name], cells[:, None], start)
                else:  # numbers for thousands of rows, and then a word
                    mixed.add(name)
        if n_rows == 0:
            raise TableError(f"{self.path} has 0 rows: give rows.")
        text = {name: _joined(self.path, name, kept[name]) for name in names if name in kept}
        values = {name: _label_values(text.pop(name), self) for name in labels}
        for name, column in text.items():
            bad.add([name], as_floats(column.indices)[:, None])
        bad.add_labels(values)
        bad.refuse(self.path, self.place)
        if mixed:  # only the file still has the text of the numbers
            return self.read(needed, labels, [*as_text, *mixed])
        return Columns(self.path, self.place, self.names, numbers, list(places), text, values, list(self.notes))


def _parsed(column: Any, decimal: str) -> Any:
    """Return text as numbers, or truth values, where all cells are; else as it is, like any other column."""
    if column.type != TEXT:
        return column
    with suppress(pa.ArrowInvalid):
        numbers = _plain(column, decimal).cast(pa.float64())
        if not compute.any(compute.is_nan(numbers)).as_py():  # else there are words such as "NAN"
            return numbers
    if compute.all(compute.is_in(column.drop_null(), value_set=TRUTH)).as_py():
        return compute.equal(compute.utf8_lower(column), "true")
    return column


def _plain(column: Any, decimal: str) -> Any:
    """Return text as a number is cast from, if it is one: with a decimal point, and without spaces around."""
    if decimal == ".":
        return compute.ascii_trim_whitespace(column)
    swapped = compute.replace_substring(column, ".", "_")  # what stands for thousands makes no plain number
    return compute.ascii_trim_whitespace(compute.replace_substring(swapped, decimal, "."))


def as_floats(column: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return a column of numbers or truth values as floats, NaN where a cell is missing."""
    return column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)


def _joined(path: Path, name: str, chunks: list[Any]) -> Any:
    """Return the parts of a column as one dictionary array, its values in the order of their appearance."""
    column = pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
    if column.dictionary.type == TEXT and compute.any(compute.match_substring(column.dictionary, "\0")).as_py():
        raise TableError(f"{path}: {shown(name)} holds NUL characters: it may be damaged; save it again.")
    return column


def _label_values(column: Any, source: Source) -> np.ndarray:
    """Return labels as integers, truth values, floats or text; a missing one as NaN among numbers, else None."""
    values = _parsed(column.dictionary, source.decimal) if source.untyped else column.dictionary
    if source.untyped and values.type == pa.float64():
        with suppress(pa.ArrowInvalid):  # of real numbers; integers keep all their digits, if 64 bits hold them
            values = compute.ascii_trim_whitespace(column.dictionary).cast(pa.int64())
    return values.take(column.indices).to_numpy(zero_copy_only=False)


def is_number(distinct: Any) -> np.ndarray:
    """Return which texts of an Arrow array are numbers."""
    return compute.match_substring_regex(distinct, NUMBER).to_numpy(zero_copy_only=False)
