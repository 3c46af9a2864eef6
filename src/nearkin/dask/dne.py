"""Discriminant Neighborhood Embedding on a Dask cluster."""

from __future__ import annotations

from typing import Any

from .._validation import check_n_neighbors
from ..estimators.dne import DNE, check_dimension
from ..neighbors import EXACT
from ..scatter import RowSpace
from ..spectral import trace_difference
from ._base import DaskTransformer
from ._graphs import signed, union
from ._neighbors import block_searcher, nearest, searchable
from ._scatter import scatter
from ._table import labelled_table
from ._work import Work


class DaskDNE(DaskTransformer):
    """Discriminant Neighborhood Embedding of Dask arrays: `nearkin.DNE` beyond one machine.

    Parameters, attributes, warnings and the criterion are those of `nearkin.DNE`; the map is the same to rounding
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
    >>> from nearkin.dask import DaskDNE
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = da.from_array(scale(X), chunks=(60, -1)), da.from_array(y, chunks=60)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     dne = DaskDNE(n_components=0.96, n_neighbors=5).fit(X, y)
    >>> dne.transform(X).shape, dne.to_local()
    ((178, 9), DNE(n_components=0.96, n_neighbors=5))
    """

    _local_class = DNE
    __init__ = DNE.__init__  # the parameters, and their defaults

    def fit(self, X: Any, y: Any, *, client: Any = None) -> DaskDNE:
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
        """
        dne, X = self._twin(X)
        k = check_n_neighbors(self.n_neighbors)
        wanted = check_dimension(self.n_components, X.shape[1])
        search = block_searcher(self.search, X.shape[0])
        with Work(client) as work:
            rows = searchable(search, work, labelled_table(work, type(self).__name__, X, y, exact=search is EXACT))
            kin = union(work, rows, nearest(work, rows, "kin", k))
            strangers = union(work, rows, nearest(work, rows, "strangers", k))
            S = scatter(work, rows, work.map(signed, kin, strangers))
        result = trace_difference(S, wanted if isinstance(wanted, int) else None)
        dne._keep(result, RowSpace(None, None), wanted, rows.dtype)
        dne.search_, dne.search_recall_ = search.name, None
        return self._take_over(dne)
