"""What the maps that are found by descent share: rows without a scale, the penalty, and the fit of a problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from .._blocks import densified
from .._callbacks import CallbackSupportMixin, FitTask
from .._messages import counted
from .._validation import check_integer
from .._warn import warn_user
from ..descent import DescentResult, Status
from ..objectives.group_penalty import group_penalty
from ..objectives.linear_map import embed
from ..span import RowSpace, row_space
from .base import LinearEmbedding
from .initialization import nearest_squares, unit_distance

# How `nearkin.evaluation.compare` treats these methods: a fit with fewer components is not the beginning of another.
COMPARED = {"settings": lambda p: [{"n_components": min(p, 50)}], "nested": False}
# Ten times the default of NCA and MLKR: held-out rows are predicted as well, in about half the time.
EARLY = {"tol": 1e-4}
ENDED = {
    Status.CONVERGED: "converged",
    Status.MAX_ITER: "ended by max_iter",
    Status.STALLED: "ended by the precision of the arithmetic",
    Status.STOPPED: "stopped by a callback",
    Status.INTERRUPTED: "interrupted",
}
FLOAT64_ROWS = 2000  # rows up to which a descent computes in float64


@dataclass(frozen=True)
class Scale:
    """Between a map B of rows in units of the typical distance of neighbours, and the map A of the features.

    Attributes
    ----------
    unit : float
        The typical distance.
    space : RowSpace
        The way back to the features.
    """

    unit: float
    space: RowSpace

    def components(self, B: np.ndarray) -> np.ndarray:
        """Return A, shape (m, p), for B; a vector is the diagonal of a map."""
        B = np.diag(B) if B.ndim == 1 else B
        return self.space.back_project(B.T / self.unit)

    def coordinates(self, A: np.ndarray) -> np.ndarray:
        """Return B for A."""
        return A * self.unit if self.space.to_features is None else A @ self.space.basis.T * self.unit


@dataclass(frozen=True)
class UnitRows(Scale):
    """Rows about their mean, in units of the typical distance of neighbours: so the scale of X does not matter.

    Attributes
    ----------
    X : array of shape (n, r), or sparse matrix
        float64 for up to 2,000 rows, float32 beyond: there the sums of many rows make up for it. Sparse X is not
        centred.
    """

    X: Any

    @classmethod
    def of(cls, X: Any, *, within_span: bool, dtype: Any = None, **more: Any) -> Any:
        """Return the rows of X; with `within_span`, for p > n, in coordinates of the span of the rows."""
        space = row_space(X) if within_span and X.shape[1] > X.shape[0] else RowSpace(densified(X), None)
        X, dtype = space.coordinates, dtype or (np.float64 if X.shape[0] <= FLOAT64_ROWS else np.float32)
        if not issparse(X):
            X = (X - X.mean(axis=0, dtype=np.float64)).astype(dtype)
            X = X - X.mean(axis=0, dtype=np.float64).astype(dtype)  # far from the origin the first mean is rounded
        X = X.astype(dtype, copy=False)
        unit = unit_distance(X)
        return cls(unit, space, X / X.dtype.type(unit), **more)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""
        return self.X.shape

    def embedding(self, B: np.ndarray) -> np.ndarray:
        """Return Z = X B', shape (n, m), about its mean."""
        return embed(B, self.X)

    def nearest_squares(self, B: np.ndarray) -> np.ndarray:
        """Return the squared distances of some embedded rows to their 100 nearest, ascending."""
        return nearest_squares(self.embedding(B))


def n_directions(estimator: Any, most: int) -> int:
    """Return the number of dimensions that is requested, or all."""
    return most if estimator.n_components is None else check_integer(estimator.n_components, "n_components", 1, most)


def penalized(
    value: float, gradient: np.ndarray, B: np.ndarray, alpha: float, n: int, groups: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Return the loss `value + alpha / sqrt(n) ||B||^2` and its gradient; with groups of features, by their norm.

    What n rows leave uncertain of a mean falls with 1 / sqrt(n), and so does the penalty that keeps B from overfitting.
    """
    weight = alpha / n**0.5
    norm, slope = (float(np.sum(B * B)), 2 * B) if groups is None else group_penalty(B, groups)
    return value + weight * norm, gradient + weight * slope


def cap_penalty(B: np.ndarray, alpha: float, n: int) -> np.ndarray:
    """Return an init, scaled down until its penalty is at most 1, the range of f.

    Where the penalty dominates, a descent leaps to the map 0 and stays there.
    """
    cost = penalized(0.0, B, B, alpha, n)[0]
    return B / max(1.0, cost**0.5)


class DescentEmbedding(CallbackSupportMixin, LinearEmbedding):
    """A linear map that is found by descent. Abstract: a method defines `__init__` and `fit`."""

    max_iter: Any
    warm_start = False
    _ended = "ended"  # how the descent did
    _objective_phrase = "leave-one-out {objective} {objective_:.4g}"

    def fit_problem(self, problem: Any, dtype: Any = np.float64, task: FitTask | None = None) -> Self:
        """Learn the map that a descent finds, the lowest from several inits.

        Parameters
        ----------
        problem : NCAProblem or other
            With `rows`, a `Scale`; `inits()`, which yields maps B; `descend(B, on_iteration)`, which returns a
            `DescentResult`; and `attributes(best)`, which returns what else there is to set.
        dtype : {float64, float32}, default=float64
            Of `components_`.
        task : FitTask, default=None
            To which iterations are reported, and the end of the fit.

        Returns
        -------
        self
        """

        def components(B: np.ndarray) -> np.ndarray:
            return problem.rows.components(B).astype(dtype, copy=False)

        def on_iteration(B: np.ndarray) -> bool:
            return task is not None and task.iteration(lambda: {"components_": components(B)})

        best: Any = None
        for init in problem.inits():
            found = problem.descend(init, on_iteration)
            best = found if best is None or found.value < best.value else best
            if found.ended_early:
                best = replace(best, status=found.status)
                break
        self.components_ = components(best.x)
        self.n_components_ = len(self.components_)
        self.n_iter_, self.loss_curve_ = best.n_iter, np.array(best.curve)
        self._ended = ENDED[best.status]
        for name, value in problem.attributes(best).items():
            setattr(self, name, value)
        self._report(best)
        if task is not None:
            task.end()
        return self

    def _objective(self) -> str:
        unit = "epoch" if getattr(self, "solver", None) == "sgd" else "iteration"
        return f"{super()._objective()}, {self._ended} after {counted(self.n_iter_, unit)}"

    def _report(self, best: DescentResult) -> None:
        """Raise the interrupt that ended the descent, once its result is kept; warn where it has not converged."""
        if best.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if best.status is Status.MAX_ITER:
            max_iter = best.n_iter if self.max_iter == "auto" else self.max_iter
            warn_user(
                f"max_iter={max_iter} iterations ended the descent before it converged: the map is good, not final. "
                "Raise max_iter or tol, or standardize the features.",
                ConvergenceWarning,
            )
        elif best.n_iter == 0 and best.status is not Status.STOPPED and not self.warm_start:
            warn_user(
                "The descent has not moved from its init, which no step improves: take another, or a larger alpha.",
                ConvergenceWarning,
            )
