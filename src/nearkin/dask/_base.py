"""What all Dask classes share: a local twin that holds what was learned, and maps block by block."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ._table import check_dask_rows, kept_dtype


class DaskTransformer(BaseEstimator):
    """The Dask form of a local class: its parameters, its fitted attributes, Dask arrays in and out.

    Abstract: a class names its `_local_class`, takes over its `__init__`, and defines `fit`, which fits a local twin.
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
        local = self._local_class(**clone(self).get_params(deep=False))
        vars(local).update(deepcopy(_fitted_attributes(self)))
        return local

    def _twin(self, X: Any) -> tuple[Any, da.Array]:
        """Return the local estimator to be fitted, and X checked, in blocks of whole rows."""
        check_dask_rows(type(self).__name__, X, local=self._local_class.__name__)
        twin = self._local_class(**self.get_params(deep=False))
        twin.n_features_in_ = X.shape[1]
        return twin, X.rechunk({1: -1})

    def _take_over(self, twin: Any) -> Any:
        """Keep what the local twin has learned."""
        self.__dict__.update(_fitted_attributes(twin))
        return self

    def _by_blocks(self, method: str, X: Any) -> da.Array:
        """Return what a method of the local estimator makes of every block."""
        check_is_fitted(self)
        check_dask_rows(type(self).__name__, X, local=self._local_class.__name__)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} was fitted on {self.n_features_in_}: pass the "
                "same columns."
            )
        X, apply = X.rechunk({1: -1}), getattr(self.to_local(), method)
        empty = apply(np.zeros((1, X.shape[1]), kept_dtype(X.dtype)))[:0]
        chunks = (X.chunks[0], empty.shape[1:])
        return X.map_blocks(_apply, apply=apply, empty=empty, meta=empty, dtype=empty.dtype, chunks=chunks)


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


def _apply(block: np.ndarray, *, apply: Callable[[np.ndarray], np.ndarray], empty: np.ndarray) -> np.ndarray:
    return apply(block.astype(kept_dtype(block.dtype), copy=False)) if len(block) else empty
