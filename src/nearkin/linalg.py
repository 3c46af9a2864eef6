"""Decompositions that do not give up on finite numbers, and signs of their vectors.

LAPACK's faster algorithms, divide and conquer for singular values (gesdd, gelsd) and relatively
robust representations for eigenvectors (syevr), fail on a few ordinary matrices: which ones depends
on its build and on the processor. QR iteration (gesvd, gelss, syev), several times slower, finds
the same there. So nearkin takes these in place of SciPy's; but for eigenvalues without vectors,
which every driver finds by QR iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import LinAlgError as LinAlgError


def svd(
    A: np.ndarray, *, full_matrices: bool = True, check_finite: bool = True
) -> tuple[np.ndarray, ...]:
    """Return `scipy.linalg.svd(A)`: U, s and Vt."""
    how = {"full_matrices": full_matrices, "check_finite": check_finite}
    try:
        return linalg.svd(A, **how)
    except LinAlgError:
        pass  # the work space of the first attempt is free before the second begins
    return linalg.svd(A, lapack_driver="gesvd", **how)


def eigh(
    A: np.ndarray, *, subset_by_index: tuple[int, int] | None = None, driver: str = "evr"
) -> tuple[np.ndarray, np.ndarray]:
    """Return `scipy.linalg.eigh(A)`: eigenvalues, ascending, and eigenvectors; of a subset, its
    ends included.
    """
    try:
        return linalg.eigh(A, subset_by_index=subset_by_index, driver=driver)
    except LinAlgError:
        pass
    values, V = linalg.eigh(A, driver="ev")
    first, last = subset_by_index or (0, len(values) - 1)
    return values[first : last + 1], V[:, first : last + 1]


def lstsq(A: np.ndarray, B: np.ndarray) -> Any:
    """Return the shortest X that minimizes ||AX - B||, as `scipy.linalg.lstsq`."""
    try:
        return linalg.lstsq(A, B)[0]
    except LinAlgError:
        pass
    return linalg.lstsq(A, B, lapack_driver="gelss")[0]


def row_signs(A: np.ndarray) -> np.ndarray:
    """Return 1 or -1 for every row of A (m, p), shape (m, 1): times these, the largest entry of a
    row is positive.
    """
    largest = np.take_along_axis(A, np.abs(A).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -1.0, 1.0)
