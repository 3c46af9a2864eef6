"""The penalty of a kernel: Theorem 4 of TDL, kernel PCA, landmarks, wrong kernels."""

import numpy as np
import pytest
from scipy.linalg import pinv, subspace_angles
from scipy.sparse import csr_array
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from nearkin import TDL
from nearkin.graphs import heat_kernel, laplacian, union
from nearkin.neighbors import nearest

from .test_tdl import cost, problem


class TestKernels:
    def test_the_inverse_of_a_kernel_as_penalty_is_kernel_pca(self):
        X = np.random.default_rng(0).standard_normal((40, 50))
        H = np.eye(40) - 1 / 40
        P = pinv(H @ linear_kernel(X) @ H)
        # the graph whose Laplacian is P
        tdl = TDL(4, reg=1.0).fit(X, affinity=np.diag(np.diag(P)) - P)
        theirs = KernelPCA(4).fit(X)
        np.testing.assert_allclose(1 / tdl.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
        assert subspace_angles(tdl.embedding_, theirs.fit_transform(X)).max() < 1e-7

    @pytest.mark.parametrize("M", ["unnormalized", "normalized", None])
    def test_theorem_4(self, M):
        """Functions of the kernel (eq. 7), on the rows, are the vectors of eq. 3 with the penalty
        K^+ + HMH.
        """
        X, few = problem(60, p=30)
        n = len(X)
        H = np.eye(n) - 1 / n
        kernel = lambda A, B: rbf_kernel(A, B, gamma=1 / 500)  # noqa: E731
        tdl = TDL(3, reg=0.5, reg_unit=1.0, laplacian=M, kernel=kernel).fit(X, few)
        P = pinv(H @ kernel(X, X) @ H)
        if M is not None:
            W = union(heat_kernel(nearest(X, 20)))
            L, d = laplacian(W).toarray(), W.sum(axis=1)
            P += H @ (L / np.sqrt(np.outer(d, d)) if M == "normalized" else L) @ H
        S = H @ (2 * laplacian(csr_array(cost(X, few))).toarray() + 0.5 * P) @ H
        values, V = np.linalg.eigh(S + 1e6 / n)
        np.testing.assert_allclose(tdl.eigenvalues_, values[:3], rtol=1e-6)
        assert subspace_angles(tdl.embedding_, V[:, :3]).max() < 1e-6

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        "settings",
        [{"kernel": "rbf"}, {"kernel": linear_kernel}, {"kernel": "rbf", "n_landmarks": 25}],
    )
    def test_new_rows_that_are_training_rows_get_their_coordinates(self, settings):
        X, few = problem(60)
        tdl = TDL(2, random_state=0, **settings).fit(X, few)
        np.testing.assert_allclose(tdl.transform(X), tdl.embedding_, atol=1e-9)
        np.testing.assert_allclose(tdl.embedding_.sum(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(tdl.embedding_.T @ tdl.embedding_, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(
            TDL(2, random_state=0, **settings).fit_transform(X, few), tdl.transform(X), atol=1e-9
        )

    def test_all_rows_as_landmarks_are_the_exact_kernel(self):
        X, few = problem(60, p=30)
        kernel = lambda A, B: rbf_kernel(A, B, gamma=1 / 500)  # noqa: E731
        exact = TDL(3, reg=1.0, kernel=kernel).fit(X, few)
        all_of_them = TDL(3, reg=1.0, kernel=kernel, n_landmarks=1000, random_state=0).fit(X, few)
        np.testing.assert_allclose(all_of_them.eigenvalues_, exact.eigenvalues_, rtol=1e-7)
        new = np.random.default_rng(5).standard_normal((9, 30))
        np.testing.assert_allclose(
            np.abs(all_of_them.transform(new)), np.abs(exact.transform(new)), atol=1e-6
        )

    def test_fewer_directions_than_requested_warn(self):
        X, few = problem(p=2)
        with pytest.warns(UserWarning, match="were requested"):
            tdl = TDL(5, reg=1.0, kernel=linear_kernel, laplacian=None).fit(X, few)
        assert tdl.embedding_.shape[1] == 2


def test_rows_far_from_the_origin():
    X, few = problem()
    here = TDL(3, reg=10.0, kernel="rbf").fit(X, few)
    there = TDL(3, reg=10.0, kernel="rbf").fit(X + 1e8, few)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-5)
    single = X.astype(np.float32)
    far = TDL(3, reg=1.0).fit(single, few).transform(np.full((1, 4), 1e20, np.float32))
    assert np.isfinite(far).all()


def test_a_kernel_of_single_precision_rows_is_of_double_precision():
    X = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
    few = np.where(np.arange(40) % 4, -1, np.arange(40) // 20)
    double, single = (TDL(3, reg=1.0, kernel="rbf").fit(rows, few) for rows in (X.astype(float), X))
    np.testing.assert_allclose(single.penalty_size_, double.penalty_size_, rtol=1e-6)
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kernel": "poly"}, ValueError, "kernel must be None, 'rbf' or a function"),
        (
            {"kernel": lambda A, B: np.ones((3, 2))},
            ValueError,
            r"kernel must return the shape \(150, 150\)",
        ),
        (
            {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
            ValueError,
            "kernel must return finite numbers",
        ),
        ({"kernel": lambda A, B: A[:, :1] - B[:, 0]}, ValueError, "kernel must be symmetric"),
        ({"kernel": lambda A, B: np.zeros((len(A), len(B)))}, ValueError, "not 0 everywhere"),
        (
            {"kernel": lambda A, B: -linear_kernel(A, B)},
            ValueError,
            "kernel must be positive semi-definite",
        ),
        (
            {"kernel": lambda A, B: np.ones((len(A), len(B)))},
            ValueError,
            "kernel is the same for all rows",
        ),
        ({"kernel": "rbf", "n_landmarks": 0}, ValueError, "n_landmarks must be at least 1"),
    ],
)
def test_bad_kernels_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        TDL(**settings).fit(*problem())
