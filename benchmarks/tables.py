"""Predictors for tables: 48 tables, ten folds, with defaults and tuned; written to
docs/measured/tables.md.

    pip install lightgbm xgboost catboost pytabkit
    NEARKIN_DATA=folder python benchmarks/tables.py
    NEARKIN_DATA=folder python benchmarks/tables.py --tuned --half held-out --seconds 30
    python benchmarks/tables.py --write docs/measured/tables.md

Of tables with more than 2,000 rows all rows, but only the first two of the ten folds: CatBoost and
the networks would need hours. Every fit has a process of its own and one thread. Its results are appended to a
file, a JSON line a fit, and a run that was stopped goes on where it was; the document is written
from this file, nothing by hand.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.datasets
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from table_methods import CALIBRATED, METHODS, SPACES, fitted, log_loss, reliability, tuned
from table_report import document
from threadpoolctl import threadpool_limits

CLASSES = (
    "australian", "automobile", "breast", "car", "chess", "contraceptive", "crx", "dermatology", "flare", "german",
    "haberman", "hayes-roth", "heart", "housevotes", "lymphography", "mammographic", "marketing", "nursery", "penbased",
    "saheart", "satimage", "spectfheart", "splice", "tae", "tic-tac-toe", "zoo",
)  # fmt: skip
NUMBERS = (
    "airfoil", "autompg6", "baseball", "compactiv", "ele_1", "forestfires", "laser", "medical_cost", "mortgage",
    "plastic", "puma32h", "quake", "treasury", "wankara", "winequality_white", "wizmir", "yacht_hydrodynamics",
)  # fmt: skip
BUNDLED = ("breast_cancer", "digits", "iris", "wine", "diabetes")  # scikit-learn's
# Settings of NCAClassifier and NCARegressor were chosen on the first half alone: every second name,
# whatever it holds.
HALVES = {
    "held-out": (*CLASSES[1::2], "digits", "wine", *NUMBERS[1::2]),
    "development": (*CLASSES[::2], "breast_cancer", "iris", *NUMBERS[::2], "diabetes"),
}
N_FOLDS = 10
SMALL = 2000  # rows; of larger tables two folds are run
PACKAGES = (
    "nearkin", "numpy", "scipy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost", "pytabkit", "torch",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A data frame and its target: codes of classes, or numbers where `n_classes` is 0."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    n_classes: int

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        splitter = (StratifiedKFold if self.n_classes else KFold)(
            N_FOLDS, shuffle=True, random_state=0
        )
        with warnings.catch_warnings(action="ignore"):  # of classes with fewer rows than folds
            return list(splitter.split(self.X, self.y))


@cache
def read(name: str) -> Table:
    if name in BUNDLED:
        found = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
        X, y = found.data, found.target
    else:
        path = Path(os.environ["NEARKIN_DATA"], "tables", f"{name}.csv")
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
        X, y = frame.drop(columns="target"), frame["target"]
    if name in NUMBERS or name == "diabetes":
        return Table(name, X, y.to_numpy(float), 0)
    labels, codes = np.unique(y.astype(str), return_inverse=True)
    return Table(name, X, codes, len(labels))


def mean_auc(P: np.ndarray, y: np.ndarray) -> float | None:
    """Return the mean AUC of one class against the rest, over the classes that are among the rows."""
    classes = [c for c in range(P.shape[1]) if 0 < np.sum(y == c) < len(y)]
    return float(np.mean([roc_auc_score(y == c, P[:, c]) for c in classes])) if classes else None


def scores(predicted: np.ndarray, y: np.ndarray, n_classes: int) -> dict[str, Any]:
    if not n_classes:  # both are summed over the folds of a table: R2 of few rows says little
        return {
            "errors": float(np.sum((predicted - y) ** 2)),
            "squares": float(np.sum((y - y.mean()) ** 2)),
        }
    accuracy = float(np.mean(predicted.argmax(axis=1) == y))
    return {
        "accuracy": accuracy,
        "log_loss": log_loss(predicted, y),
        "auc": mean_auc(predicted, y),
        "reliability": reliability(predicted, y),
    }


def memory(field: str) -> int:
    """Return a field of the process's status, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) // 1024


def measured(
    method: str, table: Table, train: np.ndarray, test: np.ndarray, seconds: float
) -> dict[str, Any]:
    """Return scores on held-out rows, processor seconds, and by how much the process grew at most
    in the fit.
    """
    X, y, found = table.X.iloc[train].reset_index(drop=True), table.y[train], {}
    before, start = memory("VmRSS"), time.process_time()
    if seconds:
        predict, best, n_tried = tuned(method, X, y, table.n_classes, seconds)
        found = {"chosen": best, "tried": n_tried}
    else:
        predict = fitted((METHODS | CALIBRATED)[method], {}, X, y, table.n_classes)
    fit_seconds, grown = time.process_time() - start, memory("VmHWM") - before
    start = time.process_time()
    predicted = predict(table.X.iloc[test].reset_index(drop=True))
    found |= {
        "fit": round(fit_seconds, 3),
        "predict": round(time.process_time() - start, 4),
        "memory": grown,
    }
    return found | scores(predicted, table.y[test], table.n_classes)


def attempt(
    sender: Connection, limit: int, function: Callable[..., dict[str, Any]], *arguments: Any
) -> None:
    """Send what the function returns, or why it does not; beyond the limit the system ends the
    process.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    try:
        with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
            sender.send({"status": "ok"} | function(*arguments))
    except Exception as error:
        sender.send(
            {"status": f"failed: {type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"}
        )


def apart(limit: int, function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call the function in a process of its own, whose memory and end are its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=attempt, args=(sender, limit, function, *arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        slow = process.exitcode == -signal.SIGXCPU
        return {
            "status": f"too slow: {limit} s" if slow else f"failed: exit code {process.exitcode}"
        }


def jobs(options: argparse.Namespace) -> Iterator[tuple[int, str, str]]:
    """Yield fold, method and table: half after half, fold after fold, so that a run may be stopped
    after any fold.
    """
    known = SPACES if options.tuned else METHODS | CALIBRATED
    methods = [name for name in options.methods or known if name in known]
    for half, names in HALVES.items():
        if options.half in (half, None):
            chosen = [name for name in names if name in (options.tables or names)]
            yield from product(range(2 if options.tuned else options.folds), methods, chosen)


def run(options: argparse.Namespace) -> None:
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.touch()
    lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(line["method"], line["table"], line["fold"], line["seconds"]) for line in lines}
    seconds = options.seconds if options.tuned else 0
    stamp = {
        "date": time.strftime("%Y-%m-%d"),
        "versions": {name: version(name) for name in PACKAGES},
    }
    for fold, method, name in jobs(options):
        table = read(name)
        small = len(table.X) <= SMALL
        if (method, name, fold, seconds) in done or not (small or (fold < 2 and not options.tuned)):
            continue
        if method in CALIBRATED and not table.n_classes:
            continue
        facts = {"rows": len(table.X), "columns": table.X.shape[1], "classes": table.n_classes}
        found = apart(options.limit, measured, method, table, *table.folds()[fold], seconds)
        line = (
            {"method": method, "table": name, "fold": fold, "seconds": seconds}
            | facts
            | found
            | stamp
        )
        with options.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"{time.strftime('%H:%M:%S')} {method}, fold {fold}, {name}: {found['status']}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS | CALIBRATED,
        metavar="METHOD",
        help=f"of {', '.join(METHODS | CALIBRATED)}",
    )
    parser.add_argument("--tables", nargs="+", metavar="TABLE", help="only these")
    parser.add_argument("--half", choices=HALVES, help="of the tables")
    parser.add_argument(
        "--folds", type=int, default=N_FOLDS, help="how many of the ten (default: all of them)"
    )
    parser.add_argument(
        "--tuned",
        action="store_true",
        help="on small tables, two folds: the best of a random search",
    )
    parser.add_argument(
        "--seconds", type=float, default=30, help="of the processor, for a search (default: 30)"
    )
    parser.add_argument(
        "--limit", type=int, default=3600, help="processor seconds of a fit at most (default: 3600)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("benchmarks", "results", "tables.jsonl"), help="a file"
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the document; nothing is run"
    )
    options = parser.parse_args()
    if options.write:
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
        options.write.write_text(
            document(lines, HALVES, options.write.parent.parent / "images" / "tables") + "\n"
        )
    else:
        run(options)


if __name__ == "__main__":
    main()
