"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007): figure 1, Tables 1 and 2, and new rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import minmax_scale
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from nearkin.estimators import TDL, LaplacianEigenmaps
from nearkin.graphs import binary, heat_kernel, union
from nearkin.neighbors import nearest

from .data import MissingDataError
from .experiment import Experiment, Printed, Run, mean_std, paired, table, verdict
from .pictures import panels
from .splits import Split, codes_of, of_each_class, some_labels
from .tangent import tangent_graph

LAPLACIANS = ("unnormalized", "normalized")


def accuracy(Z: np.ndarray, y: np.ndarray, few: np.ndarray, n_neighbors: int) -> float:
    """Return the percentage of the rows without label that the labelled rows vote right."""
    return Split.of(Z, y, np.flatnonzero(few >= 0)).accuracy(n_neighbors)


def moons(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two moons pushed into one another, their classes, and ten labels of each."""
    a, b = rng.uniform(0, np.pi, (2, 100))
    X = np.vstack([np.column_stack([np.cos(a), np.sin(a)]), np.column_stack([1 - np.cos(b), 0.7 - np.sin(b)])])
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
        "TDL": TDL(m, reg=16.0, n_cost_neighbors=3, **graph).fit(X, few).embedding_,
    }


def figure_1(run: Run) -> Iterator[str]:
    """Two moons."""
    n_splits = run.splits(20)
    drawn = [moons(rng) for _, rng in run.repeat("moons", n_splits)]
    scores = [{name: accuracy(Z, y, few, 1) for name, Z in _of_moons(X, few, 1).items()} for X, y, few in drawn]
    yield f"1-NN on the first coordinate, {n_splits} draws:"
    yield table(list(scores[0]), [[mean_std([score[name] for score in scores]) for name in scores[0]]])
    X, y, few = drawn[0]
    planes = {"two moons": X}
    for name, Z in _of_moons(X, few, 2).items():
        planes[f"{name}\n1-NN on the first coordinate {accuracy(Z[:, :1], y, few, 1):.1f} %"] = Z
    yield run.picture("tdl-figure1", panels(planes, y, labelled=few >= 0), "The first draw, with ten labels a class")


@dataclass(frozen=True)
class Problem:
    """A column of Table 1: how many eigenvectors are taken, and what the paper prints by method."""

    name: str
    file: str
    m: int
    printed: dict[str, Printed] = field(repr=False)


def _column(name: str, file: str, m: int, *printed: tuple[float, float]) -> Problem:
    return Problem(name, file, m, {row: Printed(*pair) for row, pair in zip(PRINTED_ROWS, printed, strict=True)})


PRINTED_ROWS = ("TDL", "Laplacian Eigenmaps", "GWPC", "KTDA", "KFDA", "SVM", "nearest kernel mean", "1-NN")
QUOTED = ("GWPC", "KTDA", "KFDA")
NORMALIZED = ", normalized Laplacian"
ROWS = ("TDL", f"TDL{NORMALIZED}", "Laplacian Eigenmaps", f"Laplacian Eigenmaps{NORMALIZED}", *PRINTED_ROWS[2:])
WHAT = {row: row.removesuffix(NORMALIZED) for row in ROWS}
TABLE_1 = (
    _column(
        "breast cancer", "breast_cancer_wisconsin_original", 5, (94.74, 1.73), (94.80, 1.61), (94.58, 1.42),
        (94.47, 1.47), (93.30, 1.82), (93.35, 2.05), (90.89, 1.51), (92.94, 1.59),
    ),
    _column(
        "ionosphere", "ionosphere", 10, (89.37, 5.32), (85.01, 4.02), (85.58, 5.63), (87.56, 5.73), (77.06, 10.12),
        (77.37, 10.00), (76.99, 7.78), (81.14, 4.27),
    ),
    _column(
        "sonar", "sonar", 10, (63.65, 5.68), (62.88, 4.91), (70.45, 4.73), (70.22, 4.59), (67.07, 5.55), (67.07, 5.50),
        (65.63, 5.81), (69.18, 4.60),
    ),
    _column(
        "wine", "wine", 10, (93.09, 4.00), (93.48, 2.81), (93.79, 2.14), (94.59, 2.00), (85.37, 7.83), (92.59, 3.29),
        (87.22, 5.32), (91.71, 3.00),
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


def _chosen(model: Any, grid: dict[str, Any], X: np.ndarray, y: np.ndarray, few: np.ndarray) -> float:
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
    yield f"% of the rows without label that are right, {n_splits} splits: ours (paper; z)."
    yield table(
        ["method", *columns],
        [
            *([row, *(_cell(problem, columns[problem.name], row) for problem in there)] for row in ROWS),
            ["TDL - Laplacian Eigenmaps, paired", *(_gain(scores) for scores in columns.values())],
        ],
    )
    yield "\n".join(
        f"- {verdict(row, {p.name: p.printed[WHAT[row]].z(columns[p.name][row]) for p in there})}"
        for row in ROWS
        if row not in QUOTED
    )
    yield (
        f"The smallest sum of a row's graph weights: {', '.join(smallest)}. Where it is next to nothing, each such row "
        "takes a coordinate of Laplacian Eigenmaps that are not normalized."
    )


def _cell(problem: Problem, scores: dict[str, list[float]], row: str) -> str:
    known = problem.printed[WHAT[row]]
    return f"not rerun ({known})" if row in QUOTED else known.beside(scores[row])


def _gain(scores: dict[str, list[float]]) -> str:
    return paired(scores["TDL"], scores["Laplacian Eigenmaps"], 2)


def _scores(
    run: Run, problem: Problem, X: np.ndarray, y: np.ndarray, W: np.ndarray, n_splits: int
) -> dict[str, list[float]]:
    eigenmaps = {
        laplacian: LaplacianEigenmaps(problem.m, laplacian=laplacian).fit(X, affinity=W).embedding_
        for laplacian in LAPLACIANS
    }
    scores: dict[str, list[float]] = {row: [] for row in ROWS if row not in QUOTED}
    for _, rng in run.repeat(problem.name, n_splits):
        few = some_labels(y, 0.1, rng)
        for laplacian, suffix in zip(LAPLACIANS, ("", NORMALIZED), strict=True):
            tdl = TDL(problem.m, reg=1024.0, laplacian=laplacian).fit(X, few, affinity=W)
            scores[f"TDL{suffix}"].append(accuracy(tdl.embedding_, y, few, 1))
            scores[f"Laplacian Eigenmaps{suffix}"].append(accuracy(eigenmaps[laplacian], y, few, 1))
        scores["SVM"].append(support_vectors(X, y, few))
        scores["nearest kernel mean"].append(nearest_kernel_mean(X, y, few))
        scores["1-NN"].append(accuracy(X, y, few, 1))
    return scores


GRAPHS: dict[str, Callable[[csr_array], csr_array]] = {
    "union": lambda G: union(binary(G)),
    "mean": lambda G: csr_array((binary(G) + binary(G).T) / 2),
    "union, heat": lambda G: union(heat_kernel(G)),
}
PRINTED = {
    "Euclidean": (Printed(96.13, 0.07), Printed(95.91, 0.07)),
    "tangent": (Printed(97.49, 0.04), Printed(97.41, 0.03)),
}
COLUMNS = ["TDL", "Laplacian Eigenmaps", "TDL - Laplacian Eigenmaps, paired", "seconds, each", "largest residual"]


def _mnist(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, grey from 0 to 1; 10,000 of them for a glance."""
    archive = run.data.archive("mnist")
    rows = slice(10_000 if run.quick else None)
    return archive["X"][rows].astype(np.float32) / 255, archive["y"][rows].astype(int)


@dataclass(frozen=True)
class Pair:
    """TDL and Laplacian Eigenmaps on the same graph: accuracies by split, seconds of a fit, the largest residual."""

    ours: list[float]
    theirs: list[float]
    seconds: tuple[float, float]
    residual: float

    def cells(self, printed: tuple[Printed, Printed] | None) -> list[str]:
        """Return a row of a table, beside what the paper prints if these are its rows."""
        both = self.ours, self.theirs
        means = map(Printed.beside, printed, both) if printed else (mean_std(values, 2) for values in both)
        clock = ", ".join(f"{seconds:.0f}" for seconds in self.seconds)
        return [*means, paired(*both, 2), clock, f"{self.residual:.0e}"]


def _eigenmaps(X: np.ndarray, W: csr_array, laplacian: str) -> LaplacianEigenmaps:
    return LaplacianEigenmaps(60, laplacian=laplacian).fit(X, affinity=W)


def _tdl(X: np.ndarray, W: csr_array, laplacian: str, few: np.ndarray) -> TDL:
    return TDL(60, reg=128.0, laplacian=laplacian).fit(X, few, affinity=W)


def _pair(run: Run, what: str, X: np.ndarray, y: np.ndarray, W: csr_array, laplacian: str) -> Pair:
    seconds, eigenmaps = _timed(lambda: _eigenmaps(X, W, laplacian))
    ours, theirs, clock, residuals = [], [], [], [eigenmaps.residual_]
    for _, rng in run.repeat(f"{what}, {laplacian}", run.splits(10)):
        few = some_labels(y, 0.05, rng)
        took, tdl = _timed(lambda: _tdl(X, W, laplacian, few))  # noqa: B023
        ours.append(accuracy(tdl.embedding_, y, few, 10))
        theirs.append(accuracy(eigenmaps.embedding_, y, few, 10))
        clock.append(took)
        residuals.append(tdl.residual_)
    return Pair(ours, theirs, (float(np.mean(clock)), seconds), max(residuals))


def _protocol(run: Run, X: np.ndarray) -> str:
    return f"{len(X):,} rows, 5 % labelled, 60 vectors, 10-NN, {run.splits(10)} splits"


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def table_2(run: Run) -> Iterator[str]:
    """MNIST by Euclidean distance, and graph and Laplacian chosen by hidden labels."""
    X, y = _mnist(run)
    seconds, G = _timed(lambda: nearest(X, 20))
    printed = None if run.quick else PRINTED["Euclidean"]
    yield f"{_protocol(run, X)}: ours (paper; z)." if printed else f"{_protocol(run, X)}."
    rows, z = [], {}
    for graph in ("union", "mean"):
        W = GRAPHS[graph](G)
        for laplacian in LAPLACIANS:
            pair = _pair(run, graph, X, y, W, laplacian)
            rows.append([graph, laplacian, *pair.cells(printed)])
            z[f"{graph}, {laplacian}"] = PRINTED["Euclidean"][0].z(pair.ours)
    yield table(["graph", "Laplacian", *COLUMNS], rows)
    if printed:
        yield verdict("TDL", z)
    yield (
        f"The lists of 20 neighbours took {seconds:.0f} s. The paper: about 8 minutes for a run once the graph is "
        "there, on a Pentium IV of 2.8 GHz."
    )
    yield from _past_the_paper(run, X, y, G)


def _past_the_paper(run: Run, X: np.ndarray, y: np.ndarray, G: csr_array) -> Iterator[str]:
    """Choose the graph and its Laplacian, for every split by its own labels."""
    yield (
        "Past the paper: the graph (5, 10 or 20 neighbours; union, mean, or union with heat weights) and the "
        "Laplacian are those with which, after Laplacian Eigenmaps, two thirds of the labelled rows are best at the "
        "other third."
    )
    candidates = {}
    for k in (5, 10, 20):
        for name, graph in GRAPHS.items():
            W = graph(_first(G, k))
            for laplacian in LAPLACIANS:
                candidates[k, name, laplacian] = (W, _eigenmaps(X, W, laplacian).embedding_)
    taken, results = [], []
    for _, rng in run.repeat("chosen", run.splits(10)):
        few = some_labels(y, 0.05, rng)
        best = max(candidates, key=lambda one: _hidden_accuracy(candidates[one][1], few))
        W, Z = candidates[best]
        tdl = _tdl(X, W, best[2], few)
        results.append([accuracy(tdl.embedding_, y, few, 10), accuracy(Z, y, few, 10), _label_spreading(W, y, few)])
        taken.append("{}-NN, {}, {}".format(*best))
    ours, theirs, spread = np.transpose(results)
    chosen = "; ".join(f"{name} ({taken.count(name)})" for name in sorted(set(taken)))
    cells = [mean_std(ours, 2), mean_std(theirs, 2), paired(ours, theirs, 2), mean_std(spread, 2), chosen]
    yield table([*COLUMNS[:3], "scikit-learn's LabelSpreading, same graphs", "chosen (splits)"], [cells])


def _first(G: csr_array, k: int) -> csr_array:
    """Return the first k of the listed neighbours, which are as many in every row."""
    n = G.shape[0]
    lists = (G.data.reshape(n, -1)[:, :k].ravel(), G.indices.reshape(n, -1)[:, :k].ravel())
    return csr_array((*lists, np.arange(n + 1) * k), shape=(n, n))


def _hidden_accuracy(Z: np.ndarray, few: np.ndarray) -> float:
    known = few >= 0
    return cross_val_score(KNeighborsClassifier(10, algorithm="brute"), Z[known], few[known], cv=3).mean()


def _label_spreading(W: csr_array, y: np.ndarray, few: np.ndarray) -> float:
    spreading = LabelSpreading(kernel=lambda *_: W).fit(np.zeros((len(y), 1)), few)
    return 100 * float(np.mean(spreading.transduction_[few < 0] == y[few < 0]))


def tangent(run: Run) -> Iterator[str]:
    """MNIST by tangent distance, the prior metric of section 5.3."""
    X, y = _mnist(run)
    X, y = X[:10_000], y[:10_000]
    yield f"{_protocol(run, X)}."
    rows = []
    for name, G in (("Euclidean", nearest(X, 20)), ("tangent", tangent_graph(X, (28, 28), 20))):
        for laplacian in LAPLACIANS:
            pair = _pair(run, name, X, y, GRAPHS["union"](G), laplacian)
            rows.append([name, laplacian, *pair.cells(None)])
    yield table(["distance", "Laplacian", *COLUMNS], rows)


def unseen(run: Run) -> Iterator[str]:
    """Test rows as part of the fit, and the same rows as new ones."""
    X, y = _mnist(run)
    n = len(X) * 6 // 7
    few = some_labels(y[:n], 0.05, np.random.default_rng(0))
    everything = np.concatenate([few, np.full(len(X) - n, -1)])
    known = np.flatnonzero(few >= 0)
    rows = []
    for laplacian in LAPLACIANS:
        tdl = TDL(60, reg=128.0, laplacian=laplacian)
        Z = tdl.fit(X, everything).embedding_
        inside = Split(Z[known], y[known], Z[n:], y[n:]).accuracy(10)
        tdl.fit(X[:n], few)
        seconds, Z = _timed(lambda: tdl.transform(X[n:]))  # noqa: B023
        outside = Split(tdl.embedding_[known], y[known], Z, y[n:]).accuracy(10)
        rows.append([laplacian, f"{inside:.2f}", f"{outside:.2f}", f"{seconds:.0f}"])
    yield f"{len(X) - n:,} rows, % classified correctly by the 10-NN votes of {len(known):,} labelled rows of {n:,}:"
    yield table(["Laplacian", "in the fit", "new to it", "seconds for the new"], rows)


MNIST = "The labelled 5 % are drawn from all rows; --quick takes the first 10,000."
LISTS = (
    'The graph of the 20 nearest has weight 1 where either row lists the other ("union"), or 1/2 for each list that '
    'names the other ("mean").'
)
EXPERIMENTS = (
    Experiment(
        "tdl-figure1",
        "TDL, figure 1: two moons (a picture without numbers in the paper)",
        ("The geometry is ours, 100 rows a moon with ten labels each; k = 3 in the cost.",),
        figure_1,
    ),
    Experiment(
        "tdl-table1",
        "TDL, Table 1: UCI's sets with a tenth of the labels",
        (
            "A split draws 10 % of the rows until every class has one; k = 20 in the cost; scaling to [0, 1] uses all "
            "rows, as the method does. Breast cancer: the rows without gaps.",
            "By the paper's words the penalty is that of figure 1, the normalized Laplacian of the full Gaussian "
            "graph; its figures are nearer to what the unnormalized one gives: both are here.",
            "SVM and nearest kernel mean have a Gaussian kernel, whose gamma (and C) five folds of the labelled rows "
            "choose. GWPC, KTDA and KFDA are quoted.",
        ),
        table_1,
    ),
    Experiment("tdl-table2", "TDL, Table 2: MNIST by Euclidean distance", (MNIST, LISTS), table_2, threads=None),
    Experiment(
        "tdl-tangent",
        "TDL, section 5.3: what the prior metric is worth",
        (
            "The first 10,000 rows of MNIST, 5 % of them labelled, where the paper has all 70,000 (by tangent distance "
            f"TDL {PRINTED['tangent'][0]}, Laplacian Eigenmaps {PRINTED['tangent'][1]}): no target.",
            "Weight 1 where either row is among the 20 nearest of the other; the tangent distance is this library's.",
        ),
        tangent,
        threads=None,
    ),
    Experiment(
        "tdl-unseen",
        "TDL: rows that are new to the fit",
        (
            "Not in the paper, which leaves new rows open: MNIST's test rows, with the labels of 5 % of its training "
            "rows, heat weights. --quick takes the first 10,000 rows, the last seventh as new.",
        ),
        unseen,
        threads=None,
    ),
)
