"""Is a difference more than chance? Tests for scores that were paired by fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student


def corrected_resampled_t_test(
    differences: np.ndarray, n_train: float, n_test: float, resolution: float | None = None
) -> float:
    """Return the two-sided p-value for a mean difference of 0 over the folds of a repeated cross-validation.

    `t = mean(d) / sqrt((1/J + n_test/n_train) var(d))` with J - 1 degrees of freedom; n_test/n_train, rows of a fold,
    corrects for the training rows that folds share (Nadeau and Bengio, Machine Learning 52, 2003). A fold's score is
    only as fine as its rows: one of them changes it by `resolution`, which for an accuracy is 1/n_test, the default.
    So var(d) is taken to be at least that of rounding to such a step: folds that agree by chance prove nothing.
    """
    J = len(differences)
    step = 1 / n_test if resolution is None else resolution
    variance = max(differences.var(ddof=1), step**2 / 12)
    statistic = differences.mean() / np.sqrt((1 / J + n_test / n_train) * variance)
    return float(2 * student.sf(abs(statistic), J - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down corrected p-values, in the order given."""
    order = np.argsort(p_values)
    steps = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(p_values) else []
    return corrected.tolist()
