"""Is a difference more than luck? Tests for accuracies that were paired by fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student


def corrected_resampled_t_test(differences: np.ndarray, test_share: float) -> float:
    """Return the two-sided p-value for a mean difference of 0 over the folds of a repeated cross-validation.

    `t = mean(d) / sqrt((1/J + test_share) var(d))` with J - 1 degrees of freedom; `test_share`, the test rows over the
    training rows, corrects for the training rows that folds share (Nadeau and Bengio, Machine Learning 52, 2003).
    """
    J = len(differences)
    mean, variance = differences.mean(), differences.var(ddof=1)
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    statistic = mean / np.sqrt((1 / J + test_share) * variance)
    return float(2 * student.sf(abs(statistic), J - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down corrected p-values, in the order given."""
    order = np.argsort(p_values)
    steps = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(p_values) else []
    return corrected.tolist()
