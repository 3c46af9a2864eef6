"""Text tables, CSV and the like, as streams of Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow import compute

from .dialect import find_dialect, opened
from .readers import TEXT, Names, Reading, Source
from .refusals import Progress, TableError, check_names, ignore, note, readable

BLOCK_BYTES = 2**20  # read at a time
BYTES_PER_COLUMN = 2000  # at least: to convert a column has a cost beside that of its rows
MAX_COLUMNS = 50_000  # of which a block is 100 MB
# How a file begins that is called like a text table and is none, and the remedy.
BINARY = {
    b"PK\3\4": "save the sheet of a workbook as CSV, or unpack an archive",
    b"\xd0\xcf\x11\xe0": "save the sheet of a workbook as CSV",
    b"PAR1": "let its name end in .parquet",
}
CSV = ("CSV file", "save it in UTF-8, every quote closed and in every row as many fields as in the header line")


class CsvFile(Source):
    """A text table with a header line; what separates its fields is found."""

    untyped, n_rows = True, 0

    def __init__(self, path: Path, progress: Progress = ignore, reading: Reading | None = None) -> None:
        self.path, self.text, self._progress, self.reading = path, list[str](), progress, reading or Reading()
        with readable(self.path, *CSV):
            with opened(path) as (file, _):
                start = file.read(4)
            if start in BINARY:
                raise TableError(f"{path} is no text: {BINARY[start]}.")
            self._dialect = find_dialect(path, self.reading.separator, self.reading.decimal, self.reading.usual_decimal)
        header = self._dialect.header
        if not header:
            raise TableError(f"{path} is empty: it needs a header line that names the columns, and rows.")
        if len(header) > MAX_COLUMNS:
            remedy = "give a Parquet file with one column of lists, or an NPZ file"
            raise TableError(f"{path} has {len(header):,} columns, and a text table at most {MAX_COLUMNS:,}: {remedy}.")
        self._drops_empty = False
        self.decimal, self.notes = self._dialect.decimal, self._dialect.remarks
        self.names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]  # as pandas calls them
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
        cells = {"null_values": [""], "strings_can_be_null": True, "column_types": dict.fromkeys(read, TEXT)}
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
            raise TableError(f"{self.path} is no readable CSV file (a quote is never closed): {CSV[1]}.")

    def _count_empty(self, kept: np.ndarray) -> None:
        """Keep the numbers of the rows that are not empty, and remark how many are, where some are."""
        self.notes, self.row_numbers = self._dialect.remarks, None
        if not kept.all():
            self.row_numbers = np.flatnonzero(kept)
            self.notes = [*self.notes, *note("ignored, empty rows", [f"{len(kept) - len(self.row_numbers)}"])]

    def place(self, row: int) -> str:
        """Return the line that a row ends on."""
        lines = (line for line, record in self._dialect.records(self.path) if not self._drops_empty or any(record))
        return f"on line {next(islice(lines, row + 1, None))}"  # the header is a record, too


def _has_cells(batch: Any) -> np.ndarray:
    """Return which rows have a cell: spreadsheets write rows without one below a table."""
    empty = None
    for column in batch.columns:
        empty = column.is_null() if empty is None else compute.and_(empty, column.is_null())
        if not compute.any(empty).as_py():
            return np.ones(len(batch), dtype=bool)
    return compute.invert(empty).to_numpy(zero_copy_only=False)
