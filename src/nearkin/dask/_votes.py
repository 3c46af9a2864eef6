"""The labels of the nearest rows: every block reports those of its own, the nearest of all are merged in a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import delayed
from distributed import as_completed

from ..neighbors import EXACT
from ._work import FAN_IN, Work


class Near(NamedTuple):
    """The labels of the nearest rows of some queries, nearest first.

    Attributes
    ----------
    labels, distances : arrays of shape (q, k)
        Fewer columns where there are fewer rows.
    """

    labels: np.ndarray
    distances: np.ndarray


def nearest_labels(
    X: da.Array,
    y: da.Array,
    queries: da.Array,
    k: int,
    *,
    client: Any = None,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> Near:
    """Return the labels of the k rows of X that are nearest to every query, by exact search.

    Parameters
    ----------
    X : Dask array of shape (n, m)
    y : Dask array of shape (n,), in the blocks of X
    queries : Dask array of shape (q, m), in one block
    k : int
    client : distributed.Client, default=None
    progress : callable, optional
        Called as `progress(rows that have been searched, n)`.

    Notes
    -----
    O(n q m) time; a worker holds the queries and one block, which is released as soon as it was searched. q k numbers
    of every block are merged by the workers as they come, q k come to the client. Of equally near rows those of earlier
    blocks count.
    """
    query = queries.to_delayed().item()
    blocks = zip(X.to_delayed().ravel(), y.to_delayed().ravel(), X.chunks[0], strict=True)
    with Work(client) as work:
        lazy = [delayed(labels_in)(block, labels, query, k) for block, labels, size in blocks if size]
        merged = lazy
        while len(merged) > 1:
            merged = [delayed(nearest_of)(merged[at : at + FAN_IN], k) for at in range(0, len(merged), FAN_IN)]
        *parts, nearest = work.compute([*lazy, *merged])  # one graph: blocks that are merged are near in time
        sizes, done = dict(zip([part.key for part in parts], filter(None, X.chunks[0]), strict=True)), 0
        finished = as_completed(parts)
        del parts  # a result lives as long as its future: each is released once it is merged
        for part in finished:
            done += sizes[part.key]
            progress(done, X.shape[0])
        return work.results([nearest])[0]


# Tasks.


def labels_in(block: np.ndarray, labels: np.ndarray, queries: np.ndarray, k: int) -> Near:
    """Return the labels of the nearest rows of a block."""
    k = min(k, len(block))
    distances, at = EXACT.index(block, k)(queries, k)
    return Near(labels[at], distances)


def nearest_of(parts: list[Near], k: int) -> Near:
    """Return the nearest of several blocks, which are in order."""
    labels, distances = (np.hstack(arrays) for arrays in zip(*parts, strict=True))
    first = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Near(np.take_along_axis(labels, first, axis=1), np.take_along_axis(distances, first, axis=1))
