import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_wine, make_blobs
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from nearkin import DNE
from nearkin.estimators import dne as module
from nearkin.estimators.rows import Rows
from nearkin.neighbors import EXACT


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def by_definition(X, y, k):
    """Return F of eq. 1 with loops."""
    n = len(X)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    F = np.zeros((n, n))
    for i in range(n):
        for sign, candidates in [(1, (y == y[i]) & (np.arange(n) != i)), (-1, y != y[i])]:
            neighbours = np.flatnonzero(candidates)
            neighbours = neighbours[np.argsort(D[i, neighbours])[:k]]
            F[i, neighbours] = F[neighbours, i] = sign
    return F


def adjacency(X, y, k):
    """Return F as the difference of the two graphs that are fitted."""
    rows = Rows(X, y, EXACT)
    return (rows.union_knn("same", k) - rows.union_knn("other", k)).toarray()


@pytest.mark.parametrize("k", [1, 5])
class TestAgainstThePaper:
    def test_adjacency(self, k):
        X, y = wine()
        np.testing.assert_array_equal(adjacency(X, y, k), by_definition(X, y, k))

    def test_components_are_orthonormal_eigenvectors(self, k):
        X, y = wine()
        model = DNE(n_neighbors=k).fit(X, y)
        F = by_definition(X, y, k)
        A = X.T @ (np.diag(F.sum(axis=1)) - F) @ X
        P = model.components_.T
        values = model.eigenvalues_[: model.n_components_]
        np.testing.assert_allclose(P.T @ P, np.eye(P.shape[1]), atol=1e-12)
        np.testing.assert_allclose(A @ P, P * values, atol=1e-9 * np.abs(values).max())
        np.testing.assert_allclose(
            model.eigenvalues_, np.linalg.eigvalsh(A), atol=1e-9 * np.abs(values).max()
        )
        assert (values < 0).all()
        assert (model.eigenvalues_[model.n_components_ :] >= 0).all()

    def test_equation_13(self, k):
        """Phi(P_i) = Delta(P_i) - delta(P_i) = 2 lambda_i, for every direction."""
        X, y = wine()
        model = DNE(X.shape[1], n_neighbors=k).fit(X, y)
        F = by_definition(X, y, k)
        for P_i, value in zip(model.components_, model.eigenvalues_, strict=True):
            z = X @ P_i
            assert np.sum(F * (z[:, None] - z) ** 2) == pytest.approx(2 * value)
        Z = model.transform(X)
        Phi = np.sum(F * np.sum((Z[:, None] - Z) ** 2, axis=2))
        assert model.objective_ == pytest.approx(Phi)


def test_theta_takes_the_fewest_that_reach_the_share():
    values = np.array([-6.0, -3.0, -1.0])
    for theta, t in [(0.1, 1), (0.6, 1), (0.6 + 1e-9, 2), (0.9, 2), (0.91, 3), (1.0, 3)]:
        assert module._n_leading(values, theta) == t
    assert module._n_leading(values, None) == 3


def test_rounding_noise_is_not_negative():
    assert module._n_negative(np.diag([-1.0, -1e-11, 0.5]), np.ones(3)) == 1


@pytest.mark.parametrize("wide", [False, True])
def test_units_of_the_features_change_no_sign(wide):
    """Sylvester's law of inertia: DAD has as many negative eigenvalues as A, on the same graph."""
    X, y = wine()
    if wide:  # the problem is solved in the span of 40 rows
        X, y = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 40))])[::5], y[::5]
    distances = csr_array(euclidean_distances(X))
    d = DNE().fit(X, y, distances=distances).n_components_
    rng = np.random.default_rng(1)
    one = np.where(np.arange(X.shape[1]) == 3, 1e6, 1.0)
    for units in (
        one,
        1 / one,
        *10.0 ** rng.uniform(-3 if wide else -6, 3 if wide else 6, (5, X.shape[1])),
    ):
        model = DNE().fit(X * units, y, distances=distances)
        assert model.n_components_ == d
        assert (model.eigenvalues_[:d] < 0).all()
        F = csr_array(adjacency(X, y, 1))
        assert (negative_parts(model, X * units, F) < 0).all()  # of the components themselves


def negative_parts(model, X, F):
    """Return sum_ij F_ij (z_i - z_j)^2 in every direction: what the map keeps must have a negative
    one.
    """
    i, j = F.nonzero()
    differences = (X[i] - X[j]) @ model.components_.T
    return F.data @ differences**2


def test_a_duplicated_feature_is_no_further_direction():
    X, y = wine()
    d = DNE().fit(X, y).n_components_
    twice = np.hstack([X, 1e-4 * X[:, :3]])
    model = DNE().fit(twice, y, distances=csr_array(euclidean_distances(X)))
    assert model.n_components_ == d


def test_figure_1d_keeps_one_direction_and_warns():
    X, _ = make_blobs(200, centers=1, random_state=0)
    y = np.arange(200) % 5  # labels without any structure
    with pytest.warns(UserWarning, match="no negative eigenvalue"):
        model = DNE().fit(X, y)
    assert model.components_.shape == (1, 2)


@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_with_all_components_it_predicts_as_the_raw_features_do(shape):
    X, y = wine()
    if shape == "wide":
        X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 250))])
    train, test = slice(None, None, 2), slice(1, None, 2)
    model = DNE(X.shape[1]).fit(X[train], y[train])
    np.testing.assert_allclose(
        model.components_ @ model.components_.T, np.eye(X.shape[1]), atol=1e-10
    )
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), np.eye(X.shape[1]), atol=1e-10)
    raw = KNeighborsClassifier(1).fit(X[train], y[train]).predict(X[test])
    learned = (
        KNeighborsClassifier(1)
        .fit(model.transform(X[train]), y[train])
        .predict(model.transform(X[test]))
    )
    np.testing.assert_array_equal(raw, learned)


def test_wide_rows_with_more_components_than_negative_eigenvalues():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 100)), np.arange(20) % 2
    model = DNE(95).fit(X, y)
    F = adjacency(X, y, 1)
    A = X.T @ (np.diag(F.sum(axis=1)) - F) @ X
    np.testing.assert_allclose(model.eigenvalues_[:95], np.linalg.eigvalsh(A)[:95], atol=1e-9)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(95), atol=1e-10)
    assert (np.diff(model.eigenvalues_) >= -1e-9).all()


@pytest.mark.parametrize("unit", [1.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_lanczos_agrees_with_the_full_spectrum(container, unit, monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    X = np.where(np.abs(scale(X)) > 0.5, scale(X), 0.0)
    distances = csr_array(euclidean_distances(X))
    X[:, 3] *= unit
    full = DNE(4).fit(X, y, distances=distances)
    monkeypatch.setattr(module, "choose_solver", lambda d, m: "lanczos")
    lanczos = DNE(4).fit(container(X), y, distances=distances)
    np.testing.assert_allclose(lanczos.components_, full.components_, atol=1e-6)
    np.testing.assert_allclose(lanczos.eigenvalues_, full.eigenvalues_[:4])


@pytest.mark.parametrize("theta", [0.0, 1.5, -0.1, float("nan")])
def test_bad_theta(theta):
    with pytest.raises(ValueError, match=r"theta of eq. 14\) must be in \(0, 1\]"):
        DNE(theta).fit(*wine())


def test_bad_n_neighbors():
    with pytest.raises(ValueError, match="n_neighbors must be at least 1, got 0"):
        DNE(n_neighbors=0).fit(*wine())
