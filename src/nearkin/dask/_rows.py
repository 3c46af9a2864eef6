"""The `Rows` of a spectral method that are spread over a cluster: graphs are futures, scatters come to the client."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import dask.array as da
import numpy as np
from distributed import Future
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from .._memory import human_bytes
from ..neighbors import EXACT, Searcher
from ..scatter import RowSpace
from ._graphs import binary, heat_kernel, mean_squared_length, mutual, union
from ._neighbors import nearest, searchable
from ._scatter import degrees, scatter, total_scatter
from ._table import Table, kept_dtype, labelled_table, table
from ._work import Work

BYTES_PER_NEIGHBOR = 100  # 16 in a list, 24 sent to other blocks, up to 48 in the edges made of it
KINDS = {"all": "kin", "same": "kin", "other": "strangers"}


class ClusterRows:
    """`nearkin.estimators.Rows` of Dask arrays.

    Parameters
    ----------
    work : Work
    name : str
        Of the estimator, for messages.
    X : Dask array of shape (n, p), p <= n
    y : Dask array of shape (n,) or None
    labelled : bool
    search : Searcher
        EXACT or an IVFSearch, which says how blocks are searched.
    """

    search_recall = None
    n_complement = 0  # p <= n

    def __init__(self, work: Work, name: str, X: da.Array, y: Any, *, labelled: bool, search: Searcher) -> None:
        self.shape, self.dtype, self.search_name = X.shape, kept_dtype(X.dtype), search.name
        self._work, self._search = work, search
        self._arguments = (name, X, y, labelled)

    @cached_property
    def _table(self) -> Table:
        name, X, y, labelled = self._arguments
        exact = self._search is EXACT
        rows = (
            labelled_table(self._work, name, X, y, exact=exact) if labelled else table(self._work, name, X, exact=exact)
        )
        return searchable(self._search, self._work, rows)

    @property
    def class_sizes(self) -> np.ndarray:
        """See `Rows`."""
        return self._table.sizes

    def _nearest(self, relation: str, k: Any) -> list[Future]:
        memory, needed = self._work.memory(), BYTES_PER_NEIGHBOR * float(self.shape[0]) * int(np.max(k))
        if memory and needed > memory / 2:
            raise MemoryError(
                f"Up to {np.max(k)} neighbours ({relation}) of each of {self.shape[0]} rows need about "
                f"{human_bytes(needed)}, and the workers have {human_bytes(memory)}: request fewer, e.g. "
                "n_neighbors_within=10."
            )
        return nearest(self._work, self._table, KINDS[relation], k)

    def union_knn(self, relation: str, k: Any, weights: str = "binary") -> list[Future]:
        """See `Rows`."""
        lists = self._nearest(relation, k)
        graph = union(self._work, self._table, lists)
        if weights == "binary":
            return self._work.map(binary, graph)
        return self._work.map(heat_kernel, graph, bandwidth=mean_squared_length(self._work, lists))

    def mutual_knn(self, relation: str, k: Any) -> list[Future]:
        """See `Rows`."""
        return self._work.map(binary, mutual(self._work, self._table, self._nearest(relation, k)))

    def scatter(self, graph: list[Future]) -> np.ndarray:
        """See `Rows`."""
        return scatter(self._work, self._table, graph)

    def scatter_operator(self, graph: list[Future]) -> LinearOperator:
        """See `Rows`."""
        return aslinearoperator(self.scatter(graph))

    def degrees(self, graph: list[Future]) -> list[Future]:
        """See `Rows`."""
        return self._work.map(degrees, self._table.rows, graph)

    def total_scatter(self, weights: list[Future] | None = None) -> np.ndarray:
        """See `Rows`."""
        return total_scatter(self._work, self._table, weights)

    def back_project(self, V: np.ndarray) -> np.ndarray:
        """See `Rows`."""
        return RowSpace(None, None).back_project(V)
