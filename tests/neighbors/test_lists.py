import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from nearkin import DNE
from nearkin.neighbors import closest_pairs, nearest, nearest_other_class, nearest_same_class


def brute_force(X, allowed, k):
    """Return lists of (neighbours, distances), by the definition."""
    D = np.linalg.norm(X[:, None] - X, axis=2)
    lists = []
    for i in range(len(X)):
        candidates = np.flatnonzero(allowed[i] & (np.arange(len(X)) != i))
        order = candidates[np.argsort(D[i, candidates], kind="stable")][: k[i]]
        lists.append((order, D[i, order]))
    return lists


def assert_lists(G, lists, **tolerance):
    for i, (neighbours, distances) in enumerate(lists):
        row = slice(G.indptr[i], G.indptr[i + 1])
        np.testing.assert_array_equal(G.indices[row], neighbours)
        np.testing.assert_allclose(G.data[row], distances, **tolerance)


SEARCHES = {
    "all": (lambda X, y, k: nearest(X, k), lambda y: np.ones((len(y), len(y)), bool)),
    "same": (nearest_same_class, lambda y: y[:, None] == y),
    "other": (nearest_other_class, lambda y: y[:, None] != y),
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("k", [1, 4, 1000, "per row"])
def test_definition(search, container, k):
    rng = np.random.default_rng(0)
    # classes of very different sizes: searched by complement, by filter, and one that stands alone
    y = np.repeat(["a", "b", "c", "d", "e"], [75, 66, 9, 3, 1])[rng.permutation(154)]
    X = rng.normal(size=(154, 3))
    k = rng.integers(0, 9, size=154) if k == "per row" else k
    run, allowed = SEARCHES[search]
    lists = brute_force(X, allowed(y), np.broadcast_to(k, 154))
    assert_lists(run(container(X), y, k), lists, atol=1e-7)


@pytest.mark.parametrize("search", SEARCHES)
def test_float32_is_kept(search):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    G = SEARCHES[search][0](X, np.arange(30) % 3, 2)
    assert G.data.dtype == np.float32
    assert G.indices.dtype == np.int32


@pytest.mark.parametrize("search", SEARCHES)
def test_no_row_is_its_own_neighbour_even_among_duplicates(search):
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 30, axis=0)
    y = np.arange(120) % 2
    G = SEARCHES[search][0](X, y, 5)
    rows = np.repeat(np.arange(120), np.diff(G.indptr))
    assert (np.diff(G.indptr) == 5).all()
    assert (rows != G.indices).all()
    assert all(len(set(chunk)) == 5 for chunk in G.indices.reshape(-1, 5))
    np.testing.assert_allclose(G.data, 0, atol=1e-7)


def test_same_input_same_output():
    X = np.random.default_rng(0).integers(0, 3, size=(300, 4)).astype(float)  # ties everywhere
    y = np.arange(300) % 3
    for run, _ in SEARCHES.values():
        first, second = run(X, y, 4), run(X, y, 4)
        np.testing.assert_array_equal(first.indices, second.indices)
        np.testing.assert_array_equal(first.data, second.data)


def test_far_from_the_origin():
    X = np.random.default_rng(0).normal(size=(50, 3))
    near, far = nearest(X, 3), nearest(X + 1e7, 3)
    np.testing.assert_array_equal(near.indices, far.indices)
    np.testing.assert_allclose(near.data, far.data, atol=1e-6)


def test_sparse_far_from_the_origin_and_stored_twice():
    X = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_array_equal(
        nearest(csr_array(X + 1e8), 2).indices, nearest(X + 1e8, 2).indices
    )
    twice = csr_array(
        (np.repeat(X.ravel(), 2) / 2, np.tile([0, 0, 1, 1, 2, 2], 50), np.arange(51) * 6),
        shape=X.shape,
    )
    np.testing.assert_allclose(nearest(twice, 2).data, nearest(X, 2).data)


def test_many_small_classes_share_one_search(monkeypatch):
    """10,000 classes must not cost 10,000 copies of X: all small classes are searched in one index."""
    fitted = []
    original = NearestNeighbors.fit
    monkeypatch.setattr(
        NearestNeighbors, "fit", lambda self, X, y=None: fitted.append(len(X)) or original(self, X)
    )
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = np.arange(2000) // 10
    G = nearest_other_class(X, y, 2)
    assert fitted == [2000]
    D = euclidean_distances(X)
    D[y[:, None] == y] = np.inf
    np.testing.assert_allclose(G.data.reshape(-1, 2), np.sort(D, axis=1)[:, :2], atol=1e-7)


def test_pairs_compared_stay_within_two_n_squared(monkeypatch):
    pairs = []
    original = NearestNeighbors.kneighbors

    def counting(self, X=None, n_neighbors=None, return_distance=True):
        pairs.append(X.shape[0] * self.n_samples_fit_)
        return original(self, X, n_neighbors)

    monkeypatch.setattr(NearestNeighbors, "kneighbors", counting)
    y = np.repeat(np.arange(40), np.arange(1, 41) * 4)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    nearest_same_class(X, y, 3)
    nearest_other_class(X, y, 3)
    assert sum(pairs) <= 2 * len(y) ** 2


@pytest.mark.parametrize(
    ("k", "message"),
    [(-1, "at least 0, got -1"), (1.5, "got 1.5"), (np.array([1, 2, -3]), "at least 0")],
)
def test_bad_k(k, message):
    with pytest.raises(ValueError, match=message):
        nearest(np.eye(3), k)


def test_labels_of_a_wrong_length():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        nearest_same_class(np.eye(3), [0, 1], 1)


def test_foreign_arrays():
    foreign = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(TypeError, match="torch Tensor"):
        nearest(foreign, 1)


class TestClosestPairs:
    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    @pytest.mark.parametrize("k", [1, 7, 40, 10**6])
    def test_definition(self, container, k):
        rng = np.random.default_rng(0)
        y = np.repeat(["a", "b", "c", "d"], [80, 40, 9, 1])[rng.permutation(130)]
        X = rng.normal(size=(130, 3))
        D = np.linalg.norm(X[:, None] - X, axis=2)
        expected = np.zeros((130, 130))
        for c in np.unique(y):
            pairs = [
                (D[i, j], i, j) for i in np.flatnonzero(y == c) for j in np.flatnonzero(y != c)
            ]
            for d, i, j in sorted(pairs)[:k]:
                expected[i, j] = d
        G = closest_pairs(container(X), y, k)
        np.testing.assert_allclose(G.toarray(), expected, atol=1e-7)
        assert G.nnz == np.count_nonzero(expected)
        assert all((np.diff(G.data[G.indptr[i] : G.indptr[i + 1]]) >= 0).all() for i in range(130))

    def test_of_tied_pairs_any_are_taken_but_as_many_and_as_close(self):
        X = np.random.default_rng(0).integers(0, 4, size=(90, 2)).astype(float)
        y = np.arange(90) % 3
        G = closest_pairs(X, y, 50)
        D = np.linalg.norm(X[:, None] - X, axis=2)
        for c in range(3):
            found = np.sort(G[np.flatnonzero(y == c)].data)
            np.testing.assert_allclose(
                found, np.sort(D[y == c][:, y != c], axis=None)[:50], atol=1e-7
            )
        np.testing.assert_array_equal(closest_pairs(X, y, 50).indices, G.indices)

    def test_what_would_not_fit_is_refused(self, monkeypatch):
        monkeypatch.setattr("nearkin._memory.available_memory", lambda: 10**4)
        X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
        with pytest.raises(
            MemoryError,
            match=r"up to 30 neighbours \(other classes\) of 60 rows.*10 kB are free",
        ):
            closest_pairs(X, y, 30)
        closest_pairs(X, y, 2)


@pytest.mark.parametrize(
    ("distances", "message"),
    [(np.eye(3), r"of shape \(4, 4\)"), (-np.eye(4), "not be negative")],
)
def test_what_are_no_distances(distances, message):
    with pytest.raises(ValueError, match=message):
        DNE().fit(np.eye(4), [0, 0, 1, 1], distances=distances)
