"""Blocks of rows, threads and memory; centring, densifying, filling and scaling rows."""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, reduce
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.utils.extmath import row_norms
from threadpoolctl import ThreadpoolController

FEW_ENTRIES = 2**18  # with fewer, one thread is faster than two
# the number of threads of `parallel_map` while BLAS is limited to one; otherwise 0
_threads: ContextVar[int] = ContextVar("threads", default=0)

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], work: int
) -> list[Result]:
    """Return `function` of every item, in as many threads as BLAS may use; BLAS itself uses one.

    `work`, the total number of array entries touched, decides whether threads pay off. The threads
    of BLAS itself would be slower: when idle, they keep spinning for a while on cores that other
    items need.
    """
    with blas_in_one_thread() as n:
        threads = 1 if work < FEW_ENTRIES else n
        if threads == 1:
            return [function(item) for item in items]
        with executor(threads) as workers:
            return list(workers.map(function, items))


def executor(n_threads: int) -> ThreadPoolExecutor:
    """Return threads in which `parallel_map` uses no further threads."""
    return ThreadPoolExecutor(n_threads, initializer=_threads.set, initargs=(1,))


@contextmanager
def blas_in_one_thread() -> Iterator[int]:
    """Limit BLAS to one thread, and yield the number of threads for `parallel_map`.

    Querying and limiting the libraries takes half a millisecond: code that calls `parallel_map`
    many times with little work should enter this context once, around all calls.
    """
    if _threads.get():
        yield _threads.get()
        return
    before = _threads.set(n_threads())
    try:
        with _blas_limit:
            yield _threads.get()
    finally:
        _threads.reset(before)


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and `parallel_map` to one thread."""
    before = _threads.set(1)
    try:
        with _blas_limit, thread_pools().limit(limits=1, user_api="openmp"):
            yield
    finally:
        _threads.reset(before)


def parallel_sum(
    term: Callable[[Item], np.ndarray], items: Sequence[Item], work: int
) -> np.ndarray:
    """Return the sum of the terms of at least one item; every thread sums its share."""
    sums = parallel_map(lambda share: reduce(np.add, map(term, share)), shares(items), work)
    return reduce(np.add, sums)


def shares(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Split items into one part per thread; a thread sums the results of its part."""
    t = n_threads()
    return [items[start::t] for start in range(min(t, len(items)))]


def n_threads() -> int:
    """Return the number of threads that BLAS may use here."""
    return _threads.get() or _blas_limit.n_threads_outside()


class _BlasLimit:
    """Limits BLAS to one thread from the first entry to the last exit, in all Python threads.

    The number of threads of BLAS belongs to the process. If every entry restored what it found, a
    second one would find one thread, and restore it if it was the last to leave.
    """

    def __init__(self) -> None:
        self._lock, self._entries = Lock(), 0

    def n_threads_outside(self) -> int:
        """Return the number of threads of BLAS before the first entry."""
        with self._lock:
            return self._n_threads if self._entries else self._count()

    def _count(self) -> int:
        blas = thread_pools().select(user_api="blas")
        return max([1, *(library["num_threads"] for library in blas.info())])

    def __enter__(self) -> None:
        with self._lock:
            if not self._entries:
                self._n_threads = self._count()
                self._limiter = thread_pools().limit(limits=1, user_api="blas")
                self._disown()
            self._entries += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entries -= 1
            if not self._entries:
                self._limiter.restore_original_limits()
                self._disown()

    def _disown(self) -> None:
        """Let any thread set the next limit; threadpoolctl 3.8 only lets that of the last one."""
        for library in thread_pools().lib_controllers:
            getattr(library, "clear_controlling_thread", lambda: None)()


_blas_limit = _BlasLimit()


@cache
def thread_pools() -> ThreadpoolController:
    """Return the threaded libraries, for setting limits; finding them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def deaf_processes() -> Iterator[None]:
    """Start processes that Ctrl-C and the closing of the terminal do not reach.

    The parent process ends them. It handles a signal that arrives in this context at the end of the
    context, so that none is lost and no process is half started.
    """
    deaf: list[int] = [signal.SIGINT, signal.SIGHUP]
    late: list[int] = []

    def postpone(number: int, frame: Any) -> None:
        late.append(number)

    # Python 3.11 starts it with the first process, and then unblocks SIGINT
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, deaf)  # processes inherit this
    handlers = dict[int, Any]()
    with suppress(ValueError):  # not the main thread
        for number in (*deaf, signal.SIGTERM):
            handlers[number] = signal.signal(number, postpone)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in late:
            signal.raise_signal(number)


def available_memory() -> int | None:
    """Return the bytes that this process may still use, or None if the system does not report them.

    This is the smaller of the free memory of the machine and what its control group (a container)
    still allows.
    """
    limits = []
    meminfo, group = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        if meminfo.exists():
            free = re.search(r"^MemAvailable:\s+(\d+)", meminfo.read_text(), re.MULTILINE)
            limits += [int(free[1]) * 1024] if free else []
        else:  # macOS does not report free memory: count all
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # no control group, or "max": no limit
        statistics = (group / "memory.stat").read_text()
        cache = re.search(r"^inactive_file (\d+)$", statistics, re.MULTILINE)
        used = int((group / "memory.current").read_text()) - int(cache[1] if cache else 0)
        limits.append(int((group / "memory.max").read_text()) - used)
    return min(limits, default=None)


def human_bytes(n_bytes: float) -> str:
    """Return text such as "3.2 GB"."""
    exponent = min(int(math.log10(max(n_bytes, 1))) // 3, 4)
    return f"{n_bytes / 1000**exponent:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[exponent]}"


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise a MemoryError that names `what` and the `remedy` if `n_bytes` are not available."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs about {human_bytes(n_bytes)} of memory, {human_bytes(available)} are "
            f"free: {remedy}."
        )


def densified(X: Any) -> Any:
    """Return sparse X as a dense array if more than a tenth of its entries are stored.

    Computing on it is then faster, and dense rows can be centred.
    """
    return X.toarray() if issparse(X) and X.nnz > 0.1 * X.shape[0] * X.shape[1] else X


def missing_cells(X: Any) -> np.ndarray:
    """Return the number of missing cells (NaN) of each feature; sparse rows have none."""
    return np.zeros(X.shape[1], dtype=int) if issparse(X) else np.isnan(X).sum(axis=0)


def filled(X: Any) -> Any:
    """Return X filled with its medians, followed by indicators; X itself if no cell is missing."""
    gaps = np.flatnonzero(missing_cells(X))
    if len(gaps) == 0:
        return X
    # only the columns with gaps: the medians of all would take long
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    out = np.hstack([X, np.isnan(X[:, gaps])], dtype=X.dtype)
    out[:, gaps] = medians.fit_transform(X[:, gaps])
    return out


def centre(X: np.ndarray) -> np.ndarray:
    """Return dense X in float64 with its column means removed, twice.

    Far from the origin, the first mean is inexact.
    """
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    X -= X.mean(axis=0)
    return X


def near_origin(X: np.ndarray) -> np.ndarray:
    """Return dense X, centred so that distances do not lose precision far from the origin.

    float32 rows, on which later steps compute in float64, are returned without a copy unless their
    mean is very far from the origin.
    """
    if X.dtype == np.float32:
        mean = X.mean(axis=0, dtype=np.float64)
        apart = X[:: -(-len(X) // 1000)] - mean
        if mean @ mean <= 1e6 * np.einsum("ij,ij->", apart, apart) / len(apart):
            return X
    return centre(X).astype(X.dtype, copy=False)


def dense_float64(X: Any) -> np.ndarray:
    """Return sparse or dense X as a dense float64 array."""
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def relative_to(origin: np.ndarray | None, X: Any) -> Any:
    """Return rows relative to the origin, dense, with their dtype; without an origin, X itself."""
    if origin is None:
        return X
    X = X.toarray() if issparse(X) else X
    return (X - origin).astype(X.dtype, copy=False)


def row_blocks(n_rows: int, entries_per_row: int, entries: int = 2**21) -> list[slice]:
    """Split `n_rows` rows into slices of about `entries` entries each."""
    step = max(1, entries // max(1, entries_per_row))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def squared_distances(X: Any, origin: np.ndarray | None = None) -> np.ndarray:
    """Return the squared distances of sparse or dense rows from the origin, or from another point.

    They are float64: of float32 rows far from 0, many would be equal by rounding.
    """
    if issparse(X):
        X = X.astype(np.float64)
        squares = row_norms(X, squared=True)
        return squares if origin is None else squares - 2 * (X @ origin) + origin @ origin
    origin = np.zeros(X.shape[1]) if origin is None else origin
    apart = (X[rows] - origin for rows in row_blocks(len(X), X.shape[1], 2**18))
    return np.concatenate([np.einsum("ij,ij->i", A, A) for A in apart])


def row_lengths(U: np.ndarray) -> np.ndarray:
    """Return the lengths of rows as a column; 1 for a row of zeros, which has no direction."""
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    return np.where(lengths > 0, lengths, 1).astype(U.dtype, copy=False)


def unit_rows(U: np.ndarray) -> np.ndarray:
    """Return rows scaled to unit length; rows of zeros stay zero."""
    return U / row_lengths(U)


def affine_unit_rows(X: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A x_i / ||x_i|| + b, scaled to unit length, for rows (n, p), in blocks.

    The precision is that of the rows.
    """
    Z = np.empty((len(X), len(A)), X.dtype)
    A, b = A.astype(X.dtype, copy=False), b.astype(X.dtype, copy=False)
    for rows in row_blocks(*X.shape):
        Z[rows] = unit_rows(unit_rows(X[rows]) @ A.T + b)
    return Z
