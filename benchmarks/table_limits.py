"""Predictors for tables with irrelevant columns, and with words of documents.

    NEARKIN_DATA=folder python benchmarks/table_limits.py

prints Markdown: R2 or accuracy in three folds, with the processor seconds of a fit, of
`NCAClassifier` and `NCARegressor`, gradient boosting (HistGradientBoosting) and a linear model; and
how well `NCAClassifier` and a random forest do on a table of which many rows come twice.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import NCAClassifier, NCARegressor

NOISE = (0, 30, 100)  # columns


def methods(classify: bool) -> dict[str, Any]:
    linear = LogisticRegression(max_iter=1000) if classify else RidgeCV(np.logspace(-2, 4, 13))
    return {
        "NCA": NCAClassifier() if classify else NCARegressor(),
        "boosting": (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(
            random_state=0
        ),
        "linear": make_pipeline(StandardScaler(), linear),
    }


def scored(model: Any, X: Any, y: np.ndarray, classify: bool) -> str:
    """Return the mean score of three folds, and the seconds of a fit."""
    scores, start = [], time.process_time()
    for train, test in (StratifiedKFold if classify else KFold)(
        3, shuffle=True, random_state=0
    ).split(X, y):
        scores.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    return f"{np.mean(scores):.3f} ({(time.process_time() - start) / 3:.1f} s)"


def row(name: str, X: Any, y: np.ndarray, classify: bool) -> str:
    cells = [scored(model, X, y, classify) for model in methods(classify).values()]
    return f"| {name} | {' | '.join(cells)} |"


def news() -> tuple[np.ndarray, np.ndarray]:
    """Return 2,000 documents of four groups by 100 directions of their words' TF-IDF, and the
    groups.
    """
    with np.load(Path(os.environ["NEARKIN_DATA"], "news_rec.npz")) as file:
        words = csr_matrix(
            (file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"])
        )
        drawn = np.random.default_rng(0).permutation(words.shape[0])[:2000]
        return TruncatedSVD(100, random_state=0).fit_transform(words[drawn]), file["y"][drawn]


def repeated_rows() -> str:
    """Return the accuracies in ten folds of tae, on rows with and without an identical training
    row.
    """
    frame = pd.read_csv(Path(os.environ["NEARKIN_DATA"], "tables", "tae.csv"))
    X, y = frame.drop(columns="target"), frame["target"].to_numpy()
    kind, repeated = X.groupby(list(X)).ngroup().to_numpy(), np.zeros(len(X), dtype=bool)
    folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
    for train, test in folds:
        repeated[test] = np.isin(kind[test], kind[train])
    lines = ["| tae | NCA | random forest |\n|---|---|---|"]
    models = NCAClassifier(), RandomForestClassifier(random_state=0)
    right = [cross_val_predict(model, X, y, cv=folds) == y for model in models]
    for words, rows in (("with", repeated), ("without", ~repeated)):
        cells = " | ".join(f"{found[rows].mean():.3f}" for found in right)
        lines.append(f"| {rows.sum()} rows {words} an identical training row | {cells} |")
    return "\n".join(lines)


def main() -> None:
    print("| table | NCA | boosting | linear |\n|---|---|---|---|")
    tables = {
        "breast_cancer": (*load_breast_cancer(return_X_y=True), True),
        "diabetes": (*load_diabetes(return_X_y=True), False),
        "Friedman's function": (*make_friedman1(1000, 5, noise=1.0, random_state=0), False),
    }
    for name, (X, y, classify) in tables.items():
        for n_noise in NOISE:
            noise = np.random.default_rng(0).normal(size=(len(X), n_noise))
            print(
                row(f"{name}, {n_noise} irrelevant columns", np.hstack([X, noise]), y, classify),
                flush=True,
            )
    if "NEARKIN_DATA" in os.environ:
        print(row("news, 100 directions of TF-IDF", *news(), True))
        print(f"\n{repeated_rows()}")


if __name__ == "__main__":
    main()
