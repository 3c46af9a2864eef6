"""What an embedding adapter learns from: labels, pairs, triplets, or queries with relevant documents.

Each kind tells how rows that belong together scatter, and compares some of its items at a time. Rows are of unit
length, but for the mean that is subtracted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from .._blocks import row_blocks
from ..objectives.cosine import Comparison
from ..scatter import within_scatter

TOGETHER = 8  # rows of a label that come in one batch: of many labels, each row has others of its own
CANDIDATES = 2048  # documents that the queries of a batch are compared with, where the relevant ones are fewer


class Supervision(ABC):
    """Items, numbered from 0, each with at least one query that has a relevant candidate."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of items."""

    @abstractmethod
    def within_covariance(self) -> np.ndarray:
        """Return the covariance of rows that belong together about their mean, (p, p)."""

    @abstractmethod
    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return the queries of some items, and their candidates."""

    def order(self, rng: np.random.Generator) -> np.ndarray:
        """Return the items shuffled."""
        return rng.permutation(len(self))


@dataclass(frozen=True)
class Labelled(Supervision):
    """Rows of which two are relevant to each other as far as they share labels: |both| / |either| of these.

    Attributes
    ----------
    X : array of shape (n, p)
    Y : csr_array of shape (n, n_labels)
        1 for the labels of every row, at least one.
    fixed : array of shape (n, p) or None
        The rows as candidates that are not mapped.
    """

    X: np.ndarray
    Y: csr_array
    fixed: np.ndarray | None

    def __len__(self) -> int:
        return len(self.X)

    def within_covariance(self) -> np.ndarray:
        rows = np.repeat(np.arange(len(self)), np.diff(self.Y.indptr))
        return within_scatter(self.X[rows], self.Y.indices) / max(len(rows) - self.Y.shape[1], 1)

    def order(self, rng: np.random.Generator) -> np.ndarray:
        """Return the rows shuffled, but for eight of a label that stay together."""
        rows = rng.permutation(len(self))
        label = self._label[rows]
        rows = rows[np.argsort(label, kind="stable")]
        first = np.searchsorted(self._label[rows], self._label[rows])
        piece = np.cumsum((np.arange(len(rows)) - first) % TOGETHER == 0) - 1
        return rows[np.argsort(rng.permutation(piece[-1] + 1)[piece], kind="stable")]

    @cached_property
    def _label(self) -> np.ndarray:
        """The first label of every row."""
        return self.Y.indices[self.Y.indptr[:-1]]

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        if self.Y.nnz == len(self):  # one label a row
            W = self._label[items][:, None] == self._label[items]
        else:
            Y = self.Y[items]
            shared, sizes = (Y @ Y.T).toarray(), np.diff(Y.indptr)
            W = shared / (sizes[:, None] + sizes - shared)
        np.fill_diagonal(W, 0)
        return _mutual(self.X, self.fixed, items, W)


@dataclass(frozen=True)
class Paired(Supervision):
    """Pairs of rows with a grade; rows of a batch that are no known pair are not relevant to each other.

    Attributes
    ----------
    X : array of shape (n, p)
    pairs : int array of shape (n_pairs, 2)
    grades : array of shape (n_pairs,)
        At least 0.
    fixed : array of shape (n, p) or None
    """

    X: np.ndarray
    pairs: np.ndarray
    grades: np.ndarray
    fixed: np.ndarray | None

    def __len__(self) -> int:
        return len(self.pairs)

    def within_covariance(self) -> np.ndarray:
        return _covariance_of_pairs(self.X, self.X, self.pairs, self.grades)

    @cached_property
    def _graded(self) -> csr_array:
        n, (left, right) = len(self.X), self.pairs.T
        G = csr_array((self.grades, (left, right)), shape=(n, n))
        return csr_array(G + G.T)

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        rows = np.unique(self.pairs[items])
        return _mutual(self.X, self.fixed, rows, self._graded[rows][:, rows].toarray())


@dataclass(frozen=True)
class Triples(Supervision):
    """Row a is to be nearer to row b than to row c; a has no other candidates than these two.

    Attributes
    ----------
    X : array of shape (n, p)
    triplets : int array of shape (n_triplets, 3)
    fixed : array of shape (n, p) or None
    """

    X: np.ndarray
    triplets: np.ndarray
    fixed: np.ndarray | None

    def __len__(self) -> int:
        return len(self.triplets)

    def within_covariance(self) -> np.ndarray:
        return _covariance_of_pairs(self.X, self.X, self.triplets[:, :2], np.ones(len(self)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        anchors, near, far = self.triplets[items].T
        W, one = np.eye(len(items), 2 * len(items)), np.eye(len(items), dtype=bool)
        X = self.X if self.fixed is None else self.fixed
        candidates = X[np.concatenate([near, far])]
        return Comparison(self.X[anchors], candidates, W, np.hstack([one, one]), self.fixed is not None)


@dataclass(frozen=True)
class Judged(Supervision):
    """Queries, and how relevant documents are to them; documents without a judgement are not.

    Attributes
    ----------
    queries : array of shape (n_queries, p)
    documents : array of shape (n_documents, p)
    relevance : csr_array of shape (n_queries, n_documents)
        Larger than 0, at least one a query.
    is_fixed : bool
        Whether documents are not mapped.
    """

    queries: np.ndarray
    documents: np.ndarray
    relevance: csr_array
    is_fixed: bool

    def __len__(self) -> int:
        return len(self.queries)

    def within_covariance(self) -> np.ndarray:
        at = np.column_stack(self.relevance.nonzero())
        return _covariance_of_pairs(self.queries, self.documents, at, np.ones(len(at)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        R, n = self.relevance[items], len(self.documents)
        if n <= CANDIDATES:
            documents = np.arange(n)
        else:
            relevant = np.unique(R.indices)
            documents = np.union1d(relevant, rng.choice(n, max(CANDIDATES - len(relevant), len(items)), replace=False))
        return Comparison(
            self.queries[items], self.documents[documents], R[:, documents].toarray(), fixed=self.is_fixed
        )


def _mutual(X: np.ndarray, fixed: np.ndarray | None, rows: np.ndarray, W: np.ndarray) -> Comparison:
    """Return some rows that are candidates of each other, none of itself."""
    W = W.astype(X.dtype)
    if fixed is None:
        return Comparison(X[rows], None, W)
    return Comparison(X[rows], fixed[rows], W, ~np.eye(len(rows), dtype=bool), fixed=True)


def _covariance_of_pairs(X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean of (x - y)(x - y)' / 2 over pairs of a row of X and one of Y."""
    S = np.zeros((X.shape[1], X.shape[1]))
    for block in row_blocks(len(pairs), X.shape[1]):
        D = (X[pairs[block, 0]] - Y[pairs[block, 1]]).astype(np.float64)
        S += (D.T * weights[block]) @ D
    return S / (2 * weights.sum())
