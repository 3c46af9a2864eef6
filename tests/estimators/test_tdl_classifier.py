"""TDLClassifier: labels for all rows and for new ones, from few."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, make_circles
from sklearn.utils import shuffle

from nearkin import TDL, TDLClassifier
from nearkin.estimators import tdl_classifier
from nearkin.estimators.tdl_classifier import LeftOut, best_bandwidth
from nearkin.graphs import binary, heat_kernel, normalized_laplacian, union
from nearkin.neighbors import nearest

X, Y = shuffle(*load_digits(return_X_y=True), random_state=0)
X, NEW = X[:300], X[300:500]
Y, NEW_Y = Y[:300], Y[300:500]
FEW = np.where(np.arange(300) % 4, -1, Y)
GIVEN = TDL(20, n_neighbors=10, bandwidth=np.inf, laplacian="normalized", reg=1.0)


@pytest.mark.slow
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
    np.testing.assert_allclose(
        theirs.label_distributions_[:, ::-1], ours.label_distributions_, atol=1e-8
    )
    assert np.mean(theirs.predict(NEW) == names[ours.predict(NEW)]) > 0.99


@pytest.mark.parametrize(
    ("order", "unit"),
    [(np.random.default_rng(0).permutation(100), 1), (slice(None), 5)],
    ids=["order", "units"],
)
def test_the_order_and_the_units_of_rows_change_nothing(order, unit):
    """Nor does the choice of the space depend on them."""
    few = np.where(np.arange(100) % 2, -1, Y[:100] % 4)  # twelve labels a class
    untied = X[:100] + 1e-3 * np.random.default_rng(1).standard_normal((100, 64))
    base, other = (
        TDLClassifier().fit(untied, few),
        TDLClassifier().fit(unit * untied[order], few[order]),
    )
    assert other.space_ == base.space_
    assert other.losses_ == pytest.approx(base.losses_)
    np.testing.assert_allclose(
        other.label_distributions_, base.label_distributions_[order], atol=1e-6
    )


def test_a_graph_of_the_user():
    W = union(heat_kernel(nearest(X, 20)))
    tdl = TDLClassifier(GIVEN).fit(X, FEW, affinity=W)
    own = TDLClassifier(GIVEN).fit(X, FEW)
    assert np.mean(tdl.transduction_ == own.transduction_) > 0.9
    with pytest.raises(ValueError, match=r"transform\(X, affinity=W\)"):
        tdl.predict(NEW)
    edges = own.tdl_.extension_.graph.weights(NEW)
    assert np.mean(tdl.predict(NEW, affinity=edges) == NEW_Y) > 0.8


def test_sparse_rows():
    dense, sparse = (TDLClassifier(GIVEN).fit(rows, FEW) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=1e-6)


def test_labelled_rows_in_one_place_vote_by_class_frequency():
    """Two of three islands have no label; one coordinate separates islands, not the rows of one."""
    islands = np.vstack(
        [np.random.default_rng(0).standard_normal((40, 2)) + 1000 * island for island in range(3)]
    )
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


def test_the_given_tdl_is_cloned_and_its_parameters_are_reached():
    tdl = TDL(5)
    model = TDLClassifier(tdl).set_params(tdl__reg=16.0)
    assert clone(model).get_params()["tdl__reg"] == 16.0
    model.fit(X, FEW)
    assert model.tdl_ is not tdl
    assert not hasattr(tdl, "embedding_")
    assert model.tdl_.embedding_.shape == (300, 5)
    assert model.tdl_.reg == 16.0


def small_groups(n_classes=6, n_groups=15, n_of_a_group=6, n_features=5, seed=0):
    """Return classes that consist of many tight groups, with two rows of every group labelled."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_classes * n_groups), n_of_a_group)
    centres = rng.normal(size=(n_classes * n_groups, n_features))
    rows = centres[groups] + 0.08 * rng.normal(size=(len(groups), n_features))
    y = groups % n_classes
    few = np.where(np.arange(len(y)) % n_of_a_group < 2, y, -1)
    return rows, y, few


def rings(n=300, n_labels=20, seed=0):
    """Return two rings, one within the other, on which few rows have a label."""
    rows, y = make_circles(n, noise=0.03, factor=0.7, random_state=seed)
    return rows, y, np.where(np.arange(n) < n_labels, y, -1)


def banana_in_noise(n=300, seed=0):
    """Return two classes that differ along one feature of ten, where no graph of all features
    follows the classes.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rows = rng.normal(size=(n, 10))
    rows[:, 0] += 1.5 * y
    return rows, y, np.where(np.arange(n) < 60, y, -1)


class TestDefault:
    def test_small_groups(self):
        """Some 20 eigenvectors of a graph of 90 groups mix most of these; a hundred do not."""
        rows, y, few = small_groups()
        hidden = few < 0
        right = np.mean(TDLClassifier().fit(rows, few).transduction_[hidden] == y[hidden])
        cut = TDLClassifier(
            TDL(20, n_neighbors=10, bandwidth=np.inf, laplacian="normalized", reg=1.0)
        ).fit(rows, few)
        assert right > 0.9
        assert right > np.mean(cut.transduction_[hidden] == y[hidden]) + 0.2

    def test_the_cosines_are_those_of_the_rows_of_the_regularized_laplacian_kernel(
        self, monkeypatch
    ):
        """Without a cut, and in the complement of the constant vector, by the inverse of a matrix."""
        n = 80
        monkeypatch.setattr(tdl_classifier, "EIGENVECTORS", n)
        model = TDLClassifier().fit(X[:n], FEW[:n])
        P = normalized_laplacian(union(binary(nearest(X[:n], 5)))).toarray()
        H = np.eye(n) - 1 / n
        assert model.tdl_.penalty_size_ == pytest.approx(1)
        K = H @ np.linalg.inv(H @ P @ H + 0.01 * np.eye(n)) @ H
        profiles = K / np.linalg.norm(K, axis=1, keepdims=True)
        Z = model._profiles(model.tdl_.embedding_)
        np.testing.assert_allclose(Z @ Z.T, profiles @ profiles.T, atol=1e-9)

    @pytest.mark.parametrize(("problem", "space"), [(rings, "tdl"), (banana_in_noise, "features")])
    def test_the_space_is_that_which_predicts_the_labels(self, problem, space):
        rows, _, few = problem()
        model = TDLClassifier().fit(rows, few)
        assert model.space_ == space
        assert set(model.losses_) == set(model.accuracies_) == {"tdl", "features"}
        assert model.accuracies_[space] == max(model.accuracies_.values())
        again = model.predict(rows[few < 0])
        assert np.mean(again == model.transduction_[few < 0]) > (
            0.99 if space == "features" else 0.9
        )

    def test_the_loss_of_the_labels_by_loops(self):
        """Each label is predicted by all others; l votes and the class frequencies as one more."""
        rng = np.random.default_rng(0)
        Z, codes = rng.normal(size=(12, 3)) + 5, np.arange(12) % 3
        left_out = best_bandwidth(Z, codes)
        expected, right = 0.0, []
        for i in range(12):
            others = np.delete(np.arange(12), i)
            votes = np.exp(-np.sum((Z[others] - Z[i]) ** 2, axis=1) / left_out.bandwidth**2)
            share = votes[codes[others] == codes[i]].sum() / votes.sum()
            expected -= np.log((12 * share + 1 / 3) / 13) / 12
            right.append(np.argmax([votes[codes[others] == c].sum() for c in range(3)]) == codes[i])
        assert left_out.loss == pytest.approx(expected)
        np.testing.assert_array_equal(left_out.right, right)

    def test_the_only_label_of_a_class_says_nothing(self):
        """Nobody could vote for it, so that the widest bandwidth would always be best."""
        Z = np.random.default_rng(0).normal(size=(7, 3))
        left_out = best_bandwidth(Z, np.array([0, 0, 0, 1, 1, 1, 2]))
        assert len(left_out.right) == 6
        assert np.isfinite(left_out.loss)

    @pytest.mark.parametrize(("n_labels", "tried"), [(5, 0), (6, 2)])
    def test_too_few_labels_choose_nothing(self, n_labels, tried):
        """Three a class on average."""
        rows, y, _ = banana_in_noise(60)
        model = TDLClassifier().fit(rows, np.where(np.arange(60) < n_labels, y, -1))
        assert len(model.losses_) == tried
        assert tried or model.space_ == "tdl"

    def test_the_bandwidth_that_is_taken_has_the_least_loss(self):
        rng = np.random.default_rng(0)
        pairs = np.repeat(rng.normal(size=(20, 2)), 2, axis=0) + 1e-3 * rng.normal(size=(40, 2))
        narrow = best_bandwidth(pairs, np.repeat(rng.permutation(np.arange(20) % 2), 2)).bandwidth
        wide = best_bandwidth(pairs, np.arange(40) % 2).bandwidth  # every pair is of two classes
        assert narrow < 0.2 < wide

    @pytest.mark.parametrize(
        ("n_more", "loss", "expected"),
        [(9, 2.0, True), (1, 2.0, False), (1, 0.5, True), (-9, 0.5, False)],
    )
    def test_accuracy_decides_beyond_its_standard_error_and_the_loss_within(
        self, n_more, loss, expected, monkeypatch
    ):
        """Of 9 labels on which two spaces differ the standard error is 3; of one it is 1."""
        right, more = np.zeros((2, 20), dtype=bool)
        (more if n_more > 0 else right)[: abs(n_more)] = True
        rows, _, few = banana_in_noise()
        found = iter([LeftOut(1.0, 1.0, right), LeftOut(1.0, loss, more)])
        monkeypatch.setattr(tdl_classifier, "best_bandwidth", lambda Z, codes: next(found))
        model = TDLClassifier().fit(rows, few)
        assert list(model.losses_.items()) == [("tdl", 1.0), ("features", loss)]
        assert (model.space_ == "features") is expected

    def test_a_graph_of_the_user_is_the_only_space(self):
        rows, _, few = banana_in_noise()
        model = TDLClassifier().fit(rows, few, affinity=union(heat_kernel(nearest(rows, 20))))
        assert (model.space_, list(model.losses_)) == ("tdl", ["tdl"])

    def test_the_number_of_coordinates(self):
        assert TDLClassifier().fit(X[:60], FEW[:60]).tdl_.n_components_ == 59
        assert TDLClassifier().fit(X, FEW).tdl_.n_components_ == 100
        rows = np.random.default_rng(0).normal(size=(300, 3))
        assert TDLClassifier().fit(rows, np.arange(300) % 75).tdl_.n_components_ == 150

    def test_sparse_rows_and_single_precision(self):
        rows, _, few = banana_in_noise()
        expected = TDLClassifier().fit(rows, few)
        for other in (csr_array(rows), rows.astype(np.float32), rows + 1e4):
            model = TDLClassifier().fit(other, few)
            assert model.space_ == expected.space_
            np.testing.assert_allclose(
                model.label_distributions_, expected.label_distributions_, atol=1e-3
            )
