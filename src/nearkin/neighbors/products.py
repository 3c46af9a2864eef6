"""The nearest candidates of many queries at once, by matrix products: how a block of rows looks through a list of rows.

A search for one query at a time reads every candidate from memory for each query; here a tile of distances, some
hundred queries by two thousand candidates, comes out of one product and stays in the cache. Of a tile only what is
nearer than the nearest so far is looked at.
"""

from __future__ import annotations

import numpy as np

FIRST = 512  # candidates, of which the nearest are sought by sorting
TILE = 2048  # candidates at a time that are then compared with these


def nearest_candidates(Q: np.ndarray, Y: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers of the k nearest candidates of every query, in any order.

    Parameters
    ----------
    Q : ndarray of shape (b, d), float32
        Queries; their distances are rounded as if they lay about the origin, so they should be near each other.
    Y : ndarray of shape (c, d), float32
        Candidates; quickest where the nearer ones come first.
    k : int
        At most c.

    Returns
    -------
    numbers : integer array of shape (b, k)

    Notes
    -----
    O(b c d) in products, O(b c) to compare; memory: b times 2048 distances.
    """
    middle = Q.mean(axis=0)
    Q = np.column_stack([2 * (middle - Q), np.ones(len(Q), Q.dtype)])
    Y = np.column_stack([Y - middle, np.zeros(len(Y), Y.dtype)])
    np.einsum("ij,ij->i", Y, Y, out=Y[:, -1])
    # The product of both is |q - y|^2 less |q|^2.
    first = max(FIRST, k)
    tile = Q @ Y[:first].T
    distances, numbers = _smallest(tile, np.broadcast_to(np.arange(tile.shape[1]), tile.shape), k)
    for start in range(first, len(Y), TILE):
        tile = Q @ Y[start : start + TILE].T
        closer = np.flatnonzero(tile < distances.max(axis=1, keepdims=True))
        if len(closer):
            row, column = np.divmod(closer, tile.shape[1])
            count = np.bincount(row, minlength=len(Q))
            place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
            more = np.full((len(Q), count.max()), np.inf, Q.dtype)
            which = np.zeros(more.shape, np.intp)
            more[row, place], which[row, place] = tile.ravel()[closer], start + column
            distances, numbers = _smallest(np.hstack([distances, more]), np.hstack([numbers, which]), k)
    return numbers


def _smallest(distances: np.ndarray, numbers: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k smallest of every row and their numbers."""
    if k >= distances.shape[1]:
        return distances, numbers
    at = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return np.take_along_axis(distances, at, axis=1), np.take_along_axis(numbers, at, axis=1)
