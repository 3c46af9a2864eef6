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

from .._blocks import row_blocks
from .._threads import parallel_map, shares
from .._validation import weights_of
from .loss import Value

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


def among_all(Z: np.ndarray, pair_weights: PairWeights, terms: Terms) -> Value:
    """Return the objective and its gradient with respect to Z, with all other rows as neighbours.

    Parameters
    ----------
    Z : array of shape (n, m)
        Embedded rows, preferably centred, since distances are computed from products.
    pair_weights : PairWeights
        The weights w_ij, and those of the rows.
    terms : {accuracy_terms, likelihood_terms}
        f or g.

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
    tiles = pair_weights.tiles(tile_height(n))
    for part, G in parallel_map(add_tiles, shares(tiles), n * n):
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
