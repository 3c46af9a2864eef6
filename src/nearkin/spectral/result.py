"""What a solve returns: directions, and a diagnosis of how far they may be trusted."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._warn import warn_user


class Status(enum.Enum):
    """How a solve ended; all but the first two are worth a warning, and say what to do."""

    OPTIMAL = "the optimum was found"
    UNBOUNDED = "the trace ratio has no finite optimum: tr V'BV = 0 for the V that was found"
    FLAT = (
        "the objective is 0 in the directions found, as neighbours of different classes do not differ there "
        "(tr V'AV = 0), and others would do as well: use more neighbours, or features that tell the classes apart"
    )
    RANK_DEFICIENT = (
        "n_components={requested} were requested, but only {found} directions exist, which were kept: lower "
        "n_components, or add rows"
    )
    UNRESOLVED = (
        "the eigenvectors have a residual of {residual:.1e}: the smallest eigenvalues lie too close together, "
        "as outliers and weights of very different sizes make them; use more neighbours, a larger bandwidth, or remove "
        "outliers"
    )
    NOT_CONVERGED = (
        "the iteration stopped after {n_iter} eigen-decompositions with a relative gap of {gap:.1e} and a residual of "
        "{residual:.1e}: scale the features, or ask for more components"
    )


@dataclass(frozen=True)
class SpectralResult:
    """Directions, and how far they may be trusted.

    Attributes
    ----------
    vectors : array of shape (d, m)
        One direction a column, best first.
    values : array of shape (q,), q >= m
        Eigenvalues in the order of the columns; all of them where they were computed (`trace_difference`).
    objective : float
        Value of the criterion at `vectors`.
    rank : int
        Dimension in which the problem has content (trace difference: d; otherwise the rank of B).
    n_iter : int
        Eigen-decompositions of the iteration; 1 where there is none.
    residual : float
        Largest `||A v - lambda B v|| / ((||A|| + |lambda| ||B||) ||v||)` over the directions.
    gap : float
        Relative distance from optimality (trace ratio), else 0.
    status : Status
    requested : int
        The n_components that was requested.
    """

    vectors: np.ndarray
    values: np.ndarray
    objective: float
    rank: int
    n_iter: int
    residual: float
    gap: float
    status: Status
    requested: int

    def leading(self, n_components: int) -> SpectralResult:
        """Return the first of the directions, as if so many had been requested of an eigenproblem."""
        m = min(n_components, self.vectors.shape[1])
        values = self.values[:m]
        enough = self.status is Status.RANK_DEFICIENT and m == n_components
        return replace(
            self,
            vectors=self.vectors[:, :m],
            values=values,
            objective=float(values.sum()),
            status=Status.OPTIMAL if enough else self.status,
            requested=n_components,
        )

    def warn(self) -> None:
        """Issue the warning that the status calls for, if any."""
        if self.status in (Status.OPTIMAL, Status.UNBOUNDED):
            return
        unfinished = self.status in (Status.NOT_CONVERGED, Status.UNRESOLVED)
        category = ConvergenceWarning if unfinished else UserWarning
        text = self.status.value.format(found=self.vectors.shape[1], **vars(self))
        warn_user(text, category)


def backward_error(R: np.ndarray, V: np.ndarray, norm: float) -> float:
    """Return the largest `||r|| / (norm ||v||)` over the columns r = A v - lambda B v: the backward error."""
    size = norm * np.linalg.norm(V, axis=0)
    return float(np.max(np.linalg.norm(R, axis=0) / np.maximum(size, np.finfo(float).tiny)))


def status_of(residual: float) -> Status:
    """Say whether a backward error is that of a solution."""
    return Status.OPTIMAL if residual <= 1e-6 else Status.NOT_CONVERGED
