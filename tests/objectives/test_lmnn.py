"""The loss against its definition by loops over all triples, its gradient by differences, the
search by all pairs.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from nearkin import _threads
from nearkin.graphs import laplacian
from nearkin.objectives import lmnn, stochastic
from nearkin.objectives.candidates import target_neighbors
from nearkin.objectives.lmnn import (
    Comparisons,
    comparison_margin,
    impostors_within,
    large_margin,
    pair_squares,
    target_squares,
)
from nearkin.scatter import scatter

N, P, K = 24, 5, 3


def problem(seed=0):
    """Return rows, classes and targets; one row is alone in its class, two have a single target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P))
    codes = rng.integers(0, 3, N)
    codes[7] = 3
    codes[[8, 20]] = 4
    X -= X.mean(axis=0)
    return X, codes, target_neighbors(X, codes, K), rng


def others(codes):
    return csr_array(codes[:, None] != codes)


def squares(A, X):
    return cdist(X @ A.T, X @ A.T, "sqeuclidean")


def by_loops(A, X, codes, targets, mu=0.5):
    d = squares(A, X)
    first = second = 0.0
    for i in range(len(X)):
        for j in targets[i]:
            if j != i:
                first += d[i, j]
                second += sum(
                    max(0.0, 1 + d[i, j] - d[i, m]) for m in range(len(X)) if codes[m] != codes[i]
                )
    return (1 - mu) * first + mu * second


def finite_differences(function, A, step=1e-6):
    numeric = np.empty_like(A)
    for at in np.ndindex(A.shape):
        move = np.zeros_like(A)
        move[at] = step
        numeric[at] = (function(A + move) - function(A - move)) / (2 * step)
    return numeric


every_map = pytest.mark.parametrize("shape", [(5, 5), (2, 5)], ids=["square", "low rank"])


class TestTargets:
    def test_are_the_nearest_of_the_class_and_the_row_itself_where_there_are_fewer(self):
        X, codes, targets, _ = problem()
        d = squares(np.eye(P), X)
        for i in range(N):
            same = sorted(
                (j for j in range(N) if j != i and codes[j] == codes[i]), key=lambda j: d[i, j]
            )[:K]
            assert targets[i].tolist() == same + [i] * (K - len(same))

    def test_are_no_more_than_the_largest_class_has(self):
        X, codes, _, _ = problem()
        assert target_neighbors(X, codes, 10**9).shape == (N, np.bincount(codes).max() - 1)

    def test_squares(self):
        X, _, targets, _ = problem()
        d, own = squares(np.eye(P), X), np.arange(N)[:, None]
        expected = np.where(targets == own, -np.inf, np.take_along_axis(d, targets, axis=1))
        np.testing.assert_allclose(target_squares(X, targets), expected)


@every_map
class TestAgainstTheDefinition:
    @pytest.mark.parametrize(("mu", "size"), [(0.0, 0.5), (0.3, 0.1), (0.5, 2.0), (1.0, 0.5)])
    def test_value(self, shape, mu, size):
        X, codes, targets, rng = problem()
        A = size * rng.normal(size=shape)
        value, _ = large_margin(A, X, targets, others(codes), mu)
        assert value == pytest.approx(by_loops(A, X, codes, targets, mu), rel=1e-12)

    @pytest.mark.parametrize("size", [0.1, 2.0])
    def test_gradient(self, shape, size):
        X, codes, targets, rng = problem()
        A = size * rng.normal(size=shape)
        _, gradient = large_margin(A, X, targets, others(codes), 0.3)
        numeric = finite_differences(lambda A: by_loops(A, X, codes, targets, 0.3), A)
        np.testing.assert_allclose(gradient, numeric, atol=1e-6 * np.abs(gradient).max())

    def test_gradient_is_the_sum_of_outer_products(self, shape):
        """Of the targets, and of the triples that are violated: what the papers descend along."""
        X, codes, targets, rng = problem()
        A = rng.normal(size=shape) / 2
        d, G = squares(A, X), np.zeros((P, P))

        def outer(i, j):
            return np.outer(X[i] - X[j], X[i] - X[j])

        for i in range(N):
            for j in targets[i]:
                G += 0.5 * outer(i, j)
                for m in range(N):
                    if j != i and codes[m] != codes[i] and 1 + d[i, j] > d[i, m]:
                        G += 0.5 * (outer(i, j) - outer(i, m))
        np.testing.assert_allclose(
            large_margin(A, X, targets, others(codes))[1], 2 * A @ G, atol=1e-9
        )

    def test_those_within_the_margin_are_all_that_count(self, shape):
        X, codes, targets, rng = problem()
        A = rng.normal(size=shape) / 2
        Z = X @ A.T
        listed = impostors_within(Z, codes, 1 + target_squares(Z, targets).max(axis=1), N)
        assert 0 < listed.nnz < others(codes).nnz
        value, gradient = large_margin(A, X, targets, others(codes))
        again, gradient_again = large_margin(A, X, targets, listed)
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-10)

    def test_sparse_rows(self, shape):
        X, codes, targets, rng = problem()
        A = rng.normal(size=shape) / 2
        value, gradient = large_margin(A, X, targets, others(codes))
        again, gradient_again = large_margin(A, csr_array(X), targets, others(codes))
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-10)

    def test_single_precision(self, shape):
        X, codes, targets, rng = problem()
        A = rng.normal(size=shape) / 2
        value, gradient = large_margin(A, X, targets, others(codes))
        again, gradient_again = large_margin(
            A.astype(np.float32), X.astype(np.float32), targets, others(codes)
        )
        assert again == pytest.approx(value, rel=1e-5)
        assert gradient_again.dtype == np.float64
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-5 * np.abs(gradient).max())

    def test_many_blocks_and_threads(self, shape, monkeypatch):
        X, codes, targets, rng = problem()
        A = rng.normal(size=shape) / 2
        value, gradient = large_margin(A, X, targets, others(codes))
        monkeypatch.setattr(lmnn, "PAIR_ENTRIES", 30)
        monkeypatch.setattr(_threads, "FEW_ENTRIES", 0)
        monkeypatch.setattr(_threads, "n_threads", lambda: 3)
        again, gradient_again = large_margin(A, X, targets, others(codes))
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-10)

    def test_moved_rotated_and_permuted(self, shape):
        X, codes, targets, rng = problem()
        A = rng.normal(size=shape) / 2
        value, gradient = large_margin(A, X, targets, others(codes))
        Q = np.linalg.qr(rng.normal(size=(P, P)))[0]
        assert large_margin(A, X + 100.0, targets, others(codes))[0] == pytest.approx(
            value, rel=1e-9
        )
        assert large_margin(A @ Q.T, X @ Q.T, targets, others(codes))[0] == pytest.approx(
            value, rel=1e-10
        )
        order = rng.permutation(N)
        permuted = np.argsort(order)[targets[order]]
        again, gradient_again = large_margin(A, X[order], permuted, others(codes[order]))
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-10)


class TestLimits:
    def test_the_first_sum_alone_is_a_trace(self):
        """mu = 0: tr(A S A') with the scatter S of the directed graph of targets."""
        X, codes, targets, rng = problem()
        A = rng.normal(size=(3, P))
        ones = np.ones(targets.size)
        W = csr_array((ones, targets.ravel(), np.arange(0, targets.size + 1, K)), shape=(N, N))
        S = scatter(X, laplacian(csr_array(W + W.T)))
        value, gradient = large_margin(A, X, targets, others(codes), mu=0.0)
        assert value == pytest.approx(np.trace(A @ S @ A.T), rel=1e-12)
        np.testing.assert_allclose(gradient, 2 * A @ S, atol=1e-10)

    def test_the_map_0_violates_every_triple_by_the_margin(self):
        X, codes, targets, _ = problem()
        n_triples = sum(np.sum(targets[i] != i) * np.sum(codes != codes[i]) for i in range(N))
        value, gradient = large_margin(np.zeros((2, P)), X, targets, others(codes))
        assert value == 0.5 * n_triples
        np.testing.assert_array_equal(gradient, 0.0)

    def test_is_convex_in_the_metric(self):
        X, codes, targets, rng = problem()
        for _ in range(10):
            A, B = rng.normal(size=(2, P, P)) * rng.choice([0.1, 0.3, 1.0], (2, 1, 1))
            between = np.linalg.cholesky((A.T @ A + B.T @ B) / 2).T
            a, b, c = (large_margin(M, X, targets, others(codes))[0] for M in (A, B, between))
            assert c <= (a + b) / 2 * (1 + 1e-12)

    def test_equal_rows(self):
        X, codes, _, _ = problem()
        X[1::2] = X[::2]
        targets = target_neighbors(X, codes, K)
        value, gradient = large_margin(np.eye(P), X, targets, others(codes))
        assert value == pytest.approx(by_loops(np.eye(P), X, codes, targets), rel=1e-12)
        assert np.isfinite(gradient).all()

    def test_none_listed(self):
        X, _, targets, _ = problem()
        value, _ = large_margin(np.eye(P), X, targets, csr_array((N, N), dtype=bool))
        assert value == pytest.approx(by_loops(np.eye(P), X, np.zeros(N), targets), rel=1e-12)


def sets(listed):
    return [
        set(listed.indices[start:stop])
        for start, stop in zip(listed.indptr[:-1], listed.indptr[1:], strict=True)
    ]


CODES = {
    "few": np.random.default_rng(1).integers(0, 3, 60),
    "many": np.random.default_rng(1).integers(0, 25, 60),
    "one of one": np.array([0] + [1] * 59),
}


@pytest.mark.parametrize("codes", CODES.values(), ids=CODES.keys())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestTheSearch:
    @staticmethod
    def rows(dtype):
        Z = np.random.default_rng(0).normal(size=(60, 4)).astype(dtype)
        return Z, cdist(Z.astype(float), Z.astype(float), "sqeuclidean")

    @pytest.mark.parametrize("height", [1, 256])
    def test_finds_all_within_the_distance(self, codes, dtype, height, monkeypatch):
        monkeypatch.setattr(stochastic, "TILE_ROWS", height)
        monkeypatch.setattr(_threads, "FEW_ENTRIES", 0)
        monkeypatch.setattr(_threads, "n_threads", lambda: 2)
        Z, d = self.rows(dtype)
        radii = np.random.default_rng(2).uniform(-1, 8, 60).astype(dtype)
        found = sets(impostors_within(Z, codes, radii, 60))
        for i in range(60):
            assert found[i] == set(np.flatnonzero((codes != codes[i]) & (d[i] <= radii[i])))

    def test_of_too_many_takes_the_nearest(self, codes, dtype):
        Z, d = self.rows(dtype)
        for i, found in enumerate(sets(impostors_within(Z, codes, np.full(60, 6.0, dtype), 3))):
            within = np.flatnonzero((codes != codes[i]) & (d[i] <= 6.0))
            assert found == set(within[np.argsort(d[i, within])][:3])

    def test_of_a_negative_distance_takes_none(self, codes, dtype):
        Z, _ = self.rows(dtype)
        assert impostors_within(Z, codes, np.full(60, -np.inf, dtype), 60).nnz == 0

    def test_the_order_of_the_rows_does_not_matter(self, codes, dtype):
        Z, _ = self.rows(dtype)
        radii, order = np.linspace(0, 5, 60).astype(dtype), np.random.default_rng(3).permutation(60)
        plain = impostors_within(Z, codes, radii, 7)
        other = impostors_within(Z[order], codes[order], radii[order], 7)
        np.testing.assert_array_equal(other.toarray(), plain.toarray()[np.ix_(order, order)])


def test_memory_is_that_of_tiles_and_lists():
    """2,000 rows: all distances would be 32 MB, a difference of rows for every triple gigabytes."""
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(2000, 10)), rng.integers(0, 3, 2000)
    targets = target_neighbors(X, codes, K)
    tracemalloc.start()
    listed = impostors_within(X, codes, np.full(2000, 9.0), 50)
    large_margin(np.eye(10), X, targets, listed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert listed.nnz > 20 * 2000
    assert peak < 25e6


def comparisons_by_loops(A, X, quadruplets, weights, mu=0.5):
    """The sums, comparison by comparison; a pair that is to be near counts with the mean weight."""
    d = squares(A, X)
    hinges, of_pairs = 0.0, {}
    for (a, b, c, e), w in zip(quadruplets.tolist(), weights, strict=True):
        hinges += w * max(0.0, 1 + d[a, b] - d[c, e])
        of_pair = of_pairs.setdefault(frozenset((a, b)), {})
        far = frozenset((c, e))
        of_pair[far] = of_pair.get(far, 0.0) + w
    attraction = sum(
        np.mean(list(of_pair.values())) * d[tuple(near)] for near, of_pair in of_pairs.items()
    )
    return (1 - mu) * attraction + mu * hinges


def given_comparisons(seed=0, n=80):
    """Quadruplets with weights: some of them twice, some with the rows of a pair swapped."""
    rng = np.random.default_rng(seed)
    quadruplets = rng.integers(0, N, (n, 4))
    quadruplets[10:30, :2] = quadruplets[:20, :2]
    quadruplets[5:10] = quadruplets[:5]
    quadruplets[40:45] = quadruplets[:5, [1, 0, 3, 2]]
    quadruplets = quadruplets[
        (quadruplets[:, 0] != quadruplets[:, 1]) & (quadruplets[:, 2] != quadruplets[:, 3])
    ]
    return quadruplets, rng.uniform(0.2, 3.0, len(quadruplets))


@every_map
class TestComparisons:
    @pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
    def test_value_and_gradient(self, shape, mu):
        X, _, _, rng = problem()
        A, (quadruplets, weights) = 0.5 * rng.normal(size=shape), given_comparisons()
        value, gradient = comparison_margin(A, X, Comparisons.of(quadruplets, weights), mu)
        assert value == pytest.approx(comparisons_by_loops(A, X, quadruplets, weights, mu))
        numeric = finite_differences(
            lambda A: comparisons_by_loops(A, X, quadruplets, weights, mu), A
        )
        np.testing.assert_allclose(gradient, numeric, atol=1e-6 * np.abs(gradient).max())

    @pytest.mark.parametrize("mu", [0.0, 0.5])
    def test_of_all_targets_and_other_classes_are_the_loss_of_labels(self, shape, mu):
        """But for pairs that are targets of each other, which labels draw near twice."""
        X, codes, targets, rng = problem()
        A = 0.5 * rng.normal(size=shape)
        directed = np.array([(i, j) for i in range(N) for j in targets[i] if j != i])
        triples = np.array(
            [(i, j, i, m) for i, j in directed for m in np.flatnonzero(codes != codes[i])]
        )
        listed = {(a, b) for a, b in directed.tolist()}
        mutual = np.array([(a, b) for a, b in listed if a < b and (b, a) in listed])
        comparisons = Comparisons.of(triples, np.ones(len(triples)))
        value, _ = comparison_margin(A, X, comparisons, mu)
        twice = (1 - mu) * pair_squares(X @ A.T, mutual).sum()
        of_labels, _ = large_margin(A, X, targets, others(codes), mu)
        assert 0 < len(mutual) < len(directed)
        assert value == pytest.approx(of_labels - twice, rel=1e-12)

    def test_sparse_rows_single_precision_and_blocks(self, shape, monkeypatch):
        X, _, _, rng = problem()
        A, comparisons = rng.normal(size=shape) / 2, Comparisons.of(*given_comparisons())
        value, gradient = comparison_margin(A, X, comparisons)
        monkeypatch.setattr(lmnn, "PAIR_ENTRIES", 30)
        monkeypatch.setattr(_threads, "FEW_ENTRIES", 0)
        monkeypatch.setattr(_threads, "n_threads", lambda: 3)
        single = comparison_margin(A.astype(np.float32), X.astype(np.float32), comparisons)
        for (again, slope), tol in [
            (comparison_margin(A, X, comparisons), 1e-12),
            (comparison_margin(A, csr_array(X), comparisons), 1e-12),
            (single, 1e-5),
        ]:
            assert again == pytest.approx(value, rel=tol)
            assert slope.dtype == np.float64
            np.testing.assert_allclose(slope, gradient, atol=tol * np.abs(gradient).max())

    def test_is_convex_in_the_metric(self, shape):
        X, _, _, rng = problem()
        comparisons = Comparisons.of(*given_comparisons())
        for _ in range(10):
            A, B = rng.normal(size=(2, *shape)) * rng.choice([0.1, 0.3, 1.0], (2, 1, 1))
            between = np.vstack([A, B]) / 2**0.5  # whose metric is the mean of theirs
            a, b, c = (comparison_margin(M, X, comparisons)[0] for M in (A, B, between))
            assert c <= (a + b) / 2 * (1 + 1e-12)


class TestPairsOfComparisons:
    def test_are_distinct(self):
        quadruplets = np.array([[3, 1, 1, 2], [1, 3, 0, 3], [2, 1, 3, 1], [1, 3, 2, 1]])
        found = Comparisons.of(quadruplets, np.array([1.0, 2.0, 3.0, 4.0]))
        assert found.pairs.tolist() == [[0, 3], [1, 2], [1, 3]]
        assert list(zip(found.near, found.far, found.weights, strict=True)) == [
            (1, 2, 3.0),
            (2, 0, 2.0),
            (2, 1, 5.0),
        ]
        np.testing.assert_array_equal(found.attraction, [0.0, 3.0, 3.5])

    def test_squares_of_dense_and_sparse_rows(self):
        X, _, _, rng = problem()
        pairs = rng.integers(0, N, (50, 2))
        expected = squares(np.eye(P), X)[tuple(pairs.T)]
        for rows in (X, csr_array(X)):
            np.testing.assert_allclose(pair_squares(rows, pairs), expected)


def test_memory_of_comparisons_is_that_of_rows_pairs_and_blocks():
    """40,000 pairs of 2,000 rows: all their differences would be 13 MB, n x n numbers 32 MB."""
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = np.random.default_rng(0)
    X, quadruplets = rng.normal(size=(2000, 40)), rng.integers(0, 2000, (20_000, 4))
    quadruplets = quadruplets[quadruplets[:, 0] != quadruplets[:, 1]]
    comparisons = Comparisons.of(quadruplets, np.ones(len(quadruplets)))
    tracemalloc.start()
    comparison_margin(np.eye(40), X, comparisons)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 13e6
