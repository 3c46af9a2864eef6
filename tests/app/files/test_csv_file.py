"""Text tables as they come: each is refused by one clear line, or read the same by one block as by many."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest

from nearkin.app.endings import TableError
from nearkin.app.files.readers import Reading
from nearkin.app.tables.reading import read_table
from nearkin.tables.cells import MAX_TEXT

from ..hostile import (
    INTEGERS,
    KINDS,
    LONG,
    PLAIN,
    RNG,
    SIZES,
    STRANGE,
    N,
    assert_clear,
    assert_sound,
    csv,
    read,
    table_or_line,
    write,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def labelled(*labels):
    return pd.DataFrame(
        {"size": SIZES, "kind": [labels[i % len(labels)] for i in range(N)]}
    ).to_csv(index=False)


def named(name):
    return pd.DataFrame({name: SIZES, "kind": KINDS}).to_csv(index=False)


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
    "empty": (
        ["", "1.5", "2"],
        (),
        "filled by the median (kept by NCA tables): more",
        "'more' (8), first on line 2",
    ),
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
    "words": (
        ["", "a", "NA", "None"],
        (),
        "a category of their own: more (6 rows)",
        "'more' (6), first on line 2",
    ),
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
        "rows with too few fields, their last cells missing: 1 (line 26)",
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
        "holds real numbers",
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
    "no label at all": (labelled("", " "), "t.csv: the table has 0 rows with a label in 'kind'"),
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
    (said,) = (note for note in found.notes if says in note)
    numbers = map(int, re.findall(r"\((\d+) (?:cells|rows)", said))
    assert np.isnan(found.X).sum() == sum(numbers) * (case != "words")
    assert_clear(
        table_or_line("t.csv", refuse_missing=True, missing=marks), "missing values", refuses
    )


@pytest.mark.parametrize("case", REFUSED)
def test_refused_csv(case):
    text, says = REFUSED[case]
    write(text)
    assert_clear(read("t.csv"), says)


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
