"""Splits of rows and labels."""

import numpy as np
import pytest

from reproductions.splits import Split, codes_of, of_each_class, some_labels


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_of_each_class(rng):
    y = np.repeat(["a", "b", "c"], [10, 20, 31])
    assert np.unique(y[of_each_class(y, 4, rng)], return_counts=True)[1].tolist() == [4, 4, 4]
    assert np.unique(y[of_each_class(y, 0.7, rng)], return_counts=True)[1].tolist() == [7, 14, 22]


def test_some_labels_leaves_no_class_without_one(rng):
    y = codes_of(np.repeat(["a", "b", "c"], [50, 48, 2]))
    for _ in range(5):
        few = some_labels(y, 0.1, rng)
        known = few >= 0
        assert known.sum() == 10
        assert set(few[known]) == {0, 1, 2}
        np.testing.assert_array_equal(few[known], y[known])


def test_split_parts_all_rows(rng):
    X = np.arange(10.0)[:, None]
    split = Split.of(X, np.arange(10), rng.permutation(10)[:4])
    assert sorted([*split.train[:, 0], *split.test[:, 0]]) == list(range(10))
    np.testing.assert_array_equal(split.train[:, 0], split.y_train)
    np.testing.assert_array_equal(split.mapped(lambda X: 2 * X).test[:, 0], 2 * split.y_test)


def test_leave_one_out_does_not_ask_the_row_itself():
    split = Split(
        np.array([[0.0], [1], [10], [12]]), np.array([0, 1, 2, 2]), np.array([[0.1]]), np.array([0])
    )
    assert split.leave_one_out(1) == 50
    assert split.accuracy(1) == 100
