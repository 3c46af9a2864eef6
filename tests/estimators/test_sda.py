import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import scale

from nearkin import SDA
from nearkin.estimators import Rows
from nearkin.neighbors import EXACT
from nearkin.testing import assert_same_subspace


def wine(per_class=(8, 5, 12), seed=0):
    """Return wine and its labels, -1 but for so many of each class."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(seed)
    few = np.full(len(y), -1)
    for label, number in enumerate(per_class):
        few[rng.choice(np.flatnonzero(y == label), number, replace=False)] = label
    return scale(X), few


def scatters(X, y, k):
    """Return S_b, S_t and X'LX as the docstring defines them, row by row and edge by edge."""
    n, p = X.shape
    S_b, S_t, S_graph = np.zeros((3, p, p))
    mean = X[y >= 0].mean(axis=0)
    for label in set(y) - {-1}:
        away = X[y == label].mean(axis=0) - mean
        S_b += np.sum(y == label) * np.outer(away, away)
    for x in X[y >= 0]:
        S_t += np.outer(x - mean, x - mean)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    near = distances <= np.sort(distances, axis=1)[:, [k - 1]]
    for i in range(n):
        for j in range(i):
            if near[i, j] or near[j, i]:
                S_graph += np.outer(X[i] - X[j], X[i] - X[j])
    return S_b, S_t, S_graph


@pytest.mark.parametrize(("alpha", "beta", "k"), [(0.1, 0.0, 5), (3.0, 2.0, 2)])
def test_definition_and_optimality(alpha, beta, k):
    X, y = wine()
    S_b, S_t, S_graph = scatters(X, y, k)
    S = S_t + alpha * S_graph + beta * np.eye(13)
    model = SDA(alpha=alpha, beta=beta, n_neighbors=k).fit(X, y)
    V = model.components_.T
    np.testing.assert_allclose(V.T @ S @ V, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(S_b @ V, S @ V * model.eigenvalues_, atol=1e-8)
    np.testing.assert_allclose(
        model.eigenvalues_, eigh(S_b, S, eigvals_only=True)[:-3:-1], rtol=1e-8
    )
    assert model.objective_ == pytest.approx(model.eigenvalues_.sum())
    assert (model.n_components_, model.rank_) == (2, 13)


@pytest.mark.parametrize("beta", [0.0, 7.0])
def test_without_the_graph_it_is_lda_of_the_labelled_rows(beta):
    X, y = wine((20, 20, 20))
    labelled = y >= 0
    S_w = sum(np.cov(X[y == c].T, bias=True) * 20 for c in range(3)) + beta * np.eye(13)
    model = SDA(alpha=0.0, beta=beta).fit(X, y)
    S_b = scatters(X, y, 1)[0]
    assert_same_subspace(model.components_, eigh(S_b, S_w)[1][:, :-3:-1].T)
    if beta == 0:
        assert_same_subspace(
            model.components_,
            LinearDiscriminantAnalysis().fit(X[labelled], y[labelled]).scalings_.T,
        )


def test_unlabelled_rows_count_through_the_graph_only():
    X, y = wine()
    labelled = y >= 0
    few, all_ = (
        SDA(alpha=0.0, beta=1.0).fit(X[labelled], y[labelled]),
        SDA(alpha=0.0, beta=1.0).fit(X, y),
    )
    np.testing.assert_allclose(all_.components_, few.components_, atol=1e-10)
    assert (
        np.abs(SDA().fit(X, y).components_ - SDA().fit(X[labelled], y[labelled]).components_).max()
        > 1e-3
    )


def test_a_heavy_graph_finds_the_smoothest_separating_direction():
    """alpha -> infinity: S_b against X'LX alone."""
    X, y = wine()
    S_b, _, S_graph = scatters(X, y, 5)
    assert_same_subspace(
        SDA(alpha=1e8).fit(X, y).components_, eigh(S_b, S_graph)[1][:, :-3:-1].T, tol=1e-5
    )


@pytest.mark.parametrize("missing", [-1, None, np.nan])
def test_marks_of_unlabelled_rows(missing):
    X, y = wine()
    names = np.where(y < 0, missing, y.astype(object))
    np.testing.assert_array_equal(SDA().fit(X, names).components_, SDA().fit(X, y).components_)


def test_more_features_than_rows_and_sparse_rows():
    X, y = wine()
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 13)))[0]
    expected = SDA(beta=0.5).fit(X, y)
    wide = SDA(beta=0.5).fit(X @ Q.T, y)
    np.testing.assert_allclose(wide.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(
        np.abs(wide.components_ @ Q), np.abs(expected.components_), atol=1e-8
    )
    sparse = SDA(beta=0.5).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.components_, expected.components_, atol=1e-8)


def test_between_and_within_scatter_are_of_the_labelled_rows():
    X, y = wine()
    rows = Rows(X, y, EXACT)
    S_b, S_t, _ = scatters(X, y, 1)
    np.testing.assert_allclose(rows.between_scatter(), S_b, atol=1e-10)
    np.testing.assert_allclose(rows.between_scatter() + rows.within_scatter(), S_t, atol=1e-10)


def test_no_more_directions_than_classes_less_one():
    X, y = wine()
    with pytest.warns(
        UserWarning, match="n_components=5 were requested, but only 2 directions exist"
    ):
        assert SDA(5).fit(X, y).n_components_ == 2
    assert SDA(1).fit(X, y).components_.shape == (1, 13)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1}, "alpha must be a finite number of at least 0, got -1"),
        ({"beta": np.inf}, "beta must be a finite number"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = wine()
    with pytest.raises(ValueError, match=message):
        SDA(**parameters).fit(X, y)


def test_one_class_is_refused():
    X, y = wine((8, 0, 0))
    with pytest.raises(ValueError, match="one class"):
        SDA().fit(X, y)


def test_equal_class_means_are_refused():
    X = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0], [5.0, 1.0]])
    with pytest.raises(ValueError, match="equal means"):
        SDA().fit(X, [0, 0, 1, 1, -1])
