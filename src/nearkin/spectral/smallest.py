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

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from .._memory import require_memory
from .lanczos import lanczos_largest
from .result import SpectralResult, Status, backward_error, judge

DENSE = 2000  # rows up to which LAPACK solves the whole problem in a second or two


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

    Up to 2,000 rows by LAPACK, beyond by Lanczos without any factorization.

    Parameters
    ----------
    M : csr_array of shape (n, n)
        Symmetric, definite or not.
    n_pairs : int
        m; at most n - 1 exist.
    null : csr_array of shape (n, J), optional
        Known null vectors of M: orthonormal columns without common rows, such as the scaled indicators of a graph's
        connected components. Those combinations of them that are orthogonal to q are eigenvectors of value 0; they
        need no iteration, and no repeated 0 is missed.
    excluded : array of shape (n,), optional
        q, not 0, of any length; by default all ones.
    tol : float
        Residual that Lanczos aims at, relative to a bound of the largest eigenvalue.
    start : array of shape (n,), optional
        Where Lanczos begins: the sum of vectors of a similar problem saves some of its steps.

    Returns
    -------
    SpectralResult
        `values` ascending; `residual` relative to the largest column of M, which is at most its norm; NOT_CONVERGED
        where it exceeds 1e-6, RANK_DEFICIENT, with n - 1 columns, where more pairs were asked for.

    Notes
    -----
    Memory: O(nnz(M) + n m), and O(n^2) up to 2,000 rows or where more than one pair in twenty is wanted.
    """
    n = M.shape[0]
    m = min(n_pairs, n - 1)
    q = np.ones(n) if excluded is None else excluded
    q = q / np.linalg.norm(q)
    if n <= DENSE or m > n // 20:
        values, V = _dense(M, m, q)
    else:
        with threadpool_limits(1, user_api="blas"):  # to wake threads for each vector costs more than it saves
            values, V = _sparse(M, m, csr_array((n, 0)) if null is None else null, q, tol, start)
    V -= np.outer(q, q @ V)
    V /= np.linalg.norm(V, axis=0)
    R = M @ V
    R -= np.outer(q, q @ R) + V * values
    residual = backward_error(R, V, np.sqrt(M.power(2).sum(axis=0).max()))
    status = Status.RANK_DEFICIENT if n_pairs > m else judge(residual)
    return SpectralResult(V, values, float(values.sum()), n - 1, 1, residual, 0.0, status, n_pairs)


def smallest_of_dense(H: np.ndarray, n_pairs: int, Q: np.ndarray) -> SpectralResult:
    """Minimize tr B'HB subject to B'B = I by LAPACK, and return V = QB for orthonormal Q as the vectors.

    RANK_DEFICIENT, with as many columns as H has, where more pairs were asked for.
    """
    m = min(n_pairs, len(H))
    values, B = eigh(H, subset_by_index=[0, m - 1])
    residual = backward_error(H @ B - B * values, B, np.sqrt(np.square(H).sum(axis=0).max()))
    status = Status.RANK_DEFICIENT if n_pairs > m else judge(residual)
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
    """Merge the known zeros with what Lanczos finds outside of them."""
    n = M.shape[0]
    transposed = csr_array(null.T)
    overlap = transposed @ q
    zeros = null @ _orthogonal_complement(overlap, m)
    overlap = overlap / (np.linalg.norm(overlap) or 1.0)

    def project(x: np.ndarray) -> np.ndarray:
        """Remove q and the part of the null space that is orthogonal to it."""
        if zeros.size:
            t = transposed @ x
            x = x - null @ (t - overlap * (overlap @ t))
        return x - q * (q @ x)

    shift = np.abs(M).sum(axis=1).max()  # at least the largest eigenvalue: what is removed comes last

    def multiply(x: np.ndarray) -> np.ndarray:
        """Return P(s I - M)x, which is symmetric among vectors that P leaves as they are."""
        return project(shift * x.ravel() - M @ x.ravel())

    outside = min(m, n - 1 - null.shape[1])
    if outside > 0:
        start = project(np.random.default_rng(0).standard_normal(n) if start is None else start)
        A = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
        V = lanczos_largest(_set_apart(A, outside, start), outside, tol=tol, start=start)[1]
        values, E = eigh(V.T @ (M @ V))
        V, values = np.hstack([zeros, V @ E]), np.concatenate([np.zeros(zeros.shape[1]), values])
    else:
        V, values = zeros, np.zeros(zeros.shape[1])
    order = np.argsort(values, kind="stable")[:m]
    return values[order], V[:, order]


def _set_apart(A: LinearOperator, m: int, start: np.ndarray) -> LinearOperator:
    """Return T_d(2 A / b - 1), which has the m largest eigenpairs of A >= 0 as its own, far from the others.

    The Chebyshev polynomial T_d stays within 1 on [0, b] and grows fast, and monotonically, above. b lies below the
    m-th Ritz value of a rough look, which is at most the m-th eigenvalue; d is such that the largest becomes about 1e5,
    so that rounding stays 1e-11 of the smallest.
    """
    rough = eigsh(A, m, which="LA", tol=0.1, v0=start, return_eigenvectors=False)
    top, least = rough.max(), rough.min()
    b = least - max((top - least) / 4, top / 50)
    degree = int(np.arccosh(1e5) / np.arccosh(2 * top / b - 1)) if b > 0 else 0
    if degree < 2:
        return A

    def polynomial(x: np.ndarray) -> np.ndarray:
        last, current = x.ravel(), (2 / b) * (A @ x.ravel()) - x.ravel()
        for _ in range(degree - 1):
            last, current = current, 2 * ((2 / b) * (A @ current) - current) - last
        return current

    return LinearOperator(A.shape, matvec=polynomial, dtype=np.float64)


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
