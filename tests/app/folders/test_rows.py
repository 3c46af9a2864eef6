"""`predict --dask`: the predictions of a folder are those of its rows in one file."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from nearkin.app.cli import main
from nearkin.app.files.readers import ignore
from nearkin.app.folders.parquet_folder import Part, open_folder
from nearkin.app.folders.rows import predictions, write_file
from nearkin.app.tables.model import learned_model, load_model, save_model
from nearkin.app.tables.reading import read_table
from nearkin.comparison import all_methods

from ..winners import fitted

distributed = pytest.importorskip("distributed")

from nearkin.app.folders.cluster import cluster, write_folder  # noqa: E402 - needs Dask

NUMBERS = ["width", "height", "depth", "weight"]
SIZES = 70, 0, 50
# what a model is of: the method, the target, and whether numbers are missing
MODELS = {
    "a map and a vote": ("DNE", "kind", False),
    "a map, and gaps that are filled": ("LDA", "kind", True),
    "all rows": ("NCA tables", "kind", True),
    "all rows, of numbers": ("NCA tables", "price", True),
}


def drawn(n, seed):
    """Return rows with overlapping classes and numbers, and a name each."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=NUMBERS)
    score = frame["width"] - frame["depth"] + rng.normal(size=n)
    frame["kind"] = np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.5])]
    frame["price"] = 10 * score
    frame["name"] = np.array([f"{seed}/{row}" for row in range(n)], dtype=str)
    return frame


def with_gaps(frame, seed):
    gaps = np.random.default_rng(seed).random(len(frame)) < 0.2
    return frame.assign(height=frame["height"].mask(gaps))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of new rows, with gaps and without, also in one file; and a model of each kind."""
    place = tmp_path_factory.mktemp("predicted")
    for kind in ("whole", "gaps"):
        parts = [drawn(n, seed) for seed, n in enumerate(SIZES)]
        if kind == "gaps":
            parts = [with_gaps(part, seed) for seed, part in enumerate(parts)]
        (place / kind).mkdir()
        for number, part in enumerate(parts):
            part.to_parquet(place / kind / f"{number}.parquet", index=False, row_group_size=30)
        pd.concat(parts).to_parquet(place / f"{kind}.parquet", index=False)
    known = drawn(90, 7)
    for number, (method, target, gaps) in enumerate(MODELS.values()):
        rows = with_gaps(known, 7) if gaps else known
        rows[[*NUMBERS, target]].to_parquet(place / "known.parquet", index=False)
        task = "regression" if target == "price" else "classification"
        table = read_table(str(place / "known.parquet"), target, task=task)
        methods = {one.name: one for one in all_methods(task)}
        model = learned_model(fitted(methods[method], table)[0], table)
        save_model(model, place / f"{number}.safetensors")
    return place


@pytest.fixture
def here(folders, tmp_path, monkeypatch):
    for path in folders.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_same_as_in_one_file(kind, model, *options):
    """Check what is in the folder "labels" against what predict writes of the same rows."""
    assert main(["predict", model, f"{kind}.parquet", "-o", "labels.parquet", *options]) == 0
    expected = parquet.read_table("labels.parquet")
    for number, n in enumerate(SIZES):
        found = parquet.read_table(f"labels/{number}.parquet")
        same = expected.slice(sum(SIZES[:number]), n).to_pandas()
        if "row" in same:
            same["row"] = np.arange(n)
        pd.testing.assert_frame_equal(found.to_pandas(), same, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("number", "what"), enumerate(MODELS), ids=MODELS)
@pytest.mark.parametrize("ids", [[], ["--id", "name"]], ids=["row", "name"])
def test_a_folder_is_predicted_like_its_rows_in_one_file(here, address, capsys, number, what, ids):
    kind = "gaps" if MODELS[what][2] else "whole"
    model = f"{number}.safetensors"
    assert main(["predict", model, kind, "-o", "labels", "--dask", address, *ids]) == 0
    err = capsys.readouterr().err
    done = "predicted" if "of numbers" in what else "labelled"
    assert f"120 rows {done} by {MODELS[what][0]}: labels (3 files)" in err
    if kind == "gaps":
        n_missing = pd.read_parquet("gaps.parquet")["height"].isna().sum()
        assert f": height ({n_missing} rows)" in err
    check_same_as_in_one_file(kind, model, *ids)


@pytest.mark.parametrize(
    ("number", "options"),
    [(2, ["--coverage", "0.8"]), (3, ["--coverage", "0.8"]), (0, ["--search", "auto"])],
)
def test_options_of_predict(here, address, number, options):
    model = f"{number}.safetensors"
    command = ["predict", model, "whole", "-o", "labels", "--dask", address]
    assert main([*command, *options, "--id", "name"]) == 0
    check_same_as_in_one_file("whole", model, *options, "--id", "name")


def test_a_search_begins_once_for_a_file(here, monkeypatch):
    monkeypatch.setattr("nearkin.app.files.parquet_file.CELLS_PER_BATCH", 20 * 4)
    monkeypatch.setattr("nearkin.app.files.parquet_file.MIN_ROWS_PER_BATCH", 1)
    model, built = load_model("0.safetensors"), []

    def begin(model):
        built.append(model)
        return predictions(model)

    part = Part(here / "whole" / "0.parquet", 0, 70)
    missing = write_file(part, here / "0.parquet", mapping=model, begin=begin, names=NUMBERS)
    assert built == [model]
    assert not +missing
    assert len(pd.read_parquet("0.parquet")) == 70


@pytest.mark.long
def test_processes_here_predict_by_a_model_of_the_folder(here, address):
    rows = pd.concat([drawn(200, seed) for seed in (11, 12, 13)])
    (here / "many").mkdir()
    for number in range(3):
        part = rows.iloc[200 * number : 200 * (number + 1)]
        part[[*NUMBERS, "kind"]].to_parquet(f"many/{number}.parquet", index=False)
    compare = ["compare", "many", "--target", "kind", "--save", "new.safetensors", "-q"]
    assert main([*compare, "--dask", address]) == 0
    assert main(["predict", "new.safetensors", "whole", "-o", "labels", "--dask"]) == 0
    check_same_as_in_one_file("whole", "new.safetensors")


@pytest.mark.long
def test_a_worker_that_dies_loses_nothing(here):
    died = here / "died"

    def begin(model):
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return predictions(model)

    (here / "labels").mkdir()
    model = load_model("2.safetensors")
    with cluster(None) as client:
        folder, options = open_folder(Path("whole")), {"names": NUMBERS, "numbered": True}
        write_folder(folder, Path("labels"), client, ignore, model, begin=begin, **options)
    assert died.exists()
    assert sorted(path.name for path in Path("labels").iterdir()) == [
        f"{number}.parquet" for number in range(3)
    ]
    check_same_as_in_one_file("whole", "2.safetensors")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2.safetensors whole --dask --drift -o out", "--drift: not available with --dask. Parquet files"),
        ("2.safetensors whole --dask --sep ; --escape-formulas -o out", "--escape-formulas, --sep: not available with --dask."),
        ("2.safetensors whole --dask", "--dask writes files: name a new folder for them with -o"),
        ("0.safetensors whole --dask --coverage 0.9 -o out", "--coverage needs held-out rows, which only models of NCA"),
        ("0.safetensors whole --dask --id nam -o out", "did you mean 'name'"),
        ("0.safetensors 0.safetensors --dask -o out", "0.safetensors is not a folder, but --dask needs one"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(here, capsys, line, message):
    before = set(here.iterdir())
    assert main(["predict", *line.split()]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert set(here.iterdir()) == before
