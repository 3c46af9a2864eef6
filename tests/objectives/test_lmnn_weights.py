"""Weights of rows in the margins, against repeated rows whose copies are no neighbours."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin.objectives.candidates import target_neighbors
from nearkin.objectives.lmnn import large_margin

from .test_stochastic import N, finite_differences, problem, squares


def margin_of_repeated_rows(A, X, targets, codes, counts, mu):
    """LMNN's loss, triple by triple, for rows that are repeated: copies of a target are targets,
    and no copy of the row itself is.
    """
    origin = np.repeat(np.arange(N), counts)
    d = squares(X @ A.T)[np.ix_(origin, origin)]
    first = second = 0.0
    for i, row in enumerate(origin):
        for j in np.flatnonzero(np.isin(origin, targets[row]) & (origin != row)):
            first += d[i, j]
            second += np.maximum(0, 1 + d[i, j] - d[i, codes[origin] != codes[row]]).sum()
    return (1 - mu) * first + mu * second


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(4, 4), (2, 4)])
def test_margins_are_those_of_repeated_rows(shape, mu):
    (X, A, counts, _), codes = problem(shape), np.random.default_rng(1).integers(0, 3, N)
    codes[7] = 3  # alone in its class: without a target, but an impostor
    targets, others = target_neighbors(X, codes, 3), csr_array(codes[:, None] != codes)

    def margin(A, weights):
        return large_margin(A, X, targets, others, mu, weights)

    value, gradient = margin(A, counts)
    expected = margin_of_repeated_rows(A, X, targets, codes, counts, mu)
    assert value == pytest.approx(expected, rel=1e-10)
    numeric = finite_differences(lambda A: margin(A, counts), A)
    np.testing.assert_allclose(gradient, numeric, atol=1e-7 * np.abs(gradient).max())
    ones, plain = margin(A, np.ones(N)), margin(A, None)
    assert ones[0] == plain[0]
    np.testing.assert_array_equal(ones[1], plain[1])


def test_margins_without_the_rows_of_weight_0():
    (X, A, _, rng), codes = problem(), np.random.default_rng(1).integers(0, 3, N)
    weights = rng.uniform(0.5, 2, N) * (np.arange(N) % 4 > 0)
    there = np.flatnonzero(weights)
    targets = target_neighbors(X[there], codes[there], 3)
    of_all = np.repeat(np.arange(N)[:, None], 3, axis=1)  # its own number: no target
    of_all[there] = there[targets]
    others = csr_array(codes[:, None] != codes)
    value, gradient = large_margin(A, X, of_all, others, weights=weights)
    absent, slope = large_margin(
        A, X[there], targets, others[there][:, there], weights=weights[there]
    )
    assert value == pytest.approx(absent, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-10)
