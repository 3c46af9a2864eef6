"""A model goes to disk, and another process takes it from there: only arrays, numbers and words are on the way."""

import json
import subprocess
import sys
import zipfile
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import sklearn
import skops.io

import nearkin
from nearkin.app import console, model_file, pictures
from nearkin.app.cli import main
from nearkin.app.encoder import MAX_ONE_HOT
from nearkin.app.model import KEPT, MAX_NAME, embed, predict
from nearkin.app.model_file import CLASSES, TRUSTED, ModelFileError, load_model, save_model
from nearkin.app.tables import read_rows, read_table
from nearkin.estimators.base import LinearEmbedding
from nearkin.evaluation import RAW

from .winners import FOR_SPARSE_ROWS, METHODS, winner, write_tables

TABLES = {"words": "csv", "dense": "npz", "single": "npz", "sparse": "npz"}
WINNERS = [
    (table, name, scale)
    for table in TABLES
    for name in (FOR_SPARSE_ROWS if table == "sparse" else METHODS)
    for scale in (True, False)
]
PREDICT = """
import json, sys
from nearkin.app.model import predict
from nearkin.app.model_file import load_model
from nearkin.app.tables import read_rows
for line in sys.stdin:
    path, rows = json.loads(line)
    model, remarks = load_model(path)
    found = predict(model, read_rows(rows, model.encoder)[0])
    print(json.dumps([remarks, found.answer["label"].tolist(), found.nearest.tolist(), found.distance.tolist()]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("winners")
    write_tables(folder)
    return folder


@pytest.fixture(scope="module")
def models(folder):
    """Every winner on every table."""
    tables = {
        kind: read_table(str(folder / f"{kind} table.{suffix}"), "kind" if kind == "words" else None)
        for kind, suffix in TABLES.items()
    }
    return {(kind, name, scale): winner(name, tables[kind], scale=scale) for kind, name, scale in WINNERS}


@pytest.fixture(scope="module")
def files(folder, models):
    """The file of every winner."""
    paths = {key: folder / f"{number}.skops" for number, key in enumerate(models)}
    for key, path in paths.items():
        save_model(models[key], path)
    return paths


@pytest.fixture(scope="module")
def elsewhere(folder, files):
    """What another process says to the new rows, by the file of every winner."""
    asked = "".join(json.dumps([str(path), new_rows(folder, key[0])]) + "\n" for key, path in files.items())
    done = subprocess.run([sys.executable, "-c", PREDICT], input=asked, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return dict(zip(files, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.fixture
def model(models):
    return models["words", "NMMP", True]


@pytest.fixture
def path(tmp_path, model):
    save_model(model, tmp_path / "m.skops")
    return tmp_path / "m.skops"


def new_rows(folder, kind):
    return str(folder / f"{kind} new.{TABLES[kind]}")


def path_of(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


def vars_of(part):
    """Return what a step holds, and what its graph holds."""
    return {name: vars_of(value) if is_dataclass(value) else value for name, value in vars(part).items()}


def schema(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("schema.json"))


def nodes(part):
    """Yield every node of a schema."""
    if isinstance(part, dict):
        if "__loader__" in part:
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for child in part:
            yield from nodes(child)


def rewritten(path, edit):
    """Let `edit` change the schema of a file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    changed = json.loads(members["schema.json"])
    edit(changed)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (members | {"schema.json": json.dumps(changed).encode()}).items():
            archive.writestr(name, data)


def refused(path, says):
    """Assert that a file is refused by one line that begins with its name."""
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path} ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


# There and back


@pytest.mark.parametrize(("kind", "name", "scale"), WINNERS)
def test_another_process_gives_identical_labels(folder, models, elsewhere, kind, name, scale):
    model = models[kind, name, scale]
    remarks, label, nearest, distance = elsewhere[kind, name, scale]
    expected = predict(model, read_rows(new_rows(folder, kind), model.encoder)[0])
    assert remarks == []
    assert label == expected.answer["label"].tolist()
    assert nearest == expected.nearest.tolist()
    np.testing.assert_allclose(distance, expected.distance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kind", "name", "scale"), WINNERS)
def test_everything_comes_back_as_it_was(models, files, kind, name, scale):
    model, (loaded, _) = models[kind, name, scale], load_model(files[kind, name, scale])
    for field in fields(model):
        before, after = getattr(model, field.name), getattr(loaded, field.name)
        if field.name == "steps":
            before, after = ([vars_of(step) for step in steps] for steps in (before, after))
            assert [type(step) for step in loaded.steps] == [type(step) for step in model.steps]
        elif field.name == "encoder":
            before, after = vars(before), vars(after)
        np.testing.assert_equal(after, before)


@pytest.mark.parametrize("labels", [np.array([3, -1]), np.array(["no", "yés"]), np.array([False, True])], ids=str)
def test_labels_keep_their_type(folder, labels):
    with np.load(folder / "dense table.npz") as archive:
        np.savez(folder / "labels.npz", X=archive["X"], y=labels[archive["y"] % 2])
    model = winner(RAW, read_table(str(folder / "labels.npz")))
    save_model(model, folder / "labels.skops")
    loaded, _ = load_model(folder / "labels.skops")
    found = predict(loaded, loaded.coordinates).answer["label"]
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, predict(model, model.coordinates).answer["label"])
    np.testing.assert_array_equal(loaded.classes, np.sort(labels))


def test_maps_of_single_precision_stay_so(models, files):
    for name in ("NMMP", "DNE", "PCA"):
        loaded, _ = load_model(files["single", name, True])
        assert loaded.map.components_.dtype == np.float32
        assert loaded.coordinates.dtype == np.float64


def test_sparse_rows_stay_sparse(folder, files):
    loaded, _ = load_model(files["sparse", RAW, True])
    rows, _ = read_rows(new_rows(folder, "sparse"), loaded.encoder)
    assert loaded.voters().nnz < 0.5 * np.prod(loaded.voters().shape)
    assert embed(loaded, rows).nnz == rows.nnz


def test_as_many_columns_of_text_as_can_be_encoded(tmp_path):
    names = [f"column {number}" for number in range(MAX_ONE_HOT // 2)]
    lines = [",".join([*names, "kind"])]
    lines += [",".join([f"word {(row + number) % 2}" for number in range(len(names))] + [f"k{row % 4 // 2}"])
              for row in range(8)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(lines))
    model = winner(RAW, read_table(str(tmp_path / "t.csv"), "kind"))
    save_model(model, tmp_path / "m.skops")
    loaded, _ = load_model(tmp_path / "m.skops")
    assert loaded.encoder.feature_names == model.encoder.feature_names
    assert len(loaded.encoder.feature_names) == MAX_ONE_HOT


# What is in the file


@pytest.mark.parametrize(("kind", "name", "scale"), WINNERS)
def test_nothing_but_arrays_numbers_and_words(files, kind, name, scale):
    path = files[kind, name, scale]
    values = [json.loads(node["content"]) for node in nodes(schema(path)) if node["__loader__"] == "JsonNode"]
    assert {type(value) for value in values} <= {str, int, float, bool, type(None)}
    assert {node["__loader__"] for node in nodes(schema(path))} == {
        "ObjectNode", "DictNode", "ListNode", "JsonNode", "NdArrayNode", "TypeNode"
    }  # fmt: skip
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member != "schema.json":
                with archive.open(member) as file:
                    assert np.load(file, allow_pickle=False).dtype.kind in "fiU"
    assert "random_state_" not in json.dumps(schema(path))


def test_callbacks_and_random_generators_stay_behind(folder, monkeypatch):
    learned = METHODS["NCA"].estimator.fit

    def watched(self, X, y):
        learned.__func__(self, X, y)
        self._skl_callbacks, self.random_state_ = [print], np.random.default_rng(0)
        return self

    monkeypatch.setattr(type(METHODS["NCA"].estimator), "fit", watched)
    model = winner("NCA", read_table("iris"))
    assert {"_skl_callbacks", "random_state_"}.isdisjoint(vars(model.map))
    save_model(model, folder / "watched.skops")
    load_model(folder / "watched.skops")


def test_every_estimator_can_be_saved_and_is_trusted():
    ours = {value for value in vars(nearkin).values() if isinstance(value, type) and issubclass(value, LinearEmbedding)}
    ours -= {nearkin.PairNCA}  # it learns from pairs, which no table holds
    assert len(ours) >= 3
    assert ours <= set(KEPT)
    assert {path_of(kind) for kind in ours} <= set(TRUSTED)
    assert {path_of(kind) for kind in KEPT} < set(CLASSES)
    assert {type(method.estimator) for method in METHODS.values() if method.estimator is not None} <= set(KEPT)


@pytest.mark.parametrize(("kind", "name", "scale"), WINNERS)
def test_skops_alone_can_open_it(models, files, kind, name, scale):
    path = files[kind, name, scale]
    assert set(skops.io.get_untrusted_types(file=path)) <= set(TRUSTED)
    loaded = skops.io.load(path, trusted=TRUSTED)
    np.testing.assert_equal(loaded.coordinates, models[kind, name, scale].coordinates)
    assert repr(loaded.steps) == repr(models[kind, name, scale].steps)


def test_names_are_kept_so_that_they_can_be_shown(folder):
    odd = replace(read_table("iris"), name="caf\udce9", target="long " * 1000)
    model = winner("PCA", odd)
    save_model(model, folder / "odd.skops")
    loaded, _ = load_model(folder / "odd.skops")
    assert (loaded.table, len(loaded.target)) == ("caf?", MAX_NAME)


# In use


@pytest.mark.parametrize("name", METHODS)
def test_every_winner_can_be_shown(files, tmp_path, capsys, name):
    loaded, _ = load_model(files["words", name, True])
    console.describe(loaded, files["words", name, True])
    out = capsys.readouterr().out
    assert f"{name}, learned from 40 rows of words table (6 features, 3 classes of 'kind')" in out
    assert ("colour=green" in out) == loaded.is_linear
    pictures.draw_model(loaded, tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [name for name in METHODS if name != RAW])
def test_coordinates_have_the_names_that_the_map_gives_them(models, name):
    model = models["dense", name, True]
    named = type(model.map).__name__.lower()
    assert model.names == [f"{named}{number}" for number in range(model.coordinates.shape[1])]


@pytest.mark.parametrize("name", METHODS)
def test_the_stretch_is_how_far_a_unit_step_moves_a_row(models, name):
    model = models["dense", name, False]
    p = len(model.encoder.feature_names)
    length = np.linalg.norm(model.transform(np.eye(p)) - model.transform(np.zeros((1, p))), axis=1)
    np.testing.assert_allclose(model.stretch, length / np.sqrt(np.mean(length**2)), rtol=1e-6)


def test_blocks_of_rows_change_no_prediction(models, monkeypatch):
    model = models["dense", "NMMP", True]
    rows = np.random.default_rng(0).normal(size=(40, len(model.encoder.feature_names)))
    whole = predict(model, rows)
    monkeypatch.setattr("nearkin.app.model.VOTES_PER_BLOCK", 7 * (model.n_neighbors + len(model.classes)))
    monkeypatch.setattr("nearkin.app.model.ROWS_PER_BLOCK", 7)
    done = []
    parts = predict(model, rows, lambda n_done, total: done.append((n_done, total)))
    assert done == [(7, 40), (14, 40), (21, 40), (28, 40), (35, 40), (40, 40)]
    np.testing.assert_equal(vars(parts), vars(whole))


@pytest.mark.parametrize("name", [RAW, "PCA", "LDA", "NCA"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("command", ["predict", "transform"])
def test_sparse_rows_for_a_model_of_dense_ones_end_in_an_answer_or_a_line(
    folder, files, capsys, tmp_path, name, scale, command
):
    with np.load(folder / "sparse new.npz") as archive:
        sparse = {key: archive[key] for key in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "sparse.npz", **sparse, feature_names=np.array([f"column {j}" for j in range(9)]))
    out = ["-o", str(tmp_path / "out.npz"), "-q"]
    code = main([command, str(files["dense", name, scale]), str(tmp_path / "sparse.npz"), *out])
    assert (code, capsys.readouterr().err.count("\n")) in [(0, 0), (2, 1)]


# Versions


def test_another_minor_version_of_scikit_learn_is_told_once(path, model, capsys):
    def age(schema):
        for node in nodes(schema):
            if node.get("content") == json.dumps(sklearn.__version__):
                node["content"] = json.dumps("1.2.3")
                node["__id__"] += 1

    rewritten(path, age)
    loaded, remarks = load_model(path)
    assert remarks == [
        f"{path} was saved with scikit-learn 1.2.3, this is {sklearn.__version__}, and what it gives may differ: "
        "save it again with this one."
    ]
    np.testing.assert_array_equal(loaded.coordinates, model.coordinates)


def test_another_patch_of_scikit_learn_is_not_worth_a_word(path, model):
    minor = ".".join(sklearn.__version__.split(".")[:2])
    save_model(replace(model, versions=model.versions | {"scikit-learn": f"{minor}.99"}), path)
    assert load_model(path)[1] == []


def test_another_version_whose_attributes_are_unknown_is_the_reason_given(path, model):
    vars(model.steps[0])["with_what"] = 1
    try:
        save_model(replace(model, versions=model.versions | {"scikit-learn": "9.1.0"}), path)
    finally:
        del vars(model.steps[0])["with_what"]
    refused(path, f"was saved with scikit-learn 9.1.0, this is {sklearn.__version__}, which cannot use it: save it")


def test_a_newer_format_asks_for_a_newer_nearkin(path, model):
    save_model(replace(model, format=model.format + 1), path)
    refused(path, f"was written by a newer nearkin (format {model.format + 1}): install a newer nearkin.")


def test_a_newer_skops_is_named(path):
    rewritten(path, lambda schema: schema.update(protocol=99))
    refused(path, "skops protocol 99")


# What is no model


@pytest.mark.parametrize("length", [0, 1, 21, 22, 1000, -1])
def test_half_a_file(path, length):
    path.write_bytes(path.read_bytes()[:length])
    refused(path, "is no nearkin model, or not all of it: give a file written by `nearkin compare --save`.")


def test_a_changed_byte_is_noticed(path):
    data = bytearray(path.read_bytes())
    data[data.index(b"held_out")] ^= 1
    path.write_bytes(data)
    refused(path, "is damaged, or no nearkin model (Bad CRC-32 for file 'schema.json'): save it again.")


def test_files_of_others(tmp_path, folder):
    skops.io.dump([1, 2], tmp_path / "list.skops")
    refused(tmp_path / "list.skops", "is a skops file of builtins.list, no nearkin model")
    refused(folder / "dense table.npz", "is no nearkin model")
    refused(folder / "words table.csv", "is no nearkin model")
    refused(tmp_path, "is no nearkin model")
    refused(tmp_path / "missing.skops", "cannot be read: No such file")


def test_a_file_that_does_not_fit_into_memory(path, monkeypatch):
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 1000)
    refused(path, "does not fit into memory (reading it needs about")


def test_what_the_command_says(path, folder, capsys):
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["predict", str(path), new_rows(folder, "words")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"nearkin: {path} {model_file.FOREIGN}\n"
