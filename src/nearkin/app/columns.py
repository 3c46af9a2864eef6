"""The columns of a file: what CSV and Parquet have in common once they are open.

Numbers go straight into one matrix while a file is read, so that a million rows of fifty numbers are held once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .table import BadCells, TableError, shown

CELLS_PER_BLOCK = 2**18
INTEGER = re.compile("-?[0-9]+")

# Called with the part that is done, and the whole.
Progress = Callable[[int, int], None]


def ignore(done: int, total: int) -> None:
    """Show no progress."""


class File(Protocol):
    """A file with named columns.

    Attributes
    ----------
    path : Path
    names : list of str
        Of its columns.
    """

    path: Path
    names: list[str]

    def read(
        self,
        names: Sequence[str],
        *,
        as_text: Collection[str] = (),
        as_they_are: Collection[str] = (),
        with_gaps: Collection[str] = (),
    ) -> Columns:
        """Return some columns; those that mix text with other values, and those of `as_text`, are text.

        Only columns of `with_gaps` may have missing values: None among text, else NaN.
        """

    def place(self, row: int) -> str:
        """Return where a row (counted from 0) is found, e.g. "on line 7"."""


@dataclass
class Columns:
    """Columns of numbers and columns of text; no cell is missing (but in columns that may have gaps) or infinite.

    Attributes
    ----------
    file : File
    numbers : ndarray of shape (n, q)
        The columns of numbers, float64; truth values are 0 and 1.
    number_names : list of q str
    text : dict of str to ndarray of str objects
        In the order of the file. Equal cells are one object: the longest does not set the memory of all.
    as_they_are : dict of str to ndarray
        Columns that were asked for in their own type: labels, groups.
    """

    file: File
    numbers: np.ndarray
    number_names: list[str]
    text: dict[str, np.ndarray]
    as_they_are: dict[str, np.ndarray]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns of numbers and text, in the order of the file."""
        mine = {*self.number_names, *self.text}
        return [name for name in self.file.names if name in mine]

    @property
    def n_rows(self) -> int:
        """Return n."""
        return len(self.numbers)


class Gaps:
    """Missing and infinite cells, counted while a file is read; the former not in columns that may have gaps."""

    def __init__(self, with_gaps: Collection[str]) -> None:
        self._with_gaps = with_gaps
        self.missing = BadCells("missing values (empty fields, NA, None and the like)")
        self.infinite = BadCells("infinite values")

    def add(self, frame: Any, start: int = 0) -> None:
        """Count the bad cells of a DataFrame whose first row has the number `start`."""
        whole = frame[[name for name in frame.columns if name not in self._with_gaps]]
        self.missing.add(whole.columns, whole.isna().to_numpy(), start)
        numbers = frame.select_dtypes("number")
        self.infinite.add(numbers.columns, np.isinf(numbers.to_numpy(np.float64)), start)

    def refuse(self, path: Path, place: Callable[[int], str]) -> None:
        """Raise a TableError if there was any."""
        self.missing.refuse(path, place)
        self.infinite.refuse(path, place)


def values(path: Path, column: Any, as_text: bool) -> np.ndarray:
    """Return a column of a DataFrame as numbers, booleans, or else strings; equal strings are one object.

    A missing value is NaN, among strings None.
    """
    import pandas as pd
    from pandas.api.types import is_numeric_dtype  # booleans are numeric to pandas

    if is_numeric_dtype(column) and not as_text:
        return column.to_numpy()
    codes, distinct = pd.factorize(column)
    found = np.array([str(value) for value in distinct], dtype=object)
    if not as_text and all(INTEGER.fullmatch(value) for value in found):  # integers too long for 64 bits
        numbers = found.astype(np.float64)
        if np.isfinite(numbers).all():
            return np.append(numbers, [np.nan])[codes]  # the code of a missing value is -1
    if any("\0" in value for value in found):  # arrays of strings forget those at the end
        raise TableError(f"{path}: {shown(column.name)} holds NUL characters: it may be damaged; save it again.")
    return np.append(found, [None])[codes]


def kind(dtype: Any) -> str:
    """Return "number", "truth" or "text"."""
    return {"b": "truth", "O": "text"}.get(dtype.kind, "number")
