"""PairNCA: from pairs alone."""

import numpy as np
import pytest
from sklearn.preprocessing import scale

from nearkin import PairNCA
from nearkin.objectives.nca import pair_cost


def slow_and_noise(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.sin(np.linspace(0, 10, n)), rng.normal(size=(n, 3))])


def some_pairs(n):
    return np.random.default_rng(0).integers(0, 75, (n, 2)) + np.array([0, 75])


def test_rows_in_time_find_what_is_slow():
    for n_components in (1, 2, None):
        weight = np.abs(PairNCA(n_components).fit(slow_and_noise()).components_).max(axis=0)
        assert weight[0] > 5 * weight[1:].max()


def test_none_pairs_each_row_with_the_next():
    X = slow_and_noise()
    pairs = [[i, i + 1] for i in range(len(X) - 1)]
    np.testing.assert_array_equal(PairNCA(2).fit(X).components_, PairNCA(2).fit(X, pairs=pairs).components_)


def test_the_objective_is_the_cost_of_a_pair():
    X = slow_and_noise()
    pairs, weights = some_pairs(60), np.linspace(1, 2, 60)
    model = PairNCA(2).fit(X, pairs=pairs, weights=weights)
    cost = pair_cost(model.components_, X, pairs, weights)[0] / weights.sum()
    assert model.objective_ == pytest.approx(cost, rel=1e-8)
    assert model.loss_curve_[-1] > model.objective_
    assert (np.diff(model.loss_curve_) <= 1e-12).all()
    assert len(model.loss_curve_) == model.n_iter_ + 1


def test_weights_count_as_repetitions_do_and_their_unit_does_not():
    X = slow_and_noise()
    pairs, weights = some_pairs(40), np.arange(40) % 3 + 1
    weighted = PairNCA(2).fit(X, pairs=pairs, weights=weights).components_
    np.testing.assert_allclose(PairNCA(2).fit(X, pairs=pairs, weights=7.0 * weights).components_, weighted, rtol=1e-6)
    repeated = PairNCA(2).fit(X, pairs=np.repeat(pairs, weights, axis=0)).components_
    np.testing.assert_allclose(repeated, weighted, rtol=1e-6, atol=1e-8)


def test_a_pair_has_no_order_and_a_weight_of_zero_is_none():
    X = slow_and_noise()
    pairs = some_pairs(40)
    plain = PairNCA(2).fit(X, pairs=pairs).components_
    np.testing.assert_allclose(PairNCA(2).fit(X, pairs=pairs[:, ::-1]).components_, plain, rtol=1e-6, atol=1e-8)
    more, weights = np.vstack([pairs, [[0, 5], [7, 9]]]), np.append(np.ones(40), [0, 0])
    np.testing.assert_allclose(PairNCA(2).fit(X, pairs=more, weights=weights).components_, plain, rtol=1e-6, atol=1e-8)


def test_stacked_pairs_are_pairs_of_their_rows():
    X = slow_and_noise(60)
    numbers = np.random.default_rng(0).permutation(60).reshape(30, 2)
    stacked = PairNCA.from_stacked_pairs(X[numbers], n_components=2)
    np.testing.assert_allclose(
        np.abs(stacked.components_), np.abs(PairNCA(2).fit(X, pairs=numbers).components_), rtol=1e-4, atol=1e-6
    )
    repeated = PairNCA.from_stacked_pairs(X[[[0, 1], [0, 2], [1, 2], [3, 4]]], weights=[1, 2, 1, 1], alpha=1.0)
    assert repeated.alpha == 1.0
    assert repeated.n_features_in_ == 4


def test_random_starts():
    X = scale(slow_and_noise())
    model = PairNCA(1, init="random", n_init=5, random_state=0).fit(X)
    assert abs(model.components_[0, 0]) > 3 * np.abs(model.components_[0, 1:]).max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [0, 1]}, r"pairs must be integers of shape \(n_pairs, 2\), got int64 of \(2,\)"),
        ({"pairs": np.zeros((3, 2, 4))}, "rows themselves go to PairNCA.from_stacked_pairs"),
        ({"pairs": [[0.0, 1.0]]}, "pairs must be integers"),
        ({"pairs": np.empty((0, 2), dtype=int)}, "pairs must be integers"),
        ({"pairs": [[0, 150]]}, "numbers of rows, 0 to 149, got 0 to 150"),
        ({"pairs": [[-1, 2]]}, "numbers of rows, 0 to 149, got -1 to 2"),
        ({"pairs": [[0, 1], [2, 2]]}, "pair 1 has row 2 twice"),
        ({"pairs": [[0, 1]], "weights": [1, 2]}, "weights must be 1 numbers"),
        ({"pairs": [[0, 1], [1, 2]], "weights": [1, -2]}, "at least 0, not all 0; got shape .* minimum -2"),
        ({"pairs": [[0, 1]], "weights": [0]}, "not all 0"),
        ({"pairs": [[0, 1]], "weights": [np.nan]}, "weights contains NaN"),
    ],
)
def test_bad_pairs_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairNCA().fit(slow_and_noise(), **arguments)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="init must be one of auto, identity, pca, random, got 'lda'"):
        PairNCA(init="lda").fit(slow_and_noise())
    with pytest.raises(ValueError, match=r"pairs must have the shape \(n_pairs, 2, p\), got \(150, 4\)"):
        PairNCA.from_stacked_pairs(slow_and_noise())
