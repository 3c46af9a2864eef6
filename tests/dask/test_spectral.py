"""The spectral methods on a cluster find what the local ones find; each is fitted once, two of them
more often.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import LPP
from nearkin.dask import (
    DaskDMLMJ,
    DaskDNE,
    DaskGMML,
    DaskLDE,
    DaskLFDA,
    DaskLPP,
    DaskMFA,
    DaskNMMP,
    DaskStandardScaler,
)

from .conftest import UNEVEN, blocks, da

METHODS = [
    DaskDMLMJ(3),
    DaskDNE(4, n_neighbors=3),
    DaskGMML(3),
    DaskLDE(3),
    DaskLFDA(3),
    DaskLPP(3),
    DaskMFA(3, n_pairs=20),
    DaskNMMP(3),
]


@pytest.mark.long
@pytest.mark.parametrize("estimator", METHODS, ids=lambda estimator: type(estimator).__name__)
def test_same_as_local(estimator, client, data):
    X, y = blocks(*data)
    model = clone(estimator)
    assert model.fit(X, y, client=client) is model
    local = model.to_local()
    assert type(local) is estimator._local_class
    assert local.get_params() == model.get_params()
    expected = clone(local).fit(*data)
    for name in ("components_", "eigenvalues_", "objective_"):
        np.testing.assert_allclose(
            getattr(local, name), getattr(expected, name), rtol=1e-8, atol=1e-8
        )
    assert getattr(local, "shrinkage_", 0) == pytest.approx(getattr(expected, "shrinkage_", 0))
    fitted = {name for name in vars(expected) if name.endswith("_")}
    assert {name for name in vars(local) if name.endswith("_")} == fitted
    assert (model.n_components_, model.rank_) == (expected.n_components_, expected.rank_)
    assert getattr(model, "search_", "exact") == "exact"
    for held in (local, model):
        modules = {type(value).__module__.partition(".")[0] for value in vars(held).values()}
        assert not modules & {"dask", "distributed"}
    Z = model.transform(X)
    assert isinstance(Z, da.Array)
    assert Z.chunks == (UNEVEN, (model.n_components_,))
    embedding = Z.compute(scheduler="synchronous")
    np.testing.assert_allclose(embedding, expected.transform(data[0]), rtol=1e-8, atol=1e-8)
    columns = pickle.loads(pickle.dumps(model)).transform(X.rechunk((100, 3)))
    np.testing.assert_allclose(columns.compute(scheduler="synchronous"), embedding, atol=1e-12)
    local.components_[...] = 0  # a copy
    np.testing.assert_array_equal(model.transform(X).compute(scheduler="synchronous"), embedding)


@pytest.mark.long
def test_same_input_same_bits(client, data):
    first, second = (DaskLPP().fit(blocks(*data)[0]) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)


@pytest.mark.long
def test_labels_of_any_kind_and_other_blocks(client, data):
    expected = DaskDNE().fit(*blocks(*data, (300,))).components_
    for labels in (data[1].astype(float), np.array([f"{c}" for c in data[1]], dtype=object)):
        found = DaskDNE().fit(
            da.from_array(data[0], chunks=(300, 10)), da.from_array(labels, chunks=77)
        )
        np.testing.assert_allclose(found.components_, expected, atol=1e-9)


def test_in_a_pipeline(client, data):
    X = da.from_array(data[0], chunks=(200, 10))
    Z = make_pipeline(DaskStandardScaler(), DaskLPP(2)).fit_transform(X)
    expected = make_pipeline(StandardScaler(), LPP(2)).fit_transform(data[0])
    np.testing.assert_allclose(Z.compute(), expected, atol=1e-9)
