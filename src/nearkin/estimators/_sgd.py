"""NCA by stochastic gradient: a step uses some anchors, their candidates and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..descent import DescentResult, Momentum, OnIteration, Status, adam
from ..objectives.candidates import Candidates
from ..objectives.nca import nca_objective
from ..objectives.stochastic import Value
from ._candidates import N_FAR, N_NEAR, near_rows, near_rows_of
from .descent_embedding import penalized
from .nca_problem import NCARows, fitted_attributes, inits

BATCHES, FEWEST, MOST = 20, 128, 512  # of an epoch by default, of this many anchors each
STEPS = 500  # of a fit by default, at least
N_NEAR_OF_ANCHOR = 15  # fewer than L-BFGS needs: what the lists lack, the next far rows bring
STEP = 0.1  # first length of a step, in units of a map that keeps distances
SLOWING = 100  # steps after which those of `partial_fit` begin to shrink
REFRESH_SHARE = 0.2  # of the steps, after which near rows are searched again: a map moves most at the beginning
EVALUATION_ROWS, EVALUATION_FAR, EVALUATION_GROUPS = 5000, 2000, 20  # of the estimate of the final objective


@dataclass(frozen=True, eq=False)
class Minibatches:
    """NCA's loss by one part of the anchors after another, each with candidates of its own.

    Attributes
    ----------
    nca : NCA
        Its parameters, and the map of its last fit for a warm start.
    rows : NCARows
    init : function from the name of an init to a map, or None
    n_counted : int
        Rows that the penalty counts.
    rng : Generator
    state : SGDState, default=None
        Of a descent that is continued by one epoch.
    """

    nca: Any
    rows: NCARows
    init: Any
    n_counted: int
    rng: np.random.Generator
    state: SGDState | None = None

    @property
    def n_batches(self) -> int:
        """Steps of an epoch, in which every row is an anchor once."""
        n = len(self.rows)
        size = min(max(FEWEST, n // BATCHES), MOST) if self.nca.batch_size == "auto" else self.nca.batch_size
        return -(-n // size)

    @property
    def n_epochs(self) -> int:
        """Epochs of a descent; for max_iter="auto" as many as it takes for 500 steps."""
        if self.state is not None:
            return 1
        return -(-STEPS // self.n_batches) if self.nca.max_iter == "auto" else self.nca.max_iter

    @property
    def n_near(self) -> int | None:
        """Length of the lists of near rows; None where all rows are candidates."""
        k = self.nca.n_candidates
        return None if k is None else min(N_NEAR_OF_ANCHOR if k == "auto" else k, len(self.rows) - 1)

    @property
    def codes(self) -> np.ndarray | None:
        """Classes, where the nearest row of the same class must be a candidate."""
        return self.rows.pair_weights.codes if self.nca.objective == "log_likelihood" else None

    def loss(self, B: np.ndarray, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> Value:
        """Return the loss and its gradient, estimated from some anchors, given the near rows of all rows.

        For given near and far rows, the estimates of an epoch have the loss and the gradient of all anchors for mean.
        """
        value, gradient = self._objective(B, self.rows.take, anchors, near[anchors], far)
        share = self.n_batches / len(self.rows)
        return penalized(-share * value, -share * gradient, B, self.nca.alpha, self.n_counted)

    def _objective(self, A: np.ndarray, take: Any, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> Value:
        """Return what some anchors, with their near rows, add to f or g of the rows that `take` returns."""
        rows, candidates = Candidates.of_anchors(anchors, near, far, len(self.rows))
        return nca_objective(self.nca.objective, A, take(rows), self.rows.pair_weights.subset(rows), candidates)

    def inits(self) -> Iterator[np.ndarray]:
        """Yield the maps to begin with."""
        return inits(self.nca, self.rows, self.init) if self.state is None else iter([self.state.B])

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what NCA sets beside the map."""
        state = SGDState.of(best.x, best.memory, self.rows, self.n_counted)
        return fitted_attributes(self.nca, self.rows, best, self.n_counted) | {"_sgd_state": state}

    def descend(self, init: np.ndarray, on_iteration: OnIteration) -> DescentResult:
        """Descend by steps that shrink to nothing, or as 1 / sqrt(t) if more rows may follow; evaluate the last map.

        A step takes one part of the anchors, which are shuffled in every epoch, and far rows of its own. Near rows are
        those of the first map, then those of the map after a fifth of the steps.
        """
        n_steps, memory = self.n_epochs * self.n_batches, None if self.state is None else self.state.memory
        n_before = 0 if memory is None else memory.n_steps
        length = STEP * len(init) ** 0.5  # the second factor is the norm of a map that keeps distances

        def step(t: int) -> float:
            if self.state is None:
                return length * (1 - t / n_steps)
            return length / (1 + (n_before + t) / SLOWING) ** 0.5

        n, refresh_at = len(self.rows), round(REFRESH_SHARE * n_steps) if self.state is None else 0
        order = near = far = np.arange(n)

        def estimate(B: np.ndarray, t: int) -> Value:
            nonlocal order, near, far
            batch = t % self.n_batches
            if batch == 0:
                order = self.rng.permutation(n)
            if t in (0, refresh_at):
                near, far = self.look_up(B)
            if self.n_near is not None:
                far = self._far_rows()
            anchors = order[batch * n // self.n_batches : (batch + 1) * n // self.n_batches]
            return self.loss(B, anchors, near, far)

        found = adam(
            estimate,
            init,
            n_batches=self.n_batches,
            max_iter=self.n_epochs,
            tol=self.nca.tol,
            step=step,
            memory=memory,
            on_iteration=on_iteration,
        )
        value, error = self.evaluate(found.x)
        found = replace(found, value=value, error=error)
        if self.state is None:
            return found
        if hasattr(self.nca, "components_"):
            curve = [*self.nca.loss_curve_, *found.curve[1:]]
            found = replace(found, curve=curve, n_iter=self.nca.n_iter_ + found.n_iter)
        return found if found.ended_early else replace(found, status=Status.CONVERGED)  # one epoch is all it takes

    def look_up(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the near rows of all rows under a map, and far rows."""
        if self.n_near is None:
            return np.empty((len(self.rows), 0), np.int32), np.arange(len(self.rows))
        return near_rows(self.rows.embedding(B), self.n_near, self.codes, self.rows.search), self._far_rows()

    def _far_rows(self) -> np.ndarray:
        n = len(self.rows)
        return self.rng.choice(n, min(N_FAR, n), replace=False, shuffle=False)

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss at a map and the standard error of this estimate.

        It is the mean over at most 5,000 anchors, each with the 50 rows that are the nearest at this very map, and
        2,000 far ones. The anchors of all maps are the same. The error is that of the means of 20 groups of anchors,
        and is 0 where all rows are anchors.
        """
        n, Z, rng = len(self.rows), self.rows.embedding(B), np.random.default_rng(0)
        anchors = rng.permutation(n)[:EVALUATION_ROWS]
        near, far = np.empty((len(anchors), 0), np.int32), np.arange(n)
        if self.n_near is not None:
            far = rng.choice(n, min(EVALUATION_FAR, n), replace=False)
            near = near_rows_of(anchors, Z, min(max(self.n_near, N_NEAR), n - 1), self.codes)
        groups = np.array_split(np.arange(len(anchors)), min(EVALUATION_GROUPS, len(anchors)))
        sums = [self._sum(Z, anchors[group], near[group], far) for group in groups]
        means = np.divide(sums, [len(group) for group in groups])
        error = float(np.std(means, ddof=1) / len(means) ** 0.5) * (1 - len(anchors) / n) ** 0.5
        value, error = self._cost(Z, float(np.sum(sums)) / len(anchors), error)
        return penalized(value, B, B, self.nca.alpha, self.n_counted)[0], error

    def _sum(self, Z: np.ndarray, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> float:
        """Return what some anchors, with their near rows, add to f or g at the embedding Z of all rows."""
        return self._objective(np.ones(Z.shape[1]), Z.__getitem__, anchors, near, far)[0]

    def _cost(self, Z: np.ndarray, mean: float, error: float) -> tuple[float, float]:
        """Return the loss without its penalty, and its standard error, by the mean over anchors and its error."""
        return -mean, error


@dataclass(frozen=True, eq=False)
class SGDState:
    """A stochastic descent that may continue with other rows.

    Attributes
    ----------
    B : ndarray of shape (m, p), or (p,)
        The map, of features in units of the typical distance; its rows have the signs that those of the memory have.
    memory : Momentum or None
    unit : float
        The typical distance, that of the first rows.
    n_counted : int
        Rows so far.
    """

    B: np.ndarray
    memory: Momentum | None
    unit: float
    n_counted: int

    @classmethod
    def of(cls, B: np.ndarray, memory: Momentum | None, rows: NCARows, n_counted: int) -> SGDState:
        """Return where a descent is, in the features."""
        to_features = rows.space.to_features
        if to_features is not None:
            B = to_features(B.T).T
            memory = memory and replace(memory, mean=to_features(memory.mean.T).T)
        return cls(B, memory, rows.unit, n_counted)
