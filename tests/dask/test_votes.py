"""The vote of the nearest rows, and PCA: what a comparison on a cluster needs beside the methods."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from nearkin.dask._votes import nearest_labels
from nearkin.dask.pca import DaskPCA

from .conftest import blocks, da


@pytest.mark.parametrize("sizes", [(600,), (1, 299, 0, 300), (2, 2, 2, *[54] * 11)])
@pytest.mark.parametrize("k", [1, 4])
def test_the_nearest_rows_of_all_blocks_vote(client, data, sizes, k):
    X, y = data
    queries = np.random.default_rng(1).standard_normal((50, X.shape[1]))
    seen = []
    near = nearest_labels(
        *blocks(X, y, sizes),
        da.from_array(queries, chunks=-1),
        k,
        client=client,
        progress=lambda *row: seen.append(row),
    )
    distances, at = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X).kneighbors(queries)
    np.testing.assert_array_equal(near.labels, y[at])
    np.testing.assert_allclose(near.distances, distances)
    assert seen[-1] == (600, 600)


def test_what_blocks_tell_is_merged_as_it_comes(client, data):
    """Else the cluster holds the nearest of all blocks until the last has told its own."""
    X, y = data
    held = []
    nearest_labels(
        *blocks(X, y, (10,) * 60),
        da.from_array(X[:50], chunks=-1),
        3,
        client=client,
        progress=lambda *row: held.append(sum("labels_in" in str(key) for key in keys_in_memory(client))),
    )
    assert max(held) < 30


def keys_in_memory(client):
    return [key for keys in client.has_what().values() for key in keys]


def test_fewer_rows_than_votes(client, data):
    X, y = data[0][:3], data[1][:3]
    near = nearest_labels(*blocks(X, y, (1, 2)), da.from_array(X, chunks=-1), 5, client=client)
    assert near.labels.shape == (3, 3)
    np.testing.assert_array_equal(near.labels[:, 0], y)


def test_of_equally_near_rows_the_first_counts(client):
    X, y = np.zeros((6, 2)), np.arange(6)
    near = nearest_labels(*blocks(X, y, (2, 4)), da.from_array(X[:1], chunks=-1), 2, client=client)
    assert near.labels[0, 0] in (0, 1)


@pytest.mark.parametrize("m", [None, 3])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_pca_is_that_of_scikit_learn(client, data, m, offset):
    X = data[0]
    X = X * np.linspace(1, 3, X.shape[1]) + offset
    found = DaskPCA(m).fit(blocks(X, data[1], (100, 0, 500))[0], client=client)
    expected = PCA(m, svd_solver="full").fit(X)
    local = found.to_local()
    assert local.n_components_ == expected.n_components_
    np.testing.assert_allclose(local.explained_variance_, expected.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(local.mean_, expected.mean_)
    signs = np.sign(np.einsum("ij,ij->i", local.components_, expected.components_))
    np.testing.assert_allclose(local.components_ * signs[:, None], expected.components_, atol=1e-7)
    largest = np.abs(local.components_).argmax(axis=1)
    assert (local.components_[np.arange(len(largest)), largest] > 0).all()
    Z = found.transform(da.from_array(X[:5], chunks=-1)).compute()
    np.testing.assert_allclose(Z, local.transform(X[:5]))


def test_pca_keeps_single_precision(client, data):
    X = blocks(data[0].astype(np.float32), data[1], (300, 300))[0]
    assert DaskPCA(2).fit_transform(X, client=client).dtype == np.float32
    with pytest.raises(ValueError, match="n_components must be"):
        DaskPCA(11).fit(X, client=client)
    with pytest.raises(ValueError, match="X has 0 rows: at least 2"):
        DaskPCA(2).fit(X[:0], client=client)
    with pytest.raises(ValueError, match="X contains NaN"):
        DaskPCA(2).fit(da.where(X > 1, np.nan, X), client=client)


def test_pca_reads_every_block_once(client, tmp_path):
    def read(block_id):
        with (tmp_path / str(block_id[0])).open("a") as log:
            log.write("read ")
        return np.random.default_rng(block_id).random((50, 3))

    DaskPCA(2).fit(da.map_blocks(read, chunks=((50, 50), 3), meta=np.empty((0, 0))), client=client)
    assert [(tmp_path / name).read_text() for name in "01"] == ["read "] * 2
