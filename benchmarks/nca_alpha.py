"""NCA's penalty: alpha fixed, on tables that no default was chosen on.

    NEARKIN_DATA=folder python benchmarks/nca_alpha.py [--components 2] [--repeats 5] [--only NAME
    ...]

Prints Markdown: for every table (at most 500 of its rows, standardized) the held-out accuracy of
3-NN and of the soft vote, a mean over 3 folds, repeated.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import NCA, SoftNeighborsClassifier

TABLES = (
    *(
        "contraceptive",
        "dermatology",
        "haberman",
        "hayes-roth",
        "heart",
        "mammographic",
        "marketing",
        "penbased",
    ),
    *("satimage", "spectfheart", "tae"),
)  # all tables of classes without text columns
ALPHAS = (0.0, 0.15, 0.5)
MOST_ROWS = 500


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    rows = pd.read_csv(Path(os.environ.get("NEARKIN_DATA", ""), "tables", f"{name}.csv")).dropna()
    y = rows.pop("target").to_numpy()
    X = rows.to_numpy(np.float64)
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
    return X, y


def accuracies(name: str, m: int | None, n_repeats: int) -> np.ndarray:
    """Return mean accuracies in percent, (votes, alphas)."""
    X, y = table(name)
    scores = []
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=0)
    for train, test in folds.split(X, y):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        for alpha in ALPHAS:
            nca = NCA(m, alpha=alpha).fit(A, y[train])
            votes = KNeighborsClassifier(3), SoftNeighborsClassifier()
            scores.append(
                [
                    vote.fit(nca.transform(A), y[train]).score(nca.transform(B), y[test])
                    for vote in votes
                ]
            )
    return 100 * np.reshape(scores, (-1, len(ALPHAS), 2)).mean(axis=0).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--components", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=TABLES)
    options = parser.parse_args()
    heads = [f"{vote}, {alpha}" for vote in ("3-NN", "soft") for alpha in ALPHAS]
    print(f"| table | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    means = []
    for name in options.only:
        means.append(accuracies(name, options.components, options.repeats).ravel())
        print(f"| {name} | {' | '.join(f'{mean:.1f}' for mean in means[-1])} |", flush=True)
    print(f"| mean | {' | '.join(f'{mean:.2f}' for mean in np.mean(means, axis=0))} |")


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
