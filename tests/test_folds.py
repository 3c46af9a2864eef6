import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from nearkin.folds import best_setting, inner_folds, sample_rows


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


class TestFolds:
    def test_every_row_is_tested_once_and_every_fold_has_its_share_of_each_class(self):
        X, y = wine()
        folds = inner_folds(X, y)
        np.testing.assert_array_equal(
            np.sort(np.concatenate([test for _, test in folds])), np.arange(len(y))
        )
        for train, test in folds:
            np.testing.assert_array_equal(np.union1d(train, test), np.arange(len(y)))
            assert len(train) + len(test) == len(y)
            np.testing.assert_allclose(np.bincount(y[test]), np.bincount(y) / 5, atol=1)

    def test_single_and_unlabelled_rows_are_in_every_training_part(self):
        X = np.random.default_rng(0).normal(size=(9, 2))
        y = np.array([0, 1, 1, 2, 2, 2, -1, -1, -1])
        folds = inner_folds(X, y)
        assert sorted(np.concatenate([test for _, test in folds])) == [1, 2, 3, 4, 5]
        assert all(set(y[train]) == {-1, 0, 1, 2} for train, _ in folds)
        assert inner_folds(X[:3], np.arange(3)) == []
        assert len(inner_folds(X[:2], np.zeros(2))) == 2

    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_neither_order_nor_names_nor_rotation_matter(self, container):
        X, y = wine()
        X[np.abs(X) < 0.3] = 0
        order = np.random.default_rng(0).permutation(len(y))
        Q = np.linalg.qr(np.random.default_rng(1).normal(size=(13, 13)))[0]
        for Z, labels in [(container(X), y), (container(X), (y + 1) % 3), (X @ Q + 5, y)]:
            expected = {frozenset(test) for _, test in inner_folds(X, y)}
            assert {
                frozenset(order[test]) for _, test in inner_folds(Z[order], labels[order])
            } == expected
        expected = sample_rows(X, y, 60)
        np.testing.assert_array_equal(np.sort(order[sample_rows(X[order], y[order], 60)]), expected)

    def test_single_precision_rows_far_from_the_origin(self):
        rng = np.random.default_rng(0)
        X, y = (rng.normal(size=(300, 5)) + 1e4).astype(np.float32), np.arange(300) % 3
        order = rng.permutation(300)
        expected = {frozenset(test) for _, test in inner_folds(X.astype(float), y)}
        for rows in (np.arange(300), order):
            folds = inner_folds(X[rows], y[rows])
            assert {frozenset(rows[test]) for _, test in folds} == expected

    def test_a_sample_has_its_share_of_large_classes_and_ten_of_small_ones(self):
        y = np.repeat([0, 1, 2, 3], [5000, 3000, 15, 3])
        X = np.random.default_rng(0).normal(size=(len(y), 2))
        rows = sample_rows(X, y, 1000)
        np.testing.assert_array_equal(np.bincount(y[rows]), [556, 334, 15, 3])
        assert len(np.unique(rows)) == len(rows)
        assert abs(np.linalg.norm(X[rows], axis=1).mean() - np.linalg.norm(X, axis=1).mean()) < 0.02
        np.testing.assert_array_equal(sample_rows(X[:50], y[:50]), np.arange(50))


def test_the_first_setting_within_one_standard_error_of_the_best():
    best = np.array([0.8, 0.9, 1.0])  # standard error 0.1 / sqrt(3)
    for below, chosen in [(0.05, 0), (0.06, 1)]:
        assert best_setting([best - below, best - 0.057, best, best - 0.01]) == chosen
    assert best_setting([best, best]) == 0
    assert best_setting([best - 0.2, best]) == 1
