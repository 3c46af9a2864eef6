"""The same vectors in every format that stores write are read alike."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.vectors.adapter_file import save_adapter
from nearkin.app.vectors.reading import read_vectors

from .test_export import made

P = 13
X = np.round(np.random.default_rng(0).normal(size=(40, P)), 4).astype(np.float32)
NAMES = [f"d{row}" for row in range(len(X))]
LISTS = [[float(str(number)) for number in row] for row in X]  # as float32 is written
TEXT = list(map(str, LISTS))
WORDS = [{"topic": "ab"[row % 2]} for row in range(len(X))]


def as_text(cells, **options):
    frame = pd.DataFrame({"id": NAMES, "embedding": cells})
    return lambda path: frame.to_csv(path, index=False, **options)


def as_json(found):
    return lambda path: Path(path).write_text(json.dumps(found))


def as_json_lines(records):
    return lambda path: Path(path).write_text("\n".join(map(json.dumps, records)) + "\n")


def as_arrow(cells, write=parquet.write_table):
    return lambda path: write(pa.table({"id": NAMES, "embedding": cells}), path)


def beside(path):
    np.save(path, X)
    np.save("t_ids.npy", NAMES)


def beside_as_text(path):
    np.save(path, X)
    Path("ids.txt").write_text("\n".join(NAMES) + "\n")


def records(name, words):
    rows = zip(NAMES, LISTS, WORDS, strict=True)
    return [{"id": row, name: vector, words: more} for row, vector, more in rows]


COPY = "".join(f"{row}\t{text.replace(' ', '')}\n" for row, text in zip(NAMES, TEXT, strict=True))
CHROMA = {"ids": NAMES, "embeddings": LISTS, "documents": None, "metadatas": WORDS}
TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(X)
PINECONE = records("values", "metadata")
# the ending, how it is written, the column of names, and that of the vectors
FORMATS = {
    "Parquet": ("parquet", as_arrow(LISTS), "id", "embedding"),
    "lists of a fixed size": (
        "parquet", as_arrow(pa.FixedSizeListArray.from_arrays(X.ravel(), P)), "id", "embedding"),
    "tensors": ("parquet", as_arrow(TENSORS), "id", "embedding"),
    "tensors in Feather": ("feather", as_arrow(TENSORS, feather.write_feather), "id", "embedding"),
    "text in Parquet": ("parquet", as_arrow(TEXT), "id", "embedding"),
    "pandas": ("csv", as_text(TEXT), "id", "embedding"),
    "pandas, arrays": ("csv", as_text([*X]), "id", "embedding"),
    "pandas, packed": ("csv.gz", as_text(TEXT), "id", "embedding"),
    "arrays of PostgreSQL": (
        "csv", as_text([text.translate({91: "{", 93: "}"}) for text in TEXT]), "id", "embedding"),
    "pgvector, COPY": ("tsv", lambda path: Path(path).write_text(COPY), "column 0", "column 1"),
    "pgvector, COPY as CSV": ("csv", as_text(TEXT, header=False), "column 0", "column 1"),
    "pgvector, COPY with a header": (
        "tsv", lambda path: Path(path).write_text("id\tembedding\n" + COPY), "id", "embedding"),
    "NPY": ("npy", beside, "ids", ""),
    "NPY and text": ("npy", beside_as_text, "ids", ""),
    "NPZ": ("npz", lambda path: np.savez(path, X=X, ids=NAMES), "ids", ""),
    "NPZ under any name": ("npz", lambda path: np.savez(path, e=X, ids=NAMES), "ids", "e"),
    "JSON lines": ("jsonl", as_json_lines(records("embedding", "more")), "id", "embedding"),
    "JSON": ("json", as_json(records("embedding", "more")), "id", "embedding"),
    "columns in JSON": ("json", as_json({"id": NAMES, "vector": LISTS}), "id", "vector"),
    "Qdrant, points": ("json", as_json(records("vector", "payload")), "id", "vector"),
    "Qdrant, an answer": (
        "json",
        as_json({"result": {"points": records("vector", "payload"), "next_page_offset": None},
                 "status": "ok", "time": 0.1}), "id", "vector"),
    "Qdrant, what scroll returns": (
        "json", as_json([records("vector", "payload"), None]), "id", "vector"),
    "Qdrant, more to scroll": (
        "json", as_json([records("vector", "payload"), 40]), "id", "vector"),
    "vectors by name in JSON": (
        "json", as_json(dict(zip(NAMES, LISTS, strict=True))), "id", "vector"),
    "Chroma": ("json", as_json(CHROMA | {"included": ["embeddings"], "data": None}),
               "ids", "embeddings"),
    "Pinecone": (
        "json", as_json({"vectors": PINECONE, "namespace": ""}), "id", "values"),
    "Pinecone by ids": (
        "json", as_json({"vectors": {one["id"]: one for one in PINECONE}, "namespace": ""}),
        "id", "values"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def adapter():
    save_adapter(adapter := made(), Path("a.safetensors"))
    return adapter


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_holds_the_same(form):
    suffix, write, ids, vectors = FORMATS[form]
    write(path := f"t.{suffix}")
    found = read_vectors(path, ids=ids)
    np.testing.assert_array_equal(found.X, X)
    assert found.X.dtype == np.float32
    assert found.ids.to_pylist() == NAMES
    assert found.column == vectors


@pytest.mark.parametrize("form", ["NPY", "pandas", "Chroma", "pgvector, COPY", "tensors"])
def test_an_adapter_is_not_tied_to_the_name_of_its_column(form, adapter, capsys):
    suffix, write, ids, vectors = FORMATS[form]
    write(path := f"t.{suffix}")
    assert main(["transform", "a.safetensors", path, "--id", ids, "-o", "z.parquet"]) == 0
    err = capsys.readouterr().err
    renamed = vectors not in ("", "embedding")
    assert (f"taken as vectors, by their length: '{vectors}', not 'embedding'" in err) == renamed
    Z = parquet.read_table("z.parquet")
    np.testing.assert_array_equal(np.stack(Z["embedding"].to_numpy()), adapter.transform(X))
    assert Z[ids].to_pylist() == NAMES


class TestSeveralColumns:
    @pytest.fixture(autouse=True)
    def files(self, adapter):
        frame = pd.DataFrame({"id": NAMES, "old": [*X], "new": [*X[::-1]], "image": [*X[:, :3]]})
        frame.to_parquet("two.parquet")
        frame[["id", "old", "image"]].to_parquet("one.parquet")
        np.savez("two.npz", old=X, new=X[::-1], ids=NAMES)

    @pytest.mark.parametrize("file", ["two.parquet", "two.npz"])
    def test_one_of_the_length_is_to_be_named(self, file, capsys, adapter):
        words = ["transform", "a.safetensors", file]
        assert main(words) == 2
        assert "old, new: name one with --vectors" in capsys.readouterr().err
        assert main([*words, "--vectors", "new", "-o", "z.npz"]) == 0
        np.testing.assert_array_equal(np.load("z.npz")["X"], adapter.transform(X[::-1]))

    def test_the_only_one_of_the_length_is_taken(self, capsys):
        assert main(["transform", "a.safetensors", "one.parquet", "-o", "z.npz"]) == 0
        assert "by their length: 'old', not 'embedding'" in capsys.readouterr().err

    def test_one_of_another_length_is_refused(self, capsys):
        words = ["transform", "a.safetensors", "two.parquet", "--vectors"]
        assert main([*words, "image"]) == 2
        assert f"has vectors of 3 dimensions, but {P} are needed" in capsys.readouterr().err
        assert main([*words, "imag"]) == 2
        assert "did you mean 'image'" in capsys.readouterr().err


class TestBadRows:
    CELLS = ("[1, 2", "[]", "", "[1, 2, 3]", "words", "[1, 2, x, 4]", "[1, nan, 3, 4]", "[1e999, 1, 1, 1]")  # fmt: skip

    def write(self, form, cells):
        if form == "json":
            lists = [json.loads(c) if c.startswith("[") and c.endswith("]") and "x" not in c and "n" not in c else None for c in cells]  # fmt: skip
            as_json({"embedding": lists})("t.json")
        elif form == "npy":
            np.save(
                "t.npy", [json.loads(c) if c == "[1, 2, 3, 4]" else [np.nan] * 4 for c in cells]
            )
        elif form == "parquet":
            pd.DataFrame({"embedding": cells}).to_parquet("t.parquet")
        else:
            pd.DataFrame({"id": range(len(cells)), "embedding": cells}).to_csv("t.csv", index=False)
        return f"t.{form}"

    @pytest.mark.parametrize("form", ["csv", "parquet", "json", "npy"])
    def test_are_rows_of_zeros_and_counted(self, form):
        cells = ["[1, 2, 3, 4]"] * 12 + list(self.CELLS)
        found = read_vectors(self.write(form, cells))
        np.testing.assert_array_equal(found.X[:12], [[1, 2, 3, 4]] * 12)
        assert not found.X[12:].any()
        place = "on line 14" if form == "csv" else "in row 12 (counted from 0)"
        what = f"8 rows without a vector of 4 numbers, the first {place}"
        assert f"counted as rows of zeros: {what}" in found.notes

    @pytest.mark.parametrize("form", ["csv", "parquet", "json"])
    def test_most_of_them_are_refused(self, form):
        cells = ["[1, 2, 3, 4]"] * 100 + ["[1, 2, 3]"] * 101
        with pytest.raises(TableError) as error:
            read_vectors(self.write(form, cells))
        place = "on line 102" if form == "csv" else "in row 100 (counted from 0)"
        assert str(error.value) == (
            f"t.{form}: 101 of 201 rows have no vector of 4 numbers in 'embedding', the first "
            f"{place}: write every vector in full, as a list of numbers."
        )

    def test_vectors_that_numpy_has_shortened(self):
        pd.DataFrame({"embedding": [*np.ones((9, 2000))]}).to_csv("t.csv")
        with pytest.raises(TableError, match="write every vector in full"):
            read_vectors("t.csv")

    def test_text_of_other_lengths_is_no_vector(self):
        frame = pd.DataFrame({"tags": [str([*range(2 + row % 7)]) for row in range(40)]})
        frame.assign(embedding=TEXT).to_csv("t.csv", index=False)
        assert read_vectors("t.csv").column == "embedding"


def test_names_of_vectors_in_json_are_said_to_be_ids():
    as_json(dict(zip(NAMES, LISTS, strict=True)))("t.json")
    remark = "read as vectors by name, with the names in the column id"
    assert remark in read_vectors("t.json").notes
    as_json(dict(zip(NAMES[:5], LISTS[:5], strict=True)))("t.json")  # fewer than dimensions
    assert read_vectors("t.json", ids="id").ids.to_pylist() == NAMES[:5]


@pytest.mark.parametrize("separator", [" ", ",", ";"])
def test_numbers_alone_have_no_header(separator):
    np.savetxt("t.csv", X, delimiter=separator)
    found = read_vectors("t.csv")
    np.testing.assert_allclose(found.X, X, rtol=1e-6)
    assert any("no header line, columns are called: column 0" in one for one in found.notes)


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_that_count_columns_are_a_header(index, first):
    frame = pd.DataFrame(X, columns=np.arange(first, P + first))
    frame.to_csv("t.csv", index=index)
    found = read_vectors("t.csv")
    np.testing.assert_allclose(found.X, X, rtol=1e-6)
    assert found.columns == [str(name) for name in frame]


def test_columns_of_numbers_in_json_are_known_by_a_label():
    as_json({"a": [0.5, 1.5, 2.5], "b": [1.5, 2.5, 0.5], "label": [1, 0, 1]})("t.json")
    found = read_vectors("t.json", label="label")
    assert found.columns == ["a", "b"]
    np.testing.assert_array_equal(found.X, [[0.5, 1.5], [1.5, 2.5], [2.5, 0.5]])


@pytest.mark.parametrize("options", [{"label": "label"}, {}])
def test_so_are_those_that_other_programs_write(options):
    """JavaScript writes 1.0 as 1."""
    as_json({"label": [0, 1, 1, 0], "a": [1, 2.5, 3, 4], "b": [0.5, 2, 3, 1]})("t.json")
    assert read_vectors("t.json", **options).columns[-2:] == ["a", "b"]


def test_a_named_key_of_json_is_a_column():
    as_json({"score": [0.5, 1.5, 2.5], "a": [0.5, 1.5, 2.5], "b": [1.5, 2.5, 0.5]})("t.json")
    assert read_vectors("t.json", label="score").columns == ["a", "b"]
    assert read_vectors("t.json").ids is None
    assert len(read_vectors("t.json", ids="id").X) == 3


class TestTwoModels:
    @pytest.fixture
    def mixed(self):
        rng = np.random.default_rng(0)
        return np.vstack([rng.normal(size=(250, 20)) @ rng.normal(size=(20, 128)) for _ in "ab"])

    def remarks(self, X, label=None):
        frame = pd.DataFrame({"embedding": [*X.astype(np.float32)], "label": label})
        frame.to_parquet("t.parquet")
        notes = read_vectors("t.parquet", label=None if label is None else "label").notes
        return [one for one in notes if "two models" in one]

    def test_are_a_doubt(self, mixed):
        (said,) = self.remarks(mixed)
        assert said.startswith("two models in t? Of 500 rows looked at, 250, the first in row ")
        assert "embed all rows by the same model" in said
        assert not self.remarks(mixed[:250])

    def test_are_none_if_labels_tell_the_parts_apart(self, mixed):
        assert self.remarks(mixed, np.arange(500) % 5)
        assert not self.remarks(mixed, np.arange(500) // 125)

    def test_missing_labels_tell_nothing_apart(self, mixed):
        of_one = np.full(500, None, dtype=object)
        of_one[:250] = "a"
        assert self.remarks(mixed, of_one)
        assert self.remarks(mixed, np.where(np.arange(500) % 7, of_one, "a"))
        both = np.where(np.arange(500) % 7, of_one, None)
        both[250::3] = "b"
        assert not self.remarks(mixed, both)
