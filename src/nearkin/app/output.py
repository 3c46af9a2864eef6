"""Output files, written completely or not at all; checked for writability before the work."""

from __future__ import annotations

import argparse
import errno
import glob
import logging
import os
import re
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet, types

from .._messages import quoted
from . import console
from .endings import UNWRITTEN, TableError, fail, printable
from .places import STANDARD_INPUT, is_bundled, table_name

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
STANDARD_OUTPUT = "-"
TABLE_SUFFIXES = (".csv", ".parquet", ".npz")
# suffixes of the names of further outputs
SUFFIXES = {
    "picture": [".png"],
    "report": [".html", ".htm"],
    "json": [".json"],
    "save": [".safetensors"],
}
ROWS_PER_GROUP = 2**16  # of a Parquet file
DIGITS = 6  # of a rounded float
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # starts of cells that a spreadsheet may evaluate
# arguments that name inputs and outputs
READ = ("table", "index", "model", "adapter", "pairs", "queries", "relevance", "old", "new")
WRITTEN = {
    "output": "-o",
    "picture": "--picture",
    "report": "--report",
    "json": "--json",
    "save": "--save",
}

OVERWRITTEN = "is read, and would be overwritten"

DRAFT = re.compile(r"\.(\d{1,9})\.\d+\.part")  # what follows the name in that of a draft
ABANDONED = 600  # seconds since a draft was last written
BLOCK = 4096  # bytes that must fit

MISSING_GLYPH = r"Glyph (\d+)"  # how Matplotlib's warning begins

# matplotlib warns about a home directory that is not writable
logging.getLogger("matplotlib").setLevel(logging.ERROR)


def refuse_overwriting(options: argparse.Namespace) -> None:
    """Raise an error for writing to an input, or twice to the same file, before any work is done.

    A file is recognized whatever path or link leads to it.
    """
    taken: dict[Any, tuple[str, str]] = {}  # the name of a file, and its use
    for attribute in READ:
        named: Any = getattr(options, attribute, None)
        for given in named if isinstance(named, list) else [named]:
            if given == STANDARD_INPUT and _is_file(0):
                taken[_identity(0)] = "the file of standard input", OVERWRITTEN
            elif given not in (None, STANDARD_INPUT) and not is_bundled(given):
                for path in (Path(given), *Path(given).glob("*.parquet")):
                    taken[_identity(path)] = str(path), OVERWRITTEN
    outputs: list[tuple[Any, str]] = [(1, "")] * _is_file(1)
    for attribute, option in WRITTEN.items():
        given = getattr(options, attribute, None)
        if given is None and attribute == "picture" and attribute in options:
            given = default_picture(options)
        if given not in (None, STANDARD_OUTPUT):
            outputs.append((Path(given), option))
    for place, option in outputs:
        called, identity = str(place) if option else "standard output", _identity(place)
        if identity in taken:
            name, use = taken[identity]
            same = "" if name == called else f" is {name}, which"
            elsewhere = "choose another place" + f" with {option}" * bool(option)
            raise TableError(f"{called}{same} {use}: {elsewhere}.")
        taken[identity] = called, f"is written by {option or 'the command'}, too"


def default_picture(options: argparse.Namespace) -> Path:
    """Return the default path of the picture of `compare` and `inspect`."""
    if options.command == "inspect":
        return Path(f"{Path(options.model).stem}-features.png")
    if options.table == STANDARD_INPUT:
        return Path("stdin-nearkin.png")
    path = Path(options.table)
    is_folder = path.is_dir() and not is_bundled(options.table)
    return Path(f"{path.resolve().name if is_folder else table_name(path)}-nearkin.png")


def _identity(path: Any) -> Any:
    """Return an identifier that is the same for all names of a file.

    It is the inode of an existing file, else the path without links. Standard streams have numbers
    instead of paths.
    """
    with suppress(OSError, ValueError):
        status = os.stat(path)
        return status.st_dev, status.st_ino
    return os.path.realpath(path)


def _is_file(stream: int) -> bool:
    """Return whether a standard stream, given by its number, is a file."""
    with suppress(OSError):
        return stat.S_ISREG(os.fstat(stream).st_mode)
    return False


def check_writable(path: str | Path, suffixes: Sequence[str], option: str) -> Path:
    """Return the path; raise an error before any work is done if it is not writable."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise TableError(f"{path}: the name must end in {' or '.join(suffixes)} ({option}).")
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file with {option}.")
    if path.exists() and not path.is_file():  # a device, which would be replaced
        raise TableError(f"{path} is no ordinary file: name another one with {option}.")
    with _refused(f"{path}: no file can be written there", f"choose another place with {option}"):
        target = Path(os.path.realpath(path))
        _remove_abandoned(target)
        _require_space(_new_draft(target))
    return path


def picture_output(options: argparse.Namespace, outputs: Outputs) -> Path | None:
    """Return the path of the picture of `compare` or `inspect`.

    If the default path is not writable, there is no picture, and a note says so.
    """
    if options.picture:
        return check_writable(options.picture, SUFFIXES["picture"], "--picture")
    try:
        return check_writable(default_picture(options), SUFFIXES["picture"], "--picture")
    except TableError as error:
        outputs.note(f"No picture: {error}")
        return None


def check_outputs(options: argparse.Namespace) -> None:
    """Raise an error before any work is done if additional outputs are not writable."""
    for name, suffixes in SUFFIXES.items():
        if place := getattr(options, name, None):
            check_writable(place, suffixes, f"--{name}")


def table_output(options: argparse.Namespace) -> tuple[Path | None, str]:
    """Return the output path of a table (None for standard output) and its suffix."""
    if options.output == STANDARD_OUTPUT:
        return None, ".csv"
    path = check_writable(options.output, TABLE_SUFFIXES, "-o")
    return path, path.suffix.lower()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder next to `path`, which is renamed to it when everything is written.

    It is removed if writing fails. It is kept if everything is written but `path` now exists.
    """
    path = Path(os.path.realpath(path))
    if path.exists():
        raise TableError(f"{path} exists: name a new folder with -o.")
    part = path.with_name(f"{path.name}.part")
    if part.exists():
        raise TableError(
            f"{part} exists: another command is writing there, or one was killed: if so, remove it."
        )
    why = f"{path}: no folder can be made there", "choose another place with -o"
    with _refused(*why):
        part.mkdir()
    try:
        with _refused(*why):
            _require_space(part / "draft")
        yield part
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    with _refused(
        f"{path}: the output cannot be moved there", f"it is complete in {part}: rename that"
    ):
        part.rename(path)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path next to `path`, which is renamed to it when everything is written.

    A file that exists keeps its permissions, and a link its target, which is written.
    """
    path = Path(os.path.realpath(path))
    part = _new_draft(path)
    try:
        yield part
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        with suppress(OSError):  # the folder may no longer be writable
            part.unlink(missing_ok=True)


class Outputs:
    """What a command prints and writes besides its result: notes, unless quiet, and files.

    If a file cannot be written, the others still are.

    Attributes
    ----------
    quiet, stderr : bool
        Whether notes are suppressed; whether they go to standard error, if standard output is for
        the result.
    code : int
        The exit code.
    """

    def __init__(self, *, quiet: bool, stderr: bool = True) -> None:
        self.quiet, self.stderr, self.code = quiet, stderr, 0

    def note(self, *lines: str) -> None:
        """Print notes."""
        for line in () if self.quiet else lines:
            console.say(line, stderr=self.stderr)

    def write(
        self,
        path: str | Path,
        option: str,
        write: Callable[[Path], list[str] | None],
        done: str,
    ) -> None:
        """Write a file and report it with the remarks of `write`, or why it cannot be written."""
        try:
            with atomic_write(Path(path)) as part:
                remarks = write(part)
            self.note(done, *remarks or ())
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
            remedy = "free some space, or choose" if error.errno in FULL else "choose"
            self.code = fail(
                f"{path} could not be written ({why}): {remedy} another place with {option}.",
                UNWRITTEN,
            )


def _new_draft(path: Path) -> Path:
    """Create an empty file for the draft of another one, which no other command writes.

    If the other one exists, nobody else may read the draft.
    """
    mode = 0o600 if path.exists() else 0o666
    for number in count():
        draft = path.with_name(f"{path.name}.{os.getpid()}.{number}.part")
        with suppress(FileExistsError):
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            break
    return draft


def _remove_abandoned(path: Path) -> None:
    """Remove drafts of a file that were left by commands that were killed.

    A recent one may belong to another machine.
    """
    for draft in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        process = DRAFT.fullmatch(draft.name[len(path.name) :])
        with suppress(OSError):
            is_old = time.time() - draft.stat().st_mtime > ABANDONED
            if process and is_old and not _is_running(int(process[1])):
                draft.unlink()


def _is_running(process: int) -> bool:
    if os.name != "posix":  # where signal 0 is none
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


def _require_space(draft: Path) -> None:
    """Raise an error if nothing can be written to a draft, such as on a full disk; remove it."""
    try:
        draft.write_bytes(bytes(BLOCK))
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _refused(what: str, remedy: str) -> Iterator[None]:
    """Report errors of the operating system in one line."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{what} ({error.strerror}): {remedy}.") from error


def print_columns(columns: dict[str, Any]) -> None:
    """Write arrays of n values as columns of a CSV table to standard output, in UTF-8.

    A terminal only gets printable text.
    """
    stdout: Any = sys.stdout
    stdout.reconfigure(encoding="utf-8")
    table = pd.DataFrame(columns, copy=False)
    if stdout.isatty():
        stdout.write(printable(table.to_csv(index=False)))
    else:
        table.to_csv(stdout, index=False)


def write_columns(columns: dict[str, Any], suffix: str, path: Path) -> None:
    """Write arrays of n values as the columns of a table in the format of a suffix."""
    if suffix == ".npz":
        arrays: dict[str, Any] = {name: _as_array(cells) for name, cells in columns.items()}
        for name, cells in arrays.items():
            if cells.dtype == object:  # an NPZ file cannot hold these without pickling
                arrays[name] = np.array(["" if cell is None else str(cell) for cell in cells])
        with path.open("wb") as file:  # given a name, savez would add a suffix
            np.savez(file, **arrays)
    elif suffix == ".csv":
        pd.DataFrame(columns, copy=False).to_csv(path, index=False)
    else:  # pandas cannot read fixed-size lists that it has written
        parquet.write_table(pa.table(columns), path, row_group_size=ROWS_PER_GROUP)


def _as_array(cells: Any) -> np.ndarray:
    """Return cells as an array: identifiers as objects, unless they are numbers without gaps."""
    if isinstance(cells, pa.ChunkedArray):
        is_number = types.is_integer(cells.type) or types.is_floating(cells.type)
        if cells.null_count or not is_number:
            return np.array(cells.to_pylist(), dtype=object)
    return np.asarray(cells)


def write_result(
    options: argparse.Namespace,
    outputs: Outputs,
    output: Path | None,
    suffix: str,
    columns: dict[str, Any],
    done: str,
) -> None:
    """Write columns to a file or to standard output; in CSV, only `transform` keeps all digits."""
    if suffix == ".csv":
        rounded = options.command != "transform"
        columns = for_csv(columns, rounded=rounded, escape=options.escape_formulas)
    if output is None:
        print_columns(columns)
    else:
        outputs.write(output, "-o", partial(write_columns, columns, suffix), f"{done}: {output}")


def draw_displays(title: str, displays: Sequence[Any], path: Path) -> list[str]:
    """Draw Displays of `nearkin.plotting` side by side into a PNG file.

    Letters that the font lacks, such as Chinese ones, are drawn in other installed fonts. Return a
    remark on those that no font has.
    """
    missing = _draw(title, displays, path, [])
    if missing:
        missing = _draw(title, displays, path, _fonts_with(missing))
    letters = quoted(sorted(missing), 3)
    return [f"no installed font has {letters}: drawn as squares"] if missing else []


def _draw(title: str, displays: Sequence[Any], path: Path, fonts: list[str]) -> set[str]:
    """Draw with some more fonts; return the letters that were missing, as Matplotlib warns."""
    from matplotlib import rc_context, rcParams
    from matplotlib.figure import Figure

    from ..plotting import ColumnsDisplay

    wide = isinstance(displays[0], ColumnsDisplay)
    size = (12, 6) if wide else (4 + 5 * len(displays), 6)
    with (
        rc_context({"font.family": [*rcParams["font.family"], *fonts]}),
        warnings.catch_warnings(record=True) as found,
    ):
        warnings.filterwarnings("always", MISSING_GLYPH)
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(f"nearkin {printable(title)}", parse_math=False)
        axes = figure.subplots(1, len(displays), squeeze=False)[0]
        for display, ax in zip(displays, axes, strict=True):
            display.plot(ax=ax)
        figure.savefig(path, dpi=110, format="png")
    numbers = [re.match(MISSING_GLYPH, str(warning.message)) for warning in found]
    return {chr(int(number[1])) for number in numbers if number}


def _fonts_with(letters: set[str]) -> list[str]:
    """Return installed fonts that together have as many of the letters as possible."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    fonts, left = list[str](), {*map(ord, letters)}
    for font in fontManager.ttflist:
        if not left or font.name.startswith("Last Resort"):  # which draws squares
            continue
        with suppress(OSError, RuntimeError):  # a removed file, or one of bitmaps
            file = FT2Font(font.fname)
            file.set_size(12, 72)
            if has := left & file.get_charmap().keys():
                fonts.append(font.name)
                left -= has
    return fonts


def beside(name: str, cells: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """Return a given column followed by others; it is renamed if one of them has its name."""
    return {f"{name} (given)" if name in columns else name: cells} | columns


def with_empty_rows(columns: dict[str, Any], empty: np.ndarray) -> dict[str, Any]:
    """Return columns for all rows: missing in the empty rows, given in the others."""
    rows = np.flatnonzero(~empty)
    series = {
        name: pd.Series(cells, rows, "Int64" if cells.dtype.kind == "i" else None)
        for name, cells in columns.items()
    }
    table = pd.DataFrame(series).reindex(np.arange(len(empty)))
    return {name: table[name] for name in columns}


def for_csv(columns: dict[str, Any], *, rounded: bool, escape: bool) -> dict[str, Any]:
    """Return columns for CSV, with floats `rounded`; with `escape` no text is a formula."""

    def escaped(text: Any) -> Any:
        return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) else text

    found: dict[str, Any] = {}
    for name, cells in columns.items():
        if isinstance(cells, pa.ChunkedArray):  # identifiers keep all digits
            cells = np.array(cells.to_pylist(), dtype=object)
        elif rounded and cells.dtype.kind == "f":
            cells = significant(cells)
        if escape and cells.dtype.kind in "OU":
            cells = np.array([escaped(cell) for cell in cells.tolist()], dtype=object)
        found[escaped(name) if escape else name] = cells
    return found


def significant(numbers: np.ndarray) -> np.ndarray:
    """Return numbers rounded to `DIGITS` digits, or to integers from 10^DIGITS on."""
    numbers = numbers.astype(np.float64)
    with np.errstate(all="ignore"):
        unit = 10.0 ** np.maximum(DIGITS - 1 - np.floor(np.log10(np.abs(numbers))), 0)
        rounded = np.round(numbers * unit) / unit
    # 0, and numbers beyond the powers of ten, stay unchanged
    return np.where(np.isfinite(rounded), rounded, numbers)
