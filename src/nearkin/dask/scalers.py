"""scikit-learn's scalers on a Dask cluster: one pass, p numbers a block."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ._base import DaskTransformer
from ._work import Work


class _DaskScaler(DaskTransformer):
    def inverse_transform(self, X: da.Array) -> da.Array:
        """Map scaled rows back, block by block, when they are computed."""
        return self._by_blocks("inverse_transform", X)

    def _statistics(self, X: da.Array, statistic: Any, client: Any) -> list[Any]:
        """Return what a function finds in every block."""
        with Work(client) as work:
            found = work.results(work.compute([delayed(statistic, pure=False)(b) for b in X.to_delayed().ravel()]))
        if not sum(n for n, *_ in found):
            raise ValueError("X has no rows: at least one is needed.")
        return list(zip(*found, strict=True))


class DaskStandardScaler(_DaskScaler):
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
    __init__ = StandardScaler.__init__  # the parameters, and their defaults

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

        Raises
        ------
        TypeError
            If X is no Dask array.
        ValueError
            If X has no rows, or holds infinity.
        """
        scaler, X = self._twin(X)
        _, n, mean, squares = (np.array(of_block) for of_block in self._statistics(X, moments, client))
        n_seen = n.sum(axis=0)
        with np.errstate(invalid="ignore"):  # a feature of nothing but NaN
            m = (n * mean).sum(axis=0) / n_seen
            var = (squares + n * (mean - m) ** 2).sum(axis=0) / n_seen
        scaler.n_samples_seen_ = n_seen if np.ptp(n_seen) else n_seen[0]
        scaler.mean_ = m if self.with_mean or self.with_std else None
        scaler.var_ = var if self.with_std else None
        scaler.scale_ = np.where(is_constant(m, var, n_seen), 1.0, np.sqrt(var)) if self.with_std else None
        return self._take_over(scaler)


class DaskMinMaxScaler(_DaskScaler):
    """scikit-learn's `MinMaxScaler` for Dask arrays: every feature to the same range.

    Parameters and attributes are those of `sklearn.preprocessing.MinMaxScaler`, and so is what is done with NaN, which
    counts as missing, and with constant features. Chunks of unknown sizes will do.

    Notes
    -----
    O(n p) time, 2 p numbers from every block; one pass over X.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from nearkin.dask import DaskMinMaxScaler
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskMinMaxScaler().fit(da.arange(12, chunks=4).reshape(6, 2)).data_max_
    array([10., 11.])
    """

    _local_class = MinMaxScaler
    __init__ = MinMaxScaler.__init__  # the parameters, and their defaults

    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> DaskMinMaxScaler:
        """Learn the least and the largest value of every feature.

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

        Raises
        ------
        TypeError
            If X is no Dask array.
        ValueError
            If X has no rows or holds infinity, or a parameter is out of bounds.
        """
        scaler, X = self._twin(X)
        n, low, high = self._statistics(X, extremes, client)
        scaler.fit(np.stack([np.fmin.reduce(low), np.fmax.reduce(high)]))
        scaler.n_samples_seen_ = sum(n)
        return self._take_over(scaler)


def is_constant(mean: np.ndarray, var: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Say which features vary by no more than the rounding of their variance, as scikit-learn's scaler decides it."""
    eps = np.finfo(np.float64).eps
    return var <= n * eps * var + (n * mean * eps) ** 2


# Tasks.


def moments(block: np.ndarray) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of rows, and for every feature how many are not NaN, their mean and sum of squares about it."""
    X = _without_infinity(block)
    seen = ~np.isnan(X)
    n = seen.sum(axis=0)
    mean = np.where(seen, X, 0.0).sum(axis=0) / np.maximum(n, 1)
    return len(X), n, mean, np.square(np.where(seen, X - mean, 0.0)).sum(axis=0)


def extremes(block: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of rows of a block, and the least and largest value of every feature; NaN where none is."""
    X = np.vstack([_without_infinity(block), np.full(block.shape[1], np.nan)])
    return len(block), np.fmin.reduce(X), np.fmax.reduce(X)


def _without_infinity(block: np.ndarray) -> np.ndarray:
    X = np.asarray(block, dtype=np.float64)
    if np.isinf(X).any():
        raise ValueError("X contains infinity: drop or fill these rows.")
    return X
