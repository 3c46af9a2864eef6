"""Files whose columns hold odd cells: compare reads them, predict answers every row."""

import io

import numpy as np
import pandas as pd
import pytest

import nearkin
from nearkin.app.cli import PARSER, main
from nearkin.app.files.formats import reading
from nearkin.app.tables.reading import read_table

N = 90
QUICK = ["--methods", "nca-tables", "--quick", "--no-references"]


def cars(seed=0, n=N):
    rng = np.random.default_rng(seed)
    miles, age = rng.integers(1, 90, n), rng.integers(0, 12, n)
    frame = pd.DataFrame(
        {
            "mileage": [f"{number},000" for number in miles],
            "age": age.astype(object),
            "economy": [f"{30 - a:.1f} {('kmpl', 'km/kg')[a % 2]}" for a in age],
            "colour": rng.choice(["red", "blue"], n),
            "value": np.where(miles / 9 + age > 11, "cheap", "dear"),
        }
    )
    frame.loc[frame.index[: n // 10], "mileage"] = "Unknown"
    return frame


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a table of odd cells, and the model that was learned from it."""
    folder = tmp_path_factory.mktemp("cars")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        frame = cars()
        frame.loc[[20, 21], "age"] = ["n/k", "n/k"]
        frame.to_csv("cars.csv", index=False)
        arguments = ["compare", "cars.csv", "--target", "value", "--save", "m.safetensors", *QUICK]
        assert main([*arguments, "--json", "all.json"]) == 0
    return folder


@pytest.fixture(autouse=True)
def folder(here, monkeypatch):
    monkeypatch.chdir(here)


def predicted(frame, capsys, *options, code=0):
    frame.to_csv("new.csv", index=False)
    assert main(["predict", "m.safetensors", "new.csv", *options]) == code
    found = capsys.readouterr()
    return (pd.read_csv(io.StringIO(found.out)) if code == 0 else None), found.err


def test_what_was_odd_is_said():
    notes = read_table("cars.csv", "value").notes
    assert "age: 2 cells are not numbers, missing there: 'n/k' (2)" in notes
    assert (
        "mileage: 9 cells are not numbers, missing there: 'Unknown' (9, with an indicator)" in notes
    )
    assert any(line.startswith("read as numbers of several units: economy ('") for line in notes)


@pytest.mark.parametrize("command", ["compare", "check"])
def test_strict_reads_words(command):
    options = PARSER.parse_args([command, "cars.csv", "--target", "value", "--strict"])
    notes = read_table("cars.csv", "value", reading=reading(options)).notes
    assert any("read as text because of cells that are not numbers" in line for line in notes)


def test_every_row_is_predicted(capsys):
    clean, _ = predicted(cars(1, 40), capsys)
    new = cars(1, 40)
    new.loc[[30, 31, 32, 33], "age"] = "old"
    new.loc[34, "economy"] = "12 mpg"
    found, said = predicted(new, capsys)
    said = " ".join(said.split())
    assert (
        "age: 4 cells are not numbers, taken as missing: 'old' on line 32, 'old' on line 33, 'old' "
        "on line 34" in said
    )
    assert "economy: 1 cell is not a number in 'km/kg or kmpl', taken as missing: '12 mpg'" in said
    assert "'Unknown'" not in said  # a word that was learned
    rest = np.r_[:30, 35:40]
    pd.testing.assert_frame_equal(found.iloc[rest], clean.iloc[rest])
    assert found["label"].notna().all()
    _, said = predicted(new, capsys, "--strict", code=2)
    assert "'age' holds 'old' on line 32, but numbers were expected there" in said


def test_columns_in_another_order_and_columns_that_lack(capsys):
    new = cars(1, 40)
    clean, _ = predicted(new, capsys)
    moved, said = predicted(new[["value", "colour", "economy", "age", "mileage"]], capsys)
    pd.testing.assert_frame_equal(moved, clean)
    assert "lacks" not in said
    found, said = predicted(new.drop(columns="colour"), capsys)
    assert (
        "the table lacks 'colour', which the training rows had, taken as missing in every row"
        in said
    )
    assert (found["label"] == clean["label"]).mean() > 0.9
    _, said = predicted(new.drop(columns="colour"), capsys, "--strict", code=2)
    assert "the table lacks 'colour'" in said
    _, said = predicted(new[["colour", "economy"]], capsys, code=2)
    assert (
        "the table lacks 'mileage', 'age', which the training rows had: add or rename columns"
        in said
    )


def test_unread_cells_are_drift(capsys):
    new = cars(1, 60)
    _, said = predicted(new, capsys, "--drift")
    assert "age" not in said.partition("rift")[2]
    new.loc[:30, "age"] = "old"
    _, said = predicted(new, capsys, "--drift")
    assert "age" in said.partition("rift")[2]


def test_a_model_in_python_answers_too():
    new = cars(1, 40)
    model = nearkin.load("m.safetensors")
    clean = model.predict(new)
    new.loc[3, "age"] = "old"
    with pytest.warns(
        UserWarning, match="age: 1 cell is not a number, taken as missing: 'old' in row 3"
    ):
        found = model.predict(new)
    np.testing.assert_array_equal(np.delete(found, 3), np.delete(clean, 3))


@pytest.mark.long
def test_words_beside_numbers_are_drawn(capsys):
    assert main(["inspect", "m.safetensors", "--picture", "m.png"]) == 0
    assert "mileage" in capsys.readouterr().out
