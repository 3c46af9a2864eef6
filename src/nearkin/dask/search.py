"""The labels of the nearest rows: every block reports those of its own, the nearest of all are
merged in a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Future, as_completed
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from ..linalg import eigh
from ..neighbors import EXACT, Searcher, searcher
from ..neighbors.approximate import (
    LISTS,
    PROBES,
    CoarseQuantizer,
    IVFSearch,
    import_faiss,
    n_dimensions,
    n_ranked,
)
from ..neighbors.lists import SMALL_CLASS, members_of
from .scatter import total_scatter
from .table import FAN_IN, Block, Table, Work, identity, taken

# Exact search, block against block: the k nearest so far of every row are merged with those of one
# block more.
#
# Of equally near rows the one of the lowest number comes first, however the rows are cut into
# blocks. `relation` says which rows may be neighbours: "all", those of the "same" class, or of an
# "other" one.

SEARCH_ROUNDING = (
    1e-6  # relative to the rows and their distance, of a search by products in float32 or float64
)


class Lists(NamedTuple):
    """The neighbours of every row of a block.

    Attributes
    ----------
    neighbors : integer array of shape (b, k)
        Their numbers among all rows, nearest first; -1 where there are no more.
    distances : array of shape (b, k)
        Euclidean; infinite where there are no more.
    """

    neighbors: np.ndarray
    distances: np.ndarray


# Queries of a block (q,); for each the positions of some rows of another block (q, r), -1 for none;
# lower bounds of their distances.
Found = tuple[np.ndarray, np.ndarray, Any]


def nearest_exact(work: Work, table: Table, relation: str, k: Any) -> list[Future]:
    """Return the k nearest rows of every row, a future of `Lists` for every block; see `nearest`.

    O(n^2 p) time, O(n k) memory over all workers; n p numbers travel for every block. In round b
    every block is compared with block b, so that a worker holds its own blocks and one that
    travels.
    """
    lists: list[Any] = [None] * len(table.blocks)
    for candidates in table.blocks:
        lists = work.map(
            search_block, lists, table.blocks, [candidates] * len(lists), relation=relation, k=k
        )
    return lists


# Tasks, and what they have in common with those of the approximate search.


def search_block(
    lists: Lists | None, queries: Block, candidates: Block, *, relation: str, k: Any
) -> Lists:
    """Return the lists of some rows after a search in one block more."""
    each = per_row(k, queries)
    return merge(
        lists,
        queries,
        candidates,
        relation,
        each,
        _block_candidates(queries, candidates, relation, each),
    )


def merge(
    lists: Lists | None,
    queries: Block,
    candidates: Block,
    relation: str,
    k: np.ndarray,
    found: Iterable[Found],
) -> Lists:
    """Merge the lists of some rows, None for empty ones, with what was found for them in a block.

    All that is to be listed must be among `found`; others may be.
    """
    known = 0 if lists is None else lists.neighbors.shape[1]
    width = min(int(k.max()), known + len(candidates.X))
    neighbors = np.full((len(queries.X), width), -1)
    distances = np.full(neighbors.shape, np.inf, queries.X.dtype)
    if lists is not None:
        neighbors[:, :known], distances[:, :known] = lists
    for i, at, least in found if width else ():
        numbers = candidates.start + at
        of_other = relation == "other"
        mine, theirs = (
            (queries.codes[i], candidates.codes[at]) if of_other else (queries.start + i, numbers)
        )
        farthest = np.where(k[i] <= width, distances[i, np.minimum(k[i], width) - 1], np.inf)
        allowed = (mine[:, None] != theirs) & (at >= 0) & (least <= farthest[:, None])
        away = np.full(at.shape, np.inf, distances.dtype)
        away[allowed] = _distances(queries.X, i[np.nonzero(allowed)[0]], candidates.X, at[allowed])
        both = (
            np.hstack([neighbors[i], np.where(allowed, numbers, -1)]),
            np.hstack([distances[i], away]),
        )
        order = np.lexsort(both)[:, :width]
        neighbors[i], distances[i] = (np.take_along_axis(part, order, axis=1) for part in both)
    beyond = np.arange(width) >= k[:, None]
    return Lists(np.where(beyond, -1, neighbors), np.where(beyond, np.inf, distances))


def _block_candidates(
    queries: Block, candidates: Block, relation: str, k: np.ndarray
) -> Iterator[Found]:
    """Yield queries and the positions of the candidates nearest to them, of all that are in the
    relation to them.
    """
    every_query, every_candidate = np.arange(len(queries.X)), np.arange(len(candidates.X))
    if relation == "same":
        yield from same_class_candidates(queries, candidates, k, set(queries.codes.tolist()))
    elif relation == "all":
        yield _nearest(queries, every_query, candidates, every_candidate, int(k.max()) + 1)
    else:
        n_same = np.bincount(candidates.codes, minlength=queries.codes.max() + 1)
        few = n_same[queries.codes] <= SMALL_CLASS
        if few.any():  # all candidates are searched, for as many more as may be of the same class
            n_found = int(k[few].max() + n_same[queries.codes[few]].max())
            yield _nearest(queries, every_query[few], candidates, every_candidate, n_found)
        for c, i in members_by_class(queries.codes):
            if SMALL_CLASS < n_same[c] < len(every_candidate):
                yield _nearest(
                    queries, i, candidates, every_candidate[candidates.codes != c], int(k[i].max())
                )


def same_class_candidates(
    queries: Block, candidates: Block, k: np.ndarray, classes: set[int]
) -> Iterator[Found]:
    """Yield the queries of some classes and the positions of the candidates of the same class
    nearest to them.
    """
    itself = int(queries.start == candidates.start)
    theirs = dict(members_by_class(candidates.codes))
    for c, i in members_by_class(queries.codes):
        if c in classes and c in theirs:
            yield _nearest(queries, i, candidates, theirs[c], int(k[i].max()) + itself)


def _nearest(queries: Block, i: np.ndarray, candidates: Block, j: np.ndarray, k: int) -> Found:
    """Return queries, and of the candidates j the k nearest to each of them, by distance, then by
    position.
    """
    Q, Y, k = queries.X[i], candidates.X[j], min(k, len(j))
    with config_context(assume_finite=True):
        away, at = (
            NearestNeighbors(algorithm="brute").fit(Y).kneighbors(Q, n_neighbors=min(k + 1, len(Y)))
        )
    if k < len(Y):  # the search rounds: check its choice where the next row is as near
        rounding = SEARCH_ROUNDING * (away[:, k] + np.sqrt(np.einsum("ij,ij->i", Q, Q)))
        unsure = np.flatnonzero(away[:, k] - away[:, k - 1] <= rounding)
        for some in (unsure[block] for block in row_blocks(len(unsure), len(Y))):
            at[some, :k] = np.argsort(cdist(Q[some], Y), axis=1, kind="stable")[:, :k]
    return i, j[at[:, :k]], 0.0


def _distances(Q: np.ndarray, i: np.ndarray, Y: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the distances of rows i of Q to rows j of Y: the same bits for the same rows, whatever
    their blocks.
    """
    Q, Y = (
        np.require(rows, requirements="A") for rows in (Q, Y)
    )  # what another worker sent may lie at an odd address
    distances, blocks = np.empty(len(i)), row_blocks(len(i), Q.shape[1], 2**17)
    # Written again and again: a worker of Dask gives back freed memory at once, and new pages cost
    # more than the work.
    shape = (blocks[0].stop if blocks else 0, Q.shape[1])
    q, y, D = np.empty(shape, Q.dtype), np.empty(shape, Y.dtype), np.empty(shape)
    for pairs in blocks:
        n = pairs.stop - pairs.start
        np.take(Q, i[pairs], axis=0, out=q[:n], mode="clip")
        np.take(Y, j[pairs], axis=0, out=y[:n], mode="clip")
        np.subtract(q[:n], y[:n], out=D[:n], dtype=np.float64)
        distances[pairs] = np.sqrt(np.einsum("ij,ij->i", D[:n], D[:n]))
    return distances


def per_row(k: Any, block: Block) -> np.ndarray:
    """Return k for every row, given for all rows or for each class."""
    return np.broadcast_to(k, len(block.X)) if np.ndim(k) == 0 else k[block.codes]


def members_by_class(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield every class that has rows in a block, and these."""
    return ((c, members) for c, members in enumerate(members_of(codes)) if len(members))


# An index that all blocks share: rows are partitioned into lists of near ones, and lists lie side
# by side in blocks.
#
# The lists are like those of one machine (`nearkin.neighbors.approximate`): each holds rows of one
# class; the classes of at most 64 rows share lists. Their centres are learned from some rows of
# every block.

PER_LIST = 20  # rows from which the centre of a list is learned


class SharedIndex(NamedTuple):
    """The lists of all blocks. A group is a class of more than 64 rows; the smaller classes form
    the last one.

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
        How many rows found there are ranked again by their distances in all features; 0 for the
        usual number.
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
    """Return the rows of a table in lists of near ones, in about as many blocks as before, of equal
    sizes.

    The table is used up: a block of it is released as soon as its rows have left. O(n L d) time for
    L lists in d dimensions; every row travels once.
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
    # k-means elsewhere may find other centres: a worker that dies must not take with it those by
    # which rows have left
    index = work.results([work.submit(learn_centres, samples, index, n_lists=n_lists)])[0]
    lists = np.concatenate(work.results(work.map(nearest_list, table.blocks, index=index)))
    index = work.submit(
        identity, index._replace(sizes=np.bincount(lists, minlength=len(index.centres)))
    )
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


def sample(
    block: Block, numbers: np.ndarray, *, index: SharedIndex
) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a block, by their numbers, in few dimensions, and their groups."""
    block = taken(block, numbers)
    return index.project(block.X), index.groups[block.codes]


def learn_centres(
    samples: list[tuple[np.ndarray, np.ndarray]], index: SharedIndex, *, n_lists: int
) -> SharedIndex:
    """Return an index with the centres that some rows of all blocks make."""
    Z, group = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    quantizer = CoarseQuantizer.of(Z, members_of(group), n_lists)
    return index._replace(centres=quantizer.centres, first=np.array(quantizer.first))


def nearest_list(block: Block, *, index: SharedIndex) -> np.ndarray:
    """Return the number of every row's list, the nearest of its group."""
    Z, lists, all_lists = (
        index.project(block.X),
        np.empty(len(block.X), np.int32),
        np.arange(len(index.centres)),
    )
    for group, members in members_by_class(index.groups[block.codes]):
        lists[members] = index.nearest_lists(Z[members], all_lists[index.lists_of(group)], 1)[:, 0]
    return lists


def join(pieces: list[Block], start: int, numbers: np.ndarray, lists: np.ndarray) -> Block:
    """Return the rows of a new block in the order of their `numbers`, from pieces in which these
    ascend.
    """
    at = np.searchsorted(np.sort(numbers), numbers)
    X, codes = (
        np.concatenate([getattr(piece, name) for piece in pieces])[at] for name in ("X", "codes")
    )
    return Block(X, codes, start, lists, numbers)


# The search among blocks: exact, or approximate by the shared index, in which few lists of few
# blocks are searched.
#
# An approximate search compares a query with the same rows as on one machine, however many blocks
# there are, and a block meets only those that hold lists of its queries.

ROUNDING = 1e-3  # relative, of a distance in few dimensions


def block_searcher(search: Any, n: int) -> Searcher:
    """Return the local searcher that says how blocks are searched: EXACT, or an IVFSearch for the
    shared index.
    """
    found = searcher(search, n)
    if (found is not EXACT and not isinstance(found, IVFSearch)) or found.recall is not None:
        raise ValueError(
            "search must be 'exact', 'approximate', 'auto' or an ApproximateSearch for "
            "Dask arrays, without "
            f"check_recall (check it on a sample, with the local class), got {search!r}."
        )
    return found


def searchable(work: Work, table: Table, search: Searcher) -> Table:
    """Return a table in the order in which its neighbours are searched: as it is, or partitioned
    (once).
    """
    if table.index is not None or not isinstance(search, IVFSearch):
        return table
    return partition(work, table, search)


def nearest(work: Work, table: Table, relation: str, k: Any) -> list[Future]:
    """Return the lists of the k nearest rows of every row, a future of `Lists` for every block.

    Parameters
    ----------
    table : Table
        All pairs of rows are compared, or those in near lists: O(n L d) time to choose among L
        lists in d dimensions, and to search n_probes / L of all rows.
    relation : {"all", "same", "other"}
        Among all others, those of the same class, or those of other classes.
    k : int, or array of shape (n_classes,)
        For all rows, or for the rows of each class.
    """
    if table.index is None:
        return nearest_exact(work, table, relation, k)
    indices = [table.index] * len(table.blocks)
    probes = work.map(choose_lists, table.blocks, indices, relation=relation, k=k)
    meet = work.results(
        work.map(adjacent, table.blocks, probes, indices, relation=relation, spans=table.spans)
    )
    found = []
    for b, (queries, of_queries) in enumerate(zip(table.blocks, probes, strict=True)):
        lists = None  # one block after the other searches its blocks: few are in use at a time
        for other in sorted(
            np.flatnonzero(meet[b]), key=lambda other: other != b
        ):  # itself, with the nearest, first
            lists = work.submit(
                search_lists,
                lists,
                queries,
                of_queries,
                table.blocks[other],
                table.index,
                relation,
                k,
            )
        found.append(lists)
    return found


# Tasks.


def choose_lists(block: Block, index: SharedIndex, *, relation: str, k: Any) -> np.ndarray:
    """Return the numbers of the lists to be searched for every row, -1 for no more; shape (b, at
    least n_probes).

    They are the nearest of those that hold rows in the relation, more than n_probes where these
    hold too few rows.
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
            while (
                n_probes < len(lists)
                and (index.sizes[nearest_lists].sum(axis=1) < n_found[i]).any()
            ):
                n_probes = min(4 * n_probes, len(lists))
                nearest_lists = index.nearest_lists(Z[i], lists, n_probes)
            if n_probes > probes.shape[1]:
                probes = np.pad(
                    probes, ((0, 0), (0, n_probes - probes.shape[1])), constant_values=-1
                )
            probes[i, :n_probes] = nearest_lists
    return probes


def adjacent(
    block: Block, probes: np.ndarray, index: SharedIndex, *, relation: str, spans: np.ndarray
) -> np.ndarray:
    """Say for every block whether it is searched for some rows; their own always is."""
    needed = np.zeros(len(index.sizes) + 1, dtype=bool)
    needed[probes] = True
    if relation == "same" and _is_small(block, index).any():
        needed[index.first[-2] :] = True  # the lists that the small classes share
    needed[-1], needed[block.lists[0]] = False, True
    return np.array([needed[first : last + 1].any() for first, last in spans])


def search_lists(
    lists: Lists | None,
    queries: Block,
    probes: np.ndarray,
    others: Block,
    index: SharedIndex,
    relation: str,
    k: Any,
) -> Lists:
    """Return the lists of some rows after a search in those lists of one block more that were
    chosen for them.
    """
    k = per_row(k, queries)
    small = _is_small(queries, index)
    found: list[Found] = []
    if (
        relation == "same" and small.any()
    ):  # all of the class are compared: lists that it shares may hold none
        found += same_class_candidates(queries, others, k, set(queries.codes[small].tolist()))
    found += _listed_candidates(
        queries, probes, others, index, _n_found(queries, index, relation, k)
    )
    return merge(lists, queries, others, relation, k, found)


def _listed_candidates(
    queries: Block, probes: np.ndarray, candidates: Block, index: SharedIndex, n_found: np.ndarray
) -> Iterator[Found]:
    """Yield queries and the positions of the candidates nearest to them in few dimensions, in the
    lists chosen.
    """
    first, last = candidates.lists[[0, -1]]
    here = (probes >= first) & (probes <= last)
    searching = np.flatnonzero(here.any(axis=1))
    if not len(searching):
        return
    faiss = import_faiss()
    Y, names = index.project(candidates.X), (candidates.lists - first).astype(np.int64)
    n_lists = max(int(last - first) + 1, probes.shape[1])  # faiss misreads more probes than lists
    inverted = faiss.IndexIVFFlat(faiss.IndexFlatL2(Y.shape[1]), Y.shape[1], n_lists)
    inverted.is_trained, inverted.nprobe = (
        True,
        probes.shape[1],
    )  # which lists are searched is known
    inverted.add_core(len(Y), faiss.swig_ptr(Y), None, faiss.swig_ptr(names))
    for rows in row_blocks(len(searching), int(n_found.max())):
        i = searching[rows]
        theirs = np.where(here[i], probes[i] - first, -1).astype(np.int64)
        unused = np.zeros(theirs.shape, np.float32)  # faiss 1.9 wants an array
        r = min(int(n_found[i].max()), len(Y))
        squares, at = inverted.search_preassigned(index.project(queries.X[i]), r, theirs, unused)
        yield (
            i,
            at,
            np.sqrt(squares) * (1 - ROUNDING),
        )  # in fewer dimensions rows are nearer, never farther


def _n_found(block: Block, index: SharedIndex, relation: str, k: np.ndarray) -> np.ndarray:
    """Return how many rows to find for every row: k, or more to rank them again, and those that may
    not count.
    """
    n_class = index.class_sizes[block.codes]
    # itself; or its class, where this is in the lists that are searched
    others = np.where(_is_small(block, index), n_class, 0) if relation == "other" else 1
    most = n_class if relation == "same" else index.class_sizes.sum()
    return np.minimum(n_ranked(index.n_rerank, k) + others, most)


def _is_small(block: Block, index: SharedIndex) -> np.ndarray:
    return index.class_sizes[block.codes] <= SMALL_CLASS


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
    O(n q m) time; a worker holds the queries and one block, which is released as soon as it was
    searched. q k numbers of every block are merged by the workers as they come, q k come to the
    client. Of equally near rows those of earlier blocks count.
    """
    query = queries.to_delayed().item()
    blocks = zip(X.to_delayed().ravel(), y.to_delayed().ravel(), X.chunks[0], strict=True)
    with Work(client) as work:
        lazy = [
            delayed(labels_in)(block, labels, query, k) for block, labels, size in blocks if size
        ]
        merged = lazy
        while len(merged) > 1:
            merged = [
                delayed(nearest_of)(merged[at : at + FAN_IN], k)
                for at in range(0, len(merged), FAN_IN)
            ]
        *parts, nearest = work.compute(
            [*lazy, *merged]
        )  # one graph: blocks that are merged are near in time
        sizes, done = (
            dict(zip([part.key for part in parts], filter(None, X.chunks[0]), strict=True)),
            0,
        )
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
    return Near(
        np.take_along_axis(labels, first, axis=1), np.take_along_axis(distances, first, axis=1)
    )
