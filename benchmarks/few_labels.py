"""How to label the rows of a table when few have a label: a study of semi-supervised methods, and
its document.

    NEARKIN_DATA=folder python benchmarks/few_labels.py --document docs/measured/few_labels.md

Results are kept in a JSON file (--store), so that a run that was cut off goes on where it stopped;
--again measures some methods once more. The document is written from that file, nothing by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from comparison import SETS, Set, rows_of, some
from rankings import critical_difference, ranks, table
from scipy.stats import friedmanchisquare, wilcoxon
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from threadpoolctl import threadpool_limits

from nearkin import (
    SDA,
    DiscriminativeProjectionsClassifier,
    LaplacianEigenmaps,
    LapRLSClassifier,
    SoftNeighborsClassifier,
    TDLClassifier,
)
from nearkin.evaluation import corrected_resampled_t_test, holm

MOST_ROWS = 500
SHARES = (0.02, 0.05, 0.10)
USED = {"mnist", "umist_28x23"}  # on which defaults of the linear and kernel methods were chosen
TOO_MANY_CLASSES = {"kddcup99", "orl_56x46"}  # for a label of each among two in a hundred rows
RAW = "3-NN"

Labeller = Callable[[np.ndarray, np.ndarray], np.ndarray]


def knn(Z: np.ndarray, few: np.ndarray, k: int) -> np.ndarray:
    labelled = few >= 0
    return KNeighborsClassifier(k).fit(Z[labelled], few[labelled]).predict(Z)


def soft_votes(Z: np.ndarray, few: np.ndarray) -> np.ndarray:
    labelled = few >= 0
    return SoftNeighborsClassifier(bandwidth="auto").fit(Z[labelled], few[labelled]).predict(Z)


def transduced(model: Any) -> Labeller:
    return lambda X, few: model.fit(X, few).transduction_


def methods(X: np.ndarray) -> dict[str, Labeller]:
    """Return functions of the rows and their labels, -1 for none, that label all rows; all with
    their defaults.
    """
    # of no labels: once is enough
    maps = LaplacianEigenmaps(min(20, len(X) - 1), n_neighbors=20).fit(X).embedding_
    logistic = LogisticRegression(max_iter=1000)
    return {
        RAW: lambda X, few: knn(X, few, 3),
        "1-NN": lambda X, few: knn(X, few, 1),
        "DP": transduced(DiscriminativeProjectionsClassifier()),
        "TDL": transduced(TDLClassifier()),
        "Laplacian Eigenmaps + vote": lambda X, few: soft_votes(maps, few),
        "SDA + 1-NN": lambda X, few: knn(SDA().fit_transform(X, few), few, 1),
        "LapRLS": transduced(LapRLSClassifier()),
        "LapRLS, linear": transduced(LapRLSClassifier(kernel=None)),
        "LabelSpreading": transduced(LabelSpreading(kernel="knn")),
        "SelfTraining": lambda X, few: SelfTrainingClassifier(logistic).fit(X, few).predict(X),
    }


def draws(y: np.ndarray, share: float, n_draws: int) -> Iterator[np.ndarray]:
    """Yield labels, -1 but for a share of the rows: one of each class, the others anywhere."""
    classes = np.unique(y)
    for number in range(n_draws):
        rng = np.random.default_rng([number, round(100 * share)])
        order = rng.permutation(len(y))
        first = [order[y[order] == c][0] for c in classes]
        rest = np.setdiff1d(order, first, assume_unique=True)[
            : max(0, round(share * len(y)) - len(classes))
        ]
        few = np.full(len(y), -1)
        few[[*first, *rest]] = y[[*first, *rest]]
        yield few


def measure(one: Set, known: dict[str, Any], n_draws: int) -> dict[str, Any]:
    """Return the accuracies on the rows without a label, of every method, share and draw; and
    seconds a fit.
    """
    X, names = some(*rows_of(one), MOST_ROWS)
    X, y = X / X.std() if one.units else scale(X), np.unique(names, return_inverse=True)[1]
    found = known or {
        "rows": len(y),
        "features": X.shape[1],
        "classes": int(y.max()) + 1,
        "kind": one.kind,
    }
    found.setdefault("accuracy", {})
    found.setdefault("seconds", {})
    for method, label in methods(X).items():
        if len(found["accuracy"].get(method, {}).get(str(SHARES[-1]), [])) >= n_draws:
            continue
        print(f"{one.name}: {method}", file=sys.stderr, flush=True)
        start = time.process_time()
        found["accuracy"][method] = {
            str(share): [
                100 * float(np.mean(label(X, few)[few < 0] == y[few < 0]))
                for few in draws(y, share, n_draws)
            ]
            for share in SHARES
        }
        found["seconds"][method] = (time.process_time() - start) / (n_draws * len(SHARES))
    return found


def compared(one: dict[str, Any], share: float, a: str, b: str) -> tuple[float, float, float]:
    """Return by how much method a is more accurate than b, and p-values: of the paired and of the
    corrected t-test.

    The first takes the rows as given and the draws of labels as independent, the second the rows as
    drawn, too.
    """
    scores = [np.array(one["accuracy"][name][str(share)]) / 100 for name in (a, b)]
    n_labelled = max(one["classes"], round(share * one["rows"]))
    n_rest = one["rows"] - n_labelled
    difference = scores[0] - scores[1]
    paired = corrected_resampled_t_test(difference, 1, 0, resolution=1 / n_rest)
    return difference.mean(), paired, corrected_resampled_t_test(difference, n_labelled, n_rest)


def against(found: dict[str, Any], mean: np.ndarray, names: list[str], reference: str) -> str:
    """Return a table of every method beside one: over the sets, on the worst, and in how many cells
    significantly.
    """
    r = names.index(reference)
    others = [name for name in names if name != reference]
    by_set = mean.mean(axis=1)  # (sets, methods)
    over_sets = holm(
        [wilcoxon(by_set[:, names.index(name)] - by_set[:, r]).pvalue for name in others]
    )
    cells = [
        [compared(one, share, name, reference) for name in others]
        for one in found.values()
        for share in SHARES
    ]
    differences, *tests = np.moveaxis(np.array(cells), 2, 0)  # (cells, others)
    significant = [np.array([holm(row) for row in p]) < 0.05 for p in tests]
    counts = [
        (known & (sign * differences > 0)).sum(axis=0) for known in significant for sign in (1, -1)
    ]
    rows = []
    for name, p, *numbers in zip(others, over_sets, *counts, strict=True):
        difference = mean[:, :, names.index(name)] - mean[:, :, r]
        i, j = np.unravel_index(difference.argmin(), difference.shape)
        where = f"{difference.min():+.1f} ({list(found)[i]}, {100 * SHARES[j]:.0f} %)"
        rows.append([name, f"{difference.mean():+.1f}", where, f"{p:.2g}", *numbers])
    rows.sort(key=lambda row: -float(row[1]))
    header = [
        "method",
        "mean difference",
        "worst",
        "p over the sets",
        "better",
        "worse",
        "better, strict",
    ]
    return table([*header, "worse, strict"], rows)


def means(found: dict[str, Any], names: list[str]) -> np.ndarray:
    """Return mean accuracies (sets, shares, methods)."""
    return np.array(
        [
            [[np.mean(one["accuracy"][name][str(s)]) for name in names] for s in SHARES]
            for one in found.values()
        ]
    )


def ranking(found: dict[str, Any], names: list[str]) -> str:
    """Return a table of the methods by mean rank, and whether the ranks differ."""
    mean = means(found, names)
    cells, by_set = mean.reshape(-1, len(names)), mean.mean(axis=1)
    seconds = np.array([[one["seconds"][name] for name in names] for one in found.values()])
    lost = cells - cells.max(axis=1, keepdims=True)
    rows = [
        [names[i], f"{ranks(cells)[i]:.2f}", f"{ranks(by_set)[i]:.2f}",
         *(f"{m:.1f}" for m in mean[:, :, i].mean(axis=0)), f"{lost[:, i].min():.1f}",
         f"{np.median(seconds[:, i]):.2f}"]
        for i in np.argsort(ranks(cells))
    ]  # fmt: skip
    header = [
        "method",
        "rank, cells",
        "rank, sets",
        *(f"{100 * share:.0f} %" for share in SHARES),
        "worst loss",
        "s",
    ]
    return (
        f"{table(header, rows)}\n\nFriedman's test of equal ranks over the {len(found)} sets: p = "
        f"{friedmanchisquare(*by_set.T).pvalue:.1g}; two mean ranks over the sets differ "
        f"significantly at 5 % (Nemenyi) from {critical_difference(len(names), len(found)):.1f} on."
    )


def document(found: dict[str, Any], n_draws: int) -> str:
    names = list(next(iter(found.values()))["accuracy"])
    mean = means(found, names)
    cells = mean.reshape(-1, len(names))
    order = np.argsort(ranks(cells))
    shares = [f"{100 * share:.0f} %" for share in SHARES]
    sections = [
        "# A study of few labels",
        "Written by this command:",
        "    NEARKIN_DATA=folder python benchmarks/few_labels.py --document docs/measured/few_labels.md",
        f"{len(found)} sets, at most {MOST_ROWS} rows of each; 2, 5 and 10 % of the rows have a label (one of each "
        f"class in any case, the others anywhere), {n_draws} draws. Accuracy on the rows without a label, which all "
        "methods but k-NN learn from. Tables are standardized, images and text divided by one "
        "number; text is represented by LSA components. All methods have their defaults; but for "
        "that of `TDLClassifier` none was chosen on these sets. MNIST and UMIST, on which defaults "
        "of `LapRLSClassifier` and `SDA` were chosen, and kddcup99 and orl, of many classes and "
        "few rows of most, are left out.",
        "DP is `DiscriminativeProjectionsClassifier`, TDL `TDLClassifier`, which by default uses "
        "no cost of labels. The vote after Laplacian Eigenmaps (20 dimensions, 20 neighbours) is "
        "`SoftNeighborsClassifier`; LabelSpreading takes scikit-learn's k-NN graph, SelfTraining "
        "logistic regression; LapRLS is `LapRLSClassifier` with its kernel.",
        "## The ranking",
        "Mean rank over all cells (a set and a share of labels) and over the sets, mean accuracy "
        "by share, the worst loss to the best method of a cell, and the median time of a fit:",
        ranking(found, names),
        "**The default of `TDLClassifier` was chosen on all of these sets**, so that its place "
        "here is flattered. On sets that had no part in the choice it is compared with "
        "LabelSpreading and 3-NN [elsewhere](benchmarks.md#tdlclassifier-beside-labelspreading).",
        "## One against another",
        "Difference in points, mean over all cells and in the worst cell; the p-value of "
        "Wilcoxon's signed-rank test over the sets (means of the three shares), with Holm's "
        "correction for the methods: the test of a claim that "
        f"is to hold for other sets. Then the number of cells, of {len(cells)}, where the method is significantly "
        "better or worse (p < 0.05 after Holm's correction for the methods), by the paired t-test over the draws of "
        "labels, the rows as they are; and, strict, by the corrected resampled t-test, which counts the rows without a "
        "label as test rows that all draws share: 9 to 49 times as many as have a label, so that hardly any "
        "difference of few labels is significant.",
        *(part for name in (RAW, "LabelSpreading", "DP", "TDL")
          for part in (f"Against {name}:", against(found, mean, names, name))),
        "## Every cell",
    ]  # fmt: skip
    for j, share in enumerate(shares):
        rows = []
        for name, one, row in zip(found, found.values(), mean[:, j][:, order], strict=True):
            texts = [f"**{value:.1f}**" if value == row.max() else f"{value:.1f}" for value in row]
            rows.append([f"{name} ({one['rows']} x {one['features']}, {one['classes']})", *texts])
        sections += [f"{share} of the labels, set (rows x features, classes):"]
        sections += [table(["set", *(names[i] for i in order)], rows)]
    return "\n\n".join(sections) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these")
    parser.add_argument(
        "--again", nargs="+", metavar="METHOD", default=[], help="measure these once more"
    )
    parser.add_argument(
        "--store", type=Path, default=Path("few_labels.json"), help="default: few_labels.json"
    )
    parser.add_argument("--document", type=Path, help="write it there")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(options.store.read_text()) if options.store.exists() else {}
    for one in kept.values():
        one["accuracy"] = {
            name: some for name, some in one["accuracy"].items() if name not in options.again
        }
    chosen = [one for one in SETS if one.name not in USED | TOO_MANY_CLASSES]
    for one in chosen:
        if options.sets and one.name not in options.sets:
            continue
        try:
            with threadpool_limits(1, "blas"), warnings.catch_warnings(action="ignore"):
                kept[one.name] = measure(one, kept.get(one.name, {}), options.draws)
        except FileNotFoundError as error:
            print(f"{one.name}: left out ({error})", file=sys.stderr)
        options.store.write_text(json.dumps(kept, indent=1))
    text = document({one.name: kept[one.name] for one in chosen if one.name in kept}, options.draws)
    if options.document:
        options.document.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
