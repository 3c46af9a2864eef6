"""What all Dask classes share: a local twin that holds what was learned, and maps block by block."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, Self

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ._neighbors import block_searcher
from ._rows import ClusterRows
from ._table import check_dask_rows, kept_dtype, one_block_of_columns
from ._work import Work


class DaskTransformer(BaseEstimator):
    """The Dask form of a local class: its parameters, its fitted attributes, Dask arrays in and out.

    Abstract: a class names its `_local_class`, takes over its `__init__`, and defines `fit`, which learns into a local
    twin.
    """

    _local_class: ClassVar[type]

    def transform(self, X: da.Array) -> da.Array:
        """Map rows, block by block, when they are computed.

        Parameters
        ----------
        X : Dask array of shape (n, p)
            Chunks of unknown sizes will do.

        Returns
        -------
        Z : Dask array of shape (n, m)
            float32 if X is float32.
        """
        return self._by_blocks("transform", X)

    def fit_transform(self, X: da.Array, y: Any = None, *, client: Any = None) -> da.Array:
        """Learn from rows as `fit` does, and map them."""
        return self.fit(X, y, client=client).transform(X)

    def to_local(self) -> Any:
        """Return the plain estimator, fitted: it takes NumPy arrays and holds nothing of Dask."""
        check_is_fitted(self)
        return _with_learned(self._local_class(**clone(self).get_params(deep=False)), deepcopy(_learned(self)))

    def _twin(self, X: Any) -> tuple[Any, da.Array]:
        """Return the local estimator to be fitted, and X checked."""
        check_dask_rows(type(self).__name__, X, local=self._local_class.__name__)
        twin = self._local_class(**self.get_params(deep=False))
        twin.n_features_in_ = X.shape[1]
        return twin, one_block_of_columns(X)

    def _take_over(self, twin: Any) -> Any:
        """Keep what the local twin has learned."""
        return _with_learned(self, _learned(twin))

    def _by_blocks(self, method: str, X: Any) -> da.Array:
        """Return what a method of the local estimator makes of every block."""
        check_is_fitted(self)
        check_dask_rows(type(self).__name__, X, local=self._local_class.__name__)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} was fitted on {self.n_features_in_}: pass the "
                "same columns."
            )
        X, dtype = one_block_of_columns(X), kept_dtype(X.dtype)
        apply = getattr(self.to_local(), method)
        empty = apply(np.zeros((1, X.shape[1]), dtype))[:0]
        chunks = (X.chunks[0], empty.shape[1:])
        return X.map_blocks(_applied, apply=apply, empty=empty, meta=empty, dtype=dtype, chunks=chunks)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


class DaskSpectralEmbedding(DaskTransformer):
    """The Dask form of a spectral method: its `_local_class` learns from rows on a cluster."""

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
        labelled = twin.__sklearn_tags__().target_tags.required
        search = block_searcher(self.search, X.shape[0])
        with Work(client) as work:
            twin.fit_rows(ClusterRows(work, type(self).__name__, X, y, labelled=labelled, search=search))
        return self._take_over(twin)


def _learned(estimator: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


def _with_learned(estimator: Any, attributes: dict[str, Any]) -> Any:
    for name, value in attributes.items():
        setattr(estimator, name, value)
    return estimator


def _applied(block: np.ndarray, *, apply: Callable[[np.ndarray], np.ndarray], empty: np.ndarray) -> np.ndarray:
    return apply(block.astype(empty.dtype, copy=False)) if len(block) else empty
