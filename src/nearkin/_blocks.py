"""Rows by blocks, dense, and about their mean. A leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse


def densified(X: Any) -> Any:
    """Return sparse X as a dense array when more than a tenth of its entries is stored: quicker, and can be centred."""
    return X.toarray() if issparse(X) and X.nnz > 0.1 * X.shape[0] * X.shape[1] else X


def centre(X: np.ndarray) -> np.ndarray:
    """Return dense X in float64 with its column means removed, twice: far from the origin the first mean is rounded."""
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    X -= X.mean(axis=0)
    return X


def near_origin(X: np.ndarray) -> np.ndarray:
    """Return dense X about its mean, far from which distances lose their digits.

    float32 is computed with in float64, and stays as it is, without a copy, unless its mean is very far.
    """
    if X.dtype == np.float32:
        mean = X.mean(axis=0, dtype=np.float64)
        apart = X[:: -(-len(X) // 1000)] - mean
        if mean @ mean <= 1e6 * np.einsum("ij,ij->", apart, apart) / len(apart):
            return X
    return centre(X).astype(X.dtype, copy=False)


def dense_float64(X: Any) -> np.ndarray:
    """Return sparse or dense X as a dense float64 array."""
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def relative_to(origin: np.ndarray | None, X: Any) -> Any:
    """Return rows relative to the origin, dense, their type kept; as they are without one."""
    if origin is None:
        return X
    X = X.toarray() if issparse(X) else X
    return (X - origin).astype(X.dtype, copy=False)


def row_blocks(n_rows: int, entries_per_row: int, entries: int = 2**21) -> list[slice]:
    """Cut `n_rows` rows into slices of about `entries` numbers each (16 MB of float64)."""
    step = max(1, entries // max(1, entries_per_row))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def row_lengths(U: np.ndarray) -> np.ndarray:
    """Return the lengths of rows as a column; of a row of zeros, which has no direction, 1."""
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    return np.where(lengths > 0, lengths, 1).astype(U.dtype, copy=False)


def unit_rows(U: np.ndarray) -> np.ndarray:
    """Return rows scaled to unit length; a row of zeros stays."""
    return U / row_lengths(U)


def affine_unit_rows(X: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A x_i / ||x_i|| + b, scaled to unit length, of rows (n, p), in their precision; by blocks of rows."""
    Z = np.empty((len(X), len(A)), X.dtype)
    A, b = A.astype(X.dtype, copy=False), b.astype(X.dtype, copy=False)
    for rows in row_blocks(*X.shape):
        Z[rows] = unit_rows(unit_rows(X[rows]) @ A.T + b)
    return Z
