"""Tables as they come: each is refused by one clear line, or read the same by one block as by many."""

import base64
import datetime
import decimal
import gzip
import io
import re
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array

from nearkin.app.readers import MAX_TEXT, Reading
from nearkin.app.tables import TableError, read_rows, read_table

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


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name, **how):
    """Return the table in a file or the line that refuses it: the same from one block as from many."""
    whole = table_or_line(name, **how)
    with pytest.MonkeyPatch.context() as patch:
        small = {
            "csv_file.BLOCK_BYTES": 1500,
            "csv_file.BYTES_PER_COLUMN": 1,
            "parquet_file.CELLS_PER_BATCH": 16,
            "parquet_file.MIN_ROWS_PER_BATCH": 1,
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


def labelled(*labels):
    return pd.DataFrame(
        {"size": SIZES, "kind": [labels[i % len(labels)] for i in range(N)]}
    ).to_csv(index=False)


def named(name):
    return pd.DataFrame({name: SIZES, "kind": KINDS}).to_csv(index=False)


def write(text):
    with open("t.csv", "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


PLAIN = csv()
LINES = PLAIN.splitlines()
SOUND = {
    "plain": PLAIN,
    "labels that are empty": labelled("a", "", "b"),
    "labels called nan": labelled("a", "nan"),
    "numbers and gaps": labelled(1, "NA", 2),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR": PLAIN.replace("\n", "\r"),
    "CR CR LF": PLAIN.replace("\n", "\r\r\n"),
    "mixed line ends": "".join(line + ("\r\n", "\n", "\r")[i % 3] for i, line in enumerate(LINES)),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "no line end at the end": PLAIN.rstrip("\n"),
    "everything quoted": "\n".join(
        ",".join(f'"{cell}"' for cell in line.split(",")) for line in LINES
    ),
    "a name of 100,000 letters": named(LONG),
    "columns without a name": PLAIN.replace("size", ""),
    "tiny numbers": csv(more=[i * 1e-320 for i in INTEGERS]),
    "numbers of all sizes": csv(more=[float(f"1e{i}") for i in range(-12, 12)]),
    "integers of 40 digits": csv(more=[10**40 + 10**38 * i for i in INTEGERS]),
    "integers beyond 2**53": csv(more=[2**53 + 2 * i for i in INTEGERS]),
    "integers of 64 bits without a sign, and with one": csv(more=[2**64 - 1, -1] * 12),
    "superscripts are text": csv(more=["²", "³"] * 12),
    "two minus signs are text": csv(more=["--5", "5"] * 12),
    "hexadecimal is text": csv(more=[hex(i % 4) for i in INTEGERS]),
    "thousands separators are text": csv(more=[f"{i % 5},000" for i in INTEGERS]),
    "decimal commas are text": csv(more=[f"0,{i % 5}" for i in INTEGERS]),
    "percentages are text": csv(more=[f"{i % 5}%" for i in INTEGERS]),
    "spaces around numbers": csv(more=[f" {i} " for i in INTEGERS]),
    "duplicated rows": LINES[0] + "\n" + "\n".join([LINES[1], LINES[2]] * 12),
    "duplicated columns": csv(more=SIZES, less=SIZES),
    "a constant column": csv(more=7),
    "True, False": csv(more=[i % 2 == 0 for i in INTEGERS]),
    "True mixed with 1": csv(more=[True, 1, 0, False] * 6),
    "True in some blocks, 1 in others": csv(more=[True] * 10 + [1, 0] * 7),
    "mixed types": csv(more=[1, "one", 2.5, True] * 6),
    "a word after many numbers": csv(more=[*[1, 2] * 11, 1, "many"]),
    "values of 600 letters": csv(more=[LONG[:600], "y"] * 12),
    "numbers after many words": csv(more=["a", "b"] * 10 + [1, 2, 1, 2]),
    "a category that comes late": csv(more=["a", "b"] * 11 + ["c", "c"]),
    "a mark of the end of a file": labelled("\x1a", "b"),
}
# Written otherwise, and the remark on it; each is read as PLAIN is.
DIALECTS = {
    "semicolons": (PLAIN.replace(",", ";"), "read as separated by semicolons (--sep"),
    "semicolons and decimal commas": (
        PLAIN.replace(",", ";").replace(".", ","),
        "semicolons and with decimal commas",
    ),
    "tabs": (PLAIN.replace(",", "\t"), "read as separated by tabs (--sep"),
    "tabs and decimal commas": (
        PLAIN.replace(",", "\t").replace(".", ","),
        "tabs and with decimal commas",
    ),
    "pipes": (PLAIN.replace(",", "|"), "read as separated by pipes (--sep"),
    "a line for Excel above the header": ("sep=,\n" + PLAIN, ""),
    "a line for Excel, with a mark of its own": (
        "sep=!\r\n" + PLAIN.replace(",", "!"),
        "separated by '!'",
    ),
    "UTF-16": (PLAIN.encode("utf-16"), ""),
    "UTF-16 in the other order": (b"\xfe\xff" + PLAIN.encode("utf-16-be"), ""),
    "Unicode text of Excel": (
        PLAIN.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
        "separated by tabs",
    ),
    "separators that end every row": (PLAIN.replace("\n", ",\n"), "ignored, empty: Unnamed: 2"),
    "separators that end the rows alone": (
        PLAIN.replace("\n", ",\n").replace("kind,", "kind"),
        "empty: Unnamed: 2",
    ),
    "gzip": (gzip.compress(PLAIN.encode()), ""),
    "UTF-16 without a mark": (PLAIN.encode("utf-16-le"), "read as UTF-16"),
    "separators that end the header alone": (PLAIN.replace("kind", "kind,,"), ""),
    "semicolons in quotes": (
        PLAIN.replace("red", '"r;e,d"').replace(",", ";", 1).replace(",", ";"),
        "by semicolons",
    ),
}
# Cells of a column in which missing ones are met, which count, what the reader says, and the
# refusal on request.
GAPS = {
    "empty": (["", "1.5", "2"], (), "empty (8 cells)", "'more' (8), first on line 2"),
    "usual marks": (
        ["NA", "?", "2", "3", " "],
        (),
        "'?' (5 cells), 'NA' (5 cells), empty (4 cells)",
        "'more' (14)",
    ),
    "errors of a spreadsheet": (
        ["#DIV/0!", "#N/A", "1", "0"],
        (),
        "'#DIV/0!' (6 cells), '#N/A' (6 cells)",
        "(12)",
    ),
    "among truth values": (
        ["True", "n/a", "False"],
        (),
        "'n/a' (8 cells)",
        "'more' (8), first on line 3",
    ),
    "a batch without numbers": (
        ["NA"] * 20 + ["1", "2", "3", "4"],
        (),
        "'NA' (20 cells)",
        "'more' (20)",
    ),
    "given": (
        ["unknown", "-99", "2", "3"],
        ("unknown", "-99"),
        "'-99' (6 cells), 'unknown' (6 cells)",
        "'more' (12)",
    ),
    "given numbers": (
        ["-99", "-99.0", "2", "3"],
        ("-99",),
        "'-99' (",
        "'more' (12), first on line 2",
    ),
    "words": (["", "a", "NA", "None"], (), "empty (6 cells)", "'more' (6), first on line 2"),
}
# What --strict refuses, and how; the number of rows that are read, and the remark on the others.
MENDED = {
    "broken bytes": (
        PLAIN.encode() + b"1,\x81\n",
        "save it again in UTF-8",
        25,
        "1 byte read as Windows-1252, because byte 0x81 on line 26 is not UTF-8",
    ),
    "UTF-8 with a broken byte": (
        labelled("ä", "ö").encode() + b"1,\xff\n",
        "byte 0xFF on line 26 is not UTF-8, but others are",
        25,
        "1 byte read as Windows-1252, because byte 0xFF on line 26 is not UTF-8",
    ),
    "UTF-8 that is cut in a letter": (
        labelled("ä", "ö").encode()[:-2],
        "is damaged (byte 0xC3 on line 25",
        24,
        "1 byte read as Windows-1252",
    ),
    "NUL bytes": (
        PLAIN.encode().replace(b"red", b"r\0d"),
        "holds NUL characters",
        24,
        "ignored, NUL characters: 8",
    ),
    "a NUL byte in a number": (
        PLAIN.replace(str(SIZES[3]), "1\0"),
        "holds NUL characters",
        24,
        "ignored, NUL characters: 1",
    ),
    "a NUL byte in a name": (
        PLAIN.replace("size", "si\0ze"),
        "holds NUL characters",
        24,
        "ignored, NUL characters: 1",
    ),
    "UTF-16 cut in a letter": (
        PLAIN.encode("utf-16")[:-1],
        "some bytes are not UTF-16",
        24,
        "some bytes are not UTF-16",
    ),
    "a comment above the header": (
        "# a, comment\n" + PLAIN,
        "its first line, '# a, comment', is not the header",
        24,
        "left out, above the header: '# a, comment'",
    ),
    "a title above the header": (
        "Results of May\n\n" + PLAIN,
        "its first line, 'Results of May', is not the header",
        24,
        "left out, above the header: 'Results of May'",
    ),
    "a title in a row of a sheet": (
        "Results,,\n,,\n" + csv(more=SIZES),
        "is not the header; that seems to be 'size, more, kind': delete the lines above it",
        24,
        "left out, above the header: 'Results'",
    ),
    "an open quote": (
        PLAIN.replace("red", '"red', 1),
        "a quote is never closed",
        24,
        "quotes that are never closed, ignored: 1 (line 2)",
    ),
    "long rows": (
        PLAIN.replace("red", "red,red,red", 3),
        "Row #2: Expected 2 columns",
        21,
        "left out, rows with too many fields: 3 (lines 2, 5, 8)",
    ),
    "a long row": (
        PLAIN + "1,red,red\n",
        "not a readable CSV file (CSV parse error: Row #26: Expected 2 columns, got 3",
        24,
        "left out, rows with too many fields: 1 (line 26)",
    ),
    "a short row": (
        PLAIN + "1\n",
        "Row #26: Expected 2 columns, got 1",
        25,
        "rows with too few fields, the others are missing: 1 (line 26)",
    ),
    "two columns of one name": (
        csv(more=SIZES).replace("more", "size"),
        "'size' more than once",
        24,
        "names that occur more than once, numbered: 'size.1'",
    ),
    "a class of a single row": (
        PLAIN + "1,grey\n",
        "a single row of the class 'grey'",
        25,
        "",
    ),
}
REFUSED = {
    "nothing": ("", "is empty"),
    "one byte": ("x", "no 'kind'"),
    "only NUL bytes": (b"\0" * 1000, "is not a text file"),
    "random bytes": (RNG.bytes(5000), "is not a text file"),
    "a PNG": (b"\x89PNG\r\n\x1a\n" + RNG.bytes(2000), "is not a text file"),
    "a ZIP archive": (
        b"PK\3\4" + RNG.bytes(2000),
        "is not a readable ZIP archive (File is not a zip file)",
    ),
    "a workbook of old": (
        b"\xd0\xcf\x11\xe0" + RNG.bytes(2000),
        "is not a readable workbook",
    ),
    "Parquet under another name": (
        b"PAR1" + RNG.bytes(2000),
        "is not a readable Parquet file",
    ),
    "JSON": ('[{"size": 1, "kind": "a"}]', "1 row: too few rows"),
    "a web page": ("<html><body>kind</body></html>", "no 'kind'"),
    "lines that end as in no other file": (PLAIN.replace("\n", "\u2028"), "no 'kind'"),
    "thousands of quotes": ('"' * 10_001, "no 'kind'"),
    "one column": ("kind\n" + "\n".join(KINDS), "no feature columns"),
    "one row": ("\n".join(LINES[:2]), "1 row: too few rows"),
    "no rows": (LINES[0], "0 rows"),
    "a damaged archive of gzip": (gzip.compress(PLAIN.encode())[:-20], "not a readable CSV file"),
    "all rows equal": (LINES[0] + "\n" + "\n".join([LINES[1]] * N), "one class, 'red'"),
    "all features equal": (
        "size,kind\n" + "".join(f"1,{kind}\n" for kind in KINDS),
        "no feature columns",
    ),
    "one row a class": (
        pd.DataFrame({"size": SIZES, "kind": range(N)}).to_csv(index=False),
        "single rows",
    ),
    "text that differs in every row": (
        pd.DataFrame({"id": [f"row {i}" for i in INTEGERS], "kind": KINDS}).to_csv(index=False),
        "no feature columns",
    ),
    "labels that are real numbers": (labelled(0.5, 1.5), "holds real numbers, not classes"),
    "labels of 40 digits": (labelled(10**40, 10**40 + 1), "holds real numbers, not classes"),
    "labels that are infinite": (labelled("inf", "1"), "holds real numbers, not classes"),
    "labels that are dates": (
        labelled("2020-01-01", "2020-01-02"),
        "holds dates ('2020-01-01'): give classes",
    ),
    "labels of spaces": (labelled(" ", ""), "has 0 rows with a label in 'kind'"),
    "no label at all": (labelled("", " "), "t.csv has 0 rows with a label in 'kind'"),
    "labels of 100,000 letters": (
        labelled(LONG, LONG + "y"),
        "'kind' holds text of 100001 characters",
    ),
    "a column called like an encoded value": (
        csv(**{"more": ["a", "b"] * 12, "more=a": SIZES}),
        "encoded features have 'more=a' more than once: rename a column",
    ),
    "a name like 10,000 others": (
        ",".join(f"{LONG[:190]}{i}" for i in range(2_000)) + ",kinds\n",
        "no 'kind'",
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_what_strict_refuses_is_read_with_a_remark(case):
    text, refusal, n_rows, remark = MENDED[case]
    write(text)
    assert_clear(read("t.csv", strict=True), refusal)
    table = read("t.csv")
    assert_sound(table)
    assert len(table.y) == n_rows
    assert remark in "\n".join(table.notes)


@pytest.mark.parametrize("case", SOUND)
def test_sound_csv(case):
    write(SOUND[case])
    assert_sound(read("t.csv"))


@pytest.mark.parametrize("case", DIALECTS)
def test_text_is_read_however_it_is_written(case):
    write(PLAIN)
    expected = read("t.csv")
    text, says = DIALECTS[case]
    write(text)
    table = read("t.csv")
    assert_sound(table)
    np.testing.assert_array_equal(table.X, expected.X)
    assert len(set(table.y.tolist())) == 3
    assert says in "".join(table.notes)


def test_windows_1252_is_a_guess_that_is_said():
    write(labelled("ä", "€").encode("cp1252"))
    table = read("t.csv")
    assert sorted(set(table.y.tolist())) == ["ä", "€"]
    assert table.notes == ["read as Windows-1252, because byte 0xE4 on line 2 is not UTF-8"]


@pytest.mark.parametrize(
    ("text", "reading", "features"),
    [
        ("a;b,c;kind\n1;2,3;x\n4;5,5;y\n6;8,1;x\n0;0,1;y\n", Reading(separator=","), None),
        ("a b kind\n1 2 x\n3 5 y\n4 3 x\n8 1 y\n", Reading(separator=" "), ["a", "b"]),
        ("a;kind\n1,234;x\n2,345;y\n3,456;x\n7,890;y\n", Reading(decimal=","), ["a"]),
    ],
)
def test_options_say_how_text_is_written(text, reading, features):
    write(text)
    if features is None:
        with pytest.raises(TableError, match="no 'kind'"):
            read_table("t.csv", "kind", reading=reading)
    else:
        assert read_table("t.csv", "kind", reading=reading).feature_names == features


def test_empty_rows_are_left_out_and_lines_counted_with_them():
    write("size,kind\n,\n" + "\n,\n".join(LINES[1:]) + "\n,\n,\n")
    table = read("t.csv")
    assert table.X.tolist() == [[size] for size in SIZES]
    assert table.notes == ["ignored, empty rows: 26"]
    write("size,kind\n,\n1,a\n,\ninf,b\n")
    assert_clear(read("t.csv", strict=True), "infinite values in 'size' (1), first on line 5")


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400"])
def test_an_infinite_number_is_missing(cell):
    write(PLAIN.replace(str(SIZES[3]), cell, 1))
    table = read("t.csv")
    assert_sound(table)
    assert np.flatnonzero(np.isnan(table.X)).tolist() == [3]
    assert table.notes[0] == "missing: infinite (1 cell)"
    assert_clear(read("t.csv", strict=True), "infinite values in 'size' (1), first on line 5")


@pytest.mark.parametrize("case", GAPS)
def test_missing_cells_of_csv(case):
    cells, marks, says, refuses = GAPS[case]
    write(csv(more=[cells[i % len(cells)] for i in range(N)]))
    marks = marks or None
    found = read("t.csv", missing=marks)
    assert_sound(found)
    assert says in found.notes[0]
    assert np.isnan(found.X).sum() == sum(
        map(int, re.findall(r"\((\d+) cells", found.notes[0]))
    ) * (case != "words")
    assert_clear(
        table_or_line("t.csv", refuse_missing=True, missing=marks), "missing values", refuses
    )


@pytest.mark.parametrize("case", REFUSED)
def test_refused_csv(case):
    text, says = REFUSED[case]
    write(text)
    assert_clear(read("t.csv"), says)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_what_does_not_fit_is_refused(monkeypatch, suffix):
    write(csv(more=KINDS))
    parquet.write_table(arrow(more=KINDS), "t.parquet")
    npz(X=np.zeros((N, 10)))
    monkeypatch.setattr("nearkin._blocks.available_memory", lambda: 100)
    assert_clear(
        read(f"t.{suffix}"), f"t.{suffix} does not fit into memory: take fewer rows or columns"
    )


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_ten_thousand_columns(suffix):
    frame = pd.DataFrame(RNG.standard_normal((N, 2_000))).rename(columns=str).assign(kind=KINDS)
    if suffix == "csv":
        frame.to_csv("t.csv", index=False)
    elif suffix == "parquet":
        frame.to_parquet("t.parquet")
    else:
        npz(X=frame.drop(columns="kind").to_numpy())
    table = table_or_line(f"t.{suffix}")
    assert_sound(table)
    assert table.X.shape == (N, 2_000)


LABELS = {
    "integers": ([-1, 1], [-1, 1]),
    "whole numbers": (["1.0", "1", "2"], [1, 2]),
    "numbers with exponents": (["1e3", "1000", "0"], [0, 1000]),
    "integers beyond 2**53": ([2**60, 2**60 + 1], [2**60, 2**60 + 1]),
    "hexadecimal": (["0x1", "0x2"], ["0x1", "0x2"]),
    "leading zeros and a word": (["007", "7x"], ["007", "7x"]),
    "truth values": (["TRUE", "False"], [False, True]),
    "mixed types": ([1, "two", 3.5, True], ["1", "3.5", "True", "two"]),
    "None, NA and null": (["None", "NA", "null"], ["NA", "None", "null"]),
    "codes with leading zeros": (["01234", "00501"], ["00501", "01234"]),
    "leading zeros differ": (["007", "7", "7x"], ["007", "7", "7x"]),
    "spaces around": (["a", "a ", " b"], ["a", "b"]),
    "spaces around all": ([" a ", " b "], ["a", "b"]),
    "numbers in two ways among words": (["1", "1.0", "x"], ["1", "x"]),
    "line breaks": (["a\nb", "c\r\nd"], ["a\nb", "c\r\nd"]),
    "quotes": (['say "a"', '"""'], ['"""', 'say "a"']),
    "a date and a word": (["2020-01-01", "later"], ["2020-01-01", "later"]),
    "infinity and a word": (["Infinity", "x"], ["Infinity", "x"]),
    "digits of no number": (["²", "³"], ["²", "³"]),
} | {case: ([text, "other"], sorted([text.strip(), "other"])) for case, text in STRANGE.items()}


@pytest.mark.parametrize("case", LABELS)
def test_labels_stay_what_they_are(case):
    labels, classes = LABELS[case]
    write(labelled(*labels))
    table = read("t.csv")
    assert_sound(table)
    assert sorted(set(table.y.tolist())) == classes


@pytest.mark.parametrize("case", STRANGE)
def test_names_stay_what_they_are(case):
    write(named(STRANGE[case]))
    table = read("t.csv")
    assert_sound(table)
    assert table.feature_names == [STRANGE[case]]


@pytest.mark.parametrize("case", STRANGE)
def test_values_stay_what_they_are(case):
    write(csv(more=[STRANGE[case], "other"] * 12))
    table = read("t.csv")
    assert_sound(table)
    assert set(table.feature_names) == {"size", f"more={STRANGE[case].strip()}", "more=other"}


@pytest.mark.parametrize("name", [*STRANGE.values(), "é" * MAX_TEXT])
def test_a_file_may_have_any_name(folder, name):
    path = folder / (name.replace("/", "-")[:60] + ".csv")
    path.write_text("size,kind\n1,a\n")
    line = table_or_line(path.name)
    assert len(line.splitlines()) == 1
    assert "has 1 row" in line


# Parquet


def arrow(**columns):
    return pa.table({"size": SIZES, **columns, "kind": KINDS})


def labelled_arrow(labels):
    return pa.table({"size": SIZES, "kind": labels})


def indexed(index):
    return pa.Table.from_pandas(pd.DataFrame({"size": SIZES, "kind": KINDS}, index=index))


VECTORS = [[i % 5, i // 2] for i in INTEGERS]
DAYS = [datetime.datetime(2020, 1, 1 + i % 3) for i in INTEGERS]
BROKEN_TEXT = pa.StringArray.from_buffers(
    N, pa.py_buffer(np.arange(N + 1, dtype=np.int32)), pa.py_buffer(b"\xff" * N)
)
SOUND_PARQUET = {
    "lists named like another column": arrow(
        **{"more": VECTORS, "more[1]": [i // 2 for i in INTEGERS]}
    ),
    "two columns of one name": pa.Table.from_arrays(
        [SIZES, SIZES, KINDS], ["size", "size", "kind"]
    ),
    "a name of 100,000 letters": arrow(**{LONG: INTEGERS}),
    "labels with nulls": labelled_arrow([None, *KINDS[1:]]),
    "truth values with nulls": labelled_arrow([None, *[True, False] * 11, True]),
    "plain": arrow(),
    "decimals": arrow(more=[decimal.Decimal(i) / 8 for i in INTEGERS]),
    "decimals of 60 digits": arrow(
        more=pa.array([decimal.Decimal(10) ** 60 * i for i in INTEGERS])
    ),
    "decimals as labels": labelled_arrow([decimal.Decimal(1 + i % 2) for i in INTEGERS]),
    "a dictionary of text": arrow(more=pa.array(KINDS).dictionary_encode()),
    "a dictionary of numbers": arrow(more=pa.array([1, 2] * 12).dictionary_encode()),
    "times": arrow(more=pa.array(DAYS)),
    "times in a zone": arrow(more=pa.array(DAYS, pa.timestamp("ns", "UTC"))),
    "times that no calendar has": arrow(more=pa.array([2**62, -(2**62)] * 12, pa.timestamp("us"))),
    "dates": arrow(more=pa.array(DAYS, pa.date32())),
    "times of the day": arrow(more=[datetime.time(i % 3) for i in INTEGERS]),
    "durations": arrow(more=pa.array([1, 2] * 12, pa.duration("s"))),
    "large text": arrow(more=pa.array(KINDS, pa.large_string())),
    "text that is empty or NA": labelled_arrow(["", "NA", "a"] * 8),
    "digits as text": labelled_arrow(["1", "2"] * 12),
    "float16": arrow(more=pa.array(np.arange(N, dtype=np.float16))),
    "float32": arrow(more=pa.array(np.arange(N, dtype=np.float32))),
    "int64 beyond 2**53": arrow(more=[2**53 + 2 * i for i in INTEGERS]),
    "uint64": arrow(more=pa.array([2**64 - 1 - 2**12 * i for i in INTEGERS], pa.uint64())),
    "uint64 as labels": labelled_arrow(pa.array([2**64 - 1, 2**64 - 2] * 12, pa.uint64())),
    "truth values": arrow(more=[True, False] * 12),
    "no nulls, though they are allowed": arrow(more=pa.array([1, 2] * 12)),
    "an index with a name": indexed(pd.RangeIndex(N, name="number")),
    "an index without a name": indexed(pd.Index(range(1, 2 * N, 2))),
    "an index of text": indexed(pd.Index([f"row {i}" for i in INTEGERS])),
    "two indices": indexed(pd.MultiIndex.from_product([range(4), range(6)])),
    "lists": arrow(more=VECTORS),
    "lists of one number": arrow(more=[[i] for i in INTEGERS]),
    "lists that begin with null labels": pa.table({"more": VECTORS, "kind": [None, *KINDS[1:]]}),
    "large lists of float16": arrow(
        more=pa.array([[np.float16(i)] for i in INTEGERS], pa.large_list(pa.float16()))
    ),
    "lists of a fixed size": arrow(more=pa.array(VECTORS, pa.list_(pa.uint8(), 2))),
    "lists beside columns of similar names": arrow(
        **{"more.0": INTEGERS, "more": VECTORS, "more[2]": INTEGERS}
    ),
    "a.b beside a": arrow(**{"a": INTEGERS, "a.b": INTEGERS[::-1]}),
    "a name that is empty": arrow(**{"": INTEGERS}),
} | {case: arrow(**{name: INTEGERS}) for case, name in STRANGE.items()}
GAPS_PARQUET = {
    "nulls": (arrow(more=[None, *INTEGERS[1:]]), "'more' (1), first in row 0"),
    "only nulls": (arrow(more=pa.nulls(N)), "'more' (24)"),
    "truth values with nulls": (
        arrow(more=[*[True, False] * 11, True, None]),
        "'more' (1), first in row 23",
    ),
    "a dictionary with nulls": (
        arrow(more=pa.array(["a", None] * 12).dictionary_encode()),
        "'more' (12)",
    ),
    "integers with nulls, by pandas": (
        pa.Table.from_pandas(
            pd.DataFrame({"size": pd.array([1, None] * 12, dtype="Int64"), "kind": KINDS})
        ),
        "'size' (12)",
    ),
    "NaN": (arrow(more=[*SIZES[1:], np.nan]), "'more' (1), first in row 23"),
    "lists with nulls": (
        arrow(more=[None, [1.0, None], *VECTORS[2:]]),
        "'more[0]' (1), 'more[1]' (2), first in row 0",
    ),
}
REFUSED_PARQUET = {
    "times as labels": (
        labelled_arrow(pa.array(DAYS)),
        "'kind' holds dates ('2020-01-01 00:00:00",
    ),
    "labels that are only nulls": (
        labelled_arrow(pa.nulls(N)),
        "has 0 rows with a label in 'kind'",
    ),
    "labels that are real numbers": (labelled_arrow(SIZES), "holds real numbers, not classes"),
    "lists of lists": (arrow(more=[[[1.0, 2.0]]] * N), "'more' (list<"),
    "lists of text": (arrow(more=[["a", "b"]] * N), "'more' (list<"),
    "empty lists": (
        arrow(more=pa.array([[]] * N, pa.list_(pa.float32()))),
        "'more' holds lists without numbers",
    ),
    "lists that are all null": (
        arrow(more=pa.array([None] * N, pa.list_(pa.float32()))),
        "lists without numbers",
    ),
    "lists of other lengths": (
        arrow(more=[[1.0, 2.0]] * 20 + [[1.0]] * 4),
        "'more' begins with 2 numbers, but holds 1 in row 20",
    ),
    "lists without any rows": (arrow(more=VECTORS).slice(0, 0), "0 rows"),
    "structs": (arrow(more=[{"a": [{"b": 1}]}] * N), "'more' (struct<"),
    "maps": (
        arrow(more=pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64()))),
        "'more' (map<",
    ),
    "bytes": (arrow(more=[b"ab"] * N), "'more' (binary)"),
    "periods": (
        pa.Table.from_pandas(
            pd.DataFrame({"day": pd.period_range("2020", periods=N, freq="D"), "kind": KINDS})
        ),
        "'day' (extension<",
    ),
    "text that is not UTF-8": (arrow(more=BROKEN_TEXT), "not a readable Parquet file"),
    "a time zone of no country": (
        arrow(more=pa.array(DAYS, pa.timestamp("ns", "Mars/Olympus"))),
        "Mars/Olympus",
    ),
    "labels of 100,000 letters": (
        labelled_arrow([LONG, LONG + "y"] * 12),
        "text of 100001 characters",
    ),
    "no rows": (arrow().slice(0, 0), "0 rows"),
    "no columns": (pa.table({}), "a table without columns"),
}


def test_durations_are_days():
    hours = [0, 12, 36, 48] * 6
    parquet.write_table(
        arrow(more=pa.array([3600 * hour for hour in hours], pa.duration("s"))), "t.parquet"
    )
    np.testing.assert_array_equal(read("t.parquet").X[:, -1], np.array(hours) / 24)


@pytest.mark.parametrize("case", SOUND_PARQUET)
def test_sound_parquet(case):
    parquet.write_table(SOUND_PARQUET[case], "t.parquet")
    table = read("t.parquet")
    assert_sound(table)
    parquet.write_table(SOUND_PARQUET[case], "t.parquet", row_group_size=5)
    np.testing.assert_array_equal(read("t.parquet").X, table.X)


@pytest.mark.parametrize("case", GAPS_PARQUET)
def test_missing_cells_of_parquet(case):
    table, says = GAPS_PARQUET[case]
    parquet.write_table(table, "t.parquet", row_group_size=5)
    found = read("t.parquet")
    assert_sound(found)
    assert found.notes[0].startswith("missing: empty (")
    assert_clear(table_or_line("t.parquet", refuse_missing=True), "missing values", says)


@pytest.mark.parametrize("case", REFUSED_PARQUET)
def test_refused_parquet(case):
    table, says = REFUSED_PARQUET[case]
    parquet.write_table(table, "t.parquet")
    assert_clear(read("t.parquet"), says)


def test_infinite_numbers_of_parquet_are_missing():
    parquet.write_table(arrow(more=[*VECTORS[1:], [0.0, np.inf]]), "t.parquet")
    table = read("t.parquet")
    assert np.argwhere(np.isnan(table.X)).tolist() == [[23, table.feature_names.index("more[1]")]]
    refused = "infinite values in 'more[1]' (1), first in row 23"
    assert_clear(read("t.parquet", strict=True), refused)
    parquet.write_table(arrow(more=[np.inf] * N), "t.parquet")
    assert "ignored, empty: more" in read("t.parquet").notes


def test_lists_are_columns_of_their_numbers():
    plain = arrow(**{"more[0]": [i % 5 for i in INTEGERS], "more[1]": [i // 2 for i in INTEGERS]})
    tables = []
    for content in (
        plain,
        arrow(more=VECTORS),
        arrow(more=pa.array(VECTORS, pa.list_(pa.float64(), 2))),
    ):
        parquet.write_table(content, "t.parquet", row_group_size=5)
        tables.append(read("t.parquet"))
        rows, notes, _ = read_rows("t.parquet", tables[0].encoder)
        np.testing.assert_array_equal(rows, tables[0].X)
        assert notes == ["ignored, not learned from: kind"]
    for table in tables[1:]:
        assert table.feature_names == ["size", "more[0]", "more[1]"]
        np.testing.assert_array_equal(table.X, tables[0].X)


def test_a_number_of_a_list_may_be_the_target_or_the_group(folder):
    """Or text to a model, which learned from text of this name."""
    labels = [[i % 2, i % 4, i] for i in INTEGERS]
    parquet.write_table(
        pa.table({"size": SIZES, "label": labels, "kind": KINDS}), "t.parquet", row_group_size=5
    )
    table = read_table("t.parquet", "label[0]", "label[1]")
    assert table.y.tolist() == [i % 2 for i in INTEGERS]
    assert table.groups.tolist() == [i % 4 for i in INTEGERS]
    (folder / "t.csv").write_text(
        "".join(["label[1],size,y\n", *(f"{'abc'[i % 3]},{i % 3},{i % 2}\n" for i in INTEGERS)])
    )
    _, notes, _ = read_rows("t.parquet", read_table("t.csv", "y").encoder)
    assert any("'0', '1', '2' and 1 more in label[1] (24 rows)" in note for note in notes)


def test_groups_without_rows():
    with parquet.ParquetWriter("t.parquet", arrow().schema) as writer:
        writer.write_table(arrow().slice(0, 0))
        writer.write_table(arrow())
        writer.write_table(arrow().slice(0, 0))
    assert_sound(read("t.parquet"))
    with parquet.ParquetWriter("t.parquet", arrow().schema):
        pass
    assert_clear(read("t.parquet"), "0 rows")


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_parquet(plaintext_footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key, master):
            return base64.b64encode(key)

    settings = encryption.EncryptionConfiguration(
        "master", column_keys={"k": ["size"]}, plaintext_footer=plaintext_footer
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    with parquet.ParquetWriter(
        "t.parquet", arrow().schema, encryption_properties=properties
    ) as writer:
        writer.write_table(arrow())
    assert_clear(read("t.parquet"), "crypt")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1",
        b"PAR1\xff\xff\xff\x7fPAR1",
        b"PARE" + b"\0" * 100 + b"PARE",
        PLAIN.encode(),
    ],
)
def test_what_is_only_called_parquet(folder, content):
    (folder / "t.parquet").write_bytes(content)
    assert_clear(read("t.parquet"), "is not a readable Parquet file")


# NPZ


def npz(**arrays):
    with open("t.npz", "wb") as file:
        np.savez(file, **{"X": np.array(SIZES)[:, None], "kind": np.array(KINDS), **arrays})


def member(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(content, compression=zipfile.ZIP_STORED, name="X.npy"):
    """Write an archive with a member of these bytes, and kinds."""
    with zipfile.ZipFile("t.npz", "w", compression) as file:
        file.writestr(name, content)
        file.writestr("kind.npy", member(np.array(KINDS)))


def claiming(
    shape, descr="'<f8'", header="{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
):
    """Return an array of N numbers as `numpy.save` writes it, with another header."""
    text = header.format(descr=descr, shape=shape).ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + np.array(SIZES).tobytes()


TWO = np.array([SIZES, SIZES[::-1]]).T
SPARSE = csr_array(TWO)
PARTS = {
    "data": SPARSE.data,
    "indices": SPARSE.indices,
    "indptr": SPARSE.indptr,
    "shape": np.array(SPARSE.shape),
}
SOUND_NPZ = {
    "plain": {},
    "the other byte order": {"X": TWO.astype(">f8")},
    "integers in the other byte order": {"X": (1000 * TWO).astype(">i8")},
    "column after column": {"X": np.asfortranarray(np.insert(TWO, 1, 7, axis=1))},
    "integers, column after column": {"X": np.asfortranarray((1000 * TWO).astype(int))},
    "uint64": {"X": (1e18 * abs(TWO)).astype(np.uint64)},
    "float16": {"X": TWO.astype(np.float16)},
    "long double": {"X": TWO.astype(np.longdouble)},
    "truth values": {"X": TWO > 0},
    "labels in the other byte order": {"kind": np.array(KINDS, dtype=">U5")},
    "numbers of labels in the other byte order": {"kind": np.arange(N, dtype=">i8") % 3},
    "labels of mixed types became text": {"kind": np.array([1, "two", True] * 8)},
    "names that repeat": {"X": TWO, "feature_names": ["a", "a"]},
    "names": {"X": TWO, "feature_names": np.array([STRANGE["HTML"], STRANGE["emoji"]])},
}
REFUSED_NPZ = {
    "objects": ({"X": TWO.astype(object)}, "not a readable NPZ archive"),
    "objects as labels": ({"kind": np.array([None] * N)}, "not a readable NPZ archive"),
    "objects as names": ({"feature_names": np.array([{}])}, "not a readable NPZ archive"),
    "complex": ({"X": 1j * TWO}, "holds 'complex128'"),
    "a structure": (
        {"X": np.zeros((N, 2), dtype=[("a", float), ("b", int)])},
        "save rows of numbers",
    ),
    "dates": ({"X": np.array(["2020-01-01"] * N, dtype="M8[D]")[:, None]}, "holds 'datetime64[D]'"),
    "no rows": ({"X": np.zeros((0, 5)), "kind": np.zeros(0, int)}, "(0, 5)"),
    "no columns": ({"X": np.zeros((N, 0))}, "no feature columns"),
    "neither": ({"X": np.zeros((0, 0)), "kind": np.zeros(0, int)}, "(0, "),
    "one number": ({"X": np.float64(3)}, "shape ()"),
    "a vector": ({"X": np.zeros(N)}, "shape (24,)"),
    "images": ({"X": np.zeros((N, 2, 2))}, "shape (24, 2, 2)"),
    "64 dimensions": ({"X": np.zeros((1,) * 64)}, "shape (1, 1"),
    "other rows than labels": ({"X": np.zeros((N + 1, 2))}, "each of 25 rows"),
    "NaN": (
        {"X": np.full((N, 2), np.nan)},
        "no feature columns are left: column 0 (empty), column 1 (empty)",
    ),
    "labels of bytes": ({"kind": np.array([b"a", b"b"] * 12)}, "holds '|S1'"),
    "a column of labels": ({"kind": np.array(KINDS)[:, None]}, "shape (24, 1)"),
    "labels of NaN": ({"kind": np.full(N, np.nan)}, "has 0 rows with a label in 'kind'"),
    "labels of 100,000 letters": (
        {"kind": np.array([LONG, "y"] * 12)},
        "text of 100000 characters",
    ),
    "names too few": ({"X": TWO, "feature_names": ["a"]}, "a string for every column"),
}
REFUSED_SPARSE = {
    "more columns than have names": ({"shape": [N, 10**9]}, "(24, 1000000000)"),
    "more rows than there are": ({"shape": [10**12, 2]}, "index pointer size"),
    "columns of more rows than there are": (
        {
            "format": "csc",
            "shape": [10**12, 2],
            "indptr": [0, N, 2 * N],
            "indices": [*INTEGERS, *INTEGERS],
        },
        "does not fit into memory",
    ),
    "fewer than no rows": ({"shape": [-N, 2]}, "negative"),
    "rows of 64 bits without a sign": (
        {"shape": np.array([2**64 - 1, 2], np.uint64)},
        "is not a readable sparse matrix",
    ),
    "half a row": ({"shape": [24.5, 2.0]}, "'shape' holds"),
    "a shape of NaN": ({"shape": [np.nan, 2]}, "'shape' holds"),
    "a shape of words": ({"shape": ["24", "2"]}, "'shape' holds"),
    "a shape of a matrix": ({"shape": [[24, 2]]}, "'shape' holds"),
    "no rows": (
        {"data": [], "indices": SPARSE.indices[:0], "indptr": [0], "shape": [0, 2]},
        "(0, 2)",
    ),
    "indices of real numbers": ({"indices": SPARSE.indices + 0.0}, "'indices' holds 'float64'"),
    "indices below 0": ({"indices": -1 - SPARSE.indices}, "indices must be >= 0"),
    "indices too high": ({"indices": 2 + SPARSE.indices}, "is not a readable sparse matrix"),
    "pointers that fall": ({"indptr": SPARSE.indptr[::-1]}, "is not a readable sparse matrix"),
    "pointers too many": ({"indptr": np.zeros(10**6, int)}, "index pointer size"),
    "a matrix of data": ({"data": SPARSE.data[:, None]}, "'data' holds"),
    "complex": ({"data": 1j * SPARSE.data}, "holds 'complex128'"),
    "infinite": ({"data": np.where(np.arange(2 * N) == 7, np.inf, 1)}, "in row 3"),
    "a sum that is infinite": (
        {"data": [1e308] * 48, "indices": 0 * SPARSE.indices},
        "infinite values",
    ),
    "a format of bytes": ({"format": b"\xff"}, "is not a readable sparse matrix"),
    "a format of numbers": ({"format": [3, 4]}, "save 'csr' or 'csc'"),
    "a format of 100,000 letters": ({"format": LONG}, "is not a readable sparse matrix"),
}
LYING_HEADERS = {
    "10**12 rows": (claiming("(1000000000000, 50)"), "does not fit into memory"),
    "10**9 columns": (claiming("(24, 1000000000)"), "does not fit into memory"),
    "no rows, 10**12 columns": (claiming("(0, 1000000000000)"), "(0, 1000000000000)"),
    "-1 rows": (claiming("(-1, 5)"), "not a readable NPZ archive"),
    "twice the rows": (claiming("(48, 1)"), "not a readable NPZ archive"),
    "an expression": (claiming("(24, 10**9)"), "not a readable NPZ archive"),
    "objects": (claiming("(24, 1)", "'|O'"), "not a readable NPZ archive"),
    "brackets": (claiming("", header="(" * 100), "not a readable NPZ archive"),
    "4 GB": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "not a readable NPZ archive"),
    "nothing": (b"", "not a readable NPZ archive"),
    "text": (b"1,2\n3,4\n", "not a readable NPZ archive"),
}


@pytest.mark.parametrize("case", SOUND_NPZ)
def test_sound_npz(case):
    npz(**SOUND_NPZ[case])
    assert_sound(table_or_line("t.npz"))


def test_missing_cells_of_npz():
    X = np.where(np.arange(2 * N).reshape(N, 2) % 7 == 3, np.nan, TWO)
    npz(X=X)
    found = table_or_line("t.npz")
    np.testing.assert_array_equal(found.X, X)
    assert found.notes[0] == "missing: NaN (7 cells)"
    assert_clear(
        table_or_line("t.npz", refuse_missing=True),
        "'column 0' (3), 'column 1' (4), first in row 1",
    )
    npz(X=np.where(np.isnan(X), -99, X))
    np.testing.assert_array_equal(table_or_line("t.npz", missing=("-99", "x")).X, X)


@pytest.mark.parametrize("case", REFUSED_NPZ)
def test_refused_npz(case):
    arrays, says = REFUSED_NPZ[case]
    npz(**arrays)
    assert_clear(table_or_line("t.npz"), says)


@pytest.mark.parametrize("case", REFUSED_SPARSE)
def test_refused_sparse_npz(case):
    arrays, says = REFUSED_SPARSE[case]
    np.savez("t.npz", **{**PARTS, "kind": np.array(KINDS), **arrays})
    assert_clear(table_or_line("t.npz"), says)


@pytest.mark.parametrize("case", LYING_HEADERS)
def test_a_header_that_lies(case):
    content, says = LYING_HEADERS[case]
    archive(content)
    assert_clear(table_or_line("t.npz"), says)


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_every_compression_of_zip(folder, compression):
    archive(member(TWO), compression)
    assert_sound(table_or_line("t.npz"))
    content = bytearray((folder / "t.npz").read_bytes())
    content[60:90] = bytes(30)
    (folder / "t.npz").write_bytes(content)
    assert_clear(table_or_line("t.npz"))


def test_archives_in_archives(folder):
    npz()
    inner = (folder / "t.npz").read_bytes()
    archive(inner)
    assert_clear(table_or_line("t.npz"), "not a readable NPZ archive")
    archive(inner, name="X.npz")
    assert_clear(table_or_line("t.npz"), "needs an array 'X'")


FLAGS = {"encrypted": (6, 8, 1, "encrypted"), "patched": (6, 8, 0x20, "flag bit 5"),
         "compressed by method 99": (8, 10, 99, "method is not supported"),
         "of version 200": (4, 6, 200, "version 20.0")}  # fmt: skip


@pytest.mark.parametrize("case", FLAGS)
def test_archives_as_no_numpy_writes_them(folder, case):
    local, central, value, says = FLAGS[case]
    npz()
    content = bytearray((folder / "t.npz").read_bytes())
    content[local] = content[content.find(b"PK\1\2") + central] = value
    (folder / "t.npz").write_bytes(content)
    assert_clear(table_or_line("t.npz"), "not a readable NPZ archive of plain arrays", says)


# Files that were damaged on their way


@pytest.fixture(params=["t.parquet", "t.npz"])
def whole(folder, request):
    """A binary file and its bytes."""
    parquet.write_table(arrow(more=INTEGERS), "t.parquet")
    npz()
    return folder / request.param, (folder / request.param).read_bytes()


def test_cut_files(whole):
    path, content = whole
    for damaged in [
        *(content[:end] for end in range(0, len(content), 97)),
        content[1:],
        content[::-1],
        bytes(4096),
    ]:
        path.write_bytes(damaged)
        assert_clear(table_or_line(path.name))


def test_flipped_bytes(whole):
    path, content = whole
    for place in RNG.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= RNG.integers(1, 256)
        path.write_bytes(damaged)
        table = table_or_line(path.name)
        if isinstance(table, str):
            assert_clear(table)
        else:
            assert not np.isinf(table.X).any()
