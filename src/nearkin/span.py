"""The span of the rows: where p > n, there and back exactly, so that no p x p matrix is ever formed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dormqr

from ._blocks import centre, dense_float64, densified
from ._memory import require_memory
from ._messages import counted
from ._warn import warn_user
from .linalg import svd

RANK_TOLERANCE = 1e-10


@dataclass(frozen=True)
class RowSpace:
    """Rows in coordinates that lose nothing, and the way back.

    Attributes
    ----------
    coordinates : array or sparse matrix of shape (n, r)
        For p <= n the rows themselves; for p > n the rows, centred or not, in an orthonormal basis of their span.
    to_features : function from (r, m) to (p, m), or None
        Writes columns in these coordinates as columns of features; None where the coordinates are the features.
    """

    coordinates: Any
    to_features: Callable[[np.ndarray], np.ndarray] | None

    @cached_property
    def basis(self) -> np.ndarray:
        """The orthonormal basis of the span, shape (r, p), for p > n."""
        assert self.to_features is not None
        return self.to_features(np.eye(self.coordinates.shape[1])).T

    def back_project(self, V: np.ndarray) -> np.ndarray:
        """Return the directions V (r, m) as rows in feature space, shape (m, p), the largest entry of each positive.

        Further rows of V are coordinates in the `complement` of the span.
        """
        return self.back_project_pairs(V, V[:0])[0]

    def back_project_pairs(self, V: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `back_project(V)` and, as rows of the same signs, the columns of G (c, m) that belong to V's."""
        components = V.T
        if self.to_features is not None:
            r = self.coordinates.shape[1]
            components = self.to_features(V[:r]).T
            if len(V) > r:
                components = components + V[r:].T @ self.complement(len(V) - r)
        largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
        sign = np.where(largest < 0, -1.0, 1.0)
        return components * sign, G.T * sign

    def complement(self, m: int) -> np.ndarray:
        """Return m orthonormal rows (m, p) outside the span: directions in which the rows do not vary at all."""
        r, p = self.basis.shape
        start = np.random.default_rng(0).standard_normal((p, m))
        return qr(np.hstack([self.basis.T, start]), mode="economic")[0][:, r:].T


def triangular_factor(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Return R of [1 X] = QR for rows [1 X] that come in blocks; also of such factors of the blocks.

    Without its first row and column it is that of X about its mean: neither the mean is needed nor X'X, in which what
    lies below 1e-8 would be lost.
    """
    R = np.empty((0, 0))
    for block in blocks:
        R = qr(np.vstack([R, block]) if R.size else block, mode="r", check_finite=False)[0][: block.shape[1]]
    return R


def span_basis(R: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (p, r) of the span of the rows about their mean, from the factor R (., p + 1).

    Directions are dropped whose singular value is below 1e-10 of the largest after every feature is scaled to unit
    length, so that the units of the features do not decide; with a warning, unless it is the rounding of entries about
    this mean. The basis is the identity where all p are kept, and exactly 0 in a feature that is constant.
    """
    size, R = abs(R[0, 0]), R[1:, 1:]  # size: root of the number of rows
    unit = np.linalg.norm(R, axis=0)
    varies = np.flatnonzero(unit)
    unit = unit[varies]
    s, Vt = svd(R[:, varies] / unit)[1:]
    rounding = 10 * np.finfo(float).eps * (1 + np.max(size * np.abs(mean[varies]) / unit))
    r = int(np.sum(s > max(RANK_TOLERANCE, rounding) * s[0]))
    n_small = int(np.sum(s[r:] > rounding * s[0]))
    if n_small:
        dropped = "which was dropped" if n_small == 1 else "which were dropped"
        warn_user(
            f"X varies by less than {RANK_TOLERANCE:g} of its features in {counted(n_small, 'direction')}, {dropped}: "
            "some features nearly repeat others, or sums of others. To keep what they add, replace them by the "
            "differences."
        )
    basis = np.zeros((len(mean), r))
    basis[varies] = np.eye(r) if r == len(varies) else qr(Vt[r:].T / unit[:, None])[0][:, len(varies) - r :]
    return basis


def row_space(X: Any, *, centred: bool = True) -> RowSpace:
    """Return the rows of X in coordinates as few as necessary: exact, by a thin SVD where p > n.

    Costs nothing for p <= n, O(n^2 p) for p > n. Directions below 1e-10 of the largest singular value count as none.
    `centred=False`, for criteria that depend on the origin, takes the span of the rows as they are.
    """
    n, p = X.shape
    if p <= n:
        require_memory(8 * 8 * p * p, f"The scatters of {p} features", "reduce the features first, e.g. with PCA")
        return RowSpace(densified(X), None)
    require_memory(
        2 * 8 * n * p + 8 * 8 * n * n,  # X dense and once more; square factors and the work space of the decomposition
        f"The span of {n} rows with {p} features",
        "reduce the features first, e.g. with sklearn.decomposition.TruncatedSVD",
    )
    rows = centre(dense_float64(X)) if centred else dense_float64(X)
    (reflectors, tau), R = qr(rows.T, mode="raw", overwrite_a=rows is not X, check_finite=False)
    U, s, Vt = svd(R.T, full_matrices=False, check_finite=False)
    r = min(int(np.sum(s > RANK_TOLERANCE * s[0])), n - centred)

    def to_features(E: np.ndarray) -> np.ndarray:
        """Return Q V E: Q (p, n), with orthonormal columns, stays a product of Householder reflections."""
        QE = np.zeros((p, E.shape[1]), order="F")
        QE[:n] = Vt[:r].T @ E
        size = int(dormqr("L", "N", reflectors, tau, QE[:, :1], -1)[1][0]) * max(1, E.shape[1])
        return dormqr("L", "N", reflectors, tau, QE, size, overwrite_c=1)[0]

    return RowSpace(U[:, :r] * s[:r], to_features)  # X = R'Q' = U s (QV)'
