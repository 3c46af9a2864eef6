"""Text tables, such as CSV, as streams of Arrow record batches.

Compression, encoding, separator, decimal mark and header line are detected from the file itself.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from statistics import mode
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow import compute

from ..._messages import counted, quoted
from ...tables import read_number
from ..endings import TableError
from ..places import SEPARATORS
from .list_cells import NUMBER, is_vector
from .readers import TEXT, Columns, Names
from .records import MOST_RECORDS, Fields, Records, may_end, on_lines

NUMBERS = re.compile(rf"{NUMBER}( {NUMBER})+\s*$")  # a line of numpy.savetxt
SAMPLE = 2**16  # characters from which separator, decimal mark and the last line are detected
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
COMPRESSED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zX": lzma.open,
    b"\x28\xb5\x2f\xfd": partial(pa.CompressedInputStream, compression="zstd"),
}
# Bytes that are no UTF-8, as Python's "surrogateescape" decodes them, and what they are in
# Windows-1252
ESCAPED = re.compile("[\udc80-\udcff]")
LETTERS = re.compile("[^\0-\x7f\udc80-\udcff]+")  # beyond ASCII
WINDOWS_1252 = {
    0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(128, 256)
}
UNDEFINED = [chr(code) for code, letter in WINDOWS_1252.items() if letter == "\ufffd"]
CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1a\x1b"})
MOST_CONTROLS = 0.05  # of the first bytes of a text file
# the line that Excel writes, and reads, above the header
EXCEL = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)
BLOCK_BYTES = 2**20  # read at a time
BYTES_PER_COLUMN = 2000  # at least, since converting a column has a fixed cost
MOST_LINES = 1000  # of a field in quotes

csv.field_size_limit(2**31 - 1)  # as long as pyarrow allows


class IrregularError(TableError):
    """Not every record of a table has as many fields as the header."""


class CsvFile(Records):
    """A text table with a header line, whose separator is detected.

    It is read by pyarrow as long as all records are alike, else by the csv module, which is slower.
    """

    kind = "CSV file"
    remedy = (
        "save it in UTF-8, with every quote closed and as many fields in every row as in the header"
    )
    is_regular = True
    _errors = "strict"  # what is done with bytes that are not in the encoding

    def _open(self) -> None:
        self.fields, self.remarks = [], []
        self._unclosed = dict[int, None]()  # the lines with quotes that are never closed
        with self.readable():
            self._learn_encoding()
            self._learn_layout()
            if not self.is_regular:
                self.survey()

    def _learn_encoding(self) -> None:
        """Detect the encoding: UTF-16 or UTF-8 by the first bytes, else Windows-1252.

        If no letter beyond ASCII is UTF-8, all are Windows-1252; if only some are not, these are.
        """
        with opened_bytes(self.path) as (file, _):
            start = file.read(SAMPLE)
        marked = [name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)]
        self._encoding = marked[0] if marked else "utf-8"
        zeros = [start[place::2].count(0) / max(1, len(start) // 2) for place in (1, 0)]
        if not marked and min(zeros) < 0.1 and max(zeros) > 0.4:
            self._encoding = ("utf-16-le", "utf-16-be")[zeros.index(max(zeros))]
            self.remarks.append("read as UTF-16, because every second byte is 0")
        elif not marked and len(start.translate(None, CONTROLS)) < (1 - MOST_CONTROLS) * len(start):
            raise TableError(f"{self.path} is not a text file: save the table as CSV, in UTF-8.")
        try:
            found = self._counts()
        except UnicodeDecodeError:
            if self._encoding.startswith("utf-16"):
                self._errors, why = "replace", "some bytes are not UTF-16"
                found, remark = self._counts(), f"{why}: they are read as \ufffd"
            else:
                self._errors = "surrogateescape"
                found = self._counts()
                why = f"byte 0x{found['byte']:02X} on line {found['line'] + 1} is not UTF-8"
                remark = f"read as Windows-1252, because {why}"
                if 10 * found["letters"] <= found["bytes"] and not found["undefined"]:
                    self._encoding, self._errors = "cp1252", "strict"
                else:
                    remark = f"{counted(found['bytes'], 'byte')} {remark}"
            if self._errors != "strict":
                self._require_repair(f"{why}, but others are")
            self.remarks.append(remark)
        self._has_zeros = found["zeros"] > 0
        if self._has_zeros:
            self._require_repair("it holds NUL characters")
            self.remarks.append(f"ignored, NUL characters: {found['zeros']:,}")
        if found["quotes"] % 2 and not self.reading.strict:
            self.is_regular = False

    def _require_repair(self, why: str) -> None:
        """Let the csv module read the file, or refuse it if reading is strict."""
        if self.reading.strict:
            raise TableError(f"{self.path} is damaged ({why}): save it again in UTF-8.")
        self.is_regular = False

    def _counts(self) -> Counter[str]:
        """Return what the file holds that needs care, by numbers; keep its last characters."""
        found, last = Counter[str](), ""
        with self._opened_text() as text:
            for block in iter(partial(text.read, BLOCK_BYTES), ""):
                found["zeros"] += block.count("\0")
                found["quotes"] += block.count('"')
                last = (last + block)[-SAMPLE:]
                if self._errors == "surrogateescape":
                    bad = ESCAPED.findall(block)
                    if bad and not found["bytes"]:
                        found["byte"] = ord(bad[0]) - 0xDC00
                        found["line"] += block[: block.index(bad[0])].count("\n")
                    elif not found["bytes"]:
                        found["line"] += block.count("\n")
                    found["bytes"] += len(bad)
                    found["letters"] += sum(map(len, LETTERS.findall(block)))
                    found["undefined"] += sum(map(block.count, UNDEFINED))
        self._last_lines = last.splitlines()[len(last) == SAMPLE :]
        return found

    @contextmanager
    def _opened_text(self) -> Iterator[io.TextIOWrapper]:
        with (
            opened_bytes(self.path) as (file, _),
            io.TextIOWrapper(file, self._encoding, self._errors, newline="") as text,
        ):
            yield text

    def _lines(self) -> Iterator[str]:
        """Yield every line, without what cannot be text."""
        with self._opened_text() as text:
            for line in text:
                if self._errors == "surrogateescape":
                    line = line.translate(WINDOWS_1252)
                yield line.replace("\0", "") if self._has_zeros else line

    def _learn_layout(self) -> None:
        """Detect separator, decimal mark and header from the first lines."""
        given, lines, n_letters = self.reading, list[str](), 0
        every = self._lines()
        for line in every:
            lines.append(line)
            n_letters += len(line)
            if n_letters >= SAMPLE:
                # at least the header and two more lines, however long they are
                lines += islice(every, 2)
                break
        excel = EXCEL.fullmatch(lines[0]) if lines else None
        self._n_head = int(excel is not None)
        lines = lines[self._n_head :]
        blank = " " if given.vectors is not None and NUMBERS.match("".join(lines[:1])) else ""
        self._separator = (
            given.separator
            or (excel and excel[1])
            or blank
            or max(SEPARATORS.values(), key=lambda mark: self._fitness(_split(lines, mark)))
        )
        records = _split(lines, self._separator)
        if not records:
            raise TableError(
                f"{self.path} is empty: it needs a header line that names the columns, and rows."
            )
        self.decimal = given.decimal or "."
        if not given.decimal and (self._separator != "," or given.usual_decimal == ","):
            self.decimal = _find_decimal(chain.from_iterable(records[1:]), given.usual_decimal)
        words = {mark: f"separated by {name}s" for name, mark in SEPARATORS.items()}
        written = []
        if self._separator != ",":
            written.append(words.get(self._separator, f"separated by {self._separator!r}"))
        if self.decimal == ",":
            written.append("with decimal commas")
        if written:
            self.remarks.append(
                f"read as {' and '.join(written)} (--sep and --decimal choose others)"
            )
        self.learn_header(records)
        filled = [line for line in self._last_lines if line.strip(f'{self._separator}" ')]
        if filled and not given.strict:
            last, *_ = _split(filled[-1:], self._separator)
            self.is_regular &= not may_end(last, len(self.fields))

    def _fitness(self, records: list[Fields]) -> tuple[bool, float]:
        """Return how well records are separated: whether vectors are whole, and regularity."""
        is_whole = self.reading.vectors is not None and any(map(is_vector, chain(*records)))
        return is_whole, _regularity(records)

    def read(self, *arguments: Any, **options: Any) -> Columns:
        """Return some columns; see `Reader.read`."""
        try:
            return super().read(*arguments, **options)
        except IrregularError:
            if self.reading.strict:
                raise
            self.is_regular = False
            with self.readable():
                self.survey()
            return super().read(*arguments, **options)

    def text_batches(self, names: Names) -> Iterator[Any]:
        """Yield some columns of all rows as batches of text; an empty field is missing."""
        if not self.is_regular:
            yield from super().text_batches(names)
            return
        end, size, strict = self.fields[-1], self.path.stat().st_size, self.reading.strict
        read = list(dict.fromkeys([*names, end]))
        ends = [line for line, _ in islice(self.records(), self._n_head + 1)]
        if len(ends) == self._n_head:  # no row
            return
        header_end = ends[self._n_head - 1] if self._n_head else 0
        last = None
        with self.readable(), opened_bytes(self.path) as (file, packed):
            try:
                for batch in arrow_csv.open_csv(
                    file,
                    arrow_csv.ReadOptions(
                        column_names=self.fields,
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
                    if not strict and self._repeats_header(batch):
                        raise IrregularError("the header occurs again")
                    yield batch.select(names)
            except pa.ArrowInvalid as error:
                if strict:
                    raise
                raise IrregularError(str(error)) from error
        if last and "\n" in last:  # the last cell has several lines, or an unclosed quote
            for line in self._last_lines:
                last = line or last
            if not last.endswith('"'):
                raise IrregularError(
                    f"{self.path} is not a readable CSV file (a quote is never closed): "
                    f"{self.remedy}."
                )

    def _repeats_header(self, batch: Any) -> bool:
        """Return whether some row of a batch may be the header once more."""
        header = dict(zip(self.fields, self._header, strict=False))
        same = None
        for name, cells in zip(batch.schema.names, batch.columns, strict=True):
            if header.get(name):
                equal = compute.equal(cells, header[name])
                same = equal if same is None else compute.and_(same, equal)
                if not compute.any(same).as_py():
                    return False
        return same is not None and len(self._header) > 1

    def survey(self) -> None:
        """Read all records once, and find out which of them are rows."""
        super().survey()
        self.remarks += on_lines("quotes that are never closed, ignored", [*self._unclosed])

    def records(self) -> Iterator[tuple[int, Fields]]:
        """Yield every record that is not blank, and the line on which it ends.

        A quote that is closed nowhere, or so late that the fields do not fit, ends with its line.
        """
        lines, width = _Lines(self._lines()), len(self.fields)
        reader = csv.reader(lines, delimiter=self._separator, strict=not self.reading.strict)
        while True:
            lines.taken.clear()
            fields: Fields | None = None
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error:  # a quote that is never closed, or text behind one
                pass
            if fields is None or (len(lines.taken) > 1 and len(fields) != width > 0):
                alone = self._split_alone(lines.taken[0])
                if fields is None or len(fields) > width or len(alone) == width:
                    if lines.taken[0].count('"') % 2:
                        self._unclosed[lines.number - len(lines.taken) + 1] = None
                    lines.give_back()
                    fields = alone
            if fields:
                yield lines.number, fields

    def _split_alone(self, line: str) -> Fields:
        """Return the fields of a line whose quotes are not all closed."""
        line, split = line.rstrip("\r\n"), partial(csv.reader, delimiter=self._separator)
        fields, unquoted = next(split([line])), next(split([line], quoting=csv.QUOTE_NONE))
        if len(fields) != len(self.fields) == len(unquoted):
            return [field.strip('"') for field in unquoted]
        return fields


class _Lines:
    """Lines, of which those taken after the first can be given back.

    Attributes
    ----------
    taken : list of str
        The lines of the current record, at most `MOST_LINES`.
    number : int
        The number of the last line that was taken.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._back = lines, deque[str]()
        self.taken, self.number = list[str](), 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if len(self.taken) == MOST_LINES:
            raise StopIteration
        line = self._back.popleft() if self._back else next(self._lines)
        self.taken.append(line)
        self.number += 1
        return line

    def give_back(self) -> None:
        """Give all lines back that were taken after the first."""
        self._back.extendleft(self.taken[:0:-1])
        self.number -= len(self.taken) - 1


@contextmanager
def opened_bytes(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the bytes of a file, decompressed if needed, and the file, for its progress."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start == b"PK\3\4":
            try:
                archive = zipfile.ZipFile(file)
            except zipfile.BadZipFile as error:
                raise TableError(
                    f"{path} is not a readable ZIP archive ({error}): write it again."
                ) from error
            with archive, archive.open(only_member(archive)) as member:
                yield member, file
        else:
            kinds = (kind for mark, kind in COMPRESSED.items() if start.startswith(mark))
            unpack = next(kinds, None)
            yield unpack(file) if unpack else file, file


def only_member(archive: zipfile.ZipFile) -> str:
    """Return the name of the file in an archive that has one."""
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX/")
    ]
    if len(names) != 1:
        found = quoted(names) if names else "no files"
        raise TableError(f"{archive.filename} holds {found}: unpack it, and give one of them.")
    return names[0]


def _split(lines: list[str], separator: str) -> list[Fields]:
    """Return the fields of the first lines of a file, without blank lines."""
    return list(islice(filter(None, csv.reader(lines, delimiter=separator)), MOST_RECORDS))


def _regularity(records: list[Fields]) -> float:
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
