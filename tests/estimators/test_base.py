import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from nearkin import DMLMJ, DNE, LDE, LFDA, LPP, MFA
from nearkin.estimators import base
from nearkin.estimators.rows import Rows
from nearkin.folds import best_setting, inner_folds
from nearkin.neighbors import EXACT


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


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
