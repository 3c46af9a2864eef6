"""The PNG files of the command, made of the Displays of `nearkin.plotting`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..evaluation import RAW, Comparison
from ..plotting import COLORS, EmbeddingDisplay, FeatureDisplay, RankingDisplay, SpectrumDisplay
from .model import Model
from .one_split import SplitComparison
from .sentences import leader
from .tables import Table


def _figure(title: str, n_axes: int) -> list[Any]:
    """Return a figure and its axes, side by side."""
    figure = Figure(figsize=(4 + 5 * n_axes, 6), layout="constrained")
    figure.suptitle(f"nearkin {title}", parse_math=False)
    return [figure, *figure.subplots(1, n_axes, squeeze=False)[0]]


def draw_comparison(comparison: Comparison, table: Table, path: Path) -> None:
    """Draw the ranking and a 2-D map of held-out rows."""
    shown = leader(comparison)
    figure, *axes = _figure(f"compare {table.name}", 1 + (shown.name != RAW))
    RankingDisplay.from_comparison(comparison, ax=axes[0])
    if shown.name != RAW:
        EmbeddingDisplay.from_estimator(
            shown.mapping(2),
            table.X,
            table.y,
            task=table.task,
            split=comparison.folds[0],
            unlabelled=shown.unlabelled[0],
            n_neighbors=comparison.n_neighbors,
            name=shown.name,
            ax=axes[1],
        )
    figure.savefig(path, dpi=110, format="png")


def draw_split(comparison: SplitComparison, name: str, path: Path) -> None:
    """Draw accuracies on one split, and beside them the intervals of the differences from the raw features."""
    figure, ax = _figure(f"compare {name} --dask", 1)
    results = comparison.results[::-1]
    colors = {"better": COLORS[2], "worse": COLORS[1], "baseline": COLORS[6], "unclear": COLORS[0]}
    for position, result in enumerate(results):
        interval, color = 100 * result.margin, colors[result.status]
        ax.errorbar(100 * result.score.mean(), position, xerr=interval, fmt="o", color=color, capsize=4)
    ax.axvline(100 * comparison.raw.score.mean(), color="black", linewidth=0.8, linestyle="--", zorder=0)
    ax.set_yticks(range(len(results)), [f"{r.name}, {r.dimension}-D\n{r.status}" for r in results])
    ax.set_xlabel(
        f"held-out rows right (%), {comparison.n_neighbors}-NN among {comparison.n_train} rows; bars: the difference "
        "from the raw features, 95%"
    )
    ax.set_title(f"Accuracy on {len(comparison.raw.score)} held-out rows (dashed: the raw features)")
    figure.savefig(path, dpi=110, format="png")


def draw_model(model: Model, path: Path) -> None:
    """Draw what the learned map does to the features, and its spectrum."""
    spectrum = model.arrays.get("spectrum", np.array([]))
    title = f"inspect: {model.method}, learned from {model.table}"
    figure, *axes = _figure(title, (not model.graph) + (len(spectrum) > 0))
    if not model.graph:
        FeatureDisplay(model.stretch, model.encoder.feature_names, model.method).plot(ax=axes[0])
    if len(spectrum):
        SpectrumDisplay(spectrum, model.n_components, model.method).plot(ax=axes[-1])
    figure.savefig(path, dpi=110, format="png")
