"""NMMP and DNE under the protocols of their papers, as Markdown tables.

    NEARKIN_DATA=folder python benchmarks/papers/dne_nmmp.py > tables.md

NEARKIN_DATA names a folder of NPZ files; what is not there is skipped, and the tables say so. Iris and wdbc come with
scikit-learn. Accuracies are percentages, standard deviations are those over the splits (ddof=1).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import svd
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import DNE, NMMP

Loader = Callable[[], tuple[Any, np.ndarray]]

K_WITHIN = (None, 3, 5, 10, 20)
K_BETWEEN = (3, 5, 10, 20, 40)


def read(name: str) -> Any:
    """Return a file of the data folder, or raise FileNotFoundError."""
    folder = os.environ.get("NEARKIN_DATA")
    if not folder:
        raise FileNotFoundError("NEARKIN_DATA is not set")
    return np.load(os.path.join(folder, f"{name}.npz"))


def stored(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = read(name)
    return data["X"].astype(np.float64), data["y"]


def digits_1_to_4() -> tuple[np.ndarray, np.ndarray]:
    X, y = stored("usps")
    chosen = (y >= 1) & (y <= 4)
    return X[chosen], y[chosen]


def news() -> tuple[csr_array, np.ndarray]:
    """Rows not scaled to unit length: only these have the paper's baseline."""
    data = read("news_rec")
    values = data["data_unnorm"].astype(np.float64)
    return csr_array((values, data["indices"], data["indptr"]), shape=data["shape"]), data["y"]


@dataclass(frozen=True)
class Problem:
    """A row of NMMP's Table 4: the protocol, and the accuracies that the paper found."""

    name: str
    load: Loader
    per_class: int
    m: int
    baseline: float
    lda: float
    nmmp: float
    nmmp_std: float
    same_data: bool = True  # False: not the paper's pixels, so no target


TABLE_4 = (
    Problem("Iris", partial(load_iris, return_X_y=True), 20, 3, 95.4, 96.6, 96.5, 1.6),
    Problem("Balance", partial(stored, "balance_scale"), 20, 2, 61.6, 74.9, 72.9, 4.2),
    Problem("Faces", partial(stored, "orl_112x92"), 5, 60, 86.9, 92.2, 96.6, 1.6),
    Problem("Objects", partial(stored, "coil20_16_subsampled"), 6, 60, 76.8, 78.2, 86.5, 1.6),
    Problem("USPS", digits_1_to_4, 20, 60, 93.2, 84.2, 94.5, 0.9, same_data=False),
    Problem("News", news, 30, 60, 30.9, 46.9, 58.5, 5.0),
)


@dataclass(frozen=True)
class Study:
    """A panel of DNE's figures 2 and 3: training rows of each class, as shares (below 1) or numbers."""

    name: str
    load: Loader
    sizes: tuple[float, ...] = (0.7, 0.3)
    standardise: bool = False


FIGURES_2_3 = (
    Study("sonar", partial(stored, "sonar")),
    Study("ionosphere", partial(stored, "ionosphere")),
    Study("wdbc", partial(load_breast_cancer, return_X_y=True)),
    Study("wdbc, standardised", partial(load_breast_cancer, return_X_y=True), standardise=True),
    Study("UMIST (28 x 23)", partial(stored, "umist_28x23"), (4, 6, 8, 10)),
)


def available(experiments: Iterable[Any]) -> Iterator[tuple[Any, Any, np.ndarray]]:
    """Yield the experiments whose data can be loaded, with X and y; print why the others are skipped."""
    for experiment in experiments:
        try:
            X, y = experiment.load()
        except FileNotFoundError as reason:
            print(f"Skipped: {experiment.name} ({reason}).\n")
        else:
            yield experiment, X, y


@dataclass(frozen=True)
class Split:
    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray

    def score(self, transform: Callable[[Any], Any], n_neighbors: int) -> float:
        """Return the percentage of test rows that the training rows vote right, both transformed."""
        knn = KNeighborsClassifier(n_neighbors, algorithm="brute").fit(transform(self.train), self.y_train)
        return 100 * knn.score(transform(self.test), self.y_test)


def draw(X: Any, y: np.ndarray, size: float, n_splits: int, seed: int, name: str) -> Iterator[Split]:
    """Yield random splits with `size` training rows of each class; the first ones do not depend on n_splits."""
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    for number in range(n_splits):
        print(f"\r{name}: split {number + 1}/{n_splits} ", end="", file=sys.stderr, flush=True)
        rng = np.random.default_rng([seed, number])
        counts = [size if size >= 1 else round(size * len(rows)) for rows in classes]
        train = np.concatenate([rng.permutation(rows)[:n] for rows, n in zip(classes, counts, strict=True)])
        test = np.setdiff1d(np.arange(len(y)), train)
        yield Split(X[train], y[train], X[test], y[test])
    print(file=sys.stderr)


def project(split: Split) -> Split:
    """Drop the null space of the training covariance (NMMP's step 0), largest variance first, for every method."""
    train = split.train.toarray() if issparse(split.train) else split.train
    mean = train.mean(axis=0)
    _, s, Vt = svd(train - mean, full_matrices=False)
    V = Vt[s > 1e-10 * s[0]].T
    return Split(train @ V - mean @ V, split.y_train, split.test @ V - mean @ V, split.y_test)


def fit_lda(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return LDA's map from the leading principal components, so few that S_w is not singular.

    Its columns have unit length: with W'S_w W = I instead, faces lose 40 points.
    """
    n_classes = len(np.unique(y))
    d = min(X.shape[1], len(X) - n_classes)
    W = LinearDiscriminantAnalysis(solver="eigen").fit(X[:, :d], y).scalings_[:, : n_classes - 1]
    W /= np.linalg.norm(W, axis=0)
    return lambda Z: Z[:, :d] @ W


def table_4_scores(problem: Problem, split: Split) -> list[float]:
    """Return the accuracies of baseline, LDA and NMMP in its two forms, and the seconds that NMMP trains."""
    start = time.perf_counter()
    split = project(split)
    nmmp = NMMP(problem.m).fit(split.train, split.y_train)
    seconds = time.perf_counter() - start
    ratio_trace = NMMP(problem.m, criterion="ratio_trace").fit(split.train, split.y_train)
    lda = fit_lda(split.train, split.y_train)
    maps = (lambda Z: Z, lda, nmmp.transform, ratio_trace.transform)
    return [*(split.score(transform, 3) for transform in maps), seconds]


def print_nmmp(n_splits: int, seed: int) -> None:
    """NMMP, Table 4: ours and, in brackets, the paper's."""
    print(f"## NMMP, Table 4: 3-NN, {n_splits} splits, ours (paper)\n")
    rows, verdicts = [], {True: [], False: []}
    for problem, X, y in available(TABLE_4):
        splits = draw(X, y, problem.per_class, n_splits, seed, problem.name)
        scores = np.array([table_4_scores(problem, split) for split in splits])
        baseline, lda, nmmp, ratio_trace, seconds = scores.mean(axis=0)
        difference = (nmmp - problem.nmmp) / problem.nmmp_std
        name = problem.name if problem.same_data else f"{problem.name} (other pixels)"
        ours = [f"{baseline:.1f} ({problem.baseline})", f"{lda:.1f} ({problem.lda})"]
        ours.append(f"{mean_std(scores[:, 2])} ({problem.nmmp} ± {problem.nmmp_std})")
        rows.append([name, *ours, f"{difference:+.2f}", f"{ratio_trace:.1f}", f"{seconds:.3f}"])
        if problem.same_data:
            verdicts[abs(difference) <= 1].append(problem.name)
    header = "data set, baseline, LDA, NMMP, difference in the paper's std, NMMP as a ratio trace, NMMP seconds a run"
    print_markdown(header.split(", "), rows)
    print("The seconds include NMMP's step 0, on one thread.\n")
    print(f"NMMP within one standard deviation of the paper: {', '.join(verdicts[True]) or 'none'}.")
    print(f"Not within: {', '.join(verdicts[False]) or 'none'}. No target: USPS, whose pixels are not the paper's.\n")


def nmmp_scores(problem: Problem, splits: list[Split], k_w: int | None, k_b: int) -> tuple[float, int]:
    """Return the mean accuracy, and the fewest directions that a split left."""
    model = NMMP(problem.m, n_neighbors_within=k_w, n_neighbors_between=k_b)
    results = [(s.score(model.fit(s.train, s.y_train).transform, 3), model.n_components_) for s in splits]
    accuracies, dimensions = zip(*results, strict=True)
    return float(np.mean(accuracies)), min(dimensions)


def print_sensitivity(n_splits: int, seed: int) -> None:
    """NMMP, "the parameters in our method are not sensitive": every k_w with every k_b on the same splits."""
    n_splits = min(n_splits, 10)
    print(f"## NMMP, accuracy for k_w (rows) and k_b (columns): 3-NN, {n_splits} splits\n")
    print("In brackets: the fewest directions in a split, where the graphs left fewer than m.\n")
    for problem, X, y in available(problem for problem in TABLE_4 if problem.same_data):
        size = problem.per_class
        splits = [project(split) for split in draw(X, y, size, n_splits, seed, problem.name)]
        rows, accuracies = [], []
        for k_w in [k_w for k_w in K_WITHIN if k_w is None or k_w < size]:
            scores = [nmmp_scores(problem, splits, k_w, k_b) for k_b in K_BETWEEN]
            accuracies += [accuracy for accuracy, _ in scores]
            cells = [f"{accuracy:.1f}" + f" ({m})" * (m < problem.m) for accuracy, m in scores]
            rows.append([str(k_w or f"default ({min(size // 2 + 2, size - 1)})"), *cells])
        print(f"### {problem.name}: {min(accuracies):.1f} to {max(accuracies):.1f}\n")
        print_markdown(["k_w \\ k_b", *map(str, K_BETWEEN)], rows)


def dne_scores(split: Split, n_neighbors: int) -> list[float]:
    """Return accuracies of raw features, DNE and DNE by theta, both dimensions, DNE's leave-one-out on training."""
    full = DNE(n_neighbors=n_neighbors).fit(split.train, split.y_train)
    theta = DNE(0.96, n_neighbors=n_neighbors).fit(split.train, split.y_train)
    accuracies = [split.score(transform, 1) for transform in (lambda X: X, full.transform, theta.transform)]
    # the map is learned once: only the vote leaves one out (score without rows)
    knn = KNeighborsClassifier(1, algorithm="brute").fit(full.transform(split.train), split.y_train)
    return [*accuracies, full.n_components_, theta.n_components_, 100 * knn.score(None, split.y_train)]


def standardised(split: Split) -> Split:
    scaler = StandardScaler().fit(split.train)
    return Split(scaler.transform(split.train), split.y_train, scaler.transform(split.test), split.y_test)


def dne_row(splits: list[Split], n_neighbors: int) -> list[str]:
    scores = np.array([dne_scores(split, n_neighbors) for split in splits])
    gain = scores[:, 1] - scores[:, 0]
    dimensions = " / ".join(f"{d:.1f}" for d in scores[:, 3:5].mean(axis=0))
    difference = f"{gain.mean():+.2f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.2f}"
    return [*map(mean_std, scores[:, :3].T), dimensions, difference, mean_std(scores[:, 5])]


def print_dne(n_splits: int, seed: int) -> None:
    """DNE, figures 2 and 3, which show curves and bars but no numbers."""
    n_splits = max(n_splits, 10)
    print(f"## DNE, figures 2 and 3: 1-NN, {n_splits} splits\n")
    rows = []
    for study, X, y in available(FIGURES_2_3):
        for size in study.sizes:
            training = f"{size:.0%}" if size < 1 else f"{size} a person"
            splits = list(draw(X, y, size, n_splits, seed, f"{study.name}, {training}"))
            if study.standardise:
                splits = [standardised(split) for split in splits]
            rows += [[study.name, training, str(k), *dne_row(splits, k)] for k in (1, 5)]
    header = "data set; training; k of DNE; raw; DNE, λ < 0; DNE, θ = 0.96; dimensions (λ < 0 / θ)"
    header += "; DNE - raw, paired (± standard error); DNE, leave-one-out on training rows"
    print_markdown(header.split("; "), rows)
    print("Splits share rows: the standard error is that of the mean over splits, for these rows.")


def mean_std(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"


def print_markdown(header: list[str], rows: list[list[str]]) -> None:
    for cells in (header, ["---"] * len(header), *rows):
        print("|", " | ".join(cells), "|")
    print(flush=True)


def main() -> None:
    tables = {"nmmp": print_nmmp, "sensitivity": print_sensitivity, "dne": print_dne}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=50, help="sensitivity takes at most 10, dne at least 10")
    parser.add_argument("--only", nargs="+", choices=tables, default=list(tables), help="tables to print")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.splits < 2:
        parser.error("--splits must be at least 2: one split has no standard deviation")
    warnings.filterwarnings("ignore", "n_components=.* were asked for")  # table of sensitivity: in brackets
    with threadpool_limits(1):  # the matrices are small: threads would wait for one another most of the time
        for name in args.only:
            tables[name](args.splits, args.seed)


if __name__ == "__main__":
    main()
