"""A parallel map over threads, each of which calls BLAS with one thread.

BLAS with threads of its own does worse: its idle threads keep spinning for a while, on the cores that the tiles need.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

FEW_ENTRIES = 2**18  # below, one thread is quicker than two
_threads: ContextVar[int] = ContextVar("threads", default=0)  # how many there are, while BLAS is held to one

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(function: Callable[[Item], Result], items: Iterable[Item], work: int) -> list[Result]:
    """Return `function` of every item, by as many threads as BLAS may use, which itself uses one meanwhile.

    `work`, in array entries touched in all, decides whether threads are worth their while.
    """
    with blas_in_one_thread() as n:
        threads = 1 if work < FEW_ENTRIES else n
        if threads == 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(threads) as executor:
            return list(executor.map(function, items))


@contextmanager
def blas_in_one_thread() -> Iterator[int]:
    """Hold BLAS to one thread, and yield how many threads there are for `parallel_map`.

    To ask and to tell the libraries takes half a millisecond: what calls `parallel_map` many times with little work
    does so once, around all calls.
    """
    if _threads.get():
        yield _threads.get()
        return
    before = _threads.set(n_threads())
    try:
        with thread_pools().limit(limits=1, user_api="blas"):
            yield _threads.get()
    finally:
        _threads.reset(before)


def shares(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Cut items into one part a thread, each of which adds up what it computes."""
    t = n_threads()
    return [items[start::t] for start in range(min(t, len(items)))]


def n_threads() -> int:
    """Return how many threads BLAS may use here."""
    known = _threads.get()
    return known or max([1, *(library["num_threads"] for library in thread_pools().select(user_api="blas").info())])


@cache
def thread_pools() -> ThreadpoolController:
    """Return the libraries with threads, for a limit on them; to find them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def deaf_processes() -> Iterator[None]:
    """Ignore Ctrl-C and the end of the terminal, as then do the processes that start here: the parent ends them."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
    try:
        before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    except ValueError:  # not the main thread
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
