import warnings
from functools import partial

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array, random_array
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from nearkin import RCA

paper = partial(RCA, shrinkage=None)


def wine():
    return load_wine(return_X_y=True)


def by_definition(X, chunklets):
    """Return S_w and n as the docstring defines them; -1 is in no chunklet."""
    S_w, n = np.zeros((X.shape[1], X.shape[1])), 0
    for c in set(chunklets) - {-1}:
        members = [x for x, chunklet in zip(X, chunklets, strict=True) if chunklet == c]
        if len(members) > 1:
            n += len(members)
            for x in members:
                S_w += np.outer(x - np.mean(members, axis=0), x - np.mean(members, axis=0))
    return S_w, n


def some_chunklets(y, seed=0):
    """Return chunklets of one to four rows of a class, for about half of the rows."""
    rng = np.random.default_rng(seed)
    chunklets = np.full(len(y), -1)
    for number in range(30):
        members = rng.choice(np.flatnonzero(y == number % 3), 1 + number % 4)
        chunklets[members] = number
    return chunklets


@pytest.mark.parametrize("target", ["classes", "chunklets"])
def test_definition(target):
    X, y = wine()
    y = y if target == "classes" else some_chunklets(y)
    S_w, n = by_definition(X, y)
    S_t = len(X) * np.cov(X.T, bias=True)
    model = paper(target=target).fit(X, y)
    V = model.components_.T
    np.testing.assert_allclose(model.get_mahalanobis_matrix() @ S_w, n * np.eye(13), atol=1e-6 * n)
    np.testing.assert_allclose(V.T @ S_w @ V, n * np.eye(13), atol=1e-6 * n)
    np.testing.assert_allclose(
        model.eigenvalues_, eigh(S_t, S_w, eigvals_only=True)[::-1], rtol=1e-8
    )
    np.testing.assert_allclose(np.diag(V.T @ S_t @ V), n * model.eigenvalues_, rtol=1e-8)
    assert model.objective_ == pytest.approx(model.eigenvalues_.sum())
    assert model.rank_ == model.n_components_ == 13


def test_in_the_learned_coordinates_chunklets_have_unit_covariance():
    X, y = wine()
    chunklets = some_chunklets(y)
    Z = paper(5, target="chunklets").fit_transform(X, chunklets)
    S_w, n = by_definition(Z, chunklets)
    np.testing.assert_allclose(S_w / n, np.eye(5), atol=1e-9)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_no_other_directions_have_a_larger_ratio_trace(m):
    X, y = wine()
    S_w, _ = by_definition(X, y)
    S_t = len(X) * np.cov(X.T, bias=True)
    model = paper(m).fit(X, y)

    def ratio_trace(V):
        return np.trace(np.linalg.solve(V.T @ S_w @ V, V.T @ S_t @ V))

    assert ratio_trace(model.components_.T) == pytest.approx(model.objective_)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1e1):
        nudge = rng.normal(size=(13, m)) * np.abs(model.components_.T).max(axis=1, keepdims=True)
        assert ratio_trace(model.components_.T + size * nudge) < model.objective_


def test_its_first_directions_are_those_of_lda():
    X, y = wine()
    lda = LinearDiscriminantAnalysis().fit(X, y).scalings_.T
    for ours, theirs in zip(paper(2).fit(X, y).components_, lda, strict=True):
        assert abs(ours @ theirs) == pytest.approx(np.linalg.norm(ours) * np.linalg.norm(theirs))


def test_chunklets_that_are_the_classes():
    X, y = wine()
    np.testing.assert_array_equal(
        paper(target="chunklets").fit(X, y).components_, paper().fit(X, y).components_
    )


def test_one_chunklet_of_all_rows_is_the_whitening_of_their_covariance():
    X, _ = wine()
    model = paper(target="chunklets").fit(X, np.zeros(len(X), dtype=int))
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix() @ np.cov(X.T, bias=True), np.eye(13), atol=1e-6
    )
    np.testing.assert_allclose(model.eigenvalues_, 1)


@pytest.mark.parametrize("m", [1, 4, 13])
def test_one_chunklet_of_all_rows_is_whitened_pca(m):
    X, _ = wine()
    ours = paper(m, target="chunklets").fit_transform(X, np.zeros(len(X)))
    theirs = PCA(m, whiten=True, svd_solver="full").fit_transform(X)
    np.testing.assert_allclose(
        np.abs(ours - ours.mean(axis=0)), np.abs(theirs) * np.sqrt(178 / 177), rtol=1e-6
    )


def test_the_first_of_all_components_are_the_fit_with_so_many():
    X, y = wine()
    every = paper().fit(X, y).components_
    for m in range(1, 14):
        np.testing.assert_array_equal(paper(m).fit(X, y).components_, every[:m])


def test_of_directions_that_tell_nothing_the_one_of_most_scatter_comes_first():
    X, y = wine()
    others = paper().fit(X, y).components_[2:]
    np.testing.assert_allclose(
        others @ others.T, np.diag(np.sum(others**2, axis=1)), atol=1e-9 * np.sum(others**2)
    )
    assert (np.diff(np.linalg.norm(others, axis=1)) > 0).all()


def test_an_invertible_linear_change_of_the_features_changes_no_distance():
    X, y = wine()
    X = scale(X)
    T = np.random.default_rng(0).normal(size=(13, 13))
    for m in (2, None):
        plain, changed = paper(m).fit(X, y), paper(m).fit(X @ T, y)
        M = T @ changed.get_mahalanobis_matrix() @ T.T
        unit = X.std(axis=0)
        scaled = plain.get_mahalanobis_matrix() * np.outer(unit, unit)
        np.testing.assert_allclose(
            M * np.outer(unit, unit), scaled, atol=1e-6 * np.abs(scaled).max()
        )


def test_a_chunklet_of_one_row_carries_nothing():
    X, y = wine()
    chunklets = some_chunklets(y)
    numbers, sizes = np.unique(chunklets, return_counts=True)
    without = np.where(np.isin(chunklets, numbers[sizes == 1]), -1, chunklets)
    assert (without != chunklets).any()
    expected = paper(target="chunklets").fit(X, chunklets).components_
    np.testing.assert_allclose(
        paper(target="chunklets").fit(X, without).components_, expected, rtol=1e-9, atol=1e-12
    )


def test_rows_in_no_chunklet_order_the_directions_and_leave_the_metric():
    X, y = wine()
    chunklets = some_chunklets(y)
    alone = paper(target="chunklets").fit(X[chunklets >= 0], chunklets[chunklets >= 0])
    among_others = paper(target="chunklets").fit(X, chunklets)
    M = alone.get_mahalanobis_matrix()
    np.testing.assert_allclose(among_others.get_mahalanobis_matrix(), M, atol=1e-8 * M.max())
    assert np.abs(among_others.eigenvalues_ - alone.eigenvalues_).max() > 0.1


@pytest.mark.parametrize("none", [None, np.nan])
def test_other_words_for_none(none):
    X, y = wine()
    chunklets = some_chunklets(y)
    expected = paper(target="chunklets").fit(X, chunklets).components_
    words = np.array(
        [none if chunklet < 0 else f"chunklet {chunklet:02}" for chunklet in chunklets],
        dtype=object,
    )
    np.testing.assert_array_equal(paper(target="chunklets").fit(X, words).components_, expected)
    numbers = np.array([none if chunklet < 0 else chunklet for chunklet in chunklets], dtype=object)
    np.testing.assert_array_equal(paper(target="chunklets").fit(X, numbers).components_, expected)
    np.testing.assert_array_equal(
        paper(target="chunklets").fit(X, numbers.astype(float)).components_, expected
    )


def test_the_string_minus_one_is_a_chunklet():
    X, y = wine()
    names = np.array(["-1", "a", "b"])[y]
    np.testing.assert_array_equal(
        paper(target="chunklets").fit(X, names).components_, paper().fit(X, names).components_
    )


class TestWhereChunkletsDoNotVary:
    def test_real_pixels(self):
        """Some pixels of digits never vary."""
        X, y = load_digits(return_X_y=True)
        model = paper().fit(X, y)
        assert model.rank_ == model.n_components_ == 61
        assert np.isfinite(model.components_).all()
        S_w, n = by_definition(X, y)
        np.testing.assert_allclose(
            model.get_mahalanobis_matrix(), n * np.linalg.pinv(S_w, hermitian=True), atol=1e-8
        )

    def test_fewer_directions_than_requested(self):
        X, y = load_digits(return_X_y=True)
        with pytest.warns(
            UserWarning, match="n_components=64 were requested, but only 61 directions exist"
        ):
            assert paper(64).fit(X, y).n_components_ == 61

    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_a_feature_that_only_tells_classes_apart_comes_first(self, container):
        X, y = load_iris(return_X_y=True)
        shifted = np.hstack(
            [X, 0.1 * y[:, None] + 1e3, np.zeros((150, 100)) + 1e-3 * (np.arange(100) == 7)]
        )
        with pytest.warns(
            UserWarning, match="do not vary at all in 1 direction .*set shrinkage=0.5"
        ):
            model = paper().fit(container(shifted), y)
        assert model.rank_ == 5
        np.testing.assert_allclose(model.eigenvalues_[0], 1e4 * model.eigenvalues_[-1])
        # times its variance
        np.testing.assert_allclose(model.components_[0, 4] ** 2 * 0.01 * 2 / 3, 1e4, rtol=1e-6)
        np.testing.assert_array_equal(model.components_[:, 5:], 0)
        within = X - np.array([X[y == c].mean(axis=0) for c in range(3)])[y]
        M = model.get_mahalanobis_matrix()[:4, :4]
        np.testing.assert_allclose(within.T @ within @ M, 150 * np.eye(4), atol=1e-6)

    def test_what_lda_classifies_without_error_is_classified_without_error(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 10)), rng.integers(0, 3, 200)
        X = np.hstack([X, 0.01 * y[:, None]])
        for shrinkage in (0.1, None):
            with warnings.catch_warnings():
                warnings.simplefilter("error" if shrinkage else "ignore")
                Z = RCA(2, shrinkage=shrinkage).fit_transform(scale(X), y)
            assert KNeighborsClassifier(3).fit(Z[:100], y[:100]).score(Z[100:], y[100:]) == 1

    @pytest.mark.filterwarnings("ignore:Rows of one label do not vary:UserWarning")
    def test_also_in_turned_coordinates_and_with_more_features_than_rows(self):
        """Rounding is not taken for scatter."""
        X, y = load_iris(return_X_y=True)
        # classes differ in the feature that is added
        X = X - np.array([X[y == c].mean(axis=0) for c in range(3)])[y]
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 5)))[0].T
        for unit in (1e-2, 1.0, 1e3):
            model = paper().fit(np.hstack([X, unit * y[:, None]]) @ Q, y)
            assert model.rank_ == 5
            M = Q @ model.get_mahalanobis_matrix() @ Q.T
            expected = np.linalg.inv(X.T @ X / 150)
            np.testing.assert_allclose(M[:4, :4], expected, atol=1e-6 * expected.max())
            np.testing.assert_allclose(M[4, 4], 1e4 / (unit**2 * 2 / 3), rtol=1e-6)

    def test_sparse_rows_stay_sparse_and_agree(self):
        X = random_array(
            (300, 40), density=0.05, format="csr", random_state=np.random.default_rng(0)
        )
        y = np.arange(300) % 7
        dense = paper().fit(X.toarray(), y)
        np.testing.assert_allclose(paper().fit(X, y).components_, dense.components_, atol=1e-8)

    def test_more_features_than_rows(self):
        """As many directions as rows within classes have, and in these every class is whitened."""
        X, y = np.random.default_rng(0).normal(size=(30, 200)), np.arange(30) % 3
        with pytest.warns(UserWarning, match="do not vary at all in 2 directions"):
            model = paper().fit(X, y)
        assert model.rank_ == 29
        S_w, n = by_definition(model.transform(X), y)
        np.testing.assert_allclose(S_w / n, np.diag([0, 0] + 27 * [1]), atol=1e-8)


@pytest.mark.parametrize(
    ("target", "y", "message"),
    [
        ("classes", [0, 1, 2, 3], "No two rows of one label differ"),
        ("classes", [0, 0, 1, 2], "No two rows of one label differ"),
        ("chunklets", [-1, -1, -1, -1], "No two rows of one label differ"),
        ("chunklets", [0, 0, -1, -1], "No two rows of one label differ"),
        ("chunklets", [0.5, 0.5, 1.0, -1.0], "continuous"),
        ("chunklets", [0, 0, 1], "inconsistent numbers of samples"),
        ("chunks", [0, 0, 1, 1], "target must be one of classes, chunklets, got 'chunks'"),
    ],
)
def test_bad_input(target, y, message):
    X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 5.0], [3.0, 1.0]])
    with pytest.raises(ValueError, match=message):
        paper(target=target).fit(X, y)


def test_pairs_make_chunklets():
    """Rows that similar pairs connect are a chunklet; the rows of dissimilar pairs count in S_t."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    chunklets = np.r_[np.repeat(np.arange(10), 3), np.full(10, -1)]
    chain = [(i, i + 1) for i in range(29) if i % 3 < 2]
    apart = [(0, 3), *((i, i + 1) for i in range(30, 39))]
    model = RCA().fit_pairs(X[chain + apart], [1] * len(chain) + [-1] * len(apart))
    expected = RCA(target="chunklets").fit(X, chunklets)
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), expected.get_mahalanobis_matrix(), atol=1e-9
    )
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match=r"y marks no pair as similar \(1\)"):
        RCA().fit_pairs(X[apart], -np.ones(10))
