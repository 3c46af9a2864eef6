"""The objectives against their definitions by double loops, and their gradients against finite
differences.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from nearkin import _threads
from nearkin.objectives import stochastic
from nearkin.objectives.candidates import Candidates, Minibatch, among_candidates
from nearkin.objectives.nca import nca_objective, pair_cost
from nearkin.objectives.stochastic import SameClass, TargetKernel


def neighbor_probabilities(Z):
    """Eq. 1."""
    n = len(Z)
    p = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            p[i, j] = 0.0 if i == j else np.exp(-np.sum((Z[i] - Z[j]) ** 2))
        p[i] /= p[i].sum()
    return p


def by_loops(objective, A, X, weights):
    """Eqs. 2, 3 and 6."""
    p = neighbor_probabilities(X * A if A.ndim == 1 else X @ A.T)
    q = [sum(weights[i, j] * p[i, j] for j in range(len(X)) if j != i) for i in range(len(X))]
    return sum(q) if objective == "expected_accuracy" else sum(np.log(q_i) for q_i in q if q_i > 0)


def rows(n=40, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X - X.mean(axis=0), rng


def classes():
    codes = np.random.default_rng(1).integers(0, 4, 40)
    codes[7] = 4  # alone in its class
    return SameClass(codes), (codes[:, None] == codes) * 1.0


def targets():
    y = np.random.default_rng(2).normal(size=40)
    return TargetKernel(y, 0.4), np.exp(-((y[:, None] - y) ** 2) / (2 * 0.4**2))


every_objective = pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
every_structure = pytest.mark.parametrize(
    "shape", [(5, 5), (2, 5), (5,)], ids=["full", "low rank", "diagonal"]
)
every_case = pytest.mark.parametrize(
    ("objective", "shape", "target"),
    [
        ("expected_accuracy", (5, 5), classes),
        ("log_likelihood", (2, 5), classes),
        ("expected_accuracy", (2, 5), targets),
        ("log_likelihood", (5,), targets),
        ("expected_accuracy", (5,), classes),
    ],
    ids=["f, full", "g, low rank", "f, targets", "g, diagonal, targets", "f, diagonal"],
)


def finite_differences(function, A):
    numeric = np.empty_like(A)
    for at in np.ndindex(A.shape):
        step = np.zeros_like(A)
        step[at] = 1e-5
        numeric[at] = (function(A + step)[0] - function(A - step)[0]) / 2e-5
    return numeric


@every_case
class TestAgainstTheDefinition:
    def test_value(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, weights) = rng.normal(size=shape), target()
        assert nca_objective(objective, A, X, pair_weights)[0] == pytest.approx(
            by_loops(objective, A, X, weights), rel=1e-10
        )

    def test_gradient(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        _, gradient = nca_objective(objective, A, X, pair_weights)
        np.testing.assert_allclose(
            gradient,
            finite_differences(lambda A: nca_objective(objective, A, X, pair_weights), A),
            rtol=1e-6,
            atol=1e-7,
        )

    def test_gradient_is_the_sum_of_outer_products(self, objective, shape, target):
        """Eqs. 5 and 7, derived: 2 A sum_ij c_i (r_ij - p_ij) x_ij x_ij' with c_i = q_i for f and 1
        for g, negated.
        """
        X, rng = rows()
        A, (pair_weights, weights) = rng.normal(size=shape), target()
        p = neighbor_probabilities(X * A if A.ndim == 1 else X @ A.T)
        expected = np.zeros(shape)
        for i in range(40):
            q = sum(weights[i, j] * p[i, j] for j in range(40) if j != i)
            for j in range(40):
                if i != j and q > 0:
                    factor = (q if objective == "expected_accuracy" else 1.0) * (
                        p[i, j] - weights[i, j] * p[i, j] / q
                    )
                    x = X[i] - X[j]
                    expected += 2 * factor * (A * x * x if A.ndim == 1 else np.outer(A @ x, x))
        np.testing.assert_allclose(
            nca_objective(objective, A, X, pair_weights)[1], expected, rtol=1e-10, atol=1e-10
        )

    def test_sparse_rows(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        value, gradient = nca_objective(objective, A, X, pair_weights)
        sparse_value, sparse_gradient = nca_objective(objective, A, csr_array(X), pair_weights)
        assert sparse_value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(sparse_gradient, gradient, atol=1e-10)

    def test_float32_tiles(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        value, gradient = nca_objective(objective, A, X, pair_weights)
        single_value, single_gradient = nca_objective(
            objective, A.astype(np.float32), X.astype(np.float32), pair_weights
        )
        assert single_value == pytest.approx(value, rel=1e-5)
        assert single_gradient.dtype == np.float64
        np.testing.assert_allclose(single_gradient, gradient, atol=1e-4 * np.abs(gradient).max())

    def test_many_tiles_and_threads(self, objective, shape, target, monkeypatch):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        value, gradient = nca_objective(objective, A, X, pair_weights)
        monkeypatch.setattr(stochastic, "TILE_ROWS", 3)
        monkeypatch.setattr(_threads, "FEW_ENTRIES", 0)
        monkeypatch.setattr(_threads, "n_threads", lambda: 3)
        again, gradient_again = nca_objective(objective, A, X, pair_weights)
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-10)

    def test_all_rows_as_candidates(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        value, gradient = nca_objective(objective, A, X, pair_weights)
        near = np.array([rng.permutation(np.delete(np.arange(40), i))[:9] for i in range(40)])
        near[:, -1] = np.arange(40)  # itself: none
        estimate, gradient_of_estimate = nca_objective(
            objective, A, X, pair_weights, Candidates(near, np.arange(40), 40)
        )
        assert estimate == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(gradient_of_estimate, gradient, atol=1e-10)

    def test_gradient_with_candidates(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        near = np.array([rng.permutation(np.delete(np.arange(40), i))[:9] for i in range(40)])
        candidates = Candidates(near, np.arange(0, 40, 3), 40)
        _, gradient = nca_objective(objective, A, X, pair_weights, candidates)
        numeric = finite_differences(
            lambda A: nca_objective(objective, A, X, pair_weights, candidates), A
        )
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)

    def test_parts_of_the_anchors_add_up_to_all(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        near = np.array([rng.permutation(np.delete(np.arange(40), i))[:9] for i in range(40)])
        near[3, 4] = 3  # itself: none
        candidates = Candidates(near, np.arange(0, 40, 3), 40)
        value, gradient = nca_objective(objective, A, X, pair_weights, candidates)
        parts = []
        for anchors in np.split(rng.permutation(40), [1, 12, 13, 30]):
            among_these = Minibatch.of(anchors, near[anchors], candidates.far, 40)
            needed = among_these.rows
            np.testing.assert_array_equal(needed[: len(anchors)], anchors)
            parts.append(
                nca_objective(objective, A, X[needed], pair_weights.subset(needed), among_these)
            )
        assert sum(part[0] for part in parts) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(
            sum(part[1] for part in parts), gradient, atol=1e-12 * np.abs(gradient).max()
        )

    def test_no_near_rows_and_all_far_is_exact(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        value, gradient = nca_objective(objective, A, X, pair_weights)
        again, gradient_again = nca_objective(
            objective,
            A,
            X,
            pair_weights,
            Candidates(np.empty((40, 0), int), rng.permutation(40), 40),
        )
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-12 * np.abs(gradient).max())

    def test_moved_rotated_and_permuted(self, objective, shape, target):
        X, rng = rows()
        A, (pair_weights, _) = rng.normal(size=shape), target()
        value, gradient = nca_objective(objective, A, X, pair_weights)
        assert nca_objective(objective, A, X + 100.0, pair_weights)[0] == pytest.approx(
            value, rel=1e-9
        )
        order = rng.permutation(40)
        permuted = (
            SameClass(pair_weights.codes[order])
            if target is classes
            else TargetKernel(pair_weights.targets[order], pair_weights.bandwidth)
        )
        again, gradient_again = nca_objective(objective, A, X[order], permuted)
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-10)
        if A.ndim == 2:
            Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
            assert nca_objective(objective, A @ Q.T, X @ Q.T, pair_weights)[0] == pytest.approx(
                value, rel=1e-10
            )


def test_is_the_objective_of_scikit_learn():
    X, rng = rows()
    A, (pair_weights, weights) = rng.normal(size=(3, 5)), classes()
    nca = NeighborhoodComponentsAnalysis()
    nca.n_iter_ = 1
    value, gradient = nca._loss_grad_lbfgs(A.ravel(), X, weights.astype(bool), -1.0)
    ours, our_gradient = nca_objective("expected_accuracy", A, X, pair_weights)
    assert ours == pytest.approx(-value, rel=1e-10)
    np.testing.assert_allclose(our_gradient.ravel(), -gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
@every_objective
def test_no_weights_near_the_smallest_number_there_is(objective, scale):
    """They would change nothing, and make products ten times slower."""
    X, rng = rows()
    X, A = X.astype(np.float32), (scale * rng.normal(size=(3, 5))).astype(np.float32)
    codes, near = (
        rng.integers(0, 2, 40),
        np.array([np.roll(np.arange(40), -i)[1:9] for i in range(40)]),
    )
    candidates = Minibatch.of(np.arange(7), near[:7], np.arange(0, 40, 3), 40)
    needed = candidates.rows
    Z = X[needed] @ A.T
    terms = (
        stochastic.accuracy_terms
        if objective == "expected_accuracy"
        else stochastic.likelihood_terms
    )
    gradient = among_candidates(Z, candidates, SameClass(codes[needed]), terms)[1]
    assert not ((gradient != 0) & (np.abs(gradient) < np.finfo(np.float32).tiny)).any()


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
@every_objective
def test_nothing_under_or_overflows(objective, scale):
    X, rng = rows()
    pair_weights, _ = classes()
    value, gradient = nca_objective(objective, scale * rng.normal(size=(3, 5)), X, pair_weights)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_a_far_row_still_attracts_in_g():
    """Its class is so far that p underflows: f ignores the row, g does not."""
    X = np.array([[0.0], [1.0], [100.0], [101.0]])
    pair_weights = SameClass(np.array([0, 1, 0, 1]))
    _, gradient_f = nca_objective("expected_accuracy", np.eye(1), X - X.mean(), pair_weights)
    value, gradient_g = nca_objective("log_likelihood", np.eye(1), X - X.mean(), pair_weights)
    assert abs(gradient_f[0, 0]) < 1e-30
    assert value == pytest.approx(2 * (1 - 100**2) + 2 * (1 - 100**2), rel=1e-12)
    assert gradient_g[0, 0] == pytest.approx(2 * value, rel=1e-9)


def test_rows_alone_in_their_class_count_nothing():
    X, rng = rows()
    A = rng.normal(size=(2, 5))
    alone = SameClass(np.arange(40))
    for objective in ("expected_accuracy", "log_likelihood"):
        value, gradient = nca_objective(objective, A, X, alone)
        assert value == 0
        np.testing.assert_array_equal(gradient, 0.0)


@pytest.mark.parametrize("sizes", [[1] * 30, [100], [3, 200, 1, 1, 50], [40] * 3])
@pytest.mark.parametrize("height", [1, 64])
def test_tiles_cover_every_row_once_with_its_whole_class(sizes, height):
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    pair_weights = SameClass(codes)
    ordered = codes[pair_weights.order]
    seen = np.concatenate(
        [np.arange(rows.start, rows.stop) for rows, _ in pair_weights.tiles(height)]
    )
    np.testing.assert_array_equal(seen, np.arange(len(codes)))
    for rows_of_tile, columns in pair_weights.tiles(height):
        assert rows_of_tile.stop - rows_of_tile.start <= max(height, 1)
        own = np.flatnonzero(np.isin(ordered, ordered[rows_of_tile]))
        assert columns.start <= own.min()
        assert own.max() < columns.stop


class TestPairCost:
    @every_structure
    def test_value_and_gradient(self, shape, monkeypatch):
        X, rng = rows()
        A = rng.normal(size=shape) / 2
        pairs, weights = rng.integers(0, 40, (15, 2)), rng.random(15)
        Z = X * A if A.ndim == 1 else X @ A.T
        total = sum(
            np.exp(-np.sum((Z[c] - Z[d]) ** 2)) for c in range(40) for d in range(40) if c != d
        )
        cost = -sum(
            w * np.log(np.exp(-np.sum((Z[a] - Z[b]) ** 2)) / total)
            for (a, b), w in zip(pairs, weights, strict=True)
        )
        monkeypatch.setattr(stochastic, "TILE_ROWS", 7)
        value, gradient = pair_cost(A, X, pairs, weights)
        assert value == pytest.approx(cost, rel=1e-10)
        numeric = finite_differences(lambda A: pair_cost(A, X, pairs, weights), A)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)

    @staticmethod
    def problem():
        X, rng = rows()
        return X, rng.integers(0, 40, (30, 2)), rng.random(30), rng.normal(size=(2, 5)) / 2, rng

    def test_candidates_that_are_all_rows_are_exact(self):
        X, pairs, weights, A, _ = self.problem()
        exact, gradient = pair_cost(A, X, pairs, weights)
        others, none = (
            np.array([np.delete(np.arange(40), i) for i in range(40)]),
            np.empty((40, 0), int),
        )
        for near, far in (
            (others, np.arange(3)),
            (none, np.arange(40)),
            (others[:, :9], np.arange(40)),
        ):
            value, G = pair_cost(A, X, pairs, weights, Candidates(near, far, 40))
            assert value == pytest.approx(exact, rel=1e-12)
            np.testing.assert_allclose(G, gradient, rtol=1e-9, atol=1e-10)

    def test_candidates_that_stand_for_others(self):
        X, pairs, weights, A, rng = self.problem()
        near = np.array([rng.permutation(np.delete(np.arange(40), i))[:6] for i in range(40)])
        candidates = Candidates(near, rng.permutation(40)[:8], 40)
        total = 0.0
        for i in range(40):
            squares = np.sum(((X[i] - X) @ A.T) ** 2, axis=1)
            far = [j for j in candidates.far if j != i and j not in near[i]]
            total += np.exp(-squares[near[i]]).sum() + (40 - 1 - 6) * np.exp(-squares[far]).mean()
        squares = np.sum(((X[pairs[:, 0]] - X[pairs[:, 1]]) @ A.T) ** 2, axis=1)
        value, gradient = pair_cost(A, X, pairs, weights, candidates)
        assert value == pytest.approx(weights @ squares + weights.sum() * np.log(total), rel=1e-10)
        numeric = finite_differences(lambda A: pair_cost(A, X, pairs, weights, candidates), A)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_memory_is_that_of_a_tile():
    """2,000 rows: all distances would be 32 MB, scikit-learn's four arrays 110."""
    tracemalloc = pytest.importorskip("tracemalloc")
    X, rng = rows(2000, 10)
    A, pair_weights = rng.normal(size=(5, 10)), SameClass(rng.integers(0, 3, 2000))
    tracemalloc.start()
    nca_objective("expected_accuracy", A, X, pair_weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 14e6
