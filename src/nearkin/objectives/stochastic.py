"""Stochastic neighbours of embedded rows: a value and its gradient, in tiles of some rows by all.

Row i takes row j for its neighbour with probability `p_ij = exp(-||z_i - z_j||^2) / sum_k exp(-||z_i - z_k||^2)`,
p_ii = 0 (NCA, eq. 1), and is labelled right with probability `q_i = sum_j w_ij p_ij` (eq. 2). With the posterior
`r_ij = w_ij p_ij / q_i` both objectives have the same form of gradient,

    f = sum_i q_i       df / d||z_i - z_j||^2 = q_i (p_ij - r_ij)
    g = sum_i log q_i   dg / d||z_i - z_j||^2 =      p_ij - r_ij

and with G_ij for either right side, whose rows sum to 0,

    d/dz_i = 2 sum_j (G_ij + G_ji) (z_i - z_j) = 2 (s_i z_i - (G Z)_i - (G'Z)_i),   s = G'1.

p and r are softmaxes of a row of logits, each relative to its own maximum: nothing underflows. Their sums come out of
the matrix products, by a column of ones. Tiles are computed in the type of Z, sums over tiles in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._parallel import parallel_map, shares
from .pair_weights import PairWeights

# A tile stays in the cache of a core.
TILE_ENTRIES = 2**22
TILE_ROWS = 256

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


def tile_height(entries_per_row: int) -> int:
    """Return how many rows a tile has."""
    return max(1, min(TILE_ROWS, TILE_ENTRIES // entries_per_row))


def among_all(Z: np.ndarray, pair_weights: PairWeights, terms: Terms, share: slice = slice(None)) -> Value:
    """Return the objective, and its gradient with respect to Z, where every other row is a possible neighbour.

    Parameters
    ----------
    Z : array of shape (n, m)
        Embedded rows, best about their mean: distances are formed from products.
    pair_weights : PairWeights
        The weights w_ij.
    terms : {accuracy_terms, likelihood_terms}
        f or g.
    share : slice, default=slice(None)
        Which tiles are added up: `slice(s, None, t)` for s in 0 .. t - 1 are t shares of the sum.

    Returns
    -------
    value : float
    gradient : array of shape (n, m), float64

    Notes
    -----
    O(n^2 m) time, O(n m) memory and a tile for every thread.
    """
    order = pair_weights.order
    Z, sorted_weights = Z[order], pair_weights.subset(order)
    n = len(Z)
    with_ones, operand = factors(Z)

    def add_tiles(tiles: Sequence[tuple[slice, slice]]) -> Value:
        value, from_rows = 0.0, np.zeros(Z.shape)  # G Z
        from_columns = np.zeros(with_ones.shape)  # G'(Z, 1)
        buffer = np.empty((max(rows.stop - rows.start for rows, _ in tiles), n), Z.dtype)
        for rows, columns in tiles:
            z, i, j = with_ones[rows], np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
            P = np.matmul(z, operand, out=buffer[: len(z)])  # logits, then exp of them
            P[i - rows.start, i] = -np.inf
            R = P[:, columns].copy()
            log_w = sorted_weights.log_weights(i[:, None], j[None], Z.dtype)
            if log_w is not None:
                R += log_w
            p_top, r_top = exponentiate(P), exponentiate(R)
            PZ, RZ = P @ with_ones, R @ with_ones[columns]
            p_sum, r_sum = PZ[:, -1:], RZ[:, -1:]
            term, factor = terms(r_top - p_top + np.log(r_sum / p_sum))
            value += float(term.sum(dtype=np.float64))
            p_scale, r_scale = factor / p_sum, factor / r_sum
            from_rows[rows] += (p_scale * PZ - r_scale * RZ)[:, :-1]
            from_columns += P.T @ (p_scale * z)
            from_columns[columns] -= R.T @ (r_scale * z)
        return value, 2 * (from_columns[:, -1:] * Z - from_columns[:, :-1] - from_rows)

    value, gradient = 0.0, np.zeros(Z.shape)
    for part, G in parallel_map(add_tiles, shares(pair_weights.tiles(tile_height(n))[share]), n * n):
        value += part
        gradient[order] += G
    return value, gradient


def factors(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `(Z, 1)` and `(2Z, -|z|^2)'`: the product, `|z_i|^2 - ||z_i - z_j||^2`, has the softmax of -d^2."""
    squares = (Z * Z).sum(axis=1, keepdims=True)
    return np.hstack([Z, np.ones_like(squares)]), np.hstack([2 * Z, -squares]).T


def exponentiate(logits: np.ndarray) -> np.ndarray:
    """Turn every row of logits into exp(logits - top), in place, and return top, shape (b, 1).

    Nothing falls below exp(-60), 1e-26: numbers near the smallest there are make the products ten times slower.
    """
    top = logits.max(axis=1, keepdims=True)
    np.subtract(logits, np.where(np.isfinite(top), top, 0.0), out=logits)
    np.clip(logits, -60.0, None, out=logits)
    np.exp(logits, out=logits)
    return top
