"""A model file that is damaged, forged, or something else, is refused by one line."""

import os
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from nearkin.app import inspect, saved_fields
from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.saved_fields import Fields, adapter_fields, model_fields
from nearkin.app.saved_file import write_parts
from nearkin.app.tables.model import as_table, load_model, predict, save_model
from nearkin.app.tables.reading import read_table
from nearkin.app.vectors.adapter_file import SavedAdapter, load_adapter, save_adapter
from nearkin.comparison import all_methods
from nearkin.vectors import EmbeddingAdapter, MatchRules

from .forgeries import fields, forged_arrays, forgeries, parts
from .tables.test_model import assert_same
from .winners import HARD, METHODS, SOFT, winner, write_tables

MODELS = {
    "words": ("NMMP", "words table.csv", "kind", "classification"),
    "dense": ("LDA", "dense table.npz", None, "classification"),
    "sparse": ("raw k-NN", "sparse table.npz", None, "classification"),
    "gaps": ("NMMP", "gaps table.csv", "kind", "classification"),
    "numbers": ("PCA", "words table.csv", "width", "regression"),
    "graph": ("TDL", "dense table.npz", None, "classification"),
    "sparse graph": ("TDL", "sparse table.npz", None, "classification"),
    "columns": ("raw k-NN", "columns.csv", "kind", "classification"),
    "texts": ("raw k-NN", "texts.csv", "kind", "classification"),
    "all vote": ("NCA tables", "gaps table.csv", "kind", "classification"),
    "all vote for numbers": ("NCA tables", "words table.csv", "width", "regression"),
    "all sparse rows vote": ("NCA tables", "sparse table.npz", None, "classification"),
}
ADAPTERS = {"adapter": None, "int8": "int8", "binary": "binary"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The file of every model and adapter, as bytes."""
    folder, files = tmp_path_factory.mktemp("hostile"), {}
    write_tables(folder)
    masses = ["unknown" if i % 7 == 0 else f"{i % 4} kg" for i in range(250)]
    lines = [
        f"{mass},town {i % 9},{1 + i % 28}.5.2024,{i % 2 == 0}\n" for i, mass in enumerate(masses)
    ]
    (folder / "columns.csv").write_text("mass,town,day,kind\n" + "".join(lines))
    lines = [
        f"{('fox', 'owl', 'hen')[i % 3]} {i},{'hay; ' * (i % 2)}{'oats; ' * (i % 3)}corn,"
        f"{i % 2 == 0}\n"
        for i in range(60)
    ]
    (folder / "texts.csv").write_text("title,food,kind\n" + "".join(lines))
    regression = {method.name: method for method in all_methods("regression")}
    path = folder / "m.safetensors"
    for kind, (name, table, target, task) in MODELS.items():
        vote = SOFT if kind in ("dense", "numbers") else HARD
        method = (regression if task == "regression" else METHODS).get(name, name)
        data = read_table(str(folder / table), target, task=task)
        save_model(winner(method, data, scale=kind != "dense", vote=vote), path)
        files[kind] = path.read_bytes()
    for kind, quantize in ADAPTERS.items():
        save_adapter(adapter(quantize), path)
        files[kind] = path.read_bytes()
    return files


def adapter(quantize):
    """Return an adapter, which has rules for matches unless it makes binary codes."""
    rng = np.random.default_rng(0)
    arrays = {
        "components": rng.normal(size=(4, 6)).astype(np.float32),
        "bias": rng.normal(size=4).astype(np.float32),
        "scale": np.float32([2]),
    }
    rule = {
        "coefficients": np.array([1.0, 0, 0, 0]),
        "logistic": np.array([9.0, -4.0]),
        "knots": np.array([[0.0, 1], [0, 1]]),
        "curve": np.array([[-0.5, 0.5], [0.8, 1], [0.7, 0.96], [0.9, 0.5], [np.nan, np.nan]]),
        "n_queries": np.array([60]),
    }
    arrays_of_rules = {f"{part}/{name}": rule[name] for part in ("", "seen") for name in rule}
    rules = None if quantize == "binary" else MatchRules.from_arrays(arrays_of_rules)
    return SavedAdapter(
        EmbeddingAdapter.from_arrays(arrays, quantize=quantize),
        "adapter 4",
        "",
        [f"column {i}" for i in range(6)],
        "MAP",
        "seen",
        {
            "adapter": 0.9,
            "raw": 0.8,
            "low": -np.inf,
            "high": np.inf,
            "p_value": np.nan,
            "n_queries": 60,
        },
        "vectors",
        pair_rules=rules,
        list_rules=rules,
    )


def load(path, kind):
    """Load a file of this kind, and do with it what the commands do."""
    if kind in ADAPTERS:
        loaded = load_adapter(path)
        inspect.describe_adapter(loaded, str(path))
        if loaded.pair_rules is not None:
            rules = inspect.thresholds(loaded.pair_rules, loaded.name, loaded.unanswerable)
            inspect.say_thresholds(rules)
        loaded.transform(np.ones((2, 6), np.float32))
        return
    loaded = load_model(path)
    X = np.ones((2, len(loaded.encoder.get_feature_names_out())))
    with np.errstate(all="ignore"):
        inspect.describe(loaded, path)
        coverage = None if loaded.held_out_rows is None else 0.8
        rows = csr_array(X) if issparse(loaded.arrays["voters"]) else X
        as_table(loaded, predict(loaded, rows, coverage=coverage))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.safetensors"


def refused(path, says=""):
    """Assert that a file is refused by one printable line that begins with its name."""
    with pytest.raises(TableError) as caught:
        load_model(path)
    is_refusal(str(caught.value), path, says)


def is_refusal(text, path, says=""):
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


@pytest.mark.long
@pytest.mark.parametrize("kind", [*MODELS][:7])
def test_flipped_bits(sound, path, kind):
    data, chance = sound[kind], random.Random(f"flips of {kind}")
    header = 8 + int.from_bytes(data[:8], "little")
    for place in [
        *range(8),
        *chance.sample(range(8, header), 60),
        *chance.sample(range(header, len(data)), 30),
    ]:
        flipped(data, place, path)


@pytest.mark.long
def test_flipped_bytes_everywhere(sound, path):
    for place in range(0, len(sound["words"]), 3):
        flipped(sound["words"], place, path)


def test_some_beginnings(sound, path):
    data = sound["words"]
    for length in [*range(0, 40), *range(40, len(data), 997), len(data) - 1]:
        path.write_bytes(data[:length])
        refused(path)
    path.write_bytes(data + b"\0")
    refused(path)


@pytest.mark.long
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
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 1000)
    refused(path, "does not fit into memory")


def test_forgeries_are_of_every_field(sound):
    """What is declared is in some of the files, so forgeries of their fields are of all fields."""
    files = [parts(data) for data in sound.values()]
    found = {name for header, arrays in files for path, _ in fields(header) for name in path}
    found |= {name.rpartition("/")[2] for _, arrays in files for name in arrays}
    declared = [one for one in vars(saved_fields).values() if isinstance(one, Fields)]
    declared += [*saved_fields.COLUMNS.values(), Fields(saved_fields.RULE)]
    for header, arrays in files:
        declare = partial(model_fields, header) if "task" in header else adapter_fields
        declared += [declare(arrays), declare(arrays).required["arrays"]]
    names = {name.rpartition("/")[2] for one in declared for name in (*one.required, *one.optional)}
    of_other_versions_or_options = {"vote", "lines", "class_weights", "groups"}
    of_other_versions_or_options |= {"shares", "missing_share"}
    by_their_parts = {"arrays", "voters", "graph.rows", "held_out_cells"}
    assert names <= found | of_other_versions_or_options | by_their_parts


def n_refused(path, kind, forgeries):
    """Return how many forgeries are refused, by one line; assert that the others can be used."""
    refusals = 0
    for name, header, arrays in forgeries:
        write_parts(path, header, arrays)
        try:
            load(path, kind)
        except TableError as error:
            is_refusal(str(error), path)
            refusals += 1
        except Exception as error:
            raise AssertionError(f"{kind}: {name}") from error
    return refusals


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("kind", [*MODELS, *ADAPTERS])
def test_some_forgeries(sound, path, kind, capsys):
    some = random.Random(kind).sample(list(forgeries(sound[kind])), 20)
    assert n_refused(path, kind, some) > 8


@pytest.mark.long
@pytest.mark.parametrize("kind", [*MODELS, *ADAPTERS])
def test_every_forgery(sound, path, kind, capsys):
    assert n_refused(path, kind, forgeries(sound[kind])) > 300


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sparse", "sparse graph", "all sparse rows vote"])
def test_places_in_sparse_arrays(sound, path, kind, capsys):
    """SciPy trusts them, and ends the process by reading beyond its memory."""
    header, arrays = parts(sound[kind])
    places = ("indices", "indptr")
    forged = [
        (name, header, changed)
        for name, changed in forged_arrays(arrays)
        if name.partition(":")[0].endswith(places)
    ]
    assert n_refused(path, kind, forged) > 30


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 11}, "was written by a newer nearkin (format 11): install"),
        ({"format": 4}, "has a format that nearkin no longer reads (4): make it again"),
        ({"format": np.nan}, "its header has no format"),
        ({"more": 1}, "more is not a field of such a file"),
        ({"adapter": {}, "format": 1}, "is an adapter of vectors, which does not predict"),
        ({"graph": {"n_neighbors": 5}}, "arrays.rule.sources is missing"),
        ({"task": "x"}, "task is 'x', not one of 'classification', 'regression'): make it again"),
        ({"n_neighbors": 41}, "n_neighbors is 41, not a number from 1 to 40"),
    ],
)
def test_headers_of_other_files(sound, path, changes, says):
    header, arrays = parts(sound["words"])
    write_parts(path, header | changes, arrays)
    refused(path, says)


def test_what_a_header_counts_is_there(sound, path):
    header, arrays = parts(sound["dense"])
    write_parts(path, header | {"columns": header["columns"] | {"n_features": 10**9}}, arrays)
    refused(
        path,
        "columns.n_features is 1000000000, not a number from 6 to 6): make it again with `nearkin compare",
    )
    write_parts(path, header, arrays | {"components": np.ones((2, 7))})
    refused(path, "size 7 is different from 6")
    write_parts(path, header, arrays | {"voters": arrays["voters"] * np.nan})
    refused(path, "a number of arrays.voters is nan, not in its range")


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
