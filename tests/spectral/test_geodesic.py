"""The weighted geometric mean: its formula, its equation, what it minimizes."""

import numpy as np
import pytest
from scipy.linalg import eigh, fractional_matrix_power, sqrtm

from nearkin.spectral import geometric_mean


def distance(A, B):
    """Return the Riemannian distance of two positive definite matrices."""
    return np.linalg.norm(np.log(eigh(B, A, eigvals_only=True)))


def definite(rng, p=4):
    A = rng.normal(size=(p, p))
    return A @ A.T + 0.1 * np.eye(p)


def metric(S, D, t):
    F = geometric_mean(S, D, t)[0]
    return F @ F.T


class TestGeodesic:
    @pytest.fixture
    def matrices(self):
        rng = np.random.default_rng(0)
        return definite(rng), definite(rng)

    @pytest.mark.parametrize("t", [0.0, 0.3, 0.5, 1.0])
    def test_formula(self, matrices, t):
        S, D = matrices
        root = sqrtm(S)
        inverse = np.linalg.inv(root)
        expected = inverse @ fractional_matrix_power(root @ D @ root, t) @ inverse
        np.testing.assert_allclose(metric(S, D, t), expected, atol=1e-9)
        assert geometric_mean(S, D, t)[1] == pytest.approx(distance(np.linalg.inv(S), D))

    def test_riccati_equation(self, matrices):
        S, D = matrices
        M = metric(S, D, 0.5)
        np.testing.assert_allclose(M @ S @ M, D, atol=1e-10)

    def test_ends(self, matrices):
        S, D = matrices
        np.testing.assert_allclose(metric(S, D, 0.0), np.linalg.inv(S), atol=1e-9)
        np.testing.assert_allclose(metric(S, D, 1.0), D, atol=1e-10)

    @pytest.mark.parametrize("t", [0.2, 0.5])
    def test_swapping_the_ends_and_inverting(self, matrices, t):
        """A #_t B = B #_(1-t) A, and its inverse is A^-1 #_t B^-1."""
        S, D = matrices
        M = metric(S, D, t)
        np.testing.assert_allclose(metric(np.linalg.inv(D), np.linalg.inv(S), 1 - t), M, atol=1e-9)
        np.testing.assert_allclose(
            metric(np.linalg.inv(S), np.linalg.inv(D), t), np.linalg.inv(M), atol=1e-8
        )

    def test_congruence(self, matrices):
        """(P'AP) # (P'BP) = P'(A # B)P."""
        S, D = matrices
        P = np.random.default_rng(1).normal(size=(4, 4))
        Q = np.linalg.inv(P)
        np.testing.assert_allclose(
            metric(Q @ S @ Q.T, P.T @ D @ P, 0.4), P.T @ metric(S, D, 0.4) @ P, atol=1e-8
        )

    @pytest.mark.parametrize("t", [0.2, 0.5, 0.9])
    def test_minimum(self, matrices, t):
        S, D = matrices
        M, rng = metric(S, D, t), np.random.default_rng(2)

        def loss(A):
            return (1 - t) * distance(A, np.linalg.inv(S)) ** 2 + t * distance(A, D) ** 2

        assert loss(M) == pytest.approx(t * (1 - t) * geometric_mean(S, D, t)[1] ** 2)
        for size in (1e-3, 0.1, 0.5):
            E = size * rng.normal(size=(4, 4))
            moved = (
                sqrtm(M)
                @ fractional_matrix_power(np.eye(4) + E @ E.T, rng.choice([-1, 1]))
                @ sqrtm(M)
            )
            assert loss(moved) > loss(M)

    def test_minimum_of_the_sum_of_distances(self, matrices):
        S, D = matrices
        M = metric(S, D, 0.5)

        def loss(A):
            return np.trace(A @ S) + np.trace(np.linalg.solve(A, D))

        rng = np.random.default_rng(2)
        for size in (1e-3, 0.1, 0.5):
            E = size * rng.normal(size=(4, 4))
            assert loss(M + E @ E.T) > loss(M)
            assert loss(np.linalg.inv(np.linalg.inv(M) + E @ E.T)) > loss(M)
