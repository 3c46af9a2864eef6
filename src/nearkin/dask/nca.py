"""Neighbourhood Components Analysis on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from distributed import Future
from sklearn.utils import check_random_state

from .._labels import check_shared_labels
from .._parallel import Value
from ..estimators import _descending
from ..estimators._criterion import EXACT_ROWS, FAR, NEAR, Criterion
from ..estimators._descending import Scale, penalized
from ..estimators._starts import evenly_by, perplexity, perplexity_bandwidth, squared_norms
from ..estimators.nca import MAX_ITER, NCA
from ..neighbors import EXACT
from ..objectives.pair_weights import SameClass
from ..objectives.stochastic import Candidates, Terms, among_all, among_candidates, expected_matches, log_matches
from ..scatter import RowSpace
from ._base import DaskTransformer
from ._minibatches import SpreadMinibatches, near_numbers, of_one_class
from ._neighbors import block_searcher, nearest, searchable
from ._scatter import first_moments
from ._shared_index import FiledTable, in_first_places
from ._starts import default_inits, directions, near_squares
from ._table import Rows, Table, labelled_table
from ._work import Sums, Work

Descent = Callable[[np.ndarray], Any]
TERMS = {"expected_accuracy": expected_matches, "log_likelihood": log_matches}


class DaskNCA(DaskTransformer):
    """Neighbourhood Components Analysis of Dask arrays: `nearkin.NCA` beyond one machine.

    Parameters, attributes, warnings and the objective are those of `nearkin.NCA`, for `target="classes"`; with
    solver="sgd" n_candidates must not be None, and there is no `partial_fit`. The descent is the same to rounding from
    the same start, where no distances tie. With solver="sgd", this class chooses the start of init="auto" by the
    estimate of the final objective, and finds start and unit on all rows where `NCA` asks a sample of 10,000.

    Notes
    -----
    The client steps. With solver="lbfgs" the workers add up value and gradient, each block an equal share of the pairs.
    For that every worker holds the embedding of all rows, n m numbers, and the labels; the rows stay where they are.

    With solver="sgd" the client draws the anchors of a step, evenly from all blocks, without return. The lists of
    candidates are looked up twice, by all workers, and stay with the blocks. A step sees no more rows than its anchors
    and their candidates, b (k + 1) + 500 for b anchors, however many there are: those of a few steps at a time come
    together on one worker (about 64 MB), which tells value and gradient. An embedding of all rows is made for each
    look-up, and for the estimate of the final objective, and stays in blocks.

    Cost of solver="lbfgs": an iteration takes O(n^2 m + n p m) over all workers, with k candidates O(n k m + n p m) and
    a search every 15 iterations, and a tenth of a second of talk; memory is O(n (p + m + k)) over all workers and
    O(n m) on each. Of solver="sgd": a step takes O(b k m p); (b (k + 1) + 500) p numbers travel for it, and m p to the
    worker and back; besides there are two searches, and an exact one for 5,000 rows; O(n) numbers are on the client,
    and on each worker where the search is approximate.

    KeyboardInterrupt ends the descent, and is raised again once the best map so far has been kept.

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
    ...     nca = DaskNCA(2).fit(X, y)
    >>> nca.objective_ > 0.95  # share of rows that a random near neighbour labels right
    True
    """

    _local_class = NCA
    __init__ = NCA.__init__  # the parameters, and their defaults

    def fit(self, X: Any, y: Any, *, client: Any = None) -> DaskNCA:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes; it may be lazy, and is computed once.
        y : Dask array of shape (n,)
            Class labels, at least two classes. A row alone in its class cannot be labelled right: it counts 0 in f and
            is left out of g.
        client : distributed.Client, default=None
            Where to compute; the current client by default.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X or y is no Dask array, or a parameter has a wrong type.
        ImportError
            If an approximate search is asked for and faiss is not installed.
        ValueError
            If X or y is not as above or not finite, a parameter is out of bounds, or n exceeds 200,000 in an exact
            search or with n_candidates=None.
        KeyboardInterrupt
            After the best map so far has been kept.
        """
        nca, X = self._twin(X)
        nca._check_parameters()
        self._check_distributed()
        n, p = X.shape
        m = nca._n_directions(p)
        if self.warm_start and hasattr(self, "components_"):
            nca.components_ = self.components_
        search, rng = block_searcher(self.search, n), check_random_state(self.random_state)
        with Work(client) as work:
            all_pairs = search is EXACT or self.n_candidates is None
            table = labelled_table(work, type(self).__name__, X, y, exact=all_pairs)
            check_shared_labels(np.repeat(np.arange(len(table.sizes)), table.sizes))
            rows = Problem.of(work, table, replace(nca._criterion(n), search=search))
            del table
            one, loss = self._by_minibatches(rows, rng) if self.solver == "sgd" else self._by_lbfgs(rows)
            start = partial(rows.start, m=m, rng=rng, loss=loss)
            best, last = _descending.best_descent(nca._starts(rows.scale, start, go_on=self.warm_start), one)
            _descending.keep(nca, best, rows.scale, rows.table.dtype)
            nca.search_, nca.search_recall_ = search.name, None
            nca.objective_ = penalized(-best.value, best.x, best.x, self.alpha, n)[0]
            nca.objective_error_ = best.error
            nca.perplexity_ = perplexity(near_squares(work, rows.embedding(best.x), rows.table.starts))
        self._take_over(nca)
        _descending.report(best, last, best.n_iter)
        if not self.warm_start:
            _descending.report_unmoved(best)
        return self

    def _by_lbfgs(self, rows: Problem) -> tuple[Descent, Callable[[np.ndarray], float]]:
        """Return what descends from a start, and what tells the loss there."""
        look_up, max_iter = rows.look_up, MAX_ITER if isinstance(self.max_iter, str) else self.max_iter
        how = {"max_iter": max_iter, "tol": self.tol, "on_iteration": lambda B: False}
        descend = partial(_descending.descend, rows.loss, look_up=look_up, **how)
        return descend, lambda B: rows.loss(B, None if look_up is None else look_up(B))[0]

    def _by_minibatches(self, rows: Problem, rng: Any) -> tuple[Descent, Callable[[np.ndarray], float]]:
        batches = SpreadMinibatches.spread(rows, self.batch_size, rng)
        how = {"max_iter": self.max_iter, "tol": self.tol, "on_iteration": lambda B: False}
        return partial(batches.descend, **how), lambda B: batches.judged(B)[0]

    def _check_distributed(self) -> None:
        if self.target != "classes":
            raise ValueError(
                f"target={self.target!r} is not for Dask arrays: take target='classes', or fit NCA on a sample of the "
                "rows."
            )
        if self.solver == "sgd" and self.n_candidates is None:
            raise ValueError(
                "n_candidates=None lets every step of solver='sgd' need all rows, which is not for Dask arrays: take "
                "n_candidates='auto', or solver='lbfgs'."
            )


@dataclass(frozen=True)
class Problem:
    """NCA's loss of rows that are spread over a cluster.

    Attributes
    ----------
    work : Work
    table : Table
        Rows about their mean, in units of the typical distance of neighbours.
    codes : future of an array of shape (n,)
        The class of every row.
    scale : Scale
        The way back to the features.
    criterion : Criterion
        f or g, and its penalty.
    """

    work: Work
    table: Table
    codes: Future
    scale: Scale
    criterion: Criterion

    @classmethod
    def of(cls, work: Work, table: Table, criterion: Criterion) -> Problem:
        """Return the problem of some rows: in float64 for up to 2,000 of them, float32 beyond, like `NCA`."""
        n, moment = work.total(work.map(first_moments, table.rows, [None] * len(table.rows)))
        dtype = np.float64 if n <= _descending.EXACT_PRECISION else np.float32
        rows = work.map(rescaled, table.rows, mean=moment / n, dtype=dtype)
        unit = perplexity_bandwidth(near_squares(work, work.map(of_rows, rows), table.starts))
        codes = work.submit(np.concatenate, work.map(codes_of, rows))
        in_units = replace(table, rows=work.map(rescaled, rows, unit=unit))
        return cls(work, in_units, codes, Scale(unit, RowSpace(None, None)), criterion)

    def embedding(self, A: np.ndarray) -> list[Future]:
        """Return the blocks of Z = X A'; A is (m, p), or (p,) for a diagonal map."""
        return self.work.map(embedded, self.table.rows, A=A)

    def loss(self, A: np.ndarray, near: list[Future] | None) -> Value:
        """Return -f or -g, a mean over rows, plus the penalty, and its gradient; `near` as `look_up` found it."""
        n = self.table.shape[0]
        value, gradient = self.objective(A, near)
        return penalized(-value / n, -gradient / n, A, self.criterion.alpha, n)

    def objective(self, A: np.ndarray, near: list[Future] | None = None) -> Value:
        """Return f(A) or g(A) and its gradient, of the shape of A: of all pairs, or estimated from candidates."""
        work, blocks = self.work, self.table.rows
        t = len(blocks)
        everywhere = [work.submit(np.concatenate, self.embedding(A))] * t, [self.codes] * t
        terms = TERMS[self.criterion.objective]
        if near is None:
            shares = [slice(s, None, t) for s in range(t)]
            parts = work.map(among_pairs, *everywhere, shares, terms=terms)
        else:
            parts = work.map(among_listed, *everywhere, near, self.table.starts[:-1], far=self.far, terms=terms)
        value, gradient = work.total(work.map(chained, [work.sum(parts)] * t, blocks, diagonal=A.ndim == 1))
        return value, gradient

    @property
    def look_up(self) -> Callable[[np.ndarray], list[Future]] | None:
        """The function that finds the near candidates of a map, None where all rows are candidates."""
        k = self.criterion.n_candidates
        if k is None or (k == "auto" and self.table.shape[0] <= EXACT_ROWS):
            return None
        return partial(self.near_rows, k=min(NEAR if isinstance(k, str) else k, self.table.shape[0] - 1))

    def near_rows(self, A: np.ndarray, k: int) -> list[Future]:
        """Return the numbers of the k nearest rows of every row in an embedding, for g also of the nearest kin."""
        work, starts = self.work, self.table.starts

        def found(table: Table, k: int) -> list[Future]:
            rows = searchable(self.criterion.search, work, table)
            lists = nearest(work, rows, "kin", k)
            return in_first_places(work, rows, lists, starts) if isinstance(rows, FiledTable) else lists

        Z = self.in_embedding(A)
        everybody = replace(Z, rows=work.map(of_one_class, Z.rows), sizes=np.array([self.table.shape[0]]))
        near = found(everybody, k)
        of_kin = found(Z, 1) if self.criterion.objective == "log_likelihood" else [None] * len(near)
        return work.map(near_numbers, near, of_kin, starts[:-1])

    def in_embedding(self, A: np.ndarray) -> Table:
        """Return the rows of Z = X A', with their classes."""
        Z = self.work.map(with_embedding, self.table.rows, self.embedding(A))
        m = len(A)
        return replace(self.table, rows=Z, shape=(self.table.shape[0], m))

    @cached_property
    def far(self) -> np.ndarray:
        """The numbers of rows, evenly drawn, that stand for all that are not near."""
        blocks = self.work.map(of_rows, self.table.rows)
        return evenly_by(np.concatenate(self.work.results(self.work.map(squared_norms, blocks))), FAR)

    def start(
        self, name: str, *, m: int, rng: np.random.RandomState, loss: Callable[[np.ndarray], float]
    ) -> np.ndarray:
        """Return the start of a name, in a sane scale; for "auto" the one with the lowest loss."""
        if name == "auto" and self.criterion.structure == "full":
            names = default_inits(self.work, self.table, m)
            starts = [self.start(each, m=m, rng=rng, loss=loss) for each in names]
            return starts[0] if len(starts) == 1 else min(starts, key=loss)
        n, p = self.table.shape
        if self.criterion.structure == "diagonal":
            V = np.abs(rng.standard_normal(p)) if name == "random" else np.ones(p)
        else:
            V = directions(self.work, self.table, name, m, rng)
        V = V / perplexity_bandwidth(near_squares(self.work, self.embedding(V), self.table.starts))
        return _descending.cap_penalty(V, self.criterion.alpha, n)


# Tasks.


def rescaled(rows: Rows, *, mean: Any = 0.0, unit: float = 1.0, dtype: Any = None) -> Rows:
    """Return rows about a mean, in a unit."""
    X = ((rows.X - mean) / unit).astype(dtype or rows.X.dtype)
    return replace(rows, X=X)


def of_rows(rows: Rows) -> np.ndarray:
    """Return X of a block."""
    return rows.X


def codes_of(rows: Rows) -> np.ndarray:
    """Return the classes of a block."""
    return rows.codes


def embedded(rows: Rows, *, A: np.ndarray) -> np.ndarray:
    """Return a block of Z = X A', in the type of X; X is about its mean, and so is Z."""
    A = A.astype(rows.X.dtype, copy=False)
    return rows.X * A if A.ndim == 1 else rows.X @ A.T


def among_pairs(Z: np.ndarray, codes: np.ndarray, share: slice, *, terms: Terms) -> Sums:
    """Return one share of the value and of the gradient with respect to Z, of all pairs."""
    return Sums(among_all(Z, SameClass(codes), terms, share))


def among_listed(
    Z: np.ndarray, codes: np.ndarray, near: np.ndarray, start: int, *, far: np.ndarray, terms: Terms
) -> Sums:
    """Return what the rows of a block, from `start` on, add to value and gradient, estimated from their candidates."""
    rows, candidates = Candidates.listed(np.arange(start, start + len(near)), near, far, len(Z))
    value, gradient = among_candidates(Z[rows], candidates, SameClass(codes[rows]), terms)
    of_all = np.zeros(Z.shape)
    of_all[rows] = gradient
    return Sums((value, of_all))


def with_embedding(rows: Rows, Z: np.ndarray) -> Rows:
    """Return a block of embedded rows, with their classes."""
    return replace(rows, X=Z)


def chained(of_embedding: Sums, rows: Rows, *, diagonal: bool) -> Sums:
    """Return a block's part of the gradient with respect to A, by the chain rule; the value once, with the first."""
    value, gradient = of_embedding
    G = gradient[rows.start : rows.start + len(rows.X)]
    X = rows.X.astype(np.float64)
    return Sums((value if rows.start == 0 else 0.0, (X * G).sum(axis=0) if diagonal else G.T @ X))
