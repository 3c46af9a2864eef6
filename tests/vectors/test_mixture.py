"""Two models in one column are found; classes of one model, however far apart, are none."""

import numpy as np
import pytest

from nearkin.vectors import model_parts

P, Q, N = 128, 20, 600
MAPS = np.random.default_rng(0).normal(size=(2, Q, P))  # of two models, from what they agree on


def items(n, seed=1):
    return np.random.default_rng(seed).normal(size=(n, Q)) + 0.5


@pytest.mark.parametrize("share", [0.5, 0.3, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_two_models_are_told_apart(share, seed):
    second = np.random.default_rng(seed).random(N) < share
    one, other = (items(N, seed) @ of_model for of_model in MAPS)
    X = np.where(second[:, None], other, 3 * one)  # the length of a row does not matter
    X[7], X[9] = 0, np.inf
    rows, is_other = model_parts(X)
    np.testing.assert_array_equal(rows, np.delete(np.arange(N), [7, 9]))
    found = second[rows]
    np.testing.assert_array_equal(is_other, found if 2 * found.sum() <= len(rows) else ~found)


def test_a_rotation_is_another_model():
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(P, P)))[0]
    X = items(N) @ MAPS[0]
    X[::3] @= rotation
    rows, is_other = model_parts(X)
    np.testing.assert_array_equal(rows[is_other], np.arange(0, N, 3))


@pytest.mark.parametrize("distance", [0, 2, 20])
@pytest.mark.parametrize("is_centred", [False, True])
def test_classes_of_one_model_are_not(distance, is_centred):
    X = items(N)
    X[::2] += distance * np.random.default_rng(4).normal(size=Q)
    X = X @ MAPS[0]
    assert model_parts(X - X.mean(axis=0) if is_centred else X) is None


def test_many_clusters_and_noise_are_not():
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(20, P))
    assert model_parts(np.repeat(centres, 30, axis=0) + 0.3 * rng.normal(size=(N, P))) is None
    assert model_parts(rng.normal(size=(N, P))) is None


def test_few_rows_or_dimensions_show_nothing():
    X = np.vstack([items(N) @ of_model for of_model in MAPS])
    assert model_parts(X) is not None
    assert model_parts(X[:, :100]) is None
    assert model_parts(X[::12]) is None


def test_a_sample_of_many_rows_is_looked_at():
    X = np.vstack([items(1_500) @ of_model for of_model in MAPS])
    rows, is_other = model_parts(X)
    assert len(rows) == len(np.unique(rows)) == 1_000
    assert len(np.unique(rows[is_other] < 1_500)) == 1
