"""The document of tables.py: ranks, means, tests, wins and losses, calibration, and a row a table,
from the lines that it stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rankings import critical_difference, draw, p_text, rank_sum, ranks, signed_rank, table
from table_methods import BOOSTING, CALIBRATED, FOREST, METHODS, OURS, REALMLP, SPACES, TABM, TREES

from nearkin.evaluation import holm

TIE = 1e-3  # a tenth of a point
LARGE_LOSS = 0.03
LARGE_TABLE, LARGE_TABLE_LOSS = 1000, 0.015
SIGNIFICANCE = 0.05
PICTURED = {OURS: "#0072B2", FOREST: "#D55E00", BOOSTING: "#009E73"}  # in the reliability picture
MIN_PICTURED = 20  # rows in a bin
SMALL = 2000  # rows, as in tables.py
MEASURES = {"accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC", "r2": "R2", "ece": "ECE"}
SIGNS = {"accuracy": 1, "log_loss": -1, "auc": 1, "r2": 1, "ece": -1}  # 1: the higher the better

RUN = "NEARKIN_DATA=folder python benchmarks/tables.py"

HEAD = """\
# Predictors for tables

`NCAClassifier` and `NCARegressor` (here "{ours}") against the predictors that people use for tables, on {n_tables}
tables with columns of numbers and text: public ones, and sets of scikit-learn. Written by the commands at the end,
nothing by hand.

- Ten folds, stratified by class, with a fixed seed: {folds}. Of tables with more than
  2,000 rows all rows, but only {large_folds}. All methods have the same folds: one that a
  method lacks is left out for all, and named below. A method that fails on every fold of a table has the last rank
  there, and means are those of the tables on which no method fails.
- Every method has its defaults, but for the SVM: three inner folds of at most 2,000 training rows choose its C and
  gamma; its probabilities are libsvm's. "linear" is logistic regression, or ridge regression. {realmlp} and {tabm}
  are networks with the tuned defaults of pytabkit, on one thread of the processor; {realmlp} smooths labels by
  default, which serves its accuracy and costs it log loss.
- Foundation models for tables (TabPFN, TabICL and others) are not in it: they bring weights that were trained on many
  tables, and a graphics card is what they are made for.
- Categories as each method's documentation recommends: the category type of pandas for HistGradientBoosting, XGBoost,
  LightGBM, {realmlp} and {tabm}, `cat_features` for CatBoost, the frame as it is for {ours}, one-hot columns for the
  others. Numbers are standardized for linear models, SVM and 5-NN.
- Log loss: a probability of the true class below 0.0001 counts as 0.0001. AUC: the mean over classes of one against
  the rest. R2 of a table: 1 minus the squared errors of all folds over the squares about the means of these folds.
- "Better" is said where Wilcoxon's signed-rank test over the tables has a p-value below 5 %, by Holm's correction for
  all rivals of the measure (Demsar, JMLR 7, 2006).
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
CALIBRATION = """\
### Calibration: {n} tables

The expected calibration error (ECE; Guo et al., ICML 2017) of a table: rows of all its folds are put into 15 bins of
equal width by their largest probability, and the distance between the mean probability of a bin and its share of right
predictions is averaged over rows. Small tables have errors of some points even if all probabilities are right. The
methods with "isotonic" and "temperature" are calibrated by `CalibratedClassifierCV` on five inner folds. Tables on
which one of the methods has no result are left out."""
NEMENYI = """\
Critical difference of Nemenyi's test at 5 % (Demsar, JMLR 7, 2006): {difference:.1f} ranks. Methods whose mean ranks
are further apart differ significantly. Of the others it remains open: {n} tables show large differences only."""


def document(
    lines: Sequence[dict[str, Any]], halves: dict[str, Sequence[str]], folder: Path
) -> str:
    """Return the document, and write its pictures into the folder."""
    frame = pd.DataFrame(lines).drop_duplicates(["method", "table", "fold", "seconds"], keep="last")
    n_tables = frame["table"].nunique()
    parts = [
        HEAD.format(ours=OURS, realmlp=REALMLP, tabm=TABM, n_tables=n_tables, **folds_text(frame))
    ]
    for half, names in halves.items():
        found = frame[frame["table"].isin(names) & (frame["seconds"] == 0)]
        if len(found):
            parts += [HALVES[half].format(ours=OURS)]
            parts += half_text(found, list(METHODS), folder / half)
            parts += calibration(found, folder / half)
    for seconds in sorted(set(frame["seconds"]) - {0}):
        found = frame[frame["seconds"] == seconds]
        parts += [
            TUNED.format(seconds=seconds),
            *half_text(found, list(SPACES), folder / f"tuned-{seconds:.0f}"),
        ]
        parts += [tried_text(found)]
    return "\n\n".join([*parts, end_text(frame, halves)])


def folds_text(frame: pd.DataFrame) -> dict[str, str]:
    """Say how many folds of tables with up to 2,000 rows, and of larger ones, were run."""
    whole = frame[(frame["seconds"] == 0) & (frame["method"] != OURS)]
    n_folds = whole.groupby(whole["rows"] > SMALL)["fold"].nunique()
    small, large = n_folds.get(False, 0), n_folds.get(True, 0)
    return {
        "folds": "all were run"
        if small == 10
        else f"{'only the first was' if small == 1 else f'the first {small} were'} run",
        "large_folds": "the first of these folds"
        if large == 1
        else f"the first {large} of these folds",
    }


def half_text(found: pd.DataFrame, methods: Sequence[str], pictures: Path) -> list[str]:
    """Return the sections of one part: tables of classes, tables of numbers, and what is missing."""
    parts = []
    for title, some, main in (
        ("Classes", found[found["classes"] > 0], ["accuracy", "log_loss"]),
        ("Numbers", found[found["classes"] == 0], ["r2"]),
    ):
        slow = few_folds(some, methods)
        shown = shared(some, [name for name in methods if name not in slow])
        if len(shown):
            parts += section(f"### {title}", shown, main, pictures)
            parts += with_slow(some, methods, slow, main)
            rest = some[(some["status"] == "ok") & ~some["table"].isin(shown["table"])]
            parts += lacking(rest, main[0])
    return [*parts, missing_text(found, methods)]


def few_folds(found: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return the methods with fewer than three quarters of the folds of that with the most."""
    n_fits = found[found["status"] == "ok"].groupby("method").size()
    return [name for name in methods if 0 < n_fits.get(name, 0) < 0.75 * n_fits.max()]


def with_slow(
    some: pd.DataFrame, methods: Sequence[str], slow: Sequence[str], main: Sequence[str]
) -> list[str]:
    """Return ranks and means of all methods, slow ones included, on the folds that these have."""
    shown = shared(some, methods)
    slow = [name for name in slow if name in set(shown["method"])]
    if not slow:
        return []
    scores = {measure: by_table(shown, measure) for measure in main}
    n_folds = len(shown[["table", "fold"]].drop_duplicates())
    parts = [
        f"{' and '.join(slow)} did not run on all of these folds. All methods on the {n_folds} folds of "
        f"{shown['table'].nunique()} tables that {'it has' if len(slow) == 1 else 'they have'}:",
        ranked(scores),
        *by_size(shown, scores),
    ]
    return [*parts, better(scores)] if OURS in scores[main[0]] else parts


def shared(found: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Return the fits of methods that have results on most tables, on the folds that all of them
    have.

    A method that failed on all folds of a table stays without a result there. A table that was not
    tried by all of them is left out.
    """
    n_tables = found[found["status"] == "ok"].groupby("method")["table"].nunique()
    usual = [name for name in methods if n_tables.get(name, 0) > found["table"].nunique() / 2]
    found = found[found["method"].isin(usual)]
    found = found[found.groupby("table")["method"].transform("nunique") == len(usual)]
    done = found[found["status"] == "ok"]
    able = done.groupby("table")["method"].transform("nunique")
    return done[done.groupby(["table", "fold"])["method"].transform("nunique") == able]


def by_table(shown: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure of tables (rows) by methods (columns)."""
    cells = shown.groupby(["table", "method"])
    if measure == "r2":
        sums = cells[["errors", "squares"]].sum()
        values = (1 - sums["errors"] / sums["squares"]).unstack()
    elif measure == "ece":
        values = cells["reliability"].agg(calibration_error).unstack()
    else:
        values = cells[measure].mean().unstack()
    return values[sorted(values, key=[OURS, *METHODS, *CALIBRATED].index)]


def calibration_error(folds: pd.Series) -> float:
    """Return the expected calibration error of bins that are added over folds."""
    rows, top, right = np.sum([np.array(bins) for bins in folds], axis=0)
    return float(np.abs(top - right).sum() / rows.sum())


def mean_ranks(values: pd.DataFrame, measure: str) -> np.ndarray:
    """Return the mean rank of each method; one that failed on a table is the last there."""
    return ranks((SIGNS[measure] * values).fillna(-np.inf).to_numpy())


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
        draw(list(values), mean_ranks(values, measure), difference, pictures.with_name(name))
        picture = f"../images/{pictures.parent.name}/{name}"
        parts += [f"![Mean ranks by {MEASURES[measure]}, with the critical difference]({picture})"]
    parts += by_size(shown, scores)
    if OURS in scores[main[0]]:
        parts += [
            f"Tables on which {OURS} wins, ties (less than {TIE} apart) and loses, and the p-value of the difference:",
            wins(scores),
            better(scores),
            losses(shown, scores[main[0]], MEASURES[main[0]]),
        ]
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


def by_size(shown: pd.DataFrame, scores: dict[str, pd.DataFrame]) -> list[str]:
    """Return ranks and means on the tables up to 1,000 rows, and on those above."""
    rows = shown.groupby("table")["rows"].first()
    parts = []
    for title, some in (
        (f"Tables with up to {LARGE_TABLE:,} rows", rows.index[rows <= LARGE_TABLE]),
        (f"Tables with more than {LARGE_TABLE:,} rows", rows.index[rows > LARGE_TABLE]),
    ):
        if len(some):
            part = {measure: values.loc[some] for measure, values in scores.items()}
            parts += [f"{title}, {len(some)}:", ranked(part)]
    return parts


def ranked(scores: dict[str, pd.DataFrame]) -> str:
    """Return a line a method with its ranks and means, sorted by the first measure."""
    main = next(iter(scores))
    places = pd.DataFrame(
        {key: mean_ranks(values, key) for key, values in scores.items()}, scores[main].columns
    )
    means = {key: values.dropna().mean() for key, values in scores.items()}
    header = [f"rank, {MEASURES[key]}" for key in scores] + [
        f"mean {MEASURES[key]}" for key in scores
    ]
    rows = [
        [
            name,
            *(f"{places.loc[name, key]:.2f}" for key in scores),
            *(cell(means[key][name], key) for key in scores),
        ]
        for name in places.sort_values(main).index
    ]
    return table(["method", *header], rows)


def overall(shown: pd.DataFrame, scores: dict[str, pd.DataFrame]) -> str:
    """Return a line a method, sorted by the mean rank of the first measure."""
    main = list(scores)
    means = {
        measure: by_table(shown, measure).dropna().mean()
        for measure in (*main, *(["auc"] if "accuracy" in main else []))
    }
    places = pd.DataFrame(
        {key: mean_ranks(values, key) for key, values in scores.items()}, scores[main[0]].columns
    )
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


def tests(values: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return of each rival (rows) the p-value by Holm and the sign of the difference, of ours."""
    rivals = [name for name in values if name != OURS]
    over = [(SIGNS[measure] * (values[OURS] - values[name])).dropna().to_numpy() for name in rivals]
    return pd.DataFrame(
        {"p": holm([signed_rank(d) for d in over]), "sign": [np.sign(rank_sum(d)) for d in over]},
        rivals,
    )


def wins(scores: dict[str, pd.DataFrame]) -> str:
    """Return how many tables each other method loses, ties and wins, and the p-value."""
    found = {key: tests(values, key) for key, values in scores.items()}
    rows = []
    for name in next(iter(found.values())).index:
        row = [name]
        for key, values in scores.items():
            d = SIGNS[key] * (values[OURS] - values[name])
            row += [f"{sum(d >= TIE)} / {sum(abs(d) < TIE)} / {sum(d <= -TIE)}"]
            row += [p_text(found[key].loc[name, "p"])]
        rows.append(row)
    header = [text for key in scores for text in (MEASURES[key], "p")]
    return table(["against", *header], rows)


def better(scores: dict[str, pd.DataFrame]) -> str:
    """Say what is better by the tests, with their p-values."""
    lines = []
    for key, values in scores.items():
        found = tests(values, key)
        names = [
            [f"{name} (p {'=' if row.p >= 0.001 else ''} {p_text(row.p)})".replace("  ", " ") for name, row in some.sort_values("p").iterrows()]
            for some in (
                found[(found["p"] < SIGNIFICANCE) & (found["sign"] > 0)],
                found[(found["p"] < SIGNIFICANCE) & (found["sign"] < 0)],
                found[found["p"] >= SIGNIFICANCE],
            )
        ]  # fmt: skip
        texts = (
            f"{OURS} is better than {', '.join(names[0])}" if names[0] else "",
            f"{OURS} is worse than {', '.join(names[1])}" if names[1] else "",
            f"no difference is shown to {', '.join(names[2])}" if names[2] else "",
        )
        least = min(holm([signed_rank(np.arange(1, len(values) + 1))] * len(found)))
        if least >= SIGNIFICANCE:
            texts += (
                f"{len(values)} tables could not show one: even a win on all has p = {p_text(least)}",
            )
        lines.append(f"- By {MEASURES[key]}, {'; '.join(filter(None, texts))}.")
    return "\n".join(lines)


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
    return "\n".join([*parts, large_losses(shown, values, measure)])


def large_losses(shown: pd.DataFrame, values: pd.DataFrame, measure: str) -> str:
    """Name the tables above 1,000 rows on which a forest or boosting is more than 1.5 points ahead."""
    n_rows = shown.groupby("table")["rows"].first()
    large = values.loc[n_rows.index[n_rows > LARGE_TABLE]]
    best = large[[name for name in (FOREST, BOOSTING) if name in large]].max(axis=1)
    over = (large[OURS] - best).sort_values()
    far = [f"{name} ({100 * d:+.1f})" for name, d in over.items() if d < -LARGE_TABLE_LOSS]
    return (
        f"- Of {len(large)} tables above {LARGE_TABLE:,} rows, {OURS} is more than "
        f"{100 * LARGE_TABLE_LOSS:.1f} points behind the better of {FOREST} and {BOOSTING} on "
        f"{', '.join(far) if far else 'none'}."
    )


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


def calibration(found: pd.DataFrame, pictures: Path) -> list[str]:
    """Return the calibration errors of all classifiers, those calibrated afterwards included, and a
    picture.
    """
    some = found[found["classes"] > 0]
    if "reliability" not in some:
        return []
    some = some[some["status"] != "ok"].pipe(
        lambda failed: some[~some["table"].isin(failed["table"])]
    )
    some = some[some["reliability"].notna()]
    slow = few_folds(some, list(METHODS))
    shown = shared(some, [name for name in (*METHODS, *CALIBRATED) if name not in slow])
    if shown.empty:
        return []
    scores = {key: by_table(shown, key) for key in ("ece", "log_loss")}
    name = f"{pictures.name}-reliability.png"
    draw_reliability(shown, pictures.with_name(name))
    parts = [CALIBRATION.format(n=len(scores["ece"])), ranked(scores)]
    if OURS in scores["ece"]:
        parts += [better({"ece": scores["ece"]})]
        after = [name for name in CALIBRATED if name in scores["ece"]]
        if after:
            parts += [better({"log_loss": scores["log_loss"][[OURS, *after]]})]
    return [*parts, f"![Reliability](../images/{pictures.parent.name}/{name})"]


def draw_reliability(shown: pd.DataFrame, path: Path) -> None:
    """Draw the share of right predictions against the largest probability, rows of all tables
    together.
    """
    figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
    for name, color in PICTURED.items():
        bins = shown.loc[shown["method"] == name, "reliability"]
        if len(bins):
            rows, top, right = np.sum([np.array(one) for one in bins], axis=0)
            kept = rows >= MIN_PICTURED
            ax.plot(
                top[kept] / rows[kept],
                right[kept] / rows[kept],
                "o-",
                color=color,
                ms=4,
                label=name,
            )
    ax.set(
        xlabel="largest probability", ylabel="share of right predictions", xlim=(0, 1), ylim=(0, 1)
    )
    ax.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


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


def end_text(frame: pd.DataFrame, halves: dict[str, Sequence[str]]) -> str:
    """Return the commands, versions and dates."""
    measured = [half for half, names in halves.items() if frame["table"].isin(names).any()]
    half = f" --half {measured[0]}" if len(measured) == 1 else ""
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
    n_folds = 1 + frame.loc[frame["seconds"] == 0, "fold"].max()
    folds = f" --folds {n_folds}" if n_folds < 10 else ""
    return (
        "## Commands\n\n    pip install lightgbm xgboost catboost pytabkit\n"
        f"    {RUN}{folds}{half}\n{''.join(tuned)}    "
        "python benchmarks/tables.py --write docs/measured/tables.md\n\nRun on "
        f"{dates[0]}{f' to {dates[-1]}' if dates[1:] else ''}, on two shared cores of an x86-64 "
        f"machine, with {'; or '.join(versions)}."
    )
