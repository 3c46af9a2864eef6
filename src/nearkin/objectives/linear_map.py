"""The map A: the embedding Z = X A', a gradient with respect to Z as one with respect to A, and a
penalty on groups of the columns of A.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import parallel_map, parallel_sum, row_blocks
from .stochastic import Value


def embed(A: np.ndarray, X: Any) -> np.ndarray:
    """Return Z = X A', shape (n, m), about its mean; A of shape (p,) is the diagonal of a diagonal
    map.
    """
    if A.ndim == 1:
        Z = X.multiply(A).toarray() if issparse(X) else X * A
    elif issparse(X):
        Z = X @ A.astype(X.dtype, copy=False).T
    else:
        A = A.astype(X.dtype, copy=False)
        Z = np.vstack(parallel_map(lambda rows: X[rows] @ A.T, row_blocks(*X.shape), X.size))
    return Z - Z.mean(axis=0)


def chain_rule(G: np.ndarray, A: np.ndarray, X: Any) -> np.ndarray:
    """Return the gradient with respect to A, float64, from that with respect to Z: `G' X`."""
    G = G.astype(X.dtype, copy=False)
    if A.ndim == 1:
        return np.asarray((X.multiply(G) if issparse(X) else X * G).sum(axis=0), dtype=np.float64)
    if issparse(X):
        return (X.T @ G).T.astype(np.float64)

    def product(rows: slice) -> np.ndarray:
        return (G[rows].T @ X[rows]).astype(np.float64)

    blocks = row_blocks(*X.shape) or [slice(0, 0)]  # of no rows the gradient is 0
    return parallel_sum(product, blocks, X.size)


# A penalty on groups of the columns of a map, such as the features that one column of a table has
# become.

POWER = 1.5
SMALLEST = 1e-9  # of a norm: the penalty is smooth everywhere


def group_penalty(A: np.ndarray, groups: np.ndarray, power: float = POWER) -> Value:
    """Return the squared norm of a map with groups of features, G in all, and its gradient.

        G^(1 - 2/p) (sum_g ||A_g||^p)^(2/p)

    For p = 2 it is ||A||^2; for any p where all groups have one norm. Below 2 it is larger than
    ||A||^2 where some groups hold much and others little: it prefers few groups, as the group lasso
    (p = 1) does, but sets none to zero.

    Parameters
    ----------
    A : array of shape (m, r)
    groups : ndarray of int of shape (r,)
        The group of each column of A: 0, 1, ..., G - 1.
    power : float, default=1.5
        p, from 1 to 2.

    Returns
    -------
    value : float
    gradient : array of the shape of A
    """
    squares = np.bincount(groups, np.sum(A * A, axis=0, dtype=np.float64))
    norms = np.sqrt(squares) + SMALLEST
    total, factor = float(np.sum(norms**power)), len(norms) ** (1 - 2 / power)
    slope = 2 * factor * total ** (2 / power - 1) * norms ** (power - 2)
    return factor * total ** (2 / power), slope[groups].astype(A.dtype) * A
