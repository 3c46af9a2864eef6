"""Classes and numbers: what differs between the two, and a comparison that predicts numbers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import DNE
from nearkin.comparison import (
    CHOICE,
    RAW,
    REGRESSION,
    SCORES,
    Method,
    Vote,
    all_methods,
    compare,
    confusion,
    default_references,
    first_map,
    held_out_map,
    score_by_dimension,
)
from nearkin.comparison.contestants import MapWithVote, contestant
from nearkin.comparison.protocol import Fold
from nearkin.comparison.scores import named_task
from nearkin.statistics import corrected_resampled_t_test
from nearkin.tables import learn_target

from .tables import QUICK, LastFeature, protocol_of


def hidden(n=120, p=20, seed=0):
    """Return numbers that follow one direction of many features: raw k-NN drowns in the others, PCA
    does not.
    """
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


PCA_METHOD = next(method for method in all_methods("regression") if method.name == "PCA")


def quick(X, y, methods=(PCA_METHOD,), **options):
    """Compare for numbers on few folds, by the mean of 3 neighbours, without references or a
    winner.
    """
    return compare(X, y, **({"task": "regression", "methods": list(methods)} | QUICK | options))


SUPERVISED = Method("correlated", _Correlated(), nested=False)


class TestKnownAnswers:
    def test_raw_is_plain_repeated_cross_validation_of_the_mean(self):
        X, y = hidden()
        comparison = quick(X, y, [], n_splits=4, n_repeats=2)
        model = make_pipeline(StandardScaler(), KNeighborsRegressor(3))
        expected = cross_val_score(model, X, y, cv=list(comparison.folds), scoring="r2")
        np.testing.assert_allclose(comparison.raw.score, expected, rtol=1e-12)
        errors = cross_val_score(
            model, X, y, cv=list(comparison.folds), scoring="neg_mean_absolute_error"
        )
        np.testing.assert_allclose(comparison.raw.scores["mae"], -errors, rtol=1e-12)
        assert (len(comparison.folds), comparison.n_repeats, comparison.score.name) == (8, 2, "r2")

    @pytest.mark.long
    def test_a_better_method_wins_and_is_fitted(self):
        X, y = hidden()
        comparison = quick(X, y, n_splits=5, refit=True)
        assert [result.name for result in comparison.results] == [CHOICE, "PCA", RAW]
        assert comparison["PCA"].status == "better"
        assert comparison.winner_method == "PCA"
        assert comparison["PCA"].status == "better"
        assert comparison.winner.score(X, y) > 0.95
        assert isinstance(comparison.winner[-1], KNeighborsRegressor)

    def test_none_is_a_possible_answer(self):
        X, y = hidden()
        comparison = quick(X, np.random.default_rng(1).permutation(y))
        assert not any(result.status == "better" for result in comparison.results)

    def test_worse(self):
        X, y = hidden()
        noise = Method("noise", LastFeature(), nested=False)
        assert quick(X, y, [noise])["noise"].status == "worse"

    def test_a_method_is_given_the_numbers(self):
        comparison = quick(*hidden(), [SUPERVISED])
        assert comparison["correlated"].score.mean() > comparison.raw.score.mean()
        assert comparison.skipped == comparison.reduced == {}

    def test_a_constant_shift_and_a_unit_change_no_r2(self):
        X, y = hidden()
        first, second = (quick(X, t, n_splits=2) for t in (y, 1000 * y - 5))
        for name in ("PCA", RAW):
            np.testing.assert_allclose(first[name].score, second[name].score, rtol=1e-9)
            np.testing.assert_allclose(
                1000 * first[name].scores["mae"], second[name].scores["mae"], rtol=1e-9
            )

    @pytest.mark.long
    @pytest.mark.parametrize("score", SCORES["regression"])
    def test_each_score_ranks_and_chooses(self, score):
        worse = Method("last", LastFeature(), nested=False)
        comparison = quick(*hidden(), [PCA_METHOD, worse], score=score, n_repeats=2)
        assert [result.name for result in comparison.results] == [CHOICE, "PCA", RAW, "last"]
        assert comparison["last"].status == "worse"
        assert comparison["PCA"].sign * comparison["PCA"].difference > 0
        assert comparison.score.name == score

    def test_an_unknown_score(self):
        with pytest.raises(
            ValueError, match="score must be one of 'r2', 'mae', 'rank_correlation', got 'accuracy'"
        ):
            quick(*hidden(), score="accuracy")

    def test_references_know_the_mean_and_the_line(self):
        comparison = quick(*hidden(), [], references=default_references("regression")[:2])
        assert [reference.name for reference in comparison.references] == [
            "ridge regression",
            "mean",
        ]
        assert comparison["ridge regression"].score.mean() > 0.95
        assert comparison["mean"].score.mean() < 0.01

    def testsoft_votes_of_many_are_chosen_where_numbers_are_noisy(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 1))
        protocol = protocol_of(
            X, X[:, 0] + rng.normal(size=120), task=REGRESSION, votes=(Vote(3), Vote(25, soft=True))
        )
        assert contestant(Method(RAW, None)).choose(Fold(protocol, np.arange(120))).vote.soft

    @pytest.mark.long
    def test_noise_is_hardly_ever_significant(self):
        statuses = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
            statuses.append(quick(X, y, n_splits=5, n_repeats=2)["PCA"].status)
        assert sum(status != "unclear" for status in statuses) <= 3


class TestProtocol:
    def test_choices_are_made_without_the_held_out_rows(self):
        X, y = hidden()
        train, test = protocol_of(X, y, task=REGRESSION).folds(5, 1)[0][0]
        chosen = contestant(PCA_METHOD).choose(
            Fold(protocol_of(X, y, task=REGRESSION), train, test)
        )
        spoilt, wrong = X.copy(), y.copy()
        spoilt[test], wrong[test] = 1e6, -1e6
        assert (
            contestant(PCA_METHOD).choose(
                Fold(protocol_of(spoilt, wrong, task=REGRESSION), train, test)
            )
            == chosen
        )
        assert chosen.params == {"n_components": 1}

    def test_the_order_of_rows_changes_no_score_of_a_fold(self):
        X, y = hidden()
        protocol = protocol_of(X, y, task=REGRESSION)
        train, test = protocol.folds(5, 1)[0][0]
        order = np.random.default_rng(1).permutation(len(y))
        place = np.argsort(order)
        turned = protocol_of(X[order], y[order], task=REGRESSION)
        for method in [method for method in all_methods("regression") if not method.own_vote]:
            setting = method.settings(20)[0]
            votes, predictions = [Vote(3), Vote(25, soft=True)], []
            for fold in (Fold(protocol, train, test), Fold(turned, place[train], place[test])):
                found = MapWithVote(method).fit(fold, setting)
                predictions.append(fold.predictions(found.Z, found.queries, votes))
            np.testing.assert_allclose(*predictions, rtol=1e-9)

    @pytest.mark.long
    def test_same_seed_same_answer(self):
        first, second = (
            quick(*hidden(n=60, p=6), n_neighbors=None, random_state=3) for _ in range(2)
        )
        np.testing.assert_array_equal(first["PCA"].score, second["PCA"].score)
        assert first["PCA"].votes == second["PCA"].votes

    def test_few_rows_reduce_the_folds_visibly(self):
        comparison = quick(*hidden(n=6), n_splits=None)
        assert comparison.reduced["n_splits"] == (
            5,
            "R² needs two rows in every fold, and there are 6",
        )
        assert [len(test) for _, test in comparison.folds] == [2] * 3

    def test_few_groups_reduce_the_folds_visibly(self):
        comparison = quick(*hidden(n=40), n_splits=None, groups=np.arange(40) % 3)
        assert comparison.reduced == {"n_splits": (5, "there are 3 groups")}

    def test_a_fold_without_spread_is_refused(self):
        X, _ = hidden(n=40)
        groups = np.arange(40) // 10
        with pytest.raises(
            ValueError,
            match=r"y is 2 in all 10 held-out rows of fold \d, where R² has no meaning: give",
        ):
            quick(X, groups.astype(float) * 2 % 6, n_splits=None, groups=groups)

    def test_targets_that_are_mostly_zero(self):
        X, _ = hidden(n=60)
        y = np.zeros(60)
        y[::4] = np.arange(1, 16)
        comparison = quick(X, y)
        assert all(np.isfinite(result.score).all() for result in comparison.results)

    def test_sparse_rows(self):
        X, y = hidden()
        sparse = np.where(np.abs(X) > 0.5, X, 0)
        dense, found = (quick(rows, y, [], scale=False) for rows in (sparse, csr_array(sparse)))
        np.testing.assert_allclose(found.raw.score, dense.raw.score, rtol=1e-9)

    def test_a_method_of_classes_is_skipped_with_its_reason(self):
        comparison = quick(*hidden(), [Method("DNE", DNE())])
        assert comparison.skipped["DNE"].startswith("Unknown label type: continuous")

    def test_a_map_is_learned_from_a_sample_that_keeps_the_spread(self):
        comparison = quick(*hidden(), [replace(PCA_METHOD, most_rows=40)])
        assert comparison["PCA"].n_learned == 40
        assert comparison["PCA"].score.mean() > 0.9


class TestResolution:
    def test_a_rotation_is_no_difference(self):
        """All principal components: the same neighbours, but for rounding."""
        whole = Method("PCA", PCA(), lambda p: [{"n_components": p}], nested=False)
        result = quick(*hidden(), [whole], scale=False)["PCA"]
        assert abs(result.difference) < 1e-9
        assert result.p_value == pytest.approx(1, abs=1e-3)

    def test_half_the_error_in_every_fold_is_more_than_luck_however_small_it_was(self):
        assert corrected_resampled_t_test(np.full(15, 0.005), 80, 20, 0.01 / 20) < 1e-6
        assert corrected_resampled_t_test(np.zeros(15), 80, 20, 1e-9) == 1

    def test_by_default_a_row_of_an_accuracy(self):
        d = np.array([0.0, 0.01, 0.0])
        assert corrected_resampled_t_test(d, 80, 20) == corrected_resampled_t_test(
            d, 80, 20, 1 / 20
        )


class TestViews:
    @pytest.mark.long
    def test_score_by_dimension(self):
        X, y = hidden(p=8)
        comparison = quick(X, y, n_repeats=2)
        curves = score_by_dimension(comparison)
        assert list(curves["PCA"]) == [1, 2, 3, 5, 7, 8]
        train, test = comparison.folds[0]
        by_hand = make_pipeline(StandardScaler(), PCA(3), KNeighborsRegressor(3)).fit(
            X[train], y[train]
        )
        assert curves["PCA"][3][0] == pytest.approx(by_hand.score(X[test], y[test]))
        np.testing.assert_allclose(curves["PCA"][8], curves[RAW][8])

    def test_held_out_map(self):
        X, y = hidden()
        train, test = np.arange(0, 120, 2), np.arange(1, 120, 2)
        seen = held_out_map(PCA(2), X, y, (train, test), 3, task="regression")
        errors = y[test] - y[seen.neighbors].mean(axis=1)
        assert seen.score == pytest.approx(
            1 - np.sum(errors**2) / np.sum((y[test] - y[test].mean()) ** 2)
        )

    def test_first_map(self):
        X, y = hidden()
        comparison = quick(X, y, score="mae")
        seen = first_map(comparison, comparison["PCA"])
        assert seen.score == pytest.approx(
            np.abs(y[seen.rows] - y[seen.neighbors].mean(axis=1)).mean()
        )

    def test_numbers_are_not_confused(self):
        comparison = quick(*hidden(), [])
        with pytest.raises(ValueError, match="confusion counts classes, and this is a regression"):
            confusion(comparison.raw, comparison)

    def test_frame(self):
        pytest.importorskip("pandas")
        comparison = quick(*hidden(), [])
        frame = comparison.to_frame()
        assert frame.columns[:5].tolist() == ["method", "kind", "r2", "mae", "rank_correlation"]
        assert frame.loc[0, "r2"] == comparison.results[0].score.mean()


X, Y = hidden(n=20)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 20, "y holds <U1, not numbers: convert them, or take task='classification'"),
        ([1.0, "x", *range(18)], r"holds <U\d+, not numbers"),
        (np.array([1.0, "x", *range(18)], dtype=object), r"y holds <U\d+, not numbers"),
        ([None] * 17 + [1, 2, 3], "y has 3 numbers: regression needs at least 4"),
        ([None, *range(18), "x"], r"y holds <U\d+, not numbers"),
        ([*range(19), float("-inf")], "y is infinite in 1 row"),
        ([True, False] * 10, "y holds bool, not numbers"),
        (np.arange(20) * 1j, "holds complex128, not numbers|Complex"),
        (np.arange(20).astype("datetime64[D]"), r"holds datetime64\[.+\], not numbers"),
        ([3] * 20, r"y does not vary \(all 3.0\): at least two different"),
        (1e9 + np.arange(20) * 1e-9, "y does not vary"),
        (np.arange(20) * 1e150, "whose square overflows or underflows: scale it first"),
        (np.arange(20) * 1e-150, "whose square overflows or underflows: scale it first"),
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


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float16, np.float32, object])
def test_numbers_of_any_type(kind):
    y = np.arange(20).astype(kind)
    np.testing.assert_array_equal(
        quick(X, y, []).raw.score, quick(X, np.arange(20.0), []).raw.score
    )


def test_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    for given, numbers in ((range(9), range(9)), ([None, *range(9)], [np.nan, *range(9)])):
        y, _ = learn_target(pd.Series(given, dtype="Int64"), None, "regression")
        np.testing.assert_equal(y, [*numbers])


def test_classes_that_are_numbers_name_the_remedy():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        compare(X, np.linspace(0, 1, 20))
    with pytest.raises(
        ValueError, match=r"class 0 has a single row.*or predict numbers by task='regression'"
    ):
        compare(X, np.arange(20))


def test_tasks_have_names():
    assert named_task("regression") is REGRESSION
    with pytest.raises(
        ValueError, match="task must be one of 'classification', 'regression', got 'ranking'"
    ):
        compare(X, Y, task="ranking")
