"""NMMP's criterion. Frozen: chosen on 2026-11-21 for 0.1.0, last run on 2026-11-26 with 0.3.0.

It led to: "With few components the trace ratio is much less accurate than the ratio trace of the same
graphs; with many it catches up." Both can be chosen (`criterion`); the paper's is the default.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.report import head, row
from nearkin import NMMP

COMPONENTS = (2, 5, 9, 20, 30, 50)
X, y = load_digits(return_X_y=True)
SPLITS = list(StratifiedShuffleSplit(5, train_size=500, random_state=0).split(X, y))


def accuracy(X, train, test):
    return 100 * KNeighborsClassifier(3).fit(X[train], y[train]).score(X[test], y[test])


if __name__ == "__main__":
    raw = np.mean([accuracy(X, *split) for split in SPLITS])
    head(f"components (raw features: {raw:.1f})", *COMPONENTS)
    for criterion in ("trace_ratio", "ratio_trace"):
        means = []
        for m in COMPONENTS:
            nmmp = NMMP(m, criterion=criterion, shrinkage=None)
            fits = ((nmmp.fit(X[a], y[a]).transform(X), a, b) for a, b in SPLITS)
            means.append(f"{np.mean([accuracy(*fit) for fit in fits]):.1f}")
        row(f"`{criterion}`", *means)
