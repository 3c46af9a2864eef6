"""Which rows are held out, learned from and chosen by: rules of n, for classes and numbers."""

from dataclasses import replace

import numpy as np
import pytest

from nearkin.comparison import REGRESSION, Method, compare, first_repeat, twin_groups
from nearkin.comparison.protocol import (
    CHOICE_ENTRIES,
    CHOICE_ROWS,
    FEWEST_CHOICE_ROWS,
    HELD_OUT_ROWS,
    SPLIT_HELD_OUT,
    sample,
)
from nearkin.estimators import NMMP

from .tables import hidden, noise, protocol_of, quick


def table(n, p=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)).astype(np.float32), np.arange(n) % 2


def disjoint(folds, units):
    return all(not set(units[train]) & set(units[test]) for train, test in folds)


class TestFoldsByTheNumberOfRows:
    @pytest.mark.parametrize(
        ("n", "n_folds"),
        [(50, 15), (150, 15), (625, 10), (1500, 5), (2000, 5), (5000, 5), (20_000, 5)],
    )
    def test_all_five_folds_and_small_tables_again(self, n, n_folds):
        folds, reduced = protocol_of(*table(n)).folds(None, None)
        held_out = [len(test) for _, test in folds]
        assert (len(folds), reduced) == (n_folds, {})
        assert max(held_out) - min(held_out) <= 2
        assert all(len(train) + len(test) == n for train, test in folds)
        assert sum(held_out) >= min(0.8 * HELD_OUT_ROWS, 3 * n)
        assert len(first_repeat(folds)) == 5

    @pytest.mark.parametrize("keep_twins", [False, True])
    def test_of_many_rows_a_single_split(self, keep_twins):
        X, y = table(15_000)
        X = np.vstack([X, X])
        units = np.arange(30_000) if keep_twins else np.tile(np.arange(15_000), 2)
        protocol = protocol_of(X, np.tile(y, 2), units=units, keep_twins=keep_twins)
        ((train, test),), reduced = protocol.folds(None, None)
        assert len(test) == (SPLIT_HELD_OUT if keep_twins else 3000)
        assert len(np.unique(units[test])) == len(test)  # one row a unit
        assert disjoint([(train, test)], units)
        assert len(train) == 30_000 - len(test) * (1 if keep_twins else 2)
        assert (reduced, len(first_repeat([(train, test)]))) == ({}, 1)

    @pytest.mark.long
    def test_of_many_rows_near_twins_of_held_out_ones_are_not_learned_from(self):
        X, y = table(10_500, p=6)
        X = np.vstack([X, X + np.float32(1e-4) * table(10_500, p=6, seed=1)[0]])
        ((train, test),), _ = protocol_of(X, np.tile(y, 2)).folds(None, None)
        twin = (test + 10_500) % 21_000
        assert np.isin(twin, train).mean() < 0.01
        assert len(train) > 21_000 - 2.1 * len(test)

    def test_one_split_tells_of_the_fitted_models(self, monkeypatch):
        monkeypatch.setattr("nearkin.comparison.protocol.SPLIT_ROWS", 100)
        X, y = hidden(300)
        assert quick(X, y, (), n_splits=None, n_repeats=None).of_fitted_models
        assert not quick(X, y, ()).of_fitted_models

    def test_many_copies_of_few_rows_are_cut_into_folds(self):
        X, y = table(21_000)
        protocol = protocol_of(X, y, units=np.arange(21_000) // 2 % 100)
        folds, _ = protocol.folds(None, None)
        assert [len(test) for _, test in folds] == [4200] * 5

    @pytest.mark.parametrize("own", [{"n_splits": 2}, {"groups": True}])
    def test_ones_own_folds_of_many_rows_keep_near_twins_together(self, own, monkeypatch):
        for name in ("TWIN_QUERIES", "SPLIT_ROWS"):
            monkeypatch.setattr(f"nearkin.comparison.protocol.{name}", 100)
        X, y = table(80, p=6)
        X, y = np.vstack([X, X + np.float32(1e-4) * table(80, p=6, seed=1)[0]]), np.tile(y, 2)
        own = {"groups": np.arange(160) % 20} if "groups" in own else own
        comparison = quick(X, y, methods=(), **({"n_splits": 3} | own))
        assert disjoint(comparison.folds, np.tile(np.arange(80), 2))

    def test_ones_own_numbers_hold_for_any_table(self):
        protocol = protocol_of(*table(21_000))
        assert len(protocol.folds(3, 2)[0]) == 6
        assert len(protocol.folds(3, None)[0]) == 3
        assert len(protocol.folds(None, 2)[0]) == 10

    def test_groups_are_cut_into_five_whatever_their_number_of_rows(self):
        X, y = table(4000)
        protocol = protocol_of(X, y, groups=np.arange(4000) // 40)
        assert len(protocol.folds(None, None)[0]) == 5


class TestFolds:
    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_every_repeat_holds_every_row_out_once_in_folds_of_equal_size(self, task):
        X, y = noise(52)
        protocol = (
            protocol_of(X, y)
            if task == "classification"
            else protocol_of(X, X[:, 0], task=REGRESSION)
        )
        folds, _ = protocol.folds(5, 2)
        assert sorted(len(test) for _, test in folds[:5]) == [10, 10, 10, 11, 11]
        for repeat in (folds[:5], folds[5:]):
            np.testing.assert_array_equal(
                np.sort(np.concatenate([test for _, test in repeat])), np.arange(52)
            )
        assert not np.array_equal(folds[0][1], folds[5][1])

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_groups_stay_on_one_side_and_are_drawn_anew(self, task):
        X, y = hidden()
        groups = np.arange(150) // 6
        options = {"groups": groups} | ({} if task == "classification" else {"task": REGRESSION})
        protocol = protocol_of(X, y if task == "classification" else X[:, 0], **options)
        folds, _ = protocol.folds(5, 2)
        inner = protocol.inner_folds(folds[0][0])
        assert len(inner) == 3
        assert disjoint([*folds, *inner], groups)
        assert set(groups[folds[0][1]]) != set(groups[folds[5][1]])

    def test_twins_and_groups_hang_together(self):
        X, y = hidden(60)
        groups = np.arange(60) % 6
        X[1::12] = X[::12]  # twins tie group 1 to group 0
        comparison = quick(X, y, methods=(), groups=groups)
        assert len(np.unique(comparison.protocol.units)) == 5
        for units in (groups, np.maximum(groups, 1), twin_groups(X)):
            assert disjoint(comparison.folds, units)

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_the_fewest_rows(self, task):
        X, y = noise(4)
        y = y if task == "classification" else X[:, 0]
        comparison = compare(X, y, task=task, references=(), n_repeats=1)
        assert comparison.reduced["n_splits"][0] == 5
        assert all(np.isfinite(result.score).all() for result in comparison.results)
        assert comparison.winner.predict(X).shape == (4,)

    def test_small_classes_reduce_the_folds_visibly(self):
        comparison = quick(*hidden(6), n_splits=None)
        assert comparison.reduced["n_splits"] == (5, "class no has 3 rows")
        assert len(comparison.folds) == 3
        # inner folds learn from two rows
        assert {str(vote) for vote in comparison.raw.votes} == {"2-NN"}

    def test_rows_without_a_twin_are_too_few(self):
        X = np.array([[0.0], [1.0]] * 20)
        with pytest.raises(
            ValueError, match=r"X holds 2 rows that are no twins of one another.*keep_twins=True"
        ):
            quick(X, np.arange(40) % 2)
        assert quick(X, np.arange(40) % 2, methods=(), keep_twins=True).raw.score.mean() == 1

    def test_twins_reduce_the_folds_visibly(self):
        X, _ = noise(12)
        comparison = quick(
            np.tile(X, (5, 1)), np.tile(np.arange(12) % 4, 5), methods=(), n_splits=5
        )
        assert comparison.reduced == {"n_splits": (5, "class 0 has 3 rows without a twin")}
        assert comparison.protocol.n_twins == 60


class TestGroupsOfMoreThanTen:
    """Copies with a little noise, whose labels are those of the row that they are copies of, and
    mean nothing.
    """

    original = np.repeat(np.arange(25), 12)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 5))[original] + 1e-3 * rng.normal(size=(300, 5))
    y = rng.integers(0, 2, 25)[original]

    @pytest.mark.slow
    def test_without_groups_they_are_named_and_nothing_is_called_better(self):
        comparison = quick(self.X, self.y)
        assert comparison.raw.score.mean() > 0.95  # which is why
        assert comparison.n_chained == 300
        assert "300 rows form tight groups of more than ten" in repr(comparison)
        assert all(result.doubted for result in comparison.results)
        shown = replace(comparison["DNE"], difference=0.1, p_value=1e-9)
        assert (shown.status, shown.p_value) == ("unclear", 1e-9)
        assert replace(shown, doubted=False).status == "better"
        assert replace(shown, difference=-0.1).status == "worse"

    @pytest.mark.slow
    def test_with_groups_there_is_no_doubt_and_no_promise(self):
        comparison = quick(self.X, self.y, groups=self.original)
        assert (comparison.n_chained, comparison.doubts) == (0, ())
        assert not comparison.raw.doubted
        assert comparison.raw.score.mean() < 0.75

    def test_numbers_are_named_too(self):
        comparison = quick(self.X, self.rng.normal(size=25)[self.original], (), task="regression")
        assert comparison.n_chained == 300

    @pytest.mark.slow
    def test_an_ordinary_table_is_not_doubted(self):
        comparison = quick(*hidden())
        assert (comparison.n_chained, comparison.raw.doubted) == (0, False)
        assert [doubt.code for doubt in comparison.doubts] == ["leak"]  # its first column


class TestInnerFolds:
    @pytest.mark.parametrize(
        ("p", "most"),
        [(2, CHOICE_ROWS), (200, CHOICE_ENTRIES // 200), (2000, FEWEST_CHOICE_ROWS)],
    )
    def test_at_most_so_many_rows(self, p, most):
        X, y = np.zeros((6000, p), np.float32), np.arange(6000) % 2
        inner = protocol_of(X, y).inner_folds(np.arange(6000))
        assert len(inner) == 3
        for train, test in inner:
            assert len(train) + len(test) == most

    def test_ones_own_number(self):
        X, y = table(400)
        for train, test in protocol_of(X, y, choice_rows=90).inner_folds(np.arange(400)):
            assert len(train) + len(test) == 90

    def test_of_twins_one_is_taken_where_a_sample_is(self):
        X, units = table(2000)[0], np.arange(2000) // 2
        inner = protocol_of(
            X, np.repeat(np.arange(1000) % 2, 2), units=units, choice_rows=300
        ).inner_folds(np.arange(2000))
        rows = np.concatenate(inner[0])
        assert len(np.unique(units[rows])) == len(rows) == 300

    def test_they_stay_inside_the_training_rows(self):
        protocol = protocol_of(*hidden())
        train, _ = protocol.folds(5, 1)[0][0]
        assert all(set(a) | set(b) == set(train) for a, b in protocol.inner_folds(train))

    def test_none_of_two_rows(self):
        assert protocol_of(*noise(4)).inner_folds(np.arange(1)) == []

    def test_without_spread_they_are_left_out(self):
        X, y = (
            np.random.default_rng(0).normal(size=(60, 2)),
            np.random.default_rng(1).normal(size=60),
        )
        groups = np.arange(60) // 20
        y[groups == 1] = 7.0
        inner = protocol_of(X, y, task=REGRESSION, groups=groups).inner_folds(np.arange(60))
        assert len(inner) == 2
        assert not any(1 in groups[test] for _, test in inner)


class TestHeldOutOfMany:
    """The rows that a predictor for tables holds out of more than 2,000 are those of whole units."""

    @pytest.mark.long
    @pytest.mark.parametrize("grouped", [True, False])
    @pytest.mark.parametrize(("n", "n_held"), [(2600, 520), (25_000, 2000)])
    def test_no_unit_is_also_learned_from(self, n, n_held, grouped):
        X, y = table(n)
        units = np.arange(n) * 500 // n
        given = {"groups": units} if grouped else {"units": units, "keep_twins": True}
        protocol = protocol_of(X, y, **given)
        rows = np.arange(n)[:-50]
        held = protocol.held_out(rows)
        assert set(held) < set(rows)
        assert 0.8 * n_held < len(np.unique(held)) == len(held) <= n_held + 3
        assert np.mean(y[held]) == pytest.approx(0.5, abs=0.03)
        rest = protocol.apart(rows, held)
        assert len(rest) > 0.75 * len(rows)
        folds = protocol.member_folds(rows)
        assert len(folds) == 3
        learned = np.unique(np.concatenate([rest, *folds[0]]))
        assert disjoint([(learned, held), *folds], units)
        np.testing.assert_array_equal(learned, rest)

    @pytest.mark.slow
    def test_near_twins_of_many_rows(self):
        X, y = table(10_500, p=6)
        X = np.vstack([X, X + np.float32(1e-4) * table(10_500, p=6, seed=1)[0]])
        protocol, rows = protocol_of(X, np.tile(y, 2)), np.arange(21_000)
        held = protocol.held_out(rows)
        assert np.isin((held + 10_500) % 21_000, protocol.apart(rows, held)).mean() < 0.01

    @pytest.mark.parametrize("task", ["classification", "regression"])
    @pytest.mark.parametrize("sizes", [[3600, 4, 3, 2, 2, 2], [6000, *20 * [100]]])
    def test_groups_of_very_different_sizes(self, sizes, task):
        """A sample may lack the small ones, and the largest is not held out if others can be."""
        groups = np.repeat(np.arange(len(sizes)), sizes)
        X, y = table(len(groups))
        options = {} if task == "classification" else {"task": REGRESSION}
        y = y if task == "classification" else X[:, 0]
        for seed in range(3):
            protocol = protocol_of(X, y, groups=groups, random_state=seed, **options)
            held = protocol.held_out(np.arange(len(groups)))
            assert len(held) > 0
            assert 0 not in groups[held]
            assert disjoint(protocol.member_folds(np.arange(len(groups))), groups)

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_of_two_groups_each_is_one_side_of_a_single_fold(self, task):
        X, y = table(3000)
        groups = np.repeat([0, 1], [1000, 2000])
        options = {} if task == "classification" else {"task": REGRESSION}
        y = y if task == "classification" else X[:, 0]
        protocol = protocol_of(X, y, groups=groups, **options)
        ((train, test),) = protocol.member_folds(np.arange(3000))
        assert len(test) == 600
        assert set(groups[train]) | set(groups[test]) == {0, 1}
        assert disjoint([(train, test)], groups)
        ((train, test),) = protocol.inner_folds(np.arange(3000))
        assert len(train) > len(test) > 100

    def test_none_of_few_rows_or_of_one_group(self):
        assert not len(protocol_of(*table(2000)).held_out(np.arange(2000)))
        one = protocol_of(*table(3000), groups=np.zeros(3000, int))
        assert not len(one.held_out(np.arange(3000)))
        assert one.member_folds(np.arange(3000)) == []


class TestSample:
    def test_classes_keep_their_shares_and_small_ones_three_rows(self):
        y = np.repeat([0, 1, 2], [7000, 2980, 20])
        rows = sample(np.arange(10_000), y, 1000, 0)
        assert np.bincount(y[rows]) == pytest.approx([700, 298, 4], abs=2)
        assert (np.diff(rows) > 0).all()
        assert len(sample(np.arange(10_000), y, 1000, 1)) == pytest.approx(1000, abs=3)
        assert not np.array_equal(rows, sample(np.arange(10_000), y, 1000, 1))

    def test_a_class_of_fewer_than_three_is_taken_whole(self):
        y = np.repeat([0, 1], [998, 2])
        assert set(sample(np.arange(1000), y, 50, 0)) >= {998, 999}

    def test_numbers_keep_their_distribution(self):
        y = np.random.default_rng(0).exponential(size=5000)
        rows = sample(np.arange(5000), y, 500, 0)
        assert len(rows) == 500
        np.testing.assert_allclose(
            np.quantile(y[rows], [0.1, 0.5, 0.9]), np.quantile(y, [0.1, 0.5, 0.9]), rtol=0.02
        )

    def test_few_rows_are_all_taken(self):
        np.testing.assert_array_equal(
            sample(np.arange(3, 9), np.zeros(10, int), 6, 0), np.arange(3, 9)
        )


RNG = np.random.default_rng(0)


@pytest.mark.long
def test_rare_classes_are_left_out_of_the_comparison():
    X = RNG.normal(size=(100, 3))
    y = np.array(["a", "b"] * 48 + ["c"] * 3 + ["d"])
    methods = [Method("NMMP", NMMP(2))]
    found = compare(X, y, methods=methods, references=[], refit=False, n_repeats=1)
    remark = "left out, classes of fewer than 5 rows: 'c' (3 rows), 'd' (1 row)"
    assert found.remarks == (remark,)
    assert not found.reduced
    assert found.protocol.labelled.tolist() == list(range(96))
    assert len(found.protocol.unlabelled) == 0
    alone = compare(X[:96], y[:96], methods=methods, references=[], refit=False, n_repeats=1)
    np.testing.assert_array_equal(found["NMMP"].score, alone["NMMP"].score)


def test_classes_of_a_single_row_are_left_out_but_larger_ones_reduce_the_folds():
    X = RNG.normal(size=(40, 3))
    y = np.array(["a", "b"] * 15 + ["c"] * 4 + list("defghi"))
    found = compare(X, y, methods=[], references=[], refit=False, n_repeats=1)
    assert found.remarks[0].startswith("left out, classes of fewer than 2 rows: 'd' (1 row)")
    assert found.reduced["n_splits"] == (5, "class c has 4 rows")
