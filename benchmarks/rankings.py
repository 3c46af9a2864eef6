"""Ranks of methods over data sets, their tests and the picture of both (Demsar, JMLR 7, 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata, studentized_range, wilcoxon


def ranks(scores: np.ndarray) -> np.ndarray:
    """Return the mean rank of every method (columns) over the sets (rows); 1 is the best, ties
    share.
    """
    return np.mean([rankdata(-np.round(row, 6)) for row in scores], axis=0)


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Return the difference of mean ranks that Nemenyi's test needs at 5 % (Demsar, JMLR 7, 2006)."""
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def signed_rank(differences: np.ndarray) -> float:
    """Return the p-value of Wilcoxon's signed-rank test over sets; ranks of zeros are split, as
    Demsar does.
    """
    differences = np.round(differences, 6)
    return (
        float(wilcoxon(differences, zero_method="zsplit", method="asymptotic").pvalue)
        if differences.any()
        else 1.0
    )


def rank_sum(differences: np.ndarray) -> float:
    """Return the signed-rank statistic, whose sign says in which direction most differences go."""
    differences = np.round(differences, 6)
    return float(np.sign(differences) @ rankdata(np.abs(differences)))


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in cells)} |" for cells in lines)


def p_text(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def draw(names: Sequence[str], mean_ranks: np.ndarray, difference: float, path: Path) -> None:
    """Draw mean ranks on a line, with bars over methods that the test does not tell apart."""
    order = np.argsort(mean_ranks)
    sorted_ranks = mean_ranks[order]
    groups = []
    for first, rank in enumerate(sorted_ranks):
        last = int(np.searchsorted(sorted_ranks, rank + difference, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    half = -(-len(names) // 2)
    figure, ax = plt.subplots(
        figsize=(10, 1.6 + 0.28 * half + 0.16 * len(groups)), layout="constrained"
    )
    low, high = np.floor(sorted_ranks[0]), np.ceil(sorted_ranks[-1])
    depth = 0.5 * len(groups) + 0.6
    ax.hlines(0, low, high, color="black")
    for tick in np.arange(low, high + 1):
        ax.vlines(tick, 0, 0.2, color="black")
        ax.text(tick, 0.35, f"{tick:.0f}", ha="center", va="bottom")
    for place, number in enumerate(order):
        left = place < half
        y = -depth - 0.8 * (place if left else len(names) - 1 - place)
        side = low - 0.3 if left else high + 0.3
        ax.plot([sorted_ranks[place], sorted_ranks[place], side], [0, y, y], color="0.4", lw=0.8)
        text = f"{names[number]}  {sorted_ranks[place]:.1f}"
        ax.text(side, y, f" {text} ", ha="right" if left else "left", va="center")
    for level, (first, last) in enumerate(groups):
        y = -0.45 * (level + 1)
        ax.hlines(y, sorted_ranks[first] - 0.05, sorted_ranks[last] + 0.05, color="#0072B2", lw=4)
    ax.hlines(1.6, low, low + difference, color="#D55E00", lw=2)
    ax.text(low, 1.75, f"critical difference {difference:.1f}", va="bottom")
    ax.set(xlim=(low - 4, high + 4), ylim=(-depth - 0.8 * half - 0.3, 2.6))
    ax.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
