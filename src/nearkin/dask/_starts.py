"""Where a descent on a cluster begins: what `nearkin.estimators._starts` does, from sums over blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Future
from scipy.linalg import eigh
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from ..estimators._starts import NEAR, SAMPLE, evenly_by, squared_norms
from ..spectral import range_basis, ratio_trace
from ._scatter import class_means, total_scatter, within_scatter
from ._table import Table
from ._work import Work


def near_squares(work: Work, blocks: list[Future], starts: list[int]) -> np.ndarray:
    """Return the squared distances of some rows to their 100 nearest others, ascending.

    Parameters
    ----------
    blocks : list of futures of arrays of shape (b, m)
    starts : list of int
        The number of the first row of every block, and behind them n.
    """
    sample = np.sort(evenly_by(np.concatenate(work.results(work.map(squared_norms, blocks))), SAMPLE))
    parts = np.split(sample, np.searchsorted(sample, starts[1:-1]))
    places = [part - start for part, start in zip(parts, starts, strict=False)]
    rows = work.submit(np.concatenate, work.map(np.take, blocks, places, axis=0))
    found = work.map(squares_to, [rows] * len(blocks), blocks, starts[:-1], sample=sample)
    return work.total(found, least_squares)[:, : starts[-1] - 1]


def directions(work: Work, table: Table, init: str, m: int, rng: Any) -> np.ndarray:
    """Return m directions (m, p) by the name of a start."""
    p = table.shape[1]
    if init == "identity":
        return np.eye(m, p)
    if init == "pca":
        return eigh(total_scatter(work, table), subset_by_index=[p - m, p - 1])[1][:, ::-1].T
    if init == "lda":
        return _lda(work, table, m)
    return np.linalg.qr(rng.standard_normal((p, m)))[0].T


def default_inits(work: Work, table: Table, m: int) -> list[str]:
    """Return the names of the starts that "auto" chooses from."""
    if m == table.shape[1]:
        return ["identity"]
    lda = m < len(table.sizes) and m <= range_basis(total_scatter(work, table)).shape[1]
    return ["pca", "lda"] if lda else ["pca"]


def _lda(work: Work, table: Table, m: int) -> np.ndarray:
    """Return the directions of most scatter between the classes for that within, which is the same in all of them."""
    means = class_means(work, table)
    apart = means - table.sizes @ means / table.shape[0]
    between = (apart.T * table.sizes) @ apart
    V = ratio_trace(-between, within_scatter(work, table, means)).vectors[:, : len(means) - 1].T
    if len(V) < m:
        raise ValueError(f"init='lda' has {len(V)} directions here, n_components is {m}: take init='pca' or 'auto'.")
    return V[:m]


# Tasks.


def squares_to(rows: np.ndarray, block: np.ndarray, start: int, *, sample: np.ndarray) -> np.ndarray:
    """Return the squared distances of sampled rows to their nearest in a block, infinite to themselves."""
    with config_context(assume_finite=True):
        index = NearestNeighbors(algorithm="brute").fit(block)
        distances, found = index.kneighbors(rows, n_neighbors=min(len(block), NEAR + 1))
    return np.where(start + found == sample[:, None], np.inf, distances.astype(np.float64) ** 2)


def least_squares(parts: list[np.ndarray]) -> np.ndarray:
    """Return the 100 least of all in every row, ascending."""
    return np.sort(np.hstack(parts), axis=1)[:, :NEAR]
