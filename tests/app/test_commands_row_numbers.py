"""A line of output for every line of input, under the number that it has in the file."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.app.files.judgements import read_judgements
from nearkin.app.tables.model import load_model, save_model
from nearkin.app.tables.reading import read_table
from nearkin.app.vectors.reading import read_vectors

from .winners import winner

N = 40
RNG = np.random.default_rng(0)
WIDTH = (RNG.standard_normal(N) + 3 * (np.arange(N) % 2)).round(3)
# with a blank line, which is no row to pandas and pyarrow either
NEW = "width,depth\n1.5,0\n,\n2.5,1\n\n,\n-1,\n,\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"width": WIDTH, "depth": np.arange(N) % 7, "kind": ["a", "b"] * (N // 2)})
    lines = frame.to_csv(index=False).splitlines()
    (tmp_path / "full.csv").write_text("\n".join(lines))
    (tmp_path / "gaps.csv").write_text(
        "\n".join([lines[0], ",,", lines[1], ",,", "", *lines[2:], ",,", ""])
    )
    (tmp_path / "new.csv").write_text(NEW)
    return tmp_path


def rows_of_file(name):
    """Return the numbers that pandas gives the rows of a file that hold something."""
    frame = pd.read_csv(name)
    return frame.index[frame.notna().any(axis=1)].tolist()


def predicted(capsys, *arguments):
    capsys.readouterr()
    assert main(["predict", "m.safetensors", "new.csv", *arguments]) == 0
    return pd.read_csv(io.StringIO(capsys.readouterr().out))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["LFDA", "NCA tables", "raw k-NN"])
def test_every_row_is_predicted_under_its_number(capsys, method):
    save_model(winner(method, read_table("full.csv", "kind")), Path("m.safetensors"))
    found = predicted(capsys)
    assert found["row"].tolist() == pd.read_csv("new.csv").index.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.notna().all(axis=None)
    alone = pd.read_csv("new.csv").iloc[[2]]
    alone.to_csv("new.csv", index=False)
    pd.testing.assert_frame_equal(
        predicted(capsys).drop(columns="row"),
        found.iloc[[2]].drop(columns="row").reset_index(drop=True),
    )


def test_the_columns_of_the_model_may_be_all_that_there_are(capsys):
    """A file that holds these alone has as many rows as one with more columns."""
    save_model(winner("LFDA", read_table("full.csv", "kind")), Path("m.safetensors"))
    few = predicted(capsys)
    pd.read_csv("new.csv").assign(more="x").to_csv("new.csv", index=False)
    pd.testing.assert_frame_equal(predicted(capsys), few)


def test_names_of_empty_rows_are_kept(capsys):
    save_model(winner("LFDA", read_table("full.csv", "kind")), Path("m.safetensors"))
    assert predicted(capsys, "--id", "width")["width"].isna().tolist() == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_model_that_knows_no_missing_cells_leaves_empty_rows_empty(capsys, suffix):
    model = winner("LFDA", read_table("full.csv", "kind"))
    # as models of folders are
    arrays = {name: array for name, array in model.arrays.items() if name != "fill"}
    save_model(replace(model, arrays=arrays), Path("m.safetensors"))
    (
        pd.read_csv("new.csv").fillna({"depth": 3}).where(lambda frame: frame["width"].notna())
    ).to_csv("new.csv", index=False)
    assert main(["predict", "m.safetensors", "new.csv", "-o", f"out.{suffix}"]) == 0
    found = pd.read_csv("out.csv") if suffix == "csv" else pd.read_parquet("out.parquet")
    assert found["row"].tolist() == [0, 1, 2, 3, 4, 5]
    assert found["label"].isna().tolist() == found["nearest_1"].isna().tolist() == [False, True] * 3
    (pd.read_csv("new.csv").assign(depth=np.nan)).to_csv("new.csv", index=False)
    assert main(["predict", "m.safetensors", "new.csv"]) == 2
    assert "fill them first" in capsys.readouterr().err


@pytest.mark.slow
def test_voters_have_the_numbers_of_the_training_file():
    table, full = read_table("gaps.csv", "kind"), read_table("full.csv", "kind")
    assert "ignored, empty rows: 3" in table.notes
    assert np.array_equal(table.X, full.X)
    assert list(table.row_names) == rows_of_file("gaps.csv") != list(full.row_names)
    for method in ("LFDA", "NCA tables"):
        save_model(winner(method, table), Path("m.safetensors"))
        model = load_model(Path("m.safetensors"))
        assert model.arrays["rows"].tolist() == rows_of_file("gaps.csv")


def test_vectors_are_not_numbered_anew(here):
    (here / "v.csv").write_text("a,b\n1,2\n,\n3,4\n")
    (note,) = read_vectors("v.csv").notes
    assert note.endswith("the first on line 3")
    (here / "pairs.csv").write_text("a,b\n1,2\n,\n3,4\n,\n")
    assert read_judgements("pairs.csv").left.tolist() == [1, 3]
