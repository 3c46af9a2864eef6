"""Locality Preserving Projections on a Dask cluster."""

from __future__ import annotations

from ..estimators import LPP
from ._base import DaskSpectralEmbedding


class DaskLPP(DaskSpectralEmbedding):
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
