import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from nearkin.neighbors.twins import (
    _expected_nearer,
    chained_rows,
    identical_rows,
    n_with_twin,
    twin_groups,
)


def same_partition(a, b):
    return len(np.unique(a)) == len(np.unique(b)) == len(np.unique(np.column_stack([a, b]), axis=0))


def normal(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def jittered(m, p, copies, jitter):
    """Return m rows, each so many times, and the row each is a copy of."""
    original = np.repeat(np.arange(m), copies)
    return normal(m, p)[original] + jitter * normal(m * copies, p, seed=1), original


@pytest.mark.parametrize("p", [2, 5, 20, 100])
@pytest.mark.parametrize("copies", [2, 3, 8])
def test_all_jittered_copies_are_found(p, copies):
    X, original = jittered(75, p, copies, jitter=1e-3)
    assert same_partition(twin_groups(X), original)
    assert len(np.unique(identical_rows(X))) == len(X)


@pytest.mark.parametrize("p", [2, 5, 20])
def test_a_few_jittered_copies_among_many_rows_are_found(p):
    X = normal(1000, p)
    X[-5:] = X[:5] + 1e-6 * normal(5, p, seed=1)
    groups = twin_groups(X)
    np.testing.assert_array_equal(groups[-5:], groups[:5])
    assert n_with_twin(groups) <= 12  # a tenth may be chance


def test_identical_and_jittered_copies_hang_together():
    X, original = jittered(50, 5, 2, jitter=1e-3)
    assert same_partition(twin_groups(np.vstack([X, X[::2]])), np.r_[original, original[::2]])


def test_one_dimension_has_neighbours_by_chance():
    X, original = jittered(75, 1, 2, jitter=1e-7)
    assert same_partition(twin_groups(X), original)


@pytest.mark.parametrize("D", [1, 3, 30])
@pytest.mark.parametrize("expected", [0.01, 0.1, 0.5])
def test_rows_scattered_at_random_are_as_near_as_expected(D, expected):
    volumes = np.cumsum(np.random.default_rng(0).exponential(size=(20_000, 30)), axis=1)
    nearer = (_expected_nearer(volumes ** (1 / D), 10) <= expected).sum(axis=1)
    assert nearer.mean() == pytest.approx(expected, abs=5 * nearer.std() / np.sqrt(20_000))


ORDINARY = {
    **{f"normal {p}": lambda rng, p=p: rng.normal(size=(1000, p)) for p in (1, 2, 5, 20)},
    **{f"uniform {p}": lambda rng, p=p: rng.uniform(size=(1000, p)) for p in (1, 2, 5, 20)},
    "heavy tails": lambda rng: rng.standard_t(1.5, size=(1000, 3)),
    "p > n": lambda rng: rng.normal(size=(60, 300)),
    "grid": lambda rng: rng.integers(0, 5, size=(1000, 4)).astype(float),
    "fine grid": lambda rng: rng.integers(0, 100, size=(1000, 2)).astype(float),
    "one-hot": lambda rng: np.hstack([np.eye(5)[rng.integers(0, 5, 1000)] for _ in range(6)]),
    "rare categories": lambda rng: np.hstack(
        [np.eye(30)[rng.geometric(0.3, 1000) % 30] for _ in range(4)]
    ),
    "one row a category": lambda rng: np.eye(60),
    "clusters": lambda rng: np.vstack(
        [10.0**k * (30 + rng.normal(size=(200, 3))) for k in range(-3, 3)]
    ),
    "clusters of 25": lambda rng: (
        np.repeat(rng.normal(size=(40, 3)), 25, axis=0) + 0.01 * rng.normal(size=(1000, 3))
    ),
    **{
        load.__name__: lambda rng, load=load: load().data
        for load in (load_iris, load_wine, load_breast_cancer)
    },
    "load_digits": lambda rng: load_digits().data,
}


@pytest.mark.parametrize("table", ORDINARY)
def test_ordinary_rows_are_no_twins(table):
    X = ORDINARY[table](np.random.default_rng(0))
    groups = twin_groups(X)
    assert n_with_twin(groups) - n_with_twin(identical_rows(X)) <= 0.01 * len(X)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("n", [10, 20, 50])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_small_ordinary_tables_have_hardly_a_twin(n, p):
    found = [n_with_twin(twin_groups(normal(n, p, seed))) for seed in range(30)]
    assert sum(found) <= 0.03 * 30 * n


def test_near_twins_do_not_chain():
    X = np.cumsum(np.random.default_rng(0).exponential(size=(300, 1)) ** 4, axis=0)
    X = np.vstack([X, X + 1e-9])
    assert 2 <= np.bincount(twin_groups(X)).max() <= 10


def test_neither_order_nor_units_matter():
    rng = np.random.default_rng(0)
    X, _ = jittered(60, 5, 2, jitter=3e-2)
    X = np.vstack([X, normal(200, 5, seed=2)])
    groups, order = twin_groups(X), rng.permutation(len(X))
    assert 10 < n_with_twin(groups) < 200
    assert same_partition(twin_groups(X[order]), groups[order])
    assert same_partition(twin_groups(1000 + X * 10.0 ** rng.integers(-3, 4, 5)), groups)
    assert same_partition(twin_groups(np.column_stack([X, np.full(len(X), 0.1)])), groups)
    assert same_partition(twin_groups(7.0 * X, scale=False), twin_groups(X, scale=False))


def test_without_scale_the_units_matter():
    X = normal(100, 2) * [1.0, 1e-6]
    X[1::2, 0] = X[::2, 0]
    assert n_with_twin(twin_groups(X, scale=False)) == 100
    assert n_with_twin(twin_groups(X)) < 10


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_few_rows(n):
    X = normal(n, 3)
    np.testing.assert_array_equal(twin_groups(X), np.arange(n))
    X[-1] = X[0]
    np.testing.assert_array_equal(twin_groups(X)[[0, -1]], [0, 0])
    np.testing.assert_array_equal(twin_groups(np.ones((n, 3))), np.zeros(n))


def test_queries_look_among_all_rows():
    X, original = jittered(150, 5, 2, jitter=1e-3)
    X, original = np.vstack([X, X[-1:]]), np.r_[original, original[-1]]
    groups = twin_groups(X, queries=np.arange(0, 100, 2))
    np.testing.assert_array_equal(np.bincount(groups)[groups[:100]], np.full(100, 2))
    np.testing.assert_array_equal(groups[:100:2], groups[1:100:2])
    assert n_with_twin(groups) == 102  # and the last row, which is there twice
    assert same_partition(twin_groups(X, queries=np.arange(0)), identical_rows(X))
    assert same_partition(twin_groups(X, queries=np.arange(len(X))), twin_groups(X))


def test_sparse_rows_have_the_groups_of_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(200, 100)) * (rng.uniform(size=(200, 100)) < 0.05)
    X = np.vstack([X, X[:50] * (1 + 1e-4 * rng.normal(size=(50, 100)))])
    groups = twin_groups(csr_array(X))
    assert same_partition(groups, twin_groups(X))
    assert n_with_twin(groups) == 100


# Groups of more than ten


def random_labels(original, n_classes=2, seed=2):
    """Return labels that all copies of a row share, and that mean nothing else."""
    return np.random.default_rng(seed).integers(0, n_classes, original.max() + 1)[original]


@pytest.mark.parametrize("p", [2, 5, 20, 100])
@pytest.mark.parametrize("copies", [11, 12, 60])
def test_more_than_ten_copies_are_reported_where_they_share_labels(p, copies):
    X, original = jittered(25, p, copies, jitter=1e-3)
    y = random_labels(original)
    assert n_with_twin(twin_groups(X)) < 0.1 * len(X)  # they are not grouped
    assert chained_rows(X, y) > 0.9 * len(X)
    assert chained_rows(X, y.astype(float)) > 0.9 * len(X)  # numbers


@pytest.mark.parametrize("copies", [2, 5, 9, 10])
def test_up_to_ten_copies_are_grouped_and_not_reported(copies):
    X, original = jittered(75, 5, copies, jitter=1e-3)
    assert same_partition(twin_groups(X), original)
    assert chained_rows(X, random_labels(original)) == 0


@pytest.mark.parametrize("p", [2, 5, 20])
def test_clean_clusters_are_neither_joined_nor_reported(p):
    X, original = jittered(60, p, 15, jitter=1e-2)
    centre = normal(60, p)[original]
    rng = np.random.default_rng(3)
    assert n_with_twin(twin_groups(X)) <= 0.01 * len(X)
    assert chained_rows(X, original) == 0  # every cluster is a class
    wrong = rng.random(len(X)) < 0.02
    assert chained_rows(X, np.where(wrong, rng.integers(0, 60, len(X)), original)) == 0
    assert chained_rows(X, rng.integers(0, 2, len(X))) == 0  # labels differ within a cluster
    assert chained_rows(X, rng.normal(size=len(X))) == 0
    assert chained_rows(X, (centre[:, 0] > 0).astype(int)) == 0  # labels follow the features
    assert chained_rows(X, centre[:, 0]) == 0
    assert chained_rows(X, np.zeros(len(X), dtype=int)) == 0


@pytest.mark.parametrize("jitter", [1e-3, 4e-3, 1e-2])
def test_copies_are_reported_where_their_labels_mean_nothing_else(jitter):
    X, original = jittered(60, 8, 15, jitter=jitter)
    assert chained_rows(X, random_labels(original)) > 0.9 * len(X)


def test_narrow_copies_are_reported_where_labels_follow_the_features_too():
    """They promise more than the features hold."""
    X, original = jittered(60, 8, 15, jitter=1e-3)
    assert chained_rows(X, (normal(60, 8)[original, 0] > 0).astype(int)) == len(X)


def test_groups_of_a_part_of_the_rows_count_by_their_share():
    X, original = jittered(20, 5, 12, jitter=1e-3)
    others = normal(960, 5, seed=5)
    y = np.append(random_labels(original), np.random.default_rng(4).integers(0, 2, 960))
    # of a sample of 300
    assert chained_rows(np.vstack([X, others]), y) == pytest.approx(240, abs=120)


def test_rows_without_a_label_and_identical_rows_do_not_count():
    X, original = jittered(24, 5, 12, jitter=1e-3)
    y = random_labels(original)
    n = chained_rows(X, y)
    assert n == len(X)
    assert chained_rows(np.vstack([X, normal(100, 5, seed=5)]), np.append(y, np.full(100, -1))) == n
    assert chained_rows(np.repeat(normal(24, 5), 12, axis=0), y) == 0  # these are grouped
    assert chained_rows(X[::2], y[::2]) == 0  # six copies are


def test_neither_order_nor_units_nor_the_container_matter_to_groups():
    X, original = jittered(24, 5, 12, jitter=1e-3)
    y = random_labels(original)
    order = np.random.default_rng(0).permutation(len(X))
    n = chained_rows(X, y)
    assert chained_rows(X[order], y[order]) == n
    assert chained_rows(1000 + X * [1e-3, 1e3, 1.0, 10.0, 2.0], y) == n
    assert chained_rows(csr_array(X), y) == n
    assert chained_rows(X.astype(np.float32), y) == n


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("table", ORDINARY)
def test_ordinary_rows_form_no_groups_whatever_their_labels(table):
    X = ORDINARY[table](np.random.default_rng(0))
    rng = np.random.default_rng(1)
    assert chained_rows(X, rng.integers(0, 3, len(X))) == 0
    assert chained_rows(X, rng.normal(size=len(X))) == 0
    assert chained_rows(X, (X[:, 0] > np.median(X[:, 0])).astype(int)) == 0


@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("ratio", [0.5, 0.8])
def test_gaps_of_rows_scattered_at_random_are_as_rare_as_derived(D, ratio):
    """P(d_k <= ratio d_{k+1}) = ratio^(k D), here for k = 3."""
    d = np.cumsum(np.random.default_rng(0).exponential(size=(40_000, 4)), axis=1) ** (1 / D)
    found = np.mean(d[:, 2] <= ratio * d[:, 3])
    assert found == pytest.approx(ratio ** (3 * D), abs=0.01)


@pytest.mark.parametrize("n", [1, 5, 30, 60])
def test_few_rows_form_no_groups(n):
    assert chained_rows(normal(n, 3), np.arange(n) % 2) == 0
    assert chained_rows(np.ones((n, 3)), np.arange(n) % 2) == 0
