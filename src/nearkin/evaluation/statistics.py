"""Is a difference more than luck? Tests for accuracies that were paired by fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student


def corrected_resampled_t_test(differences: np.ndarray, n_train: float, n_test: float) -> float:
    """Return the two-sided p-value for a mean difference of 0 over the folds of a repeated cross-validation.

    `t = mean(d) / sqrt((1/J + n_test/n_train) var(d))` with J - 1 degrees of freedom; n_test/n_train, rows of a fold,
    corrects for the training rows that folds share (Nadeau and Bengio, Machine Learning 52, 2003). A fold's accuracy
    comes in steps of 1/n_test, so var(d) is taken to be at least that of rounding to such a step: folds that agree by
    chance prove nothing.
    """
    J = len(differences)
    variance = max(differences.var(ddof=1), 1 / (12 * n_test**2))
    statistic = differences.mean() / np.sqrt((1 / J + n_test / n_train) * variance)
    return float(2 * student.sf(abs(statistic), J - 1))


def format_p(p_value: float) -> str:
    """Return a p-value with two digits, or "<0.001"."""
    return f"{p_value:.2g}" if p_value >= 0.001 else "<0.001"


def signed_points(difference: float) -> str:
    """Return a difference of shares in percentage points, e.g. "+1.2"; never "-0.0"."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down corrected p-values, in the order given."""
    order = np.argsort(p_values)
    steps = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(p_values) else []
    return corrected.tolist()
