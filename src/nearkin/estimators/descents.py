"""How `NCA` and `PairNCA` minimize a term plus its penalty, by L-BFGS or by minibatches.

A term is a loss of a map B, of shape (m, r) or (r,), applied to `term.rows`. L-BFGS needs only:

* `term(B, candidates)`: the value and its gradient, given the candidates of every row; None for all
  rows.
* `sign`: -1 if the objective is maximized, so that the term is minus the objective; else 1.
* `codes`: the classes if the nearest row of the same class has to be a candidate, or None.
* `search`: the search for candidates.

Stochastic gradient also needs:

* `estimate(B, candidates, n_batches)`: estimates of the value and the gradient for a step, from the
  candidates of one of `n_batches` parts of the rows.
* `sum(Z, candidates)`: the sum over such a part, at the embedding Z of all rows.
* `of_mean(Z, mean, error)`: the value and its error, from those of the mean over many rows.
* `row_weights`: the weights of the rows, of mean 1, or None.

`NCA` also gets its inits from its term: `directions` by name, and `n_classes`, which limits those
of LDA.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._validation import check_choice, check_integer, check_number
from ..descent import DescentResult, Momentum, OnIteration, Status, adam, lbfgs_rounds
from ..objectives.stochastic import Candidates, Value
from .descent_embedding import (
    N_FAR,
    N_NEAR,
    DescentEmbedding,
    RowsInPlace,
    Scale,
    UnitRows,
    near_rows,
    penalty,
    perplexity,
)

ALL_PAIRS_ROWS = 8000  # up to this many rows, all pairs are used: exact, and faster than a search
MAX_ITER = 200
INIT_ROWS = 10_000  # rows on which stochastic descent finds an init

# Stochastic gradient: a step uses only a batch of anchors and their candidates.
BATCHES = 20  # per epoch, by default,
FEWEST, MOST = 128, 512  # but with at least FEWEST and at most MOST anchors in a batch
STEPS = 500  # minimum number of steps of a fit, by default
N_NEAR_OF_ANCHOR = 15  # fewer than L-BFGS needs: later steps bring other far rows
STEP = 0.1  # the first step length, in units of a map that preserves distances
SLOWING = 100  # steps after which those of `partial_fit` begin to shrink
REFRESH_SHARE = 0.2  # of the steps, after which near rows are searched again: early ones move most
EVALUATION_ROWS = 5000  # for the estimate of the final objective
EVALUATION_FAR = 2000
EVALUATION_GROUPS = 20


@dataclass(frozen=True, eq=False)
class SGDState:
    """The state of a stochastic descent, which can continue with other rows.

    Attributes
    ----------
    B : ndarray of shape (m, p), or (p,)
        The map of features in units of the typical distance, as the descent left it. `components_`
        may have other signs, which would not fit the mean in the memory.
    memory : Momentum or None
    unit : float
        The typical distance of the first rows.
    n_counted : int
        Number of rows so far.
    """

    B: np.ndarray
    memory: Momentum | None
    unit: float
    n_counted: int

    @classmethod
    def of(cls, B: np.ndarray, memory: Momentum | None, rows: Scale, n_counted: int) -> SGDState:
        """Return the state of a descent on `rows`, in terms of the features."""
        to_features = rows.space.to_features
        if to_features is not None:
            B = to_features(B.T).T
            memory = memory and memory._replace(mean=to_features(memory.mean.T).T)
        return cls(B, memory, rows.unit, n_counted)


class TermEmbedding(DescentEmbedding):
    """A linear map that minimizes a term plus its penalty. Abstract, like `DescentEmbedding`."""

    alpha: float
    solver: str
    tol: float
    n_candidates: Any
    batch_size: Any
    n_init: Any
    _sgd_state: SGDState | None = None

    def _minimize(
        self,
        term: Any,
        inits: Iterable[np.ndarray],
        rng: Any,
        dtype: Any,
        task: Any = None,
        state: SGDState | None = None,
    ) -> Self:
        """Descend from each init, or for one epoch from a state; keep the map of lowest loss.

        `inits` yields maps B, and may draw from the RandomState `rng`. The map is stored in the
        given dtype.
        """
        rows, best = term.rows, None
        n_counted = rows.shape[0] + (state.n_counted if state else 0)
        on_iteration = task and partial(
            task.iteration, lambda B: {"components_": rows.components(B, dtype)}
        )
        generator = np.random.default_rng(rng.randint(2**31)) if self.solver == "sgd" else None
        for B in inits:
            if generator is not None:
                found = self._by_minibatches(term, B, generator, n_counted, on_iteration, state)
            else:
                found = lbfgs_rounds(
                    partial(self._loss, term),
                    B,
                    look_up=partial(self._look_up, term),
                    max_iter=MAX_ITER if self.max_iter == "auto" else self.max_iter,
                    tol=self.tol,
                    on_iteration=on_iteration,
                )
            best = found if best is None or found.value < best.value else best
            if found.ended_early:
                best = replace(best, status=found.status)
                break
        assert best is not None
        if state and hasattr(self, "loss_curve_"):
            curve = [*self.loss_curve_, *best.curve[1:]]
            best = replace(best, curve=curve, n_iter=self.n_iter_ + best.n_iter)
        cost = penalty(best.x, self.alpha, n_counted)[0]
        self.objective_ = term.sign * (best.value - cost)
        self.objective_error_ = best.error
        self.perplexity_ = perplexity(rows.nearest_squares(best.x))
        self.search_, self.search_recall_ = term.search.name, term.search.recall
        self._sgd_state = None
        if best.memory:
            self._sgd_state = SGDState.of(best.x, best.memory, rows, n_counted)
        return self._set_map(best, rows, dtype, task)

    def _check_descent(self) -> int | None:
        """Raise an error if a parameter of the descent is invalid.

        Returns the maximum number of iterations, or None if it depends on n.
        """
        check_number(self.alpha, "alpha", 0)
        check_choice(self.solver, "solver", ("lbfgs", "sgd"))
        for name in ("n_candidates", "batch_size", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(value, name, ("auto",))
            elif value is not None or name != "n_candidates":
                check_integer(value, name, 1)
        check_number(self.tol, "tol", 0)
        n_init = check_integer(self.n_init, "n_init", 1)
        if self.max_iter == "auto":
            return n_init * MAX_ITER if self.solver == "lbfgs" else None
        return n_init * int(self.max_iter)

    def _rows(self, X: Any, m: int | None = None) -> UnitRows | RowsInPlace:
        """Return the rows of X for a map to m dimensions.

        Stochastic descent copies at most 10,000 of them.
        """
        is_large = self.solver == "sgd" and X.shape[0] > INIT_ROWS
        return RowsInPlace.of(X) if is_large else UnitRows.of(X, m)

    def _loss(self, term: Any, B: np.ndarray, neighbors: Any) -> Value:
        """Return the term plus the penalty and its gradient, for given candidates or all rows."""
        value, gradient = term(B, neighbors)
        cost, slope = penalty(B, self.alpha, term.rows.shape[0])
        return value + cost, gradient + slope

    def _look_up(self, term: Any, B: np.ndarray) -> Any:
        """Return the candidates of all rows under a map, or None if all rows are candidates."""
        n = term.rows.shape[0]
        k = self._n_near(n, None if n <= ALL_PAIRS_ROWS else N_NEAR)
        return None if k is None else term.rows.candidates(B, k, term.codes, term.search)

    def _n_near(self, n: int, by_default: int | None) -> int | None:
        """Return the number of near candidates per row, or None if all rows are candidates."""
        k = by_default if self.n_candidates == "auto" else self.n_candidates
        return None if k is None else min(k, n - 1)

    def _epochs(self, n: int) -> tuple[int, int]:
        """Return the steps per epoch and the number of epochs.

        Every row is an anchor once per epoch. With max_iter="auto" there are as many epochs as 500
        steps need.
        """
        size = self.batch_size
        if size == "auto":
            size = min(max(FEWEST, n // BATCHES), MOST)
        n_batches = -(-n // size)
        return n_batches, -(-STEPS // n_batches) if self.max_iter == "auto" else self.max_iter

    def _by_minibatches(
        self,
        term: Any,
        init: np.ndarray,
        rng: np.random.Generator,
        n_counted: int,
        on_iteration: OnIteration,
        state: SGDState | None,
    ) -> DescentResult:
        """Descend by shrinking steps, then evaluate the last map.

        A fit shrinks its steps to zero. An epoch from a state shrinks them as 1 / sqrt(t), since
        more rows may follow. The penalty counts `n_counted` rows, including those of the state. A
        step uses one part of the anchors, which are shuffled in every epoch, and its own far rows.
        Near rows are searched under the first map and again after a fifth of the steps, and only
        for anchors still to come.
        """
        rows, n = term.rows, term.rows.shape[0]
        n_batches, n_epochs = self._epochs(n)
        memory, refresh_at = None, round(REFRESH_SHARE * n_epochs * n_batches)
        if state is not None:
            memory, n_epochs, refresh_at = state.memory, 1, 0
        n_before = 0 if memory is None else memory.n_steps
        # the second factor is the norm of a map that preserves distances
        length = STEP * len(init) ** 0.5

        def step(t: int) -> float:
            if state is None:
                return length * (1 - t / (n_epochs * n_batches))
            return length / (1 + (n_before + t) / SLOWING) ** 0.5

        k = self._n_near(n, N_NEAR_OF_ANCHOR)
        order, near, far = np.arange(n), np.empty((n, 0), np.int32), np.arange(n)

        def anchors_of(first: int, last: int) -> np.ndarray:
            """Return the anchors of batches of this epoch, or all rows if they go beyond it."""
            return (
                order[first * n // n_batches : last * n // n_batches]
                if last <= n_batches
                else order
            )

        def near_of(anchors: np.ndarray, B: np.ndarray, k: int) -> np.ndarray:
            """Return the k rows near each anchor, in an array of n rows."""
            found = near_rows(rows.embedding(B), k, term.codes, term.search, anchors)
            near = np.empty((n, found.shape[1]), found.dtype)
            near[anchors] = found
            return near

        def estimate(B: np.ndarray, t: int) -> Value:
            nonlocal order, near, far
            batch = t % n_batches
            if batch == 0:
                order = rng.permutation(n)
            if k is not None:
                if t in (0, refresh_at):
                    end = refresh_at if t < refresh_at else n_epochs * n_batches
                    near = near_of(anchors_of(batch, batch + end - t), B, k)
                far = rng.choice(n, min(N_FAR, n), replace=False, shuffle=False)
            anchors = anchors_of(batch, batch + 1)
            candidates = Candidates.of_anchors(anchors, near[anchors], far, n)
            value, gradient = term.estimate(B, candidates, n_batches)
            cost, slope = penalty(B, self.alpha, n_counted)
            return value + cost, gradient + slope

        found = adam(
            estimate,
            init,
            n_batches=n_batches,
            max_iter=n_epochs,
            tol=self.tol,
            step=step,
            memory=memory,
            on_iteration=on_iteration,
        )
        value, error = self._evaluate(term, found.x, n_counted)
        found = replace(found, value=value, error=error)
        one_epoch = state is not None and not found.ended_early  # of `partial_fit`, completed
        return replace(found, status=Status.CONVERGED) if one_epoch else found

    def _evaluate(self, term: Any, B: np.ndarray, n_counted: int) -> tuple[float, float]:
        """Return the loss at a map and the standard error of this estimate.

        The loss is the mean over at most 5,000 anchors, the same for all maps. Each has at least
        its 50 nearest rows under this map, found exactly, and 2,000 far ones. The error is computed
        from the means of 20 groups of anchors and is 0 if all rows are anchors.
        """
        n, Z, rng = term.rows.shape[0], term.rows.embedding(B), np.random.default_rng(0)
        anchors = rng.permutation(n)[:EVALUATION_ROWS]
        near, far = np.empty((len(anchors), 0), np.int32), np.arange(n)
        k = self._n_near(n, N_NEAR_OF_ANCHOR)
        if k is not None:
            far = rng.choice(n, min(EVALUATION_FAR, n), replace=False)
            near = near_rows(Z, min(max(k, N_NEAR), n - 1), term.codes, anchors=anchors)
        groups = np.array_split(np.arange(len(anchors)), min(EVALUATION_GROUPS, len(anchors)))
        sums = [term.sum(Z, Candidates.of_anchors(anchors[i], near[i], far, n)) for i in groups]
        counts = np.ones(n) if term.row_weights is None else term.row_weights
        sizes = np.array([counts[anchors[group]].sum() for group in groups])
        mean = float(np.sum(sums) / sizes.sum())
        errors = (sums - mean * sizes) / sizes.mean()  # of a ratio of two sums, linearized
        error = float(np.std(errors, ddof=1) / len(errors) ** 0.5) * (1 - len(anchors) / n) ** 0.5
        value, error = term.of_mean(Z, mean, error)
        return value + penalty(B, self.alpha, n_counted)[0], error
