"""Neighborhood MinMax Projections (Nie, Xiang and Zhang, IJCAI 2007): the bisection of Table 1,
Table 4, figure 2, and a claim of section 6.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from nearkin.datasets import make_concentric_classes
from nearkin.estimators import LMNN, NMMP, Rows
from nearkin.neighbors import EXACT
from nearkin.spectral import trace_ratio

from ..data import Data, MissingDataError
from ..experiment import Experiment, Printed, Run, table
from ..pictures import panels
from ..splits import Map, Split, UnitLDA, codes_of, of_each_class, without_null_space

K_WITHIN = (None, 3, 5, 10, 20)
K_BETWEEN = (3, 5, 10, 20, 40)
EPSILONS = (1e-2, 1e-6, 1e-10)  # of the bisection, relative to the optimum


def _digits_1_to_4(data: Data) -> tuple[np.ndarray, np.ndarray]:
    X, y = data.rows("usps")
    chosen = (y >= 1) & (y <= 4)
    return X[chosen], y[chosen]


@dataclass(frozen=True)
class Problem:
    """A column of Table 3, and its rows of Table 4."""

    name: str
    rows: Callable[[Data], tuple[Any, np.ndarray]]
    per_class: int
    m: int
    baseline: Printed
    lda: Printed
    lmnn: Printed
    nmmp: Printed
    seconds: tuple[float, float, float]  # LMNN, NMMP, LDA
    same_data: bool = True  # False: not the paper's pixels, so no target


TABLE_4 = (
    Problem(
        "Iris", lambda data: data.rows("iris"), 20, 3,
        Printed(95.4, 1.8), Printed(96.6, 1.6), Printed(96.2, 1.5), Printed(96.5, 1.6), (4.91, 0.02, 0.0),
    ),
    Problem(
        "Bal", lambda data: data.rows("balance_scale"), 20, 2,
        Printed(61.6, 2.8), Printed(74.9, 3.2), Printed(70.1, 3.7), Printed(72.9, 4.2), (3.37, 0.02, 0.0),
    ),
    Problem(
        "Faces", lambda data: data.rows("orl_112x92"), 5, 60,
        Printed(86.9, 2.1), Printed(92.2, 1.8), Printed(95.9, 1.6), Printed(96.6, 1.6), (399.03, 2.84, 0.15),
    ),
    Problem(
        "Objects", lambda data: data.rows("coil20_16_subsampled"), 6, 60,
        Printed(76.8, 1.8), Printed(78.2, 2.0), Printed(84.1, 1.8), Printed(86.5, 1.6), (221.29, 0.66, 0.04),
    ),
    Problem(
        "USPS", _digits_1_to_4, 20, 60,
        Printed(93.2, 1.1), Printed(84.2, 2.6), Printed(86.2, 2.2), Printed(94.5, 0.9), (70.83, 0.12, 0.01), False,
    ),
    Problem(
        "News", lambda data: data.sparse("news_rec", "data_unnorm"), 30, 60,
        Printed(30.9, 2.8), Printed(46.9, 5.7), Printed(62.1, 7.3), Printed(58.5, 5.0), (73.38, 0.40, 0.05),
    ),
)  # fmt: skip
METHODS = ("baseline", "lda", "lmnn", "nmmp")
TITLES = ("baseline", "LDA", "LMNN", "NMMP")


def _fitted(problem: Problem, split: Split) -> tuple[list[float], list[float]]:
    """Return accuracies of METHODS and of NMMP's ratio trace, and the seconds that LMNN, NMMP and
    LDA train.
    """
    models: dict[str, Any] = {
        "lda": UnitLDA(),
        "lmnn": LMNN(),
        "nmmp": NMMP(problem.m, shrinkage=None),
        "ratio": NMMP(problem.m, criterion="ratio_trace", shrinkage=None),
    }
    accuracy, seconds = {"baseline": split.accuracy(3)}, {}
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(split.train, split.y_train)
        seconds[name] = time.perf_counter() - start
        accuracy[name] = split.score(model.transform, 3)
    return [accuracy[name] for name in (*METHODS, "ratio")], [
        seconds[name] for name in ("lmnn", "nmmp", "lda")
    ]


def table_4(run: Run) -> Iterator[str]:
    """Accuracy and training time on six sets."""
    n_splits = run.splits(50, quick=3)
    rows, clocks = [], []
    for problem in TABLE_4:
        try:
            X, y = problem.rows(run.data)
        except MissingDataError as missing:
            yield f"Skipped: {missing}."
            continue
        splits = (
            Split.of(X, y, of_each_class(y, problem.per_class, rng))
            for _, rng in run.repeat(problem.name, n_splits)
        )
        results = [_fitted(problem, without_null_space(split)) for split in splits]
        scores, seconds = (np.array(part) for part in zip(*results, strict=True))
        name = problem.name if problem.same_data else f"{problem.name} (other pixels)"
        printed = [getattr(problem, method) for method in METHODS]
        cells = [known.beside(values) for known, values in zip(printed, scores.T, strict=False)]
        rows.append([name, *cells, f"{scores[:, -1].mean():.1f}"])
        clocks.append([name, _ratios(*seconds.mean(axis=0)), _ratios(*problem.seconds)])
    yield f"3-NN, {n_splits} splits: ours (paper; z)."
    yield table(["data", *TITLES, "NMMP as a ratio trace"], rows)
    yield table(["seconds of LMNN, NMMP, LDA, relative to NMMP", "ours", "paper"], clocks)


def _ratios(lmnn: float, nmmp: float, lda: float) -> str:
    return f"{lmnn / nmmp:.3g}, 1, {lda / nmmp:.2g}"


def scatters(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Return S_b and S_w of the training rows (eqs. 5 and 3), with the paper's k_b and k_w."""
    rows = Rows(split.train, codes_of(split.y_train), EXACT)
    k_w = np.minimum(rows.class_sizes // 2 + 2, rows.class_sizes - 1)
    S_b, S_w = rows.mutual_knn("other", 10), rows.mutual_knn("same", k_w)
    return rows.scatter(S_b), rows.scatter(S_w)


def bracket(A: np.ndarray, B: np.ndarray, m: int) -> tuple[float, float]:
    """Return the bounds of the trace ratio (Theorem 1): tr A / tr B, and the m largest eigenvalues
    of A over the m smallest of B.
    """
    alpha, beta = eigvalsh(A)[-m:], eigvalsh(B)[:m]
    return np.trace(A) / np.trace(B), alpha.sum() / beta.sum()


def bisection(A: np.ndarray, B: np.ndarray, m: int, epsilon: float) -> tuple[float, int]:
    """Return the trace ratio by Table 1, and the number of decompositions, A and B included."""
    low, high = bracket(A, B, m)
    n_decompositions = 2
    while high - low > epsilon:
        rho = (low + high) / 2
        gamma = eigvalsh(A - rho * B)[-m:].sum()
        n_decompositions += 1
        if gamma > 0:
            low = rho
        else:
            high = rho
    return (low + high) / 2, n_decompositions


def table_1(run: Run) -> Iterator[str]:
    """Bounds of the trace ratio, and decompositions by bisection and by Newton's method."""
    n_splits = run.splits(50, quick=3)
    rows = []
    for problem in TABLE_4:
        try:
            X, y = problem.rows(run.data)
        except MissingDataError as missing:
            yield f"Skipped: {missing}."
            continue
        counts, bounds, errors = [], [], []
        for _, rng in run.repeat(problem.name, n_splits):
            split = without_null_space(Split.of(X, y, of_each_class(y, problem.per_class, rng)))
            A, B = scatters(split)
            newton = trace_ratio(A, B, problem.m)
            optimum = newton.objective
            halved = [bisection(A, B, problem.m, epsilon * optimum) for epsilon in EPSILONS]
            counts.append([n for _, n in halved] + [newton.n_iter])
            bounds.append(np.divide(bracket(A, B, problem.m), optimum))
            errors.append(abs(halved[-1][0] / optimum - 1))
        cells = [f"{bound:.3g}" for bound in np.median(bounds, axis=0)]
        cells += [f"{count:.1f}" for count in np.mean(counts, axis=0)]
        rows.append([problem.name, *cells, f"{max(errors):.0e}"])
    yield (
        f"Medians of the bounds over the optimum, and mean numbers of decompositions, {n_splits} "
        "splits:"
    )
    epsilons = (f"bisection, epsilon {epsilon:.0e}" for epsilon in EPSILONS)
    header = ["data", "lower bound", "upper bound", *epsilons, "Newton's method", "difference"]
    yield table(header, rows)


def sensitivity(run: Run) -> Iterator[str]:
    """Every k_w with every k_b on the same splits."""
    n_splits = run.splits(10, quick=2)
    rows = []
    for problem in (problem for problem in TABLE_4 if problem.same_data):
        try:
            X, y = problem.rows(run.data)
        except MissingDataError as missing:
            yield f"Skipped: {missing}."
            continue
        size = problem.per_class
        drawn = run.repeat(problem.name, n_splits)
        splits = [
            without_null_space(Split.of(X, y, of_each_class(y, size, rng))) for _, rng in drawn
        ]
        cells = []
        for k_w in K_WITHIN:
            there = k_w is None or k_w < size
            means = [_mean_score(problem, splits, k_w, k_b) for k_b in K_BETWEEN if there]
            cells.append(f"{min(means):.1f} to {max(means):.1f}" if means else "")
        rows.append([f"{problem.name} ({min(size // 2 + 2, size - 1)})", *cells])
    yield "Lowest and highest mean over k_b of 3 to 40, by k_w:"
    yield table(["data (default k_w)", "default", *map(str, K_WITHIN[1:])], rows)


def _mean_score(problem: Problem, splits: list[Split], k_w: int | None, k_b: int) -> float:
    """Return the mean accuracy of the splits."""
    model = NMMP(problem.m, n_neighbors_within=k_w, n_neighbors_between=k_b, shrinkage=None)
    return float(np.mean([s.score(model.fit(s.train, s.y_train).transform, 3) for s in splits]))


def figure_2(run: Run) -> Iterator[str]:
    """Three classes on concentric circles, hidden by eight features of noise."""
    X, y = make_concentric_classes(900, random_state=0)
    new, new_y = make_concentric_classes(random_state=1)
    split = Split(X, y, new, new_y)
    models = {
        "PCA": PCA(2),
        "LDA": LinearDiscriminantAnalysis(n_components=2),
        "NMMP": NMMP(2, shrinkage=None),
    }
    maps: dict[str, Map] = {"the first two features": lambda Z: Z[:, :2]}
    maps |= {name: model.fit(X, y).transform for name, model in models.items()}
    titles = {
        f"{name}\n3-NN on new rows {split.score(to_plane, 3):.0f} %": to_plane(X)
        for name, to_plane in maps.items()
    }
    yield run.picture(
        "nmmp-figure2", panels(titles, y), "Only the first two features and NMMP show three circles"
    )


EXPERIMENTS = (
    Experiment(
        "nmmp-table1",
        "NMMP, Table 1: the bisection, and its bracket",
        (
            "Splits and directions of Table 4; epsilon, which the paper leaves open, and the "
            "difference of the optima are shares of the optimum.",
            "Newton's method is that of this library, from the lower bound.",
        ),
        table_1,
    ),
    Experiment(
        "nmmp-table4",
        "NMMP, Table 4: 3-NN after NMMP, LDA and LMNN",
        (
            "LDA's directions have unit length; News is TF-IDF without normalization to unit "
            "length; Objects are every 8th pixel: only so the baselines are the paper's.",
            "Our USPS has other pixels, so its results are not comparable.",
            "LMNN has the defaults of this library.",
        ),
        table_4,
    ),
    Experiment(
        "nmmp-sensitivity",
        'NMMP, section 6: "the parameters in our method are not sensitive"',
        ("3-NN on the splits of Table 4.",),
        sensitivity,
    ),
    Experiment(
        "nmmp-figure2",
        "NMMP, figure 2: circles under noise",
        ("The geometry is ours: radii 1, 3 and 5, noise of 3, 300 rows per class.",),
        figure_2,
    ),
)
