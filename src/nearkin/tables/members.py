"""Maps of encoded tables.

Members are maps learned on inner folds. They follow the same path of penalties; their held-out rows
choose the penalty and the vote, and the members are merged into one map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from .._blocks import densified, row_blocks
from .._threads import blas_in_one_thread
from ..bandwidth import unit_distance
from ..descent import Status, adam, lbfgs
from ..estimators.descent_embedding import UNIT_ROWS, UnitRows, directions
from ..linalg import eigh, row_signs, svd
from ..objectives.kernel_regression import KernelRegression, RowLoss, log_loss
from ..objectives.loss import Ridge
from .gaps import LEAST_ROWS
from .votes import (
    Expert,
    HeldOut,
    Part,
    Prediction,
    SoftVote,
    experts,
    mixture_shares,
    of_equal_rows,
    towards_equal_rows,
)

# descending: the first maps are cheap and rough
ALPHAS = (4.5, 1.5, 0.5, 0.17, 0.055, 0.018, 0.006)
WORSE = 1.02  # the held-out loss at which the path ends, relative to the lowest
# If the penalty has shrunk a map below this norm, relative to that of the init, the next descent
# starts from the init.
COLLAPSED = 0.2
# For the axes of a map: the length below which they are short, relative to the longest; the number
# of short axes with which a descent starts; and the length of an added one, also relative.
SHORT, SPARE, ADDED = 0.03, 6, 0.01
MAX_ITER, TOL = 12, 1e-4  # few iterations: a map that is stopped early has overfitted less
# For stochastic descent: steps per round, and the number of rows from which on there are more;
# anchors and, at least, rows per step.
STEPS, STEPS_UP_TO, ANCHORS, ROWS = 150, 2000, 256, 2048
MOST_VOTERS = 10_000  # for the held-out rows, after each round of stochastic descent
# total variance along dropped axes, in units in which a vote falls by a factor of e from 0 to 1
MOST_DROPPED = 1e-4
PRIORS = (0.1, 0.3, 1.0, 3.0)  # weights of a mixture, relative to a row that is equal
STEP = 0.03  # the first step length of stochastic descent, relative to the norm of the map


@dataclass(frozen=True)
class LabelledRows:
    """Encoded rows and their targets.

    Attributes
    ----------
    X : ndarray of shape (n, r), float32, or sparse
    Y : ndarray of shape (n, q), float32
        Standardized numbers, or indicators of classes.
    groups : ndarray of shape (r,)
        Column codes 0, 1, ..., equal for features of the same column.
    loss : squared_error or log_loss
    weights : ndarray of shape (n,) or None
        Weights of the rows, of mean 1, for their losses and their votes.
    """

    X: np.ndarray
    Y: np.ndarray
    groups: np.ndarray
    loss: RowLoss
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, encoder: Any, X: Any, Y: np.ndarray, loss: RowLoss, weights: Any = None) -> Self:
        """Return the rows X, encoded, with their targets."""
        groups = np.unique(encoder.groups_, return_inverse=True)[1]
        return cls(encoder.transform(X), Y.astype(np.float32), groups, loss, weights)

    def __len__(self) -> int:
        return len(self.Y)

    def subset(self, rows: np.ndarray) -> LabelledRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelledRows(self.X[rows], self.Y[rows], self.groups, self.loss, weights)


def start_of(X: Any, m: int) -> tuple[float, np.ndarray]:
    """Return the typical distance of neighbouring rows, and an init: PCA of rows in this unit.

    The init has shape (at most m, r), and is scaled such that the embedded neighbours are typically
    at distance 1.
    """
    rows = UnitRows.of(X, dtype=np.float32, n_rows=UNIT_ROWS)
    B = directions("pca", rows.X, min(m, X.shape[0] - 1))
    return rows.unit, B / unit_distance(rows.embedding(B), UNIT_ROWS)


class Member:
    """A map learned from the training part of a fold and evaluated by the votes for its test part.

    The descent starts from `init`, which maps rows divided by `unit`.
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

    def descend(self, alpha: float) -> tuple[np.ndarray, Part]:
        """Continue the descent with a penalty; return the map of the features.

        The test part and the training part follow, mapped, with the targets and weights of the
        latter.
        """
        rows = self.training
        loss = KernelRegression(self.X, rows.Y, rows.loss, rows.weights)
        penalty = Ridge(alpha, len(rows), groups=rows.groups)
        collapsed = np.linalg.norm(self.B) < COLLAPSED * np.linalg.norm(self.init)
        start = self.init if collapsed else with_room(self.B, self.init)
        found = lbfgs((loss + penalty).value, start, max_iter=MAX_ITER, tol=TOL)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.B = found.x
        A = (self.B / self.unit).astype(np.float32)
        return A, (self.queries @ A.T, rows.X @ A.T, rows.Y, rows.weights)


class PathPoint(NamedTuple):
    """A penalty on the path, the members' maps, and the held-out loss of their best votes."""

    alpha: float
    maps: Sequence[np.ndarray]
    held_out: HeldOut
    loss: float
    temperature: float


@dataclass(frozen=True)
class LearnedMap:
    """A map of encoded rows, with votes for held-out rows.

    Attributes
    ----------
    components : ndarray of shape (at most m times members, r)
        The map whose metric is the mean of the members', or its refinement by stochastic gradient.
    folds : sequence of (training rows, test rows)
        Those of the members, or that of stochastic gradient before its last half round.
    held_out : HeldOut
        The test rows of these folds, in the spaces that were learned from their training rows.
    temperature : float
        The best temperature of votes by squared distances, as in NCA's objective.
    alpha : float
    scores : dict of float to float
        Minus the mean held-out loss of every penalty.
    unit : float
        The typical distance of neighbouring rows.
    init : ndarray of shape (at most m, r)
        The start of the descents, for rows in this unit.
    n_voters : float
        Mean number of rows that voted for a held-out row.
    status : Status
        CONVERGED, STOPPED or INTERRUPTED.
    distance : {"auto", "squared", "plain"}
        The distance in the votes, as requested.
    """

    components: np.ndarray
    folds: Sequence[tuple[np.ndarray, np.ndarray]]
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
        """Return the experts in the space of the map, with predictions for the held-out rows."""
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

    Every descent starts from the map of the previous penalty. The penalty with the lowest mean
    held-out loss is chosen, for votes by squared distances at their best temperature; the path ends
    when this loss exceeds 1.02 times the lowest.

    After each penalty, `stop` is called with a function that returns the result so far. The path
    also ends if `stop` returns True, or at an interrupt once there is a result.
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
            folds,
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
            maps, parts = zip(*[member.descend(alpha) for member in members], strict=True)
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
    """Return the map whose metric is the mean of the metrics of some maps, along its own axes."""
    return along_own_axes(np.vstack(maps) / len(maps) ** 0.5).astype(np.float32)


def along_own_axes(A: np.ndarray) -> np.ndarray:
    """Return a map with the same metric, whose rows are orthogonal, the longest first.

    Rows of zero length are dropped, unless the map is 0.
    """
    _, s, Vt = svd(A.astype(np.float64), full_matrices=False)
    kept = s >= 1e-6 * s[0]
    return s[kept, None] * Vt[kept]


def with_room(A: np.ndarray, init: np.ndarray) -> np.ndarray:
    """Return a map along its own axes, with room to grow, as the start of a descent.

    It has the long axes and 6 short ones, in total at most as many as `init`. If there are fewer
    short axes, the first rows of `init`, shortened, take their place. More would only take time.
    """
    A = along_own_axes(A)
    lengths, of_init = np.linalg.norm(A, axis=1), np.linalg.norm(init, axis=1, keepdims=True)
    n = min(int(np.sum(lengths >= SHORT * lengths[0])) + SPARE, len(init))
    added = (ADDED * lengths[0] * init / of_init)[: max(n - len(A), 0)]
    return np.vstack([A[:n], added])


@blas_in_one_thread()
def refined(
    found: LearnedMap,
    rows: LabelledRows,
    split: tuple[np.ndarray, np.ndarray],
    m: int,
    alphas: Sequence[float],
    rng: np.random.Generator,
) -> LearnedMap:
    """Refine the members' map by stochastic gradient on the training rows of a split.

    There is one round for each penalty, until the loss of the test rows rises, then half a round on
    all rows. Once a round is complete, an interrupt ends the descent with the best map so far.

    In each step, rows are drawn, of which the first 256 are predicted by the others. From n rows,

        max(2048, sqrt(250 n))    are drawn in each of    150 max(1, n / 2000)^(1/3)    steps

    of a round.
    """
    rest, held = split
    tested = rows.subset(held)
    n_steps = int(STEPS * max(1.0, len(rest) / STEPS_UP_TO) ** (1 / 3))
    some = rest[:: -(-len(rest) // MOST_VOTERS)]

    def in_space(A: np.ndarray, voters: np.ndarray) -> HeldOut:
        # in blocks: a copy of all encoded rows would double the memory of a fit
        blocks = row_blocks(len(voters), rows.X.shape[1])
        Z = np.concatenate([rows.X[voters[block]] @ A.T for block in blocks])
        weights = None if rows.weights is None else rows.weights[voters]
        part = tested.X @ A.T, Z, rows.Y[voters], weights
        return HeldOut([part], tested.Y, tested.loss, tested.weights)

    def descend(A: np.ndarray, alpha: float, among: np.ndarray, first: int = 0) -> np.ndarray:
        """Take the steps of a round from `first` on, with some of the rows."""
        n = len(among)
        n_drawn = min(n, max(ROWS, int((250 * n) ** 0.5)))
        penalty = Ridge(alpha * found.unit**2, n, groups=rows.groups)
        loss = KernelRegression(rows.X, rows.Y, rows.loss, rows.weights, ANCHORS) + penalty
        A = with_room(A, found.init)
        length = STEP * float(np.linalg.norm(A))
        descent = adam(
            lambda B, t: loss.estimate(B, among[rng.choice(n, n_drawn, replace=False)]),
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
    return replace(
        best,
        components=A,
        folds=[split],
        held_out=held_out,
        n_voters=len(rows),
        status=status,
    )


class FoundMixture(NamedTuple):
    """A mixture of experts in the spaces of some maps.

    Attributes
    ----------
    values : ndarray of shape (n_held_out, q)
        Its predictions for the held-out rows.
    shares : list of ndarray
        The shares of the experts of each map.
    prior : float or None
        See `Mixture`.
    """

    values: np.ndarray
    shares: list[np.ndarray]
    prior: float | None


def mixed(maps: Sequence[LearnedMap]) -> FoundMixture:
    """Return the best mixture of the experts in the spaces of some maps."""
    predicted = np.array([expert.values for one in maps for expert in one.experts])
    ends = np.cumsum([len(one.experts) for one in maps])
    shares = mixture_shares(predicted, maps[0].held_out)
    values = np.tensordot(shares, predicted, axes=1)
    by_map = np.split(shares, ends[:-1])
    first = maps[max(range(len(by_map)), key=lambda at: by_map[at].sum())]
    own, unit = first.held_out, first.temperature**0.5
    if own.loss is log_loss or own.is_dominated:
        return FoundMixture(values, by_map, None)
    equal = np.concatenate([of_equal_rows(*part, unit) for part in own.parts])
    if np.count_nonzero(equal[:, 0]) < LEAST_ROWS:  # too few equal rows show nothing
        return FoundMixture(values, by_map, None)
    tried = {None: values} | {p: towards_equal_rows(values, equal, p) for p in PRIORS}
    prior = min(tried, key=lambda one: own.losses(tried[one]).mean())
    return FoundMixture(tried[prior], by_map, prior)


class VotingSpace(NamedTuple):
    """The learned space of an encoding, and the experts that vote in it.

    Attributes
    ----------
    components : ndarray of shape (m, r)
    Z : ndarray of shape (n, m)
        The embedded training rows, along their principal axes, the longest first.
    experts : list of Expert
    """

    components: np.ndarray
    Z: np.ndarray
    experts: list[Expert]


def voting_space(
    encoder: Any, found: LearnedMap, shares: np.ndarray, X: Any, first: int
) -> VotingSpace:
    """Return the space of a map, scaled such that squared distances are exponents of its votes.

    `first` is the number of axes of the spaces before it.

    The temperature is the mean over these votes. Squared distances are also multiplied by the share
    of the votes in a prediction, so that their sums over several such spaces, side by side, are
    means weighted by share.
    """
    kept = [(one, s) for one, s in zip(found.experts, shares, strict=True) if s > 0]
    total = sum(share for _, share in kept)
    # The held-out rows had fewer voters. The more voters, the nearer are those that count.
    nearer = (found.n_voters / X.shape[0]) ** 0.5
    experts, logs = [], 0.0
    for one, share in kept:
        predictor, T = one.predictor, found.temperature
        if isinstance(predictor, SoftVote):
            predictor = predictor.rescaled(1 / nearer)
            T = predictor.temperature
        logs += share * np.log(T)
        experts.append((predictor, float(share), one.of_scores))
    T = np.exp(logs / total) / total
    A = found.components / np.float32(T**0.5)
    Z = embedded(encoder, X, A)
    axes = along_principal_axes(Z)
    A = axes @ A
    signs = row_signs(A)
    own = first, first + len(axes)
    return VotingSpace(
        signs * A,
        Z @ (signs * axes).T,
        [Expert(one.rescaled(T), own, share, scores) for one, share, scores in experts],
    )


def embedded(encoder: Any, X: Any, A: np.ndarray) -> np.ndarray:
    """Return the rows of a table, encoded and mapped by A, in blocks that fit into the cache."""
    blocks = row_blocks(X.shape[0], len(encoder.groups_), 2**20)
    return np.concatenate([encoder.transform(X[rows]) @ A.T for rows in blocks])


def along_principal_axes(Z: np.ndarray) -> np.ndarray:
    """Return the rotation (m', m) of embedded rows to their principal axes, the longest first.

    The last axes are dropped as long as the total variance along them is less than MOST_DROPPED,
    which does not affect votes. At least one axis is kept.
    """
    variance, axes = eigh(np.cov(Z, rowvar=False, bias=True).reshape(Z.shape[1], -1))
    n_flat = np.count_nonzero(np.cumsum(variance)[:-1] < MOST_DROPPED)
    return axes.T[n_flat:][::-1]
