from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import ITML
from nearkin.estimators.itml import Bounds
from nearkin.testing import check_gradient

EXACTLY = {"tol": 1e-15, "max_iter": 3000}


def drawn(n_pairs=80, p=4, seed=0):
    """Return pairs of rows of three classes, and 1 or -1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 40)
    X = rng.normal(size=(40, p)) * np.linspace(0.5, 2, p) + 2 * rng.normal(size=(3, p))[y]
    numbers = np.array(list(combinations(range(40), 2)))
    numbers = numbers[rng.permutation(len(numbers))[:n_pairs]]
    return X[numbers], np.where(y[numbers[:, 0]] == y[numbers[:, 1]], 1, -1)


def definite(seed=3, p=4):
    A = np.random.default_rng(seed).normal(size=(p, p))
    return A @ A.T + 0.3 * np.eye(p)


def metric(model):
    return model.get_mahalanobis_matrix()


def log_det_divergence(A, B):
    C = A @ np.linalg.inv(B)
    return np.trace(C) - np.log(np.linalg.det(C)) - len(A)


def loss(M, pairs, y, bounds, gamma, prior, weights=None):
    """Return the loss and the multipliers lambda_c, by a loop over the pairs."""
    value, multipliers = log_det_divergence(M, prior), []
    weights = np.ones(len(y)) if weights is None else weights
    for (a, b), kind, w in zip(pairs, y, weights, strict=True):
        d, bound = (a - b) @ M @ (a - b), bounds[0] if kind == 1 else bounds[1]
        violated = d > bound if kind == 1 else d < bound
        value += gamma * w * (d / bound - np.log(d / bound) - 1) * violated
        multipliers.append(gamma * w * abs(1 / bound - 1 / d) * violated)
    return value, np.array(multipliers)


def assert_optimal(M, pairs, y, bounds, gamma, prior, weights=None, tol=2e-6):
    """M^-1 = M_0^-1 + sum_similar lambda zz' - sum_dissimilar lambda zz'."""
    multipliers = loss(M, pairs, y, bounds, gamma, prior, weights)[1]
    expected = np.linalg.inv(prior)
    for (a, b), kind, multiplier in zip(pairs, y, multipliers, strict=True):
        expected += kind * multiplier * np.outer(a - b, a - b)
    inverse = np.linalg.inv(M)
    np.testing.assert_allclose(inverse, expected, rtol=0, atol=tol * np.abs(inverse).max())
    assert np.any(multipliers > 0)


class TestMinimum:
    @pytest.mark.parametrize("gamma", [0.01, 1.0, 50.0, 1000.0])
    @pytest.mark.parametrize("prior", [None, definite()], ids=["identity", "prior"])
    def test_optimality_conditions(self, gamma, prior):
        pairs, y = drawn()
        weights = np.random.default_rng(1).uniform(0.2, 3, len(y))
        model = ITML(gamma=gamma, prior=prior, **EXACTLY).fit_pairs(pairs, y, weights=weights)
        prior, weights = np.eye(4) if prior is None else prior, weights / weights.mean()
        assert_optimal(metric(model), pairs, y, model.bounds_, gamma, prior, weights)
        expected = loss(metric(model), pairs, y, model.bounds_, gamma, prior, weights)[0]
        assert model.objective_ == pytest.approx(expected)
        assert model.loss_curve_[-1] == pytest.approx(expected)

    @pytest.mark.parametrize("gamma", [0.1, 50.0])
    def test_from_labels(self, gamma):
        """Every row is paired with its k nearest of the same class, and of others; a pair counts
        once.
        """
        X, y = load_wine(return_X_y=True)
        X, y = scale(X)[::3], y[::3]
        listed = set()
        for i in range(len(X)):
            for kind in (True, False):
                others = np.flatnonzero(((y == y[i]) == kind) & (np.arange(len(y)) != i))
                search = NearestNeighbors(n_neighbors=4).fit(X[others])
                found = others[search.kneighbors(X[[i]], return_distance=False)[0]]
                listed |= {(min(i, j), max(i, j)) for j in found}
        numbers = np.array(sorted(listed))
        kinds = np.where(y[numbers[:, 0]] == y[numbers[:, 1]], 1, -1)
        bounds = tuple(np.percentile(pdist(X, "sqeuclidean"), [20, 80]))
        model = ITML(gamma=gamma, n_neighbors=4, percentiles=(20, 80), **EXACTLY).fit(X, y)
        assert model.bounds_ == pytest.approx(bounds)
        assert_optimal(metric(model), X[numbers], kinds, bounds, gamma, np.eye(13))

    @pytest.mark.parametrize("bounds", [(1e-25, 1e-24), (1e24, 1e25)])
    def test_bounds_in_any_unit(self, bounds):
        pairs, y = drawn()
        model = ITML(bounds=bounds, **EXACTLY).fit_pairs(pairs, y)
        assert_optimal(metric(model), pairs, y, bounds, 1.0, np.eye(4))

    def test_is_what_bregman_projections_find(self):
        pairs, y = drawn(20, p=3)
        for gamma, prior in ((0.5, np.eye(3)), (5.0, definite(p=3))):
            expected = projections(pairs, y, (2.0, 9.0), gamma, prior)
            model = ITML(gamma=gamma, bounds=(2.0, 9.0), prior=prior, **EXACTLY)
            found = metric(model.fit_pairs(pairs, y))
            np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())

    def test_any_other_metric_costs_more(self):
        pairs, y = drawn()
        model = ITML(gamma=2.0, **EXACTLY).fit_pairs(pairs, y)
        rng = np.random.default_rng(2)
        for size in (1e-2, 0.1, 0.5):
            A = np.eye(4) + size * rng.normal(size=(4, 4))
            M = A.T @ metric(model) @ A
            assert loss(M, pairs, y, model.bounds_, 2.0, np.eye(4))[0] > model.objective_

    def test_gradient(self):
        pairs, y = drawn()
        X = pairs.reshape(-1, 4)
        numbers, weights = np.arange(160).reshape(80, 2), np.linspace(0.1, 2, 80)
        given = Bounds(X, numbers, y == 1, np.where(y == 1, 2.0, 20.0), weights)
        check_gradient(given.loss, np.random.default_rng(0).normal(size=(4, 4)))

    @pytest.mark.parametrize(("d", "similar"), [(3.0, True), (1.0, True), (1.0, False)])
    def test_the_best_slack(self, d, similar):
        """The bound itself where it is kept, else the distance."""
        bound = 2.0

        def divergence(xi):
            return xi / bound - np.log(xi / bound) - 1

        limits = (d, 10.0) if similar else (1e-9, d)
        best = minimize_scalar(divergence, bounds=limits, method="bounded", options={"xatol": 1e-9})
        violated = (d > bound) == similar
        assert best.x == pytest.approx(d if violated else bound, abs=1e-4)
        B, X = np.eye(1), np.array([[0.0], [d**0.5]])
        given = Bounds(X, np.array([[0, 1]]), np.array([similar]), np.array([bound]), np.ones(1))
        assert given.loss(B)[0] == pytest.approx(best.fun if violated else 0.0, abs=1e-7)


def projections(pairs, y, bounds, gamma, prior, n_cycles=300):
    """Project onto one constraint after the other (the paper's algorithm 1).

    The paper's step for the slack is that of gamma = 1; this one, of any, is where the projection
    meets both p = xi' and the derivative of gamma D_ld(xi', xi): 1/xi' = 1/xi + delta alpha / gamma.
    """
    M, xi = prior.copy(), np.where(y == 1, *bounds)
    multipliers = np.zeros(len(y))
    for _ in range(n_cycles):
        for c, ((a, b), delta) in enumerate(zip(pairs, y, strict=True)):
            z = M @ (a - b)
            d = (a - b) @ z
            step = min(multipliers[c], delta * gamma / (gamma + 1) * (1 / d - 1 / xi[c]))
            multipliers[c] -= step
            xi[c] = gamma * xi[c] / (gamma + delta * step * xi[c])
            M += delta * step / (1 - delta * step * d) * np.outer(z, z)
    return M


class TestLimits:
    @pytest.mark.parametrize("prior", [np.eye(4), definite()], ids=["identity", "prior"])
    def test_a_small_gamma_gives_the_prior(self, prior):
        M = metric(ITML(gamma=1e-9, prior=prior).fit_pairs(*drawn()))
        np.testing.assert_allclose(M, prior, atol=1e-6)

    def test_bounds_that_the_prior_keeps_give_the_prior(self):
        model = ITML(bounds=(1e6, 1e-6)).fit_pairs(*drawn())
        np.testing.assert_allclose(metric(model), np.eye(4), atol=1e-14)
        assert (model.objective_, model.n_iter_) == (pytest.approx(0, abs=1e-12), 0)

    def test_a_large_gamma_keeps_bounds_that_can_be_kept(self):
        pairs, y = drawn(12, p=8)
        model = ITML(gamma=1e4, bounds=(4.0, 9.0)).fit_pairs(pairs, y)
        squares = model.pair_distance(pairs) ** 2
        assert squares[y == 1].max() < 4.0 * 1.01
        assert squares[y == -1].min() > 9.0 * 0.99

    def test_similar_pairs_alone_are_drawn_together(self):
        pairs, y = drawn()
        pairs = pairs[y == 1]
        model = ITML(**EXACTLY).fit_pairs(pairs)
        assert_optimal(metric(model), pairs, np.ones(len(pairs)), model.bounds_, 1.0, np.eye(4))
        assert np.linalg.eigvalsh(metric(model)).max() < 1 + 1e-6
        assert np.all(
            model.pair_distance(pairs) < np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)
        )

    def test_dissimilar_pairs_of_equal_rows_are_left_out(self):
        pairs, y = drawn()
        twins = np.repeat(pairs[:5, :1], 2, axis=1)
        bounds = (2.0, 20.0)
        M = metric(ITML(bounds=bounds).fit_pairs(pairs, y))
        more = np.vstack([pairs, twins]), np.concatenate([y, np.full(5, -1)])
        np.testing.assert_allclose(metric(ITML(bounds=bounds).fit_pairs(*more)), M, atol=1e-12)


class TestInvariances:
    def test_order_and_direction_of_pairs(self):
        pairs, y = drawn()
        order = np.random.default_rng(1).permutation(len(y))
        M = metric(ITML(**EXACTLY).fit_pairs(pairs, y))
        moved = metric(ITML(**EXACTLY).fit_pairs(pairs[order, ::-1] + 5, y[order]))
        np.testing.assert_allclose(moved, M, atol=1e-6 * np.abs(M).max())

    def test_one_unit_of_all_features(self):
        pairs, y = drawn()
        M = metric(ITML().fit_pairs(pairs, y))
        np.testing.assert_allclose(metric(ITML().fit_pairs(1e3 * pairs, y)), M, rtol=1e-6)

    def test_a_linear_change_that_the_prior_follows(self):
        pairs, y = drawn()
        T = np.random.default_rng(5).normal(size=(4, 4))
        prior = definite()
        M = metric(ITML(prior=prior, **EXACTLY).fit_pairs(pairs, y))
        moved = ITML(prior=T.T @ prior @ T, **EXACTLY).fit_pairs(pairs @ np.linalg.inv(T).T, y)
        np.testing.assert_allclose(
            metric(moved), T.T @ M @ T, atol=1e-5 * np.abs(T.T @ M @ T).max()
        )

    def test_single_precision(self):
        pairs, y = drawn()
        single, double = ITML().fit_pairs(pairs.astype(np.float32), y), ITML().fit_pairs(pairs, y)
        assert single.components_.dtype == np.float32
        np.testing.assert_allclose(metric(single), metric(double), rtol=1e-4, atol=1e-4)

    def test_sparse_rows(self):
        pairs, y = drawn()
        X = pairs.reshape(-1, 4) * (np.arange(4) > 0)
        numbers = np.arange(len(X)).reshape(-1, 2)
        sparse = metric(ITML().fit_pairs(numbers, y, X=csr_array(X)))
        np.testing.assert_allclose(sparse, metric(ITML().fit_pairs(numbers, y, X=X)), atol=1e-8)


class TestWeights:
    def test_weights_of_pairs_count_as_repetitions(self):
        pairs, y = drawn()
        weights = np.arange(len(y)) % 3 + 1
        weighted = ITML(**EXACTLY).fit_pairs(pairs, y, weights=5 * weights)
        some = np.repeat(np.arange(len(y)), weights)
        repeated = ITML(**EXACTLY).fit_pairs(pairs[some, ::-1], y[some])
        assert weighted.objective_ == pytest.approx(repeated.objective_)
        np.testing.assert_allclose(metric(weighted), metric(repeated), rtol=1e-5, atol=1e-7)

    def test_weights_of_rows_multiply(self):
        """A row of weight 0 is absent; of others a pair counts s_i s_j, with weights of mean 1."""
        X, y = load_wine(return_X_y=True)
        X, y = scale(X)[::4], y[::4]
        s = np.arange(len(y)) % 3
        here = s > 0
        model = ITML(n_neighbors=2, **EXACTLY).fit(X, y, sample_weight=s)
        absent = ITML(n_neighbors=2, **EXACTLY).fit(X[here], y[here], sample_weight=10 * s[here])
        np.testing.assert_allclose(
            metric(absent), metric(model), atol=1e-10 * np.abs(metric(model)).max()
        )
        X, y, s = X[here], y[here], s[here] / s[here].mean()
        listed = {}
        for relation in (True, False):
            for i in range(len(y)):
                others = np.flatnonzero(((y == y[i]) == relation) & (np.arange(len(y)) != i))
                for j in others[np.argsort(np.linalg.norm(X[others] - X[i], axis=1))[:2]]:
                    listed[min(i, j), max(i, j)] = s[i] * s[j]
        numbers, products = np.array(list(listed)), np.array(list(listed.values()))
        kinds = np.where(y[numbers[:, 0]] == y[numbers[:, 1]], 1, -1)
        assert_optimal(
            metric(model), X[numbers], kinds, model.bounds_, 1.0, np.eye(13), products, tol=2e-5
        )


def test_components_are_leading_eigenvectors():
    pairs, y = drawn()
    for prior in (None, definite()):
        values, V = np.linalg.eigh(metric(ITML(prior=prior).fit_pairs(pairs, y)))
        model = ITML(2, prior=prior).fit_pairs(pairs, y)
        expected = V[:, 2:] * values[2:] @ V[:, 2:].T
        np.testing.assert_allclose(metric(model), expected, atol=1e-9 * values[-1])
        np.testing.assert_allclose(
            model.components_ @ model.components_.T, np.diag(values[:1:-1]), atol=1e-9 * values[-1]
        )


def test_more_features_than_rows():
    """What is learned is the metric of all features, where the rows vary."""
    pairs, y = drawn(10, p=30)
    model = ITML(bounds=(20.0, 60.0), **EXACTLY).fit_pairs(pairs, y)
    rows = pairs.reshape(-1, 30)
    n_rows = len(np.unique(rows, axis=0))
    assert model.components_.shape == (n_rows - 1, 30)
    V = np.linalg.svd(rows - rows.mean(axis=0))[2][n_rows - 1 :].T  # where they do not
    assert_optimal(metric(model) + V @ V.T, pairs, y, (20.0, 60.0), 1.0, np.eye(30))
    with pytest.raises(ValueError, match=r"prior needs at least as many rows as features \(30\)"):
        ITML(prior=np.eye(30)).fit_pairs(pairs, y)


def test_percentiles_of_rows_that_differ():
    X = np.repeat(np.arange(6.0), 20)[:, None] * [1.0, 2.0]
    numbers, y = np.array([[0, 20], [0, 60]]), [1, -1]
    model = ITML(percentiles=(0, 100)).fit_pairs(numbers, y, X=X)
    assert model.bounds_ == pytest.approx((5, 125))


def test_wine():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(ITML(), KNeighborsClassifier(3))
    assert cross_val_score(model, scale(X), y).mean() > 0.95


def test_it_says_that_it_has_not_converged():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations ended the descent"):
        ITML(max_iter=2).fit_pairs(*drawn())


def test_an_interrupt_keeps_the_best_map(monkeypatch):
    pairs, y = drawn()
    evaluate, calls = Bounds.loss, []

    def interrupted(given, B):
        calls.append(B)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return evaluate(given, B)

    monkeypatch.setattr(Bounds, "loss", interrupted)
    model = ITML()
    with pytest.raises(KeyboardInterrupt):
        model.fit_pairs(pairs, y)
    value = loss(metric(model), pairs, y, model.bounds_, model.gamma, np.eye(4))[0]
    assert model.objective_ == pytest.approx(value)
    assert value <= min(model.loss_curve_) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": 0}, "gamma must be larger than 0"),
        ({"gamma": 1e160}, r"gamma must be at most 1e\+70, got 1e\+160"),
        ({"bounds": (1.0,)}, r"bounds must be two numbers, got \(1.0,\)"),
        ({"bounds": (1e-150, 1.0)}, r"comparable with .* up to about \d.*, got \(1e-150, 1.0\)"),
        ({"bounds": (1.0, 1e150)}, "bounds must be comparable with squared distances by the prior"),
        ({"bounds": (1.0, 0.0)}, r"bounds must be larger than 0, got \(1.0, 0.0\)"),
        ({"percentiles": (5, 101)}, r"percentiles must be between 0 and 100, got \(5, 101\)"),
        ({"percentiles": 5}, "percentiles must be two numbers, got 5"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"prior": np.eye(3)}, r"prior must be a symmetric positive definite matrix.*\(4, 4\)"),
        ({"n_components": 5}, "n_components must be between 1 and 4"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ITML(**parameters).fit_pairs(*drawn())


def test_labels_that_give_no_similar_pair():
    with pytest.raises(ValueError, match="every class has a single row"):
        ITML().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
        ITML(n_neighbors=0).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="No pair differs"):
        ITML(bounds=(1, 2)).fit_pairs([[0, 1]], X=np.array([[1.0, 1], [1, 1], [2, 3]]))
