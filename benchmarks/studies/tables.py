"""Predictors for tables with their defaults: 48 tables, ten folds; written to
docs/measured/tables.md.

    pip install lightgbm xgboost catboost pytabkit
    NEARKIN_DATA=folder python -m benchmarks.studies.tables --folds 3 --half held-out
    python -m benchmarks.studies.tables write

Of tables with more than 2,000 rows all rows, but only the first two of the ten folds: CatBoost and
the networks would need hours. Every fit has a process of its own and one thread. Results are kept,
and the page is written from them, nothing by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks import data
from benchmarks.data import HALVES
from benchmarks.measure import FailedError, Kept, apart, command, stamp, timed
from benchmarks.report import (
    bold,
    critical_difference,
    draw,
    made,
    mean_ranks,
    p_text,
    save,
    signed_rank,
    signed_rank_tests,
    table,
    verdicts,
)
from benchmarks.studies.table_methods import (
    BOOSTING,
    CALIBRATED,
    FOREST,
    METHODS,
    OURS,
    REALMLP,
    TABM,
    TREES,
    fitted,
    log_loss,
    reliability,
)
from nearkin.statistics import holm

N_FOLDS = 10
SMALL = 2000  # rows; of larger tables two folds are run
PACKAGES = (
    "nearkin", "numpy", "scipy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost", "pytabkit", "torch",
)  # fmt: skip
RESULTS = Path("benchmarks", "results", "tables.jsonl")
KEYS = ("method", "table", "fold")


def mean_auc(P: np.ndarray, y: np.ndarray) -> float | None:
    """Return the mean AUC of one class against the rest, over the classes that are among the rows."""
    classes = [c for c in range(P.shape[1]) if 0 < np.sum(y == c) < len(y)]
    return float(np.mean([roc_auc_score(y == c, P[:, c]) for c in classes])) if classes else None


def scores(predicted: np.ndarray, y: np.ndarray, n_classes: int) -> dict[str, Any]:
    if not n_classes:  # both are summed over the folds of a table: R2 of few rows says little
        squares = np.sum((y - y.mean()) ** 2)
        return {"errors": float(np.sum((predicted - y) ** 2)), "squares": float(squares)}
    return {
        "accuracy": float(np.mean(predicted.argmax(axis=1) == y)),
        "log_loss": log_loss(predicted, y),
        "auc": mean_auc(predicted, y),
        "reliability": reliability(predicted, y),
    }


def measured(method: str, name: str, fold: int) -> dict[str, Any]:
    """Return scores on held-out rows, and the processor seconds of the fit."""
    n_classes = data.table(name).n_classes
    X, y, X_test, y_test = data.table(name).split(N_FOLDS, fold)
    with threadpool_limits(1):
        _, fit, predict = timed(fitted, (METHODS | CALIBRATED)[method], X, y, n_classes)
        predicted = predict(X_test)
    return {"status": "ok", "fit": round(fit, 3)} | scores(predicted, y_test, n_classes)


def keep(kept: Kept, job: dict[str, Any], limit: int, packages: Iterable[str], *work: Any) -> None:
    """Keep what a process of its own finds, or why it finds nothing."""
    try:
        found = apart(*work, limit=limit, start="fork")  # what is read is read once
    except FailedError as error:
        found = {"status": str(error)}
    kept.add(job, found | stamp(packages))


def measure(
    methods: tuple[str, ...] = (*METHODS, *CALIBRATED), tables: tuple[str, ...] = (), half: str = "",
    folds: int = N_FOLDS, limit: int = 3600, results: Path = RESULTS,
) -> None:  # fmt: skip
    """Measure what is not kept: half after half, fold after fold, so that a run may be stopped after
    any fold.
    """
    kept = Kept(results, *KEYS)
    for names in (HALVES[half],) if half else HALVES.values():
        names = [name for name in names if not tables or name in tables]
        for fold, method, name in product(range(folds), methods, names):
            one = data.table(name)
            is_run = len(one.X) <= SMALL or fold < 2
            is_meant = one.n_classes or method not in CALIBRATED
            if is_run and is_meant and (method, name, fold) not in kept.done:
                job = dict(zip(KEYS, (method, name, fold), strict=True))
                job |= {"rows": len(one.X), "columns": one.X.shape[1], "classes": one.n_classes}
                keep(kept, job, limit, PACKAGES, measured, method, name, fold)


def write(results: Path = RESULTS, page: Path = Path("docs", "measured", "tables.md")) -> None:
    """Write the page."""
    lines = Kept(results, *KEYS).lines
    page.write_text(document(lines, page.parent.parent / "images" / "tables") + "\n")


# the page

TIE = 1e-3  # a tenth of a point
LARGE_LOSS = 0.03
LARGE_TABLE = 1000  # rows
SIGNIFICANCE = 0.05
PICTURED = {OURS: "#0072B2", FOREST: "#D55E00", BOOSTING: "#009E73"}  # in the reliability picture
MIN_PICTURED = 20  # rows in a bin
MEASURES = {"accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC", "r2": "R2", "ece": "ECE"}
SIGNS = {"accuracy": 1, "log_loss": -1, "auc": 1, "r2": 1, "ece": -1}  # 1: the higher the better
RUN = "NEARKIN_DATA=folder python -m benchmarks.studies.tables"

HEAD = """\
# Predictors for tables

`NCAClassifier` and `NCARegressor` (here "{ours}") against the predictors that people use for tables, on {n_tables} tables
with columns of numbers and text: public ones, and sets of scikit-learn.

- Stratified folds with a fixed seed, the same for all methods: of ten {folds}, of tables with more than 2,000 rows
  {large_folds}. A method that fails on a table has the last rank there, and means are of the tables on which none fails.
- Every method has its defaults, but for the SVM, whose C and gamma three inner folds choose. "linear" is logistic or
  ridge regression; {realmlp} and {tabm} have the tuned defaults of pytabkit. Foundation models are not in it. Columns
  are encoded as each method's documentation recommends.
- Log loss counts probabilities below 0.0001 as 0.0001; AUC is the mean of one class against the rest. p: Wilcoxon's
  signed-rank test over the tables, by Holm's correction for all rivals. Seconds are those of one thread.
- `write` prints every table."""

TITLES = {
    "held-out": """\
## Tables on which nothing was chosen

Settings of {ours} were chosen on the other half of the tables alone, every second one by name.""",
    "development": """\
## Tables on which settings were chosen

These support no claim: the settings of {ours} are those that did well here.""",
}
CALIBRATION = """\
### Calibration: {n} tables

The expected calibration error (ECE; Guo et al., ICML 2017) of 15 bins of the largest probability; small tables have some
points of it even if all probabilities are right. "Isotonic" and "temperature": `CalibratedClassifierCV`, five inner folds."""
NEMENYI = """\
Mean ranks that are further apart than {difference:.1f} differ significantly at 5 % (Nemenyi)."""


Scores = dict[str, pd.DataFrame]  # of measures, the first by which methods are sorted


def document(lines: Sequence[dict[str, Any]], folder: Path) -> str:
    """Return the page, and write its pictures into the folder."""
    frame = pd.DataFrame(lines).drop_duplicates(list(KEYS), keep="last")
    n_tables = frame["table"].nunique()
    parts = [
        HEAD.format(ours=OURS, realmlp=REALMLP, tabm=TABM, n_tables=n_tables, **folds_text(frame))
    ]
    for half, names in HALVES.items():
        found = frame[frame["table"].isin(names)]
        if len(found):
            parts += [
                TITLES[half].format(ours=OURS),
                *half_text(found, list(METHODS), folder / half),
            ]
            parts += calibration(found, folder / half)
    return "\n\n".join([*parts, end_text(frame)])


def folds_text(frame: pd.DataFrame) -> dict[str, str]:
    """Say how many folds of tables with up to 2,000 rows, and of larger ones, were run."""
    whole = frame[frame["method"] != OURS]
    n_folds = whole.groupby(whole["rows"] > SMALL)["fold"].nunique()
    small, large = n_folds.get(False, 0), n_folds.get(True, 0)
    return {
        "folds": "all" if small == N_FOLDS else f"the first {small}",
        "large_folds": f"the first {large}",
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
    return [*parts, missing_text(found, methods)]


def few_folds(found: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return the methods with fewer than three quarters of the folds of that with the most."""
    n_fits = found[found["status"] == "ok"].groupby("method").size()
    return [name for name in methods if 0 < n_fits.get(name, 0) < 0.75 * n_fits.max()]


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


def added(folds: pd.Series) -> np.ndarray:
    """Return rows, sums of the largest probability, and hits, by bins, over folds."""
    return np.sum([np.array(bins) for bins in folds], axis=0)


def calibration_error(folds: pd.Series) -> float:
    """Return the expected calibration error of bins that are added over folds."""
    rows, top, right = added(folds)
    return float(np.abs(top - right).sum() / rows.sum())


def ranks_by(scores: Scores) -> pd.DataFrame:
    """Return the mean ranks by each measure, sorted by the first; a method that failed on a table is the
    last there.
    """
    found = {
        key: mean_ranks((SIGNS[key] * values).fillna(-np.inf)) for key, values in scores.items()
    }
    main = next(iter(scores))
    return pd.DataFrame(found, scores[main].columns).sort_values(main, kind="stable")


def section(title: str, shown: pd.DataFrame, main: Sequence[str], pictures: Path) -> list[str]:
    """Return ranks and means, a picture of each measure, wins and losses, and print every table."""
    scores = {measure: by_table(shown, measure) for measure in main}
    n_tables, n_methods = scores[main[0]].shape
    difference = critical_difference(n_methods, n_tables)
    parts = [
        f"{title}: {n_tables} tables",
        overall(shown, scores),
        NEMENYI.format(difference=difference),
    ]
    for measure, values in scores.items():
        name = f"{pictures.name}-{MEASURES[measure].replace(' ', '-')}.png".lower()
        ranks = ranks_by({measure: values})[measure].loc[list(values)].to_numpy()
        draw(list(values), ranks, difference, pictures.with_name(name))
        picture = f"../images/{pictures.parent.name}/{name}"
        parts += [f"![Mean ranks by {MEASURES[measure]}, with the critical difference]({picture})"]
    if OURS in scores[main[0]]:
        parts += [
            f"Tables on which {OURS} wins, ties (less than {TIE} apart) and loses{power(scores[main[0]])}:",
            wins(scores),
            losses(shown, scores[main[0]], MEASURES[main[0]]),
        ]
    for measure, values in scores.items():
        print(f"\n{MEASURES[measure]} (rows x columns, classes; folds):\n")
        print(each(shown, values, measure))
    return parts


def ranked(
    scores: Scores,
    more: Sequence[str] = (),
    header: Sequence[str] = (),
    costs: pd.DataFrame | None = None,
) -> str:
    """Return a line a method with its ranks and means, sorted by the first measure; `more` measures have
    means alone, and costs are texts.
    """
    ranks = ranks_by(scores)
    means = {key: values.dropna().mean() for key, values in (scores | dict(more)).items()}
    rows = [
        [
            name,
            *(f"{rank:.2f}" for rank in ranks.loc[name]),
            *(cell(values[name], key) for key, values in means.items()),
            *([] if costs is None else costs.loc[name]),
        ]
        for name in ranks.index
    ]
    places = [f"rank, {MEASURES[key]}" for key in scores]
    return table(["method", *places, *(f"mean {MEASURES[key]}" for key in means), *header], rows)


def overall(shown: pd.DataFrame, scores: Scores) -> str:
    """Return a line a method, with its time, and its ranks on small and on large tables."""
    fit = shown.groupby(["table", "method"])["fit"].mean().groupby("method").median()
    texts = {"median fit, s": fit.map("{:.2f}".format)}
    rows, main = shown.groupby("table")["rows"].first(), next(iter(scores))
    for title, some in (
        (f"up to {LARGE_TABLE:,} rows", rows.index[rows <= LARGE_TABLE]),
        ("above", rows.index[rows > LARGE_TABLE]),
    ):
        if len(some):
            part = ranks_by({main: scores[main].loc[some]})[main]
            texts[f"rank, {MEASURES[main]}, {title}: {len(some)}"] = part.map("{:.2f}".format)
    more = [("auc", by_table(shown, "auc"))] if "accuracy" in scores else []
    return ranked(scores, more, list(texts), pd.DataFrame(texts))


def cell(value: float, measure: str) -> str:
    return f"{100 * value:.1f} %" if measure == "accuracy" else f"{value:.3f}"


def wins(scores: Scores) -> str:
    """Return how many tables each other method loses, ties and wins, and the p-value."""
    found = {key: signed_rank_tests(SIGNS[key] * values, OURS) for key, values in scores.items()}
    rows = []
    for name in next(iter(found.values())).index:
        cells = [name]
        for key, values in scores.items():
            d = SIGNS[key] * (values[OURS] - values[name])
            cells += [f"{sum(d >= TIE)} / {sum(abs(d) < TIE)} / {sum(d <= -TIE)}"]
            cells += [p_text(found[key].loc[name, "p"])]
        rows.append(cells)
    return table(["against", *(text for key in scores for text in (MEASURES[key], "p"))], rows)


def better(scores: Scores) -> str:
    """Say what is better by the tests, with their p-values."""
    lines = []
    for key, values in scores.items():
        found = signed_rank_tests(SIGNS[key] * values, OURS).sort_values("p", kind="stable")
        above, below, rest = verdicts(found)
        p = found["p"]
        texts = [
            f"{head} {', '.join(f'{name} ({p_text(p[name])})' for name in names)}"
            for head, names in (("better than", above), ("worse than", below))
            if names
        ]
        if rest:
            least = p_text(p[rest].min())
            texts.append(f"not shown to differ from {len(rest)} others (p from {least})")
        lines.append(f"- By {MEASURES[key]} {OURS} is {'; '.join(texts)}.")
    return "\n".join(lines)


def power(values: pd.DataFrame) -> str:
    """Return, where so few tables cannot show a difference, the least possible p-value."""
    n_rivals = values.shape[1] - 1
    least = min(holm([signed_rank(np.arange(1, len(values) + 1))] * n_rivals))
    return f" (even a win on all has p = {p_text(least)})" if least >= SIGNIFICANCE else ""


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
            f"{name} ({100 * d:.1f}{fold_error(shown, name, best.loc[name].idxmax())})"
            for name, d in over.items()
            if d < -LARGE_LOSS
        ]
        named = f"more than 3 points behind on {', '.join(large)}"
        parts.append(
            f"- {OURS} against {title}, by {measure}: in the mean {100 * over.mean():+.1f} points, "
            f"at worst {100 * over.iloc[0]:+.1f} ({over.index[0]}); "
            f"{named if large else 'never more than 3 points behind'}."
        )
    return "\n".join(parts)


def fold_error(shown: pd.DataFrame, name: str, rival: str) -> str:
    """Return the standard error of a difference in accuracy over the folds of a table, as text."""
    some = shown[shown["table"] == name]
    folds = some.pivot_table(index="fold", columns="method", values="accuracy", dropna=False)
    if folds.empty or folds[rival].isna().any() or len(folds) < 3:
        return ""
    return f", standard error {100 * (folds[OURS] - folds[rival]).sem():.1f}"


def each(shown: pd.DataFrame, values: pd.DataFrame, measure: str) -> str:
    """Return a row a table."""
    facts = shown.groupby("table")[["rows", "columns", "classes"]].first()
    n_folds = shown.groupby("table")["fold"].nunique()
    rows = []
    for name, of_table in values.iterrows():
        n, p, classes = facts.loc[name]
        about = f"{name} ({n:,} x {p}{f', {classes}' if classes else ''}; {n_folds[name]})"
        cells = ["-" if np.isnan(value) else f"{value:.3f}" for value in of_table]
        rows.append([about, *bold(cells, of_table, np.nanmax if SIGNS[measure] > 0 else np.nanmin)])
    return table(["table", *values], rows)


def calibration(found: pd.DataFrame, pictures: Path) -> list[str]:
    """Return the calibration errors of all classifiers, those calibrated afterwards included, and a
    picture.
    """
    some = found[found["classes"] > 0]
    if "reliability" not in some:
        return []
    some = some[~some["table"].isin(some.loc[some["status"] != "ok", "table"])]
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
            rows, *sums = added(bins)
            top, right = (one[rows >= MIN_PICTURED] / rows[rows >= MIN_PICTURED] for one in sums)
            ax.plot(top, right, "o-", color=color, ms=4, label=name)
    labels = {"xlabel": "largest probability", "ylabel": "share of right predictions"}
    ax.set(**labels, xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False)
    save(figure, path)


def missing_text(found: pd.DataFrame, methods: Sequence[str]) -> str:
    """Say what was not run, failed or was too slow."""
    known = found.groupby("table")["fold"].agg(set)
    lines = [] if len(found) else ["- all methods: not run"]
    for name in methods:
        one = found[found["method"] == name]
        done = one.groupby("table")["fold"].agg(set)
        lack = [n for key, folds in known.items() if (n := len(folds - done.get(key, set())))]
        lines += [f"- {name}: not run on {sum(lack)} folds of {len(lack)} tables"] * bool(lack)
        failed = one[one["status"] != "ok"].groupby(["table", "status"]).size()
        lines += [f"- {name}: {key}, {n} folds: {status}" for (key, status), n in failed.items()]
    return "\n".join(["Not run, failed or too slow:", "", *(lines or ["- nothing"])])


def end_text(frame: pd.DataFrame) -> str:
    """Return the commands, versions and dates."""
    halves = [half for half, names in HALVES.items() if frame["table"].isin(names).any()]
    n_folds = 1 + frame["fold"].max()
    options = f" --folds {n_folds}" if n_folds < N_FOLDS else ""
    options += f" --half {halves[0]}" if len(halves) == 1 else ""
    return (
        "## Commands\n\n    pip install lightgbm xgboost catboost pytabkit\n"
        f"    {RUN}{options}\n    python -m benchmarks.studies.tables write\n\n"
        f"{made(frame, 'two shared cores of an x86-64 machine')}"
    )


if __name__ == "__main__":
    command(measure, write)
