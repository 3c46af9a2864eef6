"""What a sample of many rows is worth; in docs/measured/scaling.md.

    python -m benchmarks.studies.samples --document docs/measured/scaling.md

DNE is fitted to a sample of the rows of speed/million.py, and to the neighbours of a sample among all
rows. The part of the page between the marks, and its picture, are replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.measure import command, timed
from benchmarks.report import save, table
from benchmarks.speed.million import HELD_OUT, drawn
from nearkin.graphs import binary, laplacian, union
from nearkin.neighbors import nearest_other_class, nearest_same_class, searcher
from nearkin.scatter import scatter
from nearkin.spectral import trace_difference

DIRECTIONS = 64
ANCHORED_ROWS, SAMPLES, DRAWS = 100_000, (1_000, 3_000, 10_000, 30_000, 100_000), 3


def anchors(folder: Path = Path("docs", "images", "scaling")) -> str:
    """Return a table of samples, fitted alone, or with their neighbours among all rows; and draw it."""
    X, y = drawn(ANCHORED_ROWS, 1)
    test, y_test = drawn(HELD_OUT, 2)

    def accuracy(V: np.ndarray) -> float:
        vote = KNeighborsClassifier(3, algorithm="brute").fit(X @ V, y)
        return 100 * vote.score(test @ V, y_test)

    def learned(X: np.ndarray, y: np.ndarray, k: Any, search: Any) -> tuple[np.ndarray, np.ndarray]:
        same, other = (
            laplacian(union(binary(near(X, y, k, search))))
            for near in (nearest_same_class, nearest_other_class)
        )
        S = scatter(X, same) - scatter(X, other)
        return S, trace_difference(S, DIRECTIONS).vectors

    seconds, _, (S, V) = timed(learned, X, y, 1, searcher("approximate", len(X)))
    best = np.trace(V.T @ S @ V)
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {
        (how, len(X)): [(100.0, accuracy(V.astype(np.float32)), seconds)]
        for how in ("rows", "anchors")
    }
    for m in SAMPLES[:-1]:
        for draw in range(DRAWS):
            drawn_rows = np.sort(np.random.default_rng(draw).choice(len(X), m, replace=False))
            k = np.zeros(len(X), int)
            k[drawn_rows] = 1
            ways = {
                "rows": lambda: learned(X[drawn_rows], y[drawn_rows], 1, searcher("auto", m)),  # noqa: B023
                "anchors": lambda: learned(X, y, k, searcher("approximate", len(X))),  # noqa: B023
            }
            for how, way in ways.items():
                seconds, _, (_, U) = timed(way)
                share = 100 * np.trace(U.T @ S @ U) / best
                found.setdefault((how, m), []).append(
                    (share, accuracy(U.astype(np.float32)), seconds)
                )
    rows = []
    for m in SAMPLES:
        for how, name in (("rows", "the sample alone"), ("anchors", "neighbours among all rows")):
            share, score, seconds = np.array(found[how, m]).T
            cells = [f"{one.mean():.2f}{spread(one)}" for one in (share, score)]
            name = name if m < len(X) else "all rows"
            rows.append([f"{m:,}", name, *cells, f"{seconds.mean():.1f}"])
    draw_anchors(found, folder / "anchors.png")
    optimum = "share of the optimum of all rows, %"
    return table(["m", "fitted to", optimum, "held-out 3-NN, %", "seconds"], rows[:-1])


def spread(values: np.ndarray) -> str:
    return f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""


def draw_anchors(
    found: dict[tuple[str, int], list[tuple[float, float, float]]], path: Path
) -> None:
    figure, sides = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for how, name, style in (
        ("rows", "the sample alone", "o-"),
        ("anchors", "neighbours among all rows", "s--"),
    ):
        m = sorted(m for one, m in found if one == how)
        for axes, at in zip(sides, (1, 2), strict=True):
            means = [np.mean([one[at] for one in found[how, each]]) for each in m]
            axes.plot(m, means, style, label=name)
    sides[0].set(xscale="log", xlabel="m", ylabel="held-out 3-NN, %")
    sides[1].set(xscale="log", yscale="log", xlabel="m", ylabel="seconds")
    sides[0].legend(frameon=False)
    for axes in sides:
        axes.grid(alpha=0.3)
    save(figure, path, dpi=120)


if __name__ == "__main__":
    command(anchors)
