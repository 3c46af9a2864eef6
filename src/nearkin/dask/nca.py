"""Neighbourhood Components Analysis on a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Never, Self

import numpy as np
from distributed import Future
from sklearn.utils.extmath import row_norms

from .._callbacks import FitTask, with_callbacks
from .._labels import check_shared_labels
from .._parameters import check_random_state
from ..bandwidth import (
    PERPLEXITY_NEIGHBORS,
    PERPLEXITY_ROWS,
    evenly_by,
    perplexity_bandwidth,
    squares_to,
)
from ..estimators import NCA
from ..estimators.descent_embedding import (
    ScaledRows,
    check_n_components,
    directions,
    discriminant_directions,
)
from ..estimators.nca import check_parameters, fit_loss
from ..linalg import eigh
from ..neighbors import EXACT, Searcher
from ..objectives.candidates import N_FAR, Minibatch, among_candidates, number_near, with_same_class
from ..objectives.loss import FLOAT64_ROWS, Loss, Value
from ..objectives.stochastic import TERMS, SameClass, Terms, among_all
from ..scatter import RowSpace
from .search import Lists, block_searcher, nearest, partition
from .spectral import DaskTransformer, take_over
from .table import Block, Table, Work, aligned, as_table, first_moments, taken

# Candidates of every row, in parts that the workers hold, and far rows.
Listed = tuple[list[Future], np.ndarray]


class DaskNCA(DaskTransformer):
    """Neighbourhood Components Analysis of Dask arrays; see `nearkin.NCA`.

    Parameters, attributes, warnings and the objective are those of `nearkin.NCA`, for
    `target="classes"` and `solver="lbfgs"`; there is no `partial_fit`.

    Notes
    -----
    Unit, init, candidates and stopping rule are those of `nearkin.NCA`, and so are value and
    gradient at a map, up to rounding, if no distances tie. Up to 2,000 rows are in float64, and the
    maps agree to about 1e-7. More rows are in float32, where gradients differ by about 1e-5, which
    a descent amplifies: for up to 8,000 rows the metrics differ by 1e-4 to .1, less with a smaller
    `tol`. With more rows, neighbours are searched under maps that already differ, and the descents
    diverge: the objective is about the same, but the map differs from that of `nearkin.NCA` about
    as much as maps of `nearkin.NCA` differ for rows in another order.

    The client takes the steps, and the workers sum value and gradient, each task an equal share of
    the pairs. Every worker therefore holds the embedding of all rows, n m numbers, and the labels;
    the rows stay in place, unless an approximate search partitions their embedding.

    Cost: an iteration takes O(n^2 m + n p m) over all workers; with k candidates it takes
    O(n k m + n p m), and every 15 iterations there is a search. The overhead of an iteration's
    tasks is about a tenth of a second. Memory is O(n (p + m + k)) over all workers and O(n m) on
    each.

    A KeyboardInterrupt or a callback may end the descent. The best map so far is kept, and an
    interrupt is raised again.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin.dask import DaskNCA
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = da.from_array(scale(X), chunks=(90, -1)), da.from_array(y, chunks=90)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     nca = DaskNCA(2, init="pca", tol=0.01).fit(X, y)
    >>> nca.objective_ > 0.95  # share of rows that a random near neighbour labels right
    True
    """

    _local_class = NCA
    __init__ = NCA.__init__  # with the same parameters and defaults

    @with_callbacks
    def fit(self, X: Any, y: Any, *, client: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes. It may be lazy, and is computed once.
        y : Dask array of shape (n,)
            Class labels, at least two classes. A row alone in its class cannot be classified
            correctly: it contributes 0 to the expected accuracy f, and is left out of the
            log-likelihood g.
        client : distributed.Client, default=None
            Where to compute; by default the current client.

        Returns
        -------
        self
        """
        given = X
        nca, X = self._twin(X)
        task = TwinTask(self, nca, given, y, check_parameters(nca))
        if (self.target, self.solver) != ("classes", "lbfgs"):
            raise ValueError(
                f"target={self.target!r} with solver={self.solver!r} is not for Dask arrays: fit "
                "NCA on a sample of the rows, or call NCA(solver='sgd').partial_fit on one block "
                "of rows after the other."
            )
        m, search = check_n_components(nca, X.shape[1]), block_searcher(self.search, X.shape[0])
        rng = check_random_state(self.random_state)
        if self.warm_start and hasattr(self, "components_"):
            nca.components_ = self.components_
        with Work(client) as work:
            exact = search is EXACT or self.n_candidates is None
            table = as_table(work, type(self).__name__, X, y, exact=exact)
            check_shared_labels(table.codes)
            labels = work.submit(np.concatenate, table.map(lambda block: block.codes))
            k = number_near(self.n_candidates, table.shape[0], "lbfgs")
            loss = ClusterNeighbors(UnitClusterRows.of(table), search, k, self.objective, labels)
            try:
                fit_loss(nca, loss, loss, m, rng, table.dtype, task)
            finally:
                if hasattr(nca, "n_iter_"):  # also if an interrupt is raised again
                    take_over(self, nca)
        return self


class TwinTask(FitTask):
    """The fit of a Dask estimator by its local twin; callbacks see the state of the twin."""

    def __init__(
        self, estimator: DaskNCA, twin: NCA, X: Any, y: Any, n_iterations: int | None
    ) -> None:
        super().__init__(estimator, X, y, n_iterations)
        self.estimator, self.twin = estimator, twin
        estimator.n_features_in_ = twin.n_features_in_  # callbacks may map rows before the fit ends

    def end(self) -> None:
        """Copy the fitted state of the twin to the estimator, and report that it is fitted."""
        take_over(self.estimator, self.twin)
        super().end()


@dataclass(frozen=True)
class UnitClusterRows(ScaledRows):
    """The counterpart of `UnitRows` for rows on a cluster.

    Attributes
    ----------
    table : Table
        Centred rows, in units of the typical distance of neighbours.
    """

    table: Table

    @classmethod
    def of(cls, table: Table) -> UnitClusterRows:
        """Return the rows of a table, whose blocks are replaced.

        They are float64 for up to 2,000 rows, else float32.
        """
        n, *moment = table.total(first_moments)
        dtype = np.float64 if n <= FLOAT64_ROWS else np.float32
        table.blocks[:] = table.map(rescaled, mean=np.array(moment) / n, dtype=dtype)
        unit = perplexity_bandwidth(nearest_squares(table))
        table.blocks[:] = table.map(rescaled, unit=unit)
        return cls(unit, RowSpace(None), table.shape, table)

    def varies(self) -> np.ndarray:
        """Return which columns are not constant."""
        extremes = self.table.map(
            lambda block: np.stack([block.X.max(axis=0), -block.X.min(axis=0)])
        )
        largest, smallest = np.max(self.table.work.results(extremes), axis=0)
        return largest > -smallest

    def embedding(self, B: np.ndarray) -> Table:
        """Return the rows of Z = X B' as a table; B is (m, p), or (p,) for a diagonal map."""
        blocks = self.table.map(embedded, B=B)
        return replace(self.table, blocks=blocks, shape=(self.shape[0], len(B)))

    def nearest_squares(self, B: np.ndarray) -> np.ndarray:
        """Return the squared distances of some embedded rows to their 100 nearest, ascending."""
        return nearest_squares(self.embedding(B))

    def directions(self, name: str, m: int, codes: Any, rng: np.random.RandomState) -> np.ndarray:
        """Return m directions for the name of an init; there may be fewer for "lda"."""
        table, p = self.table, self.shape[1]
        if name == "pca":
            return eigh(table.total_scatter(), subset_by_index=(p - m, p - 1))[1][:, ::-1].T
        if name == "random":
            return directions(name, table, m, rng)
        if name != "lda":  # the identity, also for "auto" if all dimensions are kept
            return np.eye(m, p)
        S_b, S_w = table.between_scatter(), table.within_scatter()
        return discriminant_directions(S_b, S_w, min(m, len(table.class_sizes) - 1))


@dataclass(frozen=True)
class ClusterNeighbors(Loss[Listed, Never]):
    """The counterpart of `StochasticNeighbors` for rows on a cluster: -f or -g.

    Attributes
    ----------
    rows : UnitClusterRows
    search : Searcher
        For candidates.
    k : int or None
        Number of near candidates of every row; None if all rows are candidates.
    objective : {"expected_accuracy", "log_likelihood"}
    codes : future of an array of shape (n,)
        Class codes 0, 1, ....
    """

    rows: UnitClusterRows
    search: Searcher
    k: int | None
    objective: str
    codes: Future

    def value(self, B: np.ndarray, part: Listed | None = None) -> Value:
        """Return the value and gradient at a map, over given candidates or all pairs of rows."""
        table, (n, _) = self.rows.table, self.rows.shape
        t = len(table.blocks)
        shares = [slice(s, None, t) for s in range(t)]
        parts, far = (shares, None) if part is None else part
        Z = table.work.submit(stacked, self.rows.embedding(B).blocks)
        terms = TERMS[self.objective]
        added = table.work.map(added_up, parts, Z=Z, codes=self.codes, far=far, terms=terms)
        total = table.total(chained, of_embedding=table.work.reduce(added), shape=B.shape)
        return -total[0] / n, -total[1:].reshape(B.shape) / n

    def candidates(self, B: np.ndarray) -> Listed | None:
        """Return the candidates of every row: the k nearest rows and some far ones.

        For g, the nearest row of the same class is a candidate, too.
        """
        if self.k is None:
            return None
        Z = partition(self.rows.embedding(B), self.search)
        near = nearest(Z, "all", self.k)
        is_g = self.objective == "log_likelihood"
        same = nearest(Z, "same", 1) if is_g else [None] * len(near)
        numbers = Z.work.submit(np.concatenate, Z.map(lambda block: block.numbers))
        listed = Z.work.map(near_numbers, near, same, Z.starts[:-1], numbers=numbers)
        return listed, evenly_in(self.rows.table, N_FAR)

    @property
    def n_classes(self) -> int:
        """Return the number of classes, which limits that of the discriminant directions."""
        return len(self.rows.table.class_sizes)


def evenly_in(table: Table, n_rows: int) -> np.ndarray:
    """Return at most `n_rows` rows of a table, evenly spaced in the order of their norms."""
    norms = table.map(lambda block: row_norms(block.X, squared=True))
    return evenly_by(np.concatenate(table.work.results(norms)), n_rows)


def nearest_squares(table: Table) -> np.ndarray:
    """Return the squared distances of some rows to their 100 nearest others, ascending."""
    sample = np.sort(evenly_in(table, PERPLEXITY_ROWS))
    parts = np.split(sample, np.searchsorted(sample, table.starts[1:-1]))
    queries = table.work.submit(stacked, table.map(taken, parts))
    # distances to the nearest rows of every block, infinite from a row to itself; then the 100
    # smallest over all blocks
    found = table.map(
        lambda block, queries: squares_to(queries, block.X, sample - block.start), queries=queries
    )
    least = table.work.total(
        found, lambda parts: np.sort(np.hstack(parts), axis=1)[:, :PERPLEXITY_NEIGHBORS]
    )
    return least[:, : table.shape[0] - 1]


# Tasks.


def rescaled(block: Block, *, mean: Any = 0.0, unit: float = 1.0, dtype: Any = None) -> Block:
    """Return rows with a mean subtracted, in a unit."""
    return block._replace(X=((block.X - mean) / unit).astype(dtype or block.X.dtype))


def stacked(blocks: list[Block]) -> np.ndarray:
    """Return X of all blocks."""
    return np.concatenate([block.X for block in blocks])


def embedded(block: Block, *, B: np.ndarray) -> Block:
    """Return a block of Z = X B', in the dtype of X; X is centred, and so is Z."""
    B = aligned(B.astype(block.X.dtype, copy=False))
    return block._replace(X=block.X * B if B.ndim == 1 else block.X @ B.T)


def added_up(part: Any, *, Z: np.ndarray, codes: np.ndarray, far: Any, terms: Terms) -> np.ndarray:
    """Return one share of the value and of the gradient with respect to Z.

    With `far`, it is estimated from the candidates of some rows (see `near_numbers`), otherwise it
    is a share of all pairs.
    """
    if far is None:
        return np.append(*among_all(Z, SameClass(codes), terms, part))
    anchors, near = part
    batch = Minibatch.of(anchors, near, far, len(Z))
    rows, gradient = batch.rows, np.zeros(Z.shape)
    value, gradient[rows] = among_candidates(Z[rows], batch, SameClass(codes[rows]), terms)
    return np.append(value, gradient)


def chained(block: Block, *, of_embedding: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a block's part of the gradient with respect to B, by the chain rule.

    The first block also returns the value.
    """
    X = block.X.astype(np.float64)
    G = aligned(of_embedding[1:].reshape(-1, shape[0])[block.start : block.start + len(X)])
    return np.append(
        of_embedding[0] if block.start == 0 else 0.0,
        (X * G).sum(axis=0) if len(shape) == 1 else G.T @ X,
    )


def near_numbers(
    near: Lists, same: Lists | None, start: int, *, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a block and their neighbours, as indices in the original table.

    With `same`, the nearest row of the same class is included.
    """
    own, listed = start + np.arange(len(near.neighbors)), near.neighbors
    if same is not None:
        nearest_same = same.neighbors.max(axis=1, initial=-1)
        listed = with_same_class(listed, np.where(nearest_same < 0, own, nearest_same), own)
    return numbers[own], numbers[listed]
