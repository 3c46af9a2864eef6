"""Neighbour lists: the k nearest of all rows, of the same class, of other classes; closest pairs.

They are found by an exact search, by a transformer, or among given distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors, sort_graph_by_row_values

from .._blocks import densified, near_origin, row_blocks
from .._labels import encode_labels
from .._memory import require_memory
from .._messages import warn_user
from .._threads import blas_in_one_thread, in_one_thread
from .._validation import as_rows, check_array, check_consistent_length

# which rows may be neighbours, and what they are called in messages
RELATIONS = {"all": "all", "same": "same class", "other": "other classes"}

# For a class of at most this many rows, neighbours of other classes are searched among all rows,
# and its own rows are dropped. For a larger class they are searched among its complement, whose
# copy is then cheap relative to the search. scikit-learn's search takes as long for 2 neighbours as
# for 64.
SMALL_CLASS = 64
BYTES_PER_NEIGHBOR = 45  # measured peak of a search, its symmetric graph and the Laplacian

# a function of queries (b, p) and k: distances to the k nearest rows, nearest first, and their
# indices, both (b, k)
Index = Callable[[Any, int], tuple[np.ndarray, np.ndarray]]


class Searcher(Protocol):
    """Interface for finding neighbours.

    Attributes
    ----------
    name : str
        `search_` of an estimator.
    """

    name: str

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: str) -> csr_array:
        """Return G like `nearest`, with the `lengths[i]` nearest rows of row i in a relation to it.

        The relation is "all", "same" or "other".
        """

    def index(self, X: Any, n_found: int) -> Index:
        """Return an index over rows, for up to `n_found` neighbours of new queries."""


class Indexed:
    """Search with an index over some of the rows: a class, its complement, or all.

    Parameters
    ----------
    index_of : function of rows (n, p) and k
        Returns an index over the rows: a function of queries (b, p) and k that returns distances
        and indices of the k nearest rows (b, k), nearest first.
    name : str
    """

    def __init__(self, index_of: Callable[[Any, int], Index], name: str) -> None:
        self.index, self.name = index_of, name

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: str) -> csr_array:
        """Return G like `nearest`.

        Dense X is shifted near its mean; far from the origin, distances would lose precision.
        """
        X = X if issparse(X) else near_origin(X)
        lists = NeighborLists(lengths, X.dtype)
        for queries, candidates, n_found in plan(codes, codes, lengths, relation):
            with config_context(assume_finite=True):
                index = self.index(X[candidates] if len(candidates) < X.shape[0] else X, n_found)
                for block in row_blocks(len(queries), n_found):
                    rows = queries[block]
                    distances, found = index(X[rows], n_found)
                    found = candidates[found]
                    lists.put(
                        rows, found, distances, related(codes, rows[:, None], found, relation)
                    )
        return lists.to_csr()


def plan(
    codes: np.ndarray, others: np.ndarray, lengths: np.ndarray, relation: str, n_own: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield queries, candidates, and how many of the candidates to find.

    That many fill the queries' lists, even if all candidates outside the relation are found first.

    Parameters
    ----------
    codes, others : integer arrays of shape (q,) and (c,)
        The classes of all queries and of all candidates.
    lengths : integer array of shape (q,)
    relation : {"all", "same", "other"}
    n_own : {0, 1}
        Whether a query is among its candidates.
    """
    every = np.arange(len(others))
    if relation == "all":
        parts = iter([(np.arange(len(codes)), every, lengths + n_own)])
    elif relation == "same":
        with_own = lengths + n_own
        # a class without candidates, or without queries, is not searched
        classes = zip(members_of(codes), members_of(others), strict=False)
        parts = ((i, j, with_own) for i, j in classes)
    else:
        n_same = np.bincount(others, minlength=codes.max() + 1)[codes]
        small = n_same <= SMALL_CLASS
        # among the k + n_c nearest, at most n_c are of class c: at least k are of other classes
        among_all = (np.flatnonzero(small), every, lengths + n_same)
        large = np.unique(codes[~small])
        among_others = ((np.flatnonzero(codes == c), every[others != c], lengths) for c in large)
        parts = chain([among_all], among_others)
    for queries, candidates, enough in parts:
        queries = queries[lengths[queries] > 0]
        if len(queries) and len(candidates):
            yield queries, candidates, min(int(enough[queries].max()), len(candidates))


def exact_index(X: Any, n_found: int) -> Index:
    """Return scikit-learn's exact search.

    It limits the threads of BLAS, too, and restores what it found: our limit has to be around it.
    For a handful of rows, waking threads would cost more than the search.
    """
    index = NearestNeighbors(algorithm="brute", n_neighbors=n_found).fit(X)
    limited = in_one_thread() if X.shape[0] <= SMALL_CLASS else blas_in_one_thread()
    return limited(index.kneighbors)


EXACT = Indexed(exact_index, "exact")


def nearest(X: Any, n_neighbors: Any, search: Searcher = EXACT) -> csr_array:
    """Return the k nearest rows of every row.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Rows; float32 is kept.
    n_neighbors : int or array of shape (n,)
        k, for all rows or for each.
    search : Searcher
        How to find them, see `searcher`; by default exactly.

    Returns
    -------
    G : csr_array of shape (n, n)
        Euclidean distances to the neighbours, nearest first in each row; duplicates are explicit
        zeros.

    Raises
    ------
    MemoryError
        If k neighbours of every row would not fit into the free memory.
    ValueError
        If `n_neighbors` does not consist of integers of at least 0.

    Notes
    -----
    The exact search compares n^2 pairs.
    """
    return _nearest(X, None, n_neighbors, "all", search)


def nearest_same_class(X: Any, y: Any, n_neighbors: Any, search: Searcher = EXACT) -> csr_array:
    """Return the k nearest rows of the same class for every row; see also `nearest`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any kind.
    n_neighbors : int or array of shape (n,)
    search : Searcher

    Notes
    -----
    The exact search compares sum_c n_c^2 pairs.
    """
    return _nearest(X, y, n_neighbors, "same", search)


def nearest_other_class(X: Any, y: Any, n_neighbors: Any, search: Searcher = EXACT) -> csr_array:
    """Return the k nearest rows of all other classes for every row; see also `nearest`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any kind.
    n_neighbors : int or array of shape (n,)
    search : Searcher

    Notes
    -----
    The exact search compares at most n^2 pairs.
    """
    return _nearest(X, y, n_neighbors, "other", search)


def closest_pairs(X: Any, y: Any, n_pairs: int, search: Searcher = EXACT) -> csr_array:
    """Return, for every class, the closest pairs of a row in it and a row of another class.

    The k closest pairs of a class are among the pairs of its rows and their k nearest rows of other
    classes: if a pair is missing there, k closer pairs of the same row are present.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any kind.
    n_pairs : int
        k, for every class.
    search : Searcher

    Returns
    -------
    G : csr_array of shape (n, n)
        Distances from the row in the class to the row outside, nearest first in each row. A pair
        that is among the closest of both its classes is listed for both rows.
    """
    return closest_listed(nearest_other_class(X, y, n_pairs, search), encode_labels(y)[1], n_pairs)


def _nearest(X: Any, y: Any, n_neighbors: Any, relation: str, search: Searcher) -> csr_array:
    X = as_rows(X)
    codes = None if y is None else encode_labels(y)[1]
    check_consistent_length(X, codes)
    k = np.asarray(n_neighbors)
    if not np.issubdtype(k.dtype, np.integer) or k.min() < 0:
        raise ValueError(f"n_neighbors must be integers of at least 0, got {n_neighbors!r}.")
    return neighbor_lists(X, codes, k, relation, search)


def neighbor_lists(
    X: Any, codes: Any, n_neighbors: Any, relation: str, search: Searcher
) -> csr_array:
    """Return the result of `nearest` and its variants, for valid rows and class codes 0, 1, ...

    The codes do not matter, and may be None, if the relation is "all".
    """
    X = densified(X)
    codes = np.zeros(X.shape[0], dtype=np.intp) if relation == "all" else codes
    sizes = np.bincount(codes)
    most = len(codes) - sizes[codes] if relation == "other" else sizes[codes] - 1
    lengths = np.minimum(n_neighbors, most)
    require_memory(
        BYTES_PER_NEIGHBOR * float(lengths.sum()),
        f"The search for up to {lengths.max()} neighbours ({RELATIONS[relation]}) of "
        f"{len(lengths)} rows",
        "lower the number of neighbours or of pairs",
    )
    return search.lists(X, codes, lengths, relation)


def transformed(transformer: Any, X: Any, n_found: int) -> Index:
    """Return an index over X that uses a clone of a transformer like KNeighborsTransformer."""
    if n_found == X.shape[0]:  # a transformer may search for one more, which does not exist
        return exact_index(X, n_found)
    fitted = clone(transformer).set_params(n_neighbors=n_found).fit(X)

    def index(Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        G = sort_graph_by_row_values(
            csr_array(fitted.transform(Q)), copy=True, warn_when_not_sorted=False
        )
        if (listed := np.diff(G.indptr).min()) < k:
            raise ValueError(
                f"search={transformer!r} found {listed} of {k} neighbours for a row: raise its "
                "accuracy, or take search='exact' or 'approximate'."
            )
        nearest = G.indptr[:-1, None] + np.arange(k)
        return G.data[nearest], G.indices[nearest]

    return index


class Listed:
    """Neighbours from given distances.

    Parameters
    ----------
    distances : array or sparse matrix of shape (n, n)
        Distances from each row to some others; explicit zeros are duplicates.
    n : int
    """

    name = "distances"

    def __init__(self, distances: Any, n: int) -> None:
        G = check_array(
            distances, accept_sparse="csr", dtype=(np.float64, np.float32), input_name="distances"
        )
        if G.shape != (n, n):
            raise ValueError(
                f"distances must be of shape ({n}, {n}), a distance for any pair of rows; got "
                f"{G.shape}."
            )
        if G.min() < 0:
            raise ValueError(f"distances must not be negative (smallest: {G.min():.3g}).")
        self.G = sort_graph_by_row_values(csr_array(G), copy=True, warn_when_not_sorted=False)

    def index(self, X: Any, n_found: int) -> Index:
        """Raise an error: distances to other rows are unknown."""
        raise ValueError(
            "distances are given between the rows of X only: other rows need a search."
        )

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: str) -> csr_array:
        """Return G like `nearest`, from the given distances; warn if there are too few."""
        row = np.repeat(np.arange(len(codes)), np.diff(self.G.indptr))
        others = related(codes, row, self.G.indices, relation) & (row != self.G.indices)
        G = first(entries(self.G, others), lengths)
        found = np.diff(G.indptr)
        lacking = found < lengths
        if lacking.any():
            i = lacking.argmax()
            warn_user(
                f"distances holds fewer neighbours ({RELATIONS[relation]}) than requested in "
                f"{lacking.sum()} rows (row {i}: {found[i]} of {lengths[i]}): those are used."
            )
        return G


class NeighborLists:
    """Lists of known lengths, filled in any order and returned as one sparse matrix."""

    def __init__(self, lengths: np.ndarray, dtype: np.dtype) -> None:
        self.lengths = lengths
        self.indptr = np.concatenate(([0], np.cumsum(lengths)))
        # int32, if it can count the entries, takes half the memory
        self.indices = np.empty(self.indptr[-1], np.int32 if self.indptr[-1] < 2**31 else np.int64)
        self.distances = np.empty(self.indptr[-1], dtype)

    def put(
        self, rows: np.ndarray, found: np.ndarray, distances: np.ndarray, allowed: np.ndarray
    ) -> None:
        """Fill the lists of some rows with the first allowed rows among those found.

        `found`, `distances` and `allowed` have shape (b, r), nearest first.
        """
        lengths = self.lengths[rows]
        kept = allowed & (np.cumsum(allowed, axis=1) <= lengths[:, None])
        at = np.repeat(self.indptr[rows], lengths) + places(lengths)
        self.indices[at] = found[kept]
        self.distances[at] = distances[kept]

    def to_csr(self) -> csr_array:
        """Return G of `nearest`."""
        n = len(self.lengths)
        return csr_array(
            (self.distances, self.indices, self.indptr.astype(self.indices.dtype)), shape=(n, n)
        )


def related(codes: np.ndarray, i: np.ndarray, j: np.ndarray, relation: str) -> np.ndarray:
    """Return, for pairs of rows, whether j may be a neighbour of i."""
    if relation == "other":
        return codes[i] != codes[j]
    return (i != j) & (codes[i] == codes[j])


def members_of(codes: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each class, by one sort: 10,000 classes must not cost 10,000 scans."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])


def places(lengths: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... for the entries of every list, concatenated."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def entries(G: csr_array, kept: np.ndarray) -> csr_array:
    """Return G with only the entries for which `kept` is true."""
    indptr = np.concatenate(([0], np.cumsum(kept)))[G.indptr]
    return csr_array((G.data[kept], G.indices[kept], indptr), shape=G.shape)


def first(G: csr_array, k: Any) -> csr_array:
    """Return the first k (or `k[i]`) neighbours of every list in G."""
    lengths = np.diff(G.indptr)
    fewer = np.minimum(lengths, k)
    if (fewer == lengths).all():
        return G
    return entries(G, places(lengths) < np.repeat(fewer, lengths))


def closest_listed(G: csr_array, codes: np.ndarray, n_pairs: int) -> csr_array:
    """Return the result of `closest_pairs`, given the nearest rows of other classes.

    G lists these, at least `n_pairs` for every row if there are so many; `codes` are class codes.
    """
    of_class = np.repeat(codes, np.diff(G.indptr))
    by_class = np.lexsort((G.data, of_class))
    kept = np.zeros(G.nnz, dtype=bool)
    kept[by_class] = places(np.bincount(of_class)) < n_pairs
    return entries(G, kept)
