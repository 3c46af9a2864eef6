"""Rows for a saved model, whatever their format and the order of their columns; and the files that
are written.
"""

import datetime
import io
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy.sparse import csr_array, random_array

from nearkin.app import output
from nearkin.app.endings import TableError
from nearkin.app.files.readers import Reading
from nearkin.app.tables.reading import number_encoder, read_rows, read_table

N = 24
RNG = np.random.default_rng(0)
INTEGERS = np.arange(N)
KINDS = ["red" if i % 2 else "blue" for i in range(N)]
LEARNED = pd.DataFrame(
    {
        "id": [f"row {i}" for i in range(N)],
        "width": RNG.standard_normal(N),
        "colour": [("green", "amber", "violet")[i % 3] for i in range(N)],
        "count": RNG.permutation(N) ** 2,  # does not number the rows
        "same": 7,
        "wet": INTEGERS % 4 == 0,
        "kind": KINDS,
    }
)
FEATURES = ["width", "count", "wet", "colour=amber", "colour=green", "colour=violet"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Small files are read by many blocks, too."""
    if request.param == "many blocks":
        small = {
            "files.csv_file.BLOCK_BYTES": 300,
            "files.csv_file.BYTES_PER_COLUMN": 1,
            "files.parquet_file.CELLS_PER_BATCH": 16,
            "files.parquet_file.MIN_ROWS_PER_BATCH": 1,
        }
        for name, value in small.items():
            monkeypatch.setattr(f"nearkin.app.{name}", value)


def write(frame, suffix):
    """Write a table and return the name of its file."""
    if suffix == "csv":
        frame.to_csv("t.csv", index=False)
    elif suffix == "parquet":
        frame.to_parquet("t.parquet", row_group_size=7)
    else:
        text = {"feature_names": np.array(frame.columns, dtype=str)}
        np.savez("t.npz", X=frame.to_numpy(np.float64), y=np.array(KINDS[: len(frame)]), **text)
    return f"t.{suffix}"


@pytest.fixture
def learned():
    """The table that was learned from."""
    return read_table(write(LEARNED, "csv"), "kind")


# Parquet holds what the CSV does


def test_parquet_holds_what_the_csv_does(blocks, learned):
    table = read_table(write(LEARNED, "parquet"), "kind")
    np.testing.assert_array_equal(table.X, learned.X)
    np.testing.assert_array_equal(table.y, learned.y)
    assert table.feature_names == learned.feature_names == FEATURES
    assert table.notes == learned.notes
    assert list(table.row_names) == list(learned.row_names) == LEARNED["id"].tolist()


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.uint8(),
            pa.uint16(),
            pa.uint32(),
            pa.uint64(),
        ),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(30, 2), pa.decimal256(60, 2)),
        *(
            pa.string(),
            pa.large_string(),
            pa.dictionary(pa.int8(), pa.int64()),
            pa.dictionary(pa.int8(), pa.string()),
        ),
    ],
    ids=str,
)
def test_every_plain_type_is_read_as_from_csv(blocks, kind):
    """Words for types of text, numbers for the others."""
    is_text = "string" in str(kind)
    values = [f"v{i % 3}" for i in range(N)] if is_text else (INTEGERS // 2).tolist()
    column = (
        pa.array(values).dictionary_encode()
        if "dictionary" in str(kind)
        else pa.array(values).cast(kind)
    )
    parquet.write_table(pa.table({"more": column, "kind": KINDS}), "t.parquet")
    pd.DataFrame({"more": values, "kind": KINDS}).to_csv("t.csv", index=False)
    table, same = read_table("t.parquet", "kind"), read_table("t.csv", "kind")
    np.testing.assert_array_equal(table.X, same.X)
    assert table.feature_names == same.feature_names
    assert table.notes == same.notes


def test_dates_are_read_as_from_csv(blocks):
    days = [datetime.date(2020, 1, 1 + i % 3) for i in range(N)]
    frame = pd.DataFrame({"size": INTEGERS, "day": days, "kind": KINDS})
    tables = [read_table(write(frame, suffix), "kind") for suffix in ("csv", "parquet")]
    assert tables[0].feature_names == tables[1].feature_names
    np.testing.assert_array_equal(tables[0].X, tables[1].X)


@pytest.mark.parametrize(
    "labels", [KINDS, (INTEGERS % 3).tolist(), (INTEGERS % 2 == 0).tolist(), [1.0, 2.0] * 12]
)
def test_labels_and_groups_are_read_as_from_csv(blocks, labels):
    frame = pd.DataFrame(
        {"size": INTEGERS % 7, "place": [f"place {i % 5}" for i in range(N)], "kind": labels}
    )
    tables = [read_table(write(frame, suffix), "kind", "place") for suffix in ("csv", "parquet")]
    for table in tables:
        assert table.y.dtype == tables[0].y.dtype
        assert table.y.tolist() == labels
        assert table.groups.tolist() == frame["place"].tolist()


# Standard input


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_standard_input_is_any_format(folder, monkeypatch, suffix):
    frame = LEARNED[["width", "count"]] if suffix == "npz" else LEARNED
    target = "y" if suffix == "npz" else "kind"
    file = folder / write(frame, suffix)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes())))
    piped, table = read_table("-", target), read_table(file.name, target)
    np.testing.assert_array_equal(piped.X, table.X)
    np.testing.assert_array_equal(piped.y, table.y)
    assert piped.name == "stdin"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes())))
    np.testing.assert_array_equal(read_rows("-", table.encoder)[0], table.X)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "standard input is empty"),
        (b"size,kinds\n1,a\n", "standard input has no 'kind'"),
        (b"PAR1" * 10, "standard input is not a readable Parquet file"),
        (b"PK\3\4" * 10, "standard input is not a readable ZIP archive"),
        (bytes(4), "standard input is not a text file"),
    ],
)
def test_errors_name_standard_input(monkeypatch, content, says):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with pytest.raises(TableError) as caught:
        read_table("-", "kind")
    assert str(caught.value).startswith(says)


@contextmanager
def full_disk():
    """Let no file grow beyond 1,000 bytes; not for a whole test, for pytest's own report may be
    such a file.
    """
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_under_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(bytes(5000))))
    says = (
        r"^standard input: it cannot be copied to .* \(File too large\): free some space, or "
        r"set TMPDIR to another folder"
    )
    with full_disk(), pytest.raises(TableError, match=says):
        read_table("-", "kind")


# Columns are found by their names


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_are_encoded_as_they_were_learned(blocks, learned, suffix):
    X, notes, _ = read_rows(write(LEARNED, suffix), learned.encoder)
    np.testing.assert_array_equal(X, learned.X)
    assert notes == ["ignored, not learned from: id, same, kind"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_order_of_columns_does_not_matter(blocks, learned, suffix):
    turned = LEARNED[["colour", "wet", "count", "width"]]
    X, notes, _ = read_rows(write(turned, suffix), learned.encoder)
    np.testing.assert_array_equal(X, learned.X)
    assert notes == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_wrong_with_ignored_columns_does_not_matter(blocks, learned, suffix):
    spoilt = LEARNED.assign(id=None, same=np.where(INTEGERS == 20, np.inf, np.nan), more="a\a")
    X, notes, _ = read_rows(write(spoilt, suffix), learned.encoder)
    np.testing.assert_array_equal(X, learned.X)
    assert notes == ["ignored, not learned from: id, same, kind, more"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_single_row_is_enough(blocks, learned, suffix):
    X, _, _ = read_rows(write(LEARNED[5:6], suffix), learned.encoder)
    np.testing.assert_array_equal(X, learned.X[5:6])


def refused(frame, encoder, suffix):
    with pytest.raises(TableError) as caught:
        read_rows(write(frame, suffix), encoder)
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_that_lack_are_missing_unless_they_are_more_than_half(learned, suffix):
    line = refused(LEARNED[["id", "count"]], learned.encoder, suffix)
    assert line == (
        f"t.{suffix}: the table lacks 'width', 'wet', 'colour', which the training rows had: add or "
        "rename columns."
    )
    frame = LEARNED.rename(columns={"width": "Width "})
    X, notes, _ = read_rows(write(frame, suffix), learned.encoder)
    assert np.isnan(X[:, 0]).all()
    np.testing.assert_array_equal(X[:, 1:], learned.X[:, 1:])
    assert notes[-2] == (
        "the table lacks 'width' ('width' may be 'Width '), which the training rows had, taken as "
        "missing in every row: expect worse predictions"
    )
    with pytest.raises(TableError, match="the table lacks 'width'"):
        read_rows("t." + suffix, learned.encoder, reading=Reading(strict=True))
    effects = np.array([9, 1, 1, 1])  # how much each column matters
    with pytest.raises(TableError, match="the table lacks 'width'"):
        read_rows("t." + suffix, learned.encoder, effects=effects)
    line = refused(LEARNED[["id"]], learned.encoder, suffix)
    assert line.startswith(
        f"t.{suffix} lacks 'width', 'count', 'wet', 'colour' (its columns are 'id'"
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_many_missing_columns_are_cut(suffix):
    frame = pd.DataFrame({"a": [1.0]})
    line = refused(
        frame, number_encoder([f"a long name of a column {j}" for j in range(10_000)]), suffix
    )
    assert "and 9,995 more" in line
    assert len(line) < 400


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_gaps_in_new_rows_are_said(blocks, learned, suffix):
    X, notes, _ = read_rows(
        write(LEARNED.assign(width=LEARNED["width"].where(INTEGERS != 6)), suffix), learned.encoder
    )
    assert np.argwhere(np.isnan(X)).tolist() == [[6, learned.feature_names.index("width")]]
    assert notes[-1] == "missing values, filled by the median: width (1 row)"
    assert not any("empty" in note for note in notes)


def test_new_rows_have_the_marks_of_the_table_that_was_learned_from(blocks):
    words = LEARNED.assign(
        width=LEARNED["width"].where(INTEGERS % 5 != 1, -99), colour=["lost", "red", "blue"] * 8
    )
    learned = read_table(write(words, "csv"), "kind", reading=Reading(missing=("-99", "lost")))
    X, notes, _ = read_rows(write(words, "csv"), learned.encoder)
    np.testing.assert_array_equal(X, learned.X)
    assert np.isnan(X).sum() == 5
    assert "missing: '-99' (5 cells)" in notes


def test_codes_are_numbers_where_numbers_were_learned(learned):
    codes = [f"{value:03}" for value in LEARNED["count"]]
    X, _, _ = read_rows(write(LEARNED.assign(count=codes), "csv"), learned.encoder)
    np.testing.assert_array_equal(X, learned.X)


def test_the_decimal_mark_is_that_of_styled_cells_and_of_the_table_that_was_learned_from(folder):
    """76.571 is a number of thousands beside 4,24 €, and in new rows of a table with decimal
    commas.
    """
    sales = [f"{i + 10}.571" for i in range(N)]
    prices = [f"{i % 7},{i + 10} €" for i in range(N)]
    table = pd.DataFrame({"sales": sales, "price": prices, "kind": ["a", "b"] * (N // 2)})
    table.to_csv("t.csv", index=False, sep=";")
    learned = read_table("t.csv", "kind")
    at = learned.feature_names.index("sales")
    np.testing.assert_array_equal(learned.X[:, at], np.arange(N) * 1000 + 10_571)
    table.assign(price="").to_csv("new.csv", index=False, sep=";")
    np.testing.assert_array_equal(read_rows("new.csv", learned.encoder)[0][:, at], learned.X[:, at])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_rows(learned, suffix):
    assert f"t.{suffix} has 0 rows" in refused(LEARNED[:0], learned.encoder, suffix)


# Values


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_values_that_were_never_seen_are_none_of_the_known_and_said(blocks, learned, suffix):
    colours = LEARNED["colour"].where(INTEGERS % 6 != 0, "pink").where(INTEGERS != 23, "Amber")
    X, notes, _ = read_rows(write(LEARNED.assign(colour=colours), suffix), learned.encoder)
    expected = learned.X.copy()
    expected[(INTEGERS % 6 == 0) | (INTEGERS == 23), 3:] = 0
    np.testing.assert_array_equal(X, expected)
    assert (
        notes[-1]
        == "values not seen in training: 'Amber' (learned as 'amber'), 'pink' in colour (5 rows)"
    )


def test_many_values_that_were_never_seen_are_cut(learned):
    _, notes, _ = read_rows(write(LEARNED.assign(colour=LEARNED["id"]), "csv"), learned.encoder)
    assert notes[-2].endswith("'row 0', 'row 1', 'row 10' and 21 more in colour (24 rows)")
    assert notes[-1].startswith("every colour is new: expect worse")


@pytest.mark.parametrize(
    ("suffix", "place"), [("csv", "on line 14"), ("parquet", "in row 12 (counted from 0)")]
)
def test_text_where_numbers_were_learned_is_missing(blocks, learned, suffix, place):
    words = [f"{value}" if i != 12 else "wide" for i, value in enumerate(LEARNED["width"])]
    path = write(LEARNED.assign(width=words), suffix)
    X, notes, _ = read_rows(path, learned.encoder)
    assert np.argwhere(np.isnan(X)).tolist() == [[12, learned.feature_names.index("width")]]
    assert f"width: 1 cell is not a number, taken as missing: 'wide' {place}" in notes
    with pytest.raises(TableError) as caught:
        read_rows(path, learned.encoder, reading=Reading(strict=True))
    assert str(caught.value) == (
        f"t.{suffix}: 'width' holds 'wide' {place}, but numbers were expected there: give numbers."
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_where_text_was_learned_are_text(blocks, suffix):
    table = LEARNED.assign(colour=[("1", "2", "no")[i % 3] for i in range(N)])
    learned = read_table(write(table, "csv"), "kind")
    numbers = LEARNED.assign(colour=1 + INTEGERS % 2)
    X, notes, _ = read_rows(write(numbers, suffix), learned.encoder)
    np.testing.assert_array_equal(
        X[:, 3:], np.column_stack([INTEGERS % 2 == 0, INTEGERS % 2 == 1, 0 * INTEGERS])
    )
    assert len(notes) == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_stand_for_truth_values(blocks, learned, suffix):
    X, _, _ = read_rows(
        write(LEARNED.assign(wet=LEARNED["wet"].astype(int)), suffix), learned.encoder
    )
    np.testing.assert_array_equal(X, learned.X)


# NPZ and bundled sets


def test_npz_by_the_names_of_its_columns():
    frame = LEARNED[["width", "count"]]
    learned = read_table(write(frame, "npz"))
    X, notes, _ = read_rows(
        write(frame.assign(more=1)[["more", "count", "width"]], "npz"), learned.encoder
    )
    np.testing.assert_array_equal(X, learned.X)
    assert notes == ["ignored, not learned from: more"]
    np.savez("t.npz", X=frame.to_numpy(float))
    with pytest.raises(
        TableError, match=r"^t\.npz: the table lacks 'width', 'count', which the training rows had"
    ):
        read_rows("t.npz", learned.encoder)


def test_a_csv_for_a_model_of_an_npz():
    frame = LEARNED[["width", "count"]]
    learned = read_table(write(frame, "npz"))
    np.testing.assert_array_equal(read_rows(write(frame, "csv"), learned.encoder)[0], learned.X)


def test_an_npz_has_no_text(learned):
    np.savez("t.npz", X=np.ones((3, 4)), feature_names=["width", "count", "wet", "colour"])
    _, notes, _ = read_rows("t.npz", learned.encoder)
    assert notes[:-1] == ["values not seen in training: '1' in colour (3 rows)"]


@pytest.mark.parametrize("names", [None, ["p", "q", "r"]])
def test_constant_columns_of_an_npz_are_not_needed(names):
    given = {} if names is None else {"feature_names": names}
    full = np.insert(RNG.standard_normal((N, 2)), 1, 3, axis=1)
    np.savez("t.npz", X=full, y=KINDS, **given)
    learned = read_table("t.npz")
    X, notes, _ = read_rows("t.npz", learned.encoder)
    np.testing.assert_array_equal(X, full[:, [0, 2]])
    assert notes == ["ignored, not learned from: " + ("column 1" if names is None else "q")]


def test_sparse_npz_stays_sparse():
    S = random_array((N, 5), density=0.5, format="csr", random_state=np.random.default_rng(0))
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez("t.npz", **parts, y=KINDS, feature_names=list("abcde"))
    learned = read_table("t.npz")
    X, notes, _ = read_rows("t.npz", learned.encoder)
    assert isinstance(X, csr_array)
    np.testing.assert_array_equal(X.toarray(), S.toarray())
    assert notes == []
    X, notes, _ = read_rows("t.npz", number_encoder(["d", "a"]))
    np.testing.assert_array_equal(X.toarray(), S.toarray()[:, [3, 0]])
    assert notes == ["ignored, not learned from: b, c, e"]


def test_an_npz_without_rows():
    np.savez("t.npz", X=np.zeros((0, 1)))
    with pytest.raises(TableError, match=r"^t\.npz has the shape \(0, 1\): give rows"):
        read_rows("t.npz", number_encoder(["column 0"]))


def test_bundled_sets():
    learned = read_table("digits")
    X, notes, _ = read_rows("digits", learned.encoder)
    np.testing.assert_array_equal(X, learned.X)
    assert notes == ["ignored, not learned from: pixel_0_0, pixel_4_0, pixel_4_7"]
    with pytest.raises(TableError, match="iris: the table lacks 'pixel_0_1'"):
        read_rows("iris", learned.encoder)


# What is written is written whole


COLUMNS = {
    "label": np.array(["a", 'b,\n"c"', "=cmd()", "🐘"] * 50),
    "probability": np.arange(200) / 7,
    "nearest_1": np.arange(200),
    "is known": np.arange(200) % 2 == 0,
}
SUFFIXES = [".csv", ".parquet", ".npz"]


def write_output(path):
    with output.atomic_write(path) as part:
        output.write_columns(COLUMNS, path.suffix.lower(), part)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_back_what_was_written(folder, suffix):
    path = folder / f"OUT{suffix.upper()}"
    write_output(path)
    if suffix == ".npz":
        with np.load(path) as archive:
            found = dict(archive)
    else:
        found = csv.read_csv(path).to_pandas() if suffix == ".csv" else pd.read_parquet(path)
    assert list(found) == list(COLUMNS)
    for name, column in COLUMNS.items():
        assert found[name].tolist() == column.tolist()
    assert sorted(folder.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("older", [None, b"precious"])
def test_a_full_disk_leaves_nothing_and_keeps_what_was_there(folder, suffix, older):
    path = folder / f"out{suffix}"
    if older is not None:
        path.write_bytes(older)
    with full_disk(), pytest.raises(OSError, match="File too large"):
        write_output(path)
    assert [file.read_bytes() for file in folder.iterdir()] == ([] if older is None else [older])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interrupt_leaves_nothing_and_keeps_what_was_there(folder, monkeypatch, suffix):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupted)
    monkeypatch.setattr(np, "savez", interrupted)
    monkeypatch.setattr(parquet, "write_table", interrupted)
    path = folder / f"out{suffix}"
    path.write_bytes(b"precious")
    with pytest.raises(KeyboardInterrupt):
        write_output(path)
    assert [file.read_bytes() for file in folder.iterdir()] == [b"precious"]


def test_standard_output_is_csv(capsys):
    output.print_columns({"a": np.arange(2), "b": np.array(["x", "y,z"])})
    assert capsys.readouterr().out == 'a,b\n0,x\n1,"y,z"\n'


def test_numbers_with_units_are_read_alike_whatever_the_format(blocks):
    """A table that says 72.1 kg, 3h 12min and 20-29; new rows by another separator, and in Parquet."""
    sizes = RNG.uniform(40, 100, N).round(1)
    shop = pd.DataFrame(
        {
            "weight": [f"{size} kg" for size in sizes],
            "length": [f"{size // 20:.0f}h {size % 20:.0f}min" for size in sizes],
            "age": [f"{20 + 10 * (i % 4)}-{29 + 10 * (i % 4)}" for i in range(N)],
            "level": ["<0.1" if i % 3 == 0 else f"{i / 10}*" for i in range(N)],
            "price": [
                str(size) if i % 2 else str(size).replace(".", ",") for i, size in enumerate(sizes)
            ],
            "kind": KINDS,
        }
    )
    shop.to_csv("shop.csv", index=False, sep=";")
    table = read_table("shop.csv", "kind")
    assert table.feature_names == ["weight", "length", "age", "level", "price"]
    assert any("read as durations, in days: length" in note for note in table.notes)
    np.testing.assert_allclose(table.X[:, [0, 4]], np.column_stack([sizes, sizes]))
    for name, write_rows in {
        "new.csv": pd.DataFrame.to_csv,
        "new.parquet": pd.DataFrame.to_parquet,
    }.items():
        write_rows(shop.drop(columns="kind"), name, index=False)
        np.testing.assert_array_equal(read_rows(name, table.encoder)[0], table.X)
    odd = shop.assign(weight=["heavy", *shop["weight"][1:]])
    odd.to_csv("new.csv", index=False)
    with pytest.raises(
        TableError, match=r"'weight' holds 'heavy' on line 2, but numbers in 'kg' were expected"
    ):
        read_rows("new.csv", table.encoder, reading=Reading(strict=True))


def test_a_target_may_have_a_unit():
    prices = [f"{price:,} sqft" for price in range(1000, 1000 + N)]
    LEARNED.assign(price=prices).to_csv("houses.csv", index=False)
    table = read_table("houses.csv", "price", task="regression")
    assert table.y.tolist() == list(range(1000, 1000 + N))
    assert "price: read as numbers ('1,000 sqft')" in table.notes


@pytest.mark.parametrize("length", [5, 6, 7])
@pytest.mark.parametrize("suffix", ["parquet", "npz", "csv"])
def test_vectors_of_another_length_are_those_of_another_model(length, suffix):
    """A coordinate that was constant, and left out, counts; columns with names may be more."""
    X = RNG.standard_normal((N, 7)) * (np.arange(7) != 5)

    def written(name, width):
        path = f"{name}.{suffix}"
        if suffix == "npz":
            np.savez(path, X=X[:, :width], y=np.array(KINDS))
            return path
        frame = pd.DataFrame({"v": list(X[:, :width]), "kind": KINDS})
        if suffix == "parquet":
            frame.assign(**{"column 9": 1.0} if name == "new" else {}).to_parquet(path)
        else:
            cells = pd.DataFrame(X[:, :width]).add_prefix("v[").add_suffix("]")
            cells.assign(kind=KINDS).to_csv(path, index=False)
        return path

    learned = read_table(written("old", 6), "y" if suffix == "npz" else "kind")
    path = written("new", length)
    if length == 6:
        assert read_rows(path, learned.encoder)[0].shape == (N, 5)
        return
    with pytest.raises(
        TableError, match=rf"{length} dimensions, but 6 are needed|lacks"
    ) as refused:
        read_rows(path, learned.encoder)
    assert "lacks" not in str(refused.value) or suffix == "npz"


# Files that are written otherwise than the one that was learned from

MEASURED = pd.DataFrame(
    {
        "dose": RNG.uniform(0, 5, 40).round(3),
        "width": RNG.uniform(100, 200, 40).round(1),
        "price": [f"€{price:,.2f}" for price in RNG.uniform(500, 5000, 40)],
        "visits": [f"{visits:,} times" for visits in RNG.integers(1001, 9999, 40)],
        "steps": [f"{steps:,}" for steps in RNG.integers(1001, 99_999, 40)],
        "kind": ["red", "blue"] * 20,
    }
)
TO_COMMAS = str.maketrans(".,", ",.")


def with_commas(frame):
    """Return a frame with decimal commas, and points between thousands."""
    return frame.astype(str).map(lambda cell: cell.translate(TO_COMMAS))


@pytest.mark.parametrize("sep", [";", "\t", ","])
@pytest.mark.parametrize("is_learned", [False, True])
def test_decimal_commas_on_one_side_alone_change_no_number(sep, is_learned):
    with_commas(MEASURED).to_csv("commas.csv", index=False, sep=";" if is_learned else sep)
    MEASURED.to_csv("points.csv", index=False, sep=sep if is_learned else ",")
    names = ["points.csv", "commas.csv"][:: -1 if is_learned else 1]
    learned = read_table(names[0], "kind")
    assert set(learned.feature_names) == {*MEASURED} - {"kind"}
    X, notes, _ = read_rows(names[1], learned.encoder)
    np.testing.assert_allclose(X, learned.X)
    assert not any("missing" in note for note in notes)
    said = [note for note in notes if "decimal" in note]
    if sep == "," and not is_learned:
        assert said == ["read with decimal commas (--decimal chooses another)"]
        swapped = MEASURED.assign(
            width=[f"{width:.1f}".replace(".", ",") for width in MEASURED.width]
        )
        swapped.to_csv("mixed.csv", index=False)
        X, notes, _ = read_rows("mixed.csv", learned.encoder)  # points show the file's mark
        np.testing.assert_allclose(X, learned.X)
        assert "read with decimal commas, unlike in training: width" in notes


@pytest.mark.parametrize("commas", [False, True])
def test_a_word_in_a_column_of_plain_numbers_does_not_change_the_mark(commas):
    frame = MEASURED[["dose", "width", "kind"]]
    thousands = frame.assign(width=[f"{1000 + at:,}" for at in range(40)])
    odd = thousands.astype(object)
    odd.loc[3, ["dose", "width"]] = "lost"
    for name, table in {"old.csv": frame, "new.csv": odd}.items():
        (with_commas(table) if commas else table).to_csv(name, index=False, sep=";")
    learned = read_table("old.csv", "kind")
    X, _, _ = read_rows("new.csv", learned.encoder)
    expected = np.column_stack([frame["dose"], 1000.0 + np.arange(40)])
    expected[3] = np.nan
    np.testing.assert_allclose(X, expected)


def test_every_new_record_with_all_its_fields_is_a_row():
    table = pd.DataFrame(
        {"a": ["one", "two"] * 10, "b": np.arange(20.0), "kind": ["x", "y", "y", "x"] * 5}
    )
    encoder = read_table(write(table, "csv"), "kind").encoder
    new = "a,b\n" + "one,1\ntwo,2\n" * 4
    for last in ("a long text about all that is not known,", "Total,12", ",12", "two,", ","):
        with open("t.csv", "w") as file:
            file.write(f"{new}{last}\n")
        X, notes, _ = read_rows("t.csv", encoder)
        assert len(X) == 9, last
        assert not any("left out" in note for note in notes)
    for below in ("Source: the registry of all that is known", "Total"):
        with open("t.csv", "w") as file:
            file.write(f"{new}\n{below}\n")
        X, notes, _ = read_rows("t.csv", encoder)
        assert len(X) == 8
        assert f"left out, below the rows: {below!r}" in notes
    with open("t.csv", "w") as file:
        file.write(f"{new}two\n")  # a row that was cut off
    X, notes, _ = read_rows("t.csv", encoder)
    assert len(X) == 9
    assert any(note.startswith("rows with too few fields") for note in notes)


def test_a_file_without_any_of_the_columns_shows_its_own():
    encoder = read_table(write(LEARNED, "csv"), "kind").encoder
    LEARNED.to_csv("t.csv", index=False, header=False)
    with pytest.raises(TableError, match=r"\(its columns are 'row 0', .*\), which the model"):
        read_rows("t.csv", encoder)
    line = refused(LEARNED.rename(columns=str.upper), encoder, "csv")
    assert "('width' may be 'WIDTH' here)" in line
