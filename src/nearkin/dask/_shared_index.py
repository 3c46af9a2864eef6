"""An index that all blocks share: rows are partitioned into lists of near ones, and lists lie side by side in blocks.

The lists are like those of one machine (`nearkin.neighbors.ivf`): each holds rows of one class; the classes of at most
64 rows share lists. Their centres are learned from some rows of every block.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..linalg import eigh
from ..neighbors.ivf import LISTS, PROBES, IVFSearch, n_dimensions
from ..neighbors.quantizer import CoarseQuantizer, import_faiss
from ..neighbors.search import SMALL_CLASS, members_of
from ._scatter import total_scatter
from ._search import members_by_class
from ._table import Block, Table, taken
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
    V = eigh(total_scatter(work, table), subset_by_index=(p - d, p - 1))[1] if d < p else None
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
    lists = np.concatenate(work.results(work.map(nearest_list, table.blocks, index=index)))
    index = work.submit(identity, index._replace(sizes=np.bincount(lists, minlength=len(index.centres))))
    order, n_blocks = np.argsort(lists, kind="stable"), len(table.blocks)
    starts = [n * b // n_blocks for b in range(n_blocks + 1)]
    target = np.empty(n, int)  # the new block of every row
    target[order] = np.repeat(np.arange(n_blocks), np.diff(starts))
    pieces = []
    for block, (start, stop) in zip(table.blocks, pairwise(table.starts), strict=True):
        parts = [start + np.flatnonzero(target[start:stop] == b) for b in range(n_blocks)]
        pieces.append(work.map(taken, [block] * n_blocks, parts))
    table.blocks.clear()
    blocks = [
        work.submit(join, list(of_block), start, order[start:stop], lists[order[start:stop]])
        for of_block, (start, stop) in zip(zip(*pieces, strict=True), pairwise(starts), strict=True)
    ]
    spans = lists[order[np.column_stack([starts[:-1], np.array(starts[1:]) - 1])]]
    return replace(table, blocks=blocks, starts=starts, index=index, spans=spans)


# Tasks.


def sample(block: Block, numbers: np.ndarray, *, index: SharedIndex) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a block, by their numbers, in few dimensions, and their groups."""
    block = taken(block, numbers)
    return index.project(block.X), index.groups[block.codes]


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


def join(pieces: list[Block], start: int, numbers: np.ndarray, lists: np.ndarray) -> Block:
    """Return the rows of a new block in the order of their `numbers`, from pieces in which these ascend."""
    at = np.searchsorted(np.sort(numbers), numbers)
    X, codes = (np.concatenate([getattr(piece, name) for piece in pieces])[at] for name in ("X", "codes"))
    return Block(X, codes, start, lists, numbers)
