"""How embedded rows predict: a vote of all, by its temperature, and for numbers a line through the nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from .._parallel import parallel_map
from .._validation import check_choice, check_positive
from ..linalg import eigh
from ..objectives.stochastic import TILE_ROWS

TEMPERATURES = (0.016, 0.025, 0.04, 0.063, 0.1, 0.16, 0.25, 0.4, 0.63, 1.0, 1.6)
DISTANCES = ("auto", "squared", "plain")
NEAREST, DIRECTIONS = 150, 10  # of a local line
TILE_COLUMNS = 1024  # a tile stays in the second cache of a core, and is a matrix product of a good size
WIDTHS, RIDGES, SHARES = (1.0, 2.0, 5.0), (0.1, 1.0), (0.25, 0.5, 0.75, 1.0)

Errors = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class SoftVote:
    """How all rows predict: by weights `exp(-d^2 / T)`, or of the plain distance `exp(-2 d / sqrt(T))`.

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
        """Return `sum_j p_j y_j` for embedded queries, float64 of shape (n_queries, q); p_j times weights, if given."""
        out = np.empty((len(queries), Y.shape[1]))
        origin, scale = Z.mean(axis=0), Z.dtype.type(self.temperature**-0.5)
        queries, Z = ((rows - origin) * scale for rows in (queries, Z))
        with_squares, operand = distance_factors(queries, Z)
        Y1, log_weights = np.hstack([Y, np.ones_like(Y[:, :1])]), None if weights is None else np.log(weights)

        def tile(rows: slice, columns: slice) -> tuple[np.ndarray, np.ndarray]:
            costs = with_squares[rows] @ operand[:, columns]
            if self.distance == "plain":
                np.sqrt(np.maximum(costs, 0, out=costs), out=costs)
                costs *= 2
            if log_weights is not None:
                costs -= log_weights[columns].astype(costs.dtype)
            return costs, Y1[columns]

        def vote(rows: slice) -> None:
            sums = decayed_sums(tile(rows, columns) for columns in row_blocks(len(Z), 1, TILE_COLUMNS))
            out[rows] = sums[:, :-1] / sums[:, -1:]

        parallel_map(vote, row_blocks(len(queries), 1, TILE_ROWS), len(queries) * len(Z))
        return out

    def after(self, temperature: float) -> SoftVote:
        """Return the same vote for rows over the root of a temperature."""
        return replace(self, temperature=self.temperature / temperature)


@dataclass(frozen=True)
class LocalLines:
    """A line for each query, fitted to its nearest rows with the weights `exp(-d^2 / spread)`.

    The slope along the 10 principal directions of all rows is a ridge regression of the nearest 150 rows' numbers.

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
            out[rows] = intercepts((Z[near] - queries[rows, None]) @ V, Y[near], p, self.ridge)
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

    def after(self, temperature: float) -> Mixture:
        """Return the same mixture for rows over the root of a temperature."""
        return Mixture(self.vote.after(temperature), self.lines.after(temperature), self.share)


def distance_factors(Q: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (Q, 1, |q|^2) and (-2Z, |z|^2, 1)', whose product holds the squared distances."""
    Q2, Z2 = (np.sum(rows * rows, axis=1, keepdims=True) for rows in (Q, Z))
    return np.hstack([Q, np.ones_like(Q2), Q2]), np.hstack([-2 * Z, Z2, np.ones_like(Z2)]).T


def decayed_sums(tiles: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return sum_j exp(-c_j) y_j of every row, times one factor, from tiles of costs c (b, t) and their Y (t, q).

    All is relative to the largest term so far. No term of a tile falls below exp(-60), 1e-26 of it: numbers near the
    smallest there are make products ten times slower.
    """
    sums, least = np.zeros((1, 1)), np.inf
    for costs, Y in tiles:
        lower = np.minimum(least, costs.min(axis=1, keepdims=True))
        sums = sums * np.exp(lower - least, dtype=np.float64)
        least = lower
        np.maximum(np.subtract(least, costs, out=costs), -60, out=costs)
        sums = sums + np.exp(costs, out=costs) @ Y
    return sums


def intercepts(B: np.ndarray, Y: np.ndarray, p: np.ndarray, ridge: float) -> np.ndarray:
    """Return what ridge regressions of Y (b, k, 1) on B (b, k, d) with weights p (b, k, 1) predict at 0, (b, 1)."""
    origin, centre = np.sum(p * B, axis=1, keepdims=True), np.sum(p * Y, axis=1, keepdims=True)
    weighted = np.swapaxes(p * (B - origin), 1, 2)
    H = weighted @ (B - origin)
    least = ridge * np.trace(H, axis1=1, axis2=2) / H.shape[1] + 1e-9
    slope = np.linalg.solve(H + least[:, None, None] * np.eye(H.shape[1]), weighted @ (Y - centre))
    return (centre - origin @ slope)[:, 0]


def best_vote(judged: Callable[[SoftVote], float], distance: str = "squared") -> tuple[float, SoftVote]:
    """Return the lowest loss of the votes by a distance, and the vote."""
    votes = [SoftVote(temperature, distance) for temperature in TEMPERATURES]
    losses = [judged(vote) for vote in votes]
    return min(losses), votes[int(np.argmin(losses))]


def chosen_vote(judged: Callable[[SoftVote], float], distance: str) -> tuple[SoftVote, float]:
    """Return the best vote by a distance, or by the better one; and the best temperature for squared distances."""
    candidates = DISTANCES[1:] if distance == "auto" else {"squared", distance}
    found = {name: best_vote(judged, name) for name in candidates}
    name = min(found, key=lambda name: found[name][0]) if distance == "auto" else distance
    return found[name][1], found["squared"][1].temperature


def mixed_with_lines(
    vote: SoftVote, temperature: float, held_out: Callable[[Any], np.ndarray], errors: Errors
) -> SoftVote | Mixture:
    """Return the vote, mixed with local lines where that lowers the held-out error by more than a standard error.

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
    """Return the vote of which `dataclasses.asdict` made a state; raise an error where it is none."""
    if "share" in state:
        return Mixture(SoftVote(**state["vote"]), LocalLines(**state["lines"]), state["share"])
    return SoftVote(**state)
