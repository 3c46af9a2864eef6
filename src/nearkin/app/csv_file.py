"""Text tables, such as CSV, as streams of Arrow record batches.

Encoding, separator, decimal mark and header line are detected from the file itself.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow import compute

from .._messages import note, shown
from ..tables import read_number
from .places import SEPARATORS
from .readers import TEXT, Names, Source, TableError, check_names

SAMPLE = 2**16  # characters from which separator and decimal mark are detected
MOST_RECORDS = 100  # among these
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# the line that Excel writes, and reads, above the header
EXCEL = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)
BLOCK_BYTES = 2**20  # read at a time
BYTES_PER_COLUMN = 2000  # at least, since converting a column has a fixed cost
# How binary files with the name of a text table start, and the remedy.
BINARY = {
    b"PK\3\4": "save the sheet of a workbook as CSV, or unpack an archive",
    b"\xd0\xcf\x11\xe0": "save the sheet of a workbook as CSV",
    b"PAR1": "let its name end in .parquet",
}

csv.field_size_limit(2**31 - 1)  # as long as pyarrow allows


class CsvFile(Source):
    """A text table with a header line, whose separator is detected."""

    kind = "CSV file"
    remedy = (
        "save it in UTF-8, with every quote closed and as many fields in every row as in the header"
    )
    untyped = True

    def _open(self) -> None:
        with self.readable():
            header = self._learn_layout()
        if not header:
            raise TableError(
                f"{self.path} is empty: it needs a header line that names the columns, and rows."
            )
        # names as in pandas
        self.names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]
        check_names(f"{self.path}: the header line", self.names)

    def _learn_layout(self) -> list[str]:
        """Detect the format of the file, and return its header.

        Empty names at the end of the header come from separators that end all rows; separators that
        end the header alone are ignored.
        """
        path, given = self.path, self.reading
        with _opened(path) as (file, _):
            start = file.read(4)
        if start in BINARY:
            raise TableError(f"{path} is not a text file: {BINARY[start]}.")
        self._encoding, self._remarks = _find_encoding(path)
        with _opened_text(path, self._encoding) as text:
            # the header and two more lines, if they exist, however long they are
            lines = text.readlines(SAMPLE) + list(islice(text, 2))
        excel = EXCEL.fullmatch(lines[0]) if lines else None
        self._n_skipped = int(excel is not None)
        lines = lines[self._n_skipped :]
        self._separator = (
            given.separator
            or (excel and excel[1])
            or max(SEPARATORS.values(), key=lambda mark: _regularity(_split(lines, mark)))
        )
        header, *rows = _split(lines, self._separator) or [[]]
        self.decimal = given.decimal or "."
        if not given.decimal and self._separator != ",":
            self.decimal = _find_decimal(chain.from_iterable(rows), given.usual_decimal)
        usual = mode(map(len, [header, *rows]))
        # a title with a single field above a header with as many names as most rows have fields
        if usual > 1 and header[0] and not any(header[1:]):
            names = next((row for row in rows if len(row) == usual and all(row)), [])
            if names and not any(read_number(name.strip(), self.decimal) for name in names):
                raise TableError(
                    f"{path}: its first line, {shown(header[0])}, is not the header; that seems to "
                    f"be {shown(self._separator.join(names))}: delete the lines above it."
                )
        words = {mark: f"separated by {name}s" for name, mark in SEPARATORS.items()}
        written = []
        if self._separator != ",":
            written.append(words.get(self._separator, f"separated by {self._separator!r}"))
        if self.decimal == ",":
            written.append("with decimal commas")
        if written:
            self._remarks.append(
                f"read as {' and '.join(written)} (--sep and --decimal choose others)"
            )
        width = max(map(len, rows), default=len(header))
        if width == len(header) + 1 and not any(row[-1] for row in rows if len(row) == width):
            header.append("")
        return header if any(header[width:]) else header[:width]

    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield some columns as batches of text."""
        end, size = self.names[-1], self.path.stat().st_size
        read = list(dict.fromkeys([*names, end]))
        # if some columns are not read, a row may have cells in them
        drops_empty = self.reading.drop_empty_rows and len(read) == len(self.names)
        (header_end, _), *rows = islice(self._records(), 2)
        if not rows:
            return
        last, start = None, 0
        kept = list[np.ndarray]()  # for every batch, which of its rows are kept
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
                kept.append(np.ones(len(batch), dtype=bool))
                if drops_empty:  # spreadsheets write rows without cells below a table
                    filled = reduce(compute.or_, map(compute.is_valid, batch.columns))
                    kept[-1] = filled.to_numpy(zero_copy_only=False)
                    batch = batch.filter(filled)
                if len(batch):
                    yield start, batch.select(names)
                start += len(batch)
        rows_kept = np.concatenate(kept)
        n_empty = len(rows_kept) - start
        self.row_numbers = np.flatnonzero(rows_kept) if n_empty else None
        self.notes = [*self._remarks, *note("ignored, empty rows", [f"{n_empty}"] * (n_empty > 0))]
        if last and "\n" in last:  # the last cell has several lines, or an unclosed quote
            with _opened_text(self.path, self._encoding) as text:
                for line in text:
                    last = line.rstrip("\r\n") or last
            if not last.endswith('"'):
                raise TableError(
                    f"{self.path} is not a readable CSV file (a quote is never closed): "
                    f"{self.remedy}."
                )

    def identifiers(self, name: str) -> Any:
        """Return a column as whole numbers if all cells are written like that, else as text."""
        cells = pa.chunked_array([batch[name] for _, batch in self.batches([name])], TEXT)
        plain = compute.utf8_trim_whitespace(cells)
        with suppress(pa.ArrowInvalid):
            numbers = plain.cast(pa.int64())
            if numbers.cast(TEXT).equals(plain):  # not so 007
                return numbers
        return cells

    def place(self, row: int) -> str:
        """Return the line on which a row ends."""
        at = row if self.row_numbers is None else int(self.row_numbers[row])
        line, _ = next(islice(self._records(), at + 1, None))  # the header is a record, too
        return f"on line {line}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record except blank lines, and the line on which it ends."""
        with _opened_text(self.path, self._encoding) as text:
            reader = csv.reader(text, delimiter=self._separator)
            records = ((reader.line_num, record) for record in reader if record)
            yield from islice(records, self._n_skipped, None)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the bytes of a file, decompressed if gzipped, and the file, for its progress."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield gzip.GzipFile(fileobj=file) if packed else file, file


@contextmanager
def _opened_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with _opened(path) as (file, _), io.TextIOWrapper(file, encoding, newline="") as text:
        yield text


def _find_encoding(path: Path) -> tuple[str, list[str]]:
    """Return the encoding, with a remark if it is a guess.

    It is UTF-16 or UTF-8 by the first bytes, or Windows-1252 if the first letter beyond ASCII is
    not UTF-8.
    """
    with _opened(path) as (file, _):
        start = file.read(3)
    marked = [name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)]
    encoding = marked[0] if marked else "utf-8"
    n_lines, plain = 0, not marked
    try:
        with _opened_text(path, encoding) as text:
            for line in text:
                if "\0" in line:
                    raise TableError(
                        f"{path} holds NUL characters: it may be damaged, or UTF-16 without a "
                        "byte order mark; save it again in UTF-8."
                    )
                n_lines += 1
                plain &= line.isascii()
    except UnicodeDecodeError as error:
        before, byte = error.object[: error.start], error.object[error.start]
        n_lines += 1 + before.count(b"\n")
        why = f"byte 0x{byte:02X} on line {n_lines} is not {error.encoding.upper()}"
        if plain and before.isascii():
            return "cp1252", [f"read as Windows-1252, because {why}"]
        raise TableError(
            f"{path}: {why}, but other letters are: it may be damaged; save it again in UTF-8."
        ) from error
    return encoding, []


def _split(lines: list[str], separator: str) -> list[list[str]]:
    """Return the fields of the first lines of a file, without blank lines."""
    return list(islice(filter(None, csv.reader(lines, delimiter=separator)), MOST_RECORDS))


def _regularity(records: list[list[str]]) -> float:
    """Return the share of records that have the most common number of fields, at least two.

    Records with one field more or less count half. A header with about this number adds one half.
    """
    widths = [len(record) for record in records]
    several = [width for width in widths if width > 1]
    if not several:
        return 0
    usual = mode(several)
    near = [abs(width - usual) for width in widths]
    share = (near.count(0) + near.count(1) / 2) / len(near)
    return share + (widths[0] > 1 and near[0] <= 1) / 2


def _find_decimal(cells: Iterable[str], usual: str) -> str:
    """Return a comma if there are numbers such as 12,5 or 12,5 %, and none such as 12.5."""
    read = [[read_number(cell.strip(), mark) for mark in ".,"] for cell in cells]
    points = any(point and not comma for point, comma in read)
    commas = any(comma and not point for point, comma in read)
    if not commas and not points:
        return usual
    return "," if commas and not points else "."
