"""L-BFGS: problems with known answers, and every way to end."""

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from nearkin.descent import Status, lbfgs

SCALES = np.array([[1.0, 3.0], [10.0, 0.5]])


def bowl(x):
    return 0.5 * float(np.sum(SCALES * (x - 2) ** 2)) + 7, SCALES * (x - 2)


def test_a_bowl():
    result = lbfgs(bowl, np.zeros((2, 2)), max_iter=100, tol=1e-12)
    np.testing.assert_allclose(result.x, 2.0, atol=1e-5)
    assert result.value == pytest.approx(7)
    assert result.status is Status.CONVERGED
    assert len(result.curve) == result.n_iter + 1
    assert result.n_evaluations >= result.n_iter
    assert result.curve[0] == bowl(np.zeros((2, 2)))[0]
    assert (np.diff(result.curve) <= 0).all()
    assert result.curve[-1] == result.value


def test_rosenbrock():
    result = lbfgs(lambda x: (rosen(x), rosen_der(x)), np.full(5, -1.2), max_iter=500, tol=1e-14)
    np.testing.assert_allclose(result.x, 1.0, atol=1e-4)


def test_the_start_may_be_the_end():
    result = lbfgs(bowl, np.full((2, 2), 2.0), max_iter=5, tol=1e-8)
    assert (result.n_iter, result.status, result.curve) == (0, Status.CONVERGED, [7.0])


def test_max_iter():
    result = lbfgs(lambda x: (rosen(x), rosen_der(x)), np.full(5, -1.2), max_iter=3, tol=1e-14)
    assert (result.n_iter, result.status) == (3, Status.MAX_ITER)


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**20])
def test_the_unit_of_the_values_does_not_matter(unit):
    def rosenbrock(x):
        return rosen(x), rosen_der(x)

    plain = lbfgs(rosenbrock, np.full(5, -1.2), max_iter=200, tol=1e-3)
    other = lbfgs(
        lambda x: tuple(unit * part for part in rosenbrock(x)), np.full(5, -1.2), max_iter=200, tol=1e-3, unit=unit
    )
    np.testing.assert_array_equal(other.x, plain.x)
    np.testing.assert_array_equal(other.curve, unit * np.array(plain.curve))


def test_a_callback_sees_the_best_and_may_stop():
    seen = []

    def on_iteration(x):
        seen.append(bowl(x)[0])
        return len(seen) == 2

    result = lbfgs(bowl, np.zeros((2, 2)), max_iter=100, tol=1e-12, on_iteration=on_iteration)
    assert (result.n_iter, result.status) == (2, Status.STOPPED)
    assert seen == result.curve[1:]


def test_an_interrupt_keeps_the_best():
    calls = []

    def interrupted(x):
        calls.append(bowl(x)[0])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return bowl(x)

    result = lbfgs(interrupted, np.zeros((2, 2)), max_iter=100, tol=1e-12)
    assert result.status is Status.INTERRUPTED
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
    assert result.status in (Status.STALLED, Status.CONVERGED, Status.MAX_ITER)
    assert result.value <= min(result.curve)
    assert result.value < 1
