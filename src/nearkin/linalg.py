"""Robust matrix decompositions, and signs of their vectors.

LAPACK's faster algorithms, divide and conquer for singular values (gesdd, gelsd) and relatively
robust representations for eigenvectors (syevr), fail on a few ordinary matrices; which ones depends
on its build and on the processor. QR iteration (gesvd, gelss, syev) is several times slower but
succeeds there. nearkin therefore uses these functions instead of SciPy's, except for eigenvalues
without vectors, which every driver computes by QR iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import LinAlgError as LinAlgError

# smaller singular values and eigenvalues, relative to the largest, count as 0
RANK_TOLERANCE = 1e-10


def svd(
    A: np.ndarray, *, full_matrices: bool = True, check_finite: bool = True
) -> tuple[np.ndarray, ...]:
    """Return `scipy.linalg.svd(A)`: U, s and Vt."""
    how = {"full_matrices": full_matrices, "check_finite": check_finite}
    try:
        return linalg.svd(A, **how)
    except LinAlgError:
        pass  # frees the work space of the first attempt before the second starts
    return linalg.svd(A, lapack_driver="gesvd", **how)


def eigh(
    A: np.ndarray, *, subset_by_index: tuple[int, int] | None = None, driver: str = "evr"
) -> tuple[np.ndarray, np.ndarray]:
    """Return `scipy.linalg.eigh(A)`: ascending eigenvalues, and eigenvectors.

    `subset_by_index` includes both ends.
    """
    try:
        return linalg.eigh(A, subset_by_index=subset_by_index, driver=driver)
    except LinAlgError:
        pass
    values, V = linalg.eigh(A, driver="ev")
    first, last = subset_by_index or (0, len(values) - 1)
    return values[first : last + 1], V[:, first : last + 1]


def lstsq(A: np.ndarray, B: np.ndarray) -> Any:
    """Return the X of minimum norm that minimizes ||AX - B||, like `scipy.linalg.lstsq`."""
    try:
        return linalg.lstsq(A, B)[0]
    except LinAlgError:
        pass
    return linalg.lstsq(A, B, lapack_driver="gelss")[0]


def row_signs(A: np.ndarray) -> np.ndarray:
    """Return signs (m, 1) of the rows of A (m, p) that make the largest entry of each positive."""
    largest = np.take_along_axis(A, np.abs(A).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -1.0, 1.0)
