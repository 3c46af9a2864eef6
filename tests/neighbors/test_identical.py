"""Equal rows have one code, whatever holds them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin.neighbors.twins import (
    identical_rows,
    twin_groups,
)


def same_partition(a, b):
    return len(np.unique(a)) == len(np.unique(b)) == len(np.unique(np.column_stack([a, b]), axis=0))


def normal(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


@pytest.mark.parametrize(
    "container",
    [
        np.asarray,
        np.float32,
        np.float16,
        np.int64,
        csr_array,
        lambda X: csr_array(X, dtype=np.float32),
    ],
)
def test_identical_rows_are_found_in_any_container(container):
    original = np.random.default_rng(0).permutation(np.repeat(np.arange(60), 3))
    X = np.round(3 * normal(60, 12))[original]
    assert same_partition(identical_rows(container(X)), original)
    assert same_partition(twin_groups(container(X)), original)


def test_stored_zeros_and_negative_zeros_are_zeros():
    X = csr_array(
        (np.array([0.0, 1.0, 1.0, -0.0]), np.array([0, 1, 1, 0]), np.array([0, 2, 3, 4])),
        shape=(3, 2),
    )
    np.testing.assert_array_equal(identical_rows(X), [0, 0, 1])
    assert X.nnz == 4
    np.testing.assert_array_equal(
        identical_rows(np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 0.0]])), [0, 0, 1]
    )
