"""Corrections of p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down corrected p-values, in the given order."""
    order = np.argsort(p_values)
    steps = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected.tolist()
