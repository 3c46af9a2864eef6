"""Locality Preserving Projections on a Dask cluster."""

from __future__ import annotations

from typing import Any

from .._validation import check_integer, check_n_neighbors
from ..estimators.lpp import LPP
from ..neighbors import EXACT
from ..scatter import RowSpace
from ..spectral import ratio_trace
from ._base import DaskTransformer
from ._graphs import heat_kernel, mean_squared_length, union
from ._neighbors import block_searcher, nearest, searchable
from ._scatter import degrees, scatter, total_scatter
from ._table import table
from ._work import Work


class DaskLPP(DaskTransformer):
    """Locality Preserving Projections of Dask arrays: `nearkin.LPP` beyond one machine. It uses no labels.

    Parameters, attributes, warnings and the criterion are those of `nearkin.LPP`; the map is the same to rounding
    where no distances tie.

    Notes
    -----
    Cost, over all workers: O(n^2 p) for an exact search, O(n d sqrt(n)) for an approximate one in d
    dimensions, O(e p^2) for the scatter of e edges; O(n (p + k)) memory, of which a worker holds its share and a
    few blocks; p x p numbers on the client. With an approximate search rows change places first,
    so that a block travels only to those that look through its lists or have edges to it; memory holds 64 numbers more
    for each row.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin.dask import DaskLPP
    >>> X = da.from_array(scale(load_wine().data), chunks=(60, -1))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskLPP(n_components=2).fit_transform(X).compute().shape
    (178, 2)
    """

    _local_class = LPP
    __init__ = LPP.__init__  # the parameters, and their defaults

    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> DaskLPP:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes; it may be lazy, and is computed once.
        y : ignored
        client : distributed.Client, default=None
            Where to compute; the current client by default.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is no Dask array, or a parameter has a wrong type.
        ValueError
            If X is not as above or not finite, a parameter is out of bounds, or n exceeds 200,000 in an exact search.
        """
        lpp, X = self._twin(X)
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        k = check_n_neighbors(self.n_neighbors)
        search = block_searcher(self.search, X.shape[0])
        with Work(client) as work:
            rows = searchable(search, work, table(work, type(self).__name__, X, exact=search is EXACT))
            lists = nearest(work, rows, "kin", k)  # without labels all are kin
            t = mean_squared_length(work, lists)
            W = work.map(heat_kernel, union(work, rows, lists), bandwidth=t)
            S, S_d = scatter(work, rows, W), total_scatter(work, rows, work.map(degrees, rows.rows, W))
        result = ratio_trace(S, S_d, m)
        result.warn()
        lpp._keep_directions(result, RowSpace(None, None), rows.dtype)
        lpp.search_, lpp.search_recall_ = search.name, None
        return self._take_over(lpp)
