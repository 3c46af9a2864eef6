"""One block of rows looks for its neighbours in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from ..neighbors.search import SMALL_CLASS, members_of
from ._table import Rows

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


# Queries of a block (q,); for each the places of some rows of another block (q, r), -1 for none; how far these are at
# least.
Found = tuple[np.ndarray, np.ndarray, Any]


def with_found(
    lists: Lists | None, queries: Rows, candidates: Rows, kind: str, k: np.ndarray, found: Iterable[Found]
) -> Lists:
    """Return the lists of some rows after they have looked in one block more.

    Parameters
    ----------
    lists : Lists or None
        What they know so far.
    queries, candidates : Rows
    kind : {"kin", "strangers"}
    k : integer array of shape (n_queries,)
    found : iterable of Found
        All that is to be listed is among it; others may be.
    """
    known = 0 if lists is None else lists.neighbors.shape[1]
    width = min(int(k.max()), known + len(candidates.X))
    neighbors = np.full((len(queries.X), width), -1)
    distances = np.full(neighbors.shape, np.inf, queries.X.dtype)
    if lists is not None:
        neighbors[:, :known], distances[:, :known] = lists
    if width == 0:
        return Lists(neighbors, distances)
    for i, at, least in found:
        numbers = candidates.start + at
        mine, theirs = (queries.codes[i], candidates.codes[at]) if kind == "strangers" else (queries.own(i), numbers)
        farthest = np.where(k[i] <= width, distances[i, np.minimum(k[i], width) - 1], np.inf)
        allowed = (mine[:, None] != theirs) & (at >= 0) & (least <= farthest[:, None])
        away = np.full(at.shape, np.inf, distances.dtype)
        row, _ = np.nonzero(allowed)
        away[allowed] = _distances(queries.X, i[row], candidates.X, at[allowed])
        both = np.hstack([neighbors[i], np.where(allowed, numbers, -1)]), np.hstack([distances[i], away])
        neighbors[i], distances[i] = nearest_first(*both, width)
    beyond = np.arange(width) >= k[:, None]
    return Lists(np.where(beyond, -1, neighbors), np.where(beyond, np.inf, distances))


def everywhere(queries: Rows, candidates: Rows, kind: str, k: np.ndarray) -> Iterator[Found]:
    """Yield queries and the places of the candidates nearest to them, of all."""
    if kind == "kin":
        yield from among_kin(queries, candidates, k, np.unique(queries.codes))
        return
    everybody, all_others = np.arange(len(queries.X)), np.arange(len(candidates.X))
    n_kin = np.bincount(candidates.codes, minlength=queries.codes.max() + 1)
    few = n_kin[queries.codes] <= SMALL_CLASS
    if few.any():
        n_not_allowed = int(n_kin[queries.codes[few]].max())
        yield _nearest(queries, everybody[few], candidates, all_others, int(k[few].max()) + n_not_allowed)
    for c, i in members_by_class(queries.codes):
        if SMALL_CLASS < n_kin[c] < len(all_others):
            yield _nearest(queries, i, candidates, all_others[candidates.codes != c], int(k[i].max()))


def among_kin(queries: Rows, candidates: Rows, k: np.ndarray, classes: np.ndarray) -> Iterator[Found]:
    """Yield the queries of some classes and the places of the candidates of the same class nearest to them."""
    own = queries.own(np.arange(len(queries.X)))
    itself = int(((own >= candidates.start) & (own < candidates.start + len(candidates.X))).any())
    shared = set(np.intersect1d(classes, candidates.codes).tolist())
    theirs = dict(members_by_class(candidates.codes)) if shared else {}
    for c, i in members_by_class(queries.codes) if shared else ():
        if c in shared:
            yield _nearest(queries, i, candidates, theirs[c], int(k[i].max()) + itself)


def _nearest(queries: Rows, i: np.ndarray, candidates: Rows, j: np.ndarray, k: int) -> Found:
    """Return queries, and of the candidates j the k nearest to each of them, by distance, then by place.

    The search rounds; so its choice is checked where the next row is as near.
    """
    Q, Y, k = queries.X[i], candidates.X[j], min(k, len(j))
    with config_context(assume_finite=True):
        away, at = NearestNeighbors(algorithm="brute").fit(Y).kneighbors(Q, n_neighbors=min(k + 1, len(Y)))
    if k < len(Y):
        rounding = SEARCH_ROUNDING * (away[:, k] + np.sqrt(np.einsum("ij,ij->i", Q, Q)))
        unsure = np.flatnonzero(away[:, k] - away[:, k - 1] <= rounding)
        for some in (unsure[block] for block in row_blocks(len(unsure), len(Y))):
            at[some, :k] = np.argsort(cdist(Q[some], Y), axis=1, kind="stable")[:, :k]
    return i, j[at[:, :k]], 0.0


def _distances(Q: np.ndarray, i: np.ndarray, Y: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the distances of some rows of Q to rows of Y, one by one.

    They are the same bits for the same two rows, whatever else is in their blocks.
    """
    distances = np.empty(len(i))
    for pairs in row_blocks(len(i), Q.shape[1], 2**17):
        apart = Q[i[pairs]].astype(np.float64)
        apart -= Y[j[pairs]]
        distances[pairs] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    return distances


def per_row(k: Any, rows: Rows) -> np.ndarray:
    """Return k for every row, given for all rows or for each class."""
    return np.broadcast_to(k, len(rows.X)) if np.ndim(k) == 0 else k[rows.codes]


def members_by_class(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield every class of a block with its rows."""
    yield from ((c, members) for c, members in enumerate(members_of(codes)) if len(members))


def nearest_first(neighbors: np.ndarray, distances: np.ndarray, width: int) -> Lists:
    """Return the nearest `width` entries of every row, by distance, then by number."""
    order = np.lexsort((neighbors, distances))[:, :width]
    return Lists(np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(distances, order, axis=1))
