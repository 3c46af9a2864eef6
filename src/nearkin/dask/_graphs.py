"""Tasks on graphs: the rows W (b, n) of a block among all n, as a csr_array of weights or of distances."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from ._search import Lists
from ._table import Block

# Pairs of rows: the class of the first, their distance, the numbers of both; four arrays of equal length.
Pairs = tuple[np.ndarray, ...]


def as_matrix(lists: Lists, *, n: int) -> csr_array:
    """Return the lists of a block as a matrix of distances (b, n), in which a duplicate is an explicit zero."""
    listed = lists.neighbors >= 0
    indptr = np.concatenate(([0], np.cumsum(listed.sum(axis=1))))
    G = csr_array((lists.distances[listed], lists.neighbors[listed], indptr), shape=(len(listed), n))
    G.sort_indices()
    return G


def columns_between(W: csr_array, *, start: int, stop: int) -> csr_array:
    """Return which rows of a block list the rows from `start` to `stop`, a row for each of these."""
    return csr_array(W[:, start:stop].T)


def join_directions(W: csr_array, transposed: list[csr_array], *, join: str) -> csr_array:
    """Return the rows of a symmetric graph, from what they list and from where they are listed."""
    return getattr(W, join)(hstack(transposed, format="csr"))


def squared_lengths(G: csr_array) -> np.ndarray:
    """Return the sum of the squared distances to the neighbours that a block lists, and their number."""
    return np.array([np.square(G.data, dtype=np.float64).sum(), G.nnz])


def farthest(G: csr_array) -> np.ndarray:
    """Return the distance of every row to the farthest neighbour that it lists, 0 if it lists none."""
    return G.max(axis=1).toarray().ravel()


def laplacian_traces(W: csr_array) -> np.ndarray:
    """Return what a block adds to tr L, the sum of the degrees, and to tr L^2, that of d_i^2 and of all w_ij^2."""
    d = W.sum(axis=1)
    return np.array([d.sum(), np.square(d).sum() + np.square(W.data).sum()])


def adjacent_blocks(W: csr_array, *, starts: list[int]) -> np.ndarray:
    """Say for every block whether some edges lead to its rows."""
    return np.isin(np.arange(len(starts) - 1), np.searchsorted(starts, np.unique(W.indices), side="right") - 1)


def pairs_of(block: Block, G: csr_array, *, k: int) -> Pairs:
    """Return the k closest pairs of every class of which a row of the block is the first."""
    i = np.repeat(np.arange(len(block.X)), np.diff(G.indptr))
    return closest([(block.codes[i], G.data, block.start + i, G.indices)], k=k)


def closest(parts: list[Pairs], *, k: int) -> Pairs:
    """Return the k closest of some pairs for every class."""
    c, d, i, j = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((j, i, d, c))
    position = np.arange(len(c)) - np.searchsorted(c[order], c[order])
    return tuple(array[order[position < k]] for array in (c, d, i, j))


def graph_of_pairs(block: Block, pairs: Pairs, *, n: int) -> csr_array:
    """Return the rows of a block in the graph of some pairs, from the first to the second, with weights 1."""
    i, j = pairs[2:]
    own = (i >= block.start) & (i < block.start + len(block.X))
    return csr_array((np.ones(own.sum()), (i[own] - block.start, j[own])), shape=(len(block.X), n))
