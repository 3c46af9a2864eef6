"""The spectral methods on a Dask cluster: their classes, each with the parameters of the local one."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils import get_tags

from ..estimators import DMLMJ, DNE, GMML, LDE, LFDA, LPP, MFA, NMMP
from ..neighbors import EXACT
from ._approximate import block_searcher
from ._base import DaskTransformer
from ._rows import ClusterRows
from ._table import as_table
from ._work import Work


class DaskSpectralEmbedding(DaskTransformer):
    """The Dask form of a spectral method: its `_local_class` learns from rows on a cluster.

    Parameters, attributes, warnings and the criterion are those of the local class; the map is the same to rounding
    where no distances are equal.

    Notes
    -----
    Cost, over all workers: O(n^2 p) for an exact search, O(n d sqrt(n)) for an approximate one in d dimensions,
    O(e p^2) for the scatters of e edges; memory for O(n (p + k)) numbers, of which a worker holds its share and a few
    blocks; p x p numbers on the client. Neighbours that would take more than half of the workers' memory, at 100 bytes
    each, are refused. An approximate search partitions the rows first, so that a block travels only to those that
    search its lists or have edges to it; this takes 64 numbers more for each row.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin.dask import DaskDNE
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = da.from_array(scale(X), chunks=(90, -1)), da.from_array(y, chunks=90)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     dne = DaskDNE(n_components=0.96, n_neighbors=5).fit(X, y)
    >>> dne.transform(X).shape, dne.to_local()
    ((178, 9), DNE(n_components=0.96, n_neighbors=5))
    """

    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes; it may be lazy, and is computed once.
        y : Dask array of shape (n,)
            Class labels, at least two classes. Ignored by `DaskLPP`.
        client : distributed.Client, default=None
            Where to compute; the current client by default.

        Returns
        -------
        self
        """
        twin, X = self._twin(X)
        labelled = get_tags(twin).target_tags.required
        search = block_searcher(getattr(self, "search", "exact"), X.shape[0])
        with Work(client) as work:
            table = as_table(work, type(self).__name__, X, y, labelled=labelled, exact=search is EXACT)
            twin.fit_rows(ClusterRows(work, table, search))
        return self._take_over(twin)


class DaskDMLMJ(DaskSpectralEmbedding):
    """Maximization of the Jeffrey divergence of Dask arrays: see `nearkin.DMLMJ`, and `DaskSpectralEmbedding`."""

    _local_class = DMLMJ
    __init__ = DMLMJ.__init__


class DaskDNE(DaskSpectralEmbedding):
    """Discriminant Neighborhood Embedding of Dask arrays: see `nearkin.DNE`; `DaskSpectralEmbedding` for the cost."""

    _local_class = DNE
    __init__ = DNE.__init__


class DaskGMML(DaskSpectralEmbedding):
    """Geometric Mean Metric Learning of Dask arrays: see `nearkin.GMML`. O(n p^2 + p^3); no neighbours are searched."""

    _local_class = GMML
    __init__ = GMML.__init__


class DaskLDE(DaskSpectralEmbedding):
    """Local Discriminant Embedding of Dask arrays: see `nearkin.LDE`, and `DaskSpectralEmbedding` for the cost."""

    _local_class = LDE
    __init__ = LDE.__init__


class DaskLFDA(DaskSpectralEmbedding):
    """Local Fisher Discriminant Analysis of Dask arrays: see `nearkin.LFDA`, and `DaskSpectralEmbedding` for the cost.

    The within-class graph joins all pairs of a class: O(p sum_c n_c^2) time besides, whatever the search; n p
    numbers travel for every block.
    """

    _local_class = LFDA
    __init__ = LFDA.__init__


class DaskLPP(DaskSpectralEmbedding):
    """Locality Preserving Projections of Dask arrays: see `nearkin.LPP`, and `DaskSpectralEmbedding` for the cost."""

    _local_class = LPP
    __init__ = LPP.__init__


class DaskMFA(DaskSpectralEmbedding):
    """Marginal Fisher Analysis of Dask arrays: see `nearkin.MFA`, and `DaskSpectralEmbedding` for the cost.

    The closest pairs of a class are chosen among the n_pairs nearest rows of other classes of every row: that many
    neighbours have to fit into memory.
    """

    _local_class = MFA
    __init__ = MFA.__init__


class DaskNMMP(DaskSpectralEmbedding):
    """Neighborhood MinMax Projections of Dask arrays: see `nearkin.NMMP`, and `DaskSpectralEmbedding` for the cost.

    The default n_neighbors_within, half of a class, makes lists whose length grows with the rows: set it to 10, say.
    """

    _local_class = NMMP
    __init__ = NMMP.__init__
