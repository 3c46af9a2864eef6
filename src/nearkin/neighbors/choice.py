"""Which search: what an estimator's `search` names, as the object that does it."""

from __future__ import annotations

from functools import partial
from typing import Any

from .ivf import ApproximateSearch, IVFSearch
from .search import EXACT, Indexed, Listed, Searcher, transformed

APPROXIMATE_ROWS = 100_000


def choose_search(n: int) -> str:
    """Return what search="auto" takes for n rows: "exact" below 100,000, "approximate" from there on.

    Below, the exact search takes minutes at most and needs no other package. The rule does not depend on what is
    installed: the same rows give the same map everywhere.
    """
    return "approximate" if n >= APPROXIMATE_ROWS else "exact"


def searcher(search: Any, n: int, distances: Any = None) -> Searcher:
    """Return the object that searches among n rows.

    Parameters
    ----------
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer
        A transformer is used like scikit-learn's KNeighborsTransformer: cloned for every search, given `n_neighbors`,
        fitted to the candidates, and applied to the queries, which gives a sparse matrix of distances.
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
        search = {"exact": EXACT, "approximate": ApproximateSearch()}.get(named, search)
    if search is EXACT:
        return EXACT
    if isinstance(search, ApproximateSearch):
        return IVFSearch(search)
    if all(hasattr(search, method) for method in ("fit", "transform", "get_params")):
        return Indexed(partial(transformed, search), type(search).__name__)
    choices = "'exact', 'approximate', 'auto', an ApproximateSearch or a transformer like KNeighborsTransformer"
    raise ValueError(f"search must be {choices}, got {search!r}.")
