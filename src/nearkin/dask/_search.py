"""Exact search, block against block: the k nearest so far of every row are merged with those of one block more.

Of equally near rows the one of the lowest number comes first, however the rows are cut into blocks. `relation` says
which rows may be neighbours: "all", those of the "same" class, or of an "other" one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from ..neighbors.search import SMALL_CLASS, members_of
from ._table import Block, Table
from ._work import Work

SEARCH_ROUNDING = 1e-6  # relative to the rows and their distance, of a search by products in float32 or float64


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


# Queries of a block (q,); for each the positions of some rows of another block (q, r), -1 for none; lower bounds of
# their distances.
Found = tuple[np.ndarray, np.ndarray, Any]


def nearest_exact(work: Work, table: Table, relation: str, k: Any) -> list[Future]:
    """Return the k nearest rows of every row, a future of `Lists` for every block; see `nearest`.

    O(n^2 p) time, O(n k) memory over all workers; n p numbers travel for every block. In round b every block is
    compared with block b, so that a worker holds its own blocks and one that travels.
    """
    lists: list[Any] = [None] * len(table.blocks)
    for candidates in table.blocks:
        lists = work.map(search_block, lists, table.blocks, [candidates] * len(lists), relation=relation, k=k)
    return lists


# Tasks, and what they have in common with those of the approximate search.


def search_block(lists: Lists | None, queries: Block, candidates: Block, *, relation: str, k: Any) -> Lists:
    """Return the lists of some rows after a search in one block more."""
    each = per_row(k, queries)
    return merge(lists, queries, candidates, relation, each, _block_candidates(queries, candidates, relation, each))


def merge(
    lists: Lists | None, queries: Block, candidates: Block, relation: str, k: np.ndarray, found: Iterable[Found]
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
        mine, theirs = (queries.codes[i], candidates.codes[at]) if of_other else (queries.start + i, numbers)
        farthest = np.where(k[i] <= width, distances[i, np.minimum(k[i], width) - 1], np.inf)
        allowed = (mine[:, None] != theirs) & (at >= 0) & (least <= farthest[:, None])
        away = np.full(at.shape, np.inf, distances.dtype)
        away[allowed] = _distances(queries.X, i[np.nonzero(allowed)[0]], candidates.X, at[allowed])
        both = np.hstack([neighbors[i], np.where(allowed, numbers, -1)]), np.hstack([distances[i], away])
        order = np.lexsort(both)[:, :width]
        neighbors[i], distances[i] = (np.take_along_axis(part, order, axis=1) for part in both)
    beyond = np.arange(width) >= k[:, None]
    return Lists(np.where(beyond, -1, neighbors), np.where(beyond, np.inf, distances))


def _block_candidates(queries: Block, candidates: Block, relation: str, k: np.ndarray) -> Iterator[Found]:
    """Yield queries and the positions of the candidates nearest to them, of all that are in the relation to them."""
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
                yield _nearest(queries, i, candidates, every_candidate[candidates.codes != c], int(k[i].max()))


def same_class_candidates(queries: Block, candidates: Block, k: np.ndarray, classes: set[int]) -> Iterator[Found]:
    """Yield the queries of some classes and the positions of the candidates of the same class nearest to them."""
    itself = int(queries.start == candidates.start)
    theirs = dict(members_by_class(candidates.codes))
    for c, i in members_by_class(queries.codes):
        if c in classes and c in theirs:
            yield _nearest(queries, i, candidates, theirs[c], int(k[i].max()) + itself)


def _nearest(queries: Block, i: np.ndarray, candidates: Block, j: np.ndarray, k: int) -> Found:
    """Return queries, and of the candidates j the k nearest to each of them, by distance, then by position."""
    Q, Y, k = queries.X[i], candidates.X[j], min(k, len(j))
    with config_context(assume_finite=True):
        away, at = NearestNeighbors(algorithm="brute").fit(Y).kneighbors(Q, n_neighbors=min(k + 1, len(Y)))
    if k < len(Y):  # the search rounds: check its choice where the next row is as near
        rounding = SEARCH_ROUNDING * (away[:, k] + np.sqrt(np.einsum("ij,ij->i", Q, Q)))
        unsure = np.flatnonzero(away[:, k] - away[:, k - 1] <= rounding)
        for some in (unsure[block] for block in row_blocks(len(unsure), len(Y))):
            at[some, :k] = np.argsort(cdist(Q[some], Y), axis=1, kind="stable")[:, :k]
    return i, j[at[:, :k]], 0.0


def _distances(Q: np.ndarray, i: np.ndarray, Y: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the distances of rows i of Q to rows j of Y: the same bits for the same rows, whatever their blocks."""
    Q, Y = (np.require(rows, requirements="A") for rows in (Q, Y))  # what another worker sent may lie at an odd address
    distances, blocks = np.empty(len(i)), row_blocks(len(i), Q.shape[1], 2**17)
    # Written again and again: a worker of Dask gives back freed memory at once, and new pages cost more than the work.
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
