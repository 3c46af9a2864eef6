"""The norm in the space of a kernel as penalty: embeddings that are functions of the row, and extend to new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics.pairwise import rbf_kernel

from .._blocks import relative_to, row_blocks
from .._memory import require_memory
from ..linalg import eigh, svd
from ..span import RANK_TOLERANCE
from ..spectral import SpectralResult, smallest_of_dense
from .transductive import GraphPenalty

Kernel = Callable[[Any, Any], Any]


def kernel_function(kernel: Any, X: Any) -> Kernel:
    """Return the kernel as a function of two tables; "rbf" is exp(-d^2 / t), t the mean d^2 over all pairs of rows."""
    if callable(kernel):
        return kernel
    if kernel != "rbf":
        raise ValueError(f"kernel must be None, 'rbf' or a function of two tables, got {kernel!r}.")
    variances = X.multiply(X).mean(axis=0) - X.mean(axis=0) ** 2 if issparse(X) else X.var(axis=0, dtype=np.float64)
    origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
    return partial(_rbf, origin=origin, gamma=0.5 / float(variances.sum()))


def _rbf(X: Any, Y: Any, origin: np.ndarray | None, gamma: float) -> np.ndarray:
    return rbf_kernel(relative_to(origin, X), relative_to(origin, Y), gamma=gamma)


class KernelPenalty:
    """The penalty sum_i ||f_i||^2 in the space of a kernel, plus tr V'PV for a graph (TDL's eq. 7 and Theorem 4).

    The functions are combinations of k(., a) for anchors a: all rows (exact), or landmarks (Nystroem). Those of mean 0
    on the rows have coordinates b with V = Qb, Q'Q = I, Q'e = 0 and ||f||^2 = sum b_i^2 / s_i, so that no kernel is
    ever inverted. Directions of s_i below 1e-10 of the largest are left out.

    Attributes
    ----------
    Q : array of shape (n, r)
    s : array of shape (r,)
        Eigenvalues of the centred kernel, if all rows are anchors.
    """

    def __init__(self, X: Any, anchors: Any, kernel: Kernel, graph: GraphPenalty | None) -> None:
        self.anchors, self.kernel, self.graph = anchors, kernel, graph
        n, q = X.shape[0], anchors.shape[0]
        require_memory(4 * 8 * n * q, f"The kernel of {n} rows and {q} anchors", "take a smaller n_landmarks")
        s, U = _positive_spectrum(evaluate(kernel, anchors, anchors))
        whitening = U / np.sqrt(s)
        K = evaluate(kernel, X, anchors)
        self.mean = K.mean(axis=0)
        K -= self.mean
        K = K @ whitening
        Q, roots, Rt = svd(K, full_matrices=False)
        kept = roots**2 > max(RANK_TOLERANCE * roots[0] ** 2, RANK_TOLERANCE**2 * n * s[-1])
        if not kept.any():
            raise ValueError("kernel is the same for all rows: its functions are constant, and no embedding.")
        self.Q, self.s = Q[:, kept], roots[kept] ** 2
        self.size = float(1 / self.s.max())  # the smallest eigenvalue of K^+
        self.coefficients = whitening @ (Rt[kept].T / roots[kept])  # of k(x, anchors) - mean, for b

    def solve(self, cost: csr_array, reg: float, m: int, *, start: np.ndarray | None = None) -> SpectralResult:
        """Minimize tr V'(C' + reg P)V + reg sum_i ||f_i||^2 subject to V'V = I, V'e = 0."""
        M = cost if self.graph is None else cost + reg * self.graph.P
        H = self.Q.T @ (M @ self.Q)
        H[np.diag_indices_from(H)] += reg / self.s
        return smallest_of_dense((H + H.T) / 2, m, self.Q)

    def as_unlabelled(self, result: SpectralResult, cost: csr_array, reg: float) -> np.ndarray:
        """Return V: functions of the row, which labels do not move away from their neighbours."""
        return result.vectors

    def extension(self, result: SpectralResult, cost: csr_array, reg: float) -> KernelExtension:
        """Return the functions whose values on the training rows are the V of `solve`."""
        return KernelExtension(self.anchors, self.kernel, self.mean, self.coefficients @ (self.Q.T @ result.vectors))


@dataclass(frozen=True)
class KernelExtension:
    """Functions f(x) = (k(x, anchors) - mean) coefficients."""

    anchors: Any
    kernel: Kernel
    mean: np.ndarray
    coefficients: np.ndarray

    def __call__(self, X: Any, affinity: Any = None) -> np.ndarray:
        """Return the coordinates of rows X."""
        blocks = row_blocks(X.shape[0], self.anchors.shape[0])
        kernels = (evaluate(self.kernel, X[rows], self.anchors) for rows in blocks)
        return np.vstack([(K - self.mean) @ self.coefficients for K in kernels])


def evaluate(kernel: Kernel, X: Any, anchors: Any) -> np.ndarray:
    """Return k(x, anchors) as a float64 array of its own, shape (n, number of anchors)."""
    K = np.array(kernel(X, anchors), dtype=np.float64)
    shape = (X.shape[0], anchors.shape[0])
    if K.shape != shape:
        raise ValueError(f"kernel must return the shape {shape} for tables of so many rows, got {K.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("kernel must return finite numbers, got NaN or inf.")
    return K


def _positive_spectrum(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues that are not 0, ascending, and their eigenvectors; refuse what is no kernel."""
    size = np.abs(K).max()
    if size == 0 or np.abs(K - K.T).max() > 1e-6 * size:
        raise ValueError("kernel must be symmetric, k(x, y) = k(y, x), and not 0 everywhere.")
    s, U = eigh(K)
    if -s[0] > 1e-6 * s[-1]:
        raise ValueError(
            f"kernel must be positive semi-definite, its eigenvalues here go from {s[0]:.3g} to {s[-1]:.3g}: take one "
            "of sklearn.metrics.pairwise that is, as rbf_kernel or laplacian_kernel."
        )
    kept = s > RANK_TOLERANCE * s[-1]
    return s[kept], U[:, kept]
