"""Pairs that are given: rows or numbers of rows, both kinds or similar alone, with weights."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from nearkin import GMML, ITML, NCA, RCA, EmbeddingAdapter, Matcher, PairNCA
from nearkin.estimators.pairs import distinct_rows

pd = pytest.importorskip("pandas")

LEARNERS = [GMML(), ITML(tol=1e-13), RCA(), PairNCA(2)]
by_name = pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)


@pytest.fixture(scope="module")
def given():
    """Return rows that all occur, numbers of pairs of them, and 1 or -1."""
    X, y = load_iris(return_X_y=True)
    X, first = np.unique(scale(X)[::2], axis=0, return_index=True)
    y = y[::2][first]
    order = np.random.default_rng(0).permutation(len(X))
    numbers = np.column_stack([order, np.roll(order, 1)])
    return X, numbers, np.where(y[numbers[:, 0]] == y[numbers[:, 1]], 1, -1)


def metric(model):
    return model.get_mahalanobis_matrix()


@by_name
def test_numbers_of_rows_are_their_rows(learner, given):
    X, numbers, y = given
    by_rows = metric(learner.fit_pairs(X[numbers], y))
    by_numbers = metric(learner.fit_pairs(numbers, y, X=X))
    np.testing.assert_allclose(by_numbers, by_rows, rtol=1e-6, atol=1e-8)


@by_name
def test_without_y_all_are_similar(learner, given):
    X, numbers, y = given
    similar = numbers[y == 1]
    alone = metric(learner.fit_pairs(similar, X=X))
    marked = metric(learner.fit_pairs(similar, np.ones(len(similar)), X=X))
    np.testing.assert_array_equal(alone, marked)
    assert np.isfinite(alone).all()


@by_name
def test_a_pair_of_weight_0_is_absent_and_the_unit_of_weights_is_none(learner, given):
    X, numbers, y = given
    weights = np.arange(len(y)) % 3
    kept = weights > 0
    weighted = metric(learner.fit_pairs(numbers, y, X=X, weights=weights))
    absent = metric(learner.fit_pairs(numbers[kept], y[kept], X=X, weights=7 * weights[kept]))
    np.testing.assert_allclose(absent, weighted, rtol=1e-6, atol=1e-8)


@by_name
def test_weights_may_be_as_large_as_numbers_can_be(learner, given):
    X, numbers, y = given
    weights = np.arange(len(y)) % 3
    expected = metric(learner.fit_pairs(numbers, y, X=X, weights=weights))
    found = metric(learner.fit_pairs(numbers, y, X=X, weights=8e307 * weights))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [1, 0, 1]}, r"among them 0, 1: take np.where\(y, 1, -1\)"),
        ({"y": [1, 1]}, r"for each of 3 pairs; got 2 values, among them 1\.$"),
        ({"y": ["no", "yes", "no"]}, r"y must be 1 \(similar\) or -1 .*, among them no, yes\.$"),
        ({"pairs": [[0, 1], [1, 2], [0, 2]]}, r"\(n_pairs, 2, p\), got \(3, 2\): .*X\[pairs\]"),
        ({"pairs": np.ones((0, 2, 4))}, r"\(n_pairs, 2, p\), got \(0, 2, 4\)"),
        ({"pairs": np.full((3, 2, 4), np.nan)}, "pairs hold NaN in 3 of 3 .the first: number 0"),
        ({"pairs": [[["a"], ["b"]]] * 3}, r"pairs must be numbers, got words \(such as 'a'\)"),
        ({"pairs": [[[1, 2], [3]], [[1, 2], [3, 4]]]}, "pairs must be an array, got lists of sev"),
        ({"X": np.eye(4), "pairs": [[0, 1], [2]]}, "pairs must be an array, got lists of several"),
        ({"weights": 2.0}, r"weights must be 3 numbers of at least 0, .* got shape \(\)"),
        ({"weights": [[1.0]] * 3}, r"weights must be 3 numbers .* got shape \(3, 1\)"),
        ({"weights": ["a", "b", "c"]}, r"weights must be numbers, got words \(such as 'a'\)"),
        ({"weights": [1, -2, 0]}, "weights must be 3 numbers .*; got -2 to 1"),
        ({"X": np.eye(4), "pairs": np.ones((3, 2))}, r"got float64 of \(3, 2\); take pairs.astype"),
    ],
)
def test_what_cannot_be_learned_from_is_named_with_the_remedy(changed, message):
    pairs = {"pairs": np.random.default_rng(0).normal(size=(3, 2, 4)), "y": [1, -1, 1]}
    with pytest.raises(ValueError, match=message):
        GMML().fit_pairs(**pairs | changed)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("covariance", "got 'covariance'"),
        (np.eye(3), r"of shape \(4, 4\), got shape \(3, 3\)"),
        (np.tri(4), r"not symmetric: take \(prior \+ prior.T\) / 2"),
        (np.diag([1, 1, 1, -2]), "got one with the eigenvalue -2: add a multiple"),
    ],
)
@pytest.mark.parametrize("kind", [GMML, ITML])
def test_what_is_no_prior_is_named_with_the_remedy(kind, prior, message, given):
    X, numbers, y = given
    with pytest.raises(ValueError, match=message):
        kind(prior=prior).fit_pairs(numbers, y, X=X)


def test_weights_of_gmml_count_as_repetitions(given):
    X, numbers, y = given
    weights = np.arange(len(y)) % 3 + 1
    weighted = metric(GMML().fit_pairs(numbers, y, X=X, weights=weights))
    some = np.repeat(np.arange(len(y)), weights)
    repeated = metric(GMML().fit_pairs(X[numbers[some]], y[some]))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-12)
    assert np.abs(weighted - metric(GMML().fit_pairs(numbers, y, X=X))).max() > 1e-4


def test_gmml_of_similar_pairs_takes_all_pairs_for_the_others(given):
    X, numbers, y = given
    similar = X[numbers[y == 1]]
    rows = np.unique(similar.reshape(-1, X.shape[1]), axis=0)
    a, b = np.triu_indices(len(rows), 1)
    both = np.concatenate([similar, np.stack([rows[a], rows[b]], axis=1)])
    kinds = np.repeat([1, -1], [len(similar), len(a)])
    np.testing.assert_allclose(
        metric(GMML().fit_pairs(similar)), metric(GMML().fit_pairs(both, kinds)), atol=1e-9
    )


def test_rows_of_tuples_are_distinct_and_in_order():
    tuples = np.random.default_rng(0).integers(-1, 2, (50, 3, 2)) * 1.0
    tuples[::2][tuples[::2] == 0] = -0.0
    X, numbers = distinct_rows(tuples)
    np.testing.assert_array_equal(X[numbers], tuples)
    np.testing.assert_array_equal(X, np.unique(tuples.reshape(-1, 2), axis=0))


class TestAdapters:
    @pytest.mark.slow
    def test_stacked_pairs_and_triplets_are_those_of_their_rows(self, given):
        X, numbers, y = given  # the rows are distinct and in order
        for stacked, by_numbers in (
            (adapter().fit_pairs(X[numbers], y), adapter().fit_pairs(X, numbers, y)),
            (adapter().fit_pairs(X[numbers], y=y), adapter().fit_pairs(X, numbers, y)),
        ):
            np.testing.assert_allclose(stacked.components_, by_numbers.components_)
        triplets = np.column_stack([numbers, np.roll(numbers[:, 0], 5)])
        np.testing.assert_allclose(
            adapter().fit_triplets(X[triplets]).components_,
            adapter().fit_triplets(X, triplets).components_,
        )

    def test_rows_are_given_once(self, given):
        X, numbers, y = given
        with pytest.raises(ValueError, match="so pairs must be None"):
            adapter().fit_pairs(X[numbers], numbers, y)
        with pytest.raises(ValueError, match="so triplets must be None"):
            adapter().fit_triplets(np.ones((4, 3, 2)), [[0, 1, 2]])


def adapter():
    return EmbeddingAdapter(2, max_iter=2)


class TestMatcher:
    def test_pairs_may_be_lists(self, given):
        X, numbers, y = given
        threshold = Matcher(GMML()).fit_pairs(X[numbers], y).threshold_
        assert Matcher(GMML()).fit_pairs(X[numbers].tolist(), y.tolist()).threshold_ == threshold

    def test_a_learner_of_labels_is_refused(self, given):
        X, numbers, y = given
        with pytest.raises(TypeError, match=r"estimator must have a fit_pairs .* got NCA"):
            Matcher(NCA()).fit_pairs(X[numbers], y)

    def test_words_are_named(self, given):
        X, numbers, _ = given
        with pytest.raises(ValueError, match=r"y must be numbers, got words \(such as 'yes'\)"):
            Matcher(GMML()).fit_pairs(X[numbers], ["yes"] * len(numbers))

    def test_equal_rows_are_named(self):
        pairs = np.random.default_rng(0).normal(size=(9, 2, 3))
        pairs[4, 0] = pairs[4, 1]
        with pytest.raises(ValueError, match=r"number 4 .* has equal ones: leave it out"):
            Matcher(GMML()).fit_pairs(pairs, [1, -1, 1] * 3)

    def test_what_cannot_embed_rows_is_refused(self, given):
        X, numbers, y = given
        with pytest.raises(TypeError, match=r"estimator must have a transform, got KNeighbors"):
            Matcher(FrozenEstimator(KNeighborsClassifier())).score(X[numbers], y)

    def test_features_may_have_names(self, given):
        """Pairs are in no frame: that they do not name features is nothing to warn of."""
        X, numbers, y = given
        frame = pd.DataFrame(X, columns=list("abcd"))
        metric = FrozenEstimator(GMML().fit_pairs(numbers, y, X=frame))
        assert 0.5 < Matcher(metric).score(X[numbers], y) <= 1

    def test_a_score_needs_both_kinds(self, given):
        X, numbers, _ = given
        with pytest.raises(ValueError, match=r"some as not \(-1\), got 1 for all 3"):
            Matcher().score(X[numbers[:3]], [1, 1, 1])

    @pytest.mark.slow_after(2)
    @pytest.mark.parametrize(
        "learner", [*LEARNERS, adapter(), None], ids=lambda one: type(one).__name__
    )
    def test_a_threshold_from_pairs_of_both_kinds(self, learner, given):
        X, numbers, y = given
        pairs = X[numbers]
        matcher = Matcher(learner).fit_pairs(pairs, y)
        scores = matcher.decision_function(pairs)
        if learner in LEARNERS:
            np.testing.assert_allclose(scores, learner.fit_pairs(pairs, y).pair_score(pairs))
        predicted = matcher.predict(pairs)
        np.testing.assert_array_equal(predicted, np.where(scores >= matcher.threshold_, 1, -1))
        assert np.mean(predicted == y) > 0.6
        with pytest.raises(NotFittedError, match="has no rules for matches yet"):
            matcher.match_probability(X, X)

    def test_the_threshold_is_the_best_for_pairs_that_were_not_learned_from(self):
        """Of four metrics, each of pairs that share no row with those that it decides."""
        noise = np.random.default_rng(0).normal(size=(60, 2, 4))
        y = np.tile([1, -1], 30)
        noise[y == 1, 1] = noise[y == 1, 0] + 0.5 * noise[y == 1, 1]
        Recorder.fits = []
        matcher = Matcher(Recorder()).fit_pairs(noise, y)
        *folds, every = Recorder.fits
        assert every.n_rows == 120
        scores = np.full(60, np.nan)
        for model in folds:
            held_out = ~np.isin(noise[:, 0, 0], model.first_feature)
            assert not np.isin(noise[held_out, 1, 0], model.first_feature).any()
            assert np.isnan(scores[held_out]).all()
            scores[held_out] = model.pair_score(noise[held_out])
        right = [np.mean((scores >= t) == (y == 1)) for t in scores]
        threshold = scores[np.abs(scores - matcher.threshold_).argmin()]  # but for rounding
        assert threshold == pytest.approx(matcher.threshold_, rel=1e-12)
        assert len(folds) == 4
        assert np.mean((scores >= threshold) == (y == 1)) == max(right)

    def test_too_few(self):
        with pytest.raises(ValueError, match="too few pairs to hold out a quarter"):
            Matcher(GMML()).fit_pairs(np.arange(12.0).reshape(3, 2, 2) ** 2, [1, 1, -1])


class Recorder(GMML):
    """Keeps every fit."""

    fits: list = []  # noqa: RUF012

    def fit_pairs(self, pairs, y=None, *, X=None, weights=None):
        self.n_rows, self.first_feature = len(X), X[:, 0]
        Recorder.fits.append(self)
        return super().fit_pairs(pairs, y, X=X, weights=weights)
