"""What happens when a worker dies, a fit is interrupted, or a task fails."""

import os
import signal
import threading
import time
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from distributed.utils import key_split

from nearkin.dask import DaskDNE, DaskLPP, DaskNCA, nearest_labels
from nearkin.dask.table import Work
from nearkin.objectives.loss import FLOAT64_ROWS

from .conftest import N_WORKERS, blocks, da, distributed

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
        self.address, self.task, self.action = address, task, action

    def run(self):
        with distributed.Client(self.address, set_as_default=False) as observer:
            for _ in range(3000):
                if self.task in tasks(observer)[1]:
                    self.action(observer)
                    return
                time.sleep(0.01)


class Deaths(distributed.SchedulerPlugin):
    """Kills every worker of a cluster once, one after the other; counts how often tasks are done.

    A worker is killed when all are there: its nanny starts another, which knows nothing.
    """

    def __init__(self, client):
        self.client, self.scheduler = client, client.cluster.scheduler
        self.alive = client.run(os.getpid)  # by address, of those that are to die
        self.done = Counter()  # by the key of the task
        self.needed = {}  # the tasks of which a task takes the results
        self.scheduler.add_plugin(self)

    def transition(self, key, start, finish, *args, **kwargs):
        if (start, finish) == ("processing", "memory"):
            self.done[key] += 1
            self.needed[key] = {task.key for task in self.scheduler.tasks[key].dependencies}

    def kill_one(self):
        if not self.alive:
            return
        self.client.wait_for_workers(N_WORKERS, timeout=60)
        address, pid = self.alive.popitem()
        os.kill(pid, signal.SIGKILL)
        while address in self.scheduler.workers:
            time.sleep(0.01)

    def behind(self, tasks):
        """Return some tasks and all that they need, directly or not."""
        found, ahead = set(), list(tasks)
        while ahead:
            if (task := ahead.pop()) not in found:
                found.add(task)
                ahead += self.needed[task]
        return found

    def check(self, n_tasks):
        """Assert that all have died, and that of n_tasks only those were done again whose results a
        death had cost, or that these needed: once for each death.
        """
        assert not self.alive
        lost = Counter()
        for _, event in self.client.get_events("all"):
            if event.get("action") == "remove-worker":
                tasks = event["lost-computed-tasks"] | event["processing-tasks"]
                lost.update(self.behind(tasks))
        assert len(self.done) == n_tasks
        again = self.done - Counter(list(self.done))
        assert again
        assert again <= lost
        assert nothing_is_left(self.client)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "n_blocks", "moments"),
    [
        (DaskDNE(4), 12, {"search_block": (5, 11), "add_differences": (3, 10)}),
        pytest.param(
            DaskDNE(4, search="approximate"),
            12,
            {"join": (6,), "search_block": (9, 40), "add_differences": (6,)},
            marks=pytest.mark.skipif(not HAS_FAISS, reason=""),
        ),
        (
            DaskNCA(2, objective="log_likelihood", max_iter=2, random_state=0),
            6,
            {"taken": (2, 3, 5, 7)},
        ),
    ],
    ids=["exact", "approximate", "NCA"],
)
def test_workers_that_die_change_no_bit_of_a_map(model, n_blocks, moments, processes, monkeypatch):
    """They die one after the other in a fit: when a task is submitted for the fifth time, say.

    NCA computes in float32, with two epochs of three samples, fetched by six tasks each.
    """
    monkeypatch.setattr("nearkin.dask.nca.INIT_ROWS", 800)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, FLOAT64_ROWS + 400)
    X = rng.standard_normal((5, 10))[y] + rng.standard_normal((len(y), 10))
    X, y = blocks(X, y, (len(y) // n_blocks,) * n_blocks)
    deaths = Deaths(processes)
    undisturbed = model.fit(X, y, client=processes).components_
    n_tasks = deaths.done.total()
    deaths.done.clear()
    track, submitted = Work._tracked, Counter()

    def tracked(work, futures):
        task = key_split(futures[0].key)
        submitted[task] += 1
        if submitted[task] in moments.get(task, ()):
            deaths.kill_one()
        return track(work, futures)

    monkeypatch.setattr(Work, "_tracked", tracked)
    components = model.fit(X, y, client=processes).components_
    np.testing.assert_array_equal(components, undisturbed)
    deaths.check(n_tasks)


@pytest.mark.long
def test_workers_that_die_change_no_vote(processes, data):
    """They die when blocks have voted that are not merged yet."""
    X, y = blocks(*data, (10,) * 30)
    queries = X[:50].rechunk((50, -1))
    deaths = Deaths(processes)
    undisturbed = nearest_labels(X, y, queries, 3, client=processes)
    n_tasks = deaths.done.total()
    deaths.done.clear()
    near = nearest_labels(X, y, queries, 3, client=processes, progress=lambda *_: deaths.kill_one())
    np.testing.assert_array_equal(near.labels, undisturbed.labels)
    np.testing.assert_array_equal(near.distances, undisturbed.distances)
    deaths.check(n_tasks)


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


@pytest.mark.long
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


@pytest.mark.slow
def test_an_interrupted_descent_keeps_its_map_and_leaves_nothing_behind(client, data, monkeypatch):
    import nearkin.dask.nca

    submit, n_samples = nearkin.dask.nca.Work.map, []

    def interrupted(work, function, *arguments, **fixed):
        futures = submit(work, function, *arguments, **fixed)
        if function.__name__ == "taken":
            n_samples.append(1)
            if len(n_samples) == 8:
                raise KeyboardInterrupt
        return futures

    monkeypatch.setattr(nearkin.dask.nca.Work, "map", interrupted)
    monkeypatch.setattr(nearkin.dask.nca, "INIT_ROWS", 60)
    nca = DaskNCA(2, init="pca")
    with pytest.raises(KeyboardInterrupt) as caught:
        nca.fit(*blocks(*data, (150, 150)))
    assert caught.tb is not None
    assert nothing_is_left(client)
    assert nca.n_iter_ > 0
    assert nca.to_local().transform(data[0]).shape == (300, 2)


@pytest.mark.slow
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
