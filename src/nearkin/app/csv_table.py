"""CSV files: what pandas takes without a word is refused or said."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .columns import CELLS_PER_BLOCK, Columns, File, Gaps, Progress, ignore, kind, values
from .table import TableError, check_names, reason

MIN_ROWS_PER_BLOCK = 256  # each block costs pandas some time for every column


class CsvFile:
    """A CSV file with a header line; see `columns.File`."""

    def __init__(self, path: Path, progress: Progress = ignore) -> None:
        self.path = path
        self._progress = progress
        with self._telling():
            _check_header(path)
            self.names = list(next(self._chunks(nrows=0)))

    def read(
        self,
        names: Sequence[str],
        *,
        as_text: Collection[str] = (),
        as_they_are: Collection[str] = (),
        with_gaps: Collection[str] = (),
    ) -> Columns:
        """Return some columns, read by blocks of rows; see `columns.File`."""
        gaps, rows = Gaps(with_gaps), _GrowingColumns(names, as_they_are)
        for start, frame in self._frames(as_text):
            frame = frame[list(names)]
            gaps.add(frame, start)
            if not gaps.missing.counts:
                rows.append(frame, self._words(frame, as_text))
        gaps.refuse(self.path, self.place)
        if rows.mixed:  # numbers for thousands of rows, and then a word: only the file has the text of the numbers
            as_text = [*as_text, *rows.mixed]
            return self.read(names, as_text=as_text, as_they_are=as_they_are, with_gaps=with_gaps)
        return rows.columns(self)

    def _words(self, frame: Any, as_text: Collection[str]) -> dict[str, np.ndarray]:
        """Return the columns that pandas did not read as numbers, or was not to."""
        return {
            name: values(self.path, frame[name], name in as_text)
            for name, dtype in frame.dtypes.items()
            if dtype.kind not in "biuf" or name in as_text
        }

    def _frames(self, as_text: Collection[str]) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row of each block, and the block as a DataFrame."""
        start, n_rows = 0, max(MIN_ROWS_PER_BLOCK, CELLS_PER_BLOCK // len(self.names))
        with self._telling():
            for frame in self._chunks(chunksize=n_rows, dtype=dict.fromkeys(as_text, str)):
                yield start, frame
                start += len(frame)

    def place(self, row: int) -> str:
        """Return the line that a row (counted from 0) ends on."""
        try:
            number, _ = next(islice(_records(self.path), row + 1, None), (row + 2, []))  # the header is a record, too
        except csv.Error:  # longer fields than the csv module takes
            return f"in row {row} (counted from 0)"
        return f"on line {number}"

    def _chunks(self, **options: Any) -> Any:
        import pandas as pd

        with warnings.catch_warnings():
            # rows longer than the header: pandas would cut them and only warn
            warnings.simplefilter("error", pd.errors.ParserWarning)
            size = self.path.stat().st_size
            with self.path.open("rb") as file:
                read = pd.read_csv(file, encoding="utf-8-sig", index_col=False, low_memory=False, **options)
                for frame in [read] if isinstance(read, pd.DataFrame) else read:
                    self._progress(file.tell(), size)
                    yield frame

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn what pandas and the csv module raise into one line with the remedy."""
        import pandas as pd

        try:
            yield
        except UnicodeDecodeError as error:
            raise TableError(f"{self.path} is not UTF-8 text: save it as CSV in the encoding UTF-8.") from error
        except pd.errors.ParserWarning as error:
            raise TableError(
                f"{self.path}: rows have more fields than the header line: name every column there."
            ) from error
        except (pd.errors.ParserError, csv.Error) as error:
            what = reason(error).removeprefix("Error tokenizing data. C error: ")
            raise TableError(
                f"{self.path}: broken CSV ({what}): mend it, or quote the fields that hold commas."
            ) from error


class _GrowingColumns:
    """Columns that are read by blocks of rows: the matrix of numbers grows where it stands, so it is held once."""

    def __init__(self, names: Sequence[str], as_they_are: Collection[str]) -> None:
        self._as_they_are = list(as_they_are)
        self._kinds: dict[str, set[str]] = {name: set() for name in names}
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in as_they_are}
        self._numbers = np.empty((0, 0))
        self._position: dict[str, int] = {}

    @property
    def mixed(self) -> list[str]:
        """Return the columns that are of different kinds in different blocks."""
        return [name for name, kinds in self._kinds.items() if len(kinds) > 1]

    def append(self, frame: Any, words: dict[str, np.ndarray]) -> None:
        """Take the next rows: a DataFrame, and those of its columns that hold more than numbers."""
        for name, dtype in frame.dtypes.items():
            self._kinds[name].add(kind(words[name].dtype if name in words else dtype))
        start = len(self._numbers)
        if start == 0:
            self._parts |= {name: [] for name, kinds in self._kinds.items() if kinds == {"text"}}
            self._position = {name: j for j, name in enumerate(n for n in frame.columns if n not in self._parts)}
        self._numbers.resize((start + len(frame), len(self._position)), refcheck=False)
        plain = [name for name in self._position if name not in words]
        self._numbers[start:, [self._position[name] for name in plain]] = frame[plain].to_numpy(np.float64)
        for name in self._position.keys() & words.keys():
            if kind(words[name].dtype) == "number":  # else the column is mixed, and will be read again
                self._numbers[start:, self._position[name]] = words[name]
        for name, parts in self._parts.items():
            parts.append(words[name] if name in words else frame[name].to_numpy())

    def columns(self, file: File) -> Columns:
        """Return all rows."""
        if not len(self._numbers):
            raise TableError(f"{file.path} has 0 rows below its header: give rows.")
        text = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        as_they_are = {name: text.pop(name) for name in self._as_they_are}
        return Columns(file, self._numbers, list(self._position), text, as_they_are)


def _check_header(path: Path) -> None:
    """Refuse what pandas takes without a word: several columns of one name, another separator."""
    _, header = next(_records(path), (0, []))
    if not header:
        raise TableError(f"{path} is empty: it needs a header line that names the columns, and rows.")
    check_names(f"{path}: the header line", [name for name in header if name])
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        mark = "semicolons" if ";" in header[0] else "tabs"
        raise TableError(f"{path} seems to be separated by {mark}: save it comma-separated.")


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every record and the line it ends on; blank lines are left out, as pandas does."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        for record in reader:
            if len(record) > 1 or record == [""] or "".join(record).strip():
                yield reader.line_num, record
