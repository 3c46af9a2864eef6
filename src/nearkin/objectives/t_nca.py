"""t-distributed NCA (Min, van der Maaten, Yuan, Bonner and Zhang, ICML 2010) as a function of the
embedded rows Z: NCA's log-likelihood with the weights of a Student-t distribution.

    q_i = sum_(j != i) w_ij k_ij / sum_(j != i) k_ij        k_ij = 1 / (1 + ||z_i - z_j||^2)

In a plane there is little room at moderate distances, and much of it far away. Gaussian weights
vanish there, so that what is far apart by mistake is no longer pulled; these fall slowly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._blocks import parallel_map, row_blocks, shares
from .stochastic import PairWeights, Value, factors, tile_height


def student_log_likelihood(
    Z: np.ndarray, pair_weights: PairWeights, n_anchors: int | None = None
) -> Value:
    """Return `sum_i log q_i` and its gradient with respect to Z.

    With d_ij the squared distance, the derivative of k_ij is -k_ij^2, so

        G_ij = d (log q_i) / d (d_ij) = k_ij^2 (1 / sum_l k_il - w_ij / sum_l w_il k_il)

    and the gradient is `2 sum_j (G_ij + G_ji) (z_i - z_j)`. A row without any other of weight is
    left out of the sum.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        Embedded rows, best about their mean: distances are formed from products.
    pair_weights : SameClass or TargetKernel
        The weights w_ij.
    n_anchors : int, default=None
        How many rows, the first ones, the sum is over; all the others remain their neighbours. None
        takes all rows.

    Returns
    -------
    value : float
    gradient : array of shape (n, m), float64

    Notes
    -----
    O(b n m) time for b anchors, O(n m) memory and a tile for every thread.
    """
    n, b = len(Z), len(Z) if n_anchors is None else n_anchors
    with_ones, operand = factors(Z)
    squares = np.sum(Z * Z, axis=1, keepdims=True)
    every = np.arange(n)

    def add_tiles(tiles: Sequence[slice]) -> Value:
        value, from_rows = 0.0, np.zeros(Z.shape)  # G Z
        from_columns = np.zeros(with_ones.shape)  # G'(Z, 1)
        for rows in tiles:
            i, z = every[rows], with_ones[rows]
            K = squares[rows] - z @ operand
            np.maximum(K, 0, out=K)
            K += 1
            np.reciprocal(K, out=K)
            K[i - rows.start, i] = 0
            R = K * pair_weights.weights(i[:, None], every[None], Z.dtype)
            k_sum, r_sum = K.sum(axis=1, keepdims=True), R.sum(axis=1, keepdims=True)
            possible = r_sum > 0
            safe = np.where(possible, r_sum, 1)
            value += float(np.log(np.where(possible, safe / k_sum, 1)).sum(dtype=np.float64))
            R /= safe
            G = K * (possible / k_sum).astype(Z.dtype)
            G -= R
            G *= K
            GZ = G @ with_ones
            from_rows[rows] += GZ[:, -1:] * Z[rows] - GZ[:, :-1]
            from_columns += G.T @ z
        return value, from_rows + from_columns[:, -1:] * Z - from_columns[:, :-1]

    tiles = row_blocks(b, 1, tile_height(n))
    parts = parallel_map(add_tiles, shares(tiles), b * n)
    return sum(part[0] for part in parts), 2 * sum(part[1] for part in parts)
