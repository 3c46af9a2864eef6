"""The norm in a kernel's Hilbert space as a penalty, for embeddings that are functions of the row.

See eq. 7 and Theorem 4 of TDL.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from .._blocks import relative_to
from .._memory import require_memory
from .._messages import shown
from .._validation import equals
from ..linalg import RANK_TOLERANCE, eigh, svd
from ..spectral import SpectralResult, smallest_of_dense
from .extension import Kernel, KernelExtension, evaluate
from .graph_penalty import GraphPenalty


def kernel_function(kernel: Any, X: Any) -> Kernel:
    """Return the kernel as a function of two tables.

    "rbf" is exp(-d^2 / t), where t is the mean d^2 over all pairs of rows.
    """
    if callable(kernel) and not isinstance(kernel, type):
        return kernel
    if not equals(kernel, "rbf"):
        raise ValueError(
            f"kernel must be None, 'rbf' or a function of two tables, got {shown(kernel)}."
        )
    origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
    variances = StandardScaler(with_mean=False).fit(X).var_
    return partial(_rbf, origin=origin, gamma=0.5 / float(variances.sum()))


def _rbf(X: Any, Y: Any, origin: np.ndarray | None, gamma: float) -> np.ndarray:
    return rbf_kernel(relative_to(origin, X), relative_to(origin, Y), gamma=gamma)


class KernelPenalty:
    """The penalty sum_i ||f_i||^2 in the space of a kernel, plus tr V'PV for a graph.

    This is eq. 7 of TDL and its Theorem 4. The functions are combinations of k(., a) for anchors a:
    all rows (exact) or landmarks (Nyström). Those of mean 0 on the rows have coordinates b with V =
    Qb, Q'Q = I, Q'e = 0 and ||f||^2 = sum b_i^2 / s_i, so no kernel matrix is inverted. Directions
    with s_i below 1e-10 of the largest are left out.

    Attributes
    ----------
    Q : array of shape (n, r)
    s : array of shape (r,)
        Eigenvalues of the centred kernel, if all rows are anchors.
    """

    def __init__(self, X: Any, anchors: Any, kernel: Kernel, graph: GraphPenalty | None) -> None:
        self.anchors, self.kernel, self.graph = anchors, kernel, graph
        n = X.shape[0]
        q = anchors.shape[0]
        require_memory(
            4 * 8 * n * q, f"The kernel of {n} rows and {q} anchors", "take a smaller n_landmarks"
        )
        K = evaluate(kernel, anchors, anchors)
        size = np.abs(K).max()
        if size == 0 or np.abs(K - K.T).max() > 1e-6 * size:
            raise ValueError("kernel must be symmetric, k(x, y) = k(y, x), and not 0 everywhere.")
        s, U = eigh(K)
        if -s[0] > 1e-6 * s[-1]:
            raise ValueError(
                f"kernel must be positive semi-definite; its eigenvalues here go from {s[0]:.3g} "
                f"to {s[-1]:.3g}: take one of sklearn.metrics.pairwise that is, such as rbf_kernel "
                "or laplacian_kernel."
            )
        kept = s > RANK_TOLERANCE * s[-1]
        whitening = U[:, kept] / np.sqrt(s[kept])
        K = evaluate(kernel, X, anchors)
        self.mean = K.mean(axis=0)
        K -= self.mean
        K = K @ whitening
        Q, roots, Rt = svd(K, full_matrices=False)
        kept = roots**2 > max(RANK_TOLERANCE * roots[0] ** 2, RANK_TOLERANCE**2 * n * s[-1])
        if not kept.any():
            raise ValueError(
                "kernel is the same for all rows, so nothing can be learned: take another."
            )
        self.Q = Q[:, kept]
        self.s = roots[kept] ** 2
        self.size = float(1 / self.s.max())  # the smallest eigenvalue of K^+
        self.coefficients = whitening @ (Rt[kept].T / roots[kept])  # of k(x, anchors) - mean, for b

    def solve(self, cost: csr_array, reg: float, m: int) -> SpectralResult:
        """Minimize tr V'(C' + reg P)V + reg sum_i ||f_i||^2 subject to V'V = I, V'e = 0."""
        M = cost if self.graph is None else cost + reg * self.graph.P
        H = self.Q.T @ (M @ self.Q)
        H[np.diag_indices_from(H)] += reg / self.s
        return smallest_of_dense((H + H.T) / 2, m, self.Q)

    def extension(self, V: np.ndarray, eigenvalues: np.ndarray) -> KernelExtension:
        """Return the functions whose values on the training rows are V."""
        coefficients = self.coefficients @ (self.Q.T @ V)
        return KernelExtension(self.anchors, self.kernel, self.mean, coefficients)
