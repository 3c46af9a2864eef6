"""Rows of length one, with and without a map before."""

import numpy as np
import pytest

from nearkin import _blocks
from nearkin._blocks import affine_unit_rows, unit_rows


class TestUnitRows:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_have_length_one_but_for_zeros(self, dtype):
        X = np.random.default_rng(0).normal(size=(6, 4)).astype(dtype)
        X[2] = 0
        Z = unit_rows(X)
        assert Z.dtype == dtype
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), [1, 1, 0, 1, 1, 1], rtol=1e-6)
        np.testing.assert_allclose(Z * np.linalg.norm(X, axis=1, keepdims=True), X, rtol=1e-6)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_an_affine_map_by_blocks(self, dtype, monkeypatch):
        rng = np.random.default_rng(0)
        X, A, b = (
            rng.normal(size=(10, 4)).astype(dtype),
            rng.normal(size=(3, 4)),
            rng.normal(size=3),
        )
        whole = affine_unit_rows(X, A, b)
        monkeypatch.setattr(
            _blocks, "row_blocks", lambda n, p: [slice(0, 3), slice(3, 4), slice(4, n)]
        )
        assert whole.dtype == dtype
        np.testing.assert_allclose(affine_unit_rows(X, A, b), whole, rtol=1e-6)
        expected = unit_rows((X / np.linalg.norm(X, axis=1, keepdims=True)) @ A.T + b)
        np.testing.assert_allclose(whole, expected, rtol=1e-5)
