"""Files to X, y and names: every table of the `nearkin` command comes in here.

What cannot be read with certainty is refused by a `TableError`: one line that names the place and the remedy. What can
go on goes on visibly: every column that was ignored or encoded is named in the notes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._labels import is_missing
from ..datasets import load
from ..evaluation import CLASSIFICATION, REGRESSION
from ..preprocessing import TableEncoder
from .csv_file import CsvFile
from .encoder import encode, learn_encoder, needed_columns, text_columns
from .npz_file import NpzFile
from .parquet_file import ParquetFile
from .places import FILES, STANDARD_INPUT, is_bundled, missing_file
from .readers import Columns, Names, Reading, Source
from .refusals import Progress, TableError, find_name, ignore, in_row, note, require_names, shown
from .suspects import Suspects, find_suspects
from .target import read_groups, read_target

FORMATS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".gz"), CsvFile),
    ".parquet": ParquetFile,
    ".npz": NpzFile,
}
# What else tables are kept in, and what makes one of them that is read.
REMEDIES = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"), "save the sheet as CSV"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "write it as CSV, e.g. by pandas.read_json(...).to_csv(...)"),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z"), "unpack it, and give the file in it"),
    **dict.fromkeys((".bz2", ".xz", ".zst"), "unpack it, e.g. by bzcat, xzcat or zstdcat, and give - for its output"),
    **dict.fromkeys((".feather", ".arrow", ".orc"), "write it as Parquet, e.g. by pandas"),
}


@dataclass(frozen=True)
class Table:
    """Rows, their target, and what was done to get them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, NaN where a number is missing; float64, or float32 where an NPZ file holds that.
    y : ndarray of shape (n,)
        Classes (strings, integers or booleans), each at least twice; for a regression float64. Where rows have no
        label, objects with None in its place; for a regression NaN.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    group_name : str
        Name of their column; "" without any.
    name : str
        Name of the table.
    notes : list of str
        What was ignored or encoded, then which columns are suspicious, then which look like groups.
    target : str
        Name of the column of y.
    encoder : TableEncoder
        Makes rows like those of X of another table with these columns.
    row_names : sequence of n names
        Text that differs in every row, where a column has it; else the numbers of the rows.
    task : str
        "classification" or "regression".
    suspects : Suspects
        The columns that were left out, those that are suspicious, and those that look like groups.
    row_numbers : ndarray of shape (n,) or None
        Of the rows in their file (the first is 0), where empty rows among them were left out.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    name: str
    notes: list[str]
    target: str
    encoder: TableEncoder
    row_names: Sequence[Any]
    task: str = CLASSIFICATION.name
    suspects: Suspects = field(default_factory=Suspects)
    row_numbers: np.ndarray | None = None
    group_name: str = ""

    @property
    def labelled(self) -> np.ndarray:
        """Return the numbers of the rows that have a label."""
        return np.flatnonzero(~is_missing(self.y))

    def in_file(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers that some rows have in their file."""
        return rows if self.row_numbers is None else self.row_numbers[rows]

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the columns of X, such as "width" or "colour=red"."""
        return self.encoder.get_feature_names_out().tolist()

    @property
    def labels(self) -> np.ndarray:
        """Return the labels of these rows, in a plain type."""
        rows = self.labelled
        return self.y if len(rows) == len(self.y) else np.array(self.y[rows].tolist())


def read_table(
    source: str,
    target: str | None = None,
    groups: str | None = None,
    progress: Progress = ignore,
    *,
    task: str = CLASSIFICATION.name,
    unlabelled: str | None = None,
    reading: Reading | None = None,
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
    reading : Reading, optional
        How the file is read, where this is not found in it.
    """
    if is_bundled(source) and (groups or unlabelled or target not in (None, "target") or task == REGRESSION.name):
        options = "--target, --groups, --task and --unlabelled"
        raise TableError(f"{source} is a bundled set with classes of its own: leave {options} out.")
    reading = replace(reading or Reading(), drop_empty_rows=True)  # they have no label, and no column to learn from
    with opened(source, progress, reading) as file:
        target = find_name(file.path, file.names, target or file.default_target, "--target")
        groups = find_name(file.path, file.names, groups, "--groups") if groups else None
        if target == groups:
            raise TableError(f"{file.path}: --target and --groups both name {shown(target)}: give two columns.")
        columns = file.read(labels=[target, groups] if groups else [target])
        y, remarks = read_target(columns, target, task, unlabelled, file.reading)
        group, more = read_groups(columns, groups, file.reading) if groups else (None, [])
        encoder, cells, names = learn_encoder(columns, file.reading)
        hints = groups is None and isinstance(file, Source)  # in an NPZ file groups are no column
        suspects = find_suspects(encoder, cells, y, task, hints)
        X, gaps = encode(encoder, columns, "filled by the median (kept by NCA tables)")
        found = [*encoder.remarks_, *gaps, *suspects.notes(target, task)]
        notes = [*columns.notes, *remarks, *more, *found]
        if names is None:
            names = range(cells.n_rows) if columns.row_numbers is None else columns.row_numbers.tolist()
        return Table(
            X,
            y,
            group,
            table_name(file.path),
            notes,
            target,
            encoder,
            names,
            task,
            suspects,
            columns.row_numbers,
            groups or "",
        )


def read_rows(
    source: str, encoder: TableEncoder, progress: Progress = ignore, reading: Reading | None = None
) -> tuple[Any, list[str]]:
    """Return rows for a model, X of shape (n, p), and notes on what was ignored or is unknown to it.

    Parameters
    ----------
    source, progress, reading
        See `read_table`.
    encoder : TableEncoder
        Names the columns that are needed; their order in the table does not matter.
    """
    X, notes, _ = read_labelled_rows(source, encoder, progress, reading)
    return X, notes


def read_labelled_rows(
    source: str,
    encoder: TableEncoder,
    progress: Progress = ignore,
    reading: Reading | None = None,
    name: str | None = None,
    group: str = "",
    gaps: str = "filled by the median",
) -> tuple[Any, list[str], dict[str, np.ndarray]]:
    """Return what `read_rows` does, and the cells of the column `name`, and of `group` if it is there, as they are.

    `gaps` says what is done with missing cells.
    """
    known = replace(reading or Reading(), missing=encoder.missing_values, usual_decimal=encoder.decimal)
    with opened(source, progress, known) as file:
        needed, numbers = (
            needed_columns(encoder),
            [column.name for column in encoder.columns_ if column.kind == "number"],
        )
        names = [] if name is None else [find_name(file.path, file.names, name, "--id")]
        names += [group] if group in file.names and group not in names else []
        apart = [column for column in names if column not in needed]
        columns = file.read([*needed, *apart], apart, [*text_columns(encoder), *apart], numbers)
        found = columns if apart == names else file.read(names, names, names)  # a feature is read twice
        X, notes = encode(encoder, columns, gaps)
        ignored = note(
            "ignored, not learned from", [name for name in columns.all_names if name not in {*needed, *names}]
        )
        return X, [*columns.notes, *ignored, *notes], found.labels if found else {}


def reading(options: argparse.Namespace) -> Reading:
    """Return how the options say that tables are read."""
    missing = getattr(options, "missing", None)
    refuse = getattr(options, "refuse_missing", False)
    return Reading(options.sep, options.decimal, missing and tuple(missing), refuse)


class BundledSet:
    """A set of `nearkin.datasets`, read like a file."""

    names, default_target = ("target",), "target"

    def __init__(self, name: str) -> None:
        self.path, self.reading = Path(name), Reading()

    def read(
        self, needed: Names | None = None, labels: Names = (), as_text: Names = (), as_numbers: Names = ()
    ) -> Columns:
        """Return all columns, `needed` among them."""
        dataset = load(self.path.name)
        names = list(dataset.feature_names)
        require_names(self.path, names, [name for name in needed or [] if name not in labels])
        return Columns(self.path, in_row, names, dataset.X, names, {}, {"target": dataset.y})


@contextmanager
def opened(source: str, progress: Progress, reading: Reading | None) -> Iterator[Any]:
    """Yield a file of a known format; what goes wrong is reported in one line."""
    place = "standard input" if source == STANDARD_INPUT else source
    try:
        with tempfile.TemporaryDirectory(prefix="nearkin-") as folder:
            path = _saved_input(Path(folder)) if source == STANDARD_INPUT else Path(source)
            try:
                yield BundledSet(source) if is_bundled(source) else _format(path)(path, progress, reading or Reading())
            except TableError as error:
                raise TableError(str(error).replace(str(path), place)) from error
    except MemoryError as error:
        raise TableError(f"{place} does not fit into memory: take fewer rows or columns.") from error
    except OSError as error:
        why = str(error.strerror or error).partition("\n")[0]
        raise TableError(f"{place} cannot be read: {why}.") from error


def _format(path: Path) -> Callable[..., Any]:
    """Return the reader of a file that exists."""
    suffix = path.suffix.lower()
    if path.is_dir():
        raise TableError(f"{path} is a folder: give {FILES}, or a folder of Parquet files and --dask.")
    if missing := missing_file(str(path)):
        raise TableError(missing)
    if suffix not in FORMATS:
        remedy = REMEDIES.get(suffix, "save it as one of them")
        raise TableError(f"{path}: only text tables (.csv, .tsv, .txt), .parquet and .npz files are read: {remedy}.")
    return FORMATS[suffix]


def table_name(path: Path) -> str:
    """Return the name of a table: that of its file, without the suffixes."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def _saved_input(folder: Path) -> Path:
    """Return standard input as a file: every format is read from the front more than once."""
    path = folder / "stdin"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        why = f"it cannot be copied to {folder.parent} ({error.strerror})"
        raise TableError(f"standard input: {why}: free some space, or name another folder by TMPDIR.") from error
    with path.open("rb") as file:
        start = file.read(4)
    return path.rename(path.with_suffix({b"PK\3\4": ".npz", b"PAR1": ".parquet"}.get(start, ".csv")))
