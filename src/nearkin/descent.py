"""Descent: a function that returns (value, gradient) goes in, a frozen result with a diagnosis comes out."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Status(enum.Enum):
    """How a descent ended."""

    CONVERGED = "the value, or the gradient, has all but stopped to change"
    MAX_ITER = "the iterations allowed were used up"
    STALLED = "no lower value was found along the last direction: the precision of the arithmetic is reached"
    STOPPED = "a callback asked to stop"
    INTERRUPTED = "a KeyboardInterrupt"


@dataclass(frozen=True)
class DescentResult:
    """The lowest point that was seen, and how it was reached.

    Attributes
    ----------
    x : ndarray
        In the shape of the start.
    value : float
        The value there, the lowest of all evaluations.
    n_iter : int
        Iterations finished.
    n_evaluations : int
    curve : list of float
        Value at the start and after every iteration.
    status : Status
    """

    x: np.ndarray
    value: float
    n_iter: int
    n_evaluations: int
    curve: list[float]
    status: Status


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
