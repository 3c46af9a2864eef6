import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import LDE, RCA, EmbeddingAdapter, Matcher
from nearkin.comparison import held_out_accuracy, neighborhood_preservation, same_class_among
from nearkin.vectors import comparison_accuracy


def data(n=80, p=4, n_classes=3, seed=0):
    """Return rows whose first feature tells the class, their classes, and which of them are
    labelled.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, p))
    X[:, 0] += y
    return X, np.array(["a", "b", "c"])[y], rng.random(n) < 0.4


def neighbor_order(Z):
    D = euclidean_distances(Z)
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1)


def rotation(p, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(p, p)))[0]


class TestNeighborhoodPreservation:
    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_definition(self, container):
        X, _, _ = data()
        Z = X[:, :2]
        first, order = neighbor_order(X)[:, :1], neighbor_order(Z)
        expected = [np.mean((order[:, :k] == first).any(axis=1)) for k in range(1, 11)]
        np.testing.assert_allclose(neighborhood_preservation(container(X), Z), expected)
        np.testing.assert_allclose(neighborhood_preservation(X, container(Z), 4), expected[:4])

    def test_an_isometry_keeps_all(self):
        X, _, _ = data()
        for Z in (X, 3 * X @ rotation(4) - 7, np.hstack([X, X])):
            np.testing.assert_array_equal(neighborhood_preservation(X, Z, 3), 1)

    def test_rows_and_columns_in_any_order(self):
        X, _, _ = data()
        order = np.random.default_rng(1).permutation(80)
        expected = neighborhood_preservation(X, X[:, :2])
        np.testing.assert_array_equal(
            neighborhood_preservation(X[order], X[order, 1::-1]), expected
        )

    def test_nothing_in_common_is_chance(self):
        rng = np.random.default_rng(0)
        shares = neighborhood_preservation(
            rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3)), 100
        )
        np.testing.assert_allclose(shares[[9, 99]], np.array([10, 100]) / 1999, atol=0.015)

    def test_every_duplicate_is_the_nearest(self):
        X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 20, axis=0)
        np.testing.assert_array_equal(neighborhood_preservation(X, X @ rotation(3), 2), 1)

    def test_every_tied_row_is_the_nearest(self):
        grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
        np.testing.assert_array_equal(neighborhood_preservation(grid, grid @ rotation(2), 2), 1)

    def test_a_collapsed_embedding_keeps_no_more_than_chance(self):
        X, _, _ = data(n=200)
        assert neighborhood_preservation(X, np.zeros((200, 2)), 5)[-1] < 0.15

    def test_chosen_rows_are_scored_among_all(self):
        X, _, labelled = data()
        whole = neighborhood_preservation(X, X[:, :2])
        used, unused = (
            neighborhood_preservation(X, X[:, :2], rows=rows) for rows in (labelled, ~labelled)
        )
        share = labelled.mean()
        np.testing.assert_allclose(share * used + (1 - share) * unused, whole)
        by_number = neighborhood_preservation(X, X[:, :2], rows=np.flatnonzero(labelled))
        np.testing.assert_array_equal(by_number, used)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"Z": np.eye(3)}, "inconsistent numbers of samples"),
            ({"n_neighbors": 80}, "n_neighbors must be between 1 and 79, got 80"),
            ({"n_neighbors": 0}, "got 0"),
            ({"rows": []}, "rows selects no row"),
            ({"Z": np.full((80, 2), np.inf)}, "infinity"),
        ],
    )
    def test_bad_input(self, change, message):
        X, _, _ = data()
        with pytest.raises(ValueError, match=message):
            neighborhood_preservation(**({"X": X, "Z": X} | change))


class TestSameClassAmong:
    def test_definition(self):
        X, y, labelled = data()
        order = neighbor_order(X)
        hit = np.array([[(y[order[i, :k]] == y[i]).any() for k in range(1, 11)] for i in range(80)])
        shares = same_class_among(X, y, labelled=labelled)
        np.testing.assert_allclose(shares.used, hit[labelled].mean(axis=0))
        np.testing.assert_allclose(shares.unused, hit[~labelled].mean(axis=0))
        assert (shares.n_used, shares.n_unused) == (labelled.sum(), (~labelled).sum())

    def test_invariances(self):
        X, y, labelled = data()
        expected = same_class_among(X, y, 5, labelled=labelled)
        order = np.random.default_rng(1).permutation(80)
        renamed = {"a": 7, "b": -1, "c": 0}
        same = (
            same_class_among(2 * X @ rotation(4) + 5, y, 5, labelled=labelled),
            same_class_among(X[order], y[order], 5, labelled=labelled[order]),
            same_class_among(csr_array(X), [renamed[label] for label in y], 5, labelled=labelled),
        )
        for shares in same:
            np.testing.assert_allclose(shares.used, expected.used)
            np.testing.assert_allclose(shares.unused, expected.unused)

    def test_random_labels_that_made_the_embedding_pass_where_they_were_used_only(self):
        """What leave-one-out on all rows would hide."""
        rng = np.random.default_rng(0)
        y, labelled = rng.integers(4, size=2000), rng.random(2000) < 0.5
        Z = rng.normal(size=(2000, 4))
        Z[labelled] += 20 * np.eye(4)[y[labelled]]
        shares = same_class_among(Z, y, 3, labelled=labelled)
        np.testing.assert_array_equal(shares.used, 1)
        assert shares.unused[0] == pytest.approx(1 / 4, abs=0.05)
        assert shares.unused[2] == pytest.approx(1 - (3 / 4) ** 3, abs=0.05)
        assert held_out_accuracy(Z, y, labelled, [1])[1] == pytest.approx(1 / 4, abs=0.05)

    def test_no_rows_of_a_kind(self):
        X, y, _ = data()
        shares = same_class_among(X, y, 2, labelled=np.zeros(80, dtype=bool))
        assert np.isnan(shares.used).all()
        assert (shares.n_used, shares.n_unused) == (0, 80)

    def test_a_class_of_one_row_has_no_kin(self):
        shares = same_class_among(
            [[0.0], [1.0], [3.0]], ["a", "a", "b"], 2, labelled=np.array([False, False, True])
        )
        np.testing.assert_array_equal(shares.used, 0)
        np.testing.assert_array_equal(shares.unused, [1, 1])

    def test_who_was_labelled_must_be_said(self):
        X, y, _ = data()
        with pytest.raises(TypeError, match="labelled"):
            same_class_among(X, y)


class TestHeldOutAccuracy:
    def test_definition(self):
        X, y, labelled = data()
        accuracies = held_out_accuracy(X, y, labelled)
        assert list(accuracies) == [1, 3, 5, 10]
        for k, accuracy in accuracies.items():
            vote = KNeighborsClassifier(k).fit(X[labelled], y[labelled])
            assert accuracy == vote.score(X[~labelled], y[~labelled])
            assert isinstance(accuracy, float)

    def test_invariances(self):
        X, y, labelled = data()
        order = np.random.default_rng(1).permutation(80)
        expected = held_out_accuracy(X, y, labelled)
        assert held_out_accuracy(2 * X @ rotation(4) + 5, y, labelled) == expected
        assert held_out_accuracy(X[order], y[order], labelled[order]) == expected
        assert held_out_accuracy(csr_array(X), y, labelled) == expected

    @pytest.mark.parametrize(
        ("labelled", "k", "message"),
        [
            (
                np.ones(80, dtype=bool),
                [1],
                "labelled holds 80 of 80 rows: some must vote and others be scored",
            ),
            (np.zeros(80, dtype=bool), [1], "labelled holds 0 of 80 rows"),
            (np.arange(80) < 5, [6], "n_neighbors <= n_samples_fit, but n_neighbors = 6"),
        ],
    )
    def test_bad_numbers(self, labelled, k, message):
        X, y, _ = data()
        with pytest.raises(ValueError, match=message):
            held_out_accuracy(X, y, labelled, k)


@pytest.mark.parametrize(
    "evaluate", [lambda Z, y, used: same_class_among(Z, y, 2, labelled=used), held_out_accuracy]
)
class TestLabels:
    def test_labels_of_the_training_are_refused(self, evaluate):
        X, _, labelled = data()
        y = np.where(labelled, np.arange(80) % 3, -1)
        with pytest.raises(
            ValueError, match=r"y is -1 in all \d+ rows whose labels were not used: give their true"
        ):
            evaluate(X, y, labelled)

    def test_minus_one_may_be_a_class(self, evaluate):
        X, _, labelled = data()
        evaluate(X, np.where(np.arange(80) % 2, -1, 1), labelled)

    def test_missing_labels(self, evaluate):
        X, y, labelled = data()
        with pytest.raises(ValueError, match="y has no label in 1 row"):
            evaluate(X, [None, *y[1:].tolist()], labelled)

    def test_the_mask(self, evaluate):
        X, y, labelled = data()
        with pytest.raises(
            TypeError, match=r"labelled must be a boolean array.* got int64.* y != -1"
        ):
            evaluate(X, y, np.flatnonzero(labelled))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            evaluate(X, y, labelled[1:])


class TestComparisonAccuracy:
    @staticmethod
    def triplets(n=200):
        X, y = load_wine(return_X_y=True)
        rows = np.random.default_rng(0).integers(0, len(X), (40 * n, 3))
        a, b, c = rows.T
        return X, y, X[rows[(a != b) & (y[a] == y[b]) & (y[a] != y[c])][:n]]

    @pytest.mark.parametrize("estimator", [RCA(), LDE(2), None], ids=repr)
    def test_is_that_of_pair_distances(self, estimator):
        X, y, triplets = self.triplets()
        model = None if estimator is None else clone(estimator).fit(X, y)

        def distance(pairs):
            if model is None:
                return np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)
            return model.pair_distance(pairs)

        right = distance(triplets[:, :2]) < distance(triplets[:, [0, 2]])
        assert comparison_accuracy(model, triplets) == pytest.approx(right.mean())
        weights = np.random.default_rng(0).integers(0, 3, len(triplets))
        weighted = comparison_accuracy(model, triplets, weights)
        assert weighted == pytest.approx(np.average(right, weights=weights))
        assert weighted == comparison_accuracy(model, np.repeat(triplets, weights, axis=0))
        quadruplets = triplets[:, [0, 1, 2, 0]]
        assert comparison_accuracy(model, quadruplets) == comparison_accuracy(model, triplets)
        opposite = comparison_accuracy(model, triplets[:, [0, 2, 1]])
        assert opposite == pytest.approx(1 - right.mean())

    def test_of_pipelines_adapters_and_matchers(self):
        X, y, triplets = self.triplets()
        pipeline = make_pipeline(StandardScaler(), RCA()).fit(X, y)
        scaled = pipeline[0].transform(triplets.reshape(-1, 13)).reshape(triplets.shape)
        assert comparison_accuracy(pipeline, triplets) == comparison_accuracy(pipeline[1], scaled)
        adapter = EmbeddingAdapter(3, max_iter=2).fit(X, y)
        Z = np.stack([adapter.embed(rows) for rows in triplets.swapaxes(0, 1)])
        right = np.mean(np.sum(Z[0] * Z[1], axis=1) > np.sum(Z[0] * Z[2], axis=1))
        assert comparison_accuracy(adapter, triplets) == pytest.approx(right)
        matcher = Matcher(FrozenEstimator(adapter))
        assert comparison_accuracy(matcher, triplets) == pytest.approx(right)

    def test_equal_distances_are_half_right(self):
        assert comparison_accuracy(None, np.ones((5, 4, 2))) == 0.5

    def test_what_cannot_be_compared_is_named(self):
        with pytest.raises(ValueError, match=r"shape \(n, 3, p\) or \(n, 4, p\), got \(2, 3\)"):
            comparison_accuracy(None, [[0, 1, 2], [0, 2, 1]])
        with pytest.raises(ValueError, match="sample_weight must be 5 numbers"):
            comparison_accuracy(None, np.ones((5, 3, 2)), [1, 2])
        with pytest.raises(TypeError, match="model must be None, a Matcher or have a transform"):
            comparison_accuracy(KNeighborsClassifier(), np.ones((5, 3, 2)))
        with pytest.raises(NotFittedError):
            comparison_accuracy(RCA(), np.ones((5, 3, 2)))
