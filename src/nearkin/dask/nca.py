"""Neighbourhood Components Analysis on a Dask cluster: minibatches of samples of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Never, Self

import numpy as np

from .._callbacks import FitTask, with_callbacks
from .._labels import check_shared_labels
from .._validation import check_random_state
from ..estimators import NCA
from ..estimators.descent_embedding import (
    INIT_ROWS,
    RowsInPlace,
    ScaledRows,
    check_n_components,
)
from ..estimators.nca import check_parameters, fit_loss
from ..neighbors import Searcher
from ..objectives.candidates import STEPS, Minibatch, Minibatches
from ..objectives.loss import Loss, Ridge, Value
from ..objectives.nca import StochasticNeighbors
from ..objectives.stochastic import SameClass
from .spectral import DaskTransformer, take_over
from .table import Table, Work, as_table, taken

# Some rows and their minibatch.
Drawn = tuple[StochasticNeighbors[RowsInPlace], Minibatch]


class DaskNCA(DaskTransformer):
    """Neighbourhood Components Analysis of Dask arrays, by stochastic gradient.

    Parameters, attributes, warnings and the objective are those of `nearkin.NCA` with
    `solver="sgd"` and `target="classes"`. Fewer than 20,000 rows give the map of `nearkin.NCA`.

    Notes
    -----
    More rows pass through the client. In every epoch they are put in random order and cut into
    samples of 10,000 to 20,000 (at least p), which are fetched one after the other. Each row of a
    sample is an anchor once and draws its neighbour in the sample. The unit u, the init,
    `objective_` and `perplexity_` are those of a first sample: among all rows, neighbours are
    closer. The map depends neither on the blocks nor on the workers.

    Cost: with samples of s rows, an epoch takes O(n (s + p) m) in the threads of the client,
    whatever the number of workers: they read, hold and send the rows. Memory is O(n p) over all
    workers; the client holds two samples and a few numbers per row.

    A KeyboardInterrupt or a callback may end the descent. The map so far is kept, and an interrupt
    is raised again.

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
    ...     nca = DaskNCA(2, random_state=0).fit(X, y)
    >>> nca.objective_ > 0.95  # share of rows that a random near neighbour labels right
    True
    """

    _local_class = NCA
    _of_local: ClassVar = {"solver": "sgd"}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        objective: str = "expected_accuracy",
        structure: str = "full",
        n_candidates: int | str | None = "auto",
        alpha: float = 0.15,
        init: Any = "auto",
        n_init: int = 1,
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.objective = objective
        self.structure = structure
        self.n_candidates = n_candidates
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, *, client: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : Dask array of shape (n, p), p <= n
            Numbers, in dense blocks of rows of known sizes. It may be lazy, and is computed once.
        y : Dask array of shape (n,)
            Class labels, at least two classes. A row alone in its class, or in the part of it in a
            sample, contributes 0 to the expected accuracy f, and is left out of the log-likelihood
            g.
        client : distributed.Client, default=None
            Where to compute; by default the current client.

        Returns
        -------
        self
        """
        given = X
        nca, X = self._twin(X)
        task = TwinTask(self, nca, given, y, check_parameters(nca))
        m, rng = check_n_components(nca, X.shape[1]), check_random_state(self.random_state)
        if self.warm_start and hasattr(self, "components_"):
            nca.components_ = self.components_
        with Work(client) as work:
            table = as_table(work, type(self).__name__, X, y, exact=False)
            check_shared_labels(table.codes)
            samples = samples_of(*table.shape, rng)
            rows, labels = fetched(table, samples[0])
            loss, init_loss = nca._losses(rows, labels, None, rng)
            if len(samples) > 1:
                loss = SampledNeighbors(loss, table)
            ridge = Ridge(nca.alpha, table.shape[0])
            try:
                fit_loss(nca, loss, init_loss, ridge, m, rng, table.dtype, task)
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


@dataclass(frozen=True, eq=False)
class SampledNeighbors(Loss[Never, Drawn]):
    """-f or -g of rows on a cluster, estimated from samples.

    Attributes
    ----------
    first : StochasticNeighbors
        The loss of a first sample.
    table : Table
        All rows.
    """

    first: StochasticNeighbors[Any]
    table: Table

    @property
    def rows(self) -> ScaledRows:
        """The rows of the first sample."""
        return self.first.rows

    @property
    def search(self) -> Searcher:
        """The search for candidates."""
        return self.first.search

    def batches(
        self, size: int | str, n_epochs: int | str, rng: np.random.Generator
    ) -> SampleBatches:
        """Return minibatches within samples."""
        return SampleBatches(self, size, n_epochs, rng)

    def estimate(self, B: np.ndarray, batch: Drawn) -> Value:
        """Return estimates of the loss and its gradient from a minibatch."""
        sample, within = batch
        return sample.estimate(B, within)

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss in the first sample and its standard error."""
        return self.first.evaluate(B)


class SampleBatches:
    """The minibatches of samples, which are drawn anew in every epoch.

    Parameters
    ----------
    loss : SampledNeighbors
    size, n_epochs, rng
        See `Minibatches`; "auto" is for the rows of a sample.
    """

    def __init__(
        self,
        loss: SampledNeighbors,
        size: int | str,
        n_epochs: int | str,
        rng: np.random.Generator,
    ) -> None:
        self._loss, self._size, self._rng = loss, size, rng
        self._sample, self._within = loss.first, loss.first.batches(size, 1, rng)
        self._samples = samples_of(*loss.table.shape, rng)
        self.n_batches = len(self._samples) * self._within.n_batches
        self.n_epochs = -(-STEPS // self.n_batches) if isinstance(n_epochs, str) else n_epochs

    def __call__(self, B: np.ndarray, t: int) -> Drawn:
        """Return the minibatch of step t = 0, 1, ... of a descent that has reached the map B."""
        number, step = divmod(t % self.n_batches, self._within.n_batches)
        if (number, step) == (0, 0):
            self._samples = samples_of(*self._loss.table.shape, self._rng)
        if step == 0:
            first = self._loss.first
            X, pair_weights = fetched(self._loss.table, self._samples[number])
            rows = RowsInPlace.of(X, first.rows.unit)
            self._sample = replace(first, rows=rows, pair_weights=pair_weights)
            self._within = Minibatches(self._sample, self._size, 1, self._rng, refresh_share=0)
        return self._sample, self._within(B, step)


def samples_of(n: int, p: int, rng: Any) -> np.ndarray:
    """Return the rows of samples of equal sizes, each ascending, which share no row.

    They hold nearly all of n rows. A single sample holds all.
    """
    n_samples = n // max(INIT_ROWS, p)
    if n_samples < 2:
        return np.arange(n)[None]
    return np.sort(rng.permutation(n)[: n - n % n_samples].reshape(n_samples, -1), axis=1)


def fetched(table: Table, rows: np.ndarray) -> tuple[np.ndarray, SameClass]:
    """Return some rows of a table, ascending, and which of them share a class."""
    parts = np.split(rows, np.searchsorted(rows, table.starts[1:-1]))
    blocks = table.work.results(table.map(taken, parts))
    codes = np.concatenate([block.codes for block in blocks])
    return np.concatenate([block.X for block in blocks]), SameClass(codes)
