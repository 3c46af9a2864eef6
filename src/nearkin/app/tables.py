"""Files to X, y and names: every table of the `nearkin` command comes in here.

What cannot be read with certainty is refused by a `TableError`: one line that names the place and the remedy. What can
go on goes on visibly: every column that was ignored or encoded is named in the notes.
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._labels import is_missing, known_labels
from ..datasets import BUNDLED, load
from ..evaluation import CLASSIFICATION, REGRESSION
from .encoder import ColumnEncoder, learn_encoder
from .npz_file import NpzFile
from .readers import Columns, Names
from .sources import CsvFile, ParquetFile
from .table import (
    Progress,
    Table,
    TableError,
    check_length,
    find_name,
    ignore,
    in_row,
    listed,
    quoted,
    require_names,
    shown,
)

__all__ = ["Table", "TableError", "read_rows", "read_table"]

FORMATS: dict[str, Callable[..., Any]] = {".csv": CsvFile, ".parquet": ParquetFile, ".npz": NpzFile}
STANDARD_INPUT = "-"
MIN_ROWS = 4
NUMBERS = "give --task regression to predict numbers"


def read_table(
    source: str,
    target: str | None = None,
    groups: str | None = None,
    progress: Progress = ignore,
    *,
    task: str = CLASSIFICATION.name,
    unlabelled: str | None = None,
) -> Table:
    """Return the table in a file, or a bundled one, to learn from; refuse what cannot be compared on.

    Parameters
    ----------
    source : str
        Path of a .csv, .parquet or .npz file; "-" for standard input; or, where no such file exists, one of
        `nearkin.datasets.BUNDLED`.
    target : str, optional
        Column of the classes, or numbers. A CSV or Parquet file needs it; in an NPZ it is a key, by default "y";
        bundled sets know theirs.
    groups : str, optional
        Column (CSV, Parquet) or key (NPZ) of the groups.
    progress : callable, optional
        Called as `progress(part that is read, whole)` while a CSV or Parquet file is read.
    task : str, default="classification"
        Whether the target is to hold classes; or "regression" for numbers.
    unlabelled : str, optional
        What the target holds in rows without a label, beside missing values.
    """
    if _is_bundled(source) and (groups or unlabelled or target not in (None, "target") or task == REGRESSION.name):
        options = "--target, --groups, --task and --unlabelled"
        raise TableError(f"{source} is a bundled set with classes of its own: leave {options} out.")
    with _opened(source, progress) as file:
        target = find_name(file.path, file.names, target or file.default_target, "--target")
        groups = find_name(file.path, file.names, groups, "--groups") if groups else None
        if target == groups:
            raise TableError(f"{file.path}: --target and --groups both name {shown(target)}: give two columns.")
        columns = file.read(labels=[target, groups] if groups else [target])
        y = check_target(columns, target, task, unlabelled)
        group = check_groups(columns, groups, y) if groups else None
        encoder, notes, row_names = learn_encoder(columns)
        return Table(encoder.encode(columns), y, group, file.path.stem, notes, target, encoder, row_names, task)


def read_rows(source: str, encoder: ColumnEncoder, progress: Progress = ignore) -> tuple[Any, list[str]]:
    """Return rows for a model, X of shape (n, p), and notes on what was ignored or is unknown to it.

    Parameters
    ----------
    source, progress
        See `read_table`.
    encoder : ColumnEncoder
        Names the columns that are needed; their order in the table does not matter.
    """
    with _opened(source, progress) as file:
        columns = file.read(encoder.columns, as_text=encoder.text.tolist())
        return encoder.encode(columns), encoder.notes(columns)


class BundledSet:
    """A set of `nearkin.datasets`, read like a file."""

    names, default_target = ("target",), "target"

    def __init__(self, name: str) -> None:
        self.path = Path(name)

    def read(self, needed: Names | None = None, labels: Names = (), as_text: Names = ()) -> Columns:
        """Return all columns, `needed` among them."""
        dataset = load(self.path.name)
        names = list(dataset.feature_names)
        require_names(self.path, names, needed or [])
        return Columns(self.path, in_row, names, dataset.X, names, {}, {"target": dataset.y})


@contextmanager
def _opened(source: str, progress: Progress) -> Iterator[Any]:
    """Yield a file of a known format; what goes wrong is reported in one line."""
    place = "standard input" if source == STANDARD_INPUT else source
    try:
        with tempfile.TemporaryDirectory(prefix="nearkin-") as folder:
            path = _saved_input(Path(folder)) if source == STANDARD_INPUT else Path(source)
            try:
                yield BundledSet(source) if _is_bundled(source) else _format(path)(path, progress)
            except TableError as error:
                raise TableError(str(error).replace(str(path), place)) from error
    except MemoryError as error:
        raise TableError(f"{place} does not fit into memory: take fewer rows or columns.") from error
    except OSError as error:
        why = str(error.strerror or error).partition("\n")[0]
        raise TableError(f"{place} cannot be read: {why}.") from error


def _is_bundled(source: str) -> bool:
    return source in BUNDLED and not Path(source).is_file()


def _format(path: Path) -> Callable[..., Any]:
    """Return the reader of a file that exists."""
    known = "a .csv, .parquet or .npz file"
    if path.is_dir():
        raise TableError(f"{path} is a folder: give {known}, or a folder of Parquet files and --dask.")
    if not path.exists():
        raise TableError(f"{path}: no such file; give {known}, or a bundled set: {listed(BUNDLED)}.")
    if path.suffix.lower() not in FORMATS:
        raise TableError(f"{path}: only .csv, .parquet and .npz files are supported: save it as one of them.")
    return FORMATS[path.suffix.lower()]


def _saved_input(folder: Path) -> Path:
    """Return standard input as a file: every format is read from the front more than once."""
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        start = file.read(4)
    return path.rename(path.with_suffix({b"PK\3\4": ".npz", b"PAR1": ".parquet"}.get(start, ".csv")))


def check_target(columns: Columns, target: str, task: str, unlabelled: str | None) -> np.ndarray:
    """Return the target, classes or numbers, None or NaN where a row has none."""
    y = columns.labels[target]
    if unlabelled is not None:
        y = _without_mark(columns.path, target, y, unlabelled)
    rows = np.flatnonzero(~is_missing(y))
    if len(rows) < MIN_ROWS:
        counted = "" if len(rows) == len(y) else f" with a label in {shown(target)}"
        raise TableError(f"{columns.path} has {len(rows)} rows{counted}: too few rows, give at least {MIN_ROWS}.")
    known = known_labels(y, rows)
    if task == REGRESSION.name:
        known = _check_numbers(columns, target, known, rows)
    else:
        known = check_classes(columns.path, target, known)
        _require_two_rows(columns.path, target, known)
    if len(rows) == len(y):
        return known
    gaps = np.full(len(y), np.nan) if task == REGRESSION.name else np.full(len(y), None, dtype=object)
    gaps[rows] = known
    return gaps


def _without_mark(path: Path, target: str, y: np.ndarray, mark: str) -> np.ndarray:
    """Return y as objects, with None where a cell is the mark: the same text, or number."""
    number = float(mark) if _is_number(mark) else None
    marked = np.array([str(value) == mark or value == number for value in y.tolist()])
    if not marked.any():
        raise TableError(f"{path}: {shown(target)} holds no {shown(mark)}: give --unlabelled a value that it holds.")
    y = y.astype(object)
    y[marked] = None
    return y


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except ValueError:
        return False


def _check_numbers(columns: Columns, target: str, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the numbers as float64; refuse what is none, and what no prediction can be held out on."""
    name, values = shown(target), y.tolist()
    if y.dtype.kind not in "iuf":
        first = next((place for place, value in enumerate(values) if not _is_number(value)), 0)
        found = f"{shown(values[first])} {columns.place(int(rows[first]))}"
        raise TableError(f"{columns.path}: {name} holds {found}, which is no number: mend it, or leave --task out.")
    try:
        return REGRESSION.check_target(y)
    except ValueError as error:
        raise TableError(f"{columns.path}: {name} {str(error).removeprefix('y ')}") from error


def check_classes(path: Path, target: str, y: np.ndarray) -> np.ndarray:
    """Return the labels, whole numbers as integers; refuse real numbers, long text, and a single class."""
    if y.dtype.kind in "OU":
        check_length(f"{path}: {shown(target)}", y)
        y = y.astype(str, copy=False)
    if y.dtype.kind == "f":
        if ((y % 1 != 0) | (np.abs(y) >= 2**53)).any():
            raise TableError(
                f"{path}: {shown(target)} holds real numbers, no classes: {NUMBERS}, or cut them into classes."
            )
        y = y.astype(np.int64)
    if (y == y[0]).all():
        raise TableError(f"{path}: {shown(target)} holds one class, {shown(y[0].item())}: give rows of others.")
    return y


def _require_two_rows(path: Path, target: str, y: np.ndarray) -> None:
    classes, sizes = np.unique(y, return_counts=True)
    if sizes.min() == 1:
        found = f"a single row of {shown(target)} has the class {quoted(classes[sizes == 1].tolist(), 5)}"
        raise TableError(f"{path}: {found}: merge it with another class, drop it, or {NUMBERS}.")


def check_groups(columns: Columns, name: str, y: np.ndarray) -> np.ndarray:
    """Return the groups; refuse fewer than three of rows with a label."""
    groups, known = columns.labels[name], ~is_missing(y)
    count = len(np.unique(groups[known]))
    if count < 3:
        counted = "" if known.all() else " of labelled rows"
        raise TableError(f"{columns.path}: {shown(name)} holds {count} groups{counted}: give at least 3.")
    return groups
