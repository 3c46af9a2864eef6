"""Text tables, CSV and the like, as streams of Arrow record batches: how one is written, its
encoding, separator, decimal mark and first line, is found in the file itself.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow import compute

from .._messages import note, shown
from .readers import TEXT, Names, Source, TableError, check_names

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
SAMPLE = 2**16  # characters from which the separator and the decimal mark are found
MOST_RECORDS = 100  # of these
BYTE_ORDER_MARKS = {  # UTF-32 goes first: its mark begins as that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# the line that Excel writes, and reads, above the header
EXCEL = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)
NUMBER = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s*")
# No thousands: other than three digits follow the mark, or more than three, or a single zero, stand
# before it.
COMMA, POINT = (
    re.compile(rf"\s*[+-]?(\d+{mark}(\d{{1,2}}|\d{{4,}})|0{mark}\d+|\d{{4,}}{mark}\d+)\s*")
    for mark in (",", "[.]")
)

UNITS = " \u00a0\u202f%€$£¥"  # around numbers

csv.field_size_limit(2**31 - 1)  # a field may be as long as pyarrow takes it


BLOCK_BYTES = 2**20  # read at a time
BYTES_PER_COLUMN = 2000  # at least: to convert a column has a cost beside that of its rows
MAX_COLUMNS = 50_000  # of which a block is 100 MB
# How a file begins that is called like a text table and is none, and the remedy.
BINARY = {
    b"PK\3\4": "save the sheet of a workbook as CSV, or unpack an archive",
    b"\xd0\xcf\x11\xe0": "save the sheet of a workbook as CSV",
    b"PAR1": "let its name end in .parquet",
}


class CsvFile(Source):
    """A text table with a header line; what separates its fields is found."""

    kind = "CSV file"
    remedy = (
        "save it in UTF-8, every quote closed and in every row as many fields as in the header line"
    )
    untyped = True

    def _open(self) -> None:
        with self.readable():
            header = self._learn_layout()
        if not header:
            raise TableError(
                f"{self.path} is empty: it needs a header line that names the columns, and rows."
            )
        if len(header) > MAX_COLUMNS:
            raise TableError(
                f"{self.path} has {len(header):,} columns, and a text table at most "
                f"{MAX_COLUMNS:,}: give a Parquet file with one column of lists, or an NPZ file."
            )
        # as pandas calls them
        self.names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]
        check_names(f"{self.path}: the header line", self.names)
        self._drops_empty = False

    def _learn_layout(self) -> list[str]:
        """Find how the file is written, and return its header: empty names at its end are those of
        separators that end the rows, and separators that end the header alone have none.
        """
        path, given = self.path, self.reading
        with _opened(path) as (file, _):
            start = file.read(4)
        if start in BINARY:
            raise TableError(f"{path} is no text: {BINARY[start]}.")
        self._encoding, self._quoted_end, remarks = _find_encoding(path)
        with _opened_text(path, self._encoding) as text:
            sample = _beginning(text)
        excel = EXCEL.match(sample)
        self._n_skipped, separator = 0, given.separator
        if excel:
            self._n_skipped, sample = 1, sample[excel.end() :]
            separator = separator or excel[1]
        self._separator = separator or max(
            SEPARATORS.values(), key=lambda mark: _regularity(_records(sample, mark))
        )
        records = _records(sample, self._separator)
        header, *rows = records or [[]]
        cells = chain.from_iterable(rows)
        self.decimal = given.decimal or _find_decimal(cells, self._separator, given.usual_decimal)
        usual = Counter(map(len, records)).most_common(1)
        # a single field above a line of as many names as most rows have fields
        if usual and usual[0][0] > 1 and header[0] and not any(header[1:]):
            full = (row for row in rows if len(row) == usual[0][0] and all(row))
            names = next(full, [])
            if names and not any(map(NUMBER.fullmatch, names)):
                raise TableError(
                    f"{path}: its first line, {shown(header[0])}, is no header; that seems to be "
                    f"{shown(self._separator.join(names))}: delete the lines above it."
                )
        words = {mark: f"separated by {name}s" for name, mark in SEPARATORS.items()}
        written = []
        if self._separator != ",":
            written.append(words.get(self._separator, f"separated by {self._separator!r}"))
        if self.decimal == ",":
            written.append("with decimal commas")
        if written:
            remarks.append(f"read as {' and '.join(written)} (--sep and --decimal choose others)")
        self._remarks = self.notes = remarks
        width = max(map(len, rows), default=len(header))
        if width == len(header) + 1 and not any(row[-1] for row in rows if len(row) == width):
            header.append("")
        return header if any(header[width:]) else header[:width]

    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield some columns as batches of text."""
        end, size = self.names[-1], self.path.stat().st_size
        read = list(dict.fromkeys([*names, end]))
        # where some columns are not read, their cells may be there
        self._drops_empty = self.reading.drop_empty_rows and len(read) == len(self.names)
        (header_end, _), *rows = islice(self._records(), 2)
        if not rows:
            return
        last, start = None, 0
        kept = [np.ones(0, dtype=bool)]  # for every batch, which of its rows are not empty
        with self.readable(), _opened(self.path) as (file, packed):
            for batch in arrow_csv.open_csv(
                file,
                arrow_csv.ReadOptions(
                    column_names=self.names,
                    block_size=max(BLOCK_BYTES, BYTES_PER_COLUMN * len(self.names)),
                    skip_rows=header_end,
                    encoding=self._encoding,
                ),
                arrow_csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=read,
                    column_types=dict.fromkeys(read, TEXT),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            ):
                self.progress(packed.tell(), size)
                last = batch[end][-1].as_py() if len(batch) else last
                if self._drops_empty:
                    kept.append(_has_cells(batch))
                    batch = batch if kept[-1].all() else batch.filter(pa.array(kept[-1]))
                if len(batch):
                    yield start, batch.select(names)
                start += len(batch)
        self.row_numbers, self.notes = None, self._remarks
        rows_kept = np.concatenate(kept)
        if not rows_kept.all():
            self.row_numbers = np.flatnonzero(rows_kept)
            n_empty = len(rows_kept) - len(self.row_numbers)
            self.notes = [*self._remarks, *note("ignored, empty rows", [f"{n_empty}"])]
        if last and "\n" in last and not self._quoted_end:
            raise TableError(
                f"{self.path} is no readable CSV file (a quote is never closed): {self.remedy}."
            )

    def place(self, row: int) -> str:
        """Return the line that a row ends on."""
        lines = (line for line, record in self._records() if not self._drops_empty or any(record))
        return f"on line {next(islice(lines, row + 1, None))}"  # the header is a record, too

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that is not a blank line, and the line it ends on."""
        with _opened_text(self.path, self._encoding) as text:
            next(islice(text, self._n_skipped, self._n_skipped), None)
            reader = csv.reader(text, delimiter=self._separator)
            yield from ((reader.line_num + self._n_skipped, record) for record in reader if record)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the bytes of a file, unpacked where gzip packed it, and the file, which tells how far
    it was read.
    """
    with path.open("rb") as file, ExitStack() as stack:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield stack.enter_context(gzip.GzipFile(fileobj=file)) if packed else file, file


@contextmanager
def _opened_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    with _opened(path) as (file, _), io.TextIOWrapper(file, encoding, newline="") as text:
        yield text


def _find_encoding(path: Path) -> tuple[str, bool, list[str]]:
    """Return the encoding, whether the file ends with a quote, and a remark where the encoding is a
    guess.

    By its first bytes it is UTF-16 or UTF-32, else UTF-8; or Windows-1252 if the first letter
    beyond ASCII is no UTF-8.
    """
    with _opened(path) as (file, _):
        start = file.read(4)
        encoding = next(
            (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)), "utf-8"
        )
        decoder, plain = codecs.getincrementaldecoder(encoding)(), encoding == "utf-8"
        n_lines, end, remarks = 1, b"", list[str]()
        for block in chain([start], iter(partial(file.read, 2**20), b""), [b""]):
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


def _beginning(text: io.TextIOWrapper) -> str:
    """Return the beginning of a table: whole records, the header and two more if there are so
    many.
    """
    sample = ""
    while part := text.read(max(SAMPLE, len(sample))):
        sample += part
        if max(sample.count("\n"), sample.count("\r")) > 3:
            break
    if text.read(1):
        return sample[: 1 + max(sample.rfind("\n"), sample.rfind("\r"))]
    return sample


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


def _find_decimal(cells: Iterable[str], separator: str, usual: str) -> str:
    """Return a comma where numbers such as 12,5 or 12,5 % are met, and none such as 12.5; none if
    it separates.
    """
    if separator == ",":
        return "."
    plain = [cell.strip(UNITS) for cell in cells]
    commas, points = (any(map(mark.fullmatch, plain)) for mark in (COMMA, POINT))
    if not commas and not points:
        return usual
    return "," if commas and not points else "."


def _has_cells(batch: Any) -> np.ndarray:
    """Return which rows have a cell: spreadsheets write rows without one below a table."""
    empty = batch.column(0).is_null()
    for column in batch.columns[1:]:
        if not compute.any(empty).as_py():
            break
        empty = compute.and_(empty, column.is_null())
    return ~empty.to_numpy(zero_copy_only=False)
