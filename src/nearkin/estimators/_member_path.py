"""Maps of encoded tables: members on inner folds follow one path of penalties, and are merged into one map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._parallel import blas_in_one_thread
from ..descent import Status, adam, lbfgs
from ..linalg import eigh, svd
from ..objectives.kernel_regression import Loss, prediction_loss
from .descent_embedding import UnitRows, penalized
from .initialization import directions, perplexity_bandwidth
from .soft_votes import SoftVote, best_vote, chosen_vote

ALPHAS = (4.5, 1.5, 0.5, 0.17, 0.055, 0.018, 0.006)  # descending: the first maps are quick and rough
WORSE = 1.02  # of the lowest held-out loss: the path ends there
COLLAPSED = 0.2  # of the norm of the init: a map that the penalty has shrunk so far is no init for the next
MAX_ITER, TOL = 40, 1e-4  # a map that is stopped early has overfitted less
STEPS, ANCHORS, ROWS = 300, 256, 4096  # of the stochastic descent
HELD_OUT = 1000  # rows, at most, by which the vote is chosen after it
FLAT = 1e-4  # variance of the embedded rows, in units in which a vote falls by the factor e from 0 to 1
STEP = 0.03  # first length of a step, in norms of the map


@dataclass(frozen=True)
class Rows:
    """Encoded rows with what is to be predicted.

    Attributes
    ----------
    X : ndarray of shape (n, r), float32, or sparse
    Y : ndarray of shape (n, q), float32
        Standardized numbers, or indicators of classes.
    groups : ndarray of shape (r,)
        The column of the table that a feature is of.
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

    def subset(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.X[rows], self.Y[rows], self.groups, self.loss, weights)

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the loss of the prediction of each row, times its weight over their mean."""
        losses = self.loss(predicted, self.Y)[0]
        return losses if self.weights is None else losses * self.weights / self.weights.mean()

    def mean_loss(self, predicted: np.ndarray) -> float:
        """Return the mean loss of predictions."""
        return float(self.losses(predicted).mean())


class Member:
    """A map that is learned from the training part of a fold, and judged by the votes for its test part."""

    def __init__(self, rows: Rows, train: np.ndarray, test: np.ndarray, m: int) -> None:
        self.rows, self.training, self.test = rows, rows.subset(train), test
        self.unit_rows = UnitRows.of(self.training.X, within_span=False, dtype=np.float32)
        B = directions("pca", self.unit_rows.X, min(m, len(train) - 1, rows.X.shape[1]))
        self.B = self.init = B / perplexity_bandwidth(self.unit_rows.nearest_squares(B))

    def descend(self, alpha: float) -> np.ndarray:
        """Go on to the map for a penalty; return it as a map of the features."""
        n, rows = len(self.training), self.training

        def loss(B: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = prediction_loss(B, self.unit_rows.X, rows.Y, rows.loss, weights=rows.weights)
            return penalized(value / n, gradient / n, B, alpha, n, rows.groups)

        collapsed = np.linalg.norm(self.B) < COLLAPSED * np.linalg.norm(self.init)
        found = lbfgs(loss, self.init if collapsed else self.B, max_iter=MAX_ITER, tol=TOL)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.B = found.x
        return self.unit_rows.components(found.x).astype(np.float32)

    def held_out(self, A: np.ndarray, vote: Any) -> np.ndarray:
        """Return the votes of the training part for the test part."""
        rows = self.training
        return vote.predict(self.rows.X[self.test] @ A.T, rows.X @ A.T, rows.Y, rows.weights)


@dataclass(frozen=True)
class MemberPath:
    """What the members have found.

    Attributes
    ----------
    components : ndarray of shape (at most m times members, r)
        The map whose metric is the mean of the members'.
    vote : SoftVote
    temperature : float
        The best one for squared distances.
    alpha : float
    scores : dict of float to float
        Minus the mean held-out loss of every penalty.
    unit : float
        The mean typical distance of the members.
    tested : Rows
        Those that were held out.
    held_out : function from a vote, or local lines, to predictions of these
    status : Status
        CONVERGED, STOPPED or INTERRUPTED.
    """

    components: np.ndarray
    vote: SoftVote
    temperature: float
    alpha: float
    scores: dict[float, float]
    unit: float
    tested: Rows
    held_out: Callable[[Any], np.ndarray]
    status: Status = Status.CONVERGED


@blas_in_one_thread()
def member_path(
    rows: Rows,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    m: int,
    alphas: Sequence[float],
    distance: str,
    stop: Callable[[Callable[[], MemberPath]], bool] = lambda found: False,
) -> MemberPath:
    """Learn a map for each fold and penalty; choose penalty, temperature and distance by the votes for held-out rows.

    Every descent begins with the map of the penalty before. The penalty and the temperature with the lowest mean
    held-out loss of votes by squared distances are taken; the path ends where that rises. Last, the distance is chosen.

    After each penalty `stop` is called with a function that returns what there is to be found so far; True ends the
    path, and so does an interrupt, once there is something.
    """
    members = [Member(rows, train, test, m) for train, test in folds]
    tested = rows.subset(np.concatenate([test for _, test in folds]))
    scores: dict[float, float] = {}

    def held_out(maps: Sequence[np.ndarray], vote: Any) -> np.ndarray:
        return np.concatenate([member.held_out(A, vote) for member, A in zip(members, maps, strict=True)])

    def held_out_loss(maps: Sequence[np.ndarray], vote: SoftVote) -> float:
        return tested.mean_loss(held_out(maps, vote))

    def found(status: Status = Status.CONVERGED) -> MemberPath:
        assert best is not None
        _, alpha, maps = best
        vote, temperature = chosen_vote(partial(held_out_loss, maps), distance)
        unit = float(np.mean([member.unit_rows.unit for member in members]))
        tests = tested, partial(held_out, maps)
        return MemberPath(merged(maps), vote, temperature, alpha, dict(scores), unit, *tests, status)

    best: tuple[float, float, Sequence[np.ndarray]] | None = None
    try:
        for alpha in alphas:
            maps = [member.descend(alpha) for member in members]
            lowest = best_vote(partial(held_out_loss, maps))[0]
            scores[alpha] = -lowest
            if best is None or lowest < best[0]:
                best = lowest, alpha, maps
            if stop(found):
                return found(Status.STOPPED)
            if lowest > WORSE * best[0]:
                break
    except KeyboardInterrupt:
        if best is None:
            raise
        return found(Status.INTERRUPTED)
    return found()


def merged(maps: Sequence[np.ndarray]) -> np.ndarray:
    """Return the map whose metric is the mean of those of some maps, along its principal directions."""
    _, s, Vt = svd(np.vstack(maps).astype(np.float64) / len(maps) ** 0.5, full_matrices=False)
    kept = s >= 1e-6 * s[0]
    return (s[kept, None] * Vt[kept]).astype(np.float32)


def refined(path: MemberPath, rows: Rows, m: int, distance: str, rng: np.random.Generator) -> MemberPath:
    """Go on with the members' map by stochastic gradient on all rows but some, by which the vote is chosen."""
    order = rng.permutation(len(rows))
    held, rest = np.split(order, [min(HELD_OUT, len(rows) // 10)])
    start = path.components[:m] / np.float32(path.temperature**0.5)
    A = descended(start, rows, rest, path.alpha * path.unit**2, rng)
    Z, tested = rows.X @ A.T, rows.subset(held)
    Q, Z, Y, weights = Z[held], Z[rest], rows.Y[rest], None if rows.weights is None else rows.weights[rest]

    def held_out(vote: Any) -> np.ndarray:
        return vote.predict(Q, Z, Y, weights)

    vote, temperature = chosen_vote(lambda vote: tested.mean_loss(held_out(vote)), distance)
    return replace(path, components=A, vote=vote, temperature=temperature, tested=tested, held_out=held_out)


def descended(A: np.ndarray, rows: Rows, among: np.ndarray, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Go on with a map by stochastic gradient, on some of the rows.

    A step draws 4,096 rows, of which the first 256 are predicted by the others: its cost does not depend on n.
    """
    n, length = len(among), STEP * float(np.linalg.norm(A))

    def estimate(A: np.ndarray, t: int) -> tuple[float, np.ndarray]:
        drawn = rows.subset(among[rng.choice(n, min(ROWS, n), replace=False)])
        n_anchors = min(ANCHORS, len(drawn))
        X = drawn.X if issparse(drawn.X) else drawn.X - drawn.X.mean(axis=0)
        value, gradient = prediction_loss(A.astype(np.float32), X, drawn.Y, rows.loss, n_anchors, drawn.weights)
        return penalized(value / n_anchors, gradient / n_anchors, A, alpha, n, rows.groups)

    found = adam(estimate, A, n_batches=STEPS, max_iter=1, tol=TOL, step=lambda t: length * (1 - t / STEPS))
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.x.astype(np.float32)


def along_principal_axes(A: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return A rotated to the principal axes of the embedded rows X, the longest first; the last are left out.

    Rows lie apart by at most FLAT, the variance along all of these: votes do not notice. One axis stays where no column
    matters. The largest entry of each axis is positive.
    """
    Z = X @ A.T.astype(X.dtype)
    Z -= Z.mean(axis=0)
    variance, axes = eigh((Z.T @ Z).astype(np.float64) / len(Z))
    n_flat = np.count_nonzero(np.cumsum(variance)[:-1] < FLAT)
    A = axes.T[n_flat:][::-1] @ A
    largest = np.take_along_axis(A, np.abs(A).argmax(axis=1)[:, None], axis=1)
    return A * np.where(largest < 0, -1.0, 1.0)
