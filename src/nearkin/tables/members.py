"""Maps of encoded tables: members on inner folds follow one path of penalties, choose the penalty
and the vote by their held-out rows, and are merged into one map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from .._blocks import blas_in_one_thread, densified, row_blocks
from ..descent import Status, adam, lbfgs
from ..estimators.descent_embedding import (
    UNIT_ROWS,
    UnitRows,
    directions,
    penalty,
    unit_distance,
)
from ..linalg import eigh, row_signs, svd
from ..objectives.kernel_regression import Loss, prediction_loss
from .votes import Expert, HeldOut, Part, Prediction, SoftVote, experts

# descending: the first maps are quick and rough
ALPHAS = (4.5, 1.5, 0.5, 0.17, 0.055, 0.018, 0.006)
WORSE = 1.02  # of the lowest held-out loss: the path ends there
# of the norm of the init: a map that the penalty has shrunk so far is no init for the next
COLLAPSED = 0.2
# Of the axes of a map: which are short, in lengths of the longest; with how many of these a descent
# begins; and how long one is that is added.
SHORT, SPARE, ADDED = 0.03, 6, 0.01
MAX_ITER, TOL = 12, 1e-4  # a map that is stopped early has overfitted less
# of the stochastic descent: steps of a round, up to how many rows; rows of a step
STEPS, STEPS_UP_TO, ANCHORS, ROWS = 300, 10_000, 256, 4096
MOST_VOTERS = 10_000  # for the rows that are held out, after each round of it
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

    @classmethod
    def of(cls, encoder: Any, X: Any, Y: np.ndarray, loss: Loss, weights: Any = None) -> Self:
        """Return the rows of a table as an encoder encodes them."""
        groups = np.unique(encoder.groups_, return_inverse=True)[1]
        return cls(encoder.transform(X), Y.astype(np.float32), groups, loss, weights)

    def __len__(self) -> int:
        return len(self.Y)

    def subset(self, rows: np.ndarray) -> LabelledRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelledRows(self.X[rows], self.Y[rows], self.groups, self.loss, weights)


def start_of(X: Any, m: int) -> tuple[float, np.ndarray]:
    """Return the typical distance of neighbouring rows, and a map (at most m, r) of rows in this
    unit, with which a descent begins: to their first principal components.
    """
    rows = UnitRows.of(X, dtype=np.float32, n_rows=UNIT_ROWS)
    B = directions("pca", rows.X, min(m, X.shape[0] - 1))
    return rows.unit, B / unit_distance(rows.embedding(B), UNIT_ROWS)


class Member:
    """A map that is learned from the training part of a fold, and judged by the votes for its test
    part. The descent begins with `init`, a map of rows in a `unit`.
    """

    def __init__(
        self,
        rows: LabelledRows,
        train: np.ndarray,
        test: np.ndarray,
        unit: float,
        init: np.ndarray,
    ) -> None:
        self.training, self.queries = rows.subset(train), rows.X[test]
        self.unit, self.X = unit, densified(self.training.X) / np.float32(unit)
        self.B = self.init = init

    def descend(self, alpha: float) -> np.ndarray:
        """Go on to the map for a penalty; return it as a map of the features."""
        n, rows = len(self.training), self.training

        def loss(B: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = prediction_loss(B, self.X, rows.Y, rows.loss, weights=rows.weights)
            cost, slope = penalty(B, alpha, n, rows.groups)
            return value / n + cost, gradient / n + slope

        collapsed = np.linalg.norm(self.B) < COLLAPSED * np.linalg.norm(self.init)
        start = self.init if collapsed else with_room(self.B, self.init)
        found = lbfgs(loss, start, max_iter=MAX_ITER, tol=TOL)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.B = found.x
        return (self.B / self.unit).astype(np.float32)

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
    temperature: float


@dataclass(frozen=True)
class LearnedMap:
    """A map of encoded rows, and how rows that it has not seen are voted for.

    Attributes
    ----------
    components : ndarray of shape (at most m times members, r)
        The map whose metric is the mean of the members', or what stochastic gradient made of it.
    held_out : HeldOut
        Rows that were held out, in the learned spaces of the members, or in that of stochastic
        gradient before its half round on all rows.
    temperature : float
        The best one of their votes by squared distances, those of NCA's objective.
    alpha : float
    scores : dict of float to float
        Minus the mean held-out loss of every penalty.
    unit : float
        The typical distance of neighbouring rows.
    init : ndarray of shape (at most m, r)
        With which the descents began, of rows in this unit.
    n_voters : float
        How many rows voted for one that was held out, in the mean.
    status : Status
        CONVERGED, STOPPED or INTERRUPTED.
    distance : {"auto", "squared", "plain"}
        Of the votes, as requested.
    """

    components: np.ndarray
    held_out: HeldOut
    temperature: float
    alpha: float
    scores: dict[float, float]
    unit: float
    init: np.ndarray
    n_voters: float
    status: Status
    distance: str

    @cached_property
    def experts(self) -> list[Prediction]:
        """Return what may vote in its space, and what it predicts for the held-out rows."""
        return experts(self.held_out, self.distance, self.temperature)


@blas_in_one_thread()
def member_path(
    rows: LabelledRows,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    m: int,
    alphas: Sequence[float],
    distance: str,
    stop: Callable[[Callable[[], LearnedMap]], bool] = lambda found: False,
) -> LearnedMap:
    """Learn a map for each fold and penalty; choose the penalty by the votes for held-out rows.

    Every descent begins with the map of the penalty before. The penalty with the lowest mean
    held-out loss of votes by squared distances, at their best temperature, is taken; the path ends
    where that rises.

    After each penalty `stop` is called with a function that returns what there is to be found so
    far; True ends the path, and so does an interrupt, once there is something.
    """
    learned_from = np.unique(np.concatenate([train for train, _ in folds]))
    unit, init = start_of(rows.X[learned_from], m)
    members = [Member(rows, train, test, unit, init) for train, test in folds]
    tested = rows.subset(np.concatenate([test for _, test in folds]))
    n_voters = float(np.mean([len(train) for train, _ in folds]))
    points: list[PathPoint] = []

    def found(status: Status = Status.CONVERGED) -> LearnedMap:
        best = min(points, key=lambda point: point.loss)
        scores = {point.alpha: -point.loss for point in points}
        A = merged(best.maps)
        return LearnedMap(
            A,
            best.held_out,
            best.temperature,
            best.alpha,
            scores,
            unit,
            init,
            n_voters,
            status,
            distance,
        )

    try:
        for alpha in alphas:
            maps = [member.descend(alpha) for member in members]
            parts = [member.embedded(A) for member, A in zip(members, maps, strict=True)]
            held_out = HeldOut(parts, tested.Y, tested.loss, tested.weights)
            guess = points[-1].temperature if points else 0.4
            loss, vote = held_out.best_vote(guess)
            points.append(PathPoint(alpha, maps, held_out, loss, vote.temperature))
            if stop(found):
                return found(Status.STOPPED)
            if loss > WORSE * min(point.loss for point in points):
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
    return along_own_axes(np.vstack(maps) / len(maps) ** 0.5).astype(np.float32)


def along_own_axes(A: np.ndarray) -> np.ndarray:
    """Return a map whose metric is the same, and whose rows are orthogonal, the longest first,
    without those of no length; of a map that is 0, all.
    """
    _, s, Vt = svd(A.astype(np.float64), full_matrices=False)
    kept = s >= 1e-6 * s[0]
    return s[kept, None] * Vt[kept]


def with_room(A: np.ndarray, init: np.ndarray) -> np.ndarray:
    """Return a map along its own axes, from which a descent begins: the long ones, and 6 short ones
    that may grow, but not more in all than `init` has.

    Where it has fewer short ones, the first rows of `init`, shortened, stand in. More would only
    take time.
    """
    A = along_own_axes(A)
    lengths, of_init = np.linalg.norm(A, axis=1), np.linalg.norm(init, axis=1, keepdims=True)
    n = min(int(np.sum(lengths >= SHORT * lengths[0])) + SPARE, len(init))
    added = (ADDED * lengths[0] * init / of_init)[: max(n - len(A), 0)]
    return np.vstack([A[:n], added])


def refined(
    found: LearnedMap,
    rows: LabelledRows,
    held: np.ndarray,
    m: int,
    alphas: Sequence[float],
    rng: np.random.Generator,
) -> LearnedMap:
    """Go on with the members' map by stochastic gradient on all rows but those held out, one round
    for each penalty, until the loss of the held-out rows rises; then half a round on all rows. An
    interrupt ends it there, once there is a round.

    A step draws rows, of which the first 256 are predicted by the others: of n rows

        max(4096, sqrt(250 n))    in    300 max(1, n / 10000)^(1/4)    steps of a round.
    """
    tested, rest = rows.subset(held), np.setdiff1d(np.arange(len(rows)), held)
    n_steps = int(STEPS * max(1.0, len(rest) / STEPS_UP_TO) ** 0.25)
    some = rest[:: -(-len(rest) // MOST_VOTERS)]

    def in_space(A: np.ndarray, voters: np.ndarray) -> HeldOut:
        others = rows.subset(voters)
        part = tested.X @ A.T, others.X @ A.T, others.Y, others.weights
        return HeldOut([part], tested.Y, tested.loss, tested.weights)

    def descend(A: np.ndarray, alpha: float, among: np.ndarray, first: int = 0) -> np.ndarray:
        """Take a round's steps from the first on, by some of the rows."""
        n = len(among)
        n_drawn = min(n, max(ROWS, int((250 * n) ** 0.5)))
        n_anchors = min(ANCHORS, n_drawn)

        def estimate(A: np.ndarray, t: int) -> tuple[float, np.ndarray]:
            drawn = rows.subset(among[rng.choice(n, n_drawn, replace=False)])
            value, gradient = prediction_loss(
                A, drawn.X, drawn.Y, rows.loss, n_anchors, drawn.weights
            )
            cost, slope = penalty(A, alpha * found.unit**2, n, rows.groups)
            return value / n_anchors + cost, gradient / n_anchors + slope

        A = with_room(A, found.init)
        length = STEP * float(np.linalg.norm(A))
        descent = adam(
            estimate,
            A,
            n_batches=n_steps - first,
            max_iter=1,
            tol=TOL,
            step=lambda t: length * (1 - (first + t) / n_steps),
        )
        if descent.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return descent.x.astype(np.float32)

    points: list[LearnedMap] = []
    losses: list[float] = []
    A, T = found.components[:m] / np.float32(found.temperature**0.5), 1.0
    status = Status.CONVERGED
    try:
        for alpha in alphas:
            A = descend(A, alpha, rest)
            loss, vote = in_space(A, some).best_vote(T)
            T = vote.temperature
            points.append(replace(found, components=A, temperature=T, alpha=alpha))
            losses.append(loss)
            if loss > min(losses):
                break
        best = points[int(np.argmin(losses))]
        A = descend(best.components, best.alpha, np.arange(len(rows)), n_steps // 2)
    except KeyboardInterrupt:
        if not points:
            raise
        status, best = Status.INTERRUPTED, points[int(np.argmin(losses))]
        A = best.components
    held_out = in_space(best.components, rest)
    return replace(best, components=A, held_out=held_out, n_voters=len(rows), status=status)


@dataclass(frozen=True)
class VotingSpace:
    """The learned space of an encoding, and the experts that vote in it.

    Attributes
    ----------
    encoder : BinnedEncoder or SparseEncoder
    components : ndarray of shape (m, r)
    Z : ndarray of shape (n, m)
        The training rows, along their principal axes, the longest first.
    experts : list of Expert
    """

    encoder: Any
    components: np.ndarray
    Z: np.ndarray
    experts: list[Expert]

    @classmethod
    def of(cls, encoder: Any, found: LearnedMap, shares: np.ndarray, X: Any) -> Self:
        """Return the space of a map, scaled so that the squared distance is the exponent of its
        votes, times the share of these in a prediction.

        Distances in several such spaces, side by side, are their means by share.
        """
        kept = [(one.predictor, s) for one, s in zip(found.experts, shares, strict=True) if s > 0]
        total = sum(share for _, share in kept)
        # The held-out rows had fewer voters: the more there are, the nearer are those that count.
        nearer = (found.n_voters / X.shape[0]) ** 0.5
        experts, logs = [], 0.0
        for predictor, share in kept:
            if isinstance(predictor, SoftVote):
                predictor = predictor.rescaled(1 / nearer)
                logs += share * np.log(predictor.temperature)
            else:
                logs += share * np.log(found.temperature)
            experts.append((predictor, share))
        T = np.exp(logs / total) / total
        A = found.components / np.float32(T**0.5)
        blocks = row_blocks(X.shape[0], len(encoder.groups_))
        Z = np.concatenate([encoder.transform(X[rows]) @ A.T for rows in blocks])
        axes = along_principal_axes(Z)
        A = axes @ A
        signs = row_signs(A)
        m = len(axes)
        return cls(
            encoder,
            signs * A,
            Z @ (signs * axes).T,
            [Expert(one.rescaled(T), (0, m), float(share)) for one, share in experts],
        )


def along_principal_axes(Z: np.ndarray) -> np.ndarray:
    """Return the rotation (m', m) of embedded rows to their principal axes, the longest first; the
    last are left out.

    Rows lie apart by at most FLAT, the variance along all of these: votes do not notice. One axis
    stays where no column matters.
    """
    variance, axes = eigh(np.cov(Z, rowvar=False, bias=True).reshape(Z.shape[1], -1))
    n_flat = np.count_nonzero(np.cumsum(variance)[:-1] < FLAT)
    return axes.T[n_flat:][::-1]
