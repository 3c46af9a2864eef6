"""Maps of encoded tables: members on inner folds follow one path of penalties, choose the penalty
and the vote by their held-out rows, and are merged into one map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._blocks import blas_in_one_thread
from ..descent import Status, adam, lbfgs
from ..estimators.descent_embedding import UnitRows, directions, penalty
from ..linalg import eigh, svd
from ..objectives.kernel_regression import Loss, prediction_loss
from .votes import Choice, HeldOut, Part, choose_vote

# descending: the first maps are quick and rough
ALPHAS = (4.5, 1.5, 0.5, 0.17, 0.055, 0.018, 0.006)
WORSE = 1.02  # of the lowest held-out loss: the path ends there
# of the norm of the init: a map that the penalty has shrunk so far is no init for the next
COLLAPSED = 0.2
MAX_ITER, TOL = 40, 1e-4  # a map that is stopped early has overfitted less
STEPS, ANCHORS, ROWS = 300, 256, 4096  # of the stochastic descent
HELD_OUT = 1000  # rows, at most, by which the vote is chosen after stochastic descent
# variance of the embedded rows, in units in which a vote falls by the factor e from 0 to 1
FLAT = 1e-4
STEP = 0.03  # first length of a step, in norms of the map


@dataclass(frozen=True)
class LabelledRows:
    """Encoded rows with what is to be predicted.

    Attributes
    ----------
    X : ndarray of shape (n, r), float32, or sparse
    Y : ndarray of shape (n, q), float32
        Standardized numbers, or indicators of classes.
    groups : ndarray of shape (r,)
        Numbers of the columns that have features, from 0: equal for features of one column.
    loss : squared_error or log_loss
    weights : ndarray of shape (n,) or None
        Of the rows, 1 in the mean: how much their losses count, and their votes.
    """

    X: np.ndarray
    Y: np.ndarray
    groups: np.ndarray
    loss: Loss
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.Y)

    def subset(self, rows: np.ndarray) -> LabelledRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelledRows(self.X[rows], self.Y[rows], self.groups, self.loss, weights)


class Member:
    """A map that is learned from the training part of a fold, and judged by the votes for its test
    part.
    """

    def __init__(self, rows: LabelledRows, train: np.ndarray, test: np.ndarray, m: int) -> None:
        self.training, self.queries = rows.subset(train), rows.X[test]
        self.unit_rows = UnitRows.of(self.training.X, dtype=np.float32)
        B = directions("pca", self.unit_rows.X, min(m, len(train) - 1, rows.X.shape[1]))
        self.B = self.init = self.unit_rows.scaled(B, alpha=0.0)

    def descend(self, alpha: float) -> np.ndarray:
        """Go on to the map for a penalty; return it as a map of the features."""
        n, rows = len(self.training), self.training

        def loss(B: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = prediction_loss(
                B, self.unit_rows.X, rows.Y, rows.loss, weights=rows.weights
            )
            cost, slope = penalty(B, alpha, n, rows.groups)
            return value / n + cost, gradient / n + slope

        collapsed = np.linalg.norm(self.B) < COLLAPSED * np.linalg.norm(self.init)
        found = lbfgs(loss, self.init if collapsed else self.B, max_iter=MAX_ITER, tol=TOL)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.B = found.x
        return self.unit_rows.components(found.x).astype(np.float32)

    def embedded(self, A: np.ndarray) -> Part:
        """Return the test part and the training part in the learned space, and what the latter
        votes about.
        """
        rows = self.training
        return self.queries @ A.T, rows.X @ A.T, rows.Y, rows.weights


class PathPoint(NamedTuple):
    """A penalty on the path: the maps of the members, and the held-out loss of their best votes."""

    alpha: float
    maps: Sequence[np.ndarray]
    held_out: HeldOut
    loss: float


@dataclass(frozen=True)
class MemberPath:
    """What the members have found.

    Attributes
    ----------
    components : ndarray of shape (at most m times members, r)
        The map whose metric is the mean of the members'.
    choice : Choice
        The vote that the held-out rows choose.
    alpha : float
    scores : dict of float to float
        Minus the mean held-out loss of every penalty.
    unit : float
        The mean typical distance of the members.
    status : Status
        CONVERGED, STOPPED or INTERRUPTED.
    """

    components: np.ndarray
    choice: Choice
    alpha: float
    scores: dict[float, float]
    unit: float
    status: Status


@blas_in_one_thread()
def member_path(
    rows: LabelledRows,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    m: int,
    alphas: Sequence[float],
    distance: str,
    stop: Callable[[Callable[[], MemberPath]], bool] = lambda found: False,
) -> MemberPath:
    """Learn a map for each fold and penalty; choose penalty, temperature and distance by the votes
    for held-out rows.

    Every descent begins with the map of the penalty before. The penalty and the temperature with
    the lowest mean held-out loss of votes by squared distances are taken; the path ends where that
    rises. Last, the distance is chosen.

    After each penalty `stop` is called with a function that returns what there is to be found so
    far; True ends the path, and so does an interrupt, once there is something.
    """
    members = [Member(rows, train, test, m) for train, test in folds]
    tested = rows.subset(np.concatenate([test for _, test in folds]))
    unit = float(np.mean([member.unit_rows.unit for member in members]))
    points: list[PathPoint] = []

    def found(status: Status = Status.CONVERGED) -> MemberPath:
        best = min(points, key=lambda point: point.loss)
        scores = {point.alpha: -point.loss for point in points}
        choice = choose_vote(best.held_out, distance)
        return MemberPath(merged(best.maps), choice, best.alpha, scores, unit, status)

    try:
        for alpha in alphas:
            maps = [member.descend(alpha) for member in members]
            parts = [member.embedded(A) for member, A in zip(members, maps, strict=True)]
            held_out = HeldOut(parts, tested.Y, tested.loss, tested.weights)
            points.append(PathPoint(alpha, maps, held_out, held_out.best_vote()[0]))
            if stop(found):
                return found(Status.STOPPED)
            if points[-1].loss > WORSE * min(point.loss for point in points):
                break
    except KeyboardInterrupt:
        if not points:
            raise
        return found(Status.INTERRUPTED)
    return found()


def merged(maps: Sequence[np.ndarray]) -> np.ndarray:
    """Return the map whose metric is the mean of those of some maps, along its principal
    directions.
    """
    _, s, Vt = svd(np.vstack(maps).astype(np.float64) / len(maps) ** 0.5, full_matrices=False)
    kept = s >= 1e-6 * s[0]
    return (s[kept, None] * Vt[kept]).astype(np.float32)


def refined(
    path: MemberPath, rows: LabelledRows, m: int, distance: str, rng: np.random.Generator
) -> MemberPath:
    """Go on with the members' map by stochastic gradient on all rows but some, by which the vote is
    chosen.

    A step draws 4,096 rows, of which the first 256 are predicted by the others: its cost does not
    depend on n.
    """
    held, rest = np.split(rng.permutation(len(rows)), [min(HELD_OUT, len(rows) // 10)])
    start = path.components[:m] / np.float32(path.choice.temperature**0.5)
    n, length = len(rest), STEP * float(np.linalg.norm(start))

    def estimate(A: np.ndarray, t: int) -> tuple[float, np.ndarray]:
        drawn = rows.subset(rest[rng.choice(n, min(ROWS, n), replace=False)])
        n_anchors = min(ANCHORS, len(drawn))
        X = drawn.X if issparse(drawn.X) else drawn.X - drawn.X.mean(axis=0)
        value, gradient = prediction_loss(
            A.astype(np.float32), X, drawn.Y, rows.loss, n_anchors, drawn.weights
        )
        cost, slope = penalty(A, path.alpha * path.unit**2, n, rows.groups)
        return value / n_anchors + cost, gradient / n_anchors + slope

    found = adam(
        estimate,
        start,
        n_batches=STEPS,
        max_iter=1,
        tol=TOL,
        step=lambda t: length * (1 - t / STEPS),
    )
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    A = found.x.astype(np.float32)
    Z = rows.X @ A.T
    weights = None if rows.weights is None else rows.weights[rest]
    tested = rows.subset(held)
    part = Z[held], Z[rest], rows.Y[rest], weights
    held_out = HeldOut([part], tested.Y, tested.loss, tested.weights)
    return replace(path, components=A, choice=choose_vote(held_out, distance))


def along_principal_axes(A: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return A rotated to the principal axes of the embedded rows X, the longest first; the last
    are left out.

    Rows lie apart by at most FLAT, the variance along all of these: votes do not notice. One axis
    stays where no column matters. The largest entry of each axis is positive.
    """
    Z = X @ A.T.astype(X.dtype)
    Z -= Z.mean(axis=0)
    variance, axes = eigh((Z.T @ Z).astype(np.float64) / len(Z))
    n_flat = np.count_nonzero(np.cumsum(variance)[:-1] < FLAT)
    A = axes.T[n_flat:][::-1] @ A
    largest = np.take_along_axis(A, np.abs(A).argmax(axis=1)[:, None], axis=1)
    return A * np.where(largest < 0, -1.0, 1.0)
