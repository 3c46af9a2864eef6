"""Approximate search: rows in lists of near ones, of which a query looks through the nearest few (faiss IVF).

The usual inverted file starves a search by class: a row deep inside a large class finds nothing but kin in the lists
around it. Here every list holds rows of one class (small classes share), so both questions are a choice of lists: a row
looks for kin in the nearest lists of its class, for strangers in the nearest lists of all others. The file holds the
rows in few dimensions; what it finds there is ranked again by the distances of the rows themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from .._array import check_integer, row_blocks
from .._threads import Value, in_threads
from .._warn import warn_user
from .search import SMALL_CLASS, Index, NeighborLists, Relation, members_of

BRUTE_CLASS = 20_000  # a class of at most so many rows is looked through whole: as quick as its lists
PROBES = 64
PROJECTED_FROM = 96
PROJECTED_TO = 48
SAMPLE = 20_000  # rows from which the few dimensions are learned
ONE_ROUND = 256  # lists that one k-means makes
PER_CENTRE = 40  # rows from which the centre of a list is learned
QUERIES = 2**15  # rows that look through lists at a time
QUESTIONED = 500  # rows of which the recall is measured


class ApproximateSearch(BaseEstimator):
    """How to search approximately: in lists of near rows, and in fewer dimensions.

    Parameters
    ----------
    n_lists : "auto" or int, default="auto"
        Lists into which the rows are cut, by k-means; at least one for every class. "auto" takes 8 sqrt(n).
    n_probes : "auto" or int, default="auto"
        Lists that a query looks through: the nearest ones. "auto" takes 64. More find more, and take longer.
    n_components : "auto", int or None, default="auto"
        Leading principal components in which the lists are made and looked through; None takes the features
        themselves. "auto" takes 48 where there are more than 96 features.
    n_rerank : "auto" or int, default="auto"
        How many of those found are ranked again by their distances in all features. "auto" takes 3 k + 10 with fewer
        dimensions, k without.
    check_recall : bool, default=False
        Whether to search exactly for 500 rows, spread evenly, too, and say what share of their true neighbours was
        found: `search_recall_` of the estimator.

    Notes
    -----
    Needs faiss (`pip install "nearkin[ann]"`). The search is seeded: equal rows in equal order, and as many threads,
    give equal lists. Memory: 8 bytes a row and component beside the rows. Time: O(n p d) for the components, d of them,
    O(n d sqrt(n)) for the lists and to look through them, O(n r p) to rank r again.

    faiss silences the threads of scikit-learn's own search when it is imported first in a process; nearkin imports it
    only here, after a first exact search, which keeps them.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import DNE, ApproximateSearch
    >>> X, y = load_digits(return_X_y=True)
    >>> dne = DNE(10, search=ApproximateSearch(n_probes=100, check_recall=True)).fit(X, y)
    >>> dne.search_, min(dne.search_recall_.values()) > 0.95
    ('approximate', True)
    """

    def __init__(
        self,
        n_lists: int | str = "auto",
        n_probes: int | str = "auto",
        n_components: int | str | None = "auto",
        n_rerank: int | str = "auto",
        check_recall: bool = False,
    ) -> None:
        self.n_lists = n_lists
        self.n_probes = n_probes
        self.n_components = n_components
        self.n_rerank = n_rerank
        self.check_recall = check_recall


class Inverted:
    """The searcher that an `ApproximateSearch` describes; it projects the same rows once."""

    name = "approximate"

    def __init__(self, knobs: ApproximateSearch) -> None:
        import_faiss()
        self.n_lists = _number(knobs.n_lists, "n_lists")
        self.n_probes = _number(knobs.n_probes, "n_probes") or PROBES
        self.n_components = None if knobs.n_components is None else _number(knobs.n_components, "n_components") or 0
        self.n_rerank = _number(knobs.n_rerank, "n_rerank")
        self.recall: dict[str, float] | None = {} if knobs.check_recall else None
        self._projected: tuple[Any, np.ndarray] | None = None

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: Relation) -> csr_array:
        """Return G as `nearest` does, or most of it."""
        Z = self._projection_of(X)
        wanted = np.where(lengths > 0, self._ranked_again(lengths, Z, X), 0)
        lists = NeighborLists(lengths, X.dtype)
        for rows, found in self._found(Z, codes, wanted, relation):
            _put_nearest(lists, X, codes, relation, rows, found)
        G = lists.to_csr()
        if self.recall is not None:
            self.recall[relation.value] = measured_recall(X, codes, G, relation)
        return G

    def index(self, X: Any, n_found: int) -> Index:
        """Return an index over rows, for queries that are not among them."""
        n = X.shape[0]
        project = projection(X, self.n_components)
        Z = project(X)
        file = InvertedFile.of_all(Z, self._n_lists(n))
        r = int(self._ranked_again(np.array(min(n_found, n)), Z, X))

        def search(Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
            distances, numbers = np.empty((Q.shape[0], k), X.dtype), np.empty((Q.shape[0], k), np.intp)
            for asked, found in file.found(project(Q), np.full(Q.shape[0], r), self.n_probes, file.all_lists):
                for rows, j, d in _ranked(Q, asked, X, found):
                    distances[asked[rows]], numbers[asked[rows]] = d[:, :k], j[:, :k]
            return distances, numbers

        return search

    def _ranked_again(self, lengths: np.ndarray, Z: np.ndarray, X: Any) -> np.ndarray:
        again = self.n_rerank or (lengths if Z.shape[1] == X.shape[1] else 3 * lengths + 10)
        return np.minimum(np.maximum(again, lengths), len(Z))

    def _n_lists(self, n: int) -> int:
        return self.n_lists or usual_lists(n)

    def _projection_of(self, X: Any) -> np.ndarray:
        if self._projected is None or self._projected[0] is not X:
            self._projected = (X, projection(X, self.n_components)(X))
        return self._projected[1]

    def _found(self, Z: np.ndarray, codes: np.ndarray, wanted: np.ndarray, relation: Relation) -> Iterator[Found]:
        """Yield rows and what was found for them: as many as wanted in the relation to them, others among them."""
        n_lists = self._n_lists(len(Z))
        if relation is Relation.STRANGERS:
            yield from self._strangers(Z, codes, wanted, n_lists)
            return
        for members in members_of(codes):
            if relation is Relation.KIN and len(members) <= BRUTE_CLASS:
                yield from _looked_through(Z, members, wanted)
                continue
            own = Z[members] if len(members) < len(Z) else Z
            file = InvertedFile.of_all(own, n_lists * len(members) // len(Z))
            for rows, found in file.found(own, wanted[members] + 1, self.n_probes, file.all_lists):
                yield members[rows], np.where(found < 0, -1, members[found])

    def _strangers(self, Z: np.ndarray, codes: np.ndarray, wanted: np.ndarray, n_lists: int) -> Iterator[Found]:
        sizes = np.bincount(codes)
        small = np.flatnonzero(sizes[codes] <= SMALL_CLASS)
        groups = [members for members in members_of(codes) if len(members) > SMALL_CLASS]
        file = InvertedFile(Z, Filing.of(Z, [*groups, small] if len(small) else groups, n_lists))
        for number, members in enumerate(groups):
            for rows, found in file.found(Z[members], wanted[members], self.n_probes, file.lists_but(number)):
                yield members[rows], found
        # Among the r + n_c nearest at most n_c are kin, so at least r are strangers.
        for rows, found in file.found(Z[small], (wanted + sizes[codes])[small], self.n_probes, file.all_lists):
            yield small[rows], found


Found = tuple[np.ndarray, np.ndarray]


def usual_lists(n: int) -> int:
    """Return how many lists "auto" makes of n rows."""
    return int(8 * n**0.5)


@dataclass(frozen=True)
class Filing:
    """Which list every row is in; a list holds rows of one group.

    Attributes
    ----------
    centres : ndarray of shape (n_lists, d), float32
        The mean of every list.
    list_of : ndarray of shape (n,), int64
        The number of every row's list.
    first : list of int
        The number of the first list of every group, and behind them n_lists.
    """

    centres: np.ndarray
    list_of: np.ndarray
    first: list[int]

    @classmethod
    def of(cls, Z: np.ndarray, groups: Sequence[np.ndarray], n_lists: int) -> Filing:
        """File rows of each of the groups, together all rows, in about `n_lists` lists: each group has its share."""
        centres, list_of, first = [], np.empty(len(Z), np.int64), [0]
        for members in groups:
            share = min(max(1, round(n_lists * len(members) / len(Z))), len(members))
            group_centres, nearest_centre = _clustered(Z[members], share)
            centres.append(group_centres)
            list_of[members] = first[-1] + nearest_centre
            first.append(first[-1] + len(group_centres))
        return cls(np.vstack(centres), list_of, first)


class InvertedFile:
    """Rows in lists of near ones.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    filing : Filing
    """

    def __init__(self, Z: np.ndarray, filing: Filing) -> None:
        faiss = import_faiss()
        n, d = Z.shape
        self.centres, self.first = filing.centres, filing.first
        self.sizes = np.bincount(filing.list_of, minlength=len(self.centres))
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, len(self.centres))
        self._index.is_trained = True  # the centres are at hand, and lists are named by us
        self._index.add_core(n, faiss.swig_ptr(Z), None, faiss.swig_ptr(filing.list_of))

    @classmethod
    def of_all(cls, Z: np.ndarray, n_lists: int) -> InvertedFile:
        """Return rows in lists that all may share."""
        return cls(Z, Filing.of(Z, [np.arange(len(Z))], n_lists))

    @property
    def all_lists(self) -> np.ndarray:
        """The numbers of all lists."""
        return np.arange(len(self.centres))

    def lists_of(self, group: int) -> np.ndarray:
        """Return the numbers of the lists of a group."""
        return self.all_lists[self.first[group] : self.first[group + 1]]

    def lists_but(self, group: int) -> np.ndarray:
        """Return the numbers of the lists of all groups but one."""
        return np.delete(self.all_lists, slice(self.first[group], self.first[group + 1]))

    def found(self, Q: np.ndarray, wanted: np.ndarray, n_probes: int, lists: np.ndarray) -> Iterator[Found]:
        """Yield numbers of queries and of the rows found near them in some lists, shape (b, r), -1 for none.

        Query i finds `wanted[i]`, or all that there are: where the nearest lists hold too few, more are looked through.
        """
        coarse = import_faiss().IndexFlatL2(Q.shape[1])
        coarse.add(self.centres[lists])
        wanted = np.minimum(wanted, self.sizes[lists].sum())
        queries = np.flatnonzero(wanted > 0)
        while len(queries):
            n_probes = min(n_probes, len(lists))
            lacking = []
            for block in row_blocks(len(queries), 1, QUERIES):
                asked = queries[block]
                probed = lists[coarse.search(Q[asked], n_probes)[1]]
                self._index.nprobe = n_probes
                _, found = self._index.search_preassigned(Q[asked], int(wanted[asked].max()), probed, None)
                enough = np.sum(found >= 0, axis=1) >= wanted[asked]
                yield asked[enough], found[enough]
                lacking.append(asked[~enough])
            queries, n_probes = np.concatenate(lacking), 4 * n_probes


def _clustered(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centres of lists by k-means, and for every row the number of its own; many lists in two rounds of few."""
    if n_lists > ONE_ROUND:
        _, part = _clustered(Z, round(n_lists**0.5))
        filing = Filing.of(Z, [members for members in members_of(part) if len(members)], n_lists)
        return filing.centres, filing.list_of
    if n_lists == 1:
        return Z.mean(axis=0, keepdims=True), np.zeros(len(Z), np.int64)
    means = import_faiss().Kmeans(
        Z.shape[1], n_lists, niter=10, seed=0, max_points_per_centroid=PER_CENTRE, min_points_per_centroid=1
    )
    means.train(Z)
    return means.centroids, means.index.search(Z, 1)[1][:, 0]


def _looked_through(Z: np.ndarray, members: np.ndarray, wanted: np.ndarray) -> Iterator[Found]:
    """Yield what the rows of a small class find among themselves: all are compared."""
    r = min(int(wanted[members].max()) + 1, len(members))
    if r > 1:
        index = NearestNeighbors(algorithm="brute", n_neighbors=r).fit(Z[members])
        for block in row_blocks(len(members), r):
            yield members[block], members[index.kneighbors(Z[members[block]], return_distance=False)]


def projection(X: Any, n_components: int | None) -> Callable[[Any], np.ndarray]:
    """Return the map of rows to the leading principal components of a sample of X; it yields float32, by blocks.

    None, or more of them than there are features: the rows themselves. 0: 48 for more than 96 features.
    """
    n, p = X.shape
    d = PROJECTED_TO if n_components == 0 and p > PROJECTED_FROM else n_components or p
    sample = X[:: -(-n // SAMPLE)]
    if d >= min(p, sample.shape[0]):
        middle = 0.0 if issparse(X) else X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        return lambda Q: np.ascontiguousarray(Q.toarray() if issparse(Q) else Q - middle, dtype=np.float32)
    pca = TruncatedSVD(d, random_state=0) if issparse(X) else PCA(d, svd_solver="covariance_eigh")
    V = pca.fit(sample).components_.T.astype(np.float32)
    origin = None if issparse(X) else pca.mean_.astype(X.dtype)

    def project(Q: Any) -> np.ndarray:
        Z = np.empty((Q.shape[0], d), np.float32)
        for rows in row_blocks(Q.shape[0], p):
            Z[rows] = (Q[rows] if origin is None else Q[rows] - origin).astype(np.float32) @ V
        return Z

    return project


def _put_nearest(
    lists: NeighborLists, X: Any, codes: np.ndarray, relation: Relation, rows: np.ndarray, found: np.ndarray
) -> None:
    """Fill the lists of some rows with the nearest of those found, by the distances in all features."""
    for block, j, distances in _ranked(X, rows, X, found):
        i = rows[block]
        lists.put(i, j, distances, (j >= 0) & relation.holds(codes, i[:, None], j))


def _ranked(Q: Any, asked: np.ndarray, X: Any, found: np.ndarray) -> list[tuple[slice, np.ndarray, np.ndarray]]:
    """Return, by blocks of the queries asked, what was found for them (-1: none), nearest first, and its distances."""
    ranked: list[tuple[slice, np.ndarray, np.ndarray]] = []

    def part(blocks: Sequence[slice]) -> Value:
        for block in blocks:
            j = found[block]
            distances = np.where(j < 0, np.inf, _distances(Q[asked[block]], X, j))
            order = np.argsort(distances, axis=1, kind="stable")
            ranked.append((block, np.take_along_axis(j, order, axis=1), np.take_along_axis(distances, order, axis=1)))
        return 0.0, 0.0

    # the differences of a block stay in the cache of a core
    in_threads(part, row_blocks(len(found), found.shape[1] * X.shape[1], 2**18), found.size * X.shape[1])
    return ranked


def _distances(Q: Any, X: Any, j: np.ndarray) -> np.ndarray:
    """Return the distances from queries (b, p) to rows j of X (b, r)."""
    if issparse(X):
        apart = csr_array(Q)[np.repeat(np.arange(len(j)), j.shape[1])] - X[j.ravel()]
        return np.sqrt(apart.multiply(apart).sum(axis=1)).reshape(j.shape)
    apart = X[j] - Q[:, None]
    return np.sqrt(np.einsum("brp,brp->br", apart, apart))


def measured_recall(X: Any, codes: np.ndarray, G: csr_array, relation: Relation) -> float:
    """Return the share of true neighbours in the lists of 500 rows, spread evenly: of G, compared with all pairs.

    A neighbour is true if it is as near as the k-th nearest, k the length of the list.
    """
    listed = np.diff(G.indptr)
    asked = np.flatnonzero(listed)
    asked = asked[:: -(-len(asked) // QUESTIONED)] if len(asked) else asked
    k = listed[asked].max(initial=1)
    true = np.full((len(asked), k), np.inf)
    for rows in row_blocks(X.shape[0], max(1, len(asked))):
        distances = euclidean_distances(X[asked], X[rows])
        distances[~relation.holds(codes, asked[:, None], np.arange(X.shape[0])[rows])] = np.inf
        true = np.partition(np.hstack([true, distances]), k - 1, axis=1)[:, :k]
    true.sort(axis=1)
    own = [G.data[G.indptr[row] : G.indptr[row + 1]] for row in asked]
    farthest = true[np.arange(len(asked)), listed[asked] - 1] * (1 + 1e-5)
    return float(np.mean([np.mean(d <= bound) for d, bound in zip(own, farthest, strict=True)])) if own else 1.0


def _number(value: Any, name: str) -> int:
    """Return the integer, 0 for "auto"."""
    if isinstance(value, str) and value == "auto":
        return 0
    return check_integer(value, name, 1)


def import_faiss() -> Any:
    """Return faiss. Imported first, it would leave scikit-learn's search with one thread for good.

    scikit-learn looks for the libraries that have threads in its first search, and limits those it knows: faiss must
    not be among them.
    """
    if "faiss" not in sys.modules:
        NearestNeighbors(n_neighbors=1, algorithm="brute").fit(np.eye(2)).kneighbors(np.eye(2))
        _OURS.append("faiss")
    elif not _OURS:
        _OURS.append("theirs")
        warn_user(
            "faiss was imported before nearkin's first approximate search: from then on scikit-learn's own search may "
            "use one thread only. Let nearkin import it, or search once with scikit-learn before."
        )
    try:
        import faiss
    except ImportError as error:
        raise ImportError('An approximate search needs faiss: pip install "nearkin[ann]".') from error
    return faiss


_OURS: list[str] = []
