"""Neighborhood MinMax Projections on a Dask cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._memory import human_bytes
from ..estimators.nmmp import NMMP
from ..neighbors import EXACT
from ..scatter import RowSpace
from ._base import DaskTransformer
from ._graphs import binary, mutual
from ._neighbors import block_searcher, nearest, searchable
from ._scatter import scatter, total_scatter
from ._table import labelled_table
from ._work import Work

BYTES_PER_LISTED_NEIGHBOR = 100  # 16 in a list, 24 told to other blocks, up to 48 in the edges made of it


class DaskNMMP(DaskTransformer):
    """Neighborhood MinMax Projections of Dask arrays: `nearkin.NMMP` beyond one machine.

    Parameters, attributes, warnings and the criterion are those of `nearkin.NMMP`; the map is the same to rounding
    where no distances tie.

    The default n_neighbors_within, half of a class, makes lists whose length grows with the rows. Where they would take
    more than half of the workers' memory, at 100 bytes for each of n k_w neighbours, k_w that of the largest class, the
    fit is refused: set n_neighbors_within=10.

    Notes
    -----
    Cost, over all workers: O(n^2 p) for an exact search, O(n d sqrt(n)) for an approximate one in d
    dimensions, O(e p^2) for the scatters of e edges; memory for O(n (p + k_w + k_b)) numbers, of which a worker
    holds its share and a few blocks; p x p numbers on the client. With an approximate search rows change
    places first, so that a block travels only to those that look through its lists or have edges to it; memory holds 64
    numbers more for each row.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin.dask import DaskNMMP
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = da.from_array(scale(X), chunks=(60, -1)), da.from_array(y, chunks=60)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskNMMP(5, n_neighbors_within=10).fit_transform(X, y).compute().shape
    (178, 5)
    """

    _local_class = NMMP
    __init__ = NMMP.__init__  # the parameters, and their defaults

    def fit(self, X: Any, y: Any, *, client: Any = None) -> DaskNMMP:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes; it may be lazy, and is computed once.
        y : Dask array of shape (n,)
            Class labels, at least two classes.
        client : distributed.Client, default=None
            Where to compute; the current client by default.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X or y is no Dask array, or a parameter has a wrong type.
        ValueError
            If X or y is not as above or not finite, a parameter is out of bounds, or n exceeds 200,000 in an exact
            search.
        MemoryError
            If the lists of kin would take more than half of the workers' memory.
        """
        nmmp, X = self._twin(X)
        nmmp._check_parameters(X.shape[1])
        search = block_searcher(self.search, X.shape[0])
        with Work(client) as work:
            table = labelled_table(work, type(self).__name__, X, y, exact=search is EXACT)
            k_w, k_b = nmmp._kin_counts(table.sizes), self.n_neighbors_between
            check_lists(table.shape[0], k_w, work.memory())
            rows = searchable(search, work, table)
            kin = mutual(work, rows, nearest(work, rows, "kin", k_w))
            S_w = scatter(work, rows, work.map(binary, kin))
            strangers = mutual(work, rows, nearest(work, rows, "strangers", k_b))
            S_b = scatter(work, rows, work.map(binary, strangers))
            W = nmmp._maximize(S_b, S_w, lambda: total_scatter(work, rows), len(rows.sizes))
        nmmp._keep(RowSpace(None, None).back_project(W), rows.dtype)
        nmmp.search_, nmmp.search_recall_ = search.name, None
        return self._take_over(nmmp)


def check_lists(n: int, k_w: np.ndarray, memory: int) -> None:
    """Raise a MemoryError where the lists of kin would take more than half of the workers' memory (0: no limit)."""
    needed = BYTES_PER_LISTED_NEIGHBOR * float(n) * int(k_w.max())
    if memory and needed > memory / 2:
        raise MemoryError(
            f"n_neighbors_within makes up to {k_w.max()} neighbours for each of {n} rows, about {human_bytes(needed)}, "
            f"and the workers have {human_bytes(memory)}: set n_neighbors_within, e.g. to 10."
        )
