"""Vectors in files, with the labels, names and groups of their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from ..._labels import encode_partial_labels
from ..._messages import counted, listed, note, quoted, shown
from ..._validation import is_missing
from ...vectors import model_parts
from ..endings import TableError
from ..files.formats import opened
from ..files.list_cells import NUMBER, is_vector
from ..files.readers import (
    ARRAY_CELL,
    LIST_CELL,
    Progress,
    Reader,
    Reading,
    Source,
    find_name,
    ignore,
)
from ..folders.parquet_folder import INDICES, features_of, open_folder, values_of
from ..places import table_name

SAMPLE = 50_000  # rows of a folder to learn from
WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)(\.0*)?")  # numbers as text, but not codes such as 007


@dataclass(frozen=True)
class VectorTable:
    """Vectors, one per row.

    Attributes
    ----------
    X : float32 array of shape (n, p)
    columns : list of str
        Names of the p numbers, such as "embedding[0]".
    name : str
        Of the file.
    notes : list of str
        Remarks, such as which columns were ignored.
    labels, groups : array of shape (n,) or None
    ids : ChunkedArray of n identifiers, as the file has them, or None
    """

    X: np.ndarray
    columns: list[str]
    name: str
    notes: list[str]
    labels: np.ndarray | None = None
    ids: Any = None
    groups: np.ndarray | None = None

    @property
    def column(self) -> str:
        """Return the name of the column of lists, or "" if every number has its own column."""
        match = LIST_CELL.fullmatch(self.columns[0])
        return match[1] if match else ""

    @property
    def row_names(self) -> list[str]:
        """Return the names of the rows: by the column --id, or their numbers."""
        return same_names(range(len(self.X)) if self.ids is None else self.ids.to_pylist())[0]

    def named(self, names: list[str] | None, where: str) -> VectorTable:
        """Return these vectors with row names from a file, if --id does not name any."""
        if names is None or self.ids is not None:
            return self
        if len(names) != len(self.X):
            raise TableError(
                f"{where} names {len(names)} rows, but {self.name} has {len(self.X)}: give vectors "
                "in the order of these names, or name the column of their names with --id."
            )
        return replace(self, ids=pa.chunked_array([names], pa.large_string()))

    def directed(self) -> tuple[VectorTable, np.ndarray]:
        """Return the table without rows of zeros, which have no direction, and the rows it keeps.

        A note says how many are left out. Rows keep their names.
        """
        rows = np.flatnonzero(self.X.any(axis=1))
        if not len(rows):
            raise TableError(f"{self.name} holds only rows of zeros: give vectors.")
        n_zeros = len(self.X) - len(rows)
        if not n_zeros:
            return self, rows
        kept = replace(
            self,
            X=self.X[rows],
            notes=[*self.notes, f"{counted(n_zeros, 'row')} of zeros left out: no direction"],
            labels=None if self.labels is None else self.labels[rows],
            ids=pa.chunked_array([rows]) if self.ids is None else self.ids.take(rows),
            groups=None if self.groups is None else self.groups[rows],
        )
        return kept, rows

    def require_names(self, column: str, path: str) -> None:
        """Raise an error if a row has no name."""
        if self.ids is not None and self.ids.null_count:
            row = self.ids.to_pylist().index(None)
            raise TableError(
                f"{path}: the column {column} has an empty cell (row {row}, the first is 0): fill "
                "it, or drop the row."
            )

    def rows_of(self, values: np.ndarray, where: str) -> np.ndarray:
        """Return the rows that values refer to, by the column --id or by number from 0.

        A name that the column does not contain is row -1; a number must be that of a row.
        """
        if self.ids is None:
            try:
                rows = np.asarray(values, dtype=np.float64)  # also from text
            except (ValueError, TypeError):
                rows = np.array([-1.0])
            if (rows != np.floor(rows)).any() or rows.min() < 0 or rows.max() >= len(self.X):
                raise TableError(
                    f"{where} must hold row numbers, 0 to {len(self.X) - 1}: give them, or name "
                    "the column of row names with --id."
                )
            return rows.astype(np.int64)
        names, wanted = same_names(self.ids.to_pylist(), values.tolist())
        known = {name: row for row, name in enumerate(names)}
        if len(known) < len(self.ids):
            raise TableError(
                f"{self.name}: the column --id names {len(self.ids) - len(known)} rows like "
                "others: give each row its own name."
            )
        return np.array([known.get(name, -1) for name in wanted])


def same_names(*columns: Iterable[Any]) -> list[list[str]]:
    """Return identifiers as text that is the same for equal values: 7, 7.0 and Decimal("7.00").

    So is text, if all of it is whole numbers: a column with a gap is often written with 7.0 for 7.
    """

    def name(cell: Any) -> str:
        is_whole = (isinstance(cell, float) and cell.is_integer()) or (
            isinstance(cell, Decimal) and cell == cell.to_integral_value()
        )
        return str(int(cell)) if is_whole else str(cell).strip()

    names = [list(map(name, column)) for column in columns]
    if all(WHOLE.fullmatch(text) for text in chain(*names)):
        names = [[text.partition(".")[0] for text in column] for column in names]
    return names


def read_vectors(
    source: str,
    *,
    label: str | None = None,
    ids: str | None = None,
    groups: str | None = None,
    vectors: str | None = None,
    columns: Sequence[str] | None = None,
    beside: str | None = None,
    progress: Progress = ignore,
    reading: Reading | None = None,
) -> VectorTable:
    """Return the vectors in a file.

    Parameters
    ----------
    source : str
        Path of a file of a known format, or "-" for standard input.
    label, ids, groups : str, optional
        Columns of labels, of names, and of groups of rows to keep together.
    vectors : str, optional
        The column of lists that contains the vectors, if there are several; by default all other
        numbers form a vector.
    columns : sequence of str, optional
        The numbers that a given adapter needs. If it needs lists, and they are called differently
        here, those of the same length are taken.
    beside : str, optional
        Another file whose rows are also named by the column of `ids`.
    progress : callable, optional
        Called as `progress(part that is read, whole)`.
    reading : Reading, optional
        How the file is read, where this is not detected.
    """
    named = tuple(name for name in (label, ids, groups, vectors) if name)
    reading = replace(reading or Reading(), vectors=vectors or "", named=named, is_row=_is_row)
    with opened(source, progress, reading) as file:
        options = {"--label": label, "--groups": groups}
        apart = {
            option: find_name(file.path, file.names, name, option)
            for option, name in options.items()
            if name
        }
        if ids:
            ids = _id_column(file, ids, beside)
        needed = None
        if not isinstance(file, Source):
            vectors = None  # its reader has found them
        elif columns is not None or any(_vectors(file.names)):
            taken, remarks = _taken(source, file.names, vectors, columns)
            needed = list(dict.fromkeys([*taken, *apart.values()]))
        found = file.read(needed, list(apart.values()), ids=ids)
        if issparse(found.numbers):
            raise TableError(f"{source} holds a sparse matrix: give dense vectors.")
        if needed is None:
            taken, remarks = _taken(source, found.number_names, vectors, columns)
        text = [name for name in taken if name not in found.positions]
        if text:
            raise TableError(f"{source} holds text in {quoted(text, 3)}: give vectors of numbers.")
        X = found.numbers
        if taken != found.number_names:
            X = X[:, [found.positions[name] for name in taken]]
        X, bad = _without_gaps(file, X.astype(np.float32, copy=False), taken)
        every = file.names if isinstance(file, Source) else found.number_names
        used = {*taken, *apart.values(), ids}
        ignored = [name for name in every if name not in used]
        numbers = [name for name in ignored if name.startswith(INDICES)]
        ignored = [_column(name) for name in ignored if name not in numbers]
        cells = {option: found.labels[name] for option, name in apart.items()}
        return VectorTable(
            X=X,
            columns=taken,
            name=table_name(file.path),
            notes=[
                *found.notes,
                *bad,
                *remarks,
                *_of_two_models(file, X, cells.get("--label")),
                *note("ignored, unnamed row numbers", numbers),
                *note("ignored, not part of a vector", list(dict.fromkeys(ignored))),
            ],
            labels=cells.get("--label"),
            ids=found.ids,
            groups=cells.get("--groups"),
        )


def _of_two_models(file: Reader, X: np.ndarray, labels: np.ndarray | None) -> list[str]:
    """Return a remark if vectors seem to be of two models, and labels do not tell these apart."""
    found = model_parts(X)
    if found is None:
        return []
    rows, is_other = found
    if labels is not None:
        known = ~is_missing(labels[rows])
        some, others = (set(labels[rows[part & known]]) for part in (is_other, ~is_other))
        if some and others and not some & others:
            return []
    return [
        f"two models in {table_name(file.path)}? Of {len(rows):,} rows looked at, "
        f"{is_other.sum():,}, the first {file.place(int(rows[is_other][0]))}, have hardly any "
        "neighbour among the others, and their cosines with these are those of unrelated "
        "directions: embed all rows by the same model (if they were, these are two unrelated "
        "topics)"
    ]


def _is_row(fields: list[str]) -> bool:
    """Return whether the first line of a table is one of its rows: it holds a vector, or numbers.

    Whole numbers that count the columns, as pandas writes them, are a header.
    """
    if any(map(is_vector, fields)):
        return True
    numbers = [field for field in fields if re.fullmatch(NUMBER, field.strip().replace(",", "."))]
    counts = [list(map(str, range(start, len(fields) + start))) for start in (0, 1)]
    return len(numbers) == len(fields) > 1 and fields not in counts


def _without_gaps(file: Reader, X: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return vectors of which those that lack a number are zero, and a remark on them.

    Raise an error if these are more than half.
    """
    rows = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if not len(rows):
        return X, []
    n, size, where = len(rows), len(names), f"the first {file.place(int(rows[0]))}"
    gap = _column(names[int(np.isfinite(X[rows[0]]).argmin())])
    if 2 * n > len(X):
        raise TableError(
            f"{file.path}: {n:,} of {len(X):,} rows have no vector of {size:,} numbers in "
            f"{shown(gap)}, {where}: write every vector in full, as a list of numbers."
        )
    X[rows] = 0
    what = f"{counted(n, 'row')} without a vector of {size:,} numbers, {where}"
    return X, note("counted as rows of zeros", [what])


def is_judgement(queries: VectorTable, documents: VectorTable, fields: list[str]) -> bool:
    """Return whether the first line of a table of judgements is one: it names rows of vectors.

    0, 1, ... may also be a header, as pandas writes it.
    """
    if len(fields) < 2 or fields == list(map(str, range(len(fields)))):
        return False
    with suppress(TableError):
        sides = zip((queries, documents), fields, strict=False)
        return all(table.rows_of(np.array([name]), "")[0] >= 0 for table, name in sides)
    return False


def _column(name: str) -> str:
    """Return the name of the column that a number belongs to."""
    match = LIST_CELL.fullmatch(name)
    return match[1] if match else name


def _id_column(file: Reader, given: str, beside: str | None) -> str:
    """Return the column of names, which a single option gives for both of two files."""
    try:
        return find_name(file.path, file.names, given, "--id")
    except TableError as error:
        if beside is None:
            raise
        raise TableError(
            f"{error} It also names the rows of {beside}: if the files call it differently, "
            "rename it in one."
        ) from None


def _vectors(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of lists, or else an array without names as "", with their numbers."""
    found: dict[str, list[str]] = {}
    for name in names:
        if match := LIST_CELL.fullmatch(name):
            found.setdefault(match[1], []).append(name)
    array = [name for name in names if ARRAY_CELL.fullmatch(name)]
    return found or ({"": array} if array else {})


def _taken(
    source: str, names: Sequence[str], given: str | None, needed: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the columns of numbers that form the vector, and remarks on them.

    `needed` are those that an adapter was learned from.
    """
    vectors, of_adapter = _vectors(names), _vectors(needed or [])
    if given is not None and not any(vectors):
        raise TableError(f"{source} has no column of lists: leave --vectors out.")
    if given is not None:
        given = find_name(Path(source), list(vectors), given, "--vectors")
        vectors = {given: vectors[given]}
    if needed is not None and not (of_adapter and vectors):
        lacking = [name for name in needed if name not in names]
        if lacking:
            raise TableError(
                f"{source} lacks {quoted(lacking, 3)}, which the adapter needs: give these vectors."
            )
        return list(needed), []
    remarks = list[str]()
    if needed is not None:
        own, size = next(iter(of_adapter)), len(needed)
        fitting = {name: found for name, found in vectors.items() if len(found) == size}
        if not fitting:
            length = len(vectors.get(own) or next(iter(vectors.values())))
            raise TableError(
                f"{source} has vectors of {length:,} dimensions, but {size:,} are needed: does it "
                "come from another model?"
            )
        vectors = {own: fitting[own]} if own in fitting else fitting
        if own not in vectors:
            others = [f"{shown(name)}, not {shown(own)}" for name in vectors if name and own]
            remarks = note("taken as vectors, by their length", others)
    if len(vectors) > 1:
        raise TableError(
            f"{source} has several columns of vectors, {listed(list(vectors), 5)}: name one with "
            "--vectors."
        )
    plain = [name for name in names if not name.startswith(INDICES)]
    found = next(iter(vectors.values())) if any(vectors) else plain
    if len(found) < 2:
        raise TableError(
            f"{source} holds no vectors: give a column of lists, or columns of numbers. See the "
            'guide "Embeddings" under "From columns of text".'
        )
    return list(needed) if needed and {*needed} == {*found} else found, remarks


def read_folder(path: str, label: str, vectors: str | None, seed: int) -> VectorTable:
    """Return labelled vectors of a folder of Parquet files, a sample if there are many rows."""
    folder = open_folder(Path(path))
    target = find_name(folder.path, folder.names, label, "--label")
    names = [name for name in folder.names if name not in (target, *folder.text)]
    names, _ = _taken(path, names, vectors)
    n = folder.n_rows
    rows = np.sort(np.random.default_rng(seed).choice(n, min(n, SAMPLE), replace=False))
    X, labels = [], []
    for block in folder.cut(2**16):
        inside = np.intersect1d(rows - block.start, np.arange(len(block)))
        X.append(features_of(block, names)[inside])
        labels.append(values_of(block, target)[inside])
    drawn = note("a sample was drawn", [f"{len(rows):,} of {n:,} rows"] * (len(rows) < n))
    return VectorTable(
        X=np.concatenate(X),
        columns=names,
        name=folder.name,
        notes=drawn,
        labels=np.concatenate(labels),
    )


def read_codes(labels: np.ndarray, source: str, option: str) -> np.ndarray:
    """Return class codes 0, 1, ..., -1 for none; raise an error if too few are known."""
    try:
        codes = encode_partial_labels(labels)[1]
    except ValueError as error:
        raise TableError(
            f"{source}: {option} holds no labels ({error}): name a column of classes."
        ) from error
    sizes = np.bincount(codes[codes >= 0])
    if len(sizes) < 2 or (sizes > 1).sum() < 2:
        held = f"{len(sizes)} classes, {int((sizes > 1).sum())} of them with two rows"
        raise TableError(
            f"{source}: {option} holds {held}: at least two classes need two rows each."
        )
    return codes


def sampled(codes: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Return some rows, by whole classes if a sample of rows would leave only few of each."""
    rng = np.random.default_rng(seed)
    if codes.max() < n_rows / 10:
        return np.sort(rng.choice(len(codes), n_rows, replace=False))
    order = rng.permutation(codes.max() + 1)
    held = np.cumsum(np.bincount(codes[codes >= 0])[order])
    return np.flatnonzero(np.isin(codes, order[: max(2, int(np.searchsorted(held, n_rows)))]))
