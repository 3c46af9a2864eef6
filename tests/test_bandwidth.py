"""The typical distance of neighbours, and the perplexity that defines it."""

import numpy as np
import pytest

from nearkin import NCA
from nearkin.bandwidth import nearest_squares, perplexity, unit_distance


@pytest.mark.parametrize("n", [30, 1500])
def test_the_typical_distance_has_a_perplexity_of_ten(n):
    X = np.random.default_rng(0).normal(size=(n, 6)) * [1e3, 1, 1, 1, 1, 1e-3]
    near = nearest_squares(X / unit_distance(X))
    assert perplexity(near) == pytest.approx(10, rel=1e-3)


def test_of_few_rows_half_are_neighbours():
    X = np.random.default_rng(0).normal(size=(8, 2))
    assert perplexity(nearest_squares(X / unit_distance(X))) == pytest.approx(4, rel=1e-3)


def test_the_typical_distance_of_float32_rows_does_not_depend_on_their_order():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 5)) + 1e4).astype(np.float32)
    units = [unit_distance(rows, 50) for rows in (X, X[rng.permutation(300)])]
    assert units[0] == pytest.approx(units[1], rel=1e-12)


def test_duplicates():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 200, axis=0)
    assert np.isfinite(unit_distance(X))
    NCA().fit(X, np.arange(1000) // 200 % 2)
