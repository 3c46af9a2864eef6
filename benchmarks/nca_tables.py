"""Time and memory of NCAClassifier and NCARegressor as rows grow, beside gradient boosting and a
random forest.

    python benchmarks/nca_tables.py --rows 10000 100000 1000000 --document docs/measured/scaling.md

writes Markdown into the document. 20 columns of a data frame are drawn, of which four carry
information: a sine, a product and a square, with noise; the number, or its third, is to be
predicted. Every fit runs in a process of its own, with one thread, as those of several would wait
for one another on a machine that others use; its memory is the peak of that process, the rows and
0.2 GB of imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from document import renew
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

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
    "| rows | target | method | fit, processor s | ratio | 5,000 predictions, s | memory, GB | "
    "accuracy or R² |"
)


def drawn(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 / 2 + rng.normal(size=n) * 0.3
    return pd.DataFrame(X, columns=[f"column {j}" for j in range(FEATURES)]), y


def fit_one(task: str, name: str, n: int) -> dict[str, float]:
    X, y = drawn(n + NEW)
    if task == "classes":
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    start = time.process_time()
    model = METHODS[task][name](random_state=0).fit(X[:n], y[:n])
    seconds, peak = (
        time.process_time() - start,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    )
    start = time.process_time()
    score = model.score(X[n:], y[n:])
    return {
        "seconds": seconds,
        "memory": peak,
        "score": score,
        "prediction": time.process_time() - start,
    }


def apart(task: str, name: str, n: int) -> dict[str, float]:
    """Return what a process of its own found."""
    command = [sys.executable, "-W", "ignore", __file__, "one", task, name, str(n)]
    one_thread = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, env=one_thread).stdout
    )


def table(sizes: list[int]) -> str:
    load, lines = os.getloadavg()[0], [HEAD, "|---" * (HEAD.count(" | ") + 1) + "|"]
    for n in sizes:
        for task, methods in METHODS.items():
            ours = None
            for name in methods if n <= FOREST_ROWS else list(methods)[:-1]:
                found = apart(task, name, n)
                ours = ours or found
                cost = (
                    f"{found['seconds']:.1f} | {found['seconds'] / ours['seconds']:.2f} | "
                    f"{found['prediction']:.1f}"
                )
                lines.append(
                    f"| {n:,} | {task} | {name} | {cost} | {found['memory']:.1f} | "
                    f"{found['score']:.3f} |"
                )
                print(lines[-1], flush=True)
    ended = f"load {load:.0f} when it began, {os.getloadavg()[0]:.0f} when it ended"
    return "\n".join([*lines, "", f"({os.cpu_count()} cores; {ended}.)"])


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(fit_one(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--document", type=Path)
    options = parser.parse_args()
    text = table(options.rows)
    if options.document:
        renew(options.document, "nca tables", text)


if __name__ == "__main__":
    main()
