"""Solvers: from a loss and a start to the lowest point found, with a diagnosis.

`lbfgs` takes any function that returns its value and gradient. `lbfgs_rounds` takes a `Loss` that
depends on neighbours, which are searched again from time to time. `adam` only needs estimates of
the function, and `sgd` takes them from minibatches of the rows of a `Loss`. `minimize` descends
from several starts by one of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import optimize

from .objectives.loss import Batch, Batches, Loss, Part, Value

OnIteration = Callable[[np.ndarray], bool] | None

MAX_ITER = 200
ROUND = 15  # iterations after which neighbours are searched again
RECENT, PAST = 0.9, 0.999  # decay of Adam's running means, the usual values
STEP = 0.1  # the first step length of `sgd`, in units of a map that preserves distances
SLOWING = 100  # steps after which those of `sgd` begin to shrink if more rows may follow


class DescentStatus(enum.IntEnum):
    """How a descent ended; the values but the last are those of SciPy's L-BFGS-B."""

    CONVERGED = 0  # the value has almost stopped changing, or the gradient is almost 0
    MAX_ITER = 1  # the maximum number of iterations was reached
    STALLED = 2  # no lower value was found within machine precision
    STOPPED = 99  # a callback requested it
    INTERRUPTED = 100  # a KeyboardInterrupt

    @classmethod
    def _missing_(cls, value: object) -> DescentStatus:
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
    status : DescentStatus
    memory : Momentum or None
        The state with which `adam` can continue.
    error : float
        Standard error of the value, if it is an estimate.
    """

    x: np.ndarray
    value: float
    n_iter: int
    curve: list[float]
    status: DescentStatus
    memory: Momentum | None = None
    error: float = 0.0

    @property
    def ended_early(self) -> bool:
        """Whether a callback or an interrupt ended the descent."""
        return self.status in (DescentStatus.STOPPED, DescentStatus.INTERRUPTED)

    def in_units(self, unit: float) -> DescentResult:
        """Return the result for the loss, if the descent was that of the loss divided by `unit`."""
        curve = [unit * value for value in self.curve]
        return replace(self, value=float(unit * self.value), curve=curve)

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

    def after_iteration(intermediate_result: optimize.OptimizeResult) -> None:
        curve.append(float(intermediate_result.fun))
        if on_iteration is not None and on_iteration(best.reshape(start.shape)):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter + 20, "ftol": tol, "gtol": tol}
    try:
        found = optimize.minimize(
            evaluate, best, jac=True, method="L-BFGS-B", callback=after_iteration, options=options
        )
        status = DescentStatus(found.status)
    except KeyboardInterrupt:
        if not curve:
            raise
        status = DescentStatus.INTERRUPTED
    return DescentResult(best.reshape(start.shape), lowest, len(curve) - 1, curve, status)


def lbfgs_rounds(
    loss: Loss[Part, Batch],
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration = None,
    finish_exactly: bool = False,
) -> DescentResult:
    """Minimize a loss by `lbfgs`, updating the candidates it depends on every 15 iterations.

    A round lowers the loss for its initial candidates, and might do so by letting other rows come
    close. Two points are therefore compared by the loss with the candidates of each. A round that
    has raised *this* loss is undone and ends the descent.

    Parameters
    ----------
    loss : Loss
        Once it has no candidates, one more round runs to the end.
    finish_exactly : bool, default=False
        Whether an undone round is followed by a last one with None.
    start, max_iter, tol, on_iteration
        See `lbfgs`. `max_iter` counts the iterations of all rounds.

    Returns
    -------
    DescentResult
        As from `lbfgs`, with the iterations of all rounds.
    """
    part = loss.candidates(start)
    value = np.inf if part is None else loss.value(start, part)[0]
    best = DescentResult(start, value, 0, [], DescentStatus.MAX_ITER)
    while best.status is DescentStatus.MAX_ITER and best.n_iter < max_iter:
        is_last = part is None
        n_iter = max_iter - best.n_iter
        found = lbfgs(
            partial(loss.value, part=part),
            best.x,
            max_iter=n_iter if is_last else min(ROUND, n_iter),
            tol=tol,
            on_iteration=on_iteration,
        )
        if not (is_last or found.ended_early):
            try:
                part = loss.candidates(found.x)
                value = loss.value(found.x, part)[0]
            except KeyboardInterrupt:
                found = replace(found, status=DescentStatus.INTERRUPTED)
            else:
                risen = value > best.value
                level = best.value - value <= ROUND * tol * max(abs(value), 1)
                converged = level and not (risen and finish_exactly)
                status = DescentStatus.CONVERGED if converged else DescentStatus.MAX_ITER
                if risen:
                    found, part = replace(found, x=best.x), None
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
    status = DescentStatus.MAX_ITER
    try:
        while len(means) < max_iter and status is DescentStatus.MAX_ITER:
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
                status = DescentStatus.STOPPED
    except KeyboardInterrupt:
        if not values:
            raise
        status = DescentStatus.INTERRUPTED
    # whether the last fifth of the values is level with the fifth before, within their noise
    count = len(values) // 5
    if status is DescentStatus.MAX_ITER and count > 1:
        before, last = np.array(values[-2 * count : -count]), np.array(values[-count:])
        noise = ((before.var(ddof=1) + last.var(ddof=1)) / count) ** 0.5
        fall = before.mean() - last.mean()
        if fall <= tol * count * max(abs(last.mean()), 1) + 2 * noise:
            status = DescentStatus.CONVERGED
    value, memory = float(np.mean(values[-n_batches:])), Momentum(mean, square, n_steps)
    return DescentResult(x, value, len(means), values[:1] + means, status, memory)


def sgd(
    loss: Loss[Part, Batch],
    start: np.ndarray,
    *,
    batches: Batches[Batch],
    tol: float,
    more_follow: bool = False,
    memory: Momentum | None = None,
    on_iteration: OnIteration = None,
) -> DescentResult:
    """Minimize a loss of a map by `adam` over minibatches, and evaluate the last map.

    Parameters
    ----------
    loss : Loss
    start : ndarray of shape (m, r), or (r,)
        For rows in units of the typical distance of neighbours: the first step has a tenth of the
        norm of a map that preserves distances.
    batches : Batches
    more_follow : bool, default=False
        Whether the descent may be continued with other rows. The length of step t, over all calls,
        then shrinks as 1 / sqrt(t); otherwise it decreases linearly to 0.
    tol, memory, on_iteration
        See `adam`.

    Returns
    -------
    DescentResult
        As from `adam`, with the value and the error of `loss.evaluate`.
    """
    length = STEP * len(start) ** 0.5
    n_before = 0 if memory is None else memory.n_steps

    def step(t: int) -> float:
        if more_follow:
            return length / (1 + (n_before + t) / SLOWING) ** 0.5
        return length * (1 - t / (batches.n_epochs * batches.n_batches))

    found = adam(
        lambda x, t: loss.estimate(x, batches(x, t)),
        start,
        n_batches=batches.n_batches,
        max_iter=batches.n_epochs,
        tol=tol,
        step=step,
        memory=memory,
        on_iteration=on_iteration,
    )
    value, error = loss.evaluate(found.x)
    return replace(found, value=value, error=error)


def minimize(
    loss: Loss[Part, Batch],
    starts: Iterable[np.ndarray],
    *,
    solver: str,
    batch_size: int | str,
    max_iter: int | str,
    tol: float,
    rng: np.random.RandomState,
    on_iteration: OnIteration,
) -> DescentResult:
    """Minimize a loss by `lbfgs_rounds` or by `sgd` from each start, and keep the lowest value.

    A descent that is ended early is the last one.

    Parameters
    ----------
    loss : Loss
    starts : iterable of ndarray
        May draw from `rng`.
    solver : {"lbfgs", "sgd"}
    batch_size : int or "auto"
        Of "sgd": see `loss.batches`.
    max_iter : int or "auto"
        Iterations of L-BFGS, 200 by default, or epochs.
    tol, on_iteration
        See `lbfgs` and `adam`.
    rng : RandomState
        Seeds the minibatches.
    """
    if solver == "sgd":
        batches = loss.batches(batch_size, max_iter, np.random.default_rng(rng.randint(2**31)))
        solve = partial(sgd, loss, batches=batches, tol=tol, on_iteration=on_iteration)
    else:
        n_iter = MAX_ITER if isinstance(max_iter, str) else max_iter
        solve = partial(lbfgs_rounds, loss, max_iter=n_iter, tol=tol, on_iteration=on_iteration)
    best: DescentResult | None = None
    for start in starts:
        found = solve(start)
        best = found if best is None or found.value < best.value else best
        if found.ended_early:
            best = replace(best, status=found.status)
            break
    assert best is not None
    return best
