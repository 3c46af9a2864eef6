"""What the tests of hostile tables share: a small table, and how one is read by one block and by many."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from nearkin.app.endings import TableError
from nearkin.app.files.readers import Reading
from nearkin.app.tables.reading import read_table
from nearkin.tables.cells import MAX_TEXT

N = 24
RNG = np.random.default_rng(0)
SIZES = RNG.standard_normal(N).round(3).tolist()
KINDS = [("red", "blue", "green")[i % 3] for i in range(N)]
INTEGERS = list(range(N))
LONG = "x" * 100_000
STRANGE = {
    "formula": "=cmd()|'/c calc'!A0",
    "HTML": "<script>alert(1)</script>",
    "terminal escape codes": "\x1b[31mred\x07",
    "emoji": "🐘" * 40,
    "right to left": "\u202eفيل",
    "number": "3.14",
    "date": "2020-01-01",
    "truth value": "True",
    "not a number": "not a nan",
    "spaces": " a  b ",
    "tab": "a\tb",
    "line break": "a\nb",
    "quotes": '"\'"',
    "comma": "a,b",
    "comment": "# a",
    "backslash": "\\n\\",
    "percent": "%s{}{0}",
    "as long as may be": "x" * MAX_TEXT,
}


def read(name, **how):
    """Return the table in a file or the line that refuses it: the same from one block as from many."""
    whole = table_or_line(name, **how)
    with pytest.MonkeyPatch.context() as patch:
        small = {
            "files.csv_file.BLOCK_BYTES": 1500,
            "files.csv_file.BYTES_PER_COLUMN": 1,
            "files.parquet_file.CELLS_PER_BATCH": 16,
            "files.parquet_file.MIN_ROWS_PER_BATCH": 1,
        }
        for constant, value in small.items():
            patch.setattr(f"nearkin.app.{constant}", value)
        parts = table_or_line(name, **how)
    if isinstance(whole, str):
        assert isinstance(parts, str)
    else:
        np.testing.assert_array_equal(whole.X, parts.X)
        assert whole.y.tolist() == parts.y.tolist()
        assert whole.feature_names == parts.feature_names
        assert whole.notes == parts.notes
    return whole


def table_or_line(name, **how):
    try:
        return read_table(name, "kind", reading=Reading(**how))
    except TableError as error:
        return str(error)


def assert_sound(table):
    assert not isinstance(table, str), table
    assert table.X.dtype in (np.float32, np.float64)
    assert table.y.dtype.isnative
    assert table.X.shape == (len(table.y), len(table.feature_names))
    assert not np.isinf(table.X).any()


def assert_clear(line, *pieces):
    assert isinstance(line, str), line
    assert line.startswith(("t.csv", "t.parquet", "t.npz"))
    assert len(line.splitlines()) == 1
    assert len(line) < 400
    assert ":" in line or ";" in line  # what is wrong, and the remedy
    for piece in pieces:
        assert piece in line


# CSV


def csv(**columns):
    """Return a CSV of these columns, N numbers and N kinds."""
    return pd.DataFrame({"size": SIZES, **columns, "kind": KINDS}).to_csv(index=False)


def write(text):
    with open("t.csv", "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


PLAIN = csv()


# Parquet


def arrow(**columns):
    return pa.table({"size": SIZES, **columns, "kind": KINDS})


# NPZ


def npz(**arrays):
    with open("t.npz", "wb") as file:
        np.savez(file, **{"X": np.array(SIZES)[:, None], "kind": np.array(KINDS), **arrays})
