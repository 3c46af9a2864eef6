"""Rows: blocks of them, densified, filled, centred, of unit length; their squared distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.utils.extmath import row_norms


def row_blocks(n_rows: int, entries_per_row: int, entries: int = 2**21) -> list[slice]:
    """Split `n_rows` rows into slices of about `entries` entries each."""
    step = max(1, entries // max(1, entries_per_row))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def densified(X: Any) -> Any:
    """Return sparse X as a dense array if more than a tenth of its entries are stored.

    Computing on it is then faster, and dense rows can be centred.
    """
    return X.toarray() if issparse(X) and X.nnz > 0.1 * X.shape[0] * X.shape[1] else X


def missing_cells(X: Any) -> np.ndarray:
    """Return the number of missing cells (NaN) of each feature; sparse rows have none."""
    return np.zeros(X.shape[1], dtype=int) if issparse(X) else np.isnan(X).sum(axis=0)


def filled(X: Any) -> Any:
    """Return X filled with its medians, followed by indicators; X itself if no cell is missing."""
    gaps = np.flatnonzero(missing_cells(X))
    if len(gaps) == 0:
        return X
    # only the columns with gaps: the medians of all would take long
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    out = np.hstack([X, np.isnan(X[:, gaps])], dtype=X.dtype)
    out[:, gaps] = medians.fit_transform(X[:, gaps])
    return out


def centre(X: np.ndarray) -> np.ndarray:
    """Return dense X in float64 with its column means removed, twice.

    Far from the origin, the first mean is inexact.
    """
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    X -= X.mean(axis=0)
    return X


def near_origin(X: np.ndarray) -> np.ndarray:
    """Return dense X, centred so that distances do not lose precision far from the origin.

    float32 rows, on which later steps compute in float64, are returned without a copy unless their
    mean is very far from the origin.
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
    """Return rows relative to the origin, dense, with their dtype; without an origin, X itself."""
    if origin is None:
        return X
    X = X.toarray() if issparse(X) else X
    return (X - origin).astype(X.dtype, copy=False)


def squared_distances(X: Any, origin: np.ndarray | None = None) -> np.ndarray:
    """Return the squared distances of sparse or dense rows from the origin, or from another point.

    They are float64: of float32 rows far from 0, many would be equal by rounding.
    """
    if issparse(X):
        X = X.astype(np.float64)
        squares = row_norms(X, squared=True)
        return squares if origin is None else squares - 2 * (X @ origin) + origin @ origin
    origin = np.zeros(X.shape[1]) if origin is None else origin
    apart = (X[rows] - origin for rows in row_blocks(len(X), X.shape[1], 2**18))
    return np.concatenate([np.einsum("ij,ij->i", A, A) for A in apart])


def row_lengths(U: Any, xp: Any = np) -> Any:
    """Return the lengths of rows as a column; 1 for a row of zeros, which has no direction.

    U is an array of the namespace xp.
    """
    lengths = xp.linalg.vector_norm(U, axis=1, keepdims=True)
    return xp.where(lengths > 0, lengths, xp.ones_like(lengths))


def unit_rows(U: Any, xp: Any = np) -> Any:
    """Return rows scaled to unit length; rows of zeros stay zero."""
    return U / row_lengths(U, xp)


def affine_unit_rows(X: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A x_i / ||x_i|| + b, scaled to unit length, for rows (n, p), in blocks.

    The precision is that of the rows.
    """
    Z = np.empty((len(X), len(A)), X.dtype)
    A, b = A.astype(X.dtype, copy=False), b.astype(X.dtype, copy=False)
    for rows in row_blocks(*X.shape):
        Z[rows] = unit_rows(unit_rows(X[rows]) @ A.T + b)
    return Z
