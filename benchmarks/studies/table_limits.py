"""Predictors for tables with irrelevant columns, with words of documents, and with repeated rows.

    NEARKIN_DATA=folder python -m benchmarks.studies.table_limits

prints Markdown: R2 or accuracy in three folds, with the processor seconds of a fit, of
`NCAClassifier` and `NCARegressor`, gradient boosting (HistGradientBoosting) and a linear model; and
how well `NCAClassifier` and a random forest do on a table of which many rows come twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import counts, drawn, folds_of, frame
from benchmarks.measure import command, timed
from benchmarks.report import head, row
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


def scored(name: str, X: Any, y: np.ndarray, classify: bool) -> None:
    """Print the mean score of three folds, and the seconds of a fit, of every method."""
    cells = []
    for model in methods(classify).values():
        run = timed(lambda: [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds_of(X, y, 3, classify)])  # noqa: B023  # fmt: skip
        cells.append(f"{np.mean(run.result):.3f} ({run.processor / 3:.1f} s)")
    row(name, *cells)


def repeated_rows() -> None:
    """Print the accuracies in ten folds of tae, on rows with and without an identical training row."""
    X = frame("tae")
    y = X.pop("target").to_numpy()
    kind, repeated = X.groupby(list(X)).ngroup().to_numpy(), np.zeros(len(X), dtype=bool)
    folds = folds_of(X, y, 10)
    for train, test in folds:
        repeated[test] = np.isin(kind[test], kind[train])
    head("tae", "NCA", "random forest")
    models = NCAClassifier(), RandomForestClassifier(random_state=0)
    right = [cross_val_predict(model, X, y, cv=folds) == y for model in models]
    for words, rows in (("with", repeated), ("without", ~repeated)):
        cells = (f"{found[rows].mean():.3f}" for found in right)
        row(f"{rows.sum()} rows {words} an identical training row", *cells)


def limits() -> None:
    head("table", *methods(True))
    tables = {
        "breast_cancer": (*load_breast_cancer(return_X_y=True), True),
        "diabetes": (*load_diabetes(return_X_y=True), False),
        "Friedman's function": (*make_friedman1(1000, 5, noise=1.0, random_state=0), False),
    }
    for name, (X, y, classify) in tables.items():
        for n_noise in NOISE:
            noise = np.random.default_rng(0).normal(size=(len(X), n_noise))
            scored(f"{name}, {n_noise} irrelevant columns", np.hstack([X, noise]), y, classify)
    # 2,000 documents of four groups
    words, y = drawn(*counts("news_rec"), 2000)
    X = TruncatedSVD(100, random_state=0).fit_transform(words)
    scored("news, 100 directions of TF-IDF", X, y, True)
    repeated_rows()


if __name__ == "__main__":
    command(limits)
