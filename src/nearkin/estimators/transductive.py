"""Coordinates of all rows along a graph, with or without labels: what the two methods share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from .._blocks import relative_to
from .._callbacks import CallbackSupportMixin
from .._memory import require_memory
from .._validation import check_choice, check_integer, check_positive
from ..graphs import heat_kernel, union, validate_affinity
from ..neighbors import EXACT, Searcher, first, neighbor_lists
from .base import Embedding
from .extension import HeatGraph
from .graph_penalty import GraphPenalty
from .validation import validate_rows


class TransductiveEmbedding(CallbackSupportMixin, Embedding):
    """Coordinates of the training rows, and an extension to new ones.

    Abstract: a subclass defines `__init__` and `fit`.
    """

    def _graph_penalty(
        self, X: Any, affinity: Any, search: Searcher, *, signed: bool
    ) -> GraphPenalty:
        """Return the penalty for the graph of X or the given affinity, which may be `signed`."""
        check_choice(self.laplacian, "laplacian", ("normalized", "unnormalized"))
        normalized = self.laplacian == "normalized"
        n = X.shape[0]
        k = check_integer(self.n_neighbors, "n_neighbors", 1)
        if affinity is not None:
            W = validate_affinity(affinity, n, signed=signed)
            if W.nnz == 0:
                raise ValueError("affinity has no edge: all weights off its diagonal are 0.")
            return GraphPenalty(W, normalized, None)
        check_choice(self.affinity, "affinity", ("knn", "full"))
        full = self.affinity == "full"
        if full:
            require_memory(40 * n * n, f"The full graph of {n} rows", "take affinity='knn'")
        G = neighbor_lists(X, None, n - 1 if full else k, "all", EXACT if full else search)
        if self.bandwidth is None:
            t = float(np.square(first(G, k).data, dtype=np.float64).mean()) or np.inf
        else:
            t = check_positive(self.bandwidth, "bandwidth", or_infinite=True)
        W = union(heat_kernel(G, t, cut=0.0))
        if W.count_nonzero() == 0:
            raise ValueError(f"bandwidth={t:.3g} leaves no edge, as all weights are 0: raise it.")
        origin = None if issparse(X) else X.mean(axis=0, dtype=np.float64)
        rows = X.copy() if origin is None else relative_to(origin, X)  # the caller may modify X
        return GraphPenalty(W, normalized, HeatGraph(rows, origin, n if full else k, t))

    def fit_transform(
        self, X: Any, y: Any = None, *, affinity: Any = None, **graphs: Any
    ) -> np.ndarray:
        """Fit and return `transform(X)`, which treats the training rows as new ones.

        `embedding_` holds their own coordinates.
        """
        return self.fit(X, y, affinity=affinity, **graphs).transform(X, affinity=affinity)

    def transform(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Map new rows to coordinates; see Notes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, p)
        affinity : array or sparse matrix of shape (n_new, n), optional
            Weights of the edges to the training rows. Required after a fit with an affinity,
            ignored with a kernel.

        Returns
        -------
        Z : array of shape (n_new, m)
            float32 if X is float32.
        """
        check_is_fitted(self, "extension_")
        X = validate_rows(self, X, reset=False)
        return self.extension_(X, affinity).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
