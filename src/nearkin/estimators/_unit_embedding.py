"""What the maps of embeddings share that are compared by cosines."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from .._blocks import affine_unit_rows, unit_rows
from .._validation import validate_rows
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
        return affine_unit_rows(self._dense_rows(X, fitting=False), self.components_, self.bias_)

    def transform(self, X: Any) -> np.ndarray:
        """Return `embed(X)`."""
        return self.embed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _unit_rows(self, X: Any, *, fitting: bool) -> np.ndarray:
        """Return valid rows in unit length; without `fitting`, queries that must be as wide as the documents."""
        if not fitting and len(shape := np.shape(X)) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(
                f"queries have {shape[1]} features, documents {self.n_features_in_}: embed both by one model."
            )
        Z = unit_rows(self._dense_rows(X, fitting=fitting))
        if fitting:
            check_directions(Z, "X")
        return Z

    def _dense_rows(self, X: Any, *, fitting: bool) -> np.ndarray:
        X = validate_rows(self, X, reset=fitting)
        return X.toarray() if issparse(X) else X


def check_directions(Z: np.ndarray, name: str) -> None:
    """Raise a ValueError where rows of unit length do not differ by more than their rounding."""
    if np.ptp(Z, axis=0).max() <= 10 * np.finfo(Z.dtype).eps:
        raise ValueError(
            f"{name} does not vary in direction (n_features = {Z.shape[1]}): its rows are multiples of one, and "
            "cosines tell nothing."
        )
