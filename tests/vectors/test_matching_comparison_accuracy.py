import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import LDE, RCA, EmbeddingAdapter, Matcher
from nearkin.vectors import comparison_accuracy


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
