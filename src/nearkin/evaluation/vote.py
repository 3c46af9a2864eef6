"""The vote of the nearest rows: how many vote, and with which weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .task import Task


def gaussian_weights(distances: np.ndarray) -> np.ndarray:
    """Return `exp(-4 d^2 / d_k^2)` for distances (n, k), ascending: from 1 for no distance to 0.018 for the k-th.

    The width follows the density around each row, so the weights do not depend on the unit of the distances.
    """
    farthest = distances[:, -1:]
    shares = np.divide(distances, farthest, out=np.zeros_like(distances), where=farthest > 0)
    return np.exp(-4 * shares**2)


@dataclass(frozen=True)
class Vote:
    """How the nearest rows predict: a hard vote counts each once, a soft vote weighs them by `gaussian_weights`.

    Attributes
    ----------
    n_neighbors : int
        How many vote.
    soft : bool
    """

    n_neighbors: int
    soft: bool = False

    def estimator(self, task: Task) -> Any:
        """Return scikit-learn's k-NN that votes so, unfitted."""
        weights = gaussian_weights if self.soft else "uniform"
        return task.voter(self.n_neighbors, weights=weights, algorithm="brute")

    def predict(self, distances: np.ndarray, answers: np.ndarray, n_classes: int) -> np.ndarray:
        """Return the shares of the classes (n, n_classes), or for n_classes = 0 the mean (n,) of numbers.

        `distances` and `answers` of the neighbours, (n, k), nearest first; answers are classes 0, 1, ... or numbers.
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
    """That of a predictor: all `n_neighbors` rows that it learned from, with weights of its own."""

    soft: bool = True

    def __str__(self) -> str:
        """Return "all rows"."""
        return "all rows"


# Among these inner folds choose; of equally good ones the first, so the most usual comes first.
VOTES = (*(Vote(k) for k in (3, 5, 9, 15, 25, 1)), *(Vote(k, soft=True) for k in (10, 25, 50)))


def possible_votes(votes: Sequence[Vote], n_rows: int) -> list[Vote]:
    """Return the votes that so many rows can give; where there is none, that of all rows."""
    return [vote for vote in votes if vote.n_neighbors <= n_rows] or [Vote(n_rows, votes[0].soft)]


def nearest_voters(Z: Any, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances to the k nearest rows of Z and their positions, (n_queries, k), nearest first."""
    return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(Z).kneighbors(queries)
