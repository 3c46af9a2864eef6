"""Text tables, CSV and the like, as streams of Arrow record batches."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow import compute

from .readers import (
    TEXT,
    Names,
    Progress,
    Reading,
    Source,
    TableError,
    check_names,
    ignore,
    note,
    readable,
    shown,
)

# How a text table is written: its encoding, separator, decimal mark and first line, found in the
# file itself.

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
SAMPLE = 2**16  # characters from which the separator and the decimal mark are found
MOST_RECORDS = 100  # of these
BYTE_ORDER_MARKS = {  # UTF-32 goes first: its mark begins as that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
EXCEL = re.compile(
    r'"?sep=(.)"?\r?\n?', re.IGNORECASE
)  # the line that Excel writes, and reads, above the header
NUMBER = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s*")
# No thousands: other than three digits follow the mark, or more than three, or a single zero, stand
# before it.
COMMA, POINT = (
    re.compile(rf"\s*[+-]?(\d+{mark}(\d{{1,2}}|\d{{4,}})|0{mark}\d+|\d{{4,}}{mark}\d+)\s*")
    for mark in (",", "[.]")
)

UNITS = " \u00a0\u202f%€$£¥"  # around numbers

csv.field_size_limit(2**31 - 1)  # a field may be as long as pyarrow takes it


@dataclass(frozen=True)
class Dialect:
    """How a text table is written.

    Attributes
    ----------
    encoding : str
    separator, decimal : str
        One character each.
    n_skipped : int
        Lines above the header, 0 or 1.
    quoted_end : bool
        Whether the last cell is quoted.
    header : list of str
        The names; empty ones at the end for separators that end the rows, and none for those that
        end the header alone.
    remarks : list of str
        What is not as in a CSV file in UTF-8, in one line.
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    n_skipped: int = 0
    quoted_end: bool = False
    header: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def records(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that is not a blank line, and the line it ends on."""
        with opened(path) as (file, _), _as_text(file, self.encoding) as text:
            next(islice(text, self.n_skipped, self.n_skipped), None)
            reader = csv.reader(text, delimiter=self.separator)
            yield from ((reader.line_num + self.n_skipped, record) for record in reader if record)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the bytes of a file, unpacked where gzip packed it, and the file, which tells how far
    it was read.
    """
    with path.open("rb") as file, ExitStack() as stack:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield stack.enter_context(gzip.GzipFile(fileobj=file)) if packed else file, file


def find_dialect(
    path: Path, separator: str | None = None, decimal: str | None = None, usual: str = "."
) -> Dialect:
    """Return how a text table is written; what is given is not looked for, `usual` the mark where
    none is seen.
    """
    encoding, quoted_end, remarks = _find_encoding(path)
    sample = _sample(path, encoding)
    excel = EXCEL.match(sample)
    if excel:
        sample, separator = sample[excel.end() :], separator or excel[1]
    known = separator or max(
        SEPARATORS.values(), key=lambda mark: _regularity(_records(sample, mark))
    )
    records = _records(sample, known)
    found = decimal or _find_decimal(records, known, usual)
    _refuse_titles(path, records, known)
    words = {mark: f"separated by {name}s" for name, mark in SEPARATORS.items()}
    written = [words.get(known, f"separated by {known!r}")] * (known != ",") + [
        "with decimal commas"
    ] * (found == ",")
    if written:
        remarks.append(f"read as {' and '.join(written)} (--sep and --decimal choose others)")
    return Dialect(encoding, known, found, int(bool(excel)), quoted_end, _header(records), remarks)


def _find_encoding(path: Path) -> tuple[str, bool, list[str]]:
    """Return the encoding, whether the file ends with a quote, and a remark where the encoding is a
    guess.

    By its first bytes it is UTF-16 or UTF-32, else UTF-8; or Windows-1252 if the first letter
    beyond ASCII is no UTF-8.
    """
    with opened(path) as (file, _):
        start = file.read(4)
        encoding = next(
            (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)), "utf-8"
        )
        decoder, plain = codecs.getincrementaldecoder(encoding)(), encoding == "utf-8"
        n_lines, end, remarks = 1, b"", list[str]()
        for block in chain([start], iter(lambda: file.read(2**20), b""), [b""]):
            try:
                plain &= decoder.decode(block, final=not block).isascii()
            except UnicodeDecodeError as error:
                before, byte = error.object[: error.start], error.object[error.start]
                n_lines += before.count(b"\n")
                why = f"byte 0x{byte:02X} on line {n_lines} is no {encoding.upper()}"
                if not (plain and before.isascii()):
                    found = f"{path}: {why}, but other letters are: it may be damaged"
                    raise TableError(f"{found}; save it in UTF-8 again.") from error
                encoding, decoder = "cp1252", codecs.getincrementaldecoder("latin-1")()
                remarks = [f"read as Windows-1252, because {why}"]
            n_lines += block.count(b"\n")
            end = (end + block)[-1000:]
    return encoding, end.replace(b"\0", b"").rstrip(b"\r\n").endswith(b'"'), remarks


@contextmanager
def _as_text(file: Any, encoding: str) -> Iterator[io.TextIOWrapper]:
    text = io.TextIOWrapper(
        file, encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline=""
    )
    yield text
    text.detach()


def _sample(path: Path, encoding: str) -> str:
    """Return the beginning of a table: whole records, the header and two more if there are so many."""
    with opened(path) as (file, _), _as_text(file, encoding) as text:
        sample = ""
        while part := text.read(max(SAMPLE, len(sample))):
            sample += part
            if max(sample.count("\n"), sample.count("\r")) > 3:
                break
        return (
            sample
            if not text.read(1)
            else sample[: 1 + max(sample.rfind("\n"), sample.rfind("\r"))]
        )


def _records(sample: str, separator: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
    return list(islice(filter(None, reader), MOST_RECORDS))


def _regularity(records: list[list[str]]) -> float:
    """Return how many of the records have the usual number of fields, at least two; more if the
    header has it, too.
    """
    widths = [len(record) for record in records]
    usual = Counter(width for width in widths if width > 1).most_common(1)
    if not usual:
        return 0
    near = [abs(width - usual[0][0]) for width in widths]
    share = (near.count(0) + near.count(1) / 2) / len(near)
    return share + (widths[0] > 1 and near[0] <= 1) / 2


def _header(records: list[list[str]]) -> list[str]:
    """Return the names, one for every field that the rows have where only separators at the end
    make a difference.
    """
    header, rows = (list(records[0]) if records else []), records[1:]
    width = max(map(len, rows), default=len(header))
    if width == len(header) + 1 and not any(row[-1] for row in rows if len(row) == width):
        header.append("")
    return header if any(header[width:]) else header[:width]


def _find_decimal(records: list[list[str]], separator: str, usual: str) -> str:
    """Return a comma where numbers such as 12,5 or 12,5 % are met, and none such as 12.5; none if
    it separates.
    """
    cells = (
        [cell.strip(UNITS) for cell in chain.from_iterable(records[1:])] if separator != "," else []
    )
    commas, points = (any(map(mark.fullmatch, cells)) for mark in (COMMA, POINT))
    if separator == "," or commas == points:
        return usual if separator != "," and not commas else "."
    return "," if commas else "."


def _refuse_titles(path: Path, records: list[list[str]], separator: str) -> None:
    """Refuse a first line of one field above a line of as many names as most rows have fields."""
    usual = Counter(map(len, records)).most_common(1)
    if not usual or usual[0][0] < 2 or not records[0][0] or any(records[0][1:]):
        return
    full = (record for record in records[1:] if len(record) == usual[0][0] and all(record))
    header = next(full, [])
    if header and not any(map(NUMBER.fullmatch, header)):
        found = (
            f"its first line, {shown(records[0][0])}, is no header; that seems to be "
            f"{shown(separator.join(header))}"
        )
        raise TableError(f"{path}: {found}: delete the lines above it.")


BLOCK_BYTES = 2**20  # read at a time
BYTES_PER_COLUMN = 2000  # at least: to convert a column has a cost beside that of its rows
MAX_COLUMNS = 50_000  # of which a block is 100 MB
# How a file begins that is called like a text table and is none, and the remedy.
BINARY = {
    b"PK\3\4": "save the sheet of a workbook as CSV, or unpack an archive",
    b"\xd0\xcf\x11\xe0": "save the sheet of a workbook as CSV",
    b"PAR1": "let its name end in .parquet",
}
CSV = (
    "CSV file",
    "save it in UTF-8, every quote closed and in every row as many fields as in the header line",
)


class CsvFile(Source):
    """A text table with a header line; what separates its fields is found."""

    untyped, n_rows = True, 0

    def __init__(
        self, path: Path, progress: Progress = ignore, reading: Reading | None = None
    ) -> None:
        self.path, self.text, self._progress, self.reading = (
            path,
            list[str](),
            progress,
            reading or Reading(),
        )
        with readable(self.path, *CSV):
            with opened(path) as (file, _):
                start = file.read(4)
            if start in BINARY:
                raise TableError(f"{path} is no text: {BINARY[start]}.")
            self._dialect = find_dialect(
                path, self.reading.separator, self.reading.decimal, self.reading.usual_decimal
            )
        header = self._dialect.header
        if not header:
            raise TableError(
                f"{path} is empty: it needs a header line that names the columns, and rows."
            )
        if len(header) > MAX_COLUMNS:
            remedy = "give a Parquet file with one column of lists, or an NPZ file"
            raise TableError(
                f"{path} has {len(header):,} columns, and a text table at most "
                f"{MAX_COLUMNS:,}: {remedy}."
            )
        self._drops_empty = False
        self.decimal, self.notes = self._dialect.decimal, self._dialect.remarks
        self.names = [
            name or f"Unnamed: {place}" for place, name in enumerate(header)
        ]  # as pandas calls them
        check_names(f"{path}: the header line", self.names)

    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield some columns as batches of text."""
        end, size, written = self.names[-1], self.path.stat().st_size, self._dialect
        read = list(dict.fromkeys([*names, end]))
        # where some columns are not read, their cells may be there
        self._drops_empty = self.reading.drop_empty_rows and len(read) == len(self.names)
        last, start = None, 0
        kept = list[np.ndarray]()  # for every batch, which of its rows are not empty
        (header_end, _), *rows = islice(written.records(self.path), 2)
        if not rows:
            return
        block_size = max(BLOCK_BYTES, BYTES_PER_COLUMN * len(self.names))
        cells = {
            "null_values": [""],
            "strings_can_be_null": True,
            "column_types": dict.fromkeys(read, TEXT),
        }
        with readable(self.path, *CSV), opened(self.path) as (file, packed):
            for batch in arrow_csv.open_csv(
                file,
                arrow_csv.ReadOptions(
                    column_names=self.names,
                    block_size=block_size,
                    skip_rows=header_end,
                    encoding=written.encoding,
                ),
                arrow_csv.ParseOptions(delimiter=written.separator, newlines_in_values=True),
                arrow_csv.ConvertOptions(include_columns=read, **cells),
            ):
                self._progress(packed.tell(), size)
                last = batch[end][-1].as_py() if len(batch) else last
                if self._drops_empty:
                    kept.append(_has_cells(batch))
                    batch = batch if kept[-1].all() else batch.filter(pa.array(kept[-1]))
                if len(batch):
                    yield start, batch.select(names)
                start += len(batch)
        self._count_empty(np.concatenate(kept) if kept else np.ones(0, dtype=bool))
        if last and "\n" in last and not written.quoted_end:
            raise TableError(
                f"{self.path} is no readable CSV file (a quote is never closed): {CSV[1]}."
            )

    def _count_empty(self, kept: np.ndarray) -> None:
        """Keep the numbers of the rows that are not empty, and remark how many are, where some are."""
        self.notes, self.row_numbers = self._dialect.remarks, None
        if not kept.all():
            self.row_numbers = np.flatnonzero(kept)
            self.notes = [
                *self.notes,
                *note("ignored, empty rows", [f"{len(kept) - len(self.row_numbers)}"]),
            ]

    def place(self, row: int) -> str:
        """Return the line that a row ends on."""
        lines = (
            line
            for line, record in self._dialect.records(self.path)
            if not self._drops_empty or any(record)
        )
        return f"on line {next(islice(lines, row + 1, None))}"  # the header is a record, too


def _has_cells(batch: Any) -> np.ndarray:
    """Return which rows have a cell: spreadsheets write rows without one below a table."""
    empty = None
    for column in batch.columns:
        empty = column.is_null() if empty is None else compute.and_(empty, column.is_null())
        if not compute.any(empty).as_py():
            return np.ones(len(batch), dtype=bool)
    return compute.invert(empty).to_numpy(zero_copy_only=False)
