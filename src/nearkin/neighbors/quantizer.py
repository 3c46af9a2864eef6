"""Rows in lists of near ones, each of one class: k-means by faiss, and its inverted file for single queries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from .._warn import warn_user
from .search import Relation, members_of
from .tiles import TILE, Tile

ONE_ROUND = 256  # lists that one k-means makes
PER_CENTRE = 40  # rows from which the centre of a list is learned
QUERIES = 2**15  # that are searched at a time

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
        """Partition the rows of each group, together all rows, into about `n_lists` lists, in proportion to its size.

        No list is empty. Equal rows share one, so that there may be fewer.
        """
        return cls._of(Z, groups, n_lists, _cluster)

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

    def lists_of(self, group: int) -> range:
        """Return the numbers of the lists of a group."""
        return range(self.first[group], self.first[group + 1])

    def candidates(self, number: int, relation: Relation) -> np.ndarray:
        """Return the numbers of the lists of any group, of the same group as a list, or of the other groups."""
        lists = np.arange(len(self.centres))
        group = np.searchsorted(self.first, lists, side="right")
        if relation is Relation.ANY:
            return lists
        return lists[(group == group[number]) == (relation is Relation.SAME)]


class InvertedLists:
    """Rows of the same list side by side in memory.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    quantizer : CoarseQuantizer
    """

    def __init__(self, Z: np.ndarray, quantizer: CoarseQuantizer) -> None:
        order = np.argsort(quantizer.list_of, kind="stable")
        self.quantizer = quantizer
        self.sizes = np.bincount(quantizer.list_of, minlength=len(quantizer.centres))
        self.rows = np.split(order, np.cumsum(self.sizes)[:-1])
        self.Z = np.split(Z[order], np.cumsum(self.sizes)[:-1])
        self._squares = np.einsum("ij,ij->i", quantizer.centres, quantizer.centres)

    def nearest_tiles(self, number: int, relation: Relation, n_lists: int, n_rows: int) -> Iterator[Tile]:
        """Yield numbers of rows, and the rows, of the `n_lists` lists nearest to one, or of enough for `n_rows`.

        The lists are those of groups in the relation. Nearer lists come first, several at a time, a large one in parts.
        """
        near = self.quantizer.candidates(number, relation)
        with np.errstate(invalid="ignore"):  # OpenBLAS raises the flag for float32 lanes that it does not use
            away = self._squares - 2 * self.quantizer.centres @ self.quantizer.centres[number]
        near = near[np.argsort(away[near])]
        n_held = np.cumsum(self.sizes[near])
        near = near[: max(n_lists, 1 + int(np.searchsorted(n_held, n_rows)))]
        for some in np.split(near, np.flatnonzero(np.diff(n_held[: len(near)] // TILE)) + 1):
            rows, Z = np.concatenate([self.rows[one] for one in some]), np.concatenate([self.Z[one] for one in some])
            for part in row_blocks(len(rows), 1, 2 * TILE):
                yield rows[part], Z[part]


class IVFIndex:
    """Rows in lists of near ones, for single queries.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    n_lists : int
    """

    def __init__(self, Z: np.ndarray, n_lists: int) -> None:
        faiss = import_faiss()
        n, d = Z.shape
        quantizer = CoarseQuantizer.of(Z, [np.arange(n)], n_lists)
        self.n_lists = len(quantizer.centres)
        centres = faiss.IndexFlatL2(d)
        centres.add(quantizer.centres)
        self._index = faiss.IndexIVFFlat(centres, d, self.n_lists)
        self._index.is_trained = True  # the centres, and the list of every row, are known
        self._index.add_core(n, faiss.swig_ptr(Z), None, faiss.swig_ptr(quantizer.list_of))

    def search(self, Q: np.ndarray, k: int, n_probes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield numbers of queries, and of the k rows found near them, k <= n, shape (b, k).

        Where the nearest lists hold fewer, more are searched. A query so far away that its distances overflow finds any
        rows: all are as far.
        """
        faiss = import_faiss()
        queries = np.arange(len(Q))
        while len(queries):
            probing = faiss.SearchParametersIVF(nprobe=min(n_probes, self.n_lists))
            lacking = []
            for block in row_blocks(len(queries), 1, QUERIES):
                rows = queries[block]
                found = self._index.search(Q[rows], k, params=probing)[1]
                enough = (found >= 0).all(axis=1)
                if n_probes >= self.n_lists:
                    found[~enough], enough = np.arange(k), True | enough
                yield rows[enough], found[enough]
                lacking.append(rows[~enough])
            queries, n_probes = np.concatenate(lacking), 4 * n_probes


def _cluster(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centres of lists by k-means, and for every row the number of its own; many lists in two rounds of few."""
    if n_lists <= ONE_ROUND:
        return _k_means(Z, n_lists)
    n_parts = round(n_lists**0.5)
    _, part = _k_means(Z, n_parts)

    def few(Z: np.ndarray, share: int) -> tuple[np.ndarray, np.ndarray]:
        return _k_means(Z, min(share, max(ONE_ROUND, 2 * n_parts)))  # a part of many equal rows needs no more

    quantizer = CoarseQuantizer._of(Z, members_of(part), n_lists, few)
    return quantizer.centres, quantizer.list_of


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
