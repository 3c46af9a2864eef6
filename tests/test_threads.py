"""BLAS uses one thread while rows are mapped in threads, and its own number afterwards."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import nearkin
from nearkin import LDE
from nearkin._threads import (
    blas_in_one_thread,
    in_one_thread,
    n_threads,
    parallel_map,
    thread_pools,
)


@pytest.fixture(autouse=True)
def three_threads():
    with threadpool_limits(3, user_api="blas"):
        # scikit-learn and threadpoolctl let this thread alone change them until it gives way
        for library in thread_pools().lib_controllers:
            getattr(library, "clear_controlling_thread", lambda: None)()
        yield


def blas_threads():
    """The numbers of threads of NumPy's and SciPy's libraries.

    That of faiss, which another test may have loaded, has a number for each thread.
    """
    libraries = thread_pools().select(user_api="blas").info()
    return {one["num_threads"] for one in libraries if one.get("threading_layer") != "openmp"}


class Inside:
    """A thread that stays in a context until it is told to leave, with an error if requested."""

    def __init__(self, executor, context, *, fails=False):
        self.entered, self._leave, self._fails = Event(), Event(), fails
        self._done = executor.submit(self._stay, context)
        assert self.entered.wait(60)

    def _stay(self, context):
        with context() as self.n_threads:
            self.entered.set()
            self._leave.wait(60)
            if self._fails:
                raise ArithmeticError

    def leave(self):
        self._leave.set()
        assert isinstance(self._done.exception(60), ArithmeticError) == self._fails


@pytest.mark.parametrize("first_out", [0, 1])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("context", [blas_in_one_thread, in_one_thread])
def test_threads_that_overlap_leave_blas_as_it_was(context, fails, first_out):
    with ThreadPoolExecutor(2) as executor:
        threads = [Inside(executor, context, fails=fails) for _ in range(2)]
        assert blas_threads() == {1}
        threads.pop(first_out).leave()
        assert blas_threads() == {1}
        threads.pop().leave()
        assert blas_threads() == {3}
        again = Inside(executor, context)
        assert blas_threads() == {1}
        again.leave()
    assert blas_threads() == {3}


def test_every_thread_maps_in_as_many_threads_as_without_the_other():
    with ThreadPoolExecutor(2) as executor:
        threads = [Inside(executor, blas_in_one_thread) for _ in range(2)]
        assert [thread.n_threads for thread in threads] == [3, 3]
        assert n_threads() == 3
        for thread in threads:
            thread.leave()


def test_what_an_item_maps_stays_in_its_thread():
    barrier = Barrier(3)

    def function(item):
        barrier.wait(60)  # the three are threads
        return n_threads()

    assert parallel_map(function, range(3), 2**30) == [1, 1, 1]


def test_fits_that_overlap_leave_blas_as_it_was():
    """Also where scikit-learn, which restores what it finds, searches for neighbours."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    barrier = Barrier(2)

    def fit(seed):
        for _ in range(5):
            barrier.wait(60)
            LDE(2).fit(X, np.arange(300) % 2)

    with ThreadPoolExecutor(2) as executor:
        list(executor.map(fit, range(2)))
    assert blas_threads() == {3}


def test_blas_is_limited_in_one_place():
    package = Path(nearkin.__file__).parent
    limits = [
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if re.search(r"\.limit\(|threadpool_limits\((?!1, user_api=\"openmp\")", file.read_text())
    ]
    assert limits == ["_threads.py"]
