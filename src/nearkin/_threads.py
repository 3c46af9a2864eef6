"""Threads: mapping over items in as many as BLAS may use, while BLAS itself uses one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, reduce
from multiprocessing import resource_tracker
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

FEW_ENTRIES = 2**18  # with fewer, one thread is faster than two
# the number of threads of `parallel_map` while BLAS is limited to one; otherwise 0
_threads: ContextVar[int] = ContextVar("threads", default=0)

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], work: int
) -> list[Result]:
    """Return `function` of every item, in as many threads as BLAS may use; BLAS itself uses one.

    `work`, the total number of array entries touched, decides whether threads pay off. The threads
    of BLAS itself would be slower: when idle, they keep spinning for a while on cores that other
    items need.
    """
    with blas_in_one_thread() as n:
        threads = 1 if work < FEW_ENTRIES else n
        if threads == 1:
            return [function(item) for item in items]
        with executor(threads) as workers:
            return list(workers.map(function, items))


def parallel_sum(
    term: Callable[[Item], np.ndarray], items: Sequence[Item], work: int
) -> np.ndarray:
    """Return the sum of the terms of at least one item; every thread sums its share."""
    sums = parallel_map(lambda share: reduce(np.add, map(term, share)), shares(items), work)
    return reduce(np.add, sums)


def shares(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Split items into one part per thread; a thread sums the results of its part."""
    t = n_threads()
    return [items[start::t] for start in range(min(t, len(items)))]


def executor(n_threads: int) -> ThreadPoolExecutor:
    """Return threads in which `parallel_map` uses no further threads."""
    return ThreadPoolExecutor(n_threads, initializer=_threads.set, initargs=(1,))


@contextmanager
def blas_in_one_thread() -> Iterator[int]:
    """Limit BLAS to one thread, and yield the number of threads for `parallel_map`.

    Querying and limiting the libraries takes half a millisecond: code that calls `parallel_map`
    many times with little work should enter this context once, around all calls.
    """
    if n := _threads.get():
        yield n
        return
    with _blas_limit as n:
        before = _threads.set(n)
        try:
            yield n
        finally:
            _threads.reset(before)


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and `parallel_map` to one thread."""
    before = _threads.set(1)
    try:
        with _blas_limit, thread_pools().limit(limits=1, user_api="openmp"):
            yield
    finally:
        _threads.reset(before)


def n_threads() -> int:
    """Return the number of threads that BLAS may use here."""
    return _threads.get() or _blas_limit.n_threads()


class _BlasLimit:
    """Limits BLAS to one thread from the first entry to the last exit, in all Python threads.

    The number of threads of BLAS belongs to the process. If every entry restored what it found, a
    second one would find one thread, and restore it if it was the last to leave.
    """

    def __init__(self) -> None:
        self._lock, self._entries, self._n_threads = Lock(), 0, 1

    def n_threads(self) -> int:
        """Return the number of threads of BLAS, while it is limited that before the first entry."""
        with self._lock:
            if not self._entries:
                blas = thread_pools().select(user_api="blas")
                self._n_threads = max([1, *(library["num_threads"] for library in blas.info())])
            return self._n_threads

    def __enter__(self) -> int:
        n_threads = self.n_threads()
        with self._lock:
            if not self._entries:
                self._limiter = thread_pools().limit(limits=1, user_api="blas")
                self._disown()
            self._entries += 1
        return n_threads

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entries -= 1
            if not self._entries:
                self._limiter.restore_original_limits()
                self._disown()

    def _disown(self) -> None:
        """Let any thread set the next limit; threadpoolctl 3.8 only lets that of the last one."""
        for library in thread_pools().lib_controllers:
            getattr(library, "clear_controlling_thread", lambda: None)()


_blas_limit = _BlasLimit()


@cache
def thread_pools() -> ThreadpoolController:
    """Return the threaded libraries, for setting limits; finding them takes milliseconds."""
    return ThreadpoolController()


# Processes that Ctrl-C does not reach.


@contextmanager
def deaf_processes() -> Iterator[None]:
    """Start processes that Ctrl-C and the closing of the terminal do not reach.

    The parent process ends them. It handles a signal that arrives in this context at the end of the
    context, so that none is lost and no process is half started.
    """
    deaf: list[int] = [signal.SIGINT, signal.SIGHUP]
    late: list[int] = []

    def postpone(number: int, frame: Any) -> None:
        late.append(number)

    # Python 3.11 starts it with the first process, and then unblocks SIGINT
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, deaf)  # processes inherit this
    handlers = dict[int, Any]()
    with suppress(ValueError):  # not the main thread
        for number in (*deaf, signal.SIGTERM):
            handlers[number] = signal.signal(number, postpone)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in late:
            signal.raise_signal(number)
