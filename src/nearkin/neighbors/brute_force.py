"""Nearest candidates by matrix products of tiles, with a bound on the distances worth keeping.

A search for one row at a time reads every candidate from memory for every row. Here a tile of
distances, a few hundred queries by a few hundred candidates, is one product and stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._blocks import row_blocks
from .lists import places

Tile = tuple[np.ndarray, np.ndarray]  # indices of candidates, and the candidates

ROUNDING = 1e-5  # of a squared distance, relative to that of the query from the origin
IN_CACHE = 2**18  # entries of a tile, which fit into the cache of a core
NARROWEST = 256  # fewest candidates that are compared at a time, after the first tile
TILE = 2048  # candidates per tile of the input


class NearestSoFar:
    """The k nearest candidates of each query so far.

    Parameters
    ----------
    n_queries, k : int
    room : int
        The maximum number of candidates per comparison. Candidates closer than the bound are
        collected alongside the k nearest; when there is no room left, the k nearest are selected
        again.
    dtype : dtype, default=float32

    Attributes
    ----------
    bound : ndarray of shape (n_queries,)
        The squared distance to the k-th nearest at the last selection; infinite before the first.
    """

    def __init__(self, n_queries: int, k: int, room: int, dtype: Any = np.float32) -> None:
        self.k = k
        self.bound = np.full(n_queries, np.inf, dtype)
        self._squares = np.full((n_queries, k + room), np.inf, dtype)
        self._numbers = np.full((n_queries, k + room), -1, np.int32)
        self._counts = np.zeros(n_queries, np.intp)

    def start(
        self,
        queries: Any,
        Q: np.ndarray,
        candidates: Tile,
        origin: np.ndarray,
        allowed: np.ndarray | None = None,
    ) -> None:
        """Compare queries for the first time, with any number of candidates; see `compare`."""
        squares, apart = _squares(Q, candidates[1], origin)
        if allowed is not None:
            squares[~allowed] = np.inf
        k = min(self.k, squares.shape[1])
        at = smallest(squares, k)
        self._squares[queries, :k] = squares.ravel()[at] + apart[:, None]
        self._numbers[queries, :k] = candidates[0][at % squares.shape[1]]
        self._counts[queries] = k
        if k == self.k:
            self.bound[queries] = self._squares[queries, :k].max(axis=1)

    def compare(
        self,
        queries: np.ndarray,
        Q: np.ndarray,
        candidates: Tile,
        origin: np.ndarray,
        allowed: np.ndarray | None = None,
    ) -> None:
        """Compare queries with new candidates.

        Parameters
        ----------
        queries : integer array of shape (b,)
            Indices of the queries.
        Q : ndarray of shape (b, d)
            The queries.
        candidates : integer array of shape (t,) and ndarray of shape (t, d)
        origin : ndarray of shape (d,)
            A point near the candidates or the queries: rounding errors of squared distances are
            relative to the distances from it.
        allowed : bool array of shape (b, t), default=None
            Which pairs are allowed; None for all.
        """
        squares, apart = _squares(Q, candidates[1], origin)
        nearer = squares < (self.bound[queries] - (1 + ROUNDING) * apart)[:, None]
        if allowed is not None:
            nearer &= allowed
        at = np.flatnonzero(nearer)
        row, column = np.divmod(at, squares.shape[1])
        n_nearer = np.bincount(row, minlength=len(queries))
        self._choose(queries[self._counts[queries] + n_nearer > self._squares.shape[1]])
        query = queries[row]
        place = self._counts[query] + places(n_nearer)
        self._squares[query, place] = squares.ravel()[at] + apart[row]
        self._numbers[query, place] = candidates[0][column]
        self._counts[queries] += n_nearer

    def nearest(self) -> np.ndarray:
        """Return the indices of the k nearest, (n_queries, k), in any order, padded with -1."""
        self._choose(np.flatnonzero(self._counts > self.k))
        found = np.isfinite(self._squares[:, : self.k])
        return np.where(found, self._numbers[:, : self.k], -1)

    def _choose(self, queries: np.ndarray) -> None:
        """Reduce the candidates collected for some queries to the k nearest."""
        k = self.k
        for block in row_blocks(len(queries), self._squares.shape[1], IN_CACHE):
            some = queries[block]
            collected = self._squares[some]
            at = smallest(collected, k)
            squares = collected.ravel()[at]
            self._numbers[some, :k] = self._numbers[some].ravel()[at]
            self._squares[some, :k], self._squares[some, k:] = squares, np.inf
            self._counts[some], self.bound[some] = k, squares.max(axis=1)


def smallest(A: np.ndarray, k: int) -> np.ndarray:
    """Return where the k smallest entries of every row of A are in `A.ravel()`, in any order."""
    kth = np.partition(A, k - 1, axis=1)[:, k - 1 : k]
    at = np.flatnonzero(kth >= A)  # `argpartition` takes twice as long
    if len(at) != k * len(A):  # of equal entries, any
        at = np.argpartition(A, k - 1, axis=1)[:, :k] + A.shape[1] * np.arange(len(A))[:, None]
    return at.reshape(-1, k)


def _squares(Q: np.ndarray, Y: np.ndarray, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances (b, t) minus the queries' squared norms, and these norms (b,).

    Norms are about the origin. The result is a single product, (q, 1)'(-2 y, |y|^2); adding |y|^2
    separately would take a quarter longer.
    """
    with_ones, operand = (np.empty((len(A), A.shape[1] + 1), Q.dtype) for A in (Q, Y))
    Q, Y = np.subtract(Q, origin, out=with_ones[:, :-1]), Y - origin
    with_ones[:, -1] = 1
    np.multiply(Y, -2, out=operand[:, :-1])
    np.einsum("ij,ij->i", Y, Y, out=operand[:, -1])
    # OpenBLAS sets the "invalid" flag for float32 lanes that it does not use
    with np.errstate(invalid="ignore"):
        return with_ones @ operand.T, np.einsum("ij,ij->i", Q, Q)


def nearest_candidates(Q: np.ndarray, tiles: Iterable[Tile], k: int) -> np.ndarray:
    """Return the indices of the k nearest candidates of every query, in any order.

    Parameters
    ----------
    Q : ndarray of shape (b, d)
        Queries. Rounding errors are relative to the distances of queries and candidates from the
        mean of the queries.
    tiles : iterable of (integer array of shape (t,), ndarray of shape (t, d))
        Indices of candidates and the candidates, about 2048 at a time; the search is fastest if
        near ones come first.
    k : int

    Returns
    -------
    numbers : integer array of shape (b, k)
        Padded with -1.

    Notes
    -----
    O(b c d) in products and O(b c) to compare, for c candidates.
    """
    width = min(max(NARROWEST, IN_CACHE // len(Q)), TILE)
    queries, middle = np.arange(len(Q)), Q.mean(axis=0)
    found = NearestSoFar(len(Q), k, width, Q.dtype)
    tiles = iter(tiles)
    found.start(queries, Q, next(tiles), middle)
    for numbers, Y in tiles:
        for part in row_blocks(len(Y), 1, width):
            found.compare(queries, Q, (numbers[part], Y[part]), middle)
    return found.nearest()


def tiles_of(Z: np.ndarray, rows: np.ndarray, width: int = TILE) -> Iterator[Tile]:
    """Yield some rows of Z as candidates, with their indices."""
    for block in row_blocks(len(rows), 1, width):
        yield rows[block], Z[rows[block]]


def squares_to_nearest(queries: np.ndarray, Z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared distances of queries to their k nearest rows of Z, and the rows' indices.

    Z is (n, d), k at most n. Both results have shape (n_queries, k), in any order. No index is
    needed, so a single query is fast, too.
    """
    blocks = row_blocks(len(Z), 1, TILE)
    dtype = np.result_type(queries, Z)
    tiles = (
        (np.arange(rows.start, rows.stop), Z[rows].astype(dtype, copy=False)) for rows in blocks
    )
    near = nearest_candidates(queries.astype(dtype, copy=False), tiles, k)
    apart = Z[near] - queries[:, None]  # those of the search depend on the other queries
    return np.einsum("ijm,ijm->ij", apart, apart), near
