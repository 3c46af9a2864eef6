"""`nearkin.load`: saved models and adapters in Python."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import nearkin
from nearkin.app.cli import main
from nearkin.app.tables.model import save_model
from nearkin.app.tables.reading import read_table
from nearkin.app.vectors.adapter_file import save_adapter

from .test_saved_file import adapter
from .winners import winner, write_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loading")
    write_tables(folder)
    gaps = read_table(str(folder / "gaps table.csv"), "kind")
    sparse = read_table(str(folder / "sparse table.npz"))
    save_model(winner("NCA tables", gaps), folder / "gaps.safetensors")
    save_model(winner("NMMP", gaps), folder / "map.safetensors")
    save_model(winner("raw k-NN", sparse), folder / "sparse.safetensors")
    save_adapter(adapter("int8"), folder / "adapter.safetensors")
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gaps", "map"])
def test_a_model_answers_as_the_command(kind):
    coverage = {"coverage": 0.8} if kind == "gaps" else {}
    options = ["--coverage", "0.8"] if coverage else []
    file = f"{kind}.safetensors"
    assert main(["predict", file, "gaps new.csv", "-o", "o.npz", "-q", *options]) == 0
    assert main(["transform", file, "gaps new.csv", "-o", "z.npz", "-q"]) == 0
    model, new = nearkin.load(file), pd.read_csv("gaps new.csv")
    found = model.details(new[new.columns[::-1]], **coverage)  # by name
    with np.load("o.npz") as written:
        assert set(written) - {"row"} == set(found)
        for name, values in found.items():
            np.testing.assert_array_equal(values, written[name])
    np.testing.assert_array_equal(model.predict(new), found["label"])
    with np.load("z.npz") as written:
        np.testing.assert_array_equal(model.transform(new), written["X"])
    assert model.classes_.tolist() == ["kind 0", "kind 1", "kind 2"]
    assert model.feature_names_in_.tolist() == ["width", "price", "day", "colour"]
    assert repr(model).startswith(f"<SavedModel: {model.method}, accuracy 0.")


@pytest.mark.slow
def test_sparse_rows():
    model = nearkin.load(Path("sparse.safetensors"))
    with np.load("sparse new.npz") as part:
        rows = csr_array((part["data"], part["indices"], part["indptr"]), shape=part["shape"])
    np.testing.assert_array_equal(model.predict(rows), model.predict(rows.toarray()))
    np.testing.assert_allclose(model.transform(rows).toarray(), model.transform(rows.toarray()))
    with pytest.raises(ValueError, match="X has 8 features, not 9"):
        model.predict(rows[:, :8])
    with pytest.raises(ValueError, match="X has missing values, which this model of raw k-NN"):
        model.predict(np.full((1, 9), np.nan))
    with pytest.raises(ValueError, match=r"coverage=0\.9 needs held-out rows"):
        model.details(rows, coverage=0.9)


@pytest.mark.parametrize("coverage", [0, 1, 2, -0.5, np.nan, "x"])
def test_a_coverage_is_between_0_and_1(coverage):
    with pytest.raises((TypeError, ValueError), match="coverage"):
        nearkin.load("sparse.safetensors").details(csr_array((1, 3)), coverage)


def test_an_adapter():
    X = np.random.default_rng(1).normal(size=(5, 6)).astype(np.float32)
    loaded = nearkin.load("adapter.safetensors")
    assert isinstance(loaded, nearkin.EmbeddingAdapter)
    np.testing.assert_array_equal(loaded.transform(X), adapter("int8").transform(X))


def test_what_is_no_model():
    Path("no.safetensors").write_bytes(b"x,y\n")
    with pytest.raises(ValueError, match=r"is not a nearkin model, or is damaged .*make it again"):
        nearkin.load("no.safetensors")
    with pytest.raises(FileNotFoundError):
        nearkin.load("none.safetensors")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r'load needs safetensors: pip install "nearkin\[app\]"'):
        nearkin.load("map.safetensors")
