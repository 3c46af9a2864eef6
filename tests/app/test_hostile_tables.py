"""Tables as they come: each gives one clear line, or a sound comparison by one cheap method."""

import datetime
import decimal
import io
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.decomposition import PCA

from nearkin.app.tables import TableError, read_table
from nearkin.evaluation import Method, compare

N = 24
RNG = np.random.default_rng(0)
NUMBERS = RNG.standard_normal(N).round(3).tolist()
KINDS = [("red", "blue", "green")[i % 3] for i in range(N)]
LONG = "x" * 100_000


def csv(**columns):
    """Return a CSV of these columns, N numbers and N kinds, as text."""
    return pd.DataFrame({"size": NUMBERS, **columns, "kind": KINDS}).to_csv(index=False)


def labelled(labels):
    return pd.DataFrame({"size": NUMBERS, "kind": [labels[i % len(labels)] for i in range(N)]}).to_csv(index=False)


def named(name):
    return pd.DataFrame({name: NUMBERS, "kind": KINDS}).to_csv(index=False)


PLAIN = csv()
LINES = PLAIN.splitlines()
SOUND = {
    "plain": PLAIN,
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR": PLAIN.replace("\n", "\r"),
    "mixed line ends": "".join(line + ("\r\n" if i % 2 else "\n") for i, line in enumerate(LINES)),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "no line end at the end": PLAIN.rstrip("\n"),
    "everything quoted": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in LINES),
    "line breaks inside quotes": labelled(["a\nb", "c\r\nd"]),
    "quotes inside quotes": labelled(['say "a"', '"""']),
    "commas inside quotes": labelled(["a,b", ",,,"]),
    "10,000 columns": pd.DataFrame(RNG.standard_normal((N, 10_000))).assign(kind=KINDS).to_csv(index=False),
    "tiny numbers": csv(more=[i * 1e-320 for i in range(N)]),
    "numbers of all sizes": csv(more=[float(f"1e{i}") for i in range(-12, 12)]),
    "integers of 40 digits": csv(more=[10**40 + 10**38 * i for i in range(N)]),
    "hexadecimal is text": csv(more=[hex(i % 4) for i in range(N)]),
    "thousands separators are text": csv(more=[f"{i % 5},000" for i in range(N)]),
    "duplicated rows": LINES[0] + "\n" + "\n".join([LINES[1], LINES[2]] * 12),
    "True, False": csv(more=[i % 2 == 0 for i in range(N)]),
    "True mixed with 1": csv(more=[True, 1, 0, False] * 6),
    "dates": csv(more=[str(datetime.date(2020, 1, 1 + i % 5)) for i in range(N)]),
    "mixed types": csv(more=[1, "one", 2.5, True] * 6),
    "a word after many numbers": csv(more=[*range(N - 1), "n.a."]),
    "spaces around numbers": csv(more=[f" {i} " for i in range(N)]),
    "a comment sign": labelled(["# one", "two"]),
    "labels that look like numbers": labelled([" 1", "1e3", "0x1"]),
    "labels like 007": labelled(["007", "7x"]),
    "labels that look like dates": labelled(["2020-01-01", "2020-01-02"]),
    "labels that are booleans": labelled([True, False]),
    "labels 0.0 and 1.0": labelled([0.0, 1.0]),
    "labels of -1 and 1": labelled([-1, 1]),
    "labels of mixed types": labelled([1, "two"]),
    "labels with spaces": labelled([" ", "  "]),
    "labels that are formulas": labelled(["=cmd()", "+1+1"]),
    "labels that are HTML": labelled(["<script>", "&amp;"]),
    "labels that command a terminal": labelled(["\x1b[31mred", "\x07bell"]),
    "labels in emoji and Arabic": labelled(["🐘", "فيل"]),
    "labels of 100,000 letters": labelled([LONG, LONG + "y"]),
    "a name that is HTML": named("<script>alert(1)</script>"),
    "a name of 100,000 letters": named(LONG),
    "a name in emoji": named("🐘"),
    "a name with a line break": named("a\nb"),
    "a name like a number": named("3.14"),
    "a feature of 100,000 letters": csv(more=[LONG, LONG + "y"] * 12),
    "integers of 400 digits are text": csv(more=[10**400 + i for i in range(N)]),
    "integers beyond 2**53": csv(more=[2**53 + i for i in range(N)]),
}
REFUSED = {
    "nothing": "",
    "one byte": "x",
    "NUL bytes": PLAIN.encode().replace(b"red", b"r\0d"),
    "only NUL bytes": b"\0" * 1000,
    "UTF-16": PLAIN.encode("utf-16"),
    "Latin-1": labelled(["ä", "ö"]).encode("latin-1"),
    "random bytes": RNG.bytes(5000),
    "a PNG": b"\x89PNG\r\n\x1a\n" + RNG.bytes(2000),
    "a ZIP archive": b"PK\3\4" + RNG.bytes(2000),
    "JSON": '[{"size": 1, "kind": "a"}]',
    "open quote": PLAIN.replace("red", '"red', 1),
    "a stray quote": PLAIN.replace("red", 'r"ed"x,"', 1),
    "ragged rows": PLAIN.replace("red", "red,red,red", 3),
    "short rows": PLAIN.replace(",red", "", 3),
    "one column": "kind\n" + "\n".join(KINDS),
    "one row": "\n".join(LINES[:2]),
    "header only": LINES[0],
    "two columns of one name": PLAIN.replace("size,", "kind,", 1),
    "semicolons": PLAIN.replace(",", ";"),
    "decimal commas": PLAIN.replace(",", ";").replace(".", ","),
    "all rows equal": LINES[0] + "\n" + "\n".join([LINES[1]] * N),
    "all features equal": "size,kind\n" + "".join(f"1,{kind}\n" for kind in KINDS),
    "one row a class": pd.DataFrame({"size": NUMBERS, "kind": range(N)}).to_csv(index=False),
    "labels that are real numbers": labelled([0.5, 1.5]),
    "a label that is missing": labelled(["a", "", "b"]),
    "a label called nan": labelled(["a", "nan"]),
    "a missing number": PLAIN.replace(str(NUMBERS[3]), "", 1),
    "an infinite number": PLAIN.replace(str(NUMBERS[3]), "inf", 1),
    "1e308 and -1e308": csv(more=[1e308, -1e308] * 12),
    "a target that is not there": PLAIN.replace("kind", LONG),
    "ids for words": pd.DataFrame({"id": [f"row {i}" for i in range(N)], "kind": KINDS}).to_csv(index=False),
}


def outcome(path):
    """Return the one line that says what is wrong, or None after a sound comparison."""
    try:
        table = read_table(str(path), "kind")
    except TableError as error:
        return str(error)
    method = Method("PCA", PCA(svd_solver="full"))
    try:
        comparison = compare(table.X, table.y, methods=[method], n_splits=2, n_repeats=1)
    except ValueError as error:
        return f"{table.name}: {str(error).partition(chr(10))[0]}"
    assert np.isfinite(table.X).all()
    assert all(np.isfinite(result.accuracy).all() for result in comparison.results)
    assert table.X.shape == (len(table.y), len(table.feature_names))
    return None


def assert_clear(line):
    assert "\n" not in line
    assert len(line) < 1000
    assert ":" in line  # what is wrong, and the remedy


@pytest.fixture(params=[2**20, 16], ids=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Small files are read by many blocks, too."""
    for module in ("csv_table", "parquet_table"):
        monkeypatch.setattr(f"nearkin.app.{module}.CELLS_PER_BLOCK", request.param)
    monkeypatch.setattr("nearkin.app.csv_table.MIN_ROWS_PER_BLOCK", 5)


@pytest.mark.parametrize("case", SOUND)
def test_sound_csv(tmp_path, blocks, case):
    text = SOUND[case]
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert outcome(tmp_path / "t.csv") is None


@pytest.mark.parametrize("case", REFUSED)
def test_refused_csv(tmp_path, monkeypatch, blocks, case):
    monkeypatch.chdir(tmp_path)
    text = REFUSED[case]
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    line = outcome("t.csv")
    assert line is not None
    assert_clear(line)


def arrow(**columns):
    return pa.table({"size": NUMBERS, **columns, "kind": KINDS})


INTEGERS = list(range(N))
SOUND_PARQUET = {
    "plain": arrow(),
    "decimals": arrow(more=[decimal.Decimal(i) / 8 for i in INTEGERS]),
    "dictionary": arrow(more=pa.array([f"v{i % 3}" for i in INTEGERS]).dictionary_encode()),
    "timestamps": arrow(more=pa.array([datetime.datetime(2020, 1, 1 + i % 3) for i in INTEGERS])),
    "dates and times": arrow(
        more=[datetime.date(2020, 1, 1 + i % 3) for i in INTEGERS], less=[datetime.time(i % 3) for i in INTEGERS]
    ),
    "large strings": arrow(more=pa.array([f"v{i % 3}" for i in INTEGERS], pa.large_string())),
    "float16 and float32": arrow(
        more=pa.array(np.arange(N, dtype=np.float16)), less=pa.array(np.arange(N, dtype=np.float32))
    ),
    "uint64": arrow(more=pa.array([2**64 - 1 - i for i in INTEGERS], pa.uint64())),
    "booleans": arrow(more=[i % 2 == 0 for i in INTEGERS]),
    "a.b beside a": arrow(**{"a": INTEGERS, "a.b": INTEGERS[::-1]}),
    "a name that is empty": arrow(**{"": INTEGERS}),
}
REFUSED_PARQUET = {
    "nulls": arrow(more=[None, *INTEGERS[1:]]),
    "only nulls": arrow(more=pa.nulls(N)),
    "null labels": arrow().set_column(1, "kind", [[None, *KINDS[1:]]]),
    "lists": arrow(more=[[1.0, 2.0]] * N),
    "structs": arrow(more=[{"a": 1}] * N),
    "bytes": arrow(more=[b"ab"] * N),
    "booleans with nulls": arrow(more=[None, *[True, False] * 11, True]),
    "no rows": arrow().slice(0, 0),
    "infinite": arrow(more=[np.inf] * N),
}


@pytest.mark.parametrize("rows", [5, 1000], ids=["many groups of rows", "one group of rows"])
@pytest.mark.parametrize("case", SOUND_PARQUET)
def test_sound_parquet(tmp_path, blocks, case, rows):
    parquet.write_table(SOUND_PARQUET[case], tmp_path / "t.parquet", row_group_size=rows)
    assert outcome(tmp_path / "t.parquet") is None


@pytest.mark.parametrize("case", REFUSED_PARQUET)
def test_refused_parquet(tmp_path, blocks, case):
    parquet.write_table(REFUSED_PARQUET[case], tmp_path / "t.parquet")
    assert_clear(outcome(tmp_path / "t.parquet"))


def whole_parquet():
    buffer = io.BytesIO()
    parquet.write_table(arrow(), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["t.parquet", "t.npz"])
def test_cut_and_foreign_binary_files(tmp_path, name):
    buffer = io.BytesIO()
    np.savez(buffer, X=np.array(NUMBERS)[:, None], y=np.array(KINDS), kind=np.array(KINDS))
    whole = whole_parquet() if name == "t.parquet" else buffer.getvalue()
    path = tmp_path / name
    for damaged in [*(whole[:cut] for cut in range(0, len(whole), 97)), PLAIN.encode(), whole[::-1], b"\0" * 4096]:
        path.write_bytes(damaged)
        assert_clear(outcome(path))


@pytest.mark.parametrize("name", ["t.parquet", "t.npz"])
def test_flipped_bytes_in_binary_files(tmp_path, name):
    buffer = io.BytesIO()
    np.savez(buffer, X=np.array(NUMBERS)[:, None], y=np.array(KINDS), kind=np.array(KINDS))
    whole = whole_parquet() if name == "t.parquet" else buffer.getvalue()
    path, rng = tmp_path / name, np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 80):
        damaged = bytearray(whole)
        damaged[place] ^= rng.integers(1, 256)
        path.write_bytes(damaged)
        line = outcome(path)
        assert line is None or assert_clear(line) is None


def npz(path, **arrays):
    np.savez(path, **{"X": np.array(NUMBERS)[:, None], "kind": np.array(KINDS), **arrays})


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.array([[{}]] * N, dtype=object)},
        {"kind": np.array([None] * N)},
        {"X": np.ones((N, 2), dtype=complex)},
        {"X": np.zeros(N, dtype=[("a", float), ("b", int)])},
        {"X": np.array(["2020-01-01"] * N, dtype="M8[D]")[:, None]},
        {"X": np.zeros((0, 5)), "kind": np.zeros(0, int)},
        {"X": np.zeros((N, 0))},
        {"X": np.zeros(N)},
        {"X": np.zeros((N, 2, 2))},
        {"X": np.zeros((N + 1, 2))},
        {"X": np.full((N, 2), np.nan)},
        {"X": np.float64(3)},
        {"kind": np.array([b"a", b"b"] * (N // 2))},
        {"kind": np.array(KINDS)[:, None]},
        {"kind": np.full(N, np.nan)},
        {"feature_names": np.array(["a", "b"])},
        {"X": np.random.default_rng(0).standard_normal((N, 2)), "feature_names": np.array(["a", "a"])},
    ],
    ids=lambda arrays: ", ".join(f"{key} {value.dtype} {value.shape}" for key, value in arrays.items()),
)
def test_refused_npz(tmp_path, arrays):
    npz(tmp_path / "t.npz", **arrays)
    assert_clear(outcome(tmp_path / "t.npz"))


@pytest.mark.parametrize("claim", ["(1000000000000, 50)", "(-1, 5)", "(24, 1000000000)", "'x'"])
def test_a_header_that_lies(tmp_path, claim):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {claim}, }}".ljust(117) + "\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 64
    npz(tmp_path / "t.npz")
    with zipfile.ZipFile(tmp_path / "t.npz") as archive:
        kind = archive.read("kind.npy")
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", member)
        archive.writestr("kind.npy", kind)
    assert_clear(outcome(tmp_path / "t.npz"))


def test_parquet_holds_what_the_csv_does(tmp_path, blocks):
    frame = pd.DataFrame(
        {
            "id": [f"row {i}" for i in INTEGERS],
            "size": NUMBERS,
            "count": INTEGERS,
            "wet": [i % 2 == 0 for i in INTEGERS],
            "day": [str(datetime.date(2020, 1, 1 + i % 3)) for i in INTEGERS],
            "same": 7,
            "kind": KINDS,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.assign(day=pd.to_datetime(frame["day"]).dt.date).to_parquet(tmp_path / "t.parquet")
    one, other = (read_table(str(tmp_path / name), "kind") for name in ("t.csv", "t.parquet"))
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y, other.y)
    assert one.feature_names == other.feature_names
    assert one.notes == other.notes
    assert list(one.row_names) == list(other.row_names) == frame["id"].tolist()
