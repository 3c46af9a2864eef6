"""The penalty on groups of columns of a map."""

import numpy as np
import pytest

from nearkin.objectives.linear_map import group_penalty
from nearkin.testing import check_gradient

groups = np.array([0, 1, 0, 2, 2, 2])
A = np.random.default_rng(0).normal(size=(3, 6))


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_gradient(power):
    check_gradient(lambda B: group_penalty(B, groups, power), A)


def test_definition():
    norms = [np.linalg.norm(A[:, groups == group]) for group in range(3)]
    expected = 3 ** (1 - 2 / 1.5) * sum(norm**1.5 for norm in norms) ** (2 / 1.5)
    np.testing.assert_allclose(group_penalty(A, groups)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_groups_of_one_norm_have_the_squared_norm(power):
    equal = np.hstack(
        [A[:, groups == group] / np.linalg.norm(A[:, groups == group]) for group in range(3)]
    )
    np.testing.assert_allclose(group_penalty(equal, np.sort(groups), power)[0], np.sum(equal**2))
    # of the same squared norm, few groups cost less
    assert group_penalty(A, groups, power)[0] < np.sum(A**2)


def test_power_two_is_the_squared_norm():
    value, gradient = group_penalty(A, groups, 2.0)
    np.testing.assert_allclose(value, np.sum(A**2))
    np.testing.assert_allclose(gradient, 2 * A, rtol=1e-6)


def test_a_map_of_zeros_has_a_gradient():
    value, gradient = group_penalty(np.zeros((2, 6)), groups)
    assert value < 1e-15
    assert not gradient.any()
