"""Closed forms and descents as they come: held-out 3-NN accuracy, and R² of MLKR, with mean ranks.

    NEARKIN_DATA=folder python benchmarks/closed_forms.py

prints Markdown. NEARKIN_DATA names a folder of NPZ files, with CSV files in its folder `tables`;
what is not there is left out. At most 600 rows of each table (500 for regression), standardized on
the training rows, five folds; every method with its defaults and all dimensions, so that no fold
chooses anything. The parts class-defaults and regression-defaults print what the defaults of DMLMJ,
GMML, ITML and MLKR were chosen by, on other tables.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from nearkin import DMLMJ, GMML, ITML, LFDA, LMNN, MLKR, NCA
from nearkin.datasets import BUNDLED, load
from nearkin.evaluation import Method, compare

FOLDER = Path(os.environ.get("NEARKIN_DATA", ""))
CLASSES = (
    "iris", "wine", "breast_cancer", "digits", "balance_scale", "sonar", "ionosphere",
    "breast_cancer_wisconsin_original", "ohsumed_letor3", "satimage", "zoo", "haberman", "hayes-roth", "usps", "mnist",
)  # fmt: skip
CLASSES_FOR_DEFAULTS = (
    "heart", "dermatology", "contraceptive", "mammographic", "penbased", "spectfheart", "tae", "marketing", "coil20_16",
)  # fmt: skip
NUMBERS = (
    "boston_housing", "airfoil", "autompg6", "laser", "mortgage", "plastic", "winequality_white",
    "yacht_hydrodynamics",
)  # fmt: skip
NUMBERS_FOR_DEFAULTS = (
    "compactiv",
    "quake",
    "treasury",
    "wankara",
    "wizmir",
    "ele_1",
    "puma32h",
    "baseball",
)


def read(name: str, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return at most so many rows of a table, without constant features and tiny classes; None if
    it is not there.
    """
    if name in BUNDLED:
        table = load(name)
        X, y = table.X, table.y
    elif (FOLDER / f"{name}.npz").exists():
        data = np.load(FOLDER / f"{name}.npz")
        X, y = data["X_qnorm" if "X_qnorm" in data else "X"].astype(np.float64), data["y"]
    elif (FOLDER / "tables" / f"{name}.csv").exists():
        frame = pd.read_csv(FOLDER / "tables" / f"{name}.csv").dropna()
        X, y = frame.drop(columns="target").to_numpy(np.float64), frame["target"].to_numpy()
    else:
        return None
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    X, y = X[rows], y[rows]
    return X[:, np.ptp(X, axis=0) > 0], y


def scores(
    names: Sequence[str], models: dict[str, Any], task: str, most: int
) -> tuple[list[str], list[str], np.ndarray]:
    """Return the tables that are there, the methods, raw k-NN among them, and the mean scores
    (tables, methods).
    """
    methods = [Method(name, model, nested=False) for name, model in models.items()]
    score = "accuracy" if task == "classification" else "r2"
    tables, rows = [], []
    for name in names:
        if (table := read(name, most)) is None:
            continue
        X, y = table
        if task == "classification":
            codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
            X, y = X[counts[codes] >= 5], y[counts[codes] >= 5]
        with warnings.catch_warnings(action="ignore"):
            found = compare(
                X,
                y,
                task=task,
                methods=methods,
                references=(),
                score=score,
                n_neighbors=3,
                n_repeats=1,
                refit=False,
            )
        means = {result.name: 100 * float(np.mean(result.score)) for result in found.results}
        tables.append(f"{name} ({len(y)} x {X.shape[1]})")
        rows.append([means[method] for method in found.methods])
        print(tables[-1], *(f"{value:.1f}" for value in rows[-1]), file=sys.stderr)
    return tables, list(found.methods), np.array(rows)


def report(tables: list[str], methods: list[str], values: np.ndarray) -> str:
    """Return the scores as a Markdown table, followed by mean ranks, mean difference to raw k-NN,
    and the worst one.
    """
    ranks = np.mean([rankdata(-np.round(row, 6)) for row in values], axis=0)
    difference = values - values[:, :1]
    rows = [["table", *methods], ["---"] * (len(methods) + 1)]
    rows += [
        [name, *(f"{value:.1f}" for value in row)] for name, row in zip(tables, values, strict=True)
    ]
    rows += [["mean rank", *(f"{value:.2f}" for value in ranks)]]
    rows += [["mean difference to raw", *(f"{value:+.1f}" for value in difference.mean(axis=0))]]
    rows += [["worst difference to raw", *(f"{value:+.1f}" for value in difference.min(axis=0))]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def classes() -> str:
    """Compare the methods for classes."""
    models = {
        "LDA": LinearDiscriminantAnalysis(),
        "DMLMJ": DMLMJ(),
        "GMML": GMML(),
        "LFDA": LFDA(),
        "LMNN": LMNN(),
        "NCA": NCA(),
    }
    return report(*scores(CLASSES, models, "classification", 600))


def regression() -> str:
    """Compare the methods for numbers."""
    models = {"MLKR": MLKR(), "NCA (numbers)": NCA(target="continuous")}
    return report(*scores(NUMBERS, models, "regression", 500))


def class_defaults() -> str:
    """Compare settings of DMLMJ, GMML and ITML, on tables of their own."""
    models: dict[str, Any] = {f"DMLMJ k={k}": DMLMJ(n_neighbors=k) for k in (1, 3, 5, 10, 20)}
    models |= {
        f"GMML t={t} reg={reg}": GMML(t=t, reg=reg)
        for t in (0.1, 0.3, 0.5, 0.7)
        for reg in (0.01, 0.1, 1.0)
    }
    models |= {
        f"ITML k={k} gamma={gamma}": ITML(n_neighbors=k, gamma=gamma)
        for k in (1, 3, 10)
        for gamma in (0.01, 0.1, 1.0, 10.0)
    }
    return report(*scores(CLASSES_FOR_DEFAULTS, models, "classification", 600))


def regression_defaults() -> str:
    """Compare settings of MLKR, on tables of their own."""
    models = {
        f"alpha={alpha}": MLKR(alpha=alpha) for alpha in (0.0, 0.05, 0.15, 0.5, 1.0, 2.0, 5.0)
    }
    return report(*scores(NUMBERS_FOR_DEFAULTS, models, "regression", 500))


PARTS: dict[str, Callable[[], str]] = {
    "classes": classes,
    "regression": regression,
    "class-defaults": class_defaults,
    "regression-defaults": regression_defaults,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or ("classes", "regression"):
        print(f"\n## {part}\n\n{PARTS[part]()}", flush=True)
