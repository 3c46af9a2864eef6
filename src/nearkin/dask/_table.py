"""Rows and labels on the cluster: what comes in, and the blocks that all tasks work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Future

from .._labels import encode_labels, is_missing
from .._memory import require_memory
from .._validation import check_spread
from ._work import Sized, Work

MOST_BLOCKS = 300  # each meets each: 90,000 tasks
EXACT_ROWS = 200_000  # above, to compare all pairs is refused
SECONDS_PER_PRODUCT = 1e-10  # measured on one thread: n^2 p of them are the price of a search


@dataclass(frozen=True)
class Rows(Sized):
    """A block of rows, as tasks see it.

    Attributes
    ----------
    X : array of shape (b, p)
        Relative to one row of all, the nearest to their mean.
    codes : array of shape (b,)
        The class of every row as a number 0, 1, ...; without labels all are of one.
    start : int
        The number of the first row.
    """

    X: np.ndarray
    codes: np.ndarray
    start: int

    def own(self, i: np.ndarray) -> np.ndarray:
        """Return the numbers of some rows of the block among all rows."""
        return self.start + i


@dataclass(frozen=True)
class AskedRows(Rows):
    """Some rows from all blocks; they have no common start.

    Attributes
    ----------
    numbers : integer array of shape (b,)
    """

    numbers: np.ndarray

    def own(self, i: np.ndarray) -> np.ndarray:
        """Return the numbers of some of the rows among all rows."""
        return self.numbers[i]


@dataclass(frozen=True)
class Table:
    """Rows that are spread over a cluster.

    Attributes
    ----------
    rows : list of futures of Rows
    starts : list of int
        The number of the first row of every block, and behind them n.
    shape : (n, p)
    dtype : float32 or float64
    sizes : array of shape (n_classes,)
        The number of rows of every class.
    """

    rows: list[Future]
    starts: list[int]
    shape: tuple[int, int]
    dtype: np.dtype
    sizes: np.ndarray


def check_dask_rows(name: str, X: Any, *, local: str) -> None:
    """Raise an error with the remedy when X is no two-dimensional Dask array of numbers."""
    _check_dask(name, X, "X", f"fit {local} on it, or cut it into blocks with dask.array.from_array(X, chunks=...)")
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"X must be of shape (n, p), got {X.shape}: reshape it, e.g. to X.reshape(-1, 1).")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got {X.dtype}: convert it, e.g. with X.astype('float64').")
    if not isinstance(X._meta, np.ndarray):
        raise TypeError(
            f"X has blocks of type {type(X._meta).__name__}, {name} takes dense NumPy blocks: convert them, e.g. with "
            "X.map_blocks(lambda block: block.toarray())."
        )


def one_block_of_columns(X: da.Array) -> da.Array:
    """Return X with its rows whole."""
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def table(work: Work, name: str, X: da.Array, *, exact: bool = True) -> Table:
    """Return unlabelled rows on the cluster; see `labelled_table` for `exact` and the errors."""
    _check_shape(work, name, X, exact)
    raw = work.compute(checked_blocks(X))
    return _table(work, X, raw, [None] * len(raw), None)


def labelled_table(work: Work, name: str, X: da.Array, y: Any, *, exact: bool = True) -> Table:
    """Return labelled rows on the cluster, their classes numbered as the local estimators do.

    `exact` says whether all pairs of rows will be compared.

    Raises
    ------
    TypeError
        If y is no Dask array.
    ValueError
        If X or y has chunks of unknown sizes, too few or too many rows, values that are not finite, or no two classes.
    MemoryError
        If p x p matrices do not fit on the client.
    """
    if y is None:
        raise ValueError(f"y is None, and {name} learns from labels: pass a Dask array of shape (n,).")
    _check_dask(name, y, "y", "cut it like X, with dask.array.from_array(y, chunks=X.chunks[0])")
    _check_shape(work, name, X, exact)
    _check_sizes(y, "y")
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must be of shape ({X.shape[0]},), a label for every row of X; got {y.shape}.")
    y = y if y.chunks[0] == X.chunks[0] else y.rechunk({0: X.chunks[0]})
    raw, labels = checked_blocks(X), [delayed(checked_block, pure=False)(*block) for block in _blocks(y)]
    computed = work.compute(raw + labels)
    labels = [computed.pop() for _ in labels][::-1]
    return _table(work, X, computed, labels, _classes(work, labels))


def _table(work: Work, X: da.Array, raw: list[Future], labels: list[Any], classes: np.ndarray | None) -> Table:
    origin = _row_nearest_to_mean(work, raw, X.shape[0])
    starts = np.cumsum([0, *(size for size in X.chunks[0] if size)]).tolist()
    rows = work.map(as_rows, raw, labels, starts[:-1], classes=classes, origin=origin)
    raw.clear()  # a raw block goes as soon as its rows are made
    sizes = work.total(work.map(class_sizes, rows, n_classes=1 if classes is None else len(classes)))
    return Table(rows, starts, X.shape, kept_dtype(X.dtype), sizes)


def _check_shape(work: Work, name: str, X: da.Array, exact: bool) -> None:
    """Refuse, before anything is computed, what cannot be or would take too long."""
    check_rows_and_features(name, X)
    n, p = X.shape
    if exact:
        check_affordable(n, p, work.n_threads())
    n_blocks = np.count_nonzero(X.chunks[0])
    if n_blocks > MOST_BLOCKS:
        raise ValueError(
            f"X is cut into {n_blocks} blocks of rows, and each meets each: rechunk it into at most {MOST_BLOCKS}, "
            f"e.g. with X.rechunk({{0: {-(-n // MOST_BLOCKS)}}})."
        )


def check_rows_and_features(name: str, X: da.Array) -> None:
    """Refuse chunks of unknown sizes, too few rows, and p x p matrices that do not fit on the client."""
    _check_sizes(X, "X")
    n, p = X.shape
    if n < 2:
        raise ValueError(f"X has {n} rows: at least 2 are needed.")
    if p > n:
        raise ValueError(
            f"X has more features ({p}) than rows ({n}): {name} is for many rows. Fit {name.removeprefix('Dask')} on "
            "X.compute(), or reduce the features first."
        )
    require_memory(8 * 8 * p * p, f"The scatters of {p} features", "reduce the features first")


def check_affordable(n: int, p: int, n_threads: int) -> None:
    """Raise a ValueError with the estimated time where comparing all pairs of rows would take too long."""
    if n > EXACT_ROWS:
        hours = n * n * p * SECONDS_PER_PRODUCT / n_threads / 3600
        raise ValueError(
            f"X has {n} rows, and all pairs of them are compared: about {hours:.2g} hours on {n_threads} threads. That "
            f"is refused above {EXACT_ROWS} rows: take search='approximate' (and n_candidates='auto' in NCA), or fit a "
            f"sample, e.g. X[::{-(-n // EXACT_ROWS)}]."
        )


def _check_dask(name: str, array: Any, argument: str, remedy: str) -> None:
    if isinstance(array, da.Array):
        return
    library = type(array).__module__.partition(".")[0]
    if library.startswith("dask"):
        remedy = f"pass {argument}.to_dask_array(lengths=True)"
    raise TypeError(f"{argument} is a {library} {type(array).__name__}, and {name} takes Dask arrays: {remedy}.")


def _check_sizes(array: da.Array, argument: str) -> None:
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(
            f"{argument} has chunks of unknown sizes: call {argument}.compute_chunk_sizes() first (for data frames, "
            ".to_dask_array(lengths=True))."
        )


def checked_blocks(X: da.Array) -> list[Any]:
    """Return the blocks that have rows, as delayed arrays of finite numbers."""
    return [delayed(checked_rows, pure=False)(*block) for block in _blocks(X)]


def _blocks(array: da.Array) -> list[tuple[Any, int]]:
    """Return the blocks that have rows, as delayed values, with the number of their rows."""
    return [(block, size) for block, size in zip(array.to_delayed().ravel(), array.chunks[0], strict=True) if size]


def kept_dtype(dtype: Any) -> np.dtype:
    """Return float32 for float32, float64 for all other numbers."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


# Tasks.


def checked_block(block: Any, size: int) -> np.ndarray:
    """Return a block that is what Dask believes it to be."""
    if not isinstance(block, np.ndarray) or len(block) != size:
        raise ValueError(
            f"A block is a {type(block).__name__} of shape {np.shape(block)} where a NumPy array of {size} rows is "
            "announced: call compute_chunk_sizes() on X and y, and make their blocks NumPy arrays."
        )
    return block


def checked_rows(block: Any, size: int) -> np.ndarray:
    """Return a block of X as finite numbers of `kept_dtype`."""
    block = checked_block(block, size)
    block = block.astype(kept_dtype(block.dtype), copy=False)
    if not np.isfinite(block).all():
        raise ValueError("X contains NaN or infinity: drop or fill these rows.")
    return block


def as_rows(X: np.ndarray, y: Any, start: int, *, classes: np.ndarray | None, origin: np.ndarray) -> Rows:
    """Return a block of rows relative to the origin, its labels numbered."""
    codes = np.zeros(len(X), dtype=int) if classes is None else np.searchsorted(classes, _plain(y))
    return Rows((X.astype(np.float64) - origin).astype(X.dtype), codes, start)


def class_sizes(rows: Rows, *, n_classes: int) -> np.ndarray:
    """Return how many rows of every class a block has."""
    return np.bincount(rows.codes, minlength=n_classes)


def _extent(X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least and the largest value of every feature in a block, and its share of the mean of n rows."""
    return X.min(axis=0), X.max(axis=0), X.sum(axis=0, dtype=np.float64) / n


def _nearest_to(X: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the row of a block that is nearest to a point, and before it the square of its distance."""
    squares = np.square(X - point).sum(axis=1)
    return squares.min(), X[squares.argmin()].astype(np.float64)


def _distinct(y: np.ndarray) -> tuple[list[Any], int]:
    """Return the distinct labels of a block, and the number of those that are missing."""
    missing = is_missing(y)
    return list(dict.fromkeys(y[~missing].tolist())), int(missing.sum())


def _row_nearest_to_mean(work: Work, raw: list[Future], n: int) -> np.ndarray:
    """Return the row that all others are told relative to.

    Far from the origin it takes the common offset away, exactly; and what is constant becomes exactly 0, where the
    rounding of a mean would pass for scatter.
    """
    low, high, means = zip(*work.results(work.map(_extent, raw, n=n)), strict=True)
    check_spread(np.stack([np.min(low, axis=0), np.max(high, axis=0)]))
    found = work.results(work.map(_nearest_to, raw, point=np.sum(means, axis=0)))
    return found[int(np.argmin([square for square, _ in found]))][1]


def _classes(work: Work, labels: list[Future]) -> np.ndarray:
    """Return the sorted classes of all blocks; refuse what `encode_labels` refuses."""
    seen: dict[Any, None] = {}
    n_missing = 0
    for distinct, missing in work.results(work.map(_distinct, labels)):
        seen |= dict.fromkeys(distinct)
        n_missing += missing
    if n_missing:
        raise ValueError(f"y has no label in {n_missing} rows: drop them.")
    thrice = np.array([*seen] * 3, dtype=object)  # labels that are all different look like numbers to predict
    return encode_labels(thrice)[0]


def _plain(y: np.ndarray) -> np.ndarray:
    return np.array(y.tolist()) if y.dtype == object else y
