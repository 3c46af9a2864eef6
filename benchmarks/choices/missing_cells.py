"""Which indicators of missing cells `compare` appends, and how they are scaled. Frozen: chosen on
2026-11-22 for 0.1.0, last run on 2026-11-26 with 0.3.0.

It led to the rule of `nearkin.tables.indicated_features` ("Compared with an indicator for every
incomplete column no mean loses more than .22 points, and LDA loses less wherever cells are missing at
random"), and to indicators as 0 and 1 ("Features are therefore scaled first, then filled and
indicated").

The accuracy of 9-NN in percent with the median of the column alone, then how many points indicators
add, in the mean of the tables (and in the worst and the best one). Cells of half of the columns are
taken out: at random; of the values above the 70 % quantile; or more often in some classes than in the
largest one. "60 rows": of samples of 60 rows of the tables with 30 columns or more.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import frame, numbers
from benchmarks.measure import command
from benchmarks.report import head, row
from nearkin import NCA
from nearkin.comparison.methods import LDA
from nearkin.tables.gaps import Imputer

TABLES = (
    "contraceptive", "dermatology", "german", "heart", "mammographic", "marketing", "penbased", "saheart",
)  # fmt: skip


def median(**how):
    return SimpleImputer(strategy="median", keep_empty_features=True, **how)


def every_gap():
    return median(add_indicator=True)


TREATMENTS = {
    "median": lambda: make_pipeline(StandardScaler(), median()),
    "all, 0 and 1": lambda: make_pipeline(StandardScaler(), every_gap()),
    "by the rule": lambda: make_pipeline(StandardScaler(), Imputer()),
    "all, unit variance": lambda: make_pipeline(every_gap(), StandardScaler()),
}
MAPS = {  # and how often rows and cells are drawn, how many rows, and the least number of columns
    "raw": (lambda: "passthrough", 5, 1000, 1),
    "LDA": (LDA, 5, 1000, 1),
    "raw, 60 rows": (lambda: "passthrough", 20, 60, 30),
    "LDA, 60 rows": (LDA, 20, 60, 30),
    "NCA": (lambda: NCA(max_iter=30), 1, 400, 1),
}


def at_random(share):
    return lambda X, y, rng: rng.random(X.shape) < share


def of_high_values(X, y, rng):
    return (np.quantile(X, 0.7, axis=0) <= X) & (rng.random(X.shape) < 0.4)


def by_class(X, y, rng):
    return rng.random(X.shape) < np.where(y == np.bincount(y).argmax(), 0.02, 0.15)[:, None]


MISSING = {f"{100 * share:g} % at random": at_random(share) for share in (0.005, 0.02, 0.1, 0.3)}
MISSING |= {"40 % of high values": of_high_values, "2 % and 15 %, by class": by_class}


def tables():
    found = [load(return_X_y=True) for load in (load_breast_cancer, load_wine)]
    found += [numbers(name) for name in ("sonar", "ionosphere")]
    for rows in (frame(name).dropna() for name in TABLES):
        y = rows.pop("target")
        found.append((rows.select_dtypes("number").to_numpy(float), y))
    return [(X, np.unique(y, return_inverse=True)[1]) for X, y in found]


def accuracies(X, y, missing, name, seed):
    """Return the accuracy of each treatment before a map, on the same rows and cells."""
    mapping, _, most_rows, _ = MAPS[name]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:most_rows]
    X, y = X[rows].copy(), y[rows]
    X[missing(X, y, rng) & (rng.permutation(X.shape[1]) < X.shape[1] / 2)] = np.nan
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    models = [
        make_pipeline(fill(), mapping(), KNeighborsClassifier(9)) for fill in TREATMENTS.values()
    ]
    return [cross_val_score(model, X, y, cv=folds).mean() for model in models]


def indicators():
    head("map", "missing, in half of the columns", *TREATMENTS)
    for name, (_, n_draws, _, least_columns) in MAPS.items():
        some = [(X, y) for X, y in tables() if X.shape[1] >= least_columns]
        for kind, missing in MISSING.items():
            draws = range(n_draws)
            found = [
                np.mean([accuracies(*t, missing, name, s) for s in draws], axis=0) for t in some
            ]
            alone, *others = 100 * np.transpose(found)
            gains = (other - alone for other in others)
            cells = (f"{d.mean():+.2f} ({d.min():+.1f} to {d.max():+.1f})" for d in gains)
            row(name, kind, f"{alone.mean():.1f}", *cells)


if __name__ == "__main__":
    command(indicators)
