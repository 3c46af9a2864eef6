"""A model file, whatever is in it, loads as a model that can be used or is refused by one line.

There is no object in the file that could be built or run, so what is left to try is damage, sizes
that lie, and a header and arrays that do not fit together.
"""

import json
import os
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.sparse import csr_array, issparse

from nearkin.app import console
from nearkin.app.cli import main
from nearkin.app.model import FORMAT, ModelFileError, embed, load_model, pack, predict, save_model
from nearkin.app.tables import read_table

from .winners import HARD, SOFT, winner, write_tables

MODELS = {
    "words": ("NMMP", "words table.csv", "kind", "classification"),
    "dense": ("LDA", "dense table.npz", None, "classification"),
    "sparse": ("raw k-NN", "sparse table.npz", None, "classification"),
    "gaps": ("NMMP", "gaps table.csv", "kind", "classification"),
    "numbers": ("PCA", "words table.csv", "width", "regression"),
    "graph": ("TDL", "dense table.npz", None, "classification"),
    "sparse graph": ("TDL", "sparse table.npz", None, "classification"),
}
MISSING = object()
GRAPH = {"n_neighbors": 5, "bandwidth": 1.0, "normalized": True}
COLOUR = {
    "kind": "category",
    "name": "colour",
    "values": ["blue", "green", "red"],
    "missing": False,
}
DATES = {"kind": "date", "name": "day", "layout": "day first", "cycles": ["year"]}
SHARES = {"kind": "frequency", "name": "city", "values": ["a", "b"], "missing": False, "shares": [0.5, 0.5],
          "missing_share": 0.0}  # fmt: skip
FIGURES = {"score": 0.5, "raw": 0.5, "folds": 5.0}


def encoded(**changes):
    """Return the header's field for the state of the encoder of the table of words, changed."""
    state = {
        "parameters": {"missing": "keep"},
        "names": ["width", "height", "depth", "colour"],
        "n_features": 4,
    }
    state |= {
        "numbers": ["width", "height", "depth"],
        "columns": [COLOUR],
        "indicated": [],
        "medians": [],
    }
    return {"columns": state | changes}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The file of every model, as bytes."""
    folder, files = tmp_path_factory.mktemp("hostile"), {}
    write_tables(folder)
    for kind, (method, table, target, task) in MODELS.items():
        vote = SOFT if kind in ("dense", "numbers") else HARD
        model = winner(
            method,
            read_table(str(folder / table), target, task=task),
            scale=kind != "dense",
            vote=vote,
        )
        save_model(model, folder / "m.safetensors")
        files[kind] = (folder / "m.safetensors").read_bytes()
    return files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.safetensors"


def parts(data, path):
    """Return header and arrays of a file."""
    path.write_bytes(data)
    (size,) = np.frombuffer(data[:8], "<u8")
    return json.loads(json.loads(data[8 : 8 + int(size)])["__metadata__"]["nearkin"]), load_file(
        path
    )


def use(path):
    """Do what the commands do with a model, and return why it was refused, if it was; other errors
    are not due.
    """
    try:
        model = load_model(path)
    except ModelFileError as error:
        return str(error)
    row = np.ones((2, len(model.feature_names)))
    row = csr_array(row) if issparse(model.voters) else row
    console.describe(model, path)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            embed(model, row)
            predict(model, row)
        except ValueError:  # the command makes a line of it
            pass
    return ""


def refused(path, says=""):
    """Assert that a file is refused by one printable line that begins with its name."""
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    text = str(caught.value)
    assert text.startswith(f"{path} ")
    assert says in text
    assert text.isprintable()
    assert len(text) < len(str(path)) + 500


def write(path, header, arrays):
    text = header if isinstance(header, str) else json.dumps(header)
    path.write_bytes(pack(text, arrays))


# Damage


def flipped(data, place, path):
    """Flip a bit, and assert that the model is refused by one line, or, of a bit that says nothing,
    the same.
    """
    path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
    said = use(path)
    assert said.isprintable()
    if not said:
        is_same(path, data)


def is_same(path, data):
    """Assert that a file is the same model as these bytes."""
    model = load_model(path)
    path.write_bytes(data)
    same = load_model(path)
    assert {**vars(model), "arrays": None} == {**vars(same), "arrays": None}
    for name, array in same.arrays.items():
        np.testing.assert_array_equal(model.arrays[name], array, strict=True)


@pytest.mark.parametrize("kind", MODELS)
def test_flipped_bits(sound, path, kind):
    data, chance = sound[kind], random.Random(f"flips of {kind}")
    header = 8 + int.from_bytes(data[:8], "little")
    for place in [
        *range(8),
        *chance.sample(range(8, header), 60),
        *chance.sample(range(header, len(data)), 30),
    ]:
        flipped(data, place, path)


@pytest.mark.slow
def test_every_flipped_byte(sound, path):
    for place in range(len(sound["words"])):
        flipped(sound["words"], place, path)


def test_some_beginnings(sound, path):
    data = sound["words"]
    for length in [*range(0, 40), *range(40, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        refused(path)
    path.write_bytes(data + b"\0")
    refused(path)


@pytest.mark.slow
def test_every_beginning(sound, path):
    for length in range(len(sound["words"])):
        path.write_bytes(sound["words"][:length])
        refused(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"x,y\n1,2\n", b"\x80\4\x95", b"PAR1" * 9, b"PK\3\4" * 9, b"\xff" * 64, bytes(64)],
    ids=str,
)
def test_files_of_other_kinds(path, content):
    path.write_bytes(content)
    refused(path)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, says in [
        (tmp_path / "pipe", "is no file"),
        (tmp_path, "is no file"),
        (Path("/dev/zero"), "is no file"),
        (tmp_path / "none", "cannot be read: No such file"),
    ]:
        refused(path, says)


def test_a_file_larger_than_memory(sound, path, monkeypatch):
    path.write_bytes(sound["words"])
    monkeypatch.setattr("nearkin._blocks.available_memory", lambda: 1000)
    refused(path, "does not fit into memory")


# Headers


VALUES = [MISSING, None, True, -1, 0, 2**70, 0.5, float("nan"), "", "text", "\ud800", [], [[]], ["a", "a"], [1, "a"],
          {}, {"n_neighbors": 1}]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", VALUES, ids=lambda value: "missing" if value is MISSING else ascii(value)
)
def test_any_value_for_any_field(sound, path, other):
    for kind in ("words", "graph"):
        header, arrays = parts(sound[kind], path)
        for name, value in header.items():
            for place in [
                (name,),
                *((name, key) for key in (value if isinstance(value, dict) else ())),
            ]:
                changed = json.loads(json.dumps(header))
                part = changed if len(place) == 1 else changed[name]
                if other is MISSING:
                    del part[place[-1]]
                else:
                    part[place[-1]] = other
                write(path, changed, arrays)
                assert use(path).isprintable()


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        ("words", {"format": FORMAT + 1}, f"was written by a newer nearkin (format {FORMAT + 1}): install"),
        ("words", {"format": 4}, "is no nearkin model of this version (format 4): make it again"),
        ("words", {"more": 1}, "is no nearkin model of this version (fields ['more'])"),
        ("words", {"task": "clustering"}, "clustering"),
        ("words", {"task": "regression"}, "its labels"),
        ("words", {"method": "x" * 1000}, "its words"),
        ("words", {"table": "\ud800"}, "surrogates"),
        ("words", encoded(numbers=["width", "width", "depth"]), "'width' more than once"),
        ("words", encoded(numbers=["width", "height", "x" * 1501]), "its names"),
        ("words", encoded(numbers=["width"]), "its "),
        ("words", encoded(numbers=["width", "height", 1]), "its names"),
        ("words", encoded(columns=[]), "its "),
        ("words", encoded(columns=[{"kind": "category"}]), "its column"),
        ("words", encoded(columns=[{"kind": "number", "name": "a", "decimal": ";"}]), "its column"),
        ("words", encoded(columns=[COLOUR | {"kind": "colour"}]), "colour"),
        ("words", encoded(columns=[COLOUR | {"values": ["red", "green", "blue"]}]), "its column 'colour'"),
        ("words", encoded(columns=[COLOUR | {"values": []}]), "its column 'colour'"),
        ("words", encoded(columns=[COLOUR | {"values": [1, 2, 3]}]), "its column 'colour'"),
        ("words", encoded(columns=[COLOUR | {"more": 1}]), "more"),
        ("words", encoded(columns=[DATES | {"layout": "any"}]), "its column 'day'"),
        ("words", encoded(columns=[DATES | {"cycles": ["moon"]}]), "its column 'day'"),
        ("words", encoded(columns=[SHARES | {"shares": [0.5]}]), "its column 'city'"),
        ("words", encoded(columns=[SHARES | {"shares": [0.5, float("inf")]}]), "its column 'city'"),
        ("words", encoded(parameters={"missing": "impute"}), "its columns"),
        ("words", encoded(parameters={"missing": "keep", "missing_values": 5}), "missing_values must be"),
        ("words", encoded(parameters={"missing": "keep", "seed": 5}), "seed"),
        ("words", encoded(indicated=[9]), "out of range"),
        ("words", encoded(indicated=[0]), "its columns"),
        ("words", encoded(medians=["x"]), "'x'"),
        ("words", {"classes": ["kind 0"]}, "its labels"),
        ("words", {"classes": ["kind 1", "kind 0", "kind 2"]}, "its labels"),
        ("words", {"classes": [0, 1, "2"]}, "its labels"),
        ("words", {"classes": [0, 1, 2**70]}, "its labels"),
        ("words", {"n_neighbors": 0}, "its number of neighbours"),
        ("words", {"n_neighbors": 41}, "its number of neighbours"),
        ("words", {"n_rows": 39}, "its rows"),
        ("words", {"soft": 1}, "its soft"),
        ("words", {"score": "r2"}, "its score"),
        ("words", {"held_out": {"score": 0.5}}, "its held-out figures"),
        ("words", {"held_out": FIGURES | {"accuracy": 0.5}}, "its held-out figures"),
        ("words", {"held_out": FIGURES | {"low": 0.1}}, "its held-out figures"),
        ("words", {"held_out": FIGURES | {"low": 0.1, "high": 0.0}}, "its held-out figures"),
        ("words", {"held_out": FIGURES | {"raw": float("nan")}}, "its held-out figures"),
        ("words", {"held_out": FIGURES | {"folds": 0.0}}, "its held-out figures"),
        ("words", {"version": "x" * 1000}, "its words"),
        ("numbers", {"classes": ["a"]}, "its labels"),
        ("graph", {"graph": {}}, ""),
        ("graph", {"graph": GRAPH | {"bandwidth": 0.0}}, "its graph"),
        ("graph", {"graph": GRAPH | {"n_neighbors": 0}}, "its graph"),
        ("words", {"graph": GRAPH}, "rule.sources"),
    ],
)  # fmt: skip
def test_headers_that_do_not_fit(sound, path, kind, changes, says):
    header, arrays = parts(sound[kind], path)
    write(path, header | changes, arrays)
    refused(path, says)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", f'{{"format": {FORMAT}}}', "[" * 100_000, '{"format": 1e999}']
)
def test_headers_that_are_none(sound, path, text):
    _, arrays = parts(sound["words"], path)
    write(path, text, arrays)
    refused(path)


def test_a_header_that_lacks_a_field(sound, path):
    header, arrays = parts(sound["words"], path)
    del header["version"]
    write(path, header, arrays)
    refused(
        path,
        "is no nearkin model of this version (fields ['version']): make it again with `nearkin "
        "compare",
    )


# Arrays


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_arrays_that_do_not_fit(sound, path, kind):
    header, arrays = parts(sound[kind], path)
    for name, array in arrays.items():
        changes = [
            array[:-1],
            array[..., None],
            array.astype(np.complex64),
            array.astype(bool),
            -1 - abs(array),
        ]
        if array.dtype.kind == "f":
            changes += [np.full_like(array, np.nan), np.full_like(array, np.inf), array.astype(int)]
        for number, change in enumerate([None, *changes]):
            others = {key: value for key, value in arrays.items() if key != name}
            write(
                path,
                header,
                others if change is None else others | {name: np.ascontiguousarray(change)},
            )
            said = use(path)
            assert said.isprintable()
            # without a spectrum or mean, and with a shorter spectrum or other numbers, it is as
            # good a model
            assert said or change is None or name == "spectrum" or number == 5, (name, number)
    write(path, header, arrays | {"more": np.zeros(3)})
    refused(path, "more")


def test_sparse_rows_that_give_a_value_twice(sound, path):
    header, arrays = parts(sound["sparse"], path)
    first = np.flatnonzero(np.diff(arrays["voters.indptr"]) > 1)[0]
    start = arrays["voters.indptr"][first]
    arrays["voters.indices"][start + 1] = arrays["voters.indices"][start]
    write(path, header, arrays)
    refused(path, "its matrices")


def test_a_file_that_is_refused_ends_in_exit_code_2(sound, path, capsys):
    path.write_bytes(sound["words"][:-1])
    for command in (
        ["inspect", str(path)],
        ["predict", str(path), "iris"],
        ["transform", str(path), "iris"],
    ):
        assert main(command) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"nearkin: {path} is no nearkin model, or a damaged one")
        assert err.count("\n") == 1
