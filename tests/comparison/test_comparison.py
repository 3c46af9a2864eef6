"""The comparison as a whole: what it answers, and what it may not see."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkin
from nearkin import DNE, LDE, LPP, NMMP, estimators
from nearkin._labels import encode_labels
from nearkin.comparison import (
    CHOICE,
    RAW,
    SCORES,
    Method,
    Reference,
    all_methods,
    compare,
    default_references,
)
from nearkin.comparison.contestants import MapWithVote, contestant
from nearkin.comparison.methods import FAST_FIRST
from nearkin.comparison.protocol import Fold

from .tables import (
    DNE_METHOD,
    FEW,
    FIXED,
    FirstFeature,
    LastFeature,
    Spy,
    hidden,
    noise,
    protocol_of,
    quick,
)


class TestStatus:
    @pytest.mark.slow
    def test_a_better_method_wins_and_is_fitted(self):
        X, y = hidden(n=240, p=30)
        comparison = quick(X, y, n_splits=5, refit=True)
        assert comparison.winner_method == "DNE"
        assert comparison["DNE"].status == "better"
        assert comparison["DNE"].status == comparison.choice.status == "better"
        assert comparison.raw.status == "baseline"
        assert comparison.winner.score(X, y) > 0.95
        assert comparison.winner.classes_.tolist() == ["no", "yes"]

    def test_none_is_a_possible_answer(self):
        X, _ = hidden()
        comparison = quick(X, noise(150)[1], [FIXED, Method("LPP", LPP(), nested=False)])
        assert not any(result.status == "better" for result in comparison.results)
        assert {result.status for result in comparison.results} == {"baseline", "unclear"}

    def test_worse(self):
        X, y = hidden()
        worse = Method("last", LastFeature(), nested=False)
        assert quick(X[:, :3] * [3, 1, 1], y, [worse])["last"].status == "worse"

    @pytest.mark.long
    def test_a_method_about_seven_points_ahead_is_mostly_shown_on_625_rows(self):
        found = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            y = np.arange(625) % 2
            X = rng.normal(size=(625, 13))
            X[:, 0] += 2.5 * y
            first = Method("first", FirstFeature(), nested=False)
            found.append(compare(X, y, methods=[first], references=(), n_neighbors=5, refit=False))
        differences = [comparison["first"].difference for comparison in found]
        assert np.mean(differences) == pytest.approx(0.07, abs=0.02)
        assert np.mean([comparison.least_difference for comparison in found]) < 0.08
        assert sum(comparison["first"].status == "better" for comparison in found) >= 4


class TestProtocol:
    def test_raw_is_plain_repeated_cross_validation(self):
        X, y = load_iris(return_X_y=True)
        comparison = quick(X, y, methods=[], n_splits=4, n_repeats=2, keep_twins=True)
        folds = list(comparison.folds)
        expected = cross_val_score(
            make_pipeline(StandardScaler(), KNeighborsClassifier(3)), X, y, cv=folds
        )
        np.testing.assert_array_equal(comparison.raw.score, expected)
        np.testing.assert_array_equal(comparison.raw.scores["accuracy"], expected)
        assert (len(folds), comparison.n_repeats, comparison.n_neighbors) == (8, 2, 3)
        assert {str(vote) for vote in comparison.raw.votes} == {"3-NN"}

    @pytest.mark.long
    def test_same_seed_same_answer(self):
        X, y = hidden(n=60, p=4)
        first, second = (
            compare(X, y, methods=[DNE_METHOD], **FEW, random_state=3) for _ in range(2)
        )
        for name in (RAW, "DNE", CHOICE):
            np.testing.assert_array_equal(first[name].score, second[name].score)
            assert (first[name].params, first[name].votes) == (
                second[name].params,
                second[name].votes,
            )

    @pytest.mark.slow
    def test_choices_are_made_without_the_held_out_rows(self):
        X, y = hidden()
        train, test = protocol_of(X, y).folds(5, 1)[0][0]
        chosen = contestant(DNE_METHOD).choose(Fold(protocol_of(X, y), train, test))
        spoilt, wrong = X.copy(), y.copy()
        spoilt[test], wrong[test] = 1e6, "yes"
        assert (
            contestant(DNE_METHOD).choose(Fold(protocol_of(spoilt, wrong), train, test)) == chosen
        )
        assert 0.9 < chosen.mean <= 1

    def test_a_cut_of_a_nested_method_is_the_fit_with_fewer_components(self):
        X, y = hidden()
        for method in all_methods():
            if method.nested and method.estimator is not None:
                m = min(2, method.max_components(30, 2))
                full = method.estimator.fit(X, y).transform(X)[:, :2]
                cut = method.estimator.set_params(n_components=m).fit(X, y).transform(X)
                np.testing.assert_allclose(np.abs(full[:, : cut.shape[1]]), np.abs(cut), atol=1e-8)

    def test_groups_of_any_kind(self):
        X, y = hidden()
        groups = np.array([f"patient {row // 6}" for row in range(150)])
        comparison = quick(X, y, [], groups=groups, n_splits=5)
        assert len(comparison.folds) == 5
        assert all(not set(groups[train]) & set(groups[test]) for train, test in comparison.folds)

    def test_two_rows_a_class_leave_nothing_to_choose_by_but_finish(self):
        X = np.random.default_rng(0).normal(size=(12, 4))
        methods = [method for method in all_methods() if method.name in ("LDA", "RCA", "DNE")]
        comparison = quick(X, np.arange(12) // 2, methods, n_splits=None)
        assert set(comparison.skipped) == {"LDA", "RCA"}  # they need more rows of a class
        assert all("before its turn" not in reason for reason in comparison.skipped.values())
        assert comparison["DNE"].params[0] == {"n_neighbors": 1}
        assert np.isnan(
            contestant(FIXED).choose(Fold(comparison.protocol, comparison.folds[0][0])).mean
        )
        assert comparison.choice.params[0] == {"method": RAW}

    def test_small_classes_with_groups(self):
        X = np.random.default_rng(0).normal(size=(12, 4))
        comparison = quick(X, np.arange(12) // 3, groups=np.arange(12) % 6, n_splits=None)
        assert comparison.reduced["n_splits"] == (5, "no class has more than 3 rows")
        assert len(comparison.results) == 3

    def test_a_fold_that_learns_from_one_group_takes_the_first_setting(self):
        X, y = hidden()
        comparison = quick(X, y, [DNE_METHOD], groups=np.arange(150) // 2 % 3, n_splits=2)
        assert {"n_neighbors": 1} in comparison[
            "DNE"
        ].params  # and no n_components, which would have been chosen

    def test_a_huge_group_reduces_the_vote(self):
        X, y = hidden(n=40)
        groups = np.where(np.arange(40) < 36, 0, np.arange(40))
        comparison = quick(X, y, [], groups=groups, n_neighbors=9)
        assert min(vote.n_neighbors for vote in comparison.raw.votes) < 9

    def test_equal_scores_take_the_smallest_dimension_the_first_setting_and_vote(self):
        X, y = hidden(p=8)
        X[:, 0] = 1000 * (y == "yes") + X[:, 1]  # alone it decides, in any company
        pca = Method("PCA", PCA(), lambda p: [{"whiten": False}, {"whiten": False}])
        choice = contestant(pca).choose(Fold(protocol_of(X, y, scale=False), np.arange(150)))
        assert (choice.params, str(choice.vote)) == ({"whiten": False, "n_components": 1}, "3-NN")

    @pytest.mark.parametrize("sizes", [(50, 50), (60, 12)])
    def test_of_many_rows_a_map_is_learned_from_a_sample_with_every_class(self, sizes):
        Spy.seen = []
        y = np.repeat([0, 1], sizes)
        X = np.column_stack([np.arange(len(y)), np.random.default_rng(0).normal(size=(len(y), 2))])
        spy = Method("spy", Spy(), nested=False, most_rows=20)
        comparison = quick(X, y, [spy], n_splits=2, scale=False)
        for rows, seen in Spy.seen:
            assert len(rows) == 20
            assert sum(seen) == pytest.approx(20 * sizes[1] / sum(sizes), abs=1)
        assert (comparison["spy"].n_learned, comparison.raw.n_learned) == (20, len(y) // 2)
        # all rows vote
        np.testing.assert_array_equal(comparison["spy"].score, comparison.raw.score)

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("container", [csr_array, np.float32])
    def test_rows_of_another_kind(self, container):
        X, y = hidden(60)
        comparison = quick(container(X), y, refit=True)
        assert comparison["DNE"].score.mean() > 0.9
        assert (
            comparison.winner.predict(container(X)).tolist()
            == comparison.winner.predict(X).tolist()
        )

    @pytest.mark.slow
    def test_more_features_than_rows(self):
        X, y = hidden(n=40, p=60)
        comparison = quick(X, y, [FIXED, Method("NMMP", NMMP(2), nested=False)])
        assert comparison.skipped == {}
        assert all(np.isfinite(result.score).all() for result in comparison.results)

    @pytest.mark.long
    def test_all_default_methods_finish(self):
        X, y = make_classification(120, 6, n_informative=4, n_classes=3, random_state=0)
        comparison = compare(X, y, methods=all_methods(), n_splits=2, n_repeats=1)
        assert len(comparison.results) == len(all_methods()) + 1
        assert len(comparison.references) == len(default_references())
        assert comparison.skipped == comparison.reduced == {}
        means = [result.score.mean() for result in comparison.results]
        assert (np.diff(means) < 1e-12).all()
        own = {method.name for method in all_methods() if method.own_vote}  # its map is of bins
        for result in comparison.results:
            assert len(result.score) == len(result.params) == len(result.votes) == 2
            assert (
                own & {result.name, *(params.get("method") for params in result.params)}
                or max(result.dimension) <= 6
            )

    def test_every_method_of_nearkin_is_compared(self):
        methods = [*all_methods(semi_supervised=True), *all_methods("regression")]
        compared = {type(method.estimator).__name__ for method in methods}
        elsewhere = {
            "ApproximateSearch",
            "PairNCA",
            "SoftNeighborsClassifier",
            "SoftNeighborsRegressor",
        }  # no labels, no map
        elsewhere |= {"LaplacianEigenmaps", "TDLClassifier"}  # TDL stands for both
        elsewhere |= {"DiscriminativeProjectionsClassifier", "DiscriminativeProjectionsRegressor"}
        elsewhere |= {"LapRLSClassifier", "LapRLSRegressor"}  # no map
        elsewhere |= {"NeuralNCA"}  # a network, which needs torch
        elsewhere |= {"NCAClassifier", "NCARegressor"}  # predictors of their own
        elsewhere |= {"TDistributedNCA"}  # draws what a map has learned
        elsewhere |= {"TableEncoder"}  # from tables to rows
        elsewhere |= {"label_issues", "load"}  # functions
        elsewhere |= {"EmbeddingAdapter", "Migration"}  # vectors, compared by cosine
        elsewhere |= {"Matcher"}  # decides on pairs, in a space that others learn
        assert set(nearkin.__all__) - elsewhere <= compared

    def test_the_order_names_methods_that_are_compared(self):
        classes = {name: vars(estimators)[name] for name in estimators.__all__}
        compared = {name for name, kind in classes.items() if "compared_as" in vars(kind)}
        assert set(FAST_FIRST) <= compared

    def test_a_class_says_how_it_is_compared(self, monkeypatch):
        """A new method touches its own file and the exports, and no list of methods."""

        class Toy(DNE):
            compared_as: ClassVar[dict] = {
                "toy": {
                    "params": {"n_neighbors": 2},
                    "nested": False,
                    "regression": {"n_neighbors": 3},
                },
                "toy of few labels": {
                    "most_rows": 100,
                    "unlabelled": True,
                    "semi_supervised": True,
                },
            }

        monkeypatch.setattr(estimators, "Toy", Toy, raising=False)
        monkeypatch.setattr(estimators, "__all__", [*estimators.__all__, "Toy"])
        toy = next(method for method in all_methods() if method.name == "toy")
        assert (toy.name, toy.estimator.n_neighbors, toy.nested, toy.unlabelled) == (
            "toy",
            2,
            False,
            False,
        )
        regression = {method.name: method for method in all_methods("regression")}
        assert regression["toy"].estimator.n_neighbors == 3
        added = {method.name: method for method in all_methods(semi_supervised=True)}[
            "toy of few labels"
        ]
        assert (added.name, added.most_rows, added.unlabelled) == ("toy of few labels", 100, True)
        Toy.compared_as["toy"]["neested"] = True
        with pytest.raises(TypeError, match="neested"):
            all_methods()

    @pytest.mark.slow
    def test_a_method_of_ones_own(self):
        mine = Method(
            "two settings", NMMP(), lambda p: [{"n_components": m} for m in (1, 2)], nested=False
        )
        comparison = quick(*hidden(), [mine])
        assert set(comparison["two settings"].dimension) <= {1, 2}

    @pytest.mark.long
    def test_what_rows_shared_by_methods_cannot_serve_is_fitted_as_it_is(self):
        """A number of neighbours to be chosen, a search and an encoding of labels of its own."""

        class Joined(LDE):
            def _encode_labels(self, y):
                return encode_labels(np.minimum(y, 1))

        search = KNeighborsTransformer(algorithm="kd_tree")
        mine = [
            Method("auto", DNE(2, n_neighbors="auto")),
            Method("searched", DNE(2, search=search)),
            Method("joined", Joined()),
        ]
        X, y = load_iris(return_X_y=True)
        fold = Fold(protocol_of(X, y), np.arange(0, len(y), 2), np.arange(1, len(y), 2))
        for method in mine:
            map_ = MapWithVote(method).fit(fold, {}).steps[-1][1]
            alone = clone(method.estimator).fit(fold.prepared[0], fold.y)
            np.testing.assert_allclose(map_.components_, alone.components_, atol=1e-12)


class TestScores:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("score", SCORES["classification"])
    def test_each_ranks_and_chooses(self, score):
        X, y = hidden()
        worse = Method("last", LastFeature(), nested=False)
        comparison = compare(X, y, methods=[FIXED, worse], score=score, **FEW | {"n_neighbors": 9})
        sign = SCORES["classification"][score].sign
        assert (comparison.score.name, comparison.raw.sign) == (score, sign)
        for result in comparison.results:
            assert result.score is result.scores[score]
        assert [result.name for result in comparison.results] == [CHOICE, "DNE", RAW, "last"]
        means = [sign * result.score.mean() for result in comparison.results]
        assert means == sorted(means, reverse=True)
        assert sign * comparison["last"].difference < 0 < sign * comparison["DNE"].difference
        low, high = comparison["last"].interval
        assert low < comparison["last"].difference < high
        assert comparison["last"].status == "unclear"  # three folds may agree by chance
        assert [params["method"] for params in comparison.choice.params] == ["DNE"] * 3

    def test_the_vote_is_chosen_by_the_score(self):
        """Where labels mean nothing, few neighbours are confidently wrong, which log loss punishes."""
        protocol = protocol_of(*noise(150), score=SCORES["classification"]["log_loss"])
        choice = contestant(Method(RAW, None)).choose(Fold(protocol, np.arange(150)))
        assert choice.vote.n_neighbors >= 25
        assert np.log(2) - 0.05 < choice.mean < 1

    @pytest.mark.parametrize(("n_first", "score"), [(45, "accuracy"), (46, "auc")])
    def test_auc_where_one_class_is_most_of_the_rows(self, n_first, score):
        X, _ = noise(60)
        assert quick(X, np.arange(60) >= n_first, []).score.name == score
        assert quick(X, np.arange(60) >= n_first, [], score="accuracy").score.name == "accuracy"

    def test_rows_without_a_label_are_no_class(self):
        X, _ = noise(60)
        y = np.where(np.arange(60) < 20, np.arange(60) % 2, None)
        assert quick(X, y, []).score.name == "accuracy"

    def test_an_unknown_score(self):
        with pytest.raises(
            ValueError, match=r"score must be one of 'accuracy', .*'log_loss', got 'r2'"
        ):
            quick(*hidden(), score="r2")


class _Fails(LastFeature):
    """Fails on the calls whose numbers are given."""

    calls = 0

    def __init__(self, which=()):
        self.which = which

    def fit(self, X, y):
        type(self).calls += 1
        if type(self).calls in self.which:
            raise ValueError("no luck today\nand more")
        return super().fit(X, y)


class _FirstFeature(_Fails):
    def transform(self, X):
        return X[:, :1]


@pytest.fixture
def failing():
    """Return a method that fails on some of its fits: 1 to 3 are those of the first fold's inner
    folds.
    """

    def method(*which):
        _Fails.calls = 0
        return Method("failing", _Fails(which), nested=False)

    return method


class TestFailures:
    def test_a_failing_method_is_skipped_with_its_reason(self, failing):
        comparison = quick(*hidden(), [failing(*range(100)), FIXED])
        assert comparison.skipped == {"failing": "no luck today"}
        assert comparison["DNE"].score.mean() > 0.9

    @pytest.mark.parametrize("which", [(2,), (1, 3), (1, 2, 5, 6)])
    def test_one_inner_fold_is_not_enough(self, failing, which):
        comparison = quick(*hidden(), [failing(*which)])
        assert comparison.skipped == {}
        assert len(comparison["failing"].score) == 3

    @pytest.mark.parametrize("which", [(1, 2, 3), (8,)])
    def test_all_inner_folds_or_the_fold_are(self, failing, which):
        assert quick(*hidden(), [failing(*which)]).skipped == {"failing": "no luck today"}

    def test_classes_of_copies_of_a_single_row_stop_nothing(self):
        X = np.repeat(np.random.default_rng(0).normal(size=(6, 3)), 5, axis=0)
        lda = [method for method in all_methods() if method.name == "LDA"]
        assert RAW in [result.name for result in quick(X, np.arange(30) // 5 % 2, lda).results]

    def test_what_was_skipped_is_not_chosen_on_all_rows(self, failing):
        _FirstFeature.calls = 0
        method = Method("best", _FirstFeature([12]), nested=False)  # the third fold's fit
        comparison = quick(*hidden(), [method], refit=True)
        assert (list(comparison.skipped), comparison.winner_method) == (["best"], RAW)

    def test_what_the_raw_features_raise_is_raised(self, monkeypatch):
        def broken(self, *args):
            raise ValueError("no neighbours")

        monkeypatch.setattr("nearkin.comparison.protocol.Fold.predictions", broken)
        with pytest.raises(ValueError, match="no neighbours"):
            quick(*hidden())

    @pytest.mark.slow
    def test_warnings_of_a_method_are_counted(self):
        X = np.random.default_rng(0).normal(size=(150, 2))
        comparison = quick(X, np.arange(150) % 5, [Method("DNE", DNE(), nested=False)])
        ((text, count),) = comparison["DNE"].warnings.items()
        assert "no negative eigenvalue" in text
        assert count > 1


class TestReferences:
    @pytest.mark.long
    def test_they_are_ranked_apart_untested_on_the_same_folds(self, alone, comparison):
        assert [reference.name for reference in comparison.references] == [
            "logistic regression",
            "majority",
        ]
        for reference in comparison.references:
            assert (reference.kind, reference.status) == ("reference", "reference")
            assert len(reference.score) == len(comparison.folds)
            assert np.isnan(reference.p_value)
            low, high = reference.interval
            assert low < reference.difference < high
            assert reference.difference == pytest.approx(
                reference.score.mean() - comparison.raw.score.mean()
            )
        assert comparison["majority"].score.mean() == pytest.approx(0.5)
        assert [result.p_value for result in comparison.results] == [
            result.p_value for result in alone.results
        ]
        assert [reference.name for reference in alone.references] == ["majority"]

    @pytest.mark.slow
    def test_they_learn_from_so_many_rows(self):
        class Counts(type(default_references()[0].estimator)):
            seen: ClassVar = []

            def fit(self, X, y):
                self.seen.append(len(y))
                return super().fit(X, y)

        comparison = quick(*hidden(), references=[Reference("few", Counts(), 40)])
        assert Counts.seen == [40] * 3
        assert comparison["few"].n_learned == 40

    def test_a_reference_that_fails_is_skipped(self):
        constant = Reference(
            "constant", type(default_references("regression")[0].estimator)(strategy="nothing"), 100
        )
        assert "constant" in quick(*hidden(), references=[constant]).skipped


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["a"] * 150}, "one class"),
        (
            {"y": ["a"] + ["b"] * 149},
            "class a has a single row.*merge it with another class, drop it",
        ),
        ({"y": np.linspace(0, 1, 150)}, "continuous"),
        ({"X": np.full((150, 2), np.nan)}, "X does not vary"),
        ({"groups": np.arange(150) % 2}, "groups holds 2 groups: at least 3"),
        ({"groups": [1, 2]}, "inconsistent numbers"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"n_repeats": 0}, "n_repeats must be at least 1"),
        ({"n_splits": 1}, "n_splits must be at least 2"),
        ({"choice_rows": 9}, "choice_rows must be at least 10"),
        ({"random_state": -1}, "random_state must be between 0"),
        ({"task": "ranking"}, "task must be one of 'classification', 'regression', got 'ranking'"),
        ({"groups": [None] * 150}, "groups has missing values"),
        (
            {"X": np.arange(300.0).reshape(150, 2) * 1e150},
            "whose square overflows or underflows: scale the features",
        ),
    ],
)
def test_bad_input(change, message):
    X, y = hidden()
    with pytest.raises(ValueError, match=message):
        compare(**({"X": X, "y": y} | change))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["PCA"]}, r"methods holds 'PCA', which is no Method: write Method\("),
        ({"methods": [PCA()]}, r"methods holds PCA\(\), which"),
        ({"references": [PCA()]}, r"references holds PCA\(\), which is no Reference"),
    ],
)
def test_what_is_no_method_is_named(given, message):
    with pytest.raises(TypeError, match=message):
        compare(*load_iris(return_X_y=True), **given)


@pytest.mark.slow
def test_too_many_neighbors_are_reduced_visibly():
    X, y = hidden(n=40)
    comparison = compare(X, y, methods=[], references=[], n_neighbors=30, refit=False)
    assert comparison.reduced["n_neighbors"] == (30, "a fold leaves 21 rows to learn from")
    assert comparison.n_neighbors == 21
    assert {vote.n_neighbors for vote in comparison.raw.votes} == {21}
