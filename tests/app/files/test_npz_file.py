"""NPZ files as they come: each is refused by one clear line, or read."""

import io
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_array

from ..hostile import (
    INTEGERS,
    KINDS,
    LONG,
    SIZES,
    STRANGE,
    N,
    assert_clear,
    assert_sound,
    npz,
    table_or_line,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
