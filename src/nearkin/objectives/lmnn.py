"""Large Margin Nearest Neighbour (Weinberger, Blitzer and Saul, NIPS 2005) as a function of the map A and the rows X.

With d_ij = ||A x_i - A x_j||^2, the targets j of a row i (kin that are to be near) and its impostors l (rows of other
classes that come nearer than a target and a margin of 1),

    E(A) = (1 - mu) sum_ij d_ij + mu sum_ijl [1 + d_ij - d_il]_+

A triple that counts does no more than add mu to the weight of its pair ij, and take mu from that of il. So the
gradient, however many triples there are, is that of a sum of weighted pairs, `sum_ab w_ab d_ab`: with Z = X A'

    dE/dZ = 2 (D Z - (W + W') Z),   D = diag((W + W') 1):

sparse products, no outer product of a triple. Impostors are searched in tiles of some rows by all; every triple of a
pair il is decided by d_il alone, so the nearest strangers of a row are those that count most, for all its targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._parallel import Value, in_threads
from .nca import through
from .pair_weights import SameClass
from .stochastic import TILE_ENTRIES, TILE_ROWS, factors

PAIR_ENTRIES = 2**18  # of differences of rows at a time: they stay in the cache of a core


def large_margin(A: Any, X: Any, targets: np.ndarray, impostors: csr_array, mu: float = 0.5) -> Value:
    """Return E(A) and its gradient, where nobody is an impostor but those that are listed.

    Parameters
    ----------
    A : ndarray of shape (m, p)
    X : ndarray or sparse matrix of shape (n, p)
        Best about its mean.
    targets : ndarray of shape (n, k)
        Numbers of the rows that each row is to be near; its own number stands for none.
    impostors : csr_array of shape (n, n)
        In row i, the rows of other classes that are looked at; what is stored there does not matter. E is exact if
        these are all that are nearer to i than its farthest target and the margin, see `impostors_within`.
    mu : float, default=0.5
        Weight of the push against the pull.

    Returns
    -------
    value : float
    gradient : ndarray of shape (m, p), float64

    Notes
    -----
    O((n k + q) (m + k) + n p m) time for q listed impostors, O(n (m + k) + q) memory beside some blocks.
    """
    return through(A, X, lambda Z: _of_embedding(Z, targets, impostors, mu))


def _of_embedding(Z: np.ndarray, targets: np.ndarray, impostors: csr_array, mu: float) -> Value:
    n, k = targets.shape
    near = target_squares(Z, targets)
    n_invaders = np.zeros((n, k), Z.dtype)  # of every target: impostors within its margin
    n_invaded = np.zeros(impostors.nnz, Z.dtype)  # of every impostor: targets within whose margin it is

    def part(blocks: Sequence[slice]) -> Value:
        push = 0.0
        for rows in blocks:
            listed = slice(*impostors.indptr[[rows.start, rows.stop]])
            i = np.repeat(np.arange(rows.start, rows.stop), np.diff(impostors.indptr[rows.start : rows.stop + 1]))
            excess = 1 + near[i] - _squares(Z, i, impostors.indices[listed])[:, None]
            invaded = excess > 0
            push += float(np.maximum(excess, 0, out=excess).sum(dtype=np.float64))
            n_invaded[listed] = invaded.sum(axis=1)
            for target in range(k):
                n_invaders[rows, target] = np.bincount(i - rows.start, invaded[:, target], rows.stop - rows.start)
        return push, 0.0

    push, _ = in_threads(part, _row_blocks(impostors.indptr, max(k, Z.shape[1])), impostors.nnz * Z.shape[1])
    has_target = near >= 0
    pull = near.sum(where=has_target, dtype=np.float64)
    W = csr_array(
        (((1 - mu) * has_target + mu * n_invaders).ravel(), targets.ravel(), np.arange(0, n * k + 1, k)), (n, n)
    )
    V = csr_array((-mu * n_invaded, impostors.indices, impostors.indptr), (n, n), copy=True)
    V.eliminate_zeros()
    return (1 - mu) * pull + mu * push, _pair_gradient(Z, [W.astype(Z.dtype), V.astype(Z.dtype)])


def _pair_gradient(Z: np.ndarray, graphs: Sequence[csr_array]) -> np.ndarray:
    """Return the gradient of `sum_ab w_ab ||z_a - z_b||^2` with respect to Z, over the pairs of all graphs."""
    both_ways = [direction for graph in graphs for direction in (graph, graph.T)]
    work = sum(graph.nnz for graph in graphs) * Z.shape[1]
    _, products = in_threads(lambda some: (0.0, sum(graph @ Z for graph in some)), both_ways, work)
    degrees = sum(graph.sum(axis=1, dtype=np.float64) for graph in both_ways)
    return 2 * (degrees[:, None] * Z - products)


def target_squares(Z: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the squared distances of every row to its targets, shape (n, k); -inf where there is none."""
    n, k = targets.shape
    squares = np.empty((n, k), Z.dtype)

    def part(blocks: Sequence[slice]) -> Value:
        for rows in blocks:
            i = np.repeat(np.arange(rows.start, rows.stop), k)
            squares[rows] = _squares(Z, i, targets[rows].ravel()).reshape(-1, k)
        return 0.0, 0.0

    in_threads(part, _row_blocks(np.arange(0, n * k + 1, k), Z.shape[1]), targets.size * Z.shape[1])
    squares[targets == np.arange(n)[:, None]] = -np.inf
    return squares


def _squares(Z: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return ||z_i - z_j||^2 for pairs of rows: by their differences, not by products, which would cancel."""
    apart = Z[i]
    apart -= Z[j]
    return np.einsum("ij,ij->i", apart, apart)


def _row_blocks(indptr: np.ndarray, width: int) -> list[slice]:
    """Cut the rows so that their lists, of rows `width` wide, are about PAIR_ENTRIES numbers each."""
    step = max(1, PAIR_ENTRIES // width)
    cuts = np.unique(np.searchsorted(indptr, np.arange(step, indptr[-1], step)))
    cuts = np.unique(np.concatenate([[0], cuts, [len(indptr) - 1]]))
    return [slice(int(start), int(stop)) for start, stop in pairwise(cuts)]


def impostors_within(Z: np.ndarray, codes: np.ndarray, squares: np.ndarray, most: int) -> csr_array:
    """Return, for every row, the rows of other classes that are no farther than a distance of its own.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        Embedded rows, best about their mean: distances are formed from products.
    codes : ndarray of shape (n,)
        The class of every row as a number 0, 1, ...
    squares : ndarray of shape (n,)
        The distances, squared; negative for none at all.
    most : int
        Of more than so many, the nearest are listed.

    Returns
    -------
    csr_array of shape (n, n), bool

    Notes
    -----
    O(n^2 m) time, O(n m + q) memory for q listed rows and a tile for every thread.
    """
    n = len(Z)
    classes = SameClass(codes)
    order = classes.order.astype(np.int32)
    Z, codes = Z[order], codes[order]
    with_ones, operand = factors(Z)
    bounds = np.einsum("ij,ij->i", Z, Z) - squares[order]
    height = max(1, min(TILE_ROWS, TILE_ENTRIES // n))
    tiles = classes.tiles(height)
    found: list[tuple[np.ndarray, np.ndarray]] = [(order[:0], order[:0])] * len(tiles)

    def part(numbers: Sequence[int]) -> Value:
        buffer = np.empty((height, n), Z.dtype)
        for number in numbers:
            rows, kin = tiles[number]
            nearness = buffer[: rows.stop - rows.start]  # |z_i|^2 - ||z_i - z_j||^2
            for columns in (slice(0, kin.start), slice(kin.stop, n)):
                np.matmul(with_ones[rows], operand[:, columns], out=nearness[:, columns])
            same = codes[rows, None] == codes[kin]
            nearness[:, kin] = -np.inf if same.all() else np.where(same, -np.inf, with_ones[rows] @ operand[:, kin])
            found[number] = _nearest_above(nearness, bounds[rows], most)
        return 0.0, 0.0

    in_threads(part, range(len(tiles)), n * n)
    lengths, columns = (np.concatenate(parts) for parts in zip(*found, strict=True))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    lists = csr_array((np.ones(len(columns), bool), order[columns], indptr), shape=(n, n))
    return lists[np.argsort(order)]


def _nearest_above(nearness: np.ndarray, bounds: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how many entries of each row reach its bound, and their columns; of more than `most`, the largest."""
    i, j = np.divmod(np.flatnonzero(nearness >= bounds[:, None]), nearness.shape[1])
    lengths = np.bincount(i, minlength=len(bounds))
    keep = np.ones(len(j), bool)
    for row in np.flatnonzero(lengths > most):
        start, stop = np.searchsorted(i, [row, row + 1])
        keep[start + np.argpartition(nearness[row, j[start:stop]], -most)[:-most]] = False
    return np.minimum(lengths, most), j[keep].astype(np.int32)
