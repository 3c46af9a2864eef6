"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007): figure 1 and Table 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from nearkin.estimators import TDL, LaplacianEigenmaps

from ..data import MissingDataError
from ..experiment import Experiment, Printed, Run, mean_std, paired, table
from ..pictures import panels
from ..splits import Split, codes_of, of_each_class, some_labels

LAPLACIANS = ("unnormalized", "normalized")


def accuracy(Z: np.ndarray, y: np.ndarray, few: np.ndarray, n_neighbors: int) -> float:
    """Return the percentage of the rows without label that the labelled rows vote right."""
    return Split.of(Z, y, np.flatnonzero(few >= 0)).accuracy(n_neighbors)


def moons(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two moons pushed into one another, their classes, and ten labels of each."""
    a, b = rng.uniform(0, np.pi, (2, 100))
    X = np.vstack(
        [np.column_stack([np.cos(a), np.sin(a)]), np.column_stack([1 - np.cos(b), 0.7 - np.sin(b)])]
    )
    X = 2 * (X + 0.05 * rng.standard_normal(X.shape))
    y = np.repeat([0, 1], 100)
    rows = of_each_class(y, 10, rng)
    few = np.full(200, -1)
    few[rows] = y[rows]
    return X, y, few


def _of_moons(X: np.ndarray, few: np.ndarray, m: int) -> dict[str, np.ndarray]:
    graph: dict[str, Any] = {"affinity": "full", "bandwidth": 0.25, "laplacian": "normalized"}
    return {
        "Laplacian Eigenmaps": LaplacianEigenmaps(m, **graph).fit(X).embedding_,
        "TDL": TDL(m, reg=16.0, reg_unit=1.0, n_cost_neighbors=3, **graph).fit(X, few).embedding_,
    }


def figure_1(run: Run) -> Iterator[str]:
    """Two moons."""
    n_splits = run.splits(20)
    drawn = [moons(rng) for _, rng in run.repeat("moons", n_splits)]
    scores = [
        {name: accuracy(Z, y, few, 1) for name, Z in _of_moons(X, few, 1).items()}
        for X, y, few in drawn
    ]
    yield f"1-NN on the first coordinate, {n_splits} draws:"
    yield table(
        list(scores[0]), [[mean_std([score[name] for score in scores]) for name in scores[0]]]
    )
    X, y, few = drawn[0]
    planes = {"two moons": X}
    for name, Z in _of_moons(X, few, 2).items():
        planes[f"{name}\n1-NN on the first coordinate {accuracy(Z[:, :1], y, few, 1):.1f} %"] = Z
    yield run.picture(
        "tdl-figure1",
        panels(planes, y, labelled=few >= 0),
        "The first draw, with ten labels per class",
    )


@dataclass(frozen=True)
class Problem:
    """A column of Table 1: how many eigenvectors are taken, and what the paper prints by method."""

    name: str
    file: str
    m: int
    printed: dict[str, Printed] = field(repr=False)


def _column(name: str, file: str, m: int, *printed: tuple[float, float]) -> Problem:
    return Problem(
        name,
        file,
        m,
        {row: Printed(*pair) for row, pair in zip(PRINTED_ROWS, printed, strict=True)},
    )


PRINTED_ROWS = (
    "TDL",
    "Laplacian Eigenmaps",
    "SVM",
    "nearest kernel mean",
    "1-NN",
)
NORMALIZED = ", normalized Laplacian"
ROWS = (
    "TDL",
    f"TDL{NORMALIZED}",
    "Laplacian Eigenmaps",
    f"Laplacian Eigenmaps{NORMALIZED}",
    *PRINTED_ROWS[2:],
)
WHAT = {row: row.removesuffix(NORMALIZED) for row in ROWS}
TABLE_1 = (
    _column(
        "breast cancer", "breast_cancer_wisconsin_original", 5, (94.74, 1.73), (94.80, 1.61), (93.35, 2.05), (90.89, 1.51), (92.94, 1.59),
    ),
    _column(
        "ionosphere", "ionosphere", 10, (89.37, 5.32), (85.01, 4.02), (77.37, 10.00), (76.99, 7.78), (81.14, 4.27),
    ),
    _column(
        "sonar", "sonar", 10, (63.65, 5.68), (62.88, 4.91), (67.07, 5.50), (65.63, 5.81), (69.18, 4.60),
    ),
    _column(
        "wine", "wine", 10, (93.09, 4.00), (93.48, 2.81), (92.59, 3.29), (87.22, 5.32), (91.71, 3.00),
    ),
)  # fmt: skip


GAMMAS = np.logspace(-2, 1, 4)


def support_vectors(X: np.ndarray, y: np.ndarray, few: np.ndarray) -> float:
    """Return the accuracy of an SVM with a Gaussian kernel."""
    return _chosen(SVC(), {"C": np.logspace(-1, 2, 4), "gamma": GAMMAS}, X, y, few)


def nearest_kernel_mean(X: np.ndarray, y: np.ndarray, few: np.ndarray) -> float:
    """Return how often the class mean nearest in the space of a Gaussian kernel is right."""
    # all coordinates of kernel PCA: what they leave out of a row is as far from all means
    means = make_pipeline(KernelPCA(kernel="rbf"), NearestCentroid())
    return _chosen(means, {"kernelpca__gamma": GAMMAS}, X, y, few)


def _chosen(
    model: Any, grid: dict[str, Any], X: np.ndarray, y: np.ndarray, few: np.ndarray
) -> float:
    """Return the accuracy on the other rows with what five folds of the labelled rows choose."""
    known = few >= 0
    return 100 * GridSearchCV(model, grid, cv=5).fit(X[known], y[known]).score(X[~known], y[~known])


def table_1(run: Run) -> Iterator[str]:
    """UCI's sets."""
    n_splits = run.splits(100)
    columns: dict[str, dict[str, list[float]]] = {}
    smallest = []
    for problem in TABLE_1:
        try:
            X, y = run.data.rows(problem.file)
        except MissingDataError as missing:
            yield f"Skipped: {missing}."
            continue
        X = minmax_scale(X)
        W = rbf_kernel(X, gamma=1 / 0.25)
        columns[problem.name] = _scores(run, problem, X, codes_of(y), W, n_splits)
        smallest.append(f"{problem.name} {np.min(W.sum(axis=0) - 1):.0e}")
    there = [problem for problem in TABLE_1 if problem.name in columns]
    yield f"Accuracy on the unlabelled rows, %, {n_splits} splits: ours (paper; z)."
    yield table(
        ["method", *columns],
        [
            *(
                [row, *(_cell(problem, columns[problem.name], row) for problem in there)]
                for row in ROWS
            ),
            ["TDL - Laplacian Eigenmaps, paired", *(_gain(scores) for scores in columns.values())],
        ],
    )
    yield (
        "Without normalization each row of almost zero degree takes up one coordinate of Laplacian "
        f"Eigenmaps; the smallest degree: {', '.join(smallest)}."
    )


def _cell(problem: Problem, scores: dict[str, list[float]], row: str) -> str:
    return problem.printed[WHAT[row]].beside(scores[row])


def _gain(scores: dict[str, list[float]]) -> str:
    return paired(scores["TDL"], scores["Laplacian Eigenmaps"], 2)


def _scores(
    run: Run, problem: Problem, X: np.ndarray, y: np.ndarray, W: np.ndarray, n_splits: int
) -> dict[str, list[float]]:
    eigenmaps = {
        laplacian: LaplacianEigenmaps(problem.m, laplacian=laplacian).fit(X, affinity=W).embedding_
        for laplacian in LAPLACIANS
    }
    scores: dict[str, list[float]] = {row: [] for row in ROWS}
    for _, rng in run.repeat(problem.name, n_splits):
        few = some_labels(y, 0.1, rng)
        for laplacian, suffix in zip(LAPLACIANS, ("", NORMALIZED), strict=True):
            tdl = TDL(problem.m, reg=1024.0, reg_unit=1.0, laplacian=laplacian).fit(
                X, few, affinity=W
            )
            scores[f"TDL{suffix}"].append(accuracy(tdl.embedding_, y, few, 1))
            scores[f"Laplacian Eigenmaps{suffix}"].append(accuracy(eigenmaps[laplacian], y, few, 1))
        scores["SVM"].append(support_vectors(X, y, few))
        scores["nearest kernel mean"].append(nearest_kernel_mean(X, y, few))
        scores["1-NN"].append(accuracy(X, y, few, 1))
    return scores


EXPERIMENTS = (
    Experiment(
        "tdl-figure1",
        "TDL, figure 1: two moons (a picture without numbers in the paper)",
        ("The geometry is ours: 100 rows per moon with ten labels each; k = 3 in the cost.",),
        figure_1,
    ),
    Experiment(
        "tdl-table1",
        "TDL, Table 1: UCI's sets with a tenth of the labels",
        (
            "A split labels a random 10 % of the rows, each class at least once; k = 20 in the cost; "
            "scaling to [0, 1] uses all rows. Breast cancer: the rows without missing values.",
            "The text names the normalized Laplacian; the paper's figures are closer to the "
            "unnormalized one.",
            "SVM and nearest kernel mean: gamma (and C) by 5 folds of the labelled rows.",
        ),
        table_1,
    ),
)
