"""Searches that are not the exact one: approximate, by a transformer, given."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import KNeighborsTransformer

from nearkin import (
    DNE,
    LDE,
    LFDA,
    LPP,
    MFA,
    NCA,
    NMMP,
    TDL,
    ApproximateSearch,
    DiscriminativeProjections,
    LaplacianEigenmaps,
    TDLClassifier,
)
from nearkin.neighbors import choose_search, ivf, nearest, nearest_other_class, nearest_same_class, searcher
from nearkin.neighbors.quantizer import CoarseQuantizer, InvertedLists
from nearkin.neighbors.tiles import nearest_candidates

QUESTIONS = {
    "any": lambda X, y, k, search: nearest(X, k, search),
    "kin": nearest_same_class,
    "strangers": nearest_other_class,
}
GRAPHS = [DNE(), NMMP(n_neighbors_within=5), LPP(), LDE(), MFA(), LFDA()]
MORE_GRAPHS = [DiscriminativeProjections(), TDL(), LaplacianEigenmaps(), TDLClassifier(TDL(20))]


@pytest.fixture(params=["even", "one large", "small ones"])
def labelled(request):
    """Return 600 rows, and labels of classes of some sizes."""
    rng = np.random.default_rng(0)
    y = {"even": rng.integers(4, size=600), "one large": np.arange(600) // 500 + (np.arange(600) > 590),
         "small ones": np.arange(600) // 7}[request.param]  # fmt: skip
    return rng.normal(size=(600, 5)) + y[:, None] % 3, y


def same_lists(G, H):
    np.testing.assert_array_equal(G.indptr, H.indptr)
    np.testing.assert_allclose(G.data, H.data, rtol=1e-6)


@pytest.mark.parametrize("question", QUESTIONS)
class TestApproximate:
    def test_all_lists_probed_is_exact(self, labelled, question, monkeypatch):
        monkeypatch.setattr(ivf, "BRUTE_CLASS", 100)
        X, y = labelled
        search = searcher(ApproximateSearch(n_lists=20, n_probes=1000), len(X))
        same_lists(QUESTIONS[question](X, y, 4, search), QUESTIONS[question](X, y, 4, searcher("exact", len(X))))

    def test_fewer_dimensions_ranked_again_is_exact(self, labelled, question, monkeypatch):
        monkeypatch.setattr(ivf, "BRUTE_CLASS", 100)
        X, y = labelled
        search = searcher(ApproximateSearch(n_lists=5, n_probes=1000, n_components=2, n_rerank=600), len(X))
        same_lists(QUESTIONS[question](X, y, 4, search), QUESTIONS[question](X, y, 4, searcher("exact", len(X))))

    def test_lists_are_as_long_as_the_exact_ones(self, labelled, question):
        """A row deep inside a large class finds its strangers though the lists around it hold none."""
        X, y = labelled
        search = searcher(ApproximateSearch(n_lists=50, n_probes=1), len(X))
        exact = QUESTIONS[question](X, y, 9, searcher("exact", len(X)))
        G = QUESTIONS[question](X, y, 9, search)
        np.testing.assert_array_equal(G.indptr, exact.indptr)
        row = np.repeat(np.arange(len(X)), np.diff(G.indptr))
        assert len(set(zip(row, G.indices, strict=True))) == G.nnz
        assert (row != G.indices).all()
        if question != "any":
            assert ((y[row] == y[G.indices]) == (question == "kin")).all()
        D = euclidean_distances(X)
        np.testing.assert_allclose(G.data, D[row, G.indices], rtol=1e-5)
        assert (np.diff(G.data)[row[1:] == row[:-1]] >= 0).all()

    def test_same_input_same_output(self, labelled, question):
        X, y = labelled
        first, second = (QUESTIONS[question](X, y, 5, searcher("approximate", len(X))) for _ in range(2))
        np.testing.assert_array_equal(first.indices, second.indices)
        np.testing.assert_array_equal(first.data, second.data)

    def test_measured_recall(self, labelled, question):
        X, y = labelled
        told = {}
        for n_probes in (1, 3, 1000):
            search = searcher(ApproximateSearch(n_lists=60, n_probes=n_probes, check_recall=True), len(X))
            G = QUESTIONS[question](X, y, 5, search)
            (told[n_probes],) = search.recall.values()
            exact = QUESTIONS[question](X, y, 5, searcher("exact", len(X)))
            pairs = [set(zip(np.repeat(np.arange(600), np.diff(A.indptr)), A.indices, strict=True)) for A in (G, exact)]
            assert told[n_probes] == pytest.approx(len(pairs[0] & pairs[1]) / exact.nnz, abs=0.03)
        assert told[1] <= told[3] + 0.02 <= told[1000] + 0.02
        assert told[1000] == 1.0

    def test_sparse_and_float32(self, question):
        X = random_array((300, 200), density=0.05, format="csr", rng=np.random.default_rng(0))
        y = np.arange(300) % 3
        knobs = ApproximateSearch(n_probes=1000, n_rerank=300, n_components=20)
        of_sparse, of_dense = (QUESTIONS[question](A, y, 4, searcher(knobs, 300)) for A in (X, X.toarray()))
        same_lists(of_sparse, of_dense)
        assert QUESTIONS[question](X.astype(np.float32), y, 4, searcher(knobs, 300)).dtype == np.float32

    def test_duplicates(self, question):
        X = np.repeat(np.random.default_rng(0).normal(size=(100, 3)), 4, axis=0)
        y = np.arange(400) % 2
        G = QUESTIONS[question](X, y, 1, searcher("approximate", 400))
        assert (G.data == 0).all()


class TestProducts:
    @pytest.mark.parametrize("tile", [3, 40, 1000])
    @pytest.mark.parametrize("k", [1, 7, 300])
    def test_the_nearest_of_all_tiles(self, tile, k):
        rng = np.random.default_rng(0)
        Q, Y = (rng.normal(size=(n, 6)).astype(np.float32) for n in (20, 200))
        names = rng.permutation(1000)[:200]
        tiles = [(names[start : start + tile], Y[start : start + tile]) for start in range(0, 200, tile)]
        found = nearest_candidates(Q, tiles, k)
        true = np.argsort(euclidean_distances(Q.astype(np.float64), Y.astype(np.float64)), axis=1)[:, :k]
        np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(names[true], axis=1))

    def test_far_from_the_origin(self):
        """Distances are rounded relative to the mean of the queries, not to the origin."""
        rng = np.random.default_rng(0)
        Y = 1000 + rng.normal(size=(500, 4)).astype(np.float32)
        found = nearest_candidates(Y, [(np.arange(500), Y)], 3)
        D = euclidean_distances(Y.astype(np.float64) - 1000)
        assert (np.sort(np.take_along_axis(D, found, axis=1), axis=1) <= np.sort(D, axis=1)[:, :3] + 1e-3).all()

    def test_near_lists_hold_as_many_rows_as_are_wanted(self):
        """However few lists are asked for."""
        Z = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
        filed = InvertedLists(Z, CoarseQuantizer.of(Z, [np.arange(100), np.arange(100, 300)], 30))
        for n_lists, n_rows in ((1, 0), (1, 150), (4, 1), (100, 1)):
            tiles = list(filed.near(0, lambda: filed.filing.lists_but(0), n_lists, n_rows))
            rows, Y = (np.concatenate(parts) for parts in zip(*tiles, strict=True))
            np.testing.assert_array_equal(Y, Z[rows])
            assert len(set(rows)) == len(rows) >= n_rows
            assert rows.min() >= 100


@pytest.mark.parametrize("question", QUESTIONS)
class TestHardTables:
    def test_many_equal_rows(self, question, monkeypatch):
        """They share one list, however many lists there should be; it is looked through in parts."""
        monkeypatch.setattr(ivf, "BRUTE_CLASS", 100)
        X = np.random.default_rng(0).normal(size=(8000, 3))
        X[:3000] = 7.0
        y = np.arange(8000) % 2
        G = QUESTIONS[question](X, y, 5, searcher("approximate", 8000))
        exact = QUESTIONS[question](X, y, 5, searcher("exact", 8000))
        np.testing.assert_array_equal(G.indptr, exact.indptr)
        assert not G[:3000].data.any()
        assert np.mean(G.data <= exact.data + 1e-9) > 0.95

    @pytest.mark.parametrize("n_lists", [1, 10**6])
    def test_one_list_or_one_for_each(self, labelled, question, n_lists):
        X, y = labelled
        search = searcher(ApproximateSearch(n_lists=n_lists, n_probes=1000), 600)
        same_lists(QUESTIONS[question](X, y, 4, search), QUESTIONS[question](X, y, 4, searcher("exact", 600)))

    @pytest.mark.parametrize("scale", [1e-25, 1e20, 1e40])
    @pytest.mark.parametrize("n_components", [None, 4])
    def test_any_unit(self, labelled, question, scale, n_components):
        X, y = labelled
        probing = ApproximateSearch(n_probes=1000, n_components=n_components, n_rerank=300)
        exact = QUESTIONS[question](X, y, 4, searcher("exact", 600))
        G = QUESTIONS[question](X * scale, y, 4, searcher(probing, 600))
        np.testing.assert_allclose(G.data / scale, exact.data, rtol=1e-6)

    def test_far_from_the_origin(self, question):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(600, 200)), np.arange(600) % 3
        near, far = (
            QUESTIONS[question](X + offset, y, 4, searcher(ApproximateSearch(n_probes=1000), 600))
            for offset in (0.0, 1e8)
        )
        np.testing.assert_allclose(far.data, near.data, rtol=1e-5)


def test_a_query_out_of_reach_is_answered():
    X = np.random.default_rng(0).normal(size=(500, 3))
    index = searcher("approximate", 500).index(X, 4)
    distances, numbers = index(np.array([[1e30, 0, 0], X[7]]), 4)
    assert len(set(numbers[0])) == 4
    np.testing.assert_allclose(distances[0], 1e30)
    assert numbers[1, 0] == 7


@pytest.mark.parametrize("question", QUESTIONS)
def test_some_rows_ask(labelled, question, monkeypatch):
    """Rows that want no neighbours have none, and the lists of the others are those of a fit in which all ask."""
    monkeypatch.setattr(ivf, "BRUTE_CLASS", 100)
    X, y = labelled
    probing = ApproximateSearch(n_lists=20, n_probes=3)
    everybody, some = (QUESTIONS[question](X, y, k, searcher(probing, 600)) for k in (3, 3 * (np.arange(600) % 5 == 0)))
    assert not np.diff(some.indptr)[np.arange(600) % 5 > 0].any()
    for row in range(0, 600, 5):
        np.testing.assert_allclose(some[[row]].data, everybody[[row]].data, rtol=1e-6)


@pytest.mark.parametrize("question", QUESTIONS)
def test_transformer_is_exact_where_it_is(labelled, question):
    X, y = labelled
    transformer = KNeighborsTransformer(algorithm="brute")
    search = searcher(transformer, len(X))
    same_lists(QUESTIONS[question](X, y, 4, search), QUESTIONS[question](X, y, 4, searcher("exact", len(X))))
    assert search.name == "KNeighborsTransformer"
    assert not hasattr(transformer, "n_samples_fit_")  # the user's own is not fitted


@pytest.mark.parametrize("question", QUESTIONS)
def test_given_distances_are_the_lists(labelled, question):
    X, y = labelled
    D = csr_array(euclidean_distances(X))
    exact = QUESTIONS[question](X, y, 4, searcher("exact", len(X)))
    same_lists(QUESTIONS[question](X, y, 4, searcher("exact", len(X), D)), exact)
    few = KNeighborsTransformer(n_neighbors=2).fit_transform(X)
    with pytest.warns(UserWarning, match=r"fewer neighbours .* than requested in \d+ rows"):
        G = QUESTIONS[question](X, y, 4, searcher("exact", len(X), few))
    assert np.diff(G.indptr).max() <= 2


class TestEstimators:
    @pytest.mark.parametrize("method", [*GRAPHS, *MORE_GRAPHS], ids=lambda method: type(method).__name__)
    def test_all_searches_agree(self, method):
        X, y = load_digits(return_X_y=True)
        X, y = X[:400] + np.random.default_rng(0).normal(size=(400, 64)) / 100, y[:400]
        probing = ApproximateSearch(n_probes=1000, check_recall=True)
        parameter = "tdl__search" if isinstance(method, TDLClassifier) else "search"
        exact, approximate, transformed = (
            clone(method).set_params(**{parameter: search}).fit(X, y)
            for search in ("exact", probing, KNeighborsTransformer(algorithm="brute"))
        )
        Z = exact.predict_proba(X) if hasattr(exact, "predict_proba") else exact.transform(X)
        for other in (approximate, transformed):
            own = other.predict_proba(X) if hasattr(other, "predict_proba") else other.transform(X)
            np.testing.assert_allclose(own, Z, atol=1e-5 * np.abs(Z).max())
        told = getattr(approximate, "tdl_", approximate)
        assert told.search_ == "approximate"
        assert set(told.search_recall_.values()) == {1.0}
        assert getattr(exact, "tdl_", exact).search_recall_ is None

    @pytest.mark.parametrize("method", GRAPHS, ids=lambda method: type(method).__name__)
    def test_given_distances(self, method):
        X, y = load_digits(return_X_y=True)
        X, y = X[:300] + np.random.default_rng(0).normal(size=(300, 64)) / 100, y[:300]
        exact, given = clone(method).fit(X, y), clone(method).fit(X, y, distances=csr_array(euclidean_distances(X)))
        assert given.search_ == "distances"
        np.testing.assert_allclose(given.transform(X), exact.transform(X), atol=1e-5 * np.abs(exact.transform(X)).max())

    def test_knobs_are_parameters(self):
        method = DNE(search=ApproximateSearch()).set_params(search__n_probes=5)
        assert clone(method).search.n_probes == 5

    @pytest.mark.parametrize(
        ("search", "message"),
        [("near", "'exact', 'approximate', 'auto'"), (3, "got 3"), (ApproximateSearch(n_probes=0), "n_probes must be")],
    )
    def test_what_is_no_search(self, search, message):
        with pytest.raises(ValueError, match=message):
            DNE(search=search).fit(np.eye(4), [0, 0, 1, 1])

    @pytest.mark.parametrize(
        ("distances", "message"), [(np.eye(3), r"of shape \(4, 4\)"), (-np.eye(4), "not be negative")]
    )
    def test_what_are_no_distances(self, distances, message):
        with pytest.raises(ValueError, match=message):
            DNE().fit(np.eye(4), [0, 0, 1, 1], distances=distances)


def test_the_rule_can_be_asked():
    assert (choose_search(99_999), choose_search(100_000)) == ("exact", "approximate")
    assert searcher("auto", 99_999).name == "exact"
    assert searcher("auto", 100_000).name == "approximate"


def test_absent_faiss_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r'pip install "nearkin\[ann\]"'):
        DNE(search="approximate").fit(np.eye(4), [0, 0, 1, 1])


COUNTING = """
import os, time, warnings
import numpy as np
from pathlib import Path
from sklearn.neighbors import NearestNeighbors
{first}
from nearkin import DNE

def worked():
    ticks = lambda task: sum(int(x) for x in (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13])
    return {{task.name: ticks(task) for task in Path("/proc/self/task").iterdir()}}

rng = np.random.default_rng(0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        DNE(1, search="approximate").fit(rng.normal(size=(200, 4)), np.arange(200) % 2)
X = rng.normal(size=(12000, 100))
before = worked()
NearestNeighbors(algorithm="brute").fit(X).kneighbors(X)
print(sum(ticks - before.get(name, 0) >= 5 for name, ticks in worked().items()),
      sum("faiss was imported before" in str(w.message) for w in caught))
"""


@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or (os.cpu_count() or 1) < 2, reason="counts threads as Linux does, of several"
)
@pytest.mark.parametrize(("first", "told"), [("", 0), ("import faiss", 1)])
def test_the_exact_search_keeps_its_threads(first, told):
    """Faiss, imported first, silences scikit-learn's threads; where the user did so, a line says it once."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", COUNTING.format(first=first)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    threads, lines = map(int, done.stdout.split())
    assert lines == told
    if not told:
        assert threads >= 2


@pytest.mark.skipif("NEARKIN_DATA" not in os.environ, reason="NEARKIN_DATA names no folder with mnist.npz")
def test_recall_on_mnist():
    path = Path(os.environ["NEARKIN_DATA"]) / "mnist.npz"
    if not path.exists():
        pytest.skip("NEARKIN_DATA has no mnist.npz")
    with np.load(path) as data:
        X, y = data["X"][:20_000].astype(np.float32), data["y"][:20_000]
    search = searcher(ApproximateSearch(check_recall=True), len(X))
    nearest_same_class(X, y, 10, search)
    nearest_other_class(X, y, 10, search)
    assert min(search.recall.values()) >= 0.95, search.recall


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
@pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
def test_candidates_of_nca_are_looked_up_by_any_search(solver, objective):
    X, y = load_digits(return_X_y=True)
    how = {"n_candidates": 10, "solver": solver, "objective": objective, "max_iter": 5, "random_state": 0}
    probing = ApproximateSearch(n_probes=1000, check_recall=True)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        exact, approximate = (NCA(5, search=search, **how).fit(X[:400], y[:400]) for search in ("exact", probing))
    assert (exact.search_, approximate.search_) == ("exact", "approximate")
    assert set(approximate.search_recall_.values()) == {1.0}
    np.testing.assert_allclose(approximate.components_, exact.components_, atol=1e-3 * np.abs(exact.components_).max())
