"""The scalers learn what scikit-learn's learn from all rows at once."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nearkin import LPP
from nearkin.dask import DaskLPP, DaskMinMaxScaler, DaskStandardScaler

from .conftest import da

SCALERS = [
    (StandardScaler(), DaskStandardScaler()),
    (StandardScaler(with_std=False), DaskStandardScaler(with_std=False)),
    (StandardScaler(with_mean=False, with_std=False), DaskStandardScaler(with_mean=False, with_std=False)),
    (MinMaxScaler((-1, 2), clip=True), DaskMinMaxScaler((-1, 2), clip=True)),
]


@pytest.mark.parametrize(("local", "distributed"), SCALERS, ids=str)
@pytest.mark.parametrize("gaps", [False, True])
def test_same_as_scikit_learn(local, distributed, gaps, client, data):
    X = np.column_stack([1000 + data[0], np.full(600, 0.1), np.arange(600) / 7])
    if gaps:
        X[::3, 0] = X[:100, 1] = np.nan
    local.fit(X)
    dX = da.from_array(X, chunks=((100, 0, 499, 1), 5))
    distributed.fit(dX)
    for name, value in vars(local).items():
        if name.endswith("_") and value is not None:
            np.testing.assert_allclose(getattr(distributed, name), value, rtol=1e-11, atol=1e-25, err_msg=name)
        elif name.endswith("_"):
            assert getattr(distributed, name) is None
    Z = distributed.transform(dX)
    np.testing.assert_allclose(Z.compute(), local.transform(X), atol=1e-9)
    np.testing.assert_allclose(distributed.inverse_transform(Z).compute(), X, rtol=1e-11)
    assert type(distributed.to_local()) is type(local)


@pytest.mark.parametrize("distributed", [DaskStandardScaler(), DaskMinMaxScaler()], ids=str)
def test_unknown_sizes_and_float32(distributed, client, data):
    X = da.from_array(data[0].astype(np.float32), chunks=(200, 10))
    positive = X[X[:, 0] > 0]
    Z = distributed.fit(positive).transform(positive)
    known = data[0].astype(np.float32)
    known = known[known[:, 0] > 0]
    np.testing.assert_allclose(Z.compute(), distributed.to_local().fit(known).transform(known), atol=1e-5)
    assert Z.dtype == np.float32


def test_infinity_and_nothing_are_refused(client):
    with pytest.raises(ValueError, match="X contains infinity"):
        DaskStandardScaler().fit(da.full((4, 2), np.inf))
    with pytest.raises(ValueError, match="X has no rows"):
        DaskMinMaxScaler().fit(da.ones((0, 2)))


def test_in_a_pipeline(client, data):
    X = da.from_array(data[0], chunks=(200, 10))
    Z = make_pipeline(DaskStandardScaler(), DaskLPP(2)).fit_transform(X)
    expected = make_pipeline(StandardScaler(), LPP(2)).fit_transform(data[0])
    np.testing.assert_allclose(Z.compute(), expected, atol=1e-9)
