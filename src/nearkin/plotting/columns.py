"""A display of what a predictor for tables has learned: which columns move rows, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..linalg import svd
from ..preprocessing import Curve, Levels
from .base import COLORS, Display, shortened

N_BARS = 12
N_ACROSS = 3
N_TICKS = 4
N_LEVELS = 8
WIDTHS = (2, 1)  # of the first direction and the second


@dataclass(eq=False)
class ColumnsDisplay(Display):
    """How far each column of a table moves the rows, and where the values of the foremost columns lie.

    The values of a column are points in the learned space. Each curve shows them along the direction in which they
    differ most, and a thin one along the second; dotted is a missing value. Where both are flat, rows that differ are
    alike; where one is steep, a small difference sets them apart. Values of a category are points, the largest along
    the first direction first. A vote from a distance of 1 has 1/e of the weight of
    one from the same place (1/e^2, where `distance_` is "plain").
    """

    effects: np.ndarray  # `feature_effects_`
    names: list[str]  # of the columns
    curves: dict[str, Curve | Levels]  # to be drawn, as `curves()` returns them
    name: str  # of the predictor, for the title

    _size = (11.0, 4.8)

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_curves: int = 6, ax: Any = None) -> ColumnsDisplay:
        """Draw a fitted `NCAClassifier` or `NCARegressor`, with the curves of the columns that move rows farthest."""
        check_is_fitted(estimator, "feature_effects_")
        known = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
        learned = estimator.feature_effects_, [str(name) for name in known], estimator.curves()
        return cls.of(*learned, type(estimator).__name__, n_curves=n_curves).plot(ax=ax)

    @classmethod
    def of(
        cls, effects: np.ndarray, names: list[str], curves: dict[str, Curve | Levels], name: str, *, n_curves: int = 6
    ) -> ColumnsDisplay:
        """Return the display of columns, with the curves of those that move rows farthest."""

        def effect(curve: str) -> float:  # of its column; a date has become several numbers, called "date ..."
            return max((effects[j] for j, name in enumerate(names) if curve.startswith(name)), default=0.0)

        shown = {name: curves[name] for name in sorted(curves, key=effect, reverse=True)[:n_curves]}
        return cls(effects, names, shown, name)

    def _draw(self, ax: Any) -> None:
        ax.set_axis_off()
        n_down = max(-(-len(self.curves) // N_ACROSS), 1)
        grid = ax.get_subplotspec().subgridspec(n_down, N_ACROSS + 1, width_ratios=[1.3, *[1] * N_ACROSS])
        self._draw_effects(ax.figure.add_subplot(grid[:, 0]))
        place = None
        for at, (name, curve) in enumerate(self.curves.items()):
            place = ax.figure.add_subplot(grid[at // N_ACROSS, 1 + at % N_ACROSS], sharey=place)
            _draw(place, name, curve)
            place.tick_params(labelleft=at % N_ACROSS == 0)
            if at % N_ACROSS == 0:
                place.set_ylabel("place in the learned space")

    def _draw_effects(self, ax: Any) -> None:
        order = np.argsort(-self.effects, kind="stable")[:N_BARS][::-1]
        ax.barh(range(len(order)), self.effects[order], color=COLORS[0])
        ax.set_yticks(range(len(order)), [shortened(self.names[column]) for column in order], parse_math=False)
        shown = "" if len(order) == len(self.names) else f"\n(the first {len(order)} of {len(self.names)})"
        ax.set_xlabel("moves rows by (root mean square)")
        ax.set_title(f"{self.name}: columns{shown}", parse_math=False)


def _coordinates(curve: Curve | Levels) -> np.ndarray:
    """Return places along two directions in which a column's values differ most, the missing one last: (2, n)."""
    missing = [] if isinstance(curve, Levels) or curve.missing is None else [curve.missing]
    apart = np.column_stack([curve.values, *missing]) - curve.values.mean(axis=1, keepdims=True)
    n = curve.values.shape[1]
    U, _, _ = svd(apart[:, :n], full_matrices=False)
    along = U[:, :2].T @ apart
    along *= np.where(along[:, :1] > along[:, n - 1 : n], -1, 1)  # the first value low
    return np.vstack([along, np.zeros((2 - len(along), along.shape[1]))])


def _draw(ax: Any, name: str, curve: Curve | Levels) -> None:
    if isinstance(curve, Levels):
        _draw_levels(ax, curve)
    else:
        _draw_curve(ax, curve)
    ax.set_title(shortened(name), parse_math=False, fontsize="medium")


def _draw_curve(ax: Any, curve: Curve) -> None:
    """Draw bins equally wide, as they hold about equally many rows."""
    places, at = _coordinates(curve), np.arange(len(curve.edges))
    for along, width, color in zip(places, WIDTHS, COLORS, strict=False):
        ax.plot(at, along[: len(at)], color=color, linewidth=width, marker=".", markersize=2 + 2 * width)
        if curve.missing is not None:
            ax.axhline(along[len(at)], color=color, linewidth=width, linestyle=":")
    ticks = np.linspace(0, at[-1], min(N_TICKS, len(at))).astype(int)
    written = [np.format_float_positional(edge, 3, fractional=False, trim="-") for edge in curve.edges[ticks]]
    ax.set_xticks(ticks, written)


def _draw_levels(ax: Any, levels: Levels) -> None:
    """Draw the values of a category, of many those at both ends, in their order along the first direction."""
    places = _coordinates(levels)
    order = np.argsort(-places[0])
    if len(order) > N_LEVELS:
        order = np.r_[order[: N_LEVELS // 2], order[-N_LEVELS // 2 :]]
    for along, width, color in zip(places, WIDTHS, COLORS, strict=False):
        ax.plot(along[order], "o", color=color, markersize=2 + 2 * width)
    names = [shortened(levels.names[level], 12) for level in order]
    slanted = {"rotation": 30, "ha": "right"} if max(map(len, names)) > N_TICKS else {}
    ax.set_xticks(range(len(order)), names, parse_math=False, fontsize="small", **slanted)
