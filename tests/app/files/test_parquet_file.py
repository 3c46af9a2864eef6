"""Parquet files as they come: each is refused by one clear line, or read the same by one block as by many."""

import base64
import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkin.app.tables.reading import read_rows, read_table

from ..hostile import (
    INTEGERS,
    KINDS,
    LONG,
    PLAIN,
    SIZES,
    STRANGE,
    N,
    arrow,
    assert_clear,
    assert_sound,
    read,
    table_or_line,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    "lists of text": arrow(more=[["a", "b"], None] * (N // 2)),
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
    assert any(note.startswith(("missing values, ", "ignored, empty: ")) for note in found.notes)
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
