"""`nearkin adapt`, and `nearkin transform` by an adapter."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkin._blocks import unit_rows
from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.saved_file import saved_parts, write_parts
from nearkin.app.vectors import adapt
from nearkin.app.vectors.adapter_file import load_adapter
from nearkin.statistics import PairedTest
from nearkin.vectors import UNSEEN, Labels, compare_vectors
from nearkin.vectors import comparison as adaptation
from tests.app.sample_document import document_in, documented_keys, keys_of

N, P = 240, 10
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 8
X = RNG.normal(size=(N, P)) * np.r_[np.full(P - 4, 3.0), np.ones(4)]
X[:, -4:] += 3 * RNG.normal(size=(8, 4))[LABELS]
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


@pytest.fixture
def read(monkeypatch):
    """Return the judgements that the command has read; nothing is compared."""
    found = []

    def compared(known, **options):
        found.append(known)
        raise TableError("read")

    monkeypatch.setattr(adapt, "compare_vectors", compared)
    return found


class TestAdapt:
    @pytest.mark.long
    def test_from_labels_to_a_shorter_file(self, adapted, capsys):
        adapter = adapted("--report", "a.html", "--json", "a.json")
        text = capsys.readouterr().out
        for words in (
            "240 vectors of 10 dimensions",
            "Take adapter",
            "unseen - raw",
            "Adapter: a.safetensors",
        ):
            assert words in text
        found = json.loads(Path("a.json").read_text())
        assert found == document_in("a.html")
        assert found["recommended"] == found["taken"] == adapter.name
        assert found["table"] == {"name": "vectors", "rows": N, "dimensions": P}
        for sentence in found["sentences"] + found["matches"]["sentences"]:
            assert sentence in text
        (taken,) = (one for one in found["vectors"] if one["name"] == adapter.name)
        decisive = taken["by_part"][found["part"]]
        for name, value in {
            "adapter": decisive["scores"][found["score"]],
            "low": decisive["low"],
            "p_value": taken["p"],
        }.items():
            assert value == pytest.approx(adapter.held_out[name], rel=1e-5)
        line = next(line for line in text.splitlines() if line.startswith(adapter.name))
        assert all(
            f" {100 * v:.1f} " in line
            for v in (decisive["scores"]["MRR"], adapter.held_out["adapter"])
        )
        parts = found["matches"]["parts"]
        assert [one["part"] for one in parts] == list(found["queries"])
        for one in parts:
            curve = {key: np.array(values, float) for key, values in one["curve"].items()}
            for promise in one["promises"]:
                kept = curve["bound"] >= promise["precision"] - 1e-6
                assert kept.any() == (promise["cosine"] is not None)
                if kept.any():  # the lowest cosine whose bound suffices
                    assert promise["cosine"] == curve["cosine"][kept][0]
                    assert promise["recall"] == curve["recall"][kept][0]
        assert keys_of(found) == documented_keys()["nearkin adapt"]
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

    @pytest.mark.long
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

    @pytest.mark.long
    @pytest.mark.parametrize("name", ["adapter 6 int8", "adapter 6 binary", "adapter 10"])
    def test_any_row_of_the_table_can_be_taken(self, adapted, name, capsys):
        adapter = adapted("--take", name)
        kinds = {"int8": np.int8, "binary": np.uint8, "float": np.float32}
        kind = next((kind for kind in kinds if kind in name), "float")
        Z = adapter.transform(X)
        assert Z.dtype == kinds[kind]
        assert Z.shape == (N, 1 if kind == "binary" else adapter.map.n_components_)
        assert name in capsys.readouterr().out

    @pytest.mark.long
    @pytest.mark.parametrize("name", ["centred 10", "truncated 4", "PCA 4"])
    def test_vectors_without_judgements_are_an_adapter_like_any_other(self, name, adapted, capsys):
        adapter = adapted("--take", name)
        assert f"Take {name}: " in capsys.readouterr().out
        rows = unit_rows(X)
        centred = rows - rows.mean(axis=0) * ("truncated" not in name)
        A = np.eye(adapter.map.n_components_, P)
        if "PCA" in name:
            A = adapter.map.components_
            S = np.cov(rows.T)
            assert np.trace(A @ S @ A.T) == pytest.approx(np.linalg.eigvalsh(S)[-4:].sum())
        np.testing.assert_allclose(adapter.transform(X), unit_rows(centred @ A.T), atol=1e-5)
        for command in (
            "transform a.safetensors vectors.parquet -o z.parquet",
            "inspect a.safetensors",
            "match a.safetensors vectors.parquet --precision 0.1 -o pairs.csv",
            "export a.safetensors --to npz -o a.npz",
        ):
            assert run(*command.split()) == 0
        with np.load("a.npz") as arrays:
            np.testing.assert_array_equal(arrays["components"], A)

    @pytest.mark.long
    def test_rows_of_zeros_are_mapped_and_named(self, adapted, capsys):
        adapted("--take", "adapter 4")
        np.savez(
            "zeros.npz",
            X=X * (np.arange(N) > 1)[:, None],
            feature_names=[f"embedding[{i}]" for i in range(P)],
        )
        for source, n in (("zeros.npz", 1), ("vectors.parquet", 0)):
            assert run("transform", "a.safetensors", source, "-o", "short.npz") == 0
            assert capsys.readouterr().err.count("2 rows of zeros") == n

    @pytest.mark.long
    def test_the_page_holds_the_command(self, adapted):
        adapted("--take", "adapter 6", "--report", "a.html")
        assert document_in("a.html")["command"][-4:-2] == ["--take", "adapter 6"]

    @pytest.mark.long
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
        assert "queries have no right match" not in text

    @pytest.mark.long
    def test_queries_without_an_answer_raise_the_thresholds(self, adapted, capsys):
        thresholds = []
        for share in ((), ("--unanswerable", "0.5")):
            adapter = adapted("--take", "adapter 6", *share)
            thresholds.append(adapter.pair_rules.every.curve.promise(0.8).threshold)
        assert adapter.unanswerable == 0.5
        assert thresholds[1] > thresholds[0]
        assert "It is assumed that 50 % of queries have no right match." in capsys.readouterr().out
        capsys.readouterr()
        assert run("inspect", "a.safetensors") == 0
        assert "It is assumed that 50 % of queries have no right match" in capsys.readouterr().out

    @pytest.mark.long
    def test_noise_is_left_alone(self, capsys):
        np.savez("noise.npz", X=X, y=RNG.permutation(LABELS))
        assert (
            run("adapt", "noise.npz", "--label", "y", "--sizes", "4", "--save", "n.safetensors")
            == 0
        )
        text = capsys.readouterr().out
        assert "Keep the raw vectors: no others are shown to be better" in text
        assert "Raw vectors, for `nearkin match`: n.safetensors" in text
        saved = load_adapter("n.safetensors")
        assert (saved.name, saved.bytes) == ("raw", 4 * P)
        np.testing.assert_allclose(saved.transform(X), unit_rows(X), atol=1e-6)
        # what noise cannot promise is said by the rules of the raw vectors
        assert run("match", "n.safetensors", "noise.npz") == 2
        assert "cannot be promised" in capsys.readouterr().err

    @pytest.mark.long
    def test_raw_vectors_that_are_kept_are_matched(self, capsys):
        rng = np.random.default_rng(1)
        labels = np.repeat(np.arange(200), 4)
        rows = rng.normal(size=(200, P))[labels] + 0.2 * rng.normal(size=(800, P))
        np.savez("copies.npz", X=rows, y=labels)
        words = ("--label", "y", "--sizes", "4", "--save", "r.safetensors")
        assert run("adapt", "copies.npz", *words) == 0
        assert "Keep the raw vectors" in capsys.readouterr().out
        new = rng.normal(size=(30, P))
        np.savez("a.npz", X=new)
        np.savez("b.npz", X=new[::-1] + 0.01 * rng.normal(size=(30, P)))
        assert run("match", "r.safetensors", "a.npz", "b.npz", "--precision", 0.9) == 0
        pairs = np.loadtxt(capsys.readouterr().out.splitlines()[1:], delimiter=",")
        assert len(pairs) > 25
        np.testing.assert_array_equal(pairs[:, 0] + pairs[:, 1], 29)
        unit = [unit_rows(np.load(name)["X"]) for name in ("a.npz", "b.npz")]
        a, b = pairs[:, :2].astype(int).T
        np.testing.assert_allclose(pairs[:, 2], (unit[0][a] * unit[1][b]).sum(axis=1), atol=1e-5)

    @pytest.mark.long
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

    @pytest.mark.long
    def test_queries_and_judged_documents(self, capsys):
        np.savez("queries.npz", X=X[:40] + 0.1)
        judged = [(q, d, 1) for q in range(40) for d in range(40, N) if LABELS[q] == LABELS[d]]
        np.savez("judged.npz", X=np.array(judged, dtype=float))
        files = ("--queries", "queries.npz", "--relevance", "judged.npz")
        assert run("adapt", "vectors.npz", *files, "--side", "query", "--save", "q.safetensors", "--take",
                   "query adapter 10") == 0  # fmt: skip
        assert load_adapter("q.safetensors").map.side == "query"
        assert "40 held-out queries" in capsys.readouterr().out
        # it is also a row of the table that adapts documents
        more = ("--sizes", "4", "--json", "both.json", "--save", "both.safetensors")
        assert run("adapt", "vectors.npz", *files, *more, "--take", "query adapter 10") == 0
        one, other = (load_adapter(f"{name}.safetensors").map for name in ("q", "both"))
        np.testing.assert_array_equal(one.components_, other.components_)
        assert other.side == "query"
        found = json.loads(Path("both.json").read_text())
        assert "start" not in found["settings"]
        assert {"adapter 4", "query adapter 10"} < {row["name"] for row in found["vectors"]}

    def test_rows_of_zeros_are_left_out(self, capsys, read):
        """Their judgements go with them; those of other rows still find their rows."""
        zeros = [3, 100]
        holed, others = X.copy(), np.delete(np.arange(N), zeros)
        holed[zeros] = 0
        pairs = np.argsort(LABELS, kind="stable").reshape(-1, 2)
        judged = np.argwhere(LABELS[:, None] == LABELS)
        for name, rows in (("holed", holed), ("whole", X)):
            np.savez(f"{name}.npz", X=rows, y=LABELS)
        np.savez("pairs.npz", X=pairs.astype(float))
        np.savez("judged.npz", X=judged.astype(float))
        for words in (
            ("--label", "y"),
            ("--pairs", "pairs.npz"),
            ("--queries", "holed.npz", "--relevance", "judged.npz"),
        ):
            for name in ("holed", "whole"):
                whole = [word.replace("holed", name) for word in words]
                assert run("adapt", f"{name}.npz", *whole) == 2
                text = capsys.readouterr().out
                assert ("2 rows of zeros left out" in text) == (name == "holed")
            one, other = read[-2:]
            for rows, expected in zip(one.vectors(), other.vectors(), strict=True):
                np.testing.assert_array_equal(rows, expected[others])
            rows = np.arange(len(others))
            np.testing.assert_array_equal(one.gains(rows, rows), other.gains(others, others))

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("option", ["--pairs", "--relevance"])
    def test_judgements_of_rows_without_a_vector_are_left_out(self, option, side, capsys, read):
        judged = np.argsort(LABELS, kind="stable").reshape(-1, 2)
        lines = [[f"row {a}", f"row {b}"] for a, b in judged]
        words = ["--id", "name", option, "judged.csv"]
        if option == "--relevance":
            words += ["--queries", "vectors.parquet"]

        def saved(n_unknown):
            unknown = [["row 0", "row 1"] for _ in range(n_unknown)]
            for i, line in enumerate(unknown):
                line[side] = f"gone {i}"
            table = pd.DataFrame([*lines, *unknown], columns=["query", "document"])
            table.to_csv("judged.csv", index=False)
            assert run("adapt", "vectors.parquet", *words) == 2
            return capsys.readouterr()

        saved(0)
        n = len(lines)
        for n_unknown, lost in ((1, "1 judgement"), (n, f"{n} judgements")):
            text = " ".join(saved(n_unknown).out.split())
            assert f"{lost} left out, of rows without a vector, such as 'gone 0'" in text
            assert (read[-1].R != read[0].R).nnz == 0
        message = (
            "judged.csv names 'gone 0', 'gone 1', 'gone 2' and 118 more, which the column --id"
        )
        assert message in saved(n + 1).err
        assert len(read) == 3

    @pytest.mark.parametrize("what", ["pairs", "documents"])
    def test_all_text_is_read_as_told(self, what, read):
        """With a separator that is not detected, and decimal commas."""
        tables = {
            "vectors": pd.DataFrame(X).add_prefix("v"),
            "pairs": pd.DataFrame({"a": [0, 2, 4], "b": [1, 3, 5], "grade": [0.5, 1, 0.25]}),
            "judged": pd.DataFrame({"query": range(9), "document": range(1, 10), "grade": 0.5}),
        }
        words = {
            "pairs": ["--pairs", "pairs"],
            "documents": ["--queries", "vectors", "--relevance", "judged"],
        }[what]
        for folder, style in (("plain", {}), ("told", {"sep": "~", "decimal": ","})):
            Path(folder).mkdir()
            for name, table in tables.items():
                table.to_csv(f"{folder}/{name}.csv", index=False, **style)
            files = [f"{folder}/{word}.csv" if word in tables else word for word in words]
            told = [part for name, mark in style.items() for part in (f"--{name}", mark)]
            assert run("adapt", f"{folder}/vectors.csv", *files, *told) == 2
        one, other = read
        assert (one.R != other.R).nnz == 0
        np.testing.assert_array_equal(one.queries, other.queries)

    def test_nothing_but_zeros(self, capsys):
        np.savez("zeros.npz", X=0 * X, y=LABELS)
        assert run("adapt", "zeros.npz", "--label", "y") == 2
        assert "holds only rows of zeros" in capsys.readouterr().err

    @pytest.mark.long  # processes start
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


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptation, "SETTINGS", [adaptation.SETTINGS[0] | {"max_iter": 1}])
        patch.setattr(adaptation, "CHOICE_QUERIES", 1)
        return compare_vectors(Labels(X, LABELS, np.arange(N)), sizes=(4,))


class TestAdvice:
    """What is said agrees with the verdicts in the table."""

    @staticmethod
    def said(found, statuses, harmful=(), taken=None):
        """Return the sentences for other verdicts; harmful ways lose on unseen classes."""
        results = []
        for one in found.results:
            of_unseen = PairedTest(-0.1 if one.way.name in harmful else 0.1, 0.01, 9, 40)
            status = statuses.get(one.way.name, "unclear" if one.way.is_adapted else one.status)
            tests = one.tests | {UNSEEN: of_unseen}
            results.append(replace(one, status=status, tests=tests))
        found = replace(found, results=results)
        by_name = {one.way.name: one for one in results}
        return " ".join(adapt.verdict_of(found, by_name[taken] if taken else found.chosen))

    def test_no_adapter_is_better(self, found):
        text = self.said(found, {"adapter 4": "worse"})
        assert text.startswith(
            "Keep the raw vectors: no others are shown to be better in precision@10."
        )

    @pytest.mark.parametrize(
        ("better", "harmful", "why"),
        [
            (["adapter 4"], ["adapter 4"], "probably lose on unseen classes"),
            (["adapter 4 binary, rescored"], [], "need two files of vectors"),
            (
                ["adapter 4", "adapter 4 binary, rescored"],
                ["adapter 4", "adapter 4 binary, rescored"],
                "probably lose on unseen classes or need two files of vectors",
            ),
        ],
    )
    def test_those_that_are_better_are_ruled_out(self, found, better, harmful, why):
        text = self.said(found, dict.fromkeys(better, "better"), harmful)
        assert text.startswith(
            f"Keep the raw vectors: those shown to be better in precision@10 {why}."
        )
        assert ("than raw or truncated vectors: adapter 4 (--take" in text) == bool(harmful)

    @pytest.mark.parametrize(
        ("status", "doubt"),
        [("better", ""), ("unclear", "not shown to be better"), ("worse", "shown to be worse")],
    )
    def test_one_that_is_taken(self, found, status, doubt):
        text = self.said(found, {"adapter 4": status}, taken="adapter 4")
        assert text.startswith("Take adapter 4: precision@10 ")
        assert (f"It is {doubt} than raw." in text) == bool(doubt)


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
            (
                ["--pairs", "vectors.npz", "--side", "query", "--sizes", "4"],
                "--sizes is for shorter vectors, but --side query",
            ),
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
        said = "240 of 240 rows have no vector of 10 numbers in 'column 3', the first in row 0"
        assert said in capsys.readouterr().err

    @pytest.mark.long
    def test_vectors_of_another_width(self, adapted, capsys):
        adapted("--take", "adapter 4")
        np.savez(
            "wide.npz", X=np.hstack([X, X]), feature_names=np.array([f"v{i}" for i in range(2 * P)])
        )
        assert run("transform", "a.safetensors", "wide.npz") == 2
        assert "which the adapter needs" in capsys.readouterr().err

    @pytest.mark.long
    def test_an_adapter_labels_nothing(self, adapted, capsys):
        adapted("--take", "adapter 4")
        assert run("predict", "a.safetensors", "vectors.parquet") == 2
        assert "nearkin transform" in capsys.readouterr().err

    @pytest.mark.long
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
