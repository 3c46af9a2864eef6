"""A row of weight 2 counts as two equal rows that are no neighbours of each other.

The oracle takes that literally: a graph of the distinct rows by its definition, then every row
repeated, with all copies of adjacent rows adjacent and no two copies of a row.
"""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from nearkin import DMLMJ, DNE, GMML, LDE, LFDA, LMNN, LPP, MFA, NMMP, RCA, SDA
from nearkin.estimators import Rows, base
from nearkin.folds import inner_folds
from nearkin.neighbors import EXACT

K = 3
rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], [12, 9, 7])
X = rng.normal(size=(28, 4)) + y[:, None]
s = rng.integers(1, 5, 28)
copies = np.repeat(np.arange(28), s)
PARTLY = np.where(np.arange(28) % 3, y, -1)
differences = X[:, None] - X
d = np.linalg.norm(differences, axis=2)
SAME = (y[:, None] == y) & ~np.eye(28, dtype=bool)
RELATED = {"all": ~np.eye(28, dtype=bool), "same": SAME, "other": y[:, None] != y}


def repeated(W):
    return W[np.ix_(copies, copies)]


def lists(relation):
    """Say for all i and j whether j is among the k nearest of i."""
    D = np.where(RELATED[relation], d, np.inf)
    farthest = np.sort(D, axis=1)[:, [K - 1]]
    return farthest >= D


def scatter_of_copies(W):
    """Return 1/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)' over all copies."""
    D = differences[np.ix_(copies, copies)]
    return 0.5 * np.einsum("ij,ijk,ijl->kl", W, D, D)


@pytest.fixture(params=[np.asarray, csr_array], ids=["dense", "sparse"])
def rows(request):
    return Rows(request.param(X), y, EXACT, weights=s.astype(float))


@pytest.mark.parametrize("relation", ["all", "same", "other"])
class TestKNN:
    def test_union(self, rows, relation):
        L = repeated(lists(relation))
        found = s.mean() ** 2 * rows.scatter(rows.union_knn(relation, K))
        np.testing.assert_allclose(found, scatter_of_copies(L | L.T), rtol=1e-10, atol=1e-10)

    def test_heat_kernel_of_the_mean_over_all_copies(self, rows, relation):
        L, D = repeated(lists(relation)), repeated(d)
        W = np.where(L | L.T, np.exp(-(D**2) / np.mean(D[L] ** 2)), 0.0)
        graph = rows.union_knn(relation, K, weights="heat")
        found = s.mean() ** 2 * rows.scatter(graph)
        np.testing.assert_allclose(found, scatter_of_copies(W), rtol=1e-10, atol=1e-10)
        degrees = s.mean() ** 2 * rows.degrees(graph)
        np.testing.assert_allclose(degrees, np.bincount(copies, W.sum(axis=1)), rtol=1e-10)

    def test_mutual(self, rows, relation):
        L = repeated(lists(relation))
        found = s.mean() ** 2 * rows.scatter(rows.mutual_knn(relation, K))
        np.testing.assert_allclose(found, scatter_of_copies(L & L.T), rtol=1e-10, atol=1e-10)

    def test_mean_over_all_copies_and_the_neighbours_they_list(self, rows, relation):
        L = repeated(lists(relation)).astype(float)
        found = rows.scatter(rows.mean_knn(relation, K))
        np.testing.assert_allclose(found, scatter_of_copies(L + L.T) / L.sum(), rtol=1e-10)


def test_closest_pairs_are_pairs_of_distinct_rows(rows):
    W = np.zeros((28, 28))
    for c in range(3):
        D = np.where((y == c)[:, None] & (y != c), d, np.inf)
        W[np.sort(D, axis=None)[7] >= D] = 1
    found = s.mean() ** 2 * rows.scatter(rows.closest_pairs(8))
    expected = scatter_of_copies(repeated(np.maximum(W, W.T)))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_local_fisher_scatters(rows):
    scale = np.sort(np.where(SAME, d, np.inf), axis=1)[:, K - 1]
    same = repeated(y[:, None] == y)
    a = same * repeated(np.exp(-(d**2) / np.outer(scale, scale)))
    n_c = np.bincount(y[copies])[y[copies]][:, None]
    S_w, S_b = rows.local_fisher_scatters(K)
    between = np.where(same, a * (1 / len(copies) - 1 / n_c), 1 / len(copies))
    np.testing.assert_allclose(s.mean() * S_w, scatter_of_copies(a / n_c), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(s.mean() * S_b, scatter_of_copies(between), rtol=1e-10, atol=1e-10)


def test_means_over_pairs_of_which_copies_are_none(rows):
    pairs = [(i, j) for i, j in combinations(copies, 2) if i != j]
    for found, kind in zip(rows.pair_covariances(), (SAME, RELATED["other"]), strict=True):
        D = np.array([X[i] - X[j] for i, j in pairs if kind[i, j]])
        np.testing.assert_allclose(found, D.T @ D / len(D), rtol=1e-10)


@pytest.mark.parametrize("codes", [y, PARTLY], ids=["all", "some"])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_total_within_and_between_scatter_are_those_of_repeated_rows(codes, container):
    weighted = Rows(container(X), codes, EXACT, weights=s.astype(float))
    all_copies = Rows(container(X[copies]), codes[copies], EXACT)
    for name in ("total_scatter", "within_scatter", "between_scatter"):
        found, expected = (getattr(some, name)() for some in (weighted, all_copies))
        np.testing.assert_allclose(s.mean() * found, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(s.mean() * weighted.class_weights, all_copies.class_sizes)
    np.testing.assert_array_equal(weighted.class_sizes, np.bincount(codes[codes >= 0]))


ALL = 200
# Where all rows are neighbours, copies may be, too: a pair of them has no length.
OF_ALL_PAIRS = [
    RCA(),
    RCA(2, shrinkage=None),
    RCA(target="chunklets"),
    DNE(2, n_neighbors=ALL),
    MFA(2, n_neighbors=ALL, n_pairs=ALL**2),
    NMMP(2, n_neighbors_within=ALL, n_neighbors_between=ALL),
]


@pytest.mark.parametrize("method", OF_ALL_PAIRS, ids=repr)
def test_maps_of_repeated_rows(method):
    labels = PARTLY if "target" in repr(method) else y
    weighted = clone(method).fit(X, labels, sample_weight=s)
    all_copies = clone(method).fit(X[copies], labels[copies])
    unit = [np.linalg.norm(model.components_) for model in (weighted, all_copies)]
    np.testing.assert_allclose(
        weighted.components_ / unit[0], all_copies.components_ / unit[1], atol=1e-10
    )
    if isinstance(method, RCA):  # which has no graph, whose scale would be another
        np.testing.assert_allclose(unit[0], unit[1])


# Methods by the scatters they take, and one by descent, also for p > n.
METHODS = [
    *(RCA(), RCA(target="chunklets"), GMML(), LPP(2), LFDA(), LDE(), LDE(shrinkage=None)),
    *(MFA(n_pairs=20), DMLMJ(), DNE(n_neighbors=3), NMMP(3), NMMP(3, criterion="ratio_trace")),
    *(NMMP(2, shrinkage=None), SDA(), SDA(beta=0.1), LDE(n_neighbors_within="auto")),
    *(LMNN(tol=1e-3), LMNN(2, tol=1e-3)),
]


@pytest.fixture
def _few_numbers(monkeypatch):
    monkeypatch.setattr(base, "NUMBERS_OF_NEIGHBORS", (1, 5))


def metric(method, X, y, **how):
    return clone(method).fit(X, y, **how).get_mahalanobis_matrix()


def assert_same_metric(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.slow_after(9)
@pytest.mark.parametrize("p", [4, 40])
@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.filterwarnings("ignore:Rows of one label do not vary:UserWarning")
@pytest.mark.usefixtures("_few_numbers")
def test_weights_change_the_map_and_constant_or_zero_ones_do_not(method, p):
    table = np.random.default_rng(1).normal(size=(60, p))
    labels = np.arange(60) % 3
    table[:, :2] += labels[:, None]
    w = np.random.default_rng(2).uniform(0.2, 5.0, 60)
    expected = metric(method, table, labels)
    assert_same_metric(metric(method, table, labels, sample_weight=np.full(60, 0.3)), expected)
    changed = metric(method, table, labels, sample_weight=w)
    assert np.abs(changed - expected).max() > 1e-3 * np.abs(expected).max()
    w[::4] = 0
    there = w > 0
    absent = metric(method, table[there], labels[there], sample_weight=w[there])
    assert_same_metric(metric(method, table, labels, sample_weight=w), absent)
    assert_same_metric(metric(method, table, labels, sample_weight=1e3 * w), absent)


@pytest.mark.parametrize("container", [csr_array, coo_array])
def test_sparse_rows(container):
    w = np.where(np.arange(28) % 4, s, 0)
    expected = metric(LDE(), X, y, sample_weight=w)
    assert_same_metric(metric(LDE(), container(X), y, sample_weight=w), expected)


def test_given_distances_are_those_of_all_rows():
    w, there = np.where(np.arange(28) % 4, s, 0), np.arange(28) % 4 > 0
    expected = metric(DNE(n_neighbors=2), X, y, sample_weight=w)
    D = csr_array(d)
    assert_same_metric(
        metric(DNE(n_neighbors=2), X, y, sample_weight=w.tolist(), distances=D), expected
    )
    assert_same_metric(
        metric(DNE(n_neighbors=2), X[there], y[there], distances=D[there][:, there]),
        metric(DNE(n_neighbors=2), X, y, sample_weight=there, distances=D),
    )
    with pytest.raises(ValueError, match=r"distances must be of shape \(28, 28\)"):
        DNE().fit(X, y, sample_weight=w, distances=D[there][:, there])


@pytest.mark.usefixtures("_few_numbers")
def test_an_automatic_number_of_neighbours_is_that_of_weighted_folds():
    model = DNE(2, n_neighbors="auto").fit(X, y, sample_weight=s)
    for k in (1, 5):
        accuracies = []
        for train, test in inner_folds(X, y):
            fold = DNE(2, n_neighbors=k).fit(X[train], y[train], sample_weight=s[train])
            vote = KNeighborsClassifier(1).fit(fold.transform(X[train]), y[train])
            predicted = vote.predict(fold.transform(X[test]))
            accuracies.append(accuracy_score(y[test], predicted, sample_weight=s[test]))
        np.testing.assert_allclose(model.n_neighbors_scores_[k], accuracies)


def test_weights_that_are_words_are_named():
    with pytest.raises(ValueError, match=r"sample_weight must be numbers, .* \(such as 'a'\)"):
        RCA().fit(X, y, sample_weight=["a"] * 28)
