"""Weights of rows in the objectives of descents, against repeated rows whose copies are no neighbours."""

from itertools import combinations

import numpy as np
import pytest

from nearkin.objectives import stochastic
from nearkin.objectives.candidates import Candidates, Minibatch, mass_among_candidates
from nearkin.objectives.nca import nca_objective, pair_cost
from nearkin.objectives.stochastic import SameClass, TargetKernel

N = 30


def problem(shape=(2, 4)):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    counts = rng.integers(1, 5, N)
    return X - X.mean(axis=0), rng.normal(size=shape) / 2, counts, rng


def similar_rows(target):
    """Return pair weights for weights of rows, and the matrix w_ij."""
    if target == "classes":
        codes = np.random.default_rng(1).integers(0, 3, N)
        codes[7] = 3  # alone in its class, whatever its weight
        return lambda weights: SameClass(codes, weights), (codes[:, None] == codes) * 1.0
    y = np.random.default_rng(2).normal(size=N)
    return (
        lambda weights: TargetKernel(y, 0.5, weights),
        np.exp(-((y[:, None] - y) ** 2) / (2 * 0.5**2)),
    )


def squares(Z):
    return np.sum((Z[:, None] - Z) ** 2, axis=2)


def outer_products(G, A, X):
    """Return `2 A sum_ij G_ij x_ij x_ij'`; of a diagonal map, its diagonal."""
    T = G + G.T
    S = X.T @ (np.diag(T.sum(axis=1)) - T) @ X
    return 2 * A * np.diag(S) if A.ndim == 1 else 2 * A @ S


def of_repeated_rows(objective, A, X, similar, counts):
    """Eqs. 1 to 7 for rows that are repeated, without draws among the copies of a row."""
    origin = np.repeat(np.arange(len(X)), counts)
    X = X[origin]
    P = np.exp(-squares(X * A if A.ndim == 1 else X @ A.T)) * (origin[:, None] != origin)
    P /= P.sum(axis=1, keepdims=True)
    R = P * similar[origin][:, origin]
    q = R.sum(axis=1, keepdims=True)
    possible = q[:, 0] > 0
    R[possible] /= q[possible]
    G = (P - R) * (q if objective == "expected_accuracy" else possible[:, None])
    value = q.sum() if objective == "expected_accuracy" else np.log(q[possible]).sum()
    return value, outer_products(G, A, X)


def finite_differences(function, A):
    numeric = np.empty_like(A)
    for at in np.ndindex(A.shape):
        step = np.zeros_like(A)
        step[at] = 1e-5
        numeric[at] = (function(A + step)[0] - function(A - step)[0]) / 2e-5
    return numeric


every_case = pytest.mark.parametrize(
    ("objective", "shape", "target"),
    [
        ("expected_accuracy", (4, 4), "classes"),
        ("log_likelihood", (2, 4), "classes"),
        ("expected_accuracy", (4,), "targets"),
        ("log_likelihood", (2, 4), "targets"),
    ],
)


@every_case
class TestNeighbors:
    def test_among_all_are_repeated_rows(self, objective, shape, target, monkeypatch):
        monkeypatch.setattr(stochastic, "TILE_ROWS", 7)
        (X, A, counts, _), (pair_weights, similar) = problem(shape), similar_rows(target)
        value, gradient = nca_objective(objective, A, X, pair_weights(counts.astype(float)))
        repeated, slope = of_repeated_rows(objective, A, X, similar, counts)
        assert value == pytest.approx(repeated, rel=1e-10)
        np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-10)

    def test_all_rows_as_candidates_are_repeated_rows(self, objective, shape, target):
        (X, A, counts, rng), (pair_weights, similar) = problem(shape), similar_rows(target)
        repeated, slope = of_repeated_rows(objective, A, X, similar, counts)
        some = np.array([rng.permutation(np.delete(np.arange(N), i))[:6] for i in range(N)])
        for near in (some, np.empty((N, 0), int)):
            candidates = Candidates(near, rng.permutation(N), N)
            value, gradient = nca_objective(
                objective, A, X, pair_weights(counts.astype(float)), candidates
            )
            assert value == pytest.approx(repeated, rel=1e-10)
            np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-10)

    def test_far_rows_stand_for_others_of_their_weight(self, objective, shape, target):
        (X, A, _, rng), (pair_weights, similar) = problem(shape), similar_rows(target)
        weights = rng.gamma(0.5, size=N)
        near = np.array([rng.permutation(np.delete(np.arange(N), i))[:5] for i in range(N)])
        candidates = Candidates(near, np.arange(0, N, 3), N)
        E = np.exp(-squares(X * A if A.ndim == 1 else X @ A.T)) * weights
        expected = 0.0
        for i in range(N):
            far = [j for j in candidates.far if j != i and j not in near[i]]
            share = np.zeros(N)
            share[near[i]], share[far] = 1.0, (N - 1 - 5) / len(far)
            q = np.sum(share * similar[i] * E[i]) / np.sum(share * E[i])
            term = q if objective == "expected_accuracy" else np.log(q) if q > 0 else 0.0
            expected += weights[i] * term

        def function(A):
            return nca_objective(objective, A, X, pair_weights(weights), candidates)

        value, gradient = function(A)
        assert value == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(gradient, finite_differences(function, A), rtol=1e-6, atol=1e-7)

    def test_parts_of_the_anchors_add_up(self, objective, shape, target):
        (X, A, counts, rng), (pair_weights, _) = problem(shape), similar_rows(target)
        pair_weights = pair_weights(counts.astype(float))
        near = np.array([rng.permutation(np.delete(np.arange(N), i))[:5] for i in range(N)])
        far, total = np.arange(0, N, 3), 0.0
        for anchors in np.array_split(rng.permutation(N), 4):
            part = Minibatch.of(anchors, near[anchors], far, N)
            weights = pair_weights.subset(part.rows)
            total += nca_objective(objective, A, X[part.rows], weights, part)[0]
        whole = nca_objective(objective, A, X, pair_weights, Candidates(near, far, N))[0]
        assert total == pytest.approx(whole, rel=1e-12)

    def test_single_precision(self, objective, shape, target):
        (X, A, _, rng), (pair_weights, _) = problem(shape), similar_rows(target)
        pair_weights = pair_weights(10.0 ** rng.uniform(-3, 3, N))
        value, gradient = nca_objective(objective, A, X, pair_weights)
        single, slope = nca_objective(
            objective, A.astype(np.float32), X.astype(np.float32), pair_weights
        )
        assert single == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(slope, gradient, atol=1e-4 * np.abs(gradient).max())


def of_repeated_pairs(A, X, pairs, weights, counts):
    """Eq. 8 for rows that are repeated, with pairs of all their copies, without those of a row."""
    origin = np.repeat(np.arange(N), counts)
    E = np.exp(-squares(X[origin] @ A.T)) * (origin[:, None] != origin)
    G = E / E.sum()
    cost = 0.0
    for (a, b), w in zip(pairs, weights, strict=True):
        cost -= w * counts[a] * counts[b] * np.log(np.exp(-np.sum((A @ (X[a] - X[b])) ** 2)))
    total = weights @ (counts[pairs[:, 0]] * counts[pairs[:, 1]])
    slope = -total * outer_products(G, A, X[origin])
    for (a, b), w in zip(pairs, weights, strict=True):
        x = X[a] - X[b]
        slope += 2 * w * counts[a] * counts[b] * np.outer(A @ x, x)
    return cost + total * np.log(E.sum()), slope


@pytest.mark.parametrize("exact", [True, False])
def test_pair_cost_is_that_of_repeated_rows(exact):
    X, A, counts, rng = problem()
    pairs, weights = rng.integers(0, N, (12, 2)), rng.random(12)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weights = weights[: len(pairs)]
    repeated, slope = of_repeated_pairs(A, X, pairs, weights, counts)
    candidates = None if exact else Candidates(np.empty((N, 0), int), rng.permutation(N), N)
    of_pairs = weights * counts[pairs].prod(axis=1)
    value, gradient = pair_cost(A, X, pairs, of_pairs, candidates, counts.astype(float))
    assert value == pytest.approx(repeated, rel=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())


def test_far_rows_are_right_in_the_mean_over_draws():
    """Over all draws of two of nine rows, whatever their weights: no ratio of sums is taken."""
    rng = np.random.default_rng(0)
    Z, weights = rng.normal(size=(9, 2)), rng.gamma(0.3, size=9)
    E = weights[:, None] * weights * np.exp(-squares(Z))
    exact = E.sum() - np.trace(E)
    none = np.empty((9, 0), int)
    draws = [Candidates(none, np.array(far), 9) for far in combinations(range(9), 2)]
    found = [mass_among_candidates(Z, draw, weights) for draw in draws]
    assert np.mean([value for value, _ in found]) == pytest.approx(exact, rel=1e-10)
    _, gradient = mass_among_candidates(Z, Candidates(none, np.arange(9), 9), weights)
    np.testing.assert_allclose(np.mean([G for _, G in found], axis=0), gradient, atol=1e-10)
