"""Whether to weight a rare class while learning. Frozen: chosen on 2026-11-23 for 0.2.0, last run on
2026-11-26 with 0.3.0.

It led to: "The weighted model does not rank the rows better, nor are its labels better than those of
the plain probabilities, cut at the frequency of the class. `compare` therefore ranks by AUC if one
class has more than 75 % of the rows."

Twelve tables with a class of 3 to 12 % of the rows: of some a rare class against all others, of others
the smaller class thinned out to 8 %; at most 2,500 rows, three splits, a third held out. AUC, log loss
and balanced accuracy of `NCAClassifier(n_members=3)`, and with `class_weight="balanced"`, whose
probabilities are divided by the weights for the log loss; and the balanced accuracy of the first where
it labels a row by the class whose probability is largest in proportion to its frequency.
"""

import numpy as np
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.data import frame
from benchmarks.measure import command
from benchmarks.report import head, row
from nearkin import NCAClassifier

# The rare class of each table: by a rule for its target, or by its rank among the classes, the
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


def table(name):
    """Return the columns, and whether a row is of the rare class."""
    X, rule = frame(TABLES[name][0]), TABLES[name][1]
    target = X.pop("target")
    is_rare = rule(target) if callable(rule) else target == target.value_counts().index[rule]
    y, rng = is_rare.to_numpy(), np.random.default_rng(0)
    rows = np.arange(len(y))
    if y.mean() > 0.15:
        few = rng.permutation(np.flatnonzero(y))[: max(20, int(0.08 * np.count_nonzero(~y)))]
        rows = np.sort(np.append(np.flatnonzero(~y), few))
    if len(rows) > 2500:
        rows = np.sort(rng.permutation(rows)[:2500])
    return X.iloc[rows].reset_index(drop=True), y[rows]


def scores(X, y):
    found = []
    for train, test in StratifiedShuffleSplit(3, test_size=1 / 3, random_state=1).split(X, y):
        shares, truth = np.bincount(y[train]) / len(train), y[test]
        P, Q = (
            NCAClassifier(n_members=3, class_weight=weight, random_state=0)
            .fit(X.iloc[train], y[train])
            .predict_proba(X.iloc[test])
            for weight in (None, "balanced")
        )
        calibrated = Q * shares / np.sum(Q * shares, axis=1, keepdims=True)
        labels = P.argmax(axis=1), (P / shares).argmax(axis=1), Q.argmax(axis=1)
        areas = [roc_auc_score(truth, probability[:, 1]) for probability in (P, Q)]
        losses = [log_loss(truth, probability) for probability in (P, calibrated)]
        found.append([*areas, *losses, *(balanced_accuracy_score(truth, one) for one in labels)])
    return np.mean(found, axis=0)


def weighted():
    balanced = ("balanced accuracy", "cut", "weighted")
    head("table", "rows", "rare", "AUC", "weighted", "log loss", "weighted", *balanced)
    rows = []
    for name in TABLES:
        X, y = table(name)
        rows.append(scores(X, y))
        row(name, f"{len(y):,}", f"{y.mean():.1%}", *(f"{figure:.3f}" for figure in rows[-1]))
    row("mean", "", "", *(f"{figure:.3f}" for figure in np.mean(rows, axis=0)))


if __name__ == "__main__":
    command(weighted, threads=1)
