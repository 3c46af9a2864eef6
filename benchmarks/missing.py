"""Which indicators of missing cells help, and how they are scaled: 9-NN on held-out rows, raw and
after LDA and NCA.

    NEARKIN_DATA=folder python benchmarks/missing.py

prints Markdown: the accuracy in percent with the median of the column alone, then how many points
indicators add, in the mean of the tables (and in the worst and the best one). There is one for
every column with gaps, as 0 and 1 or with unit variance, or one for those that `compare` takes
(`nearkin.tables.indicated_features`), as 0 and 1. Cells of half of the columns are taken out: at
random; of the values above the 70 % quantile; or more often in some classes than in the largest
one. "60 rows": of samples of 60 rows of the four tables with 30 columns or more.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import NCA
from nearkin.evaluation.methods import LDA
from nearkin.tables.gaps import Imputer

FOLDER = Path(os.environ["NEARKIN_DATA"])
ARRAYS = ("sonar", "ionosphere")
TABLES = (
    "contraceptive",
    "dermatology",
    "german",
    "heart",
    "mammographic",
    "marketing",
    "penbased",
    "saheart",
)


def every_gap():
    """Return what fills missing cells and indicates each."""
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


TREATMENTS = {
    "median": lambda: make_pipeline(
        StandardScaler(), SimpleImputer(strategy="median", keep_empty_features=True)
    ),
    "all, 0 and 1": lambda: make_pipeline(StandardScaler(), every_gap()),
    "by the rule": lambda: make_pipeline(StandardScaler(), Imputer()),
    "all, unit variance": lambda: make_pipeline(every_gap(), StandardScaler()),
}
MAPS = {  # and how often rows and cells are drawn, how many rows, and the least number of columns
    "raw": (lambda: "passthrough", 5, 1000, 1),
    "LDA": (LDA, 5, 1000, 1),
    "raw, 60 rows": (lambda: "passthrough", 20, 60, 30),
    "LDA, 60 rows": (LDA, 20, 60, 30),
    "NCA": (lambda: NCA(max_iter=30), 1, 400, 1),
}


def at_random(share):
    return lambda X, y, rng: rng.random(X.shape) < share


def of_high_values(X, y, rng):
    return (np.quantile(X, 0.7, axis=0) <= X) & (rng.random(X.shape) < 0.4)


def by_class(X, y, rng):
    return rng.random(X.shape) < np.where(y == np.bincount(y).argmax(), 0.02, 0.15)[:, None]


MISSING = {f"{100 * share:g} % at random": at_random(share) for share in (0.005, 0.02, 0.1, 0.3)}
MISSING |= {"40 % of high values": of_high_values, "2 % and 15 %, by class": by_class}


def tables():
    for load in (load_breast_cancer, load_wine):
        yield load(return_X_y=True)
    for name in ARRAYS:
        data = np.load(FOLDER / f"{name}.npz")
        yield data["X"].astype(float), np.unique(data["y"], return_inverse=True)[1]
    for name in TABLES:
        frame = pd.read_csv(FOLDER / "tables" / f"{name}.csv").dropna()
        y = np.unique(frame.pop("target"), return_inverse=True)[1]
        yield frame.select_dtypes("number").to_numpy(float), y


def accuracies(X, y, missing, name, seed):
    """Return the accuracy of each treatment before a map, on the same rows and cells."""
    mapping, _, most_rows, _ = MAPS[name]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:most_rows]
    X, y = X[rows].copy(), y[rows]
    X[missing(X, y, rng) & (rng.permutation(X.shape[1]) < X.shape[1] / 2)] = np.nan
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    models = [
        make_pipeline(treatment(), mapping(), KNeighborsClassifier(9))
        for treatment in TREATMENTS.values()
    ]
    return [cross_val_score(model, X, y, cv=folds).mean() for model in models]


def main():
    data = list(tables())
    print(
        f"| map | missing, in half of the columns | {' | '.join(TREATMENTS)} "
        f"|\n|---|---{'|---' * len(TREATMENTS)}|"
    )
    for name, (_, n_draws, _, least_columns) in MAPS.items():
        some = [(X, y) for X, y in data if X.shape[1] >= least_columns]
        for kind, missing in MISSING.items():
            found = [
                np.mean([accuracies(*t, missing, name, s) for s in range(n_draws)], axis=0)
                for t in some
            ]
            gains = 100 * (np.array(found) - np.array(found)[:, :1])
            cells = [
                f"{gain.mean():+.2f} ({gain.min():+.1f} to {gain.max():+.1f})"
                for gain in gains.T[1:]
            ]
            print(
                f"| {name} | {kind} | {100 * np.mean(found, axis=0)[0]:.1f} | "
                f"{' | '.join(cells)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
