"""What every learned linear map offers, and nothing else: an estimator sets `components_`, the rest follows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array, check_is_fitted

from .._callbacks import CallbackSupportMixin
from .._validation import refuse_foreign, validate_rows
from ..scatter import RowSpace
from ..spectral import SpectralResult


class LinearEmbedding(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A linear map `Z = X components_.T`, which is also the metric `M = components_.T components_`.

    Abstract: a method defines `__init__` and `fit`, which sets `components_` of shape (m, p) and reports its steps to
    the callbacks of scikit-learn (`set_callbacks`, from 1.9 on). A callback cannot stop a spectral fit, since there is
    no map before its last step; it may raise.
    """

    components_: np.ndarray

    def _keep_directions(self, result: SpectralResult, rows: RowSpace, dtype: Any) -> None:
        """Set what a ratio trace has found, in the features."""
        self.components_ = rows.back_project(result.vectors).astype(dtype, copy=False)
        self.eigenvalues_ = result.values
        self.n_components_ = self.components_.shape[0]
        self.objective_ = result.objective
        self.rank_ = result.rank

    def transform(self, X: Any) -> np.ndarray:
        """Map rows into the learned space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)

        Returns
        -------
        Z : array of shape (n, m)
            float32 if X is float32. Euclidean distances between its rows are the learned distances.
        """
        check_is_fitted(self, "components_")
        X = validate_rows(self, X, reset=False)
        return safe_sparse_dot(X, self.components_.T.astype(X.dtype, copy=False), dense_output=True)

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """Return the learned metric M = components_.T components_, shape (p, p), positive semi-definite."""
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    def get_metric(self) -> Callable[..., float]:
        """Return the learned distance as a function of two rows `(u, v, squared=False)`.

        It holds a copy of the map, can be pickled, and serves wherever a callable metric is accepted; `transform`
        followed by the Euclidean distance is the fast way to the same numbers.
        """
        check_is_fitted(self, "components_")
        return partial(_distance, self.components_.copy())

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Return the learned distance within each pair.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)
            Two rows a pair.

        Returns
        -------
        array of shape (n_pairs,)
            `||components_ (u - v)||`, not squared.
        """
        check_is_fitted(self, "components_")
        refuse_foreign(pairs, "pairs")
        pairs = check_array(pairs, allow_nd=True, ensure_2d=False, dtype=[np.float64, np.float32], input_name="pairs")
        if pairs.ndim != 3 or pairs.shape[1:] != (2, self.components_.shape[1]):
            raise ValueError(
                f"pairs must have the shape (n_pairs, 2, {self.components_.shape[1]}), got {pairs.shape}: stack the "
                "two rows of each pair, e.g. np.stack([U, V], axis=1)."
            )
        return np.linalg.norm((pairs[:, 0] - pairs[:, 1]) @ self.components_.T, axis=1)

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Return minus `pair_distance(pairs)`: larger for pairs that are more alike."""
        return -self.pair_distance(pairs)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _distance(components: np.ndarray, u: Any, v: Any, squared: bool = False) -> float:
    difference = components @ np.subtract(u, v, dtype=np.float64)
    square = float(difference @ difference)
    return square if squared else square**0.5
