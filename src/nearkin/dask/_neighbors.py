"""Who is near whom, block against block.

Every block of rows asks one block of candidates after the other, and keeps the k nearest so far. Of equally near rows
the one of the lowest number comes first, however the rows are cut.
"""

from __future__ import annotations

from typing import Any

from distributed import Future

from ..neighbors import EXACT, Searcher, searcher
from ..neighbors.ivf import IVFSearch
from ._lists import nearest_in_lists
from ._search import Lists, everywhere, per_row, with_found
from ._shared_index import FiledTable, filed
from ._table import Rows, Table
from ._work import Work


def nearest(work: Work, table: Table, kind: str, k: Any) -> list[Future]:
    """Return the lists of the k nearest rows of every row, a future of `Lists` for every block.

    Parameters
    ----------
    table : Table or FiledTable
        All pairs of rows are compared; or those that lie in near lists.
    kind : {"kin", "strangers"}
        Among the others of the same class, or among those of other classes.
    k : int, or array of shape (n_classes,)
        For all rows, or for the rows of each class.

    Notes
    -----
    Of all pairs: O(n^2 p) time, O(n k) memory over all workers; n p numbers travel for every block. In round b all
    blocks look at block b, so that a worker holds its own blocks and one that travels.
    """
    if isinstance(table, FiledTable):
        return nearest_in_lists(work, table, kind, k)
    lists: list[Any] = [None] * len(table.rows)
    for candidates in table.rows:
        lists = work.map(with_nearer, lists, table.rows, [candidates] * len(lists), kind=kind, k=k)
    return lists


def searchable(search: Searcher, work: Work, table: Table) -> Table:
    """Return the rows in the order in which a search finds their neighbours: as they are, or in lists."""
    return filed(search, work, table) if isinstance(search, IVFSearch) else table


def block_searcher(search: Any, n: int) -> Searcher:
    """Return the local searcher that tells how blocks are searched: exactly, or by lists that they share."""
    found = searcher(search, n)
    if found is not EXACT and not isinstance(found, IVFSearch):
        raise ValueError(
            f"search must be 'exact', 'approximate', 'auto' or an ApproximateSearch for Dask arrays, got {search!r}."
        )
    if found.recall is not None:
        raise ValueError(
            "search has check_recall=True, which compares all pairs: check it on a sample, with the local class."
        )
    return found


# Tasks.


def with_nearer(lists: Lists | None, queries: Rows, candidates: Rows, *, kind: str, k: Any) -> Lists:
    """Return the lists of some rows after they have looked at one block more."""
    each = per_row(k, queries)
    return with_found(lists, queries, candidates, kind, each, everywhere(queries, candidates, kind, each))
