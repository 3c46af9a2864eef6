"""A model goes to disk, and another process takes it from there: only arrays, numbers and words are
in the file.
"""

import json
import subprocess
import sys
from dataclasses import fields, replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from scipy.sparse import issparse

from nearkin.app import inspect
from nearkin.app.files.readers import Reading
from nearkin.app.saved_fields import ENCODER, Sizes
from nearkin.app.tables.model import (
    embed,
    far_features,
    learned_model,
    load_model,
    predict,
    save_model,
)
from nearkin.app.tables.reading import read_rows, read_table
from nearkin.app.tables.report import learned_columns
from nearkin.comparison import RAW, Vote, all_methods, compare
from nearkin.plotting import ColumnsDisplay
from nearkin.tables import TableEncoder
from nearkin.tables.votes import Expert, LocalLines, Mixture, SoftVote

from ..winners import FOR_SPARSE_ROWS, HARD, METHODS, N_ROWS, SOFT, fitted, winner, write_tables

PREDICT = """
import json, sys
from nearkin.app.tables.model import predict
from nearkin.app.tables.model import load_model
from nearkin.app.tables.reading import read_rows
model = load_model(sys.argv[1])
found = predict(model, read_rows(sys.argv[2], model.encoder)[0])
print(json.dumps([found["label"].tolist(), found["nearest"].tolist(), found["distance"].tolist()]))
"""


TEXT = ("words", "gaps")  # kinds of tables that are CSV files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("winners")
    write_tables(folder)
    return folder


@pytest.fixture(scope="module")
def table(folder):
    """Return a table by its kind."""
    return lambda kind: read_table(str(folder / f"{kind} table.{'csv' if kind in TEXT else 'npz'}"),
                                   "kind" if kind in TEXT else None)  # fmt: skip


@pytest.fixture
def again(tmp_path):
    """Return a model as it comes back from its file."""

    def through_file(model):
        save_model(model, tmp_path / "m.safetensors")
        return load_model(tmp_path / "m.safetensors")

    return through_file


@pytest.fixture(scope="module")
def gaps(folder):
    """Return a table with gaps, and the comparison and pipeline of the predictor for tables."""
    data = read_table(str(folder / "gaps table.csv"), "kind")
    return data, *fitted("NCA tables", data)


def assert_same(loaded, model):
    """Assert that two models have the same fields and arrays."""
    for field in fields(model):
        if field.name != "arrays":
            np.testing.assert_equal(getattr(loaded, field.name), getattr(model, field.name))
    assert set(loaded.arrays) == set(model.arrays)
    for name, array in model.arrays.items():
        found = loaded.arrays[name]
        assert issparse(found) == issparse(array)
        if issparse(array):
            found, array = found.toarray(), array.toarray()
        np.testing.assert_array_equal(found, array, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "scale"),
    [
        *(("dense", name, True) for name in METHODS),
        *(("sparse", name, True) for name in FOR_SPARSE_ROWS),
        *(
            (kind, name, False)
            for kind in ("dense", "words")
            for name in (RAW, "PCA", "LDA", "NMMP", "TDL")
        ),
        *(("sparse", name, False) for name in (RAW, "LPP", "TDL")),
        *(
            ("gaps", name, scale)
            for name in (RAW, "NMMP", "TDL", "NCA tables")
            for scale in (True, False)
        ),
        *(("single", name, True) for name in ("PCA", "DNE")),
    ],
)
def test_a_file_maps_and_predicts_as_the_fitted_pipeline(folder, table, again, kind, name, scale):
    data = table(kind)
    comparison, pipeline = fitted(name, data, scale=scale, vote=SOFT)
    model = learned_model(comparison, data)
    loaded = again(model)
    assert_same(loaded, model)
    rows, _, _ = read_rows(
        str(folder / f"{kind} new.{'csv' if kind in TEXT else 'npz'}"), loaded.encoder
    )
    Z, expected = embed(loaded, rows), rows.astype(np.float64)
    for _, step in pipeline.steps:
        expected = step.transform(expected) if hasattr(step, "transform") else expected
    assert issparse(Z) == issparse(expected)
    single = kind == "single" or (kind, name) == ("sparse", "NCA tables")
    # the pipeline's voters have single precision, too, or its features; its maps of NCA tables always
    tolerance = 1e-4 if single else 1e-7 if name == "NCA tables" else 1e-9
    Z, expected = (part.toarray() if issparse(part) else part for part in (Z, expected))
    atol = (1e-6 if kind == "sparse" and single else 1e-9) * np.abs(expected).max()
    np.testing.assert_allclose(Z, expected, rtol=1e-9, atol=atol)
    found, P = predict(loaded, rows), pipeline.predict_proba(rows)
    np.testing.assert_array_equal(found["label"], pipeline.predict(rows))
    share = found["probability" if name == "NCA tables" else "vote"]
    np.testing.assert_allclose(share, P.max(axis=1), rtol=tolerance)
    np.testing.assert_array_equal(found["nearest"], predict(model, rows)["nearest"])


@pytest.mark.slow
def test_a_vote_of_all_rows(folder, gaps, again, capsys):
    """Columns, gaps and the vote of all rows are in the file: new rows are predicted as by the
    fitted predictor.
    """
    data, comparison, pipeline = gaps
    model = again(learned_model(comparison, data))
    rows, _, _ = read_rows(str(folder / "gaps new.csv"), model.encoder)
    found = predict(model, rows)
    np.testing.assert_array_equal(found["label"], pipeline.predict(rows))
    np.testing.assert_allclose(
        found["probability"], pipeline.predict_proba(rows).max(axis=1), rtol=1e-6
    )
    distances, near = pipeline[-1].kneighbors(rows)
    np.testing.assert_allclose(found["distance"], distances, atol=1e-6)
    np.testing.assert_array_equal(found["nearest"], near)
    assert (str(model.vote), model.effects.names) == (
        "all rows",
        ["width", "price", "day", "colour"],
    )


def test_the_bars_of_columns_are_the_same_in_text_picture_and_page(
    folder, gaps, again, capsys, monkeypatch, undrawn
):
    """All are `feature_effects_` of the predictor that is saved."""
    data, comparison, pipeline = gaps
    effects = dict(zip(data.encoder.feature_names_in_, pipeline[-1].feature_effects_, strict=True))
    model = again(learned_model(comparison, data))
    inspect.describe(model, folder / "gaps table.csv")
    text = capsys.readouterr().out.partition("How far each column moves the rows")[2]
    said = {
        line.split()[-1]: float(line.split()[0]) for line in text.splitlines()[1:] if line.strip()
    }
    assert said == {name: round(effect, 2) for name, effect in effects.items()}
    flat = replace(model, arrays=model.arrays | {"effects": 0 * model.effects.lengths})
    inspect.describe(flat, folder / "gaps table.csv")
    assert "█" not in capsys.readouterr().out  # nothing beside 0.00
    steep = replace(model, arrays=model.arrays | {"effects": 0 * model.effects.lengths + 1})
    inspect.describe(steep, folder / "gaps table.csv")
    assert "1.00 ████████████████████ price" in capsys.readouterr().out
    drawn = []
    monkeypatch.setattr(ColumnsDisplay, "plot", lambda self, ax: drawn.append(self))
    inspect.draw_model(model, folder / "effects.png")
    assert dict(zip(drawn[0].names, drawn[0].effects, strict=True)) == pytest.approx(
        effects, rel=1e-6
    )
    document = learned_columns(comparison, data)
    assert {one["column"]: one["effect"] for one in document["effects"]} == pytest.approx(
        effects, rel=1e-3
    )


def test_a_regression_by_all_rows(folder, again):
    data = read_table(str(folder / "words table.csv"), "width", task="regression")
    methods = {method.name: method for method in all_methods("regression")}
    comparison, pipeline = fitted(methods["NCA tables"], data)
    plain, lines = SoftVote(distance="plain"), LocalLines(2.0, 0.1)
    spaces = sorted({expert.axes for expert in pipeline[-1].vote_.experts})
    for shares in ([(plain, 1.0)], [(plain, 0.75), (lines, 0.25)]):
        experts = [
            Expert(vote, axes, share / len(spaces)) for axes in spaces for vote, share in shares
        ]
        pipeline[-1].vote_ = Mixture(tuple(experts))
        model = again(learned_model(comparison, data))
        np.testing.assert_allclose(
            predict(model, data.X)["value"], pipeline.predict(data.X), rtol=1e-5, atol=1e-7
        )


def test_missing_numbers_are_filled_though_none_was_missing_before(folder, again):
    data = read_table(str(folder / "words table.csv"), "kind")
    model = again(winner("NMMP", data))
    median = np.median(data.X[:, 0])
    X = np.array([[np.nan, 1, 2, 1, 0, 0], [median, 1, 2, 1, 0, 0]])
    np.testing.assert_allclose(*embed(model, X), atol=1e-12)
    assert "indicated" not in model.arrays


def test_features_that_say_what_is_missing_have_names(folder, again, capsys):
    model = again(winner("NMMP", read_table(str(folder / "gaps table.csv"), "kind")))
    assert model.feature_names[-1] == "width (missing)"
    assert len(model.effects.lengths) == len(model.feature_names)
    assert model.feature_names[1:4] == ["price", "day (days since 1970)", "day (year, sin)"]
    inspect.describe(model, folder / "gaps table.csv")
    assert "width (missing)" in capsys.readouterr().out


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "vote", [Vote(1), Vote(4), Vote(40), Vote(1, soft=True), SOFT, Vote(40, soft=True)], ids=str
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_every_vote_is_that_of_the_pipeline(folder, table, again, kind, vote):
    comparison, pipeline = fitted(RAW, table(kind), vote=vote)
    model = again(learned_model(comparison, table(kind)))
    assert model.vote == vote
    rows, _, _ = read_rows(str(folder / f"{kind} new.npz"), model.encoder)
    found = predict(model, rows)
    np.testing.assert_array_equal(found["label"], pipeline.predict(rows))
    np.testing.assert_allclose(found["vote"], pipeline.predict_proba(rows).max(axis=1), rtol=1e-9)
    near = pipeline[-1].kneighbors(pipeline[:-1].transform(rows), return_distance=False)
    np.testing.assert_array_equal(found["nearest"], near)


@pytest.mark.parametrize("vote", [HARD, SOFT], ids=str)
@pytest.mark.parametrize("name", [RAW, "PCA"])
def test_numbers_are_those_of_the_pipeline(folder, again, name, vote):
    data = read_table(str(folder / "words table.csv"), "width", task="regression")
    comparison, pipeline = fitted(name, data, vote=vote)
    model = again(learned_model(comparison, data))
    assert model.score == "r2"
    rows, _, _ = read_rows(str(folder / "words new.csv"), model.encoder)
    np.testing.assert_allclose(predict(model, rows)["value"], pipeline.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("name", ["PCA", "LDA", "TDL"])
def test_only_rows_with_a_label_vote(folder, again, name):
    with np.load(folder / "dense table.npz") as archive:
        np.savez(
            folder / "partly.npz",
            X=archive["X"],
            y=np.where(np.arange(N_ROWS) % 2, archive["y"], np.nan),
        )
    data = read_table(str(folder / "partly.npz"))
    comparison, pipeline = fitted(name, data, vote=SOFT)
    model = again(learned_model(comparison, data))
    assert (model.n_rows, model.n_voters) == (N_ROWS, N_ROWS // 2)
    found = predict(model, data.X)
    assert (found["nearest"] % 2 == 1).all()
    np.testing.assert_array_equal(found["label"], pipeline.predict(data.X))
    np.testing.assert_allclose(found["vote"], pipeline.predict_proba(data.X).max(axis=1), rtol=1e-6)


@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
@pytest.mark.parametrize("soft", [False, True])
def test_an_approximate_search_that_finds_all_rows_changes_nothing(folder, table, soft):
    model = winner("PCA", table("dense"), vote=Vote(N_ROWS, soft))
    rows, _, _ = read_rows(str(folder / "dense new.npz"), model.encoder)
    exact, found = predict(model, rows), predict(model, rows, search="approximate")
    np.testing.assert_array_equal(found["nearest"], exact["nearest"])
    np.testing.assert_array_equal(found["label"], exact["label"])
    np.testing.assert_allclose(found["vote"], exact["vote"], rtol=1e-6)


def test_the_model_is_the_automatic_choice_with_its_held_out_figures(table, again):
    data = table("dense")
    comparison = compare(
        data.X, data.y, methods=[METHODS["PCA"]], references=[], score="f1", n_splits=2, n_repeats=1
    )
    model, choice = again(learned_model(comparison, data)), comparison.choice
    vote = comparison.winner[-1]
    assert (model.method, model.score) == (comparison.winner_method, "f1")
    assert (model.n_neighbors, model.soft) == (vote.n_neighbors, vote.weights != "uniform")
    assert model.held_out == {
        **{"score": choice.score.mean(), "raw": comparison.raw.score.mean(), "folds": 2.0},
        **{"low": choice.interval[0], "high": choice.interval[1], "p_value": choice.p_value},
    }
    np.testing.assert_array_equal(
        predict(model, data.X)["label"], comparison.winner.predict(data.X)
    )


def test_figures_that_are_no_numbers_are_left_out(table, again):
    comparison, _ = fitted(RAW, table("dense"))
    results = tuple(
        replace(r, interval=(-np.inf, np.inf), p_value=np.nan) for r in comparison.results
    )
    model = again(learned_model(replace(comparison, results=results), table("dense")))
    assert set(model.held_out) == {"score", "raw", "folds"}


@pytest.mark.long
def test_another_process_gives_identical_labels(folder, table, tmp_path):
    model, rows = winner("NMMP", table("words")), str(folder / "words new.csv")
    save_model(model, tmp_path / "m.safetensors")
    command = [sys.executable, "-c", PREDICT, str(tmp_path / "m.safetensors"), rows]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = predict(model, read_rows(rows, model.encoder)[0])
    assert json.loads(done.stdout) == [
        x.tolist() for x in (found["label"], found["nearest"], found["distance"])
    ]
    assert done.stderr == ""


@pytest.mark.parametrize(
    "labels", [np.array([3, -1]), np.array(["no", "yés"]), np.array([False, True])], ids=str
)
def test_labels_keep_their_type(folder, again, labels):
    with np.load(folder / "dense table.npz") as archive:
        np.savez(folder / "labels.npz", X=archive["X"], y=labels[archive["y"] % 2])
    model = winner(RAW, read_table(str(folder / "labels.npz")))
    found = predict(again(model), model.arrays["voters"])["label"]
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, predict(model, model.arrays["voters"])["label"])


def test_sparse_rows_stay_sparse(folder, table, again):
    loaded = again(winner(RAW, table("sparse")))
    rows, _, _ = read_rows(str(folder / "sparse new.npz"), loaded.encoder)
    assert loaded.arrays["voters"].nnz < 0.5 * np.prod(loaded.arrays["voters"].shape)
    assert embed(loaded, rows).nnz == rows.nnz


def test_safetensors_alone_can_open_it(table, tmp_path):
    model = winner("DNE", table("words"))
    save_model(model, tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        assert set(file.keys()) == {
            *("mean", "scale", "components", "offset", "spectrum"),
            *("fill", "voters", "rows", "answers"),
        }
        np.testing.assert_array_equal(file.get_tensor("components"), model.arrays["components"])
        header = json.loads(file.metadata()["nearkin"])
    assert header["columns"]["numbers"] == ["width", "height", "depth"]
    colour = {
        "kind": "category",
        "name": "colour",
        "values": ["blue", "green", "red"],
        "missing": False,
    }
    assert header["columns"]["columns"] == [colour]


def test_text_and_lists(tmp_path, again):
    """Words, repeated values and items of the table are found again in new rows."""
    rng = np.random.default_rng(0)
    animals, food = ["fox", "owl", "hen"], ["hay", "corn", "oats"]
    kinds, eaten = rng.integers(3, size=90), rng.integers(2, size=(90, 3)).astype(bool)
    rows = [
        f'{animals[kind]} number {i},"{", ".join(np.array(food)[own])}",{kind}'
        for i, (kind, own) in enumerate(zip(kinds, eaten, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["title,food,kind", *rows]))
    loaded = again(winner("NCA tables", read_table(str(tmp_path / "t.csv"), "kind")))
    assert {"title (words 1)", "food has hay"} < set(loaded.feature_names)
    (tmp_path / "new.csv").write_text("title,food\nfoxes,corn\nan owl,hay\nthe hens,barley\n")
    new, _, _ = read_rows(str(tmp_path / "new.csv"), loaded.encoder)
    assert predict(loaded, new)["label"].tolist() == [0, 1, 2]


def test_a_rare_value_is_not_in_another_unit():
    """Its indicator is many standard deviations from the mean, as the size 500 is."""
    frame = pd.DataFrame({"store": [f"s{min(i // 2, 9)}" for i in range(4000)]})
    frame["size"] = np.arange(4000) % 7
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    arrays = {"mean": X.mean(axis=0), "scale": X.std(axis=0)}
    new = encoder.transform(pd.DataFrame({"store": ["s0", "s1"], "size": [3, 500]}))
    model = SimpleNamespace(arrays=arrays, encoder=encoder)
    assert far_features(model, new) == ["size (1 row)"]


def test_the_frequency_of_a_category_is_read_from_old_models(table):
    """Up to version 0.3, a category of many values was the share of rows with its value."""
    state = json.loads(json.dumps(winner("LDA", table("words")).columns))
    (colour,) = state["columns"]
    frequency = colour | {"kind": "frequency", "shares": [0.2, 0.3, 0.5], "missing_share": 0.0}
    old = ENCODER(state | {"columns": [frequency]}, "columns", Sizes())
    names = TableEncoder.from_dict(old).get_feature_names_out()
    assert names[-1] == "colour (frequency)"


def test_a_file_whose_name_is_no_text(again):
    assert again(winner("PCA", replace(read_table("iris"), name="caf\udce9"))).table == "caf?"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("LDA", {"colour=blue", "colour=green", "colour=red"}),
        ("TDL", set()),
        ("NCA tables", {"colour"}),
    ],
)
def test_a_model_can_be_shown(table, again, tmp_path, capsys, name, shown):
    loaded = again(winner(name, table("words")))
    inspect.describe(loaded, tmp_path / "m.safetensors")
    out = capsys.readouterr().out
    assert f"{name}, learned from 40 rows of words table (6 features, 3 classes of 'kind')" in out
    assert {word for word in out.split() if word.startswith("colour")} == shown
    inspect.draw_model(loaded, tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize("name", ["PCA", "LDA", "NMMP ratio trace", "DP", "TDL"])
def test_coordinates_have_the_names_that_the_map_gives_them(table, name):
    comparison, pipeline = fitted(name, table("dense"))
    assert (
        learned_model(comparison, table("dense")).names
        == pipeline[-2].get_feature_names_out().tolist()
    )


@pytest.mark.parametrize("name", [RAW, "PCA", "LDA", "NCA"])
def test_the_stretch_is_how_far_a_unit_step_moves_a_row(table, name):
    model = winner(name, table("dense"), scale=False)
    p = len(model.feature_names)
    length = np.linalg.norm(model.transform(np.eye(p)) - model.transform(np.zeros((1, p))), axis=1)
    np.testing.assert_allclose(
        model.effects.lengths, length / np.sqrt(np.mean(length**2)), rtol=1e-6
    )


def test_blocks_of_rows_change_no_prediction(table, monkeypatch):
    model = winner("NMMP", table("dense"))
    rows = np.random.default_rng(0).normal(size=(40, len(model.feature_names)))
    whole = predict(model, rows)
    monkeypatch.setattr(
        "nearkin.app.tables.model.VOTES_PER_BLOCK", 7 * (model.n_neighbors + len(model.classes))
    )
    monkeypatch.setattr("nearkin.app.tables.model.ROWS_PER_BLOCK", 7)
    done = []
    parts = predict(model, rows, lambda n_done, total: done.append((n_done, total)))
    assert done == [(7, 40), (14, 40), (21, 40), (28, 40), (35, 40), (40, 40)]
    np.testing.assert_equal(parts, whole)


@pytest.mark.parametrize("name", [RAW, "PCA", "LDA"])
@pytest.mark.parametrize("scale", [True, False])
def test_a_model_of_dense_rows_maps_sparse_ones_alike(folder, table, name, scale):
    model = winner(name, table("dense"), scale=scale)
    rows, _, _ = read_rows(
        str(folder / "sparse new.npz"), read_table(str(folder / "sparse table.npz")).encoder
    )
    rows = rows[:, : len(model.feature_names)]
    Z = embed(model, rows)
    np.testing.assert_allclose(
        Z.toarray() if issparse(Z) else Z, embed(model, rows.toarray()), atol=1e-12
    )


def test_a_file_is_readable_by_whom_other_files_are(table, tmp_path):
    save_model(winner(RAW, table("dense")), tmp_path / "m.safetensors")
    (tmp_path / "other").touch()
    assert (tmp_path / "m.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_column_without_a_value_among_the_labelled_rows(tmp_path, again):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.array([0, 1, None] * 20)
    X[[label is not None for label in y], 2] = np.nan
    X[::4, 1] = np.nan
    np.savez(
        tmp_path / "gaps.npz", X=X, y=np.array([np.nan if label is None else label for label in y])
    )
    table = read_table(str(tmp_path / "gaps.npz"), reading=Reading(refuse_missing=False))
    comparison = compare(table.X, table.y, methods=[], references=[], n_splits=2, n_repeats=1)
    model = again(learned_model(comparison, table))
    np.testing.assert_array_equal(predict(model, X)["label"], comparison.winner.predict(X))


def test_labels_of_64_bits_without_a_sign(tmp_path, again):
    labels = np.array([2**63 + 5, 2**63 + 7], dtype=np.uint64)[np.arange(60) % 2]
    X = np.random.default_rng(0).normal(size=(60, 2)) + 4 * (np.arange(60) % 2)[:, None]
    pd.DataFrame(X, columns=["a", "b"]).assign(y=labels).to_parquet(tmp_path / "t.parquet")
    model = again(winner("raw k-NN", read_table(str(tmp_path / "t.parquet"), "y")))
    assert set(predict(model, X)["label"]) <= set(labels)
