"""Files that the command writes: completely or not at all, and refused before the work where they cannot be written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .refusals import TableError

STANDARD_OUTPUT = "-"
TABLE_SUFFIXES = (".csv", ".parquet", ".npz")


def check_writable(path: str | Path, suffixes: Sequence[str], option: str) -> Path:
    """Return the path, or refuse a place that cannot be written to, before any work is done."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise TableError(f"{path}: let its name end in {' or '.join(suffixes)} ({option}).")
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file with {option}.")
    with _refused(f"{path}: no file can be written there", f"choose another place with {option}"):
        part = _part(path)
        part.touch()
        part.unlink()
    return path


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path` to write into; it takes its place when everything is written.

    It is removed when the writing fails, and kept when everything is written but the place was taken meanwhile.
    """
    if path.exists():
        raise TableError(f"{path} exists: name a new folder with -o.")
    part = _part(path)
    if part.exists():
        raise TableError(f"{part} exists: another command is writing there, or one was killed; then remove it.")
    with _refused(f"{path}: no folder can be made there", "choose another place with -o"):
        part.mkdir()
    try:
        yield part
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    with _refused(f"{path}: what was written cannot be moved there", f"it is complete in {part}, rename it"):
        part.rename(path)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it takes its place when everything is written."""
    part = _part(path)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


@contextmanager
def _refused(what: str, remedy: str) -> Iterator[None]:
    """Say in one line what the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{what} ({error.strerror}): {remedy}.") from error


def write_columns(columns: dict[str, Any], target: Path | None) -> None:
    """Write arrays of n values as columns, by the suffix of the file; as CSV to standard output without one."""
    if target is None:
        pd.DataFrame(columns, copy=False).to_csv(sys.stdout, index=False)
        return
    with atomic_write(target) as part:
        if target.suffix.lower() == ".npz":
            with part.open("wb") as file:  # by its name, savez would add a suffix
                np.savez(file, **columns)
        else:
            table = pd.DataFrame(columns, copy=False)
            write = table.to_csv if target.suffix.lower() == ".csv" else table.to_parquet
            write(part, index=False)
