"""Neighborhood MinMax Projections on a Dask cluster."""

from __future__ import annotations

from ..estimators import NMMP
from ._base import DaskSpectralEmbedding


class DaskNMMP(DaskSpectralEmbedding):
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
