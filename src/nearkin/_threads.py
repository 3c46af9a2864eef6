"""Every core busy, each with tiles of its own.

BLAS with threads of its own does worse: its idle threads keep spinning for a while, on the cores that the tiles need.
Therefore everything large that a descent does in each iteration comes through here, where BLAS has one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

FEW_ENTRIES = 2**18  # below, one thread is quicker than two

Value = tuple[float, Any]


def in_threads(part: Callable[[Any], Value], items: Sequence[Any], work: int, *, one: bool = False) -> Value:
    """Return the sum of `part` over the items, cut among as many threads as BLAS may use, which itself uses one then.

    `one` leaves the threads to a library that is not NumPy.
    """
    if one:
        return part(items)
    threads = 1 if work < FEW_ENTRIES or len(items) < 2 else n_threads()
    with _controller().limit(limits=1, user_api="blas"):
        if threads == 1:
            return part(items)
        with ThreadPoolExecutor(threads) as executor:
            shares = [items[start::threads] for start in range(threads)]
            values, gradients = zip(*executor.map(part, shares), strict=True)
    return sum(values), sum(gradients)


def n_threads() -> int:
    """Return how many threads BLAS may use here."""
    return max([1, *(library["num_threads"] for library in _controller().select(user_api="blas").info())])


@cache
def _controller() -> ThreadpoolController:
    """Return the libraries that have threads; to look for them takes milliseconds."""
    return ThreadpoolController()
