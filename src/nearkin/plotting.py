"""Pictures as scikit-learn draws them: a Display holds the figures, `from_...` computes them, `plot` draws them.

`plot` draws on the matplotlib axes `ax`, by default on a new figure, and sets `ax_` and `figure_`. No map is drawn
without the score of a k-NN vote on the held-out rows in it: a map of the rows that it was learned from separates even
random labels. matplotlib (`nearkin[plot]`) is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._labels import known_labels
from .evaluation import CLASSIFICATION, RAW, REGRESSION, Comparison, held_out_map, named_task

# Okabe and Ito's colours, which colour-blind readers can distinguish (without yellow, too pale for a dot); with eight
# markers no two of 56 classes look alike.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# From dark blue to yellow in even steps, for colour-blind readers and in grey, too; both ends are outlined to be seen.
SEQUENTIAL = "cividis"
# How the score of a task is drawn: its factor, the title, and the label of the axis.
SCORES = {
    CLASSIFICATION.name: (100, "Accuracy", "held-out rows right (%)"),
    REGRESSION.name: (1, "R²", "R² on held-out rows"),
}
STATUS_COLORS = {"better": COLORS[2], "worse": COLORS[1], "baseline": COLORS[6], "unclear": COLORS[0]}
MAX_LEGEND = 24
MAX_BARS = 30


class _Display:
    """What the pictures share; each has `_draw`."""

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the picture."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError("Drawing needs matplotlib: pip install 'nearkin[plot]'.") from error
            ax = plt.subplots(layout="constrained")[1]
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


@dataclass(eq=False)
class SpectrumDisplay(_Display):
    """Eigenvalues of a fitted method with their cumulative sum, on `cumulative_ax_` (DNE's figures 4 to 6)."""

    eigenvalues: np.ndarray  # in the order of the components
    n_components: int  # how many were kept
    estimator_name: str

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Any = None) -> SpectrumDisplay:
        """Draw the spectrum of a fitted estimator that has `eigenvalues_`, e.g. DNE, NMMP or LPP."""
        estimator = getattr(estimator, "_final_estimator", estimator)  # a pipeline's last step
        check_is_fitted(estimator, "eigenvalues_")
        return cls(estimator.eigenvalues_, estimator.n_components_, type(estimator).__name__).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        number = np.arange(1, len(self.eigenvalues) + 1)
        kept = number <= self.n_components
        for drawn, color, label in ((kept, COLORS[0], "kept"), (~kept, "#BBBBBB", "left out")):
            if drawn.any():
                ax.vlines(number[drawn], 0, self.eigenvalues[drawn], color, linewidth=2, label=label)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(xlabel="number of the eigenvalue", ylabel="eigenvalue")
        ax.set_title(f"{self.estimator_name}: {self.n_components} of {len(self.eigenvalues)} directions kept")
        twin = ax.twinx()
        (line,) = twin.plot(number, np.cumsum(self.eigenvalues), color=COLORS[1], label="cumulative sum")
        twin.set_ylabel("cumulative sum")
        ax.legend(handles=[*ax.collections, line], loc="best")
        self.cumulative_ax_ = twin


@dataclass(eq=False)
class EmbeddingDisplay(_Display):
    """A 2-D map of held-out rows, with the score of a k-NN vote in that map as its title.

    Parameters
    ----------
    embedding : array of shape (n, 1) or (n, 2)
        Held-out rows; one dimension is drawn as a strip for each class, or against the numbers.
    labels : array of shape (n,)
        Classes, shown by colours and markers, or numbers, shown by a scale of colours.
    score : float
        Accuracy, or R², of a k-NN vote of the training rows on these, in the same coordinates.
    n_neighbors : int
        k of the vote.
    name : str
    task : {"classification", "regression"}, default="classification"
        Whether the labels are classes or numbers.
    """

    embedding: np.ndarray
    labels: np.ndarray
    score: float
    n_neighbors: int
    name: str
    task: str = CLASSIFICATION.name

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
        n_neighbors: int = 3,
        name: str | None = None,
        ax: Any = None,
    ) -> EmbeddingDisplay:
        """Learn a clone of the estimator on some rows, map the others and draw these.

        Parameters
        ----------
        estimator : transformer
            E.g. `make_pipeline(StandardScaler(), DNE(2))`. Of more components the first two are drawn, and scored.
        X : array or sparse matrix of shape (n, p)
        y : array of shape (n,)
        task : {"classification", "regression"}, default="classification"
            Whether y holds classes or numbers.
        split : pair of integer arrays, default=None
            Training rows and held-out rows, e.g. a fold of a comparison; None draws a third to be held out.
        unlabelled : integer array, default=()
            Rows without a label to learn from, too; it takes a split.
        n_neighbors : int, default=3
            k of the vote.
        name : str, default=None
            For the title; None takes the name of the (last) class.
        """
        y = np.asarray(y)
        if split is None:  # a fold, which unlike a shuffled split also serves classes of few rows
            folds = named_task(task).splitter(3, shuffle=True, random_state=0)
            split = next(folds.split(y, y))
        rows = np.asarray(unlabelled, dtype=int)
        seen = held_out_map(estimator, X, y, split, n_neighbors, task=task, unlabelled=rows)
        name = name or type(getattr(estimator, "_final_estimator", estimator)).__name__
        return cls(seen.embedding, known_labels(y, seen.rows), seen.score, n_neighbors, name, task).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        Z, is_plane = self.embedding, self.embedding.shape[1] > 1
        if named_task(self.task) == CLASSIFICATION:
            score, other_axis = f"right in {self.score:.1%} of", "class"
            self._plot_classes(ax)
            ax.set(yticks=[])
        else:
            score, other_axis = f"at R² {self.score:.3f} on", "target"
            heights = Z[:, 1] if is_plane else self.labels
            style = {"c": self.labels, "cmap": SEQUENTIAL, "s": 26, "linewidths": 0.4, "edgecolors": "#555555"}
            ax.figure.colorbar(ax.scatter(Z[:, 0], heights, **style), ax=ax, label="target")
            ax.set(yticks=[] if is_plane else ax.get_yticks())
        ax.set(xlabel="dimension 1", ylabel="dimension 2" if is_plane else other_axis, xticks=[])
        title = f"{self.name} in {Z.shape[1]}-D: {self.n_neighbors}-NN {score} {len(Z)} held-out rows"
        ax.set_title(title, parse_math=False)

    def _plot_classes(self, ax: Any) -> None:
        classes = np.unique(self.labels)
        for number, label in enumerate(classes):
            Z = self.embedding[self.labels == label]
            heights = Z[:, 1] if Z.shape[1] > 1 else number + np.random.default_rng(0).uniform(-0.3, 0.3, len(Z))
            style = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)]}
            ax.scatter(Z[:, 0], heights, s=22, linewidths=0, alpha=0.75, label=_shortened(str(label)), **style)
        if len(classes) <= MAX_LEGEND:
            for text in ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False).get_texts():
                text.set_parse_math(False)


@dataclass(eq=False)
class RankingDisplay(_Display):
    """The ranking of a comparison: mean score, every fold, and the raw features as the line to beat."""

    comparison: Comparison

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Any = None) -> RankingDisplay:
        """Draw what `nearkin.evaluation.compare` returned."""
        return cls(comparison).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        results = self.comparison.results[::-1]
        factor, title, label = SCORES[self.comparison.task.name]
        for position, result in enumerate(results):
            color, folds = STATUS_COLORS[result.status], factor * result.score
            jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(folds))
            ax.scatter(folds, position + jitter, color=color, alpha=0.3, s=14, linewidths=0)
            ax.errorbar(folds.mean(), position, xerr=folds.std(ddof=1), fmt="o", color=color, capsize=3)
        raw = factor * self.comparison[RAW].score.mean()
        ax.axvline(raw, color="black", linewidth=0.8, linestyle="--", zorder=0)
        ax.set_yticks(range(len(results)), [f"{r.name}, {r.status}" for r in results])
        ax.set_xlabel(f"{label}, {self.comparison.n_neighbors}-NN: mean ± std, {len(folds)} folds")
        ax.set_title(f"{title} on held-out rows (dashed: the raw features)")


@dataclass(eq=False)
class FeatureDisplay(_Display):
    """What a learned linear map does to every feature: stretched, or ignored."""

    stretch: np.ndarray  # as `feature_stretch` returns it
    names: Sequence[str]  # of the p features
    name: str  # of the map, for the title

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, names: Sequence[str] | None = None, ax: Any = None
    ) -> FeatureDisplay:
        """Draw the stretches of a map with `components_`; without `names`, by `feature_names_in_` or numbers."""
        stretch = feature_stretch(estimator.components_)
        known = getattr(estimator, "feature_names_in_", [f"feature {number}" for number in range(len(stretch))])
        return cls(stretch, known if names is None else names, type(estimator).__name__).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        order = np.argsort(-self.stretch, kind="stable")
        if len(order) > MAX_BARS:
            order = np.concatenate([order[: MAX_BARS // 2], order[-MAX_BARS // 2 :]])
        position = np.arange(len(order))[::-1]
        colors = [COLORS[0] if self.stretch[feature] > 1 - 1e-6 else COLORS[1] for feature in order]
        ax.barh(position, self.stretch[order], color=colors)
        ax.axvline(1, color="black", linewidth=0.8, linestyle="--")
        ax.set_yticks(position, [_shortened(str(self.names[feature])) for feature in order], parse_math=False)
        shown = "" if len(order) == len(self.stretch) else f" (the extremes of {len(self.stretch)})"
        ax.set(xlabel="how far a step along the feature moves a row (dashed: the average)")
        ax.set_title(f"{self.name}: features stretched and ignored{shown}", parse_math=False)


def feature_stretch(components: np.ndarray) -> np.ndarray:
    """Return how far a unit step along each feature moves a row in the learned space, relative to the average.

    For a linear map A, which is `components_` (m, p), it is `||A e_j||` over the root mean square of all features: 1 is
    average, 0 ignored. The step is one unit of what the map was fitted on: one standard deviation where that was
    standardized.
    """
    length = np.linalg.norm(components, axis=0)
    return length / max(np.sqrt(np.mean(length**2)), np.finfo(float).tiny)


def _shortened(text: str, length: int = 24) -> str:
    """Return a legend's text: short, and not starting with the underscore by which matplotlib hides it."""
    text = " " + text if text.startswith("_") else text
    return text if len(text) <= length else text[: length - 1] + "…"
