"""Wrong labels: how well `nearkin.label_issues` ranks labels that were flipped at random, against
cleanlab with three models.

    pip install cleanlab
    NEARKIN_DATA=folder python benchmarks/wrong_labels.py --half held-out
    NEARKIN_DATA=folder python benchmarks/wrong_labels.py --rows 700 --rates 0.1

Of every table of classes 30 % of the rows, with their labels, are kept for a test; of the others a
share of the labels is replaced, by each other class alike. Average precision of the ranking is that
of the replaced labels: others may be wrong in the table, too. cleanlab ranks by self-confidence,
its default, of probabilities that models of five folds predict. The last columns are accuracies of
`NCAClassifier` on the test rows, learned from all rows, without as many rows drawn at random as
`label_issues` expects to be wrong, without those that it ranks first, and from rows whose labels
are right.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cleanlab.rank import get_label_quality_scores
from scipy.stats import wilcoxon
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from table_methods import BOOSTING, FOREST, METHODS
from tables import HALVES, NUMBERS, read
from threadpoolctl import threadpool_limits

from nearkin import NCAClassifier, label_issues

RATES = (0.05, 0.1, 0.2)
OURS, PEERS = "label_issues", (FOREST, "linear", BOOSTING)
TEST_SHARE = 0.3


def out_of_fold(method: str, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Return the probabilities of classes that models of five folds predict for the rows they lack."""
    words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    if method != BOOSTING:
        numbers = [name for name in X if name not in words]
        X = X.fillna(X[numbers].median())
        X[words] = X[words].astype(object).fillna("")
    P = np.zeros((len(y), y.max() + 1))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = METHODS[method](True, words).fit(X.iloc[train], y[train])
        P[np.ix_(test, model.classes_)] = model.predict_proba(X.iloc[test])
    return P


def measured(name: str, rate: float, n_rows: int) -> dict[str, Any]:
    """Return average precisions, seconds of the processor, and accuracies without some rows."""
    table, rng = read(name), np.random.default_rng(0)
    drawn = rng.permutation(len(table.X))[:n_rows]
    test, train = np.split(drawn, [round(TEST_SHARE * len(drawn))])
    X = table.X.iloc[train].reset_index(drop=True)
    right = np.unique(table.y[train], return_inverse=True)[1]
    n, n_classes = len(right), right.max() + 1
    wrong = np.isin(np.arange(n), rng.choice(n, max(1, round(rate * n)), replace=False))
    given = np.where(wrong, (right + rng.integers(1, n_classes, n)) % n_classes, right)
    found: dict[str, Any] = {"table": name, "rate": rate, "rows": n, "classes": int(n_classes)}
    start = time.process_time()
    issues = label_issues(X, given)
    seconds = {OURS: time.process_time() - start}
    score = np.empty(n)
    score[issues.rows] = np.arange(n, 0, -1)
    precision = {OURS: average_precision_score(wrong, score)}
    for method in PEERS:
        start = time.process_time()
        P = out_of_fold(method, X, given)
        precision[method] = average_precision_score(wrong, -get_label_quality_scores(given, P))
        seconds[method] = time.process_time() - start
    start = time.process_time()
    NCAClassifier().fit(X, given)
    seconds["fit"] = time.process_time() - start
    flagged = np.isin(np.arange(n), issues.rows[: issues.n_issues])
    dropped = np.isin(np.arange(n), rng.choice(n, issues.n_issues, replace=False))
    classes, truth = np.unique(table.y[train]), table.y[test]
    accuracy = {}
    parts = {"all": ~flagged | flagged, "at random": ~dropped, "flagged": ~flagged, "right": ~wrong}
    for what, kept in parts.items():
        model = NCAClassifier().fit(X[kept].reset_index(drop=True), given[kept])
        predicted = classes[model.predict(table.X.iloc[test].reset_index(drop=True))]
        accuracy[what] = float(np.mean(predicted == truth))
    return found | {
        "precision": precision,
        "seconds": seconds,
        "accuracy": accuracy,
        "expected": float(issues.expected[-1]),
        "wrong": int(wrong.sum()),
        "expected_first": float(issues.expected[wrong.sum() - 1]),
        "found_first": int(wrong[issues.rows[: wrong.sum()]].sum()),
    }


def report(lines: list[dict[str, Any]]) -> None:
    """Print means over the tables, and p of Wilcoxon's test against each peer."""
    for rate in sorted({line["rate"] for line in lines}):
        some = [line for line in lines if line["rate"] == rate]
        print(f"{rate:.0%} of the labels wrong, {len(some)} tables")
        ours = np.array([line["precision"][OURS] for line in some])
        for method in (OURS, *PEERS):
            theirs = np.array([line["precision"][method] for line in some])
            seconds = np.mean([line["seconds"][method] for line in some])
            p = "" if method == OURS else f"  p {wilcoxon(ours, theirs).pvalue:.3g}"
            print(f"  {method:24} average precision {theirs.mean():.3f}  {seconds:5.1f} s{p}")
        for what in some[0]["accuracy"]:
            mean = np.mean([line["accuracy"][what] for line in some])
            print(f"  accuracy, {what:14} {mean:.4f}")
        kept, random = (
            np.array([line["accuracy"][what] for line in some]) for what in ("flagged", "at random")
        )
        print(f"  flagged against at random: p {wilcoxon(kept, random).pvalue:.3g}")
        fits = np.mean([line["seconds"][OURS] / line["seconds"]["fit"] for line in some])
        print(f"  seconds of label_issues over those of a fit: {fits:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--half", choices=HALVES, help="of the tables")
    parser.add_argument("--tables", nargs="+", metavar="TABLE", help="only these")
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, help="of wrong labels")
    parser.add_argument("--rows", type=int, default=2800, help="of a table, at most")
    parser.add_argument(
        "--results", type=Path, default=Path("benchmarks/results/wrong_labels.jsonl")
    )
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.touch()
    lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(line["table"], line["rate"]) for line in lines}
    halves = [options.half] if options.half else list(HALVES)
    names = [n for half in halves for n in HALVES[half] if n not in (*NUMBERS, "diabetes")]
    for rate in options.rates:
        for name in [n for n in names if n in (options.tables or names)]:
            if (name, rate) not in done:
                with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                    lines.append(measured(name, rate, options.rows))
                with options.results.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
                print(name, rate, lines[-1]["precision"], flush=True)
    report([line for line in lines if line["table"] in names])


if __name__ == "__main__":
    main()
