"""Which rows NCA's neighbours are drawn from, where they are not drawn from all: the nearest in an embedding."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..neighbors import EXACT, Searcher, nearest, nearest_same_class


def near_rows(Z: np.ndarray, k: int, kin: np.ndarray | None = None, search: Searcher = EXACT) -> np.ndarray:
    """Return the numbers of the k nearest rows of every row, shape (n, k).

    With the codes of classes in `kin` there is a column more: the nearest row of the same class, or the row itself
    where it is listed already, or there is none.
    """
    near = nearest(Z, k, search).indices.reshape(len(Z), k)
    if kin is None:
        return near
    graph = nearest_same_class(Z, kin, 1, search)
    own = np.arange(len(Z), dtype=near.dtype)
    of_kin = own.copy()
    of_kin[np.diff(graph.indptr) > 0] = graph.indices
    return _beside(near, of_kin, own)


def near_rows_of(some: np.ndarray, Z: np.ndarray, k: int, kin: np.ndarray | None = None) -> np.ndarray:
    """Return what `near_rows` does for some rows only, by an exact search among all."""
    near = _found(some, np.arange(len(Z)), Z, k)
    if kin is None:
        return near
    of_kin = some.copy()
    by_class = np.argsort(kin, kind="stable")
    bounds = np.searchsorted(kin[by_class], [kin[some], kin[some] + 1])
    for start, end in np.unique(bounds, axis=1).T:
        asked = (bounds[0] == start) & (end - start > 1)
        if asked.any():
            of_kin[asked] = _found(some[asked], by_class[start:end], Z, 1)[:, 0]
    return _beside(near, of_kin, some)


def _found(some: np.ndarray, among: np.ndarray, Z: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest to some rows among others that hold them, themselves left out."""
    index = NearestNeighbors(algorithm="brute").fit(Z if len(among) == len(Z) else Z[among])
    found = among[index.kneighbors(Z[some], n_neighbors=k + 1, return_distance=False)]
    own = found == some[:, None]
    own[~own.any(axis=1), -1] = True  # of many duplicates the row itself may not be listed
    return found[~own].reshape(len(some), k)


def _beside(near: np.ndarray, of_kin: np.ndarray, own: np.ndarray) -> np.ndarray:
    return np.column_stack([near, np.where((near == of_kin[:, None]).any(axis=1), own, of_kin)])
