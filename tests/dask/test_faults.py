"""What happens when something happens: a worker dies, a fit is interrupted, a task fails."""

import os
import signal
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

from nearkin import DNE, NCA
from nearkin.dask import DaskDNE, DaskLPP, DaskNCA
from nearkin.dask.nca import NCAClusterRows

from .conftest import blocks, cluster, da, distributed

HAS_FAISS = find_spec("faiss") is not None


def tasks(client):
    """Return how many tasks the scheduler knows, by the name of their function."""

    def count(dask_scheduler):
        names = [task.prefix.name for task in dask_scheduler.tasks.values() if task.state == "memory"]
        return len(dask_scheduler.tasks), names

    return client.run_on_scheduler(count)


def nothing_is_left(client, seconds=10.0):
    end = time.monotonic() + seconds
    while tasks(client)[0] and time.monotonic() < end:
        time.sleep(0.05)
    return tasks(client)[0] == 0


class Meanwhile(threading.Thread):
    """Acts once results of a task lie on the workers."""

    def __init__(self, address, task, action):
        super().__init__(daemon=True)
        self.address, self.task, self.action, self.acted = address, task, action, threading.Event()

    def run(self):
        with distributed.Client(self.address, set_as_default=False) as observer:
            for _ in range(3000):
                if self.task in tasks(observer)[1]:
                    self.action(observer)
                    self.acted.set()
                    return
                time.sleep(0.01)


def kill_one(observer):
    """Kill the process of a worker that holds results: its nanny starts another, which knows nothing."""
    held = observer.has_what()
    address = max(held, key=lambda worker: len(held[worker]))
    os.kill(observer.run(os.getpid, workers=[address])[address], signal.SIGKILL)


def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
def test_a_killed_worker_changes_nothing(data):
    X, y = blocks(*data, (150,) * 4)
    approximate = [(DaskDNE(4, search="approximate"), DaskDNE(4, search="approximate"), "joined_rows")] * HAS_FAISS
    with cluster(3) as workers, distributed.Client(workers) as client:
        client.wait_for_workers(3)
        for local, dask_class, task in [
            (DNE(4, n_neighbors=3), DaskDNE(4, n_neighbors=3), "with_nearer"),
            (NCA(2, init="pca", max_iter=5), DaskNCA(2, init="pca", max_iter=5), "among_pairs"),
            *approximate,
        ]:
            killer = Meanwhile(client.scheduler.address, task, kill_one)
            killer.start()
            found = dask_class.fit(X, y, client=client)
            assert killer.acted.is_set()
            killer.join()
            expected = local.fit(*data) if isinstance(local, (DNE, NCA)) else local.fit(X, y, client=client)
            np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-6, atol=1e-8)
        assert nothing_is_left(client)


@pytest.fixture
def interruptible():
    """Let SIGINT raise KeyboardInterrupt, also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_fit_leaves_nothing_behind(client, data, interruptible):
    interrupter = Meanwhile(client.scheduler.address, "with_nearer", interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt) as caught:  # holds the traceback, and with it all that fit had in hand
        DaskDNE().fit(*blocks(*data, (100,) * 6))
    interrupter.join()
    assert caught.tb is not None
    assert nothing_is_left(client)


def test_an_interrupted_descent_keeps_the_best_and_leaves_nothing_behind(client, data, monkeypatch):
    evaluate, values = NCAClusterRows.objective, []

    def interrupted(rows, name, B, candidates):
        value, gradient = evaluate(rows, name, B, candidates)
        values.append(value)
        if len(values) == 4:
            rows.embedding(B)
            raise KeyboardInterrupt
        return value, gradient

    monkeypatch.setattr(NCAClusterRows, "objective", interrupted)
    nca = DaskNCA(2, init="pca")
    with pytest.raises(KeyboardInterrupt) as caught:
        nca.fit(*blocks(*data, (300, 300)))
    assert caught.tb is not None
    assert nothing_is_left(client)
    assert nca.n_iter_ > 0
    assert nca.to_local().transform(data[0]).shape == (600, 2)


def test_a_finished_and_a_failed_fit_leave_nothing_behind(client, data):
    X, y = blocks(*data, (100,) * 6)
    DaskLPP(2).fit(X)
    assert nothing_is_left(client)
    with pytest.raises(ValueError, match="X contains NaN") as caught:
        DaskDNE().fit(da.where(X > 2, np.nan, X), y)
    assert caught.tb is not None
    assert nothing_is_left(client)


def test_what_the_user_holds_stays(client, data):
    """A persisted X is the user's: the fit takes back its own tasks only."""
    X = blocks(*data, (300, 300))[0].persist()
    DaskLPP(2).fit(X)
    time.sleep(0.2)
    assert tasks(client)[0] == 2
    assert X.sum().compute() == pytest.approx(data[0].sum())
    del X
    assert nothing_is_left(client)
