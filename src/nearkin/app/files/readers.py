"""Columns of a table, filled from batches of rows in the same way for every file format.

Numbers go straight into one matrix, so that a million rows of fifty numbers are held once, plus a
batch. Text becomes Arrow dictionaries, which hold equal cells once.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from ..._memory import require_memory
from ..._messages import MAX_NAME, counted, in_row, listed, note, quoted, shortened, shown, similar
from ...tables import MARKS_OF_MISSING, Cells, Rules, Text, numbered_names
from ..endings import TableError
from .list_cells import lists_of, with_nulls

# Checks shared by all tables.

LIST_CELL = re.compile(r"(.*)\[\d+\]")  # the name of a number in a column of lists
ARRAY_CELL = re.compile(r"column \d+")  # and of one in an array without names
MISSING = "missing values (empty fields, NA, None and the like)"

Names = Sequence[str]
# called with the part done and the total
Progress = Callable[[int, int], None]


def ignore(done: int, total: int) -> None:
    """Show no progress."""


class BadCells:
    """Infinite cells, and missing ones where these are not allowed, counted by column."""

    def __init__(self, missing: bool, infinite: str = "infinite values") -> None:
        self._kinds = {infinite: np.isinf} | ({MISSING: np.isnan} if missing else {})
        self._first: dict[str, int] = {}  # the first row with such a cell
        self._counts = defaultdict[str, Counter[str]](Counter)

    def add(self, names: Sequence[str], cells: np.ndarray, start: int = 0) -> bool:
        """Count bad cells of rows from number `start` on; return whether any were found."""
        for what, find in self._kinds.items():
            columns, rows = np.nonzero(find(cells).T)
            if len(rows):
                row = start + int(rows.min())
                self._first[what] = min(row, self._first.get(what, row))
                self._counts[what].update(names[column] for column in columns.tolist())
        return bool(self._first)

    def refuse(self, path: Path, place: Callable[[int], str]) -> None:
        """Raise a TableError if there are bad cells: where the first is, and how many by column."""
        if not self._first:
            return
        what = max(self._first)
        counts = [f"{shown(name)} ({count})" for name, count in self._counts[what].items()]
        raise TableError(
            f"{path}: {what} in {listed(counts, 5)}, first {place(self._first[what])}: fill them "
            "or drop these rows first."
        )


# Names of columns


def find_name(path: Path, names: Sequence[str], given: str | None, option: str) -> str:
    """Return the name of the column that was meant, whatever its spaces and line breaks.

    Numbers of vectors are not suggested.
    """
    offered = [name for name in names if not LIST_CELL.fullmatch(name)] or names
    if given is None:
        raise TableError(
            f"{path}: name the column of classes or numbers with {option}: {quoted(offered)}."
        )
    if given in names:
        return given
    for name in names:
        if name.split() == given.split():
            return name
    close = similar(given, offered)
    hint = f" (did you mean {close}?)" if close else ""
    raise TableError(f"{path} has no {shown(given)}{hint}: give {option} one of {quoted(offered)}.")


def require_length(
    path: Path | str, names: Sequence[str], needed: Sequence[str], *, is_array: bool = False
) -> None:
    """Raise a TableError if vectors do not have the length that an adapter or a model needs.

    Otherwise, the first numbers of longer vectors would be used. This applies to columns of lists,
    and to an array without names. There may be more columns that have names of their own.
    """
    given, taken = _lengths(names, is_array), _lengths(needed, is_array)
    for vector, length in taken.items():
        # single numbers of a list may be ordinary columns, e.g. the target
        is_single = bool(vector) and f"{vector}[0]" not in needed
        if given.get(vector, length) != length and not is_single:
            raise TableError(
                f"{path} has vectors of {given[vector]:,} dimensions, but {length:,} are needed: "
                "does it come from another model?"
            )


def _lengths(names: Sequence[str], is_array: bool) -> Counter[str]:
    """Return the lengths of columns of lists, and under "" that of an array without names."""
    lengths = Counter(match[1] for match in map(LIST_CELL.fullmatch, names) if match)
    if is_array:
        lengths[""] += sum(ARRAY_CELL.fullmatch(name) is not None for name in names)
    return +lengths


def require_names(path: Path | str, names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise a TableError that lists the columns a model needs and the table lacks."""
    present, known = set(names), set(needed)
    missing = [name for name in needed if name not in present]
    if missing:
        close = similar(missing[0], [name for name in names if name not in known])
        hint = f" ({shown(missing[0])} may be {close} here)" if close else ""
        if not close and len(missing) == len(known):
            hint = f" (its columns are {quoted(names, 5)})"
        raise TableError(
            f"{path} lacks {quoted(missing, 5)}{hint}, which the model learned from: add or rename "
            "them."
        )


def unique_names(
    place: Path | str, names: Sequence[str], strict: bool
) -> tuple[list[str], list[str]]:
    """Return names of which the repeated ones are numbered as in pandas, and a remark on them.

    With `strict` they raise an error.
    """
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated and strict:
        raise TableError(
            f"{place} has {quoted(repeated)} more than once: give every column its own name."
        )
    found = numbered_names(names)
    new = [shown(name) for name, given in zip(found, names, strict=True) if name != given]
    return found, note("names that occur more than once, numbered", new)


def missing_note(met: Counter[str]) -> list[str]:
    """Return a remark on the cells that counted as missing, by their contents.

    None on empty cells alone, whose columns are named elsewhere.
    """
    most = sorted((+met).items(), key=lambda item: (-item[1], item[0]))
    if [mark for mark, _ in most] == ["empty"]:
        return []
    return note("missing", [f"{mark} ({counted(count, 'cell')})" for mark, count in most])


# What is read of a table, and how

TEXT = pa.large_string()
TRUTH = pa.array(["True", "TRUE", "true", "False", "FALSE", "false"], TEXT)
CODE = "^0[0-9]+$"  # such as a ZIP code, which is text


@dataclass(frozen=True)
class Reading:
    """How tables are read, where this is not detected from their contents.

    Attributes
    ----------
    separator, decimal : str, optional
        For text tables: the field separator and the decimal mark.
    missing : tuple of str, optional
        Marks of missing values in every column, besides empty cells; by default the usual marks,
        among numbers.
    refuse_missing : bool
        Whether features with missing cells raise an error.
    usual_decimal : str
        The decimal mark if a file does not show its own: that of the table a model was learned
        from.
    drop_empty_rows : bool
        For text tables, whether to leave out rows without cells if all columns are read.
    strict : bool
        Whether what is no row, and cells that do not fit their columns, raise an error.
    vectors : str, optional
        For files of vectors: the column that holds them, or "" if it is not given. Text such as
        "[0.1, 0.2]" is then read as a vector, and a vector of another length is missing.
    named : tuple of str
        The columns that the command names: a dict of JSON with one of these keys holds columns.
    is_row : callable, optional
        Whether the fields of the first line of a text table are those of a row, so that it has no
        header.
    """

    separator: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] | None = None
    refuse_missing: bool = False
    usual_decimal: str = "."
    drop_empty_rows: bool = False
    strict: bool = False
    vectors: str | None = None
    named: tuple[str, ...] = ()
    is_row: Callable[[list[str]], bool] | None = None

    @cached_property
    def numbers(self) -> list[float]:
        """Return the missing-value marks that are numbers."""
        return Rules(self.missing).missing_numbers


AS_FOUND = Reading()


@dataclass
class Columns(Cells):
    """Columns of a table, without infinite cells; booleans are 0 and 1.

    Attributes
    ----------
    labels : dict of str to ndarray
        Target and groups, in their own type; missing values are NaN among floats, else None.
    ids : ChunkedArray or None
        Identifiers, as the file has them.
    notes : list of str
        Remarks on how the file was read.
    """

    called = "the table"
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ids: Any = None


class Reader(ABC):
    """Base of all readers of tables with named columns.

    Attributes
    ----------
    path : Path
    progress : callable
        Called during reading.
    reading : Reading
    names : sequence of str
        Of the columns; for an NPZ file, of the arrays.
    kind, remedy : str
        The name of the format in errors, and the remedy.
    default_target : str or None
        The column of labels if none is named.
    decimal : str
        The decimal mark of text.
    row_numbers : ndarray of shape (n,) or None
        After reading, row numbers in the file (the first is 0), if some of its rows were left out.
    """

    names: Names
    kind = ""
    remedy = ""
    default_target: str | None = None
    decimal = "."
    row_numbers: np.ndarray | None = None

    def __init__(self, path: Path, progress: Progress = ignore, reading: Reading = AS_FOUND):
        self.path, self.progress, self.reading = path, progress, reading
        self._open()

    @abstractmethod
    def _open(self) -> None:
        """Read what the file provides before its rows, at least the names of the columns."""

    def place(self, row: int) -> str:
        """Return the location of a row (counted from 0)."""
        return in_row(row)

    @contextmanager
    def readable(self, kind: str = "", remedy: str = "") -> Iterator[None]:
        """Convert any error that a library raises on a damaged or forged file to one line."""
        try:
            yield
        except Exception as error:
            # errors of the operating system have a number
            if isinstance(error, TableError | MemoryError) or getattr(error, "errno", None):
                raise
            why = shortened(" ".join(str(error).split()), 2 * MAX_NAME)
            raise TableError(
                f"{self.path} is not a readable {kind or self.kind} ({why}): "
                f"{remedy or self.remedy}."
            ) from error

    @abstractmethod
    def read(
        self,
        needed: Names | None = None,
        labels: Names = (),
        as_text: Names = (),
        as_numbers: Names = (),
        ids: str | None = None,
    ) -> Columns:
        """Return some columns, by default all but `ids`.

        Parameters
        ----------
        needed : sequence of str, optional
        labels : sequence of str
            E.g. the target and the groups.
        as_text : collection of str
            Columns to read as text, whatever they contain.
        as_numbers : collection of str
            Columns in which whole numbers that begin with 0 are numbers; elsewhere they are text,
            like ZIP codes.
        ids : str, optional
            The column of identifiers.
        """


class Source(Reader):
    """A file read in batches of rows.

    A column of vectors, with a list of numbers in every cell, is treated as that many columns of
    numbers. Those of a column "embedding" are named "embedding[0]", "embedding[1]", ...

    Attributes
    ----------
    columns : dict of str to list of str
        The columns of the file, and the names of the columns that each becomes.
    text : list of str
        Columns known to contain text.
    n_rows : int
        0 if unknown before reading.
    untyped : bool
        Whether numbers are stored as text.
    notes : list of str
        Remarks on how the file is read.
    """

    columns: dict[str, list[str]]
    text: Names = ()
    n_rows = 0
    untyped = False
    notes: Names = ()

    def learn_columns(self, fields: Names, widths: dict[str, int]) -> None:
        """Set the names of the columns; those of vectors have these lengths."""
        self.columns = {name: [name] for name in fields}
        for name, width in widths.items():
            elements = [f"{name}[{place}]" for place in range(width)]
            names, _ = unique_names(self.path, [*fields, *elements], self.reading.strict)
            self.columns[name] = names[len(fields) :]
        self.names = [name for columns in self.columns.values() for name in columns]
        self._column_of = {name: column for column, names in self.columns.items() for name in names}
        self._widths = widths

    def fields_of(self, names: Names) -> list[str]:
        """Return the columns of the file that some names belong to."""
        return list(dict.fromkeys(self._column_of[name] for name in names))

    def expanded(self, batch: Any, names: Names, start: int) -> Any:
        """Return a batch of columns of the file, from row `start` on, as columns of these names."""
        if batch.schema.names == names:
            return batch
        columns: dict[str, Any] = {}
        for stored, column in zip(batch.schema.names, batch.columns, strict=True):
            if width := self._widths.get(stored):
                lists = lists_of(column)
                lengths = compute.list_value_length(lists).fill_null(width).to_numpy()
                row = int((lengths != width).argmax())
                if lengths[row] != width and self.reading.vectors is None:
                    raise TableError(
                        f"{self.path}: {shown(stored)} begins with {width} numbers, but holds "
                        f"{lengths[row]} {in_row(start + row)}: give all rows the same number."
                    )
                if lengths[row] != width:
                    lists = with_nulls(lists, width)
                elements = enumerate(self.columns[stored])
                columns |= {name: compute.list_element(lists, at) for at, name in elements}
            else:
                columns[stored] = column
        return pa.record_batch(columns).select(names)

    @abstractmethod
    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield Arrow record batches, each with the number of its first row.

        Columns are numbers, booleans or large strings. Each batch has all columns, or some; when
        these are complete, the others follow from the first row on.
        """

    @abstractmethod
    def identifiers(self, name: str) -> Any:
        """Return a column as the file has it, a ChunkedArray: no digit is lost."""

    def read(
        self,
        needed: Names | None = None,
        labels: Names = (),
        as_text: Names = (),
        as_numbers: Names = (),
        ids: str | None = None,
    ) -> Columns:
        """Return some columns."""
        names = needed
        if names is None:
            names = [name for name in self.names if name != ids or name in labels]
        require_names(self.path, self.names, names)
        bad, met = BadCells(self.reading.refuse_missing), Counter[str]()
        text = {*as_text, *self.text}
        found, chunks, mixed = self._collected(names, text, labels, as_numbers, bad, met)
        if mixed:  # only the file still has the text of the numbers
            return self.read(needed, labels, [*as_text, *mixed], as_numbers, ids)
        for name in filter(chunks.__contains__, names):
            # equal cells are held once, in the order of appearance
            column = pa.chunked_array(chunks.pop(name)).unify_dictionaries().combine_chunks()
            values, codes = column.dictionary, column.indices
            if name in labels:
                values = values if name in as_text else self._label_values(values)
                found.labels[name] = values.take(codes).to_numpy(zero_copy_only=False)
            else:
                met["empty"] += codes.null_count % found.n_rows  # empty columns do not count
                bad.add([name], as_floats(codes)[:, None])
                found.text[name] = Text(values.to_pylist(), codes.fill_null(-1).to_numpy())
        bad.refuse(self.path, self.place)
        found.notes += [*self.notes, *missing_note(met)]
        if ids is not None:
            found.ids = self.identifiers(ids)
        return found

    def _collected(
        self,
        names: Names,
        text: Container[str],
        labels: Names,
        as_numbers: Names,
        bad: BadCells,
        met: Counter[str],
    ) -> tuple[Columns, dict[str, list[Any]], set[str]]:
        """Return the numbers, the other columns in parts, and the names of those that are both."""
        chunks: dict[str, list[Any]] = {n: [] for n in names if n in labels or n in text}
        numbers, kinds, n_rows = np.empty((0, 0)), dict[str, Any](), 0
        mixed, marked = set[str](), set[str]()
        for start, batch in self.batches(names):
            columns = {
                name: column if name in chunks else self._parsed(column, name in as_numbers, met)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            if start == 0:
                chunks |= {name: [] for name, column in columns.items() if column.type == TEXT}
                number_names = [name for name in names if name not in chunks]
                places = {name: place for place, name in enumerate(number_names)}
                require_memory(
                    8 * self.n_rows * len(places), str(self.path), "take fewer rows or columns"
                )
            n_rows = start + len(batch)
            # in place, without a second copy
            numbers.resize((max(n_rows, self.n_rows), len(places)), refcheck=False)
            for name, column in columns.items():
                if name in chunks:
                    cells = column if name in labels else column.cast(TEXT)
                    chunks[name].append(cells.dictionary_encode())
                elif column.type == pa.null() or column.type == kinds.setdefault(name, column.type):
                    cells = numbers[start:n_rows, places[name]]
                    self._fill(cells, column, met)
                    bad.add([name], cells[:, None], start)
                    if column.type == pa.null() and batch[name].null_count < len(batch):
                        marked.add(name)
                else:  # numbers for thousands of rows, then a word
                    mixed.add(name)
        if n_rows == 0:
            raise TableError(f"{self.path} has 0 rows: give some.")
        empty = places.keys() - kinds.keys()
        met["empty"] -= n_rows * len(empty)
        mixed |= marked & empty  # marks of missing cells are words if no number is among them
        found = Columns(
            list(self.names), numbers, number_names, {}, self.place, decimal=self.decimal
        )
        return found, chunks, mixed

    def _fill(self, cells: np.ndarray, column: Any, met: Counter[str]) -> None:
        """Copy numbers; missing marks and, unless reading is strict, infinite ones become NaN."""
        cells[:] = as_floats(column)
        met["empty"] += int(np.isnan(cells).sum())
        marks = {shown(f"{mark:g}"): cells == mark for mark in self.reading.numbers}
        if not self.reading.strict or self.reading.vectors is not None:
            marks["infinite"] = np.isinf(cells)
        for mark, is_mark in marks.items():
            met[mark] += int(is_mark.sum())
            cells[is_mark] = np.nan

    def _parsed(self, column: Any, is_number: bool, met: Counter[str]) -> Any:
        """Return text as numbers or booleans if all cells are; return other columns unchanged.

        Marks of missing cells among numbers are counted and become missing; a batch of missing
        cells alone has the type null.
        """
        if column.type != TEXT or not self.untyped:
            return column
        plain = compute.ascii_trim_whitespace(column)
        numbers = _numbers(plain, self.decimal, is_number)
        if numbers is not None:
            return pa.nulls(len(column)) if plain.null_count == len(plain) else numbers
        marks, cells = self.reading.missing, plain
        if marks is None:  # the usual ones, case-insensitively
            marks, cells = tuple(MARKS_OF_MISSING), compute.ascii_lower(plain)
        missing = compute.is_in(cells, value_set=pa.array(["", *marks], TEXT))
        rest = compute.if_else(missing, pa.scalar(None, TEXT), plain)
        numbers = _numbers(rest, self.decimal, is_number)
        if numbers is None:
            if not compute.all(compute.is_in(rest.drop_null(), value_set=TRUTH)).as_py():
                return column
            numbers = compute.equal(compute.ascii_lower(rest), "true")
        for mark in plain.filter(missing).value_counts().to_pylist():
            if mark["values"]:
                met[shown(mark["values"])] += mark["counts"]
                met["empty"] -= mark["counts"]
        return pa.nulls(len(column)) if rest.null_count == len(rest) else numbers

    def _label_values(self, labels: Any) -> Any:
        """Return distinct labels as integers, booleans, floats or text."""
        values = self._parsed(labels, False, Counter())
        if values.type == pa.null():  # words such as "NA", unless there are numbers among them
            return labels
        if labels.type == TEXT and values.type == pa.float64():
            with suppress(pa.ArrowInvalid):  # integers keep all digits if they fit into 64 bits
                return compute.ascii_trim_whitespace(labels).cast(pa.int64())
        return values


def _numbers(text: Any, decimal: str, is_number: bool) -> Any:
    """Return trimmed text as numbers; None if not numeric, or if there are codes like 01234."""
    if decimal == ",":
        # thousands separators make a number invalid
        text = compute.replace_substring(text, ".", "_")
        text = compute.replace_substring(text, ",", ".")
    with suppress(pa.ArrowInvalid):
        numbers = text.cast(pa.float64())
        zeros = text.filter(compute.starts_with(text, "0"))
        is_code = not is_number and compute.any(compute.match_substring_regex(zeros, CODE)).as_py()
        # words such as "NAN" are not numbers
        if not is_code and not compute.any(compute.is_nan(numbers)).as_py():
            return numbers
    return None


def as_floats(column: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return a column of numbers or booleans as floats, NaN for missing cells."""
    return column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)
