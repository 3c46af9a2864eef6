"""Descent: a function that returns (value, gradient) goes in, a frozen result with a diagnosis comes out.

`lbfgs` wants the function itself; `adam` is content with estimates, each from another part of the data.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Estimate = Callable[[np.ndarray, int], tuple[float, np.ndarray]]


RECENT, PAST = 0.9, 0.999  # what a step leaves of the running means: the usual values


class Status(enum.Enum):
    """How a descent ended."""

    CONVERGED = "the value, or the gradient, has all but stopped to change"
    MAX_ITER = "the iterations allowed were used up"
    STALLED = "no lower value was found along the last direction: the precision of the arithmetic is reached"
    STOPPED = "a callback asked to stop"
    INTERRUPTED = "a KeyboardInterrupt"


@dataclass(frozen=True, eq=False)
class Momentum:
    """What a stochastic descent remembers of its gradients: the mean of about the last ten, and that of the squares of
    the norms of about the last thousand.

    The norm stands where Adam (Kingma and Ba, ICLR 2015) has every entry by itself: so the descent is the same in all
    orthonormal coordinates.

    Attributes
    ----------
    mean : ndarray
    square : float
    n_steps : int
    """

    mean: np.ndarray
    square: float = 0.0
    n_steps: int = 0

    def after(self, gradient: np.ndarray) -> Momentum:
        """Return what is remembered once there is one gradient more."""
        mean = RECENT * self.mean + (1 - RECENT) * gradient
        square = PAST * self.square + (1 - PAST) * float(np.sum(gradient**2))
        return Momentum(mean, square, self.n_steps + 1)

    @property
    def direction(self) -> np.ndarray:
        """The mean gradient in units of the typical norm of one, both freed from the 0 that they began with."""
        typical = (self.square / (1 - PAST**self.n_steps)) ** 0.5
        return self.mean / (1 - RECENT**self.n_steps) / typical if typical > 0 else np.zeros_like(self.mean)


@dataclass(frozen=True)
class DescentResult:
    """The lowest point that was seen, or with `adam` the last one, and how it was reached.

    Attributes
    ----------
    x : ndarray
        In the shape of the start.
    value : float
        The value there, the lowest of all evaluations; with `adam` the mean of the last estimates.
    n_iter : int
        Iterations finished.
    n_evaluations : int
    curve : list of float
        Value at the start and after every iteration; with `adam` the first estimate and the mean of those of every
        iteration, made while the point moved.
    status : Status
    memory : Momentum or None
        What `adam` has to know to go on.
    error : float
        Standard error of a value that is an estimate.
    """

    x: np.ndarray
    value: float
    n_iter: int
    n_evaluations: int
    curve: list[float]
    status: Status
    memory: Momentum | None = None
    error: float = 0.0


def lbfgs(
    function: Function,
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    unit: float = 1.0,
    on_iteration: Callable[[np.ndarray], bool] | None = None,
) -> DescentResult:
    """Minimize by limited-memory BFGS (SciPy's L-BFGS-B).

    Parameters
    ----------
    function : callable
        Of an array in the shape of `start`; returns the value and the gradient, in that shape.
    start : ndarray
        Scaled so that steps of size 1 are sensible: the first is at most that long.
    max_iter : int
        Iterations; each takes one evaluation, seldom more.
    tol : float
        Converged when an iteration lowers the value by less than tol * max(|value|, unit), or when no entry of the
        gradient exceeds tol * unit.
    unit : float, default=1.0
        A value of ordinary size.
    on_iteration : callable, default=None
        Called after every iteration with the best point so far; True ends the descent.

    Returns
    -------
    DescentResult
        A KeyboardInterrupt during the descent is not raised but told by `status`: the caller keeps the result, then
        raises it again.
    """
    watch = _Watch(function, start, unit, on_iteration)
    try:
        found = minimize(
            watch.evaluate,
            np.ravel(start).astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=watch.iterated,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter + 20, "ftol": tol, "gtol": tol},
        )
        status = {0: Status.CONVERGED, 1: Status.MAX_ITER}.get(found.status, Status.STALLED)
    except _Stop:
        status = Status.STOPPED
    except KeyboardInterrupt:
        if watch.curve == []:
            raise
        status = Status.INTERRUPTED
    x = watch.best.reshape(start.shape)
    return DescentResult(x, watch.lowest, len(watch.curve) - 1, watch.n_evaluations, watch.curve, status)


def adam(
    estimate: Estimate,
    start: np.ndarray,
    *,
    n_batches: int,
    max_iter: int,
    tol: float,
    step: Callable[[int], float],
    unit: float = 1.0,
    memory: Momentum | None = None,
    on_iteration: Callable[[np.ndarray], bool] | None = None,
) -> DescentResult:
    """Minimize what is only known by estimates: steps against the running mean of their gradients.

        x <- x - step(t) mean(gradient) / sqrt(mean(||gradient||^2))

    Parameters
    ----------
    estimate : callable
        Of x and of the number t = 0, 1, ... of the step; returns estimates of the value and the gradient.
    start : ndarray
    n_batches : int
        Steps of an iteration, over which the estimates average to the value.
    max_iter : int
        Iterations, all of them taken unless somebody stops the descent: so a step that decreases with t is planned.
    tol : float
        Converged when, from the last fifth of the steps but one to the last, a step lowers the estimates by less than
        tol * max(|value|, unit) in the mean, or when their noise (two standard errors) hides how they change.
    step : callable
        Returns the length of step t: its norm, if the gradients agree.
    unit : float, default=1.0
        A value of ordinary size.
    memory : Momentum, default=None
        Of a descent that this one continues.
    on_iteration : callable, default=None
        Called after every iteration with the point reached; True ends the descent.

    Returns
    -------
    DescentResult
        A KeyboardInterrupt during the descent is not raised but told by `status`, as `lbfgs` does.
    """
    x = start.astype(np.float64)
    memory = memory or Momentum(np.zeros_like(x))
    values: list[float] = []
    status, n_iter = Status.MAX_ITER, 0
    try:
        while n_iter < max_iter and status is Status.MAX_ITER:
            for t in range(n_iter * n_batches, (n_iter + 1) * n_batches):
                value, gradient = estimate(x, t)
                values.append(float(value))
                memory = memory.after(gradient)
                x = x - step(t) * memory.direction
            n_iter += 1
            if on_iteration is not None and on_iteration(x):
                status = Status.STOPPED
    except KeyboardInterrupt:
        if not values:
            raise
        status = Status.INTERRUPTED
    if status is Status.MAX_ITER and _settled(values, tol, unit):
        status = Status.CONVERGED
    curve = values[:1] + [float(np.mean(values[i * n_batches : (i + 1) * n_batches])) for i in range(n_iter)]
    return DescentResult(x, float(np.mean(values[-n_batches:])), n_iter, len(values), curve, status, memory)


def _settled(values: list[float], tol: float, unit: float) -> bool:
    """Say whether the last fifth of the values is level with the fifth before, as far as their noise tells."""
    count = len(values) // 5
    if count < 2:
        return False
    before, last = np.array(values[-2 * count : -count]), np.array(values[-count:])
    noise = ((before.var(ddof=1) + last.var(ddof=1)) / count) ** 0.5
    return bool(before.mean() - last.mean() <= tol * count * max(abs(last.mean()), unit) + 2 * noise)


class _Stop(Exception):  # noqa: N818 - not an error
    pass


class _Watch:
    """What happened so far, and the best of it."""

    def __init__(self, function: Function, start: np.ndarray, unit: float, on_iteration: Any) -> None:
        self.function, self.shape, self.unit, self.on_iteration = function, start.shape, unit, on_iteration
        self.best, self.lowest = np.ravel(start).astype(np.float64), np.inf
        self.n_evaluations = 0
        self.curve: list[float] = []

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.function(x.reshape(self.shape))
        value = float(value)
        self.n_evaluations += 1
        if value < self.lowest:
            self.best, self.lowest = x.copy(), value
        if not self.curve:
            self.curve.append(value)
        return value / self.unit, np.ravel(gradient).astype(np.float64) / self.unit

    def iterated(self, intermediate_result: Any) -> None:
        self.curve.append(float(intermediate_result.fun) * self.unit)
        if self.on_iteration is not None and self.on_iteration(self.best.reshape(self.shape)):
            raise _Stop
