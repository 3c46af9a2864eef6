"""`compare --dask` and `transform --dask` as a user meets them, on a cluster in this process."""

import multiprocessing
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from nearkin import DNE, NCAClassifier
from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.folders import rows as folder_rows
from nearkin.app.folders.parquet_folder import Part, open_folder
from nearkin.app.folders.rows import coordinates, write_file
from nearkin.app.output import atomic_folder
from nearkin.app.tables.model import load_model, new_model, save_model
from nearkin.app.tables.reading import number_encoder
from nearkin.comparison import RAW, Vote

distributed = pytest.importorskip("distributed")

from nearkin.app.folders import cluster as app_cluster  # noqa: E402 - needs Dask
from nearkin.app.folders import compare as folder_comparison  # noqa: E402
from nearkin.app.folders.cluster import write_folder  # noqa: E402
from nearkin.app.folders.compare import held_out_rows  # noqa: E402
from nearkin.dask import DaskDNE  # noqa: E402

FEATURES = [f"e{j}" for j in range(8)]
N = 900


def rows_of(n, seed):
    """Return rows whose nearest neighbours are spoilt by noise in half of the directions."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 4, n)
    signal = 3.0 * np.array([[1, 0, 0, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0]])[
        c
    ] + rng.standard_normal((n, 4))
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((8, 8)))[0]
    X = np.hstack([signal, 4 * rng.standard_normal((n, 4))]) @ turn
    return pd.DataFrame(X.astype(np.float32), columns=FEATURES).assign(
        kind=np.array(["ant", "bee", "cat", "dog"])[c]
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of Parquet files, all its rows, and a model that was fitted to them."""
    folder = tmp_path_factory.mktemp("folders")
    parts = [rows_of(n, seed) for seed, n in enumerate((300, 350, 250))]
    (folder / "many").mkdir()
    for number, part in enumerate(parts):
        part.to_parquet(folder / "many" / f"part-{number}.parquet", index=False, row_group_size=100)
    rows = pd.concat(parts, ignore_index=True)
    X, (classes, codes) = (
        rows[FEATURES].to_numpy(),
        np.unique(rows["kind"].to_numpy(str), return_inverse=True),
    )
    scaler = StandardScaler().fit(X)
    steps = [scaler, DNE(4).fit(scaler.transform(X), codes)]
    result = SimpleNamespace(score=np.array([0.9]), interval=(0.05, 0.15), p_value=0.001)
    header = {
        "task": "classification",
        "score": "accuracy",
        "method": "DNE",
    }
    model = new_model(
        steps,
        Vote(3),
        number_encoder(FEATURES),
        result,
        SimpleNamespace(score=np.array([0.8])),
        classes=classes.tolist(),
        n_rows=N,
        target="kind",
        table="many",
        **header,
    )
    model = model.with_voters(model.transform(X), np.arange(N), codes)
    save_model(model, folder / "m.safetensors")
    return folder, rows


METHODS = folder_comparison.cluster_methods


def keep_methods(patch, *names):
    patch.setattr(
        folder_comparison,
        "cluster_methods",
        lambda *shape: {name: METHODS(*shape)[name] for name in names},
    )


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder that a test may fill, with the folder and the model linked into it."""
    for name in ("many", "m.safetensors"):
        (tmp_path / name).symlink_to(made[0] / name)
    monkeypatch.chdir(tmp_path)
    keep_methods(monkeypatch, RAW, "DNE")
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_the_ranking_is_that_of_the_same_split_in_one_place(made, here, capsys, address):
    assert main(["compare", "many", "--target", "kind", "--dask", address, "--seed", "3"]) == 0
    out, err = capsys.readouterr()
    rows = made[1]
    held_out = held_out_rows(N, 3)
    train = np.setdiff1d(np.arange(N), held_out)
    scaler = StandardScaler().fit(rows[FEATURES].to_numpy()[train])
    X, y = scaler.transform(rows[FEATURES].to_numpy()), rows["kind"].to_numpy(str)

    def accuracy(Z):
        return KNeighborsClassifier(3).fit(Z[train], y[train]).score(Z[held_out], y[held_out])

    expected = {RAW: accuracy(X), "DNE": accuracy(DNE(4).fit(X[train], y[train]).transform(X))}
    for name, value in expected.items():
        assert re.search(rf"^{name} +{100 * value:.1f} ", out, re.MULTILINE), (name, value, out)
    assert "many: 3 files, 900 rows, 8 features, 4 classes of" in out
    assert (
        "Accuracy of 3-NN on standardized features, 720 training rows, 180 held-out rows, seed 3"
        in out
    )
    assert re.search(
        r"^DNE is right in .*% of the held-out rows, raw k-NN in .*: \+.* points \(95% interval ",
        out,
        re.MULTILINE,
    )
    assert "Picture: many-nearkin.png" in out
    assert "DNE: 720 rows in" in err
    assert (here / "many-nearkin.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_no_row_is_predicted_from_its_copy(here, capsys, address, monkeypatch):
    """Every row twice, labels at random: k-NN would find the copy."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((600, 4)).astype(np.float32), columns=[*"abcd"])
    rows["kind"] = np.array(["x", "y"])[rng.integers(0, 2, 600)]
    rows.loc[0, ["a", "b"]] = 0.0
    copies = rows.copy()
    copies.loc[0, "a"] = -0.0
    (here / "twice").mkdir()
    for number, part in enumerate((rows, copies.sample(frac=1, random_state=0))):
        part.to_parquet(here / "twice" / f"{number}.parquet", index=False)
    keep_methods(monkeypatch, RAW)
    command = ["compare", "twice", "--target", "kind", "--dask", address]
    assert main([*command, "--save", "new.safetensors"]) == 0
    out = capsys.readouterr().out
    accuracy = float(re.search(rf"^{RAW} +([\d.]+) ", out, re.MULTILINE)[1])
    assert accuracy < 60
    of_both = pd.concat([rows, copies.sample(frac=1, random_state=0)])[[*"abcd"]].to_numpy() + 0.0
    held_out = held_out_rows(1200, 0)
    seen = {row.tobytes() for row in of_both[held_out]}
    expected = [i for i, row in enumerate(of_both) if row.tobytes() not in seen]
    np.testing.assert_array_equal(load_model(here / "new.safetensors").arrays["rows"], expected)
    n_equal = 1200 - 240 - len(expected)
    assert f"{n_equal} rows with the same features as a held-out one were not learned from" in out


@pytest.mark.slow
def test_folders_of_few_different_rows_are_refused(here, capsys, address):
    (here / "few").mkdir()
    rows = pd.DataFrame(
        {"a": np.arange(900.0) % 7, "kind": np.array(["x", "y"])[np.arange(900) % 2]}
    )
    rows.to_parquet(here / "few" / "0.parquet", index=False)
    assert main(["compare", "few", "--target", "kind", "--dask", address]) == 2
    assert (
        "of 900 rows only 0 have other features than the held-out ones" in capsys.readouterr().err
    )


@pytest.mark.slow
def test_the_model_holds_the_training_rows_and_their_labels(made, here, capsys, address):
    options = ["--dask", address, "--save", "new.safetensors", "--seed", "3"]
    assert main(["compare", "many", "--target", "kind", *options]) == 0
    model, rows = load_model(here / "new.safetensors"), made[1]
    assert (model.method, model.n_components, model.n_rows, model.table) == ("DNE", 4, N, "many")
    voters = model.arrays["rows"]
    np.testing.assert_array_equal(voters, np.setdiff1d(np.arange(N), held_out_rows(N, 3)))
    np.testing.assert_array_equal(
        np.array(model.classes)[model.arrays["answers"]], rows["kind"].to_numpy(str)[voters]
    )
    np.testing.assert_allclose(
        model.arrays["voters"], model.transform(rows[FEATURES].to_numpy()[voters]), atol=1e-4
    )
    assert model.held_out["folds"] == 1
    assert model.held_out["score"] > model.held_out["raw"]


@pytest.mark.slow
def test_the_model_works_like_any_other(made, here, capsys):
    assert main(["predict", "m.safetensors", "many/part-1.parquet", "-o", "labels.csv"]) == 0
    assert (pd.read_csv("labels.csv")["label"] == made[1]["kind"][300:650].to_numpy()).mean() > 0.9
    assert main(["inspect", "m.safetensors"]) == 0
    out = capsys.readouterr().out
    assert "learned from 900 rows of many" in out
    assert (
        "Held out: the 3-NN is right in 90.0% of the held-out rows (one split), raw k-NN "
        "in 80.0% (95% int" in out
    )


@pytest.mark.slow
def test_few_rows_vote_where_there_are_many(made, here, capsys, address, monkeypatch):
    monkeypatch.setattr(folder_comparison, "MOST_VOTERS", 100)
    assert (
        main(
            ["compare", "many", "--target", "kind", "--dask", address, "--save", "few.safetensors"]
        )
        == 0
    )
    assert (
        "learned from the 720 training rows, of which 100 evenly spaced vote"
        in capsys.readouterr().out
    )
    model = load_model(here / "few.safetensors")
    train = np.setdiff1d(np.arange(N), held_out_rows(N, 0))
    np.testing.assert_array_equal(
        model.arrays["rows"], train[np.linspace(0, 719, 100).round().astype(int)]
    )
    np.testing.assert_array_equal(
        np.array(model.classes)[model.arrays["answers"]],
        made[1]["kind"].to_numpy(str)[model.arrays["rows"]],
    )


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("most", [10_000, 150])
def test_the_predictor_for_tables_learns_from_a_sample(
    made, here, capsys, address, monkeypatch, most
):
    monkeypatch.setattr(folder_comparison, "MOST_SAMPLED", most)
    monkeypatch.setattr(folder_comparison, "ROWS_AT_ONCE", 50)
    keep_methods(monkeypatch, RAW, "NCA tables")
    command = ["compare", "many", "--target", "kind", "--dask", address, "--seed", "3"]
    assert main([*command, "--save", "new.safetensors"]) == 0
    out = capsys.readouterr().out
    rows, held_out = made[1], held_out_rows(N, 3)
    train = np.setdiff1d(np.arange(N), held_out)
    drawn = train[np.linspace(0, 719, min(most, 720)).round().astype(int)]
    X, y = rows[FEATURES].to_numpy(float), rows["kind"].to_numpy(str)
    predictor = NCAClassifier(random_state=3).fit(X[drawn], y[drawn])
    accuracy = predictor.score(X[held_out], y[held_out])
    assert re.search(rf"^NCA tables +{100 * accuracy:.1f} .* all rows ", out, re.MULTILINE), out
    sampled = "NCA tables learned from 150 of 720 training rows, evenly spaced."
    assert (sampled in out) == (most == 150)
    learned = "the 720 training rows, of which all 720 vote"
    if most == 150:
        learned = "150 evenly spaced of the 720 training rows, which vote"
    assert f"new.safetensors, NCA tables, learned from {learned}" in out
    model = load_model(here / "new.safetensors")
    assert (model.method, model.n_rows, model.classes) == ("NCA tables", N, sorted(set(y)))
    np.testing.assert_array_equal(model.arrays["rows"], drawn)
    assert main(["predict", "new.safetensors", "many", "-o", "labels", "--dask", address]) == 0
    found = pd.concat([pd.read_parquet(path) for path in sorted((here / "labels").iterdir())])
    np.testing.assert_array_equal(found["label"], predictor.predict(X))
    votes = predictor.predict_proba(X)
    np.testing.assert_allclose(found["probability"], votes.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(found["probability of cat"], votes[:, 2], atol=1e-6)
    np.testing.assert_allclose(found["familiarity"], predictor.familiarity(X))


@pytest.mark.slow
def test_a_class_without_a_row_in_the_sample_is_unknown_to_its_model(
    made, here, capsys, address, monkeypatch
):
    rows = made[1].copy()
    train = np.setdiff1d(np.arange(N), held_out_rows(N, 3))
    drawn = train[np.linspace(0, 719, 150).round().astype(int)]
    rows["kind"] = rows["kind"].astype(object)
    rows.loc[np.setdiff1d(train, drawn)[:4], "kind"] = "boa"
    (here / "rare").mkdir()
    rows.to_parquet("rare/a.parquet", index=False)
    monkeypatch.setattr(folder_comparison, "MOST_SAMPLED", 150)
    keep_methods(monkeypatch, RAW, "NCA tables")
    command = ["compare", "rare", "--target", "kind", "--dask", address, "--seed", "3"]
    assert main([*command, "--save", "new.safetensors"]) == 0
    model = load_model(here / "new.safetensors")
    assert model.classes == ["ant", "bee", "cat", "dog"]
    codes = np.array(model.classes)[model.arrays["answers"]]
    np.testing.assert_array_equal(codes, rows["kind"].to_numpy(str)[drawn])


@pytest.mark.slow
def test_no_scaling_and_more_votes(here, capsys, address):
    options = ["--no-scaling", "--neighbors", "9", "--picture", "p.png", "-q"]
    assert main(["compare", "many", "--target", "kind", "--dask", address, *options]) == 0
    out, err = capsys.readouterr()
    assert "Accuracy of 9-NN on unscaled features" in out
    assert err == ""
    assert names_in(here) == ["m.safetensors", "many", "p.png"]


@pytest.mark.slow
def test_a_method_that_cannot_is_skipped_and_said(here, capsys, address, monkeypatch):
    def refuse(self, X, y, client):
        raise ValueError("X is not to my taste.\nAnd more")

    monkeypatch.setattr(DaskDNE, "fit", refuse)
    assert (
        main(
            ["compare", "many", "--target", "kind", "--dask", address, "--save", "raw.safetensors"]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "  DNE skipped: X is not to my taste." in out
    assert "nothing to compare" in out
    assert "raw k-NN, as no method is shown to beat it" in out
    model = load_model(here / "raw.safetensors")
    assert model.is_raw
    assert model.arrays["voters"].shape == (720, 8)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("no faiss here"), "no faiss here"),
        (RuntimeError("out of luck"), "out of luck"),
        (
            distributed.KilledWorker("task", None, 3),
            "workers died repeatedly, most likely for lack of memory",
        ),
    ],
)
@pytest.mark.slow
def test_what_is_finished_outlives_a_method_that_fails(
    here, capsys, address, monkeypatch, error, message
):
    def fail(*arguments, **keywords):
        raise error

    monkeypatch.setattr(DaskDNE, "fit", fail)
    assert main(["compare", "many", "--target", "kind", "--dask", address]) == 0
    out = capsys.readouterr().out
    assert f"  DNE skipped: {message}" in out
    assert re.search(r"^raw k-NN +\d", out, re.MULTILINE)
    monkeypatch.setattr("nearkin.app.folders.compare.nearest_labels", fail)
    assert main(["compare", "many", "--target", "kind", "--dask", address]) == 2
    assert f"raw k-NN skipped: {message}" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interruption_prints_what_is_finished(here, capsys, address, monkeypatch):
    def interrupt(self, X, y, client):
        raise KeyboardInterrupt

    monkeypatch.setattr(DaskDNE, "fit", interrupt)
    assert (
        main(["compare", "many", "--target", "kind", "--dask", address, "--save", "m2.safetensors"])
        == 130
    )
    assert re.search(r"^raw k-NN +\d", capsys.readouterr().out, re.MULTILINE)
    assert names_in(here) == ["m.safetensors", "many"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", "/"])
def test_transform_writes_a_file_for_every_file(made, here, capsys, address, suffix):
    assert (
        main(
            [
                "transform",
                "m.safetensors",
                "many" + suffix,
                "-o",
                "short" + suffix,
                "--dask",
                address,
            ]
        )
        == 0
    )
    err = capsys.readouterr().err
    assert "ignored, not learned from: kind" in err
    assert "900 rows mapped by DNE: short (3 files)" in err
    assert names_in(here / "short") == [f"part-{number}.parquet" for number in range(3)]
    assert names_in(here) == ["m.safetensors", "many", "short"]
    found = pd.concat([pd.read_parquet(path) for path in sorted((here / "short").iterdir())])
    assert found.columns.tolist() == ["dne0", "dne1", "dne2", "dne3"]
    assert set(found.dtypes) == {np.dtype(np.float32)}
    model = load_model(here / "m.safetensors")
    np.testing.assert_allclose(
        found, model.transform(made[1][FEATURES].to_numpy()), rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow
def test_processes_here_do_the_same_and_are_gone(made, here, capfd):
    before = {process.pid for process in multiprocessing.active_children()}  # of other tests
    handler = signal.getsignal(signal.SIGINT)
    assert main(["transform", "m.safetensors", "many", "-o", "short", "--dask"]) == 0
    err = capfd.readouterr().err
    # what is ignored, the rows, the files; and where that takes long, how far it is
    assert len([line for line in err.splitlines() if " of 900 rows, " not in line]) == 3, err
    model = load_model(here / "m.safetensors")
    found = pd.read_parquet("short/part-2.parquet")
    np.testing.assert_allclose(
        found, model.transform(made[1][FEATURES].to_numpy()[650:]), rtol=1e-6, atol=1e-6
    )
    assert signal.getsignal(signal.SIGINT) is handler
    assert {process.pid for process in multiprocessing.active_children()} <= before


def test_a_file_is_mapped_by_batches(made, here, monkeypatch):
    monkeypatch.setattr(folder_rows, "ROWS_PER_GROUP", 150)
    monkeypatch.setattr("nearkin.app.files.parquet_file.CELLS_PER_BATCH", 80 * 8)
    monkeypatch.setattr("nearkin.app.files.parquet_file.MIN_ROWS_PER_BATCH", 1)
    model = load_model(here / "m.safetensors")
    part = Part(made[0] / "many" / "part-1.parquet", 0, 350)
    write_file(part, here / "out.parquet", mapping=model, begin=coordinates, names=FEATURES)
    about = parquet.read_metadata(here / "out.parquet")
    assert [about.row_group(group).num_rows for group in range(about.num_row_groups)] == [
        160,
        160,
        30,
    ]
    assert names_in(here) == ["m.safetensors", "many", "out.parquet"]
    np.testing.assert_allclose(
        pd.read_parquet("out.parquet"),
        model.transform(made[1][FEATURES].to_numpy()[300:650]),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.slow
def test_an_empty_file_becomes_an_empty_file(made, here, address):
    (here / "some").mkdir()
    rows = made[1][FEATURES]
    rows[:10].to_parquet("some/a.parquet")
    rows[:0].to_parquet("some/b.parquet")
    assert main(["transform", "m.safetensors", "some", "-o", "short", "--dask", address]) == 0
    assert [len(pd.read_parquet(path)) for path in sorted((here / "short").iterdir())] == [10, 0]


@pytest.mark.slow
def test_what_a_dead_worker_left_is_cleared_away(here, address, monkeypatch):
    started = app_cluster.cluster

    def left(address):
        (here / "short.part" / "part-0.parquet.0123").touch()
        return started(address)

    monkeypatch.setattr("nearkin.app.folders.cluster.cluster", left)
    assert main(["transform", "m.safetensors", "many", "-o", "short", "--dask", address]) == 0
    assert names_in(here / "short") == [f"part-{number}.parquet" for number in range(3)]


def test_rows_keep_a_column_of_names(made, here, capsys, address):
    command = ["transform", "m.safetensors", "many", "--id", "kind", "-o", "short", "--dask"]
    assert main([*command, address]) == 0
    assert "ignored" not in capsys.readouterr().err
    found = pd.concat([pd.read_parquet(path) for path in sorted((here / "short").iterdir())])
    assert found["kind"].tolist() == made[1]["kind"].tolist()
    assert found.columns[:2].tolist() == ["kind", "dne0"]


def test_a_file_without_rows_has_columns(made, here):
    made[1][:0].to_parquet("none.parquet", index=False)
    model = load_model(here / "m.safetensors")
    part = Part(here / "none.parquet", 0, 0)
    write_file(
        part, here / "out.parquet", mapping=model, begin=coordinates, names=FEATURES, ids="kind"
    )
    found = parquet.read_table(here / "out.parquet")
    assert found.column_names == ["kind", *model.names]
    assert found.num_rows == 0


def bad_folder(rows):
    """Write three files, the last of which lacks a value."""
    import pathlib

    pathlib.Path("bad").mkdir()
    bad = rows[FEATURES].copy()
    bad.loc[5, "e2"] = np.nan
    for name, some in (("a", rows), ("b", rows), ("c", bad)):
        some[FEATURES].to_parquet(f"bad/{name}.parquet")


@pytest.mark.slow
def test_a_transform_that_fails_leaves_nothing(made, here, capsys, address):
    bad_folder(made[1])
    assert main(["transform", "m.safetensors", "bad", "-o", "short", "--dask", address]) == 2
    err = capsys.readouterr().err
    assert re.search(
        r"nearkin: .*bad/c\.parquet: missing values .* in 'e2' \(1\), first in row 5 ", err
    )
    assert names_in(here) == ["bad", "m.safetensors", "many"]


@pytest.mark.slow
def test_a_transform_that_is_interrupted_leaves_nothing(here, capsys, address, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("nearkin.app.folders.cluster.write_folder", interrupt)
    assert main(["transform", "m.safetensors", "many", "-o", "short", "--dask", address]) == 130
    assert names_in(here) == ["m.safetensors", "many"]


def test_coordinates_are_kept_when_their_place_was_taken_meanwhile(here):
    message = (
        r"short: the output cannot be moved there .*: it is complete in "
        r".*short\.part: rename that"
    )
    with pytest.raises(TableError, match=message), atomic_folder(here / "short"):
        (here / "short" / "of another").mkdir(parents=True)
    assert names_in(here) == ["m.safetensors", "many", "short", "short.part"]


def test_workers_get_absolute_paths_and_must_see_the_folder(made, here):
    class Client:
        def compute(self, value):
            return value

        def map(self, function, files, targets, **how):
            assert all(path.is_absolute() for path in [*targets, *(file.path for file in files)])
            raise KeyboardInterrupt

    model = load_model(here / "m.safetensors")
    part = Part(made[0] / "many" / "part-1.parquet", 0, 350)
    with pytest.raises(KeyboardInterrupt):
        write_folder(open_folder(Path("many")), Path("short"), Client(), lambda *rows: None, model)
    with pytest.raises(
        TableError,
        match="nowhere does not exist: every worker must see the folder under this path",
    ):
        write_file(
            part, here / "nowhere" / "a.parquet", mapping=model, begin=coordinates, names=FEATURES
        )


COMPARE = ["compare", "many", "--target", "kind"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "many", "--target", "kind"], "many is a folder: give a .csv, .xlsx, .json, .parquet or .npz file, or"),
        (["predict", "m.safetensors", "many"], "or a folder of Parquet files and --dask"),
        (["transform", "m.safetensors", "many", "-o", "x.csv"], "or a folder of Parquet files and --dask"),
        (["compare", "m.safetensors", "--target", "kind", "--dask"], "m.safetensors is not a folder, but --dask needs"),
        (["compare", "many", "--dask"], "many: name the column of classes or numbers with --target"),
        (["compare", "many", "--target", "kid", "--dask"], "did you mean 'kind'"),
        ([*COMPARE, "--folds", "3", "--dask"], "--folds: not available with --dask"),
        ([*COMPARE, "--task", "regression", "--groups", "e1", "--dask"], "--task, --groups: not available with --dask. Folders"),
        ([*COMPARE, "--report", "r.html", "--dask"], "--report: not available with --dask"),
        ([*COMPARE, "--quick", "--score", "auc", "--json", "r.json", "--dask"], "--score, --json, --quick: not available with --dask."),
        ([*COMPARE, "--neighbors", "251", "--dask"], "--neighbors is 251, but --dask takes at most 250"),
        ([*COMPARE, "--save", "m.txt", "--dask"], "the name must end in .safetensors"),
        (["transform", "m.safetensors", "many", "--dask"], "name a new folder for them with -o"),
        (["transform", "m.safetensors", "many", "--dask", "-o", "many"], "many is read, and would be overwritten"),
        (["transform", "m.safetensors", "many", "--dask", "-o", "few"], "few exists: name a new folder with -o"),
        (["transform", "m.safetensors", "many", "--dask", "-o", "no/where"], "no folder can be made there"),
        (["transform", "m.safetensors", "few", "--dask", "-o", "out"], "few lacks 'e0', 'e1', 'e2'"),
        (["transform", "m.safetensors", "text", "--dask", "-o", "out"], "holds text in 'e3': leave it out"),
        (["compare", "few", "--target", "kind", "--dask"], "few has 4 rows, too few for one split (at least 500)"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_written(made, here, capsys, arguments, message):
    for name in ("few", "text"):
        (here / name).mkdir()
    parquet.write_table(pa.table({"x": [1.0, 2, 3, 4], "kind": [1, 1, 2, 2]}), "few/a.parquet")
    made[1].assign(e3="x").to_parquet("text/a.parquet")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""
    assert names_in(here) == ["few", "m.safetensors", "many", "text"]


def test_another_run_that_writes_there_is_noticed(here, capsys):
    (here / "short.part").mkdir()
    assert main(["transform", "m.safetensors", "many", "-o", "short", "--dask"]) == 2
    assert (
        "short.part exists: another command is writing there, or one was killed"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_a_model_of_text_is_refused(here, capsys):
    rows = rows_of(60, 0)
    rows["colour"] = np.where(np.arange(60) % 2, "red", "blue")
    rows.to_csv("words.csv", index=False)
    options = [
        "--repeats",
        "1",
        "--folds",
        "2",
        "--methods",
        "PCA",
        "--save",
        "w.safetensors",
        "-q",
    ]
    assert main(["compare", "words.csv", "--target", "kind", *options]) == 0
    capsys.readouterr()
    assert main(["transform", "w.safetensors", "many", "-o", "short", "--dask"]) == 2
    assert (
        "the model learned from text in 'colour', but --dask only reads numbers: give the files one by "
        "one, without --dask" in capsys.readouterr().err
    )


@pytest.mark.slow
def test_without_dask_the_error_names_the_extra(here):
    code = (
        "import sys; sys.modules['distributed'] = None; from nearkin.app.cli import main; raise "
        "SystemExit(main())"
    )
    command = [sys.executable, "-c", code, "compare", "many", "--target", "kind", "--dask"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install "nearkin[dask]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_processes_that_cannot_be_started(here, capsys, monkeypatch):
    def dies(**options):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(app_cluster, "LocalCluster", dies)
    assert main(["transform", "m.safetensors", "many", "-o", "short", "--dask"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("nearkin: the processes of --dask could not be started, most likely ")
    assert names_in(here) == ["m.safetensors", "many"]


def test_a_scheduler_that_does_not_answer(here, capsys, monkeypatch):
    with dask_config({"distributed.comm.timeouts.connect": "200ms"}):
        assert main([*COMPARE, "--dask", "tcp://127.0.0.1:1"]) == 2
    err = capsys.readouterr().err
    assert "tcp://127.0.0.1:1" in err
    assert err.count("\n") == 1


def dask_config(values):
    import dask

    return dask.config.set(values)
