"""What all Dask classes promise, whatever they learn."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import nearkin
import nearkin.dask
from nearkin.dask import DaskDNE, DaskLPP, DaskMinMaxScaler, DaskNCA, DaskNMMP, DaskStandardScaler
from nearkin.dask.nmmp import check_lists

from .conftest import blocks, da

SUPERVISED = [DaskDNE(2), DaskNMMP(2, n_neighbors_within=3), DaskNCA(2, init="pca", tol=1e-2)]
ALL = [*SUPERVISED, DaskLPP(2), DaskStandardScaler(), DaskMinMaxScaler()]
of_each = pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
of_supervised = pytest.mark.parametrize("estimator", SUPERVISED, ids=lambda estimator: type(estimator).__name__)


@of_each
class TestEveryDaskClass:
    def test_parameters_are_the_local_ones(self, estimator, client, data):
        local = estimator._local_class
        assert inspect.signature(type(estimator)) == inspect.signature(local)
        assert type(estimator)().get_params() == local().get_params()
        assert clone(estimator).get_params() == estimator.get_params()
        name, value = next(iter(local().get_params().items()))
        assert clone(estimator).set_params(**{name: value}).get_params()[name] == value

    def test_fitted_it_can_be_pickled_and_holds_no_cluster(self, estimator, client, data):
        X, y = blocks(*data, (300, 300))
        model = clone(estimator)
        assert model.fit(X, y, client=client) is model
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.transform(X).compute(), model.transform(X).compute())
        local = model.to_local()
        assert type(local) is estimator._local_class
        assert local.get_params() == model.get_params()
        for held in (local, model):
            modules = {type(value).__module__.partition(".")[0] for value in vars(held).values()}
            assert not modules & {"dask", "distributed"}
        np.testing.assert_allclose(model.transform(X).compute(), local.transform(data[0]), rtol=1e-12, atol=1e-12)
        for value in vars(local).values():
            if isinstance(value, np.ndarray):
                value[...] = 0  # of a copy
        np.testing.assert_array_equal(again.transform(X).compute(), model.transform(X).compute())

    def test_other_arrays_are_refused_by_name(self, estimator, client, data):
        name, local = type(estimator).__name__, estimator._local_class.__name__
        with pytest.raises(TypeError, match=f"X is a numpy ndarray, and {name} takes Dask arrays: fit {local} on it"):
            clone(estimator).fit(*data)
        X, y = blocks(*data, (300, 300))
        with pytest.raises(TypeError, match="X is a numpy ndarray"):
            clone(estimator).fit(X, y).transform(data[0])
        with pytest.raises(ValueError, match=r"X must be of shape \(n, p\)"):
            clone(estimator).fit(X[:, 0], y)
        with pytest.raises(ValueError, match="X must hold real numbers"):
            clone(estimator).fit(X.astype(complex), y)

    def test_features_and_fitting_come_first(self, estimator, client, data):
        X, y = blocks(*data, (300, 300))
        with pytest.raises(ValueError, match="is not fitted yet"):
            clone(estimator).transform(X)
        with pytest.raises(ValueError, match=r"X has 9 features, but .* was fitted on 10"):
            clone(estimator).fit(X, y).transform(X[:, 1:])

    def test_documented(self, estimator):
        documentation = inspect.getdoc(type(estimator))
        assert "Notes" in documentation
        assert "Examples" in documentation


@pytest.mark.parametrize("estimator", ALL[:4], ids=lambda estimator: type(estimator).__name__)
def test_what_is_wrong_with_the_rows(estimator, client, data):
    X, y = blocks(*data, (300, 300))
    unknown = X[X[:, 0] > -np.inf]
    with pytest.raises(ValueError, match=r"X has chunks of unknown sizes: call X\.compute_chunk_sizes\(\)"):
        clone(estimator).fit(unknown, y)
    clone(estimator).fit(unknown.compute_chunk_sizes(), y)
    for values, message in [
        (np.where(np.arange(10) == 3, np.nan, data[0]), "X contains NaN or infinity"),
        (np.ones((600, 10)), "X does not vary"),
        (1e150 * data[0], "whose square is lost: scale the features first"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(da.from_array(values, chunks=(300, 10)), y)
    with pytest.raises(ValueError, match=r"more features \(10\) than rows \(6\)"):
        clone(estimator).fit(X[:6], y[:6])
    with pytest.raises(ValueError, match=r"600 blocks of rows.*rechunk"):
        clone(estimator).fit(X.rechunk((1, 10)), y)


@of_supervised
def test_what_is_wrong_with_the_labels(estimator, client, data):
    X, y = blocks(*data, (300, 300))
    for labels, error, message in [
        (None, ValueError, "y is None"),
        (data[1], TypeError, "y is a numpy ndarray.*from_array"),
        (y[:-1], ValueError, r"y must be of shape \(600,\)"),
        (y[y >= 0], ValueError, r"y\.compute_chunk_sizes"),
        (da.where(y == 1, np.nan, y), ValueError, "y has no label in .* rows"),
        (da.zeros_like(y), ValueError, "y holds one class"),
        (y + 0.5, ValueError, "continuous"),
        (da.from_array(np.array(["a", 1] * 300, dtype=object), chunks=300), ValueError, "y mixes strings"),
    ]:
        with pytest.raises(error, match=message):
            clone(estimator).fit(X, labels)


def test_labels_of_any_kind_and_other_blocks(client, data):
    expected = DaskDNE().fit(*blocks(*data, (300, 300))).components_
    for labels in (data[1].astype(float), data[1].astype(str), np.array([f"{c}" for c in data[1]], dtype=object)):
        found = DaskDNE().fit(da.from_array(data[0], chunks=(300, 10)), da.from_array(labels, chunks=77))
        np.testing.assert_allclose(found.components_, expected, atol=1e-9)


def test_the_client(data):
    X, y = blocks(*data, (300, 300))
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got 'tcp"):
        DaskDNE().fit(X, y, client="tcp://127.0.0.1:1")


def test_no_client_is_told(data, monkeypatch):
    monkeypatch.setattr("nearkin.dask._work.get_client", _no_client)
    with pytest.raises(ValueError, match=r"client is None and no Dask client is open.*distributed\.Client\(\)"):
        DaskDNE().fit(*blocks(*data, (300, 300)))


def _no_client():
    raise ValueError("No global client found and no address provided")


def test_lists_that_do_not_fit():
    k_w = np.array([5002, 100])
    with pytest.raises(MemoryError, match=r"up to 5002 neighbours for each of 20000 rows.*set n_neighbors_within.*10"):
        check_lists(20_000, k_w, 8 * 10**9)
    check_lists(20_000, np.array([10]), 8 * 10**9)
    check_lists(20_000, k_w, 0)


def test_lists_that_do_not_fit_are_refused_before_rows_change_places(client, data, monkeypatch):
    monkeypatch.setattr("nearkin.dask._work.Work.memory", lambda work: 1)
    monkeypatch.setattr("nearkin.dask.nmmp.searchable", None)
    with pytest.raises(MemoryError, match="set n_neighbors_within"):
        DaskNMMP().fit(*blocks(*data, (300, 300)))


def test_local_estimators_name_what_takes_dask_arrays(data):
    X, y = blocks(*data, (300, 300))
    for name in ("DNE", "NMMP", "LPP", "NCA"):
        with pytest.raises(TypeError, match=rf"X is a dask Array.*take nearkin\.dask\.Dask{name}, or call"):
            getattr(nearkin, name)().fit(X, y)
        assert hasattr(nearkin.dask, f"Dask{name}")
    for name, remedy in [("TDL", "set kernel='rbf' and n_landmarks"), ("LMNN", "call .*on some of its rows"),
                         ("LaplacianEigenmaps", "call .*on some of its rows")]:  # fmt: skip
        with pytest.raises(TypeError, match=f"{name} does not distribute: .*{remedy}"):
            getattr(nearkin, name)().fit(X, y)
    with pytest.raises(TypeError, match=r"X is a dask Array.*silently: call \.compute\(\)"):
        nearkin.RCA().fit(X, y)
