"""Numbers in place of classes, from a table to a saved model: `nearkin compare --task regression`
and what follows.
"""

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pyarrow import csv

from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.files.readers import Reading
from nearkin.app.tables.model import embed, load_model, predict, save_model
from nearkin.app.tables.reading import read_rows, read_table
from nearkin.app.tables.words import Summary
from nearkin.comparison import RAW, all_methods, compare

from .winners import winner

RNG = np.random.default_rng(0)
N = 120
OPTIONS = ["--target", "price", "--task", "regression"]
LEARNED = ["--repeats", "1", "--folds", "5", "--methods", "MLKR,PCA"]
QUICK = [
    "--repeats",
    "1",
    "--folds",
    "2",
    "--neighbors",
    "3",
    "--methods",
    "PCA",
    "--no-references",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table whose price follows what most features share, and the model that MLKR
    makes of it.
    """
    folder = tmp_path_factory.mktemp("regression")
    size = RNG.standard_normal(N)
    frame = pd.DataFrame(
        {
            "street": [f"street {i}" for i in range(N)],
            **{f"room {i}": size + 0.3 * RNG.standard_normal(N) for i in range(8)},
            **{f"noise {i}": RNG.standard_normal(N) for i in range(8)},
            "colour": RNG.choice(["red", "blue"], N),
            "city": np.arange(N) // 6,
            "price": (50 + 10 * size + RNG.standard_normal(N)).round(2),
        }
    )
    frame.to_csv(folder / "houses.csv", index=False)
    frame.drop(columns="price").to_csv(folder / "new.csv", index=False)
    files = {"--save": "m.safetensors", "--report": "r.html", "--picture": "m.png"}
    options = [word for option, name in files.items() for word in (option, str(folder / name))]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        assert main(["compare", str(folder / "houses.csv"), *OPTIONS, *LEARNED, *options]) == 0
    (folder / "out.txt").write_text(out.getvalue())
    (folder / "err.txt").write_text(err.getvalue())
    return folder


@pytest.fixture
def here(folder, monkeypatch, tmp_path, undrawn):
    """The folder's files, in a folder that a test may fill."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Compare


def test_what_is_printed(folder):
    out, err = (folder / "out.txt").read_text(), (folder / "err.txt").read_text()
    assert re.search(
        r"houses: 120 rows, 19 features from 18 columns, \d+ values from [\d.]+ to [\d.]+\n", out
    )
    assert re.search(r"^method +R² +MAE +dim +vote +fit +vs raw +p +verdict", out, re.MULTILINE)
    assert re.search(r"^MLKR +0\.\d{3} +\d\.\d\d .* ± 0\.\d{3} .* better", out, re.MULTILINE)
    assert re.search(r"^mean +-?0\.0\d\d .* reference", out, re.MULTILINE)
    assert "The automatic choice (MLKR in " in out
    assert "The best reference, ridge regression, has an R² of 0.9" in out
    assert "points" not in out
    assert "compared: 35 fits in" in err
    assert "chosen on all rows: 3 fits in" in err
    assert (folder / "m.png").read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.long
def test_errors_are_in_the_unit_of_the_target(here, capsys):
    assert main(["compare", "houses.csv", *OPTIONS, *QUICK, "--score", "mae", "-q"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^method +MAE +R² +dim", out, re.MULTILINE)
    assert re.search(
        r"(raw k-NN, which|choice \(.*\)) has a mean absolute error of \d\.\d\d on "
        r"held-out rows",
        out,
    )


@pytest.mark.long
def test_python_says_the_same_as_the_command(here, capsys):
    assert main(["compare", "houses.csv", *OPTIONS, "-q", "--quick"]) == 0
    table = read_table("houses.csv", "price", task="regression")
    folds = {"n_splits": 3, "n_repeats": 1, "choice_rows": 500}
    comparison = compare(table, table.target, task="regression", **folds)
    assert Summary(comparison).verdict in capsys.readouterr().out


@pytest.mark.long
def test_groups_make_it_harder_and_are_no_feature(here, capsys):
    assert main(["compare", "houses.csv", *OPTIONS, "--groups", "city", *QUICK]) == 0
    assert "18 features" in capsys.readouterr().out


@pytest.mark.slow
def test_whole_numbers_and_npz_files(here, capsys):
    frame = csv.read_csv("houses.csv").to_pandas()
    np.savez("t.npz", X=frame.filter(like="room").to_numpy(), y=frame["price"].round().astype(int))
    assert main(["compare", "t.npz", "--task", "regression", *QUICK]) == 0
    assert "t: 120 rows, 8 features" in capsys.readouterr().out
    frame.to_parquet("t.parquet")
    whole, parquet = (
        read_table(name, "price", task="regression") for name in ("houses.csv", "t.parquet")
    )
    np.testing.assert_array_equal(parquet.X, whole.X)
    np.testing.assert_array_equal(parquet.y, whole.y)


@pytest.mark.long
def test_standard_input(here, capsys, monkeypatch):
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(buffer=io.BytesIO((here / "houses.csv").read_bytes()))
    )
    assert main(["compare", "-", *OPTIONS, *QUICK, "-q"]) == 0
    assert capsys.readouterr().out.startswith("method")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("1.5,2,x,4,5", ["t.csv: 'price' holds 'x' on line 4, which is not a number", "correct it, or predict classes"]),
        ("1.5,2,,NA,5", ["t.csv: the table has 3 rows with a label in 'price': too few rows, give at least 4"]),
        ("1.5,,x,4,5", ["t.csv: 'price' holds 'x' on line 4, which is not a number"]),
        ("1.5,2,inf,4,5", ["t.csv: 'price' is infinite in 1 row: drop them"]),
        ('1.5,2,"3,5 m",4,5', ["'price' holds '3,5 m' on line 4, which is not a number"]),
        ("True,False,True,False,True", ["'price' holds True on line 2, which is not a number"]),
        ("a,b,c,d,e", ["'price' holds 'a' on line 2"]),
        ("3,3,3,3,3", ["t.csv: 'price' does not vary (all 3.0): at least two different targets are needed"]),
        ("1e200,2,3,4,5", ["t.csv: 'price' holds values of up to 1.0e+200, whose square overflows or underflows: scale it first"]),
        ("1,2,3", ["t.csv: the table has 3 rows: too few rows"]),
    ],
)  # fmt: skip
def test_targets_that_are_no_numbers(here, capsys, cells, says):
    fields = re.findall(r'"[^"]*"|[^,]+|(?<=,)(?=,)', cells)
    (here / "t.csv").write_text(
        "size,price\n" + "".join(f"{i},{field}\n" for i, field in enumerate(fields))
    )
    before = sorted(here.iterdir())
    assert main(["compare", "t.csv", *OPTIONS]) == 2
    out, err = capsys.readouterr()
    for piece in says:
        assert piece in err
    assert (err.count("\n"), out) == (1, "")
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (
            np.array(["1", "2", "x", "4"]),
            "'y' holds 'x' in row 2 (counted from 0), which is not a number",
        ),
        (
            np.array([1, np.nan, 3, 4]),
            "t.npz: the table has 3 rows with a label in 'y': too few rows",
        ),
        (np.array([True, False, True, False]), "'y' holds True in row 0"),
        (np.zeros((4, 2)), "'y' holds 'float64' of the shape (4, 2)"),
    ],
)
def test_targets_of_npz_files_that_are_no_numbers(here, y, says):
    np.savez("t.npz", X=np.arange(8.0).reshape(4, 2), y=y)
    with pytest.raises(TableError, match=re.escape(says)):
        read_table("t.npz", task="regression")


@pytest.mark.long
def test_a_word_after_thousands_of_numbers(here):
    # more than what a column's type is guessed from
    lines = [f"{i},{'x' * 400},{i / 7}" for i in range(6_000)]
    lines[-2] = "5998,x,about 7"
    (here / "t.csv").write_text("size,note,price\n" + "\n".join(lines))
    table = read_table("t.csv", "price", task="regression")
    assert np.flatnonzero(np.isnan(table.y)).tolist() == [5998]
    assert "price: no numbers, taken as missing: 'about 7' (1 row)" in table.notes
    with pytest.raises(
        TableError, match="'price' holds 'about 7' on line 6000, which is not a number"
    ):
        read_table("t.csv", "price", task="regression", reading=Reading(strict=True))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["houses.csv", "--target", "price"],
            "give --task regression to predict numbers, or cut them into classes",
        ),
        (
            ["whole.csv", "--target", "price"],
            "'price' holds real numbers, such as 1000, not classes: give --task regression",
        ),
        (
            ["houses.csv", "--task", "regression"],
            "name the column of classes or numbers with --target",
        ),
        (
            ["iris", "--task", "regression"],
            "iris is a bundled set with classes of its own: leave --target",
        ),
        (["houses.csv", *OPTIONS, "--groups", "price"], "--target and --groups both name"),
        (["flat.csv", *OPTIONS, "--groups", "city"], "flat: y is "),
    ],
)
def test_bad_input_names_the_remedy(here, capsys, arguments, says):
    frame = pd.read_csv("houses.csv")
    frame.assign(price=np.arange(N) + 1000).to_csv("whole.csv", index=False)
    frame.assign(price=frame["city"] % 4, city=frame["city"] % 4).to_csv("flat.csv", index=False)
    assert main(["compare", *arguments, "-q"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("form", ["{}", "€{:,}", "{} kg"])
def test_many_numbers_that_are_taken_as_classes_are_said_to_be_numbers(here, form):
    frame = pd.DataFrame({"size": np.arange(120) % 7, "price": np.arange(120) // 4 * 50 + 1000})
    frame.assign(price=frame["price"].map(form.format)).to_csv("t.csv", index=False)
    said = (
        "price: 30 different numbers, taken as classes (if they are quantities, give --task "
        "regression to predict numbers)"
    )
    assert said in read_table("t.csv", "price").notes
    assert said not in read_table("t.csv", "price", task="regression").notes
    frame.assign(price=frame["price"] % 900).to_csv("few.csv", index=False)  # 18 numbers
    assert not any("taken as classes" in note for note in read_table("few.csv", "price").notes)
    words = frame["price"].map("No. {} or so".format)
    frame.assign(price=words).to_csv("words.csv", index=False)
    assert not any("taken as classes" in note for note in read_table("words.csv", "price").notes)
    frame.assign(price=(frame["price"] / 8).map("€{:.3f}".format)).to_csv("real.csv", index=False)
    with pytest.raises(TableError, match=r"holds real numbers, such as '€.*, not classes: give"):
        read_table("real.csv", "price")


def test_an_unknown_task(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["compare", "iris", "--task", "ranking"])
    assert "invalid choice: 'ranking'" in capsys.readouterr().err


# The model


def test_a_value_is_the_weighted_mean_of_its_nearest_rows(here, capsys):
    table, model = (
        read_table("houses.csv", "price", task="regression"),
        load_model(here / "m.safetensors"),
    )
    assert main(["predict", "m.safetensors", "new.csv", "-q", "-o", "out.npz"]) == 0
    with np.load("out.npz") as file:
        out = dict(file)
    assert list(out) == ["row", "value", "nearest", "distance"]
    expected = model.vote.predict(out["distance"], table.y[out["nearest"]], 0)
    np.testing.assert_allclose(out["value"], expected, rtol=1e-9)
    # every row is its own nearest
    np.testing.assert_array_equal(out["nearest"][:, 0], np.arange(N))
    assert np.corrcoef(out["value"], table.y)[0, 1] > 0.97


@pytest.mark.long
def test_the_model_says_what_the_winner_says(here, tmp_path):
    table = read_table("houses.csv", "price", task="regression")
    methods = [method for method in all_methods("regression") if method.name in ("PCA", "MLKR")]
    comparison = compare(
        table.X, table.y, task="regression", methods=methods, references=[], n_splits=5, n_repeats=1
    )
    model = load_model(here / "m.safetensors")
    assert model.method == comparison.winner_method == "MLKR"
    rows = RNG.standard_normal((50, table.X.shape[1]))
    np.testing.assert_allclose(
        predict(model, rows)["value"], comparison.winner.predict(rows), rtol=1e-9
    )
    assert model.held_out["score"] == pytest.approx(comparison.choice.scores["r2"].mean())
    assert model.held_out["raw"] == pytest.approx(comparison.raw.scores["r2"].mean())


def test_the_order_of_rows_changes_no_prediction(here, tmp_path):
    table = pd.read_csv("houses.csv")
    table.sample(frac=1, random_state=0).to_csv("turned.csv", index=False)
    values = []
    for name in ("houses.csv", "turned.csv"):
        model = winner("PCA", read_table(name, "price", task="regression"))
        rows, _, _ = read_rows("new.csv", model.encoder)
        values.append(predict(model, rows)["value"])
    np.testing.assert_allclose(*values, rtol=1e-9)


def test_blocks_of_rows_change_no_prediction(here, monkeypatch):
    model = load_model(here / "m.safetensors")
    rows, _, _ = read_rows("new.csv", model.encoder)
    whole = predict(model, rows)
    # the numbers need no room
    monkeypatch.setattr("nearkin.app.tables.model.VOTES_PER_BLOCK", 7 * model.n_neighbors)
    monkeypatch.setattr("nearkin.app.tables.model.ROWS_PER_BLOCK", 7)
    done = []
    parts = predict(model, rows, lambda part, total: done.append(part))
    np.testing.assert_array_equal(parts["nearest"], whole["nearest"])
    np.testing.assert_array_equal(parts["value"], whole["value"])
    assert done[:2] == [7, 14]
    assert embed(model, rows).shape == (N, model.n_components)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_every_format_holds_the_same_predictions(here, capsys, suffix):
    assert main(["predict", "m.safetensors", "new.csv", "-o", f"out.{suffix}"]) == 0
    assert f"{N} rows predicted by MLKR" in capsys.readouterr().err
    model = load_model(here / "m.safetensors")
    expected = predict(model, read_rows("new.csv", model.encoder)[0])
    if suffix == "npz":
        with np.load("out.npz") as found:
            assert found.files == ["row", "value", "nearest", "distance"]
            np.testing.assert_array_equal(found["value"], expected["value"])
            np.testing.assert_array_equal(found["nearest"], expected["nearest"])
        return
    found = pd.read_csv("out.csv") if suffix == "csv" else pd.read_parquet("out.parquet")
    np.testing.assert_allclose(found["value"], expected["value"], rtol=1e-15)
    assert "probability" not in found


def test_transform_gives_the_coordinates_that_predict_measures_in(here):
    assert main(["transform", "m.safetensors", "new.csv", "-o", "z.npz", "-q"]) == 0
    model = load_model(here / "m.safetensors")
    with np.load("z.npz") as archive:
        np.testing.assert_allclose(archive["X"], model.arrays["voters"], atol=1e-12)


def test_inspect(here, capsys):
    assert main(["inspect", "m.safetensors"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"MLKR, learned from 120 rows of houses \(19 features, numbers from [\d.]+ to [\d.]+ of "
                     r"'price'\), saved by nearkin", out)  # fmt: skip
    assert re.search(r"Held out: the .*NN has an R² of 0\.\d{3} on held-out rows \(5 folds\), raw k-NN one of 0\.\d{3} "
                     r"\(95% interval of the difference \+0\.\d{3} to \+0\.\d{3}, p ", out)  # fmt: skip
    assert (here / "m-features.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_what_predicts_nothing_is_said_to(here, capsys):
    frame = pd.read_csv("houses.csv")
    frame.assign(price=RNG.permutation(frame["price"])).to_csv("none.csv", index=False)
    options = [*QUICK[:-1], "--save", "n.safetensors"]
    assert main(["compare", "none.csv", *OPTIONS, *options]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"The automatic choice is (no better|not shown to be better) than always predicting "
        r"the mean",
        out,
    )
    model = load_model(here / "n.safetensors")
    assert model.held_out["score"] < 0.1
    assert main(["predict", "n.safetensors", "new.csv", "-q"]) == 0


def test_sparse_rows(here):
    X = np.where(np.abs(rows := RNG.standard_normal((40, 9))) > 1, rows, 0)
    from scipy.sparse import csr_array

    S = csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": np.array(S.shape)}
    np.savez("s.npz", **parts, y=X.sum(axis=1))
    model = winner(RAW, read_table("s.npz", task="regression"))
    save_model(model, here / "s.safetensors")
    assert main(["predict", "s.safetensors", "s.npz", "-o", "out.npz", "-q"]) == 0
    with np.load("out.npz") as found:
        np.testing.assert_allclose(found["value"], X.sum(axis=1)[found["nearest"]].mean(axis=1))
