"""How often is a difference called one where there is none, and where there is? Level and power of
tests for `compare`.

Two learners, 5-NN on three features each, are compared on tables drawn anew, on the folds that
`compare` takes for so many rows. Three tests: `folds`, the corrected resampled t-test; `rows`, the
variance of the held-out rows with Nadeau and Bengio's factor, `paired_test_by_rows`; `paired_test`,
with which `compare` decides. Where there is a difference by construction, the test is for the mean
difference over all tables: a level, too, but for the scenarios of POWER. Prints Markdown: the
percentage of tables at .05, and by `paired_test` its 95 % interval.

    python -m benchmarks.studies.verdicts [--draws 300] [--rows 200 500 --folds 3] [--names NAME ...]
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binomtest

from benchmarks.measure import command
from benchmarks.report import head, row
from nearkin.comparison import CLASSIFICATION, SCORES
from nearkin.comparison.protocol import Protocol
from nearkin.statistics import corrected_resampled_t_test, paired_test, paired_test_by_rows

ROWS = (200, 500, 2000, 5000, 20_000)
TESTS = ("folds", "rows", "`paired_test`")


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
    """One of two unequal halves, drawn for every fold, against one drawn for every row: equal in
    expectation.
    """

    def learners(rng, X, y, train, test):
        both = np.array([hits(X[:, :3], y, train, test), hits(X[:, 3:], y, train, test)])
        return both[rng.integers(2)], both[rng.integers(2, size=len(test)), np.arange(len(test))]

    return np.repeat(shift, 3), learners


def lotteries(first=0):
    """Each draws three of eight unequal features by lot in every fold; the method leaves out the
    `first` worst.
    """

    def learners(rng, X, y, train, test):
        mine = rng.choice(np.arange(first, 8), 3, replace=False)
        theirs = rng.choice(8, 3, replace=False)
        return hits(X[:, mine], y, train, test), hits(X[:, theirs], y, train, test)

    return np.linspace(0, 1.2, 8), learners


SCENARIOS = {
    "lotteries": lotteries(),
    "better lottery": lotteries(3),
    "two halves": halves(),
    "random labels": halves((0, 0)),
    "twins": halves(),
    "learned direction": direction(),
    "noisy choice": choice(),
    "luck": luck((0.85, 0.7)),
    "much luck": luck((0.95, 0.5)),
    "better half": halves((0.85, 0.7)),
    "slightly better half": halves((0.76, 0.7)),
}
POWER = ("better lottery", "better half", "slightly better half")


def draw(rng, name, n, n_splits):
    """Return the contributions of method and baseline, the rows held out, the size of a training
    set, and the units.
    """
    shift, learners = SCENARIOS[name]
    n_units = n // 2 if name == "twins" else n
    y = rng.integers(0, 2, n_units)
    X = rng.normal(size=(n_units, len(shift))) + np.outer(y, shift)
    units = np.arange(n_units)
    if name == "twins":  # nearly the same row twice, never on both sides of a split
        X = np.vstack([X, X + 0.01 * rng.normal(size=X.shape)])
        y, units = np.tile(y, 2), np.tile(units, 2)
    protocol = Protocol(
        X=X,
        y=y,
        classes=np.arange(2),
        units=units,
        task=CLASSIFICATION,
        score=SCORES["classification"]["accuracy"],
        keep_twins=name != "twins",  # of a single split they would be looked for
        random_state=int(rng.integers(1 << 30)),
    )
    folds, _ = protocol.folds(n_splits, None if n_splits is None else 1)
    method, baseline = zip(*(learners(rng, X, y, *fold) for fold in folds), strict=True)
    n_train = float(np.mean([len(train) for train, _ in folds]))
    return method, baseline, [test for _, test in folds], n_train, units


def mean_difference(method, baseline):
    return np.mean([np.mean(a - b) for a, b in zip(method, baseline, strict=True)])


def p_values(method, baseline, rows, n_train, units, shift):
    """Return the p-value of each test that the mean difference is `shift`."""
    method = [scores - shift for scores in method]
    differences = np.array([np.mean(a - b) for a, b in zip(method, baseline, strict=True)])
    return {
        "folds": corrected_resampled_t_test(differences, n_train, len(rows[0]))
        if len(rows) > 1
        else np.nan,
        "rows": paired_test_by_rows(method, baseline, rows, n_train, units).p_value,
        "`paired_test`": paired_test(method, baseline, rows, n_train, units).p_value,
    }


def rates(found, test):
    """Return the percentage of tables in which a test shows a difference at .05."""
    values = np.array([p[test] for p in found])
    if np.isnan(values).any():
        return "-"
    shown = f"{100 * np.mean(values < 0.05):.1f}"
    if test != "`paired_test`":
        return shown
    low, high = binomtest(int(np.sum(values < 0.05)), len(values)).proportion_ci()
    return f"{shown} ({100 * low:.1f} to {100 * high:.1f})"


def verdicts(names=tuple(SCENARIOS), draws=300, rows=ROWS, folds=0):
    """Print the rates; with `folds`, of so many drawn once in place of those that compare takes."""
    for name in names:
        head(f"{name}: rows, folds", *TESTS)
        differences = []
        for n in rows:
            rng = np.random.default_rng(0)
            drawn = [draw(rng, name, n, folds or None) for _ in range(draws)]
            differences.append(np.mean([mean_difference(*sample[:2]) for sample in drawn]))
            shift = 0 if name in POWER else differences[-1]
            found = [p_values(*sample, shift) for sample in drawn]
            row(f"{n}, {len(drawn[0][2])}", *(rates(found, test) for test in TESTS))
        shown = ", ".join(f"{100 * difference:+.1f}" for difference in differences)
        print(f"\nMean differences in points: {shown}", flush=True)


if __name__ == "__main__":
    command(verdicts)
