import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array, random_array, save_npz

from nearkin.app.endings import TableError
from nearkin.app.files.readers import Reading
from nearkin.app.tables.reading import class_facts, read_table
from nearkin.datasets import BUNDLED, load

FLOWERS = "length,width,species\n1,2.5,a\n3,4,b\n5,6,a\n7,8,b\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def csv(folder):
    def write(text, target="kind", groups=None, encoding="utf-8"):
        (folder / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return read_table("t.csv", target, groups)

    return write


@pytest.fixture
def npz(folder):
    def write(target=None, groups=None, **arrays):
        np.savez("t.npz", **arrays)
        return read_table("t.npz", target, groups)

    return write


def refused(read, *arguments, says, **keywords):
    """Assert a TableError of one line that holds all pieces."""
    with pytest.raises(TableError) as caught:
        read(*arguments, **keywords)
    text = str(caught.value)
    assert "\n" not in text
    for piece in [says] if isinstance(says, str) else says:
        assert piece in text


# Where the table is


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("target", [None, "target"])
def test_bundled(folder, name, target):
    table, dataset = read_table(name, target), load(name)
    varies = dataset.X.std(axis=0) > 0
    np.testing.assert_array_equal(table.X, dataset.X[:, varies])
    np.testing.assert_array_equal(table.y, dataset.y)
    assert table.name == name
    assert table.groups is None
    assert len(table.feature_names) == varies.sum()
    assert table.notes == (
        ["ignored, constant: pixel_0_0, pixel_4_0, pixel_4_7"] if name == "digits" else []
    )


@pytest.mark.parametrize(("target", "groups"), [("species", None), (None, "plant")])
def test_bundled_sets_have_their_own_classes(folder, target, groups):
    refused(
        read_table,
        "iris",
        target,
        groups,
        says=["iris is a bundled set", "leave --target, --groups"],
    )


def test_a_file_goes_before_the_bundled_set_of_its_name_and_a_folder_does_not(folder):
    (folder / "iris").mkdir()
    assert read_table("iris").X.shape == (150, 4)
    (folder / "wine").write_text("x,kind\n1,a\n")
    refused(read_table, "wine", "kind", says="wine: the table has 1 row: too few rows")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "none.csv",
            ["none.csv: no such file", "iris, wine, breast_cancer, digits, balance_scale"],
        ),
        ("irsi", "irsi: no such file"),
        (".", ". is a folder"),
        (
            "t.xlsx",
            "t.xlsx is empty: it needs a header line that names the columns, and rows.",
        ),
        ("t" * 300 + ".csv", "ttt.csv"),
    ],
)
def test_no_table(folder, source, says):
    (folder / "t.xlsx").touch()
    refused(read_table, source, "kind", says=says)


@pytest.mark.parametrize("name", ["t.csv", "t.npz"])
def test_file_that_must_not_be_read(folder, name, monkeypatch):
    def deny(*arguments, **keywords):
        raise PermissionError(13, "Permission denied")

    (folder / name).write_text(FLOWERS)
    monkeypatch.setattr("io.open", deny)
    refused(read_table, name, "species", says=f"{name} cannot be read: Permission denied")


# CSV


@pytest.mark.parametrize(
    "text", [FLOWERS, FLOWERS.replace("\n", "\r\n"), FLOWERS.replace("\n", "\n\n")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv(csv, text, encoding):
    table = csv(text, "species", encoding=encoding)
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, 4], [5, 6], [7, 8]])
    assert table.X.dtype == np.float64
    assert table.y.tolist() == ["a", "b", "a", "b"]
    assert table.y.dtype.kind == "U"
    assert table.groups is None
    assert table.feature_names == ["length", "width"]
    assert table.name == "t"
    assert table.notes == []


def test_upper_case_ending(folder):
    (folder / "T.CSV").write_text(FLOWERS)
    assert read_table("T.CSV", "species").name == "T"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["2.0", "1.0", "2.0", "1.0"], [2, 1, 2, 1]),
        (["-1", "1", "-1", "1"], [-1, 1, -1, 1]),
        (["True", "False", "True", "False"], [True, False, True, False]),
        (["not so", "so ", "not so", "so "], ["not so", "so", "not so", "so"]),
        (["1", "x", "1", "x"], ["1", "x", "1", "x"]),
    ],
)
def test_labels_keep_their_kind(csv, labels, expected):
    y = csv("size,kind\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels))).y
    assert y.tolist() == expected
    assert type(y.tolist()[0]) is type(expected[0])


def test_labels_that_became_one_or_nearly_are_one_are_said(csv):
    rows = "1,yes,p\n2,yes ,p\n3,No,q\n4,no,q \n5,yes,q\n6,No,p\n7,no,p\n"
    table = csv("size,kind,place\n" + rows, groups="place")
    assert table.y.tolist() == ["yes", "yes", "No", "no", "yes", "No", "no"]
    assert table.notes[:3] == [
        "kind: 'yes ' and 'yes' are one class (1 row)",
        "kind: 'No' and 'no' differ only in case: spell them alike if they mean the same",
        "place: 'q ' and 'q' are one group (1 row)",
    ]


@pytest.mark.parametrize(
    ("labels", "missing", "expected"),
    [
        (
            ["None", "Mild", "None", "Mild", "NA", "NA"],
            None,
            ["None", "Mild", "None", "Mild", "NA", "NA"],
        ),
        (["1", "2", "1", "2", "NA", "?"], None, [1, 2, 1, 2, None, None]),
        (["a", "b", "a", "b", "unknown", "x"], ("unknown", "x"), ["a", "b", "a", "b", None, None]),
        (["1", "2", "1", "2", "-99", "-99.0"], ("-99",), [1, 2, 1, 2, None, None]),
        (["1", "2", "1", "2", "NA", "NA"], ("-99",), ["1", "2", "1", "2", "NA", "NA"]),
    ],
)
def test_what_is_a_missing_label(folder, labels, missing, expected):
    (folder / "t.csv").write_text(
        "size,kind\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels))
    )
    assert read_table("t.csv", "kind", reading=Reading(missing=missing)).y.tolist() == expected


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        (["€1,200.50", "€80", "€75.2", "€7"], [1200.5, 80, 75.2, 7]),
        (["12%", "8.5%", "7%", ""], [0.12, 0.085, 0.07, np.nan]),
        (["12,5", "8,25", "7,0", "1,5"], [12.5, 8.25, 7, 1.5]),
    ],
)
def test_a_target_of_numbers_in_another_style(folder, prices, expected):
    pd.DataFrame({"size": range(8), "price": 2 * prices}).to_csv("t.csv", index=False)
    table = read_table("t.csv", "price", task="regression")
    np.testing.assert_allclose(table.y, 2 * expected)
    assert table.notes[0].startswith("price: read as numbers ('")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_dates_are_no_target(folder, task):
    (folder / "t.csv").write_text(
        "size,day\n" + "".join(f"{i},{1 + i % 3}.12.2024\n" for i in range(9))
    )
    refused(
        read_table,
        "t.csv",
        "day",
        task=task,
        says="t.csv: 'day' holds dates ('1.12.2024'): give classes, such as",
    )


def test_codes_with_leading_zeros_are_text(csv):
    table = csv("zip,x,kind\n01234,0,a\n00501,0.5,b\n01234,05e0,a\n00501,-0.5,b\n")
    assert table.feature_names == ["x", "zip=00501", "zip=01234"]


@pytest.mark.parametrize(
    ("place", "expected"), [("p,q,r,p", list("pqrp")), ("1,2,3,1", [1, 2, 3, 1])]
)
def test_groups_are_no_feature(csv, place, expected):
    rows = "".join(f"{row},{group},{row % 2}\n" for row, group in enumerate(place.split(",")))
    table = csv("size,place,kind\n" + rows, groups="place")
    assert table.groups.tolist() == expected
    assert table.feature_names == ["size"]


@pytest.mark.parametrize("wanted", ["kind", " kind "])
def test_spaces_around_names_do_not_matter(csv, wanted):
    table = csv("size , kind\n1,a\n2,b\n3,a\n4,b\n", wanted)
    assert table.feature_names == ["size "]


def test_the_exact_name_goes_first(csv):
    assert csv("kind, kind\n1,a\n2,b\n3,a\n4,b\n", " kind").feature_names == ["kind"]


def test_unnamed_columns_are_columns_unless_they_number_the_rows(csv):
    assert csv(",,kind\n4,5,a\n2,7,b\n3,8,a\n1,0,b\n").feature_names == ["Unnamed: 0", "Unnamed: 1"]
    for first in (0, 1):
        table = csv(f",x,kind\n{first},5,a\n{first + 1},7,b\n{first + 2},8,a\n{first + 3},0,b\n")
        assert table.feature_names == ["x"]
        assert table.notes == ["ignored, numbers of the rows: Unnamed: 0"]


def test_text_is_one_hot_encoded_and_said(csv):
    table = csv("colour,height,size,kind\nred,1,S,a\nblue,2,L,b\nred,3,L,a\ngreen,5,S,b\n")
    assert table.feature_names == [
        "height",
        "colour=blue",
        "colour=green",
        "colour=red",
        "size=L",
        "size=S",
    ]
    np.testing.assert_array_equal(
        table.X, [[1, 0, 0, 1, 0, 1], [2, 1, 0, 0, 1, 0], [3, 0, 0, 1, 1, 0], [5, 0, 1, 0, 0, 1]]
    )
    assert table.notes == ["one-hot encoded: colour (3 values), size (2 values)"]


def test_dates_are_days_and_huge_integers_numbers(csv):
    table = csv(
        f"day,number,kind\n2001-01-01,{10**30},a\n2001-01-02,1,b\n2001-01-01,1,a\n2001-01-02,1,b\n"
    )
    assert table.feature_names == ["number", "day (days since 1970)"]
    np.testing.assert_array_equal(table.X, [[1e30, 11323], [1, 11324], [1, 11323], [1, 11324]])


def test_integers_that_differ_only_beyond_double_precision_are_constant(csv):
    rows = "".join(f"{i},{2**60 + i},{'ab'[i % 2]}\n" for i in range(4))
    assert csv("x,number,kind\n" + rows).notes == ["ignored, constant: number"]


def test_booleans_are_numbers(csv):
    table = csv("wet,kind\nTrue,a\nFalse,b\nFalse,a\nTrue,b\n")
    np.testing.assert_array_equal(table.X, [[1], [0], [0], [1]])
    assert table.notes == []


def test_columns_that_say_nothing_are_ignored_and_said(csv):
    table = csv("id,site,year,size,kind\nA1,x,7,1,a\nA2,x,7,2,b\nA3,x,7,3,a\nA4,x,7,4,b\n")
    np.testing.assert_array_equal(table.X, [[1], [2], [3], [4]])
    assert table.feature_names == ["size"]
    assert table.notes == [
        "ignored, constant: site, year",
        "ignored, text that differs in every row: id",
    ]


def test_numbers_that_became_text_are_said(csv):
    csv("size,age,kind\n1,3,a\n2,so,b\n3,so,a\nso,4,b\n")
    table = read_table("t.csv", "kind", reading=Reading(strict=True))
    assert table.notes == [
        "ignored, text that differs, and looks like numbers: size",
        "read as text because of cells that are not numbers (correct them, or list all marks in "
        "--missing or missing_values): 'so' in size (1 row), 'so' in age (2 rows)",
        "one-hot encoded: age (3 values)",
    ]


def test_words_among_numbers_are_missing_and_said(csv):
    table = csv("size,age,kind\n1,3,a\n2,so,b\n3,5,a\nso,4,b\n")
    np.testing.assert_array_equal(table.X, [[1, 3], [2, np.nan], [3, 5], [np.nan, 4]])
    assert table.notes == [
        "size: 1 cell is not a number, missing there: 'so' (1)",
        "age: 1 cell is not a number, missing there: 'so' (1)",
        "missing values, filled by the median (kept by NCA tables): size (1 row), age (1 row)",
    ]


def test_long_notes_are_cut(csv):
    header = ",".join(f"c{column}" for column in range(15))
    table = csv(f"{header},kind\n" + "".join(f"{row},{'0,' * 14}{row % 2}\n" for row in range(4)))
    assert table.notes == ["ignored, constant: c1, c2, c3 and 11 more"]


ROWS = "1,a\n2,b\n3,a\n4,b\n"
BROKEN = {
    "empty": ("", "t.csv is empty: it needs a header line"),
    "blank": ("\n\n", "t.csv is empty"),
    "header only": ("size,kind\n", "has 0 rows: give some"),
    "three rows": ("size,kind\n1,a\n2,b\n3,a\n", ["has 3 rows: too few rows, give at least 4"]),
    "Windows-1251": ("größe,kind\n1,\x8f\n".encode("latin-1"), ["has 1 row: too few rows"]),
    "a long row": ("size,kind\n1,a\n2,b,3\n", "has 1 row: too few rows"),
    "all rows long": ("size,kind\n1,a,3\n2,b,3\n", "has 2 rows: too few rows"),
    "open quote": ('size,kind\n1,"a\n2,b\n', "has 2 rows: too few rows"),
    "endless header": ("x" * 200_000 + ",kind\n1,a\n", "has 1 row: too few rows"),
    "twice": ("b,a,b,a,kind\n", "has 0 rows: give some"),
    "no features": ("kind\na\nb\na\nb\n", ["no feature columns are left", "add columns whose values vary"]),
    "nothing varies": ("id,x,kind\nA1,0,a\nA2,0,b\nA3,0,a\nA4,0,b\n", "no feature columns are left"),
    "no such column": ("size,kinds\n" + ROWS, ["no 'kind' (did you mean 'kinds'?)", "--target one of 'size', 'kinds'"]),
    "many columns": (",".join(f"c{i}" for i in range(12)) + "\n", "'c8', 'c9' and 2 more"),
    "real numbers": ("size,kind\n1,.5\n2,1\n3,1\n4,.5\n", ["holds real numbers, not classes", "give --task regression"]),
    "huge numbers": ("size,kind\n1,1e300\n2,1e301\n3,1e300\n4,1e301\n", "holds real numbers, not classes"),
    "one class": ("size,kind\n1,a\n2,a\n3,a\n4,a\n", ["'kind' holds one class, 'a'", "give rows of others"]),
    "single rows": ("size,kind\n1,a\n2,a\n3,b\n4,c\n", ["the classes 'b', 'c'", "merge them with others"]),
    "missing label": ("size,kind\n1,a\n2, \n3,a\n4,b\n", "t.csv: the table has 3 rows with a label in 'kind': too few"),
    "short row": ("size,kind\n1,a\n2\n3,a\n4,b\n", "has 3 rows with a label in 'kind': too few rows"),
    "infinite label": ("size,kind\n1,1\n2,inf\n3,1\n4,2\n", "'kind' holds real numbers, not classes"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_csv(csv, case):
    text, says = BROKEN[case]
    refused(csv, text, says=says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('size,"kind"\n\n"1\n\n",a\n\ninf,b\n', ["'size' (1)", "first on line 7"]),
        (
            "size,kind\n1,a\ninf,b\n-inf,a\n4,b\n",
            ["infinite values in 'size' (2), first on line 3", "drop"],
        ),
    ],
)
def test_infinite_numbers_are_refused_on_request(folder, text, says):
    (folder / "t.csv").write_text(text)
    refused(read_table, "t.csv", "kind", reading=Reading(strict=True), says=says)


def test_missing_cells_are_refused_on_request(folder):
    (folder / "t.csv").write_text(
        "a,b,c,d,e,f,kind\n1,,1,1,1,1,x\n\n1,,NA,,,,x\n1,,1,1,1,1,y\n1,,1,1,1,1,y\n"
    )
    says = [
        "missing values (empty fields, NA",
        "'b' (4), 'c' (1), 'd' (1), 'e' (1), 'f' (1), first on line 2",
    ]
    refused(
        read_table,
        "t.csv",
        "kind",
        reading=Reading(refuse_missing=True),
        says=[*says, "fill them or drop these"],
    )


def test_target_is_required(csv):
    refused(
        csv,
        FLOWERS,
        None,
        says=["t.csv: name the column", "--target: 'length', 'width', 'species'"],
    )


def test_target_and_groups_differ(csv):
    refused(csv, FLOWERS, "species", "species", says=["both name 'species'", "give two columns"])


def test_unknown_groups(csv):
    refused(
        csv,
        FLOWERS,
        "species",
        "widht",
        says=["no 'widht' (did you mean 'width'?)", "give --groups one of"],
    )


def test_missing_groups(csv):
    refused(
        csv,
        "size,place,kind\n1,,a\n2,x,b\n3,x,b\n4,y,a\n",
        groups="place",
        says="'place' (1), first on line 2",
    )


def test_values_of_one_row_have_no_indicator_among_many(csv):
    rows = "".join(f"v{min(row // 2, 120 + row)},w{row % 3},{row % 2}\n" for row in range(300))
    table = csv("word,letter,kind\n" + rows + "once,w0,1\n")
    letters = ["letter=w0", "letter=w1", "letter=w2"]
    assert table.feature_names == [*sorted(f"word=v{at}" for at in range(150)), *letters]
    said = "one-hot encoded where several rows share a value: word (150 of 151 values)"
    assert said in table.notes


# NPZ

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0], [8.0, 9.0]])
Y = np.array(["a", "b", "a", "b"])
S = random_array((6, 5), density=0.5, format="csr", random_state=np.random.default_rng(0))
S_PARTS = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
S_Y = np.arange(6) % 2


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64, np.float16, bool])
def test_dense_npz(npz, dtype):
    numbers = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=dtype)
    table = npz(X=numbers, y=Y)
    assert table.X.dtype == (np.float32 if dtype in (np.float32, np.float16) else np.float64)
    np.testing.assert_array_equal(table.X, numbers)
    np.testing.assert_array_equal(table.y, Y)
    assert (table.name, table.feature_names, table.notes) == ("t", ["column 0", "column 1"], [])


def test_npz_keys(npz):
    table = npz(
        "kind",
        "place",
        X=X,
        kind=np.array([1.0, 2.0, 1.0, 2.0]),
        place=np.arange(4),
        feature_names=["p", "q"],
    )
    assert table.y.tolist() == [1, 2, 1, 2]
    assert table.y.dtype == np.int64
    assert table.groups.tolist() == [0, 1, 2, 3]
    assert table.feature_names == ["p", "q"]


@pytest.mark.parametrize("names", [{}, {"feature_names": ["p", "q", "r"]}])
def test_constant_columns_of_npz(npz, names):
    table = npz(X=np.insert(X, 1, 6, axis=1), y=Y, **names)
    np.testing.assert_array_equal(table.X, X)
    assert table.feature_names == (["p", "r"] if names else ["column 0", "column 2"])
    assert table.notes == ["ignored, constant: " + ("q" if names else "column 1")]


def test_sparse_npz(npz):
    table = npz(**S_PARTS, y=S_Y)
    assert isinstance(table.X, csr_array)
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X.toarray(), S.toarray())
    assert table.feature_names == [f"column {number}" for number in range(5)]


@pytest.mark.parametrize("container", [csr_array, csc_array])
def test_sparse_npz_of_scipy(npz, container):
    file = io.BytesIO()
    save_npz(file, container(S))
    file.seek(0)
    with np.load(file) as saved:
        table = npz(**saved, y=S_Y)
    assert isinstance(table.X, csr_array)
    np.testing.assert_array_equal(table.X.toarray(), S.toarray())


def test_repeated_entries_are_summed(npz):
    table = npz(data=[1.0, 2.0, 5.0], indices=[0, 0, 1], indptr=[0, 2, 2, 3, 3], shape=(4, 2), y=Y)
    np.testing.assert_array_equal(table.X.data, [3, 5])


NOT_FINITE = np.array([[1, np.nan], [2, 3], [np.inf, np.nan], [4, 5]])
BROKEN_NPZ = {
    "no labels": ({"X": X, "labels": Y}, ["has no 'y'", "give --target one of 'X', 'labels'"]),
    "no matrix": ({"y": Y, "z": Y}, ["needs an array 'X', a single one of two dimensions", "has 'y', 'z'"]),
    "one-dimensional": ({"X": X[:, 0], "y": Y}, ["'X' holds 'float64' of the shape (4,)", "save rows of numbers"]),
    "images": ({"X": np.zeros((4, 2, 2)), "y": Y}, "of the shape (4, 2, 2)"),
    "strings": ({"X": X.astype(str), "y": Y}, ["'X' holds '<U32'", "save rows of numbers"]),
    "complex": ({"X": X + 1j, "y": Y}, "'X' holds 'complex128'"),
    "lengths": ({"X": X, "y": Y[:3]}, ["'y' holds '<U1' of the shape (3,)", "for each of 4 rows"]),
    "label matrix": ({"X": X, "y": X}, "'y' holds 'float64' of the shape (4, 2)"),
    "bytes": ({"X": X, "y": Y.astype("S")}, ["'y' holds '|S1'", "save a string or number"]),
    "objects": ({"X": X, "y": Y.astype(object)}, ["not a readable NPZ archive", "Object arrays"]),
    "object X": ({"X": X.astype(object), "y": Y}, "not a readable NPZ archive of plain arrays"),
    "not finite": (
        {"X": NOT_FINITE, "y": Y},
        ["infinite values", "'column 0' (1), first in row 2 (counted from 0)", "fill them or drop"],
    ),
    "NaN label": ({"X": X, "y": [1, 2, np.nan, 2]}, "t.npz: the table has 3 rows with a label in 'y': too few"),
    "infinite label": ({"X": X, "y": [1, 2, np.inf, 2]}, "'y' holds real numbers, not classes"),
    "real labels": ({"X": X, "y": [0.5, 1, 0.5, 1]}, "holds real numbers, not classes"),
    "one class": ({"X": X, "y": np.zeros(4)}, "holds one class, 0"),
    "a single row": ({"X": X, "y": [1, 1, 1, 2]}, "has a single row of the class 2"),
    "few rows": ({"X": X[:2], "y": Y[:2]}, "has 2 rows: too few"),
    "constant": ({"X": np.ones((4, 2)), "y": Y}, "no feature columns are left"),
    "no columns": ({"X": np.ones((4, 0)), "y": Y}, "no feature columns are left"),
    "names": ({"X": X, "y": Y, "feature_names": ["p"]}, "'feature_names' holds '<U1' of the shape (1,)"),
    "numbers as names": ({"X": X, "y": Y, "feature_names": [1, 2]}, "'feature_names' holds 'int64'"),
    "sparse NaN": (
        S_PARTS | {"data": np.where(np.arange(S.nnz) == S.indptr[3], np.nan, 1), "y": S_Y},
        "in 'data' (1), first in row 3 (counted from 0)",
    ),
    "sparse strings": (S_PARTS | {"data": S.data.astype(str), "y": S_Y}, "'data' holds '<U32'"),
    "sparse lengths": (S_PARTS | {"y": S_Y[:5]}, "each of 6 rows"),
    "sparse shape": (S_PARTS | {"shape": [6], "y": S_Y}, "is not a readable sparse matrix"),
    "sparse bounds": (S_PARTS | {"shape": [6, 2], "y": S_Y}, "is not a readable sparse matrix"),
    "sparse indptr": (S_PARTS | {"indptr": S.indptr[:-1], "y": S_Y}, "is not a readable sparse matrix"),
    "sparse format": (S_PARTS | {"format": b"bsr", "y": S_Y}, ["is not a readable sparse matrix", "shape of a csr_array"]),
    "sparse constant": (S_PARTS | {"data": 0 * S.data, "y": S_Y}, "no feature columns are left"),
    "sparse, no columns": (
        {"data": [], "indices": np.zeros(0, int), "indptr": np.zeros(7, int), "shape": [6, 0], "y": S_Y},
        "no feature columns are left",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN_NPZ)
def test_broken_npz(npz, case):
    arrays, says = BROKEN_NPZ[case]
    refused(npz, **arrays, says=says)


def test_npz_groups(npz):
    refused(npz, groups="place", X=X, y=Y, says=["has no 'place'", "give --groups one of 'X', 'y'"])
    refused(
        npz, groups="place", X=X, y=Y, place=[1, 2], says="'place' holds 'int64' of the shape (2,)"
    )


def test_not_an_npz(folder):
    for content in (b"", b"length,width\n", b"\x93NUMPY\x01\x00"):
        (folder / "t.npz").write_bytes(content)
        refused(read_table, "t.npz", says=["t.npz is not a readable NPZ archive", "numpy.savez"])


def test_zip_of_something_else(folder):
    with zipfile.ZipFile("t.npz", "w") as archive:
        archive.writestr("X", "1,2")
        archive.writestr("y", "1")
    refused(read_table, "t.npz", says=["not a readable NPZ archive", "numpy.savez"])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_npz(folder, save):
    save("t.npz", X=np.random.default_rng(0).normal(size=(50, 20)), y=np.arange(50) % 2)
    content = bytearray((folder / "t.npz").read_bytes())
    content[400:3000] = bytes(2600)
    (folder / "t.npz").write_bytes(content)
    refused(read_table, "t.npz", says=["not a readable NPZ archive", "write it again"])


def test_cut_npz(folder):
    np.savez("t.npz", X=X, y=Y)
    (folder / "t.npz").write_bytes((folder / "t.npz").read_bytes()[:300])
    refused(read_table, "t.npz", says="t.npz is not a readable NPZ archive")


@pytest.mark.parametrize(
    ("sizes", "facts"),
    [
        ([50, 50, 50], "3 classes of 50 rows each"),
        ([1000, 3000], "2 classes of 1,000 to 3,000 rows (the largest: 75.0%)"),
        ([1], "1 class of 1 row each"),
    ],
)
def test_class_facts(sizes, facts):
    assert class_facts(np.array(sizes)) == facts
