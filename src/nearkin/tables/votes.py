"""Prediction from embedded rows: votes of all at some temperature and, for numbers, local lines.

Held-out rows determine how these are mixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import csr_array

from .._blocks import parallel_map, row_blocks
from .._validation import check_choice, check_positive
from ..linalg import eigh
from ..neighbors import squares_to_nearest
from ..objectives.kernel_regression import LEAST, MANY_CLASSES, Loss, squared_error
from ..objectives.stochastic import TILE_ROWS, exponentiate

TEMPERATURES = (0.016, 0.025, 0.04, 0.063, 0.1, 0.16, 0.25, 0.4, 0.63, 1.0, 1.6)
DISTANCES = ("auto", "squared", "plain")
NEAREST, DIRECTIONS = 150, 10  # for local lines
# a tile fits into the L2 cache of a core, and is large enough for an efficient matrix product
TILE_COLUMNS = 1024
MANY_VOTERS, NEAREST_VOTERS = 50_000, 200  # if there are more rows, so many vote
SEARCHED_AT_ONCE = 8192  # entries counted per query, so that 256 queries are searched at a time
# for local lines: spreads relative to the temperature, and ridge penalties
WIDTHS, RIDGES = (1.0, 2.0, 5.0), (0.1, 1.0)
# for a mixture: temperatures of its votes, steps of the search for shares, smallest share kept
MIXED_TEMPERATURES = (0.025, 0.1, 0.4, 1.6)
EM_STEPS, SMALLEST_SHARE = 100, 0.04

# The arguments of `predict`: queries, voting rows Z, their targets Y, and their weights, if any.
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class SoftVote:
    """Prediction by all rows, weighted by distance.

    The weights are `exp(-d^2 / T)` or, for plain distance, `exp(-2 d / sqrt(T))`.

    Attributes
    ----------
    temperature : float
    distance : "squared" or "plain"
        Plain distance gives weights with a longer tail.
    """

    temperature: float = 1.0
    distance: str = "squared"

    def __post_init__(self) -> None:
        check_positive(self.temperature, "temperature")
        check_choice(self.distance, "distance", DISTANCES[1:])

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return `sum_j p_j y_j` for embedded queries, float64 of shape (n_queries, q).

        p_j is proportional to the weight of the distance, times the given weight of the row.
        """
        return vote_at_once([self], queries, Z, Y, weights)[0]

    def logits(self, squares: np.ndarray) -> np.ndarray:
        """Return the logarithms of the weights at squared distances, as a new array."""
        if self.distance == "plain":
            logits = np.sqrt(squares)
            logits *= -2 / self.temperature**0.5
            return logits
        return squares * squares.dtype.type(-1 / self.temperature)

    def rescaled(self, temperature: float) -> SoftVote:
        """Return the same vote for rows divided by the square root of a temperature."""
        return replace(self, temperature=self.temperature / temperature)


def vote_at_once(
    votes: Sequence[SoftVote],
    queries: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the predictions of several votes in one space, (n_votes, n_queries, q).

    With more than 50,000 rows, the nearest 200 vote.
    """
    origin = Z.mean(axis=0)
    Q, Z = queries - origin, Z - origin
    with_ones = np.hstack([Y, np.ones_like(Y[:, :1])])
    log_weights = None if weights is None else np.log(weights).astype(Z.dtype)
    out = np.empty((len(votes), len(Q), Y.shape[1]))
    if len(Z) > MANY_VOTERS:

        def add_nearest(rows: slice) -> None:
            squares, near = squares_to_nearest(Q[rows], Z, NEAREST_VOTERS)
            voted = with_ones[near]
            for vote, predicted in zip(votes, out, strict=True):
                logits = vote.logits(squares)
                if log_weights is not None:
                    logits += log_weights[near]
                exponentiate(logits)
                sums = np.einsum("ij,ijc->ic", logits, voted)
                predicted[rows] = sums[:, :-1] / sums[:, -1:]

        width = max(SEARCHED_AT_ONCE, NEAREST_VOTERS * with_ones.shape[1])
        parallel_map(add_nearest, row_blocks(len(Q), width), len(Q) * len(Z))
        return out
    # (Q, 1, |q|^2) and (-2 Z, |z|^2, 1)', whose product contains the squared distances
    Q2, Z2 = (np.sum(rows * rows, axis=1, keepdims=True) for rows in (Q, Z))
    Q = np.hstack([Q, np.ones_like(Q2), Q2])
    Z = np.hstack([-2 * Z, Z2, np.ones_like(Z2)]).T
    # indicators of many classes: a sum over the rows of each does not depend on their number
    voted = csr_array(with_ones) if Y.shape[1] > MANY_CLASSES else with_ones

    def add_tiles(rows: slice) -> None:
        """Sum exp(logit) (y, 1) over tiles, relative to the largest term so far."""
        sums, top = [np.zeros((1, 1)) for _ in votes], [np.full((1, 1), -np.inf) for _ in votes]
        for columns in row_blocks(Z.shape[1], 1, TILE_COLUMNS):
            squares = np.maximum(Q[rows] @ Z[:, columns], 0)
            for k, vote in enumerate(votes):
                logits = vote.logits(squares)
                if log_weights is not None:
                    logits += log_weights[columns]
                of_tile = exponentiate(logits)
                higher = np.maximum(top[k], of_tile)
                sums[k] = sums[k] * np.exp(top[k] - higher, dtype=np.float64)
                sums[k] = sums[k] + np.exp(of_tile - higher) * (logits @ voted[columns])
                top[k] = higher
        for k, total in enumerate(sums):
            out[k, rows] = total[:, :-1] / total[:, -1:]

    parallel_map(add_tiles, row_blocks(len(Q), 1, TILE_ROWS), len(Q) * Z.shape[1])
    return out


@dataclass(frozen=True)
class LocalLines:
    """A line for each query, fitted to its nearest rows with the weights `exp(-d^2 / spread)`.

    The slope along the 10 principal directions of all rows is found by ridge regression on the
    nearest 150 rows.

    Attributes
    ----------
    spread : float
    ridge : float
        The ridge penalty, in units of the mean variance along the directions.
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
        return lines_at_once([self], queries, Z, Y, weights)[0]

    def rescaled(self, temperature: float) -> LocalLines:
        """Return the same lines for rows divided by the square root of a temperature."""
        return replace(self, spread=self.spread / temperature)


def lines_at_once(
    lines: Sequence[LocalLines],
    queries: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the predictions of several local lines in one space, (n_lines, n_queries, 1)."""
    apart = (Z - Z.mean(axis=0)).astype(np.float64)
    V = eigh(apart.T @ apart)[1][:, -DIRECTIONS:]
    ZV = Z @ V
    out = np.empty((len(lines), len(queries), 1))

    def add_lines(rows: slice) -> None:
        squares, near = squares_to_nearest(queries[rows], Z, min(NEAREST, len(Z)))
        excess = squares - squares.min(axis=1, keepdims=True)
        along = ZV[near] - (queries[rows] @ V)[:, None]
        for spread, same in groupby(zip(lines, out, strict=True), lambda one: one[0].spread):
            p = np.exp(-excess / spread)[:, :, None]
            if weights is not None:
                p *= weights[near][:, :, None]
            p /= p.sum(axis=1, keepdims=True)
            # ridge regressions of Y on B, both centred at their weighted means; `along` is 0 at the
            # query
            origin = np.sum(p * along, axis=1, keepdims=True)
            centre = np.sum(p * Y[near], axis=1, keepdims=True)
            B = along - origin
            weighted = np.swapaxes(p * B, 1, 2)
            H, to_targets = weighted @ B, weighted @ (Y[near] - centre)
            unit = np.trace(H, axis1=1, axis2=2)[:, None, None] / H.shape[1]
            for line, predicted in same:
                least = (line.ridge * unit + 1e-9) * np.eye(H.shape[1])
                slope = np.linalg.solve(H + least, to_targets)
                predicted[rows] = (centre - origin @ slope)[:, 0]

    parallel_map(add_lines, row_blocks(len(queries), SEARCHED_AT_ONCE), len(queries) * len(Z))
    return np.clip(out, Y.min(), Y.max())


@dataclass(frozen=True)
class Expert:
    """A vote or local lines, along some axes of the learned space.

    Attributes
    ----------
    predictor : SoftVote or LocalLines
    axes : (int, int)
        The first axis, and one past the last.
    share : float
        The share of the expert in a prediction.
    """

    predictor: SoftVote | LocalLines
    axes: tuple[int, int]
    share: float

    def __post_init__(self) -> None:
        check_positive(self.share, "share")

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the prediction along the axes of the expert."""
        own = slice(*self.axes)
        return self.predictor.predict(queries[:, own], Z[:, own], Y, weights)


@dataclass(frozen=True)
class Mixture:
    """A mixture of experts: `sum_k s_k f_k(z)`, with shares s_k that sum to 1."""

    experts: tuple[Expert, ...]

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the experts' predictions, weighted by their shares, (n_queries, q)."""
        total = np.zeros((len(queries), Y.shape[1]))
        votes = defaultdict[tuple[int, int], dict[SoftVote, float]](dict)
        for expert in self.experts:
            if isinstance(expert.predictor, SoftVote):
                votes[expert.axes][expert.predictor] = expert.share
            else:
                total += expert.share * expert.predict(queries, Z, Y, weights)
        for axes, shares in votes.items():
            own = slice(*axes)
            predicted = vote_at_once(list(shares), queries[:, own], Z[:, own], Y, weights)
            total += np.tensordot(list(shares.values()), predicted, axes=1)
        return total

    @classmethod
    def of(cls, spaces: Sequence[Sequence[Expert]]) -> Self:
        """Return the mixture of experts whose spaces are placed side by side."""
        experts, first = list[Expert](), 0
        for own in spaces:
            for expert in own:
                start, end = expert.axes
                experts.append(replace(expert, axes=(first + start, first + end)))
            first += own[0].axes[1]
        return cls(tuple(experts))

    @property
    def largest(self) -> SoftVote:
        """Return the vote with the largest share; for local lines alone, one at temperature 1."""
        shares = {
            one.predictor: one.share for one in self.experts if isinstance(one.predictor, SoftVote)
        }
        return max(shares, key=shares.__getitem__, default=SoftVote())

    @property
    def line_share(self) -> float:
        """Return the share of local lines."""
        return sum(one.share for one in self.experts if isinstance(one.predictor, LocalLines))


def mixture_from(state: dict[str, Any], n_axes: int) -> Mixture:
    """Return a mixture from its `dataclasses.asdict`.

    Up to version 0.2 there was one map, with a vote and possibly local lines along all `n_axes`.
    """
    if "experts" in state:
        return Mixture(tuple(_expert(**expert) for expert in state["experts"]))
    if "share" in state:  # a single map: its vote and its lines, along all axes
        vote, lines, share = SoftVote(**state["vote"]), LocalLines(**state["lines"]), state["share"]
        shares = ((vote, 1 - share), (lines, share))
        return Mixture(tuple(Expert(one, (0, n_axes), its) for one, its in shares if its > 0))
    return Mixture((Expert(SoftVote(**state), (0, n_axes), 1.0),))


def _expert(predictor: dict[str, Any], axes: Sequence[int], share: float) -> Expert:
    kind = LocalLines if "ridge" in predictor else SoftVote
    first, end = axes
    return Expert(kind(**predictor), (first, end), share)


# The choice of the vote by held-out rows.


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, and the losses of votes for them.

    Attributes
    ----------
    parts : list of (queries, Z, Y, weights)
        Some of the held-out rows, and the rows that vote for them: the arguments of `predict`.
    Y : ndarray of shape (n_held_out, q)
        The targets of all held-out rows.
    loss : squared_error or log_loss
    weights : ndarray of shape (n_held_out,) or None
        The weights of their losses.
    """

    parts: Sequence[Part]
    Y: np.ndarray
    loss: Loss
    weights: np.ndarray | None = None

    def predict(self, vote: Any) -> np.ndarray:
        """Return the predictions of a vote or of local lines for the rows, part after part."""
        return np.concatenate([vote.predict(*part) for part in self.parts])

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the loss of each prediction, times the weight of its row over the mean weight."""
        losses = self.loss(predicted, self.Y)[0]
        return losses if self.weights is None else losses * self.weights / self.weights.mean()

    def best_vote(self, guess: float = 0.4) -> tuple[float, SoftVote]:
        """Return the lowest mean loss of votes by squared distances, and the vote that has it.

        The temperature is searched downhill from a guess.
        """
        losses: dict[int, float] = {}

        def loss(at: int) -> float:
            if at not in losses:
                losses[at] = float(self.losses(self.predict(SoftVote(TEMPERATURES[at]))).mean())
            return losses[at]

        at, before = TEMPERATURES.index(guess), -1
        while at != before:
            before = at
            beside = range(max(at - 1, 0), min(at + 2, len(TEMPERATURES)))
            at = min((before, *beside), key=loss)
        return losses[at], SoftVote(TEMPERATURES[at])


class Prediction(NamedTuple):
    """The prediction of an expert for the held-out rows, (n_held_out, q)."""

    predictor: SoftVote | LocalLines
    values: np.ndarray


def experts(held_out: HeldOut, distance: str, temperature: float) -> list[Prediction]:
    """Return the experts that may be mixed, with their predictions for the held-out rows.

    These are votes at some temperatures, by the given distance or both, and for numbers the best
    local lines, with spreads relative to `temperature`.
    """
    tried = DISTANCES[1:] if distance == "auto" else (distance,)
    votes = [SoftVote(T, name) for name in tried for T in MIXED_TEMPERATURES]
    parts = [vote_at_once(votes, *part) for part in held_out.parts]
    found = list(map(Prediction, votes, np.concatenate(parts, axis=1)))
    if held_out.loss is squared_error:
        lines = [LocalLines(temperature * width, ridge) for width in WIDTHS for ridge in RIDGES]
        parts = [lines_at_once(lines, *part) for part in held_out.parts]
        of_lines = map(Prediction, lines, np.concatenate(parts, axis=1))
        found.append(min(of_lines, key=lambda one: held_out.losses(one.values).mean()))
    return found


def mixed(
    of_maps: Sequence[Sequence[Prediction]], held_out: HeldOut
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the best mixture of experts in the spaces of some maps.

    It is given by its prediction for the held-out rows, (n_held_out, q), and by the shares of the
    experts of each map.
    """
    predicted = np.array([expert.values for experts in of_maps for expert in experts])
    shares = mixture_shares(predicted, held_out)
    ends = np.cumsum([len(experts) for experts in of_maps])
    return np.tensordot(shares, predicted, axes=1), np.split(shares, ends[:-1])


def mixture_shares(predicted: np.ndarray, held_out: HeldOut) -> np.ndarray:
    """Return shares s of experts for which the mixture `sum_k s_k f_k` has a low held-out loss.

    They are nonnegative, and sum to 1; shares below 0.04 are set to 0. For classes, expectation
    maximization of the likelihood is stopped after 100 steps from equal shares, which overfits less
    than the maximum. For numbers, this is a least-squares problem.

    Parameters
    ----------
    predicted : array of shape (n_experts, n_held_out, q)
    held_out : HeldOut
    """
    weights = np.ones(len(held_out.Y)) if held_out.weights is None else held_out.weights
    if held_out.loss is squared_error:
        root = np.sqrt(weights / weights.sum())[:, None]
        errors = ((predicted - held_out.Y) * root).reshape(len(predicted), -1)
        # With sum(s) = 1, the error of the mixture is the mixture of the errors. An additional row
        # keeps the sum away from 0. The weight of this row changes the sum, but no ratio of shares,
        # since the squared error is homogeneous in the shares.
        firm = np.linalg.norm(errors) or 1.0
        system = np.vstack([errors.T, np.full(len(errors), firm)])
        shares = nnls(system, np.append(np.zeros(errors.shape[1]), firm))[0]
    else:
        probabilities = np.einsum("kic,ic->ki", predicted, held_out.Y) + LEAST
        shares = np.full(len(predicted), 1 / len(predicted))
        for _ in range(EM_STEPS):
            posterior = shares[:, None] * probabilities
            posterior /= posterior.sum(axis=0)
            shares = posterior @ weights / weights.sum()
    least = min(SMALLEST_SHARE * shares.sum(), shares.max())
    shares = np.where(shares < least, 0, shares)
    return shares / shares.sum()
