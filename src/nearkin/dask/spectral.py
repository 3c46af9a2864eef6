"""The spectral methods on a Dask cluster, with the parameters of the local classes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar, Self

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._validation import check_integer
from ..estimators import DMLMJ, DNE, GMML, LDE, LFDA, LPP, MFA, NMMP
from ..linalg import eigh
from ..neighbors import EXACT
from ..scatter import RowSpace
from .rows import ClusterRows
from .search import block_searcher
from .table import Work, as_table, check_dask, kept_dtype


class DaskTransformer(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """Base of the Dask counterparts of local classes, with their parameters and attributes.

    Abstract: a subclass sets `_local_class`, takes over the `__init__` of that class, but for the
    parameters that `_of_local` fixes, and defines `fit`, which fits a local twin.
    """

    _local_class: ClassVar[type]
    _of_local: ClassVar[dict[str, Any]] = {}

    def transform(self, X: da.Array) -> da.Array:
        """Map rows lazily, block by block.

        Parameters
        ----------
        X : Dask array of shape (n, p)
            Chunk sizes may be unknown.

        Returns
        -------
        Z : Dask array of shape (n, m)
            float32 if X is float32.
        """
        transform = self.to_local().transform
        X = self._checked(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        X = X.astype(kept_dtype(X.dtype))
        empty = transform(np.zeros((1, X.shape[1]), X.dtype))[:0]
        return X.map_blocks(
            lambda block: transform(block) if len(block) else empty,
            meta=empty,
            dtype=empty.dtype,
            chunks=(X.chunks[0], empty.shape[1:]),
        )

    def to_local(self) -> Any:
        """Return the fitted plain estimator, which takes NumPy arrays and needs no Dask."""
        check_is_fitted(self)
        local = self._local_class(**clone(self).get_params(deep=False), **self._of_local)
        return deepcopy(take_over(local, self))

    def _checked(self, X: Any) -> da.Array:
        """Return X in blocks of whole rows.

        Raise an error with the remedy if X is not a two-dimensional Dask array of real numbers.
        """
        name = type(self).__name__
        local = self._local_class.__name__
        remedy = f"fit {local} on it, or cut it into blocks with dask.array.from_array"
        check_dask(name, X, "X", f"{remedy}(X, chunks=...)")
        if X.ndim != 2 or X.dtype.kind not in "biuf" or not isinstance(X._meta, np.ndarray):
            raise ValueError(
                "X must be of shape (n, p) and hold real numbers in dense NumPy blocks, got shape "
                f"{X.shape}, {X.dtype}, {type(X._meta).__name__}: convert it, e.g. with "
                "X.reshape(-1, 1), X.astype('float64') or X.map_blocks(lambda block: "
                "block.toarray())."
            )
        return X.rechunk({1: -1})

    def _twin(self, X: Any) -> tuple[Any, da.Array]:
        """Return the local estimator to be fitted, and validated X in blocks of whole rows."""
        X = self._checked(X)
        twin = self._local_class(**self.get_params(deep=False), **self._of_local)
        twin.n_features_in_ = X.shape[1]
        return twin, X


def take_over(estimator: Any, fitted: Any) -> Any:
    """Copy the fitted state of an estimator to another, and return the latter."""
    learned = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    vars(estimator).update(learned)
    return estimator


class DaskStandardScaler(DaskTransformer):
    """Scale every feature to mean 0 and variance 1, as scikit-learn's `StandardScaler` does.

    Parameters and attributes are those of `sklearn.preprocessing.StandardScaler`. As there, NaN
    counts as missing, and constant features are only centred. Chunk sizes may be unknown.

    Notes
    -----
    O(n p) time and one pass over X; 2 p numbers from every block.

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

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> DaskStandardScaler:
        """Learn mean and variance of every feature.

        Parameters
        ----------
        X : Dask array of shape (n, p)
            Numbers, in dense blocks.
        y : ignored
        client : distributed.Client, default=None
            Where to compute; by default the current client.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        scaler, X = self._twin(X)
        infinite = da.isinf(X).any()
        X = da.where(da.isinf(X), np.nan, X.astype(np.float64))
        sums = infinite, (~da.isnan(X)).sum(axis=0), da.nanmean(X, axis=0), da.nanvar(X, axis=0)
        with Work(client) as work:
            infinite, n_seen, m, var = work.results(work.compute(sums))
        if infinite or not n_seen.any():
            raise ValueError(
                f"X {'contains infinity' if infinite else 'holds no number'}: drop or fill these "
                "rows."
            )
        # scikit-learn's rule: a feature that only varies by rounding is constant
        eps = np.finfo(np.float64).eps
        constant = var <= n_seen * eps * var + (n_seen * m * eps) ** 2
        scaler.n_samples_seen_ = n_seen if np.ptp(n_seen) else n_seen[0]
        scaler.mean_ = m if self.with_mean or self.with_std else None
        scaler.var_ = var if self.with_std else None
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(var)) if self.with_std else None
        take_over(self, scaler)
        task.end()
        return self


class DaskPCA(DaskTransformer):
    """scikit-learn's `PCA` for Dask arrays, without its choices of solver, whitening and dimension.

    Parameters
    ----------
    n_components : int, default=None
        None takes all.

    Notes
    -----
    O(n p^2) time and one pass over X; p x p numbers from every block.

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

    @with_callbacks
    def fit(self, X: da.Array, y: Any = None, *, client: Any = None) -> DaskPCA:
        """Learn the leading principal components, each with its largest entry positive.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes.
        y : ignored
        client : distributed.Client, default=None
            Where to compute; by default the current client.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        pca, X = self._twin(X)
        n, p = X.shape
        m = self.n_components
        m = p if m is None else check_integer(m, "n_components", 1, p)
        with Work(client) as work:
            table = as_table(work, type(self).__name__, X, labelled=False, exact=False)
            values, V = eigh(table.total_scatter() / (n - 1), subset_by_index=(p - m, p - 1))
        pca.n_components_ = m
        pca.components_ = RowSpace(None).back_project(V[:, ::-1]).astype(table.dtype)
        pca.mean_ = table.mean.astype(table.dtype)
        pca.explained_variance_ = values[::-1].astype(table.dtype)
        take_over(self, pca)
        task.end()
        return self


class DaskSpectralEmbedding(DaskTransformer):
    """Base of the Dask counterparts of spectral methods.

    Parameters, attributes, warnings and the criterion are those of the local class. The map is the
    same up to rounding if no distances are equal.

    Notes
    -----
    Cost over all workers: O(n^2 p) for an exact search, O(n d sqrt(n)) for an approximate search in
    d dimensions, and O(e p^2) for the scatters of e edges. Memory is O(n (p + k)) numbers, of which
    a worker holds its share and a few blocks, and p x p numbers on the client. A worker keeps on
    disk what exceeds its memory. A fit raises a MemoryError if its neighbours, at 100 bytes each,
    would take more than a quarter of a worker's memory for a block, or more than four times the
    memory of all workers for all rows. An approximate search first partitions the rows, so that a
    block only travels to blocks that search its lists or have edges to it; this takes 64 additional
    numbers per row.

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

    _searches_neighbors = True

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes. It may be lazy, and is computed once.
        y : Dask array of shape (n,)
            Class labels, at least two classes. Ignored by `DaskLPP`.
        client : distributed.Client, default=None
            Where to compute; by default the current client.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        twin, X = self._twin(X)
        labelled = get_tags(twin).target_tags.required
        search = block_searcher(twin.search, X.shape[0])
        exact = search is EXACT and self._searches_neighbors
        with Work(client) as work:
            table = as_table(work, type(self).__name__, X, y, labelled=labelled, exact=exact)
            twin.fit_rows(ClusterRows(**vars(table), search=search))
        take_over(self, twin)
        task.end()
        return self


class DaskDMLMJ(DaskSpectralEmbedding):
    """Distance learning by Jeffrey divergence for Dask arrays; see `nearkin.DMLMJ`.

    The cost is that of `DaskSpectralEmbedding`.
    """

    _local_class = DMLMJ
    __init__ = DMLMJ.__init__


class DaskDNE(DaskSpectralEmbedding):
    """Discriminant Neighborhood Embedding of Dask arrays; see `nearkin.DNE`.

    The cost is that of `DaskSpectralEmbedding`.
    """

    _local_class = DNE
    __init__ = DNE.__init__


class DaskGMML(DaskSpectralEmbedding):
    """Geometric Mean Metric Learning of Dask arrays; see `nearkin.GMML`.

    The cost is O(n p^2 + p^3); no neighbours are searched.
    """

    _local_class = GMML
    _searches_neighbors = False
    __init__ = GMML.__init__


class DaskLDE(DaskSpectralEmbedding):
    """Local Discriminant Embedding of Dask arrays; see `nearkin.LDE`.

    The cost is that of `DaskSpectralEmbedding`.
    """

    _local_class = LDE
    __init__ = LDE.__init__


class DaskLFDA(DaskSpectralEmbedding):
    """Local Fisher Discriminant Analysis of Dask arrays; see `nearkin.LFDA`.

    The cost is that of `DaskSpectralEmbedding`, plus that of the within-class graph, which connects
    all pairs of a class: O(p sum_c n_c^2) time, whatever the search; n p / 2 numbers travel per
    block.
    """

    _local_class = LFDA
    __init__ = LFDA.__init__


class DaskLPP(DaskSpectralEmbedding):
    """Locality Preserving Projections of Dask arrays; see `nearkin.LPP`.

    The cost is that of `DaskSpectralEmbedding`.
    """

    _local_class = LPP
    __init__ = LPP.__init__


class DaskMFA(DaskSpectralEmbedding):
    """Marginal Fisher Analysis of Dask arrays; see `nearkin.MFA`.

    The cost is that of `DaskSpectralEmbedding`. The closest pairs of a class are chosen among the
    pairs of every row and its n_pairs nearest rows of other classes: that many neighbours of every
    row have to fit into memory.
    """

    _local_class = MFA
    __init__ = MFA.__init__


class DaskNMMP(DaskSpectralEmbedding):
    """Neighborhood MinMax Projections of Dask arrays; see `nearkin.NMMP`.

    The cost is that of `DaskSpectralEmbedding`. The default n_neighbors_within, about half of a
    class, makes lists whose length grows with the number of rows: set it, e.g. to 10.
    """

    _local_class = NMMP
    __init__ = NMMP.__init__
