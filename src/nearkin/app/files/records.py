"""Tables of text records, such as the lines of a CSV file or the rows of a sheet.

People write more into a table than a header and rows: a title above, a second header line, the
header once more, totals and notes below, rows with too few or too many fields. What is no row is
recognized by what it is, left out, and quoted in a remark.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from statistics import median, mode
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from ..._messages import EXAMPLES, note, shown
from ...tables import MARKS_OF_MISSING, read_number
from ..endings import TableError
from .list_cells import width_of
from .readers import TEXT, Names, Source, unique_names

Fields = list[str]

MOST_RECORDS = 100  # from which the header is recognized
MOST_ABOVE = 30  # lines above the header
MOST_BELOW = 50  # and below the last row
ROWS_PER_BATCH = 2**14
# rows from which a second header line is recognized: above numbers, and above words alone
FEWEST_ROWS, FEWEST_OF_WORDS = 5, 20
NEARLY_ALL = 0.9  # of the filled cells of a column of numbers
TOTAL = re.compile(
    r"(grand |sub-?)?totals?|sums?|averages?|mean|(ins)?gesamt|summe|mittelwert|durchschnitt"
    r"|somme|moyenne|suma|totale|totaal",
    re.IGNORECASE,
)
COMMENT = re.compile(r"# .*|##.*|//.*|%.*")


class Records(Source):
    """A source of records, i.e. of lists of fields.

    Attributes
    ----------
    fields : list of str
        The columns of the file.
    is_regular : bool
        Whether all records below the header are rows, so that they need no survey.
    where : str
        The location of a record in messages, with its line.
    remarks : list of str
        Remarks on what was found before the rows are read.
    """

    untyped = True
    is_regular = False
    where = "on line {}"
    remarks: list[str]
    fields: list[str]
    _header: Fields
    _n_head = 0  # records up to the last line of the header
    _n_long = 0  # rows with too many fields
    # after a survey, all rows as text, and the lines on which they end
    _rows: Any = None
    _row_lines: Sequence[int] = ()

    @abstractmethod
    def records(self) -> Iterator[tuple[int, Fields]]:
        """Yield every record that is not blank, and the line on which it ends."""

    def text_batches(self, names: Names) -> Iterator[Any]:
        """Yield some columns of all rows as batches of text; an empty field is missing."""
        yield from self._rows.select(names).to_batches()

    def place(self, row: int) -> str:
        """Return the line on which a row ends."""
        at = row if self.row_numbers is None else int(self.row_numbers[row])
        if self.is_regular:
            line, _ = next(islice(self.records(), self._n_head + at, None))
        else:
            line = self._row_lines[at]
        return self.where.format(line)

    def learn_header(self, first: list[Fields]) -> None:
        """Take the names of the columns from the first records."""
        if self.reading.is_row and self.reading.is_row(first[0]):
            self._header, self.fields = [], [f"column {place}" for place in range(len(first[0]))]
            self.remarks += note("no header line, columns are called", self.fields)
            below = first
        else:
            below = self._take_header(first)
        widths = {}
        if self.reading.vectors is not None:
            cells = {
                name: pa.array(_column(place, below), TEXT)
                for place, name in enumerate(self.fields)
            }
            widths = {name: width for name in cells if (width := width_of([cells[name]]))}
        self.learn_columns(self.fields, widths)

    def _take_header(self, first: list[Fields]) -> list[Fields]:
        """Take the names of the columns from the header, and return the records below it."""
        at, strict = _find_header(first), self.reading.strict
        if strict and at:
            raise TableError(
                f"{self.path}: its first line, {_quote(first[0])}, is not the header; that seems "
                f"to be {_quote(first[at])}: delete the lines above it."
            )
        above, self._header, below = first[:at], first[at], first[at + 1 :]
        names, headers = _completed(self._header, below, strict), list[Fields]()
        while not strict and below and _is_second_header(below[0], below[1:]):
            headers.append(below.pop(0))
        for header in headers:  # it may hold the options of a question without names of their own
            usual = _usual_word(header)
            for place, word in enumerate(map(str.strip, header[: len(names)])):
                if not names[place].strip() and word != usual:
                    names[place] = word
        self._n_head += at + 1 + len(headers)
        names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]  # as in pandas
        self.fields, remarks = unique_names(f"{self.path}: the header line", names, strict)
        above = [record for record in above if any(record)]
        self.remarks += [
            *note("left out, above the header", [*map(_quote, above)]),
            *note("left out, below the header", [*map(_quote, headers)]),
            *remarks,
        ]
        return below

    def survey(self) -> None:
        """Read all records once, and find out which of them are rows."""
        width, is_strict = len(self.fields), self.reading.strict
        lines, totals, short = list[int](), list[int](), list[int]()
        long, repeated, parts = list[int](), list[int](), list[Any]()
        last = deque[tuple[int, Fields]](maxlen=2 * MOST_BELOW)

        def rows() -> Iterator[Fields]:
            for line, fields in islice(self.records(), self._n_head, None):
                if fields == self._header and len(fields) > 1 and not is_strict:
                    repeated.append(line)
                    continue
                lines.append(line)
                last.append((line, fields))
                if _says_total(fields):
                    totals.append(line)
                if any(fields[width:]):
                    long.append(line)
                    fields = [""] * width
                elif len(fields) < width:
                    short.append(line)
                    fields = fields + [""] * (width - len(fields))
                yield fields

        every = rows()
        for block in iter(lambda: list(islice(every, ROWS_PER_BATCH)), []):
            cells = ([row[place] or None for row in block] for place in range(width))
            parts.append(pa.record_batch([pa.array(column, TEXT) for column in cells], self.fields))
        schema = pa.schema([(name, TEXT) for name in self.fields])
        is_learning = self.reading.drop_empty_rows
        n_below = 0 if is_strict else _n_below(list(last), width, len(totals), is_learning)
        self._rows = pa.Table.from_batches(parts, schema)[: len(lines) - n_below]
        if is_learning and not is_strict and n_below < len(last) and self._ends_in_a_sum():
            n_below += 1
            self._rows = self._rows[:-1]
        self._row_lines = lines[: len(self._rows)]
        below = [fields for _, fields in list(last)[len(last) - n_below :] if any(fields)]
        end = self._row_lines[-1] if self._row_lines else 0
        too_short, too_long = ([line for line in found if line <= end] for found in (short, long))
        self._n_long = len(too_long)
        if 2 * self._n_long > len(self._rows):
            raise TableError(
                f"{self.path} is not a readable {self.kind} (more than half of its rows have more "
                f"fields than its header): {self.remedy}."
            )
        left_out = "left out" if is_learning else "all cells missing"
        self.remarks += [
            *note("left out, below the rows", [*map(_quote, below)]),
            *on_lines("left out, the header once more", repeated),
            *on_lines("rows with too few fields, their last cells missing", too_short),
            *on_lines(f"{left_out}, rows with too many fields", too_long),
        ]

    def _ends_in_a_sum(self) -> bool:
        """Return whether the last row holds the sums of some columns, and nothing else."""
        last = self._rows[-1:].to_pylist()[0].values()
        filled = {place: cell for place, cell in enumerate(last) if cell and cell.strip()}
        if not filled or 0 in filled or not all(map(_is_value, filled.values())):
            return False

        def number(cell: str | None) -> float:
            return (read_number((cell or "").strip(), self.decimal) or (0.0,))[0]

        cells = np.array([[*map(number, self._rows[place].to_pylist())] for place in filled])
        sums = cells[:, :-1].sum(axis=1)
        is_long = cells.shape[1] > FEWEST_ROWS
        return is_long and bool(sums.all() and np.allclose(sums, cells[:, -1]))

    def batches(self, names: Names) -> Iterator[tuple[int, Any]]:
        """Yield some columns as batches of text."""
        # if some columns are not read, a row may have cells in them
        drops_empty = self.reading.drop_empty_rows and {*names} == {*self.names}
        kept, start = [np.ones(0, dtype=bool)], 0  # which rows of every batch are kept
        for batch in self.text_batches(self.fields_of(names)):
            kept.append(np.ones(len(batch), dtype=bool))
            if drops_empty:  # spreadsheets write rows without cells below a table
                filled = reduce(compute.or_, map(compute.is_valid, batch.columns))
                kept[-1] = filled.to_numpy(zero_copy_only=False)
                batch = batch.filter(filled)
            if len(batch):
                yield start, self.expanded(batch, names, start)
            start += len(batch)
        rows = np.concatenate(kept)
        self.row_numbers = None if rows.all() else np.flatnonzero(rows)
        n_empty = len(rows) - start - self._n_long
        self.notes = [*self.remarks, *note("ignored, empty rows", [f"{n_empty}"] * (n_empty > 0))]

    def identifiers(self, name: str) -> Any:
        """Return a column as whole numbers if all cells are written like that, else as text."""
        cells = pa.chunked_array([batch[name] for _, batch in self.batches([name])], TEXT)
        plain = compute.utf8_trim_whitespace(cells)
        with suppress(pa.ArrowInvalid):
            numbers = plain.cast(pa.int64())
            if numbers.cast(TEXT).equals(plain):  # not so 007
                return numbers
        return cells


def on_lines(what: str, lines: Sequence[int]) -> list[str]:
    """Return a list that holds a remark on some lines, or on none an empty list."""
    if not lines:
        return []
    first = ", ".join(map(str, lines[:EXAMPLES])) + ", ..." * (len(lines) > EXAMPLES)
    return [f"{what}: {len(lines):,} (line{'s' * (len(lines) > 1)} {first})"]


def _quote(fields: Fields) -> str:
    return shown(", ".join(dict.fromkeys(cell for cell in map(str.strip, fields) if cell)))


def _is_value(cell: str) -> bool:
    """Return whether a cell has digits, but no letters; or is a number such as 1e5."""
    if any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell)):
        return True
    return read_number(cell.strip()) is not None


# The header is the first record with as many filled fields as rows have.


def _find_header(records: list[Fields]) -> int:
    """Return the position of the header among the first records.

    What is above has few filled fields, or is a comment. The names are no numbers, except for
    consecutive ones such as years, and do not occur in their columns. If no record is like that,
    the first one is the header.
    """
    cells = [[field.strip() for field in record] for record in records]
    n_filled = [sum(map(bool, record)) for record in cells]
    fewest = max(2, median(n_filled) / 2)
    at = 0
    while at < len(cells) - 1 and (n_filled[at] < fewest or COMMENT.fullmatch(cells[at][0])):
        at += 1
    above, header, below = cells[:at], cells[at], cells[at + 1 :]
    if not 0 < at <= MOST_ABOVE or mode(map(len, records)) < 2:
        return 0
    if not any(map(any, above)):
        return at
    numbers = [cell for cell in header if _is_value(cell)]
    are_years = bool(above[0][0]) and all(map(str.isdigit, numbers))
    if numbers and not (are_years and np.all(np.diff(list(map(int, numbers))) == 1)):
        return 0
    is_row = any(cell and cell in _column(place, below) for place, cell in enumerate(header))
    return 0 if is_row else at


def _column(place: int, rows: list[Fields]) -> list[str]:
    """Return the filled cells of a column."""
    return [row[place].strip() for row in rows if place < len(row) and row[place].strip()]


def _completed(header: Fields, rows: list[Fields], strict: bool) -> Fields:
    """Return a name for every column, "" where the header has none.

    Separators that end the header alone are ignored. If rows have one field more, the first column
    has no name if its cells all differ, as R and pandas write row names, else the last one.
    """
    widths = [len(row) for row in rows] or [len(header)]
    width = mode(widths)
    if width > len(header):
        wide = [row for row in rows if len(row) == width]
        adds_none = not any(any(row[len(header) :]) for row in wide)
        are_names = len({row[0] for row in wide}) == len(wide)
        if width == len(header) + 1 and are_names and not adds_none and not strict:
            return ["", *header]
        if not strict or (adds_none and width == len(header) + 1):
            return header + [""] * (width - len(header))
    return header if any(header[max(widths) :]) else header[: max(widths)]


# A second header line, such as "Response" under every question of a poll, or the units of columns.


def _is_second_header(record: Fields, rows: list[Fields]) -> bool:
    """Return whether the record below the header is not one of the rows.

    It has no numbers, and none of its words occurs elsewhere in its column, unless nothing else
    does (the option of a question). And some words stand where the other cells are numbers, or
    one stands in at least three columns, half of the filled ones, or in a longer table there are
    at least three with a word that recurs, or with words where the other cells repeat.
    """
    words = {place: cell.strip() for place, cell in enumerate(record) if cell.strip()}
    if not words or len(rows) < FEWEST_ROWS or any(map(_is_value, words.values())):
        return False
    columns = [_column(place, rows) for place in range(len(record))]
    new = [place for place, word in words.items() if word not in columns[place]]
    if any({*columns[place]} != {word} for place, word in words.items() if place not in new):
        return False
    usual, is_long = _usual_word(record) or "", len(rows) >= FEWEST_OF_WORDS
    if usual.lower() not in MARKS_OF_MISSING and not any(map(str.isdigit, usual)):
        n_usual = sum(words[place] == usual for place in new)
        if n_usual == len(words) or (n_usual > 2 and (is_long or 2 * n_usual >= len(words))):
            return True
    of_numbers = [
        place
        for place, cells in enumerate(columns)
        if len(cells) >= FEWEST_ROWS and sum(map(_is_value, cells)) >= NEARLY_ALL * len(cells)
    ]
    named = [p for p in of_numbers if words.get(p, "-").lower() not in MARKS_OF_MISSING]
    if of_numbers:
        return 2 * len(named) >= len(of_numbers) and len(words) > 1
    repeats = [place for place in new if 2 * len({*columns[place]}) <= len(columns[place])]
    return is_long and len(repeats) >= 3


def _usual_word(record: Fields) -> str | None:
    """Return the word that occurs most often in a record, if one occurs twice."""
    words = Counter(filter(None, map(str.strip, record))).most_common(1)
    return words[0][0] if words and words[0][1] > 1 else None


# Totals and notes below the rows.


def _says_total(fields: Fields) -> bool:
    first = next((cell for cell in map(str.strip, fields) if cell), "")
    return TOTAL.fullmatch(first.rstrip(": ")) is not None


def may_end(record: Fields, width: int) -> bool:
    """Return whether the last record of a table may be no row, so that it should be examined."""
    filled = [cell for cell in record if cell.strip()]
    is_sum = len(filled) < len(record) and not record[0].strip() and all(map(_is_value, filled))
    is_odd = len(record) != width or len(filled) < 2 or _says_total(record) or is_sum
    return width > 1 and is_odd


def _n_below(last: list[tuple[int, Fields]], width: int, n_totals: int, is_learning: bool) -> int:
    """Return how many of the last records, with their lines, are no rows, but totals and notes.

    Unless rows are learned from, each one with all its fields has to get an answer, and is a row.
    """
    lines = [line for line, _ in last]
    records = [[field.strip() for field in fields] for _, fields in last]
    are_totals = n_totals == sum(map(_says_total, records[-MOST_BELOW // 10 :]))
    end, gaps = len(records), np.diff(lines)
    for at in range(len(records) - 1, max(len(records) - MOST_BELOW, FEWEST_ROWS - 1), -1):
        if not is_learning and len(records[at]) >= width:
            break
        filled = [cell for cell in records[at] if cell]
        is_total = are_totals and _says_total(records[at])
        if is_total or _is_note(records[at], records[:at], width):
            end = at
        elif len(filled) > 1 or any(map(_is_value, filled)):
            break
        # a single word may be a note, too, if it stands apart from the rows
        is_apart = gaps[at - 1] > np.median(gaps) or not any(records[at - 1])
        if filled and (is_apart or (are_totals and _says_total(records[at - 1]))):
            end = at
    while is_learning and 0 < end < len(records) and not any(records[end - 1]):  # above them
        end -= 1
    return len(records) - end


def _is_note(record: Fields, before: list[Fields], width: int) -> bool:
    """Return whether a record is text in a single field, or in few, that is no cell of its column.

    That column has numbers, or shorter text.
    """
    filled = [place for place, cell in enumerate(record) if cell]
    does_not_fit = len(record) < width and 2 * len(filled) <= width
    is_text = not any(_is_value(record[place]) for place in filled)
    if not filled or not is_text or (len(filled) > 1 and not does_not_fit):
        return False
    columns = {place: _column(place, before) for place in filled}
    if len(record) == 1 < width:
        return record[0] not in columns[0]  # else a row that was cut off
    note, cells = record[filled[0]], columns[filled[0]]
    is_longest = len(note.split()) >= 3 and len(note) > max(map(len, cells), default=0)
    return is_longest or any(
        2 * sum(map(_is_value, cells)) > len(cells) for cells in columns.values()
    )
