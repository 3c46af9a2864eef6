"""A small cluster, none at all, and data without equal distances or eigenvalues."""

from types import SimpleNamespace

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
from dask import compute  # noqa: E402

from nearkin.dask.table import Work  # noqa: E402

N_WORKERS = 4
UNEVEN = (170, 0, 1, 129)


@pytest.fixture(scope="session")
def client():
    """Return the client of one worker in this process; it is the current one."""
    with distributed.Client(
        processes=False,
        n_workers=1,
        threads_per_worker=2,
        dashboard_address=":0",
        silence_logs="CRITICAL",
    ) as client:
        yield client


@pytest.fixture
def processes():
    """Return the client of four worker processes of one thread each; it is not the current one.

    Every test has its own: a nanny does not always bring back a worker that was killed.
    """
    with (
        distributed.LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs="CRITICAL",
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


class InlineWork(Work):
    """Tasks that run at once, in this thread: a future is a result."""

    def __init__(self):
        self.client = SimpleNamespace(nthreads=dict, gather=lambda results: results)
        self._futures = []  # none is left to release

    def persist(self, array):
        return array.persist(scheduler="synchronous")

    def compute(self, blocks):
        return list(compute(*blocks, scheduler="synchronous"))

    def map(self, function, *arguments, **fixed):
        return [function(*each, **fixed) for each in zip(*arguments, strict=True)]

    def submit(self, function, *arguments, **fixed):
        return function(*arguments, **fixed)

    def memory(self):
        return []


@pytest.fixture
def no_cluster(monkeypatch):
    """Let DaskNCA do its tasks in this thread: the scheduler of a cluster takes most of the time of
    small ones.
    """
    monkeypatch.setattr("nearkin.dask.nca.Work", lambda client: InlineWork())


@pytest.fixture(scope="session")
def data():
    """Return rows of five overlapping classes and their labels, as NumPy arrays."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 300)
    X = 1.5 * rng.standard_normal((5, 10))[y] + rng.standard_normal((300, 10)) * np.linspace(
        0.5, 1.5, 10
    )
    return X, y


def blocks(X, y, sizes=UNEVEN):
    """Return the arrays cut into blocks of these many rows."""
    return da.from_array(X, chunks=(sizes, X.shape[1])), da.from_array(y, chunks=(sizes,))
