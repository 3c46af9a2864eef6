"""metric-learn and nearkin on the same rows, pairs, triplets and quadruplets: scores of held-out
ones, and the processor time of a fit.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.studies.metric_learn --peer peer/bin/python

metric-learn 0.7.0 fails in `fit` from scikit-learn 1.8 on (SDML from 1.5 on), so it has an
interpreter of its own, which gets what it learns from in an NPZ file and returns the maps in
another:

    python3.11 -m venv peer
    peer/bin/pip install "metric-learn==0.7.0" "scikit-learn==1.4.2" "numpy<2"

The sets are those that come with scikit-learn. Three folds, standardized by the training rows;
features that are constant in the set are left out. Both libraries have their defaults, but for
SDML, which fails with its own. The same functions score all maps. What has the place of a class
without a counterpart is what was best on inner folds of the training rows, by 3-NN from labels and
by the AUROC from pairs. Prints Markdown; a cell has metric-learn's figure, then nearkin's, and of
seconds how many times as long metric-learn's fit takes. "-" stands for a fit that fails, takes more
than 30 seconds, or gives a map with NaN, in one of the folds; standard error says why.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from benchmarks.measure import command, timed
from benchmarks.report import table
from nearkin import ITML, LFDA, LMNN, MLKR, NCA, RCA, Matcher
from nearkin.neighbors import nearest_other_class, nearest_same_class
from nearkin.vectors import comparison_accuracy

FOLDS = 3
DRAWN = 200  # similar pairs, dissimilar pairs, triplets, quadruplets of the rows of a fold
LIMIT = 30  # processor seconds of a fit

# What a learner, or a score, is given: rows and targets; pairs and 1 or -1; triplets; quadruplets.
Given = tuple[np.ndarray, ...]
Found = list[tuple[np.ndarray | None, float]]  # the map and the seconds in every fold


# What is given, drawn from rows X of classes y.


def labels(X: np.ndarray, y: np.ndarray) -> Given:
    """Return the rows and their targets as they are."""
    return X, y


def quadruplets(X: np.ndarray, y: np.ndarray) -> Given:
    """Return rows (a, b, c, d), drawn at random: a is of the class of b, but not of that of c,
    which is not that of d.
    """
    drawn = np.random.default_rng(0).integers(len(X), size=(100 * DRAWN, 4))
    a, b, c, d = drawn.T
    fits = (a != b) & (y[a] == y[b]) & (y[a] != y[c]) & (y[c] != y[d])
    return (X[drawn[fits][:DRAWN]],)


def triplets(X: np.ndarray, y: np.ndarray) -> Given:
    """Return the rows (a, b, c) of the same quadruplets: a is nearer to b than to c."""
    return (quadruplets(X, y)[0][:, :3],)


def near_triplets(X: np.ndarray, y: np.ndarray) -> Given:
    """Return all rows (a, b, c), b one of the 3 nearest of the class of a, c one of the 10 nearest
    of other classes: what SCML_Supervised draws.
    """
    b = nearest_same_class(X, y, 3).indices.reshape(-1, 3)
    c = nearest_other_class(X, y, 10).indices.reshape(-1, 10)
    a, b, c = np.broadcast_arrays(np.arange(len(X))[:, None, None], b[:, :, None], c[:, None])
    return (X[np.stack([a, b, c], axis=-1).reshape(-1, 3)],)


def pairs(X: np.ndarray, y: np.ndarray) -> Given:
    """Return the pairs of the same quadruplets: (a, b), similar, and (c, d), dissimilar."""
    (Q,) = quadruplets(X, y)
    return np.concatenate([Q[:, :2], Q[:, 2:]]), np.repeat([1, -1], len(Q))


# How a map A is scored, by what it was learned from and what was held out; nearkin's learner, which
# is fitted again where there is more to learn than the map, is None for maps of metric-learn.


@dataclass(frozen=True)
class Fold:
    """Training rows and held-out ones, and what is given of each."""

    train: Given
    test: Given
    given: Given
    held_out: Given


Score = Callable[[np.ndarray, Fold, Any], float]


def accuracy_of_knn(A: np.ndarray, fold: Fold, learner: Any) -> float:
    """Return the accuracy of 3-NN; of numbers R²."""
    (X, y), (X_test, y_test) = fold.train, fold.test
    knn = KNeighborsRegressor(3) if y.dtype.kind == "f" else KNeighborsClassifier(3)
    return knn.fit(X @ A.T, y).score(X_test @ A.T, y_test)


def area_under_roc(A: np.ndarray, fold: Fold, learner: Any) -> float:
    """Return the area under the ROC curve of the distances of held-out pairs."""
    P, y = fold.held_out
    return Matcher(metric="euclidean").score(P @ A.T, y)


def accuracy_of_pairs(A: np.ndarray, fold: Fold, learner: Any) -> float:
    """Return the share of held-out pairs on the right side of the threshold that a library sets:
    metric-learn the best one for the pairs that it learns from, nearkin that for quarters of them
    that were held out.
    """
    (P, y), (P_test, y_test) = fold.given, fold.held_out
    if learner is not None:
        predicted = Matcher(learner).fit_pairs(P, y).predict(P_test)
    else:
        matcher = Matcher(metric="euclidean").calibrate_threshold(P @ A.T, y)
        predicted = matcher.predict(P_test @ A.T)
    return float(np.mean(predicted == y_test))


def accuracy_of_comparisons(A: np.ndarray, fold: Fold, learner: Any) -> float:
    """Return the share of held-out triplets or quadruplets that the map orders right."""
    return comparison_accuracy(None, fold.held_out[0] @ A.T)


# What is compared.


@dataclass(frozen=True)
class Comparison:
    """metric-learn's classes with parameters beyond the defaults, what has their place, how both
    are given their constraints and by which method, and the scores of their maps.
    """

    title: str
    rows: Sequence[tuple[str, dict[str, Any], Any]]
    draw: Callable[[np.ndarray, np.ndarray], Given]
    method: str
    scores: Mapping[str, Score]
    sets: Mapping[str, Any]


SEED = {"random_state": 0}
SPARSE = {"balance_param": 1e-4}
KNN = {"Accuracy of 3-NN": accuracy_of_knn}
OF_PAIRS = {
    "AUROC of held-out pairs": area_under_roc,
    "Accuracy of held-out pairs": accuracy_of_pairs,
}
OF_NUMBERS = {"R² of 3-NN": accuracy_of_knn}
OF_COMPARISONS = {"Accuracy of held-out comparisons": accuracy_of_comparisons}
CLASSES = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
FROM_LABELS = [
    ("NCA", SEED, NCA()),
    ("LMNN", SEED, LMNN()),
    ("LMNN", SEED | {"regularization": 0.25}, LMNN()),
    ("LMNN", SEED | {"regularization": 0.75}, LMNN()),
    ("LFDA", {}, LFDA()),
    ("LFDA", {}, LFDA(shrinkage=None)),
    ("RCA", {}, RCA()),
    ("RCA", {}, RCA(shrinkage=None)),
    ("RCA_Supervised", SEED, RCA()),
    ("Covariance", {}, RCA(target="chunklets", shrinkage=None)),
    ("ITML_Supervised", SEED, ITML()),
    ("MMC_Supervised", SEED, NCA()),
    ("MMC_Supervised", SEED | {"diagonal": True}, NCA(structure="diagonal")),
    ("SDML_Supervised", SEED | SPARSE, NCA()),
    ("LSML_Supervised", SEED, NCA()),
    ("SCML_Supervised", SEED, NCA()),
]
FROM_PAIRS = [("ITML", SEED, ITML()), ("MMC", SEED, ITML()), ("SDML", SEED | SPARSE, ITML())]
COMPARISONS = [
    Comparison("From labels", FROM_LABELS, labels, "fit", KNN, CLASSES),
    Comparison("From pairs", FROM_PAIRS, pairs, "fit_pairs", OF_PAIRS | KNN, CLASSES),
    *(
        Comparison(title, [(peer, SEED, LMNN())], draw, method, OF_COMPARISONS | KNN, CLASSES)
        for title, peer, draw, method in (
            ("From triplets", "SCML", triplets, "fit_triplets"),
            ("From near triplets", "SCML", near_triplets, "fit_triplets"),
            ("From quadruplets", "LSML", quadruplets, "fit_quadruplets"),
        )
    ),
    Comparison(
        "From numbers",
        [("MLKR", SEED, MLKR())],
        labels,
        "fit",
        OF_NUMBERS,
        {"diabetes": load_diabetes},
    ),
]


def folds_of(X: np.ndarray, y: np.ndarray, draw: Callable[..., Given]) -> list[Fold]:
    """Return training and held-out rows, standardized by the former, and what is drawn of each."""
    X, folds = X[:, np.ptp(X, axis=0) > 0], []
    splitter = KFold if y.dtype.kind == "f" else StratifiedKFold
    for train, test in splitter(FOLDS, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        parts = [(scaler.transform(X[part]), y[part]) for part in (train, test)]
        folds.append(Fold(*parts, *(draw(*part) for part in parts)))
    return folds


def fitted_here(estimator: Any, method: str, folds: Sequence[Fold]) -> Found:
    """Fit nearkin's estimator in every fold."""
    found: Found = []
    for fold in folds:
        given = fold.given
        if getattr(estimator, "target", None) == "chunklets":  # the metric of the covariance
            given = (given[0], np.zeros(len(given[0]), dtype=int))
        _, seconds, model = timed(getattr(clone(estimator), method), *given)
        found.append((model.components_, seconds))
    return found


PEER = """
import json, signal, sys, time, warnings
import numpy as np
import metric_learn

def late(*_):
    raise TimeoutError("takes too long")

warnings.simplefilter("ignore")
signal.signal(signal.SIGPROF, late)
data, found = np.load(sys.argv[1]), {}
for i, (name, parameters) in enumerate(json.loads(sys.argv[3])):
    for fold in range(int(data["folds"])):
        given = [data[key] for key in data if key.startswith(f"{fold} ")]
        estimator = getattr(metric_learn, name)(**parameters)
        signal.setitimer(signal.ITIMER_PROF, float(sys.argv[4]))
        start = time.process_time()
        try:
            estimator.fit(*given)
            found[f"map {i} {fold}"] = estimator.components_
        except Exception as error:
            print(name, given[0].shape, type(error).__name__, str(error)[:300], file=sys.stderr)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found[f"seconds {i} {fold}"] = time.process_time() - start
np.savez(sys.argv[2], **found)
"""


def fitted_there(python: str, comparison: Comparison, folds: Sequence[Fold]) -> list[Found]:
    """Fit metric-learn's estimators in its own interpreter; -I keeps this file from being imported
    as metric_learn.
    """
    arrays = {f"{k} {at}": one for k, fold in enumerate(folds) for at, one in enumerate(fold.given)}
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("given.npz", "found.npz")]
        np.savez(files[0], folds=len(folds), **arrays)  # type: ignore[arg-type]
        settings = json.dumps([(name, parameters) for name, parameters, _ in comparison.rows])
        subprocess.run([python, "-I", "-c", PEER, *files, settings, str(LIMIT)], check=True)
        maps = dict(np.load(files[1]))
    return [
        [(maps.get(f"map {i} {k}"), float(maps[f"seconds {i} {k}"])) for k in range(len(folds))]
        for i in range(len(comparison.rows))
    ]


def mean_score(found: Found, folds: Sequence[Fold], score: Score, learner: Any = None) -> str:
    """Return the mean over the folds in percent, "-" where a fit failed."""
    if any(A is None or not np.isfinite(A).all() for A, _ in found):
        return "-"
    scores = [score(A, fold, learner) for (A, _), fold in zip(found, folds, strict=True)]
    return f"{100 * np.mean(scores):.1f}"


def seconds(theirs: Found, ours: Found) -> str:
    """Return the mean processor times of a fit, and their ratio."""
    a, b = (np.mean([spent for _, spent in found]) for found in (theirs, ours))
    if any(A is None for A, _ in theirs):
        return f"- / {b:.3f}"
    return f"{a:.3f} / {b:.3f} ({a / b:,.1f})"


def name_of(peer: str, parameters: dict[str, Any]) -> str:
    """Return how metric-learn's estimator is called, the seed left out."""
    shown = ", ".join(f"{key}={value}" for key, value in parameters.items() if key not in SEED)
    return f"`{peer}({shown})`"


def cells_of(python: str, comparison: Comparison, folds: Sequence[Fold]) -> dict[str, list[str]]:
    """Return the cells of one set, by the title of the table; first those of rows as they are."""
    theirs = fitted_there(python, comparison, folds)
    ours = [fitted_here(one, comparison.method, folds) for _, _, one in comparison.rows]
    raw: Found = [(np.eye(fold.train[0].shape[1]), 0.0) for fold in folds]
    cells = {}
    for title, score in comparison.scores.items():
        there = [mean_score(found, folds, score) for found in theirs]
        here = [
            mean_score(found, folds, score, learner)
            for found, (_, _, learner) in zip(ours, comparison.rows, strict=True)
        ]
        both = map(" / ".join, zip(there, here, strict=True))
        cells[title] = [mean_score(raw, folds, score), *both]
    cells["Processor seconds of a fit"] = ["", *map(seconds, theirs, ours)]
    return cells


def compare(python: str, comparison: Comparison) -> str:
    """Return a table of every score, and one of seconds, in Markdown."""
    columns = {}
    for name, load in comparison.sets.items():
        X, y = load(return_X_y=True)
        columns[name] = cells_of(python, comparison, folds_of(X, y, comparison.draw))
    method = "" if comparison.method == "fit" else f".{comparison.method}"
    theirs = ["as it is", *(name_of(peer, parameters) for peer, parameters, _ in comparison.rows)]
    ours = ["", *(f"`{learner}{method}`" for _, _, learner in comparison.rows)]
    head = ["metric-learn", "nearkin", *columns]
    tables = []
    for title in next(iter(columns.values())):
        lines = zip(theirs, ours, *(cells[title] for cells in columns.values()), strict=True)
        tables.append(f"{title}:\n\n{table(head, [line for line in lines if any(line[2:])])}")
    return "\n\n".join(tables)


def metric_learn(peer: str = "peer/bin/python") -> None:
    """Compare with the metric-learn of an interpreter."""
    for comparison in COMPARISONS:
        print(f"\n**{comparison.title}.**\n\n{compare(peer, comparison)}", flush=True)


if __name__ == "__main__":
    command(metric_learn)
