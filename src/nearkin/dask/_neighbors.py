"""Who is near whom, block against block.

Every block of rows asks one block of candidates after the other, and keeps the k nearest so far: in round b all blocks
look at block b, so that a worker holds its own blocks and one that travels. Of equally near rows the one of the lowest
number comes first, however the rows are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Future
from scipy.linalg import eigh

from ..neighbors import EXACT, Searcher, searcher
from ..neighbors.filing import Filing, usual_lists
from ..neighbors.inverted import PROBES, PROJECTED_FROM, PROJECTED_TO, Inverted
from ._scatter import total_scatter
from ._search import Everywhere, InLists, Lists, block_neighbors, filing_of, nearest_first
from ._table import Rows, Table
from ._work import Work


def nearest(work: Work, table: Table, kind: str, k: Any, filed: Filed | None = None) -> list[Future]:
    """Return the lists of the k nearest rows of every row, a future of `Lists` for every block.

    Parameters
    ----------
    kind : {"kin", "strangers"}
        Among the others of the same class, or among those of other classes.
    k : int, or array of shape (n_classes,)
        For all rows, or for the rows of each class.
    filed : Filed or None
        How the blocks are filed for an approximate search; None compares all pairs.

    Notes
    -----
    O(n^2 p) time, O(n k) memory over all workers; n p numbers travel for every block.
    """
    lists: list[Any] = [None] * len(table.rows)
    filings = [None] * len(lists) if filed is None else filed.filings
    how = {} if filed is None else {"projection": filed.projection, "n_probes": filed.n_probes}
    for candidates, filing in zip(table.rows, filings, strict=True):
        among = [candidates] * len(lists), [filing] * len(lists)
        lists = work.map(with_nearer, lists, table.rows, *among, kind=kind, k=k, **how)
    return lists


@dataclass(frozen=True)
class Filed:
    """Rows whose blocks are filed in lists of near ones, for an approximate search.

    Attributes
    ----------
    filings : list of futures of Filing
        Every group of lists holds a class of the block, the last one all its small classes.
    projection : array of shape (p, d) or None
        To the few dimensions in which they are filed; None for the features themselves.
    n_probes : int
        How many lists of a block a query looks through.
    """

    filings: list[Future]
    projection: np.ndarray | None
    n_probes: int

    @classmethod
    def by(cls, search: Searcher, work: Work, table: Table) -> Filed | None:
        """Return the filed rows, or None where the search is exact.

        A block of b rows is cut into lists as a table of them would be, 8 sqrt(b) by default, and so many are looked
        through that it is twice the share of all rows that a local search sees, and at least 8.
        """
        if not isinstance(search, Inverted):
            return None
        n, p = table.shape
        b = -(-n // len(table.rows))
        d = (PROJECTED_TO if p > PROJECTED_FROM else p) if search.n_components == 0 else search.n_components or p
        V = eigh(total_scatter(work, table), subset_by_index=[p - d, p - 1])[1] if d < p else None
        n_lists = -(-search.n_lists * b // n) or usual_lists(b)
        share = (search.n_probes or PROBES) / (search.n_lists or usual_lists(n))
        filings = work.map(filing_of, table.rows, projection=V, n_lists=n_lists)
        return cls(filings, V, max(8, int(2 * share * n_lists)))


def block_searcher(search: Any, n: int) -> Searcher:
    """Return the local searcher that tells how blocks are searched: exactly, or by an inverted file of each."""
    found = searcher(search, n)
    if found is not EXACT and not isinstance(found, Inverted):
        raise ValueError(
            f"search must be 'exact', 'approximate', 'auto' or an ApproximateSearch for Dask arrays, got {search!r}."
        )
    if found.recall is not None:
        raise ValueError(
            "search has check_recall=True, which compares all pairs: check it on a sample, with the local class."
        )
    return found


# Tasks.


def with_nearer(
    lists: Lists | None, queries: Rows, candidates: Rows, filing: Filing | None, *, kind: str, k: Any, **how: Any
) -> Lists:
    """Return the lists of some rows after they have looked at one block more."""
    each = np.broadcast_to(k, len(queries.X)) if np.ndim(k) == 0 else k[queries.codes]
    look = Everywhere(queries, candidates) if filing is None else InLists(queries, candidates, filing, **how)
    found = block_neighbors(queries, candidates, kind, each, look)
    if lists is not None:
        found = nearest_first(np.hstack([lists[0], found[0]]), np.hstack([lists[1], found[1]]), each.max())
    beyond = np.arange(found.neighbors.shape[1]) >= each[:, None]
    return Lists(np.where(beyond, -1, found.neighbors), np.where(beyond, np.inf, found.distances))
