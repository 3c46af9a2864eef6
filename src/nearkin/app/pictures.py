"""The PNG files of the command, made of the Displays of `nearkin.plotting`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ..plotting import ColumnsDisplay, FeatureDisplay, SpectrumDisplay
from .model import Model


def new_figure(title: str, n_axes: int) -> list[Any]:
    """Return a figure and its axes, side by side."""
    logging.getLogger("matplotlib").setLevel(
        logging.ERROR
    )  # it warns of a home that may not be written to
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 + 5 * n_axes, 6), layout="constrained")
    figure.suptitle(f"nearkin {title}", parse_math=False)
    return [figure, *figure.subplots(1, n_axes, squeeze=False)[0]]


def draw_model(model: Model, path: Path) -> None:
    """Draw what the learned map does to the features, and its spectrum; with a soft vote, what to
    the columns.
    """
    spectrum = model.arrays.get("spectrum", np.array([]))
    title = f"inspect: {model.method}, learned from {model.table}"
    n_axes = 1 if model.soft_vote else (not model.graph) + (len(spectrum) > 0)
    figure, *axes = new_figure(title, n_axes)
    if model.soft_vote:
        figure.set_size_inches(12, 6)
        curves = model.predictor.curves() if model.bins else {}  # sparse rows have none
        encoder = model.encoder
        learned = dict(zip(model.stretched, model.arrays["effects"], strict=True))
        effects = np.array(
            [learned.get(name, 0.0) for name in encoder.feature_names_in_]
        )  # 0: left out
        ColumnsDisplay.of(effects, list(encoder.feature_names_in_), curves, model.method).plot(
            ax=axes[0]
        )
    elif not model.graph:
        FeatureDisplay(model.stretch, model.stretched, model.method).plot(ax=axes[0])
    if len(spectrum) and not model.soft_vote:
        SpectrumDisplay(spectrum, model.n_components, model.method).plot(ax=axes[-1])
    figure.savefig(path, dpi=110, format="png")
