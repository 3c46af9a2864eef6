"""A file of any known format, or standard input, and the reader for it."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path

from ..endings import TableError
from ..places import COMPRESSED, FILES, STANDARD_INPUT, is_bundled, missing_file
from .readers import AS_FOUND, Progress, Reader, Reading, ignore

# The readers by the endings of files, as module and class: only the one that is needed is loaded.
CSV, WORKBOOK = "csv_file.CsvFile", "workbook_file.WorkbookFile"
JSON, FEATHER = "json_file.JsonFile", "parquet_file.FeatherFile"
PARQUET = "parquet_file.ParquetFile"
NPZ, NPY = "npz_file.NpzFile", "npz_file.NpyFile"
FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", *COMPRESSED), CSV),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), WORKBOOK),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), JSON),
    **dict.fromkeys((".feather", ".arrow"), FEATHER),
    ".parquet": PARQUET,
    ".npz": NPZ,
    ".npy": NPY,
}
# How files begin, whatever they are called; most formats of today are ZIP archives.
ZIP = b"PK\3\4"
MARKS = {
    b"PAR1": PARQUET,
    b"ARROW1": FEATHER,
    b"FEA1": FEATHER,
    b"\xd0\xcf\x11\xe0": WORKBOOK,
    b"\x93NUMPY": NPY,
}
JSON_TEXT = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*)?\{\s*\"")
# Other formats of tables, and how to convert them.
REMEDIES = {
    ".numbers": "save the sheet as CSV",
    **dict.fromkeys((".tar", ".tgz", ".7z"), "unpack it, and give the file in it"),
    ".orc": "write it as Parquet, e.g. with pandas",
}


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
                yield reader_of(path)(path, progress, reading)
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


def reader_of(path: Path) -> type[Reader]:
    """Return the reader for an existing file, or for a bundled data set."""
    if is_bundled(str(path)):
        found = "npz_file.BundledSet"
    elif path.is_dir():
        raise TableError(
            f"{path} is a folder: give {FILES}, or a folder of Parquet files and --dask."
        )
    elif missing := missing_file(str(path)):
        raise TableError(missing)
    elif (suffix := path.suffix.lower()) in REMEDIES:
        raise TableError(f"{path}: such files are not read: {REMEDIES[suffix]}.")
    else:
        found = FORMATS.get(suffix, CSV)
        if found in (CSV, WORKBOOK):  # names that files of other formats have, too
            found = _by_contents(path, found)
    module, _, name = found.partition(".")
    kind: type[Reader] = getattr(import_module(f".{module}", __package__), name)
    return kind


def _by_contents(path: Path, named: str) -> str:
    """Return the reader for a file that may be something else than its name says."""
    with path.open("rb") as file:
        start = file.read(6)
    marked = [kind for mark, kind in MARKS.items() if start.startswith(mark)]
    if marked:
        return marked[0]
    if start.startswith(ZIP):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.endswith(".npy") for name in names):
                return NPZ
            if {"[Content_Types].xml", "mimetype"} & {*names}:
                return WORKBOOK
        return named
    from .csv_file import opened_bytes

    # its reader will report what is damaged
    with suppress(Exception), opened_bytes(path) as (file, _):
        if JSON_TEXT.match(file.read(100)):
            return JSON
    return CSV


def reading(options: argparse.Namespace) -> Reading:
    """Return how tables are read according to the options."""
    missing = getattr(options, "missing", None)
    refuse = getattr(options, "refuse_missing", False)
    strict = getattr(options, "strict", True)  # of vectors
    missing = missing and tuple(missing)
    return Reading(options.sep, options.decimal, missing, refuse, strict=strict)
