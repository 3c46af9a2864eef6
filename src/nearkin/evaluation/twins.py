"""Which rows are copies of one another, exactly or nearly: those must stay on one side of every split."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control
from sklearn.preprocessing import StandardScaler

from .._blocks import densified, near_origin, row_blocks
from .._validation import as_rows
from ..neighbors import EXACT
from .features import filled

# A near-twin is nearer than a tenth of the distance to the 10th nearest row: so at most 10 distinct rows hang together.
# (Among 11, one would reach the 10 others by 5 steps, each shorter than a ninth of d_10 where it starts: these add up
# to less than its own d_10, within which there are only 9.)
NEAREST, CLOSER = 10, 0.1
FARTHEST = 30
FALSE_TWINS = 0.1


def twin_groups(X: Any, *, scale: bool = True, queries: np.ndarray | None = None) -> np.ndarray:
    r"""Return groups of rows that are identical, or so near that chance does not explain it.

    Let :math:`d_j` be the distance from a row to its j-th nearest distinct row. Where rows are scattered at random
    near it, in whatever dimension D, the :math:`j D \log(d_{j+1}/d_j)` are independent and exponential. So within a
    distance :math:`d < d_{10}` the number of rows to expect is

    .. math:: 9 \, (1 + \log(d_{10}/d) / S)^{-20}, \quad S = \sum_{j=10}^{29} j \log(d_{j+1}/d_j).

    Near-twins are rows with :math:`d < d_{10}/10` for which this is so small that chance explains at most a tenth of
    those found (Benjamini and Hochberg 1995, with the share of rows without a twin estimated as by Storey 2002).
    As d_10 is the row's own, a dense cluster is not taken for twins, and up to 10 copies of every row are found.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Where cells of dense rows are missing (NaN), twins are alike in what is missing, too.
    scale : bool
        Whether to divide the features by their standard deviation.
    queries : array of int, optional
        Rows whose near-twins are looked for, among all rows; all by default.

    Returns
    -------
    groups : array of shape (n,)
        The number of each row's group; a row without a twin is a group of its own.

    Notes
    -----
    Cost: n p for identical rows, and a comparison of every query with all distinct rows for near ones.
    """
    X = filled(as_rows(X, missing=True))
    identical = identical_rows(X)
    first = np.unique(identical, return_index=True)[1]
    rows = np.arange(len(first)) if queries is None else np.unique(identical[queries])
    i, j = _near_pairs(_scaled(X[first], scale), rows)
    pairs = coo_array((np.ones(len(i), bool), (i, j)), shape=(len(first), len(first)))
    return connected_components(pairs, directed=False)[1][identical]


def identical_rows(X: Any) -> np.ndarray:
    """Return groups of rows that are equal in every feature (n,), by 128-bit hashes."""
    X = as_rows(X)
    if issparse(X):
        X = X.copy()
        X.eliminate_zeros()
    numbers: dict[bytes, int] = {}
    groups = np.empty(X.shape[0], dtype=np.intp)
    for block in row_blocks(*X.shape):
        for i, content in enumerate(_contents(X[block]), start=block.start):
            groups[i] = numbers.setdefault(blake2b(content, digest_size=16).digest(), len(numbers))
    return groups


def n_with_twin(groups: np.ndarray) -> int:
    """Return how many rows share their group with another."""
    return int((np.bincount(groups)[groups] > 1).sum())


def joined_groups(units: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return numbers of the groups that rows form which share a unit or a group."""
    groups = groups + units.max() + 1  # numbers of their own
    n = groups.max() + 1
    pairs = coo_array((np.ones(len(units), bool), (units, groups)), shape=(n, n))
    return connected_components(pairs, directed=False)[1][units]


def _contents(X: Any) -> Iterator[bytes]:
    """Yield the bytes of each row; 0 and -0 are the same."""
    if not issparse(X):
        return (row.tobytes() for row in X + X.dtype.type(0))
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)


def _scaled(X: Any, scale: bool) -> Any:
    """Return rows with features of unit variance, but for constant ones; dense rows about their mean."""
    X = densified(X)
    if scale:
        return StandardScaler(with_mean=not issparse(X)).fit_transform(X)
    return X if issparse(X) else near_origin(X)


def _near_pairs(X: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the near-twins of some rows among distinct rows, as row numbers."""
    farthest = min(FARTHEST, (X.shape[0] - 1) // 2)
    nearest = min(NEAREST, farthest // 2)
    if nearest < 2 or len(rows) == 0:  # too few rows to tell what is usual
        return rows[:0], rows[:0]
    d, found = _neighbors(X, rows, farthest)
    expected = _expected_nearer(d, nearest)
    without_twin = min(2 * np.mean(expected[:, 0] > 0.5), 1.0)
    twin = without_twin * false_discovery_control(expected[:, 0]) <= FALSE_TWINS
    close = d[:, : nearest - 1] < CLOSER * d[:, nearest - 1, None]
    at, place = np.nonzero(close & (expected <= expected[twin, 0].max(initial=0.0)))
    return rows[at], found[at, place]


def _expected_nearer(d: np.ndarray, nearest: int) -> np.ndarray:
    """Return how many rows, at most 1, chance would put nearer than each of the first, given the farther distances."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_d = np.log(d)
        S = np.diff(log_d[:, nearest - 1 :]) @ np.arange(nearest, d.shape[1])
        nearer = (log_d[:, nearest - 1, None] - log_d[:, : nearest - 1]) / S[:, None]
        return np.fmin((nearest - 1) * (1 + nearer) ** (nearest - d.shape[1]), 1.0)  # 1 where all are equally near


def _neighbors(X: Any, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances to the k nearest other rows, nearest first, and their numbers."""
    d, found = EXACT.index(X, k + 1)(X[rows], k + 1)
    d[found == rows[:, None]] = -1.0  # the row itself comes first, whatever the rounding
    order = np.argsort(d, axis=1, kind="stable")[:, 1:]
    return np.take_along_axis(d, order, axis=1), np.take_along_axis(found, order, axis=1)
