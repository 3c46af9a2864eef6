"""The checks that all tables share, and the error with which one is refused."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .._messages import MAX_NAME, shortened
from .._messages import counted as counted
from .._messages import in_row as in_row
from .._messages import listed as listed
from .._messages import note as note
from .._messages import quoted as quoted
from .._messages import shown as shown

MAX_TEXT = 500
LIST_CELL = re.compile(r"(.*)\[\d+\]")  # how a number of a column of lists is called
MISSING = "missing values (empty fields, NA, None and the like)"

# Called with the part that is done, and the whole.
Progress = Callable[[int, int], None]


def ignore(done: int, total: int) -> None:
    """Show no progress."""


class TableError(Exception):
    """A table that cannot be used; the text is one line that names the place and the remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.splitlines()))  # a file may have any name


class BadCells:
    """Infinite cells, and where they are refused missing ones, counted by column while a table is read."""

    def __init__(self, missing: bool, infinite: str = "infinite values") -> None:
        self.found: dict[str, tuple[int, Counter[str]]] = {}  # the first row, and how many cells of which column
        self.kinds = {infinite: np.isinf} | ({MISSING: np.isnan} if missing else {})

    def add(self, names: Iterable[str], cells: np.ndarray, start: int = 0) -> bool:
        """Count bad cells of some rows, the first of which has the number `start`; return whether any were found."""
        for what, find in self.kinds.items():
            bad = find(cells)
            if bad.any():
                first = start + int(bad.any(axis=1).argmax())
                earlier, counts = self.found.get(what, (first, Counter[str]()))
                self.found[what] = (min(first, earlier), counts)
                counts.update(
                    {name: count for name, count in zip(names, bad.sum(axis=0).tolist(), strict=True) if count}
                )
        return bool(self.found)

    def refuse(self, path: Path, place: Callable[[int], str]) -> None:
        """Raise a TableError that names the columns, their counts and the place of the first bad cell, if there are."""
        for what, (first, counts) in sorted(self.found.items(), reverse=True):
            columns = listed([f"{shown(name)} ({count})" for name, count in counts.items()], 5)
            raise TableError(f"{path}: {what} in {columns}, first {place(first)}: fill them or drop these rows first.")


@contextmanager
def readable(path: Path, kind: str, remedy: str) -> Iterator[None]:
    """Turn what a library raises on a damaged or forged file, errors of a dozen types, into one line."""
    try:
        yield
    except Exception as error:
        # what the operating system refuses has a number
        if isinstance(error, TableError | MemoryError) or getattr(error, "errno", None):
            raise
        raise TableError(f"{path} is no readable {kind} ({reason(error)}): {remedy}.") from error


# Names of columns


def find_name(path: Path, names: Sequence[str], given: str | None, option: str) -> str:
    """Return the name that was meant; spaces around it do not matter. The numbers of vectors are not offered."""
    offered = [name for name in names if not LIST_CELL.fullmatch(name)] or names
    if given is None:
        raise TableError(f"{path}: say which column holds the classes or numbers by {option}: {quoted(offered)}.")
    meant = [name for name in names if name == given] or [name for name in names if name.strip() == given.strip()]
    if meant:
        return meant[0]
    close = _similar(given, offered)
    hint = f" (did you mean {shown(close[0])}?)" if close else ""
    raise TableError(f"{path} has no {shown(given)}{hint}: give {option} one of {quoted(offered)}.")


def require_names(path: Path | str, names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise a TableError that names the columns a model needs and the table lacks."""
    present, known = set(names), set(needed)
    missing = [name for name in needed if name not in present]
    if missing:
        close = _similar(missing[0], [name for name in names if name not in known])
        hint = f" ({shown(missing[0])} may be {shown(close[0])} here)" if close else ""
        raise TableError(f"{path} lacks {quoted(missing, 5)}{hint}, which the model learned from: add or rename them.")


def _similar(name: str, names: Sequence[str]) -> list[str]:
    """Return a similar name, if there is one; among short ones, the first and the last, for the search is slow."""
    short = [other for other in names if len(other) <= MAX_NAME]
    return difflib.get_close_matches(name, short if len(short) <= 1000 else short[:500] + short[-500:], n=1)


def check_names(place: Path | str, names: Sequence[str]) -> None:
    """Refuse names that do not tell columns apart, or are none."""
    check_distinct(place, names)
    damaged = [name for name in names if "\0" in name]
    if damaged:
        raise TableError(f"{place} has NUL characters in {quoted(damaged, 2)}: is it UTF-16? Save it again.")
    check_length(str(place), names)


def check_distinct(place: Path | str, names: Iterable[str]) -> None:
    """Refuse names that do not tell columns apart."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise TableError(f"{place} has {quoted(repeated)} more than once: give every column a name of its own.")


def check_length(place: str, texts: Iterable[str]) -> None:
    """Refuse texts so long that they are no names: in an array of strings the longest sets the memory of all."""
    longest = max(map(len, texts), default=0)
    if longest > MAX_TEXT:
        raise TableError(f"{place} holds text of {longest} characters: shorten it to {MAX_TEXT}, or drop the column.")


# Words of messages


def missing_note(met: Counter[str]) -> list[str]:
    """Return a remark on the cells that counted as missing, by what they held; none without any."""
    most = sorted(met.items(), key=lambda item: (-item[1], item[0]))
    return note("missing", [f"{mark} ({counted(count, 'cell')})" for mark, count in most if count])


def reason(error: Exception) -> str:
    """Return what a library says, short enough for a message."""
    return shortened(" ".join(str(error).split()), 2 * MAX_NAME)
