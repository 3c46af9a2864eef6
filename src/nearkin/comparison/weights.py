"""Fits with row weights, for any estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter


def weight_parameters(estimator: Any) -> list[str]:
    """Return the names of the `fit` parameters by which an estimator takes row weights, if any.

    For a pipeline, there is one for each step that takes weights.
    """
    if isinstance(estimator, Pipeline):
        steps = [(name, step) for name, step in estimator.steps if hasattr(step, "fit")]
        return [f"{name}__{key}" for name, step in steps for key in weight_parameters(step)]
    return ["sample_weight"] if has_fit_parameter(estimator, "sample_weight") else []


def fitted(estimator: Any, X: Any, y: Any, weights: np.ndarray | None) -> Any:
    """Fit an estimator, with weights if it takes them, and return it."""
    if weights is None:
        return estimator.fit(X, y)
    # with metadata routing, a pipeline rejects the names of its steps
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **dict.fromkeys(weight_parameters(estimator), weights))
