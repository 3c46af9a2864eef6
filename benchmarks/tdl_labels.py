"""TDLClassifier with its defaults beside scikit-learn's LabelSpreading and 3-NN, with few labels.

    NEARKIN_DATA=folder python benchmarks/tdl_labels.py [--draws 20] [--rows 10000] [--sets wine usps] [--shares 0.05]

NEARKIN_DATA names a folder with usps.npz, and tables/NAME.csv for other sets, with the class in the column "target".

A draw labels a share of every class at random, at least one row. Accuracy on the rows without label, in %; all features
are standardized but the pixels of USPS. The p-value of a difference is that of the corrected resampled t-test, the
labelled rows of a draw as its training rows and the others as its test rows: with few labels it is strict.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from nearkin import TDLClassifier
from nearkin.datasets import BUNDLED, load
from nearkin.evaluation import corrected_resampled_t_test


def rows_of(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows, and the codes of their classes."""
    if name in BUNDLED:
        data = load(name)
        X, y = StandardScaler().fit_transform(data.X), data.y
    elif name == "usps":
        archive = np.load(os.path.join(os.environ["NEARKIN_DATA"], "usps.npz"))
        X, y = archive["X"].astype(np.float64), archive["y"]
    else:
        frame = pd.read_csv(os.path.join(os.environ["NEARKIN_DATA"], "tables", f"{name}.csv")).dropna()
        y = frame.pop("target").to_numpy()
        X = StandardScaler().fit_transform(pd.get_dummies(frame).to_numpy(np.float64))
    rows = np.random.default_rng(0).permutation(len(X))[:n_rows]
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def some_labels(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return y with all but a share of every class, at least one row, replaced by -1."""
    few = np.full(len(y), -1)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        few[rng.permutation(rows)[: max(1, round(share * len(rows)))]] = label
    return few


def accuracies(X: np.ndarray, y: np.ndarray, few: np.ndarray) -> tuple[list[float], float, float]:
    """Return the accuracies of the three methods, TDL's reg_ and label_shift_."""
    known = few >= 0
    tdl = TDLClassifier().fit(X, few)
    votes = KNeighborsClassifier(min(3, known.sum())).fit(X[known], few[known])
    labels = (
        tdl.transduction_[~known],
        LabelSpreading(kernel="knn", max_iter=1000).fit(X, few).transduction_[~known],
        votes.predict(X[~known]),
    )
    return [100 * np.mean(given == y[~known]) for given in labels], tdl.tdl_.reg_, tdl.tdl_.label_shift_


def difference(ours: np.ndarray, theirs: np.ndarray, n_labels: int, n: int) -> str:
    """Return the mean difference and its p-value."""
    p = corrected_resampled_t_test(ours - theirs, n_labels, n - n_labels, 100 / (n - n_labels))
    return f"{np.mean(ours - theirs):+.1f} (p {p:.2g})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--sets", nargs="+", default=[*BUNDLED, "usps"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.02, 0.05, 0.1])
    options = parser.parse_args(arguments)
    print(
        "| set | labels | TDL | LabelSpreading | 3-NN | TDL - LabelSpreading | TDL - 3-NN | reg below 1, inf | shift |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.sets:
        X, y = rows_of(name, options.rows)
        for share in options.shares:
            draws = [
                accuracies(X, y, some_labels(y, share, np.random.default_rng(draw))) for draw in range(options.draws)
            ]
            scores = np.array([draw[0] for draw in draws]).T
            regs = np.array([draw[1] for draw in draws])
            n_labels = int(np.sum(some_labels(y, share, np.random.default_rng(0)) >= 0))
            means = " | ".join(f"{np.mean(score):.1f} ± {np.std(score, ddof=1):.1f}" for score in scores)
            gaps = " | ".join(difference(scores[0], other, n_labels, len(y)) for other in scores[1:])
            shift = np.mean([draw[2] for draw in draws])
            chosen = f"{np.sum(regs < 1)}, {np.sum(regs == np.inf)}"
            print(f"| {name} | {share:.0%}, {n_labels} | {means} | {gaps} | {chosen} | {shift:.3f} |", flush=True)


if __name__ == "__main__":
    main()
