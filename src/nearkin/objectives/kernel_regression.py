"""Leave-one-out kernel regression (Weinberger and Tesauro, AISTATS 2007) as a function of the map A and the rows X.

Row i is predicted from all others, by their stochastic-neighbour weights (`stochastic.py`):

    L(A) = sum_i ||y_i - y^_i||^2,    y^_i = sum_j p_ij y_j,    p_ij ~ exp(-||z_i - z_j||^2),  p_ii = 0.

From d y^_i / d||z_i - z_j||^2 = p_ij (y^_i - y_j) follows

    dL / d||z_i - z_j||^2 = G_ij = 2 p_ij (y_i - y^_i)'(y_j - y^_i),

whose rows sum to 0, as those of NCA's do; and so the gradient with respect to Z has the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._blocks import row_blocks
from .._parallel import parallel_map, shares
from .linear_map import chain_rule, embed
from .stochastic import Value, exponentiate, factors, tile_height


def squared_errors(A: np.ndarray, X: Any, Y: np.ndarray) -> Value:
    """Return L(A), the squared errors of leave-one-out kernel regression, and its gradient.

    Parameters
    ----------
    A : array of shape (m, p)
    X : array or sparse matrix of shape (n, p)
        Best about its mean.
    Y : array of shape (n, q)
        Targets, best about their mean.

    Returns
    -------
    value : float
    gradient : array of the shape of A, float64

    Notes
    -----
    O(n^2 (m + q) + n p m) time, O(n m) memory and two tiles for every thread.
    """
    Z = embed(A, X)
    n, Y = len(Z), Y.astype(Z.dtype, copy=False)
    with_ones, operand = factors(Z)

    def add_tiles(tiles: Sequence[slice]) -> tuple[float, np.ndarray, np.ndarray]:
        value, from_rows, from_columns = 0.0, np.zeros(Z.shape), np.zeros(with_ones.shape)  # G Z / 2, G'(Z, 1) / 2
        for rows in tiles:
            P = with_ones[rows] @ operand
            P[np.arange(len(P)), np.arange(rows.start, rows.stop)] = -np.inf
            exponentiate(P)
            P /= P.sum(axis=1, keepdims=True)
            predicted = P @ Y
            error = Y[rows] - predicted
            value += float(np.sum(error * error, dtype=np.float64))
            G = error @ Y.T
            G -= np.sum(error * predicted, axis=1, keepdims=True)
            G *= P
            from_rows[rows] = G @ Z
            from_columns += G.T @ with_ones[rows]
        return value, from_rows, from_columns

    parts = parallel_map(add_tiles, shares(row_blocks(n, 1, tile_height(n))), n * n)
    value, from_rows, from_columns = (sum(part[1:], part[0]) for part in zip(*parts, strict=True))
    return value, chain_rule(4 * (from_columns[:, -1:] * Z - from_columns[:, :-1] - from_rows), A, X)
