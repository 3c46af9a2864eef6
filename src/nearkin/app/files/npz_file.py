"""NPZ and NPY files: dense or sparse arrays, never pickled objects."""

from __future__ import annotations

import re
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
from ..._messages import in_row, listed, quoted, shown
from ...datasets import load
from ..endings import TableError
from .readers import (
    BadCells,
    Columns,
    Names,
    Reader,
    find_name,
    missing_note,
    require_names,
    unique_names,
)

SPARSE_KEYS = ("data", "indices", "indptr", "shape")
MAX_COLUMNS = 2**22  # each has a name
SPARSE = ("sparse matrix", "save data, indices, indptr and shape of a csr_array")


class NpzFile(Reader):
    """An NPZ file of a dense or sparse matrix, with labels and, optionally, feature_names.

    The matrix is X, or data, indices, indptr and shape of a sparse one, or else the only array of
    two dimensions, whose columns are then named like those of a column of lists.
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
        key = self._key()
        X = self._dense(key) if key else self._sparse()
        n_rows, n_columns = X.shape
        if n_rows == 0 or n_columns > MAX_COLUMNS:
            raise TableError(
                f"{self.path} has the shape {X.shape}: give rows, and at most {MAX_COLUMNS} "
                "columns."
            )
        pattern = "column {}" if key in ("", "X") else f"{key}[{{}}]"
        names, remarks = [pattern.format(number) for number in range(n_columns)], list[str]()
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

    def _key(self) -> str:
        """Return the name of the dense matrix, or "" for a sparse one."""
        if self.reading.vectors:
            return find_name(self.path, self.names, self.reading.vectors, "--vectors")
        if "X" in self.names or set(SPARSE_KEYS) <= set(self.names):
            return "X" * ("X" in self.names)
        found = [name for name in self.names if self._is_matrix(name)]
        if len(found) == 1:
            return found[0]
        if found and self.reading.vectors is not None:
            raise TableError(
                f"{self.path} has several arrays of vectors, {listed(found, 5)}: name one with "
                "--vectors."
            )
        raise TableError(
            f"{self.path} needs an array 'X', a single one of two dimensions, or "
            f"{quoted(SPARSE_KEYS)}; it has {quoted(self.names)}."
        )

    def _is_matrix(self, key: str) -> bool:
        """Return whether an array has two dimensions, by its header."""
        with self._opened() as archive:
            if f"{key}.npy" not in archive.namelist():
                return False
            with archive.open(f"{key}.npy") as file:
                version, _ = np.lib.format.read_magic(file)
                read = getattr(np.lib.format, f"read_array_header_{min(version, 2)}_0")
                shape, _, dtype = read(file)
        return len(shape) == 2 and dtype.kind in "biuf"

    def _dense(self, key: str) -> np.ndarray:
        """Return a matrix as floats: float32 if it is float32 or shorter."""
        X = self._array(key, "biuf", (None, None), "rows of numbers")
        is_single = X.dtype.kind == "f" and X.dtype.itemsize < 8
        return X.astype(np.float32 if is_single else np.float64, copy=False)

    def _sparse(self) -> csr_array:
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
        array = self._loaded(key)
        fits = array.ndim == len(shape) and all(
            wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
        )
        if array.dtype.kind not in kinds or not fits:
            raise TableError(
                f"{self.path}: {shown(key)} holds {shown(str(array.dtype))} of the shape "
                f"{array.shape}: save {what}."
            )
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def _loaded(self, key: str) -> np.ndarray:
        with self._opened() as archive, archive.open(f"{key}.npy") as file:
            size = archive.getinfo(f"{key}.npy").file_size
            require_memory(size, f"{self.path}: {shown(key)}", "take fewer rows")
            found: np.ndarray = np.lib.format.read_array(file)
        return found

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with self.readable(), zipfile.ZipFile(self.path) as archive:
            yield archive


class NpyFile(NpzFile):
    """An NPY file of a matrix. Other arrays, such as ids, are files of the same folder.

    "ids" is read from ids.npy or ids.txt, one a line, or for vectors.npy from vectors_ids.npy or
    the like.
    """

    kind = "NPY file of a plain array"
    remedy = "write it again with numpy.save, from numbers or strings"

    def _open(self) -> None:
        folder = sorted(self.path.absolute().parent.iterdir())
        files = [file for file in folder if file.suffix in (".npy", ".txt")]
        own = re.compile(rf"{re.escape(self.path.stem)}[._-]?(.+)")
        self._files = {file.stem: file for file in files}
        self._files |= {m[1]: file for file in files if (m := own.fullmatch(file.stem))}
        self._files["X"] = self.path
        self.names = list(self._files)

    def _loaded(self, key: str) -> np.ndarray:
        file = self._files[key]
        with self.readable():
            if file.suffix == ".txt":
                return np.array(file.read_text("utf-8").splitlines())
            return np.load(file, allow_pickle=False)


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
