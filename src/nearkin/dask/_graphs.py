"""From neighbour lists to a graph whose rows lie with the blocks: each block tells each other who lists whom.

A graph is symmetric, so an edge of two blocks is held by both. It is given as a future of `Edges` for every block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from distributed import Future

from ..graphs import LEAST_WEIGHT, scaled_weights
from ._search import Lists
from ._table import Table
from ._work import Sums, Work


class Edges(NamedTuple):
    """The edges of the rows of a block, by the number of the row at the other end.

    Attributes
    ----------
    i : integer array of shape (e,)
        Rows of the block: their places in it.
    j : integer array of shape (e,), ascending
        Rows at the other end: their numbers among all rows.
    w : array of shape (e,)
        Distances, or weights.
    """

    i: np.ndarray
    j: np.ndarray
    w: np.ndarray


def union(work: Work, table: Table, lists: list[Future]) -> list[Future]:
    """Tie rows if one lists the other (OR), at the distance listed."""
    return _joined(work, table, lists, both=False)


def mutual(work: Work, table: Table, lists: list[Future]) -> list[Future]:
    """Tie rows if each lists the other (AND)."""
    return _joined(work, table, lists, both=True)


def _joined(work: Work, table: Table, lists: list[Future], *, both: bool) -> list[Future]:
    graph = []
    for own, start, stop in zip(lists, table.starts, table.starts[1:], strict=False):
        told = work.map(listing, lists, table.starts[:-1], start=start, stop=stop)
        graph.append(work.submit(joined, own, told, both=both))
    return graph


def mean_squared_length(work: Work, lists: list[Future]) -> float:
    """Return the mean of d^2 over all listed neighbours, the default bandwidth of a heat kernel."""
    total, count = work.total(work.map(squared_lengths, lists))
    return total / count


# Tasks.


def listing(lists: Lists, first: int, *, start: int, stop: int) -> Edges:
    """Return which of the rows from `start` to `stop` are listed by a block whose first row is `first`."""
    inside = (lists.neighbors >= start) & (lists.neighbors < stop)
    return Edges(lists.neighbors[inside] - start, first + np.nonzero(inside)[0], lists.distances[inside])


def joined(own: Lists, told: list[Edges], *, both: bool) -> Edges:
    """Return the edges of a block, from what its rows list and from where they are listed."""
    listed = own.neighbors >= 0
    parts = [Edges(np.nonzero(listed)[0], own.neighbors[listed], own.distances[listed]), *told]
    i, j, w = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((i, j))
    i, j, w = i[order], j[order], w[order]
    first = np.flatnonzero(np.diff(i, prepend=-1) | np.diff(j, prepend=-1))  # of one or two entries for a pair
    if not len(first):
        return Edges(i, j, w)
    w = np.minimum.reduceat(w, first)
    kept = np.diff(first, append=len(i)) == 2 if both else np.ones(len(first), dtype=bool)
    return Edges(i[first][kept], j[first][kept], w[kept])


def binary(edges: Edges) -> Edges:
    """Return weight 1 for every edge."""
    return edges._replace(w=np.ones(len(edges.w)))


def heat_kernel(edges: Edges, *, bandwidth: float) -> Edges:
    """Return `exp(-d^2 / t)` for every edge; see `nearkin.graphs.heat_kernel` for what is next to nothing."""
    weights = scaled_weights(np.square(edges.w, dtype=np.float64), bandwidth)
    return edges._replace(w=np.where(weights < LEAST_WEIGHT, 0.0, weights))


def signed(pull: Edges, push: Edges) -> Edges:
    """Return the edges of two graphs in one: weight 1 for those that attract, -1 for those that repel."""
    j = np.concatenate([pull.j, push.j])
    order = np.argsort(j, kind="stable")
    w = np.repeat([1.0, -1.0], [len(pull.j), len(push.j)])
    return Edges(np.concatenate([pull.i, push.i])[order], j[order], w[order])


def squared_lengths(lists: Lists) -> Sums:
    """Return the sum of the squared distances of a block's lists, and their number."""
    d = lists.distances[lists.neighbors >= 0].astype(np.float64)
    return Sums((float(d @ d), len(d)))
