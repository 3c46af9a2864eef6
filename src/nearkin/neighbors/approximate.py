"""Which search an estimator's `search` names, and the approximate one: rows in lists of near ones,
of which the nearest few are searched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import NearestNeighbors

from .._blocks import parallel_map, row_blocks
from .._messages import warn_user
from .._validation import check_integer
from .lists import (
    EXACT,
    RELATIONS,
    SMALL_CLASS,
    Index,
    Indexed,
    Listed,
    NeighborLists,
    Searcher,
    members_of,
    places,
    related,
    transformed,
)


class ApproximateSearch(BaseEstimator):
    """How to search approximately: in lists of near rows, and in fewer dimensions.

    Parameters
    ----------
    n_lists : "auto" or int, default="auto"
        Lists into which k-means partitions the rows: a class of more than 64 rows has lists of its
        own, at least one; smaller classes share. "auto" takes 2 sqrt(n) for the rows of a table
        among themselves, where the rows of a list are searched together, and 8 sqrt(n) for new rows
        and for Dask arrays.
    n_probes : "auto" or int, default="auto"
        Lists that are searched: the nearest ones. "auto" takes, for the rows of a table among
        themselves, as many as hold 98 % of the true neighbours of some 500 rows, at least 64 and no
        more than 128 or hold 65,536 rows; 64 for every new row and every row of a Dask array. More
        lists find more neighbours and take longer.
    n_components : "auto", int or None, default="auto"
        Number of leading principal components in which the lists are formed and searched; None
        takes the features themselves. "auto" takes 48 where there are more than 96 features.
    n_rerank : "auto" or int, default="auto"
        Number of candidates that are ranked again by their distances in all features. "auto" takes
        5 k + 10.
    check_recall : bool, default=False
        Whether to search exactly for 500 rows, evenly spaced, as well, and report which share of
        their true neighbours was found: `search_recall_` of the estimator.

    Notes
    -----
    Needs faiss (`pip install "nearkin[ann]"`). The search is seeded: equal rows in equal order, and
    equal numbers of threads, give equal lists. Memory: 8 bytes a row and component beside the rows.
    Time, with the defaults and d components: O(n p d) for these, O(n d sqrt(n)) to form the lists
    and to search them (up to 65,536 candidates for every row, or 64 sqrt(n) where these are more; a
    class of up to 20,000 rows is searched by brute force), O(n r p) to rank r candidates again.

    If faiss is imported first in a process, scikit-learn's own search uses one thread only; nearkin
    imports it only here, after a first exact search.

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


APPROXIMATE_ROWS = 100_000


def choose_search(n: int) -> str:
    """Return what search="auto" takes for n rows: "exact" below 100,000, "approximate" from there
    on.

    Below, the exact search takes minutes at most and needs no other package. The rule does not
    depend on what is installed: the same rows give the same map everywhere.
    """
    return "approximate" if n >= APPROXIMATE_ROWS else "exact"


def searcher(search: Any, n: int, distances: Any = None) -> Searcher:
    """Return the object that searches among n rows.

    Parameters
    ----------
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer
        A transformer is used like scikit-learn's KNeighborsTransformer: cloned for every search,
        given `n_neighbors`, fitted to the candidates, and applied to the queries, which gives a
        sparse matrix of distances.
    n : int
    distances : sparse matrix of shape (n, n), default=None
        Distances from every row to some others, instead of a search.

    Raises
    ------
    ImportError
        If an approximate search is requested and faiss is not installed.
    ValueError
        If `search` is none of these, or `distances` has a wrong shape or is negative.
    """
    if distances is not None:
        return Listed(distances, n)
    if isinstance(search, str):
        named = choose_search(n) if search == "auto" else search
        if named == "exact":
            return EXACT
        if named == "approximate":
            search = ApproximateSearch()
    if search is EXACT:
        return EXACT
    if isinstance(search, ApproximateSearch):
        return IVFSearch(search)
    if all(hasattr(search, method) for method in ("fit", "transform", "get_params")):
        return Indexed(partial(transformed, search), type(search).__name__)
    choices = (
        "'exact', 'approximate', 'auto', an ApproximateSearch or a transformer like "
        "KNeighborsTransformer"
    )
    raise ValueError(f"search must be {choices}, got {search!r}.")


BRUTE_CLASS = 20_000  # rows of a class up to which brute force is as quick
TOGETHER = 512  # rows of a class or of a list that are searched together

# Number of lists / sqrt(n), and how many of them are searched: for single queries, and for the rows
# of a list together, where longer lists leave fewer rows to gather.
LISTS, PROBES = 8, 64
LISTS_TOGETHER, PROBES_TOGETHER = 2, (64, 128)  # fewest and most,
CANDIDATES = 2**16  # but as many as hold so many rows
FOUND = 0.98  # of the true neighbours of these rows, which the nearest lists are to hold:
SAMPLED_LISTS, SAMPLED_ROWS = 16, 32
QUERIES = 2**15  # that are searched at a time
IN_CACHE = 2**18  # entries of the differences of some rows, which stay in the cache of a core
Tile = tuple[np.ndarray, np.ndarray]

# Rows whose nearest candidates are searched together, how many are to be found, and the tiles of
# these candidates, which are made when they are searched.
Search = tuple[np.ndarray, int, Iterator[Tile]]


class IVFSearch:
    """The searcher of an `ApproximateSearch`; for the same rows it projects and partitions once.

    The usual inverted file fails in a search by class: around a row deep inside a large class, all
    lists hold rows of that class only. Here every list holds rows of one class (small classes
    share), so both searches select lists: those of the row's class, or those of all others. All
    rows of a list are searched together, among the lists nearest to theirs, by matrix products.
    This happens in few dimensions; what is found there is ranked again by the distances in all
    features. Single queries are searched by faiss.
    """

    name = "approximate"

    def __init__(self, parameters: ApproximateSearch) -> None:
        import_faiss()
        # 0 stands for "auto"
        self.n_lists = _number(parameters.n_lists, "n_lists")
        self.n_probes = _number(parameters.n_probes, "n_probes")
        d = parameters.n_components
        self.n_components = None if d is None else _number(d, "n_components")
        self.n_rerank = _number(parameters.n_rerank, "n_rerank")
        self.recall: dict[str, float] | None = {} if parameters.check_recall else None
        self._projected: tuple[Any, np.ndarray] | None = None
        self._partitioned: tuple[np.ndarray, np.ndarray, InvertedLists] | None = None

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: str) -> csr_array:
        """Return G as `nearest` does, or most of it."""
        entries = X.data if issparse(X) else X
        if self._projected is None or self._projected[0] is not entries:
            self._projected = (entries, projection(X, self.n_components)(X))
        Z = self._projected[1]
        n_candidates = np.minimum(n_ranked(self.n_rerank, lengths), len(Z) * (lengths > 0))
        lists = NeighborLists(lengths, X.dtype)

        def fill(search: Search) -> None:
            rows, n_found, tiles = search
            found = nearest_candidates(Z[rows], tiles, n_found)
            width = 1 + X.nnz // X.shape[0] if issparse(X) else X.shape[1]
            for block in row_blocks(len(found), found.shape[1] * width, IN_CACHE):
                i = rows[block]
                j, distances = _rank(X[i], X, found[block])
                lists.put(i, j, distances, related(codes, i[:, None], j, relation))

        searches = list(self._plan(Z, codes, n_candidates, relation, int(lengths.max())))
        parallel_map(fill, searches, len(Z) * Z.shape[1] * len(searches))
        G = lists.to_csr()
        if self.recall is not None:
            self.recall[RELATIONS[relation]] = measured_recall(X, codes, G, relation)
        return G

    def index(self, X: Any, n_found: int) -> Index:
        """Return an index over rows, for queries that are not among them."""
        faiss = import_faiss()
        n = X.shape[0]
        project = projection(X, self.n_components)
        Z = project(X)
        quantizer = CoarseQuantizer.of(Z, [np.arange(n)], self.n_lists or int(LISTS * n**0.5))
        n_lists, d = quantizer.centres.shape
        centres = faiss.IndexFlatL2(d)
        centres.add(quantizer.centres)
        ivf = faiss.IndexIVFFlat(centres, d, n_lists)
        ivf.is_trained = True  # the centres, and the list of every row, are known
        ivf.add_core(n, faiss.swig_ptr(Z), None, faiss.swig_ptr(quantizer.list_of))
        r = min(int(n_ranked(self.n_rerank, min(n_found, n))), n)

        def candidates(Z: np.ndarray) -> np.ndarray:
            """Return the numbers of the r rows found near each query.

            Where the nearest lists hold fewer, more are searched. A query so far away that its
            distances overflow finds any rows: all are as far.
            """
            found, lacking = np.full((len(Z), r), -1), np.arange(len(Z))
            n_probes = self.n_probes or PROBES
            while len(lacking):
                probing = faiss.SearchParametersIVF(nprobe=min(n_probes, n_lists))
                found[lacking] = ivf.search(Z[lacking], r, params=probing)[1]
                lacking = lacking[(found[lacking] < 0).any(axis=1)]
                if n_probes >= n_lists:
                    found[lacking] = np.arange(r)
                    break
                n_probes *= 4
            return found

        def search(Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
            distances = np.empty((Q.shape[0], k), X.dtype)
            numbers = np.empty((Q.shape[0], k), np.intp)
            Z = project(Q)
            for queries in row_blocks(len(Z), 1, QUERIES):
                found = candidates(Z[queries])
                for block in row_blocks(len(found), r * X.shape[1], IN_CACHE):
                    rows = slice(queries.start + block.start, queries.start + block.stop)
                    j, d = _rank(Q[rows], X, found[block])
                    distances[rows], numbers[rows] = d[:, :k], j[:, :k]
            return distances, numbers

        return search

    def _inverted_lists(self, Z: np.ndarray, codes: np.ndarray) -> InvertedLists:
        """Return the rows of every class in lists of their own; the small classes share the last
        ones.
        """
        known = self._partitioned
        if known is None or known[0] is not Z or not np.array_equal(known[1], codes):
            n_lists = self.n_lists or int(LISTS_TOGETHER * len(Z) ** 0.5)
            large = np.bincount(codes) > SMALL_CLASS
            groups = members_of(np.where(large, np.cumsum(large) - 1, large.sum())[codes])
            lists = InvertedLists(Z, CoarseQuantizer.of(Z, groups, n_lists))
            known = self._partitioned = (Z, codes, lists)
        return known[2]

    def _plan(
        self, Z: np.ndarray, codes: np.ndarray, n_candidates: np.ndarray, relation: str, k: int
    ) -> Iterator[Search]:
        """Yield searches that together find `n_candidates[i]` rows for every row i, of which k are
        its neighbours.
        """
        sizes = np.bincount(codes)
        large = sizes > SMALL_CLASS  # groups of the quantizer; the last one holds the small classes
        n_large = int(large.sum())
        by_lists: list[tuple[int, str, np.ndarray]] = []
        if relation == "other":
            by_lists += [(group, relation, n_candidates) for group in range(n_large)]
            if n_large < len(sizes):
                # among the r + n_c nearest at most n_c are of class c, so at least r of others
                by_lists.append((n_large, "all", n_candidates + sizes[codes]))
        else:
            for members in members_of(codes):
                if len(members) <= BRUTE_CLASS:
                    for rows in _together(members, n_candidates):
                        yield rows, int(n_candidates[rows].max()) + 1, _tiles(members, Z)
            with_itself = n_candidates + 1
            too_large = np.flatnonzero(sizes[large] > BRUTE_CLASS)
            by_lists += [(int(group), "same", with_itself) for group in too_large]
        n_probes: dict[str, int] = {}
        for group, among, n_found in by_lists:
            lists = self._inverted_lists(Z, codes)
            if among not in n_probes:
                groups = [one for one, relation, _ in by_lists if relation == among]
                n_probes[among] = self.n_probes or lists.n_probes(groups, among, k)
            for number in range(*lists.quantizer.first[group : group + 2]):
                for rows in _together(lists.rows[number], n_candidates):
                    n_rows = int(n_found[rows].max())
                    yield rows, n_rows, lists.nearest_tiles(number, among, n_probes[among], n_rows)


def _number(value: Any, name: str) -> int:
    """Return the integer, 0 for "auto"."""
    if isinstance(value, str) and value == "auto":
        return 0
    return check_integer(value, name, 1)


def _together(rows: np.ndarray, n_candidates: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows that need candidates, by blocks."""
    rows = rows[n_candidates[rows] > 0]
    for block in row_blocks(len(rows), 1, TOGETHER):
        yield rows[block]


def _tiles(members: np.ndarray, Z: np.ndarray) -> Iterator[Tile]:
    """Yield all rows of a class, as candidates of each other."""
    for block in row_blocks(len(members), 1, TILE):
        yield members[block], Z[members[block]]


ONE_ROUND = 256  # lists that one k-means makes
PER_CENTRE = 40  # rows from which the centre of a list is learned


@dataclass(frozen=True)
class CoarseQuantizer:
    """Which list every row is in; a list holds rows of one group.

    Attributes
    ----------
    centres : ndarray of shape (n_lists, d), float32
        The centre of every list, learned by k-means from some of its rows.
    list_of : ndarray of shape (n,), int64
        The number of every row's list.
    first : list of int
        The number of the first list of every group, and behind them n_lists.
    """

    centres: np.ndarray
    list_of: np.ndarray
    first: list[int]

    def lists_in(self, relation: str, group: int) -> np.ndarray:
        """Return the numbers of the lists of a group ("same"), of all groups, or of the "other"
        ones.
        """
        every = np.arange(len(self.centres))
        if relation == "all":
            return every
        own = (every >= self.first[group]) & (every < self.first[group + 1])
        return every[own == (relation == "same")]

    @classmethod
    def of(
        cls, Z: np.ndarray, groups: Sequence[np.ndarray], n_lists: int, most: int | None = None
    ) -> CoarseQuantizer:
        """Partition the rows of each group, together all rows, into about `n_lists` lists, in
        proportion to its size; into at most `most`.

        No list is empty. Equal rows share one, so that there may be fewer.
        """
        centres, list_of, first = [], np.empty(len(Z), np.int64), [0]
        for members in groups:
            share = min(max(1, round(n_lists * len(members) / len(Z))), len(members))
            rows = Z[members]
            if most is not None or share <= ONE_ROUND:
                of_group, own = _k_means(rows, min(share, most or share))
            else:  # two rounds of few; a part of many equal rows needs no more
                n_parts = round(share**0.5)
                parts = members_of(_k_means(rows, n_parts)[1])
                lists = cls.of(rows, parts, share, max(ONE_ROUND, 2 * n_parts))
                of_group, own = lists.centres, lists.list_of
            centres.append(of_group)
            list_of[members] = first[-1] + own
            first.append(first[-1] + len(of_group))
        return cls(np.vstack(centres), list_of, first)


def _k_means(Z: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres that some rows are nearest to, and for every row the number of its own."""
    if n_lists == 1:
        return Z.mean(axis=0, keepdims=True), np.zeros(len(Z), np.int64)
    limits = {"max_points_per_centroid": PER_CENTRE, "min_points_per_centroid": 1}
    means = import_faiss().Kmeans(Z.shape[1], n_lists, niter=10, seed=0, **limits)
    means.train(Z)
    used, own = np.unique(means.index.search(Z, 1)[1][:, 0], return_inverse=True)
    return means.centroids[used], own


class InvertedLists:
    """Rows of the same list side by side in memory.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    quantizer : CoarseQuantizer
    """

    def __init__(self, Z: np.ndarray, quantizer: CoarseQuantizer) -> None:
        self.quantizer = quantizer
        self.sizes = np.bincount(quantizer.list_of)
        self.rows = members_of(quantizer.list_of)
        self.Z = [Z[rows] for rows in self.rows]
        self._squares = np.einsum("ij,ij->i", quantizer.centres, quantizer.centres)

    def n_probes(self, groups: Sequence[int], relation: str, k: int) -> int:
        """Return how many of the nearest lists hold 98 % of the k nearest rows of some rows of
        these groups, within the limits.
        """
        first = self.quantizer.first
        numbers = np.concatenate([np.arange(*first[group : group + 2]) for group in groups])

        def ranks(number: int) -> np.ndarray:
            """Return, for the k nearest rows of some rows of a list, how many lists are nearer than
            theirs.
            """
            near = self._nearest(number, relation)
            rank = np.zeros(len(self.sizes), np.intp)
            rank[near] = np.arange(len(near))
            queries = self.Z[number][:: -(-self.sizes[number] // SAMPLED_ROWS)]
            found = nearest_candidates(queries, self._tiles_of(near), k)
            return rank[self.quantizer.list_of[found]].ravel()

        sampled = numbers[:: -(-len(numbers) // SAMPLED_LISTS)]
        work = len(sampled) * SAMPLED_ROWS * len(self.quantizer.list_of)
        found = np.concatenate(parallel_map(ranks, sampled, work))
        fewest, most = PROBES_TOGETHER
        most = max(most, int(CANDIDATES / self.sizes.mean()))
        return int(np.clip(1 + np.quantile(found, FOUND, method="higher"), fewest, most))

    def nearest_tiles(
        self, number: int, relation: str, n_lists: int, n_rows: int
    ) -> Iterator[Tile]:
        """Yield numbers of rows, and the rows, of the `n_lists` lists nearest to one, or of enough
        for `n_rows`.

        The lists are those of groups in the relation, nearer ones first.
        """
        near = self._nearest(number, relation)
        n_held = np.cumsum(self.sizes[near])
        yield from self._tiles_of(near[: max(n_lists, 1 + int(np.searchsorted(n_held, n_rows)))])

    def _nearest(self, number: int, relation: str) -> np.ndarray:
        """Return the lists of groups in the relation, the nearest to one of them first."""
        centres, first = self.quantizer.centres, self.quantizer.first
        group = int(np.searchsorted(first, number, side="right")) - 1
        near = self.quantizer.lists_in(relation, group)
        # OpenBLAS raises the flag for float32 lanes that it does not use
        with np.errstate(invalid="ignore"):
            away = self._squares - 2 * centres @ centres[number]
        return near[np.argsort(away[near])]

    def _tiles_of(self, near: np.ndarray) -> Iterator[Tile]:
        """Yield numbers of rows, and the rows, of some lists; several at a time, a large one in
        parts.
        """
        n_held = np.cumsum(self.sizes[near])
        for some in np.split(near, np.flatnonzero(np.diff(n_held // TILE)) + 1):
            rows = np.concatenate([self.rows[one] for one in some])
            Z = np.concatenate([self.Z[one] for one in some])
            for part in row_blocks(len(rows), 1, 2 * TILE):
                yield rows[part], Z[part]


TILE = 2048  # candidates at a time


def nearest_candidates(Q: np.ndarray, tiles: Iterable[Tile], k: int) -> np.ndarray:
    """Return the numbers of the k nearest candidates of every query, in any order.

    A search for one row at a time reads every candidate from memory for every row; here a tile of
    distances, some hundred rows by two thousand candidates, is one product and stays in the cache.
    Of a tile only what is nearer than the nearest so far is compared.

    Parameters
    ----------
    Q : ndarray of shape (b, d)
        Queries. Distances are rounded relative to how far queries and candidates are from the mean
        of the queries.
    tiles : iterable of integer array of shape (t,) and ndarray of shape (t, d)
        Numbers of candidates, and the candidates: about 2048 at a time, quickest where the nearer
        ones come first.
    k : int

    Returns
    -------
    numbers : integer array of shape (b, k), or narrower where there are fewer candidates

    Notes
    -----
    O(b c d) in products and O(b c) to compare, for c candidates.
    """
    middle = Q.mean(axis=0)
    Q = np.column_stack([2 * (middle - Q), np.ones(len(Q), Q.dtype)])
    distances = np.empty((len(Q), 0), Q.dtype)  # less |q|^2
    numbers = np.empty((len(Q), 0), np.intp)
    for which, Y in tiles:
        apart = np.empty((len(Y), Q.shape[1]), Q.dtype)
        np.subtract(Y, middle, out=apart[:, :-1])
        np.einsum("ij,ij->i", apart[:, :-1], apart[:, :-1], out=apart[:, -1])
        tile = Q @ apart.T
        if numbers.shape[1] < k:
            closer, closer_numbers = tile, np.broadcast_to(which, tile.shape)
        else:
            closer, closer_numbers = _below(tile, which, distances.max(axis=1, keepdims=True))
        distances = np.hstack([distances, closer])
        numbers = np.hstack([numbers, closer_numbers])
        if numbers.shape[1] > k:
            at = np.argpartition(distances, k - 1, axis=1)[:, :k]
            distances = np.take_along_axis(distances, at, axis=1)
            numbers = np.take_along_axis(numbers, at, axis=1)
    return numbers


def _below(tile: np.ndarray, which: np.ndarray, bound: np.ndarray) -> Tile:
    """Return what is below the bound of its row, moved to the left and filled up with infinities,
    and its numbers.
    """
    row, column = np.divmod(np.flatnonzero(tile < bound), tile.shape[1])
    count = np.bincount(row, minlength=len(tile))
    place = places(count)
    distances = np.full((len(tile), count.max()), np.inf, tile.dtype)
    numbers = np.zeros(distances.shape, np.intp)
    distances[row, place] = tile[row, column]
    numbers[row, place] = which[column]
    return distances, numbers


COLUMNS = 8192  # of a tile, where some hundred queries are compared with all rows


def squares_to_nearest(queries: np.ndarray, Z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared distances of some queries to their k nearest rows of Z, in any order, and
    the numbers of these, both of shape (n_queries, k).

    It needs no index, and is quick for a single query, too.
    """
    blocks = row_blocks(len(Z), 1, COLUMNS)
    tiles = ((np.arange(rows.start, rows.stop), Z[rows]) for rows in blocks)
    near = nearest_candidates(queries, tiles, k)
    apart = Z[near] - queries[:, None]
    return np.einsum("ijm,ijm->ij", apart, apart), near


PROJECTED_FROM = 96
PROJECTED_TO = 48
SAMPLE = 20_000  # rows from which the principal components are learned


def n_dimensions(n_components: int | None, p: int) -> int:
    """Return in how many dimensions to search p features: None for all, 0 for the usual one."""
    return PROJECTED_TO if n_components == 0 and p > PROJECTED_FROM else n_components or p


def projection(X: Any, n_components: int | None) -> Callable[[Any], np.ndarray]:
    """Return the map of rows to the leading principal components of a sample of X, in units of its
    largest entry.

    It yields float32, by blocks. None, or more components than there are features: the rows
    themselves, in this unit. 0: 48 for more than 96 features.
    """
    n, p = X.shape
    d = n_dimensions(n_components, p)
    sample = X[:: -(-n // SAMPLE)]
    origin = None if issparse(X) else sample.mean(axis=0, dtype=np.float64).astype(X.dtype)
    sample = sample if origin is None else sample - origin
    unit = abs(sample).max() or 1.0  # squares in float32 neither vanish nor overflow
    V = None
    if d < min(p, sample.shape[0]):
        pca = (
            TruncatedSVD(d, random_state=0) if issparse(X) else PCA(d, svd_solver="covariance_eigh")
        )
        V = pca.fit(sample / unit).components_.T.astype(np.float32)

    def project(Q: Any) -> np.ndarray:
        Z = np.empty((Q.shape[0], p if V is None else d), np.float32)
        for rows in row_blocks(Q.shape[0], p):
            q = ((Q[rows] if origin is None else Q[rows] - origin) / unit).astype(np.float32)
            Z[rows] = q @ V if V is not None else q.toarray() if issparse(q) else q
        return Z

    return project


def n_ranked(n_rerank: int, k: Any) -> np.ndarray:
    """Return how many candidates are ranked again: at least k, 0 for the usual number."""
    return np.maximum(n_rerank or 5 * k + 10, k)


def _rank(Q: Any, X: Any, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows j of X (b, r) that were found for queries (b, p), nearest first, and the
    distances.
    """
    if issparse(X):
        apart = csr_array(Q)[np.repeat(np.arange(len(j)), j.shape[1])] - X[j.ravel()]
        distances = np.sqrt(apart.multiply(apart).sum(axis=1)).reshape(j.shape)
    else:
        apart = X[j].astype(np.result_type(X, Q), copy=False)
        apart -= Q[:, None]  # in place: fresh memory would take longer than all else here
        distances = np.sqrt(np.einsum("brp,brp->br", apart, apart))
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(j, order, axis=1), np.take_along_axis(distances, order, axis=1)


RECALL_ROWS = 500  # of which the recall is measured


def measured_recall(X: Any, codes: np.ndarray, G: csr_array, relation: str) -> float:
    """Return the share of true neighbours in the lists of 500 rows, evenly spaced, by an exact
    search.

    A neighbour is true if it is as near as the k-th nearest, k the length of the list.
    """
    lengths = np.diff(G.indptr)
    rows = np.flatnonzero(lengths)
    rows = rows[:: -(-len(rows) // RECALL_ROWS) or 1]
    checked = np.zeros_like(lengths)
    checked[rows] = lengths[rows]
    true = EXACT.lists(X, codes, checked, relation)
    bounds = true.data[true.indptr[rows + 1] - 1] * (1 + 1e-5)
    shares = [
        np.mean(G.data[slice(*G.indptr[i : i + 2])] <= bound)
        for i, bound in zip(rows, bounds, strict=True)
    ]
    return float(np.mean(shares)) if shares else 1.0


@cache
def _search_before_faiss() -> None:
    """Let scikit-learn search once, unless it is too late: in its first search it looks for the
    libraries that have threads, and limits those it knows. faiss must not be among them.
    """
    if "faiss" not in sys.modules:
        NearestNeighbors(n_neighbors=1, algorithm="brute").fit(np.eye(2)).kneighbors(np.eye(2))
        return
    warn_user(
        "faiss was imported before nearkin's first approximate search: from then on "
        "scikit-learn's own search may use one thread only. Let nearkin import it, or search "
        "once with scikit-learn before."
    )


def import_faiss() -> Any:
    """Return faiss, which scikit-learn's search must precede: else that has one thread for good."""
    _search_before_faiss()
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            'An approximate search needs faiss: pip install "nearkin[ann]".'
        ) from error
    return faiss
