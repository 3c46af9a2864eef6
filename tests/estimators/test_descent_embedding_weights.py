"""`sample_weight` of the methods that are found by descent, and of the vote of all rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import scale

from nearkin import MLKR, NCA, PairNCA, SoftNeighborsClassifier, SoftNeighborsRegressor
from nearkin.bandwidth import unit_distance
from nearkin.estimators.descent_embedding import UnitRows
from nearkin.neighbors import EXACT
from nearkin.objectives import candidates
from nearkin.objectives.candidates import Candidates, Minibatch
from nearkin.objectives.nca import SimilarPairs, StochasticNeighbors, nca_objective, pair_cost
from nearkin.objectives.stochastic import SameClass, TargetKernel

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")

MODELS = [
    NCA(2, max_iter=5),
    NCA(objective="log_likelihood", structure="diagonal", max_iter=5),
    NCA(2, objective="log_likelihood", n_candidates=9, max_iter=20),
    NCA(2, target="continuous", max_iter=5),
    NCA(2, target="continuous", n_candidates=9, max_iter=5),
    NCA(2, solver="sgd", max_iter=2, random_state=0),
    NCA(2, objective="log_likelihood", solver="sgd", max_iter=2, random_state=0),
    NCA(target="continuous", structure="diagonal", solver="sgd", max_iter=2, random_state=0),
    PairNCA(2, max_iter=5),
    PairNCA(2, n_candidates=9, max_iter=5),
    PairNCA(2, solver="sgd", max_iter=2, random_state=0),
    MLKR(2, max_iter=5),
    SoftNeighborsClassifier(),
    SoftNeighborsRegressor(bandwidth="auto"),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y, np.random.default_rng(0).gamma(1.0, size=len(X))


def outcome(model, X, y, weights=None):
    """Return what a fit has learned: the map with its objective, or the votes."""
    model = clone(model).fit(X, y, sample_weight=weights)
    if hasattr(model, "components_"):
        return np.append(model.components_, model.objective_)
    vote = getattr(model, "predict_proba", model.predict)
    return np.ravel(vote(wine()[0][:20]))


@every_model
class TestEveryModel:
    @pytest.mark.slow_after(2)
    def test_a_row_of_weight_0_is_absent(self, model):
        X, y, weights = wine()
        weights[::3] = 0
        X_there = X.copy()
        X[::3] = np.nan  # not even looked at
        kept = weights > 0
        np.testing.assert_array_equal(
            outcome(model, X, y, weights), outcome(model, X_there[kept], y[kept], weights[kept])
        )

    @pytest.mark.slow_after(5)
    def test_equal_weights_are_none(self, model):
        X, y, _ = wine()
        np.testing.assert_array_equal(
            outcome(model, X, y, np.full(len(X), 0.3)), outcome(model, X, y)
        )

    @pytest.mark.slow_after(2)
    def test_only_their_ratios_matter_and_they_do_matter(self, model):
        X, y, weights = wine()
        found = outcome(model, X, y, weights)
        np.testing.assert_array_equal(outcome(model, X, y, weights * 2.0**900), found)
        assert np.abs(outcome(model, X, y) - found).max() > 1e-3 * np.abs(found).max()

    @pytest.mark.slow_after(2)
    def test_single_precision(self, model):
        X, y, weights = wine()
        found = outcome(model, X.astype(np.float32), y, weights.astype(np.float32))
        np.testing.assert_allclose(found, outcome(model, X, y, weights), rtol=0, atol=1e-2)

    def test_bad_weights_are_refused(self, model):
        X, y, weights = wine()
        with pytest.raises(ValueError, match="at least 0"):
            clone(model).fit(X, y, -weights)
        with pytest.raises(ValueError, match=r"inconsistent|sample_weight"):
            clone(model).fit(X, y, weights[:-1])


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    "model",
    [m for m in MODELS if not isinstance(m, PairNCA) and getattr(m, "solver", "") != "sgd"],
    ids=repr,
)
def test_they_go_with_their_rows(model):
    X, y, weights = wine()
    order = np.random.default_rng(1).permutation(len(X))
    found = outcome(model, X, y, weights)
    again = outcome(model, X[order], y[order], weights[order])
    np.testing.assert_allclose(again, found, atol=1e-5 * np.abs(found).max())


class TestNCA:
    @pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
    @pytest.mark.parametrize("target", ["classes", "continuous"])
    def test_ends_where_the_gradient_of_the_weighted_loss_vanishes(self, objective, target):
        X, y, weights = wine()
        nca = NCA(2, objective=objective, target=target, alpha=1.0, tol=1e-12, max_iter=2000)
        nca.fit(X, y, weights)
        A, total = nca.components_, weights.sum()
        if target == "classes":
            pair_weights = SameClass(y, weights)
        else:
            pair_weights = TargetKernel(y, nca.target_bandwidth_, weights)
        value, gradient = nca_objective(objective, A, X, pair_weights)
        assert nca.objective_ == pytest.approx(value / total, rel=1e-8)
        # n, the number of rows, whatever their weights
        penalty = 1.0 / len(X) ** 0.5 * unit_distance(X) ** 2
        slope = -gradient / total + 2 * penalty * A
        assert np.abs(slope).max() < 1e-4 * np.abs(gradient / total).max()

    @pytest.mark.long
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"objective": "log_likelihood", "n_components": 2},
            {"structure": "diagonal"},
            {"target": "continuous"},
        ],
    )
    def test_stochastic_gradient_reaches_what_lbfgs_does(self, parameters):
        X, y, weights = wine()
        exact = NCA(**parameters).fit(X, y, weights)
        found = NCA(**parameters, solver="sgd", random_state=0).fit(X, y, weights)
        assert found.objective_ == pytest.approx(exact.objective_, abs=1e-3)

    @pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
    def test_an_epoch_has_the_loss_and_the_gradient_of_all_rows_for_its_mean(self, objective):
        X, y, weights = wine()
        rng, rows, n = np.random.default_rng(0), UnitRows.of(X), len(X)
        B, pair_weights = rng.normal(size=(2, 13)), SameClass(y, weights / weights.mean())
        loss = StochasticNeighbors(rows, EXACT, None, objective, pair_weights)
        near = np.array([rng.permutation(np.delete(np.arange(n), i))[:7] for i in range(n)])
        far, parts = np.arange(0, n, 4), np.array_split(rng.permutation(n), 5)
        value, gradient = loss.value(B, Candidates(near, far, n))
        found = [
            loss.estimate(B, Minibatch.of(part, near[part], far, n, len(parts))) for part in parts
        ]
        assert np.mean([v for v, _ in found]) == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(np.mean([G for _, G in found], axis=0), gradient, atol=1e-10)

    def test_an_estimate_from_some_rows_is_a_weighted_mean(self, monkeypatch):
        """Of few rows the mean weight is not 1, and f is at most 1 even so."""
        X, y, _ = wine()
        weights = np.random.default_rng(3).gamma(0.2, size=len(X)) + 1e-9
        model = NCA(2, solver="sgd", max_iter=5, random_state=0)
        exact = clone(model).fit(X, y, weights)
        assert exact.objective_error_ == 0
        for n_rows in (40, 80):
            monkeypatch.setattr(candidates, "EVALUATION_ROWS", n_rows)
            some = clone(model).fit(X, y, weights)
            assert some.objective_ <= 1
            assert abs(some.objective_ - exact.objective_) < 4 * some.objective_error_ + 1e-3

    def test_balancing_weights_make_the_objective_the_mean_accuracy_of_the_classes(self):
        X, y, _ = wine()
        balanced = 1 / np.bincount(y)[y]
        nca = NCA(2, max_iter=5).fit(X, y, balanced)
        Z = nca.transform(X)
        P = balanced * np.exp(-np.sum((Z[:, None] - Z) ** 2, axis=2))
        np.fill_diagonal(P, 0)
        q = np.sum(P * (y[:, None] == y), axis=1) / P.sum(axis=1)
        mean_accuracy = np.mean([q[y == c].mean() for c in range(3)])
        assert nca.objective_ == pytest.approx(mean_accuracy, rel=1e-8)

    def test_a_class_of_one_row_stays_one_whatever_its_weight(self):
        X, y, _ = wine()
        y[0] = 3
        weights = np.where(y == 3, 5.0, 1.0)
        model = NCA(2, objective="log_likelihood", max_iter=3).fit(X, y, weights)
        value = nca_objective("log_likelihood", model.components_, X, SameClass(y, weights))[0]
        assert model.objective_ == pytest.approx(value / weights.sum(), rel=1e-6)
        few = np.r_[0, 1, 70]
        with pytest.raises(ValueError, match="every class has a single row"):
            NCA().fit(X[few], [0, 1, 2], [2.0, 3.0, 1.0])

    def test_partial_fit(self):
        X, y, weights = wine()
        weights[::4] = 0
        kept = weights > 0
        found = []
        for rows, some in ((slice(None), weights), (kept, weights[kept]), (kept, None)):
            model = NCA(2, solver="sgd", random_state=0)
            for half in (slice(0, None, 2), slice(1, None, 2)):
                cut = np.arange(len(X))[half]
                cut = cut if isinstance(rows, slice) else cut[kept[cut]]
                model.partial_fit(X[cut], y[cut], None if some is None else weights[cut])
            found.append(model.components_)
        np.testing.assert_array_equal(found[0], found[1])
        assert np.abs(found[1] - found[2]).max() > 1e-3 * np.abs(found[2]).max()


class TestPairNCA:
    def test_the_objective_is_the_cost_of_weighted_pairs_and_rows(self):
        X, _, weights = wine()
        rng = np.random.default_rng(0)
        pairs = np.array([rng.permutation(len(X))[:2] for _ in range(60)])
        model = PairNCA(2, max_iter=5).fit(X, sample_weight=weights, pairs=pairs)
        s = weights / weights.mean()
        of_pairs = s[pairs].prod(axis=1)
        cost = pair_cost(model.components_, X, pairs, of_pairs / of_pairs.sum(), row_weights=s)[0]
        assert model.objective_ == pytest.approx(cost, rel=1e-10)

    def test_pairs_are_those_of_the_rows_that_are_present(self):
        X, _, weights = wine()
        weights[[3, 50]] = 0
        present = np.flatnonzero(weights)
        rng = np.random.default_rng(0)
        pairs = np.array([rng.permutation(len(X))[:2] for _ in range(300)])
        pairs[0] = 3, 4
        of_pairs = rng.random(300)
        found = PairNCA(2, max_iter=5).fit(X, sample_weight=weights, pairs=pairs, weights=of_pairs)
        kept = np.isin(pairs, present).all(axis=1)
        again = PairNCA(2, max_iter=5).fit(
            X[present],
            sample_weight=weights[present],
            pairs=np.searchsorted(present, pairs[kept]),
            weights=of_pairs[kept],
        )
        np.testing.assert_allclose(found.components_, again.components_, rtol=1e-6, atol=1e-8)
        with pytest.raises(ValueError, match="sample_weight is 0 for a row of every pair"):
            PairNCA().fit(X, sample_weight=weights, pairs=[[3, 4], [7, 50]])

    def test_an_epoch_has_the_pairs_of_all_rows(self):
        X, _, weights = wine()
        rng, rows, n = np.random.default_rng(0), UnitRows.of(X), len(X)
        s, far = weights / weights.mean(), np.arange(n)
        pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)])
        of_pairs = s[pairs].prod(axis=1)
        loss = SimilarPairs(rows, EXACT, None, pairs, of_pairs / of_pairs.sum(), s)
        B, none = rng.normal(size=(2, 13)) / 3, np.empty((n, 0), int)
        parts = np.array_split(rng.permutation(n), 5)
        batches = [Minibatch.of(part, none[part], far, n, 5) for part in parts]
        value, _ = loss.value(B)
        assert loss.evaluate(B) == (pytest.approx(value, rel=1e-10), 0)
        # Jensen: the logarithm of a part of the sum is in the mean at most that of the sum
        estimates = [loss.estimate(B, batch)[0] for batch in batches]
        assert value - 0.5 < np.mean(estimates) <= value


def test_mlkr_minimizes_the_weighted_error_relative_to_that_of_the_weighted_mean():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:120], y[:120]
    weights = np.random.default_rng(0).gamma(1.0, size=120)
    model = MLKR(2, alpha=0.3, max_iter=10).fit(X, y, weights)
    A, cost = model.components_, 0.3 / 120**0.5 * np.sum(model.components_**2)
    P = weights * np.exp(-np.sum(((X[:, None] - X) @ A.T) ** 2, axis=2))
    np.fill_diagonal(P, 0)
    error = np.average((y - P @ y / P.sum(axis=1)) ** 2, weights=weights)
    assert model.objective_ == pytest.approx(error, rel=1e-8)
    variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    loss = error / variance + cost * unit_distance(X) ** 2
    assert model.loss_curve_[-1] == pytest.approx(loss, rel=1e-8)


class TestSoftNeighbors:
    @pytest.mark.parametrize("bandwidth", [0.5, 2.0])
    def test_votes_are_those_of_repeated_rows(self, bandwidth):
        X, y, _ = wine()
        counts = np.random.default_rng(0).integers(0, 4, len(X))
        train, test = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
        repeated = np.repeat(train, counts[train])
        for model in (SoftNeighborsClassifier, SoftNeighborsRegressor):
            weighted = model(bandwidth=bandwidth).fit(X[train], y[train], counts[train])
            copied = model(bandwidth=bandwidth).fit(X[repeated], y[repeated])
            vote = "predict_proba" if model is SoftNeighborsClassifier else "predict"
            np.testing.assert_allclose(
                getattr(weighted, vote)(X[test]),
                getattr(copied, vote)(X[test]),
                rtol=1e-10,
                atol=1e-10,
            )

    def test_the_nearest_vote_by_their_weights(self):
        X, y, weights = wine()
        model = SoftNeighborsRegressor(n_neighbors=5).fit(X[1:], y[1:], weights[1:])
        squares = np.sum((X[1:] - X[0]) ** 2, axis=1)
        near = np.argsort(squares)[:5]
        expected = np.average(
            y[1:][near], weights=weights[1:][near] * np.exp(squares[near[0]] - squares[near])
        )
        assert model.predict(X[:1])[0] == pytest.approx(expected, rel=1e-9)

    def test_local_k_is_that_of_the_weighted_votes(self):
        X, y, weights = wine()
        model = SoftNeighborsClassifier(bandwidth=2.0).fit(X, y, weights)
        P = weights * np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 4)
        np.fill_diagonal(P, 0)
        P /= P.sum(axis=1, keepdims=True)
        entropy = -np.sum(P * np.log(np.where(P > 0, P, 1)), axis=1)
        np.testing.assert_allclose(model.local_k(), np.exp(entropy), rtol=1e-8)

    @pytest.mark.slow
    def test_are_what_nca_maximizes(self):
        """Each row is predicted by the others, with their weights."""
        X, y, weights = wine()
        nca = NCA(2, max_iter=5).fit(X, y, weights)
        Z, q = nca.transform(X), np.empty(len(X))
        for i in range(len(X)):
            vote = SoftNeighborsClassifier().fit(
                np.delete(Z, i, axis=0), np.delete(y, i), np.delete(weights, i)
            )
            q[i] = vote.predict_proba(Z[[i]])[0, y[i]]
        assert nca.objective_ == pytest.approx(np.average(q, weights=weights), rel=1e-8)
