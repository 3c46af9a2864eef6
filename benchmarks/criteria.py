"""NMMP's two criteria on the same graphs, by the number of components: a 3-NN vote on digits, 500
training rows.

    python benchmarks/criteria.py

prints Markdown. The rows are scikit-learn's digits, unscaled (one unit for all pixels), five
stratified splits.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from nearkin import NMMP

COMPONENTS = (2, 5, 9, 20, 30, 50)


def accuracy(X, y, train, test):
    return 100 * KNeighborsClassifier(3).fit(X[train], y[train]).score(X[test], y[test])


def main():
    X, y = load_digits(return_X_y=True)
    splits = list(StratifiedShuffleSplit(5, train_size=500, random_state=0).split(X, y))
    raw = np.mean([accuracy(X, y, *split) for split in splits])
    print(f"| components (raw features: {raw:.1f}) | {' | '.join(map(str, COMPONENTS))} |")
    print("|---" * (len(COMPONENTS) + 1) + "|")
    for criterion in ("trace_ratio", "ratio_trace"):
        means = []
        for m in COMPONENTS:
            method = NMMP(m, criterion=criterion, shrinkage=None)
            scores = [
                accuracy(method.fit(X[train], y[train]).transform(X), y, train, test)
                for train, test in splits
            ]
            means.append(f"{np.mean(scores):.1f}")
        print(f"| `{criterion}` | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
