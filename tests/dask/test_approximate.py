"""Approximate search, block by block: most true neighbours are found, and the map is near the exact one."""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import make_blobs
from sklearn.metrics import euclidean_distances

from nearkin import DNE, LPP
from nearkin.dask import DaskDNE, DaskLPP
from nearkin.dask._neighbors import block_searcher, nearest, searchable
from nearkin.dask._shared_index import in_first_places
from nearkin.dask._table import labelled_table
from nearkin.dask._work import Work
from nearkin.neighbors import ApproximateSearch

from .conftest import blocks, da

# to import it here would silence the threads of scikit-learn's search
pytestmark = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")


def found(client, X, y, kind, k, search="approximate"):
    """Return the lists of all rows of Dask arrays, in their order."""
    with Work(client) as work:
        table = labelled_table(work, "DaskDNE", X, y)
        starts = table.starts
        filed = searchable(block_searcher(search, len(X)), work, table)
        lists = work.results(in_first_places(work, filed, nearest(work, filed, kind, k), starts))
    width = max(of_block.neighbors.shape[1] for of_block in lists)
    return [np.vstack([np.pad(of_block[part], ((0, 0), (0, width - of_block[part].shape[1])), constant_values=none)
                       for of_block in lists]) for part, none in enumerate((-1, np.inf))]  # fmt: skip


def recall(neighbors, distances, asked, X, y, kind, k):
    """Return the share of true neighbours in the lists of some rows; nobody is listed who may not be."""
    away = euclidean_distances(X[asked].astype(np.float64), X)
    allowed = (y[asked, None] == y) == (kind == "kin")
    allowed[np.arange(len(asked)), asked] = False
    away[~allowed] = np.inf
    listed = neighbors[asked] >= 0
    assert listed.sum(axis=1).tolist() == np.minimum(allowed.sum(axis=1), k).tolist()  # nobody starves
    row, _ = np.nonzero(listed)
    assert allowed[row, neighbors[asked][listed]].all()
    np.testing.assert_allclose(distances[asked][listed], away[row, neighbors[asked][listed]], rtol=1e-5)
    farthest = np.sort(away, axis=1)[:, :k]
    farthest = np.where(np.isfinite(farthest), farthest, 0).max(axis=1)
    return np.mean(distances[asked][listed] <= farthest[row] * (1 + 1e-5))


@pytest.fixture(scope="module")
def rows():
    """Return rows of two large classes, one of which has enclaves of 50 small ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 8)) @ rng.standard_normal((8, 120)) + 0.1 * rng.standard_normal((4000, 120))
    y = np.where(X[:, 0] > 5, np.arange(4000) % 50 + 2, X[:, 0] > 0)
    return X.astype(np.float32), y


@pytest.mark.parametrize("kind", ["kin", "strangers"])
@pytest.mark.parametrize("n_components", ["auto", None])
def test_recall(kind, n_components, client, rows):
    search = ApproximateSearch(n_components=n_components, n_probes=32)
    lists = found(client, *blocks(*rows, (2500, 0, 1, 1499)), kind, 10, search)
    assert recall(*lists, np.arange(0, 4000, 8), *rows, kind, 10) >= 0.95


@pytest.mark.parametrize("kind", ["kin", "strangers"])
def test_a_short_probe_does_not_starve(kind, client, rows):
    """A class and all others are longer than what one list holds: more are looked through."""
    search = ApproximateSearch(n_lists=200, n_probes=1)
    recall(*found(client, *blocks(*rows, (2000, 2000)), kind, 60, search), np.arange(0, 4000, 80), *rows, kind, 60)


def test_equal_rows_fill_several_blocks(client):
    """Thousands of duplicates share a list, and the list is cut."""
    X = np.repeat(np.arange(4.0)[:, None], 1000, axis=0) * [1.0, 2.0]
    neighbors, distances = found(client, *blocks(X, np.arange(4000) % 2, (1000,) * 4), "kin", 5)
    assert (distances == 0).all()
    assert (neighbors != np.arange(4000)[:, None]).all()


@pytest.mark.skipif("NEARKIN_DATA" not in os.environ, reason="NEARKIN_DATA names no folder with mnist.npz")
def test_recall_on_mnist(client):
    def part(name, block_id):
        with np.load(path) as data:
            rows = data[name][block_id[0] * size : (block_id[0] + 1) * size]
        return rows.reshape(size, 784).astype(np.float32) if name == "X" else rows

    path, n_blocks = Path(os.environ["NEARKIN_DATA"]) / "mnist.npz", 6
    size = 60_000 // n_blocks
    sizes, asked = (size,) * n_blocks, np.arange(0, 60_000, 120)
    X = da.map_blocks(lambda block_id: part("X", block_id), chunks=(sizes, 784), dtype=np.float32)
    y = da.map_blocks(lambda block_id: part("y", block_id), chunks=(sizes,), dtype=np.uint8)
    rows = X.compute(), y.compute()
    for kind in ("kin", "strangers"):
        share = recall(*found(client, X, y, kind, 10), asked, *rows, kind, 10)
        print(f"{n_blocks} blocks, {kind}: {share:.3f}")
        assert share >= 0.95


def test_the_map_is_near_the_exact_one(client):
    X, y = make_blobs(4400, 12, centers=6, cluster_std=np.linspace(2, 5, 6), random_state=0)
    X *= np.linspace(1, 2, 12)
    for local, distributed in [
        (LPP(3), DaskLPP(3, search="approximate")),
        (DNE(3, n_neighbors=5), DaskDNE(3, n_neighbors=5, search=ApproximateSearch(n_components=None))),
    ]:
        distributed.fit(*blocks(X, y, (2200, 2200)))
        assert (distributed.search_, distributed.search_recall_) == ("approximate", None)
        assert subspace_angles(local.fit(X, y).components_.T, distributed.components_.T).max() < 0.05


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (ApproximateSearch(check_recall=True), "check_recall=True, which compares all pairs: check it on a sample"),
        ("nearest", "search must be 'exact', 'approximate', 'auto'"),
    ],
)
def test_errors(search, message, client, data):
    with pytest.raises(ValueError, match=message):
        DaskLPP(search=search).fit(*blocks(*data, (300, 300)))
