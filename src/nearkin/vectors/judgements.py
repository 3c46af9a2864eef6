"""Relevance judgements of vectors, from labels or documents, and their held-out splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.sparse.csgraph import connected_components

from ..graphs import joined_groups
from .retrieval import DEPTH, Vectors, retrieval_scores

FOLDS = 4
FEWEST_CLASSES = 8  # with fewer classes, none are held out as unseen
SEEN, UNSEEN, ALL = "seen classes", "unseen classes", "queries"
EXPECTED = ("both", "known", "new")  # classes of future rows


@dataclass(frozen=True)
class Split:
    """A split of the judgements.

    Attributes
    ----------
    train : Judgements
        What an adapter may learn from.
    queries, candidates : int arrays
        Indices of held-out queries, and of the rows they are compared with.
    parts : dict of str to bool array
        Which of these queries are scored together.
    labelled : int array
        Indices of all rows that later queries are compared with, including those held out here.
    further : int array
        Rows of unseen classes, from which nothing was learned, that can be queries: all with a
        labelled row of their class outside their own group.
    """

    train: Judgements
    queries: np.ndarray
    candidates: np.ndarray
    parts: dict[str, np.ndarray]
    labelled: np.ndarray
    further: np.ndarray

    def apart(self) -> list[Split]:
        """Return a split with the queries of seen classes, and one with all of unseen classes.

        The latter are compared with all labelled rows, as later queries are.
        """
        if not len(self.further):
            return [self]
        by_part = {
            SEEN: (self.queries[self.parts[SEEN]], self.candidates),
            UNSEEN: (self.further, self.labelled),
        }
        return [
            replace(
                self,
                queries=queries,
                candidates=candidates,
                parts={part: np.full(len(queries), part == name) for part in by_part},
                further=queries[:0],
            )
            for name, (queries, candidates) in by_part.items()
            if len(queries)
        ]


def quarters(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a quarter 0, ..., 3 for every row; groups stay together.

    Groups are assigned in descending order of size, ties at random, each to the quarter of fewest
    rows so far. The quarters thus have nearly the same size.
    """
    _, number = np.unique(groups, return_inverse=True)
    sizes = np.bincount(number)
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    held, quarter = [0] * FOLDS, np.empty(len(sizes), dtype=int)
    for group in order.tolist():
        quarter[group] = smallest = held.index(min(held))
        held[smallest] += int(sizes[group])
    return quarter[number]


def judged_matrix(
    rows: np.ndarray, columns: np.ndarray, grades: np.ndarray, shape: tuple[int, int]
) -> csr_array:
    """Return grades as a matrix, the largest if there are several for one entry.

    A stored 0 was judged not relevant (a grade of at most 0); an absent entry was not judged.
    """
    order = np.argsort(-grades, kind="stable")
    places = rows[order].astype(np.int64) * shape[1] + columns[order]
    kept = order[np.unique(places, return_index=True)[1]]
    return csr_array((np.maximum(grades[kept], 0), (rows[kept], columns[kept])), shape=shape)


def count_relevant(R: csr_array) -> np.ndarray:
    """Return the number of grades above 0 in every row."""
    return np.diff(np.append(0, np.cumsum(R.data > 0))[R.indptr])


class Judgements(ABC):
    """Queries, documents, and their relevance to each other.

    Attributes
    ----------
    own_rows : bool
        Whether a held-out query is itself among the candidates; it is then ignored.
    """

    own_rows = False

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of queries."""

    @abstractmethod
    def splits(self, rng: np.random.Generator) -> Iterator[Split]:
        """Yield splits with disjoint held-out queries."""

    def usable_splits(self, rng: np.random.Generator) -> list[Split]:
        """Return the splits; raise a ValueError if one has no queries, or nothing to learn from."""
        splits = list(self.splits(rng))
        for i, split in enumerate(splits):
            if not len(split.queries) or not split.train.can_be_fitted:
                few = f"{len(split.queries)} queries held out, {len(split.train)} to learn from"
                raise ValueError(
                    "too few rows that do not hang together for four splits (number "
                    f"{i}: {few}): give more."
                )
        return splits

    @property
    @abstractmethod
    def can_be_fitted(self) -> bool:
        """Return whether an adapter can be fitted."""

    @abstractmethod
    def fit(self, adapter: Any) -> Any:
        """Return an adapter fitted to all judgements."""

    @abstractmethod
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return queries and documents, (n_queries, p) and (n_documents, p)."""

    @abstractmethod
    def gains(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return the relevance of documents (q, k) to queries (q,), by index, (q, k)."""

    @abstractmethod
    def relevant(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents (d,) are relevant to which queries (q,), by index, (q, d)."""

    @abstractmethod
    def withheld(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents (d,) a search for queries (q,) must not return, (q, d)."""

    @abstractmethod
    def best_gains(
        self, queries: np.ndarray, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ten largest gains among the candidates, (q, 10), descending.

        The second result is the number of gains above 0.
        """

    @property
    def median_relevant(self) -> float:
        """Return the median number of rows per class; 0 if there are no classes."""
        return 0.0

    @abstractmethod
    def units(self, part: str) -> np.ndarray:
        """Return the group of dependent queries to which each query belongs in a part."""


@dataclass(frozen=True)
class Labels(Judgements):
    """Rows with one class each; rows of the same class are relevant to each other.

    Over four splits, each class is unseen once and each row held out once: split i trains on the
    rows that are neither in the i-th quarter of the rows nor in the i-th quarter of the classes.
    All rows outside the i-th quarter of the rows are candidates. All rows of its unseen classes can
    be queries among all labelled rows, too (`Split.apart`). With fewer than eight classes, none are
    held out.

    Attributes
    ----------
    X : array of shape (n, p)
    y : int array of shape (n,)
        Classes 0, 1, ..., and -1 for none: rows without a class are used for training, but not as
        candidates.
    groups : int array of shape (n,)
        Rows of one group, such as duplicates, are on the same side of every split.
    weights : array of shape (n,) or None
        Weights of the rows for fitting an adapter and choosing its start.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return int((self.y >= 0).sum())

    def splits(
        self, rng: np.random.Generator, fewest_classes: int = FEWEST_CLASSES
    ) -> Iterator[Split]:
        """Yield four splits; see the class."""
        classes, quarter_of_row = rng.permutation(self.y.max() + 1), quarters(self.groups, rng)
        held_out = classes % FOLDS if len(classes) >= fewest_classes else np.full(len(classes), -1)
        # the last entry is for rows without a class
        quarter_of_class = np.append(held_out, -1)[self.y]
        known, splits = self.y >= 0, list[Split]()
        labelled = np.flatnonzero(known)
        in_groups = np.unique(np.column_stack([self.y, self.groups])[labelled], axis=0)
        can_answer = np.bincount(in_groups[:, 0], minlength=len(classes)) > 1
        answered = labelled[can_answer[self.y[labelled]]]
        for i in range(FOLDS):
            queries = np.flatnonzero(known & (quarter_of_row == i))
            candidates = np.flatnonzero(known & (quarter_of_row != i))
            queries = queries[np.isin(self.y[queries], self.y[candidates])]
            train = np.flatnonzero((quarter_of_row != i) & (quarter_of_class != i))
            unseen = quarter_of_class[queries] == i
            further = answered[quarter_of_class[answered] == i]
            further = further[~np.isin(self.groups[further], self.groups[train])]
            splits.append(
                Split(
                    self.some(train),
                    queries,
                    candidates,
                    {SEEN: ~unseen, UNSEEN: unseen},
                    labelled,
                    further,
                )
            )
        if not all(split.parts[UNSEEN].any() for split in splits):
            splits = [
                replace(split, parts={SEEN: split.parts[SEEN]}, further=split.further[:0])
                for split in splits
            ]
        yield from splits

    def some(self, rows: np.ndarray) -> Self:
        """Return some rows, with classes and groups renumbered."""
        known = self.y[rows] >= 0
        y = np.full(len(rows), -1)
        y[known] = np.unique(self.y[rows][known], return_inverse=True)[1]
        groups = np.unique(self.groups[rows], return_inverse=True)[1]
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X[rows], y=y, groups=groups, weights=weights)

    @property
    def median_relevant(self) -> float:
        """Return the median number of rows per class."""
        return float(np.median(np.bincount(self.y[self.y >= 0])))

    @property
    def can_be_fitted(self) -> bool:
        """Return whether there are two classes, two rows of one class, and over four groups."""
        sizes = np.bincount(self.y + 1)[1:]
        return len(sizes) > 1 and sizes.max() > 1 and len(np.unique(self.groups)) > FOLDS

    def fit(self, adapter: Any) -> Any:
        """Return the adapter, fitted."""
        if self.weights is None:
            return adapter.fit(self.X, self.y)
        return adapter.fit(self.X, self.y, sample_weight=self.weights)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return queries and documents."""
        return self.X, self.X

    def gains(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return the relevance of documents, (q, k)."""
        return (self.y[documents] == self.y[queries][:, None]).astype(float)

    def relevant(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents are of the class of each query, (q, d)."""
        return self.y[queries][:, None] == self.y[documents]

    def withheld(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents are of the group of each query, (q, d)."""
        return self.groups[queries][:, None] == self.groups[documents]

    def best_gains(
        self, queries: np.ndarray, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ten largest gains, and the number of gains above 0."""
        n_relevant = np.bincount(self.y[candidates], minlength=self.y.max() + 1)[self.y[queries]]
        return (np.arange(10) < n_relevant[:, None]).astype(float), n_relevant

    def units(self, part: str) -> np.ndarray:
        """Return the groups of dependent queries."""
        return self.y if part == UNSEEN else self.groups


@dataclass(frozen=True)
class Relevance(Judgements):
    """Queries with judged documents.

    A quarter of the queries is held out at a time, with all queries of their groups; all documents
    are candidates. An adapter may learn from the other queries and from all documents. If the
    documents are the queries themselves, held-out rows are candidates, but not learned from.

    Attributes
    ----------
    queries, documents : arrays of shape (n_queries, p) and (n_documents, p)
    R : csr_array of shape (n_queries, n_documents)
        Grades; a stored 0 was judged not relevant, an absent entry was not judged.
    groups : int array of shape (n_queries,)
        Queries of one group are held out together.
    own_rows : bool
        Whether queries and documents are the same rows, judged in pairs.
    """

    queries: np.ndarray
    documents: np.ndarray
    R: csr_array
    groups: np.ndarray
    own_rows: bool = False

    @classmethod
    def of_pairs(
        cls, X: np.ndarray, pairs: np.ndarray, grades: np.ndarray, groups: np.ndarray | None = None
    ) -> Self:
        """Return judgements of pairs of rows, which belong together if their grade is above 0.

        Rows that are connected by such pairs, or belong to the same group, form one group.
        """
        n, (left, right) = len(X), np.vstack([pairs, pairs[:, ::-1]]).T
        R = judged_matrix(left, right, np.concatenate([grades, grades]), (n, n))
        connected = connected_components(R > 0, directed=False)[1]
        return cls(X, X, R, connected if groups is None else joined_groups(connected, groups), True)

    def __len__(self) -> int:
        return int((self.n_relevant > 0).sum())

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant documents of every query."""
        return count_relevant(self.R)

    def splits(self, rng: np.random.Generator) -> Iterator[Split]:
        """Yield four splits; see the class."""
        judged = self.n_relevant > 0
        quarter = np.full(len(judged), -1)
        quarter[judged] = quarters(self.groups[judged], rng)
        for i in range(FOLDS):
            held_out = np.flatnonzero(quarter == i)
            # also without copies of held-out queries that have no relevant document themselves
            train = np.flatnonzero(~np.isin(self.groups, self.groups[held_out]))
            every = {ALL: np.ones(len(held_out), bool)}
            candidates = np.arange(len(self.documents))
            yield Split(self.some(train), held_out, candidates, every, candidates, held_out[:0])

    def some(self, queries: np.ndarray) -> Self:
        """Return the judgements of some queries; of pairs, those of some rows among themselves."""
        Q, R = self.queries[queries], self.R[queries]
        groups = np.unique(self.groups[queries], return_inverse=True)[1]
        if not self.own_rows:
            return replace(self, queries=Q, R=R, groups=groups)
        return replace(self, queries=Q, documents=Q, R=R[:, queries], groups=groups)

    @property
    def can_be_fitted(self) -> bool:
        """Return whether there is a query with a relevant document."""
        return len(self) > 0

    def fit(self, adapter: Any) -> Any:
        """Return the adapter, fitted."""
        if self.own_rows:
            upper = triu(self.R, 1, format="coo")
            # adapters use grades, where 0 and -1 are the same; learners from pairs use 1 and -1
            y = np.where(upper.data > 0, upper.data, -1)
            return adapter.fit_pairs(X=self.queries, pairs=np.column_stack(upper.coords), y=y)
        return adapter.fit_relevance(self.queries, self.documents, self.R)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return queries and documents."""
        return self.queries, self.documents

    def gains(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return the relevance of documents, (q, k)."""
        return self.R[queries[:, None], documents].toarray()

    def relevant(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents are relevant to which query, (q, d)."""
        return self.R[queries][:, documents].toarray() > 0

    def withheld(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents are the query itself, (q, d)."""
        return self.own_rows & (queries[:, None] == documents)

    def best_gains(
        self, queries: np.ndarray, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ten largest gains, and the number of gains above 0."""
        best = np.zeros((len(queries), 10))
        for place, q in enumerate(queries):
            largest = -np.sort(-self.R.data[self.R.indptr[q] : self.R.indptr[q + 1]])[:10]
            best[place, : len(largest)] = largest
        return best, self.n_relevant[queries]

    def units(self, part: str) -> np.ndarray:
        """Return the groups of dependent queries."""
        return self.groups


def scores_of(vectors: Vectors, split: Split, judgements: Judgements) -> dict[str, np.ndarray]:
    """Return the scores of the held-out queries of a split, an array (n_queries,) per name."""
    ranked = ranked_by(vectors, split, judgements)
    ideal, n_relevant = judgements.best_gains(split.queries, split.candidates)
    return retrieval_scores(judgements.gains(split.queries, ranked), ideal, n_relevant)


def ranked_by(vectors: Vectors, split: Split, judgements: Judgements) -> np.ndarray:
    """Return the indices of the documents that the held-out queries of a split rank first.

    A query that is itself a candidate is left out of its own ranking.
    """
    ranked = split.candidates[vectors.ranked(DEPTH + judgements.own_rows)]
    if judgements.own_rows:
        others = np.argsort(ranked == split.queries[:, None], axis=1, kind="stable")[:, :-1]
        ranked = np.take_along_axis(ranked, others, axis=1)
    return ranked
