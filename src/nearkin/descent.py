"""Descent: from a function that returns (value, gradient) to a frozen result with a diagnosis.

`lbfgs` takes the function itself, and `lbfgs_rounds` a function that depends on neighbours, which
are searched again from time to time. `adam` only needs estimates, each from a different part of the
data.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

Value = tuple[float, np.ndarray]  # a value and its gradient
OnIteration = Callable[[np.ndarray], bool] | None

ROUND = 15  # iterations after which neighbours are searched again
RECENT, PAST = 0.9, 0.999  # decay of Adam's running means, the usual values


class Status(enum.IntEnum):
    """How a descent ended; the values but the last are those of SciPy's L-BFGS-B."""

    CONVERGED = 0  # the value has almost stopped changing, or the gradient is almost 0
    MAX_ITER = 1  # the maximum number of iterations was reached
    STALLED = 2  # no lower value was found within machine precision
    STOPPED = 99  # a callback requested it
    INTERRUPTED = 100  # a KeyboardInterrupt

    @classmethod
    def _missing_(cls, value: object) -> Status:
        return cls.STALLED  # a status that SciPy adds; the lowest point found is kept


class Momentum(NamedTuple):
    """Running means of a stochastic descent, over about ten gradients and a thousand squared norms.

    The norm replaces Adam's elementwise squares (Kingma and Ba, ICLR 2015), which makes the descent
    invariant to the choice of orthonormal coordinates.

    Attributes
    ----------
    mean : ndarray
        Of the gradients.
    square : float
        Of their squared norms.
    n_steps : int
        Number of steps so far.
    """

    mean: np.ndarray
    square: float = 0.0
    n_steps: int = 0


@dataclass(frozen=True)
class DescentResult:
    """The lowest point found (with `adam`, the last one), and how it was reached.

    Attributes
    ----------
    x : ndarray
        In the shape of the start.
    value : float
        The value there, the lowest of all evaluations; with `adam` the mean of the last estimates.
    n_iter : int
        Number of iterations finished.
    curve : list of float
        The value at the start and after every iteration; with `adam` the first estimate, and the
        mean of the estimates within every iteration.
    status : Status
    memory : Momentum or None
        The state with which `adam` can continue.
    error : float
        Standard error of the value, if it is an estimate.
    """

    x: np.ndarray
    value: float
    n_iter: int
    curve: list[float]
    status: Status
    memory: Momentum | None = None
    error: float = 0.0

    @property
    def ended_early(self) -> bool:
        """Whether a callback or an interrupt ended the descent."""
        return self.status in (Status.STOPPED, Status.INTERRUPTED)

    def then(self, next: DescentResult) -> DescentResult:
        """Return the result of a descent that continued this one, with the iterations of both."""
        return replace(next, n_iter=self.n_iter + next.n_iter, curve=self.curve + next.curve)


def lbfgs(
    function: Callable[[np.ndarray], Value],
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration = None,
) -> DescentResult:
    """Minimize by limited-memory BFGS (SciPy's L-BFGS-B).

    Parameters
    ----------
    function : callable
        Takes an array in the shape of `start`; returns the value, and the gradient in that shape.
    start : ndarray
        Scaled such that steps of size 1 are sensible; the first step is at most that long.
    max_iter : int
        Maximum number of iterations; each takes one evaluation, rarely more.
    tol : float
        Converged if an iteration lowers the value by less than `tol * max(|value|, 1)`, or if no
        entry of the gradient exceeds tol.
    on_iteration : callable, default=None
        Called after every iteration with the best point so far; True ends the descent.

    Returns
    -------
    DescentResult
        A KeyboardInterrupt is not raised but reported in `status`: the caller stores the result,
        then raises it again.
    """
    best, lowest, curve = np.ravel(start).astype(np.float64), np.inf, list[float]()

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, lowest
        value, gradient = function(x.reshape(start.shape))
        if value < lowest:
            best, lowest = x.copy(), float(value)
        if not curve:
            curve.append(float(value))
        return float(value), np.ravel(gradient).astype(np.float64)

    def after_iteration(intermediate_result: Any) -> None:
        curve.append(float(intermediate_result.fun))
        if on_iteration is not None and on_iteration(best.reshape(start.shape)):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter + 20, "ftol": tol, "gtol": tol}
    try:
        found = minimize(
            evaluate, best, jac=True, method="L-BFGS-B", callback=after_iteration, options=options
        )
        status = Status(found.status)
    except KeyboardInterrupt:
        if not curve:
            raise
        status = Status.INTERRUPTED
    return DescentResult(best.reshape(start.shape), lowest, len(curve) - 1, curve, status)


def lbfgs_rounds(
    loss: Callable[..., Value],
    start: np.ndarray,
    *,
    look_up: Callable[[np.ndarray], Any],
    max_iter: int,
    tol: float,
    on_iteration: OnIteration = None,
    finish_exactly: bool = False,
) -> DescentResult:
    """Minimize a loss by `lbfgs`, updating the neighbours it depends on every 15 iterations.

    A round lowers the loss for its initial neighbours, and might do so by letting other rows come
    close. Two points are therefore compared by the loss with the neighbours of each. A round that
    has raised *this* loss is undone and ends the descent.

    Parameters
    ----------
    loss : function `loss(x, neighbors)` of the point and of its neighbours
        Returns the value and the gradient; without neighbours (None), it finds them itself or needs
        none.
    look_up : function of the point
        Returns its neighbours, or None if the loss with None is as fast: one more round then runs
        to the end.
    finish_exactly : bool, default=False
        Whether an undone round is followed by a last one with None.
    start, max_iter, tol, on_iteration
        See `lbfgs`. `max_iter` counts the iterations of all rounds.

    Returns
    -------
    DescentResult
        As from `lbfgs`, with the iterations of all rounds.
    """
    neighbors = look_up(start)
    value = np.inf if neighbors is None else loss(start, neighbors)[0]
    best = DescentResult(start, value, 0, [], Status.MAX_ITER)
    while best.status is Status.MAX_ITER and best.n_iter < max_iter:
        is_last = neighbors is None
        n_iter = max_iter - best.n_iter
        found = lbfgs(
            partial(loss, neighbors=neighbors),
            best.x,
            max_iter=n_iter if is_last else min(ROUND, n_iter),
            tol=tol,
            on_iteration=on_iteration,
        )
        if not (is_last or found.ended_early):
            try:
                neighbors = look_up(found.x)
                value = loss(found.x, neighbors)[0]
            except KeyboardInterrupt:
                found = replace(found, status=Status.INTERRUPTED)
            else:
                risen = value > best.value
                level = best.value - value <= ROUND * tol * max(abs(value), 1)
                converged = level and not (risen and finish_exactly)
                status = Status.CONVERGED if converged else Status.MAX_ITER
                if risen:
                    found, neighbors = replace(found, x=best.x), None
                found = replace(found, value=min(value, best.value), status=status)
        best = best.then(found)
        if is_last:
            break
    return best


def adam(
    estimate: Callable[[np.ndarray, int], Value],
    start: np.ndarray,
    *,
    n_batches: int,
    max_iter: int,
    tol: float,
    step: Callable[[int], float],
    memory: Momentum | None = None,
    on_iteration: OnIteration = None,
) -> DescentResult:
    """Minimize a function of which only estimates are known, by steps against the mean gradient.

        x <- x - step(t) mean(gradient) / sqrt(mean(||gradient||^2))

    Parameters
    ----------
    estimate : callable
        Takes x and the number t = 0, 1, ... of the step; returns estimates of the value and the
        gradient.
    start : ndarray
    n_batches : int
        Steps per iteration, over which the estimates average to the value.
    max_iter : int
        Number of iterations, all of which are taken unless a callback stops the descent, so that a
        decreasing step length can be planned.
    tol : float
        Converged if, between the last two fifths of the steps, a step lowers the estimates on
        average by less than `tol * max(|value|, 1)`, or if their change is within the noise (two
        standard errors).
    step : callable
        Returns the length of step t, which is its norm if the gradients agree.
    memory : Momentum, default=None
        Of a descent to continue.
    on_iteration : callable, default=None
        Called after every iteration with the current point; True ends the descent.

    Returns
    -------
    DescentResult
        A KeyboardInterrupt is reported in `status`, as by `lbfgs`.
    """
    x = start.astype(np.float64)
    mean, square, n_steps = memory or Momentum(np.zeros_like(x))
    values: list[float] = []
    means: list[float] = []  # of the values within every iteration
    status = Status.MAX_ITER
    try:
        while len(means) < max_iter and status is Status.MAX_ITER:
            for t in range(len(values), len(values) + n_batches):
                value, gradient = estimate(x, t)
                values.append(float(value))
                mean = RECENT * mean + (1 - RECENT) * gradient
                square = PAST * square + (1 - PAST) * float(np.sum(gradient**2))
                n_steps += 1
                # both running means are corrected for the bias from their start at 0
                typical = (square / (1 - PAST**n_steps)) ** 0.5
                if typical > 0:
                    x = x - step(t) * (mean / (1 - RECENT**n_steps) / typical)
            means.append(float(np.mean(values[-n_batches:])))
            if on_iteration is not None and on_iteration(x):
                status = Status.STOPPED
    except KeyboardInterrupt:
        if not values:
            raise
        status = Status.INTERRUPTED
    # whether the last fifth of the values is level with the fifth before, within their noise
    count = len(values) // 5
    if status is Status.MAX_ITER and count > 1:
        before, last = np.array(values[-2 * count : -count]), np.array(values[-count:])
        noise = ((before.var(ddof=1) + last.var(ddof=1)) / count) ** 0.5
        fall = before.mean() - last.mean()
        if fall <= tol * count * max(abs(last.mean()), 1) + 2 * noise:
            status = Status.CONVERGED
    value, memory = float(np.mean(values[-n_batches:])), Momentum(mean, square, n_steps)
    return DescentResult(x, value, len(means), values[:1] + means, status, memory)
