"""Columns that would fool a comparison are left out or named, and no others."""

import os
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from nearkin.app.endings import TableError  # noqa: E402
from nearkin.app.tables.reading import read_table  # noqa: E402
from nearkin.comparison import Suspects  # noqa: E402
from nearkin.datasets import BUNDLED  # noqa: E402
from nearkin.tables.cells import says_group, says_id  # noqa: E402

RNG = np.random.default_rng(0)
N = 120
KIND = RNG.choice(["a", "b", "c"], N)
CODE = pd.Series(KIND).map({"a": 7, "b": 3, "c": 5}).to_numpy()
SIZE = pd.Series(KIND).map({"a": 0, "b": 1, "c": 2}).to_numpy()
PATIENT = np.arange(N) // 5
TABLES = sorted((Path(os.environ.get("NEARKIN_DATA", "none")) / "tables").glob("*.csv"))


def read(tmp_path, kind=KIND, groups=None, task="classification", suffix="csv", **columns):
    """Return what is found in a table of these columns, three of noise and one of a feature that is
    useful.
    """
    noise = {f"noise {i}": np.random.default_rng(i).standard_normal(len(kind)) for i in range(3)}
    codes = kind if task == "regression" else pd.Series(kind).astype("category").cat.codes
    useful = codes + 0.7 * np.random.default_rng(9).standard_normal(len(kind))
    frame = pd.DataFrame({**noise, "useful": useful, **columns})
    path = tmp_path / f"t.{suffix}"
    if suffix == "npz":
        np.savez(path, X=frame.to_numpy(float), feature_names=frame.columns.to_numpy(str), y=kind)
    else:
        frame.assign(kind=kind).to_csv(path, index=False)
    return read_table(str(path), None if suffix == "npz" else "kind", groups, task=task)


def clean(table):
    return (
        table.suspects == Suspects()
        and not table.encoder.dropped_
        and not any("suspicious" in note or "groups" in note for note in table.all_notes)
    )


# What numbers the rows is left out


@pytest.mark.parametrize("suffix", ["csv", "npz"])
@pytest.mark.parametrize(
    "values",
    [
        np.arange(N),
        np.arange(N)[::-1],
        1_000_001 + RNG.permutation(N),
        -30 + 10 * np.argsort(np.argsort(KIND, kind="stable"), kind="stable"),
        RNG.permutation(N) + 0.5,
        2.0**40 * np.arange(N),
    ],
    ids=["in order", "down", "shuffled", "by class", "halves", "huge"],
)
def test_numbers_of_the_rows(tmp_path, values, suffix):
    table = read(tmp_path, suffix=suffix, height=values)
    assert table.suspects == Suspects()
    assert table.encoder.dropped_ == {"height": "numbers of the rows"}
    assert table.notes == ["ignored, numbers of the rows: height"]
    assert table.feature_names == ["noise 0", "noise 1", "noise 2", "useful"]
    assert table.X.shape == (N, 4)


def test_single_precision_and_truth_values(tmp_path):
    X = np.column_stack(
        [RNG.permutation(N) + 1e6, RNG.standard_normal(N), np.arange(N) % 3]
    ).astype(np.float32)
    np.savez(tmp_path / "t.npz", X=X, y=KIND)
    assert read_table(str(tmp_path / "t.npz")).encoder.dropped_ == {
        "column 0": "numbers of the rows"
    }


@pytest.mark.parametrize(
    "values",
    [
        np.append(np.arange(N - 1), N + 5),
        np.append(np.arange(N - 1), 7),
        np.arange(N) % 60,
        np.arange(N) ** 2,
        np.linspace(0, 1, N),
        RNG.integers(18, 90, N),
    ],
    ids=["a gap", "twice", "repeats", "squares", "fractions", "ages"],
)
def test_what_numbers_no_rows_is_kept(tmp_path, values):
    assert "age" in read(tmp_path, age=values).feature_names


def test_few_rows_may_have_any_numbers(tmp_path):
    table = read(
        tmp_path, kind=np.array(["a", "b"] * 9), age=np.arange(18), id=RNG.permutation(18) ** 2
    )
    assert table.notes == []
    assert table.X.shape == (18, 6)


def test_numbers_of_the_rows_alone_are_refused(tmp_path):
    pd.DataFrame({"x": range(N), "kind": KIND}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(
        TableError, match=r"no feature columns are left: x \(numbers of the rows\): add columns"
    ):
        read_table(str(tmp_path / "t.csv"), "kind")


# Identifiers


@pytest.mark.parametrize(
    "name", ["id", "ID", "patient_id", "userId", "order no", "KEY", "Case-Nr.", "zip code", "uuid"]
)
def test_whole_numbers_named_as_identifiers(tmp_path, name):
    table = read(tmp_path, **{name: np.append(RNG.permutation(N - 5) ** 2, np.arange(5))})
    assert table.encoder.dropped_ == {name: "named as identifiers, and nearly all values differ"}
    assert table.suspects.group_hints == []
    assert name not in table.feature_names


@pytest.mark.parametrize(
    "name", ["paid", "width", "humidity", "idea", "piano", "number of rooms", "keys"]
)
def test_other_names_are_none_of_identifiers(tmp_path, name):
    assert not says_id(name)
    assert clean(read(tmp_path, **{name: RNG.permutation(N) ** 2}))


def test_measured_numbers_are_no_identifiers(tmp_path):
    assert clean(read(tmp_path, index=RNG.standard_normal(N), code=RNG.integers(0, 8, N)))


def test_text_with_nearly_a_value_a_row(tmp_path):
    names = [f"name {max(i, 5)}" for i in range(N)]
    table = read(tmp_path, who=names, row=[f"row {i}" for i in range(N)])
    assert list(table.encoder.dropped_) == ["row", "who"]
    assert table.notes[1] == "ignored, text that differs in nearly every row: who"
    assert table.row_names[3] == "row 3"
    few = read(
        tmp_path, kind=np.array(["a", "b"] * 9), who=[f"name {max(i, 1)}" for i in range(18)]
    )
    assert few.notes == ["one-hot encoded: who (17 values)"]


# What alone predicts the target is named


@pytest.mark.parametrize(
    "values",
    [CODE, [f"outcome {code}" for code in CODE], SIZE + 0.1 * RNG.random(N), 0.5 + SIZE / 8],
    ids=["numbers", "text", "intervals", "fractions"],
)
def test_the_target_under_another_name(tmp_path, values):
    table = read(tmp_path, outcome=values)
    assert table.suspects.suspicious == [("outcome", 1.0)]
    assert table.all_notes[-1] == (
        "suspicious: outcome (100.0% of the rows) alone predicts kind: leave out what is not known "
        "beforehand"
    )
    assert any(name.startswith("outcome") for name in table.feature_names)  # kept


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("others", ["far behind", "together as good"])
def test_a_column_that_nearly_always_is_right(tmp_path, others):
    """A therapy is a leak even where some labels are wrong; an honest column has others beside it
    that know as much together.
    """
    rng, n = np.random.default_rng(0), 400
    kind = rng.integers(0, 2, n)
    therapy = np.where(rng.random(n) < 0.03, 1 - kind, kind)
    parts = {f"part {i}": kind + 0.9 * rng.standard_normal(n) for i in range(12)}
    is_leak = others == "far behind"
    found = read(tmp_path, kind, therapy=therapy, **({} if is_leak else parts)).suspects
    assert [name for name, _ in found.suspicious] == ["therapy"] * is_leak


def test_suspicious_columns_of_an_npz(tmp_path):
    assert read(tmp_path, suffix="npz", outcome=CODE).suspects.suspicious == [("outcome", 1.0)]


def test_many_values_of_which_each_has_one_class(tmp_path):
    """A finer diagnosis, for instance."""
    kind = RNG.choice(["a", "b", "c"], 2000)
    fine = [f"{label}{place}" for label, place in zip(kind, RNG.integers(0, 5, 2000), strict=True)]
    assert read(tmp_path, kind, diagnosis=fine).suspects.suspicious == [("diagnosis", 1.0)]


def test_two_that_predict_among_many_columns(tmp_path):
    more = {f"more {i}": RNG.standard_normal(N) for i in range(6)}
    table = read(
        tmp_path, **more, first=SIZE + 0.1 * RNG.random(N), second=-SIZE + 0.1 * RNG.random(N)
    )
    assert [name for name, _ in table.suspects.suspicious] == ["first", "second"]
    assert (
        "first (100.0% of the rows), second (100.0% of the rows) each alone predict kind"
        in table.all_notes[-1]
    )


def test_an_easy_task_is_not_suspicious(tmp_path):
    many = {f"easy {i}": SIZE + 0.2 * RNG.random(N) for i in range(3)}
    assert clean(read(tmp_path, **many))
    nearly = SIZE + 0.2 * RNG.random(N)
    nearly[:4] += 1
    assert clean(read(tmp_path, sure=SIZE + 0.2 * RNG.random(N), nearly=nearly))


def test_a_rare_class_makes_no_column_suspicious_but_its_own(tmp_path):
    kind = np.where(np.arange(2000) < 12, "rare", "common")
    table = read(
        tmp_path, kind, flag=RNG.integers(0, 2, 2000), useful_too=RNG.standard_normal(2000)
    )
    assert clean(table)
    assert read(tmp_path, kind, code=(kind == "rare") + 0).suspects.suspicious == [("code", 1.0)]


def test_rows_that_stand_twice_make_no_column_suspicious(tmp_path):
    kind = np.repeat(RNG.choice(["a", "b"], 200), 2)
    assert clean(read(tmp_path, kind, width=np.repeat(RNG.standard_normal(200), 2)))


def test_numbers_that_predict_numbers(tmp_path):
    price = RNG.standard_normal(N)
    more = {"task": "regression", "ok": price + 0.3 * RNG.standard_normal(N)}
    table = read(
        tmp_path, price, **more, dollars=np.exp(price), euros=-2 * price, pair=RNG.random(N)
    )
    # two of eight columns: too many but for equals
    assert [name for name, _ in table.suspects.suspicious] == ["euros"]
    one = read(tmp_path, price, **more, dollars=np.exp(price / 4))
    assert [name for name, _ in one.suspects.suspicious] == ["dollars"]
    assert "suspicious: dollars (R² 0.9999) alone predicts kind" in one.all_notes[-1]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_huge_numbers_do_no_harm(tmp_path, task):
    kind = np.arange(N) % 7
    table = read(tmp_path, kind, task=task, x=RNG.choice([-1e308, 1e308, 3.0], N))
    assert not table.encoder.dropped_


def test_rows_without_a_label_do_not_count(tmp_path):
    kind = np.where(np.arange(N) % 2, KIND, None)
    assert read(tmp_path, kind, outcome=CODE).suspects.suspicious == [("outcome", 1.0)]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_column_may_be_constant_where_labels_are(tmp_path, task):
    kind = np.where(np.arange(N) % 2, np.arange(N) % 7, None)
    assert clean(
        read(tmp_path, pd.array(kind, "Int64").to_numpy(float, na_value=np.nan), x=np.arange(N) % 2)
    )


# Groups are hinted at


def hint(name, count, given):
    return (
        f"{name} looks like groups of rows ({count} values): if rows with the same value belong "
        f"together, give --groups {given}"
    )


@pytest.mark.parametrize(
    "name", ["patient", "Patient ID", "subject#", "customerid", "UserId", "store_id", "batch nr"]
)
@pytest.mark.parametrize("form", [int, "person {}".format])
def test_groups_by_their_name(tmp_path, name, form):
    """Also where all rows of a patient have one label, and that column would predict it."""
    given = f"'{name}'" if " " in name or "#" in name else name
    for kind in (KIND, np.repeat(RNG.permutation(["a", "b"] * (N // 10)), 5)):
        table = read(tmp_path, kind, **{name: [form(number) for number in PATIENT]})
        assert table.suspects == Suspects(group_hints=[(name, N // 5)])
        assert table.all_notes[-1] == hint(name, N // 5, given)


def test_groups_by_their_labels(tmp_path):
    place = RNG.permutation(np.arange(400) // 10)
    kind = np.array(["a", "b"] * 20)[place]
    kind[:8] = "a"
    assert read(tmp_path, kind, ward=place).suspects.group_hints == [("ward", 40)]
    assert read(tmp_path, kind, ward=[f"ward {i}" for i in place]).suspects.group_hints == [
        ("ward", 40)
    ]
    price = RNG.standard_normal(40)[place] + 0.05 * RNG.standard_normal(400)
    assert read(tmp_path, price, task="regression", ward=place).suspects.group_hints == [
        ("ward", 40)
    ]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("noise", [0, 0.02])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_groups_by_their_labels_of_which_most_are_a_row(tmp_path, noise, share):
    """Households: with a little noise; but not where labels agree by chance, nor in copies."""
    rng, n = np.random.default_rng(0), 2000
    home = rng.permutation(np.append(np.arange(1400), rng.integers(0, 1400, n - 1400)))
    of_home = rng.random(1400) < share
    kind = np.where(of_home[home] ^ (rng.random(n) < noise), "yes", "no")
    names = [f"H{number}" for number in home]
    assert read(tmp_path, kind, Haushalt=names).suspects.group_hints == [("Haushalt", 1400)]
    assert read(tmp_path, kind, Haushalt=home).suspects.group_hints == [("Haushalt", 1400)]
    assert clean(read(tmp_path, rng.permutation(kind), Haushalt=names))
    frame = pd.DataFrame({"x": rng.normal(size=1000), "day": rng.permutation(1000), "kind": "no"})
    frame.loc[:: 2 if share == 0.5 else 10, "kind"] = "yes"
    pd.concat([frame, frame[:600]]).to_csv(tmp_path / "copies.csv", index=False)
    assert read_table(str(tmp_path / "copies.csv"), "kind").suspects == Suspects()


def test_a_group_that_is_the_target_is_suspicious(tmp_path):
    assert read(tmp_path, group=CODE).suspects == Suspects(suspicious=[("group", 1.0)])
    table = read(tmp_path, np.repeat(["a", "b"], N // 2), ward=PATIENT)  # in order of the classes
    assert table.suspects == Suspects(suspicious=[("ward", 1.0)])


def test_given_groups_end_the_hints(tmp_path):
    assert clean(read(tmp_path, groups="patient", patient=PATIENT, subject=PATIENT))


@pytest.mark.parametrize(
    "columns",
    [
        {"colour": RNG.choice(["red", "green", "blue"], N)},
        {"country": RNG.choice(list("abcde"), N), "sex": RNG.choice(["f", "m"], N)},
        {"site": RNG.integers(0, 5, N)},
        {"age": RNG.integers(18, 90, N)},
        {"score": SIZE * 30 + RNG.integers(0, 45, N)},
        {
            "patient age": RNG.integers(18, 90, N),
            "persons": RNG.integers(0, 12, N),
            "group_size": np.arange(N) % 15,
        },
        {"subject": PATIENT + RNG.random(N)},
    ],
    ids=lambda columns: ", ".join(columns),
)
def test_categories_and_measurements_are_no_groups(tmp_path, columns):
    assert clean(read(tmp_path, **columns))


def test_words_of_groups():
    assert all(map(says_group, ["Speaker", "author_name", "household-id", "movie_id", "siteNo"]))
    assert not any(
        map(says_group, ["person_age", "sitename", "visits", "grouping", "code", "valid", "", "42"])
    )


def test_a_wide_text_column_of_groups_is_a_hint(tmp_path):
    kind = np.array(["a", "b", "c"] * 400)
    table = read(tmp_path, kind, patient=[f"p{i // 2 if i > 4 else 0}" for i in range(1200)])
    assert table.suspects.group_hints == [("patient", 599)]
    assert table.feature_names[-1] == "patient=p99"


# No false alarms


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_have_no_suspects(name):
    table = read_table(name)
    assert {*table.encoder.dropped_.values()} <= {"constant"}
    assert table.suspects == Suspects()


@pytest.mark.slow
@pytest.mark.skipif(not TABLES, reason="NEARKIN_DATA names no folder with tables/*.csv")
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_published_tables_have_no_suspects(path):
    try:
        table = read_table(str(path), "target")
    except TableError:
        table = read_table(str(path), "target", task="regression")
    assert clean(table)
