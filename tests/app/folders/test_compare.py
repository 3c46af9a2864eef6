"""`compare --dask` and `transform --dask` as a user meets them, on a cluster in this process."""

import multiprocessing
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import DNE
from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.folders import rows as folder_rows
from nearkin.app.folders.parquet_folder import Part, open_folder
from nearkin.app.folders.rows import coordinates, write_file
from nearkin.app.output import atomic_folder
from nearkin.app.tables.model import Voters, learned_model, load_model, save_model
from nearkin.app.tables.reading import number_encoder

distributed = pytest.importorskip("distributed")

from nearkin.app.folders import cluster as app_cluster  # noqa: E402 - needs Dask
from nearkin.app.folders import compare as folder_comparison  # noqa: E402
from nearkin.app.folders.cluster import write_folder  # noqa: E402
from nearkin.app.folders.compare import FolderRows  # noqa: E402
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
    mapping = DNE(4).fit(scaler.transform(X), codes)
    vote = KNeighborsClassifier(3).fit(mapping.transform(scaler.transform(X)), codes)
    comparison = SimpleNamespace(
        winner=Pipeline([("scale", scaler), ("map", mapping), ("vote", vote)]),
        winner_method="DNE",
        choice=SimpleNamespace(score=np.array([0.9]), interval=(0.05, 0.15), p_value=0.001),
        raw=SimpleNamespace(score=np.array([0.8])),
        task=SimpleNamespace(name="classification"),
        score=SimpleNamespace(name="accuracy"),
        doubts=(),
    )
    encoder = number_encoder(FEATURES)
    table = SimpleNamespace(encoder=encoder, target="kind", name="many", group_name="", groups=None)
    model = learned_model(comparison, table, Voters(X, codes, np.arange(N), classes, N))
    filled = model.arrays.pop("fill")  # so that a missing value is a fault
    assert filled.shape == (len(FEATURES),)
    save_model(model, folder / "m.safetensors")
    return folder, rows


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder that a test may fill, with the folder and the model linked into it."""
    for name in ("many", "m.safetensors"):
        (tmp_path / name).symlink_to(made[0] / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.long
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


COMPARE = ["compare", "many", "--target", "kind"]
QUICK = ["--folds", "2", "--repeats", "1", "--no-references"]


@pytest.mark.long
def test_a_small_folder_is_compared_like_the_table_of_its_rows(made, here, capsys, address):
    made[1].to_parquet("one.parquet", index=False)
    options = ["--target", "kind", "--methods", "DNE", *QUICK, "-q"]
    assert main(["compare", "one.parquet", *options, "--json", "one.json"]) == 0
    of_table = capsys.readouterr().out
    assert main(["compare", "many", *options, "--json", "many.json", "--dask", address]) == 0
    of_folder = capsys.readouterr().out

    def ranking(text):
        row = r"^(?:raw k-NN|DNE|automatic choice) +[\d.]+ +[\d.]+"
        return re.findall(row, text, re.MULTILINE)

    assert ranking(of_folder) == ranking(of_table) != []
    assert "compared on" not in of_folder


@pytest.mark.long
@pytest.mark.parametrize("name", ["PCA", "DNE", "NMMP", "NCA", "LFDA"])
def test_the_saved_map_is_that_of_all_rows(made, here, capsys, address, monkeypatch, name):
    """Of the 900 rows 400 are compared; scaler and map are those of a local fit to all."""
    monkeypatch.setattr(folder_comparison, "SAMPLE", 400)
    pick = partial(automatic_of, name)
    monkeypatch.setattr("nearkin.comparison.comparison.automatic", pick)
    monkeypatch.setattr("nearkin.comparison.results.automatic", pick)
    made_of = []
    learn = folder_comparison.learned_model

    def seen(comparison, *more):
        made_of.append(comparison)
        return learn(comparison, *more)

    monkeypatch.setattr(folder_comparison, "learned_model", seen)
    options = ["--methods", name, *QUICK, "--dask", address, "--save", "new.safetensors"]
    assert main([*COMPARE, *options]) == 0
    out = capsys.readouterr().out
    assert re.search(r"compared on \d+ rows of 900; of rows with equal features", out), out
    assert "fitted to all rows, of which all vote" in out
    model, rows = load_model(here / "new.safetensors"), made[1]
    X, y = rows[FEATURES].to_numpy(float), rows["kind"].to_numpy(str)
    scaler = StandardScaler().fit(X)
    fitted = made_of[0].winner.named_steps["map"]
    params = {n: v for n, v in fitted.get_params().items() if n != "svd_solver"}
    if name == "NCA":
        params |= {"solver": "sgd", "random_state": 0}
    local = type(fitted)(**params).fit(scaler.transform(X), y)
    np.testing.assert_allclose(model.arrays["mean"], scaler.mean_, atol=1e-4)
    metric = model.arrays["components"].T @ model.arrays["components"]
    expected = local.components_.T @ local.components_
    np.testing.assert_allclose(metric, expected, atol=2e-3 * abs(expected).max())
    np.testing.assert_array_equal(model.arrays["rows"], np.arange(N))
    np.testing.assert_array_equal(np.array(model.classes)[model.arrays["answers"]], y)
    Z = model.transform(X)
    np.testing.assert_allclose(model.arrays["voters"], Z, atol=1e-3 * abs(Z).max())
    assert model.n_rows == N


def automatic_of(name, *arguments):
    return name


@pytest.mark.slow
def test_few_rows_vote_where_there_are_many(made, here, capsys, address, monkeypatch):
    monkeypatch.setattr(folder_comparison, "MOST_VOTERS", 100)
    options = ["--methods", "raw k-NN", *QUICK, "--dask", address, "--save", "few.safetensors"]
    assert main([*COMPARE, *options]) == 0
    said = "".join(capsys.readouterr())
    assert "fitted to all rows, of which 100 evenly spaced ones vote" in said
    model = load_model(here / "few.safetensors")
    rows = np.linspace(0, N - 1, 100).round().astype(int)
    assert model.is_raw
    np.testing.assert_array_equal(model.arrays["rows"], rows)
    labels = np.array(model.classes)[model.arrays["answers"]]
    np.testing.assert_array_equal(labels, made[1]["kind"].to_numpy(str)[rows])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("no faiss here"), "no faiss here"),
        (distributed.KilledWorker("task", None, 3), "workers died repeatedly"),
    ],
)
@pytest.mark.long
def test_where_the_workers_cannot_fit_the_map_that_of_the_sample_is_saved(
    made, here, capsys, address, monkeypatch, error, message
):
    def fail(*arguments, **keywords):
        raise error

    monkeypatch.setattr(DaskDNE, "fit", fail)
    monkeypatch.setattr("nearkin.comparison.comparison.automatic", partial(automatic_of, "DNE"))
    monkeypatch.setattr("nearkin.comparison.results.automatic", partial(automatic_of, "DNE"))
    options = ["--methods", "DNE", *QUICK, "--dask", address, "--save", "new.safetensors"]
    assert main([*COMPARE, *options]) == 0
    assert f"fitted to the sample ({message}" in "".join(capsys.readouterr())
    model = load_model(here / "new.safetensors")
    assert (model.method, model.n_rows) == ("DNE", N)
    Z = model.transform(made[1][FEATURES].to_numpy())
    np.testing.assert_allclose(model.arrays["voters"], Z, atol=1e-4)


@pytest.mark.long
def test_only_rows_of_the_sample_vote_in_a_predictor_for_tables(
    made, here, capsys, address, monkeypatch
):
    monkeypatch.setattr(folder_comparison, "SAMPLE", 400)
    options = ["--methods", "NCA tables", *QUICK, "--dask", address, "--save", "new.safetensors"]
    assert main([*COMPARE, *options]) == 0
    said = "".join(capsys.readouterr())
    model, rows = load_model(here / "new.safetensors"), made[1]
    assert f"fitted to {model.n_rows} of 900 rows; held-out" in said
    drawn = model.arrays["rows"]
    assert 350 < len(drawn) <= 400
    labels = np.array(model.classes)[model.arrays["answers"]]
    np.testing.assert_array_equal(labels, rows["kind"].to_numpy(str)[drawn])
    assert main(["predict", "new.safetensors", "many", "-o", "labels", "--dask", address]) == 0
    found = pd.concat([pd.read_parquet(path) for path in sorted((here / "labels").iterdir())])
    assert (found["label"].to_numpy() == rows["kind"].to_numpy()).mean() > 0.8


def test_of_equal_rows_all_are_drawn_or_none(here, address):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((300, 4)).astype(np.float32), columns=[*"abcd"])
    rows["kind"] = np.array(["x", "y"])[rng.integers(0, 2, 300)]
    rows.loc[0, ["a", "b"]] = 0.0
    copies = rows.copy()
    copies.loc[0, "a"] = -0.0
    (here / "twice").mkdir()
    rows.to_parquet("twice/0.parquet", index=False, row_group_size=40)
    copies[::-1].to_parquet("twice/1.parquet", index=False, row_group_size=70)
    X = pd.concat([rows, copies[::-1]])[[*"abcd"]].to_numpy() + 0.0
    with pytest.MonkeyPatch.context() as patch, app_cluster.cluster(address) as client:
        patch.setattr(folder_comparison, "SAMPLE", 200)
        folder, classes = open_folder(Path("twice")), np.array(["x", "y"])
        about = client, folder, [*"abcd"], "kind", classes, []
        drawn = {seed: FolderRows(*about, seed).sample() for seed in (0, 1)}
    for table in drawn.values():
        assert 150 < len(table.X) <= 200
        np.testing.assert_array_equal(table.X, X[table.row_numbers])
        inside = {row.tobytes() for row in X[table.row_numbers]}
        expected = [number for number, row in enumerate(X) if row.tobytes() in inside]
        np.testing.assert_array_equal(table.row_numbers, expected)
    assert set(drawn[0].row_numbers) != set(drawn[1].row_numbers)


def test_a_sample_is_never_larger_and_no_row_fills_it():
    rng = np.random.default_rng(0)
    for _ in range(50):
        hashes = rng.integers(0, rng.integers(2, 400), 300).astype(np.uint64)
        taken = folder_comparison.in_sample(hashes, 100)
        assert taken.sum() <= 100
        assert not set(hashes[taken]) & set(hashes[~taken])
    assert folder_comparison.in_sample(hashes[:100], 100).all()
    of_one = np.append(np.zeros(90, np.uint64), np.arange(1, 60, dtype=np.uint64))
    np.testing.assert_array_equal(folder_comparison.in_sample(of_one, 100), of_one > 0)


@pytest.mark.long
def test_no_scaling_more_votes_and_a_page(here, capsys, address):
    options = ["--no-scaling", "--neighbors", "9", "--picture", "p.png", "--report", "p.html", "-q"]
    options += ["--methods", "PCA", "--score", "f1"]
    assert main([*COMPARE, *options, *QUICK, "--dask", address]) == 0
    out, err = capsys.readouterr()
    assert " 9-NN" in out
    assert err == ""
    assert names_in(here) == ["m.safetensors", "many", "p.html", "p.png"]


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


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "many", "--target", "kind"], "many is a folder: give a .csv, .xlsx, .json, .parquet or .npz file, or"),
        (["predict", "m.safetensors", "many"], "or a folder of Parquet files and --dask"),
        (["transform", "m.safetensors", "many", "-o", "x.csv"], "or a folder of Parquet files and --dask"),
        (["compare", "m.safetensors", "--target", "kind", "--dask"], "m.safetensors is not a folder, but --dask needs"),
        (["compare", "many", "--dask"], "many: name the column of classes or numbers with --target"),
        (["compare", "many", "--target", "kid", "--dask"], "did you mean 'kind'"),
        ([*COMPARE, "--methods", "none", "--dask"], "--methods does not know 'none'"),
        ([*COMPARE, "--task", "regression", "--groups", "e1", "--dask"], "--task, --groups: not available with --dask. Folders"),
        ([*COMPARE, "--score", "r2", "--dask"], "--score r2 is not a score of classification"),
        ([*COMPARE, "--save", "m.txt", "--dask"], "the name must end in .safetensors"),
        (["transform", "m.safetensors", "many", "--dask"], "name a new folder for them with -o"),
        (["transform", "m.safetensors", "many", "--dask", "-o", "many"], "many is read, and would be overwritten"),
        (["transform", "m.safetensors", "many", "--dask", "-o", "few"], "few exists: name a new folder with -o"),
        (["transform", "m.safetensors", "many", "--dask", "-o", "no/where"], "no folder can be made there"),
        (["transform", "m.safetensors", "few", "--dask", "-o", "out"], "few lacks 'e0', 'e1', 'e2'"),
        (["transform", "m.safetensors", "text", "--dask", "-o", "out"], "holds text in 'e3': leave it out"),
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


@pytest.mark.long
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


@pytest.mark.long
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
