"""Save a winner, and use it on rows that nobody labelled: the commands in the order a user meets
them.
"""

import io
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pyarrow import csv
from sklearn.neighbors import KNeighborsClassifier

from nearkin.app import commands
from nearkin.app.cli import main
from nearkin.app.output import significant
from nearkin.app.tables.model import load_model, save_model
from nearkin.app.tables.reading import read_table

from .winners import winner

QUICK = ["--repeats", "1", "--folds", "2", "--methods", "PCA", "--no-references"]
RNG = np.random.default_rng(0)
N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table whose nearest neighbours are spoilt by noise, and a model of it."""
    folder = tmp_path_factory.mktemp("models")
    kind = np.repeat(["cat", "dog", "emu"], N // 3)
    frame = pd.DataFrame(
        {
            "name": [f"animal {i}" for i in range(N)],
            "height": (kind == "cat") + 0.05 * RNG.standard_normal(N),
            "colour": np.where(kind == "dog", "red", RNG.choice(["blue", "green"], N)),
            **{f"noise {i}": RNG.standard_normal(N) for i in range(26)},
            "kind": kind,
        }
    )
    frame.to_csv(folder / "animals.csv", index=False)
    frame.drop(columns="kind").to_csv(folder / "new.csv", index=False)
    save_model(
        winner("LFDA", read_table(str(folder / "animals.csv"), "kind")), folder / "m.safetensors"
    )
    return folder


@pytest.fixture
def here(folder, monkeypatch, tmp_path):
    """The folder's files, in a folder that a test may fill."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def process(folder, *arguments, stdin=None):
    """Run the command in a process of its own."""
    command = [
        sys.executable,
        "-c",
        "from nearkin.app.cli import main; raise SystemExit(main())",
        *arguments,
    ]
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True)


@pytest.mark.long
def test_from_a_table_to_labels_in_processes_of_their_own(here):
    quick = ["--repeats", "1", "--folds", "3", "--methods", "LDA,LFDA"]
    done = process(
        here,
        "compare",
        "animals.csv",
        "--target",
        "kind",
        "--save",
        "new.safetensors",
        "-q",
        *quick,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"method")
    done = process(here, "predict", "new.safetensors", "-", stdin=(here / "new.csv").read_bytes())
    assert done.returncode == 0
    assert done.stderr.decode().startswith("ignored, not learned from: name")
    labels = pd.read_csv(io.BytesIO(done.stdout))["label"]
    assert (labels == pd.read_csv(here / "animals.csv")["kind"]).mean() > 0.7
    done = process(here, "predict", "m.safetensors", "new.csv", "-o", "out.csv", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_saved_winner_labels_the_rows_that_it_was_learned_from(here, capsys):
    assert main(["predict", "m.safetensors", "new.csv", "-q"]) == 0
    out = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert (out["label"] == pd.read_csv("animals.csv")["kind"]).mean() > 0.95
    assert out.columns.tolist() == ["row", "label", "vote", *(f"nearest_{i}" for i in (1, 2, 3)),
                                    *(f"distance_{i}" for i in (1, 2, 3))]  # fmt: skip
    np.testing.assert_array_equal(out["row"], np.arange(N))
    np.testing.assert_array_equal(out["nearest_1"], np.arange(N))  # every row is its own nearest
    np.testing.assert_allclose(out["distance_1"], 0, atol=1e-6)
    assert set(out["vote"]) <= {0.333333, 0.666667, 1.0}


def test_values_in_another_unit_are_said(here, capsys):
    new = pd.read_csv("new.csv")
    new.assign(height=new["height"] + 1e4 * (new.index < 3)).to_csv("far.csv", index=False)
    assert main(["predict", "m.safetensors", "far.csv", "-o", "out.csv"]) == 0
    assert "far outside the training rows: height (3 rows)" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_every_format_holds_the_same_predictions(here, capsys, suffix):
    assert main(["predict", "m.safetensors", "new.csv", "-o", f"out.{suffix}"]) == 0
    assert f"{N} rows labelled by" in capsys.readouterr().err
    assert main(["predict", "m.safetensors", "new.csv", "-q"]) == 0
    expected = pd.read_csv(io.StringIO(capsys.readouterr().out))
    if suffix == "npz":
        with np.load("out.npz") as found:
            assert found["label"].tolist() == expected["label"].tolist()
            np.testing.assert_array_equal(found["nearest"][:, 1], expected["nearest_2"])
            np.testing.assert_allclose(found["distance"][:, 2], expected["distance_3"], rtol=1e-5)
            assert found["row"].tolist() == list(range(N))
        return
    found = pd.read_csv("out.csv") if suffix == "csv" else pd.read_parquet("out.parquet")
    assert found.columns.tolist() == expected.columns.tolist()
    np.testing.assert_array_equal(found["label"].to_numpy(str), expected["label"].to_numpy(str))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("command", ["predict", "transform"])
def test_rows_are_named_by_a_column(here, command, suffix):
    frame = pd.read_csv("new.csv", dtype=str)
    codes = [f"{i:04}" for i in range(N - 1)]
    frame.assign(code=[*codes, ""], height=frame["height"] + "0").to_csv("new.csv", index=False)
    for name, cells in {
        "code": codes,
        "name": frame["name"],
        "height": frame["height"] + "0",
    }.items():
        assert (
            main([command, "m.safetensors", "new.csv", "--id", name, "-o", f"out.{suffix}", "-q"])
            == 0
        )
        if suffix == "npz":
            with np.load("out.npz") as found:
                given = found[name].tolist()
        else:
            out = (
                pd.read_csv("out.csv", dtype=str)
                if suffix == "csv"
                else pd.read_parquet("out.parquet")
            )
            assert out.columns[0] == name
            given = out[name].tolist()
        assert given[: len(cells)] == list(cells)


def test_new_rows_may_be_written_in_another_way(here, capsys):
    assert main(["predict", "m.safetensors", "animals.csv", "-q"]) == 0
    expected = capsys.readouterr().out
    frame = csv.read_csv("animals.csv").to_pandas()
    frame.to_csv("german.txt", index=False, sep=";", decimal=",", encoding="utf-16")
    assert main(["predict", "m.safetensors", "german.txt"]) == 0
    out, err = capsys.readouterr()
    assert out == expected
    assert (
        "read as separated by semicolons and with decimal commas (--sep and --decimal "
        "choose others)" in err
    )
    assert "ignored, not learned from: name, kind" in err
    frame.assign(height=frame["height"].where(frame.index != 3)).to_csv(
        "new.csv", index=False, na_rep="n/a"
    )
    assert main(["transform", "m.safetensors", "new.csv", "-o", "z.csv"]) == 0
    assert "missing: 'n/a' (1 cell)" in capsys.readouterr().err
    assert pd.read_csv("z.csv").notna().all(axis=None)


def test_the_name_of_a_column_of_the_output_is_kept(here, capsys):
    pd.read_csv("new.csv").assign(label=range(N)).to_parquet("new.parquet")
    assert main(["predict", "m.safetensors", "new.parquet", "--id", "label"]) == 0
    assert capsys.readouterr().out.startswith("label (given),label,vote,")
    assert main(["predict", "m.safetensors", "new.parquet", "--id", "lable"]) == 2
    assert "has no 'lable' (did you mean 'label'?): give --id one of" in capsys.readouterr().err


def test_text_that_a_spreadsheet_would_compute_is_escaped_on_request(here, capsys):
    odd = ["=1+1", "+1", "-1", "@A1", "\tx", "plain"]
    pd.read_csv("new.csv").assign(code=[odd[i % 6] for i in range(N)]).to_csv(
        "new.csv", index=False
    )
    for options, expected in (
        ([], odd),
        (["--escape-formulas"], [*(f"'{text}" for text in odd[:5]), "plain"]),
    ):
        assert main(["predict", "m.safetensors", "new.csv", "--id", "code", "-q", *options]) == 0
        assert pd.read_csv(io.StringIO(capsys.readouterr().out))["code"][:6].tolist() == expected


def test_significant_digits():
    numbers = np.array([1 / 3, -2e-7 / 3, 123456.789, 1234567.89, 0, np.nan, np.inf, 1e300])
    expected = [0.333333, -6.66667e-08, 123457, 1234568, 0, np.nan, np.inf, 1e300]
    np.testing.assert_array_equal(significant(numbers), expected)


def test_new_rows_are_matched_by_the_names_of_their_columns(here, capsys):
    frame = csv.read_csv("new.csv").to_pandas()
    frame[frame.columns[::-1]].assign(more=1).to_parquet("turned.parquet")
    assert main(["predict", "m.safetensors", "turned.parquet", "-o", "a.csv"]) == 0
    assert "ignored, not learned from: name, more" in capsys.readouterr().err
    assert main(["predict", "m.safetensors", "new.csv", "-o", "b.csv"]) == 0
    assert (here / "a.csv").read_text() == (here / "b.csv").read_text()


def test_a_value_that_was_never_seen_is_reported(here, capsys):
    pd.read_csv("new.csv").replace("red", "pink").to_csv("other.csv", index=False)
    assert main(["predict", "m.safetensors", "other.csv", "-o", "out.csv"]) == 0
    assert "values not seen in training: 'pink' in colour (20 rows)" in capsys.readouterr().err


def test_transform_gives_the_coordinates_that_predict_measures_in(here):
    assert main(["transform", "m.safetensors", "new.csv", "-o", "z.npz", "-q"]) == 0
    assert main(["transform", "m.safetensors", "new.csv", "-o", "z.parquet", "-q"]) == 0
    assert main(["predict", "m.safetensors", "new.csv", "-o", "p.npz", "-q"]) == 0
    with np.load("z.npz") as archive, np.load("p.npz") as found:
        Z = archive["X"]
        distances = np.linalg.norm(Z[0] - Z[found["nearest"][0]], axis=1)
        np.testing.assert_allclose(distances, found["distance"][0], atol=1e-6)
        frame = pd.read_parquet("z.parquet")
        assert frame.columns.tolist() == archive["feature_names"].tolist()
        np.testing.assert_array_equal(frame.to_numpy(), Z)
    np.testing.assert_allclose(Z, load_model(here / "m.safetensors").arrays["voters"], atol=1e-12)


def test_transform_draws_the_rows_in_a_plane_of_the_model(here, capsys, monkeypatch):
    drawn = []

    def draw(title, displays, path):
        drawn.append((title, displays))
        path.touch()

    monkeypatch.setattr(commands, "draw_displays", draw)
    line = ["transform", "m.safetensors", "new.csv", "-o", "z.csv", "--picture", "new.png"]
    assert main(line) == 0
    assert "Picture: new.png" in capsys.readouterr().err
    ((title, (display,)),) = drawn
    assert title.startswith("transform: LFDA, learned from animals")
    assert display.embedding.shape == (N, 2)
    assert main(["predict", "m.safetensors", "new.csv", "-o", "labels.csv", "-q"]) == 0
    labels = pd.read_csv("labels.csv")["label"]
    np.testing.assert_array_equal(display.labels, labels)
    near = KNeighborsClassifier(3).fit(display.embedding, labels)
    assert near.score(display.embedding, labels) > 0.9
    display.plot(ax=Figure().subplots())
    assert display.ax_.get_title() == f"t-NCA of LFDA in 2-D: {N} rows, coloured by prediction"


def test_a_folder_is_not_drawn(here, capsys):
    line = ["transform", "m.safetensors", ".", "-o", "out", "--dask", "--picture", "p.png"]
    assert main(line) == 2
    assert "leave it out for a folder or an adapter" in capsys.readouterr().err


def test_standard_input(here, capsys, monkeypatch, undrawn):
    def given(content):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    assert main(["predict", "m.safetensors", "new.csv", "-q"]) == 0
    expected = capsys.readouterr().out
    given((here / "new.csv").read_bytes())
    assert main(["predict", "m.safetensors", "-", "-q"]) == 0
    assert capsys.readouterr().out == expected
    given((here / "animals.csv").read_bytes())
    assert main(["compare", "-", "--target", "kind", *QUICK]) == 0
    assert capsys.readouterr().out.startswith("stdin: 60 rows")
    given(b"height,colour\n1,red\n")
    assert main(["predict", "m.safetensors", "-"]) == 2
    assert capsys.readouterr().err.startswith("nearkin: standard input: the table lacks 'noise 0'")


def test_inspect(here, capsys, monkeypatch, undrawn):
    assert main(["inspect", "m.safetensors"]) == 0
    out = capsys.readouterr().out
    model = load_model(here / "m.safetensors")
    assert (
        "m.safetensors: LFDA, learned from 60 rows of animals (30 features, 3 classes of 'kind')"
        in out
    )
    assert "Held out: the 3-NN is right in" in out
    assert model.n_components == 29
    assert (
        "Vectors: 30 features to 29 coordinates; the file takes " in out
    )  # not: 1.0 times smaller
    table = out.partition("ignored)\n")[2].splitlines()
    assert "colour=red" in "".join(table[:4])  # what separates the dogs
    assert "more" not in "".join(table)
    assert (here / "m-features.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(
        "nearkin.app.inspect.FEW", 5
    )  # of more than three times as many, the ends are listed
    assert main(["inspect", "m.safetensors"]) == 0
    assert "... 20 more" in capsys.readouterr().out.partition("ignored)\n")[2].splitlines()[5]


def test_the_automatic_choice_is_saved_with_what_it_promises(here, capsys, undrawn):
    options = [*QUICK[:-2], "raw k-NN", "--no-references"]
    assert main(["compare", "iris", *options, "--save", "iris.safetensors"]) == 0
    out = capsys.readouterr().out
    found = re.search(
        r"Model: iris\.safetensors, raw k-NN \((.*NN)\), fitted to all rows; held-out "
        r"accuracy of this choice: (.*%)",
        out,
    )
    assert re.search(rf"^automatic choice +{found[2][:-1]} ", out, re.MULTILINE)
    assert main(["inspect", "iris.safetensors"]) == 0
    out = capsys.readouterr().out
    assert "raw k-NN, learned from 150 rows of iris" in out
    assert (
        f"Held out: the {found[1]} is right in {found[2]} of the held-out rows (2 folds), "
        "raw k-NN in " in out
    )
    assert main(["transform", "iris.safetensors", "iris"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_allclose(rows.mean(), 0, atol=1e-12)  # the scaled features


def test_indicators_of_missing_cells_are_counted_by_the_rule(here, capsys, undrawn):
    """Twelve columns with gaps, six of them with those of the others: three would be too many for
    29 rows.
    """
    rng = np.random.default_rng(0)
    gaps = np.tile(rng.random((29, 6)) < 0.4, 2)
    frame = pd.DataFrame(np.where(gaps, np.nan, rng.normal(size=(29, 12)))).add_prefix("size ")
    frame.assign(kind=["a", "b"] * 14 + ["a"]).to_csv(here / "gaps.csv", index=False)
    assert (
        main(
            ["compare", "gaps.csv", "--target", "kind", *QUICK[:-2], "raw k-NN", "--no-references"]
        )
        == 0
    )
    assert (
        "29 rows, 12 features and 2 indicators of missing cells, 2 classes"
        in capsys.readouterr().out
    )


@pytest.mark.slow
def test_page_and_json_hold_the_verdict(here, capsys, undrawn):
    files = ["--report", "r.html", "--json", "r.json"]
    assert main(["compare", "iris", *QUICK, *files]) == 0
    out, document = capsys.readouterr().out, json.loads((here / "r.json").read_text())
    assert document["verdict"] in out
    assert document["quote"].startswith("On held-out rows (150 rows, 2 folds), ")
    assert "nearkin compare iris" in (here / "r.html").read_text()
    assert "JSON: r.json" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "no.safetensors", "new.csv"], "no.safetensors cannot be read"),
        (["predict", "new.csv", "new.csv"], "new.csv is not a nearkin model"),
        (["predict", "m.safetensors", "no.csv"], "no.csv: no such file"),
        (["predict", "m.safetensors", "other.csv", "-o", "o.csv", "--strict"], "may be 'Height'), which"),
        (["transform", "m.safetensors", "new.csv", "-o", "z.txt"], "must end in .csv or .parquet or .npz (-o)"),
        (["transform", "m.safetensors", "new.csv", "-o", "no/z.csv"], "choose another place with -o"),
        (["compare", "animals.csv", "--target", "kind", "--save", "m.pkl"], "name must end in .safetensors (--save)"),
        (["compare", "animals.csv", "--target", "kind", "--report", "r.pdf"], "the name must end in .html"),
        (["inspect", "m.safetensors", "--picture", "p.svg"], "the name must end in .png"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_written(here, capsys, arguments, message):
    pd.read_csv("new.csv").rename(columns={"height": "Height"}).to_csv("other.csv", index=False)
    before = sorted(here.iterdir())
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(here.iterdir()) == before


def test_what_fails_in_the_middle_leaves_the_old_file(here, capsys, monkeypatch):
    (here / "out.csv").write_text("precious")

    def broken(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", broken)
    assert main(["predict", "m.safetensors", "new.csv", "-o", "out.csv"]) == 1
    said = (
        "out.csv could not be written (No space left on device): free some space, or choose "
        "another place with -o."
    )
    assert capsys.readouterr().err.endswith(f"nearkin: {said}\n")
    assert (here / "out.csv").read_text() == "precious"
    assert not (here / "out.csv.part").exists()


@pytest.mark.parametrize("command", ["compare", "predict", "transform", "inspect"])
def test_help_has_examples(capsys, command):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "For example:" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("search", ["approximate", "auto"])
def test_an_approximate_search_finds_the_same_in_a_small_table(here, capsys, search):
    assert main(["predict", "m.safetensors", "new.csv", "-q"]) == 0
    exact = capsys.readouterr().out
    assert main(["predict", "m.safetensors", "new.csv", "-q", "--search", search]) == 0
    first, second = (pd.read_csv(io.StringIO(text)) for text in (exact, capsys.readouterr().out))
    assert (first["label"] == second["label"]).all()
    np.testing.assert_allclose(first["distance_3"], second["distance_3"], atol=1e-6)


def test_absent_faiss_is_one_line(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert main(["predict", "m.safetensors", "new.csv", "--search", "approximate"]) == 2
    assert capsys.readouterr().err.endswith(
        'An approximate search needs faiss: pip install "nearkin[ann]".\n'
    )
