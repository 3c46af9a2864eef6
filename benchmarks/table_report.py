"""The document of tables.py: ranks, means, wins and losses, and a row a table, from the lines that
it stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rankings import critical_difference, draw, ranks, table
from table_methods import BOOSTING, FOREST, METHODS, OURS, SPACES, TREES

TIE = 1e-3  # a tenth of a point
LARGE_LOSS = 0.03
MEASURES = {"accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC", "r2": "R2"}
SIGNS = {"accuracy": 1, "log_loss": -1, "auc": 1, "r2": 1}  # 1: the higher the better

RUN = "NEARKIN_DATA=folder python benchmarks/tables.py"

HEAD = """\
# Predictors for tables

`NCAClassifier` and `NCARegressor` (here "{ours}") against the predictors that people use for tables, on 43 public
tables with columns of numbers and text and on five sets of scikit-learn. Written by the commands at the end, nothing
by hand.

- Ten folds, stratified by class, with a fixed seed; of tables with more than 2,000 rows all rows, but only the first
  two of these folds. All methods have the same folds: one that a method lacks is left out for all, and named below.
- Every method has its defaults, but for the SVM: three inner folds of at most 2,000 training rows choose its C and
  gamma; its probabilities are libsvm's. "linear" is logistic regression, or ridge regression.
- Categories as each method's documentation recommends: the category type of pandas for HistGradientBoosting, XGBoost
  and LightGBM, `cat_features` for CatBoost, the frame as it is for {ours}, one-hot columns for the others. Numbers
  are standardized for linear models, SVM and 5-NN.
- Log loss: a probability of the true class below 0.0001 counts as 0.0001. AUC: the mean over classes of one against
  the rest. R2 of a table: 1 minus the squared errors of all folds over the squares about the means of these folds.
- Seconds are those of the processor, one thread a fit. Memory: by how much the process grows at most during the fit,
  libraries that it touches first included."""

HALVES = {
    "held-out": """\
## Tables on which nothing was chosen

Settings of {ours} were chosen on the other half of the tables alone. The halves were fixed before, by name: every
second one of the sorted names.""",
    "development": """\
## Tables on which settings were chosen

These support no claim: the settings of {ours} are those that did well here.""",
}
TUNED = """\
## Tuned

Tables of the first part with at most 2,000 rows, two folds. Every method has {seconds:.0f} processor seconds for each
fit: first its default, then settings drawn at random (`SPACES` in benchmarks/table_methods.py, after Grinsztajn et
al. 2022, Gorishniy et al. 2021 and McElfresh et al. 2023), each judged by log loss, or squared error, on three folds
of the training rows. The best is fitted to all of them. What is not ready in time is dropped, but for the default: a
slow method tries fewer settings."""
NEMENYI = """\
Critical difference of Nemenyi's test at 5 % (Demsar, JMLR 7, 2006): {difference:.1f} ranks. Methods whose mean ranks
are further apart differ significantly. Of the others it remains open: {n} tables show large differences only."""


def document(
    lines: Sequence[dict[str, Any]], halves: dict[str, Sequence[str]], folder: Path
) -> str:
    """Return the document, and write its pictures into the folder."""
    frame = pd.DataFrame(lines).drop_duplicates(["method", "table", "fold", "seconds"], keep="last")
    parts = [HEAD.format(ours=OURS)]
    for half, names in halves.items():
        found = frame[frame["table"].isin(names) & (frame["seconds"] == 0)]
        parts += [HALVES[half].format(ours=OURS), *half_text(found, list(METHODS), folder / half)]
    for seconds in sorted(set(frame["seconds"]) - {0}):
        found = frame[frame["seconds"] == seconds]
        parts += [
            TUNED.format(seconds=seconds),
            *half_text(found, list(SPACES), folder / f"tuned-{seconds:.0f}"),
        ]
        parts += [tried_text(found)]
    return "\n\n".join([*parts, end_text(frame)])


def half_text(found: pd.DataFrame, methods: Sequence[str], pictures: Path) -> list[str]:
    """Return the sections of one part: tables of classes, tables of numbers, and what is missing."""
    parts = []
    for title, some, main in (
        ("Classes", found[found["classes"] > 0], ["accuracy", "log_loss"]),
        ("Numbers", found[found["classes"] == 0], ["r2"]),
    ):
        shown = shared(some, methods)
        if len(shown):
            parts += section(f"### {title}", shown, main, pictures)
            rest = some[(some["status"] == "ok") & ~some["table"].isin(shown["table"])]
            parts += lacking(rest, main[0])
    return [*parts, missing_text(found, methods)]


def shared(found: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Return the fits of methods that have results on most tables, on the folds that all of them
    have.
    """
    done = found[found["status"] == "ok"]
    n_tables = done.groupby("method")["table"].nunique()
    usual = [name for name in methods if n_tables.get(name, 0) > done["table"].nunique() / 2]
    done = done[done["method"].isin(usual)]
    return done[done.groupby(["table", "fold"])["method"].transform("nunique") == len(usual)]


def by_table(shown: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure of tables (rows) by methods (columns)."""
    cells = shown.groupby(["table", "method"])
    if measure == "r2":
        sums = cells[["errors", "squares"]].sum()
        values = (1 - sums["errors"] / sums["squares"]).unstack()
    else:
        values = cells[measure].mean().unstack()
    return values[sorted(values, key=[OURS, *METHODS].index)]


def section(title: str, shown: pd.DataFrame, main: Sequence[str], pictures: Path) -> list[str]:
    """Return ranks and means, a picture of each measure, wins, losses, and the tables one by one."""
    scores = {measure: by_table(shown, measure) for measure in main}
    n_tables, n_methods = scores[main[0]].shape
    difference = critical_difference(n_methods, n_tables)
    parts = [
        f"{title}: {n_tables} tables",
        overall(shown, scores),
        NEMENYI.format(difference=difference, n=n_tables),
    ]
    for measure, values in scores.items():
        name = f"{pictures.name}-{MEASURES[measure].replace(' ', '-')}.png".lower()
        draw(
            list(values),
            ranks(SIGNS[measure] * values.to_numpy()),
            difference,
            pictures.with_name(name),
        )
        picture = f"../images/{pictures.parent.name}/{name}"
        parts += [f"![Mean ranks by {MEASURES[measure]}, with the critical difference]({picture})"]
    if OURS in scores[main[0]]:
        parts += [
            f"Tables on which {OURS} wins, ties (less than {TIE} apart) and loses:",
            wins(scores),
        ]
        parts += [losses(shown, scores[main[0]], MEASURES[main[0]])]
    for measure, values in scores.items():
        label = MEASURES[measure]
        parts += [
            f"{label[0].upper()}{label[1:]}, the best in bold (rows x columns, classes; folds):",
            each(shown, values, measure),
        ]
    return parts


def lacking(rest: pd.DataFrame, measure: str) -> list[str]:
    """Return the tables that some method lacks."""
    if rest.empty:
        return []
    return [
        f"Left out above, as a method has no result (here {MEASURES[measure]}, by the folds that "
        "each method has):",
        each(rest, by_table(rest, measure), measure),
    ]


def overall(shown: pd.DataFrame, scores: dict[str, pd.DataFrame]) -> str:
    """Return a line a method, sorted by the mean rank of the first measure."""
    main = list(scores)
    means = {
        measure: by_table(shown, measure).mean()
        for measure in (*main, *(["auc"] if "accuracy" in main else []))
    }
    places = pd.DataFrame(
        {key: ranks(SIGNS[key] * values.to_numpy()) for key, values in scores.items()}
    )
    places.index = scores[main[0]].columns
    cost = shown.groupby(["table", "method"])[["fit", "predict", "memory"]].mean().groupby("method")
    middle, most = cost.median(), cost.max()
    rows = []
    for name in places.sort_values(main[0]).index:
        ranked = [f"{places.loc[name, key]:.2f}" for key in main]
        costs = [
            f"{middle.fit[name]:.2f}",
            f"{most.fit[name]:.1f}",
            f"{1000 * middle.predict[name]:.0f}",
        ]
        rows.append(
            [
                name,
                *ranked,
                *(cell(means[key][name], key) for key in means),
                *costs,
                f"{most.memory[name]:.0f}",
            ]
        )
    header = [
        "method",
        *(f"rank, {MEASURES[key]}" for key in main),
        *(f"mean {MEASURES[key]}" for key in means),
    ]
    return table(
        [*header, "median fit, s", "longest, s", "median prediction, ms", "most memory, MB"], rows
    )


def cell(value: float, measure: str) -> str:
    return f"{100 * value:.1f} %" if measure == "accuracy" else f"{value:.3f}"


def wins(scores: dict[str, pd.DataFrame]) -> str:
    """Return how many tables each other method loses, ties and wins."""
    rows = []
    for name in [name for name in next(iter(scores.values())) if name != OURS]:
        over = [SIGNS[key] * (values[OURS] - values[name]) for key, values in scores.items()]
        rows.append(
            [name, *(f"{sum(d >= TIE)} / {sum(abs(d) < TIE)} / {sum(d <= -TIE)}" for d in over)]
        )
    return table(["against", *(MEASURES[key] for key in scores)], rows)


def losses(shown: pd.DataFrame, values: pd.DataFrame, measure: str) -> str:
    """Name the tables on which forests or boosting are well ahead."""
    parts = []
    for title, rivals in (
        (f"the better of {FOREST} and {BOOSTING}", [FOREST, BOOSTING]),
        (f"the best of all {len(TREES)} methods of trees, chosen afterwards", TREES),
    ):
        best = values[[name for name in rivals if name in values]]
        over = (values[OURS] - best.max(axis=1)).sort_values()
        large = [
            f"{name} ({100 * d:.1f}{fold_error(shown, name, best.loc[name].idxmax())})" for name, d in over.items()
            if d < -LARGE_LOSS
        ]  # fmt: skip
        named = (
            f"more than 3 points behind on {', '.join(large)}"
            if large
            else "never more than 3 points behind"
        )
        parts.append(
            f"- {OURS} against {title}, by {measure}: in the mean {100 * over.mean():+.1f} points, "
            f"at worst {100 * over.iloc[0]:+.1f} ({over.index[0]}); {named}."
        )
    return "\n".join(parts)


def fold_error(shown: pd.DataFrame, name: str, rival: str) -> str:
    """Return the standard error of a difference in accuracy over the folds of a table, as text."""
    folds = shown[shown["table"] == name].pivot_table(
        index="fold", columns="method", values="accuracy", dropna=False
    )
    if folds.empty or folds[rival].isna().any() or len(folds) < 3:
        return ""
    return f", standard error {100 * (folds[OURS] - folds[rival]).sem():.1f}"


def each(shown: pd.DataFrame, values: pd.DataFrame, measure: str) -> str:
    """Return a row a table."""
    facts = shown.groupby("table")[["rows", "columns", "classes"]].first()
    n_folds = shown.groupby("table")["fold"].nunique()
    best = values.max(axis=1) if SIGNS[measure] > 0 else values.min(axis=1)
    rows = []
    for name in values.index:
        n, p, classes = facts.loc[name]
        about = f"{name} ({n:,} x {p}{f', {classes}' if classes else ''}; {n_folds[name]})"
        cells = ["-" if np.isnan(value) else f"{value:.3f}" for value in values.loc[name]]
        rows.append(
            [about, *(f"**{text}**" if text == f"{best[name]:.3f}" else text for text in cells)]
        )
    return table(["table", *values], rows)


def missing_text(found: pd.DataFrame, methods: Sequence[str]) -> str:
    """Say what was not run, failed or was too slow."""
    known = found.groupby("table")["fold"].agg(set)
    lines = [] if len(found) else ["- all methods: not run"]
    for name in methods:
        one = found[found["method"] == name]
        done = one.groupby("table")["fold"].agg(set)
        lacking = {key: len(folds - done.get(key, set())) for key, folds in known.items()}
        if sum(lacking.values()):
            lines.append(
                f"- {name}: not run on {sum(lacking.values())} folds of "
                f"{sum(map(bool, lacking.values()))} tables"
            )
        for (key, status), n in (
            one[one["status"] != "ok"].groupby(["table", "status"]).size().items()
        ):
            lines.append(f"- {name}: {key}, {n} folds: {status}")
    return "\n".join(["Not run, failed or too slow:", "", *(lines or ["- nothing"])])


def tried_text(found: pd.DataFrame) -> str:
    """Say how many settings the methods tried, and what they took."""
    done = found[found["status"] == "ok"].groupby("method")[["tried", "fit"]].mean()
    rows = [[name, f"{tried:.1f}", f"{fit:.1f}"] for name, (tried, fit) in done.iterrows()]
    return "\n\n".join(
        [
            "Settings tried in a fit, its default among them:",
            table(["method", "settings", "seconds"], rows),
        ]
    )


def end_text(frame: pd.DataFrame) -> str:
    """Return the commands, versions and dates."""
    tuned = [
        f"    {RUN} --tuned --half held-out --seconds {s:.0f}\n"
        for s in sorted(set(frame["seconds"]) - {0})
    ]
    versions = sorted(
        {
            ", ".join(f"{name} {number}" for name, number in kept.items())
            for kept in frame["versions"]
        }
    )
    dates = sorted(set(frame["date"]))
    return (
        f"## Commands\n\n    pip install lightgbm xgboost catboost\n    {RUN}\n{''.join(tuned)}    "
        "python benchmarks/tables.py --write docs/measured/tables.md\n\nRun on "
        f"{dates[0]}{f' to {dates[-1]}' if dates[1:] else ''}, on two shared cores of an x86-64 "
        f"machine, with {'; or '.join(versions)}."
    )
