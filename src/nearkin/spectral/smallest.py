"""The smallest eigenpairs of a large sparse symmetric matrix, orthogonal to a given vector (the constant one).

A graph Laplacian, with or without a signed cost of labels added, has its information at the low end of the spectrum,
between eigenvalues that stand close together. Two traps lie there:

* To factorize the matrix at a shift near 0 fills it in (a minute and a gigabyte for 12,000 rows of a 20-NN graph), and
  finds the wrong end where the matrix is indefinite. Lanczos on the largest end of `s I - M` needs products only, but
  many steps, and to keep them orthogonal costs ten times as much as the products. So it runs on a polynomial of that
  matrix, which sets the wanted eigenvalues apart: each step takes more products, and there are few steps.
* A repeated eigenvalue, above all the 0 of every connected component, is seen once by a Krylov sequence, with a tiny
  residual. What is known of the null space is therefore written down, not computed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from .._memory import require_memory
from .result import SpectralResult, Status, backward_error, status_of

DENSE = 2000  # rows up to which LAPACK solves the whole problem in a second or two
STILL_DENSE = 8000  # rows up to which it may solve, in a minute, what the iteration has left unsolved
SOLVED = 1e-6  # relative residual
NULL = 1e-14  # relative residual of a null vector
RESTARTS = 100  # of Lanczos; what it then lacks is left to the iteration of the space
EXTRA, LOOKS, ROUNDS = (
    8,
    4,
    20,
)  # random vectors that look for what was missed, how often they are filtered, and at most

Product = Callable[[np.ndarray], np.ndarray]  # of a matrix with columns


def smallest_eigenpairs(
    M: csr_array,
    n_pairs: int,
    null: csr_array | None = None,
    *,
    excluded: np.ndarray | None = None,
    tol: float = 1e-8,
    start: np.ndarray | None = None,
) -> SpectralResult:
    """Minimize tr V'MV subject to V'V = I and V'q = 0: the smallest eigenpairs of PMP, P = I - qq'.

    Up to 2,000 rows (8,000 for a matrix that is not sparse) by LAPACK, beyond by Lanczos without any factorization.

    Parameters
    ----------
    M : csr_array of shape (n, n)
        Symmetric, definite or not.
    n_pairs : int
        m; at most n - 1 exist.
    null : csr_array of shape (n, J), optional
        Likely null vectors of M: orthonormal columns without common rows, such as the scaled indicators of a graph's
        connected components. Those that M does not send to 0 (1e-14) are ignored. Those combinations of the others that
        are orthogonal to q are eigenvectors of value 0; they need no iteration, and no repeated 0 is missed.
    excluded : array of shape (n,), optional
        q, not 0, of any length; by default all ones.
    tol : float
        Residual that Lanczos aims at, relative to a bound of the largest eigenvalue.
    start : array of shape (n,), optional
        Where Lanczos begins: the sum of vectors of a similar problem saves some of its steps.

    Returns
    -------
    SpectralResult
        `values` ascending; `residual` relative to the largest column of M, which is at most its norm; UNRESOLVED where
        it exceeds 1e-6 (LAPACK has then been tried up to 8,000 rows), RANK_DEFICIENT, with n - 1 columns, where more
        pairs were requested. A residual is that of a pair: it cannot tell whether another pair is smaller.

    Notes
    -----
    Memory: O(nnz(M) + n m), and O(n^2) up to 2,000 rows or where more than one pair in twenty is wanted.
    """
    n = M.shape[0]
    m = min(n_pairs, n - 1)
    q = np.ones(n) if excluded is None else excluded
    q = q / np.linalg.norm(q)
    size = np.sqrt(M.power(2).sum(axis=0).max())
    if n <= DENSE or m > n // 20 or (n <= STILL_DENSE and M.nnz > n * n // 10):
        values, V, residual = _judged(M, q, size, *_dense(M, m, q))
    else:
        null = csr_array((n, 0)) if null is None else null[:, np.sqrt((M @ null).power(2).sum(axis=0)) <= NULL * size]
        with threadpool_limits(1, user_api="blas"):  # to wake threads for each vector costs more than it saves
            values, V = _sparse(M, m, csr_array(null), q, tol, start)
        values, V, residual = _judged(M, q, size, values, V)
        if residual > SOLVED and n <= STILL_DENSE:
            values, V, residual = _judged(M, q, size, *_dense(M, m, q))
    status = Status.RANK_DEFICIENT if n_pairs > m else Status.OPTIMAL if residual <= SOLVED else Status.UNRESOLVED
    return SpectralResult(V, values, float(values.sum()), n - 1, 1, residual, 0.0, status, n_pairs)


def _judged(
    M: csr_array, q: np.ndarray, size: float, values: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return eigenpairs exactly orthogonal to q and of unit length, and their largest residual."""
    V = V - np.outer(q, q @ V)
    V /= np.linalg.norm(V, axis=0)
    R = M @ V
    R -= np.outer(q, q @ R) + V * values
    return values, V, backward_error(R, V, size)


def smallest_of_dense(H: np.ndarray, n_pairs: int, Q: np.ndarray) -> SpectralResult:
    """Minimize tr B'HB subject to B'B = I by LAPACK, and return V = QB for orthonormal Q as the vectors.

    RANK_DEFICIENT, with as many columns as H has, where more pairs were requested.
    """
    m = min(n_pairs, len(H))
    values, B = eigh(H, subset_by_index=[0, m - 1])
    residual = backward_error(H @ B - B * values, B, np.sqrt(np.square(H).sum(axis=0).max()))
    status = Status.RANK_DEFICIENT if n_pairs > m else status_of(residual)
    return SpectralResult(Q @ B, values, float(values.sum()), len(H), 1, residual, 0.0, status, n_pairs)


def _dense(M: csr_array, m: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = M.shape[0]
    require_memory(3 * 8 * n * n, f"The dense eigenproblem of {n} rows", "ask for fewer components")
    above = 2 * np.abs(M).sum(axis=1).max()  # q goes there, above all eigenvalues
    A = M.toarray()
    A -= np.outer(q, q @ A)
    A -= np.outer(A @ q, q)
    A += above * np.outer(q, q)
    return eigh((A + A.T) / 2, subset_by_index=[0, m - 1])


def _sparse(
    M: csr_array, m: int, null: csr_array, q: np.ndarray, tol: float, start: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Merge the known zeros with what is found outside of them."""
    n, n_null = null.shape
    transposed = csr_array(null.T)
    overlap = transposed @ q
    zeros = null @ _orthogonal_complement(overlap, m)
    q_is_null = np.linalg.norm(overlap) > 1 - 1e-8
    overlap = overlap / (np.linalg.norm(overlap) or 1.0)

    def project(X: np.ndarray) -> np.ndarray:
        """Remove q and the part of the null space that is orthogonal to it from columns."""
        if zeros.size:
            T = transposed @ X
            X = X - null @ (T - np.outer(overlap, overlap @ T))
        return X - np.outer(q, q @ X)

    shift = np.abs(M).sum(axis=1).max()  # at least the largest eigenvalue: what is removed comes last

    def multiply(X: np.ndarray) -> np.ndarray:
        """Return P(s I - M)X, which is symmetric among vectors that P leaves as they are."""
        return project(shift * X - M @ X)

    V, values = zeros, np.zeros(zeros.shape[1])
    outside = min(m, n - n_null - (not q_is_null))
    if outside > 0:
        rng = np.random.default_rng(0)
        start = rng.standard_normal(n) if start is None else start
        found = _largest(multiply, project, project(start[:, None]), outside, tol, rng)
        found_values, E = eigh(found.T @ (M @ found))
        V, values = np.hstack([zeros, found @ E]), np.concatenate([values, found_values])
    order = np.argsort(values, kind="stable")[:m]
    return values[order], V[:, order]


def _largest(
    A: Product, project: Product, start: np.ndarray, m: int, tol: float, rng: np.random.Generator
) -> np.ndarray:
    """Return an orthonormal basis (n, m) of the m largest eigenpairs of A >= 0 in the range of a projection."""
    n = len(start)
    F = _set_apart(A, m, start)
    operator = LinearOperator((n, n), matvec=lambda x: F(x.reshape(n, 1)).ravel(), dtype=np.float64)
    try:
        V = eigsh(operator, m, which="LA", tol=tol, v0=start.ravel(), maxiter=RESTARTS)[1]
    except ArpackNoConvergence as stopped:
        V = stopped.eigenvectors
    except ArpackError:
        V = np.empty((n, 0))
    return _completed(A, F, project, V, m, rng)


def _completed(A: Product, F: Product, project: Product, V: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Return the m largest eigenpairs of A, given most of them: none is missed because its eigenvalue is repeated.

    A Krylov sequence sees one vector of a repeated eigenvalue, or of many that differ in their last digits only, with
    tiny residuals. So some random vectors outside of V are sent through the filter F; if the space of both holds
    larger Ritz values, V was not all, and the space is iterated with F until it holds no larger ones.
    """
    V = _orthonormal(project(V))
    best = -np.inf
    if V.shape[1] == m:
        best = np.einsum("ij,ij->", V, A(V))
    for _ in range(ROUNDS):
        Y = project(rng.standard_normal((len(V), m - V.shape[1] + EXTRA)))
        for _ in range(LOOKS):
            Y = F(Y)
            Y = _orthonormal(Y - V @ (V.T @ Y))
        V, trace = _leading(A, np.hstack([V, Y - V @ (V.T @ Y)]), m)
        if trace <= best * (1 + 1e-12):
            break
        for _ in range(LOOKS):
            V = F(V)
        V, best = _leading(A, _orthonormal(V), m)
    return V


def _leading(A: Product, S: np.ndarray, m: int) -> tuple[np.ndarray, float]:
    """Return the m leading Ritz vectors of A in the span of S, and the sum of their values."""
    S = _orthonormal(S)
    H = S.T @ A(S)
    values, E = eigh((H + H.T) / 2)
    return S @ E[:, : -m - 1 : -1], float(values[-m:].sum())


def _orthonormal(S: np.ndarray) -> np.ndarray:
    return qr(S, mode="economic", check_finite=False)[0] if S.shape[1] else S


def _set_apart(A: Product, m: int, start: np.ndarray) -> Product:
    """Return T_d(2 A / b - 1), which has the m largest eigenpairs of A >= 0 as its own, far from the others.

    The Chebyshev polynomial T_d stays within 1 on [0, b] and grows fast, and monotonically, above. b lies below the
    m-th Ritz value of a rough look, which is at most the m-th eigenvalue; d is such that the largest becomes about 1e5,
    so that rounding stays 1e-11 of the smallest.
    """
    n = len(start)
    operator = LinearOperator((n, n), matvec=lambda x: A(x.reshape(n, 1)).ravel(), dtype=np.float64)
    try:
        rough = eigsh(operator, m, which="LA", tol=0.1, v0=start.ravel(), return_eigenvectors=False, maxiter=RESTARTS)
    except ArpackError:
        return A
    top, least = rough.max(), rough.min()
    b = least - max((top - least) / 4, top / 50)
    degree = int(np.arccosh(1e5) / np.arccosh(2 * top / b - 1)) if b > 0 else 0
    if degree < 2:
        return A

    def polynomial(X: np.ndarray) -> np.ndarray:
        last, current = X, (2 / b) * A(X) - X
        for _ in range(degree - 1):
            last, current = current, 2 * ((2 / b) * A(current) - current) - last
        return current

    return polynomial


def _orthogonal_complement(w: np.ndarray, m: int) -> np.ndarray:
    """Return up to m orthonormal vectors orthogonal to w, shape (J, <= m).

    The columns of the reflection that turns w into its first axis, but for the first.
    """
    if len(w) < 2:
        return np.empty((len(w), 0))
    w = w.copy()
    w[0] += np.copysign(np.linalg.norm(w), w[0])
    kept = np.arange(1, min(len(w), m + 1))
    reflection = -np.outer(w, w[kept]) * (2 / (w @ w))
    reflection[kept, kept - 1] += 1.0
    return reflection
