"""Displays like those of scikit-learn: `from_...` computes the data, and `plot` draws them.

`plot` draws on the matplotlib axes `ax`, by default on a new figure, and sets `ax_` and `figure_`.
Every map is drawn with its k-NN score on held-out rows, since a map of its training rows separates
even random labels. matplotlib (`nearkin[plot]`) is imported when something is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._labels import known_labels
from ._messages import counted, shortened
from ._validation import check_integer, is_missing
from .comparison import CLASSIFICATION, Comparison, Vote, held_out_map, named_task
from .comparison import SCORES as SCORES_OF
from .linalg import svd
from .tables import DAYS, Curve, Levels, with_seasons

# Shared by all displays.

# Okabe and Ito's palette, distinguishable for colour-blind readers (without yellow, too pale for a
# dot), and four colours of Tol's muted scheme. With eight markers, no two of 88 classes look alike.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"),
    *("#882255", "#999933", "#332288", "#44AA99"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#888888"


class Display:
    """Base of the displays; a subclass defines `_draw`."""

    _size: Any = None  # of a new figure, in inches

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the picture."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    "Drawing needs matplotlib: pip install 'nearkin[plot]'."
                ) from error
            ax = plt.subplots(figsize=self._size, layout="constrained")[1]
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


NAME_LENGTH = 24


def short_label(text: str, length: int = NAME_LENGTH) -> str:
    """Return a short label, without a leading underscore, which hides it in a legend."""
    return shortened(" " + text if text.startswith("_") else text, length)


def labels_apart(names: Sequence[str], length: int = NAME_LENGTH) -> list[str]:
    """Return short labels of some names.

    If one is too long, the words with which all begin are left out.
    """
    start = ""
    if len(names) > 1 and max(map(len, names)) > length:
        first, last = min(names), max(names)
        alike = [a == b for a, b in zip(first, last, strict=False)]
        start = re.sub(r"\w*$", "", first[: [*alike, False].index(False)])
    return [
        short_label(f"...{name.removeprefix(start)}" if start else name, length) for name in names
    ]


# A display of a predictor for tables: which columns move rows, and how.

N_BARS = 12
N_ACROSS = 3
N_TICKS = 4
N_LEVELS = 8
LETTERS_ABOVE = 24  # characters that fit above a panel
LETTERS_ACROSS = 15  # characters that fit below a panel
SMALL_LETTERS_ACROSS = 18  # the same in small print
# of the first and the second direction
STYLES: tuple[dict[str, Any], ...] = (
    {"color": COLORS[0], "linewidth": 2, "markersize": 6},
    {"color": COLORS[1], "linewidth": 1, "markersize": 4},
)
KEY = ("along the direction in which the values differ most", "along the second", "missing value")
DATES = f" ({DAYS})"  # suffix of the name of a curve over dates
LAST_DAY, LONG_SPAN = 2.9e6, 365  # in the year 9909; span in days beyond which months suffice
LEAST_REACH = 0.04  # of a curve, relative to the largest
# A vote from this distance has nearly the full weight: if no column moves rows farther, bars and
# curves should look small.
LEAST_EFFECT = 0.1


@dataclass(eq=False, repr=False)
class ColumnsDisplay(Display):
    """How far each column of a table moves the rows, and where the values of the main columns lie.

    The values of a column are points in the learned space. Each curve shows them along the
    direction in which they differ most, and a thin curve along the second; a missing value is
    dotted. Where both are flat, rows with different values are similar; where one is steep, a small
    difference separates them. Values of a category are points, the largest along the first
    direction first; months, weekdays and hours of a date keep their order. If encodings are mixed,
    the curves combine all of them, each scaled by its share. A vote from a distance of 1 has about
    1/e of the full weight (1/e^2 with the plain distance).
    """

    effects: np.ndarray  # `feature_effects_`
    names: list[str]  # of the columns
    curves: dict[str, Curve | Levels]  # to draw, as returned by `curves()`
    name: str  # of the predictor, for the title

    @property
    def _size(self) -> tuple[float, float]:
        return 11.0, 2.4 * max(self._n_down, 2) + 0.5

    @property
    def _n_down(self) -> int:
        return max(-(-len(self.curves) // N_ACROSS), 1)

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_curves: int = 6, ax: Any = None) -> ColumnsDisplay:
        """Draw a fitted `NCAClassifier` or `NCARegressor`, with curves of its main columns.

        Each column gets one curve before a date gets a second one, for another of its parts.
        """
        if not hasattr(estimator, "curves"):
            raise TypeError(
                "estimator must be a fitted NCAClassifier or NCARegressor, got "
                f"{type(estimator).__name__}: of a pipeline pass the last step, pipeline[-1]."
            )
        check_is_fitted(estimator, "feature_effects_")
        check_integer(n_curves, "n_curves", 0)
        effects, name = estimator.feature_effects_, type(estimator).__name__
        names = [str(column) for column in _feature_names(estimator, "x", len(effects))]
        return cls.of(effects, names, estimator.curves(), name, n_curves=n_curves).plot(ax=ax)

    @classmethod
    def of(
        cls,
        effects: np.ndarray,
        names: list[str],
        curves: dict[str, Curve | Levels],
        name: str,
        *,
        n_curves: int = 6,
    ) -> ColumnsDisplay:
        """Return the display of columns, with curves of those that move rows farthest."""
        curves = with_seasons(curves)
        # how far apart the values of a column lie; bins have about equal numbers of rows
        reach = {
            part: float(np.linalg.norm(_places(curve).std(axis=1)))
            for part, curve in curves.items()
        }
        least = LEAST_REACH * max(reach.values(), default=0)
        kept = [part for part in curves if reach[part] >= least]
        kept.sort(key=lambda part: (-effects[curves[part].column], -reach[part]))
        # a date has several parts: the most important part of every column comes first
        foremost = {curves[part].column: part for part in reversed(kept)}
        chosen = sorted(kept, key=lambda part: part != foremost[curves[part].column])[:n_curves]
        return cls(effects, names, {part: curves[part] for part in kept if part in chosen}, name)

    def _draw(self, ax: Any) -> None:
        ax.set_axis_off()
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError("ax must be of a grid of axes: take one of plt.subplots().")
        grid = place.subgridspec(
            self._n_down + 1,
            N_ACROSS + 1,
            width_ratios=[1.3, *[1] * N_ACROSS],
            height_ratios=[*[1] * self._n_down, 0.1],
        )
        self._draw_effects(ax.figure.add_subplot(grid[:-1, 0]))
        panel = None
        for at, (name, curve) in enumerate(self.curves.items()):
            panel = ax.figure.add_subplot(grid[at // N_ACROSS, 1 + at % N_ACROSS], sharey=panel)
            if isinstance(curve, Levels):
                _draw_levels(panel, curve)
            else:
                _draw_curve(panel, name, curve)
            title = name.removesuffix(DATES)
            column, is_part, part = title.rpartition(" (")
            if is_part and len(title) > LETTERS_ABOVE:
                title = f"{short_label(column)}\n({part}"
            else:
                title = short_label(title, LETTERS_ABOVE)
            panel.set_title(title, parse_math=False, fontsize="medium")
            panel.tick_params(labelleft=at % N_ACROSS == 0)
            if at % N_ACROSS == 0:
                panel.set_ylabel("place in the learned space")
        if panel is not None:
            low, high = panel.get_ylim()  # shared by all panels
            panel.set_ylim(min(low, -LEAST_EFFECT / 2), max(high, LEAST_EFFECT / 2))
            self._draw_key(ax.figure.add_subplot(grid[-1, :]))

    def _draw_effects(self, ax: Any) -> None:
        used = np.flatnonzero(self.effects)  # 0: left out
        order = used[np.argsort(-self.effects[used], kind="stable")][:N_BARS][::-1]
        ax.barh(range(len(order)), self.effects[order], color=COLORS[0])
        names = labels_apart([self.names[column] for column in order])
        ax.set_yticks(range(len(order)), names, parse_math=False)
        ax.set_xlabel("moves rows by (root mean square)")
        ax.set_xlim(0, max(ax.get_xlim()[1], LEAST_EFFECT))
        title = f"{self.name}: columns"
        if len(order) < len(used):
            title += f"\n(the first {len(order)} of {len(used)})"
        ax.set_title(title, parse_math=False)

    def _draw_key(self, ax: Any) -> None:
        ax.set_axis_off()
        styles = *STYLES, {"color": GREY, "linestyle": ":"}
        curves = self.curves.values()
        n = 2 + any(getattr(curve, "missing", None) is not None for curve in curves)
        lines = [ax.plot([], [], **style)[0] for style in styles]
        key = ax.legend(lines[:n], KEY[:n], loc="center", ncols=n, frameon=False, fontsize="small")
        key.set_in_layout(False)  # if wide, it would squeeze the panels


def _feature_names(estimator: Any, stem: str, n: int) -> Any:
    return getattr(estimator, "feature_names_in_", [f"{stem}{j}" for j in range(n)])


def _places(curve: Curve | Levels) -> np.ndarray:
    """Return the positions of a column's values, the missing one last, (m, n)."""
    missing = getattr(curve, "missing", None)
    return curve.values if missing is None else np.column_stack([curve.values, missing])


def _coordinates(curve: Curve | Levels) -> np.ndarray:
    """Return positions along the two directions in which a column's values differ most, (2, n).

    The missing value is last.
    """
    n = curve.values.shape[1]
    apart = _places(curve) - curve.values.mean(axis=1, keepdims=True)
    U, _, _ = svd(apart[:, :n], full_matrices=False)
    along = U[:, :2].T @ apart
    along *= np.where(along[:, :1] > along[:, n - 1 : n], -1, 1)  # the first value is low
    return np.vstack([along, np.zeros((2 - len(along), along.shape[1]))])


def _draw_curve(ax: Any, name: str, curve: Curve) -> None:
    """Draw bins with equal widths, as they have about equal numbers of rows."""
    edges, at = curve.edges, np.arange(len(curve.edges))
    for along, style in zip(_coordinates(curve), STYLES, strict=True):
        ax.plot(at, along[: len(at)], marker=".", **style)
        if curve.missing is not None:
            ax.axhline(along[len(at)], linestyle=":", **style)
    if name.endswith(DATES) and np.abs(edges).max() < LAST_DAY:
        unit = "M" if np.ptp(edges) > LONG_SPAN else "D"
        dates = edges.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(str)
        shown = _tick_places(len(at), lambda places: dates[places].tolist(), SMALL_LETTERS_ACROSS)
        ax.set_xticks(shown, dates[shown], fontsize="small")
    else:
        shown = _tick_places(len(at), lambda places: ticks(edges[places]), LETTERS_ACROSS)
        ax.set_xticks(shown, ticks(edges[shown]))


def _tick_places(n: int, write: Callable[[np.ndarray], list[str]], n_letters: int) -> np.ndarray:
    """Return which of n points below a panel get a label: the ends, and what fits in between."""
    for n_ticks in range(min(N_TICKS, n), 2, -1):
        places = np.linspace(0, n - 1, n_ticks).round().astype(int)
        lengths = np.array([len(text) for text in write(places)])
        needed = (lengths[1:] + lengths[:-1]) / 2 + 1
        if (np.diff(places) / (n - 1) * n_letters >= needed).all():
            return places
    return np.unique([0, n - 1])


def ticks(numbers: np.ndarray) -> list[str]:
    """Return ascending numbers as text, rounded to at most a tenth of the smallest difference."""
    gap, size = np.diff(numbers).min(initial=np.inf), np.abs(numbers).max()
    if not 1e-3 < size < 1e7 or not np.isfinite(gap):
        return [f"{number:.4g}" for number in numbers]
    n_decimals = int(max(0, 1 - np.floor(np.log10(gap))))
    return [np.format_float_positional(number, n_decimals, trim="-") for number in numbers]


def _draw_levels(ax: Any, levels: Levels) -> None:
    """Draw the values of a category, ordered along the first direction.

    If there are many, only those at both ends are drawn.
    """
    places, names = _coordinates(levels), levels.names
    order = np.arange(len(names)) if levels.ordered else np.argsort(-places[0])
    if len(order) > N_LEVELS and not levels.ordered:
        order = np.r_[order[: N_LEVELS // 2], order[-N_LEVELS // 2 :]]
    mark = "o-" if levels.ordered else "o"
    for along, style in zip(places, STYLES, strict=True):
        ax.plot(along[order], mark, **style)
    if levels.ordered:
        shown = order[:: -(-len(order) // N_TICKS)]
        ax.set_xticks(shown, [names[level] for level in shown])
        return
    names = labels_apart([names[level] for level in order], 12)
    touching = (max(map(len, names)) + 1) * (len(names) - 1) > SMALL_LETTERS_ACROSS
    slanted = {"rotation": 30, "ha": "right"} if touching else {}
    ax.set_xticks(range(len(order)), names, parse_math=False, fontsize="small", **slanted)


# Displays of spectra, rankings and features.

# From dark blue to yellow in steps that look even, also to colour-blind readers and in greyscale.
# Dots are outlined, so that both ends can be seen.
SEQUENTIAL = "cividis"
# How a score is drawn: its factor, the title, and the axis label.
SCORES = {
    "accuracy": (100, "Accuracy", "accuracy on held-out rows (%)"),
    "balanced_accuracy": (100, "Balanced accuracy", "balanced accuracy on held-out rows (%)"),
    "f1": (1, "F1", "F1 on held-out rows, mean over the classes"),
    "auc": (1, "AUC", "area under the ROC curve on held-out rows"),
    "log_loss": (1, "Log loss", "log loss on held-out rows (less is better)"),
    "r2": (1, "R²", "R² on held-out rows"),
    "mae": (1, "Mean absolute error", "mean absolute error on held-out rows (less is better)"),
    "rank_correlation": (1, "Rank correlation", "rank correlation on held-out rows (Spearman)"),
}
STATUS_COLORS = {
    "better": COLORS[2],
    "worse": COLORS[1],
    "baseline": COLORS[6],
    "unclear": COLORS[0],
    "reference": GREY,
}
MAX_BARS = 30


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    """Eigenvalues of a fitted method with their cumulative sum, on `cumulative_ax_`.

    See DNE's figures 4 to 6.
    """

    eigenvalues: np.ndarray  # in the order of the components
    n_components: int  # number of components kept
    estimator_name: str

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Any = None) -> SpectrumDisplay:
        """Draw the spectrum of a fitted estimator with `eigenvalues_`, such as DNE, NMMP or LPP."""
        estimator = getattr(estimator, "_final_estimator", estimator)  # the last step of a pipeline
        check_is_fitted(estimator, "eigenvalues_")
        return cls(estimator.eigenvalues_, estimator.n_components_, type(estimator).__name__).plot(
            ax=ax
        )

    def _draw(self, ax: Any) -> None:
        values = self.eigenvalues
        number = np.arange(1, len(values) + 1)
        kept = number <= self.n_components
        for drawn, color, label in ((kept, COLORS[0], "kept"), (~kept, "#BBBBBB", "left out")):
            if drawn.any():
                ax.vlines(number[drawn], 0, values[drawn], color, linewidth=2, label=label)
        ax.axhline(0, color=Ground.of(ax).ink, linewidth=0.8)
        ax.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", xlim=(0, len(values) + 1))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_title(f"{self.estimator_name}: {self.n_components} of {len(values)} directions kept")
        twin, label = ax.twinx(), "cumulative sum"
        (line,) = twin.plot(number, np.cumsum(values), color=COLORS[1], label=label)
        twin.set_ylabel(label)
        # below the axes, as the two graphs leave no corner free
        handles, below = (
            [*ax.collections, line],
            {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)},
        )
        ax.legend(handles=handles, ncols=len(handles), frameon=False, **below)
        self.cumulative_ax_ = twin


@dataclass(eq=False, repr=False)
class RankingDisplay(Display):
    """The ranking of a comparison: mean scores, and intervals of the differences from the raw
    features.

    Each bar is the 95 % interval of the paired difference, added to the score of the raw features
    (the dashed line). The automatic choice is a diamond. Predictors of other kinds are below a
    dividing line; if the mean of one is far off, it is written at the edge, and an arrow is where
    the edge cuts a bar.
    """

    comparison: Comparison

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Any = None) -> RankingDisplay:
        """Draw the result of `nearkin.comparison.compare`."""
        return cls(comparison).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        found, ground = self.comparison, Ground.of(ax)
        factor, title, label = SCORES[found.score.name]
        rows = found.ranking()
        raw = next(row.score.mean() for row in rows if row.kind == "baseline")
        best = (-np.inf, factor) if found.score.sign > 0 else (0, np.inf)  # the possible scores
        form = ".1f" if factor == 100 else ".3g" if found.score.name == "mae" else ".3f"
        for position, row in enumerate(rows):
            mean, ends = factor * row.score.mean(), factor * (raw + np.array(row.interval))
            color = ground.readable(STATUS_COLORS[row.status], DOT_CONTRAST)
            if position == len(found.results):
                # a reference far off must not squeeze the others
                ax.margins(x=0.3)
                beyond = 0.02 * np.ptp(ax.get_xlim())
                ax.set_xlim(np.clip(ax.get_xlim(), best[0] - beyond, best[1] + beyond))
                ax.axhline(position - 0.5, color=GREY, linewidth=0.6)
            low, high = ax.get_xlim()
            if row.kind == "reference" and not low <= mean <= high:
                number = f"{mean:z{form}}".replace("-", "\u2212")
                edge, text, side = (
                    (low, f" ← {number}", "left") if mean < low else (high, f"{number} → ", "right")
                )
                ax.text(edge, position, text, ha=side, va="center", color=color)
                continue
            ends = np.clip(ends, *best)
            ax.hlines(position, *ends, color, linewidth=6, alpha=0.4)
            for edge, mark, is_cut in ((low, "<", ends[0] < low), (high, ">", ends[1] > high)):
                if is_cut and row.kind == "reference":
                    ax.plot(edge, position, mark, color=color, clip_on=False)
            ax.plot(mean, position, "D" if row.kind == "choice" else "o", color=color)
        ax.axvline(factor * raw, color=ground.ink, linewidth=0.8, linestyle="--", zorder=0)
        names = [f"{short_label(row.name)}, {row.status}" for row in rows]
        ax.set_yticks(range(len(rows)), names, parse_math=False)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        vote = "" if found.n_neighbors is None else f", {found.n_neighbors}-NN"
        bars = "bars: 95% interval of the difference from the raw features"
        ax.set_xlabel(f"{label}{vote}\n{bars}", loc="right")
        ax.set_title(f"{title} on held-out rows (dashed: raw features)", loc="right")


@dataclass(eq=False, repr=False)
class FeatureDisplay(Display):
    """How much a learned linear map stretches each feature, or ignores it."""

    stretch: np.ndarray  # from `feature_stretch`
    names: Sequence[str]  # of the p features
    name: str  # of the map, for the title

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, names: Sequence[str] | None = None, ax: Any = None
    ) -> FeatureDisplay:
        """Draw the stretches of a map with `components_`.

        Without `names`, features are labelled by `feature_names_in_` or numbered.
        """
        stretch = feature_stretch(estimator.components_)
        if names is None:
            names = _feature_names(estimator, "feature ", len(stretch))
        return cls(stretch, names, type(estimator).__name__).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        order = np.argsort(-self.stretch, kind="stable")
        if len(order) > MAX_BARS:
            order = np.concatenate([order[: MAX_BARS // 2], order[-MAX_BARS // 2 :]])
        position, lengths = np.arange(len(order))[::-1], self.stretch[order]
        ax.barh(position, lengths, color=np.where(lengths > 1 - 1e-6, *COLORS[:2]))
        ax.axvline(1, color=Ground.of(ax).ink, linewidth=0.8, linestyle="--")
        names = labels_apart([str(self.names[feature]) for feature in order])
        ax.set_yticks(position, names, parse_math=False)
        ax.set(xlabel="how far a step moves a row (dashed: average)")
        title = f"{self.name}: features stretched and ignored"
        if len(order) < len(self.stretch):
            title += f" (the extremes of {len(self.stretch)})"
        ax.set_title(title, parse_math=False)


def feature_stretch(components: np.ndarray) -> np.ndarray:
    """Return how far a unit step along each feature moves a row in the learned space.

    For a linear map A, i.e. `components_` (m, p), it is `||A e_j||` divided by its root mean square
    over all features: 1 is average, 0 means ignored. The unit is that of the rows the map was
    fitted to, one standard deviation if they were standardized.
    """
    length = np.linalg.norm(components, axis=0)
    return length / max(np.sqrt(np.mean(length**2)), np.finfo(float).tiny)


# A display of a map: held-out rows, few or many, of few or many classes, on any background colour.

MAX_LEGEND = 12  # classes; with more, each is labelled at its rows
MAX_SMALL = 7  # the same where dots are so small that colours must tell classes apart
MANY_NAMES, MAX_NAMED = 30, 100  # with more, labels are small; maximum number of labels
SMALL_LENGTH = 18  # characters of a small label
KEYS_A_COLUMN = 45  # entries of a column of the legend that explains numbers
N_PLAIN = 600  # rows that are drawn at full size; with more, dots are smaller and more transparent
N_VECTORS = 2000  # with more, the dots are rasterized in SVG and PDF files
DOT, LEAST_DOT = 22, 1.5  # in square points
OPACITY, LEAST_OPACITY = 0.75, 0.4
LARGE = 1000  # a score of at least this is written without decimals
TITLE_WIDTH = 0.9  # relative to the width of the axes; longer titles have two lines
STAR, RING = 6, 3  # relative to the size of a dot
N_ANGLES, FROM_FRAME = 16, 4  # directions for moving labels apart; least distance from the frame
ROWS_A_LAYER, MAX_LAYERS = 100, 12
MARKER_AREAS = (1, 0.85, 1.3, 0.8, 1.3, 1.4, 1.4, 2.2)  # such that all look equally large
TEXT_CONTRAST, DOT_CONTRAST, DOT_CONTRAST_ON_DARK = 4.5, 1.5, 5  # minimum contrasts
# Okabe and Ito's yellow, which needs an outline, and other colours of Tol's.
NEW_COLORS = ("#F0E442", "#AA4499", "#DDCC77", "#661100")  # of classes that only new rows have


@dataclass(frozen=True)
class Ground:
    """The background of a picture, and colours that contrast with it.

    Colours are RGB arrays, from 0 to 1.

    Attributes
    ----------
    color, page : ndarray of shape (3,)
        Background of the axes, and of the figure around them.
    """

    color: np.ndarray
    page: np.ndarray

    @classmethod
    def of(cls, ax: Any) -> Ground:
        """Return the background of some axes.

        If it is transparent, a page on which matplotlib's texts are readable is assumed.
        """
        from matplotlib import rcParams

        beneath = 1.0 - _rgb(rcParams["text.color"]).round()
        page = _rgb(ax.figure.get_facecolor(), beneath)
        return cls(_rgb(ax.get_facecolor(), page), page)

    @property
    def ink(self) -> np.ndarray:
        """Black or white, whichever contrasts more."""
        black, white = np.zeros(3), np.ones(3)
        return max(black, white, key=lambda ink: contrast(ink, self.color))

    @property
    def grey(self) -> np.ndarray:
        """A mixture of background and ink; on white, it is `GREY`."""
        return self.mixed(self.color, 1 - _rgb(GREY)[0])

    def mixed(self, color: Any, share: float) -> np.ndarray:
        """Return a colour mixed with a share of ink."""
        return (1 - share) * _rgb(color) + share * self.ink

    def readable(self, color: Any, least: float) -> np.ndarray:
        """Return a colour mixed with enough ink for a contrast of `least`; black becomes ink."""
        if not _rgb(color).any():
            return self.ink
        mixtures = [self.mixed(color, share) for share in np.linspace(0, 1, 21)]
        enough = [mixed for mixed in mixtures if contrast(mixed, self.color) >= least]
        return enough[0] if enough else self.ink


def _rgb(color: Any, beneath: Any = 1.0) -> np.ndarray:
    """Return a matplotlib colour, possibly transparent, as it looks on another."""
    from matplotlib.colors import to_rgba

    *rgb, opacity = to_rgba(color)
    return opacity * np.array(rgb) + (1 - opacity) * beneath


def contrast(color: np.ndarray, other: np.ndarray) -> float:
    """Return the contrast of two colours, from 1 to 21.

    WCAG 2.2 requires 4.5 for text, 3 for large text.
    """
    channels = np.array([color, other])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    darker, lighter = np.sort(linear @ [0.2126, 0.7152, 0.0722])
    return float((lighter + 0.05) / (darker + 0.05))


@dataclass(eq=False, repr=False)
class EmbeddingDisplay(Display):
    """A 2-D map of held-out rows, titled with the score of a k-NN vote in that map.

    Up to twelve classes are listed in a legend (seven if there are more than 2,000 rows); more are
    labelled at the medians of their rows. If there are many rows, dots are small and transparent.
    They are drawn in random order, so that no class hides another. Colours adapt to the background
    of the axes.

    Parameters
    ----------
    embedding : array of shape (n, 1) or (n, 2)
        Held-out rows. A single dimension is drawn as a strip for each class, or against the
        numbers.
    labels : array of shape (n,)
        Classes, shown by colours and markers, or numbers, shown by a colour scale.
    score : float or None
        Score of the vote of the training rows for these rows, in the same coordinates; None if the
        labels are predictions.
    vote : Vote
        The vote that was scored, for the title.
    name : str
        Name of the map, for the title.
    task : {"classification", "regression"}, default="classification"
        Whether the labels are classes or numbers.
    score_name : str, default=None
        One of `SCORES`; None takes accuracy, or R² for numbers.
    unlabelled : array of shape (n_u, 1) or (n_u, 2), default=None
        Unlabelled rows, drawn in grey below the others.
    wrong : boolean array of shape (n,), default=None
        Rows for which the vote is wrong, which are ringed.
    full_score : float, default=None
        The score in all dimensions of the space that the plane shows, for a second title line.
    full_dimension : int, default=None
        The number of these dimensions.
    target : str, default="target"
        Name of the numbers, for their scale.

    Attributes
    ----------
    estimator_ : transformer or None
        The map, fitted to the training rows, if the display was made by `from_estimator`.
    ax_, figure_ : matplotlib Axes and Figure
    """

    embedding: np.ndarray
    labels: np.ndarray
    score: float | None
    vote: Vote
    name: str
    task: str = CLASSIFICATION.name
    score_name: str | None = None
    unlabelled: np.ndarray | None = None
    wrong: np.ndarray | None = None
    full_score: float | None = None
    full_dimension: int | None = None
    target: str = "target"
    estimator_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        y: Any,
        *,
        task: str = CLASSIFICATION.name,
        split: Any = None,
        unlabelled: Any = (),
        n_neighbors: int = 5,
        mark_errors: bool = False,
        name: str | None = None,
        ax: Any = None,
    ) -> EmbeddingDisplay:
        """Fit a clone of the estimator to some rows, and draw the others.

        Parameters
        ----------
        estimator : transformer
            E.g. `make_pipeline(StandardScaler(), DNE(2))`. If there are more than two components,
            the first two are drawn and scored, and the score in all of them is the second title
            line. If the estimator (or its last step) has a method `space(X)` that returns the rows
            in a space of its own, (n, m), the second line is the score there.
        X : array or sparse matrix of shape (n, p)
        y : array of shape (n,)
        task : {"classification", "regression"}, default="classification"
            Whether y holds classes or numbers.
        split : pair of integer arrays, default=None
            Training rows and held-out rows, e.g. a fold of a comparison; None holds out a random
            third.
        unlabelled : integer array, default=()
            Unlabelled rows to learn from as well, drawn in grey; requires a split.
        n_neighbors : int, default=5
            k of the vote; if there are fewer training rows, all vote.
        mark_errors : bool, default=False
            Whether to ring the rows for which the vote is wrong; for classes only.
        name : str, default=None
            For the title; None takes the class name of the estimator (or its last step).
        ax : matplotlib Axes, default=None
            Where to draw; None creates a new figure.

        Returns
        -------
        EmbeddingDisplay
        """
        y = np.asarray(y)
        if mark_errors and named_task(task) != CLASSIFICATION:
            raise ValueError(
                f"mark_errors=True rings rows whose class the vote gets wrong, and task={task!r} "
                "has no classes: leave it out."
            )
        if split is None:  # a fold, which unlike a shuffled split also works for small classes
            folds = named_task(task).splitter(3, shuffle=True, random_state=0)
            split = next(folds.split(y, y))
        rows = np.asarray(unlabelled, dtype=int)
        seen = held_out_map(estimator, X, y, split, n_neighbors, task=task, unlabelled=rows)
        labels = known_labels(y, seen.rows)
        display = cls(
            seen.embedding,
            labels,
            seen.score,
            seen.vote,
            name or type(getattr(estimator, "_final_estimator", estimator)).__name__,
            task,
            unlabelled=seen.unlabelled,
            wrong=np.asarray(seen.predictions != labels) if mark_errors else None,
            full_score=seen.full_score,
            full_dimension=seen.full_dimension,
        )
        display.estimator_ = seen.fitted
        return display.plot(ax=ax)

    def add(self, X_new: Any, y_new: Any = None) -> Self:
        """Draw new rows into the finished picture, as outlined stars.

        Parameters
        ----------
        X_new : array, sparse matrix or data frame of shape (n_new, p)
            Rows in the format to which the estimator was fitted, which places them.
        y_new : array of shape (n_new,), default=None
            Their labels, None or NaN if missing. A star has the colour of its class or number. A
            new class gets a colour of its own; an unlabelled row has the background colour.

        Returns
        -------
        EmbeddingDisplay
            The display itself.
        """
        if self.estimator_ is None:
            raise ValueError(
                "add needs the fitted map to place new rows, and this display has coordinates "
                "only: make it with EmbeddingDisplay.from_estimator(estimator, X, y)."
            )
        Z = np.asarray(self.estimator_.transform(X_new))[:, :2]
        y = np.full(len(Z), None) if y_new is None else np.asarray(y_new)
        if len(y) != len(Z):
            raise ValueError(
                f"y_new has {counted(len(y), 'label')} for {counted(len(Z), 'row')} of X_new: "
                "give one for each, None where it is missing."
            )
        self._draw_stars(self.ax_, Z, y)
        return self

    # Drawing.

    @property
    def _size(self) -> tuple[float, float]:
        return (9.0, 7.0) if self._are_named else (8.0, 5.5)  # as wide as the title

    @property
    def _is_plane(self) -> bool:
        return self.embedding.shape[1] > 1

    @property
    def _has_classes(self) -> bool:
        return named_task(self.task) == CLASSIFICATION

    @property
    def _are_named(self) -> bool:
        """Whether classes are labelled at their rows.

        A legend would be too long, or would depend on markers too small to distinguish.
        """
        n_classes = len(np.unique(self.labels)) if self._has_classes else 0
        at_most = MAX_LEGEND if self._n_dots <= N_VECTORS else MAX_SMALL
        return n_classes > at_most

    @property
    def _n_dots(self) -> int:
        return len(self.embedding) + (0 if self.unlabelled is None else len(self.unlabelled))

    def _draw(self, ax: Any) -> None:
        self._ground = Ground.of(ax)
        self._dots = dots(self._n_dots)
        if self._has_classes:
            self._draw_classes(ax)
        else:
            self._draw_numbers(ax)
        if self._n_dots > len(self.embedding):
            self._draw_unlabelled(ax)
        if self.wrong is not None:
            self._draw_rings(ax)
        other_axis = "class" if self._has_classes else short_label(self.target)
        ax.set_xlabel("dimension 1")
        ax.set_ylabel("dimension 2" if self._is_plane else other_axis, parse_math=False)
        ax.set(xticks=[], yticks=[] if self._is_plane or self._has_classes else ax.get_yticks())
        self._write_title(ax)
        self._draw_legend(ax)
        self._n_stars = 0
        if self._are_named:
            self._name_classes(ax)

    def _in_picture(self, Z: np.ndarray, places: Any) -> np.ndarray:
        """Return points (n, 2); for a 1-D map, `places` of classes or numbers come second."""
        if self._is_plane:
            return Z
        spread = 0.3 * self._has_classes
        jitter = np.random.default_rng(0).uniform(-spread, spread, len(Z))
        return np.column_stack([Z[:, 0], places + jitter])

    @property
    def _place_without_label(self) -> float:
        """Return the position of unlabelled rows: below the first class, or the smallest number."""
        if self._has_classes:
            return -1.0
        return float(np.min(self.labels) - 0.1 * np.ptp(self.labels))

    def _draw_classes(self, ax: Any) -> None:
        """Draw layers of random rows, so that no class hides another."""
        classes, self._codes = np.unique(self.labels, return_inverse=True)
        self._numbers = {label: number for number, label in enumerate(classes.tolist())}
        self._n_classes = len(classes)
        self._points = self._in_picture(self.embedding, self._codes)
        colors = np.array([self._color(number) for number in range(len(classes))])
        order = np.random.default_rng(0).permutation(len(self._codes))
        n_layers = np.clip(len(order) // ROWS_A_LAYER, 1, MAX_LAYERS)
        for layer in np.array_split(order, n_layers):
            marks = self._codes[layer] % len(MARKERS)
            for mark in np.unique(marks):
                rows = layer[marks == mark]
                style = self._dots | _marker(mark, self._dots["s"])
                ax.scatter(*self._points[rows].T, c=colors[self._codes[rows]], **style)
        if not self._are_named:
            for number, name in enumerate(labels_apart(list(map(str, self._numbers)))):
                self._list(ax, name, facecolors=colors[number], **_marker(number, DOT))

    def _color(self, number: int) -> np.ndarray:
        """Return the colour of a class; classes that only new rows have follow the others."""
        n_before = number - self._n_classes
        if n_before >= 0:
            return _rgb(NEW_COLORS[n_before % len(NEW_COLORS)])
        least = DOT_CONTRAST_ON_DARK if self._ground.ink.any() else DOT_CONTRAST
        return self._ground.readable(COLORS[number % len(COLORS)], least)

    def _draw_numbers(self, ax: Any) -> None:
        self._points = self._in_picture(self.embedding, self.labels)
        outline = self._ground.mixed(self._ground.color, 2 / 3)
        style = dict(self._dots)
        if len(self.labels) <= N_VECTORS:
            style |= {"linewidths": 0.4, "edgecolors": outline, "alpha": 1}
        self._scale = ax.scatter(*self._points.T, c=self.labels, cmap=SEQUENTIAL, **style)
        bar = ax.figure.colorbar(self._scale, ax=ax)
        bar.set_label(short_label(self.target), parse_math=False)
        bar.solids.set_alpha(1)

    def _draw_unlabelled(self, ax: Any) -> None:
        points = self._in_picture(np.asarray(self.unlabelled), self._place_without_label)
        grey = self._ground.grey
        ax.scatter(*points.T, color=grey, zorder=0.5, **self._dots)
        self._list(ax, "no label", facecolors=grey)

    def _draw_rings(self, ax: Any) -> None:
        rings = {"facecolors": "none", "edgecolors": self._ground.ink, "linewidths": 0.7}
        size = RING * self._dots["s"]
        points = self._points[np.asarray(self.wrong, dtype=bool)]
        ax.scatter(*points.T, s=size, rasterized=self._dots["rasterized"], zorder=1.5, **rings)
        self._list(ax, "the vote is wrong", s=RING * DOT, **rings)

    def _write_title(self, ax: Any) -> None:
        from matplotlib import rcParams

        if self.score is None:
            rows = counted(len(self.embedding), "row")
            text = f"{self.name} in {self.embedding.shape[1]}-D: {rows}, coloured by prediction"
            ax.set_title(text, parse_math=False)
            return
        name = self.score_name or next(iter(SCORES_OF[self.task]))
        factor, title, _ = SCORES[name]
        large = abs(self.score) >= LARGE
        write = ("{:.1%}" if factor == 100 else "{:,.0f}" if large else "{:.3f}").format
        score = f"at {title if title.isupper() else title.lower()} {write(self.score)} on"
        if name == "accuracy":
            score = f"right in {write(self.score)} of"
        dimension, n = self.embedding.shape[1], len(self.embedding)
        text = f"{self.name} in {dimension}-D: {self.vote} {score} {n:,} held-out rows"
        place = ax.get_subplotspec()
        n_across = 1 if place is None else place.get_topmost_subplotspec().get_gridspec().ncols
        written = ax.set_title(text, parse_math=False).get_window_extent().width
        if written > TITLE_WIDTH * ax.figure.bbox.width / n_across:
            text = f"{self.name} in {dimension}-D:\n{self.vote} {score} {n:,} held-out rows"
        pad = rcParams["axes.titlepad"]
        if self.full_score is None:
            ax.set_title(text, parse_math=False)
            return
        ax.set_title(text, parse_math=False, pad=pad + 1.5 * rcParams["font.size"])
        number = "" if self.full_dimension is None else f"{self.full_dimension} "
        where = "one dimension" if self.full_dimension == 1 else f"all {number}dimensions"
        ax.annotate(
            f"in {where}: {write(self.full_score)}",
            (0.5, 1),
            (0, pad),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
        )

    def _list(self, ax: Any, text: str, **style: Any) -> None:
        """Add a legend entry with a full-size dot."""
        ax.scatter([], [], label=short_label(text), **{"s": DOT, "linewidths": 0} | style)

    def _draw_legend(self, ax: Any) -> None:
        """List classes next to the picture, and other entries below it."""
        from matplotlib import rcParams
        from matplotlib.lines import Line2D
        from matplotlib.transforms import offset_copy

        handles, _ = ax.get_legend_handles_labels()
        if not handles:
            return
        place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
        is_key = [isinstance(handle, Line2D) for handle in handles]  # a number and a name
        if any(is_key):
            n_columns = -(-len(handles) // KEYS_A_COLUMN)
            place |= {"fontsize": "x-small", "ncols": n_columns, "labelspacing": 0.2}
            if all(is_key):  # without marks
                place |= {"handlelength": 0, "handletextpad": 0}
        elif self._are_named or not self._has_classes:
            lower = -1.8 * rcParams["font.size"]
            beneath = offset_copy(ax.transAxes, ax.figure, y=lower, units="points")
            place = {
                "loc": "upper center",
                "bbox_to_anchor": (0.5, 0),
                "ncols": min(len(handles), 5),
            }
            place["bbox_transform"] = beneath
        ground = self._ground
        legend = ax.legend(
            **place,
            facecolor=tuple(ground.color),
            framealpha=1,
            edgecolor="none",
            labelcolor=tuple(ground.ink),
            frameon=contrast(ground.color, ground.page) > 1.05,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)

    def _name_classes(self, ax: Any) -> None:
        """Write class names at the medians of their rows; of very many classes only the largest.

        If there are so many that names would have to leave their rows, those without room become
        numbers, which a legend explains.
        """
        from matplotlib.patheffects import withStroke

        sizes = np.bincount(self._codes)
        named = np.argsort(-sizes, kind="stable")[:MAX_NAMED]
        halo = [withStroke(linewidth=3, foreground=self._ground.color)]
        few = len(named) <= MANY_NAMES
        texts = labels_apart(list(map(str, self._numbers)), NAME_LENGTH if few else SMALL_LENGTH)
        names = [
            ax.annotate(
                texts[number],
                np.median(self._points[self._codes == number], axis=0),
                (0, 0),
                textcoords="offset points",
                ha="center",
                va="center",
                color=self._ground.readable(self._color(number), TEXT_CONTRAST),
                fontsize="medium" if few else "small",
                fontweight="bold" if few else "normal",
                path_effects=halo,
                parse_math=False,
                zorder=4,
            )
            for number in named
        ]
        if not few and (without_room := np.flatnonzero(_left(*_separated(ax, names)))).size:
            for key, place in enumerate(without_room, 1):
                name = names[place]
                ax.plot([], [], " ", label=f"{key} {name.get_text()}")
                name.set_text(str(key))
                name.set_fontweight("bold")
            self._draw_legend(ax)
        _connect(ax, names, *_separated(ax, names))

    def _draw_stars(self, ax: Any, Z: np.ndarray, y: np.ndarray) -> None:
        """Draw new rows, and add entries that the legend does not have yet."""
        from matplotlib.patheffects import withStroke

        ground = self._ground
        style = {
            "marker": "*",
            "edgecolors": ground.ink,
            "linewidths": 0.9,
            "path_effects": [withStroke(linewidth=2.8, foreground=ground.color)],
        }
        if not self._n_stars:
            self._list(ax, "new", facecolors=ground.color, s=STAR * DOT, **style)
        self._n_stars += len(Z)
        known = ~is_missing(y)
        places = np.full(len(Z), self._place_without_label)
        colors = np.tile(ground.color, (len(Z), 1))
        if self._has_classes:
            before = len(self._numbers)
            numbers = np.array([self._number(label) for label in y[known].tolist()], dtype=int)
            palette = np.array([self._color(number) for number in self._numbers.values()])
            places[known], colors[known] = numbers, palette[numbers]
            for label in list(self._numbers)[before:]:
                color = self._color(self._numbers[label])
                self._list(ax, f"new: {label}", facecolors=color, s=STAR * DOT, **style)
        else:
            places[known] = y[known]
            colors[known] = self._scale.to_rgba(places[known])[:, :3]
        size = STAR * dots(self._n_stars)["s"]
        ax.scatter(*self._in_picture(Z, places).T, s=size, c=colors, zorder=3, **style)
        self._draw_legend(ax)

    def _number(self, label: Any) -> int:
        """Return the code of a class; a new class gets the next one."""
        return self._numbers.setdefault(label, len(self._numbers))


def dots(n: int) -> dict[str, Any]:
    """Return the style of n dots: small and transparent if there are many."""
    many = max(n / N_PLAIN, 1)
    return {
        "s": max(DOT * many**-0.55, LEAST_DOT),
        "alpha": max(OPACITY * many**-0.15, LEAST_OPACITY),
        "rasterized": n > N_VECTORS,
        "linewidths": 0,
    }


def _marker(number: int, size: float) -> dict[str, Any]:
    """Return the marker of a class, scaled to look as large as a dot of this size."""
    mark = number % len(MARKERS)
    return {"marker": MARKERS[mark], "s": size * MARKER_AREAS[mark]}


def _separated(ax: Any, names: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return how far annotations must move not to overlap in the current layout, and their sizes,
    in pixels.
    """
    layout = ax.figure.get_layout_engine()
    if layout is not None:
        layout.execute(ax.figure.canvas.figure)
    boxes = np.array([name.get_window_extent().bounds for name in names])
    at, sizes = boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]
    axes = ax.get_window_extent().padded(-FROM_FRAME)
    return separated(at, sizes, np.array([axes.min, axes.max])) - at, sizes


def _left(moves: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return which annotations no longer cover their points."""
    return (2 * np.abs(moves) > sizes).any(axis=1)


def _connect(ax: Any, names: list[Any], moves: np.ndarray, sizes: np.ndarray) -> None:
    """Move annotations; join those that have left their points to them by a line."""
    points = moves * 72 / ax.figure.dpi
    for name, move in zip(names, points, strict=True):
        name.xyann = move
    for number in np.flatnonzero(_left(moves, sizes)):
        ax.annotate(
            "",
            names[number].xy,
            points[number],
            textcoords="offset points",
            arrowprops={
                "arrowstyle": "-",
                "color": names[number].get_color(),
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )


def separated(at: np.ndarray, sizes: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Return box centres near the given ones such that no two boxes overlap, where feasible.

    One after the other, each box takes the nearest free position on circles around its own; a box
    without a free position is not moved. For n boxes this takes O(n^2) for each of a few thousand
    positions.

    Parameters
    ----------
    at, sizes : array of shape (n, 2)
        Centres of the boxes, the most important first; widths and heights.
    within : array of shape (2, 2)
        The lower left and the upper right corner of the frame.
    """
    radii = np.arange(0, np.linalg.norm(within[1] - within[0]), sizes[:, 1].min() / 2)
    angles = np.linspace(0, 2 * np.pi, N_ANGLES, endpoint=False) + np.pi / 2
    circles = radii[:, None, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    moves = circles.reshape(-1, 2)  # the shortest first
    lower, upper = within[0] + sizes / 2, within[1] - sizes / 2
    centres = np.clip(at, lower, upper)
    for number in range(1, len(at)):
        places = centres[number] + moves
        reach = (sizes[:number] + sizes[number]) / 2
        apart = np.abs(places[:, None] - centres[:number]) >= reach
        inside = (places >= lower[number]) & (places <= upper[number])
        free = inside.all(axis=1) & apart.any(axis=2).all(axis=1)
        if free.any():
            centres[number] = places[free.argmax()]
    return centres


__all__ = [
    "COLORS",
    "GREY",
    "LEAST_EFFECT",
    "MARKERS",
    "MAX_BARS",
    "SCORES",
    "SEQUENTIAL",
    "STATUS_COLORS",
    "ColumnsDisplay",
    "EmbeddingDisplay",
    "FeatureDisplay",
    "RankingDisplay",
    "SpectrumDisplay",
    "feature_stretch",
]
