"""The vote of the nearest rows, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from nearkin.comparison import CLASSIFICATION, REGRESSION, Vote
from nearkin.comparison.scores import VOTES, gaussian_weights, nearest_voters, possible_votes

RNG = np.random.default_rng(0)
TRAIN, NEW = RNG.normal(size=(80, 3)), RNG.normal(size=(30, 3))
CLASSES, NUMBERS = RNG.integers(4, size=80), RNG.normal(size=80)
every_vote = pytest.mark.parametrize("vote", VOTES, ids=str)


@every_vote
def test_classes_as_scikit_learn_has_them(vote):
    weights = gaussian_weights if vote.soft else "uniform"
    expected = KNeighborsClassifier(vote.n_neighbors, weights=weights).fit(TRAIN, CLASSES)
    distances, near = nearest_voters(TRAIN, NEW, 60)
    shares = vote.predict(distances, CLASSES[near], 4)
    np.testing.assert_allclose(shares, expected.predict_proba(NEW), atol=1e-12)
    np.testing.assert_array_equal(shares.argmax(axis=1), expected.predict(NEW))
    np.testing.assert_array_equal(
        vote.estimator(CLASSIFICATION).fit(TRAIN, CLASSES).predict(NEW), expected.predict(NEW)
    )


@every_vote
def test_numbers_as_scikit_learn_has_them(vote):
    weights = gaussian_weights if vote.soft else "uniform"
    expected = (
        KNeighborsRegressor(vote.n_neighbors, weights=weights).fit(TRAIN, NUMBERS).predict(NEW)
    )
    distances, near = nearest_voters(TRAIN, NEW, 60)
    np.testing.assert_allclose(vote.predict(distances, NUMBERS[near], 0), expected, rtol=1e-9)
    np.testing.assert_allclose(
        vote.estimator(REGRESSION).fit(TRAIN, NUMBERS).predict(NEW), expected, rtol=1e-9
    )


@pytest.mark.parametrize("soft", [False, True])
def test_ties_go_to_the_smaller_class(soft):
    train, y = np.array([[-1.0], [1.0], [-2.0], [2.0]]), np.array([1, 0, 3, 2])
    distances, near = nearest_voters(train, np.zeros((1, 1)), 4)
    shares = Vote(4, soft).predict(distances, y[near], 4)
    assert shares[0, 0] == shares[0, 1]
    assert (
        shares.argmax()
        == 0
        == Vote(4, soft).estimator(CLASSIFICATION).fit(train, y).predict([[0.0]])[0]
    )


def test_weights_fall_from_one_to_the_width_of_the_last():
    weights = gaussian_weights(np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]]))
    np.testing.assert_allclose(weights, [[1, np.exp(-1), np.exp(-4)], [np.exp(-4)] * 3])


def test_weights_do_not_depend_on_the_unit():
    distances = np.sort(RNG.random((20, 7)), axis=1)
    for unit in (1e-150, 1e-3, 1e9):
        np.testing.assert_allclose(
            gaussian_weights(unit * distances), gaussian_weights(distances), rtol=1e-9
        )


def test_rows_that_are_all_in_one_place_vote_alike():
    np.testing.assert_array_equal(gaussian_weights(np.zeros((2, 3))), np.ones((2, 3)))
    shares = Vote(3, soft=True).predict(np.zeros((1, 3)), np.array([[1, 0, 1]]), 2)
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3]])


def test_few_rows_leave_few_votes():
    assert possible_votes(VOTES, 60) == list(VOTES)
    assert [str(vote) for vote in possible_votes(VOTES, 4)] == ["3-NN", "1-NN"]
    assert possible_votes([Vote(9)], 4) == [Vote(4)]
    assert possible_votes([Vote(9, soft=True)], 4) == [Vote(4, soft=True)]


def test_votes_have_names():
    assert [str(Vote(15)), str(Vote(25, soft=True))] == ["15-NN", "soft 25-NN"]
