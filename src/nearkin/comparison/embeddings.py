"""Scores of an embedding: preserved neighbours, same-class neighbours, held-out accuracy.

A semi-supervised embedding moves labelled rows towards their class. Leave-one-out accuracy on these
rows only measures how well the method fits the labels, even random ones, and says nothing about new
rows. Therefore rows whose labels were used are scored separately from the others, and the argument
`labelled` has no default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import paired_euclidean_distances

from .._labels import encode_labels
from .._parameters import check_integer
from .._validation import as_rows, check_consistent_length
from ..neighbors import nearest
from .scores import CLASSIFICATION, Vote


@dataclass(frozen=True)
class Shares:
    """Shares of rows for K = 1, 2, ..., separately for rows whose labels were used and other rows.

    Attributes
    ----------
    used, unused : ndarray of shape (n_neighbors,)
        Shares between 0 and 1 among the rows whose labels were used, and among the others; NaN if
        there are no such rows.
    n_used, n_unused : int
        Number of rows of each kind.
    """

    used: np.ndarray
    unused: np.ndarray
    n_used: int
    n_unused: int


def neighborhood_preservation(
    X: Any, Z: Any, n_neighbors: int = 10, *, rows: Any = None
) -> np.ndarray:
    """Return, for every K, the share of rows whose nearest neighbour stays among their K nearest.

    K is 1, 2, ..., n_neighbors. This is the measure of figure 6 of Discriminative Projections. No
    labels are used.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Rows in their original space.
    Z : array or sparse matrix of shape (n, m)
        The same rows, embedded.
    n_neighbors : int, default=10
        Largest K, at most n - 1.
    rows : boolean mask of shape (n,) or array of row indices, default=None
        The rows to score, with neighbours among all rows; None takes all.

    Returns
    -------
    ndarray of shape (n_neighbors,)
        Shares between 0 and 1, nondecreasing in K. If several rows of X are equally near (to ten
        digits), each of them counts as the nearest neighbour. Ties between equally near rows of Z
        are broken arbitrarily.

    Notes
    -----
    Cost: two exact searches, n^2 (p + m), and n n_neighbors memory.
    """
    X, Z = as_rows(X), as_rows(Z)
    check_consistent_length(X, Z)
    rows = np.arange(X.shape[0])[slice(None) if rows is None else rows]
    if not len(rows):
        raise ValueError("rows selects no row: there is nothing to score.")
    J = np.column_stack([nearest(X, 1).indices, _neighbors(Z, n_neighbors)])[rows]
    X = X.astype(np.float64, copy=False)
    # computed from differences, so that the distance of duplicates is exactly 0
    smallest, *distances = (paired_euclidean_distances(X[rows], X[neighbors]) for neighbors in J.T)
    return _share_by_k(np.column_stack(distances) <= smallest[:, None] * (1 + 1e-10))


def same_class_among(Z: Any, y: Any, n_neighbors: int = 10, *, labelled: Any) -> Shares:
    """Return, for every K, the share of rows with a row of their class among their K nearest.

    K is 1, 2, ..., n_neighbors. This is the measure of figures 3 and 7 of Discriminative
    Projections, which do not separate rows whose labels were used from other rows.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, m)
        Embedded rows.
    y : array of shape (n,)
        The true class of every row, including rows whose labels were not used.
    n_neighbors : int, default=10
        Largest K, at most n - 1.
    labelled : boolean array of shape (n,)
        The rows whose labels were used to compute Z; `np.zeros(n, dtype=bool)` if there are none.

    Returns
    -------
    Shares
        Neighbours are searched among all rows, labelled or not. A row that is alone in its class
        never has a same-class neighbour.

    Notes
    -----
    Cost: one exact search, n^2 m, and n n_neighbors memory.
    """
    Z = as_rows(Z)
    codes, labelled = _truth(Z, y, labelled)
    same_class = codes[_neighbors(Z, n_neighbors)] == codes[:, None]
    used, unused = (_share_by_k(same_class[rows]) for rows in (labelled, ~labelled))
    return Shares(used, unused, int(labelled.sum()), int((~labelled).sum()))


def held_out_accuracy(
    Z: Any, y: Any, labelled: Any, n_neighbors: Sequence[int] = (1, 3, 5, 10)
) -> dict[int, float]:
    """Return the k-NN accuracy on rows whose labels were not used, for several k.

    The rows whose labels were used vote.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, m)
        Embedded rows.
    y : array of shape (n,)
        The true class of every row, including rows whose labels were not used.
    labelled : boolean array of shape (n,)
        The rows that vote: those whose labels were used to compute Z. All others are scored.
    n_neighbors : sequence of int, default=(1, 3, 5, 10)
        Values of k, at most the number of labelled rows.

    Returns
    -------
    dict of int to float
        The accuracy, between 0 and 1, for each k.

    Notes
    -----
    Cost: an exact search for each k, n_labelled n_unlabelled m.
    """
    Z = as_rows(Z)
    codes, labelled = _truth(Z, y, labelled)
    n_voters = int(labelled.sum())
    if not 0 < n_voters < len(codes):
        raise ValueError(
            f"labelled holds {n_voters} of {len(codes)} rows: some must vote and others be scored, "
            "hide some labels before the embedding is made."
        )
    scores = {}
    for k in n_neighbors:
        vote = Vote(k).estimator(CLASSIFICATION).fit(Z[labelled], codes[labelled])
        scores[k] = float(vote.score(Z[~labelled], codes[~labelled]))
    return scores


def _truth(Z: Any, y: Any, labelled: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return class codes of all rows, and the mask of rows whose labels were used.

    If the labels of the other rows are hidden, raise an error.
    """
    labelled = np.asarray(labelled)
    if labelled.dtype != bool:
        raise TypeError(
            "labelled must be a boolean array, True where a label was used to make Z; got "
            f"{labelled.dtype}: from labels with -1 for none it is y != -1."
        )
    check_consistent_length(Z, y, labelled)
    classes, codes = encode_labels(y)
    unlabelled = classes == -1  # all False for strings
    if unlabelled.any() and np.array_equal(unlabelled[codes], ~labelled):
        found = f"y is -1 in all {(~labelled).sum()} rows whose labels were not used"
        raise ValueError(f"{found}: give their true labels, which is what they are scored by.")
    return codes, labelled


def _neighbors(Z: Any, n_neighbors: int) -> np.ndarray:
    """Return the K nearest rows of every row, (n, K)."""
    n = Z.shape[0]
    return nearest(Z, check_integer(n_neighbors, "n_neighbors", 1, n - 1)).indices.reshape(n, -1)


def _share_by_k(hits: np.ndarray) -> np.ndarray:
    """Return the share of rows with a hit in their first 1, 2, ... entries; NaN without rows."""
    if not len(hits):
        return np.full(hits.shape[1], np.nan)
    return np.logical_or.accumulate(hits, axis=1).mean(axis=0)
