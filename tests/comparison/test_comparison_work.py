"""What is to be done, in which order, within which time."""

from time import perf_counter
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from nearkin.comparison import CHOICE, RAW, Method, compare, default_references
from nearkin.comparison import comparison as module
from nearkin.comparison.comparison import Job
from nearkin.comparison.contestants import MapWithVote, Skipped

from .tables import (
    DNE_METHOD,
    FIXED,
    LastFeature,
    hidden,
    quick,
)

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
X, Y = (part[::2] for part in load_iris(return_X_y=True))


class TestTime:
    def test_no_time_is_enough_for_the_raw_features_and_a_method(self):
        X, y = hidden()
        last = Method("last", LastFeature(), nested=False)
        comparison = quick(X, y, [FIXED, last], time_budget=1e-9, refit=True, n_jobs=1)
        assert {result.name for result in comparison.results} == {RAW, "DNE", CHOICE}
        assert comparison.skipped == {"last": "the time budget ended before its turn"}
        assert (len(comparison.folds), comparison.interrupted) == (1, False)
        assert comparison.winner.score(X, y) > 0.9
        assert comparison.winner_method == comparison.choice.params[0]["method"]

    @pytest.mark.parametrize(
        ("n_fits", "n_folds"), [(1, 1), (4, 1), (5, 1), (8, 1), (9, 2), (12, 2)]
    )
    def test_a_fold_that_is_cut_short_does_not_count(self, monkeypatch, n_fits, n_folds):
        """The clock strikes in that fit of a method: of three folds, each takes four."""
        now = [0.0]
        monkeypatch.setattr(
            module, "time", SimpleNamespace(time=lambda: now[0], perf_counter=perf_counter)
        )

        class Strikes(LastFeature):
            calls = 0

            def fit(self, X, y):
                type(self).calls += 1
                now[0] = np.inf if type(self).calls == n_fits else now[0]
                return super().fit(X, y)

        first = Method("first", Strikes(), nested=False)
        last = Method("last", LastFeature(), nested=False)
        comparison = quick(*hidden(), [first, last], time_budget=1e9, n_jobs=1)
        assert len(comparison.folds) == n_folds
        assert set(comparison.skipped) == ({"last"} if n_fits <= 4 else set())

    @pytest.mark.long
    def test_enough_of_it_changes_nothing(self, alone, comparison):
        np.testing.assert_array_equal(comparison["DNE"].score, alone["DNE"].score)


class TestInterruption:
    def stop_at(self, name, count):
        """Interrupt when a method has finished so many folds."""
        seen = []

        def progress(method, done, total):
            seen.append(method)
            if seen.count(name) == count:
                raise KeyboardInterrupt

        return progress

    @pytest.mark.parametrize(("name", "count"), [(RAW, 3), ("DNE", 3)])
    def test_keeps_the_folds_that_are_finished(self, name, count):
        comparison = quick(*hidden(), refit=True, progress=self.stop_at(name, count))
        assert comparison.interrupted
        assert {result.name for result in comparison.results} == {RAW, "DNE", CHOICE}
        assert (len(comparison.folds), len(comparison.raw.score)) == (2, 2)
        assert (comparison.winner, comparison.methods) == (None, (RAW, "DNE"))

    def test_keeps_what_the_first_fold_has(self):
        methods = [Method("PCA", PCA(2), nested=False), FIXED]
        comparison = quick(*hidden(), methods, progress=self.stop_at("PCA", 1))
        assert {result.name for result in comparison.results} == {RAW, "PCA", CHOICE}
        assert (len(comparison.folds), comparison.skipped) == (1, {})

    def test_with_nothing_finished_it_is_raised(self, monkeypatch):
        def interrupt(self, fold):
            raise KeyboardInterrupt

        monkeypatch.setattr(MapWithVote, "evaluate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            quick(*hidden())


def test_what_was_not_finished_on_every_fold_is_not_ranked():
    comparison = quick(*hidden(), methods=[])
    mean, pca = default_references("regression")[0], Method("PCA", PCA())
    first, second, third = comparison.found
    outcome = first[RAW]
    found = [
        first | {mean.name: outcome, "PCA": Skipped("no luck")},
        second,
        third | {mean.name: outcome},
    ]
    again = comparison.with_found(found, [*comparison.contestants, pca, mean])
    assert {result.name: len(result.score) for result in again.results} == {RAW: 3, CHOICE: 3}
    assert [reference.name for reference in again.references] == ["majority"]
    assert again.skipped == {"PCA": "no luck"}


def test_there_are_no_more_jobs_than_methods():
    job = Job(0, "choose", (np.arange(40),), [Method(RAW, None), FIXED, DNE_METHOD])
    names = [[method.name for method in part.contestants] for part in job.cut(2)]
    assert names == [[RAW, "DNE"], ["DNE"]]
    assert [len(job.cut(n)) for n in (1, 3, 4)] == [1, 3, 3]


def test_progress_counts_fits_up_to_all():
    calls = []
    quick(*hidden(), references=default_references()[:1], progress=lambda *call: calls.append(call))
    assert calls[:2] == [("comparing", 0, 9), (RAW, 1, 9)]
    assert [done for _, done, _ in calls] == list(range(10))


@pytest.mark.long
def test_processes_find_the_same(monkeypatch):
    X, y = hidden(300)
    options = {
        "methods": [DNE_METHOD],
        "references": default_references()[:2],
        "n_splits": 3,
        "n_repeats": 1,
    }
    alone = compare(X, y, n_jobs=1, **options)
    monkeypatch.setattr(module, "WORTH_PROCESSES", 0)
    calls = []
    together = compare(X, y, n_jobs=2, progress=lambda *call: calls.append(call), **options)
    totals = [call for call in calls if call[1] == call[2]]
    # four methods and references on three folds; choices on all rows
    assert [done for _, done, _ in totals] == [
        12,
        2,
    ]
    for result in (*alone.results, *alone.references):
        other = together[result.name]
        for name, values in result.scores.items():
            np.testing.assert_allclose(other.scores[name], values, rtol=1e-9)
        assert (other.params, other.votes, other.status) == (
            result.params,
            result.votes,
            result.status,
        )
    assert together.winner_method == alone.winner_method
    np.testing.assert_array_equal(together.winner.predict(X), alone.winner.predict(X))
    short = compare(X, y, n_jobs=2, time_budget=1e-9, **options)
    assert (short.winner is None, short.interrupted, len(short.folds) >= 1) == (False, False, True)
