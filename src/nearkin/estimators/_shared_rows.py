"""Rows to which many methods, or one with many settings, are fitted: nothing is computed twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from .._validation import validate_labelled_rows
from ..neighbors import searcher
from ._rows import TableRows

Question = TypeVar("Question", bound=Callable[..., Any])

# Neighbours of a row that the first search finds: it takes as long for 2 as for 64, and others ask for more later.
FIRST_SEARCH = 32


def _kept(method: Question) -> Question:
    """Return a method that computes the answer to each question once, whatever rows it belongs to."""
    signature = inspect.signature(method)

    @wraps(method)
    def answer(self: SharedRows, *args: Any, **kwargs: Any) -> Any:
        call = signature.bind(self, *args, **kwargs)
        call.apply_defaults()
        arguments = tuple(call.arguments.values())[1:]
        question = (method.__name__, *map(_identity, arguments))
        if question not in self._answers:  # the arguments are kept, too: no other graph may get the id of one of them
            self._answers[question] = method(*call.args), arguments
        return self._answers[question][0]

    return cast(Question, answer)


def _identity(argument: Any) -> Any:
    """Return what tells an argument from others: of a graph which it is, of an array what it holds."""
    if issparse(argument):
        return id(argument)
    return (argument.dtype.str, argument.tobytes()) if isinstance(argument, np.ndarray) else argument


class SharedRows(TableRows):
    """Rows with labels, for any number of spectral methods: each graph, scatter and search is computed once.

    `method.fit_rows(SharedRows(X, y))` learns the map of `method.fit(X, y)`, for every `SpectralEmbedding` (but of
    equally near rows, others may be taken). Every label is a class, -1, too, and "auto" is not a number of neighbours
    here. All answers are held as long as the object is.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels, at least two classes.
    search
        See `LDE`; the parameter `search` of the methods is not used.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LDE, NMMP
    >>> from nearkin.estimators import SharedRows
    >>> X, y = load_wine(return_X_y=True)
    >>> rows = SharedRows(scale(X), y)
    >>> [method.fit_rows(rows).n_components_ for method in (LDE(2), NMMP(3), NMMP(5))]
    [2, 3, 5]
    """

    def __init__(self, X: Any, y: Any, search: Any = "exact") -> None:
        X, codes = validate_labelled_rows(BaseEstimator(), X, y)
        super().__init__(X, codes, searcher(search, X.shape[0]))
        self._answers: dict[tuple, tuple[Any, tuple]] = {}
        self._lists: dict[str, tuple[Any, csr_array]] = {}

    def _knn(self, relation: str, k: Any) -> csr_array:
        searched, G = self._lists.get(relation, (FIRST_SEARCH, None))
        if G is None or np.any(k > searched):
            searched = np.maximum(k, searched)
            G = super()._knn(relation, searched)
            self._lists[relation] = searched, G
        return _first(G, k if np.ndim(k) == 0 else k[self.codes])

    union_knn = _kept(TableRows.union_knn)
    mutual_knn = _kept(TableRows.mutual_knn)
    mean_knn = _kept(TableRows.mean_knn)
    closest_pairs = _kept(TableRows.closest_pairs)
    scatter = _kept(TableRows.scatter)
    degrees = _kept(TableRows.degrees)
    degrees_of_freedom = _kept(TableRows.degrees_of_freedom)
    span_basis = _kept(TableRows.span_basis)
    total_scatter = _kept(TableRows.total_scatter)
    within_scatter = _kept(TableRows.within_scatter)
    between_scatter = _kept(TableRows.between_scatter)
    local_fisher_scatters = _kept(TableRows.local_fisher_scatters)
    pair_covariances = _kept(TableRows.pair_covariances)


def _first(G: csr_array, k: Any) -> csr_array:
    """Return the lists of neighbours G with the first k of every row, or the first `k[i]` of row i."""
    lengths = np.diff(G.indptr)
    fewer = np.minimum(lengths, k)
    if (fewer == lengths).all():
        return G
    rank = np.arange(G.nnz) - np.repeat(G.indptr[:-1], lengths)
    kept = rank < np.repeat(fewer, lengths)
    indptr = np.concatenate(([0], np.cumsum(fewer))).astype(G.indptr.dtype)
    return csr_array((G.data[kept], G.indices[kept], indptr), shape=G.shape)
