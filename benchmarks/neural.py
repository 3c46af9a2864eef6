"""NeuralNCA's defaults beside linear NCA and raw 3-NN: held-out 3-NN accuracy on ordinary tables.

    NEARKIN_DATA=folder python benchmarks/neural.py [defaults]

prints Markdown; needs torch. NEARKIN_DATA names a folder of NPZ files, with CSV files in its folder
`tables`; what is not there is left out. At most 500 rows of a table, text columns one-hot;
standardized on the training rows of 3 folds, repeated twice; all with their defaults. p: the
corrected resampled t-test, without a correction for several tables. `defaults` compares learning
rates, objectives and shares of held-out rows on seven other tables, on 70 % of their rows.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import NCA, NeuralNCA
from nearkin.datasets import BUNDLED, load
from nearkin.evaluation.statistics import corrected_resampled_t_test

FOLDER = Path(os.environ.get("NEARKIN_DATA", ""))
TABLES = (
    "heart",
    "tae",
    "mammographic",
    "spectfheart",
    "satimage",
    "penbased",
    "usps",
    "tic-tac-toe",
)
TABLES_FOR_DEFAULTS = (
    "wine",
    "sonar",
    "balance_scale",
    "ionosphere",
    "contraceptive",
    "car",
    "digits",
)
METHODS = {
    "raw": FunctionTransformer(),
    "NCA": NCA(),
    "NeuralNCA, f": NeuralNCA(random_state=0),
    "NeuralNCA, g": NeuralNCA(objective="log_likelihood", random_state=0),
}
GRID = {
    f"{objective}, {rate:g}, {share:g}": NeuralNCA(
        objective=objective, learning_rate=rate, validation_fraction=share, random_state=0
    )
    for objective in ("expected_accuracy", "log_likelihood")
    for rate in (0.003, 0.01, 0.03)
    for share in (0.1, 0.2)
}


def read(name, most):
    """Return at most so many rows of a table; None if it is not there."""
    if name in BUNDLED:
        X, y = load(name).X, load(name).y
    elif (FOLDER / f"{name}.npz").exists():
        data = np.load(FOLDER / f"{name}.npz")
        X, y = data["X"].astype(np.float64), data["y"]
    elif (FOLDER / "tables" / f"{name}.csv").exists():
        frame = pd.read_csv(FOLDER / "tables" / f"{name}.csv").dropna()
        X, y = (
            pd.get_dummies(frame.drop(columns="target")).to_numpy(np.float64),
            frame["target"].to_numpy().astype(str),
        )
    else:
        return None
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    return X[rows], y[rows]


def scores(method, X, y):
    """Return the accuracy of every fold."""
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    return cross_val_score(
        make_pipeline(StandardScaler(), method, KNeighborsClassifier(3)), X, y, cv=folds
    )


def study(tables, methods, part=1.0):
    means = []
    print(
        f"| table | rows x features | {' | '.join(methods)} | p: f, NCA |\n"
        + "|---" * (len(methods) + 3)
        + "|"
    )
    for name in tables:
        table = read(name, 500)
        if table is None:
            continue
        X, y = table
        if part < 1:
            X, _, y, _ = train_test_split(X, y, train_size=part, stratify=y, random_state=0)
        found = {method: scores(estimator, X, y) for method, estimator in methods.items()}
        means.append([100 * found[method].mean() for method in methods])
        p_value = "-"
        if "NCA" in found:
            difference = found["NeuralNCA, f"] - found["NCA"]
            p_value = f"{corrected_resampled_t_test(difference, len(y) * 2 / 3, len(y) / 3):.2f}"
        cells = [f"{mean:.1f}" for mean in means[-1]]
        print(f"| {name} | {len(X)} x {X.shape[1]} | {' | '.join(cells)} | {p_value} |", flush=True)
    print(f"| mean | | {' | '.join(f'{mean:.1f}' for mean in np.mean(means, axis=0))} | |")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if sys.argv[1:] == ["defaults"]:
            study(TABLES_FOR_DEFAULTS, GRID, part=0.7)
        else:
            study(TABLES, METHODS)
