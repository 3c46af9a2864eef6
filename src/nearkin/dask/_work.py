"""The tasks of one fit on a cluster: how they are given out, added up, and gone when the fit is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import reduce
from operator import add
from typing import Any
from weakref import WeakSet

from dask.sizeof import sizeof
from distributed import Client, Future, get_client

FAN_IN = 8  # sums that are added by one task
LARGE = 50_000  # bytes of an argument of many tasks from which on it travels by itself


class Sums(tuple):
    """Several sums under way: they add entry by entry."""

    def __add__(self, other: tuple) -> Sums:
        return Sums(map(add, self, other))


class Sized:
    """A dataclass that tells Dask how much memory its fields take: Dask moves and spills results by their size."""

    def __sizeof__(self) -> int:
        return sum(sizeof(vars(value) if is_dataclass(value) else value) for value in vars(self).values())


def itself(value: Any) -> Any:
    """Return a value."""
    return value


def added(parts: Sequence[Any]) -> Any:
    """Return the sum of the parts, from the first to the last."""
    return reduce(add, parts)


class Work:
    """The tasks of one fit; as a context, it takes back from the cluster whatever is left of them at its end.

    State travels as arguments of tasks and nothing is scattered: a result lost with its worker is computed again.

    Parameters
    ----------
    client : distributed.Client or None
        None takes the current one.
    """

    def __init__(self, client: Client | None) -> None:
        try:
            self.client = get_client() if client is None else client
        except ValueError as error:
            raise ValueError(
                "client is None and no Dask client is open: open one, e.g. client = distributed.Client()."
            ) from error
        if not isinstance(self.client, Client):
            raise TypeError(f"client must be a distributed.Client, got {client!r} ({type(client).__name__}).")
        if self.client.asynchronous:
            raise ValueError("client is asynchronous, and fit waits for results: pass a Client(asynchronous=False).")
        self._given_out: WeakSet[Future] = WeakSet()

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: Any) -> None:
        for future in list(self._given_out):  # a traceback may keep hold of some: let them go even so
            future.release()

    def compute(self, blocks: Sequence[Any]) -> list[Future]:
        """Give out delayed values, all in one graph: what they have in common is computed once."""
        return self._noted(self.client.compute(list(blocks)))

    def map(self, function: Callable, *arguments: Sequence[Any], **fixed: Any) -> list[Future]:
        """Give out a task for every place of the lists of arguments.

        A large argument that they share becomes a task of its own. Dask would make one, too, but under the name of the
        argument: two maps at a time would share the value of the first.
        """
        shared = {name: self.submit(itself, value) if sizeof(value) > LARGE else value for name, value in fixed.items()}
        return self._noted(self.client.map(function, *arguments, pure=False, **shared))

    def submit(self, function: Callable, *arguments: Any, **fixed: Any) -> Future:
        """Give out one task; arguments may be lists of futures."""
        return self._noted([self.client.submit(function, *arguments, pure=False, **fixed)])[0]

    def sum(self, parts: Sequence[Future], add: Callable = added) -> Future:
        """Give out the sum of the results, in a tree that the number of parts alone decides: the same to the bit."""
        while len(parts) > 1:
            parts = [self.submit(add, list(parts[at : at + FAN_IN])) for at in range(0, len(parts), FAN_IN)]
        return parts[0]

    def total(self, parts: Sequence[Future], add: Callable = added) -> Any:
        """Return the sum of the results, added by the workers."""
        return self.client.gather(self.sum(parts, add))

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results, in order: only of tasks whose results are small."""
        return self.client.gather(list(futures))

    def n_threads(self) -> int:
        """Return how many threads the workers have."""
        return max(1, sum(self.client.nthreads().values()))

    def memory(self) -> int:
        """Return how many bytes the workers may use, 0 where they have no limit."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["memory_limit"] or 0 for worker in workers)

    def _noted(self, futures: list[Future]) -> list[Future]:
        self._given_out.update(futures)
        return futures
