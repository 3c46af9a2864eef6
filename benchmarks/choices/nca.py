"""NCA's `objective`, `alpha` and `init`. Frozen: the objective and alpha chosen on 2026-11-21, `"cv"`
removed on 2026-11-22, for 0.1.0; last run on 2026-11-26 with 0.3.0.

It led to: "f with alpha = 0.15 has the best mean; the optimum is broad" (`grid`, on 70 % of the rows
of the sets of studies/defaults.py, at most 800, in three folds repeated three times);
"`alpha="cv"` is therefore removed, and 0.15 is the default" (`penalties`, on tables on which no
default was chosen, where fixed penalties were as good as chosen ones); and `init="auto"`, which "in
two dimensions leads to as low a loss as the better of PCA and LDA on nine of the eleven sets"
(`inits`).
"""

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.data import numbers
from benchmarks.measure import command
from benchmarks.report import head, row
from benchmarks.studies.defaults import nca_sets, voted
from nearkin import NCA, SoftNeighborsClassifier

TABLES = (
    "contraceptive", "dermatology", "haberman", "hayes-roth", "heart", "mammographic", "marketing", "penbased",
    "satimage", "spectfheart", "tae",
)  # fmt: skip
ALPHAS = (0.0, 0.15, 0.5)


def grid():
    settings = [
        {"objective": objective, "alpha": alpha}
        for objective in ("expected_accuracy", "log_likelihood")
        for alpha in (0.0, 0.015, 0.05, 0.15, 0.5, 1.5)
    ]
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)
    gains = []
    for _, X, y in nca_sets():
        X, _, y, _ = train_test_split(X, y, train_size=0.7, stratify=y, random_state=0)
        maps = [(), *((NCA(**setting),) for setting in settings)]
        raw, *means = (cross_val_score(voted(*map_), X, y, cv=folds).mean() for map_ in maps)
        gains.append(means - raw)
    head("objective", "alpha", "mean gain", "worst set")
    for setting, gain in zip(settings, np.transpose(gains), strict=True):
        row(*setting.values(), f"{100 * np.mean(gain):+.2f}", f"{100 * np.min(gain):+.1f}")


def inits():
    head("set", "loss: auto", "pca", "lda", "3-NN: auto", "pca", "lda")
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    for name, X, y in nca_sets():
        found = []
        for train, test in folds.split(X, y):
            # two classes have one discriminant direction
            inits = ("auto", "pca", "lda")[: len(set(y))]
            models = [voted(NCA(2, init=init)).fit(X[train], y[train]) for init in inits]
            scores = [100 * model.score(X[test], y[test]) for model in models]
            found.append([[model[1].loss_curve_[-1] for model in models], scores])
        for_missing = ["-"] * (3 - len(inits))
        loss, accuracy = np.mean(found, axis=0)
        cells = [*(f"{value:.4f}" for value in loss), *for_missing]
        row(name, *cells, *(f"{value:.1f}" for value in accuracy), *for_missing)


def penalties(components=0):
    votes = {"3-NN": KNeighborsClassifier(3), "soft": SoftNeighborsClassifier()}
    head("table", *(f"{vote}, {alpha}" for vote in votes for alpha in ALPHAS))
    means = []
    for name in TABLES:
        X, y = numbers(name)
        if len(y) > 500:
            X, _, y, _ = train_test_split(X, y, train_size=500, stratify=y, random_state=0)
        scores = []
        folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=5, random_state=0)
        for train, test in folds.split(X, y):
            scaler = StandardScaler().fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            maps = [NCA(components or None, alpha=alpha).fit(A, y[train]) for alpha in ALPHAS]
            scores.append(
                [
                    vote.fit(nca.transform(A), y[train]).score(nca.transform(B), y[test])
                    for vote in votes.values()
                    for nca in maps
                ]
            )
        means.append(100 * np.mean(scores, axis=0))
        row(name, *(f"{mean:.1f}" for mean in means[-1]))
    row("mean", *(f"{mean:.2f}" for mean in np.mean(means, axis=0)))


if __name__ == "__main__":
    command(grid, inits, penalties, threads=1)
