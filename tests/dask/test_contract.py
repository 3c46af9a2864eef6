"""What all Dask classes promise, and what they refuse."""

import inspect
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer

import nearkin
from nearkin.dask import (
    DaskDMLMJ,
    DaskDNE,
    DaskGMML,
    DaskLDE,
    DaskLFDA,
    DaskLPP,
    DaskMFA,
    DaskNCA,
    DaskNMMP,
    DaskPCA,
    DaskStandardScaler,
)

from ..test_callbacks import Recorder, with_sklearn_callbacks
from .conftest import blocks, da

SPECTRAL = [
    DaskDMLMJ(2),
    DaskDNE(2),
    DaskLDE(2),
    DaskLFDA(2),
    DaskLPP(2),
    DaskMFA(2),
    DaskNMMP(2),
    DaskGMML(2),
]
ALL = [*SPECTRAL, DaskNCA(2), DaskStandardScaler(), DaskPCA(2)]
of_each = pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)


@of_each
def test_parameters_are_the_local_ones(estimator):
    local = estimator._local_class
    if local.__module__.startswith("nearkin"):
        own, of_local = (inspect.signature(kind).parameters for kind in (type(estimator), local))
        fixed = {"solver", "search", "target"} if isinstance(estimator, DaskNCA) else set()
        assert own == {name: one for name, one in of_local.items() if name not in fixed}
    assert type(estimator)().get_params().items() <= local().get_params().items()
    assert clone(estimator).get_params() == estimator.get_params()
    assert local.__name__ in inspect.getdoc(type(estimator))


@of_each
def test_other_arrays_are_refused_by_name(estimator, client, data):
    name, local = type(estimator).__name__, estimator._local_class.__name__
    with pytest.raises(
        TypeError, match=f"X is a numpy ndarray, and {name} takes Dask arrays: fit {local} on it"
    ):
        clone(estimator).fit(*data)
    X, y = blocks(*data)
    with pytest.raises(ValueError, match=r"X must be of shape \(n, p\)"):
        clone(estimator).fit(X[:, 0], y)
    with pytest.raises(
        ValueError, match=r"X must be .* real numbers in dense NumPy blocks, got .* complex128"
    ):
        clone(estimator).fit(X.astype(complex), y)
    with pytest.raises(ValueError, match="is not fitted yet"):
        clone(estimator).transform(X)


def test_transform_takes_the_features_of_the_fit(client, data):
    X = blocks(*data)[0]
    model = DaskPCA(2).fit(X)
    with pytest.raises(ValueError, match=r"X has 9 features, but DaskPCA is expecting 10"):
        model.transform(X[:, 1:])
    with pytest.raises(TypeError, match="X is a numpy ndarray"):
        model.transform(data[0])


@pytest.mark.parametrize(
    "estimator",
    [DaskDNE(2), DaskNCA(2), DaskPCA(2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_is_wrong_with_the_rows(estimator, client, data):
    X, y = blocks(*data)
    unknown = X[X[:, 0] > -np.inf]
    with pytest.raises(
        ValueError, match=r"X has chunks of unknown sizes: call X\.compute_chunk_sizes\(\)"
    ):
        clone(estimator).fit(unknown, y)
    for values, message in [
        (np.where(np.arange(10) == 3, np.nan, data[0]), "X contains NaN or infinity"),
        (np.ones((300, 10)), "X does not vary"),
        (1e150 * data[0], "whose square overflows or underflows: scale the features first"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(da.from_array(values, chunks=(300, 10)), y)
    with pytest.raises(ValueError, match=r"more features \(10\) than rows \(6\)"):
        clone(estimator).fit(X[:6], y[:6])


def test_many_rows_are_refused_only_where_all_pairs_are_compared(client, data, monkeypatch):
    monkeypatch.setattr("nearkin.dask.table.EXACT_ROWS", 100)
    X, y = blocks(*data)
    assert DaskGMML(2).fit(X, y).components_.shape == (2, 10)
    with pytest.raises(ValueError, match="all pairs of them are compared"):
        DaskDNE(2).fit(X, y)


@pytest.mark.parametrize(
    "estimator", [DaskDNE(2), DaskNCA(2)], ids=lambda estimator: type(estimator).__name__
)
def test_what_is_wrong_with_the_labels(estimator, client, data):
    X, y = blocks(*data)
    for labels, error, message in [
        (None, TypeError, "y is a builtins NoneType"),
        (data[1], TypeError, "y is a numpy ndarray.*from_array"),
        (y[:-1], ValueError, r"y must be of shape \(300,\)"),
        (y[y >= 0], ValueError, r"y\.compute_chunk_sizes"),
        (da.where(y == 1, np.nan, y), ValueError, "y has no label in .* rows"),
        (da.zeros_like(y), ValueError, "y holds one class"),
        (y + 0.5, ValueError, "continuous"),
        (
            da.from_array(np.array(["a", 1] * 150, dtype=object), chunks=150),
            ValueError,
            "y mixes strings",
        ),
    ]:
        with pytest.raises(error, match=message):
            clone(estimator).fit(X, labels)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (KNeighborsTransformer(), "or an ApproximateSearch for Dask arrays"),
        ("nearest", "search must be 'exact', 'approximate', 'auto'"),
    ],
    ids=str,
)
def test_searches_that_are_refused(search, message, data):
    # to import it here would silence threads
    if not isinstance(search, str) and find_spec("faiss") is None:
        pytest.skip("faiss is not installed")
    with pytest.raises(ValueError, match=message):
        DaskLPP(search=search).fit(*blocks(*data))


def test_the_client(data):
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client.*, got 'tcp"):
        DaskDNE().fit(*blocks(*data), client="tcp://127.0.0.1:1")


@pytest.mark.parametrize("local", [nearkin.NMMP(), nearkin.LMNN()], ids=str)
def test_local_estimators_refuse_dask_arrays(local, data):
    with pytest.raises(
        TypeError, match=r"X is a dask Array.*silently: call \.compute\(\).*nearkin\.dask"
    ):
        local.fit(*blocks(*data))


@pytest.mark.slow_after(1)
@with_sklearn_callbacks
@of_each
def test_every_class_reports_one_fit(estimator, client, data):
    X, y = blocks(*data)
    recorder = Recorder()
    model = clone(estimator).set_callbacks(recorder)
    model.fit(X, y)
    first, second, *iterations, last_but_one, last = recorder.events
    assert [first, second] == [("setup", "fit"), ("begin", "fit")]
    assert [last_but_one, last] == [("end", "fit"), ("teardown", "fit")]
    n_iterations = model.n_iter_ if isinstance(model, DaskNCA) else 0
    assert iterations == [("begin", "iteration"), ("end", "iteration")] * n_iterations
    fitted = recorder.values("end")[-1]["fitted"]
    np.testing.assert_array_equal(fitted.transform(X).compute(), model.transform(X).compute())


@pytest.mark.slow
@with_sklearn_callbacks
def test_a_callback_stops_a_descent_and_its_map_stays(client, data):
    X, y = blocks(*data)
    model = DaskNCA(2).set_callbacks(Recorder(stop=True)).fit(X, y)
    assert model.n_iter_ == 1
    assert np.isfinite(model.transform(X).compute()).all()
