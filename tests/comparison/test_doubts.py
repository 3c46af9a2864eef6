"""Doubts: the same from Python as from the command, and none without a cause."""

from types import SimpleNamespace

import numpy as np
import pytest

from nearkin.comparison import DOUBTS, REGRESSION, EncodedTable, compare
from nearkin.comparison.doubts import huge, huge_numbers, stand_apart
from nearkin.comparison.protocol import few_decide

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")

from ..app import battery  # noqa: E402

QUICK = {
    "methods": [],
    "references": [],
    "n_splits": 2,
    "n_repeats": 1,
    "refit": False,
    "n_jobs": 1,
}
GROUPS = ("LAYOUTS", "MISSING", "LABELS", "VALUES", "PARQUET")
# tables of which the command makes something else than pandas does
READ_OTHERWISE = {"the class nan"}
CASES = {
    name: case
    for group in GROUPS
    for name, case in getattr(battery, group).items()
    if case[0] == 0 and len(case) == 4 and name not in READ_OTHERWISE
}


def doubtful():
    """Return a table for every doubt about the columns, which has 120 rows."""
    rng, n = np.random.default_rng(0), 120
    kind = rng.integers(0, 2, n)
    frame = pd.DataFrame({"a": rng.normal(size=n) + kind, "b": rng.normal(size=n), "kind": kind})
    price = frame["a"] + 0.1 * rng.normal(size=n)
    price[[3, 70]] *= 1e4
    days = pd.date_range("2024-01-01", periods=n).astype(str)
    sign = np.where(np.arange(n) > n * 0.65, -1, 1)
    machine = np.arange(n) // 5
    copies = np.repeat(np.arange(8), 15)
    near = pd.DataFrame(rng.normal(size=(8, 3))[copies] + 1e-5 * rng.normal(size=(n, 3)))
    return {
        "twins": (frame.iloc[np.arange(n) // 2], {"keep_twins": True}),
        "chains": (near.rename(columns=str).assign(kind=rng.permutation(8)[copies] % 2), {}),
        "huge": (frame.assign(kind=price.abs()), {"task": "regression"}),
        "leak": (frame.assign(refund=np.where(kind, rng.integers(50, 90, n), 0)), {}),
        "groups": (frame.assign(machine=[f"M{number}" for number in machine]), {}),
        "time": (frame.assign(date=days, kind=np.where(sign * frame["b"] > 0, "p", "q")), {}),
    }


def by_command_and_from_python(path, frame, **options):
    """Return the doubts of the command, and those of a data frame."""
    from nearkin.app.tables.reading import read_table

    table = read_table(str(path), "kind", task=options.get("task", "classification"))
    return [compare(given, "kind", **QUICK, **options).doubts for given in (table, frame)]


@pytest.mark.parametrize("code", [doubt.__name__ for doubt in DOUBTS])
def test_python_doubts_what_the_command_doubts(code, tmp_path):
    frame, options = doubtful()[code]
    frame.to_csv(tmp_path / "t.csv", index=False)
    command, python = by_command_and_from_python(tmp_path / "t.csv", frame, **options)
    assert code in [doubt.code for doubt in command]
    assert [doubt.text for doubt in command] == [doubt.text for doubt in python]


@pytest.mark.slow_after(3)
@pytest.mark.filterwarnings("ignore::pandas.errors.PerformanceWarning")
@pytest.mark.parametrize("name", CASES)
def test_so_it_does_of_every_table_of_the_battery(name, tmp_path):
    _, _, file, content = CASES[name]
    path = tmp_path / file
    if isinstance(content, (str, bytes)):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            frame = pd.read_csv(path)
        except (ValueError, OSError):
            pytest.skip("pandas does not read it as it is")
    else:
        frame = content.to_pandas()
        frame.to_parquet(path)
    if "kind" not in frame or len(frame) != battery.N:
        pytest.skip("pandas does not read it as it is")
    command, python = by_command_and_from_python(path, frame)
    assert command == python


def huge_text(y, n_empty=0):
    """Return what is said of huge numbers, whose file has empty rows before them."""
    protocol = SimpleNamespace(labelled=np.flatnonzero(~np.isnan(y)), y=y, task=REGRESSION)
    table = EncodedTable(X=None, y=y, row_numbers=n_empty + np.arange(len(y)))
    return huge(protocol, table).text


@pytest.mark.parametrize("n_errors", [1, 5, 12])
def test_as_many_huge_numbers_are_named_as_stand_apart(n_errors):
    """Of 3,000 numbers not the farthest hundredth, which is 30."""
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(12, 0.5, 3000))
    wrong = rng.choice(3000, n_errors, replace=False)
    y[wrong] *= 1000
    assert sorted(huge_numbers(y)) == sorted(wrong)
    assert stand_apart(y)
    text = huge_text(np.append(np.nan, y), 7)
    assert f"row {np.argmax(y) + 8} ({y.max():.6g})" in text
    assert ("9 more." in text) == (n_errors == 12)
    assert ("If it is wrong, correct or drop it." in text) == (n_errors == 1)
    assert "times" not in huge_text(y - np.median(y))


@pytest.mark.parametrize("draw", ["lognormal", "pareto", "standard_cauchy", "zeros"])
def test_the_large_numbers_of_a_skewed_target_are_not_suspected(draw):
    """A few decide R², but hardly ever do they stand apart."""
    found, rng = [], np.random.default_rng(0)
    for _ in range(40):
        if draw == "zeros":
            y = np.where(rng.random(500) < 0.97, 0, rng.lognormal(7, 2, 500))
        else:
            y = getattr(rng, draw)(*{"lognormal": (9, 2), "pareto": (1,)}.get(draw, ()), size=500)
        found.append((few_decide(y), stand_apart(y)))
    few, apart = np.mean(found, axis=0)
    assert few > 0.9
    assert apart <= 0.1


def test_huge_numbers_among_few_or_among_zeros():
    y = np.append(np.random.default_rng(0).normal(10, 2, 80), [8e3, 9e3])
    assert huge_numbers(y).tolist() == [81, 80]
    assert stand_apart(y)
    y = np.append(np.zeros(60), [5.0, 5.0])
    assert huge_numbers(y).tolist() == [60, 61]
    assert not stand_apart(y)  # nothing shows how far the others might reach
