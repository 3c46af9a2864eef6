"""Files to X, y and names: every table of the `nearkin` command comes in here.

What cannot be read with certainty is refused by a `TableError`: one line that names the place and the remedy. What can
go on goes on visibly: every column that was ignored or encoded is named in the notes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..datasets import BUNDLED, load
from ..evaluation import CLASSIFICATION, REGRESSION
from .columns import File, Progress, ignore
from .csv_table import CsvFile
from .encoder import ColumnEncoder, learn_encoder, numbers_only
from .npz_table import read_npz, read_npz_rows
from .parquet_table import open_table
from .table import (
    Table,
    TableError,
    check_groups,
    check_target,
    find_name,
    listed,
    note,
    quoted,
    require_names,
    shown,
    without_constants,
)

__all__ = ["Table", "TableError", "read_rows", "read_table"]

FORMATS: dict[str, Callable[[Path, Progress], File]] = {".csv": CsvFile, ".parquet": open_table}
STANDARD_INPUT = "-"


def read_table(
    source: str,
    target: str | None = None,
    groups: str | None = None,
    progress: Progress = ignore,
    *,
    task: str = CLASSIFICATION.name,
    unlabelled: str | None = None,
) -> Table:
    """Return the table in a file, or a bundled one, to learn from.

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

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If there is no such table, or it cannot be compared on.
    """
    if _is_bundled(source):
        return _read_bundled(source, target, groups, task, unlabelled)
    with _file(source) as path:
        if path.suffix.lower() == ".npz":
            return read_npz(path, target or "y", groups, task, unlabelled)
        file = FORMATS[path.suffix.lower()](path, progress)
        return _read_labelled(file, target, groups, task, unlabelled)


def read_rows(source: str, encoder: ColumnEncoder, progress: Progress = ignore) -> tuple[Any, list[str]]:
    """Return rows for a model, and notes on what was ignored or is unknown to it.

    Parameters
    ----------
    source, progress
        As in `read_table`.
    encoder : ColumnEncoder
        Names the columns that are needed; their order in the table does not matter.

    Returns
    -------
    X : ndarray or csr_array of shape (n, p)
    notes : list of str

    Raises
    ------
    TableError
        If there is no such table, or it lacks columns, or they hold what the model cannot take.
    """
    if _is_bundled(source):
        dataset = load(source)
        return _select(source, dataset.X, dataset.feature_names, encoder)
    with _file(source) as path:
        if path.suffix.lower() == ".npz":
            return _select(path, *read_npz_rows(path), encoder)
        file = FORMATS[path.suffix.lower()](path, progress)
        require_names(path, file.names, encoder.columns)
        columns = file.read(encoder.columns, as_text=encoder.text.tolist())
        notes = [*_ignored(file.names, encoder), *encoder.unknown(columns)]
        return encoder.encode(columns), notes


def _is_bundled(source: str) -> bool:
    return source in BUNDLED and not Path(source).is_file()


@contextmanager
def _file(source: str) -> Iterator[Path]:
    """Yield the path of a table that exists and is of a known format; what goes wrong with it is told in one line."""
    place = "standard input" if source == STANDARD_INPUT else source
    try:
        if source == STANDARD_INPUT:
            with tempfile.TemporaryDirectory(prefix="nearkin-") as folder:
                path = _saved_input(Path(folder))
                try:
                    yield path
                except TableError as error:
                    raise TableError(str(error).replace(str(path), place)) from error
        else:
            yield _existing(source)
    except MemoryError as error:
        raise TableError(f"{place} does not fit into memory: take fewer rows or columns.") from error
    except OSError as error:
        reason = str(error.strerror or error).partition("\n")[0]
        raise TableError(f"{place} cannot be read: {reason}.") from error


def _existing(source: str) -> Path:
    path, known = Path(source), "a .csv, .parquet or .npz file"
    if path.is_dir():
        raise TableError(
            f"{source} is a folder: give {known}; compare and transform take a folder of Parquet files with --dask."
        )
    if not path.exists():
        raise TableError(f"{source}: no such file; give {known}, or a bundled set: {listed(BUNDLED)}.")
    if path.suffix.lower() not in (*FORMATS, ".npz"):
        raise TableError(f"{source}: only .csv, .parquet and .npz files are supported: save it as one of them.")
    return path


def _saved_input(folder: Path) -> Path:
    """Return standard input as a file: every format is read from the front more than once."""
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        start = file.read(4)
    return path.rename(path.with_suffix({b"PK\3\4": ".npz", b"PAR1": ".parquet"}.get(start, ".csv")))


def _read_labelled(file: File, target: str | None, groups: str | None, task: str, unlabelled: str | None) -> Table:
    if target is None:
        meant = "numbers" if task == REGRESSION.name else "classes"
        raise TableError(f"{file.path}: say which column holds the {meant} by --target: {quoted(file.names)}.")
    target = find_name(file.path, file.names, target, "--target")
    groups = None if groups is None else find_name(file.path, file.names, groups, "--groups")
    if target == groups:
        raise TableError(f"{file.path}: --target and --groups both name the column {shown(target)}: give two columns.")
    as_they_are = [target] if groups is None else [target, groups]
    columns = file.read(file.names, as_they_are=as_they_are, with_gaps=[target])
    y = check_target(file.path, target, columns.as_they_are[target], task, file.place, unlabelled)
    group = None if groups is None else check_groups(file.path, groups, columns.as_they_are[groups], y)
    encoder, notes, row_names = learn_encoder(columns)
    return Table(encoder.encode(columns), y, group, file.path.stem, notes, target, encoder, row_names, task)


def _read_bundled(name: str, target: str | None, groups: str | None, task: str, unlabelled: str | None) -> Table:
    if unlabelled is not None:
        raise TableError(f"{name} is a bundled set in which all rows have a label: leave --unlabelled out.")
    if target not in (None, "target") or groups is not None:
        raise TableError(
            f"{name} is a bundled set with its own classes and no groups: leave --target and --groups out."
        )
    if task == REGRESSION.name:
        raise TableError(f"{name} is a bundled set of classes: leave --task out, or give a table of your own.")
    dataset = load(name)
    X, names, notes = without_constants(name, dataset.X, dataset.feature_names)
    return Table(X, dataset.y, None, name, notes, "target", numbers_only(names), range(len(X)))


def _select(place: Path | str, X: Any, names: list[str], encoder: ColumnEncoder) -> tuple[Any, list[str]]:
    """Return the columns of X that the model learned from, in its order."""
    require_names(place, names, encoder.columns)
    if len(encoder.text):
        raise TableError(
            f"{place}: the model learned from text in {quoted(encoder.text.tolist(), 5)}: give a CSV or Parquet file."
        )
    position = {name: number for number, name in enumerate(names)}
    order = [position[name] for name in encoder.columns]
    return X if order == list(range(X.shape[1])) else X[:, order], _ignored(names, encoder)


def _ignored(names: list[str], encoder: ColumnEncoder) -> list[str]:
    known = set(encoder.columns)
    return note("ignored, not learned from", [name for name in names if name not in known])
