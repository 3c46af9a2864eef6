"""An index that all blocks share: rows are partitioned into lists of near ones, and lists lie side by side in blocks.

The lists are like those of one machine (`nearkin.neighbors.ivf`): each holds rows of one class; the classes of at most
64 rows share lists. Their centres are learned from some rows of every block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import getitem
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from ..neighbors.ivf import LISTS, PROBES, IVFSearch, n_dimensions
from ..neighbors.quantizer import CoarseQuantizer, import_faiss
from ..neighbors.search import SMALL_CLASS, members_of
from ._scatter import total_scatter
from ._search import members_by_class
from ._table import Block, Table
from ._work import Work, identity

PER_LIST = 20  # rows from which the centre of a list is learned


class SharedIndex(NamedTuple):
    """The lists of all blocks. A group is a class of more than 64 rows; the smaller classes form the last one.

    Attributes
    ----------
    centres : array of shape (n_lists, d), float32
    first : integer array of shape (n_groups + 1,)
        The number of the first list of every group, followed by n_lists.
    sizes : integer array of shape (n_lists,)
        How many rows are in every list.
    class_sizes, groups : integer arrays of shape (n_classes,)
        How many rows are in every class, and its group.
    projection : array of shape (p, d) or None
        To the few dimensions of the centres; None for the features themselves.
    n_probes : int
        How many lists are searched for a query, the nearest; more where they hold too few rows.
    n_rerank : int
        How many rows found there are ranked again by their distances in all features; 0 for the usual number.
    """

    centres: np.ndarray
    first: np.ndarray
    sizes: np.ndarray
    class_sizes: np.ndarray
    groups: np.ndarray
    projection: np.ndarray | None
    n_probes: int
    n_rerank: int

    def lists_of(self, group: int) -> slice:
        """Return the numbers of the lists of a group."""
        return slice(*self.first[group : group + 2])

    def project(self, X: np.ndarray) -> np.ndarray:
        """Return rows in the dimensions of the centres."""
        Z = X if self.projection is None else X @ self.projection.astype(X.dtype)
        return np.ascontiguousarray(Z, dtype=np.float32)

    def nearest_lists(self, Z: np.ndarray, lists: np.ndarray, n: int) -> np.ndarray:
        """Return the numbers of those n of some lists whose centres are nearest to projected rows."""
        coarse = import_faiss().IndexFlatL2(Z.shape[1])
        coarse.add(self.centres[lists])
        return lists[coarse.search(Z, n)[1]].astype(np.int32)


def partition(work: Work, table: Table, search: IVFSearch) -> Table:
    """Return the rows of a table in lists of near ones, in about as many blocks as before, of equal sizes.

    The table is used up: a block of it is released as soon as its rows have left. O(n L d) time for L lists in d
    dimensions; every row travels once.
    """
    n, p = table.shape
    d = n_dimensions(search.n_components, p)
    V = eigh(total_scatter(work, table), subset_by_index=[p - d, p - 1])[1] if d < p else None
    n_lists = search.n_lists or int(LISTS * n**0.5)
    none, large = np.empty(0, int), table.class_sizes > SMALL_CLASS
    groups = np.where(large, np.cumsum(large) - 1, large.sum())
    parameters = search.n_probes or PROBES, search.n_rerank
    index = SharedIndex(none, none, none, table.class_sizes, groups, V, *parameters)
    drawn = np.random.default_rng(0).random(n) < PER_LIST * n_lists / n
    drawn[np.unique(groups[table.codes], return_index=True)[1]] = True  # no group is without a row
    numbers = np.flatnonzero(drawn)
    parts = np.split(numbers, np.searchsorted(numbers, table.starts[1:-1]))
    samples = work.map(sample, table.blocks, parts, index=index)
    # k-means elsewhere may find other centres: a worker that dies must not take with it those by which rows have left
    index = work.results([work.submit(learn_centres, samples, index, n_lists=n_lists)])[0]
    lists = work.map(nearest_list, table.blocks, index=index)
    counts = np.array(work.results(work.map(np.bincount, lists, minlength=len(index.centres))))  # (n_blocks, n_lists)
    ends = np.cumsum(counts.sum(axis=0))
    index, n_blocks, pieces = work.submit(identity, index._replace(sizes=counts.sum(axis=0))), len(lists), []
    starts = [n * b // n_blocks for b in range(n_blocks + 1)]
    firsts = ends - counts.sum(axis=0) + np.cumsum(counts, axis=0) - counts  # where the rows of a list in a block begin
    for of_block in zip(table.blocks, lists, firsts, strict=True):
        cut = work.submit(by_lists, *of_block, starts=starts)
        pieces.append(work.map(getitem, [cut] * n_blocks, range(n_blocks)))
    table.blocks.clear()
    blocks = [
        work.submit(join, list(of_block), *span)
        for of_block, span in zip(zip(*pieces, strict=True), pairwise(starts), strict=True)
    ]
    spans = np.searchsorted(ends, np.column_stack([starts[:-1], np.array(starts[1:]) - 1]), side="right")
    return replace(table, blocks=blocks, starts=starts, index=index, spans=spans)


# Tasks.


def sample(block: Block, numbers: np.ndarray, *, index: SharedIndex) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a block, by their numbers, in few dimensions, and their groups."""
    chosen = numbers - block.start
    return index.project(block.X[chosen]), index.groups[block.codes[chosen]]


def learn_centres(samples: list[tuple[np.ndarray, np.ndarray]], index: SharedIndex, *, n_lists: int) -> SharedIndex:
    """Return an index with the centres that some rows of all blocks make."""
    Z, group = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    quantizer = CoarseQuantizer.of(Z, members_of(group), n_lists)
    return index._replace(centres=quantizer.centres, first=np.array(quantizer.first))


def nearest_list(block: Block, *, index: SharedIndex) -> np.ndarray:
    """Return the number of every row's list, the nearest of its group."""
    Z, lists, all_lists = index.project(block.X), np.empty(len(block.X), np.int32), np.arange(len(index.centres))
    for group, members in members_by_class(index.groups[block.codes]):
        lists[members] = index.nearest_lists(Z[members], all_lists[index.lists_of(group)], 1)[:, 0]
    return lists


def by_lists(block: Block, lists: np.ndarray, firsts: np.ndarray, *, starts: list[int]) -> list[Block]:
    """Cut a block into a piece for every new block, in which the lists lie one after the other.

    `firsts` says where the block's first row of every list comes.
    """
    order = np.argsort(lists, kind="stable")
    own = np.bincount(lists, minlength=len(firsts))
    position = np.arange(len(lists)) + (firsts - np.cumsum(own) + own)[lists[order]]
    pieces = np.split(order, np.searchsorted(position, starts[1:-1]))
    return [Block(block.X[i], block.codes[i], 0, lists[i], block.numbers[i]) for i in pieces]


def join(pieces: Sequence[Block], start: int, stop: int) -> Block:
    """Return the rows of a new block, whose first row has the number `start`, and the next block's `stop`."""
    fields = [[getattr(piece, name) for piece in pieces] for name in ("X", "codes", "lists", "numbers")]
    order = np.argsort(np.concatenate(fields[2]), kind="stable")
    if len(order) != stop - start:
        raise RuntimeError(
            f"Computed again, a block has {len(order)} rows instead of {stop - start}: workers round differently. "
            "Fit again, with workers of equal CPUs and equal numbers of threads."
        )
    X, codes, lists, numbers = (np.concatenate(parts)[order] for parts in fields)
    return Block(X, codes, start, lists, numbers)
