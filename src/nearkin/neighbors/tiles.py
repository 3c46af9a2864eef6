"""The nearest candidates of some rows at once, by matrix products.

A search for one row at a time reads every candidate from memory for every row; here a tile of distances, some hundred
rows by two thousand candidates, is one product and stays in the cache. Of a tile only what is nearer than the nearest
so far is compared.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

TILE = 2048  # candidates at a time

Tile = tuple[np.ndarray, np.ndarray]


def nearest_candidates(Q: np.ndarray, tiles: Iterable[Tile], k: int) -> np.ndarray:
    """Return the numbers of the k nearest candidates of every query, in any order.

    Parameters
    ----------
    Q : ndarray of shape (b, d), float32
        Queries. Distances are rounded relative to how far queries and candidates are from the mean of the queries.
    tiles : iterable of integer array of shape (t,) and ndarray of shape (t, d), float32
        Numbers of candidates, and the candidates: about 2048 at a time, quickest where the nearer ones come first.
    k : int

    Returns
    -------
    numbers : integer array of shape (b, k), or narrower where there are fewer candidates

    Notes
    -----
    O(b c d) in products and O(b c) to compare, for c candidates.
    """
    middle = Q.mean(axis=0)
    Q = np.column_stack([2 * (middle - Q), np.ones(len(Q), Q.dtype)])
    distances = np.empty((len(Q), 0), Q.dtype)  # less |q|^2
    numbers = np.empty((len(Q), 0), np.intp)
    for which, Y in tiles:
        apart = np.empty((len(Y), Q.shape[1]), Q.dtype)
        np.subtract(Y, middle, out=apart[:, :-1])
        np.einsum("ij,ij->i", apart[:, :-1], apart[:, :-1], out=apart[:, -1])
        tile = Q @ apart.T
        if numbers.shape[1] < k:
            closer, closer_numbers = tile, np.broadcast_to(which, tile.shape)
        else:
            closer, closer_numbers = _below(tile, which, distances.max(axis=1, keepdims=True))
        if closer.size:
            distances, numbers = np.hstack([distances, closer]), np.hstack([numbers, closer_numbers])
        if numbers.shape[1] > k:
            at = np.argpartition(distances, k - 1, axis=1)[:, :k]
            distances, numbers = np.take_along_axis(distances, at, axis=1), np.take_along_axis(numbers, at, axis=1)
    return numbers


def _below(tile: np.ndarray, which: np.ndarray, bound: np.ndarray) -> Tile:
    """Return what is below the bound of its row, moved to the left and filled up with infinities, and its numbers."""
    row, column = np.divmod(np.flatnonzero(tile < bound), tile.shape[1])
    count = np.bincount(row, minlength=len(tile))
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    distances = np.full((len(tile), count.max()), np.inf, tile.dtype)
    numbers = np.zeros(distances.shape, np.intp)
    distances[row, place], numbers[row, place] = tile[row, column], which[column]
    return distances, numbers
