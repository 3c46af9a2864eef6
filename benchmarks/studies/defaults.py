"""What methods give that nobody tunes: 3-NN on held-out rows after standardizing and a method with its
defaults.

    NEARKIN_DATA=folder python -m benchmarks.studies.defaults spectral
    NEARKIN_DATA=folder python -m benchmarks.studies.defaults nca
    NEARKIN_DATA=folder python -m benchmarks.studies.defaults network
    NEARKIN_DATA=folder python -m benchmarks.studies.defaults closed-forms

print Markdown; sets that are not there are left out.

"spectral": the accuracy of 3-NN on the standardized features, and the difference of spectral methods
to it in percentage points, mean of five random splits (70 % of the rows train, at most 500). PCA's
default would only rotate the features, so it keeps 95 % of the variance; LDA is scikit-learn's as a
map. LPP's defaults were chosen on the first group of sets; the second was kept aside.

"nca": NCA beside raw 3-NN and scikit-learn's NCA, at most 800 rows, three folds repeated twice.

"network": NeuralNCA beside NCA and raw 3-NN, at most 500 rows, text columns one-hot, three folds
repeated twice; needs torch. p: the corrected resampled t-test, without a correction for several
tables.

"closed-forms": closed forms and descents, and R² of MLKR, with mean ranks; at most 600 rows of each
table (500 for regression), five folds, all dimensions, so that no fold chooses anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import data
from benchmarks.measure import command
from benchmarks.report import head, mean_ranks, row
from nearkin import (
    DMLMJ,
    DNE,
    GMML,
    LDE,
    LFDA,
    LMNN,
    LPP,
    MFA,
    MLKR,
    NCA,
    NMMP,
    RCA,
    DiscriminativeProjections,
    NeuralNCA,
)
from nearkin.comparison import Method, compare
from nearkin.datasets import BUNDLED
from nearkin.statistics import corrected_resampled_t_test

ARCHIVES = ("sonar", "ionosphere", "usps", "mnist", "coil20_16", "umist_28x23")
TABLES = (
    "australian", "contraceptive", "dermatology", "german", "heart", "lymphography", "penbased", "saheart", "satimage",
    "spectfheart",
)  # fmt: skip
GROUPS = {
    "used to choose LPP's defaults": (*BUNDLED, *ARCHIVES, *TABLES),
    "kept aside": (
        "breast_cancer_wisconsin_original", "kddcup99", "orl_56x46", "automobile", "breast", "car", "chess", "crx",
        "flare", "haberman", "hayes-roth", "housevotes", "mammographic", "marketing", "nursery", "splice", "tae", "zoo",
    ),
}  # fmt: skip


def there(names: Iterable[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the sets that are there."""
    for name in names:
        try:
            yield name, *data.numbers(name)
        except FileNotFoundError:
            continue


def voted(*maps: Any) -> Any:
    """Return 3-NN on standardized features, after maps."""
    return make_pipeline(StandardScaler(), *maps, KNeighborsClassifier(3))


# spectral methods

FEWEST, MOST = 5, 500
METHODS = {
    "PCA": PCA(0.95, svd_solver="full"),
    "LDA": LinearDiscriminantAnalysis(),
    "DNE": DNE(),
    "DNE, auto": DNE(n_neighbors="auto"),
    "NMMP": NMMP(),
    "LDE": LDE(),
    "MFA": MFA(),
    "LFDA": LFDA(),
    "RCA": RCA(),
    "DMLMJ": DMLMJ(),
    "GMML": GMML(),
    "DP": DiscriminativeProjections(),
    "LPP": LPP(),
}


def spectral_sets(
    names: Iterable[str], most: int = MOST
) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Yield sets, of many rows 20,000, without classes that are too small to be split, and how many
    rows are for training.
    """
    for name, X, y in there(names):
        step = -(-len(y) // 20_000)
        X, y = data.without_small_classes(X[::step], y[::step].astype(str), FEWEST)
        yield name, X, y, min(int(0.7 * len(y)), most)


def split(y: np.ndarray, n_train: int, n_splits: int) -> StratifiedShuffleSplit:
    """Return random splits, with at most 1,000 rows for testing."""
    sizes = {"train_size": n_train, "test_size": min(len(y) - n_train, 1000)}
    return StratifiedShuffleSplit(n_splits, **sizes, random_state=0)


def spectral(
    methods: tuple[str, ...] = tuple(METHODS), sets: tuple[str, ...] = (), splits: int = 5
) -> None:
    summary, about = [], []
    head("set (training rows x features, classes)", "raw", *methods)
    for group, names in GROUPS.items():
        gains, found = [], []
        for name, X, y, n_train in spectral_sets(one for one in names if not sets or one in sets):
            parts = list(split(y, n_train, splits).split(X, y))
            raw, *means = (
                np.mean(
                    [
                        100 * voted(*map_).fit(X[train], y[train]).score(X[test], y[test])
                        for train, test in parts
                    ]
                )
                for map_ in ((), *((clone(METHODS[method]),) for method in methods))
            )
            gains.append(means - raw)
            found.append(name)
            size = f"({n_train} x {X.shape[1]}, {len(np.unique(y))})"
            row(f"{name} {size}", f"{raw:.1f}", *(f"{gain:+.1f}" for gain in gains[-1]))
        if gains:
            about += [f"mean, {len(gains)} sets {group}", "worst"]
            worst = np.argmin(gains, axis=0)
            summary.append([f"{mean:+.1f}" for mean in np.mean(gains, axis=0)])
            summary.append([f"{gains[i][j]:+.1f} ({found[i]})" for j, i in enumerate(worst)])
    head("method", *about)
    for cells in zip(methods, *summary, strict=True):
        row(*cells)


# NCA

NCA_SETS = (
    "iris", "wine", "breast_cancer", "digits", "sonar", "ionosphere", "balance_scale",
    "breast_cancer_wisconsin_original", "boston_housing", "usps", "ohsumed_letor3",
)  # fmt: skip


def repeated(
    maps: dict[str, Sequence[Any]], X: np.ndarray, y: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Return the accuracies of 3-NN after maps in three folds, repeated twice."""
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=seed)
    return {name: cross_val_score(voted(*map_), X, y, cv=folds) for name, map_ in maps.items()}


def nca_sets(sets: Iterable[str] = NCA_SETS) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the sets, at most 800 rows of each."""
    for name, X, y in there(sets):
        if name == "usps":  # 8 x 8: means of 2 x 2 pixels
            X = X.reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)).reshape(-1, 64)
        if name == "boston_housing":  # thirds: ours
            y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
        if name == "ohsumed_letor3":  # not normalized by query
            X = data.archive(name)["X"]
        if len(y) > 800:
            chosen = train_test_split(
                np.arange(len(y)), train_size=800, stratify=y, random_state=0
            )[0]
            X, y = X[chosen], y[chosen]
        yield name, X, y


def nca(sets: tuple[str, ...] = NCA_SETS) -> None:
    maps = {
        "raw 3-NN": (),
        "NCA": (NCA(),),
        "NCA, log-likelihood": (NCA(objective="log_likelihood"),),
        "scikit-learn's NCA": (NeighborhoodComponentsAnalysis(random_state=0),),
    }
    head("set", *maps)
    rows = []
    for name, X, y in nca_sets(sets):
        rows.append([100 * found.mean() for found in repeated(maps, X, y, seed=1).values()])
        row(name, *(f"{mean:.1f}" for mean in rows[-1]))
    row("mean", *(f"{mean:.1f}" for mean in np.mean(rows, axis=0)))


# a network

NETWORK_TABLES = (
    "heart", "tae", "mammographic", "spectfheart", "satimage", "penbased", "usps", "tic-tac-toe",
)  # fmt: skip


def network(tables: tuple[str, ...] = NETWORK_TABLES) -> None:
    import torch

    torch.set_num_threads(1)
    maps = {
        "raw": (),
        "NCA": (NCA(),),
        "NeuralNCA, f": (NeuralNCA(random_state=0),),
        "NeuralNCA, g": (NeuralNCA(objective="log_likelihood", random_state=0),),
    }
    head("table", "rows x features", *maps, "p: f, NCA")
    means = []
    for name, X, y in there(tables):
        X, y = data.drawn(X, y, 500)
        found = repeated(maps, X, y, seed=0)
        means.append([100 * one.mean() for one in found.values()])
        difference = found["NeuralNCA, f"] - found["NCA"]
        p = corrected_resampled_t_test(difference, len(y) * 2 / 3, len(y) / 3)
        row(name, f"{len(X)} x {X.shape[1]}", *(f"{mean:.1f}" for mean in means[-1]), f"{p:.2f}")
    row("mean", "", *(f"{mean:.1f}" for mean in np.mean(means, axis=0)), "")


# closed forms

CLASSES = (
    "iris", "wine", "breast_cancer", "digits", "balance_scale", "sonar", "ionosphere",
    "breast_cancer_wisconsin_original", "ohsumed_letor3", "satimage", "zoo", "haberman", "hayes-roth", "usps", "mnist",
)  # fmt: skip
NUMBERS = (
    "boston_housing", "airfoil", "autompg6", "laser", "mortgage", "plastic", "winequality_white",
    "yacht_hydrodynamics",
)  # fmt: skip
FOR_CLASSES = {
    "LDA": LinearDiscriminantAnalysis(),
    "DMLMJ": DMLMJ(),
    "GMML": GMML(),
    "LFDA": LFDA(),
    "LMNN": LMNN(),
    "NCA": NCA(),
}
FOR_NUMBERS = {"MLKR": MLKR(), "NCA (numbers)": NCA(target="continuous")}


def compared(task: str, sets: Iterable[str], models: dict[str, Any]) -> None:
    """Print scores of 3-NN; then mean ranks, the mean difference to raw k-NN and the worst one."""
    methods = [Method(name, model, nested=False) for name, model in models.items()]
    classify = task == "classification"
    how = {"score": "accuracy" if classify else "r2", "references": (), "n_neighbors": 3}
    head("table", "raw k-NN", *models)
    values, names = [], []
    for name, X, y in there(sets):
        X, y = data.drawn(X, y, 600 if classify else 500)
        X = data.varying(X)
        if classify:
            X, y = data.without_small_classes(X, y, 5)
        found = compare(X, y, task=task, methods=methods, n_repeats=1, refit=False, **how)
        means = {result.name: 100 * float(np.mean(result.score)) for result in found.results}
        values.append([means[method] for method in found.methods])
        names.append(name)
        row(f"{name} ({len(y)} x {X.shape[1]})", *(f"{value:.1f}" for value in values[-1]))
    difference = np.array(values) - np.array(values)[:, :1]
    worst = [f"{d.min():+.1f} ({names[d.argmin()]})" for d in difference.T[1:]]
    head(f"{len(names)} tables", "raw k-NN", *models)
    row("mean rank", *(f"{rank:.2f}" for rank in mean_ranks(values)))
    row("mean difference to raw", *(f"{d:+.1f}" for d in difference.mean(axis=0)))
    row("worst difference to raw", "+0.0", *worst)


def closed_forms(classes: tuple[str, ...] = CLASSES, numbers: tuple[str, ...] = NUMBERS) -> None:
    compared("classification", classes, FOR_CLASSES)
    compared("regression", numbers, FOR_NUMBERS)


if __name__ == "__main__":
    command(spectral, nca, network, closed_forms, threads=1)
