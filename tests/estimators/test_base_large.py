"""Rows that should not be copied: files in memory maps, float32, float16."""

import sys
import tracemalloc
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone

from nearkin import LDE, LPP, NCA, _blocks
from nearkin.neighbors import approximate as approximate_module
from nearkin.neighbors import inverted_lists

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
WITH_FAISS = pytest.param(LDE(4, search="approximate"), marks=needs_faiss)
METHODS = [LPP(4), WITH_FAISS, NCA(4, solver="sgd", max_iter=1, random_state=0)]


def rows(n, p):
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=n)
    return rng.normal(size=(n, p)).astype(np.float32) + 3 * np.eye(5, p, dtype=np.float32)[y], y


@pytest.mark.filterwarnings("ignore:max_iter=1")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
class TestTheTypeOfTheArrayChangesNoBit:
    def test_a_memory_map(self, method, tmp_path):
        X, y = rows(500, 20)
        X.tofile(tmp_path / "rows")
        mapped = np.memmap(tmp_path / "rows", np.float32, "r", shape=X.shape)
        ours, theirs = clone(method).fit(mapped, y), clone(method).fit(X, y)
        np.testing.assert_array_equal(ours.components_, theirs.components_)
        np.testing.assert_array_equal(ours.transform(mapped), theirs.transform(X))

    def test_float16_is_float32_of_the_same_values(self, method):
        X, y = rows(500, 20)
        X = X.astype(np.float16)
        ours, theirs = clone(method).fit(X, y), clone(method).fit(X.astype(np.float32), y)
        np.testing.assert_array_equal(ours.components_, theirs.components_)
        assert ours.components_.dtype == ours.transform(X).dtype == np.float32


@pytest.mark.long
def test_rows_in_float32_are_not_copied(monkeypatch):
    """Beside lists, graphs and blocks, which are made small here, nothing of the size of X is held."""
    X, y = rows(20_000, 600)
    blocks = _blocks.row_blocks

    def small(n, width, entries=2**18):
        return blocks(n, width, min(entries, 2**18))

    for module in list(sys.modules.values()):
        if getattr(module, "row_blocks", None) is blocks:
            monkeypatch.setattr(module, "row_blocks", small)
    monkeypatch.setattr(approximate_module, "SAMPLE", 2000)
    monkeypatch.setattr(inverted_lists, "COLLECTED", 2**20)
    LDE(4, search="approximate").fit(X[:500], y[:500])  # what is imported and kept once
    tracemalloc.start()
    LDE(4, search="approximate").fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes
