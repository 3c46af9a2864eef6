"""What maps and votes see of the features: standardized ones, with missing cells filled and indicated."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from .._messages import counted, note
from ..preprocessing import indicated_features


def missing_cells(X: Any) -> np.ndarray:
    """Return how many cells of each feature are missing: NaN; sparse rows have none."""
    return np.zeros(X.shape[1], dtype=int) if issparse(X) else np.isnan(X).sum(axis=0)


class Imputer(SimpleImputer):
    """Fills missing cells with the median of their column, and appends indicators: 1 where a cell was missing, else 0.

    Columns get one as `indicated_features` says, of the rows of `fit`.
    """

    def __init__(self) -> None:
        super().__init__(strategy="median", add_indicator=True, keep_empty_features=True)

    def fit(self, X: Any, y: Any = None) -> Imputer:
        """Learn medians, and which columns get an indicator."""
        super().fit(X, y)
        self.indicator_.features_ = indicated_features(np.isnan(X))
        return self


def filled(X: Any) -> Any:
    """Return X as it is where no cell is missing, else filled by its own medians, with an indicator of every gap."""
    gaps = np.flatnonzero(missing_cells(X))
    if len(gaps) == 0:
        return X
    missing = np.isnan(X[:, gaps])
    medians = SimpleImputer(strategy="median", keep_empty_features=True)  # of these columns alone: they take long
    X = np.hstack([X, missing.astype(X.dtype)])
    X[:, gaps] = medians.fit_transform(X[:, gaps])
    return X


def filled_note(X: Any, names: Any, done: str = "filled by the median") -> list[str]:
    """Return a remark on the features with missing cells, and what is done with them; none without any."""
    gaps = [f"{name} ({counted(count, 'row')})" for name, count in zip(names, missing_cells(X), strict=True) if count]
    return note(f"missing values, {done}", gaps)


def preprocessing(*, scale: bool, sparse: bool, missing: bool) -> list[tuple[str, Any]]:
    """Return the steps before a map, unfitted: a scaler and an imputer, as far as they are needed.

    Scaled first, as the scaler passes over missing cells: so their indicators stay 0 and 1. Of unit variance, an
    indicator of 5 missing cells among 1,000 would weigh like 14 standard deviations of a feature: only rows with the
    same gap would be neighbours (`benchmarks/missing.py`).
    """
    steps: list[tuple[str, Any]] = [("scale", StandardScaler(with_mean=not sparse))] if scale else []
    return [*steps, ("impute", Imputer())] if missing else steps
