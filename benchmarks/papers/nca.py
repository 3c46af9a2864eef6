"""NCA under the protocol of its paper (section 4): figures 1 and 2, as Markdown tables and a picture.

    NEARKIN_DATA=folder python benchmarks/papers/nca.py --figure nca.png > tables.md

NEARKIN_DATA names a folder of NPZ files; what is not there is skipped, and the tables say so. Accuracies are
percentages over random 70/30 splits (usps: 200 training and 500 test rows a class), standard deviations over the splits
(ddof=1).

What the paper leaves open, and what is done here: every feature is standardized on the training rows, for all methods
alike; housing's price is cut into thirds of the training rows; usps is 8 x 8, means of 2 x 2 pixels; NCA has the
library's defaults. The set of faces is not public and is left out.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import NCA, RCA, SoftNeighborsClassifier

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # training and test rows, their labels


class UnitLDA(LinearDiscriminantAnalysis):
    """The first two directions of LDA, at unit length (one, where there are two classes).

    scikit-learn's own are whitened within the classes, which is what RCA does after them.
    """

    def transform(self, X: np.ndarray) -> np.ndarray:
        W = self.scalings_[:, : min(2, len(self.classes_) - 1)]
        return X @ (W / np.linalg.norm(W, axis=0))


SQUARE: dict[str, Callable[[], Any]] = {
    "Euclidean": FunctionTransformer,
    "whitening": lambda: PCA(whiten=True, n_components=1 - 1e-10, svd_solver="full"),
    "RCA": RCA,
    "NCA f": NCA,
    "NCA g": lambda: NCA(objective="log_likelihood"),
    "NCA diagonal": lambda: NCA(structure="diagonal"),
}
PLANE: dict[str, Callable[[], Any]] = {
    "PCA": lambda: PCA(2),
    "LDA": UnitLDA,
    "LDA + RCA": lambda: make_pipeline(UnitLDA(), RCA()),
    "NCA": lambda: NCA(2),
}


def stored(name: str) -> Any:
    folder = os.environ.get("NEARKIN_DATA")
    if not folder:
        raise FileNotFoundError("NEARKIN_DATA is not set")
    return np.load(os.path.join(folder, f"{name}.npz"))


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in ("iris", "wine"):
        return {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    data = stored({"balance": "balance_scale", "housing": "boston_housing"}.get(name, name))
    X = data["X"].astype(np.float64)
    return (X.reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)).reshape(-1, 64) if name == "usps" else X), data["y"]


def split(name: str, seed: int) -> Split:
    X, y = table(name)
    if name == "usps":
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(np.flatnonzero(y == c))[:700] for c in range(10)]
        train, test = np.concatenate([rows[:200] for rows in drawn]), np.concatenate([rows[200:] for rows in drawn])
    else:
        strata = None if name == "housing" else y
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=strata)
    scaler = StandardScaler().fit(X[train])
    if name == "housing":
        y = np.digitize(y, np.quantile(y[train], [1 / 3, 2 / 3]))
    return scaler.transform(X[train]), scaler.transform(X[test]), y[train], y[test]


def one_nearest(
    Z_train: np.ndarray, Z_test: np.ndarray, y_train: np.ndarray, y_test: np.ndarray
) -> tuple[float, float]:
    """Return the accuracy of 1-NN on the training rows, each left out, and on the test rows."""
    vote = KNeighborsClassifier(1).fit(Z_train, y_train)
    nearest = vote.kneighbors(n_neighbors=1, return_distance=False)[:, 0]
    return [100 * np.mean(y_train[nearest] == y_train), 100 * vote.score(Z_test, y_test)]


def votes(Z_train: np.ndarray, Z_test: np.ndarray, y_train: np.ndarray, y_test: np.ndarray) -> list[float]:
    """Return the accuracies of 1-NN, 3-NN and the stochastic vote (eq. 1) on the test rows."""
    rules = KNeighborsClassifier(1), KNeighborsClassifier(3), SoftNeighborsClassifier()
    return [100 * rule.fit(Z_train, y_train).score(Z_test, y_test) for rule in rules]


def spread(values: Any) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def paired(a: Any, b: Any) -> str:
    difference = np.subtract(a, b)
    return f"{difference.mean():+.2f} ± {difference.std(ddof=1) / np.sqrt(len(difference)):.2f}"


def figure_1(names: list[str], n_splits: int) -> None:
    open_questions = []
    for maps, title in ((SQUARE, "square maps"), (PLANE, "two dimensions")):
        print(f"\n### Figure 1, {title}: 1-NN, left-out training rows / test rows, {n_splits} splits\n")
        print(f"| data | {' | '.join(maps)} |\n| --- |{' --- |' * len(maps)}", flush=True)
        for name in names:
            try:
                scores, polls = judged(maps, name, n_splits)
            except FileNotFoundError as error:
                print(f"| {name} | skipped: {error} |")
                continue
            cells = [f"{spread(scores[m][:, 0])} / {spread(scores[m][:, 1])}" for m in maps]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
            if maps is SQUARE:
                open_questions.append(f"| {name} | {' | '.join(differences(polls))} |")
    print("\n### The paper's open questions: differences on test rows, paired (± standard error over splits)\n")
    print("| data | f - g, 1-NN | f - g, 3-NN | f: stochastic - 1-NN | f: stochastic - 3-NN |", end="")
    print(" g: stochastic - 1-NN | g: stochastic - 3-NN |\n|" + " --- |" * 7)
    print("\n".join(open_questions))


def differences(polls: dict[str, np.ndarray]) -> list[str]:
    f, g = polls["NCA f"].T, polls["NCA g"].T
    return [paired(f[0], g[0]), paired(f[1], g[1]), *(paired(z[2], z[k]) for z in (f, g) for k in (0, 1))]


def judged(
    maps: dict[str, Callable[[], Any]], name: str, n_splits: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return 1-NN accuracies (splits, 2) of every map, and the three votes (splits, 3) after NCA f and g."""
    scores: dict[str, list[list[float]]] = {m: [] for m in maps}
    polls: dict[str, list[list[float]]] = {"NCA f": [], "NCA g": []}
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = split(name, seed)
        for m, make in maps.items():
            fitted = make().fit(X_train, y_train)
            Z_train, Z_test = fitted.transform(X_train), fitted.transform(X_test)
            scores[m].append(one_nearest(Z_train, Z_test, y_train, y_test))
            if m in polls:
                polls[m].append(votes(Z_train, Z_test, y_train, y_test))
    return {m: np.array(values) for m, values in scores.items()}, {m: np.array(rows) for m, rows in polls.items()}


def rings(seed: int, n: int = 500) -> Split:
    """Five concentric circles of radii 1 to 5, noise of deviation 2 across them, turned at random."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 5
    angle = rng.uniform(0, 2 * np.pi, n)
    X = np.column_stack([(y + 1) * np.cos(angle), (y + 1) * np.sin(angle), 2 * rng.standard_normal(n)])
    X = X @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
    return X[train], X[test], y[train], y[test]


def figure_2(path: str | None) -> None:
    accuracies = {m: [] for m in PLANE if m != "LDA + RCA"}
    for seed in range(20):
        X_train, X_test, y_train, y_test = rings(seed)
        for m in accuracies:
            fitted = PLANE[m]().fit(X_train, y_train)
            accuracies[m].append(one_nearest(fitted.transform(X_train), fitted.transform(X_test), y_train, y_test)[1])
    print("\n### Figure 2, concentric rings in the plane: 1-NN on test rows, 20 seeds\n")
    print(", ".join(f"{m} {spread(values)}" for m, values in accuracies.items()))
    if path:
        draw(path)


def digits_1_to_5(seed: int) -> Split:
    X_train, X_test, y_train, y_test = split("usps", seed)
    train, test = np.isin(y_train, range(1, 6)), np.isin(y_test, range(1, 6))
    return X_train[train], X_test[test], y_train[train], y_test[test]


def draw(path: str) -> None:
    import matplotlib.pyplot as plt

    from nearkin.plotting import COLORS, MARKERS

    sets = {"rings": rings, "wine": lambda seed: split("wine", seed), "digits 1 to 5": digits_1_to_5}
    figure, axes = plt.subplots(len(sets), 3, figsize=(10, 10), layout="constrained")
    for row, (name, draw_split) in zip(axes, sets.items(), strict=True):
        X_train, X_test, y_train, y_test = draw_split(0)
        for ax, m in zip(row, ("PCA", "LDA", "NCA"), strict=True):
            fitted = PLANE[m]().fit(X_train, y_train)
            Z = fitted.transform(X_test)
            score = one_nearest(fitted.transform(X_train), Z, y_train, y_test)[1]
            for c, color, marker in zip(np.unique(y_test), COLORS, MARKERS, strict=False):
                ax.scatter(*Z[y_test == c].T, s=8, color=color, marker=marker, linewidths=0, label=str(c))
            ax.set(title=f"{name}, {m}\n1-NN {score:.1f} % of test rows", xticks=[], yticks=[])
        ax.legend(title="class", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, markerscale=2)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    names = ["balance", "ionosphere", "iris", "wine", "housing", "usps"]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=40, help="default 40")
    parser.add_argument("--sets", nargs="*", default=names, choices=names)
    parser.add_argument("--figure", metavar="FILE", help="draw figure 2 there")
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure_2(options.figure)
        figure_1(options.sets, options.splits)
