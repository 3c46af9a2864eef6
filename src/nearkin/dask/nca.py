"""Neighbourhood Components Analysis on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Future
from sklearn.utils import check_random_state

from .._array import check_integer, check_kin
from ..estimators import _descending
from ..estimators._descending import UnitRows, penalized
from ..estimators._starts import perplexity, sane_unit
from ..estimators.nca import EXACT_ROWS, NCA
from ..objectives.matches import Classes
from ..objectives.stochastic import Terms, among_all, expected_matches, log_matches
from ..scatter import RowSpace
from ._base import DaskTransformer
from ._scatter import first_moments
from ._starts import directions, near_squares, sensible
from ._table import Rows, Table, labelled_table
from ._work import Sums, Work

TERMS = {"expected_accuracy": expected_matches, "log_likelihood": log_matches}


class DaskNCA(DaskTransformer):
    """Neighbourhood Components Analysis of Dask arrays: `nearkin.NCA` beyond one machine.

    Parameters, attributes, warnings and the objective are those of `nearkin.NCA`, for classes and among all rows:
    `target="classes"`, and `n_candidates=None` above 8,000 rows. The descent is the same to rounding.

    Notes
    -----
    The client steps; the workers add up value and gradient, each block an equal share of the pairs. For that every
    worker holds the embedding of all rows, n m numbers, and the labels; the rows stay where they are.

    Cost: an iteration takes O(n^2 m + n p m) over all workers and some 50 milliseconds of talk; memory is O(n (p + m))
    over all workers and O(n m) on each.

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
        ValueError
            If X or y is not as above or not finite, a parameter is out of bounds, or candidates were asked for.
        KeyboardInterrupt
            After the best map so far has been kept.
        """
        nca, X = self._twin(X)
        nca._check_parameters()
        n, p = X.shape
        m = p if self.n_components is None else check_integer(self.n_components, "n_components", 1, p)
        self._check_exact(n)
        with Work(client) as work:
            table = labelled_table(work, type(self).__name__, X, y)
            check_kin(np.repeat(np.arange(len(table.sizes)), table.sizes))
            rows = Problem.of(work, table, TERMS[self.objective])
            del table

            def loss(B: np.ndarray, _: None) -> tuple[float, np.ndarray]:
                value, gradient = rows.objective(B)
                return penalized(-value / n, -gradient / n, B, self.alpha, n)

            how = {"max_iter": self.max_iter, "tol": self.tol, "on_iteration": lambda B: False, "look_up": None}
            one = partial(_descending.descend, loss, **how)
            best, last = _descending.best_descent(self._starts(nca, rows, m, loss), one)
            _descending.keep(nca, best, rows.unit, rows.table.dtype)
            nca.objective_ = penalized(-best.value, best.x, best.x, self.alpha, n)[0]
            nca.perplexity_ = perplexity(near_squares(work, rows.embedding(best.x), rows.table.starts))
        self._take_over(nca)
        _descending.report(best, last, self.max_iter)
        _descending.report_unmoved(best)
        return self

    def _check_exact(self, n: int) -> None:
        if self.target != "classes":
            raise ValueError(f"target={self.target!r} is not for Dask arrays: fit NCA on a sample of the rows.")
        if self.n_candidates is not None and (self.n_candidates != "auto" or n > EXACT_ROWS):
            raise ValueError(
                f"n_candidates={self.n_candidates!r} for {n} rows takes candidates, and {type(self).__name__} compares "
                "all rows: set n_candidates=None, or fit NCA on a sample of the rows."
            )

    def _starts(self, nca: NCA, rows: Problem, m: int, loss: Any) -> Iterator[np.ndarray]:
        """Yield `n_init` maps to begin with: `init`, then random ones."""
        work, (n, p) = rows.work, rows.table.shape
        rng = check_random_state(self.random_state)

        def start(name: str) -> np.ndarray:
            if self.structure == "diagonal":
                V = np.abs(rng.standard_normal(p)) if name == "random" else np.ones(p)
            else:
                V = directions(work, rows.table, name, m, rng)
            V = V / sane_unit(near_squares(work, rows.embedding(V), rows.table.starts))
            return _descending.affordable(V, self.alpha, n)

        if not isinstance(self.init, str):
            yield nca._given_start(rows.unit, m)
        elif self.init == "auto" and self.structure == "full":
            yield min((start(name) for name in sensible(work, rows.table, m)), key=lambda B: loss(B, None)[0])
        else:
            yield start(self.init)
        for _ in range(self.n_init - 1):
            yield start("random")


@dataclass(frozen=True)
class Problem:
    """NCA's objective of rows that are spread over a cluster.

    Attributes
    ----------
    work : Work
    table : Table
        Rows about their mean, in units of the typical distance of neighbours.
    codes : future of an array of shape (n,)
        The class of every row.
    unit : UnitRows
        The way back to the features.
    terms : function
        f or g.
    """

    work: Work
    table: Table
    codes: Future
    unit: UnitRows
    terms: Terms

    @classmethod
    def of(cls, work: Work, table: Table, terms: Terms) -> Problem:
        """Return the problem of some rows: in float64 for up to 2,000 of them, float32 beyond, like `NCA`."""
        n, moment = work.total(work.map(first_moments, table.rows, [None] * len(table.rows)))
        dtype = np.float64 if n <= _descending.EXACT_PRECISION else np.float32
        rows = work.map(rescaled, table.rows, mean=moment / n, dtype=dtype)
        unit = sane_unit(near_squares(work, work.map(of_rows, rows), table.starts))
        codes = work.submit(np.concatenate, work.map(codes_of, rows))
        in_units = replace(table, rows=work.map(rescaled, rows, unit=unit))
        return cls(work, in_units, codes, UnitRows(None, unit, RowSpace(None, None)), terms)

    def embedding(self, A: np.ndarray) -> list[Future]:
        """Return the blocks of Z = X A'; A is (m, p), or (p,) for a diagonal map."""
        return self.work.map(embedded, self.table.rows, A=A)

    def objective(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f(A) or g(A) and its gradient, of the shape of A."""
        work, blocks = self.work, self.table.rows
        Z = work.submit(np.concatenate, self.embedding(A))
        t = len(blocks)
        shares = [slice(s, None, t) for s in range(t)]
        of_embedding = work.sum(work.map(share_of_pairs, [Z] * t, [self.codes] * t, shares, terms=self.terms))
        value, gradient = work.total(work.map(chained, [of_embedding] * t, blocks, diagonal=A.ndim == 1))
        return value, gradient


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


def share_of_pairs(Z: np.ndarray, codes: np.ndarray, share: slice, *, terms: Terms) -> Sums:
    """Return one share of the value and of the gradient with respect to Z."""
    return Sums(among_all(Z, Classes(codes), terms, share))


def chained(of_embedding: Sums, rows: Rows, *, diagonal: bool) -> Sums:
    """Return a block's part of the gradient with respect to A, by the chain rule; the value once, with the first."""
    value, gradient = of_embedding
    G = gradient[rows.start : rows.start + len(rows.X)]
    X = rows.X.astype(np.float64)
    return Sums((value if rows.start == 0 else 0.0, (X * G).sum(axis=0) if diagonal else G.T @ X))
