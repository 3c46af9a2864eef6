from functools import partial

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import LDE, NMMP
from nearkin.scatter import total_scatter, within_scatter

paper = partial(LDE, shrinkage=None)


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def scatters(X, y, k_w=5, k_b=5):
    """Return S_w and S_b of the definition, with loops."""
    n = len(X)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    result = []
    for k, same in ((k_w, True), (k_b, False)):
        listed = np.zeros((n, n), bool)
        for i in range(n):
            found = np.flatnonzero(((y == y[i]) == same) & (np.arange(n) != i))
            listed[i, found[np.argsort(D[i, found])[:k]]] = True
        t = np.mean(D[listed] ** 2)
        S = np.zeros((X.shape[1], X.shape[1]))
        for i, j in np.argwhere(listed | listed.T):
            S += 0.5 * np.exp(-(D[i, j] ** 2) / t) * np.outer(X[i] - X[j], X[i] - X[j])
        result.append(S)
    return result


def wide(n_classes=6, per_class=5, p=60):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), per_class)
    return rng.normal(size=(n_classes, p))[y] + rng.normal(size=(len(y), p)), y


@pytest.mark.parametrize(("k_w", "k_b"), [(5, 5), (1, 20), (10**6, 10**6)])
class TestAgainstThePaper:
    def test_optimality(self, k_w, k_b):
        X, y = (table[::2] for table in wine())
        model = paper(4, n_neighbors_within=k_w, n_neighbors_between=k_b).fit(X, y)
        S_w, S_b = scatters(X, y, k_w, k_b)
        V, quotient = model.components_.T, model.eigenvalues_ / (1 - model.eigenvalues_)
        np.testing.assert_allclose(V.T @ S_w @ V, np.eye(4), atol=1e-9)
        np.testing.assert_allclose(S_b @ V, S_w @ V * quotient, atol=1e-8 * np.abs(S_b @ V).max())
        np.testing.assert_allclose(quotient, eigh(S_b, S_w, eigvals_only=True)[:-5:-1])
        assert model.objective_ == pytest.approx(model.eigenvalues_.sum())

    def test_it_is_the_right_end_of_the_spectrum(self, k_w, k_b):
        """In the learned space other-class neighbours are far apart, in units of same-class
        neighbours.
        """
        X, y = (table[::2] for table in wine())
        model = paper(2, n_neighbors_within=k_w, n_neighbors_between=k_b).fit(X, y)
        S_w, S_b = scatters(X, y, k_w, k_b)
        V = model.components_.T
        rng = np.random.default_rng(0)
        for _ in range(20):
            U = rng.normal(size=V.shape)
            assert np.trace(np.linalg.solve(U.T @ S_w @ U, U.T @ S_b @ U)) < np.trace(V.T @ S_b @ V)
        test, y_test = (table[1::2] for table in wine())
        held_out = (
            KNeighborsClassifier(1).fit(model.transform(X), y).score(model.transform(test), y_test)
        )
        assert held_out > 0.9


def test_with_all_neighbours_at_one_distance_the_scatters_are_those_of_the_classes():
    """Corners of a simplex: every weight is exp(-1)."""
    X, y = np.eye(12), np.repeat([0, 1, 2], [3, 4, 5])
    model = paper(n_neighbors_within=11, n_neighbors_between=11).fit(X, y)
    S_w = np.exp(-1) * within_scatter(X, y, np.bincount(y))  # every pair of a class once
    S_b = np.exp(-1) * (12 * total_scatter(X) - within_scatter(X, y, np.bincount(y)))
    V, share = model.components_.T, model.eigenvalues_
    assert model.rank_ == 11
    np.testing.assert_allclose(np.diag(V.T @ S_w @ V), np.minimum(1, 1e4 * (1 - share)), atol=1e-9)
    np.testing.assert_allclose(S_b @ V * (1 - share), S_w @ V * share, atol=1e-9)
    same = NMMP(
        11, n_neighbors_within=11, n_neighbors_between=11, criterion="ratio_trace", shrinkage=None
    ).fit(X, y)
    # it differs in weights and in edges
    np.testing.assert_allclose(share, same.eigenvalues_, atol=1e-12)


class TestSingularWithinScatter:
    def test_directions_without_within_scatter_come_first(self):
        X, y = wide()
        model = paper().fit(X, y)
        S_w, S_b = scatters(X, y)
        V = model.components_.T
        assert model.rank_ == 29
        np.testing.assert_allclose(model.eigenvalues_[:5], 1, atol=1e-12)
        assert (model.eigenvalues_[5:] < 1 - 1e-4).all()
        np.testing.assert_allclose(
            np.diag(V.T @ S_w @ V), np.r_[np.zeros(5), np.ones(24)], atol=1e-9
        )
        np.testing.assert_allclose(V[:, :5].T @ S_b @ V[:, :5], 1e4 * np.eye(5), atol=1e-6)

    def test_of_them_that_of_most_between_scatter_and_no_chance(self):
        X, y = wide()
        _, S_b = scatters(X, y)
        V = paper(2).fit(X, y).components_.T
        spread = np.diag(V.T @ S_b @ V) / np.sum(V**2, axis=0)
        every = paper(5).fit(X, y).components_.T
        Q = np.linalg.qr(every)[0]
        assert spread[0] == pytest.approx(
            max(1 / eigh(np.linalg.inv(Q.T @ S_b @ Q), eigvals_only=True))
        )
        assert spread[0] > spread[1]
        R = np.linalg.qr(np.random.default_rng(1).normal(size=(60, 60)))[0]
        turned = R @ paper(2).fit(X @ R, y).components_.T
        np.testing.assert_allclose(turned @ turned.T, V @ V.T, atol=1e-7 * np.abs(V @ V.T).max())

    def test_digits(self):
        """Constant features, and features that a single row has."""
        X, y = load_digits(return_X_y=True)
        X, T, y, t = train_test_split(X[:900], y[:900], random_state=0, stratify=y[:900])
        model = make_pipeline(paper(20), KNeighborsClassifier(3)).fit(X, y)
        components = model[0].components_
        assert np.isfinite(components).all()
        np.testing.assert_allclose(components[:, np.ptp(X, axis=0) == 0], 0, atol=1e-12)
        assert model.score(T, t) > 0.94


def test_strangers_that_do_not_differ_warn():
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 2, axis=0)
    with pytest.warns(
        UserWarning, match="objective is 0 in the directions found.*use more neighbours"
    ):
        model = paper(2, n_neighbors_between=1).fit(X, np.arange(20) % 2)
    np.testing.assert_allclose(model.eigenvalues_, 0, atol=1e-12)
    assert np.isfinite(model.components_).all()


def test_graphs_without_any_difference_are_refused():
    X, y = np.repeat([[0.0], [1.0]], 2, axis=0), ["a", "b", "c", "d"]
    with pytest.raises(
        ValueError, match="No two adjacent rows of the graphs differ: use more neighbours"
    ):
        paper(n_neighbors_between=1).fit(X, y)
    assert paper(n_neighbors_between=2).fit(X, y).components_.shape == (1, 1)


def test_more_components_than_directions_warns():
    X, y = wine()
    with pytest.warns(UserWarning, match="n_components=15 were requested, but only 13 directions"):
        assert paper(15).fit(np.hstack([X, X[:, :4]]), y).components_.shape == (13, 17)


@pytest.mark.parametrize("name", ["n_neighbors_within", "n_neighbors_between"])
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        paper(**{name: 0}).fit(*wine())
    with pytest.raises(TypeError, match=f"{name} must be an integer, got 2.5"):
        paper(**{name: 2.5}).fit(*wine())
