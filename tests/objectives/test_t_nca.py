"""The log-likelihood of t-distributed NCA is what it is defined as, and its gradient the slope."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from nearkin.objectives.stochastic import SameClass, TargetKernel
from nearkin.objectives.t_nca import student_log_likelihood

N = 30
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(N, 2))
WEIGHTS = {
    "classes": SameClass(RNG.integers(0, 4, N)),
    "a class of one row": SameClass(np.r_[0, 1, np.arange(N - 2) % 2]),
    "numbers": TargetKernel(RNG.normal(size=N), 0.5),
}
every_weight = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)


def defined(Z, w, n_anchors):
    """The definition, a sum over pairs."""
    k = 1 / (1 + np.sum((Z[:, None] - Z[None]) ** 2, axis=2))
    np.fill_diagonal(k, 0)
    right = (w * k).sum(axis=1)[:n_anchors]
    possible = right > 0
    return np.log(right[possible] / k.sum(axis=1)[:n_anchors][possible]).sum()


@every_weight
@pytest.mark.parametrize("n_anchors", [None, 11])
def test_value_and_gradient(weights, n_anchors):
    every = np.arange(N)
    w = weights.weights(every[:, None], every[None], float)
    value, gradient = student_log_likelihood(Z, weights, n_anchors)
    assert value == pytest.approx(defined(Z, w, n_anchors))
    wrong = check_grad(
        lambda z: student_log_likelihood(z.reshape(N, 2), weights, n_anchors)[0],
        lambda z: student_log_likelihood(z.reshape(N, 2), weights, n_anchors)[1].ravel(),
        Z.ravel(),
    )
    assert wrong < 1e-5 * np.linalg.norm(gradient)


def test_rows_alone_in_their_class_are_left_out():
    alone = SameClass(np.arange(5))
    value, gradient = student_log_likelihood(Z[:5], alone)
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


@every_weight
def test_rotation_and_shift_change_nothing(weights):
    rotation = np.linalg.qr(RNG.normal(size=(2, 2)))[0]
    value, gradient = student_log_likelihood(Z, weights)
    moved, slope = student_log_likelihood(Z @ rotation + 3.0, weights)
    assert moved == pytest.approx(value)
    np.testing.assert_allclose(slope, gradient @ rotation, atol=1e-9)


@every_weight
def test_tiles_and_float32_add_up(weights, monkeypatch):
    whole = student_log_likelihood(Z, weights)
    monkeypatch.setattr("nearkin.objectives.t_nca.tile_height", lambda n: 7)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        value, gradient = student_log_likelihood(Z.astype(dtype), weights)
        assert value == pytest.approx(whole[0], rel=tolerance)
        np.testing.assert_allclose(gradient, whole[1], rtol=0, atol=tolerance * 10)
