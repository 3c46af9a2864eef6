"""What the maps that are found by descent share: rows in natural units, and rounds of descent on moving neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from .._blocks import densified
from .._callbacks import FitTask
from .._warn import warn_user
from ..descent import DescentResult, Status, lbfgs
from ..objectives.nca import embed
from ..scatter import RowSpace, row_space
from ._starts import unit_distance

EXACT_PRECISION = 2000  # rows up to which a descent computes in float64
REFRESH = 15  # iterations after which the neighbours are looked up again

Loss = Callable[[np.ndarray, Any], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Scale:
    """How a map of rows in units of the typical distance of neighbours and one of the features come from each other.

    Attributes
    ----------
    unit : float
        The typical distance.
    space : RowSpace
        The way back to the features.
    """

    unit: float
    space: RowSpace

    def components(self, B: np.ndarray, dtype: Any) -> np.ndarray:
        """Return a map of these rows as a map of the features, shape (m, p); a vector is the diagonal of one."""
        B = np.diag(B) if B.ndim == 1 else B
        return self.space.back_project(B.T / self.unit).astype(dtype, copy=False)

    def coordinates_of(self, A: np.ndarray) -> np.ndarray:
        """Return a map (m, p) of the features as a map of these rows."""
        return A * self.unit if self.space.to_features is None else A @ self.space.basis.T * self.unit


@dataclass(frozen=True)
class UnitRows(Scale):
    """Rows about their mean, in units of the typical distance of neighbours: what descent sees has no scale.

    Attributes
    ----------
    X : array of shape (n, r), or sparse matrix
        float64 for up to 2,000 rows, float32 beyond: there the sums of many rows make up for it. Sparse X is not
        centred.
    """

    X: Any

    @classmethod
    def of(cls, X: Any, *, within_span: bool) -> UnitRows:
        """Return the rows of X; with `within_span`, for p > n, in coordinates of the span of the rows."""
        space = row_space(X) if within_span and X.shape[1] > X.shape[0] else RowSpace(densified(X), None)
        X = _centred(space.coordinates, np.float64 if X.shape[0] <= EXACT_PRECISION else np.float32)
        unit = unit_distance(X)
        return cls(unit, space, X / X.dtype.type(unit))

    def embedded(self, B: np.ndarray) -> np.ndarray:
        """Return the rows under a map, shape (n, m), about their mean."""
        return embed(B, self.X)


def _centred(X: Any, dtype: Any) -> Any:
    """Return X in `dtype`, dense X about its mean: far from the origin the first mean is rounded, hence two."""
    if issparse(X):
        return X.astype(dtype)
    X = (X - X.mean(axis=0, dtype=np.float64)).astype(dtype)
    return X - X.mean(axis=0, dtype=np.float64).astype(dtype)


def descend(
    loss: Loss,
    start: np.ndarray,
    *,
    look_up: Callable[[np.ndarray], Any] | None,
    max_iter: int,
    tol: float,
    on_iteration: Callable[[np.ndarray], bool],
    unit: float = 1.0,
    exact: bool = False,
) -> DescentResult:
    """Descend from `start`, looking up the neighbours of the moving rows again every few iterations.

    A round lowers the loss for the neighbours that it began with, and could do so by letting others come near. Hence
    points are compared on one footing only: each with the neighbours that are the nearest at that very point. A round
    that has not lowered *this* loss is undone and ends the descent; with `exact`, what is left of it goes on without
    rounds.

    Parameters
    ----------
    loss : function of the map and of the neighbours
        Returns the value and its gradient.
    start : ndarray
    look_up : function of the map, or None
        Returns the neighbours; None for a loss that needs none: then there is one round.
    max_iter, tol, on_iteration, unit
        As for `lbfgs`, over all rounds.
    exact : bool, default=False
        Whether the loss, given None for the neighbours, looks them up itself: slow, but nobody comes near unseen.
        `look_up` may then return None to say that lists are not worth their while.
    """
    one = partial(lbfgs, tol=tol, on_iteration=on_iteration, unit=unit)
    if look_up is None:
        return one(_among(None, loss), start, max_iter=max_iter)
    neighbors = look_up(start)
    best = DescentResult(start, loss(start, neighbors)[0], 0, 1, [], Status.MAX_ITER)
    while best.n_iter < max_iter and best.status is Status.MAX_ITER:
        left = max_iter - best.n_iter
        n_iter = left if neighbors is None else min(REFRESH, left)
        found = one(_among(neighbors, loss), best.x, max_iter=n_iter)
        if neighbors is not None and found.status not in (Status.STOPPED, Status.INTERRUPTED):
            found, neighbors = _accept_round(loss, look_up, best, found, REFRESH * tol, unit, exact)
        best = chain(best, found)
    return best


def _among(neighbors: Any, loss: Loss) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    return lambda B: loss(B, neighbors)


def _accept_round(
    loss: Loss, look_up: Any, best: DescentResult, found: DescentResult, tol: float, unit: float, exact: bool
) -> tuple[DescentResult, Any]:
    """Return what a round has found, or undo it; MAX_ITER if another may follow, and the neighbours for that."""
    try:
        neighbors = look_up(found.x)
        value = loss(found.x, neighbors)[0]
    except KeyboardInterrupt:
        return replace(found, status=Status.INTERRUPTED), None
    if value > best.value:
        return replace(found, x=best.x, value=best.value, status=Status.MAX_ITER if exact else Status.CONVERGED), None
    converged = best.value - value <= tol * max(abs(value), unit)
    return replace(found, value=value, status=Status.CONVERGED if converged else Status.MAX_ITER), neighbors


def chain(first: DescentResult, then: DescentResult) -> DescentResult:
    """Return where the second descent, which set out from the end of the first, has ended, and what both have taken."""
    n_iter, n_evaluations = first.n_iter + then.n_iter, first.n_evaluations + then.n_evaluations
    return replace(then, n_iter=n_iter, n_evaluations=n_evaluations, curve=first.curve + then.curve)


def telling(task: FitTask, rows: Scale, dtype: Any) -> Callable[[np.ndarray], bool]:
    """Return the function that tells callbacks of an iteration, and says whether one of them asks to stop."""
    return lambda B: task.iteration(lambda: {"components_": rows.components(B, dtype)})


def keep(estimator: Any, best: DescentResult, rows: Scale, dtype: Any) -> None:
    """Set what every map says of the descent that found it, but for the objective, which is the method's own."""
    estimator.components_ = rows.components(best.x, dtype)
    estimator.n_components_ = len(estimator.components_)
    estimator.n_iter_, estimator.loss_curve_ = best.n_iter, np.array(best.curve)


def penalized(value: float, gradient: np.ndarray, B: np.ndarray, alpha: float, n: int) -> tuple[float, np.ndarray]:
    """Return the loss `value + alpha / sqrt(n) ||B||^2` and its gradient.

    B is the map in units of the typical distance, so the scale of X does not matter; what n rows leave uncertain of a
    mean falls with 1 / sqrt(n), and so does what it takes to keep a map from fitting it.
    """
    weight = alpha / n**0.5
    return value + weight * float(np.sum(B * B)), gradient + 2 * weight * B


def cap_penalty(B: np.ndarray, alpha: float, n: int) -> np.ndarray:
    """Return a start, drawn in until its penalty is at most 1, the range of f.

    From where the penalty is all that counts a descent leaps to the map 0, and stays there.
    """
    cost = penalized(0.0, B, B, alpha, n)[0]
    return B / max(1.0, cost**0.5)


def best_descent(
    starts: Iterable[np.ndarray], one: Callable[[np.ndarray], DescentResult]
) -> tuple[DescentResult, Status]:
    """Return the lowest of the descents from several starts, and how the last one ended.

    A callback's request to stop, or an interrupt, ends them all.
    """
    best = None
    for start in starts:
        result = one(start)
        best = result if best is None or result.value < best.value else best
        if result.status in (Status.STOPPED, Status.INTERRUPTED):
            break
    if best is None:
        raise ValueError("There is no start.")
    return best, result.status


def report(best: DescentResult, last: Status, max_iter: int) -> None:
    """Raise the interrupt that ended the descent, once the estimator has kept its result; warn of what did not end."""
    raise_interrupt(last)
    if best.status is Status.MAX_ITER:
        warn_user(
            f"max_iter={max_iter} iterations ended the descent before it converged: the map is good, not final. Raise "
            "max_iter or tol, or standardize the features.",
            ConvergenceWarning,
        )


def raise_interrupt(status: Status) -> None:
    """Raise the interrupt that ended a descent, once the estimator has kept its result."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def report_unmoved(best: DescentResult) -> None:
    """Warn of a descent that has not begun, where a flat start need not be the optimum."""
    if best.n_iter == 0 and best.status not in (Status.STOPPED, Status.MAX_ITER):
        warn_user(
            "The descent has not moved from its start: no direction lowers the loss there. Take another init, or a "
            "larger alpha.",
            ConvergenceWarning,
        )
