"""What embeddings of the training rows offer to new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._callbacks import CallbackSupportMixin
from .._validation import validate_rows
from ..spectral import SpectralResult
from ._graph_prior import GraphRule, RowGraph
from ._kernel_prior import KernelRule


class TransductiveEmbedding(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Coordinates of the training rows, and a rule that gives new rows theirs.

    Abstract: a method defines `__init__` and `fit`, which calls `_keep`.
    """

    def _keep(
        self, result: SpectralResult, Z: np.ndarray, rule: GraphRule | KernelRule, graph: RowGraph | None, dtype: Any
    ) -> None:
        """Set what is known after the fit; Z are the coordinates, `graph` ties new rows if the rule wants ties."""
        self._rule, self._graph = rule, graph
        self.embedding_ = Z.astype(dtype, copy=False)
        self.eigenvalues_ = result.values
        self.n_components_ = Z.shape[1]
        self.objective_ = result.objective
        self.residual_ = result.residual

    def transform(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Give coordinates to new rows, see Notes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, p)
        affinity : array or sparse matrix of shape (n_new, n), optional
            Weights of the ties to the training rows; required if the fit was given its graph, and ignored where a
            kernel says where new rows belong.

        Returns
        -------
        Z : array of shape (n_new, m)
            float32 if X is float32.
        """
        check_is_fitted(self, "_rule")
        X = validate_rows(self, X, reset=False)
        return self._rule.place(X, self._graph, affinity).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
