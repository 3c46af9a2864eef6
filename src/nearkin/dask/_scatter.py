"""Scatters of rows that are spread over a cluster: sums of p x p matrices, one for every block, added in a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Future
from scipy.sparse import csr_array

from .._blocks import row_blocks
from ._graphs import Edges
from ._table import Rows, Table
from ._work import Sums, Work


def scatter(work: Work, table: Table, graph: list[Future]) -> np.ndarray:
    """Return `sum_(i<j) w_ij (x_i - x_j)(x_i - x_j)'`, the X'LX of a graph, shape (p, p), float64.

    It is summed as it is written, one difference an edge: a feature that differs along no edge is exactly 0 in it,
    whatever lies between the components of the graph. In round b the blocks up to b that have edges to block b meet it.

    O(e p^2) time for e edges; up to n p / 2 numbers travel for every block, to those that it has edges to.
    """
    tied = np.array(work.results(work.map(blocks_tied, graph, starts=table.starts)))
    np.fill_diagonal(tied, True)  # every block has a part
    parts: list[Any] = [0.0] * len(table.rows)
    for b, others in enumerate(table.rows):
        meeting = np.flatnonzero(tied[: b + 1, b]).tolist()
        so_far, rows, edges = ([of_block[a] for a in meeting] for of_block in (parts, table.rows, graph))
        found = work.map(with_differences, so_far, rows, [others] * len(meeting), edges)
        for a, part in zip(meeting, found, strict=True):
            parts[a] = part
    S = work.total(parts)
    return (S + S.T) / 2


def total_scatter(work: Work, table: Table, weights: list[Any] | None = None) -> np.ndarray:
    """Return `sum_i w_i (x_i - m)(x_i - m)'` with the weighted mean m, shape (p, p); by default every w_i is 1."""
    weights = weights or [None] * len(table.rows)
    weight, moment = work.total(work.map(first_moments, table.rows, weights))
    S = work.total(work.map(second_moment, table.rows, weights, mean=moment / weight))
    return (S + S.T) / 2


def class_means(work: Work, table: Table) -> np.ndarray:
    """Return the mean of every class, shape (n_classes, p)."""
    return work.total(work.map(class_sums, table.rows, n_classes=len(table.sizes))) / table.sizes[:, None]


def within_scatter(work: Work, table: Table, means: np.ndarray) -> np.ndarray:
    """Return `sum_c sum_(i in c) (x_i - m_c)(x_i - m_c)'`, shape (p, p)."""
    S = work.total(work.map(squares_within, table.rows, means=means))
    return (S + S.T) / 2


# Tasks.


def blocks_tied(edges: Edges, *, starts: list[int]) -> np.ndarray:
    """Say for every block whether some edges lead to its rows."""
    return np.diff(np.searchsorted(edges.j, starts)) > 0


def with_differences(S: Any, rows: Rows, others: Rows, edges: Edges) -> np.ndarray:
    """Return S after the edges between two blocks, or within one, have been added."""
    between = slice(*np.searchsorted(edges.j, [others.start, others.start + len(others.X)]))
    i, j, w = (array[between] for array in edges)
    once = rows.start + i < j
    i, j, w = i[once], j[once] - others.start, w[once]
    p = rows.X.shape[1]
    S = S + np.zeros((p, p))
    for block in row_blocks(len(i), p):
        D = rows.X[i[block]].astype(np.float64) - others.X[j[block]]
        S += (D.T * w[block]) @ D
    return S


def degrees(rows: Rows, edges: Edges) -> np.ndarray:
    """Return the sum of the weights of every row's edges."""
    return np.bincount(edges.i, edges.w, minlength=len(rows.X))


def first_moments(rows: Rows, weights: np.ndarray | None) -> Sums:
    """Return the sum of the weights and the weighted sum of the rows."""
    w = np.ones(len(rows.X)) if weights is None else weights
    return Sums((w.sum(), w @ rows.X.astype(np.float64)))


def second_moment(rows: Rows, weights: np.ndarray | None, *, mean: np.ndarray) -> np.ndarray:
    """Return the weighted sum of squares and products about a mean."""
    X = rows.X.astype(np.float64) - mean
    return X.T @ X if weights is None else (X.T * weights) @ X


def class_sums(rows: Rows, *, n_classes: int) -> np.ndarray:
    """Return the sum of the rows of every class."""
    membership = csr_array((np.ones(len(rows.X)), rows.codes, np.arange(len(rows.X) + 1)), (len(rows.X), n_classes))
    return membership.T @ rows.X.astype(np.float64)


def squares_within(rows: Rows, *, means: np.ndarray) -> np.ndarray:
    """Return the sum of squares and products about the class means."""
    X = rows.X - means[rows.codes]
    return X.T @ X
