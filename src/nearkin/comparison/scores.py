"""What is predicted (a class or a number), by which vote, and scores of held-out predictions.

A score is a mean of contributions, one per row. A score that is not a mean (a ratio, or a share of
pairs) is linearized: a row contributes the score of its fold plus its own influence on the score;
the influences have mean 0. The mean of the contributions is thus the score, and the variance of
this mean is the first-order variance of the score, which is what a paired test needs for any score.
A mean with weights w, sum w c / sum w, is linearized, too: a row contributes the score plus w /
mean(w) times the excess of c over the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ..neighbors import exact_index

# Tasks: a class, predicted by the vote of the k nearest rows, or a number, by their mean.


@dataclass(frozen=True)
class Task:
    """The parts of scikit-learn for classification or regression.

    Attributes
    ----------
    name : str
    voter, splitter : class
    """

    name: str
    voter: Any
    splitter: Any


CLASSIFICATION = Task("classification", KNeighborsClassifier, StratifiedKFold)
REGRESSION = Task("regression", KNeighborsRegressor, KFold)
TASKS = {task.name: task for task in (CLASSIFICATION, REGRESSION)}


def named_task(name: str) -> Task:
    """Return a task by its name."""
    if name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {name!r}.")
    return TASKS[name]


# The vote of the nearest rows: how many vote, and with which weights.


def gaussian_weights(distances: np.ndarray) -> np.ndarray:
    """Return `exp(-4 d^2 / d_k^2)` for ascending distances (n, k).

    Weights fall from 1 at distance 0 to 0.018 at the k-th row. The width adapts to the density
    around each row, so the weights do not depend on the unit of the distances.
    """
    farthest = distances[:, -1:]
    shares = np.divide(distances, farthest, out=np.zeros_like(distances), where=farthest > 0)
    return np.exp(-4 * shares**2)


@dataclass(frozen=True)
class Vote:
    """The prediction of the nearest rows.

    A hard vote weights them equally, a soft one by `gaussian_weights`.

    Attributes
    ----------
    n_neighbors : int
        Number of rows that vote.
    soft : bool
    """

    n_neighbors: int
    soft: bool = False

    def estimator(self, task: Task) -> Any:
        """Return scikit-learn's k-NN estimator with this vote, unfitted."""
        weights = gaussian_weights if self.soft else "uniform"
        return task.voter(self.n_neighbors, weights=weights, algorithm="brute")

    def predict(self, distances: np.ndarray, answers: np.ndarray, n_classes: int) -> np.ndarray:
        """Return class probabilities (n, n_classes), or the mean (n,) if n_classes = 0.

        `distances` and `answers` are those of the neighbours, (n, k), nearest first; answers are
        class codes 0, 1, ... or numbers.
        """
        distances, answers = distances[:, : self.n_neighbors], answers[:, : self.n_neighbors]
        weights = gaussian_weights(distances) if self.soft else np.ones(distances.shape)
        if n_classes == 0:
            return np.sum(weights * answers, axis=1) / weights.sum(axis=1)
        votes, rows = np.zeros((len(answers), n_classes)), np.arange(len(answers))
        for rank in range(answers.shape[1]):
            votes[rows, answers[:, rank]] += weights[:, rank]
        return votes / weights.sum(axis=1, keepdims=True)

    def __str__(self) -> str:
        """Return e.g. "15-NN" or "soft 25-NN"."""
        return f"{'soft ' * self.soft}{self.n_neighbors}-NN"


@dataclass(frozen=True)
class OwnVote(Vote):
    """A predictor's own vote: that of all `n_neighbors` rows it learned from, with its weights."""

    soft: bool = True

    def __str__(self) -> str:
        """Return "all rows"."""
        return "all rows"


# Inner folds choose among these. Ties go to the first, so the most common one comes first.
VOTES = (*(Vote(k) for k in (3, 5, 9, 15, 25, 1)), *(Vote(k, soft=True) for k in (10, 25, 50)))


def possible_votes(votes: Sequence[Vote], n_rows: int) -> list[Vote]:
    """Return the votes that `n_rows` rows allow; if there are none, a vote of all rows."""
    return [vote for vote in votes if vote.n_neighbors <= n_rows] or [Vote(n_rows, votes[0].soft)]


def nearest_voters(Z: Any, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances to the k nearest rows of Z, (n_queries, k), ascending, and their indices."""
    return exact_index(Z, k)(queries, k)


MIN_PROBABILITY = 1e-3  # for the log loss


@dataclass(frozen=True)
class Score:
    """A score of the held-out rows of one fold.

    Attributes
    ----------
    name : str
    contributions : function of (y, prediction, weights=None), returns an array of shape (n_rows,)
        The mean of the contributions is the score; with weights, that of copies of the rows. For a
        classification, y is coded as 0, ..., c - 1, and the prediction consists of probabilities
        (n_rows, c); the predicted class is the first with the largest probability. Classes missing
        from y are left out of a mean over classes.
    sign : int
        1 if larger is better, -1 if smaller is.
    """

    name: str
    contributions: Callable[..., np.ndarray]
    sign: int = 1


Weights = np.ndarray | None


def _relative(y: np.ndarray, weights: Weights) -> np.ndarray:
    """Return weights scaled to mean 1; all 1 by default."""
    return np.ones(len(y)) if weights is None else weights / weights.mean()


def _about_mean(values: np.ndarray, weights: Weights) -> np.ndarray:
    """Return the contributions to the mean of some values."""
    if weights is None:
        return values
    mean = np.average(values, weights=weights)
    return mean + _relative(values, weights) * (values - mean)


def _hits(y: np.ndarray, P: np.ndarray) -> np.ndarray:
    return (P.argmax(axis=1) == y).astype(float)


def _accuracy(y: np.ndarray, P: np.ndarray, weights: Weights = None) -> np.ndarray:
    return _about_mean(_hits(y, P), weights)


def _balanced(y: np.ndarray, P: np.ndarray, weights: Weights = None) -> np.ndarray:
    """Return the contributions to the recall, averaged over the classes."""
    hits, w = _hits(y, P), _relative(y, weights)
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.bincount(codes, w)
    shares = np.bincount(codes, w * hits) / sizes
    scale = (len(y) / (len(classes) * sizes))[codes]
    return shares.mean() + (hits - shares[codes]) * scale * w


def _f1(y: np.ndarray, P: np.ndarray, weights: Weights = None) -> np.ndarray:
    """Return the contributions to F1, averaged over the classes.

    For each class it is 2 (correct rows) / (rows of the class + rows predicted as the class).
    """
    classes, w = np.unique(y), _relative(y, weights)[:, None]
    actual, predicted = y[:, None] == classes, P.argmax(axis=1)[:, None] == classes
    right, all_of_them = 2.0 * w * (actual & predicted), w * (1.0 * actual + predicted)
    ratio = right.mean(axis=0) / all_of_them.mean(axis=0)
    return (ratio + (right - ratio * all_of_them) / all_of_them.mean(axis=0)).mean(axis=1)


def _auc(y: np.ndarray, P: np.ndarray, weights: Weights = None) -> np.ndarray:
    """Return the contributions to the AUC of class 1, or the mean AUC of each class against others.

    The mean is taken for more than two classes. If y has only one class, the AUC is 0.5.
    """
    columns, w = range(P.shape[1] == 2, P.shape[1]), _relative(y, weights)
    areas = [_area(y == c, P[:, c], w) for c in columns if 0 < np.count_nonzero(y == c) < len(y)]
    return np.mean(areas, axis=0) if areas else np.full(len(y), 0.5)


def _area(positive: np.ndarray, score: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the contributions to the share of (positive, negative) pairs in the correct order.

    Ties count half. See DeLong et al., Biometrics 44, 1988.
    """
    n, of_positive, of_negative = len(score), w[positive].sum(), w[~positive].sum()
    # placement: the share of the other side that a row orders correctly
    below = _sum_above(-score, w)
    placement = np.empty(n)
    own = _sum_above(-score[positive], w[positive])
    placement[positive] = (below[positive] - own) / of_negative
    own = _sum_above(-score[~positive], w[~positive])
    placement[~positive] = 1 - (below[~positive] - own) / of_positive
    area = np.average(placement[positive], weights=w[positive])
    return area + (placement - area) * n / np.where(positive, of_positive, of_negative) * w


def _log_loss(y: np.ndarray, P: np.ndarray, weights: Weights = None) -> np.ndarray:
    """Return the contributions to the mean of -log p of the true class, with p at least 0.001.

    Without this bound, k neighbours that agree and are wrong would have infinite loss.
    """
    return _about_mean(-np.log(np.maximum(P[np.arange(len(y)), y], MIN_PROBABILITY)), weights)


def _r2(y: np.ndarray, prediction: np.ndarray, weights: Weights = None) -> np.ndarray:
    """Return the contributions to 1 - sum of squared errors / sum of squares about the fold's mean.

    For constant y, R² is 1 if all predictions are exact, else 0.
    """
    w = _relative(y, weights)
    errors, squares = w * (y - prediction) ** 2, w * (y - np.average(y, weights=w)) ** 2
    if not squares.any():
        return np.full(len(y), float(not errors.any()))
    ratio = errors.mean() / squares.mean()
    return 1 - ratio - (errors - ratio * squares) / squares.mean()


def _absolute_errors(y: np.ndarray, prediction: np.ndarray, weights: Weights = None) -> np.ndarray:
    return _about_mean(np.abs(y - prediction), weights)


def _rank_correlation(y: np.ndarray, prediction: np.ndarray, weights: Weights = None) -> np.ndarray:
    """Return the contributions to Spearman's rank correlation; 0 if one side is constant."""
    w = _relative(y, weights)
    cross, d_cross = _rank_covariance(y, prediction, w)
    var_y, d_var_y = _rank_covariance(y, y, w)
    var_p, d_var_p = _rank_covariance(prediction, prediction, w)
    if min(var_y, var_p) <= 0:
        return np.zeros(len(y))
    r = cross / np.sqrt(var_y * var_p)
    return r + d_cross / np.sqrt(var_y * var_p) - r / 2 * (d_var_y / var_y + d_var_p / var_p)


def _rank_covariance(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the covariance of F = rank(x) / n and G = rank(y) / n, and the influence of every row.

    F and G are centred; w are weights of mean 1. A row adds its own F G, and changes the ranks of
    the rows above it: psi = F G + mean(G; x above) + mean(F; y above).
    """
    n = len(x)
    F, G = ((_sum_above(-v, w) - n / 2) / n for v in (x, y))
    psi = F * G + _sum_above(x, w * G) / n + _sum_above(y, w * F) / n
    return float(np.mean(w * F * G)), w * (psi - np.average(psi, weights=w))


def _sum_above(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return, for every row, the sum of values where x is larger, plus half where it is equal."""
    _, level = np.unique(x, return_inverse=True)
    sums = np.bincount(level, values)
    return (sums[::-1].cumsum()[::-1] - sums / 2)[level]


BY_CLASS = ("balanced_accuracy", "f1")  # scores that weight all classes equally, however rare

OF_CLASSES = (
    Score("accuracy", _accuracy),
    Score("balanced_accuracy", _balanced),
    Score("f1", _f1),
    Score("auc", _auc),
    Score("log_loss", _log_loss, sign=-1),
)
OF_NUMBERS = (
    Score("r2", _r2),
    Score("mae", _absolute_errors, sign=-1),
    Score("rank_correlation", _rank_correlation),
)
SCORES = {
    task.name: {score.name: score for score in scores}
    for task, scores in ((CLASSIFICATION, OF_CLASSES), (REGRESSION, OF_NUMBERS))
}
