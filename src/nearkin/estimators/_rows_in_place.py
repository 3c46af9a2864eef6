"""The rows of stochastic descent, of which only those in use are copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._parallel import parallel_map
from ..neighbors import Searcher
from ..objectives.linear_map import embed
from ..objectives.pair_weights import PairWeights
from ..span import RowSpace
from .descent_embedding import FLOAT64_ROWS, Scale, cap_penalty
from .initialization import nearest_squares, unit_distance
from .nca_problem import NCAProblem, NCARows

BLOCK = 2**19  # numbers of a block of rows, which is copied twice or thrice
UNIT_ROWS = 200  # from which the unit of many rows is estimated: each is compared with all
INIT_ROWS = 10_000  # on which an init is found


@dataclass(frozen=True)
class RowsInPlace(Scale):
    """Rows that stay where they are, in memory or in a file: only the rows in use are copied and centred.

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
    pair_weights : PairWeights
    search : Searcher
    """

    X: Any
    mean: np.ndarray | None
    scale: float
    dtype: Any
    pair_weights: PairWeights
    search: Searcher

    @classmethod
    def of(cls, X: Any, unit: float, pair_weights: PairWeights, search: Searcher) -> RowsInPlace:
        """Return rows whose typical distance is known."""
        mean = None if issparse(X) else X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        dtype = np.float64 if X.shape[0] <= FLOAT64_ROWS else np.float32
        return cls(unit, RowSpace(X, None), X, mean, unit, dtype, pair_weights, search)

    @classmethod
    def of_units(cls, rows: NCARows) -> RowsInPlace:
        """Return rows that have been copied, centred and scaled already."""
        return cls(rows.unit, rows.space, rows.X, None, 1.0, rows.X.dtype, rows.pair_weights, rows.search)

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

        def fill(rows: slice) -> None:
            X = self.take(rows)
            Z[rows] = X * A if A.ndim == 1 else X @ A.T

        parallel_map(fill, row_blocks(len(self), self.X.shape[1], BLOCK), self.X.size)
        Z -= Z.mean(axis=0, dtype=np.float64).astype(self.dtype)
        return Z

    def nearest_squares(self, B: np.ndarray) -> np.ndarray:
        """Return the squared distances of some embedded rows to their 100 nearest, ascending."""
        return nearest_squares(self.embedded(B))


def rows_and_init(
    nca: Any, X: Any, pair_weights: PairWeights, search: Searcher, m: int, rng: Any, *, within_span: bool
) -> tuple[RowsInPlace, Callable[[str], np.ndarray]]:
    """Return rows as minibatches use them, and the function that finds an init by its name, on at most 10,000 rows.

    An init that was found on a part of the rows is scaled again for all: among more rows, neighbours are nearer.
    """
    n = X.shape[0]
    chosen = np.arange(n) if n <= INIT_ROWS else np.sort(rng.choice(n, INIT_ROWS, replace=False))
    some = X if n <= INIT_ROWS else X[chosen]
    few = NCARows.of(some, within_span=within_span, pair_weights=pair_weights.subset(chosen), search=search)
    problem = NCAProblem(nca, few, m, rng)
    if n <= INIT_ROWS:
        return RowsInPlace.of_units(few), problem.init
    rows = RowsInPlace.of(X, unit_distance(X, UNIT_ROWS), pair_weights, search)

    def init(name: str) -> np.ndarray:
        B = problem.init(name)
        B = B if B.ndim == 1 else rows.coordinates(few.components(B))
        return cap_penalty(B / unit_distance(rows.embedded(B)), nca.alpha, n)

    return rows, init
