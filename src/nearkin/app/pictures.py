"""The PNG files of the command, made of the Displays of `nearkin.plotting`."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from ..evaluation import RAW, Comparison
from ..plotting import EmbeddingDisplay, FeatureDisplay, RankingDisplay, SpectrumDisplay
from .model import Model
from .table import Table


def draw_comparison(comparison: Comparison, table: Table, path: Path) -> None:
    """Draw the ranking and a 2-D map of held-out rows."""
    figure = Figure(figsize=(14, 6), layout="constrained")
    figure.suptitle(f"nearkin compare {table.name}", parse_math=False)
    learned = [result for result in comparison.results if result.name != RAW]
    axes = figure.subplots(1, 2 if learned else 1, squeeze=False)[0]
    RankingDisplay.from_comparison(comparison, ax=axes[0])
    if learned:
        shown = learned[0] if comparison.best.name == RAW else comparison.best
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


def draw_model(model: Model, path: Path) -> None:
    """Draw what the learned map does to the features, and its spectrum."""
    figure = Figure(figsize=(14, 6), layout="constrained")
    figure.suptitle(f"nearkin inspect: {model.method}, learned from {model.table}", parse_math=False)
    spectrum = model.spectrum
    axes = figure.subplots(1, model.is_linear + (len(spectrum) > 0), squeeze=False)[0]
    if model.is_linear:
        FeatureDisplay(model.stretch, model.encoder.feature_names, model.method).plot(ax=axes[0])
    if len(spectrum):
        SpectrumDisplay(spectrum, model.n_components, model.method).plot(ax=axes[-1])
    figure.savefig(path, dpi=110, format="png")
