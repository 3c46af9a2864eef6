"""Who is near whom, block against block.

Every block of rows asks one block of candidates after the other, and keeps the k nearest so far: in round b all blocks
look at block b, so that a worker holds its own blocks and one that travels. Of equally near rows the one of the lowest
number comes first, however the rows are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from .._array import row_blocks
from ._table import Rows, Table
from ._work import Work

# As in `nearkin.neighbors`: a class of at most so many candidates is left out after the search, not before it.
SMALL_CLASS = 64
SEARCH_ROUNDING = 1e-6  # relative to the rows and their distance, of a search by products in float32 or float64


class Lists(NamedTuple):
    """The nearest rows of every row of a block.

    Attributes
    ----------
    neighbors : integer array of shape (b, k)
        Their numbers among all rows, nearest first; -1 where there are no more.
    distances : array of shape (b, k)
        Euclidean; infinite where there are no more.
    """

    neighbors: np.ndarray
    distances: np.ndarray


def nearest(work: Work, table: Table, kind: str, k: Any) -> list[Future]:
    """Return the lists of the k nearest rows of every row, a future of `Lists` for every block.

    Parameters
    ----------
    kind : {"kin", "strangers"}
        Among the others of the same class, or among those of other classes.
    k : int, or array of shape (n_classes,)
        For all rows, or for the rows of each class.

    Notes
    -----
    O(n^2 p) time, O(n k) memory over all workers; n p numbers travel for every block.
    """
    lists: list[Any] = [None] * len(table.rows)
    for candidates in table.rows:
        lists = work.map(with_nearer, lists, table.rows, [candidates] * len(lists), kind=kind, k=k)
    return lists


# Tasks.


def with_nearer(lists: Lists | None, queries: Rows, candidates: Rows, *, kind: str, k: Any) -> Lists:
    """Return the lists of some rows after they have looked at one block more."""
    each = np.broadcast_to(k, len(queries.X)) if np.ndim(k) == 0 else k[queries.codes]
    found = block_neighbors(queries, candidates, kind, each)
    if lists is not None:
        found = _nearest_first(np.hstack([lists[0], found[0]]), np.hstack([lists[1], found[1]]), each.max())
    beyond = np.arange(found.neighbors.shape[1]) >= each[:, None]
    return Lists(np.where(beyond, -1, found.neighbors), np.where(beyond, np.inf, found.distances))


def block_neighbors(queries: Rows, candidates: Rows, kind: str, k: np.ndarray) -> Lists:
    """Return the k nearest candidates of every row of another block, or of the same: exact.

    Parameters
    ----------
    queries, candidates : Rows
    kind : {"kin", "strangers"}
    k : integer array of shape (n_queries,)
    """
    width = min(int(k.max()), len(candidates.X))
    neighbors = np.full((len(queries.X), width), -1)
    distances = np.full(neighbors.shape, np.inf, queries.X.dtype)
    for i, j, n_not_allowed in _searches(queries, candidates, kind):
        at, away = _exact(queries.X[i], candidates.X[j], int(k[i].max()) + n_not_allowed)
        at = j[at]
        numbers = candidates.start + at
        mine, theirs = (queries.codes[i], candidates.codes[at]) if kind == "strangers" else (queries.start + i, numbers)
        allowed = mine[:, None] != theirs
        found = _nearest_first(np.where(allowed, numbers, -1), np.where(allowed, away, np.inf), width)
        neighbors[i, : found.neighbors.shape[1]] = found.neighbors
        distances[i, : found.neighbors.shape[1]] = found.distances
    return Lists(neighbors, distances)


def _exact(Q: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in Y of the k rows nearest to every row of Q, by distance, then by place; and the distances.

    The search rounds; so its choice is checked where the next row is as near, and distances are taken anew: they are
    the same bits for the same two rows, whatever else is in their blocks.
    """
    k = min(k, len(Y))
    with config_context(assume_finite=True):
        away, at = NearestNeighbors(algorithm="brute").fit(Y).kneighbors(Q, n_neighbors=min(k + 1, len(Y)))
    if k < len(Y):
        rounding = SEARCH_ROUNDING * (away[:, k] + np.sqrt(np.einsum("ij,ij->i", Q, Q)))
        unsure = np.flatnonzero(away[:, k] - away[:, k - 1] <= rounding)
        for some in (unsure[block] for block in row_blocks(len(unsure), len(Y))):
            at[some, :k] = np.argsort(cdist(Q[some], Y), axis=1, kind="stable")[:, :k]
    at = at[:, :k]
    distances = np.empty(at.shape)
    for rows in row_blocks(len(Q), k * Q.shape[1]):
        distances[rows] = np.linalg.norm(Y[at[rows]] - Q[rows, None].astype(np.float64), axis=2)
    return at, distances


def _searches(queries: Rows, candidates: Rows, kind: str) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield who looks for neighbours among whom, and how many of those may not be allowed."""
    if kind == "kin":
        itself = int(queries.start == candidates.start)
        others = dict(_members(candidates.codes))
        yield from ((i, others[c], itself) for c, i in _members(queries.codes) if c in others)
        return
    everybody, all_others = np.arange(len(queries.X)), np.arange(len(candidates.X))
    n_kin = np.bincount(candidates.codes, minlength=queries.codes.max() + 1)
    few = n_kin[queries.codes] <= SMALL_CLASS
    if few.any():
        yield everybody[few], all_others, int(n_kin[queries.codes[few]].max())
    for c, i in _members(queries.codes):
        if SMALL_CLASS < n_kin[c] < len(all_others):
            yield i, all_others[candidates.codes != c], 0


def _members(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield every class of a block with its rows."""
    order = np.argsort(codes, kind="stable")
    classes, firsts = np.unique(codes[order], return_index=True)
    yield from zip(classes.tolist(), np.split(order, firsts[1:]), strict=True)


def _nearest_first(neighbors: np.ndarray, distances: np.ndarray, width: int) -> Lists:
    """Return the nearest `width` entries of every row, by distance, then by number."""
    order = np.lexsort((neighbors, distances))[:, :width]
    return Lists(np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(distances, order, axis=1))
