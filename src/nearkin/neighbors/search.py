"""Which search an estimator's parameter names, and what share of the neighbours a search finds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._labels import encode_labels
from .._validation import as_rows, check_choice, check_consistent_length, check_integer
from .approximate import ApproximateSearch, IVFSearch
from .lists import EXACT, RELATIONS, Indexed, Listed, Searcher, neighbor_lists, transformed

APPROXIMATE_ROWS = 100_000


def choose_search(n: int) -> str:
    """Return the search that "auto" takes for n rows.

    It is "exact" below 100,000 rows, where the exact search takes minutes at most and needs no
    other package, and "approximate" from there on. The rule does not depend on what is installed,
    so the same rows give the same map everywhere.
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
        Distances from every row to some others, used instead of a search.

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
    is_transformer = all(hasattr(search, method) for method in ("fit", "transform", "get_params"))
    if is_transformer and not isinstance(search, type) and "n_neighbors" in search.get_params():
        return Indexed(partial(transformed, search), type(search).__name__)
    choices = (
        "'exact', 'approximate', 'auto', an ApproximateSearch or a transformer like "
        "KNeighborsTransformer"
    )
    raise ValueError(f"search must be {choices}, got {search!r}.")


RECALL_ROWS = 500  # for which recall is measured


def recall(X: Any, search: Any, n_neighbors: int, y: Any = None, *, relation: str = "all") -> float:
    """Return the share of the true neighbours that a search finds.

    All rows are searched, as a fit does, and 500 evenly spaced ones are compared with an exact
    search.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    search : {"approximate", "auto", "exact"}, ApproximateSearch or transformer
        See `LDE`.
    n_neighbors : int
        k.
    y : array of shape (n,), default=None
        Class labels, for neighbours of the same class or of other classes.
    relation : {"all", "same", "other"}, default="all"
        Which rows may be neighbours of a row: all, those of its class, or those of other classes.

    Returns
    -------
    float
        In [0, 1]. A row found counts if it is at least as near as the k-th nearest.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import ApproximateSearch
    >>> from nearkin.neighbors import recall
    >>> X, y = load_digits(return_X_y=True)
    >>> recall(X, ApproximateSearch(n_probes=100), 10, y, relation="other") > 0.95
    True
    """
    check_choice(relation, "relation", RELATIONS)
    k = check_integer(n_neighbors, "n_neighbors", 1)
    X = as_rows(X)
    if y is None and relation != "all":
        raise ValueError(f"relation={relation!r} needs the classes of the rows: give y.")
    codes = None if y is None else encode_labels(y)[1]
    check_consistent_length(X, codes)
    G = neighbor_lists(X, codes, k, relation, searcher(search, X.shape[0]))
    return measured_recall(X, codes, G, relation)


def measured_recall(X: Any, codes: Any, G: csr_array, relation: str) -> float:
    """Return the share of true neighbours in the lists of 500 evenly spaced rows.

    An exact search is the reference: a neighbour is true if it is at least as near as the k-th
    nearest row, where k is the length of the list.
    """
    lengths = np.diff(G.indptr)
    rows = np.flatnonzero(lengths)
    rows = rows[:: -(-len(rows) // RECALL_ROWS) or 1]
    checked = np.zeros_like(lengths)
    checked[rows] = lengths[rows]
    true = neighbor_lists(X, codes, checked, relation, EXACT)
    bounds = true.data[true.indptr[rows + 1] - 1] * (1 + 1e-5)
    shares = [
        np.mean(G.data[slice(*G.indptr[i : i + 2])] <= bound)
        for i, bound in zip(rows, bounds, strict=True)
    ]
    return float(np.mean(shares)) if shares else 1.0
