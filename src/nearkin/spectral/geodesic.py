"""The geodesic of positive definite matrices."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..linalg import eigh, svd


def geometric_mean(S: np.ndarray, D: np.ndarray, t: float) -> tuple[np.ndarray, float]:
    """Return F with F F' = S^-1 #_t D, and the Riemannian distance between S^-1 and D.

    S must be positive definite, and D semi-definite. The mean is invariant under congruence: with S
    = L L', it is L'^-1 (L'D L)^t L^-1.
    """
    L = cholesky(S, lower=True)
    values, V = eigh(D)
    root = (V * np.sqrt(np.maximum(values, 0.0))).T  # of D; L'DL would lose its small eigenvalues
    _, roots, Ut = svd(root @ L)
    with np.errstate(divide="ignore"):
        length = float(np.linalg.norm(2 * np.log(roots)))
    return solve_triangular(L, Ut.T * roots**t, trans="T", lower=True), length
