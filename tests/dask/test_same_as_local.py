"""What the Dask classes find is what the local ones find."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from nearkin import DNE, LPP, NMMP
from nearkin.dask import DaskDNE, DaskLPP, DaskNMMP

from .conftest import blocks, da

UNEVEN = (170, 0, 30, 250, 1, 149)
PAIRS = [
    (DNE(4, n_neighbors=3), DaskDNE(4, n_neighbors=3)),
    (LPP(3), DaskLPP(3)),
    (NMMP(4), DaskNMMP(4)),
    (
        NMMP(3, n_neighbors_within=5, criterion="ratio_trace"),
        DaskNMMP(3, n_neighbors_within=5, criterion="ratio_trace"),
    ),
]


def angle(local, distributed):
    return subspace_angles(local.components_.T, distributed.components_.T).max()


@pytest.mark.parametrize(("local", "distributed"), PAIRS, ids=lambda estimator: type(estimator).__name__)
class TestSpectral:
    def test_same_subspace_and_spectrum(self, local, distributed, client, data):
        local.fit(*data)
        distributed.fit(*blocks(*data, UNEVEN))
        assert angle(local, distributed) <= 1e-6
        np.testing.assert_allclose(distributed.eigenvalues_, local.eigenvalues_, rtol=1e-8, atol=1e-8)
        assert distributed.objective_ == pytest.approx(local.objective_, rel=1e-8)
        assert distributed.n_components_ == local.n_components_

    def test_far_from_the_origin_and_float32(self, local, distributed, client, data):
        X, y = data[0] + 1e6, data[1]
        distributed.fit(*blocks(X, y, (300, 300)))
        assert angle(local.fit(X, y), distributed) <= 1e-6
        X = data[0].astype(np.float32)
        dX, dy = blocks(X, y, (300, 300))
        distributed.fit(dX, dy)
        assert angle(local.fit(X, y), distributed) <= 1e-3
        assert distributed.components_.dtype == distributed.transform(dX).dtype == np.float32

    def test_blocks_of_one_class_and_a_feature_that_says_nothing(self, local, distributed, client, data):
        order = np.argsort(data[1], kind="stable")
        X, y = (
            np.column_stack([data[0], np.full(600, 0.1)])[order],
            np.array(list("abcde"), dtype=object)[data[1][order]],
        )
        distributed.fit(*blocks(X, y, tuple(np.bincount(data[1]))))
        assert angle(local.fit(X, y), distributed) <= 1e-6
        assert not distributed.components_[:, -1].any()

    def test_transform_is_lazy_and_the_same(self, local, distributed, client, data):
        X, y = blocks(*data, UNEVEN)
        Z = distributed.fit(X, y).transform(X)
        assert isinstance(Z, da.Array)
        assert Z.chunks == (UNEVEN, (distributed.n_components_,))
        np.testing.assert_allclose(Z.compute(), distributed.to_local().transform(data[0]), atol=1e-12)
        columns = distributed.transform(X.rechunk((100, 3)))
        np.testing.assert_allclose(columns.compute(), Z.compute(), atol=1e-12)


def test_the_spectrum_chooses_the_dimension(client, data):
    for wanted in (None, 0.9, 10):
        local, distributed = DNE(wanted).fit(*data), DaskDNE(wanted).fit(*blocks(*data, UNEVEN))
        assert distributed.n_components_ == local.n_components_
        assert angle(local, distributed) <= 1e-6


def test_small_and_large_classes(client, data):
    """Some classes are left out of a search before it, some after it; one row has no kin."""
    X, y = data[0], np.where(data[1] < 2, data[1], 2 + np.arange(600) // 9)
    y[5] = 1000
    for local, distributed in PAIRS[::2]:
        assert angle(local.fit(X, y), distributed.fit(*blocks(X, y, UNEVEN))) <= 1e-6


def test_the_number_of_blocks_changes_only_rounding(client, data):
    one, many = (DaskLPP().fit(da.from_array(data[0], chunks=(rows, 4))) for rows in (600, 40))
    np.testing.assert_allclose(many.components_, one.components_, atol=1e-9)


def test_same_input_same_bits(client, data):
    X, y = blocks(*data, UNEVEN)
    first, second = (DaskDNE().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)


def test_ties_go_to_the_lowest_number(client):
    """Every row stands there twice: which of two equal rows is listed does not depend on the blocks."""
    X = np.repeat(np.random.default_rng(0).integers(0, 3, (40, 4)).astype(float), 2, axis=0)
    one, many = (DaskLPP(n_neighbors=3).fit(da.from_array(X, chunks=(rows, 4))) for rows in (80, 9))
    np.testing.assert_allclose(many.components_, one.components_, atol=1e-9)
