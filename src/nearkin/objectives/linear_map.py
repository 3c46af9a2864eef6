"""From the map A to the embedding Z = X A', and from a gradient with respect to Z back to one with respect to A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._parallel import parallel_map, shares


def embed(A: np.ndarray, X: Any) -> np.ndarray:
    """Return Z = X A', shape (n, m), about its mean; A of shape (p,) is the diagonal of a diagonal map."""
    if A.ndim == 1:
        Z = X.multiply(A).toarray() if issparse(X) else X * A
    elif issparse(X):
        Z = X @ A.astype(X.dtype, copy=False).T
    else:
        A, Z = A.astype(X.dtype, copy=False), np.empty((len(X), len(A)), X.dtype)
        parallel_map(lambda rows: np.matmul(X[rows], A.T, out=Z[rows]), row_blocks(*X.shape), X.size)
    return Z - Z.mean(axis=0)


def chain_rule(G: np.ndarray, A: np.ndarray, X: Any) -> np.ndarray:
    """Return the gradient with respect to A, float64, from the gradient G with respect to Z: `G' X`."""
    G = G.astype(X.dtype, copy=False)
    if A.ndim == 1:
        return np.asarray((X.multiply(G) if issparse(X) else X * G).sum(axis=0), dtype=np.float64)
    if issparse(X):
        return (X.T @ G).T.astype(np.float64)

    def product(blocks: Sequence[slice]) -> np.ndarray:
        return sum((G[rows].T @ X[rows]).astype(np.float64) for rows in blocks)

    return sum(parallel_map(product, shares(row_blocks(*X.shape)), X.size), np.zeros((G.shape[1], X.shape[1])))
