"""Rows of different times: a doubt where later rows are harder to predict, and only there."""

from types import SimpleNamespace

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from nearkin.app.tables.reading import read_table  # noqa: E402
from nearkin.comparison import CLASSIFICATION, named_task  # noqa: E402
from nearkin.comparison.doubts import _in_order, time  # noqa: E402

N = 400


def time_doubts(table):
    """Return the doubt in a list, or none."""
    task, y = named_task(table.task), table.y
    if task == CLASSIFICATION:
        y = np.unique(y.astype(str), return_inverse=True)[1]
    is_grouped = table.groups is not None
    protocol = SimpleNamespace(grouped=is_grouped, task=task, y=y, labelled=table.labelled)
    found = time(protocol, table)
    return [] if found is None else [found]


ORDER = np.random.default_rng(1).permutation(N)


def doubts(tmp_path, *, switches=True, task="classification", groups=None, order=ORDER, **columns):
    """Return the doubts of a table whose first feature says the label, from the last third of the
    rows on the other way round. The file has the rows in another order.
    """
    x = np.random.default_rng(0).normal(size=(N, 2))
    sign = np.where((np.arange(N) > N * 2 / 3) & switches, -1, 1)
    y = np.where(sign * x[:, 0] > 0, "p", "q") if task == "classification" else sign * x[:, 0]
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y, **columns})
    frame.iloc[order].to_csv(tmp_path / "t.csv", index=False)
    return time_doubts(read_table(str(tmp_path / "t.csv"), "y", groups, task=task))


def days(n=N):
    return {"date": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d")}


def test_labels_that_switch_in_time(tmp_path):
    (doubt,) = doubts(tmp_path, **days())
    assert doubt.code == "time"
    assert doubt.text.startswith("rows differ in time (column 'date'), and the folds")
    assert " trained on the earliest 70% is right in " in doubt.text


def test_numbers_that_switch_in_time(tmp_path):
    (doubt,) = doubts(tmp_path, task="regression", **days())
    assert " 70% is off by 1." in doubt.text


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_what_does_not_change_in_time_is_no_doubt(tmp_path, task):
    assert doubts(tmp_path, switches=False, task=task, **days()) == []


def test_numbers_named_like_a_time_are_one_if_the_rows_are_in_their_order(tmp_path):
    """A car has a year, too."""
    years, order = 1980.5 + np.arange(N) / 10, np.arange(N)
    assert [one.code for one in doubts(tmp_path, order=order, Year=years)] == ["time"]
    assert doubts(tmp_path, Year=years) == []
    assert doubts(tmp_path, order=order, length=years) == []


@pytest.mark.long
def test_dates_that_do_not_say_when_a_row_was_recorded(tmp_path):
    (date,) = days().values()
    assert doubts(tmp_path, birth_date=date) == []
    assert doubts(tmp_path, membership=date) == []
    for name in ("Flight Date", "createdAt", "measured on"):
        assert [one.code for one in doubts(tmp_path, **{name: date})] == ["time"]
    assert [one.code for one in doubts(tmp_path, order=np.arange(N), membership=date)] == ["time"]


def test_rows_in_the_order_of_time():
    rng = np.random.default_rng(0)
    year, price = rng.integers(2005, 2021, N), rng.normal(size=N)
    by_price = year[np.argsort(0.4 * (year - 2005) + price)]  # rank correlation .86
    assert not any(map(_in_order, (year, by_price, np.full(N, 2020), np.full(N, np.nan))))
    late = np.arange(N) + rng.normal(0, 20, N)  # rows that arrive late
    stations = np.tile([2010, 2011, 2012, 2013], N // 4)
    gaps = np.where(np.arange(N) % 3, np.sort(year), np.nan)
    assert all(map(_in_order, (np.sort(year), np.sort(year)[::-1], late, stations, gaps)))


def test_missing_dates_and_columns_that_are_left_out(tmp_path):
    dates = pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d").to_series()
    dates.iloc[::7] = None
    found = doubts(tmp_path, same=1, kind=np.arange(N) % 3, date=dates.to_numpy())
    assert [one.code for one in found] == ["time"]


def test_too_little_to_tell(tmp_path):
    rare = np.where(np.arange(N) < N - 10, "2024-01-01", "2024-01-02")
    assert doubts(tmp_path, date=rare) == []
    assert doubts(tmp_path) == []


def trend(n, seed):
    """Return monthly counts that grow."""
    rng = np.random.default_rng(seed)
    months = pd.date_range("2010-01-01", periods=n, freq="MS")
    count = 100 + 2 * np.arange(n) + rng.normal(0, 5, n)
    return pd.DataFrame({"month": months.strftime("%Y-%m-%d"), "a": rng.normal(size=n), "y": count})


@pytest.mark.parametrize("n", [60, 160])
def test_few_rows_with_a_trend(tmp_path, n):
    trend(n, 0).to_csv(tmp_path / "t.csv", index=False)
    (doubt,) = time_doubts(read_table(str(tmp_path / "t.csv"), "y", task="regression"))
    assert doubt.code == "time"


@pytest.mark.long
def test_of_rows_without_a_trend_few_are_doubted(tmp_path):
    """At most one in a hundred are, whatever their number."""
    found = []
    for seed in range(15):
        frame = trend(70, seed).assign(y=np.random.default_rng(seed).normal(size=70))
        frame.to_csv(tmp_path / "t.csv", index=False)
        found += time_doubts(read_table(str(tmp_path / "t.csv"), "y", task="regression"))
    assert len(found) <= 1


def test_of_groups_that_are_given_nothing_is_said(tmp_path):
    assert doubts(tmp_path, groups="g", g=np.arange(N) // 4, **days()) == []
