"""The k nearest of all rows, of the same class, of other classes; the closest pairs of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_consistent_length

from .._blocks import densified, require_memory
from .._validation import as_rows, encode_labels
from .exact import EXACT, Relation, Searcher

BYTES_PER_NEIGHBOR = 45  # measured peak of a search, its symmetric graph and the Laplacian


def nearest(X: Any, n_neighbors: Any, search: Searcher = EXACT) -> csr_array:
    """Return the k nearest rows of every row.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Rows; float32 is kept.
    n_neighbors : int or array of shape (n,)
        k, for all rows or for each.
    search : Searcher
        How to find them, see `searcher`; exactly, by default.

    Returns
    -------
    G : csr_array of shape (n, n)
        Euclidean distances to the neighbours, nearest first in each row; duplicates are explicit
        zeros.

    Raises
    ------
    MemoryError
        If k neighbours of every row would not fit into the free memory.

    Notes
    -----
    The exact search compares n^2 pairs.
    """
    return _search(X, None, n_neighbors, Relation.ANY, search)


def nearest_same_class(X: Any, y: Any, n_neighbors: Any, search: Searcher = EXACT) -> csr_array:
    """Return, for every row, its k nearest rows of the same class; see `nearest` for the rest.

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
    return _search(X, encode_labels(y)[1], n_neighbors, Relation.SAME, search)


def nearest_other_class(X: Any, y: Any, n_neighbors: Any, search: Searcher = EXACT) -> csr_array:
    """Return, for every row, its k nearest rows among all other classes; see `nearest` for the
    rest.

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
    return _search(X, encode_labels(y)[1], n_neighbors, Relation.OTHER, search)


def closest_pairs(X: Any, y: Any, n_pairs: int, search: Searcher = EXACT) -> csr_array:
    """Return, for every class, the closest pairs of a row in it and a row of another class.

    The k closest pairs of a class are among the k nearest rows of other classes of its rows: where
    a pair is missing there, k closer ones of the same row are not.

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
        that is among the closest of both its classes is listed from both sides.
    """
    return closest_listed(nearest_other_class(X, y, n_pairs, search), encode_labels(y)[1], n_pairs)


def closest_listed(G: csr_array, codes: np.ndarray, n_pairs: int) -> csr_array:
    """Return what `closest_pairs` does, from the k nearest rows of other classes; codes number the
    classes.
    """
    row = np.repeat(np.arange(len(codes)), np.diff(G.indptr))
    by_class = np.lexsort((G.data, codes[row]))
    n_listed = np.bincount(codes[row], minlength=codes.max() + 1)
    place = np.arange(len(row)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    kept = np.sort(by_class[place < n_pairs])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row[kept], minlength=len(codes)))))
    return csr_array((G.data[kept], G.indices[kept], indptr), shape=G.shape)


def _search(
    X: Any, codes: Any, n_neighbors: Any, relation: Relation, search: Searcher
) -> csr_array:
    X = densified(as_rows(X))
    codes = np.zeros(X.shape[0], dtype=np.intp) if codes is None else codes
    check_consistent_length(X, codes)
    k = np.asarray(n_neighbors)
    if not np.issubdtype(k.dtype, np.integer) or k.min() < 0:
        raise ValueError(f"n_neighbors must be integers of at least 0, got {n_neighbors!r}.")
    sizes = np.bincount(codes)
    lengths = np.minimum(
        k, len(codes) - sizes[codes] if relation is Relation.OTHER else sizes[codes] - 1
    )
    require_memory(
        BYTES_PER_NEIGHBOR * float(lengths.sum()),
        f"The search for up to {lengths.max()} neighbours ({relation.value}) of "
        f"{len(lengths)} rows",
        "request fewer, e.g. n_neighbors_within=10 or n_pairs=20",
    )
    return search.lists(X, codes, lengths, relation)
