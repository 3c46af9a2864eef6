"""Which neighbours are right: rows of the same class, or rows of similar targets.

A match is a weight w_ij >= 0, and a row's chance of being right is `q_i = sum_j w_ij p_ij`. It is asked for as
`log w_ij`, for many pairs at a time. Rows come in an order that lets the matches of a block of rows be found in a few
columns: classes one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from .._blocks import namespace, row_blocks


class PairWeights(Protocol):
    """What an objective must know about right neighbours.

    Attributes
    ----------
    order : ndarray of shape (n,)
        The rows as blocks take them.
    """

    @property
    def order(self) -> np.ndarray:
        """Return the rows in the order in which blocks take them."""

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return blocks of about `height` rows and the columns that hold all their matches, as positions in `order`."""

    def log_weights(self, i: Any, j: Any, like: Any) -> Any:
        """Return log w_ij for arrays of rows i and j that broadcast, in the library and type of `like`; None for 0."""

    def among(self, rows: np.ndarray) -> PairWeights:
        """Return the matches of some rows, numbered in their order."""


@dataclass(frozen=True, eq=False)
class SameClass:
    """Rows of the same class match: w_ij = 1, else 0.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The class of every row as a number 0, 1, ...
    """

    codes: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """Return the rows class by class."""
        return np.argsort(self.codes, kind="stable")

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return parts of one class, or of several small ones, with all rows of these classes as columns."""
        tiles: list[tuple[slice, slice]] = []
        start = 0
        ends = np.cumsum(np.bincount(self.codes))
        for end in ends:
            if end - start >= height or end == ends[-1]:
                cuts = np.linspace(start, end, -(-(end - start) // height) + 1).astype(int)
                tiles += [(slice(*rows), slice(start, int(end))) for rows in pairwise(cuts)]
                start = int(end)
        return [tile for tile in tiles if tile[0].start < tile[0].stop]

    def log_weights(self, i: Any, j: Any, like: Any) -> Any:
        """Return 0 for rows of a class and -inf for others; None where all are of one class."""
        a, b = self.codes[i], self.codes[j]
        if (a == a.flat[0]).all() and (b == a.flat[0]).all():
            return None
        return namespace(like).asarray(np.where(a == b, 0.0, -np.inf), dtype=like.dtype, device=like.device)

    def among(self, rows: np.ndarray) -> SameClass:
        """Return the classes of some rows."""
        return SameClass(self.codes[rows])


@dataclass(frozen=True, eq=False)
class TargetKernel:
    """Rows match as far as their real-valued targets agree: `w_ij = exp(-(y_i - y_j)^2 / (2 h^2))`.

    Parameters
    ----------
    targets : ndarray of shape (n,)
    bandwidth : float
        h > 0, in units of the target.
    """

    targets: np.ndarray
    bandwidth: float

    @property
    def order(self) -> np.ndarray:
        """Return the rows as they are."""
        return np.arange(len(self.targets))

    def tiles(self, height: int) -> list[tuple[slice, slice]]:
        """Return blocks of rows, each with all columns."""
        n = len(self.targets)
        return [(rows, slice(0, n)) for rows in row_blocks(n, 1, height)]

    def log_weights(self, i: Any, j: Any, like: Any) -> Any:
        """Return -(y_i - y_j)^2 / (2 h^2)."""
        xp = namespace(like)
        y = xp.asarray(self.targets / (self.bandwidth * 2**0.5), dtype=like.dtype, device=like.device)
        difference = y[i] - y[j]
        difference *= difference
        return xp.negative(difference, out=difference)

    def among(self, rows: np.ndarray) -> TargetKernel:
        """Return the targets of some rows; what counts as near stays."""
        return TargetKernel(self.targets[rows], self.bandwidth)
