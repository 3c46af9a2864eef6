"""Errors of predictions by the neighbours of a learned map: definitions, gradients."""

import numpy as np
import pytest

from nearkin.objectives import kernel_regression
from nearkin.objectives.kernel_regression import (
    FAINT,
    among_pairs,
    log_loss,
    of_anchors,
    prediction_loss,
    squared_error,
)
from nearkin.testing import check_gradient

from .test_stochastic import N, finite_differences, problem, squares


class TestObjective:
    X, Y = np.random.default_rng(0).normal(size=(12, 4)), np.eye(3)[np.arange(12) % 3]
    A = np.random.default_rng(1).normal(size=(2, 4)) / 2

    @pytest.fixture(autouse=True, params=["few classes", "many classes"])
    def way(self, request, monkeypatch):
        if request.param == "many classes":
            monkeypatch.setattr(kernel_regression, "MANY_CLASSES", 2)

    @pytest.mark.parametrize("loss", [squared_error, log_loss])
    @pytest.mark.parametrize("n_anchors", [None, 5])
    def test_gradient(self, loss, n_anchors):
        check_gradient(lambda A: prediction_loss(A, self.X, self.Y, loss, n_anchors), self.A)

    def test_weights(self):
        weights = np.array([1, 2, 3] * 4)
        check_gradient(
            lambda A: prediction_loss(A, self.X, self.Y, log_loss, weights=weights), self.A
        )
        Z, expected = self.X @ self.A.T, 0.0
        for i in range(12):
            p = weights * np.exp(-np.sum((Z - Z[i]) ** 2, axis=1))
            p[i] = 0
            expected -= weights[i] * np.log(p @ self.Y[:, i % 3] / p.sum())
        found = prediction_loss(self.A, self.X, self.Y, log_loss, weights=weights)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    @pytest.mark.parametrize("n_anchors", [12, 5])
    def test_definition(self, n_anchors):
        Z, expected = self.X @ self.A.T, 0.0
        for i in range(n_anchors):
            weights = np.exp(-np.sum((Z - Z[i]) ** 2, axis=1))
            weights[i] = 0
            expected -= np.log(weights @ self.Y[:, i % 3] / weights.sum())
        found = prediction_loss(self.A, self.X, self.Y, log_loss, n_anchors)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("loss", [squared_error, log_loss])
def test_predictions_are_those_of_repeated_rows(loss):
    X, A, counts, rng = problem()
    Y = rng.normal(size=(N, 2)) if loss is squared_error else np.eye(3)[rng.integers(0, 3, N)]
    origin = np.repeat(np.arange(N), counts)
    P = np.exp(-squares(X[origin] @ A.T)) * (origin[:, None] != origin)
    predicted = P @ Y[origin] / P.sum(axis=1, keepdims=True)
    value, gradient = prediction_loss(A, X, Y, loss, weights=counts)
    assert value == pytest.approx(loss(predicted, Y[origin])[0].sum(), rel=1e-10)
    numeric = finite_differences(lambda A: prediction_loss(A, X, Y, loss, weights=counts), A)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("scale", "isolated"), [(1.0, "none"), (3.0, "some"), (30.0, "all")])
@pytest.mark.parametrize("height", [7, 256])
@pytest.mark.parametrize(("loss", "q"), [(squared_error, 1), (log_loss, 3)])
def test_tiles_of_pairs_add_up_to_those_of_anchors(loss, q, height, scale, isolated, monkeypatch):
    monkeypatch.setattr(kernel_regression, "PAIRED_AT_ONCE", height)
    rng = np.random.default_rng(0)
    Z, weights = scale * rng.normal(size=(30, 3)), rng.uniform(0.5, 2, size=(30, 1))
    Y = rng.normal(size=(30, 1)) if q == 1 else np.eye(q)[rng.integers(q, size=30)]
    faint = np.exp(-np.sum((Z[:, None] - Z) ** 2, axis=2)) @ weights - weights < FAINT
    assert isolated == ("all" if faint.all() else "some" if faint.any() else "none")
    value, gradient = among_pairs(Z, Y, loss, weights)
    monkeypatch.setattr("nearkin.objectives.stochastic.TILE_ROWS", 11)
    expected, slope = of_anchors(Z, Y, loss, weights, np.arange(30))
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())


def test_far_rows_do_not_underflow():
    X = np.array([[0.0], [1e3], [3e3], [7e3]])
    value, gradient = prediction_loss(np.eye(1), X, np.arange(4.0)[:, None], squared_error)
    assert value == pytest.approx(1 + 1 + 1 + 1)  # from the nearest
    assert np.isfinite(gradient).all()
