"""`nearkin adapt`, and `nearkin transform` by an adapter."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkin.app import adapt
from nearkin.app.adapter_file import load_adapter
from nearkin.app.cli import main
from nearkin.app.readers import TableError
from nearkin.app.saved_file import saved_parts, write_parts
from nearkin.evaluation import adaptation, compare_vectors

N, P = 240, 10
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 8
X = RNG.normal(size=(N, P)) * np.r_[np.ones(4), np.full(P - 4, 3.0)]
X[:, :4] += 3 * RNG.normal(size=(8, 4))[LABELS]
X = X.astype(np.float32)


def lists(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working directory with files of vectors; few settings are tried, in short fits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(adaptation, "SETTINGS", [adaptation.SETTINGS[0] | {"max_iter": 8}])
    monkeypatch.setattr(adaptation, "CHOICE_QUERIES", 1)
    names = [f"row {i}" for i in range(N)]
    table = pa.table({"name": names, "embedding": lists(X), "topic": [f"t{c}" for c in LABELS]})
    parquet.write_table(table, "vectors.parquet")
    np.savez("vectors.npz", X=X, y=LABELS)
    return tmp_path


def run(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def adapted():
    """Return the adapter that the command saves; what it compares is the same whatever is taken, and
    compared once.
    """
    found = []

    def compared(known, **options):
        if not found:
            found.append(compare_vectors(known, **options))
        return found[0]

    def saved(*more):
        words = ("--label", "topic", "--sizes", "4,6", "--save", "a.safetensors")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adapt, "compare_vectors", compared)
            assert run("adapt", "vectors.parquet", *words, *more) == 0
        return load_adapter("a.safetensors")

    return saved


class TestAdapt:
    def test_from_labels_to_a_shorter_file(self, adapted, capsys):
        adapter = adapted("--report", "a.html")
        text = capsys.readouterr().out
        for words in (
            "240 vectors of 10 dimensions",
            "Take adapter",
            "unseen - raw",
            "Adapter: a.safetensors",
        ):
            assert words in text
        page = Path("a.html").read_text()
        assert all(
            words in page
            for words in (adapter.name, "<svg", "precision@10", "nearkin adapt vectors")
        )
        # a ring, for seen and for unseen classes, and the precision of matches for both
        assert page.count('id="chosen"') == page.count("minimum cosine of a match") == 2
        assert page.count("<svg") == 4
        assert page.count(f"<!-- recommended: {adapter.name} -->") == 2
        assert "#888888" not in page  # what is grey has the colour of the theme
        assert adapter.held_out["adapter"] > adapter.held_out["raw"]
        assert (
            run(
                "transform",
                "a.safetensors",
                "vectors.parquet",
                "--id",
                "name",
                "-o",
                "short.parquet",
            )
            == 0
        )
        short = parquet.read_table("short.parquet")
        assert len(pd.read_parquet("short.parquet")) == len(short)
        assert short.column_names == ["name", "embedding"]
        found = np.stack(short["embedding"].to_numpy())
        np.testing.assert_array_equal(found, adapter.transform(X))
        assert adapter.bytes == found[0].nbytes

    @pytest.mark.parametrize("suffix", ["npz", "csv"])
    def test_other_formats_hold_the_same(self, adapted, suffix):
        adapter = adapted("--take", "adapter 4")
        assert run("transform", "a.safetensors", "vectors.parquet", "-o", f"short.{suffix}") == 0
        if suffix == "npz":
            found = np.load("short.npz")["X"]
        else:
            frame = pd.read_csv("short.csv")
            assert list(frame) == [f"embedding[{i}]" for i in range(4)]
            found = frame.to_numpy(np.float32)
        np.testing.assert_allclose(found, adapter.transform(X), atol=1e-6)

    @pytest.mark.parametrize("name", ["adapter 6 int8", "adapter 6 binary", "adapter 10"])
    def test_any_row_of_the_table_can_be_taken(self, adapted, name, capsys):
        adapter = adapted("--take", name)
        kinds = {"int8": np.int8, "binary": np.uint8, "float": np.float32}
        kind = next((kind for kind in kinds if kind in name), "float")
        Z = adapter.transform(X)
        assert Z.dtype == kinds[kind]
        assert Z.shape == (N, 1 if kind == "binary" else adapter.map.n_components_)
        assert name in capsys.readouterr().out

    def test_the_page_shows_the_command_as_a_shell_reads_it(self, adapted):
        adapted("--take", "adapter 6", "--report", "a.html")
        assert "--take &#x27;adapter 6&#x27;" in Path("a.html").read_text()

    def test_inspect_says_what_it_is(self, adapted, capsys):
        adapted("--take", "adapter 4 int8")
        capsys.readouterr()
        assert run("inspect", "a.safetensors") == 0
        text = capsys.readouterr().out
        assert all(
            words in text
            for words in ("adapter 4 int8", "10 dimensions to 4, 4 bytes each", "precision@10")
        )
        assert "Which cosine of adapter 4 int8 is a match" in text
        assert "queries have no right one" not in text

    def test_queries_without_an_answer_raise_the_thresholds(self, adapted, capsys):
        thresholds = []
        for share in ((), ("--unanswerable", "0.5")):
            adapter = adapted("--take", "adapter 6", *share)
            thresholds.append(adapter.pair_rules.every.curve.promise(0.8).threshold)
        assert adapter.unanswerable == 0.5
        assert thresholds[1] > thresholds[0]
        assert "It is assumed that 50 % of queries have no right one." in capsys.readouterr().out
        capsys.readouterr()
        assert run("inspect", "a.safetensors") == 0
        assert "It is assumed that 50 % of queries have no right one" in capsys.readouterr().out

    def test_noise_is_left_alone(self, capsys, folder):
        np.savez("noise.npz", X=X, y=RNG.permutation(LABELS))
        assert (
            run("adapt", "noise.npz", "--label", "y", "--sizes", "4", "--save", "n.safetensors")
            == 0
        )
        text = capsys.readouterr().out
        assert "Keep the raw vectors: no adapter is shown to be better" in text
        assert "No adapter was saved" in text
        assert not (folder / "n.safetensors").exists()

    def test_pairs_by_name(self, capsys):
        order = np.argsort(LABELS, kind="stable").reshape(-1, 2)
        pd.DataFrame(order, columns=["a", "b"]).map(lambda i: f"row {i}").to_csv(
            "pairs.csv", index=False
        )
        assert (
            run("adapt", "vectors.parquet", "--id", "name", "--pairs", "pairs.csv", "--sizes", "4")
            == 0
        )
        assert "240 held-out queries" in capsys.readouterr().out

    def test_queries_and_judged_documents(self, capsys):
        np.savez("queries.npz", X=X[:40] + 0.1)
        judged = [(q, d, 1) for q in range(40) for d in range(40, N) if LABELS[q] == LABELS[d]]
        np.savez("judged.npz", X=np.array(judged, dtype=float))
        files = ("--queries", "queries.npz", "--relevance", "judged.npz")
        assert run("adapt", "vectors.npz", *files, "--side", "query", "--save", "q.safetensors", "--take",
                   "query adapter 10") == 0  # fmt: skip
        assert load_adapter("q.safetensors").map.side == "query"
        assert "40 held-out queries" in capsys.readouterr().out

    @pytest.mark.slow  # processes start
    def test_a_folder_and_dask(self, capsys):
        pytest.importorskip("distributed")
        table = parquet.read_table("vectors.parquet")
        (folder := Path("parts")).mkdir()
        for part in range(3):
            parquet.write_table(table[80 * part : 80 * part + 80], folder / f"{part}.parquet")
        assert (
            run("adapt", "parts", "--label", "topic", "--sizes", "4", "--save", "f.safetensors")
            == 0
        )
        assert (
            run("transform", "f.safetensors", "parts", "--id", "name", "-o", "short", "--dask") == 0
        )
        adapter = load_adapter("f.safetensors")
        found = [parquet.read_table(f"short/{part}.parquet") for part in range(3)]
        names = [name for one in found for name in one["name"].to_pylist()]
        assert names == table["name"].to_pylist()
        Z = np.concatenate([np.stack(one["embedding"].to_numpy()) for one in found])
        # a code may be rounded otherwise in a batch
        np.testing.assert_allclose(Z, adapter.transform(X), atol=1)


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ([], "one of --label COLUMN, --pairs FILE, --relevance FILE"),
            (
                ["--label", "topic", "--pairs", "vectors.npz"],
                "--label and --pairs each say what to learn from",
            ),
            (["--label", "topik"], "did you mean 'topic'"),
            (["--label", "name"], "at least two classes need two rows each"),
            (["--relevance", "vectors.npz"], "give both"),
            (["--pairs", "none.csv"], "none.csv: no such file"),
            (["--pairs", "vectors.npz", "--expect", "new"], "needs --label"),
            (["--pairs", "vectors.npz", "--unseen"], "needs --label"),
            (["--label", "topic", "--side", "query"], "give --queries FILE"),
            (["--label", "topic", "--vectors", "text"], "give --vectors one of 'embedding'"),
            (["--label", "topic", "--save", "a.txt"], "must end in .safetensors"),
            (["--label", "topic", "--report", "a.txt"], "must end in .html"),
        ],
    )
    def test_options_that_cannot_be_followed(self, words, message, capsys):
        assert run("adapt", "vectors.parquet", *words) == 2
        assert message in capsys.readouterr().err

    def test_a_name_that_is_not_compared(self, capsys):
        assert (
            run(
                "adapt",
                "vectors.parquet",
                "--label",
                "topic",
                "--sizes",
                "4",
                "--take",
                "adapter 5",
            )
            == 2
        )
        assert "--take 'adapter 5' is not an adapter" in capsys.readouterr().err

    def test_pairs_that_name_no_row(self, capsys):
        pd.DataFrame({"a": ["row 1"], "b": ["row x"]}).to_csv("pairs.csv", index=False)
        assert run("adapt", "vectors.parquet", "--id", "name", "--pairs", "pairs.csv") == 2
        assert (
            "names 'row x', which the column --id of vectors does not contain"
            in capsys.readouterr().err
        )

    def test_missing_cells(self, capsys):
        np.savez("gap.npz", X=np.where(np.arange(P) == 3, np.nan, X), y=LABELS)
        assert run("adapt", "gap.npz", "--label", "y") == 2
        assert "missing values" in capsys.readouterr().err

    def test_vectors_of_another_width(self, adapted, capsys):
        adapted("--take", "adapter 4")
        np.savez(
            "wide.npz", X=np.hstack([X, X]), feature_names=np.array([f"v{i}" for i in range(2 * P)])
        )
        assert run("transform", "a.safetensors", "wide.npz") == 2
        assert "which the adapter needs" in capsys.readouterr().err

    def test_an_adapter_labels_nothing(self, adapted, capsys):
        adapted("--take", "adapter 4")
        assert run("predict", "a.safetensors", "vectors.parquet") == 2
        assert "nearkin transform" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("damage", "says"), [("bit", "checksum"), ("format", "format 9"), ("bias", "bias")]
    )
    def test_damaged_files(self, adapted, damage, says, folder):
        adapted("--take", "adapter 4")
        if damage == "bit":
            content = bytearray((folder / "a.safetensors").read_bytes())
            content[-3] ^= 1
            (folder / "a.safetensors").write_bytes(content)
        else:
            with saved_parts(folder / "a.safetensors", "adapt") as (header, arrays):
                arrays.pop(damage, None)
            header["format"] = 9 if damage == "format" else 1
            write_parts(folder / "a.safetensors", header, arrays)
        with pytest.raises(TableError, match=says):
            load_adapter(folder / "a.safetensors")
