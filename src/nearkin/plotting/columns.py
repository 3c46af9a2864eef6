"""A display of what a predictor for tables has learned: which columns move rows, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_integer
from ..linalg import svd
from ..preprocessing import DAYS, Curve, Levels, with_seasons
from .base import COLORS, GREY, Display, shortened

N_BARS = 12
N_ACROSS = 3
N_TICKS = 4
N_LEVELS = 8
LETTERS_ACROSS = 15  # that fit below a panel
SMALL_LETTERS_ACROSS = 18  # of those in small print
WIDTHS = (2, 1)  # of the first direction and the second
KEY = ("along the direction in which the values differ most", "along the second", "missing value")
DATES = f" ({DAYS})"  # how the name of such a curve ends
LAST_DAY, LONG_SPAN = 2.9e6, 365  # in the year 9909; days from which months are enough
LEAST_REACH = 0.04  # of a curve, as a part of the largest


@dataclass(eq=False, repr=False)
class ColumnsDisplay(Display):
    """How far each column of a table moves the rows, and where the values of the foremost columns lie.

    The values of a column are points in the learned space. Each curve shows them along the direction in which they
    differ most, and a thin one along the second; dotted is a missing value. Where both are flat, rows that differ are
    alike; where one is steep, a small difference sets them apart. Values of a category are points, the largest along
    the first direction first; months, weekdays and hours, of a date, keep their order. A vote from a distance of 1 has
    1/e of the weight of one from the same place (1/e^2, where `distance_` is "plain").
    """

    effects: np.ndarray  # `feature_effects_`
    names: list[str]  # of the columns
    curves: dict[str, Curve | Levels]  # to be drawn, as `curves()` returns them
    name: str  # of the predictor, for the title

    @property
    def _size(self) -> tuple[float, float]:  # type: ignore[override]
        return 11.0, 2.4 * max(self._n_down, 2) + 0.5

    @property
    def _n_down(self) -> int:
        return max(-(-len(self.curves) // N_ACROSS), 1)

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_curves: int = 6, ax: Any = None) -> ColumnsDisplay:
        """Draw a fitted `NCAClassifier` or `NCARegressor`, with the curves of the columns that move rows farthest."""
        if not hasattr(estimator, "curves"):
            kind, remedy = type(estimator).__name__, "of a pipeline pass the last step, pipeline[-1]"
            raise TypeError(f"estimator must be a fitted NCAClassifier or NCARegressor, got {kind}: {remedy}.")
        check_is_fitted(estimator, "feature_effects_")
        check_integer(n_curves, "n_curves", 0)
        known = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(len(estimator.feature_effects_))])
        learned = estimator.feature_effects_, [str(name) for name in known], estimator.curves()
        return cls.of(*learned, type(estimator).__name__, n_curves=n_curves).plot(ax=ax)

    @classmethod
    def of(
        cls, effects: np.ndarray, names: list[str], curves: dict[str, Curve | Levels], name: str, *, n_curves: int = 6
    ) -> ColumnsDisplay:
        """Return the display of columns, with the curves of those that move rows farthest."""
        curves = with_seasons(curves)
        reach = {name: _reach(curve) for name, curve in curves.items()}
        least = LEAST_REACH * max(reach.values(), default=0)
        kept = [name for name in curves if reach[name] >= least]
        order = sorted(kept, key=lambda name: (-effects[curves[name].column], -reach[name]))
        return cls(effects, names, {name: curves[name] for name in order[:n_curves]}, name)

    def _draw(self, ax: Any) -> None:
        ax.set_axis_off()
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError("ax must be of a grid of axes: take one of plt.subplots().")
        ratios = {"width_ratios": [1.3, *[1] * N_ACROSS], "height_ratios": [*[1] * self._n_down, 0.1]}
        grid = place.subgridspec(self._n_down + 1, N_ACROSS + 1, **ratios)
        self._draw_effects(ax.figure.add_subplot(grid[:-1, 0]))
        panel = None
        for at, (name, curve) in enumerate(self.curves.items()):
            panel = ax.figure.add_subplot(grid[at // N_ACROSS, 1 + at % N_ACROSS], sharey=panel)
            _draw(panel, name, curve)
            panel.tick_params(labelleft=at % N_ACROSS == 0)
            if at % N_ACROSS == 0:
                panel.set_ylabel("place in the learned space")
        if self.curves:
            self._draw_key(ax.figure.add_subplot(grid[-1, :]))

    def _draw_key(self, ax: Any) -> None:
        ax.set_axis_off()
        lines = [ax.plot([], [], color=color, linewidth=width)[0] for color, width in zip(COLORS, WIDTHS, strict=False)]
        lines += ax.plot([], [], color=GREY, linestyle=":")
        n_shown = len(KEY) if any(_places(one).shape[1] > one.values.shape[1] for one in self.curves.values()) else 2
        key = ax.legend(lines[:n_shown], KEY[:n_shown], loc="center", ncols=n_shown, frameon=False, fontsize="small")
        key.set_in_layout(False)  # a wide one would squeeze the panels

    def _draw_effects(self, ax: Any) -> None:
        order = np.argsort(-self.effects, kind="stable")[:N_BARS][::-1]
        ax.barh(range(len(order)), self.effects[order], color=COLORS[0])
        ax.set_yticks(range(len(order)), [shortened(self.names[column]) for column in order], parse_math=False)
        shown = "" if len(order) == len(self.names) else f"\n(the first {len(order)} of {len(self.names)})"
        ax.set_xlabel("moves rows by (root mean square)")
        ax.set_title(f"{self.name}: columns{shown}", parse_math=False)


def _places(curve: Curve | Levels) -> np.ndarray:
    """Return the places of a column's values, the missing one last, (m, n)."""
    missing = [] if isinstance(curve, Levels) or curve.missing is None else [curve.missing]
    return np.column_stack([curve.values, *missing])


def _reach(curve: Curve | Levels) -> float:
    """Return how far apart the values lie: bins hold about equally many rows."""
    return float(np.linalg.norm(_places(curve).std(axis=1)))


def _coordinates(curve: Curve | Levels) -> np.ndarray:
    """Return places along two directions in which a column's values differ most, the missing one last: (2, n)."""
    apart = _places(curve) - curve.values.mean(axis=1, keepdims=True)
    n = curve.values.shape[1]
    U, _, _ = svd(apart[:, :n], full_matrices=False)
    along = U[:, :2].T @ apart
    along *= np.where(along[:, :1] > along[:, n - 1 : n], -1, 1)  # the first value low
    return np.vstack([along, np.zeros((2 - len(along), along.shape[1]))])


def _draw(ax: Any, name: str, curve: Curve | Levels) -> None:
    if isinstance(curve, Levels):
        _draw_levels(ax, curve)
    else:
        _draw_curve(ax, name, curve)
    ax.set_title(shortened(name.removesuffix(DATES)), parse_math=False, fontsize="medium")


def _draw_curve(ax: Any, name: str, curve: Curve) -> None:
    """Draw bins equally wide, as they hold about equally many rows."""
    places, at = _coordinates(curve), np.arange(len(curve.edges))
    for along, width, color in zip(places, WIDTHS, COLORS, strict=False):
        ax.plot(at, along[: len(at)], color=color, linewidth=width, marker=".", markersize=2 + 2 * width)
        if curve.missing is not None:
            ax.axhline(along[len(at)], color=color, linewidth=width, linestyle=":")
    if name.endswith(DATES) and np.abs(curve.edges).max() < LAST_DAY:
        unit = "M" if np.ptp(curve.edges) > LONG_SPAN else "D"
        dates = curve.edges.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(str)
        shown = _tick_places(len(at), lambda places: dates[places].tolist(), SMALL_LETTERS_ACROSS)
        ax.set_xticks(shown, dates[shown], fontsize="small")
        return
    shown = _tick_places(len(at), lambda places: ticks(curve.edges[places]), LETTERS_ACROSS)
    ax.set_xticks(shown, ticks(curve.edges[shown]))


def _tick_places(n: int, write: Callable[[np.ndarray], list[str]], n_letters: int) -> np.ndarray:
    """Return which of n points below a panel get a text: the ends, and as many between as do not touch."""
    for n_ticks in range(min(N_TICKS, n), 2, -1):
        places = np.linspace(0, n - 1, n_ticks).round().astype(int)
        lengths = np.array([len(text) for text in write(places)])
        needed = (lengths[1:] + lengths[:-1]) / 2 + 1
        if (np.diff(places) / (n - 1) * n_letters >= needed).all():
            return places
    return np.unique([0, n - 1])


def ticks(numbers: np.ndarray) -> list[str]:
    """Return ascending numbers as texts, rounded to a tenth of the least difference at most."""
    gap, size = np.diff(numbers).min(initial=np.inf), np.abs(numbers).max()
    if not 1e-3 < size < 1e7 or not np.isfinite(gap):
        return [f"{number:.4g}" for number in numbers]
    n_decimals = int(max(0, 1 - np.floor(np.log10(gap))))
    return [np.format_float_positional(number, n_decimals, trim="-") for number in numbers]


def _draw_levels(ax: Any, levels: Levels) -> None:
    """Draw the values of a category, of many those at both ends, in their order along the first direction."""
    places = _coordinates(levels)
    order = np.arange(len(levels.names)) if levels.ordered else np.argsort(-places[0])
    if len(order) > N_LEVELS and not levels.ordered:
        order = np.r_[order[: N_LEVELS // 2], order[-N_LEVELS // 2 :]]
    for along, width, color in zip(places, WIDTHS, COLORS, strict=False):
        ax.plot(along[order], "o-" if levels.ordered else "o", color=color, linewidth=width, markersize=2 + 2 * width)
    if levels.ordered:
        shown = order[:: -(-len(order) // N_TICKS)]
        ax.set_xticks(shown, [levels.names[level] for level in shown])
        return
    names = [shortened(levels.names[level], 12) for level in order]
    touching = (max(map(len, names)) + 1) * (len(names) - 1) > SMALL_LETTERS_ACROSS
    slanted = {"rotation": 30, "ha": "right"} if touching else {}
    ax.set_xticks(range(len(order)), names, parse_math=False, fontsize="small", **slanted)
