"""The smallest eigenpairs orthogonal to a vector: sparse against dense, whatever the signs and the
components.
"""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError
from sklearn.exceptions import ConvergenceWarning

from nearkin.graphs import (
    connected_components,
    coupled_rows,
    heat_kernel,
    indicators,
    laplacian,
    normalized_laplacian,
    union,
)
from nearkin.neighbors import nearest
from nearkin.spectral import SpectralStatus, smallest_eigenpairs, sparse_eigen, spectral_norm


def graph(n, n_parts=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)) + 30.0 * (np.arange(n) % n_parts)[:, None]
    return union(heat_kernel(nearest(X, 8)))


def signed_cost(n, seed=0):
    """Return the Laplacian of a few strong negative and positive edges."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.choice(n, (2, 40), replace=False)
    weights = np.where(np.arange(40) % 2, -1.0, 1.0) * rng.uniform(1, 3, 40)
    C = csr_array((weights, (rows, columns)), shape=(n, n))
    return laplacian(csr_array(C + C.T))


def null_space(W, normalized=False):
    d = W.sum(axis=1)
    return indicators(connected_components(W), np.sqrt(d) if normalized else np.ones(len(d)))


def problem(name, n):
    if name == "Laplacian":
        W = graph(n)
        return laplacian(W), null_space(W)
    if name == "several components":
        W = graph(n, 4)
        return laplacian(W), null_space(W)
    if name == "normalized, several components":
        W = graph(n, 4)
        return normalized_laplacian(W), null_space(W, normalized=True)
    M = csr_array(laplacian(graph(n, 3)) + signed_cost(n))
    return M, null_space(csr_array(abs(M)))


PROBLEMS = (
    "Laplacian",
    "several components",
    "normalized, several components",
    "negative eigenvalues",
)


@pytest.mark.parametrize("name", PROBLEMS)
def test_sparse_is_dense(name, monkeypatch):
    M, null = problem(name, 500)
    dense = smallest_eigenpairs(M, 13)
    monkeypatch.setattr(sparse_eigen, "DENSE", 100)
    sparse = smallest_eigenpairs(M, 12, null)
    gap = dense.values[12] - dense.values[11]
    size = np.sqrt(M.power(2).sum(axis=0).max())
    allowed = max(1e-6, 100 * np.finfo(float).eps * size / gap)
    np.testing.assert_allclose(sparse.values, dense.values[:12], atol=1e-10 * size)
    assert subspace_angles(sparse.vectors, dense.vectors[:, :12]).max() <= allowed
    assert sparse.status is SpectralStatus.OPTIMAL
    assert sparse.residual < 1e-7
    if name == "negative eigenvalues":
        assert sparse.values[0] < -1


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("few_are_dense", [2000, 100])
def test_optimality(name, few_are_dense, monkeypatch):
    monkeypatch.setattr(sparse_eigen, "DENSE", few_are_dense)
    n = 200
    M, null = problem(name, n)
    rng = np.random.default_rng(1)
    q = rng.uniform(1, 2, n)
    for excluded in (np.ones(n), q):
        result = smallest_eigenpairs(M, 9, null, excluded=excluded)
        V, P = result.vectors, np.eye(n) - np.outer(excluded, excluded) / (excluded @ excluded)
        np.testing.assert_allclose(V.T @ V, np.eye(9), atol=1e-9)
        np.testing.assert_allclose(excluded @ V, 0, atol=1e-9)
        np.testing.assert_allclose(P @ (M @ V), V * result.values, atol=1e-7)
        expected = np.linalg.eigvalsh(P @ M.toarray() @ P + 1e6 * (np.eye(n) - P))[:9]
        np.testing.assert_allclose(result.values, expected, atol=1e-8)


def test_all_zeros_of_many_components(monkeypatch):
    monkeypatch.setattr(sparse_eigen, "DENSE", 100)
    blocks, size = 30, 25
    W = csr_array(np.kron(np.eye(blocks), np.ones((size, size)) - np.eye(size)))
    result = smallest_eigenpairs(laplacian(W), 31, null_space(W))
    np.testing.assert_allclose(result.values[:29], 0, atol=1e-12)
    np.testing.assert_allclose(result.values[29:], size)
    within = result.vectors[:, :29].reshape(blocks, size, 29)
    np.testing.assert_allclose(within - within[:, :1], 0, atol=1e-12)


def test_repeated_eigenvalues_of_unknown_origin(monkeypatch):
    """Two equal blocks: every eigenvalue is there twice."""
    monkeypatch.setattr(sparse_eigen, "DENSE", 100)
    L = laplacian(graph(200)).toarray()
    M = csr_array(np.block([[L, np.zeros_like(L)], [np.zeros_like(L), L]]))
    expected = np.linalg.eigvalsh(M.toarray())[1:9]
    np.testing.assert_allclose(smallest_eigenpairs(M, 8).values, expected, atol=1e-8)


def test_more_pairs_than_there_are():
    result = smallest_eigenpairs(laplacian(graph(20)), 25)
    assert result.vectors.shape == (20, 19)
    assert result.status is SpectralStatus.RANK_DEFICIENT


@pytest.mark.parametrize("lanczos_fails", [False, True])
def test_the_spectral_norm_is_the_largest_absolute_eigenvalue(lanczos_fails, monkeypatch):
    def failing(*args, **options):
        raise ArpackError(-9999)

    if lanczos_fails:
        monkeypatch.setattr(sparse_eigen, "eigsh", failing)
    M = problem("negative eigenvalues", 150)[0]
    for signed in (M, -M):
        expected = np.abs(np.linalg.eigvalsh(M.toarray())).max()
        assert spectral_norm(signed) == pytest.approx(expected, rel=1e-12)


def outliers(seed, n, p, df):
    """Heavy tails: some edges have weights of rounding size, which count as null vectors, not as
    components.
    """
    X = np.random.default_rng(seed).standard_t(df, (n, p))
    return union(heat_kernel(nearest(X, 10), cut=0.0))


def uneven(n, decades):
    rng = np.random.default_rng(0)
    W, s = graph(n), 10.0 ** (-rng.uniform(0, decades, n) / 2)
    return csr_array(W.multiply(s[:, None]).multiply(s[None, :]))


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    "W",
    [
        outliers(10, 700, 5, 2.0),
        outliers(12, 700, 5, 2.0),
        outliers(0, 700, 3, 1.5),
        uneven(300, 8),
        uneven(300, 300),
    ],
    ids=["5 features", "again", "3 features", "8 decades", "300 decades"],
)
@pytest.mark.parametrize("normalized", [False, True])
def test_no_small_eigenvalue_is_missed_among_many(W, normalized, monkeypatch):
    L = normalized_laplacian(W) if normalized else laplacian(W)
    q = np.sqrt(W.sum(axis=1)) if normalized else np.ones(W.shape[0])
    null = indicators(coupled_rows(L), q)
    dense = smallest_eigenpairs(L, 9, excluded=q)
    monkeypatch.setattr(sparse_eigen, "DENSE", 100)
    sparse = smallest_eigenpairs(L, 9, null, excluded=q)
    np.testing.assert_allclose(sparse.values, dense.values, atol=1e-9 * abs(L).max())
    assert sparse.status is SpectralStatus.OPTIMAL


def test_what_is_left_unsolved_warns(monkeypatch):
    monkeypatch.setattr(sparse_eigen, "DENSE", 100)
    monkeypatch.setattr(sparse_eigen, "STILL_DENSE", 100)
    monkeypatch.setattr(sparse_eigen, "RESTARTS", 1)
    monkeypatch.setattr(sparse_eigen, "ROUNDS", 1)
    W = uneven(300, 20)
    result = smallest_eigenpairs(laplacian(W), 9)
    assert result.status is SpectralStatus.UNRESOLVED
    with pytest.warns(ConvergenceWarning, match="too close together"):
        result.warn()


def test_negative_edges_among_isolated_rows():
    W = csr_array(([-1.0] * 6, ([0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4])), shape=(2100, 2100))
    L = laplacian(W)
    null = indicators(connected_components(W), np.ones(2100))
    np.testing.assert_allclose(
        smallest_eigenpairs(L, 5, null).values, [-2, -2, -2, 0, 0], atol=1e-12
    )
