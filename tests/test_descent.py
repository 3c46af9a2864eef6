"""L-BFGS, its rounds, and stochastic descent: problems with known answers, and every way to end."""

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import rosen, rosen_der

from nearkin.descent import DescentStatus, adam, lbfgs, lbfgs_rounds, minimize
from nearkin.objectives.loss import Loss

SCALES = np.array([[1.0, 3.0], [10.0, 0.5]])


def bowl(x):
    return 0.5 * float(np.sum(SCALES * (x - 2) ** 2)) + 7, SCALES * (x - 2)


class Bowl(Loss):
    """Batches are numbers, which do not matter; the value is known but for an error of 0.5."""

    def value(self, x, part=None):
        return bowl(x)

    def batches(self, size, n_epochs, rng):
        return Numbers(size, n_epochs)

    def estimate(self, x, batch):
        return bowl(x)

    def evaluate(self, x):
        return bowl(x)[0], 0.5


class Numbers:
    def __init__(self, n_batches, n_epochs):
        self.n_batches, self.n_epochs = n_batches, n_epochs

    def __call__(self, x, t):
        return t


def test_a_bowl():
    result = lbfgs(bowl, np.zeros((2, 2)), max_iter=100, tol=1e-12)
    np.testing.assert_allclose(result.x, 2.0, atol=1e-5)
    assert result.value == pytest.approx(7)
    assert result.status is DescentStatus.CONVERGED
    assert len(result.curve) == result.n_iter + 1
    assert result.curve[0] == bowl(np.zeros((2, 2)))[0]
    assert (np.diff(result.curve) <= 0).all()
    assert result.curve[-1] == result.value


def test_rosenbrock():
    result = lbfgs(lambda x: (rosen(x), rosen_der(x)), np.full(5, -1.2), max_iter=500, tol=1e-14)
    np.testing.assert_allclose(result.x, 1.0, atol=1e-4)


def test_the_start_may_be_the_end():
    result = lbfgs(bowl, np.full((2, 2), 2.0), max_iter=5, tol=1e-8)
    assert (result.n_iter, result.status, result.curve) == (0, DescentStatus.CONVERGED, [7.0])


def test_a_status_that_scipy_may_add(monkeypatch):
    original = optimize.minimize

    def added(*args, **options):
        found = original(*args, **options)
        found.status = 7
        return found

    monkeypatch.setattr("nearkin.descent.optimize.minimize", added)
    found = lbfgs(lambda x: (x @ x, 2 * x), np.ones(3), max_iter=50, tol=1e-9)
    assert found.status is DescentStatus.STALLED
    np.testing.assert_allclose(found.x, 0, atol=1e-6)


def test_max_iter():
    result = lbfgs(lambda x: (rosen(x), rosen_der(x)), np.full(5, -1.2), max_iter=3, tol=1e-14)
    assert (result.n_iter, result.status) == (3, DescentStatus.MAX_ITER)


def test_a_callback_sees_the_best_and_may_stop():
    seen = []

    def on_iteration(x):
        seen.append(bowl(x)[0])
        return len(seen) == 2

    result = lbfgs(bowl, np.zeros((2, 2)), max_iter=100, tol=1e-12, on_iteration=on_iteration)
    assert (result.n_iter, result.status) == (2, DescentStatus.STOPPED)
    assert seen == result.curve[1:]


def test_an_interrupt_keeps_the_best():
    calls = []

    def interrupted(x):
        calls.append(bowl(x)[0])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return bowl(x)

    result = lbfgs(interrupted, np.zeros((2, 2)), max_iter=100, tol=1e-12)
    assert result.status is DescentStatus.INTERRUPTED
    assert result.value == min(calls[:3]) == bowl(result.x)[0]


def test_an_interrupt_before_anything_is_raised():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lbfgs(interrupted, np.zeros(2), max_iter=100, tol=1e-12)


def test_noise_of_single_precision_ends_quietly():
    def rough(x):
        value, slope = rosen(x), rosen_der(x)
        return float(np.float32(value)), slope + 1e-3 * np.sin(1e6 * x)

    result = lbfgs(rough, np.full(5, -1.2), max_iter=500, tol=0.0)
    assert result.status in (DescentStatus.STALLED, DescentStatus.CONVERGED, DescentStatus.MAX_ITER)
    assert result.value <= min(result.curve)
    assert result.value < 1


class TestRounds:
    """The bowl among neighbours: among those of another point it is shifted, so that a round goes
    astray.
    """

    @staticmethod
    def descend(shift, **options):
        looked_up = []

        class Shifted(Loss):
            def candidates(self, x):
                looked_up.append(x)
                return x

            def value(self, x, part=None):
                away = 0.0 if part is None else shift * (x - part)
                value, gradient = bowl(x)
                return value - float(np.sum(away)), gradient - (0.0 if part is None else shift)

        options = {"max_iter": 200, "tol": 1e-10} | options
        return lbfgs_rounds(Shifted(), np.zeros((2, 2)), **options), looked_up

    def test_without_neighbours_there_is_one_round(self):
        plain = lbfgs(bowl, np.zeros((2, 2)), max_iter=100, tol=1e-12)
        result = lbfgs_rounds(Bowl(), np.zeros((2, 2)), max_iter=100, tol=1e-12)
        np.testing.assert_array_equal(result.x, plain.x)
        assert result.curve == plain.curve

    def test_neighbours_are_looked_up_at_the_end_of_every_round(self):
        result, looked_up = self.descend(0.0, max_iter=4)
        assert (result.n_iter, result.status, len(looked_up)) == (4, DescentStatus.MAX_ITER, 2)
        np.testing.assert_array_equal(looked_up[-1], result.x)

    def test_a_round_that_has_not_lowered_the_loss_is_undone(self):
        result, _ = self.descend(1e3)
        np.testing.assert_array_equal(result.x, 0.0)
        assert (result.value, result.status) == (bowl(np.zeros((2, 2)))[0], DescentStatus.CONVERGED)

    def test_the_rest_may_do_without_lists(self):
        result, looked_up = self.descend(1e3, finish_exactly=True)
        np.testing.assert_allclose(result.x, 2.0, atol=1e-4)
        assert len(looked_up) == 2


class TestAdam:
    @staticmethod
    def noisy(x, t):
        value, gradient = bowl(x)
        return value, gradient + np.random.default_rng(t).normal(size=x.shape)

    @staticmethod
    def descend(estimate, start, *, length=1.0, n_batches=10, max_iter=100, **options):
        n_steps = n_batches * max_iter
        return adam(
            estimate, start, n_batches=n_batches, max_iter=max_iter, tol=1e-4,
            step=lambda t: length * (1 - t / n_steps), **options,
        )  # fmt: skip

    def test_a_bowl_with_noise(self):
        result = self.descend(self.noisy, np.zeros((2, 2)))
        np.testing.assert_allclose(result.x, 2.0, atol=0.1)
        assert (result.n_iter, len(result.curve)) == (100, 101)
        assert result.status is DescentStatus.CONVERGED
        assert result.curve[0] == bowl(np.zeros((2, 2)))[0]
        assert result.value == result.curve[-1] == pytest.approx(7, abs=0.05)

    def test_turns_with_the_coordinates(self):
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]

        def turned(x, t):
            value, gradient = self.noisy(x @ Q.T, t)
            return value, gradient @ Q

        plain, other = (
            self.descend(self.noisy, np.zeros((2, 2))),
            self.descend(turned, np.zeros((2, 2))),
        )
        np.testing.assert_allclose(other.x @ Q.T, plain.x, atol=1e-10)

    def test_a_short_descent_has_not_converged(self):
        result = self.descend(self.noisy, np.full((2, 2), 500.0), max_iter=2)
        assert result.status is DescentStatus.MAX_ITER

    def test_goes_on_where_it_was(self):
        def constant(t):
            return 0.01

        whole = adam(self.noisy, np.zeros((2, 2)), n_batches=5, max_iter=4, tol=0.0, step=constant)
        first = adam(self.noisy, np.zeros((2, 2)), n_batches=5, max_iter=1, tol=0.0, step=constant)
        second = adam(
            lambda x, t: self.noisy(x, t + 5), first.x, n_batches=5, max_iter=3, tol=0.0, step=constant,
            memory=first.memory,
        )  # fmt: skip
        np.testing.assert_array_equal(second.x, whole.x)
        assert second.memory.n_steps == whole.memory.n_steps == 20

    def test_no_gradient_is_no_step(self):
        result = self.descend(lambda x, t: (1.0, np.zeros_like(x)), np.ones(3))
        np.testing.assert_array_equal(result.x, 1.0)
        assert result.status is DescentStatus.CONVERGED

    def test_a_callback_sees_the_last_and_may_stop(self):
        seen = []

        def on_iteration(x):
            seen.append(x)
            return len(seen) == 2

        result = self.descend(self.noisy, np.zeros((2, 2)), on_iteration=on_iteration)
        assert (result.n_iter, result.status) == (2, DescentStatus.STOPPED)
        np.testing.assert_array_equal(seen[-1], result.x)

    def test_an_interrupt_keeps_the_last(self):
        points = []

        def interrupted(x, t):
            points.append(x)
            if t == 14:
                raise KeyboardInterrupt
            return self.noisy(x, t)

        result = self.descend(interrupted, np.zeros((2, 2)))
        assert (result.status, result.n_iter) == (DescentStatus.INTERRUPTED, 1)
        np.testing.assert_array_equal(result.x, points[-1])

    def test_an_interrupt_before_anything_is_raised(self):
        def interrupted(x, t):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.descend(interrupted, np.zeros(2))


class TestMinimize:
    @staticmethod
    def descend(solver, starts, **options):
        options = {"batch_size": 10, "max_iter": 100, "tol": 1e-10, "on_iteration": None} | options
        rng = np.random.RandomState(0)
        return minimize(Bowl(), starts, solver=solver, rng=rng, **options)

    def test_stochastic_gradient_is_evaluated(self):
        result = self.descend("sgd", [np.full((2, 2), 1.9)])
        np.testing.assert_allclose(result.x, 2.0, atol=0.1)
        assert (result.value, result.error) == (bowl(result.x)[0], 0.5)

    def test_the_lowest_of_several_descents_is_kept(self):
        starts = [np.full((2, 2), start) for start in (50.0, 2.1, -40.0)]
        found = self.descend("lbfgs", starts, max_iter=1)
        alone = [self.descend("lbfgs", [start], max_iter=1).value for start in starts]
        assert found.value == min(alone) < max(alone)

    def test_a_descent_that_is_stopped_is_the_last(self):
        seen = []
        starts = (seen.append(start) or np.full((2, 2), start) for start in (2.5, 50.0, 2.1))
        stops = iter([False] * 3 + [True])
        found = self.descend(
            "lbfgs", starts, max_iter=3, tol=0.0, on_iteration=lambda x: next(stops)
        )
        assert seen == [2.5, 50.0]
        assert found.status is DescentStatus.STOPPED
        assert found.value < bowl(np.full((2, 2), 2.5))[0]

    def test_auto_is_two_hundred_iterations(self):
        assert self.descend("lbfgs", [np.zeros((2, 2))], max_iter="auto").n_iter < 200
