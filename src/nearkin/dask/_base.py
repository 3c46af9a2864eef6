"""What all Dask classes share: a local twin that holds what was learned, and maps block by block."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .._captions import DOCUMENTATION, Estimator
from ._table import check_dask_rows, kept_dtype


class DaskTransformer(TransformerMixin, Estimator):
    """The Dask form of a local class: its parameters, its fitted attributes, Dask arrays in and out.

    Abstract: a class names its `_local_class`, takes over its `__init__`, and defines `fit`, which fits a local twin.
    """

    _doc_link_template = f"{DOCUMENTATION}/api/generated/nearkin.dask.{{estimator_name}}.html"
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
        transform = self.to_local().transform
        check_dask_rows(type(self).__name__, X, local=self._local_class.__name__)
        validate_data(self, X, reset=False, skip_check_array=True)
        X = X.rechunk({1: -1}).astype(kept_dtype(X.dtype))
        empty = transform(np.zeros((1, X.shape[1]), X.dtype))[:0]
        chunks = (X.chunks[0], empty.shape[1:])
        return X.map_blocks(
            lambda block: transform(block) if len(block) else empty, meta=empty, dtype=empty.dtype, chunks=chunks
        )

    def to_local(self) -> Any:
        """Return the plain estimator, fitted: it takes NumPy arrays and holds nothing of Dask."""
        check_is_fitted(self)
        local = self._local_class(**clone(self).get_params(deep=False))
        vars(local).update(deepcopy(_fitted_attributes(self)))
        return local

    def _phrases(self) -> list[str]:
        return self.to_local()._phrases()

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


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}
