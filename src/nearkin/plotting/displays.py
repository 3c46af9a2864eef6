"""Displays of spectra, maps of held-out rows, rankings and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._labels import known_labels
from ..evaluation import CLASSIFICATION, Comparison, MethodResult, Vote, held_out_map, named_task
from ..evaluation import SCORES as SCORES_OF
from .base import COLORS, GREY, MARKERS, Display, shortened

# From dark blue to yellow in even steps, for colour-blind readers and in grey, too; both ends are outlined to be seen.
SEQUENTIAL = "cividis"
# How a score is drawn: its factor, the title, and the label of the axis.
SCORES = {
    "accuracy": (100, "Accuracy", "held-out rows right (%)"),
    "balanced_accuracy": (100, "Balanced accuracy", "mean over the classes of held-out rows right (%)"),
    "f1": (1, "F1", "F1 on held-out rows, mean over the classes"),
    "auc": (1, "AUC", "area under the ROC curve on held-out rows"),
    "log_loss": (1, "Log loss", "log loss on held-out rows (less is better)"),
    "r2": (1, "R²", "R² on held-out rows"),
    "mae": (1, "Mean absolute error", "mean absolute error on held-out rows (less is better)"),
    "rank_correlation": (1, "Rank correlation", "rank correlation on held-out rows (Spearman)"),
}
STATUS_COLORS = {"better": COLORS[2], "worse": COLORS[1], "baseline": COLORS[6], "unclear": COLORS[0]}
STATUS_COLORS["reference"] = GREY
MAX_LEGEND = 24
MAX_BARS = 30


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
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


@dataclass(eq=False, repr=False)
class EmbeddingDisplay(Display):
    """A 2-D map of held-out rows, with the score of a k-NN vote in that map as its title.

    Parameters
    ----------
    embedding : array of shape (n, 1) or (n, 2)
        Held-out rows; one dimension is drawn as a strip for each class, or against the numbers.
    labels : array of shape (n,)
        Classes, shown by colours and markers, or numbers, shown by a scale of colours.
    score : float
        Of the vote of the training rows on these, in the same coordinates.
    vote : Vote
    name : str
    task : {"classification", "regression"}, default="classification"
        Whether the labels are classes or numbers.
    score_name : str, default=None
        One of `SCORES`; None takes accuracy, of numbers R².
    """

    embedding: np.ndarray
    labels: np.ndarray
    score: float
    vote: Vote
    name: str
    task: str = CLASSIFICATION.name
    score_name: str | None = None

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
        labels = known_labels(y, seen.rows)
        return cls(seen.embedding, labels, seen.score, Vote(n_neighbors), name, task).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        Z, is_plane = self.embedding, self.embedding.shape[1] > 1
        if named_task(self.task) == CLASSIFICATION:
            other_axis = "class"
            self._plot_classes(ax)
            ax.set(yticks=[])
        else:
            other_axis = "target"
            heights = Z[:, 1] if is_plane else self.labels
            style = {"c": self.labels, "cmap": SEQUENTIAL, "s": 26, "linewidths": 0.4, "edgecolors": "#555555"}
            ax.figure.colorbar(ax.scatter(Z[:, 0], heights, **style), ax=ax, label="target")
            ax.set(yticks=[] if is_plane else ax.get_yticks())
        ax.set(xlabel="dimension 1", ylabel="dimension 2" if is_plane else other_axis, xticks=[])
        title = f"{self.name} in {Z.shape[1]}-D: {self.vote} {self._score_text()} {len(Z)} held-out rows"
        ax.set_title(title, parse_math=False)

    def _score_text(self) -> str:
        name = self.score_name or next(iter(SCORES_OF[self.task]))
        if name == "accuracy":
            return f"right in {self.score:.1%} of"
        factor, title, _ = SCORES[name]
        text = f"{self.score:.1%}" if factor == 100 else f"{self.score:.3f}"
        return f"at {title if title.isupper() else title.lower()} {text} on"

    def _plot_classes(self, ax: Any) -> None:
        classes = np.unique(self.labels)
        for number, label in enumerate(classes):
            Z = self.embedding[self.labels == label]
            heights = Z[:, 1] if Z.shape[1] > 1 else number + np.random.default_rng(0).uniform(-0.3, 0.3, len(Z))
            style = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)]}
            ax.scatter(Z[:, 0], heights, s=22, linewidths=0, alpha=0.75, label=shortened(str(label)), **style)
        if len(classes) <= MAX_LEGEND:
            for text in ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False).get_texts():
                text.set_parse_math(False)


@dataclass(eq=False, repr=False)
class RankingDisplay(Display):
    """The ranking of a comparison: mean score, every fold, and the raw features as the line to beat.

    The automatic choice is a diamond. Below the line are the references, predictors of another kind; of one far off the
    mean is written at the edge.
    """

    comparison: Comparison

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Any = None) -> RankingDisplay:
        """Draw what `nearkin.evaluation.compare` returned."""
        return cls(comparison).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        found, n_folds = self.comparison, len(self.comparison.folds)
        factor, title, label = SCORES[found.score.name]
        results = [*found.results, *found.references]
        for position, result in enumerate(results):
            if position == len(found.results):  # a constant that is far off must not squeeze the others
                ax.margins(x=0.3)
                ax.set_xlim(ax.get_xlim())
                ax.axhline(position - 0.5, color=GREY, linewidth=0.6)
            self._plot_result(ax, result, position, factor)
        ax.axvline(factor * found.raw.score.mean(), color="black", linewidth=0.8, linestyle="--", zorder=0)
        ax.set_yticks(range(len(results)), [f"{r.name}, {r.status}" for r in results], parse_math=False)
        ax.set_ylim(len(results) - 0.5, -0.5)
        vote = "" if found.n_neighbors is None else f", {found.n_neighbors}-NN"
        spread = f"mean ± std, {n_folds} folds" if n_folds > 1 else "one split, ± 95 % interval of the difference"
        ax.set_xlabel(f"{label}{vote}\n{spread}")
        ax.set_title(f"{title} on held-out rows (dashed: raw features)", loc="right")

    def _plot_result(self, ax: Any, result: MethodResult, position: int, factor: int) -> None:
        folds, style = factor * result.score, {"color": STATUS_COLORS[result.status]}
        mean, (low, high) = folds.mean(), ax.get_xlim()
        if result.kind == "reference" and not low <= mean <= high:
            edge, text, side = (low, f" ← {mean:.3g}", "left") if mean < low else (high, f"{mean:.3g} → ", "right")
            ax.text(edge, position, text, ha=side, va="center", **style)
            return
        half = factor * np.ptp(result.interval) / 2  # a single fold does not vary, but its rows do
        if len(folds) > 1:
            jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(folds))
            ax.scatter(folds, position + jitter, alpha=0.3, s=14, linewidths=0, **style)
            half = folds.std(ddof=1)
        marker = {"fmt": "D", "markersize": 8} if result.kind == "choice" else {"fmt": "o"}
        ax.errorbar(mean, position, xerr=half, capsize=3, **marker, **style)


@dataclass(eq=False, repr=False)
class FeatureDisplay(Display):
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
        ax.set_yticks(position, [shortened(str(self.names[feature])) for feature in order], parse_math=False)
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
