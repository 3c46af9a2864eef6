"""`Rows` for a spectral method on a cluster: graphs are futures, scatters are on the client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Future
from scipy.sparse import csr_array, hstack, vstack
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.metrics import euclidean_distances

from .._blocks import row_blocks
from .._memory import human_bytes
from ..graphs import binary, heat_kernel, scaled_weights
from ..neighbors import EXACT, Searcher, closest_listed
from ..scatter import RowSpace, span_basis, triangular_factor
from .search import Lists, nearest, partition
from .table import Block, Table

BYTES_PER_NEIGHBOR = 100  # 16 in a list, 24 sent to other blocks, up to 48 in the edges


@dataclass
class ClusterRows(Table):
    """The counterpart of `nearkin.estimators.Rows` for Dask arrays with p <= n.

    A graph is a list of futures: for each block, its rows of W (b, n).

    Attributes
    ----------
    search : Searcher
        EXACT or an IVFSearch, which says how blocks are searched.
    """

    search: Searcher = EXACT
    n_complement: int = 0

    def _knn(self, relation: str, k: Any) -> list[Future]:
        """Return the distances to the k nearest rows, (b, n) for every block."""
        self._require_memory(relation, int(np.max(k)))
        partition(self, self.search)
        return self.work.map(as_matrix, nearest(self, relation, k), n=self.shape[0])

    def _require_memory(self, relation: str, k: int) -> None:
        """Raise a MemoryError if k neighbours of every row are too many for the workers.

        A worker holds some blocks at once, and keeps the others on its disk.
        """
        memory = self.work.memory()
        if not memory:
            return
        block, n = int(np.diff(self.starts).max()), self.shape[0]
        needed = BYTES_PER_NEIGHBOR * k * np.array([block, n], float)
        allowed = np.array([min(memory) / 4, 4 * sum(memory)])
        if (needed > allowed).any():
            of_block, of_all = map(human_bytes, needed)
            quarter, four_times = map(human_bytes, allowed)
            raise MemoryError(
                f"Up to {k} neighbours ({relation}) of each of {n} rows need about {of_block} for "
                f"the largest block, of {block} rows, and {of_all} for all. Allowed are {quarter} "
                f"for a block, a quarter of a worker's memory, and {four_times} for all, four "
                "times that of all workers: request fewer, e.g. n_neighbors_within=10, cut X into "
                "smaller blocks, or give the workers more memory."
            )

    def _symmetric(self, W: list[Future], join: str) -> list[Future]:
        """Combine both directions of a graph by `join` of the weights.

        `join` is "maximum", "minimum" or the sum ("__add__").
        """
        graph = []
        for own, (start, stop) in zip(W, pairwise(self.starts), strict=True):
            # for each row from `start` to `stop`: which rows of a block list it
            columns = self.work.map(
                lambda W, start, stop: csr_array(W[:, start:stop].T), W, start=start, stop=stop
            )
            graph.append(self.work.submit(join_directions, own, columns, join=join))
        return graph

    def union_knn(self, relation: str, k: Any, weights: str = "binary") -> list[Future]:
        """See `Rows`."""
        G = self._knn(relation, k)
        if weights == "binary":
            W = self.work.map(binary, G)
        else:
            # for each block, the sum of squared distances to listed neighbours, and their number
            lengths = self.work.map(
                lambda G: np.array([np.square(G.data, dtype=np.float64).sum(), G.nnz]), G
            )
            total, count = self.work.total(lengths)
            W = self.work.map(heat_kernel, G, bandwidth=total / count)
        return self._symmetric(W, "maximum")

    def mutual_knn(self, relation: str, k: Any) -> list[Future]:
        """See `Rows`."""
        return self._symmetric(self.work.map(binary, self._knn(relation, k)), "minimum")

    def mean_knn(self, relation: str, k: Any) -> list[Future]:
        """See `Rows`."""
        W = self.work.map(binary, self._knn(relation, k))
        n_pairs = self.work.total(self.work.map(csr_array.count_nonzero, W))
        both = self._symmetric(W, "__add__")
        return self.work.map(lambda W: W / max(n_pairs, 1), both)

    def closest_pairs(self, k: int) -> list[Future]:
        """See `Rows`."""
        parts = self.map(lambda block, G: closest([(block.codes, G)], k=k), self._knn("other", k))
        pairs = self.work.reduce(parts, partial(closest, k=k))
        graph = self.map(
            lambda block, pairs: binary(pairs[1][block.start : block.start + len(block.X)]),
            pairs=pairs,
        )
        return self._symmetric(graph, "maximum")

    def scatter(self, graph: list[Future]) -> np.ndarray:
        """See `Rows`.

        The scatter is summed edge by edge from differences, so for a feature that differs along no
        edge it is exactly 0, whatever the distance between components of the graph. This takes
        O(e p^2) time for e edges; up to n p / 2 numbers travel per block, to the blocks connected
        to it.
        """
        reached = self.work.map(adjacent_blocks, graph, starts=self.starts)
        adjacent = np.array(self.work.results(reached))
        np.fill_diagonal(adjacent, True)  # every block contributes
        S = self._sum_over_pairs(adjacent, add_differences, [self.blocks, graph], [self.blocks])
        return (S + S.T) / 2

    def scatter_operator(self, graph: list[Future]) -> LinearOperator:
        """See `Rows`."""
        return aslinearoperator(self.scatter(graph))

    def degrees(self, graph: list[Future]) -> list[Future]:
        """See `Rows`."""
        return self.work.map(csr_array.sum, graph, axis=1)

    def span_basis(self) -> np.ndarray:
        """See `Rows`."""
        factors = self.map(
            lambda block: triangular_factor([np.hstack([np.ones((len(block.X), 1)), block.X])])
        )
        return span_basis(self.work.total(factors, triangular_factor), self.mean)

    def local_fisher_scatters(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`.

        Let m_c and m be the means of class c and of all rows, and w_ij = a_ij / n_c the weights of
        S_w. S_b is the sum over classes of n_c (m_c - m)(m_c - m)', plus the scatter with the
        weights (1 - n_c/n)(1/n_c - w_ij) within classes, which are nonnegative. This takes
        O(p sum_c n_c^2) time; n p / 2 numbers travel per block.
        """
        # the distance of every row to its farthest listed neighbour, 0 if there is none
        scales = self.work.map(lambda G: G.max(axis=1).toarray().ravel(), self._knn("same", k))
        n_c = self.class_sizes
        rows = [self.blocks, scales]
        means = self.class_means()
        every = np.ones(2 * (len(scales),), dtype=bool)
        S = self._sum_over_pairs(every, add_local_pairs, rows, rows, means=means, class_sizes=n_c)
        S_w, S_b = (S + S.swapaxes(1, 2)) / 2
        return S_w, S_b + self.between_scatter()

    def _sum_over_pairs(
        self, adjacent: np.ndarray, task: Callable, of_a: list, of_b: list, **how: Any
    ) -> np.ndarray:
        """Return the sum of a task's results over pairs of adjacent blocks a <= b.

        `of_a` and `of_b` are lists of what the task needs of each block. In round b, the blocks up
        to b meet block b, so few blocks are in use at a time.
        """
        parts: list[Any] = [0.0] * len(adjacent)
        for b in range(len(adjacent)):
            meeting = np.flatnonzero(adjacent[: b + 1, b]).tolist()
            arguments = [[part[a] for a in meeting] for part in (parts, *of_a)]
            arguments += [[part[b]] * len(meeting) for part in of_b]
            for a, part in zip(meeting, self.work.map(task, *arguments, **how), strict=True):
                parts[a] = part
        return self.work.total(parts)

    def pair_covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`."""
        n = self.shape[0]
        n_c = self.class_sizes
        S, others = (self.within_scatter(w) for w in (n_c, n - n_c))
        D = others + n * self.between_scatter()
        return S / max(n_c @ (n_c - 1) / 2, 1), D / max(n_c @ (n - n_c) / 2, 1)

    def back_project(self, V: np.ndarray) -> np.ndarray:
        """See `Rows`."""
        return RowSpace(None).back_project(V)


# Tasks on graphs: W (b, n) holds the rows of a block, as a csr_array of weights or distances to all
# n rows.


def as_matrix(lists: Lists, *, n: int) -> csr_array:
    """Return the lists of a block as a distance matrix (b, n); duplicates are explicit zeros."""
    listed = lists.neighbors >= 0
    indptr = np.concatenate(([0], np.cumsum(listed.sum(axis=1))))
    entries = lists.distances[listed], lists.neighbors[listed], indptr
    G = csr_array(entries, shape=(len(listed), n))
    G.sort_indices()
    return G


def join_directions(W: csr_array, transposed: list[csr_array], *, join: str) -> csr_array:
    """Return rows of a symmetric graph, from the rows that they list and those that list them."""
    return getattr(W, join)(hstack(transposed, format="csr"))


def adjacent_blocks(W: csr_array, *, starts: list[int]) -> np.ndarray:
    """Return, for every block, whether some edge leads to its rows."""
    reached = np.searchsorted(starts, np.unique(W.indices), side="right") - 1
    return np.isin(np.arange(len(starts) - 1), reached)


def closest(parts: list[tuple[np.ndarray, csr_array]], *, k: int) -> tuple[np.ndarray, csr_array]:
    """Return the classes of rows of some blocks, and the k closest listed pairs of each class."""
    codes = np.concatenate([codes for codes, _ in parts])
    return codes, closest_listed(vstack([G for _, G in parts], format="csr"), codes, k)


def add_differences(S: Any, block: Block, W: csr_array, others: Block) -> np.ndarray:
    """Add the edges between two blocks, or within one, to the scatter S."""
    edges = W[:, others.start : others.start + len(others.X)].tocoo()
    once = np.flatnonzero(block.start + edges.row < others.start + edges.col)
    p = block.X.shape[1]
    S = S + np.zeros((p, p))
    for some in row_blocks(len(once), p):
        e = once[some]
        D = block.X[edges.row[e]].astype(np.float64) - others.X[edges.col[e]]
        S += (D.T * edges.data[e]) @ D
    return S


def add_local_pairs(
    S: Any,
    block: Block,
    s: np.ndarray,
    others: Block,
    t: np.ndarray,
    *,
    means: np.ndarray,
    class_sizes: np.ndarray,
) -> np.ndarray:
    """Add the same-class pairs between two blocks, or within one, to LFDA's S_w and S_b (2, p, p).

    s and t are the local scales of their rows.
    """
    S = S + np.zeros((2, *2 * means.shape[1:]))
    once = 0.5 if block.start == others.start else 1.0
    for c in np.intersect1d(block.codes, others.codes):
        members = np.flatnonzero(block.codes == c)
        j = np.flatnonzero(others.codes == c)
        n_c = class_sizes[c]
        for some in row_blocks(len(members), len(j)):
            i = members[some]
            squared = euclidean_distances(block.X[i], others.X[j], squared=True)
            W = once * (scaled_weights(squared, np.outer(s[i], t[j])) / n_c)
            X = block.X[i] - means[c]
            Y = others.X[j] - means[c]
            S[0] += _pair_scatter(X, Y, W)
            S[1] += (1 - n_c / class_sizes.sum()) * _pair_scatter(X, Y, once / n_c - W)
    return S


def _pair_scatter(X: np.ndarray, Y: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return `sum_ij w_ij (x_i - y_j)(x_i - y_j)'`."""
    products = X.T @ W @ Y
    return (X.T * W.sum(axis=1)) @ X + (Y.T * W.sum(axis=0)) @ Y - products - products.T
