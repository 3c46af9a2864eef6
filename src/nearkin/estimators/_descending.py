"""What the maps that are found by descent share: rows in natural units, and rounds of descent on moving neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from .._array import densified
from .._warn import warn_user
from ..descent import DescentResult, Status, lbfgs
from ..scatter import RowSpace, row_space
from ._starts import unit_distance

EXACT_PRECISION = 2000  # rows up to which a descent computes in float64
REFRESH = 15  # iterations after which the neighbours are looked up again

Loss = Callable[[np.ndarray, Any], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class UnitRows:
    """Rows about their mean, in units of the typical distance of neighbours: what descent sees has no scale.

    Attributes
    ----------
    X : array of shape (n, r), or sparse matrix
        float64 for up to 2,000 rows, float32 beyond: there the sums of many rows make up for it. Sparse X is not
        centred.
    unit : float
    space : RowSpace
        The way back to the features.
    """

    X: Any
    unit: float
    space: RowSpace

    @classmethod
    def of(cls, X: Any, *, within_span: bool) -> UnitRows:
        """Return the rows of X; with `within_span`, for p > n, in coordinates of the span of the rows."""
        space = row_space(X) if within_span and X.shape[1] > X.shape[0] else RowSpace(densified(X), None)
        X = _centred(space.coordinates, np.float64 if X.shape[0] <= EXACT_PRECISION else np.float32)
        unit = unit_distance(X)
        return cls(X / X.dtype.type(unit), unit, space)

    def components(self, B: np.ndarray, dtype: Any) -> np.ndarray:
        """Return a map of these rows as a map of the features, shape (m, p); a vector is the diagonal of one."""
        B = np.diag(B) if B.ndim == 1 else B
        return self.space.lift(B.T / self.unit).astype(dtype, copy=False)

    def coordinates_of(self, A: np.ndarray) -> np.ndarray:
        """Return a map (m, p) of the features as a map of these rows."""
        return A * self.unit if self.space.to_features is None else A @ self.space.basis.T * self.unit


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
) -> DescentResult:
    """Descend from `start`, looking up the neighbours of the moving rows again every few iterations.

    A round lowers the loss for the neighbours that it began with, and could do so by letting others come near. Hence
    points are compared on one footing only: each with the neighbours that are the nearest at that very point. A round
    that has not lowered *this* loss is undone and ends the descent.

    Parameters
    ----------
    loss : function of the map and of the neighbours
        Returns the value and its gradient.
    start : ndarray
    look_up : function of the map, or None
        Returns the neighbours; None for a loss that needs none: then there is one round.
    max_iter, tol, on_iteration
        As for `lbfgs`, over all rounds.
    """
    if look_up is None:
        return lbfgs(lambda B: loss(B, None), start, max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    neighbors = look_up(start)
    best = DescentResult(start, loss(start, neighbors)[0], 0, 1, [], Status.MAX_ITER)
    while best.n_iter < max_iter and best.status is Status.MAX_ITER:
        best, neighbors = _next_round(loss, best, neighbors, look_up, max_iter, tol, on_iteration)
    return best


def _next_round(
    loss: Loss, best: DescentResult, neighbors: Any, look_up: Any, max_iter: int, tol: float, on_iteration: Any
) -> tuple[DescentResult, Any]:
    """Return the outcome of one round more, MAX_ITER if another may follow, and the neighbours there."""
    n_iter = min(REFRESH, max_iter - best.n_iter)
    found = lbfgs(lambda B: loss(B, neighbors), best.x, max_iter=n_iter, tol=tol, on_iteration=on_iteration)
    x, value, status = found.x, found.value, found.status
    if status not in (Status.STOPPED, Status.INTERRUPTED):
        neighbors = look_up(x)
        value = loss(x, neighbors)[0]
        if value > best.value:
            x, value, status = best.x, best.value, Status.CONVERGED
        elif best.value - value <= REFRESH * tol * max(abs(value), 1.0):
            status = Status.CONVERGED
        else:
            status = Status.MAX_ITER
    total = (best.n_iter + found.n_iter, best.n_evaluations + found.n_evaluations + 1, best.curve + found.curve)
    return DescentResult(x, value, *total, status), neighbors


def penalized(value: float, gradient: np.ndarray, B: np.ndarray, alpha: float, n: int) -> tuple[float, np.ndarray]:
    """Return the loss `value + alpha / sqrt(n) ||B||^2` and its gradient.

    B is the map in units of the typical distance, so the scale of X does not matter; what n rows leave uncertain of a
    mean falls with 1 / sqrt(n), and so does what it takes to keep a map from fitting it.
    """
    weight = alpha / n**0.5
    return value + weight * float(np.sum(B * B)), gradient + 2 * weight * B


def affordable(B: np.ndarray, alpha: float, n: int) -> np.ndarray:
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
    if last is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if best.status is Status.MAX_ITER:
        warn_user(
            f"max_iter={max_iter} iterations ended the descent before it converged: the map is good, not final. Raise "
            "max_iter or tol, or standardize the features.",
            ConvergenceWarning,
        )
    elif best.n_iter == 0 and best.status is not Status.STOPPED:
        warn_user(
            "The descent has not moved from its start: no direction lowers the loss there. Take another init, or a "
            "larger alpha.",
            ConvergenceWarning,
        )
