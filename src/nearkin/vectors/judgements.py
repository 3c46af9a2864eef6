"""What is known of vectors: labels, pairs, triplets, or the relevant documents of queries.

Each kind is one class: what a user may give, batches of it for the loss of an adapter, the
covariance of rows that belong together and, but for triplets, held-out splits and the relevance of
documents to their queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components

from .._blocks import row_blocks
from .._labels import encode_partial_classes
from .._validation import check_array, check_consistent_length, refuse_foreign, refuse_words
from ..graphs import joined_groups
from ..objectives.cosine import Comparison
from ..scatter import total_scatter, within_scatter
from .retrieval import DEPTH, Vectors, retrieval_scores

# What an adapter learns from. Each kind has queries and documents (`vectors`), of which `of_rows`
# makes others, in one array that begins with the documents and ends with the queries; `items`, by
# number, some of which are compared at a time; and the covariance of rows that belong together.

# rows per label in a batch: with many labels, each row should still have others of its own
TOGETHER = 8
# documents compared with the queries of a batch, unless more are relevant
CANDIDATES = 2048


@dataclass(frozen=True)
class Rows:
    """Rows, each of which is a query and a document."""

    X: np.ndarray

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows, twice."""
        return self.X, self.X

    def of_rows(self, X: np.ndarray) -> Self:
        """Return what is known of other rows."""
        return replace(self, X=X)


@dataclass(frozen=True)
class Triplets(Rows):
    """Row a should be closer to row b than to row c, which are its only candidates.

    Attributes
    ----------
    X : array of shape (n, p)
    triplets : int array of shape (n_triplets, 3)
    """

    triplets: np.ndarray

    loss = "contrastive"

    @property
    def items(self) -> np.ndarray:
        """Return the numbers of the triplets."""
        return np.arange(len(self.triplets))

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of the first and second rows about their mean."""
        return _covariance_of_pairs(self.X, self.X, self.triplets[:, :2], np.ones(len(self.items)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some triplets and their candidates."""
        anchors, near, far = self.triplets[items].T
        W, one = np.eye(len(items), 2 * len(items)), np.eye(len(items), dtype=bool)
        candidates = self.X[np.concatenate([near, far])]
        return Comparison(self.X[anchors], candidates, W, np.hstack([one, one]))


# Queries that can be held out, and what is relevant to them.

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

    @property
    def is_usable(self) -> bool:
        """Return whether an adapter can be fitted, and every part has a query."""
        return self.train.can_be_fitted and all(part.any() for part in self.parts.values())

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


def expected_parts(parts: Iterable[str], expect: str) -> list[str]:
    """Return the parts of the queries for the expected classes: "known", "new", or "both".

    Parts that are not defined by classes are always included.
    """
    dropped = {"known": UNSEEN, "new": SEEN}.get(expect)
    return [part for part in parts if part != dropped]


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


SEVERAL = "0 and 1 for every label, as scikit-learn's MultiLabelBinarizer makes of lists of labels."


@dataclass(frozen=True)
class Labels(Rows):
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
    several : csr_array of shape (n, n_labels) or None
        0 and 1 if rows may have several labels, of which y holds the first. The relevance of two
        rows is then the share of their labels that they have in common, `|both| / |either|`, and no
        rows can be held out.
    """

    y: np.ndarray
    groups: np.ndarray
    weights: np.ndarray | None = None
    several: csr_array | None = None

    loss = "nca"
    own_rows = False

    @classmethod
    def of(
        cls, X: np.ndarray, y: Any, groups: np.ndarray, weights: np.ndarray | None = None
    ) -> Self:
        """Return validated labels of rows: one each, or 0 and 1 in several columns.

        Raises
        ------
        ValueError
            If no two rows share a label, or a single column does not define two classes.
        """
        refuse_foreign(y, "y")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: give labels.")
        try:
            y = y if issparse(y) else np.asarray(y)
        except ValueError as error:  # the lists have different lengths
            raise ValueError(f"y must be a label for every row, or {SEVERAL}") from error
        several = None
        if y.ndim == 2 and y.shape[1] > 1:
            several = _columns_of_labels(y)
            counts = np.diff(several.indptr)
            codes = np.full(len(counts), -1)
            codes[counts > 0] = several.indices[several.indptr[:-1][counts > 0]]
            sizes = several.sum(axis=0)
            if counts.max(initial=0) < 2:
                several = None
        else:
            _, codes = encode_partial_classes(y)
            sizes = np.bincount(codes[codes >= 0])
        if sizes.max(initial=0) < 2:
            raise ValueError(
                "y gives no two rows the same label, every class has a single row: merge some "
                "classes."
            )
        check_consistent_length(X, codes)
        return cls(X, codes, groups, weights, several)

    @cached_property
    def items(self) -> np.ndarray:
        """Numbers of the labelled rows."""
        return np.flatnonzero(self.y >= 0)

    def __len__(self) -> int:
        return len(self.items)

    # Learning.

    def order(self, rng: np.random.Generator) -> np.ndarray:
        """Return the labelled rows shuffled, in groups of up to eight rows with the same label."""
        rows = rng.permutation(self.items)
        rows = rows[np.argsort(self.y[rows], kind="stable")]
        first = np.searchsorted(self.y[rows], self.y[rows])
        piece = np.cumsum((np.arange(len(rows)) - first) % TOGETHER == 0) - 1
        return rows[np.argsort(rng.permutation(piece[-1] + 1)[piece], kind="stable")]

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of rows that share a label, about their mean.

        Copies of a row add no degrees of freedom.
        """
        rows, labels = self.items, self.y[self.items]
        if self.several is not None:
            rows, labels = self.several.nonzero()
        is_plain = self.several is None and len(rows) == len(self.X)
        X, n_labels = self.X if is_plain else self.X[rows], labels.max() + 1  # without a copy
        dof = max(len(X) - n_labels, 1)
        if self.weights is None:
            return within_scatter(X, labels) / dof
        w = self.weights[rows]
        w = w / w.mean()
        G = csr_array((w, (labels, np.arange(len(X)))), shape=(n_labels, len(X)))
        means = (G @ X) / G.sum(axis=1)[:, None]
        return total_scatter((X - means[labels]).astype(X.dtype), w) / dof

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some rows, each with the others as candidates."""
        if self.several is None:
            W = self.y[items][:, None] == self.y[items]
        else:
            Y = self.several[items]
            shared, sizes = (Y @ Y.T).toarray(), np.diff(Y.indptr)
            W = shared / (sizes[:, None] + sizes - shared)
        np.fill_diagonal(W, 0)
        weights = None if self._relative is None else self._relative[items]
        return Comparison(self.X[items], None, W, weights=weights)

    @cached_property
    def _relative(self) -> np.ndarray | None:
        """Weights of mean 1 over the rows that share a label with another row.

        The loss is the mean over these rows.
        """
        if self.weights is None:
            return None
        if self.several is None:
            shared = (self.y >= 0) & (np.bincount(self.y[self.items])[self.y] > 1)
        else:
            shared = self.several @ (self.several.sum(axis=0) > 1) > 0
        return self.weights / self.weights[shared].mean()

    # Held-out queries.

    def splits(
        self, rng: np.random.Generator, fewest_classes: int = FEWEST_CLASSES
    ) -> Iterator[Split]:
        """Yield four splits; see the class."""
        if self.several is not None:
            raise ValueError(
                "rows of several labels cannot be held out: give one label per row, y of (n,)."
            )
        classes, quarter_of_row = rng.permutation(self.y.max() + 1), quarters(self.groups, rng)
        held_out = classes % FOLDS if len(classes) >= fewest_classes else np.full(len(classes), -1)
        # the last entry is for rows without a class
        quarter_of_class = np.append(held_out, -1)[self.y]
        known, labelled, splits = self.y >= 0, self.items, list[Split]()
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
    def can_be_fitted(self) -> bool:
        """Return whether there are two classes, two rows of one class, and over four groups."""
        sizes = np.bincount(self.y + 1)[1:]
        return len(sizes) > 1 and sizes.max() > 1 and len(np.unique(self.groups)) > FOLDS

    def fit(self, estimator: Any) -> Any:
        """Return an estimator, fitted."""
        if self.weights is None:
            return estimator.fit(self.X, self.y)
        return estimator.fit(self.X, self.y, sample_weight=self.weights)

    def gains(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return which documents are of the class of each query."""
        return (self.y[documents] == self.y[queries][:, None]).astype(float)

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
class Relevance:
    """Queries with judged documents.

    A quarter of the queries is held out at a time, with all queries of their groups; all documents
    are candidates. An adapter may learn from the other queries and from all documents.

    In every batch, the relevant documents of its queries are candidates of all these queries.
    Documents judged not relevant to a query are candidates of this query (at most 2,048 per batch,
    drawn at random), but unless they are sampled, not of others, to which they might be relevant.
    Documents without a judgement are not relevant.

    Attributes
    ----------
    queries, documents : arrays of shape (n_queries, p) and (n_documents, p)
    R : csr_array of shape (n_queries, n_documents)
        Grades; a stored 0 was judged not relevant, an absent entry was not judged.
    groups : int array of shape (n_queries,)
        Queries of one group are held out together.
    """

    queries: np.ndarray
    documents: np.ndarray
    R: csr_array
    groups: np.ndarray

    loss = "contrastive"
    own_rows = False  # whether a held-out query is itself a candidate, which is ignored

    @staticmethod
    def of_pairs(
        X: np.ndarray, pairs: np.ndarray, grades: np.ndarray, groups: np.ndarray | None = None
    ) -> Pairs:
        """Return judgements of pairs of rows, which belong together if their grade is above 0.

        Rows that are connected by such pairs, or belong to the same group, form one group. Of
        several grades of a pair, the largest counts.
        """
        n = len(X)
        left, right = np.sort(pairs, axis=1).T
        upper = judged_matrix(left, right, grades, (n, n)).tocoo()
        known = Pairs.of(X, np.column_stack(upper.coords), upper.data, np.arange(n))
        connected = connected_components(known.R > 0, directed=False)[1]
        joined = connected if groups is None else joined_groups(connected, groups)
        return replace(known, groups=joined)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return queries and documents."""
        return self.queries, self.documents

    def of_rows(self, X: np.ndarray) -> Self:
        """Return the same judgements of other rows: documents, then queries, or both at once."""
        n_queries, n_documents = len(self.queries), len(self.documents)
        return replace(self, queries=X[-n_queries:], documents=X[:n_documents])

    @property
    def items(self) -> np.ndarray:
        """Return the numbers of the queries with a relevant document."""
        return np.flatnonzero(self.n_relevant)

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant documents of every query."""
        return np.diff(np.append(0, np.cumsum(self.R.data > 0))[self.R.indptr])

    def __len__(self) -> int:
        return int(np.count_nonzero(self.n_relevant))

    # Learning.

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of queries and their relevant documents about their mean."""
        at = np.column_stack(self.R.nonzero())
        return _covariance_of_pairs(self.queries, self.documents, at, np.ones(len(at)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some queries, with documents as candidates."""
        R, n = self.R[items], len(self.documents)
        documents = np.arange(n)
        if n > CANDIDATES:
            relevant = np.unique(R.indices[R.data > 0])
            n_others = max(CANDIDATES - len(relevant), len(items))
            documents = np.union1d(relevant, rng.choice(n, n_others, replace=False))
        documents, offered = _with_unlike(documents, R, rng)
        W = R[:, documents].toarray()
        return Comparison(self.queries[items], self.documents[documents], W, offered)

    # Held-out queries.

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
        """Return the judgements of some queries, with groups renumbered."""
        groups = np.unique(self.groups[queries], return_inverse=True)[1]
        return replace(self, queries=self.queries[queries], R=self.R[queries], groups=groups)

    @property
    def can_be_fitted(self) -> bool:
        """Return whether there is a query with a relevant document."""
        return len(self) > 0

    def fit(self, estimator: Any) -> Any:
        """Return an estimator, fitted."""
        return estimator.fit_relevance(self.queries, self.documents, self.R)

    def gains(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return the grades of documents."""
        return self.R[queries[:, None], documents].toarray()

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


@dataclass(frozen=True)
class Pairs(Relevance):
    """Rows that were judged in pairs: both queries and documents.

    Held-out rows are candidates, but nothing is learned from them. Rows of a batch that do not form
    a known pair are not relevant to each other. If two rows were judged not to belong together,
    each is a candidate of the other in every batch that contains the other (at most 2,048 such
    candidates per batch, drawn at random).

    Attributes
    ----------
    R : csr_array of shape (n, n)
        The sums of the grades of the pairs in either order.
    pairs : int array of shape (n_pairs, 2)
        Different rows.
    grades : array of shape (n_pairs,)
        At least 0, where 0 is a pair that does not belong together.
    """

    pairs: np.ndarray
    grades: np.ndarray

    own_rows = True

    @classmethod
    def of(cls, X: np.ndarray, pairs: np.ndarray, grades: np.ndarray, groups: np.ndarray) -> Self:
        """Return the pairs, with R."""
        left, right = np.vstack([pairs, pairs[:, ::-1]]).T
        R = csr_array((np.tile(grades, 2), (left, right)), shape=(len(X), len(X)))
        return cls(X, X, R, groups, pairs, grades)

    @property
    def items(self) -> np.ndarray:
        """Return the numbers of the pairs that belong together."""
        return np.flatnonzero(self.grades)

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of paired rows about their mean."""
        like = self.items
        return _covariance_of_pairs(self.queries, self.queries, self.pairs[like], self.grades[like])

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return the rows of some pairs, with these and the rows judged unlike them as candidates.

        Rows judged unlike a row are candidates of this row only.
        """
        rows = np.unique(self.pairs[items])
        X, R = self.queries, self.R[rows]
        candidates, offered = _with_unlike(rows, R, rng)
        W = R[:, candidates].toarray()
        if offered is None:
            return Comparison(X[rows], None, W)
        np.fill_diagonal(offered, False)  # no row is its own candidate
        return Comparison(X[rows], X[candidates], W, offered)

    def some(self, queries: np.ndarray) -> Self:
        """Return the pairs of some rows among themselves, with groups renumbered."""
        place = np.full(len(self.queries), -1)
        place[queries] = np.arange(len(queries))
        pairs = place[self.pairs]
        kept = (pairs >= 0).all(axis=1)
        groups = np.unique(self.groups[queries], return_inverse=True)[1]
        return self.of(self.queries[queries], pairs[kept], self.grades[kept], groups)

    def fit(self, estimator: Any) -> Any:
        """Return an estimator, fitted."""
        # adapters use grades, where 0 and -1 are the same; learners from pairs use 1 and -1
        y = np.where(self.grades > 0, self.grades, -1)
        return estimator.fit_pairs(X=self.queries, pairs=self.pairs, y=y)


def _with_unlike(
    candidates: np.ndarray, R: csr_array, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return candidates and those judged not relevant to a query, and which of them queries have.

    These are all of the former, and of the latter those with a stored grade; None is all.
    """
    unlike = np.setdiff1d(R.indices[R.data == 0], candidates)
    if len(unlike) > CANDIDATES:
        unlike = rng.choice(unlike, CANDIDATES, replace=False)
    if not len(unlike):
        return candidates, None
    stored = csr_array((np.ones(R.nnz), R.indices, R.indptr), shape=R.shape)
    for_all = np.ones((R.shape[0], len(candidates)), dtype=bool)
    offered = np.hstack([for_all, stored[:, unlike].toarray() > 0])
    return np.append(candidates, unlike), offered


def _covariance_of_pairs(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the weighted mean of (x - y)(x - y)' / 2 over pairs of a row of X and one of Y."""
    S = np.zeros((X.shape[1], X.shape[1]))
    for block in row_blocks(len(pairs), X.shape[1]):
        D = (X[pairs[block, 0]] - Y[pairs[block, 1]]).astype(np.float64)
        S += (D.T * weights[block]) @ D
    return S / (2 * weights.sum())


# Labels and judgements as users give them.


def _columns_of_labels(y: Any) -> csr_array:
    """Return labels in several columns as a matrix of 0 and 1, without empty columns."""
    if y.dtype.kind in "US":
        raise ValueError(f"y of several columns holds text; it must hold {SEVERAL}")
    Y = csr_array(check_array(y, accept_sparse="csr", input_name="y"), dtype=np.float64, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    if not (Y.data == 1).all():
        value = Y.data[Y.data != 1][0]
        raise ValueError(f"y of several columns holds {value:g}; it must hold {SEVERAL}")
    return csr_array(Y[:, Y.sum(axis=0) > 0])


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


def relevance_matrix(relevance: Any, shape: tuple[int, int]) -> csr_array:
    """Return judgements as a nonnegative matrix (n_queries, n_documents).

    They are given as a matrix, or as rows (query, document) or (query, document, grade). A stored 0
    was judged not relevant; an absent entry was not judged.
    """
    refuse_foreign(relevance, "relevance")
    if issparse(relevance):
        R = csr_array(
            check_array(relevance, accept_sparse="csr", dtype=np.float64, input_name="relevance"),
            copy=True,
        )
        R.sum_duplicates()
        if R.shape != shape:
            raise ValueError(
                f"relevance must be of shape {shape}, queries and documents; got {R.shape}."
            )
    else:
        judged = check_array(relevance, dtype=np.float64, ensure_2d=False, input_name="relevance")
        if judged.ndim != 2 or judged.shape[1] not in (2, 3):
            raise ValueError(
                "relevance must have 2 or 3 columns, query, document and grade; got "
                f"{judged.shape}."
            )
        at = judged[:, :2].astype(np.int64)
        if (at != judged[:, :2]).any() or at.min() < 0 or (at.max(axis=0) >= shape).any():
            most = f"{shape[0] - 1} and {shape[1] - 1}"
            wrong = ((at != judged[:, :2]) | (at < 0) | (at >= shape)).any(axis=1).argmax()
            found = "{:g}, {:g}".format(*judged[wrong, :2])
            raise ValueError(
                f"relevance must hold numbers of a query and a document, 0 to {most}; row {wrong} "
                f"holds {found}."
            )
        grades = judged[:, 2] if judged.shape[1] == 3 else np.ones(len(judged))
        R = judged_matrix(at[:, 0], at[:, 1], grades, shape)
    R.data = np.maximum(R.data, 0)
    if not R.data.any():
        raise ValueError(
            "relevance marks no document as relevant (larger than 0): there is nothing to learn "
            "from."
        )
    return R


def check_grades(y: Any, n_pairs: int) -> np.ndarray:
    """Return the grades of the pairs, at least 0; 1 each if y is None."""
    if y is None:
        return np.ones(n_pairs)
    refuse_words(y, "y")
    grades = np.maximum(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), 0)
    if grades.shape != (n_pairs,):
        raise ValueError(
            f"y must be a number for each of {n_pairs} pairs, got the shape {grades.shape}."
        )
    if not grades.any():
        raise ValueError(
            "y marks no pair as similar (larger than 0): there is nothing to learn from."
        )
    return grades


# Scores of held-out queries.


Judgements = Labels | Relevance
Supervision = Judgements | Triplets


def usable_splits(known: Judgements, rng: np.random.Generator) -> list[Split]:
    """Return the splits; raise a ValueError if one has no queries, or nothing to learn from."""
    splits = list(known.splits(rng))
    for i, split in enumerate(splits):
        if not len(split.queries) or not split.train.can_be_fitted:
            few = f"{len(split.queries)} queries held out, {len(split.train)} to learn from"
            raise ValueError(
                "too few rows for four splits, where linked rows stay together (number "
                f"{i}: {few}): give more."
            )
    return splits


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
