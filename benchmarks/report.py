"""What the pages of studies are written with: tables in Markdown, ranks of methods over sets and their
tests (Demsar, JMLR 7, 2006), the picture of both, and pages whose parts are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range, wilcoxon

from nearkin.statistics import holm

SIGNIFICANCE = 0.05


def line(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    return "\n".join(line(*cells) for cells in (header, ["---"] * len(header), *rows))


def row(*cells: Any) -> None:
    """Print a row of a table at once."""
    print(line(*cells), flush=True)


def head(*cells: Any) -> None:
    print(f"\n{table(cells, [])}", flush=True)


def percent(values: Iterable[float], form: str = ".1f") -> list[str]:
    return [f"{100 * value:{form}}" for value in values]


def bold(
    texts: Sequence[str], values: Sequence[float], best: Callable[..., Any] = np.nanmax
) -> list[str]:
    """Return texts of a row, in bold those that read as that of the best value."""
    at = {text for text, value in zip(texts, values, strict=True) if value == best(values)}
    return [f"**{text}**" if text in at else text for text in texts]


def p_text(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def mean_ranks(scores: Any) -> np.ndarray:
    """Return the mean rank of every method (columns) over the sets (rows); 1 is the best, ties
    share.
    """
    return np.mean([rankdata(-np.round(one, 6)) for one in np.asarray(scores)], axis=0)


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Return the difference of mean ranks that Nemenyi's test needs at 5 %."""
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def signed_rank(differences: Any) -> float:
    """Return the p-value of Wilcoxon's signed-rank test over sets; ranks of zeros are split, as
    Demsar does.
    """
    d = np.round(np.asarray(differences), 6)
    return float(wilcoxon(d, zero_method="zsplit", method="asymptotic").pvalue) if d.any() else 1.0


def direction(differences: Any) -> float:
    """Return the sign of the signed-rank statistic: in which direction most differences go."""
    d = np.round(np.asarray(differences), 6)
    return float(np.sign(np.sign(d) @ rankdata(np.abs(d))))


def signed_rank_tests(scores: pd.DataFrame, ours: str) -> pd.DataFrame:
    """Return of each rival of a method (rows) the p-value over the sets, by Holm, and the sign of the
    difference, positive where ours is better; a set on which a method failed does not count.
    """
    over = {name: (scores[ours] - scores[name]).dropna() for name in scores if name != ours}
    p = holm([signed_rank(d) for d in over.values()]) if over else []
    return pd.DataFrame({"p": p, "sign": [direction(d) for d in over.values()]}, list(over))


def verdicts(found: pd.DataFrame) -> tuple[list[str], list[str], list[str]]:
    """Return the rivals than which a method is shown to be better, worse, and the others."""
    shown = found["p"] < SIGNIFICANCE
    parts = (shown & (found["sign"] > 0), shown & (found["sign"] < 0), ~shown)
    return tuple(list(found.index[part]) for part in parts)


def failed(lines: pd.DataFrame, *keys: str) -> list[str]:
    """Return what failed of the lines of results, with how often and why."""
    some = lines[lines["status"] != "ok"].groupby([*keys, "status"]).size()
    said = [f"- {', '.join(names)}, {n} times: {why}" for (*names, why), n in some.items()]
    return ["\n".join(["Failed, and left out:", "", *said])] if said else []


def made(lines: pd.DataFrame, machine: str) -> str:
    """Return when, where and with which versions the lines of results were made."""
    versions = (", ".join(f"{name} {n}" for name, n in kept.items()) for kept in lines["versions"])
    dates = sorted(set(lines["date"]))
    when = f"{dates[0]}{f' to {dates[-1]}' if dates[1:] else ''}"
    return f"Run on {when}, on {machine}, with {'; or '.join(sorted(set(versions)))}."


def draw(names: Sequence[str], ranks: np.ndarray, difference: float, path: Path) -> None:
    """Draw mean ranks on a line, with bars over methods that the test does not tell apart."""
    import matplotlib.pyplot as plt

    order = np.argsort(ranks)
    sorted_ranks = ranks[order]
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(sorted_ranks):
        last = int(np.searchsorted(sorted_ranks, rank + difference, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    half = -(-len(names) // 2)
    size = (10, 1.6 + 0.28 * half + 0.16 * len(groups))
    figure, ax = plt.subplots(figsize=size, layout="constrained")
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
        text = f" {names[number]}  {sorted_ranks[place]:.1f} "
        ax.text(side, y, text, ha="right" if left else "left", va="center")
    for level, (first, last) in enumerate(groups):
        y = -0.45 * (level + 1)
        ax.hlines(y, sorted_ranks[first] - 0.05, sorted_ranks[last] + 0.05, color="#0072B2", lw=4)
    ax.hlines(1.6, low, low + difference, color="#D55E00", lw=2)
    ax.text(low, 1.75, f"critical difference {difference:.1f}", va="bottom")
    ax.set(xlim=(low - 4, high + 4), ylim=(-depth - 0.8 * half - 0.3, 2.6))
    ax.set_axis_off()
    save(figure, path)


def save(figure: Any, path: Path, dpi: int = 100) -> None:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
