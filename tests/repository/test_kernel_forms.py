"""A linear method after `KernelPCA` is the kernel method: against the problem in kernel
coefficients, written out.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from nearkin import DNE, LFDA

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "kernels.md"
QUADRATIC = {"kernel": "poly", "degree": 2, "gamma": 1, "coef0": 1}
GAUSSIAN = {"kernel": "rbf", "gamma": 1.5}
A_NUMBER = re.compile(r"^(\w.*)  # ([\d.]+)$", re.MULTILINE)


def circles(n=50, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 5
    radius, angle = 1 + 0.3 * y + 0.03 * rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def kernel(A, B, settings):
    return pairwise_kernels(
        A, B, settings["kernel"], **{k: v for k, v in settings.items() if k != "kernel"}
    )


class KernelProblem:
    """Rows known by their kernel only: K and k(x, .), centred; squared distances; an orthonormal
    basis of K's range.
    """

    def __init__(self, X, settings):
        self.X, self.settings = X, settings
        self.G = kernel(X, X, settings)
        C = np.eye(len(X)) - 1 / len(X)
        self.K = C @ self.G @ C
        values, U = eigh(self.K)
        self.U = U[:, values > 1e-10 * values.max()]
        d = np.diag(self.G)
        self.D2 = d[:, None] - 2 * self.G + d
        np.fill_diagonal(self.D2, 0)

    def new(self, T):
        k = kernel(T, self.X, self.settings)
        return k - k.mean(axis=1, keepdims=True) - self.G.mean(axis=0) + self.G.mean()

    def solve(self, A, B):
        """Return the eigenvalues of A alpha = lambda B alpha, ascending, and alpha with alpha'B
        alpha = 1.
        """
        values, E = eigh(self.U.T @ A @ self.U, self.U.T @ B @ self.U)
        return values, self.U @ E


def laplacian(W):
    return np.diag(W.sum(axis=1)) - W


def signed_neighbours(D2, y, k):
    """Return F of DNE, eq. 1."""
    F = np.zeros(D2.shape)
    for i in range(len(y)):
        for sign, candidates in [(1, (y == y[i]) & (np.arange(len(y)) != i)), (-1, y != y[i])]:
            found = np.flatnonzero(candidates)
            found = found[np.argsort(D2[i, found])[:k]]
            F[i, found] = F[found, i] = sign
    return F


def fisher_weights(D2, y, k):
    """Return LFDA's W^w and W^b; k=None puts a_ij = 1, which is Fisher's discriminant analysis."""
    n = len(y)
    W_w, W_b = np.zeros((n, n)), np.full((n, n), 1 / n)
    for c in np.unique(y):
        same = np.ix_(y == c, y == c)
        scale = (
            np.full(np.sum(y == c), np.inf)
            if k is None
            else np.sqrt(np.sort(D2[same], axis=1)[:, k])
        )
        a = np.exp(-D2[same] / np.outer(scale, scale))
        W_w[same] = a / np.sum(y == c)
        W_b[same] = a * (1 / n - 1 / np.sum(y == c))
    return W_w, W_b


def assert_same_columns(Z, expected):
    """Up to the length and sign of every column."""
    Z, expected = Z / np.linalg.norm(Z, axis=0), expected / np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(np.abs(np.sum(Z * expected, axis=0)), 1, atol=1e-7)


@pytest.mark.parametrize("settings", [QUADRATIC, GAUSSIAN], ids=["quadratic", "gaussian"])
def test_kernel_dne(settings):
    (X, y), (T, _) = circles(), circles(20, seed=1)
    pipeline = make_pipeline(KernelPCA(**settings), DNE(n_neighbors=3)).fit(X, y)
    dne, problem = pipeline[-1], KernelProblem(X, settings)
    K, L = problem.K, laplacian(signed_neighbours(problem.D2, y, 3))
    values, alpha = problem.solve(K @ L @ K, K)
    m = dne.n_components_
    assert m == np.sum(values < 0)
    np.testing.assert_allclose(dne.eigenvalues_[:m], values[:m], atol=1e-8 * np.abs(values).max())
    assert_same_columns(pipeline.transform(X), K @ alpha[:, :m])
    assert_same_columns(pipeline.transform(T), problem.new(T) @ alpha[:, :m])
    np.testing.assert_allclose(
        np.linalg.norm(pipeline.transform(X), axis=0),
        np.linalg.norm(K @ alpha[:, :m], axis=0),
        rtol=1e-6,
    )


def test_kernel_fisher():
    (X, y), (T, _) = circles(), circles(20, seed=1)
    pipeline = make_pipeline(KernelPCA(**QUADRATIC), LinearDiscriminantAnalysis()).fit(X, y)
    problem = KernelProblem(X, QUADRATIC)
    K, (W_w, W_b) = problem.K, fisher_weights(problem.D2, y, None)
    _, alpha = problem.solve(K @ laplacian(W_b) @ K, K @ laplacian(W_w) @ K)
    assert_same_columns(pipeline.transform(X), K @ alpha[:, :-5:-1])
    assert_same_columns(pipeline.transform(T), problem.new(T) @ alpha[:, :-5:-1])


def test_kernel_lfda():
    (X, y), (T, _) = circles(), circles(20, seed=1)
    pipeline = make_pipeline(KernelPCA(**QUADRATIC), LFDA(n_neighbors=4, shrinkage=None)).fit(X, y)
    problem = KernelProblem(X, QUADRATIC)
    K, (W_w, W_b) = problem.K, fisher_weights(problem.D2, y, 4)
    values, alpha = problem.solve(K @ laplacian(W_b) @ K, K @ laplacian(W_w) @ K)
    np.testing.assert_allclose(pipeline[-1].eigenvalues_, (values / (1 + values))[::-1], rtol=1e-7)
    assert_same_columns(pipeline.transform(X), K @ alpha[:, ::-1])
    assert_same_columns(pipeline.transform(T), problem.new(T) @ alpha[:, ::-1])
    spread = [
        np.diag(Z.T @ laplacian(W_w) @ Z) for Z in (pipeline.transform(X), K @ alpha[:, ::-1])
    ]
    np.testing.assert_allclose(
        np.minimum(*spread), np.minimum(1, 1e4 * (1 - pipeline[-1].eigenvalues_)), rtol=1e-6
    )


@pytest.mark.parametrize("settings", [QUADRATIC, GAUSSIAN], ids=["quadratic", "gaussian"])
def test_nystroem_of_all_rows_is_exact(settings):
    X, y = circles()
    exact = DNE(n_neighbors=3).fit(KernelPCA(**settings).fit_transform(X), y).eigenvalues_
    all_rows = Nystroem(n_components=50, random_state=0, **settings)
    sampled = DNE(n_neighbors=3).fit(all_rows.fit_transform(X), y).eigenvalues_
    negative = exact[exact < -1e-6 * np.abs(exact).max()]
    np.testing.assert_allclose(sampled[: len(negative)], negative, rtol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_five_classes_that_no_direction_separates_become_separable(seed):
    """Figure 1d: all eigenvalues are positive in the input space, and in the kernel's one or two
    are not.
    """
    (X, y), (T, t) = circles(80, seed), circles(500, 100 + seed)
    assert (DNE(2, n_neighbors=3).fit(X, y).eigenvalues_ > 0).all()
    model = make_pipeline(KernelPCA(**QUADRATIC), DNE(n_neighbors=3), KNeighborsClassifier(1)).fit(
        X, y
    )
    assert model[1].n_components_ <= 2
    assert model.score(T, t) > KNeighborsClassifier(1).fit(X, y).score(T, t) + 0.2


@pytest.mark.long
@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not installed")
def test_the_page():
    """Its blocks run, and what a comment says a line gives is what it gives."""
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, names)
        for expression, number in A_NUMBER.findall(block):
            assert eval(expression, names) == pytest.approx(
                float(number), abs=0.02 * float(number)
            ), expression
