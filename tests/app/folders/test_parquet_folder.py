"""A folder of Parquet files: what its metadata tell, its rows by blocks, and what is refused."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkin.app.endings import TableError
from nearkin.app.files.readers import find_name
from nearkin.app.folders.compare import classes_of
from nearkin.app.folders.parquet_folder import (
    Block,
    ParquetFile,
    Part,
    count_classes,
    features_of,
    labels_of,
    number_batches,
    open_folder,
)

RNG = np.random.default_rng(0)


def frame(n, start=0):
    """Return rows of numbers of several types, and a target."""
    number = np.arange(start, start + n)
    return pd.DataFrame(
        {
            "single": RNG.standard_normal(n).astype(np.float32),
            "double": RNG.standard_normal(n),
            "whole": number,
            "truth": number % 3 == 0,
            "kind": np.array(["b", "c", "a"])[number % 3],
        }
    )


@pytest.fixture
def folder(tmp_path):
    """A folder of three files, one of them empty, in groups of 7 rows; and all rows."""
    parts = [frame(20), frame(0), frame(30, 20)]
    for number, part in enumerate(parts):
        schema = pa.Schema.from_pandas(parts[0], preserve_index=False)
        table = pa.Table.from_pandas(part, schema, preserve_index=False)
        parquet.write_table(table, tmp_path / f"part{number}.parquet", row_group_size=7)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").touch()
    return tmp_path, pd.concat(parts, ignore_index=True)


def blocks_of(path, most):
    opened = open_folder(path)
    return opened.cut(most)


def test_the_metadata_tell_names_and_sizes(folder):
    path, _ = folder
    opened = open_folder(path)
    assert (opened.n_rows, opened.text) == (50, ["kind"])
    assert opened.group_sizes == [[7, 7, 6], [0], [7, 7, 7, 7, 2]]
    assert opened.features("kind") == (["single", "double", "whole", "truth"], [])
    assert opened.name == path.name


@pytest.mark.parametrize("most", [1, 5, 7, 16, 49, 50, 1000])
def test_blocks_hold_every_row_once_whatever_their_size(folder, most):
    path, rows = folder
    blocks = blocks_of(path, most)
    assert [block.start for block in blocks] == np.cumsum([0, *map(len, blocks)])[:-1].tolist()
    assert max(map(len, blocks)) <= most
    assert len(blocks) <= 2 * 50 / most + 1
    names = ["double", "truth", "single", "whole"]
    X = np.vstack([features_of(block, names) for block in blocks])
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, rows[names].to_numpy(np.float32))
    y = np.concatenate([labels_of(block, "kind", np.array(["a", "b", "c"])) for block in blocks])
    np.testing.assert_array_equal(np.array(["a", "b", "c"])[y], rows["kind"])


def test_blocks_end_with_row_groups_that_are_not_larger(folder):
    ends = [block.parts[-1].stop for block in blocks_of(folder[0], 14)]
    assert ends == [14, 7, 21, 30]


def test_a_folder_is_cut_into_few_blocks_however_large(folder):
    opened = open_folder(folder[0])
    assert len(opened.blocks(10**9, 20)) <= 20  # as if a row had 4 GB
    assert len(opened.blocks(1, 300)) >= 8


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (pa.array([3, -1, 3, 7] * 20), [-1, 3, 7]),
        (pa.array([1.0, 2.0] * 40), [1, 2]),
        (pa.array([True, False] * 40), [False, True]),
        (pa.array(["x", "é"] * 40).dictionary_encode(), ["x", "é"]),
        (pa.array([decimal.Decimal(2), decimal.Decimal(5)] * 40), [2, 5]),
        (pa.array([9, 4] * 40, pa.uint8()).dictionary_encode(), [4, 9]),
    ],
)
def test_every_type_of_class(tmp_path, values, classes):
    parquet.write_table(
        pa.table({"x": np.arange(80.0), "y": values}), tmp_path / "a.parquet", row_group_size=33
    )
    opened = open_folder(tmp_path)
    counts = count_classes(opened.files[0], "y")
    found = classes_of(opened, "y", counts)
    assert found.tolist() == classes
    assert type(found.tolist()[0]) is type(classes[0])
    codes = labels_of(opened.cut(80)[0], "y", found)
    plain = [int(v) if isinstance(v, float | decimal.Decimal) else v for v in values.to_pylist()]
    assert found[codes].tolist() == plain


def test_an_index_of_pandas_or_dask_is_ignored_and_said(tmp_path):
    pd.DataFrame({"x": [1.0, 2.0]}, index=[5, 7]).to_parquet(tmp_path / "a.parquet")
    features, notes = open_folder(tmp_path).features("y")
    assert features == ["x"]
    assert notes == ["ignored, unnamed row numbers: __index_level_0__"]


def test_cells_of_types_that_become_numbers(tmp_path):
    table = pa.table(
        {
            "decimal": pa.array([decimal.Decimal("1.5"), decimal.Decimal("-2")]),
            "half": pa.array(np.array([0.5, 2], np.float16)),
            "coded": pa.array([7, 9]).dictionary_encode(),
            "tiny": pa.array([1, 255], pa.uint8()),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    X = features_of(blocks_of(tmp_path, 10)[0], table.column_names)
    np.testing.assert_array_equal(X, [[1.5, 0.5, 7, 1], [-2, 2, 9, 255]])


def written(tmp_path, *frames):
    for number, some in enumerate(frames):
        some.to_parquet(tmp_path / f"{number}.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.drop(columns="double"),
            "1.parquet lacks 'double', unlike 0.parquet: give all files the same",
        ),
        (lambda f: f.assign(more=1, most=2), "1.parquet also has 'more', 'most', unlike 0.parquet"),
        (lambda f: f.assign(whole="x"), "1.parquet has other types in 'whole', unlike 0"),
        (lambda f: f.assign(kind=1), "1.parquet has other types in 'kind', unlike 0"),
    ],
)
def test_files_that_differ_are_refused(tmp_path, change, message):
    with pytest.raises(TableError, match=message):
        open_folder(written(tmp_path, frame(5), change(frame(5))))


def test_other_orders_of_columns_and_types_of_numbers_are_not(tmp_path):
    f = frame(6)
    path = written(tmp_path, f, f[f.columns[::-1]].astype({"whole": float}))
    X = features_of(blocks_of(path, 12)[0], ["whole", "single"])
    np.testing.assert_array_equal(X[:6], X[6:])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "nowhere is not a folder, but --dask needs one of .parquet files"),
        ("0.parquet", "0.parquet is not a folder, but --dask"),
        ("empty", "empty holds no .parquet files"),
        ("torn", "torn.parquet is not a readable Parquet file"),
    ],
)
def test_what_is_no_folder_of_parquet_files(tmp_path, name, message):
    written(tmp_path, frame(3))
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "torn.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(TableError, match=message):
        open_folder(tmp_path / name)


def test_bad_cells_are_named_with_file_column_and_row(tmp_path):
    good, bad = frame(40), frame(40)
    bad.loc[[11, 30], "double"] = np.nan
    path = written(tmp_path, good, bad)
    block = blocks_of(path, 80)[0]
    message = (
        r"1\.parquet: missing values .* in 'double' \(2\), first in row 11 \(counted from 0\): fill"
    )
    with pytest.raises(TableError, match=message):
        features_of(block, ["single", "double"])
    assert np.isfinite(features_of(block, ["single"])).all()
    bad["double"] = 1e300
    with pytest.raises(
        TableError, match=r"1\.parquet: values that are infinite in float32 in 'double' \(40\)"
    ):
        features_of(blocks_of(written(tmp_path, good, bad), 80)[0], ["double"])


def test_gaps_are_missing_numbers_where_they_may_be(tmp_path):
    some = frame(6).assign(whole=[0, -999, 2, 3, -999, 5])
    some.loc[3, "double"] = np.nan
    part = open_folder(written(tmp_path, some)).files[0]
    names = ["double", "whole"]
    (X,) = number_batches(part, names, np.float64, [-999], gaps=True)
    np.testing.assert_array_equal(X, some[names].replace(-999, np.nan))
    with pytest.raises(TableError, match=r"in 'double' \(1\), 'whole' \(2\), first in row 1 "):
        list(number_batches(part, names, np.float64, [-999]))


def test_text_to_learn_from_is_refused_with_the_remedy(tmp_path):
    opened = open_folder(written(tmp_path, frame(5).assign(note="x", other="y")))
    with pytest.raises(TableError, match="holds text in 'note', 'other': leave it out"):
        opened.features("kind")
    with pytest.raises(TableError, match="no feature columns are left"):
        open_folder(written(tmp_path, frame(5)[["kind"]])).features("kind")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.linspace(0, 1, 60), "'y' holds real numbers, not classes"),
        (np.arange(60), "'y' has 60 values in 60 rows, too few rows of each"),
        (["one"] * 60, "'y' holds one class, 'one': give rows of others"),
        (["one", None] * 30, r"0\.parquet: missing values .* in 'y' \(30\), first in row 1 "),
        ([1.0, np.nan] * 30, r"0\.parquet: missing values .* in 'y' \(30\), first in row 1 "),
        (["a" * 501, "b"] * 30, "holds text of 501 characters: shorten"),
    ],
)
def test_targets_that_are_no_classes(tmp_path, y, message):
    opened = open_folder(written(tmp_path, pd.DataFrame({"x": np.arange(60.0), "y": y})))
    with pytest.raises(TableError, match=message):
        classes_of(opened, "y", count_classes(opened.files[0], "y"))


def test_the_target_is_asked_for_and_looked_for(tmp_path):
    opened = open_folder(written(tmp_path, frame(5)))
    assert find_name(opened.path, opened.names, "kind ", "--target") == "kind"
    assert find_name(opened.path, ["x", "of\n kind"], "of kind", "--target") == "of\n kind"
    with pytest.raises(TableError, match="name the column of classes or numbers with --target"):
        find_name(opened.path, opened.names, None, "--target")
    with pytest.raises(TableError, match="did you mean 'kind'"):
        find_name(opened.path, opened.names, "kid", "--target")


def test_a_file_that_a_worker_does_not_see(tmp_path):
    with pytest.raises(
        TableError, match=r"gone\.parquet does not exist: every worker must see the folder"
    ):
        features_of(Block(0, (Part(tmp_path / "gone.parquet", 0, 5),)), ["x"])


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3)])
def test_lists_are_columns_of_their_numbers(tmp_path, kind):
    X = RNG.standard_normal((50, 3)).astype(np.float32)
    for number, rows in enumerate((slice(0, 0), slice(0, 20), slice(20, 50))):
        table = pa.table(
            {
                "vector": pa.array(list(X[rows].astype(float)), kind),
                "kind": [1, 2] * (len(X[rows]) // 2),
            }
        )
        parquet.write_table(table, tmp_path / f"part{number}.parquet", row_group_size=7)
    opened = open_folder(tmp_path)
    assert [file.stop for file in opened.files] == [0, 20, 30]
    names, notes = opened.features("kind")
    assert names == ["vector[0]", "vector[1]", "vector[2]"]
    assert not notes
    blocks = opened.cut(8)
    np.testing.assert_array_equal(np.vstack([features_of(block, names) for block in blocks]), X)
    np.testing.assert_array_equal(
        np.vstack([features_of(block, names[1:2]) for block in blocks]), X[:, 1:2]
    )


def test_lists_of_other_lengths_are_refused(tmp_path):
    for number, width in enumerate((3, 2)):
        parquet.write_table(
            pa.table({"vector": [[0.5] * width] * 4, "kind": [1, 2] * 2}),
            tmp_path / f"{number}.parquet",
        )
    with pytest.raises(TableError, match=r"1.parquet lacks 'vector\[2\]', unlike 0.parquet"):
        open_folder(tmp_path)


def test_files_of_one_name_behind_links_keep_their_own(tmp_path):
    for place in ("x", "y"):
        (tmp_path / place).mkdir()
        written(tmp_path / place, frame(3))
    (tmp_path / "links").mkdir()
    for place in ("x", "y"):
        (tmp_path / "links" / f"{place}.parquet").symlink_to(tmp_path / place / "0.parquet")
    files = [file.path for file in open_folder(tmp_path / "links").files]
    assert [file.name for file in files] == ["x.parquet", "y.parquet"]
    assert all(file.is_absolute() for file in files)


def test_a_file_that_lost_rows_meanwhile(tmp_path):
    block = blocks_of(written(tmp_path, frame(20)), 20)[0]
    written(tmp_path, frame(15))
    for read in (
        lambda: features_of(block, ["single"]),
        lambda: count_classes(block.parts[0], "kind"),
    ):
        with pytest.raises(
            TableError, match=r"0\.parquet has fewer rows than when the command began"
        ):
            read()


def test_rows_that_end_batches_before_their_row_group(tmp_path):
    table = pa.table({"a": np.arange(9000.0)} | {f"b{i}": np.zeros(9000) for i in range(130)})
    parquet.write_table(table, tmp_path / "t.parquet")
    file = ParquetFile(tmp_path / "t.parquet")
    found = [batch["a"].to_numpy() for _, batch in file.rows(file.names, 100, 2500)]
    np.testing.assert_array_equal(np.concatenate(found), np.arange(100, 2500))
