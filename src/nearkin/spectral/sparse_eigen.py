"""The smallest eigenpairs of a large sparse symmetric matrix, orthogonal to a given vector.

The smallest eigenvalues of a graph Laplacian, with or without a signed cost of labels, are close
together, which has two consequences:

* A factorization at a shift near 0 has fill-in (a minute and a gigabyte for 12,000 rows of a 20-NN
  graph), and finds the wrong end of the spectrum if the matrix is indefinite. Lanczos at the upper
  end of `s I - M` only needs products, but many steps, whose orthogonalization costs ten
  times as much as the products. It is therefore applied to a polynomial of that matrix which
  separates the wanted eigenvalues: fewer steps with more products each.
* A Krylov sequence finds a repeated eigenvalue only once, with a tiny residual; in particular the 0
  of every connected component. The known null space is therefore constructed instead of computed,
  and the rest is checked from random vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from .._memory import require_memory
from .._threads import blas_in_one_thread
from ..linalg import eigh
from .criteria import SOLVED, SpectralResult, SpectralStatus, eigen_result

DENSE = 2000  # rows up to which LAPACK solves the whole problem in a second or two
STILL_DENSE = 8000  # up to which it does so, in a minute, where iterating leaves pairs unsolved
TOL = 1e-8  # of Lanczos, relative to a bound on the largest eigenvalue
NULL = 1e-14  # relative residual of a null vector
RESTARTS = 100  # of Lanczos; pairs missing after these are left to the subspace iteration
EXTRA, FILTERINGS, ROUNDS = 8, 4, 20  # random vectors to find missed pairs; rounds at most

Product = Callable[[np.ndarray], np.ndarray]  # of a vector, or of columns
Pairs = tuple[np.ndarray, np.ndarray]  # eigenvalues, ascending, and vectors as columns


def smallest_eigenpairs(
    M: csr_array,
    n_pairs: int,
    null: csr_array | None = None,
    *,
    excluded: np.ndarray | None = None,
) -> SpectralResult:
    """Minimize tr V'MV subject to V'V = I and V'q = 0: the smallest eigenpairs of PMP, P = I - qq'.

    Up to 2,000 rows (8,000 if more than a tenth of the entries are stored) LAPACK is used, for more
    Lanczos, without any factorization.

    Parameters
    ----------
    M : csr_array of shape (n, n)
        Symmetric, possibly indefinite.
    n_pairs : int
        m; at most n - 1 exist.
    null : csr_array of shape (n, J), optional
        Likely null vectors of M: orthonormal columns without common rows, such as the scaled
        indicators of a graph's connected components. Those that M does not map to 0 (1e-14) are
        ignored. Combinations of the others that are orthogonal to q are eigenvectors with
        eigenvalue 0 and need no iteration.
    excluded : array of shape (n,), optional
        q, nonzero, of any length; by default all ones.

    Returns
    -------
    SpectralResult
        `values` ascending. `residual` is relative to the largest column norm of M, which is at most
        its norm. UNRESOLVED if it exceeds 1e-6 (LAPACK has then been tried up to 8,000 rows);
        RANK_DEFICIENT, with n - 1 columns, if more pairs were requested. The residual of a pair
        does not show whether another pair has a smaller eigenvalue.

    Notes
    -----
    Memory: O(nnz(M) + n m), and O(n^2) up to 2,000 rows or if more than one pair in twenty is
    requested.
    """
    n = M.shape[0]
    m = min(n_pairs, n - 1)
    q = np.ones(n) if excluded is None else excluded
    q = q / np.linalg.norm(q)
    size = np.sqrt(M.power(2).sum(axis=0).max())
    null = (
        csr_array((n, 0))
        if null is None
        else null[:, np.sqrt((M @ null).power(2).sum(axis=0)) <= NULL * size]
    )
    solvers = [_sparse, _dense] if n <= STILL_DENSE else [_sparse]
    if n <= DENSE or m > n // 20 or (n <= STILL_DENSE and M.nnz > n * n // 10):
        solvers = [_dense]
    for solve in solvers:
        values, V = solve(M, m, q, null)
        V = V - np.outer(q, q @ V)  # exactly orthogonal to q, and of unit length
        V /= np.linalg.norm(V, axis=0)
        R = M @ V
        R -= np.outer(q, q @ R) + V * values
        result = eigen_result(V, values, R, size, n - 1, n_pairs, SpectralStatus.UNRESOLVED)
        if result.residual <= SOLVED:
            break
    return result


def smallest_of_dense(H: np.ndarray, n_pairs: int, Q: np.ndarray) -> SpectralResult:
    """Minimize tr B'HB subject to B'B = I by LAPACK; return the vectors V = QB."""
    values, B = eigh(H, subset_by_index=(0, min(n_pairs, len(H)) - 1))
    R = Q @ (H @ B - B * values)
    size = np.linalg.norm(H, axis=0).max()
    return eigen_result(Q @ B, values, R, size, len(H), n_pairs, SpectralStatus.UNRESOLVED)


def spectral_norm(M: csr_array) -> float:
    """Return the largest absolute eigenvalue of a symmetric matrix, by Lanczos or else LAPACK."""
    n = M.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    try:
        largest = eigsh(M, 1, which="LM", v0=start, return_eigenvectors=False)
    except ArpackError:
        what = f"A matrix of order {n}, on which Lanczos gave up,"
        require_memory(2 * 8 * n * n, what, "scale the features first")
        largest = eigvalsh(M.toarray())
    return float(np.abs(largest).max())


def _dense(M: csr_array, m: int, q: np.ndarray, null: csr_array) -> Pairs:
    n = M.shape[0]
    require_memory(3 * 8 * n * n, f"The dense eigenproblem of {n} rows", "ask for fewer components")
    above = 2 * np.abs(M).sum(axis=1).max()  # the eigenvalue of q, above all others
    A = M.toarray()
    A -= np.outer(q, q @ A)
    A -= np.outer(A @ q, q)
    A += above * np.outer(q, q)
    return eigh((A + A.T) / 2, subset_by_index=(0, m - 1))


def _sparse(M: csr_array, m: int, q: np.ndarray, null: csr_array) -> Pairs:
    """Merge the known null vectors with the pairs found orthogonal to them."""
    n, n_null = null.shape
    null_t = csr_array(null.T)
    w = null_t @ q
    # m null vectors orthogonal to q
    zeros = null @ np.linalg.qr(np.column_stack([w, np.eye(n_null, m)]))[0][:, 1:]
    w /= np.linalg.norm(w) or 1.0

    def project(X: np.ndarray) -> np.ndarray:
        """Remove q, and all null vectors that are orthogonal to it."""
        if n_null > 1:
            T = null_t @ X
            X = X - null @ (T - np.multiply.outer(w, w @ T))
        return X - np.multiply.outer(q, q @ X)

    # at least the largest eigenvalue, so that what is removed comes last
    shift = np.abs(M).sum(axis=1).max()

    def A(X: np.ndarray) -> np.ndarray:
        return project(shift * X - M @ X)

    rng = np.random.default_rng(0)
    start = rng.standard_normal(n)
    n_other = min(m, n - max(n_null, 1))
    V, values = zeros, np.zeros(zeros.shape[1])
    if n_other > 0:
        # waking threads for each vector would cost more
        with blas_in_one_thread():
            others = _largest(A, project, project(start), n_other, rng)
            other_values, E = eigh(others.T @ (M @ others))
        V, values = np.hstack([zeros, others @ E]), np.concatenate([values, other_values])
    order = np.argsort(values, kind="stable")[:m]
    return values[order], V[:, order]


def _largest(
    A: Product, project: Product, start: np.ndarray, m: int, rng: np.random.Generator
) -> np.ndarray:
    """Return an orthonormal basis V (n, m) of the m leading eigenvectors of A >= 0.

    They are in the range of the projection `project`. Lanczos finds only one vector of a repeated
    eigenvalue, or of many that only differ in their last digits, with tiny residuals. Therefore
    some random vectors orthogonal to V are filtered, too. If the span of both has larger Ritz
    values, pairs were missed, and the subspace is iterated with the filter F until there are no
    larger ones.
    """
    n = len(start)
    F = _chebyshev_filter(A, m, start)
    try:
        V = eigsh(_operator(F, n), m, which="LA", tol=TOL, v0=start, maxiter=RESTARTS)[1]
    except ArpackError as stopped:  # some may have converged
        V = getattr(stopped, "eigenvectors", np.empty((n, 0)))
    V = np.linalg.qr(project(V))[0]
    trace = float(np.vdot(V, A(V))) if V.shape[1] == m else -np.inf
    for _ in range(ROUNDS):
        Y = project(rng.standard_normal((n, m - V.shape[1] + EXTRA)))
        for _ in range(FILTERINGS):
            Y = F(Y)
            Y = np.linalg.qr(Y - V @ (V.T @ Y))[0]
        V, larger_trace = _ritz(A, np.hstack([V, Y]), m)
        if larger_trace <= trace * (1 + 1e-12):
            break
        for _ in range(FILTERINGS):
            V = F(V)
        V, trace = _ritz(A, V, m)
    return V


def _ritz(A: Product, S: np.ndarray, m: int) -> tuple[np.ndarray, float]:
    """Return the m leading Ritz vectors of A in the span of S, and the sum of their values."""
    S = np.linalg.qr(S)[0]
    H = S.T @ A(S)
    values, E = eigh((H + H.T) / 2)
    return S @ E[:, : -m - 1 : -1], float(values[-m:].sum())


def _chebyshev_filter(A: Product, m: int, start: np.ndarray) -> Product:
    """Return T_d(2 A / b - 1), which amplifies the m largest eigenpairs of A >= 0.

    The Chebyshev polynomial T_d is bounded by 1 on [0, b] and grows fast, and monotonically, above.
    b is below the m-th Ritz value of a rough iteration, which is at most the m-th eigenvalue. d is
    chosen such that the largest value becomes about 1e5, so that rounding errors stay about 1e-11
    of the smallest.
    """
    try:
        options = {"tol": 0.1, "v0": start, "maxiter": RESTARTS, "return_eigenvectors": False}
        rough = eigsh(_operator(A, len(start)), m, which="LA", **options)
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


def _operator(A: Product, n: int) -> LinearOperator:
    return LinearOperator((n, n), matvec=A, dtype=np.float64)
