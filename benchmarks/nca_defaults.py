"""How the defaults of NCA were chosen: cross-validation inside training rows, on sets of
scikit-learn and NEARKIN_DATA.

    NEARKIN_DATA=folder python benchmarks/nca_defaults.py
    NEARKIN_DATA=folder python benchmarks/nca_defaults.py inits

print Markdown. The grid sees 70 % of the rows of every set (of at most 800): 3-NN after
standardizing, 3 folds repeated 3 times. Then the defaults are evaluated beside raw 3-NN and
scikit-learn's NCA with its defaults, by 3 folds of all rows, repeated. "inits" compares where the
descent to two dimensions begins.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import NCA

STORED = (
    "sonar",
    "ionosphere",
    "balance_scale",
    "breast_cancer_wisconsin_original",
    "boston_housing",
    "usps",
    "ohsumed_letor3",
)
GRID = [
    {"objective": objective, "alpha": alpha}
    for objective in ("expected_accuracy", "log_likelihood")
    for alpha in (0.0, 0.015, 0.05, 0.15, 0.5, 1.5)
]  # fmt: skip


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    for name in STORED:
        path = os.path.join(os.environ.get("NEARKIN_DATA", ""), f"{name}.npz")
        if not os.path.exists(path):
            print(f"{name}: skipped, NEARKIN_DATA does not hold it", file=sys.stderr)
            continue
        data = np.load(path)
        X, y = data["X"].astype(np.float64), data["y"]
        if name == "usps":  # 8 x 8: means of 2 x 2 pixels
            X = X.reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)).reshape(-1, 64)
        if name == "boston_housing":  # thirds: ours
            y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
        yield name, X, y


def pipeline(*map_: Any) -> Any:
    return make_pipeline(StandardScaler(), *map_, KNeighborsClassifier(3))


def beside_scikit_learn(n_repeats: int = 2) -> None:
    """Evaluate the defaults by 3 folds of all rows (at most 800), repeated: nothing is chosen here."""
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=1)
    print(
        "\n| set | raw 3-NN | NCA | NCA, log-likelihood | scikit-learn's NCA |\n|---|---|---|---|---|"
    )
    rows = []
    for name, X, y in sets():
        X, y = at_most_800(X, y)
        methods = (
            (),
            (NCA(),),
            (NCA(objective="log_likelihood"),),
            (NeighborhoodComponentsAnalysis(random_state=0),),
        )
        rows.append(
            [100 * cross_val_score(pipeline(*map_), X, y, cv=folds).mean() for map_ in methods]
        )
        print(f"| {name} | {' | '.join(f'{mean:.1f}' for mean in rows[-1])} |", flush=True)
    print(f"| mean | {' | '.join(f'{mean:.1f}' for mean in np.mean(rows, axis=0))} |")


def at_most_800(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(y) <= 800:
        return X, y
    chosen, _ = train_test_split(np.arange(len(y)), train_size=800, stratify=y, random_state=0)
    return X[chosen], y[chosen]


def inits(n_repeats: int = 2) -> None:
    """Print the loss that each init leads to, and 3-NN on held-out rows, in two dimensions; means
    over folds.
    """
    print(
        "| set | loss: auto | pca | lda | 3-NN: auto | pca | lda |\n|---|---|---|---|---|---|---|"
    )
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=0)
    for name, X, y in sets():
        X, y = at_most_800(X, y)
        found = []
        for train, test in folds.split(X, y):
            row = []
            # two classes have one discriminant direction
            for init in ("auto", "pca", "lda")[: len(set(y))]:
                model = pipeline(NCA(2, init=init)).fit(X[train], y[train])
                row.append((model[1].loss_curve_[-1], 100 * model.score(X[test], y[test])))
            found.append(np.transpose(row))
        loss, accuracy = np.mean(found, axis=0)
        cells = [*(f"{value:.4f}" for value in loss), *["-"] * (3 - len(loss))]
        cells += [*(f"{value:.1f}" for value in accuracy), *["-"] * (3 - len(loss))]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def study() -> None:
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)
    gains: list[list[float]] = [[] for _ in GRID]
    for name, X, y in sets():
        X, y = at_most_800(X, y)
        X, _, y, _ = train_test_split(X, y, train_size=0.7, stratify=y, random_state=0)
        raw = cross_val_score(pipeline(), X, y, cv=folds).mean()
        print(f"{name} {X.shape}: raw {raw:.3f}", file=sys.stderr, flush=True)
        for setting, gain in zip(GRID, gains, strict=True):
            gain.append(cross_val_score(pipeline(NCA(**setting)), X, y, cv=folds).mean() - raw)
    print("| objective | alpha | mean gain | worst set |\n|---|---|---|---|")
    for setting, gain in zip(GRID, gains, strict=True):
        figures = f"{100 * np.mean(gain):+.2f} | {100 * np.min(gain):+.1f}"
        print(f"| {setting['objective']} | {setting['alpha']} | {figures} |")


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if sys.argv[1:] == ["inits"]:
            inits()
        else:
            study()
            beside_scikit_learn()
