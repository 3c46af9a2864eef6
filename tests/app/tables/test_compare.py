"""What the command suspects stands wherever a figure does that it would spoil: verdict, model,
inspect, page, JSON.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.app.tables import compare as table_comparison
from nearkin.app.tables.model import load_model
from nearkin.app.tables.words import Summary
from nearkin.comparison import compare, default_references, extend
from nearkin.comparison.protocol import few_decide

QUICK = ["--methods", "pca", "--no-references", "--folds", "2", "--repeats", "1", "-q"]


def grouped():
    """Rows of a machine look alike, and share the fault."""
    rng = np.random.default_rng(0)
    machine = np.repeat(np.arange(24), 6)
    frame = pd.DataFrame(
        rng.normal(size=(24, 3))[machine] + 0.5 * rng.normal(size=(144, 3)), columns=list("abc")
    )
    frame["machine"] = [f"M{number}" for number in machine]
    return frame.assign(
        kind=np.where((rng.random(24) < 0.5)[machine] ^ (rng.random(144) < 0.03), "fault", "fine")
    )


def leaking():
    """The refund is known only when the claim is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    claim = X[:, 0] + rng.normal(size=150) > 0
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        refund=np.where(claim, rng.integers(50, 90, 150), 0)
    )
    return frame.assign(kind=np.where(claim, "claim", "none"))


TABLES = {
    "groups": (grouped, "machine looks like groups of rows"),
    "leak": (leaking, "refund (100.0% of the rows)"),
}


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", TABLES)
def test_a_doubt_stands_wherever_the_figure_does(kind, tmp_path, monkeypatch, capsys):
    make, begins = TABLES[kind]
    monkeypatch.chdir(tmp_path)
    make().to_csv("t.csv", index=False)
    files = ["--save", "m.safetensors", "--json", "r.json", "--report", "r.html"]
    assert main(["compare", "t.csv", "--target", "kind", *QUICK[:-1], *files]) == 0
    out = capsys.readouterr().out
    assert f"\nCaution: {begins}" in out
    assert out.count(begins) == 2  # before the fits, too
    assert next(one for one in out.splitlines() if one.startswith("Model: ")).endswith("said above")
    document = json.loads((tmp_path / "r.json").read_text())
    assert [doubt["code"] for doubt in document["doubts"]] == [kind]
    assert document["verdict"].startswith(f"Caution: {begins}")
    assert f"Caution: {begins}" in document["quote"]
    assert f"Caution: {begins}" in (tmp_path / "r.html").read_text().partition("<script")[0]
    assert load_model(tmp_path / "m.safetensors").doubts == [document["doubts"][0]["text"]]
    assert main(["inspect", "m.safetensors"]) == 0
    assert f"\nCaution: {begins}" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_groups_that_are_given_are_no_doubt(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grouped().to_csv("t.csv", index=False)
    assert main(["compare", "t.csv", "--target", "kind", "--groups", "machine", *QUICK]) == 0
    assert "Caution" not in capsys.readouterr().out


def test_twins_that_were_split():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 3)), 2, axis=0)
    found = compare(
        X,
        np.arange(80) // 2 % 2,
        methods=[],
        references=[],
        keep_twins=True,
        n_splits=2,
        n_repeats=1,
    )
    assert [doubt.code for doubt in found.doubts] == ["twins"]
    assert Summary(found).verdict.startswith("Caution: twins were split like other rows")
    assert Summary(found).quote.endswith("Expect worse scores on new rows.")


# Numbers, few of which are huge


def prices(n=200):
    """Prices with typing errors in some: the order of the rows is what can be predicted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=n))
    y[[3, 70]] *= 1e4
    return X, y


def test_few_huge_numbers_do_not_decide_the_ranking():
    X, y = prices()
    assert few_decide(y)
    assert not few_decide(np.log(y))
    assert not few_decide(np.random.default_rng(0).normal(size=200))
    assert not few_decide(y[:20])
    few = {"task": "regression", "methods": [], "n_splits": 2, "n_repeats": 1, "refit": False}
    found = compare(X, y, references=default_references("regression", score="mae")[:1], **few)
    assert found.score.name == "mae"
    assert [reference.name for reference in found.references] == ["median"]
    (doubt,) = found.doubts
    assert doubt.code == "huge"
    first, second = np.argsort(-y)[:2]
    low, high = (f"{end / np.median(y):,.0f}" for end in y[[second, first]])
    assert doubt.text == (
        f"2 of 200 numbers stand far apart from the others, {low} to {high} times the median: "
        f"row {first} ({y[first]:.6g}), row {second} ({y[second]:.6g}). If they are wrong, "
        "correct or drop them."
    )
    (note,) = [one for one in Summary(found).notes if "squares" in one]
    assert "so methods are ranked by MAE: R² mainly depends on them" in note
    assert compare(X, y, references=[], score="r2", **few).score.name == "r2"


def test_features_that_order_the_rows_are_useless_by_this_score_only():
    """By R² the mean is better: the huge numbers alone decide that."""
    X, y = prices()
    few = {
        "task": "regression",
        "methods": [],
        "n_splits": 5,
        "n_repeats": 1,
        "refit": False,
        "score": "r2",
    }
    few |= {"references": default_references("regression")[:1], "n_neighbors": 5}
    found = compare(X, y, **few)
    assert found.raw.score.mean() < 0 < found.raw.scores["rank_correlation"].mean()
    assert "Do not use this model where this score counts." in Summary(found).verdict


def test_a_model_that_no_constant_loses_to_is_not_set_ahead_of_worse_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    found = compare(
        X,
        y,
        task="regression",
        methods=[],
        references=default_references("regression")[:2],
        n_splits=3,
        n_repeats=1,
        n_neighbors=3,
        refit=False,
    )
    worse = next(one for one in found.references if one.name != "mean")
    worse = replace(worse, score=found.choice.score - 1)
    found = replace(
        found,
        references=tuple(worse if one.name == worse.name else one for one in found.references),
    )
    useless, *others = Summary(found).verdict.splitlines()
    best = next(line for line in others if line.startswith("The best reference"))
    assert useless.startswith("The automatic choice is no better than always predicting the mean (")
    assert useless.endswith(". Do not use this model where this score counts.")
    assert best.endswith(", which is no better either.")
    assert Summary(found).is_useless
    assert "ahead of it" not in Summary(found).verdict


def test_a_rare_class_is_ranked_by_auc_and_the_reason_said():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 10 == 0
    found = compare(
        rng.normal(size=(100, 3)),
        y,
        methods=[],
        references=[],
        n_splits=2,
        n_repeats=1,
        refit=False,
    )
    assert found.score.name == "auc"
    assert any(
        note.startswith("The largest class has 90% of the rows, so methods are ranked by AUC")
        for note in Summary(found).notes
    )


# The first of a ranking


def test_who_ends_before_the_choice_is_named_with_the_reason():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)), np.arange(90) % 2
    found = compare(X, y, methods=[], references=[], n_splits=5, n_repeats=1, refit=False)
    ahead = replace(found.raw, name="PCA", kind="method", score=found.raw.score + 0.031)
    text = Summary(replace(found, results=(ahead, *found.results))).verdict
    assert "PCA ranks above the automatic choice, by 3.1 points." in text
    assert "partly lucky" in text
    assert "ranks above" not in Summary(found).verdict


# New rows of nothing that is known


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("given", [True, False])
def test_rows_of_new_groups_alone_are_remarked(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = grouped()
    known = frame["machine"].isin([f"M{number}" for number in range(18)])
    frame[known].to_csv("t.csv", index=False)
    frame[~known].to_csv("new.csv", index=False)
    pd.concat([frame[~known], frame[known].head(1)]).to_csv("mixed.csv", index=False)
    groups = ["--groups", "machine"] if given else []
    assert (
        main(["compare", "t.csv", "--target", "kind", *QUICK, *groups, "--save", "m.safetensors"])
        == 0
    )
    said = {}
    for name in ("new.csv", "mixed.csv", "t.csv"):
        capsys.readouterr()
        assert main(["predict", "m.safetensors", name, "-o", "labels.csv"]) == 0
        said[name] = capsys.readouterr().err
    assert "every machine is new: expect worse predictions" in said["new.csv"]
    assert "is new" not in said["mixed.csv"] + said["t.csv"]


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_numbers_of_groups_are_known_however_they_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = grouped()
    frame["machine"] = frame["machine"].str[1:].astype(int)
    frame.to_csv("t.csv", index=False)
    frame.assign(machine=frame["machine"].astype(float)).to_csv("floats.csv", index=False)
    compare_groups = ["compare", "t.csv", "--target", "kind", *QUICK, "--groups", "machine"]
    assert main([*compare_groups, "--save", "m.safetensors"]) == 0
    assert main(["predict", "m.safetensors", "floats.csv", "-o", "labels.csv"]) == 0
    assert "is new" not in capsys.readouterr().err
    frame.assign(machine=frame["machine"] + 100).to_csv("new.csv", index=False)
    assert main(["predict", "m.safetensors", "new.csv", "-o", "labels.csv"]) == 0
    assert "every machine is new" in capsys.readouterr().err


# Probabilities


@pytest.mark.slow_after(1)
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("methods", "score", "names"),
    [
        ("pca", "accuracy", ["label", "vote", "nearest_1"]),
        (
            "nca tables",
            "accuracy",
            ["label", "probability", "probability of claim", "probability of none"],
        ),
        (
            "nca tables balanced",
            "balanced",
            ["label", "probability", "probability of claim", "probability of none"],
        ),
    ],
)
def test_votes_are_called_votes_and_probabilities_are_of_all_classes(
    methods, score, names, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = leaking().drop(columns="refund")
    frame = frame.drop(index=frame.index[frame["kind"] == "claim"][15:])
    frame.to_csv("t.csv", index=False)
    options = ["--folds", "2", "--repeats", "1", "--no-references", "-q", "--save", "m.safetensors"]
    assert (
        main(
            [
                "compare",
                "t.csv",
                "--target",
                "kind",
                "--methods",
                methods,
                "--score",
                score,
                *options,
            ]
        )
        == 0
    )
    assert main(["predict", "m.safetensors", "t.csv", "-o", "p.csv"]) == 0
    found = pd.read_csv("p.csv")
    assert list(found.columns[1 : 1 + len(names)]) == names
    if "vote" in names:
        return
    P = found[names[2:]].to_numpy()
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-5)
    # as frequent as they are
    assert P[:, 0].mean() == pytest.approx((frame["kind"] == "claim").mean(), abs=0.05)
    labels = found["label"] == "claim"
    if score == "accuracy":
        np.testing.assert_array_equal(labels, P[:, 0] > 0.5)
    else:  # rows are labelled as if both classes were equally frequent
        share = (frame["kind"] == "claim").mean()
        np.testing.assert_array_equal(labels, P[:, 0] > share)
        np.testing.assert_array_equal(found["probability"], np.where(labels, P[:, 0], P[:, 1]))


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_an_interrupt_of_the_methods_that_follow_leaves_the_first_answer(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    grouped().drop(columns="machine").to_csv("t.csv", index=False)

    def interrupted(comparison, methods=None, **options):
        if methods is None:
            return replace(comparison, interrupted=True)
        return extend(comparison, methods, **options)  # only fits the choice

    monkeypatch.setattr(table_comparison, "extend", interrupted)
    options = [
        "--folds",
        "2",
        "--repeats",
        "1",
        "--no-references",
        "--save",
        "m.safetensors",
        "--json",
        "r.json",
    ]
    assert main(["compare", "t.csv", "--target", "kind", *options]) == 130
    out = capsys.readouterr().out
    assert "Interrupted: the first answer is written." in out
    assert out.count("\nmethod ") == 1
    names = {line["name"] for line in json.loads((tmp_path / "r.json").read_text())["ranking"]}
    assert names == {"automatic choice", "raw k-NN", "NCA tables", "LDA", "majority"}
    assert load_model(tmp_path / "m.safetensors").method == "NCA tables"
