"""Leave-one-out kernel regression (Weinberger and Tesauro, AISTATS 2007) as a function of A and X.

Row i is predicted from all others with their stochastic-neighbour weights (`stochastic.py`), and
has a loss l:

    L(A) = sum_i w_i l(y_i, y^_i),  y^_i = sum_j p_ij y_j,
    p_ij ~ w_j exp(-||z_i - z_j||^2),  p_ii = 0,

with row weights w, 1 by default.

From d y^_i / d||z_i - z_j||^2 = p_ij (y^_i - y_j), with the derivative l'_i of l with respect to
y^_i,

    dL / d||z_i - z_j||^2 = -G_ij,    G_ij = w_i p_ij l'_i (y_j - y^_i).

The rows of G sum to 0, as for NCA, so the gradient with respect to Z has the same form. With class
indicators as Y and the logarithm as l, y^_i holds the class probabilities, and -L is NCA's g (eq.
6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._blocks import parallel_map, row_blocks, shares
from .linear_map import chain_rule, embed
from .stochastic import Value, exponentiate, factors, tile_height

Loss = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

# added to every probability, which limits a row's loss to about 16, so that hopeless rows do not
# attract the map
LEAST = 1e-7
MANY_CLASSES = 50  # with fewer, products with indicators are faster than comparing class codes


def squared_error(predicted: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ||y_i - y^_i||^2 for every row, and its derivative with respect to y^_i."""
    error = predicted - Y
    return np.sum(error * error, axis=1), 2 * error


def log_loss(predicted: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return -log of the probability of every row's class, and its derivative with respect to y^_i.

    Y holds class indicators.
    """
    probability = np.sum(predicted * Y, axis=1) + LEAST
    return -np.log(probability), -Y / probability[:, None]


def prediction_loss(
    A: np.ndarray,
    X: Any,
    Y: np.ndarray,
    loss: Loss,
    n_anchors: int | None = None,
    weights: np.ndarray | None = None,
) -> Value:
    """Return L(A), the loss of leave-one-out predictions, and its gradient.

    Parameters
    ----------
    A : array of shape (m, p)
    X : array or sparse matrix of shape (n, p)
        Preferably centred.
    Y : array of shape (n, q)
        Targets, preferably centred, or class indicators.
    loss : squared_error or log_loss
    n_anchors : int, default=None
        How many rows, the first ones, are predicted; all by default.
    weights : array of shape (n,), default=None
        w > 0.

    Returns
    -------
    value : float
    gradient : array of the shape of A, float64

    Notes
    -----
    O(a n (m + q) + n p m) time for a anchors, O(n m) memory and two tiles per thread. For the log
    loss of more than 50 classes, q does not count.
    """
    Z = embed(A, X)
    n = len(Z)
    a = n if n_anchors is None else n_anchors
    with_ones, operand = factors(Z, weights)
    # of many classes, only the probability of the row's own is computed, in O(n) for each row
    codes = Y.argmax(axis=1) if loss is log_loss and Y.shape[1] > MANY_CLASSES else None
    Y = np.hstack([Y if codes is None else Y[:, :0], np.ones((n, 1))], dtype=Z.dtype)
    if weights is not None:
        weights = weights.astype(Z.dtype)[:, None]

    def add_tiles(tiles: Sequence[slice]) -> tuple[float, np.ndarray, np.ndarray]:
        value, from_rows = 0.0, np.zeros(Z.shape)  # G Z
        from_columns = np.zeros(with_ones.shape)  # G'(Z, 1)
        for rows in tiles:
            P = with_ones[rows] @ operand  # up to a factor for each row, 1 / total
            P[np.arange(len(P)), np.arange(rows.start, rows.stop)] = -np.inf
            exponentiate(P)
            if codes is None:
                sums = P @ Y
                total, targets = sums[:, -1:], Y[rows, :-1]
                predicted = sums[:, :-1] / total
            else:
                same, targets = codes[rows, None] == codes, Y[rows]
                total = P.sum(axis=1, keepdims=True)
                predicted = (P * same).sum(axis=1, keepdims=True) / total
            values, slope = loss(predicted, targets)
            if weights is not None:
                values, slope = values * weights[rows, 0], slope * weights[rows]
            value += float(np.sum(values, dtype=np.float64))
            mean = np.sum(slope * predicted, axis=1, keepdims=True)
            if codes is None:
                G = (np.hstack([slope, -mean]) / total) @ Y.T
            else:
                G = np.where(same, slope - mean, -mean) / total
            G *= P
            from_rows[rows] += G @ Z
            from_columns += G.T @ with_ones[rows]
        return value, from_rows, from_columns

    parts = parallel_map(add_tiles, shares(row_blocks(a, 1, tile_height(n))), a * n)
    value, from_rows, from_columns = (sum(part[1:], part[0]) for part in zip(*parts, strict=True))
    return value, chain_rule(
        2 * (from_columns[:, :-1] + from_rows - from_columns[:, -1:] * Z), A, X
    )
