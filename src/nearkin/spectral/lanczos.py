"""Extreme eigenpairs by Lanczos, and when to call it."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from .._memory import require_memory
from ..linalg import eigh

# |lambda| <= ZERO max |lambda| is rounding, not information.
ZERO = 1e-10


def choose_solver(d: int, m: int) -> str:
    """Return which eigensolver finds m extreme pairs of a symmetric d x d matrix.

    * "dense" (LAPACK, finds every multiplicity) up to d = 1,000, or when more than one pair in twenty is requested;
    * "lanczos" (ARPACK, checked by a second start) otherwise.
    """
    return "lanczos" if d > 1000 and m <= d // 20 else "dense"


def lanczos_largest(A: LinearOperator, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the m largest eigenvalues of A, descending, with their vectors.

    A single Krylov sequence sees one vector of a repeated eigenvalue, with tiny residuals. So the answer is checked:
    the found directions are pushed below the rest of the spectrum, and whatever a second start then finds above the
    smallest of the m is exchanged for it. Where ARPACK gives up, the matrix is formed and solved by LAPACK.
    """
    starts = np.random.default_rng(0)
    d = A.shape[0]
    try:
        values, V = eigsh(A, m, which="LA", v0=starts.standard_normal(d))
        for _ in range(m):
            floor = 2 * np.abs(values).max()

            def deflated(x: np.ndarray, V: np.ndarray = V, shift: np.ndarray = values + floor) -> np.ndarray:
                x = x.ravel()
                return A @ x - V @ (shift * (V.T @ x))

            rest = LinearOperator(A.shape, matvec=deflated, dtype=np.float64)
            value, v = eigsh(rest, 1, which="LA", v0=starts.standard_normal(d))
            if value[0] <= values.min() + ZERO * floor:
                break
            worst = values.argmin()
            values[worst], V[:, worst] = value[0], v[:, 0]
    except ArpackError:
        require_memory(3 * 8 * d * d, f"A matrix of order {d}, on which Lanczos gave up,", "scale the features first")
        values, V = eigh(A @ np.eye(d), subset_by_index=(d - m, d - 1))
    order = np.argsort(-values, kind="stable")
    return values[order], V[:, order]
