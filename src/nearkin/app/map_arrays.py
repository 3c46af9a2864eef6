"""Fitted steps of a pipeline as arrays and numbers: what a saved model keeps of its scaler, imputer and map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from ..estimators import TDL, NCAClassifier, NCARegressor
from ..linalg import svd
from ..preprocessing import SparseEncoder


def map_arrays(steps: Sequence[Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return what maps new rows, of a fitted scaler and a fitted map, as far as there are any: arrays and numbers."""
    arrays: dict[str, np.ndarray] = {}
    for step in steps:
        if isinstance(step, StandardScaler):
            # NaN: a column without a value in the rows learned from. It is filled with 0, and so is that of new rows
            arrays |= {"mean": np.nan_to_num(step.mean_)} if step.with_mean else {}
            arrays |= {"scale": np.nan_to_num(step.scale_, nan=np.finfo(np.float64).max)}
        elif isinstance(step, SimpleImputer):
            arrays |= {"fill": step.statistics_, "indicated": step.indicator_.features_}
        elif isinstance(step, TDL):
            rule = step.extension_
            graph = rule.graph
            arrays |= {"rule.sources": rule.sources, "rule.values": rule.eigenvalues, "rule.constant": rule.constant}
            arrays |= stored("graph.rows", graph.rows) | {"spectrum": step.eigenvalues_}
            arrays |= {} if graph.origin is None else {"graph.origin": graph.origin}
            numbers = {"n_neighbors": int(graph.n_neighbors), "bandwidth": float(graph.bandwidth)}
            return arrays, numbers | {"normalized": bool(rule.normalized)}
        elif isinstance(step, (NCAClassifier, NCARegressor)):
            arrays |= {"components": step.components_}
            if isinstance(step.encoder_, SparseEncoder):  # it scales, no more
                components = step.components_ / step.encoder_.scale_
                arrays |= {"components": components, "offset": np.zeros(len(components))}
        else:
            if isinstance(step, LinearDiscriminantAnalysis):
                spectrum = step.explained_variance_ratio_
                components = step.scalings_[:, : len(spectrum)].T
            else:  # NCA and LMNN have no eigenvalues but those of the metric
                components = step.components_
                values = getattr(step, "eigenvalues_", svd(components, full_matrices=False)[1] ** 2)
                spectrum = getattr(step, "explained_variance_", values)
            offset = -step.transform(np.zeros((1, components.shape[1])))[0]
            arrays |= {"components": components, "offset": offset, "spectrum": spectrum}
    return arrays, {}


def stored(name: str, rows: Any) -> dict[str, np.ndarray]:
    """Return a matrix as arrays."""
    if not issparse(rows):
        return {name: rows}
    return {f"{name}.{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}
