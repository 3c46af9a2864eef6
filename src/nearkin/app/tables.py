"""Files as X, y and names: the input of tables to the `nearkin` command.

What cannot be read with certainty raises a `TableError`: one line that names the place and the
remedy. Otherwise, every column that was ignored or encoded is named in the notes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._labels import known_labels
from .._messages import counted, listed, note, quoted, shown
from .._validation import is_missing
from ..comparison import CLASSIFICATION, REGRESSION, Categories, are_left_out, many_categories
from ..datasets import load
from ..tables import (
    DECIMAL_MARKS,
    DIFFERS,
    FEW_CLASSES,
    MARK_NAMES,
    MARKS_OF_MISSING,
    MOST_UNREAD,
    DateColumn,
    RejectColumn,
    Rules,
    TableEncoder,
    Text,
    filled_note,
    merged_labels,
    no_classes,
    target_numbers,
)
from .arrow_file import FeatherFile, JsonFile
from .csv_file import CsvFile, opened_bytes
from .npz_file import NpzFile
from .parquet_file import ParquetFile
from .places import FILES, STANDARD_INPUT, is_bundled, missing_file
from .readers import (
    AS_FOUND,
    BadCells,
    Progress,
    Reader,
    Reading,
    Source,
    TableError,
    check_length,
    find_name,
    ignore,
    one_line,
    require_length,
)
from .suspects import Suspects, find_suspects
from .workbook_file import WorkbookFile

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
FORMATS: dict[str, type[Reader]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", *COMPRESSED), CsvFile),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), WorkbookFile),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), JsonFile),
    **dict.fromkeys((".feather", ".arrow"), FeatherFile),
    ".parquet": ParquetFile,
    ".npz": NpzFile,
}
# How files begin, whatever they are called; most formats of today are ZIP archives.
ZIP = b"PK\3\4"
MARKS: dict[bytes, type[Reader]] = {
    b"PAR1": ParquetFile,
    b"ARROW1": FeatherFile,
    b"FEA1": FeatherFile,
    b"\xd0\xcf\x11\xe0": WorkbookFile,
}
JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*)?\{\s*\"")
# Other formats of tables, and how to convert them.
REMEDIES = {
    ".numbers": "save the sheet as CSV",
    **dict.fromkeys((".tar", ".tgz", ".7z"), "unpack it, and give the file in it"),
    ".orc": "write it as Parquet, e.g. with pandas",
}


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


@contextmanager
def opened(
    source: str, progress: Progress = ignore, reading: Reading = AS_FOUND
) -> Iterator[Reader]:
    """Yield a file of a known format; errors are reported in one line.

    A file that is changed while it is read raises one: its rows would not belong together.
    """
    place = "standard input" if source == STANDARD_INPUT else source
    try:
        with ExitStack() as stack:
            path = Path(source)
            if source == STANDARD_INPUT:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nearkin-"))
                path = _saved_input(Path(folder))
            before = _version(path)
            changed = (
                f"{place} changed while it was read: wait until it is complete, and run the "
                "command again."
            )
            try:
                yield _format(path)(path, progress, reading)
            except TableError as error:
                is_same = _version(path) == before
                text = str(error).replace(str(path), place) if is_same else changed
                raise TableError(text) from error
            if _version(path) != before:
                raise TableError(changed)
    except MemoryError as error:
        raise TableError(
            f"{place} does not fit into memory: take fewer rows or columns."
        ) from error
    except OSError as error:
        why = str(error.strerror or error).partition("\n")[0]
        raise TableError(f"{place} cannot be read: {why}.") from error


def _version(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written or replaced; None for a bundled set."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return None


def _saved_input(folder: Path) -> Path:
    """Return standard input as a file, since every format is read from the start more than once."""
    path = folder / "stdin"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        why = f"it cannot be copied to {folder.parent} ({error.strerror})"
        raise TableError(
            f"standard input: {why}: free some space, or set TMPDIR to another folder."
        ) from error
    return path


def _format(path: Path) -> type[Reader]:
    """Return the reader for an existing file, or for a bundled data set.

    The name of a text table is not trusted: anything may be called .csv or .xls, or nothing.
    """
    if is_bundled(str(path)):
        return BundledSet
    if path.is_dir():
        raise TableError(
            f"{path} is a folder: give {FILES}, or a folder of Parquet files and --dask."
        )
    if missing := missing_file(str(path)):
        raise TableError(missing)
    suffix = path.suffix.lower()
    if suffix in REMEDIES:
        raise TableError(f"{path}: such files are not read: {REMEDIES[suffix]}.")
    named = FORMATS.get(suffix, CsvFile)
    if named not in (CsvFile, WorkbookFile):
        return named
    with path.open("rb") as file:
        start = file.read(6)
    marked = [kind for mark, kind in MARKS.items() if start.startswith(mark)]
    if marked:
        return marked[0]
    if start.startswith(ZIP):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.endswith(".npy") for name in names):
                return NpzFile
            if {"[Content_Types].xml", "mimetype"} & {*names}:
                return WorkbookFile
        return named
    # its reader will report what is damaged
    with suppress(Exception), opened_bytes(path) as (file, _):
        if JSON.match(file.read(100)):
            return JsonFile
    return CsvFile


def table_name(path: Path) -> str:
    """Return the name of a table: that of its file, without suffixes."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSED else path.stem


def reading(options: argparse.Namespace) -> Reading:
    """Return how tables are read according to the options."""
    missing = getattr(options, "missing", None)
    refuse = getattr(options, "refuse_missing", False)
    strict = getattr(options, "strict", True)  # of vectors
    missing = missing and tuple(missing)
    return Reading(options.sep, options.decimal, missing, refuse, strict=strict)


@dataclass(frozen=True)
class Table:
    """Rows, their target, and how they were obtained.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, NaN for missing numbers; float64, or float32 if an NPZ file contains that.
    y : ndarray of shape (n,)
        Classes (strings, integers or booleans); for a regression float64. With unlabelled rows,
        objects with None in their place; for a regression NaN.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    group_name : str
        Name of their column, or "".
    name : str
        Name of the table.
    notes : list of str
        What was ignored or encoded, then which columns are suspicious, then which look like groups.
    target : str
        Name of the column of y.
    encoder : TableEncoder
        Encodes rows of other tables with these columns like X.
    row_names : sequence of n names
        Text that differs in every row, if a column has it; else the row numbers.
    task : str
        "classification" or "regression".
    suspects : Suspects
        The columns that are suspicious, and those that look like groups.
    row_numbers : ndarray of shape (n,) or None
        Row numbers in the file (the first is 0), if empty rows were left out.
    categories : Categories or None
        The columns of many categories, for references.
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
    categories: Categories | None = None

    @property
    def labelled(self) -> np.ndarray:
        """Return the indices of the labelled rows."""
        return np.flatnonzero(~is_missing(self.y))

    def in_file(self, rows: np.ndarray) -> np.ndarray:
        """Return the row numbers of some rows in their file."""
        return rows if self.row_numbers is None else self.row_numbers[rows]

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the columns of X, such as "width" or "colour=red"."""
        return self.encoder.get_feature_names_out().tolist()

    @property
    def labels(self) -> np.ndarray:
        """Return the labels of the labelled rows, in a plain type."""
        return known_labels(self.y, self.labelled)


def read_table(
    source: str,
    target: str | None = None,
    groups: str | None = None,
    progress: Progress = ignore,
    *,
    task: str = CLASSIFICATION.name,
    unlabelled: str | None = None,
    reading: Reading = AS_FOUND,
    classes_only: bool = False,
) -> Table:
    """Return the table in a file, or a bundled one, to learn from.

    Tables that are unsuitable for a comparison raise an error.

    Parameters
    ----------
    source : str
        Path of a file; "-" for standard input; or, if no such file exists,
        one of `nearkin.datasets.BUNDLED`.
    target : str, optional
        Column of the classes or numbers. Required for CSV and Parquet files. In an NPZ file it is a
        key, by default "y"; bundled data sets have a default.
    groups : str, optional
        Column (CSV, Parquet) or key (NPZ) of the groups.
    progress : callable, optional
        Called as `progress(part that is read, whole)` while a CSV or Parquet file is read.
    task : str, default="classification"
        "classification" if the target contains classes, "regression" for numbers.
    unlabelled : str, optional
        The value of the target in unlabelled rows, besides missing values.
    reading : Reading, optional
        How the file is read, where this is not detected.
    classes_only : bool, default=False
        Whether the command, like `check`, has no regression; a class may then have a single row.
    """
    if is_bundled(source) and (
        groups or unlabelled or target not in (None, "target") or task == REGRESSION.name
    ):
        options = "--target, --groups, --task and --unlabelled"
        raise TableError(f"{source} is a bundled set with classes of its own: leave {options} out.")
    # empty rows have neither a label nor features
    with opened(source, progress, replace(reading, drop_empty_rows=True)) as file:
        target = find_name(file.path, file.names, target or file.default_target, "--target")
        groups = find_name(file.path, file.names, groups, "--groups") if groups else None
        if target == groups:
            raise TableError(
                f"{file.path}: --target and --groups both name {shown(target)}: give two columns."
            )
        columns = file.read(labels=[target, groups] if groups else [target])
        y, remarks = read_target(
            file, columns.labels[target], target, task, unlabelled, classes_only
        )
        notes, group = [*columns.notes, *remarks], None
        if groups:
            group, remarks = _merged(file, columns.labels[groups], groups, "group")
            bad = BadCells(True)
            bad.add([groups], np.where(is_missing(group), np.nan, 0)[:, None])
            bad.refuse(file.path, file.place)
            notes += remarks
        with one_line(file.path):
            encoder = TableEncoder(
                "keep",
                missing_values=file.reading.missing,
                decimal=file.decimal,
                strict=file.reading.strict,
            ).fit(columns)
        hints = groups is None and isinstance(file, Source)  # groups are no column in NPZ files
        suspects = find_suspects(encoder, columns, y, task, hints)
        row_names: Any = range(len(y)) if file.row_numbers is None else file.row_numbers.tolist()
        differing = [name for name, why in encoder.dropped_.items() if why == DIFFERS]
        differing += [
            column.name
            for column in encoder.columns_
            if column.kind == "text" and len(columns.text[column.name].values) == len(y)
        ]
        if differing:
            text = columns.text[differing[0]]
            row_names = np.array(text.values, dtype=object)[text.codes]
        categories = many_categories(encoder, columns)
        X, *_ = encoder.encode(columns)  # what it found is among its remarks
        kept = "filled by the median (kept by NCA tables)"
        gaps = filled_note(X, encoder.get_feature_names_out(), kept)
        notes += [*encoder.remarks_, *gaps, *suspects.notes(target, task)]
        return Table(
            X=X,
            y=y,
            categories=categories,
            groups=group,
            group_name=groups or "",
            name=table_name(file.path),
            notes=notes,
            target=target,
            task=task,
            encoder=encoder,
            suspects=suspects,
            row_names=row_names,
            row_numbers=file.row_numbers,
        )


# Rows for a model that was learned from another table


def read_rows(
    source: str,
    encoder: TableEncoder,
    progress: Progress = ignore,
    reading: Reading = AS_FOUND,
    name: str | None = None,
    group: str = "",
    gaps: str = "filled by the median",
    effects: Any = None,
) -> tuple[Any, list[str], dict[str, Any]]:
    """Return rows for a model, X of shape (n, p), notes, and the cells of some columns by name.

    Notes are about what was ignored or is unknown to the model.

    Parameters
    ----------
    source, progress, reading
        See `read_table`.
    encoder : TableEncoder
        Defines the columns that are needed, in any order.
    name, group : str
        The columns whose cells are returned: identifiers, as the file has them, and `group`, if it
        exists.
    gaps : str
        What is done with missing cells.
    effects : ndarray, optional
        How much each column matters, see `TableEncoder.encode`.
    """
    as_learned = replace(reading, missing=encoder.missing_values, usual_decimal=encoder.decimal)
    with opened(source, progress, as_learned) as file:
        kinds = {column.name: column.kind for column in encoder.columns_}
        require_length(file.path, file.names, given_names(encoder))
        ids = None if name is None else find_name(file.path, file.names, name, "--id")
        names = [group] if group in file.names else []
        apart = [column for column in names if column not in kinds]
        # categories are text even if all of them are numbers
        text = [column.name for column in encoder.columns_ if not column.ordered]
        numbers = [name for name, kind in kinds.items() if kind == "number"]
        needed = list[str]()  # an NPZ file has its names in an array
        if isinstance(file, Source):  # of which some may be lacking, but not all
            needed = [name for name in kinds if name in file.names] or list(kinds)
        read = partial(file.read, [*needed, *apart], apart, [*text, *apart], numbers, ids)
        columns = read()
        if isinstance(file, CsvFile) and not reading.decimal and encoder.misses_mark_of(columns):
            # "13.255" beside "1,5" is no 13.255, unless "2.5" is there, too
            file.decimal = DECIMAL_MARKS[file.decimal]
            if not encoder.misses_mark_of(again := read()):
                columns = again
                marks = MARK_NAMES[file.decimal]
                columns.notes.insert(0, f"read with decimal {marks} (--decimal chooses another)")
        if not isinstance(file, Source):
            require_length(file.path, columns.names, given_names(encoder), is_array=True)
        labels = columns.labels
        if apart != names:  # a feature is read twice
            labels = file.read(names, names, names).labels
        strict = reading.strict or encoder.strict
        with one_line(file.path):
            X, faults, unknown = encoder.encode(columns, effects, strict=strict)
        notes = faults + unknown + filled_note(X, encoder.get_feature_names_out(), gaps)
        used = {*kinds, *names, ids}
        ignored = [name for name in columns.names if name not in used]
        if name is not None:
            labels |= {name: columns.ids}
        return X, [*columns.notes, *note("ignored, not learned from", ignored), *notes], labels


def given_names(encoder: TableEncoder) -> list[str]:
    """Return the columns that an encoder was fitted to, including those it left out."""
    return getattr(encoder, "feature_names_in_", np.array([], dtype=object)).tolist()


def number_encoder(names: list[str]) -> TableEncoder:
    """Return an encoder of numeric columns, which it leaves unchanged."""
    state = {
        "parameters": {"missing": "keep"},
        "n_features": len(names),
        "names": names,
        "numbers": names,
    }
    return TableEncoder.from_dict(state | {"columns": [], "indicated": [], "medians": []})


# The columns of labels and groups, checked and converted to a plain type

MIN_ROWS = 4
NUMBERS = "give --task regression to predict numbers"
DAYS_COUNTED = ", or numbers, such as days, and --task regression"


def read_target(
    file: Reader,
    y: np.ndarray,
    target: str,
    task: str,
    unlabelled: str | None,
    classes_only: bool = False,
) -> tuple[np.ndarray, list[str]]:
    """Return the target, classes or numbers with None or NaN for unlabelled rows, and remarks."""
    if unlabelled is not None:
        y, marked = _blanked(y, [unlabelled])
        # among numbers, a mark may already be missing
        if not marked and unlabelled.strip().lower() not in MARKS_OF_MISSING:
            raise TableError(
                f"{file.path}: {shown(target)} holds no {shown(unlabelled)}: give --unlabelled a "
                "value that it holds."
            )
    y, remarks = _merged(file, y, target, "class")
    rows = np.flatnonzero(~is_missing(y))
    if len(rows) < MIN_ROWS:
        with_label = "" if len(rows) == len(y) else f" with a label in {shown(target)}"
        raise TableError(
            f"{file.path} has {counted(len(rows), 'row')}{with_label}: too few rows, give at least "
            f"{MIN_ROWS}."
        )
    known = known_labels(y, rows)
    if task == REGRESSION.name:
        numbers = np.full(len(y), np.nan)
        numbers[rows], remarks = _as_numbers(file, known, target, rows)
        return numbers, remarks
    known, more = _as_classes(file, known, target, classes_only)
    remarks = [*remarks, *more]
    if len(rows) == len(y):
        return known, remarks
    y = np.full(len(y), None)
    y[rows] = known
    return y, remarks


def _blanked(y: np.ndarray, marks: Sequence[str]) -> tuple[np.ndarray, bool]:
    """Return y as objects with None for some marks, and whether there are any.

    A mark may be text or a number.
    """
    cells = pd.Series(y.tolist(), dtype=object)
    numbers = pd.to_numeric(pd.Series(marks), errors="coerce").dropna()
    missing = cells.astype(str).str.strip().isin([mark.strip() for mark in marks])
    missing |= pd.to_numeric(cells, errors="coerce").isin(numbers)
    return cells.mask(missing, None).to_numpy(), bool(missing.any())


def _merged(file: Reader, y: np.ndarray, name: str, what: str) -> tuple[np.ndarray, list[str]]:
    """Return labels with merged spellings, and a remark on what was merged."""
    if file.reading.missing:
        y, _ = _blanked(y, file.reading.missing)
    if y.dtype.kind not in "OU":
        return y, []
    counts = Counter(y.tolist())
    check_length(f"{file.path}: {shown(name)}", map(str, counts))
    y, several = merged_labels(y)
    same = []
    for spellings in several.values():
        *others, usual = sorted(spellings, key=counts.__getitem__)
        n_rows = counted(sum(map(counts.__getitem__, others)), "row")
        same.append(f"{' and '.join(map(shown, [*others, usual]))} are one {what} ({n_rows})")
    cases = defaultdict[str, list[str]](list)
    for label in sorted(map(str, {*y.tolist()} - {None})):
        cases[label.casefold()].append(label)
    differ = [" and ".join(map(shown, labels)) for labels in cases.values() if len(labels) > 1]
    if differ:
        differ = [
            f"{listed(sorted(differ), 3)} differ only in case: spell them alike if they mean the "
            "same"
        ]
    return y, [*note(name, same), *note(name, differ)]


def _as_numbers(
    file: Reader, y: np.ndarray, target: str, rows: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the target of some rows as float64.

    Text such as "12.3%", "€12.30", "1,234.5" and "72.1 kg" is read as numbers. A few cells of other
    text are missing (see `target_numbers`); more raise an error, and so do targets that cannot be
    evaluated on held-out rows.
    """
    remarks = list[str]()
    if y.dtype.kind not in "iuf":
        rules = Rules(file.reading.missing, decimal=file.decimal)
        try:
            most_unread = 0.0 if file.reading.strict else MOST_UNREAD
            y, remarks = target_numbers(target, y, rules, most_unread)
        except RejectColumn as error:
            texts = y.astype(str).tolist()
            _refuse_dates(file, target, texts, DAYS_COUNTED)
            odd = {*error.args} or {*map(str.strip, texts)}
            row = next(row for row, text in enumerate(texts) if text.strip() in odd)
            cell = f"{shown(y.tolist()[row])} {file.place(int(rows[row]))}"
            raise TableError(
                f"{file.path}: {shown(target)} holds {cell}, which is not a number: correct it, or "
                "leave --task out."
            ) from None
    try:
        y = REGRESSION.check_target(y)
    except ValueError as error:
        why = str(error).removeprefix("y ")
        raise TableError(f"{file.path}: {shown(target)} {why}") from error
    return y, remarks


def _refuse_dates(file: Reader, target: str, texts: list[str], or_else: str) -> None:
    with suppress(RejectColumn):
        DateColumn.learn(target, Text(texts, np.arange(len(texts))), Rules(strict=True))
        raise TableError(
            f"{file.path}: {shown(target)} holds dates ({shown(texts[0])}): give classes, such as "
            f"the month{or_else}."
        )


def _numbers_in(file: Reader, classes: np.ndarray) -> np.ndarray | None:
    """Return classes as numbers, NaN for a few that are none; None if they are words."""
    if classes.dtype.kind in "iu":
        return classes.astype(float)
    with suppress(RejectColumn):
        return target_numbers("", classes, Rules(decimal=file.decimal))[0]
    return None


def _as_classes(
    file: Reader, y: np.ndarray, target: str, classes_only: bool
) -> tuple[np.ndarray, list[str]]:
    """Return the classes, and a remark if they may be quantities; raise an error for dates.

    So do too many classes of a single row, or with `classes_only` numbers that are not classes.
    """
    if classes_only and (why := no_classes(y)):
        _refuse_dates(file, target, y.astype(str).tolist(), "")
        raise TableError(f"{file.path}: {shown(target)} {why}")
    y = check_classes(file.path, target, y, "" if classes_only else f"{NUMBERS}, or ")
    classes, sizes = np.unique(y, return_counts=True)
    numbers = _numbers_in(file, y) if len(classes) > FEW_CLASSES else None
    remarks = list[str]()
    if numbers is not None:
        if (numbers % 1 > 0).any():
            odd = y[np.argmax(numbers % 1 > 0)].item()
            raise TableError(
                f"{file.path}: {shown(target)} holds real numbers, such as {shown(odd)}, not "
                f"classes: {'' if classes_only else f'{NUMBERS}, or '}cut them into classes."
            )
        remarks.append(
            f"{target}: {len(classes):,} different numbers, taken as classes (if they are "
            f"quantities, {NUMBERS})"
        )
    if classes.dtype.kind == "U":
        _refuse_dates(file, target, classes.tolist(), "" if classes_only else DAYS_COUNTED)
    alone = classes[sizes == 1].tolist()
    if alone and not (classes_only or (are_left_out(sizes) and not file.reading.strict)):
        found, it = f"{shown(target)} has a single row of the class", "it"
        if len(alone) > 1:
            found, it = f"{shown(target)} has single rows of the classes", "them"
        raise TableError(
            f"{file.path}: {found} {quoted(alone, 5)}: merge {it} with others, drop {it}, give "
            f"values that mean no label to --missing, or {NUMBERS}."
        )
    return y, remarks


def check_classes(
    path: Path, target: str, y: np.ndarray, remedy: str = f"{NUMBERS}, or "
) -> np.ndarray:
    """Return the labels, with whole numbers as integers.

    Real numbers, long text, and a single class raise an error.
    """
    column = f"{path}: {shown(target)}"
    if y.dtype.kind in "OU":
        check_length(column, y)
        y = y.astype(str, copy=False)
    if y.dtype.kind == "f":
        if ((y != np.rint(y)) | (np.abs(y) >= 2**53)).any():
            raise TableError(
                f"{column} holds real numbers, not classes: {remedy}cut them into classes."
            )
        y = y.astype(np.int64)
    if (y == y[0]).all():
        raise TableError(f"{column} holds one class, {shown(y[0].item())}: give rows of others.")
    return y
