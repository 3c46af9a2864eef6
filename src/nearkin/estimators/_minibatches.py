"""NCA by stochastic gradient: a step sees some anchors, their candidates and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._parallel import in_threads
from ..descent import DescentResult, Momentum, adam
from ..objectives.nca import embed
from ..objectives.pair_weights import PairWeights, TargetKernel
from ..objectives.stochastic import Candidates
from ..scatter import RowSpace, row_space
from . import _starts
from ._candidates import near_rows, near_rows_of
from ._criterion import Criterion
from ._descending import EXACT_PRECISION, Scale, UnitRows, cap_penalty, penalized

BATCHES, FEWEST, MOST = 20, 128, 512  # of an epoch by default, of this many anchors each
STEPS = 500  # of a fit by default, at least
NEAR = 15  # candidates in the lists of "auto", fewer than L-BFGS needs: what they lack, the next far ones bring
FAR = 500
STEP = 0.1  # first length of a step, in units of a map that keeps distances
SLOWING = 100  # steps after which those of `partial_fit` begin to shrink
REFRESH = 0.2  # share of the steps after which the lists are looked up again: a map moves most at the beginning
BLOCK = 2**19  # numbers of a block of rows, which is copied twice or thrice
ASKED = 200  # rows that tell the unit of many: each is compared with all
FEW = 10_000  # rows that a start is found on
JUDGES, JUDGED_NEAR, JUDGED_FAR, GROUPS = 5000, 50, 2000, 20  # for the estimate of the final objective


@dataclass(frozen=True)
class RowsInPlace(Scale):
    """Rows that stay where they are, in memory or in a file: what is asked for is copied, centred, and no more.

    A map takes them in units of the typical distance of neighbours, as `UnitRows`.

    Attributes
    ----------
    X : array of shape (n, r), or sparse matrix
        The rows as they came, in float32 or float64.
    mean : ndarray of shape (r,), or None
        None for sparse rows and for rows that have been centred.
    scale : float
        What the numbers in X are still to be divided by; the unit, or 1.
    dtype : type
        float64 for up to 2,000 rows, float32 beyond.
    """

    X: Any
    mean: np.ndarray | None
    scale: float
    dtype: Any

    @classmethod
    def of(cls, X: Any, unit: float, *, within_span: bool = False) -> RowsInPlace:
        """Return rows whose typical distance is known; with `within_span`, for p > n, in coordinates of their span."""
        space = row_space(X) if within_span and X.shape[1] > X.shape[0] else RowSpace(X, None)
        X = space.coordinates
        mean = None if issparse(X) else X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        return cls(unit, space, X, mean, unit, np.float64 if X.shape[0] <= EXACT_PRECISION else np.float32)

    @classmethod
    def of_units(cls, rows: UnitRows) -> RowsInPlace:
        """Return rows that have been copied, centred and scaled already."""
        return cls(rows.unit, rows.space, rows.X, None, 1.0, rows.X.dtype)

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, rows: Any) -> Any:
        """Return some rows, yet to be divided by `scale`."""
        X = self.X[rows]
        if self.mean is not None:
            X = X - self.mean
        return X.astype(self.dtype, copy=False)

    def embedded(self, B: np.ndarray) -> np.ndarray:
        """Return all rows under a map, shape (n, m), about their mean."""
        A = (B / self.scale).astype(self.dtype)
        if self.mean is None:
            return embed(A, self.X)
        Z = np.empty((len(self), len(A)), self.dtype)

        def part(blocks: Sequence[slice]) -> tuple[float, float]:
            for rows in blocks:
                X = self.take(rows)
                Z[rows] = X * A if A.ndim == 1 else X @ A.T
            return 0.0, 0.0

        in_threads(part, row_blocks(len(self), self.X.shape[1], BLOCK), self.X.size)
        Z -= Z.mean(axis=0, dtype=np.float64).astype(self.dtype)
        return Z


@dataclass(frozen=True, eq=False)
class Minibatches:
    """NCA's loss by one part of the anchors after another, each with candidates of its own.

    Attributes
    ----------
    rows : RowsInPlace
    matches : Matches
    criterion : Criterion
    n_counted : int
        Rows that the penalty counts.
    size : int
        Anchors of a step, at most.
    n_near : int or None
        Length of the lists of near candidates; None makes every other row a candidate.
    rng : Generator
    """

    rows: RowsInPlace
    matches: PairWeights
    criterion: Criterion
    n_counted: int
    size: int
    n_near: int | None
    rng: np.random.Generator

    @classmethod
    def of(
        cls, rows: RowsInPlace, matches: PairWeights, criterion: Criterion, n_counted: int, size: int | str, rng: Any
    ) -> Minibatches:
        """Return the minibatches of some rows, with "auto" replaced by what it means."""
        k = criterion.n_candidates
        n_near = k if k is None else min(NEAR if isinstance(k, str) else k, len(rows) - 1)
        size = min(max(FEWEST, len(rows) // BATCHES), MOST) if isinstance(size, str) else size
        return cls(rows, matches, criterion, n_counted, size, n_near, np.random.default_rng(rng.randint(2**31)))

    @property
    def n_batches(self) -> int:
        """Steps of an epoch, in which every row is an anchor once."""
        return -(-len(self.rows) // self.size)

    def epochs(self, max_iter: int | str) -> int:
        """Return `max_iter`, for "auto" as many epochs as it takes for 500 steps."""
        return -(-STEPS // self.n_batches) if max_iter == "auto" else int(max_iter)

    def loss(
        self, B: np.ndarray, anchors: np.ndarray, table: Candidates, far: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient as some anchors tell them.

        For one table, what the batches of an epoch tell has the loss and the gradient of all anchors for its mean.
        """
        rows, candidates = table.of(anchors, far)
        X, matches, scale = self.rows.take(rows), self.matches.among(rows), self.rows.scale
        value, gradient = self.criterion.value(B / scale, X, matches, candidates)
        share = self.n_batches / len(self.rows)
        return penalized(-share * value, -share / scale * gradient, B, self.criterion.alpha, self.n_counted)

    def descend(
        self, start: np.ndarray, *, max_iter: int | str, tol: float, on_iteration: Callable[[np.ndarray], bool]
    ) -> DescentResult:
        """Descend from `start` by steps that shrink to nothing, and judge where they have led."""
        n_epochs = self.epochs(max_iter)
        n_steps = n_epochs * self.n_batches
        found = adam(
            self._estimates(refresh_at=round(REFRESH * n_steps)),
            start,
            n_batches=self.n_batches,
            max_iter=n_epochs,
            tol=tol,
            step=lambda t: STEP * _isometry(start) * (1 - t / n_steps),
            on_iteration=on_iteration,
        )
        return self._with_judgement(found)

    def go_on(
        self, B: np.ndarray, memory: Momentum | None, on_iteration: Callable[[np.ndarray], bool]
    ) -> DescentResult:
        """Take the steps of one epoch from where a descent is, and judge where they have led."""
        done = 0 if memory is None else memory.n_steps
        found = adam(
            self._estimates(),
            B,
            n_batches=self.n_batches,
            max_iter=1,
            tol=0.0,
            step=lambda t: STEP * _isometry(B) / (1 + (done + t) / SLOWING) ** 0.5,
            memory=memory,
            on_iteration=on_iteration,
        )
        return self._with_judgement(found)

    def _with_judgement(self, found: DescentResult) -> DescentResult:
        value, error = self.judged(found.x)
        return replace(found, value=value, error=error)

    def _estimates(self, refresh_at: int = 0) -> Callable[[np.ndarray, int], tuple[float, np.ndarray]]:
        """Return the loss as step t tells it: by its part of the anchors, drawn anew in every epoch, and its far rows.

        The lists of near rows are those of the first map, then those of the map at step `refresh_at`.
        """
        n = len(self.rows)
        order, table = np.arange(n), None

        def estimate(B: np.ndarray, t: int) -> tuple[float, np.ndarray]:
            nonlocal order, table
            batch = t % self.n_batches
            if batch == 0:
                order = self.rng.permutation(n)
            if table is None or t == refresh_at:
                table = self.look_up(B)
            anchors = order[batch * n // self.n_batches : (batch + 1) * n // self.n_batches]
            return self.loss(B, anchors, table, None if self.n_near is None else self._far())

        return estimate

    def look_up(self, B: np.ndarray) -> Candidates:
        """Return the candidates of all rows under a map."""
        n = len(self.rows)
        if self.n_near is None:
            return Candidates(np.empty((n, 0), np.int32), np.arange(n))
        kin, search = self.criterion.kin(self.matches), self.criterion.search
        return Candidates(near_rows(self.rows.embedded(B), self.n_near, kin, search), self._far())

    def _far(self) -> np.ndarray:
        n = len(self.rows)
        return self.rng.choice(n, min(FAR, n), replace=False, shuffle=False)

    def judged(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss at a map and the standard error of this estimate.

        Of at most 5,000 anchors, each with the 50 rows that are the nearest at this very map, and 2,000 far ones. The
        anchors of all maps are the same; the error is told by the means of 20 groups of them, and is 0 for all rows.
        """
        n, rng = len(self.rows), np.random.default_rng(0)
        Z = self.rows.embedded(B)
        anchors = rng.permutation(n)[:JUDGES]
        far = rng.choice(n, min(JUDGED_FAR, n), replace=False)
        if self.n_near is None:
            near, far = np.empty((len(anchors), 0), np.int32), np.arange(n)
        else:
            near = near_rows_of(anchors, Z, min(max(self.n_near, JUDGED_NEAR), n - 1), self.criterion.kin(self.matches))
        means, sizes = [], []
        for group in np.array_split(np.arange(len(anchors)), min(GROUPS, len(anchors))):
            rows, candidates = Candidates.listed(anchors[group], near[group], far, n)
            total = self.criterion.value(np.ones(Z.shape[1]), Z[rows], self.matches.among(rows), candidates)[0]
            means.append(total / len(group))
            sizes.append(len(group))
        value = -float(np.average(means, weights=sizes))
        error = float(np.std(means, ddof=1) / len(means) ** 0.5) * (1 - len(anchors) / n) ** 0.5
        return penalized(value, B, B, self.criterion.alpha, self.n_counted)[0], error


def _isometry(B: np.ndarray) -> float:
    """Return the norm of a map of the shape of B that keeps distances as far as its dimensions allow."""
    return float(len(B)) ** 0.5


def in_place(
    X: Any, matches: PairWeights, criterion: Criterion, m: int, rng: np.random.RandomState, *, within_span: bool
) -> tuple[RowsInPlace, Callable[[str], np.ndarray]]:
    """Return rows as minibatches take them, and the function that finds a start by its name: on at most 10,000 rows.

    What has been found on a part of the rows is scaled again for all: in a dense crowd neighbours are nearer.
    """
    n = X.shape[0]
    chosen = np.arange(n) if n <= FEW else np.sort(rng.choice(n, FEW, replace=False))
    few = UnitRows.of(X if n <= FEW else X[chosen], within_span=within_span)
    of_few = partial(criterion.start, rows=few, matches=matches.among(chosen), m=m, rng=rng)
    if n <= FEW:
        return RowsInPlace.of_units(few), of_few
    rows = RowsInPlace.of(X, _starts.unit_distance(X, ASKED), within_span=within_span)

    def start(name: str) -> np.ndarray:
        B = of_few(name)
        B = B if B.ndim == 1 else rows.coordinates_of(few.components(B, np.float64))
        return cap_penalty(B / _starts.unit_distance(rows.embedded(B)), criterion.alpha, n)

    return rows, start


@dataclass(frozen=True, eq=False)
class SGDState:
    """A stochastic descent that may go on with other rows.

    Attributes
    ----------
    B : ndarray of shape (m, p), or (p,)
        The map, of features in units of the typical distance; its rows have the signs that those of the memory have.
    memory : Momentum or None
    unit : float
        The typical distance, that of the rows that it began with.
    n_counted : int
        Rows so far.
    bandwidth : float or None
        Of targets, that of the rows that it began with.
    """

    B: np.ndarray
    memory: Momentum | None
    unit: float
    n_counted: int
    bandwidth: float | None

    @classmethod
    def begun(cls, B: np.ndarray, rows: RowsInPlace, matches: PairWeights) -> SGDState:
        """Return a descent that has its start, but has not taken a step."""
        return cls(B, None, rows.unit, 0, matches.bandwidth if isinstance(matches, TargetKernel) else None)

    @classmethod
    def after(cls, found: DescentResult, rows: RowsInPlace, matches: PairWeights, n_counted: int) -> SGDState:
        """Return where a descent has led, in the features."""

        def lifted(B: np.ndarray) -> np.ndarray:
            return B if rows.space.to_features is None else rows.space.to_features(B.T).T

        assert found.memory is not None
        memory = replace(found.memory, mean=lifted(found.memory.mean))
        return replace(cls.begun(lifted(found.x), rows, matches), memory=memory, n_counted=n_counted)

    def measured(self, matches: Any) -> PairWeights:
        """Return the matches of other rows, by the same measure."""
        return matches if self.bandwidth is None else replace(matches, bandwidth=self.bandwidth)
