"""Missing cells: filled and indicated inside the folds, and never by held-out rows."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import NMMP
from nearkin.comparison import (
    Method,
    Reference,
    all_methods,
    compare,
    confusion,
    first_map,
    held_out_map,
    n_with_twin,
    score_by_dimension,
    twin_groups,
)
from nearkin.comparison.contestants import MapWithVote
from nearkin.comparison.protocol import Fold
from nearkin.tables.gaps import Imputer

from ..tables.test_gaps import indicated_by_loops, with_gaps
from .tables import DNE_METHOD, FEW, FIXED, hidden, protocol_of, quick

LOGISTIC = Reference("logistic regression", LogisticRegression(), 100)


def by_hand(X, train, rows):
    """Return rows as the definition has them: standardized on the training rows, filled by their
    medians, indicated.
    """
    known = (X - np.nanmean(X[train], axis=0)) / np.nanstd(X[train], axis=0)
    gaps = np.isnan(known)
    indicated = indicated_by_loops(gaps[train])
    complete = np.where(gaps, np.nanmedian(known[train], axis=0), known)
    return np.column_stack([complete, gaps[:, indicated]])[rows]


class TestFolds:
    def test_rows_are_prepared_as_defined(self):
        X, y = with_gaps()
        train, test = protocol_of(X, y).folds(5, 1)[0][0]
        learned, queries = Fold(protocol_of(X, y), train, test).prepared
        np.testing.assert_allclose(learned, by_hand(X, train, train), atol=1e-12)
        np.testing.assert_allclose(queries, by_hand(X, train, test), atol=1e-12)
        # not of unit variance
        np.testing.assert_array_equal(learned[:, 6:], np.isnan(X[train])[:, [1, 3, 5]])

    def test_complete_rows_get_no_step(self):
        X, y = hidden()
        protocol = protocol_of(X, y)
        assert [name for name, _ in protocol.preprocessing()] == ["scale"]
        assert protocol_of(X, y, scale=False).preprocessing() == []
        train, test = protocol.folds(5, 1)[0][0]
        np.testing.assert_array_equal(
            Fold(protocol, train, test).prepared[1],
            StandardScaler().fit(X[train]).transform(X[test]),
        )

    def test_a_column_without_gaps_is_as_before(self):
        (X, y), (complete, _) = with_gaps(), hidden()
        train, test = protocol_of(X, y).folds(5, 1)[0][0]
        prepared, before = (
            Fold(protocol_of(rows, y), train, test).prepared for rows in (X, complete)
        )
        for rows, expected in zip(prepared, before, strict=True):
            np.testing.assert_array_equal(rows[:, [0, 2, 4]], expected[:, [0, 2, 4]])

    def test_held_out_rows_move_nothing(self):
        X, y = with_gaps()
        train, test = protocol_of(X, y).folds(5, 1)[0][0]
        spoilt = X.copy()
        spoilt[test[::2]], spoilt[test[1::2]] = 1e9, np.nan
        learned, expected = (
            Fold(protocol_of(rows, y), train, test).prepared[0] for rows in (spoilt, X)
        )
        np.testing.assert_array_equal(learned, expected)

    @pytest.mark.parametrize("scale", [True, False])
    def test_a_column_may_have_no_value_among_the_training_rows(self, scale):
        X, y = with_gaps()
        protocol = protocol_of(X, y, scale=scale)
        train, test = protocol.folds(5, 1)[0][0]
        X[train, 1] = np.nan
        with warnings.catch_warnings(action="error"):
            learned, queries = Fold(protocol, train, test).prepared
        assert np.isfinite(learned).all()
        assert np.isfinite(queries).all()
        assert not np.ptp(learned[:, 1])

    def test_float32_stays(self):
        X, y = with_gaps()
        assert (
            Fold(protocol_of(X.astype(np.float32), y), np.arange(100)).prepared[0].dtype
            == np.float32
        )


class TestComparison:
    def test_it_is_cross_validation_of_the_pipeline(self):
        X, y = with_gaps()
        comparison = quick(X, y, [], references=[LOGISTIC])
        for result, predictor in (
            (comparison.raw, KNeighborsClassifier(3)),
            (comparison["logistic regression"], LogisticRegression()),
        ):
            pipeline = make_pipeline(StandardScaler(), Imputer(), predictor)
            expected = cross_val_score(pipeline, X, y, cv=list(comparison.folds))
            np.testing.assert_array_equal(result.score, expected)

    def test_a_gap_that_tells_the_class_is_found(self):
        X, y = hidden(p=3)
        X[:, 0] = 1  # what remains is noise
        X[y == "yes", 1] = np.nan
        nmmp = Method("NMMP", NMMP(1), nested=False)
        assert quick(X, y, [nmmp], keep_twins=True)["NMMP"].score.mean() > 0.99

    @pytest.mark.long
    def test_the_winner_takes_rows_with_gaps(self):
        X, y = with_gaps()
        comparison = quick(X, y, [DNE_METHOD], refit=True)
        assert list(comparison.winner.named_steps) == ["scale", "impute", "map", "vote"]
        assert comparison.winner.score(X, y) > 0.95
        everything = np.full((1, 6), np.nan)
        assert comparison.winner.predict(everything)[0] in y
        assert comparison.winner.predict(np.ones((1, 6)))[0] in y

    def test_the_order_of_rows_means_nothing(self):
        X, y = with_gaps()
        order = np.random.default_rng(1).permutation(len(X))
        place = np.argsort(order)
        folds = protocol_of(X, y).folds(3, 1)[0]
        for train, test in folds:
            found = Fold(protocol_of(X, y), train, test).prepared[1]
            moved = Fold(protocol_of(X[order], y[order]), place[train], place[test]).prepared[1]
            np.testing.assert_allclose(moved, found, atol=1e-12)

    @pytest.mark.long
    def test_the_order_and_the_unit_of_features_mean_nothing(self):
        X, y = with_gaps()
        order = np.random.default_rng(1).permutation(6)
        found, moved = (quick(rows, y, [FIXED]) for rows in (X, 1000 * X[:, order] + 7))
        for name in ("raw k-NN", "DNE"):
            # a row at a tie
            np.testing.assert_allclose(moved[name].score, found[name].score, atol=0.021)
        np.testing.assert_array_equal(
            moved.protocol.missing_cells, found.protocol.missing_cells[order]
        )

    @pytest.mark.slow
    def test_rows_without_any_value(self):
        X, y = with_gaps()
        X[::10] = np.nan
        comparison = quick(X, y, [FIXED], refit=True)
        assert comparison.protocol.n_twins == 15  # alike, and so on one side of every split
        assert comparison["DNE"].score.mean() > 0.8

    @pytest.mark.long
    def test_views(self):
        X, y = with_gaps()
        comparison = quick(X, y, [DNE_METHOD])
        curves = score_by_dimension(comparison)
        assert curves["DNE"][1].mean() > 0.9
        seen = first_map(comparison, comparison["DNE"])
        mapping = comparison.mapping(comparison["DNE"], 2)
        again = held_out_map(mapping, X, y, comparison.folds[0], 3)
        np.testing.assert_allclose(np.abs(seen.embedding), np.abs(again.embedding), atol=1e-8)
        assert confusion(comparison.raw, comparison).sum() == len(X)
        assert first_map(comparison, comparison.raw).embedding.shape == (50, 2)

    def test_the_raw_features_have_a_curve_where_folds_differ_in_their_indicators(self):
        X, y = hidden(60)
        X[:8, 1] = np.nan  # in some folds fewer than five
        comparison = quick(X, y, [], n_splits=3)
        learned = [np.isnan(X[train, 1]).sum() >= 5 for train, _ in comparison.folds]
        assert len(set(learned)) == 2
        ((dimension, scores),) = score_by_dimension(comparison)["raw k-NN"].items()
        assert dimension == 7
        np.testing.assert_allclose(scores, comparison.raw.score[: len(scores)])

    @pytest.mark.slow
    def test_rows_without_a_label(self):
        X, y = with_gaps(90)
        partly = np.where(np.arange(90) % 3 > 0, y.astype(object), None)
        X[::3, 4] = np.nan  # of rows without a label alone
        pca = Method("PCA", PCA(2), nested=False, unlabelled=True)
        comparison = quick(X, partly, [FIXED, pca], groups=np.arange(90) // 5, n_splits=2)
        assert comparison.skipped == {}
        train, test = comparison.folds[0]
        split = Fold(comparison.protocol, train, test)
        np.testing.assert_allclose(
            split.prepared[1], by_hand(X, np.append(train, split.others), test), atol=1e-12
        )
        alone = MapWithVote(FIXED).fit(split, {}).steps[1][1]
        known = by_hand(X, train, test)  # no gap there in column 4
        assert alone.transform(X[test]).shape[1] == known.shape[1]

    def test_numbers(self):
        X, _ = with_gaps()
        target = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
        assert quick(X, target, [], task="regression").raw.score.mean() > 0.3

    def test_a_single_split_in_processes(self, monkeypatch):
        monkeypatch.setattr("nearkin.comparison.protocol.SPLIT_ROWS", 100)
        monkeypatch.setattr("nearkin.comparison.protocol.SPLIT_ROWS", 100)
        monkeypatch.setattr("nearkin.comparison.protocol.SPLIT_HELD_OUT", 40)
        X, y = with_gaps(300)
        comparison = compare(X, y, methods=[FIXED], references=[], n_neighbors=3)
        assert len(comparison.folds) == 1
        assert comparison["DNE"].score.mean() > 0.9

    @pytest.mark.long
    def test_all_default_methods_finish(self):
        X, y = with_gaps()
        comparison = compare(X, y, methods=all_methods(), n_splits=2, n_repeats=1)
        assert comparison.skipped == {}
        assert len(comparison.results) == len(all_methods()) + 1


class TestRefusals:
    def test_sparse_rows_with_gaps(self):
        X, y = with_gaps()
        with pytest.raises(
            ValueError, match="X is sparse and holds NaN: fill these cells, or pass dense rows"
        ):
            compare(csr_array(X), y, **FEW)

    def test_infinite_numbers(self):
        X, y = with_gaps()
        X[3, 3] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            compare(X, y, **FEW)

    def test_no_value_at_all(self):
        with pytest.raises(ValueError, match="X does not vary"):
            compare(np.full((20, 3), np.nan), np.arange(20) % 2, **FEW)

    def test_estimators_take_no_gaps(self):
        with pytest.raises(ValueError, match="NaN"):
            NMMP().fit(*with_gaps())


def test_twins_are_alike_in_what_is_missing():
    X = np.random.default_rng(0).normal(size=(100, 5))
    X[:40, 0] = np.nan
    twins = X[[3, 50, 60]]
    twins[1, 1] = np.nan  # known of row 50
    assert n_with_twin(twin_groups(X)) == 0
    groups = twin_groups(np.vstack([X, twins]))
    np.testing.assert_array_equal(groups[[100, 102]], groups[[3, 60]])
    assert n_with_twin(groups) == 4
