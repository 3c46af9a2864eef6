"""The bisection of the paper."""

import numpy as np
import pytest

from nearkin.estimators import NMMP
from reproductions.nmmp import experiments as nmmp
from reproductions.splits import Split


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestNMMP:
    def test_bisection_finds_the_optimum_within_its_bracket(self, rng):
        X, y = rng.normal(size=(60, 5)), np.repeat([0, 1, 2], 20)
        A, B = nmmp.scatters(Split(X, y, X, y))
        optimum = NMMP(2, shrinkage=None).fit(X, y).objective_
        low, high = nmmp.bracket(A, B, 2)
        assert low < optimum < high
        found, n_decompositions = nmmp.bisection(A, B, 2, 1e-6)
        assert abs(found - optimum) <= 0.5e-6
        assert n_decompositions == 2 + np.ceil(np.log2((high - low) / 1e-6))
