from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkin
from nearkin import DNE, LPP, NMMP, estimators
from nearkin.evaluation import RAW, Method, compare, default_methods
from nearkin.evaluation.protocol import Protocol

DNE_METHOD = Method("DNE", DNE(), lambda p: [{"n_neighbors": 1}, {"n_neighbors": 5}])


FIXED = Method("DNE", DNE(1), nested=False)  # nothing to choose
FEW = {"n_splits": 3, "n_repeats": 1}


def hidden(n=150, p=6, seed=0):
    """Return two classes that differ in one of many features: raw k-NN drowns in the others."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, 0] += 5 * y
    return X, np.array(["no", "yes"])[y]


class TestStatus:
    def test_a_better_method_wins_and_is_fitted(self):
        X, y = hidden(p=30)
        comparison = compare(X, y, methods=[FIXED])
        assert comparison.best.name == "DNE"
        assert comparison.verdict.startswith("DNE: accuracy ")
        assert comparison["DNE"].status == "better"
        assert comparison[RAW].status == "baseline"
        assert comparison.winner.score(X, y) > 0.95
        assert comparison.winner.classes_.tolist() == ["no", "yes"]

    def test_none_is_a_possible_answer(self):
        X, y = hidden()
        y = np.random.default_rng(1).permutation(y)
        comparison = compare(X, y, methods=[FIXED, Method("LPP", LPP(), nested=False)], n_repeats=1)
        assert comparison.best.name == RAW
        assert comparison.verdict.endswith("no method is shown to be better")
        assert list(comparison.winner.named_steps) == ["scale", "vote"]

    def test_worse(self):
        X, y = hidden()
        worse = Method("last", _LastFeature(), nested=False)
        assert compare(X[:, :3] * [3, 1, 1], y, methods=[worse])["last"].status == "worse"


class _LastFeature(TransformerMixin, BaseEstimator):
    """The feature that says nothing."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X[:, -1:]


class TestProtocol:
    def test_raw_is_plain_repeated_cross_validation(self):
        X, y = load_iris(return_X_y=True)
        comparison = compare(X, y, methods=[], n_splits=4, n_repeats=2)
        folds = Protocol(X, y, None, 3, True, 0).folds(4, 2)
        expected = cross_val_score(make_pipeline(StandardScaler(), KNeighborsClassifier(3)), X, y, cv=folds)
        np.testing.assert_array_equal(comparison[RAW].accuracy, expected)
        assert len(comparison.folds) == 8

    def test_same_seed_same_answer(self):
        X, y = hidden(n=60, p=4)
        first, second = (compare(X, y, methods=[DNE_METHOD], **FEW, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(first["DNE"].accuracy, second["DNE"].accuracy)
        assert first["DNE"].params == second["DNE"].params

    def test_choices_are_made_without_the_held_out_rows(self):
        X, y = hidden()
        protocol = Protocol(X, y, None, 3, True, 0)
        train, test = protocol.folds(5, 1)[0]
        chosen = protocol.choose(DNE_METHOD, train)
        spoilt = X.copy()
        spoilt[test] = 1e6
        assert Protocol(spoilt, y, None, 3, True, 0).choose(DNE_METHOD, train) == chosen
        assert all(set(a) | set(b) <= set(train) for a, b in protocol.inner_folds(train))

    def test_a_cut_of_a_nested_method_is_the_fit_with_fewer_components(self):
        X, y = hidden()
        for method in default_methods():
            if method.nested and method.estimator is not None:
                full = method.estimator.fit(X, y).transform(X)[:, :2]
                cut = (
                    method.estimator.set_params(n_components=min(2, method.max_components(30, 2)))
                    .fit(X, y)
                    .transform(X)
                )
                np.testing.assert_allclose(np.abs(full[:, : cut.shape[1]]), np.abs(cut), atol=1e-8)

    def test_groups_stay_on_one_side(self):
        X, y = hidden()
        groups = np.arange(150) // 6
        protocol = Protocol(X, y, groups, 3, True, 0)
        folds = protocol.folds(5, 2)
        folds += protocol.inner_folds(folds[0][0])
        assert all(not set(groups[train]) & set(groups[test]) for train, test in folds)
        comparison = compare(X, y, groups=[f"patient {g}" for g in groups], methods=[FIXED], n_repeats=1)
        assert len(comparison.folds) == 5

    def test_small_classes_reduce_the_folds_and_the_vote_visibly(self):
        X, y = hidden(n=6)
        comparison = compare(X, y, methods=[FIXED])
        assert comparison.reduced == {
            "n_splits": (5, "class no has 3 rows"),
            "n_neighbors": (3, "a fold leaves 2 rows to learn from"),
        }
        assert (comparison.n_neighbors, len(comparison.folds)) == (2, 9)

    def test_two_rows_a_class_leave_nothing_to_choose_by_but_finish(self):
        X = np.random.default_rng(0).normal(size=(12, 4))
        comparison = compare(X, np.arange(12) // 2, n_neighbors=1, n_repeats=1)
        assert set(comparison.skipped) == {"LDA", "RCA", "NCA", "NCA log", "LMNN"}  # they need more rows of a class
        assert comparison["DNE"].params[0] == {"n_neighbors": 1}

    def test_small_classes_with_groups(self):
        X = np.random.default_rng(0).normal(size=(12, 4))
        comparison = compare(X, np.arange(12) // 3, groups=np.arange(12) % 6, methods=[FIXED], n_repeats=1)
        assert comparison.reduced["n_splits"] == (5, "no class has more than 3 rows")
        assert len(comparison.results) == 2

    def test_a_fold_that_learns_from_one_group_takes_the_first_setting(self):
        X, y = hidden()
        comparison = compare(X, y, groups=np.arange(150) // 2 % 3, methods=[DNE_METHOD], n_splits=2)
        assert {"n_neighbors": 1} in comparison["DNE"].params  # and no n_components, which would have been chosen

    def test_a_huge_group_reduces_the_vote(self):
        X, y = hidden(n=40)
        groups = np.where(np.arange(40) < 36, 0, np.arange(40))
        comparison = compare(X, y, groups=groups, methods=[], n_neighbors=9)
        assert comparison.n_neighbors < comparison.reduced["n_neighbors"][0] == 9

    def test_equal_scores_take_the_smallest_dimension(self):
        X, y = hidden(p=8)
        X[:, 0] *= 100  # alone it decides, in any company
        protocol = Protocol(X, y, None, 3, False, 0)
        assert protocol.choose(Method("PCA", PCA()), np.arange(150)) == {"n_components": 1}

    def test_the_pilot_sees_every_class(self):
        seen = []

        class Spy(PCA):
            def fit_transform(self, X, y):
                seen.append(y)
                return super().fit_transform(X, y)

        y = np.repeat([0, 1], [8000, 12])
        X = np.random.default_rng(0).normal(size=(8012, 2))
        compare(X, y, methods=[Method("spy", Spy(), nested=False)], n_splits=2, n_repeats=1)
        assert 1000 <= len(seen[0]) <= 1003
        assert np.sum(seen[0]) >= 3

    def test_sparse_rows(self):
        X, y = hidden()
        comparison = compare(csr_array(X), y, methods=[DNE_METHOD], **FEW)
        assert comparison["DNE"].accuracy.mean() > 0.9

    @pytest.mark.slow
    def test_all_default_methods_finish(self):
        X, y = make_classification(120, 6, n_informative=4, n_classes=3, random_state=0)
        comparison = compare(X, y, n_splits=2, n_repeats=1)
        assert len(comparison.results) == len(default_methods())
        assert comparison.skipped == comparison.reduced == {}
        means = [result.accuracy.mean() for result in comparison.results]
        assert means == sorted(means, reverse=True)
        for result in comparison.results:
            assert len(result.accuracy) == len(result.balanced_accuracy) == len(result.params) == 2
            assert (result.dimension <= 6).all()

    def test_every_method_of_nearkin_is_compared(self):
        methods = [*default_methods(semi_supervised=True), *default_methods("regression")]
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
        assert set(nearkin.__all__) - elsewhere <= compared

    def test_a_class_says_how_it_is_compared(self, monkeypatch):
        """A new method touches its own file and the exports, and no list of methods."""

        class Toy(DNE):
            compared_as: ClassVar[dict] = {
                "toy": {"params": {"n_neighbors": 2}, "nested": False, "regression": {"n_neighbors": 3}},
                "toy of few labels": {"growth": 1, "unlabelled": True, "semi_supervised": True},
            }

        monkeypatch.setattr(estimators, "Toy", Toy, raising=False)
        monkeypatch.setattr(estimators, "__all__", [*estimators.__all__, "Toy"])
        toy = default_methods()[-1]
        assert (toy.name, toy.estimator.n_neighbors, toy.nested, toy.unlabelled) == ("toy", 2, False, False)
        assert default_methods("regression")[-1].estimator.n_neighbors == 3
        added = default_methods(semi_supervised=True)[-1]
        assert (added.name, added.growth, added.unlabelled) == ("toy of few labels", 1, True)
        Toy.compared_as["toy"]["neested"] = True
        with pytest.raises(TypeError, match="neested"):
            default_methods()

    def test_a_method_of_ones_own(self):
        X, y = hidden()
        mine = Method("two settings", NMMP(), lambda p: [{"n_components": m} for m in (1, 2)], nested=False)
        comparison = compare(X, y, methods=[mine], **FEW)
        assert set(comparison["two settings"].dimension) <= {1, 2}


class TestBudgets:
    def test_time(self):
        comparison = compare(*hidden(), methods=[DNE_METHOD], time_budget=1e-6)
        assert [result.name for result in comparison.results] == [RAW]
        assert comparison.skipped["DNE"].startswith("expected to take ")
        assert comparison.skipped["DNE"].endswith("the time budget is 1e-06 s")

    def test_memory(self):
        methods = [method for method in default_methods() if method.name in ("PCA", "MFA", "NMMP ratio trace", "NMMP")]
        comparison = compare(*hidden(), methods=methods, memory_budget=1e3, **FEW)
        skipped = [name for name, reason in comparison.skipped.items() if "memory budget is 1 kB" in reason]
        assert skipped == ["MFA", "NMMP ratio trace", "NMMP"]

    def test_a_failing_method_is_skipped_with_its_reason(self):
        class Broken(_LastFeature):
            def fit(self, X, y):
                raise ValueError("no luck today\nand more")

        comparison = compare(*hidden(), methods=[Method("broken", Broken(), nested=False), FIXED], **FEW)
        assert comparison.skipped == {"broken": "no luck today"}
        assert comparison["DNE"].accuracy.mean() > 0.9

    def test_warnings_of_a_method_are_counted(self):
        X = np.random.default_rng(0).normal(size=(300, 2))
        comparison = compare(X, np.arange(300) % 5, methods=[Method("DNE", DNE(), nested=False)], n_repeats=1)
        ((text, count),) = comparison["DNE"].warnings.items()
        assert "no negative eigenvalue" in text
        assert count > 1


class TestInterruption:
    def stop_at(self, name):
        def progress(method, done, total):
            if (method, done) == (name, 2):
                raise KeyboardInterrupt

        return progress

    def test_keeps_what_is_finished(self):
        methods = [Method("PCA", PCA(), nested=False), FIXED]
        comparison = compare(*hidden(), methods=methods, progress=self.stop_at("DNE"))
        assert comparison.interrupted
        assert {result.name for result in comparison.results} == {RAW, "PCA"}
        assert comparison.winner is None
        assert comparison.methods == (RAW, "PCA", "DNE")

    def test_with_nothing_finished_it_is_raised(self):
        with pytest.raises(KeyboardInterrupt):
            compare(*hidden(), progress=self.stop_at(RAW))


def test_frame():
    pytest.importorskip("pandas")
    comparison = compare(*hidden(), methods=[FIXED], **FEW)
    frame = comparison.to_frame()
    assert frame["method"].tolist() == ["DNE", RAW]
    assert frame.loc[0, "accuracy"] == comparison["DNE"].accuracy.mean()
    assert np.isnan(frame.loc[1, "p_value"])


def test_names_that_are_not_there():
    with pytest.raises(KeyError, match="finished were raw k-NN"):
        compare(*hidden(), methods=[], n_repeats=1)["DNE"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["a"] * 150}, "one class"),
        ({"y": ["a"] + ["b"] * 149}, "class a has a single row.*merge it with another class, drop it"),
        ({"y": np.linspace(0, 1, 150)}, "continuous"),
        ({"X": np.full((150, 2), np.nan)}, "NaN"),
        ({"groups": np.arange(150) % 2}, "groups holds 2 groups: at least 3"),
        ({"groups": [1, 2]}, "inconsistent numbers"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"n_repeats": 0}, "n_repeats must be at least 1"),
        ({"n_splits": 1}, "n_splits must be at least 2"),
        ({"groups": [None] * 150}, "groups has missing values"),
        ({"X": np.arange(300.0).reshape(150, 2) * 1e150}, "whose square is lost: scale the features"),
    ],
)
def test_bad_input(change, message):
    X, y = hidden()
    with pytest.raises(ValueError, match=message):
        compare(**({"X": X, "y": y} | change))
