"""Rows and labels on a cluster: what is accepted, and the blocks that all tasks work on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Future

from .._labels import encode_labels, is_missing
from .._memory import require_memory
from .._validation import check_spread
from ._work import Sums, Work

MAX_BLOCKS = 300  # each may meet each: 90,000 tasks; more are merged
EXACT_ROWS = 200_000  # above, to compare all pairs is refused
SECONDS_PER_PRODUCT = 1e-10  # measured on one thread; a search takes n^2 p of them


class Block(NamedTuple):
    """A block of rows, as tasks see it.

    Attributes
    ----------
    X : array of shape (b, p)
        Relative to one row of the table, the nearest to its mean.
    codes : array of shape (b,)
        The class of every row as a number 0, 1, ...; 0 without labels.
    start : int
        The number of the first row.
    lists, numbers : integer arrays of shape (b,), or None
        For an approximate search: the number of every row's list, ascending, and its number in the table as given.
    """

    X: np.ndarray
    codes: np.ndarray
    start: int
    lists: Any = None
    numbers: Any = None


@dataclass(frozen=True)
class Table:
    """Rows that are spread over a cluster.

    Attributes
    ----------
    blocks : list of futures of Block
    starts : list of int
        The number of the first row of every block, followed by n.
    shape : (n, p)
    dtype : float32 or float64
    class_sizes : array of shape (n_classes,)
    mean : array of shape (p,)
        Of the rows as given.
    """

    blocks: list[Future]
    starts: list[int]
    shape: tuple[int, int]
    dtype: np.dtype
    class_sizes: np.ndarray
    mean: np.ndarray


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


def as_table(work: Work, name: str, X: da.Array, y: Any = None, *, labelled: bool = True, exact: bool = True) -> Table:
    """Return rows and labels on the cluster, the classes numbered as the local estimators number them.

    `exact` says whether all pairs of rows will be compared, `labelled` whether y counts, `name` is that of the class in
    messages. What cannot work or would take too long is refused before anything is computed.
    """
    _check_rows(work, name, X, exact)
    n = X.shape[0]
    if np.count_nonzero(X.chunks[0]) > MAX_BLOCKS:
        X = X.rechunk({0: -(-n // MAX_BLOCKS)})
    raw = [delayed(checked_rows, pure=False)(*block) for block in _blocks(X)]
    labels = [delayed(checked, pure=False)(*block) for block in _blocks(_labels(name, X, y))] if labelled else []
    computed = work.compute(raw + labels)
    raw, labels = computed[: len(raw)], computed[len(raw) :]
    classes, class_sizes = _classes(work, labels) if labelled else (None, np.array([n]))
    low, high, means = zip(*work.results(work.map(extent, raw, n=n)), strict=True)
    check_spread(np.stack([np.min(low, axis=0), np.max(high, axis=0)]))
    mean = np.sum(means, axis=0)
    # Relative to a row, what is constant becomes exactly 0, where the rounding of a mean would pass for scatter.
    origin = min(work.results(work.map(nearest_to, raw, point=mean)), key=lambda found: found[0])[1]
    starts = np.cumsum([0, *filter(None, X.chunks[0])]).tolist()
    blocks = work.map(as_block, raw, labels or [None] * len(raw), starts[:-1], classes=classes, origin=origin)
    return Table(blocks, starts, X.shape, kept_dtype(X.dtype), class_sizes, mean)


def _check_rows(work: Work, name: str, X: da.Array, exact: bool) -> None:
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
    if exact:
        check_exact(n, p, max(1, sum(work.client.nthreads().values())))


def check_exact(n: int, p: int, n_threads: int) -> None:
    """Raise a ValueError with the estimated time where comparing all pairs of rows would take too long."""
    if n > EXACT_ROWS:
        hours = n * n * p * SECONDS_PER_PRODUCT / n_threads / 3600
        raise ValueError(
            f"X has {n} rows, and all pairs of them are compared: about {hours:.2g} hours on {n_threads} threads. That "
            f"is refused above {EXACT_ROWS} rows: take search='approximate' (and n_candidates='auto' in NCA), or fit a "
            f"sample, e.g. X[::{-(-n // EXACT_ROWS)}]."
        )


def kept_dtype(dtype: Any) -> np.dtype:
    """Return float32 for float32, float64 for all other numbers."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _labels(name: str, X: da.Array, y: Any) -> da.Array:
    """Return y in the blocks of X."""
    if y is None:
        raise ValueError(f"y is None, and {name} learns from labels: pass a Dask array of shape (n,).")
    _check_dask(name, y, "y", "cut it like X, with dask.array.from_array(y, chunks=X.chunks[0])")
    _check_sizes(y, "y")
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must be of shape ({X.shape[0]},), a label for every row of X; got {y.shape}.")
    return y.rechunk({0: X.chunks[0]})


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


def _blocks(array: da.Array) -> list[tuple[Any, int]]:
    """Return the blocks that have rows, as delayed values, with the number of their rows."""
    return [(block, size) for block, size in zip(array.to_delayed().ravel(), array.chunks[0], strict=True) if size]


def _classes(work: Work, labels: list[Future]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of all blocks and their sizes; refuse what `encode_labels` refuses."""
    sizes, n_missing = work.total(work.map(label_counts, labels))
    if n_missing:
        raise ValueError(f"y has no label in {n_missing} rows: drop them.")
    thrice = np.array([*sizes] * 3, dtype=object)  # labels that are all different look like a regression target
    classes = encode_labels(thrice)[0]
    return classes, np.array([sizes[label] for label in classes.tolist()])


# Tasks.


def checked(block: Any, size: int) -> np.ndarray:
    """Return a block if it is what Dask believes it to be."""
    if not isinstance(block, np.ndarray) or len(block) != size:
        raise ValueError(
            f"A block is a {type(block).__name__} of shape {np.shape(block)} where a NumPy array of {size} rows is "
            "announced: call compute_chunk_sizes() on X and y, and make their blocks NumPy arrays."
        )
    return block


def checked_rows(block: Any, size: int) -> np.ndarray:
    """Return a block of X as finite numbers of `kept_dtype`."""
    block = checked(block, size)
    block = block.astype(kept_dtype(block.dtype), copy=False)
    if not np.isfinite(block).all():
        raise ValueError("X contains NaN or infinity: drop or fill these rows.")
    return block


def extent(X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least and the largest value of every feature in a block, and its share of the mean of n rows."""
    return X.min(axis=0), X.max(axis=0), X.sum(axis=0, dtype=np.float64) / n


def nearest_to(X: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the square of the distance from a point to the nearest row of a block, and that row."""
    squares = np.square(X - point).sum(axis=1)
    return squares.min(), X[squares.argmin()].astype(np.float64)


def label_counts(y: np.ndarray) -> Sums:
    """Return how often every label occurs in a block, and how many are missing."""
    missing = is_missing(y)
    return Sums((Counter(y[~missing].tolist()), int(missing.sum())))


def as_block(X: np.ndarray, y: Any, start: int, *, classes: np.ndarray | None, origin: np.ndarray) -> Block:
    """Return a block of rows relative to the origin, its labels numbered."""
    if classes is None:
        codes = np.zeros(len(X), dtype=int)
    else:
        codes = np.searchsorted(classes, np.array(y.tolist()) if y.dtype == object else y)
    return Block((X.astype(np.float64) - origin).astype(X.dtype), codes, start)
