"""What a decision needs beside the label: sets, intervals, labels to look at, unknown classes, drift,
time and memory; written to docs/measured/decisions.md.

    pip install lightgbm xgboost catboost pytabkit mapie quantile-forest cleanlab pyod
    NEARKIN_DATA=folder python -m benchmarks.studies.decisions
    NEARKIN_DATA=folder python -m benchmarks.studies.decisions --sections sets intervals
    python -m benchmarks.studies.decisions write

Tables, halves and processes are those of tables.py: every job has a process of its own and one
thread. Results are kept, and the page is written from them, nothing by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from mapie.classification import SplitConformalClassifier
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from quantile_forest import RandomForestQuantileRegressor
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks import data
from benchmarks.data import HALVES, Table, folds_of
from benchmarks.measure import Kept, command, memory
from benchmarks.report import (
    bold,
    failed,
    made,
    mean_ranks,
    p_text,
    signed_rank,
    signed_rank_tests,
    table,
)
from benchmarks.studies.table_methods import (
    BOOSTING,
    FOREST,
    METHODS,
    OURS,
    AsCategories,
    forest,
    one_hot,
    words_of,
)
from benchmarks.studies.tables import PACKAGES, SMALL, keep
from nearkin import NCAClassifier, NCARegressor, label_issues

N_FOLDS = 5
COVERAGE, LEAST_COVERAGE, MANY_ROWS = 0.9, 0.85, 300
LEVELS = np.arange(1, 20) / 20
MAPIE = f"{FOREST} + MAPIE"
QUANTILE_FOREST, QUANTILE_BOOSTING = "quantile-forest", f"{BOOSTING}, quantiles"
FLIPPED = (5, 10, 20)  # percent of the labels
CLEANLAB_MODELS = {
    f"cleanlab, {FOREST}": FOREST,
    "cleanlab, logistic regression": "linear",
    f"cleanlab, {BOOSTING}": BOOSTING,
}
ROWS = 1000  # of a table at most, where labels are flipped or classes left out
LEFT_OUT = 3  # classes of a table at most, the most frequent ones, one after the other
RANDOM_DROPS = 3
N_DRIFT_FITS, DRIFT_DRAWS = 10, 20
DRIFT_ROWS, MOVED = 2000, 0.5  # the shift of a column, in standard deviations
SYNTHETIC = "synthetic"
# of the folder of data, beside the tables of classes of the held-out half: twenty in all
MORE_LABELLED = (
    "balance_scale", "breast_cancer_wisconsin_original", "ionosphere", "sonar", "mushroom",
)  # fmt: skip
SIZES = {"NCAClassifier": (1000, 20_000, 200_000), "NCARegressor": (1000, 20_000)}
N_FEATURES = 20
RESULTS = Path("benchmarks", "results", "decisions.jsonl")


class Job(NamedTuple):
    """A method on a table, and which fold, share, class or draw of it."""

    method: str
    table: str
    part: int


KEYS = ("section", "half", *Job._fields)


def labelled(name: str) -> Table:
    """Return a table of classes, at most 1,000 rows of it."""
    if name in MORE_LABELLED:
        found = data.archive(name)
        X, y = pd.DataFrame(found["X"].astype(float)).add_prefix("x"), found["y"]
    else:
        X, y = data.table(name).X, data.table(name).y
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:ROWS])
    labels, codes = np.unique(y[rows], return_inverse=True)
    return Table(name, X.iloc[rows].reset_index(drop=True), codes, len(labels))


def fold_jobs(methods: list[str], classify: bool, half: str) -> Iterator[Job]:
    for name in HALVES[half]:
        table = data.table(name)
        if bool(table.n_classes) == classify:
            for fold in range(N_FOLDS if len(table.y) <= SMALL else 1):
                yield from (Job(method, name, fold) for method in methods)


# sets and intervals


def predict_sets(job: Job) -> dict[str, Any]:
    """Return coverage and sizes of the sets of a fold, as sums."""
    X, y, X_test, y_test = data.table(job.table).split(N_FOLDS, job.part)
    known, codes = np.unique(y, return_inverse=True)
    if job.method == OURS:
        model = NCAClassifier(random_state=0).fit(X, codes)
        usual, allowed = (
            set_sums(model.predict_set(X_test, coverage=COVERAGE, allow_empty=empty), known, y_test)
            for empty in (False, True)
        )
        return {"rows": len(y_test)} | usual | {"empty_allowed": allowed}
    train, rest = folds_of(X, codes, N_FOLDS)[0]
    model = forest(True, words_of(X)).fit(X.iloc[train], codes[train])
    conformal = SplitConformalClassifier(model, confidence_level=COVERAGE, random_state=0)
    conformal.conformalize(X.iloc[rest], codes[rest])
    return {"rows": len(y_test)} | set_sums(
        conformal.predict_set(X_test)[1][:, :, 0], known, y_test
    )


def set_sums(sets: np.ndarray, known: np.ndarray, y: np.ndarray) -> dict[str, int]:
    """Return how many sets of known classes (n, n_known) cover the label, their size, the empty
    ones.
    """
    sizes = sets.sum(axis=1)
    return {
        "covered": int(sets[known == y[:, None]].sum()),
        "size": int(sizes.sum()),
        "empty": int(np.sum(sizes == 0)),
    }


def quantiles(job: Job, X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame) -> np.ndarray:
    """Return the quantiles of the 19 levels, (n, 19)."""
    words = words_of(X)
    if job.method == QUANTILE_FOREST:
        model = make_pipeline(
            one_hot(words, scale=False), RandomForestQuantileRegressor(random_state=0)
        )
        return model.fit(X, y).predict(X_test, quantiles=list(LEVELS))
    columns = []
    for level in LEVELS:
        boosting = HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
        columns.append(make_pipeline(AsCategories(), boosting).fit(X, y).predict(X_test))
    return np.stack(columns, axis=1)


def predict_intervals(job: Job) -> dict[str, Any]:
    """Return coverage and widths of the intervals of a fold and the pinball loss, as sums."""
    X, y, X_test, y_test = data.table(job.table).split(N_FOLDS, job.part)
    if job.method == OURS:
        model = NCARegressor(random_state=0).fit(X, y)
        Q = model.predict_quantiles(X_test, LEVELS)
        low, high = model.predict_interval(X_test, coverage=COVERAGE).T
    else:
        Q = quantiles(job, X, y, X_test)
        low, high = Q[:, 0], Q[:, -1]  # 5 % and 95 %
    over = y_test[:, None] - Q
    unit = data.table(job.table).y.std()
    return {
        "rows": len(y_test),
        "covered": int(np.sum((low <= y_test) & (y_test <= high))),
        "width": float(np.sum(high - low) / unit),
        "pinball": float(np.maximum(LEVELS * over, (LEVELS - 1) * over).mean(axis=1).sum() / unit),
        "below": [int(np.sum(y_test <= q)) for q in Q.T],
    }


# labels


def label_jobs(half: str) -> Iterator[Job]:
    names = [name for name in HALVES[half] if data.table(name).n_classes]
    for name in (*names, *(MORE_LABELLED if half == "held-out" else ())):
        for percent in FLIPPED:
            yield from (Job(method, name, percent) for method in (OURS, *CLEANLAB_MODELS))


def doubts(method: str, X: pd.DataFrame, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of every row how doubtful its label is, and which rows are flagged."""
    flagged = np.zeros(len(labels), dtype=bool)
    if method == OURS:
        issues = label_issues(X, labels)
        score = np.empty(len(labels))
        score[issues.rows] = np.arange(len(labels), 0, -1)
        flagged[issues.rows[: issues.n_issues]] = True
        return score, flagged
    _, codes = np.unique(labels, return_inverse=True)
    model = METHODS[CLEANLAB_MODELS[method]](True, words_of(X))
    inner = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    P = cross_val_predict(model, X, codes, cv=inner, method="predict_proba")
    flagged[find_label_issues(codes, P, n_jobs=1)] = True
    return -get_label_quality_scores(codes, P), flagged


def forest_accuracy(
    X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray
) -> float:
    return float(np.mean(forest(True, words_of(X)).fit(X, y).predict(X_test) == y_test))


def find_labels(job: Job) -> dict[str, Any]:
    """Return the average precision of the ranking, and what a forest gains from dropping rows."""
    table = labelled(job.table)
    train, test = table.folds(N_FOLDS)[0]
    X, y = table.X.iloc[train].reset_index(drop=True), table.y[train]
    X_test, y_test = table.X.iloc[test], table.y[test]
    rng, given = np.random.default_rng(job.part), y.copy()
    rows = rng.permutation(len(y))[: round(len(y) * job.part / 100)]
    given[rows] = (y[rows] + rng.integers(1, table.n_classes, len(rows))) % table.n_classes
    start = time.process_time()
    score, flagged = doubts(job.method, X, given)
    seconds = time.process_time() - start
    at_random = []
    for _ in range(RANDOM_DROPS):
        kept = np.sort(rng.permutation(len(y))[flagged.sum() :])
        at_random.append(forest_accuracy(X.iloc[kept], given[kept], X_test, y_test))
    return {
        "rows": len(y),
        "classes": table.n_classes,
        "precision": float(average_precision_score(given != y, score)),
        "flagged": int(flagged.sum()),
        "hits": int(np.sum(flagged & (given != y))),
        "all": forest_accuracy(X, given, X_test, y_test),
        "dropped": forest_accuracy(X[~flagged], given[~flagged], X_test, y_test),
        "at_random": float(np.mean(at_random)),
        "seconds": round(seconds, 2),
    }


# rows of an unknown class, and drift

DETECTORS: dict[str, Callable[[], Any]] = {
    "pyod KNN": KNN,
    "pyod IForest": lambda: IForest(random_state=0),
}


def unknown_jobs(half: str) -> Iterator[Job]:
    for name in HALVES[half]:
        if data.table(name).n_classes > 2:
            for place in range(min(LEFT_OUT, data.table(name).n_classes)):
                yield from (Job(method, name, place) for method in (OURS, *DETECTORS))


def find_unknown(job: Job) -> dict[str, Any]:
    """Return the AUROC of an unfamiliar row being one of the class that was left out."""
    table = labelled(job.table)
    left_out = np.argsort(-np.bincount(table.y), kind="stable")[job.part]
    others = np.flatnonzero(table.y != left_out)
    train, test = folds_of(others, table.y[others], N_FOLDS)[0]
    new = np.concatenate([others[test], np.flatnonzero(table.y == left_out)])
    X, X_new = (table.X.iloc[rows].reset_index(drop=True) for rows in (others[train], new))
    if job.method == OURS:
        model = NCAClassifier(random_state=0).fit(X, table.y[others[train]])
        score = -model.familiarity(X_new)
    else:
        numbers = one_hot(words_of(X), scale=True).fit(X)
        detector = DETECTORS[job.method]().fit(numbers.transform(X))
        score = detector.decision_function(numbers.transform(X_new))
    return {
        "rows": len(X),
        "unknown": int(np.sum(table.y == left_out)),
        "auroc": float(roc_auc_score(table.y[new] == left_out, score)),
    }


def drift_jobs(half: str) -> Iterator[Job]:
    names = [
        name
        for name in HALVES[half]
        if len(data.table(name).y) > 3 * DRIFT_ROWS and not words_of(data.table(name).X)
    ]
    for name in (SYNTHETIC, *names):
        yield from (Job(OURS, name, fit) for fit in range(N_DRIFT_FITS))


def drift_table(job: Job) -> Table:
    if job.table != SYNTHETIC:
        return data.table(job.table)
    X, y = make_classification(
        30_000, 10, n_informative=6, n_classes=3, random_state=job.part, flip_y=0.05
    )
    return Table(job.table, pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]), y, 3)


def find_drift(job: Job) -> dict[str, Any]:
    """Return how often tables of 2,000 rows raise an alarm, as they are and with a moved column."""
    table = drift_table(job)
    rng = np.random.default_rng(job.part)
    order = rng.permutation(len(table.y))
    train, rest = order[:DRIFT_ROWS], order[DRIFT_ROWS:]
    X = table.X.iloc[train].reset_index(drop=True)
    model = (NCAClassifier if table.n_classes else NCARegressor)(random_state=0)
    model.fit(X, table.y[train])
    units = table.X.std()
    varying = [name for name in table.X if units[name] > 0]
    alarms, moved, named = 0, 0, 0
    for _ in range(DRIFT_DRAWS):
        rows = table.X.iloc[rng.choice(rest, DRIFT_ROWS, replace=False)].reset_index(drop=True)
        alarms += model.drift(rows).has_drifted
        column = varying[rng.integers(len(varying))]
        found = model.drift(rows.assign(**{column: rows[column] + MOVED * units[column]}))
        moved += found.has_drifted
        named += column in found.moved
    return {"draws": DRIFT_DRAWS, "alarms": alarms, "moved": moved, "named": named}


# time and memory


def cost_jobs(half: str) -> Iterator[Job]:
    for method, sizes in SIZES.items():
        yield from (Job(method, f"{n:,} x {N_FEATURES}", n) for n in sizes)


def measure_cost(job: Job) -> dict[str, Any]:
    """Return processor seconds of a fit and of 1,000 predictions, and by how much the process
    grew.
    """
    before, n = memory("VmRSS"), job.part
    if job.method == "NCAClassifier":
        X, y = make_classification(
            n + 1000, N_FEATURES, n_informative=10, n_classes=3, flip_y=0.05, random_state=0
        )
    else:
        X, y = make_regression(n + 1000, N_FEATURES, n_informative=10, noise=10, random_state=0)
    model = {"NCAClassifier": NCAClassifier, "NCARegressor": NCARegressor}[job.method](
        random_state=0
    )
    start = time.process_time()
    model.fit(X[:n], y[:n])
    fit = time.process_time() - start
    start = time.process_time()
    score = model.score(X[n:], y[n:])
    return {
        "fit": round(fit, 2),
        "predict": round(time.process_time() - start, 3),
        "memory": (memory() - before) // 2**20,
        "score": float(score),
    }


JOBS: dict[str, tuple[Callable[[str], Iterator[Job]], Callable[[Job], dict[str, Any]]]] = {
    "sets": (lambda half: fold_jobs([OURS, MAPIE], True, half), predict_sets),
    "intervals": (
        lambda half: fold_jobs([OURS, QUANTILE_FOREST, QUANTILE_BOOSTING], False, half),
        predict_intervals,
    ),
    "labels": (label_jobs, find_labels),
    "unknown": (unknown_jobs, find_unknown),
    "drift": (drift_jobs, find_drift),
    "cost": (cost_jobs, measure_cost),
}


def measured(section: str, job: Job) -> dict[str, Any]:
    with threadpool_limits(1):
        return {"status": "ok"} | JOBS[section][1](job)


def measure(
    sections: tuple[str, ...] = tuple(JOBS), methods: tuple[str, ...] = (), half: str = "held-out",
    limit: int = 900, results: Path = RESULTS,
) -> None:  # fmt: skip
    """Measure what is not kept."""
    kept = Kept(results, *KEYS)
    packages = (*PACKAGES, "mapie", "quantile-forest", "cleanlab", "pyod")
    for section in sections:
        for job in JOBS[section][0](half):
            if (not methods or job.method in methods) and (section, half, *job) not in kept.done:
                named = {"section": section, "half": half} | job._asdict()
                keep(kept, named, limit, packages, measured, section, job)


def write(results: Path = RESULTS, page: Path = Path("docs", "measured", "decisions.md")) -> None:
    """Write the page."""
    page.write_text(document(Kept(results, *KEYS).lines) + "\n")


# the page

OURS_EMPTY = f"{OURS}, empty allowed"

HEAD = f"""\
# Decisions: sets, intervals, labels, drift

What `NCAClassifier` and `NCARegressor` ("{OURS}") say beside the label, against packages that people use for it; tables and
halves of [Tables](tables.md), all methods with their defaults. p: Wilcoxon's signed-rank test over the tables, by Holm's
correction for the rivals. `write` prints every table."""

TITLES = {
    "held-out": "## Tables on which nothing was chosen",
    "development": "## Tables on which settings were chosen\n\nThese support no claim.",
}
SETS = f"""\
### Sets of labels

`NCAClassifier.predict_set(X, coverage={COVERAGE})` against split-conformal sets of MAPIE with a {FOREST} (score "lac"), whose
sets may be empty, ours only with `allow_empty=True`; sizes once more with an empty set as one label. Five stratified folds,
of tables with more than 2,000 rows one."""
INTERVALS = f"""\
### Intervals and quantiles

`NCARegressor.predict_quantiles` at the levels .05, .10, ..., .95 and `predict_interval(X, coverage={COVERAGE})` against
RandomForestQuantileRegressor of quantile-forest and HistGradientBoostingRegressor(loss="quantile"), fitted once for each
level. Pinball loss and width are in standard deviations of the target; level error is the mean distance between a level
and the share of rows below its quantile."""
LABELS = """\
### Labels that are wrong

5, 10 or 20 % of the labels of at most 800 rows are replaced by another class at random, on {n} tables (five of them sets of
the papers). Average precision of the ranking by `label_issues` and by cleanlab, with probabilities of five folds:"""
UNKNOWN = """\
### Rows of a class that was left out

The three most frequent classes are left out of the training rows, one after the other. AUROC of 1 - `familiarity(X)` on a
fifth of the other rows and all of the class, against pyod (one-hot, standardized), {n} tables:"""
DRIFT = f"""\
### Drift

`model.drift(X)` on 2,000 rows, of a model of 2,000 others: {N_DRIFT_FITS} fits and {DRIFT_DRAWS} tables for each, as they are
drawn, then with a column of numbers moved by half its standard deviation. The level is 5 %."""
COST = """\
### Time and memory

Processor seconds of one thread; 20 columns of `make_classification` (three classes) or `make_regression`; memory is by how
much the process grew."""

RUN = "NEARKIN_DATA=folder python -m benchmarks.studies.decisions"


def document(lines: Sequence[dict[str, Any]]) -> str:
    frame = pd.DataFrame(lines).drop_duplicates(list(KEYS), keep="last")
    parts = [HEAD]
    for half, title in TITLES.items():
        some = frame[frame["half"] == half]
        if len(some):
            parts += [title]
            for name, text in SECTIONS.items():
                part = some[some["section"] == name]
                done = part[part["status"] == "ok"].dropna(axis=1, how="all")
                parts += [*(text(done) if len(done) else []), *failed(part, "method", "table")]
    return "\n\n".join([*parts, end_text(frame)])


def complete(done: pd.DataFrame) -> pd.DataFrame:
    """Return what all methods have: the same folds, shares or classes of a table."""
    n_methods = done["method"].nunique()
    return done[done.groupby(["table", "part"])["method"].transform("nunique") == n_methods]


def sums(done: pd.DataFrame, *keys: str) -> list[pd.DataFrame]:
    """Return means over rows of what was summed: tables by methods."""
    added = done.groupby(["table", "method"])[["rows", *keys]].sum()
    return [ours_first((added[key] / added["rows"]).unstack()) for key in keys]


def ours_first(values: pd.DataFrame) -> pd.DataFrame:
    return values[sorted(values, key=lambda name: name != OURS)]


def placed(values: pd.DataFrame, ours: str = OURS) -> dict[str, list[str]]:
    """Return the mean rank of every method, the higher the better, and the p-value against ours."""
    p = signed_rank_tests(values, ours)["p"].map(p_text) if ours in values else {}
    return {
        name: [f"{rank:.2f}", p.get(name, "")]
        for name, rank in zip(values, mean_ranks(values), strict=True)
    }


def sets_text(done: pd.DataFrame) -> list[str]:
    done = complete(done)
    ours = done[done["method"] == OURS]
    allowed = pd.DataFrame(list(ours.get("empty_allowed", [])), ours.index)
    done = pd.concat([done, ours.assign(method=OURS_EMPTY, **allowed)])
    covered, size, empty = sums(done, "covered", "size", "empty")
    n_rows = tested_rows(done)
    cells: dict[str, list[str]] = {name: [] for name in size}
    for values, one in ((size, OURS_EMPTY), (size + empty, OURS)):
        values = values[[name for name in (one, MAPIE) if name in values]]
        places = placed(-values, one)
        for name in size:
            known = name in values
            cells[name] += [f"{values[name].mean():.2f}", *places[name]] if known else [""] * 3
    rows = [
        [
            name,
            *coverage_cells(covered[name], n_rows),
            f"{100 * empty[name].mean():.1f} %",
            *cells[name],
        ]
        for name in size
    ]
    header = ["empty", "mean size", "rank", "p", "with empty as 1", "rank", "p"]
    print_pairs("Coverage and mean size (tested rows)", covered, size, n_rows)
    return [
        SETS,
        table(["method", *COVERAGE_HEADER, *header], rows),
    ]


COVERAGE_HEADER = [
    "mean coverage",
    "least",
    f"tables with more than {MANY_ROWS} rows below {100 * LEAST_COVERAGE:.0f} %",
]


def tested_rows(done: pd.DataFrame) -> pd.Series:
    return done.groupby(["table", "method"])["rows"].sum().unstack().max(axis=1)


def coverage_cells(covered: pd.Series, n_rows: pd.Series) -> list[str]:
    low = covered[(covered < LEAST_COVERAGE) & (n_rows[covered.index] > MANY_ROWS)]
    return [
        f"{100 * covered.mean():.1f} %",
        f"{100 * covered.min():.1f} % ({covered.idxmin()})",
        ", ".join(f"{name} ({100 * value:.1f})" for name, value in low.items()) or "none",
    ]


def print_pairs(title: str, covered: pd.DataFrame, size: pd.DataFrame, n_rows: pd.Series) -> None:
    rows = [
        [
            f"{name} ({n_rows[name]:,.0f})",
            *(f"{100 * covered.loc[name, m]:.1f} %, {size.loc[name, m]:.3f}" for m in size),
        ]
        for name in size.index
    ]
    print(f"\n{title}:\n\n{table(['table', *size], rows)}")


def intervals_text(done: pd.DataFrame) -> list[str]:
    done = complete(done)
    covered, width, pinball = sums(done, "covered", "width", "pinball")
    n_rows = tested_rows(done)
    places, widths = placed(-pinball), placed(-width)
    rows = [
        [
            name,
            f"{pinball[name].mean():.4f}",
            *places[name],
            f"{100 * level_error(done[done['method'] == name], pinball.index):.1f} %",
            *coverage_cells(covered[name], n_rows),
            f"{width[name].mean():.2f}",
            widths[name][0],
        ]
        for name in pinball
    ]
    header = ["mean pinball loss", "rank", "p", "level error", *COVERAGE_HEADER]
    print_scores("Pinball loss", pinball, np.nanmin)
    print_pairs("Coverage and mean width of the interval (tested rows)", covered, width, n_rows)
    return [INTERVALS, table(["method", *header, "mean width", "rank, width"], rows)]


def level_error(done: pd.DataFrame, tables: pd.Index) -> float:
    """Return the mean distance between levels and shares of rows below, over tables."""
    errors = []
    for name in tables:
        some = done[done["table"] == name]
        shares = np.sum([np.array(below) for below in some["below"]], axis=0) / some["rows"].sum()
        errors.append(np.abs(shares - LEVELS).mean())
    return float(np.mean(errors))


def labels_text(done: pd.DataFrame) -> list[str]:
    done = complete(done)
    values = ours_first(
        done.pivot_table(index=["table", "part"], columns="method", values="precision")
    )
    by_table = values.groupby("table").mean()
    places = placed(by_table)
    shares = values.groupby("part").mean()
    rows = [
        [
            name,
            *(f"{value:.3f}" for value in (*shares[name], values[name].mean())),
            *places[name],
            f"{done.loc[done['method'] == name, 'seconds'].median():.1f}",
        ]
        for name in values
    ]
    header = ["method", *(f"{share} %" for share in shares.index), "mean", "rank", "p", "median, s"]
    parts = [LABELS.format(n=len(by_table)), table(header, rows)]
    print_scores("Average precision, mean of the shares", by_table)
    rows = []
    for name in values:
        some = done[done["method"] == name]
        mean = some.groupby("table")[["all", "dropped", "at_random"]].mean()
        hits = some["hits"].sum() / max(some["flagged"].sum(), 1)
        rows.append(
            [
                name,
                f"{100 * (some['flagged'] / some['rows']).mean():.1f} %",
                f"{100 * hits:.1f} %",
                *(f"{100 * value:.2f} %" for value in mean.mean()),
                p_text(signed_rank(mean["dropped"] - mean["at_random"])),
            ]
        )
    header = ["flagged", "wrong among flagged", "accuracy, all rows", "flagged dropped"]
    return [
        *parts,
        "Accuracy in % of a random forest on rows kept aside, fitted without what is flagged, and "
        "without as many rows at random (p: between these two, not corrected):",
        table(["method", *header, "as many at random", "p"], rows),
    ]


def print_scores(title: str, values: pd.DataFrame, best: Callable[..., Any] = np.nanmax) -> None:
    """Print a row a table, the best in bold."""
    rows = [
        [name, *bold([f"{value:.3f}" for value in one], one, best)]
        for name, one in values.iterrows()
    ]
    print(f"\n{title}:\n\n{table(['table', *values], rows)}")


def unknown_text(done: pd.DataFrame) -> list[str]:
    values = ours_first(complete(done).groupby(["table", "method"])["auroc"].mean().unstack())
    places = placed(values)
    rows = [[name, f"{values[name].mean():.3f}", *places[name]] for name in values]
    header = ["method", "mean AUROC", "rank", "p"]
    print_scores("AUROC", values)
    return [UNKNOWN.format(n=len(values)), table(header, rows)]


def drift_text(done: pd.DataFrame) -> list[str]:
    added = done.groupby("table")[["draws", "alarms", "moved", "named"]].sum()
    rows = [
        [name, f"{n:.0f}", *(f"{100 * found / n:.1f} %" for found in others)]
        for name, (n, *others) in added.iterrows()
    ]
    header = ["alarms without drift", "alarms, a column moved", "this column named"]
    return [DRIFT, table(["table", "draws", *header], rows)]


def cost_text(done: pd.DataFrame) -> list[str]:
    rows = []
    for _, one in done.sort_values(["method", "part"]).iterrows():
        costs = [f"{one.fit:.1f}", f"{one.predict:.2f}", f"{one.memory:,.0f}"]
        rows.append([one.method, one.table, *costs, f"{one.score:.3f}"])
    header = ["fit, s", "1,000 predictions, s", "memory, MB", "score"]
    return [COST, table(["estimator", "rows x columns", *header], rows)]


SECTIONS: dict[str, Callable[[pd.DataFrame], list[str]]] = {
    "sets": sets_text,
    "intervals": intervals_text,
    "labels": labels_text,
    "unknown": unknown_text,
    "drift": drift_text,
    "cost": cost_text,
}


def end_text(frame: pd.DataFrame) -> str:
    """Return the commands, versions and dates."""
    more = f"\n    {RUN} --half development" if "development" in set(frame["half"]) else ""
    return (
        "## Commands\n\n    pip install lightgbm xgboost catboost pytabkit mapie quantile-forest cleanlab pyod\n"
        f"    {RUN}{more}\n    python -m benchmarks.studies.decisions write\n\n"
        f"{made(frame, 'two shared cores of an x86-64 machine')}"
    )


if __name__ == "__main__":
    command(measure, write)
