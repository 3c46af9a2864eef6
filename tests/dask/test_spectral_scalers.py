"""The scaler and PCA learn what scikit-learn's learn from all rows at once."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from nearkin.dask import DaskPCA, DaskStandardScaler

from .conftest import blocks, da


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "how", [{}, {"with_std": False}, {"with_mean": False, "with_std": False}], ids=str
)
@pytest.mark.parametrize("gaps", [False, True])
def test_standard_scaler(how, gaps, client, data):
    X = np.column_stack([1000 + data[0], np.full(300, 0.1), np.arange(300) / 7])
    if gaps:
        X[::3, 0] = X[:100, 1] = np.nan
    local = StandardScaler(**how).fit(X)
    dX = da.from_array(X, chunks=((100, 0, 199, 1), 5))
    scaler = DaskStandardScaler(**how).fit(dX)
    for name, value in vars(local).items():
        if name.endswith("_") and value is not None:
            np.testing.assert_allclose(
                getattr(scaler, name), value, rtol=1e-11, atol=1e-25, err_msg=name
            )
        elif name.endswith("_"):
            assert getattr(scaler, name) is None
    Z = scaler.transform(dX)
    np.testing.assert_allclose(Z.compute(), local.transform(X), atol=1e-9)
    assert type(scaler.to_local()) is StandardScaler


def test_unknown_sizes_and_float32(client, data):
    X = da.from_array(data[0].astype(np.float32), chunks=(100, 10))
    positive = X[X[:, 0] > 0]
    scaler = DaskStandardScaler()
    Z = scaler.fit(positive).transform(positive)
    known = data[0].astype(np.float32)
    known = known[known[:, 0] > 0]
    np.testing.assert_allclose(Z.compute(), StandardScaler().fit_transform(known), atol=1e-5)
    assert Z.dtype == np.float32


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of the mean of nothing
def test_infinity_and_no_rows_are_refused(client):
    with pytest.raises(ValueError, match="X contains infinity"):
        DaskStandardScaler().fit(da.full((4, 2), np.inf))
    with pytest.raises(ValueError, match="X holds no number"):
        DaskStandardScaler().fit(da.ones((0, 2)))


@pytest.mark.parametrize(("m", "offset"), [(None, 0.0), (3, 1e6)])
def test_pca(client, data, m, offset):
    X = data[0] * np.linspace(1, 3, 10) + offset
    local = DaskPCA(m).fit(blocks(X, data[1])[0], client=client).to_local()
    expected = PCA(m, svd_solver="full").fit(X)
    assert local.n_components_ == expected.n_components_
    np.testing.assert_allclose(local.explained_variance_, expected.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(local.mean_, expected.mean_)
    signs = np.sign(np.einsum("ij,ij->i", local.components_, expected.components_))
    np.testing.assert_allclose(local.components_ * signs[:, None], expected.components_, atol=1e-7)
    largest = np.abs(local.components_).argmax(axis=1)
    assert (local.components_[np.arange(len(largest)), largest] > 0).all()


def test_pca_keeps_single_precision_and_refuses(client, data):
    X = blocks(data[0].astype(np.float32), data[1], (150, 150))[0]
    assert DaskPCA(2).fit_transform(X, client=client).compute().dtype == np.float32
    with pytest.raises(ValueError, match="n_components must be"):
        DaskPCA(11).fit(X, client=client)
    with pytest.raises(ValueError, match=r"more features \(10\) than rows \(0\)"):
        DaskPCA(2).fit(X[:0], client=client)
    with pytest.raises(ValueError, match="X contains NaN"):
        DaskPCA(2).fit(da.where(X > 1, np.nan, X), client=client)


def test_every_block_is_read_once(client, tmp_path):
    def read(block_id):
        with (tmp_path / str(block_id[0])).open("a") as log:
            log.write("read ")
        return np.random.default_rng(block_id).random((50, 3))

    DaskPCA(2).fit(da.map_blocks(read, chunks=((50, 50), 3), meta=np.empty((0, 0))), client=client)
    assert [(tmp_path / name).read_text() for name in "01"] == ["read "] * 2
