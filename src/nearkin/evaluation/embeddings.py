"""Scores of an embedding: neighbours kept, neighbours of the same class, held-out votes, held-out
comparisons.

A semi-supervised embedding moves labelled rows towards their class. Leave-one-out accuracy on these
rows measures how well the method fits the labels, random ones as well as true ones, and says
nothing of new rows. So the rows whose labels were used and those whose labels were not are scored
separately, and `labelled` is an argument without a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.metrics.pairwise import paired_euclidean_distances
from sklearn.utils import check_consistent_length

from .._pairs import check_pair_weights, validate_tuples
from .._validation import as_rows, check_integer, encode_labels
from ..neighbors import nearest
from ..vectors.matching import Matcher
from .scores import CLASSIFICATION, Vote


@dataclass(frozen=True)
class Shares:
    """Shares of rows for K = 1, 2, ...; rows whose labels made the embedding are never mixed with
    the others.

    Attributes
    ----------
    used, unused : ndarray of shape (n_neighbors,)
        Shares, between 0 and 1, of the rows whose labels were used, and of those whose labels were
        not; NaN if there are none.
    n_used, n_unused : int
        How many rows there are of each.
    """

    used: np.ndarray
    unused: np.ndarray
    n_used: int
    n_unused: int


def neighborhood_preservation(
    X: Any, Z: Any, n_neighbors: int = 10, *, rows: Any = None
) -> np.ndarray:
    """Return for K = 1, 2, ... the share of rows that keep their nearest neighbour among their K
    nearest.

    Figure 6 of Discriminative Projections. It uses no labels.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Rows in their original space.
    Z : array or sparse matrix of shape (n, m)
        The same rows, embedded.
    n_neighbors : int, default=10
        Largest K, at most n - 1.
    rows : boolean mask of shape (n,) or array of row numbers, default=None
        The rows to be scored, by their neighbours among all; None takes all.

    Returns
    -------
    ndarray of shape (n_neighbors,)
        Shares between 0 and 1, never falling with K. Where several rows of X are equally near (to
        ten digits), each of them is the nearest neighbour. Which of equally near rows of Z count is
        unspecified.

    Notes
    -----
    Cost: two exact searches, n^2 (p + m), in n n_neighbors memory.
    """
    X, Z = as_rows(X), as_rows(Z)
    check_consistent_length(X, Z)
    rows = np.arange(X.shape[0])[slice(None) if rows is None else rows]
    if not len(rows):
        raise ValueError("rows selects no row: there is nothing to score.")
    J = np.column_stack([nearest(X, 1).indices, _neighbors(Z, n_neighbors)])[rows]
    X = X.astype(np.float64, copy=False)
    # by differences, so that the distance of duplicates is 0
    smallest, *distances = (paired_euclidean_distances(X[rows], X[neighbors]) for neighbors in J.T)
    return _share_by_k(np.column_stack(distances) <= smallest[:, None] * (1 + 1e-10))


def same_class_among(Z: Any, y: Any, n_neighbors: int = 10, *, labelled: Any) -> Shares:
    """Return for K = 1, 2, ... the share of rows with at least one row of their class among their K
    nearest.

    Figures 3 and 7 of Discriminative Projections, where both kinds of rows are mixed.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, m)
        Embedded rows.
    y : array of shape (n,)
        The true class of every row, also of those that the embedding was made without.
    n_neighbors : int, default=10
        Largest K, at most n - 1.
    labelled : boolean array of shape (n,)
        The rows whose labels were used to make Z; `np.zeros(n, dtype=bool)` if none were.

    Returns
    -------
    Shares
        The neighbours come from all rows, labelled or not. For a row alone in its class none is of
        its class.

    Notes
    -----
    Cost: one exact search, n^2 m, in n n_neighbors memory.
    """
    Z = as_rows(Z)
    codes, labelled = _truth(Z, y, labelled)
    same_class = codes[_neighbors(Z, n_neighbors)] == codes[:, None]
    used, unused = (_share_by_k(same_class[rows]) for rows in (labelled, ~labelled))
    return Shares(used, unused, int(labelled.sum()), int((~labelled).sum()))


def held_out_accuracy(
    Z: Any, y: Any, labelled: Any, n_neighbors: Sequence[int] = (1, 3, 5, 10)
) -> dict[int, float]:
    """Return for several k how often the k nearest labelled rows vote right for a row whose label
    was not used.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, m)
        Embedded rows.
    y : array of shape (n,)
        The true class of every row, also of those that the embedding was made without.
    labelled : boolean array of shape (n,)
        The rows that vote: those whose labels were used to make Z. All others are scored.
    n_neighbors : sequence of int, default=(1, 3, 5, 10)
        Each k, at most the number of labelled rows.

    Returns
    -------
    dict of k to accuracy, between 0 and 1

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


def comparison_accuracy(model: Any, comparisons: Any, sample_weight: Any = None) -> float:
    """Return the share of comparisons of distances that a metric orders right.

    Parameters
    ----------
    model : fitted estimator or None
        Anything with `transform`: a learned metric, a pipeline that ends with one, an
        `EmbeddingAdapter`, whose rows are compared by cosine; or a `Matcher`. None for the
        Euclidean distance of rows as they are.
    comparisons : array of shape (n, 3, p) or (n, 4, p)
        Triplets of rows (a, b, c), of which a is nearer to b than to c, or quadruplets (a, b, c,
        d), of which a is nearer to b than c to d. Take some that the metric was not learned from.
    sample_weight : array of shape (n,), default=None
        How much each comparison counts, at least 0; None for 1 each.

    Returns
    -------
    float
        Between 0 and 1. Equal distances are half right, so a metric that says nothing has 0.5.

    Notes
    -----
    Cost: that of `transform` for 4 n rows.

    Examples
    --------
    >>> from nearkin.evaluation import comparison_accuracy
    >>> comparison_accuracy(None, [[[0.0], [1.0], [3.0]], [[0.0], [1.0], [-1.0]]])
    0.75
    """
    shape = np.shape(comparisons)
    if len(shape) != 3 or shape[1] not in (3, 4):
        raise ValueError(
            f"comparisons must have the shape (n, 3, p) or (n, 4, p), got {shape}: with numbers of "
            "rows, pass X[numbers]."
        )
    comparisons = validate_tuples(comparisons, "comparisons", shape[1])
    weights = check_pair_weights(sample_weight, len(comparisons), "sample_weight")
    if model is None:
        matcher = Matcher(metric="euclidean")
    elif isinstance(model, Matcher):
        matcher = model
    elif hasattr(model, "transform"):
        matcher = Matcher(FrozenEstimator(model))
    else:
        raise TypeError(f"model must be None, a Matcher or have a transform, got {model!r}.")
    near = matcher.decision_function(comparisons[:, :2])
    far = matcher.decision_function(comparisons[:, [-2, -1] if shape[1] == 4 else [0, 2]])
    return float(np.average((near > far) + 0.5 * (near == far), weights=weights))


def _truth(Z: Any, y: Any, labelled: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the class of every row as a number, and whose labels were used.

    Labels that hide those of the other rows are refused.
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
    """Return the K nearest rows of every row: (n, K)."""
    n = Z.shape[0]
    return nearest(Z, check_integer(n_neighbors, "n_neighbors", 1, n - 1)).indices.reshape(n, -1)


def _share_by_k(hits: np.ndarray) -> np.ndarray:
    """Return the share of rows with a hit among their first 1, 2, ... entries; NaN without rows."""
    if not len(hits):
        return np.full(hits.shape[1], np.nan)
    return np.logical_or.accumulate(hits, axis=1).mean(axis=0)
