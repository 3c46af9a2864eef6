"""Which neighbours are right: rows of the same class, or rows of similar targets.

A pair of rows has a weight w_ij >= 0, and row i is labelled right with probability `q_i = sum_j w_ij p_ij`. Objectives
use `log w_ij`, for many pairs at a time, and take the rows in an order in which few columns hold all pairs of a block
of rows: class by class.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from .._blocks import row_blocks

NORMAL_IQR = 1.349  # interquartile range of a normal distribution, in standard deviations
NO_MATCH = 69.0  # weights below exp(-69), 1e-30, change no sum: they count as 0


@dataclass(frozen=True, eq=False)
class SameClass:
    """w_ij = 1 for rows of the same class, else 0.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The class of every row as a number 0, 1, ...
    """

    codes: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """Return the rows class by class: the order in which `tiles` counts them."""
        return np.argsort(self.codes, kind="stable")

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return blocks of about `height` rows, of one class or some small ones, and the columns of these classes."""
        tiles: list[tuple[slice, slice]] = []
        start = 0
        ends = np.cumsum(np.bincount(self.codes))
        for end in ends:
            if end - start >= height or end == ends[-1]:
                cuts = np.linspace(start, end, -(-(end - start) // height) + 1).astype(int)
                tiles += [(slice(*rows), slice(start, int(end))) for rows in pairwise(cuts)]
                start = int(end)
        return [tile for tile in tiles if tile[0].start < tile[0].stop]

    def log_weights(self, i: np.ndarray, j: np.ndarray, dtype: Any) -> np.ndarray | None:
        """Return log w_ij for rows i and j, which are broadcast; None stands for zeros."""
        a, b = self.codes[i], self.codes[j]
        if (a == a.flat[0]).all() and (b == a.flat[0]).all():
            return None
        return np.where(a == b, 0.0, -np.inf).astype(dtype)

    def subset(self, rows: Any) -> SameClass:
        """Return the weights between some rows, numbered in their order."""
        return SameClass(self.codes[rows])


@dataclass(frozen=True, eq=False)
class TargetKernel:
    """`w_ij = exp(-(y_i - y_j)^2 / (2 h^2))` for real-valued targets; 0 beyond 11.7 h, where it is below 1e-30.

    So a target that lies far from all others is what a row alone in its class is: no neighbour is right.

    Parameters
    ----------
    targets : ndarray of shape (n,)
    bandwidth : float
        h > 0, in units of the target.
    """

    targets: np.ndarray
    bandwidth: float
    codes: ClassVar[None] = None  # there are no classes

    @property
    def order(self) -> np.ndarray:
        """Return the rows as they are."""
        return np.arange(len(self.targets))

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return blocks of rows, each with all columns."""
        n = len(self.targets)
        return [(rows, slice(0, n)) for rows in row_blocks(n, 1, height)]

    def log_weights(self, i: np.ndarray, j: np.ndarray, dtype: Any) -> np.ndarray:
        """Return -(y_i - y_j)^2 / (2 h^2), or -inf."""
        y = (self.targets / (self.bandwidth * 2**0.5)).astype(dtype)
        with np.errstate(over="ignore"):
            difference = y[i] - y[j]
            difference *= difference
        difference[difference > NO_MATCH] = np.inf
        return np.negative(difference, out=difference)

    def subset(self, rows: Any) -> TargetKernel:
        """Return the targets of some rows; the bandwidth stays."""
        return TargetKernel(self.targets[rows], self.bandwidth)


@dataclass(frozen=True, eq=False)
class GivenPairs:
    """w_ab for the pairs of a list, which add up to 1, else 0 (eq. 8).

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Rows a and b.
    weights : ndarray of shape (n_pairs,)
    """

    pairs: np.ndarray
    weights: np.ndarray
    codes: ClassVar[None] = None  # there are no classes


PairWeights = SameClass | TargetKernel


def target_bandwidth(targets: np.ndarray) -> float:
    """Return h, a quarter of the targets' standard deviation by their interquartile range, IQR / 1.349.

    A quarter of the targets may be outliers, of any size. Where half of the targets are equal, so that the range is 0,
    it is that of the distinct ones.
    """
    first, third = np.quantile(targets, [0.25, 0.75])
    if first == third:
        first, third = np.quantile(np.unique(targets), [0.25, 0.75])
    return float(third - first) / NORMAL_IQR / 4
