"""The automatic choice among methods, and when it takes the predictor for tables."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from nearkin import DNE, NCAClassifier
from nearkin.comparison import CHOICE, RAW, SCORES, Method, OwnVote, Vote, all_methods, compare
from nearkin.comparison.comparison import Job
from nearkin.comparison.contestants import Choice, PredictorWithVote, automatic, contestant
from nearkin.comparison.protocol import Fold

from . import tables
from .tables import (
    DNE_METHOD,
    FIXED,
    FirstFeature,
    LastFeature,
    hidden,
    noise,
    protocol_of,
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


class TestAutomaticChoice:
    @pytest.mark.long
    def test_its_outcome_is_that_of_the_method_which_the_fold_chose(self, comparison):
        choice = comparison.choice
        assert (choice.name, choice.kind, choice.method) == (CHOICE, "choice", None)
        for fold, params in enumerate(choice.params):
            chosen = comparison[params["method"]]
            assert params == {"method": chosen.name} | chosen.params[fold]
            assert (choice.votes[fold], choice.dimension[fold]) == (
                chosen.votes[fold],
                chosen.dimension[fold],
            )
            assert {name: scores[fold] for name, scores in choice.scores.items()} == {
                name: scores[fold] for name, scores in chosen.scores.items()
            }
            np.testing.assert_array_equal(choice.predictions[fold], chosen.predictions[fold])
            np.testing.assert_array_equal(choice.contributions[fold], chosen.contributions[fold])

    @pytest.mark.long
    def test_it_chooses_the_best_on_inner_folds_and_of_equals_the_first(self):
        protocol = protocol_of(*hidden(60, p=10))
        for train, test in protocol.folds(3, 1)[0]:
            choices = {
                method.name: contestant(method).choose(Fold(protocol, train, test))
                for method in SEVERAL
            }
            chosen = automatic(choices, SEVERAL, protocol, train)
            assert choices[chosen].mean == max(choice.mean for choice in choices.values())
        copy = Method("again", DNE(1), nested=False)
        comparison = quick(*hidden(), [FIXED, copy])
        assert {params["method"] for params in comparison.choice.params} <= {RAW, "DNE"}

    @pytest.mark.long
    def test_it_does_not_see_the_held_out_rows(self):
        X, y = hidden(60, p=10)
        first = quick(X, y, SEVERAL)
        train, test = first.folds[0]
        y[test] = np.random.default_rng(0).permutation(y[test])
        protocol = protocol_of(X, y)
        methods = [Method(RAW, None), *SEVERAL]
        chosen = []
        for do, *rows in (("evaluate", train, test), ("choose", train)):
            job = Job(0, do, rows, methods)
            found = {name: one for _, name, one in job.work(protocol, np.inf, True)}
            choices = {method.name: found[method.name] for method in methods}
            if do == "evaluate":
                choices = {name: outcome.choice for name, outcome in choices.items()}
            chosen.append(automatic(choices, methods, protocol, train))
        assert chosen == [first.choice.params[0]["method"]] * 2

    def test_a_skipped_method_is_not_chosen(self):
        class Broken(FirstFeature):
            def transform(self, X):
                raise ValueError("no luck")

        comparison = quick(*hidden(), [Method("broken", Broken(), nested=False)])
        assert {params["method"] for params in comparison.choice.params} == {RAW}
        assert comparison.choice.difference == 0
        assert comparison.choice.status == "unclear"

    @pytest.mark.long
    def test_on_noise_it_does_not_promise_what_the_best_of_many_does(self):
        rng = np.random.default_rng(0)
        columns = [tuple(rng.permutation(20)[:m]) for m in (1, 2, 3) * 5]
        methods = [Method(f"columns {which}", _Columns(which), nested=False) for which in columns]
        choice, best = [], []
        for seed in range(25):
            comparison = quick(*noise(80, 20, seed), methods)
            choice.append(comparison.choice.score.mean())
            best.append(max(result.score.mean() for result in comparison.results))
        assert np.mean(choice) == pytest.approx(0.5, abs=0.03)  # three standard errors
        assert np.mean(best) > 0.58


def bought(gain, n=300):
    """Choices on the inner folds of n rows: a predictor for tables, and a map that is right in so
    many more of them.
    """
    protocol = protocol_of(*noise(n))
    folds = protocol.inner_folds(np.arange(n))
    rng = np.random.default_rng(0)
    usual = tuple(1.0 * (rng.random(len(test)) < 0.6) for _, test in folds)
    other = tuple(np.where(rng.random(len(hits)) < gain, 1.0, hits) for hits in usual)
    choices = {"map": Choice({}, Vote(3), other), "tables": Choice({}, OwnVote(n), usual)}
    methods = [Method("map", PCA()), Method("tables", NCAClassifier(), own_vote=True)]
    return choices, methods, protocol, np.arange(n)


class TestThePredictorForTablesIsChosen:
    """Unless the rows that inner folds hold out show that another method is better."""

    @pytest.mark.parametrize(("gain", "name"), [(0.0, "tables"), (0.005, "tables"), (0.3, "map")])
    def test_by_the_paired_test(self, gain, name):
        choices, *rest = bought(gain)
        assert choices["map"].mean >= choices["tables"].mean
        assert automatic(choices, *rest) == name

    def test_of_several_better_ones_the_best(self):
        choices, methods, *rest = bought(0.3)
        choices["other"] = bought(0.6)[0]["map"]
        methods = [*methods, Method("other", PCA())]
        assert automatic(choices, methods, *rest) == "other"

    def test_where_less_is_better(self):
        choices, methods, protocol, rows = bought(0.3)
        protocol = replace(protocol, score=SCORES["classification"]["log_loss"])
        assert automatic(choices, methods, protocol, rows) == "tables"

    def test_without_votes_that_could_be_compared(self):
        choices, *rest = bought(0.3)
        choices["tables"] = Choice({}, OwnVote(300))
        assert automatic(choices, *rest) == "tables"

    @pytest.mark.slow
    def test_its_members_are_learned_on_the_inner_folds(self):
        """One fit gives the choice and the prediction, and no group is on both sides of a member's
        fold.
        """
        X, y = hidden(90, p=4)
        groups = np.arange(90) // 3
        protocol = protocol_of(X, y, groups=groups)
        method = Method("tables", NCAClassifier(alpha=0.5), own_vote=True, nested=False)
        rows = np.arange(90)
        predictor, _ = PredictorWithVote(method).fit(Fold(protocol, rows))
        assert sorted(predictor.held_out_rows_) == list(rows)
        choice = contestant(method).choose(Fold(protocol, rows))
        votes = np.empty((90, 2))
        votes[predictor.held_out_rows_] = predictor.held_out_votes_
        hits = votes.argmax(axis=1) == protocol.y
        assert choice.mean == pytest.approx(
            np.mean([hits[test].mean() for _, test in protocol.inner_folds(rows)])
        )
        for train, test in protocol.member_folds(rows):
            assert not set(groups[train]) & set(groups[test])

    @pytest.mark.long
    def test_it_is_fitted_once_more_on_all_rows(self):
        X, y = hidden(90, p=4)
        method = Method("tables", NCAClassifier(alpha=0.5), own_vote=True, nested=False)
        found = compare(X, y, methods=[method], references=[], n_splits=2, n_repeats=1)
        assert (found.winner_method, found.winner[-1].n_members) == ("tables", 3)
        np.testing.assert_array_equal(found.winner_rows, np.arange(90))


@pytest.mark.long
def test_a_method_that_some_inner_fold_cannot_fit():
    """Its rows could not be paired with those of the others: it is compared, and not chosen."""
    rng = np.random.default_rng(0)
    groups = np.arange(100) // 10
    y = np.where((groups < 2) & (rng.random(100) < 0.6), "b", "a")
    methods = [method for method in all_methods() if method.name in ("LDA", "NCA tables")]
    found = compare(
        rng.normal(size=(100, 3)),
        y,
        groups=groups,
        methods=methods,
        references=[],
        n_splits=5,
        refit=False,
    )
    assert {params["method"] for params in found.choice.params} <= {RAW, "NCA tables", "LDA"}


class _Columns(LastFeature):
    def __init__(self, which=()):
        self.which = which

    def transform(self, X):
        return X[:, list(self.which)]
