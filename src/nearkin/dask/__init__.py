"""Beyond one machine: Dask arrays in, Dask arrays out, and the map that the local class would have
found.

The parameters are those of the local namesakes. `fit(X, y, client=None)` runs on the client's
cluster, the current one by default; `to_local()` returns the fitted plain estimator, which knows
nothing of Dask.

* X stays where it is: blocks of rows travel between workers, one beside another at a time. What
  comes to the client has p or p x p numbers, or one number a row at most, or centres of lists; the
  client solves the eigenproblems and takes the steps of a descent.
* A worker may die: everything is a task that can be repeated, from tasks that can be repeated. Only
  data that a client has sent to the workers by `client.scatter` cannot be recovered: give X as an
  array that Dask can compute, e.g. from files.
* A fit that ends, in whatever way, leaves nothing on the cluster.

Blocks may be of any sizes, empty or of one class. Cut large data so that a worker holds a few
blocks (some hundred megabytes each); more than `MAX_BLOCKS` are merged, since each may meet each.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        'nearkin.dask needs Dask and distributed: pip install "nearkin[dask]"'
    ) from error

from .nca import DaskNCA
from .search import nearest_labels
from .spectral import (
    DaskDMLMJ,
    DaskDNE,
    DaskGMML,
    DaskLDE,
    DaskLFDA,
    DaskLPP,
    DaskMFA,
    DaskNMMP,
    DaskPCA,
    DaskStandardScaler,
)
from .table import MAX_BLOCKS

__all__ = [
    "MAX_BLOCKS",
    "DaskDMLMJ",
    "DaskDNE",
    "DaskGMML",
    "DaskLDE",
    "DaskLFDA",
    "DaskLPP",
    "DaskMFA",
    "DaskNCA",
    "DaskNMMP",
    "DaskPCA",
    "DaskStandardScaler",
    "nearest_labels",
]
