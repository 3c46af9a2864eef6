"""The stochastic rule: every training row votes."""

import pickle
import tracemalloc
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from nearkin import NCA, ApproximateSearch, SoftNeighborsClassifier, SoftNeighborsRegressor
from nearkin.bandwidth import nearest_squares, perplexity
from nearkin.estimators import soft_neighbors

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
APPROXIMATE = pytest.param(ApproximateSearch(n_probes=1000), marks=needs_faiss, id="approximate")


def problem():
    X, y = load_iris(return_X_y=True)
    return scale(X)[::2], y[::2], scale(X)[1::2]


def votes(X, rows, h=1.0):
    """Eq. 1 for new rows, by loops."""
    P = np.array([[np.exp(-np.sum((x - row) ** 2) / h**2) for row in rows] for x in X])
    return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("h", [0.5, 1.0, 3.0])
def test_definition(h):
    X, y, new = problem()
    P = votes(new, X, h)
    expected = np.column_stack([P[:, y == c].sum(axis=1) for c in range(3)])
    classifier = SoftNeighborsClassifier(bandwidth=h).fit(X, np.array(["ant", "bee", "cat"])[y])
    np.testing.assert_allclose(classifier.predict_proba(new), expected, rtol=1e-9, atol=1e-12)
    assert (
        classifier.predict(new).tolist()
        == np.array(["ant", "bee", "cat"])[expected.argmax(axis=1)].tolist()
    )
    targets = np.column_stack([y, X[:, 0]])
    np.testing.assert_allclose(
        SoftNeighborsRegressor(bandwidth=h).fit(X, targets).predict(new), P @ targets, rtol=1e-8
    )
    np.testing.assert_allclose(
        SoftNeighborsRegressor(bandwidth=h).fit(X, X[:, 1]).predict(new), P @ X[:, 1], rtol=1e-8
    )


def test_many_blocks_are_one(monkeypatch):
    X, y, new = problem()
    whole = SoftNeighborsClassifier().fit(X, y).predict_proba(new)
    monkeypatch.setattr(
        soft_neighbors, "row_blocks", lambda n, _: [slice(i, i + 7) for i in range(0, n, 7)]
    )
    np.testing.assert_allclose(
        SoftNeighborsClassifier().fit(X, y).predict_proba(new), whole, rtol=1e-12
    )


def test_limits():
    X, y, new = problem()
    nearest = y[((new[:, None] - X) ** 2).sum(axis=-1).argmin(axis=1)]
    np.testing.assert_array_equal(
        SoftNeighborsClassifier(bandwidth=1e-3).fit(X, y).predict(new), nearest
    )
    shares = SoftNeighborsClassifier(bandwidth=1e6).fit(X, y).predict_proba(new)
    np.testing.assert_allclose(shares, np.tile(np.bincount(y) / len(y), (len(new), 1)), atol=1e-6)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_for_a_far_row_the_nearest_decides(far):
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), ["a", "b", "c"]
    assert SoftNeighborsClassifier().fit(X, y).predict_proba([[far, 0.0]])[0, 2] > 0.3
    assert np.isfinite(SoftNeighborsRegressor().fit(X, [1.0, 2.0, 3.0]).predict([[far, 0.0]])).all()


def test_sparse_and_single_precision():
    X, y, new = problem()
    dense = SoftNeighborsClassifier().fit(X, y).predict_proba(new)
    sparse = SoftNeighborsClassifier().fit(csr_array(X), y).predict_proba(csr_array(new))
    np.testing.assert_allclose(sparse, dense, atol=1e-9)
    single = (
        SoftNeighborsClassifier().fit(X.astype(np.float32), y).predict_proba(new.astype(np.float32))
    )
    np.testing.assert_allclose(single, dense, atol=1e-4)


def test_the_origin_does_not_matter():
    X, y, new = problem()
    plain = SoftNeighborsClassifier().fit(X, y).predict_proba(new)
    np.testing.assert_allclose(
        SoftNeighborsClassifier().fit(X + 1e6, y).predict_proba(new + 1e6), plain, atol=1e-6
    )


def test_auto_is_a_perplexity_of_ten_in_any_unit():
    X, y, new = problem()
    for unit in (1e-4, 1.0, 1e4):
        auto = SoftNeighborsClassifier(bandwidth="auto").fit(X * unit, y)
        near = nearest_squares(X * unit / auto.bandwidth_)
        assert perplexity(near) == pytest.approx(10, rel=1e-3)
        plain = SoftNeighborsClassifier(bandwidth="auto").fit(X, y)
        np.testing.assert_allclose(
            auto.predict_proba(new * unit), plain.predict_proba(new), atol=1e-6
        )


@pytest.mark.parametrize(("n_of_a_class", "expected"), [(4, 2), (8, 4), (12, 6), (50, 10)])
def test_auto_is_no_wider_than_half_a_class(n_of_a_class, expected):
    """Two far classes of 8 rows: at a perplexity of 10 at least two of ten votes would be of the
    other class.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], n_of_a_class)
    X = rng.normal(size=(len(y), 4)) + 3 * y[:, None]
    classifier = SoftNeighborsClassifier(bandwidth="auto").fit(X, y)
    assert classifier.local_k().mean() == pytest.approx(expected, rel=0.02)
    regressor = SoftNeighborsRegressor(bandwidth="auto").fit(X, y.astype(float))
    assert regressor.local_k().mean() == pytest.approx(min(10, (len(y) - 1) / 2 + 0.5), rel=0.05)


def test_is_what_nca_maximizes():
    X, y, _ = problem()
    nca = NCA(2).fit(X, y)
    Z = nca.transform(X)
    own = [
        SoftNeighborsClassifier()
        .fit(np.delete(Z, i, axis=0), np.delete(y, i))
        .predict_proba(Z[i : i + 1])[0, y[i]]
        for i in range(len(Z))
    ]
    assert nca.objective_ == pytest.approx(np.mean(own), rel=1e-8)


@pytest.mark.parametrize("estimator", [SoftNeighborsClassifier, SoftNeighborsRegressor])
@pytest.mark.parametrize(
    ("bandwidth", "error", "message"),
    [
        (0, ValueError, "bandwidth must be larger than 0, got 0"),
        (-1.0, ValueError, "bandwidth must be larger than 0, got -1.0"),
        (np.nan, ValueError, "bandwidth must be a finite number"),
        ("wide", ValueError, "bandwidth must be a number or 'auto', got 'wide'"),
        (True, TypeError, "bandwidth must be a number, got True"),
        (None, TypeError, "bandwidth must be a number, got None"),
    ],
)
def test_bad_bandwidths_are_named(estimator, bandwidth, error, message):
    X, y, _ = problem()
    with pytest.raises(error, match=message):
        estimator(bandwidth=bandwidth).fit(X, y)


@pytest.mark.parametrize("unit", [1e-160, 1e-80, 1e80])
def test_units_are_free(unit):
    X, y, queries = problem()
    here = SoftNeighborsClassifier().fit(X, y).predict_proba(queries)
    there = (
        SoftNeighborsRegressor(bandwidth=unit).fit(X * unit, np.eye(3)[y]).predict(queries * unit)
    )
    np.testing.assert_allclose(there, here, atol=1e-10)


def test_rows_beyond_all_distance_are_refused():
    X, y, _ = problem()
    with pytest.raises(ValueError, match="bandwidths"):
        SoftNeighborsClassifier().fit(X, y).predict([[1e160] * 4])


@pytest.mark.parametrize("search", ["exact", APPROXIMATE])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_the_nearest_votes_are_most_of_all(search, container):
    """With enough of them nothing changes: votes fall off as exp(-d^2)."""
    X, y = load_iris(return_X_y=True)
    rows, queries = container(X[::2]), container(X[1::2])
    all_votes = SoftNeighborsClassifier(bandwidth=0.3).fit(rows, y[::2]).predict_proba(queries)
    nearest = SoftNeighborsClassifier(bandwidth=0.3, n_neighbors=70, search=search).fit(
        rows, y[::2]
    )
    np.testing.assert_allclose(nearest.predict_proba(queries), all_votes, atol=1e-6)
    one = SoftNeighborsClassifier(bandwidth=0.3, n_neighbors=1, search=search).fit(rows, y[::2])
    assert set(np.unique(one.predict_proba(queries))) == {0.0, 1.0}
    numbers = SoftNeighborsRegressor(bandwidth=0.3, n_neighbors=70, search=search).fit(rows, y[::2])
    np.testing.assert_allclose(numbers.predict(queries), all_votes @ [0, 1, 2], atol=1e-6)


@needs_faiss
def test_approximate_votes_can_be_pickled():
    X, y = load_iris(return_X_y=True)
    fitted = SoftNeighborsClassifier(search="approximate").fit(X, y)
    before = fitted.predict_proba(X)
    assert fitted.search_ == "approximate"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), before)


def effective_number(p):
    """exp of the entropy, by loops."""
    return np.exp(-sum(p_j * np.log(p_j) for p_j in p if p_j > 0))


class TestLocalK:
    @pytest.mark.parametrize("n_neighbors", [None, 7, 1])
    def test_definition(self, n_neighbors):
        X, y, new = problem()
        h, k = 0.7, n_neighbors or len(X)
        classifier = SoftNeighborsClassifier(bandwidth=h, n_neighbors=n_neighbors).fit(X, y)

        def of_nearest(x, rows):
            nearest = np.argsort(((rows - x) ** 2).sum(axis=1), kind="stable")[:k]
            return effective_number(votes(x[None], rows[nearest], h)[0])

        np.testing.assert_allclose(
            classifier.local_k(new), [of_nearest(x, X) for x in new], rtol=1e-8
        )
        others = [of_nearest(x, np.delete(X, i, axis=0)) for i, x in enumerate(X)]
        np.testing.assert_allclose(classifier.local_k(), others, rtol=1e-8)
        np.testing.assert_allclose(
            SoftNeighborsRegressor(bandwidth=h, n_neighbors=n_neighbors).fit(X, y).local_k(), others
        )
        assert classifier.temperature_ == pytest.approx(h**2)

    def test_limits(self):
        X, y, new = problem()
        np.testing.assert_allclose(
            SoftNeighborsClassifier(bandwidth=1e6).fit(X, y).local_k(new), len(X), rtol=1e-6
        )
        np.testing.assert_allclose(
            SoftNeighborsClassifier(bandwidth=1e6).fit(X, y).local_k(), len(X) - 1, rtol=1e-6
        )
        distinct = np.unique(X, axis=0)
        cold = SoftNeighborsRegressor(bandwidth=1e-4).fit(distinct, distinct[:, 0])
        np.testing.assert_allclose(cold.local_k(distinct), 1.0)

    def test_duplicates_and_blocks(self, monkeypatch):
        X = np.repeat(problem()[0][:5], 8, axis=0)
        few = SoftNeighborsRegressor(n_neighbors=3).fit(X, X[:, 0])
        np.testing.assert_allclose(few.local_k(), 3.0, rtol=1e-6)
        whole = SoftNeighborsRegressor().fit(X, X[:, 0]).local_k()
        monkeypatch.setattr(
            soft_neighbors, "row_blocks", lambda n, _: [slice(i, i + 7) for i in range(0, n, 7)]
        )
        np.testing.assert_allclose(
            SoftNeighborsRegressor().fit(X, X[:, 0]).local_k(), whole, rtol=1e-12
        )

    def test_mean_of_the_training_rows_is_the_perplexity_of_nca(self):
        X, y, _ = problem()
        nca = NCA(alpha=0.1).fit(X, y)  # 75 rows: the 100 nearest are all
        assert SoftNeighborsClassifier().fit(nca.transform(X), y).local_k().mean() == pytest.approx(
            nca.perplexity_
        )

    def test_one_row_has_no_other(self):
        with pytest.raises(ValueError, match=r"local_k\(\) needs at least two rows that vote"):
            SoftNeighborsRegressor().fit([[1.0]], [2.0]).local_k()


def test_too_many_classes_are_refused(monkeypatch):
    X, y = np.arange(400.0)[:, None], np.arange(400) // 2
    model = SoftNeighborsClassifier().fit(X, y)
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 10**5)
    with pytest.raises(MemoryError, match=r"vote of 400 rows for 200 classes .* merge classes"):
        SoftNeighborsClassifier().fit(X, y)
    with pytest.raises(MemoryError, match=r"400 rows, 200 numbers each, .* fewer rows at a time"):
        model.predict(X)
    assert (model.predict(X[:50]) == y[:50]).all()


def test_classes_need_no_square_matrix(monkeypatch):
    """With 3,000 classes, 3,000 x 3,000 numbers are 72 MB; the vote of 3,001 rows is as large."""
    n = 3001
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 8 * n * 3000)
    tracemalloc.start()
    SoftNeighborsClassifier().fit(np.arange(float(n))[:, None], np.minimum(np.arange(n), 2999))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * n * 3000
