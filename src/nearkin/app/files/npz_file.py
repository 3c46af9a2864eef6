"""NPZ files: dense or sparse arrays, never pickled objects."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csc_array, csr_array, issparse

from ..._blocks import row_blocks
from ..._memory import require_memory
from ..._messages import in_row, quoted, shown
from ...datasets import load
from ..endings import TableError
from .readers import BadCells, Columns, Names, Reader, missing_note, require_names, unique_names

SPARSE_KEYS = ("data", "indices", "indptr", "shape")
MAX_COLUMNS = 2**22  # each has a name
SPARSE = ("sparse matrix", "save data, indices, indptr and shape of a csr_array")


class NpzFile(Reader):
    """An NPZ file of a dense or sparse matrix, with labels and, optionally, feature_names.

    The matrix is X, or data, indices, indptr and shape of a sparse one.
    """

    kind = "NPZ archive of plain arrays"
    remedy = "write it again with numpy.savez, from numbers and strings"
    default_target = "y"

    def _open(self) -> None:
        with self._opened() as archive:
            self.names = [name.removesuffix(".npy") for name in archive.namelist()]

    def read(
        self,
        needed: Names | None = None,
        labels: Names = (),
        as_text: Names = (),
        as_numbers: Names = (),
        ids: str | None = None,
    ) -> Columns:
        """Return all columns, including `needed`."""
        X = self._dense() if "X" in self.names else self._sparse()
        n_rows, n_columns = X.shape
        if n_rows == 0 or n_columns > MAX_COLUMNS:
            raise TableError(
                f"{self.path} has the shape {X.shape}: give rows, and at most {MAX_COLUMNS} "
                "columns."
            )
        names, remarks = [f"column {number}" for number in range(n_columns)], list[str]()
        if "feature_names" in self.names:
            what = "a string for every column of X"
            names = self._array("feature_names", "U", (n_columns,), what).tolist()
            place = f"{self.path}: 'feature_names'"
            names, remarks = unique_names(place, names, self.reading.strict)
        require_names(self.path, names, [name for name in needed or [] if name not in labels])
        bad, met = BadCells(self.reading.refuse_missing), Counter[str]()
        for block in [] if issparse(X) else row_blocks(*X.shape):
            for mark in self.reading.numbers:
                X[block][X[block] == mark] = np.nan
            met["NaN"] += int(np.isnan(X[block]).sum())
            bad.add(names, X[block], block.start)
        what = f"a string or number for each of {n_rows} rows"
        values = {name: self._array(name, "biufU", (n_rows,), what) for name in labels}
        bad.refuse(self.path, self.place)
        found = Columns(names, X, names, {}, self.place, values, [*remarks, *missing_note(met)])
        if ids is not None:
            cells = self._array(ids, "biufU", (n_rows,), what)
            found.ids = pa.chunked_array([pa.array(cells, from_pandas=True)])  # NaN: missing
        return found

    def _dense(self) -> np.ndarray:
        """Return X as floats: float32 if it is float32 or shorter."""
        X = self._array("X", "biuf", (None, None), "rows of numbers")
        is_single = X.dtype.kind == "f" and X.dtype.itemsize < 8
        return X.astype(np.float32 if is_single else np.float64, copy=False)

    def _sparse(self) -> csr_array:
        if not set(SPARSE_KEYS) <= set(self.names):
            raise TableError(
                f"{self.path} needs an array 'X', or {quoted(SPARSE_KEYS)}; it has "
                f"{quoted(self.names)}."
            )
        data, indices, indptr, shape = (
            self._array(key, "biuf" if key == "data" else "iu", (None,), "numbers")
            for key in SPARSE_KEYS
        )
        layout = np.array("csr")
        if "format" in self.names:
            layout = self._array("format", "SU", (), "'csr' or 'csc'")
        with self.readable(*SPARSE):
            kind = {b"csr": csr_array, b"csc": csc_array}[layout.astype("S").item()]
            X = kind((data, indices, indptr), shape=shape.tolist())
            X.check_format(full_check=True)
        X = csr_array(X, dtype=np.float64)
        X.sum_duplicates()  # scikit-learn's norms treat every stored entry as a coordinate
        bad = BadCells(True)
        bad.add(["data"], X.data[:, None])
        ends = X.indptr[1:]  # end positions of the rows among the entries
        bad.refuse(self.path, lambda entry: in_row(int(np.searchsorted(ends, entry, "right"))))
        return X

    def _array(self, key: str, kinds: str, shape: tuple[int | None, ...], what: str) -> np.ndarray:
        """Return an array of a shape and of one of some dtype kinds; a None allows any size."""
        with self._opened() as archive, archive.open(f"{key}.npy") as file:
            size = archive.getinfo(f"{key}.npy").file_size
            require_memory(size, f"{self.path}: {shown(key)}", "take fewer rows")
            array = np.lib.format.read_array(file)
        fits = array.ndim == len(shape) and all(
            wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
        )
        if array.dtype.kind not in kinds or not fits:
            raise TableError(
                f"{self.path}: {shown(key)} holds {shown(str(array.dtype))} of the shape "
                f"{array.shape}: save {what}."
            )
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with self.readable(), zipfile.ZipFile(self.path) as archive:
            yield archive


class BundledSet(NpzFile):
    """A data set of `nearkin.datasets`, read like a file with its arrays."""

    default_target = "target"

    def _open(self) -> None:
        dataset = load(self.path.name)
        names = np.array(dataset.feature_names)
        self._arrays = {"X": dataset.X, "feature_names": names, "target": dataset.y}
        self.names = list(self._arrays)

    def _array(self, key: str, *_: Any) -> np.ndarray:
        return self._arrays[key]
