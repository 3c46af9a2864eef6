"""Rows that are candidates for neighbours: targets of the same class, the nearest in an embedding, some far ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..neighbors import EXACT, Searcher, nearest, nearest_same_class
from ..objectives.candidates import with_same_class

N_NEAR, N_FAR = 50, 500


def target_neighbors(Z: Any, codes: np.ndarray, k: int, search: Searcher = EXACT) -> np.ndarray:
    """Return the k nearest rows of the same class of every row, shape (n, k or fewer); its own number for none."""
    graph = nearest_same_class(Z, codes, k, search)
    lengths = np.diff(graph.indptr)
    width = max(1, lengths.max())
    targets = np.repeat(np.arange(len(codes), dtype=graph.indices.dtype)[:, None], width, axis=1)
    targets[np.arange(width) < lengths[:, None]] = graph.indices
    return targets


def near_rows(Z: np.ndarray, k: int, codes: np.ndarray | None, search: Searcher) -> np.ndarray:
    """Return the numbers of the k nearest rows of every row, shape (n, k).

    With classes there is a column more, without which g cannot do: the nearest row of the same class, or the row itself
    where it is listed already, or there is none.
    """
    near = nearest(Z, k, search).indices.reshape(len(Z), k)
    if codes is None:
        return near
    return with_same_class(near, target_neighbors(Z, codes, 1, search)[:, 0], np.arange(len(Z), dtype=near.dtype))


def near_rows_of(anchors: np.ndarray, Z: np.ndarray, k: int, codes: np.ndarray | None) -> np.ndarray:
    """Return what `near_rows` does for some rows only, by an exact search among all."""
    near = _nearest_to(anchors, np.arange(len(Z)), Z, k)
    if codes is None:
        return near
    same = anchors.copy()
    by_class = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[by_class], [codes[anchors], codes[anchors] + 1])
    for start, stop in np.unique(bounds, axis=1).T:
        queries = (bounds[0] == start) & (stop - start > 1)
        if queries.any():
            same[queries] = _nearest_to(anchors[queries], by_class[start:stop], Z, 1)[:, 0]
    return with_same_class(near, same, anchors)


def _nearest_to(queries: np.ndarray, among: np.ndarray, Z: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest to some rows among rows that include them, themselves left out."""
    index = NearestNeighbors(algorithm="brute").fit(Z if len(among) == len(Z) else Z[among])
    found = among[index.kneighbors(Z[queries], n_neighbors=k + 1, return_distance=False)]
    own = found == queries[:, None]
    own[~own.any(axis=1), -1] = True  # of many duplicates the row itself may not be listed
    return found[~own].reshape(len(queries), k)
