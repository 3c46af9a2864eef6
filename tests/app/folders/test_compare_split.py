"""Methods ranked by one split: what is held out, and how sure a difference is."""

import numpy as np
import pytest

from nearkin.comparison import RAW, ranked

pytest.importorskip("dask")

from nearkin.app.folders.compare import MOST_HELD_OUT, held_out_rows, split_result

N_TRAIN = 40_000


@pytest.mark.parametrize(
    ("n", "size"), [(500, 100), (99_999, 19_999), (100_001, MOST_HELD_OUT), (10**9, MOST_HELD_OUT)]
)
def test_the_draw_is_seeded_and_without_repetition(n, size):
    rows = held_out_rows(n, 3)
    assert len(rows) == size
    assert rows[0] >= 0
    assert rows[-1] < n
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, held_out_rows(n, 3))
    assert not np.array_equal(rows, held_out_rows(n, 4))
    assert abs(rows.mean() / n - 0.5) < 0.1


def of(name, right):
    return split_result(name, np.asarray(right, dtype=bool), 3, 0.1, 5, N_TRAIN)


def rank_split(finished, n_train):
    """Return the results of one split with their tests, best first, and the least difference."""
    held_out = np.arange(len(finished[0].contributions[0]))
    return ranked(finished, [(np.broadcast_to(0, n_train), held_out)])


def half_width(result):
    return (result.interval[1] - result.interval[0]) / 2


def test_a_difference_comes_from_the_rows_on_which_two_methods_differ():
    n = 10_000
    raw, better, same, worse = (
        np.arange(n) < 5000,
        np.arange(n) < 5200,
        np.arange(n) % 2 == 0,
        np.arange(n) < 4000,
    )
    results, least = rank_split(
        [of(RAW, raw), of("b", better), of("s", same), of("w", worse)], N_TRAIN
    )
    assert [(r.name, r.status) for r in results] == [
        ("b", "better"), (RAW, "baseline"), ("s", "unclear"), ("w", "worse")
    ]  # fmt: skip
    by_name = {r.name: r for r in results}
    assert by_name["b"].difference == pytest.approx(0.02)
    # 200 rows of 10,000, all one way: variance q - q^2; the factor is that of other training rows
    share = 0.02
    expected = 1.96 * np.sqrt((1 + n / N_TRAIN) * (share - share**2) / n)
    assert half_width(by_name["b"]) == pytest.approx(expected, rel=1e-3)
    # as accurate, but right elsewhere: less sure than a method that differs in few rows
    assert half_width(by_name["s"]) > half_width(by_name["b"])
    assert by_name["s"].p_value == 1
    assert np.isnan(by_name[RAW].p_value)
    assert 0 < least < 0.05


def test_methods_that_never_differ_are_not_told_apart():
    same = np.arange(600) % 3 > 0
    results, _ = rank_split([of(RAW, same), of("copy", same)], N_TRAIN)
    assert [r.status for r in results] == ["baseline", "unclear"]
    assert (results[1].difference, results[1].p_value) == (0, 1)


@pytest.mark.slow
def test_the_interval_holds_as_often_as_it_says():
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        raw = rng.random(400) < 0.6
        results, _ = rank_split(
            [of(RAW, raw), of("m", np.where(rng.random(400) < 0.3, ~raw, raw))], 10**6
        )
        low, high = next(r.interval for r in results if r.name == "m")
        held += low <= 0.3 * (0.4 - 0.6) <= high
    assert 0.91 < held / 200 < 0.98
