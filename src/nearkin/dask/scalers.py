"""scikit-learn's StandardScaler and PCA on a Dask cluster: one pass over the rows, or one sum of p x p numbers."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from .._validation import check_integer
from ..linalg import eigh
from ..span import RowSpace
from ._base import DaskTransformer
from ._scatter import total_scatter
from ._table import as_table
from ._work import Work


class DaskStandardScaler(DaskTransformer):
    """scikit-learn's `StandardScaler` for Dask arrays: every feature to mean 0 and variance 1.

    Parameters and attributes are those of `sklearn.preprocessing.StandardScaler`, and so is what is done with NaN,
    which counts as missing, and with constant features, which are only centred. Chunks of unknown sizes will do.

    Notes
    -----
    O(n p) time, 2 p numbers from every block; one pass over X.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from nearkin.dask import DaskStandardScaler
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskStandardScaler().fit(da.arange(12, chunks=4).reshape(6, 2)).mean_
    array([5., 6.])
    """

    _local_class = StandardScaler
    __init__ = StandardScaler.__init__

    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> DaskStandardScaler:
        """Learn mean and variance of every feature.

        Parameters
        ----------
        X : Dask array of shape (n, p)
            Numbers, in dense blocks.
        y : ignored
        client : distributed.Client, default=None
            Where to compute; the current client by default.

        Returns
        -------
        self
        """
        scaler, X = self._twin(X)
        infinite, X = da.isinf(X).any(), da.where(da.isinf(X), np.nan, X.astype(np.float64))
        sums = infinite, (~da.isnan(X)).sum(axis=0), da.nanmean(X, axis=0), da.nanvar(X, axis=0)
        with Work(client) as work:
            infinite, n_seen, m, var = work.results(work.compute(sums))
        if infinite or not n_seen.any():
            raise ValueError(f"X {'contains infinity' if infinite else 'holds no number'}: drop or fill these rows.")
        eps = np.finfo(np.float64).eps  # scikit-learn's rule: what varies by rounding only is constant
        constant = var <= n_seen * eps * var + (n_seen * m * eps) ** 2
        scaler.n_samples_seen_ = n_seen if np.ptp(n_seen) else n_seen[0]
        scaler.mean_ = m if self.with_mean or self.with_std else None
        scaler.var_ = var if self.with_std else None
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(var)) if self.with_std else None
        return self._take_over(scaler)


class DaskPCA(DaskTransformer):
    """scikit-learn's `PCA` for Dask arrays, without its choices of solver, whitening and dimension.

    Parameters
    ----------
    n_components : int, default=None
        None takes all.

    Notes
    -----
    O(n p^2) time, one pass over X; p x p numbers from every block.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from nearkin.dask import DaskPCA
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
        """
        pca, X = self._twin(X)
        n, p = X.shape
        m = p if self.n_components is None else check_integer(self.n_components, "n_components", 1, p)
        with Work(client) as work:
            table = as_table(work, type(self).__name__, X, labelled=False, exact=False)
            values, V = eigh(total_scatter(work, table) / (n - 1), subset_by_index=(p - m, p - 1))
        pca.n_components_, pca.components_ = m, RowSpace(None, None).back_project(V[:, ::-1]).astype(table.dtype)
        pca.mean_, pca.explained_variance_ = table.mean.astype(table.dtype), values[::-1].astype(table.dtype)
        return self._take_over(pca)
