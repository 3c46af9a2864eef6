"""Pictures of planes, and of curves, in the colours of the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearkin.plotting import COLORS, MARKERS


def blank(width: float, height: float) -> Any:
    """Return a figure of so many inches that no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panels(
    planes: Mapping[str, np.ndarray], y: np.ndarray, *, labelled: np.ndarray | None = None
) -> Any:
    """Return a figure of rows in several planes side by side, by class; `labelled` rows are
    circled.
    """
    n_rows = 1 if len(planes) <= 4 else 2
    n_columns = -(-len(planes) // n_rows)
    figure = blank(3.6 * n_columns, 3.9 * n_rows)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax, (title, Z) in zip(axes.flat, planes.items(), strict=False):
        scatter(ax, Z, y)
        if labelled is not None:
            ax.scatter(
                *Z[labelled, :2].T, s=60, facecolors="none", edgecolors="black", label="labelled"
            )
        ax.set_title(title, fontsize=10)
    for ax in list(axes.flat)[len(planes) :]:
        ax.set_axis_off()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    legend(
        figure,
        handles=handles,
        labels=labels,
        loc="outside lower center",
        ncols=min(10, len(labels)),
    )
    return figure


def legend(owner: Any, **options: Any) -> None:
    """Draw the legend of dots, all large enough to tell their colours."""
    for handle in owner.legend(frameon=False, **options).legend_handles:
        handle.set_sizes([36])


def scatter(ax: Any, Z: np.ndarray, y: np.ndarray) -> None:
    """Draw rows in two or three dimensions, by class."""
    from matplotlib import colormaps

    labels = np.unique(y)
    colors = (
        COLORS
        if len(labels) <= len(COLORS)
        else [colormaps["tab10"](number) for number in range(10)]
    )
    size = float(np.clip(5000 / len(y), 3, 16))
    markers = MARKERS if size > 6 else ("o",)  # the thin ones vanish
    for number, label in enumerate(labels):
        color, marker = colors[number % len(colors)], markers[number % len(markers)]
        ax.scatter(*Z[y == label].T, s=size, color=color, marker=marker, lw=0, label=str(label))
    ax.set(xticks=[], yticks=[])
    if Z.shape[1] == 3:
        ax.set(zticks=[])


def solid_and_flat(maps: Mapping[str, np.ndarray], y: np.ndarray) -> Any:
    """Return a figure of rows by class in the first three (above) and two dimensions of maps."""
    figure = blank(12, 8)
    for number, (name, Z) in enumerate(maps.items(), start=1):
        solid = figure.add_subplot(2, 3, number, projection="3d")
        flat = figure.add_subplot(2, 3, number + 3)
        for ax, m in ((solid, 3), (flat, 2)):
            scatter(ax, Z[:, :m], y)
            ax.set_title(f"{name}, {m}-D")
    legend(flat, title="digit", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
