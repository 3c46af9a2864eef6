"""Files as people write them: each is a clean table and something more, and is read like the clean one."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

from nearkin.app.endings import TableError
from nearkin.app.files.readers import Reading
from nearkin.app.tables.reading import read_rows, read_table
from nearkin.tables import Rules
from nearkin.tables.target import target_numbers

N = 60
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "town": RNG.choice(["Köln", "Bonn", "Ulm"], N),
        "size": RNG.normal(50, 10, N).round(2),
        "rooms": RNG.integers(1, 6, N),
        "built": pd.date_range("2001-03-04", periods=N, freq="17D").strftime("%Y-%m-%d"),
        "heating": RNG.choice(["gas", "oil", "wood"], N),
        "kind": RNG.choice(["flat", "house"], N),
    }
)
CLEAN = TABLE.to_csv(index=False)
HEADER, *ROWS = CLEAN.splitlines()
SUMS = f",{TABLE['size'].sum():.2f},{TABLE['rooms'].sum()},,,"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def expected(folder):
    (folder / "clean.csv").write_text(CLEAN)
    return read_table("clean.csv", "kind")


def lines(*more, at=None, header=HEADER, rows=ROWS):
    """Return the table with lines more below a row, by default below the last."""
    at = len(rows) if at is None else at
    return "\n".join([header, *rows[:at], *more, *rows[at:], ""])


def with_cell(text, row, cell):
    """Return the table with a word in one row replaced."""
    changed = [*ROWS]
    changed[row] = ROWS[row].replace(cell, text, 1)
    return lines(rows=changed)


GAS = next(row for row in range(10, N) if "gas" in ROWS[row])
DAMAGED = {
    "a title": ("Flats and houses\n" + CLEAN, "left out, above the header: 'Flats and houses'"),
    "a title, notes and blank lines": (
        "Flats and houses, 2024\n\nSource:,our own\n,,,,,\n" + CLEAN,
        "left out, above the header: 'Flats and houses, 2024', 'Source:, our own'",
    ),
    "a comment": ("# made by a program, v. 2\n" + CLEAN, "above the header: '# made by"),
    "blank cells above": (",,,,,\n,,,,,\n" + CLEAN, ""),
    "units below the header": (
        lines(",m²,,year-month-day,,", at=0),
        "left out, below the header: 'm², year-month-day'",
    ),
    "types below the header": (
        lines("string,float,integer,date,string,string", at=0),
        "left out, below the header: 'string, float, integer, date'",
    ),
    "one word below the header": (
        lines("Response,Response,,Response,Response,Response", at=0),
        "left out, below the header: 'Response'",
    ),
    "two lines below the header": (
        lines(
            "In which town?,How large?,How many?,When?,How heated?,What?",
            '"{""id"": ""Q1""}","{""id"": ""Q2""}","{""id"": ""Qx""}","{""id"": ""Qy""}",Qz,Q',
            at=0,
        ),
        "left out, below the header: 'In which town?",
    ),
    "the header once more": (
        lines(HEADER, at=30),
        "left out, the header once more: 1 (line 32)",
    ),
    "pages with headers": (
        lines(HEADER, HEADER, at=30),
        "left out, the header once more: 2 (lines 32, 33)",
    ),
    "a total": (lines("Total" + SUMS), "left out, below the rows: 'Total"),
    "a total and a mean": (
        lines("Total:" + SUMS, "Average,50,3,,,"),
        "left out, below the rows: 'Total:",
    ),
    "sums without a word": (lines(SUMS), "left out, below the rows: '"),
    "a note": (
        lines("", "Source: our own records"),
        "left out, below the rows: 'Source: our own records'",
    ),
    "a note in a row of a sheet": (
        lines(",,,,,", "All prices as of the first of May,,,,,"),
        "left out, below the rows: 'All prices as of the first of May'",
    ),
    "a note with commas": (
        lines("Rents, heating, and all else"),
        "left out, below the rows: 'Rents, heating, and all else'",
    ),
    "a total and notes": (
        lines("Total" + SUMS, ",,,,,", "Note: preliminary", "Printed on May 1"),
        "below the rows: 'Total, 3",
    ),
    "a row with too many fields": (
        lines("Bonn,Beuel,50.1,3,2004-01-01,gas,flat,x", at=7),
        "left out, rows with too many fields: 1 (line 9)",
    ),
    "rows that end in separators": (lines(rows=[*ROWS[:5], *(r + ",," for r in ROWS[5:9]), *ROWS[9:]]), ""),
    "separators that end all rows": (lines(rows=[row + "," for row in ROWS]), ""),
    "empty rows": (lines(",,,,,", ",,,,,", at=9), "ignored, empty rows: 2"),
    "a quote that is never closed": (
        with_cell('"gas', GAS, "gas"),
        f"quotes that are never closed, ignored: 1 (line {GAS + 2})",
    ),
    "a quote that a later one closes": (
        lines(rows=[row.replace("gas", '"gas') if at in (GAS, N - 1) else row for at, row in enumerate(ROWS)]),
        "quotes that are never closed, ignored",
    ),
    "NUL characters": (CLEAN.replace("gas", "g\0as"), "ignored, NUL characters: "),
    "two encodings": (
        b"\n".join(
            line.encode("cp1252" if at % 2 else "utf-8") for at, line in enumerate([HEADER, *ROWS])
        ),
        "read as Windows-1252, because byte 0xF6 on line",
    ),
    "Windows-1252": (CLEAN.encode("cp1252"), "read as Windows-1252, because"),
    "row names that the header lacks": (
        lines(rows=[f"{at},{row}" for at, row in enumerate(ROWS, start=1)]),
        "ignored, numbers of the rows: Unnamed: 0",
    ),
    "semicolons, a title and a total": (
        "Flats\n" + lines("Total" + SUMS).replace(",", ";"),
        "left out, below the rows",
    ),
}  # fmt: skip


def assert_same(table, expected):
    assert table.feature_names == expected.feature_names
    np.testing.assert_array_equal(table.X, expected.X)
    assert table.y.tolist() == expected.y.tolist()


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_no_row_is_left_out_with_a_remark(folder, expected, case):
    text, remark = DAMAGED[case]
    (folder / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    table = read_table("t.csv", "kind")
    assert_same(table, expected)
    assert remark in "\n".join(table.notes)


def test_lines_of_rows_in_errors_count_those_that_are_left_out(folder):
    (folder / "t.csv").write_text("Flats\n\n" + lines("x,,1,2001-01-01,gas,flat", at=3))
    with pytest.raises(TableError, match=r"missing values .* in 'size' \(1\), first on line 7"):
        read_table("t.csv", "kind", reading=Reading(refuse_missing=True))


def test_options_below_the_header_name_columns_without_names(folder):
    header = "id,Which do you use?,,,Where?,When?,kind"
    below = ",Bus,Train,Other (please specify),Response,Response,Response"
    rows = [
        f"{at},{'Bus' * (at % 2)},{'Train' * (at % 3 == 0)},,{'NS'[at % 2]},{'am pm'[at % 2 :: 3]},{'ab'[at % 2]}"
        for at in range(30)
    ]
    (folder / "t.csv").write_text(lines(below, at=0, header=header, rows=rows))
    table = read_table("t.csv", "kind")
    names = table.encoder.feature_names_in_.tolist()
    assert names == [
        "id",
        "Which do you use?",
        "Train",
        "Other (please specify)",
        "Where?",
        "When?",
    ]
    assert len(table.y) == 30


@pytest.mark.parametrize(
    "text",
    [
        lines("Bonn,,,,,flat"),  # cells that are missing
        lines("Total,50.1,3,2004-01-01,gas,flat", "Total,50.1,3,2004-01-01,gas,house", at=3),
        lines(*["Total,50.1,3,2004-01-01,gas,flat", "Total,50.1,3,2004-01-01,gas,house"], at=3),
        lines("n/a,n/a,n/a,n/a,n/a,flat", at=0),
        lines("Ulm,unknown,3,2004-01-01,gas,flat", at=0),
        lines("Ulm,unknown,unknown,unknown,gas,flat", at=0),
        lines(",50.1,3,2004-01-01,gas,flat"),
        CLEAN + "Bonn,50.1,3,2004-01-01,gas,flat",
    ],
)
def test_odd_rows_are_rows(folder, text):
    (folder / "t.csv").write_text(text)
    table = read_table("t.csv", "kind")
    assert len(table.y) > N
    assert not any(note.startswith("left out") for note in table.notes)


def test_new_rows_keep_their_places(folder, expected):
    (folder / "new.csv").write_text(lines(HEADER, "Bonn,Beuel,50.1,3,2004-01-01,gas,flat,x", at=7))
    X, notes, _ = read_rows("new.csv", expected.encoder)
    np.testing.assert_array_equal(np.delete(X, 7, axis=0), expected.X)
    assert "all cells missing, rows with too many fields: 1 (line 10)" in notes


def test_a_separator_that_does_not_fit_is_an_error(folder):
    (folder / "t.csv").write_text("a,b\n" + "1,2\n1,2,3\n1,2,3,4\n" * 9)
    with pytest.raises(TableError, match="more than half of its rows have more fields"):
        read_table("t.csv", "b")


# Formats


def zipped(text, *more):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/t.csv", text)
        archive.writestr("__MACOSX/t.csv", "x")
        for name in more:
            archive.writestr(name, text)
    return file.getvalue()


def written(write):
    """Return the bytes that a method of a data frame writes to a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


DATED = TABLE.assign(built=pd.to_datetime(TABLE["built"]))
RECORDS = TABLE.to_dict("records")
FORMATS = {
    "t.csv.gz": lambda: gzip.compress(CLEAN.encode()),
    "t.csv.bz2": lambda: bz2.compress(CLEAN.encode()),
    "t.csv.xz": lambda: lzma.compress(CLEAN.encode()),
    "t.csv.zst": lambda: pa.compress(CLEAN.encode(), "zstd", asbytes=True),
    "t.zip": lambda: zipped(CLEAN.encode()),
    "t.data": lambda: CLEAN.encode(),
    "t.jsonl": lambda: "\n".join(map(json.dumps, RECORDS)).encode(),
    "t.jsonl.gz": lambda: gzip.compress("\n".join(map(json.dumps, RECORDS)).encode()),
    "t.json": lambda: json.dumps(RECORDS, indent=2).encode(),
    "columns.json": lambda: TABLE.to_json().encode(),
    "t.feather": lambda: written(DATED.to_feather),
    "t.arrow": lambda: written(lambda file: feather.write_feather(TABLE, file, "uncompressed")),
    "t.parquet": lambda: written(DATED.to_parquet),
    "t.xlsx": lambda: written(lambda file: DATED.to_excel(file, index=False, engine="openpyxl")),
    "t.ods": lambda: written(lambda file: TABLE.to_excel(file, index=False, engine="odf")),
}


@pytest.fixture(params=FORMATS)
def content(request):
    if request.param in ("t.xlsx", "t.ods"):
        pytest.importorskip("openpyxl")
        pytest.importorskip("odf")
    return request.param, FORMATS[request.param]()


def test_formats(folder, expected, content, monkeypatch):
    name, found = content
    (folder / name).write_bytes(found)
    assert_same(read_table(name, "kind"), expected)
    (folder / "t.csv").write_bytes(found)  # whatever its name says
    assert_same(read_table("t.csv", "kind"), expected)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(found)))
    assert_same(read_table("-", "kind"), expected)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.zip", zipped(b"x", "b.csv"), "holds 'data/t.csv', 'b.csv': unpack it"),
        ("t.json", b'["a", 1]', "not a readable JSON table (it holds no records)"),
        ("t.json", b'{"a": ', "not a readable JSON table"),
        ("t.xlsx", b"PK\3\4", "not a readable workbook"),
        ("t.orc", b"ORC", "such files are not read: write it as Parquet"),
        ("t.feather", b"ARROW1\0\0", "not a readable Feather file"),
        ("t.csv.zst", b"\x28\xb5\x2f\xfdxxxx", "not a readable CSV file"),
    ],
)
def test_what_is_refused_is_refused_in_a_line(folder, name, content, says):
    (folder / name).write_bytes(content)
    with pytest.raises(TableError) as error:
        read_table(name, "kind")
    assert says in str(error.value)


# Names


def test_names_that_occur_more_than_once_are_numbered_as_in_pandas(folder):
    text = "a,b,a,a.1,a,kind\n" + "".join(
        f"{at},{at % 3},{at % 4},{at % 5},{at % 6},{'xy'[at % 2]}\n" for at in range(30)
    )
    (folder / "t.csv").write_text(text)
    table = read_table("t.csv", "kind")
    names = table.encoder.feature_names_in_.tolist()
    assert names == pd.read_csv("t.csv").columns.tolist()[:-1]
    assert "names that occur more than once, numbered: 'a.2', 'a.3'" in table.notes


def test_long_names_and_names_that_differ_by_spaces(folder):
    long = "How much " * 200
    text = CLEAN.replace("size", long).replace("kind", "kind ").replace("rooms", "kind")
    (folder / "t.csv").write_text(text)
    assert set(read_table("t.csv", "kind ").y) == {"flat", "house"}
    table = read_table("t.csv", "  kind")
    assert table.target == "kind"
    assert long in table.feature_names
    assert max(map(len, table.notes)) < 300


# Targets


def test_cells_of_a_target_that_are_no_numbers_are_like_missing_ones(folder):
    prices = [f" £{price:,} " for price in range(1000, 1000 + 100 * N, 100)]
    for at, odd in {4: "POA", 9: "Sample  90.58", 14: "2020-01-01"}.items():
        prices[at] = odd
    TABLE.assign(price=prices).to_csv("t.csv", index=False)
    table = read_table("t.csv", "price", task="regression")
    known = np.delete(np.arange(N), [4, 9, 14])
    np.testing.assert_array_equal(table.labelled, known)
    np.testing.assert_array_equal(table.y[known], 1000 + 100 * known)
    odd = "'2020-01-01' (1 row), 'POA' (1 row), 'Sample 90.58' (1 row)"
    assert f"price: no numbers, taken as missing: {odd}" in table.notes
    with pytest.raises(TableError, match="'price' holds 'POA' on line 6, which is not a number"):
        read_table("t.csv", "price", task="regression", reading=Reading(strict=True))
    prices[20] = "POA"
    TABLE.assign(price=prices).to_csv("t.csv", index=False)
    with pytest.raises(TableError, match="'price' holds 'POA' on line 6, which is not a number"):
        read_table("t.csv", "price", task="regression")


def test_the_unit_of_most_cells_is_that_of_a_target():
    cells = np.array([f"£{at}" for at in range(90)] + ["230 USD", "17"] + ["n/a"] * 30)
    numbers, remarks = target_numbers("price", cells)
    np.testing.assert_array_equal(numbers, [*range(90), np.nan, 17, *[np.nan] * 30])
    assert remarks[-1] == "price: no numbers, taken as missing: '230 USD' (1 row)"
    assert np.isnan(target_numbers("price", cells, Rules(missing_values=("17",)), 1.0)[0][91])
