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
from ..objectives.pair_weights import GivenPairs, PairWeights
from ..span import RowSpace
from .descent_embedding import FLOAT64_ROWS, cap_penalty
from .initialization import unit_distance
from .nca_problem import NCAProblem, NCARows

BLOCK = 2**19  # numbers of a block of rows, which is copied twice or thrice
UNIT_ROWS = 200  # from which the unit of many rows is estimated: each is compared with all
INIT_ROWS = 10_000  # on which an init is found


@dataclass(frozen=True)
class RowsInPlace(NCARows):
    """Rows as they came, in memory or in a file: only those in use are copied, centred and scaled.

    Attributes
    ----------
    mean : ndarray of shape (r,), or None for sparse rows
    """

    mean: np.ndarray | None

    @property
    def dtype(self) -> Any:
        """In which a descent computes."""
        return np.float64 if len(self) <= FLOAT64_ROWS else np.float32

    def take(self, rows: Any) -> Any:
        """Return some rows, in units of the typical distance."""
        X = self.X[rows] if self.mean is None else self.X[rows] - self.mean
        return X.astype(self.dtype, copy=False) / self.dtype(self.unit)

    def embedding(self, B: np.ndarray) -> np.ndarray:
        """Return Z = X B', shape (n, m), about its mean."""
        B = B.astype(self.dtype)
        if self.mean is None:
            return embed(B / self.dtype(self.unit), self.X)
        Z = np.empty((len(self), len(B)), self.dtype)

        def fill(rows: slice) -> None:
            Z[rows] = self.take(rows) * B if B.ndim == 1 else self.take(rows) @ B.T

        parallel_map(fill, row_blocks(*self.shape, BLOCK), self.X.size)
        Z -= Z.mean(axis=0, dtype=np.float64).astype(self.dtype)
        return Z


def rows_in_place(X: Any, unit: float, pair_weights: PairWeights | GivenPairs, search: Searcher) -> RowsInPlace:
    """Return rows whose typical distance is known."""
    mean = None if issparse(X) else X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    return RowsInPlace(unit, RowSpace(X, None), X, pair_weights, search, mean)


def rows_and_init(
    nca: Any, X: Any, pair_weights: PairWeights, search: Searcher, m: int, rng: Any, *, within_span: bool
) -> tuple[NCARows, Callable[[str], np.ndarray]]:
    """Return rows as minibatches use them, and the function that finds an init by its name, on at most 10,000 rows.

    An init that was found on a part of the rows is scaled again for all: among more rows, neighbours are nearer.
    """
    n = X.shape[0]
    chosen = slice(None) if n <= INIT_ROWS else np.sort(rng.choice(n, INIT_ROWS, replace=False))
    few = NCARows.of(X[chosen], within_span=within_span, pair_weights=pair_weights.subset(chosen), search=search)
    problem = NCAProblem(nca, few, m, rng)
    if n <= INIT_ROWS:
        return few, problem.init
    rows = rows_in_place(X, unit_distance(X, UNIT_ROWS), pair_weights, search)

    def init(name: str) -> np.ndarray:
        B = problem.init(name)
        B = B if B.ndim == 1 else rows.coordinates(few.components(B))
        return cap_penalty(B / unit_distance(rows.embedding(B)), nca.alpha, n)

    return rows, init
