"""Stochastic neighbours among a few candidates of every row: sums in O(n), not O(n^2).

First the candidates, of all rows or of a minibatch, and the sums over them; then their search, for
descents by L-BFGS and by minibatches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.extmath import row_norms

from .._blocks import row_blocks
from .._threads import parallel_map, shares
from .._validation import weights_of
from ..bandwidth import evenly_by
from ..neighbors import EXACT, Searcher, neighbor_lists
from .loss import Loss, Matrix, Value
from .stochastic import (
    PairWeights,
    Terms,
    exponentiate,
    factors,
    tile_height,
    weighted_terms,
)

# A smaller weight changes no sum, and subnormal numbers make products ten times slower.
NEGLIGIBLE = 1e-30


@dataclass(frozen=True, eq=False)
class Candidates:
    """The possible neighbours of every row: its nearest rows, and some that represent all others.

    The nearest rows alone would mislead a descent, since unlisted rows could come close at no cost.
    Row i therefore draws its neighbour among its k near rows, each with its own weight, and s far
    rows, each representing `(n - 1 - k) / s` others (far rows that are near, or i itself, are
    excluded). If rows have weights, a far row represents that many of its own weight. If far rows
    are drawn uniformly, the sums over rows are unbiased, whatever the weights.

    Attributes
    ----------
    near : ndarray of shape (b, k)
        Row indices, padded with the row's own index. The first b rows are the anchors, which draw
        neighbours.
    far : ndarray of shape (s,)
        Indices of distinct rows, drawn from all.
    n_rows : int
        n, including rows that are absent because no anchor lists them.
    """

    near: np.ndarray
    far: np.ndarray
    n_rows: int


@dataclass(frozen=True, eq=False)
class Minibatch(Candidates):
    """The candidates of some anchors, as positions among the rows that are needed, anchors first.

    Objectives are sums over anchors, so the results of the parts of a partition add up to the value
    and the gradient of the whole.

    Attributes
    ----------
    rows : ndarray
        The indices, among all rows, of those that are needed.
    n_parts : int
        Into how many parts the rows are divided, of which these anchors are one.
    """

    rows: np.ndarray
    n_parts: int

    @classmethod
    def of(
        cls, anchors: np.ndarray, near: np.ndarray, far: np.ndarray, n_rows: int, n_parts: int = 1
    ) -> Self:
        """Return the candidates of anchors; `near` and `far` are indices among all rows."""
        position = np.zeros(n_rows, dtype=np.intp)
        position[near], position[far], position[anchors] = 1, 1, 0
        rows = np.concatenate([anchors, np.flatnonzero(position)])
        position[rows] = np.arange(len(rows))
        return cls(position[near], position[far], n_rows, rows, n_parts)

    @property
    def anchors(self) -> np.ndarray:
        """Indices, among all rows, of the anchors."""
        return self.rows[: len(self.near)]


def among_candidates(
    Z: np.ndarray, candidates: Candidates, pair_weights: PairWeights, terms: Terms
) -> Value:
    """Return the objective and its gradient like `among_all`, estimated from the candidates.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        All rows, or those of a `Minibatch`.
    candidates : Candidates
    pair_weights, terms
        See `among_all`, for the rows of Z.

    Notes
    -----
    O(b (k + s) m) time for b anchors, O(b k + n m) memory and a tile per thread.
    """

    def weigh(logits: np.ndarray, i: np.ndarray, columns: np.ndarray) -> Value:
        log_w = pair_weights.log_weights(i, columns, Z.dtype)
        R = logits + (0.0 if log_w is None else log_w)
        p_top, r_top = exponentiate(logits), exponentiate(R)
        p_sum, r_sum = logits.sum(axis=1, keepdims=True), R.sum(axis=1, keepdims=True)
        log_q = r_top - p_top + np.log(r_sum / p_sum)
        term, factor = weighted_terms(terms, log_q, weights_of(pair_weights.row_weights, i[:, 0]))
        logits /= p_sum
        R /= r_sum
        logits -= R
        logits *= factor
        logits[np.abs(logits) < NEGLIGIBLE] = 0.0
        return float(term.sum(dtype=np.float64)), logits

    return _over_candidates(Z, candidates, weigh, pair_weights.row_weights)


def mass_among_candidates(
    Z: np.ndarray, candidates: Candidates, row_weights: np.ndarray | None = None
) -> Value:
    """Return `sum_i sum_j v_i v_j exp(-||z_i - z_j||^2)`, estimated, and its gradient.

    The sum is over anchors i and all others j, estimated from the candidates. The row weights v are
    1 by default. As in `exponentiate`, no term is below exp(-60).
    """
    offsets = (Z * Z).sum(axis=1)
    if row_weights is not None:
        offsets -= np.log(row_weights)

    def weigh(logits: np.ndarray, i: np.ndarray, columns: np.ndarray) -> Value:
        logits -= offsets[i]
        masses = np.exp(np.clip(logits, -60.0, None, out=logits), out=logits)
        return float(masses.sum(dtype=np.float64)), np.negative(masses, out=masses)

    return _over_candidates(Z, candidates, weigh, row_weights)


def _over_candidates(
    Z: np.ndarray,
    candidates: Candidates,
    weigh: Callable[..., Value],
    row_weights: np.ndarray | None,
) -> Value:
    """Return a sum over the anchors and their candidates, and its gradient with respect to Z.

    `weigh` takes logits (b, k + s), the anchors (b, 1) and the candidates of the columns. The
    logits are those of `factors`, or -inf. It returns a partial sum and G, its derivatives with
    respect to the squared distances of the pairs.
    """
    near, far = candidates.near, candidates.far
    (b, k), s, n = near.shape, len(far), len(Z)
    with_ones, operand = factors(Z, row_weights)
    far_ones, far_operand = with_ones[far], np.ascontiguousarray(operand[:, far])
    far_position = np.full(n, -1)
    far_position[far] = np.arange(s)
    near_weights = np.empty((b, k), Z.dtype)
    gradient = np.zeros(Z.shape)

    def add_blocks(blocks: Sequence[slice]) -> Value:
        value, from_columns = 0.0, np.zeros(far_ones.shape)  # G'(Z, 1) of the far rows
        for rows in blocks:
            i, j, z = np.arange(rows.start, rows.stop)[:, None], near[rows], with_ones[rows]
            logits = np.hstack([np.matmul(operand.T[j], z[:, :, None])[..., 0], z @ far_operand])
            logits[:, :k][j == i] = -np.inf
            # Far rows that are near rows, or the row itself, are excluded; the rest represent all
            # others.
            positions = np.hstack([far_position[j], far_position[i]])
            anchor, listed = np.nonzero(positions >= 0)
            logits[anchor, k + positions[anchor, listed]] = -np.inf
            n_others = candidates.n_rows - 1 - np.sum(j != i, axis=1)
            n_far = np.maximum(np.isfinite(logits[:, k:]).sum(axis=1), 1)
            with np.errstate(divide="ignore"):
                logits[:, k:] += np.log(n_others / n_far).astype(logits.dtype)[:, None]
            columns = np.hstack([j, np.broadcast_to(far, (len(i), s))])
            part, G = weigh(logits, i, columns)
            value += part
            near_weights[rows] = G[:, :k]
            from_rows = G[:, k:] @ far_ones
            gradient[rows] = from_rows[:, -1:] * Z[rows] - from_rows[:, :-1]
            from_columns += G[:, k:].T @ z
        return value, from_columns

    blocks = row_blocks(b, 1, tile_height(k * Z.shape[1] + s))
    parts = parallel_map(add_blocks, shares(blocks), b * (k + s))
    value = sum(part[0] for part in parts)
    from_columns = sum((part[1] for part in parts), np.zeros(far_ones.shape))
    gradient[far] += from_columns[:, -1:] * Z[far] - from_columns[:, :-1]
    ends = k * np.minimum(np.arange(n + 1), b)  # a row that is not an anchor lists none
    graph = csr_array((near_weights.ravel(), near.ravel(), ends), shape=(n, n))
    products = sum(parallel_map(lambda graph: graph @ Z, [graph, graph.T], b * k))
    degrees = np.bincount(near.ravel(), near_weights.ravel(), minlength=n).astype(np.float64)
    degrees[:b] += near_weights.sum(axis=1)
    return value, 2 * (gradient + degrees[:, None] * Z - products)


# The search for candidates under a map.

ALL_PAIRS_ROWS = 8000  # up to this many rows, all pairs are used: exact, and faster than a search
N_NEAR, N_FAR = 50, 500
N_NEAR_OF_ANCHOR = 15  # fewer than L-BFGS needs: later steps bring other far rows
# Stochastic gradient: a step uses only a batch of anchors and their candidates.
BATCHES = 20  # per epoch, by default,
FEWEST, MOST = 128, 512  # but with at least FEWEST and at most MOST anchors in a batch
STEPS = 500  # minimum number of steps of a fit, by default
REFRESH_SHARE = 0.2  # of the steps, after which near rows are searched again: early ones move most
EVALUATION_ROWS = 5000  # for the estimate of the final objective
EVALUATION_FAR = 2000
EVALUATION_GROUPS = 20


class DescentRows(Protocol):
    """Rows that maps embed. They may be in a file: only those in use are then copied."""

    @property
    def X(self) -> Matrix:
        """The rows, shape (n, r)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""

    def take(self, rows: np.ndarray | slice) -> Matrix:
        """Return the rows with the given indices."""

    def embedding(self, B: np.ndarray) -> np.ndarray:
        """Return the centred embedding Z = X B', shape (n, m)."""


RowsT = TypeVar("RowsT", bound=DescentRows, covariant=True)


def target_neighbors(
    Z: Matrix, codes: np.ndarray, k: int | np.ndarray, search: Searcher = EXACT
) -> np.ndarray:
    """Return the k nearest rows of the same class for every row, or `k[i]` for row i.

    The shape is (n, at most k). Missing neighbours are filled with the row's own index.
    """
    graph = neighbor_lists(Z, codes, k, "same", search)
    lengths = np.diff(graph.indptr)
    width = max(1, lengths.max())
    targets = np.repeat(np.arange(len(codes), dtype=graph.indices.dtype)[:, None], width, axis=1)
    targets[np.arange(width) < lengths[:, None]] = graph.indices
    return targets


def near_rows(
    Z: np.ndarray,
    k: int,
    codes: np.ndarray | None,
    search: Searcher = EXACT,
    anchors: np.ndarray | None = None,
) -> np.ndarray:
    """Return the indices of the k nearest rows of every row, or of every anchor, shape (n, k).

    With classes there is one more column, which g needs: the nearest row of the same class, or the
    row's own index if that row is listed already or does not exist.
    """
    n = len(Z)
    queried = np.ones(n, int) if anchors is None else np.bincount(anchors, minlength=n)
    near = neighbor_lists(Z, None, k * queried, "all", search).indices.reshape(-1, k)
    if codes is not None:
        own = np.flatnonzero(queried).astype(near.dtype)  # in row order
        same = target_neighbors(Z, codes, queried, search)[own, 0]
        is_listed = (near == same[:, None]).any(axis=1)
        near = np.column_stack([near, np.where(is_listed, own, same)])
    return near if anchors is None else near[np.argsort(np.argsort(anchors))]


@dataclass(frozen=True, eq=False)
class NeighborLoss(Loss[Candidates, Minibatch], Generic[RowsT]):
    """A loss of stochastic neighbours, each drawn among all rows or among candidates. Abstract.

    Attributes
    ----------
    rows : DescentRows
        In units of the typical distance of neighbours.
    search : Searcher
        For candidates.
    k : int or None
        Number of near candidates of every row; None if all rows are candidates.
    """

    rows: RowsT
    search: Searcher
    k: int | None

    @property
    def required_classes(self) -> np.ndarray | None:
        """The classes, if the nearest row of the same class has to be a candidate, or None."""
        return None

    def candidates(self, B: np.ndarray) -> Candidates | None:
        """Return the near rows of every row under a map, and evenly drawn far ones."""
        if self.k is None:
            return None
        near = near_rows(self.rows.embedding(B), self.k, self.required_classes, self.search)
        return Candidates(near, evenly_by(row_norms(self.rows.X, squared=True), N_FAR), len(near))

    def batches(
        self, size: int | str, n_epochs: int | str, rng: np.random.Generator
    ) -> Minibatches:
        """Return minibatches of anchors and their candidates."""
        return Minibatches(self, size, n_epochs, rng)

    def mean_over_anchors(
        self,
        Z: np.ndarray,
        sum_of: Callable[[np.ndarray, Minibatch], float],
        row_weights: np.ndarray | None,
    ) -> tuple[float, float]:
        """Return the mean of a sum over anchors, and its standard error.

        There are at most 5,000 anchors, the same for all maps. Each has at least its 50 nearest
        rows in the embedding Z of all rows, found exactly, and 2,000 far ones. The error is
        computed from the sums of 20 groups of anchors and is 0 if all rows are anchors.
        """
        n, rng = len(Z), np.random.default_rng(0)
        anchors = rng.permutation(n)[:EVALUATION_ROWS]
        near, far = np.empty((len(anchors), 0), np.int32), np.arange(n)
        if self.k is not None:
            far = rng.choice(n, min(EVALUATION_FAR, n), replace=False)
            k = min(max(self.k, N_NEAR), n - 1)
            near = near_rows(Z, k, self.required_classes, anchors=anchors)
        groups = np.array_split(np.arange(len(anchors)), min(EVALUATION_GROUPS, len(anchors)))
        batches = [Minibatch.of(anchors[group], near[group], far, n) for group in groups]
        sums = [sum_of(Z[batch.rows], batch) for batch in batches]
        counts = np.ones(n) if row_weights is None else row_weights
        sizes = np.array([counts[batch.anchors].sum() for batch in batches])
        mean = float(np.sum(sums) / sizes.sum())
        errors = (sums - mean * sizes) / sizes.mean()  # of a ratio of two sums, linearized
        error = float(np.std(errors, ddof=1) / len(errors) ** 0.5) * (1 - len(anchors) / n) ** 0.5
        return mean, error


def number_near(n_candidates: int | str | None, n: int, solver: str) -> int | None:
    """Return the number of near candidates of a row of n, or None if all rows are candidates."""
    if isinstance(n_candidates, str):  # "auto"
        few = n <= ALL_PAIRS_ROWS
        n_candidates = N_NEAR_OF_ANCHOR if solver == "sgd" else None if few else N_NEAR
    return None if n_candidates is None else min(n_candidates, n - 1)


class Minibatches:
    """The minibatches of a stochastic descent, in which every row is an anchor once per epoch.

    The anchors are shuffled in every epoch, and a batch has its own far rows. Near rows are
    searched under the first map and again after a fifth of the steps, and only for anchors still to
    come.

    Parameters
    ----------
    loss : NeighborLoss
    size : int or "auto"
        Maximum number of anchors; "auto" is a twentieth of the rows, at least 128 and at most 512.
    n_epochs : int or "auto"
        "auto" takes as many as 500 steps need.
    rng : numpy.random.Generator
    refresh_share : float
        The share of the steps after which near rows are searched again; 0 if they are not.
    """

    def __init__(
        self,
        loss: NeighborLoss[DescentRows],
        size: int | str,
        n_epochs: int | str,
        rng: np.random.Generator,
        refresh_share: float = REFRESH_SHARE,
    ) -> None:
        self._loss, self._rng, self._n = loss, rng, loss.rows.shape[0]
        if isinstance(size, str):
            size = min(max(FEWEST, self._n // BATCHES), MOST)
        self.n_batches = -(-self._n // size)
        self.n_epochs = -(-STEPS // self.n_batches) if isinstance(n_epochs, str) else n_epochs
        self._refresh_at = round(refresh_share * self.n_epochs * self.n_batches)
        # the anchors of this epoch, their near rows, and the far rows of this step
        self._order, self._far = np.arange(self._n), np.arange(self._n)
        self._near = np.empty((self._n, 0), np.int32)

    def __call__(self, B: np.ndarray, t: int) -> Minibatch:
        """Return the minibatch of step t = 0, 1, ... of a descent that has reached the map B."""
        loss, n, batch = self._loss, self._n, t % self.n_batches
        if batch == 0:
            self._order = self._rng.permutation(n)
        if loss.k is not None:
            if t in (0, self._refresh_at):
                n_steps = self.n_epochs * self.n_batches
                last = self._refresh_at if t < self._refresh_at else n_steps
                coming = self._anchors(batch, batch + last - t)
                found = near_rows(
                    loss.rows.embedding(B), loss.k, loss.required_classes, loss.search, coming
                )
                self._near = np.empty((n, found.shape[1]), found.dtype)
                self._near[coming] = found
            self._far = self._rng.choice(n, min(N_FAR, n), replace=False, shuffle=False)
        anchors = self._anchors(batch, batch + 1)
        return Minibatch.of(anchors, self._near[anchors], self._far, n, self.n_batches)

    def _anchors(self, first: int, last: int) -> np.ndarray:
        """Return the anchors of batches of this epoch, or all rows if they go beyond it."""
        n, n_batches = self._n, self.n_batches
        some = slice(first * n // n_batches, last * n // n_batches)
        return self._order[some] if last <= n_batches else self._order
