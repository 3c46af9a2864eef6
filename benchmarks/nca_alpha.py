"""NCA's penalty: alpha fixed and alpha="cv", on tables that no default was chosen on.

    NEARKIN_DATA=folder python benchmarks/nca_alpha.py [--components 2] [--repeats 5] [--only NAME
    ...]

Prints Markdown: for every table (at most 500 of its rows, standardized) the held-out accuracy of
3-NN and of the soft vote, a mean over 3 folds, repeated; the corrected resampled t-test of "cv"
against 0.15, corrected for the number of tables by Holm; how often each alpha was chosen, and the
processor time of "cv" in fits with 0.15. The candidates, the tolerance of the path and the rule of
one standard error were chosen on the sets of nca_defaults.py.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import NCA, SoftNeighborsClassifier
from nearkin.evaluation.statistics import corrected_resampled_t_test, holm

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
ALPHAS: tuple[Any, ...] = (0.0, 0.15, 0.5, "cv")
MOST_ROWS = 500


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    rows = pd.read_csv(Path(os.environ.get("NEARKIN_DATA", ""), "tables", f"{name}.csv")).dropna()
    y = rows.pop("target").to_numpy()
    X = rows.to_numpy(np.float64)
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
    return X, y


def compared(
    name: str, m: int | None, n_repeats: int
) -> tuple[np.ndarray, np.ndarray, Counter[float], float]:
    """Return accuracies (folds, alphas, votes), seconds (folds, alphas), the alphas chosen, and the
    p-value.
    """
    X, y = table(name)
    scores, seconds, chosen = [], [], Counter[float]()
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=0)
    for train, test in folds.split(X, y):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        for alpha in ALPHAS:
            start = time.process_time()
            nca = NCA(m, alpha=alpha).fit(A, y[train])
            seconds.append(time.process_time() - start)
            votes = KNeighborsClassifier(3), SoftNeighborsClassifier()
            scores.append(
                [
                    vote.fit(nca.transform(A), y[train]).score(nca.transform(B), y[test])
                    for vote in votes
                ]
            )
        chosen[nca.alpha_] += 1
    of_folds = 100 * np.reshape(scores, (-1, len(ALPHAS), 2))
    difference = (of_folds[:, 3] - of_folds[:, 1]).mean(axis=1) / 100
    p_value = corrected_resampled_t_test(difference, len(y) * 2 / 3, len(y) / 3)
    return of_folds, np.reshape(seconds, (-1, len(ALPHAS))), chosen, p_value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--components", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=TABLES)
    options = parser.parse_args()
    heads = [f"{vote}, {alpha}" for vote in ("3-NN", "soft") for alpha in ALPHAS]
    print(f"| table | {' | '.join(heads)} | chosen | time | p |\n|{'---|' * (len(heads) + 4)}")
    lines, means, p_values = [], [], []
    for name in options.only:
        scores, seconds, chosen, p_value = compared(name, options.components, options.repeats)
        means.append(scores.mean(axis=0).T.ravel())
        p_values.append(p_value)
        picks = ", ".join(f"{alpha}: {count}" for alpha, count in sorted(chosen.items()))
        ratio = seconds[:, 3].sum() / seconds[:, 1].sum()
        lines.append(
            f"| {name} | {' | '.join(f'{mean:.1f}' for mean in means[-1])} | {picks} | "
            f"{ratio:.1f} |"
        )
        print(f"{lines[-1]} {p_value:.2f} |", flush=True)
    print(f"| mean | {' | '.join(f'{mean:.2f}' for mean in np.mean(means, axis=0))} | | | |")
    print(f"\nThe smallest p-value, corrected by Holm: {min(holm(p_values)):.2f}.")


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
