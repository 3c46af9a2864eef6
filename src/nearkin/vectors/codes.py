"""Embeddings as codes of one byte or one bit per dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from .._threads import blas_in_one_thread
from ..linalg import svd

LARGEST = 127  # absolute value of a code in int8
# Quantile of the absolute coordinates that becomes the largest code; larger ones are clipped.
KEPT = 0.999
ITQ_ROWS = 5_000
ITQ_ITERATIONS = 30


@dataclass(frozen=True)
class Int8Quantizer:
    """Coordinates rounded to -127, ..., 127 times a single scale.

    Inner products of codes approximate those of rows. NumPy's products of int8 overflow: cast codes
    to int32 or float32 first.

    Attributes
    ----------
    scale : float
        The absolute coordinate that becomes 127: the .999 quantile over the rows of the fit. Larger
        ones are clipped.
    """

    scale: float

    @classmethod
    def fitted(cls, Z: np.ndarray) -> Self:
        """Return the quantizer of rows (n, m)."""
        return cls(float(np.quantile(np.abs(Z), KEPT)) or 1.0)

    @staticmethod
    def n_bytes(m: int) -> int:
        """Return the number of bytes of the codes of m coordinates, one each."""
        return m

    def encode(self, Z: np.ndarray) -> np.ndarray:
        """Return codes, int8 of shape (n, m)."""
        return np.clip(np.rint(Z * (LARGEST / self.scale)), -LARGEST, LARGEST).astype(np.int8)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the rows that codes represent, float32 of shape (n, m)."""
        return codes.astype(np.float32) * np.float32(self.scale / LARGEST)


@dataclass(frozen=True)
class BinaryQuantizer:
    """Signs of the coordinates, eight per byte.

    The map is first rotated so that signs preserve as much as possible (`itq_rotation`). The
    Hamming distance of two codes orders rows like the cosine of their signs.

    Attributes
    ----------
    n_components : int
        m.
    """

    n_components: int

    @staticmethod
    def n_bytes(m: int) -> int:
        """Return the number of bytes of the codes of m coordinates, one per eight."""
        return -(-m // 8)

    def encode(self, Z: np.ndarray) -> np.ndarray:
        """Return codes, uint8 of shape (n, ceil(m / 8)).

        The first coordinate is the highest bit; unused bits are 0.
        """
        return np.packbits(Z > 0, axis=1)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the signs that codes represent, scaled to unit length, float32 of shape (n, m)."""
        bits = np.unpackbits(codes, axis=1, count=self.n_components)
        return (2 * bits.astype(np.float32) - 1) / np.float32(self.n_components**0.5)


Quantizer = Int8Quantizer | BinaryQuantizer
QUANTIZERS = ("int8", "binary")


def orthogonal_procrustes(C: np.ndarray) -> np.ndarray:
    """Return the R (m, p) of orthonormal rows or columns that maximizes tr(C R'), for C = Y'X.

    X is (n, p), Y is (n, m), and R = UV' for the singular value decomposition C = U S V'
    (Schoenemann 1966). For m >= p, R preserves lengths and thus minimizes ||Y - X R'||. For m < p,
    its rows are the first of the rotation that does so for Y padded with 0, which is not the R of
    orthonormal rows that minimizes ||Y - X R'||.
    """
    U, _, Vt = svd(C.astype(np.float64), full_matrices=False)
    return U @ Vt


def itq_rotation(Z: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return the rotation R (m, m) of rows (n, m) after which their signs approximate them best.

    This is ITQ (Gong and Lazebnik 2011). A rotation does not change the cosines of the rows.
    Starting from a random rotation, ITQ alternates between the signs B of the rotated rows and the
    rotation that minimizes ||B - Z R'||, an orthogonal Procrustes problem. Each size of a nested
    embedding is rotated within itself.
    """
    Z = Z[:: -(-len(Z) // ITQ_ROWS)]
    parts = []
    for first, last in pairwise([0, *sizes]):
        X, m = Z[:, first:last], last - first
        R = np.linalg.qr(np.random.default_rng(0).normal(size=(m, m)))[0]
        with blas_in_one_thread():  # many operations on small matrices
            for _ in range(ITQ_ITERATIONS):
                B = np.where(X @ R.T.astype(Z.dtype) > 0, 1, -1)
                R = orthogonal_procrustes(B.astype(Z.dtype).T @ X)
        parts.append(R)
    return block_diag(*parts).astype(Z.dtype)
