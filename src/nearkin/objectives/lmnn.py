"""Large Margin Nearest Neighbour (Weinberger et al., NIPS 2005) as a function of A and X.

With d_ij = ||A x_i - A x_j||^2, the targets j of a row i (rows of its class that should be close)
and its impostors l (rows of other classes that are closer than a target plus a margin of 1),

    E(A) = (1 - mu) sum_ij d_ij + mu sum_ijl [1 + d_ij - d_il]_+

With weights s of the rows, d_ij is multiplied by s_i s_j and a triple by s_i s_j s_l. These are the
numbers of pairs and triples of copies, if s_i is the number of copies of row i and the copies of a
row are neither its targets nor its impostors.

A violated triple adds mu (s_i s_j s_l) to the weight of its pair ij and subtracts it from that of
il. So, however many triples there are, the gradient is that of a sum of weighted pairs, `sum_ab
w_ab d_ab`. With Z = X A'

    dE/dZ = 2 (D Z - (W + W') Z),   D = diag((W + W') 1),

which takes sparse products instead of an outer product per triple. Impostors are searched in tiles
of some rows by all. A triple is violated if d_il is less than 1 + d_ij, so the nearest rows of
other classes matter most, for all targets of a row.

With comparisons instead of classes, "a should be closer to b than c to d", the first sum is over
the pairs ab that should be close, the second over the comparisons (see `Comparisons`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Never

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.extmath import row_norms

from .._blocks import row_blocks
from .._threads import parallel_map
from .loss import Loss, Matrix, Value, chain_rule, embed
from .stochastic import SameClass, factors, tile_height

PAIR_ENTRIES = 2**18  # entries of differences of rows at a time, which fit into the cache of a core
SEARCH_ALWAYS_ROWS = 4000  # up to this many rows, searching impostors at every step is cheap
# a second margin: rows within it are listed, as they may become impostors before the next search
SLACK = 1.0
# share of all pairs from which searching at every step is faster than keeping lists
WORTH = 1 / 256
MOST = 2**25  # maximum number of impostors counted in total,
ALWAYS = 100  # but at least this many per row, if there are as many


@dataclass(frozen=True, eq=False)
class LargeMargin(Loss[csr_array, Never]):
    """E(A) / n, with the impostors near A.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Preferably centred.
    codes : ndarray of shape (n,)
        Class codes 0, 1, ....
    targets : ndarray of shape (n, k)
        Indices of the target rows of each row, padded with its own index.
    weights : ndarray of shape (n,) or None
        s; None for 1 each.
    """

    X: Matrix
    codes: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None

    def value(self, A: np.ndarray, part: csr_array | None = None) -> Value:
        """Return the loss and its gradient; `part` lists impostors, all are searched without it."""
        listed = self._impostors(A, 0.0) if part is None else part
        n = len(self.targets)
        value, gradient = large_margin(A, self.X, self.targets, listed, weights=self.weights)
        return value / n, gradient / n

    def candidates(self, A: np.ndarray) -> csr_array | None:
        """Return the rows of other classes within two margins; None to search at every step."""
        n = len(self.targets)
        if n <= SEARCH_ALWAYS_ROWS:
            return None
        listed = self._impostors(A, SLACK)
        return listed if listed.nnz < min(WORTH * n * n, MOST / 2) else None

    def _impostors(self, A: np.ndarray, slack: float) -> csr_array:
        Z = embed(A, self.X)
        reach = 1 + target_squares(Z, self.targets).max(axis=1)
        return impostors_within(Z, self.codes, reach + slack, max(ALWAYS, MOST // len(Z)))


def large_margin(
    A: np.ndarray,
    X: Matrix,
    targets: np.ndarray,
    impostors: csr_array,
    mu: float = 0.5,
    weights: np.ndarray | None = None,
) -> Value:
    """Return E(A) and its gradient; only the listed rows can be impostors.

    Parameters
    ----------
    A : ndarray of shape (m, p)
    X : ndarray or sparse matrix of shape (n, p)
        Preferably centred.
    targets : ndarray of shape (n, k)
        Indices of the target rows of each row, padded with its own index.
    impostors : csr_array of shape (n, n)
        Row i lists the possible impostors of row i; the stored values are ignored. E is exact if
        these include all rows of other classes that are closer to i than its farthest target plus
        the margin; see `impostors_within`.
    mu : float, default=0.5
        Relative weight of the second sum.
    weights : ndarray of shape (n,), default=None
        s; None for 1 each.

    Returns
    -------
    value : float
    gradient : ndarray of shape (m, p), float64

    Notes
    -----
    O((n k + q) (m + k) + n p m) time for q listed impostors, O(n (m + k) + q) memory besides some
    blocks.
    """
    Z = embed(A, X)
    (n, k), m = targets.shape, Z.shape[1]
    d_targets = target_squares(Z, targets)
    s = np.ones(n, Z.dtype) if weights is None else weights.astype(Z.dtype)
    s_pairs = s[:, None] * s[targets]
    n_invaders = np.zeros((n, k), Z.dtype)  # violated triples of every target, times s_i s_j s_l
    n_invaded = np.zeros(impostors.nnz, Z.dtype)  # the same for every impostor

    def sum_hinges(rows: slice) -> float:
        listed = slice(*impostors.indptr[[rows.start, rows.stop]])
        lengths = np.diff(impostors.indptr[rows.start : rows.stop + 1])
        i = np.repeat(np.arange(rows.start, rows.stop), lengths)
        impostor = impostors.indices[listed]
        # from differences; products would cancel
        difference = Z[i]
        difference -= Z[impostor]
        squares = np.einsum("ij,ij->i", difference, difference)
        excess = 1 + d_targets[i] - squares[:, None]
        violated = (excess > 0) * (s_pairs[i] * s[impostor, None])
        n_invaded[listed] = violated.sum(axis=1)
        for target in range(k):
            n_invaders[rows, target] = np.bincount(
                i - rows.start, violated[:, target], rows.stop - rows.start
            )
        np.maximum(excess, 0, out=excess)
        return float(np.sum(excess * violated, dtype=np.float64))

    # blocks of rows whose listed pairs, of max(k, m) entries each, have about PAIR_ENTRIES entries
    step = max(1, PAIR_ENTRIES // max(k, m))
    cuts = np.searchsorted(impostors.indptr, np.arange(step, impostors.nnz, step))
    cuts = np.unique(np.concatenate([[0], cuts, [n]]))
    blocks = [slice(int(start), int(stop)) for start, stop in pairwise(cuts)]
    hinges = sum(parallel_map(sum_hinges, blocks, impostors.nnz * m))
    pulled = s_pairs * (d_targets >= 0)
    to_targets = (1 - mu) * pulled + mu * n_invaders
    ends = np.arange(0, n * k + 1, k)
    W = csr_array((to_targets.ravel(), targets.ravel(), ends), (n, n)).astype(Z.dtype)
    V = csr_array((-mu * n_invaded, impostors.indices, impostors.indptr), (n, n), copy=True)
    V.eliminate_zeros()
    of_targets = np.sum(pulled * np.maximum(d_targets, 0), dtype=np.float64)
    return (1 - mu) * of_targets + mu * hinges, _gradient([W, V], Z, A, X)


def _gradient(graphs: Sequence[csr_array], Z: np.ndarray, A: np.ndarray, X: Matrix) -> np.ndarray:
    """Return the gradient of `sum_ab w_ab d_ab` over the edges of directed graphs."""
    directed = [graph for W in graphs for graph in (W, W.T)]
    n_products = sum(W.nnz for W in graphs) * Z.shape[1]
    products = sum(parallel_map(lambda graph: graph @ Z, directed, n_products))
    degrees = sum(graph.sum(axis=1, dtype=np.float64) for graph in directed)
    return chain_rule(2 * (degrees[:, None] * Z - products), A, X)


@dataclass(frozen=True)
class Comparisons:
    """Pairs of rows, and which of them should be closer than which others.

    Attributes
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Distinct pairs of rows a < b.
    near, far : ndarray of shape (n_comparisons,)
        Indices of pairs: each near pair should be closer than its far one.
    weights : ndarray of shape (n_comparisons,)
        Weights of the comparisons.
    attraction : ndarray of shape (n_pairs,)
        The mean weight of the comparisons in which a pair is the near one; 0 if there are none.
    """

    pairs: np.ndarray
    near: np.ndarray
    far: np.ndarray
    weights: np.ndarray
    attraction: np.ndarray

    @classmethod
    def of(cls, quadruplets: np.ndarray, weights: np.ndarray) -> Comparisons:
        """Return the comparisons (a, b, c, d), "a should be closer to b than c to d".

        Quadruplets are int of shape (n, 4); equal ones are merged and their weights added.
        """
        n = int(quadruplets.max()) + 1
        first, second = np.sort(quadruplets.reshape(-1, 2), axis=1).astype(np.int64).T
        codes, numbers = np.unique(first * n + second, return_inverse=True)
        n_pairs = len(codes)
        near, far = numbers.reshape(-1, 2).astype(np.int64).T
        compared, place = np.unique(near * n_pairs + far, return_inverse=True)
        near, far = np.divmod(compared, n_pairs)
        weights = np.bincount(place, weights)
        counts = np.bincount(near, minlength=n_pairs)
        attraction = np.bincount(near, weights, n_pairs) / np.maximum(counts, 1)
        return cls(np.column_stack(np.divmod(codes, n)), near, far, weights, attraction)


@dataclass(frozen=True, eq=False)
class ComparisonMargin(Loss[Never, Never]):
    """`comparison_margin` of given comparisons between rows X."""

    X: Matrix
    comparisons: Comparisons

    def value(self, A: np.ndarray, part: None = None) -> Value:
        """Return the loss and its gradient."""
        return comparison_margin(A, self.X, self.comparisons)


def comparison_margin(A: np.ndarray, X: Matrix, comparisons: Comparisons, mu: float = 0.5) -> Value:
    """Return the loss of comparisons and its gradient.

        E(A) = (1 - mu) sum_ab v_ab d_ab + mu sum_abcd w_abcd [1 + d_ab - d_cd]_+

    over the pairs that should be close, with their attraction v, and over the comparisons, with
    their weights w. For all triples of targets and rows of other classes it equals `large_margin`,
    except that two rows that are targets of each other form one pair, not two.

    Parameters
    ----------
    A : ndarray of shape (m, p)
    X : ndarray or sparse matrix of shape (n, p)
        Preferably centred.
    comparisons : Comparisons
    mu : float, default=0.5
        Relative weight of the second sum.

    Returns
    -------
    value : float
    gradient : ndarray of shape (m, p), float64

    Notes
    -----
    O(q + r m + n p m) time for q comparisons of r distinct pairs, O(n m + q) memory besides a
    block.
    """
    Z = embed(A, X)
    n, n_pairs = len(Z), len(comparisons.pairs)
    near, far, w = comparisons.near, comparisons.far, comparisons.weights
    d = pair_squares(Z, comparisons.pairs)
    excess = 1 + d[near] - d[far]
    violated = np.where(excess > 0, w, 0.0)
    to_near = np.bincount(near, violated, n_pairs)
    to_far = np.bincount(far, violated, n_pairs)
    of_pairs = (1 - mu) * comparisons.attraction + mu * (to_near - to_far)
    W = csr_array((of_pairs.astype(Z.dtype), tuple(comparisons.pairs.T)), (n, n))
    value = (1 - mu) * float(comparisons.attraction @ d) + mu * float(violated @ excess)
    return value, _gradient([W], Z, A, X)


def pair_squares(Z: Matrix, pairs: np.ndarray) -> np.ndarray:
    """Return the squared distances within pairs of dense or sparse rows, (n_pairs,), float64."""

    def of_block(block: slice) -> np.ndarray:
        a, b = pairs[block].T
        return row_norms(Z[a] - Z[b], squared=True).astype(np.float64)

    width = Z.shape[1] if isinstance(Z, np.ndarray) else Z.nnz // Z.shape[0] + 1
    blocks = row_blocks(len(pairs), width, PAIR_ENTRIES)
    return np.concatenate(parallel_map(of_block, blocks, len(pairs) * width))


def target_squares(Z: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the squared distances of every row to its targets, shape (n, k), padded with -inf."""
    n, k = targets.shape
    m = Z.shape[1]

    def of_block(rows: slice) -> np.ndarray:
        difference = Z[rows, None] - Z[targets[rows]]
        return np.einsum("ijk,ijk->ij", difference, difference)

    blocks = row_blocks(n, k * m, PAIR_ENTRIES)
    squares = np.concatenate(parallel_map(of_block, blocks, n * k * m))
    squares[targets == np.arange(n)[:, None]] = -np.inf
    return squares


def impostors_within(Z: np.ndarray, codes: np.ndarray, squares: np.ndarray, most: int) -> csr_array:
    """Return, for every row, the rows of other classes within a given distance of it.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        Embedded rows, preferably centred, since distances are computed from products.
    codes : ndarray of shape (n,)
        Class codes 0, 1, ....
    squares : ndarray of shape (n,)
        The squared distance limit of each row; negative for no rows at all.
    most : int
        Only the nearest `most` rows are listed if there are more.

    Returns
    -------
    csr_array of shape (n, n), bool

    Notes
    -----
    O(n^2 m) time, O(n m + q) memory for q listed rows and a tile per thread.
    """
    n = len(Z)
    classes = SameClass(codes)
    order = classes.order.astype(np.int32)
    Z, codes = Z[order], codes[order]
    with_ones, operand = factors(Z)
    bounds = np.einsum("ij,ij->i", Z, Z) - squares[order]

    def search(tile: tuple[slice, slice]) -> tuple[np.ndarray, np.ndarray]:
        rows, own = tile  # own: all rows of the classes of these rows
        nearness = with_ones[rows] @ operand  # |z_i|^2 - ||z_i - z_j||^2
        nearness[:, own][codes[rows, None] == codes[own]] = -np.inf
        return _nearest_above(nearness, bounds[rows], most)

    found = parallel_map(search, classes.tiles(tile_height(n)), n * n)
    lengths, columns = (np.concatenate(parts) for parts in zip(*found, strict=True))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    lists = csr_array((np.ones(len(columns), bool), order[columns], indptr), shape=(n, n))
    return lists[np.argsort(order)]


def _nearest_above(
    nearness: np.ndarray, bounds: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many entries of each row reach its bound, and their columns, at most `most`."""
    i, j = np.divmod(np.flatnonzero(nearness >= bounds[:, None]), nearness.shape[1])
    lengths = np.bincount(i, minlength=len(bounds))
    keep = np.ones(len(j), bool)
    for row in np.flatnonzero(lengths > most):
        start, stop = np.searchsorted(i, [row, row + 1])
        keep[start + np.argpartition(nearness[row, j[start:stop]], -most)[:-most]] = False
    return np.minimum(lengths, most), j[keep].astype(np.int32)
