"""Stochastic neighbours among a few candidates of every row: what `stochastic.py` computes, estimated in O(n)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from .._blocks import row_blocks
from .._parallel import parallel_map, shares
from .pair_weights import PairWeights
from .stochastic import Terms, Value, exponentiate, factors, tile_height

# Below, a weight changes no sum; and numbers near the smallest of float32 make products ten times slower.
NEGLIGIBLE = 1e-30
# Of logits (b, k + s), the anchors (b, 1) and the candidates of the columns: the sum of what is added up, and G of the
# pairs, its derivatives with respect to their squared distances. The logits are -||z_i - z_j||^2 + |z_i|^2, or -inf.
Weigh = Callable[[np.ndarray, np.ndarray, np.ndarray], Value]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The possible neighbours of every row: the nearest, and some rows that stand for all the others.

    The nearest alone would mislead a descent: whatever is not listed may come near at no cost. So row i chooses among
    its near rows, each for itself, and the far rows, each for `(n - 1 - k) / s` others, k near and s far ones (without
    those that are near, and i itself).

    Attributes
    ----------
    near : ndarray of shape (b, k)
        Numbers of rows; a row's own number stands for none. The first b rows are the anchors, those that choose.
    far : ndarray of shape (s,)
        Numbers of different rows, drawn from all.
    n_rows : int
        n, also where rows are absent that no anchor lists.
    """

    near: np.ndarray
    far: np.ndarray
    n_rows: int

    @classmethod
    def of_anchors(
        cls, anchors: np.ndarray, near: np.ndarray, far: np.ndarray, n_rows: int
    ) -> tuple[np.ndarray, Candidates]:
        """Return the rows that some anchors need, themselves first, and the candidates as positions among these rows.

        The objectives are sums over anchors: what the parts of a partition yield adds up to the value and the gradient
        of the whole. `near` lists the near rows of the anchors, by their numbers among all rows.
        """
        position = np.zeros(n_rows, dtype=np.intp)
        position[near], position[far], position[anchors] = 1, 1, 0
        rows = np.concatenate([anchors, np.flatnonzero(position)])
        position[rows] = np.arange(len(rows))
        return rows, cls(position[near], position[far], n_rows)


def with_same_class(near: np.ndarray, same: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return lists of near rows, and beside them the nearest row of the same class, or the row itself."""
    return np.column_stack([near, np.where((near == same[:, None]).any(axis=1), own, same)])


def among_candidates(Z: np.ndarray, candidates: Candidates, pair_weights: PairWeights, terms: Terms) -> Value:
    """Return the objective and its gradient as `among_all` does, estimated from the candidates.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        All rows, or those that `Candidates.of_anchors` names.
    candidates : Candidates
    pair_weights, terms
        As for `among_all`, for the rows of Z.

    Notes
    -----
    O(b (k + s) m) time for b anchors, O(b k + n m) memory and a tile for every thread.
    """

    def weigh(logits: np.ndarray, i: np.ndarray, columns: np.ndarray) -> Value:
        return _weights(logits, pair_weights.log_weights(i, columns, Z.dtype), terms)

    return _over_candidates(Z, candidates, weigh)


def mass_among_candidates(Z: np.ndarray, candidates: Candidates) -> Value:
    """Return `sum_i sum_j exp(-||z_i - z_j||^2)` over anchors i and all other rows j, by candidates; its gradient.

    As in `exponentiate`, no term falls below exp(-60).
    """
    squares = (Z * Z).sum(axis=1)

    def weigh(logits: np.ndarray, i: np.ndarray, columns: np.ndarray) -> Value:
        logits -= squares[i]
        masses = np.exp(np.clip(logits, -60.0, None, out=logits), out=logits)
        return float(masses.sum(dtype=np.float64)), np.negative(masses, out=masses)

    return _over_candidates(Z, candidates, weigh)


def _over_candidates(Z: np.ndarray, candidates: Candidates, weigh: Weigh) -> Value:
    """Return a sum over the anchors and their candidates, and its gradient with respect to Z."""
    near, far = candidates.near, candidates.far
    (b, k), s, n = near.shape, len(far), len(Z)
    with_ones, operand = factors(Z)
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
            # Far rows that are near rows, or the row itself, are left out; the rest stand for all others.
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
    ends = k * np.minimum(np.arange(n + 1), b)  # a row that is no anchor lists none
    graph = csr_array((near_weights.ravel(), near.ravel(), ends), shape=(n, n))
    products = sum(parallel_map(lambda graph: graph @ Z, [graph, graph.T], b * k))
    degrees = np.bincount(near.ravel(), near_weights.ravel(), minlength=n).astype(np.float64)
    degrees[:b] += near_weights.sum(axis=1)
    return value, 2 * (gradient + degrees[:, None] * Z - products)


def _weights(logits: np.ndarray, log_w: np.ndarray | None, terms: Terms) -> Value:
    """Return the sum of the terms of some rows, and G of their candidates, in place of the logits."""
    R = logits + (0.0 if log_w is None else log_w)
    p_top, r_top = exponentiate(logits), exponentiate(R)
    p_sum, r_sum = logits.sum(axis=1, keepdims=True), R.sum(axis=1, keepdims=True)
    term, factor = terms(r_top - p_top + np.log(r_sum / p_sum))
    logits /= p_sum
    R /= r_sum
    logits -= R
    logits *= factor
    logits[np.abs(logits) < NEGLIGIBLE] = 0.0
    return float(term.sum(dtype=np.float64)), logits
