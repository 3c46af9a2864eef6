"""metric-learn and nearkin on the same rows: 3-NN on held-out rows, and the processor time of a
fit.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/metric_learn.py --metric-learn
    peer/bin/python

metric-learn 0.7.0 fails in `fit` from scikit-learn 1.8 on (SDML from 1.5 on), so it has an
interpreter of its own, which gets the rows in an NPZ file and returns the maps in another:

    python3.11 -m venv peer
    peer/bin/pip install "metric-learn==0.7.0" "scikit-learn==1.4.2" "numpy<2"

The sets are those that come with scikit-learn. Three folds, standardized by the training rows;
features that are constant in the set are left out. Both libraries have their defaults, but for
SDML, which fails with its own. One function scores all maps: k-NN with k = 3. Prints Markdown; a
cell has metric-learn's figure, then nearkin's. "-" stands for a fit that fails, takes more than 30
seconds, or gives a map with NaN, in one of the folds; standard error says why.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from nearkin import GMML, LFDA, LMNN, MLKR, NCA, RCA, PairNCA

# pairs of each kind from the training rows of a fold; processor seconds of a fit
FOLDS, PAIRS, LIMIT = (
    3,
    200,
    30,
)
CLASSES = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
# metric-learn's class, its parameters beyond the defaults, and what has its place in nearkin.
Row = tuple[str, dict[str, Any], Any]
FROM_LABELS: list[Row] = [
    ("NCA", {"random_state": 0}, NCA()),
    ("LMNN", {"random_state": 0}, LMNN()),
    ("LFDA", {}, LFDA()),
    ("RCA", {}, RCA()),
    ("RCA_Supervised", {"random_state": 0}, RCA()),
    ("Covariance", {}, RCA(target="chunklets", shrinkage=None)),
    ("ITML_Supervised", {"random_state": 0}, GMML()),
    ("MMC_Supervised", {"random_state": 0}, GMML()),
    ("SDML_Supervised", {"random_state": 0, "balance_param": 1e-4}, GMML()),
    ("LSML_Supervised", {"random_state": 0}, NCA()),
    ("SCML_Supervised", {"random_state": 0}, NCA()),
]
FROM_PAIRS: list[Row] = [
    ("ITML", {}, GMML()),
    ("MMC", {}, PairNCA()),
    ("SDML", {"balance_param": 1e-4}, RCA()),
]
FROM_NUMBERS: list[Row] = [("MLKR", {"random_state": 0}, MLKR())]
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
        estimator = getattr(metric_learn, name)(**parameters)
        signal.setitimer(signal.ITIMER_PROF, float(sys.argv[4]))
        start = time.process_time()
        try:
            estimator.fit(data[f"X{fold}"], data[f"y{fold}"])
            found[f"map {i} {fold}"] = estimator.components_
        except Exception as error:
            print(name, data["y0"].shape, type(error).__name__, str(error)[:300], file=sys.stderr)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found[f"seconds {i} {fold}"] = time.process_time() - start
np.savez(sys.argv[2], **found)
"""
Given = tuple[np.ndarray, np.ndarray]  # rows and labels, or pairs of rows and 1 or -1
Found = list[tuple[np.ndarray | None, float]]  # the map and the seconds in every fold


def held_out(X: np.ndarray, y: np.ndarray, splitter: Any) -> list[tuple[Given, Given]]:
    """Return training and test rows of every fold, standardized by the training rows."""
    X, folds = X[:, np.ptp(X, axis=0) > 0], []
    for train, test in splitter.split(X, y):
        scaler = StandardScaler().fit(X[train])
        folds.append(((scaler.transform(X[train]), y[train]), (scaler.transform(X[test]), y[test])))
    return folds


def pairs_of(X: np.ndarray, y: np.ndarray) -> Given:
    """Return pairs of rows of one class (1) and of two classes (-1), drawn at random, as many of
    each.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(X), size=(100 * PAIRS, 2))
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    alike = y[drawn[:, 0]] == y[drawn[:, 1]]
    chosen = np.concatenate([drawn[alike][:PAIRS], drawn[~alike][:PAIRS]])
    return X[chosen], np.repeat([1, -1], PAIRS)


def fitted_here(estimator: Any, given: Sequence[Given]) -> Found:
    """Fit nearkin's estimator in every fold."""
    found: Found = []
    for X, y in given:
        start = time.process_time()
        model = clone(estimator)
        (model.fit_pairs if X.ndim == 3 else model.fit)(X, one_chunklet(model, y))
        found.append((model.components_, time.process_time() - start))
    return found


def one_chunklet(model: Any, y: np.ndarray) -> np.ndarray:
    """Return the labels, or for the metric of the covariance the same one for all rows."""
    return np.zeros(len(y), dtype=int) if getattr(model, "target", None) == "chunklets" else y


def fitted_there(python: str, rows: Sequence[Row], given: Sequence[Given]) -> list[Found]:
    """Fit metric-learn's estimators in its own interpreter; -I keeps this file from being imported
    as metric_learn.
    """
    arrays = {
        f"{name}{fold}": array
        for fold, pair in enumerate(given)
        for name, array in zip("Xy", pair, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("given.npz", "found.npz")]
        np.savez(files[0], folds=len(given), **arrays)  # type: ignore[arg-type]
        settings = json.dumps([(name, parameters) for name, parameters, _ in rows])
        subprocess.run([python, "-I", "-c", PEER, *files, settings, str(LIMIT)], check=True)
        maps = dict(np.load(files[1]))
    folds = range(len(given))
    return [
        [(maps.get(f"map {i} {k}"), float(maps[f"seconds {i} {k}"])) for k in folds]
        for i in range(len(rows))
    ]


def score(found: Found, folds: Sequence[tuple[Given, Given]], knn: Any) -> str:
    """Return the mean of 3-NN's score over the folds in percent, "-" where a fit failed."""
    scores = []
    for (A, _), ((X, y), (X_test, y_test)) in zip(found, folds, strict=True):
        if A is None or not np.isfinite(A).all():
            return "-"
        scores.append(knn.fit(X @ A.T, y).score(X_test @ A.T, y_test))
    return f"{100 * np.mean(scores):.1f}"


def seconds(found: Found) -> str:
    """Return the mean processor time of a fit, nothing where one failed."""
    if any(A is None for A, _ in found):
        return "-"
    return f"{np.mean([spent for _, spent in found]):.2f}"


def name_of(peer: str, parameters: dict[str, Any]) -> str:
    """Return how metric-learn's estimator is called, the seed left out."""
    shown = ", ".join(
        f"{name}={value}" for name, value in parameters.items() if name != "random_state"
    )
    return f"`{peer}({shown})`"


def compare(
    python: str, rows: Sequence[Row], sets: dict[str, Any], knn: Any, *, pairs: bool = False
) -> str:
    """Return two tables, of scores and of seconds."""
    head = ["metric-learn", "nearkin", *sets]
    labels = [[name_of(peer, parameters), f"`{ours}`"] for peer, parameters, ours in rows]
    scores, times, raw = [*labels], [*labels], ["3-NN as it is", ""]
    for load in sets.values():
        X, y = load(return_X_y=True)
        splitter = KFold if knn is REGRESSOR else StratifiedKFold
        folds = held_out(X, y, splitter(FOLDS, shuffle=True, random_state=0))
        given = [pairs_of(*train) if pairs else train for train, _ in folds]
        peers = fitted_there(python, rows, given)
        raw = [*raw, score([(np.eye(train[0].shape[1]), 0.0) for train, _ in folds], folds, knn)]
        for i, (_, _, estimator) in enumerate(rows):
            both = peers[i], fitted_here(estimator, given)
            scores[i] = [*scores[i], " / ".join(score(found, folds, knn) for found in both)]
            times[i] = [*times[i], " / ".join(seconds(found) for found in both)]
    return (
        f"{table([head, raw, *scores])}\n\nProcessor seconds of a fit:\n\n{table([head, *times])}"
    )


def table(lines: list[list[str]]) -> str:
    """Return Markdown, the first line as the head."""
    return "\n".join(
        f"| {' | '.join(line)} |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    )


CLASSIFIER, REGRESSOR = KNeighborsClassifier(3), KNeighborsRegressor(3)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--metric-learn", required=True, help="an interpreter in which metric-learn is installed"
    )
    python = parser.parse_args().metric_learn
    warnings.simplefilter("ignore")
    print("\n".join(["", "From labels:", "", compare(python, FROM_LABELS, CLASSES, CLASSIFIER)]))
    print(
        "\n".join(
            [
                "",
                "From the same pairs:",
                "",
                compare(python, FROM_PAIRS, CLASSES, CLASSIFIER, pairs=True),
            ]
        )
    )
    print(
        "\n".join(
            [
                "",
                "R² of numbers:",
                "",
                compare(python, FROM_NUMBERS, {"diabetes": load_diabetes}, REGRESSOR),
            ]
        )
    )


if __name__ == "__main__":
    main()
