"""Neighbourhood Components Analysis (Goldberger et al., NIPS 2004) as functions of A and X.

Each function returns its value and the gradient with respect to A: (m, p), or (p,) for the diagonal
of a diagonal map. The gradient with respect to the embedding `Z = X A'` costs O(n^2 m). The chain
rule takes one more product, `G'X`, whereas the outer products of eqs. 5 and 7 would cost O(n^2
p^2).

    f(A) = sum_i q_i  (eq. 3)      g(A) = sum_i log q_i  (eq. 6)      q_i = sum_j w_ij p_ij

f and g are to be maximized, `pair_cost` (eq. 8) is to be minimized. Rows may have weights: see
`stochastic.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._blocks import row_blocks
from .._threads import parallel_map
from .linear_map import chain_rule, embed
from .stochastic import (
    TERMS,
    Candidates,
    PairWeights,
    Value,
    among_all,
    among_candidates,
    exponentiate,
    factors,
    mass_among_candidates,
    tile_height,
)


def expected_accuracy(
    A: np.ndarray, X: Any, pair_weights: PairWeights, candidates: Candidates | None = None
) -> Value:
    """Return f(A), the expected number of correctly classified rows, and its gradient (eq. 3, 5).

    Parameters
    ----------
    A : array of shape (m, p), or (p,) for a diagonal map
    X : array or sparse matrix of shape (n, p)
        Preferably centred.
    pair_weights : SameClass or TargetKernel
        Which neighbours are correct, and the weights of the rows.
    candidates : Candidates, default=None
        The rows among which each row draws its neighbour; by default all others.

    Returns
    -------
    value : float
    gradient : array of the shape of A, float64

    Notes
    -----
    O(n^2 m + n p m) time, or O(n k m + n p m) with candidates, and O(n (m + k)) memory besides some
    tiles.
    """
    return nca_objective("expected_accuracy", A, X, pair_weights, candidates)


def log_likelihood(
    A: np.ndarray, X: Any, pair_weights: PairWeights, candidates: Candidates | None = None
) -> Value:
    """Return g(A), the log-probability that all rows are right, and its gradient (eq. 6, 7).

    Rows are right if they are classified correctly; a row alone in its class is left out. See also
    `expected_accuracy`.
    """
    return nca_objective("log_likelihood", A, X, pair_weights, candidates)


def nca_objective(
    name: str,
    A: np.ndarray,
    X: Any,
    pair_weights: PairWeights,
    candidates: Candidates | None = None,
) -> Value:
    """Return `expected_accuracy` or `log_likelihood`, by name."""
    Z = embed(A, X)
    if candidates is None:
        value, G = among_all(Z, pair_weights, TERMS[name])
    else:
        value, G = among_candidates(Z, candidates, pair_weights, TERMS[name])
    return value, chain_rule(G, A, X)


def pair_cost(
    A: np.ndarray,
    X: Any,
    pairs: np.ndarray,
    weights: np.ndarray,
    candidates: Candidates | None = None,
    row_weights: np.ndarray | None = None,
) -> Value:
    """Return the cost of eq. 8, which keeps similar pairs close among all pairs, and its gradient.

        -sum_(a,b) w_ab log( exp(-||z_a - z_b||^2) / sum_{c != d} v_c v_d exp(-||z_c - z_d||^2) )

    Parameters
    ----------
    A, X, candidates
        See `expected_accuracy`.
    pairs : ndarray of shape (n_pairs, 2)
        Rows a and b.
    weights : ndarray of shape (n_pairs,)
    row_weights : ndarray of shape (n,), default=None
        v > 0, the weights of the rows in the denominator; None for 1 each.

    Notes
    -----
    O(n^2 m + n p m) time, O(n m) memory and a tile per thread; with candidates, see
    `expected_accuracy`.
    """
    Z = embed(A, X)
    if candidates is None:
        log_mass, G = _log_mass_of_all(Z, row_weights)
    else:
        mass, G = mass_among_candidates(Z, candidates, row_weights)
        log_mass, G = np.log(mass), G / mass
    a, b = pairs.T
    difference = (Z[a] - Z[b]).astype(np.float64)
    G *= weights.sum()
    np.add.at(G, a, 2 * weights[:, None] * difference)
    np.add.at(G, b, -2 * weights[:, None] * difference)
    value = float(weights @ np.sum(difference**2, axis=1) + weights.sum() * log_mass)
    return value, chain_rule(G, A, X)


def _log_mass_of_all(Z: np.ndarray, row_weights: np.ndarray | None) -> Value:
    """Return `log sum_{c != d} v_c v_d exp(-||z_c - z_d||^2)` and its gradient.

    The gradient is `-4 sum_d pi_cd (z_c - z_d)`, where pi_cd is the softmax over all ordered pairs,
    which is symmetric.
    """
    with_ones, operand = factors(Z, row_weights)
    log_mass, mean = np.empty((len(Z), 1)), np.empty(Z.shape)  # over all pairs (c, d) of a row c

    def sum_over_pairs(rows: slice) -> None:
        logits = with_ones[rows] @ operand
        logits[np.arange(len(logits)), np.arange(rows.start, rows.stop)] = -np.inf
        top = exponentiate(logits)
        EZ = logits @ with_ones
        log_mass[rows] = np.log(EZ[:, -1:]) + top - np.sum(Z[rows] ** 2, axis=1, keepdims=True)
        mean[rows] = (EZ / EZ[:, -1:])[:, :-1]

    parallel_map(sum_over_pairs, row_blocks(len(Z), 1, tile_height(len(Z))), len(Z) ** 2)
    if row_weights is not None:
        log_mass += np.log(row_weights)[:, None]
    top = log_mass.max()
    mass = np.exp(log_mass - top)
    return float(top + np.log(mass.sum())), -4 * mass / mass.sum() * (Z - mean)
