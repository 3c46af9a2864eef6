"""Rows in lists around centres, of which a query compares the nearest."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.metrics import euclidean_distances

from nearkin.neighbors import (
    inverted_lists,
)
from nearkin.neighbors.inverted_lists import CoarseQuantizer, InvertedLists

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")


@needs_faiss
@pytest.mark.parametrize("n_probes", [1, 6, 1000])
@pytest.mark.parametrize("start", [10, 100])
@pytest.mark.parametrize("of_other_classes", [False, True])
def test_the_nearest_of_the_lists(n_probes, start, of_other_classes, monkeypatch):
    """All lists hold the true neighbours; one holds fewer than are wanted, and others are
    searched.
    """
    monkeypatch.setattr(inverted_lists, "START", start)
    monkeypatch.setattr(inverted_lists, "LONGEST", 20)
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(400, 3)).astype(np.float32), rng.integers(3, size=400)
    Z[:100] += 50 * (y[:100, None] == 2)  # deep inside a class
    D = euclidean_distances(Z.astype(np.float64))
    if of_other_classes:
        D[y[:, None] == y] = np.inf
    true = np.sort(D, axis=1)[:, :9]
    quantizer = CoarseQuantizer.of(Z, [np.arange(400)], 30)
    lists = InvertedLists(Z, quantizer, y if of_other_classes else None)
    assert (lists.sizes <= 20).all()
    places = np.flatnonzero(lists.rows % 2)
    rows = lists.rows[places]
    found = np.take_along_axis(D[rows], lists.nearest(places, 9, n_probes), axis=1)
    found.sort(axis=1)
    assert np.isfinite(found).all()
    assert (found >= true[rows] - 1e-6).all()
    if n_probes == 1000:
        np.testing.assert_allclose(found, true[rows], atol=1e-5)


@needs_faiss
def test_fewer_rows_of_other_classes_than_wanted():
    Z, y = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32), np.arange(400) > 3
    lists = InvertedLists(Z, CoarseQuantizer.of(Z, [np.arange(400)], 30), y)
    found = lists.nearest(np.arange(400), 9, 2)
    for row, near in zip(lists.rows, found, strict=True):
        if row > 3:
            assert set(near) == {0, 1, 2, 3, row}
        else:
            assert set(near) <= set(range(4, 400))
