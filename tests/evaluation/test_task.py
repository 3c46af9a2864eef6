"""Classes and numbers: what differs between the two, and a comparison that predicts numbers."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import DNE
from nearkin.evaluation import (
    RAW,
    REGRESSION,
    Method,
    compare,
    confusion,
    corrected_resampled_t_test,
    default_methods,
    held_out_map,
    score_by_dimension,
)
from nearkin.evaluation.protocol import Protocol
from nearkin.evaluation.task import named_task


def hidden(n=120, p=20, seed=0):
    """Return numbers that follow one direction of many features: raw k-NN drowns in the others, PCA does not."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=n)
    X = rng.normal(size=(n, p))
    X[:, : p // 2] = t[:, None] + 0.3 * rng.normal(size=(n, p // 2))
    return X, 3 * t + 0.1 * rng.normal(size=n) + 100


class _Correlated(TransformerMixin, BaseEstimator):
    """The features times their correlation with y: a method that needs the real numbers."""

    def fit(self, X, y):
        assert y.dtype == np.float64
        self.n_features_in_ = X.shape[1]
        self.weights_ = np.corrcoef(X.T, y)[-1, :-1]
        return self

    def transform(self, X):
        return X * self.weights_**2


PCA_METHOD = next(method for method in default_methods("regression") if method.name == "PCA")
SUPERVISED = Method("correlated", _Correlated(), nested=False)


class TestKnownAnswers:
    def test_raw_is_plain_repeated_cross_validation_of_the_mean(self):
        X, y = hidden()
        comparison = compare(X, y, task="regression", methods=[], n_splits=4, n_repeats=2)
        model = make_pipeline(StandardScaler(), KNeighborsRegressor(3))
        expected = cross_val_score(model, X, y, cv=list(comparison.folds), scoring="r2")
        np.testing.assert_allclose(comparison[RAW].r2, expected, rtol=1e-12)
        errors = cross_val_score(model, X, y, cv=list(comparison.folds), scoring="neg_mean_absolute_error")
        np.testing.assert_allclose(comparison[RAW].mae, -errors, rtol=1e-12)
        assert len(comparison.folds) == 8

    def test_the_definition_of_both_scores(self):
        truth, predicted = np.array([1.0, 2, 6]), np.array([2.0, 2, 4])
        r2, mae = (metric(truth, predicted) for metric in REGRESSION.scores.values())
        assert r2 == pytest.approx(1 - (1 + 0 + 4) / (4 + 1 + 9))
        assert mae == pytest.approx((1 + 0 + 2) / 3) == mean_absolute_error(truth, predicted)

    def test_a_better_method_wins_and_is_fitted(self):
        X, y = hidden()
        comparison = compare(X, y, task="regression", methods=[PCA_METHOD], n_repeats=1)
        assert [result.name for result in comparison.results] == ["PCA", RAW]
        assert comparison["PCA"].status == "better"
        assert comparison.winner.score(X, y) > 0.95
        assert isinstance(comparison.winner[-1], KNeighborsRegressor)

    def test_none_is_a_possible_answer(self):
        X, y = hidden()
        comparison = compare(
            X, np.random.default_rng(1).permutation(y), task="regression", methods=[PCA_METHOD], n_repeats=1
        )
        assert comparison.best.name == RAW
        assert list(comparison.winner.named_steps) == ["scale", "vote"]

    def test_worse(self):
        X, y = hidden()
        noise = Method("noise", _Last(), nested=False)
        assert compare(X, y, task="regression", methods=[noise])["noise"].status == "worse"

    def test_a_method_is_given_the_numbers(self):
        comparison = compare(*hidden(), task="regression", methods=[SUPERVISED], n_repeats=1)
        assert comparison["correlated"].r2.mean() > comparison[RAW].r2.mean()
        assert comparison.skipped == comparison.reduced == {}

    def test_a_constant_shift_and_a_unit_change_no_r2(self):
        X, y = hidden()
        first, second = (
            compare(X, t, task="regression", methods=[PCA_METHOD], n_splits=2, n_repeats=1) for t in (y, 1000 * y - 5)
        )
        for name in ("PCA", RAW):
            np.testing.assert_allclose(first[name].r2, second[name].r2, rtol=1e-9)
            np.testing.assert_allclose(1000 * first[name].mae, second[name].mae, rtol=1e-9)

    def test_nothing_to_compare(self):
        comparison = compare(*hidden(), task="regression", methods=[], n_repeats=1)
        assert comparison.best.name == RAW

    @pytest.mark.slow
    def test_noise_is_hardly_ever_significant(self):
        statuses = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
            statuses.append(compare(X, y, task="regression", n_repeats=2)["PCA"].status)
        assert sum(status != "unclear" for status in statuses) <= 4


class _Last(TransformerMixin, BaseEstimator):
    """A feature that says nothing."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X[:, -1:]


class TestProtocol:
    def protocol(self, X, y, groups=None):
        return Protocol(X, y, groups, 3, True, 0, REGRESSION)

    def test_every_repeat_holds_every_row_out_once_in_folds_of_equal_size(self):
        folds = self.protocol(*hidden(n=52)).folds(5, 2)
        assert [len(test) for _, test in folds[:5]] == [11, 11, 10, 10, 10]
        for repeat in (folds[:5], folds[5:]):
            np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in repeat])), np.arange(52))
        assert not np.array_equal(folds[0][1], folds[5][1])

    def test_groups_stay_on_one_side_and_are_drawn_anew(self):
        X, y = hidden()
        groups = np.arange(120) // 6
        protocol = self.protocol(X, y, groups)
        folds = protocol.folds(5, 2)
        inner = protocol.inner_folds(folds[0][0])
        assert len(inner) == 3
        assert all(not set(groups[train]) & set(groups[test]) for train, test in [*folds, *inner])
        assert set(groups[folds[0][1]]) != set(groups[folds[5][1]])
        comparison = compare(X, y, task="regression", groups=[f"city {g}" for g in groups], methods=[], n_repeats=1)
        assert len(comparison.folds) == 5

    def test_choices_are_made_without_the_held_out_rows(self):
        X, y = hidden()
        method = PCA_METHOD
        train, test = self.protocol(X, y).folds(5, 1)[0]
        chosen = self.protocol(X, y).choose(method, train)
        spoilt, wrong = X.copy(), y.copy()
        spoilt[test], wrong[test] = 1e6, -1e6
        assert self.protocol(spoilt, wrong).choose(method, train) == chosen
        assert chosen == {"n_components": 1}

    def test_the_order_of_rows_changes_no_score_of_a_fold(self):
        X, y = hidden()
        protocol = self.protocol(X, y)
        train, test = protocol.folds(5, 1)[0]
        order = np.random.default_rng(1).permutation(len(y))
        place = np.argsort(order)
        turned = self.protocol(X[order], y[order])
        for method in default_methods("regression"):
            expected = protocol.curve(method, {}, train, test)
            found = turned.curve(method, {}, place[train], place[test])
            assert found.keys() == expected.keys()
            np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9)

    def test_same_seed_same_answer(self):
        first, second = (
            compare(*hidden(n=60, p=6), task="regression", n_splits=2, n_repeats=1, random_state=3) for _ in range(2)
        )
        np.testing.assert_array_equal(first["PCA"].r2, second["PCA"].r2)

    def test_few_rows_reduce_the_folds_and_the_vote_visibly(self):
        X, y = hidden(n=6)
        comparison = compare(X, y, task="regression")
        assert comparison.reduced == {
            "n_splits": (5, "R² needs two rows in every fold, and there are 6"),
            "n_neighbors": (3, "a fold leaves 2 rows to learn from"),
        }
        assert [len(test) for _, test in comparison.folds] == [2] * 9

    def test_the_fewest_rows(self):
        X, y = hidden(n=4)
        comparison = compare(X, y, task="regression")
        assert len(comparison.results) == 4
        assert np.isfinite(comparison[RAW].r2).all()

    def test_few_groups_reduce_the_folds_visibly(self):
        X, y = hidden(n=40)
        comparison = compare(X, y, task="regression", groups=np.arange(40) % 3, n_repeats=1)
        assert comparison.reduced == {"n_splits": (5, "there are 3 groups")}

    def test_a_fold_without_spread_is_refused(self):
        X, _ = hidden(n=40)
        groups = np.arange(40) // 10
        with pytest.raises(
            ValueError, match=r"y is 2 in all 10 held-out rows of fold \d, where R² has no meaning: give"
        ):
            compare(X, groups.astype(float) * 2 % 6, task="regression", groups=groups)

    def test_inner_folds_without_spread_are_left_out(self):
        X, y = hidden(n=60)
        groups = np.arange(60) // 20
        y[groups == 1] = 7.0
        inner = self.protocol(X, y, groups).inner_folds(np.arange(60))
        assert [np.unique(groups[test]).tolist() for _, test in inner if 1 in groups[test]] == []
        assert len(inner) == 2

    def test_targets_that_are_mostly_zero(self):
        X, _ = hidden(n=60)
        y = np.zeros(60)
        y[::4] = np.arange(1, 16)
        comparison = compare(X, y, task="regression", methods=[PCA_METHOD], n_repeats=1)
        assert all(np.isfinite(result.r2).all() for result in comparison.results)

    def test_sparse_rows(self):
        X, y = hidden()
        sparse = np.where(np.abs(X) > 0.5, X, 0)
        dense, found = (
            compare(rows, y, task="regression", methods=[], scale=False, n_repeats=1)
            for rows in (sparse, csr_array(sparse))
        )
        np.testing.assert_allclose(found[RAW].r2, dense[RAW].r2, rtol=1e-9)

    def test_a_method_of_classes_is_skipped_with_its_reason(self):
        comparison = compare(*hidden(), task="regression", methods=[Method("DNE", DNE())], n_repeats=1)
        assert comparison.skipped["DNE"].startswith("Unknown label type: continuous")

    def test_budgets_know_the_rows(self):
        seen = []
        mine = Method("mine", PCA(), memory=lambda sizes: seen.append(sizes) or 1e30)
        comparison = compare(*hidden(), task="regression", methods=[mine], n_repeats=1)
        assert [sizes.tolist() for sizes in seen] == [[96]]
        assert comparison.skipped["mine"].startswith("a fit needs about")


class TestResolution:
    def test_a_rotation_is_no_difference(self):
        """All principal components: the same neighbours, but for rounding."""
        X, y = hidden()
        whole = Method("PCA", PCA(), lambda p: [{"n_components": p}], nested=False)
        result = compare(X, y, task="regression", methods=[whole], scale=False)["PCA"]
        assert abs(result.difference) < 1e-9
        assert result.p_value == pytest.approx(1, abs=1e-3)

    def test_half_the_error_in_every_fold_is_more_than_luck_however_small_it_was(self):
        assert corrected_resampled_t_test(np.full(15, 0.005), 80, 20, 0.01 / 20) < 1e-6
        assert corrected_resampled_t_test(np.zeros(15), 80, 20, 1e-9) == 1

    def test_by_default_a_row_of_an_accuracy(self):
        d = np.array([0.0, 0.01, 0.0])
        assert corrected_resampled_t_test(d, 80, 20) == corrected_resampled_t_test(d, 80, 20, 1 / 20)


class TestViews:
    def test_score_by_dimension(self):
        X, y = hidden(p=8)
        comparison = compare(X, y, task="regression", n_splits=3, n_repeats=2)
        curves = score_by_dimension(comparison, X, y)
        assert list(curves["PCA"]) == [1, 2, 3, 5, 7, 8]
        train, test = comparison.folds[0]
        by_hand = make_pipeline(StandardScaler(), PCA(3), KNeighborsRegressor(3)).fit(X[train], y[train])
        assert curves["PCA"][3][0] == pytest.approx(by_hand.score(X[test], y[test]))
        np.testing.assert_allclose(curves["PCA"][8], curves[RAW][8])

    def test_held_out_map(self):
        X, y = hidden()
        train, test = np.arange(0, 120, 2), np.arange(1, 120, 2)
        seen = held_out_map(PCA(2), X, y, (train, test), 3, task="regression")
        errors = y[test] - y[seen.neighbors].mean(axis=1)
        assert seen.score == pytest.approx(1 - np.sum(errors**2) / np.sum((y[test] - y[test].mean()) ** 2))

    def test_numbers_are_not_confused(self):
        X, y = hidden()
        comparison = compare(X, y, task="regression", methods=[], n_repeats=1)
        with pytest.raises(ValueError, match="confusion counts classes, and this is a regression"):
            confusion(comparison[RAW], comparison, y)

    def test_scores_have_names(self):
        comparison = compare(*hidden(), task="regression", methods=[], n_repeats=1)
        with pytest.raises(AttributeError, match="a regression has no accuracy: take r2 or mae"):
            _ = comparison[RAW].accuracy
        with pytest.raises(AttributeError, match="no balanced_accuracy"):
            _ = comparison[RAW].balanced_accuracy
        classes = compare(hidden()[0], np.arange(120) % 2, methods=[], n_repeats=1)
        with pytest.raises(AttributeError, match="a classification has no r2: take accuracy or balanced_accuracy"):
            _ = classes[RAW].r2
        with pytest.raises(AttributeError, match="no mae"):
            _ = classes[RAW].mae

    def test_frame(self):
        pytest.importorskip("pandas")
        comparison = compare(*hidden(), task="regression", methods=[], n_repeats=1)
        frame = comparison.to_frame()
        assert frame.columns[1:5].tolist() == ["r2", "r2_std", "mae", "mae_std"]
        assert frame.loc[0, "r2"] == comparison.results[0].r2.mean()


X, Y = hidden(n=20)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 20, "y holds no numbers but <U1: convert them, or take task='classification'"),
        ([1.0, "x", *range(18)], "no numbers but <U"),
        (np.array([1.0, "x", *range(18)], dtype=object), "y holds no numbers but <U"),
        ([None] * 17 + [1, 2, 3], "y has 3 numbers: regression needs at least 4"),
        ([None, *range(18), "x"], "y holds no numbers but <U"),
        ([*range(19), float("-inf")], "y is infinite in 1 rows"),
        ([True, False] * 10, "y holds no numbers but bool"),
        (np.arange(20) * 1j, "no numbers but complex|Complex"),
        (np.arange(20).astype("datetime64[D]"), "no numbers but datetime64"),
        ([3] * 20, "y does not vary: all its values are 3"),
        (1e9 + np.arange(20) * 1e-9, "y does not vary"),
        (np.arange(20) * 1e150, "whose square is lost: scale it first"),
        (np.arange(20) * 1e-150, "whose square is lost: scale it first"),
        ([1.0, 2.0], "inconsistent numbers"),
        (np.zeros((20, 2)), "y should be a 1d array"),
    ],
)  # fmt: skip
def test_targets_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        compare(X, y, task="regression")


def test_too_few_rows():
    with pytest.raises(ValueError, match="y has 3 numbers: regression needs at least 4"):
        compare(X[:3], Y[:3], task="regression")


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float16, np.float32, object])
def test_numbers_of_any_type(kind):
    y = np.arange(20).astype(kind)
    comparison = compare(X, y, task="regression", methods=[], n_repeats=1)
    np.testing.assert_array_equal(
        comparison[RAW].r2, compare(X, np.arange(20.0), task="regression", methods=[], n_repeats=1)[RAW].r2
    )


def test_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    assert REGRESSION.check_target(pd.Series(range(9), dtype="Int64")).tolist() == list(range(9))
    np.testing.assert_equal(REGRESSION.check_target(pd.Series([None, *range(9)], dtype="Int64")), [np.nan, *range(9)])


def test_classes_that_are_numbers_name_the_remedy():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        compare(X, np.linspace(0, 1, 20), n_repeats=1)
    with pytest.raises(ValueError, match=r"class 0 has a single row.*or predict numbers by task='regression'"):
        compare(X, np.arange(20))


def test_tasks_have_names():
    assert named_task("regression") is REGRESSION
    with pytest.raises(ValueError, match="task must be one of 'classification', 'regression', got 'ranking'"):
        compare(X, Y, task="ranking")
