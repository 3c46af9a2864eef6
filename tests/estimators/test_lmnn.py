"""LMNN: what a fit promises; that looking up impostors now and then ends where looking at all of
them does.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack, random_array
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler, scale

from nearkin import LMNN
from nearkin.descent import lbfgs
from nearkin.estimators import descent_embedding, lmnn
from nearkin.objectives import lmnn as objective
from nearkin.objectives.candidates import target_neighbors
from nearkin.objectives.lmnn import large_margin


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def classes(n=300, seed=0):
    return make_classification(
        n,
        12,
        n_informative=6,
        n_classes=4,
        n_clusters_per_class=2,
        class_sep=1.5,
        random_state=seed,
    )


def by_definition(A, X, y, targets):
    """The loss as the docstring has it, row by row."""
    d = cdist(X @ A.T, X @ A.T, "sqeuclidean")
    total = 0.0
    for i in range(len(X)):
        near = d[i, targets[i][targets[i] != i]]
        total += near.sum() + np.maximum(0, 1 + near[:, None] - d[i, y != y[i]]).sum()
    return total / 2 / len(X)


def loss_of(model, X, y, k=3):
    return by_definition(model.components_.astype(float), X, y, target_neighbors(X, y, k))


class TestTheFit:
    @pytest.mark.parametrize("n_components", [None, 2])
    def test_objective_is_the_loss_of_the_map(self, n_components):
        X, y = wine()
        model = LMNN(n_components, n_neighbors=4).fit(X, y)
        assert model.objective_ == pytest.approx(loss_of(model, X, y, 4), rel=1e-9)
        assert model.loss_curve_[-1] == pytest.approx(model.objective_, rel=1e-12)
        assert len(model.loss_curve_) == model.n_iter_ + 1
        assert (np.diff(model.loss_curve_) <= 0).all()

    @pytest.mark.slow
    def test_a_square_map_is_the_global_optimum(self):
        """No other init leads lower, and no small change of the metric does."""
        X, y = wine()
        X, y = X[::3, :5], y[::3]
        rng = np.random.default_rng(0)
        targets, others = target_neighbors(X, y, 3), csr_array(y[:, None] != y)
        model = LMNN(tol=1e-8, max_iter=1000).fit(X, y)

        def loss(A):
            value, gradient = large_margin(A, X, targets, others)
            return value / len(X), gradient / len(X)

        other = lbfgs(loss, rng.normal(size=(5, 5)) / 3, max_iter=500, tol=1e-9)
        assert model.objective_ <= other.value * (1 + 2e-4)
        M = model.get_mahalanobis_matrix()
        for _ in range(10):
            B = rng.normal(size=(5, rng.integers(1, 6)))
            other = M + 0.02 * (
                np.linalg.norm(M) / np.linalg.norm(B @ B.T) * B @ B.T - rng.random() * M
            )
            assert loss(np.linalg.cholesky(other + 1e-12 * np.eye(5)).T)[0] >= model.objective_ * (
                1 - 1e-4
            )

    @pytest.mark.parametrize("n_components", [None, 2])
    def test_begins_in_the_scale_of_the_lowest_loss(self, n_components):
        X, y = (a[::2] for a in wine())  # few enough: the scale is found from all of them
        targets = target_neighbors(X, y, 3)
        with pytest.warns(ConvergenceWarning):
            start = LMNN(n_components, max_iter=1).fit(X, y).loss_curve_[0]
        V = np.eye(13) if n_components is None else PCA(2).fit(X).components_
        sizes = np.geomspace(0.1, 5, 60)
        lowest = min(by_definition(size * V, X, y, targets) for size in sizes)
        assert start == pytest.approx(lowest, rel=1e-3)

    @pytest.mark.parametrize("n_components", [None, 2])
    def test_units_do_not_matter(self, n_components):
        """A power of 2 rounds nothing. Elsewhere kinks magnify the rounding: the map may differ,
        not the loss.
        """
        X, y = (part[::2] for part in wine())
        plain, doubled = LMNN(n_components).fit(X, y), LMNN(n_components).fit(X * 2.0**20, y)
        np.testing.assert_allclose(doubled.components_ * 2.0**20, plain.components_, rtol=1e-12)
        other = LMNN(n_components).fit(X * 1e6, y)
        np.testing.assert_allclose(other.loss_curve_[:6], plain.loss_curve_[:6], rtol=1e-9)
        assert other.objective_ == pytest.approx(plain.objective_, rel=2e-3)

    def test_single_precision_beyond_two_thousand_rows_changes_little(self, monkeypatch):
        X, y = wine()
        double = LMNN(2).fit(X, y)
        monkeypatch.setattr(descent_embedding, "FLOAT64_ROWS", 10)
        single = LMNN(2).fit(X, y)
        assert single.components_.dtype == np.float64
        assert single.objective_ == pytest.approx(double.objective_, rel=2e-3)

    def test_classes_far_apart_are_drawn_in_until_they_are_a_margin_apart(self):
        """Without impostors at the start, the first sum is all there is, until it meets them."""
        X, y = make_blobs(90, 2, centers=[[0, 0], [40, 0], [0, 40]], random_state=0)
        model = LMNN(tol=1e-10, max_iter=1000).fit(X, y)
        Z = model.transform(X)
        d, targets = cdist(Z, Z, "sqeuclidean"), target_neighbors(X, y, 3)
        farthest = np.take_along_axis(d, targets, axis=1).max(axis=1)
        slack = np.where(y[:, None] == y, np.inf, d).min(axis=1) - 1 - farthest
        assert slack.min() == pytest.approx(0, abs=0.2)
        assert KNeighborsClassifier(3).fit(Z, y).score(Z, y) == 1

    def test_where_nothing_can_be_gained_nothing_is_warned_of(self):
        X = np.array([[0.0], [0.0], [5.0], [5.0]])
        model = LMNN().fit(X, [0, 0, 1, 1])
        assert model.objective_ == 0
        assert np.ptp(model.transform(X)) >= 1

    def test_a_row_alone_in_its_class_is_an_impostor(self):
        X = np.array([[0.0, 0.0], [0.0, 1.0], [0.3, 0.5]])
        Z = LMNN(tol=1e-10).fit_transform(X, ["pair", "pair", "alone"])
        same, other = np.linalg.norm(Z[1:] - Z[0], axis=1)
        assert same < 1e-6
        assert other > 1 - 1e-6

    def test_more_targets_than_rows_of_the_class_are_the_class(self):
        X, y = (part[::2] for part in wine())
        np.testing.assert_array_equal(
            LMNN(2, n_neighbors=500).fit(X, y).components_,
            LMNN(2, n_neighbors=88).fit(X, y).components_,
        )

    def test_max_iter_is_reported(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=3 iterations ended the descent"):
            model = LMNN(max_iter=3).fit(*wine())
        assert model.n_iter_ == 3

    def test_more_features_than_rows_need_no_p_by_p_map(self):
        rng = np.random.default_rng(0)
        model = LMNN().fit(rng.normal(size=(30, 20_000)), np.arange(30) % 2)
        assert model.components_.shape == (29, 20_000)

    def test_wide_sparse_rows_stay_sparse(self):
        y = np.arange(300) // 150
        noise = random_array((300, 49_999), density=1e-4, random_state=np.random.default_rng(0))
        X = csr_array(hstack([y[:, None] * 5.0, noise]))
        model = LMNN(2).fit(X, y)  # dense: 120 MB
        assert model.components_.shape == (2, 50_000)
        assert (
            KNeighborsClassifier(3).fit(model.transform(X), y).score(model.transform(X), y) > 0.95
        )


class TestPasses:
    @pytest.mark.slow
    def test_take_targets_in_the_space_of_the_pass_before(self):
        X, y = wine()
        first, second = LMNN(3).fit(X, y), LMNN(3, n_passes=2).fit(X, y)
        np.testing.assert_array_equal(second.loss_curve_[: first.n_iter_ + 1], first.loss_curve_)
        targets = target_neighbors(first.transform(X), y, 3)
        assert second.loss_curve_[first.n_iter_ + 1] == pytest.approx(
            by_definition(first.components_, X, y, targets)
        )
        assert second.objective_ == pytest.approx(by_definition(second.components_, X, y, targets))
        assert second.objective_ < second.loss_curve_[first.n_iter_ + 1]
        assert len(second.loss_curve_) == second.n_iter_ + 2

    def test_have_max_iter_each(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=4"):
            assert LMNN(max_iter=4, n_passes=3, tol=0.0).fit(*wine()).n_iter_ == 12


def random_labels():
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 6)), rng.integers(0, 3, 150)


@pytest.fixture
def rounds(monkeypatch):
    """Impostors are looked up now and then, however few rows there are, and however many impostors."""
    monkeypatch.setattr(objective, "SEARCH_ALWAYS_ROWS", 0)
    monkeypatch.setattr(objective, "WORTH", 1.0)


@pytest.mark.usefixtures("rounds")
class TestRounds:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        "load",
        [classes, pytest.param(wine, marks=pytest.mark.slow), lambda: random_labels()],
        ids=["blobs", "wine", "random"],
    )
    def test_end_where_the_exact_descent_does(self, load, monkeypatch):
        X, y = load()
        now_and_then = LMNN(tol=1e-6, max_iter=1000).fit(X, y)
        monkeypatch.setattr(objective, "SEARCH_ALWAYS_ROWS", 10_000)
        always = LMNN(tol=1e-6, max_iter=1000).fit(X, y)
        assert now_and_then.objective_ == pytest.approx(loss_of(now_and_then, X, y), rel=1e-9)
        assert now_and_then.objective_ == pytest.approx(always.objective_, rel=2e-3)

    def test_that_let_others_in_are_undone(self, monkeypatch):
        """A map of few dimensions can turn, and those who are listed be left alone: the rest is
        done without lists.
        """
        monkeypatch.setattr(objective, "SLACK", 0.0)
        X, y = random_labels()
        model = LMNN(3).fit(X, y)
        assert model.objective_ == pytest.approx(loss_of(model, X, y), rel=1e-9)
        monkeypatch.setattr(objective, "SEARCH_ALWAYS_ROWS", 10_000)
        always = LMNN(3).fit(X, y)
        assert model.objective_ == always.objective_
        np.testing.assert_array_equal(
            model.loss_curve_[-len(always.loss_curve_) :], always.loss_curve_
        )
        assert model.n_iter_ > always.n_iter_

    def test_lists_that_are_not_worth_it_are_not_made(self, monkeypatch):
        X, y = classes(200)
        monkeypatch.setattr(objective, "WORTH", 0.0)
        without = LMNN().fit(X, y)
        monkeypatch.setattr(objective, "SEARCH_ALWAYS_ROWS", 10_000)
        np.testing.assert_array_equal(without.components_, LMNN().fit(X, y).components_)

    def test_a_bound_on_those_who_count_leaves_out_the_farthest(self, monkeypatch):
        X, y = classes(200)
        monkeypatch.setattr(objective, "MOST", 0)
        monkeypatch.setattr(objective, "ALWAYS", 10)
        model = LMNN().fit(X, y)
        d, targets = (
            cdist(model.transform(X), model.transform(X), "sqeuclidean"),
            target_neighbors(X, y, 3),
        )
        others = np.sort(np.where(y[:, None] == y, np.inf, d), axis=1)[:, :10]
        near = np.take_along_axis(d, targets, axis=1)
        hinges = np.maximum(0, 1 + near[:, :, None] - others[:, None, :])
        assert model.objective_ == pytest.approx((near.sum() + hinges.sum()) / 2 / 200, rel=1e-9)
        assert model.objective_ < loss_of(model, X, y)

    def test_the_order_of_the_rows_does_not_matter(self):
        X, y = classes(200)
        order = np.random.default_rng(0).permutation(200)
        plain, other = LMNN().fit(X, y), LMNN().fit(X[order], y[order])
        np.testing.assert_allclose(other.loss_curve_[:6], plain.loss_curve_[:6], rtol=1e-9)
        assert other.objective_ == pytest.approx(plain.objective_, rel=1e-3)

    def test_max_iter_is_over_all_rounds(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=20"):
            assert LMNN(max_iter=20, tol=0.0).fit(*classes()).n_iter_ == 20


class TestInterrupts:
    @staticmethod
    def interrupt(monkeypatch, module, name, at):
        """Let the `at`-th call of a function of a module be interrupted."""
        function, calls = getattr(module, name), []

        def interrupted(*arguments, **keywords):
            calls.append(name)
            if len(calls) == at:
                raise KeyboardInterrupt
            return function(*arguments, **keywords)

        monkeypatch.setattr(module, name, interrupted)

    @pytest.mark.parametrize("exact_rows", [0, 10_000])
    @pytest.mark.parametrize(("name", "at"), [("large_margin", 12), ("impostors_within", 2)])
    def test_keep_the_best_map(self, name, at, exact_rows, monkeypatch):
        X, y = wine()
        monkeypatch.setattr(objective, "SEARCH_ALWAYS_ROWS", exact_rows)
        monkeypatch.setattr(objective, "WORTH", 1.0)
        self.interrupt(monkeypatch, objective, name, at)
        model = LMNN()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.transform(X).shape == X.shape
        assert model.loss_curve_[-1] <= model.loss_curve_[0]

    def test_of_a_later_pass_keep_that_of_the_one_before(self, monkeypatch):
        X, y = wine()
        first = LMNN().fit(X, y)
        self.interrupt(monkeypatch, lmnn, "target_neighbors", 2)
        model = LMNN(n_passes=2)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        np.testing.assert_array_equal(model.components_, first.components_)


class TestNeighborsAreRightMoreOften:
    @staticmethod
    def accuracies(X, y, splits):
        raw, learned = [], []
        for train, test in StratifiedShuffleSplit(splits, test_size=0.5, random_state=0).split(
            X, y
        ):
            model = LMNN().fit(X[train], y[train])
            for scores, to in ((raw, lambda X: X), (learned, model.transform)):
                scores.append(
                    KNeighborsClassifier(3).fit(to(X[train]), y[train]).score(to(X[test]), y[test])
                )
        return np.mean(raw), np.mean(learned)

    @pytest.mark.parametrize(
        ("load", "splits"),
        [
            (load_wine, 2),
            pytest.param(load_iris, 10, marks=pytest.mark.slow),
            pytest.param(load_digits, 2, marks=pytest.mark.slow),
        ],
    )
    def test_on_held_out_halves(self, load, splits):
        X, y = load(return_X_y=True)
        raw, learned = self.accuracies(StandardScaler().fit_transform(X), y, splits)
        assert learned >= raw

    @pytest.mark.long
    def test_on_usps(self):
        path = Path(os.environ.get("NEARKIN_DATA", "")) / "usps.npz"
        if not path.exists():
            pytest.skip("NEARKIN_DATA does not hold usps.npz")
        data = np.load(path)
        raw, learned = self.accuracies(
            PCA(60).fit_transform(data["X"][::4].astype(np.float64)), data["y"][::4], 1
        )
        assert learned >= raw


@pytest.fixture(scope="module")
def compared():
    """Return rows, the numbers of triplets of them, some with a common pair, and weights."""
    X, y = (part[::2] for part in wine())
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(X), (3000, 3))
    a, b, c = rows.T
    triplets = rows[(a != b) & (y[a] == y[b]) & (y[a] != y[c])][:200]
    triplets[100:150, :2] = triplets[:50, :2]
    a, b, c = triplets.T
    triplets = triplets[y[a] != y[c]]
    return X, triplets, rng.integers(1, 4, len(triplets))


def loss_of_triplets(A, X, triplets, weights):
    """The loss as the docstring of `fit_quadruplets` has it."""
    d = cdist(X @ A.T, X @ A.T, "sqeuclidean")
    a, b, c = triplets.T
    hinges = weights @ np.maximum(0, 1 + d[a, b] - d[a, c])
    near = [tuple(sorted(pair)) for pair in triplets[:, :2].tolist()]
    mean = {pair: np.mean([w for of, w in zip(near, weights) if of == pair]) for pair in set(near)}  # noqa: B905
    attraction = sum(w * d[pair] for pair, w in mean.items())
    square = weights @ np.sum((X[a] - X[b]) ** 2, axis=1) / weights.sum() / X.shape[1]
    return (attraction + hinges) / 2 / weights.sum() + 0.05 * square * np.sum(A**2)


def metric_of(model):
    return model.get_mahalanobis_matrix()


def assert_same_map(found, expected, tol=1e-9):
    M = metric_of(expected)
    np.testing.assert_allclose(metric_of(found), M, rtol=0, atol=tol * np.abs(M).max())
    assert found.objective_ == pytest.approx(expected.objective_, rel=tol)


class TestGivenComparisons:
    @pytest.mark.parametrize("n_components", [None, 2])
    def test_objective_is_the_loss_of_the_map(self, n_components, compared):
        X, triplets, weights = compared
        model = LMNN(n_components).fit_triplets(triplets, X=X, weights=weights)
        expected = loss_of_triplets(model.components_, X, triplets, weights)
        assert model.objective_ == pytest.approx(expected, rel=1e-9)
        assert model.loss_curve_[-1] == pytest.approx(model.objective_, rel=1e-12)
        assert len(model.loss_curve_) == model.n_iter_ + 1
        assert (np.diff(model.loss_curve_) <= 0).all()

    def test_a_square_map_is_the_global_optimum(self, compared):
        """No small change of the metric leads lower."""
        X, triplets, weights = compared
        X = X[:, :5]
        model = LMNN(tol=1e-9, max_iter=2000).fit_triplets(triplets, X=X, weights=weights)
        M, rng = metric_of(model), np.random.default_rng(0)
        for size in (0.003, 0.03, 0.3):
            for _ in range(5):
                B = rng.normal(size=(5, rng.integers(1, 6)))
                other = M + size * (
                    np.linalg.norm(M) / np.linalg.norm(B @ B.T) * B @ B.T - rng.random() * M
                )
                A = np.linalg.cholesky(other + 1e-12 * np.eye(5)).T
                loss = loss_of_triplets(A, X, triplets, weights)
                assert loss >= model.objective_ * (1 - 1e-5)

    @pytest.mark.long
    def test_begins_in_the_scale_of_the_lowest_loss(self, compared):
        X, triplets, weights = compared
        with pytest.warns(ConvergenceWarning):
            start = LMNN(max_iter=1).fit_triplets(triplets, X=X, weights=weights).loss_curve_[0]
        losses = [
            loss_of_triplets(size * np.eye(13), X, triplets, weights)
            for size in np.geomspace(0.01, 5, 100)
        ]
        assert start == pytest.approx(min(losses), rel=1e-3)

    def test_a_triplet_is_a_quadruplet_that_shares_a_row(self, compared):
        X, triplets, weights = compared
        by_triplets = LMNN().fit_triplets(triplets, X=X, weights=weights)
        by_quadruplets = LMNN().fit_quadruplets(triplets[:, [0, 1, 0, 2]], X=X, weights=weights)
        np.testing.assert_array_equal(by_quadruplets.components_, by_triplets.components_)

    def test_rows_of_a_pair_in_any_order(self, compared):
        X, triplets, _ = compared
        quadruplets = triplets[:, [0, 1, 0, 2]]
        swapped = quadruplets.copy()
        swapped[::2, :2], swapped[::3, 2:] = swapped[::2, 1::-1], swapped[::3, :1:-1]
        expected = LMNN().fit_quadruplets(quadruplets, X=X)
        assert_same_map(LMNN().fit_quadruplets(swapped, X=X), expected)

    def test_comparisons_in_any_order_and_rows_themselves(self, compared):
        X, triplets, weights = compared
        expected = LMNN().fit_triplets(triplets, X=X, weights=weights)
        order = np.random.default_rng(0).permutation(len(triplets))
        triplets, weights = triplets[order], weights[order]
        assert_same_map(LMNN().fit_triplets(triplets, X=X, weights=weights), expected)
        assert_same_map(LMNN().fit_triplets(X[triplets], weights=weights), expected, 1e-6)

    def test_weights_are_those_of_repeated_comparisons(self, compared):
        X, triplets, weights = compared
        expected = LMNN().fit_triplets(np.repeat(triplets, weights, axis=0), X=X)
        assert_same_map(LMNN().fit_triplets(triplets, X=X, weights=weights), expected)
        assert_same_map(LMNN().fit_triplets(triplets, X=X, weights=0.1 * weights), expected)
        plain = metric_of(LMNN().fit_triplets(triplets, X=X))
        assert np.abs(plain - metric_of(expected)).max() > 1e-3 * np.abs(plain).max()

    def test_a_comparison_of_weight_0_is_absent_with_its_rows(self, compared):
        X, triplets, weights = compared
        weights = np.where(triplets[:, 0] % 4, weights, 0)
        there = weights > 0
        far_away = X.copy()
        far_away[np.setdiff1d(np.arange(len(X)), triplets[there])] = np.nan
        expected = LMNN().fit_triplets(triplets[there], X=X, weights=weights[there])
        found = LMNN().fit_triplets(triplets, X=far_away, weights=weights)
        np.testing.assert_array_equal(found.components_, expected.components_)

    @pytest.mark.parametrize("n_components", [None, 2])
    def test_units_do_not_matter(self, n_components, compared):
        X, triplets, _ = compared
        plain = LMNN(n_components).fit_triplets(triplets, X=X)
        doubled = LMNN(n_components).fit_triplets(triplets, X=X * 2.0**20)
        np.testing.assert_allclose(doubled.components_ * 2.0**20, plain.components_, rtol=1e-12)

    @pytest.mark.parametrize("n_components", [None, 2])
    def test_sparse_rows_and_single_precision(self, n_components, compared):
        X, triplets, _ = compared
        model = LMNN(n_components).fit_triplets(triplets, X=X)
        sparse = LMNN(n_components).fit_triplets(triplets, X=csr_array(X))
        assert sparse.objective_ == pytest.approx(model.objective_, rel=2e-3)
        single = LMNN(n_components).fit_triplets(triplets, X=X.astype(np.float32))
        assert single.components_.dtype == np.float32
        assert single.objective_ == pytest.approx(model.objective_, rel=2e-3)

    @pytest.mark.long
    def test_wide_rows_need_no_p_by_p_map_and_stay_sparse(self):
        rng = np.random.default_rng(0)
        triplets = np.array([rng.permutation(30)[:3] for _ in range(40)])
        model = LMNN().fit_triplets(triplets, X=rng.normal(size=(30, 20_000)))
        assert model.components_.shape == (29, 20_000)
        noise = random_array((30, 50_000), density=1e-4, random_state=rng)
        model = LMNN(2).fit_triplets(triplets, X=csr_array(noise))
        assert model.components_.shape == (2, 50_000)

    @pytest.mark.parametrize("kind", ["coo", "csc", "bsr"])
    def test_sparse_rows_of_any_format(self, kind, compared):
        X, triplets, _ = compared
        expected = LMNN(2).fit_triplets(triplets, X=csr_array(X))
        found = LMNN(2).fit_triplets(triplets, X=csr_array(X).asformat(kind))
        np.testing.assert_array_equal(found.components_, expected.components_)

    def test_equal_rows_are_named(self):
        with pytest.raises(ValueError, match="X does not vary"):
            LMNN().fit_triplets(np.ones((5, 3, 2)))

    def test_comparisons_that_contradict_each_other_are_warned_of(self, compared):
        X, triplets, _ = compared
        both = np.vstack([triplets, triplets[:, [0, 2, 1]]])
        with pytest.warns(UserWarning, match="orders the triplets better than the zero map"):
            model = LMNN().fit_triplets(both, X=X)
        assert model.objective_ == pytest.approx(0.5, abs=1e-3)

    def test_names_of_features_are_kept(self, compared):
        pandas = pytest.importorskip("pandas")
        X, triplets, _ = compared
        frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(13)])
        model = LMNN(2).fit_triplets(triplets, X=frame)
        assert list(model.feature_names_in_) == list(frame.columns)
        assert model.transform(frame).shape == (len(X), 2)

    def test_where_nothing_is_violated_the_map_shrinks_until_something_is(self):
        X = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 9.0]])
        model = LMNN(tol=1e-10).fit_triplets([[0, 1, 2]], X=X)
        a, b, c = model.transform(X)
        assert np.sum((a - c) ** 2) - np.sum((a - b) ** 2) == pytest.approx(1, abs=0.01)

    def test_equal_rows_that_are_to_be_near_cost_nothing(self):
        X = np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
        model = LMNN().fit_triplets(X[None])
        assert model.objective_ == pytest.approx(0, abs=1e-12)
        assert model.pair_distance(X[None, [0, 2]])[0] >= 1

    def test_an_interrupt_keeps_the_best_map(self, compared, monkeypatch):
        X, triplets, _ = compared
        TestInterrupts.interrupt(monkeypatch, objective, "comparison_margin", 9)
        model = LMNN()
        with pytest.raises(KeyboardInterrupt):
            model.fit_triplets(triplets, X=X)
        assert model.transform(X).shape == X.shape
        assert model.loss_curve_[-1] < model.loss_curve_[0]

    @pytest.mark.parametrize("load", [load_wine, load_iris])
    def test_held_out_comparisons_are_right_more_often(self, load):
        X, y = load(return_X_y=True)
        X = scale(X)
        rng = np.random.default_rng(0)

        def triplets_of(rows):
            some = rows[rng.integers(0, len(rows), (4000, 3))]
            a, b, c = some.T
            return some[(a != b) & (y[a] == y[b]) & (y[a] != y[c])][:300]

        train, test = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=0).split(X, y))
        model = LMNN().fit_triplets(triplets_of(train), X=X)
        a, b, c = triplets_of(test).T
        raw = np.mean(np.sum((X[a] - X[b]) ** 2, axis=1) < np.sum((X[a] - X[c]) ** 2, axis=1))
        near, far = (model.pair_distance(np.stack([X[a], X[o]], axis=1)) for o in (b, c))
        assert np.mean(near < far) > raw + 0.03


@pytest.mark.parametrize(
    ("method", "comparisons", "more", "message"),
    [
        (
            "triplets",
            [[0, 1, 1]],
            {},
            "triplets must be of different rows, number 0 .* has row 1 twice",
        ),
        ("triplets", [[0, 1]], {}, r"triplets must be numbers of rows of X, .* \(n_triplets, 3\)"),
        ("triplets", [[0, 1, 90]], {}, "triplets must hold numbers of rows, 0 to 88, got 0 to 90"),
        ("triplets", [[0, 1, 2]], {"weights": [1, 2]}, "weights must be 1 numbers of at least 0"),
        (
            "triplets",
            [[0.5, 1, 2]],
            {"X": None},
            r"triplets must have the shape \(n_triplets, 3, p\)",
        ),
        (
            "quadruplets",
            [[0, 1, 2, 3], [0, 1, 2, 2]],
            {},
            r"the pairs \(a, b\) and \(c, d\) of quadruplets must be of different rows, number 1",
        ),
        (
            "quadruplets",
            [[0, 1, 1, 0]],
            {},
            "quadruplets must compare two pairs, number 0 .* the same",
        ),
        ("quadruplets", [[0, 1, 2]], {}, r"integers of shape \(n_quadruplets, 4\)"),
    ],
)
def test_bad_comparisons_are_named(method, comparisons, more, message):
    X = wine()[0][::2]
    with pytest.raises(ValueError, match=message):
        getattr(LMNN(), f"fit_{method}")(comparisons, **{"X": X} | more)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": 2.0}, TypeError, "n_neighbors must be an integer, got 2.0"),
        ({"n_passes": 0}, ValueError, "n_passes must be at least 1, got 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
        ({"tol": -1e-3}, ValueError, "tol must be a finite number of at least 0"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        LMNN(**parameters).fit(*wine())


@pytest.mark.filterwarnings("ignore:max_iter=3:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:No map was found:UserWarning")
def test_a_constant_feature_does_not_change_the_penalty_of_triplets():
    X, _ = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
    triplets = np.random.default_rng(0).permuted(np.tile(np.arange(60), (200, 1)), axis=1)[:, :3]
    M, wider = (
        LMNN(max_iter=3).fit_triplets(triplets, X=rows).get_mahalanobis_matrix()
        for rows in (X, np.insert(X, 8, 0.1, axis=1))
    )
    np.testing.assert_allclose(wider[:8, :8], M, atol=1e-10 * np.abs(M).max())
