"""`nearkin migrate`: from two files to a verdict, and a map that transform, inspect, export read."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from scipy.stats import ortho_group

from nearkin import Migration
from nearkin.app.cli import main
from nearkin.app.vectors.adapter_file import load_adapter
from nearkin.app.vectors.migrate import verdict_of
from nearkin.statistics import PairedTest
from nearkin.vectors import evaluate_migration
from nearkin.vectors.verdict import Unseen
from tests.app.sample_document import documented_keys, keys_of

N = 240
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 4
OLD = (RNG.normal(size=(N, 8)) + 2 * RNG.normal(size=(4, 8))[LABELS]).astype(np.float32)
TURN = ortho_group(8, seed=0).rvs()
NEW = (np.hstack([OLD @ TURN, np.zeros((N, 1))])).astype(np.float32)
ORDER = RNG.permutation(N)[:200]  # rows that the new model has embedded, in another order


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = np.array([f"item {i}" for i in range(N)])
    kinds = [f"k{c}" for c in LABELS]
    old = pd.DataFrame({"sku": names, "embedding": list(OLD), "kind": kinds})
    old.to_parquet("old.parquet")
    pd.DataFrame({"sku": names[ORDER], "vector": list(NEW[ORDER])}).to_parquet("new.parquet")
    old.iloc[ORDER].drop(columns="kind").to_parquet("same.parquet")
    other = RNG.normal(size=(200, 5)).astype(np.float32)
    pd.DataFrame({"sku": names[ORDER], "vector": list(other)}).to_parquet("other.parquet")
    return tmp_path


def run(*words):
    return main([str(word) for word in words])


@pytest.mark.parametrize(("into", "side"), [("old", "query"), ("new", "document")])
def test_rows_are_matched_by_name_and_the_map_is_saved(into, side, capsys):
    words = ("--id", "sku", "--into", into, "--save", "map.safetensors", "--json", "m.json")
    assert run("migrate", "old.parquet", "new.parquet", *words) == 0
    text = capsys.readouterr().out
    for part in (
        "200 rows embedded by both models: 8 dimensions of old, 9 of new",
        "40 rows only in old.parquet: left out",
        "Migrate: the map finds ",
        "Whatever is relevant, precision at ten differs from the new model's by at most",
        "25 held-out queries among 75 held-out documents, by a map learned from 100 rows",
        "learns from all 200",
        "more rows are not shown to help",
        "Map: map.safetensors",
    ):
        assert part in text
    found = json.loads(Path("m.json").read_text())
    assert keys_of(found) | {"migration"} == documented_keys()["nearkin migrate"]
    assert all(sentence in text for sentence in found["sentences"])
    assert (found["items"], found["verdict"], found["unseen"]) == (200, "migrate", None)
    assert found["test"]["p"] is not None
    assert found["searches"][-1]["scores"][found["score"]] == found["curve"][-1]["score"]
    adapter = load_adapter("map.safetensors")
    assert adapter.map.side == side
    assert adapter.baseline == "embedded again"
    rows = np.sort(ORDER)
    new = np.empty_like(NEW)
    new[:] = NEW
    X, Y = (new[rows], OLD[rows]) if side == "query" else (OLD[rows], new[rows])
    expected = Migration(side=side).fit(X, Y)
    np.testing.assert_allclose(adapter.transform(X), expected.transform(X), atol=1e-6)
    source, column = ("new", "vector") if side == "query" else ("old", "embedding")
    assert run("transform", "map.safetensors", f"{source}.parquet", "-o", "z.parquet") == 0
    Z = np.stack(parquet.read_table("z.parquet")[column].to_numpy())
    goal = OLD[ORDER] if side == "query" else NEW
    np.testing.assert_allclose(Z, goal / np.linalg.norm(goal, axis=1, keepdims=True), atol=1e-4)
    capsys.readouterr()
    assert run("inspect", "map.safetensors") == 0
    said = capsys.readouterr().out
    assert "embedded again 100.0" in said
    assert ("queries only" if side == "query" else "documents only") in said


@pytest.mark.slow
def test_the_map_that_is_saved_has_the_setting_that_was_evaluated():
    rng = np.random.default_rng(0)
    new = (NEW[ORDER] + rng.normal(size=(200, 9))).astype(np.float32)
    table = pd.read_parquet("new.parquet")
    table.assign(vector=list(new)).to_parquet("near.parquet")
    words = ("--label", "kind", "--id", "sku", "--save", "map.safetensors")
    assert run("migrate", "old.parquet", "near.parquet", *words) == 0
    order = np.argsort(ORDER)
    given = new[order], OLD[ORDER[order]], LABELS[ORDER[order]]
    evaluated = evaluate_migration(given[1], given[0], labels=given[2]).map
    chosen_anew = Migration().fit(*given)
    assert evaluated.label_weight_ != chosen_anew.label_weight_
    expected = Migration(
        reverse=evaluated.reverse_,
        alpha=evaluated.alpha_ / 2,  # lambda is that of half as many rows
        label_weight=evaluated.label_weight_,
    )
    saved = load_adapter("map.safetensors").transform(given[0])
    np.testing.assert_allclose(saved, expected.fit(*given).transform(given[0]), atol=1e-6)


def test_without_names_rows_are_matched_by_number(capsys):
    assert run("migrate", "same.parquet", "new.parquet") == 0
    text = capsys.readouterr().out
    assert "rows are matched by number, not by name" in text
    assert "Migrate: " in text


def test_unrelated_models_are_to_be_embedded_again(capsys):
    assert run("migrate", "old.parquet", "other.parquet", "--id", "sku") == 0
    text = capsys.readouterr().out
    assert "Embed again: the map finds " in text
    assert "Results of other queries contain as many of these" in text


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("named", [True, False])
def test_judged_queries_decide(named, capsys):
    """Queries are matched like items: by name in any order, or by number."""
    relevant = np.argwhere(LABELS[:40, None] == LABELS[None, 40:])
    rows = np.arange(40, N)
    names = np.array([f"item {i}" for i in range(N)])
    judged = pd.DataFrame(relevant, columns=["query", "document"])
    if named:
        judged = judged.assign(
            query=names[judged["query"]], document=names[40:][judged["document"]]
        )
    judged.to_csv("judged.csv", index=False)
    for name, Z in (("old", OLD), ("new", NEW)):
        for part, some in (("queries", np.arange(40)), ("items", rows)):
            some = some[::-1] if named and name == "new" else some
            table = pd.DataFrame({"sku": names[some], "embedding": list(Z[some])})
            table.to_parquet(f"{name}_{part}.parquet")
    words = ["migrate", "old_items.parquet", "new_items.parquet", "--relevance", "judged.csv"]
    words += ["--queries", "old_queries.parquet", "new_queries.parquet", "--json", "m.json"]
    assert run(*words, *(["--id", "sku"] if named else [])) == 0
    text = capsys.readouterr().out
    assert "Migrate: nDCG@10 " in text
    assert "40 held-out queries among 100 held-out documents" in text
    assert "without a judgement count as not relevant" in text
    found = json.loads(Path("m.json").read_text())
    expected = evaluate_migration(
        OLD[40:], NEW[40:], queries=(OLD[:40], NEW[:40]), relevance=relevant
    )
    assert found["kept"]["share"] == pytest.approx(expected.kept, abs=1e-4)
    assert found["score"] == expected.score == "nDCG@10"
    assert {tuple(one["scores"]) for one in found["searches"]} == {("recall@10", "nDCG@10")}


def test_what_is_right_when_neighbours_differ_is_asked_for(capsys):
    table = pd.read_parquet("new.parquet")
    noise = RNG.normal(size=(200, 9)).astype(np.float32)
    table.assign(vector=list(NEW[ORDER] + noise)).to_parquet("near.parquet")
    assert run("migrate", "old.parquet", "near.parquet", "--id", "sku") == 0
    text = capsys.readouterr().out
    assert "Unknown: the map finds " in text
    assert "give --label, or --queries and --relevance" in text


@pytest.mark.long
def test_labels_decide(capsys):
    words = ("--id", "sku", "--label", "kind")
    assert run("migrate", "old.parquet", "new.parquet", *words) == 0
    text = capsys.readouterr().out
    assert "Migrate: precision@10 " in text
    assert "of the new model's own ten neighbours" in text


@pytest.mark.long
def test_sentences_agree_with_the_verdict():
    """More than the reference is kept, and classes without a label lose by less than 5 %."""
    found = evaluate_migration(OLD, NEW, labels=LABELS)
    reference = found.scores[found.reference]["precision@10"]
    found = replace(
        found,
        kept=1.05,
        interval=(1.02, 1.08),
        scores=found.scores
        | {"migration": found.scores["migration"] | {"precision@10": 1.05 * reference}},
        growth=PairedTest(0.02, 0.001, 20, 1),
        unseen=Unseen(0.8, 0.84, PairedTest(-0.04, 0.01, 20, 1), (0.9, 0.98)),
    )
    text = " ".join(verdict_of(found, 200))
    assert text.startswith("Migrate: precision@10")
    assert "no number of rows" not in text
    assert (
        "80.0 against 84.0, -4.0 [-6.1, -1.9] points: a loss, but not shown to be more than 5 %."
        in text
    )
    unclear = replace(found, unseen=Unseen(0.8, 0.84, PairedTest(-0.04, 0.03, 20, 1), (0.8, 1.1)))
    assert "a loss" not in " ".join(verdict_of(unclear, 200))
    lost = replace(found, verdict="migrate with a loss")
    assert "The loss is of classes without labels" in " ".join(verdict_of(lost, 200))
    also = replace(lost, interval=(0.9, 1.0))
    assert "The loss is of" not in " ".join(verdict_of(also, 200))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("old.parquet", "new.parquet"), "has 240 rows and new.parquet 200: name the column"),
        (("old.parquet", "twice.parquet", "--id", "sku"), "has several rows of 'item 1'"),
        (("old.parquet", "away.parquet", "--id", "sku"), "have no item of sku in common"),
        (("old.parquet", "gap.parquet", "--id", "sku"), "sku has an empty cell (row 1, the first"),
        (("old.parquet", "few.parquet", "--id", "sku"), "79 distinct rows are too few"),
        (("old.parquet", "none.parquet"), "none.parquet"),
        (("old.parquet", "new.parquet", "--id", "ski"), "did you mean 'sku'?"),
        (("old.parquet", "new.parquet", "--id", "sku", "--label", "sku"), "--label holds"),
        (("old.parquet", "new.parquet", "--relevance", "few.parquet"), "give both"),
        (
            ("old.parquet", "new.parquet", "--label", "kind", "--relevance", "few.parquet"),
            "--label and --relevance each say what is right",
        ),
        (
            ("old.parquet", "new.parquet", "--queries", "few.parquet", "gone.parquet"),
            "gone.parquet",
        ),
        (("old.parquet", "new.parquet", "--save", "map.npz"), "must end in .safetensors"),
        (("old.parquet", "new.parquet", "--into", "both"), None),
    ],
)
def test_what_is_refused(words, message, capsys):
    new = pd.read_parquet("new.parquet")
    pd.DataFrame({"sku": ["item 1", "item 1"], "vector": list(NEW[:2])}).to_parquet("twice.parquet")
    pd.DataFrame({"sku": ["item 1", None], "vector": list(NEW[:2])}).to_parquet("gap.parquet")
    new.assign(sku="x" + new["sku"]).to_parquet("away.parquet")
    new.iloc[:79].to_parquet("few.parquet")
    if message is None:
        with pytest.raises(SystemExit):
            run("migrate", *words)
        return
    assert run("migrate", *words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not list(Path().glob("map*"))
