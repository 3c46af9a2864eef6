"""What a fit of each compared method costs, and how soon more rows cease to improve its map.

    OMP_NUM_THREADS=1 python benchmarks/costs.py seconds
    OMP_NUM_THREADS=1 NEARKIN_DATA=folder python benchmarks/costs.py accuracy
    OMP_NUM_THREADS=1 NEARKIN_DATA=folder python benchmarks/costs.py tolerances --rows 1500

print Markdown. Seconds are of the processor, for one fit of one setting. Accuracy is that of 3-NN
(R² for numbers) on held-out rows, with all training rows as voters and the map learned from r of
them, every class's share.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from nearkin.evaluation.methods import all_methods

TOLERANCES = (1e-5, 1e-4, 1e-3)

ROWS = (500, 1000, 2000, 4000, 8000, 16_000)
FEATURES = (4, 30, 50, 100, 500)
MOST_TEST, MOST_VOTERS = 3000, 20_000
DATA = Path(os.environ.get("NEARKIN_DATA", "."))
TABLES = (
    "mnist",
    "kddcup99",
    "banking77",
    "satimage",
    "penbased",
    "nursery",
    "marketing",
    "compactiv",
    "puma32h",
)


def overlapping_clusters(n, p, n_classes, seed=0):
    """Return standardized rows of classes of two clusters each that overlap, with noise in all
    directions.
    """
    rng = np.random.default_rng(seed)
    y, r = rng.integers(0, n_classes, n), min(p, 20)
    centres = rng.normal(size=(2 * n_classes, r))
    Z = centres[2 * y + rng.integers(0, 2, n)] + 1.2 * rng.normal(size=(n, r))
    X = Z @ rng.normal(size=(r, p)) / np.sqrt(r) + 0.7 * rng.normal(size=(n, p))
    return StandardScaler().fit_transform(X), y


def compared(task, p, names):
    """Yield the name and an estimator, with the setting in the middle, of the methods that are
    compared.
    """
    for method in all_methods(task):
        if method.estimator is not None and (not names or method.name in names):
            settings = method.settings(p)
            yield method.name, clone(method.estimator).set_params(**settings[len(settings) // 2])


def fit_seconds(estimator, X, y):
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        estimator.fit(X, y)
    return time.process_time() - start


def print_seconds(options):
    print("| task, classes | p | method | " + " | ".join(f"{n:,}" for n in options.rows) + " |")
    print("|---|---|---|" + "---|" * len(options.rows))
    for task, n_classes in (("classification", 3), ("classification", 20), ("regression", 0)):
        for p in options.features:
            for name, estimator in compared(task, p, options.methods):
                if n_classes != 20 and task == "classification" and name in ("PCA", "GMML", "RCA"):
                    continue
                cells, seconds = [], 0.0
                for n in options.rows:
                    if seconds * 3 > options.limit:
                        break
                    X, codes = overlapping_clusters(n, p, n_classes or 5)
                    y = codes if n_classes else X[:, 0] + np.sin(2 * X[:, 1]) + codes
                    seconds = fit_seconds(clone(estimator), X, y)
                    cells.append(f"{seconds:.2f}")
                cells += [""] * (len(options.rows) - len(cells))
                print(
                    f"| {task[:6]} {n_classes or ''} | {p} | {name} | " + " | ".join(cells) + " |",
                    flush=True,
                )


def load(name):
    """Return (X, y, train rows, test rows, task); a published split, or one in five rows held out."""
    task, train = "regression" if name in ("compactiv", "puma32h") else "classification", None
    if name == "mnist":
        data = np.load(DATA / "mnist.npz")
        X, y, train = data["X"].astype(np.float32), data["y"], data["split"] == 0
        X = PCA(100, random_state=0).fit(X[train][:10_000]).transform(X)
    elif name == "kddcup99":
        data = np.load(DATA / "kddcup99.npz")
        some = np.random.default_rng(0).permutation(len(data["y"]))[:60_000]
        X, y, categorical = data["X"][some], data["y"][some], data["categorical"]
        numbers = np.log1p(np.abs(np.delete(X, categorical, axis=1)))
        X = np.hstack(
            [
                numbers,
                pd.get_dummies(pd.DataFrame(X[:, categorical]).astype(str)).to_numpy(np.float32),
            ]
        )
    elif name == "banking77":
        data = np.load(DATA / "banking77_minilm.npz")
        X, y, train = data["X"].astype(np.float32), data["y"], data["train"]
    else:
        table = pd.read_csv(DATA / "tables" / f"{name}.csv")
        y = table.pop("target").to_numpy()
        X = pd.get_dummies(table).to_numpy(np.float64)
    if task == "classification":
        codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
        kept = sizes[codes] >= 20
        X, y, train = X[kept], codes[kept], None if train is None else train[kept]
    order = np.random.default_rng(0).permutation(len(y))
    held_out = order[: len(y) // 5] if train is None else order[~train[order]]
    rows = order[len(y) // 5 :] if train is None else order[train[order]]
    return X, y, rows[:MOST_VOTERS], held_out[:MOST_TEST], task


def share_of_each(y, n_rows, task):
    """Return about n_rows row numbers, every class's share but at least five; the rows are in
    random order.
    """
    if task == "regression":
        return np.arange(n_rows)
    rows = [np.flatnonzero(y == c) for c in np.unique(y)]
    return np.concatenate(
        [of_class[: max(5, round(len(of_class) * n_rows / len(y)))] for of_class in rows]
    )


def print_accuracy(options):
    print("| table | method | " + " | ".join(f"{n:,}" for n in options.rows) + " |")
    print("|---|---|" + "---|" * len(options.rows))
    for name in options.tables:
        X, y, train, test, task = load(name)
        scaler = StandardScaler().fit(X[train])
        X_train, X_test, y_train, y_test = (
            scaler.transform(X[train]),
            scaler.transform(X[test]),
            y[train],
            y[test],
        )
        vote = KNeighborsClassifier(3) if task == "classification" else KNeighborsRegressor(3)
        raw = vote.fit(X_train, y_train).score(X_test, y_test)
        print(
            f"| {name} {len(train)} x {X.shape[1]} | raw | {raw:.4f} |"
            + " |" * (len(options.rows) - 1),
            flush=True,
        )
        for method, estimator in compared(task, X.shape[1], options.methods):
            cells, seconds = [], 0.0
            for r in options.rows:
                if seconds * 3 > options.limit or r > 1.5 * len(train):
                    break
                rows = share_of_each(y_train, min(r, len(train)), task)
                seconds = fit_seconds(estimator, X_train[rows], y_train[rows])
                score = vote.fit(estimator.transform(X_train), y_train).score(
                    estimator.transform(X_test), y_test
                )
                cells.append(f"{score:.4f} ({seconds:.1f})")
            cells += [""] * (len(options.rows) - len(cells))
            print(f"| {name} | {method} | " + " | ".join(cells) + " |", flush=True)


def print_tolerances(options):
    print("| table | rows | method | " + " | ".join(f"tol = {tol:g}" for tol in TOLERANCES) + " |")
    print("|---|---|---|" + "---|" * len(TOLERANCES))
    for name in options.tables:
        X, y, train, test, task = load(name)
        scaler = StandardScaler().fit(X[train])
        X_train, X_test, y_train, y_test = (
            scaler.transform(X[train]),
            scaler.transform(X[test]),
            y[train],
            y[test],
        )
        vote = KNeighborsClassifier(3) if task == "classification" else KNeighborsRegressor(3)
        names = options.methods or ("NCA", "NCA log", "LMNN", "MLKR")
        for r in options.rows:
            rows = share_of_each(y_train, min(r, len(train)), task)
            for method, estimator in compared(task, X.shape[1], names):
                cells = []
                for tol in TOLERANCES:
                    seconds = fit_seconds(
                        estimator.set_params(tol=tol), X_train[rows], y_train[rows]
                    )
                    score = vote.fit(estimator.transform(X_train), y_train).score(
                        estimator.transform(X_test), y_test
                    )
                    cells.append(f"{score:.4f} ({seconds:.1f}, {estimator.n_iter_})")
                print(
                    f"| {name} | {len(rows)} | {method} | " + " | ".join(cells) + " |", flush=True
                )


PRINTERS = {"seconds": print_seconds, "accuracy": print_accuracy, "tolerances": print_tolerances}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=PRINTERS)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--methods", nargs="+", default=())
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument(
        "--limit", type=float, default=30.0, help="processor seconds that a fit may take, about"
    )
    options = parser.parse_args()
    PRINTERS[options.what](options)


if __name__ == "__main__":
    main()
