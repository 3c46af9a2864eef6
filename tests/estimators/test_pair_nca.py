"""PairNCA: from pairs alone."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.preprocessing import scale

from nearkin import PairNCA
from nearkin.estimators import pair_nca
from nearkin.estimators.descent_embedding import RowsInPlace, UnitRows
from nearkin.neighbors import EXACT
from nearkin.objectives import candidates
from nearkin.objectives.candidates import Minibatch, mass_among_candidates, near_rows
from nearkin.objectives.nca import SimilarPairs, pair_cost
from nearkin.spectral import ratio_trace
from nearkin.testing import check_gradient


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
    np.testing.assert_array_equal(
        PairNCA(2).fit(X).components_, PairNCA(2).fit(X, pairs=pairs).components_
    )


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
    np.testing.assert_allclose(
        PairNCA(2).fit(X, pairs=pairs, weights=7.0 * weights).components_, weighted, rtol=1e-6
    )
    repeated = PairNCA(2).fit(X, pairs=np.repeat(pairs, weights, axis=0)).components_
    np.testing.assert_allclose(repeated, weighted, rtol=1e-6, atol=1e-8)


def test_a_pair_has_no_order_and_a_weight_of_zero_is_none():
    X = slow_and_noise()
    pairs = some_pairs(40)
    plain = PairNCA(2).fit(X, pairs=pairs).components_
    np.testing.assert_allclose(
        PairNCA(2).fit(X, pairs=pairs[:, ::-1]).components_, plain, rtol=1e-6, atol=1e-8
    )
    more, weights = np.vstack([pairs, [[0, 5], [7, 9]]]), np.append(np.ones(40), [0, 0])
    np.testing.assert_allclose(
        PairNCA(2).fit(X, pairs=more, weights=weights).components_, plain, rtol=1e-6, atol=1e-8
    )


def test_stacked_pairs_are_pairs_of_their_rows():
    X = slow_and_noise(60)
    numbers = np.random.default_rng(0).permutation(60).reshape(30, 2)
    stacked = PairNCA(2).fit_pairs(X[numbers], np.ones(30))
    np.testing.assert_allclose(
        np.abs(stacked.components_),
        np.abs(PairNCA(2).fit(X, pairs=numbers).components_),
        rtol=1e-4,
        atol=1e-6,
    )
    repeated = PairNCA(alpha=1.0).fit_pairs(
        X[[[0, 1], [0, 2], [1, 2], [3, 4]]], np.ones(4), weights=[1, 2, 1, 1]
    )
    assert repeated.n_features_in_ == 4
    dissimilar = np.vstack([X[numbers], X[[[0, 7]]]])
    y = np.append(np.ones(30), -1)
    found = PairNCA(2).fit_pairs(dissimilar, y, weights=y + 2)  # all rows competed already
    np.testing.assert_allclose(
        np.abs(found.components_), np.abs(stacked.components_), rtol=1e-4, atol=1e-6
    )
    with pytest.raises(ValueError, match=r"y marks no pair as similar \(1\)"):
        PairNCA().fit_pairs(X[numbers], -np.ones(30))


def test_random_starts():
    X = scale(slow_and_noise())
    model = PairNCA(1, init="random", n_init=5, random_state=0).fit(X)
    assert abs(model.components_[0, 0]) > 3 * np.abs(model.components_[0, 1:]).max()


class TestGradedWeights:
    def test_are_the_density_of_the_noise_over_its_maximum(self):
        noise = np.random.default_rng(0).normal(size=(20, 2)) * [1.22, 1.5]
        expected = np.prod(norm(0, [1.22, 1.5]).pdf(noise) / norm(0, [1.22, 1.5]).pdf(0), axis=1)
        np.testing.assert_allclose(PairNCA.graded_weights(noise, [1.22, 1.5]), expected, rtol=1e-12)
        np.testing.assert_allclose(
            PairNCA.graded_weights(noise[:, 0], 2.0), np.exp(-(noise[:, 0] ** 2) / 8), rtol=1e-12
        )
        np.testing.assert_array_equal(PairNCA.graded_weights([[0.0, 0.0]], 3.0), [1.0])

    def test_the_gradient_of_the_cost_that_they_weight(self):
        X, rng = slow_and_noise(60), np.random.default_rng(0)
        pairs = np.arange(60).reshape(30, 2)
        weights = PairNCA.graded_weights(rng.normal(size=30), 0.5)
        A = rng.normal(size=(2, 4)) / 2
        numeric = [
            (pair_cost(A + e, X, pairs, weights)[0] - pair_cost(A - e, X, pairs, weights)[0]) / 2e-5
            for e in 1e-5 * np.eye(8).reshape(8, 2, 4)
        ]
        np.testing.assert_allclose(
            pair_cost(A, X, pairs, weights)[1].ravel(), numeric, rtol=1e-6, atol=1e-6
        )

    def test_bad_differences_are_named(self):
        with pytest.raises(
            ValueError,
            match=r"scale must hold one number, or one per column of differences \(5, 2\)",
        ):
            PairNCA.graded_weights(np.zeros((5, 2)), [1.0, 1.0, 1.0])
        with pytest.raises(ValueError, match="scale must be larger than 0, got 0"):
            PairNCA.graded_weights(np.zeros(5), 0.0)


class TestManyRows:
    """Candidates, and steps that use some rows."""

    @staticmethod
    def cost(model, X, pairs):
        return pair_cost(
            model.components_, X - X.mean(axis=0), pairs, np.full(len(pairs), 1 / len(pairs))
        )[0]

    def test_candidates_that_are_all_rows_are_exact(self):
        X = slow_and_noise()
        exact, all_rows = PairNCA(2).fit(X), PairNCA(2, n_candidates=149).fit(X)
        assert all_rows.loss_curve_[0] == pytest.approx(exact.loss_curve_[0], rel=1e-10)
        assert all_rows.objective_ == pytest.approx(exact.objective_, rel=1e-3)

    @pytest.mark.long
    @pytest.mark.parametrize(
        "parameters",
        [
            {"n_candidates": 20},
            pytest.param({"solver": "sgd", "random_state": 0}, marks=pytest.mark.slow),
        ],
    )
    def test_come_near_the_exact_fit(self, parameters, monkeypatch):
        monkeypatch.setattr(candidates, "STEPS", 200)
        X = slow_and_noise(300)
        pairs = np.column_stack([np.arange(299), np.arange(1, 300)])
        exact, few = PairNCA(2).fit(X), PairNCA(2, **parameters).fit(X)
        assert self.cost(few, X, pairs) - exact.objective_ < 0.1 * (
            np.log(300 * 299) - exact.objective_
        )
        assert few.objective_ == pytest.approx(self.cost(few, X, pairs), abs=0.03)
        assert few.search_ == "exact"

    @pytest.mark.parametrize("in_place", [False, True])
    def test_an_epoch_has_the_pairs_of_all_rows_and_a_step_a_gradient(self, in_place):
        X = slow_and_noise(120) + 50.0
        pairs, weights = some_pairs(40) % 120, np.full(40, 1 / 40)
        rows = UnitRows.of(X)
        if in_place:
            rows = RowsInPlace.of(X, rows.unit)
        loss = SimilarPairs(rows, EXACT, None, pairs, weights)
        B = np.random.default_rng(1).normal(size=(2, 4)) / 3
        Z, far = rows.embedding(B), np.arange(0, 120, 2)
        near = near_rows(Z, 7, None, EXACT)
        parts = [
            Minibatch.of(part, near[part], far, 120, 4) for part in np.arange(120).reshape(4, 30)
        ]
        squares = np.sum((Z[pairs[:, 0]] - Z[pairs[:, 1]]) ** 2, axis=1)
        masses = [mass_among_candidates(Z[part.rows], part)[0] for part in parts]
        expected = np.mean(squares) + np.mean(np.log(np.multiply(masses, 4)))
        costs = [loss.estimate(B, part)[0] for part in parts]
        assert np.mean(costs) == pytest.approx(expected, rel=1e-9)
        check_gradient(lambda B: loss.estimate(B, parts[1]), B)

    @pytest.mark.long
    def test_rows_that_stay_where_they_are(self, monkeypatch):
        X = slow_and_noise(400)
        copies = PairNCA(2, solver="sgd", random_state=0).fit(X)
        monkeypatch.setattr(pair_nca, "INIT_ROWS", 300)
        for here in (X, csr_array(X)):
            model = PairNCA(2, solver="sgd", random_state=0).fit(here)
            assert model.objective_ == pytest.approx(copies.objective_, abs=0.1)
            assert (
                np.abs(model.components_[:, 0]).max() > 5 * np.abs(model.components_[:, 1:]).max()
            )

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:max_iter=3")
    def test_equal_seeds_make_equal_maps(self):
        X = slow_and_noise(300)
        one, other = (
            PairNCA(2, solver="sgd", max_iter=3, random_state=1).fit(X).components_
            for _ in range(2)
        )
        np.testing.assert_array_equal(one, other)

    @pytest.mark.long
    def test_every_row_a_candidate_of_a_step(self):
        X = slow_and_noise(200)
        exact, sgd = (
            PairNCA(2).fit(X),
            PairNCA(2, solver="sgd", n_candidates=None, random_state=0).fit(X),
        )
        assert sgd.objective_ == pytest.approx(exact.objective_, abs=0.1)
        assert sgd.objective_error_ == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_iter=1:sklearn.exceptions.ConvergenceWarning")
def test_collinear_columns_of_many_rows(monkeypatch):
    """Above 2,000 rows the descent is in float32, but the rank of the rows is decided in float64."""
    ranks = []

    def noted(A, B, m):
        ranks.append(ratio_trace(A, B, m).rank)
        return ratio_trace(A, B, m)

    monkeypatch.setattr("nearkin.estimators.pair_nca.ratio_trace", noted)
    rng = np.random.default_rng(0)
    groups = [np.eye(5)[rng.integers(5, size=2100)] for _ in range(4)]
    X = np.hstack([*groups, rng.normal(size=(2100, 4))])
    pairs = np.arange(1000).reshape(-1, 2)
    X[pairs[:, 1], -1] = X[pairs[:, 0], -1]
    model = PairNCA(1, max_iter=1).fit(X, pairs=pairs)
    assert ranks == [20]
    assert np.abs(model.components_[0]).argmax() == 23


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [0, 1]}, r"integers of shape \(n_pairs, 2\), got int64 of \(2,\)"),
        ({"pairs": np.zeros((3, 2, 4))}, r"of stacked rows X is pairs.reshape\(-1, p\)"),
        ({"pairs": [[0.0, 1.0]]}, "pairs must be numbers of rows of X, integers"),
        ({"pairs": np.empty((0, 2), dtype=int)}, "pairs must be numbers of rows of X, integers"),
        ({"pairs": [[0, 150]]}, "numbers of rows, 0 to 149, got 0 to 150"),
        ({"pairs": [[-1, 2]]}, "numbers of rows, 0 to 149, got -1 to 2"),
        ({"pairs": [[0, 1], [2, 2]]}, r"number 1 \(counted from 0\) has row 2 twice"),
        ({"pairs": [[0, 1]], "weights": [1, 2]}, "weights must be 1 numbers"),
        (
            {"pairs": [[0, 1], [1, 2]], "weights": [1, -2]},
            "at least 0, not all zero; got -2 to 1",
        ),
        ({"pairs": [[0, 1]], "weights": [0]}, "not all zero"),
        ({"pairs": [[0, 1]], "weights": [np.nan]}, "weights contains NaN"),
    ],
)
def test_bad_pairs_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairNCA().fit(slow_and_noise(), **arguments)


def test_bad_parameters_are_named():
    with pytest.raises(
        ValueError, match="init must be one of auto, identity, pca, random, got 'lda'"
    ):
        PairNCA(init="lda").fit(slow_and_noise())
    with pytest.raises(
        ValueError, match=r"pairs must have the shape \(n_pairs, 2, p\), got \(150, 4\)"
    ):
        PairNCA().fit_pairs(slow_and_noise(), [])


def test_pairs_in_the_place_of_y_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 2\) looks like that of pairs: pass pairs="):
        PairNCA().fit(np.eye(5), [[0, 3]])
