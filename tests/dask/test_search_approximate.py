"""Approximate search, block by block: most true neighbours are found, and the map is near the exact
one.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import make_blobs
from sklearn.metrics import euclidean_distances

from nearkin import DNE, LPP
from nearkin.dask import DaskDNE
from nearkin.dask.rows import ClusterRows
from nearkin.dask.search import block_searcher, nearest, partition
from nearkin.dask.table import Work, as_table
from nearkin.neighbors import ApproximateSearch

from .conftest import InlineWork, blocks, da

# to import it here would silence the threads of scikit-learn's search
pytestmark = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")


def found(work, X, y, relation, k, search="approximate"):
    """Return the neighbours of all rows of Dask arrays and their distances, -1 and infinity for no
    more.
    """
    table = partition(as_table(work, "DaskDNE", X, y), block_searcher(search, len(X)))
    lists = work.results(nearest(table, relation, k))
    numbers = np.concatenate([block.numbers for block in work.results(table.blocks)])
    neighbors, distances = np.full((len(X), k), -1), np.full((len(X), k), np.inf)
    for start, of_block in zip(table.starts, lists, strict=False):
        rows, width = numbers[start : start + len(of_block.neighbors)], of_block.neighbors.shape[1]
        neighbors[rows, :width] = np.where(of_block.neighbors < 0, -1, numbers[of_block.neighbors])
        distances[rows, :width] = of_block.distances
    return neighbors, distances


def recall(neighbors, distances, queries, X, y, relation, k):
    """Return the share of true neighbours in the lists of some rows; all are in the relation, none
    is missing.
    """
    away = euclidean_distances(X[queries].astype(np.float64), X)
    allowed = {
        "all": np.ones(away.shape, bool),
        "same": y[queries, None] == y,
        "other": y[queries, None] != y,
    }[relation]
    allowed[np.arange(len(queries)), queries] = False
    away[~allowed] = np.inf
    listed = neighbors[queries] >= 0
    assert listed.sum(axis=1).tolist() == np.minimum(allowed.sum(axis=1), k).tolist()
    row, _ = np.nonzero(listed)
    assert allowed[row, neighbors[queries][listed]].all()
    np.testing.assert_allclose(
        distances[queries][listed], away[row, neighbors[queries][listed]], rtol=1e-5
    )
    farthest = np.sort(away, axis=1)[:, :k]
    farthest = np.where(np.isfinite(farthest), farthest, 0).max(axis=1)
    return np.mean(distances[queries][listed] <= farthest[row] * (1 + 1e-5))


@pytest.fixture(scope="module")
def rows():
    """Return rows of two large classes, one of which has enclaves of 20 small ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 8)) @ rng.standard_normal((8, 100)) + 0.1 * rng.standard_normal(
        (1500, 100)
    )
    y = np.where(X[:, 0] > 5, np.arange(1500) % 20 + 2, X[:, 0] > 0)
    return X.astype(np.float32), y


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("relation", ["all", "same", "other"])
@pytest.mark.parametrize("n_components", ["auto", None])
def test_recall(relation, n_components, rows):
    search = ApproximateSearch(n_components=n_components, n_probes=32)
    lists = found(InlineWork(), *blocks(*rows, (900, 0, 1, 599)), relation, 10, search)
    assert recall(*lists, np.arange(0, 1500, 8), *rows, relation, 10) >= 0.95


@pytest.mark.parametrize("relation", ["same", "other"])
def test_few_probes_fill_the_lists(relation, rows):
    """A class and all others are longer than what one list holds: more are searched."""
    search = ApproximateSearch(n_lists=200, n_probes=1)
    lists = found(InlineWork(), *blocks(*rows, (750, 750)), relation, 40, search)
    recall(*lists, np.arange(0, 1500, 80), *rows, relation, 40)


def test_equal_rows_fill_several_blocks():
    """Hundreds of duplicates share a list, and the list is cut."""
    X = np.repeat(np.arange(4.0)[:, None], 300, axis=0) * [1.0, 2.0]
    neighbors, distances = found(
        InlineWork(), *blocks(X, np.arange(1200) % 2, (300,) * 4), "same", 5
    )
    assert (distances == 0).all()
    assert (neighbors != np.arange(1200)[:, None]).all()


@pytest.mark.parametrize("method", [LPP(3), DNE(3, n_neighbors=5)], ids=str)
def test_the_map_is_near_the_exact_one(method):
    """The same-class and the other-class graph are of one partition."""
    X, y = make_blobs(1200, 12, centers=6, cluster_std=np.linspace(2, 5, 6), random_state=0)
    X *= np.linspace(1, 2, 12)
    search, labelled = (
        block_searcher(ApproximateSearch(n_probes=32), len(X)),
        isinstance(method, DNE),
    )
    table = as_table(InlineWork(), "DaskLPP", *blocks(X, y, (700, 500)), labelled=labelled)
    there = ClusterRows(**vars(table), search=search)
    components = method.fit_rows(there).components_
    assert subspace_angles(method.fit(X, y).components_.T, components.T).max() < 0.05


@pytest.mark.long
def test_on_a_cluster(client, data):
    model = DaskDNE(3, n_neighbors=5, search="approximate").fit(*blocks(*data))
    assert model.search_ == "approximate"
    assert (
        subspace_angles(DNE(3, n_neighbors=5).fit(*data).components_.T, model.components_.T).max()
        < 0.05
    )


@pytest.mark.long
@pytest.mark.skipif(
    "NEARKIN_DATA" not in os.environ, reason="NEARKIN_DATA names no folder with mnist.npz"
)
def test_recall_on_mnist(processes, tmp_path):
    n_blocks, size, k = 4, 2_000, 10
    n_rows = n_blocks * size
    with np.load(Path(os.environ["NEARKIN_DATA"]) / "mnist.npz") as data:
        rows, labels = (
            data["X"][:n_rows].reshape(n_rows, 784).astype(np.float32),
            data["y"][:n_rows],
        )
    np.save(tmp_path / "X.npy", rows)  # the workers read their blocks from it

    def part(block_id):
        return np.array(
            np.load(tmp_path / "X.npy", mmap_mode="r")[
                block_id[0] * size : (block_id[0] + 1) * size
            ]
        )

    X = da.map_blocks(part, chunks=((size,) * n_blocks, 784), dtype=np.float32)
    y, queries = da.from_array(labels, chunks=size), np.arange(0, n_rows, 24)
    for relation in ("same", "other"):
        with Work(processes) as work:
            share = recall(*found(work, X, y, relation, k), queries, rows, labels, relation, k)
        print(f"{n_blocks} blocks, {relation}: {share:.3f}")
        assert share >= 0.95
