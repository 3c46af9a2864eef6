"""Rows in lists of near ones, each of one class: k-means by faiss, and its inverted file for one query at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from .._warn import warn_user
from .search import members_of
from .tiles import TILE, Tile

ONE_ROUND = 256  # lists that one k-means makes
PER_CENTRE = 40  # rows from which the centre of a list is learned
QUERIES = 2**15  # rows that look through lists at a time


# Rows (n, d) and a number of lists: their centres, and for every row the number of its list.
Clustering = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class CoarseQuantizer:
    """Which list every row is in; a list holds rows of one group.

    Attributes
    ----------
    centres : ndarray of shape (n_lists, d), float32
        The centre of every list, learned by k-means from some of its rows.
    list_of : ndarray of shape (n,), int64
        The number of every row's list.
    first : list of int
        The number of the first list of every group, and behind them n_lists.
    """

    centres: np.ndarray
    list_of: np.ndarray
    first: list[int]

    @classmethod
    def of(cls, Z: np.ndarray, groups: Sequence[np.ndarray], n_lists: int) -> CoarseQuantizer:
        """File rows of each of the groups, together all rows, in about `n_lists` lists: each group has its share.

        No list is empty. Equal rows share one, so that there may be fewer.
        """
        return cls._of(Z, groups, n_lists, _clustered)

    @classmethod
    def _of(cls, Z: np.ndarray, groups: Sequence[np.ndarray], n_lists: int, cluster: Clustering) -> CoarseQuantizer:
        centres, list_of, first = [], np.empty(len(Z), np.int64), [0]
        for members in groups:
            share = min(max(1, round(n_lists * len(members) / len(Z))), len(members))
            group_centres, nearest_centre = cluster(Z[members], share)
            centres.append(group_centres)
            list_of[members] = first[-1] + nearest_centre
            first.append(first[-1] + len(group_centres))
        return cls(np.vstack(centres), list_of, first)

    @property
    def all_lists(self) -> np.ndarray:
        """The numbers of all lists."""
        return np.arange(len(self.centres))

    def lists_of(self, group: int) -> np.ndarray:
        """Return the numbers of the lists of a group."""
        return self.all_lists[self.first[group] : self.first[group + 1]]

    def lists_but(self, group: int) -> np.ndarray:
        """Return the numbers of the lists of all groups but one."""
        return np.delete(self.all_lists, slice(self.first[group], self.first[group + 1]))


class InvertedLists:
    """Rows beside those of the same list in memory.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    filing : Filing
    """

    def __init__(self, Z: np.ndarray, filing: CoarseQuantizer) -> None:
        order = np.argsort(filing.list_of, kind="stable")
        self.filing = filing
        self.sizes = np.bincount(filing.list_of, minlength=len(filing.centres))
        self.rows = np.split(order, np.cumsum(self.sizes)[:-1])
        self.Z = np.split(Z[order], np.cumsum(self.sizes)[:-1])
        self._squares = np.einsum("ij,ij->i", filing.centres, filing.centres)

    def near(self, number: int, lists: Callable[[], np.ndarray], n_lists: int, n_rows: int) -> Iterator[Tile]:
        """Yield the numbers of rows, and the rows, of the lists nearest to one: of `n_lists`, or enough for `n_rows`.

        Nearer lists come first, several at a time, a large one in parts.
        """
        near = lists()
        away = self._squares - 2 * self.filing.centres @ self.filing.centres[number]
        near = near[np.argsort(away[near])]
        n_held = np.cumsum(self.sizes[near])
        near = near[: max(n_lists, 1 + int(np.searchsorted(n_held, n_rows)))]
        for some in np.split(near, np.flatnonzero(np.diff(n_held[: len(near)] // TILE)) + 1):
            rows, Z = np.concatenate([self.rows[one] for one in some]), np.concatenate([self.Z[one] for one in some])
            for part in row_blocks(len(rows), 1, 2 * TILE):
                yield rows[part], Z[part]


class IVFIndex:
    """Rows in lists of near ones, for queries that come one by one.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    n_lists : int
    """

    def __init__(self, Z: np.ndarray, n_lists: int) -> None:
        faiss = import_faiss()
        n, d = Z.shape
        filing = CoarseQuantizer.of(Z, [np.arange(n)], n_lists)
        self.n_lists = len(filing.centres)
        centres = faiss.IndexFlatL2(d)
        centres.add(filing.centres)
        self._index = faiss.IndexIVFFlat(centres, d, self.n_lists)
        self._index.is_trained = True  # the centres are at hand, and who is in which list
        self._index.add_core(n, faiss.swig_ptr(Z), None, faiss.swig_ptr(filing.list_of))

    def found(self, Q: np.ndarray, k: int, n_probes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield numbers of queries, and of the k rows found near them, k <= n, shape (b, k).

        Where the nearest lists hold fewer, more are looked through. A query so far away that its distances overflow
        finds any rows: all are as far.
        """
        faiss = import_faiss()
        queries = np.arange(len(Q))
        while len(queries):
            probing = faiss.SearchParametersIVF(nprobe=min(n_probes, self.n_lists))
            lacking = []
            for block in row_blocks(len(queries), 1, QUERIES):
                asked = queries[block]
                found = self._index.search(Q[asked], k, params=probing)[1]
                enough = (found >= 0).all(axis=1)
                if n_probes >= self.n_lists:
                    found[~enough], enough = np.arange(k), True | enough
                yield asked[enough], found[enough]
                lacking.append(asked[~enough])
            queries, n_probes = np.concatenate(lacking), 4 * n_probes


def _clustered(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centres of lists by k-means, and for every row the number of its own; many lists in two rounds of few."""
    if n_lists <= ONE_ROUND:
        return _k_means(Z, n_lists)
    n_parts = round(n_lists**0.5)
    _, part = _k_means(Z, n_parts)

    def few(Z: np.ndarray, share: int) -> tuple[np.ndarray, np.ndarray]:
        return _k_means(Z, min(share, max(ONE_ROUND, 2 * n_parts)))  # a part of many equal rows has no use for more

    filing = CoarseQuantizer._of(Z, members_of(part), n_lists, few)
    return filing.centres, filing.list_of


def _k_means(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres that some rows are nearest to, and for every row the number of its own."""
    if n_lists == 1:
        return Z.mean(axis=0, keepdims=True), np.zeros(len(Z), np.int64)
    means = import_faiss().Kmeans(
        Z.shape[1], n_lists, niter=10, seed=0, max_points_per_centroid=PER_CENTRE, min_points_per_centroid=1
    )
    means.train(Z)
    used, own = np.unique(means.index.search(Z, 1)[1][:, 0], return_inverse=True)
    return means.centroids[used], own


def import_faiss() -> Any:
    """Return faiss. Imported first, it would leave scikit-learn's search with one thread for good.

    scikit-learn looks for the libraries that have threads in its first search, and limits those it knows: faiss must
    not be among them.
    """
    if "faiss" not in sys.modules:
        NearestNeighbors(n_neighbors=1, algorithm="brute").fit(np.eye(2)).kneighbors(np.eye(2))
        _OURS.append("faiss")
    elif not _OURS:
        _OURS.append("theirs")
        warn_user(
            "faiss was imported before nearkin's first approximate search: from then on scikit-learn's own search may "
            "use one thread only. Let nearkin import it, or search once with scikit-learn before."
        )
    try:
        import faiss
    except ImportError as error:
        raise ImportError('An approximate search needs faiss: pip install "nearkin[ann]".') from error
    return faiss


_OURS: list[str] = []
