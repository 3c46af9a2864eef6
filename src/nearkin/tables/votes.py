"""Prediction from embedded rows: votes of all at some temperature and, for numbers, local lines.

Numbers are predicted as they are and by their normal scores. Held-out rows determine how all of
these are mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_array, eye_array, hstack, vstack
from scipy.spatial import KDTree
from scipy.special import ndtri

from .._blocks import row_blocks
from .._threads import parallel_map
from ..linalg import eigh
from ..neighbors import squares_to_nearest
from ..objectives.kernel_regression import (
    LEAST,
    LEAST_LOGIT,
    MANY_CLASSES,
    RowLoss,
    log_loss,
    squared_error,
)
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
DOMINATED = 0.95  # see `HeldOut.is_dominated`
EQUAL = 1e-4  # the distance up to which rows count as equal, relative to the unit of the votes

# The arguments of `predict`: queries, voting rows Z, their targets Y, and their weights, if any.
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


def absolute_error(predicted: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return |y_i - y^_i| for every row, and its derivative with respect to y^_i; q is 1."""
    error = predicted - Y
    return np.abs(error[:, 0]), np.sign(error)


class NormalScores(NamedTuple):
    """The scale on which some numbers are normally distributed.

    The score of a number is Phi^-1(r), where r is the share of smaller numbers plus half the share
    of equal ones. Between two numbers the scale is linear.

    Attributes
    ----------
    values, scores : ndarray
        The distinct numbers and their scores, ascending.
    """

    values: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, Y: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Return the scale of numbers (n, 1)."""
        values, places = np.unique(Y[:, 0], return_inverse=True)
        mass = np.bincount(places, weights)
        return cls(values, ndtri((np.cumsum(mass) - mass / 2) / mass.sum()))

    def transform(self, Y: np.ndarray) -> np.ndarray:
        """Return the scores of numbers."""
        return np.interp(Y, self.values, self.scores)

    def inverse(self, scores: np.ndarray) -> np.ndarray:
        """Return the numbers of scores."""
        return np.interp(scores, self.scores, self.values)


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

    They are `sum_j p_j y_j`, where p_j is proportional to the weight of the distance, times the
    given weight of the row. With more than 50,000 rows, the nearest 200 vote.
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
    least = np.full(TILE_COLUMNS, LEAST_LOGIT, np.float32)

    def add_tiles(rows: slice) -> None:
        """Sum exp(logit) (y, 1) over tiles, relative to the largest term so far."""
        sums, top = [np.zeros((1, 1)) for _ in votes], [np.full((1, 1), -np.inf) for _ in votes]
        for columns in row_blocks(Z.shape[1], 1, TILE_COLUMNS):
            squares = np.maximum(Q[rows] @ Z[:, columns], 0)
            for k, vote in enumerate(votes):
                logits = vote.logits(squares)
                if log_weights is not None:
                    logits += log_weights[columns]
                of_tile = logits.max(axis=1, keepdims=True)
                # relative to the largest, single precision is enough, in a third of the time
                logits = (logits - of_tile).astype(np.float32, copy=False)
                np.maximum(logits, least[: logits.shape[1]], out=logits)
                np.exp(logits, out=logits)
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
    """Return the predictions of several local lines in one space, (n_lines, n_queries, q).

    They stay within the range of the numbers Y.
    """
    origin, middle = Z.mean(axis=0), Y.mean(axis=0)
    from_origin, apart = queries - origin, (Z - origin).astype(np.float64)
    V = eigh(apart.T @ apart)[1][:, -DIRECTIONS:]
    d, k = V.shape[1], min(NEAREST, len(Z))
    # products of (1, directions) with (1, directions, Y), each once: their weighted sums are the
    # moments
    terms = np.hstack([np.ones((len(Z), 1)), apart @ V, Y - middle])
    left, right = np.triu_indices(d + 1, m=terms.shape[1])
    products = terms[:, left] * terms[:, right]
    places = np.empty((terms.shape[1],) * 2, dtype=int)
    places[left, right] = places[right, left] = np.arange(len(left))
    # the search in single precision takes half the time
    to_search, apart = from_origin.astype(np.float32), apart.astype(np.float32)
    out = np.empty((len(lines), len(queries), Y.shape[1]))

    def add_lines(rows: slice) -> None:
        squares, near = squares_to_nearest(to_search[rows], apart, k)
        starts, at = k * np.arange(len(near) + 1), (from_origin[rows] @ V)[:, None]
        for spread, same in groupby(zip(lines, out, strict=True), lambda one: one[0].spread):
            p = SoftVote(spread).logits(squares)
            exponentiate(p)
            if weights is not None:
                p *= weights[near]
            p = csr_array((p.ravel(), near.ravel(), starts), shape=(len(near), len(Z)))
            # weighted moments of (1, directions, Y), then covariances
            sums = p @ products
            moments = (sums / sums[:, :1])[:, places[: d + 1]]
            mean = moments[:, :1, 1:]
            moments = moments[:, 1:, 1:] - np.swapaxes(mean[:, :, :d], 1, 2) * mean
            H, to_targets = moments[:, :, :d], moments[:, :, d:]
            unit = np.trace(H, axis1=1, axis2=2)[:, None, None] / d
            for line, predicted in same:
                least = (line.ridge * unit + 1e-9) * np.eye(d)
                slope = np.linalg.solve(H + least, to_targets)
                predicted[rows] = middle + (mean[:, :, d:] + (at - mean[:, :, :d]) @ slope)[:, 0]

    parallel_map(add_lines, row_blocks(len(queries), SEARCHED_AT_ONCE), len(queries) * len(Z))
    return np.clip(out, Y.min(axis=0), Y.max(axis=0))


def predict_at_once(
    predictors: Sequence[SoftVote | LocalLines],
    queries: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    with_scores: bool,
) -> np.ndarray:
    """Return the predictions of several votes, or of several local lines, in one space.

    The result has shape (n_predictors, n_queries, q). With scores, for numbers, as many follow that
    predict the normal scores of the numbers, and are given in the unit of the numbers.
    """
    at_once: Any = lines_at_once if isinstance(predictors[0], LocalLines) else vote_at_once
    if not with_scores:
        return at_once(predictors, queries, Z, Y, weights)
    scale = NormalScores.of(Y, weights)
    both = at_once(predictors, queries, Z, np.hstack([Y, scale.transform(Y)]), weights)
    return np.concatenate([both[..., :1], scale.inverse(both[..., 1:])])


def of_equal_rows(
    queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, unit: float
) -> np.ndarray:
    """Return the number of rows equal to each query, and the sum of their numbers, (n_queries, 2).

    Rows count as equal up to a distance of 0.0001 units. Row weights are taken into account.
    """
    tree, most = KDTree(Z), EQUAL * unit
    # of equal rows, the search always finds the same one
    _, group = tree.query(Z, distance_upper_bound=most)
    _, at = tree.query(queries, distance_upper_bound=most)
    w = np.ones(len(Z)) if weights is None else weights
    sums = [np.bincount(group, values, len(Z)) for values in (w, w * Y[:, 0])]
    # the index of none is len(Z)
    return np.array([np.append(total, 0.0)[np.append(group, len(Z))[at]] for total in sums]).T


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
    of_scores : bool
        Whether normal scores of the numbers are predicted, and then the numbers that have them.
    """

    predictor: SoftVote | LocalLines
    axes: tuple[int, int]
    share: float
    of_scores: bool = False


def towards_equal_rows(predicted: np.ndarray, equal: np.ndarray, prior: float) -> np.ndarray:
    """Return the means of predictions (n, 1), of weight `prior`, and the numbers of equal rows.

    `equal` is the result of `of_equal_rows`.
    """
    return (prior * predicted + equal[:, 1:]) / (prior + equal[:, :1])


@dataclass(frozen=True)
class Mixture:
    """A mixture of experts: `f(z) = sum_k s_k f_k(z)`, with shares s_k that sum to 1.

    Attributes
    ----------
    experts : tuple of Expert
    prior : float or None
        If training rows are equal to z in the space of the first expert, with the numbers y_1, ...,
        y_k, the prediction is the mean of these numbers and of f(z), which has this weight. None:
        it is always f(z).
    """

    experts: tuple[Expert, ...]
    prior: float | None = None

    saved_as: ClassVar[str] = "soft_vote"  # the name of its state in a saved model

    def predict(
        self, queries: np.ndarray, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the predictions, (n_queries, q)."""
        total = np.zeros((len(queries), Y.shape[1]))
        for axes in dict.fromkeys(one.axes for one in self.experts):
            own = slice(*axes)
            for kind in (SoftVote, LocalLines):
                some = [
                    one
                    for one in self.experts
                    if one.axes == axes and isinstance(one.predictor, kind)
                ]
                if not some:
                    continue
                predictors = list(dict.fromkeys(one.predictor for one in some))
                found = predict_at_once(
                    predictors,
                    queries[:, own],
                    Z[:, own],
                    Y,
                    weights,
                    with_scores=any(one.of_scores for one in some),
                )
                at = [predictors.index(x.predictor) + len(predictors) * x.of_scores for x in some]
                total += np.tensordot([one.share for one in some], found[at], axes=1)
        if self.prior is None:
            return total
        own = slice(*self.experts[0].axes)
        return towards_equal_rows(
            total, of_equal_rows(queries[:, own], Z[:, own], Y, weights, 1.0), self.prior
        )

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return a mixture from its `dataclasses.asdict`."""

        def expert(predictor: dict[str, Any], axes: Sequence[int], **others: Any) -> Expert:
            kind = LocalLines if "ridge" in predictor else SoftVote
            first, end = axes
            return Expert(kind(**predictor), (first, end), **others)

        return cls(tuple(expert(**one) for one in state["experts"]), state.get("prior"))

    @property
    def largest(self) -> SoftVote:
        """Return the vote with the largest share; for local lines alone, one at temperature 1."""
        shares = {
            one.predictor: one.share for one in self.experts if isinstance(one.predictor, SoftVote)
        }
        return max(shares, key=shares.__getitem__, default=SoftVote())


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
    loss : squared_error, absolute_error or log_loss
    weights : ndarray of shape (n_held_out,) or None
        The weights of their losses.
    """

    parts: Sequence[Part]
    Y: np.ndarray
    loss: RowLoss
    weights: np.ndarray | None = None

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the loss of each prediction, times the weight of its row over the mean weight."""
        losses = self.loss(predicted, self.Y)[0]
        return losses if self.weights is None else losses * self.weights / self.weights.mean()

    @property
    def is_dominated(self) -> bool:
        """Return whether very few numbers, which no prediction follows, make up the squared error.

        A fiftieth of the numbers then contributes more than 95 % of the squares about the median,
        as a few typing errors do.
        """
        if self.loss is not squared_error:
            return False
        squares = np.sort((self.Y - np.median(self.Y)) ** 2, axis=None)
        return bool(squares[-max(1, len(squares) // 50) :].sum() > DOMINATED * squares.sum())

    def best_vote(self, guess: float = 0.4) -> tuple[float, SoftVote]:
        """Return the lowest mean loss of votes by squared distances, and the vote that has it.

        The temperature is searched downhill from a guess.
        """
        losses: dict[int, float] = {}

        def loss(at: int) -> float:
            if at not in losses:
                vote = [SoftVote(TEMPERATURES[at])]
                predicted = np.concatenate([vote_at_once(vote, *part)[0] for part in self.parts])
                losses[at] = float(self.losses(predicted).mean())
            return losses[at]

        at, before = TEMPERATURES.index(guess), -1
        while at != before:
            before = at
            beside = range(max(at - 1, 0), min(at + 2, len(TEMPERATURES)))
            at = min((before, *beside), key=loss)
        return losses[at], SoftVote(TEMPERATURES[at])


class Prediction(NamedTuple):
    """The prediction of an expert for the held-out rows, (n_held_out, q).

    See `Expert` for `of_scores`.
    """

    predictor: SoftVote | LocalLines
    values: np.ndarray
    of_scores: bool = False


def experts(held_out: HeldOut, distance: str, temperature: float) -> list[Prediction]:
    """Return the experts that may be mixed, with their predictions for the held-out rows.

    These are votes at some temperatures, by the given distance or both, and for numbers the best
    local lines, with spreads relative to `temperature`; all of these for numbers and, unless a few
    numbers dominate the squared error, for their scores.
    """
    is_real = held_out.loss is not log_loss
    # among a few huge numbers, a small difference of scores is a huge one of numbers
    with_scores = is_real and not held_out.is_dominated
    scales = [False, True] if with_scores else [False]

    def predictions(predictors: Any) -> list[Prediction]:
        parts = [predict_at_once(predictors, *p, with_scores=with_scores) for p in held_out.parts]
        values = np.concatenate(parts, axis=1)
        kinds = [(one, of_scores) for of_scores in scales for one in predictors]
        return [Prediction(one, v, scale) for (one, scale), v in zip(kinds, values, strict=True)]

    tried = DISTANCES[1:] if distance == "auto" else (distance,)
    found = predictions([SoftVote(T, name) for name in tried for T in MIXED_TEMPERATURES])
    if is_real:
        lines = [LocalLines(temperature * width, ridge) for width in WIDTHS for ridge in RIDGES]
        of_lines = predictions(lines)
        for scale in scales:
            some = [one for one in of_lines if one.of_scores is scale]
            found.append(min(some, key=lambda one: held_out.losses(one.values).mean()))
    return found


def mixture_shares(predicted: np.ndarray, held_out: HeldOut) -> np.ndarray:
    """Return shares s of experts for which the mixture `sum_k s_k f_k` has a low held-out loss.

    They are nonnegative, and sum to 1; shares below 0.04 are set to 0. For classes, expectation
    maximization of the likelihood is stopped after 100 steps from equal shares, which overfits less
    than the maximum. For numbers, this is a least-squares problem, or a linear program if the loss
    is the absolute error.

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
    elif held_out.loss is absolute_error:
        # predicted' s + above - below = y, and sum(s) = 1
        n = len(weights)
        one = np.append(np.ones(len(predicted)), np.zeros(2 * n))
        found = linprog(
            np.concatenate([np.zeros(len(predicted)), weights, weights]),
            A_eq=vstack(
                [
                    hstack([csr_array(predicted[:, :, 0].T), eye_array(n), -eye_array(n)]),
                    csr_array(one[None]),
                ]
            ),
            b_eq=np.append(held_out.Y[:, 0], 1.0),
        )
        shares = found.x[: len(predicted)]
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
