import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from nearkin import DMLMJ, DNE, LDE, LFDA, LPP, MFA
from nearkin.bandwidth import unit_distance
from nearkin.estimators import base
from nearkin.estimators.base import best_setting, inner_folds, sample_rows
from nearkin.estimators.rows import Rows
from nearkin.neighbors import EXACT


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


class TestFolds:
    def test_every_row_is_tested_once_and_every_fold_has_its_share_of_each_class(self):
        X, y = wine()
        folds = inner_folds(X, y)
        np.testing.assert_array_equal(
            np.sort(np.concatenate([test for _, test in folds])), np.arange(len(y))
        )
        for train, test in folds:
            np.testing.assert_array_equal(np.union1d(train, test), np.arange(len(y)))
            assert len(train) + len(test) == len(y)
            np.testing.assert_allclose(np.bincount(y[test]), np.bincount(y) / 5, atol=1)

    def test_single_and_unlabelled_rows_are_in_every_training_part(self):
        X = np.random.default_rng(0).normal(size=(9, 2))
        y = np.array([0, 1, 1, 2, 2, 2, -1, -1, -1])
        folds = inner_folds(X, y)
        assert sorted(np.concatenate([test for _, test in folds])) == [1, 2, 3, 4, 5]
        assert all(set(y[train]) == {-1, 0, 1, 2} for train, _ in folds)
        assert inner_folds(X[:3], np.arange(3)) == []
        assert len(inner_folds(X[:2], np.zeros(2))) == 2

    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_neither_order_nor_names_nor_rotation_matter(self, container):
        X, y = wine()
        X[np.abs(X) < 0.3] = 0
        order = np.random.default_rng(0).permutation(len(y))
        Q = np.linalg.qr(np.random.default_rng(1).normal(size=(13, 13)))[0]
        for Z, labels in [(container(X), y), (container(X), (y + 1) % 3), (X @ Q + 5, y)]:
            expected = {frozenset(test) for _, test in inner_folds(X, y)}
            assert {
                frozenset(order[test]) for _, test in inner_folds(Z[order], labels[order])
            } == expected
        expected = sample_rows(X, y, 60)
        np.testing.assert_array_equal(np.sort(order[sample_rows(X[order], y[order], 60)]), expected)

    def test_single_precision_rows_far_from_the_origin(self):
        rng = np.random.default_rng(0)
        X, y = (rng.normal(size=(300, 5)) + 1e4).astype(np.float32), np.arange(300) % 3
        order = rng.permutation(300)
        expected = {frozenset(test) for _, test in inner_folds(X.astype(float), y)}
        for rows in (np.arange(300), order):
            folds = inner_folds(X[rows], y[rows])
            assert {frozenset(rows[test]) for _, test in folds} == expected
            assert unit_distance(X[rows], 50) == pytest.approx(unit_distance(X, 50), rel=1e-12)

    def test_a_sample_has_its_share_of_large_classes_and_ten_of_small_ones(self):
        y = np.repeat([0, 1, 2, 3], [5000, 3000, 15, 3])
        X = np.random.default_rng(0).normal(size=(len(y), 2))
        rows = sample_rows(X, y, 1000)
        np.testing.assert_array_equal(np.bincount(y[rows]), [556, 334, 15, 3])
        assert len(np.unique(rows)) == len(rows)
        assert abs(np.linalg.norm(X[rows], axis=1).mean() - np.linalg.norm(X, axis=1).mean()) < 0.02
        np.testing.assert_array_equal(sample_rows(X[:50], y[:50]), np.arange(50))


def test_the_first_setting_within_one_standard_error_of_the_best():
    best = np.array([0.8, 0.9, 1.0])  # standard error 0.1 / sqrt(3)
    for below, chosen in [(0.05, 0), (0.06, 1)]:
        assert best_setting([best - below, best - 0.057, best, best - 0.01]) == chosen
    assert best_setting([best, best]) == 0
    assert best_setting([best - 0.2, best]) == 1


@pytest.fixture
def _few_numbers(monkeypatch):
    monkeypatch.setattr(base, "NUMBERS_OF_NEIGHBORS", (1, 5))


@pytest.mark.parametrize("estimator", [DNE(0.9), LPP(3)])
@pytest.mark.usefixtures("_few_numbers")
class TestAuto:
    @pytest.mark.slow
    def test_is_the_number_that_the_folds_choose(self, estimator):
        X, y = (part[::2] for part in wine())
        auto = clone(estimator).set_params(n_neighbors="auto").fit(X, y)
        scores = auto.n_neighbors_scores_
        assert list(scores) == list(base.NUMBERS_OF_NEIGHBORS)
        for k in (1, 5):
            for (train, test), score in zip(inner_folds(X, y), scores[k], strict=True):
                model = clone(estimator).set_params(n_neighbors=k).fit(X[train], y[train])
                vote = KNeighborsClassifier(1).fit(model.transform(X[train]), y[train])
                assert vote.score(model.transform(X[test]), y[test]) == score
        assert auto.n_neighbors_ == list(scores)[best_setting(list(scores.values()))]
        explicit = clone(estimator).set_params(n_neighbors=auto.n_neighbors_).fit(X, y)
        np.testing.assert_array_equal(auto.components_, explicit.components_)
        assert explicit.n_neighbors_ == auto.n_neighbors_
        assert explicit.n_neighbors_scores_ is None

    @pytest.mark.slow
    def test_does_not_depend_on_order_or_names(self, estimator):
        X, y = (part[::2] for part in wine())
        auto = clone(estimator).set_params(n_neighbors="auto")
        order = np.random.default_rng(0).permutation(len(y))
        k = clone(auto).fit(X, y).n_neighbors_
        assert clone(auto).fit(X[order], np.array(["c", "a", "b"])[y[order]]).n_neighbors_ == k


@pytest.mark.slow
@pytest.mark.usefixtures("_few_numbers")
def test_parameters_that_are_auto_have_one_value():
    X, y = (part[::4] for part in wine())
    both = LDE(3, n_neighbors_within="auto", n_neighbors_between="auto").fit(X, y)
    k = both.n_neighbors_within_
    assert k == both.n_neighbors_between_
    assert k in both.n_neighbors_scores_
    explicit = LDE(3, n_neighbors_within=k, n_neighbors_between=k).fit(X, y)
    np.testing.assert_array_equal(both.components_, explicit.components_)
    assert (
        LDE(3, n_neighbors_within="auto", n_neighbors_between=2).fit(X, y).n_neighbors_between_ == 2
    )


@pytest.mark.usefixtures("_few_numbers")
@pytest.mark.parametrize("estimator", [DMLMJ(3), LFDA(3), MFA(3)])
def test_every_method_whose_number_is_open_chooses_it(estimator):
    X, y = (part[::4] for part in wine())
    auto = clone(estimator).set_params(n_neighbors="auto").fit(X, y)
    explicit = clone(estimator).set_params(n_neighbors=auto.n_neighbors_).fit(X, y)
    np.testing.assert_array_equal(auto.components_, explicit.components_)


def test_auto_needs_labels_and_its_own_search():
    X, y = wine()
    with pytest.raises(
        ValueError, match="n_neighbors='auto' needs rows in memory: give the n_neighbors_ of a fit"
    ):
        DNE(n_neighbors="auto").fit_rows(Rows(X, y, EXACT))
    with pytest.raises(
        ValueError,
        match="n_neighbors='auto' requires y to be passed, but the target y is None: give a number",
    ):
        LPP(2, n_neighbors="auto").fit(X)
    with pytest.raises(
        ValueError, match="n_neighbors='auto' splits the rows, which given distances prevent"
    ):
        DNE(n_neighbors="auto").fit(X, y, distances=csr_array((len(X), len(X))))
    with pytest.raises(ValueError, match="n_neighbors='auto' needs two rows of a class in y"):
        DNE(n_neighbors="auto").fit(X[:4], np.arange(4))
    with pytest.raises(TypeError, match="n_neighbors must be an integer, got 'best'"):
        DNE(n_neighbors="best").fit(X, y)
