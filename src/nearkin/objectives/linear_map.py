"""The map A: the embedding Z = X A', the chain rule from Z to A, and a group penalty on columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._threads import parallel_map, parallel_sum
from .stochastic import Value


def embed(A: np.ndarray, X: Any) -> np.ndarray:
    """Return Z = X A', shape (n, m), centred; A of shape (p,) is a diagonal map."""
    if A.ndim == 1:
        Z = X.multiply(A).toarray() if issparse(X) else X * A
    elif issparse(X):
        Z = X @ A.astype(X.dtype, copy=False).T
    else:
        A = A.astype(X.dtype, copy=False)
        Z = np.vstack(parallel_map(lambda rows: X[rows] @ A.T, row_blocks(*X.shape), X.size))
    return Z - Z.mean(axis=0)


def chain_rule(G: np.ndarray, A: np.ndarray, X: Any) -> np.ndarray:
    """Return the gradient `G' X` with respect to A, in float64, from that with respect to Z."""
    G = G.astype(X.dtype, copy=False)
    if A.ndim == 1:
        return np.asarray((X.multiply(G) if issparse(X) else X * G).sum(axis=0), dtype=np.float64)
    if issparse(X):
        return (X.T @ G).T.astype(np.float64)

    def product(rows: slice) -> np.ndarray:
        return (G[rows].T @ X[rows]).astype(np.float64)

    blocks = row_blocks(*X.shape) or [slice(0, 0)]  # for no rows the gradient is 0
    return parallel_sum(product, blocks, X.size)


# A penalty on groups of the columns of a map, such as the features of one column of a table.

POWER = 1.5
SMALLEST = 1e-9  # added to every norm, which keeps the penalty smooth everywhere


def group_penalty(A: np.ndarray, groups: np.ndarray, power: float = POWER) -> Value:
    """Return the squared norm of a map with G groups of features, and its gradient.

        G^(1 - 2/p) (sum_g ||A_g||^p)^(2/p)

    For p = 2, or if all groups have equal norms, it is ||A||^2. For p < 2 it is larger if norms
    differ: it favours few groups, like the group lasso (p = 1), but does not set any to zero.

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
