"""A model file that is damaged, or something else, is refused by one line."""

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from nearkin.app.cli import main
from nearkin.app.model import load_model, save_model
from nearkin.app.readers import TableError
from nearkin.app.saved_file import write_parts
from nearkin.app.tables import read_table

from .test_model_file import assert_same
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


def refused(path, says=""):
    """Assert that a file is refused by one printable line that begins with its name."""
    with pytest.raises(TableError) as caught:
        load_model(path)
    text = str(caught.value)
    assert text.startswith(f"{path} ")
    assert says in text
    assert "\n" not in text
    assert len(text) < len(str(path)) + 500


def flipped(data, place, path):
    """Flip a bit, and assert that the model is refused by one line, or, of a bit that says nothing,
    the same.
    """
    path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
    try:
        load_model(path)
    except TableError:
        refused(path)
    else:
        is_same(path, data)


def is_same(path, data):
    """Assert that a file is the same model as these bytes."""
    model = load_model(path)
    path.write_bytes(data)
    same = load_model(path)
    assert_same(model, same)


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
def test_flipped_bytes_everywhere(sound, path):
    for place in range(0, len(sound["words"]), 3):
        flipped(sound["words"], place, path)


def test_some_beginnings(sound, path):
    data = sound["words"]
    for length in [*range(0, 40), *range(40, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        refused(path)
    path.write_bytes(data + b"\0")
    refused(path)


@pytest.mark.slow
def test_beginnings_everywhere(sound, path):
    for length in range(0, len(sound["words"]), 3):
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
        (tmp_path / "pipe", "is not a file"),
        (tmp_path, "is not a file"),
        (Path("/dev/zero"), "is not a file"),
        (tmp_path / "none", "cannot be read: No such file"),
    ]:
        refused(path, says)


def test_a_file_larger_than_memory(sound, path, monkeypatch):
    path.write_bytes(sound["words"])
    monkeypatch.setattr("nearkin._blocks.available_memory", lambda: 1000)
    refused(path, "does not fit into memory")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 10}, "was written by a newer nearkin (format 10): install"),
        ({"format": 4}, "has a format that nearkin no longer reads (4): make it again"),
        ({"more": 1}, "unexpected keyword argument 'more'"),
        ({"adapter": {}, "format": 1}, "is an adapter of vectors, which does not predict"),
        ({"graph": {"n_neighbors": 5}}, "graph.rows"),
    ],
)
def test_headers_of_other_files(sound, path, changes, says):
    header, arrays = parts(sound["words"], path)
    write_parts(path, header | changes, arrays)
    refused(path, says)


def test_a_header_that_lacks_a_field(sound, path):
    header, arrays = parts(sound["words"], path)
    del header["version"]
    write_parts(path, header, arrays)
    refused(path, "missing 1 required positional argument: 'version'")


def test_arrays_that_are_not_all_there(sound, path):
    header, arrays = parts(sound["words"], path)
    for name in ("components", "answers", "rows", "voters"):
        write_parts(path, header, {other: arrays[other] for other in arrays if other != name})
        refused(path)


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
        assert err.startswith(f"nearkin: {path} is not a nearkin model, or is damaged")
        assert err.count("\n") == 1
