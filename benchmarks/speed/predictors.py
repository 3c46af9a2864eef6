"""Time and memory of NCAClassifier and NCARegressor as rows grow, beside gradient boosting and a
random forest; in docs/measured/scaling.md.

    python -m benchmarks.speed.predictors --document docs/measured/scaling.md

20 columns of a data frame are drawn, of which four carry information: a sine, a product and a square,
with noise; the number, or its third, is to be predicted. Every fit runs in a process of its own, with
one thread, as those of several would wait for one another on a machine that others use; its memory is
the peak of that process, the rows and the imports included.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from benchmarks.measure import apart, command, memory, timed
from benchmarks.report import row, table
from nearkin import NCAClassifier, NCARegressor

FEATURES, NEW = 20, 5000
FOREST_ROWS = 100_000  # a forest of more takes too long here
METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "classes": {
        "NCAClassifier": NCAClassifier,
        "HistGradientBoosting": HistGradientBoostingClassifier,
        "RandomForest": RandomForestClassifier,
    },
    "numbers": {
        "NCARegressor": NCARegressor,
        "HistGradientBoosting": HistGradientBoostingRegressor,
        "RandomForest": RandomForestRegressor,
    },
}
HEAD = (
    "rows", "target", "method", "fit, processor s", "ratio", "5,000 predictions, s", "memory, GB", "accuracy or R²",
)  # fmt: skip


def drawn(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 / 2 + rng.normal(size=n) * 0.3
    return pd.DataFrame(X, columns=[f"column {j}" for j in range(FEATURES)]), y


def fit_one(task: str, name: str, n: int) -> tuple[float, float, float, float]:
    """Return the seconds of a fit, the memory, the seconds of predictions and the score."""
    X, y = drawn(n + NEW)
    if task == "classes":
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    with threadpool_limits(1):
        _, seconds, model = timed(METHODS[task][name](random_state=0).fit, X[:n], y[:n])
        peak = memory() / 1e9
        _, prediction, score = timed(model.score, X[n:], y[n:])
    return seconds, peak, prediction, score


def predictors(rows: tuple[int, ...] = (10_000, 100_000, 1_000_000)) -> str:
    load, lines = os.getloadavg()[0], []
    for n in rows:
        for task, methods in METHODS.items():
            ours = 0.0
            for name in methods if n <= FOREST_ROWS else list(methods)[:-1]:
                seconds, peak, prediction, score = apart(fit_one, task, name, n)
                ours = ours or seconds
                cost = f"{seconds:.1f}", f"{seconds / ours:.2f}", f"{prediction:.1f}"
                lines.append([f"{n:,}", task, name, *cost, f"{peak:.1f}", f"{score:.3f}"])
                row(*lines[-1])
    ended = f"load {load:.0f} when it began, {os.getloadavg()[0]:.0f} when it ended"
    return f"{table(HEAD, lines)}\n\n({os.cpu_count()} cores; {ended}.)"


if __name__ == "__main__":
    command(predictors)
