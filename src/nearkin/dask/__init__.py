"""Learning on a Dask cluster: from Dask arrays to Dask arrays, with the map of the local class.

The parameters are those of the local classes, which are named without "Dask". `fit(X, y, *,
client=None)` runs on the client's cluster, by default that of the current client. `to_local()`
returns the fitted plain estimator, which does not depend on Dask.

* X stays in place, unless an approximate search partitions it first. Blocks of rows travel between
  workers, to meet one other block at a time. The client receives p or p x p numbers, at most one
  number per row, or centres of lists, and solves the eigenproblems. Only `DaskNCA` passes all rows
  through the client, some at a time.
* A worker may die: everything is a task that can be repeated, from inputs that can be recomputed.
  Only data sent to the workers by `client.scatter` cannot be recovered: pass X as an array that
  Dask can compute, e.g. from files.
* However a fit ends, it leaves nothing on the cluster.

Blocks may have any size, be empty, or contain a single class. Cut large data so that a worker holds
a few blocks (of a few hundred megabytes each). If there are more than `MAX_BLOCKS`, they are
merged, since every block may meet every other.
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
