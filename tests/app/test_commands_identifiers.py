"""Identifiers are written as the file has them, and found by their value."""

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkin.app.cli import main
from nearkin.app.tables.model import save_model
from nearkin.app.tables.reading import read_table
from nearkin.app.vectors.adapter_file import SavedAdapter, save_adapter
from nearkin.vectors import EmbeddingAdapter

from .winners import winner

N = 96
BIG = 2**60
IDS = {
    "64 bits with a gap": pa.array([BIG + 1, BIG + 2, None, *range(BIG + 3, BIG + N)]),
    "unsigned": pa.array([2**64 - 1 - i for i in range(N - 1)] + [None], pa.uint64()),
    "decimals": pa.array([Decimal(f"{i}.{i:030}") for i in range(N)]),
    "floats of ten digits": pa.array([1234567.125 + i for i in range(N)]),
    "dates": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(N)]),
    "times": pa.array([datetime.datetime(2020, 1, 1, 0, 0, i % 60) for i in range(N)]),
    "codes": pa.array([f"{i:03}" for i in range(N)]),
    "categories": pa.array([f"c{i}" for i in range(N)]).dictionary_encode(),
    "truth": pa.array([True, False] * (N // 2)),
}
WRITTEN = {
    kind: ["" if cell is None else str(cell) for cell in IDS[kind].to_pylist()] for kind in IDS
}
COMMANDS = {"predict": "m.safetensors", "transform": "m.safetensors", "adapted": "a.safetensors"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model of a table and an adapter of its numbers, both of two columns."""
    folder = tmp_path_factory.mktemp("identifiers")
    X = np.random.default_rng(0).standard_normal((N, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=["red", "blue"] * (N // 2))
    frame.to_csv(folder / "t.csv", index=False)
    save_model(winner("LFDA", read_table(str(folder / "t.csv"), "kind")), folder / "m.safetensors")
    arrays = {"components": np.eye(2), "bias": np.zeros(2), "scale": np.ones(1)}
    adapter = EmbeddingAdapter.from_arrays({name: a.astype("f") for name, a in arrays.items()})
    scores = {"adapter": 0.9, "raw": 0.8, "n_queries": N, "low": 0.0, "high": 0.2, "p_value": 0.1}
    kept = SavedAdapter(adapter, "adapter", "", ["a", "b"], "", "", scores, "t")
    save_adapter(kept, folder / "a.safetensors")
    return folder, frame[["a", "b"]]


@pytest.fixture(autouse=True)
def here(saved, monkeypatch):
    monkeypatch.chdir(saved[0])


def run(command, table, output):
    words = [command.replace("adapted", "transform"), COMMANDS[command], table, "--id", "id"]
    assert main([*words, "-o", output, "-q"]) == 0


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_identifiers_keep_every_digit(saved, command, kind):
    table = pa.table(dict(saved[1]) | {"id": IDS[kind]})
    parquet.write_table(table, "new.parquet")
    run(command, "new.parquet", "out.parquet")
    assert parquet.read_table("out.parquet")["id"].to_pylist() == IDS[kind].to_pylist()
    run(command, "new.parquet", "out.csv")
    assert pd.read_csv("out.csv", dtype=str, keep_default_na=False)["id"].tolist() == WRITTEN[kind]
    run(command, "new.parquet", "out.npz")
    with np.load("out.npz") as archive:
        found = archive["id"]
    assert found.astype(str).tolist() == WRITTEN[kind]


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_identifiers_of_text_stay_as_they_are_written(saved, command, kind):
    saved[1].assign(id=WRITTEN[kind]).to_csv("new.csv", index=False)
    run(command, "new.csv", "out.csv")
    assert pd.read_csv("out.csv", dtype=str, keep_default_na=False)["id"].tolist() == WRITTEN[kind]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_an_identifier_may_be_a_feature(saved, ending):
    frame = saved[1]
    frame.to_csv("new.csv", index=False)
    frame.to_parquet("new.parquet")
    words = ["predict", "m.safetensors", f"new{ending}", "--id", "a", "-o", "out.parquet", "-q"]
    assert main(words) == 0
    out = parquet.read_table("out.parquet")["a"].to_pylist()
    assert list(map(float, out)) == frame["a"].tolist()


@pytest.mark.parametrize("command", COMMANDS)
def test_blanks_around_names_and_identifiers(saved, command):
    """As most people write a table by hand."""
    lines = [f"{a}, {b}, {i}" for i, (a, b) in enumerate(saved[1].to_numpy().tolist())]
    Path("new.csv").write_text("\n".join(["a,b, id", *lines]))
    run(command, "new.csv", "out.csv")
    assert pd.read_csv("out.csv")["id"].tolist() == list(range(N))


def test_blanks_around_the_name_of_a_column_of_vectors():
    for other in ("old", "new"):
        rows = list(np.random.default_rng(0).standard_normal((N, 3)))
        frame = pd.DataFrame({" v ": rows, "w": rows, " id": range(N)})
        frame.to_parquet(f"{other}.parquet")
    words = ["migrate", "old.parquet", "new.parquet", "--id", "id", "--vectors", "v", "-q"]
    assert main(words) == 0


# The same items in two files


@pytest.mark.parametrize("kind", ["7 and 7.0", "text", "decimals", "codes"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_items_are_matched_by_value(capsys, kind, ending):
    columns = {
        "7 and 7.0": (pa.array(range(N)), pa.array(np.arange(N, dtype=float))),
        "text": (pa.array(range(N)), pa.array([f"{i}.0" for i in range(N)])),
        "decimals": (pa.array(range(N)), pa.array([Decimal(f"{i}.00") for i in range(N)])),
        "codes": (IDS["codes"], IDS["codes"]),
    }
    X = np.random.default_rng(0).standard_normal((N, 3))
    for name, ids in zip(("old", "new"), columns[kind], strict=True):
        table = pa.table({f"x{j}": X[:, j] for j in range(3)} | {"id": ids})
        parquet.write_table(table, f"{name}.parquet")
        table.to_pandas().to_csv(f"{name}.csv", index=False)
    assert main(["migrate", f"old.{ending}", f"new.{ending}", "--id", "id"]) == 0
    assert f"{N} rows embedded by both models" in capsys.readouterr().out
