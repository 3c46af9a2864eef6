"""One block of rows looks for its neighbours in another: at all candidates, or at those in the nearest lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from .._array import row_blocks
from ..neighbors.filing import Filing, InvertedFile
from ._table import Rows

# As in `nearkin.neighbors`: a class of at most so many candidates is left out after the search, not before it.
SMALL_CLASS = 64
FEW = 2000  # candidates that are all looked at also by an approximate search
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


def block_neighbors(queries: Rows, candidates: Rows, kind: str, k: np.ndarray, look: Any) -> Lists:
    """Return the k nearest candidates of every row of another block, or of the same.

    Parameters
    ----------
    queries, candidates : Rows
    kind : {"kin", "strangers"}
    k : integer array of shape (n_queries,)
    look : Everywhere or InLists
        Who finds them.
    """
    width = min(int(k.max()), len(candidates.X))
    neighbors = np.full((len(queries.X), width), -1)
    distances = np.full(neighbors.shape, np.inf, queries.X.dtype)
    for i, j, c, n_not_allowed in _searches(queries, candidates, kind):
        at, away = look(i, j, min(int(k[i].max()) + n_not_allowed, len(j)), kind, c)
        numbers = candidates.start + at
        mine, theirs = (queries.codes[i], candidates.codes[at]) if kind == "strangers" else (queries.start + i, numbers)
        allowed = (mine[:, None] != theirs) & (at >= 0)
        found = nearest_first(np.where(allowed, numbers, -1), np.where(allowed, away, np.inf), width)
        neighbors[i, : found.neighbors.shape[1]] = found.neighbors
        distances[i, : found.neighbors.shape[1]] = found.distances
    return Lists(neighbors, distances)


@dataclass(frozen=True)
class Everywhere:
    """Looks at all candidates."""

    queries: Rows
    candidates: Rows

    def __call__(self, i: np.ndarray, j: np.ndarray, k: int, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the k candidates nearest to every query i among the places j, and their distances."""
        at, away = _exact(self.queries.X[i], self.candidates.X[j], k)
        return j[at], away


class InLists:
    """Looks at the candidates in the nearest lists."""

    def __init__(
        self, queries: Rows, candidates: Rows, filing: Filing, *, projection: np.ndarray | None, n_probes: int
    ) -> None:
        self.queries, self.candidates, self.n_probes = queries, candidates, n_probes
        self.group = {c: group for group, (c, _) in enumerate(_large_classes(candidates.codes))}
        self.Q = _projected(queries.X, projection)
        self.file = InvertedFile(_projected(candidates.X, projection), filing)

    def __call__(self, i: np.ndarray, j: np.ndarray, k: int, kind: str, c: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of about the k candidates nearest to every query i, -1 for none, and their distances.

        c is the class of all queries: that of the lists to look through, for kin, or to leave out, for strangers.
        """
        if len(j) <= FEW:
            return Everywhere(self.queries, self.candidates)(i, j, k)
        filing = self.file.filing
        lists = filing.all_lists
        if c is not None:
            lists = filing.lists_of(self.group[c]) if kind == "kin" else filing.lists_but(self.group[c])
        at = np.full((len(i), k), -1)
        for rows, found in self.file.found(self.Q[i], np.full(len(i), k), self.n_probes, lists):
            at[rows, : found.shape[1]] = found
        return at, np.where(at < 0, np.inf, _distances(self.queries.X[i], self.candidates.X, at))


def filing_of(rows: Rows, *, projection: np.ndarray | None, n_lists: int) -> Filing:
    """Return a block filed in lists: those of each large class, and behind them those of all small ones."""
    groups = [members for _, members in _large_classes(rows.codes)]
    small = np.setdiff1d(np.arange(len(rows.X)), np.concatenate(groups) if groups else [])
    return Filing.of(_projected(rows.X, projection), [*groups, small] if len(small) else groups, n_lists)


def _large_classes(codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return [(c, members) for c, members in _members(codes) if len(members) > SMALL_CLASS]


def _projected(X: np.ndarray, projection: np.ndarray | None) -> np.ndarray:
    return np.ascontiguousarray(X if projection is None else X @ projection.astype(X.dtype), dtype=np.float32)


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
    return at, _distances(Q, Y, at)


def _distances(Q: np.ndarray, Y: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the distances of every row of Q to the rows of Y at some places."""
    distances = np.empty(at.shape)
    for rows in row_blocks(len(Q), at.shape[1] * Q.shape[1]):
        distances[rows] = np.linalg.norm(Y[at[rows]] - Q[rows, None].astype(np.float64), axis=2)
    return distances


def _searches(queries: Rows, candidates: Rows, kind: str) -> Iterator[tuple[np.ndarray, np.ndarray, int | None, int]]:
    """Yield who looks among whom, the class of the first if it is one, and how many of the found may not be allowed."""
    if kind == "kin":
        itself = int(queries.start == candidates.start)
        others = dict(_members(candidates.codes))
        yield from ((i, others[c], c, itself) for c, i in _members(queries.codes) if c in others)
        return
    everybody, all_others = np.arange(len(queries.X)), np.arange(len(candidates.X))
    n_kin = np.bincount(candidates.codes, minlength=queries.codes.max() + 1)
    few = n_kin[queries.codes] <= SMALL_CLASS
    if few.any():
        yield everybody[few], all_others, None, int(n_kin[queries.codes[few]].max())
    for c, i in _members(queries.codes):
        if SMALL_CLASS < n_kin[c] < len(all_others):
            yield i, all_others[candidates.codes != c], c, 0


def _members(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield every class of a block with its rows."""
    order = np.argsort(codes, kind="stable")
    classes, firsts = np.unique(codes[order], return_index=True)
    yield from zip(classes.tolist(), np.split(order, firsts[1:]), strict=True)


def nearest_first(neighbors: np.ndarray, distances: np.ndarray, width: int) -> Lists:
    """Return the nearest `width` entries of every row, by distance, then by number."""
    order = np.lexsort((neighbors, distances))[:, :width]
    return Lists(np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(distances, order, axis=1))
