"""Who is near in a learned space, and what is predicted from there."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from nearkin.neighbors import squares_to_nearest
from nearkin.tables import votes
from nearkin.tables.votes import LocalLines, SoftVote, lines_at_once

LINES = [LocalLines(spread, ridge) for spread in (1.0, 2.0) for ridge in (0.1, 1.0)]


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
        np.testing.assert_allclose(predicted, line.predict(queries, Z, Y, weights))


def test_lines_through_equal_rows():
    Y = drawn(20)[1]
    found = lines_at_once(LINES, np.ones((3, 4)), np.ones((20, 4)), Y)
    np.testing.assert_allclose(found, Y.mean())
