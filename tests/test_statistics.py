import numpy as np
import pytest
from scipy.stats import nct, t, ttest_1samp

from nearkin import DNE
from nearkin.comparison import RAW, Method, compare
from nearkin.statistics import (
    PairedTest,
    corrected_resampled_t_test,
    detectable_difference,
    holm,
    in_sequence,
    paired_test,
    paired_test_by_rows,
    ratio_interval,
)
from nearkin.vectors import Way


def test_without_shared_rows_it_is_students_test():
    d = np.random.default_rng(0).normal(0.3, 1, 12)
    assert corrected_resampled_t_test(d, np.inf, 100) == pytest.approx(ttest_1samp(d, 0).pvalue)


def test_shared_training_rows_make_it_more_careful():
    d = np.random.default_rng(0).normal(1, 1, 12)
    assert corrected_resampled_t_test(d, 400, 100) > corrected_resampled_t_test(d, np.inf, 100)


@pytest.mark.long
def test_it_keeps_its_level_where_the_plain_test_does_not():
    """Folds of one repeated cross-validation under no difference: correlated as test_share / (1 +
    test_share) says.
    """
    rng = np.random.default_rng(0)
    share, J, rejections, plain = 0.25, 15, 0, 0
    rho = share / (1 + share)
    for _ in range(1000):
        d = np.sqrt(rho) * rng.normal() + np.sqrt(1 - rho) * rng.normal(size=J)
        rejections += corrected_resampled_t_test(d, 100 / share, 100) < 0.05
        plain += ttest_1samp(d, 0).pvalue < 0.05
    assert 0.035 < rejections / 1000 < 0.065
    assert plain / 1000 > 0.2


def test_folds_that_agree_by_chance_prove_nothing():
    assert corrected_resampled_t_test(np.zeros(5), 40, 10) == 1.0
    # one row in each of two folds
    assert corrected_resampled_t_test(np.full(2, 1 / 75), 75, 75) > 0.1
    assert corrected_resampled_t_test(np.full(15, 0.1), 400, 100) < 1e-6


@pytest.mark.long
def test_level_of_a_whole_comparison_of_noise():
    """Two folds of a dozen rows, labels without meaning: hardly ever significant."""
    statuses = []
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(12, 3))
        options = {"methods": [Method("DNE", DNE())], "references": (), "refit": False}
        comparison = compare(X, np.arange(12) % 2, n_splits=2, n_repeats=1, **options)
        statuses += [result.status for result in comparison.results if result.name != RAW]
    assert sum(status != "unclear" for status in statuses) <= 3


def folds_of(rng, n=60, n_splits=5, n_repeats=1):
    return [rows for _ in range(n_repeats) for rows in np.array_split(rng.permutation(n), n_splits)]


def test_one_split_is_students_test_of_its_rows():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 40), rng.normal(size=40)
    plain = paired_test([a], [b], [np.arange(40)], np.inf)
    assert plain.p_value == pytest.approx(ttest_1samp(a - b, 0).pvalue)
    assert plain.interval(0.9) == pytest.approx(ttest_1samp(a - b, 0).confidence_interval(0.9))
    test = paired_test([a], [b], [np.arange(40)], 160)  # a fifth held out: 1 + n_test/n_train
    assert test.standard_error == pytest.approx(np.sqrt(1.25) * plain.standard_error)
    assert (test.difference, test.dof) == (pytest.approx(np.mean(a - b)), 39)
    low, high = test.interval(0.95, n_comparisons=2)
    assert (high - low) / 2 == pytest.approx(t.isf(0.0125, 39) * test.standard_error)


def test_two_repeats_by_hand():
    """Four rows, two folds, twice: a row counts by the mean of its two differences."""
    rows = [np.array(fold) for fold in ([0, 1], [2, 3], [0, 2], [1, 3])]
    method = [np.array(d, float) for d in ([1, 0], [0, 1], [1, 0], [1, 0])]
    test = paired_test(method, [np.zeros(2)] * 4, rows, 2)
    means = np.array([1, 0.5, 0, 0.5])
    by_rows = np.sqrt((1 + 4 / 2) * means.var(ddof=1) / 4)
    assert (test.difference, test.standard_error) == (0.5, pytest.approx(by_rows))


def test_the_rows_of_a_unit_are_one():
    """A table in which every row stands twice: units give what the single rows do, up to the
    smaller test set.
    """
    rng = np.random.default_rng(0)
    d, rows = rng.normal(size=30), np.arange(30)
    single = paired_test([d], [np.zeros(30)], [rows], 120)
    twins = [np.tile(d, 2)], [np.zeros(60)], [np.arange(60)], 240
    test = paired_test(*twins, units=np.tile(rows, 2))
    assert (test.dof, test.p_value) == (single.dof, pytest.approx(single.p_value))
    assert paired_test(*twins).standard_error < 0.75 * test.standard_error
    assert paired_test(*twins, units=np.zeros(60)).p_value == 1


def test_folds_that_differ_more_than_their_rows_decide():
    """A method that is another one in every fold: the test is that of the fold scores."""
    rng = np.random.default_rng(0)
    rows = folds_of(rng, n_splits=5)
    method = [luck + 0.1 * rng.normal(size=12) for luck in (2, 1, 0, 2, 1)]
    test = paired_test(method, [np.zeros(12)] * 5, rows, 48)
    scores = np.array([np.mean(d) for d in method])
    assert test.dof == 4
    assert test.p_value == pytest.approx(corrected_resampled_t_test(scores, 48, 12))


@pytest.mark.parametrize("n_splits", [2, 3, 4])
def test_folds_too_few_to_show_luck_count_by_their_own_number(n_splits):
    """Folds that agree by chance: the variance is that of the rows, the degrees of freedom those of
    the folds.
    """
    rows = folds_of(np.random.default_rng(0), n=60, n_splits=n_splits)
    method = [np.random.default_rng(1).permutation(np.arange(len(fold)) % 2) for fold in rows]
    test = paired_test(method, [np.zeros(len(fold)) for fold in rows], rows, 48)
    pooled = paired_test([np.concatenate(method)], [np.zeros(60)], [np.concatenate(rows)], 48)
    assert (test.standard_error, test.dof) == (pytest.approx(pooled.standard_error), n_splits - 1)


@pytest.mark.parametrize(("n_splits", "of_fitted_models"), [(1, True), (2, False), (5, False)])
def test_one_split_is_of_the_fitted_models(n_splits, of_fitted_models):
    rows = folds_of(np.random.default_rng(0), n_splits=n_splits)
    test = paired_test(
        [np.arange(len(fold)) for fold in rows], [np.zeros(len(fold)) for fold in rows], rows, 48
    )
    assert test.of_fitted_models == of_fitted_models


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_splits", [2, 3, 4, 5])
def test_level_of_methods_whose_folds_are_luck(n_splits):
    """Two lotteries: in every fold each is good or bad by chance, far beyond what its rows vary."""
    rng = np.random.default_rng(0)
    n, found = 3000, []
    for _ in range(200):
        rows = folds_of(rng, n, n_splits)
        accuracies = rng.uniform(0.6, 0.9, size=(n_splits, 2))
        drawn = [
            [
                1.0 * (rng.random(len(fold)) < accuracy)
                for fold, accuracy in zip(rows, side, strict=True)
            ]
            for side in accuracies.T
        ]
        found.append(paired_test(*drawn, rows, n - n / n_splits).p_value)
    assert np.mean(np.array(found) < 0.05) < 0.08


def test_order_and_numbers_of_rows_do_not_matter():
    rng = np.random.default_rng(0)
    rows, units = folds_of(rng, n_repeats=2), rng.integers(20, size=60)
    a, b = rng.normal(size=(2, 10, 12))
    test = paired_test(list(a), list(b), rows, 48, units)
    shuffle, number = [rng.permutation(12) for _ in rows], rng.permutation(60)
    moved = paired_test(
        *([d[order] for d, order in zip(side, shuffle, strict=True)] for side in (a, b)),
        [number[fold[order]] for fold, order in zip(rows, shuffle, strict=True)],
        48,
        units[np.argsort(number)] + 7,
    )
    assert (moved.difference, moved.standard_error) == pytest.approx(
        (test.difference, test.standard_error)
    )
    own = paired_test(list(a), list(b), rows, 48, np.arange(60))
    assert own == paired_test(list(a), list(b), rows, 48)


def test_rows_that_agree_by_chance_prove_nothing():
    ones, rows = [np.ones(10)] * 2, [np.arange(10), np.arange(10, 20)]
    assert paired_test(ones, ones, rows, 10).p_value == 1
    contributions = np.random.default_rng(0).normal(size=(2, 10))
    # rounding
    assert paired_test(list(contributions + 1e-12), list(contributions), rows, 10).p_value > 0.99
    one_row = [np.arange(10) < 1.0, np.zeros(10)]
    assert paired_test(one_row, [np.zeros(10)] * 2, rows, 10).p_value > 0.3


@pytest.mark.parametrize("n_splits", [1, 5])
def test_level_under_no_difference(n_splits):
    """Accuracies of .8, the hits of two learners correlated; no training rows are shared, so factor
    1 would do.
    """
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(500):
        rows = folds_of(rng, 200, n_splits)
        easy = rng.random(200) < 0.5
        a, b = (np.where(easy, 1.0, rng.random(200) < 0.6) for _ in range(2))
        p_values.append(
            paired_test([a[f] for f in rows], [b[f] for f in rows], rows, np.inf).p_value
        )
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.07


def test_the_detectable_difference_is_detected_four_times_out_of_five():
    error, dof, n_comparisons = 0.02, 30, 16
    shift = detectable_difference(error, dof, n_comparisons) / error
    assert nct.sf(t.isf(0.05 / 32, dof), dof, shift) == pytest.approx(0.8, abs=0.02)


class TestRatio:
    """The interval of a ratio of two mean scores of the same queries."""

    @staticmethod
    def scores(n=200, seed=0, kept=0.5):
        """Return scores of hits among ten, in the mean .6 for the baseline and `kept` of that."""
        rng = np.random.default_rng(seed)
        ease = rng.beta(3, 2, n)
        b = rng.binomial(10, ease) / 10
        return b - 0.6 * (1 - kept) + 0.1 * rng.normal(size=n), b

    def test_has_the_ratios_that_the_test_of_the_rows_does_not_reject(self):
        a, b = self.scores()
        rows, units = [np.arange(200)], np.arange(200) // 3
        ends = ratio_interval([a], [b], rows, 300, units)
        assert ends[0] < a.mean() / b.mean() < ends[1]
        for k in ends:
            test = paired_test_by_rows([a], [k * b], rows, 300, units)
            assert test.p_value == pytest.approx(0.05, abs=1e-6)

    @pytest.mark.long
    @pytest.mark.parametrize("kept", [0.5, 0.95])
    def test_has_the_true_ratio_in_its_share_of_draws(self, kept):
        rows, inside, of_known = [np.arange(60)], [], []
        for seed in range(800):
            a, b = self.scores(60, seed, kept)
            low, high = ratio_interval([a], [b], rows, np.inf)
            inside.append(low <= kept <= high)
            low, high = paired_test_by_rows([a], [b], rows, np.inf).interval()
            of_known.append(low <= (kept - 1) * b.mean() <= high)
        assert np.mean(inside) == pytest.approx(0.95, abs=2 * (0.05 * 0.95 / 800) ** 0.5)
        assert kept > 0.9 or np.mean(of_known) < 0.9  # as if the baseline's score were known

    def test_is_that_of_a_bootstrap(self):
        a, b = self.scores()
        rng = np.random.default_rng(0)
        draws = rng.integers(200, size=(4000, 200))
        ratios = a[draws].mean(axis=1) / b[draws].mean(axis=1)
        found = ratio_interval([a], [b], [np.arange(200)], np.inf)
        assert found == pytest.approx(np.quantile(ratios, [0.025, 0.975]), abs=0.005)

    def test_is_unbounded_where_the_baseline_may_be_zero(self):
        a, b = np.random.default_rng(0).normal(size=(2, 50))
        assert ratio_interval([a], [b], [np.arange(50)], 50) == (-np.inf, np.inf)
        one_unit = np.zeros(50, dtype=int)
        assert ratio_interval([a], [b + 9], [np.arange(50)], 50, one_unit) == (-np.inf, np.inf)

    def test_of_equal_scores_is_one(self):
        b = self.scores()[1]
        assert ratio_interval([b], [b], [np.arange(200)], 200) == pytest.approx((1, 1), abs=0.01)


def test_a_sequence_of_tests_stops_where_one_fails():
    ways = [Way(name, 1) for name in "abcd"]
    tests = [PairedTest(d, 1.0, 1000, 5) for d in (3.0, 5.0, 1.0, 9.0)]
    p = list(in_sequence(dict(zip(ways, tests, strict=True))).values())
    assert p[0] == p[1] == tests[0].p_value < 0.05 < p[2] == p[3]


def test_sequences_share_the_level():
    def tests(*p_values):
        return {p: PairedTest(1.0, 1 / t.isf(p / 2, 20), 20, 5) for p in p_values}

    by_hand = {0.01: 0.02, 0.015: 0.02, 0.03: 0.03}  # the first leaves its half to the others
    assert in_sequence(tests(0.01), tests(0.015, 0.03)) == pytest.approx(by_hand)
    by_hand = {0.02: 0.04, 0.021: 0.042, 0.2: 0.2}  # which pass theirs on to the end
    assert in_sequence(tests(0.2), tests(0.02, 0.021)) == pytest.approx(by_hand)
    single = (0.04, 0.001, 0.02, 0.6)  # sequences of one test each: Holm's method
    found = in_sequence(*(tests(p) for p in single))
    assert [found[p] for p in single] == pytest.approx(holm(single))
    worse = PairedTest(-1.0, 0.1, 20, 5)
    found = in_sequence({"worse": worse}, tests(0.01))
    assert (found["worse"], found[0.01]) == (worse.p_value, pytest.approx(0.02))


def test_shares_of_the_level_need_not_be_equal():
    def tests(*p_values):
        return {p: PairedTest(1.0, 1 / t.isf(p / 2, 20), 20, 5) for p in p_values}

    one, *others = (tests(p) for p in (0.02, 0.6, 0.01))
    by_hand = {0.02: 0.04, 0.01: 0.04, 0.6: 0.6}  # the first has half of the level
    assert in_sequence(one, *others, shares=(1, 0.5, 0.5)) == pytest.approx(by_hand)
    assert in_sequence(one, *others) == in_sequence(one, *others, shares=(2, 2, 2))


@pytest.mark.slow
def test_sequences_with_shares_keep_the_level():
    """Under no difference, correlated tests show one in at most 5 % of all draws."""
    rng, shown = np.random.default_rng(0), 0
    for _ in range(500):
        z = np.sqrt(0.5) * (rng.normal() + rng.normal(size=7))
        tests = [PairedTest(d, 1.0, 10_000, 5) for d in z]
        sequences = ({i: tests[i] for i in places} for places in ([0], [1, 2, 3], [4, 5, 6]))
        found = in_sequence(*sequences, shares=(0.5, 0.5, 1))
        shown += any(found[i] < 0.05 and z[i] > 0 for i in range(7))
    assert shown / 500 < 0.05


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
