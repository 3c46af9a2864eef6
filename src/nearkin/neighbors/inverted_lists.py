"""An inverted file for searching the rows of a table among themselves.

Rows are in lists of near rows, and for every row the nearest lists are searched. Tens of thousands
of queries are processed together: every list is compared, by one product, with the queries that it
is near. Only distances below that of the k-th nearest row so far are kept. To have such a bound
from the start, adjacent queries are first compared with lists that are near all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._blocks import row_blocks
from .._messages import warn_user
from .._threads import n_threads, parallel_map
from .brute_force import IN_CACHE, NearestSoFar, nearest_candidates, tiles_of
from .lists import members_of

ONE_ROUND = 256  # lists per run of k-means
PER_CENTRE = 40  # rows per list from which its centre is learned


@dataclass(frozen=True)
class CoarseQuantizer:
    """The assignment of rows to lists; a list contains rows of one group.

    Attributes
    ----------
    centres : ndarray of shape (n_lists, d), float32
        The centre of every list, learned by k-means from some of its rows.
    list_of : ndarray of shape (n,), int64
        The list of every row.
    first : list of int
        The first list of every group, followed by n_lists.
    """

    centres: np.ndarray
    list_of: np.ndarray
    first: list[int]

    def lists_in(self, relation: str, group: int) -> np.ndarray:
        """Return the lists of a group ("same"), of all groups, or of the "other" groups."""
        every = np.arange(len(self.centres))
        if relation == "all":
            return every
        own = (every >= self.first[group]) & (every < self.first[group + 1])
        return every[own == (relation == "same")]

    @classmethod
    def of(
        cls, Z: np.ndarray, groups: Sequence[np.ndarray], n_lists: int, most: int | None = None
    ) -> CoarseQuantizer:
        """Partition the rows of each group into lists, about `n_lists` in total.

        The number of lists of a group is proportional to its size, but at most `most`. No list is
        empty. Equal rows share a list, so there may be fewer lists.
        """
        centres, list_of, first = [], np.empty(len(Z), np.int64), [0]
        for members in groups:
            share = min(max(1, round(n_lists * len(members) / len(Z))), len(members))
            rows = Z[members]
            if most is not None or share <= ONE_ROUND:
                of_group, own = _k_means(rows, min(share, most or share))
            else:
                # k-means on parts found by k-means, since runs with few lists are quicker. A part
                # much larger than the others has many equal rows, and needs no third level.
                n_parts = round(share**0.5)
                parts = members_of(_k_means(rows, n_parts)[1])
                lists = cls.of(rows, parts, share, max(ONE_ROUND, 2 * n_parts))
                of_group, own = lists.centres, lists.list_of
            centres.append(of_group)
            list_of[members] = first[-1] + own
            first.append(first[-1] + len(of_group))
        return cls(np.vstack(centres), list_of, first)


def _k_means(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of lists, and the list of every row."""
    if n_lists == 1:
        return Z.mean(axis=0, keepdims=True), np.zeros(len(Z), np.int64)
    limits = {"max_points_per_centroid": PER_CENTRE, "min_points_per_centroid": 1}
    means = import_faiss().Kmeans(Z.shape[1], n_lists, niter=10, seed=0, **limits)
    means.train(Z)
    used, own = np.unique(means.index.search(Z, 1)[1][:, 0], return_inverse=True)
    return means.centroids[used], own


LONGEST = 256  # rows per list
SIDE_BY_SIDE = 128  # queries that start with the same lists; a multiple of 8
START = 2048  # rows that these lists contain, at least
QUERIES = 2**16  # that are processed together, at most
COLLECTED = 2**23  # candidates that these queries may collect, at most
QUANTILE_OF = 16  # lists within the threshold, among the evenly spaced ones that estimate it
EQUAL = 1e-12  # maximum squared distance of equal rows, in units of the largest entry

# share of the true neighbours that the lists searched should contain, rows that estimate it, and
# maximum number of rows in these lists
FOUND, SAMPLE, CANDIDATES = 0.97, 500, 2**17


class InvertedLists:
    """Rows stored list by list in memory.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
        In a unit that makes the largest entry about 1.
    quantizer : CoarseQuantizer
        Lists of more than 256 rows are split into several with the same centre.
    codes : integer array of shape (n,), default=None
        The classes of the rows, if only rows of other classes may be neighbours.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        The rows, list by list. A place is a position in this order.
    """

    def __init__(
        self, Z: np.ndarray, quantizer: CoarseQuantizer, codes: np.ndarray | None = None
    ) -> None:
        self.rows = np.argsort(quantizer.list_of, kind="stable")
        self.Z = Z[self.rows]
        sizes = np.bincount(quantizer.list_of)
        ends = np.cumsum(sizes)
        cuts = [
            np.linspace(end - size, end, -(-size // LONGEST) + 1, dtype=np.intp)[:-1]
            for size, end in zip(sizes, ends, strict=True)
        ]
        self.starts = np.concatenate([*cuts, ends[-1:]])
        self.sizes = np.diff(self.starts)
        self.centres = np.repeat(quantizer.centres, [len(of_list) for of_list in cuts], axis=0)
        self._squares = np.einsum("ij,ij->i", self.centres, self.centres)
        self._codes = None
        if codes is not None:
            # short integers are compared many at a time
            self._codes = codes[self.rows].astype(np.min_scalar_type(codes.max()))
            lowest, highest = (
                extreme.reduceat(self._codes, self.starts[:-1])
                for extreme in (np.minimum, np.maximum)
            )
            # the class of every list with a single class; -1 if there are several
            self._only_class = np.where(lowest == highest, lowest.astype(np.int64), -1)

    def n_probes(self, k: int) -> int:
        """Return how many lists to search to find .97 of the k nearest rows of a sample.

        On average, these contain at most 131,072 rows.
        """
        step = -(-len(self.rows) // SAMPLE)
        place_of = np.argsort(self.rows)

        def ranks(first: int) -> np.ndarray:
            """Return, for each neighbour of some rows, how many lists are nearer than its own."""
            queries = np.arange(first, len(self.rows), step * n_threads())
            found = place_of[self.nearest(queries, k, len(self.sizes))]
            lists = np.searchsorted(self.starts, found, side="right") - 1
            away = self._distances(queries)
            own = np.take_along_axis(away, lists, axis=1)
            return np.concatenate(
                [np.searchsorted(np.sort(all_), some) for all_, some in zip(away, own, strict=True)]
            )

        firsts = range(0, min(step * n_threads(), len(self.rows)), step)
        parts = parallel_map(ranks, firsts, SAMPLE * len(self.rows))
        needed = 1 + np.quantile(np.concatenate(parts), FOUND, method="higher")
        return int(min(needed, CANDIDATES / self.sizes.mean()))

    def batches(self, wanted: np.ndarray, k: int) -> Iterator[np.ndarray]:
        """Yield the places of the wanted rows, in groups that are searched together for k rows."""
        places = np.flatnonzero(wanted[self.rows])
        together = min(QUERIES, COLLECTED // (k + LONGEST), -(-len(places) // n_threads()))
        for block in row_blocks(len(places), 1, together):
            yield places[block]

    def nearest(self, queries: np.ndarray, k: int, n_probes: int) -> np.ndarray:
        """Return the k nearest of the rows in about `n_probes` nearest lists.

        Parameters
        ----------
        queries : integer array of shape (b,)
            Places, ascending.
        k : int
        n_probes : int

        Returns
        -------
        rows : integer array of shape (b, k)
            Nearest rows in any order, including the query itself if there are no classes; padded
            with the query itself.
        """
        Q = self.Z[queries]
        found = NearestSoFar(len(Q), k, LONGEST)
        is_near = np.zeros((len(self.sizes), -(-len(Q) // 8)), np.uint8)  # one bit per query
        for block in row_blocks(len(Q), 1, SIDE_BY_SIDE):
            lists = self._start(found, block, queries[block])
            near = self._nearest_lists(queries[block], n_probes)
            near[found.bound[block] <= EQUAL] = False  # no closer rows exist
            near[:, lists] = False
            bits = np.packbits(np.ascontiguousarray(near.T), axis=1)
            is_near[:, block.start // 8 :][:, : bits.shape[1]] = bits
        for number in np.flatnonzero(is_near.any(axis=1)):
            i = np.flatnonzero(np.unpackbits(is_near[number], count=len(Q)))
            places = np.arange(*self.starts[number : number + 2])
            for block in row_blocks(len(i), len(places), IN_CACHE):
                some = i[block]
                allowed = self._allowed(queries[some], places)
                candidates = places, self.Z[places]
                found.compare(some, Q[some], candidates, self.centres[number], allowed)
        at = self._completed(found.nearest(), queries)
        return np.where(at < 0, self.rows[queries, None], self.rows[at])

    def _start(self, found: NearestSoFar, block: slice, queries: np.ndarray) -> np.ndarray:
        """Compare adjacent queries with the lists nearest to their mean; return these lists."""
        Q = self.Z[queries]
        middle = Q.mean(axis=0)
        lists = np.argsort(self._squares - 2 * self.centres @ middle)
        if self._codes is not None and (self._codes[queries] == self._codes[queries[0]]).all():
            lists = lists[self._only_class[lists] != self._codes[queries[0]]]
        n_held = np.cumsum(self.sizes[lists])
        lists = lists[: 1 + np.searchsorted(n_held, max(START, 2 * found.k))]
        places = np.concatenate([np.arange(*self.starts[one : one + 2]) for one in lists])
        candidates = places, self.Z[places]
        found.start(block, Q, candidates, middle, self._allowed(queries, places))
        return lists

    def _nearest_lists(self, queries: np.ndarray, n_probes: int) -> np.ndarray:
        """Return which lists are among the `n_probes` nearest to each query, (b, n_lists).

        The threshold is a quantile of the distances to evenly spaced lists.
        """
        away = self._distances(queries)
        farthest = np.full((len(queries), 1), np.finfo(away.dtype).max)
        if n_probes < len(self.sizes):
            some = away[:, :: max(1, n_probes // QUANTILE_OF)]
            at = some.shape[1] * n_probes // len(self.sizes)
            np.minimum(farthest, np.partition(some, at, axis=1)[:, [at]], out=farthest)
        return away <= farthest

    def _distances(self, queries: np.ndarray) -> np.ndarray:
        """Return squared distances from queries to the centres, minus the queries' squared norms.

        They are infinite for lists that only contain rows of the query's class.
        """
        with np.errstate(invalid="ignore"):
            away = self.Z[queries] @ (-2 * self.centres).T
        away += self._squares
        if self._codes is not None and (self._only_class >= 0).any():
            own = self._codes[queries, None] == self._only_class
            np.copyto(away, np.inf, where=own)
        return away

    def _allowed(self, queries: np.ndarray, places: np.ndarray) -> np.ndarray | None:
        """Return which rows may be neighbours of which queries; None for all."""
        return None if self._codes is None else self._codes[queries, None] != self._codes[places]

    def _completed(self, found: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Return the places found for queries, completed if the lists contained too few rows.

        In that case, the rows of other classes are all searched.
        """
        if self._codes is None:
            return found
        n_found = np.count_nonzero(found >= 0, axis=1)
        for code in np.unique(self._codes[queries[n_found < found.shape[1]]]):
            others = np.flatnonzero(self._codes != code)
            lacking = np.flatnonzero(
                (self._codes[queries] == code) & (n_found < min(found.shape[1], len(others)))
            )
            for block in row_blocks(len(lacking), 1, SIDE_BY_SIDE):
                i = lacking[block]
                tiles = tiles_of(self.Z, others)
                found[i] = nearest_candidates(self.Z[queries[i]], tiles, found.shape[1])
        return found


@cache
def _search_before_faiss() -> None:
    """Run a scikit-learn search once, before faiss is imported; warn if faiss already is.

    In its first search, scikit-learn detects the threaded libraries to limit. If faiss is among
    them, its searches may use only one thread from then on.
    """
    if "faiss" not in sys.modules:
        NearestNeighbors(n_neighbors=1, algorithm="brute").fit(np.eye(2)).kneighbors(np.eye(2))
        return
    warn_user(
        "faiss was imported before nearkin's first approximate search: from then on "
        "scikit-learn's own search may use one thread only. Let nearkin import it, or search "
        "once with scikit-learn before."
    )


def import_faiss() -> Any:
    """Import and return faiss, after a first search of scikit-learn: see `_search_before_faiss`."""
    _search_before_faiss()
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            'An approximate search needs faiss: pip install "nearkin[ann]".'
        ) from error
    return faiss
