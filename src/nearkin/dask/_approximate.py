"""The search among blocks: exact, or approximate by the shared index, in which few lists of few blocks are searched.

An approximate search compares a query with the same rows as on one machine, however many blocks there are, and a block
meets only those that hold lists of its queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from distributed import Future

from .._blocks import row_blocks
from ..neighbors import EXACT, Searcher, searcher
from ..neighbors.ivf import IVFSearch, n_ranked
from ..neighbors.quantizer import import_faiss
from ..neighbors.search import SMALL_CLASS
from ._search import Found, Lists, members_by_class, merge, nearest_exact, per_row, same_class_candidates
from ._shared_index import SharedIndex, partition
from ._table import Block, Table
from ._work import Work

ROUNDING = 1e-3  # relative, of a distance in few dimensions


def block_searcher(search: Any, n: int) -> Searcher:
    """Return the local searcher that says how blocks are searched: EXACT, or an IVFSearch for the shared index."""
    found = searcher(search, n)
    if (found is not EXACT and not isinstance(found, IVFSearch)) or found.recall is not None:
        raise ValueError(
            "search must be 'exact', 'approximate', 'auto' or an ApproximateSearch for Dask arrays, without "
            f"check_recall (check it on a sample, with the local class), got {search!r}."
        )
    return found


def searchable(work: Work, table: Table, search: Searcher) -> Table:
    """Return a table in the order in which its neighbours are searched: as it is, or partitioned (once)."""
    if table.index is not None or not isinstance(search, IVFSearch):
        return table
    return partition(work, table, search)


def nearest(work: Work, table: Table, relation: str, k: Any) -> list[Future]:
    """Return the lists of the k nearest rows of every row, a future of `Lists` for every block.

    Parameters
    ----------
    table : Table
        All pairs of rows are compared, or those in near lists: O(n L d) time to choose among L lists in d dimensions,
        and to search n_probes / L of all rows.
    relation : {"all", "same", "other"}
        Among all others, those of the same class, or those of other classes.
    k : int, or array of shape (n_classes,)
        For all rows, or for the rows of each class.
    """
    if table.index is None:
        return nearest_exact(work, table, relation, k)
    indices = [table.index] * len(table.blocks)
    probes = work.map(choose_lists, table.blocks, indices, relation=relation, k=k)
    meet = work.results(work.map(adjacent, table.blocks, probes, indices, relation=relation, spans=table.spans))
    found = []
    for b, (queries, of_queries) in enumerate(zip(table.blocks, probes, strict=True)):
        lists = None  # one block after the other searches its blocks: few are in use at a time
        for other in sorted(np.flatnonzero(meet[b]), key=lambda other: other != b):  # itself, with the nearest, first
            lists = work.submit(search_lists, lists, queries, of_queries, table.blocks[other], table.index, relation, k)
        found.append(lists)
    return found


# Tasks.


def choose_lists(block: Block, index: SharedIndex, *, relation: str, k: Any) -> np.ndarray:
    """Return the numbers of the lists to be searched for every row, -1 for no more; shape (b, at least n_probes).

    They are the nearest of those that hold rows in the relation, more than n_probes where these hold too few rows.
    """
    Z, n_found = index.project(block.X), _n_found(block, index, relation, per_row(k, block))
    probes = np.full((len(Z), index.n_probes), -1, np.int32)
    for group, members in members_by_class(index.groups[block.codes]):
        lists, own = np.arange(len(index.sizes)), index.lists_of(group)
        large = group < np.count_nonzero(index.class_sizes > SMALL_CLASS)
        if relation == "same":
            lists = lists[own] if large else lists[:0]
        elif relation == "other" and large:
            lists = np.delete(lists, own)
        for rows in row_blocks(len(members) if len(lists) else 0, index.n_probes):
            i, n_probes = members[rows], min(index.n_probes, len(lists))
            nearest_lists = index.nearest_lists(Z[i], lists, n_probes)
            while n_probes < len(lists) and (index.sizes[nearest_lists].sum(axis=1) < n_found[i]).any():
                n_probes = min(4 * n_probes, len(lists))
                nearest_lists = index.nearest_lists(Z[i], lists, n_probes)
            if n_probes > probes.shape[1]:
                probes = np.pad(probes, ((0, 0), (0, n_probes - probes.shape[1])), constant_values=-1)
            probes[i, :n_probes] = nearest_lists
    return probes


def adjacent(block: Block, probes: np.ndarray, index: SharedIndex, *, relation: str, spans: np.ndarray) -> np.ndarray:
    """Say for every block whether it is searched for some rows; their own always is."""
    needed = np.zeros(len(index.sizes) + 1, dtype=bool)
    needed[probes] = True
    if relation == "same" and _is_small(block, index).any():
        needed[index.first[-2] :] = True  # the lists that the small classes share
    needed[-1], needed[block.lists[0]] = False, True
    return np.array([needed[first : last + 1].any() for first, last in spans])


def search_lists(
    lists: Lists | None, queries: Block, probes: np.ndarray, others: Block, index: SharedIndex, relation: str, k: Any
) -> Lists:
    """Return the lists of some rows after a search in those lists of one block more that were chosen for them."""
    k = per_row(k, queries)
    small = _is_small(queries, index)
    found: list[Found] = []
    if relation == "same" and small.any():  # all of the class are compared: lists that it shares may hold none
        found += same_class_candidates(queries, others, k, set(queries.codes[small].tolist()))
    found += _listed_candidates(queries, probes, others, index, _n_found(queries, index, relation, k))
    return merge(lists, queries, others, relation, k, found)


def _listed_candidates(
    queries: Block, probes: np.ndarray, candidates: Block, index: SharedIndex, n_found: np.ndarray
) -> Iterator[Found]:
    """Yield queries and the positions of the candidates nearest to them in few dimensions, in the lists chosen."""
    first, last = candidates.lists[[0, -1]]
    here = (probes >= first) & (probes <= last)
    searching = np.flatnonzero(here.any(axis=1))
    if not len(searching):
        return
    faiss = import_faiss()
    Y, names = index.project(candidates.X), (candidates.lists - first).astype(np.int64)
    n_lists = max(int(last - first) + 1, probes.shape[1])  # faiss misreads more probes than lists
    inverted = faiss.IndexIVFFlat(faiss.IndexFlatL2(Y.shape[1]), Y.shape[1], n_lists)
    inverted.is_trained, inverted.nprobe = True, probes.shape[1]  # which lists are searched is known
    inverted.add_core(len(Y), faiss.swig_ptr(Y), None, faiss.swig_ptr(names))
    for rows in row_blocks(len(searching), int(n_found.max())):
        i = searching[rows]
        theirs = np.where(here[i], probes[i] - first, -1).astype(np.int64)
        unused = np.zeros(theirs.shape, np.float32)  # faiss 1.9 wants an array
        r = min(int(n_found[i].max()), len(Y))
        squares, at = inverted.search_preassigned(index.project(queries.X[i]), r, theirs, unused)
        yield i, at, np.sqrt(squares) * (1 - ROUNDING)  # in fewer dimensions rows are nearer, never farther


def _n_found(block: Block, index: SharedIndex, relation: str, k: np.ndarray) -> np.ndarray:
    """Return how many rows to find for every row: k, or more to rank them again, and those that may not count."""
    n_class = index.class_sizes[block.codes]
    # itself; or its class, where this is in the lists that are searched
    others = np.where(_is_small(block, index), n_class, 0) if relation == "other" else 1
    most = n_class if relation == "same" else index.class_sizes.sum()
    return np.minimum(n_ranked(index.n_rerank, k) + others, most)


def _is_small(block: Block, index: SharedIndex) -> np.ndarray:
    return index.class_sizes[block.codes] <= SMALL_CLASS
