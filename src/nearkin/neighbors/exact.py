"""Searchers: exact search in each class, by a transformer, or among distances that are given."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors, sort_graph_by_row_values
from sklearn.utils.validation import check_array

from .._blocks import near_origin, row_blocks, thread_pools
from .._messages import warn_user

# For a class of at most this many rows, neighbours of other classes are searched among all rows and
# its own left out; for a larger one among its complement, whose copy then costs little beside the
# search. scikit-learn's search takes as long for 2 neighbours as for 64.
SMALL_CLASS = 64


class Relation(enum.Enum):
    """Which rows may be neighbours."""

    ANY = "all"
    SAME = "same class"
    OTHER = "other classes"

    def holds(self, codes: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Say for pairs of rows whether j may be a neighbour of i."""
        if self is Relation.OTHER:
            return codes[i] != codes[j]
        return (i != j) & (codes[i] == codes[j])


# Of queries (b, p) and k: distances to the k nearest rows, nearest first, and their numbers, (b,
# k).
Index = Callable[[Any, int], tuple[np.ndarray, np.ndarray]]


class Searcher(Protocol):
    """What finds neighbours.

    Attributes
    ----------
    name : str
        `search_` of an estimator.
    recall : dict of str to float, or None
        The share of the true neighbours that was found, by relation, where it was measured.
    """

    name: str
    recall: dict[str, float] | None

    def lists(
        self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: Relation
    ) -> csr_array:
        """Return G as `nearest` does: the `lengths[i]` nearest rows of row i that are in the
        relation to it.
        """

    def index(self, X: Any, n_found: int) -> Index:
        """Return an index over rows, for up to `n_found` neighbours of queries that are not among
        them.
        """


class NeighborLists:
    """Lists of known lengths, filled in any order of rows and read out as one sparse matrix."""

    def __init__(self, lengths: np.ndarray, dtype: np.dtype) -> None:
        self.lengths = lengths
        self.indptr = np.concatenate(([0], np.cumsum(lengths)))
        # int32 as long as it can count the entries: half the memory
        self.indices = np.empty(self.indptr[-1], np.int32 if self.indptr[-1] < 2**31 else np.int64)
        self.distances = np.empty(self.indptr[-1], dtype)

    def put(
        self, rows: np.ndarray, found: np.ndarray, distances: np.ndarray, allowed: np.ndarray
    ) -> None:
        """Fill the lists of some rows with the first that are allowed of those found, nearest first
        (b, r).
        """
        kept = allowed & (np.cumsum(allowed, axis=1) <= self.lengths[rows][:, None])
        lengths = self.lengths[rows]
        position_in_list = np.arange(lengths.sum()) - np.repeat(
            np.cumsum(lengths) - lengths, lengths
        )
        at = np.repeat(self.indptr[rows], lengths) + position_in_list
        self.indices[at] = found[kept]
        self.distances[at] = distances[kept]

    def to_csr(self) -> csr_array:
        """Return G."""
        n = len(self.lengths)
        return csr_array(
            (self.distances, self.indices, self.indptr.astype(self.indices.dtype)), shape=(n, n)
        )


class Indexed:
    """Search with an index over some of the rows: a class, its complement, all.

    Parameters
    ----------
    index_of : function of rows (n, p) and k
        Returns an index over the rows: a function of queries (b, p) and k that returns distances
        and numbers of the k nearest rows (b, k), nearest first.
    name : str
    """

    recall: dict[str, float] | None = None

    def __init__(self, index_of: Callable[[Any, int], Index], name: str) -> None:
        self.index, self.name = index_of, name

    def lists(
        self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: Relation
    ) -> csr_array:
        """Return G as `nearest` does; dense X is moved near its mean, far from which distances
        would cancel.
        """
        X = X if issparse(X) else near_origin(X)
        lists = NeighborLists(lengths, X.dtype)
        for queries, candidates, n_found in _plan(codes, lengths, relation):
            # for a handful of rows, waking threads costs more than the search
            with (
                thread_pools().limit(limits=1 if len(candidates) <= SMALL_CLASS else None),
                config_context(assume_finite=True),
            ):
                index = self.index(X[candidates] if len(candidates) < X.shape[0] else X, n_found)
                for block in row_blocks(len(queries), n_found):
                    rows = queries[block]
                    distances, found = index(X[rows], n_found)
                    found = candidates[found]
                    lists.put(rows, found, distances, relation.holds(codes, rows[:, None], found))
        return lists.to_csr()


def _plan(
    codes: np.ndarray, lengths: np.ndarray, relation: Relation
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield queries, candidates, and how many of these to find: enough for the lists, whatever is
    not allowed.
    """
    sizes, rows = np.bincount(codes), np.arange(len(codes))
    small = sizes[codes] <= SMALL_CLASS
    searches: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]
    if relation is Relation.OTHER:
        # among the k + n_c nearest at most n_c are of class c, so at least k are of others
        few = [(rows[small], rows, lengths + sizes[codes])]
        large = np.flatnonzero(sizes > SMALL_CLASS)
        searches = chain(few, ((rows[codes == c], rows[codes != c], lengths) for c in large))
    else:
        searches = ((members, members, lengths + 1) for members in members_of(codes))
    for queries, candidates, enough in searches:
        queries = queries[lengths[queries] > 0]
        if len(queries):
            yield queries, candidates, min(int(enough[queries].max()), len(candidates))


def _brute_force(X: Any, n_found: int) -> Index:
    return NearestNeighbors(algorithm="brute", n_neighbors=n_found).fit(X).kneighbors


EXACT = Indexed(_brute_force, "exact")


def transformed(transformer: Any, X: Any, n_found: int) -> Index:
    """Return an index over X by a clone of a transformer like scikit-learn's KNeighborsTransformer."""
    if n_found == X.shape[0]:  # all of them: a transformer may search one more
        return _brute_force(X, n_found)
    fitted = clone(transformer).set_params(n_neighbors=n_found).fit(X)

    def index(Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        G = sort_graph_by_row_values(
            csr_array(fitted.transform(Q)), copy=True, warn_when_not_sorted=False
        )
        if (listed := np.diff(G.indptr).min()) < k:
            raise ValueError(
                f"search={transformer!r} found {listed} of {k} neighbours for a row: raise "
                "its accuracy, or "
                "take search='exact' or 'approximate'."
            )
        first = G.indptr[:-1, None] + np.arange(k)
        return G.data[first], G.indices[first]

    return index


class Listed:
    """Neighbours from distances that are given.

    Parameters
    ----------
    distances : array or sparse matrix of shape (n, n)
        Distances from each row to some others; explicit zeros are duplicates.
    n : int
    """

    name = "distances"
    recall: dict[str, float] | None = None

    def __init__(self, distances: Any, n: int) -> None:
        G = check_array(
            distances, accept_sparse="csr", dtype=(np.float64, np.float32), input_name="distances"
        )
        if G.shape != (n, n):
            raise ValueError(
                f"distances must be of shape ({n}, {n}), a distance for any pair of rows; "
                f"got {G.shape}."
            )
        if G.min() < 0:
            raise ValueError(f"distances must not be negative (smallest: {G.min():.3g}).")
        G = sort_graph_by_row_values(csr_array(G), copy=True, warn_when_not_sorted=False)
        self.row, self.column, self.distance = (
            np.repeat(np.arange(n), np.diff(G.indptr)),
            G.indices,
            G.data,
        )

    def index(self, X: Any, n_found: int) -> Index:
        """Refuse: no distances to other rows are given."""
        raise ValueError(
            "distances are given between the rows of X only: other rows need a search."
        )

    def lists(
        self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: Relation
    ) -> csr_array:
        """Return G as `nearest` does, from the given distances; warn where these are too few."""
        allowed = np.flatnonzero(
            relation.holds(codes, self.row, self.column) & (self.row != self.column)
        )
        row = self.row[allowed]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        kept = allowed[place < lengths[row]]
        found = np.bincount(self.row[kept], minlength=len(codes))
        lacking = found < lengths
        if lacking.any():
            warn_user(
                f"distances holds fewer neighbours ({relation.value}) than requested in "
                f"{lacking.sum()} rows (row "
                f"{lacking.argmax()}: {found[lacking.argmax()]} of "
                f"{lengths[lacking.argmax()]}): those are used."
            )
        indptr = np.concatenate(([0], np.cumsum(found)))
        return csr_array(
            (self.distance[kept], self.column[kept], indptr), shape=(len(codes), len(codes))
        )


def members_of(codes: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each class, by one sort: 10,000 classes must not cost 10,000 scans."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])
