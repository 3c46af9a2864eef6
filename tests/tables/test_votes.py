"""Who is near in a learned space, and what is predicted from there."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import pairwise_distances

from nearkin.neighbors import squares_to_nearest
from nearkin.objectives.kernel_regression import squared_error
from nearkin.tables import votes
from nearkin.tables.members import mixed
from nearkin.tables.votes import (
    Expert,
    HeldOut,
    LocalLines,
    Mixture,
    NormalScores,
    Prediction,
    SoftVote,
    absolute_error,
    lines_at_once,
    mixture_shares,
    of_equal_rows,
    predict_at_once,
)

LINES = [LocalLines(spread, ridge) for spread in (1.0, 2.0) for ridge in (0.1, 1.0)]


def predicted_by(one, *part):
    """Return the predictions of a vote, or of local lines."""
    return predict_at_once([one], *part, with_scores=False)[0]


def drawn(n, m=6, q=1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)), rng.normal(size=(n, q)), rng.uniform(0.1, 2, n)


@pytest.mark.parametrize("n", [3, 700, 9000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_are_those_of_all_distances(n, dtype):
    Z, queries = drawn(n)[0].astype(dtype), drawn(50, seed=1)[0].astype(dtype)
    k = min(n, 150)
    squares, near = squares_to_nearest(queries, Z, k)
    expected = np.sort(pairwise_distances(queries, Z) ** 2, axis=1)[:, :k]
    np.testing.assert_allclose(np.sort(squares, axis=1), expected, rtol=1e-4, atol=1e-6)
    assert all(len(set(row)) == k for row in near.tolist())


@pytest.mark.parametrize("is_weighted", [False, True])
def test_votes_of_the_nearest_are_those_of_all_where_the_others_are_far(monkeypatch, is_weighted):
    Z, Y, weights = drawn(2000, q=3)
    weights = weights if is_weighted else None
    queries = drawn(50, seed=1)[0]
    several = [SoftVote(0.05), SoftVote(0.02)]
    all_vote = votes.vote_at_once(several, queries, Z, Y, weights)
    monkeypatch.setattr(votes, "MANY_VOTERS", 1000)
    monkeypatch.setattr(votes, "SEARCHED_AT_ONCE", 2**19)  # blocks of four queries
    some_vote = votes.vote_at_once(several, queries, Z, Y, weights)
    np.testing.assert_allclose(some_vote, all_vote, atol=1e-6)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_several_lines_predict_what_each_does(is_weighted):
    Z, Y, weights = drawn(400)
    weights = weights if is_weighted else None
    queries = drawn(600, seed=1)[0]
    several = [LINES[0], LINES[2], LINES[1], LINES[3]]
    together = lines_at_once(several, queries, Z, Y, weights)
    for line, predicted in zip(several, together, strict=True):
        np.testing.assert_allclose(predicted, predicted_by(line, queries, Z, Y, weights))


def test_lines_through_equal_rows():
    Y = drawn(20)[1]
    found = lines_at_once(LINES, np.ones((3, 4)), np.ones((20, 4)), Y)
    np.testing.assert_allclose(found, Y.mean())


class TestNormalScores:
    Y = np.array([[3.0], [0.0], [0.0], [7.0]])

    def test_definition(self):
        """The share of smaller numbers plus half the share of equal ones is a probability."""
        found = NormalScores.of(self.Y).transform(self.Y)
        np.testing.assert_allclose(norm.cdf(found), [[0.625], [0.25], [0.25], [0.875]])

    def test_the_inverse(self):
        scale = NormalScores.of(self.Y)
        between = np.linspace(0, 7, 20)
        np.testing.assert_allclose(scale.inverse(scale.transform(between)), between, atol=1e-12)
        np.testing.assert_array_equal(scale.inverse([-9.0, 9.0]), [0, 7])

    def test_weights_are_copies(self):
        again = NormalScores.of(np.repeat(self.Y, [2, 1, 1, 3], axis=0))
        found = NormalScores.of(self.Y, np.array([2.0, 1.0, 1.0, 3.0]))
        np.testing.assert_allclose(found.scores, again.scores)

    def test_another_unit_does_not_matter(self):
        """Predictions of scores follow any increasing function of the numbers at known numbers."""
        scale, other = NormalScores.of(self.Y), NormalScores.of(np.exp(self.Y))
        np.testing.assert_allclose(scale.scores, other.scores)


@pytest.mark.parametrize("predictor", [SoftVote(0.3), LocalLines(0.5, 0.1)])
def test_an_expert_of_scores(predictor):
    Z, Y, weights = drawn(60)
    queries, Y = drawn(5, seed=1)[0], np.exp(Y)
    mixture = Mixture((Expert(predictor, (0, 6), 1.0, of_scores=True),))
    scale = NormalScores.of(Y, weights)
    expected = scale.inverse(predicted_by(predictor, queries, Z, scale.transform(Y), weights))
    np.testing.assert_allclose(mixture.predict(queries, Z, Y, weights), expected)


class TestEqualRows:
    Z, Y, weights = drawn(40)
    equal = np.arange(40) % 10  # four rows each
    queries = np.vstack([Z[[3, 5]], Z[:1] + 0.01])

    def test_definition(self):
        found = of_equal_rows(self.queries, self.Z[self.equal], self.Y, self.weights, 1.0)
        rows = [np.flatnonzero(self.equal == at) for at in (3, 5)]
        expected = [[self.weights[at].sum(), self.weights[at] @ self.Y[at, 0]] for at in rows]
        np.testing.assert_allclose(found, [*expected, [0, 0]])

    def test_limits(self):
        """With much weight of the mixture it is the mixture, with little the mean of equal rows."""
        expert, Z = Expert(SoftVote(2.0), (0, 6), 1.0), self.Z[self.equal]
        plain = Mixture((expert,)).predict(self.queries, Z, self.Y)
        much = Mixture((expert,), 1e9).predict(self.queries, Z, self.Y)
        little = Mixture((expert,), 1e-9).predict(self.queries, Z, self.Y)
        np.testing.assert_allclose(much, plain, rtol=1e-6)
        means = [self.Y[self.equal == at].mean() for at in (3, 5)]
        np.testing.assert_allclose(little[:2, 0], means, rtol=1e-6)
        np.testing.assert_allclose(little[2], plain[2])

    @pytest.mark.parametrize("repeats", [False, True])
    def test_they_count_where_held_out_rows_say_so(self, repeats):
        """Here the target is noise for all that a vote sees, but the same for equal rows."""
        Z = self.Z[self.equal]
        y = self.Y[self.equal] if repeats else self.Y
        vote = SoftVote(100.0)
        held_out = HeldOut([(Z[:20], Z[20:], y[20:], None)], y[:20], squared_error)
        expert = Prediction(vote, predicted_by(vote, Z[:20], Z[20:], y[20:]))
        one = SimpleNamespace(experts=[expert], held_out=held_out, temperature=1.0)
        found = mixed([one])
        assert (found.prior == 0.1) is repeats
        if repeats:
            assert np.abs(found.values - y[:20]).max() < 0.1 * np.ptp(y)


def test_shares_that_minimize_the_absolute_error(monkeypatch):
    monkeypatch.setattr(votes, "SMALLEST_SHARE", 0.0)
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(size=(300, 1)))
    predicted = np.array([y + rng.normal(size=y.shape) * scale for scale in (0.3, 0.5, 2.0)])
    weights = rng.uniform(0.5, 2, 300)
    shares = mixture_shares(predicted, HeldOut([], y, absolute_error, weights))

    def loss(s):
        return weights @ np.abs(np.tensordot(s, predicted, axes=1) - y)[:, 0]

    assert shares.sum() == pytest.approx(1)
    for _ in range(50):
        other = np.maximum(shares + 0.05 * rng.normal(size=3), 0)
        assert loss(shares) <= loss(other / other.sum()) * (1 + 1e-6)


@pytest.mark.parametrize("largest", [10.0, 1e5])
def test_scores_are_left_out_where_a_few_numbers_are_huge(largest):
    Z, Y, _ = drawn(100)
    Y[[0, 60]] = largest
    held_out = HeldOut([(Z[:50], Z[50:], Y[50:], None)], Y[:50], squared_error)
    found = votes.experts(held_out, "auto", 1.0)
    assert held_out.is_dominated is (largest > 100)
    assert any(one.of_scores for one in found) is (largest < 100)
