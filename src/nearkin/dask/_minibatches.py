"""NCA by stochastic gradient on a cluster: the steps of `nearkin.estimators._minibatches`, on rows that are spread.

A step sees some anchors and their candidates, however many rows there are: there is nothing in it to spread. What grows
with the rows is done where they are: the look-up of candidates, whose lists stay with the blocks, and the search that
judges a map. The rows that the next few steps need come together on one worker. They do not depend on the map; so only
this travels there in every step, and the gradient back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future

from .._parallel import Value
from ..estimators._criterion import Criterion
from ..estimators._descending import penalized
from ..estimators._minibatches import FAR, GROUPS, JUDGED_FAR, JUDGED_NEAR, JUDGES, Minibatches
from ..objectives.pair_weights import SameClass
from ..objectives.stochastic import Candidates
from ._search import Lists, everywhere, nearest_first, with_found
from ._table import AskedRows, Rows
from ._work import Sized, Work

if TYPE_CHECKING:
    from .nca import Problem

TOGETHER = 2**24  # numbers of the rows that come together at a time


@dataclass(frozen=True, eq=False)
class SpreadMinibatches(Minibatches):
    """Minibatches of rows on a cluster, of which `rows` says only how many there are, and `matches` nothing.

    What is drawn is what would be drawn for rows in one place, and so every step is the same to rounding.

    Attributes
    ----------
    problem : Problem
    """

    problem: Problem

    @classmethod
    def spread(cls, problem: Problem, size: int | str, rng: Any) -> SpreadMinibatches:
        """Return the minibatches of a problem."""
        n: Any = range(problem.table.shape[0])
        counted = Minibatches.of(n, None, problem.criterion, len(n), size, rng)  # type: ignore[arg-type]
        return cls(**vars(counted), problem=problem)

    def _estimates(self, refresh_at: int = 0) -> Callable[[np.ndarray, int], tuple[float, np.ndarray]]:
        work, table = self.problem.work, self.problem.table
        draws, near = self._draws(refresh_at), list[Future]()
        steps: Iterator[tuple[Future, int]] = iter(())

        def estimate(B: np.ndarray, t: int) -> tuple[float, np.ndarray]:
            nonlocal near, steps
            if t in (0, refresh_at):
                near, steps = self.problem.near_rows(B, self.n_near or 0), iter(())
            step = next(steps, None)
            if step is None:
                drawn = [next(draws) for _ in range(self._n_together(t, refresh_at))]
                anchors, far = zip(*drawn, strict=True)
                together = come_together(work, table.rows, anchors, listed(work, near, table.starts, anchors), far)
                steps = iter([(together, number) for number in range(len(drawn))])
                step = next(steps)
            found = work.submit(value_of_batch, *step, A=B, criterion=self.criterion, n_rows=table.shape[0])
            value, gradient = work.results([found])[0]
            share = self.n_batches / len(self.rows)
            return penalized(-share * value, -share * gradient, B, self.criterion.alpha, self.n_counted)

        return estimate

    def _draws(self, refresh_at: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield anchors and far rows of one step after the other, as those of one machine are drawn."""
        n, order = len(self.rows), np.arange(len(self.rows))
        for t in count():
            batch = t % self.n_batches
            if batch == 0:
                order = self.rng.permutation(n)
            if t in (0, refresh_at):
                self._far()  # those that belong to the lists, of which a step makes no use
            yield order[batch * n // self.n_batches : (batch + 1) * n // self.n_batches], self._far()

    def _n_together(self, t: int, refresh_at: int) -> int:
        """Return for how many steps from t on rows come together: until the epoch ends, or lists are looked up."""
        n, p = self.problem.table.shape
        rows_of_step = min(n, self.size * (1 + (self.n_near or 0)) + FAR)
        ends = [self.n_batches - t % self.n_batches, max(1, TOGETHER // (rows_of_step * p))]
        return min(ends + [refresh_at - t] * (t < refresh_at))

    def judged(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss at a map and the standard error of this estimate, as on one machine."""
        work, (n, _), rng = self.problem.work, self.problem.table.shape, np.random.default_rng(0)
        Z = self.problem.in_embedding(B).rows
        anchors = rng.permutation(n)[:JUDGES]
        far = rng.choice(n, min(JUDGED_FAR, n), replace=False)
        near = self._near_anchors(Z, anchors)
        groups = np.array_split(np.arange(len(anchors)), min(GROUPS, len(anchors)))
        of_groups = work.submit(split_lists, near, [len(group) for group in groups])
        together = come_together(work, Z, [anchors[group] for group in groups], of_groups, [far] * len(groups))
        how = {"A": np.ones(len(B)), "criterion": self.criterion, "n_rows": n}
        totals = work.results(work.map(value_of_batch, [together] * len(groups), range(len(groups)), **how))
        sizes = [len(group) for group in groups]
        means = [value / size for (value, _), size in zip(totals, sizes, strict=True)]
        error = float(np.std(means, ddof=1) / len(means) ** 0.5) * (1 - len(anchors) / n) ** 0.5
        value = -float(np.average(means, weights=sizes))
        return penalized(value, B, B, self.criterion.alpha, self.n_counted)[0], error

    def _near_anchors(self, Z: list[Future], anchors: np.ndarray) -> Future:
        """Return the nearest rows of some anchors, for g also of the nearest kin, by an exact search among all."""
        work, n = self.problem.work, self.problem.table.shape[0]
        k = min(max(self.n_near or 0, JUDGED_NEAR), n - 1)
        asked = work.submit(asked_rows, work.map(rows_of, Z, anchors=anchors), anchors)

        def nearest(asked: Future, rows: list[Future], k: int) -> Future:
            return work.sum(work.map(nearest_in, [asked] * len(rows), rows, k=k), add=partial(nearest_of, k=k))

        near = nearest(work.submit(of_one_class, asked), work.map(of_one_class, Z), k)
        of_kin = nearest(asked, Z, 1) if self.criterion.objective == "log_likelihood" else None
        return work.submit(near_numbers, near, of_kin, anchors)


@dataclass(frozen=True)
class Together(Sized):
    """The rows that some steps need, and who looks at whom among them, by their places here.

    Attributes
    ----------
    rows : Rows
    steps : list of (anchors, near, far)
        Integer arrays of shape (b,), (b, k) and (s,).
    """

    rows: Rows
    steps: list[tuple[np.ndarray, ...]]


def listed(work: Work, near: list[Future], starts: list[int], anchors: Sequence[np.ndarray]) -> Future:
    """Return the near rows of the anchors of some steps, from the blocks that have them."""
    wanted = np.concatenate(anchors)
    return work.submit(listed_near, work.map(near_of, near, starts[:-1], anchors=wanted), [len(a) for a in anchors])


def come_together(
    work: Work, rows: list[Future], anchors: Sequence[np.ndarray], near: Future, far: Sequence[np.ndarray]
) -> Future:
    """Return what some steps need, on one worker, a future of Together."""
    needed = work.submit(needed_rows, list(anchors), near, list(far))
    taken = work.map(taken_rows, rows, [needed] * len(rows))
    return work.submit(placed, taken, needed, list(anchors), near, list(far))


# Tasks.


def of_one_class(rows: Rows) -> Rows:
    """Return a block without its classes: everybody is kin."""
    return replace(rows, codes=np.zeros_like(rows.codes))


def inside(numbers: np.ndarray, start: int, size: int) -> np.ndarray:
    """Return which of some numbers are those of rows of a block."""
    return np.flatnonzero((numbers >= start) & (numbers < start + size))


def near_of(near: np.ndarray, start: int, *, anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the anchors are in a block, and their near rows."""
    here = inside(anchors, start, len(near))
    return here, near[anchors[here] - start]


def listed_near(parts: list[tuple[np.ndarray, np.ndarray]], sizes: list[int]) -> list[np.ndarray]:
    """Return the near rows of the anchors of every step, in their order."""
    places, near = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return split_lists(near[np.argsort(places)], sizes)


def split_lists(near: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Return the near rows of one group of anchors after the other."""
    return np.split(near, np.cumsum(sizes)[:-1])


def needed_rows(anchors: list[np.ndarray], near: list[np.ndarray], far: list[np.ndarray]) -> np.ndarray:
    """Return the numbers of all rows that some steps need, ascending."""
    return np.unique(np.concatenate([*anchors, *(rows.ravel() for rows in near), *far]))


def taken_rows(rows: Rows, needed: np.ndarray) -> Rows:
    """Return the rows of a block that are needed."""
    chosen = needed[inside(needed, rows.start, len(rows.X))] - rows.start
    return Rows(rows.X[chosen], rows.codes[chosen], rows.start)


def placed(
    taken: list[Rows], needed: np.ndarray, anchors: list[np.ndarray], near: list[np.ndarray], far: list[np.ndarray]
) -> Together:
    """Return the rows of some steps, and the steps in terms of them."""
    rows = Rows(np.concatenate([part.X for part in taken]), np.concatenate([part.codes for part in taken]), 0)
    steps = [tuple(np.searchsorted(needed, part) for part in step) for step in zip(anchors, near, far, strict=True)]
    return Together(rows, steps)


def value_of_batch(together: Together, step: int, *, A: np.ndarray, criterion: Criterion, n_rows: int) -> Value:
    """Return what the anchors of a step add to f or g, and to its gradient."""
    anchors, near, far = together.steps[step]
    chosen, candidates = Candidates.listed(anchors, near, far, len(together.rows.X))
    X, codes = together.rows.X[chosen], together.rows.codes[chosen]
    return criterion.value(A, X, SameClass(codes), replace(candidates, n_rows=n_rows))


def rows_of(rows: Rows, *, anchors: np.ndarray) -> tuple[np.ndarray, Rows]:
    """Return which of the anchors are in a block, and their rows."""
    here = inside(anchors, rows.start, len(rows.X))
    chosen = anchors[here] - rows.start
    return here, Rows(rows.X[chosen], rows.codes[chosen], rows.start)


def asked_rows(parts: list[tuple[np.ndarray, Rows]], anchors: np.ndarray) -> AskedRows:
    """Return the rows of the anchors, in their order."""
    places, rows = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(places))
    X, codes = np.concatenate([part.X for part in rows]), np.concatenate([part.codes for part in rows])
    return AskedRows(X[order], codes[order], -1, anchors)


def nearest_in(asked: AskedRows, rows: Rows, *, k: int) -> Lists:
    """Return the k nearest rows of the same class that some rows have in a block."""
    each = np.full(len(asked.X), k)
    return with_found(None, asked, rows, "kin", each, everywhere(asked, rows, "kin", each))


def nearest_of(parts: list[Lists], *, k: int) -> Lists:
    """Return the k nearest of all."""
    return nearest_first(
        np.hstack([part.neighbors for part in parts]), np.hstack([part.distances for part in parts]), k
    )


def near_numbers(near: Lists, of_kin: Lists | None, own: Any) -> np.ndarray:
    """Return the neighbours of some rows, and beside them the nearest of kin; the row itself where that adds nothing.

    `own` are their numbers, or the number of the first.
    """
    own = own if np.ndim(own) else own + np.arange(len(near.neighbors))
    if of_kin is None:
        return near.neighbors
    nearest_kin = of_kin.neighbors.max(axis=1, initial=-1)
    known = (nearest_kin < 0) | (near.neighbors == nearest_kin[:, None]).any(axis=1)
    return np.column_stack([near.neighbors, np.where(known, own, nearest_kin)])
