"""t-distributed NCA (Min, van der Maaten, Yuan, Bonner and Zhang, ICML 2010) as a function of Z.

It is NCA's log-likelihood with the weights of a Student-t distribution:

    log q_i = log sum_j w_ij k_ij - log sum_(j != i) k_ij        k_ij = 1 / (1 + ||z_i - z_j||^2)

A plane has little room at moderate distances and much far away. With Gaussian weights, the loss of
a row far from its class is the squared distance, so such rows pull classes together; here it is
twice the logarithm of the distance.

With d_ij the squared distance, the derivative of k_ij is -k_ij^2. The first term thus has the
derivatives `G_ij = -w_ij k_ij^2 / sum_l w_il k_il` with respect to d_ij, and the second the same
with w_ij = 1. The gradient is `2 sum_j G_ij (z_i - z_j)` with respect to z_i, and minus these terms
with respect to z_j.

Each of the two terms is a sum over anchors Z, with gradients with respect to these and to the
others Y, which may be the same rows. `PlacedNeighbors` is the loss of `TDistributedNCA`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Never

import numpy as np
from scipy.sparse import csr_array

from .._blocks import row_blocks
from .._threads import parallel_map, shares
from .loss import FLOAT64_ROWS, Loss, Value
from .stochastic import tile_height

ANCHORS = 512  # of a step of stochastic gradient

Gradients = tuple[float, np.ndarray, np.ndarray]  # value, gradients of anchors and others


def log_similarity(Z: np.ndarray, Y: np.ndarray, W: csr_array) -> Gradients:
    """Return `sum_i log sum_j w_ij k_ij` over the rows z_i of Z and y_j of Y, and its gradients.

    Parameters
    ----------
    Z, Y : ndarray of shape (b, m) and (n, m)
    W : csr_array of shape (b, n)
        The target neighbours and their weights; a row without any is left out.

    Notes
    -----
    O(nnz m) time and memory for nnz weights.
    """
    i, j = np.repeat(np.arange(len(Z)), np.diff(W.indptr)), W.indices
    k = 1 / (1 + np.sum((Z[i] - Y[j]) ** 2, axis=1, dtype=np.float64))
    similarity = np.bincount(i, W.data * k, minlength=len(Z))
    possible = similarity > 0
    G = csr_array((-W.data * k**2 / similarity[i], j, W.indptr), shape=W.shape)
    from_anchors = 2 * (G.sum(axis=1)[:, None] * Z - G @ Y)
    from_others = 2 * (G.sum(axis=0)[:, None] * Y - G.T @ Z)
    return float(np.log(similarity[possible]).sum()), from_anchors, from_others


def log_mass(Z: np.ndarray, Y: np.ndarray, own: np.ndarray | None = None) -> Gradients:
    """Return `sum_i log sum_j k_ij` over the rows z_i of Z and y_j of Y, and its gradients.

    Parameters
    ----------
    Z, Y : ndarray of shape (b, m) and (n, m)
        Preferably centred, since distances are computed from products.
    own : ndarray of shape (b,), default=None
        The index in Y of every row of Z, which is not its own neighbour. None if Y holds other
        rows.

    Notes
    -----
    O(b n m) time, O((b + n) m) memory and a tile per thread.
    """
    with_ones, others = (np.hstack([X, np.ones_like(X[:, :1])]) for X in (Z, Y))
    squares = np.sum(Z * Z, axis=1, keepdims=True) + 1
    operand = np.hstack([-2 * Y, np.sum(Y * Y, axis=1, keepdims=True)]).T
    from_anchors = np.empty(Z.shape)

    def add_tiles(tiles: Sequence[slice]) -> tuple[float, np.ndarray]:
        value, from_others = 0.0, np.zeros(others.shape)
        for rows in tiles:
            K = squares[rows] + with_ones[rows] @ operand
            np.maximum(K, 1, out=K)
            np.reciprocal(K, out=K)
            if own is not None:
                K[np.arange(len(K)), own[rows]] = 0
            mass = K.sum(axis=1, keepdims=True)
            value += float(np.log(mass).sum(dtype=np.float64))
            K *= K
            K /= mass  # -G
            KY = K @ others
            from_anchors[rows] = KY[:, :-1] - KY[:, -1:] * Z[rows]
            from_others += K.T @ with_ones[rows]
        return value, from_others

    tiles = row_blocks(len(Z), 1, tile_height(len(Y)))
    parts = parallel_map(add_tiles, shares(tiles), len(Z) * len(Y))
    pulled = sum((part[1] for part in parts), np.zeros(others.shape))
    from_others = pulled[:, :-1] - pulled[:, -1:] * Y
    return sum(part[0] for part in parts), 2 * from_anchors, 2 * from_others


@dataclass(frozen=True, eq=False)
class PlacedNeighbors(Loss[Never, np.ndarray]):
    """The loss of positions U of landmarks, each placed at the mean of its neighbours, Z = S U.

        -1/n sum_i log q_i + alpha/n sum_i ||u_i - z_i||^2

    Attributes
    ----------
    S : csr_array of shape (n, n)
        The weights with which landmarks are placed.
    W : csr_array of shape (n, n)
        The target neighbours and their weights; a row without any is left out of the first sum.
    alpha : float
    """

    S: csr_array
    W: csr_array
    alpha: float

    def value(self, U: np.ndarray, part: None = None) -> Value:
        """Return the loss of positions and its gradient."""
        Z = self.S @ U
        rows = about_mean(Z)
        similarity, *pulls = log_similarity(rows, rows, self.W)
        anchors = np.flatnonzero(np.diff(self.W.indptr))
        mass, push, slope = log_mass(rows[anchors], rows, anchors)
        slope[anchors] += push
        slope = (slope - sum(pulls)) / len(Z)
        cost, from_cost = self._penalty(self.S, np.arange(len(U)), U, Z)
        return (mass - similarity) / len(Z) + cost, self.S.T @ slope + from_cost

    def estimate(self, U: np.ndarray, batch: np.ndarray) -> Value:
        """Return estimates of the loss and its gradient from drawn landmarks.

        The first 512 are anchors, if they have a target neighbour; all their target neighbours
        attract them, and the other landmarks, which represent all, repel them.
        """
        S, W = self.S, self.W
        anchors, others = batch[:ANCHORS], batch[ANCHORS:]
        anchors = anchors[(np.diff(W.indptr) > 0)[anchors]]
        near, places = np.unique(W[anchors].indices, return_inverse=True)
        rows = np.concatenate([anchors, near, others])
        S = S[rows]
        Z = S @ U
        ends = np.cumsum([len(anchors), len(near)])
        z, z_near, z_others = np.split(about_mean(Z), ends)
        shape = len(anchors), len(near)
        right = csr_array((W[anchors].data, places, W[anchors].indptr), shape=shape)
        similarity, pull, pull_near = log_similarity(z, z_near, right)
        mass, push, push_others = log_mass(z, z_others)
        slope = np.concatenate([push - pull, -pull_near, push_others]) / ANCHORS
        cost, from_cost = self._penalty(S, rows, U, Z)
        return (mass - similarity) / ANCHORS + cost, S.T @ slope + from_cost

    def log_likelihood(self, U: np.ndarray, value: float) -> float:
        """Return 1/n sum_i log q_i from the value of the loss."""
        return self._penalty(self.S, np.arange(len(U)), U, self.S @ U)[0] - value

    def _penalty(self, S: csr_array, rows: np.ndarray, U: np.ndarray, Z: np.ndarray) -> Value:
        """Return `alpha mean ||u_i - z_i||^2` over some landmarks, and its gradient.

        Landmarks may be listed twice. S holds the weights with which they are placed.
        """
        apart = U[rows] - Z
        slope = 2 * self.alpha / len(rows) * apart
        gradient = -(S.T @ slope)
        np.add.at(gradient, rows, slope)
        return self.alpha * float(np.sum(apart**2)) / len(rows), gradient


def about_mean(Z: np.ndarray) -> np.ndarray:
    """Return the centred rows, in float32 if there are many."""
    return (Z - Z.mean(axis=0)).astype(np.float64 if len(Z) <= FLOAT64_ROWS else np.float32)
