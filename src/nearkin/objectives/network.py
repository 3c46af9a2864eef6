"""NCA's objectives of embedded rows in torch, which computes their gradients, for networks.

This module corresponds to `stochastic.py`, with any weights w_ij >= 0 of correct neighbours, but is
for few rows, without tiles. torch is imported by the first call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

NEVER = -1e30  # in place of log 0: gradients are 0, while those of -inf are NaN
OBJECTIVES = ("expected_accuracy", "log_likelihood", "pair_likelihood")


def neighbor_terms(name: str, Z: Any, rows: Any, log_w: Any) -> Any:
    """Return the terms of some rows, with neighbours among all others, for `objective_value`.

    Parameters
    ----------
    name : {"expected_accuracy", "log_likelihood", "pair_likelihood"}
    Z : tensor of shape (n, m)
        Embedded rows.
    rows : tensor of shape (b,)
        Their indices.
    log_w : tensor of shape (b, n)
        log w_ij; a row's own weight is ignored.

    Returns
    -------
    tensor of shape (1, b) or (3, b)
        log q_i (eq. 2). For eq. 8: sum_j w_ij ||z_i - z_j||^2, sum_j w_ij and log sum_j exp(-||z_i
        - z_j||^2).

    Notes
    -----
    O(b n m) time and O(b n) memory.
    """
    import torch

    own = rows[:, None] == torch.arange(len(Z))
    Z = Z - Z.mean(0)  # distances are computed from products
    z, log_w = Z[rows], log_w.masked_fill(own, NEVER).clamp_min(NEVER)
    squares = (z * z).sum(1, keepdim=True) + (Z * Z).sum(1) - 2 * z @ Z.T
    logits = -squares.masked_fill(own, -NEVER)
    log_mass = logits.logsumexp(1)
    if name == "pair_likelihood":
        w = log_w.exp()
        return torch.stack([(w * squares).sum(1), w.sum(1), log_mass])
    return ((logits + log_w).logsumexp(1) - log_mass)[None]


def objective_value(name: str, terms: Any) -> Any:
    """Return the objective, to be maximized, from the terms of b rows.

        f = 1/b sum_i q_i      g = 1/b sum_i log q_i     sum_ij w_ij log pi_ij / sum_ij w_ij (eq. 8)

    pi is the softmax of -||z_i - z_j||^2 over all pairs of one of the b rows and another row. Rows
    without a correct neighbour count 0 in f and g.
    """
    if name == "expected_accuracy":
        return terms[0].exp().mean()
    if name == "log_likelihood":
        return terms[0].masked_fill(terms[0] < NEVER / 2, 0.0).mean()
    disagreement, weight, log_mass = terms
    return -disagreement.sum() / weight.sum().clamp_min(1e-30) - log_mass.logsumexp(0)


class SparsePairWeights:
    """w_ij for given pairs of n rows, in either order; 0 for all others.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
    weights : ndarray of shape (n_pairs,)
    n : int
    """

    def __init__(self, pairs: np.ndarray, weights: np.ndarray, n: int) -> None:
        W = csr_array((weights, tuple(pairs.T)), shape=(n, n))
        self._W = csr_array(W + W.T)

    def log_weights(self, i: np.ndarray, j: np.ndarray, dtype: Any) -> np.ndarray:
        """Return log w_ij for rows i, shape (b, 1), and j, shape (1, n)."""
        with np.errstate(divide="ignore"):
            return np.log(self._W[i.ravel()][:, j.ravel()].toarray()).astype(dtype)
