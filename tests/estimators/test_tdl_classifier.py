"""TDLClassifier: labels for all rows and for new ones, from few."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

from nearkin import TDL, TDLClassifier
from nearkin.graphs import heat_kernel, union
from nearkin.neighbors import nearest

X, Y = shuffle(*load_digits(return_X_y=True), random_state=0)
X, NEW = X[:300], X[300:500]
Y, NEW_Y = Y[:300], Y[300:500]
FEW = np.where(np.arange(300) % 4, -1, Y)
GIVEN = TDL(20, n_neighbors=10, bandwidth=np.inf, laplacian="normalized", reg=1.0)  # the default, but for reg


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "laplacian": "normalized"}])
def test_labels_of_all_rows_and_of_new_ones(settings):
    tdl = TDLClassifier(TDL(20, **settings)).fit(X, FEW)
    known = FEW >= 0
    np.testing.assert_array_equal(tdl.transduction_[known], Y[known])
    np.testing.assert_allclose(tdl.label_distributions_.sum(axis=1), 1)
    np.testing.assert_array_equal(tdl.label_distributions_.argmax(axis=1), tdl.transduction_)
    assert np.mean(tdl.transduction_[~known] == Y[~known]) > 0.8
    np.testing.assert_allclose(tdl.predict_proba(NEW).sum(axis=1), 1)
    assert tdl.score(NEW, NEW_Y) > 0.8


def test_names_of_classes_change_nothing():
    names = np.array([f"digit {9 - number}" for number in range(10)], dtype=object)
    named = np.where(FEW >= 0, names[Y], None)
    ours, theirs = (TDLClassifier(GIVEN).fit(X, labels) for labels in (FEW, named))
    assert list(theirs.classes_) == sorted(names)
    np.testing.assert_allclose(theirs.label_distributions_[:, ::-1], ours.label_distributions_, atol=1e-8)
    assert np.mean(theirs.predict(NEW) == names[ours.predict(NEW)]) > 0.99


@pytest.mark.parametrize(
    ("order", "unit"), [(np.random.default_rng(0).permutation(100), 1), (slice(None), 5)], ids=["order", "units"]
)
def test_the_order_and_the_units_of_rows_change_nothing(order, unit):
    """Nor does the choice of reg by hidden labels depend on them."""
    few = np.where(np.arange(100) % 2, -1, Y[:100] % 4)
    untied = X[:100] + 1e-3 * np.random.default_rng(1).standard_normal((100, 64))
    base, other = TDLClassifier().fit(untied, few), TDLClassifier().fit(unit * untied[order], few[order])
    assert base.tdl_.reg_scores_
    assert other.tdl_.reg_ == base.tdl_.reg_
    np.testing.assert_allclose(other.label_distributions_, base.label_distributions_[order], atol=1e-6)


def test_a_graph_of_the_user():
    W = union(heat_kernel(nearest(X, 20)))
    tdl = TDLClassifier(GIVEN).fit(X, FEW, affinity=W)
    own = TDLClassifier(GIVEN).fit(X, FEW)
    assert np.mean(tdl.transduction_ == own.transduction_) > 0.95
    with pytest.raises(ValueError, match=r"transform\(X, affinity=W\)"):
        tdl.predict(NEW)
    edges = own.tdl_.extension_.graph.weights(NEW)
    assert np.mean(tdl.predict(NEW, affinity=edges) == NEW_Y) > 0.8


def test_sparse_rows():
    dense, sparse = (TDLClassifier(GIVEN).fit(rows, FEW) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=1e-6)


def test_labelled_rows_in_one_place_vote_by_class_frequency():
    """Two of three islands have no label; one coordinate separates islands, not the rows of one."""
    islands = np.vstack([np.random.default_rng(0).standard_normal((40, 2)) + 1000 * island for island in range(3)])
    few = np.full(120, -1)
    few[:9] = [0, 0, 0, 1, 1, 1, 1, 1, 1]
    with pytest.warns(UserWarning, match="has 3 connected components"):
        tdl = TDLClassifier(TDL(1, n_cost_neighbors=100)).fit(islands, few)
    if np.ptp(tdl.tdl_.embedding_[:9]) < 1e-10:
        np.testing.assert_allclose(tdl.label_distributions_[9:], np.tile([1 / 3, 2 / 3], (111, 1)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(Y == 3, 3, -1), "y holds one class"),
        (np.full(300, -1), "y holds no label"),
        (Y[:20], "inconsistent numbers of samples"),
    ],
)
def test_labels_that_cannot_be_learned_from(y, message):
    with pytest.raises(ValueError, match=message):
        TDLClassifier().fit(X, y)


def test_reg_by_hidden_labels():
    tdl = TDLClassifier(TDL(8, reg="auto", random_state=0)).fit(X[:150], Y[:150] // 4)
    assert tdl.tdl_.reg_ in tdl.tdl_.reg_scores_


def test_the_given_tdl_is_cloned_and_its_parameters_are_reached():
    tdl = TDL(5)
    model = TDLClassifier(tdl).set_params(tdl__reg=16.0)
    assert clone(model).get_params()["tdl__reg"] == 16.0
    model.fit(X, FEW)
    assert model.tdl_ is not tdl
    assert not hasattr(tdl, "embedding_")
    assert model.tdl_.embedding_.shape == (300, 5)
    assert model.tdl_.reg_ == 16.0
    assert TDLClassifier().fit(X[:60], FEW[:60]).tdl_.n_components_ == 20
