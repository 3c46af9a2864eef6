"""An inverted file for the rows of a table among themselves: rows in lists of near ones, and for
every row a search in the lists nearest to it.

Some ten thousand queries go through the lists together: every list is compared, by one product,
with those queries to which it is near. What is compared counts only below the distance of the k-th
nearest so far. So that there is such a bound from the start, queries that lie side by side are
compared first with lists that are near to all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._blocks import n_threads, parallel_map, row_blocks
from .._messages import warn_user
from .brute_force import IN_CACHE, NearestSoFar, nearest_candidates, tiles_of
from .lists import members_of

ONE_ROUND = 256  # lists that one k-means makes
PER_CENTRE = 40  # rows from which the centre of a list is learned


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

    def lists_in(self, relation: str, group: int) -> np.ndarray:
        """Return the numbers of the lists of a group ("same"), of all groups, or of the "other"
        ones.
        """
        every = np.arange(len(self.centres))
        if relation == "all":
            return every
        own = (every >= self.first[group]) & (every < self.first[group + 1])
        return every[own == (relation == "same")]

    @classmethod
    def of(
        cls, Z: np.ndarray, groups: Sequence[np.ndarray], n_lists: int, most: int | None = None
    ) -> CoarseQuantizer:
        """Partition the rows of each group, together all rows, into about `n_lists` lists, in
        proportion to its size; into at most `most`.

        No list is empty. Equal rows share one, so that there may be fewer.
        """
        centres, list_of, first = [], np.empty(len(Z), np.int64), [0]
        for members in groups:
            share = min(max(1, round(n_lists * len(members) / len(Z))), len(members))
            rows = Z[members]
            if most is not None or share <= ONE_ROUND:
                of_group, own = _k_means(rows, min(share, most or share))
            else:  # two rounds of few; a part of many equal rows needs no more
                n_parts = round(share**0.5)
                parts = members_of(_k_means(rows, n_parts)[1])
                lists = cls.of(rows, parts, share, max(ONE_ROUND, 2 * n_parts))
                of_group, own = lists.centres, lists.list_of
            centres.append(of_group)
            list_of[members] = first[-1] + own
            first.append(first[-1] + len(of_group))
        return cls(np.vstack(centres), list_of, first)


def _k_means(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres that some rows are nearest to, and for every row the number of its own."""
    if n_lists == 1:
        return Z.mean(axis=0, keepdims=True), np.zeros(len(Z), np.int64)
    limits = {"max_points_per_centroid": PER_CENTRE, "min_points_per_centroid": 1}
    means = import_faiss().Kmeans(Z.shape[1], n_lists, niter=10, seed=0, **limits)
    means.train(Z)
    used, own = np.unique(means.index.search(Z, 1)[1][:, 0], return_inverse=True)
    return means.centroids[used], own


LONGEST = 256  # rows of a list
SIDE_BY_SIDE = 128  # queries that start with the same lists, a multiple of 8,
START = 2048  # which hold so many rows
QUERIES = 2**16  # that go through the lists together,
COLLECTED = 2**23  # unless they would collect more than so many candidates
QUANTILE_OF = 16  # distances, of which a quantile stands for that of all
EQUAL = 1e-12  # squared distance of equal rows, at most, in units of the largest entry

# The nearest lists are to hold 97 % of the true neighbours of a sample, unless these are more rows.
FOUND, SAMPLE, CANDIDATES = 0.97, 500, 2**17


class InvertedLists:
    """Rows of the same list side by side in memory.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
        In units of about the largest entry.
    quantizer : CoarseQuantizer
        Lists of more than 256 rows are cut into several of the same centre.
    codes : integer array of shape (n,), default=None
        The classes of the rows, where only rows of other classes may be neighbours.

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
            # of every list that holds one; -1 stands for several
            self._only_class = np.where(lowest == highest, lowest.astype(np.int64), -1)

    def n_probes(self, k: int) -> int:
        """Return how many lists to search so that a share of .97 of the k nearest of a sample is
        found, within the limit.
        """
        step = -(-len(self.rows) // SAMPLE)
        place_of = np.argsort(self.rows)

        def ranks(first: int) -> np.ndarray:
            """Return how many lists are nearer to some rows than those of their k nearest rows."""
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
        """Yield the places of the wanted rows, those that are searched for k rows together."""
        places = np.flatnonzero(wanted[self.rows])
        together = min(QUERIES, COLLECTED // (k + LONGEST), -(-len(places) // n_threads()))
        for block in row_blocks(len(places), 1, together):
            yield places[block]

    def nearest(self, queries: np.ndarray, k: int, n_probes: int) -> np.ndarray:
        """Return the k nearest of the rows in about `n_probes` lists, the nearest ones.

        Parameters
        ----------
        queries : integer array of shape (b,)
            Places, ascending.
        k : int
        n_probes : int

        Returns
        -------
        rows : integer array of shape (b, k)
            Nearest rows in any order, and without classes the query itself among them; where there
            are fewer, the query itself.
        """
        Q = self.Z[queries]
        found = NearestSoFar(len(Q), k, LONGEST)
        is_near = np.zeros((len(self.sizes), -(-len(Q) // 8)), np.uint8)  # a bit for every query
        for block in row_blocks(len(Q), 1, SIDE_BY_SIDE):
            lists = self._start(found, block, queries[block])
            near = self._nearest_lists(queries[block], n_probes)
            near[found.bound[block] <= EQUAL] = False  # nothing is nearer
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
        """Compare queries that lie side by side with the rows of the lists nearest to their mean,
        and return these lists.
        """
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
        """Say which lists are among the `n_probes` nearest to each query, by a quantile of the
        distances of evenly spaced ones, (b, n_lists).
        """
        away = self._distances(queries)
        farthest = np.full((len(queries), 1), np.finfo(away.dtype).max)
        if n_probes < len(self.sizes):
            some = away[:, :: max(1, n_probes // QUANTILE_OF)]
            at = some.shape[1] * n_probes // len(self.sizes)
            np.minimum(farthest, np.partition(some, at, axis=1)[:, [at]], out=farthest)
        return away <= farthest

    def _distances(self, queries: np.ndarray) -> np.ndarray:
        """Return squared distances from queries to the centres, less the squares of the queries;
        infinite to lists that hold rows of the query's class only.
        """
        with np.errstate(invalid="ignore"):
            away = self.Z[queries] @ (-2 * self.centres).T
        away += self._squares
        if self._codes is not None and (self._only_class >= 0).any():
            own = self._codes[queries, None] == self._only_class
            np.copyto(away, np.inf, where=own)
        return away

    def _allowed(self, queries: np.ndarray, places: np.ndarray) -> np.ndarray | None:
        """Say which rows may be neighbours of which queries; None for all."""
        return None if self._codes is None else self._codes[queries, None] != self._codes[places]

    def _completed(self, found: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Return the places found for queries; where the lists held fewer rows of other classes
        than there are, those of a search among all.
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
    """Let scikit-learn search once, unless it is too late: in its first search it looks for the
    libraries that have threads, and limits those it knows. faiss must not be among them.
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
    """Return faiss, which scikit-learn's search must precede: else that has one thread for good."""
    _search_before_faiss()
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            'An approximate search needs faiss: pip install "nearkin[ann]".'
        ) from error
    return faiss
