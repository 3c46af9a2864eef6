"""The two terms of t-distributed NCA are what they are defined as, and their gradients the slopes."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.sparse import csr_array

from nearkin.objectives.t_nca import PlacedNeighbors, log_mass, log_similarity
from nearkin.testing import check_gradient

RNG = np.random.default_rng(0)
Z, Y = RNG.normal(size=(20, 2)), RNG.normal(size=(30, 2))
W = RNG.uniform(size=(20, 30)) * (RNG.uniform(size=(20, 30)) < 0.3)
W[3] = 0  # a row without a right neighbour


def weights(Z, Y):
    return 1 / (1 + np.sum((Z[:, None] - Y[None]) ** 2, axis=2))


def similarity(Z, Y):
    return log_similarity(Z, Y, csr_array(W))


def own_mass(Z):
    value, from_anchors, from_others = log_mass(Z, Z, np.arange(len(Z)))
    return value, from_anchors + from_others


def slope_error(function, X):
    shape = X.shape
    return check_grad(
        lambda x: function(x.reshape(shape))[0],
        lambda x: function(x.reshape(shape))[1].ravel(),
        X.ravel(),
    )


def test_the_similarity_of_right_neighbours():
    expected = (W * weights(Z, Y)).sum(axis=1)
    assert similarity(Z, Y)[0] == pytest.approx(np.log(expected[expected > 0]).sum())


def test_the_mass_of_all():
    K = weights(Z, Y)
    assert log_mass(Z, Y)[0] == pytest.approx(np.log(K.sum(axis=1)).sum())
    K = weights(Z, Z) - np.eye(20)
    assert own_mass(Z)[0] == pytest.approx(np.log(K.sum(axis=1)).sum())


@pytest.mark.parametrize("term", [similarity, log_mass])
def test_gradients(term):
    assert slope_error(lambda Z: term(Z, Y)[:2], Z) < 1e-5
    assert slope_error(lambda Y: term(Z, Y)[::2], Y) < 1e-5


def test_gradient_where_anchors_are_the_others():
    assert slope_error(own_mass, Z) < 1e-5


@pytest.mark.parametrize("term", [similarity, log_mass])
def test_rotation_and_shift_change_nothing(term):
    rotation = np.linalg.qr(RNG.normal(size=(2, 2)))[0]
    value, *gradients = term(Z, Y)
    moved, *slopes = term(Z @ rotation + 3.0, Y @ rotation + 3.0)
    assert moved == pytest.approx(value)
    for slope, gradient in zip(slopes, gradients, strict=True):
        np.testing.assert_allclose(slope, gradient @ rotation, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_add_up(monkeypatch, dtype):
    value, gradient = own_mass(Z)
    monkeypatch.setattr("nearkin.objectives.t_nca.tile_height", lambda n: 7)
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    tiled, slope = own_mass(Z.astype(dtype))
    assert tiled == pytest.approx(value, rel=tolerance)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=10 * tolerance)


@pytest.mark.slow
def test_gradient_of_the_loss_of_positions(monkeypatch):
    """With its penalty, of all landmarks and of a minibatch, in which landmarks may be twice."""
    rng = np.random.default_rng(0)
    W = csr_array((rng.random((40, 40)) < 0.1) * 1.0)
    W.setdiag(0)
    W.eliminate_zeros()
    S = rng.random((40, 40)) * (rng.random((40, 40)) < 0.2)
    np.fill_diagonal(S, 0.5)
    loss = PlacedNeighbors(csr_array(S / S.sum(axis=1, keepdims=True)), W, 0.7)
    U = rng.normal(size=(40, 2))
    check_gradient(loss.value, U)
    batch = rng.permutation(40)[:30]
    monkeypatch.setattr("nearkin.objectives.t_nca.ANCHORS", 12)
    check_gradient(lambda U: loss.estimate(U, batch), U)
    cost = 0.7 * np.mean(np.sum((U - loss.S @ U) ** 2, axis=1))
    assert loss.log_likelihood(U, loss.value(U)[0]) == pytest.approx(cost - loss.value(U)[0])
