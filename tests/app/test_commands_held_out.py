"""What held-out rows say at the command line: sets and intervals, unfamiliar rows, drift."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import random_array

from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.saved_file import write_parts
from nearkin.app.tables.model import learned_model, load_model, save_model
from nearkin.app.tables.reading import read_table
from nearkin.comparison import all_methods

from .forgeries import parts
from .tables.test_model import assert_same
from .winners import fitted, winner

N = 300


def drawn(n, seed):
    """Return rows of a table whose classes and numbers overlap."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["width", "height", "depth"])
    frame["colour"] = rng.choice(["red", "green", "blue"], n)
    score = frame["width"] + (frame["colour"] == "red") + rng.normal(size=n)
    frame["kind"] = np.array(["low", "middle", "high"])[np.digitize(score, [0, 1])]
    frame["price"] = 10 * score
    return frame


def saved(folder, name, task="classification", seed=0):
    """Save a model of NCA tables that predicts a column from the features."""
    target = "price" if task == "regression" else "kind"
    frame = drawn(N, seed)
    frame.drop(columns={"price", "kind"} - {target}).to_csv(folder / "t.csv", index=False)
    table = read_table(str(folder / "t.csv"), target, task=task)
    method = {method.name: method for method in all_methods(task, balanced=True)}[name]
    save_model(learned_model(fitted(method, table)[0], table), folder / "m.safetensors")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders with a model, by what it predicts."""
    found = {kind: tmp_path_factory.mktemp(kind) for kind in ("classes", "numbers", "balanced")}
    saved(found["classes"], "NCA tables")
    saved(found["balanced"], "NCA tables balanced")
    saved(found["numbers"], "NCA tables", "regression")
    return found


@pytest.fixture(params=["classes"])
def here(folders, request, monkeypatch, tmp_path):
    """Work in a folder with a model and a table of new rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.safetensors").write_bytes(
        (folders[request.param] / "m.safetensors").read_bytes()
    )
    drawn(500, 1).drop(columns=["kind", "price"]).to_csv("new.csv", index=False)
    return tmp_path


def predicted(*options):
    """Return the predictions of a table of new rows."""
    assert main(["predict", "m.safetensors", "new.csv", "-o", "out.csv", *options]) == 0
    return pd.read_csv("out.csv")


@pytest.mark.long
@pytest.mark.parametrize(
    ("here", "name"),
    [("classes", "NCA tables"), ("balanced", "NCA tables balanced")],
    indirect=["here"],
)
def test_sets_of_labels(here, name):
    out = predicted("--coverage", ".8")
    columns = out.columns.tolist()
    assert columns[columns.index("labels") + 1] == "familiarity"
    sets, kinds = out["labels"].str.split(" | ", regex=False), drawn(500, 1)["kind"]
    assert all(label in labels for label, labels in zip(out["label"], sets, strict=True))
    assert 1 < sets.map(len).mean() < 2.5
    assert predicted().columns.tolist() == [name for name in columns if name != "labels"]
    # the coverage by 300 held-out rows varies by .035 from one training table to the next
    covered = [[kind in labels for kind, labels in zip(kinds, sets, strict=True)]]
    for seed in (2, 3, 4):
        saved(here, name, seed=seed)
        sets = predicted("--coverage", ".8")["labels"].str.split(" | ", regex=False)
        covered.append([kind in labels for kind, labels in zip(kinds, sets, strict=True)])
    assert abs(np.mean(covered) - 0.8) < 0.06


@pytest.mark.parametrize("here", ["numbers"], indirect=True)
def test_intervals_of_numbers(here):
    out, price = predicted("--coverage", "0.9"), drawn(500, 1)["price"]
    assert out.columns.tolist()[:5] == ["row", "value", "low", "high", "familiarity"]
    assert abs(price.between(out["low"], out["high"]).mean() - 0.9) < 0.05
    assert (out["high"] - out["low"]).mean() < 1.2 * 2 * 1.645 * 10


def test_npz_holds_sets_as_a_matrix(here):
    out = predicted("--coverage", ".8")
    assert main(["predict", "m.safetensors", "new.csv", "-o", "o.npz", "--coverage", ".8"]) == 0
    classes = np.array(load_model("m.safetensors").classes)
    with np.load("o.npz") as found:
        assert found["label_set"].dtype == bool
        np.testing.assert_allclose(found["familiarity"], out["familiarity"], rtol=1e-5)
        sets = [" | ".join(classes[labels]) for labels in found["label_set"]]
    assert sets == out["labels"].tolist()


def test_too_small_a_table_for_a_coverage_is_said(here, capsys):
    assert set(predicted("--coverage", ".999")["labels"]) == {"high | low | middle"}
    assert "needs 999 held-out rows, but the model has 300, so every set" in capsys.readouterr().err


@pytest.mark.parametrize("coverage", ["0", "1", "90", "nan", "-.5", "much"])
def test_what_is_no_coverage(here, capsys, coverage):
    with pytest.raises(SystemExit) as end:
        main(["predict", "m.safetensors", "new.csv", f"--coverage={coverage}"])
    assert end.value.code == 2
    assert "--coverage: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("here", ["classes", "balanced"], indirect=True)
def test_unfamiliar_rows_are_named(here, capsys):
    new = pd.read_csv("new.csv")
    predicted()
    assert "unfamiliar" not in capsys.readouterr().err
    strange = np.arange(7, 500, 50)
    new.loc[strange, "depth"] += 30
    new.to_csv("new.csv", index=False)
    out = predicted()
    err = capsys.readouterr().err
    assert " of 500 rows are unfamiliar, so do not rely on " in err
    np.testing.assert_allclose(out["familiarity"][strange], 1 / (N + 1), rtol=1e-5)
    named = (
        err.partition("least familiar first: ")[2].partition("\n")[0].split(" and ")[0].split(", ")
    )
    assert set(map(int, named)) <= set(strange) | set(np.flatnonzero(out["familiarity"] < 0.0034))


def test_drift_is_said_with_its_columns(here, capsys):
    predicted("--drift", "-q")
    err = capsys.readouterr().err
    assert "No drift is shown between the 500 new rows and the training rows" in err
    assert err.count("\n") == 1
    new = pd.read_csv("new.csv")
    new.assign(height=new["height"] + 0.7, colour="red").to_csv("new.csv", index=False)
    predicted("--drift", "-q")
    err = capsys.readouterr().err
    assert err.startswith("Drift: the 500 new rows do not look like the training rows; 2 columns ")
    assert "'height' (p < 0.001)" in err
    assert "'colour' (p < 0.001)" in err
    assert "'depth'" not in err


def test_sparse_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    S = random_array((120, 8), density=0.4, format="csr", random_state=np.random.default_rng(0))
    rows = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez("s.npz", **rows, y=(S[:, [0]].toarray()[:, 0] > 0).astype(int))
    np.savez("new.npz", **rows | {"data": 9 * S.data})
    save_model(winner("NCA tables", read_table("s.npz"), scale=False), tmp_path / "m.safetensors")
    command = ["predict", "m.safetensors", "new.npz", "-o", "o.npz", "--coverage", ".9", "--drift"]
    assert main(command) == 0
    assert "Drift: the 120 new rows" in capsys.readouterr().err
    with np.load("o.npz") as found:
        assert found["label_set"].shape == (120, 2)
        assert found["familiarity"].mean() < 0.2
    header, arrays = parts(Path("m.safetensors").read_bytes())
    names = {name: name.replace("held_out_cells.", "held_out_") for name in arrays}
    assert "held_out_indptr" in names.values()  # as up to version 0.3
    write_parts(Path("old.safetensors"), header, {names[name]: arrays[name] for name in arrays})
    assert_same(load_model("old.safetensors"), load_model("m.safetensors"))


@pytest.mark.parametrize("option", [["--coverage", ".9"], ["--drift"]])
def test_a_model_without_held_out_rows_is_refused(here, capsys, option):
    save_model(winner("PCA", read_table("iris")), here / "m.safetensors")
    assert main(["predict", "m.safetensors", "iris", *option]) == 2
    err = capsys.readouterr().err
    assert "only models of NCA tables have, but this is one of PCA: make one with" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("votes", np.ones((N, 2))),
        ("places", np.arange(N) + 1),
        ("weights", np.zeros(N)),
        ("folds", np.full(N, 2)),
        ("cells", np.ones((N, 2))),
    ],
)
def test_held_out_rows_that_do_not_fit(here, name, wrong):
    header, arrays = parts((here / "m.safetensors").read_bytes())
    write_parts(here / "m.safetensors", header, arrays | {f"held_out_{name}": wrong})
    with pytest.raises(TableError, match=f"held_out_{name}"):
        load_model("m.safetensors")


@pytest.mark.long
def test_inspect_says_that_there_are_held_out_rows(here, capsys):
    assert main(["inspect", "m.safetensors", "-q"]) == 0
    assert "It keeps 300 held-out rows" in capsys.readouterr().out
