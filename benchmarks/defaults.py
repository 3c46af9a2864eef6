"""What a method gives that nobody tunes: 3-NN after standardizing and a spectral method with its
defaults.

    NEARKIN_DATA=folder python benchmarks/defaults.py
    NEARKIN_DATA=folder python benchmarks/defaults.py lpp

The first prints Markdown: on every set, the accuracy of 3-NN on the standardized features, and the
difference of the methods to it in percentage points, mean of five random splits (70 % of the rows
train, at most 500). NEARKIN_DATA names a folder of NPZ files with a folder `tables` of CSV files;
what is not there is left out. PCA's default would only rotate the features, so it keeps 95 % of the
variance; LDA is scikit-learn's as a map.

The second shows how the defaults of LPP were chosen: on three folds of 70 % of the rows (at most
600) of the first group of sets, by the share of the variance that the principal components keep and
the largest eigenvalue of a direction (2: all directions). The second group is kept aside.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import DMLMJ, DNE, GMML, LDE, LFDA, LPP, MFA, NMMP, RCA, DiscriminativeProjections
from nearkin.datasets import BUNDLED, load

METHODS = {
    "PCA": PCA(0.95, svd_solver="full"),
    "LDA": LinearDiscriminantAnalysis(),
    "DNE": DNE(),
    "DNE, auto": DNE(n_neighbors="auto"),
    "NMMP": NMMP(),
    "LDE": LDE(),
    "MFA": MFA(),
    "LFDA": LFDA(),
    "RCA": RCA(),
    "DMLMJ": DMLMJ(),
    "GMML": GMML(),
    "DP": DiscriminativeProjections(),
    "LPP": LPP(),
}
ARCHIVES = ("sonar", "ionosphere", "usps", "mnist", "coil20_16", "umist_28x23")
TABLES = (
    "australian", "contraceptive", "dermatology", "german", "heart", "lymphography", "penbased", "saheart", "satimage",
    "spectfheart",
)  # fmt: skip
GROUPS = {
    "used to choose LPP's defaults": (*BUNDLED, *ARCHIVES, *TABLES),
    "kept aside": (
        "breast_cancer_wisconsin_original", "kddcup99", "orl_56x46", "automobile", "breast", "car", "chess", "crx",
        "flare", "haberman", "hayes-roth", "housevotes", "mammographic", "marketing", "nursery", "splice", "tae", "zoo",
    ),
}  # fmt: skip
FEWEST, MOST = 5, 500
VARIANCES = (0.85, 0.9, 0.95, 0.98, 1.0)
LARGEST = (0.4, 0.5, 0.6, 0.75, 2.0)


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a set without the rows of classes that are too small to be split; of many rows,
    20,000.
    """
    folder = Path(os.environ.get("NEARKIN_DATA", ""))
    if name in BUNDLED:
        X, y = load(name).X, load(name).y
    elif (folder / f"{name}.npz").exists():
        data = np.load(folder / f"{name}.npz")
        step = -(-len(data["y"]) // 20_000)
        X, y = data["X"][::step].astype(np.float64), data["y"][::step].astype(str)
    else:
        frame = pd.read_csv(folder / "tables" / f"{name}.csv").dropna()
        y = frame.pop("target").astype(str).to_numpy()
        X = pd.get_dummies(frame).to_numpy(np.float64)
    classes, sizes = np.unique(y, return_counts=True)
    known = np.isin(y, classes[sizes >= FEWEST])
    return X[known], y[known]


def accuracies(
    X: np.ndarray, y: np.ndarray, methods: dict[str, Any], n_splits: int
) -> tuple[int, dict[str, float]]:
    """Return the number of training rows and the mean accuracy on held-out rows, in percent, by
    method.
    """
    n_train = min(int(0.7 * len(y)), MOST)
    splits = StratifiedShuffleSplit(
        n_splits, train_size=n_train, test_size=min(len(y) - n_train, 1000), random_state=0
    )
    found: dict[str, list[float]] = {name: [] for name in methods}
    for train, test in splits.split(X, y):
        for name, method in methods.items():
            maps = [StandardScaler(), *([] if method is None else [clone(method)])]
            model = make_pipeline(*maps, KNeighborsClassifier(3))
            found[name].append(100 * model.fit(X[train], y[train]).score(X[test], y[test]))
    return n_train, {name: float(np.mean(scores)) for name, scores in found.items()}


def choose_lpp() -> None:
    """Print the gain over the raw features on inner folds, by variance and largest eigenvalue: mean
    and worst set.
    """
    found: dict[tuple[float, float], list[float]] = {}
    for name in GROUPS["used to choose LPP's defaults"]:
        try:
            X, y = rows_of(name)
        except FileNotFoundError:
            continue
        X, _, y, _ = train_test_split(
            X, y, train_size=min(int(0.7 * len(y)), 600), stratify=y, random_state=0
        )
        scores: dict[tuple[float, float], list[float]] = {}
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
            scaler = StandardScaler().fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            raw = vote(A, y[train], B, y[test])
            for variance in VARIANCES:
                rank = LPP(variance=variance).fit(A).rank_
                lpp = LPP(rank, variance=variance).fit(A)
                for largest in LARGEST:
                    V = lpp.components_[: max(1, np.sum(lpp.eigenvalues_ < largest))].T
                    scores.setdefault((variance, largest), []).append(
                        vote(A @ V, y[train], B @ V, y[test]) - raw
                    )
        for setting, values in scores.items():
            found.setdefault(setting, []).append(float(np.mean(values)))
    row("variance", *(f"eigenvalues < {largest:g}" for largest in LARGEST))
    row(*["---"] * (1 + len(LARGEST)))
    for variance in VARIANCES:
        columns = [found[variance, largest] for largest in LARGEST]
        row(
            f"{variance:g}",
            *(f"{np.mean(values):+.1f} ({np.min(values):+.1f})" for values in columns),
        )


def vote(A: np.ndarray, labels: np.ndarray, B: np.ndarray, expected: np.ndarray) -> float:
    """Return the accuracy of 3-NN among the rows of A on those of B, in percent."""
    return 100 * KNeighborsClassifier(3).fit(A, labels).score(B, expected)


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def gains(methods: dict[str, Any], names: Iterable[str], n_splits: int) -> None:
    row("set (training rows x features, classes)", "raw", *methods)
    row(*["---"] * (2 + len(methods)))
    found = []
    for name in names:
        try:
            X, y = rows_of(name)
        except FileNotFoundError:
            continue
        n_train, scores = accuracies(X, y, {"raw": None} | methods, n_splits)
        raw = scores.pop("raw")
        found.append([score - raw for score in scores.values()])
        row(
            f"{name} ({n_train} x {X.shape[1]}, {len(np.unique(y))})",
            f"{raw:.1f}",
            *(f"{x:+.1f}" for x in found[-1]),
        )
    for what, summary in (("mean", np.mean), ("worst", np.min)):
        row(what, "", *(f"{x:+.1f}" for x in summary(found, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", nargs="?", choices=("methods", "lpp"), default="methods")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--only", nargs="+", metavar="METHOD", default=list(METHODS), help="only these"
    )
    options = parser.parse_args()
    if options.study == "lpp":
        return choose_lpp()
    for group, names in GROUPS.items():
        print(f"\nSets {group}:\n")
        gains({name: METHODS[name] for name in options.only}, names, options.splits)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        main()
