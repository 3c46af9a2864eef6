from functools import partial

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import MFA, NMMP
from nearkin.scatter import total_scatter, within_scatter

paper = partial(MFA, shrinkage=None)


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def scatters(X, y, k_1=5, k_2=100):
    """Return S_w and S_b of the definition, with loops over all pairs."""
    n = len(X)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    intrinsic, penalty = np.zeros((n, n), bool), np.zeros((n, n), bool)
    for i in range(n):
        same = np.flatnonzero((y == y[i]) & (np.arange(n) != i))
        intrinsic[i, same[np.argsort(D[i, same])[:k_1]]] = True
    for c in np.unique(y):
        pairs = sorted(
            (D[i, j], i, j) for i in np.flatnonzero(y == c) for j in np.flatnonzero(y != c)
        )
        for _, i, j in pairs[:k_2]:
            penalty[i, j] = True
    result = []
    for edges in (intrinsic | intrinsic.T, penalty | penalty.T):
        S = np.zeros((X.shape[1], X.shape[1]))
        for i, j in np.argwhere(np.triu(edges)):
            S += np.outer(X[i] - X[j], X[i] - X[j])
        result.append(S)
    return result


@pytest.mark.parametrize(("k_1", "k_2"), [(5, 100), (1, 20), (40, 10**6)])
def test_optimality(k_1, k_2):
    X, y = wine()
    model = paper(4, n_neighbors=k_1, n_pairs=k_2).fit(X, y)
    S_w, S_b = scatters(X, y, k_1, k_2)
    V, quotient = model.components_.T, model.eigenvalues_ / (1 - model.eigenvalues_)
    np.testing.assert_allclose(V.T @ S_w @ V, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(S_b @ V, S_w @ V * quotient, atol=1e-8 * np.abs(S_b @ V).max())
    np.testing.assert_allclose(quotient, eigh(S_b, S_w, eigvals_only=True)[:-5:-1])
    assert model.objective_ == pytest.approx(model.eigenvalues_.sum())


def test_with_all_pairs_the_scatters_are_those_of_the_classes():
    X, y = wine()
    model = paper(n_neighbors=1000, n_pairs=10**6).fit(X, y)
    # every pair of a class once: n_c times the scatter about its mean
    S_w = within_scatter(X, y, np.bincount(y))
    S_b = len(X) * total_scatter(X) - S_w
    V, share = model.components_.T, model.eigenvalues_
    np.testing.assert_allclose(V.T @ S_w @ V, np.eye(13), atol=1e-9)
    np.testing.assert_allclose(V.T @ S_b @ V, np.diag(share / (1 - share)), atol=1e-8)
    nmmp = NMMP(
        13,
        n_neighbors_within=1000,
        n_neighbors_between=1000,
        criterion="ratio_trace",
        shrinkage=None,
    ).fit(X, y)
    np.testing.assert_allclose(share, nmmp.eigenvalues_)
    np.testing.assert_allclose(
        model.components_ * np.sqrt(1 - share)[:, None], nmmp.components_, atol=1e-9
    )


def test_a_class_far_away_has_pairs_of_its_own():
    """Its pairs are long, but the k_2 shortest of its own, however many shorter ones other classes
    have.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.array([[0, 0], [1, 0], [0, 1000]])[y]
    model = paper(2, n_pairs=5).fit(X, y)
    S_w, S_b = scatters(X, y, 5, 5)
    quotient = eigh(S_b, S_w, eigvals_only=True)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, quotient / (1 + quotient))
    assert abs(model.components_[0, 1]) > abs(model.components_[0, 0])


def test_a_class_of_one_row_has_its_nearest_strangers():
    X, y = wine()
    y = np.where(np.arange(len(y)) == 30, 7, y)
    model = paper(3, n_pairs=10).fit(X, y)
    S_w, S_b = scatters(X, y, 5, 10)
    np.testing.assert_allclose(
        model.eigenvalues_ / (1 - model.eigenvalues_), eigh(S_b, S_w, eigvals_only=True)[:-4:-1]
    )


def test_no_more_directions_than_pairs_tell_strangers_apart():
    X, y = wine()
    shares = paper(n_pairs=1).fit(X, y).eigenvalues_
    assert np.sum(shares > 1e-10) <= 3
    np.testing.assert_allclose(shares[3:], 0, atol=1e-12)


def test_digits():
    """Constant features, and features that a single row has."""
    X, y = load_digits(return_X_y=True)
    X, T, y, t = train_test_split(X[:900], y[:900], random_state=0, stratify=y[:900])
    model = make_pipeline(paper(20), KNeighborsClassifier(3)).fit(X, y)
    components = model[0].components_
    assert np.isfinite(components).all()
    np.testing.assert_allclose(components[:, np.ptp(X, axis=0) == 0], 0, atol=1e-12)
    assert model.score(T, t) > 0.96


def test_wide_rows_have_directions_without_within_scatter_first():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 5)
    X = rng.normal(size=(6, 60))[y] + rng.normal(size=(30, 60))
    model = paper().fit(X, y)
    S_w, _ = scatters(X, y)
    np.testing.assert_allclose(model.eigenvalues_[:5], 1, atol=1e-12)
    np.testing.assert_allclose(
        np.diag(model.components_ @ S_w @ model.components_.T),
        np.r_[np.zeros(5), np.ones(24)],
        atol=1e-9,
    )


def test_strangers_that_do_not_differ_warn():
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 2, axis=0)
    with pytest.warns(UserWarning, match="objective is 0 in the directions found"):
        assert np.isfinite(paper(2, n_pairs=5).fit(X, np.arange(20) % 2).components_).all()


def test_graphs_without_any_difference_are_refused():
    with pytest.raises(ValueError, match="No two adjacent rows of the graphs differ"):
        paper(n_pairs=1).fit(np.repeat([[0.0], [1.0]], 2, axis=0), ["a", "b", "c", "d"])


@pytest.mark.parametrize("name", ["n_neighbors", "n_pairs"])
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        paper(**{name: 0}).fit(*wine())
    with pytest.raises(TypeError, match=f"{name} must be an integer, got 2.5"):
        paper(**{name: 2.5}).fit(*wine())
