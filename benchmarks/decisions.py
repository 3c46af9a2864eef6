"""What a decision needs beside the label: sets, intervals, labels to look at, unknown classes, drift,
time and memory; written to docs/measured/decisions.md.

    pip install lightgbm xgboost catboost pytabkit mapie quantile-forest cleanlab pyod
    NEARKIN_DATA=folder python benchmarks/decisions.py
    NEARKIN_DATA=folder python benchmarks/decisions.py --sections sets intervals
    python benchmarks/decisions.py --write docs/measured/decisions.md

Tables, halves and processes are those of tables.py: every job has a process of its own and one
thread, its result is a JSON line, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from decision_report import (
    CLEANLAB_MODELS,
    COVERAGE,
    DRIFT_DRAWS,
    FLIPPED,
    LEVELS,
    MAPIE,
    N_DRIFT_FITS,
    QUANTILE_BOOSTING,
    QUANTILE_FOREST,
    document,
)
from mapie.classification import SplitConformalClassifier
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from quantile_forest import RandomForestQuantileRegressor
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from table_methods import METHODS, OURS, AsCategories, forest, one_hot
from tables import HALVES, PACKAGES, SMALL, Table, apart, memory, read

from nearkin import NCAClassifier, NCARegressor, label_issues

N_FOLDS = 5
ROWS = 1000  # of a table at most, where labels are flipped or classes left out
LEFT_OUT = 3  # classes of a table at most, the most frequent ones, one after the other
RANDOM_DROPS = 3
DRIFT_ROWS, MOVED = 2000, 0.5  # the shift of a column, in standard deviations
SYNTHETIC = "synthetic"
# of the folder of data, beside the tables of classes of the held-out half: twenty in all
MORE_LABELLED = (
    "balance_scale", "breast_cancer_wisconsin_original", "ionosphere", "sonar", "mushroom",
)  # fmt: skip
SIZES = {"NCAClassifier": (1000, 20_000, 200_000), "NCARegressor": (1000, 20_000)}
N_FEATURES = 20


class Job(NamedTuple):
    """A method on a table, and which fold, share, class or draw of it."""

    method: str
    table: str
    part: int


def labelled(name: str) -> Table:
    """Return a table of classes, at most 1,000 rows of it."""
    if name in MORE_LABELLED:
        with np.load(Path(os.environ["NEARKIN_DATA"], f"{name}.npz")) as file:
            labels, codes = np.unique(file["y"], return_inverse=True)
            table = Table(name, pd.DataFrame(file["X"].astype(float)), codes, len(labels))
            table.X.columns = [f"x{j}" for j in range(table.X.shape[1])]
    else:
        table = read(name)
    drawn = np.sort(np.random.default_rng(0).permutation(len(table.y))[:ROWS])
    _, codes = np.unique(table.y[drawn], return_inverse=True)
    return Table(name, table.X.iloc[drawn].reset_index(drop=True), codes, int(codes.max()) + 1)


def folds(X: pd.DataFrame, y: np.ndarray, classify: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    splitter = (StratifiedKFold if classify else KFold)(N_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings(action="ignore"):  # of classes with fewer rows than folds
        return list(splitter.split(X, y))


def fold_jobs(methods: list[str], classify: bool, half: str) -> Iterator[Job]:
    for name in HALVES[half]:
        table = read(name)
        if bool(table.n_classes) == classify:
            for fold in range(N_FOLDS if len(table.y) <= SMALL else 1):
                yield from (Job(method, name, fold) for method in methods)


def parted(job: Job) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return rows and targets of a fold, for training and for testing."""
    table = read(job.table)
    train, test = folds(table.X, table.y, bool(table.n_classes))[job.part]
    X, X_test = (table.X.iloc[rows].reset_index(drop=True) for rows in (train, test))
    return X, table.y[train], X_test, table.y[test]


def words_of(X: pd.DataFrame) -> list[str]:
    return list(X.select_dtypes(exclude="number"))


# sets and intervals


def predict_sets(job: Job) -> dict[str, Any]:
    """Return coverage and sizes of the sets of a fold, as sums."""
    X, y, X_test, y_test = parted(job)
    known, codes = np.unique(y, return_inverse=True)
    if job.method == OURS:
        model = NCAClassifier(random_state=0).fit(X, codes)
        usual, allowed = (
            set_sums(model.predict_set(X_test, coverage=COVERAGE, allow_empty=empty), known, y_test)
            for empty in (False, True)
        )
        return {"rows": len(y_test)} | usual | {"empty_allowed": allowed}
    train, rest = folds(X, codes, True)[0]
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
    X, y, X_test, y_test = parted(job)
    if job.method == OURS:
        model = NCARegressor(random_state=0).fit(X, y)
        Q = model.predict_quantiles(X_test, LEVELS)
        low, high = model.predict_interval(X_test, coverage=COVERAGE).T
    else:
        Q = quantiles(job, X, y, X_test)
        low, high = Q[:, 0], Q[:, -1]  # 5 % and 95 %
    over = y_test[:, None] - Q
    unit = read(job.table).y.std()
    return {
        "rows": len(y_test),
        "covered": int(np.sum((low <= y_test) & (y_test <= high))),
        "width": float(np.sum(high - low) / unit),
        "pinball": float(np.maximum(LEVELS * over, (LEVELS - 1) * over).mean(axis=1).sum() / unit),
        "below": [int(np.sum(y_test <= q)) for q in Q.T],
    }


# labels


def label_jobs(half: str) -> Iterator[Job]:
    names = [name for name in HALVES[half] if read(name).n_classes]
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
    train, test = folds(table.X, table.y, True)[0]
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
        if read(name).n_classes > 2:
            for place in range(min(LEFT_OUT, read(name).n_classes)):
                yield from (Job(method, name, place) for method in (OURS, *DETECTORS))


def find_unknown(job: Job) -> dict[str, Any]:
    """Return the AUROC of an unfamiliar row being one of the class that was left out."""
    table = labelled(job.table)
    left_out = np.argsort(-np.bincount(table.y), kind="stable")[job.part]
    others = np.flatnonzero(table.y != left_out)
    train, test = folds(table.X.iloc[others], table.y[others], True)[0]
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
        if len(read(name).y) > 3 * DRIFT_ROWS and not words_of(read(name).X)
    ]
    for name in (SYNTHETIC, *names):
        yield from (Job(OURS, name, fit) for fit in range(N_DRIFT_FITS))


def drift_table(job: Job) -> Table:
    if job.table != SYNTHETIC:
        return read(job.table)
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
        "memory": memory("VmHWM") - before,
        "score": float(score),
    }


SECTIONS: dict[str, tuple[Callable[[str], Iterator[Job]], Callable[[Job], dict[str, Any]]]] = {
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


def run(options: argparse.Namespace) -> None:
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.touch()
    lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(line["section"], line["half"], *(line[key] for key in Job._fields)) for line in lines}
    packages = (*PACKAGES, "mapie", "quantile-forest", "cleanlab", "pyod")
    stamp = {
        "date": time.strftime("%Y-%m-%d"),
        "versions": {name: version(name) for name in packages},
    }
    for section in options.sections:
        jobs, measure = SECTIONS[section]
        for job in jobs(options.half):
            wanted = options.methods is None or job.method in options.methods
            if not wanted or (section, options.half, *job) in done:
                continue
            found = apart(options.limit, measure, job)
            line = {"section": section, "half": options.half} | job._asdict() | found | stamp
            with options.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(
                f"{time.strftime('%H:%M:%S')} {section}: {job.method}, {job.table}, {job.part}: "
                f"{found['status']}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION"
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="only these")
    parser.add_argument("--half", choices=HALVES, default="held-out", help="of the tables")
    parser.add_argument(
        "--limit", type=int, default=900, help="processor seconds of a job at most (default: 900)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("benchmarks", "results", "decisions.jsonl")
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the document; nothing is run"
    )
    options = parser.parse_args()
    if options.write:
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
        options.write.write_text(document(lines) + "\n")
    else:
        run(options)


if __name__ == "__main__":
    main()
