from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import DMLMJ
from nearkin.scatter import total_scatter, within_scatter
from nearkin.testing import assert_same_subspace

PAPER = partial(DMLMJ, shrinkage=None)


def unequal():
    """Classes of 40, 3, 30 and 1 rows, fewer than there are neighbours in some."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [40, 3, 30, 1])
    return rng.normal(size=(74, 5)) * [1, 2, 1, 1, 0.5] + 2 * rng.normal(size=(4, 5))[y], y


def covariances(X, y, k):
    """Return S_w and S_b with loops over the rows and their neighbours."""
    found = []
    for same in (True, False):
        pairs = []
        for i in range(len(X)):
            others = [j for j in range(len(X)) if j != i and (y[j] == y[i]) == same]
            others.sort(key=lambda j, i=i: np.linalg.norm(X[i] - X[j]))
            pairs += [np.outer(X[i] - X[j], X[i] - X[j]) for j in others[:k]]
        found.append(np.mean(pairs, axis=0))
    return found


def divergence(V, S_w, S_b):
    """Return KL(w, b) + KL(b, w) of two Gaussians with mean 0, each by its formula."""
    w, b = V.T @ S_w @ V, V.T @ S_b @ V

    def kl(p, q):
        return (
            np.trace(np.linalg.solve(q, p)) - len(p) + np.log(np.linalg.det(q) / np.linalg.det(p))
        ) / 2

    return kl(w, b) + kl(b, w)


@pytest.mark.parametrize("k", [1, 5, 100])
def test_against_the_paper(k):
    X, y = unequal()
    S_w, S_b = covariances(X, y, k)
    model = PAPER(n_neighbors=k).fit(X, y)
    V, quotient = model.components_.T, model.eigenvalues_ / (1 - model.eigenvalues_)
    np.testing.assert_allclose(V.T @ S_w @ V, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(S_b @ V, S_w @ V * quotient, atol=1e-9 * np.abs(S_b @ V).max())
    expected = eigh(S_b, S_w, eigvals_only=True)
    np.testing.assert_allclose(quotient, sorted(expected, key=lambda value: -(value + 1 / value)))
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), np.linalg.inv(S_w))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_no_map_diverges_more(m):
    X, y = unequal()
    # a direction in which other classes are nearer than the same
    X[:, 4] *= np.where(y == 0, 3, 0.2)
    S_w, S_b = covariances(X, y, 5)
    V = eigh(S_b, S_w)[1]
    model = PAPER(m).fit(X, y)
    found = divergence(model.components_.T, S_w, S_b)
    assert model.objective_ == pytest.approx(found)
    assert found == pytest.approx(
        max(divergence(V[:, list(kept)], S_w, S_b) for kept in combinations(range(5), m))
    )
    rng = np.random.default_rng(0)
    for size in (0.01, 0.1, 1.0, 100.0):
        moved = model.components_ + size * rng.normal(size=(m, 5))
        assert divergence(moved.T, S_w, S_b) <= found


def pairs_of_two_classes():
    """At each of 50 places in the last feature lies a row of either class; the first feature is the
    class.
    """
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 50)
    return np.column_stack(
        [0.1 * y, 0.1 * rng.normal(size=(100, 2)), 4 * np.repeat(np.arange(50), 2)]
    ), y


def test_directions_of_small_quotient_are_kept():
    """The nearest of the other class is at the same place, the nearest of the same class is not:
    lambda is 0.
    """
    X, y = pairs_of_two_classes()
    model = PAPER(1, n_neighbors=1).fit(X[:, 1:], y)
    assert model.eigenvalues_ == [0]
    assert np.abs(model.components_[0]).argmax() == 2


def test_infinite_divergence_comes_first():
    X, y = pairs_of_two_classes()
    model = PAPER(n_neighbors=1).fit(X, y)
    np.testing.assert_array_equal(model.eigenvalues_[:2], [1, 0])
    assert (np.diff(np.abs(model.eigenvalues_ - 0.5)) <= 0).all()
    assert model.objective_ == np.inf
    assert np.isfinite(model.components_).all()


def test_with_all_neighbours_it_is_fishers_whitening():
    """Classes of one size: pairs of one class make S_w, all others the rest of the total scatter."""
    X, y = load_wine(return_X_y=True)
    chosen = np.concatenate([np.flatnonzero(y == c)[:40] for c in range(3)])
    X, y = scale(X[chosen]), y[chosen]
    S_w, S_t = 40 * within_scatter(X, y), 120 * total_scatter(X)
    model = PAPER(2, n_neighbors=10**6).fit(X, y)
    quotient = eigh((S_t - S_w) / (3 * 40 * 40), S_w / (3 * 40 * 39 / 2), eigvals_only=True)[:-3:-1]
    np.testing.assert_allclose(model.eigenvalues_, quotient / (1 + quotient))
    assert_same_subspace(model.components_, eigh(S_t, S_w)[1][:, -2:].T)


def test_wide_rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 5)
    X = rng.normal(size=(6, 60))[y] + rng.normal(size=(30, 60))
    model = PAPER(n_neighbors=3).fit(X, y)
    S_w, _ = covariances(X, y, 3)
    assert model.rank_ == 29
    np.testing.assert_array_equal(model.eigenvalues_[:5], 1)
    np.testing.assert_allclose(
        np.diag(model.components_ @ S_w @ model.components_.T),
        np.r_[np.zeros(5), np.ones(24)],
        atol=1e-9,
    )
    with pytest.warns(
        UserWarning, match="n_components=40 were requested, but only 29 directions exist"
    ):
        PAPER(40, n_neighbors=3).fit(X, y)


@pytest.mark.parametrize("s", [0.3, 0.9])
def test_both_covariances_are_shrunk(s):
    X, y = unequal()
    S_w, S_b = covariances(X, y, 5)
    target = np.trace(S_w) / 5 * np.eye(5)
    S_w, S_b = ((1 - s) * S + s * target for S in (S_w, S_b))
    model = DMLMJ(shrinkage=s).fit(X, y)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), np.linalg.inv(S_w))
    quotient = eigh(S_b, S_w, eigvals_only=True)
    np.testing.assert_allclose(np.sort(model.eigenvalues_), np.sort(quotient / (1 + quotient)))
    assert model.shrinkage_ == s


def test_nothing_diverges_where_nothing_is_known():
    model = DMLMJ(shrinkage=1.0).fit(*unequal())
    np.testing.assert_allclose(model.eigenvalues_, 0.5)
    assert model.objective_ == pytest.approx(0, abs=1e-12)


def test_many_features_of_hardly_any_variance():
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(10), 12)
    X = np.hstack(
        [
            3 * rng.normal(size=(10, 3))[y] + rng.normal(size=(120, 3)),
            0.3 * rng.normal(size=(120, 60)),
        ]
    )
    model, paper = (
        make_pipeline(DMLMJ(5, shrinkage=s), KNeighborsClassifier(3)) for s in (0.5, None)
    )
    accuracy = [each.fit(X[:80], y[:80]).score(X[80:], y[80:]) for each in (model, paper)]
    assert accuracy[0] > accuracy[1] + 0.3


def test_row_order_names_and_units():
    X, y = unequal()
    order = np.random.default_rng(1).permutation(len(X))
    M = DMLMJ(3).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        DMLMJ(3).fit(X[order], y[order]).get_mahalanobis_matrix(), M, atol=1e-10
    )
    renamed = np.array(["d", "a", "c", "b"])[y]
    np.testing.assert_allclose(DMLMJ(3).fit(X, renamed).get_mahalanobis_matrix(), M, atol=1e-10)
    np.testing.assert_allclose(
        DMLMJ(3).fit(1e3 * X, y).get_mahalanobis_matrix(), M / 1e6, atol=1e-16
    )


def test_wine():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(DMLMJ(5), KNeighborsClassifier(3))
    assert cross_val_score(model, scale(X), y).mean() > 0.96


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_neighbors must be at least 1, got 0"):
        DMLMJ(n_neighbors=0).fit(*unequal())
    with pytest.raises(TypeError, match=r"n_neighbors must be an integer, got 2\.5"):
        DMLMJ(n_neighbors=2.5).fit(*unequal())
