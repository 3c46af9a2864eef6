"""How embedded rows predict: a vote of all, by its temperature, and for numbers a line through the
nearest. Rows that were held out choose among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._blocks import parallel_map, row_blocks
from .._validation import check_choice, check_positive
from ..linalg import eigh
from ..objectives.kernel_regression import Loss, squared_error
from ..objectives.stochastic import TILE_ROWS

TEMPERATURES = (0.016, 0.025, 0.04, 0.063, 0.1, 0.16, 0.25, 0.4, 0.63, 1.0, 1.6)
DISTANCES = ("auto", "squared", "plain")
NEAREST, DIRECTIONS = 150, 10  # of a local line
# a tile stays in the second cache of a core, and is a matrix product of a good size
TILE_COLUMNS = 1024
# of local lines: their spreads over the temperature, their penalties, and their shares of a
# prediction
WIDTHS, RIDGES, SHARES = (1.0, 2.0, 5.0), (0.1, 1.0), (0.25, 0.5, 0.75, 1.0)

# The arguments of `predict`: queries, and the rows that vote for them, Z, what they vote about, Y,
# and the weights of their votes, if they have any.
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


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

            No term of a tile falls below exp(-60), 1e-26 of it: products of smaller numbers become
            subnormal, which is ten times slower.
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

    def rescaled(self, temperature: float) -> SoftVote:
        """Return the same vote for rows that were divided by the root of a temperature."""
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

    def rescaled(self, temperature: float) -> LocalLines:
        """Return the same lines for rows that were divided by the root of a temperature."""
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

    def rescaled(self, temperature: float) -> Mixture:
        """Return the same mixture for rows that were divided by the root of a temperature."""
        return Mixture(
            self.vote.rescaled(temperature), self.lines.rescaled(temperature), self.share
        )


def vote_from(state: dict[str, Any]) -> SoftVote | Mixture:
    """Return the vote of which `dataclasses.asdict` made a state; raise an error where it is
    none.
    """
    if "share" in state:
        return Mixture(SoftVote(**state["vote"]), LocalLines(**state["lines"]), state["share"])
    return SoftVote(**state)


# Rows that were held out choose the vote.


@dataclass(frozen=True)
class HeldOut:
    """Rows that were held out, and what votes for them cost.

    Attributes
    ----------
    parts : list of (queries, Z, Y, weights)
        Some of the rows, and those that vote for them: the arguments of `predict`.
    Y : ndarray of shape (n_held_out, q)
        What is to be predicted.
    loss : squared_error or log_loss
    weights : ndarray of shape (n_held_out,) or None
        Of their losses.
    """

    parts: Sequence[Part]
    Y: np.ndarray
    loss: Loss
    weights: np.ndarray | None = None

    def predict(self, vote: Any) -> np.ndarray:
        """Return what a vote, or lines, predict for the rows, one part after another."""
        return np.concatenate([vote.predict(*part) for part in self.parts])

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the loss of the prediction of each row, times its weight over their mean."""
        losses = self.loss(predicted, self.Y)[0]
        return losses if self.weights is None else losses * self.weights / self.weights.mean()

    def best_vote(self, distance: str = "squared") -> tuple[float, SoftVote]:
        """Return the lowest mean loss of the votes by a distance, and the vote."""
        votes = [SoftVote(temperature, distance) for temperature in TEMPERATURES]
        losses = [float(self.losses(self.predict(vote)).mean()) for vote in votes]
        return min(losses), votes[int(np.argmin(losses))]


class Choice(NamedTuple):
    """The vote that held-out rows choose.

    Attributes
    ----------
    vote : SoftVote, or Mixture of one with local lines
    predicted : ndarray of shape (n_held_out, q)
        What it predicts for the rows that were held out.
    temperature : float
        The best one of votes by squared distances, those of NCA's objective: it goes with the map
        also where the vote is by plain distances.
    """

    vote: SoftVote | Mixture
    predicted: np.ndarray
    temperature: float


def choose_vote(held_out: HeldOut, distance: str) -> Choice:
    """Return the best vote by a distance, or by the better one; for numbers it is mixed with local
    lines where these help.
    """
    tried = DISTANCES[1:] if distance == "auto" else {"squared", distance}
    found = {name: held_out.best_vote(name) for name in tried}
    if distance == "auto":
        distance = min(found, key=lambda name: found[name][0])
    vote: SoftVote | Mixture = found[distance][1]
    temperature = found["squared"][1].temperature
    if held_out.loss is squared_error:
        vote = mixed_with_lines(found[distance][1], temperature, held_out)
    return Choice(vote, held_out.predict(vote), temperature)


def mixed_with_lines(vote: SoftVote, temperature: float, held_out: HeldOut) -> SoftVote | Mixture:
    """Return the vote, mixed with local lines where that lowers the held-out loss by more than a
    standard error.

    The temperature, of squared distances, sets the spread of the lines.
    """
    tried = [LocalLines(temperature * width, ridge) for width in WIDTHS for ridge in RIDGES]
    predicted = [held_out.predict(lines) for lines in tried]
    best = int(np.argmin([np.mean(held_out.losses(found)) for found in predicted]))
    by_vote = held_out.predict(vote)
    mixtures = [
        held_out.losses((1 - share) * by_vote + share * predicted[best]) for share in SHARES
    ]
    share = int(np.argmin([np.mean(losses) for losses in mixtures]))
    gain = held_out.losses(by_vote) - mixtures[share]
    if gain.mean() <= gain.std() / len(gain) ** 0.5 + 1e-12:
        return vote
    return Mixture(vote, tried[best], SHARES[share])
