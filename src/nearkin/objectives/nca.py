"""Neighbourhood Components Analysis (Goldberger et al., NIPS 2004) as functions of the map A and the rows X.

Each returns its value and the gradient with respect to A: (m, p), or (p,) for the diagonal of a diagonal map. The
gradient with respect to the embedding `Z = X A'` comes from `stochastic.py`; the chain rule then costs one product
more, `G'X`: O(n^2 m + n p m) in all, where the outer products of eqs. 5 and 7 would cost O(n^2 p^2).

    f(A) = sum_i q_i  (eq. 3)      g(A) = sum_i log q_i  (eq. 6)      q_i = sum_j w_ij p_ij

To be maximized; `pair_cost` (eq. 8) is to be minimized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import namespace, row_blocks
from .._parallel import Value, in_threads
from . import stochastic
from .pair_weights import PairWeights
from .stochastic import Candidates, Terms, among_all, among_candidates


def expected_accuracy(A: Any, X: Any, matches: PairWeights, candidates: Candidates | None = None) -> Value:
    """Return f(A), the expected number of rows that a stochastic neighbour labels right, and its gradient (eq. 3, 5).

    Parameters
    ----------
    A : array of shape (m, p), or (p,) for a diagonal map
    X : array or sparse matrix of shape (n, p)
        NumPy, SciPy or torch; A of the same library, and both best about the mean of X.
    matches : Classes or SoftMatches
        Which neighbours are right.
    candidates : Candidates, default=None
        The rows among which each row chooses its neighbour, all the others by default.

    Returns
    -------
    value : float
    gradient : array of the shape of A, float64

    Notes
    -----
    O(n^2 m + n p m) time, or O(n k m + n p m) with candidates, and O(n (m + k)) memory beside some tiles.
    """
    return _objective(A, X, matches, candidates, stochastic.expected_matches)


def log_likelihood(A: Any, X: Any, matches: PairWeights, candidates: Candidates | None = None) -> Value:
    """Return g(A), the log-probability that all rows are labelled right, and its gradient (eq. 6, 7).

    A row without any match, alone in its class, is left out. Otherwise as `expected_accuracy`.
    """
    return _objective(A, X, matches, candidates, stochastic.log_matches)


def pair_cost(A: Any, X: Any, pairs: np.ndarray, weights: np.ndarray) -> Value:
    """Return the cost of eq. 8 and its gradient.

    Parameters
    ----------
    A, X
        As for `expected_accuracy`.
    pairs : ndarray of shape (n_pairs, 2)
        Numbers of rows that are similar.
    weights : ndarray of shape (n_pairs,)
        How much each pair counts.
    """
    return through(A, X, lambda Z: stochastic.pair_cost(Z, pairs, weights))


def embed(A: Any, X: Any) -> Any:
    """Return Z = X A', shape (n, m), about its mean."""
    if A.ndim == 1:
        Z = X.multiply(A).toarray() if issparse(X) else X * A
    elif issparse(X) or namespace(X) is not np:
        Z = X @ A.T
    else:
        Z = _embed_blocks(np.asarray(A, dtype=X.dtype), X)
    return Z - namespace(Z).mean(Z, axis=0)


def _embed_blocks(A: np.ndarray, X: np.ndarray) -> np.ndarray:
    Z = np.empty((len(X), len(A)), X.dtype)

    def part(blocks: Sequence[slice]) -> Value:
        for rows in blocks:
            np.matmul(X[rows], A.T, out=Z[rows])
        return 0.0, 0.0

    in_threads(part, row_blocks(len(X), X.shape[1]), X.size)
    return Z


def through(A: Any, X: Any, of_embedding: Callable[[Any], Value]) -> Value:
    """Return the value of a function of the embedding, and its gradient with respect to A."""
    value, gradient = of_embedding(embed(A, X))
    gradient = namespace(gradient).asarray(gradient, dtype=X.dtype)
    if A.ndim == 1:
        product = X.multiply(gradient).sum(axis=0) if issparse(X) else namespace(X).sum(X * gradient, axis=0)
    elif issparse(X) or namespace(X) is not np:
        product = (X.T @ gradient).T
    else:
        product = _sum_of_products(gradient, X)
    return value, namespace(product).asarray(product, dtype=namespace(product).float64)


def _sum_of_products(G: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return G'X, added over blocks of rows in float64."""

    def part(blocks: Sequence[slice]) -> Value:
        return 0.0, sum((G[rows].T @ X[rows]).astype(np.float64) for rows in blocks)

    return in_threads(part, row_blocks(len(X), X.shape[1]), X.size)[1]


def _objective(A: Any, X: Any, matches: PairWeights, candidates: Candidates | None, terms: Terms) -> Value:
    if candidates is None:
        return through(A, X, lambda Z: among_all(Z, matches, terms))
    return through(A, X, lambda Z: among_candidates(Z, candidates, matches, terms))
