"""Does it help to weigh a rare class while learning? Not to order the rows, and not more than a cut
at its frequency.

    NEARKIN_DATA=folder python benchmarks/rare_classes.py

Twelve tables with a class of 3 to 12 % of the rows: of some tables a rare class against all others,
of others the smaller class thinned out to 8 %; at most 2,500 rows. Three splits, a third held out.
Prints AUC, log loss and balanced accuracy of `NCAClassifier(n_members=3)` as it is, and with
`class_weight="balanced"`, whose probabilities are divided by the weights for the log loss; and the
balanced accuracy of the first where it labels a row by the class whose probability is largest in
proportion to its frequency.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from nearkin import NCAClassifier

MOST_ROWS, MOST_POSITIVE, THINNED = 2500, 0.15, 0.08
# The positive class of each table: by a rule for its target, or by its rank among the classes, the
# largest is 0.
TABLES = {
    "wine, good": ("winequality_white", lambda target: target >= 8),
    "wine, bad": ("winequality_white", lambda target: target <= 4),
    "quake, strong": ("quake", lambda target: target > target.quantile(0.93)),
    "satimage": ("satimage", -1),
    "marketing": ("marketing", 3),
    "contraceptive": ("contraceptive", -1),
    "car": ("car", -1),
    "flare": ("flare", -2),
    "german": ("german", -1),
    "haberman": ("haberman", -1),
    "saheart": ("saheart", -1),
    "spectfheart": ("spectfheart", -1),
}


def table(name: str, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns, and whether a row is of the rare class."""
    file, rule = TABLES[name]
    frame = pd.read_csv(folder / "tables" / f"{file}.csv")
    target = frame.pop("target")
    positive = rule(target) if callable(rule) else target == target.value_counts().index[rule]
    y, rng = positive.to_numpy(), np.random.default_rng(0)
    rows = np.arange(len(y))
    if y.mean() > MOST_POSITIVE:
        few = rng.permutation(np.flatnonzero(y))[: max(20, int(THINNED * np.count_nonzero(~y)))]
        rows = np.sort(np.append(np.flatnonzero(~y), few))
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.permutation(rows)[:MOST_ROWS])
    return frame.iloc[rows].reset_index(drop=True), y[rows]


def scores(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Return AUC, log loss and balanced accuracy as it is, cut at the frequency, and weighted."""
    found = []
    for train, test in StratifiedShuffleSplit(3, test_size=1 / 3, random_state=1).split(X, y):
        shares = np.bincount(y[train]) / len(train)
        P, Q = (
            NCAClassifier(n_members=3, class_weight=weight, random_state=0)
            .fit(X.iloc[train], y[train])
            .predict_proba(X.iloc[test])
            for weight in (None, "balanced")
        )
        calibrated = Q * shares / np.sum(Q * shares, axis=1, keepdims=True)
        truth = y[test]
        labels = P.argmax(axis=1), (P / shares).argmax(axis=1), Q.argmax(axis=1)
        areas = [roc_auc_score(truth, probability[:, 1]) for probability in (P, Q)]
        losses = [log_loss(truth, probability) for probability in (P, calibrated)]
        found.append(
            [*areas, *losses, *(balanced_accuracy_score(truth, label) for label in labels)]
        )
    return np.mean(found, axis=0)


if __name__ == "__main__":
    folder = os.environ.get("NEARKIN_DATA")
    if folder is None:
        raise SystemExit("NEARKIN_DATA names no folder with the tables")
    print(
        "| table | rows | rare | AUC | weighted | log loss | weighted | balanced accuracy | cut | "
        "weighted |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        for name in TABLES:
            X, y = table(name, Path(folder))
            rows.append(scores(X, y))
            figures = " | ".join(f"{figure:.3f}" for figure in rows[-1])
            print(f"| {name} | {len(y):,} | {y.mean():.1%} | {figures} |", flush=True)
    print(f"| mean | | | {' | '.join(f'{figure:.3f}' for figure in np.mean(rows, axis=0))} |")
