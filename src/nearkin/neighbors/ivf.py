"""Approximate search: rows in lists of near ones, of which the nearest few are looked through.

The usual inverted file starves a search by class: a row deep inside a large class finds nothing but kin in the lists
around it. Here every list holds rows of one class (small classes share), so both questions are a choice of lists: rows
look for kin in the nearest lists of their class, for strangers in the nearest lists of all others. All rows of a list
look at once, through the lists nearest to theirs, which is a matrix product. This happens in few dimensions; what is
found there is ranked again by the distances of the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.metrics import euclidean_distances

from .._blocks import near_origin, row_blocks
from .._parallel import Value, in_threads
from .._validation import check_integer
from .quantizer import CoarseQuantizer, InvertedLists, IVFIndex, import_faiss
from .search import SMALL_CLASS, Index, NeighborLists, Relation, members_of
from .tiles import TILE, Tile, nearest_candidates

BRUTE_CLASS = 20_000  # a class of at most so many rows is looked through whole: as quick as its lists
TOGETHER = 512  # rows of such a class, or of a list, that look at once
LISTS, PROBES = 8, 64  # for rows that look by themselves: lists, times sqrt(n), and how many of them are looked through
LISTS_TOGETHER, PROBES_TOGETHER = 2, 128  # for the rows of a list together: the longer, the fewer are brought together
PROJECTED_FROM = 96
PROJECTED_TO = 48
SAMPLE = 20_000  # rows from which the few dimensions are learned
IN_CACHE = 2**18  # numbers of the differences of some rows, which stay in the cache of a core
QUESTIONED = 500  # rows of which the recall is measured


class ApproximateSearch(BaseEstimator):
    """How to search approximately: in lists of near rows, and in fewer dimensions.

    Parameters
    ----------
    n_lists : "auto" or int, default="auto"
        Lists into which the rows are cut, by k-means: a class of more than 64 rows has lists of its own, at least one,
        smaller ones share. "auto" takes 2 sqrt(n) for the rows of a table among themselves, where those of a list look
        together, and 8 sqrt(n) for new rows and for Dask arrays.
    n_probes : "auto" or int, default="auto"
        Lists that are looked through: the nearest ones. "auto" takes 128 for the rows of a table among themselves, and
        64 for every new row and every row of a Dask array. More find more, and take longer.
    n_components : "auto", int or None, default="auto"
        Leading principal components in which the lists are made and looked through; None takes the features
        themselves. "auto" takes 48 where there are more than 96 features.
    n_rerank : "auto" or int, default="auto"
        How many are looked for, to be ranked again by their distances in all features, which alone are precise.
        "auto" takes 5 k + 10.
    check_recall : bool, default=False
        Whether to search exactly for 500 rows, spread evenly, too, and say what share of their true neighbours was
        found: `search_recall_` of the estimator.

    Notes
    -----
    Needs faiss (`pip install "nearkin[ann]"`). The search is seeded: equal rows in equal order, and as many threads,
    give equal lists. Memory: 8 bytes a row and component beside the rows. Time, with the defaults and d components:
    O(n p d) for these, O(n d sqrt(n)) for the lists and to look through them (64 sqrt(n) rows for every row; a class of
    up to 20,000 rows is looked through whole), O(n r p) to rank r again.

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


class IVFSearch:
    """The searcher that an `ApproximateSearch` describes; it projects and files the same rows once."""

    name = "approximate"

    def __init__(self, knobs: ApproximateSearch) -> None:
        import_faiss()
        self.n_lists = _number(knobs.n_lists, "n_lists")
        self.n_probes = _number(knobs.n_probes, "n_probes")
        self.n_components = None if knobs.n_components is None else _number(knobs.n_components, "n_components") or 0
        self.n_rerank = _number(knobs.n_rerank, "n_rerank")
        self.recall: dict[str, float] | None = {} if knobs.check_recall else None
        self._projected: tuple[Any, np.ndarray] | None = None
        self._filed: tuple[np.ndarray, np.ndarray, InvertedLists] | None = None

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: Relation) -> csr_array:
        """Return G as `nearest` does, or most of it."""
        Z = self._projection_of(X)
        wanted = np.where(lengths > 0, self._ranked_again(lengths, len(Z)), 0)
        lists = NeighborLists(lengths, X.dtype)

        def part(searches: Sequence[Search]) -> Value:
            for search in searches:
                found = nearest_candidates(Z[search.rows], search.candidates(), search.n_found)
                _put_nearest(lists, X, codes, relation, search.rows, found)
            return 0.0, 0.0

        searches = list(self._searches(Z, codes, wanted, relation))
        in_threads(part, searches, len(Z) * Z.shape[1] * len(searches))
        G = lists.to_csr()
        if self.recall is not None:
            self.recall[relation.value] = measured_recall(X, codes, G, relation)
        return G

    def index(self, X: Any, n_found: int) -> Index:
        """Return an index over rows, for queries that are not among them."""
        n = X.shape[0]
        project = projection(X, self.n_components)
        file = IVFIndex(project(X), self._n_lists(n, LISTS))
        r = int(self._ranked_again(np.array(min(n_found, n)), n))

        def search(Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
            distances, numbers = np.empty((Q.shape[0], k), X.dtype), np.empty((Q.shape[0], k), np.intp)
            for asked, found in file.found(project(Q), r, self.n_probes or PROBES):
                for block in row_blocks(len(asked), r * X.shape[1], IN_CACHE):
                    rows = asked[block]
                    j, d = _ranked(Q[rows], X, found[block])
                    distances[rows], numbers[rows] = d[:, :k], j[:, :k]
            return distances, numbers

        return search

    def _ranked_again(self, lengths: np.ndarray, n: int) -> np.ndarray:
        return np.minimum(n_ranked(self.n_rerank, lengths), n)

    def _n_lists(self, n: int, times: int) -> int:
        return self.n_lists or int(times * n**0.5)

    def _projection_of(self, X: Any) -> np.ndarray:
        numbers = X.data if issparse(X) else X
        if self._projected is None or self._projected[0] is not numbers:
            self._projected = (numbers, projection(X, self.n_components)(X))
        return self._projected[1]

    def _filed_by(self, codes: np.ndarray, Z: np.ndarray) -> InvertedLists:
        """Return the rows of every class in lists of their own; those of the small classes share, in the last ones."""
        if self._filed is None or self._filed[0] is not Z or not np.array_equal(self._filed[1], codes):
            classes = members_of(codes)
            groups = [members for members in classes if len(members) > SMALL_CLASS]
            small = [members for members in classes if len(members) <= SMALL_CLASS]
            filing = CoarseQuantizer.of(
                Z, [*groups, *([np.concatenate(small)] if small else [])], self._n_lists(len(Z), LISTS_TOGETHER)
            )
            self._filed = (Z, codes, InvertedLists(Z, filing))
        return self._filed[2]

    def _searches(self, Z: np.ndarray, codes: np.ndarray, wanted: np.ndarray, relation: Relation) -> Iterator[Search]:
        """Yield who looks through which rows: all that want any, for as many as they want in the relation."""
        sizes = np.bincount(codes)
        large = np.flatnonzero(sizes > SMALL_CLASS)  # the groups of the filing; behind them the small classes
        asking = wanted > 0
        if relation is Relation.OTHER:
            filed = self._filed_by(codes, Z)
            for group in range(len(large)):
                yield from self._by_lists(filed, group, partial(filed.filing.lists_but, group), asking, wanted)
            if len(large) < len(sizes):
                # Among the r + n_c nearest at most n_c are kin, so at least r are strangers.
                enough = wanted + sizes[codes]
                yield from self._by_lists(filed, len(large), lambda: filed.filing.all_lists, asking, enough)
            return
        for members in members_of(codes):
            if len(members) <= BRUTE_CLASS:
                yield from _of_class(Z, members, members[asking[members]], wanted)
        for group in np.flatnonzero(sizes[large] > BRUTE_CLASS).tolist():
            filed = self._filed_by(codes, Z)
            yield from self._by_lists(filed, group, partial(filed.filing.lists_of, group), asking, wanted + 1)

    def _by_lists(
        self, filed: InvertedLists, group: int, lists: Callable[[], np.ndarray], asking: np.ndarray, enough: np.ndarray
    ) -> Iterator[Search]:
        """Yield the searches of a group: the rows of a list look through the lists nearest to it."""
        for number in filed.filing.lists_of(group):
            rows = filed.rows[number]
            rows = rows[asking[rows]]
            for some in (rows[block] for block in row_blocks(len(rows), 1, TOGETHER)):
                n_found = int(enough[some].max())
                near = partial(filed.near, number, lists, self.n_probes or PROBES_TOGETHER, n_found)
                yield Search(some, n_found, near)


class Search(NamedTuple):
    """Some rows that look for `n_found` neighbours among the same candidates."""

    rows: np.ndarray
    n_found: int
    candidates: Callable[[], Iterable[Tile]]


def _of_class(Z: np.ndarray, members: np.ndarray, queries: np.ndarray, wanted: np.ndarray) -> Iterator[Search]:
    """Yield the searches of some members of a class, through the whole of it."""

    def whole() -> Iterator[Tile]:
        for block in row_blocks(len(members), 1, TILE):
            yield members[block], Z[members[block]]

    for block in row_blocks(len(queries), 1, TOGETHER):
        rows = queries[block]
        yield Search(rows, int(wanted[rows].max()) + 1, whole)


def n_dimensions(n_components: int | None, p: int) -> int:
    """Return in how many dimensions p features are searched: None for all, 0 for the usual number."""
    return PROJECTED_TO if n_components == 0 and p > PROJECTED_FROM else n_components or p


def n_ranked(n_rerank: int, k: Any) -> np.ndarray:
    """Return how many are looked for, to be ranked again: at least k, 0 for the usual number."""
    return np.maximum(n_rerank or 5 * k + 10, k)


def projection(X: Any, n_components: int | None) -> Callable[[Any], np.ndarray]:
    """Return the map of rows to the leading principal components of a sample of X, in units of its largest entry.

    It yields float32, by blocks. None, or more components than there are features: the rows themselves, in this unit.
    0: 48 for more than 96 features.
    """
    n, p = X.shape
    d = n_dimensions(n_components, p)
    sample = X[:: -(-n // SAMPLE)]
    origin = None if issparse(X) else sample.mean(axis=0, dtype=np.float64).astype(X.dtype)
    sample = sample if origin is None else sample - origin
    unit = abs(sample).max() or 1.0  # squares in float32 neither vanish nor overflow
    V = None
    if d < min(p, sample.shape[0]):
        pca = TruncatedSVD(d, random_state=0) if issparse(X) else PCA(d, svd_solver="covariance_eigh")
        V = pca.fit(sample / unit).components_.T.astype(np.float32)

    def project(Q: Any) -> np.ndarray:
        Z = np.empty((Q.shape[0], p if V is None else d), np.float32)
        for rows in row_blocks(Q.shape[0], p):
            q = ((Q[rows] if origin is None else Q[rows] - origin) / unit).astype(np.float32)
            Z[rows] = q @ V if V is not None else q.toarray() if issparse(q) else q
        return Z

    return project


def _put_nearest(
    lists: NeighborLists, X: Any, codes: np.ndarray, relation: Relation, rows: np.ndarray, found: np.ndarray
) -> None:
    """Fill the lists of some rows with the nearest of those found, by the distances in all features."""
    width = 1 + X.nnz // X.shape[0] if issparse(X) else X.shape[1]
    for block in row_blocks(len(rows), found.shape[1] * width, IN_CACHE):
        i = rows[block]
        j, distances = _ranked(X[i], X, found[block])
        lists.put(i, j, distances, relation.holds(codes, i[:, None], j))


def _ranked(Q: Any, X: Any, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what was found for queries, nearest first, and the distances."""
    distances = _distances(Q, X, found)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(distances, order, axis=1)


def _distances(Q: Any, X: Any, j: np.ndarray) -> np.ndarray:
    """Return the distances from queries (b, p) to rows j of X (b, r)."""
    if issparse(X):
        apart = csr_array(Q)[np.repeat(np.arange(len(j)), j.shape[1])] - X[j.ravel()]
        return np.sqrt(apart.multiply(apart).sum(axis=1)).reshape(j.shape)
    apart = X[j].astype(np.result_type(X, Q), copy=False)
    apart -= Q[:, None]  # in its place: to ask for fresh memory takes longer than all else here
    return np.sqrt(np.einsum("brp,brp->br", apart, apart))


def measured_recall(X: Any, codes: np.ndarray, G: csr_array, relation: Relation) -> float:
    """Return the share of true neighbours in the lists of 500 rows, spread evenly: of G, compared with all pairs.

    A neighbour is true if it is as near as the k-th nearest, k the length of the list.
    """
    X = X if issparse(X) else near_origin(X)
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
