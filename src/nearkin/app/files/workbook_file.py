"""Workbooks: the first sheet that has cells, as a table of text records."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pandas as pd

from ..._messages import listed, shown
from ..endings import TableError
from .records import MOST_RECORDS, Fields, Records


class WorkbookFile(Records):
    """A workbook of Excel or LibreOffice; cells become text in the styles that are recognized."""

    kind = "workbook"
    remedy = "save the sheet as CSV"
    where = "in row {} of the sheet"

    def _open(self) -> None:
        self.decimal, self.fields = self.reading.decimal or ".", []
        with self.readable(), pd.ExcelFile(self.path, engine="calamine") as book:
            sheets = book.sheet_names
            for sheet in sheets:
                cells = pd.read_excel(book, sheet, header=None, dtype=object, na_filter=False)
                rows = [list(map(_text, row)) for row in cells.itertuples(index=False)]
                filled = [number for number, fields in enumerate(rows, start=1) if any(fields)]
                if filled:
                    self._first = filled[0]
                    self._cells = rows[filled[0] - 1 : filled[-1]]
                    break
            else:
                raise TableError(f"{self.path} is empty: it needs a sheet with cells.")
        others = [shown(name) for name in sheets if name != sheet]
        self.remarks = [f"read the sheet {shown(sheet)}, not {listed(others, 3)}"] if others else []
        first = [fields for _, fields in self.records()][:MOST_RECORDS]
        self.learn_header(first)
        self.survey()

    def records(self) -> Iterator[tuple[int, Fields]]:
        """Yield the rows of the sheet from the first to the last with a cell, and their numbers."""
        yield from enumerate(self._cells, start=self._first)


def _text(cell: Any) -> str:
    """Return the text of a cell; a date without a time has none, and a whole number no decimals."""
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        cell = cell.date()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)
