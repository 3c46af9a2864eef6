"""Matcher: what is promised of a threshold, and kept on new rows; probabilities; decisions on pairs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import expit
from scipy.stats import beta
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, f1_score, precision_score

from nearkin import NCA, EmbeddingAdapter, Matcher
from nearkin._blocks import unit_rows
from nearkin.vectors.judgements import SEEN, UNSEEN, Labels
from nearkin.vectors.matching import (
    OF_PAIRS,
    BestMatches,
    Calibration,
    HeldOutLists,
    MatchRules,
    PrecisionCurve,
    ScoredMatches,
    Space,
    fallback_bound,
    precision_bound,
    share_interval,
)


def planted(n_classes=20, each=30, p=8, noise=0.17, seed=0):
    """Return rows about the centres of classes, and these classes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), each)
    centres = unit_rows(rng.normal(size=(n_classes, p)))
    return centres[y] + noise * rng.normal(size=(len(y), p)), y


def scored(scores, right, units=None):
    n = len(scores)
    units = np.arange(n) if units is None else units
    return ScoredMatches(scores, right, np.ones(n, dtype=bool), np.ones(n), units)


@pytest.fixture(scope="module")
def rows():
    return planted()


@pytest.fixture(scope="module")
def matcher(rows):
    return Matcher().fit(*rows)


class TestBound:
    def test_is_that_of_clopper_and_pearson_for_independent_matches(self):
        right = np.arange(2000) >= 60
        P, bound = precision_bound(scored(np.ones(2000), right), np.ones(2000, dtype=bool))
        assert P == 0.97
        assert bound == pytest.approx(beta.ppf(0.05, 1940, 61), abs=1e-4)

    def test_copies_of_a_match_in_its_unit_tell_nothing_new(self):
        rng = np.random.default_rng(0)
        right, units = rng.random(300) < 0.9, np.arange(300)
        once = precision_bound(scored(np.ones(300), right), np.ones(300, dtype=bool))
        matches = scored(np.ones(1500), np.tile(right, 5), np.tile(units, 5))
        assert precision_bound(matches, np.ones(1500, dtype=bool)) == pytest.approx(once)

    def test_groups_that_are_wrong_together_leave_it_lower(self):
        right = np.repeat(np.arange(40) >= 4, 25)
        every = np.ones(1000, dtype=bool)
        alone = precision_bound(scored(np.ones(1000), right), every)[1]
        grouped = precision_bound(
            scored(np.ones(1000), right, np.repeat(np.arange(40), 25)), every
        )[1]
        assert grouped < alone - 0.03

    def test_a_wrong_match_that_was_not_met_may_be_a_heavy_one(self):
        right = np.arange(220) < 200
        accepted = right
        light = ScoredMatches(np.ones(220), right, right, np.ones(220), np.arange(220))
        heavy = ScoredMatches(np.ones(220), right, right, np.where(right, 1.0, 3), np.arange(220))
        assert precision_bound(light, accepted)[1] == pytest.approx(0.05 ** (1 / 200))
        assert precision_bound(heavy, accepted)[1] == pytest.approx(0.05 ** (3 / 200))

    @pytest.mark.parametrize("n_groups", [8, 20])
    def test_a_few_groups_without_an_error_do_not_show_that_there_is_none(self, n_groups):
        rng = np.random.default_rng(0)
        held = []
        for _ in range(200):  # one group in ten is right in three of ten cases: 93 % in all
            bad = np.repeat(rng.random(n_groups) < 0.1, 40)
            right = rng.random(len(bad)) < np.where(bad, 0.3, 1)
            units = np.repeat(np.arange(n_groups), 40)
            bound = precision_bound(scored(np.ones(len(bad)), right, units), right | ~right)[1]
            held.append(bound <= 0.93)
        assert np.mean(held) >= 0.95

    def test_matches_that_are_all_wrong_promise_nothing(self):
        found = precision_bound(scored(np.ones(50), np.zeros(50, bool)), np.ones(50, dtype=bool))
        assert found == (0, 0)

    @pytest.mark.parametrize("n", [1, 19])
    def test_few_matches_promise_nothing(self, n):
        assert precision_bound(scored(np.ones(n), np.ones(n, dtype=bool)), np.arange(n) >= 0) == (
            1,
            0,
        )

    def test_holds_for_its_share_of_draws(self):
        rng = np.random.default_rng(0)
        held = [
            precision_bound(scored(np.ones(400), rng.random(400) < 0.93), np.arange(400) >= 0)[1]
            <= 0.93
            for _ in range(400)
        ]
        assert np.mean(held) >= 0.95 - 2 * (0.05 * 0.95 / 400) ** 0.5


class TestCalibration:
    def test_finds_a_logistic_function(self):
        rng = np.random.default_rng(0)
        s = rng.normal(size=4000)
        found = Calibration.fitted(scored(s, rng.random(4000) < expit(2 * s - 1)))
        assert np.abs(found(s) - expit(2 * s - 1)).max() < 0.05

    def test_takes_isotonic_regression_for_steps(self):
        rng = np.random.default_rng(0)
        s = rng.uniform(size=4000)
        truth = np.select([s < 0.3, s < 0.9], [0.1, 0.6], 0.95)
        found = Calibration.fitted(scored(s, rng.random(4000) < truth))
        assert found.knots.shape[1] > 2
        assert np.abs(found(s) - truth).mean() < 0.03

    def test_does_not_fall_with_the_score_and_is_never_certain(self):
        s = np.linspace(-1, 1, 50)
        p = Calibration.fitted(scored(s, s > 0))(np.linspace(-3, 3, 200))
        assert (np.diff(p) >= 0).all()
        assert p.min() >= 0
        assert Calibration.fitted(scored(s, np.ones(50, dtype=bool)))(s).max() < 1

    @pytest.mark.slow_after(6)
    @pytest.mark.parametrize("seed", range(12))
    def test_falls_to_no_match_below_what_was_seen(self, seed):
        rng = np.random.default_rng(seed)
        n, scale, origin = rng.integers(20, 400), 10.0 ** rng.integers(-4, 4), rng.normal()
        s = scale * (rng.normal(size=n) + 10 * origin)
        trend = [0, 0, 0, 1, 4, -2][seed % 6]  # none, for half of the seeds, or even a wrong one
        right = rng.random(n) < expit(rng.uniform(0, 5) + trend * (s - s.mean()) / s.std())
        right |= seed % 3 == 0
        found = Calibration.fitted(scored(s, right))
        wide = s.mean() + s.std() * np.linspace(-60, 20, 801)
        assert (np.diff(found(wide)) >= 0).all()
        assert found(wide)[0] < 1e-9
        assert (found(s.min() - s.std() * np.arange(9)) <= found(s.min())).all()
        least = found.lowest_score(0.5)
        np.testing.assert_array_equal(found(wide) >= 0.5, wide >= least)
        assert not np.isfinite(least) or found(least) == pytest.approx(0.5)


def share_of_broken_promises(n, draws, precision, errors):
    """Return in how many draws of n matches a threshold is promised that is too low; errors gives
    the probability of a wrong match by the share of better ones.
    """
    rng = np.random.default_rng(0)
    rank = (np.arange(n) + 0.5) / n
    wrong = errors(rank)
    truth = 1 - np.cumsum(wrong) / np.arange(1, n + 1)
    broken = 0
    for _ in range(draws):
        curve = PrecisionCurve.of(scored(-rank, rng.random(n) >= wrong))
        if found := curve.promise(precision):
            broken += truth[np.count_nonzero(-rank >= found.threshold) - 1] < precision
    return broken / draws


class TestFallback:
    def test_is_that_of_tests_from_the_highest_threshold_downwards(self):
        rng = np.random.default_rng(0)
        starts = np.array([0, 11, 20])
        for _ in range(20):
            pointwise = np.sort(rng.uniform(0.5, 1, (3, 30)), axis=0)
            levels = np.unique(pointwise)
            passed = np.zeros((len(levels), 30), dtype=bool)
            for of_level, precision in zip(passed, levels, strict=True):
                n_shares = 0
                for i in range(29, -1, -1):
                    n_shares += i in starts
                    of_level[i] = n_shares and pointwise[n_shares - 1, i] >= precision
                    n_shares *= of_level[i]
            largest = [levels[of_one].max(initial=0) for of_one in passed.T]
            np.testing.assert_array_equal(fallback_bound(pointwise, starts), largest)

    def test_a_failure_ends_the_tests_until_the_next_start(self):
        pointwise = np.full((2, 5), 0.9)
        pointwise[:, 3] = 0.5
        found = fallback_bound(pointwise, np.array([1, 4]))
        np.testing.assert_array_equal(found, [0.9, 0.9, 0.5, 0.5, 0.9])

    def test_what_is_passed_is_handed_on(self):
        found = fallback_bound(np.array([[0.95] * 3, [0.99] * 3]), np.array([0, 2]))
        np.testing.assert_array_equal(found, [0.95] * 3)
        found = fallback_bound(np.array([[0.8, 0.95, 0.95], [0.9] * 3]), np.array([0, 2]))
        np.testing.assert_array_equal(found, [0.9, 0.95, 0.95])

    @pytest.mark.long
    def test_few_queries_are_promised_what_most_of_them_show(self):
        """Where the unanswerable ones are below half of the others, no test has to count them."""

        def drawn(rng, n=62, n_unanswerable=41):
            every = np.arange(n + n_unanswerable)
            right = (every < n) & (rng.random(len(every)) < 0.93)
            scores = rng.normal(np.where(right, 3.5, 0))
            return ScoredMatches(scores, right, every < n, np.ones(len(every)), every)

        rng = np.random.default_rng(0)
        new = drawn(rng, 60_000, 40_000)
        found = [PrecisionCurve.of(drawn(rng)).promise(0.8) for _ in range(60)]
        given = [one for one in found if one]
        broken = [new.right[new.scores >= one.threshold].mean() < 0.8 for one in given]
        assert len(given) > 50
        assert np.mean(broken) <= 0.05

    def test_a_perfect_record_passes_as_soon_as_there_are_enough(self):
        for n, is_promised in ((62, False), (63, True)):  # 0.95^63 < 0.04
            curve = PrecisionCurve.of(scored(np.arange(n) / n, np.ones(n, dtype=bool)))
            promise = curve.promise(0.95)
            assert (promise is not None) == is_promised
        assert promise.threshold == 0

    def test_an_error_among_the_first_does_not_end_the_tests(self):
        n = 400
        right = np.arange(n) >= 100  # the lower quarter is wrong
        right[-5] = False
        promise = PrecisionCurve.of(scored(np.arange(n) / n, right)).promise(0.95)
        assert 0.2 < promise.threshold < 0.3

    def test_certain_matches_of_a_tenth_of_the_queries_suffice(self):
        n = 2400
        right = (np.arange(n) >= 0.9 * n) | (np.arange(n) % 3 == 0)
        promise = PrecisionCurve.of(scored(np.arange(n) / n, right)).promise(0.95)
        assert 0.85 < promise.threshold < 0.95

    def test_errors_that_do_not_depend_on_the_score_do_not_either(self):
        right = np.arange(1000) % 20 != 19
        promise = PrecisionCurve.of(scored(np.arange(1000) / 1000, right)).promise(0.9)
        assert promise.threshold == 0

    @pytest.mark.long
    def test_the_choice_of_a_threshold_is_counted_in(self):
        # just below a half everywhere: every promise is broken
        share = share_of_broken_promises(200, 50, 0.5, lambda rank: np.full(200, 0.501))
        assert share <= 0.05 + 2 * (0.05 * 0.95 / 50) ** 0.5

    @pytest.mark.long
    @pytest.mark.parametrize("power", [0, 1, 3])
    def test_of_many_thresholds_too(self, power):
        most = 0.101 if power == 0 else 0.3
        share = share_of_broken_promises(
            480, 300, 0.9, lambda rank: most * (1 + power) * rank**power / (1 + power)
        )
        assert share <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


def searched(rng, n_queries, n_candidates, n_more=0):
    """Return matches of queries, each with a right row and many wrong ones; half have no right row.

    Some queries are hard: the best of their n wrong rows is near. Of more rows, the best is nearer.
    """
    is_hard = rng.random(n_queries) < 0.2
    best = rng.gumbel(np.log(n_candidates) + 2 * is_hard)
    if n_more:
        best = np.maximum(best, rng.gumbel(np.log(n_more) + 2 * is_hard))
    right = np.where(np.arange(n_queries) < n_queries // 2, rng.normal(14, 3, n_queries), -np.inf)
    answerable = np.isfinite(right)
    every = np.arange(n_queries)
    return ScoredMatches(
        np.maximum(best, right), right > best, answerable, np.ones(n_queries), every
    )


class TestGrowth:
    """A promise in an index of more rows than the held-out queries searched."""

    curve = PrecisionCurve.of(searched(np.random.default_rng(0), 2000, 1000))

    @pytest.mark.parametrize("precision", [0.6, 0.9, 0.95])
    def test_in_an_index_of_the_same_size_it_is_the_same(self, precision):
        curve = self.curve
        plain = curve.promise(precision)
        assert plain == curve.promise(precision, 1.0)
        assert plain.is_kept
        first = np.flatnonzero(curve.bound >= precision)[0]
        assert (plain.threshold, plain.bound) == (curve.thresholds[first], curve.bound[first])

    def test_the_larger_the_index_the_higher_the_threshold_until_nothing_is_promised(self):
        curve = self.curve
        found = [curve.promise(0.9, growth) for growth in np.geomspace(1, 100, 30)]
        thresholds = [one.threshold for one in found]
        assert thresholds == sorted(thresholds)
        assert len(set(thresholds)) > 2
        bounds = [one.bound for one in found if not one.is_kept]
        assert bounds == sorted(bounds, reverse=True)
        assert 0 < len(bounds) < 30
        assert min(bounds) == 0
        assert curve.promise(0.9999, 100) is None  # refused in any index

    @pytest.mark.parametrize("growth", [1.5, 3, 10])
    def test_wrong_matches_are_at_most_so_many_times_as_likely(self, growth):
        rng = np.random.default_rng(0)
        before = searched(rng, 400_000, 1000)
        after = searched(rng, 400_000, 1000, round(1000 * (growth - 1)))
        for threshold in (6, 8, 10):
            wrong, more = (1 - one.right[one.scores >= threshold].mean() for one in (before, after))
            assert wrong < more < growth * wrong

    @pytest.mark.long
    def test_a_promise_is_broken_in_few_draws(self):
        rng, sizes = np.random.default_rng(0), (1, 1.5, 3, 10)
        indices = {r: searched(rng, 200_000, 1000, round(1000 * (r - 1))) for r in sizes}
        broken, uncorrected = np.zeros((2, len(sizes)))
        for _ in range(60):
            curve = PrecisionCurve.of(searched(rng, 1000, 1000))
            for i, (growth, new) in enumerate(indices.items()):
                for found, counts in (
                    (curve.promise(0.9, growth), broken),
                    (curve.promise(0.9), uncorrected),
                ):
                    if found is not None and found.is_kept:
                        counts[i] += new.right[new.scores >= found.threshold].mean() < 0.9
        assert broken.max() / 60 <= 0.05 + 2 * (0.05 * 0.95 / 60) ** 0.5
        assert uncorrected[2:].min() / 60 > 0.9

    def test_a_matcher_counts_the_rows_of_the_index(self, rows, matcher):
        X = rows[0]
        rules = matcher.list_rules_
        n = rules.every.n_candidates
        assert n == len(X)
        same = matcher.best_match(X[:40], X, precision=0.8)
        few = matcher.best_match(X[:40], X[: n - 40], precision=0.8)
        np.testing.assert_array_equal(same.probabilities, few.probabilities[: len(X)])
        with pytest.warns(UserWarning, match=r"not promised in an index of 60,000 rows: .* 600"):
            many = matcher.best_match(X[:40], np.tile(X, (100, 1)), precision=0.8)
        found = rules.promises(0.8, 100 * n)
        assert not any(one.is_kept for one in found.values())
        strictest = {part: rule.curve for part, rule in rules.parts.items()}
        for part, curve in strictest.items():
            assert found[part].threshold == curve.thresholds[np.argmax(curve.bound)]
        assert not ((many.rows >= 0) & (same.rows < 0)).any()

    def test_the_odds_of_a_wrong_match_grow_with_the_index(self, matcher):
        rules, n = matcher.list_rules_, matcher.list_rules_.every.n_candidates
        features = np.random.default_rng(0).uniform(0.3, 1, (50, 6))
        p = rules.probability(features)
        np.testing.assert_array_equal(p, rules.probability(features, n))
        np.testing.assert_array_equal(p, rules.probability(features, n // 2))
        q = rules.probability(features, 3 * n)
        np.testing.assert_allclose((1 - q) / q, 3 * (1 - p) / p)

    def test_rules_that_do_not_know_their_index_take_any(self, matcher):
        arrays = matcher.list_rules_.to_arrays()
        old = {name: array for name, array in arrays.items() if "n_candidates" not in name}
        rules = MatchRules.from_arrays(old)
        assert rules.every.n_candidates == 0
        assert rules.promises(0.8, 10**6) == matcher.list_rules_.promises(0.8)


class TestExpected:
    def test_rules_of_some_classes_are_those_of_their_part(self, matcher):
        every = matcher.pair_rules_
        assert every.expecting("both") is every
        for expect, part in (("known", SEEN), ("new", UNSEEN)):
            rules = every.expecting(expect)
            assert rules.parts == {part: every.parts[part]}
            assert rules.every is every.parts[part]
        assert every.threshold(0.75) == max(
            every.expecting(expect).threshold(0.75) for expect in ("known", "new")
        )

    @pytest.mark.slow
    def test_a_matcher_for_some_classes_has_the_rules_of_one_for_both(self, rows, matcher):
        known = Matcher(expect="known").fit(*rows).list_rules_
        arrays = matcher.list_rules_.expecting("known").to_arrays()
        for name, array in known.to_arrays().items():
            np.testing.assert_array_equal(array, arrays[name])

    def test_classes_that_were_not_held_out_have_no_rules(self, matcher):
        rules = matcher.pair_rules_
        with pytest.raises(ValueError, match="expect='new' holds out classes"):
            rules.expecting("known").expecting("new")
        with pytest.raises(ValueError, match="expect='known' has no rules"):
            rules.expecting("new").expecting("known")


class TestRecall:
    def test_has_an_interval_that_holds_for_its_share_of_draws(self):
        rng = np.random.default_rng(0)
        held = []
        for _ in range(300):  # groups of four that are found or not; 60 % in all
            found = np.repeat(rng.random(100) < 0.6, 4)
            low, high = share_interval(found, np.arange(400) // 4)
            held.append(low <= 0.6 <= high)
            assert low <= found.mean() <= high
        assert np.mean(held) >= 0.95 - 2 * (0.05 * 0.95 / 300) ** 0.5

    def test_is_within_its_interval_at_every_threshold(self, matcher):
        for rule in matcher.list_rules_.parts.values():
            curve = rule.curve
            assert (curve.recall_low <= curve.recall).all()
            assert (curve.recall <= curve.recall_high).all()


class TestPromise:
    def test_is_the_lowest_threshold_that_keeps_it(self):
        rng = np.random.default_rng(0)
        s = rng.uniform(size=3000)
        curve = PrecisionCurve.of(scored(s, rng.random(3000) < 0.6 + 0.4 * s))
        found = curve.promise(0.9)
        assert found.bound >= 0.9
        assert (curve.bound[curve.thresholds < found.threshold] < 0.9).all()
        accepted = s >= found.threshold
        assert found.recall <= accepted.mean()
        assert curve.promise(0.999) is None

    @pytest.mark.long
    def test_what_cannot_be_promised_is_refused_with_what_can(self, matcher):
        with pytest.raises(ValueError, match=r"precision=0.9999 cannot be promised for seen .*by"):
            matcher.threshold(0.9999)
        with pytest.raises(ValueError, match="precision must be above 0 and at most 1"):
            matcher.threshold(1.5)

    @pytest.mark.long
    def test_more_precision_takes_a_higher_threshold(self, matcher):
        assert matcher.threshold(0.75) <= matcher.threshold(0.8) <= matcher.threshold(0.85)

    @pytest.mark.long
    def test_queries_without_an_answer_raise_the_threshold(self, rows, matcher):
        mixed = Matcher(unanswerable=0.4).fit(*rows)
        assert mixed.threshold(0.7) > matcher.threshold(0.7)
        X = rows[0][:50]
        Y = rows[0][50:100]
        assert (mixed.match_probability(X, Y) <= matcher.match_probability(X, Y) + 0.02).all()

    @pytest.mark.long
    def test_both_keep_the_promise_for_known_and_for_new_classes(self, rows, matcher):
        known, new = (Matcher(expect=expect).fit(*rows) for expect in ("known", "new"))
        assert matcher.threshold(0.8) == max(known.threshold(0.8), new.threshold(0.8))

    @pytest.mark.long
    def test_is_kept_on_new_rows(self):
        kept, tried = 0, 0
        for seed in range(20):
            X, y = planted(n_classes=12, each=120, p=12, noise=0.2, seed=seed)
            order = np.random.default_rng(seed).permutation(len(y))
            learned, new = order[:700], order[700:]
            matcher = Matcher(expect="known", random_state=seed).fit(X[learned], y[learned])
            try:
                found = matcher.best_match(X[new], X[learned], precision=0.95)
            except ValueError:
                continue
            has = found.rows >= 0
            tried += 1
            kept += (y[learned][found.rows] == y[new])[has].mean() >= 0.95
        assert tried >= 15
        assert kept >= 0.9 * tried


class TestFarPairs:
    """Pairs that are less alike than all matches of held-out queries."""

    @pytest.mark.long
    @pytest.mark.parametrize("expect", ["known", "new", "both"])
    @pytest.mark.parametrize("metric", ["cosine", "euclidean"])
    def test_do_not_match(self, expect, metric):
        X, y = planted(n_classes=12, each=8, p=30, noise=0.02)  # the best matches are all right
        matcher = Matcher(metric=metric, expect=expect).fit(X, y)
        rng = np.random.default_rng(1)
        assert matcher.match_probability(X, np.roll(X, 48, axis=0)).max() < 0.01
        for far in (-X, -3 * X, rng.normal(size=X.shape)):
            assert matcher.match_probability(X, far).max() < 0.01
            assert matcher.best_match(far, X, precision=0.5).probabilities.max() < 0.5
        steps = np.linspace(0, 1, 41)
        for i, j in rng.integers(len(y), size=(20, 2)):
            pairs = np.stack([np.tile(X[i], (41, 1)), X[i] + steps[:, None] * (X[j] - X[i])], 1)
            p = matcher.match_probability(pairs[:, 0], pairs[:, 1])
            np.testing.assert_array_equal(matcher.predict(pairs) == 1, p >= 0.5)
            order = np.argsort(matcher.decision_function(pairs))
            assert (np.diff(p[order]) >= 0).all()

    @pytest.mark.long
    def test_in_a_learned_space(self):
        X, y = load_iris(return_X_y=True)
        matcher = Matcher(FrozenEstimator(NCA(2, alpha=0.1).fit(X, y))).fit(X, y)
        assert matcher.match_probability(X[:50], X[100:]).max() < 0.01
        assert (matcher.predict(np.stack([X[:50], X[100:]], axis=1)) == -1).all()

    @pytest.mark.long
    def test_agree_with_predict_where_no_match_is_likely(self):
        X = np.random.default_rng(0).normal(size=(160, 8))
        matcher = Matcher().fit(X, np.repeat(np.arange(40), 4))
        assert (matcher.match_probability(X, X) < 0.5).all()
        assert (matcher.predict(np.stack([X, X], axis=1)) == -1).all()


def copied(X, n_copies, noise=1e-3, seed=0):
    """Return near copies of rows."""
    X = np.repeat(X, n_copies, axis=0)
    return X + noise * np.random.default_rng(seed).normal(size=X.shape)


class TestGroups:
    """Near copies and rows of given groups are held out together."""

    @pytest.fixture
    def items(self):
        return planted(n_classes=10, each=20, noise=0.2)

    @pytest.mark.long
    def test_near_copies_do_not_raise_what_is_promised(self, items):
        X, y = items
        once = Matcher(expect="known").fit(X, y)
        often = Matcher(expect="known").fit(copied(X, 3), y.repeat(3))
        most = {
            name: matcher.list_rules_.parts[SEEN].curve.bound.max()
            for name, matcher in (("once", once), ("often", often))
        }
        assert 0.6 < most["once"] < 0.95
        assert most["often"] == pytest.approx(most["once"], abs=0.05)

    @pytest.mark.long
    def test_nor_do_rows_of_given_groups(self, items):
        X, y = items
        X, y = copied(X, 3, noise=0.05), y.repeat(3)  # too different to be found as copies
        names = np.repeat([f"item {i}" for i in range(200)], 3)
        alone, together = (
            Matcher(expect="known").fit(X, y, groups=groups).list_rules_.every.curve.expected[0]
            for groups in (None, names)
        )
        assert alone > 0.97
        assert together < 0.93

    @pytest.mark.parametrize("metric", ["cosine", "euclidean"])
    def test_are_the_near_copies_joined_with_those_given(self, items, metric, monkeypatch):
        X = copied(items[0][:50], 2)
        copies = np.arange(50).repeat(2)
        given = np.arange(100) // 2 % 2 * 100 + np.arange(100) // 4  # pairs of copies, or single
        monkeypatch.setattr(Matcher, "_calibrate", lambda self, judgements: judgements)
        matcher = Matcher(metric=metric)
        pairs, relevant = np.array([[0, 10]]), np.column_stack([np.arange(100)] * 2)

        def same(groups):
            return groups[:, None] == groups

        for groups in (None, given):
            expected = same(copies) if groups is None else same(copies) | same(given)
            y = np.arange(100) // 20
            for found in (
                matcher.fit(X, y, groups=groups),
                matcher.fit_relevance(X, X, relevant, groups=groups),
            ):
                np.testing.assert_array_equal(same(found.groups), expected)
            joined = matcher.fit_pairs(X, pairs, groups=groups).groups
            assert joined[0] == joined[1] == joined[10] == joined[11]
            assert not (expected & ~same(joined)).any()

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ([0, 1], "inconsistent numbers of samples"),
            ([None] + [1] * 599, "groups has missing values: give every row a group"),
        ],
    )
    def test_that_are_not_those_of_the_rows(self, rows, groups, message):
        with pytest.raises(ValueError, match=message):
            Matcher().fit(*rows, groups=groups)

    def test_of_pairs_need_numbers_of_rows(self, rows):
        X = rows[0]
        with pytest.raises(ValueError, match="groups are of rows: give X"):
            Matcher().fit_pairs(np.stack([X[:-1], X[1:]], axis=1), groups=np.arange(599))

    @pytest.mark.long
    def test_promises_are_kept_in_spite_of_copies(self):
        rng, tried = np.random.default_rng(0), 0
        for seed in range(12):
            X, y = planted(n_classes=12, each=160, p=12, noise=0.2, seed=seed)
            learned = rng.permutation(len(y))[:700]
            new = np.setdiff1d(np.arange(len(y)), learned)
            index, classes = copied(X[learned], 3, seed=seed), y[learned].repeat(3)
            matcher = Matcher(expect="known", random_state=seed).fit(index, classes)
            try:
                found = matcher.best_match(X[new], index, precision=0.95)
            except ValueError:
                continue
            has, tried = found.rows >= 0, tried + 1
            assert (classes[found.rows] == y[new])[has].mean() >= 0.945
        assert tried >= 9


class TestMatches:
    @pytest.mark.long
    def test_probabilities_are_those_of_new_queries(self, rows):
        X, y = planted(each=60, seed=1)
        learned = np.arange(len(y)) % 2 == 0
        matcher = Matcher().fit(X[learned], y[learned])
        found = matcher.best_match(X[~learned], X[learned], precision=0.5)
        right = y[learned][found.rows] == y[~learned]
        assert found.probabilities.mean() == pytest.approx(right.mean(), abs=0.04)
        likely = found.probabilities > np.median(found.probabilities)
        for half in (likely, ~likely):
            assert found.probabilities[half].mean() == pytest.approx(right[half].mean(), abs=0.06)

    def test_queries_of_other_classes_have_none(self, rows, matcher):
        X, y = rows
        own = y < 15
        found = matcher.best_match(X[~own], X[own], precision=0.85)
        answered = matcher.best_match(X[::3], np.delete(X, slice(None, None, 3), 0), precision=0.85)
        assert (found.rows == -1).mean() > (answered.rows == -1).mean() + 0.3
        assert found.probabilities.mean() < answered.probabilities.mean()

    def test_an_index_of_fewer_than_ten_rows(self, rows, matcher):
        found = matcher.best_match(rows[0][:5], rows[0][5:8], precision=0.5)
        assert found.rows.shape == found.similarities.shape == (5,)
        assert set(found.rows) <= {-1, 0, 1, 2}

    def test_rows_among_themselves_are_not_their_own_match(self, rows, matcher):
        X = np.concatenate([rows[0], rows[0][:10]])
        found = matcher.best_match(X, precision=0.5)
        assert (found.rows != np.arange(len(X))).all()
        assert (found.rows[-10:] == np.arange(10)).all()
        np.testing.assert_allclose(found.similarities[-10:], 1)

    def test_rows_of_zeros_have_no_match(self, rows, matcher):
        X = np.concatenate([np.zeros((2, 8)), rows[0]])
        found = matcher.best_match(X, precision=0.5)
        assert (found.rows[:2] == -1).all()
        assert (found.similarities[:2] == 0).all()
        assert not np.isin(found.rows, [0, 1]).any()

    def test_does_not_depend_on_the_order_of_index_or_queries(self, rows, matcher):
        X, order = rows[0], np.random.default_rng(0).permutation(200)
        found = matcher.best_match(X[200:], X[:200], precision=0.8)
        moved = matcher.best_match(X[200:][::-1], X[:200][order], precision=0.8)
        place = np.append(order, -1)
        np.testing.assert_array_equal(place[moved.rows][::-1], found.rows)
        np.testing.assert_allclose(moved.probabilities[::-1], found.probabilities)

    @pytest.mark.long
    def test_single_precision(self, rows, matcher):
        X, y = rows
        single = Matcher().fit(X.astype(np.float32), y)
        np.testing.assert_allclose(single.threshold(0.8), matcher.threshold(0.8), atol=1e-5)


class TestOneToOne:
    """Matches of which every row of the index has at most one."""

    @pytest.fixture(params=range(3))
    def found(self, request):
        rng = np.random.default_rng(request.param)
        rows = np.where(rng.random(60) < 0.2, -1, rng.integers(0, 25, 60))
        tied = np.round(rng.random((2, 60)), 1)  # many equal similarities and probabilities
        return BestMatches(rows, *tied)

    def test_is_the_assignment_of_the_largest_sum_of_probabilities(self, found):
        kept = found.one_to_one().rows
        has = kept >= 0
        assert len(np.unique(kept[has])) == has.sum() == len(np.unique(found.rows[found.rows >= 0]))
        np.testing.assert_array_equal(kept[has], found.rows[has])
        weights = np.zeros((60, 25))
        accepted = np.flatnonzero(found.rows >= 0)
        weights[accepted, found.rows[accepted]] = found.probabilities[accepted]
        best = weights[linear_sum_assignment(weights, maximize=True)].sum()
        assert found.probabilities[has].sum() == pytest.approx(best)

    def test_of_equal_ones_the_most_similar_then_the_first_is_kept(self, found):
        kept = found.one_to_one()
        for row in np.unique(found.rows[found.rows >= 0]):
            several = np.flatnonzero(found.rows == row)
            order = [(-found.probabilities[i], -found.similarities[i], i) for i in several]
            assert np.flatnonzero(kept.rows == row) == min(order)[-1]
        np.testing.assert_array_equal(kept.one_to_one().rows, kept.rows)


class TestLists:
    @pytest.mark.long
    def test_of_unseen_classes_are_those_of_all_their_rows_without_copies_of_the_query(self):
        X, y = planted(n_classes=12, each=8)
        X, y = np.repeat(X, 2, axis=0), y.repeat(2)
        known = Labels(X, y, np.arange(len(y)) // 2)
        splits = list(known.splits(np.random.default_rng(0)))

        def searches():
            for split in splits:
                for part in split.apart():
                    Q, C = X[part.queries], X[part.candidates]
                    yield Space.of(Q, C, Q, C, "cosine"), part

        every = HeldOutLists.of(searches(), known)
        unseen = every.units[UNSEEN] >= 0
        assert unseen.sum() == len(y)
        assert every.answered[:, 0].max() < 1 - 1e-6
        assert np.isfinite(every.unanswered[unseen]).all()
        queries = np.concatenate([part.queries for split in splits for part in split.apart()])
        cosines = unit_rows(X) @ unit_rows(X).T
        cosines[known.groups[:, None] == known.groups] = -np.inf
        nearest = cosines.max(axis=1)[queries[unseen]]
        np.testing.assert_allclose(every.answered[unseen, 0], nearest, rtol=1e-5)
        matcher = Matcher(expect="new").fit(X, y)
        assert matcher.pair_rules_.every.curve.n_queries == len(y)

    def test_queries_without_an_answer_are_of_classes_that_training_has_not_seen(self):
        features = np.arange(36.0).reshape(6, 6)
        units = {SEEN: np.array([0, 1, 2, -1, -1, -1]), UNSEEN: np.array([-1, -1, -1, 3, 3, 4])}
        lists = HeldOutLists(features, -features, np.ones(6, dtype=bool), units, 6)
        known = lists.matches(OF_PAIRS, 0.25, [SEEN])
        np.testing.assert_array_equal(known.scores, [0, 6, 12, -18, -24, -30])
        np.testing.assert_array_equal(known.units, [0, 1, 2, 3, 3, 4])
        answered = known.weights[known.answerable].sum()
        assert known.weights[~known.answerable].sum() == pytest.approx(answered / 3)
        assert not known.right[~known.answerable].any()
        alone = replace(lists, units={SEEN: units[SEEN]}).matches(OF_PAIRS, 0.25, [SEEN])
        np.testing.assert_array_equal(alone.scores, [0, 6, 12, 0, -6, -12])

    def test_units_of_different_parts_are_different(self):
        X, y = planted(n_classes=12, each=8)
        known = Labels(X, y, np.arange(len(y)))
        splits = [part for one in known.splits(np.random.default_rng(0)) for part in one.apart()]
        spaces = [Space.of(X[s.queries], X, X[s.queries], X, "cosine") for s in splits]
        splits = [replace(split, candidates=np.arange(len(y))) for split in splits]
        units = HeldOutLists.of(zip(spaces, splits, strict=True), known).units
        seen, unseen = (units[part][units[part] >= 0] for part in (SEEN, UNSEEN))
        queries = np.concatenate([split.queries for split in splits])
        np.testing.assert_array_equal(seen, queries[units[SEEN] >= 0])
        np.testing.assert_array_equal(unseen, seen.max() + 1 + y[queries[units[UNSEEN] >= 0]])
        assert ((units[SEEN] >= 0) ^ (units[UNSEEN] >= 0)).all()


class TestSpaces:
    @pytest.mark.long
    def test_of_an_adapter(self, rows):
        X, y = rows
        matcher = Matcher(EmbeddingAdapter(4, max_iter=3, start="plda")).fit(X, y)
        cosines = matcher.decision_function(np.stack([X[:-1], X[1:]], axis=1))
        Z = matcher.estimator_.embed(X)
        np.testing.assert_allclose(cosines, np.sum(Z[:-1] * Z[1:], axis=1))

    @pytest.mark.long
    @pytest.mark.filterwarnings("ignore:max_iter=5 iterations")
    def test_of_a_metric(self):
        X, y = planted(n_classes=10, each=10)
        nca = NCA(4, max_iter=5).fit(X, y)
        pairs = np.stack([X[:-1], X[1:]], axis=1)
        frozen = Matcher(FrozenEstimator(nca)).fit(X, y)
        np.testing.assert_allclose(frozen.decision_function(pairs), nca.pair_score(pairs))
        assert frozen.estimator_ is nca
        assert frozen.metric_ == "euclidean"

    @pytest.mark.long
    def test_an_adapter_of_queries_leaves_the_index_as_it_is(self, rows):
        X = rows[0]
        matcher = Matcher(EmbeddingAdapter(side="query", max_iter=2)).fit_pairs(
            X, np.column_stack([np.arange(0, 240, 2), np.arange(1, 240, 2)])
        )
        cosines = matcher.decision_function(np.stack([X[:5], X[5:10]], axis=1))
        Z = matcher.estimator_.embed(X[:5])
        np.testing.assert_allclose(cosines, np.sum(Z * unit_rows(X[5:10]), axis=1))

    @pytest.mark.long
    def test_of_queries_and_documents(self, rows):
        X, y = rows
        judged = np.argwhere(y[::4, None] == y)
        found = Matcher().fit_relevance(X[::4] + 0.01, X, judged)
        assert list(found.pair_rules_.parts) == ["queries"]
        assert found.best_match(X[::4], X, precision=0.8).rows.max() > 0

    def test_rules_that_were_saved_find_the_same(self, rows, matcher):
        rules = [
            type(one).from_arrays(one.to_arrays())
            for one in (matcher.pair_rules_, matcher.list_rules_)
        ]
        again = Matcher.from_rules(None, *rules)
        X = rows[0]
        assert again.threshold_ == matcher.threshold_
        for name in ("rows", "similarities", "probabilities"):
            found, before = (
                getattr(one.best_match(X[:50], X[50:], precision=0.8), name)
                for one in (again, matcher)
            )
            np.testing.assert_array_equal(found, before)

    def test_rules_of_version_0_3_fall_to_no_match_too(self, rows, matcher):
        arrays = matcher.pair_rules_.to_arrays()
        old = {"/logistic": [800.0, -700.0], "/knots": [[0.5, 1.0], [0.99, 0.99]]}
        arrays |= {name: np.array(values) for name, values in old.items()}
        arrays |= {name: a[:4] for name, a in arrays.items() if name.endswith("coefficients")}
        arrays = {name: a for name, a in arrays.items() if "recall_interval" not in name}
        again = Matcher.from_rules(None, MatchRules.from_arrays(arrays), matcher.list_rules_)
        X = rows[0][:20]
        assert (again.match_probability(X, X) == 0.99).all()
        assert again.match_probability(X, -X).max() < 0.01
        assert 0.85 < again.threshold_ < 0.9
        assert np.isnan(again.pair_rules_.promises(0.8)[SEEN].recall_low)


class TestPairs:
    @pytest.fixture
    def pairs(self, rows):
        X, y = rows
        rng = np.random.default_rng(0)
        i, j = rng.integers(len(y), size=(2, 1500))
        kept = (y[i] == y[j]) | (rng.random(1500) < 0.1)
        i, j = i[kept], j[kept]
        return np.stack([X[i], X[j]], axis=1), np.where(y[i] == y[j], 1, -1)

    @pytest.mark.long
    def test_thresholds_are_the_best_of_all(self, pairs):
        P, y = pairs
        matcher = Matcher()  # cosines of rows as they are need no fit
        scores = matcher.decision_function(P)

        def predicted(threshold):
            return np.where(scores >= threshold, 1, -1)

        every = np.append(scores, scores.max() + 1)
        best = max(np.mean(predicted(t) == y) for t in every)
        assert matcher.calibrate_threshold(P, y).predict(P) == pytest.approx(
            predicted(matcher.threshold_)
        )
        assert accuracy_score(y, matcher.predict(P)) == best
        best = max(f1_score(y, predicted(t)) for t in scores)
        found = matcher.calibrate_threshold(P, y, "f_beta").predict(P)
        assert f1_score(y, found) == pytest.approx(best)
        best = max(precision_score(y, predicted(t)) for t in scores)
        found = matcher.calibrate_threshold(P, y, "f_beta", beta=0).predict(P)
        assert precision_score(y, found) == pytest.approx(best)

    @pytest.mark.parametrize(("strategy", "kept"), [("max_tpr", -1), ("max_tnr", 1)])
    def test_a_rate_is_kept_and_the_other_one_large(self, pairs, strategy, kept):
        P, y = pairs
        matcher = Matcher().calibrate_threshold(P, y, strategy, min_rate=0.9)
        right = matcher.predict(P) == y
        assert right[y == kept].mean() >= 0.9
        step = 1e-9 if strategy == "max_tnr" else -1e-9
        moved = np.where(matcher.decision_function(P) >= matcher.threshold_ + step, 1, -1)
        assert (moved == y)[y == kept].mean() <= right[y == kept].mean()

    def test_score_is_the_area_under_the_roc_curve(self, pairs):
        P, y = pairs
        scores = Matcher().decision_function(P)
        wins = scores[y == 1][:, None] - scores[y == -1]
        area = np.mean((wins > 0) + 0.5 * (wins == 0))
        assert Matcher().score(P, y) == pytest.approx(area)

    @pytest.mark.long
    def test_pairs_leave_a_fitted_matcher_as_it_is(self, rows, pairs):
        P, y = pairs
        matcher = Matcher().fit(*rows)
        with pytest.raises(ValueError, match="4 features, but Matcher is expecting 8"):
            matcher.score(P[:, :, :4], y)
        assert matcher.n_features_in_ == 8

    def test_a_threshold_can_be_set(self, pairs):
        P, _ = pairs
        assert (Matcher().set_threshold(-2).predict(P) == 1).all()
        assert (Matcher().set_threshold(2).predict(P) == -1).all()


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"metric": "manhattan"}, "metric must be"),
            ({"expect": "all"}, "expect must be"),
            ({"unanswerable": 1.0}, "unanswerable must be below 1"),
            ({"unanswerable": -0.1}, "unanswerable"),
        ],
    )
    def test_parameters(self, rows, change, message):
        with pytest.raises(ValueError, match=message):
            Matcher(**change).fit(*rows)

    @pytest.mark.long
    def test_few_classes_have_no_new_ones(self):
        X, y = planted(n_classes=4)
        with pytest.raises(ValueError, match="expect='new' holds out classes"):
            Matcher(expect="new").fit(X, y)
        assert list(Matcher().fit(X, y).pair_rules_.parts) == ["seen classes"]

    def test_several_labels_of_a_row(self, rows):
        with pytest.raises(ValueError, match="several labels cannot be held out: give one label"):
            Matcher().fit(rows[0], np.eye(20)[rows[1]] + np.eye(20)[0] > 0)

    def test_one_row_has_no_other(self, rows, matcher):
        with pytest.raises(ValueError, match="give an index, or more rows"):
            matcher.best_match(rows[0][:1], precision=0.5)

    def test_few_rows(self):
        with pytest.raises(ValueError, match="too few rows"):
            Matcher(EmbeddingAdapter(2)).fit(np.eye(4), [0, 0, 1, 1])

    def test_a_strategy_needs_its_rate(self, rows):
        X, y = rows
        P, similar = np.stack([X[:-1], X[1:]], axis=1), np.where(y[1:] == y[:-1], 1, -1)
        with pytest.raises(ValueError, match="needs min_rate"):
            Matcher().calibrate_threshold(P, similar, "max_tpr")
        with pytest.raises(ValueError, match="strategy must be"):
            Matcher().calibrate_threshold(P, similar, "best")

    def test_an_estimator_that_was_not_fitted(self, rows):
        X, _ = rows
        with pytest.raises(ValueError, match="not fitted"):
            Matcher(NCA(2)).decision_function(np.stack([X, X], axis=1))

    def test_is_cloned_with_its_parameters(self):
        matcher = Matcher(NCA(2), metric="cosine", expect="new", unanswerable=0.1, random_state=3)
        assert clone(matcher).get_params(deep=False).keys() == matcher.get_params(deep=False).keys()
        assert clone(matcher).unanswerable == 0.1
