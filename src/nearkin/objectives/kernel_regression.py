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
from dataclasses import dataclass
from typing import Never

import numpy as np

from .._blocks import row_blocks
from .._threads import parallel_map, shares
from .loss import Loss, Matrix, Value, chain_rule, embed
from .stochastic import exponentiate, factors, tile_height

# from the predictions and the targets, the loss of every row and its derivative
RowLoss = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

# added to every probability, which limits a row's loss to about 16, so that hopeless rows do not
# attract the map
LEAST = 1e-7
# For sums over pairs: a row is isolated if its kernels sum to less. Each is at least exp(-60), see
# `exponentiate`, which is negligible beside this sum, even for a class whose share of it is 1e-7.
FAINT, LEAST_LOGIT = 1e-10, -60.0
PAIRED_ROWS = 4096  # up to so many rows, the kernels of all pairs are kept: n^2 / 2 numbers
PAIRED_AT_ONCE = 128  # rows of a tile of pairs, whose columns are these rows and all later ones
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
    X: Matrix,
    Y: np.ndarray,
    loss: RowLoss,
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
    O(a n (m + q) + n p m) time for a anchors, O(n m) memory and two tiles per thread. If all of up
    to 4,096 rows are predicted, every pair is computed once, in half of the time, with memory
    for n^2 / 2 numbers. For the log loss of more than 50 classes, q does not count.
    """
    Z = embed(A, X)
    weights = np.ones((len(Z), 1)) if weights is None else weights[:, None]
    weights = weights.astype(Z.dtype)
    many = loss is log_loss and Y.shape[1] > MANY_CLASSES
    if n_anchors is None and len(Z) <= PAIRED_ROWS and not many:
        value, gradient = among_pairs(Z, Y, loss, weights)
    else:
        anchors = np.arange(len(Z) if n_anchors is None else n_anchors)
        value, gradient = of_anchors(Z, Y, loss, weights, anchors)
    return value, chain_rule(gradient, A, X)


def among_pairs(Z: np.ndarray, Y: np.ndarray, loss: RowLoss, weights: np.ndarray) -> Value:
    """Return L and its gradient with respect to Z, from one kernel for both rows of a pair.

    With K_ij = exp(-||z_i - z_j||^2) and t_i = sum_j w_j K_ij,

        G_ij + G_ji = K_ij (a_i'v_j + v_i'a_j),    v_i = w_i (y_i, 1),
        a_i = w_i (l'_i, -l'_i'y^_i) / t_i.

    K has no factor for each row, so rows whose t underflows are left to `of_anchors`.
    """
    n, dtype = len(Z), Z.dtype
    ones, squares = np.ones((n, 1), dtype), np.sum(Z * Z, axis=1, keepdims=True)
    left, right = np.hstack([Z, ones, -squares]), np.hstack([2 * Z, -squares, ones]).T
    with_ones, V = np.hstack([Z, ones]), (weights * np.hstack([Y, ones])).astype(dtype)
    least = np.full(n, LEAST_LOGIT, dtype)
    # K for some rows, and for the columns from the first of them on; one array, because many would
    # be returned to the system after each call
    blocks = row_blocks(n, 1, PAIRED_AT_ONCE)
    sizes = [(rows.stop - rows.start) * (n - rows.start) for rows in blocks]
    parts = np.split(np.empty(sum(sizes), dtype), np.cumsum(sizes)[:-1])
    tiles = [(rows, K.reshape(-1, n - rows.start)) for rows, K in zip(blocks, parts, strict=True)]

    def add_products(total: np.ndarray, K: np.ndarray, rows: slice, factor: np.ndarray) -> None:
        """Add the products of K and the columns of a factor, those of K' for later rows."""
        total[rows] += K @ factor[rows.start :]
        total[rows.stop :] += K[:, len(K) :].T @ factor[rows]

    def add_votes(tiles: Sequence[tuple[slice, np.ndarray]]) -> np.ndarray:
        votes = np.zeros(V.shape)
        for rows, K in tiles:
            np.matmul(left[rows], right[:, rows.start :], out=K)
            np.maximum(K, least[rows.start :], out=K)
            np.exp(K, out=K)
            np.fill_diagonal(K, 0)
            add_products(votes, K, rows, V)
        return votes

    votes = sum(parallel_map(add_votes, shares(tiles), n * n), np.zeros(V.shape))
    total = votes[:, -1:]
    isolated = total[:, 0] < FAINT
    total[isolated] = 1
    predicted = votes[:, :-1] / total
    values, slope = loss(predicted, Y)
    mean = np.sum(slope * predicted, axis=1, keepdims=True)
    a = (weights * np.hstack([slope, -mean]) / total).astype(dtype)
    values[isolated], a[isolated] = 0, 0
    value = float(values @ weights[:, 0].astype(np.float64))
    U, W = np.hstack([a, V]), np.hstack([V, a]).T

    def add_gradient(tiles: Sequence[tuple[slice, np.ndarray]]) -> np.ndarray:
        products = np.zeros(with_ones.shape)  # (G + G')(Z, 1)
        for rows, K in tiles:
            K *= U[rows] @ W[:, rows.start :]
            add_products(products, K, rows, with_ones)
        return products

    products = sum(parallel_map(add_gradient, shares(tiles), n * n), np.zeros(with_ones.shape))
    gradient = 2 * (products[:, :-1] - products[:, -1:] * Z)
    if isolated.any():
        more, slope = of_anchors(Z, Y, loss, weights, np.flatnonzero(isolated))
        return value + more, gradient + slope
    return value, gradient


def of_anchors(
    Z: np.ndarray, Y: np.ndarray, loss: RowLoss, weights: np.ndarray, anchors: np.ndarray
) -> Value:
    """Return the loss of some rows, predicted by all others, and its gradient with respect to Z."""
    n = len(Z)
    with_ones, operand = factors(Z, None if (weights == 1).all() else weights[:, 0])
    # of many classes, only the probability of the row's own is computed, in O(n) for each row
    codes = Y.argmax(axis=1) if loss is log_loss and Y.shape[1] > MANY_CLASSES else None
    Y = np.hstack([Y if codes is None else Y[:, :0], np.ones((n, 1))], dtype=Z.dtype)

    def add_tiles(tiles: Sequence[slice]) -> tuple[float, np.ndarray, np.ndarray]:
        value, from_rows = 0.0, np.zeros(Z.shape)  # G Z
        from_columns = np.zeros(with_ones.shape)  # G'(Z, 1)
        P_tile, G_tile = np.empty((2, max(tile.stop - tile.start for tile in tiles), n), Z.dtype)
        for tile in tiles:
            rows = anchors[tile]
            z = with_ones[rows]
            # up to a factor for each row, 1 / total
            P = np.matmul(z, operand, out=P_tile[: len(z)])
            P[np.arange(len(P)), rows] = -np.inf
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
            slope = slope * weights[rows]
            value += float(np.sum(values * weights[rows, 0], dtype=np.float64))
            mean = np.sum(slope * predicted, axis=1, keepdims=True)
            if codes is None:
                of_pairs = np.hstack([slope, -mean]) / total
                G = np.matmul(of_pairs, Y.T, out=G_tile[: len(z)])
            else:
                G = np.where(same, slope - mean, -mean) / total
            G *= P
            from_rows[rows] += G @ Z
            from_columns += G.T @ z
        return value, from_rows, from_columns

    tiles = shares(row_blocks(len(anchors), 1, tile_height(n)))
    parts = parallel_map(add_tiles, tiles, len(anchors) * n)
    value, from_rows, from_columns = (sum(part[1:], part[0]) for part in zip(*parts, strict=True))
    return value, 2 * (from_columns[:, :-1] + from_rows - from_columns[:, -1:] * Z)


@dataclass(frozen=True, eq=False)
class KernelRegression(Loss[Never, np.ndarray]):
    """The mean loss of leave-one-out predictions: `prediction_loss` / n.

    Attributes
    ----------
    X, Y, loss, weights
        See `prediction_loss`.
    n_anchors : int, default=None
        How many rows of a minibatch, the first ones, are predicted; all by default.
    """

    X: Matrix
    Y: np.ndarray
    loss: RowLoss
    weights: np.ndarray | None = None
    n_anchors: int | None = None

    def value(self, B: np.ndarray, part: None = None) -> Value:
        """Return the loss and its gradient."""
        value, gradient = prediction_loss(B, self.X, self.Y, self.loss, weights=self.weights)
        return value / len(self.Y), gradient / len(self.Y)

    def estimate(self, B: np.ndarray, batch: np.ndarray) -> Value:
        """Return estimates of the loss and its gradient from the rows with given indices."""
        weights = None if self.weights is None else self.weights[batch]
        n = min(self.n_anchors or len(batch), len(batch))
        value, gradient = prediction_loss(B, self.X[batch], self.Y[batch], self.loss, n, weights)
        return value / n, gradient / n
