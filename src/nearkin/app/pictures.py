"""The PNG files of the command, made of the Displays of `nearkin.plotting`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..plotting import ColumnsDisplay, FeatureDisplay, SpectrumDisplay
from .model import Model

# it warns of a home that may not be written to
logging.getLogger("matplotlib").setLevel(logging.ERROR)


def draw(title: str, displays: Sequence[Any], path: Path) -> None:
    """Draw Displays side by side."""
    from matplotlib.figure import Figure

    wide = isinstance(displays[0], ColumnsDisplay)
    size = (12, 6) if wide else (4 + 5 * len(displays), 6)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(f"nearkin {title}", parse_math=False)
    axes = figure.subplots(1, len(displays), squeeze=False)[0]
    for display, ax in zip(displays, axes, strict=True):
        display.plot(ax=ax)
    figure.savefig(path, dpi=110, format="png")


def draw_model(model: Model, path: Path) -> None:
    """Draw what the learned map does to the features, and its spectrum; with a soft vote, what to
    the columns.
    """
    displays, spectrum = list[Any](), model.arrays.get("spectrum")
    if model.soft_vote:
        names = list(model.encoder.feature_names_in_)
        learned = dict(zip(model.stretched, model.stretch, strict=True))
        effects = np.array([learned.get(name, 0.0) for name in names])  # 0: left out
        curves = model.predictor.curves() if model.bins else {}  # sparse rows have none
        displays.append(ColumnsDisplay.of(effects, names, curves, model.method))
    elif not model.graph:
        displays.append(FeatureDisplay(model.stretch, model.stretched, model.method))
    if spectrum is not None and len(spectrum) and not model.soft_vote:
        displays.append(SpectrumDisplay(spectrum, model.n_components, model.method))
    draw(f"inspect: {model.method}, learned from {model.table}", displays, path)
