"""Codes of embeddings: what rounding costs, what bits keep of cosines, and the rotation before the
bits.
"""

import numpy as np
import pytest

from nearkin._blocks import unit_rows
from nearkin.vectors import codes as codes_module
from nearkin.vectors.codes import (
    BinaryQuantizer,
    Int8Quantizer,
    itq_rotation,
    orthogonal_procrustes,
)

every_precision = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(n=300, m=16, decay=0.5, seed=0, dtype=np.float64):
    """Return rows of unit length that vary less and less from dimension to dimension, as those of
    PLDA do.
    """
    Z = np.random.default_rng(seed).normal(size=(n, m)) * np.arange(1.0, m + 1) ** -decay
    return unit_rows(Z).astype(dtype)


def rotation(m, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(m, m)))[0]


def cost(Z, R):
    """Return ITQ's objective ||B - Z R'||^2 for the signs B of Z R'."""
    V = Z @ R.T
    return np.sum((np.where(V > 0, 1, -1) - V) ** 2)


class TestInt8:
    @every_precision
    def test_half_a_step_is_the_largest_error_within_the_scale(self, dtype):
        Z = rows(dtype=dtype)
        quantizer = Int8Quantizer.fitted(Z)
        decoded = quantizer.decode(quantizer.encode(Z))
        within = np.abs(Z) <= quantizer.scale
        assert np.abs(decoded - Z)[within].max() <= quantizer.scale / 254 * (1 + 1e-5)
        assert (quantizer.encode(Z).dtype, decoded.dtype) == (np.int8, np.float32)

    def test_few_coordinates_are_clipped_and_keep_their_sign(self):
        Z = rows(2000)
        quantizer = Int8Quantizer.fitted(Z)
        beyond = np.abs(Z) > quantizer.scale
        assert 0 < beyond.mean() <= 0.0011
        np.testing.assert_array_equal(quantizer.encode(Z)[beyond], 127 * np.sign(Z[beyond]))
        assert quantizer.encode(Z).min() >= -127

    def test_products_of_codes_are_cosines_but_for_rounding(self):
        Z = rows()
        quantizer = Int8Quantizer.fitted(Z)
        codes = quantizer.encode(Z).astype(np.int32)
        within = (np.abs(Z) <= quantizer.scale).all(axis=1)
        error = (codes @ codes.T * (quantizer.scale / 127) ** 2 - Z @ Z.T)[np.ix_(within, within)]
        half = quantizer.scale / 254
        # by Cauchy and Schwarz: ||z|| = 1
        assert np.abs(error).max() <= 2 * half * 16**0.5 + 16 * half**2
        assert np.abs(error).max() < 0.02

    def test_codes_of_codes_are_the_codes(self):
        quantizer = Int8Quantizer.fitted(rows())
        codes = np.arange(-127, 128, dtype=np.int8)[:, None]
        np.testing.assert_array_equal(quantizer.encode(quantizer.decode(codes)), codes)

    def test_codes_of_a_prefix_are_the_prefix_of_the_codes(self):
        Z = rows()
        quantizer = Int8Quantizer.fitted(Z)
        np.testing.assert_array_equal(quantizer.encode(Z[:, :4]), quantizer.encode(Z)[:, :4])

    def test_rows_of_zeros(self):
        quantizer = Int8Quantizer.fitted(np.zeros((5, 3)))
        assert not quantizer.encode(np.zeros((5, 3))).any()
        assert np.isfinite(quantizer.scale)


class TestBinary:
    @pytest.mark.parametrize("m", [1, 5, 8, 16, 19])
    @every_precision
    def test_hamming_distances_are_cosines_of_signs(self, m, dtype):
        Z = rows(40, m, dtype=dtype)
        quantizer, R = BinaryQuantizer(m), itq_rotation(Z, [m])
        codes = quantizer.encode(Z @ R.T)
        assert codes.shape == (40, -(-m // 8))
        assert codes.dtype == np.uint8
        hamming = np.bitwise_count(codes[:, None] ^ codes).sum(axis=2, dtype=int)
        signs = quantizer.decode(codes)
        np.testing.assert_allclose(signs @ signs.T, 1 - 2 * hamming / m, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(signs, axis=1), 1, rtol=1e-6)
        np.testing.assert_array_equal(signs > 0, Z @ R.T > 0)
        np.testing.assert_array_equal(quantizer.encode(signs), codes)

    def test_the_first_coordinate_is_the_highest_bit_and_the_rest_is_0(self):
        quantizer = BinaryQuantizer(9)
        codes = quantizer.encode(np.array([[1.0] + [-1.0] * 7 + [1.0], [-1.0] * 7 + [1.0, -1.0]]))
        assert codes.tolist() == [[128, 128], [1, 0]]

    def test_cosines_are_estimated_better_with_the_rotation_than_without(self):
        Z = rows(600, decay=1.0)
        fitted, others = Z[:300], Z[300:]
        quantizer, R = BinaryQuantizer(16), itq_rotation(fitted, [16])
        pairs = np.triu_indices(300, 1)

        def agreement(V):
            signs = quantizer.decode(quantizer.encode(V))
            return np.corrcoef((signs @ signs.T)[pairs], (others @ others.T)[pairs])[0, 1]

        assert agreement(others @ R.T) > agreement(others) + 0.05


class TestRotation:
    @every_precision
    @pytest.mark.parametrize("sizes", [[16], [4, 16], [1, 2, 7, 16]])
    def test_is_orthogonal_and_turns_every_size_within_itself(self, sizes, dtype):
        Z = rows(dtype=dtype)
        R = itq_rotation(Z, sizes)
        assert R.dtype == dtype
        np.testing.assert_allclose(R @ R.T, np.eye(16), atol=1e-5)
        for m in sizes:
            assert not R[:m, m:].any()
            assert not R[m:, :m].any()
            V = (Z @ R.T)[:, :m]
            np.testing.assert_allclose(V @ V.T, Z[:, :m] @ Z[:, :m].T, atol=1e-5)

    @pytest.mark.parametrize("decay", [0.5, 1.0])
    @pytest.mark.parametrize("m", [8, 16])
    def test_costs_less_than_none_and_than_random_ones(self, m, decay):
        Z = rows(m=m, decay=decay)
        R = itq_rotation(Z, [m])
        assert cost(Z, R) < cost(Z, np.eye(m))
        assert cost(Z, R) < min(cost(Z, rotation(m, seed)) for seed in range(20))

    def test_no_iteration_raises_the_cost(self, monkeypatch):
        Z, costs = rows(), []
        for n in range(1, 12):
            monkeypatch.setattr(codes_module, "ITQ_ITERATIONS", n)
            costs.append(cost(Z, itq_rotation(Z, [16])))
        assert (np.diff(costs) <= 1e-9).all()
        assert costs[-1] < costs[0]

    def test_many_rows_are_thinned(self, monkeypatch):
        Z = rows(1000)
        monkeypatch.setattr(codes_module, "ITQ_ROWS", 300)
        np.testing.assert_array_equal(itq_rotation(Z, [16]), itq_rotation(Z[::4], [16]))

    def test_dimensions_that_do_not_vary(self):
        Z = rows()
        Z[:, 4:] = 0
        R = itq_rotation(Z, [4, 8, 16])
        np.testing.assert_allclose(R @ R.T, np.eye(16), atol=1e-9)


class TestOrthogonalProcrustes:
    @pytest.mark.parametrize(("p", "m"), [(5, 5), (3, 5), (5, 3), (4, 1), (1, 4)])
    def test_no_other_orthonormal_map_has_larger_products(self, p, m):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(40, p)), rng.normal(size=(40, m))
        R = orthogonal_procrustes(Y.T @ X)
        assert R.shape == (m, p)
        k = min(m, p)
        np.testing.assert_allclose(R @ R.T if m <= p else R.T @ R, np.eye(k), atol=1e-12)
        np.testing.assert_allclose(
            np.sum(Y * (X @ R.T)), np.linalg.svd(Y.T @ X, compute_uv=False).sum(), rtol=1e-10
        )
        for seed in range(30):
            other = rotation(max(m, p), seed)[:m, :p]
            assert np.sum(Y * (X @ other.T)) < np.sum(Y * (X @ R.T))
