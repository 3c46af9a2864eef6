"""Save a winner, and use it on rows that nobody labelled: the commands in the order a user meets them."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.app.model_file import load_model

QUICK = ["--repeats", "1", "--folds", "4", "--time-budget", "0.001"]  # no time for any method
RNG = np.random.default_rng(0)
N = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table whose nearest neighbours are spoilt by noise, and the model that mends it."""
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
    files = ["--save", str(folder / "m.safetensors"), "--picture", str(folder / "m.png")]
    assert main(["compare", str(folder / "animals.csv"), "--target", "kind", "--repeats", "2", "-q", *files]) == 0
    return folder


def run(folder, *arguments, stdin=None):
    """Run the command in a process of its own and return what it printed; fail unless it ends well."""
    done = process(folder, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def process(folder, *arguments, stdin=None):
    command = [sys.executable, "-c", "from nearkin.app.cli import main; raise SystemExit(main())", *arguments]
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True)


@pytest.fixture
def here(folder, monkeypatch, tmp_path):
    """The folder's files, in a folder that a test may fill."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_another_process_gives_the_labels_that_this_one_does(here):
    model = load_model(here / "m.safetensors")
    assert not model.is_raw
    out = pd.read_csv(io.StringIO(run(here, "predict", "m.safetensors", "new.csv", "-q")))
    assert (out["label"] == pd.read_csv("animals.csv")["kind"]).mean() > 0.95
    assert out.columns.tolist() == ["label", "probability", *(f"nearest_{i}" for i in (1, 2, 3)),
                                    *(f"distance_{i}" for i in (1, 2, 3))]  # fmt: skip
    np.testing.assert_array_equal(out["nearest_1"], np.arange(N))  # every row is its own nearest
    np.testing.assert_allclose(out["distance_1"], 0, atol=1e-6)
    assert set(out["probability"]) <= {1 / 3, 2 / 3, 1.0}


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
            np.testing.assert_allclose(found["distance"][:, 2], expected["distance_3"])
        return
    found = pd.read_csv("out.csv") if suffix == "csv" else pd.read_parquet("out.parquet")
    assert found.columns.tolist() == expected.columns.tolist()
    np.testing.assert_array_equal(found["label"].to_numpy(str), expected["label"].to_numpy(str))


def test_new_rows_are_matched_by_the_names_of_their_columns(here, capsys):
    frame = pd.read_csv("new.csv")
    frame[frame.columns[::-1]].assign(more=1).to_parquet("turned.parquet")
    assert main(["predict", "m.safetensors", "turned.parquet", "-o", "a.csv"]) == 0
    assert "ignored, not learned from: name, more" in capsys.readouterr().err
    assert main(["predict", "m.safetensors", "new.csv", "-o", "b.csv"]) == 0
    assert (here / "a.csv").read_text() == (here / "b.csv").read_text()


def test_a_missing_column_is_named(here, capsys):
    pd.read_csv("new.csv").rename(columns={"height": "Height"}).to_csv("other.csv", index=False)
    assert main(["predict", "m.safetensors", "other.csv", "-o", "out.csv"]) == 2
    assert capsys.readouterr().err == (
        "nearkin: other.csv lacks 'height' ('height' may be 'Height' here), which the model learned from: add or "
        "rename the columns.\n"
    )
    assert not (here / "out.csv").exists()


def test_a_value_that_was_never_seen_is_said(here, capsys):
    pd.read_csv("new.csv").replace("red", "pink").to_csv("other.csv", index=False)
    assert main(["predict", "m.safetensors", "other.csv", "-o", "out.csv"]) == 0
    assert "unknown values, encoded as none of the known ones: 'pink' in colour (50 rows)" in capsys.readouterr().err


def test_transform_gives_the_coordinates_that_predict_measures_in(here):
    assert main(["transform", "m.safetensors", "new.csv", "-o", "z.npz", "-q"]) == 0
    assert main(["transform", "m.safetensors", "new.csv", "-o", "z.parquet", "-q"]) == 0
    assert main(["predict", "m.safetensors", "new.csv", "-o", "p.npz", "-q"]) == 0
    with np.load("z.npz") as archive, np.load("p.npz") as found:
        Z = archive["X"]
        np.testing.assert_allclose(
            np.linalg.norm(Z[0] - Z[found["nearest"][0]], axis=1), found["distance"][0], atol=1e-6
        )
        frame = pd.read_parquet("z.parquet")
        assert frame.columns.tolist() == archive["feature_names"].tolist()
        np.testing.assert_array_equal(frame.to_numpy(), Z)
    model = load_model(here / "m.safetensors")
    np.testing.assert_allclose(Z, model.voters, atol=1e-12)


@pytest.mark.slow
def test_pipes(here):
    table = (here / "new.csv").read_bytes()
    assert run(here, "predict", "m.safetensors", "-", stdin=table) == run(here, "predict", "m.safetensors", "new.csv")
    out = run(here, "compare", "-", "--target", "kind", *QUICK, stdin=(here / "animals.csv").read_bytes())
    assert out.startswith("stdin: 150 rows")
    failed = process(here, "predict", "m.safetensors", "-", stdin=b"height,colour\n1,red\n")
    assert failed.returncode == 2
    assert failed.stderr.decode().startswith("nearkin: standard input lacks 'noise 0'")


def test_inspect(here, capsys):
    assert main(["inspect", "m.safetensors"]) == 0
    out = capsys.readouterr().out
    model = load_model(here / "m.safetensors")
    assert f"m.safetensors: {model.method}, learned from 150 rows of animals (30 features, 3 classes of 'kind')" in out
    assert "Held out: 3-NN right in" in out
    assert f"30 features to {model.n_components} coordinates, {30 / model.n_components:.1f} times smaller" in out
    table = out.partition("ignored)\n")[2].splitlines()
    assert "colour=red" in "".join(table[:2])  # what tells the dogs
    assert "... 10 more" in table[10]
    assert (here / "m-features.png").read_bytes().startswith(b"\x89PNG")


def test_raw_k_nn_is_saved_where_nothing_beats_it(here, capsys):
    assert main(["compare", "iris", *QUICK, "--save", "iris.safetensors"]) == 0
    assert "raw k-NN, since no method is shown to beat it" in capsys.readouterr().out
    assert main(["inspect", "iris.safetensors"]) == 0
    assert "raw k-NN, learned from 150 rows of iris" in capsys.readouterr().out
    assert main(["transform", "iris.safetensors", "iris"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_allclose(rows.mean(), 0, atol=1e-12)  # the scaled features


@pytest.mark.slow
def test_quiet_is_quiet(here):
    done = process(here, "predict", "m.safetensors", "new.csv", "-o", "out.csv", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = process(here, "compare", "animals.csv", "--target", "kind", *QUICK, "--quiet")
    assert done.stderr == b""
    assert done.stdout.startswith(b"method")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "no.safetensors", "new.csv"], "no.safetensors"),
        (["predict", "new.csv", "new.csv"], "new.csv is no nearkin model"),
        (["predict", "m.safetensors", "no.csv"], "no.csv: no such file"),
        (["transform", "m.safetensors", "new.csv", "-o", "z.txt"], "let its name end in .csv or .parquet or .npz (-o)"),
        (["transform", "m.safetensors", "new.csv", "-o", "no/z.csv"], "choose another place with -o"),
        (
            ["compare", "animals.csv", "--target", "kind", "--save", "m.pkl"],
            "let its name end in .safetensors (--save)",
        ),
        (
            ["compare", "animals.csv", "--target", "kind", "--save", "n.safetensors", "--neighbors", "2000"],
            "at most 1000 neigh",
        ),
        (["compare", "animals.csv", "--target", "kind", "--report", "r.pdf"], "let its name end in .html"),
        (["inspect", "m.safetensors", "--picture", "p.svg"], "let its name end in .png"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(here, capsys, arguments, message):
    before = sorted(here.iterdir())
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(here.iterdir()) == before


def test_what_fails_in_the_middle_leaves_the_old_file(here, monkeypatch):
    (here / "out.csv").write_text("precious")

    def broken(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", broken)
    assert main(["predict", "m.safetensors", "new.csv", "-o", "out.csv"]) == 2
    assert (here / "out.csv").read_text() == "precious"
    assert not (here / "out.csv.part").exists()


@pytest.mark.parametrize("command", ["compare", "predict", "transform", "inspect"])
def test_help_has_examples(capsys, command):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "examples:" in out
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
    assert capsys.readouterr().err.endswith('An approximate search needs faiss: pip install "nearkin[ann]".\n')
