"""Who is near whom: the k nearest rows overall, of the same class, of the other classes; the closest pairs of classes.

Every search here is scikit-learn's exact one (multi-threaded, blocked, deterministic). What this module adds is the
class: a neighbour list is a row of a sparse matrix, `G[i, j]` is the distance from row i to its neighbour j.

* A row is never its own neighbour, even among exact duplicates.
* Where fewer rows exist than were asked for, all of them are listed. A class of one row has no kin: its list is empty.
* Which of several tied rows is taken is unspecified, but the same for the same input.

Cost: `nearest` compares n^2 pairs, `nearest_same_class` sum_c n_c^2, `nearest_other_class` at most n^2; none holds an
n x n array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from ._array import as_rows, centre, densified, encode_labels, row_blocks
from ._memory import require_memory

# A class of at most this many rows finds its strangers by searching among all rows and leaving its own out; a larger
# class searches its complement, whose copy is then small beside the search. scikit-learn's search costs the same for
# 2 and for 64 neighbours.
SMALL_CLASS = 64
BYTES_PER_PAIR = 45  # measured peak of `closest_pairs`, for one listed neighbour


def nearest(X: Any, n_neighbors: Any) -> csr_array:
    """Return the k nearest rows of every row.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Rows; float32 is kept.
    n_neighbors : int or array of shape (n,)
        k, for all rows or for each.

    Returns
    -------
    G : csr_array of shape (n, n)
        Euclidean distances to the neighbours, nearest first in each row; duplicates are explicit zeros.

    Raises
    ------
    TypeError
        If X is a Dask collection or a torch tensor.
    ValueError
        If X is no finite numeric table, or k is negative.
    """
    X, k = _prepare(X, n_neighbors)
    everybody = np.arange(len(k))
    lists = _NeighborLists(np.minimum(k, len(k) - 1), X.dtype)
    lists.search(X, everybody, everybody, k.max() + 1, lambda i, j: i != j)
    return lists.to_csr()


def nearest_same_class(X: Any, y: Any, n_neighbors: Any) -> csr_array:
    """Return, for every row, its k nearest rows of the same class; see `nearest` for X, k, result and errors.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any kind.
    n_neighbors : int or array of shape (n,)
    """
    X, k, codes, sizes = _prepare_classes(X, y, n_neighbors)
    lists = _NeighborLists(np.minimum(k, sizes[codes] - 1), X.dtype)
    classes = _members(codes)
    with threadpool_limits(1):  # to wake threads for a handful of rows costs more than the search
        for members in classes:
            if len(members) <= SMALL_CLASS:
                lists.search(X, members, members, k[members].max() + 1, lambda i, j: i != j)
    for members in classes:
        if len(members) > SMALL_CLASS:
            lists.search(X, members, members, k[members].max() + 1, lambda i, j: i != j)
    return lists.to_csr()


def nearest_other_class(X: Any, y: Any, n_neighbors: Any) -> csr_array:
    """Return, for every row, its k nearest rows among all other classes; see `nearest` for X, k, result and errors.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any kind.
    n_neighbors : int or array of shape (n,)
    """
    X, k, codes, sizes = _prepare_classes(X, y, n_neighbors)
    lists = _NeighborLists(np.minimum(k, len(codes) - sizes[codes]), X.dtype)

    def strangers(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return codes[i] != codes[j]

    everybody = np.arange(len(codes))
    small = sizes[codes] <= SMALL_CLASS
    if small.any():
        # Among the k + n_c nearest at most n_c are kin, so at least k are strangers.
        lists.search(X, everybody[small], everybody, (k + sizes[codes])[small].max(), strangers)
    for c in np.flatnonzero(sizes > SMALL_CLASS):
        members, others = everybody[codes == c], everybody[codes != c]
        lists.search(X, members, others, k[members].max(), strangers)
    return lists.to_csr()


def closest_pairs(X: Any, y: Any, n_pairs: int) -> csr_array:
    """Return, for every class, the closest pairs of a row in it and a row of another class.

    The k closest pairs of a class are among the k nearest strangers of its rows: where a pair is missing there, k
    closer ones of the same row are not.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any kind.
    n_pairs : int
        k, for every class.

    Returns
    -------
    G : csr_array of shape (n, n)
        Distances from the row in the class to the row outside, nearest first in each row. A pair that is among the
        closest of both its classes is listed from both sides.

    Raises
    ------
    MemoryError
        If k strangers of every row would not fit into the memory that is free.
    """
    codes = encode_labels(y)[1]
    listed = np.minimum(n_pairs, len(codes) - np.bincount(codes))[codes]
    require_memory(
        BYTES_PER_PAIR * float(listed.sum()),
        f"The search for {n_pairs} closest pairs of classes among {len(codes)} rows",
        "lower n_pairs, e.g. to 20",
    )
    G = nearest_other_class(X, y, listed)
    row = np.repeat(np.arange(len(codes)), np.diff(G.indptr))
    by_class = np.lexsort((G.data, codes[row]))
    n_listed = np.bincount(codes[row])
    place = np.arange(len(row)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    kept = np.sort(by_class[place < n_pairs])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row[kept], minlength=len(codes)))))
    return csr_array((G.data[kept], G.indices[kept], indptr), shape=G.shape)


class _NeighborLists:
    """Lists of known lengths, filled in any order of rows and read out as one sparse matrix."""

    def __init__(self, lengths: np.ndarray, dtype: np.dtype) -> None:
        self.lengths = lengths
        self.indptr = np.concatenate(([0], np.cumsum(lengths)))
        # int32 as long as it can count the entries: half the memory
        self.indices = np.empty(self.indptr[-1], np.int32 if self.indptr[-1] < 2**31 else np.int64)
        self.distances = np.empty(self.indptr[-1], dtype)

    def search(
        self,
        X: Any,
        queries: np.ndarray,
        candidates: np.ndarray,
        n_found: int,
        allowed: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> None:
        """Fill the lists of the `queries` with the nearest `candidates` j for which `allowed(i, j)`.

        `n_found` candidates are looked at for a query: enough for its list whatever is not allowed among them.
        """
        n_found = min(int(n_found), len(candidates))
        if not self.lengths[queries].any():
            return
        with config_context(assume_finite=True):
            index = NearestNeighbors(algorithm="brute").fit(X[candidates])
            for block in row_blocks(len(queries), n_found):
                rows = queries[block]
                distances, found = index.kneighbors(X[rows], n_neighbors=n_found)
                found = candidates[found]
                keep = allowed(rows[:, None], found)
                keep &= np.cumsum(keep, axis=1) <= self.lengths[rows][:, None]
                self._put(rows, found[keep], distances[keep])

    def _put(self, rows: np.ndarray, neighbors: np.ndarray, distances: np.ndarray) -> None:
        lengths = self.lengths[rows]
        position_in_list = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = np.repeat(self.indptr[rows], lengths) + position_in_list
        self.indices[at] = neighbors
        self.distances[at] = distances

    def to_csr(self) -> csr_array:
        n = len(self.lengths)
        return csr_array((self.distances, self.indices, self.indptr.astype(self.indices.dtype)), shape=(n, n))


def _prepare(X: Any, n_neighbors: Any) -> tuple[Any, np.ndarray]:
    """Validate; move dense X to its centre, because distances far from the origin cancel."""
    X = densified(as_rows(X))
    X = X if issparse(X) else centre(X).astype(X.dtype, copy=False)
    k = np.broadcast_to(np.asarray(n_neighbors), X.shape[0])
    if not np.issubdtype(k.dtype, np.integer) or k.min() < 0:
        raise ValueError(f"n_neighbors must be integers of at least 0, got {n_neighbors!r}.")
    return X, k


def _prepare_classes(X: Any, y: Any, n_neighbors: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    X, k = _prepare(X, n_neighbors)
    _, codes = encode_labels(y)
    if len(codes) != X.shape[0]:
        raise ValueError(f"y has {len(codes)} labels for the {X.shape[0]} rows of X.")
    return X, k, codes, np.bincount(codes)


def _members(codes: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each class, by one sort: 10,000 classes must not cost 10,000 scans."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])
