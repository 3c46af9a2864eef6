"""Discriminant Neighborhood Embedding on a Dask cluster."""

from __future__ import annotations

from ..estimators import DNE
from ._base import DaskSpectralEmbedding


class DaskDNE(DaskSpectralEmbedding):
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
