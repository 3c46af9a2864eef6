"""Which method when: every method on every set at hand, and how small vectors may get; written to docs/comparison.md.

    NEARKIN_DATA=folder python benchmarks/comparison.py ranking defaults shrinking --document docs/comparison.md

NEARKIN_DATA names a folder of NPZ files; what is not there is left out. Results are kept in a JSON file (--store), so
that a run that was cut off goes on where it stopped; the document is written from that file, nothing by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from threadpoolctl import threadpool_limits

from nearkin import DNE, LDE, LFDA, LMNN, LPP, MFA, NCA, NMMP, RCA
from nearkin.datasets import BUNDLED, load
from nearkin.evaluation import Method, compare, default_methods
from nearkin.neighbors import nearest

MOST_ROWS = 1000
BUDGET = 3600  # seconds for a method on a set
LSA = 300


@dataclass(frozen=True)
class Set:
    """A table of the study; `units`: whether its features share a unit, and so are not standardized."""

    name: str
    kind: str
    units: bool = False
    text: bool = False


SETS = (
    *(Set(name, "table") for name in ("iris", "wine", "breast_cancer", "balance_scale")),
    *(Set(name, "table") for name in ("sonar", "ionosphere", "breast_cancer_wisconsin_original", "ohsumed_letor3")),
    Set("mushroom", "table", units=True),
    Set("kddcup99", "table"),
    Set("digits", "images", units=True),
    *(Set(name, "images", units=True) for name in ("usps", "mnist", "coil20_16", "umist_28x23", "orl_56x46")),
    Set("news_rec", "text, LSA", units=True, text=True),
    Set("tdt2", "text, LSA", units=True, text=True),
)


def archive(name: str) -> Any:
    return np.load(os.path.join(os.environ.get("NEARKIN_DATA", ""), f"{name}.npz"))


def lsa(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of text as vectors of unit length in the 300 directions of TF-IDF that vary most."""
    data = archive(name)
    counts = csr_array((data["counts" if "counts" in data else "data"], data["indices"], data["indptr"]), data["shape"])
    svd = TruncatedSVD(LSA, random_state=0)
    vectors = make_pipeline(TfidfTransformer(sublinear_tf=True), svd, Normalizer()).fit_transform(counts.astype(float))
    return vectors, data["y"]


def rows_of(one: Set) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of a set."""
    if one.name in BUNDLED:
        table = load(one.name)
        return table.X, table.y
    if one.text:
        return lsa(one.name)
    data = archive(one.name)
    return data["X_qnorm" if "X_qnorm" in data else "X"].astype(np.float64), data["y"]


def some(X: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows, of classes that have ten of them at least."""
    if len(y) > most:
        rows = np.random.default_rng(0).permutation(len(y))[:most]
        X, y = X[rows], y[rows]
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = counts[codes] >= min(10, len(y) / len(labels))
    X, y = X[kept], y[kept]
    return X[:, np.ptp(X, axis=0) > 0], y


def candidates() -> list[Method]:
    """Return every method with its dimension chosen on training folds, and as it comes."""
    chosen = default_methods()
    bare = [
        Method(f"{method.name}, as it comes", clone(method.estimator).set_params(n_components=None), nested=False)
        for method in chosen
        if method.estimator is not None
    ]
    return [*chosen, *bare]


def rank_one(one: Set, known: dict[str, Any]) -> dict[str, Any]:
    """Return accuracy, dimension and seconds of every method on ten folds, of those not known yet."""
    before = known.get("methods", {})
    methods = [method for method in candidates() if method.name not in before]
    if not methods:
        return known
    X, y = some(*rows_of(one), MOST_ROWS)
    found = compare(
        X, y, methods=methods, n_splits=10, n_repeats=1, scale=not one.units, time_budget=BUDGET,
        progress=lambda name, done, total: print(f"\r{one.name}: {name} {done}/{total}   ", end="", file=sys.stderr),
    )  # fmt: skip
    print(file=sys.stderr)
    return {
        "rows": len(y),
        "features": X.shape[1],
        "classes": len(np.unique(y)),
        "kind": one.kind,
        "notes": [*known.get("notes", []), *(f"{name} skipped: {reason}" for name, reason in found.skipped.items())],
        "methods": before
        | {
            result.name: [100 * result.score.mean(), float(np.median(result.dimension)), result.fit_seconds.mean()]
            for result in found.results
        },
    }


RULES: dict[str, Callable[[int, int], float]] = {
    "classes - 1": lambda p, c: c - 1,
    "3 classes": lambda p, c: 3 * c,
    "10 classes": lambda p, c: 10 * c,
    "p / 4": lambda p, c: p / 4,
    "p / 2": lambda p, c: p / 2,
    "50": lambda p, c: 50,
    "all": lambda p, c: p,
}
RULED: dict[str, Any] = {
    "NMMP": NMMP(),
    "NMMP ratio trace": NMMP(criterion="ratio_trace"),
    "LPP": LPP(variance=1),
    "LDE": LDE(),
    "MFA": MFA(),
    "LFDA": LFDA(),
    "RCA": RCA(),
}


def rule_one(one: Set, known: dict[str, Any]) -> dict[str, Any]:
    """Return accuracies on five folds with a dimension that a rule names, of every method and rule."""
    X, y = some(*rows_of(one), MOST_ROWS)
    p, n_classes = X.shape[1], len(np.unique(y))
    methods = []
    for name, model in RULED.items():
        for rule, dimension in RULES.items():
            m = int(min(max(dimension(p, n_classes), 1), p, 0.9 * len(y) - 1))
            fixed = clone(model).set_params(n_components=m)
            methods.append(Method(f"{name}|{rule}", fixed, nested=False))
    methods = [method for method in methods if method.name not in known]
    if not methods:
        return known
    found = compare(
        X, y, methods=methods, n_splits=5, n_repeats=1, scale=not one.units, time_budget=BUDGET,
        progress=lambda name, done, total: print(f"\r{one.name}: {name} {done}/{total}   ", end="", file=sys.stderr),
    )  # fmt: skip
    return known | {result.name: 100 * result.score.mean() for result in found.results}


SHRUNK: dict[str, Callable[[int, int], Any]] = {
    "PCA": lambda m, c: PCA(m, svd_solver="full"),
    "LDA (classes - 1)": lambda m, c: LinearDiscriminantAnalysis(n_components=min(m, c - 1)),
    "DNE": lambda m, c: DNE(m),
    "NMMP": lambda m, c: NMMP(m),
    "LFDA": lambda m, c: LFDA(m),
    "NCA": lambda m, c: NCA(m),
    "LMNN": lambda m, c: LMNN(m),
}
VECTORS = {
    "tdt2, LSA": partial(lsa, "tdt2"),
    "news_rec, LSA": partial(lsa, "news_rec"),
    "mnist, pixels": lambda: rows_of(Set("mnist", "images")),
    "usps, pixels": lambda: rows_of(Set("usps", "images")),
}


def shrink_one(name: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return what smaller vectors keep: labels of held-out rows, and rows of their class among their nearest ten."""
    X, y = some(*VECTORS[name](), 6000)
    train, test, y_train, y_test = train_test_split(X.astype(np.float32), y, random_state=0, stratify=y)
    n_classes = len(np.unique(y))
    p = X.shape[1]
    results: dict[str, Any] = known.get("methods", {})
    results = results or {f"all {p}": scored(FunctionTransformer(), train, y_train, test, y_test)}
    for m in (p // 6, p // 12):
        cut = FunctionTransformer(lambda Z, m=m: Z[:, :m])
        models = {"first ones": cut} | {method: make(m, n_classes) for method, make in SHRUNK.items()}
        for method, model in models.items():
            if f"{method}|{m}" in results:
                continue
            print(f"\r{name}: {method} {m}      ", end="", file=sys.stderr)
            results[f"{method}|{m}"] = scored(model, train, y_train, test, y_test)
    print(file=sys.stderr)
    return {"rows": len(train), "held out": len(test), "features": p, "classes": n_classes, "methods": results}


def scored(model: Any, train: Any, y_train: np.ndarray, test: Any, y_test: np.ndarray) -> list[float]:
    """Return 3-NN accuracy, precision among 10 held-out rows, the dimension and the seconds of the fit."""
    start = time.perf_counter()
    model.fit(train, y_train)
    seconds = time.perf_counter() - start
    Z, held_out = model.transform(train), model.transform(test)
    accuracy = KNeighborsClassifier(3, algorithm="brute").fit(Z, y_train).score(held_out, y_test)
    found = nearest(held_out, 10).indices.reshape(len(held_out), -1)
    precision = np.mean(y_test[found] == y_test[:, None])
    return [100 * accuracy, 100 * float(precision), Z.shape[1], seconds]


def ranks(scores: np.ndarray) -> np.ndarray:
    """Return the mean rank of every method (columns) over the sets (rows); 1 is the best, ties share."""
    return np.mean([rankdata(-np.round(row, 6)) for row in scores], axis=0)


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Return the difference of mean ranks that Nemenyi's test needs at 5 % (Demsar, JMLR 7, 2006)."""
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def draw(names: Sequence[str], mean_ranks: np.ndarray, difference: float, path: Path) -> None:
    """Draw mean ranks on a line, with bars over methods that the test does not tell apart."""
    order = np.argsort(mean_ranks)
    sorted_ranks = mean_ranks[order]
    groups = []
    for first, rank in enumerate(sorted_ranks):
        last = int(np.searchsorted(sorted_ranks, rank + difference, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    half = -(-len(names) // 2)
    figure, ax = plt.subplots(figsize=(10, 1.6 + 0.28 * half + 0.16 * len(groups)), layout="constrained")
    low, high = np.floor(sorted_ranks[0]), np.ceil(sorted_ranks[-1])
    depth = 0.5 * len(groups) + 0.6
    ax.hlines(0, low, high, color="black")
    for tick in np.arange(low, high + 1):
        ax.vlines(tick, 0, 0.2, color="black")
        ax.text(tick, 0.35, f"{tick:.0f}", ha="center", va="bottom")
    for place, number in enumerate(order):
        left = place < half
        y = -depth - 0.8 * (place if left else len(names) - 1 - place)
        side = low - 0.3 if left else high + 0.3
        ax.plot([sorted_ranks[place], sorted_ranks[place], side], [0, y, y], color="0.4", lw=0.8)
        text = f"{names[number]}  {sorted_ranks[place]:.1f}"
        ax.text(side, y, f" {text} ", ha="right" if left else "left", va="center")
    for level, (first, last) in enumerate(groups):
        y = -0.45 * (level + 1)
        ax.hlines(y, sorted_ranks[first] - 0.05, sorted_ranks[last] + 0.05, color="#0072B2", lw=4)
    ax.hlines(1.6, low, low + difference, color="#D55E00", lw=2)
    ax.text(low, 1.75, f"critical difference {difference:.1f}", va="bottom")
    ax.set(xlim=(low - 4, high + 4), ylim=(-depth - 0.8 * half - 0.3, 2.6))
    ax.set_axis_off()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in cells)} |" for cells in lines)


def cells(row: np.ndarray, dimensions: np.ndarray) -> list[str]:
    """Return accuracies with their dimensions, the best in bold."""
    cells = [f"{accuracy:.1f}" for accuracy in row]
    cells = [f"**{text}**" if accuracy == row.max() else text for text, accuracy in zip(cells, row, strict=True)]
    return [f"{text} ({m:.0f})" for text, m in zip(cells, dimensions, strict=True)]


def ranking_text(found: dict[str, Any], folder: Path) -> str:
    """Return the section on the ranking."""
    if not found:
        return ""
    everywhere = set.intersection(*(set(one["methods"]) for one in found.values()))
    names = [name for name in (method.name for method in candidates()) if name in everywhere]
    bare = [name for name in names if name.endswith(", as it comes")]
    names = [name for name in names if name not in bare]
    accuracy, dimension, seconds = (
        np.array([[one["methods"][name][i] for name in names] for one in found.values()]) for i in range(3)
    )
    mean_ranks, difference = ranks(accuracy), critical_difference(len(names), len(found))
    draw(names, mean_ranks, difference, folder / "critical_difference.png")
    order = np.argsort(mean_ranks)
    as_it_comes = {name: np.array([one["methods"][name][0] for one in found.values()]) for name in bare}
    best = accuracy.argmax(axis=1)
    overall = []
    for i in order:
        own = as_it_comes.get(f"{names[i]}, as it comes")
        lost = "" if own is None else f"{np.mean(own - accuracy[:, i]):+.1f}"
        raw = accuracy[:, i] - accuracy[:, 0]
        overall.append(
            [names[i], f"{mean_ranks[i]:.2f}", f"{accuracy[:, i].mean():.1f}", f"{raw.mean():+.1f}",
             f"{raw.min():+.1f}", np.sum(best == i), f"{np.median(seconds[:, i]):.3f}", lost]
        )  # fmt: skip
    p = friedmanchisquare(*accuracy.T).pvalue
    kinds = sorted({one["kind"] for one in found.values()})
    by_kind = [
        [names[i], *(f"{accuracy[[one['kind'] == kind for one in found.values()], i].mean():.1f}" for kind in kinds)]
        for i in order
    ]
    every = [
        [f"{name} ({one['rows']} x {one['features']}, {one['classes']})", *cells(row, dims)]
        for (name, one), row, dims in zip(found.items(), accuracy[:, order], dimension[:, order], strict=True)
    ]
    missing = sorted({name for one in found.values() for name in one["methods"]} - everywhere)
    notes = sorted({f"{name}: {note}" for name, one in found.items() for note in one["notes"] if "skipped" in note})
    parts = [
        "## The ranking",
        f"3-NN on ten held-out folds of {len(found)} sets; at most {MOST_ROWS} rows of each. The dimension is chosen "
        "on folds of the training rows (for DNE, k as well). Tables are standardized, images and text are not. Text "
        f"is represented by the {LSA} leading LSA components of TF-IDF, at unit length.",
        table(
            ["method", "mean rank", "mean %", "over raw", "worst over raw", "best on", "median fit, s",
             "n_components=None instead"],
            overall,
        ),
        f"Friedman's test of equal ranks: p = {p:.1g}. Methods joined by a bar do not differ significantly at 5 % "
        f"(Nemenyi); with {len(found)} sets the critical difference is {difference:.1f} ranks.",
        "![Mean ranks of the methods with the critical difference](images/critical_difference.png)",
        "By kind of data, mean %:",
        table(["method", *kinds], by_kind),
        "Each set (rows x features, classes): % (median dimension), the best in bold.",
        table(["set", *(names[i] for i in order)], every),
    ]  # fmt: skip
    if missing:
        parts.append(f"Not ranked, as some set lacks them: {', '.join(missing)}. " + " ".join(f"{n}." for n in notes))
    return "\n\n".join(parts)


def defaults_text(found: dict[str, Any]) -> str:
    """Return the section on the dimension that n_components=None should take."""
    if not found:
        return ""
    raw = next(name for name in next(iter(found.values())) if "|" not in name)
    rows = []
    for method in RULED:
        means = []
        for rule in RULES:
            over = [one[f"{method}|{rule}"] - one[raw] for one in found.values() if f"{method}|{rule}" in one]
            means.append((np.mean(over), np.min(over)) if len(over) == len(found) else (np.nan, np.nan))
        best = np.nanmax([mean for mean, _ in means])
        cells = [f"{mean:+.1f} ({least:+.1f})" for mean, least in means]
        bold = [f"**{text}**" if mean == best else text for text, (mean, _) in zip(cells, means, strict=True)]
        rows.append([method, *bold])
    return "\n\n".join(
        [
            "## The default number of dimensions",
            f"Difference to raw k-NN in points on the same five folds of {len(found)} sets, mean (and worst set), if a "
            "rule sets the dimension; p is the number of features, and fewer directions are used if fewer exist.",
            table(["method", *RULES], rows),
        ]
    )


def shrinking_text(found: dict[str, Any]) -> str:
    """Return the section on smaller vectors."""
    if not found:
        return ""
    parts = [
        "## Smaller vectors for search",
        "Vectors of a sixth and a twelfth of the original dimension; the maps are fitted to three quarters of the rows "
        "(at most 6,000). 3-NN: accuracy on the held-out rows, which the training rows classify. Precision: the share "
        'of the same class among the 10 nearest of the held-out rows. "first ones": the leading features alone, as LSA '
        "vectors are truncated.",
    ]
    for name, one in found.items():
        p = one["features"]
        rows = {}  # LDA, of fewer classes, is the same at both sizes
        for key, (accuracy, precision, m, seconds) in one["methods"].items():
            method, _, chosen = key.partition("|")
            saved = f"{100 * (1 - m / p):.0f} %" if chosen else ""
            cells = [f"{accuracy:.1f}", f"{precision:.1f}", 4 * m, saved, f"{seconds:.1f}" * bool(chosen)]
            rows[method, m] = [method, m, *cells]
        everything, *smaller = rows.values()
        smaller.sort(key=lambda row: (-row[1] // (p // 11), -float(row[2])))
        header = ["vectors", "dimension", "3-NN, %", "precision, %", "bytes a row (float32)", "saved", "fit, s"]
        parts += [f"### {name}: {one['rows']} rows, {one['held out']} held out, {one['classes']} classes"]
        parts += [table(header, [everything, *smaller])]
    return "\n\n".join(parts)


HEAD = """\
# A study of the methods on 18 data sets

Written by this command:

    NEARKIN_DATA=folder python benchmarks/comparison.py ranking defaults shrinking --document docs/comparison.md"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help="ranking, defaults, shrinking")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these")
    parser.add_argument("--store", type=Path, default=Path("comparison.json"), help="default: comparison.json")
    parser.add_argument("--document", type=Path, help="write it there")
    options = parser.parse_args()
    kept: dict[str, Any] = {part: {} for part in ("ranking", "defaults", "shrinking")}
    kept |= json.loads(options.store.read_text()) if options.store.exists() else {}
    jobs = {"ranking": [(one.name, partial(rank_one, one)) for one in SETS]}
    jobs["defaults"] = [(one.name, partial(rule_one, one)) for one in SETS]
    jobs["shrinking"] = [(name, partial(shrink_one, name)) for name in VECTORS]
    for part in options.parts:
        for name, job in jobs[part]:
            if options.sets and name not in options.sets:
                continue
            try:
                with threadpool_limits(1, "blas"), warnings.catch_warnings(action="ignore"):
                    kept[part][name] = job(kept[part].get(name, {}))
            except FileNotFoundError as error:
                print(f"{name}: left out ({error})", file=sys.stderr)
            options.store.write_text(json.dumps(kept, indent=1))
    for part in kept:
        kept[part] = {name: kept[part][name] for name, _ in jobs[part] if name in kept[part]}
    folder = (options.document.parent if options.document else Path()) / "images"
    folder.mkdir(exist_ok=True)
    sections = [ranking_text(kept["ranking"], folder), defaults_text(kept["defaults"])]
    text = "\n\n".join(filter(None, [HEAD, *sections, shrinking_text(kept["shrinking"])]))
    if options.document:
        options.document.write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
