"""The automatic choice as the answer of a comparison, twins, and how often noise is called a difference."""

import time
from typing import ClassVar

import numpy as np
import pytest
from sklearn.decomposition import PCA

from nearkin import NCA
from nearkin.comparison import RAW, Method, all_methods, compare, extend
from nearkin.comparison.contestants import automatic, contestant
from nearkin.comparison.protocol import Fold

from . import tables
from .tables import (
    DNE_METHOD,
    FIXED,
    FirstFeature,
    LastFeature,
    hidden,
    noise,
    quick,
)

FEW = tables.FEW | {"n_splits": 2}
SEVERAL = [
    DNE_METHOD,
    Method("PCA", PCA(), nested=True),
    Method("last", LastFeature(), nested=False),
]


@pytest.fixture(scope="module")
def comparison():
    return compare(*hidden(60, p=10), methods=SEVERAL, **FEW | {"refit": True})


class TestExtend:
    """Further methods on the same folds."""

    @pytest.mark.long
    def test_it_finds_what_a_comparison_of_all_finds(self):
        X, y = hidden(60, p=10)
        few, other = SEVERAL[:1], SEVERAL[1:]
        together = compare(X, y, methods=SEVERAL, **FEW | {"refit": True})
        extended = extend(compare(X, y, methods=few, **FEW), other)
        assert extended.methods == together.methods
        for one in together.results:
            again = extended[one.name]
            np.testing.assert_array_equal(again.score, one.score)
            assert (again.p_value, again.params) == (one.p_value, one.params)
        assert extended.winner_method == together.winner_method

    @pytest.mark.slow
    def test_what_it_has_is_not_run_again(self):
        comparison = compare(*hidden(60), methods=[FIXED], **FEW)
        assert extend(comparison, [FIXED]).methods == (RAW, "DNE")

    @pytest.mark.slow
    def test_an_interrupt_leaves_what_was_found_before(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        comparison = compare(*hidden(60), methods=[FIXED], **FEW)
        again = extend(comparison, SEVERAL[1:], progress=interrupt)
        assert again.interrupted
        assert again.winner is None
        assert [(r.name, r.p_value) for r in again.results] == [
            (r.name, r.p_value) for r in comparison.results
        ]

    @pytest.mark.slow
    def test_methods_that_ran_out_of_time_are_no_part_of_it(self):
        """What was finished on some folds is not chosen there, either."""

        class Slow(LastFeature):
            fits: ClassVar = []

            def fit(self, X, y):
                self.fits.append(len(y))
                if len(self.fits) == 2:
                    time.sleep(1.5)
                return super().fit(X, y)

        comparison = compare(*hidden(60), methods=[FIXED], **FEW)
        late = [Method("slow", Slow(), nested=False), Method("first", FirstFeature(), nested=False)]
        again = extend(comparison, late, time_budget=1.0, n_jobs=1, refit=True)
        assert set(again.skipped) == {"slow", "first"}
        assert {params["method"] for params in again.choice.params} <= {RAW, "DNE"}
        assert again.winner_method in {RAW, "DNE"}
        np.testing.assert_array_equal(again.choice.score, comparison.choice.score)

    @pytest.mark.slow
    def test_the_choice_is_fitted_afterwards(self):
        comparison = compare(*hidden(60), methods=[FIXED], **FEW | {"refit": False})
        assert comparison.winner is None
        fitted = extend(comparison, [])
        assert fitted.winner_method == comparison.choice.params[0][
            "method"
        ] or fitted.winner_method in (RAW, "DNE")
        assert repr(fitted) == repr(comparison)


class TestWinner:
    def test_it_predicts_labels_by_the_method_that_all_rows_choose(self, comparison):
        protocol, winner = comparison.protocol, comparison.winner
        choices = {
            method.name: contestant(method).choose(Fold(protocol, np.arange(60)))
            for method in [Method(RAW, None), *SEVERAL]
        }
        methods = [Method(RAW, None), *SEVERAL]
        assert comparison.winner_method == automatic(choices, methods, protocol, np.arange(60))
        chosen = choices[comparison.winner_method]
        assert winner["vote"].n_neighbors == chosen.vote.n_neighbors
        assert callable(winner["vote"].weights) == chosen.vote.soft
        model = winner["map"].get_params()
        assert {name: model[name] for name in chosen.params} == chosen.params
        assert set(winner.predict(hidden(60, p=10)[0])) == {"no", "yes"}

    @pytest.mark.long
    def test_it_does_not_depend_on_the_outer_folds(self, comparison):
        X, y = hidden(60, p=10)
        other = compare(X, y, methods=SEVERAL, **FEW | {"refit": True, "n_splits": 3})
        assert other.winner_method == comparison.winner_method
        np.testing.assert_array_equal(
            other.winner.predict_proba(X), comparison.winner.predict_proba(X)
        )

    @pytest.mark.parametrize("name", [RAW, "DNE", "PCA"])
    def test_its_pipeline_is_what_the_folds_scored(self, comparison, name):
        """Learned from the training rows of a fold, it predicts what the comparison reports."""
        train, test = comparison.folds[0]
        method = next(method for method in [Method(RAW, None), *SEVERAL] if method.name == name)
        choice = contestant(method).choose(Fold(comparison.protocol, train, test))
        pipeline, _ = contestant(method).pipeline(Fold(comparison.protocol, train), choice)
        np.testing.assert_array_equal(
            pipeline.predict(hidden(60, p=10)[0][test]), comparison[name].predictions[0]
        )

    def test_none_without_refit(self):
        comparison = quick(*noise())
        assert (comparison.winner, comparison.winner_method) == (None, RAW)

    @pytest.mark.slow
    def test_raw_features_may_win(self):
        X, y = hidden(p=3)
        comparison = quick(X, y, [Method("last", LastFeature(), nested=False)], refit=True)
        assert comparison.winner_method == RAW
        assert list(comparison.winner.named_steps) == ["scale", "vote"]


TRAP = Method("NCA", NCA(2, max_iter=20), nested=False)


def with_twins(jitter=0.0, m=75, p=20, seed=0):
    """Return rows of noise, each with a twin of the same label, which means nothing."""
    rng = np.random.default_rng(seed)
    original = np.repeat(np.arange(m), 2)
    X, y = rng.normal(size=(m, p)), rng.integers(2, size=m)
    return X[original] + jitter * rng.normal(size=(2 * m, p)), y[original], original


@pytest.mark.parametrize("jitter", [pytest.param(0.0, marks=pytest.mark.slow), 1e-3])
class TestTwins:
    @pytest.mark.slow
    def test_they_are_no_evidence(self, jitter):
        X, y, original = with_twins(jitter)
        comparison = quick(X, y, [TRAP])
        assert {result.status for result in comparison.results} == {"baseline", "unclear"}
        assert comparison["NCA"].score.mean() < 0.6
        assert (comparison.protocol.n_twins, comparison.protocol.keep_twins) == (150, False)
        for train, test in comparison.folds:
            assert not set(original[train]) & set(original[test])
            for inner_train, inner_test in comparison.protocol.inner_folds(train):
                assert not set(original[inner_train]) & set(original[inner_test])

    @pytest.mark.long
    def test_kept_they_are_the_trap(self, jitter):
        X, y, _ = with_twins(jitter)
        comparison = quick(X, y, [TRAP], keep_twins=True, n_splits=5)
        assert comparison["NCA"].score.mean() > 0.8
        assert comparison["NCA"].status == "better"
        assert (comparison.protocol.n_twins, comparison.protocol.keep_twins) == (150, True)

    @pytest.mark.long
    def test_no_method_of_all_is_better(self, jitter):
        X, y, _ = with_twins(jitter)
        comparison = quick(X, y, all_methods())
        assert not [result.name for result in comparison.results if result.status == "better"]


def test_rows_without_a_twin_have_none():
    assert quick(*noise(), methods=()).protocol.n_twins == 0


@pytest.mark.long
def test_random_labels_are_hardly_ever_called_a_difference():
    statuses = []
    methods = [method for method in all_methods() if method.name in ("PCA", "LDA", "RCA", "LFDA")]
    for seed in range(12):
        comparison = quick(*noise(60, 5, seed), methods, n_splits=5)
        statuses.append({result.status for result in comparison.results})
    assert sum(found != {"baseline", "unclear"} for found in statuses) <= 2


def test_how_many_vote_is_chosen_by_the_table():
    """Blocks of eight rows on a line want few neighbours, two halves with a quarter of wrong labels
    many.
    """
    x, flipped = np.arange(240.0)[:, None], np.random.default_rng(0).random(240) < 0.25
    blocks, halves = (
        compare(x, y, methods=[], **FEW).raw
        for y in (np.arange(240) // 8 % 2, (np.arange(240) < 120) ^ flipped)
    )
    assert max(vote.n_neighbors for vote in blocks.votes) <= 10
    assert min(vote.n_neighbors for vote in halves.votes) >= 9
    assert blocks.score.mean() > 0.8
