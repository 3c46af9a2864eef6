"""Optimality conditions and limits, on problems with known answers; the paper's bisection is the
independent check.
"""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from nearkin.spectral import (
    SpectralStatus,
    choose_solver,
    generalized_eigh,
    largest_scatter_first,
    range_basis,
    ratio_trace,
    shrunk,
    trace_difference,
    trace_ratio,
    unit_within_scatter,
)


def symmetric(d, seed, rank=None):
    """Return a positive semi-definite matrix of a given rank, or (None) an indefinite one."""
    rng = np.random.default_rng(seed)
    if rank is None:
        A = rng.normal(size=(d, d))
        return A + A.T
    F = rng.normal(size=(d, rank))
    return F @ F.T


def bisection(A, B, m, tol=1e-13):
    """NMMP, Table 1, case m > d - r. Returns the optimum and the number of eigen-decompositions."""
    alpha, beta = eigh(A, eigvals_only=True)[::-1], eigh(B, eigvals_only=True)
    low, high = np.trace(A) / np.trace(B), alpha[:m].sum() / beta[:m].sum()
    rho, count = low, 2
    while high - low > tol * max(abs(low), abs(high)):
        rho = (low + high) / 2
        count += 1
        if eigh(A - rho * B, eigvals_only=True)[-m:].sum() > 0:
            low = rho
        else:
            high = rho
    return rho, count


def objective(V, A, B):
    return np.trace(V.T @ A @ V) / np.trace(V.T @ B @ V)


class TestTraceDifference:
    def test_optimality(self):
        A = symmetric(20, 0)
        result = trace_difference(A, 6)
        V = result.vectors
        np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-12)
        np.testing.assert_allclose(A @ V, V * result.values[:6], atol=1e-12)
        assert (
            result.objective
            == pytest.approx(np.trace(V.T @ A @ V))
            == pytest.approx(result.values[:6].sum())
        )
        assert (np.diff(result.values) >= 0).all()
        assert len(result.values) == 20
        assert result.status is SpectralStatus.OPTIMAL
        assert result.residual < 1e-12

    def test_small_eigenvalues_of_a_graded_matrix_are_precise(self):
        A, units = symmetric(30, 0), 10.0 ** np.random.default_rng(1).uniform(-6, 6, 30)
        values = trace_difference(A * np.outer(units, units)).values
        largest_of_inverse = np.abs(
            eigh(np.linalg.inv(A) / np.outer(units, units), eigvals_only=True)
        ).max()
        assert np.abs(values).min() * largest_of_inverse == pytest.approx(1, rel=1e-9)
        assert np.log(np.abs(values)).sum() == pytest.approx(
            np.linalg.slogdet(A)[1] + 2 * np.log(units).sum(), rel=1e-9
        )
        assert np.sum(values < 0) == np.sum(np.linalg.eigvalsh(A) < 0)  # Sylvester's law of inertia

    def test_lanczos_agrees_with_lapack(self):
        A = symmetric(150, 0)
        dense, lanczos = eigh(A, subset_by_index=[0, 9]), trace_difference(aslinearoperator(A), 10)
        np.testing.assert_allclose(lanczos.values, dense[0], rtol=1e-9)
        np.testing.assert_allclose(np.abs(np.sum(lanczos.vectors * dense[1], axis=0)), 1, atol=1e-6)

    @pytest.mark.long
    def test_large_matrices_with_few_components_are_solved_by_lanczos(self):
        A = symmetric(1200, 0)
        np.testing.assert_array_equal(
            trace_difference(aslinearoperator(A), 10).values, trace_difference(A, 10).values
        )

    @pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
    def test_lanczos_sees_repeated_eigenvalues(self, scale):
        rng = np.random.default_rng(0)
        Q = np.linalg.qr(rng.normal(size=(150, 150)))[0]
        known = np.concatenate([np.full(12, -3.0), rng.uniform(-2, 5, 138)])
        result = trace_difference(aslinearoperator((Q * known * scale) @ Q.T), 12)
        np.testing.assert_allclose(result.values, -3.0 * scale)
        np.testing.assert_allclose(result.vectors.T @ result.vectors, np.eye(12), atol=1e-8)

    def test_where_lanczos_gives_up_the_matrix_is_solved(self):
        zero = trace_difference(aslinearoperator(np.zeros((150, 150))), 3)
        np.testing.assert_array_equal(zero.values, 0)
        np.testing.assert_allclose(zero.vectors.T @ zero.vectors, np.eye(3), atol=1e-12)


class TestRatioTrace:
    def test_optimality(self):
        A, B = symmetric(20, 0), symmetric(20, 1, rank=30)
        result = ratio_trace(A, B, 6)
        V = result.vectors
        np.testing.assert_allclose(V.T @ B @ V, np.eye(6), atol=1e-10)
        np.testing.assert_allclose(A @ V, B @ V * result.values, atol=1e-9)
        np.testing.assert_allclose(result.values, eigh(A, B, eigvals_only=True)[:6], rtol=1e-9)
        assert result.objective == pytest.approx(
            np.trace(np.linalg.solve(V.T @ B @ V, V.T @ A @ V))
        )

    def test_with_b_the_identity_it_is_the_trace_difference(self):
        A = symmetric(20, 0)
        ratio, difference = ratio_trace(A, np.eye(20), 5), trace_difference(A, 5)
        np.testing.assert_allclose(ratio.values, difference.values[:5])
        np.testing.assert_allclose(np.abs(np.sum(ratio.vectors * difference.vectors, axis=0)), 1)

    def test_the_units_of_the_features_do_not_matter(self):
        A, B = symmetric(8, 0), symmetric(8, 1, rank=9)
        unit = np.logspace(-9, 9, 8)
        scaled = ratio_trace(A * np.outer(unit, unit), B * np.outer(unit, unit), 3)
        np.testing.assert_allclose(scaled.values, ratio_trace(A, B, 3).values, rtol=1e-6)
        assert scaled.rank == 8

    def test_null_space_of_b_is_left_out_and_said_so(self):
        T = np.random.default_rng(2).normal(size=(5, 12))
        A, B = T.T @ symmetric(5, 0) @ T, T.T @ symmetric(5, 1, rank=5) @ T
        result = ratio_trace(A, B, 8)
        assert (result.status, result.rank, result.vectors.shape) == (
            SpectralStatus.RANK_DEFICIENT,
            5,
            (12, 5),
        )
        np.testing.assert_allclose(
            A @ result.vectors, B @ result.vectors * result.values, atol=1e-8
        )
        np.testing.assert_allclose(
            range_basis(B) @ range_basis(B).T @ result.vectors, result.vectors, atol=1e-10
        )
        with pytest.warns(
            UserWarning, match="n_components=8 were requested, but only 5 directions"
        ):
            result.warn()

    def test_what_a_does_where_b_vanishes_is_left_out_too(self):
        A, B = symmetric(9, 0, rank=9), symmetric(9, 1, rank=5)
        A += 1e6 * (np.eye(9) - range_basis(B) @ range_basis(B).T)
        result, T = ratio_trace(A, B), range_basis(B)
        assert result.status is SpectralStatus.OPTIMAL
        np.testing.assert_allclose(T @ (T.T @ result.vectors), result.vectors, atol=1e-10)
        np.testing.assert_allclose(
            result.values, eigh(T.T @ A @ T, T.T @ B @ T, eigvals_only=True), atol=1e-8
        )

    def test_indefinite_and_zero_b(self):
        with pytest.raises(ValueError, match="positive semi-definite; its eigenvalues lie between"):
            ratio_trace(np.eye(4), symmetric(4, 0), 2)
        with pytest.raises(ValueError, match="B is zero"):
            ratio_trace(np.eye(4), np.zeros((4, 4)), 2)


def in_a_plane(d, first, second):
    """Return rotated axes, and diagonal matrices turned into them."""
    Q = np.linalg.qr(np.random.default_rng(5).normal(size=(d, d)))[0]
    return Q, (Q * first) @ Q.T, (Q * second) @ Q.T


class TestGeneralizedEigh:
    def test_optimality(self):
        S_b, S_w = symmetric(12, 0, rank=15), symmetric(12, 1, rank=15)
        result = generalized_eigh(S_b, S_w, 5)
        V, quotient = result.vectors, result.values / (1 - result.values)
        np.testing.assert_allclose(V.T @ (S_b + S_w) @ V, np.eye(5), atol=1e-10)
        np.testing.assert_allclose(S_b @ V, S_w @ V * quotient, atol=1e-8)
        np.testing.assert_allclose(quotient, eigh(S_b, S_w, eigvals_only=True)[:-6:-1])
        assert result.objective == pytest.approx(result.values.sum())
        assert (result.status, result.rank, result.requested) == (SpectralStatus.OPTIMAL, 12, 5)

    def test_no_other_directions_have_more(self):
        S_b, S_w = symmetric(12, 0, rank=15), symmetric(12, 1, rank=15)
        best = generalized_eigh(S_b, S_w, 3)
        rng = np.random.default_rng(0)
        for step in (1e-3, 1.0):
            V = best.vectors + step * np.abs(best.vectors).mean() * rng.normal(size=(12, 3))
            assert np.trace(np.linalg.solve(V.T @ (S_b + S_w) @ V, V.T @ S_b @ V)) < best.objective

    def test_where_pull_vanishes_comes_first_and_where_both_do_is_left_out(self):
        Q, S_b, S_w = in_a_plane(5, [2.0, 9.0, 4.0, 0.0, 0.0], [0.0, 0.0, 1.0, 3.0, 0.0])
        result = generalized_eigh(S_b, S_w)
        np.testing.assert_allclose(result.values, [1, 1, 0.8, 0], atol=1e-12)
        found = np.abs(Q.T @ result.vectors)
        np.testing.assert_allclose(
            found[:, :3], np.eye(5)[:, [1, 0, 2]] / np.sqrt([9, 2, 5]), atol=1e-10
        )
        assert result.rank == 4

    def test_unit_pull(self):
        _, S_b, S_w = in_a_plane(4, [2.0, 9.0, 4.0, 5.0], [0.0, 1e-9, 1.0, 3.0])
        result = unit_within_scatter(generalized_eigh(S_b, S_w))
        V = result.vectors
        np.testing.assert_allclose(np.diag(V.T @ S_w @ V)[2:], 1)
        np.testing.assert_allclose(np.diag(V.T @ (S_b + S_w) @ V)[:2], 1e4)

    def test_the_limit_of_no_pull_is_continuous(self):
        lengths = []
        for S_w in (1.0001e-4, 1e-4, 0.9999e-4):
            result = unit_within_scatter(generalized_eigh(np.eye(1) * (1 - S_w), np.eye(1) * S_w))
            lengths.append(abs(result.vectors[0, 0]))
        np.testing.assert_allclose(lengths, 100, rtol=1e-4)

    def test_what_there_is_to_say(self):
        T = np.random.default_rng(2).normal(size=(4, 9))
        S_b, S_w = T.T @ symmetric(4, 0, rank=4) @ T, T.T @ symmetric(4, 1, rank=4) @ T
        result = generalized_eigh(S_b, S_w, 6)
        assert (result.status, result.vectors.shape, result.requested) == (
            SpectralStatus.RANK_DEFICIENT,
            (9, 4),
            6,
        )
        assert generalized_eigh(np.zeros((9, 9)), S_w, 2).status is SpectralStatus.FLAT
        with pytest.raises(
            ValueError, match="No two adjacent rows of the graphs differ: use more neighbours"
        ):
            generalized_eigh(np.zeros((3, 3)), np.zeros((3, 3)))

    def test_of_equal_values_the_longest_spread_comes_first_however_they_were_mixed(self):
        rng = np.random.default_rng(0)
        V = np.diag([1.0, 0.5, 2.0, 4.0])
        values = np.array([0.0, 0.0, 0.0, 1.0])
        mixed = V.copy()
        mixed[:, :3] = V[:, :3] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        np.testing.assert_allclose(
            np.abs(largest_scatter_first(mixed, values)), V[:, [1, 0, 2, 3]], atol=1e-12
        )


class TestTraceRatio:
    @pytest.mark.parametrize(
        ("d", "rank", "m"), [(20, 20, 1), (20, 20, 7), (20, 20, 20), (50, 40, 11), (50, 40, 30)]
    )
    @pytest.mark.parametrize("definite", [True, False])
    def test_optimality_and_bisection(self, d, rank, m, definite):
        A, B = symmetric(d, 0, rank=d if definite else None), symmetric(d, 1, rank=rank)
        result = trace_ratio(A, B, m)
        V, rho = result.vectors, result.objective
        assert result.status is SpectralStatus.OPTIMAL
        np.testing.assert_allclose(V.T @ V, np.eye(m), atol=1e-10)
        assert rho == pytest.approx(objective(V, A, B), rel=1e-9)
        scale = abs(np.trace(V.T @ A @ V))
        # Guo's condition
        assert abs(eigh(A - rho * B, eigvals_only=True)[-m:].sum()) <= 1e-8 * scale
        assert result.values.sum() == pytest.approx(0, abs=1e-8 * scale)
        assert rho == pytest.approx(bisection(A, B, m)[0], rel=1e-8)

    def test_few_decompositions(self):
        A, B = symmetric(100, 0, rank=100), symmetric(100, 1, rank=120)
        newton = trace_ratio(A, B, 10)
        assert newton.n_iter <= 10
        assert bisection(A, B, 10, tol=1e-10)[1] > 3 * newton.n_iter

    def test_optimum_falls_with_m_and_lies_within_the_papers_bounds(self):
        A, B = symmetric(20, 0, rank=20), symmetric(20, 1, rank=16)
        optima = [trace_ratio(A, B, m).objective for m in range(5, 21)]
        assert (np.diff(optima) <= 1e-9 * np.abs(optima[1:])).all()
        assert optima[-1] == pytest.approx(np.trace(A) / np.trace(B))
        alpha, beta = eigh(A, eigvals_only=True)[::-1], eigh(B, eigvals_only=True)
        for m, rho in enumerate(optima, start=5):
            assert np.trace(A) / np.trace(B) <= rho * (1 + 1e-9)
            assert rho <= alpha[:m].sum() / beta[:m].sum() * (1 + 1e-9)

    def test_with_one_component_it_is_the_ratio_trace(self):
        A, B = symmetric(20, 0, rank=20), symmetric(20, 1, rank=25)
        assert trace_ratio(A, B, 1).objective == pytest.approx(-ratio_trace(-A, B, 1).values[0])

    def test_case_two_maximizes_a_where_b_vanishes(self):
        A, B = symmetric(12, 0, rank=12), symmetric(12, 1, rank=7)
        result = trace_ratio(A, B, 3)
        V = result.vectors
        assert (result.status, result.rank, result.objective) == (
            SpectralStatus.UNBOUNDED,
            7,
            np.inf,
        )
        np.testing.assert_allclose(B @ V, 0, atol=1e-9)
        Z = eigh(B)[1][:, :5]
        assert np.trace(V.T @ A @ V) == pytest.approx(
            eigh(Z.T @ A @ Z, eigvals_only=True)[-3:].sum()
        )
        result.warn()  # legal: no warning, which pytest would turn into an error

    @pytest.mark.parametrize("m", [1, 2, 4])
    def test_where_a_is_negative_in_the_null_space_of_b_the_optimum_is_finite(self, m):
        """The paper's case 2 would answer infinity, though the ratio falls to minus infinity there."""
        B, Z = symmetric(9, 1, rank=5), eigh(symmetric(9, 1, rank=5))[1][:, :4]
        A = symmetric(9, 0) - 100 * Z @ Z.T
        result = trace_ratio(A, B, m)
        V, rho = result.vectors, result.objective
        assert result.status is SpectralStatus.OPTIMAL
        np.testing.assert_allclose(V.T @ V, np.eye(m), atol=1e-10)
        assert rho == pytest.approx(objective(V, A, B), rel=1e-9)
        assert eigh(A - rho * B, eigvals_only=True)[-m:].sum() == pytest.approx(0, abs=1e-7)
        rng = np.random.default_rng(0)
        for size in (0.01, 0.1, 100.0):
            for _ in range(50):
                assert (
                    objective(np.linalg.qr(V + size * rng.normal(size=V.shape))[0], A, B)
                    <= rho + 1e-9
                )

    def test_a_plane_by_hand(self):
        """The ratio is (sin^2 - cos^2) / sin^2 of the angle: -inf at 0, and 1 at a right angle."""
        result = trace_ratio(np.diag([-1.0, 1.0]), np.diag([0.0, 1.0]), 1)
        assert result.objective == pytest.approx(1)
        np.testing.assert_allclose(np.abs(result.vectors), [[0], [1]], atol=1e-12)

    def test_negative_over_nothing(self):
        result = trace_ratio(-np.eye(3), np.zeros((3, 3)), 2)
        assert (result.status, result.objective) == (SpectralStatus.UNBOUNDED, -np.inf)

    def test_a_zero(self):
        result = trace_ratio(np.zeros((6, 6)), symmetric(6, 0, rank=6), 2)
        assert (result.status, result.objective) == (SpectralStatus.FLAT, 0.0)
        with pytest.warns(UserWarning, match="objective is 0"):
            result.warn()

    def test_nothing_over_something(self):
        result = trace_ratio(np.diag([1.0, -1.0]), np.eye(2), 2)
        assert (result.status, result.objective, result.gap) == (SpectralStatus.OPTIMAL, 0.0, 0.0)

    def test_more_components_than_there_are_where_b_is_zero(self):
        result = trace_ratio(np.eye(3), np.zeros((3, 3)), 5)
        assert (result.status, result.vectors.shape) == (SpectralStatus.RANK_DEFICIENT, (3, 3))

    def test_more_components_than_there_are(self):
        result = trace_ratio(symmetric(4, 0, rank=4), symmetric(4, 1, rank=4), 9)
        assert (result.status, result.vectors.shape) == (SpectralStatus.RANK_DEFICIENT, (4, 4))

    def test_an_iteration_cut_short_says_so(self):
        result = trace_ratio(symmetric(30, 0, rank=30), symmetric(30, 1, rank=30), 3, max_iter=2)
        assert result.status is SpectralStatus.NOT_CONVERGED
        assert result.gap > 1e-10
        with pytest.warns(
            ConvergenceWarning, match="after 2 eigen-decompositions with a relative gap"
        ):
            result.warn()

    def test_result_is_frozen(self):
        result = trace_ratio(symmetric(4, 0, rank=4), np.eye(4), 2)
        with pytest.raises(AttributeError):
            result.objective = 0.0


def test_the_choice_of_solver_can_be_asked():
    assert choose_solver(1000, 1) == "dense"
    assert choose_solver(1001, 50) == "lanczos"
    assert choose_solver(1001, 51) == "dense"


def test_range_basis():
    S = symmetric(9, 0, rank=4)
    T = range_basis(S)
    np.testing.assert_allclose(T.T @ T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(T @ (T.T @ S), S, atol=1e-9)
    unit = np.logspace(-6, 6, 9)
    assert range_basis(S * np.outer(unit, unit)).shape == (9, 4)  # whatever the units


def test_the_trace_and_the_eigenvectors_stay():
    T = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 4)))[0]
    S = (T * [4.0, 3, 2, 0]) @ T.T
    np.testing.assert_allclose(
        shrunk(S, T, 0.5), (T * [3.125, 2.625, 2.125, 1.125]) @ T.T, atol=1e-12
    )
