"""Rows and labels on a cluster: validation, and the blocks that all tasks work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakSet

import dask.array as da
import numpy as np
from dask.sizeof import sizeof
from distributed import Client, Future, futures_of, get_client
from scipy.sparse import csr_array

from .._labels import encode_labels
from .._memory import require_memory
from .._validation import check_spread

FAN_IN = 8  # terms that one task adds
LARGE = 50_000  # bytes above which a shared argument becomes a task of its own


def identity(value: Any) -> Any:
    """Return the value."""
    return value


class Work:
    """The tasks of one fit, a context manager that on exit releases what is on the cluster.

    State travels as task arguments, and nothing is scattered: a result lost with its worker is
    computed again.

    Parameters
    ----------
    client : distributed.Client or None
        None takes the current client.
    """

    def __init__(self, client: Client | None) -> None:
        self.client = get_client() if client is None else client
        if not isinstance(self.client, Client) or self.client.asynchronous:
            raise TypeError(
                f"client must be a distributed.Client that is not asynchronous, got {client!r}."
            )
        self._futures: WeakSet[Future] = WeakSet()

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: Any) -> None:
        for future in list(self._futures):  # a traceback may hold some of them; release those, too
            future.release()

    def persist(self, array: Any) -> Any:
        """Return a Dask array whose blocks are kept by the workers."""
        array = self.client.persist(array)
        self._tracked(futures_of(array))
        return array

    def value(self, array: Any) -> Any:
        """Return the contents of a small Dask array."""
        return self.results(self.compute([array]))[0]

    def compute(self, blocks: Sequence[Any]) -> list[Future]:
        """Submit delayed values as one graph, so that what they share is computed once."""
        return self._tracked(self.client.compute(list(blocks)))

    def map(self, function: Callable, *arguments: Sequence[Any], **fixed: Any) -> list[Future]:
        """Submit a task for every position of the lists of arguments.

        A large shared argument becomes a task of its own. Dask would create one, too, but with the
        name of the parameter, so two concurrent maps would share the value of the first.
        """
        shared = {
            name: self.submit(identity, value) if sizeof(value) > LARGE else value
            for name, value in fixed.items()
        }
        return self._tracked(self.client.map(function, *arguments, pure=False, **shared))

    def submit(self, function: Callable, *arguments: Any, **fixed: Any) -> Future:
        """Submit one task; arguments may be lists of futures."""
        return self._tracked([self.client.submit(function, *arguments, pure=False, **fixed)])[0]

    def reduce(self, parts: Sequence[Future], add: Callable = sum) -> Future:
        """Submit the sum of results, as a tree that only depends on their number.

        The sum is thus bitwise reproducible.
        """
        while len(parts) > 1:
            parts = [
                self.submit(add, list(parts[at : at + FAN_IN]))
                for at in range(0, len(parts), FAN_IN)
            ]
        return parts[0]

    def total(self, parts: Sequence[Future], add: Callable = sum) -> Any:
        """Return the sum of the results, computed by the workers."""
        return self.client.gather(self.reduce(parts, add))

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results in order; only for tasks with small results."""
        return self.client.gather(list(futures))

    def memory(self) -> list[int]:
        """Return the memory limit of each worker that has one, in bytes."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return [worker["memory_limit"] for worker in workers if worker["memory_limit"]]

    def _tracked(self, futures: list[Future]) -> list[Future]:
        self._futures.update(futures)
        return futures


MAX_BLOCKS = 300  # more are merged: every block may meet every other, in 90,000 tasks
EXACT_ROWS = 200_000  # with more, comparing all pairs is refused
SECONDS_PER_PRODUCT = 1e-10  # measured on one thread; a search takes n^2 p products


class Block(NamedTuple):
    """A block of rows, as tasks receive it.

    Attributes
    ----------
    X : array of shape (b, p)
        The rows, relative to the row of the table that is nearest to its mean.
    codes : array of shape (b,)
        Class codes 0, 1, ...; 0 without labels.
    start : int
        The index of the first row.
    lists : integer array of shape (b,), or None
        For an approximate search: the list of every row, ascending.
    numbers : integer array of shape (b,)
        The index of every row in the original table.
    """

    X: np.ndarray
    codes: np.ndarray
    start: int
    lists: Any = None
    numbers: Any = None


@dataclass
class Table:
    """Rows that are spread over a cluster.

    Attributes
    ----------
    work : Work
    blocks : list of futures of Block
    starts : list of int
        The index of the first row of every block, followed by n.
    shape : (n, p)
    dtype : float32 or float64
    codes : array of shape (n,)
        Class codes 0, 1, ..., in the original order of rows; 0 without labels.
    classes : array of shape (n_classes,)
        Labels; a number without labels.
    class_sizes : array of shape (n_classes,)
    mean : array of shape (p,)
        Of the original rows.
    index : future of SharedIndex, or None
        For partitioned rows, whose blocks have `lists`.
    spans : integer array of shape (n_blocks, 2), or None
        The first and the last list with rows in each block.
    """

    work: Work
    blocks: list[Future]
    starts: list[int]
    shape: tuple[int, int]
    dtype: np.dtype
    codes: np.ndarray
    classes: np.ndarray
    class_sizes: np.ndarray
    mean: np.ndarray
    index: Any = None
    spans: Any = None

    def map(self, task: Callable, *each: Sequence[Any], **fixed: Any) -> list[Future]:
        """Submit a task for every block; its arguments are the block and its part of `each`."""
        return self.work.map(task, self.blocks, *each, **fixed)

    def total(self, task: Callable, *each: Sequence[Any], **fixed: Any) -> Any:
        """Return the sum of the results of a task on every block, computed by the workers."""
        return self.work.total(self.map(task, *each, **fixed))

    def total_scatter(self, weights: list[Any] | None = None) -> np.ndarray:
        """Return `sum_i w_i (x_i - m)(x_i - m)'` with the weighted mean m, shape (p, p).

        By default every w_i is 1.
        """
        each = [] if weights is None else [weights]
        weight, *moment = self.total(first_moments, *each)
        S = self.total(second_moment, *each, mean=np.array(moment) / weight)
        return (S + S.T) / 2

    def within_scatter(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return `sum_c w_c sum_(i in c) (x_i - m_c)(x_i - m_c)'`, shape (p, p).

        By default every w_c is 1.
        """
        each = [] if weights is None else [self.map(lambda block: weights[block.codes])]
        S = self.total(second_moment, *each, mean=self.class_means())
        return (S + S.T) / 2

    def class_means(self) -> np.ndarray:
        """Return the mean of every class, (n_classes, p), relative to the origin of the blocks."""
        sums = self.total(class_sums, n_classes=len(self.class_sizes))
        return sums / self.class_sizes[:, None]

    def between_scatter(self) -> np.ndarray:
        """Return `sum_c n_c (m_c - m)(m_c - m)'` of the class means, shape (p, p)."""
        M = self.class_means()
        n_c = self.class_sizes
        M -= n_c @ M / n_c.sum()
        return (M.T * n_c) @ M


def as_table(
    work: Work, name: str, X: da.Array, y: Any = None, *, labelled: bool = True, exact: bool = True
) -> Table:
    """Return rows and labels on the cluster, with the class codes of the local estimators.

    `exact` says whether all pairs of rows will be compared, `labelled` whether y is used; `name` is
    that of the class, for messages. Shapes and types that cannot work, or would take too long,
    raise an error before anything is computed. The labels are sent to the client.
    """
    _check_sizes(X, "X")
    n, p = X.shape
    if p > n:
        raise ValueError(
            f"X has more features ({p}) than rows ({n}): {name} is for many rows. Fit "
            f"{name.removeprefix('Dask')} on X.compute(), or reduce the features first."
        )
    require_memory(8 * 8 * p * p, f"The scatters of {p} features", "reduce the features first")
    if exact:
        check_exact(n, p, max(1, sum(work.client.nthreads().values())))
    if labelled:
        check_dask(name, y, "y", "cut it like X, with dask.array.from_array(y, chunks=X.chunks[0])")
        _check_sizes(y, "y")
        if y.shape != (n,):
            raise ValueError(
                f"y must be of shape ({n},), a label for every row of X; got {y.shape}."
            )
    else:
        y = da.zeros(n, chunks=X.chunks[:1])
    sizes = tuple(filter(None, X.chunks[0]))
    X = X.rechunk({0: sizes if len(sizes) <= MAX_BLOCKS else -(-n // MAX_BLOCKS)})
    X = work.persist(X.astype(kept_dtype(X.dtype)))
    y = work.persist(y.rechunk(X.chunks[:1]))
    if not work.value(da.isfinite(X).all()):
        raise ValueError("X contains NaN or infinity: drop or fill these rows.")
    classes = np.zeros(1)
    codes = np.zeros(n, dtype=int)
    if labelled:
        classes, codes = encode_labels(work.value(y))
    check_spread(work.value(da.stack([X.min(axis=0), X.max(axis=0)])))
    mean = work.value(X.mean(axis=0, dtype=np.float64))
    # Relative to a row, constant features are exactly 0; relative to a mean, rounding errors would
    # count as scatter.
    central = work.value(da.square(X - mean).sum(axis=1).argmin())
    origin = work.value(X[central]).astype(np.float64)
    raw, labels = (work.compute(array.to_delayed().ravel()) for array in (X, y))
    sizes = X.chunks[0]
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = work.map(as_block, raw, labels, starts[:-1], sizes, classes=classes, origin=origin)
    return Table(
        *(work, blocks, starts, X.shape, X.dtype, codes, classes, np.bincount(codes), mean)
    )


def check_exact(n: int, p: int, n_threads: int) -> None:
    """Raise a ValueError with the estimated time if comparing all pairs of rows takes too long."""
    if n > EXACT_ROWS:
        hours = n * n * p * SECONDS_PER_PRODUCT / n_threads / 3600
        raise ValueError(
            f"X has {n} rows, and all pairs of them are compared: about {hours:.2g} hours on "
            f"{n_threads} threads. That is refused above {EXACT_ROWS} rows: take "
            f"search='approximate', or fit a sample, e.g. X[::{-(-n // EXACT_ROWS)}]."
        )


def kept_dtype(dtype: Any) -> np.dtype:
    """Return float32 for float32, float64 for all other numbers."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def check_dask(name: str, array: Any, argument: str, remedy: str) -> None:
    """Raise a TypeError with the remedy if an argument is not a Dask array."""
    if not isinstance(array, da.Array):
        raise TypeError(
            f"{argument} is a {type(array).__module__.partition('.')[0]} {type(array).__name__}, "
            f"and {name} takes Dask arrays: {remedy}; of a Dask data frame, take "
            ".to_dask_array(lengths=True)."
        )


def _check_sizes(array: da.Array, argument: str) -> None:
    if np.isnan(array.shape).any():
        raise ValueError(
            f"{argument} has chunks of unknown sizes: call {argument}.compute_chunk_sizes() first "
            "(for data frames, .to_dask_array(lengths=True))."
        )


def as_block(
    X: np.ndarray, y: Any, start: int, size: int, *, classes: np.ndarray, origin: np.ndarray
) -> Block:
    """Return, as a task, a block of rows relative to the origin, with class codes."""
    if (len(X), len(y)) != (size, size):
        raise ValueError(
            f"A block has {len(X)} rows and {len(y)} labels where {size} are announced: call "
            "compute_chunk_sizes() on X and y."
        )
    codes = np.searchsorted(classes, np.array(y.tolist()) if y.dtype == object else y)
    return Block(
        (X.astype(np.float64) - origin).astype(X.dtype), codes, start, None, start + np.arange(size)
    )


def aligned(array: np.ndarray) -> np.ndarray:
    """Return an array at an address that is aligned for its dtype.

    Data sent by another worker may be unaligned. NumPy then multiplies a copy, whose rounding may
    differ if the array is transposed.
    """
    return np.require(array, requirements="A")


def taken(block: Block, numbers: np.ndarray) -> Block:
    """Return, as a task, some rows of a block by their indices among all rows."""
    i = numbers - block.start
    return Block(block.X[i], block.codes[i], block.start, None, block.numbers[i])


def first_moments(block: Block, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the sum of the weights, followed by the weighted sum of the rows."""
    w = np.ones(len(block.X)) if weights is None else weights
    return np.append(w.sum(), w @ block.X.astype(np.float64))


def second_moment(
    block: Block, weights: np.ndarray | None = None, *, mean: np.ndarray
) -> np.ndarray:
    """Return the weighted sum of squares and products about a mean (p,), or the class means.

    `mean` has shape (p,) or (n_classes, p).
    """
    X = block.X.astype(np.float64) - (mean if mean.ndim == 1 else mean[block.codes])
    return X.T @ X if weights is None else (X.T * weights) @ X


def class_sums(block: Block, *, n_classes: int) -> np.ndarray:
    """Return the sum of the rows of every class."""
    n = len(block.X)
    membership = csr_array((np.ones(n), block.codes, np.arange(n + 1)), (n, n_classes))
    return membership.T @ block.X.astype(np.float64)
