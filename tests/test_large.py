"""Rows that should not be copied: files in memory maps, float32, float16."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from nearkin import DNE, LDE, LPP, MFA, NCA, NMMP
from nearkin.neighbors import ivf

METHODS = [
    DNE(4, search="approximate"),
    NMMP(4, n_neighbors_within=5, search="approximate"),
    LPP(4, search="approximate"),
    LDE(4, search="approximate"),
    MFA(4, n_pairs=5, search="approximate"),
    NCA(4, solver="sgd", max_iter=1, search="approximate", random_state=0),
]


def name(method):
    return type(method).__name__


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=20_000)
    return (rng.normal(size=(20_000, 100)) + 3 * np.eye(5, 100)[y]).astype(np.float32), y


@pytest.mark.filterwarnings("ignore:max_iter=1")
@pytest.mark.parametrize("method", METHODS, ids=name)
class TestLarge:
    def test_a_memory_map_gives_what_the_array_does(self, rows, method, tmp_path):
        X, y = rows[0][:2000], rows[1][:2000]
        X.tofile(tmp_path / "rows")
        mapped = np.memmap(tmp_path / "rows", np.float32, "r", shape=X.shape)
        ours, theirs = clone(method).fit(mapped, y), clone(method).fit(X, y)
        np.testing.assert_array_equal(ours.components_, theirs.components_)
        np.testing.assert_array_equal(ours.transform(mapped), theirs.transform(X))

    def test_rows_in_float16_are_those_in_float32(self, rows, method):
        X, y = rows[0][:2000].astype(np.float16), rows[1][:2000]
        ours, theirs = clone(method).fit(X, y), clone(method).fit(X.astype(np.float32), y)
        np.testing.assert_array_equal(ours.components_, theirs.components_)
        assert ours.components_.dtype == ours.transform(X).dtype == np.float32

    def test_rows_in_float32_are_not_copied(self, rows, method, monkeypatch):
        """Beside lists, graphs and blocks, which are made small here, nothing of the size of X is held."""
        if isinstance(method, NCA):
            pytest.skip("a start is found on 10,000 rows, which are copied: see test_nca_sgd.py")
        X, y = np.repeat(rows[0], 6, axis=1), rows[1]
        for module in ("scatter", "_array", "neighbors.ivf", "estimators._minibatches"):
            blocks = __import__(f"nearkin.{module}", fromlist=["row_blocks"])
            monkeypatch.setattr(blocks, "row_blocks", lambda n, width, entries=2**18: small(n, width, entries))
        monkeypatch.setattr(ivf, "SAMPLE", 2000)
        clone(method).fit(X[:500], y[:500])  # what is imported and kept once
        tracemalloc.start()
        clone(method).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < X.nbytes


def small(n, width, entries):
    step = max(1, min(entries, 2**18) // max(1, width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
