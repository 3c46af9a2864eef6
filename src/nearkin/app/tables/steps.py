"""The steps between an encoder and the voters of a saved model, whose arrays its file holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from ...estimators import TDL
from ...linalg import svd


@dataclass(frozen=True)
class Step:
    """A step whose fields are arrays; the file has them by the same names."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays, and no state."""
        return {name: array for name, array in vars(self).items() if array is not None}, {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], states: Any = None) -> Self:
        """Return the step from the arrays of a model; other names are ignored."""
        return cls(**{part.name: arrays.get(part.name) for part in fields(cls)})


@dataclass(frozen=True)
class Scale(Step):
    """Centre and scale features; sparse rows are only scaled."""

    scale: np.ndarray
    mean: np.ndarray | None

    @classmethod
    def of(cls, scaler: StandardScaler) -> Self:
        """Return the step of a fitted scaler."""
        # NaN for a column without known values in the training rows; it is filled with 0, and new
        # rows are treated alike
        mean = np.nan_to_num(scaler.mean_) if scaler.with_mean else None
        return cls(np.nan_to_num(scaler.scale_, nan=np.finfo(np.float64).max), mean)

    def transform(self, X: Any) -> Any:
        """Return scaled rows."""
        if self.mean is not None:
            return ((X.toarray() if issparse(X) else X) - self.mean) / self.scale
        return csr_array(X.multiply(1 / self.scale)) if issparse(X) else X / self.scale


@dataclass(frozen=True)
class Fill(Step):
    """Fill missing numbers of dense rows; then come features that say where some were missing."""

    fill: np.ndarray
    indicated: np.ndarray | None

    def transform(self, X: Any) -> Any:
        """Return filled rows."""
        if self.indicated is not None and issparse(X):
            X = X.toarray()
        if issparse(X):
            return X
        missing = np.isnan(X)
        X = np.where(missing, self.fill, X)
        return X if self.indicated is None else np.hstack([X, missing[:, self.indicated]])


@dataclass(frozen=True)
class LinearMap(Step):
    """Z = X components' - offset; the spectrum is for display."""

    components: np.ndarray
    offset: np.ndarray | None
    spectrum: np.ndarray

    @classmethod
    def of(cls, fitted: Any) -> Self:
        """Return the step of a fitted linear map."""
        if isinstance(fitted, LinearDiscriminantAnalysis):
            spectrum = fitted.explained_variance_ratio_
            components = fitted.scalings_[:, : len(spectrum)].T
        else:  # NCA and LMNN only have eigenvalues of the metric
            components = fitted.components_
            values = getattr(fitted, "eigenvalues_", svd(components, full_matrices=False)[1] ** 2)
            spectrum = getattr(fitted, "explained_variance_", values)
        offset = -fitted.transform(np.zeros((1, components.shape[1])))[0]
        return cls(components, offset, spectrum)

    def transform(self, X: Any) -> Any:
        """Return mapped rows."""
        Z = X @ self.components.T
        return Z if self.offset is None else Z - self.offset


# by an array that each has, in their order
STEPS: dict[str, Any] = {
    "scale": Scale,
    "fill": Fill,
    "components": LinearMap,
    "rule.sources": TDL,
}


def saved_step(step: Any) -> Any:
    """Return a fitted step as one that has `to_arrays`."""
    if isinstance(step, SimpleImputer):
        return Fill(step.statistics_, step.indicator_.features_)
    if isinstance(step, StandardScaler):
        return Scale.of(step)
    return step if hasattr(step, "to_arrays") else LinearMap.of(step)
