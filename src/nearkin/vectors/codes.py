"""Embeddings as codes of a byte, or of a bit, a dimension; their scales are fitted with the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from .._blocks import blas_in_one_thread
from ..linalg import svd

LARGEST = 127  # of a code in int8
# quantile of the absolute coordinates that becomes the largest code; beyond, they are clipped
KEPT = 0.999
ITQ_ROWS = 5_000
ITQ_ITERATIONS = 30


@dataclass(frozen=True)
class Int8Quantizer:
    """Coordinates rounded to -127, ..., 127 times one scale, so that products of codes are those of
    rows.

    NumPy's products of int8 overflow: cast codes to int32 or float32 first.

    Attributes
    ----------
    scale : float
        The absolute coordinate that becomes 127: the .999 quantile of the rows of the fit. Larger
        ones are clipped.
    """

    scale: float

    @classmethod
    def fitted(cls, Z: np.ndarray, sizes: Sequence[int]) -> tuple[Self, np.ndarray]:
        """Return the quantizer of rows (n, m), and the map of the coordinates that it needs before:
        none.
        """
        scale = float(np.quantile(np.abs(Z), KEPT)) or 1.0
        return cls(scale), np.eye(Z.shape[1], dtype=Z.dtype)

    @staticmethod
    def n_bytes(m: int) -> int:
        """Return the bytes of the codes of m coordinates: one for each."""
        return m

    def encode(self, Z: np.ndarray) -> np.ndarray:
        """Return codes, int8 of shape (n, m)."""
        return np.clip(np.rint(Z * (LARGEST / self.scale)), -LARGEST, LARGEST).astype(np.int8)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the rows that codes stand for, float32 of shape (n, m)."""
        return codes.astype(np.float32) * np.float32(self.scale / LARGEST)


@dataclass(frozen=True)
class BinaryQuantizer:
    """Signs of the coordinates, eight a byte, after the rotation that costs them least (ITQ, Gong
    and Lazebnik 2011).

    The Hamming distance of two codes orders rows as the cosine of their signs does. A rotation
    changes no cosine of the rows themselves; ITQ's alternates between the signs B of the rotated
    rows and the rotation R that minimizes ||B - Z R'||, an orthogonal Procrustes problem. Each size
    of a nested embedding is rotated within itself.

    Attributes
    ----------
    n_components : int
        m.
    """

    n_components: int

    @classmethod
    def fitted(cls, Z: np.ndarray, sizes: Sequence[int]) -> tuple[Self, np.ndarray]:
        """Return the quantizer of rows (n, m), and the rotation (m, m) of the coordinates that it
        needs before.
        """
        Z = Z[:: -(-len(Z) // ITQ_ROWS)]
        parts = [_itq(Z[:, first:last]) for first, last in pairwise([0, *sizes])]
        return cls(Z.shape[1]), block_diag(*parts).astype(Z.dtype)

    @staticmethod
    def n_bytes(m: int) -> int:
        """Return the bytes of the codes of m coordinates: one for eight."""
        return -(-m // 8)

    def encode(self, Z: np.ndarray) -> np.ndarray:
        """Return codes, uint8 of shape (n, ceil(m / 8)): the first coordinate is the highest bit;
        the rest is 0.
        """
        return np.packbits(Z > 0, axis=1)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the signs that codes stand for, scaled to unit length, float32 of shape (n, m)."""
        bits = np.unpackbits(codes, axis=1, count=self.n_components)
        return (2 * bits.astype(np.float32) - 1) / np.float32(self.n_components**0.5)


Quantizer = Int8Quantizer | BinaryQuantizer
QUANTIZERS: dict[str, type[Quantizer]] = {"int8": Int8Quantizer, "binary": BinaryQuantizer}


def orthogonal_procrustes(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the R, (m, p), of orthonormal rows or columns that maximizes tr(Y'X R') for X (n, p)
    and Y (n, m).

    R = UV' for the singular value decomposition Y'X = U S V' (Schoenemann 1966). For m >= p, R
    keeps lengths, and so minimizes ||Y - X R'||. For m < p its rows are the first of the rotation
    that does so for Y filled up with 0, which is not the R of orthonormal rows that minimizes ||Y -
    X R'||.
    """
    U, _, Vt = svd((Y.T @ X).astype(np.float64), full_matrices=False)
    return U @ Vt


def _itq(Z: np.ndarray) -> np.ndarray:
    """Return the rotation R, (m, m), that ITQ finds from a random one."""
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(Z.shape[1],) * 2))[0]
    with blas_in_one_thread():  # small matrices, many times
        for _ in range(ITQ_ITERATIONS):
            B = np.where(Z @ R.T.astype(Z.dtype) > 0, 1, -1)
            R = orthogonal_procrustes(Z, B.astype(Z.dtype))
    return R
