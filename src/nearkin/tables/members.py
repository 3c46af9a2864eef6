"""Maps of encoded tables, and the vote of embedded rows: members on inner folds follow one path of
penalties, choose the penalty and the vote by their held-out rows, and are merged into one map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.neighbors import NearestNeighbors

from .._blocks import blas_in_one_thread, parallel_map, row_blocks
from .._validation import check_choice, check_positive
from ..descent import Status, adam, lbfgs
from ..estimators.descent_embedding import UnitRows, directions, penalty
from ..linalg import eigh, svd
from ..objectives.kernel_regression import Loss, prediction_loss, squared_error
from ..objectives.stochastic import TILE_ROWS

# How embedded rows predict: a vote of all, by its temperature, and for numbers a line through the
# nearest.

TEMPERATURES = (0.016, 0.025, 0.04, 0.063, 0.1, 0.16, 0.25, 0.4, 0.63, 1.0, 1.6)
DISTANCES = ("auto", "squared", "plain")
NEAREST, DIRECTIONS = 150, 10  # of a local line
# a tile stays in the second cache of a core, and is a matrix product of a good size
TILE_COLUMNS = 1024
# of local lines: their spreads over the temperature, their penalties, and their shares of a
# prediction
WIDTHS, RIDGES, SHARES = (1.0, 2.0, 5.0), (0.1, 1.0), (0.25, 0.5, 0.75, 1.0)

HeldOut = Callable[[Any], np.ndarray]  # from a vote, or lines, to what it predicts for some rows
Errors = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class SoftVote:
    """How all rows predict: by weights `exp(-d^2 / T)`, or of the plain distance `exp(-2 d /
    sqrt(T))`.

    Attributes
    ----------
    temperature : float
    distance : "squared" or "plain"
        Weights of the plain distance have a longer tail.
    """

    temperature: float = 1.0
    distance: str = "squared"

    def __post_init__(self) -> None:
        check_positive(self.temperature, "temperature")
        check_choice(self.distance, "distance", DISTANCES[1:])

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return `sum_j p_j y_j` for embedded queries, float64 of shape (n_queries, q); p_j times
        weights, if given.
        """
        out = np.empty((len(queries), Y.shape[1]))
        origin, scale = Z.mean(axis=0), Z.dtype.type(self.temperature**-0.5)
        Q, Z = (queries - origin) * scale, (Z - origin) * scale
        # (Q, 1, |q|^2) and (-2Z, |z|^2, 1)', whose product holds the squared distances
        Q2, Z2 = (np.sum(rows * rows, axis=1, keepdims=True) for rows in (Q, Z))
        Q = np.hstack([Q, np.ones_like(Q2), Q2])
        Z = np.hstack([-2 * Z, Z2, np.ones_like(Z2)]).T
        Y = np.hstack([Y, np.ones_like(Y[:, :1])])
        log_weights = None if weights is None else np.log(weights)

        def vote(rows: slice) -> None:
            """Sum exp(-cost) (y, 1) over tiles, relative to the largest term so far.

            No term of a tile falls below exp(-60), 1e-26 of it: numbers near the smallest there are
            make products ten times slower.
            """
            sums, least = np.zeros((1, 1)), np.inf
            for columns in row_blocks(Z.shape[1], 1, TILE_COLUMNS):
                costs = Q[rows] @ Z[:, columns]
                if self.distance == "plain":
                    np.sqrt(np.maximum(costs, 0, out=costs), out=costs)
                    costs *= 2
                if log_weights is not None:
                    costs -= log_weights[columns].astype(costs.dtype)
                lower = np.minimum(least, costs.min(axis=1, keepdims=True))
                sums = sums * np.exp(lower - least, dtype=np.float64)
                least = lower
                np.maximum(np.subtract(least, costs, out=costs), -60, out=costs)
                sums = sums + np.exp(costs, out=costs) @ Y[columns]
            out[rows] = sums[:, :-1] / sums[:, -1:]

        parallel_map(vote, row_blocks(len(Q), 1, TILE_ROWS), len(Q) * Z.shape[1])
        return out

    def after(self, temperature: float) -> SoftVote:
        """Return the same vote for rows over the root of a temperature."""
        return replace(self, temperature=self.temperature / temperature)


@dataclass(frozen=True)
class LocalLines:
    """A line for each query, fitted to its nearest rows with the weights `exp(-d^2 / spread)`.

    The slope along the 10 principal directions of all rows is a ridge regression of the nearest 150
    rows' numbers.

    Attributes
    ----------
    spread : float
    ridge : float
        In units of the mean variance along the directions.
    """

    spread: float
    ridge: float

    def __post_init__(self) -> None:
        check_positive(self.spread, "spread")
        check_positive(self.ridge, "ridge")

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the lines at the queries, (n_queries, 1), within the range of the numbers Y."""
        apart = (Z - Z.mean(axis=0)).astype(np.float64)
        V = eigh(apart.T @ apart)[1][:, -DIRECTIONS:]
        index = NearestNeighbors(n_neighbors=min(NEAREST, len(Z)), algorithm="brute").fit(Z)
        out = np.empty((len(queries), 1))
        for rows in row_blocks(len(queries), NEAREST * V.shape[1]):
            distances, near = index.kneighbors(queries[rows])
            p = np.exp((distances[:, :1] ** 2 - distances**2) / self.spread)[:, :, None]
            if weights is not None:
                p *= weights[near][:, :, None]
            p /= p.sum(axis=1, keepdims=True)
            # ridge regressions of Y on B, both about their weighted means; at the query B is 0
            B = (Z[near] - queries[rows, None]) @ V
            origin = np.sum(p * B, axis=1, keepdims=True)
            centre = np.sum(p * Y[near], axis=1, keepdims=True)
            weighted = np.swapaxes(p * (B - origin), 1, 2)
            H = weighted @ (B - origin)
            least = self.ridge * np.trace(H, axis1=1, axis2=2) / H.shape[1] + 1e-9
            H = H + least[:, None, None] * np.eye(H.shape[1])
            slope = np.linalg.solve(H, weighted @ (Y[near] - centre))
            out[rows] = (centre - origin @ slope)[:, 0]
        return np.clip(out, Y.min(), Y.max())

    def after(self, temperature: float) -> LocalLines:
        """Return the same lines for rows over the root of a temperature."""
        return replace(self, spread=self.spread / temperature)


@dataclass(frozen=True)
class Mixture:
    """A vote, and local lines for a share of each prediction."""

    vote: SoftVote
    lines: LocalLines
    share: float

    def __post_init__(self) -> None:
        check_positive(self.share, "share")

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the weighted mean of both predictions."""
        both = self.vote.predict(queries, Z, Y, weights), self.lines.predict(queries, Z, Y, weights)
        return (1 - self.share) * both[0] + self.share * both[1]

    @property
    def temperature(self) -> float:
        """Return that of the vote."""
        return self.vote.temperature

    @property
    def distance(self) -> str:
        """Return that of the vote."""
        return self.vote.distance

    def after(self, temperature: float) -> Mixture:
        """Return the same mixture for rows over the root of a temperature."""
        return Mixture(self.vote.after(temperature), self.lines.after(temperature), self.share)


def mixed_with_lines(
    vote: SoftVote, temperature: float, held_out: HeldOut, errors: Errors
) -> SoftVote | Mixture:
    """Return the vote, mixed with local lines where that lowers the held-out error by more than a
    standard error.

    Parameters
    ----------
    vote : SoftVote
    temperature : float
        Of squared distances, which sets the spread of the lines.
    held_out : function from a vote or lines to predictions of held-out rows
    errors : function from these to the error of each row
    """
    tried = [LocalLines(temperature * width, ridge) for width in WIDTHS for ridge in RIDGES]
    predicted = [held_out(lines) for lines in tried]
    best = int(np.argmin([np.mean(errors(found)) for found in predicted]))
    by_vote = held_out(vote)
    mixtures = [errors((1 - share) * by_vote + share * predicted[best]) for share in SHARES]
    share = int(np.argmin([np.mean(found) for found in mixtures]))
    gain = errors(by_vote) - mixtures[share]
    if gain.mean() <= gain.std() / len(gain) ** 0.5 + 1e-12:
        return vote
    return Mixture(vote, tried[best], SHARES[share])


def vote_from(state: dict[str, Any]) -> SoftVote | Mixture:
    """Return the vote of which `dataclasses.asdict` made a state; raise an error where it is
    none.
    """
    if "share" in state:
        return Mixture(SoftVote(**state["vote"]), LocalLines(**state["lines"]), state["share"])
    return SoftVote(**state)


# The maps: one of each fold, along a path of penalties.

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
class Rows:
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

    def subset(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.X[rows], self.Y[rows], self.groups, self.loss, weights)

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the loss of the prediction of each row, times its weight over their mean."""
        losses = self.loss(predicted, self.Y)[0]
        return losses if self.weights is None else losses * self.weights / self.weights.mean()


class Member:
    """A map that is learned from the training part of a fold, and judged by the votes for its test
    part.
    """

    def __init__(self, rows: Rows, train: np.ndarray, test: np.ndarray, m: int) -> None:
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

    def embedded(self, A: np.ndarray) -> tuple[Any, ...]:
        """Return the test part and the training part in the learned space, and what the latter
        votes about.
        """
        rows = self.training
        return self.queries @ A.T, rows.X @ A.T, rows.Y, rows.weights


@dataclass(frozen=True)
class MemberPath:
    """What the members have found.

    Attributes
    ----------
    components : ndarray of shape (at most m times members, r)
        The map whose metric is the mean of the members'.
    vote : SoftVote, or Mixture of one with local lines
    held_out : ndarray of shape (n_held_out, q)
        What it predicts for the rows that were held out.
    temperature : float
        The best one for squared distances.
    alpha : float
    scores : dict of float to float
        Minus the mean held-out loss of every penalty.
    unit : float
        The mean typical distance of the members.
    status : Status
        CONVERGED, STOPPED or INTERRUPTED.
    """

    components: np.ndarray
    vote: SoftVote | Mixture
    held_out: np.ndarray
    temperature: float
    alpha: float
    scores: dict[float, float]
    unit: float
    status: Status


@blas_in_one_thread()
def member_path(
    rows: Rows,
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
    scores: dict[float, float] = {}
    best: tuple[float, float, Sequence[np.ndarray], HeldOut] | None = None

    def found(status: Status = Status.CONVERGED) -> MemberPath:
        assert best is not None
        _, alpha, maps, held_out = best
        chosen = chosen_vote(held_out, tested, distance)
        unit = float(np.mean([member.unit_rows.unit for member in members]))
        return MemberPath(merged(maps), *chosen, alpha, dict(scores), unit, status)

    try:
        for alpha in alphas:
            maps = [member.descend(alpha) for member in members]
            parts = [member.embedded(A) for member, A in zip(members, maps, strict=True)]
            held_out = partial(votes_of, parts)
            lowest = best_vote(held_out, tested)[0]
            scores[alpha] = -lowest
            if best is None or lowest < best[0]:
                best = lowest, alpha, maps, held_out
            if stop(found):
                return found(Status.STOPPED)
            if lowest > WORSE * best[0]:
                break
    except KeyboardInterrupt:
        if best is None:
            raise
        return found(Status.INTERRUPTED)
    return found()


def votes_of(parts: Sequence[tuple[Any, ...]], vote: Any) -> np.ndarray:
    """Return what a vote predicts for some queries, one part after another: each is the arguments
    of its `predict`.
    """
    return np.concatenate([vote.predict(*part) for part in parts])


def best_vote(held_out: HeldOut, tested: Rows, distance: str = "squared") -> tuple[float, SoftVote]:
    """Return the lowest mean loss of the votes by a distance, and the vote."""
    votes = [SoftVote(temperature, distance) for temperature in TEMPERATURES]
    losses = [float(tested.losses(held_out(vote)).mean()) for vote in votes]
    return min(losses), votes[int(np.argmin(losses))]


def chosen_vote(
    held_out: HeldOut, tested: Rows, distance: str
) -> tuple[SoftVote | Mixture, np.ndarray, float]:
    """Return the best vote by a distance, or by the better one, what it predicts for the rows that
    were held out, and the best temperature for squared distances.

    For numbers it is mixed with local lines where these help.
    """
    tried = DISTANCES[1:] if distance == "auto" else {"squared", distance}
    found = {name: best_vote(held_out, tested, name) for name in tried}
    if distance == "auto":
        distance = min(found, key=lambda name: found[name][0])
    vote: SoftVote | Mixture = found[distance][1]
    temperature = found["squared"][1].temperature
    if tested.loss is squared_error:
        vote = mixed_with_lines(found[distance][1], temperature, held_out, tested.losses)
    return vote, held_out(vote), temperature


def merged(maps: Sequence[np.ndarray]) -> np.ndarray:
    """Return the map whose metric is the mean of those of some maps, along its principal
    directions.
    """
    _, s, Vt = svd(np.vstack(maps).astype(np.float64) / len(maps) ** 0.5, full_matrices=False)
    kept = s >= 1e-6 * s[0]
    return (s[kept, None] * Vt[kept]).astype(np.float32)


def refined(
    path: MemberPath, rows: Rows, m: int, distance: str, rng: np.random.Generator
) -> MemberPath:
    """Go on with the members' map by stochastic gradient on all rows but some, by which the vote is
    chosen.

    A step draws 4,096 rows, of which the first 256 are predicted by the others: its cost does not
    depend on n.
    """
    held, rest = np.split(rng.permutation(len(rows)), [min(HELD_OUT, len(rows) // 10)])
    start = path.components[:m] / np.float32(path.temperature**0.5)
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
    part = Z[held], Z[rest], rows.Y[rest], weights
    vote, held_out, temperature = chosen_vote(
        partial(votes_of, [part]), rows.subset(held), distance
    )
    return replace(path, components=A, vote=vote, held_out=held_out, temperature=temperature)


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
