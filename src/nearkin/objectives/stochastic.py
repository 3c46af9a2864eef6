"""Stochastic neighbours of embedded rows: a value and its gradient, in tiles of some rows by all.

Row i takes row j for its neighbour with probability `p_ij = exp(-||z_i - z_j||^2) / sum_k exp(-||z_i - z_k||^2)`,
p_ii = 0 (NCA, eq. 1), and is right with probability `q_i = sum_j w_ij p_ij` (eq. 2). With the posterior
`r_ij = w_ij p_ij / q_i` both objectives have the same form of gradient,

    f = sum_i q_i       df / d||z_i - z_j||^2 = q_i (p_ij - r_ij)
    g = sum_i log q_i   dg / d||z_i - z_j||^2 =      p_ij - r_ij

and with G_ij for either right side, whose rows sum to 0,

    d/dz_i = 2 sum_j (G_ij + G_ji) (z_i - z_j) = 2 (s_i z_i - (G Z)_i - (G'Z)_i),   s = G'1.

p and r are softmaxes of a row of logits, each relative to its own maximum: nothing underflows. Their sums come out of
the matrix products, by a column of ones. Tiles are computed in the type of Z; what is added over tiles, in float64. The
same code runs on NumPy arrays and on torch tensors, on their device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._blocks import namespace, row_blocks
from .._parallel import Value, in_threads
from .pair_weights import PairWeights

# A tile stays in the cache of a core.
TILE_ENTRIES = 2**22
TILE_ROWS = 256
# Below, a weight changes no sum; and numbers near the smallest of float32 make products ten times slower.
NOTHING = 1e-30


def expected_matches(log_q: Any) -> tuple[Any, Any]:
    """Return f's terms q_i, and the factor q_i of its gradient."""
    q = namespace(log_q).exp(log_q)
    return q, q


def log_matches(log_q: Any) -> tuple[Any, Any]:
    """Return g's terms log q_i, and the factor 1 of its gradient; both are 0 where a row has no match at all."""
    xp = namespace(log_q)
    possible = xp.isfinite(log_q)
    return xp.where(possible, log_q, 0.0), xp.asarray(possible, dtype=log_q.dtype)


Terms = Callable[[Any], tuple[Any, Any]]


def among_all(Z: Any, matches: PairWeights, terms: Terms, share: slice = slice(None)) -> Value:
    """Return the objective, and its gradient with respect to Z, where every other row is a possible neighbour.

    Parameters
    ----------
    Z : array or torch tensor of shape (n, m)
        Embedded rows, best about their mean: distances are formed from products.
    matches : Matches
        The weights w_ij.
    terms : {expected_matches, log_matches}
        f or g.
    share : slice, default=slice(None)
        Which tiles of rows are added up, of all: `slice(s, None, t)` for s in 0 .. t - 1 are t shares of the sum.

    Returns
    -------
    value : float
    gradient : array or tensor of shape (n, m), float64

    Notes
    -----
    O(n^2 m) time, O(n m) memory and a tile for every thread.
    """
    xp = namespace(Z)
    order = matches.order
    Z = Z[order]
    height = max(1, min(TILE_ROWS, TILE_ENTRIES // len(Z)))
    tiles = matches.tiles(height)[share]

    def part(tiles: Sequence[tuple[slice, slice]]) -> Value:
        return _sum_of_tiles(Z, order, matches, terms, tiles)

    value, gradient = in_threads(part, tiles, len(Z) ** 2, one=xp is not np)
    back = xp.empty_like(gradient)
    back[order] = gradient
    return value, back


def _sum_of_tiles(
    Z: Any, order: np.ndarray, matches: PairWeights, terms: Terms, tiles: Sequence[tuple[slice, slice]]
) -> Value:
    """Return value and gradient of the rows of some tiles; Z is in the order of the tiles."""
    xp = namespace(Z)
    with_ones, operand = factors(Z)
    value = 0.0
    gradient = xp.zeros_like(Z, dtype=xp.float64)
    towards = xp.zeros_like(with_ones, dtype=xp.float64)  # G'Z and G'1
    tallest = max((rows.stop - rows.start for rows, _ in tiles), default=0)
    buffer = xp.empty_like(Z, shape=(tallest, len(Z))) if xp is np else Z.new_empty((tallest, len(Z)))
    for rows, columns in tiles:
        z = with_ones[rows]
        P = xp.matmul(z, operand, out=buffer[: len(z)])  # logits, then exp of them
        _exclude_self(P, rows)
        R = P[:, columns] + 0.0
        log_w = matches.log_weights(order[rows, None], order[None, columns], Z)
        if log_w is not None:
            R += log_w
        p_top, p_sum, PZ = _softmax_sums(P, with_ones)
        r_top, r_sum, RZ = _softmax_sums(R, with_ones[columns])
        with np.errstate(divide="ignore"):  # no match: log 0
            term, factor = terms(r_top - p_top + xp.log(r_sum / p_sum))
        value += float(xp.sum(term, dtype=xp.float64))
        p_scale, r_scale = factor / p_sum, factor / r_sum
        gradient[rows] -= (p_scale * PZ - r_scale * RZ)[:, :-1]
        towards += P.T @ (p_scale * z)
        towards[columns] -= R.T @ (r_scale * z)
    return value, 2 * (gradient + towards[:, -1:] * Z - towards[:, :-1])


def factors(Z: Any) -> tuple[Any, Any]:
    """Return (Z, 1) and (2Z, -|z|^2)': the product is -||z_i - z_j||^2 + |z_i|^2, as good as the first in a softmax."""
    xp = namespace(Z)
    squares = xp.sum(Z * Z, axis=1, keepdims=True)
    return xp.hstack([Z, xp.ones_like(squares)]), xp.hstack([2 * Z, -squares]).T


def _exclude_self(logits: Any, rows: slice) -> None:
    i = np.arange(rows.stop - rows.start)
    logits[i, i + rows.start] = -np.inf


def _exponentiate(logits: Any) -> Any:
    """Turn every row of logits into E = exp(logits - top), in place, and return top, shape (b, 1).

    Nothing falls below exp(-60), 1e-26: numbers near the smallest there are make the products ten times slower.
    """
    xp = namespace(logits)
    top = xp.amax(logits, axis=1, keepdims=True)
    xp.subtract(logits, xp.where(xp.isfinite(top), top, 0.0), out=logits)
    xp.clip(logits, -60.0, None, out=logits)
    xp.exp(logits, out=logits)
    return top


def _softmax_sums(logits: Any, with_ones: Any) -> tuple[Any, Any, Any]:
    """Exponentiate the logits in place and return top, the sums of E and E (Z, 1)."""
    top = _exponentiate(logits)
    EZ = logits @ with_ones
    return top, EZ[:, -1:], EZ


@dataclass(frozen=True, eq=False)
class Candidates:
    """The possible neighbours of every row: the nearest, and some rows that stand for all the others.

    The nearest alone would fool a descent: whatever is not listed may come near at no cost. So row i chooses among its
    near rows, each for itself, and the far rows, each for `(n - 1 - k) / s` others, k near and s far ones (without
    those that are near, and i itself).

    Attributes
    ----------
    near : ndarray of shape (b, k)
        Numbers of rows; a row's own number stands for none. The first b rows are anchors, those that choose; here all
        of them, b = n.
    far : ndarray of shape (s,)
        Numbers of different rows, drawn from all.
    n_rows : int, default=None
        n, where rows are absent that no anchor lists; by default all are there.
    """

    near: np.ndarray
    far: np.ndarray
    n_rows: int | None = None

    def of(self, anchors: np.ndarray, far: np.ndarray | None = None) -> tuple[np.ndarray, Candidates]:
        """Return the rows that some anchors need, themselves first, and the candidates as places among these rows.

        The objectives are sums over anchors: what the parts of a partition yield adds up to the value and the gradient
        of the whole. `far` takes the place of the far rows.
        """
        return Candidates.listed(anchors, self.near[anchors], self.far if far is None else far, len(self.near))

    @classmethod
    def listed(
        cls, anchors: np.ndarray, near: np.ndarray, far: np.ndarray, n_rows: int
    ) -> tuple[np.ndarray, Candidates]:
        """Return what `of` does, for the near rows of some anchors of n rows."""
        place = np.zeros(n_rows, dtype=np.intp)
        place[near], place[far], place[anchors] = 1, 1, 0
        rows = np.concatenate([anchors, np.flatnonzero(place)])
        place[rows] = np.arange(len(rows))
        return rows, cls(place[near], place[far], n_rows)


def among_candidates(Z: np.ndarray, candidates: Candidates, matches: PairWeights, terms: Terms) -> Value:
    """Return the objective and its gradient as `among_all` does, estimated from the candidates.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        All rows, or those that `Candidates.of` asks for.
    candidates : Candidates
    matches, terms
        As for `among_all`, for the rows of Z.

    Notes
    -----
    O(b (k + s) m) time for b anchors, O(b k + n m) memory and a tile for every thread.
    """
    b, k = candidates.near.shape
    n = len(Z)
    n_others = (candidates.n_rows or n) - 1
    with_ones, operand = factors(Z)
    far_ones, far_operand = with_ones[candidates.far], np.ascontiguousarray(operand[:, candidates.far])
    place = np.full(n, -1)
    place[candidates.far] = np.arange(len(candidates.far))
    near_weights = np.empty((b, k), Z.dtype)
    gradient = np.zeros(Z.shape)

    def part(blocks: Sequence[slice]) -> Value:
        value = 0.0
        towards = np.zeros(far_ones.shape)
        for rows in blocks:
            i, near, z = np.arange(rows.start, rows.stop)[:, None], candidates.near[rows], with_ones[rows]
            logits = np.hstack([_near_logits(z, operand, near), z @ far_operand])
            logits[:, :k][near == i] = -np.inf
            _weigh_far(logits[:, k:], np.hstack([place[near], place[i]]), n_others - np.sum(near != i, axis=1))
            everybody = np.hstack([near, np.broadcast_to(candidates.far, (len(i), len(candidates.far)))])
            log_w = matches.log_weights(i, everybody, Z)
            term, G = _weights(logits, log_w, terms)
            value += term
            near_weights[rows] = G[:, :k]
            from_far = G[:, k:] @ far_ones
            gradient[rows] = from_far[:, -1:] * Z[rows] - from_far[:, :-1]
            towards += G[:, k:].T @ z
        return value, towards

    height = max(1, min(TILE_ROWS, TILE_ENTRIES // (k * Z.shape[1] + len(candidates.far))))
    value, towards = in_threads(part, row_blocks(b, 1, height), b * (k + len(candidates.far)))
    gradient[candidates.far] += towards[:, -1:] * Z[candidates.far] - towards[:, :-1]
    ends = k * np.minimum(np.arange(n + 1), b)  # who is no anchor lists nobody
    graph = csr_array((near_weights.ravel(), candidates.near.ravel(), ends), shape=(n, n))
    _, products = in_threads(lambda graphs: (0.0, sum(g @ Z for g in graphs)), [graph, graph.T], b * k)
    degrees = np.bincount(candidates.near.ravel(), near_weights.ravel(), minlength=n).astype(np.float64)
    degrees[:b] += near_weights.sum(axis=1)
    return value, 2 * (gradient + degrees[:, None] * Z - products)


def _near_logits(z: np.ndarray, operand: np.ndarray, near: np.ndarray) -> np.ndarray:
    return np.matmul(operand.T[near], z[:, :, None])[..., 0]


def _weigh_far(logits: np.ndarray, places: np.ndarray, n_others: np.ndarray) -> None:
    """Leave out far rows that are near rows or the row itself; let the rest stand for all others, in place."""
    i, listed = np.nonzero(places >= 0)
    logits[i, places[i, listed]] = -np.inf
    admitted = np.sum(np.isfinite(logits), axis=1)
    with np.errstate(divide="ignore"):
        logits += np.log(n_others / np.maximum(admitted, 1)).astype(logits.dtype)[:, None]


def _weights(logits: np.ndarray, log_w: np.ndarray | None, terms: Terms) -> tuple[float, np.ndarray]:
    """Return the sum of the terms of some rows, and G of their candidates."""
    R = logits + (0.0 if log_w is None else log_w)
    p_top, r_top = _exponentiate(logits), _exponentiate(R)
    p_sum, r_sum = logits.sum(axis=1, keepdims=True), R.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):  # no match: log 0
        term, factor = terms(r_top - p_top + np.log(r_sum / p_sum))
    logits /= p_sum
    R /= r_sum
    logits -= R
    logits *= factor
    logits[np.abs(logits) < NOTHING] = 0.0
    return float(term.sum(dtype=np.float64)), logits


def pair_cost(Z: Any, pairs: np.ndarray, weights: np.ndarray) -> Value:
    """Return the cost of NCA's eq. 8 and its gradient with respect to Z: similar pairs close, among all pairs.

        -sum_(a,b) w_ab log( exp(-||z_a - z_b||^2) / sum_{c != d} exp(-||z_c - z_d||^2) )

    Parameters
    ----------
    Z : array or torch tensor of shape (n, m)
    pairs : ndarray of shape (n_pairs, 2)
        Rows a and b.
    weights : ndarray of shape (n_pairs,)

    Notes
    -----
    O(n^2 m) time, O(n m) memory and a tile for every thread. With pi_cd the softmax over all ordered pairs, which is
    symmetric, the gradient of the second part is `-4 sum_w sum_d pi_cd (z_c - z_d)`.
    """
    xp = namespace(Z)
    with_ones, operand = factors(Z)
    n = len(Z)
    height = max(1, min(TILE_ROWS, TILE_ENTRIES // n))
    log_mass, mean = xp.empty_like(Z[:, :1], dtype=xp.float64), xp.empty_like(Z, dtype=xp.float64)

    def part(blocks: Sequence[slice]) -> Value:
        for rows in blocks:
            logits = with_ones[rows] @ operand
            _exclude_self(logits, rows)
            top, total, EZ = _softmax_sums(logits, with_ones)
            log_mass[rows] = xp.log(total) + top - xp.sum(Z[rows] ** 2, axis=1, keepdims=True)
            mean[rows] = (EZ / total)[:, :-1]
        return 0.0, 0.0

    in_threads(part, row_blocks(n, 1, height), n * n, one=xp is not np)
    top = xp.amax(log_mass)
    mass = xp.exp(log_mass - top)
    log_sum = top + xp.log(xp.sum(mass))
    a, b = pairs.T
    w = xp.asarray(weights, dtype=xp.float64, device=Z.device)
    apart = xp.asarray(Z[a] - Z[b], dtype=xp.float64)
    gradient = -4 * xp.sum(w) * mass / xp.sum(mass) * (Z - mean)
    if xp is np:
        np.add.at(gradient, a, 2 * w[:, None] * apart)
        np.add.at(gradient, b, -2 * w[:, None] * apart)
    else:
        at = [xp.asarray(rows, device=Z.device) for rows in (a, b)]
        gradient.index_add_(0, at[0], 2 * w[:, None] * apart).index_add_(0, at[1], -2 * w[:, None] * apart)
    return float(xp.sum(w * xp.sum(apart**2, axis=1)) + xp.sum(w) * log_sum), gradient


def _softmax(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    top = logits.max(axis=1, keepdims=True)
    E = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    return top, E.sum(axis=1, keepdims=True), E
