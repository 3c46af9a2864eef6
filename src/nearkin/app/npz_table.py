"""NPZ files: dense or sparse arrays, never pickled objects."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from .table import Table, TableError, check_classes, check_groups, find_name, quoted, refuse_cells, without_constants

MAX_COLUMNS = 10**8
SPARSE_KEYS = ("data", "indices", "indptr", "shape")


def read_npz(path: Path, target: str, groups: str | None) -> Table:
    """Return the table of an NPZ file with X, or data, indices, indptr and shape; `target` is an array."""
    arrays, target, groups = _load_arrays(path, target, groups)
    if target == groups:
        raise TableError(f"{path}: --target and --groups both name {target!r}: give two arrays.")
    X = _dense(path, arrays["X"]) if "X" in arrays else _sparse(path, arrays)
    y = check_classes(path, target, _labels(path, target, arrays[target], X.shape[0]))
    group = None
    if groups is not None:
        group = check_groups(path, groups, _labels(path, groups, arrays[groups], X.shape[0]))
    names = _feature_names(path, arrays.get("feature_names"), X.shape[1])
    X, names, notes = without_constants(path, X, names)
    return Table(X, y, group, names, path.stem, notes)


def _load_arrays(path: Path, target: str, groups: str | None) -> tuple[dict[str, np.ndarray], str, str | None]:
    """Return the arrays that are needed, and the keys that `target` and `groups` stand for."""
    if not zipfile.is_zipfile(path):
        raise TableError(f"{path} is not an NPZ archive: write it by numpy.savez.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = archive.files
            target = find_name(path, keys, target, "--target")
            groups = None if groups is None else find_name(path, keys, groups, "--groups")
            matrix = ("X",) if "X" in keys else SPARSE_KEYS
            if not set(matrix) <= set(keys):
                raise TableError(f"{path} needs an array 'X', or {quoted(SPARSE_KEYS)}; it has {quoted(keys)}.")
            wanted = [*matrix, target, groups, "feature_names", *(["format"] if matrix is SPARSE_KEYS else [])]
            return {key: _array(path, archive, key) for key in wanted if key in keys}, target, groups
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise TableError(f"{path} is damaged ({error}): write it again.") from error


def _array(path: Path, archive: Any, key: str) -> np.ndarray:
    try:
        array = archive[key]
    except ValueError as error:
        raise TableError(
            f"{path}: {key!r} is no plain array ({error}): save numbers or strings, not objects."
        ) from error
    if not isinstance(array, np.ndarray):
        raise TableError(f"{path}: {key!r} is no array: write the archive by numpy.savez.")
    return array


def _dense(path: Path, X: np.ndarray) -> np.ndarray:
    _require_numbers(path, "X", X)
    if X.ndim != 2:
        raise TableError(f"{path}: X has the shape {X.shape}: reshape it to (rows, columns).")
    X = X.astype(np.float64)
    refuse_cells(path, "missing or infinite values", ~np.isfinite(X), _feature_names(path, None, X.shape[1]), _row)
    return X


def _sparse(path: Path, arrays: dict[str, np.ndarray]) -> csr_array:
    _require_numbers(path, "data", arrays["data"])
    layout = str(arrays["format"].astype(str)) if "format" in arrays else "csr"
    if layout not in ("csr", "csc"):
        raise TableError(f"{path}: the sparse format {layout!r} is not supported: save X.tocsr().")
    try:
        n_rows, n_columns = arrays["shape"].tolist()
        if n_columns > MAX_COLUMNS or not np.issubdtype(arrays["indices"].dtype, np.integer):
            raise ValueError(f"{n_columns} columns, indices of type {arrays['indices'].dtype}")
        parts = tuple(arrays[key] for key in ("data", "indices", "indptr"))
        X = (csr_array if layout == "csr" else csc_array)(parts, shape=(n_rows, n_columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise TableError(
            f"{path}: {quoted(SPARSE_KEYS)} form no matrix ({error}): save those of a csr_array."
        ) from error
    X = csr_array(X, dtype=np.float64)
    X.sum_duplicates()  # scikit-learn's norms take every stored entry for a coordinate

    def row(entry: int) -> str:
        return _row(int(np.searchsorted(X.indptr, entry, side="right")) - 1)

    refuse_cells(path, "missing or infinite values", ~np.isfinite(X.data)[:, None], ["data"], row)
    return X


def _require_numbers(path: Path, key: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf":
        raise TableError(f"{path}: {key!r} holds {array.dtype}, not numbers: encode it first.")


def _labels(path: Path, key: str, labels: np.ndarray, n_rows: int) -> np.ndarray:
    if labels.shape != (n_rows,):
        raise TableError(f"{path}: {key!r} has the shape {labels.shape}, X has {n_rows} rows: save one label a row.")
    if labels.dtype.kind not in "biufU":
        raise TableError(f"{path}: {key!r} holds {labels.dtype}: save strings or integers.")
    if labels.dtype.kind == "f":
        refuse_cells(path, "missing or infinite values", ~np.isfinite(labels)[:, None], [key], _row)
    return labels


def _feature_names(path: Path, names: np.ndarray | None, n_features: int) -> list[str]:
    if names is None:
        return [f"column {number}" for number in range(n_features)]
    if names.shape != (n_features,) or names.dtype.kind != "U":
        raise TableError(
            f"{path}: 'feature_names' has the shape {names.shape} and the type {names.dtype}, X has {n_features} "
            "columns: save one string a column."
        )
    return [str(name) for name in names]


def _row(number: int) -> str:
    return f"in row {number} (counted from 0)"
