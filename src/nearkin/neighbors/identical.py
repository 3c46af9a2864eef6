"""Rows that are equal in every feature."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._validation import as_rows


def identical_rows(X: Any) -> np.ndarray:
    """Return a code for every row, (n,), shared by rows with equal features (by 128-bit hashes)."""
    X = as_rows(X)
    if issparse(X):
        X = X.copy()
        X.eliminate_zeros()
    numbers: dict[bytes, int] = {}
    groups = np.empty(X.shape[0], dtype=np.intp)
    for block in row_blocks(*X.shape):
        for i, content in enumerate(_contents(X[block]), start=block.start):
            groups[i] = numbers.setdefault(blake2b(content, digest_size=16).digest(), len(numbers))
    return groups


def _contents(X: Any) -> Iterator[bytes]:
    """Return an iterator over the bytes of each row, equal for 0 and -0."""
    if not issparse(X):
        return (row.tobytes() for row in X + X.dtype.type(0))
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)
