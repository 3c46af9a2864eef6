from functools import partial

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from sklearn.datasets import load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import LFDA
from nearkin.scatter import between_scatter, local_fisher_scatters, total_scatter, within_scatter

paper = partial(LFDA, shrinkage=None)


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def scatters(X, y, k=7):
    """Return S_w and S_b from the paper's two weight matrices, with loops over all pairs."""
    n = len(X)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    s = np.zeros(n)
    for i in range(n):
        to_class = np.sort(D[i, (y == y[i]) & (np.arange(n) != i)])
        s[i] = to_class[min(k, len(to_class)) - 1] if len(to_class) else 0
    S_w, S_b = np.zeros((X.shape[1],) * 2), np.zeros((X.shape[1],) * 2)
    for i in range(n):
        for j in range(n):
            pair, n_c = 0.5 * np.outer(X[i] - X[j], X[i] - X[j]), np.sum(y == y[i])
            if y[i] != y[j]:
                S_b += pair / n
            elif i != j:
                a = np.exp(-(D[i, j] ** 2) / (s[i] * s[j]))
                S_w += a / n_c * pair
                S_b += a * (1 / n - 1 / n_c) * pair
    return S_w, S_b


def unequal():
    """Classes of 40, 3, 30 and 1 rows: the small ones come between, and must not lend their k to a
    later one.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [40, 3, 30, 1])
    return rng.normal(size=(74, 5)) * [1, 2, 1, 1, 0.5] + 2 * rng.normal(size=(4, 5))[y], y


@pytest.mark.parametrize(("data", "k"), [(wine, 7), (unequal, 1), (unequal, 7), (unequal, 10**6)])
class TestAgainstThePaper:
    def test_optimality(self, data, k):
        X, y = (table[::2] for table in data()) if data is wine else data()
        model = paper(3, n_neighbors=k).fit(X, y)
        S_w, S_b = scatters(X, y, k)
        V, quotient = model.components_.T, model.eigenvalues_ / (1 - model.eigenvalues_)
        np.testing.assert_allclose(V.T @ S_w @ V, np.eye(3), atol=1e-8)
        np.testing.assert_allclose(S_b @ V, S_w @ V * quotient, atol=1e-8 * np.abs(S_b @ V).max())
        np.testing.assert_allclose(quotient, eigh(S_b, S_w, eigvals_only=True)[:-4:-1])
        assert model.objective_ == pytest.approx(model.eigenvalues_.sum())

    @pytest.mark.slow_after(2)
    def test_less_within_and_more_between_scatter_than_fishers(self, data, k):
        """S_b - B and W - S_w are scatters of weights that are not negative."""
        X, y = (table[::2] for table in data()) if data is wine else data()
        S_w, S_b = scatters(X, y, k)
        least = -1e-9 * len(X)
        assert eigh(S_b - between_scatter(X, y), eigvals_only=True)[0] > least
        assert eigh(within_scatter(X, y) - S_w, eigvals_only=True)[0] > least


def test_with_weights_of_one_the_sum_is_the_total_scatter():
    X, y = wine()
    S_w, S_b = local_fisher_scatters(X, y, np.full(len(X), np.inf))
    np.testing.assert_allclose(S_w, within_scatter(X, y), atol=1e-10)
    np.testing.assert_allclose(S_b, between_scatter(X, y), atol=1e-10)
    np.testing.assert_allclose(S_w + S_b, total_scatter(X), atol=1e-10)


def test_with_infinite_scales_it_is_fishers_discriminant_analysis(monkeypatch):
    X, y = wine()
    monkeypatch.setattr(
        "nearkin.estimators.rows.kth_distance", lambda G, k: np.full(len(X), np.inf)
    )
    model = paper(2).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    np.testing.assert_allclose(
        subspace_angles(model.components_.T, lda.scalings_[:, :2]), 0, atol=1e-7
    )
    quotient = eigh(between_scatter(X, y), within_scatter(X, y), eigvals_only=True)[:-3:-1]
    np.testing.assert_allclose(model.eigenvalues_, quotient / (1 + quotient))
    # no more than classes - 1
    np.testing.assert_allclose(paper().fit(X, y).eigenvalues_[2:], 0, atol=1e-12)


def test_a_class_in_two_places():
    """One class lies on both sides of the other: the means coincide, and Fisher's analysis is
    blind.
    """
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 5)) * [0.5, 3, 3, 3, 3]
    X[:, 0] += np.where(y == 0, rng.choice([-4, 4], 200), 0)
    X, T, y, t = X[:100], X[100:], y[:100], y[100:]
    model = make_pipeline(paper(1), KNeighborsClassifier(3)).fit(X, y)
    direction = model[0].components_[0] / np.linalg.norm(model[0].components_)
    assert direction[0] > 0.98
    assert model.score(T, t) > 0.97
    fisher = make_pipeline(LinearDiscriminantAnalysis(n_components=1), KNeighborsClassifier(3)).fit(
        X, y
    )
    assert fisher.score(T, t) < 0.8


def test_row_order_and_class_names_do_not_matter():
    X, y = unequal()
    order = np.random.default_rng(1).permutation(len(X))
    M = paper(3).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        paper(3).fit(X[order], y[order]).get_mahalanobis_matrix(), M, atol=1e-10
    )
    renamed = np.array(["d", "a", "c", "b"])[y]
    np.testing.assert_allclose(paper(3).fit(X, renamed).get_mahalanobis_matrix(), M, atol=1e-10)


def test_more_duplicates_than_neighbours():
    """Their scale is 0: they have edges to their duplicates only, which contribute nothing."""
    X, y = wine()
    X, y = np.vstack([X, np.repeat(X[:1], 10, axis=0)]), np.r_[y, np.repeat(y[:1], 10)]
    model = paper().fit(X, y)
    assert np.isfinite(model.components_).all()
    assert model.rank_ == 13


def test_digits():
    """Constant features, and features that a single row has."""
    X, y = load_digits(return_X_y=True)
    X, T, y, t = train_test_split(X[:900], y[:900], random_state=0, stratify=y[:900])
    model = make_pipeline(paper(20), KNeighborsClassifier(3)).fit(X, y)
    components = model[0].components_
    assert np.isfinite(components).all()
    np.testing.assert_allclose(components[:, np.ptp(X, axis=0) == 0], 0, atol=1e-12)
    assert model.score(T, t) > 0.94


def test_wide_rows_have_directions_without_within_scatter_first():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 5)
    X = rng.normal(size=(6, 60))[y] + rng.normal(size=(30, 60))
    model = paper().fit(X, y)
    S_w, _ = scatters(X, y)
    assert model.rank_ == 29
    np.testing.assert_allclose(model.eigenvalues_[:5], 1, atol=1e-12)
    np.testing.assert_allclose(
        np.diag(model.components_ @ S_w @ model.components_.T),
        np.r_[np.zeros(5), np.ones(24)],
        atol=1e-9,
    )


def test_classes_of_one_row_each_give_whitening():
    X = np.random.default_rng(0).normal(size=(20, 4))
    model = paper().fit(X, np.arange(20))
    np.testing.assert_allclose(model.eigenvalues_, 1, atol=1e-12)
    np.testing.assert_allclose(
        model.components_ @ total_scatter(X) @ model.components_.T, 1e4 * np.eye(4), atol=1e-6
    )


def test_bad_n_neighbors():
    with pytest.raises(ValueError, match="n_neighbors must be at least 1, got 0"):
        paper(n_neighbors=0).fit(*wine())
    with pytest.raises(TypeError, match=r"n_neighbors must be an integer, got 2\.5"):
        paper(n_neighbors=2.5).fit(*wine())
