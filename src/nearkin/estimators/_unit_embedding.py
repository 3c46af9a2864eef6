"""What the maps of embeddings share that are compared by cosines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._blocks import densified
from .._validation import validate_rows
from ..objectives.cosine import affine_unit_rows, unit_rows
from .base import Embedding


class UnitEmbedding(Embedding):
    """An affine map of rows of unit length to rows of unit length: `Z ~ X/||X|| components_.T + bias_`. Abstract."""

    components_: np.ndarray
    bias_: np.ndarray
    _needs_labels = True

    def embed(self, X: Any) -> np.ndarray:
        """Map rows, and scale them to unit length.

        Parameters
        ----------
        X : array of shape (n, p)

        Returns
        -------
        array of shape (n, m)
            Rows of unit length, so that products are cosines; float32 if X is float32 or float16.
        """
        check_is_fitted(self, "components_")
        return affine_unit_rows(densified(validate_rows(self, X, reset=False)), self.components_, self.bias_)

    def transform(self, X: Any) -> np.ndarray:
        """Return `embed(X)`."""
        return self.embed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _unit_rows(self, X: Any, *, fitting: bool) -> np.ndarray:
        """Return valid rows in unit length."""
        return unit_rows(densified(validate_rows(self, X, reset=fitting)))
