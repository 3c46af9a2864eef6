"""How often is a difference called one where there is none, and where there is? Level and power of tests for `compare`.

Two learners, 5-NN on three features each, are compared on tables drawn anew. Four tests: `folds`, the corrected
resampled t-test; `rows`, the variance of the held-out rows with Nadeau and Bengio's factor; `plain`, the same without
(Bayle et al., NeurIPS 2020); `larger`, the larger variance of folds and rows, which is `paired_test`. Where there is
a difference by construction, the test is for the mean difference over all tables: a level, too. Prints the percentage
of tables at .05 and at .05/16, the first step of Holm's test with sixteen methods.

    python benchmarks/verdicts.py [--draws 300] [NAME ...]
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.spatial import cKDTree
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit

from nearkin.evaluation.statistics import corrected_resampled_t_test, paired_test

SIZES = ((100, 5, 3), (300, 5, 3), (625, 5, 3), (2000, 5, 1), (2000, 2, 1), (20000, 1, 1))
TESTS = ("folds", "rows", "plain", "larger")


def hits(X, y, train, test):
    """Return for every test row whether 5-NN is right."""
    neighbors = cKDTree(X[train]).query(X[test], 5)[1]
    return 1.0 * ((y[train][neighbors].mean(axis=1) > 0.5) == y[test])


def halves(shift=(0.7, 0.7)):
    """Two halves of the features, whose classes are `shift` apart in each feature."""

    def learners(rng, X, y, train, test):
        return hits(X[:, :3], y, train, test), hits(X[:, 3:], y, train, test)

    return np.repeat(shift, 3), learners


def direction():
    """Least squares finds one direction of thirty features, against the three that are informative."""

    def learners(rng, X, y, train, test):
        columns = np.column_stack([X[train], np.ones(len(train))])
        w = np.linalg.lstsq(columns, y[train] - 0.5)[0][:-1]
        return hits((X @ w)[:, None], y, train, test), hits(X[:, :3], y, train, test)

    return np.repeat([0.7, 0.0], [3, 27]), learners


def choice():
    """The better half on a fifth of the training rows, against a third set of features."""

    def learners(rng, X, y, train, test):
        inner, held = np.split(rng.permutation(train), [len(train) * 4 // 5])
        c = max((0, 3), key=lambda c: hits(X[:, c : c + 3], y, inner, held).mean())
        return hits(X[:, c : c + 3], y, train, test), hits(X[:, 6:], y, train, test)

    return np.repeat([0.8, 0.55, 0.72], 3), learners


def luck(shift):
    """One of two unequal halves, drawn for every fold, against one drawn for every row: equal in expectation."""

    def learners(rng, X, y, train, test):
        both = np.array([hits(X[:, :3], y, train, test), hits(X[:, 3:], y, train, test)])
        return both[rng.integers(2)], both[rng.integers(2, size=len(test)), np.arange(len(test))]

    return np.repeat(shift, 3), learners


SCENARIOS = {
    "two halves": halves(),
    "random labels": halves((0, 0)),
    "twins": halves(),
    "learned direction": direction(),
    "noisy choice": choice(),
    "luck": luck((0.85, 0.7)),
    "much luck": luck((0.95, 0.5)),
    "better half": halves((0.85, 0.7)),
}


def folds_of(rng, y, n_splits, n_repeats):
    """Return the folds of repeated cross-validation, or one split that holds out a fifth."""
    seed = int(rng.integers(1 << 30))
    if n_splits == 1:
        return list(StratifiedShuffleSplit(1, test_size=0.2, random_state=seed).split(y, y))
    splitter = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    return list(splitter.split(y, y))


def draw(rng, name, n, n_splits, n_repeats):
    """Return the contributions of method and baseline, the rows held out, the size of a training set, and the units."""
    shift, learners = SCENARIOS[name]
    n_units = n // 2 if name == "twins" else n
    y = rng.integers(0, 2, n_units)
    X = rng.normal(size=(n_units, len(shift))) + np.outer(y, shift)
    folds, units = folds_of(rng, y, n_splits, n_repeats), None
    if name == "twins":  # nearly the same row twice, never on both sides of a split
        X, y, units = np.vstack([X, X + 0.01 * rng.normal(size=X.shape)]), np.tile(y, 2), np.tile(np.arange(n_units), 2)
        folds = [(np.append(train, train + n_units), np.append(test, test + n_units)) for train, test in folds]
    method, baseline = zip(*(learners(rng, X, y, *fold) for fold in folds), strict=True)
    return method, baseline, [test for _, test in folds], float(np.mean([len(train) for train, _ in folds])), units


def mean_difference(method, baseline):
    return np.mean([np.mean(a - b) for a, b in zip(method, baseline, strict=True)])


def p_values(method, baseline, rows, n_train, units, shift):
    """Return the p-value of each test that the mean difference is `shift`."""
    method = [scores - shift for scores in method]
    differences = np.array([np.mean(a - b) for a, b in zip(method, baseline, strict=True)])
    pooled = [[np.concatenate(arrays)] for arrays in (method, baseline, rows)]  # one fold: no variance between folds
    return {
        "folds": corrected_resampled_t_test(differences, n_train, len(rows[0])) if len(rows) > 1 else 1.0,
        "rows": paired_test(*pooled, n_train, units).p_value,
        "plain": paired_test(*pooled, np.inf, units).p_value,
        "larger": paired_test(method, baseline, rows, n_train, units).p_value,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--draws", type=int, default=300)
    args = parser.parse_args()
    print(f"| scenario | rows, folds x repeats | {' | '.join(TESTS)} |\n|{'---|' * (2 + len(TESTS))}")
    for name in args.names or SCENARIOS:
        for n, n_splits, n_repeats in SIZES:
            rng = np.random.default_rng(0)
            drawn = [draw(rng, name, n, n_splits, n_repeats) for _ in range(args.draws)]
            shift = 0 if name == "better half" else np.mean([mean_difference(*sample[:2]) for sample in drawn])
            found = [p_values(*sample, shift) for sample in drawn]
            rates = [[100 * np.mean([p[test] < level for p in found]) for level in (0.05, 0.05 / 16)] for test in TESTS]
            cells = [f"{at_5:.1f}, {at_first_step:.1f}" for at_5, at_first_step in rates]
            cells[0] = cells[0] if n_splits > 1 else "-"
            print(f"| {name} | {n}, {n_splits} x {n_repeats} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
