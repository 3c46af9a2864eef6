"""Approximate search: partitions rows into lists of near rows, and searches the nearest lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD

from .._blocks import row_blocks
from .._threads import parallel_map
from .._validation import check_integer
from .brute_force import nearest_candidates, tiles_of
from .inverted_lists import CoarseQuantizer, InvertedLists, import_faiss
from .lists import Index, NeighborLists, members_of, related


class ApproximateSearch(BaseEstimator):
    """The parameters of approximate search, in lists of near rows and in fewer dimensions.

    Parameters
    ----------
    n_lists : "auto" or int, default="auto"
        Number of lists into which k-means partitions the rows. "auto" takes 8 sqrt(n). In a search
        for neighbours of the same class, a class of more than 20,000 rows has its own share of
        them. In a Dask array, a class of more than 64 rows has its own lists, and smaller classes
        share lists.
    n_probes : "auto" or int, default="auto"
        Number of nearest lists that are searched for a row. If the rows of a table are searched
        among themselves, "auto" takes as many lists as are needed to find a share of .97 of the
        true neighbours of 500 rows, but lists of at most 131,072 rows in total; for new rows and
        for rows of a Dask array, 64. Searching more lists finds more neighbours and takes longer.
    n_components : "auto", int or None, default="auto"
        Number of leading principal components in which the lists are formed and searched; None uses
        the features themselves. "auto" takes 48 if there are more than 96 features.

    See Also
    --------
    nearkin.neighbors.recall : The share of the true neighbours that a search finds.

    Notes
    -----
    Needs faiss (`pip install "nearkin[ann]"`). The search is seeded: the same rows in the same
    order, with the same number of threads, give the same lists. Memory: 8 bytes per row and
    component besides the rows, and a few hundred megabytes per thread. Time, with the defaults and
    d components: O(n p d) to compute the components, O(n d sqrt(n)) to form the lists and to choose
    among them, O(n c d) to search c candidates for every row (all rows of its lists, up to 131,072;
    a class of up to 20,000 rows is searched by brute force), and O(n k p) to rank 5 k + 10
    candidates again by their distances in all features.

    If faiss is imported before scikit-learn's first search in a process, scikit-learn's searches
    may use only one thread from then on. nearkin therefore imports faiss only here, after an exact
    search.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import DNE, ApproximateSearch
    >>> X, y = load_digits(return_X_y=True)
    >>> DNE(10, search=ApproximateSearch(n_probes=100)).fit(X, y).search_
    'approximate'
    """

    def __init__(
        self,
        n_lists: int | str = "auto",
        n_probes: int | str = "auto",
        n_components: int | str | None = "auto",
    ) -> None:
        self.n_lists = n_lists
        self.n_probes = n_probes
        self.n_components = n_components


BRUTE_CLASS = 20_000  # rows of a class, up to which brute force is as fast
TOGETHER = 512  # rows of a class or of a list that are searched together

LISTS, PROBES = 8, 64  # number of lists / sqrt(n), and how many are searched for a new row
QUERIES = 2**15  # new rows that are searched at a time
IN_CACHE = 2**18  # differences between rows, by entries, that fit into the cache of a core

# Rows (b,) that are searched together, and a function that returns their candidates' indices (b, r)
Search = tuple[np.ndarray, Callable[[], np.ndarray]]


class IVFSearch:
    """The searcher of an `ApproximateSearch`; it projects and partitions the same rows only once.

    Neighbours are searched in lists of near rows, in few dimensions, and the candidates are ranked
    again by their distances in all features. Neighbours of the same class are searched class by
    class. Those of other classes are searched among all rows; lists that only contain rows of the
    query's class, which surround a row deep inside a large class, are skipped. New rows are
    searched by faiss.
    """

    name = "approximate"

    def __init__(self, parameters: ApproximateSearch) -> None:
        import_faiss()
        # 0 means "auto"
        self.n_lists = _number(parameters.n_lists, "n_lists")
        self.n_probes = _number(parameters.n_probes, "n_probes")
        d = parameters.n_components
        self.n_components = None if d is None else _number(d, "n_components")
        self._projected: tuple[Any, np.ndarray] | None = None
        self._partitioned: tuple[np.ndarray, CoarseQuantizer] | None = None

    def lists(self, X: Any, codes: np.ndarray, lengths: np.ndarray, relation: str) -> csr_array:
        """Return G like `nearest`, approximately."""
        entries = X.data if issparse(X) else X
        if self._projected is None or self._projected[0] is not entries:
            self._projected = (entries, projection(X, self.n_components)(X))
        Z = self._projected[1]
        n_candidates = np.minimum(n_ranked(lengths), len(Z) * (lengths > 0))
        lists = NeighborLists(lengths, X.dtype)

        def fill(search: Search) -> None:
            rows, candidates = search
            found = candidates()
            width = 1 + X.nnz // X.shape[0] if issparse(X) else X.shape[1]
            for block in row_blocks(len(found), found.shape[1] * width, IN_CACHE):
                i = rows[block]
                j, distances = _rank(X[i], X, found[block])
                lists.put(i, j, distances, related(codes, i[:, None], j, relation))

        searches = list(self._searches(Z, codes, n_candidates, relation, int(lengths.max())))
        parallel_map(fill, searches, len(Z) * Z.shape[1] * len(searches))
        return lists.to_csr()

    def index(self, X: Any, n_found: int) -> Index:
        """Return an index over rows, for new queries."""
        faiss = import_faiss()
        n = X.shape[0]
        project = projection(X, self.n_components)
        Z = project(X)
        quantizer = self._quantizer(Z, n)
        n_lists, d = quantizer.centres.shape
        centres = faiss.IndexFlatL2(d)
        centres.add(quantizer.centres)
        ivf = faiss.IndexIVFFlat(centres, d, n_lists)
        ivf.is_trained = True  # the centres, and the list of every row, are known
        ivf.add_core(n, faiss.swig_ptr(Z), None, faiss.swig_ptr(quantizer.list_of))
        r = min(n_ranked(min(n_found, n)), n)

        def candidates(Z: np.ndarray) -> np.ndarray:
            """Return the indices of the r rows found near each query.

            If the nearest lists contain fewer rows, more lists are searched. A query so far away
            that its distances overflow gets arbitrary rows, since all are equally far.
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

    def _searches(
        self, Z: np.ndarray, codes: np.ndarray, n_candidates: np.ndarray, relation: str, k: int
    ) -> Iterator[Search]:
        """Yield searches that find `n_candidates[i]` rows for every row i.

        k is the number of neighbours that are wanted among them.
        """
        itself = relation != "other"  # whether the search also finds the row itself
        wanted = n_candidates > 0
        for members in members_of(codes if relation == "same" else np.zeros_like(codes)):
            n_found = int(n_candidates[members].max()) + itself
            if itself and len(members) <= BRUTE_CLASS:
                of_class = members[wanted[members]]
                for block in row_blocks(len(of_class), 1, TOGETHER):
                    rows = of_class[block]
                    yield rows, partial(_nearest_members, Z, rows, members, n_found)
            elif wanted[members].any():
                lists = self._lists(Z, members, None if itself else codes)
                n_probes = self.n_probes or lists.n_probes(k + itself)
                for places in lists.batches(wanted[members], n_found):
                    search = partial(_nearest_in_lists, lists, places, n_found, n_probes, members)
                    yield members[lists.rows[places]], search

    def _lists(self, Z: np.ndarray, members: np.ndarray, codes: np.ndarray | None) -> InvertedLists:
        """Return the lists of some rows or of all; the partition of all rows is made only once."""
        if len(members) < len(Z):
            return InvertedLists(Z[members], self._quantizer(Z[members], len(Z)))
        if self._partitioned is None or self._partitioned[0] is not Z:
            self._partitioned = (Z, self._quantizer(Z, len(Z)))
        return InvertedLists(Z, self._partitioned[1], codes)

    def _quantizer(self, Z: np.ndarray, n: int) -> CoarseQuantizer:
        """Return the lists of some of n rows: their share of `n_lists`, or 8 sqrt(len(Z))."""
        n_lists = self.n_lists * len(Z) // n or int(LISTS * len(Z) ** 0.5)
        return CoarseQuantizer.of(Z, [np.arange(len(Z))], n_lists)


def _nearest_members(Z: np.ndarray, rows: np.ndarray, members: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest rows of a class by brute force, padded with the row itself."""
    found = nearest_candidates(Z[rows], tiles_of(Z, members), k)
    return np.where(found < 0, rows[:, None], found)


def _nearest_in_lists(
    lists: InvertedLists, places: np.ndarray, k: int, n_probes: int, members: np.ndarray
) -> np.ndarray:
    """Return the k nearest rows among the members of a class."""
    return members[lists.nearest(places, k, n_probes)]


def _number(value: Any, name: str) -> int:
    """Return the value as an integer, 0 for "auto"."""
    if isinstance(value, str) and value == "auto":
        return 0
    return check_integer(value, name, 1)


PROJECTED_FROM = 96
PROJECTED_TO = 48
SAMPLE = 20_000  # rows from which the principal components are learned


def n_dimensions(n_components: int | None, p: int) -> int:
    """Return the number of dimensions for searching p features: None for all, 0 for the default."""
    return PROJECTED_TO if n_components == 0 and p > PROJECTED_FROM else n_components or p


def projection(X: Any, n_components: int | None) -> Callable[[Any], np.ndarray]:
    """Return a map of rows to the leading principal components of a sample of X.

    The components are in units of the sample's largest entry, about its mean if X is dense. The map
    returns float32 and works in blocks. With None, or at least as many components as features or
    rows of the sample, it returns the rows themselves, with this origin and unit. 0 means 48 for
    more than 96 features.
    """
    n, p = X.shape
    d = n_dimensions(n_components, p)
    sample = X[:: -(-n // SAMPLE)]
    origin = None if issparse(X) else sample.mean(axis=0, dtype=np.float64).astype(X.dtype)
    sample = sample if origin is None else sample - origin
    unit = abs(sample).max() or 1.0  # squares in float32 neither underflow nor overflow
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


def n_ranked(k: Any) -> Any:
    """Return how many candidates are ranked again by their distances in all features."""
    return 5 * k + 10


def _rank(Q: Any, X: Any, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows j of X (b, r) found for queries Q (b, p), nearest first, and distances."""
    if issparse(X):
        apart = csr_array(Q)[np.repeat(np.arange(len(j)), j.shape[1])] - X[j.ravel()]
        distances = np.sqrt(apart.multiply(apart).sum(axis=1)).reshape(j.shape)
    else:
        apart = X[j].astype(np.result_type(X, Q), copy=False)
        apart -= Q[:, None]  # in place: allocating memory would take longer than all else here
        distances = np.sqrt(np.einsum("brp,brp->br", apart, apart))
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(j, order, axis=1), np.take_along_axis(distances, order, axis=1)
