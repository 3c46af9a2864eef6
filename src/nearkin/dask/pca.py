"""Principal Component Analysis on a Dask cluster: the baseline of a comparison, from one sum of p x p numbers."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from scipy.linalg import eigh
from sklearn.decomposition import PCA

from .._validation import check_integer
from ._base import DaskTransformer
from ._table import check_rows_and_features, checked_blocks, kept_dtype
from ._work import Sums, Work


class DaskPCA(DaskTransformer):
    """scikit-learn's `PCA` for Dask arrays, without its choices of solver, whitening and dimension.

    Parameters
    ----------
    n_components : int, default=None
        None takes all.

    Notes
    -----
    O(n p^2) time, one pass over X; p x p numbers from every block. The covariance is summed about the mean of the first
    block, so that a common offset does not drown what varies.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from nearkin.dask.pca import DaskPCA
    >>> X = da.from_array(load_wine().data, chunks=(60, -1))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskPCA(2).fit_transform(X).compute().shape
    (178, 2)
    """

    _local_class = PCA

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit(self, X: da.Array, y: Any = None, *, client: Any = None) -> DaskPCA:
        """Learn the leading principal components, each with its largest entry positive.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes.
        y : ignored
        client : distributed.Client, default=None
            Where to compute; the current client by default.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is no Dask array, or n_components no integer.
        ValueError
            If X is not as above or not finite, has fewer than 2 rows, or n_components is out of bounds.
        MemoryError
            If p x p matrices do not fit on the client.
        """
        pca, X = self._twin(X)
        p = X.shape[1]
        m = p if self.n_components is None else check_integer(self.n_components, "n_components", 1, p)
        check_rows_and_features(type(self).__name__, X)
        blocks = checked_blocks(X)
        about = delayed(np.mean)(blocks[0], axis=0, dtype=np.float64)
        with Work(client) as work:
            *moments, about = work.compute([*(delayed(moments_about)(block, about) for block in blocks), about])
            n, offset, squares = work.total(moments)
            origin = work.results([about])[0]
        S = (squares - np.outer(offset, offset) / n) / (n - 1)
        values, V = eigh(S, subset_by_index=[p - m, p - 1])
        V = V[:, ::-1].T
        V *= np.sign(V[np.arange(m), np.abs(V).argmax(axis=1)])[:, None]
        dtype = kept_dtype(X.dtype)
        pca.n_components_, pca.components_ = m, V.astype(dtype)
        pca.mean_, pca.explained_variance_ = (origin + offset / n).astype(dtype), values[::-1].astype(dtype)
        return self._take_over(pca)


def moments_about(block: np.ndarray, origin: np.ndarray) -> Sums:
    """Return the number of rows, and the sums of the rows and of their squares and products about an origin."""
    X = block.astype(np.float64) - origin
    return Sums((len(X), X.sum(axis=0), X.T @ X))
