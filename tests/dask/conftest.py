"""A small cluster, and data that leave no choice: no distances tie, and no eigenvalues."""

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


def cluster(n_workers):
    """Return processes of one thread each, as on a real cluster; any port will do."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs="CRITICAL"
    )


@pytest.fixture(scope="session")
def client():
    """Return the client of two workers; it is the current one."""
    with cluster(2) as workers, distributed.Client(workers) as client:
        yield client


@pytest.fixture(scope="session")
def data():
    """Return rows of five overlapping classes and their labels, as NumPy arrays."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 600)
    X = 1.5 * rng.standard_normal((5, 10))[y] + rng.standard_normal((600, 10)) * np.linspace(0.5, 1.5, 10)
    return X, y


def blocks(X, y, sizes):
    """Return the arrays cut into blocks of these many rows."""
    return da.from_array(X, chunks=(sizes, X.shape[1])), da.from_array(y, chunks=(sizes,))
