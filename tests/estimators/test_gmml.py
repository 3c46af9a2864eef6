from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import GMML
from nearkin.scatter import pair_covariances
from nearkin.spectral import geometric_mean


def unequal():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [20, 3, 15, 1])
    return rng.normal(size=(39, 4)) * [1, 2, 1, 0.5] + 2 * rng.normal(size=(4, 4))[y], y


def all_pairs(X, y):
    """Return every pair of rows, and 1 or -1."""
    pairs = list(combinations(range(len(X)), 2))
    return X[pairs], np.array([1 if y[i] == y[j] else -1 for i, j in pairs])


def covariances(pairs, y):
    """Return S and D with a loop over the pairs."""
    S, D = [], []
    for (u, v), kind in zip(pairs, y, strict=True):
        (S if kind == 1 else D).append(np.outer(u - v, u - v))
    return np.mean(S, axis=0), np.mean(D, axis=0)


def distance(A, B):
    """Return the Riemannian distance of two positive definite matrices."""
    return np.linalg.norm(np.log(eigh(B, A, eigvals_only=True)))


def definite(rng, p=4):
    A = rng.normal(size=(p, p))
    return A @ A.T + 0.1 * np.eye(p)


def metric(S, D, t):
    F = geometric_mean(S, D, t)[0]
    return F @ F.T


def test_all_pairs_in_closed_form():
    X, y = unequal()
    found, expected = pair_covariances(X, y), covariances(*all_pairs(X, y))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("t", "reg"), [(0.5, 0.0), (0.5, 0.1), (0.2, 1.0)])
def test_against_the_paper(t, reg):
    X, y = unequal()
    S, D = covariances(*all_pairs(X, y))
    weight = reg * np.trace(S + D) / 8
    S, D = S + weight * np.eye(4), D + weight * np.eye(4)
    model = GMML(t=t, reg=reg).fit(X, y)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), metric(S, D, t), atol=1e-9)
    np.testing.assert_allclose(
        model.components_ @ model.components_.T, np.diag(model.eigenvalues_), atol=1e-9
    )
    assert model.objective_ == pytest.approx(t * (1 - t) * distance(np.linalg.inv(S), D) ** 2)
    values, V = eigh(metric(S, D, t))
    M = GMML(2, t=t, reg=reg).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, V[:, 2:] * values[2:] @ V[:, 2:].T, atol=1e-9)


def test_pairs_that_are_given():
    X, y = unequal()
    pairs, kinds = all_pairs(X, y)
    expected = GMML().fit(X, y)
    model = GMML().fit_pairs(pairs, kinds)
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), expected.get_mahalanobis_matrix(), atol=1e-9
    )
    assert model.n_features_in_ == 4
    some = np.random.default_rng(0).permutation(len(kinds))[:60]
    S, D = covariances(pairs[some], kinds[some])
    M = GMML(reg=0).fit_pairs(pairs[some], kinds[some]).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, metric(S, D, 0.5), atol=1e-9)
    swapped = GMML(reg=0).fit_pairs(pairs[some][:, ::-1] + 5, kinds[some]).get_mahalanobis_matrix()
    np.testing.assert_allclose(swapped, M, atol=1e-9)
    assert GMML().fit_pairs(pairs.astype(np.float32), kinds).components_.dtype == np.float32


def test_fewer_pairs_than_features():
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(12, 2, 30)), np.repeat([1, -1], 6)
    model = GMML().fit_pairs(pairs, y)
    assert model.components_.shape == (12, 30)
    S, D = covariances(pairs, y)
    V = np.linalg.svd(pairs[:, 0] - pairs[:, 1])[2][:12].T
    weight = 0.1 * np.trace(S + D) / 24
    expected = (
        V @ metric(V.T @ S @ V + weight * np.eye(12), V.T @ D @ V + weight * np.eye(12), 0.5) @ V.T
    )
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), expected, atol=1e-9)


def test_a_large_weight_gives_the_prior():
    X, y = unequal()
    for prior in (None, definite(np.random.default_rng(3))):
        M = GMML(reg=1e8, prior=prior).fit(X, y).get_mahalanobis_matrix()
        np.testing.assert_allclose(M, np.eye(4) if prior is None else prior, atol=1e-5)


def test_prior_in_the_formula():
    X, y = unequal()
    S, D = covariances(*all_pairs(X, y))
    prior = definite(np.random.default_rng(3))
    weight = 0.5 * np.trace(S + D) / 8
    expected = metric(S + weight * np.linalg.inv(prior), D + weight * prior, 0.5)
    np.testing.assert_allclose(
        GMML(reg=0.5, prior=prior).fit(X, y).get_mahalanobis_matrix(), expected, atol=1e-9
    )


def test_row_order_names_and_units():
    X, y = unequal()
    order = np.random.default_rng(1).permutation(len(X))
    M = GMML().fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        GMML().fit(X[order], y[order]).get_mahalanobis_matrix(), M, atol=1e-10
    )
    renamed = np.array(["d", "a", "c", "b"])[y]
    np.testing.assert_allclose(GMML().fit(X, renamed).get_mahalanobis_matrix(), M, atol=1e-10)
    # one unit for all
    np.testing.assert_allclose(GMML().fit(1e3 * X, y).get_mahalanobis_matrix(), M, atol=1e-9)


def test_what_differs_between_classes_only():
    """The prior bounds the metric where no metric without it is finite."""
    X, y = unequal()
    X[:, 3] = y
    weights = [GMML(reg=reg).fit(X, y).get_mahalanobis_matrix()[3, 3] for reg in (1, 1e-2, 1e-4)]
    assert weights[0] < weights[1] / 3 < weights[2] / 9
    with pytest.raises(
        ValueError, match=r"Similar pairs do not differ in some direction.*larger reg"
    ):
        GMML(reg=0).fit(X, y)
    X[:, 3] = X[:, 2] + 1e-8 * X[:, 3]  # all but a copy
    with pytest.raises(ValueError, match="Similar pairs do not differ"):
        GMML(reg=0).fit(X, y)
    assert np.isfinite(GMML().fit(X, y).components_).all()


@pytest.mark.parametrize("factor", [1e-5, 1e5])
def test_a_feature_in_another_unit(factor):
    """No direction is lost; and without a prior, a feature that varies by itself keeps its weight."""
    X, y = unequal()
    pairs, kinds = all_pairs(X, y)
    # the last varies by itself
    mirrored = (
        np.vstack([pairs, pairs * [1, 1, 1, -1]]),
        np.tile(kinds, 2),
    )
    M = GMML(reg=0).fit_pairs(*mirrored).get_mahalanobis_matrix()
    scaled = GMML(reg=0).fit_pairs(mirrored[0] * [1, 1, 1, factor], mirrored[1])
    assert scaled.rank_ == GMML().fit(X * [1, 1, 1, factor], y).rank_ == 4
    np.testing.assert_allclose(scaled.get_mahalanobis_matrix(), M, atol=1e-4)


def test_wide_rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 5)
    X = rng.normal(size=(6, 60))[y] + rng.normal(size=(30, 60))
    model = GMML().fit(X, y)
    assert model.components_.shape == (29, 60)
    assert model.rank_ == 29
    with pytest.warns(
        UserWarning, match="n_components=40 were requested, but only 29 directions exist"
    ):
        GMML(40).fit(X, y)
    with pytest.raises(ValueError, match=r"prior needs at least as many rows as features \(60\)"):
        GMML(prior=np.eye(60)).fit(X, y)


def test_wine():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(GMML(), KNeighborsClassifier(3))
    assert cross_val_score(model, scale(X), y).mean() > 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"t": 1.5}, "t must be between 0 and 1, got 1.5"),
        ({"t": -0.1}, "t must be a finite number of at least 0"),
        ({"reg": -1}, "reg must be a finite number of at least 0"),
        (
            {"prior": np.eye(3)},
            r"prior must be a symmetric positive definite matrix of shape \(4, 4\)",
        ),
        ({"prior": np.diag([1.0, 1, 1, 0])}, "positive definite"),
        ({"prior": np.triu(np.ones((4, 4)))}, "symmetric"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        GMML(**parameters).fit(*unequal())


@pytest.mark.parametrize(
    ("pairs", "y", "message"),
    [
        (np.ones((4, 3)), [1, 1, -1, -1], r"pairs must have the shape \(n_pairs, 2, p\)"),
        (
            np.arange(24.0).reshape(4, 2, 3),
            [1, 0, 1, -1],
            r"y must be 1 \(similar\) or -1 \(dissimilar\).*-1, 0, 1",
        ),
        (np.arange(24.0).reshape(4, 2, 3), [1, 1, -1], "for each of 4 pairs; got 3 values"),
        (np.arange(24.0).reshape(4, 2, 3), [-1, -1, -1, -1], r"y marks no pair as similar \(1\)"),
        (np.arange(12.0).reshape(4, 1, 3).repeat(2, axis=1), [1, 1, -1, -1], "No pair differs"),
    ],
)
def test_bad_pairs(pairs, y, message):
    with pytest.raises(ValueError, match=message):
        GMML().fit_pairs(pairs, y)
