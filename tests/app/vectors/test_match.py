"""`nearkin match`: rows that belong together, by an adapter that knows which cosine is a match."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from sklearn.frozen import FrozenEstimator

from nearkin.app.cli import main
from nearkin.app.vectors.adapter_file import SavedAdapter, _rules, load_adapter, save_adapter
from nearkin.vectors import EmbeddingAdapter, Matcher, MatchRules
from tests.app.sample_document import documented_keys, keys_of

N, P, M = 520, 16, 12
RNG = np.random.default_rng(0)
ENTITIES = RNG.normal(size=(N, P))


def seen(entities, noise=0.1):
    """Return vectors of entities, as somebody has seen them."""
    return (ENTITIES[entities] + noise * RNG.normal(size=(len(entities), P))).astype(np.float32)


def table(rows, names=None):
    frame = pd.DataFrame({"embedding": list(rows)})
    return frame if names is None else frame.assign(name=names)


KNOWN = np.repeat(np.arange(400), 2)  # two records of each of these entities are learned from
A = np.r_[400:460, 500:510]  # the last ten are not in B
B = RNG.permutation(np.arange(400, 500))
X, XA, XB = seen(KNOWN), seen(A), seen(B)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with an adapter, and the tables that it matches."""
    folder = tmp_path_factory.mktemp("match")
    map_ = np.random.default_rng(1).normal(size=(M, P)).astype(np.float32)
    arrays = {"components": map_, "bias": np.zeros(M, np.float32), "scale": np.float32([1])}
    fitted = EmbeddingAdapter.from_arrays(arrays, side="both", quantize=None)
    matcher = Matcher(FrozenEstimator(fitted), expect="new", unanswerable=0.2).fit(X, KNOWN)
    adapter = SavedAdapter(
        fitted,
        "adapter 12",
        "embedding",
        [f"embedding[{i}]" for i in range(P)],
        "precision@10",
        "seen classes",
        {"adapter": 0.9, "raw": 0.8, "low": 0.05, "high": 0.15, "p_value": 0.01, "n_queries": 60.0},
        "people",
        pair_rules=matcher.pair_rules_,
        list_rules=matcher.list_rules_,
        unanswerable=0.2,
    )
    save_adapter(adapter, folder / "a.safetensors")
    save_adapter(replace(adapter, pair_rules=None, list_rules=None), folder / "old.safetensors")
    of_queries = EmbeddingAdapter.from_arrays(
        arrays | {"components": np.eye(P, dtype=np.float32), "bias": np.zeros(P, np.float32)},
        side="query",
        quantize=None,
    )
    save_adapter(replace(adapter, map=of_queries), folder / "q.safetensors")
    table(XA, [f"a{i}" for i in A]).to_parquet(folder / "a.parquet")
    table(XB, [f"b{i}" for i in B]).to_parquet(folder / "b.parquet")
    both = np.r_[400:440, 420:460]  # 420 to 439 twice
    twice = table(seen(both, 0.05), [f"t{i}" for i in range(80)])
    twice.to_parquet(folder / "twice.parquet")
    return folder, matcher


@pytest.fixture(autouse=True)
def here(saved, monkeypatch):
    monkeypatch.chdir(saved[0])


def run(*words):
    return main(["match", *map(str, words)])


def refused(capsys, *words):
    """Return the one line by which the command is refused."""
    assert run(*words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.long
def test_rows_of_two_files_are_linked_by_name(capsys):
    words = ("--id", "name", "--json", "m.json")
    assert run("a.safetensors", "a.parquet", "b.parquet", *words) == 0
    out, err = capsys.readouterr()
    header, *lines = out.splitlines()
    assert header == "name_a,name_b,similarity,probability"
    pairs = [line.split(",")[:2] for line in lines]
    assert {(a[1:], b[1:]) for a, b in pairs} == {(str(i), str(i)) for i in range(400, 460)}
    assert "60 of 70 rows of a have a match in b." in err
    assert "At least 95 % of the matches are right, with 95 % confidence" in err
    assert "held out from people" in err
    assert "unseen classes" in err
    assert "assumed to be 20 %" in err
    found = json.loads(Path("m.json").read_text())
    assert keys_of(found) == documented_keys()["nearkin match"]
    assert found["matched"] == found["pairs"] == len(lines)
    assert all(sentence in err for sentence in found["sentences"])
    assert all(one["right"] >= found["precision"] == 0.95 for one in found["promises"])


def test_the_file_says_what_the_matcher_does_that_was_saved(saved):
    found = saved[1].best_match(XA, XB)
    rows = np.flatnonzero(found.rows >= 0)
    assert run("a.safetensors", "a.parquet", "b.parquet", "-o", "pairs.parquet", "-q") == 0
    pairs = parquet.read_table("pairs.parquet").to_pandas()
    assert list(pairs) == ["row_a", "row_b", "similarity", "probability"]
    np.testing.assert_array_equal(pairs["row_a"], rows)
    np.testing.assert_array_equal(pairs["row_b"], found.rows[rows])
    np.testing.assert_allclose(pairs["similarity"], found.similarities[rows], atol=1e-6)
    np.testing.assert_allclose(pairs["probability"], found.probabilities[rows], atol=1e-6)


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_other_formats_hold_the_same(suffix):
    for name in (f"pairs.{suffix}", "pairs.parquet"):
        assert run("a.safetensors", "a.parquet", "b.parquet", "--id", "name", "-o", name, "-q") == 0
    pairs = pd.read_parquet("pairs.parquet")
    found = pd.read_csv("pairs.csv") if suffix == "csv" else dict(np.load("pairs.npz"))
    for name in pairs:
        if name.startswith("name"):
            np.testing.assert_array_equal(found[name], pairs[name])
        else:
            np.testing.assert_allclose(found[name], pairs[name], rtol=1e-5)


def test_of_one_file_each_pair_is_written_once(capsys):
    assert run("a.safetensors", "twice.parquet") == 0
    out, err = capsys.readouterr()
    pairs = [tuple(map(int, line.split(",")[:2])) for line in out.splitlines()[1:]]
    assert pairs == [(20 + i, 40 + i) for i in range(20)]
    assert "40 of 80 rows of twice have a match, in 20 clusters." in err
    assert "For near duplicates, learn from pairs of them" in err


def test_rows_of_one_file_that_are_connected_are_a_cluster():
    records = np.r_[400:420, 400:410, 400:405, 430:440]  # 400 to 404 three times
    table(seen(records, 0.05), [f"t{i}" for i in records]).to_parquet("thrice.parquet")
    words = ("--id", "name", "-o", "clusters.csv", "--json", "m.json")
    assert run("a.safetensors", "thrice.parquet", *words) == 0
    found = pd.read_csv("clusters.csv")
    assert list(found) == ["name_a", "name_b", "similarity", "probability", "cluster"]
    entities = found.groupby("cluster")["name_a"].agg(set)
    assert sorted(entities) == [{f"t{i}"} for i in range(400, 410)]
    assert sorted(entities.index) == list(range(10))
    assert json.loads(Path("m.json").read_text())["clusters"] == 10


def test_one_to_one_keeps_the_most_probable_match_of_a_row(capsys):
    several = np.r_[400:420, 400:410, 400:405]
    table(np.vstack([seen(several), 2 * XB[:3]])).to_parquet("several.parquet")
    found = {}
    for words in ([], ["--one-to-one"]):
        words += ["-o", "pairs.csv", "--json", "m.json"]
        assert run("a.safetensors", "several.parquet", "b.parquet", *words) == 0
        err = capsys.readouterr().err
        document = json.loads(Path("m.json").read_text())
        assert document["clusters"] is None
        found[document["one_to_one"]] = pd.read_csv("pairs.csv"), document["repeated"], err
    (every, n, said), (kept, left_out, said_of_kept) = found[False], found[True]
    best = every.sort_values(["probability", "similarity"], ascending=False, kind="stable")
    best = best.drop_duplicates("row_b").sort_values("row_a").reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, best)
    assert n == left_out == len(every) - len(kept) > 10
    assert f"{n} rows of several share their match with a more probable one; --one" in said
    assert f"{n} rows of several left out: a more probable one has the same match." in said_of_kept


def test_one_to_one_is_for_two_files(capsys):
    line = refused(capsys, "a.safetensors", "twice.parquet", "--one-to-one")
    assert "--one-to-one is for two files. Of one file, the column cluster" in line


def test_more_precision_is_fewer_matches():
    found = []
    for precision in (0.6, 0.95):
        words = ("--precision", precision, "-o", "some.csv", "-q")
        assert run("a.safetensors", "a.parquet", "b.parquet", *words) == 0
        found.append(set(pd.read_csv("some.csv")["row_a"]))
    assert found[1] < found[0] or found[1] == found[0]


def test_what_cannot_be_promised_is_refused(capsys):
    line = refused(capsys, "a.safetensors", "a.parquet", "b.parquet", "--precision", 0.9999)
    assert "a.safetensors: precision=0.9999 cannot be promised for unseen classes" in line
    assert "no threshold reaches more than 0.9" in line


@pytest.mark.slow
def test_other_classes_can_be_expected_without_learning_again(capsys, saved, tmp_path):
    adapter = load_adapter("a.safetensors")
    of_both = Matcher(FrozenEstimator(adapter.map), unanswerable=0.2).fit(X, KNOWN)
    rules = {kind: getattr(of_both, f"{kind}_") for kind in ("pair_rules", "list_rules")}
    save_adapter(replace(adapter, **rules, expect="both"), tmp_path / "both.safetensors")
    said = {}
    for words in (["--expect", "new"], ["--expect", "both"], []):
        words += ["--precision", "0.6", "--json", "m.json"]
        assert run(tmp_path / "both.safetensors", "a.parquet", "b.parquet", *words) == 0
        document = json.loads(Path("m.json").read_text())
        parts = [one["part"] for one in document["promises"]]
        said[words[1]] = document["expect"], parts, capsys.readouterr().out
        assert all(one["recall_low"] <= one["recall"] for one in document["promises"])
    every = list(of_both.list_rules_.parts)
    assert said["new"][:2] == ("new", ["unseen classes"])
    assert said["both"][:2] == ("both", every)
    assert said["0.6"] == said["both"]
    line = refused(capsys, "a.safetensors", "a.parquet", "b.parquet", "--expect", "known")
    assert "a.safetensors: expect='known' has no rules" in line


@pytest.mark.parametrize(("precision", "is_kept"), [(0.6, True), (0.97, False)])
def test_a_larger_index_raises_the_threshold_or_ends_the_promise(precision, is_kept, capsys):
    others = np.random.default_rng(2).normal(size=(8 * len(X) - len(XB), P))
    table(np.vstack([XB, others.astype(np.float32)])).to_parquet("large.parquet")
    found = {}
    for index in ("b.parquet", "large.parquet"):
        words = ("--precision", precision, "--json", "m.json")
        assert run("a.safetensors", "a.parquet", index, *words) == 0
        found[index] = capsys.readouterr()
        document = json.loads(Path("m.json").read_text())
        assert document["candidates"] == len(X)
    (promise,) = document["promises"]
    assert promise["kept"] == (promise["bound"] >= precision) == is_kept
    said = f"At least {100 * precision:g} % of the matches are right, with 95 % confidence"
    assert f"{said}, for rows" in found["b.parquet"].err
    if not is_kept:
        said = f"That {100 * precision:g} % of the matches are right is not promised (at most "
    line = next(one for one in found["large.parquet"].err.splitlines() if said in one)
    assert (
        "in an index of 6,400 rows, in which a wrong match is taken to be 8 times as likely" in line
    )
    assert "which searched an index of 800 rows" in line
    rows = [{one.split(",")[0] for one in of_one.out.splitlines()} for of_one in found.values()]
    assert rows[1] <= rows[0]


def test_an_adapter_of_version_0_3_does_not_know_its_index(capsys, tmp_path):
    rules = {}
    for kind in ("pair_rules", "list_rules"):
        arrays = getattr(load_adapter("a.safetensors"), kind).to_arrays()
        rules[kind] = MatchRules.from_arrays(
            {name: array for name, array in arrays.items() if "n_candidates" not in name}
        )
    save_adapter(replace(load_adapter("a.safetensors"), **rules), tmp_path / "old.safetensors")
    assert run(tmp_path / "old.safetensors", "a.parquet", "b.parquet") == 0
    assert "an index of a size that the adapter does not know" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("old.safetensors", "a.parquet"), "learn an adapter with `nearkin adapt --save`"),
        (("q.safetensors", "a.parquet"), "adapts only queries: give two files"),
        (("a.safetensors", "-", "-"), "so name the other"),
        (("a.safetensors", "a.parquet", "b.parquet", "--id", "sku"), "names the rows of b.parquet"),
        (("a.safetensors", "short.csv"), "short.csv lacks 'embedding[0]'"),
        (("a.safetensors", "one.parquet"), "one.parquet holds one row"),
        (("a.safetensors", "none.parquet"), "none.parquet: no such file"),
        (("a.safetensors", "a.parquet", "none.parquet"), "none.parquet: no such file"),
        (
            ("a.safetensors", "a.parquet", "-q", "b.parquet"),
            "did you mean a.parquet b.parquet, both",
        ),
        (("a.safetensors", "a.parquet", "-o", "pairs.txt"), "must end in .csv"),
    ],
)
def test_what_does_not_fit_is_refused(words, message, capsys):
    table(XA[:1]).to_parquet("one.parquet")
    pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0]}).to_csv("short.csv", index=False)
    assert message in refused(capsys, *words)


@pytest.mark.parametrize("width", [P - 4, P + 4])
@pytest.mark.parametrize("command", ["match", "transform", "queries", "a folder"])
def test_vectors_of_another_length_are_those_of_another_model(command, width, capsys, tmp_path):
    """The first numbers of longer ones are not taken for all."""
    others = np.resize(XA, (70, width))
    (tmp_path / "parts").mkdir()
    for file in ("others.parquet", "parts/part.parquet"):
        table(others).to_parquet(tmp_path / file)
    path = tmp_path / ("parts" if command == "a folder" else "others.parquet")
    np.savez(tmp_path / "judged.npz", X=np.tile(np.arange(20), (2, 1)).T)
    words = {
        "match": ["match", "a.safetensors", "a.parquet", path],
        "transform": ["transform", "a.safetensors", path, "-o", tmp_path / "z.parquet"],
        "queries": ["adapt", "a.parquet", "--queries", path, "--relevance", tmp_path / "judged.npz"],
        "a folder": ["transform", "a.safetensors", path, "--dask", "-o", tmp_path / "z"],
    }[command]  # fmt: skip
    assert main([str(word) for word in words]) == 2
    err = capsys.readouterr().err
    assert f"has vectors of {width} dimensions, but {P} are needed: " in err
    assert err.count("\n") == 1
    assert not [*tmp_path.glob("z*")]


def test_an_array_of_another_length_is_that_of_another_model(capsys, saved, tmp_path):
    adapter = replace(
        load_adapter("a.safetensors"), column="", columns=[f"column {i}" for i in range(P)]
    )
    save_adapter(adapter, tmp_path / "n.safetensors")
    np.savez(tmp_path / "long.npz", X=np.hstack([XA, XA]))
    assert (
        main(["transform", *(str(tmp_path / name) for name in ("n.safetensors", "long.npz"))]) == 2
    )
    assert f"has vectors of {2 * P} dimensions, but {P} are needed" in capsys.readouterr().err


def test_columns_beside_a_vector_may_be_more(capsys, tmp_path):
    table(XA).assign(image=list(XA[:, :2]), price=1.0).to_parquet(tmp_path / "more.parquet")
    words = ("transform", "a.safetensors", tmp_path / "more.parquet", "-o", tmp_path / "z.parquet")
    assert main([str(word) for word in words]) == 0


def test_a_share_is_no_percentage(capsys):
    with pytest.raises(SystemExit):
        run("a.safetensors", "a.parquet", "--precision", 95)
    assert "must be between 0 and 1" in capsys.readouterr().err


def test_queries_alone_are_mapped(capsys):
    """The map is the identity: what is adapted, and what stays, is compared."""
    assert run("q.safetensors", "a.parquet", "b.parquet", "--precision", 0.6, "-q") == 0
    found = np.loadtxt(capsys.readouterr().out.splitlines()[1:], delimiter=",")
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (XA, XB)]
    a, b = found[:, :2].astype(int).T
    np.testing.assert_allclose(found[:, 2], (unit[0][a] * unit[1][b]).sum(axis=1), atol=1e-5)


def test_the_rules_survive_the_file(saved):
    adapter, matcher = load_adapter("a.safetensors"), saved[1]
    assert adapter.unanswerable == 0.2
    for kind in ("pair_rules", "list_rules"):
        read, known = (
            rules.to_arrays() for rules in (getattr(adapter, kind), getattr(matcher, f"{kind}_"))
        )
        assert read.keys() == known.keys()
        for name, array in known.items():
            np.testing.assert_array_equal(read[name], array)
    assert adapter.thresholds()[0.95] == matcher.threshold(0.95)


@pytest.mark.parametrize("turn", [1, -1])
def test_parts_are_in_the_same_order_whatever_the_order_of_the_arrays(saved, turn):
    """A file lists its arrays by a hash that differs from run to run."""
    arrays = saved[1].list_rules_.to_arrays()
    (part,) = saved[1].list_rules_.parts
    arrays |= {name.replace(part, "seen classes"): array for name, array in arrays.items()}
    listed = {f"rules/{name}": array for name, array in list(arrays.items())[::turn]}
    assert list(_rules(listed, "rules/").parts) == ["seen classes", "unseen classes"]
