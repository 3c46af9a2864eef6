"""Columns of a table, and how they are filled from batches of rows, the same way for every file
that yields these.

Numbers go straight into one matrix, so that a million rows of fifty numbers are held once, plus a
batch; text becomes Arrow dictionaries, so that equal cells are held once.
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from .._blocks import require_memory
from .._messages import MAX_NAME, shortened
from .._messages import counted as counted
from .._messages import in_row as in_row
from .._messages import listed as listed
from .._messages import note as note
from .._messages import quoted as quoted
from .._messages import shown as shown
from ..tables.columns import MARKS_OF_MISSING

# The checks that all tables share, and the error with which one is refused.

MAX_TEXT = 500
LIST_CELL = re.compile(r"(.*)\[\d+\]")  # how a number of a column of lists is called
MISSING = "missing values (empty fields, NA, None and the like)"

# Called with the part that is done, and the whole.
Progress = Callable[[int, int], None]


def ignore(done: int, total: int) -> None:
    """Show no progress."""


class TableError(Exception):
    """A table that cannot be used; the text is one line that names the place and the remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.splitlines()))  # a file may have any name


class BadCells:
    """Infinite cells, and where they are refused missing ones, counted by column while a table is
    read.
    """

    def __init__(self, missing: bool, infinite: str = "infinite values") -> None:
        self.found: dict[
            str, tuple[int, Counter[str]]
        ] = {}  # the first row, and how many cells of which column
        self.kinds = {infinite: np.isinf} | ({MISSING: np.isnan} if missing else {})

    def add(self, names: Iterable[str], cells: np.ndarray, start: int = 0) -> bool:
        """Count bad cells of some rows, the first of which has the number `start`; return whether
        any were found.
        """
        for what, find in self.kinds.items():
            bad = find(cells)
            if bad.any():
                first = start + int(bad.any(axis=1).argmax())
                earlier, counts = self.found.get(what, (first, Counter[str]()))
                self.found[what] = (min(first, earlier), counts)
                counts.update(
                    {
                        name: count
                        for name, count in zip(names, bad.sum(axis=0).tolist(), strict=True)
                        if count
                    }
                )
        return bool(self.found)

    def refuse(self, path: Path, place: Callable[[int], str]) -> None:
        """Raise a TableError that names the columns, their counts and the place of the first bad
        cell, if there are.
        """
        for what, (first, counts) in sorted(self.found.items(), reverse=True):
            columns = listed([f"{shown(name)} ({count})" for name, count in counts.items()], 5)
            raise TableError(
                f"{path}: {what} in {columns}, first {place(first)}: fill them or drop "
                "these rows first."
            )


@contextmanager
def readable(path: Path, kind: str, remedy: str) -> Iterator[None]:
    """Turn what a library raises on a damaged or forged file, errors of a dozen types, into one
    line.
    """
    try:
        yield
    except Exception as error:
        # what the operating system refuses has a number
        if isinstance(error, TableError | MemoryError) or getattr(error, "errno", None):
            raise
        raise TableError(f"{path} is no readable {kind} ({reason(error)}): {remedy}.") from error


# Names of columns


def find_name(path: Path, names: Sequence[str], given: str | None, option: str) -> str:
    """Return the name that was meant; spaces around it do not matter. The numbers of vectors are
    not offered.
    """
    offered = [name for name in names if not LIST_CELL.fullmatch(name)] or names
    if given is None:
        raise TableError(
            f"{path}: say which column holds the classes or numbers by {option}: {quoted(offered)}."
        )
    meant = [name for name in names if name == given] or [
        name for name in names if name.strip() == given.strip()
    ]
    if meant:
        return meant[0]
    close = _similar(given, offered)
    hint = f" (did you mean {shown(close[0])}?)" if close else ""
    raise TableError(f"{path} has no {shown(given)}{hint}: give {option} one of {quoted(offered)}.")


def require_names(path: Path | str, names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise a TableError that names the columns a model needs and the table lacks."""
    present, known = set(names), set(needed)
    missing = [name for name in needed if name not in present]
    if missing:
        close = _similar(missing[0], [name for name in names if name not in known])
        hint = f" ({shown(missing[0])} may be {shown(close[0])} here)" if close else ""
        raise TableError(
            f"{path} lacks {quoted(missing, 5)}{hint}, which the model learned from: add or "
            "rename them."
        )


def _similar(name: str, names: Sequence[str]) -> list[str]:
    """Return a similar name, if there is one; among short ones, the first and the last, for the
    search is slow.
    """
    short = [other for other in names if len(other) <= MAX_NAME]
    return difflib.get_close_matches(
        name, short if len(short) <= 1000 else short[:500] + short[-500:], n=1
    )


def check_names(place: Path | str, names: Sequence[str]) -> None:
    """Refuse names that do not tell columns apart, or are none."""
    check_distinct(place, names)
    damaged = [name for name in names if "\0" in name]
    if damaged:
        raise TableError(
            f"{place} has NUL characters in {quoted(damaged, 2)}: is it UTF-16? Save it again."
        )
    check_length(str(place), names)


def check_distinct(place: Path | str, names: Iterable[str]) -> None:
    """Refuse names that do not tell columns apart."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise TableError(
            f"{place} has {quoted(repeated)} more than once: give every column a name of its own."
        )


def check_length(place: str, texts: Iterable[str]) -> None:
    """Refuse texts so long that they are no names: in an array of strings the longest sets the
    memory of all.
    """
    longest = max(map(len, texts), default=0)
    if longest > MAX_TEXT:
        raise TableError(
            f"{place} holds text of {longest} characters: shorten it to {MAX_TEXT}, or drop "
            "the column."
        )


# Words of messages


def missing_note(met: Counter[str]) -> list[str]:
    """Return a remark on the cells that counted as missing, by what they held; none without any."""
    most = sorted(met.items(), key=lambda item: (-item[1], item[0]))
    return note("missing", [f"{mark} ({counted(count, 'cell')})" for mark, count in most if count])


def reason(error: Exception) -> str:
    """Return what a library says, short enough for a message."""
    return shortened(" ".join(str(error).split()), 2 * MAX_NAME)


TEXT = pa.large_string()
TRUTH = pa.array(["True", "TRUE", "true", "False", "FALSE", "false"], TEXT)
CODE = "^0[0-9]+$"
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"

Names = Sequence[str]


@dataclass(frozen=True)
class Reading:
    """How tables are read, where this is not left to what they hold.

    Attributes
    ----------
    separator, decimal : str, optional
        Of text tables: what separates the fields, and the decimal mark of numbers.
    missing : tuple of str, optional
        What counts as missing in every column, beside the empty cell; by default the usual marks do
        among numbers.
    refuse_missing : bool
        Whether to refuse features with missing cells.
    usual_decimal : str
        The decimal mark where a file does not show its own: that of the table a model was learned
        from.
    drop_empty_rows : bool
        Of text tables, whether to leave out rows without a cell where all columns are read.
    """

    separator: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] | None = None
    refuse_missing: bool = False
    usual_decimal: str = "."
    drop_empty_rows: bool = False

    @property
    def missing_numbers(self) -> list[float]:
        """Return those of the texts that are numbers."""
        return [float(text) for text in self.missing or () if re.fullmatch(NUMBER, text)]

    @cached_property
    def marks(self) -> Any:
        """Return what is missing where the other cells are numbers, in lower case if the case does
        not matter.
        """
        return pa.array(
            ["", *(sorted(MARKS_OF_MISSING) if self.missing is None else self.missing)], TEXT
        )


@dataclass
class Columns:
    """Columns of a table; no cell is infinite.

    Attributes
    ----------
    path : Path
    place : callable
        Returns where a row (counted from 0) is found.
    all_names : list of str
        Of the whole table.
    numbers : ndarray of shape (n, q), or csr_array
        The columns of numbers, NaN where a cell is missing; truth values are 0 and 1.
    number_names : list of q str
    text : dict of str to pyarrow.DictionaryArray
        Null where a cell is empty.
    labels : dict of str to ndarray
        Target and groups, in their own type; what is missing is NaN among floats, else None.
    notes : list of str
        Remarks on how the file was read.
    decimal : str
        The decimal mark of text.
    row_numbers : ndarray of shape (n,) or None
        Those of the file, whose first row is 0, where some of its rows are left out.
    """

    path: Path
    place: Callable[[int], str]
    all_names: list[str]
    numbers: Any
    number_names: list[str]
    text: dict[str, Any]
    labels: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)
    decimal: str = "."
    row_numbers: np.ndarray | None = None


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
    row_numbers : ndarray or None
        After reading, those of the rows that were not left out, where some were.
    """

    path: Path
    names: list[str]
    text: list[str]
    n_rows: int
    untyped: bool
    decimal = "."
    notes: Sequence[str] = ()
    row_numbers: np.ndarray | None = None
    reading = Reading()
    default_target: str | None = None

    @abstractmethod
    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield the number of a row, and from this on an Arrow record batch of numbers, truth
        values and large strings.

        Each has all columns, or some; the others follow, from the first row on, when these are
        complete.
        """

    def place(self, row: int) -> str:
        """Return where a row (counted from 0) is found."""
        return in_row(row)

    def read(
        self,
        needed: Names | None = None,
        labels: Names = (),
        as_text: Names = (),
        as_numbers: Names = (),
    ) -> Columns:
        """Return some columns, by default all.

        Parameters
        ----------
        needed : sequence of str, optional
        labels : sequence of str
            Such as the target and the groups.
        as_text : collection of str
            Columns to be read as text whatever they hold.
        as_numbers : collection of str
            Columns in which whole numbers that begin with 0 are numbers; elsewhere they are text,
            as ZIP codes are.
        """
        names = self.names if needed is None else needed
        require_names(self.path, self.names, names)
        kept: dict[str, list[Any]] = {
            name: [] for name in names if name in {*labels, *as_text, *self.text}
        }
        numbers, kinds, mixed, n_rows = np.empty((0, 0)), dict[str, Any](), set[str](), 0
        bad, met, known = BadCells(self.reading.refuse_missing), Counter[str](), {*as_numbers}
        for start, batch in self.batches(names):
            columns = {name: batch[name] for name in batch.schema.names}
            columns |= {
                name: self._parsed(columns[name], name in known, met)
                for name in columns
                if name not in kept
            }
            if start == 0:
                kept |= {
                    name: []
                    for name, column in columns.items()
                    if name not in kept and column.type == TEXT
                }
                places = {
                    name: place
                    for place, name in enumerate(name for name in names if name not in kept)
                }
                require_memory(
                    8 * self.n_rows * len(places), str(self.path), "take fewer rows or columns"
                )
            n_rows = start + len(batch)
            numbers.resize(
                (max(n_rows, self.n_rows), len(places)), refcheck=False
            )  # in place, no second copy
            for name, column in columns.items():
                if name in kept:
                    kept[name].append(
                        (column if name in labels else column.cast(TEXT)).dictionary_encode()
                    )
                elif column.type == pa.null() or column.type == kinds.setdefault(name, column.type):
                    cells = numbers[start:n_rows, places[name]]
                    cells[:] = as_floats(column)
                    bad.add([name], self._marked(cells, met)[:, None], start)
                else:  # numbers for thousands of rows, and then a word
                    mixed.add(name)
        if n_rows == 0:
            raise TableError(f"{self.path} has 0 rows: give rows.")
        empty = places.keys() - kinds.keys()
        met["empty"] -= n_rows * len(empty)
        if met.keys() - {
            "empty"
        }:  # marks of missing cells are words where there is no number among them
            mixed |= empty
        if mixed:  # only the file still has the text of the numbers
            return self.read(needed, labels, [*as_text, *mixed], as_numbers)
        text = {name: _joined(self.path, name, kept[name]) for name in names if name in kept}
        values = {name: self._labels(text.pop(name), name in as_text) for name in labels}
        for name, column in text.items():
            met["empty"] += (
                column.indices.null_count % n_rows
            )  # those of an empty column are not counted
            bad.add([name], as_floats(column.indices)[:, None])
        bad.refuse(self.path, self.place)
        notes = [*self.notes, *missing_note(met)]
        return Columns(
            self.path,
            self.place,
            self.names,
            numbers,
            list(places),
            text,
            values,
            notes,
            self.decimal,
            self.row_numbers,
        )

    def _parsed(self, column: Any, is_number: bool, met: Counter[str]) -> Any:
        """Return text as numbers, or truth values, where all cells are; else as it is, like any
        other column.

        Marks of missing cells among these count as such, and are counted; of a batch without
        numbers the type is null.
        """
        if column.type != TEXT or not self.untyped:
            return column
        plain = compute.ascii_trim_whitespace(column)
        numbers = _numbers(plain, self.decimal, is_number)
        if numbers is not None:
            return pa.nulls(len(column)) if plain.null_count == len(plain) else numbers
        usual = self.reading.missing is None
        missing = compute.is_in(
            compute.ascii_lower(plain) if usual else plain, value_set=self.reading.marks
        )
        rest = compute.if_else(missing, pa.scalar(None, TEXT), plain)
        numbers = _numbers(rest, self.decimal, is_number)
        if numbers is None:
            if not compute.all(compute.is_in(rest.drop_null(), value_set=TRUTH)).as_py():
                return column
            numbers = compute.equal(compute.ascii_lower(rest), "true")
        for count in plain.filter(missing).value_counts().to_pylist():
            met.update(
                {shown(count["values"]): count["counts"], "empty": -count["counts"]}
                if count["values"]
                else {}
            )
        return pa.nulls(len(column)) if rest.null_count == len(rest) else numbers

    def _labels(self, column: Any, as_text: bool) -> np.ndarray:
        """Return labels as integers, truth values, floats or text; a missing one as NaN among
        numbers, else None.
        """
        values = column.dictionary if as_text else self._parsed(column.dictionary, False, Counter())
        if values.type == pa.null():  # words, such as "NA", unless there are numbers among them
            values = column.dictionary
        if column.dictionary.type == TEXT and values.type == pa.float64():
            with suppress(
                pa.ArrowInvalid
            ):  # of real numbers; integers keep all their digits, if 64 bits hold them
                values = compute.ascii_trim_whitespace(column.dictionary).cast(pa.int64())
        return values.take(column.indices).to_numpy(zero_copy_only=False)

    def _marked(self, cells: np.ndarray, met: Counter[str]) -> np.ndarray:
        """Return a column of numbers, NaN in place of those that count as missing; count what is
        missing.
        """
        met["empty"] += int(np.isnan(cells).sum())
        for mark in self.reading.missing_numbers:
            met[shown(f"{mark:g}")] += int((cells == mark).sum())
            cells[cells == mark] = np.nan
        return cells


def _numbers(text: Any, decimal: str, is_number: bool) -> Any:
    """Return trimmed text as numbers; None where it is none, or holds codes such as 01234."""
    if decimal == ",":
        text = compute.replace_substring(
            text, ".", "_"
        )  # what stands for thousands makes no plain number
        text = compute.replace_substring(text, ",", ".")
    with suppress(pa.ArrowInvalid):
        numbers = text.cast(pa.float64())
        zeros = [] if is_number else text.filter(compute.starts_with(text, "0"))
        is_code = len(zeros) and compute.any(compute.match_substring_regex(zeros, CODE)).as_py()
        if (
            not is_code and not compute.any(compute.is_nan(numbers)).as_py()
        ):  # else there are words such as "NAN"
            return numbers
    return None


def as_floats(column: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return a column of numbers or truth values as floats, NaN where a cell is missing."""
    return column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)


def _joined(path: Path, name: str, chunks: list[Any]) -> Any:
    """Return the parts of a column as one dictionary array, its values in the order of their
    appearance.
    """
    column = pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
    if (
        column.dictionary.type == TEXT
        and compute.any(compute.match_substring(column.dictionary, "\0")).as_py()
    ):
        raise TableError(
            f"{path}: {shown(name)} holds NUL characters: it may be damaged; save it again."
        )
    return column


def is_number(distinct: Any) -> np.ndarray:
    """Return which texts of an Arrow array are numbers."""
    return compute.match_substring_regex(distinct, NUMBER).to_numpy(zero_copy_only=False)
