"""NPZ files: dense or sparse arrays, never pickled objects."""

from __future__ import annotations

import lzma
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from .._blocks import row_blocks
from .._memory import require_memory
from .encoder import numbers_only
from .table import (
    MAX_NAME,
    BadCells,
    Table,
    TableError,
    check_groups,
    check_names,
    check_target,
    find_name,
    quoted,
    reason,
    shortened,
    shown,
    without_constants,
)

MAX_COLUMNS = 2**22
SPARSE_KEYS = ("data", "indices", "indptr", "shape")


def read_npz(path: Path, target: str, groups: str | None, task: str, unlabelled: str | None) -> Table:
    """Return the table of an NPZ file with X, or data, indices, indptr and shape; `target` is an array."""
    with _opened(path) as archive:
        target = find_name(path, archive.files, target, "--target")
        groups = None if groups is None else find_name(path, archive.files, groups, "--groups")
        if target == groups:
            raise TableError(f"{path}: --target and --groups both name {shown(target)}: give two arrays.")
        X, names = _rows(path, archive)
        y = _labels(path, archive, target, X.shape[0], with_gaps=True)
        y = check_target(path, target, y, task, _row, unlabelled)
        group = None
        if groups is not None:
            group = check_groups(path, groups, _labels(path, archive, groups, X.shape[0]), y)
    X, names, notes = without_constants(path, X, names)
    return Table(X, y, group, path.stem, notes, target, numbers_only(names), range(X.shape[0]), task)


def read_npz_rows(path: Path) -> tuple[Any, list[str]]:
    """Return X and the names of its columns."""
    with _opened(path) as archive:
        return _rows(path, archive)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not zipfile.is_zipfile(path):
        raise TableError(f"{path} is not an NPZ archive: write it by numpy.savez.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if not archive.files:
                raise TableError(f"{path} is empty: it needs the arrays X and y.")
            yield archive
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError) as error:
        raise TableError(
            f"{path} is damaged, encrypted or no NPZ archive ({reason(error)}): write it again."
        ) from error


def _rows(path: Path, archive: Any) -> tuple[Any, list[str]]:
    keys = archive.files
    if "X" not in keys and not set(SPARSE_KEYS) <= set(keys):
        raise TableError(f"{path} needs an array 'X', or {quoted(SPARSE_KEYS)}; it has {quoted(keys)}.")
    X = _dense(path, _array(path, archive, "X")) if "X" in keys else _sparse(path, archive)
    names = _array(path, archive, "feature_names") if "feature_names" in keys else None
    return X, _feature_names(path, names, X.shape[1])


def _array(path: Path, archive: Any, key: str) -> np.ndarray:
    size = next(member.file_size for member in archive.zip.infolist() if member.filename.removesuffix(".npy") == key)
    require_memory(size, f"{path}: {shown(key)}", "take fewer rows or columns")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Reading `.npy` or `.npz` file required additional header parsing")
            array = archive[key]
    except (ValueError, TypeError, OverflowError, SyntaxError, TokenError) as error:
        raise TableError(
            f"{path}: {shown(key)} is no plain array ({reason(error)}): save numbers or strings, not objects."
        ) from error
    if not isinstance(array, np.ndarray):
        raise TableError(f"{path}: {shown(key)} is no array: write the archive by numpy.savez.")
    if array.dtype.kind == "U":
        _require_text(path, key, array)
    return array


def _dense(path: Path, X: np.ndarray) -> np.ndarray:
    _require_numbers(path, "X", X)
    if X.ndim != 2:
        raise TableError(f"{path}: X has the shape {X.shape}: reshape it to (rows, columns).")
    _check_shape(path, *X.shape)
    X = _floating(X)
    names, bad = _feature_names(path, None, X.shape[1]), BadCells("missing or infinite values")
    for block in row_blocks(*X.shape):
        bad.add(names, ~np.isfinite(X[block]), block.start)
    bad.refuse(path, _row)
    return X


def _floating(X: np.ndarray) -> np.ndarray:
    """Return X in float64, or in float32 if it is that or shorter; 64-bit integers become floats where they stand."""
    if X.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what does not fit is infinite, and refused as such
            return X.astype(np.float32 if X.dtype.itemsize < 8 else np.float64, copy=False)
    if X.dtype.itemsize < 8:
        return X.astype(np.float64)
    if not X.flags.c_contiguous:
        return _floating(X.T).T
    floats = X.view(np.float64)
    for block in row_blocks(*X.shape):
        floats[block] = X[block]
    return floats


def _sparse(path: Path, archive: Any) -> csr_array:
    keys = [*SPARSE_KEYS, *(["format"] if "format" in archive.files else [])]
    arrays = {key: _array(path, archive, key) for key in keys}
    _require_numbers(path, "data", arrays["data"])
    layout = arrays["format"].tolist() if "format" in arrays else "csr"
    if layout not in ("csr", "csc", b"csr", b"csc"):
        raise TableError(f"{path}: the sparse format {shown(layout)} is not supported: save X.tocsr().")
    try:
        n_rows, n_columns = arrays["shape"].tolist()
        _check_shape(path, n_rows, n_columns)
        if not np.issubdtype(arrays["indices"].dtype, np.integer):
            raise ValueError(f"indices of type {arrays['indices'].dtype}")
        parts = tuple(arrays[key] for key in ("data", "indices", "indptr"))
        X = (csr_array if layout in ("csr", b"csr") else csc_array)(parts, shape=(n_rows, n_columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise TableError(
            f"{path}: {quoted(SPARSE_KEYS)} form no matrix ({reason(error)}): save those of a csr_array."
        ) from error
    X = csr_array(X, dtype=np.float64)
    X.sum_duplicates()  # scikit-learn's norms take every stored entry for a coordinate

    def row(entry: int) -> str:
        return _row(int(np.searchsorted(X.indptr, entry, side="right")) - 1)

    BadCells("missing or infinite values").add(["data"], ~np.isfinite(X.data)[:, None]).refuse(path, row)
    return X


def _check_shape(path: Path, n_rows: int, n_columns: int) -> None:
    if n_rows == 0:
        raise TableError(f"{path} has 0 rows: give rows.")
    if n_columns > MAX_COLUMNS:
        raise TableError(f"{path} has {n_columns} columns, at most {MAX_COLUMNS} have names: hash into fewer.")


def _require_numbers(path: Path, key: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf":
        raise TableError(f"{path}: {key!r} holds {_type(array)}, not numbers: encode it first.")


def _require_text(path: Path, key: str, array: np.ndarray) -> None:
    """Refuse strings of numbers that are no characters: they could not be written anywhere."""
    letters = np.frombuffer(array.tobytes(), np.dtype("u4").newbyteorder(array.dtype.byteorder))
    if ((letters > sys.maxunicode) | ((letters >= 0xD800) & (letters <= 0xDFFF))).any():
        raise TableError(f"{path}: {shown(key)} holds what is no text: write it again.")


def _type(array: np.ndarray) -> str:
    return shortened(str(array.dtype), MAX_NAME)


def _labels(path: Path, archive: Any, key: str, n_rows: int, *, with_gaps: bool = False) -> np.ndarray:
    labels = _array(path, archive, key)
    if labels.shape != (n_rows,):
        raise TableError(
            f"{path}: {shown(key)} has the shape {labels.shape}, X has {n_rows} rows: save one label a row."
        )
    if labels.dtype.kind not in "biufU":
        raise TableError(f"{path}: {shown(key)} holds {_type(labels)}: save strings or integers.")
    if labels.dtype.kind == "f":
        what, bad = (
            ("infinite values", np.isinf(labels)) if with_gaps else ("missing or infinite values", ~np.isfinite(labels))
        )
        BadCells(what).add([key], bad[:, None]).refuse(path, _row)
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)


def _feature_names(path: Path, names: np.ndarray | None, n_features: int) -> list[str]:
    if names is None:
        return [f"column {number}" for number in range(n_features)]
    if names.shape != (n_features,) or names.dtype.kind != "U":
        raise TableError(
            f"{path}: 'feature_names' has the shape {names.shape} and the type {_type(names)}, X has {n_features} "
            "columns: save one string a column."
        )
    check_names(f"{path}: 'feature_names'", names.tolist())
    return names.tolist()


def _row(number: int) -> str:
    return f"in row {number} (counted from 0)"
