"""The tasks of one fit on a cluster: submitted, summed in trees, and released when the fit ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from dask.sizeof import sizeof
from distributed import Client, Future, futures_of, get_client

FAN_IN = 8  # sums that one task adds
LARGE = 50_000  # bytes of a shared argument from which on it becomes a task of its own


def identity(value: Any) -> Any:
    """Return a value."""
    return value


class Work:
    """The tasks of one fit; as a context, it releases on exit whatever is left of them on the cluster.

    State travels as arguments of tasks and nothing is scattered: a result lost with its worker is computed again.

    Parameters
    ----------
    client : distributed.Client or None
        None takes the current one.
    """

    def __init__(self, client: Client | None) -> None:
        self.client = get_client() if client is None else client
        if not isinstance(self.client, Client) or self.client.asynchronous:
            raise TypeError(f"client must be a distributed.Client that is not asynchronous, got {client!r}.")
        self._futures: WeakSet[Future] = WeakSet()

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: Any) -> None:
        for future in list(self._futures):  # a traceback may hold some of them: release those, too
            future.release()

    def persist(self, array: Any) -> Any:
        """Return a Dask array whose blocks the workers keep."""
        array = self.client.persist(array)
        self._tracked(futures_of(array))
        return array

    def value(self, array: Any) -> Any:
        """Return what a small Dask array holds."""
        return self.client.gather(self.compute([array])[0])

    def compute(self, blocks: Sequence[Any]) -> list[Future]:
        """Submit delayed values in one graph: what they have in common is computed once."""
        return self._tracked(self.client.compute(list(blocks)))

    def map(self, function: Callable, *arguments: Sequence[Any], **fixed: Any) -> list[Future]:
        """Submit a task for every position of the lists of arguments.

        A large shared argument becomes a task of its own. Dask would make one, too, but name it after the parameter:
        two maps at a time would share the value of the first.
        """
        shared = {
            name: self.submit(identity, value) if sizeof(value) > LARGE else value for name, value in fixed.items()
        }
        return self._tracked(self.client.map(function, *arguments, pure=False, **shared))

    def submit(self, function: Callable, *arguments: Any, **fixed: Any) -> Future:
        """Submit one task; arguments may be lists of futures."""
        return self._tracked([self.client.submit(function, *arguments, pure=False, **fixed)])[0]

    def reduce(self, parts: Sequence[Future], add: Callable = sum) -> Future:
        """Submit the sum of the results, in a tree that depends on their number alone: the same to the bit."""
        while len(parts) > 1:
            parts = [self.submit(add, list(parts[at : at + FAN_IN])) for at in range(0, len(parts), FAN_IN)]
        return parts[0]

    def total(self, parts: Sequence[Future], add: Callable = sum) -> Any:
        """Return the sum of the results, added by the workers."""
        return self.client.gather(self.reduce(parts, add))

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results, in order: only for tasks whose results are small."""
        return self.client.gather(list(futures))

    def memory(self) -> int:
        """Return how many bytes the workers may use, 0 where they have no limit."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["memory_limit"] or 0 for worker in workers)

    def _tracked(self, futures: list[Future]) -> list[Future]:
        self._futures.update(futures)
        return futures
