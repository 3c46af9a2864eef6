"""The three criteria of discriminant embedding, from matrices to directions.

Given a symmetric A and a positive semi-definite B, find V (d, m):

================  =======================  ==========  ================  ========================
criterion         problem                  subject to  solved by         used by
================  =======================  ==========  ================  ========================
trace difference  min tr V'AV              V'V = I     one eigenproblem  DNE (A = S_w - S_b)
ratio trace       min tr((V'BV)^-1 V'AV)   V'BV = I    A v = lambda B v  LPP, RCA, SDA; LDE, MFA,
                                                                         LFDA, DMLMJ, NMMP on
                                                                         request
trace ratio       max tr(V'AV)/tr(V'BV)    V'V = I     Newton on rho     NMMP
================  =======================  ==========  ================  ========================

The last two are different problems with different solutions, though papers often confuse them. This
module knows neither rows nor labels nor graphs. Every solve returns a frozen `SpectralResult` with
a diagnosis; nothing is regularized silently.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh, norm, qr
from scipy.sparse.linalg import ArpackError, LinearOperator, aslinearoperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from .._memory import require_memory
from .._messages import warn_user
from ..linalg import RANK_TOLERANCE, eigh, svd

SOLVED = 1e-6  # maximum backward error of a solution
EQUAL = 1e-6  # relative: eigenvalues closer than this count as equal
GRADED = 1e-5  # ratio of column sizes below which small eigenvalues of a matrix need QR iteration
LEAST_WITHIN = 1e-4  # share of a direction's scatter; below, its scale is not set by S_w


class SpectralStatus(enum.Enum):
    """How a solve ended; all but the first two deserve a warning."""

    OPTIMAL = "the optimum was found"
    UNBOUNDED = "the trace ratio has no finite optimum: tr V'BV = 0 for the V that was found"
    FLAT = "the objective is 0 in the directions found (tr V'AV = 0), and others would do as well"
    RANK_DEFICIENT = (
        "n_components={requested} were requested, but only {found} directions exist, which were "
        "kept: lower n_components, or add rows"
    )
    UNRESOLVED = (
        "the eigenvectors have a residual of {residual:.1e}, as the smallest eigenvalues lie too "
        "close together, which outliers and weights of very different sizes cause"
    )
    NOT_CONVERGED = (
        "the iteration stopped after {n_iter} eigen-decompositions with a relative gap of "
        "{gap:.1e} and a residual of {residual:.1e}: scale the features, or ask for more components"
    )


@dataclass(frozen=True)
class SpectralResult:
    """Directions and their diagnosis.

    Attributes
    ----------
    vectors : array of shape (d, m)
        One direction per column, best first.
    values : array of shape (q,), q >= m
        Eigenvalues in the order of the columns; all of them if they were computed
        (`trace_difference`).
    objective : float
        Value of the criterion at `vectors`.
    rank : int
        Effective dimension of the problem (trace difference: d; otherwise the rank of B).
    requested : int
        The requested n_components.
    status : SpectralStatus
    n_iter : int
        Number of eigendecompositions of an iteration, else 1.
    residual : float
        Largest `||A v - lambda B v|| / ((||A|| + |lambda| ||B||) ||v||)` over the directions.
    gap : float
        Relative distance from optimality (trace ratio), else 0.
    """

    vectors: np.ndarray
    values: np.ndarray
    objective: float
    rank: int
    requested: int
    status: SpectralStatus = SpectralStatus.OPTIMAL
    n_iter: int = 1
    residual: float = 0.0
    gap: float = 0.0

    def leading(self, n_components: int) -> SpectralResult:
        """Return the first directions, as if that many had been requested of an eigenproblem."""
        m = min(n_components, self.vectors.shape[1])
        values = self.values[:m]
        status = self.status
        if m < n_components:
            status = SpectralStatus.RANK_DEFICIENT
        elif status is SpectralStatus.RANK_DEFICIENT:
            status = SpectralStatus.OPTIMAL
        return replace(
            self,
            vectors=self.vectors[:, :m],
            values=values,
            objective=float(values.sum()),
            status=status,
            requested=n_components,
        )

    def warn(self, remedies: Mapping[SpectralStatus, str] = MappingProxyType({})) -> None:
        """Issue the warning for the status, if any, with the caller's remedy, if any."""
        if self.status in (SpectralStatus.OPTIMAL, SpectralStatus.UNBOUNDED):
            return
        unfinished = self.status in (SpectralStatus.NOT_CONVERGED, SpectralStatus.UNRESOLVED)
        category = ConvergenceWarning if unfinished else UserWarning
        text = self.status.value.format(found=self.vectors.shape[1], **vars(self))
        remedy = remedies.get(self.status)
        warn_user(f"{text}: {remedy}" if remedy else text, category)


def trace_difference(A: Any, n_components: int | None = None) -> SpectralResult:
    """Minimize tr V'AV subject to V'V = I: the eigenvectors of the smallest eigenvalues of A.

    Parameters
    ----------
    A : array of shape (d, d) or LinearOperator
        Symmetric, possibly indefinite. An operator is solved by Lanczos iterations.
    n_components : int or None
        m; None returns all d vectors.

    Returns
    -------
    SpectralResult
        `values` ascending: the whole spectrum from the dense solver, m values from Lanczos.
    """
    d = A.shape[0]
    m = d if n_components is None else n_components
    if isinstance(A, LinearOperator) or choose_solver(d, m) == "lanczos":
        values, V = lanczos_largest(-aslinearoperator(A), m)
        values = -values
        # below the spectral norm
        size = norm(A @ np.random.default_rng(0).standard_normal((d, 8))) / np.sqrt(8 * d)
    else:
        # If the units of features differ widely, A is graded. If the sizes of its columns descend,
        # QR iteration finds small eigenvalues to as many digits as large ones. No solver of SciPy
        # does so for an arbitrary order of the features.
        unit = np.abs(A).max(axis=0)
        order = np.argsort(-unit, kind="stable")
        graded = np.any((unit > 0) & (unit < GRADED * unit.max()))
        values, U = eigh(A[np.ix_(order, order)], driver="ev" if graded else "evr")
        V, size = U[np.argsort(order), :m], 0.0
    return eigen_result(V, values, A @ V - V * values[:m], max(size, np.abs(values).max()), d, m)


def ratio_trace(A: np.ndarray, B: np.ndarray, n_components: int | None = None) -> SpectralResult:
    """Minimize tr((V'BV)^-1 V'AV), with V'BV = I.

    V are the eigenvectors of A v = lambda B v with the smallest eigenvalues. To maximize a quotient
    A/B, see `generalized_eigh`.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric.
    B : array of shape (d, d)
        Positive semi-definite. Where B vanishes, the quotient is infinite or 0/0, so its null space
        is left out: V lies in the range of B. The rank of B is decided (relative 1e-10) after
        scaling B to unit diagonal. It thus does not depend on the units of the features, like the
        problem itself.
    n_components : int or None
        m; None takes the rank of B.

    Returns
    -------
    SpectralResult
        `values` ascending; RANK_DEFICIENT, with fewer columns, if m exceeds the rank of B.

    Raises
    ------
    ValueError
        If B is indefinite.
    """
    whitening, N = _whitening(B)
    rank = whitening.shape[1]
    if rank == 0:
        raise ValueError("B is zero: the graph behind it has no edge between rows that differ.")
    # the shortest of all vectors that differ by null vectors of B
    whitening -= N @ (N.T @ whitening)
    requested = rank if n_components is None else n_components
    m = min(requested, rank)
    values, E = _largest(-(whitening.T @ A @ whitening), m)
    values = -values
    V = whitening @ E
    R = A @ V - B @ V * values
    R -= N @ (N.T @ R)  # of the problem in the range of B, since A need not vanish where B does
    size = norm(A) + np.abs(values).max() * norm(B)
    return eigen_result(V, values, R, size, rank, requested)


def generalized_eigh(
    S_b: np.ndarray, S_w: np.ndarray, n_components: int | None = None
) -> SpectralResult:
    """Maximize tr((V'(S_w + S_b)V)^-1 V'S_b V).

    V are the eigenvectors of S_b v = lambda S_w v with the largest eigenvalues. The values are the
    shares `lambda / (1 + lambda)` of S_b in the scatter of a direction. Directions in which S_w
    vanishes and lambda is infinite have the share 1 and come first; those in which both vanish
    (0/0) are left out. Among equal shares, the direction of largest scatter for unit length comes
    first.

    Parameters
    ----------
    S_b, S_w : arrays of shape (d, d)
        Positive semi-definite.
    n_components : int or None
        m; None takes the rank of S_w + S_b.

    Returns
    -------
    SpectralResult
        `values`: the shares v'S_b v / v'(S_w + S_b)v, descending, in [0, 1]; V'(S_w + S_b)V = I.
        RANK_DEFICIENT, with fewer columns, if m exceeds the rank; FLAT if S_b vanishes.

    Raises
    ------
    ValueError
        If both vanish, or their sum is indefinite.
    """
    S = S_w + S_b
    if not S.any():
        raise ValueError(
            "No two adjacent rows of the graphs differ: use more neighbours, or drop duplicated "
            "rows."
        )
    result = ratio_trace(S_w, S)
    shares = np.clip(1 - result.values, 0, 1)
    V = largest_scatter_first(result.vectors, result.values)
    result = replace(result, vectors=V, values=shares).leading(n_components or result.rank)
    return replace(result, status=SpectralStatus.FLAT) if shares[0] <= RANK_TOLERANCE else result


def unit_within_scatter(result: SpectralResult) -> SpectralResult:
    """Scale the directions of `generalized_eigh` such that v'S_w v = 1, with a limit.

    Where S_w (nearly) vanishes, being less than 1e-4 of the scatter, v'(S_w + S_b)v = 10^4. Such a
    direction then counts a hundred times as much as one without between-class scatter, instead of
    dominating everything.
    """
    within = np.maximum(1 - result.values, LEAST_WITHIN)
    return replace(result, vectors=result.vectors / np.sqrt(within))


def largest_scatter_first(V: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return V with the columns of equal values rotated to be orthogonal, the shortest first.

    If V'BV = I, v'Bv is the same for all of them, so the shortest column has the largest scatter
    for unit length. Otherwise rounding would decide their order.
    """
    V = V.copy()
    ends = np.flatnonzero(np.abs(np.diff(values)) > EQUAL * np.maximum(np.abs(values[1:]), 1.0)) + 1
    for equal in np.split(np.arange(len(values)), ends):
        if len(equal) > 1:
            V[:, equal] = V[:, equal] @ svd(V[:, equal], full_matrices=False)[2][::-1].T
    return V


def shrunk(S: np.ndarray, T: np.ndarray, amount: float) -> np.ndarray:
    """Return (1 - s) S + s (tr S / r) TT' for the amount s.

    T (d, r) is an orthonormal basis of the range of S. Trace and eigenvectors in the range are
    preserved; with s = 1, all directions in it count alike.
    """
    return (1 - amount) * S + amount * np.trace(S) / T.shape[1] * (T @ T.T)


def trace_ratio(
    A: np.ndarray, B: np.ndarray, n_components: int, *, tol: float = 1e-10, max_iter: int = 50
) -> SpectralResult:
    """Maximize tr(V'AV) / tr(V'BV) subject to V'V = I, to its global optimum.

    Let f(rho) be the sum of the m largest eigenvalues of A - rho B. f is convex and decreasing, and
    the optimum is its root. With V the eigenvectors at rho, Newton's step is `rho <- tr(V'AV) /
    tr(V'BV)`. rho increases monotonically and converges quadratically (Wang et al., CVPR 2007; Ngo,
    Bellalij and Saad, SIAM Review 54, 2012), in about 6 decompositions where the bisection of Nie,
    Xiang and Zhang (NMMP, Table 1) needs 35.

    If m <= d - rank(B) ("case 2"), V fits into the null space of B. The paper then maximizes
    tr(V'AV) there, as the ratio becomes infinite. This holds if A is a scatter. Its eq. 9 allows
    any symmetric A, however, and then case 2 has a gap: if the largest tr(V'AV) in the null space
    is negative, the ratio tends to minus infinity there and has a finite optimum elsewhere. This is
    the root of f as before: f is at least 0 at tr A / tr B, the mean ratio over all V, and negative
    for large rho.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric.
    B : array of shape (d, d)
        Positive semi-definite; its rank is decided (relative 1e-10) after scaling B to unit
        diagonal.
    n_components : int
        m.
    tol : float
        Stop when `f(rho) <= tol (|tr V'AV| + |rho| tr V'BV)`. The criterion is relative, because
        the optimum can be enormous for m = d - rank(B) + 1.
    max_iter : int
        Maximum number of decompositions.

    Returns
    -------
    SpectralResult
        `values`: eigenvalues of A - rho B, descending (case 2: of A in the null space of B);
        `objective`: rho, in case 2 infinite with the sign of tr V'AV. UNBOUNDED in case 2, FLAT if
        A is zero in the directions found, RANK_DEFICIENT (with d columns) if m > d, NOT_CONVERGED
        if `max_iter` was reached.

    Raises
    ------
    ValueError
        If B is indefinite.
    """
    requested, m = n_components, min(n_components, len(B))
    N = _null_space(B)
    rank = len(B) - N.shape[1]
    if not A.any():
        V = eigh(B)[1][:, :m]
        return SpectralResult(V, np.zeros(m), 0.0, rank, requested, SpectralStatus.FLAT)
    if m <= N.shape[1]:  # case 2: the m directions of largest tr V'AV in the null space of B
        values, E = _largest(N.T @ A @ N, m)
        trace, zero = values.sum(), RANK_TOLERANCE * norm(A)
        if trace >= -zero or rank == 0:
            V = N @ E
            R = N @ (N.T @ (A @ V)) - V * values
            result = eigen_result(V, values, R, norm(A), rank, requested)
            status = SpectralStatus.FLAT if abs(trace) <= zero else SpectralStatus.UNBOUNDED
            return replace(
                result,
                objective=-np.inf if trace < -zero else np.inf,  # trace / 0
                n_iter=2,
                status=result.status if requested > m else status,
            )
    rho = np.trace(A) / np.trace(B)  # a lower bound
    for n_iter in range(2, max_iter + 1):
        values, V = _largest(A - rho * B, m)
        a, b = (float(np.sum(V * (M @ V))) for M in (A, B))  # tr V'AV, tr V'BV
        size = abs(a) + abs(rho) * b
        gap = max(a - rho * b, 0.0) / size if size > 0 else 0.0
        if gap <= tol:
            break
        rho = a / b
    R = (A - rho * B) @ V - V * values
    result = eigen_result(V, values, R, norm(A) + abs(rho) * norm(B), rank, requested)
    status = SpectralStatus.NOT_CONVERGED if gap > tol else result.status
    return replace(result, objective=float(rho), n_iter=n_iter, gap=gap, status=status)


def range_basis(S: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (d, r) of the range of a positive semi-definite S.

    Its rank is decided (relative 1e-10) after scaling S to unit diagonal. The basis is the identity
    if r = d, and exactly 0 where the diagonal is.
    """
    varies = np.flatnonzero(np.diag(S) > 0)
    N = _null_space(S[np.ix_(varies, varies)])
    basis = np.zeros((len(S), len(varies) - N.shape[1]))
    basis[varies] = qr(N)[0][:, N.shape[1] :] if N.size else np.eye(len(varies))
    return basis


def _whitening(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return V (d, r) with V'BV = I, and an orthonormal basis of the null space of B.

    B is positive semi-definite. The rank r is decided (relative 1e-10) after scaling B to unit
    diagonal.
    """
    scaled, unit = _unit_diagonal(B)
    beta, U = eigh(scaled)
    nullity = len(B) - _rank_of_psd(beta)
    U /= unit[:, None]
    return U[:, nullity:] / np.sqrt(beta[nullity:]), qr(U[:, :nullity], mode="economic")[0]


def _null_space(B: np.ndarray) -> np.ndarray:
    """Return the basis of the null space that `_whitening` returns; faster if it is empty."""
    if _rank_of_psd(eigvalsh(_unit_diagonal(B)[0])) == len(B):
        return np.empty((len(B), 0))
    return _whitening(B)[1]


def _unit_diagonal(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return B scaled to unit diagonal (except for zeros), and the units."""
    unit = np.sqrt(np.where(np.diag(B) > 0, np.diag(B), 1.0))
    return B / np.outer(unit, unit), unit


def _rank_of_psd(eigenvalues: np.ndarray) -> int:
    """Return the number of nonzero ascending eigenvalues of B; raise an error for negative ones."""
    smallest, largest = eigenvalues[0], eigenvalues[-1]
    if smallest < -1e-6 * max(largest, -smallest):
        raise ValueError(
            f"B must be positive semi-definite; its eigenvalues lie between {smallest:.3g} and "
            f"{largest:.3g}: take the scatter of a graph whose weights are not negative."
        )
    return int(np.sum(eigenvalues > RANK_TOLERANCE * largest))


def eigen_result(
    V: np.ndarray,
    values: np.ndarray,
    R: np.ndarray,
    size: float,
    rank: int,
    requested: int,
    unsolved: SpectralStatus = SpectralStatus.NOT_CONVERGED,
) -> SpectralResult:
    """Return the result of one eigenproblem: the objective is the sum of the eigenvalues of V.

    The residual is the backward error, the largest `||r|| / (size ||v||)` over the columns `r = A v
    - lambda B v` of R; `size` is the norm `||A|| + |lambda| ||B||`.
    """
    m = V.shape[1]
    lengths = np.maximum(size * np.linalg.norm(V, axis=0), np.finfo(float).tiny)
    residual = float(np.max(np.linalg.norm(R, axis=0) / lengths))
    status = SpectralStatus.OPTIMAL if residual <= SOLVED else unsolved
    status = SpectralStatus.RANK_DEFICIENT if requested > m else status
    objective = float(values[:m].sum())
    return SpectralResult(V, values, objective, rank, requested, status, residual=residual)


def choose_solver(d: int, m: int) -> str:
    """Return the eigensolver for m extreme eigenpairs of a symmetric d x d matrix.

    * "dense" (LAPACK, finds all multiplicities) up to d = 1,000, or if more than one pair in twenty
      is requested;
    * "lanczos" (ARPACK, checked by a second start) otherwise.
    """
    return "lanczos" if d > 1000 and m <= d // 20 else "dense"


def _largest(A: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the m largest eigenvalues, descending, with their vectors."""
    d = len(A)
    if choose_solver(d, m) == "lanczos":
        return lanczos_largest(aslinearoperator(A), m)
    values, V = eigh(A, subset_by_index=(d - m, d - 1))
    return values[::-1], V[:, ::-1]


def lanczos_largest(A: LinearOperator, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the m largest eigenvalues of A, descending, with their vectors.

    A single Krylov sequence finds only one vector of a repeated eigenvalue, with a tiny residual.
    The result is therefore checked: the vectors found are shifted below the rest of the spectrum,
    and if another start then finds a value larger than the smallest of the m, it replaces that one.
    If ARPACK fails, the matrix is formed and solved by LAPACK.
    """
    starts = np.random.default_rng(0)
    d = A.shape[0]
    try:
        values, V = eigsh(A, m, which="LA", v0=starts.standard_normal(d))
        for _ in range(m):
            floor = 2 * np.abs(values).max()
            rest = A - aslinearoperator(V * (values + floor)) @ aslinearoperator(V.T)
            value, v = eigsh(rest, 1, which="LA", v0=starts.standard_normal(d))
            if value[0] <= values.min() + RANK_TOLERANCE * floor:
                break
            worst = values.argmin()
            values[worst], V[:, worst] = value[0], v[:, 0]
    except ArpackError:
        require_memory(
            3 * 8 * d * d,
            f"A matrix of order {d}, on which Lanczos gave up,",
            "scale the features first",
        )
        values, V = eigh(A @ np.eye(d), subset_by_index=(d - m, d - 1))
    order = np.argsort(-values, kind="stable")
    return values[order], V[:, order]
