"""Tables where few rows have a label: read, compared, shown, and the winner saved and used."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.tables.model import load_model, predict, save_model
from nearkin.app.tables.reading import read_rows, read_table
from nearkin.comparison import RAW, all_methods, compare

from .winners import winner

pytestmark = pytest.mark.slow  # a fit to 600 rows for every fold
N = 600
RNG = np.random.default_rng(0)
ANGLE = RNG.uniform(1, 4, N) * np.pi
ARM = np.arange(N) % 2
SPIRALS = (ANGLE * np.array([np.cos(ANGLE + np.pi * ARM), np.sin(ANGLE + np.pi * ARM)])).T
SPIRALS += 0.15 * RNG.standard_normal((N, 2))
TRUTH = np.array(["inner", "outer"])[ARM]
KNOWN = RNG.permutation(N) < 80
FRAME = pd.DataFrame({"x": SPIRALS[:, 0], "y": SPIRALS[:, 1], "arm": np.where(KNOWN, TRUTH, None)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two spirals of which few rows have a label, and what the command made of them."""
    folder = tmp_path_factory.mktemp("spirals")
    FRAME.to_csv(folder / "spirals.csv", index=False)
    files = [
        f"--{kind}={folder / name}"
        for kind, name in {"save": "m.safetensors", "report": "r.html"}.items()
    ]
    arguments = [
        "compare",
        str(folder / "spirals.csv"),
        "--target",
        "arm",
        *files,
        f"--picture={folder / 'p.png'}",
    ]
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", said)
        assert (
            main(
                [
                    *arguments,
                    "--methods",
                    "PCA,LPP,LFDA,DP,TDL",
                    "--no-references",
                    "--folds",
                    "3",
                    "--repeats",
                    "1",
                ]
            )
            == 0
        )
    (folder / "said.txt").write_text(said.getvalue())
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("blocks", [1, 10])
@pytest.mark.parametrize("kind", ["words", "integers", "truth values"])
def test_an_empty_cell_is_no_label(here, monkeypatch, kind, blocks):
    monkeypatch.setattr("nearkin.app.files.csv_file.BLOCK_BYTES", 40 * N // blocks)
    monkeypatch.setattr("nearkin.app.files.csv_file.BYTES_PER_COLUMN", 1)
    labels = {
        "words": TRUTH.tolist(),
        "integers": (ARM - 1).tolist(),
        "truth values": (ARM > 0).tolist(),
    }[kind]
    column = pd.array(
        [label if known else None for label, known in zip(labels, KNOWN, strict=True)]
    )
    frame = FRAME.assign(arm=column)
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    for name in ("t.csv", "t.parquet"):
        table = read_table(name, "arm")
        assert table.y[~KNOWN].tolist() == [None] * (~KNOWN).sum()
        expected = np.array(labels)[KNOWN]
        assert table.y[KNOWN].tolist() == expected.tolist()
        np.testing.assert_array_equal(table.labelled, np.flatnonzero(KNOWN))


def test_npz(here):
    np.savez("nan.npz", X=SPIRALS, y=np.where(KNOWN, ARM, np.nan))
    np.savez("mark.npz", X=SPIRALS, y=np.where(KNOWN, ARM, -1))
    np.savez("words.npz", X=SPIRALS, y=np.where(KNOWN, TRUTH, ""))
    nan, mark = read_table("nan.npz"), read_table("mark.npz", unlabelled="-1")
    assert (
        nan.y.tolist()
        == mark.y.tolist()
        == [k if known else None for k, known in zip(ARM.tolist(), KNOWN, strict=True)]
    )
    assert (
        read_table("words.npz", unlabelled="").y.tolist() == np.where(KNOWN, TRUTH, None).tolist()
    )
    assert len(read_table("mark.npz").labelled) == N  # else -1 is a class
    with pytest.raises(TableError, match="'y' holds no '7': give unlabelled a value that it holds"):
        read_table("mark.npz", unlabelled="7")
    with pytest.raises(TableError, match="iris is a bundled set with classes of its own"):
        read_table("iris", unlabelled="0")


@pytest.mark.long
def test_the_command_says_who_has_a_label_and_who_learned_from_the_rest(folder):
    said = (folder / "said.txt").read_text()
    assert "spirals: 600 rows (80 labelled), 2 features, 2 classes of" in said
    found = re.search(r"The automatic choice \(TDL in all 3 folds\) is right in ([\d.]+)%", said)
    assert float(found[1]) > 95
    assert "80 of 600 rows have a label: only these are held out and vote; " in said
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_report_says_it(folder):
    page = (folder / "r.html").read_text()
    assert " also learned from the others." in page


@pytest.mark.slow
def test_the_saved_winner_labels_new_rows(folder, capsys):
    FRAME.drop(columns="arm").to_csv(folder / "new.csv", index=False)
    assert main(["predict", str(folder / "m.safetensors"), str(folder / "new.csv"), "-q"]) == 0
    out = pd.read_csv(io.StringIO(capsys.readouterr().out))
    near = out.filter(like="nearest").to_numpy()
    assert KNOWN[near].all()
    assert np.mean(out["label"] == TRUTH) > 0.95


@pytest.mark.slow
def test_inspect(folder, capsys):
    assert main(["inspect", str(folder / "m.safetensors"), f"--picture={folder / 'i.png'}"]) == 0
    out = capsys.readouterr().out
    assert "TDL, learned from 600 rows of spirals (2 features, 2 classes of 'arm')" in out
    assert "no feature is stretched evenly everywhere" in out


@pytest.mark.long
def test_the_model_says_what_the_winner_says(here, folder):
    table = read_table(str(folder / "spirals.csv"), "arm")
    names = (RAW, "PCA", "LPP", "LFDA", "DP", "TDL")
    methods = [method for method in all_methods(semi_supervised=True) if method.name in names]
    comparison = compare(table.X, table.y, methods=methods, references=[], n_splits=3, n_repeats=1)
    model = load_model(folder / "m.safetensors")
    rows = 3 * RNG.standard_normal((50, 2))
    np.testing.assert_array_equal(predict(model, rows)["label"], comparison.winner.predict(rows))
    assert (model.n_rows, len(model.arrays["rows"])) == (N, KNOWN.sum())


def test_sparse_rows(here):
    S = csr_array(np.where(RNG.random((N, 9)) < 0.4, RNG.random((N, 9)), 0))
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": np.array(S.shape)}
    np.savez("s.npz", **parts, y=np.where(KNOWN, ARM, np.nan))
    model = winner("TDL", read_table("s.npz"))
    save_model(model, here / "m.safetensors")
    loaded = load_model(here / "m.safetensors")
    X, _, _ = read_rows("s.npz", loaded.encoder)
    np.testing.assert_array_equal(predict(loaded, X)["nearest"], predict(model, X)["nearest"])
    assert KNOWN[predict(loaded, X)["nearest"]].all()
