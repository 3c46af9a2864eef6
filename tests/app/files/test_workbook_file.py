"""Sheets of workbooks are read like text."""

import csv

import numpy as np
import pandas as pd
import pytest

from nearkin.app.endings import TableError
from nearkin.app.files.formats import opened
from nearkin.app.files.readers import Reading
from nearkin.app.tables.reading import read_table

from .test_records import CLEAN, DAMAGED, DATED, TABLE, assert_same


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def expected(folder):
    (folder / "clean.csv").write_text(CLEAN)
    return read_table("clean.csv", "kind")


OF_TEXT = (
    "a note with commas",
    "a row with too many fields",
    "a quote that is never closed",
    "a quote that a later one closes",
    "NUL characters",
    "row names that the header lacks",
    "semicolons, a title and a total",
)


@pytest.mark.parametrize("case", DAMAGED)
def test_the_same_in_a_sheet(folder, expected, case):
    text, _ = DAMAGED[case]
    if case in OF_TEXT or isinstance(text, bytes):
        pytest.skip("not in a sheet")
    pytest.importorskip("openpyxl")
    records = list(csv.reader(text.splitlines()))
    width = max(map(len, records))
    cells = [
        [number(cell) for cell in record] + [None] * (width - len(record)) for record in records
    ]
    pd.DataFrame(cells).to_excel("t.xlsx", header=False, index=False)
    assert_same(read_table("t.xlsx", "kind"), expected)


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return cell or None


def test_a_workbook_of_several_sheets(folder, expected):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter("t.xlsx", engine="openpyxl") as book:
        pd.DataFrame().to_excel(book, sheet_name="Cover", index=False)
        DATED.to_excel(book, sheet_name="Data", index=False, startrow=2, startcol=1)
        TABLE.to_excel(book, sheet_name="Old", index=False)
    table = read_table("t.xlsx", "kind")
    assert_same(table, expected)
    assert "read the sheet 'Data', not 'Cover', 'Old'" in table.notes
    with pytest.raises(TableError, match="first in row 4 of the sheet"):
        read_table("t.xlsx", "kind", reading=Reading(missing=("Bonn",), refuse_missing=True))


def test_an_empty_row_among_the_others_is_one(folder):
    """Answers stand beside their rows, and rows have the numbers that pandas gives them."""
    pytest.importorskip("openpyxl")
    rows = TABLE.astype(object)
    rows.loc[2] = None
    rows.to_excel("t.xlsx", index=False, startrow=2)
    with opened("t.xlsx") as file:
        new = pd.concat(batch.to_pandas() for _, batch in file.batches(file.names))
    assert new.isna().all(axis=1).to_numpy().nonzero()[0].tolist() == [2]
    assert len(new) == len(TABLE)
    learned = read_table("t.xlsx", "kind")
    assert learned.in_file(np.array([1, 2])).tolist() == [1, 3]
    assert "ignored, empty rows: 1" in learned.notes
