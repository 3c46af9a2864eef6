"""Neighbours of rows on a cluster, and the labels of the rows nearest to queries.

Exact: the k nearest rows so far are merged with those of one more block. Ties go to the row of the
lowest index, however the rows are cut into blocks.

Approximate: rows are partitioned into lists of near rows, and lists are stored contiguously in
blocks, with an index shared by all blocks. Each list contains rows of one class; classes of at most
64 rows share lists. A search in a relation thus selects lists, and a query is compared with the
same rows whatever the number of blocks. A block only meets the blocks that contain lists of its
queries.

`relation` says which rows may be neighbours: "all", those of the "same" class, or those of any
"other" class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Future, as_completed
from scipy.spatial.distance import cdist
from sklearn import config_context

from .._blocks import row_blocks
from ..linalg import eigh
from ..neighbors import EXACT, Searcher, import_faiss, searcher
from ..neighbors.approximate import (
    LISTS,
    PROBES,
    IVFSearch,
    n_dimensions,
    n_ranked,
)
from ..neighbors.inverted_lists import CoarseQuantizer
from ..neighbors.lists import SMALL_CLASS, members_of, plan
from .table import FAN_IN, Block, Table, Work, aligned, identity, taken

PER_LIST = 20  # rows per list from which its centre is learned
# relative rounding errors: of a search by products (to distance and query), in few dimensions
SEARCH_ROUNDING = 1e-6
ROUNDING = 1e-3


class Lists(NamedTuple):
    """The neighbours of every row of a block.

    Attributes
    ----------
    neighbors : integer array of shape (b, k)
        Indices among all rows, nearest first; padded with -1.
    distances : array of shape (b, k)
        Euclidean; padded with infinity.
    """

    neighbors: np.ndarray
    distances: np.ndarray


def block_searcher(search: Any, n: int) -> Searcher:
    """Return the local searcher for blocks: EXACT, or an IVFSearch for the shared index."""
    found = searcher(search, n)
    if found is not EXACT and not isinstance(found, IVFSearch):
        raise ValueError(
            "search must be 'exact', 'approximate', 'auto' or an ApproximateSearch for Dask "
            f"arrays, got {search!r}."
        )
    return found


def partition(table: Table, search: Searcher) -> Table:
    """Reorder the rows of a table for the search, and return the table.

    For an approximate search, the rows are placed (once) in lists of near rows, in the same number
    of blocks, of equal sizes. An old block is released as soon as its rows have been sent. This
    takes O(n L d) time for L lists in d dimensions; every row travels once.
    """
    if table.index is not None or not isinstance(search, IVFSearch):
        return table
    work, (n, p), n_blocks = table.work, table.shape, len(table.blocks)
    d = n_dimensions(search.n_components, p)
    V = eigh(table.total_scatter(), subset_by_index=(p - d, p - 1))[1] if d < p else None
    n_lists = search.n_lists or int(LISTS * n**0.5)
    large = table.class_sizes > SMALL_CLASS
    groups = np.where(large, np.cumsum(large) - 1, large.sum())
    n_probes = search.n_probes or PROBES
    index = SharedIndex(table.class_sizes, groups, V, n_probes)
    drawn = np.random.default_rng(0).random(n) < PER_LIST * n_lists / n
    drawn[np.unique(groups[table.codes], return_index=True)[1]] = True  # every group has a row
    samples = table.map(
        lambda block, drawn: (index.project(block.X[drawn]), groups[block.codes[drawn]]),
        np.split(drawn, table.starts[1:-1]),
    )
    # The centres are kept on the client: if the worker that holds them died, k-means on another
    # worker might find other centres than those by which rows have been sent.
    [quantizer] = work.results([work.submit(learn_centres, samples, n_lists)])
    index = index._replace(quantizer=quantizer)
    lists = np.concatenate(work.results(table.map(nearest_list, index=index)))
    sizes = np.bincount(lists, minlength=len(quantizer.centres))
    order = np.argsort(lists, kind="stable")
    starts = [n * b // n_blocks for b in range(n_blocks + 1)]
    target = np.empty(n, int)  # the new block of every row
    target[order] = np.repeat(np.arange(n_blocks), np.diff(starts))
    pieces = []
    for block, (start, stop) in zip(table.blocks, pairwise(table.starts), strict=True):
        parts = [start + np.flatnonzero(target[start:stop] == b) for b in range(n_blocks)]
        pieces.append(work.map(taken, [block] * n_blocks, parts))
    table.blocks.clear()
    for of_block, (start, stop) in zip(zip(*pieces, strict=True), pairwise(starts), strict=True):
        numbers = order[start:stop]
        table.blocks.append(work.submit(join, list(of_block), start, numbers, lists[numbers]))
    table.starts = starts
    ends = [[start, stop - 1] for start, stop in pairwise(starts)]
    table.spans = lists[order][ends]
    table.index = work.submit(identity, index._replace(sizes=sizes))
    return table


def nearest(table: Table, relation: str, k: Any) -> list[Future]:
    """Return the lists of the k nearest rows of every row, a future of `Lists` per block.

    Parameters
    ----------
    table : Table
        Unless the table is partitioned, all pairs of rows are compared in O(n^2 p) time. Otherwise
        it takes O(n L d) time to choose among L lists in d dimensions, and a share of about
        n_probes / L of all pairs is compared. O(n k) memory over all workers.
    relation : {"all", "same", "other"}
        Among all other rows, those of the same class, or those of other classes.
    k : int, or array of shape (n_classes,)
        For all rows, or for the rows of each class.
    """
    work = table.work
    blocks = table.blocks
    index = table.index
    how = {"relation": relation, "k": k}
    if index is None:
        # In round b every block is compared with block b, so that a worker holds its own blocks and
        # one that travels.
        lists: Any = [None] * len(blocks)
        for candidates in blocks:
            lists = table.map(search_block, lists, candidates=candidates, **how)
        return lists
    chosen = table.map(choose_lists, index=index, **how)
    where = {"relation": relation, "spans": table.spans}
    meet = work.results(table.map(adjacent, chosen, index=index, **where))
    found = []
    for b, queries in enumerate(blocks):
        lists = None  # a block meets the others one after the other, so few are in use at a time
        met = np.flatnonzero(meet[b])
        for other in [b, *met[met != b]]:  # first itself, which has the nearest rows
            candidates = blocks[other]
            lists = work.submit(search_block, queries, lists, candidates, index, chosen[b], **how)
        found.append(lists)
    return found


# The common part of both searches: the candidates of a block, and the nearest of these.

# Queries of a block (q,); for each, the positions of some rows of another block (q, r), padded with
# -1; and lower bounds on the distances to these.
Found = tuple[np.ndarray, np.ndarray, Any]


def search_block(
    queries: Block,
    lists: Lists | None,
    candidates: Block,
    index: Any = None,
    chosen: Any = None,
    *,
    relation: str,
    k: Any,
) -> Lists:
    """Return, as a task, the lists of some rows after searching one more block.

    `lists` are those before, None for empty ones. The whole block is searched or, with an index,
    the lists chosen for the rows.
    """
    k = per_row(k, queries)
    known = 0 if lists is None else lists.neighbors.shape[1]
    width = min(int(k.max()), known + len(candidates.X))
    neighbors = np.full((len(queries.X), width), -1)
    distances = np.full(neighbors.shape, np.inf, queries.X.dtype)
    if lists is not None:
        neighbors[:, :known], distances[:, :known] = lists
    itself = int(queries.start == candidates.start)
    searches = plan(queries.codes, candidates.codes, k, relation, itself)
    if index is not None:
        found = listed_candidates(queries, candidates, relation, searches, index, chosen)
    else:
        found = (_nearest(queries, candidates, *one) for one in searches)
    # the rows found include all neighbours in this block, and may include others
    for i, at, least in found if width else ():
        numbers = candidates.start + at
        if relation == "other":
            allowed = queries.codes[i, None] != candidates.codes[at]
        else:
            allowed = queries.start + i[:, None] != numbers
        farthest = np.where(k[i] <= width, distances[i, np.minimum(k[i], width) - 1], np.inf)
        allowed &= (at >= 0) & (least <= farthest[:, None])
        away = np.full(at.shape, np.inf, distances.dtype)
        away[allowed] = _distances(queries.X, i[np.nonzero(allowed)[0]], candidates.X, at[allowed])
        all_numbers = np.hstack([neighbors[i], np.where(allowed, numbers, -1)])
        all_distances = np.hstack([distances[i], away])
        order = np.lexsort((all_numbers, all_distances))[:, :width]
        neighbors[i] = np.take_along_axis(all_numbers, order, axis=1)
        distances[i] = np.take_along_axis(all_distances, order, axis=1)
    beyond = np.arange(width) >= k[:, None]
    return Lists(np.where(beyond, -1, neighbors), np.where(beyond, np.inf, distances))


def listed_candidates(
    queries: Block,
    candidates: Block,
    relation: str,
    searches: Iterator[tuple[np.ndarray, np.ndarray, int]],
    index: SharedIndex,
    chosen: tuple[np.ndarray, np.ndarray],
) -> Iterator[Found]:
    """Yield queries and their nearest candidates, in few dimensions, in the lists chosen."""
    # a small class is compared completely: the nearest of its shared lists may not contain it
    if relation == "same":
        small = index.is_small(queries)
        for i, j, n in searches:
            if small[i[0]]:
                yield _nearest(queries, candidates, i, j, n)
    probes, n_found = chosen
    first, last = candidates.lists[[0, -1]]
    here = (probes >= first) & (probes <= last)
    searching = np.flatnonzero(here.any(axis=1))
    if not len(searching):
        return
    faiss = import_faiss()
    Y = index.project(candidates.X)
    names = (candidates.lists - first).astype(np.int64)
    # at least as many lists as probes: otherwise faiss would misread the probes
    n_lists = max(int(last - first) + 1, probes.shape[1])
    inverted = faiss.IndexIVFFlat(faiss.IndexFlatL2(Y.shape[1]), Y.shape[1], n_lists)
    inverted.is_trained = True  # the lists to search are known
    inverted.nprobe = probes.shape[1]
    inverted.add_core(len(Y), faiss.swig_ptr(Y), None, faiss.swig_ptr(names))
    for rows in row_blocks(len(searching), int(n_found.max())):
        i = searching[rows]
        theirs = np.where(here[i], probes[i] - first, -1).astype(np.int64)
        unused = np.zeros(theirs.shape, np.float32)  # faiss 1.9 requires an array
        r = min(int(n_found[i].max()), len(Y))
        squares, at = inverted.search_preassigned(index.project(queries.X[i]), r, theirs, unused)
        # in fewer dimensions rows are closer, never farther
        yield i, at, np.sqrt(squares) * (1 - ROUNDING)


def _nearest(queries: Block, candidates: Block, i: np.ndarray, j: np.ndarray, k: int) -> Found:
    """Return queries, and the k nearest of the candidates j for each; ties go by position."""
    Q = queries.X[i]
    Y = candidates.X[j]
    k = min(k, len(j))
    with config_context(assume_finite=True):
        away, at = EXACT.index(Y, k + 1)(Q, min(k + 1, len(Y)))
    if k < len(Y):  # the search rounds: check its choice if the next row is as near
        rounding = SEARCH_ROUNDING * (away[:, k] + np.sqrt(np.einsum("ij,ij->i", Q, Q)))
        unsure = np.flatnonzero(away[:, k] - away[:, k - 1] <= rounding)
        for some in (unsure[block] for block in row_blocks(len(unsure), len(Y))):
            at[some, :k] = np.argsort(cdist(Q[some], Y), axis=1, kind="stable")[:, :k]
    return i, j[at[:, :k]], 0.0


def _distances(Q: np.ndarray, i: np.ndarray, Y: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the distances of rows i of Q to rows j of Y, bitwise equal for the same rows.

    They do not depend on the blocks of the rows.
    """
    Q, Y = aligned(Q), aligned(Y)
    distances = np.empty(len(i))
    blocks = row_blocks(len(i), Q.shape[1], 2**17)
    # These arrays are overwritten repeatedly: a Dask worker returns freed memory to the system at
    # once, and new pages would cost more than the work.
    shape = (blocks[0].stop if blocks else 0, Q.shape[1])
    (q, y), D = np.empty((2, *shape), Q.dtype), np.empty(shape)
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
    """Yield every class that has rows in a block, with these rows."""
    return ((c, members) for c, members in enumerate(members_of(codes)) if len(members))


# The index shared by all blocks, and the tasks that build it and choose lists from it.


class SharedIndex(NamedTuple):
    """The lists of all blocks.

    A group is a class of more than 64 rows; all smaller classes form the last group.

    Attributes
    ----------
    class_sizes, groups : integer arrays of shape (n_classes,)
        Number of rows of every class, and its group.
    projection : array of shape (p, d) or None
        To the few dimensions of the centres; None for the features themselves.
    n_probes : int
        Number of nearest lists searched for a query; more if they contain too few rows.
    quantizer : CoarseQuantizer
        The centres of the lists; its `list_of` is that of the sample from which they were learned.
    sizes : integer array of shape (n_lists,)
        Number of rows of every list.
    """

    class_sizes: np.ndarray
    groups: np.ndarray
    projection: np.ndarray | None
    n_probes: int
    quantizer: Any = None
    sizes: Any = None

    def project(self, X: np.ndarray) -> np.ndarray:
        """Return rows in the dimensions of the centres."""
        Z = X if self.projection is None else X @ self.projection.astype(X.dtype)
        return np.ascontiguousarray(Z, dtype=np.float32)

    def nearest_lists(self, Z: np.ndarray, lists: np.ndarray, n: int) -> np.ndarray:
        """Return, for each row, the n of some lists whose centres are nearest."""
        coarse = import_faiss().IndexFlatL2(Z.shape[1])
        coarse.add(self.quantizer.centres[lists])
        return lists[coarse.search(Z, n)[1]].astype(np.int32)

    def is_small(self, block: Block) -> np.ndarray:
        """Return, for every row, whether its class shares lists with others."""
        return self.class_sizes[block.codes] <= SMALL_CLASS


def learn_centres(samples: list[tuple[np.ndarray, np.ndarray]], n_lists: int) -> CoarseQuantizer:
    """Return the lists of a sample of the rows of all blocks."""
    Z, group = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    return CoarseQuantizer.of(Z, members_of(group), n_lists)


def nearest_list(block: Block, *, index: SharedIndex) -> np.ndarray:
    """Return the list of every row, the nearest one of its group."""
    Z = index.project(block.X)
    lists = np.empty(len(block.X), np.int32)
    for group, members in members_by_class(index.groups[block.codes]):
        own = index.quantizer.lists_in("same", group)
        lists[members] = index.nearest_lists(Z[members], own, 1)[:, 0]
    return lists


def join(pieces: list[Block], start: int, numbers: np.ndarray, lists: np.ndarray) -> Block:
    """Return the rows of a new block ordered by `numbers`, from pieces in which these ascend."""
    at = np.argsort(np.argsort(numbers))
    X = np.concatenate([piece.X for piece in pieces])[at]
    codes = np.concatenate([piece.codes for piece in pieces])[at]
    return Block(X, codes, start, lists, numbers)


def choose_lists(
    block: Block, *, index: SharedIndex, relation: str, k: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists to search for every row, and how many rows to find there.

    The lists, shape (b, at least n_probes), are padded with -1. They are the nearest lists that
    contain rows in the relation, more than n_probes if these have too few rows. The number of rows
    is k, or more to rank them again, plus those that may not count: the row itself, or its class if
    that is in the lists that are searched.
    """
    Z = index.project(block.X)
    small = index.is_small(block)
    n_class = index.class_sizes[block.codes]
    others = np.where(small, n_class, 0) if relation == "other" else 1
    most = n_class if relation == "same" else index.class_sizes.sum()
    n_found = np.minimum(n_ranked(per_row(k, block)) + others, most)
    probes = np.full((len(Z), index.n_probes), -1, np.int32)
    for group, members in members_by_class(index.groups[block.codes]):
        shares = small[members[0]]
        if relation == "same" and shares:
            continue
        among = "all" if shares else relation
        lists = index.quantizer.lists_in(among, group)
        for rows in row_blocks(len(members), index.n_probes) if len(lists) else ():
            i, n_probes = members[rows], index.n_probes
            while True:
                chosen = index.nearest_lists(Z[i], lists, min(n_probes, len(lists)))
                enough = (index.sizes[chosen].sum(axis=1) >= n_found[i]).all()
                if enough or n_probes >= len(lists):
                    break
                n_probes *= 4
            more = max(chosen.shape[1] - probes.shape[1], 0)
            probes = np.pad(probes, ((0, 0), (0, more)), constant_values=-1)
            probes[i, : chosen.shape[1]] = chosen
    return probes, n_found


def adjacent(
    block: Block,
    chosen: tuple[np.ndarray, np.ndarray],
    *,
    index: SharedIndex,
    relation: str,
    spans: np.ndarray,
) -> np.ndarray:
    """Return, for every block, whether it is searched for some rows; their own always is."""
    needed = np.zeros(len(index.sizes) + 1, dtype=bool)
    needed[chosen[0]] = True
    if relation == "same" and index.is_small(block).any():
        needed[index.quantizer.first[-2] :] = True  # the lists that the small classes share
    needed[-1] = False
    needed[block.lists[0]] = True
    return np.array([needed[first : last + 1].any() for first, last in spans])


# The labels of the rows nearest to queries.


class Near(NamedTuple):
    """The labels of the nearest rows of some queries, nearest first.

    Attributes
    ----------
    labels, distances : arrays of shape (q, k)
        Fewer columns if there are fewer rows.
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
    """Return the labels of the k rows of X nearest to every query, by exact search.

    Parameters
    ----------
    X : Dask array of shape (n, m)
    y : Dask array of shape (n,), in the blocks of X
    queries : Dask array of shape (q, m), in one block
    k : int
    client : distributed.Client, default=None
    progress : callable, optional
        Called as `progress(number of rows searched, n)`.

    Returns
    -------
    Near

    Notes
    -----
    O(n q m) time. A worker holds the queries and one block, which is released as soon as it has
    been searched. The workers merge the q k numbers of every block as they come, and only q k
    numbers travel to the client. Ties go to rows of earlier blocks.
    """
    query = queries.to_delayed().item()
    blocks = zip(X.to_delayed().ravel(), y.to_delayed().ravel(), X.chunks[0], strict=True)
    with Work(client) as work:
        lazy = [
            delayed(labels_in)(block, labels, query, k) for block, labels, size in blocks if size
        ]
        merged = lazy
        while len(merged) > 1:
            groups = [merged[at : at + FAN_IN] for at in range(0, len(merged), FAN_IN)]
            merged = [delayed(nearest_of)(group, k) for group in groups]
        # a single graph, so that blocks that are merged are searched at about the same time
        *parts, nearest = work.compute([*lazy, *merged])
        done = 0
        sizes = dict(zip([part.key for part in parts], filter(None, X.chunks[0]), strict=True))
        finished = as_completed(parts, loop=work.client.loop)  # not the loop of the current client
        del parts  # a result lives as long as its future: now it is released once merged
        for part in finished:
            done += sizes[part.key]
            progress(done, X.shape[0])
        return work.results([nearest])[0]


def labels_in(block: np.ndarray, labels: np.ndarray, queries: np.ndarray, k: int) -> Near:
    """Return the labels of the nearest rows of a block."""
    k = min(k, len(block))
    distances, at = EXACT.index(block, k)(queries, k)
    return Near(labels[at], distances)


def nearest_of(parts: list[Near], k: int) -> Near:
    """Return the nearest rows over several blocks, given in order."""
    labels, distances = (np.hstack(arrays) for arrays in zip(*parts, strict=True))
    first = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Near(*(np.take_along_axis(one, first, axis=1) for one in (labels, distances)))
