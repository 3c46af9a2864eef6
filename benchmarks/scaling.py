"""What a fit of many rows costs, and what a sample of them is worth.

    python benchmarks/scaling.py cost anchors --document docs/measured/scaling.md

The rows are those of million.py. `cost` times both searches of DNE and its scatter at 20,000,
60,000 and 200,000 rows, also with lists that are longer and fewer, as of more rows; it fits one
constant for every kind of work (least squares of relative errors) and checks them at 600,000 rows.
`anchors` fits DNE to a sample of the rows, and to the neighbours of a sample among all rows. The
parts of the document between the marks, and its pictures, are replaced.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from million import CLASSES, FEATURES, HELD_OUT, drawn
from scipy.optimize import nnls
from sklearn.neighbors import KNeighborsClassifier

from nearkin import DNE
from nearkin._blocks import n_threads
from nearkin.graphs import binary, laplacian, union
from nearkin.neighbors import ApproximateSearch, nearest_other_class, nearest_same_class, searcher
from nearkin.neighbors.approximate import (
    BRUTE_CLASS,
    LISTS_TOGETHER,
    ONE_ROUND,
    PROBES_TOGETHER,
    PROJECTED_TO,
    TOGETHER,
    n_ranked,
)
from nearkin.scatter import scatter
from nearkin.spectral import trace_difference

SIZES, CHECK, BEYOND = (20_000, 60_000, 200_000), 600_000, (10**6, 10**7, 10**8, 10**9)
KINDS = (
    "project: flop",
    "assign: flop",
    "gather: byte",
    "compare: pair",
    "rank: byte",
    "scatter: flop",
)
DIRECTIONS, LONGER = 64, 4
ANCHORED_ROWS, SAMPLES, DRAWS = 100_000, (1_000, 3_000, 10_000, 30_000, 100_000), 3


def n_lists(n: float) -> float:
    """Return how many lists there are."""
    return LISTS_TOGETHER * n**0.5


def compared(n: float, same: bool, longer: int) -> tuple[float, float]:
    """Return how many rows are searched together, and with how many candidates they are compared."""
    of_class = n / CLASSES
    if same and of_class <= BRUTE_CLASS:
        return min(TOGETHER, of_class), of_class
    of_list = n / n_lists(n)
    return min(TOGETHER, of_list * longer), min(
        of_class if same else n - of_class, PROBES_TOGETHER * of_list
    )


def search_work(n: float, k: int, *, same: bool, first: bool, longer: int = 1) -> np.ndarray:
    """Return the work of a search by kind; the first one projects (same class) or assigns (other
    classes) the rows.

    Lists are so many times as long as usual, and so many times fewer are searched.
    """
    projected = 2 * n * FEATURES * PROJECTED_TO if first and same else 0
    of_class = n_lists(n) / CLASSES / longer
    centres = of_class if of_class <= ONE_ROUND else 2 * of_class**0.5
    assigned = 2 * n * PROJECTED_TO * centres if first and not same else 0
    together, candidates = compared(n, same, longer)
    gathered = 4 * n / together * candidates * PROJECTED_TO
    return np.array(
        [projected, assigned, gathered, n * candidates, 4 * n * int(n_ranked(0, k)) * FEATURES, 0]
    )


def scatter_work(n: float) -> np.ndarray:
    return np.array([0, 0, 0, 0, 0, 4 * n * FEATURES**2])


def fit_work(n: float) -> np.ndarray:
    """Return the work of DNE with k = 1."""
    return sum(search_work(n, 1, same=same, first=True) for same in (True, False)) + scatter_work(n)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measured(
    n: int, k: Iterable[int], longer: Iterable[int]
) -> list[tuple[str, np.ndarray, float]]:
    """Return what was done with n rows, its work, and its seconds: the fewer of two runs."""
    X, y = drawn(n, 1)
    questions = {True: nearest_same_class, False: nearest_other_class}
    timings: dict[str, tuple[str, np.ndarray, float]] = {}

    def record(name: str, work: np.ndarray, run: Callable[[], Any]) -> None:
        seconds, _ = timed(run)
        timings[name] = (name, work, min(seconds, timings.get(name, (name, work, seconds))[-1]))

    L = laplacian(union(binary(nearest_same_class(X[:, :8], y, 1, searcher("approximate", n)))))
    for _, times in product(range(2), longer):
        search = searcher(ApproximateSearch(int(n_lists(n)) // times, PROBES_TOGETHER // times), n)
        for each, (same, question) in product(k, questions.items()):
            name = f"{'same class' if same else 'other classes'}, k = {each}"
            name += f", lists {times} times as long" * (times > 1)
            work = search_work(n, each, same=same, first=each == min(k), longer=times)
            record(name, work, lambda: question(X, y, each, search))  # noqa: B023
        record("scatter", scatter_work(n), lambda: scatter(X, L))
    return list(timings.values())


def cost(folder: Path) -> str:
    """Return the section on the constants."""
    timings = {n: measured(n, (1, 10), (1, LONGER)) for n in SIZES}
    work, seconds = (
        np.array([one[i] for found in timings.values() for one in found]) for i in (1, 2)
    )
    constants, _ = nnls(work / seconds[:, None], np.ones(len(seconds)))
    cores = n_threads()
    lines = [f"| work | on {cores} cores |", "|---|---|"]
    lines += [
        f"| {kind} | {1e9 * each:.3g} ns |" for kind, each in zip(KINDS, constants, strict=True)
    ]
    lines += ["", f"| {CHECK:,} rows | predicted, s | measured, s |", "|---|---|---|"]
    for name, needed, took in measured(CHECK, (1,), (1,)):
        lines.append(f"| {name} | {needed @ constants:.0f} | {took:.0f} |")
        timings.setdefault(CHECK, []).append((name, needed, took))
    X, y = drawn(CHECK, 1)
    took = min(timed(lambda: DNE(DIRECTIONS, search="approximate").fit(X, y))[0] for _ in range(2))
    lines.append(f"| DNE, the whole fit | {fit_work(CHECK) @ constants:.0f} | {took:.0f} |")
    lines += [
        "",
        f"| DNE, rows | hours on {cores} cores | memory beside the rows, GB |",
        "|---|---|---|",
    ]
    for n in (CHECK, *BEYOND):
        lines.append(f"| {n:,} | {fit_work(n) @ constants / 3600:,.2f} | {memory(n) / 1e9:,.1f} |")
    draw_cost(timings, constants, folder / "cost.png", cores)
    return "\n".join(lines)


def memory(n: float) -> float:
    """Return the bytes beside the rows: the components twice, lists and graphs of both kinds (a
    peak of million.py).
    """
    return n * (8 * PROJECTED_TO + 300)


def draw_cost(timings: dict[int, Any], constants: np.ndarray, path: Path, cores: int) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    n = np.geomspace(min(SIZES), max(BEYOND), 60)
    for at, kind in enumerate(KINDS):
        axes.plot(
            n,
            [fit_work(each)[at] * constants[at] for each in n],
            lw=1,
            label=kind.partition(":")[0],
        )
    axes.plot(n, [fit_work(each) @ constants for each in n], "k", lw=2, label="DNE in all")
    for size, found in timings.items():
        took = sum(
            seconds for name, _, seconds in found if "k = 10" not in name and "long" not in name
        )
        axes.plot(size, took, "o" if size != CHECK else "s", color="k", mfc="w")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=f"seconds on {cores} cores")
    axes.set_title(
        "Lines: the model; circles: what it was fitted to; square: the check", fontsize=10
    )
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def anchors(folder: Path) -> str:
    """Return the section on samples: fitted alone, or with their neighbours among all rows."""
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

    seconds, (S, V) = timed(lambda: learned(X, y, 1, searcher("approximate", len(X))))
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
                seconds, (_, U) = timed(way)
                share = 100 * np.trace(U.T @ S @ U) / best
                found.setdefault((how, m), []).append(
                    (share, accuracy(U.astype(np.float32)), seconds)
                )
    lines = [
        "| m | fitted to | share of the optimum of all rows, % | held-out 3-NN, % | seconds |",
        "|---|---|---|---|---|",
    ]
    for m in SAMPLES:
        for how, name in (("rows", "the sample alone"), ("anchors", "neighbours among all rows")):
            share, score, seconds = np.array(found[how, m]).T
            lines.append(
                f"| {m:,} | {name if m < len(X) else 'all rows'} | "
                f"{share.mean():.2f}{spread(share)} | {score.mean():.2f}{spread(score)} | "
                f"{seconds.mean():.1f} |"
            )
    lines.pop()
    draw_anchors(found, folder / "anchors.png")
    return "\n".join(lines)


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
        m = [m for one, m in found if one == how]
        m.sort()
        for axes, at in zip(sides, (1, 2), strict=True):
            means = [np.mean([one[at] for one in found[how, each]]) for each in m]
            axes.plot(m, means, style, label=name)
    sides[0].set(xscale="log", xlabel="m", ylabel="held-out 3-NN, %")
    sides[1].set(xscale="log", yscale="log", xlabel="m", ylabel="seconds")
    sides[0].legend(frameon=False)
    for axes in sides:
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


PARTS = {"cost": cost, "anchors": anchors}


def renew(document: Path, name: str, text: str) -> None:
    """Put a section into the document, between its marks."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    renewed, n = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}",
        lambda _: f"{begin}\n{text}\n{end}",
        document.read_text(),
        flags=re.S,
    )
    assert n == 1, f"{document} has no {begin}"
    document.write_text(renewed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--document", type=Path)
    options = parser.parse_args()
    folder = (options.document.parent.parent if options.document else Path()) / "images" / "scaling"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.parts:
        text = PARTS[name](folder)
        print(text, flush=True)
        if options.document:
            renew(options.document, name, text)


if __name__ == "__main__":
    main()
