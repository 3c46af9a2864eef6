"""Searches other than the exact one: approximate, by a transformer, given."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from joblib import cpu_count
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import KNeighborsTransformer

import nearkin
from nearkin import DNE, ApproximateSearch
from nearkin.neighbors import approximate as approximate_module
from nearkin.neighbors import searcher

from .conftest import EXACT, SEARCHES, N, needs_faiss

SPECTRAL = ["DNE", "NMMP", "LPP", "LDE", "MFA", "LFDA"]
PARAMETERS = {"NMMP": {"n_neighbors_within": 5}, "TDL": {"reg": 1.0}}


@pytest.fixture(params=SEARCHES)
def search(request, monkeypatch):
    """Return a search for neighbours in a relation; classes above 50 rows are searched by lists."""
    monkeypatch.setattr(approximate_module, "BRUTE_CLASS", 50)
    return SEARCHES[request.param]


@pytest.fixture
def all_ranked_again(monkeypatch):
    """All rows are ranked by their distances in all features."""
    monkeypatch.setattr(approximate_module, "n_ranked", lambda k: 300 + k)


def assert_same_lists(G, H):
    np.testing.assert_array_equal(G.indptr, H.indptr)
    np.testing.assert_allclose(G.data, H.data, rtol=1e-6)


@needs_faiss
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_lists": 20, "n_probes": 1000},
        {"n_lists": 1},
        {"n_lists": 10**6, "n_probes": 1000},
        {"n_lists": 5, "n_probes": 1000, "n_components": 2},
    ],
    ids=["all lists", "one list", "a list for each row", "fewer dimensions, ranked again"],
)
@pytest.mark.usefixtures("all_ranked_again")
def test_exact_where_all_candidates_are_compared(labelled, search, parameters):
    X, y = labelled
    G = search(X, y, 4, searcher(ApproximateSearch(**parameters), len(X)))
    assert_same_lists(G, search(X, y, 4, EXACT))


@needs_faiss
def test_lists_are_as_long_as_the_exact_ones(labelled, search):
    """Also for a row deep inside a large class, where no list nearby holds rows of other classes."""
    X, y = labelled
    exact = search(X, y, 9, EXACT)
    G, again = (
        search(X, y, 9, searcher(ApproximateSearch(n_lists=30, n_probes=1), len(X)))
        for _ in range(2)
    )
    np.testing.assert_array_equal(G.indices, again.indices)
    np.testing.assert_array_equal(G.indptr, exact.indptr)
    row = np.repeat(np.arange(len(X)), np.diff(G.indptr))
    assert len(set(zip(row, G.indices, strict=True))) == G.nnz
    assert (row != G.indices).all()
    if search is not SEARCHES["all"]:
        assert ((y[row] == y[G.indices]) == (search is SEARCHES["same"])).all()
    np.testing.assert_allclose(G.data, euclidean_distances(X)[row, G.indices], rtol=1e-5)
    assert (np.diff(G.data)[row[1:] == row[:-1]] >= 0).all()


@needs_faiss
@pytest.mark.parametrize(("unit", "offset"), [(1e-25, 0.0), (1e40, 0.0), (1.0, 1e8)])
@pytest.mark.usefixtures("all_ranked_again")
def test_any_unit_and_origin(labelled, search, unit, offset):
    X, y = labelled
    approximate = ApproximateSearch(n_probes=1000, n_components=4)
    G = search(X * unit + offset, y, 4, searcher(approximate, N))
    np.testing.assert_allclose(G.data / unit, search(X, y, 4, EXACT).data, rtol=1e-6)


@needs_faiss
def test_only_some_rows_need_neighbours(labelled, search):
    """Their lists are those of a search for all rows; the lists of the others are empty."""
    X, y = labelled
    some = np.arange(N) % 5 == 0
    of_all, of_some = (
        search(X, y, k, searcher(ApproximateSearch(n_lists=20, n_probes=3), N))
        for k in (3, 3 * some)
    )
    assert not np.diff(of_some.indptr)[~some].any()
    for row in np.flatnonzero(some):
        np.testing.assert_allclose(of_some[[row]].data, of_all[[row]].data, rtol=1e-6)


def test_transformer_and_given_distances(labelled, search):
    X, y = labelled
    exact = search(X, y, 4, EXACT)
    transformer = KNeighborsTransformer(algorithm="brute")
    by_transformer = searcher(transformer, len(X))
    assert_same_lists(search(X, y, 4, by_transformer), exact)
    assert by_transformer.name == "KNeighborsTransformer"
    assert not hasattr(transformer, "n_samples_fit_")  # the user's own is not fitted
    assert_same_lists(
        search(X, y, 4, searcher("exact", len(X), csr_array(euclidean_distances(X)))), exact
    )
    few = KNeighborsTransformer(n_neighbors=2).fit_transform(X)
    with pytest.warns(UserWarning, match=r"fewer neighbours .* than requested in \d+ rows"):
        G = search(X, y, 4, searcher("exact", len(X), few))
    assert np.diff(G.indptr).max() <= 2


@needs_faiss
class TestOneTable:
    @pytest.mark.usefixtures("all_ranked_again")
    def test_sparse_and_float32(self, search):
        X = random_array(
            (300, 200), density=0.05, format="csr", random_state=np.random.default_rng(0)
        )
        y = np.arange(300) % 3
        approximate = ApproximateSearch(n_probes=1000, n_components=20)
        of_sparse, of_dense = (
            search(A, y, 4, searcher(approximate, 300)) for A in (X, X.toarray())
        )
        assert_same_lists(of_sparse, of_dense)
        assert search(X.astype(np.float32), y, 4, searcher(approximate, 300)).dtype == np.float32

    def test_many_equal_rows(self, search, monkeypatch):
        """They share one list, however many lists there should be; it is searched in parts."""
        monkeypatch.setattr("nearkin.neighbors.inverted_lists.START", 200)
        X = np.random.default_rng(0).normal(size=(1500, 3))
        X[:700] = 7.0
        y = np.arange(1500) % 2
        G, exact = search(X, y, 5, searcher("approximate", 1500)), search(X, y, 5, EXACT)
        np.testing.assert_array_equal(G.indptr, exact.indptr)
        assert not G[:700].data.any()
        assert np.mean(G.data <= exact.data + 1e-9) > 0.95


@needs_faiss
def test_a_query_so_far_that_distances_overflow():
    X = np.random.default_rng(0).normal(size=(500, 3))
    index = searcher("approximate", 500).index(X, 4)
    distances, numbers = index(np.array([[1e30, 0, 0], X[7]]), 4)
    assert len(set(numbers[0])) == 4
    np.testing.assert_allclose(distances[0], 1e30)
    assert numbers[1, 0] == 7


@pytest.mark.filterwarnings("ignore:faiss was imported before")
def test_absent_faiss_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r'pip install "nearkin\[ann\]"'):
        DNE(search="approximate").fit(np.eye(4), [0, 0, 1, 1])


class TestEstimators:
    @pytest.mark.slow_after(2)
    @needs_faiss
    @pytest.mark.parametrize(
        "name", [*SPECTRAL, "DiscriminativeProjections", "TDL", "LaplacianEigenmaps"]
    )
    def test_all_searches_agree(self, name):
        X, y = load_digits(return_X_y=True)
        X, y = X[:200] + np.random.default_rng(0).normal(size=(200, 64)) / 100, y[:200]
        method = getattr(nearkin, name)(**PARAMETERS.get(name, {}))
        exact, approximate, transformed = (
            clone(method).set_params(search=search).fit(X, y)
            for search in (
                "exact",
                ApproximateSearch(n_probes=1000),
                KNeighborsTransformer(algorithm="brute"),
            )
        )
        Z = exact.transform(X)
        for other in (approximate, transformed):
            np.testing.assert_allclose(other.transform(X), Z, atol=1e-5 * np.abs(Z).max())
        assert (exact.search_, approximate.search_) == ("exact", "approximate")
        if name in SPECTRAL:
            given = clone(method).fit(X, y, distances=csr_array(euclidean_distances(X)))
            assert given.search_ == "distances"
            np.testing.assert_allclose(given.transform(X), Z, atol=1e-5 * np.abs(Z).max())

    def test_parameters_of_the_search_are_nested(self):
        method = DNE(search=ApproximateSearch()).set_params(search__n_probes=5)
        assert clone(method).search.n_probes == 5


COUNTING = """
import os, time, warnings
import numpy as np
from pathlib import Path
from sklearn.neighbors import NearestNeighbors
{first}
from nearkin import DNE

def ticks():
    of = lambda task: sum(int(x) for x in (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13])
    return {{task.name: of(task) for task in Path("/proc/self/task").iterdir()}}

rng = np.random.default_rng(0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        DNE(1, search="approximate").fit(rng.normal(size=(200, 4)), np.arange(200) % 2)
X = rng.normal(size=(12000, 100))
before = ticks()
NearestNeighbors(algorithm="brute").fit(X).kneighbors(X)
print(sum(after - before.get(name, 0) >= 5 for name, after in ticks().items()),
      sum("faiss was imported before" in str(w.message) for w in caught))
"""


@needs_faiss
@pytest.mark.long
@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or cpu_count() < 2,
    reason="counts threads as Linux does, of several",
)
@pytest.mark.parametrize(("first", "n_warnings"), [("", 0), ("import faiss", 1)])
def test_the_exact_search_keeps_its_threads(first, n_warnings):
    """Imported first, faiss leaves scikit-learn's search one thread: nearkin never does that, and
    warns who did.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")
    }
    command = [sys.executable, "-c", COUNTING.format(first=first)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    threads, warned = map(int, done.stdout.split())
    assert warned == n_warnings
    assert threads >= 2 or n_warnings
