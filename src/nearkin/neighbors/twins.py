"""Detection of rows that are copies of one another, exactly or nearly, and must not be split."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control, sem
from scipy.stats import t as student
from sklearn.preprocessing import StandardScaler

from .._blocks import densified, filled, near_origin
from .._validation import as_rows
from .identical import identical_rows
from .lists import EXACT

# A near-twin is closer than a tenth of the distance d_10 to the 10th nearest row, so at most 10
# distinct rows are connected. (Among 11, one row would reach the 10 others in 5 steps, each shorter
# than a ninth of the d_10 of the row where it starts. These steps add up to less than the first
# row's d_10, within which there are only 9 others.)
NEAREST, CLOSER = 10, 0.1
FARTHEST = 30
FALSE_TWINS = 0.1

# Groups of more than ten rows are found up to this size, and up to this share of the rows; larger
# ones are taken as clusters.
MOST_CHAINED, LARGEST_SHARE = 500, 0.2
# rows whose groups are searched: a sample tells whether there are any
CHAIN_QUERIES = 300
# width, relative to the distance of random rows, up to which groups are taken as copies
NARROW = 0.005
LEAST_EXCESS = 0.01  # of label agreement inside groups, over all rows


def twin_groups(X: Any, *, scale: bool = True, queries: np.ndarray | None = None) -> np.ndarray:
    r"""Return groups of rows that are identical, or closer than chance explains.

    Let :math:`d_j` be the distance from a row to its j-th nearest distinct row. If rows are
    scattered at random around it, in whatever dimension D, the :math:`j D \log(d_{j+1}/d_j)` are
    independent and exponentially distributed. The expected number of rows within a distance
    :math:`d < d_{10}` is then

    .. math:: 9 \, (1 + \log(d_{10}/d) / S)^{-20}, \quad S = \sum_{j=10}^{29} j \log(d_{j+1}/d_j).

    Near-twins are rows with :math:`d < d_{10}/10` for which this is so small that chance explains
    at most a tenth of those found (Benjamini and Hochberg 1995, with the share of rows without a
    twin estimated as by Storey 2002). Since d_10 is the row's own, a dense cluster is not taken as
    twins, and up to 10 copies of every row are found. Larger groups are not formed, as rows alone
    do not distinguish copies from a cluster: see `chained_rows`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        If cells of dense rows are missing (NaN), twins have the same missing cells.
    scale : bool, default=True
        Whether to divide the features by their standard deviation.
    queries : array of int, optional
        Rows whose near-twins are searched among all rows; by default, all rows.

    Returns
    -------
    groups : array of shape (n,)
        The group code of each row; a row without a twin is a group of its own.

    Notes
    -----
    Cost: n p for identical rows; for near-twins, every query is compared with all distinct rows.
    """
    X = filled(as_rows(X, missing=True))
    identical = identical_rows(X)
    first = np.unique(identical, return_index=True)[1]
    rows = np.arange(len(first)) if queries is None else np.unique(identical[queries])
    i, j = _near_pairs(_scaled(X[first], scale), rows)
    pairs = coo_array((np.ones(len(i), bool), (i, j)), shape=(len(first), len(first)))
    return connected_components(pairs, directed=False)[1][identical]


def chained_rows(X: Any, y: np.ndarray, *, scale: bool = True) -> int:
    r"""Estimate how many rows lie in tight groups of more than ten that share their labels.

    Copies of a row with a little noise, augmented images and repeated measurements form such
    groups, and folds that split them give optimistic scores. The clusters of an ordinary table are
    also tight groups. Three criteria distinguish them:

    - *Tight*: the k nearest rows, k at least ten, are all closer than a tenth of the distance to
      the next one. If rows are scattered at random around a row, in D dimensions, the number of
      rows within a distance grows with its D-th power, so :math:`(d_k / d_{k+1})^D` has the
      distribution function :math:`x^k` (by the spacings of `twin_groups`, which are independent and
      exponentially distributed), and

      .. math:: P(d_k \le d_{k+1}/10) = 10^{-kD}, \quad
         \sum_{k \ge 10} 10^{-kD} \le 1.2 \cdot 10^{-10}.

      Among a million such rows none is expected to pass, whatever D, so false discoveries need no
      further control.
    - *Labelled alike, and unlike the surrounding rows*: a row shares its label more often with the
      rows of its group than with the next ten rows. Groups with different labels do not make scores
      optimistic; if labels follow the features, the next rows have the same labels; and a group
      that is most of a class cannot be held out. The excess must be significant (Student's t over
      the groups, at .01) and exceed one percentage point over all rows, since the scores may owe
      that much to the groups.
    - *Narrow*: the distance within a group is at most a two-hundredth of that of random rows. Wider
      groups may be clusters of an ordinary table, and only count if the next rows have the row's
      label no more often than random rows, so that nothing but the groups is learned.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class codes, -1 for none; or real numbers, NaN for none. The similarity of two numbers is 1
        minus their squared difference over its mean.
    scale : bool, default=True
        Whether to divide the features by their standard deviation.

    Returns
    -------
    int
        The number of rows, 0 if there is no evidence for such groups. With more than 300 distinct
        rows, it is estimated from a sample of that size.

    Notes
    -----
    Groups of up to 500 rows, and up to a fifth of all rows, are found; identical rows count once.
    Cost: a comparison of 300 rows with all.
    """
    is_number = y.dtype.kind == "f"
    labelled = np.flatnonzero(~np.isnan(y) if is_number else y >= 0)
    X = filled(as_rows(X, missing=True))
    X = X if len(labelled) == len(y) else X[labelled]
    first = np.unique(identical_rows(X), return_index=True)[1]
    y, n = y[labelled][first], len(first)
    farthest = min(MOST_CHAINED, int(LARGEST_SHARE * n))
    if farthest <= NEAREST:
        return 0
    rows = np.arange(n)
    if n > CHAIN_QUERIES:
        rows = np.sort(np.random.default_rng(0).choice(n, CHAIN_QUERIES, replace=False))
    Z = _scaled(X[first], scale)
    d, found = _neighbors(Z, rows, farthest)
    ends = (d[:, :-1] <= CLOSER * d[:, 1:]) & (d[:, 1:] > 0)
    ends[:, : NEAREST - 1] = False
    variance = max(y.var(), np.finfo(float).tiny)

    def likeness(row: int, others: np.ndarray) -> float:
        """Return the share of equal classes; for numbers 1 if equal, with mean 0 if random."""
        if is_number:
            return float(1 - np.mean((y[others] - y[row]) ** 2) / (2 * variance))
        return float(np.mean(y[others] == y[row]))

    groups = []
    for at in np.flatnonzero(ends.any(axis=1)):
        row, size = rows[at], int(ends[at].argmax()) + 1
        group, around = found[at, :size], found[at, size : size + NEAREST]
        n_inside = 1 + np.count_nonzero(y[group] == y[row])
        # at least half of a row's class must lie outside its group
        if is_number or np.count_nonzero(y == y[row]) >= 2 * n_inside:
            number, width = min(row, group.min()), np.mean(d[at, :size] ** 2)
            groups.append((number, likeness(row, group), likeness(row, around), width))
    number, inside, outside, width = np.array(groups).reshape(-1, 4).T
    # the sum of the variances is half the mean squared distance of random rows
    narrow = width <= NARROW**2 * 2 * StandardScaler(with_mean=False).fit(Z).var_.sum()
    wide, excess, count = ~narrow, inside - outside, 0
    if _owe_labels(number[narrow], excess[narrow], len(rows)):
        count += int(narrow.sum())
    if _owe_labels(number[wide], excess[wide], len(rows)):
        guessed = _means_by_group(number[wide], outside[wide])
        of_random_rows = 0.0 if is_number else float(np.sum((np.bincount(y) / len(y)) ** 2))
        if guessed.mean() <= of_random_rows + 2 * sem(guessed):
            count += int(wide.sum())
    return round(count / len(rows) * len(labelled))


def _owe_labels(number: np.ndarray, excess: np.ndarray, n_queries: int) -> bool:
    """Return whether labels agree more inside groups than outside.

    The excess must be significant, and at least one percentage point over all rows.
    """
    means = _means_by_group(number, excess)
    if excess.sum() < LEAST_EXCESS * n_queries or len(means) < 2:
        return False
    return bool(means.mean() > student.isf(0.01, len(means) - 1) * sem(means))


def _means_by_group(number: np.ndarray, values: np.ndarray) -> np.ndarray:
    _, group, sizes = np.unique(number, return_inverse=True, return_counts=True)
    return np.bincount(group, values) / sizes


def n_with_twin(groups: np.ndarray) -> int:
    """Return the number of rows that share their group with another."""
    return int((np.bincount(groups)[groups] > 1).sum())


def _scaled(X: Any, scale: bool) -> Any:
    """Return rows, scaled to unit variance with `scale` (unless constant); centred if dense."""
    X = densified(X)
    if scale:
        return StandardScaler(with_mean=not issparse(X)).fit_transform(X)
    return X if issparse(X) else near_origin(X)


def _near_pairs(X: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of near-twins, one of them among some rows, as two arrays of row indices."""
    farthest = min(FARTHEST, (X.shape[0] - 1) // 2)
    nearest = min(NEAREST, farthest // 2)
    if nearest < 2 or len(rows) == 0:  # too few rows to know the usual distances
        return rows[:0], rows[:0]
    d, found = _neighbors(X, rows, farthest)
    expected = _expected_nearer(d, nearest)
    without_twin = min(2 * np.mean(expected[:, 0] > 0.5), 1.0)
    twin = without_twin * false_discovery_control(expected[:, 0]) <= FALSE_TWINS
    close = d[:, : nearest - 1] < CLOSER * d[:, nearest - 1, None]
    at, place = np.nonzero(close & (expected <= expected[twin, 0].max(initial=0.0)))
    return rows[at], found[at, place]


def _expected_nearer(d: np.ndarray, nearest: int) -> np.ndarray:
    """Return, for each of the nearest rows, the number of rows that chance would place closer.

    The expectation is estimated from the farther distances, and capped at 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log_d = np.log(d)
        S = np.diff(log_d[:, nearest - 1 :]) @ np.arange(nearest, d.shape[1])
        nearer = (log_d[:, nearest - 1, None] - log_d[:, : nearest - 1]) / S[:, None]
        # where all are equally near, the result is NaN, and fmin replaces it by 1
        return np.fmin((nearest - 1) * (1 + nearer) ** (nearest - d.shape[1]), 1.0)


def _neighbors(X: Any, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances to the k nearest other rows, nearest first, and their indices."""
    d, found = EXACT.index(X, k + 1)(X[rows], k + 1)
    d[found == rows[:, None]] = -1.0  # the row itself comes first, whatever the rounding
    order = np.argsort(d, axis=1, kind="stable")[:, 1:]
    return np.take_along_axis(d, order, axis=1), np.take_along_axis(found, order, axis=1)
