"""Stochastic neighbours of embedded rows: values and gradients, in tiles of some rows by all.

Row i draws row j as its neighbour with probability `p_ij = exp(-||z_i - z_j||^2) / sum_k exp(-||z_i
- z_k||^2)`, p_ii = 0 (NCA, eq. 1), and is classified correctly with probability `q_i = sum_j w_ij
p_ij` (eq. 2). With the posterior `r_ij = w_ij p_ij / q_i`, the gradients of both objectives have
the same form,

    f = sum_i q_i       df / d||z_i - z_j||^2 = q_i (p_ij - r_ij)
    g = sum_i log q_i   dg / d||z_i - z_j||^2 =      p_ij - r_ij

and with G_ij for either right-hand side, whose rows sum to 0,

    d/dz_i = 2 sum_j (G_ij + G_ji) (z_i - z_j) = 2 (s_i z_i - (G Z)_i - (G'Z)_i),   s = G'1.

If rows have weights v, p_ij is proportional to `v_j exp(-||z_i - z_j||^2)`, so log v_j is added to
the logits of column j. Row i counts v_i times, `f = sum_i v_i q_i`, `g = sum_i v_i log q_i`, and
row i of G is multiplied by v_i. A row with an integer weight is equivalent to that many equal rows
that are not neighbours of each other.

p and r are softmaxes of a row of logits, each relative to its own maximum, so nothing underflows.
Their sums are computed within the matrix products, by a column of ones. Tiles are computed in the
dtype of Z, sums over tiles in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from .._blocks import row_blocks
from .._threads import parallel_map, shares
from .._validation import weights_of

# Which neighbours are correct: rows of the same class, or rows of similar targets.
#
# A pair of rows has a weight w_ij >= 0, and row i is classified correctly with probability `q_i =
# sum_j w_ij p_ij`. Objectives use `log w_ij` for many pairs at a time. They process rows class by
# class, so that the pairs of a block of rows with w_ij > 0 lie in few columns. Row weights are
# reordered and subset together with the classes.

NORMAL_IQR = 1.349  # interquartile range of a normal distribution, in standard deviations
NO_MATCH = 69.0  # weights below exp(-69), 1e-30, change no sum and count as 0


@dataclass(frozen=True, eq=False)
class SameClass:
    """w_ij = 1 for rows of the same class, else 0.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class codes 0, 1, ....
    row_weights : ndarray of shape (n,), default=None
        v > 0, the weights of the rows; None for 1 each.
    """

    codes: np.ndarray
    row_weights: np.ndarray | None = None

    @property
    def order(self) -> np.ndarray:
        """Return the rows class by class, the order that `tiles` refers to."""
        return np.argsort(self.codes, kind="stable")

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return blocks of about `height` rows, and the columns of their classes.

        A block contains rows of one class or of several small ones.
        """
        tiles: list[tuple[slice, slice]] = []
        start = 0
        ends = np.cumsum(np.bincount(self.codes))
        for end in ends:
            if end - start >= height or end == ends[-1]:
                cuts = np.linspace(start, end, -(-(end - start) // height) + 1).astype(int)
                tiles += [(slice(*rows), slice(start, int(end))) for rows in pairwise(cuts)]
                start = int(end)
        return tiles

    def log_weights(self, i: np.ndarray, j: np.ndarray, dtype: Any) -> np.ndarray | None:
        """Return log w_ij for rows i and j, which are broadcast; None means zeros."""
        a, b = self.codes[i], self.codes[j]
        if (a == a.flat[0]).all() and (b == a.flat[0]).all():
            return None
        return np.where(a == b, 0.0, -np.inf).astype(dtype)

    def subset(self, rows: Any) -> SameClass:
        """Return the weights between some rows, reindexed in their order."""
        return SameClass(self.codes[rows], weights_of(self.row_weights, rows))


@dataclass(frozen=True, eq=False)
class TargetKernel:
    """`w_ij = exp(-(y_i - y_j)^2 / (2 h^2))` for real-valued targets.

    It is 0 beyond 11.7 h, where it is below 1e-30. A target far from all others is thus like a row
    alone in its class: no neighbour is correct.

    Parameters
    ----------
    targets : ndarray of shape (n,)
    bandwidth : float
        h > 0, in units of the target.
    row_weights : ndarray of shape (n,), default=None
        See `SameClass`.
    """

    targets: np.ndarray
    bandwidth: float
    row_weights: np.ndarray | None = None
    codes: ClassVar[None] = None  # there are no classes

    @property
    def order(self) -> np.ndarray:
        """Return the rows in their given order."""
        return np.arange(len(self.targets))

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return blocks of rows, each with all columns."""
        n = len(self.targets)
        return [(rows, slice(0, n)) for rows in row_blocks(n, 1, height)]

    def log_weights(self, i: np.ndarray, j: np.ndarray, dtype: Any) -> np.ndarray:
        """Return -(y_i - y_j)^2 / (2 h^2), or -inf."""
        y = (self.targets / (self.bandwidth * 2**0.5)).astype(dtype)
        with np.errstate(over="ignore"):
            squares = (y[i] - y[j]) ** 2
        return np.where(squares > NO_MATCH, -np.inf, -squares)

    def subset(self, rows: Any) -> TargetKernel:
        """Return the targets of some rows, with the same bandwidth."""
        weights = weights_of(self.row_weights, rows)
        return TargetKernel(self.targets[rows], self.bandwidth, weights)


PairWeights = SameClass | TargetKernel


def target_bandwidth(targets: np.ndarray) -> float:
    """Return h, a quarter of the targets' standard deviation estimated as IQR / 1.349.

    A quarter of the targets may be outliers of any size. If half of the targets are equal, so that
    the interquartile range is 0, that of the distinct targets is used.
    """
    first, third = np.quantile(targets, [0.25, 0.75])
    if first == third:
        first, third = np.quantile(np.unique(targets), [0.25, 0.75])
    return float(third - first) / NORMAL_IQR / 4


# Two tiles fit into the L2 cache of a core, unless they have so many columns that products of a few
# rows would be slow.
TILE_ENTRIES = 2**17
FEWEST_TILE_ROWS, TILE_ROWS = 32, 256

Value = tuple[float, np.ndarray]
Terms = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def accuracy_terms(log_q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f's terms q_i, and the factor q_i of its gradient."""
    q = np.exp(log_q)
    return q, q


def likelihood_terms(log_q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return g's terms log q_i, and the factor 1 of its gradient; both are 0 where q_i is 0."""
    possible = np.isfinite(log_q)
    return np.where(possible, log_q, 0.0), possible.astype(log_q.dtype)


TERMS: dict[str, Terms] = {"expected_accuracy": accuracy_terms, "log_likelihood": likelihood_terms}


def weighted_terms(terms: Terms, log_q: np.ndarray, weights: np.ndarray | None) -> Any:
    """Return the terms of some rows and the factors of their gradient, times any row weights."""
    term, factor = terms(log_q)
    if weights is None:
        return term, factor
    weights = weights.astype(log_q.dtype)[:, None]
    return weights * term, weights * factor


def tile_height(entries_per_row: int) -> int:
    """Return the number of rows of a tile."""
    return min(TILE_ROWS, max(FEWEST_TILE_ROWS, TILE_ENTRIES // entries_per_row))


def among_all(
    Z: np.ndarray, pair_weights: PairWeights, terms: Terms, share: slice = slice(None)
) -> Value:
    """Return the objective and its gradient with respect to Z, with all other rows as neighbours.

    Parameters
    ----------
    Z : array of shape (n, m)
        Embedded rows, preferably centred, since distances are computed from products.
    pair_weights : PairWeights
        The weights w_ij, and those of the rows.
    terms : {accuracy_terms, likelihood_terms}
        f or g.
    share : slice, default=slice(None)
        Which tiles are summed: `slice(s, None, t)` for s in 0 .. t - 1 are t shares of the sum.

    Returns
    -------
    value : float
    gradient : array of shape (n, m), float64

    Notes
    -----
    O(n^2 m) time, O(n m) memory and a tile per thread.
    """
    order = pair_weights.order
    Z, sorted_weights = Z[order], pair_weights.subset(order)
    n, row_weights = len(Z), sorted_weights.row_weights
    with_ones, operand = factors(Z, row_weights)

    def add_tiles(tiles: Sequence[tuple[slice, slice]]) -> Value:
        value, from_rows = 0.0, np.zeros(Z.shape)  # G Z
        from_columns = np.zeros(with_ones.shape)  # G'(Z, 1)
        buffer = np.empty((max(rows.stop - rows.start for rows, _ in tiles), n), Z.dtype)
        for rows, columns in tiles:
            i, j = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
            z = with_ones[rows]
            P = np.matmul(z, operand, out=buffer[: len(z)])  # logits, then their exponentials
            P[i - rows.start, i] = -np.inf
            R = P[:, columns].copy()
            log_w = sorted_weights.log_weights(i[:, None], j[None], Z.dtype)
            if log_w is not None:
                R += log_w
            p_top, r_top = exponentiate(P), exponentiate(R)
            PZ, RZ = P @ with_ones, R @ with_ones[columns]
            p_sum, r_sum = PZ[:, -1:], RZ[:, -1:]
            log_q = r_top - p_top + np.log(r_sum / p_sum)
            term, factor = weighted_terms(terms, log_q, weights_of(row_weights, rows))
            value += float(term.sum(dtype=np.float64))
            p_scale, r_scale = factor / p_sum, factor / r_sum
            from_rows[rows] += (p_scale * PZ - r_scale * RZ)[:, :-1]
            from_columns += P.T @ (p_scale * z)
            from_columns[columns] -= R.T @ (r_scale * z)
        return value, 2 * (from_columns[:, -1:] * Z - from_columns[:, :-1] - from_rows)

    value, gradient = 0.0, np.zeros(Z.shape)
    for part, G in parallel_map(
        add_tiles, shares(pair_weights.tiles(tile_height(n))[share]), n * n
    ):
        value += part
        gradient[order] += G
    return value, gradient


def factors(Z: np.ndarray, row_weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return `(Z, 1)`, shape (n, m + 1), and `(2Z, log v - |z|^2)'`, shape (m + 1, n).

    The softmax of a row of their product, `|z_i|^2 + log v_j - ||z_i - z_j||^2`, is p. The row
    weights v are 1 by default.
    """
    squares = (Z * Z).sum(axis=1, keepdims=True)
    operand = np.hstack([2 * Z, -squares]).T
    if row_weights is not None:
        operand[-1] += np.log(row_weights)
    return np.hstack([Z, np.ones_like(squares)]), operand


def exponentiate(logits: np.ndarray) -> np.ndarray:
    """Replace every row of logits by exp(logits - top), in place, and return top, shape (b, 1).

    Values are at least exp(-60), 1e-26: products of smaller numbers become subnormal, which is ten
    times slower.
    """
    top = logits.max(axis=1, keepdims=True)
    np.subtract(logits, np.where(np.isfinite(top), top, 0.0), out=logits)
    least = np.full(logits.shape[1], -60, logits.dtype)  # NumPy is half as fast with a scalar
    np.maximum(logits, least, out=logits)
    np.exp(logits, out=logits)
    return top


# Stochastic neighbours among a few candidates of every row: an estimate of `among_all` in O(n).

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
    rows : ndarray, default=None
        The indices, among all rows, of those that are present; None for all.
    """

    near: np.ndarray
    far: np.ndarray
    n_rows: int
    rows: Any = None

    @classmethod
    def of_anchors(
        cls, anchors: np.ndarray, near: np.ndarray, far: np.ndarray, n_rows: int
    ) -> Candidates:
        """Return the candidates of some anchors, as positions among the rows needed, anchors first.

        Objectives are sums over anchors, so the results of the parts of a partition add up to the
        value and the gradient of the whole. `near` lists the near rows of the anchors by their
        indices among all rows.
        """
        position = np.zeros(n_rows, dtype=np.intp)
        position[near], position[far], position[anchors] = 1, 1, 0
        rows = np.concatenate([anchors, np.flatnonzero(position)])
        position[rows] = np.arange(len(rows))
        return cls(position[near], position[far], n_rows, rows)


def with_same_class(near: np.ndarray, same: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return lists of near rows with an additional column, the nearest row of the same class.

    Where that row does not exist or is listed already, the column has the row's own index.
    """
    return np.column_stack([near, np.where((near == same[:, None]).any(axis=1), own, same)])


def among_candidates(
    Z: np.ndarray, candidates: Candidates, pair_weights: PairWeights, terms: Terms
) -> Value:
    """Return the objective and its gradient like `among_all`, estimated from the candidates.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        All rows, or those of `Candidates.of_anchors`.
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
