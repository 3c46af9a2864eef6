"""Approximate search, block by block: most true neighbours are found, and the map is near the exact one."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import make_blobs

from nearkin import DNE, LPP
from nearkin.dask import DaskDNE, DaskLPP
from nearkin.dask._neighbors import with_nearer
from nearkin.dask._search import filing_of
from nearkin.dask._table import Rows
from nearkin.neighbors import ApproximateSearch

from .conftest import blocks

# to import it here would silence the threads of scikit-learn's search
pytestmark = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 8)) @ rng.standard_normal((8, 120)) + 0.1 * rng.standard_normal((6000, 120))
    y = np.where(X[:, 0] > 8, np.arange(6000) % 50 + 2, X[:, 0] > 0)
    return X.astype(np.float32), y


@pytest.mark.parametrize("kind", ["kin", "strangers"])
@pytest.mark.parametrize("projected", [False, True])
def test_recall(kind, projected, rows, monkeypatch):
    monkeypatch.setattr("nearkin.dask._search.FEW", 50)
    X, y = rows
    parts = [Rows(X[start : start + 2000], y[start : start + 2000], start) for start in range(0, 6000, 2000)]
    how = {"projection": np.linalg.svd(X, full_matrices=False)[2][:10].T if projected else None}
    found, exact = None, None
    for part in parts:
        filing = filing_of(part, n_lists=180, **how)
        found = with_nearer(found, parts[1], part, filing, kind=kind, k=10, n_probes=32, **how)
        exact = with_nearer(exact, parts[1], part, None, kind=kind, k=10)
    there = exact.neighbors >= 0
    assert ((found.neighbors >= 0) == there).all()  # nobody starves
    close = found.distances <= np.where(there, exact.distances, 0).max(axis=1, keepdims=True) * (1 + 1e-6)
    assert np.mean(close[there]) >= 0.95
    own = parts[1].start + np.arange(2000)[:, None]
    assert (found.neighbors != own).all()
    assert ((y[found.neighbors] == y[own]) == (kind == "kin"))[there].all()


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
