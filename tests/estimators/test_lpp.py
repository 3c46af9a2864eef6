import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from nearkin import LPP
from nearkin.graphs import heat_kernel, union
from nearkin.neighbors import nearest


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def graph(X, k):
    W = union(heat_kernel(nearest(X, k))).toarray()
    d = W.sum(axis=1)
    return W, np.diag(d), np.diag(d) - W, d


def test_optimality():
    X, _ = wine()
    model = LPP(4, variance=1).fit(X)
    _, D, L, d = graph(X, 10)
    X = X - d @ X / d.sum()
    A = model.components_.T
    np.testing.assert_allclose(A.T @ X.T @ D @ X @ A, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(X.T @ L @ X @ A, X.T @ D @ X @ A * model.eigenvalues_, atol=1e-9)
    np.testing.assert_allclose(
        model.eigenvalues_, eigh(X.T @ L @ X, X.T @ D @ X, eigvals_only=True)[:4]
    )
    assert model.objective_ == pytest.approx(model.eigenvalues_.sum())


def test_with_as_many_free_features_as_rows_it_is_laplacian_eigenmaps():
    """Any embedding of the rows is linear then: L f = lambda D f, the constant left out."""
    X, _ = wine()
    X = X[:60]
    _, D, L, _ = graph(X, 10)
    # the same neighbours
    wide = np.hstack([X, 1e-6 * np.random.default_rng(0).normal(size=(60, 100))])
    model = LPP(5, variance=1).fit(wide)
    values, F = eigh(L, D, subset_by_index=[1, 5])
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-4)
    Z = model.transform(wide)
    Z -= np.diag(D) @ Z / np.trace(D)
    np.testing.assert_allclose(np.abs(np.sum(F * (D @ Z), axis=0)), 1, rtol=1e-4)


def test_labels_are_ignored():
    X, y = wine()
    np.testing.assert_array_equal(LPP(2).fit(X, y).components_, LPP(2).fit(X).components_)


def test_the_default_takes_smooth_directions():
    X, _ = wine()
    W, _, _, d = graph(X, 10)
    model = LPP(n_neighbors=10).fit(X)
    assert (model.eigenvalues_ < 0.75).all()
    Z = model.transform(X)
    among_adjacent = np.einsum("ij,ijm->m", W, (Z[:, None] - Z) ** 2) / d.sum()
    among_all = np.einsum("ij,ijm->m", np.outer(d, d), (Z[:, None] - Z) ** 2) / d.sum() ** 2
    np.testing.assert_allclose(among_adjacent / among_all, model.eigenvalues_)
    assert LPP().fit(np.random.default_rng(0).normal(size=(20, 30))).n_components_ >= 1
    assert LPP(model.rank_).fit(X).n_components_ == model.n_components_ + np.sum(
        LPP(model.rank_).fit(X).eigenvalues_ >= 0.75
    )


def test_variance_is_that_of_principal_components():
    X, _ = wine()
    _, D, L, d = graph(X, 10)
    X = X - d @ X / d.sum()
    model = LPP(3, variance=0.8).fit(X)
    values, U = np.linalg.eigh(X.T @ D @ X)
    share = values[::-1].cumsum() / values.sum()
    r = model.rank_
    assert share[r - 2] < 0.8 <= share[r - 1]
    T = U[:, -r:]
    expected = eigh(T.T @ X.T @ L @ X @ T, T.T @ X.T @ D @ X @ T, eigvals_only=True)[:3]
    np.testing.assert_allclose(model.eigenvalues_, expected)
    V = model.components_.T
    np.testing.assert_allclose(T @ T.T @ V, V, atol=1e-10)
    assert LPP(6, variance=1e-3).fit(X).rank_ == 6


def test_fewer_directions_than_requested():
    X, _ = wine()
    with pytest.warns(UserWarning, match="n_components=15 were requested"):
        assert LPP(15, variance=1).fit(np.hstack([X, X[:, :2]])).n_components_ == 13


@pytest.mark.parametrize(
    ("variance", "message"), [(0, "larger than 0"), (1.1, r"share in \(0, 1\], got 1.1")]
)
def test_bad_variance(variance, message):
    with pytest.raises(ValueError, match=f"variance must be .*{message}"):
        LPP(variance=variance).fit(wine()[0])


def test_fewer_rows_than_neighbours():
    assert LPP(1).fit(np.array([[0.0, 1.0], [2.0, 1.0], [3.0, 5.0]])).components_.shape == (1, 2)
