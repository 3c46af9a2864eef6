"""Matrices in, directions out: the three criteria of discriminant embedding.

Given a symmetric A and a positive semi-definite B, find V (d, m):

=================  ==============================================  =======================  =====================
criterion          problem                                         solved by                used by
=================  ==============================================  =======================  =====================
trace difference   min tr V'AV               s.t. V'V = I          one eigenproblem         DNE (A = pull - push)
ratio trace        min tr((V'BV)^-1 V'AV)    i.e. V'BV = I         A v = lambda B v         LPP, NMMP on request
trace ratio        max tr(V'AV) / tr(V'BV)   s.t. V'V = I          Newton on rho            NMMP
=================  ==============================================  =======================  =====================

The last two are different problems with different answers, though papers mix them up. This module knows no rows, no
labels and no graph. Every solve returns a frozen `SpectralResult` with a diagnosis; nothing is regularized silently.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh, norm, qr
from scipy.sparse.linalg import ArpackError, LinearOperator, aslinearoperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from ._memory import require_memory
from ._warn import warn_user

# |lambda| <= ZERO max |lambda| is rounding, not information.
ZERO = 1e-10


class Status(enum.Enum):
    """How a solve ended; all but the first two are worth a warning, and say what to do."""

    OPTIMAL = "the optimum was found"
    UNBOUNDED = "the trace ratio has no finite optimum: tr V'BV = 0 for the V that was found"
    FLAT = (
        "the objective is 0 in the directions found (tr V'AV = 0: the graph of pairs to push apart sees no difference "
        "there): use more neighbours"
    )
    RANK_DEFICIENT = (
        "n_components={asked} were asked for, but the data vary in {found} directions only, which were kept: lower "
        "n_components, or add rows"
    )
    NOT_CONVERGED = (
        "the iteration stopped after {n_iter} eigen-decompositions with a relative gap of {gap:.1e} and a residual of "
        "{residual:.1e}: scale the features, or ask for more components"
    )


@dataclass(frozen=True)
class SpectralResult:
    """Directions, and how far they may be trusted.

    Attributes
    ----------
    vectors : array of shape (d, m)
        One direction a column, best first.
    values : array of shape (q,), q >= m
        Eigenvalues in the order of the columns; all of them where they were computed (`trace_difference`).
    objective : float
        Value of the criterion at `vectors`.
    rank : int
        Dimension in which the problem has content (trace difference: d; otherwise the rank of B).
    n_iter : int
        Eigen-decompositions of the iteration; 1 where there is none.
    residual : float
        Largest `||A v - lambda B v|| / ((||A|| + |lambda| ||B||) ||v||)` over the directions.
    gap : float
        Relative distance from optimality (trace ratio), else 0.
    status : Status
    asked : int
        The n_components that was asked for.
    """

    vectors: np.ndarray
    values: np.ndarray
    objective: float
    rank: int
    n_iter: int
    residual: float
    gap: float
    status: Status
    asked: int

    def warn(self) -> None:
        """Issue the warning that the status calls for, if any."""
        if self.status in (Status.OPTIMAL, Status.UNBOUNDED):
            return
        category = ConvergenceWarning if self.status is Status.NOT_CONVERGED else UserWarning
        text = self.status.value.format(found=self.vectors.shape[1], **vars(self))
        warn_user(text, category)


def choose_solver(d: int, m: int) -> str:
    """Return which eigensolver finds m extreme pairs of a symmetric d x d matrix.

    * "dense" (LAPACK, finds every multiplicity) up to d = 1,000, or when more than one pair in twenty is wanted;
    * "lanczos" (ARPACK, checked by a second start) otherwise.
    """
    return "lanczos" if d > 1000 and m <= d // 20 else "dense"


def trace_difference(A: Any, n_components: int | None = None) -> SpectralResult:
    """Minimize tr V'AV subject to V'V = I: the eigenvectors of the smallest eigenvalues of A.

    Parameters
    ----------
    A : array of shape (d, d) or LinearOperator
        Symmetric, indefinite or not. An operator is solved by Lanczos.
    n_components : int or None
        m; None returns all d vectors.

    Returns
    -------
    SpectralResult
        `values` ascending: the whole spectrum from the dense solver, m of it from Lanczos.
    """
    d = A.shape[0]
    m = d if n_components is None else n_components
    if isinstance(A, LinearOperator) or choose_solver(d, m) == "lanczos":
        values, V = _lanczos_largest(-aslinearoperator(A), m)
        values = -values
        size = norm(A @ np.random.default_rng(0).standard_normal((d, 8))) / np.sqrt(8 * d)  # below the spectral norm
    else:
        values, V = eigh(A)
        V, size = V[:, :m], 0.0
    residual = _residual(A @ V - V * values[:m], V, max(size, np.abs(values).max()))
    return SpectralResult(V, values, float(values[:m].sum()), d, 1, residual, 0.0, _judge(residual), m)


def ratio_trace(A: np.ndarray, B: np.ndarray, n_components: int | None = None) -> SpectralResult:
    """Minimize tr((V'BV)^-1 V'AV): the smallest generalized eigenvalues of A v = lambda B v, with V'BV = I.

    To maximize a quotient A/B instead, minimize B/(A + B): the same vectors, and finite where B vanishes.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric.
    B : array of shape (d, d)
        Positive semi-definite. Where B vanishes the quotient is infinite or 0/0, so its null space is left out: V lies
        in the range of B. The rank of B is decided (relative 1e-10) after scaling B to unit diagonal, so that the
        units of the features, to which the problem is indifferent, do not decide it.
    n_components : int or None
        m; None takes the rank of B.

    Returns
    -------
    SpectralResult
        `values` ascending; RANK_DEFICIENT, with fewer columns, when m exceeds the rank of B.

    Raises
    ------
    ValueError
        If B is indefinite.
    """
    diagonal = np.diag(B)
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    beta, U = eigh(B / np.outer(unit, unit))
    rank = _rank_of_psd(beta)
    if rank == 0:
        raise ValueError("B is zero: the graph behind it has no edge between rows that differ.")
    U /= unit[:, None]
    nullity = len(B) - rank
    whitening = U[:, nullity:] / np.sqrt(beta[nullity:])
    N = qr(U[:, :nullity], mode="economic")[0]
    whitening -= N @ (N.T @ whitening)  # of all vectors that differ by null vectors of B, the shortest
    asked = rank if n_components is None else n_components
    m = min(asked, rank)
    values, E = _extreme(whitening.T @ A @ whitening, m, largest=False)
    V = whitening @ E
    R = A @ V - B @ V * values
    R -= N @ (N.T @ R)  # of the problem in the range of B: A need not vanish where B does
    residual = _residual(R, V, norm(A) + np.abs(values).max() * norm(B))
    status = Status.RANK_DEFICIENT if asked > rank else _judge(residual)
    return SpectralResult(V, values, float(values.sum()), rank, 1, residual, 0.0, status, asked)


def trace_ratio(
    A: np.ndarray, B: np.ndarray, n_components: int, *, tol: float = 1e-10, max_iter: int = 50
) -> SpectralResult:
    """Maximize tr(V'AV) / tr(V'BV) subject to V'V = I, to its global optimum.

    Let f(rho) be the sum of the m largest eigenvalues of A - rho B. f is convex and decreasing, and the optimum is its
    root. With V the eigenvectors at rho, Newton's step is `rho <- tr(V'AV) / tr(V'BV)`: it rises monotonically and
    converges quadratically (Wang et al., CVPR 2007; Ngo, Bellalij and Saad, SIAM Review 54, 2012), about 6
    decompositions where the bisection of Nie, Xiang and Zhang (NMMP, Table 1) needs 35.

    When m <= d - rank(B) ("case 2") V fits into the null space of B, the ratio has no finite optimum, and tr(V'AV) is
    maximized there.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric.
    B : array of shape (d, d)
        Positive semi-definite; its rank is decided relative to its largest eigenvalue (1e-10).
    n_components : int
        m.
    tol : float
        Stop when f(rho) <= tol (|tr V'AV| + |rho| tr V'BV): relative, because for m = d - rank(B) + 1 the optimum can
        be enormous.
    max_iter : int
        Decompositions allowed.

    Returns
    -------
    SpectralResult
        `values`: eigenvalues of A - rho B, descending (case 2: of A in the null space of B); `objective`: rho;
        UNBOUNDED in case 2, FLAT when A is zero in the directions found, RANK_DEFICIENT (with d columns) when m > d,
        NOT_CONVERGED when `max_iter` was reached.

    Raises
    ------
    ValueError
        If B is indefinite.
    """
    asked, m = n_components, min(n_components, len(B))
    beta, U = eigh(B)
    rank = _rank_of_psd(beta)
    nullity = len(B) - rank
    if not A.any():
        V = U[:, :m]
        return SpectralResult(V, np.zeros(m), 0.0, rank, 1, 0.0, 0.0, Status.FLAT, asked)
    if m <= nullity:
        return _trace_in_null_space(A, U[:, :nullity], rank, asked)
    rho = max(_trace(U[:, :m], A) / _trace(U[:, :m], B), np.trace(A) / np.trace(B))  # two lower bounds
    for n_iter in range(2, max_iter + 1):
        values, V = _extreme(A - rho * B, m, largest=True)
        a, b = _trace(V, A), _trace(V, B)
        size = abs(a) + abs(rho) * b
        gap = max(a - rho * b, 0.0) / size if size > 0 else 0.0
        if gap <= tol:
            break
        rho = a / b
    residual = _residual((A - rho * B) @ V - V * values, V, norm(A) + abs(rho) * norm(B))
    status = Status.NOT_CONVERGED if gap > tol else Status.RANK_DEFICIENT if asked > m else Status.OPTIMAL
    return SpectralResult(V, values, float(rho), rank, n_iter, residual, gap, status, asked)


def range_basis(S: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (d, r) of the range of a positive semi-definite S, largest eigenvalue first."""
    values, U = eigh(S)
    rank = _rank_of_psd(values)
    return U[:, : -rank - 1 : -1]


def _trace_in_null_space(A: np.ndarray, Z: np.ndarray, rank: int, asked: int) -> SpectralResult:
    """Case 2: the m directions of largest tr V'AV among the columns of Z, where B vanishes."""
    m = min(asked, len(A))
    values, E = _extreme(Z.T @ A @ Z, m, largest=True)
    residual = _residual(Z.T @ (A @ (Z @ E)) - E * values, E, norm(A))
    status = Status.UNBOUNDED if values.sum() > ZERO * np.trace(A) else Status.FLAT
    status = Status.RANK_DEFICIENT if asked > m else status
    return SpectralResult(Z @ E, values, np.inf, rank, 2, residual, 0.0, status, asked)


def _trace(V: np.ndarray, A: np.ndarray) -> float:
    """Return tr V'AV."""
    return float(np.einsum("ij,ij->", V, A @ V))


def _extreme(A: np.ndarray, m: int, *, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the m largest eigenvalues, descending, or the m smallest, ascending, with their vectors."""
    if not largest:
        values, V = _extreme(-A, m, largest=True)
        return -values, V
    d = len(A)
    if choose_solver(d, m) == "lanczos":
        return _lanczos_largest(aslinearoperator(A), m)
    values, V = eigh(A, subset_by_index=[d - m, d - 1])
    return values[::-1], V[:, ::-1]


def _lanczos_largest(A: LinearOperator, m: int) -> tuple[np.ndarray, np.ndarray]:
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
        values, V = eigh(A @ np.eye(d), subset_by_index=[d - m, d - 1])
    order = np.argsort(-values, kind="stable")
    return values[order], V[:, order]


def _residual(R: np.ndarray, V: np.ndarray, norm: float) -> float:
    """Return the largest `||r|| / (norm ||v||)` over the columns r = A v - lambda B v: the backward error."""
    size = norm * np.linalg.norm(V, axis=0)
    return float(np.max(np.linalg.norm(R, axis=0) / np.maximum(size, np.finfo(float).tiny)))


def _judge(residual: float) -> Status:
    return Status.OPTIMAL if residual <= 1e-6 else Status.NOT_CONVERGED


def _rank_of_psd(eigenvalues: np.ndarray) -> int:
    """Return how many of the ascending eigenvalues of B are not zero; refuse B when one is truly negative."""
    smallest, largest = eigenvalues[0], eigenvalues[-1]
    if smallest < -1e-6 * max(largest, -smallest):
        raise ValueError(
            f"B must be positive semi-definite; its eigenvalues lie between {smallest:.3g} and {largest:.3g}: "
            "take the scatter of a graph whose weights are not negative."
        )
    return int(np.sum(eigenvalues > ZERO * largest))
