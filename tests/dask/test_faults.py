"""What happens when a worker dies, a fit is interrupted, or a task fails."""

import os
import signal
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

from nearkin import DNE, NCA
from nearkin.dask import DaskDNE, DaskLPP, DaskNCA
from nearkin.dask.table import Work
from nearkin.estimators.descent_embedding import FLOAT64_ROWS

from .conftest import blocks, da, distributed

HAS_FAISS = find_spec("faiss") is not None


def tasks(client):
    """Return how many tasks the scheduler knows, and the names of the functions whose results lie
    on the workers.
    """

    def count(dask_scheduler):
        names = [
            task.prefix.name for task in dask_scheduler.tasks.values() if task.state == "memory"
        ]
        return len(dask_scheduler.tasks), names

    return client.run_on_scheduler(count)


def nothing_is_left(client, seconds=60.0):
    end = time.monotonic() + seconds
    while tasks(client)[0] and time.monotonic() < end:
        time.sleep(0.02)
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
    """Kill the process of a worker that holds results: its nanny starts another, which knows
    nothing.
    """
    held = observer.has_what()
    address = max(held, key=lambda worker: len(held[worker]))
    os.kill(observer.run(os.getpid, workers=[address])[address], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("local", "model", "task"),
    [
        (DNE(4, n_neighbors=3), DaskDNE(4, n_neighbors=3), "search_block"),
        (NCA(2, init="pca", max_iter=5), DaskNCA(2, init="pca", max_iter=5), "added_up"),
        pytest.param(
            None,
            DaskDNE(4, search="approximate"),
            "join",
            marks=[pytest.mark.skipif(not HAS_FAISS, reason="")],
        ),
    ],
    ids=["exact", "NCA", "approximate"],
)
def test_a_killed_worker_changes_nothing(local, model, task, processes, data):
    X, y = blocks(*data, (60,) * 5)
    processes.wait_for_workers(2)
    killer = Meanwhile(processes.scheduler.address, task, kill_one)
    killer.start()
    components = model.fit(X, y, client=processes).components_
    assert killer.acted.is_set()
    killer.join()
    expected = model.fit(X, y, client=processes) if local is None else local.fit(*data)
    np.testing.assert_allclose(components, expected.components_, rtol=1e-6, atol=1e-8)
    assert nothing_is_left(processes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("task", ["search_block", "added_up"])
def test_a_killed_worker_changes_no_bit_of_a_descent(task, processes, monkeypatch):
    """In float32, among candidates that are searched twice: another rounding would not stay small.

    A worker dies as a task is submitted for the tenth time: in the second search, the tenth step.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, FLOAT64_ROWS + 400)
    X = rng.standard_normal((5, 10))[y] + rng.standard_normal((len(y), 10))
    X, y = blocks(X, y, (len(y) // 4,) * 4)
    nca = DaskNCA(2, init="pca", objective="log_likelihood", n_candidates=20, max_iter=17)
    undisturbed = nca.fit(X, y, client=processes).components_
    submit, submitted = Work.map, []

    def kill_at_the_tenth(work, function, *arguments, **fixed):
        futures = submit(work, function, *arguments, **fixed)
        submitted.append(function.__name__)
        if function.__name__ == task and submitted.count(task) == 10:
            kill_one(processes)
        return futures

    monkeypatch.setattr(Work, "map", kill_at_the_tenth)
    components = nca.fit(X, y, client=processes).components_
    assert submitted.count(task) > 10
    np.testing.assert_array_equal(components, undisturbed)


@pytest.fixture
def interruptible():
    """Let SIGINT raise KeyboardInterrupt, also where the tests run in the background, which ignores
    it.

    Python swallows what is raised inside `__del__`, and a future is deleted every few milliseconds
    here: a signal that arrives there is sent again, as a user would press the keys again.
    """

    def interrupt(number, frame):
        while frame is not None:
            if frame.f_code.co_name == "__del__":
                threading.Timer(0.01, signal.raise_signal, [number]).start()
                return
            frame = frame.f_back
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_an_interrupted_fit_leaves_nothing_behind(processes, data, interruptible):
    interrupter = Meanwhile(
        processes.scheduler.address, "search_block", lambda _: os.kill(os.getpid(), signal.SIGINT)
    )
    interrupter.start()
    with pytest.raises(
        KeyboardInterrupt
    ) as caught:  # holds the traceback, and with it all that fit had in hand
        DaskDNE().fit(*blocks(*data, (50,) * 6), client=processes)
    interrupter.join()
    assert caught.tb is not None
    assert nothing_is_left(processes)


def test_an_interrupted_descent_keeps_the_best_and_leaves_nothing_behind(client, data, monkeypatch):
    import nearkin.dask.nca

    submit, n_evaluations = nearkin.dask.nca.Work.map, []

    def interrupted(work, function, *arguments, **fixed):
        futures = submit(work, function, *arguments, **fixed)
        if function.__name__ == "added_up":
            n_evaluations.append(1)
            if len(n_evaluations) == 4:
                raise KeyboardInterrupt
        return futures

    monkeypatch.setattr(nearkin.dask.nca.Work, "map", interrupted)
    nca = DaskNCA(2, init="pca")
    with pytest.raises(KeyboardInterrupt) as caught:
        nca.fit(*blocks(*data, (150, 150)))
    assert caught.tb is not None
    assert nothing_is_left(client)
    assert nca.n_iter_ > 0
    assert nca.to_local().transform(data[0]).shape == (300, 2)


def test_a_finished_and_a_failed_fit_leave_nothing_behind(client, data):
    X, y = blocks(*data, (100,) * 3)
    DaskLPP(2).fit(X)
    assert nothing_is_left(client)
    with pytest.raises(ValueError, match="X contains NaN") as caught:
        DaskDNE().fit(da.where(X > 2, np.nan, X), y)
    assert caught.tb is not None
    assert nothing_is_left(client)


def test_what_the_user_holds_stays(client, data):
    """A persisted X is the user's: the fit releases its own tasks only."""
    X = blocks(*data, (150, 150))[0].persist()
    DaskLPP(2).fit(X)
    time.sleep(0.2)
    assert tasks(client)[0] == 2
    assert X.sum().compute() == pytest.approx(data[0].sum())
    del X
    assert nothing_is_left(client)
