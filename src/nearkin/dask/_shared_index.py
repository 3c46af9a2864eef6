"""Rows change places: those that are near each other come together in lists, and lists side by side in one block.

The lists are like those of one machine (`nearkin.neighbors.ivf`): each with rows of one class; the classes of at
most 64 rows share lists. All blocks share them: their centres are learned from some rows of every block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from scipy.linalg import eigh

from ..neighbors.ivf import LISTS, PROBES, IVFSearch, n_dimensions
from ..neighbors.quantizer import CoarseQuantizer, import_faiss
from ..neighbors.search import SMALL_CLASS, members_of
from ._scatter import total_scatter
from ._search import Lists, members_by_class
from ._table import Rows, Table
from ._work import Sized, Work, itself

PER_LIST = 20  # rows from which the centre of a list is learned


@dataclass(frozen=True)
class FiledRows(Rows):
    """A block of rows in the order of their lists.

    Attributes
    ----------
    lists : integer array of shape (b,), ascending
        The number of every row's list.
    numbers : integer array of shape (b,)
        The number that every row had before they changed places.
    """

    lists: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class SharedIndex(Sized):
    """The lists that all blocks share.

    Attributes
    ----------
    filing : Filing
        Of the rows from which the centres were learned.
    sizes : integer array of shape (n_lists,)
        How many of all rows are in every list.
    class_sizes : integer array of shape (n_classes,)
    projection : array of shape (p, d) or None
        To the few dimensions of the centres; None for the features themselves.
    n_probes : int
        How many lists a query looks through, the nearest; more where they hold too few rows.
    n_rerank : int
        How many rows found there are ranked again by their distances in all features; 0 for the usual number.
    """

    filing: CoarseQuantizer
    sizes: np.ndarray
    class_sizes: np.ndarray
    projection: np.ndarray | None
    n_probes: int
    n_rerank: int

    @property
    def group_of(self) -> np.ndarray:
        """The group of lists of every class."""
        return groups_of(self.class_sizes)

    @property
    def shared_group(self) -> int:
        """The group that the small classes share; none has this number where there are no small classes."""
        return int(np.count_nonzero(self.class_sizes > SMALL_CLASS))

    def lists_of(self, group: int) -> slice:
        """Return the numbers of the lists of a group."""
        return slice(*self.filing.first[group : group + 2])

    def projected(self, X: np.ndarray) -> np.ndarray:
        """Return rows in the dimensions of the centres."""
        return _projected(X, self.projection)


@dataclass(frozen=True)
class FiledTable(Table):
    """Rows that have changed places; `rows` are futures of FiledRows.

    Attributes
    ----------
    catalogue : future of Catalogue
    spans : integer array of shape (n_blocks, 2)
        The first and the last list of which a block has rows.
    """

    catalogue: Future
    spans: np.ndarray


def groups_of(class_sizes: np.ndarray) -> np.ndarray:
    """Return the group of lists of every class: a large class has its own, the small ones share the last."""
    large = class_sizes > SMALL_CLASS
    return np.where(large, np.cumsum(large) - 1, large.sum())


def filed(search: IVFSearch, work: Work, table: Table) -> FiledTable:
    """Return the rows of a table in lists of near ones, in about as many blocks as before, of equal sizes.

    The table is used up: a block of it goes as soon as its rows have gone. O(n L d) time for L lists in d dimensions;
    every row travels once.
    """
    n, p = table.shape
    d = n_dimensions(search.n_components, p)
    V = eigh(total_scatter(work, table), subset_by_index=[p - d, p - 1])[1] if d < p else None
    n_lists = search.n_lists or int(LISTS * n**0.5)
    group_of = groups_of(table.sizes)
    firsts = [work.sum(work.map(first_rows, table.rows, group_of=group_of), least)] * len(table.rows)
    samples = work.map(sampled, table.rows, firsts, group_of=group_of, share=PER_LIST * n_lists / n, projection=V)
    how = {
        "class_sizes": table.sizes,
        "projection": V,
        "n_probes": search.n_probes or PROBES,
        "n_rerank": search.n_rerank,
    }
    # k-means elsewhere may find other centres: a worker that dies must not take with it those by which rows have gone
    learned = work.results([work.submit(centred, samples, n_lists=n_lists, **how)])[0]
    centres = work.submit(itself, learned)
    catalogues = [centres] * len(table.rows)
    lists = work.map(nearest_lists, table.rows, catalogues)
    sizes = work.sum(work.map(list_sizes, lists, catalogues))
    catalogue = work.submit(with_sizes, centres, sizes)
    joined = _exchanged(work, by_lists, joined_rows, [table.rows, lists], sizes, n_blocks=len(lists))
    table.rows.clear()
    extents = work.results(work.map(extent_of, joined))
    blocks = [(rows, size, span) for rows, (size, *span) in zip(joined, extents, strict=True) if size]
    starts = np.cumsum([0, *(size for _, size, _ in blocks)]).tolist()
    rows = work.map(numbered, [rows for rows, _, _ in blocks], starts[:-1], starts[1:])
    spans = np.array([span for *_, span in blocks])
    return FiledTable(rows, starts, table.shape, table.dtype, table.sizes, catalogue, spans)


def in_first_places(work: Work, table: FiledTable, lists: list[Future], starts: list[int]) -> list[Future]:
    """Return the lists of rows that have changed places for the blocks in which they were, which began at `starts`.

    Every worker learns the numbers of all rows; every list travels once.
    """
    numbers = work.submit(np.concatenate, work.map(numbers_of, table.rows))
    return _exchanged(work, by_numbers, joined_lists, [table.rows, lists], numbers, starts=starts)


def _exchanged(
    work: Work, take_apart: Callable, join: Callable, blocks: list[Sequence[Future]], known: Future, **how: Any
) -> list[Future]:
    """Take blocks apart, a piece for each of as many new ones, and return these.

    A block is in pieces before the next one is taken apart: workers hold nothing twice.
    """
    n_pieces = len(how["starts"]) - 1 if "starts" in how else how["n_blocks"]
    pieces = []
    for block in zip(*blocks, strict=True):
        whole = work.submit(take_apart, *block, known, **how)
        pieces.append(work.map(getitem, [whole] * n_pieces, range(n_pieces)))
    return [work.submit(join, list(of_block)) for of_block in zip(*pieces, strict=True)]


# Tasks.


def _projected(X: np.ndarray, projection: np.ndarray | None) -> np.ndarray:
    return np.ascontiguousarray(X if projection is None else X @ projection.astype(X.dtype), dtype=np.float32)


def first_rows(rows: Rows, *, group_of: np.ndarray) -> np.ndarray:
    """Return the number of the first row of every group in a block, the largest number there is where it has none."""
    first = np.full(group_of.max() + 1, np.iinfo(np.int64).max)
    first[group_of[rows.codes][::-1]] = rows.own(np.arange(len(rows.codes)))[::-1]
    return first


def least(parts: list[np.ndarray]) -> np.ndarray:
    """Return the least of the parts, entry by entry."""
    return np.min(parts, axis=0)


def sampled(
    rows: Rows, firsts: np.ndarray, *, group_of: np.ndarray, share: float, projection: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a share of the rows of a block, drawn at random, in few dimensions, and their classes.

    The first row of all of every group is among them, that no group is without.
    """
    is_first = rows.own(np.arange(len(rows.codes))) == firsts[group_of[rows.codes]]
    chosen = np.flatnonzero(is_first | (np.random.default_rng(rows.start).random(len(is_first)) < share))
    return _projected(rows.X[chosen], projection), rows.codes[chosen]


def centred(samples: list[tuple[np.ndarray, np.ndarray]], *, n_lists: int, **how: Any) -> SharedIndex:
    """Return the lists that some rows of all blocks make, yet without their sizes; who made them is forgotten."""
    Z, codes = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    empty = SharedIndex(CoarseQuantizer(Z[:0], codes[:0], [0]), codes[:0], **how)
    filing = CoarseQuantizer.of(Z, members_of(empty.group_of[codes]), n_lists)
    return replace(empty, filing=replace(filing, list_of=filing.list_of[:0]))


def nearest_lists(rows: Rows, catalogue: SharedIndex) -> np.ndarray:
    """Return the number of every row's list, the nearest of its group."""
    Z, lists = catalogue.projected(rows.X), np.empty(len(rows.X), np.int32)
    for group, members in members_by_class(catalogue.group_of[rows.codes]):
        own = catalogue.lists_of(group)
        coarse = import_faiss().IndexFlatL2(Z.shape[1])
        coarse.add(catalogue.filing.centres[own])
        lists[members] = own.start + coarse.search(Z[members], 1)[1][:, 0]
    return lists


def list_sizes(lists: np.ndarray, catalogue: SharedIndex) -> np.ndarray:
    """Return how many rows of a block are in every list."""
    return np.bincount(lists, minlength=len(catalogue.filing.centres))


def with_sizes(catalogue: SharedIndex, sizes: np.ndarray) -> SharedIndex:
    """Return the catalogue with the sizes of its lists."""
    return replace(catalogue, sizes=sizes)


class Piece(NamedTuple):
    """Rows under way from a block to another."""

    X: np.ndarray
    codes: np.ndarray
    lists: np.ndarray
    numbers: np.ndarray


def by_lists(rows: Rows, lists: np.ndarray, sizes: np.ndarray, *, n_blocks: int) -> list[Piece]:
    """Take a block apart, for blocks of equal sizes into which all lists are cut, one after the other.

    Of the rows of a list that a block has, it supposes those of other blocks spread evenly among them.
    """
    order = np.argsort(lists, kind="stable")
    own = np.bincount(lists, minlength=len(sizes))
    listed = lists[order]
    within = (np.arange(len(lists)) - (np.cumsum(own) - own)[listed] + 0.5) / own[listed]
    place = ((np.cumsum(sizes) - sizes)[listed] + within * sizes[listed]) / sizes.sum()
    ends = np.searchsorted(place, np.arange(1, n_blocks) / n_blocks)
    return [Piece(rows.X[i], rows.codes[i], lists[i], rows.start + i) for i in np.split(order, ends)]


def joined_rows(pieces: list[Piece]) -> FiledRows:
    """Return the rows of a new block, yet without its start."""
    X, codes, lists, numbers = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    order = np.argsort(lists, kind="stable")
    return FiledRows(X[order], codes[order], 0, lists[order], numbers[order])


def extent_of(rows: FiledRows) -> tuple[int, int, int]:
    """Return how many rows a block has, and its first and last list."""
    return len(rows.lists), int(rows.lists.min(initial=2**31 - 1)), int(rows.lists.max(initial=-1))


def numbered(rows: FiledRows, start: int, stop: int) -> FiledRows:
    """Return a block whose first row has a number, and the next block's first row another."""
    if len(rows.lists) != stop - start:
        raise RuntimeError(
            f"Computed again, a block has {len(rows.lists)} rows instead of {stop - start}: workers round differently. "
            "Fit again, with workers of equal CPUs and equal numbers of threads."
        )
    return replace(rows, start=start)


def numbers_of(rows: FiledRows) -> np.ndarray:
    """Return the first numbers of the rows of a block."""
    return rows.numbers


def by_numbers(rows: FiledRows, lists: Lists, numbers: np.ndarray, *, starts: list[int]) -> list[tuple]:
    """Take the lists of a block apart, for the blocks in which the rows were, and name neighbours as then."""
    named = np.where(lists.neighbors < 0, -1, numbers[lists.neighbors])
    order = np.argsort(rows.numbers)
    ends = np.searchsorted(rows.numbers[order], starts[1:-1])
    return [(rows.numbers[i], named[i], lists.distances[i]) for i in np.split(order, ends)]


def joined_lists(pieces: list[tuple]) -> Lists:
    """Return the lists of a block, in the order of its rows."""
    width = max(named.shape[1] for _, named, _ in pieces)
    filled = [(of, _widened(named, width, -1), _widened(away, width, np.inf)) for of, named, away in pieces]
    numbers, neighbors, distances = (np.concatenate(parts) for parts in zip(*filled, strict=True))
    order = np.argsort(numbers)
    return Lists(neighbors[order], distances[order])


def _widened(array: np.ndarray, width: int, value: float) -> np.ndarray:
    return np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=value)
