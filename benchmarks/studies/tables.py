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
from benchmarks.measure import FailedError, Kept, apart, command, memory, stamp, timed
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
    """Return scores on held-out rows, processor seconds, and by how much the process grew at most
    in the fit.
    """
    n_classes = data.table(name).n_classes
    X, y, X_test, y_test = data.table(name).split(N_FOLDS, fold)
    before, build = memory("VmRSS"), (METHODS | CALIBRATED)[method]
    with threadpool_limits(1):
        _, fit, predict = timed(fitted, build, X, y, n_classes)
        grown = (memory() - before) // 2**20
        _, prediction, predicted = timed(predict, X_test)
    cost = {"fit": round(fit, 3), "predict": round(prediction, 4), "memory": grown}
    return {"status": "ok"} | cost | scores(predicted, y_test, n_classes)


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
LARGE_TABLE, LARGE_TABLE_LOSS = 1000, 0.015
SIGNIFICANCE = 0.05
PICTURED = {OURS: "#0072B2", FOREST: "#D55E00", BOOSTING: "#009E73"}  # in the reliability picture
MIN_PICTURED = 20  # rows in a bin
MEASURES = {"accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC", "r2": "R2", "ece": "ECE"}
SIGNS = {"accuracy": 1, "log_loss": -1, "auc": 1, "r2": 1, "ece": -1}  # 1: the higher the better
RUN = "NEARKIN_DATA=folder python -m benchmarks.studies.tables"

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

TITLES = {
    "held-out": """\
## Tables on which nothing was chosen

Settings of {ours} were chosen on the other half of the tables alone. The halves were fixed before, by name: every
second one of the sorted names.""",
    "development": """\
## Tables on which settings were chosen

These support no claim: the settings of {ours} are those that did well here.""",
}
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
    some = "only the first was run" if small == 1 else f"the first {small} were run"
    return {
        "folds": "all were run" if small == N_FOLDS else some,
        "large_folds": f"the first{f' {large}' if large != 1 else ''} of these folds",
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
        ranks = ranks_by({measure: values})[measure].loc[list(values)].to_numpy()
        draw(list(values), ranks, difference, pictures.with_name(name))
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
        about = f"{label[0].upper()}{label[1:]}, the best in bold (rows x columns, classes; folds):"
        parts += [about, each(shown, values, measure)]
    return parts


def lacking(rest: pd.DataFrame, measure: str) -> list[str]:
    """Return the tables that some method lacks."""
    about = (
        "Left out above, as a method has no result (here {}, by the folds that each method has):"
    )
    if rest.empty:
        return []
    return [about.format(MEASURES[measure]), each(rest, by_table(rest, measure), measure)]


def by_size(shown: pd.DataFrame, scores: Scores) -> list[str]:
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
    """Return a line a method, with its costs."""
    cost = shown.groupby(["table", "method"])[["fit", "predict", "memory"]].mean().groupby("method")
    middle, most = cost.median(), cost.max()
    texts = {
        "median fit, s": middle["fit"].map("{:.2f}".format),
        "longest, s": most["fit"].map("{:.1f}".format),
        "median prediction, ms": (1000 * middle["predict"]).map("{:.0f}".format),
        "most memory, MB": most["memory"].map("{:.0f}".format),
    }
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
        p = {name: p_text(one) for name, one in found["p"].items()}
        p = {name: text if text.startswith("<") else f"= {text}" for name, text in p.items()}
        named = [[f"{name} (p {p[name]})" for name in names] for names in verdicts(found)]
        heads = f"{OURS} is better than", f"{OURS} is worse than", "no difference is shown to"
        texts = [
            f"{head} {', '.join(names)}" for head, names in zip(heads, named, strict=True) if names
        ]
        least = min(holm([signed_rank(np.arange(1, len(values) + 1))] * len(found)))
        if least >= SIGNIFICANCE:
            won = f"even a win on all has p = {p_text(least)}"
            texts += [f"{len(values)} tables could not show one: {won}"]
        lines.append(f"- By {MEASURES[key]}, {'; '.join(texts)}.")
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
    return "\n".join([*parts, large_losses(shown, values)])


def large_losses(shown: pd.DataFrame, values: pd.DataFrame) -> str:
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
