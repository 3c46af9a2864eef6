"""Discriminative Projections (Wang and Mahadevan): figures 2 to 7 and Table 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.sparse import csr_array
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import paired_euclidean_distances

from nearkin.estimators import LPP, DiscriminativeProjections
from nearkin.graphs import heat_kernel, union
from nearkin.neighbors import nearest
from nearkin.plotting import COLORS, MARKERS

from ..experiment import Experiment, Run, table
from ..pictures import blank, panels, solid_and_flat
from ..splits import of_each_class

SHOWN = (1, 3, 10)
SAME = "rows with one of the same class among their K nearest, %"
Maps = dict[str, np.ndarray]


@dataclass(frozen=True)
class Shares:
    """Shares of rows for K = 1, 2, ..., separately for rows whose labels were used and other rows."""

    used: np.ndarray
    unused: np.ndarray
    n_used: int
    n_unused: int

    @classmethod
    def of(cls, hits: np.ndarray, labelled: np.ndarray) -> Shares:
        """Return the shares of rows with a hit among their first 1, 2, ... entries of (n, K)."""
        found = np.logical_or.accumulate(hits, axis=1)
        used, unused = (found[rows].mean(axis=0) for rows in (labelled, ~labelled))
        return cls(used, unused, int(labelled.sum()), int((~labelled).sum()))


def neighbors_of(Z: Any) -> np.ndarray:
    """Return the ten nearest rows of every row, (n, 10)."""
    return nearest(Z, 10).indices.reshape(Z.shape[0], -1)


def same_class_among(Z: Any, y: np.ndarray, labelled: np.ndarray) -> Shares:
    """Return, for every K, the share of rows with a row of their class among their K nearest."""
    return Shares.of(y[neighbors_of(Z)] == y[:, None], labelled)


def kept_neighbors(X: Any, Z: np.ndarray, labelled: np.ndarray) -> Shares:
    """Return, for every K, the share of rows whose nearest row stays among their K nearest in Z."""
    J = np.column_stack([nearest(X, 1).indices, neighbors_of(Z)])
    X = X.astype(np.float64, copy=False)
    # computed from differences, so that the distance of duplicates is exactly 0
    smallest, *distances = (paired_euclidean_distances(X, X[neighbors]) for neighbors in J.T)
    return Shares.of(np.column_stack(distances) <= smallest[:, None] * (1 + 1e-10), labelled)


def some_of_each(y: np.ndarray, share: float) -> np.ndarray:
    """Return y with the labels of a random share of every class, -1 elsewhere."""
    rows = of_each_class(y, share, np.random.default_rng(0))
    few = np.full(len(y), -1)
    few[rows] = y[rows]
    return few


def figures_2_5(run: Run) -> Iterator[str]:
    """USPS, with half of the labels."""
    X, y = run.data.rows("usps")
    y = y.astype(int)
    few = some_of_each(y, 0.5)
    labelled = few >= 0
    W = union(heat_kernel(nearest(X, 10)))
    dp = DiscriminativeProjections(50).fit(X, few, affinity=W)
    lda = LinearDiscriminantAnalysis().fit(X[labelled], y[labelled]).transform(X)
    Z, lpp = dp.transform(X), LPP(50, variance=1).fit_transform(X)
    yield run.picture(
        "dp-figure2", solid_and_flat({"DP": Z, "LDA": lda, "LPP": lpp}, y), "Figure 2: all rows"
    )
    yield "Figure 3, share of rows with at least one of the same class among their K nearest:"
    maps = {
        "DP, 50-D": Z,
        "DP, 9-D": Z[:, :9],
        "LDA, 9-D": lda,
        "LPP, 50-D": lpp,
        "LPP, 9-D": lpp[:, :9],
        "raw": X,
    }
    same = {name: same_class_among(Z, y, labelled) for name, Z in maps.items()}
    yield from _curves(run, same, "dp-figure3", SAME)
    yield "The paper: DP in 50 and in 9 dimensions and LDA are equal, and far ahead of LPP."
    yield from _figure_4(run, X, y, few)
    close = DiscriminativeProjections(2, mu=1e-10).fit(X, few, affinity=W)
    places = {"l / s": dp.label_prototypes_[:, :2], "1e-10": close.label_prototypes_[:, :2]}
    yield run.picture(
        "dp-figure5", _names(places, np.unique(y)), "Figure 5: projected labels, by mu"
    )
    near = "; ".join(f"mu = {name}: {closest_labels(G)}" for name, G in places.items())
    yield (
        f"The closest labels, in units of the mean distance: {near}. The paper: 0-8 and 3-6-9; with "
        "mu = 1e-10 all are far apart."
    )


def _figure_4(run: Run, X: np.ndarray, y: np.ndarray, few: np.ndarray) -> Iterator[str]:
    """Labels as numbers, of four digits."""
    four = (y >= 1) & (y <= 4)
    X, y, few = X[four], y[four], few[four]
    numbers = np.where(few < 0, np.nan, few)
    maps = {
        "DP, continuous targets": DiscriminativeProjections(2, target="continuous").fit_transform(
            X, numbers
        ),
        "DP": DiscriminativeProjections(2).fit_transform(X, few),
        "LDA": LinearDiscriminantAnalysis(n_components=2)
        .fit(X[few > 0], few[few > 0])
        .transform(X),
        "LPP": LPP(2, variance=1).fit_transform(X),
    }
    yield run.picture("dp-figure4", panels(maps, y), "Figure 4: digits 1 to 4")
    yield (
        "Distances from the mean of digit 1 to those of 2, 3 and 4, relative to the first (in the "
        "paper they increase):"
    )
    yield table(["map", "2", "3", "4"], [[name, *_apart(Z, y)] for name, Z in maps.items()])


def _apart(Z: np.ndarray, y: np.ndarray) -> list[str]:
    means = np.array([Z[y == label].mean(axis=0) for label in np.unique(y)])
    distances = np.linalg.norm(means[1:] - means[0], axis=1)
    return [f"{distance:.2f}" for distance in distances / distances[0]]


def closest_labels(G: np.ndarray, n_pairs: int = 4) -> str:
    """Return which labels are nearest to each other, and how near in units of the mean distance."""
    distances = np.linalg.norm(G[:, None] - G, axis=2)
    i, j = np.triu_indices(len(G), 1)
    apart = distances[i, j] / distances[i, j].mean()
    return ", ".join(f"{i[k]}-{j[k]} {apart[k]:.2f}" for k in np.argsort(apart)[:n_pairs])


def figures_6_7(run: Run) -> Iterator[str]:
    """TDT2's four largest classes, with a third of the labels."""
    X, y = _tdt2(run)
    few = some_of_each(y, 1 / 3)
    labelled = few >= 0
    Z = DiscriminativeProjections(100).fit_transform(X, few)
    # as many coordinates as rows: no distance changes
    turned = qr(X.toarray().T, mode="r", overwrite_a=True, check_finite=False)[0][: len(y)].T
    lpp = LPP(100, variance=1).fit_transform(turned)
    lda = LinearDiscriminantAnalysis().fit(turned[labelled], y[labelled]).transform(turned)
    maps = {
        "DP, 100-D": Z,
        "DP, 3-D": Z[:, :3],
        "LDA, 3-D": lda,
        "LPP, 100-D": lpp,
        "LPP, 3-D": lpp[:, :3],
    }
    yield "Figure 6, share of rows whose original nearest neighbour is among their K nearest:"
    kept = {name: kept_neighbors(turned, Z, labelled) for name, Z in maps.items()}
    yield from _curves(
        run, kept, "dp-figure6", "rows whose original nearest neighbour is among their K nearest, %"
    )
    yield "The paper: DP and LPP in 100 dimensions are equal, and far ahead of all in 3."
    yield "Figure 7, share of rows with at least one of the same class among their K nearest:"
    same = {name: same_class_among(Z, y, labelled) for name, Z in (maps | {"raw": turned}).items()}
    yield from _curves(run, same, "dp-figure7", SAME)
    yield "The paper: DP in 100 dimensions is slightly ahead of DP in 3 and LDA, these far of LPP."


def _tdt2(run: Run) -> tuple[csr_array, np.ndarray]:
    counts, y = run.data.sparse("tdt2")
    y = y.astype(int)
    rows = np.flatnonzero(y <= 4)
    if run.quick:
        # rows of these classes come first
        rows = of_each_class(y[rows], 300, np.random.default_rng(0))
    return csr_array(TfidfTransformer().fit_transform(counts[rows])), y[rows]


def _curves(run: Run, curves: dict[str, Shares], name: str, what: str) -> Iterator[str]:
    """Yield what a figure draws, as a table and as a picture."""
    rows = [
        [
            name,
            *(f"{100 * shares.used[k - 1]:.1f} / {100 * shares.unused[k - 1]:.1f}" for k in SHOWN),
        ]
        for name, shares in curves.items()
    ]
    yield table(["K", *map(str, SHOWN)], rows)
    yield run.picture(name, _drawn(curves, what), what)


def _drawn(curves: dict[str, Shares], what: str) -> Any:
    figure = blank(10, 4)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, kind, title in zip(
        axes, ("used", "unused"), ("labels used", "labels not used"), strict=True
    ):
        for (name, shares), color, marker in zip(curves.items(), COLORS, MARKERS, strict=False):
            share = 100 * getattr(shares, kind)
            ax.plot(
                np.arange(1, len(share) + 1),
                share,
                color=color,
                marker=marker,
                ms=4,
                lw=1,
                label=name,
            )
        ax.set(title=title, xlabel="K")
    axes[0].set_ylabel(fill(what, 36))
    axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _names(places: Maps, names: np.ndarray) -> Any:
    figure = blank(9, 4.5)
    axes = figure.subplots(1, 2)
    for ax, (mu, G) in zip(axes, places.items(), strict=True):
        ax.scatter(*G.T, s=0)
        for name, place in zip(names, G, strict=True):
            ax.annotate(str(name), place, ha="center", va="center", fontsize=14)
        ax.set(title=f"mu = {mu}", xticks=[], yticks=[])
        ax.margins(0.1)
    return figure


GRAPH = "The graph (10 neighbours, heat weights) and LPP use all rows; mu = l / s."
APART = (
    "The paper evaluates on all rows; here those whose labels were used / not used are separate."
)
EXPERIMENTS = (
    Experiment(
        "dp-figures2-5",
        "Discriminative Projections, figures 2 to 5: USPS (curves without numbers in the paper)",
        (
            GRAPH,
            "The labels of a random half of each class are used.",
            APART,
        ),
        figures_2_5,
    ),
    Experiment(
        "dp-figures6-7",
        "Discriminative Projections, figures 6 and 7: TDT2 (curves without numbers in the paper)",
        (
            "As in figures 2 to 5, with the labels of a third of each class; rows are TF-IDF at unit "
            "length.",
        ),
        figures_6_7,
        threads=None,
    ),
)
