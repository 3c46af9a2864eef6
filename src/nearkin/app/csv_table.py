"""CSV files: what pandas takes without a word is refused or said."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from .columns import CELLS_PER_BLOCK
from .table import TableError, quoted


class CsvFile:
    """A CSV file with a header line; see `columns.File`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._telling():
            _check_header(path)
            self.names = list(next(self._chunks(nrows=0)))

    def frames(self, as_text: Collection[str] = ()) -> Iterator[Any]:
        """Yield all rows as DataFrames, always cut at the same rows; columns named in `as_text` hold strings."""
        rows = max(1, CELLS_PER_BLOCK // len(self.names))
        with self._telling():
            yield from self._chunks(chunksize=rows, dtype=dict.fromkeys(as_text, str))

    def place(self, row: int) -> str:
        """Return the line that a row (counted from 0) ends on."""
        number, _ = next(islice(_records(self.path), row + 1, None), (row + 2, []))  # the header is a record, too
        return f"on line {number}"

    def _chunks(self, **options: Any) -> Any:
        import pandas as pd

        with warnings.catch_warnings():
            # rows longer than the header: pandas would cut them and only warn
            warnings.simplefilter("error", pd.errors.ParserWarning)
            read = pd.read_csv(self.path, encoding="utf-8-sig", index_col=False, low_memory=False, **options)
            yield from [read] if isinstance(read, pd.DataFrame) else read

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
            reason = " ".join(str(error).removeprefix("Error tokenizing data. C error: ").split())
            raise TableError(
                f"{self.path}: broken CSV ({reason}): mend it, or quote the fields that hold commas."
            ) from error


def _check_header(path: Path) -> None:
    """Refuse what pandas takes without a word: several columns of one name, another separator."""
    _, header = next(_records(path), (0, []))
    if not header:
        raise TableError(f"{path} is empty: it needs a header line that names the columns, and rows.")
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        raise TableError(
            f"{path}: the header line has {quoted(repeated)} more than once: give every column a name of its own."
        )
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
